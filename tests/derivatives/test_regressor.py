"""τ = Y π, and the energies, linear in the inertial parameters: MATH 11."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxdenoc as jd
from jaxdenoc._tiles import TILE

from ..support.by_numpy import by_numpy
from ..support.oracle import Oracle, error, robot_file
from ..support.robots import forest, state, tree

cites = pytest.mark.cites
SHAPES = {
    "one link": ((-1,), False),
    "chain": ((-1, 0, 1, 2, 3, 4), False),
    "tree": ((-1, 0, 1, 0, 3), False),
    "free body": ((-1,), True),
    "free tree": ((-1, 0, 1, 0, 3), True),
}
SEEDS = range(8)


def robot(seed, shape, dtype="float64"):
    """A random one, of which every joint has armature, damping and friction."""
    model = tree(seed, *SHAPES[shape])
    rng = np.random.default_rng(seed)
    joints = [jnp.asarray(rng.uniform(0.1, 1, model.nv)) for _ in range(3)]
    model = eqx.tree_at(lambda m: (m.armature, m.damping, m.friction), model, joints)
    return jax.tree.map(lambda x: x.astype(dtype), model)


@jax.jit
def found(model, q, qd, qdd):
    return {
        "Y": jd.regressor(model, q, qd, qdd, joints=True),
        "kinetic": jd.kinetic_energy_regressor(model, q, qd, joints=True),
        "potential": jd.potential_energy_regressor(model, q),
    }


@jax.jit
def wanted(model, q, qd, qdd):
    return (
        jd.inverse_dynamics(model, q, qd, qdd),
        jd.kinetic_energy(model, q, qd),
        jd.potential_energy(model, q),
    )


def parameters(model):
    pi = jd.inertial_parameters(model).ravel()
    return jnp.concatenate([pi, model.armature, model.damping, model.friction])


def theirs(oracle, q, qd, qdd):
    """Pinocchio's regressors, with our order of velocities and of links."""
    q, v, a = oracle.configuration(q), oracle.velocity(qd), oracle.velocity(qdd)
    own = np.concatenate([np.arange(10 * j - 10, 10 * j) for j in oracle.joints])
    Y = pin.computeJointTorqueRegressor(oracle.pin, oracle.data, q, v, a)
    kinetic = pin.computeKineticEnergyRegressor(oracle.pin, oracle.data, q, v)
    potential = pin.computePotentialEnergyRegressor(oracle.pin, oracle.data, q)
    Y = np.reshape(Y, (oracle.pin.nv, -1))[oracle.v]  # of a lone joint they give a row
    return Y[:, own], np.ravel(kinetic)[own], np.ravel(potential)[own]


@cites("MATH 11: τ = Y π", "MATH 15: Y π = τ to 1e-12", "T and U linear in π")
@pytest.mark.parametrize("shape", ["chain", "free tree"])
@by_numpy()
def test_columns_times_parameters(shape, link_by_link):
    k = 10 * len(SHAPES[shape][0])
    for seed in SEEDS:
        model = robot(seed, shape)
        args = state(model, seed)
        y, pi = found(model, *args), parameters(model)
        tau, kinetic, potential = wanted(model, *args)
        assert error(y["Y"] @ pi, tau) < 1e-12
        assert error(y["kinetic"] @ pi, kinetic) < 1e-12
        size = jnp.abs(y["potential"]) @ jnp.abs(pi[:k])  # U itself may be near zero
        assert abs(y["potential"] @ pi[:k] - potential) < 1e-12 * size


@cites("MATH 11: equal to Pinocchio's", "MATH 1.4: every joint")
@pytest.mark.parametrize("shape", SHAPES)
@by_numpy()
def test_columns_against_pinocchio(shape, link_by_link):
    k = 10 * len(SHAPES[shape][0])
    for seed in SEEDS:
        model = robot(seed, shape)
        args = state(model, seed)
        mine = found(model, *args)
        Y, kinetic, potential = theirs(Oracle(model), *args)
        assert error(mine["Y"][:, :k], Y) < 1e-10
        assert error(mine["kinetic"][:k], kinetic) < 1e-10
        assert error(mine["potential"], potential) < 1e-10


@cites("MATH 11: Y_ji = 0 unless j is i or between i and the base")
@by_numpy()
def test_zero_blocks(link_by_link):
    model = robot(0, "free tree")
    Y = np.array(found(model, *state(model))["Y"])
    Y = Y[:, : 10 * model.n_links].reshape(model.nv, model.n_links, 10)
    link = [0] * 6 + [1, 2, 3, 4]  # of each velocity
    for j, i in np.ndindex(model.nv, model.n_links):
        above, k = [], i
        while k >= 0:
            above.append(k)
            k = model.parent[k]
        assert Y[j, i].any() == (link[j] in above)


@cites("MATH 11: τ = Y π, in float32")
@by_numpy()
def test_single_precision():
    for seed in SEEDS:
        model = robot(seed, "chain", "float32")
        args = state(model, seed)
        y = found(model, *args)
        assert {x.dtype for x in y.values()} == {jnp.dtype("float32")}
        precise = jax.tree.map(lambda x: x.astype("float64"), (model, *args))
        for name, want in found(*precise).items():
            assert error(y[name], want) < 1e-5


