"""Parameters from torques: exact without noise, honest with it, prior where unseen."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.identify import factorized, parameters_of

from .test_base_parameters import robot

ARM = jd.robots.planar_arm()


@cache
def torques_of():
    return jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))


def other(model, seed=0, by=0.3):
    """A robot of the same geometry, its numbers wrong by so much."""
    rng = np.random.default_rng(seed)
    pi = np.asarray(jd.inertial_parameters(model))
    model = jd.with_inertial_parameters(
        model, pi * rng.uniform(1 - by, 1 + by, pi.shape)
    )
    joints = [jnp.asarray(rng.uniform(0.1, 1, model.nv)) for _ in range(3)]
    return eqx.tree_at(lambda m: (m.armature, m.damping, m.friction), model, joints)


def log(model, k, seed=0, noise=0.0):
    """Torques of the model for a random motion."""
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(3, k, model.nv))
    tau = np.asarray(torques_of()(model, *map(jnp.asarray, state)))
    return jd.Measurements(
        np.arange(k), *state, tau + noise * rng.normal(size=tau.shape)
    )


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_base_parameters_without_noise(name):
    """To 1e-8 relative, each of them; and the rest stays as the prior has it."""
    prior = robot(name)
    truth = other(prior)
    data = log(truth, 200)
    fit = jd.least_squares(prior, data)
    all_of = parameters_of(prior)
    want = fit.base.project(all_of.of(truth))
    np.testing.assert_allclose(fit.base_values, want, rtol=1e-8, atol=1e-13)
    change = fit.values - all_of.of(prior)
    unseen = np.isin(all_of.names, fit.base.invisible)
    assert unseen.sum() == (11 if name == "panda" else 9)
    assert not change[unseen].any() and np.mean(change[~unseen] != 0) > 0.9
    np.testing.assert_allclose(fit.predict(data), data.tau, atol=1e-9)
    tau = torques_of()(fit.model, *map(jnp.asarray, (data.q, data.qd, data.qdd)))
    np.testing.assert_allclose(tau, data.tau, atol=1e-9)
    assert fit.residual.max() < 1e-11 and fit.noise.max() < 1e-9


def test_the_null_space_keeps_the_prior():
    """The change is the smallest that has these base parameters, in units W."""
    truth = other(ARM)
    all_of = parameters_of(ARM)
    W = np.random.default_rng(0).uniform(0.5, 2, len(all_of))
    fit = jd.least_squares(ARM, log(truth, 60), prior_scale=W)
    change = (fit.values - all_of.of(ARM)) / W
    N = fit.base.nullspace / W[:, None]
    assert np.abs(N.T @ change).max() < 1e-12 * np.abs(change).max() * np.abs(N).max()
    np.testing.assert_allclose(fit.base.project(fit.values), fit.base_values)
    same = jd.least_squares(ARM, log(ARM, 60))
    np.testing.assert_allclose(same.values, all_of.of(ARM), atol=1e-12)
    sources = dict(zip(all_of.names, fit.sources, strict=True))
    assert sources["link1.m"] == "prior" and sources["link1.m·cx"] == "shared"
    assert sources["link3.m·cx"] == "data" and sources["joint2.friction"] == "data"
    sigma = dict(zip(all_of.names, fit.sigma, strict=True))
    assert sigma["link1.m"] == 0 and sigma["link1.m·cx"] > 0


def test_parameters_that_are_left_out_keep_their_values():
    truth = other(ARM)
    joints = truth.armature, truth.damping, truth.friction
    prior = eqx.tree_at(lambda m: (m.armature, m.damping, m.friction), ARM, joints)
    fit = jd.least_squares(prior, log(truth, 60), joints=("damping",))
    want = fit.base.project(parameters_of(prior, ("damping",)).of(truth))
    np.testing.assert_allclose(fit.base_values, want, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(fit.model.friction, truth.friction)
    np.testing.assert_array_equal(fit.model.armature, truth.armature)


def test_intervals_and_noise_over_many_experiments():
    """95 % intervals hold the truth about as often; σ of every joint is found.

    Joints differ in noise a hundredfold, so that weights matter.
    """
    truth, noise = other(ARM), np.array([1.0, 0.1, 0.01])
    clean = log(truth, 60)
    rng = np.random.default_rng(7)
    found, errors, sigmas = [], [], []
    for _ in range(100):
        tau = clean.tau + noise * rng.normal(size=clean.tau.shape)
        data = eqx.tree_at(lambda d: d.tau, clean, tau)
        fit = jd.least_squares(ARM, data)
        want = fit.base.project(parameters_of(ARM).of(truth))
        z = (fit.base_values - want) / fit.base_sigma
        found.append(np.abs(z) < 2.0)  # Student's t, some 54 degrees of freedom
        errors.append(fit.base_values - want)
        sigmas.append(fit.noise)
    coverage = np.mean(found)
    assert 0.90 < coverage < 0.99
    assert np.mean(found, axis=0).min() > 0.85
    np.testing.assert_allclose(np.mean(sigmas, axis=0), noise, rtol=0.05)
    # the covariance is that of the estimates, not of one entry at a time only
    white = np.linalg.solve(np.linalg.cholesky(fit.base_covariance), np.array(errors).T)
    assert 0.5 < np.mean(white**2) < 1.6


def test_every_parameters_covariance_follows_the_base():
    data = log(other(ARM), 60, noise=0.1)
    fit = jd.least_squares(ARM, data)
    C = fit.base.combination
    np.testing.assert_allclose(C @ fit.covariance @ C.T, fit.base_covariance, rtol=1e-8,
                               atol=1e-14)  # fmt: skip
    given = jd.least_squares(ARM, data, noise=fit.noise)
    np.testing.assert_allclose(given.base_values, fit.base_values, rtol=1e-8)
    np.testing.assert_allclose(given.base_sigma, fit.base_sigma, rtol=1e-8)
    double = jd.least_squares(ARM, data, noise=2 * fit.noise)
    np.testing.assert_allclose(double.base_sigma, 2 * fit.base_sigma, rtol=1e-8)
    by_hand = np.sqrt(np.mean(fit.residuals(data) ** 2, axis=0))
    np.testing.assert_allclose(fit.residual, by_hand, rtol=1e-9)
    free = np.sqrt(np.sum((by_hand / fit.noise) ** 2) * 60)
    assert abs(free**2 - (180 - fit.base.rank)) < 1e-6  # p_j add up to the rank


def test_missing_torques_do_not_count():
    truth = other(ARM)
    data = log(truth, 80, noise=0.1)
    rng = np.random.default_rng(0)
    weight = np.asarray(rng.random(data.tau.shape) < 0.8, float)
    weight[:, 1] = 0
    spoilt = np.where(weight > 0, data.tau, 1e6)
    state = data.t, data.q, data.qd, data.qdd
    fit = jd.least_squares(ARM, jd.Measurements(*state, spoilt, weight))
    same = jd.least_squares(ARM, jd.Measurements(*state, 0 * spoilt + weight * data.tau,
                                                 weight))  # fmt: skip
    np.testing.assert_allclose(fit.values, same.values, rtol=1e-9, atol=1e-12)
    assert np.isnan(fit.noise[1]) and np.isnan(fit.residuals(data[:1])[0]).sum() == 0
    np.testing.assert_array_equal(fit.counts, (weight > 0).sum(axis=0))
    # link 1 moves joint 1 only, which has its torques: still right to the noise
    want = fit.base.project(parameters_of(ARM).of(truth))
    assert (np.abs(fit.base_values - want) < 5 * fit.base_sigma).all()


def test_weights_count_as_repetition():
    """A weight of √2 is a sample seen twice."""
    data = log(other(ARM), 60, noise=0.1)
    weight = np.where(np.arange(60) < 20, np.sqrt(2), 1)[:, None] * np.ones(3)
    heavy = eqx.tree_at(lambda d: d.weight, data, weight)
    sigma = np.full(3, 0.1)
    one = jd.least_squares(ARM, heavy, noise=sigma)
    two = jd.least_squares(ARM, [data, data[:20]], noise=sigma)
    np.testing.assert_allclose(one.base_values, two.base_values, rtol=1e-9)
    np.testing.assert_allclose(one.base_sigma, two.base_sigma, rtol=1e-9)


def test_least_squares_may_leave_what_is_physical():
    """With noise on a short log some links have no body, and it is told which."""
    broken = np.zeros(3, int)
    for seed in range(5):
        fit = jd.least_squares(ARM, log(ARM, 12, seed, noise=2.0), joints=False)
        pi = np.asarray(jd.inertial_parameters(fit.model))
        some = [bool(jd.physically_consistent(row)) for row in pi]
        np.testing.assert_array_equal(fit.consistent, some)
        broken += ~fit.consistent
    assert broken.any()


def test_single_precision_models_lose_nothing():
    """The work is in double precision whatever JAX is set to."""
    truth = other(ARM)
    data = log(truth, 60)
    single = jax.tree.map(lambda x: x.astype("float32"), ARM)
    double = jax.tree.map(lambda x: x.astype("float64"), single)
    with jax.enable_x64(False):
        fit = jd.least_squares(single, data)
    want = jd.least_squares(double, data)
    np.testing.assert_allclose(fit.base_values, want.base_values, rtol=1e-12)
    assert fit.model.mass.dtype == np.float32


def test_refused():
    data = log(ARM, 12)
    none = eqx.tree_at(lambda d: d.weight, data, 0 * data.weight)
    for args, keys, message in [
        ((none,), {}, "all weights are zero"),
        (([],), {}, "no measurements"),
        ((data,), {"noise": [0.0, 1, 1]}, "positive standard deviation"),
        ((data,), {"prior_scale": np.ones(5)}, "needs 39 positive numbers"),
        ((data,), {"prior_scale": -np.ones(39)}, "needs 39 positive numbers"),
        ((data,), {"joints": ("mass",)}, "'mass'; it can have"),
    ]:
        with pytest.raises(jd.ModelError, match=message):
            jd.least_squares(ARM, *args, **keys)
    with pytest.raises(jd.ModelError, match=r"3 positions.*nq = 6"):
        factorized(jd.robots.stanford_arm(), data)
