"""What is linear in the inertial parameters: joint forces, and energies."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Scalar
from ..dynamics import check_state
from ..model import Model, carried
from ..recursion import Posture, base_to_tip, posture, twists
from ..spatial import Mat3, Shift, Twist, Vec3, Wrench

Columns = Float[Array, " k"]


@jitted("joints")
def regressor(
    model: Model, q: Position, qd: Joints, qdd: Joints, *, joints: bool = False
) -> Float[Array, "v k"]:
    """Y of τ = Y π, the joint forces as a matrix times the inertial parameters.

    Columns are those of `inertial_parameters(model).ravel()`, ten to a link. With Y_b
    the wrenches that a link's motion asks for each of its parameters [MATH 11]

        Y_ji = H_j* φ(j, i) Y_b,i          j is i or between i and the base

    and zero elsewhere. τ is that of the links alone. `joints=True` appends 3 nv
    columns for armature, damping and friction,

        diag(θ̈) ,   diag(θ̇) ,   diag(tanh(θ̇ / friction_speed))

    and then Y [π, armature, damping, friction] is `inverse_dynamics`.
    """
    check_state(model, q=q, qd=qd, qdd=qdd)
    Y = _of_links(model, q, qd, qdd)
    if not joints:
        return Y
    sliding = jnp.tanh(qd / model.friction_speed)
    return jnp.concatenate([Y, *(jnp.diag(x) for x in (qdd, qd, sliding))], axis=1)


@jitted("joints")
def kinetic_energy_regressor(
    model: Model, q: Position, qd: Joints, *, joints: bool = False
) -> Columns:
    """y of T = y · π, the kinetic energy of the links, columns as in `regressor`.

        ½ Σ V* M V = Σ ½ v·v m + (v × ω) · m c + ½ ω · I ω

    `joints=True` appends ½ θ̇² for the armature, and 2 nv zeros: damping and friction
    store nothing. Then y · [π, armature, damping, friction] is `kinetic_energy`.
    """
    check_state(model, q=q, qd=qd)
    y = _kinetic(model, q, qd)
    if not joints:
        return y
    return jnp.concatenate([y, qd**2 / 2, jnp.zeros(2 * model.nv, y.dtype)])


@jitted()
def potential_energy_regressor(model: Model, q: Position) -> Columns:
    """y of `potential_energy` = y · π, columns as in `regressor`.

    -Σ g·(o m + R m c)
    """
    check_state(model, q=q)
    return _potential(model, q)


class Turning(eqx.Module):
    """How a body's axes e move: ė = ω × e, ë = α × e + ω × ė, in base axes."""

    e: Mat3  # rows: the body's axes
    ed: Mat3
    edd: Mat3
    w: Vec3  # ω and α in body axes
    alpha: Vec3
    lift: Vec3  # â = v̇ + ω × v, the acceleration of the origin less gravity

    @classmethod
    def of(cls, R: Mat3, V: Twist, a: Twist) -> "Turning":
        e = R.T
        ed = Mat3(*(V.w.cross(x) for x in e.rows))
        edd = (a.w.cross(x) + V.w.cross(V.w.cross(x)) for x in e.rows)
        return cls(e, ed, Mat3(*edd), e @ V.w, e @ a.w, a.v + V.w.cross(V.v))


class BodyRegressor(eqx.Module):
    """Y_b of a link: the wrench for each parameter, base axes, about its origin.

    With the inertia as Σ I_pq e_p e_qᵀ, Newton and Euler ask of a body for

        m        force â
        m c_p    force ë_p , moment e_p × â
        I_pq     moment e_p α_q + ė_p ω_q , and the same with p and q exchanged
    """

    m: Vec3
    h: tuple[Wrench, ...]
    J: tuple[Vec3, ...]

    @classmethod
    def of(cls, t: Turning) -> "BodyRegressor":
        h = (
            Wrench(e.cross(t.lift), f)
            for e, f in zip(t.e.rows, t.edd.rows, strict=True)
        )
        x, y, z = zip(
            t.e.rows,
            t.ed.rows,
            (t.alpha.x, t.alpha.y, t.alpha.z),
            (t.w.x, t.w.y, t.w.z),
            strict=True,
        )

        def half(p, q):
            (e, ed, _, _), (_, _, alpha, w) = p, q
            return e * alpha + ed * w

        J = half(x, x), both(x, y), half(y, y), both(x, z), both(y, z), half(z, z)
        return cls(t.lift, tuple(h), J)

    def __matmul__(self, S: Twist) -> tuple[Scalar, ...]:  # ten powers
        return (
            self.m @ S.v,
            *(f @ S for f in self.h),
            *(n @ S.w for n in self.J),
        )
