"""Every operator on named scalars against the dense matrix it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jaxdenoc.recursion import Mobility
from jaxdenoc.spatial import (
    ArticulatedInertia,
    Mat3,
    RigidInertia,
    Screw,
    Shift,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    both,
    outer,
    outer_sym,
    rotate,
    second_moment,
    skew,
    skew_times,
    with_transpose,
)

from ..support import dense

cites = pytest.mark.cites
N = 7  # rows: links side by side


def rows(seed, *shape):
    return np.random.default_rng(seed).normal(size=(N, *shape))


def vec(a):
    return Vec3.of(jnp.asarray(a))


def twist(a):
    return Twist.of(jnp.asarray(a))


def wrench(a):
    return Wrench.of(jnp.asarray(a))


def symmetric(seed, size=3):
    a = rows(seed, size, size)
    return a + a.transpose(0, 2, 1)


def articulated(P):
    """The three blocks of symmetric 6×6 matrices."""
    P = jnp.asarray(P)
    return ArticulatedInertia(
        Sym3.of(P[:, :3, :3]), Mat3.of(P[:, :3, 3:]), Sym3.of(P[:, 3:, 3:])
    )


def mobility(Y):
    """From angular first, as the papers have it, to the order in which it is kept."""
    order = [3, 4, 5, 0, 1, 2]
    return Mobility(articulated(Y[:, order][:, :, order]))


def shift(seed):
    """φ, and its definition [[1, l̃], [0, 1]] in base axes."""
    l = rows(seed, 3)
    phi = np.array([np.block([[np.eye(3), S], [np.zeros((3, 3)), np.eye(3)]])
                    for S in map(dense.skew, l)])  # fmt: skip
    return Shift(vec(l)), phi


def rigid(seed):
    rng = np.random.default_rng(seed)
    m, c, I_C = rng.uniform(0.5, 2, N), rng.normal(size=(N, 3)), symmetric(seed + 1)
    M = np.array([dense.spatial_inertia(*x) for x in zip(m, c, I_C, strict=True)])
    return RigidInertia.of(jnp.asarray(m), vec(c), Sym3.of(jnp.asarray(I_C))), M


def blocks(M: RigidInertia):
    """[[J, h̃], [h̃ᵀ, m 1]] of the numbers it keeps."""
    m, h, J = (np.array(x) for x in (M.m, M.h.array, M.J.array))
    return np.array(
        [
            np.block([[J[k], dense.skew(h[k])], [dense.skew(h[k]).T, m[k] * np.eye(3)]])
            for k in range(len(m))
        ]
    )


def times(A, x):
    return np.einsum("nij,nj->ni", A, x)


def skews(a):
    return np.array([dense.skew(x) for x in a])


def same(found, expected, tol=1e-13):
    found = np.array(getattr(found, "array", found))
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    scale = max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tol * scale)


# vectors and 3×3 matrices


@cites("MATH 1.2: x̃ is the matrix of x×")
def test_vec3():
    a, b, s = rows(0, 3), rows(1, 3), rows(2)
    A, B = vec(a), vec(b)
    same(A, a)
    same(A + B, a + b)
    same(A - B, a - b)
    same(-A, -a)
    same(A * jnp.asarray(s), a * s[:, None])
    same(A @ B, np.sum(a * b, axis=1))
    same(A.cross(B), np.cross(a, b))
    same(skew(A), skews(a))
    same(skew(A) @ B, times(skews(a), b))
    same(Vec3.zeros(A.x), np.zeros((N, 3)))


@cites("MATH 1.2: x̃ is the matrix of x×")
def test_mat3():
    a, b, v, s = rows(0, 3, 3), rows(1, 3, 3), rows(2, 3), rows(3)
    A, B = Mat3.of(jnp.asarray(a)), Mat3.of(jnp.asarray(b))
    same(A, a)
    same(A.T, a.transpose(0, 2, 1))
    same(A + B, a + b)
    same(A - B, a - b)
    same(A * jnp.asarray(s), a * s[:, None, None])
    same(A @ B, a @ b)
    same(A @ vec(v), times(a, v))
    same(skew_times(vec(v), A), skews(v) @ a)
    same(jnp.stack([r.array for r in A.rows], axis=1), a)


@cites("MATH 1.5: I_C is symmetric, and turns as R I_C Rᵀ")
def test_sym3():
    a, b, v, s = symmetric(0), symmetric(1), rows(2, 3), rows(3)
    A, B = Sym3.of(jnp.asarray(a)), Sym3.of(jnp.asarray(b))
    same(A, a)
    same(A.mat, a)
    same(A + B, a + b)
    same(A - B, a - b)
    same(A * jnp.asarray(s), a * s[:, None, None])
    same(A @ vec(v), times(a, v))
    R = rows(4, 3, 3)  # any matrix will do
    same(rotate(Mat3.of(jnp.asarray(R)), A), R @ a @ R.transpose(0, 2, 1))


@cites("MATH 1.5: m c̃ c̃ᵀ", "MATH 5.1: G D Gᵀ")
def test_products_of_two_vectors():
    a, b, s = rows(0, 3), rows(1, 3), rows(2)
    A, B = vec(a), vec(b)
    ab = a[:, :, None] * b[:, None, :]
    same(outer(A, B), ab)
    same(both(A, B), ab + ab.transpose(0, 2, 1))
    same(with_transpose(outer(A, B)), ab + ab.transpose(0, 2, 1))
    parallel = A * jnp.asarray(s)
    same(outer_sym(A, parallel), s[:, None, None] * a[:, :, None] * a[:, None, :])
    product = skews(a) @ skews(b).transpose(0, 2, 1)
    same(second_moment(A, B), (product + product.transpose(0, 2, 1)) / 2)
    c, m = b, np.abs(s)
    expected = m[:, None, None] * skews(c) @ skews(c).transpose(0, 2, 1)
    same(second_moment(vec(c) * jnp.asarray(m), vec(c)), expected)


# twists and wrenches


@cites("MATH 1.2: crm(V), crf(V) = -crm(V)ᵀ", "MATH 1.1: power = Vᵀ f")
def test_twists_and_wrenches():
    x, y, f, g, s = rows(0, 6), rows(1, 6), rows(2, 6), rows(3, 6), rows(4)
    X, Y, F, K, S = twist(x), twist(y), wrench(f), wrench(g), jnp.asarray(s)
    crm = np.array([dense.crm(v) for v in x])
    crf = np.array([dense.crf(v) for v in x])
    same(X, x)
    same(X + Y, x + y)
    same(X - Y, x - y)
    same(X * S, x * s[:, None])
    same(X.cross(Y), times(crm, y))
    same(X.cross_wrench(F), times(crf, f))
    same(F, f)
    same(F + K, f + g)
    same(F - K, f - g)
    same(F * S, f * s[:, None])
    same(F @ X, np.sum(f * x, axis=1))
    same(Twist.zeros(S), np.zeros((N, 6)))
    same(Wrench.zeros(S), np.zeros((N, 6)))


@cites("MATH 1.4: H = [turn h; slide h]")
def test_a_screw_stands_for_its_twist():
    h, turn, slide, s, f = rows(0, 3), rows(1), rows(2), rows(3), rows(4, 6)
    H = Screw(vec(h), jnp.asarray(turn), jnp.asarray(slide))
    dense_H = np.concatenate([h * turn[:, None], h * slide[:, None]], axis=1)
    same(H.twist, dense_H)
    same(H.w, dense_H[:, :3])
    same(H.v, dense_H[:, 3:])
    same(H * jnp.asarray(s), dense_H * s[:, None])
    same(wrench(f) @ H, np.sum(f * dense_H, axis=1))
    P, (M, dense_M) = symmetric(5, 6), rigid(6)
    same(articulated(P) @ H, times(P, dense_H))
    same(M @ H, times(dense_M, dense_H))


@cites("MATH 1.3: phi carries a wrench inward, phi.T a twist outward")
def test_shift():
    v, f = rows(0, 6), rows(1, 6)
    phi, dense_phi = shift(2)
    same(phi.wrench(wrench(f)), times(dense_phi, f))
    same(phi.twist(twist(v)), times(dense_phi.transpose(0, 2, 1), v))
    pose = [dense.motion_transform(np.eye(3), l).T for l in np.array(phi.l.array)]
    same(phi.wrench(wrench(f)), times(np.array(pose), f))
    power = np.array(wrench(f) @ phi.twist(twist(v)))
    same(phi.wrench(wrench(f)) @ twist(v), power)


# inertias


@cites("MATH 1.5: M", "MATH 4: φ Mc φᵀ")
def test_rigid_inertia():
    v = rows(0, 6)
    (A, a), (B, b), (phi, dense_phi) = rigid(1), rigid(3), shift(5)
    same(blocks(A), a)
    same(blocks(A + B), a + b)
    same(A @ twist(v), times(a, v))
    same(blocks(A.shifted(phi)), dense_phi @ a @ dense_phi.transpose(0, 2, 1))
    same(blocks(RigidInertia.zeros(A.m)), np.zeros((N, 6, 6)))


@cites("MATH 5.1: P = M + Σ φ P⁺ φᵀ, P⁺ = P - G D Gᵀ")
def test_articulated_inertia():
    p, v, g, s = symmetric(0, 6), rows(1, 6), rows(2, 6), rows(3)
    P, (M, m), (phi, dense_phi) = articulated(p), rigid(4), shift(6)
    same(P, p)
    same(P + M, p + m)
    same(P @ twist(v), times(p, v))
    same(P.shifted(phi), dense_phi @ p @ dense_phi.transpose(0, 2, 1))
    G, b = wrench(g), wrench(g) * jnp.asarray(s)
    expected = p - s[:, None, None] * g[:, :, None] * g[:, None, :]
    same(P.minus_outer(G, b), expected)
    h = rows(7, 6)
    gh = g[:, :, None] * h[:, None, :]
    same(P.minus_both(G, wrench(h)), p - gh - gh.transpose(0, 2, 1))
    same((P * jnp.asarray(s)).plus(P), p * (s[:, None, None] + 1))


@cites("MATH 7.a: W + Wᵀ, W = crf(v_J) P⁺")
def test_inertia_carried_along():
    p, v = symmetric(0, 6), rows(1, 6)
    W = np.array([dense.crf(x) for x in v]) @ p
    same(articulated(p).carried_by(twist(v)), W + W.transpose(0, 2, 1))


def test_zeros_and_quotients():
    (M, _), g, s = rigid(4), rows(2, 6), rows(3)
    same(wrench(g) / jnp.asarray(s), g / s[:, None])
    same(ArticulatedInertia.zeros(M.m), np.zeros((N, 6, 6)))


@cites("MATH 6.3: Υ = H D⁻¹ Hᵀ + ψᵀ Υ_p ψ")
def test_mobility():
    y, f, a, b = symmetric(0, 6), rows(1, 6), rows(2, 6), rows(3, 6)
    Y, (phi, dense_phi) = mobility(y), shift(4)
    same(Y, y)
    same(Y @ wrench(f), times(y, f))
    same(Y.shifted(phi), dense_phi.transpose(0, 2, 1) @ y @ dense_phi)
    ab = a[:, :, None] * b[:, None, :]
    same(Y.minus_both(twist(a), twist(b)), y - ab - ab.transpose(0, 2, 1))
    same(Mobility.zeros(jnp.zeros(N)), np.zeros((N, 6, 6)))


def test_one_link_alone_and_a_batch_of_rows_are_the_same_code():
    (M, _), (phi, _), v = rigid(0), shift(2), twist(rows(3, 6))

    def f(M, phi, v):
        return (M.shifted(phi) @ phi.twist(v)).array

    def first(x):
        return jax.tree.map(lambda a: a[0], x)

    together = f(M, phi, v)
    same(jax.vmap(f)(M, phi, v), np.array(together))
    same(f(first(M), first(phi), first(v)), np.array(together[0]))


# identities, for anything that hypothesis comes up with

numbers = st.floats(-1e3, 1e3, allow_subnormal=False)
six = arrays(np.float64, (1, 6), elements=numbers)
three = arrays(np.float64, (1, 3), elements=numbers)
few = settings(max_examples=40)


def nothing(found, *sizes):
    """Zero, against the size of the products that had to cancel."""
    found = np.array(getattr(found, "array", found))
    scale = np.prod([max(np.abs(s).max(), 1) for s in sizes])
    np.testing.assert_allclose(found, 0, atol=1e-13 * scale)


@cites("MATH 1.2: X×(Y×Z) + Y×(Z×X) + Z×(X×Y) = 0, crm(X) Y = -crm(Y) X")
@few
@given(six, six, six)
def test_the_cross_product_is_a_lie_bracket(x, y, z):
    X, Y, Z = twist(x), twist(y), twist(z)
    nothing(X.cross(Y) + Y.cross(X), x, y)
    jacobi = X.cross(Y.cross(Z)) + Y.cross(Z.cross(X)) + Z.cross(X.cross(Y))
    nothing(jacobi, x, y, z)


@cites("MATH 1.2: crf(V) = -crm(V)ᵀ", "MATH 1.1: power = Vᵀ f")
@few
@given(six, six, six, three)
def test_power_does_not_depend_on_axes_or_origin(x, y, f, l):
    X, Y, F, phi = twist(x), twist(y), wrench(f), Shift(vec(l))
    nothing(F @ X.cross(Y) + X.cross_wrench(F) @ Y, x, y, f)
    nothing(phi.wrench(F) @ X - F @ phi.twist(X), x, f, l)


@cites("MATH 1.2: crm(A X) = A crm(X) A⁻¹ for any motion transform A (J&R 6.9)")
@few
@given(six, six, three)
def test_a_shift_carries_brackets_to_brackets(x, y, l):
    X, Y, phi = twist(x), twist(y), Shift(vec(l))
    there = phi.twist(X).cross(phi.twist(Y))
    nothing(there - phi.twist(X.cross(Y)), x, y, l, l)


@cites("MATH 2: B_ij B_jk = B_ik, B_ij⁻¹ = B_ji")
@few
@given(six, three, three)
def test_shifts_follow_one_another(v, l, k):
    V, a, b = twist(v), Shift(vec(l)), Shift(vec(k))
    nothing(b.twist(a.twist(V)) - Shift(vec(l + k)).twist(V), v, [*l, *k])
    nothing(Shift(vec(-l)).twist(a.twist(V)) - V, v, l)
