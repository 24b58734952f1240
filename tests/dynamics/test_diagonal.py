"""Diagonalised dynamics: MATH 7.1 to 7.5, line by line, and J&R's algorithms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.dense import crm
from ..support.jain import Moving
from ..support.oracle import error
from ..support.robots import ALL, R, state

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted")
ROBOTS = {
    "revolute_chain": lambda: jd.robots.random_chain(jax.random.key(2), 5, kinds=R),
    **ALL,
}


def everything(model, q, qd, tau, fext):
    """What the library says of a state, once for all tests of a robot."""
    f = jd.factorize(model, q)
    nu, xi = f.total_rates(qd), f.total_rates(qd, normalized=False)
    free = jd.bias_forces(model, q, qd) - jd.gravity_forces(model, q)
    qdd = jd.forward_dynamics(model, q, qd, tau, fext)

    @jax.jit
    def along(t):
        f = jd.factorize(model, jd.integrate(model, q, t * qd))
        rates = qd + t * qdd
        xi = f.total_rates(rates, normalized=False)
        return f.m, jnp.sqrt(f.D) * xi, xi

    _, (m_dot, nu_dot, xi_dot) = jax.jvp(along, (0.0,), (1.0,))
    return {
        "nu": nu,
        "xi": xi,
        "eps": f.working_moments(tau),
        "kappa": f.working_moments(tau, normalized=False),
        "bias": free,
        "m": f.m,
        "D": f.D,
        "l": f.l,
        "m_dot": m_dot,
        "nu_dot": nu_dot,
        "xi_dot": xi_dot,
        "C_nu": jd.diagonal_coriolis(model, q, nu),
        "C_xi": jd.diagonal_coriolis(model, q, xi, normalized=False),
        "A": jd.diagonal_coriolis_matrix(model, q, nu),
        "acceleration": jd.diagonal_acceleration(model, q, nu, tau, fext),
        "acceleration_xi": jd.diagonal_acceleration(
            model, q, xi, tau, fext, normalized=False
        ),
        "poses": jd.forward_kinematics(model, q),
    }


@pytest.fixture(scope="module", params=ROBOTS)
def case(request, link_by_link, interpreted):
    model = ROBOTS[request.param]()
    q, qd, tau = state(model)
    fext = jax.random.normal(jax.random.key(5), (model.n_links, 6))
    found = jax.tree.map(np.array, everything(model, q, qd, tau, fext))
    return model, np.array(tau), np.array(fext), Moving(model, q, qd), found


def apart(a, b, scale=1.0):
    """The largest difference, relative to b's largest entry or to `scale`."""
    return np.abs(a - b).max() / max(np.abs(b).max(), scale)


@cites("MATH 7.1: ν = mᵀ q̇, ε = ℓ τ, ℳ = m mᵀ, q̇ = ℓᵀ ν", "J&R Lemma 3.1")
def test_variables(case):
    _, tau, _, d, found = case
    assert apart(found["m"], d.m) < 1e-12
    assert apart(found["l"] @ d.m, np.eye(len(tau))) < 1e-11
    assert apart(found["l"].T @ found["nu"], d.qd) < 1e-11
    assert apart(found["nu"], d.nu) < 1e-12
    assert apart(found["eps"], d.l @ tau) < 1e-11
    np.testing.assert_allclose(found["nu"] @ found["eps"], d.qd @ tau, rtol=1e-10)


@cites("MATH 7.1: ξ = Uᵀ q̇ = G* V, κ = U⁻¹ τ, V = ψᵀ Hᵀ ξ", "J&R Tables 2 and 3")
def test_plain_variables(case):
    model, tau, _, d, found = case
    if model.floating_base:  # its rows are those of the Cholesky factor's unit part
        L = d.Dh / np.diag(d.Dh)
        assert apart(found["xi"], L.T @ d.xi) < 1e-12
        assert apart(L @ found["kappa"], np.linalg.solve(d.U, tau)) < 1e-11
        return
    assert apart(found["xi"], d.xi) < 1e-12
    assert apart(d.G.T @ d.V, d.xi) < 1e-12
    assert apart(d.psi.T @ d.H.T @ d.xi, d.V) < 1e-12
    assert apart(found["kappa"], np.linalg.solve(d.U, tau)) < 1e-11


@cites("MATH 7.4: C_ν = ℓ C(q, q̇) - ṁᵀ q̇", "J&R Identity 7.1")
def test_coriolis_term_is_its_definition(case):
    *_, d, found = case
    definition = d.l @ found["bias"] - found["m_dot"].T @ d.qd
    assert apart(found["C_nu"], definition, 1e-3) < 1e-11


@cites("MATH 7.4: νᵀ C_ν = 0, d/dt ½νᵀν = νᵀ ε", "MATH 7.4: C_ν = A ν, Aᵀ = -A")
def test_coriolis_term_does_no_work(case):
    _, tau, fext, d, found = case
    nu, C, A = found["nu"], found["C_nu"], found["A"]
    assert abs(nu @ C) < 1e-13 * max(np.linalg.norm(nu) * np.linalg.norm(C), 1e-3)
    np.testing.assert_array_equal(A, -A.T)
    assert apart(A @ nu, C, 1e-3) < 1e-11
    F = d.weight(found["poses"], fext)
    power = d.qd @ tau + d.V_blocks.ravel() @ F.ravel()
    np.testing.assert_allclose(nu @ found["acceleration"], power, rtol=1e-10)


