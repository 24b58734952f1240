"""Quaternions and rigid motions against SciPy, with full accuracy near zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from jaxdenoc.spatial import _quaternion as quaternion

from ..support.dense import skew

cites = pytest.mark.cites
exponential = jax.jit(quaternion.exponential)
logarithm = jax.jit(quaternion.logarithm)

AXIS = np.array([0.48, -0.6, 0.64])
SLIDE = np.array([0.3, -1.2, 0.7])
SMALL = [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 9.99e-3, 0.01, 0.0101, 0.05]
LARGE = [0.3, 1.0, 2.0, 3.0, np.pi - 1e-4, np.pi - 1e-8]


def random_quaternion(seed):
    p = np.random.default_rng(seed).normal(size=4)
    return jnp.asarray(p / np.linalg.norm(p))


def scipy_rotation(p):
    return Rotation.from_quat(np.array(p), scalar_first=True)


def close(found, expected, tol=1e-15):
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=0, atol=tol)


@pytest.mark.parametrize("seed", range(4))
@cites("MATH 1.3: columns of R are the axes of the body")
def test_rotation_and_products(seed):
    a, b = random_quaternion(seed), random_quaternion(seed + 10)
    x = np.random.default_rng(seed).normal(size=3)
    A, B = scipy_rotation(a), scipy_rotation(b)
    close(quaternion.rotation(a), A.as_matrix(), 2e-15)
    close(quaternion.rotation(a * 3), A.as_matrix(), 2e-15)
    close(quaternion.rotate(a, jnp.asarray(x)), A.apply(x), 2e-15)
    ab = np.array(quaternion.multiply(a, b))
    expected = (A * B).as_quat(scalar_first=True)
    close(ab * np.sign(ab @ expected), expected, 2e-15)
    close(quaternion.rotation(quaternion.conjugate(a)), A.inv().as_matrix(), 2e-15)
    close(quaternion.multiply(a, quaternion.conjugate(a)), [1, 0, 0, 0])
    close(jnp.linalg.norm(quaternion.normalized(7 * a)), 1)


@pytest.mark.parametrize("angle", SMALL + LARGE + [4.0, 6.0])
@cites("MATH 1.3: X_J = exp(-crm(H q))", "MATH 1.4: free flyer, q̇ the body twist")
def test_exponential_is_that_of_the_4x4_twist(angle):
    w = angle * AXIS
    turn, slide = exponential(jnp.asarray(w), jnp.asarray(SLIDE))
    pose = expm(np.block([[skew(w), SLIDE[:, None]], [np.zeros((1, 4))]]))
    R = Rotation.from_rotvec(w).as_matrix()
    close(quaternion.rotation(turn), R, 5e-15)
    close(quaternion.rotation(turn), pose[:3, :3], 1e-13)  # SciPy's own digits
    close(slide, pose[:3, 3], 1e-13)
    close(jnp.linalg.norm(turn), 1)
    close(turn[1:], np.sin(angle / 2) * AXIS, 5e-16)


@pytest.mark.parametrize("angle", SMALL)
@cites("MATH 1.4: free flyer, q̇ the body twist")
def test_small_angles_keep_every_digit(angle):
    """Relative to the angle, not to 1: nothing is lost where sin(x) / x is 0 / 0."""
    w = angle * AXIS
    turn, slide = exponential(jnp.asarray(w), jnp.asarray(SLIDE))
    np.testing.assert_allclose(turn[1:], np.sin(angle / 2) * AXIS, rtol=4e-16)
    back, v = logarithm(turn, slide)
    np.testing.assert_allclose(back, w, rtol=2e-15)
    close(v, SLIDE, 5e-14)


@pytest.mark.parametrize("angle", SMALL + LARGE)
@cites("MATH 1.3: X_J = exp(-crm(H q))")
def test_log_undoes_exp_and_exp_undoes_log(angle):
    w, v = jnp.asarray(angle * AXIS), jnp.asarray(SLIDE)
    turn, slide = exponential(w, v)
    back = logarithm(turn, slide)
    close(back[0], w, 5e-15)
    close(back[1], v, 5e-14)
    minus = logarithm(-turn, slide)  # the same rotation
    close(minus[0], w, 5e-15)
    again = exponential(*back)
    close(again[0], turn, 5e-15)
    close(again[1], slide, 5e-14)


@pytest.mark.parametrize("angle", LARGE)
@cites("MATH 1.3: X_J = exp(-crm(H q))")
def test_logarithm_is_the_rotation_vector_of_scipy(angle):
    p = Rotation.from_rotvec(angle * AXIS).as_quat(scalar_first=True)
    w, _ = logarithm(jnp.asarray(p), jnp.asarray(SLIDE))
    close(w, Rotation.from_quat(p, scalar_first=True).as_rotvec(), 5e-15)


def test_half_a_turn_has_a_logarithm():
    w, v = logarithm(jnp.asarray([0.0, *AXIS]), jnp.asarray(SLIDE))
    close(np.abs(w), np.pi * np.abs(AXIS), 5e-15)
    turn, slide = exponential(w, v)
    close(quaternion.rotation(turn), 2 * np.outer(AXIS, AXIS) - np.eye(3), 5e-15)
    close(slide, SLIDE, 5e-15)


def flat_exponential(x):
    return jnp.concatenate(quaternion.exponential(x[:3], x[3:]))


def flat_logarithm(x):
    """Of a pose given by a step from the identity: log after exp."""
    return jnp.concatenate(quaternion.logarithm(quaternion.normalized(x[:4]), x[4:]))


def central(f, x, h):
    x = np.array(x)
    columns = [
        (np.array(f(jnp.asarray(x + h * e))) - np.array(f(jnp.asarray(x - h * e))))
        / (2 * h)
        for e in np.eye(len(x))
    ]
    return np.stack(columns, axis=1)


FLAT = [
    (jax.jit(f), jax.jit(jax.jacfwd(f)), jax.jit(jax.jacrev(f)))
    for f in (flat_exponential, flat_logarithm)
]


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 9.9e-3, 0.0101, 1.0, 3.0])
@cites("MATH 1.4: ∂/∂q along X_J ← exp(-crm(H e_k) s) X_J")
def test_derivatives_at_the_identity_and_away_from_it(angle):
    x = jnp.asarray([*(angle * AXIS), *SLIDE])
    pose = flat_exponential(x)
    for (f, jacfwd, jacrev), at in zip(FLAT, (x, pose), strict=True):
        forward, reverse = jacfwd(at), jacrev(at)
        assert np.isfinite(forward).all() and np.isfinite(reverse).all()
        close(forward, reverse, 1e-13 * max(1, np.abs(forward).max()))
        # differences this wide see over both branches of the series
        expected = central(f, at, 1e-5)
        close(forward, expected, 1e-8)


def test_derivatives_at_the_identity_are_those_of_the_definition():
    """exp: a half of w in the quaternion, v itself; log turns that round."""
    zero = jnp.zeros(6)
    expected = np.zeros((7, 6))
    expected[1:4, :3], expected[4:, 3:] = np.eye(3) / 2, np.eye(3)
    close(jax.jacfwd(flat_exponential)(zero), expected, 0)
    back = jax.jacfwd(lambda x: flat_logarithm(flat_exponential(x)))
    close(back(zero), np.eye(6), 1e-16)
    close(back(jnp.asarray([*(1.3 * AXIS), *SLIDE])), np.eye(6), 1e-14)
    second = jax.jacfwd(jax.jacrev(flat_exponential))(zero)
    assert np.isfinite(second).all()


@pytest.mark.parametrize("angle", [*SMALL, 0.3, 1.0, 3.0])
def test_float32(angle):
    w = (angle * AXIS).astype(np.float32)
    turn, slide = exponential(jnp.asarray(w), jnp.asarray(SLIDE, jnp.float32))
    assert turn.dtype == slide.dtype == jnp.float32
    turn64, slide64 = exponential(jnp.asarray(w, float), jnp.asarray(SLIDE))
    close(turn, turn64, 2e-7)
    close(slide, slide64, 1e-6)
    back, v = logarithm(turn, slide)
    assert back.dtype == v.dtype == jnp.float32
    np.testing.assert_allclose(back, w, rtol=2e-6, atol=1e-30)
    close(v, SLIDE, 2e-6)
    x = jnp.asarray([*w, *SLIDE.astype(np.float32)])
    J, J64 = (
        jax.jacrev(flat_exponential)(x),
        jax.jacrev(flat_exponential)(x.astype(float)),
    )
    close(J, J64, 5e-4)