@by_numpy()
def test_joints_can_be_left_out(link_by_link):
    model = robot(1, "tree")
    args = state(model)
    want = found(model, *args)["kinetic"]
    y, k = jd.kinetic_energy_regressor(model, *args[:2]), 10 * model.n_links
    np.testing.assert_allclose(y, want[:k], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(want[k:], np.r_[args[1] ** 2 / 2, np.zeros(2 * 5)])


@cites("MATH 10.1: ∂τ/∂π = Y", "MATH 11")
@by_numpy()
def test_slopes_of_inverse_dynamics():
    """Y is ∂τ/∂π, and Y π has the slopes of τ along q: forward and reverse mode."""
    model = robot(2, "chain")
    q, qd, qdd = state(model)
    pi = jd.inertial_parameters(model)

    def forces(pi, q):
        changed = jd.with_inertial_parameters(model, pi)
        return jd.inverse_dynamics(changed, q, qd, qdd)

    def linear(pi, q):
        Y = jd.regressor(model, q, qd, qdd, joints=True)
        return Y @ parameters(jd.with_inertial_parameters(model, pi))

    @partial(jax.jit, static_argnums=0)
    def forward(f, *along):
        return jax.jvp(f, (pi, q), along)[1]

    @jax.jit
    def reverse(w):
        return jax.vjp(linear, pi, q)[1](w)

    w, dq, d_pi = (jax.random.normal(jax.random.key(k), q.shape) for k in range(3))
    d_pi = jnp.outer(d_pi, jnp.linspace(-1, 1, 10))
    Y = found(model, q, qd, qdd)["Y"][:, : pi.size]
    assert error(forward(forces, d_pi, 0 * dq), Y @ d_pi.ravel()) < 1e-12
    assert error(forward(linear, d_pi, dq), forward(forces, d_pi, dq)) < 1e-12
    of_pi, of_q = reverse(w)
    assert error(of_pi.ravel(), w @ Y) < 1e-12
    assert error(of_q @ dq, w @ forward(linear, 0 * d_pi, dq)) < 1e-12


@cites("MATH 11: τ = Y π, for a batch")
def test_batches(link_by_link):
    """Of states, in more tiles than one."""
    model, size = robot(3, "chain"), TILE + 3
    args = jax.vmap(lambda key: jd.random_state(model, key))(
        jax.random.split(jax.random.key(0), size)
    )
    args = *args, jnp.flip(args[1], 0)
    Y = jax.jit(jax.vmap(jd.regressor, (None, 0, 0, 0)))(model, *args)
    for k in 0, 7, size - 1:
        with by_numpy():
            want = found(model, *(x[k] for x in args))["Y"]
        assert error(Y[k], want[:, : 10 * model.n_links]) < 1e-12


@cites("MATH 11: equal to Pinocchio's")
@pytest.mark.filterwarnings("ignore::jaxdenoc.ModelWarning")
@pytest.mark.parametrize(
    "path, floating",
    [
        ("panda_description/urdf/panda.urdf", False),
        ("ur_description/urdf/ur5_robot.urdf", False),
        ("solo_description/robots/solo12.urdf", True),
        ("talos_data/robots/talos_reduced.urdf", True),
    ],
    ids=["panda", "ur5", "solo12", "talos"],
)
def test_real_robots(path, floating, link_by_link):
    file = str(robot_file(path))
    model = jd.load(file, floating_base=floating, mimic="free")
    base = (pin.JointModelFreeFlyer(),) if floating else ()
    oracle = Oracle(model, pin.buildModelFromUrdf(file, *base))
    pi = jd.inertial_parameters(model).ravel()
    for seed in range(3):
        args = state(model, seed)
        Y = jd.regressor(model, *args)
        assert error(Y, theirs(oracle, *args)[0]) < 1e-10
        assert error(Y @ pi, oracle.inverse_dynamics(*args)) < 1e-10


@cites("MATH 11: equal to Pinocchio's")
def test_random_trees():
    """Twelve trees as one model with many roots, which is one compilation."""
    sizes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30]
    model, trees = forest(5, sizes)
    args = state(model, 5)
    Y = np.array(jd.regressor(model, *args))
    tau = Y @ jd.inertial_parameters(model).ravel()
    ends = np.cumsum(sizes).tolist()
    rest = Y.reshape(model.nv, model.n_links, 10).copy()
    for one, end in zip(trees, ends, strict=True):
        own = slice(end - one.nv, end)
        oracle, here = Oracle(one), [x[own] for x in args]
        block = Y[own, 10 * own.start : 10 * own.stop]
        assert error(block, theirs(oracle, *here)[0]) < 1e-10
        assert error(tau[own], oracle.inverse_dynamics(*here)) < 1e-10
        rest[own, own] = 0
    assert not rest.any()


def test_shapes_are_checked():
    model = robot(0, "chain")
    q, qd, _ = state(model)
    with pytest.raises(jd.ModelError, match=r"qd has shape \(5,\).*needs \(6,\)"):
        jd.regressor(model, q, qd[1:], qd[1:])
    with pytest.raises(jd.ModelError, match="qd has shape"):
        jd.kinetic_energy_regressor(model, q, qd[1:])
    with pytest.raises(jd.ModelError, match="q has shape"):
        jd.potential_energy_regressor(model, q[1:])
