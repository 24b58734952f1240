"""The example scripts and the operation counts, run as a user runs them."""

import json
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc import viz

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"


def script(path):
    return runpy.run_path(str(ROOT / path))


def is_png(path):
    data = path.read_bytes()
    return data.startswith(b"\x89PNG") and len(data) > 10_000


@pytest.mark.slow
@pytest.mark.cites("Saha 1999, figures 6 and 9; MATH 15")
def test_stanford_arm(tmp_path, capsys):
    found = script("examples/01_stanford_arm.py")["main"](tmp_path)
    golden = json.loads((GOLDEN / "stanford_arm.json").read_text())
    np.testing.assert_allclose(found["tau"], golden["tau"], rtol=1e-11, atol=1e-13)
    assert found["drift"] < 1e-7
    assert found["apart"] < 1e-11
    assert is_png(tmp_path / "stanford_arm_torques.png")
    assert is_png(tmp_path / "stanford_arm_free_fall.png")
    printed = capsys.readouterr().out
    assert "joint3       29.9 N\n" in printed
    assert "energy drifts by" in printed


@pytest.mark.slow
@pytest.mark.cites("Saha 1999, figures 5 and 8; MATH 14, S10")
def test_planar_arm(tmp_path, capsys):
    found = script("examples/02_planar_arm.py")["main"](tmp_path)
    golden = json.loads((GOLDEN / "planar_3link.json").read_text())
    np.testing.assert_allclose(found["tau"], golden["tau"], rtol=1e-12, atol=1e-13)
    fall = golden["freefall"]
    np.testing.assert_allclose(found["fall"].t[::2], fall["t"], atol=1e-12)
    np.testing.assert_allclose(found["fall"].q[::2], fall["q"], atol=1e-7)
    assert found["drift"] < 1e-8
    assert found["apart"] < 1e-9
    assert is_png(tmp_path / "planar_arm_torques.png")
    assert is_png(tmp_path / "planar_arm_free_fall.png")
    assert "joint1      4.39 N·m" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.cites("J&R Identity 7.1: νᵀ C = 0; MATH 7.1, 7.4: ½νᵀν, νᵀε")
def test_diagonal_dynamics(tmp_path, capsys):
    found = script("examples/03_diagonal_dynamics.py")["main"](tmp_path)
    assert found["work"] < 1e-13
    assert found["coriolis"] > 10  # so that the line above says something
    assert found["energy"] < 1e-12
    assert found["power"] < 1e-12
    assert found["moments"] < 1e-12
    assert found["apart"] < 1e-7
    assert found["drift"] < 1e-6
    assert np.ptp(found["kinetic"]) > 10
    assert is_png(tmp_path / "diagonal_dynamics.png")
    assert "|νᵀC| / |ν||C|" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.cites("J&R Control 8.1, 8.2; MATH 7.6; MATH 14, J17")
def test_decoupled_control(tmp_path, capsys):
    found = script("examples/04_decoupled_control.py")["main"](tmp_path)
    assert found["decay"] < 1e-7
    assert found["monotone"]
    assert found["balance"] < 1e-5  # d/dt (½νᵀν + ½eᵀWe) = -νᵀ c₁ ν
    right, wrong = found["error"], found["printed_error"]
    np.testing.assert_allclose(right[:, 0], wrong[:, 0], rtol=1e-12)
    assert np.all(right[:, -1] < 0.01 * right[:, 0])
    assert np.all(wrong[:, -1] > 1.2 * wrong[:, 0])
    assert is_png(tmp_path / "decoupled_control.png")
    assert "distance from e^(-2ct)" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.cites("MATH 8; MATH 14, C1 to C8")
