"""`batched` is `vmap`: on one device or many, in value and in both modes."""

import json
import logging
import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc import _pieces

AXES = (None, 0, 0, 0)


@pytest.fixture(scope="module")
def arm():
    return jd.robots.random_chain(jax.random.key(0), 3)


def states(model, size, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(3, size, model.nv)))


def same(a, b, rtol=1e-12):
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(
            x, y, rtol=rtol, atol=rtol * max(np.abs(y).max(initial=0), 1e-3)
        ),
        a,
        b,
    )


@pytest.mark.parametrize("size, tile", [(1, None), (5, None), (64, 16), (70, 32)])
def test_agrees_with_vmap(arm, size, tile):
    args = arm, *states(arm, size)
    fd = jd.batched(jd.forward_dynamics, in_axes=AXES, tile=tile)
    same(fd(*args), jax.vmap(jd.forward_dynamics, AXES)(*args))


def test_any_function_and_any_axes():
    """Of the user's own, with results of several shapes and one that XLA does not
    compile in one piece."""

    def f(a, b, c):
        return {"x": a * jnp.sin(b), "y": jnp.linalg.solve(c["m"], b)}, jnp.sum(a)

    rng = np.random.default_rng(0)
    a, b = jnp.asarray(rng.normal(size=(3, 50))), jnp.asarray(rng.normal(size=(50, 3)))
    c = {"m": jnp.asarray(rng.normal(size=(3, 3)) + 4 * np.eye(3)), "n": 2.0}
    for axes in [(1, 0, None), (1, -2, {"m": None, "n": None}), [1, 0, None]]:
        same(jd.batched(f, in_axes=axes, tile=8)(a, b, c), jax.vmap(f, axes)(a, b, c))


def test_over_parameters(arm):
    """A stacked model: a robot of its own for every row."""

    def heavier(k):
        return eqx.tree_at(lambda m: m.mass, arm, arm.mass * (1 + k))

    models = jax.vmap(heavier)(jnp.linspace(0, 1, 40))
    args = models, *states(arm, 40)
    fd = jd.batched(jd.forward_dynamics, tile=16)
    same(fd(*args), jax.vmap(jd.forward_dynamics)(*args))


def swing(shared, x, y):
    """A loop, something shared, two results: like a rollout, and quick to compile."""

    def step(total, row):
        total = jnp.sin(total) * row + y
        return total, total * shared["k"]

    last, rows = jax.lax.scan(step, x, shared["rows"])
    return last, jnp.sum(rows)


SHARED = {"rows": jnp.linspace(0.5, 1.5, 6), "k": jnp.array(2.0)}


def test_derivatives_with_respect_to_rows_and_to_what_they_share():
    """Forward, reverse, and second order."""
    x, y = jnp.linspace(0, 1, 50), jnp.linspace(1, 2, 50)
    plain = jax.vmap(swing, (None, 0, 0))
    fast = jd.batched(swing, in_axes=(None, 0, 0), tile=16)

    def loss(f):
        return lambda *args: sum(jnp.sum(out**2) for out in f(*args))

    def gradient(f):
        return jax.grad(loss(f), (0, 1, 2))(SHARED, x, y)

    def slope(f):
        return jax.jvp(f, (SHARED, x, y), (SHARED, y, x))

    def curvature(f):
        def along(shared, x):
            return jax.grad(loss(f), (0, 1))(shared, x, y)

        return jax.vjp(along, SHARED, x)[1]((SHARED, y))

    for derivative in gradient, slope, curvature:
        same(jax.jit(derivative, static_argnums=0)(fast), derivative(plain))


@pytest.mark.slow
def test_gradient_of_the_dynamics(arm):
    """By the closed rule, within a tile."""
    args = states(arm, 50)

    def gradient(f):
        def loss(mass, q):
            model = eqx.tree_at(lambda m: m.mass, arm, mass)
            return jnp.sum(f(model, q, *args[1:]) ** 2)

        return jax.jit(jax.grad(loss, (0, 1)))(arm.mass, args[0])

    fast = jd.batched(jd.forward_dynamics, in_axes=AXES, tile=16)
    same(gradient(fast), gradient(jax.vmap(jd.forward_dynamics, AXES)), 1e-11)


def test_under_vmap_and_jit(arm):
    q, qd, tau = states(arm, 24)
    fast = jd.batched(jd.forward_dynamics, in_axes=AXES, tile=8)
    twice = jax.jit(jax.vmap(fast, (None, 0, None, None)))(
        arm, jnp.stack([q, 2 * q]), qd, tau
    )
    same(twice[1], jax.vmap(jd.forward_dynamics, AXES)(arm, 2 * q, qd, tau))


