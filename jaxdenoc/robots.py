"""Robots to start with: the papers' arms, rod chains, and random chains and trees."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, PRNGKeyArray

from ._types import Number, Numbers
from .model import DHLink, Link, Model, build, from_dh

KINDS = ("revolute", "continuous", "prismatic", "helical")


def stanford_arm(*, dtype: DTypeLike | None = None) -> Model:
    """The six-axis Stanford arm, R R P R R R [Saha 1999, Table 3].

    The table is kept as printed, mass centres included (MATH 14, S9); gravity, which
    it leaves open, is along -z of the first frame.
    """
    right = np.pi / 2
    rows = [  # kind, a, b, alpha, theta, mass, mass centre to next origin, moments
        DHLink("R", 0.0, 0.2, -right, 0.0, 9.0, (0, -0.1, 0), (0.01, 0.02, 0.01)),
        DHLink("R", 0.0, 0.1, -right, 0.0, 6.0, (0, 0, 0), (0.05, 0.06, 0.01)),
        DHLink("P", 0.0, 0.0, 0.0, 0.0, 4.0, (0, 0, 0), (0.4, 0.4, 0.01)),
        DHLink("R", 0.0, 0.6, right, 0.0, 1.0, (0, -0.1, 0), (0.001, 0.001, 0.0005)),
        DHLink("R", 0.0, 0.0, -right, 0.0, 0.6, (0, 0, 0), (0.0005, 0.0005, 0.0002)),
        DHLink("R", 0.0, 0.0, 0.0, 0.0, 0.5, (0, 0, 0), (0.003, 0.001, 0.002)),
    ]
    return from_dh(rows, name="stanford_arm", dtype=dtype)


def planar_arm(*, dtype: DTypeLike | None = None) -> Model:
    """A three-link planar arm of thin rods, joints about z, gravity along -y.

    The papers draw one and print no parameters; these give torques of their range.
    """
    return _rods((0.3, 0.25, 0.22), (0.5, 0.4, 0.3), 0.0, "planar_arm", dtype)


def rod_chain(
    n: int,
    *,
    mass: Number = 1.0,
    length: Number = 1.0,
    axial_inertia: Number = 0.0,
    gravity: Numbers = (0.0, -9.81, 0.0),
    dtype: DTypeLike | None = None,
) -> Model:
    """n equal thin rods in a plane, joints about z, straight along x at q = 0.

    The chain of the condition-number note, whose rods have an `axial_inertia`, added
    to each moment, of 5e-5 kg m² and a mass of 2.20697 kg (MATH 14, C1).
    """
    name = f"rod_chain_{n}"
    return _rods([length] * n, [mass] * n, axial_inertia, name, dtype, gravity)


def _rods(lengths, masses, extra, name, dtype, gravity=(0.0, -9.81, 0.0)) -> Model:
    links = []
    for i, (l, m) in enumerate(zip(lengths, masses, strict=True)):
        across = m * l * l / 12
        links.append(
            Link(
                f"link{i + 1}",
                f"link{i}" if i else None,
                joint=f"joint{i + 1}",
                translation=(lengths[i - 1] if i else 0.0, 0.0, 0.0),
                mass=m,
                com=(l / 2, 0.0, 0.0),
                inertia=np.diag([0.0, across, across]) + extra * np.eye(3),
            )
        )
    return build(links, gravity=gravity, name=name, dtype=dtype)


def random_chain(
    key: PRNGKeyArray | Array,
    n: int,
    *,
    kinds: Sequence[str] = KINDS,
    dtype: DTypeLike | None = None,
) -> Model:
    """A chain of n links with random geometry, masses and joint kinds."""
    rng = _generator(key)
    links = _random_links(rng, range(-1, n - 1), kinds)
    return build(links, name=f"random_chain_{n}", dtype=dtype)


def random_tree(
    key: PRNGKeyArray | Array,
    n: int,
    floating_base: bool = False,
    *,
    kinds: Sequence[str] = KINDS,
    dtype: DTypeLike | None = None,
) -> Model:
    """A tree of n links, each hung from a random one before it.

    With a fixed base there may be several roots; a free base is link 0.
    """
    rng = _generator(key)
    lowest = 0 if floating_base else -1
    parents = [-1] + [int(rng.integers(max(lowest, i - 4), i)) for i in range(1, n)]
    links = _random_links(rng, parents, kinds, floating_base)
    return build(links, name=f"random_tree_{n}", dtype=dtype)


def _random_links(rng, parents, kinds, floating_base=False) -> list[Link]:
    links = []
    for i, p in enumerate(parents):
        kind = "free" if floating_base and i == 0 else str(rng.choice(kinds))
        second_moments = rng.uniform(0.2, 1.0, 3) * 0.02
        axes = _random_rotation(rng)
        moments = axes @ np.diag(second_moments.sum() - second_moments) @ axes.T
        links.append(
            Link(
                f"link{i + 1}",
                f"link{p + 1}" if p >= 0 else None,
                kind,
                f"joint{i + 1}",
                axis=rng.normal(size=3),
                pitch=rng.uniform(-0.2, 0.2) if kind == "helical" else 0.0,
                rotation=_random_rotation(rng),
                translation=rng.uniform(-0.3, 0.3, 3),
                mass=rng.uniform(0.5, 2.0),
                com=rng.uniform(-0.15, 0.15, 3),
                inertia=moments,
            )
        )
    return links


def _random_rotation(rng) -> np.ndarray:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.sign(np.linalg.det(Q))


def _generator(key) -> np.random.Generator:
    """NumPy's generator from a JAX key: a topology is drawn outside of tracing."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    return np.random.default_rng(np.asarray(key).ravel().tolist())
