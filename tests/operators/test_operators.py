"""The operators as objects, against dense matrices from their definitions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import jaxdenoc as jd

from ..support.dense import crf, crm
from ..support.jain import Moving
from ..support.oracle import error
from ..support.robots import ALL, state

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted")
NAMES = ["E_phi", "phi", "H", "M", "P", "D", "G", "K", "tau_bar", "E_psi", "psi", "U"]
NAMES = [*NAMES, "mass_matrix"]
RATES = ["E_phi", "phi", "P", "P_plus", "D", "G", "tau_bar", "E_psi"]


@pytest.fixture(scope="module", params=ALL)
def case(request, link_by_link, interpreted):
    model = ALL[request.param]()
    q, qd, _ = state(model)
    d = Moving(model, q, qd)
    ops = jd.spatial_operators(model, q)
    dense = eqx.filter_jit(lambda ops: {s: getattr(ops, s).dense() for s in NAMES})
    return model, q, qd, d, ops, jax.tree.map(np.array, dense(ops))


@cites("MATH 1.6: E_φ, φ, H, M, P, D, G, K, τ̄, E_ψ, ψ", "J&R §4")
def test_operators_are_their_definitions(case):
    *_, d, ops, dense = case
    for name in NAMES:
        want = getattr(d, name)
        assert np.abs(dense[name] - want).max() < 1e-12 * max(np.abs(want).max(), 1)
    rng = np.random.default_rng(0)
    for name in ("E_phi", "phi", "H", "G", "psi", "K", "tau_bar"):
        A = getattr(ops, name)
        y, x = rng.normal(size=A.shape[0]), rng.normal(size=A.shape[1])
        np.testing.assert_allclose(A @ x, dense[name] @ x, atol=1e-12)
        np.testing.assert_allclose(A.T @ y, dense[name].T @ y, atol=1e-12)
        assert A.T.shape == A.shape[::-1]


@cites("J&R 4.1, 4.8-4.12 as products of operators", "MATH 5.2")
def test_identities_as_written(case):
    """The lines of MATH 5.2 with the objects themselves, multiplied with a vector."""
    model, _, _, _, o, _ = case
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=6 * model.n_links), rng.normal(size=model.nv)

    @eqx.filter_jit
    def lines(o, x, y):
        H, phi, psi, K, G, P = o.H, o.phi, o.psi, o.K, o.G, o.P
        return {
            "4.8a": ((P - o.E_psi @ P @ o.E_psi.T) @ x, o.M @ x),
            "4.8b": ((P - o.E_phi @ P @ o.E_psi.T) @ x, o.M @ x),
            "4.1c": (o.U @ y, H @ phi @ G @ y),
            "4.1c inverse": (o.U_inverse @ o.U @ y, y),
            "4.1b": (o.U @ o.D @ o.U.T @ y, o.mass_matrix @ y),
            "4.1d": (o.U_inverse.T @ o.D.inverse @ o.U_inverse @ o.mass_matrix @ y, y),
            "4.10a": (o.U_inverse @ H @ phi @ x, H @ psi @ x),
            "4.10b": (phi @ K @ o.U_inverse @ y, psi @ K @ y),
            "4.10c": (
                phi @ o.M @ phi.T @ H.T @ y,
                (1 + phi @ K @ H) @ P @ phi.T @ H.T @ y,
            ),
            "4.10d": (H @ phi @ o.tau_bar @ x, H @ phi @ o.E_psi @ x),
            "4.11": ((o.E_phi - o.E_psi) @ x, K @ H @ x),
            "4.12": (H @ G @ y, y),
            "tilde": (o.phi_tilde @ x, phi @ x - x),
            "tilde psi": ((o.psi_tilde + 1) @ x, psi @ x),
        }

    for line, (left, right) in lines(o, x, y).items():
        scale = max(np.abs(right).max(), 1.0)
        assert np.abs(left - right).max() < 1e-11 * scale, line


@cites("MATH 6.3: Ω = φᵀHᵀℳ⁻¹Hφ, Ω_ii = Υ_i, ℳ⁻¹ from Ω, the tree's Ω_ab")
def test_omega(case):
    model, _, _, d, ops, _ = case
    M_inv = np.linalg.inv(d.mass_matrix)
    Omega = d.phi.T @ d.H.T @ M_inv @ d.H @ d.phi
    assert error(ops.Omega.dense(), Omega) < 1e-10
    Y = np.array(ops.Upsilon.blocks)
    for i in range(d.n):
        assert error(Y[i], d.block(Omega, i)) < 1e-10
    D_inv = np.linalg.inv(d.D)
    mixed = D_inv @ d.H @ d.psi @ d.K
    assert error(D_inv + d.K.T @ Omega @ d.K - mixed - mixed.T, M_inv) < 1e-10
    up = np.array(model.tree.ancestry)
    for a in range(d.n):
        for b in range(d.n):
            common = np.flatnonzero(up[:, a] & up[:, b])
            want = 0 * Y[0]
            if len(common):
                c = common[-1]
                want = d.block(d.psi, c, a).T @ Y[c] @ d.block(d.psi, c, b)
            assert (
                np.abs(d.block(Omega, a, b) - want).max() < 1e-10 * np.abs(Omega).max()
            )


@cites("MATH 6.3: Ω = Υ + ψ̃ᵀΥ + Υψ̃ on a serial chain", "J&R 4")
def test_omega_of_a_chain():
    model = ALL["mixed_chain"]()
    ops = jd.spatial_operators(model, state(model)[0])
    Y, tilde = ops.Upsilon, ops.psi_tilde
    both = (Y + tilde.T @ Y + Y @ tilde).dense()
    assert error(both, ops.Omega.dense()) < 1e-11


@cites("J&R Table 4", "MATH 7.2, local rates", "MATH 7.a", "J&R Alg 6.1, Γ")
def test_local_rates(case):
    model, q, qd, d, *_ = case
    rates = jd.spatial_operator_rates(model, q, qd)

    @jax.jit
    def along(t):
        ops = jd.spatial_operators(model, jd.integrate(model, q, t * qd))
        return {s: getattr(ops, s).dense() for s in RATES}

    _, want = jax.jvp(along, (0.0,), (1.0,))
    dense = eqx.filter_jit(lambda r: {s: getattr(r, s).dense() for s in RATES})(rates)
    for name in RATES:
        scale = max(np.abs(want[name]).max(), 1.0)
        assert np.abs(dense[name] - want[name]).max() < 1e-11 * scale, name
    assert not rates.H.dense().any() and not rates.M.dense().any()
    scale = max(np.abs(d.Pd).max(), 1.0)
    assert np.abs(dense["P"] - d.Pd).max() < 1e-11 * scale
    assert np.abs(d.algorithm_6_1() - d.Pd).max() < 1e-11 * scale
    assert np.abs(rates.Gamma.dense() - d.Gamma).max() < 1e-11 * scale


@cites("J&R 6.7: dφ = Ṽ*φ - φṼ*", "J&R 6.8: Hφ̃Ẇφ = H(Ṽ*φ - φṼ*)", "MATH 7.2")
def test_rate_of_phi(case):
    model, q, qd, d, *_ = case
    rate = np.array(jd.spatial_operator_rates(model, q, qd).phi.dense())
    swept = d.Vt @ d.phi - d.phi @ d.Vt
    assert np.abs(rate - swept).max() < 1e-11
    tilde = d.phi - d.one
    assert np.abs(d.H @ tilde @ d.W @ d.phi - d.H @ swept).max() < 1e-11


@cites("MATH 7.2: inertial rates add Ω̃(·) - (·)Ω̃; Ġ = dG + Ω̃G, Ḣ = -HΩ̃")
@pytest.mark.parametrize("name", ["mixed_chain", "free_tree"])
def test_inertial_rates(name):
    model = ALL[name]()
    q, qd, _ = state(model)
    rates = jd.spatial_operator_rates(model, q, qd, axes="base")

    def turning(q):
        R = jd.forward_kinematics(model, q)[:, :3, :3]
        return jax.scipy.linalg.block_diag(*(x for r in R for x in (r, r)))

    @jax.jit
    def along(t):
        at = jd.integrate(model, q, t * qd)
        ops, T = jd.spatial_operators(model, at), turning(at)
        return {
            "phi": T @ ops.phi.dense() @ T.T,
            "P": T @ ops.P.dense() @ T.T,
            "M": T @ ops.M.dense() @ T.T,
            "E_psi": T @ ops.E_psi.dense() @ T.T,
            "tau_bar": T @ ops.tau_bar.dense() @ T.T,
            "G": T @ ops.G.dense(),
            "H": ops.H.dense() @ T.T,
            "D": ops.D.dense(),
        }

    _, want = jax.jvp(along, (0.0,), (1.0,))
    T = turning(q)
    for s, value in want.items():
        left = T.T if s not in ("H", "D") else jnp.eye(value.shape[0])
        right = T if s not in ("G", "D") else jnp.eye(value.shape[1])
        found = getattr(rates, s).dense()
        assert np.abs(found - left @ value @ right).max() < 1e-11, s


@cites("J&R Identity 6.3, operator form", "MATH 7.3, 6.14; J20: φ̃ and not φ")
def test_sensitivity_as_operators(case):
    model, q, _, d, ops, _ = case
    dM = jd.mass_matrix_sensitivity(model, q)
    tilde = d.phi - d.one
    for i in {0, model.nv - 1}:
        found = ops.mass_matrix_sensitivity(i).dense()
        scale = max(np.abs(dM).max(), 1e-3)
        assert np.abs(found - dM[i]).max() < 1e-11 * scale
        link = ops.H.link[i]
        Hf = 0 * d.one
        Hf[6 * link : 6 * link + 6, 6 * link : 6 * link + 6] = crf(
            np.array(ops.H.vectors[i])
        )
        half = d.H @ tilde @ Hf @ d.phi @ d.M @ d.phi.T @ d.H.T
        assert np.abs(half + half.T - dM[i]).max() < 1e-11 * scale


@cites("MATH 1.2: crf(V) = -crm(V)ᵀ")
def test_products_with_matrices_and_errors():
    model = ALL["tree"]()
    ops = jd.spatial_operators(model, state(model)[0])
    X = np.random.default_rng(0).normal(size=(ops.phi.shape[1], 3))
    np.testing.assert_allclose(ops.phi @ X, ops.phi.dense() @ X, atol=1e-12)
    twice = 2 * ops.phi - ops.phi
    np.testing.assert_allclose(twice.dense(), ops.phi.dense(), atol=1e-12)
    np.testing.assert_allclose(twice.T.dense(), ops.phi.dense().T, atol=1e-12)
    with pytest.raises(ValueError, match="stacked vector of 30"):
        ops.phi @ jnp.zeros(5)
    with pytest.raises(ValueError, match="do not fit"):
        ops.H @ ops.H
    with pytest.raises(ValueError, match="do not fit"):
        ops.H + 1
    with pytest.raises((ValueError, TypeCheckError), match="axes"):
        jd.spatial_operator_rates(model, jnp.zeros(5), jnp.zeros(5), axes="world")
    V = np.random.default_rng(1).normal(size=6)
    np.testing.assert_array_equal(crf(V), -crm(V).T)


def test_operators_batch_and_differentiate():
    model = ALL["mixed_chain"]()
    q, qd, _ = state(model)

    def twists(q):
        ops = jd.spatial_operators(model, q)
        return ops.phi.T @ (ops.H.T @ qd)

    many = jax.jit(jax.vmap(twists))(jnp.stack([q, q + 0.1]))
    np.testing.assert_allclose(many[1], twists(q + 0.1), atol=1e-12)
    forward, reverse = jax.jacfwd(twists)(q), jax.jacrev(twists)(q)
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
