"""`jaxdenoc identify`: a robot's numbers from logs, into the robot's own file."""

import argparse
import json
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from .._errors import ModelError, ModelWarning
from .._npz import write_whole
from ..identify import Measurements, read_measurements
from ..identify._report import write_report
from ..identify._reported import beyond_noise, names_of
from ..identify._write_back import write_patched_urdf
from ..io import save, to_urdf
from ..model import Model
from ._robot import add_robot, positive_float, robot, writable

NAME = "identify"
HELP = "Finds masses, inertias and friction of a robot from logs of its motion."
FEW = 20  # rows of the table without --all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add = parser.add_argument
    add("data", metavar="DATA", nargs="+", type=Path, help="logs .csv, .npz, .parquet")
    add("--out", type=Path, help="file .urdf, or .npz for the whole model")
    add("--into", type=Path, help="the robot's URDF, where ROBOT is a saved model")
    add("--report", type=Path, help="file .html for figures and tables")
    add("--json", type=Path, help="file for the numbers")
    add("--loss", choices=("torque", "rollout"), default="torque")
    add(
        "--parameters",
        metavar="PATTERN",
        nargs="+",
        help="what is free, as 'link3.*' '*.friction'; all if not given",
    )
    add(
        "--held-out",
        type=_fraction,
        default=0.2,
        help="the last part of every log, to validate with and not to fit; 0 for none",
    )
    add("--robust", action="store_true", help="give outliers less weight")
    add("--checkpoint", type=Path, help="file to go on from, after a stop")
    add("--cutoff", type=positive_float, help="of the filter of positions, in Hz")
    add("--all", action="store_true", help="print every parameter")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 says that a link that was found is no possible body."""
    jax.config.update("jax_enable_x64", True)
    began, console = perf_counter(), Console(highlight=False)
    writable(args.out, args.report, args.json, args.checkpoint)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", ModelWarning)
        model = robot(args)
        _check_source(args)
        fit, held = logs(args, model)
    _tell(heard, console)
    try:
        found = identified(model, fit, args)
    except KeyboardInterrupt:
        more = "The same command goes on from here." if args.checkpoint else ""
        print(f"\nstopped. {more}".rstrip(), file=sys.stderr)
        return 130
    describe(found, fit, held, args, console)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", ModelWarning)
        for path in written(found, fit, held, args):
            console.print(f"wrote {path}", soft_wrap=True, markup=False)
    _tell(heard, console)
    console.print(f"{perf_counter() - began:.1f} s in all.")
    return 0 if np.all(found.consistent) else 1


def logs(args, model: Model) -> tuple[list[Measurements], list[Measurements]]:
    """What to fit, and what to hold out."""
    every = [read_measurements(path, model, cutoff=args.cutoff) for path in args.data]
    if not args.held_out:
        return every, []
    pairs = [log.split(args.held_out) for log in every]
    return [a for a, _ in pairs], [b for _, b in pairs]


def identified(model: Model, fit: list[Measurements], args) -> Any:
    from ..identify import identify  # pyright: ignore

    return identify(
        model,
        fit,
        parameters=tuple(args.parameters) if args.parameters else "all",
        loss=args.loss,
        robust="huber" if args.robust else None,
        checkpoint=args.checkpoint,
    )


def describe(found: Any, fit, held, args, console: Console) -> None:
    samples = sum(map(len, fit))
    console.print(
        f"{found.model.name}: {samples} samples of {len(fit)} logs; "
        f"{found.base.rank} base parameters, condition number of their normal matrix "
        f"{found.base.condition:.3g}",
        markup=False,
    )
    console.print(_of_joints(found, held))
    console.print(_of_parameters(found, args.all))
    for link, good in zip(found.model.link_names, found.consistent, strict=True):
        if not good:
            console.print(f"- link '{link}' is no possible body", markup=False)
    for remark in found.remarks:
        console.print(f"- {remark}", markup=False)


def _of_joints(found: Any, held: list[Measurements]) -> Table:
    names = ["noise", "residual", *(["held out", "to noise"] if held else [])]
    table = Table("joint", *names, title="torques, root mean square")
    for column in table.columns[1:]:
        column.justify = "right"
    error = held_out_error(found, held)
    for j, joint in enumerate(found.model.velocity_names):
        row = [found.noise[j], found.residual[j]]
        row += [error[j], error[j] / found.noise[j]] if held else []
        table.add_row(joint, *(f"{x:.3g}" for x in row))
    return table


def held_out_error(found: Any, held: list[Measurements]) -> np.ndarray:
    """Root mean square of what is not predicted, joint by joint."""
    if not held:
        return np.full(found.model.nv, np.nan)
    rest = np.concatenate([found.residuals(log) for log in held])
    count = np.sum(np.isfinite(rest), axis=0)
    mean = np.nansum(rest**2, axis=0) / np.maximum(count, 1)
    return np.where(count > 0, np.sqrt(mean), np.nan)


def _of_parameters(found: Any, every: bool) -> Table:
    """All of them, or those that changed most for their σ."""
    change = np.asarray(found.values) - np.asarray(found.prior_values)
    sigma, beyond = np.asarray(found.sigma), beyond_noise(found)
    size = np.where(sigma > 0, np.abs(change) / np.where(sigma > 0, sigma, 1), 0)
    names = names_of(found)
    shown = np.arange(len(names)) if every else np.sort(np.argsort(-size)[:FEW])
    table = Table()
    table.add_column("parameter", overflow="fold")
    for head in ("before", "after", "± σ"):
        table.add_column(head, justify="right")
    table.add_column("source")
    table.add_column("3 σ")
    for k in shown:
        numbers = found.prior_values[k], found.values[k], sigma[k]
        before, after, wide = (f"{x:.3g}" for x in numbers)
        mark = "beyond" if beyond[k] else ""
        table.add_row(names[k], before, after, wide, found.sources[k], mark)
    if len(shown) < len(names):
        table.caption = f"{len(shown)} of {len(names)}; --all prints the others too"
    return table


def written(found: Any, fit, held, args) -> list[Path]:
    """Writes the files that were asked for; the robot last, which may be refused."""
    if args.report:
        write_report(found, args.report, fit, held or None)
    if args.json:
        text = json.dumps(numbers(found, held), indent=1) + "\n"
        write_whole(args.json, lambda file: file.write(text.encode()))
    if args.out:
        _write_robot(found.model, args)
    return [path for path in (args.out, args.report, args.json) if path]


def _write_robot(model: Model, args) -> None:
    source = args.into or Path(args.robot)
    if args.out.suffix == ".npz":
        save(model, args.out)
    elif source.suffix == ".npz" or not source.exists():
        text = to_urdf(model)
        write_whole(args.out, lambda file: file.write(text.encode()))
    else:
        try:
            write_patched_urdf(source, model, args.out)
        except ModelError as error:
            warnings.warn(f"{error} So it was written.", ModelWarning, stacklevel=1)
            write_patched_urdf(source, model, args.out, fixed="merge")


def numbers(found: Any, held: list[Measurements]) -> dict:
    """What was found, for a program to read."""
    columns = zip(
        *(names_of(found), found.prior_values, found.values, found.sigma),
        *(found.sources, beyond_noise(found)),
        strict=True,
    )
    keys = ("name", "before", "after", "sigma", "source", "beyond_3_sigma")
    error = held_out_error(found, held)
    joints = zip(
        found.model.velocity_names, found.noise, found.residual, error, strict=True
    )
    of_joint = ("name", "noise", "residual", "held_out")
    base = zip(
        *(found.base.names, found.base_values),
        np.sqrt(np.diagonal(found.base_covariance)),
        strict=True,
    )
    return _plain(
        {
            "robot": found.model.name,
            "parameters": [dict(zip(keys, row, strict=True)) for row in columns],
            "base_parameters": [
                dict(zip(("name", "value", "sigma"), row, strict=True)) for row in base
            ],
            "condition": found.base.condition,
            "joints": [dict(zip(of_joint, row, strict=True)) for row in joints],
            "consistent": dict(
                zip(found.model.link_names, found.consistent, strict=True)
            ),
            "remarks": list(found.remarks),
        }
    )


def _plain(x: Any) -> Any:
    """As JSON has it: no arrays, and null for what is no number."""
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(v) for v in x]
    if isinstance(x, np.generic):
        x = x.item()
    return None if isinstance(x, float) and not np.isfinite(x) else x


def _check_source(args) -> None:
    if args.into is not None and not args.into.is_file():
        raise ModelError(f"--into is {args.into}, which is no file. Give a URDF.")


def _tell(heard, console: Console) -> None:
    for w in heard:
        console.print(f"- {w.message}", markup=False)


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 up to 1")
    return value
