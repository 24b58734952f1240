"""The README's table of errors, held on some of the robots that it is made of.

Errors are those of compiled programs, beside fifty digits (`test_exact.py`).
"""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from .support.benchmark import benchmark

precision = benchmark("precision")
cites = pytest.mark.cites
README = Path(__file__).parents[1] / "README.md"


def bounds():
    """{(function, group, type): bound}, infinite where the table says "fails"."""
    section = README.read_text().split("## How precise\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    (_, *columns), _, *lines = rows
    return {
        (name, *re.split(", ", column)): np.inf if cell == "fails" else float(cell)
        for name, *cells in lines
        for column, cell in zip(columns, cells, strict=True)
    }


BOUNDS = bounds()


def robot(name):
    spreads, lengths = (0, 1, 2), (1, 8, 64, 512)
    known = {r.name: r for r in precision.robots(lengths, spreads, ("panda",))}
    return known[name]


def hold(name, functions, draws=(0, 1), dtypes=precision.TYPES):
    """The bounds of these functions on a robot; its errors are returned."""
    which, found = robot(name), {}
    functions = [f for f in functions if (f, which.group, dtypes[0]) in BOUNDS]
    assert functions
    for dtype in dtypes:
        for k in draws:
            errors = precision.errors(which.draw(k), dtype, functions)
            for function in functions:
                found[function, dtype, k] = errors[function]
    allowed = {case: BOUNDS[case[0], which.group, case[1]] for case in found}
    broken = {
        case: (error, allowed[case])
        for case, error in found.items()
        if np.isfinite(allowed[case]) and not error <= allowed[case]
    }
    assert not broken, f"{name}: {broken}"
    return found


def test_the_table_is_whole():
    functions = {name for name in precision.FUNCTIONS if name != "motion"}
    named = {name for name, _, _ in BOUNDS}
    assert {name for name in functions if "refine" not in name} <= named <= functions
    columns = {(group, dtype) for _, group, dtype in BOUNDS}
    assert columns == {(g, t) for g in precision.GROUPS for t in precision.TYPES}
    assert len(BOUNDS) == len(named) * len(columns)
    # what float32 is good for
    for name in ("FD", "ID", "ℳ"):
        assert BOUNDS[name, "ordinary", "float32"] < 1e-4
        assert BOUNDS[name, "ordinary", "float64"] < 1e-12
    assert BOUNDS["FD, refine=1", "straight", "float32"] <= 1e-6


SHORT = ["ID", "FD", "FD, refine=1", "FD, dense", "ℳ"]
SLOPES = ["FD, forward mode", "FD, reverse mode"]
SCANS = ["ID, parallel", "FD, parallel", "FD, parallel, refine=1"]


@cites("MATH 9.4, 16")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["straight", "spread 0,", "spread 1,", "spread 2,"])
def test_short_chains(kind):
    hold(f"{kind} 8", SHORT, range(4))
    hold(f"{kind} 8", SLOPES + SCANS, range(4), ("float32",))


@cites("MATH 16")
@pytest.mark.parametrize("name", ["straight 1", "spread 0, 1"])
def test_one_link(name):
    hold(name, ["ID", "FD"])


@cites("MATH 9.4, 16")
@pytest.mark.parametrize("name", ["straight 64", "spread 1, 64", "spread 2, 64"])
def test_long_chains(name):
    hold(name, ["ID", "FD", "ℳ"])


@cites("MATH 16")
def test_a_real_robot():
    hold("panda", ["ID", "FD"])


@cites("MATH 8, 16: κ ≈ 4n⁴, and the error of the O(n) solve is not κ")
def test_a_straight_chain_of_512_links_in_float32():
    """Where ℳ and its Cholesky factor have no digit left."""
    functions = ["FD", "FD, dense"]
    found = hold("straight 512", functions, (0, 1), ("float32",))
    for (function, *_), error in found.items():
        if function == "FD":
            assert error <= 1e-6
        else:
            assert not error < 1e-2  # or it is not finite


def test_weight_costs_no_digits():
    """Straight chains in float32 that are let go, beside float64: weight alone."""
    for n in (8, 512):
        chain, found = jd.robots.rod_chain(n), {}
        for dtype in precision.TYPES:
            model = jax.tree.map(lambda x, t=dtype: x.astype(t), chain)
            zero = jnp.zeros(n, dtype)
            qdd = jd.forward_dynamics(model, zero, zero, zero)
            found[dtype] = np.asarray(qdd, float)
        apart = np.linalg.norm(found["float32"] - found["float64"])
        assert apart < 3e-7 * np.linalg.norm(found["float64"])
