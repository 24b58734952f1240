"""The condition along motions: recorded, saved, cheap, and the motion unchanged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.conditioning import Condition

N = 3


@pytest.fixture(scope="module")
def model():
    return jd.robots.rod_chain(N)


def check(model, motion, every):
    seen = motion.condition
    qs = motion.q[::every]
    np.testing.assert_array_equal(seen.t, motion.t[::every])
    monitor = jd.ConditionMonitor.start(model, qs[0])
    for k, q in enumerate(qs):
        known = (
            jd.diagonal_ratio(model, q),
            jd.diagonal_ratio(model, q, safe=True),
            jd.pivot_ratio(model, q),
            monitor.estimate(model, q),
        )
        found = (seen.diagonal_ratio, seen.safe_ratio, seen.pivot_ratio, seen.estimate)
        np.testing.assert_allclose([x[k] for x in found], known, rtol=1e-9)
    np.testing.assert_allclose(
        seen.estimate[0], jd.condition_number(model, qs[0]), rtol=1e-9
    )


def test_simulate(model):
    q, ts = jnp.array([0.4, -0.2, 0.9]), jnp.linspace(0, 0.6, 7)
    motion = jd.simulate(model, q, 0 * q, ts, monitor=2)
    check(model, motion, 2)
    plain = jd.simulate(model, q, 0 * q, ts)
    assert plain.condition is None
    np.testing.assert_array_equal(motion.q, plain.q)


def test_rollouts_of_a_batch_and_their_files(model, tmp_path):
    q = jnp.asarray(np.random.default_rng(0).normal(size=(5, N)))
    q = q.at[1, 1].set(2.5)  # folded: ℳ_11 is not the largest of the diagonal

    def run(monitor):
        def of(q):
            return jd.rollout(model, q, 0 * q, None, 1e-2, steps=41, monitor=monitor)

        return jd.batched(of)(q)

    motion, plain = run(True), run(False)
    np.testing.assert_array_equal(motion.q, plain.q)
    assert motion.condition is not None and motion.condition.t.shape == (5, 3)
    apart = motion.condition.safe_ratio / motion.condition.diagonal_ratio
    assert apart[1, 0] > 1.1
    for k in range(5):
        check(model, jax.tree.map(lambda x, k=k: x[k], motion), 20)

    motion.save(tmp_path / "watched.npz")
    again = jd.Trajectory.load(tmp_path / "watched.npz")
    assert isinstance(again.condition, Condition)
    jax.tree.map(np.testing.assert_array_equal, again.condition, motion.condition)
    plain.save(tmp_path / "plain.npz")
    assert jd.Trajectory.load(tmp_path / "plain.npz").condition is None


def test_safe_monitor(model):
    q0, q = jnp.zeros(N), jnp.array([0.1, 2.5, 0.3])
    monitor = jd.ConditionMonitor.start(model, q0, safe=True)
    known = jd.condition_number(model, q0) / jd.diagonal_ratio(model, q0, safe=True)
    np.testing.assert_allclose(monitor.alpha, known, rtol=1e-12)
    estimate = known * jd.diagonal_ratio(model, q, safe=True)
    np.testing.assert_allclose(monitor.estimate(model, q), estimate, rtol=1e-12)
    # folded so far that ℳ_11 is not the largest any more
    assert jd.diagonal_ratio(model, q, safe=True) > jd.diagonal_ratio(model, q)


def test_a_monitored_rollout_is_one_piece(model, caplog):
    """Or it would be several times slower."""
    q = jnp.zeros((64, N))
    with caplog.at_level("DEBUG", "jaxdenoc"):
        jd.batched(lambda q: jd.rollout(model, q, q, None, 1e-2, steps=3, monitor=1))(q)
    assert "not in one piece" not in caplog.text
