"""Second derivatives of inverse dynamics, contracted with a vector."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.oracle import error
from ..support.robots import state, tree

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.slow
@pytest.mark.cites("MATH 10.1: λᵀ ∂²τ against nested plain autodiff")
def test_against_nested_autodiff(link_by_link):
    model = tree(7, (-1, 0), floating_base=True)
    x = jnp.linspace(0.1, 0.4, model.nv)
    where = lambda m: (m.armature, m.damping, m.friction)  # noqa: E731
    model = eqx.tree_at(where, model, (x, 2 * x, x + 1))
    q, qd, qdd = state(model)
    lam = jnp.cos(jnp.arange(model.nv, dtype=q.dtype))
    fext = jax.random.normal(jax.random.key(3), (model.n_links, 6))

    def work(dq, qd, qdd):
        here = jd.integrate(model, q, dq)
        return lam @ jd.inverse_dynamics(model, here, qd, qdd, fext)

    at = jnp.zeros_like(qd), qd, qdd
    with jd.autodiff_rules("plain"):
        blocks = jax.jit(jax.jacfwd(jax.jacfwd(work, (0, 1, 2)), (0, 1, 2)))(*at)
    (qq, q_qd, q_qdd), (_, qd_qd, qd_qdd), (_, _, qdd_qdd) = blocks
    found = jd.inverse_dynamics_hessian(model, q, qd, qdd, lam, fext)
    for mine, plain in zip(found, (qq, q_qd, qd_qd, q_qdd), strict=True):
        assert error(mine, plain) < 1e-11
    assert not np.any(qdd_qdd)
    assert np.abs(qd_qdd).max() < 1e-12

    u, v, w = jax.random.normal(jax.random.key(4), (3, model.nv))
    product = jd.inverse_dynamics_hessian_product(model, q, qd, qdd, lam, u, v, w, fext)
    want = (
        qq @ u + q_qd @ v + q_qdd @ w,
        q_qd.T @ u + qd_qd @ v,
        q_qdd.T @ u,
    )
    for mine, other in zip(product, want, strict=True):
        assert error(mine, other) < 1e-11


def test_a_batch_of_hessians():
    model = tree(5, (-1, 0, 1, 2))
    states = [state(model, k) for k in range(3)]
    q, qd, qdd = (jnp.stack(x) for x in zip(*states, strict=True))
    hessian = jax.vmap(jd.inverse_dynamics_hessian, (None, 0, 0, 0, None))
    lam = jnp.ones(4)
    found = jax.jit(hessian)(model, q, qd, qdd, lam)
    want = jd.inverse_dynamics_hessian(model, q[2], qd[2], qdd[2], lam)
    for mine, other in zip(found, want, strict=True):
        assert error(mine[2], other) < 1e-12
    np.testing.assert_allclose(found[0], jnp.swapaxes(found[0], 1, 2), atol=1e-12)
