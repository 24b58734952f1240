"""Inertial parameters: the ten numbers of a link in which dynamics are linear."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._errors import ModelError
from .._jit import jitted
from .._types import Numbers
from ..spatial import RigidInertia, Sym3, Vec3, second_moment
from ._model import Model


@jitted()
def inertial_parameters(model: Model) -> Float[Array, "n 10"]:
    """π of every link [MATH 11]: m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz.

    The inertia is about the origin of the link's frame, all in body axes.
    """
    M = RigidInertia.of(model.mass, Vec3.of(model.com), Sym3.of(model.inertia))
    h, I = M.h, M.J
    ten = M.m, h.x, h.y, h.z, I.xx, I.xy, I.yy, I.xz, I.yz, I.zz
    return jnp.stack(ten, axis=-1)


@jitted()
def with_inertial_parameters(model: Model, pi: Numbers) -> Model:
    """The model with these parameters for its links, `inertial_parameters` reversed.

        c = m c / m ,   I_C = I - m c̃ c̃ᵀ

    What was compiled for the model serves the new one too. The numbers are not
    checked (`physically_consistent` does that). A model keeps a mass centre, so that
    m c cannot stay where m = 0: there c is zero, and nothing depends on m c.
    """
    x = jnp.asarray(pi, model.mass.dtype)
    if x.shape != (model.n_links, 10):
        raise ModelError(
            f"pi has shape {x.shape}, but model '{model.name}' needs "
            f"{(model.n_links, 10)}: a row of ten parameters for each link. For a "
            "batch, use jax.vmap."
        )
    m, *hI = x.T
    massless = m == 0
    h = Vec3(*hI[:3])
    c = h / jnp.where(massless, 1, m)  # finite, and so are its derivatives
    c = Vec3(*(jnp.where(massless, 0, x) for x in (c.x, c.y, c.z)))
    xx, xy, yy, xz, yz, zz = hI[3:]
    I_C = Sym3(xx, xy, xz, yy, yz, zz) - second_moment(h, c)
    numbers = m, c.array, I_C.array
    return eqx.tree_at(lambda M: (M.mass, M.com, M.inertia), model, numbers)
