"""Models in files: every array as it is, names and topology as JSON, no pickle."""

import json
import os
import uuid
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import ModelError, ModelWarning
from ..model import Model, Placement, Tree

_FORMAT, _VERSION = "jaxdenoc.Model", 1
_STATIC = ("joint_kinds", "joint_names", "link_names", "frame_names", "frame_links")
_NESTED = ("placement", "frame_placement")
_HEAD = "static"  # the name of the JSON in the archive
_BROKEN = (  # all that NumPy, zip and JSON raise over bytes that are not theirs
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError),
    *(ValueError, TypeError, LookupError, AttributeError, RuntimeError),
)


def save(model: Model, path: str | os.PathLike) -> None:
    """Write a model to one `.npz` file, which is there whole or not at all."""
    if not isinstance(model, Model):
        raise ModelError(f"Only a Model can be saved, not {type(model)}.")
    model.__check_init__()  # `restore` would refuse it, and then it is too late
    path = Path(path)
    arrays = _arrays(model)
    head = {
        "format": _FORMAT,
        "version": _VERSION,
        "parent": model.parent,
        **{s: getattr(model, s) for s in (*_STATIC, "base_name", "name")},
        "dtypes": {name: a.dtype.name for name, a in arrays.items()},
    }
    text = np.frombuffer(json.dumps(head).encode(), np.uint8)
    plain = {name: _plain(a) for name, a in arrays.items()}
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # beside it: one disk
    try:
        with open(part, "xb") as file:
            np.savez(file, allow_pickle=False, **{_HEAD: text}, **plain)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise ModelError(
            f"{path} cannot be written: {error.strerror}. Choose another place."
        ) from error
    finally:
        part.unlink(missing_ok=True)


def restore(path: str | os.PathLike) -> Model:
    """The model that `save` wrote, to the last bit."""
    path = Path(path)
    head, saved = _read(path)
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


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            head = json.loads(file[_HEAD].tobytes())
            if head["format"] != _FORMAT:
                raise ValueError(f"its format is {head['format']}")
            if head["version"] > _VERSION:
                raise ModelError(
                    f"{path.name} is of format version {head['version']}, and this "
                    f"library reads up to {_VERSION}. Update jaxdenoc."
                )
            names = [name for name in file.files if name != _HEAD]
            return head, {s: file[s].view(head["dtypes"][s]) for s in names}
    except FileNotFoundError:
        raise ModelError(
            f"{path} is not there. Give the path of a saved model."
        ) from None
    except ModelError:
        raise
    except _BROKEN as error:
        raise ModelError(
            f"{path.name} is not a whole archive of a model ({error}). Give a file "
            "that `jd.save` wrote, or save the model again."
        ) from error


def _arrays(model: Model) -> dict[str, np.ndarray]:
    """The leaves by their dotted paths."""
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {".".join(k.name for k in path): np.asarray(x) for path, x in leaves}


def _plain(a: np.ndarray) -> np.ndarray:
    """What NumPy has no type for, such as bfloat16, as the integers of its bits."""
    return a if a.dtype.kind == "f" else a.view(f"u{a.itemsize}")


def _model(head: dict[str, Any], arrays: dict[str, jax.Array]) -> Model:
    fields: dict[str, Any] = {s: tuple(head[s]) for s in _STATIC}
    fields |= {s: str(head[s]) for s in ("base_name", "name")}
    nested: dict[str, dict[str, jax.Array]] = {s: {} for s in _NESTED}
    for path, array in arrays.items():
        outer, _, inner = path.rpartition(".")
        (nested[outer] if outer else fields)[inner] = array
    fields |= {s: Placement(**parts) for s, parts in nested.items()}
    return Model(tree=Tree(tuple(head["parent"])), **fields)
