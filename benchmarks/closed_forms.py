"""What are the closed forms worth, beside autodiff and beside forward dynamics?

∂ℳ/∂q in closed form against `jax.jacfwd(mass_matrix)`; the factor's rate ṁ against a
`jax.jvp` of m; the diagonalised acceleration ν̇ and its Coriolis term against
`forward_dynamics`. Batches under `jax.jit(jax.vmap(f))` and XLA's default flags,
float64, calls turn about, medians, compilation apart.

    python benchmarks/closed_forms.py [--batch 1024] [--repeats 100] [--json PATH]

The machine is likely to be busy with other things, so read ratios, and run it twice.
"""

import argparse
import json
import os
import platform
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402


def sensitivity_by_autodiff(model, q, qd, x):
    return jnp.moveaxis(jax.jacfwd(jd.mass_matrix, 1)(model, q), -1, 0)


def factor_rate_by_autodiff(model, q, qd, x):
    return jax.jvp(lambda q: jd.factorize(model, q).m, (q,), (qd,))[1]


# name, closed form, what it is compared with, and whether their results are equal
PAIRS = (
    (
        "mass_matrix_sensitivity",
        lambda m, q, qd, x: jd.mass_matrix_sensitivity(m, q),
        "jacfwd(mass_matrix)",
        sensitivity_by_autodiff,
        True,
    ),
    (
        "mass_factor_rate",
        lambda m, q, qd, x: jd.mass_factor_rate(m, q, qd),
        "jvp of m",
        factor_rate_by_autodiff,
        True,
    ),
    (
        "diagonal_acceleration",
        jd.diagonal_acceleration,
        "forward_dynamics",
        jd.forward_dynamics,
        False,
    ),
    (
        "diagonal_coriolis",
        lambda m, q, qd, x: jd.diagonal_coriolis(m, q, qd),
        "forward_dynamics",
        jd.forward_dynamics,
        False,
    ),
)


def compiled(f, *args):
    start = perf_counter()
    program = jax.jit(jax.vmap(f, (None, 0, 0, 0))).lower(*args).compile()
    return program, perf_counter() - start


def median_times(calls, repeats):
    times = [[] for _ in calls]
    for _ in range(repeats):
        for call, seconds in zip(calls, times, strict=True):
            start = perf_counter()
            jax.block_until_ready(call())
            seconds.append(perf_counter() - start)
    return [float(np.median(t)) for t in times]


def compare(batch, repeats):
    model = jd.robots.random_chain(jax.random.key(7), 7, kinds=("revolute",))
    state = jnp.asarray(np.random.default_rng(0).normal(size=(3, batch, model.nv)))
    args = model, *state
    for name, closed, other_name, other, equal in PAIRS:
        mine, compile_mine = compiled(closed, *args)
        theirs, compile_theirs = compiled(other, *args)
        a, b = np.asarray(mine(*args)), np.asarray(theirs(*args))
        calls = [lambda p=mine: p(*args), lambda p=theirs: p(*args)]
        ours, others = median_times(calls, repeats)
        yield {
            "closed form": name,
            "ns": ours / batch * 1e9,
            "beside": other_name,
            "its ns": others / batch * 1e9,
            "times as fast": others / ours,
            "times the cost": ours / others,
            "difference": float(np.abs(a - b).max() / np.abs(b).max()) if equal else "",
            "compile s": compile_mine,
            "its compile s": compile_theirs,
        }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console = Console()
    versions = f"jax {jax.__version__}, {os.cpu_count()} cores, {platform.machine()}"
    console.print(f"{versions}, float64, 7 revolute links, batch {args.batch}")
    rows = list(compare(args.batch, args.repeats))
    table = Table()
    for key in rows[0]:
        table.add_column(
            key, justify="left" if key in ("closed form", "beside") else "right"
        )
    for row in rows:
        table.add_row(*(v if isinstance(v, str) else f"{v:.3g}" for v in row.values()))
    console.print(table)
    if args.json:
        args.json.write_text(json.dumps({"versions": versions, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
