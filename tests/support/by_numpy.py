"""Programs of JAX run by NumPy, operation by operation, instead of compiled.

To compile the sweeps of a small robot takes seconds; to run their few thousand
operations once in NumPy takes a tenth of one. JAX traces and differentiates as ever, so
what runs is the same program, only not by XLA. What is not listed here goes to XLA
alone, or the whole program does where it has keys or effects in it.
"""

import operator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.lax import GatherScatterMode, RoundingMethod

try:  # JAX's own parts, not documented: without them everything is compiled
    from jax._src import pjit
    from jax._src.array import ArrayImpl

    COMPILED = pjit._pjit_call_impl_python
    HERE = version("jax").startswith("0.10.")
except (ImportError, AttributeError):
    HERE = False

OPAQUE = ("random_", "threefry", "pure_callback", "io_callback", "debug_callback")


@contextmanager
def by_numpy(on=True):
    """Within it, what would be compiled is interpreted, unless it has been compiled.

    `by_numpy(False)` is for what is to be compiled all the same.
    """
    if not HERE:
        yield
        return
    before = pjit._pjit_call_impl_python
    pjit._pjit_call_impl_python = _call if on else COMPILED
    try:
        yield
    finally:
        pjit._pjit_call_impl_python = before


def _call(*args, jaxpr, **params):
    if _opaque(jaxpr.jaxpr):
        return COMPILED(*args, jaxpr=jaxpr, **params)
    with np.errstate(all="ignore"):
        out = run(jaxpr.jaxpr, jaxpr.consts, map(np.asarray, args))
    kinds = (v.aval for v in jaxpr.jaxpr.outvars)
    found = [_on_device(x, kind) for x, kind in zip(out, kinds, strict=True)]
    return found, None, None, []


def _on_device(x, kind):
    x = np.asarray(x)
    assert x.shape == kind.shape and x.dtype == kind.dtype, (x.shape, x.dtype, kind)
    x = jax.device_put(x.copy())
    return ArrayImpl(kind, x.sharding, [x], committed=False) if kind.weak_type else x


def inner(equation):
    """The programs that an operation runs."""
    for value in equation.params.values():
        for p in value if isinstance(value, tuple | list) else (value,):
            if isinstance(p, ClosedJaxpr | Jaxpr):
                yield getattr(p, "jaxpr", p)


@cache
def _opaque(jaxpr):
    if jaxpr.effects:
        return True
    for v in [*jaxpr.invars, *jaxpr.outvars, *jaxpr.constvars]:
        if not isinstance(v.aval.dtype, np.dtype):
            return True
    return any(
        e.primitive.name.startswith(OPAQUE) or any(map(_opaque, inner(e)))
        for e in jaxpr.eqns
    )


def run(jaxpr, consts, args):
    """What a program makes of its arguments."""
    at = dict(zip(jaxpr.constvars, map(np.asarray, consts), strict=True))
    at.update(zip(jaxpr.invars, args, strict=True))

    def read(v):
        return np.asarray(v.val, v.aval.dtype)[()] if isinstance(v, Literal) else at[v]

    for e in jaxpr.eqns:
        ins = [read(v) for v in e.invars]
        rule = RULES.get(e.primitive.name)
        if rule is not None:
            out = rule(*ins, **e.params)
            if out is NotImplemented:
                out = _compiled(e, ins)
        elif e.primitive.name == "linear":
            out = _traced(e, ins)
        else:
            out = _compiled(e, ins)
        if e.primitive.multiple_results:
            at.update(zip(e.outvars, out, strict=True))
        else:
            at[e.outvars[0]] = out
    return [read(v) for v in jaxpr.outvars]


def closed(program, *args):
    return run(program.jaxpr, program.consts, args)


def _traced(e, ins):
    kinds = [v.aval for v in e.invars]
    return closed(jax.make_jaxpr(partial(e.primitive.impl, **e.params))(*kinds), *ins)


def _compiled(e, ins):
    with by_numpy(False):
        out = _alone(e.primitive, tuple(e.params.items()))(*ins)
    return [*map(np.asarray, out)] if e.primitive.multiple_results else np.asarray(out)


@cache
def _alone(primitive, params):
    return jax.jit(partial(primitive.bind, **dict(params)))


RULES = {}


def rule(*names):
    def keep(function):
        RULES.update(dict.fromkeys(names, function))
        return function

    return keep


def elementwise(function):
    return lambda *args, **_: function(*args)


