"""What is linear in the inertial parameters: joint forces, and energies [MATH 11]."""

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
    """Y of τ = Y π: the joint forces, linear in the inertial parameters.

    π is `inertial_parameters(model).ravel()`, ten columns to a link. With Y_b the
    wrenches that the motion of a link needs for each of its parameters [MATH 11]

        Y_ji = H_j φ(j, i) Y_b,i        j is i or between i and the base

    and zero elsewhere. τ is that of the links alone. `joints=True` appends 3 nv
    columns, for armature, damping and friction,

        diag(θ̈) ,   diag(θ̇) ,   diag(tanh(θ̇ / friction_speed))

    and then Y [π, armature, damping, friction] is `inverse_dynamics`.
    """
    check_state(model, q=q, qd=qd, qdd=qdd)
    Y = _of_links(model, q, qd, qdd)
    if not joints:
        return Y
    rubbing = jnp.tanh(qd / model.friction_speed)
    return jnp.concatenate([Y, *map(jnp.diag, (qdd, qd, rubbing))], axis=1)


@jitted("joints")
def kinetic_energy_regressor(
    model: Model, q: Position, qd: Joints, *, joints: bool = False
) -> Columns:
    """y of T = y π: the kinetic energy of the links, columns as in `regressor`.

        T = Σ ½ v·v m + (v × ω)·m c + ½ ω·I ω

    `joints=True` appends ½ θ̇² for the armature and 2 nv zeros, since damping and
    friction store nothing: y [π, armature, damping, friction] is `kinetic_energy`.
    """
    check_state(model, q=q, qd=qd)
    y = _kinetic(model, q, qd)
    if not joints:
        return y
    return jnp.concatenate([y, qd**2 / 2, jnp.zeros(2 * model.nv, y.dtype)])


@jitted()
def potential_energy_regressor(model: Model, q: Position) -> Columns:
    """y of `potential_energy` = y π, columns as in `regressor`.

    U = -Σ (g·o m + g·R m c)
    """
    check_state(model, q=q)
    return _potential(model, q)


class BodyRegressor(eqx.Module):
    """Y_b: the wrench for each parameter of a link, base axes, about its origin.

    With the body's axes e_p and I = Σ I_pq e_p e_qᵀ over all p and q, Newton and Euler
    have, for â = v̇ + ω × v , ė = ω × e , ë = α × e + ω × ė , ω_q = ω·e_q , α_q = α·e_q

        m       force â
        m c_p   force ë_p ,   moment e_p × â
        I_pq    moment e_p α_q + ė_p ω_q ,   and that of I_qp
    """

    m: Vec3
    h: tuple[Wrench, Wrench, Wrench]
    I: tuple[Vec3, ...]

    @classmethod
    def of(cls, R: Mat3, V: Twist, a: Twist) -> "BodyRegressor":
        x, y, z = R.T.rows
        xd, yd, zd = (V.w.cross(e) for e in (x, y, z))
        xdd, ydd, zdd = (a.w.cross(e) + V.w.cross(V.w.cross(e)) for e in (x, y, z))
        w, alpha, lift = R.T @ V.w, R.T @ a.w, a.v + V.w.cross(V.v)
        h = (
            Wrench(x.cross(lift), xdd),
            Wrench(y.cross(lift), ydd),
            Wrench(z.cross(lift), zdd),
        )
        I = (
            x * alpha.x + xd * w.x,
            x * alpha.y + xd * w.y + y * alpha.x + yd * w.x,
            y * alpha.y + yd * w.y,
            x * alpha.z + xd * w.z + z * alpha.x + zd * w.x,
            y * alpha.z + yd * w.z + z * alpha.y + zd * w.y,
            z * alpha.z + zd * w.z,
        )
        return cls(lift, h, I)

    def __matmul__(self, S: Twist) -> tuple[Scalar, ...]:  # power, of each of the ten
        return (
            self.m @ S.v,
            *(f @ S for f in self.h),
            *(n @ S.w for n in self.I),
        )


@in_tiles
def _of_links(model, q, qd, qdd):
    rows = model.rows
    here = posture(model, q)
    V, a = _motions(model, here, rows.from_velocities(qd), rows.from_velocities(qdd))
    R, o, V, a = rows.to_links((here.R, here.o, V, a))

    # loops and no broadcasts, so that every number stays a lane of the batch
    Y_b = lax.map(lambda link: BodyRegressor.of(*link), (R, V, a))

    def of_link(link):
        o, Y_b, above = link

        def entry(row):  # H_j φ(j, i) Y_b,i
            H, o_j, related = row
            return tuple(y * related for y in Y_b @ Shift(o - o_j).twist(H.twist))

        return lax.map(entry, (here.H, here.o, above))

    related = rows.tree.ancestry[:, list(rows.body)]
    ten = lax.map(of_link, (o, Y_b, jnp.asarray(related.T, q.dtype)))
    Y = rows.to_velocities(jnp.stack([y.T for y in ten], axis=-1))
    return Y.reshape(model.nv, 10 * model.n_links)


def _motions(
    model: Model, here: Posture, qd: Joints, qdd: Joints
) -> tuple[Twist, Twist]:
    """V and a of every row [MATH 3.1].

    V  = φ* V_parent + H θ̇                          V = 0 at the base
    a  = φ* a_parent + H θ̈ + V × H θ̇                a = [0; -g] at the base
    """

    def step(parent, link):
        V, a = parent
        phi, H, carried, qd, qdd = link
        V = phi.twist(V)
        a = phi.twist(a) + V.cross(H * (qd * carried)) + H * qdd
        V = V + H * qd
        return (V, a), (V, a)

    rest = Twist.zeros(qd[0])
    g = Vec3.of(model.gravity) * jnp.ones_like(qd[0])
    links = here.phi, here.H, carried(model), qd, qdd
    return base_to_tip(step, (rest, Twist(rest.w, -g)), links, here.tree)


@in_tiles
def _kinetic(model, q, qd):
    rows = model.rows
    here = posture(model, q)
    V = twists(here.phi, here.H, rows.from_velocities(qd), here.tree)
    R, V = rows.to_links((here.R, V))
    w, h = R.T @ V.w, R.T @ V.v.cross(V.w)
    halves = w.x * w.x / 2, w.y * w.y / 2, w.z * w.z / 2
    I = halves[0], w.x * w.y, halves[1], w.x * w.z, w.y * w.z, halves[2]
    return jnp.stack([V.v @ V.v / 2, h.x, h.y, h.z, *I], axis=-1).reshape(-1)


@in_tiles
def _potential(model, q):
    here = posture(model, q)
    R, o = model.rows.to_links((here.R, here.o))
    g = Vec3.of(model.gravity) * jnp.ones_like(o.x)
    h = R.T @ g
    none = jnp.zeros_like(o.x)
    ten = jnp.stack([g @ o, h.x, h.y, h.z, *[none] * 6], axis=-1)
    return -ten.reshape(-1)
