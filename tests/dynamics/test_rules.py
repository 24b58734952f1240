"""The closed derivative rules of inverse and forward dynamics: MATH 10.1."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import jaxdenoc as jd
from jaxdenoc._tiles import TILE
from jaxdenoc.recursion import on_manifold

from ..support.by_numpy import by_numpy
from ..support.oracle import error
from ..support.robots import ALL, state, tree

pytestmark = pytest.mark.usefixtures("interpreted")
NAMES = ("inverse_dynamics", "forward_dynamics")
# what no joint force depends on
APART = ("q_lower", "q_upper", "qd_limit", "tau_limit", "frame_placement")


def with_joint_losses(model):
    x = jnp.linspace(0.1, 0.4, model.nv)
    where = lambda m: (m.armature, m.damping, m.friction)  # noqa: E731
    return eqx.tree_at(where, model, (x, 2 * x, x + 1))


def arguments(model, seed=0):
    fext = jax.random.normal(jax.random.key(seed), (model.n_links, 6))
    return model, *state(model, seed), fext


def weighted(name):
    def loss(model, q, qd, x, fext):
        tau = getattr(jd, name)(model, q, qd, x, fext)
        return jnp.cos(jnp.arange(model.nv, dtype=q.dtype)) @ tau

    return loss


def one_by_one(args):
    """For each leaf, a random direction along which it alone moves."""
    leaves, structure = jax.tree.flatten(args)
    stacked = []
    for k, x in enumerate(leaves):
        one = jax.random.normal(jax.random.key(k), x.shape)
        stacked.append(jnp.zeros((len(leaves), *x.shape)).at[k].set(one))
    directions = jax.tree.unflatten(structure, stacked)

    def along_manifolds(model):  # rotations and axes move along themselves
        return jax.vmap(lambda d: jax.jvp(on_manifold, (args[0],), (d,))[1])(model)

    return along_manifolds(directions[0]), *directions[1:]


@pytest.mark.slow
@pytest.mark.cites("MATH 10.1: JVP and VJP of FD by the implicit function")
@pytest.mark.parametrize(
    "robot, name",
    [
        ("mixed_chain", "inverse_dynamics"),
        ("mixed_chain", "forward_dynamics"),
        ("free_tree", "forward_dynamics"),
    ],
)
def test_every_number_in_both_modes(robot, name, link_by_link):
    """Closed rules against plain forward mode, along each leaf and each argument."""
    args = arguments(with_joint_losses(ALL[robot]()))
    loss = weighted(name)
    directions = one_by_one(args)

    @jax.jit
    def forward(args, directions):
        return jax.vmap(lambda d: jax.jvp(loss, args, d)[1])(directions)

    closed = np.array(forward(args, directions))
    gradient = jax.jit(jax.grad(loss, (0, 1, 2, 3, 4)))(*args)
    reverse = [
        jnp.sum(g * d[k])
        for k, (g, d) in enumerate(
            zip(jax.tree.leaves(gradient), jax.tree.leaves(directions), strict=True)
        )
    ]
    with jd.autodiff_rules("plain"):
        plain = np.array(forward(args, directions))
    scale = np.abs(plain).max()
    assert np.abs(closed - plain).max() < 1e-12 * scale
    assert np.abs(np.array(reverse) - plain).max() < 1e-12 * scale


@pytest.mark.slow
@pytest.mark.cites("MATH 10.1: second order by the rule of the solve")
@pytest.mark.parametrize("name", [*NAMES, "solve"])
def test_second_order(name):
    """Along two directions, against plain autodiff: reverse mode and both modes of it,
    and for inverse dynamics, which the others are made of, the other two orders too."""
    model = with_joint_losses(tree(5, (-1, 0, 1)))
    at = model.mass, model.inertia, *state(model)
    u, v = (
        tuple(jax.random.normal(key, x.shape) for x in at)
        for key in jax.random.split(jax.random.key(3))
    )

    def f(mass, inertia, q, qd, x):
        numbers = mass, (inertia + jnp.swapaxes(inertia, 1, 2)) / 2
        other = eqx.tree_at(lambda m: (m.mass, m.inertia), model, numbers)
        if name == "solve":
            y = jd.factorize(other, q).solve(x * qd)
        else:
            y = getattr(jd, name)(other, q, qd, x)
        return jnp.cos(jnp.arange(3.0)) @ y

    def forward(f, along):
        return lambda *at: jax.jvp(f, at, along)[1]

    def reverse(f, along):
        def slope(*at):
            found = jax.grad(f, range(len(at)))(*at)
            return sum(jnp.sum(a * b) for a, b in zip(found, along, strict=True))

        return slope

    with jd.autodiff_rules("plain"):
        want = jax.jit(forward(forward(f, u), v))(*at)
    for inner in (reverse, forward) if name == "inverse_dynamics" else (reverse,):
        for outer in (forward, reverse):
            found = jax.jit(outer(inner(f, u), v))(*at)
            np.testing.assert_allclose(found, want, rtol=1e-11)


def states(model):
    """A state like any other, and those at which formulas are known to break."""
    q, qd, x = state(model)
    still, zero = jnp.zeros(model.nv), jd.neutral(model)
    fall = jd.forward_dynamics(model, q, still, still)
    return {
        "any": (q, qd, x),
        "zero": (zero, still, still),
        "at rest": (q, still, x),
        "no force": (q, qd, still),
        "free fall": (q, still, fall),
    }


def at_random(args):
    """A direction in which everything moves, rotations and axes along themselves."""
    keys = iter(jax.random.split(jax.random.key(6), len(jax.tree.leaves(args))))
    model, *rest = jax.tree.map(lambda x: jax.random.normal(next(keys), x.shape), args)
    return jax.jvp(on_manifold, (args[0],), (model,))[1], *rest


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_finite_and_right_everywhere_and_nowhere_forgotten(name, link_by_link):
    """Every number of the model and of the state: a finite slope, and some slope.

    Among the robots is one whose axes are all parallel and stretched out, and one with
    the identity for a quaternion; friction is taken at zero velocity. Plain forward
    mode is the witness that the slopes are right.
    """
    names, seen = set(), set()
    loss = weighted(name)
    for model in (
        with_joint_losses(jd.robots.rod_chain(3)),
        with_joint_losses(tree(4, (-1, 0, 1))),
        with_joint_losses(ALL["free_tree"]()),
    ):
        gradient = jax.jit(jax.grad(loss, (0, 1, 2, 3, 4)))
        plain = jax.jit(lambda at, along: jax.jvp(loss, at, along)[1])
        for case, here in states(model).items():
            args = model, *here, jnp.zeros((model.n_links, 6))
            found = gradient(*args)
            for path, slope in jax.tree_util.tree_leaves_with_path(found):
                where = jax.tree_util.keystr(path)
                assert np.isfinite(slope).all(), (case, where)
                names.add(where)
                if np.any(slope != 0):
                    seen.add(where)
            along = at_random(args)
            terms = jax.tree.leaves(jax.tree.map(jnp.multiply, found, along))
            with jd.autodiff_rules("plain"):
                want = plain(args, along)
            scale = sum(jnp.sum(jnp.abs(x)) for x in terms)
            assert abs(sum(map(jnp.sum, terms)) - want) < 1e-11 * scale, case
    forgotten = {s for s in names - seen if not any(a in s for a in APART)}
    assert not forgotten


@pytest.mark.parametrize("name", NAMES)
def test_rotations_and_axes_stay_what_they_are(name):
    """Gradients have no part that leads off the rotations and the unit vectors."""
    args = arguments(ALL["mixed_chain"]())
    gradient = jax.grad(weighted(name))(*args)
    R, dR = args[0].placement.rotation, gradient.placement.rotation
    inner = jnp.swapaxes(R, 1, 2) @ dR
    assert np.abs(inner + jnp.swapaxes(inner, 1, 2)).max() < 1e-12
    assert np.abs(dR).max() > 1e-2
    assert np.abs(jnp.sum(args[0].axis * gradient.axis, axis=1)).max() < 1e-12
    assert np.abs(gradient.axis).max() > 1e-2


@pytest.mark.slow
@by_numpy(False)
def test_a_batch_of_gradients():
    """More than a tile of them: `vmap` of `grad`, and `grad` of a sum over `vmap`."""
    model = with_joint_losses(tree(4, (-1, 0, 1)))
    size, f = TILE + 3, jd.forward_dynamics
    q, qd = jax.vmap(lambda key: jd.random_state(model, key))(
        jax.random.split(jax.random.key(0), size)
    )
    x = jax.random.normal(jax.random.key(1), qd.shape)

    def loss(mass, q, qd, x):
        heavier = eqx.tree_at(lambda m: m.mass, model, mass)
        return jnp.sum(f(heavier, q, qd, x) ** 2)

    gradient = jax.grad(loss, (0, 1, 2, 3))
    each = jax.jit(jax.vmap(gradient, (None, 0, 0, 0)))(model.mass, q, qd, x)
    for k in (0, 9, size - 1):
        want = gradient(model.mass, q[k], qd[k], x[k])
        for mine, other in zip(each, want, strict=True):
            assert error(mine[k], other) < 1e-12

    @jax.jit
    def total(mass, q, qd, x):
        return jnp.sum(jax.vmap(loss, (None, 0, 0, 0))(mass, q, qd, x))

    of_sum = jax.grad(total, (0, 1, 2, 3))(model.mass, q, qd, x)
    assert error(of_sum[0], jnp.sum(each[0], axis=0)) < 1e-12
    for mine, other in zip(of_sum[1:], each[1:], strict=True):
        assert error(mine, other) < 1e-12


def test_other_ways_to_differentiate():
    """`linearize`, `eqx.filter_grad`, `jacfwd` and `jacrev` under `vmap`."""
    model = tree(4, (-1, 0, 1))
    q, qd, tau = state(model)
    dq, dqd, dtau = jd.forward_dynamics_derivatives(model, q, qd, tau)

    def f(q, qd, tau):
        return jd.forward_dynamics(model, q, qd, tau)

    _, line = jax.linearize(f, q, qd, tau)
    assert error(line(tau, q, qd), dq @ tau + dqd @ q + dtau @ qd) < 1e-12
    for mode in (jax.jacfwd, jax.jacrev):
        found = jax.vmap(mode(f, (0, 1, 2)))(q[None], qd[None], tau[None])
        for mine, other in zip(found, (dq, dqd, dtau), strict=True):
            assert error(mine[0], other) < 1e-12
    slopes = eqx.filter_grad(lambda m: jnp.sum(jd.forward_dynamics(m, q, qd, tau)))(
        model
    )
    assert error(slopes.armature, -(dtau.sum(0)) * f(q, qd, tau)) < 1e-12


def test_the_context_chooses_and_jit_takes_notice():
    model = tree(2, (-1, 0))
    q, qd, tau = state(model)
    slope = jax.jit(jax.grad(lambda q: jnp.sum(jd.forward_dynamics(model, q, qd, tau))))
    closed = slope(q)

    def program():
        return str(jax.make_jaxpr(slope)(q))

    assert "linear[" in program()
    with jd.autodiff_rules("plain"):
        assert "linear[" not in program()
        assert error(slope(q), closed) < 1e-12
        with jd.autodiff_rules("closed"):
            assert "linear[" in program()
    assert "linear[" in program()
    with pytest.raises((ValueError, TypeCheckError), match=r"'closed'.*'plain'"):
        jd.autodiff_rules("open")  # type: ignore[arg-type]
