"""`jaxdenoc simulate`: the motion of a robot, in a table, a file and a figure."""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from rich.console import Console
from rich.table import Table

from .. import viz
from .._errors import ModelError
from .._progress import progress
from ..dynamics import gravity_forces
from ..model import Model, neutral, random_state
from ..simulate import Status, TorqueTable, Trajectory, events, simulate
from ..simulate._simulate import SOLVERS
from ._robot import add_robot, positive_float, positive_int, robot, writable

NAME = "simulate"
HELP = "Simulates a robot from a start, and writes its motion."
PIECES = 20  # of equal length, which compile once, with progress shown in between


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add = parser.add_argument
    add("--time", type=positive_float, default=1.0, help="seconds to simulate")
    add("--samples", type=positive_int, default=101, help="times to sample, both ends")
    add(
        "--start",
        default="neutral",
        help="'neutral' (at rest), 'random', q as numbers with commas (at rest), "
        "or a saved trajectory, to go on from its end",
    )
    add("--seed", type=int, default=0, help="of a random start")
    add(
        "--torque",
        default="zero",
        help="'zero', 'gravity' (holds the robot up), or a table .csv with columns "
        "t and tau_JOINT, as --csv writes it; linear in between",
    )
    add("--solver", choices=SOLVERS, default="tsit5")
    add("--stop-at-limits", action="store_true", help="where a joint leaves its limits")
    add("--rtol", type=positive_float, default=1e-8)
    add("--atol", type=positive_float, default=1e-8)
    add("--out", type=Path, help="file .npz for the trajectory")
    add("--csv", type=Path, help="file for a table")
    add("--plot", type=Path, help="file .png or .pdf for curves of all joints")


def run(args: argparse.Namespace) -> int:
    jax.config.update("jax_enable_x64", True)
    began, console = perf_counter(), Console(highlight=False)
    model = robot(args)
    if args.samples < 2:
        raise ModelError("--samples is 1. Give 2 or more: the two ends.")
    writable(args.out, args.csv, args.plot)
    q, qd = start(model, args.start, args.seed)
    motion = simulated(model, q, qd, args)
    describe(model, motion, args, console)
    for path in written(model, motion, args):
        console.print(f"wrote {path}", soft_wrap=True, markup=False)
    console.print(f"{perf_counter() - began:.1f} s in all.")
    return 0 if motion.status.ok else 1


def start(model: Model, text: str, seed: int) -> tuple[Array, Array]:
    """The state that --start says."""
    rest = jnp.zeros(model.nv, model.mass.dtype)
    if text == "neutral":
        return neutral(model), rest
    if text == "random":
        return random_state(model, jax.random.key(seed))
    if text.endswith(".npz"):
        return _end(model, text)
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != model.nq:
        raise ModelError(
            f"--start is '{text}'. Give neutral, random, nq = {model.nq} numbers with "
            "commas (--start=-1,0 if the first is negative), or a trajectory .npz."
        )
    return jnp.asarray(numbers, rest.dtype), rest


def _end(model: Model, path: str) -> tuple[Array, Array]:
    run = Trajectory.load(path)
    if run.q.ndim != 2 or (run.q.shape[1], run.qd.shape[1]) != (model.nq, model.nv):
        raise ModelError(
            f"{path} is not one motion of '{model.name}': q has shape {run.q.shape}. "
            "Give a trajectory of this robot."
        )
    return run.q[-1], run.qd[-1]


def torque(model: Model, text: str) -> Callable | None:
    """The joint forces that --torque says."""
    if text == "zero":
        return None
    if text == "gravity":
        return lambda t, q, qd: gravity_forces(model, q)
    if not text.endswith(".csv"):
        raise ModelError(f"--torque is '{text}'. Give zero, gravity, or a table .csv.")
    names = ["t", *(f"tau_{s}" for s in model.velocity_names)]
    try:
        with open(text, newline="") as file:
            rows = [[float(row[s]) for s in names] for row in csv.DictReader(file)]
        t, *tau = np.array(rows).T
        if not (np.all(np.isfinite(rows)) and np.all(np.diff(t) > 0)):
            raise ValueError("its times do not grow, or a number is not finite")
    except OSError as error:
        raise ModelError(
            f"{text} cannot be read: {error.strerror}. Give a table .csv."
        ) from error
    except (KeyError, ValueError, TypeError) as error:
        raise ModelError(
            f"{text} is no table of joint forces ({error}). Give rows of numbers under "
            f"the names {', '.join(names)}."
        ) from error
    dtype = model.mass.dtype
    return TorqueTable(jnp.asarray(t, dtype), jnp.asarray(np.stack(tau).T, dtype))


