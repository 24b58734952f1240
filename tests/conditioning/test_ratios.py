"""Condition numbers and their cheap relatives, against dense matrices and the note."""

import inspect
import json
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.conditioning import mass_matrix_diagonal

from ..support.robots import ALL, state

GOLDEN = Path(__file__).parents[1] / "golden"
cites = pytest.mark.cites


def note(n, mass=1.0, extra=0.0):
    gravity = 9.81 * np.array([np.cos(np.pi / 6), -np.sin(np.pi / 6), 0.0])
    return jd.robots.rod_chain(n, mass=mass, axial_inertia=extra, gravity=gravity)


@cites("MATH 8, 15; chain4_condition.json")
@pytest.mark.parametrize(
    "case", ["text_values_m2.2", "fitted_thin_rod", "fitted_solid_rod"]
)
def test_the_notes_example(case):
    golden = json.loads((GOLDEN / "chain4_condition.json").read_text())["cases"][case]
    model, rest = note(4, golden["m"], golden["extra_Izz_per_link"]), jnp.zeros(4)
    close = partial(np.testing.assert_allclose, rtol=1e-9)
    close(jd.mass_matrix(model, rest), golden["I"])
    close(jd.condition_number(model, rest), golden["kappa"])
    close(jd.condition_number(model, rest, method="lanczos"), golden["kappa"])
    close(jd.extreme_eigenvalues(model, rest), np.array(golden["eig"])[[0, -1]])
    close(jd.diagonal_ratio(model, rest), golden["diag_ratio"])
    D = golden["pivots_reverse_D"]
    close(jd.pivot_ratio(model, rest), max(D) / min(D))
    D = golden["pivots_forward"]
    close(jd.pivot_ratio(model, rest, order="forward"), max(D) / min(D))


@cites("MATH 8, 15; chain_swing.json")
@pytest.mark.parametrize("n", ["4", "10", "20"])
def test_the_notes_swings(n):
    golden = json.loads((GOLDEN / "chain_swing.json").read_text())
    model, see = note(int(n), golden["m"]), golden["chains"][n]
    qs = jnp.asarray(see["q"])
    monitor = jd.ConditionMonitor.start(model, qs[0])

    @jax.jit
    @jax.vmap
    def found(q):
        return {
            "kappa": jd.condition_number(model, q),
            "diag_ratio": jd.diagonal_ratio(model, q),
            "diag_ratio_maxmin": jd.diagonal_ratio(model, q, safe=True),
            "scaled_diag_ratio": monitor.estimate(model, q),
            "pivot_ratio_reverse": jd.pivot_ratio(model, q),
            "pivot_ratio_forward": jd.pivot_ratio(model, q, order="forward"),
        }

    np.testing.assert_allclose(monitor.alpha, see["alpha"], rtol=1e-9)
    for name, numbers in found(qs).items():
        np.testing.assert_allclose(numbers, see[name], rtol=1e-9, err_msg=name)


@cites("MATH 8: κ of straight chains is about 4n⁴")
def test_straight_chains():
    table = {4: 1074.44, 6: 5685.1, 8: 17971, 10: 43523, 16: 278053, 32: 4.2918e6}
    for n in (4, 6, 8, 10, 16, 32, 64):
        chain = jd.robots.rod_chain(n, mass=3, length=0.2)
        kappa = jd.condition_number(chain, jnp.zeros(n))
        assert 0.99 < kappa / (4 * n**4) < 1.10
        if n in table:
            np.testing.assert_allclose(kappa, table[n], rtol=1e-4)


