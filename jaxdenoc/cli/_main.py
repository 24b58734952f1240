"""The parser, and the list of subcommands.

A subcommand is a module with `NAME`, `HELP`, `add_arguments(parser)` and
`run(args) -> int`, which returns the exit code. A `ModelError` of its own is the
message of a command line that cannot be followed: exit code 2.
"""

import argparse
import io
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from .. import __version__
from .._errors import ModelError
from . import _bench, _check, _demo, _generate, _identify, _simulate

COMMANDS = {
    module.NAME: module
    for module in (_demo, _check, _simulate, _generate, _identify, _bench)
}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(
            2, f"{self.prog}: {message}\n`{self.prog} --help` lists what there is.\n"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line, by default the program's own, and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal without Greek letters gets question marks, not an exception
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not argv:
        parser.print_help(sys.stderr)
        print("\nTry `jaxdenoc demo`.", file=sys.stderr)
        return 2
    if not argv[0].startswith("-") and argv[0] not in COMMANDS:
        parser.error(_unknown(argv[0]))
    args = parser.parse_args(argv)
    try:
        return COMMANDS[args.command].run(args)
    except ModelError as error:  # which says what is wrong and what to do
        print(f"{parser.prog} {args.command}: {error}", file=sys.stderr)
        return 2


def _parser() -> Parser:
    parser = Parser(
        prog="jaxdenoc", description="Differentiable multibody dynamics on JAX."
    )
    parser.add_argument(
        "--version", action="version", version=f"jaxdenoc {__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
    return parser


def _unknown(name: str) -> str:
    close = get_close_matches(name, COMMANDS, n=1)
    hint = (
        f"Did you mean '{close[0]}'?" if close else f"There is {', '.join(COMMANDS)}."
    )
    return f"there is no command '{name}'. {hint}"
