"""The benchmark scripts as modules: not installed, but in the folder beside."""

import importlib
import sys
from pathlib import Path

import pytest


def benchmark(name):
    """A script of `benchmarks`, which finds the ones beside it as when it is run."""
    folder = Path(__file__).parents[2] / "benchmarks"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder), *sys.path])
        return importlib.import_module(name)
