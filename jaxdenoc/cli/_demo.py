"""`jaxdenoc demo`: the Stanford arm, checked, dropped and drawn."""

import argparse
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from .. import robots, viz
from ..dynamics import inverse_dynamics, kinetic_energy
from ..model import Model
from ..simulate import Trajectory, rollout, simulate
from ._checks import (
    CHECKS,
    Check,
    Result,
    compute,
    gradient,
    random_states,
    throughput,
)

NAME = "demo"
HELP = "Shows and checks the six-axis Stanford arm, and draws its motions."
STATES, BATCH = 100, 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("figures"), help="folder for the figures"
    )
    parser.add_argument(
        "--no-figures", action="store_true", help="only print, write no file"
    )


def run(args: argparse.Namespace) -> int:
    start = perf_counter()
    out: Path | None = None if args.no_figures else args.out
    if out is not None:
        try:  # before the work, so that a wrong folder does not waste it
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            print(
                f"jaxdenoc demo: cannot write to '{out}': {error.strerror}. "
                "Name a folder with --out, or give --no-figures.",
                file=sys.stderr,
            )
            return 2

    jax.config.update("jax_enable_x64", True)
    console = Console(highlight=False)
    model = robots.stanford_arm()
    describe(model, console)
    failed = check_all(model, out, console)
    console.print(f"\n{perf_counter() - start:.1f} s in all.")
    if failed:
        console.print(f"[red]{failed} of the checks failed.[/]")
    return 1 if failed else 0


def describe(model: Model, console: Console) -> None:
    table = Table(title=f"{model.name}: {model.nv} joints, {model.mass.sum():.1f} kg")
    for heading in ("joint", "kind", "moves", "from"):
        table.add_column(heading)
    table.add_column("mass, kg", justify="right")
    table.add_column("mass centre, m", justify="right")
    for i, (joint, kind) in enumerate(
        zip(model.joint_names, model.joint_kinds, strict=True)
    ):
        p = model.parent[i]
        table.add_row(
            joint,
            kind,
            model.link_names[i],
            model.link_names[p] if p >= 0 else model.base_name,
            f"{model.mass[i]:g}",
            # rounded, and -0 made 0: turned axes leave 1e-17 behind
            " ".join(f"{x + 0.0:6.3f}" for x in np.round(np.asarray(model.com[i]), 6)),
        )
    console.print(table)


def check_all(model: Model, out: Path | None, console: Console) -> int:
    """Runs every check, printing each when it is done; returns how many failed."""
    states = random_states(model, STATES)
    found = cache(partial(compute, model, states))  # when the first check asks for it
    fall = cache(partial(free_fall, model))  # one simulation, to check and to draw

    def identity(check: Check) -> Result:
        return Result(check.residual(states, found()), check.limit)

    tasks: list[tuple[str, Callable[[], Result]]] = [
        *((check.title, partial(identity, check)) for check in CHECKS),
        (
            "Jacobian and gradient are central differences",
            partial(gradient, model, states),
        ),
        (f"a vmapped batch of {BATCH} is right", partial(throughput, model, BATCH)),
        ("energy is kept in free fall, 0.5 s", lambda: energy_kept(model, fall())),
        ("and by 500 energy-keeping steps", lambda: energy_kept_by_steps(model)),
    ]
    failed, paths = 0, []
    console.print(f"\nLargest relative residuals, over {STATES} random states:\n")
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        console=console,
        transient=True,
    ) as progress:
        bar = progress.add_task("", total=len(tasks) + (out is not None))
        for title, task in tasks:
            progress.update(bar, description=title)
            result = task()
            failed += not result.passed
            mark = "[green]✓[/]" if result.passed else "[red]✗[/]"
            residual = f"{result.residual:.1e}  [dim](allowed {result.limit:.0e})[/]"
            console.print(f"  {mark} {title:<46}{residual}")
            if result.note:
                console.print(f"    {result.note}")
            progress.advance(bar)
        if out is not None:
            progress.update(bar, description="figures")
            paths = draw(model, fall(), out)
    for path in paths:
        console.print(f"  wrote {path}", soft_wrap=True, markup=False)
    return failed


def start() -> Array:
    return jnp.array([0, jnp.pi / 2, 0, 0, 0, 0])


def free_fall(model: Model) -> Trajectory:
    ts = jnp.linspace(0.0, 0.5, 101)
    rest = jnp.zeros(model.nv)
    return simulate(model, start(), rest, ts, rtol=1e-10, atol=1e-10)


def energy_kept_by_steps(model: Model) -> Result:
    rest = jnp.zeros(model.nv)
    how = {"steps": 500, "integrator": "energy"}
    result = energy_kept(model, rollout(model, start(), rest, None, 1e-3, **how))
    return Result(result.residual, 1e-12, result.note)


def energy_kept(model: Model, fall: Trajectory) -> Result:
    @jax.jit
    def energies(fall):
        kinetic = jax.vmap(lambda q, qd: kinetic_energy(model, q, qd))(fall.q, fall.qd)
        return kinetic, fall.energy(model)

    kinetic, energy = energies(fall)
    drift = float(jnp.max(jnp.abs(energy - energy[0])))
    # against what the fall turns into motion: the zero of the potential is arbitrary
    moving = float(jnp.max(kinetic))
    return Result(drift / moving, 1e-7, f"drift {drift:.1e} J of {moving:.1f} J")


def draw(model: Model, fall: Trajectory, out: Path) -> list[Path]:
    """Figures 6 and 9 of Saha 1999, as in `examples/01_stanford_arm.py`."""
    T, turn = 10.0, jnp.pi / 3
    q0, qT = start(), jnp.array([turn, turn, 0.1, turn, turn, turn])

    def q(t):  # a cycloid, from rest to rest
        return q0 + (qT - q0) * (t / T - jnp.sin(2 * jnp.pi * t / T) / (2 * jnp.pi))

    @jax.jit
    @jax.vmap
    def torques(t):
        qd = jax.jacfwd(q)
        return inverse_dynamics(model, q(t), qd(t), jax.jacfwd(qd)(t))

    t = jnp.linspace(0.0, T, 101)
    figures = {
        "stanford_arm_torques": viz.joint_panels(
            model,
            t,
            torques(t),
            quantity="force",
            title="Stanford arm: joint torques and force",
        ),
        "stanford_arm_free_fall": viz.joint_panels(
            model, fall.t, fall.q, quantity="position", title="Stanford arm: free fall"
        ),
    }
    return [viz.save_figure(f, out / f"{name}.png") for name, f in figures.items()]