def test_conditioning(tmp_path, capsys):
    run = script("examples/08_conditioning.py")["main"]
    start = "30° off the vertical"
    found = run(tmp_path, links=(4,), starts=(start,), lengths=(4, 8))

    # as printed in the note, whose own κ and θ̈ come from rounded digits
    golden = json.loads((GOLDEN / "chain4_condition.json").read_text())["cases"]
    printed = golden["printed"]
    np.testing.assert_allclose(found["found"]["ℳ"], printed["I"], atol=6e-5)
    np.testing.assert_allclose(found["found"]["φ"], printed["phi"], atol=6e-5)
    np.testing.assert_allclose(found["found"]["θ̈"], printed["qdd"], atol=2e-3)
    kappa = golden["fitted_solid_rod"]["kappa"]
    np.testing.assert_allclose(found["kappa"], kappa, rtol=1e-9)
    np.testing.assert_allclose(found["change"], [7.6, 14.3, 42.9, 55.6], atol=0.1)

    golden = json.loads((GOLDEN / "chain_swing.json").read_text())["chains"]["4"]
    see = found["swings"][start][4]
    np.testing.assert_allclose(see["t"], golden["t"], atol=1e-12)
    for mine, theirs in {
        "κ": "kappa",
        "δ": "diag_ratio",
        "δ_s": "scaled_diag_ratio",
        "reverse pivots": "pivot_ratio_reverse",
        "forward pivots": "pivot_ratio_forward",
    }.items():
        np.testing.assert_allclose(see[mine], golden[theirs], rtol=1e-6)
    assert 0.99 < found["growth"][8] / (4 * 8**4) < 1.10
    assert 0.1 < found["shares"][3] < 0.3
    assert found["errors"]["recursive"] < 1e-4 and found["errors"]["dense"] > 1e-2
    for name in "hanging", "growth":
        assert is_png(tmp_path / f"conditioning_{name}.png")
    printed = capsys.readouterr().out
    assert "κ = 1074.20" in printed and "what does not hold" in printed


@pytest.mark.slow
@pytest.mark.cites("MATH 11")
def test_identify_arm(tmp_path, capsys):
    found = script("examples/09_identify_arm.py")["main"](tmp_path, links=2, steps=40)
    told, fit = found["told"], found["found"]
    assert np.all(told["rms"] < 0.3 * told["prior"])
    assert np.all(told["ratio"] < 1.6) and np.all(told["covered"] > 0.8)
    base, of = fit.base, fit.base.parameters.of
    truth, before = base.project(of(found["real"])), base.project(of(fit.prior))
    off = np.median(np.abs(fit.base_values - truth))
    assert off < 0.1 * np.median(np.abs(before - truth)) and fit.consistent.all()
    fitted = jd.load(tmp_path / "fitted.urdf")
    np.testing.assert_allclose(fitted.mass, fit.model.mass, rtol=1e-12)
    np.testing.assert_allclose(fitted.friction, fit.model.friction, rtol=1e-12)
    page = (tmp_path / "identified.html").read_text()
    assert page.count("<svg") >= 2 and "joint2" in page
    assert "possible bodies: True" in capsys.readouterr().out


@pytest.mark.cites("MATH 17")
def test_operation_counts(tmp_path, capsys):
    module = script("benchmarks/operation_counts.py")
    module["main"](["--max-n", "5", "--json", str(tmp_path / "counts.json")])
    report = json.loads((tmp_path / "counts.json").read_text())
    for name in ("inverse dynamics", "forward dynamics"):
        for laws in report[name]["laws"].values():
            for slope, _, residual in laws.values():
                assert slope > 0
                assert residual == 0
    # as printed, but for the additions of Walker and Orin at n = 6 (MATH 14, S7)
    papers = report["inverse dynamics"]["papers"]
    assert papers["Saha 1999"]["6"] == [676, 527]
    assert papers["Balafoutis et al. 1988"]["6"] == [489, 421]
    papers = report["forward dynamics"]["papers"]
    assert papers["Saha 1999"] == {"6": [871, 797], "12": [2077, 1955]}
    assert papers["Walker & Orin 1982"] == {"6": [633, 475], "12": [2357, 1716]}
    assert "largest residual 0." in capsys.readouterr().out


