"""Which numbers of a robot are free: by name, by pattern, or by a model of booleans.

Names are those of the columns of `regressor(..., joints=True)`, "link3.m·cx" and
"joint2.friction", and, of a joint's place on its parent, "joint2.placement.x" and
"joint2.placement.rx" (a turn about the joint's own x axis).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

import jax
import numpy as np

from .._errors import ModelError
from ..model import Model
from ._parameters import AT_JOINTS, Parameters, all_names, parameters_of

PLACES = ("rx", "ry", "rz", "x", "y", "z")
LEAVES = ("mass", "com", "inertia")


@dataclass(frozen=True)
class Selection:
    """What is free: columns of the regressor, and numbers of placements, six a joint.

    names       of all of them: of the columns first
    """

    parameters: Parameters
    places: np.ndarray
    place_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.parameters.names, *self.place_names)

    def without(self, columns: np.ndarray) -> "Selection":
        """The same with these columns held."""
        keep = ~np.isin(self.parameters.columns, columns)
        names = np.array(self.parameters.names, object)[keep]
        left = Parameters(tuple(names), self.parameters.columns[keep])
        return Selection(left, self.places, self.place_names)


def selection(model: Model, chosen: str | Iterable[str] | Model) -> Selection:
    """What `chosen` names.

    "all" is all that torques are linear in. A name stands for itself, one of a link or
    joint for all of its own, one of the words links, armature, damping, friction and
    placement for all of that kind; and * ? [ ] match as in names of files. A model of
    booleans says of every leaf, or of every entry of it, whether it is free.
    """
    if isinstance(chosen, Model):
        return _of_mask(model, chosen)
    words = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    names, groups = _names(model), _groups(model)
    found: set[str] = set()
    for word in words:
        if not isinstance(word, str):
            raise ModelError(f"parameters has {word!r}, which is no name.")
        found.update(groups.get(word) or _matching(word, names))
        if not found:
            raise ModelError(_unknown(word, [*names, *groups]))
    return _of_names(model, found)


def _matching(word: str, names: list[str]) -> list[str]:
    places = "placement" in word  # which "joint2.*" does not ask for
    found = [
        s for s in names if fnmatchcase(s, word) and (places or ".placement." not in s)
    ]
    return [word] if word in names else found


def _names(model: Model) -> list[str]:
    return [*parameters_of(model).names, *_place_names(model)]


def _place_names(model: Model) -> list[str]:
    return [f"{j}.placement.{s}" for j in model.joint_names for s in PLACES]


def _groups(model: Model) -> dict[str, list[str]]:
    """The words that stand for many names."""
    dynamic, links = parameters_of(model).names, parameters_of(model, False).names
    groups: dict[str, list[str]] = {"all": list(dynamic), "links": list(links)}
    for owner in (*model.link_names, *model.joint_names):
        groups[owner] = [s for s in dynamic if s.rpartition(".")[0] == owner]
    for kind in AT_JOINTS:
        groups[kind] = [s for s in dynamic if s.endswith(f".{kind}")]
    return groups | {"placement": _place_names(model)}


def _unknown(word: str, known: list[str]) -> str:
    near = get_close_matches(word, known, 3, 0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return (
        f"No parameter is called or matches '{word}'.{hint} Names are like "
        f"'{known[0]}', patterns like '*.m', groups all, links, armature, damping, "
        "friction, placement."
    )


def _of_names(model: Model, found: set[str]) -> Selection:
    places = _place_names(model)
    at = np.array([i for i, s in enumerate(places) if s in found], int)
    columns = [c for c in parameters_of(model).columns if all_names(model)[c] in found]
    return _chosen(model, np.array(columns, int), at)


def _chosen(model: Model, columns: np.ndarray, places: np.ndarray) -> Selection:
    names, of_places = all_names(model), _place_names(model)
    parameters = Parameters(tuple(names[c] for c in columns), columns)
    return Selection(parameters, places, tuple(of_places[i] for i in places))


def _of_mask(model: Model, mask: Model) -> Selection:
    paths, shapes = zip(*jax.tree.flatten_with_path(model)[0], strict=True)
    flags = dict(jax.tree.flatten_with_path(mask)[0])
    if set(flags) != set(paths):
        raise ModelError(
            "parameters is a model, but of other leaves. Make it of this one: "
            "jax.tree.map(lambda x: False, model), and eqx.tree_at what is free."
        )
    free = {}
    for path, x in zip(paths, shapes, strict=True):
        name = jax.tree_util.keystr(path).lstrip(".")
        flag = np.asarray(flags[path])
        if flag.dtype != bool or flag.shape not in ((), np.shape(x)):
            raise ModelError(
                f"parameters.{name} has shape {flag.shape} and type {flag.dtype}: give "
                f"True or False, or booleans of shape {np.shape(x)}."
            )
        free[name] = np.broadcast_to(flag, np.shape(x))
    return _of_flags(model, free)


def _of_flags(model: Model, free: dict[str, np.ndarray]) -> Selection:
    known = {*LEAVES, *AT_JOINTS, "placement.rotation", "placement.translation"}
    for name, flags in free.items():
        if flags.any() and name not in known:
            raise ModelError(
                f"{name} cannot be identified; free can be {', '.join(sorted(known))}."
            )
    n = model.n_links
    of_links = np.concatenate([free[s].reshape(n, -1) for s in LEAVES], axis=1)
    turns = free["placement.rotation"].reshape(n, 9)
    for what, flags, owners in (
        ("mass, com and inertia", of_links, model.link_names),
        ("the placement's rotation", turns, model.joint_names),
    ):
        mixed = flags.any(axis=1) & ~flags.all(axis=1)
        if mixed.any():
            raise ModelError(
                f"'{owners[int(np.argmax(mixed))]}': {what} are free together or not "
                "at all. For some of a link's ten parameters give names, 'link1.m'."
            )
    flat = [np.repeat(of_links[:, 0], 10), *(free[s] for s in AT_JOINTS)]
    columns = np.flatnonzero(np.concatenate(flat))
    columns = columns[np.isin(columns, parameters_of(model).columns)]
    six = np.hstack([turns[:, :3], free["placement.translation"]])
    return _chosen(model, columns, np.flatnonzero(six))
