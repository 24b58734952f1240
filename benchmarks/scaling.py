"""Does the cost grow in proportion to the links, and to the batch?

Time of `jd.batched` on all cores, of random revolute chains of 20 to 200 links and of
batches of 1024 to 65536 seven-link arms; the power laws fitted through all points. An
exponent of 1 is what O(n) promises.

    python benchmarks/scaling.py [--turns 3] [--dtype float64] [--json PATH]

Medians in turns, compilation apart, and shown: it should not grow with the links.
"""

import argparse
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


def cases(function, sizes, dtype):
    """A call for every (links, batch), and the seconds that compiling took."""
    calls, seconds = {}, {}
    for n, batch in sizes:
        model = common.in_type(common.arm(n), dtype)
        state = common.states(common.arm(n), batch, dtype)
        f = jd.batched(FUNCTIONS[function], in_axes=(None, 0, 0, 0))
        _, seconds[n, batch], _ = common.compiled(f, model, *state)
        calls[n, batch] = ready(f, model, *common.dealt(state))
    return calls, seconds


def along(function, sizes, which, dtype, turns):
    """Rows of a table, and the exponent of size number `which`."""
    calls, seconds = cases(function, sizes, dtype)
    times = median_times(calls, turns)
    rows = [
        {
            "function": function,
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
    for function in FUNCTIONS:
        for name, which, sizes in (
            ("links", 0, [(n, 1024) for n in LINKS]),
            ("batch", 1, [(7, b) for b in BATCHES]),
        ):
            more, fit = along(function, sizes, which, args.dtype, args.turns)
            rows += more
            fits.append({"function": function, "grows with": name, "exponent": fit})
    common.show(console, "time of a batch", rows)
    common.show(console, "fitted power laws, time ~ sizeᵏ", fits)
    common.write(args.json, {"times": rows, "exponents": fits})


if __name__ == "__main__":
    main()
