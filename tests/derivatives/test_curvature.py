"""Christoffel symbols and Riemann curvature of the mass matrix: MATH 7.7."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import ALL, R, state

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted")


def polar_arm():
    """A point mass on a massless arm that turns and slides: polar coordinates."""
    nothing = {"com": (0, 0, 0), "inertia": np.zeros((3, 3))}
    return jd.build(
        [
            jd.Link("turn", axis=(0, 0, 1), mass=0.0, **nothing),
            jd.Link("slide", "turn", "prismatic", axis=(1, 0, 0), mass=2.0, **nothing),
        ]
    )


def pendulum_on_a_turntable():
    """Its mass point stays on a sphere of radius 1, with spherical coordinates."""
    nothing = {"inertia": np.zeros((3, 3))}
    return jd.build(
        [
            jd.Link("turn", axis=(0, 0, 1), mass=0.0, com=(0, 0, 0), **nothing),
            jd.Link(
                "swing", "turn", axis=(0, 1, 0), mass=1.0, com=(1, 0, 0), **nothing
            ),
        ]
    )


@cites("MATH 7.7: Γ^l_ij, [ij, k]", "MATH 3.3: the Christoffel C")
def test_symbols():
    model = jd.robots.random_chain(jax.random.key(3), 4)
    q, qd, _ = state(model)
    first, second = jd.christoffel_symbols(model, q)
    C = jd.coriolis_matrix(model, q, qd)
    np.testing.assert_allclose(jnp.einsum("ijk,i->kj", first, qd), C, atol=1e-12)
    M = jd.mass_matrix(model, q)
    np.testing.assert_allclose(jnp.einsum("kl,lij->ijk", M, second), first, atol=1e-12)


@cites("J&R 2.5", "MATH 7.7: antisymmetries R_hijk = -R_ihjk = -R_hikj = R_jkhi")
def test_symmetries():
    model = jd.robots.random_chain(jax.random.key(2), 4, kinds=R)
    Rm = np.array(jd.riemann_curvature(model, state(model)[0]))
    scale = np.abs(Rm).max()
    assert scale > 1e-3
    for other in (
        -Rm.transpose(1, 0, 2, 3),
        -Rm.transpose(0, 1, 3, 2),
        Rm.transpose(2, 3, 0, 1),
    ):
        assert np.abs(Rm - other).max() < 1e-10 * scale
    bianchi = Rm + Rm.transpose(0, 2, 3, 1) + Rm.transpose(0, 3, 1, 2)
    assert np.abs(bianchi).max() < 1e-10 * scale


@cites("MATH 7.7: R_0101 = +det g on the unit sphere", "zero for ℳ = JᵀJ, square J")
def test_known_curvatures():
    sphere = pendulum_on_a_turntable()
    q = jnp.array([0.3, 0.5])
    g = jd.mass_matrix(sphere, q)
    Rm = jd.riemann_curvature(sphere, q)
    np.testing.assert_allclose(Rm[0, 1, 0, 1], jnp.linalg.det(g), rtol=1e-10)
    flat = jd.riemann_curvature(polar_arm(), jnp.array([0.4, 1.3]))
    assert np.abs(flat).max() < 1e-12


@cites("J&R Lemma 2.1", "MATH 7.7: ϑ with ∂ϑ/∂q = mᵀ only where R = 0")
def test_who_is_globally_diagonalizable():
    assert jd.globally_diagonalizable(polar_arm())
    assert not jd.globally_diagonalizable(pendulum_on_a_turntable())
    assert not jd.globally_diagonalizable(jd.robots.stanford_arm(), samples=2)
    with pytest.raises(jd.ModelError, match="free base"):
        jd.globally_diagonalizable(ALL["free_tree"]())
