"""`jaxdenoc generate`, called in process."""

import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.cli import _generate, main

FEW = ("--count", "5", "--shard", "3", "--steps", "2")


def generate(folder, *options, robot="rod_chain:1"):
    return main(["generate", robot, str(folder), *options])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swings")
    assert generate(folder, *FEW, "--torque", "0.5") == 0
    return folder


def test_forces_are_random_within_what_is_asked(folder):
    """The last sample repeats the force before it, as `jd.rollout` says."""
    tau = np.asarray(jd.Dataset(folder)[:].tau[:, :-1])
    assert tau.shape == (5, 2, 1) and len(np.unique(tau)) == tau.size
    assert np.all(np.abs(tau) < 0.5) and np.any(np.abs(tau) > 0.25)


def test_again_it_keeps_what_is_there(folder, capsys):
    before = {p: p.stat().st_ino for p in folder.glob("shard-*")}
    assert generate(folder, *FEW, "--torque", "0.5") == 0
    assert "5 motions of 'rod_chain_1', 2 steps of 0.01 s" in capsys.readouterr().out
    assert {p: p.stat().st_ino for p in folder.glob("shard-*")} == before
    assert generate(folder, *FEW) == 2
    assert "torques is" in capsys.readouterr().err


def test_check(folder, capsys):
    assert generate(folder, "--check") == 0
    printed = capsys.readouterr().out
    assert "5 motions in 2 files: all are whole" in printed
    assert "5 of the motions ran to the end" in printed
    assert generate(folder, "--check", robot="rod_chain:2") == 2
    assert "motions of another robot than 'rod_chain_2'" in capsys.readouterr().err
    names = "shard-000000.npz", "shard-000001.npz"
    for name in names:
        (folder / name).write_bytes(b"")
    assert generate(folder, "--check") == 2
    assert f"2 of 3 files are not whole: {', '.join(names)}" in capsys.readouterr().err


def test_refused_in_one_line(tmp_path, capsys, monkeypatch):
    def refuse(*_, **asked):
        raise ValueError(f"integrator is '{asked['integrator']}'")

    monkeypatch.setattr(_generate, "generate", refuse)
    assert generate(tmp_path, "--integrator", "euler") == 2
    expected = "jaxdenoc generate: integrator is 'euler'\n"
    assert capsys.readouterr().err == expected


def test_stopped_by_hand_it_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_generate, "generate", stop)
    assert generate(tmp_path) == 130
    assert "The same command goes on from here" in capsys.readouterr().err
