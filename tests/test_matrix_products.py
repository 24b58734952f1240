"""Accelerators round the factors of matrix products, unless a product forbids it."""

import jax
import jax.numpy as jnp
import pytest

import jaxdenoc as jd
from jaxdenoc._reductions import programs

from .support.robots import FREE, state
from .test_by_numpy import diagonal, dynamics, gradients, operators, slopes


def kinematics(m, q, qd, x, fext):
    return {
        "frames": jd.forward_kinematics(m, q),
        "jacobians": [jd.jacobian(m, q, 1, axes=s) for s in ("body", "base")],
        "energies": (jd.kinetic_energy(m, q, qd), jd.potential_energy(m, q)),
        "momentum": (jd.centroidal_momentum(m, q, qd), jd.center_of_mass(m, q)),
        "inverse": jd.inverse_dynamics(m, q, qd, x, fext),
        "coriolis": (jd.mass_matrix(m, q), jd.coriolis_matrix(m, q, qd)),
    }


def derivatives(m, q, qd, x, fext):
    return {
        "jacobians": jd.forward_dynamics_derivatives(m, q, qd, x),
        "regressor": jd.regressor(m, q, qd, x),
        "parallel": jd.forward_dynamics(m, q, qd, x, fext, method="parallel", refine=1),
        "kappa": jd.condition_number(m, q),
        "lanczos": jd.condition_number(m, q, method="lanczos"),
        "parameters": jax.vmap(jd.log_cholesky)(jd.inertial_parameters(m)),
    }


def curvature(m, q, qd, x, fext):
    fixed = jd.robots.rod_chain(2)
    return jd.riemann_curvature(fixed, q[-2:]), jd.christoffel_symbols(fixed, q[-2:])


def energies_slope(m, q, qd, x, fext):
    def energy(m, q, qd):
        return jd.kinetic_energy(m, q, qd) + jd.potential_energy(m, q)

    return jax.grad(energy, (0, 1, 2))(m, q, qd)


def control(m, q, qd, x, fext):
    arm = jd.robots.rod_chain(2)
    law = jd.control.set_point(arm, jnp.eye(4))
    return law(0.0, q[-2:], qd[-2:]), law.lyapunov(q[-2:], qd[-2:])


def products(jaxpr):
    """The precision of every matrix product in a program, those in loops included."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation.params["precision"]
        for inner in programs(equation):
            yield from products(inner.jaxpr)


ALL_DIGITS = (jax.lax.Precision.HIGHEST,) * 2
PARTS = (
    *(kinematics, dynamics, diagonal, operators, curvature, control),
    *(slopes, derivatives, gradients, energies_slope),
)


@pytest.mark.parametrize("part", PARTS)
def test_products_have_all_digits(part):
    model = FREE["free_tree"]()
    fext = jnp.ones((model.n_links, 6))
    traced = jax.make_jaxpr(part)(model, *state(model), fext)
    found = list(products(traced.jaxpr))
    assert all(p == ALL_DIGITS for p in found), found
    if part in (dynamics, diagonal, operators, slopes):
        assert found


def test_the_search_finds_what_is_rounded():
    def rounded(x):
        return jax.lax.scan(lambda c, row: (c + row @ row, None), 0.0, x)[0]

    traced = jax.make_jaxpr(jax.jit(rounded))(jnp.ones((3, 4)))
    assert list(products(traced.jaxpr)) == [None]