def test_compiles_once(arm):
    count = 0

    def f(model, q):
        nonlocal count
        count += 1
        return jd.gravity_forces(model, q)

    g = jd.batched(f, in_axes=(None, 0))
    q = states(arm, 9)[0]
    g(arm, q)
    before = count
    g(arm, 2 * q)
    assert count == before


@pytest.mark.parametrize(
    "in_axes, match",
    [
        ((None, 0), "in_axes .* does not fit the 4 arguments"),
        ((0, 0, 0, 0), "axis 0 of an array of shape"),
        ((None, 0, 1, 0), "different lengths"),
        (None, "maps no argument"),
    ],
)
def test_refused(arm, in_axes, match):
    with pytest.raises(ValueError, match=match):
        jd.batched(jd.forward_dynamics, in_axes=in_axes)(arm, *states(arm, 4))


def test_no_batch_is_refused():
    with pytest.raises(ValueError, match="batch is empty"):
        jd.batched(jnp.sin)(jnp.zeros((0, 3)))
    with pytest.raises(ValueError, match="axis 0 of an array of shape"):
        jd.batched(jnp.sin)(jnp.array(1.0))


def test_tile_is_refused():
    with pytest.raises(ValueError, match="tile is 0"):
        jd.batched(jnp.sin, tile=0)


def test_says_why_it_falls_back(arm, caplog, monkeypatch):
    with caplog.at_level(logging.DEBUG, "jaxdenoc"):
        jd.batched(lambda q: jnp.linalg.inv(jnp.diag(q)))(states(arm, 4)[0])
        assert "not in one piece, because of" in caplog.text
        caplog.clear()
        monkeypatch.setattr(_pieces, "ENABLED", False)
        plain = jd.batched(jnp.sin)
        np.testing.assert_allclose(plain(jnp.arange(3.0)), jnp.sin(jnp.arange(3.0)))
        assert "ordinary programs" in caplog.text
        program = jax.jit(plain).lower(jnp.arange(3.0)).as_text()
        assert "xla_cpu_small_call" not in program


