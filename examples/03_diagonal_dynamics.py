"""Diagonalised dynamics along a motion: ν̇ + C(θ, ν) = ε of Jain and Rodriguez.

An arm of six turning joints is thrown and left to its weight for one second. Its joint
rates θ̇ share the kinetic energy through a full matrix, ½ θ̇ᵀℳθ̇; the rates ν = mᵀθ̇,
with ℳ = m mᵀ, have a share each, ½ ν_i². Their Coriolis term C does no work, νᵀC = 0,
so only the working moments ε of weight and joint forces change the energy:
d/dt ½ νᵀν = νᵀε. Integrated in (θ, ν) or in (θ, θ̇), the motion is the same.

    python examples/03_diagonal_dynamics.py [folder for the figure]
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc import viz  # noqa: E402

T = 1.0


@jax.jit
def along(model, q, qd):
    """What the figure shows, at every sample of a motion without joint forces."""

    def at(q, qd):
        f = jd.factorize(model, q)
        nu = f.total_rates(qd)
        weight = jd.gravity_forces(model, q)
        nud = jd.diagonal_acceleration(model, q, nu, jnp.zeros_like(qd))
        return {
            "nu": nu,
            "C": jd.diagonal_coriolis(model, q, nu),
            "kinetic": qd @ jd.mass_matrix(model, q) @ qd / 2,
            "total": jd.kinetic_energy(model, q, qd) + jd.potential_energy(model, q),
            "gained": nu @ nud,  # d/dt ½ νᵀν
            "supplied": -qd @ weight,  # θ̇ᵀ(τ - gravity), without τ
            "moments": -nu @ f.working_moments(weight),  # νᵀε
        }

    return jax.lax.map(lambda x: at(*x), (q, qd))  # compiles faster than a batch


def draw(model, t, qd, qd_other, see):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 10.5), layout="constrained")
    figure.suptitle("An arm of six joints, thrown and left to its weight", fontsize=12)
    panels = figure.subplots(3, 2, sharex=True)
    names = model.joint_names
    rates = [f"ν{'₁₂₃₄₅₆'[k]}" for k in range(len(names))]
    curve = {"linewidth": 1.5}

    axes = panels[0, 0]
    for k, name in enumerate(names):
        axes.plot(t, qd[:, k], label=name, **curve)
    axes.set(title="joint rates θ̇", ylabel="rate [rad/s]")

    axes = panels[0, 1]
    for k, rate in enumerate(rates):
        axes.plot(t, see["nu"][:, k], label=rate, **curve)
    axes.set(title="diagonalised rates ν = mᵀθ̇", ylabel="rate [J$^{1/2}$]")

    axes = panels[1, 0]
    shares = see["nu"].T ** 2 / 2
    axes.stackplot(t, shares, labels=[f"½{rate}²" for rate in rates], alpha=0.75)
    axes.plot(t, see["kinetic"], "k--", label="½θ̇ᵀℳθ̇", **curve)
    axes.set(title="kinetic energy, a sum of squares", ylabel="energy [J]")

    axes = panels[1, 1]
    axes.plot(t, see["gained"], color="C0", linewidth=4, alpha=0.4, label="νᵀν̇")
    axes.plot(t, see["supplied"], "k--", label="θ̇ᵀ(τ - gravity)", **curve)
    axes.set(title="the energy gained is the power supplied", ylabel="power [W]")

    axes = panels[2, 0]
    work = np.abs(np.sum(see["nu"] * see["C"], axis=1))
    sizes = np.linalg.norm(see["nu"], axis=1) * np.linalg.norm(see["C"], axis=1)
    zero = "|νᵀC|, 0 drawn as 10$^{-18}$"
    axes.semilogy(t, sizes, label="|ν| |C|", **curve)
    axes.semilogy(t, np.maximum(work, 1e-18), ".", markersize=3, label=zero)
    axes.set(title="the Coriolis term does no work", ylabel="power [W]")

    axes = panels[2, 1]
    apart = np.max(np.abs(qd - qd_other), axis=1)
    drift = np.abs(see["total"] - see["total"][0])
    axes.semilogy(t[1:], drift[1:], label="drift of total energy [J]", **curve)
    axes.semilogy(t[1:], apart[1:], label="between θ̇ of the two runs [rad/s]", **curve)
    axes.set(title="errors of the runs in (θ, ν) and (θ, θ̇)", ylabel="difference")

    for axes in panels.flat:
        axes.set_xlim(t[0], t[-1])
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        ncols = 2 if len(axes.lines) > 5 else 1
        stacked = axes is panels[1, 0]  # from the bottom up, and so is its legend
        axes.legend(frameon=False, fontsize=9, ncols=ncols, reverse=stacked)
    for axes in panels[-1]:
        axes.set_xlabel("time [s]")
    return figure


def main(out="figures"):
    model = jd.robots.random_chain(jax.random.key(3), 6, kinds=("revolute",))
    q, qd = jd.random_state(model, jax.random.key(0))
    qd = 2 * qd
    ts = jnp.linspace(0.0, T, 301)
    run = {"rtol": 1e-10, "atol": 1e-10}
    motion = jd.simulate(model, q, qd, ts, rates="nu", **run)
    other = jd.simulate(model, q, qd, ts, rates="qd", **run)
    see = {k: np.asarray(x) for k, x in along(model, motion.q, motion.qd).items()}

    nu, C = see["nu"], see["C"]
    work = np.abs(np.sum(nu * C, axis=1))
    sizes = np.linalg.norm(nu, axis=1) * np.linalg.norm(C, axis=1)
    squares = np.sum(nu**2, axis=1) / 2
    power = np.abs(see["supplied"]).max()
    numbers = {
        "work": np.max(work / sizes),
        "energy": np.max(np.abs(squares - see["kinetic"]) / see["kinetic"]),
        "power": np.max(np.abs(see["gained"] - see["supplied"])) / power,
        "moments": np.max(np.abs(see["gained"] - see["moments"])) / power,
        "drift": np.max(np.abs(see["total"] - see["total"][0])),
        "apart": float(jnp.max(jnp.abs(motion.q - other.q))),
        "kinetic": see["kinetic"],
        "coriolis": np.max(np.linalg.norm(C, axis=1)),
    }
    low, high = see["kinetic"].min(), see["kinetic"].max()
    print(f"{model.name}, {T:g} s of free motion, {low:.2f} to {high:.2f} J kinetic")
    print(f"  |νᵀC| / |ν||C|             {numbers['work']:.1e} at most")
    print(f"  ½νᵀν and ½θ̇ᵀℳθ̇ differ by   {numbers['energy']:.1e} of it at most")
    print(f"  νᵀν̇ and θ̇ᵀ(τ - g) by       {numbers['power']:.1e} of the largest")
    print(f"  νᵀν̇ and νᵀε by             {numbers['moments']:.1e} of the largest")
    print(f"  motions in ν and in θ̇ by   {numbers['apart']:.1e} rad at most")
    print(f"  total energy drifts by     {numbers['drift']:.1e} J")

    figure = draw(model, *map(np.asarray, (ts, motion.qd, other.qd)), see)
    path = viz.save_figure(figure, Path(out) / "diagonal_dynamics.png")
    print(f"wrote {path}")
    return numbers


if __name__ == "__main__":
    main(*sys.argv[1:2])
