"""The six-axis Stanford arm of Saha 1999: its figures 6 and 9.

Saha's two programs, RIDIM (inverse dynamics) and RFDSIM (forward dynamics and
simulation), are two functions here. The arm follows a cycloidal motion for ten
seconds, and `inverse_dynamics` gives the joint torques (the force, for the sliding
joint 3) of figure 6. Then it is let go at rest, without torques, and `simulate` gives
the free fall of figure 9.

    python examples/01_stanford_arm.py [folder for the figures]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc import viz  # noqa: E402

T = 10.0
Q0 = jnp.array([0, jnp.pi / 2, 0, 0, 0, 0])
QT = jnp.array([jnp.pi / 3, jnp.pi / 3, 0.1, jnp.pi / 3, jnp.pi / 3, jnp.pi / 3])


def cycloid(t):
    """From rest at Q0 to rest at QT, with no acceleration at either end [Saha 39]."""
    return Q0 + (QT - Q0) * ((t - T / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * t / T)) / T)


rate = jax.jacfwd(cycloid)
acceleration = jax.jacfwd(rate)


def main(out="figures"):
    model = jd.robots.stanford_arm()
    units = ["N" if kind == "prismatic" else "N·m" for kind in model.joint_kinds]

    t = jnp.linspace(0.0, T, 101)

    @jax.jit
    @jax.vmap
    def torques(t):
        return jd.inverse_dynamics(model, cycloid(t), rate(t), acceleration(t))

    tau = torques(t)
    peaks = jnp.max(jnp.abs(tau), axis=0)
    print("Inverse dynamics along the cycloid, largest over 10 s:")
    for name, peak, unit in zip(model.joint_names, peaks, units, strict=True):
        print(f"  {name}  {peak:9.3g} {unit}")

    ts = jnp.linspace(0.0, 0.5, 101)
    fall = jd.simulate(model, Q0, jnp.zeros(6), ts, rtol=1e-10, atol=1e-10)

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
    print("Free fall from rest, 0.5 s:")
    lengths = ["m" if unit == "N" else "rad" for unit in units]
    for name, end, unit in zip(model.joint_names, fall.q[-1], lengths, strict=True):
        print(f"  {name}  ends at {end:8.5f} {unit}")
    print(f"  energy drifts by {drift:.1e} J; {jnp.max(kinetic):.2f} J become kinetic")
    print(f"  O(n) and dense accelerations differ by {jnp.max(apart):.1e} at most,")
    print(f"  where the largest is {jnp.max(jnp.abs(qdd)):.1f}")

    driving = viz.joint_panels(
        model, t, tau, quantity="force", title="Stanford arm: joint torques and force"
    )
    falling = viz.joint_panels(
        model, fall.t, fall.q, quantity="position", title="Stanford arm: free fall"
    )
    for name, figure in {"torques": driving, "free_fall": falling}.items():
        path = viz.save_figure(figure, Path(out) / f"stanford_arm_{name}.png")
        print(f"wrote {path}")
    return {"tau": tau, "fall": fall, "drift": drift, "apart": jnp.max(apart)}


if __name__ == "__main__":
    main(*sys.argv[1:2])
