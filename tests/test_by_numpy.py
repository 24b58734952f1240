"""What XLA makes of the library is what NumPy makes of the same programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from .support.by_numpy import by_numpy
from .support.oracle import error
from .support.robots import ALL, state


def dynamics(m, q, qd, x, fext):
    return {
        "dense": jd.forward_dynamics(m, q, qd, x, fext, method="dense"),
        "saha": jd.coriolis_matrix(m, q, qd, form="saha"),
        "operational": jd.operational_inertia_inverse(m, q, 1),
        "denoc": jd.denoc(m, q),
    }


def diagonal(m, q, qd, x, fext):
    f, plain = jd.factorize(m, q), {"normalized": False}
    nu, xi = f.total_rates(qd), f.total_rates(qd, **plain)
    return {
        "factors": (f.U, f.D, f.m, f.l, f.logdet(), f.inverse()),
        "products": (f.solve(x), f.mul(x), nu, xi),
        "back": (f.joint_rates(nu), f.joint_rates(xi, **plain)),
        "moments": (f.working_moments(x), f.working_moments(x, **plain)),
        "torques": (f.joint_torques(x), f.joint_torques(x, **plain)),
        "coriolis": jd.diagonal_coriolis(m, q, nu),
        "plain coriolis": jd.diagonal_coriolis(m, q, xi, **plain),
        "matrix": jd.diagonal_coriolis_matrix(m, q, nu),
        "acceleration": jd.diagonal_acceleration(m, q, nu, x, fext),
        "plain": jd.diagonal_acceleration(m, q, xi, x, fext, **plain),
    }


def slopes(m, q, qd, x, fext):
    return {
        "sensitivity": jd.mass_matrix_sensitivity(m, q),
        "rate": jd.mass_matrix_rate(m, q, qd),
        "form": jd.mass_matrix_form(m, q, qd),
        "factor": jd.mass_factor_rate(m, q, qd),
        "product": jd.mass_factor_rate_product(m, q, qd),
        "jacobian": jd.jacobian_derivatives(m, q, 1),
        "jacobian rate": jd.jacobian_rate(m, q, qd, 1, axes="base"),
        "bias": jd.bias_acceleration(m, q, qd, 1),
        "kinetic": jd.kinetic_energy_regressor(m, q, qd, joints=True),
        "potential": jd.potential_energy_regressor(m, q),
        "hessian": jd.inverse_dynamics_hessian_product(m, q, qd, x, x, qd, x, x),
    }


def operators(m, q, qd, x, fext):
    o, names = jd.spatial_operators(m, q), ("phi", "P", "D", "G", "psi", "Omega")
    body, base = (jd.spatial_operator_rates(m, q, qd, axes=s) for s in ("body", "base"))
    return {
        "operators": [getattr(o, name).dense() for name in names],
        "products": [o.phi @ (o.H.T @ qd), o.P @ (o.phi.T @ (o.H.T @ x))],
        "body": [getattr(body, name).dense() for name in ("phi", "P", "G", "E_psi")],
        "base": [getattr(base, name).dense() for name in ("phi", "P", "G", "E_psi")],
    }


def gradients(m, q, qd, x, fext):
    def loss(*args):
        return jnp.sum(jnp.cos(jd.forward_dynamics(*args)))

    return jax.jit(jax.grad(loss, (0, 1, 2, 3, 4)))(m, q, qd, x, fext)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what"),
    [
        *(("free_tree", what) for what in (dynamics, diagonal, slopes, operators)),
        *((name, gradients) for name in ("free_tree", "mixed_chain")),
    ],
)
def test_compiled_is_interpreted(name, what, link_by_link):
    """Every public function on a tree, and gradients on a chain, too.

    But for those that are compiled to be compared with Pinocchio: the dynamics and
    kinematics, energies and momentum, the derivatives of the dynamics, the regressor.
    """
    model = ALL[name]()
    fext = jax.random.normal(jax.random.key(5), (model.n_links, 6))
    args = model, *state(model), fext
    with by_numpy():
        want = jax.tree.leaves(what(*args))
    found = jax.tree.leaves(what(*args))
    for mine, other in zip(found, want, strict=True):
        if other.size and np.issubdtype(other.dtype, np.floating):
            size = max(np.abs(other).max(), 1e-3)
            assert np.abs(mine - other).max() < 1e-11 * size, (mine, other)


def test_nothing_is_compiled_within_it(caplog):
    model = ALL["mixed_chain"]()
    q, qd, x = state(model)
    with by_numpy(), jax.log_compiles():
        jax.clear_caches()
        found = jd.forward_dynamics(model, q, qd, x)
    assert not [r for r in caplog.records if "XLA compilation" in r.getMessage()]
    with jax.log_compiles():
        assert error(jd.forward_dynamics(model, q, qd, x), found) < 1e-12
    assert [r for r in caplog.records if "XLA compilation" in r.getMessage()]


X = jnp.arange(24.0).reshape(4, 6) / 7
I = jnp.array([2, 0, 3])
PROGRAMS = {
    "gather": lambda: X[I],
    "gather along": lambda: jnp.take_along_axis(X, I[None, :], axis=1),
    "gather two": lambda: X[I, I],
    "gather columns": lambda: X[:, I],
    "gather batch": lambda: jax.vmap(lambda x, i: x[i])(X[:3], I),
    "gather out of bounds": lambda: X.at[I + 3].get(mode="fill", fill_value=7.0),
    "scatter": lambda: X.at[I].set(1.0),
    "scatter add": lambda: X.at[:, jnp.array([1, 1])].add(X[:, :2]),
    "scatter multiply": lambda: X.at[I].multiply(X[:3]),
    "scatter out of bounds": lambda: X.at[I + 3].add(1.0),
    "scatter batch": lambda: jax.vmap(lambda x, i: x.at[i].set(9.0))(X[:3], I),
    "dynamic": lambda: jax.lax.dynamic_update_slice(X, X[:2, :2], (3, 3)),
    "dot": lambda: jnp.einsum("bij,bjk->bki", X.reshape(2, 3, 4), X.reshape(2, 4, 3)),
    "pad": lambda: jax.lax.pad(X, 1.0, [(1, 2, 1), (0, 1, 0)]),
    "crop": lambda: jax.lax.pad(X, 1.0, [(-1, 2, 0), (0, -1, 0)]),
    "while": lambda: jax.lax.while_loop(lambda x: x < 100, lambda x: x * 3, 2),
    "cond": lambda: jax.lax.cond(X[1, 1] > 1, jnp.sin, jnp.cos, X),
    "switch": lambda: jax.lax.switch(I[0], [jnp.sin, jnp.cos, jnp.tanh], X),
    "round": lambda: (jnp.round(X), jax.lax.round(X), jnp.floor(-X), X % 2, 7 // I),
    "weak types": lambda: (
        jnp.asarray(2),
        2 * jnp.asarray(3.0),
        jnp.where(I > 2, 1, 2),
    ),
    "types": lambda: (I.astype(float), X.astype("float32") * 2, I % 2 == 0),
    "sums": lambda: (X.sum(0), X.max(), X.min(1), (X > 1).any(), (X > 1).all(0)),
    "solve": lambda: jnp.linalg.solve(jnp.eye(4) + X[:, :4] / 9, X),
    "cholesky": lambda: jnp.linalg.cholesky(X @ X.T + jnp.eye(4)),
    "scan": lambda: jax.lax.scan(
        lambda c, x: (c + x[0], c * x), 0.5, X, reverse=True, unroll=2
    ),
    "random": lambda: jax.random.normal(jax.random.key(1), (3,)),
    "sort": lambda: (jnp.sort(X[::-1], 0), jnp.cumsum(X, 1), X[::-1, ::2]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_operations(name):
    program = PROGRAMS[name]
    want = jax.tree.leaves(jax.jit(lambda: program())())
    with by_numpy():
        found = jax.tree.leaves(jax.jit(lambda: program())())
    for mine, other in zip(found, want, strict=True):
        assert jax.typeof(mine) == jax.typeof(other)  # the weak type, too
        np.testing.assert_allclose(mine, other, rtol=1e-14, atol=1e-14)
