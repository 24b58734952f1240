"""The ten parameters of a link, and a model made of them: MATH 11."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxdenoc as jd

from ..support.oracle import error
from ..support.robots import ALL, state

cites = pytest.mark.cites
gravity_forces = jax.jit(jd.gravity_forces)


def chain():
    return ALL["mixed_chain"]()


def with_massless_link():
    """The second link has an inertia, as that of a rotor, but no mass."""
    model = chain()
    return eqx.tree_at(
        lambda m: (m.mass, m.com),
        model,
        (model.mass.at[1].set(0), model.com.at[1].set(0)),
    )


@cites("MATH 11: π_i", "MATH 1.5: I = I_C + m c̃ c̃ᵀ")
@pytest.mark.parametrize("name", ["mixed_chain", "free_tree"])
def test_parameters_against_pinocchio(name):
    model = ALL[name]()
    pi = jd.inertial_parameters(model)
    for i in range(model.n_links):
        body = pin.Inertia(
            float(model.mass[i]), np.array(model.com[i]), np.array(model.inertia[i])
        )
        assert error(pi[i], body.toDynamicParameters()) < 1e-14


@cites("MATH 11: c = m c / m, I_C = I - m c̃ c̃ᵀ")
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-13), ("float32", 1e-5)])
def test_there_and_back(dtype, tolerance):
    model = jax.tree.map(lambda x: x.astype(dtype), chain())
    pi = jd.inertial_parameters(model)
    again = jd.with_inertial_parameters(model, np.array(pi, "float64"))
    assert jax.tree.structure(again) == jax.tree.structure(model)
    for s in ("mass", "com", "inertia"):
        assert getattr(again, s).dtype == dtype
        assert error(getattr(again, s), getattr(model, s)) < tolerance
    other = jax.random.normal(jax.random.key(0), pi.shape, pi.dtype)
    found = jd.inertial_parameters(jd.with_inertial_parameters(model, other))
    assert error(found, other) < 100 * tolerance  # of no body, and with c far away
    for s in ("axis", "armature", "gravity"):
        np.testing.assert_array_equal(getattr(again, s), getattr(model, s))


@cites("MATH 11: τ is linear in π")
def test_one_compilation_serves_all_parameters():
    model = chain()
    q, *_ = state(model)
    pi = jd.inertial_parameters(model)
    before = gravity_forces(model, q)
    compiled = gravity_forces._cache_size()
    twice = gravity_forces(jd.with_inertial_parameters(model, 2 * pi), q)
    assert gravity_forces._cache_size() == compiled
    assert error(twice, 2 * before) < 1e-12
    masses = jax.jit(jax.vmap(lambda p: jd.with_inertial_parameters(model, p).mass))
    found = masses(jnp.stack([pi, 3 * pi]))
    np.testing.assert_array_equal(found, np.stack([model.mass, 3 * model.mass]))


@cites("MATH 11: c = m c / m where m = 0")
def test_massless_links():
    """c is 0, the inertia stays; m c alone is lost, in value and in slope."""
    model = with_massless_link()
    pi = jd.inertial_parameters(model)
    assert not pi[1, :4].any() and pi[1, 4:].any()
    for given in pi, pi.at[1, 1:4].set(0.3):
        again = jd.with_inertial_parameters(model, given)
        assert not again.com[1].any()
        np.testing.assert_allclose(again.inertia, model.inertia, rtol=0, atol=1e-13)

    def there_and_back(pi):
        return jd.inertial_parameters(jd.with_inertial_parameters(model, pi))

    want = np.eye(pi.size)
    want[11:14] = 0
    for mode in jax.jacfwd, jax.jacrev:
        found = jax.jit(mode(there_and_back))(pi).reshape(want.shape)
        assert error(found, want) < 1e-12


def test_refused():
    model = chain()
    pi = jd.inertial_parameters(model)
    for given in pi[0], pi[:-1], pi.T, jnp.stack([pi, pi]):
        with pytest.raises(jd.ModelError, match=r"needs \(6, 10\): a row of ten"):
            jd.with_inertial_parameters(model, given)
