"""Which parameters a body can have: pseudo-inertia and log-Cholesky [MATH 11].

The pseudo-inertia 𝒥 has the second moments Σ of the mass, where the inertia I has their
sums two by two, and with them the first moments and the mass:

    Σ = ½ tr(I) 1 - I ,   𝒥 = [[Σ, m c], [m cᵀ, m]]

A body of positive masses is one with 𝒥 ≻ 0. All functions are those of one link; for
all of a model, `jax.vmap` them over the rows of `inertial_parameters`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._errors import ModelError
from .._jit import jitted
from .._types import Number, Numbers

Ten = Float[Array, "10"]
Matrix = Float[Array, "4 4"]


@jitted()
def pseudo_inertia(pi: Numbers) -> Matrix:
    """𝒥 of one link's parameters, in body axes about its origin; `vmap` for many."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = _numbers("pi", pi, (10,))
    half = (xx + yy + zz) / 2
    return jnp.array(
        [
            [half - xx, -xy, -xz, hx],
            [-xy, half - yy, -yz, hy],
            [-xz, -yz, half - zz, hz],
            [hx, hy, hz, m],
        ]
    )


@jitted()
def from_pseudo_inertia(J: Numbers) -> Ten:
    """The parameters of one link from its 𝒥, I = tr(Σ) 1 - Σ; `vmap` for many.

    𝒥 is symmetric: of two opposite entries the mean is taken.
    """
    J = _numbers("J", J, (4, 4))
    (xx, xy, xz, hx), (_, yy, yz, hy), (_, _, zz, hz), (*_, m) = (J + J.T) / 2
    return jnp.array([m, hx, hy, hz, yy + zz, -xy, xx + zz, -xz, -yz, xx + yy])


@jitted()
def log_cholesky(pi: Numbers) -> Ten:
    """θ of one link's parameters, for which 𝒥 = 𝒰 𝒰ᵀ [MATH 11]; `vmap` for many.

        𝒰 = e^α [[S, t], [0, 1]]
        S = [[e^d1, s12, s13], [0, e^d2, s23], [0, 0, e^d3]]
        θ = [α, d1, d2, d3, s12, s23, s13, t1, t2, t3]

    e^2α is the mass, t its centre, S Sᵀ = Σ / m - c cᵀ its spread about the centre. NaN
    where the parameters are not `physically_consistent`.
    """
    J = pseudo_inertia(pi)
    m, c = J[3, 3], J[:3, 3] / J[3, 3]
    spread = J[:3, :3] / m - jnp.outer(c, c)
    d3 = jnp.log(spread[2, 2]) / 2
    s13, s23 = spread[:2, 2] / jnp.exp(d3)
    d2 = jnp.log(spread[1, 1] - s23**2) / 2
    s12 = (spread[0, 1] - s13 * s23) / jnp.exp(d2)
    d1 = jnp.log(spread[0, 0] - s12**2 - s13**2) / 2
    return jnp.array([jnp.log(m) / 2, d1, d2, d3, s12, s23, s13, *c])


@jitted()
def from_log_cholesky(theta: Numbers) -> Ten:
    """The parameters of one link from θ of `log_cholesky`; `vmap` for many.

    Any ten numbers θ give a physically consistent link, so that a search over θ needs
    no constraints.
    """
    alpha, d1, d2, d3, s12, s23, s13, *t = _numbers("theta", theta, (10,))
    d1, d2, d3 = jnp.exp(d1), jnp.exp(d2), jnp.exp(d3)
    o, i = jnp.zeros_like(alpha), jnp.ones_like(alpha)
    U = jnp.array(
        [[d1, s12, s13, t[0]], [o, d2, s23, t[1]], [o, o, d3, t[2]], [o, o, o, i]]
    )
    return from_pseudo_inertia(_times(U, U.T) * jnp.exp(2 * alpha))


