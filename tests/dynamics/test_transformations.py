"""jit, vmap, grad: over states and over robots, in both modes and both precisions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

import jaxdenoc as jd

from ..support.by_numpy import by_numpy
from ..support.oracle import error
from ..support.robots import ALL, state, tree

# every public function of a state, as a function of (model, q, qd, x)
FUNCTIONS = {
    "inverse_dynamics": jd.inverse_dynamics,
    "forward_dynamics": jd.forward_dynamics,
    "dense": lambda m, q, qd, x: jd.forward_dynamics(m, q, qd, x, method="dense"),
    "bias_forces": lambda m, q, qd, x: jd.bias_forces(m, q, qd),
    "gravity_forces": lambda m, q, qd, x: jd.gravity_forces(m, q),
    "mass_matrix": lambda m, q, qd, x: jd.mass_matrix(m, q),
    "coriolis_matrix": lambda m, q, qd, x: jd.coriolis_matrix(m, q, qd),
    "forward_kinematics": lambda m, q, qd, x: jd.forward_kinematics(m, q),
    "jacobian": lambda m, q, qd, x: jd.jacobian(m, q, m.n_links - 1),
    "energy": lambda m, q, qd, x: (
        jd.kinetic_energy(m, q, qd) + jd.potential_energy(m, q)
    ),
    "momentum": lambda m, q, qd, x: jd.centroidal_momentum(m, q, qd),
    "solve": lambda m, q, qd, x: jd.factorize(m, q).solve(x),
    "logdet": lambda m, q, qd, x: jd.factorize(m, q).logdet(),
    "rates": lambda m, q, qd, x: jd.factorize(m, q).total_rates(qd),
    "acceleration of nu": jd.diagonal_acceleration,
    "skew matrix": lambda m, q, qd, x: jd.diagonal_coriolis_matrix(m, q, qd),
    "sensitivity": lambda m, q, qd, x: jd.mass_matrix_sensitivity(m, q),
    "rate of m": lambda m, q, qd, x: jd.mass_factor_rate(m, q, qd),
    "operational": lambda m, q, qd, x: jd.operational_inertia_inverse(
        m, q, m.n_links - 1
    ),
}
ROBOTS = {s: ALL[s] for s in ("mixed_chain", "free_tree")}
# all but those that others are made of on a chain; a sweep of each sort on a free tree
PARTS = ("bias_forces", "gravity_forces", "dense", "logdet", "rates")
CASES = [("mixed_chain", f) for f in FUNCTIONS if f not in PARTS] + [
    ("free_tree", f) for f in ("inverse_dynamics", "forward_dynamics")
]


def stacked(count, name):
    """Robots of one topology with different numbers, as one model with a batch axis."""
    model = ROBOTS[name]()

    def vary(k):
        def scaled(x):
            return x * (1 + 0.01 * k)

        where = lambda m: (m.mass, m.inertia, m.placement.translation)  # noqa: E731
        return eqx.tree_at(where, model, jax.tree.map(scaled, where(model)))

    models = [vary(k) for k in range(count)]
    return models, jax.tree.map(lambda *x: jnp.stack(x), *models)


@pytest.mark.slow
@pytest.mark.parametrize("name, function", CASES)
def test_vmap_over_states_and_over_robots(name, function):
    f = FUNCTIONS[function]
    models, batch = stacked(3, name)
    states = [state(models[0], seed) for seed in range(3)]
    q, qd, x = (jnp.stack(s) for s in zip(*states, strict=True))
    with by_numpy():
        one_by_one = np.stack([f(m, *s) for m, s in zip(models, states, strict=True)])
        found = jax.jit(jax.vmap(f))(batch, q, qd, x)
        same = np.stack([f(models[0], *s) for s in states])
    assert error(found, one_by_one) < 1e-12
    found = jax.vmap(f, (None, 0, 0, 0))(models[0], q, qd, x)
    assert error(found, same) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name, function", CASES[:-2])
@by_numpy()
def test_derivatives_in_both_modes(name, function):
    """Forward mode equals reverse mode equals central differences.

    A free tree: `test_rules.py`.
    """
    f, model = FUNCTIONS[function], ROBOTS[name]()
    q, qd, x = state(model)
    weights = jax.random.normal(jax.random.key(9), jnp.shape(f(model, q, qd, x)))
    directions = jax.tree.map(
        lambda a, k: jax.random.normal(jax.random.key(k), a.shape),
        (model.mass, q, qd, x),
        (1, 2, 3, 4),
    )

    @jax.jit
    def loss(mass, q, qd, x):
        heavier = eqx.tree_at(lambda m: m.mass, model, mass)
        return jnp.sum(f(heavier, q, qd, x) * weights)

    at = model.mass, q, qd, x
    _, forward = jax.jvp(loss, at, directions)
    gradient = jax.grad(loss, (0, 1, 2, 3))(*at)
    reverse = sum(jnp.sum(g * d) for g, d in zip(gradient, directions, strict=True))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-9)

    def moved(h):
        return loss(*jax.tree.map(lambda a, d: a + h * d, at, directions))

    h = 1e-5
    slope = (moved(h) - moved(-h)) / (2 * h)
    np.testing.assert_allclose(forward, slope, rtol=1e-5, atol=1e-5)


def with_friction(model):
    some = jnp.full(model.nv, 0.1)
    where = lambda m: (m.armature, m.damping, m.friction)  # noqa: E731
    return eqx.tree_at(where, model, (some, some, some))


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        jd.diagonal_acceleration,
        lambda m, q, qd, x: jd.mass_factor_rate(m, q, qd),
        lambda m, q, qd, x: jd.mass_matrix_sensitivity(m, q),
    ],
)
@by_numpy()
def test_gradients_at_degenerate_states(function):
    """At rest, at zero, axes aligned: finite for every leaf of the model and state.

    Inverse and forward dynamics: `test_rules.py`.
    """
    model = with_friction(jd.robots.rod_chain(3))  # straight and parallel at q = 0
    q, still = jd.neutral(model), jnp.zeros(model.nv)

    @jax.jit
    def gradients(*args):
        return jax.grad(lambda *x: jnp.sum(function(*x)), (0, 1, 2, 3))(*args)

    for path, leaf in jax.tree_util.tree_leaves_with_path(
        gradients(model, q, still, still)
    ):
        assert np.isfinite(leaf).all(), path


def test_one_compilation_for_all_parameters_and_states():
    model = jd.robots.random_chain(jax.random.key(0), 4)
    traces = []

    @jax.jit
    def f(model, q, qd, tau):
        traces.append(1)
        return jd.forward_dynamics(model, q, qd, tau)

    for k in range(4):
        where = lambda m: (  # noqa: E731
            *(m.mass, m.com, m.inertia, m.gravity, m.armature, m.damping, m.friction),
            *(m.placement.rotation, m.placement.translation, m.axis, m.pitch),
        )
        changed = eqx.tree_at(
            where, model, jax.tree.map(lambda x: x * (1 + 0.1 * k), where(model))
        )
        f(changed, *state(model, k))
        twin = jd.robots.random_chain(jax.random.key(0), 4)  # built anew, equal
        f(twin, *state(model, k))
    assert len(traces) == 1
    single = jax.tree.map(lambda x: x.astype(jnp.float32), model)
    f(single, *state(single, 0))
    f(single, *state(single, 1))
    assert len(traces) == 2


def test_a_call_outside_of_jit_compiles_once(caplog):
    model = jd.robots.random_chain(jax.random.key(5), 3)
    q, qd, tau = state(model)
    jd.forward_dynamics(model, q, qd, tau)
    caplog.clear()
    with jax.log_compiles():
        jd.forward_dynamics(model, q, qd, tau)
    assert not caplog.records
    with jax.log_compiles():  # and a compilation would have been seen
        jax.jit(lambda x: x + 1)(q)
    assert caplog.records


@pytest.mark.parametrize("n", [1, 10])
@by_numpy()
def test_float32_arms(n):
    """Within 2e-5 of float64, for arms of up to ten links; dtype follows the model."""
    for seed in range(4):
        model = tree(seed, range(-1, n - 1))
        single = jax.tree.map(lambda x: x.astype(jnp.float32), model)
        small = state(single, seed)
        same = [x.astype(jnp.float64) for x in small]  # the same numbers, exactly
        model = jax.tree.map(lambda x: x.astype(jnp.float64), single)
        for name in list(FUNCTIONS)[:9]:
            f = FUNCTIONS[name]
            found = f(single, *small)
            assert found.dtype == jnp.float32, name
            want = np.array(f(model, *same))
            scale = max(np.abs(want).max(), 1e-2)
            assert np.abs(np.array(found) - want).max() < 2e-5 * scale, name


def test_shapes_are_refused_with_a_hint():
    model = ROBOTS["mixed_chain"]()
    q, qd, qdd = state(model)
    with pytest.raises(jd.ModelError, match=r"qd has shape \(5,\).*needs \(6,\)"):
        jd.inverse_dynamics(model, q, qd[:5], qdd[:5])
    with pytest.raises(jd.ModelError, match=r"fext.*\(6, 6\)"):
        jd.forward_dynamics(model, q, qd, qdd, jnp.zeros((2, 6)))
    with pytest.raises((ValueError, TypeCheckError), match="recursive"):
        jd.forward_dynamics(model, q, qd, qdd, method="magic")


SHAPES = {
    "arm": ((-1, 0, 1, 2, 3), False),
    "two roots": ((-1, 0, 1, -1, 3, 4), False),
    "free legs": ((-1, 0, 1, 0, 3), True),
}


@jax.jit
def residuals(model, q, qd, qdd):
    tau = jd.inverse_dynamics(model, q, qd, qdd)
    back = jd.forward_dynamics(model, q, qd, tau)

    def energy(q, qd):
        return jd.kinetic_energy(model, q, qd) + jd.potential_energy(model, q)

    rates = jd.configuration_rate(model, q, qd), qdd
    gain = jax.jvp(energy, (q, qd), rates)[1]
    M = jd.mass_matrix(model, q)
    return {
        "FD(ID) = 1": (back, qdd),
        "power": (gain, tau @ qd),
        "ℳ": (jd.kinetic_energy(model, q, qd), qd @ M @ qd / 2),
        "solve": (M @ jd.factorize(model, q).solve(qd), qd),
    }


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@limits(max_examples=100)
@given(seed=st.integers(0, 2**30), scale=st.floats(0.01, 100), speed=st.floats(0, 20))
def test_any_robot_in_any_state(shape, seed, scale, speed):
    """FD undoes ID, ℳ is that of the energy, power is what the energy gains."""
    parents, floating = SHAPES[shape]
    model = tree(seed, parents, floating)
    model = eqx.tree_at(lambda m: m.mass, model, model.mass * scale)
    q, qd, qdd = state(model, seed)
    found = residuals(model, q, speed * qd, qdd)
    for name, (left, right) in found.items():
        size = max(np.abs(np.array(right)).max(), np.abs(np.array(left)).max(), 1.0)
        assert np.abs(np.array(left - right)).max() < 1e-9 * size, name
