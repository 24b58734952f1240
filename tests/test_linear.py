"""Linear maps with a transpose of their own, in all orders of jit, vmap and grad."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdenoc._linear import Pair, linear
from jaxdenoc._tiles import TILE, in_tiles

# x ↦ sin(r) x and back: the derivative of -cos(r), as a map that knows its transpose
CALLS = []


def forward(r, x):
    CALLS.append("forward")
    return {"y": jnp.sin(r["angle"]) * x[0]}


def backward(r, y):
    CALLS.append("backward")
    return [jnp.sin(r["angle"]) * y["y"]]


PAIR = Pair(in_tiles(forward), in_tiles(backward))


@jax.custom_jvp
def minus_cos(x):
    return -jnp.cos(x)


@minus_cos.defjvp
def _rule(at, along):
    (x,), (dx,) = at, along
    y = minus_cos(x)
    return y, linear(PAIR, {"angle": x}, [dx], like={"y": y})["y"]


AT = jnp.linspace(-2, 2, 5)


def test_each_mode_runs_its_own_map():
    CALLS.clear()
    jax.jvp(minus_cos, (0.3,), (1.0,))
    assert set(CALLS) == {"forward"}
    _, back = jax.vjp(minus_cos, 0.3)
    CALLS.clear()
    np.testing.assert_allclose(back(2.0)[0], 2 * np.sin(0.3), rtol=1e-15)
    assert set(CALLS) == {"backward"}


@pytest.mark.parametrize("size", [5, TILE + 3])
def test_first_and_higher_orders(size):
    x = jnp.linspace(-2, 2, size)

    def total(x):
        return jnp.sum(jax.vmap(minus_cos)(x))

    want = np.sin(x)
    np.testing.assert_allclose(jax.vmap(jax.grad(minus_cos))(x), want, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.grad(total))(x), want, rtol=1e-14)
    second = jax.vmap(jax.grad(jax.grad(minus_cos)))
    np.testing.assert_allclose(jax.jit(second)(x), np.cos(x), rtol=1e-14)
    third = jax.vmap(jax.grad(jax.jacfwd(jax.grad(minus_cos))))
    np.testing.assert_allclose(third(x), -want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
def test_second_order_of_a_batch(outer, inner):
    def total(x):
        return jnp.sum(jax.vmap(minus_cos)(x) ** 2)

    want = np.diag(2 * (np.sin(AT) ** 2 - np.cos(AT) ** 2))
    np.testing.assert_allclose(outer(inner(total))(AT), want, rtol=1e-13, atol=1e-14)


def test_linearize_and_other_axes():
    _, f = jax.linearize(jax.vmap(minus_cos), AT)
    np.testing.assert_allclose(f(jnp.ones(5)), np.sin(AT), rtol=1e-14)
    table = jnp.outer(AT, jnp.ones(3))
    found = jax.vmap(jax.vmap(jax.grad(minus_cos), 0), 1, out_axes=1)(table)
    np.testing.assert_allclose(found, np.sin(table), rtol=1e-14)
    # one vector for a batch of maps, and a batch of vectors for one map
    out = jax.vmap(lambda x: jax.jvp(minus_cos, (x,), (1.0,))[1])(AT)
    np.testing.assert_allclose(out, np.sin(AT), rtol=1e-14)
    out = jax.vmap(lambda t: jax.jvp(minus_cos, (0.4,), (t,))[1])(AT)
    np.testing.assert_allclose(out, np.sin(0.4) * AT, rtol=1e-14)
