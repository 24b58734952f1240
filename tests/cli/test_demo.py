"""The command line, called in process."""

import subprocess
import sys

import pytest

import jaxdenoc.cli
from jaxdenoc.cli import _demo
from jaxdenoc.cli._checks import CHECKS, Check, Result


@pytest.mark.slow
def test_demo_checks_and_draws(tmp_path, capsys):
    out = tmp_path / "deep" / "figures"
    assert jaxdenoc.cli.main(["demo", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for check in CHECKS:
        assert f"✓ {check.title}" in printed
    assert "✗" not in printed
    assert "✓ Jacobian and gradient are central differences" in printed
    assert "✓ a vmapped batch of 4096" in printed
    assert "evaluations per second" in printed
    assert "✓ energy is kept in free fall" in printed
    assert "prismatic" in printed
    assert " s in all." in printed
    for name in ("stanford_arm_torques", "stanford_arm_free_fall"):
        assert (out / f"{name}.png").stat().st_size > 10_000


def test_demo_fails_when_a_check_does(tmp_path, capsys, monkeypatch):
    def wrong(states, found):
        return float("nan")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_demo, "CHECKS", (Check("one is two", 1e-9, wrong),))
    monkeypatch.setattr(_demo, "compute", lambda *_: None)
    monkeypatch.setattr(_demo, "gradient", lambda *_: Result(0.0, 1.0))
    monkeypatch.setattr(_demo, "throughput", lambda *_: Result(0.0, 1.0))
    monkeypatch.setattr(_demo, "free_fall", lambda *_: None)
    monkeypatch.setattr(_demo, "energy_kept", lambda *_: Result(0.0, 1.0))
    assert jaxdenoc.cli.main(["demo", "--no-figures"]) == 1
    printed = capsys.readouterr().out
    assert "✗ one is two" in printed
    assert "1 of the checks failed" in printed
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert jaxdenoc.cli.main(["demo", "--out", str(tmp_path / "file" / "x")]) == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["demp"], "Did you mean 'demo'?"),
        (["fly"], "there is no command 'fly'. There is demo"),
        (["demo", "--colour"], "unrecognized arguments: --colour"),
    ],
)
def test_a_bad_command_line_says_what_to_do(argv, says, capsys):
    with pytest.raises(SystemExit) as stop:
        jaxdenoc.cli.main(argv)
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    assert says in printed
    assert "--help" in printed


def test_alone_it_prints_help(capsys):
    assert jaxdenoc.cli.main([]) == 2
    assert "demo" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        jaxdenoc.cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("jaxdenoc ")


def test_the_library_imports_neither_matplotlib_nor_rich():
    code = "import sys, jaxdenoc, jaxdenoc.viz; print(*sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"matplotlib", "rich"} & set(run.stdout.split())