@jitted()
def physically_consistent(
    pi: Numbers, tolerance: Number | Array = 0
) -> Bool[Array, ""]:
    """Whether some body has these parameters: 𝒥 ≻ 0; `vmap` for many links.

    `tolerance` lets the eigenvalues of 𝒥 be as low as minus that much. Thin rods and
    points have a zero among them, which rounding may take below.
    """
    # factors see the moments of a small link beside its mass, where eigenvalues may not
    L = jnp.linalg.cholesky(_raised(pseudo_inertia(pi), tolerance))
    return jnp.all(jnp.diagonal(L) > 0)  # NaN where there is none


@jitted()
def nearest_consistent(
    pi: Numbers, *, floor: Number | Array = 0.0
) -> tuple[Ten, Float[Array, ""]]:
    """The closest parameters with all eigenvalues of 𝒥 at least `floor`, and how far.

    Distance is the Frobenius norm of the change of 𝒥 = Q Λ Qᵀ; `vmap` for many links.

        𝒥⁺ = 𝒥 + Q max(floor - Λ, 0) Qᵀ ,   distance = ‖max(floor - Λ, 0)‖

    Parameters that need no change come back as they are. It adds up kg, kg m and kg m²,
    so that "closest" depends on the unit of length and on the origin of the link.
    Derivatives are finite everywhere; second ones where eigenvalues differ.
    """
    pi = _numbers("pi", pi, (10,))
    lack, distance = _lack(_raised(pseudo_inertia(pi), -floor))
    return pi + from_pseudo_inertia(lack), distance


def _raised(J: Matrix, by: Number | Array) -> Matrix:
    """J with all eigenvalues higher by that much."""
    return J + jnp.asarray(by, J.dtype) * jnp.eye(4, dtype=J.dtype)


@jax.custom_jvp
def _lack(J: Matrix) -> tuple[Matrix, Float[Array, ""]]:
    """What J lacks to be positive semidefinite, Q max(-Λ, 0) Qᵀ, and its norm."""
    values, Q = jnp.linalg.eigh(J)
    lack = jnp.maximum(-values, 0)
    return _times(Q * lack[None, :], Q.T), _norm(lack)


@_lack.defjvp
def _lack_jvp(primals, tangents):
    """Entry (i, j) of Qᵀ dJ Q times the divided difference of f(λ) = max(-λ, 0).

        (f(λ_i) - f(λ_j)) / (λ_i - λ_j)         [Daleckii and Krein]

    which is -1 among negative eigenvalues, 0 among positive ones, and a quotient of
    positive numbers between the two: no eigenvalues that are equal are ever subtracted.
    Where both are zero, or the distance is, the derivative is that of consistent
    parameters, zero.
    """
    (J,), (dJ,) = primals, tangents
    values, Q = jnp.linalg.eigh(J)
    lack = jnp.maximum(-values, 0)
    short = lack[:, None] + lack[None, :]
    size = jnp.abs(values)[:, None] + jnp.abs(values)[None, :]
    turned = _times(_times(Q.T, dJ), Q)
    slope = _times(_times(Q, turned * -short / jnp.where(size > 0, size, 1)), Q.T)
    distance = _norm(lack)
    away = -(lack @ jnp.diagonal(turned)) / jnp.where(distance > 0, distance, 1)
    return (_times(Q * lack[None, :], Q.T), distance), (slope, away)


def _norm(x: Float[Array, "4"]) -> Float[Array, ""]:
    square = jnp.sum(x**2)
    some = square > 0  # a root has no slope at zero
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)


def _times(A: Matrix, B: Matrix) -> Matrix:
    """A B in full precision, on accelerators too."""
    return jnp.matmul(A, B, precision="highest")


def _numbers(name: str, given: Numbers, shape: tuple[int, ...]) -> Array:
    x = jnp.asarray(given)
    if x.shape != shape:
        raise ModelError(
            f"{name} has shape {x.shape}, but one link needs {shape}. For many links, "
            "use jax.vmap."
        )
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(float)
