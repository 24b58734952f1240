"""The devices of a batch, and how its arguments get there.

JAX would bring them there as well, but one by one and in a millisecond or two, in
which the program does ten thousand robots. What all robots share is sent once, and
remembered while it lives.

Where the devices are those of several processes, each process has a part of a global
array: such an array is moved as a whole, by all of them, or not at all. Any other
argument must be the same in every process, and each takes its part of it.
"""

import weakref
from collections.abc import Sequence
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec


def as_mesh(devices: Sequence | Mesh | None) -> Mesh:
    """The devices, all that JAX has if not given, as a mesh that `shard_map` takes."""
    if isinstance(devices, Mesh):
        return _automatic(devices)
    return _in_a_row(tuple(jax.devices() if devices is None else devices))


@cache
def _in_a_row(devices: tuple) -> Mesh:
    if not devices:
        raise ValueError("devices is empty; give at least one, or None for all.")
    return Mesh(np.array(devices), ("batch",))


@cache
def _automatic(mesh: Mesh) -> Mesh:
    """With axes that say where arrays are, but not what may be done with them."""
    return Mesh(mesh.devices, mesh.axis_names)


@cache
def dealt(mesh: Mesh, axis: int = 0) -> NamedSharding:
    """One axis dealt out to all devices."""
    return NamedSharding(mesh, PartitionSpec(*(None,) * axis, mesh.axis_names))


@cache
def copied(mesh: Mesh) -> NamedSharding:
    """The same for all devices."""
    return NamedSharding(mesh, PartitionSpec())


def known_to_be_on(mesh: Mesh, shared: list, rows: list) -> tuple[list, list]:
    """The same, in a program that JAX can see to be one for these devices.

    It looks for them in what a program is made of, but not inside of a linear map
    (`_linear.py`), which may be all that is left of a batch in its gradient.
    """

    def any_way(x):  # rows are dealt out later on, as tiles
        free = PartitionSpec(*[PartitionSpec.UNCONSTRAINED] * x.ndim)
        return lax.with_sharding_constraint(x, NamedSharding(mesh, free))

    shared = [lax.with_sharding_constraint(x, copied(mesh)) for x in shared]
    return shared, [any_way(x) for x in rows]


def placed(arrays: list, axes: list, mesh: Mesh) -> list:
    """The arrays where the program wants them, so far as that can be done evenly."""
    found, rows, targets = list(arrays), [], []
    for k, (x, a) in enumerate(zip(arrays, axes, strict=True)):
        if isinstance(x, bool | int | float | complex):
            continue  # sent with the call itself
        if a is None:
            found[k] = _everywhere(x, copied(mesh))
            continue
        target = _target(np.shape(x), a, mesh)
        if target is not None and not _is(x, target):
            rows.append(k)
            targets.append(target)
    for k, x in zip(rows, _sent([arrays[k] for k in rows], targets), strict=True):
        found[k] = x
    return found


def _target(shape: tuple, axis: int, mesh: Mesh) -> NamedSharding | None:
    """Where an array is to be that is mapped along `axis`, if that can be said."""
    if not -len(shape) <= axis < len(shape):
        return None  # refused later on, in words
    if shape[axis] % mesh.size == 0:
        return dealt(mesh, axis % len(shape))
    return None if _of_this_process(mesh) else copied(mesh)


def _of_this_process(mesh: Mesh) -> bool:
    return copied(mesh).is_fully_addressable


_SENT: dict[tuple, tuple] = {}  # ids of array and sharding: weak reference, the copy


def _everywhere(x, target: NamedSharding):
    """`x` on all devices."""
    key = id(x), id(target)
    if key in _SENT:
        return _SENT[key][1]
    if _is(x, target):
        return x
    (there,) = _sent([x], [target])
    if isinstance(x, jax.Array):
        alive = weakref.ref(x, lambda _: _SENT.pop(key, None))
        _SENT[key] = alive, there
    return there


def _is(x, there: NamedSharding) -> bool:
    if not isinstance(x, jax.Array):
        return False
    here = x.sharding
    return here.is_equivalent_to(there, x.ndim) and not _is_explicit(here)


def _is_explicit(sharding) -> bool:
    """Whether the sharding is part of the type, which JAX follows through a program."""
    mesh = getattr(sharding, "mesh", None)
    return mesh is not None and AxisType.Explicit in mesh.axis_types


def _sent(arrays: list, targets: list) -> list:
    if not arrays:
        return []
    if targets[0].is_fully_addressable:
        return jax.device_put([_on_host(x) for x in arrays], targets)
    return [_of_parts(x, s) for x, s in zip(arrays, targets, strict=True)]


def _of_parts(x, target: NamedSharding):
    """A global array; of what is the same in every process, each takes its parts."""
    if isinstance(x, jax.Array) and not x.is_fully_addressable:
        return jax.device_put(x, target)
    if _is_only_of_jax(x):
        return jax.device_put(x, target)
    x = np.asarray(x)
    return jax.make_array_from_callback(x.shape, target, lambda part: x[part])


def _on_host(x):
    """From an array on a CPU it is quickest by way of NumPy."""
    first = jax.local_devices(backend="cpu")[0]
    here = isinstance(x, jax.Array) and x.sharding.device_set == {first}
    return np.asarray(x) if here and not _is_only_of_jax(x) else x


def _is_only_of_jax(x) -> bool:
    """Of a type that NumPy does not have."""
    return isinstance(x, jax.Array) and (
        x.aval.weak_type or jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    )
