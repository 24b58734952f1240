"""Everything against Pinocchio, on real robots and on 200 random trees."""

import equinox as eqx
import jax
import jaxdenoc as jd
import numpy as np
import pinocchio as pin
import pytest

from ..support.oracle import Oracle, error, robot_file
from ..support.robots import ALL, forest, state

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "anymal_fixed": ("anymal_c_simple_description/urdf/anymal.urdf", False),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "talos_fixed": ("talos_data/robots/talos_full_v2.urdf", False),
}


@eqx.filter_jit
def everything(model, q, qd, qdd, links):
    return {
        "inverse_dynamics": jd.inverse_dynamics(model, q, qd, qdd),
        "forward_dynamics": jd.forward_dynamics(model, q, qd, qdd),
        "mass_matrix": jd.mass_matrix(model, q),
        "bias_forces": jd.bias_forces(model, q, qd),
        "gravity_forces": jd.gravity_forces(model, q),
        "forward_kinematics": jd.forward_kinematics(model, q),
        "coriolis_matrix": jd.coriolis_matrix(model, q, qd),
        "jacobian": [jd.jacobian(model, q, i) for i in links],
    }


def expected(oracle, q, qd, qdd, links):
    return {
        "inverse_dynamics": oracle.inverse_dynamics(q, qd, qdd),
        "forward_dynamics": oracle.forward_dynamics(q, qd, qdd),
        "mass_matrix": oracle.mass_matrix(q),
        "bias_forces": oracle.bias_forces(q, qd),
        "gravity_forces": oracle.gravity_forces(q),
        "forward_kinematics": oracle.forward_kinematics(q),
        "coriolis_matrix": oracle.coriolis_matrix(q, qd),
        "jacobian": [oracle.jacobian(q, i) for i in links],
    }


def compare(found, wanted, tolerance=1e-10):
    for name, value in wanted.items():
        if name == "jacobian":
            worst = max(map(error, found[name], value))
        else:
            worst = error(found[name], value)
        assert worst < tolerance, (name, worst)


def rigid(model):
    """Without the friction that a URDF states and Pinocchio leaves out."""
    none = np.zeros(model.nv)
    return eqx.tree_at(lambda m: (m.damping, m.friction), model, (none, none))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxdenoc.ModelWarning")
@pytest.mark.parametrize("name", ROBOTS)
def test_real_robots(name):
    path, floating = ROBOTS[name]
    file = str(robot_file(path))
    model = rigid(jd.load(file, floating_base=floating, mimic="free"))
    args = (pin.JointModelFreeFlyer(),) if floating else ()
    other = pin.buildModelFromUrdf(file, *args)
    oracle = Oracle(model, other)
    assert other.nv == model.nv
    links = [0, model.n_links // 2, model.n_links - 1]
    for seed in range(3):
        q, qd, qdd = state(model, seed)
        compare(everything(model, q, qd, qdd, links), expected(oracle, q, qd, qdd, links))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_random_trees(seed):
    """50 trees of 1 to 40 links at a time, as one model with many roots."""
    sizes = np.random.default_rng(seed).permutation(np.r_[np.arange(1, 41), 1:41:4])
    model, trees = forest(seed, sizes.tolist())
    assert len(trees) == 50
    q, qd, qdd = state(model, seed)
    tips = [s.stop - 1 for s in trees]
    found = everything(model, q, qd, qdd, tips[::10])
    found = jax.tree.map(np.array, found)
    # the whole forest is one Pinocchio model too, for what needs all of it
    J = {s: j for s, j in zip(tips[::10], found.pop("jacobian"), strict=True)}
    whole = Oracle(model)
    for tip, jac in J.items():
        assert error(jac, whole.jacobian(q, tip)) < 1e-10
    wanted = expected(whole, q, qd, qdd, [])
    del wanted["jacobian"]
    for s in trees:  # relative to each tree's own largest entry
        for name, value in wanted.items():
            block = (s, s) if name.endswith("matrix") else s
            mine, theirs = found[name][block], value[block]
            if name == "coriolis_matrix" and s.stop - s.start == 1:
                assert np.abs(mine).max() < 1e-10
            elif name == "gravity_forces" and np.abs(theirs).max() < 1e-8:
                assert np.abs(mine).max() < 1e-10
            else:
                assert error(mine, theirs) < 1e-10, (name, s)
    outside = np.ones_like(found["mass_matrix"], bool)
    for s in trees:
        outside[s, s] = False
    assert not found["mass_matrix"][outside].any()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_trees_one_by_one(seed):
    n, floating = [(1, True), (2, False), (3, True), (5, False)][seed % 4]
    model = jd.robots.random_tree(jax.random.key(77 + seed), n + seed // 4, floating)
    q, qd, qdd = state(model, seed)
    links = [model.n_links - 1]
    found = everything(model, q, qd, qdd, links)
    compare(found, expected(Oracle(model), q, qd, qdd, links))


@pytest.mark.parametrize("name", ALL)
def test_momentum_and_energies(name):
    model = ALL[name]()
    q, qd, _ = state(model)
    oracle = Oracle(model)
    assert error(jd.centroidal_momentum(model, q, qd), oracle.momentum(q, qd)) < 1e-12
    theirs = oracle.configuration(q), oracle.velocity(qd)
    kinetic = pin.computeKineticEnergy(oracle.pin, oracle.data, *theirs)
    potential = pin.computePotentialEnergy(oracle.pin, oracle.data, theirs[0])
    np.testing.assert_allclose(jd.kinetic_energy(model, q, qd), kinetic, rtol=1e-12)
    np.testing.assert_allclose(jd.potential_energy(model, q), potential, atol=1e-12)
    centre = pin.centerOfMass(oracle.pin, oracle.data, theirs[0])
    np.testing.assert_allclose(jd.center_of_mass(model, q), centre, atol=1e-13)


@pytest.mark.parametrize("name", ["mixed_chain", "free_tree"])
def test_jacobian_in_base_axes(name):
    model = ALL[name]()
    q, *_ = state(model)
    for link in range(model.n_links):
        J = jd.jacobian(model, q, link, axes="base")
        assert error(J, Oracle(model).jacobian(q, link, "base")) < 1e-12


@pytest.mark.parametrize("name", ["mixed_chain", "tree", "free_tree"])
def test_external_wrenches_and_armature(name):
    model = ALL[name]()
    armature = np.linspace(0.1, 0.5, model.nv)
    if model.floating_base:
        armature[:6] = 0
    model = eqx.tree_at(lambda m: m.armature, model, jax.numpy.asarray(armature))
    q, qd, qdd = state(model)
    fext = np.random.default_rng(0).normal(size=(model.n_links, 6))
    oracle = Oracle(model)
    wrenches = [pin.Force.Zero() for _ in range(oracle.pin.njoints)]
    for j, f in zip(oracle.joints, fext, strict=True):
        wrenches[j] = pin.Force(f[3:], f[:3])
    q_, v_, a_ = oracle.configuration(q), oracle.velocity(qd), oracle.velocity(qdd)
    tau = pin.rnea(oracle.pin, oracle.data, q_, v_, a_, wrenches)
    fext = jax.numpy.asarray(fext)
    mine = jd.inverse_dynamics(model, q, qd, qdd, fext)
    assert error(mine, oracle.vector(tau)) < 1e-12
    found = jd.forward_dynamics(model, q, qd, mine, fext)
    assert error(found, qdd) < 1e-10
    dense = jd.forward_dynamics(model, q, qd, mine, fext, method="dense")
    assert error(dense, qdd) < 1e-10
    assert error(jd.mass_matrix(model, q), oracle.mass_matrix(q)) < 1e-12
