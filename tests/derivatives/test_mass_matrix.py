"""∂ℳ/∂q, ℳ̇, ṁ and θ̇ᵀℳ_qθ̇ in closed form: MATH 7.3."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.jain import Moving
from ..support.robots import ALL, state, tree

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module", params=ALL)
def case(request, link_by_link, interpreted):
    model = ALL[request.param]()
    q, qd, _ = state(model)

    @jax.jit
    def slopes(dq):
        return jax.jacfwd(lambda d: jd.mass_matrix(model, jd.integrate(model, q, d)))(
            dq
        )

    dM = np.array(slopes(jnp.zeros(model.nv))).transpose(2, 0, 1)
    return model, q, qd, dM, Moving(model, q, qd)


def close(a, b, tolerance=1e-11):
    return np.abs(a - b).max() < tolerance * max(np.abs(b).max(), 1e-3)


@cites("J&R Identity 6.3", "MATH 7.3: ∂ℳ_{hi,lo}/∂q_i entry by entry")
def test_sensitivity(case):
    model, q, _, dM, _ = case
    found = np.array(jd.mass_matrix_sensitivity(model, q))
    assert close(found, dM)
    np.testing.assert_array_equal(found, found.transpose(0, 2, 1))


@cites("MATH 3.3: ℳ̇ = C + Cᵀ")
def test_rate(case):
    model, q, qd, dM, _ = case
    assert close(jd.mass_matrix_rate(model, q, qd), np.einsum("iab,i->ab", dM, qd))


@cites("J&R 6.16a-c", "MATH 7.3: q̇ᵀ ℳ_q q̇ = 2 H Ṽᵀ φ M V, three ways")
def test_quadratic_form(case):
    model, q, qd, dM, d = case
    want = np.einsum("a,iab,b->i", qd, dM, qd)
    assert close(jd.mass_matrix_form(model, q, qd), want)
    if not model.floating_base:
        MV = d.M @ d.V
        assert close(2 * d.H @ d.Vt @ d.phi @ MV, want)
        assert close(2 * d.H @ d.phi @ (d.W @ d.phi + d.Vt) @ MV, want)
        inner = d.W @ (d.one + d.phi @ d.K @ d.H) @ d.P + d.Vt @ d.M
        assert close(2 * d.H @ d.phi @ inner @ d.V, want)
        C = jd.bias_forces(model, q, qd) - jd.gravity_forces(model, q)
        rate = np.einsum("iab,i,b->a", dM, qd, qd)
        assert close(rate - want / 2, np.array(C))  # C = ℳ̇q̇ - ½ q̇ᵀℳ_q q̇


@cites("J&R Identity 6.1, (6.11)", "J&R (6.12): ṁ ν", "MATH 7.3")
def test_factor_rate(case):
    model, q, qd, _, d = case

    @jax.jit
    def factor(t):
        return jd.factorize(model, jd.integrate(model, q, t * qd)).m

    _, want = jax.jvp(factor, (0.0,), (1.0,))
    found = np.array(jd.mass_factor_rate(model, q, qd))
    assert close(found, want)
    product = jd.mass_factor_rate_product(model, q, qd)
    assert close(np.array(product), found @ d.nu)
    if not model.floating_base:
        tilde = d.phi - d.one
        inner = d.W @ tilde @ d.P + (d.one + d.tau_bar) @ d.Gamma / 2
        printed = d.H @ d.phi @ inner @ d.H.T @ np.linalg.inv(d.Dh)
        assert close(printed, want)
        inner = d.E_psi @ d.Gamma - d.Gamma @ d.E_psi.T + d.W @ d.P - d.P @ d.W_m
        inner = d.W @ d.phi @ d.K @ d.H @ d.P + inner / 2
        assert close(d.H @ d.phi @ inner @ d.V, found @ d.nu)


@cites("MATH 14: J12, J19, the printed forms for sliding joints")
def test_printed_forms_are_wrong():
    """diag(h̃, h̃) is not enough for a sliding joint, and M stands inside of (6.16c)."""
    model = tree(4, (-1, 0, 1, 2, 3))
    q, qd, _ = state(model)
    d = Moving(model, q, qd)
    dM = np.array(jd.mass_matrix_sensitivity(model, q))
    right = np.einsum("a,iab,b->i", qd, dM, qd)
    printed = d.W @ (d.one + d.phi @ d.K @ d.H) @ d.P + d.Vt
    assert not close(2 * d.H @ d.phi @ printed @ d.M @ d.V, right, 0.05)
    i = model.joint_kinds.index("prismatic")
    h = np.array(model.axis[i])
    turn = np.cross(np.eye(3), h).T
    Hf = 0 * d.one
    block = np.kron(np.eye(2), turn)
    Hf[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = block
    half = d.H @ d.phi @ Hf @ d.phi @ d.M @ d.phi.T @ d.H.T
    assert not close(half + half.T, dM[i], 0.05)
