"""What a model must fulfil, checked when it is built; each refusal names a remedy."""

from operator import attrgetter
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._errors import ModelError
from ._rows import DEGREES

if TYPE_CHECKING:
    from ._model import Model


def check_topology(model: "Model") -> None:
    n = model.n_links
    if n == 0:
        raise ModelError(f"Model '{model.name}' has no moving link. Add a joint to it.")
    for what, given in (
        ("joint names", model.joint_names),
        ("link names", model.link_names),
        ("joint kinds", model.joint_kinds),
    ):
        if len(given) != n:
            raise ModelError(
                f"Model '{model.name}' has {n} links but {len(given)} {what}. Give "
                "each link one name, and its joint one name and one kind."
            )
    hosts = model.frame_links
    if len(hosts) != len(model.frame_names) or not all(-1 <= i < n for i in hosts):
        raise ModelError(
            f"Model '{model.name}' has the frames {model.frame_names} on the links "
            f"{hosts}. Give each frame one link, from -1 (the base) to {n - 1}."
        )
    bodies = (model.base_name, *model.link_names, *model.frame_names)
    for what, names in ("joint", model.joint_names), ("link or frame", bodies):
        twice = sorted({s for s in names if names.count(s) > 1})
        if twice:
            raise ModelError(
                f"Model '{model.name}' has two of the {what} name '{twice[0]}'. "
                "Rename one: names are how links and joints are addressed."
            )
    for i, kind in enumerate(model.joint_kinds):
        if kind not in DEGREES:
            raise ModelError(
                f"Joint '{model.joint_names[i]}' is of kind '{kind}'. The kinds are "
                f"{', '.join(DEGREES)}; make it of these, or lock it (kind 'fixed')."
            )
        if kind == "free" and (i > 0 or model.parent.count(-1) > 1):
            raise ModelError(
                f"Joint '{model.joint_names[i]}' is free but is not the one root. A "
                "free base comes first and everything hangs from it; make one model "
                "for each robot."
            )


def check_shapes(model: "Model") -> None:
    n, v, k = model.n_links, model.nv, len(model.frame_names)
    shapes = {
        **{"mass": (n,), "com": (n, 3), "inertia": (n, 3, 3)},
        **{"axis": (n, 3), "pitch": (n,), "gravity": (3,), "friction_speed": ()},
        **dict.fromkeys(("armature", "damping", "friction"), (v,)),
        **dict.fromkeys(("q_lower", "q_upper", "qd_limit", "tau_limit"), (v,)),
        **{"placement.rotation": (n, 3, 3), "placement.translation": (n, 3)},
        **{"frame_placement.rotation": (k, 3, 3)},
        **{"frame_placement.translation": (k, 3)},
    }
    for path, shape in shapes.items():
        leaf = _leaf(model, path)
        if jnp.shape(leaf) != shape:
            raise ModelError(
                f"Model '{model.name}': {path} has shape {jnp.shape(leaf)}, but "
                f"{n} links with {v} velocities need {shape}."
            )