RULES |= {
    name: elementwise(function)
    for name, function in {
        "add": operator.add,
        "add_any": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "neg": operator.neg,
        "max": np.maximum,
        "min": np.minimum,
        "abs": np.abs,
        "sign": np.sign,
        "floor": np.floor,
        "sqrt": np.sqrt,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "square": lambda x: x * x,
        "exp": np.exp,
        "log": np.log,
        "log1p": np.log1p,
        "sin": np.sin,
        "cos": np.cos,
        "tan": np.tan,
        "tanh": np.tanh,
        "atan2": np.arctan2,
        "pow": np.power,
        "is_finite": np.isfinite,
        "lt": operator.lt,
        "le": operator.le,
        "gt": operator.gt,
        "ge": operator.ge,
        "eq": operator.eq,
        "ne": operator.ne,
        "and": operator.and_,
        "or": operator.or_,
        "xor": operator.xor,
        "not": np.invert,
        "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
        "copy": lambda x: x,
        "copy_p": lambda x: x,
        "stop_gradient": lambda x: x,
        "xla_metadata_value": lambda x: x,
        "optimization_barrier": lambda *xs: xs,
    }.items()
}


@rule("div")
def _div(x, y, **_):
    return x / y if np.issubdtype(x.dtype, np.floating) else NotImplemented


@rule("round")
def _round(x, *, rounding_method):
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    return np.rint(x) if even else np.trunc(x + np.copysign(0.5, x))


@rule("integer_pow")
def _integer_pow(x, *, y):
    return x**y if y >= 0 else 1 / x**-y


@rule("convert_element_type")
def _convert(x, *, new_dtype, **_):
    return x.astype(new_dtype)


@rule("select_n")
def _select(which, *cases):
    if len(cases) != 2:
        return NotImplemented
    if np.ndim(which) == 0:
        return cases[1] if which else cases[0]
    return np.where(which, cases[1], cases[0])


@rule("broadcast_in_dim")
def _broadcast(x, *_, shape, broadcast_dimensions, **__):
    wide = [1] * len(shape)
    for size, d in zip(np.shape(x), broadcast_dimensions, strict=True):
        wide[d] = size
    return np.broadcast_to(np.reshape(x, wide), shape)


@rule("reshape")
def _reshape(x, *_, new_sizes, dimensions, **__):
    return NotImplemented if dimensions is not None else np.reshape(x, new_sizes)


@rule("squeeze")
def _squeeze(x, *, dimensions):
    return np.squeeze(x, tuple(dimensions))


@rule("expand_dims")
def _expand(x, *, dimensions):
    return np.expand_dims(x, tuple(dimensions))


@rule("transpose")
def _transpose(x, *, permutation):
    return np.transpose(x, permutation)


@rule("rev")
def _rev(x, *, dimensions):
    return np.flip(x, dimensions)


@rule("slice")
def _slice(x, *, start_indices, limit_indices, strides):
    strides = strides or [1] * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


@rule("split")
def _split(x, *, sizes, axis):
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@rule("concatenate")
def _concatenate(*xs, dimension):
    return np.concatenate(xs, dimension)


@rule("stack")
def _stack(*xs, axis):
    return np.stack(xs, axis)


@rule("unstack")
def _unstack(x, *, axis):
    return list(np.moveaxis(x, axis, 0))


@rule("iota")
def _iota(*sizes, dtype, shape, dimension, **_):
    if sizes:
        return NotImplemented
    line = np.arange(shape[dimension], dtype=dtype)
    return _broadcast(line, shape=shape, broadcast_dimensions=(dimension,))


@rule("pad")
def _pad(x, value, *, padding_config):
    if any(min(low, high) < 0 for low, high, _ in padding_config):
        return NotImplemented
    sizes = [
        low + high + n + max(n - 1, 0) * gap
        for n, (low, high, gap) in zip(x.shape, padding_config, strict=True)
    ]
    out = np.full(sizes, value, x.dtype)
    inside = [
        slice(low, size - high, gap + 1)
        for size, (low, high, gap) in zip(sizes, padding_config, strict=True)
    ]
    out[tuple(inside)] = x
    return out


def _reduction(function):
    return lambda x, *, axes, **_: function(x, axis=tuple(axes)).astype(x.dtype)


RULES |= {
    "reduce_sum": _reduction(np.sum),
    "reduce_max": _reduction(np.max),
    "reduce_min": _reduction(np.min),
    "reduce_prod": _reduction(np.prod),
    "reduce_and": _reduction(np.all),
    "reduce_or": _reduction(np.any),
}


@rule("dot_general")
def _dot(x, y, *, dimension_numbers, preferred_element_type, **_):
    (cx, cy), (bx, by) = dimension_numbers
    names = iter("abcdefghijklmnop")
    of_x = [next(names) for _ in range(x.ndim)]
    of_y = [next(names) for _ in range(y.ndim)]
    for i, j in zip((*cx, *bx), (*cy, *by), strict=True):
        of_y[j] = of_x[i]
    batch = [of_x[i] for i in bx]
    rest = [of_x[i] for i in range(x.ndim) if i not in (*cx, *bx)]
    rest += [of_y[j] for j in range(y.ndim) if j not in (*cy, *by)]
    how = f"{''.join(of_x)},{''.join(of_y)}->{''.join(batch + rest)}"
    return np.einsum(how, x, y).astype(preferred_element_type or x.dtype)


