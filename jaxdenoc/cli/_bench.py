"""`jaxdenoc bench`: in a minute, what this machine does with a seven-link arm."""

import argparse
import json
import os
import platform
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from .. import __version__, robots
from .._batched import batched
from ..derivatives import forward_dynamics_derivatives
from ..dynamics import forward_dynamics, inverse_dynamics, mass_matrix
from ..io import to_urdf

NAME = "bench"
HELP = "Times the dynamics of a batch of seven-link arms, and of one, in a minute."
IN_PINOCCHIO = {
    "inverse dynamics": "rneaInParallel",
    "forward dynamics": "abaInParallel",
}


def gradient(model, q, qd, tau):
    def loss(q, qd, tau):
        return jnp.sum(forward_dynamics(model, q, qd, tau))

    return jax.grad(loss, (0, 1, 2))(q, qd, tau)


FUNCTIONS = {
    "inverse dynamics": inverse_dynamics,
    "forward dynamics": forward_dynamics,
    "mass matrix": lambda model, q, qd, tau: mass_matrix(model, q),
    "gradient of FD": gradient,
    "Jacobian of FD": forward_dynamics_derivatives,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch", type=_positive, default=16384, help="arms at a time")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="to spend on each figure"
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a batch; give 1 or more")
    return value


def run(args: argparse.Namespace) -> int:
    start, console = perf_counter(), Console()
    _use_all_cores()
    jax.config.update("jax_enable_x64", True)
    console.print(
        f"jaxdenoc {__version__}, jax {jax.__version__}, {jax.default_backend()}, "
        f"{jax.device_count()} devices, {os.cpu_count()} cores, {platform.machine()}"
    )
    rows = _figures(args.batch, args.seconds, console)
    console.print(_table(rows, args.batch))
    for row in rows:
        if "pinocchio" in row:
            ratio = row["float64"] / row["pinocchio"]
            peer = IN_PINOCCHIO[row["function"]]
            console.print(f"{row['function']}: {ratio:.1f}× Pinocchio's {peer}")
    if jax.default_backend() == "cpu" and jax.device_count() < (os.cpu_count() or 1):
        console.print("Not all cores were used: JAX had already started.")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    console.print(f"{perf_counter() - start:.0f} s in all.")
    return 0


def _use_all_cores() -> None:
    """One CPU device per core, unless JAX has been at work before."""
    with suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)


def _figures(batch: int, seconds: float, console: Console) -> list[dict]:
    model = robots.random_chain(jax.random.key(7), 7, kinds=("revolute",))
    states = jnp.asarray(np.random.default_rng(0).normal(size=(3, batch, 7)))
    rows = []
    columns = TextColumn("{task.description}"), BarColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("compiling", total=2 * len(FUNCTIONS))
        for name, f in FUNCTIONS.items():
            row: dict = {"function": name}
            for dtype in "float64", "float32":
                progress.update(task, description=f"{name}, {dtype}")
                args = jt.map(lambda x: x.astype(dtype), (model, *states))
                many = batched(f, in_axes=(None, 0, 0, 0))
                row[dtype] = batch / _median(many, args, seconds)
                progress.advance(task)
            alone = model, *(x[0] for x in states)
            row["one robot µs"] = 1e6 * _median(jax.jit(f), alone, seconds / 2)
            if name in IN_PINOCCHIO:
                row |= _pinocchio(IN_PINOCCHIO[name], model, states, seconds)
            rows.append(row)
    return rows


def _median(call, args, seconds: float) -> float:
    jax.block_until_ready(call(*args))
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        start = perf_counter()
        jax.block_until_ready(call(*args))
        times.append(perf_counter() - start)
    return float(np.median(times))


def _pinocchio(name: str, model, states, seconds: float) -> dict:
    """The same by Pinocchio on as many threads, if it is installed."""
    if not find_spec("pinocchio"):
        return {}
    pin = import_module("pinocchio")
    threads = os.cpu_count() or 1
    pool = pin.ModelPool(pin.buildModelFromXML(to_urdf(model)), threads)
    args = [np.asfortranarray(np.array(x).T) for x in states]
    out = np.zeros_like(args[0])

    def call(*args):
        getattr(pin, name)(threads, pool, *args, out)
        return out

    return {"pinocchio": states.shape[1] / _median(call, args, seconds)}


def _table(rows: list[dict], batch: int) -> Table:
    table = Table(title=f"seven-link arm, evaluations a second in batches of {batch}")
    names = "function", "float64", "float32", "one robot µs", "pinocchio"
    columns = [n for n in names if any(n in row for row in rows)]
    for name in columns:
        table.add_column(name, justify="left" if name == "function" else "right")
    for row in rows:
        table.add_row(*(_cell(name, row.get(name, "")) for name in columns))
    return table


def _cell(name: str, value) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if "µs" in name else f"{value / 1e6:.2f} M"
