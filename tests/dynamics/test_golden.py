"""The reference numbers of tests/golden, at the tolerances of MATH 15."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.oracle import error

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted")


def golden(name):
    return json.loads((Path(__file__).parents[1] / "golden" / name).read_text())


def arrays(data, *names):
    return [jnp.array(data[s], float) for s in names]


@cites("MATH 15: golden Stanford torques, 1e-10", "Saha 1999, Table 3")
def test_stanford_arm():
    data, model = golden("stanford_arm.json"), jd.robots.stanford_arm()
    q, qd, qdd, tau = arrays(data, "q", "qd", "qdd", "tau")
    found = jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0))(model, q, qd, qdd)
    np.testing.assert_allclose(found, tau, rtol=0, atol=1e-10)
    back = jax.vmap(jd.forward_dynamics, (None, 0, 0, 0))(model, q, qd, tau)
    np.testing.assert_allclose(back, qdd, rtol=0, atol=1e-10)
    middle = int(np.argmin(np.abs(np.array(data["t"]) - 5)))
    f = jd.factorize(model, q[middle])
    at = data["at_t5"]
    assert error(jd.mass_matrix(model, q[middle]), np.array(at["M"])) < 1e-12
    assert error(f.U, np.array(at["U"])) < 1e-12
    assert error(f.D, np.array(at["D"])) < 1e-12


@cites("MATH 14, S9: the other reading of the mass centres")
def test_stanford_arm_with_the_other_sign_of_r():
    data, model = golden("stanford_arm.json"), jd.robots.stanford_arm()
    frames = data["body_frame_model"]
    assert len(frames) == model.n_links
    rows = [
        jd.DHLink(
            row["type"],
            row["a"],
            row["b"],
            np.radians(row["alpha_deg"]),
            np.radians(row["theta_deg"]),
            row["m"],
            -np.array(row["r_C_to_Onext_in_frame_next"], float),
            np.array(row["I_C_in_frame_next"], float),
        )
        for row in data["dh"]
    ]
    other = jd.from_dh(rows)
    q, qd, qdd = (x[::10] for x in arrays(data, "q", "qd", "qdd"))
    found = jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0))(other, q, qd, qdd)
    alt = data["tau_alt_com_sign"]
    alt = np.array(alt["tau"] if isinstance(alt, dict) else alt)
    np.testing.assert_allclose(found, alt, rtol=0, atol=1e-10)


@cites("MATH 15: closed form of the planar arm, 1e-12")
def test_planar_arm():
    data, model = golden("planar_3link.json"), jd.robots.planar_arm()
    q, qd, qdd, tau = arrays(data, "q", "qd", "qdd", "tau")
    found = jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0))(model, q, qd, qdd)
    np.testing.assert_allclose(found, tau, rtol=0, atol=1e-12)


@cites("MATH 8: the four-link chain", "Condition-number note")
@pytest.mark.parametrize(
    "case", ["text_values_m2.2", "fitted_thin_rod", "fitted_solid_rod"]
)
def test_four_rods(case):
    data = golden("chain4_condition.json")
    want = data["cases"][case]
    model = jd.robots.rod_chain(
        4,
        mass=want["m"],
        axial_inertia=want["extra_Izz_per_link"],
        gravity=data["gravity_vector"],
    )
    q = jnp.zeros(4)
    assert error(jd.mass_matrix(model, q), np.array(want["I"])) < 1e-12
    assert error(jd.factorize(model, q).D, np.array(want["pivots_reverse_D"])) < 1e-12
    phi = -jd.bias_forces(model, q, q)
    assert error(phi, np.array(want["phi"])) < 1e-12
    qdd = jd.forward_dynamics(model, q, q, q)
    assert error(qdd, np.array(want["qdd"])) < 1e-10
    kappa = np.linalg.cond(jd.mass_matrix(model, q))
    np.testing.assert_allclose(kappa, want["kappa"], rtol=1e-9)


SAMPLES = golden("soa_states.json")["samples"]


def sample_model(sample):
    """The chain and the tree of soa_states.json; links keep their numbers."""
    n = len(sample["parent"])
    kinds = {"R": "revolute", "P": "prismatic"}
    links = []
    for i, kind in enumerate(sample["types"]):
        S, body, pose = (
            np.array(sample["S"][i][0]),
            sample["body"][i],
            sample["tree_pose"][i],
        )
        links.append(
            jd.Link(
                f"link{i}",
                f"link{sample['parent'][i]}" if sample["parent"][i] >= 0 else None,
                kinds[kind],
                axis=S[:3] if kind == "R" else S[3:],
                rotation=np.array(pose["R"]),
                translation=np.array(pose["p"], float),
                mass=body["m"],
                com=np.array(body["com"]),
                inertia=np.array(body["I_com"]),
            )
        )
    model = jd.build(links, gravity=sample["gravity"])
    order = [int(s[4:]) for s in model.link_names]  # branch by branch
    assert sorted(order) == list(range(n))
    return model, np.array(order)


@cites("MATH 15: soa_states, 1e-10", "MATH 3, 4, 5, 6, 7.1")
@pytest.mark.parametrize("sample", SAMPLES[:2], ids=["chain", "tree"])
def test_soa_states(sample, link_by_link):
    model, order = sample_model(sample)
    q, qd, qdd, tau, fext = (
        jnp.array(sample[s], float)[order]
        for s in ("q_exponential", "qd", "qdd_in", "tau_in", "fext_body")
    )
    square = np.ix_(order, order)

    def want(name):
        value = jnp.array(sample[name], float)
        matrices = ("M", "Minv", "U_or_IplusHphiK")
        return value[square] if name in matrices else value[order]

    still = jnp.zeros_like(qd)
    assert error(jd.mass_matrix(model, q), want("M")) < 1e-10
    assert error(jd.inverse_dynamics(model, q, qd, qdd, fext), want("tau_ID")) < 1e-10
    bias = jd.inverse_dynamics(model, q, qd, still, fext)
    assert error(bias, want("bias_with_g_fext")) < 1e-10
    assert error(jd.forward_dynamics(model, q, qd, tau, fext), want("qdd_FD")) < 1e-10
    for i in (2, 5):
        assert error(jd.jacobian(model, q, i) @ qd, want("V")[i]) < 1e-10

    f = jd.factorize(model, q)
    assert error(f.D, want("D").reshape(-1)) < 1e-10
    assert error(f.U, want("U_or_IplusHphiK")) < 1e-10
    assert error(f.inverse(), want("Minv")) < 1e-10
    assert error(f.total_rates(qd), want("nu")) < 1e-10
    assert error(f.total_rates(qd, normalized=False), want("xi")) < 1e-10
    assert error(f.working_moments(tau), want("eps_of_tau")) < 1e-10
    found = f.working_moments(tau, normalized=False)
    assert error(found, want("kappa_of_tau")) < 1e-10
    R = np.array(f.here.R.array)
    G = np.array(f.gains.array).reshape(-1, 2, 3)
    in_body_axes = np.einsum("nji,nkj->nki", R, G).reshape(-1, 6)
    assert error(in_body_axes, want("G").reshape(-1, 6)) < 1e-10
    wanted = np.array(sample["dM_dq"])[np.ix_(order, order, order)]
    assert error(jd.mass_matrix_sensitivity(model, q), wanted) < 1e-10

    nu, xi = want("nu"), want("xi")
    assert error(jd.diagonal_coriolis(model, q, nu), want("C_nu")) < 1e-10
    plain = {"normalized": False}
    assert error(jd.diagonal_coriolis(model, q, xi, **plain), want("C_xi")) < 1e-10
    found = jd.diagonal_acceleration(model, q, nu, tau, fext)
    assert error(found, want("nudot")) < 1e-10
    found = jd.diagonal_acceleration(model, q, xi, tau, fext, **plain)
    assert error(found, want("xidot")) < 1e-10
    ops, rates = jd.spatial_operators(model, q), jd.spatial_operator_rates(model, q, qd)
    assert error(ops.P.blocks, want("P")) < 1e-10
    assert error(rates.P.blocks, want("Pdot_local")) < 1e-10


@cites("MATH 15: soa_states with a free flyer and a ball, 1e-10")
def test_soa_state_with_a_free_base(link_by_link):
    """The third sample; its ball is three revolute joints with nothing between them.

    Their rates e give the ball's body angular velocity ω = T(e) ė, so with the
    velocities mapped by T the dynamics are those of the sample.
    """
    sample = SAMPLES[2]
    assert sample["types"] == "FRSP" and sample["parent"] == [-1, 0, 0, 1]
    pose, body, S = sample["tree_pose"], sample["body"], sample["S"]

    def link(name, parent, kind, i, **more):
        more = {
            "rotation": np.array(pose[i]["R"], float),
            "translation": np.array(pose[i]["p"], float),
            "mass": body[i]["m"],
            "com": np.array(body[i]["com"], float),
            "inertia": np.array(body[i]["I_com"], float),
        } | more
        return jd.Link(name, parent, kind, **more)

    here = {"rotation": np.eye(3), "translation": (0, 0, 0)}
    nothing = {"mass": 0.0, "inertia": np.zeros((3, 3)), "com": (0, 0, 0)}
    model = jd.build(
        [
            link("F", None, "free", 0),
            link("R", "F", "revolute", 1, axis=np.array(S[1][0])[:3]),
            link("P", "R", "prismatic", 3, axis=np.array(S[3][0])[3:]),
            link("S1", "F", "revolute", 2, axis=(0, 0, 1), **nothing),
            link("S2", "S1", "revolute", 2, axis=(0, 1, 0), **here, **nothing),
            link("S3", "S2", "revolute", 2, axis=(1, 0, 0), **here),
        ],
        gravity=sample["gravity"],
    )

    from scipy.spatial.transform import Rotation

    ball = Rotation.from_matrix(sample["joint_pose"][2]["R"]).as_euler("ZYX")
    base = sample["joint_pose"][0]
    quaternion = Rotation.from_matrix(base["R"]).as_quat()[[3, 0, 1, 2]]
    exponents = np.array(sample["q_exponential"])  # F 6, R 1, S 3, P 1
    q = jnp.asarray(np.r_[base["p"], quaternion, exponents[6], exponents[10], ball])

    def rates(e):  # ω = T(e) ė, of body-fixed axes z y x
        _, y, x = e
        cx, sx, cy, sy = jnp.cos(x), jnp.sin(x), jnp.cos(y), jnp.sin(y)
        return jnp.array([[-sy, 0, 1], [cy * sx, cx, 0], [cy * cx, -sx, 0]])

    T, order = rates(q[9:]), np.r_[0:7, 10, 7, 8, 9]
    qd, qdd, tau = (
        jnp.array(sample[s], float)[order] for s in ("qd", "qdd_in", "tau_in")
    )
    W = jax.scipy.linalg.block_diag(jnp.eye(8), T)  # sample's velocities = W · ours
    ed = jnp.linalg.solve(T, qd[8:])
    Td = jax.jvp(rates, (q[9:],), (ed,))[1]
    ours = jnp.linalg.solve(W, qd)
    shift = jnp.zeros_like(qd).at[8:].set(Td @ ed)
    fext = jnp.array(sample["fext_body"], float)
    zero = jnp.zeros((1, 6))
    fext = jnp.concatenate([fext[:2], fext[3:], zero, zero, fext[2:3]])

    M = np.array(sample["M"])[np.ix_(order, order)]
    assert error(W.T @ M @ W, jd.mass_matrix(model, q)) < 1e-10
    found = jd.inverse_dynamics(model, q, ours, jnp.linalg.solve(W, qdd - shift), fext)
    wanted = np.array(sample["tau_ID"])[order]
    assert error(jnp.linalg.solve(W.T, found), wanted) < 1e-10
    found = jd.forward_dynamics(model, q, ours, W.T @ tau, fext)
    assert error(W @ found + shift, np.array(sample["qdd_FD"])[order]) < 1e-10

    # what does not depend on how the ball is taken apart: base, R and P
    f, rest = jd.factorize(model, q), np.arange(8)

    def want(name):
        return np.array(sample[name], float)[order][rest]

    nu, xi = f.total_rates(ours), f.total_rates(ours, normalized=False)
    assert error(nu[rest], want("nu")) < 1e-10
    assert error(f.working_moments(W.T @ tau)[rest], want("eps_of_tau")) < 1e-10
    assert error(jd.diagonal_coriolis(model, q, nu)[rest], want("C_nu")) < 1e-10
    found = jd.diagonal_acceleration(model, q, nu, W.T @ tau, fext)
    assert error(found[rest], want("nudot")) < 1e-10
    # ξ of the base is that of the unit part of its Cholesky factor, D = L Lᵀ
    L = np.linalg.cholesky(np.array(sample["D"][0]))
    L = L / np.diag(L)
    assert error(xi[:6], L.T @ want("xi")[:6]) < 1e-10
    assert error(xi[6:8], want("xi")[6:]) < 1e-10
    # and its rate: L̇ = L Φ, Φ the lower half of L⁻¹ Ḋ L⁻ᵀ [MATH 7.5], Ḋ = Ṗ at the base
    D, Dd = (np.array(sample[s][0], float) for s in ("D", "Pdot_local"))
    full = np.linalg.cholesky(D)
    inner = np.linalg.solve(full, np.linalg.solve(full, Dd).T)
    rate = full @ (np.tril(inner, -1) + np.diag(np.diag(inner)) / 2)
    size = np.diag(full)
    Ld = rate / size - L * (np.diag(rate) / size)
    plain = {"normalized": False}
    found = jd.diagonal_acceleration(model, q, xi, W.T @ tau, fext, **plain)
    wanted = L.T @ want("xidot")[:6] + Ld.T @ want("xi")[:6]
    assert error(found[:6], wanted) < 1e-10
    assert error(found[6:8], want("xidot")[6:]) < 1e-10
    found = jd.diagonal_coriolis(model, q, xi, **plain)
    free = -np.linalg.solve(D, want("C_xi")[:6])  # ξ̇ of the base without forces
    wanted = -(size**2) * (L.T @ free + Ld.T @ want("xi")[:6])
    assert error(found[:6], wanted) < 1e-10
    assert error(found[6:8], want("C_xi")[6:]) < 1e-10
    ops, rates = (
        jd.spatial_operators(model, q),
        jd.spatial_operator_rates(model, q, ours),
    )
    for ours_, theirs in ((0, 0), (1, 1), (2, 3)):  # F, R, P
        P, Pd = (np.array(sample[s][theirs], float) for s in ("P", "Pdot_local"))
        assert error(ops.P.blocks[ours_], P) < 1e-10
        scale = max(np.abs(Pd).max(), 1e-3)
        assert np.abs(rates.P.blocks[ours_] - Pd).max() < 1e-10 * scale


def test_this_is_not_vacuous():
    """A part in a million on one mass is seen by the golden torques."""
    data, model = golden("stanford_arm.json"), jd.robots.stanford_arm()
    model = eqx.tree_at(lambda m: m.mass, model, model.mass.at[2].multiply(1 + 1e-6))
    q, qd, qdd, tau = (x[50] for x in arrays(data, "q", "qd", "qdd", "tau"))
    assert np.abs(jd.inverse_dynamics(model, q, qd, qdd) - tau).max() > 1e-9
