"""A batch in tiles is the plain batch: every way in which `vmap` can come by."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc import _pieces
from jaxdenoc._tiles import TILE, in_tiles, no_tiles

from .support.by_numpy import by_numpy
from .support.robots import ALL


def plain(model, x, y):
    """Something with a loop, two types, an argument it ignores, and two results."""

    def step(total, row):
        total = jnp.sin(total) * row + y
        return total, total * 2

    last, rows = jax.lax.scan(step, x, model["rows"])
    return last, rows * jnp.sum(model["kinds"]).astype(x.dtype)


tiled = in_tiles(plain)
MODEL = {
    "rows": jnp.linspace(0.5, 1.5, 6),
    "kinds": jnp.arange(3.0, dtype=jnp.float32),
    "unused": jnp.ones(4),
    "and of its own type": jnp.arange(3),
}


def same(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12), a, b)


@pytest.mark.parametrize("size", [1, 3, TILE, TILE + 1, 300, 2 * TILE])
def test_vmap(size):
    x, y = jnp.linspace(0, 1, size), jnp.linspace(1, 2, size)
    for axes in ((None, 0, 0), (None, 0, None), (None, None, 0)):
        args = MODEL, x if axes[1] == 0 else x[0], y if axes[2] == 0 else y[0]
        same(jax.jit(jax.vmap(tiled, axes))(*args), jax.vmap(plain, axes)(*args))


def test_vmap_over_parameters_and_other_axes():
    x, y = jnp.linspace(0, 1, 200), jnp.linspace(1, 2, 200)
    models = jax.tree.map(lambda a: jnp.stack([a * (1 + k) for k in range(200)]), MODEL)
    same(jax.vmap(tiled)(models, x, y), jax.vmap(plain)(models, x, y))
    rows = jnp.stack([MODEL["rows"]] * 200, axis=1)
    models = MODEL | {"rows": rows}
    axes = ({s: 1 if s == "rows" else None for s in MODEL}, 0, 0)
    same(jax.vmap(tiled, axes)(models, x, y), jax.vmap(plain, axes)(models, x, y))


@pytest.mark.parametrize("inner, outer", [(4, 200), (200, 4), (10, 10)])
def test_vmap_of_vmap(inner, outer):
    x, y = jnp.linspace(0, 1, inner), jnp.linspace(1, 2, outer)

    def table(f):
        return jax.jit(jax.vmap(jax.vmap(f, (None, 0, None)), (None, None, 0)))(
            MODEL, x, y
        )

    same(table(tiled), table(plain))


def test_derivatives_in_all_orders_of_vmap_and_grad():
    x, y = jnp.linspace(0, 1, 150), jnp.linspace(1, 2, 150)

    def loss(f, x, y):
        last, rows = f(MODEL, x, y)
        return last**2 + jnp.sum(rows)

    def both(f):
        one = jax.vmap(jax.grad(lambda x, y: loss(f, x, y), (0, 1)))(x, y)
        other = jax.grad(
            lambda x, y: jnp.sum(jax.vmap(lambda x, y: loss(f, x, y))(x, y))
        )
        forward = jax.vmap(jax.jacfwd(lambda x: loss(f, x, y[0])))(x)
        second = jax.vmap(jax.hessian(lambda x: loss(f, x, y[0])))(x[:5])
        return one, jax.jit(other)(x, y), forward, second

    same(both(tiled), both(plain))

    def of_rows(f):
        def total(rows):
            last, _ = jax.vmap(f, (None, 0, 0))(MODEL | {"rows": rows}, x, y)
            return jnp.sum(last)

        return jax.grad(total)(MODEL["rows"])

    same(of_rows(tiled), of_rows(plain))


def test_what_cannot_be_one_piece_runs_plainly():
    def solve(a, b):
        return jnp.linalg.solve(a, b)

    a = jnp.eye(3)[None] + jnp.linspace(0, 0.1, 2000 * 9).reshape(2000, 3, 3)
    b = jnp.ones((2000, 3))
    same(jax.vmap(in_tiles(solve))(a, b), jax.vmap(solve)(a, b))


def test_the_tiles_can_be_left_out():
    x, y = jnp.linspace(0, 1, 300), jnp.linspace(1, 2, 300)
    batch = jax.vmap(tiled, (None, 0, 0))
    with no_tiles():
        program = str(jax.make_jaxpr(batch)(MODEL, x, y))
        assert "platform_index" not in program
        found = batch(MODEL, x, y)
    if _pieces.ENABLED:
        assert "platform_index" in str(jax.make_jaxpr(batch)(MODEL, x, y))
    same(found, jax.vmap(plain, (None, 0, 0))(MODEL, x, y))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, function",
    [
        ("mixed_chain", jd.inverse_dynamics),
        ("mixed_chain", jd.diagonal_acceleration),
        ("mixed_chain", lambda m, q, qd, x: jd.mass_matrix_sensitivity(m, q)),
        ("free_tree", jd.forward_dynamics),
    ],
)
def test_the_library_in_tiles(name, function):
    """Over states, and over robots, in more than one tile; one by one, and a grid."""
    model, size = ALL[name](), TILE + 5
    draw = jax.vmap(lambda key: jd.random_state(model, key))
    q, qd = draw(jax.random.split(jax.random.key(0), size))
    x = jax.random.normal(jax.random.key(1), qd.shape)
    found = jax.jit(jax.vmap(function, (None, 0, 0, 0)))(model, q, qd, x)
    some = [0, 7, size - 1]
    with by_numpy():
        want = np.stack([function(model, q[k], qd[k], x[k]) for k in some])
    scale = np.abs(want).max()
    assert np.abs(found[jnp.array(some)] - want).max() < 1e-12 * scale
    models = jax.tree.map(lambda a: jnp.stack([a] * size), model)
    heavier = eqx.tree_at(lambda m: m.mass, models, models.mass.at[7].multiply(2.0))
    found = jax.jit(jax.vmap(function))(heavier, q, qd, x)
    assert np.abs(found[0] - want[0]).max() < 1e-12 * scale
    one = eqx.tree_at(lambda m: m.mass, model, model.mass * 2)
    with by_numpy():
        want = function(one, q[7], qd[7], x[7])
    assert np.abs(found[7] - want).max() < 1e-12 * np.abs(want).max()