def simulated(model: Model, q0, qd0, args: argparse.Namespace) -> Trajectory:
    """Piece by piece, each from where the last has come to."""
    how = {
        "tau": torque(model, args.torque),
        "event": events.joint_limit() if args.stop_at_limits else None,
        **{"solver": args.solver, "rtol": args.rtol, "atol": args.atol},
    }
    last = args.samples - 1
    size = -(-last // PIECES)
    # of equal size: the last may begin a little before the one before it ends
    starts = [*range(0, last - size, size), last - size]
    t = np.linspace(0, args.time, args.samples).astype(model.mass.dtype)
    rows = [np.zeros((len(t), n), t.dtype) for n in (model.nq, model.nv, model.nv)]
    rows[0][0], rows[1][0] = q0, qd0
    status = None
    with progress(model.name, size * len(starts), "samples") as advance:
        for at in starts:
            here = jnp.asarray(rows[0][at]), jnp.asarray(rows[1][at])
            piece = slice(at, at + size + 1)
            run = simulate(model, *here, jnp.asarray(t[piece]), throw=False, **how)
            for x, found in zip(rows, (run.q, run.qd, run.tau), strict=True):
                x[piece] = found
            if not run.status.ok:
                status = _stopped(rows, run, at)
                break
            advance(size)
    q, qd, tau = (jnp.asarray(x) for x in rows)
    return Trajectory(jnp.asarray(t), q, qd, tau, status)


def _stopped(rows, run: Trajectory, at: int) -> Status:
    """The status of the whole; samples after the stop keep the last sound state."""
    sound = np.zeros(len(rows[0]), bool)
    found = np.asarray(run.status.sound)
    sound[:at] = True
    sound[at : at + len(found)] = found
    last = max(int(np.flatnonzero(sound)[-1]), at) if sound.any() else 0
    for x in rows:
        x[last + 1 :] = x[last]
    s = run.status
    return Status(jnp.asarray(sound), s.step + at, s.joint, s.reason)


def describe(model: Model, motion: Trajectory, args, console: Console) -> None:
    base = "free" if model.floating_base else "fixed"
    console.print(
        f"{model.name}: {model.n_links} links, nv = {model.nv}, {base} base, "
        f"{float(model.mass.sum()):.4g} kg",
        markup=False,
    )
    console.print(f"{args.time:g} s in {args.samples} samples by {args.solver}")
    names = ("position", "rate", "force")
    table = Table("", *names, title=f"at {float(motion.t[-1]):g} s")
    for column in table.columns[1:]:
        column.justify = "right"
    ends = (motion.q[-1], motion.qd[-1], motion.tau[-1])
    if model.floating_base:  # its q has one number more than it has rates
        pose = " ".join(f"{x:.5g}" for x in motion.q[-1, :7])
        table.caption = f"pose of the base: {pose}"
        ends = (jnp.concatenate([jnp.full(6, jnp.nan), ends[0][7:]]), *ends[1:])
    for name, *row in zip(model.velocity_names, *ends, strict=True):
        table.add_row(name, *(f"{x:.6g}" if x == x else "" for x in row))
    console.print(table)
    energy = np.asarray(motion.energy(model))
    largest = np.max(np.abs(energy - energy[0]))
    free = args.torque == "zero" and not np.any(model.damping + model.friction)
    word = "drift" if free else "largest change"
    console.print(f"energy: {energy[0]:.6g} J at the start, {word} {largest:.1e} J")
    console.print(f"status: {motion.status.describe(model)}", markup=False)


def written(model: Model, motion: Trajectory, args) -> list[Path]:
    """Writes the files that were asked for."""
    if args.out:
        motion.save(args.out)
    if args.csv:
        motion.to_csv(args.csv, model)
    if args.plot:
        figure = viz.joint_panels(
            model, motion.t, motion.q, quantity="position", title=model.name
        )
        viz.save_figure(figure, args.plot)
    return [path for path in (args.out, args.csv, args.plot) if path]
