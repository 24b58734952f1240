"""From how many links on do scans of logarithmic depth beat the recursions?

Forward and inverse dynamics of revolute chains, by the recursions and by the scans of
`dynamics/_parallel.py`: times of one robot and of batches, both in tiles on a CPU, and
compile times. Then what does not depend on the machine, counted in the jaxpr:
operations on scalars, and depth, which is the longest path of operations that wait for
one another. A machine that does `width` operations at a time needs about

    time = depth + operations / width            (Brent's bound)

so the scans win where it is wider than the operations they add over the depth they
save.

    python benchmarks/parallel_depth.py [--max-n 1024] [--batches 1 16 256]
        [--dtype float64] [--json PATH]

Medians, in turns; compilation is timed apart. Read ratios, and run it twice.
"""

import argparse
import math
from functools import partial
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
from common import about, arm, in_type, show, write
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params
from rich.console import Console

jax.config.update("jax_enable_x64", True)

from jaxdenoc._tiles import in_tiles  # noqa: E402
from jaxdenoc.dynamics import _forward, _inverse, _parallel  # noqa: E402

CLEARLY = 1.2  # what the same program differs by from run to run is less
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
METHODS = {
    "inverse": {
        "recursive": _inverse.newton_euler,
        "parallel": _parallel.inverse_dynamics_parallel,
    },
    "forward": {
        "recursive": _forward._recursive,
        "parallel": _parallel.forward_dynamics_parallel,
    },
}
ARITHMETIC = frozenset(
    """
    add add_any sub mul div neg square integer_pow sqrt rsqrt sin cos tan tanh exp log
    max min abs sign pow
    """.split()  # noqa: SIM905
)