@cites("MATH 8: κ ≥ max ℳ_ii / min ℳ_ii, κ ≥ ρ")
@pytest.mark.parametrize("name", ALL)
def test_dense_matrices(name, interpreted):
    """A free base, helical joints and armature included."""
    model = ALL[name]()
    armature = jnp.linspace(0.01, 0.3, model.nv)
    model = eqx.tree_at(lambda m: m.armature, model, armature)
    q, *_ = state(model)
    M = np.asarray(jd.mass_matrix(model, q))
    close = partial(np.testing.assert_allclose, rtol=1e-10)
    close(mass_matrix_diagonal(model, q), np.diag(M))
    low, high = np.linalg.eigvalsh(M)[[0, -1]]
    close(jd.extreme_eigenvalues(model, q, steps=model.nv), (low, high))
    kappa, D = jd.condition_number(model, q), np.asarray(jd.factorize(model, q).D)
    close(kappa, high / low)
    forward = np.diag(np.linalg.cholesky(M)) ** 2
    close(jd.pivot_ratio(model, q), D.max() / D.min())
    close(jd.pivot_ratio(model, q, order="forward"), forward.max() / forward.min())
    close(jd.diagonal_ratio(model, q), M[0, 0] / M[-1, -1])
    close(jd.diagonal_ratio(model, q, safe=True), np.diag(M).max() / np.diag(M).min())
    below = kappa * (1 + 1e-12)
    assert jd.diagonal_ratio(model, q, safe=True) <= below
    assert jd.pivot_ratio(model, q) <= below


@pytest.mark.parametrize("n", [17, 33, 64])
def test_lanczos_on_random_configurations(n):
    """Within 5 % of κ, and never above it."""
    model = jd.robots.rod_chain(n)
    qs = jax.random.uniform(jax.random.key(n), (20, n), float, -np.pi, np.pi)
    kappa = jax.jit(jax.vmap(partial(jd.condition_number, model)))(qs)
    lanczos = partial(jd.condition_number, model, method="lanczos")
    ratio = np.asarray(jax.jit(jax.vmap(lanczos))(qs) / kappa)
    assert np.all(ratio > 0.95) and np.all(ratio < 1 + 1e-9)


def test_lanczos_in_float32_where_eigenvalues_fail():
    model, q = jd.robots.rod_chain(64), jnp.zeros(64)
    known = float(jd.condition_number(model, q))
    single, q = (jax.tree.map(lambda x: x.astype(jnp.float32), x) for x in (model, q))
    lanczos = jd.condition_number(single, q, method="lanczos")
    assert lanczos.dtype == jnp.float32
    assert 0.95 < float(lanczos) / known < 1.001
    dense = float(jd.condition_number(single, q))
    assert not 0.5 < dense / known < 2


def test_derivatives_and_batches(interpreted):
    model = ALL["mixed_chain"]()
    q, *_ = state(model)
    for f in (
        partial(jd.condition_number, model),
        partial(jd.condition_number, model, method="lanczos"),
        partial(jd.diagonal_ratio, model),
        partial(jd.pivot_ratio, model),
    ):
        h, way = 1e-6, jnp.cos(jnp.arange(6.0))
        slope = (f(q + h * way) - f(q - h * way)) / (2 * h)
        size = 1e-6 * f(q)
        np.testing.assert_allclose(jax.jacfwd(f)(q) @ way, slope, rtol=1e-6, atol=size)
        np.testing.assert_allclose(jax.grad(f)(q) @ way, slope, rtol=1e-6, atol=size)
        both = jax.vmap(f)(jnp.stack([q, -q]))
        np.testing.assert_allclose(both, jnp.stack([f(q), f(-q)]), rtol=1e-10)


def test_refused(interpreted):
    model, q = jd.robots.rod_chain(2), jnp.zeros(2)
    with pytest.raises(ValueError, match="'eigenvalues' or 'lanczos'"):
        inspect.unwrap(jd.condition_number)(model, q, method="svd")
    with pytest.raises(ValueError, match="'reverse' or 'forward'"):
        inspect.unwrap(jd.pivot_ratio)(model, q, order="up")
    with pytest.raises(ValueError, match="every how many samples"):
        jd.rollout(model, q, q, None, 0.1, steps=2, monitor=-1)
    with pytest.raises(jd.ModelError, match="needs"):
        jd.condition_number(model, jnp.zeros(3))
