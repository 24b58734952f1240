"""A small builder: links with names in, a `Model` out.

Every way into the library ends here. The links may come in any order; they leave
branch by branch, parents first. Fixed joints vanish: the link is merged into its
parent and its name stays as a frame.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from .._errors import ModelError, ModelWarning
from .._types import Number, Numbers
from ._check import check_inertia
from ._model import Model, Placement
from ._rows import DEGREES
from ._tree import Tree


@dataclass(frozen=True)
class Link:
    """A link, and the joint that carries it.

    `rotation` and `translation` place the joint in the parent's frame; the link's
    frame sits there at q = 0. `axis` is in that frame, of any length. `com` and
    `inertia` (about the mass centre) are in the link's frame. `kind` is revolute,
    continuous, prismatic, helical (with a `pitch`, metres per radian), fixed, or
    free, which only the first link on the base may be.
    """

    name: str
    parent: str | None = None  # None: the base
    kind: str = "revolute"
    joint: str = ""  # if empty, the link's name with "_joint" behind it
    axis: Numbers = (0.0, 0.0, 1.0)
    pitch: Number = 0.0
    rotation: Numbers = field(default_factory=lambda: np.eye(3))
    translation: Numbers = (0.0, 0.0, 0.0)
    mass: Number = 0.0
    com: Numbers = (0.0, 0.0, 0.0)
    inertia: Numbers = field(default_factory=lambda: np.zeros((3, 3)))
    armature: Number = 0.0
    damping: Number = 0.0
    friction: Number = 0.0
    lower: Number = -np.inf
    upper: Number = np.inf
    speed: Number = np.inf
    effort: Number = np.inf

    @property
    def joint_name(self) -> str:
        return self.joint or f"{self.name}_joint"


def build(
    links: Iterable[Link],
    *,
    gravity: Numbers = (0.0, 0.0, -9.81),
    name: str = "robot",
    base: str = "base",
    dtype: DTypeLike | None = None,
) -> Model:
    """A model from links. `dtype` is the default float type of JAX if not given."""
    if dtype is not None and not jnp.issubdtype(dtype, jnp.floating):
        raise ModelError(f"dtype is {dtype}. Give a float type, such as 'float32'.")
    links = branch_by_branch([_checked(link) for link in links], base)
    moving, frames = merge_fixed(links, base)
    if not moving:
        raise ModelError(f"Model '{name}' has no moving link. Add a joint to it.")
    number = {base: -1} | {link.name: i for i, link in enumerate(moving)}

    def array(x):
        return jnp.asarray(np.asarray(x, float), dtype=dtype)

    def of_velocities(attribute, free):
        values = []
        for link in moving:
            many = link.kind == "free"
            values += [free] * 6 if many else [getattr(link, attribute)]
        return array(values)

    return Model(
        mass=array([s.mass for s in moving]),
        com=array([s.com for s in moving]),
        inertia=array([s.inertia for s in moving]),
        placement=_placement(moving, array),
        axis=array([s.axis for s in moving]),
        pitch=array([s.pitch for s in moving]),
        armature=of_velocities("armature", 0.0),
        damping=of_velocities("damping", 0.0),
        friction=of_velocities("friction", 0.0),
        friction_speed=array(0.01),
        q_lower=of_velocities("lower", -np.inf),
        q_upper=of_velocities("upper", np.inf),
        qd_limit=of_velocities("speed", np.inf),
        tau_limit=of_velocities("effort", np.inf),
        gravity=array(gravity),
        frame_placement=_placement(frames, array),
        tree=Tree(tuple(number[s.parent or base] for s in moving)),
        joint_kinds=tuple(s.kind for s in moving),
        joint_names=tuple(s.joint_name for s in moving),
        link_names=tuple(s.name for s in moving),
        frame_names=tuple(s.name for s in frames),
        frame_links=tuple(number[s.parent or base] for s in frames),
        base_name=base,
        name=name,
    )


def branch_by_branch(links: list[Link], base: str) -> list[Link]:
    """The links depth first, so that a branch is a run of consecutive numbers."""
    children: dict[str, list[Link]] = {base: []}
    for link in links:
        if link.name in children:
            raise ModelError(f"Two links have the name '{link.name}'. Rename one.")
        children[link.name] = []
    for link in links:
        if (link.parent or base) not in children:
            raise ModelError(
                f"Link '{link.name}' hangs from '{link.parent}', which is not there. "
                f"Name one of the links, or the base '{base}'."
            )
        children[link.parent or base].append(link)

    order, waiting = [], children[base][::-1]
    while waiting:
        link = waiting.pop()
        order.append(link)
        waiting += children[link.name][::-1]
    if len(order) < len(links):
        lost = next(s.name for s in links if s not in order)
        raise ModelError(
            f"Link '{lost}' hangs from itself through its parents, not from the base "
            f"'{base}'. Break the loop: a model is a tree."
        )
    return order


def merge_fixed(links: list[Link], base: str) -> tuple[list[Link], list[Link]]:
    """The moving links, and the fixed ones as frames of those they are merged into."""
    moving: dict[str, Link] = {}
    frames: dict[str, Link] = {}
    for link in links:
        host = frames.get(link.parent or base)
        if host is not None:  # the parent is itself merged: measure from its host
            R, t = np.asarray(host.rotation), np.asarray(host.translation)
            link = replace(
                link,
                parent=host.parent,
                rotation=R @ link.rotation,
                translation=t + R @ np.asarray(link.translation, float),
            )
        if link.kind == "fixed":
            frames[link.name] = link
            if link.parent in moving:
                moving[link.parent] = _merged(moving[link.parent], link)
        else:
            moving[link.name] = link
    return list(moving.values()), list(frames.values())


def _merged(host: Link, guest: Link) -> Link:
    """Two rigid bodies as one: masses, first moments and second moments add.

    It is the whole that must be a possible body. Files do give small fixed parts
    moments that no body has; that is said, and what they add up to is checked later.
    """
    where = f"Link '{guest.name}', merged into '{host.name}'"
    try:
        check_inertia(np.asarray(guest.inertia, float), guest.mass, where)
    except ModelError as impossible:
        warnings.warn(str(impossible), ModelWarning, stacklevel=2)
    R, t = np.asarray(guest.rotation), np.asarray(guest.translation, float)
    mass = host.mass + guest.mass
    if guest.mass == 0 and not np.any(guest.inertia):
        return host
    c1, c2 = np.asarray(host.com, float), t + R @ np.asarray(guest.com, float)
    com = (host.mass * c1 + guest.mass * c2) / mass if mass > 0 else c1
    inertia = np.asarray(host.inertia) + R @ np.asarray(guest.inertia) @ R.T
    for m, c in (host.mass, c1 - com), (guest.mass, c2 - com):
        inertia = inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
    return replace(host, mass=mass, com=com, inertia=inertia)


def _checked(link: Link) -> Link:
    """The link with a unit axis, or why it is refused."""
    where = f"Joint '{link.joint_name}'"
    if link.kind not in (*DEGREES, "fixed"):
        raise ModelError(
            f"{where} is of kind '{link.kind}', which is not supported. Make it of "
            f"{', '.join(DEGREES)} joints, or fixed."
        )
    for what in ("axis", "translation", "com"):
        if np.shape(getattr(link, what)) != (3,):
            raise ModelError(f"Link '{link.name}': {what} needs three numbers.")
    for what in ("rotation", "inertia"):
        if np.shape(getattr(link, what)) != (3, 3):
            raise ModelError(f"Link '{link.name}': {what} needs 3 rows of 3 numbers.")
    if not (np.isfinite(link.mass) and link.mass >= 0):
        raise ModelError(
            f"Link '{link.name}': mass is {link.mass:g}. Give it zero or more "
            "kilograms."
        )
    if not np.all(np.isfinite(link.inertia)):
        raise ModelError(f"Link '{link.name}': inertia is not finite. Correct it.")
    if link.kind in ("fixed", "free"):
        return link
    axis = np.asarray(link.axis, float)
    length = np.linalg.norm(axis)
    if not (np.isfinite(length) and length > 0):
        raise ModelError(f"{where}: the axis is {axis}. Give it a direction.")
    return replace(link, axis=axis / length)


def _placement(links: list[Link], array) -> Placement:
    return Placement(
        array(np.reshape([s.rotation for s in links], (-1, 3, 3))),
        array(np.reshape([s.translation for s in links], (-1, 3))),
    )


def links_of(model: Model) -> list[Link]:
    """The links of a model, frames as fixed links: `build` turned round."""
    numbers = {
        s: np.asarray(getattr(model, s), float)
        for s in ("mass", "com", "inertia", "axis", "pitch", "armature", "damping",
                  "friction", "q_lower", "q_upper", "qd_limit", "tau_limit")
    }  # fmt: skip
    rows = model.rows
    links = []
    for i, name in enumerate(model.link_names):
        k = rows.velocity[rows.body[i]]
        links.append(
            Link(
                name,
                model.link_names[model.parent[i]] if model.parent[i] >= 0 else None,
                model.joint_kinds[i],
                model.joint_names[i],
                rotation=np.asarray(model.placement.rotation[i], float),
                translation=np.asarray(model.placement.translation[i], float),
                lower=numbers["q_lower"][k],
                upper=numbers["q_upper"][k],
                speed=numbers["qd_limit"][k],
                effort=numbers["tau_limit"][k],
                **{
                    s: numbers[s][i]
                    for s in ("mass", "com", "inertia", "axis", "pitch")
                },
                **{s: numbers[s][k] for s in ("armature", "damping", "friction")},
            )
        )
    for i, (name, host) in enumerate(
        zip(model.frame_names, model.frame_links, strict=True)
    ):
        links.append(
            Link(
                name,
                model.link_names[host] if host >= 0 else None,
                "fixed",
                rotation=np.asarray(model.frame_placement.rotation[i], float),
                translation=np.asarray(model.frame_placement.translation[i], float),
            )
        )
    return links
