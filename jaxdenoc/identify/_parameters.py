"""The numbers in which joint forces are linear: their names, values and places."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._errors import ModelError
from ..model import Model, inertial_parameters, with_inertial_parameters

TEN = ("m", "m·cx", "m·cy", "m·cz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
AT_JOINTS = ("armature", "damping", "friction")


@dataclass(frozen=True)
class Parameters:
    """Some of the columns of `regressor(..., joints=True)`, in their order.

    names       "link3.m·cx", "joint2.friction"
    columns     which columns they are, of 10 n + 3 nv
    """

    names: tuple[str, ...]
    columns: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def of(self, model: Model) -> np.ndarray:
        """The values that the model has."""
        return all_values(model)[self.columns]

    def put(self, model: Model, values: np.ndarray) -> Model:
        """The model with these values; what is not among them stays to the last bit."""
        every = all_values(model)
        every[self.columns] = values
        k, v = 10 * model.n_links, model.nv
        if np.any(self.columns < k):
            model = _with_links(model, every[:k].reshape(-1, 10), self._links(k))
        for i, name in enumerate(AT_JOINTS):
            at = k + i * v
            if np.any((self.columns >= at) & (self.columns < at + v)):
                x = jnp.asarray(every[at : at + v], getattr(model, name).dtype)
                model = eqx.tree_at(lambda m, s=name: getattr(m, s), model, x)
        return model

    def _links(self, k: int) -> np.ndarray:
        return np.unique(self.columns[self.columns < k] // 10)


def _with_links(model: Model, pi: np.ndarray, links: np.ndarray) -> Model:
    """The model with rows `links` of π; other links are not even rounded."""
    found = with_inertial_parameters(model, pi)

    def leaves(m):
        return m.mass, m.com, m.inertia

    pairs = zip(leaves(model), leaves(found), strict=True)
    return eqx.tree_at(leaves, model, [_some_rows(a, b, links) for a, b in pairs])


def _some_rows(old, new, rows):
    found = np.array(old)
    found[rows] = np.asarray(new)[rows]
    return jnp.asarray(found)


def parameters_of(model: Model, joints: bool | Sequence[str] = True) -> Parameters:
    """Those of the links, and of the joints that are asked for.

    `joints` are some of "armature", "damping" and "friction", or True for all three. A
    free base has no motor: none for its six velocities.
    """
    if isinstance(joints, str):
        joints = (joints,)
    kinds = (AT_JOINTS if joints else ()) if isinstance(joints, bool) else joints
    for kind in kinds:
        if kind not in AT_JOINTS:
            raise ModelError(
                f"joints has '{kind}'; it can have {', '.join(AT_JOINTS)}."
            )
    names = all_names(model)
    k, v = 10 * model.n_links, model.nv
    driven = range(6 if model.floating_base else 0, v)
    at = [
        k + AT_JOINTS.index(s) * v + j for s in AT_JOINTS if s in kinds for j in driven
    ]
    columns = np.array([*range(k), *at])
    return Parameters(tuple(names[c] for c in columns), columns)


def all_names(model: Model) -> list[str]:
    """Of every column of `regressor(..., joints=True)`."""
    of_links = [f"{link}.{s}" for link in model.link_names for s in TEN]
    return of_links + [f"{j}.{s}" for s in AT_JOINTS for j in model.velocity_names]


def all_values(model: Model) -> np.ndarray:
    """Of every column, in double precision."""
    with jax.enable_x64(True):
        pi = np.asarray(inertial_parameters(in_double(model)))
    parts = [pi, *(getattr(model, s) for s in AT_JOINTS)]
    return np.concatenate([np.asarray(x, float).ravel() for x in parts])


def in_double(model: Model) -> Model:
    """The model in NumPy's double precision, for programs under `enable_x64`."""
    return jax.tree.map(lambda x: np.asarray(x, float), model)


def typical(model: Model) -> np.ndarray:
    """How large a parameter of each column can be expected to be, for weighing them.

        m ,   m l ,   m l²      m and l of a link, and of the robot where it has none

    with l² the sum of its moments about its joint per mass, and for joints the largest
    of the robot's own numbers, or 1.
    """
    pi = all_values(model)[: 10 * model.n_links].reshape(-1, 10)
    m = np.where(pi[:, 0] > 0, pi[:, 0], max(float(pi[:, 0].mean()), 0.0) or 1.0)
    square = np.maximum(pi[:, 4] + pi[:, 6] + pi[:, 9], 0) / m
    common = float(square.mean()) or 1.0
    l = np.sqrt(np.maximum(square, 1e-4 * common))[:, None]
    m = m[:, None]
    of_links = np.hstack([m, *[m * l] * 3, *[m * l**2] * 6]).ravel()
    at_joints = [np.asarray(getattr(model, s), float) for s in AT_JOINTS]
    sizes = [np.full(x.shape, np.abs(x).max(initial=0) or 1.0) for x in at_joints]
    return np.concatenate([of_links, *sizes])