def check_numbers(model: "Model") -> None:
    """What can be seen to be wrong in the numbers, where they are numbers already."""
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(model)):
        return
    rounding = max(1e-4, 8 * float(jnp.finfo(model.mass.dtype).eps))
    numbers = {path: np.asarray(_leaf(model, path), float) for path in _NUMBERS}
    for path, values in numbers.items():
        bad = np.isnan(values) if path in LIMITS else ~np.isfinite(values)
        if bad.any():
            where = _owner(model, path, int(np.argwhere(bad)[0][0]) if bad.ndim else 0)
            raise ModelError(
                f"{where}: {path} is not a finite number. Correct it in the source."
            )
    for path in ("mass", "armature", "damping", "friction"):
        if (numbers[path] < 0).any():
            i = int(np.argmin(numbers[path]))
            raise ModelError(
                f"{_owner(model, path, i)}: {path} is {numbers[path][i]:g}, below "
                "zero. Give it a value of zero or more."
            )
    if not numbers["friction_speed"] > 0:
        raise ModelError(
            f"Model '{model.name}': friction_speed is {numbers['friction_speed']:g}. "
            "Give it a small positive speed, such as 0.01."
        )
    for low, high in ("q_lower", "q_upper"), (None, "qd_limit"), (None, "tau_limit"):
        least = numbers[low] if low else np.zeros(model.nv)
        if (least > numbers[high]).any():
            i = int(np.argmax(least > numbers[high]))
            raise ModelError(
                f"{_owner(model, high, i)}: {high} is {numbers[high][i]:g}, below "
                f"{low or 'zero'} at {least[i]:g}. Exchange them, or correct one."
            )
    for i, frame in enumerate(model.frame_names):
        R = numbers["frame_placement.rotation"][i]
        _check_rotation(R, rounding, f"Frame '{frame}'")
    for i, (link, joint) in enumerate(
        zip(model.link_names, model.joint_names, strict=True)
    ):
        if model.joint_kinds[i] != "free":
            _check_axis(numbers["axis"][i], rounding, f"Joint '{joint}'")
        _check_rotation(numbers["placement.rotation"][i], rounding, f"Joint '{joint}'")
        check_inertia(numbers["inertia"][i], numbers["mass"][i], f"Link '{link}'")


LIMITS = ("q_lower", "q_upper", "qd_limit", "tau_limit")
_NUMBERS = (
    *("mass", "com", "inertia", "axis", "pitch", "gravity", "friction_speed"),
    *("placement.rotation", "placement.translation"),
    *("frame_placement.rotation", "frame_placement.translation"),
    *("armature", "damping", "friction", *LIMITS),
)


def check_inertia(inertia: np.ndarray, mass: float, where: str) -> None:
    """Symmetric, and the moments of a body: no one larger than the other two.

    Files carry few digits and float32 not many more, so a part in a million passes,
    and so does noise of the size of the mass within a micrometre.
    """
    tolerance = 1e-6 * np.abs(inertia).max() + 1e-12 * mass
    if np.abs(inertia - inertia.T).max() > tolerance:
        raise ModelError(f"{where}: the inertia is not symmetric. Mirror its entries.")
    a, b, c = np.linalg.eigvalsh(inertia)
    if a < -tolerance or a + b < c - tolerance:
        raise ModelError(
            f"{where}: principal moments {a:g}, {b:g}, {c:g} belong to no body: "
            "none may be negative or larger than the sum of the other two. Check the "
            "inertia about the mass centre, its units and the signs of its products."
        )


def _check_axis(axis: np.ndarray, rounding: float, where: str) -> None:
    length = float(np.linalg.norm(axis))
    if abs(length - 1) > rounding:
        raise ModelError(
            f"{where}: the axis has length {length:g}. Give a direction as a unit "
            "vector."
        )


def _check_rotation(R: np.ndarray, rounding: float, where: str) -> None:
    if np.abs(R @ R.T - np.eye(3)).max() > rounding or np.linalg.det(R) < 0:
        raise ModelError(
            f"{where}: the placement's rotation is not one. Its columns are the "
            "joint's axes, orthogonal and right-handed."
        )


def _leaf(model: "Model", path: str):
    return attrgetter(path)(model)


def _owner(model: "Model", path: str, i: int) -> str:
    if path in ("mass", "com", "inertia"):
        return f"Link '{model.link_names[i]}'"
    if path in ("axis", "pitch", "placement.rotation", "placement.translation"):
        return f"Joint '{model.joint_names[i]}'"
    if path.startswith("frame_placement"):
        return f"Frame '{model.frame_names[i]}'"
    if path in ("gravity", "friction_speed"):
        return f"Model '{model.name}'"
    return f"Joint '{model.velocity_names[i]}'"
