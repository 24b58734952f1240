"""Models in files: every array as it is, names and topology as JSON, no pickle."""

import os
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import ModelError, ModelWarning
from .._npz import Format
from ..model import Model, Placement, Tree

_FORMAT = Format("jaxdenoc.Model", 1, "static", "a model", "`jd.save`")
_STATIC = ("joint_kinds", "joint_names", "link_names", "frame_names", "frame_links")
_NESTED = ("placement", "frame_placement")


def save(model: Model, path: str | os.PathLike) -> None:
    """Write a model to one `.npz` file, which is there whole or not at all."""
    if not isinstance(model, Model):
        raise ModelError(f"Only a Model can be saved, not {type(model)}.")
    model.__check_init__()  # `restore` would refuse it, and then it is too late
    head = {
        "parent": model.parent,
        **{s: getattr(model, s) for s in (*_STATIC, "base_name", "name")},
    }
    _FORMAT.write(path, head, _arrays(model))


def restore(path: str | os.PathLike) -> Model:
    """The model that `save` wrote, to the last bit."""
    path = Path(path)
    head, saved = _FORMAT.read(path)
    arrays = {name: jnp.asarray(a) for name, a in saved.items()}
    if any(arrays[name].dtype != a.dtype for name, a in saved.items()):
        warnings.warn(
            f"{path.name} holds float64, and JAX is set to float32: the numbers are "
            "rounded. To keep them, call jax.config.update('jax_enable_x64', True).",
            ModelWarning,
            stacklevel=2,
        )
    try:
        return _model(head, arrays)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(
            f"{path.name} holds no sound model: {error} Save it again."
        ) from error


def _arrays(model: Model) -> dict[str, np.ndarray]:
    """The leaves by their dotted paths."""
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {".".join(k.name for k in path): np.asarray(x) for path, x in leaves}


def _model(head: dict[str, Any], arrays: dict[str, jax.Array]) -> Model:
    fields: dict[str, Any] = {s: tuple(head[s]) for s in _STATIC}
    fields |= {s: str(head[s]) for s in ("base_name", "name")}
    nested: dict[str, dict[str, jax.Array]] = {s: {} for s in _NESTED}
    for path, array in arrays.items():
        outer, _, inner = path.rpartition(".")
        (nested[outer] if outer else fields)[inner] = array
    fields |= {s: Placement(**parts) for s, parts in nested.items()}
    return Model(tree=Tree(tuple(head["parent"])), **fields)
