"""sin and 1 - cos by polynomials, against the C library and beyond its digits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdenoc.spatial import sin_versin


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0, 10.0, 1e3, 1e5])
def test_values(dtype, scale):
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(size=4000) * scale, np.arange(-8, 9) * np.pi / 4].astype(dtype)
    sin, versin = (np.asarray(a) for a in jax.jit(sin_versin)(jnp.asarray(x)))
    exact = x.astype(np.longdouble)
    eps = np.finfo(dtype).eps
    assert sin.dtype == versin.dtype == dtype
    assert np.abs(sin - np.sin(exact)).max() < 1.5 * eps
    assert np.abs(versin - 2 * np.sin(exact / 2) ** 2).max() < 2 * eps
    small = np.abs(x) < 0.5  # relative, where 1 - cos would cancel
    want = (2 * np.sin(exact / 2) ** 2)[small]
    assert (np.abs(versin[small] - want) <= 4 * eps * want).all()


def test_any_size_of_angle():
    """As good as the angle itself, at any size; and not a number beyond."""
    x = np.array([1e7, -3.3e9, 7.7e12, 1e15])
    sin, versin = sin_versin(jnp.asarray(x))
    slack = 4 * np.spacing(np.abs(x))
    assert (np.abs(sin - np.sin(x)) < slack).all()
    assert (np.abs(versin - (1 - np.cos(x))) < slack).all()
    assert np.isnan(sin_versin(jnp.array([np.inf, -np.inf, np.nan]))).all()


@pytest.mark.parametrize("x", [0.0, 0.3, -2.0, 40.0, np.pi])
def test_derivatives_of_every_order(x):
    sin, versin = (lambda x, k=k: sin_versin(x)[k] for k in (0, 1))
    x = jnp.asarray(x)
    np.testing.assert_allclose(jax.grad(sin)(x), np.cos(x), atol=1e-15)
    np.testing.assert_allclose(jax.grad(versin)(x), np.sin(x), atol=1e-15)
    np.testing.assert_allclose(jax.jacfwd(jax.grad(sin))(x), -np.sin(x), atol=1e-15)
    np.testing.assert_allclose(jax.grad(jax.grad(versin))(x), np.cos(x), atol=1e-15)
