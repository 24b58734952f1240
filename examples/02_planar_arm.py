"""A three-link planar arm: figures 5 and 8 of Saha 1999.

The arm lies in a vertical plane, joints about z and gravity along -y. Each joint turns
from 0 to π along a cycloid in ten seconds, which needs the torques of figure 5; let go
at rest, stretched out level, the arm falls as in figure 8. The paper does not print the
parameters of its arm; those of `jd.robots.planar_arm` give torques of the same range.

    python examples/02_planar_arm.py [folder for the figures]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc import viz  # noqa: E402

T = 10.0
Q0 = jnp.zeros(3)
QT = jnp.full(3, jnp.pi)


def cycloid(t):
    """From rest at Q0 to rest at QT, with no acceleration at either end [Saha 39]."""
    return Q0 + (QT - Q0) * ((t - T / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * t / T)) / T)


rate = jax.jacfwd(cycloid)
acceleration = jax.jacfwd(rate)


def main(out="figures"):
    model = jd.robots.planar_arm()
    t = jnp.linspace(0.0, T, 101)

    @jax.jit
    @jax.vmap
    def torques(t):
        return jd.inverse_dynamics(model, cycloid(t), rate(t), acceleration(t))

    tau = torques(t)
    peaks = jnp.max(jnp.abs(tau), axis=0)
    print("Inverse dynamics along the cycloid, largest over 10 s:")
    for name, peak in zip(model.joint_names, peaks, strict=True):
        print(f"  {name}  {peak:8.3g} N·m")

    ts = jnp.linspace(0.0, 1.0, 201)
    fall = jd.simulate(model, Q0, jnp.zeros(3), ts, rtol=1e-10, atol=1e-10)

    @jax.jit
    @jax.vmap
    def compare(q, qd, tau):
        recursive = jd.forward_dynamics(model, q, qd, tau)
        dense = jd.forward_dynamics(model, q, qd, tau, method="dense")
        kinetic = jd.kinetic_energy(model, q, qd)
        energy = kinetic + jd.potential_energy(model, q)
        return recursive, jnp.abs(recursive - dense), kinetic, energy

    qdd, apart, kinetic, energy = compare(fall.q, fall.qd, fall.tau)
    drift = jnp.max(jnp.abs(energy - energy[0]))
    print("Free fall from rest, level, 1 s:")
    for name, end in zip(model.joint_names, fall.q[-1], strict=True):
        print(f"  {name}  ends at {end:8.5f} rad")
    print(f"  energy drifts by {drift:.1e} J; {jnp.max(kinetic):.2f} J become kinetic")
    print(f"  O(n) and dense accelerations differ by {jnp.max(apart):.1e} at most,")
    print(f"  where the largest is {jnp.max(jnp.abs(qdd)):.1f}")

    driving = viz.joint_curves(
        model, t, tau, quantity="force", title="Planar arm: joint torques"
    )
    falling = viz.joint_curves(
        model, fall.t, fall.q, quantity="position", title="Planar arm: free fall"
    )
    for name, figure in {"torques": driving, "free_fall": falling}.items():
        path = viz.save_figure(figure, Path(out) / f"planar_arm_{name}.png")
        print(f"wrote {path}")
    return {"tau": tau, "fall": fall, "drift": drift, "apart": jnp.max(apart)}


if __name__ == "__main__":
    main(*sys.argv[1:2])
