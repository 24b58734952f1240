"""Samples of a motion: what is refused, what is kept, how they are cut."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

NAN, INF = np.nan, np.inf


def tables(k=5, v=2):
    rng = np.random.default_rng(0)
    return {"t": 0.1 * np.arange(k)} | {
        s: rng.normal(size=(k, v)) for s in ("q", "qd", "qdd", "tau")
    }


def put(name, at, value):
    def change(x):
        x[name][at] = value

    return change


def cut(name, at):
    def change(x):
        x[name] = x[name][at]

    return change


def set_to(name, value):
    def change(x):
        x[name] = value

    return change


BAD = [
    (put("q", (3, 1), NAN), r"q, row 3, column 1: nan.*fill the gap"),
    (put("qdd", (0, 0), INF), r"qdd, row 0, column 0: inf"),
    (put("tau", (2, 1), NAN), r"tau, row 2, column 1: nan.*weight\[2, 1\] = 0"),
    (put("t", 2, NAN), r"t, row 2: nan"),
    (put("t", 3, 0.2), r"t, row 3: 0\.2 is there twice"),
    (put("t", 3, 0.15), r"t, row 3: 0\.15 comes after 0\.2"),
    (cut("tau", slice(4)), r"tau has shape \(4, 2\).*needs \(5, 2\)"),
    (cut("qd", (slice(None), [0])), r"qd has shape \(5, 1\)"),
    (cut("q", 0), r"q has shape \(2,\).*one row of numbers"),
    (set_to("q", np.zeros((5, 4))), r"q has 4 columns and tau 2"),
    (set_to("t", np.zeros((5, 1))), r"t has shape \(5, 1\)"),
    (set_to("qd", "rates"), r"qd is no table of numbers"),
    (set_to("weight", -np.ones((5, 2))), r"weight, row 0, column 0: -1"),
    (set_to("weight", np.ones((5, 3))), r"weight has shape \(5, 3\)"),
]


@pytest.mark.parametrize("change, message", BAD, ids=[m[:24] for _, m in BAD])
def test_what_is_wrong_is_said_with_row_and_column(change, message):
    x = tables()
    change(x)
    if isinstance(x["qd"], str):
        x["qd"] = [["a", "b"]] * 5
    with pytest.raises(jd.ModelError, match=message):
        jd.Measurements(**x)


def test_no_samples_are_refused():
    with pytest.raises(jd.ModelError, match="no samples"):
        jd.Measurements([], *[np.zeros((0, 2))] * 4)


def test_missing_torques_are_kept_with_no_weight():
    x = tables()
    x["tau"][2, 1] = NAN
    weight = np.ones((5, 2), bool)
    weight[2, 1] = False
    data = jd.Measurements(**x, weight=weight)
    assert data.tau[2, 1] == 0 and data.weight[2, 1] == 0
    np.testing.assert_array_equal(data.counts(), [5, 4])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(data))
    assert all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(data))
    assert "5 samples of 2 joints" in repr(data) and "1 torques" in repr(data)
    assert np.isnan(x["tau"][2, 1])  # what was given is left alone


def test_parts():
    x = tables(10)
    x["t"][6:] += 3.0
    data = jd.Measurements(**x)
    np.testing.assert_array_equal(data[2:4].q, x["q"][2:4])
    np.testing.assert_array_equal(data[x["t"] > 1].tau, x["tau"][6:])
    np.testing.assert_array_equal(data[[1, 7]].t, x["t"][[1, 7]])
    fit, held = data.split(0.3)
    assert (len(fit), len(held)) == (7, 3)
    np.testing.assert_array_equal(np.r_[fit.t, held.t], x["t"])
    assert [len(piece) for piece in data.pieces()] == [6, 4]
    assert [len(piece) for piece in data.pieces(4.0)] == [10]
    for wrong in (0, 1.0, -0.2, 0.01, 0.99):
        with pytest.raises(jd.ModelError, match=r"held_out|too few"):
            data.split(wrong)
    with pytest.raises(jd.ModelError, match="slice"):
        data[3]


def test_arrays_go_through_programs():
    data = jd.Measurements(**tables())
    twice = jax.jit(lambda d: jax.tree.map(lambda x: 2 * x, d))(data)
    np.testing.assert_array_equal(twice.tau, 2 * data.tau)


def test_of_a_trajectory():
    """Accelerations are those of the torques: ID(q, θ̇, θ̈) = τ."""
    model = jd.robots.planar_arm()
    rng = np.random.default_rng(1)
    q, qd, tau = (jnp.asarray(rng.normal(size=(6, 3))) for _ in range(3))
    motion = jd.Trajectory(0.1 * jnp.arange(6.0), q, qd.at[4].set(NAN), tau)
    data = jd.Measurements.of(motion, model)
    assert len(data) == 5  # the sound ones
    state = map(jnp.asarray, (data.q, data.qd, data.qdd))
    back = jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0))(model, *state)
    np.testing.assert_allclose(back, data.tau, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(data.tau, np.delete(tau, 4, axis=0))
    with pytest.raises(jd.ModelError, match="batch of 1 motions"):
        jd.Measurements.of(jax.tree.map(lambda x: x[None], motion), model)