@cites("MATH 7.b: D ξ̇ = u + Hᵀ Ṗ τ̄ᵀ V⁺, with gravity and external wrenches")
def test_accelerations_are_the_rates_along_the_motion(case):
    *_, found = case
    assert apart(found["acceleration"], found["nu_dot"]) < 1e-11
    assert apart(found["acceleration_xi"], found["xi_dot"]) < 1e-11


@cites("MATH 7.5: ½ ξᵀ Ḋ ξ = ξᵀ C_ξ", "J&R 7.8, Lemma 7.2")
def test_plain_coriolis_term(case):
    """½ ξᵀDξ is the kinetic energy, so ξᵀ C_ξ is what the change of D does."""
    *_, found = case
    m_dot, D, xi = found["m_dot"], found["D"], found["xi"]
    rate = 2 * np.diag(m_dot) * np.sqrt(D)  # Ḋ = d (m_ii²)
    scale = max(np.abs(xi * found["C_xi"]).max(), 1e-3)
    assert abs(xi @ found["C_xi"] - xi @ (rate * xi) / 2) < 1e-11 * scale
    plain = found["C_xi"] / np.sqrt(D) - rate / D * found["nu"] / 2
    assert apart(plain, found["C_nu"], 1e-3) < 1e-10


@cites("J&R Algorithm 7.1", "J&R Identity 7.1", "MATH 7.4: skew form")
def test_algorithm_7_1(case):
    model, *_, d, found = case
    if model.floating_base:  # the printed algorithm is for one degree of freedom
        return
    assert apart(found["C_nu"], d.algorithm_7_1(), 1e-3) < 1e-11
    A = d.skew_form()
    assert apart(A, -A.T, 1e-3) < 1e-12
    assert apart(A @ d.nu, found["C_nu"], 1e-3) < 1e-11
    assert apart(found["A"], A, 1e-3) < 1e-11


@cites("J&R Lemma 7.3", "J&R 7.10", "J&R Algorithm 8.1")
def test_algorithm_8_1(case):
    model, tau, fext, d, found = case
    if model.floating_base:  # the printed algorithm is for one degree of freedom
        return
    Hpsi, V, VM = d.H @ d.psi, d.V, d.Vt @ d.M
    first = Hpsi @ (d.Gamma @ d.H.T @ d.xi - (d.W @ d.P + VM) @ V)
    arriving = d.arriving.ravel()
    second = Hpsi @ (d.Pd @ d.H.T @ d.xi - d.W @ d.P_plus @ arriving - VM @ V)
    assert apart(found["C_xi"], first, 1e-3) < 1e-11
    assert apart(found["C_xi"], second, 1e-3) < 1e-11
    F = d.weight(found["poses"], fext)
    assert apart(found["acceleration_xi"], d.algorithm_8_1(tau, F)) < 1e-11


@cites("MATH 7.5: C_ξ = Hψβ + Hψ̃Pc - HṖτ̄ᵀV⁺, any joint")
def test_general_coriolis_term(case):
    *_, d, found = case
    beta = -d.Vt @ d.M @ d.V
    c = np.concatenate([crm(V) @ v for V, v in zip(d.V_blocks, d.vJ, strict=True)])
    tilde = d.psi - d.one
    C_xi = d.H @ d.psi @ beta + d.H @ tilde @ d.P @ c
    C_xi = C_xi - d.H @ d.Pd @ d.tau_bar.T @ d.arriving.ravel()
    # L⁻¹ C_ξ - Φᵀ ν with L̇ = L Φ [MATH 7.5, normalised]
    L, Dd = d.Dh, d.H @ d.Pd @ d.H.T
    inner = np.linalg.solve(L, np.linalg.solve(L, Dd).T)
    Phi = np.tril(inner, -1) + np.diag(np.diag(inner)) / 2
    C_nu = np.linalg.solve(L, C_xi) - Phi.T @ d.nu
    assert apart(found["C_nu"], C_nu, 1e-3) < 1e-11


@cites("MATH 14: J1, J2, J6, J9, J16, the printed forms")
def test_printed_forms_are_wrong():
    """Where the errata quote a residual, the printed form misses by that much."""
    model = ROBOTS["mixed_chain"]()
    q, qd, tau = state(model)
    d, tau = Moving(model, q, qd), np.array(tau)
    assert error(d.m @ d.qd, d.nu) > 0.1  # J1: ν = m θ̇
    assert error(d.l @ d.nu, d.qd) > 0.1  # J2: θ̇ = ℓ ν
    eps = d.l @ tau
    back = np.linalg.solve(d.Dh, eps) + (d.U - np.eye(6)) @ eps  # J6: z⁺ = z + G ε
    assert error(back, tau) > 0.1
    right = d.algorithm_8_1(tau, np.zeros((d.n, 6)))
    assert error(right * np.diag(d.D), right) > 0.1  # J16: no D⁻¹
    psi = np.concatenate(
        [f @ d.block(d.tau_bar, i) for i, f in enumerate(d.phi_blocks)]
    )
    Gamma = d.block(d.Gamma, 5)
    assert error(psi[30:] @ Gamma @ psi[30:], psi[30:] @ Gamma @ psi[30:].T) > 0.1  # J9
