"""`identify` from rollouts: exact without noise, resumable to the bit."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc._npz import Format
from jaxdenoc.identify import parameters_of
from jaxdenoc.identify._segments import segments

from .test_identify import base_error, other, thick

ARM = thick(jd.robots.rod_chain(2))
TRUTH = other(ARM, 3)


@cache
def logs(count=12, steps=10, dt=0.01, noise=0.0, qdd=0.0):
    """Motions of the truth under torques that jump, by the integrator itself."""
    rng = np.random.default_rng(0)
    roll = jax.jit(
        jax.vmap(
            lambda *x: jd.rollout(TRUTH, *x, dt, integrator="rk4", limits="ignore")
        )
    )
    q, qd = rng.normal(size=(2, count, ARM.nv))
    tau = 20 * rng.normal(size=(count, steps, ARM.nv))
    runs = roll(*map(jnp.asarray, (q, qd, tau)))
    accelerate = jax.jit(jax.vmap(jax.vmap(jd.forward_dynamics, (None, 0, 0, 0)),
                                  (None, 0, 0, 0)))  # fmt: skip
    a = np.asarray(accelerate(TRUTH, runs.q, runs.qd, runs.tau))
    a = a + qdd * rng.normal(size=a.shape)
    q, qd = (x + noise * rng.normal(size=x.shape) for x in (runs.q, runs.qd))
    return [jd.Measurements(*x) for x in zip(runs.t, q, qd, a, runs.tau, strict=True)]


def fitted(data=None, **options):
    data = logs() if data is None else data
    return jd.identify(ARM, data, loss="rollout", **options)


def test_base_parameters_without_noise():
    """And with accelerations that are wrong: they are where it begins, no more."""
    fit = fitted(logs(qdd=3.0))
    assert base_error(fit, TRUTH) < 1e-5 and fit.consistent.all() and fit.iterations > 2
    assert (np.diff(fit.history) <= 0).all() and fit.state_noise.shape == (2, 2)


def test_noise_and_free_starts():
    """States with noise: starts that are free do better than those measured."""
    data = logs(16, noise=1e-3)
    want = {start: fitted(data, start=start) for start in ("measured", "free")}
    free = want["free"]
    truth = free.base.project(parameters_of(TRUTH).of(TRUTH))
    assert np.abs((free.base_values - truth) / free.base_sigma).max() < 5
    assert free.consistent.all()
    assert 0.5e-3 < want["free"].state_noise.mean() < 1.5e-3
    assert want["measured"].state_noise.mean() > want["free"].state_noise.mean()


def test_placements():
    """A joint that sits elsewhere is found, with all else known, and only that."""
    moved = eqx.tree_at(
        lambda m: m.placement.translation, TRUTH, TRUTH.placement.translation + 0.02
    )
    names = ("joint2.placement.x", "joint2.placement.y")
    fit = jd.identify(moved, logs(), loss="rollout", parameters=names)
    found = fit.model.placement.translation
    np.testing.assert_allclose(found[1, :2], TRUTH.placement.translation[1, :2],
                               atol=1e-6)  # fmt: skip
    np.testing.assert_array_equal(found[0], moved.placement.translation[0])
    np.testing.assert_array_equal(fit.model.mass, moved.mass)
    assert fit.sources == ("data", "data") and fit.parameters == names


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lm", "adam"])
def test_resumed_to_the_bit(method, tmp_path, monkeypatch):
    """Stopped while it writes, after some iterations; the same call then goes on."""
    options = {"method": method, "steps": 6, "every": 0.0, "prior": 2.0}
    data = logs(qdd=3.0)
    want, path = fitted(data, **options), tmp_path / "search.npz"
    write, count = Format.write, []

    def dies(self, *args):
        count.append(0)
        if len(count) == 4:
            raise KeyboardInterrupt
        write(self, *args)

    monkeypatch.setattr(Format, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        fitted(data, checkpoint=path, **options)
    monkeypatch.setattr(Format, "write", write)
    assert path.exists() and len(count) == 4
    again = fitted(data, checkpoint=path, **options)
    for name in ("values", "covariance", "history"):
        np.testing.assert_array_equal(getattr(again, name), getattr(want, name))
    with pytest.raises(jd.ModelError, match="another model, other data or options"):
        fitted(data, checkpoint=path, **options | {"prior": 1.0})
    with pytest.raises(jd.ModelError, match="another model, other data or options"):
        fitted(logs(), checkpoint=path, **options)


def test_segments_of_gaps_and_uneven_times():
    data = logs(1, steps=40)[0]
    t = np.asarray(data.t) + 0.002 * (np.arange(41) % 2)
    t[21:] += 1.0
    weight = np.ones((41, 2))
    weight[5, 0] = 0
    data = jd.Measurements(t, data.q, data.qd, data.qdd, data.tau, weight)
    cut = segments(ARM, [data], 10)
    # 0-5, 6-20 and 21-40
    assert cut.real.sum() == 5 + 14 + 19 and len(cut.dt) == 1 + 2 + 2
    np.testing.assert_allclose(cut.dt.sum(), t[5] - t[0] + t[20] - t[6] + t[40] - t[21])
    none = eqx.tree_at(lambda d: d.weight, data, 0 * weight)
    with pytest.raises(jd.ModelError, match="no motion to compare"):
        segments(ARM, [none], 10)


def test_refused():
    with pytest.raises(jd.ModelError, match="needs method='lm'"):
        fitted(method="adam", start="free")
    with pytest.raises(jd.ModelError, match="integrator is 'euler'"):
        fitted(integrator="euler")
    with pytest.raises(jd.ModelError, match="two positive numbers"):
        fitted(noise=[1.0, -1.0])
