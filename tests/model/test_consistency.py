"""Pseudo-inertia, log-Cholesky, and the nearest body there can be: MATH 11."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxdenoc as jd

from ..support.oracle import error

cites = pytest.mark.cites
COUNT = 50
SPHERE = jnp.array([2.0, 0, 0, 0, 0.3, 0, 0.3, 0, 0, 0.3])  # at its centre
ROD = jnp.array([1.0, 0, 0, 0, 0, 0, 0.3, 0, 0, 0.3])  # along x: no body is thinner

pseudo_inertias = jax.jit(jax.vmap(jd.pseudo_inertia))
log_cholesky = jax.jit(jax.vmap(jd.log_cholesky))
from_log_cholesky = jax.jit(jax.vmap(jd.from_log_cholesky))
consistent = jax.jit(jax.vmap(jd.physically_consistent, (0, None)))
nearest = jax.jit(
    jax.vmap(lambda pi, floor: jd.nearest_consistent(pi, floor=floor), (0, None))
)


def clouds(points=6, seed=0):
    """π of random point masses, and Σ m x xᵀ of their x = (r, 1), by definition."""
    rng = np.random.default_rng(seed)
    m = rng.uniform(0.1, 1, (COUNT, points))
    r = rng.normal(size=(COUNT, points, 3)) + rng.normal(size=(COUNT, 1, 3))
    x = np.concatenate([r, np.ones((COUNT, points, 1))], axis=2)
    J = np.einsum("kp,kpa,kpb->kab", m, x, x)
    square = np.einsum("kpa,kpa->kp", r, r)
    I = np.einsum("kp,kp,ab->kab", m, square, np.eye(3)) - J[:, :3, :3]
    six = [I[:, a, b] for a, b in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
    return jnp.asarray(np.c_[J[:, 3, 3], J[:, :3, 3], np.stack(six, 1)]), J


def anything(seed=1, scale=1.0):
    """Ten numbers each, which hardly ever belong to a body."""
    return jnp.asarray(scale * np.random.default_rng(seed).normal(size=(COUNT, 10)))


@cites("MATH 11: Σ = ½ tr(I) 1 - I, 𝒥 = [[Σ, m c], [m cᵀ, m]], I = tr(Σ) 1 - Σ")
def test_pseudo_inertia_is_the_second_moment():
    pi, J = clouds()
    assert error(pseudo_inertias(pi), J) < 1e-13
    assert error(jax.vmap(jd.from_pseudo_inertia)(jnp.asarray(J)), pi) < 1e-13
    theirs = pin.PseudoInertia.FromDynamicParameters(np.array(pi[0])).toMatrix()
    assert error(jd.pseudo_inertia(pi[0]), theirs) < 1e-14
    lopsided = jnp.asarray(J[0]) + jnp.triu(jnp.ones((4, 4)), 1)
    even = jnp.asarray(J[0]) + (jnp.ones((4, 4)) - jnp.eye(4)) / 2
    assert error(jd.from_pseudo_inertia(lopsided), jd.from_pseudo_inertia(even)) < 1e-14


@cites("MATH 11: θ in Pinocchio's order", "MATH 15: log-Cholesky round trip to 1e-12")
def test_log_cholesky_round_trip():
    pi, _ = clouds()
    theta = log_cholesky(pi)
    assert error(from_log_cholesky(theta), pi) < 1e-12
    theta = anything(2, 0.5)
    assert error(log_cholesky(from_log_cholesky(theta)), theta) < 1e-12
    for one, found in zip(theta, from_log_cholesky(theta), strict=True):
        theirs = pin.LogCholeskyParameters(np.array(one)).toDynamicParameters()
        assert error(found, theirs) < 1e-13
    assert not jnp.isfinite(log_cholesky(-pi)).all(axis=1).any()


@cites("MATH 11: ∂π/∂θ")
def test_log_cholesky_slopes():
    """Against Pinocchio's, in both modes, and there and back is the identity."""
    theta = anything(3, 0.5)[:10]
    there = jax.jit(jax.vmap(jax.jacfwd(jd.from_log_cholesky)))(theta)
    reverse = jax.jit(jax.vmap(jax.jacrev(jd.from_log_cholesky)))(theta)
    back = jax.jit(jax.vmap(jax.jacrev(jd.log_cholesky)))(from_log_cholesky(theta))
    assert error(reverse, there) < 1e-13
    assert error(back @ there, np.broadcast_to(np.eye(10), (10, 10, 10))) < 1e-11
    for one, found in zip(theta, there, strict=True):
        theirs = pin.LogCholeskyParameters(np.array(one)).calculateJacobian()
        assert error(found, theirs) < 1e-12


