"""Linear operators by what they do to a vector: sums, products and transposes of them.

An operator here is never a matrix until `.dense()` is called. `A @ x` multiplies a
stacked vector, `A @ B`, `A + B`, `A - B`, `2 * A` and `1 - A` make new operators, and
`A.T` is the adjoint, the papers' A*. The product of an expression with a vector costs
what its parts cost, O(n) for every operator of the papers.
"""

from abc import abstractmethod
from typing import overload

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .._jit import precise
from .._types import Number

Vector = Float[Array, " k"]


class Operator(eqx.Module):
    """A linear map of stacked vectors, `shape` = (rows, columns)."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def dtype(self): ...

    @abstractmethod
    def apply(self, x: Vector) -> Vector:
        """The product with a vector."""

    @property
    @abstractmethod
    def T(self) -> "Operator":
        """The adjoint."""

    def dense(self) -> Float[Array, "rows columns"]:
        """The matrix, column by column: to look at and to test with."""
        one = jnp.eye(self.shape[1], dtype=self.dtype)
        return jax.vmap(precise(self.apply), out_axes=1)(one)

    @overload
    def __matmul__(self, other: "Operator") -> "Operator": ...

    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...

    def __matmul__(self, other) -> "Operator | Array":
        if isinstance(other, Operator):
            _match(self.shape[1] == other.shape[0], "@", self, other)
            return Product(self, other)
        x = jnp.asarray(other)
        if x.shape[:1] != (self.shape[1],) or x.ndim > 2:
            raise ValueError(
                f"An operator of shape {self.shape} cannot multiply an array of shape "
                f"{x.shape}. Give it a stacked vector of {self.shape[1]} numbers, or a "
                "matrix with such columns."
            )
        apply = precise(self.apply)
        return apply(x) if x.ndim == 1 else jax.vmap(apply, 1, 1)(x)

    def __add__(self, other: "Operator | Number") -> "Operator":
        other = _as_operator(other, self)
        _match(self.shape == other.shape, "+", self, other)
        return Sum(self, other)

    def __mul__(self, factor: Number) -> "Operator":
        return Scaled(self, jnp.asarray(factor, self.dtype))

    def __neg__(self) -> "Operator":
        return self * -1

    def __sub__(self, other: "Operator | Number") -> "Operator":
        return self + -_as_operator(other, self)

    def __rsub__(self, other: Number) -> "Operator":
        return _as_operator(other, self) - self

    __radd__ = __add__
    __rmul__ = __mul__


class Identity(Operator):
    size: int = eqx.field(static=True)
    like: Array  # its type is that of the operator

    @property
    def shape(self):
        return self.size, self.size

    @property
    def dtype(self):
        return self.like.dtype

    def apply(self, x):
        return x

    @property
    def T(self):
        return self


class Product(Operator):
    left: Operator
    right: Operator

    @property
    def shape(self):
        return self.left.shape[0], self.right.shape[1]

    @property
    def dtype(self):
        return self.left.dtype

    def apply(self, x):
        return self.left.apply(self.right.apply(x))

    @property
    def T(self):
        return Product(self.right.T, self.left.T)


class Sum(Operator):
    left: Operator
    right: Operator

    @property
    def shape(self):
        return self.left.shape

    @property
    def dtype(self):
        return self.left.dtype

    def apply(self, x):
        return self.left.apply(x) + self.right.apply(x)

    @property
    def T(self):
        return Sum(self.left.T, self.right.T)


class Scaled(Operator):
    of: Operator
    factor: Array

    @property
    def shape(self):
        return self.of.shape

    @property
    def dtype(self):
        return self.of.dtype

    def apply(self, x):
        return self.factor * self.of.apply(x)

    @property
    def T(self):
        return Scaled(self.of.T, self.factor)


def _as_operator(x, beside: Operator) -> Operator:
    """A number stands for that many times the identity, as in 1 - G H."""
    if isinstance(x, Operator):
        return x
    _match(beside.shape[0] == beside.shape[1], "+ a number", beside, beside)
    return Identity(beside.shape[0], jnp.zeros((), beside.dtype)) * x


def _match(fits: bool, symbol: str, a: Operator, b: Operator):
    if not fits:
        raise ValueError(f"Shapes {a.shape} and {b.shape} do not fit {symbol}.")
