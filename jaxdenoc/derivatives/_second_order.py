"""Second derivatives of inverse dynamics, contracted with a vector: λᵀ ∂²τ.

λᵀτ is virtual work, whose gradient is two sweeps (`recursion/_adjoint.py`). Their
derivative along one direction is a column of second derivatives, so that the n³ numbers
of ∂²τ are never made.
"""

import jax
import jax.numpy as jnp

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Spatial, Square
from ..dynamics import check_state
from ..dynamics._inverse import state_gradient
from ..model import Model, integrate


@jitted()
def inverse_dynamics_hessian_product(
    model: Model,
    q: Position,
    qd: Joints,
    qdd: Joints,
    lam: Joints,
    dq: Joints,
    dqd: Joints,
    dqdd: Joints,
    fext: Spatial | None = None,
) -> tuple[Joints, Joints, Joints]:
    """The Hessian of λᵀτ times (dq, dθ̇, dθ̈), in O(n): its parts in q, θ̇ and θ̈.

    τ is `inverse_dynamics`. For a free base q moves by dq as `integrate` goes.
    """
    check_state(model, q=q, qd=qd, qdd=qdd, lam=lam, fext=fext)
    check_state(model, dq=dq, dqd=dqd, dqdd=dqdd)
    return _product(model, q, qd, qdd, fext, lam, (dq, dqd, dqdd))


@jitted()
def inverse_dynamics_hessian(
    model: Model,
    q: Position,
    qd: Joints,
    qdd: Joints,
    lam: Joints,
    fext: Spatial | None = None,
) -> tuple[Square, Square, Square, Square]:
    """λᵀ∂²τ in O(n²): ∂q∂q, ∂q∂θ̇, ∂θ̇∂θ̇ and ∂q∂θ̈, entry [a, b] = Σ λ_i ∂²τ_i/∂x_a∂y_b.

    τ is `inverse_dynamics`, which is linear in θ̈, and θ̇ and θ̈ do not meet in it: the
    other blocks are zero. For a free base q moves as `integrate` goes.
    """
    check_state(model, q=q, qd=qd, qdd=qdd, lam=lam, fext=fext)
    one = jnp.eye(model.nv, dtype=qd.dtype)
    none = jnp.zeros_like(qd)

    def along(x, y):
        return _product(model, q, qd, qdd, fext, lam, (x, y, none))

    qq, q_qd, q_qdd = jax.vmap(along, (0, None))(one, none)
    _, qd_qd, _ = jax.vmap(along, (None, 0))(none, one)
    return qq, q_qd, qd_qd, q_qdd


@in_tiles
def _product(model, q, qd, qdd, fext, lam, along):
    def gradient(dq, qd, qdd):
        here, back = jax.vjp(lambda dq: integrate(model, q, dq), dq)
        of_q, of_qd, of_qdd = state_gradient(model, here, qd, qdd, fext, lam)
        return back(of_q)[0], of_qd, of_qdd

    return jax.jvp(gradient, (jnp.zeros_like(qd), qd, qdd), along)[1]