def cost(eqn) -> tuple[int, int]:
    """Operations on scalars and depth of one primitive; moving data is free."""
    name, out = eqn.primitive.name, eqn.outvars[0].aval
    size = math.prod(out.shape)
    shape = eqn.invars[0].aval.shape if eqn.invars else ()
    if name in ARITHMETIC:
        return (size, 1) if jnp.issubdtype(out.dtype, jnp.floating) else (0, 0)
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        terms = math.prod(shape[k] for k in contracted)
        return size * (2 * terms - 1), 1 + _halvings(terms)
    if name in ("reduce_sum", "reduce_max", "argmax"):
        return math.prod(shape) - size, _halvings(math.prod(shape) // max(size, 1))
    if name in ("scatter-add", "scatter_add"):
        return math.prod(eqn.invars[2].aval.shape), 1
    k = shape[-1] if shape else 1
    if name == "lu":  # of each column: the pivot, a quotient, a product, a difference
        return math.prod(shape[:-2]) * 2 * k**3 // 3, k * (_halvings(k) + 3)
    if name == "cholesky":
        return math.prod(shape[:-2]) * k**3 // 3, 4 * k
    if name == "triangular_solve":
        return size * k, 3 * k
    return 0, 0


def _halvings(k: int) -> int:
    return math.ceil(math.log2(k)) if k > 1 else 0


def count(jaxpr: Jaxpr, at: list[int]) -> tuple[int, list[int]]:
    """Operations, and when each result is there if the arguments are there at `at`."""
    when = dict(zip(jaxpr.invars, at, strict=True))
    total = 0

    def of(var) -> int:
        return 0 if isinstance(var, Literal) else when.get(var, 0)

    for eqn in jaxpr.eqns:
        before = [of(var) for var in eqn.invars]
        inner = [_open(j) for j in jaxprs_in_params(eqn.params)]
        if eqn.primitive.name == "scan":
            work, after = _scan(eqn, inner[0], before)
        elif eqn.primitive.name == "custom_linear_solve":
            body = _open(eqn.params["jaxprs"].solve)
            work, after = count(body, [max(before)] * len(body.invars))
        elif inner:  # jit, custom_jvp_call: the first is the function itself
            work, after = count(inner[0], before[len(before) - len(inner[0].invars) :])
        else:
            work, depth = cost(eqn)
            after = [max(before, default=0) + depth] * len(eqn.outvars)
        total += work
        when.update(zip(eqn.outvars, after, strict=True))
    return total, [of(var) for var in jaxpr.outvars]


def _scan(eqn, body: Jaxpr, before: list[int]) -> tuple[int, list[int]]:
    """A loop waits for what it carries; the rest of a step can be done before."""
    length, carried = eqn.params["length"], eqn.params["num_carry"]
    constants = eqn.params["num_consts"]
    for _ in range(length):
        work, after = count(body, before)
        before = [
            *before[:constants],
            *after[:carried],
            *before[constants + carried :],
        ]
    return work * length, after


def _open(jaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def counted(function, n: int, dtype) -> dict:
    state = [jnp.ones(n, dtype)] * 3
    model = in_type(arm(n), dtype)
    jaxpr = jax.make_jaxpr(lambda *a: function(*a, None))(model, *state).jaxpr
    operations, depths = count(jaxpr, [0] * len(jaxpr.invars))
    return {"operations": operations, "depth": max(depths)}


def compiled(function, args, batch: int) -> tuple:
    """A call, and the seconds that compiling it took."""
    call = partial(_without_wrenches, in_tiles(function))
    call = call if batch == 1 else jax.vmap(call, (None, 0, 0, 0))
    lowered = jax.jit(call).lower(*args)
    start = perf_counter()
    program = lowered.compile()
    return program, perf_counter() - start


def _without_wrenches(function, model, q, qd, x):
    return function(model, q, qd, x, None)


def timed(programs: dict, args, seconds: float = 0.5) -> dict:
    """Median times, the programs taking turns for about so many seconds each."""
    times = {name: [] for name in programs}
    rounds, spent = 0, 0.0
    while rounds < 5 or (spent < seconds * len(programs) and rounds < 200):
        for name, program in programs.items():
            start = perf_counter()
            jax.block_until_ready(program(*args))
            times[name].append(perf_counter() - start)
            spent += times[name][-1]
        rounds += 1
    return {name: float(np.median(t[1:])) for name, t in times.items()}


def measure(function: str, n: int, batch: int, dtype) -> dict:
    model = in_type(arm(n), dtype)
    shape = (n,) if batch == 1 else (batch, n)
    state = np.random.default_rng(n).normal(size=(3, *shape))
    args = model, *jnp.asarray(state, dtype)
    made = {m: compiled(f, args, batch) for m, f in METHODS[function].items()}
    results = [np.array(program(*args)) for program, _ in made.values()]
    times = timed({m: program for m, (program, _) in made.items()}, args)
    return {
        "n": n,
        "batch": batch,
        **{f"{m} µs": 1e6 * t / batch for m, t in times.items()},
        "recursive / parallel": times["recursive"] / times["parallel"],
        **{f"{m} compile s": s for m, (_, s) in made.items()},
        "difference": float(
            np.abs(results[0] - results[1]).max() / np.abs(results[0]).max()
        ),
    }


def structure(function: str, n: int, dtype) -> dict:
    """Depth and operations, and the width from which on the scans are faster."""
    found = {m: counted(f, n, dtype) for m, f in METHODS[function].items()}
    scan, sweep = found["parallel"], found["recursive"]
    saved = sweep["depth"] - scan["depth"]
    more = scan["operations"] - sweep["operations"]
    return {
        "n": n,
        **{f"{m} depth": c["depth"] for m, c in found.items()},
        **{f"{m} operations": c["operations"] for m, c in found.items()},
        "width needed": max(1, math.ceil(more / saved)) if saved > 0 else None,
    }


def crossovers(rows: list[dict]) -> dict:
    """For each batch, the n from which on the scans are clearly faster, or None."""
    found = {}
    for batch in dict.fromkeys(row["batch"] for row in rows):
        n = None
        for row in [row for row in rows if row["batch"] == batch][::-1]:
            if row["recursive / parallel"] < CLEARLY:
                break
            n = row["n"]
        found[batch] = n
    return found


def verdict(function: str, found: dict, depths: list[dict]) -> str:
    where = "; ".join(
        f"batch {b}: " + ("none" if n is None else f"from n = {n} on")
        for b, n in found.items()
    )
    last = depths[-1]
    width = last["width needed"]
    needs = f"one that does {width} operations at a time" if width else "no machine"
    return (
        f"{function} dynamics, where the scans win on this machine: {where}. By "
        f"depth and operations, they win at n = {last['n']} on {needs} for each robot."
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-n", type=int, default=LENGTHS[-1])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console, dtype = Console(), jnp.dtype(args.dtype)
    console.print(f"{about()}, {jax.default_backend()}, {args.dtype}")
    lengths = [n for n in LENGTHS if n <= args.max_n]
    report = {"dtype": args.dtype}
    for function in METHODS:
        depths = [structure(function, n, dtype) for n in lengths]
        show(console, f"{function} dynamics, depth and operations", depths)
        rows = [measure(function, n, b, dtype) for b in args.batches for n in lengths]
        show(console, f"{function} dynamics, time per robot", rows)
        found = crossovers(rows)
        console.print(verdict(function, found, depths))
        report[function] = {"structure": depths, "times": rows, "crossover": found}
    write(args.json, report)


if __name__ == "__main__":
    main()
