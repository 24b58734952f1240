"""All closed forms against autodiff, on random robots.

Hypothesis draws robots (1 to 12 links, turning, sliding and helical joints, chains and
trees) and their states. The worst residual of each identity is printed at the end of
the test run.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

import jaxdenoc as jd
from jaxdenoc.model import carried
from jaxdenoc.recursion import inertia_rates, posture, riccati

from ..support.robots import state, tree

SHAPES = {
    "one link": (-1,),
    "chain of 7": tuple(range(-1, 6)),
    "tree of 12": (-1, 0, 1, 2, 3, 4, 5, 1, 7, 8, 9, 10),
}
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
CASES = [
    ("float64", "one link", 50),
    ("float64", "chain of 7", 80),
    ("float64", "tree of 12", 80),
    ("float32", "chain of 7", 100),
]


def size(*xs):
    return sum(jnp.max(jnp.abs(x)) for x in xs)


# each closed form, what autodiff says, and the size to measure their difference with;
# in several programs, because XLA takes longer over one large one


@jax.jit
def of_the_mass_matrix(model, q, qd, tau):
    dM = jax.jacfwd(jd.mass_matrix, 1)(model, q)
    mass, speed = size(jd.mass_matrix(model, q)), size(qd)
    return {
        "∂ℳ/∂q in closed form = jacfwd(ℳ)": (
            jd.mass_matrix_sensitivity(model, q),
            jnp.moveaxis(dM, -1, 0),
            size(dM) + mass,
        ),
        "ℳ̇ = Σ ∂ℳ/∂q_i θ̇_i": (
            jd.mass_matrix_rate(model, q, qd),
            dM @ qd,
            size(dM) * speed + mass,
        ),
        "θ̇ᵀℳ_qθ̇ in O(n)": (
            jd.mass_matrix_form(model, q, qd),
            jnp.einsum("abi,a,b->i", dM, qd, qd),
            (size(dM) + mass) * speed**2,
        ),
    }


@jax.jit
def of_its_factor(model, q, qd, tau):
    f = jd.factorize(model, q)
    nu, eps = f.total_rates(qd), f.working_moments(tau)
    C = jd.diagonal_coriolis(model, q, nu)
    weightless = eqx.tree_at(lambda m: m.gravity, model, 0 * model.gravity)
    bias = jd.bias_forces(weightless, q, qd)
    m, m_dot = jax.jvp(lambda q: jd.factorize(model, q).m, (q,), (qd,))
    terms = f.working_moments(bias), m_dot.T @ qd, nu
    return {
        "ṁ in closed form = jvp of m": (
            jd.mass_factor_rate(model, q, qd),
            m_dot,
            size(m_dot, m),
        ),
        "ṁν in O(n)": (
            jd.mass_factor_rate_product(model, q, qd),
            m_dot @ nu,
            size(m_dot, m) * size(nu),
        ),
        "C(θ, ν) = ℓ C(θ, θ̇) - ṁᵀθ̇": (C, terms[0] - terms[1], size(*terms)),
        "νᵀC = 0": (nu @ C, 0.0 * (nu @ C), size(*terms) * size(nu)),
        "d/dt ½νᵀν = νᵀε": (
            nu @ (eps - C),
            nu @ eps,
            size(nu) * size(eps, *terms),
        ),
    }


@jax.jit
def of_the_skew_matrix(model, q, qd, tau):
    nu = jd.factorize(model, q).total_rates(qd)
    A = jd.diagonal_coriolis_matrix(model, q, nu)
    C = jd.diagonal_coriolis(model, q, nu)
    return {"C(θ, ν) = A ν": (A @ nu, C, size(nu) * size(A) + size(nu))}


@jax.jit
def of_articulated_bodies(model, q, qd, tau):
    def articulated(q):  # in body axes, where the local rate is that of the numbers
        here = posture(model, q)
        P, R = riccati(model, here).P.array, here.R.array
        turn = jnp.zeros_like(P).at[:, :3, :3].set(R).at[:, 3:, 3:].set(R)
        return jnp.swapaxes(turn, 1, 2) @ P @ turn, turn

    (P, turn), (P_dot, _) = jax.jvp(articulated, (q,), (qd,))
    here = posture(model, q)
    found = inertia_rates(here, riccati(model, here), qd).array
    found = jnp.swapaxes(turn, 1, 2) @ found @ turn
    return {"Ṗ = jvp of the sweep": (found, P_dot, size(P_dot, P))}


@jax.jit
def of_the_dynamics(model, q, qd, x):
    """Along one direction and weighted with one vector, which are arbitrary."""
    along, weights = (x, q, qd), jnp.cos(q)

    def inverse(*state):
        return jd.inverse_dynamics(model, *state)

    def forward(*state):
        return jd.forward_dynamics(model, *state)

    with jd.autodiff_rules("plain"):
        plain = jax.jvp(inverse, (q, qd, x), along)[1]
    by_rule = jax.jvp(forward, (q, qd, x), along)[1]
    reverse = jax.vjp(forward, q, qd, x)[1](weights)
    of_inverse = jd.inverse_dynamics_derivatives(model, q, qd, x)
    of_forward = jd.forward_dynamics_derivatives(model, q, qd, x)
    reach = [
        jnp.concatenate(
            [jnp.abs(J) @ jnp.abs(d) for J, d in zip(Js, along, strict=True)]
        )
        for Js in (of_inverse, of_forward)
    ]
    pull = jnp.concatenate([jnp.abs(J).T @ jnp.abs(weights) for J in of_forward])
    pi = jd.inertial_parameters(model).ravel()
    Y = jd.regressor(model, q, qd, x)
    return {
        "∂τ in closed form = jvp of ID": (
            sum(J @ d for J, d in zip(of_inverse, along, strict=True)),
            plain,
            size(reach[0]),
        ),
        "∂θ̈ in closed form = jvp of FD by its rule": (
            sum(J @ d for J, d in zip(of_forward, along, strict=True)),
            by_rule,
            size(reach[1]),
        ),
        "∂θ̈ in closed form = vjp of FD by its rule": (
            jnp.concatenate(reverse),
            jnp.concatenate([J.T @ weights for J in of_forward]),
            size(pull),
        ),
        "Y π = τ": (Y @ pi, inverse(q, qd, x), size(jnp.abs(Y) @ jnp.abs(pi))),
    }


PROGRAMS = (
    of_the_dynamics,
    of_the_mass_matrix,
    of_its_factor,
    of_the_skew_matrix,
    of_articulated_bodies,
)


def residuals(shape, *args):
    # the dynamics of one link and of trees: `test_dynamics.py`, against Pinocchio
    for program in PROGRAMS if shape == "chain of 7" else PROGRAMS[1:]:
        for name, (a, b, scale) in program(*args).items():
            yield name, float(np.abs(np.subtract(a, b)).max() / scale)


@pytest.mark.slow
@pytest.mark.cites("MATH 15: (6.11), (6.12), (6.14), (6.16), 7.4, (7.a) against JVPs")
@pytest.mark.parametrize("dtype, shape, draws", CASES)
def test_closed_forms(dtype, shape, draws, record_property, link_by_link):
    worst = {}

    @limits(max_examples=draws, database=None)
    @given(st.integers(0, 2**30))
    def on_any_robot(seed):
        model = tree(seed, SHAPES[shape])
        args = jax.tree.map(lambda x: x.astype(dtype), (model, *state(model, seed)))
        for name, found in residuals(shape, *args):
            worst[name] = max(worst.get(name, 0.0), found)
            assert found < TOLERANCE[dtype], name

    on_any_robot()
    record_property("residuals", [dtype, worst])


@pytest.mark.cites("MATH 7.a: Ṗ")
def test_the_residuals_see_an_error():
    """A sliding joint's own rate left out is seen."""
    model = tree(3, (-1, 0, 1, 2))
    q, qd, _ = state(model)
    here = posture(model, q)
    found = riccati(model, here)
    right = inertia_rates(here, found, qd * carried(model)).array
    wrong = inertia_rates(here, found, qd.at[1].set(0.0)).array
    assert np.abs(right - wrong).max() > 1e-3