def test_reductions_of_any_size_are_in_one_piece(caplog):
    """Of 4096 numbers XLA would call kernels that a piece cannot; within loops, too."""

    def f(x):
        def step(low, row):
            product = x * row[None]
            return low + jnp.min(product, axis=0), jnp.sum(product)

        low, sums = jax.lax.scan(step, x[0], x)
        return low, sums, jnp.max(jnp.where(x > 2, jnp.nan, x), axis=1), jnp.mean(x)

    x = jnp.asarray(np.random.default_rng(0).normal(size=(128, 12, 4)))
    with caplog.at_level(logging.DEBUG, "jaxdenoc"):
        low, sums, high, mean = jd.batched(lambda x: f(x))(x)
    assert "not in one piece" not in caplog.text
    x = np.asarray(x)
    by_row = (x[:, None] * x[:, :, None]).min(axis=2)
    np.testing.assert_allclose(
        low, x[:, 0] + by_row.sum(axis=1), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(mean, x.mean(axis=(1, 2)), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(high, np.where(x > 2, np.nan, x).max(axis=2))
    want = np.einsum("bij,bkj->bk", x, x)
    np.testing.assert_allclose(sums, want, rtol=1e-12, atol=1e-12)


def brake(arm, q, qd, net, dt):
    def policy(t, q, qd):
        return net(jnp.concatenate([q, qd]))

    return jd.rollout(arm, q, qd, policy, dt, steps=2)


@pytest.mark.slow
def test_gradient_of_a_policy_that_holds_functions():
    """Rollouts, whose status has no derivative; traced once, whatever the weights."""
    arm = jd.robots.rod_chain(1)
    q, qd, _ = states(arm, 6)
    net = eqx.nn.MLP(2, 1, 4, 1, activation=jnp.tanh, key=jax.random.key(1))
    traces = 0

    def counted(*args):
        nonlocal traces
        traces += 1
        return brake(*args)

    @eqx.filter_grad
    def slope(net, f):
        return jnp.mean(f(arm, q, qd, net, 0.01).q[:, -1] ** 2)

    def plain(arm, q, qd, net, dt):
        return jax.vmap(lambda q, qd: brake(arm, q, qd, net, dt))(q, qd)

    fast = jd.batched(counted, in_axes=(None, 0, 0, None, None), tile=4)
    found = slope(net, fast)
    assert np.abs(found.layers[0].weight).max() > 0
    same(found, slope(net, plain))
    before = traces
    slope(jax.tree.map(lambda x: 2 * x if eqx.is_array(x) else x, net), fast)
    assert traces == before


def test_what_is_no_number_is_compiled_for():
    """And must not be mapped."""

    def f(x, rule):
        return rule["f"](x) * rule["k"]

    fast, x = jd.batched(f, in_axes=(0, None)), jnp.arange(3.0)
    same(fast(x, {"f": jnp.sin, "k": 2.0}), 2 * jnp.sin(x))
    same(fast(x, {"f": jnp.cos, "k": 2.0}), 2 * jnp.cos(x))
    with pytest.raises(ValueError, match=r"argument 1\['f'\], which is no array"):
        jd.batched(f)(x, {"f": jnp.sin, "k": x})


MANY_DEVICES = """
import json, jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 8)
import jaxdenoc as jd
from jax.sharding import NamedSharding, PartitionSpec
arm, k = jd.robots.random_chain(jax.random.key(0), 3), jnp.array(2.0)
q, qd, tau = jnp.asarray(np.random.default_rng(0).normal(size=(3, 1003, 3)))
scale = jnp.linspace(0.5, 1.5, len(q))
arms = jax.tree.map(lambda x: scale.reshape(-1, *(1,) * x.ndim) * x, arm)
tau = jnp.stack([tau, -tau], axis=1)
def f(k, arm, q, qd, tau):
    return jd.rollout(arm, q, qd, k * tau, 0.01)
def both(devices):
    rollouts = jd.batched(f, in_axes=(None, 0, 0, 0, 0), devices=devices)
    g = jd.batched(lambda k, q: jnp.sin(k * q), in_axes=(None, 0), devices=devices)
    return rollouts(k, arms, q, qd, tau), jax.grad(lambda k: jnp.sum(g(k, q)))(k)
one, all_ = both(jax.devices()[:1]), both(None)
mesh = jax.make_mesh((2, 4), ("hosts", "cores"))  # of a type that `batched` puts off
x = jax.device_put(np.arange(48.0).reshape(3, 16), NamedSharding(mesh, PartitionSpec()))
y = jd.batched(jnp.sin, in_axes=1, devices=mesh)(x)
keys = jax.random.split(jax.random.key(0), 16)
def kept(checkpoint, devices):
    def end(q):
        how = {"steps": 3, "checkpoint": checkpoint, "samples": "ends"}
        return jd.rollout(jd.robots.rod_chain(1), q, 0 * q, None, 0.1, **how).q[-1]
    return jax.grad(lambda q: jnp.sum(jd.batched(end, devices=devices)(q)))(q[:16, :1])
last = jd.batched(lambda x: 2 * x, devices=jax.devices()[7:])(np.ones(3))
legs = jd.robots.random_tree(jax.random.key(4), 4, floating_base=True)
at = *jd.random_state(legs, jax.random.key(0)), jnp.ones(legs.nv)
scans = jd.inverse_dynamics(legs, *at, method="parallel")
print(json.dumps({
    "devices": len(all_[0].q.sharding.device_set),
    "equal": jax.tree.all(jax.tree.map(np.array_equal, one[0], all_[0])),
    "gradient": float(jnp.abs(one[1] / all_[1] - 1)),
    "mesh": [len(y.sharding.device_set), bool(np.array_equal(y, np.sin(x).T))],
    "keys": bool(np.array_equal(jd.batched(jax.random.normal)(keys),
                                jax.vmap(jax.random.normal)(keys))),
    "kept": float(jnp.abs(kept(2, None) - kept(None, jax.devices()[:1])).max()),
    "scans": float(jnp.abs(scans - jd.inverse_dynamics(legs, *at)).max()),
    "last": [d.id for d in last.sharding.device_set],
}))
"""


@pytest.mark.slow
def test_eight_devices_give_what_one_gives():
    """1003 robots and starts: a share that divides neither by devices nor by tiles.

    And a mesh of two axes, the last device alone, keys, which NumPy does not know, and
    binomial checkpoints; and scans along legs, which XLA's default flags have to fuse.
    """
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    run = subprocess.run(
        [sys.executable, "-c", MANY_DEVICES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["devices"] == 8 and found["equal"] and found["gradient"] < 1e-13
    assert found["mesh"] == [8, True]
    assert found["kept"] < 1e-13 and found["keys"] and found["last"] == [7]
    assert found["scans"] < 1e-12
