"""Robots of example-robot-data: all of them load or are refused for a reason, and
masses, placements and limits are those that Pinocchio reads."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from jaxdenoc import ModelError, ModelWarning
from jaxdenoc.io import load, to_urdf


def _robots():
    spec = importlib.util.find_spec("pinocchio")
    assert spec and spec.origin
    for folder in Path(spec.origin).parents:
        for prefix in folder, folder / "cmeel.prefix":
            robots = prefix / "share" / "example-robot-data" / "robots"
            if robots.is_dir():
                return robots
    return Path("nowhere")


ROBOTS = _robots()
FILES = sorted(str(f.relative_to(ROBOTS)) for f in ROBOTS.rglob("*.urdf"))
assert FILES, "the extra `test` installs example-robot-data, which these need"

REFUSED = {
    "belong to no body": (  # moving bodies with inertias that nothing can have
        "romeo_description/urdf/romeo_laas_small.urdf",
        "romeo_description/urdf/romeo_small.urdf",
    ),
    "floating_base=True": (  # one rigid body
        "hector_description/robots/quadrotor_base.urdf",
        "iris_description/robots/iris_simple.urdf",
    ),
    "no <link>": ("ur_description/urdf/ur3.urdf",),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        yield


@pytest.mark.parametrize("file", FILES)
def test_a_robot_loads_or_is_refused_for_a_reason(file):
    reasons = [reason for reason, files in REFUSED.items() if file in files]
    if not reasons:
        assert load(ROBOTS / file, mimic="free").nv > 0
        return
    with pytest.raises(ModelError, match=f"^{Path(file).name}.*{reasons[0]}"):
        load(ROBOTS / file, mimic="free")


COMPARED = (
    ("panda_description/urdf/panda.urdf", False),
    ("ur_description/urdf/ur5_robot.urdf", False),
    ("talos_data/robots/talos_reduced.urdf", False),
    ("talos_data/robots/talos_reduced.urdf", True),
    ("solo_description/robots/solo12.urdf", True),
    ("anymal_b_simple_description/robots/anymal.urdf", False),
    ("anymal_b_simple_description/robots/anymal.urdf", True),
    ("anymal_c_simple_description/urdf/anymal.urdf", True),
    ("kinova_description/robots/kinova.urdf", False),
)


def _close(ours, theirs):
    theirs = np.asarray(theirs)
    scale = max(np.abs(theirs).max(), 1e-9)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize(("file", "floating_base"), COMPARED)
def test_pinocchio_reads_the_same(file, floating_base):
    text = (ROBOTS / file).read_text()
    model = load(text, floating_base=floating_base, mimic="free")
    free = (pin.JointModelFreeFlyer(),) if floating_base else ()
    other = pin.buildModelFromXML(text, *free)
    assert set(model.joint_names) == set(other.names) - {"universe"}
    _close(model.mass.sum(), pin.computeTotalMass(other))
    velocity = {name: k for k, name in enumerate(model.velocity_names)}
    for i, name in enumerate(model.joint_names):
        j = other.getJointId(name)
        place, body = other.jointPlacements[j], other.inertias[j]
        _close(model.placement.rotation[i], place.rotation)
        _close(model.placement.translation[i], place.translation)
        _close(model.mass[i], body.mass)
        _close(model.com[i] * model.mass[i], body.lever * body.mass)
        _close(model.inertia[i], body.inertia)
        p = other.parents[j]
        above = model.joint_names[model.parent[i]] if model.parent[i] >= 0 else None
        assert above == (other.names[p] if p else None)
        if model.joint_kinds[i] == "free":
            continue
        k, kv = velocity[name], other.joints[j].idx_v
        _close(model.tau_limit[k], other.upperEffortLimit[kv])
        _close(model.qd_limit[k], other.upperVelocityLimit[kv])
        _close(model.damping[k], other.damping[kv])
        _close(model.friction[k], other.upperDryFrictionLimit[kv])
        if model.joint_kinds[i] != "continuous":
            kq = other.joints[j].idx_q
            _close(model.q_lower[k], other.lowerPositionLimit[kq])
            _close(model.q_upper[k], other.upperPositionLimit[kq])


def test_pinocchio_reads_what_is_written(assert_same):
    text = (ROBOTS / "talos_data/robots/talos_reduced.urdf").read_text()
    model = load(text)
    written = to_urdf(model)
    assert_same(model, load(written), 1e-12)
    before, after = pin.buildModelFromXML(text), pin.buildModelFromXML(written)
    q = pin.neutral(before)
    ids = [after.getJointId(name) for name in before.names]
    assert sorted(ids) == list(range(before.njoints))
    order = [after.joints[j].idx_v for j in ids[1:]]
    _close(
        pin.crba(after, after.createData(), q)[np.ix_(order, order)],
        pin.crba(before, before.createData(), q),
    )


@pytest.mark.parametrize("file", [f for f in FILES if "talos" in f or "panda" in f])
def test_mimic_joints_are_refused_until_a_choice_is_made(file):
    path = ROBOTS / file
    if load(path, mimic="free").nv == load(path, mimic="lock").nv:
        assert load(path).nv  # its followers are fixed joints
        return
    with pytest.raises(ModelError, match=r"<mimic>: it follows .*mimic='free'"):
        load(path)
