"""`identify` from torques: exact without noise, always physical, honest with noise."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.identify import parameters_of
from jaxdenoc.identify._coordinates import coordinates, of_body
from jaxdenoc.identify._gauge import inside
from jaxdenoc.identify._identify import _check
from jaxdenoc.identify._selection import selection

from .test_base_parameters import robot
from .test_least_squares import ARM, log

TWO = jd.robots.rod_chain(2)


def thick(model, joints=0.5):
    """Its links made bodies, and something at every joint."""
    space, _, _ = coordinates(model, selection(model, "all"), True)
    model = space.robot(space.start)
    full = [jnp.full(model.nv, joints)] * 3
    return eqx.tree_at(lambda m: (m.armature, m.damping, m.friction), model, full)


def other(model, seed=0, by=0.3):
    """A robot nearby: every coordinate moved by so many factors e."""
    space, _, _ = coordinates(model, selection(model, "all"), True)
    step = by * np.random.default_rng(seed).normal(size=space.start.shape)
    return space.robot(space.start + step)


@cache
def arm(name="planar"):
    return thick(ARM if name == "planar" else robot(name))


def base_error(fit, truth):
    """The largest relative error of a base parameter."""
    columns = np.array(fit.columns)
    want = fit.base.combination @ parameters_of(truth).of(truth)[columns]
    return np.abs(fit.base_values / want - 1).max()


@pytest.mark.cites("MATH 11: θ of any body, and a body of any θ")
@pytest.mark.parametrize("name", ["panda"])
def test_base_parameters_without_noise(name):
    prior = arm(name)
    truth = other(prior)
    fit = jd.identify(prior, log(truth, 200))
    assert base_error(fit, truth) < 1e-8
    assert fit.consistent.all() and not fit.remarks
    pi = jd.inertial_parameters(fit.model)
    assert jax.vmap(jd.physically_consistent)(pi).all()
    assert fit.base is fit.base_parameters and len(fit.sources) == len(fit.values)
    assert fit.residual.max() < 1e-9 and fit.iterations > 0 and len(fit.history) == 1


def test_far_priors_lead_to_the_same_base_parameters():
    """Links many times too heavy or thin, damping of nothing."""
    truth = other(arm(), 1)
    data = log(truth, 100)
    far = other(arm(), 7, by=2.0)
    far = eqx.tree_at(lambda m: m.damping, far, jnp.zeros(3))
    fit = jd.identify(far, data)
    assert base_error(fit, truth) < 1e-8 and fit.consistent.all()
    assert [s for s in fit.remarks if "joint2.damping" in s]


def test_not_physical_is_least_squares():
    data = log(other(arm()), 40, noise=0.3)
    fit, same = jd.identify(arm(), data, physical=False), jd.least_squares(arm(), data)
    for name in ("values", "covariance", "base_values", "noise", "residual"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(same, name))
    assert fit.parameters == same.parameters.names and fit.sources == same.sources
    np.testing.assert_array_equal(fit.predict(data), same.predict(data))


def test_always_physical_where_least_squares_is_not():
    """Short logs, wild noise, priors far off; by numbers of the model itself, too."""
    rng, broken = np.random.default_rng(0), 0
    for seed in range(6):
        truth = other(arm(), seed, by=rng.uniform(0.1, 2))
        prior = other(arm(), 50 + seed, by=rng.uniform(0.1, 2))
        data = log(
            truth, int(rng.integers(8, 40)), seed, noise=10 ** rng.uniform(-2, 2)
        )
        fit = jd.identify(prior, data)
        assert fit.consistent.all() and np.isfinite(fit.values).all()
        pi = jd.inertial_parameters(fit.model)
        assert jax.vmap(jd.physically_consistent)(pi).all()
        joints = fit.model.armature, fit.model.damping, fit.model.friction
        assert min(float(x.min()) for x in joints) >= 0
        broken += not jd.least_squares(prior, data).consistent.all()
    assert broken > 2


def test_coverage_and_held_out_torques():
    """95 % intervals of base parameters, and of torques that were not used."""
    truth, noise = other(arm()), np.array([0.5, 0.05, 0.2])
    clean, held = log(truth, 80), log(truth, 100, seed=5)
    rng, found, inside = np.random.default_rng(1), [], []

    def noisy(data):
        tau = data.tau + noise * rng.normal(size=data.tau.shape)
        return eqx.tree_at(lambda d: d.tau, data, tau)

    for _ in range(20):
        fit = jd.identify(arm(), noisy(clean))
        want = fit.base.project(parameters_of(truth).of(truth))
        found.append(np.abs(fit.base_values - want) < 1.96 * fit.base_sigma)
        check = fit.validate(noisy(held))
        inside.append(check["covered"])
        assert check["ratio"].max() < 1.5 and (check["rms"] < check["prior"]).all()
    assert 0.9 < np.mean(found) <= 0.995
    assert 0.92 < np.mean(inside) < 0.98
    low, high = fit.interval(held, 0.5)
    assert (high > low).all() and fit.noise.shape == (3,)


def test_what_is_held_stays_to_the_bit():
    truth = other(arm())
    data = log(truth, 60)
    chosen = ("link2.*", "joint3.friction", "link3.m", "link3.m·c?")
    for physical in (True, False):
        fit = jd.identify(arm(), data, parameters=chosen, physical=physical)
        assert len(fit.parameters) == 15 and fit.parameters[-1] == "joint3.friction"
        model, prior = fit.model, arm()
        for name in ("mass", "com", "inertia"):
            old, new = getattr(prior, name), getattr(model, name)
            np.testing.assert_array_equal(old[0], new[0])
            assert (old[1] != new[1]).any()
        np.testing.assert_array_equal(prior.armature, model.armature)
        np.testing.assert_array_equal(prior.friction[:2], model.friction[:2])
        pi = jd.inertial_parameters(model)[2], jd.inertial_parameters(prior)[2]
        np.testing.assert_allclose(pi[0][4:], pi[1][4:], rtol=1e-12, atol=1e-15)
        assert not physical or fit.consistent.all()


def test_a_model_of_booleans():
    mask = jax.tree.map(lambda x: False, arm())
    mask = eqx.tree_at(lambda m: m.friction, mask, np.array([True, False, True]))
    mask = eqx.tree_at(lambda m: (m.mass, m.com, m.inertia), mask, (
        np.arange(3) == 1, np.arange(3)[:, None] * np.ones(3) == 1,
        np.arange(3)[:, None, None] * np.ones((3, 3)) == 1))  # fmt: skip
    free = selection(arm(), mask)
    assert free.names[-2:] == ("joint1.friction", "joint3.friction")
    assert free.names[:10] == tuple(parameters_of(arm()).names[10:20])
    assert len(free.names) == 12


def test_some_of_a_link_by_any_numbers():
    """γ: any step is a body, all bodies are reached, and small steps are themselves."""
    pi = np.asarray(jd.inertial_parameters(arm())[0])
    rng = np.random.default_rng(0)
    for size in (1e-6, 1.0, 1e4):
        u = np.zeros(10)
        u[[0, 1, 4]] = size * rng.normal(size=3) * pi[0]
        there = inside(jnp.asarray(pi), jnp.asarray(u))
        assert jd.physically_consistent(there)
        if size < 1e-3:
            np.testing.assert_allclose(there - pi, u, rtol=1e-2, atol=1e-12)
    U = np.linalg.cholesky(np.asarray(jd.pseudo_inertia(pi)))
    np.testing.assert_allclose(of_body(U, pi), 0, atol=1e-12)


def test_outliers_count_less():
    truth, rng = other(arm()), np.random.default_rng(0)
    data = log(truth, 200, noise=0.05)
    hit = rng.random(data.tau.shape) < 0.1
    data = eqx.tree_at(lambda d: d.tau, data, data.tau + 20 * hit)
    plain, robust = jd.identify(arm(), data), jd.identify(arm(), data, robust="huber")
    want = plain.base.project(parameters_of(truth).of(truth))
    off = [np.abs(f.base_values - want).sum() for f in (plain, robust)]
    assert off[1] < off[0] / 5
    assert np.all(robust.noise < 0.1) and "count less than half" in robust.remarks[-1]


@pytest.mark.parametrize("method", ["adam", "lbfgs"])
def test_by_gradients(method):
    truth = other(TWO_ARM := thick(TWO))
    data = log(truth, 60, noise=0.1)
    want = jd.identify(TWO_ARM, data)
    fit = jd.identify(TWO_ARM, data, method=method, steps=50)
    assert fit.history[-1] < 1.1 * want.history[-1] and fit.consistent.all()


def test_massless_links_are_raised_or_held():
    bare = eqx.tree_at(lambda m: (m.mass, m.inertia), arm(), (
        arm().mass.at[1].set(0), arm().inertia.at[1].set(0)))  # fmt: skip
    data = log(other(arm()), 60)
    fit = jd.identify(bare, data, parameters="links")
    assert fit.consistent.all() and "'link2' is too thin" in fit.remarks[0]
    some = jd.identify(bare, data, parameters=("link2.m", "link3"))
    assert "link2.m" not in some.parameters and "it is held" in some.remarks[0]
    assert some.model.mass[1] == 0


def test_saved_and_loaded(tmp_path):
    data = log(other(arm()), 40, noise=0.1)
    fit = jd.identify(arm(), data, parameters=("links", "damping"))
    fit.save(tmp_path / "fit.npz")
    back = jd.Identified.load(tmp_path / "fit.npz")
    for name in ("values", "covariance", "noise", "history", "base_values"):
        np.testing.assert_array_equal(getattr(back, name), getattr(fit, name))
    assert back.parameters == fit.parameters and back.base.names == fit.base.names
    np.testing.assert_array_equal(back.predict(data), fit.predict(data))
    np.testing.assert_array_equal(back.model.mass, fit.model.mass)


def test_refused():
    data = log(ARM, 12)
    for keys, message in [
        ({"parameters": "link9.m"}, "'link9.m'.*Did you mean 'link"),
        ({"parameters": "joint2.frction"}, "Did you mean 'joint2.friction'"),
        ({"parameters": "placement"}, "is of a placement"),
        ({"parameters": ()}, "nothing free"),
        ({"prior": 0.0}, "prior is 0.0; give a positive"),
        ({"noise": [0.0, 1, 1]}, "positive standard deviation"),
        ({"physical": False, "method": "adam"}, "closed form"),
        ({"checkpoint": "x.npz"}, "checkpoint is for"),
        ({"loss": "rollout", "robust": "huber"}, "robust="),
        ({"loss": "rollout", "horizon": 0}, "horizon is 0"),
    ]:
        with pytest.raises(jd.ModelError, match=message):
            jd.identify(ARM, data, **keys)
    good = ["torque", True, "lm", 1.0, None, "measured", 10, 1, None]
    for at, word in ((0, "power"), (2, "newton"), (4, "tukey"), (5, "anywhere")):
        with pytest.raises(jd.ModelError, match=f"is '{word}'; it can be"):
            _check(*good[:at], word, *good[at + 1 :])
    mask = jax.tree.map(lambda x: False, ARM)
    for where, flag, message in [
        (lambda m: m.gravity, True, "gravity cannot be identified"),
        (lambda m: m.mass, True, "free together"),
        (lambda m: m.mass, np.ones(2, bool), "shape"),
    ]:
        with pytest.raises(jd.ModelError, match=message):
            selection(ARM, eqx.tree_at(where, mask, flag))
    with pytest.raises(jd.ModelError, match="level is 95"):
        jd.identify(ARM, log(ARM, 40, noise=0.1)).interval(data, 95)