def test_the_counter_counts():
    module = script("benchmarks/operation_counts.py")
    model = jnp.ones(3)

    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda x, dx: (x[0] * x[0], 2 * x[0] * dx[0]))

    def step(carry, row):
        k, x = carry
        return (k + 1, x * row + x), row * row

    def function(m, x):
        scale = 2.0 * m[0] - 1.0  # of the model: 1 M, 1 A
        y = jnp.sum(x * m) + scale  # 3 M, 2 A and 1 A
        # the row is the model's: 3 M of the model; x enters only through the carry
        (_, z), rows = jax.lax.scan(step, (0, y), m)  # 3 M, 3 A, and 3 M of the model
        w = jax.lax.cond(z > 0, lambda z: z * z + z, lambda z: z, z)  # 1 M, 1 A
        u = jax.jit(square)(w) + m @ x  # 1 M, and 3 M, 2 A, and 1 A
        return u - jnp.sin(u), rows  # 1 A

    found = module["count_call"](function, model, jnp.ones(3))
    assert (found.state["M"], found.state["A"]) == (11, 11)
    assert (found.model["M"], found.model["A"]) == (4, 1)
    assert found.state["sin"] == 1
    assert sum(found.state.values()) < 30  # integers and comparisons are not counted


def test_figures_have_units_and_names():
    tree = jd.robots.random_tree(jax.random.key(1), 5, floating_base=True)
    t = np.linspace(0, 1, 7)
    figure = viz.joint_panels(tree, t, np.ones((7, tree.nq)), quantity="position")
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels[:3] == ["displacement [m]"] * 3
    assert labels[3:7] == ["quaternion"] * 4
    assert figure.axes[-1].get_title() == tree.joint_names[-1]

    arm = jd.robots.stanford_arm()
    figure = viz.joint_curves(arm, t, np.ones((7, 6)), quantity="force")
    assert [axes.get_ylabel() for axes in figure.axes] == ["torque [N·m]", "force [N]"]
    names = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert names == ["joint3"]

    with pytest.raises(ValueError, match=r"need \(7, 6\)"):
        viz.joint_curves(arm, t, np.ones((6, 7)), quantity="force")


@pytest.mark.slow
def test_batched_rollouts(tmp_path, capsys):
    found = script("examples/05_batched_rollouts.py")["main"](tmp_path, robots=512)
    status, hand = found["status"], found["hand"]
    ok = np.asarray(status.ok)
    assert 0 < np.sum(~ok) < 100  # a few meet a limit, and stay where they were
    assert np.all(np.asarray(status.sound)[:, -1] == ok)
    np.testing.assert_array_equal(hand[~ok, -1], hand[~ok, -2])
    assert np.all(np.any(hand[ok, 1:] != hand[ok, :-1], axis=-1)[:, 1:])
    # more than the controller knows of sags, and less rises
    light, heavy = found["payload"] < 0.1, found["payload"] > 0.4
    assert np.all(hand[ok & light, -1, 1] > found["goal"][1])
    assert np.all(hand[ok & heavy, -1, 1] < found["goal"][1])
    assert is_png(tmp_path / "batched_rollouts.png")
    printed = capsys.readouterr().out
    assert f"ran to the end    {ok.sum()}\n" in printed
    assert "left its limits at step" in printed


@pytest.mark.slow
def test_policy_gradient(tmp_path, capsys):
    small = {"iterations": 60, "batch": 32, "width": 16, "rate": 1e-2}
    with jax.numpy_dtype_promotion("standard"):  # as optax's rules need it
        found = script("examples/07_policy_gradient.py")["main"](tmp_path, **small)
    losses = found["losses"]
    assert np.mean(losses[-5:]) < 0.4 * losses[0]
    before, after = np.median(found["away"][:, :, -1], axis=1)
    assert after < 0.5 * before
    assert is_png(tmp_path / "policy_gradient.png")
    assert "targets not trained on" in capsys.readouterr().out
