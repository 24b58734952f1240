"""`jaxdenoc simulate`, called in process."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.cli import _main, _simulate, main

ROBOT, SAMPLES = "rod_chain:1", 44  # 43 intervals, which pieces of 3 cover with overlap


def simulate(*options):
    return main(["simulate", ROBOT, "--samples", str(SAMPLES), *map(str, options)])


@pytest.fixture(scope="module")
def model():
    return jd.robots.rod_chain(1)


def test_pieces_make_the_motion_and_a_second_run_goes_on(model, tmp_path, capsys):
    out, table, plot, more = (
        tmp_path / s for s in ("a.npz", "a.csv", "a.png", "b.npz")
    )
    files = ("--out", out, "--csv", table, "--plot", plot)
    assert simulate("--start=-0.5", "--time", 1, *files) == 0
    printed = capsys.readouterr().out
    for words in (
        "rod_chain_1: 1 links",
        "status: ran to the end",
        "drift",
        str(table),
    ):
        assert words in printed
    run = jd.Trajectory.load(out)
    ts = jnp.linspace(0, 1, SAMPLES)
    whole = jd.simulate(model, run.q[0], run.qd[0], ts)
    assert run.q[0] == -0.5 and run.status.ok
    for x, y in [(run.t, ts), (run.q, whole.q), (run.qd, whole.qd)]:
        np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-7)
    assert len(table.read_text().splitlines()) == SAMPLES + 1
    assert plot.stat().st_size > 5_000
    assert simulate("--start", out, "--time", 1, "--out", more) == 0
    on = jd.Trajectory.load(more)
    np.testing.assert_array_equal(on.q[0], run.q[-1])
    np.testing.assert_allclose(on.energy(model), run.energy(model)[-1], atol=1e-6)


def test_torque_is_that_of_a_table_or_of_gravity(model, tmp_path):
    path = tmp_path / "tau.csv"
    path.write_text("t,other,tau_joint1\n0,9,1\n0.5,9,2\n1,9,0\n")
    tau = _simulate.torque(model, str(path))
    q = jnp.array([0.3])
    for t, expected in [(0.25, 1.5), (0.75, 1.0), (2.0, 0.0)]:
        np.testing.assert_allclose(tau(jnp.array(t), q, q), [expected])
    held = _simulate.torque(model, "gravity")
    np.testing.assert_allclose(held(0.0, q, q), [9.81 * 0.5 * np.cos(0.3)])


def test_a_stop_ends_the_run_and_is_said(tmp_path, capsys, monkeypatch):
    """In the third piece, whose second state is no number."""
    calls = []

    def solved(model, q, qd, ts, **how):
        calls.append(float(ts[0]))
        x = jnp.full((len(ts), 1), float(len(calls)))
        q = x.at[1:].set(jnp.nan) if len(calls) == 3 else x
        return jd.Trajectory(ts, q, x, x)

    monkeypatch.setattr(_simulate, "simulate", solved)
    assert simulate("--out", tmp_path / "run.npz") == 1
    assert len(calls) == 3
    printed = capsys.readouterr().out
    assert "left the finite numbers at step 6: joint 'joint1'" in printed
    run = jd.Trajectory.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(run.status.sound, np.arange(SAMPLES) <= 6)
    assert run.q.shape == (SAMPLES, 1) and run.t[-1] == 1
    np.testing.assert_array_equal(run.q[6:], 3.0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--start", "up"), "Give neutral, random, nq = 1 numbers"),
        (("--start", "no.npz"), "no.npz is not there"),
        (("--torque", "full"), "Give zero, gravity, or a table"),
        (("--torque", "no.csv"), "no.csv cannot be read"),
        (("--torque", "bad.csv"), "is no table of joint forces ('tau_joint1')"),
        (("--torque", "back.csv"), "its times do not grow"),
        (("--out", "no/run.npz"), "there is no folder no. Make it"),
        (("--samples", "1"), "--samples is 1"),
        (("--floating-base",), "the base of 'rod_chain' is fixed"),
    ],
)
def test_refused_in_one_line(options, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("t,x\n0,1\n")
    (tmp_path / "back.csv").write_text("t,tau_joint1\n1,1\n0,1\n")
    assert simulate(*options) == 2
    printed = capsys.readouterr().err
    assert says in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    ("robot", "says"),
    [
        ("stanford_rm", "Did you mean 'stanford_arm'?"),
        ("rod_chain", "Give one, as in rod_chain:5"),
        ("robot.urdf", "neither a file nor a built-in one"),
        ("robot.npz", "robot.npz is not there"),
    ],
)
def test_an_unknown_robot_is_refused(robot, says, capsys):
    assert main(["simulate", robot]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*no place for gravity")
def test_robots_from_files_are_those_saved(model, tmp_path):
    jd.save(model, tmp_path / "a.npz")
    (tmp_path / "a.urdf").write_text(jd.to_urdf(model))
    for name, base in [("a.npz", False), ("a.urdf", False), ("a.urdf", True)]:
        options = ["--floating-base"] if base else []
        args = _main._parser().parse_args(["simulate", str(tmp_path / name), *options])
        found = _simulate.robot(args)
        assert found.floating_base == base and found.mass[-1] == model.mass[-1]
