"""Decoupled control: laws for the working moments ε of ν̇ + C(θ, ν) = ε.

Rate feedback, ε = -c ν (Control 8.1 of Jain and Rodriguez), takes energy out of every
ν_i alike: the kinetic energy of any robot in any motion falls as e^{-2ct}. Drawing the
hand to a pose (Control 8.2) adds the pull of that pose's error e, and then
½ νᵀν + ½ eᵀWe falls. The pull is printed with the wrong sign and without its D^{-½}
(MATH 14, J17): that law, simulated as well, drives the hand away.

    python examples/04_decoupled_control.py [folder for the figure]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc import viz  # noqa: E402

GAINS = np.array([0.5, 1.0, 2.0])  # c of the rate feedback [1/s]
ROBOTS = 4
C1, W = 3.0, 20.0  # of the set point: rate gain [1/s], weight [N/m and N·m]


def arm(seed):
    return jd.robots.random_chain(jr.key(seed), 6, kinds=("revolute",))


def along(run, at):
    """`at(q, qd)` of every sample. Robots, starts and samples go one after the other
    in this script: for so few, a batch takes longer to compile."""
    return jax.lax.map(lambda x: at(*x), (run.q, run.qd))


def brake(ts):
    """Kinetic energies (gain, robot, time) under ε = -c ν, each robot its own start."""
    arms = [arm(seed) for seed in range(ROBOTS)]
    starts = [jd.random_state(a, jr.key(i)) for i, a in enumerate(arms)]
    arms, starts = (jax.tree.map(lambda *x: jnp.stack(x), *y) for y in (arms, starts))

    def energies(c, arm, start):
        law = jd.control.rate_feedback(arm, c)
        run = jd.simulate(arm, *start, ts, tau=law, rtol=1e-9, atol=1e-10)
        return along(run, lambda q, qd: jd.kinetic_energy(arm, q, qd))

    cases = arms, starts
    of_gain = jax.jit(lambda c: jax.lax.map(lambda x: energies(c, *x), cases))
    return np.stack([of_gain(c) for c in GAINS])


def reach(law, starts, ts):
    """Kinetic energies, ½ eᵀWe and |e|, each (start, time), under the set point law."""

    def of(q):
        rest = jnp.zeros_like(q)
        run = jd.simulate(law.model, q, rest, ts, tau=law, rtol=1e-7, atol=1e-8)

        def at(q, qd):
            kinetic = jd.kinetic_energy(law.model, q, qd)
            elastic = law.lyapunov(q, qd) - kinetic
            return kinetic, elastic, jnp.linalg.norm(law.error(q))

        return along(run, at)

    return map(np.asarray, jax.jit(lambda q: jax.lax.map(of, q))(starts))


def drive_away(law, starts, ts):
    """|e|, (start, time), under the law as printed: ε = -c₁ ν - c₂ H ψ B e."""
    model = law.model

    def printed(t, q, qd):
        f = jd.factorize(model, q)
        pull = -jax.grad(lambda q: jnp.sum(law.error(q) ** 2) / 2)(q)  # H φ B e
        pull = f.working_moments(pull, normalized=False)  # H ψ B e = U⁻¹ H φ B e
        eps = -C1 * f.total_rates(qd) - W * pull
        return f.joint_torques(eps) + jd.gravity_forces(model, q)

    def of(q):
        rest = jnp.zeros_like(q)
        run = jd.simulate(model, q, rest, ts, tau=printed, rtol=1e-5, atol=1e-5)
        return along(run, lambda q, qd: jnp.linalg.norm(law.error(q)))

    return np.asarray(jax.jit(lambda q: jax.lax.map(of, q))(starts))


def draw(t, energy, ts, kinetic, elastic, error, away):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 7.6), layout="constrained")
    figure.suptitle("Decoupled control of arms with six revolute joints", fontsize=12)
    (braking, parts), (wholes, errors) = figure.subplots(2, 2)
    thin = {"linewidth": 1.5}

    for k, c in enumerate(GAINS):
        label = f"$e^{{-2ct}}$, c = {c:g}/s"
        braking.semilogy(t, np.exp(-2 * c * t), f"C{k}", label=label, **thin)
        share = (energy[k] / energy[k, :, :1]).T[::8]
        braking.semilogy(t[::8], share, f"C{k}o", markersize=3.5)
    braking.semilogy([], [], "ko", markersize=3.5, label=f"{ROBOTS} robots each")
    braking.set(title="rate feedback", ylabel="kinetic energy, relative to the start")

    whole = kinetic + elastic
    parts.semilogy(ts, whole[0], "k", label="½νᵀν + ½eᵀWe", **thin)
    parts.semilogy(ts, elastic[0], "C0--", label="½eᵀWe", **thin)
    parts.semilogy(ts[1:], kinetic[0, 1:], "C1", label="½νᵀν", linewidth=1)
    parts.set(title="set point: start 1, in its parts", ylabel="energy [J]")
    parts.set_ylim(whole[0, -1] / 20, 3 * whole[0, 0])

    for k, V in enumerate(whole):
        wholes.semilogy(ts, V, label=f"start {k + 1}", **thin)
    wholes.set(title="set point: all starts", ylabel="½νᵀν + ½eᵀWe [J]")

    for k, (right, wrong) in enumerate(zip(error, away, strict=True)):
        errors.plot(ts, right, color=f"C{k}", **thin)
        errors.plot(ts[: len(wrong)], wrong, ":", color=f"C{k}", **thin)
    errors.plot([], [], "k", label="corrected law")
    errors.plot([], [], "k:", label="law as printed")
    errors.set(title="error of the pose, same starts")
    errors.set_ylabel("|e|, of position [m] and axes [1]")

    short = ts[: away.shape[1]]
    for axes, x in ((braking, t), (parts, ts), (wholes, ts), (errors, short)):
        axes.set_xlim(0, x[-1])
        axes.set_xlabel("time [s]")
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    return figure


def main(out="figures"):
    t = jnp.linspace(0.0, 2.0, 201)
    energy = brake(t)
    expected = np.exp(-2 * GAINS[:, None, None] * np.asarray(t))
    decay = np.max(np.abs(energy / (energy[:, :, :1] * expected) - 1))
    print(f"Rate feedback, {len(GAINS)} gains, {ROBOTS} arms, {t[-1]:g} s:")
    print(f"  kinetic energies from {energy.max():.2f} to {energy.min():.1e} J")
    print(f"  relative distance from e^(-2ct): {decay:.1e} at most")

    model = arm(2)
    goal, _ = jd.random_state(model, jr.key(11))
    starts = goal[None] + 0.5 * jr.normal(jr.key(0), (4, 6))
    target = jd.frame_pose(model, goal, model.n_links - 1)
    law = jd.control.set_point(model, target, weight=W, rate_gain=C1)
    ts = jnp.linspace(0.0, 5.0, 501)
    kinetic, elastic, error = reach(law, starts, ts)
    whole = kinetic + elastic
    rise = np.max(np.diff(whole, axis=1))
    spent = np.trapezoid(2 * C1 * kinetic, np.asarray(ts), axis=1)
    balance = np.max(np.abs(whole[:, 0] - whole[:, -1] - spent) / whole[:, 0])
    print(f"Set point, {len(starts)} starts, {ts[-1]:g} s:")
    print(f"  |e| from {error[:, 0].max():.2f} to {error[:, -1].max():.1e} at most")
    print(f"  ½νᵀν + ½eᵀWe from {whole[:, 0].max():.2f} to {whole[:, -1].max():.1e} J,")
    print(f"  rises by {max(rise, 0.0):.1e} J at most between samples;")
    print(f"  what is gone is the work of the brakes, to {balance:.1e} of it")

    away = drive_away(law, starts, ts[:251])
    print(f"The law as printed, {ts[250]:g} s:")
    print(f"  |e| from {away[:, 0].min():.2f} to {away[:, -1].min():.2f} at least")

    numbers = map(np.asarray, (t, energy, ts, kinetic, elastic, error, away))
    figure = draw(*numbers)
    path = viz.save_figure(figure, Path(out) / "decoupled_control.png")
    print(f"wrote {path}")
    return {
        "decay": decay,
        "monotone": bool(rise <= 0),
        "rise": rise,
        "balance": balance,
        "error": error,
        "printed_error": away,
    }


if __name__ == "__main__":
    main(*sys.argv[1:2])
