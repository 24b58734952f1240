"""Twists outward and joint forces inward are each other's adjoints."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from jaxdenoc import recursion
from jaxdenoc.model import Tree
from jaxdenoc.spatial import Screw, Shift, Vec3, Wrench

cites = pytest.mark.cites
twists, joint_forces = jax.jit(recursion.twists), jax.jit(recursion.joint_forces)
PARENTS = [(-1,), (-1, 0, 1, 2), (-1, 0, 0, 1, 1, -1, 5), (-1, 0, 0, 1, 1, 2)]


def vec3(key, n):
    return Vec3(*jr.normal(key, (3, n)))


def mechanism(n, seed=0):
    keys = jr.split(jr.key(seed), 7)
    phi = Shift(vec3(keys[0], n))
    H = Screw(vec3(keys[1], n), *jr.normal(keys[2], (2, n)))
    f, qd = Wrench(vec3(keys[3], n), vec3(keys[4], n)), jr.normal(keys[5], (n,))
    return phi, H, f, qd


@pytest.mark.parametrize("parent", PARENTS)
@cites("J&R 4.3: V = φ* H* θ̇", "Saha 1999, 30: τ = Nᵀ w")
def test_power_is_the_same_at_joints_and_links(parent):
    phi, H, f, qd = mechanism(len(parent))
    V = twists(phi, H, qd, Tree(parent))
    tau = joint_forces(phi, H, f, Tree(parent))
    np.testing.assert_allclose(tau @ qd, jnp.sum(f @ V), rtol=1e-12)


@pytest.mark.parametrize("parent", PARENTS)
@cites("MATH 2: V⁺ = φᵀ V_p, V = V⁺ + H q̇", "MATH 1.6: φ = (1 - E_φ)⁻¹")
def test_twists_and_forces_are_the_dense_operators(parent):
    n = len(parent)
    phi, H, f, qd = mechanism(n, seed=1)
    E = np.zeros((6 * n, 6 * n))
    for i, p in enumerate(parent):
        if p >= 0:
            x, y, z = np.array(phi.l.array[i])
            block = np.eye(6)
            block[:3, 3:] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
            E[6 * p : 6 * p + 6, 6 * i : 6 * i + 6] = block
    Phi = np.linalg.inv(np.eye(6 * n) - E)
    rows = np.zeros((n, 6 * n))
    for i, h in enumerate(np.array(H.twist.array)):
        rows[i, 6 * i : 6 * i + 6] = h
    V = Phi.T @ rows.T @ np.array(qd)
    tau = rows @ Phi @ np.array(f.array).ravel()
    tree = Tree(parent)
    np.testing.assert_allclose(
        twists(phi, H, qd, tree).array, V.reshape(n, 6), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(joint_forces(phi, H, f, tree), tau, rtol=0, atol=1e-12)


@cites("Saha 1999, 30: τ = Nᵀ w")
def test_each_sweep_is_the_transpose_of_the_other():
    parent = (-1, 0, 0, 1, 1, -1, 5)
    phi, H, f, qd = mechanism(len(parent), seed=2)
    tree = Tree(parent)
    _, pull = jax.vjp(lambda qd: twists(phi, H, qd, tree), qd)
    like = twists(phi, H, qd, tree)
    cotangent = type(like)(f.n, f.f)
    np.testing.assert_allclose(
        pull(cotangent)[0], joint_forces(phi, H, f, tree), rtol=1e-12
    )


def test_a_tree_out_of_order_is_refused():
    with pytest.raises(ValueError, match="Sort the links from base to tip"):
        Tree((-1, 2, 1))
    with pytest.raises(ValueError, match="Link 1 has parent -2"):
        Tree((-1, -2))
