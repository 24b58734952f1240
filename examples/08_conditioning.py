"""The condition number of the inertia matrix: a note's figures, and what holds of it.

A chain of four rods that hangs 30 degrees off the vertical has an inertia matrix ℳ of
condition number κ = 1074: joint forces rounded to three digits change its accelerations
by up to 56 %. The diagonal of ℳ, at hand in O(n), gives a ratio δ that follows κ while
chains of 4, 10 and 20 rods swing, and δ_s = α δ, with α from the start, estimates it;
the pivots of the elimination do not. Some of the note's claims are tried and fail.

    python examples/08_conditioning.py [folder for the figures]
"""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc import viz  # noqa: E402

SWINGS = {4: 5.0, 10: 4.0, 20: 3.0}  # links, and seconds
# and how many degrees gravity is from -y towards x, along which the chain lies
STARTS = {"30° off the vertical": 60.0, "horizontal": 0.0}
LENGTHS = (2, 4, 6, 8, 10, 16, 20, 32, 64)
ROUNDED = np.array([-86.0, -48.7, -21.6, -5.4])


def chain(n, degrees, **options):
    angle = np.deg2rad(degrees)
    gravity = 9.81 * np.array([np.sin(angle), -np.cos(angle), 0.0])
    return jd.robots.rod_chain(n, mass=2.20697, gravity=gravity, **options)


def four_links():
    """The note's example, printed digit by printed digit."""
    model = chain(4, 60.0, axial_inertia=5e-5)
    rest = jnp.zeros(4)
    M, phi = jd.mass_matrix(model, rest), -jd.gravity_forces(model, rest)
    qdd = jd.forward_dynamics(model, rest, rest, rest)
    print("four rods, 30° off the vertical: ℳ, φ and θ̈ = ℳ⁻¹φ")
    for row, force, a in zip(M, phi, qdd, strict=True):
        numbers = "".join(f"{x:10.4f}" for x in row)
        print(f"  {numbers}   {force:10.4f}   {a:9.4f}")
    kappa = float(jd.condition_number(model, rest))
    rounded = jd.factorize(model, rest).solve(jnp.asarray(ROUNDED))
    change = 100 * np.abs((rounded - qdd) / qdd)
    wrong = 100 * np.abs(ROUNDED / np.asarray(phi) - 1)
    print(f"  κ = {kappa:.2f}")
    print("  φ rounded by", ", ".join(f"{x:.2f}" for x in wrong), "%")
    print("  θ̈ changed by", ", ".join(f"{x:.1f}" for x in change), "%")
    found = {"ℳ": np.asarray(M), "φ": np.asarray(phi), "θ̈": np.asarray(qdd)}
    return {"found": found, "kappa": kappa, "change": change}


def swing(n, degrees):
    """κ along a swing from rest, and what is cheap to have instead."""
    model, rest = chain(n, degrees), jnp.zeros(n)
    ts = jnp.linspace(0.0, SWINGS[n], 51)
    tight = {"rtol": 1e-10, "atol": 1e-10}
    motion = jd.simulate(model, rest, rest, ts, monitor=True, **tight)

    def at(q):
        forward = jd.pivot_ratio(model, q, order="forward")
        return jd.condition_number(model, q), forward

    kappa, forward = jax.jit(partial(jax.lax.map, at))(motion.q)
    seen = motion.condition
    return {
        "t": np.asarray(ts),
        "κ": np.asarray(kappa),
        "δ": np.asarray(seen.diagonal_ratio),
        "δ_s": np.asarray(seen.estimate),
        "reverse pivots": np.asarray(seen.pivot_ratio),
        "forward pivots": np.asarray(forward),
    }


def correlation(a, b):
    return float(np.corrcoef(np.log(a), np.log(b))[0, 1])


def report(start, swings):
    print(f"\nswings from rest, {start}: correlation of logarithms with that of κ")
    print("   n      δ   reverse pivots   forward pivots   δ_s/κ")
    for n, see in swings.items():
        by = (correlation(see["κ"], see[x])
              for x in ("δ", "reverse pivots", "forward pivots"))  # fmt: skip
        low, high = (f(see["δ_s"] / see["κ"]) for f in (np.min, np.max))
        a, b, c = (f"{x:5.2f}" for x in by)
        print(f"  {n:2d}  {a}            {b}            {c}   {low:.2f} to {high:.2f}")


def growth(lengths):
    """κ of straight chains, which grows as 4n⁴."""
    found = {}
    for n in lengths:
        straight = jd.robots.rod_chain(n)
        found[n] = float(jd.condition_number(straight, jnp.zeros(n)))
    print("\nstraight chains: n, κ, κ/(4n⁴)")
    for n, kappa in found.items():
        print(f"  {n:2d}  {kappa:12.5g}  {kappa / (4 * n**4):.3f}")
    return found


