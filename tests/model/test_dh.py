"""Denavit-Hartenberg tables against the product of the four elementary motions."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

cites = pytest.mark.cites
GOLDEN = Path(__file__).parents[1] / "golden" / "stanford_arm.json"


def turned(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    i, j = {"x": (1, 2), "z": (0, 1)}[axis]
    T = np.eye(4)
    T[i, i] = T[j, j] = c
    T[i, j], T[j, i] = -s, s
    return T


def slid(axis, distance):
    T = np.eye(4)
    T["xyz".index(axis), 3] = distance
    return T


def random_rows(seed, kinds):
    rng = np.random.default_rng(seed)
    rows = []
    for kind in kinds:
        A = rng.normal(size=(3, 3))
        second = A @ A.T + 0.1 * np.eye(3)
        rows.append(
            jd.DHLink(
                kind,
                *(float(x) for x in rng.normal(size=4)),
                mass=float(rng.uniform(1, 2)),
                com=rng.normal(size=3),
                inertia=np.trace(second) * np.eye(3) - second,
            )
        )
    return rows


def frames(rows, q):
    """frame_{i+1} of every row, in base axes, by direct multiplication."""
    T, out = np.eye(4), []
    for row, x in zip(rows, q, strict=True):
        theta, b = (x, row.b) if row.kind == "R" else (row.theta, x)
        T = T @ turned("z", theta) @ slid("z", b) @ slid("x", row.a)
        T = T @ turned("x", row.alpha)
        out.append(T)
    return out


@pytest.mark.parametrize("kinds", ["RRPRP", "PRPPR"])
@cites("MATH 1.7: frame_{i+1} = frame_i Rz(θ) Tz(b) Tx(a) Rx(α)", "Saha 1999, App. A")
def test_frames_mass_centres_and_inertias(kinds):
    rows = random_rows(0, kinds)
    model = jd.from_dh(rows, gravity=(0.1, 0.2, 0.3), name="table")
    q = np.random.default_rng(1).normal(size=len(rows))
    poses = np.array(jd.forward_kinematics(model, jnp.asarray(q)))
    expected = frames(rows, q)
    for i, (row, T) in enumerate(zip(rows, expected, strict=True)):
        O, R = T[:3, 3], T[:3, :3]  # of frame i + 1, fixed to link i
        body = poses[i]
        C = body[:3, :3] @ np.array(model.com[i]) + body[:3, 3]
        np.testing.assert_allclose(C, O - R @ np.array(row.com), atol=1e-13)
        turned_in = body[:3, :3] @ np.array(model.inertia[i]) @ body[:3, :3].T
        np.testing.assert_allclose(turned_in, R @ row.inertia @ R.T, atol=1e-12)
        assert float(model.mass[i]) == row.mass
    for i in range(1, len(rows)):  # joint i + 1 sits on frame i + 1, about its z
        z = expected[i - 1][:3, 2]
        np.testing.assert_allclose(poses[i][:3, 2], z, atol=1e-13)
        between = poses[i][:3, 3] - expected[i - 1][:3, 3]
        along = q[i] * z if kinds[i] == "P" else 0 * z
        np.testing.assert_allclose(between, along, atol=1e-13)
        # at q = 0 the body frame is the frame itself
    at_rest = np.array(jd.forward_kinematics(model, jnp.zeros(len(rows))))
    np.testing.assert_allclose(at_rest[0], np.eye(4), atol=1e-15)
    zero = frames(rows, np.zeros(len(rows)))
    np.testing.assert_allclose(at_rest[1:], zero[:-1], atol=1e-13)
    np.testing.assert_array_equal(model.axis, [[0, 0, 1]] * len(rows))
    np.testing.assert_allclose(model.gravity, [0.1, 0.2, 0.3])
    assert model.name == "table"
    assert model.joint_names == tuple(f"joint{i + 1}" for i in range(len(rows)))


@cites("Saha 1999, Table 3", "MATH 1.7: com = tf - Rf r, I_com = Rf I Rfᵀ")
def test_the_stanford_arm_in_body_frames():
    golden = json.loads(GOLDEN.read_text())
    rows = [
        jd.DHLink(
            s["type"],
            s["a"],
            s["b"],
            np.radians(s["alpha_deg"]),
            np.radians(s["theta_deg"]),
            s["m"],
            s["r_C_to_Onext_in_frame_next"],
            s["I_C_in_frame_next"],
        )
        for s in golden["dh"]
    ]
    same_arm(jd.from_dh(rows, gravity=golden["gravity"]), golden)
    same_arm(jd.robots.stanford_arm(), golden)


def same_arm(model, golden):
    np.testing.assert_allclose(model.gravity, golden["gravity"])
    kinds = {"R": "revolute", "P": "prismatic"}
    for i, s in enumerate(golden["body_frame_model"]):
        R, p = model.placement.rotation[i], model.placement.translation[i]
        np.testing.assert_allclose(R, s["placement_R_parent_from_joint"], atol=1e-15)
        np.testing.assert_allclose(p, s["placement_p"], atol=1e-15)
        np.testing.assert_allclose(model.axis[i], s["axis"], atol=1e-15)
        np.testing.assert_allclose(model.com[i], s["com"], atol=1e-15)
        np.testing.assert_allclose(model.inertia[i], s["I_com"], atol=1e-15)
        assert float(model.mass[i]) == s["mass"]
        assert model.joint_kinds[i] == kinds[s["type"]]


def test_the_diagonal_is_enough_and_kinds_may_be_words():
    row = random_rows(0, "R")[0]
    values = {f: getattr(row, f) for f in ("a", "b", "alpha", "theta", "mass", "com")}
    short = jd.DHLink("revolute", inertia=(1.0, 2.0, 2.5), **values)
    full = jd.DHLink("R", inertia=np.diag([1.0, 2.0, 2.5]), **values)
    np.testing.assert_array_equal(
        jd.from_dh([short]).inertia, jd.from_dh([full], dtype="float64").inertia
    )
    assert jd.from_dh([full], dtype="float32").mass.dtype == jnp.float32
    assert jd.from_dh(
        [jd.DHLink("p", inertia=(1.0, 1.0, 1.0), **values)]
    ).joint_kinds == ("prismatic",)


def row(**changes):
    values = {"kind": "R", "a": 0.0, "b": 0.0, "alpha": 0.0, "theta": 0.0}
    values |= {"mass": 1.0, "com": (0.0, 0.0, 0.0), "inertia": (1.0, 1.0, 1.0)}
    return jd.DHLink(**(values | changes))


@pytest.mark.parametrize(
    "bad, message",
    [
        (row(kind="S"), "DH row 2 is of kind 'S'.*Write 'R'"),
        (row(kind=""), "DH row 2 is of kind ''.*Write 'R'"),
        (row(kind="rot"), "DH row 2 is of kind 'rot'"),
        (row(com=(0.0, 0.0)), r"DH row 2: com has shape \(2,\).*Give 3 numbers"),
        (row(inertia=(1.0, 1.0)), r"DH row 2.* inertia \(2,\).*Give"),
        (row(mass=-1.0), "Link 'link2': mass"),
        (row(a=np.nan), "Link 'link2'"),
        (row(inertia=(1.0, 1.0, 3.0)), "Link 'link2'.*belong to no body"),
    ],
)
def test_a_bad_row_is_refused_by_its_number(bad, message):
    with pytest.raises(jd.ModelError, match=message):
        jd.from_dh([row(), bad])


def test_an_empty_table_is_refused():
    with pytest.raises(jd.ModelError, match="no moving link"):
        jd.from_dh([])
