"""The largest and the smallest eigenvalue of ℳ, without ℳ."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Joints, Position
from ..dynamics import Factors, factorize
from ..model import Model


@jitted("steps")
def extreme_eigenvalues(
    model: Model, q: Position, *, steps: int = 16
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """λ_min and λ_max of ℳ, by `steps` of Lanczos on x ↦ ℳ x and on x ↦ ℳ⁻¹ x.

    Each step is one product with U D Uᵀ, or one solution, in O(n). What is found lies
    within the spectrum: λ_max may be a little low and λ_min a little high. Exact, to
    rounding, for robots of no more velocities than `steps`; then derivatives are, too:
    dλ = xᵀ dℳ x, with the eigenvector x held.
    """
    f = factorize(model, q)
    held, count = lax.stop_gradient(f), min(steps, model.nv)
    x = leading_vector(lambda x: held.mul(x), f.D, count)
    y = leading_vector(lambda x: _solve(held, x), f.D, count)
    return 1 / jnp.sum(y * _solve(f, y)), jnp.sum(x * f.mul(x))


def _solve(f: Factors, b: Joints) -> Joints:
    """ℳ⁻¹ b as `f.solve` has it, of operations that a batch has in one piece."""
    plain = {"normalized": False}
    return f.joint_rates(f.working_moments(b, **plain) / f.D, **plain)


def leading_vector(times: Callable[[Joints], Joints], like: Joints, steps: int):
    """Of a symmetric positive map A, from a start that is the same every time.

        β v' = A v - α v - β v₋ ,  α = v·A v     T has α on its diagonal, β beside it

    Every new vector is made orthogonal to all before it, twice, so that rounding makes
    no second copy of an eigenvalue. The unit vector Σ y v that is given has the y of
    the largest eigenvalue of T.
    """
    n, numbers = len(like), jnp.arange(steps)
    small = 10 * jnp.finfo(like.dtype).eps

    def step(carry, k):
        v, basis = carry
        basis = jnp.where((numbers == k)[:, None], v[None], basis)
        w = times(v)
        alpha = jnp.sum(v * w)
        for _ in range(2):
            w = w - jnp.sum(basis * jnp.sum(basis * w[None], 1)[:, None], 0)
        size = jnp.sqrt(jnp.sum(w * w))
        some = size > small * alpha
        v = jnp.where(some, w / jnp.where(some, size, 1), 0)
        return (v, basis), (alpha, jnp.where(some, size, 0))

    start = np.random.default_rng(0).normal(size=n)
    start = jnp.asarray(start / np.linalg.norm(start), like.dtype)
    basis = jnp.zeros((steps, n), like.dtype)
    (_, basis), (alpha, beta) = lax.scan(step, (start, basis), numbers)
    x = jnp.sum(basis * _of_tridiagonal(alpha, beta)[:, None], 0)
    return x / jnp.sqrt(jnp.sum(x * x))


def _of_tridiagonal(alpha, beta):
    """The eigenvector of the largest eigenvalue λ of T.

    Bisection finds λ: x is above all eigenvalues if no pivot of x - T = L Δ Lᵀ is
    negative, δ = x - α - β²/δ₋ [Sturm]. Two solutions with x - T for an x just above λ
    turn any vector that way.
    """
    zero, eps = jnp.zeros_like(alpha[:1]), jnp.finfo(alpha.dtype).eps
    before = jnp.concatenate([zero, beta[:-1]])
    around = before + jnp.concatenate([beta[:-1], zero])

    def pivots(x):
        def step(delta, row):
            a, b = row
            delta = x - a - b * b / delta
            return jnp.where(delta == 0, eps * x, delta), delta

        return lax.scan(step, jnp.ones_like(x), (alpha, before))[1]

    def halve(bounds, _):
        low, high = bounds
        middle = (low + high) / 2
        above = jnp.min(pivots(middle)) > 0
        return (jnp.where(above, low, middle), jnp.where(above, middle, high)), None

    bounds = jnp.max(alpha), jnp.max(alpha + around) * (1 + 4 * eps)
    bits = jnp.finfo(alpha.dtype).nmant + 6
    (_, x), _ = lax.scan(halve, bounds, length=bits)
    delta = pivots(x)
    delta = jnp.where(delta > 0, delta, eps * x)

    def solved(y):  # L Δ Lᵀ z = y
        def inward(last, row):
            y, b, d = row
            z = y + b * last
            return z / d, z / d

        _, z = lax.scan(inward, zero[0], (y, before, delta))

        def outward(last, row):
            z, b, d = row
            z = z + b / d * last
            return z, z

        after = jnp.concatenate([before[1:], zero])
        return lax.scan(outward, zero[0], (z, after, delta), reverse=True)[1]

    y = jnp.ones_like(alpha)
    for _ in range(2):
        y = solved(y / jnp.max(jnp.abs(y)))
    return y / jnp.max(jnp.abs(y))
