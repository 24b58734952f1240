"""The boundary: arrays of the user against the model's shapes."""

import jax.numpy as jnp

from .._errors import ModelError
from .._types import Joints
from ..model import Model


def check_state(model: Model, **arrays) -> None:
    """Each of q, qd, ... has the length the model needs, or an error says so."""
    for name, x in arrays.items():
        needs = {"q": (model.nq,), "fext": (model.n_links, 6)}.get(name, (model.nv,))
        if x is not None and jnp.shape(x) != needs:
            hint = " For a batch, use jax.vmap." if jnp.ndim(x) > len(needs) else ""
            raise ModelError(
                f"{name} has shape {jnp.shape(x)}, but model '{model.name}' needs "
                f"{needs}.{hint}"
            )


def resistance(model: Model, qd: Joints) -> Joints:
    """Viscous damping and Coulomb friction, smoothed: d θ̇ + c tanh(θ̇ / speed)."""
    return model.damping * qd + model.friction * jnp.tanh(qd / model.friction_speed)


def at_joints(model: Model, qd: Joints, qdd: Joints | None) -> Joints:
    """What inverse dynamics adds at the joints: armature and resistance."""
    drag = resistance(model, qd)
    return drag if qdd is None else model.armature * qdd + drag
