"""Unit quaternions `w x y z`, and motions of a rigid body by exponentials.

The series near zero keep values and derivatives finite: both branches of every
`where` get an argument at which they are smooth.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

Quaternion = Float[Array, "4"]
Vector = Float[Array, "3"]
_SMALL = 1e-4  # of an angle squared: below it the series are exact to rounding


def normalized(p: Quaternion) -> Quaternion:
    return p / jnp.sqrt(jnp.sum(p * p))


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    w = a[0] * b[0] - a[1:] @ b[1:]
    return jnp.concatenate(
        [w[None], a[0] * b[1:] + b[0] * a[1:] + jnp.cross(a[1:], b[1:])]
    )


def conjugate(p: Quaternion) -> Quaternion:
    return jnp.concatenate([p[:1], -p[1:]])


def rotation(p: Quaternion) -> Float[Array, "3 3"]:
    """The matrix of a quaternion, which is scaled to unit length first."""
    w, x, y, z = normalized(p)
    return jnp.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotate(p: Quaternion, x: Vector) -> Vector:
    t = 2 * jnp.cross(p[1:], x)
    return x + p[0] * t + jnp.cross(p[1:], t)


def exponential(w: Vector, v: Vector) -> tuple[Quaternion, Vector]:
    """exp of the body twist [w; v]: the rotation, and the translation V(w) v."""
    sq = w @ w
    near, safe = sq < _SMALL, jnp.where(sq < _SMALL, 1.0, sq)
    angle = jnp.sqrt(safe)
    half_sinc = jnp.where(
        near, 0.5 - sq / 48 + sq**2 / 3840, jnp.sin(angle / 2) / angle
    )
    cos_half = jnp.where(near, 1 - sq / 8 + sq**2 / 384, jnp.cos(angle / 2))
    b = 2 * half_sinc**2  # (1 - cos) / sq, without the cancellation
    c = jnp.where(
        near, 1 / 6 - sq / 120 + sq**2 / 5040, (angle - jnp.sin(angle)) / (safe * angle)
    )
    wxv = jnp.cross(w, v)
    turn = jnp.concatenate([cos_half[None], half_sinc * w])
    return turn, v + b * wxv + c * jnp.cross(w, wxv)


def logarithm(p: Quaternion, t: Vector) -> tuple[Vector, Vector]:
    """The body twist [w; v] of which (p, t) is the exponential; angle up to π."""
    p = jnp.where(p[0] < 0, -p, p)
    s2 = p[1:] @ p[1:]
    near, safe = s2 < _SMALL, jnp.where(s2 < _SMALL, 1.0, s2)
    s = jnp.sqrt(safe)
    series = 2 + s2 / 3 + 3 * s2**2 / 20 + 5 * s2**3 / 56  # 2 asin(s) / s
    w = p[1:] * jnp.where(near, series, 2 * jnp.arctan2(s, p[0]) / s)
    sq = w @ w
    near, safe = sq < _SMALL, jnp.where(sq < _SMALL, 1.0, sq)
    angle = jnp.sqrt(safe)
    half = angle / 2
    far = (1 - half * jnp.cos(half) / jnp.sin(half)) / safe
    d = jnp.where(near, 1 / 12 + sq / 720 + sq**2 / 30240, far)
    wxt = jnp.cross(w, t)
    return w, t - wxt / 2 + d * jnp.cross(w, wxt)
