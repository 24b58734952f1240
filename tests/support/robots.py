"""The robots that tests run on."""

from dataclasses import replace

import jax

import jaxdenoc as jd
from jaxdenoc.model import links_of

R = ("revolute",)
KINDS = ("revolute", "prismatic", "helical", "continuous")


def tree(seed, parents, floating_base=False):
    """A random tree of this shape; the kinds in turn, the same for every seed."""
    base = jd.robots.random_tree(jax.random.key(seed), 1, floating_base)
    chain = jd.robots.random_chain(jax.random.key(seed), len(parents))
    links = [*links_of(base), *links_of(chain)[1:]]
    names = [s.name for s in links]
    links = [
        replace(
            link,
            parent=names[p] if p >= 0 else None,
            kind=link.kind if link.kind == "free" else KINDS[i % len(KINDS)],
            pitch=0.1,
        )
        for i, (link, p) in enumerate(zip(links, parents, strict=True))
    ]
    return jd.build(links, name="tree")


CHAINS = {
    "one_link": lambda: jd.robots.random_chain(jax.random.key(1), 1, kinds=R),
    "mixed_chain": lambda: jd.robots.random_chain(jax.random.key(3), 6),
}
TREES = {"tree": lambda: tree(4, (-1, 0, 1, 0, 3))}
FREE = {"free_tree": lambda: tree(7, (-1, 0, 1, 0, 3), floating_base=True)}
FIXED = CHAINS | TREES
ALL = FIXED | FREE


def state(model, seed=0):
    q, qd = jd.random_state(model, jax.random.key(seed))
    qdd = jax.random.normal(jax.random.key(seed + 1), (model.nv,), q.dtype)
    return q, qd, qdd


def forest(seed, sizes):
    """Random trees, and all of them as one model with many roots."""
    trees = [
        jd.robots.random_tree(jax.random.key(1000 * seed + k), n)
        for k, n in enumerate(sizes)
    ]
    links = [_of_tree(k, s) for k, tree in enumerate(trees) for s in links_of(tree)]
    return jd.build(links, name=f"forest_{seed}"), trees


def _of_tree(k, link):
    parent = None if link.parent is None else f"{link.parent}@{k}"
    return replace(
        link, name=f"{link.name}@{k}", joint=f"{link.joint}@{k}", parent=parent
    )
