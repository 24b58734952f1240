"""sin q and 1 - cos q of many angles at once.

XLA takes the sine of a float64 from the C library, one number at a time, which cost a
fifth of a batch of inverse dynamics. The polynomials below are elementwise arithmetic,
as is all the rest, and give both functions from one reduction to |r| ≤ π/4. The
result is that of an angle within an ulp or so of x, at any size of x.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Angles = Float[Array, "..."]

# π/2 in three parts: k times each of the first two has no rounding, for |k| up to 2^20
# in float64 and 2^13 in float32.
_QUARTER = {
    8: (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063e-21),
    4: (1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8),
}
# sin r = r + r³ S(r²) and 1 - cos r = r²/2 - r⁴ C(r²), minimax on |r| ≤ π/4 (fdlibm's)
_S = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_C = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


@jax.custom_jvp
def sin_versin(x: Angles) -> tuple[Angles, Angles]:
    """sin x and 1 - cos x, the latter without cancellation at small x."""
    k = jnp.round(x * (2 / jnp.pi))
    r = x
    for part in _QUARTER[x.dtype.itemsize]:
        r = r - k * part
    z = r * r
    sin = r + r * z * _polynomial(_S, z)
    versin = z * (0.5 - z * _polynomial(_C, z))
    cos = 1 - versin
    # x = r + k π/2: every quarter turn makes (sin, cos) into (cos, -sin)
    quadrant = (k - 4 * jnp.floor(k / 4)).astype(jnp.int32)
    odd = (quadrant & 1) == 1
    a, b = jnp.where(odd, cos, sin), jnp.where(odd, -sin, cos)
    half = quadrant >= 2
    a, b = jnp.where(half, -a, a), jnp.where(half, -b, b)
    return a, jnp.where(quadrant == 0, versin, 1 - b)


@sin_versin.defjvp
def _sin_versin_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    sin, versin = sin_versin(x)
    return (sin, versin), ((1 - versin) * dx, sin * dx)


def _polynomial(coefficients, z):
    total = jnp.full_like(z, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * z + c
    return total
