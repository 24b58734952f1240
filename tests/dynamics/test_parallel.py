"""Dynamics of logarithmic depth against the recursions [MATH 9]."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.scipy.linalg import cho_solve

import jaxdenoc as jd
from jaxdenoc.dynamics import _inverse
from jaxdenoc.dynamics._forward import _dense, _recursive
from jaxdenoc.dynamics._inverse import newton_euler
from jaxdenoc.dynamics._parallel import (
    CROSSOVER,
    chosen,
    forward_dynamics_parallel,
    inverse_dynamics_parallel,
)
from jaxdenoc.recursion import _parallel_riccati as plain
from jaxdenoc.recursion import _square_root as square_root
from jaxdenoc.recursion._parallel import levels
from jaxdenoc.recursion._six import Links, square

from ..support.by_numpy import by_numpy
from ..support.oracle import error
from ..support.robots import forest, state, tree

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("link_by_link")  # the recursions of trees

FORK = (-1, 0, 1, 0, 0, 4, 4, 5)  # three chains on one link, one more on one of these
ROBOTS = {
    **{f"chain_{n}": partial(jd.robots.random_chain, jr.key(n), n) for n in (1, 2, 3)},
    **{f"chain_{n}": partial(jd.robots.random_chain, jr.key(n), n) for n in (33, 200)},
    "tree": lambda: tree(4, FORK),
    "roots": lambda: forest(1, (1, 3, 12))[0],
    "free_body": lambda: tree(2, (-1,), floating_base=True),
    "free_tree": lambda: tree(7, FORK, floating_base=True),
}


def case(name):
    """A robot with armature and friction, its state, and wrenches on its links."""
    model = ROBOTS[name]()
    motors = 0.01 * jnp.arange(2.0, 2 + model.nv)
    where = lambda m: (m.armature, m.damping, m.friction)  # noqa: E731
    model = eqx.tree_at(where, model, (motors.at[0].set(0), motors, motors))
    return model, *state(model), jr.normal(jr.key(8), (model.n_links, 6))


@cites("MATH 9.1: sums in base axes", "MATH 9.2: the Riccati sweep as a scan")
@pytest.mark.parametrize("name", ROBOTS)
def test_the_scans_are_the_recursions(name):
    """Compiled where they are long or branch, and by NumPy."""
    model, *at = case(name)

    pairs = (
        (forward_dynamics_parallel, _recursive),
        (inverse_dynamics_parallel, newton_euler),
    )

    @jax.jit
    def run(*args):
        return [(scan(*args), recursion(*args)) for scan, recursion in pairs]

    with by_numpy(name not in ("chain_33", "chain_200", "roots", "free_tree")):
        results = run(model, *at)
    for found, known in results:
        assert error(found, known) < 1e-12


@cites("MATH 9.4: refinement, q̈ += solve(τ - ID(q̈))")
@by_numpy()
def test_refinement_and_no_wrenches():
    model, q, qd, tau, fext = case("free_tree")
    known = jd.forward_dynamics(model, q, qd, tau, fext)
    for method in "recursive", "parallel", "dense":
        refined = partial(jd.forward_dynamics, method=method, refine=1)
        assert error(refined(model, q, qd, tau, fext), known) < 1e-12
        assert error(refined(model, q, qd, tau), known) > 1e-3  # no wrenches
    spoiled = partial(_dense, refine=0)
    with pytest.MonkeyPatch.context() as patch:  # a solution that is off by a tenth
        patch.setattr("jaxdenoc.dynamics._forward.cho_solve",
                      lambda f, b: 1.1 * cho_solve(f, b))  # fmt: skip
        off = error(spoiled(model, q, qd, tau, fext), known)
        once, twice = (error(_dense(model, q, qd, tau, fext, k), known) for k in (1, 2))
    assert off > 0.05 and once < 0.2 * off and twice < 0.2 * once
    bias = jax.jit(inverse_dynamics_parallel)(model, q, qd, None, None)
    assert error(bias, jd.bias_forces(model, q, qd)) < 1e-12


def test_chains_of_a_tree():
    """Every link is in one chain, and no path to the base changes chains often."""
    rng = np.random.default_rng(0)
    comb = tuple(p for i in range(100) for p in (2 * i - 2 if i else -1, 2 * i))
    bush = tuple(int(rng.integers(-1, i)) if i else -1 for i in range(300))
    for parent, most in (comb, 2), (bush, 9), (FORK, 3), ((-1, 0, 1), 1), ((), 0):
        found = levels(parent)
        assert len(found) <= most
        rows = np.concatenate([np.zeros(0, int), *(level.rows for level in found)])
        assert sorted(rows) == list(range(len(parent)))
        seen = {-1}
        for rows, first in found:
            for before, i, begins in zip([-1, *rows], rows, first, strict=False):
                assert parent[i] in seen if begins else parent[i] == before
            seen |= set(rows.tolist())


@pytest.fixture(scope="module")
def links():
    """Random links with singular inertias, as rods have; some have an armature."""
    keys = jr.split(jr.key(0), 4)
    L = jr.normal(keys[0], (3, 5, 6, 6)).at[..., 5].set(0)
    phi, H = jr.normal(keys[1], (3, 5, 6, 6)), jr.normal(keys[2], (3, 5, 6))
    armature = jnp.maximum(jr.normal(keys[3], (3, 5)), 0)
    return [Links(square(L[k]), phi[k], H[k], armature[k]) for k in range(3)]


@cites("MATH 5.1: P⁺ = P - G D Gᵀ", "MATH 9.2, 9.3: leaves, with armature")
@by_numpy()
def test_a_leaf_is_one_step_of_the_sweep(links):
    link, other = links[0], square(links[1].phi)
    X = square(links[2].phi)
    F = jnp.einsum("rij,rj->ri", link.M + other + X, link.H)
    D = jnp.sum(F * link.H, axis=1) + link.armature
    P = link.M + other + X - F[:, :, None] * F[:, None, :] / D[:, None, None]
    known = link.phi @ P @ link.phi.mT
    found = plain.apply(plain.leaf(other, link), X)
    assert error(found, known) < 1e-12
    found = square_root.apply(square_root.leaf(other, link), links[2].phi)
    assert error(square(found), known) < 1e-12


@cites("MATH 9.2, 9.3: the combine is associative and has an identity")
@pytest.mark.parametrize("form", [plain, square_root])
@by_numpy()
def test_maps_compose(form, links):
    none = jnp.zeros((5, 6, 6))
    one, two, three = (form.leaf(none, link) for link in links)
    then, X = form.compose, links[0].phi
    X = square(X) if form is plain else X

    def same(a, b):
        """Whatever the factors are, their squares are the same."""
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            by_factor = form is square_root and x is not getattr(a, "A", None)
            x, y = (square(x), square(y)) if by_factor else (x, y)
            assert error(x, y) < 1e-11

    same(then(then(one, two), three), then(one, then(two, three)))
    same(form.apply(then(one, two), X), form.apply(two, form.apply(one, X)))
    identity = form.Map(jnp.broadcast_to(jnp.eye(6), none.shape), none, none)
    same(then(identity, one), one)
    same(then(one, identity), one)


def uneven(seed, n, spread):
    """A chain of links that differ by 10^±spread in mass."""
    model = jd.robots.random_chain(jr.key(seed), n, kinds=("revolute",))
    a, b = jr.uniform(jr.key(seed + 1), (2, n), minval=-spread, maxval=spread)
    mass, size = 10**a, 10 ** (b / 2 - spread / 4)
    where = lambda m: (m.mass, m.com, m.inertia, m.placement.translation)  # noqa: E731
    numbers = [
        x * s.reshape(-1, *[1] * (x.ndim - 1))
        for x, s in zip(where(model), (mass, size, mass * size**2, size), strict=True)
    ]
    return eqx.tree_at(where, model, numbers)


@cites("MATH 9.4: the square root form in float32")
def test_float32():
    """As good as the recursion; equal links first, then uneven ones."""
    n, draws = 40, 24
    models = [uneven(10 * k, n, spread=float(k >= 12)) for k in range(draws)]
    args = (
        jax.tree.map(lambda *x: jnp.stack(x), *models),
        jr.normal(jr.key(1), (3, draws, n)),
    )
    single = jax.tree.map(lambda x: x.astype(jnp.float32), args)
    double = jax.tree.map(lambda x: x.astype(jnp.float64), single)

    def run(function, model, state):
        batch = jax.vmap(lambda *a: function(*a, None))
        return np.array(jax.jit(batch)(model, *state), float)

    known = run(_recursive, *double)

    def errors(function, args):
        found = run(function, *args) - known
        found = np.linalg.norm(found, axis=1) / np.linalg.norm(known, axis=1)
        return found.reshape(2, -1)

    scan = errors(forward_dynamics_parallel, single)
    recursion = errors(_recursive, single)
    assert (np.median(scan, axis=1) < 2 * np.median(recursion, axis=1)).all()
    assert (scan.max(axis=1) < 20 * recursion.max(axis=1)).all()
    assert errors(forward_dynamics_parallel, double).max() < 1e-11


@cites("MATH 9: O(log n) depth")
@by_numpy()
def test_the_methods_of_the_public_functions(monkeypatch):
    """Value and gradient by each, and "auto" from the crossover on, for one robot."""
    model, q, qd, x, _ = case("chain_3")
    monkeypatch.setitem(CROSSOVER["inverse"], "cpu", 3)
    monkeypatch.setitem(CROSSOVER["forward"], "cpu", 4)
    asked = []
    scans = _inverse.in_tiles(
        newton_euler, alone=lambda *a: asked.append(1) or inverse_dynamics_parallel(*a)
    )
    monkeypatch.setitem(_inverse._WAYS, "auto", (scans, scans))
    for function in jd.forward_dynamics, jd.inverse_dynamics:
        known = jax.value_and_grad(lambda q: jnp.sum(function(model, q, qd, x)))(q)
        for method in "parallel", "auto":

            def total(q):
                return jnp.sum(function(model, q, qd, x, method=method))

            for a, b in zip(jax.value_and_grad(total)(q), known, strict=True):
                assert error(a, b) < 1e-12
    assert asked
    assert chosen("auto", "forward", model) == "recursive"
    with pytest.raises(ValueError, match="refine is -1"):
        jd.forward_dynamics(model, q, qd, x, refine=-1)


@cites("MATH 10.1: derivatives of forward dynamics")
@pytest.mark.parametrize(
    "parent, free, dtype",
    [((-1, 0, 0), True, jnp.float64), (range(-1, 9), False, jnp.float32)],
)
@by_numpy()
def test_derivatives_in_both_modes(parent, free, dtype):
    model = tree(5, tuple(parent), free)
    args = jax.tree.map(lambda x: x.astype(dtype), (model, *state(model)))
    some = lambda args: (args[0].mass, args[0].armature, *args[1:])  # noqa: E731
    along = [jnp.cos(jnp.arange(x.size, dtype=dtype)) for x in some(args)]
    tolerance = 1e-9 if dtype == jnp.float64 else 1e-3

    def work(function, leaves):
        return jnp.sum(jnp.sin(function(*eqx.tree_at(some, args, leaves), None)))

    scan, leaves = partial(work, forward_dynamics_parallel), list(some(args))
    forward = jax.jit(lambda x: jax.jvp(scan, (x,), (along,))[1])(leaves)
    reverse = jax.jit(jax.grad(scan))(leaves)
    known = jax.jit(jax.grad(partial(work, jd.forward_dynamics)))(leaves)
    terms = [float(g @ d) for g, d in zip(reverse, along, strict=True)]
    assert abs(float(forward) - sum(terms)) < tolerance * np.abs(terms).sum()
    for found, right in zip(reverse, known, strict=True):
        assert error(found, right) < tolerance
