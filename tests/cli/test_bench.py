"""`jaxdenoc bench`, with less to time than a user has."""

import json

import pytest

import jaxdenoc.cli
from jaxdenoc.cli import _bench


def test_bench_prints_and_writes(tmp_path, capsys, monkeypatch):
    some = {k: _bench.FUNCTIONS[k] for k in ("inverse dynamics", "mass matrix")}
    monkeypatch.setattr(_bench, "FUNCTIONS", some)
    file = tmp_path / "figures.json"
    command = ["bench", "--batch", "64", "--seconds", "0.01", "--json", str(file)]
    assert jaxdenoc.cli.main(command) == 0
    printed = capsys.readouterr().out
    assert "batches of 64" in printed and "× Pinocchio's rneaInParallel" in printed
    rows = json.loads(file.read_text())
    assert [row["function"] for row in rows] == list(some)
    for row in rows:
        assert row["float64"] > 0 and row["float32"] > 0 and row["one robot µs"] > 0
    assert rows[0]["pinocchio"] > 0 and "pinocchio" not in rows[1]


def test_bench_refuses_an_empty_batch(capsys):
    with pytest.raises(SystemExit) as stopped:
        jaxdenoc.cli.main(["bench", "--batch", "0"])
    assert stopped.value.code == 2
    assert "0 is not a batch" in capsys.readouterr().err
