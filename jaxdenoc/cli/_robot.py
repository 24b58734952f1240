"""What the subcommands have in common: the ROBOT, and numbers that are refused."""

import argparse
from difflib import get_close_matches
from pathlib import Path

import jax

from .. import robots
from .._errors import ModelError
from ..io import load, restore
from ..model import Model

BUILT_IN = {
    "stanford_arm": robots.stanford_arm,
    "planar_arm": robots.planar_arm,
    "rod_chain": robots.rod_chain,
    "random_chain": lambda n: robots.random_chain(jax.random.key(0), n),
    "random_tree": lambda n: robots.random_tree(jax.random.key(0), n),
}
SIZED = ("rod_chain", "random_chain", "random_tree")


def add_robot(parser: argparse.ArgumentParser) -> None:
    names = [f"{name}:N" if name in SIZED else name for name in BUILT_IN]
    parser.add_argument(
        "robot",
        metavar="ROBOT",
        help="a robot description, a model saved as .npz, or one of "
        f"{', '.join(names)} (with N links)",
    )
    parser.add_argument(
        "--floating-base", action="store_true", help="the description's base is free"
    )


def robot(args: argparse.Namespace) -> Model:
    """The model that the command line names."""
    path = Path(args.robot)
    if path.suffix == ".npz":
        return restore(path)
    if path.exists():
        return load(path, floating_base=args.floating_base)
    name, _, size = args.robot.partition(":")
    if name not in BUILT_IN:
        close = get_close_matches(name, BUILT_IN, n=1)
        hint = f"Did you mean '{close[0]}'" if close else "Give a path"
        raise ModelError(
            f"there is no robot '{args.robot}', neither a file nor a built-in one. "
            f"{hint}? Built in are {', '.join(BUILT_IN)}."
        )
    if args.floating_base:
        raise ModelError(
            f"the base of '{name}' is fixed; --floating-base is for descriptions."
        )
    if name not in SIZED:
        return BUILT_IN[name]()
    if not size.isdigit() or int(size) < 1:
        raise ModelError(f"'{args.robot}' has no size. Give one, as in {name}:5.")
    return BUILT_IN[name](int(size))


def positive_int(text: str) -> int:
    return _positive(int, text)


def positive_float(text: str) -> float:
    return _positive(float, text)


def _positive(kind, text: str):
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive {kind.__name__}")
    return value


def writable(*paths: Path | None) -> None:
    """Refused before the work, so that a wrong folder does not waste it."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise ModelError(
                f"{path} cannot be written: there is no folder {path.parent}. Make "
                "it, or choose another place."
            )
