"""The Jacobians of inverse and forward dynamics in closed form: MATH 10.1, 10.2."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxdenoc as jd
from jaxdenoc.derivatives import _dynamics

from ..support.by_numpy import by_numpy
from ..support.oracle import Oracle, error, robot_file
from ..support.robots import ALL, forest, state

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
}
NAMES = ("inverse_dynamics", "forward_dynamics")


def with_joint_losses(model):
    """Armature, damping and friction that are not zero."""
    x = jnp.linspace(0.1, 0.4, model.nv, dtype=model.mass.dtype)
    where = lambda m: (m.armature, m.damping, m.friction)  # noqa: E731
    return eqx.tree_at(where, model, (x, 2 * x, x + 1))


def by_autodiff(function, model, q, qd, x, fext):
    """Plain forward mode through the recursions, along the tangent space of q."""

    def moved(dq, qd, x):
        return function(model, jd.integrate(model, q, dq), qd, x, fext)

    with jd.autodiff_rules("plain"):
        return jax.jit(jax.jacfwd(moved, (0, 1, 2)))(jnp.zeros_like(qd), qd, x)


@pytest.mark.slow
@pytest.mark.cites("MATH 10.2: closed-form derivatives of ID", "MATH 10.1: of FD")
@pytest.mark.parametrize("name", ["mixed_chain", "free_tree"])
@by_numpy()
def test_against_plain_autodiff(name, link_by_link):
    """With everything that a joint force can depend on; see `test_against_autodiff.py`
    for other shapes."""
    model = with_joint_losses(ALL[name]())
    q, qd, x = state(model)
    fext = jax.random.normal(jax.random.key(3), (model.n_links, 6))
    for function in NAMES:
        closed = getattr(jd, f"{function}_derivatives")(model, q, qd, x, fext)
        plain = by_autodiff(getattr(jd, function), model, q, qd, x, fext)
        for mine, other in zip(closed, plain, strict=True):
            assert error(mine, other) < 1e-12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxdenoc.ModelWarning")
@pytest.mark.cites("MATH 10.2, 10.1: computeRNEADerivatives, computeABADerivatives")
@pytest.mark.parametrize("name", ROBOTS)
def test_real_robots(name):
    path, floating = ROBOTS[name]
    file = str(robot_file(path))
    model = jd.load(file, floating_base=floating, mimic="free")
    none = jnp.zeros(model.nv)
    model = eqx.tree_at(lambda m: (m.damping, m.friction), model, (none, none))
    args = (pin.JointModelFreeFlyer(),) if floating else ()
    oracle = Oracle(model, pin.buildModelFromUrdf(file, *args))
    for function in NAMES:
        derivatives = jax.jit(getattr(jd, f"{function}_derivatives"))
        for seed in range(3):
            args = state(model, seed)
            theirs = getattr(oracle, f"{function}_derivatives")(*args)
            for mine, other in zip(derivatives(model, *args), theirs, strict=True):
                assert error(mine, other) < 1e-10


@pytest.mark.slow
@pytest.mark.cites("MATH 10.2, 10.1, on trees of 1 to 40 links and every joint kind")
def test_random_trees():
    """Twenty trees as one model with twenty roots, each beside a model of its own."""
    sizes = np.random.default_rng(0).permutation(np.r_[1:41:2]).tolist()
    model, trees = forest(0, sizes)
    q, qd, x = state(model)
    found = {}
    for function in NAMES:
        derivatives = jax.jit(getattr(jd, f"{function}_derivatives"))
        found[function] = derivatives(model, q, qd, x)
    for tree, end in zip(trees, np.cumsum(sizes).tolist(), strict=True):
        own = slice(end - tree.nv, end)
        oracle = Oracle(tree)
        for function in NAMES:
            args = q[own], qd[own], x[own]
            theirs = getattr(oracle, f"{function}_derivatives")(*args)
            for mine, other in zip(found[function], theirs, strict=True):
                scale = max(np.abs(other).max(), 1e-3)
                assert np.abs(mine[own, own] - other).max() < 1e-10 * scale


@pytest.mark.cites("MATH 10.2: ∂τ/∂q at q̇ = 0, g = 0 is (∂ℳ/∂q) q̈")
@by_numpy()
def test_at_rest_without_weight():
    model = ALL["mixed_chain"]()
    model = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros(3))
    q, qd, qdd = state(model)
    dq, dqd, M = jd.inverse_dynamics_derivatives(model, q, 0 * qd, qdd)
    dM = jd.mass_matrix_sensitivity(model, q)
    assert error(dq, jnp.einsum("kij,j->ik", dM, qdd)) < 1e-12
    assert np.abs(dqd).max() < 1e-12
    assert error(M, jd.mass_matrix(model, q)) < 1e-12
    inverse = jd.forward_dynamics_derivatives(model, q, qd, qdd)[2]
    assert error(inverse, jd.factorize(model, q).inverse()) < 1e-12


@by_numpy()
def test_central_differences():
    model = with_joint_losses(ALL["tree"]())
    args = state(model)
    h = 1e-6
    found = jd.forward_dynamics_derivatives(model, *args)
    for k, mine in enumerate(found):
        columns = []
        for i in range(model.nv):
            up, down = list(args), list(args)
            up[k], down[k] = args[k].at[i].add(h), args[k].at[i].add(-h)
            slope = jd.forward_dynamics(model, *up) - jd.forward_dynamics(model, *down)
            columns.append(slope / (2 * h))
        assert error(mine, np.stack(columns, axis=1)) < 1e-7


@by_numpy()
def test_long_robots_solve_by_columns(monkeypatch):
    """Products with ℳ⁻¹ and sweeps column by column give the same."""
    model = ALL["free_tree"]()
    args = state(model)
    short = jd.forward_dynamics_derivatives(model, *args)
    jax.clear_caches()
    monkeypatch.setattr(_dynamics, "LONG", 0)
    for mine, other in zip(
        jd.forward_dynamics_derivatives(model, *args), short, strict=True
    ):
        assert error(mine, other) < 1e-12
    jax.clear_caches()


@pytest.mark.parametrize("function", NAMES)
def test_in_batches(function):
    """Over states and over robots, more than a tile of them, in float32 too."""
    model = ALL["mixed_chain"]()
    derivatives = getattr(jd, f"{function}_derivatives")
    size = 131
    q, qd = jax.vmap(lambda key: jd.random_state(model, key))(
        jax.random.split(jax.random.key(0), size)
    )
    x = jax.random.normal(jax.random.key(1), qd.shape)
    found = jax.jit(jax.vmap(derivatives, (None, 0, 0, 0)))(model, q, qd, x)
    masses = model.mass[None] * jnp.linspace(1, 2, size)[:, None]
    many = jax.tree.map(lambda a: jnp.stack([a] * size), model)
    many = eqx.tree_at(lambda m: m.mass, many, masses)
    varied = jax.jit(jax.vmap(derivatives))(many, q, qd, x)
    for k in (0, 7, 130):
        with by_numpy():
            want = derivatives(model, q[k], qd[k], x[k])
        for mine, other in zip(found, want, strict=True):
            assert error(mine[k], other) < 1e-12
        heavy = eqx.tree_at(lambda m: m.mass, model, masses[k])
        with by_numpy():
            want = derivatives(heavy, q[k], qd[k], x[k])
        for mine, other in zip(varied, want, strict=True):
            assert error(mine[k], other) < 1e-12
    single = jax.tree.map(lambda a: a.astype(jnp.float32), (model, q[7], qd[7], x[7]))
    with by_numpy():
        exact = derivatives(*jax.tree.map(lambda a: a.astype(jnp.float64), single))
    for mine, other in zip(derivatives(*single), exact, strict=True):
        assert mine.dtype == jnp.float32
        assert error(mine, other) < 2e-5
