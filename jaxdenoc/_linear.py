"""Linear maps that know their own transpose: what a derivative rule is made of.

The derivative of a function is a linear map of tangents; reverse mode is its transpose.
JAX transposes a program line by line, which for a sweep means to keep every number of
every step. Where the transpose is known as a short algorithm of its own, `linear` lets
the rule say so:

    y = linear(pair, residuals, x)       y = A(residuals) x ,   x̄ = A(residuals)ᵀ ȳ

`pair` holds A and Aᵀ as two functions of (residuals, vector). JAX's own `linear_call`
is the same idea, but cannot be batched, nor differentiated in its residuals, which is
second order; this one composes with `jit`, `vmap` and both modes, any number of times.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.tree as jt
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree

from ._moves import moving
from ._within import in_piece, within_piece


class Pair(NamedTuple):
    """A linear map and its transpose, each a function of (residuals, vector)."""

    apply: Callable[[Any, Any], Any]
    transpose: Callable[[Any, Any], Any]


def linear(pair: Pair, residuals: PyTree, vector: PyTree, like: PyTree) -> PyTree:
    """`pair.apply(residuals, vector)`, of which reverse mode is `pair.transpose`.

    What comes out has the structure, shapes and types of `like`.
    """
    residuals, outer = jt.flatten(residuals)
    vector, inner = jt.flatten(vector)
    like, structure = jt.flatten(like)

    inside = within_piece()

    def flat(function, into):
        def call(residuals, vector):  # later on, so in the context of now
            back = jt.unflatten(into, vector)
            with in_piece(inside):
                return jt.leaves(function(jt.unflatten(outer, residuals), back))

        return call

    plain = Pair(flat(pair.apply, inner), flat(pair.transpose, structure))
    shapes = tuple(_shape(x) for x in like), tuple(_shape(x) for x in vector)
    args = *residuals, *vector
    out = linear_p.bind(*args, pair=plain, split=len(residuals), shapes=shapes)
    return jt.unflatten(structure, out)


def with_rule(
    run: Callable, derivative: Callable, keep: Callable = lambda at, out: at
) -> Callable:
    """`run`, differentiated by `derivative(moves)`, the pair of its linear maps.

    Their residuals are what `keep(arguments, result)` says.
    """

    @jax.custom_jvp
    def closed(*args):
        return run(*args)

    def rule(at, tangents):
        moves, slopes = moving(at, tangents)
        out = closed(*at)
        return out, linear(derivative(moves), keep(at, out), slopes, like=out)

    closed.defjvp(rule, symbolic_zeros=True)
    return closed


def _shape(x) -> ShapedArray:
    return ShapedArray(jnp.shape(x), jnp.result_type(x))


linear_p = Primitive("linear")
linear_p.multiple_results = True


@linear_p.def_impl
def _run(*args, pair, split, shapes):
    return pair.apply(list(args[:split]), list(args[split:]))


def program(equation) -> ClosedJaxpr:
    """What an equation with a linear map in it runs."""
    run = partial(_run, **equation.params)
    return jax.make_jaxpr(run)(*(v.aval for v in equation.invars))


@linear_p.def_abstract_eval
def _shapes(*args, pair, split, shapes):
    return list(shapes[0])


def _jvp(primals, tangents, *, pair, split, shapes):
    """A ẋ, and what a change of A does to x, by whatever rule `apply` itself has."""
    residuals, vector = primals[:split], primals[split:]
    bind = partial(linear_p.bind, pair=pair, split=split, shapes=shapes)
    slopes = []
    if any(type(t) is not ad.Zero for t in tangents[split:]):
        along = [ad.instantiate_zeros(t) for t in tangents[split:]]
        slopes.append(bind(*residuals, *along))
    moving = [k for k in range(split) if type(tangents[k]) is not ad.Zero]
    if moving:

        def at(*here):
            changed = dict(zip(moving, here, strict=True))
            return pair.apply(
                [changed.get(k, r) for k, r in enumerate(residuals)], list(vector)
            )

        here, turns = (tuple(x[k] for k in moving) for x in (primals, tangents))
        slopes.append(jax.jvp(at, here, turns)[1])
    total = [sum(parts[1:], parts[0]) for parts in zip(*slopes, strict=True)]
    return bind(*primals), total


def _transpose(cotangents, *args, pair, split, shapes):
    residuals = args[:split]
    cotangents = [ad.instantiate_zeros(c) for c in cotangents]
    turned = {"pair": Pair(*pair[::-1]), "split": split, "shapes": shapes[::-1]}
    return [None] * split + linear_p.bind(*residuals, *cotangents, **turned)


def _batch(args, axes, *, pair, split, shapes):
    """`vmap` of both maps; a vector that is the same for all is repeated."""
    size = next(x.shape[d] for x, d in zip(args, axes, strict=True) if d is not None)
    front = [
        x if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(args, axes, strict=True)
    ]
    vector = [
        jnp.broadcast_to(x, (size, *jnp.shape(x))) if d is None else x
        for x, d in zip(front[split:], axes[split:], strict=True)
    ]
    which = [None if d is None else 0 for d in axes[:split]]
    many = Pair(*(jax.vmap(f, (which, 0)) for f in pair))
    wide = tuple(
        tuple(ShapedArray((size, *x.shape), x.dtype) for x in side) for side in shapes
    )
    args = *front[:split], *vector
    out = linear_p.bind(*args, pair=many, split=split, shapes=wide)
    return out, [0] * len(out)


ad.primitive_jvps[linear_p] = _jvp
ad.primitive_transposes[linear_p] = _transpose
batching.primitive_batchers[linear_p] = _batch
mlir.register_lowering(linear_p, mlir.lower_fun(_run, multiple_results=True))
