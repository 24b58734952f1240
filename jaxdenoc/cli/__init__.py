"""The command line: `jaxdenoc`, one file for each of its subcommands."""

from ._main import main as main
