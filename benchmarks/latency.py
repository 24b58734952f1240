"""How long does one robot take, in one jitted call, beside an empty call and others?

What a controller at a kilohertz pays: `jax.jit(f)(model, q, qd, x)` with a result that
has been waited for. An empty call takes the same arguments and gives one of them back;
what is beyond it is ours. The JAX peers of `peers.py` run with a batch of one.

    python benchmarks/latency.py [--robots arm solo12] [--dtype float64]
        [--peers mjx brax jaxsim frax adam] [--turns 10] [--json PATH]

Medians in turns; peers in their own processes, so read those as rough.
"""

import argparse
import tempfile
from pathlib import Path

import common
import jax
import numpy as np
from common import median_times, ready
from peers import JAX_PEERS, PEERS, best_of_flags, measure
from rich.console import Console

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402

FUNCTIONS = {
    "empty call": lambda model, q, qd, x: x,
    "inverse dynamics": jd.inverse_dynamics,
    "forward dynamics": jd.forward_dynamics,
    "mass matrix": lambda model, q, qd, x: jd.mass_matrix(model, q),
    "FD Jacobian": jd.forward_dynamics_derivatives,
    "FD, dense": lambda *a: jd.forward_dynamics(*a, method="dense"),
    "FD, parallel": lambda *a: jd.forward_dynamics(*a, method="parallel"),
}


def ours(name, dtype, turns):
    model = common.robot(name)
    state = tuple(x[0] for x in common.states(model, 1, dtype))
    args = common.in_type(model, dtype), *state
    calls, compile_seconds = {}, {}
    for title, f in FUNCTIONS.items():
        program = jax.jit(f)
        _, compile_seconds[title], _ = common.compiled(f, *args)
        calls[title] = ready(program, *args)
    times = median_times(calls, turns, span=0.1, pause=0.05)
    empty = times["empty call"]
    return [
        {
            "robot": name,
            "function": title,
            "µs": 1e6 * t,
            "beyond empty µs": 1e6 * (t - empty),
            "compile s": compile_seconds[title],
        }
        for title, t in times.items()
    ]


def theirs(name, dtype, peers, limit):
    """Forward dynamics of one robot; empty where a peer cannot."""
    model, rows = common.robot(name), []
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "robot.urdf"
        urdf.write_text(jd.to_urdf(model))
        q, qd, x = (np.array(a) for a in common.states(model, 1))
        np.savez(Path(folder) / "states.npz", q=q, qd=qd, x=x)
        for peer in peers:
            found = (best_of_flags if peer in JAX_PEERS else measure)(
                peer,
                "forward dynamics",
                urdf=urdf,
                batch=1,
                dtype=dtype,
                repeats=2000,
                states=Path(folder) / "states.npz",
                floating=model.floating_base,
                seconds=limit,
            )
            seconds = found.get("seconds")
            row = {"robot": name, "peer": peer}
            row["FD µs"] = 1e6 * seconds if seconds else found["error"]
            rows.append(row | {"flags": found.get("flags", "")})
    return rows


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="+", default=["arm"])
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--peers", nargs="*", default=[], choices=PEERS)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--limit", type=int, default=120, help="seconds for a peer")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console = Console()
    console.print(f"{common.about()}, {args.dtype}, one robot")
    rows = [row for name in args.robots for row in ours(name, args.dtype, args.turns)]
    common.show(console, "jaxdenoc", rows)
    others = [
        row
        for name in args.robots
        for row in theirs(name, args.dtype, args.peers, args.limit)
    ]
    if others:
        common.show(console, "others", others)
    common.write(args.json, {"ours": rows, "theirs": others})


if __name__ == "__main__":
    main()
