"""`jaxdenoc check`: how well the dynamics of a robot can be computed."""

import argparse
import dataclasses
import json
import warnings
from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from .._errors import ModelWarning
from ..conditioning import Health, health
from ..conditioning._health import CARE, HEALTHY, UNFIT
from ._robot import add_robot, positive_int, robot, writable

NAME = "check"
HELP = "Tells how well conditioned a robot is, and what to expect of float32."
COLOURS = {HEALTHY: "green", CARE: "yellow", UNFIT: "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add = parser.add_argument
    add("--states", type=positive_int, default=32, help="random states to look at")
    add("--seed", type=int, default=0, help="of these")
    add("--json", type=Path, help="file for the numbers")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 says that the robot is unfit."""
    jax.config.update("jax_enable_x64", True)
    console = Console(highlight=False)
    writable(args.json)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", ModelWarning)
        model = robot(args)
    found = health(model, states=args.states, key=jax.random.key(args.seed))
    show(found, [str(w.message) for w in heard], console)
    if args.json:
        args.json.write_text(json.dumps(dataclasses.asdict(found), indent=1) + "\n")
    return 0 if found.ok else 1


def show(found: Health, heard: list[str], console: Console) -> None:
    colour = COLOURS[found.verdict]
    table = Table(title=f"{found.name}, worst of {found.states} states")
    table.add_column("")
    table.add_column("", overflow="fold")
    for row in found.rows():
        table.add_row(*row)
    console.print(table)
    for text in heard:
        console.print(f"- {text}", markup=False)
    for remark in found.remarks:
        console.print(f"- {remark}", markup=False)
    console.print(f"[{colour}]{found.verdict}[/]")
