"""Does the cost grow in proportion to the links, and to the batch?

Random revolute chains of 20 to 200 links, and batches of 1024 to 65536 seven-link arms,
by `jax.vmap` on one device and by `jd.batched` on one for each core; the power laws
fitted through all points. An exponent of 1 is what O(n) promises; to call a program on
several devices takes a few tenths of a millisecond whatever the batch, which makes that
of `batched` smaller.

    python benchmarks/scaling.py [--turns 3] [--dtype float64] [--json PATH]

Medians in turns, compilation apart, and shown: it should not grow with the links.
"""

import argparse
from itertools import product
from pathlib import Path

import common
import jax
from common import CORES, median_times, ready
from rich.console import Console

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", CORES)

import jaxdenoc as jd  # noqa: E402

FUNCTIONS = {
    "inverse dynamics": jd.inverse_dynamics,
    "forward dynamics": jd.forward_dynamics,
}
LINKS = (20, 40, 60, 100, 140, 200)
BATCHES = (1024, 4096, 16384, 65536)
LAWS = (
    ("links", 0, [(n, 1024) for n in LINKS]),
    ("batch", 1, [(7, b) for b in BATCHES]),
)


WAYS = {
    "vmap": lambda f: jax.jit(jax.vmap(f, (None, 0, 0, 0))),
    "batched": lambda f: jd.batched(f, in_axes=(None, 0, 0, 0)),
}


def cases(way, function, sizes, dtype):
    """A call for every (links, batch), and the seconds that compiling took."""
    calls, seconds = {}, {}
    for n, batch in sizes:
        model = common.in_type(common.arm(n), dtype)
        state = common.states(common.arm(n), batch, dtype)
        f = WAYS[way](FUNCTIONS[function])
        _, seconds[n, batch], _ = common.compiled(f, model, *state)
        state = common.dealt(state) if way == "batched" else state
        calls[n, batch] = ready(f, model, *state)
    return calls, seconds


def along(way, function, sizes, which, dtype, turns):
    """Rows of a table, and the exponent of size number `which`."""
    calls, seconds = cases(way, function, sizes, dtype)
    times = median_times(calls, turns)
    rows = [
        {
            "function": function,
            "way": way,
            "links": n,
            "batch": batch,
            "ms": 1e3 * times[n, batch],
            "ns per link": 1e9 * times[n, batch] / n / batch,
            "compile s": seconds[n, batch],
        }
        for n, batch in sizes
    ]
    fit = common.exponent([s[which] for s in sizes], [times[s] for s in sizes])
    return rows, fit


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console = Console()
    console.print(f"{common.about()}, {jax.device_count()} devices, {args.dtype}")
    rows, fits = [], []
    for way, function, (name, which, sizes) in product(WAYS, FUNCTIONS, LAWS):
        more, fit = along(way, function, sizes, which, args.dtype, args.turns)
        rows += more
        law = {"function": function, "way": way, "grows with": name}
        fits.append(law | {"exponent": fit})
    common.show(console, "time of a batch", rows)
    common.show(console, "fitted power laws, time ~ sizeᵏ", fits)
    common.write(args.json, {"times": rows, "exponents": fits})


if __name__ == "__main__":
    main()
