"""Random models of every joint kind, and when two models are the same."""

import jax
import numpy as np
import pytest

from jaxdenoc.model import Link, build

KINDS = ("revolute", "continuous", "prismatic", "helical", "fixed")


def _rotation(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.linalg.det(Q))


def _inertia(rng):
    spread = rng.normal(size=(3, 3))
    second = spread @ spread.T  # of a body: tr(S) 1 - S
    return np.trace(second) * np.eye(3) - second


def _limits(rng, kind):
    if kind == "fixed" or rng.random() < 0.3:
        return {}
    limits = {"speed": rng.uniform(1, 9), "effort": rng.uniform(1, 99)}
    if kind != "continuous":
        limits |= {"lower": -rng.uniform(), "upper": rng.uniform()}
    return limits


@pytest.fixture
def random_model():
    def make(seed, floating_base=False, n=12):
        rng = np.random.default_rng(seed)
        links = []
        for i in range(n):
            free = floating_base and i == 0
            kind = "free" if free else KINDS[i % 5 if i < 5 else rng.integers(5)]
            above = [None, *links][0 if free else rng.integers(floating_base, i + 1)]
            place = {} if kind == "fixed" and rng.random() < 0.2 else {
                "rotation": _rotation(rng), "translation": rng.normal(size=3)
            }  # fmt: skip
            links.append(
                Link(
                    f'<link {i}> & "co"',
                    above.name if above else None,
                    kind,
                    f"joint {i}'s <é>",
                    axis=(0, 0, 1) if free else rng.normal(size=3),
                    pitch=rng.normal() if kind == "helical" else 0.0,
                    mass=rng.uniform(1, 2),
                    com=rng.normal(size=3),
                    inertia=_inertia(rng),
                    damping=0.0 if free else rng.uniform(),
                    friction=0.0 if free else rng.uniform(),
                    **place,
                    **({} if free else _limits(rng, kind)),
                )
            )
        return build(links, name="<odd> & 'even'", base='the "base"')

    return make


@pytest.fixture
def assert_same():
    def check(a, b, tolerance=0.0):
        assert jax.tree.structure(a) == jax.tree.structure(b)
        leaves = jax.tree_util.tree_leaves_with_path(a)
        for (path, x), y in zip(leaves, jax.tree.leaves(b), strict=True):
            assert x.dtype == y.dtype, path
            np.testing.assert_allclose(
                x, y, rtol=tolerance, atol=tolerance, err_msg=str(path)
            )

    return check
