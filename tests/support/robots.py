"""The robots that tests run on."""

import jax
import jaxdenoc as jd

R = ("revolute",)

CHAINS = {
    "one_link": lambda: jd.robots.random_chain(jax.random.key(1), 1, kinds=R),
    "revolute_chain": lambda: jd.robots.random_chain(jax.random.key(2), 5, kinds=R),
    "mixed_chain": lambda: jd.robots.random_chain(jax.random.key(3), 6),
    "stanford_arm": jd.robots.stanford_arm,
}
TREES = {
    "tree": lambda: jd.robots.random_tree(jax.random.key(4), 8),
    "forked_base": lambda: jd.robots.random_tree(jax.random.key(10), 6),
}
FREE = {
    "free_body": lambda: jd.robots.random_tree(jax.random.key(5), 1, True),
    "free_tree": lambda: jd.robots.random_tree(jax.random.key(6), 7, True),
}
FIXED = CHAINS | TREES
ALL = FIXED | FREE


def state(model, seed=0):
    q, qd = jd.random_state(model, jax.random.key(seed))
    qdd = jax.random.normal(jax.random.key(seed + 1), (model.nv,), q.dtype)
    return q, qd, qdd


def forest(seed, sizes):
    """Many random trees as one model with many roots, and the links of each tree."""
    links, slices = [], []
    for k, n in enumerate(sizes):
        tree = jd.robots.random_tree(jax.random.key(1000 * seed + k), n)
        start = len(links)
        links += [_renamed(link, k) for link in jd.model.links_of(tree)]
        slices.append(slice(start, len(links)))
    return jd.build(links, name=f"forest_{seed}"), slices


def _renamed(link, k):
    from dataclasses import replace

    parent = None if link.parent is None else f"{link.parent}@{k}"
    return replace(link, name=f"{link.name}@{k}", joint=f"{link.joint}@{k}", parent=parent)
