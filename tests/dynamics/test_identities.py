"""The identities of MATH 2 to 6: the recursions against dense operators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.dense import Dense, crf, crm
from ..support.oracle import error
from ..support.robots import ALL, FIXED, state

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module", params=ALL)
def case(request, link_by_link, interpreted):
    model = ALL[request.param]()
    q, qd, qdd = state(model)
    return model, q, qd, qdd, Dense(model, q), jax.jit(jd.factorize)(model, q)


@cites("MATH 2: V = φᵀ Hᵀ q̇", "Saha 1999, 16: t = N_l N_d θ̇")
def test_twists_and_jacobians(case):
    model, q, qd, _, dense, _ = case
    V = dense.twists(qd)
    J = dense.phi.T @ dense.H.T
    link = model.n_links - 1
    found = jd.jacobian(model, q, link)
    assert error(found, J[6 * link : 6 * link + 6]) < 1e-12
    assert error(found @ qd, V[link]) < 1e-12


@cites("MATH 3.1: inverse dynamics", "MATH 2: stacked operators")
def test_inverse_dynamics_is_the_dense_form(case):
    """τ = H φ [M φᵀ (Hᵀ q̈ + c) + V ×* M V] with gravity as a base acceleration."""
    model, q, qd, qdd, dense, _ = case
    V = dense.twists(qd)
    c = np.zeros_like(V)
    b = np.zeros_like(V)
    up = np.zeros_like(V)
    R = np.array(jd.forward_kinematics(model, q))[:, :3, :3]
    for i in range(model.n_links):
        vJ = dense.H_blocks[i] @ np.array(qd)[dense.rows(i)]
        c[i] = crm(V[i]) @ vJ
        b[i] = crf(V[i]) @ dense.M_blocks[i] @ V[i]
        up[i, 3:] = -R[i].T @ np.array(model.gravity)
    a = dense.phi.T @ (dense.H.T @ np.array(qdd) + c.ravel()) + up.ravel()
    tau = dense.H @ dense.phi @ (dense.M @ a + b.ravel())
    assert error(jd.inverse_dynamics(model, q, qd, qdd), tau) < 1e-12


@cites("MATH 4: ℳ = H φ M φᵀ Hᵀ", "J&R 4.1a", "Saha 1999, 24")
def test_mass_matrix(case):
    model, q, qd, _, dense, f = case
    M = jax.jit(jd.mass_matrix)(model, q)
    assert error(M, dense.mass_matrix) < 1e-12
    assert error(jnp.asarray(f.U @ jnp.diag(f.D) @ f.U.T), dense.mass_matrix) < 1e-12
    assert error(f.m @ f.m.T, dense.mass_matrix) < 1e-12
    assert np.linalg.eigvalsh(M).min() > 0
    bodies = sum(
        J.T @ Mi @ J
        for J, Mi in zip(
            (dense.phi.T @ dense.H.T).reshape(-1, 6, model.nv),
            dense.M_blocks,
            strict=True,
        )
    )
    assert error(M, bodies) < 1e-12
    np.testing.assert_allclose(
        jd.kinetic_energy(model, q, qd), qd @ M @ qd / 2, rtol=1e-12
    )


@cites("MATH 5.2: U = 1 + HφK, ℳ = U D Uᵀ", "J&R 4.1b-d, 4.8-4.12")
def test_innovations_factorisation_dense(case):
    """Every line of MATH 5.2, for the dense operators that the sweeps stand for."""
    *_, d, _ = case
    one, H, phi, psi, K, G, D, P = d.one, d.H, d.phi, d.psi, d.K, d.G, d.D, d.P
    small = np.eye(len(D))
    U_inv = small - H @ psi @ K
    lines = {
        "4.8a": (P - d.E_psi @ P @ d.E_psi.T, d.M),
        "4.8b": (P - d.E_phi @ P @ d.E_psi.T, d.M),
        "4.1c": (small + H @ phi @ K, H @ phi @ G),
        "4.1c inverse": (U_inv @ (small + H @ phi @ K), small),
        "4.1b": (d.U @ D @ d.U.T, d.mass_matrix),
        "4.1d": (U_inv.T @ np.linalg.inv(D) @ U_inv, np.linalg.inv(d.mass_matrix)),
        "4.10a": (U_inv @ H @ phi, H @ psi),
        "4.10b": (phi @ K @ U_inv, psi @ K),
        "4.10c": (phi @ d.M @ phi.T @ H.T, (one + phi @ K @ H) @ P @ phi.T @ H.T),
        "4.10d": (H @ phi @ d.tau_bar, H @ phi @ d.E_psi),
        "4.11": (d.E_phi - d.E_psi, K @ H),
        "4.12a": (H @ G, small),
        "4.12b": (H @ d.tau_bar, 0 * H),
        "4.12c": (d.tau_bar @ P, P @ d.tau_bar.T),
        "4.12d": (d.tau_bar @ d.tau_bar, d.tau_bar),
    }
    for line, (left, right) in lines.items():
        scale = max(np.abs(right).max(), 1)
        assert np.abs(left - right).max() < 1e-11 * scale, line


@cites("MATH 5.1: the Riccati sweep", "MATH 7.1: D^½ is a Cholesky factor")
def test_the_sweep_gives_these_factors(case):
    """U D^½ = (1 + HφK) L; for one degree of freedom U and D themselves."""
    model, *_, dense, f = case
    assert error(f.m, dense.U @ np.linalg.cholesky(dense.D)) < 1e-12
    if not model.floating_base:
        assert error(f.U, dense.U) < 1e-12
        assert error(f.D, np.diag(dense.D)) < 1e-12
        assert np.array_equal(np.array(f.U), np.triu(f.U))
    np.testing.assert_array_equal(np.diag(f.U), 1.0)


@cites("MATH 5.1: H M H ≤ D, λ_min ≤ D ≤ ℳ_ii", "MATH 6: logdet = Σ log D")
def test_bounds_of_the_pivots(case):
    model, _, _, _, dense, f = case
    M = dense.mass_matrix
    least = np.diag(dense.H @ dense.M @ dense.H.T)
    if not model.floating_base:
        assert (least - 1e-12 <= f.D).all()
    assert (np.linalg.eigvalsh(M)[0] * (1 - 1e-12) <= f.D).all()
    assert (np.diag(M) * (1 + 1e-12) >= f.D).all()
    np.testing.assert_allclose(f.logdet(), np.linalg.slogdet(M)[1], atol=1e-11)


@cites("MATH 6.1: solve", "Saha 1997: three steps", "MATH 6.3: ℳ⁻¹")
def test_solve_mul_inverse(case):
    _, _, qd, _, dense, f = case
    M, b = dense.mass_matrix, np.array(qd)
    assert error(f.solve(qd), np.linalg.solve(M, b)) < 1e-10
    assert error(f.mul(qd), M @ b) < 1e-12
    assert error(f.inverse(), np.linalg.inv(M)) < 1e-10
    assert error(f.mul(f.solve(qd)), b) < 1e-10


@cites("MATH 6.1: FD = solve(τ - ID(q, q̇, 0))", "MATH 6.2: articulated bodies")
def test_forward_dynamics(case):
    model, q, qd, tau, _, f = case
    qdd = jax.jit(jd.forward_dynamics)(model, q, qd, tau)
    assert error(f.solve(tau - jd.bias_forces(model, q, qd)), qdd) < 1e-10
    assert error(jd.inverse_dynamics(model, q, qd, qdd), tau) < 1e-10
    dense = jd.forward_dynamics(model, q, qd, tau, method="dense")
    assert error(dense, qdd) < 1e-10


@cites("MATH 6.3: Λ⁻¹ = J ℳ⁻¹ Jᵀ = Υ", "MATH 6.3: ℳ⁻¹_ii = 1/D + Kᵀ Υ K")
def test_operational_inertia(case):
    model, q, _, _, dense, _ = case
    Minv = np.linalg.inv(dense.mass_matrix)
    for link in {0, model.n_links - 1}:
        J = np.array(jd.jacobian(model, q, link))
        found = jd.operational_inertia_inverse(model, q, link)
        assert error(found, J @ Minv @ J.T) < 1e-10


@cites("MATH 7.1: ν, ξ, ε, κ", "J&R Tables 2 and 3")
def test_rates_and_moments_are_reciprocal(case):
    _, _, qd, tau, dense, f = case
    for normalized in (True, False):
        rates = f.total_rates(qd, normalized=normalized)
        moments = f.working_moments(tau, normalized=normalized)
        back = f.joint_rates(rates, normalized=normalized)
        assert error(back, qd) < 1e-12
        assert error(f.joint_torques(moments, normalized=normalized), tau) < 1e-12
        np.testing.assert_allclose(rates @ moments, qd @ tau, rtol=1e-10)
    nu, xi = f.total_rates(qd), f.total_rates(qd, normalized=False)
    energy = qd @ dense.mass_matrix @ qd / 2
    np.testing.assert_allclose(nu @ nu / 2, energy, rtol=1e-12)
    np.testing.assert_allclose(xi @ (f.D * xi) / 2, energy, rtol=1e-12)
    assert error(nu, np.array(f.m).T @ np.array(qd)) < 1e-12


@cites("MATH 5.3: reverse Gaussian elimination", "Saha 1995, 22a")
@pytest.mark.parametrize("name", FIXED)
def test_reverse_gaussian_elimination(name):
    model = FIXED[name]()
    q, *_ = state(model)
    M, f = jd.mass_matrix(model, q), jd.factorize(model, q)
    U, D = jax.jit(jd.reverse_gaussian_elimination)(M)
    assert error(U, f.U) < 1e-10
    assert error(D, f.D) < 1e-10
    if model.nv > 1:
        L = M
        for E in jd.elementary_matrices(M):
            L = E @ L
        assert error(L, D[:, None] * U.T) < 1e-12
    denoc = jd.denoc(model, q)
    n, one = model.nv, np.eye(6 * model.nv)
    N = np.zeros((6 * n, 6 * n))
    for i, P in enumerate(articulated(denoc, model.parent)):
        N[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = P / float(f.D[i])
    printed = np.eye(n) + denoc.N_d.T @ (np.array(denoc.N_l) - one).T @ N @ denoc.N_d
    assert error(printed, U) < 1e-10


def articulated(denoc, parent):
    """M̂ of every link about its mass centre [MATH 5.3]."""
    P, p, B = [np.array(x) for x in denoc.M], np.array(denoc.p), np.array(denoc.B)
    for i in reversed(range(len(P))):
        psi = P[i] @ p[i]
        plus = P[i] - np.outer(psi, psi) / (p[i] @ psi)
        if parent[i] >= 0:
            b = B[i, parent[i]]
            P[parent[i]] = P[parent[i]] + b.T @ plus @ b
    return P


@cites("MATH 2: B_ij B_jk = B_ik", "Saha 1999, 24-30", "MATH 3.2: τ = Nᵀ w")
@pytest.mark.parametrize("name", ALL)
def test_denoc(name):
    model = ALL[name]()
    q, *_ = state(model)
    d = jd.denoc(model, q)
    n = len(d.p)
    B, related = np.array(d.B), np.array(model.rows.tree.ancestry).T
    for i, j, k in np.random.default_rng(0).integers(0, n, (30, 3)):
        if related[i, j] and related[j, k]:
            assert error(B[i, j] @ B[j, k], B[i, k]) < 1e-13
    np.testing.assert_array_equal(
        B[np.arange(n), np.arange(n)], np.eye(6)[None] + 0 * B[0]
    )
    assert np.array_equal(d.N_l.reshape(n, 6, n, 6).transpose(0, 2, 1, 3), B)
    M = jd.mass_matrix(model, q)
    assert error(d.inertia_elements(), M) < 1e-12
    stacked = jax.scipy.linalg.block_diag(*d.M)
    N = np.array(d.N_l @ d.N_d)
    order = np.argsort(model.rows.velocity)
    assert error((N.T @ stacked @ N)[np.ix_(order, order)], M) < 1e-12
    composite = (d.N_l.T @ stacked @ d.N_l).reshape(n, 6, n, 6)
    assert (
        error(np.array([composite[i, :, i] for i in range(n)]), d.M_composite) < 1e-12
    )

    # Λ: wrenches at the mass centres against external wrenches at the origins
    w = np.random.default_rng(1).normal(size=(model.n_links, 6))
    poses = np.array(jd.forward_kinematics(model, q))
    fext = np.zeros_like(w)
    for i in range(model.n_links):
        R, c = poses[i, :3, :3], np.array(model.com[i])
        fext[i, 3:] = R.T @ w[i, 3:]
        fext[i, :3] = R.T @ w[i, :3] + np.cross(c, fext[i, 3:])
    spread = np.zeros((n, 6))
    spread[list(model.rows.body)] = w
    still = jnp.zeros(model.nv)
    without = jd.inverse_dynamics(model, q, still, still)
    with_ = jd.inverse_dynamics(model, q, still, still, jnp.asarray(fext))
    found = d.generalized_forces(jnp.asarray(spread))
    assert error(found, np.array(without - with_)) < 1e-12


@cites("MATH 3.3: C q̇ = bias, ℳ̇ = C + Cᵀ, the table of three choices")
@pytest.mark.parametrize("form", ["christoffel", "saha"])
@pytest.mark.parametrize("name", ALL)
def test_coriolis_matrices(name, form):
    model = ALL[name]()
    q, qd, _ = state(model)
    C = jd.coriolis_matrix(model, q, qd, form=form)
    bias = jd.bias_forces(model, q, qd) - jd.gravity_forces(model, q)
    scale = max(np.abs(bias).max(), 1.0)
    assert np.abs(C @ qd - bias).max() < 1e-11 * scale

    def along(t):
        return jd.mass_matrix(model, jd.integrate(model, q, t * qd))

    rate = jax.jvp(along, (0.0,), (1.0,))[1]
    assert np.abs(rate - (C + C.T)).max() < 1e-11 * max(np.abs(rate).max(), 1.0)
    if form == "saha":
        elements = jd.denoc(model, q).coriolis_elements(qd)
        assert np.abs(elements - C).max() < 1e-11 * scale
    elif not model.floating_base:  # the Christoffel symbols themselves
        dM = jax.jacfwd(jd.mass_matrix, 1)(model, q)  # [i, j, k] = ∂M_ij/∂q_k
        symbols = (dM + dM.transpose(0, 2, 1) - dM.transpose(2, 1, 0)) / 2
        assert np.abs(symbols @ qd - C).max() < 1e-11 * scale


@cites("MATH 3.1: gravity forces are the gradient of the potential")
@pytest.mark.parametrize("name", ALL)
def test_gravity_is_the_gradient_of_the_potential(name):
    model = ALL[name]()
    q, *_ = state(model)

    def potential(dq):
        return jd.potential_energy(model, jd.integrate(model, q, dq))

    slope = jax.grad(potential)(jnp.zeros(model.nv))
    scale = max(np.abs(slope).max(), 1.0)
    assert np.abs(jd.gravity_forces(model, q) - slope).max() < 1e-12 * scale


def test_frames_have_poses_and_jacobians():
    links = [
        jd.Link("upper", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), inertia=np.eye(3)),
        jd.Link(
            "tool", "upper", "fixed", rotation=turn_z(0.3), translation=(0.5, 0.1, 0)
        ),
    ]
    model = jd.build(links)
    q = jnp.array([0.4])

    def place(q):
        return jd.frame_pose(model, q, "tool")

    pose, rate = jax.jvp(place, (q,), (jnp.ones(1),))
    J = jd.jacobian(model, q, "tool")[:, 0]
    assert error(pose[:3, :3].T @ rate[:3, 3], J[3:]) < 1e-13
    spin = pose[:3, :3].T @ rate[:3, :3]
    assert error(np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), J[:3]) < 1e-13
    Li = jd.operational_inertia_inverse(model, q, "tool")
    assert error(Li, np.outer(J, J) / float(jd.mass_matrix(model, q)[0, 0])) < 1e-12
    assert not jd.jacobian(model, q, "base").any()
    assert not jd.operational_inertia_inverse(model, q, -1).any()
    np.testing.assert_array_equal(jd.frame_pose(model, q, "base"), np.eye(4))
    with pytest.raises(jd.ModelError, match=r"no link or frame 'hand'.*upper"):
        jd.jacobian(model, q, "hand")
    with pytest.raises(jd.ModelError, match="no link 7"):
        jd.jacobian(model, q, 7)


def turn_z(a):
    c, s = np.cos(a), np.sin(a)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
