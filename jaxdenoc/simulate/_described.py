"""What was asked for, in words and a fingerprint, to be recognised by another process.

A function is known by its name, its byte code, its defaults and what it closes over; an
object by its class, that class's `__call__` and its parts; an array by its bytes. What
a function looks up in its module is not followed, and the code of a library is its own
affair.
"""

import functools
import hashlib
import json
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._npz import digest

_LIBRARIES = ("jaxdenoc", "jax", "jaxlib", "equinox", "numpy", "diffrax")


def described(x: Any) -> Any:
    """A plain value as it is; of anything else, its name and fingerprint."""
    if x is None or isinstance(x, bool | int | float | str):
        return x
    text = json.dumps(_parts(x, ()), sort_keys=True)
    return f"{_name(x)} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _parts(x: Any, within: tuple) -> Any:
    """`x` as JSON, `within` being the ids of all that it is found in."""
    if x is None or isinstance(x, bool | int | float | str):
        return x
    if id(x) in within:  # a function that calls itself
        return _name(x)
    within = (*within, id(x))
    if isinstance(x, jax.Array | np.ndarray | np.generic):
        return _array(x)
    if isinstance(x, types.CodeType):
        return _code(x, within)
    return [_name(x), *(_parts(y, within) for y in _inside(x))]


def _inside(x: Any) -> list:
    """What makes `x` what it is, beside its name."""
    match x:
        case dict():
            return [list(row) for row in x.items()]
        case list() | tuple():
            return list(x)
        case set() | frozenset():
            return sorted(x, key=repr)
        case bytes() | complex() | slice():
            return [repr(x)]
        case functools.partial():
            return [x.func, x.args, x.keywords]
        case types.MethodType():
            return [x.__func__, x.__self__]
        case types.FunctionType():
            return _function(x)
        case type() | types.ModuleType():
            return []
    if hasattr(x, "__wrapped__"):  # by `jax.jit` and its like
        return [x.__wrapped__]
    call = vars(type(x)).get("__call__")
    return [call, getattr(x, "__dict__", {})]


def _function(f: types.FunctionType) -> list:
    library = (f.__module__ or "").partition(".")[0] in _LIBRARIES
    if library and "<locals>" not in f.__qualname__:
        return []  # its name says it
    held = [cell.cell_contents for cell in f.__closure__ or ()]
    return [f.__code__, f.__defaults__, f.__kwdefaults__, *held]


def _code(code: types.CodeType, within: tuple) -> list:
    inside = [_parts(c, within) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), inside]


def _array(x) -> list:
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    x = np.asarray(x)
    return [x.dtype.name, list(x.shape), digest({"": x})]


def _name(x: Any) -> str:
    named = x if hasattr(x, "__qualname__") else type(x)
    module = getattr(named, "__module__", "")
    return f"{module}.{named.__qualname__}"
