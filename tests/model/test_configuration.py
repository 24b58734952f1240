"""Configurations, and steps between them, against Pinocchio."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pinocchio as pin
import pytest

import jaxdenoc as jd

from ..support.oracle import Oracle
from ..support.robots import state

cites = pytest.mark.cites


@pytest.fixture(scope="module", params=[False, True], ids=["fixed", "free"])
def model(request):
    return jd.robots.random_tree(jr.key(3), 4, request.param)


@pytest.fixture(scope="module")
def free():
    return jd.robots.random_tree(jr.key(3), 4, True)


def step(model, seed, size=1.0):
    return size * jr.normal(jr.key(seed), (model.nv,))


def same_place(model, a, b, tol=1e-14):
    """q and q with its quaternion turned round are one configuration."""
    a, b = np.array(a), np.array(b)
    if model.floating_base:
        a[3:7] *= np.sign(a[3:7] @ b[3:7])
    np.testing.assert_allclose(a, b, rtol=0, atol=tol)


def test_neutral(model):
    q = jd.neutral(model)
    assert q.shape == (model.nq,)
    expected = np.zeros(model.nq)
    if model.floating_base:
        expected[3] = 1
    np.testing.assert_array_equal(q, expected)
    poses = jd.forward_kinematics(model, q)
    np.testing.assert_allclose(
        poses[0, :3, :3], model.placement.rotation[0], atol=1e-15
    )
    small = jax.tree.map(lambda x: x.astype("float32"), model)
    assert jd.neutral(small).dtype == jnp.float32


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 1.0])
@cites("MATH 1.4: free flyer, q̇ the body twist")
def test_difference_undoes_integrate_and_the_other_way(model, size):
    q, _, _ = state(model, 1)
    dq = step(model, 2, size)
    there = jd.integrate(model, q, dq)
    # a step is the difference of numbers of order 1, so that is its last digit
    np.testing.assert_allclose(jd.difference(model, q, there), dq, rtol=0, atol=2e-14)
    other, _, _ = state(model, 5)
    between = jd.difference(model, q, other)
    same_place(model, jd.integrate(model, q, between), other, 5e-14)
    np.testing.assert_allclose(jd.integrate(model, q, 0 * dq), q, atol=1e-15)


@cites("MATH 1.4: free flyer, q̇ the body twist", "MATH 1.3: exp(-crm(H q))")
def test_integrate_and_difference_are_those_of_pinocchio(free):
    oracle = Oracle(free)
    for seed in range(5):
        q, _, _ = state(free, seed)
        dq = step(free, seed + 20, 0.8)
        there = jd.integrate(free, q, dq)
        theirs = pin.integrate(oracle.pin, oracle.configuration(q), oracle.velocity(dq))
        same_place(free, there, theirs[oracle.q], 2e-14)
        other, _, _ = state(free, seed + 10)
        theirs = pin.difference(
            oracle.pin, oracle.configuration(q), oracle.configuration(other)
        )
        ours = jd.difference(free, q, other)
        np.testing.assert_allclose(ours, oracle.vector(theirs), rtol=0, atol=2e-13)


def test_the_sign_of_a_quaternion_does_not_matter(free):
    q, _, _ = state(free, 1)
    minus = q.at[3:7].multiply(-1.0)
    other, _, _ = state(free, 2)
    expected = jd.difference(free, q, other)
    for a, b in (minus, other), (q, other.at[3:7].multiply(-1.0)):
        np.testing.assert_allclose(jd.difference(free, a, b), expected, atol=1e-14)
    np.testing.assert_allclose(jd.difference(free, q, minus), 0, atol=1e-15)


@cites("MATH 1.4: free flyer, q̇ the body twist")
def test_configuration_rate_is_the_derivative_of_integrate(model):
    q, qd, _ = state(model, 3)

    def along(s):
        return jd.integrate(model, q, s * qd)

    start = jnp.array(0.0)
    here, rate = jax.jvp(along, (start,), (jnp.ones_like(start),))
    np.testing.assert_allclose(here, q, atol=1e-15)
    np.testing.assert_allclose(jd.configuration_rate(model, q, qd), rate, atol=1e-14)


@cites("MATH 2: V = φᵀ Hᵀ q̇")
def test_the_rate_moves_the_base_with_its_body_twist(free):
    """Ṙ = R ω̃ and ȯ = R v, from forward kinematics of the moving q."""
    q, qd, _ = state(free, 4)
    rate = jd.configuration_rate(free, q, qd)
    pose, moved = jax.jvp(lambda q: jd.forward_kinematics(free, q)[0], (q,), (rate,))
    R = np.array(pose[:3, :3])
    x, y, z = np.array(qd[:3])
    spin = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    np.testing.assert_allclose(moved[:3, :3], R @ spin, atol=1e-14)
    np.testing.assert_allclose(moved[:3, 3], R @ np.array(qd[3:6]), atol=1e-14)


def test_derivatives_are_finite_and_right_at_the_identity(free):
    q = jd.neutral(free)
    zero = jnp.zeros(free.nv)
    for jacobian in (jax.jacfwd, jax.jacrev):

        @jax.jit
        def derivatives(q, dq):
            return (
                jacobian(lambda dq: jd.integrate(free, q, dq))(dq),
                jacobian(lambda x: jd.difference(free, q, x))(q),
                jacobian(lambda x: jd.difference(free, x, x))(q),
            )

        forth, back, same = derivatives(q, zero)
        assert np.isfinite(forth).all()
        assert np.isfinite(back).all()
        np.testing.assert_allclose(back @ forth, np.eye(free.nv), atol=1e-15)
        np.testing.assert_allclose(same, 0, atol=1e-15)


def limited(floating_base=False):
    kinds = ["prismatic", "helical", "continuous", "revolute", "prismatic"]
    lower = [-0.2, 0.5, -np.inf, -0.1, -np.inf]
    upper = [0.3, 0.6, np.inf, -0.05, np.inf]
    links, parent = [], None
    if floating_base:
        links.append(jd.Link("root", None, "free", mass=1.0, inertia=np.eye(3)))
        parent = "root"
    for i, (kind, low, high) in enumerate(zip(kinds, lower, upper, strict=True)):
        links.append(
            jd.Link(
                f"a{i}",
                parent,
                kind,
                mass=1.0,
                inertia=np.eye(3),
                lower=low,
                upper=high,
            )
        )
        parent = f"a{i}"
    return jd.build(links), np.array(lower), np.array(upper)


@pytest.mark.parametrize("floating_base", [False, True])
def test_random_states_keep_to_the_limits_and_fill_them(floating_base):
    model, lower, upper = limited(floating_base)
    keys = jr.split(jr.key(0), 400)
    q, qd = jax.vmap(lambda k: jd.random_state(model, k))(keys)
    assert q.shape == (400, model.nq)
    assert qd.shape == (400, model.nv)
    joints = np.array(q[:, 7:] if floating_base else q)
    reach = np.array([1.0, np.pi, np.pi, np.pi, 1.0])
    lower, upper = np.maximum(lower, -reach), np.minimum(upper, reach)
    assert (joints >= lower).all() and (joints <= upper).all()
    room = (upper - lower) * 0.05
    assert (joints.min(axis=0) < lower + room).all()
    assert (joints.max(axis=0) > upper - room).all()
    assert abs(float(qd.mean())) < 0.1
    assert abs(float(qd.std()) - 1) < 0.1
    if floating_base:
        np.testing.assert_allclose(jnp.linalg.norm(q[:, 3:7], axis=1), 1, rtol=1e-14)
        assert (np.abs(q[:, :3]) <= 1).all()
        assert (np.abs(np.mean(q[:, 3:7], axis=0)) < 0.1).all()  # no side preferred


def test_random_states_come_from_their_key(model):
    q, qd = jd.random_state(model, jr.key(1))
    again, qd_again = jd.random_state(model, jr.key(1))
    np.testing.assert_array_equal(q, again)
    np.testing.assert_array_equal(qd, qd_again)
    other, qd_other = jd.random_state(model, jr.key(2))
    assert (np.array(q) != np.array(other)).all()
    assert (np.array(qd) != np.array(qd_other)).all()
    old_style, _ = jd.random_state(model, jr.PRNGKey(1))
    np.testing.assert_array_equal(q, old_style)
    small = jax.tree.map(lambda x: x.astype("float32"), model)
    assert {x.dtype for x in jd.random_state(small, jr.key(1))} == {
        jnp.dtype("float32")
    }
