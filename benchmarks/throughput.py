"""How many evaluations a second in a batch, beside Pinocchio's on the same cores?

`jax.jit(jax.vmap(f))` under XLA's default flags against `pin.rneaInParallel` and
`pin.abaInParallel` with two threads, in one run, turn about, float64. Then what does
not depend on the peer: compile time and run time per link as a chain grows.

    python benchmarks/throughput.py [--batch 4096] [--repeats 100] [--json PATH]

Needs the extra `test` (Pinocchio). Medians; compilation is timed apart. The machine is
likely to be busy with other things, so read ratios, and run it twice.
"""

import argparse
import json
import os
import platform
from pathlib import Path
from time import perf_counter, sleep

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402

THREADS = 2
LENGTHS = (7, 20, 200)


def arm(n=7):
    """An arm of n revolute joints with the geometry of a random chain."""
    return jd.robots.random_chain(jax.random.key(7), n, kinds=("revolute",))


def in_pinocchio(model):
    """The same arm in Pinocchio, joint by joint."""
    other = pin.Model()
    for i in range(model.n_links):
        place = pin.SE3(
            np.array(model.placement.rotation[i]),
            np.array(model.placement.translation[i]),
        )
        joint = pin.JointModelRevoluteUnaligned(np.array(model.axis[i]))
        j = other.addJoint(i, joint, place, model.joint_names[i])
        body = float(model.mass[i]), np.array(model.com[i]), np.array(model.inertia[i])
        other.appendBodyToJoint(j, pin.Inertia(*body), pin.SE3.Identity())
    return other


def median_times(calls, repeats, block=10):
    """The median time of each call.

    They take turns, so that all see the same noise, but in blocks with a pause before
    each, in case the threads of one library still wait on the cores of the other.
    """
    times = {name: [] for name in calls}
    for _ in range(max(1, repeats // block)):
        for name, call in calls.items():
            sleep(0.5)
            call()
            for _ in range(block):
                start = perf_counter()
                call()
                times[name].append(perf_counter() - start)
    return {name: float(np.median(t)) for name, t in times.items()}


def compiled(f, *args):
    """A compiled call, and the seconds that compiling it took."""
    lowered = jax.jit(f).lower(*args)
    start = perf_counter()
    program = lowered.compile()
    return program, perf_counter() - start


def against_pinocchio(batch, repeats):
    model = arm()
    other = in_pinocchio(model)
    pool = pin.ModelPool(other, THREADS)
    rng = np.random.default_rng(0)
    q, qd, x = rng.normal(size=(3, batch, model.nv))
    theirs = [np.asfortranarray(a.T) for a in (q, qd, x)]
    out = np.zeros((model.nv, batch), order="F")
    ours = [model, *(jnp.asarray(a) for a in (q, qd, x))]
    peers = {
        "inverse dynamics": (jd.inverse_dynamics, pin.rneaInParallel, "rneaInParallel"),
        "forward dynamics": (jd.forward_dynamics, pin.abaInParallel, "abaInParallel"),
    }
    rows = []
    for name, (mine, peer, peer_name) in peers.items():
        program, seconds = compiled(jax.vmap(mine, (None, 0, 0, 0)), *ours)
        found = jax.block_until_ready(program(*ours))
        peer(THREADS, pool, *theirs, out)
        difference = float(np.abs(np.array(found).T - out).max() / np.abs(out).max())
        times = median_times(
            {
                "ours": lambda p=program: jax.block_until_ready(p(*ours)),
                "theirs": lambda f=peer: f(THREADS, pool, *theirs, out),
            },
            repeats,
        )
        rows.append(
            {
                "function": name,
                "ours per second": batch / times["ours"],
                "peer": peer_name,
                "peer per second": batch / times["theirs"],
                "ratio": times["theirs"] / times["ours"],
                "difference": difference,
                "compile seconds": seconds,
            }
        )
    return rows


def along_n(repeats, batch=256):
    """Compile time and run time per link of forward dynamics, n = 7, 20, 200."""
    rows, calls = [], {}
    for n in LENGTHS:
        model = arm(n)
        q, qd, tau = jnp.asarray(np.random.default_rng(n).normal(size=(3, batch, n)))
        f = jax.vmap(jd.forward_dynamics, (None, 0, 0, 0))
        seconds = []
        for _ in range(3):  # nothing is cached between these
            jax.clear_caches()
            program, s = compiled(f, model, q, qd, tau)
            seconds.append(s)
        args = model, q, qd, tau
        calls[n] = lambda p=program, a=args: jax.block_until_ready(p(*a))
        calls[n]()
        rows.append({"n": n, "compile seconds": float(np.median(seconds))})
    times = median_times(calls, repeats)
    for row in rows:
        n = row["n"]
        row["ns per link"] = times[n] / batch / n * 1e9
    return rows


def show(console, title, rows):
    table = Table(title=title)
    for key in rows[0]:
        table.add_column(
            key, justify="left" if key in ("function", "peer") else "right"
        )
    for row in rows:
        table.add_row(
            *(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values())
        )
    console.print(table)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console = Console()
    versions = f"jax {jax.__version__}, pinocchio {pin.__version__}"
    console.print(f"{versions}, {os.cpu_count()} cores, {platform.machine()}, float64")
    peers = against_pinocchio(args.batch, args.repeats)
    show(console, f"7 revolute links, batch {args.batch}, {THREADS} threads", peers)
    lengths = along_n(args.repeats)
    show(console, "Forward dynamics of a chain, batch 256", lengths)
    first, middle, last = lengths
    growth = last["compile seconds"] / first["compile seconds"]
    per_link = last["ns per link"] / middle["ns per link"]
    console.print(f"compile time, n = 200 over n = 7: {growth:.2f}×")
    console.print(f"time per link, n = 200 over n = 20: {per_link:.2f}×")
    if args.json:
        report = {"versions": versions, "peers": peers, "lengths": lengths}
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