def _clamped(starts, sizes, shape):
    return tuple(
        slice(s, s + k)
        for i, k, n in zip(starts, sizes, shape, strict=True)
        for s in [min(max(int(i), 0), n - k)]
    )


@rule("dynamic_slice")
def _dynamic_slice(x, *starts, slice_sizes):
    return x[_clamped(starts, slice_sizes, x.shape)]


@rule("dynamic_update_slice")
def _dynamic_update_slice(x, update, *starts):
    x = x.copy()
    x[_clamped(starts, update.shape, x.shape)] = update
    return x


@rule("gather")
def _gather(x, indices, *, dimension_numbers, slice_sizes, mode, **_):
    d = dimension_numbers
    rows = []
    for at in np.ndindex(indices.shape[:-1]):
        start = _start(x.ndim, d.start_index_map, indices[at])
        for i, j in zip(d.operand_batching_dims, d.start_indices_batching_dims,
                        strict=True):  # fmt: skip
            start[i] = at[j]
        where = _clamped(start, slice_sizes, x.shape)
        if mode == GatherScatterMode.FILL_OR_DROP and start != [s.start for s in where]:
            return NotImplemented
        gone = (*d.collapsed_slice_dims, *d.operand_batching_dims)
        rows.append(np.squeeze(x[where], gone))
    if not rows:
        return NotImplemented
    out = np.reshape(np.stack(rows), (*indices.shape[:-1], *np.shape(rows[0])))
    behind = range(indices.ndim - 1, out.ndim)
    return np.moveaxis(out, behind, d.offset_dims)


def _start(ndim, which, index):
    start = [0] * ndim
    for i, value in zip(which, index, strict=True):
        start[i] = int(value)
    return start


@rule("scatter", "scatter-add")
def _scatter(x, indices, updates, *, dimension_numbers, mode, update_jaxpr, **_):
    d, out = dimension_numbers, x.copy()
    adds = update_jaxpr is not None and len(update_jaxpr.eqns) == 1
    one = (*d.inserted_window_dims, *d.operand_batching_dims)
    window = d.update_window_dims
    updates = np.moveaxis(updates, window, range(-len(window), 0))
    for at in np.ndindex(indices.shape[:-1]):
        start = _start(x.ndim, d.scatter_dims_to_operand_dims, indices[at])
        for i, j in zip(d.operand_batching_dims, d.scatter_indices_batching_dims,
                        strict=True):  # fmt: skip
            start[i] = at[j]
        update = np.expand_dims(updates[at], one) if one else updates[at]
        where = _clamped(start, update.shape, x.shape)
        if start != [s.start for s in where]:
            return NotImplemented
        out[where] = out[where] + update if adds else update
    return out


@rule("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call")
def _called(*args, jaxpr=None, call_jaxpr=None, **_):
    return closed(jaxpr or call_jaxpr, *args)


@rule("custom_vmap_call")
def _custom_vmap(*args, call, **_):
    return closed(call, *args)


@rule("checkpoint", "remat2")
def _remat(*args, jaxpr, **_):
    return run(jaxpr, (), args)


@rule("custom_linear_solve")
def _linear_solve(*args, const_lengths, jaxprs):
    ends = np.cumsum(const_lengths)  # of what the product, its transpose, ... are given
    return closed(jaxprs.solve, *args[ends[1] : ends[2]], *args[ends[3] :])


@rule("platform_index")
def _platform(*, platforms):
    default = [i for i, names in enumerate(platforms) if names is None]
    here = [i for i, names in enumerate(platforms) if names and "cpu" in names]
    return np.int32((here or default)[0])


@rule("cond")
def _cond(index, *args, branches, **_):
    return closed(branches[min(max(int(index), 0), len(branches) - 1)], *args)


@rule("while")
def _while(*args, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    of_cond, rest = args[:cond_nconsts], args[cond_nconsts:]
    of_body, x = rest[:body_nconsts], rest[body_nconsts:]
    while closed(cond_jaxpr, *of_cond, *x)[0]:
        x = closed(body_jaxpr, *of_body, *x)
    return x


@rule("scan")
def _scan(*args, jaxpr, length, reverse, num_consts, num_carry, **_):
    consts, rest = args[:num_consts], args[num_consts:]
    x, rows = rest[:num_carry], rest[num_carry:]
    if not length:
        return NotImplemented
    out = [None] * length
    for k in reversed(range(length)) if reverse else range(length):
        found = closed(jaxpr, *consts, *x, *(row[k] for row in rows))
        x, out[k] = found[:num_carry], found[num_carry:]
    return [*x, *(np.stack(y) for y in zip(*out, strict=True))]
