"""Everything against Pinocchio, on real robots and on 200 random trees."""

from functools import partial

import equinox as eqx
import jax
import numpy as np
import pinocchio as pin
import pytest

import jaxdenoc as jd

from ..support.by_numpy import by_numpy
from ..support.oracle import Oracle, error, robot_file
from ..support.robots import ALL, forest, state

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "anymal_fixed": ("anymal_c_simple_description/urdf/anymal.urdf", False),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "talos_fixed": ("talos_data/robots/talos_reduced.urdf", False),
}


FUNCTIONS = {
    "inverse_dynamics": lambda f, q, qd, qdd: f.inverse_dynamics(q, qd, qdd),
    "forward_dynamics": lambda f, q, qd, qdd: f.forward_dynamics(q, qd, qdd),
    "mass_matrix": lambda f, q, qd, qdd: f.mass_matrix(q),
    "bias_forces": lambda f, q, qd, qdd: f.bias_forces(q, qd),
    "gravity_forces": lambda f, q, qd, qdd: f.gravity_forces(q),
    "forward_kinematics": lambda f, q, qd, qdd: f.forward_kinematics(q),
    "coriolis_matrix": lambda f, q, qd, qdd: f.coriolis_matrix(q, qd),
    "jacobian": lambda f, q, qd, qdd: f.jacobian(q, f.model.n_links - 1),
}


class Jitted:
    """This library under the names of the oracle, each function compiled once."""

    def __init__(self, model):
        self.model, self.compiled = model, {}

    def __getattr__(self, name):
        if name not in self.compiled:
            self.compiled[name] = eqx.filter_jit(partial(getattr(jd, name), self.model))
        return self.compiled[name]


def compare(model, oracle, seeds):
    mine = Jitted(model)
    for seed in seeds:
        for name, call in FUNCTIONS.items():
            args = state(model, seed)
            worst = error(call(mine, *args), call(oracle, *args))
            assert worst < 1e-10, (name, worst)


def rigid(model):
    """Without the friction that a URDF states and Pinocchio leaves out."""
    none = np.zeros(model.nv)
    return eqx.tree_at(lambda m: (m.damping, m.friction), model, (none, none))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxdenoc.ModelWarning")
@pytest.mark.parametrize("name", ROBOTS)
def test_real_robots(name, monkeypatch):
    """Some branch by branch, others link by link, which compiles faster.

    One, whose tree is that of another, by NumPy.
    """
    path, floating = ROBOTS[name]
    if name in ("anymal_fixed", "talos", "talos_fixed"):
        monkeypatch.setattr("jaxdenoc.recursion._branches.MOST_GROUPS", 0)
    file = str(robot_file(path))
    model = rigid(jd.load(file, floating_base=floating, mimic="free"))
    args = (pin.JointModelFreeFlyer(),) if floating else ()
    other = pin.buildModelFromUrdf(file, *args)
    oracle = Oracle(model, other)
    assert other.nv == model.nv
    with by_numpy(name == "anymal"):
        compare(model, oracle, range(3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_two_hundred_random_trees(seed):
    """100 trees of 1 to 40 links at a time, as one model with many roots.

    One compilation serves them all; every tree has a Pinocchio model of its own.
    """
    sizes = np.random.default_rng(seed).permutation(np.tile(np.r_[1:41, 1:41:4], 2))
    model, trees = forest(seed, sizes.tolist())
    mine, (q, qd, qdd) = Jitted(model), state(model, seed)
    ends = np.cumsum(sizes).tolist()
    found = {s: np.array(f(mine, q, qd, qdd)) for s, f in FUNCTIONS.items()}
    tips = eqx.filter_jit(lambda q: [jd.jacobian(model, q, i - 1) for i in ends[::7]])
    tips = dict(zip(ends[::7], tips(q), strict=True))
    inside = np.zeros((model.nv, model.nv), bool)
    for tree, end in zip(trees, ends, strict=True):
        own = slice(end - tree.nv, end)
        oracle, args = Oracle(tree), (q[own], qd[own], qdd[own])
        inside[own, own] = True
        for name, call in FUNCTIONS.items():
            if name == "jacobian":
                block = tips[end][:, own] if end in tips else None
            else:
                block = found[name][(own, own) if name.endswith("matrix") else own]
            if block is not None:
                theirs = call(oracle, *args)
                scale = max(np.abs(theirs).max(), 1e-3)  # a lone joint has C = 0
                assert np.abs(block - theirs).max() < 1e-10 * scale, (name, tree)
    assert not found["mass_matrix"][~inside].any()
    assert not found["coriolis_matrix"][~inside].any()


@pytest.mark.slow
@pytest.mark.parametrize("n, floating", [(1, True), (3, True), (4, False)])
def test_random_trees_branch_by_branch(n, floating):
    model = jd.robots.random_tree(jax.random.key(70 + n), n, floating)
    compare(model, Oracle(model), range(2))


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
@by_numpy()
def test_jacobian_in_base_axes(name):
    model = ALL[name]()
    q, *_ = state(model)
    for link in range(model.n_links):
        J = jd.jacobian(model, q, link, axes="base")
        assert error(J, Oracle(model).jacobian(q, link, "base")) < 1e-12


@pytest.mark.parametrize("name", ["mixed_chain", "tree", "free_tree"])
@by_numpy()
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
