"""The two sweeps against a Python loop over the links."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdenoc.model import Tree
from jaxdenoc.recursion import _branches, base_to_tip, tip_to_base

cites = pytest.mark.cites

COMB = (-1, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14, 16, 16, 18)
PARENTS = {
    "one_link": (-1,),
    "chain": (-1, 0, 1, 2, 3),
    "two_roots": (-1, -1),
    "crossed_numbers": (-1, 0, 0, 1, 1, 2),
    "interleaved_roots": (-1, -1, 0, 1, 2, 3, 3, 2),
    "star": (-1, 0, 0, 0, 0, 0, 0),
    "wide_star": (-1, *[0] * 14),  # more branches than a step does one by one
    "unequal_branches": (-1, 0, 1, 0, 3, 4, 2, 2, 7),
    "comb": COMB,  # a fork at every second link: more groups than go side by side
}


def random_parents(seed, n):
    rng = np.random.default_rng(seed)
    return (-1, *(int(rng.integers(-1, i)) for i in range(1, n)))


PARENTS |= {
    f"random_{n}_{s}": random_parents(s, n) for s, n in [(0, 5), (1, 9), (2, 14)]
}


def links_of(parent, seed=0):
    """A 2×2 matrix, a vector and a number per link: affine maps do not commute."""
    rng, n = np.random.default_rng(seed), len(parent)
    A = np.eye(2) + 0.4 * rng.normal(size=(n, 2, 2))
    return tuple(map(jnp.asarray, (A, rng.normal(size=(n, 2)), rng.normal(size=n))))


START = jnp.array([0.7, -0.3]), jnp.array(0.2)


def step(x, link):
    """Not linear, not commutative; carries a pytree, leaves another one."""
    (p, s), (A, b, k) = x, link
    p = A @ p + b * (1 + s)  # not zero at zero, where an inward sweep starts
    s = s * k + p[0]
    return (p, s), {"p": p, "s": jnp.sin(s) + k}


@partial(jax.jit, static_argnums=1)
def naive_outward(links, parent):
    x, y = {-1: START}, []
    for i, p in enumerate(parent):
        x[i], out = step(x[p], jax.tree.map(lambda a: a[i], links))
        y.append(out)
    return jax.tree.map(lambda *a: jnp.stack(a), *y)


@partial(jax.jit, static_argnums=1)
def naive_inward(links, parent):
    zero = jax.tree.map(jnp.zeros_like, START)
    total = dict.fromkeys(range(-1, len(parent)), zero)
    y = [None] * len(parent)
    for i in reversed(range(len(parent))):
        message, y[i] = step(total[i], jax.tree.map(lambda a: a[i], links))
        total[parent[i]] = jax.tree.map(jnp.add, total[parent[i]], message)
    return total[-1], jax.tree.map(lambda *a: jnp.stack(a), *y)


def outward(links, parent):
    return base_to_tip(step, START, links, Tree(parent))


def inward(links, parent):
    return tip_to_base(step, jax.tree.map(jnp.zeros_like, START), links, Tree(parent))


def by_link_outward(links, parent):
    return _branches._outward_by_link(step, START, links, parent)


def by_link_inward(links, parent):
    zero = jax.tree.map(jnp.zeros_like, START)
    return _branches._inward_by_link(step, zero, links, parent)


def by_branch_outward(links, parent):
    return _branches._outward_by_branch(step, START, links, parent)


def by_branch_inward(links, parent):
    zero = jax.tree.map(jnp.zeros_like, START)
    return _branches._inward_by_branch(step, zero, links, parent)


def same(found, expected, tol=1e-12):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert x.shape == y.shape
        scale = max(float(jnp.abs(y).max()), 1)
        np.testing.assert_allclose(x, y, rtol=0, atol=tol * scale)


OUTWARD = {"public": outward, "link": by_link_outward, "branch": by_branch_outward}
INWARD = {"public": inward, "link": by_link_inward, "branch": by_branch_inward}


def ways(walks, parent):
    """The public sweep is one of the two walks, unless the tree is a chain."""
    return walks.values() if Tree(parent).is_chain else list(walks.values())[1:]


@pytest.mark.parametrize("parent", PARENTS.values(), ids=PARENTS)
@cites("MATH 2: outward, from the parent to the link")
def test_base_to_tip_is_the_plain_loop(parent):
    links = links_of(parent)
    expected = naive_outward(links, parent)
    for walk in ways(OUTWARD, parent):
        same(jax.jit(walk, static_argnums=1)(links, parent), expected)


@pytest.mark.parametrize("parent", PARENTS.values(), ids=PARENTS)
@cites("MATH 3.1: inward, with sums over the children")
def test_tip_to_base_is_the_plain_loop(parent):
    links = links_of(parent)
    expected = naive_inward(links, parent)
    for walk in ways(INWARD, parent):
        same(jax.jit(walk, static_argnums=1)(links, parent), expected)


@pytest.mark.parametrize("name", ["chain", "unequal_branches"])
@pytest.mark.parametrize("walks", [OUTWARD, INWARD], ids=["outward", "inward"])
def test_gradients_of_all_walks_agree_with_the_loop(name, walks):
    parent = PARENTS[name]
    links = links_of(parent, seed=3)
    naive = naive_outward if walks is OUTWARD else naive_inward

    def gradient(walk):
        def f(links):
            leaves = jax.tree.leaves(walk(links, parent))
            return sum(jnp.sum(jnp.sin(x)) for x in leaves)

        return jax.jit(jax.grad(f))(links)

    expected = gradient(naive)
    for walk in ways(walks, parent):
        same(gradient(walk), expected, 1e-11)


@pytest.mark.parametrize("name", ["chain", "unequal_branches"])
def test_jit_and_vmap(name):
    parent = PARENTS[name]
    batch = [links_of(parent, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *batch)
    for sweep, naive in (outward, naive_outward), (inward, naive_inward):
        together = jax.jit(jax.vmap(lambda links: sweep(links, parent)))(stacked)
        for k, links in enumerate(batch):
            same(jax.tree.map(lambda a: a[k], together), naive(links, parent))


@pytest.mark.parametrize("parent", PARENTS.values(), ids=PARENTS)
def test_groups_hold_every_link_once_and_parents_first(parent):
    seen = {-1}
    for group in _branches.groups(parent):
        assert group.rows.shape[0] == len(group.roots)
        before = set(seen)
        for root, row in zip(group.roots, group.rows, strict=True):
            assert root in before  # of an earlier group: the branches go side by side
            for above, i in zip([root, *row[:-1]], row, strict=True):
                assert parent[i] == above
                assert i not in seen
                seen.add(int(i))
    assert seen == set(range(-1, len(parent)))


def test_a_comb_has_too_many_groups_and_an_open_hand_few():
    assert len(_branches.groups(COMB)) > _branches.MOST_GROUPS
    hand = (-1, 0, 1, 0, 3, 0, 5, 0, 7)  # four fingers of two links
    assert len(_branches.groups(hand)) == 2


@pytest.mark.parametrize("most", [0, 100])
def test_the_number_of_groups_chooses_the_walk(monkeypatch, most):
    """Whichever is chosen, the numbers are the same."""
    used = []
    for way in ("_outward_by_link", "_outward_by_branch"):
        f = getattr(_branches, way)

        def spy(*a, f=f, way=way):
            used.append(way)
            return f(*a)

        monkeypatch.setattr(_branches, way, spy)
    monkeypatch.setattr(_branches, "MOST_GROUPS", most)
    parent = PARENTS["unequal_branches"]
    links = links_of(parent)
    same(outward(links, parent), naive_outward(links, parent))
    same(inward(links, parent), naive_inward(links, parent))
    assert used == ["_outward_by_link" if most == 0 else "_outward_by_branch"]


def test_a_sweep_keeps_float32():
    parent = PARENTS["unequal_branches"]
    links, start = jax.tree.map(
        lambda a: a.astype("float32"), (links_of(parent), START)
    )
    for way in ("_outward_by_branch", "_outward_by_link",
                "_inward_by_branch", "_inward_by_link"):  # fmt: skip
        walk = getattr(_branches, way)
        out = jax.eval_shape(
            lambda x, links: walk(step, x, links, parent), start, links
        )
        assert {x.dtype for x in jax.tree.leaves(out)} == {jnp.dtype("float32")}