def claims(sizes):
    """What does not hold: the largest diagonal entry, and what κ says of O(n)."""
    print("\nwhat does not hold")
    shares = {}
    for n in sizes:
        model = jd.robots.rod_chain(n)
        q = jax.random.uniform(jax.random.key(n), (4000, n), float, -np.pi, np.pi)
        diagonal = jax.jit(jax.vmap(partial(jd.mass_matrix, model)))(q)
        diagonal = np.diagonal(np.asarray(diagonal), axis1=1, axis2=2)
        shares[n] = float(np.mean(np.argmax(diagonal, axis=1) > 0))
        print(f"  ℳ_11 is not the largest of the diagonal: {shares[n]:.0%} of random "
              f"configurations, {n} links")  # fmt: skip
    model, errors = jd.robots.rod_chain(64), {}
    kappa = float(jd.condition_number(model, jnp.zeros(64)))
    known = solved(model, jnp.float64, "recursive")
    for method in "recursive", "dense":
        apart = solved(model, jnp.float32, method) - known
        errors[method] = np.linalg.norm(apart) / np.linalg.norm(known)
    print(f"  κ is the error of solving: 64 links, κ = {kappa:.1e}, in float32")
    print(f"  {errors['recursive']:.0e} of θ̈ in O(n), {errors['dense']:.0e} with ℳ")
    return {"shares": shares, "errors": errors}


def solved(model, dtype, method):
    model = jax.tree.map(lambda x: x.astype(dtype), model)
    rest = jnp.zeros(model.nv, dtype)
    qdd = jd.forward_dynamics(model, rest, rest, rest, method=method)
    return np.asarray(qdd, np.float64)


def draw(start, swings):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.2 * len(swings)), layout="constrained")
    figure.suptitle(f"Chains of rods, let go {start}", fontsize=12)
    panels = figure.subplots(len(swings), 2, sharex="row", squeeze=False)
    for row, (n, see) in zip(panels, swings.items(), strict=True):
        ratio, pivots = row
        ratio.semilogy(see["t"], see["κ"], "k", linewidth=2.5, label="κ")
        ratio.semilogy(see["t"], see["δ_s"], "C1--", label="δ$_s$ = α δ")
        ratio.set_title(f"{n} links: κ and the scaled diagonal ratio", fontsize=10)
        for name, style in (("κ", "k"), ("forward pivots", "C2"),
                            ("reverse pivots", "C3")):  # fmt: skip
            width = 2.5 if name == "κ" else 1.5
            curve = see[name] / see[name][0]
            pivots.semilogy(see["t"], curve, style, linewidth=width, label=name)
        pivots.set_title(f"{n} links: κ and pivot ratios over their first", fontsize=10)
        for axes in row:
            axes.set_xlim(see["t"][0], see["t"][-1])
            label = "{x:,.0f}" if axes is ratio else "{x:.3g}"
            axes.yaxis.set_minor_formatter(label)
            axes.yaxis.set_major_formatter(label)
    for axes in panels[-1]:
        axes.set_xlabel("time [s]")
    return finished(figure, panels.flat)


def draw_growth(found):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4.2), layout="constrained")
    axes = figure.subplots()
    n = np.array(list(found))
    axes.loglog(n, [found[k] for k in found], "ko", label="κ of straight chains")
    axes.loglog(n, 4.0 * n**4, "C1-", label="4n⁴")
    axes.loglog(n, 4.0 * n, "C0--", label="4n, as the note begins with")
    axes.set(xlabel="links", title="Condition number of chains of equal rods")
    axes.set_xticks(n, [str(k) for k in n])
    axes.minorticks_off()
    return finished(figure, [axes])


def finished(figure, panels):
    for axes in panels:
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    return figure


def main(out="figures", links=tuple(SWINGS), starts=tuple(STARTS), lengths=LENGTHS):
    numbers = four_links() | {"swings": {}}
    files = {}
    for start in starts:
        degrees = STARTS[start]
        swings = {n: swing(n, degrees) for n in links}
        report(start, swings)
        numbers["swings"][start] = swings
        name = "hanging" if degrees else "horizontal"
        files[f"conditioning_{name}.png"] = draw(start, swings)
    numbers["growth"] = growth(lengths)
    files["conditioning_growth.png"] = draw_growth(numbers["growth"])
    numbers |= claims((3, *links[:2]))
    for name, figure in files.items():
        print(f"wrote {viz.save_figure(figure, Path(out) / name)}")
    return numbers


if __name__ == "__main__":
    main(*sys.argv[1:2])