@cites("MATH 11: 𝒥 ≻ 0", "MATH 15: 𝒥 ≻ 0 for random θ")
def test_physically_consistent():
    pi, _ = clouds()
    assert consistent(pi, 0).all()
    assert consistent(from_log_cholesky(anything(4)), 0).all()
    other = anything()
    lowest = np.linalg.eigvalsh(pseudo_inertias(other))[:, 0]
    assert not consistent(other, 0).any() and (lowest < 0).all()
    for tolerance in 0.5, 1.0, 2.0:
        np.testing.assert_array_equal(consistent(other, tolerance), lowest > -tolerance)
    assert jd.physically_consistent(SPHERE)
    assert not jd.physically_consistent(ROD)
    assert jd.physically_consistent(ROD, 1e-9)
    assert not jd.physically_consistent(SPHERE.at[4].set(0.7))  # one moment too large
    assert not jd.physically_consistent(SPHERE.at[1].set(2.0))  # and no room for this c
    assert not jd.physically_consistent(-SPHERE)
    # 10 g and 2 mm, 10 cm off: in single precision too
    small = jd.from_log_cholesky([-2.3, -6.2, -6.2, -6.2, 0, 0, 0, 0.1, 0, 0])
    assert jd.physically_consistent(small.astype("float32"))


@cites("MATH 11: 𝒥 ≻ 0, nearest in the Frobenius norm")
def test_nearest_is_a_projection():
    """Onto a convex set: what is left is at an obtuse angle to all that is in it."""
    for floor in 0.0, 0.1:
        pi = anything()
        found, distance = nearest(pi, floor)
        J, J_found = pseudo_inertias(pi), pseudo_inertias(found)
        assert np.linalg.eigvalsh(J_found)[:, 0].min() > floor - 1e-13
        size = np.linalg.norm(J_found - J, axis=(1, 2))
        assert distance.min() > 0
        assert error(distance, size) < 1e-13
        inside = clouds()[1] + floor * np.eye(4)
        away = np.einsum("kab,lkab->lk", J - J_found, inside[:, None] - J_found[None])
        assert away.max() < 1e-12
        again, none = nearest(found, floor - 1e-12)
        assert not none.any()
        np.testing.assert_array_equal(again, found)
    inside, _ = clouds()
    found, distance = nearest(inside, 0.0)
    assert not distance.any()
    np.testing.assert_array_equal(found, inside)


@cites("MATH 11: nearest, its slopes [Daleckii and Krein]")
def test_slopes_of_the_nearest():
    """Differences, in both modes, and where eigenvalues are equal."""
    slopes = {
        mode: jax.jit(jax.vmap(mode(lambda pi: jd.nearest_consistent(pi, floor=0.05))))
        for mode in (jax.jacfwd, jax.jacrev)
    }
    hollow = jnp.array([1.0, 0, 0, 0, -0.4, 0, -0.4, 0, 0, -0.4])  # Σ = -0.2 1
    cases = jnp.concatenate([anything()[:8], jnp.stack([SPHERE, hollow, -SPHERE])])
    forward, reverse = slopes[jax.jacfwd](cases), slopes[jax.jacrev](cases)
    step = 1e-6 * jnp.eye(10)
    for k, pi in enumerate(cases):
        ahead, behind = (nearest(pi[None, :] + s * step, 0.05) for s in (1, -1))
        for j in range(2):  # the parameters, and the distance
            want = ((ahead[j] - behind[j]) / 2e-6).T
            np.testing.assert_allclose(forward[j][k], want, rtol=0, atol=1e-7)
            np.testing.assert_allclose(reverse[j][k], want, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(forward[0][8], np.eye(10))
    assert not forward[1][8].any()


@cites("MATH 11: nearest, on the edge")
def test_slopes_on_the_edge_are_finite():
    """A rod, a point and nothing at all have eigenvalues that are just the floor."""
    point = jnp.zeros(10).at[0].set(1.0)
    edge = jnp.stack([ROD, point, 0 * point])
    for mode in jax.jacfwd, jax.jacrev:
        for slope in jax.jit(jax.vmap(mode(jd.nearest_consistent)))(edge):
            assert jnp.isfinite(slope).all()
    of_floor = jax.grad(lambda f: jd.nearest_consistent(-SPHERE, floor=f)[1])(0.3)
    assert error(of_floor, (2.3 + 3 * 0.45) / np.hypot(2.3, np.sqrt(3) * 0.45)) < 1e-12


def test_single_precision():
    pi, J = (jnp.asarray(x, "float32") for x in clouds())
    theta = log_cholesky(pi)
    found, distance = nearest(anything().astype("float32"), 0.0)
    for x in pseudo_inertias(pi), theta, from_log_cholesky(theta), found, distance:
        assert x.dtype == jnp.float32
    assert error(pseudo_inertias(pi), J) < 1e-6
    assert error(from_log_cholesky(theta), pi) < 1e-5
    precise, far = nearest(anything(), 0.0)
    assert error(found, precise) < 1e-5 and error(distance, far) < 1e-5


def test_lists_of_numbers_will_do():
    pi = [2, 0, 0, 0, 1, 0, 1, 0, 0, 1]
    assert error(jd.pseudo_inertia(pi), np.diag([0.5, 0.5, 0.5, 2])) < 1e-15
    assert jd.physically_consistent(pi)


def test_refused():
    many = jnp.ones((3, 10))
    for function in (
        jd.pseudo_inertia,
        jd.log_cholesky,
        jd.from_log_cholesky,
        jd.physically_consistent,
        jd.nearest_consistent,
    ):
        with pytest.raises(
            jd.ModelError, match=r"one link needs \(10,\).*use jax.vmap"
        ):
            function(many)
    with pytest.raises(jd.ModelError, match=r"J has shape \(3, 10\).*needs \(4, 4\)"):
        jd.from_pseudo_inertia(many)
