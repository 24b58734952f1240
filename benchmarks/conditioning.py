"""What do condition numbers cost, and what does watching them cost a motion?

κ of straight and of random configurations of chains of equal rods, by all eigenvalues
of ℳ and by a few Lanczos steps that never form ℳ: how far apart, and how long a batch
takes under `jax.jit(jax.vmap(f))`. Then rollouts of an arm with and without
`monitor=True`, by `jd.batched`.

    python benchmarks/conditioning.py [--links 8 16 32 64 256 512] [--batch 64]
        [--arms 1024] [--steps 1000] [--turns 7] [--json PATH]

Float64, XLA's default flags, medians of calls turn about, compilation apart.
"""

import argparse
from functools import partial
from pathlib import Path

import jax
import numpy as np
from common import CORES, about, arm, compiled, median_times, ready, show, states, write
from rich.console import Console

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", CORES)

import jaxdenoc as jd  # noqa: E402

TIMED_UP_TO = 256  # links; beyond, eigenvalues of a batch take minutes


def kappas(n, batch, turns):
    """Both of them at random configurations, and their times."""
    model = jd.robots.rod_chain(n)
    q = jax.random.uniform(jax.random.key(n), (batch, n), float, -np.pi, np.pi)
    q = q.at[0].set(0.0)
    ways = {}
    for method in "eigenvalues", "lanczos":
        if method == "eigenvalues" and n > TIMED_UP_TO:
            continue
        f = partial(jd.condition_number, model, method=method)
        ways[method], _, _ = compiled(jax.vmap(f), q)
    times = median_times({k: ready(f, q) for k, f in ways.items()}, turns)
    row = {"links": n, "lanczos ms": 1e3 * times["lanczos"]}
    if "eigenvalues" in ways:
        ratio = np.asarray(ways["lanczos"](q) / ways["eigenvalues"](q))
        row |= {
            "eigenvalues ms": 1e3 * times["eigenvalues"],
            "times faster": times["eigenvalues"] / times["lanczos"],
            "straight": float(ratio[0]),
            "lowest": float(ratio[1:].min()),
            "highest": float(ratio[1:].max()),
        }
    return row


def monitored(arms, steps, turns, integrator):
    model = arm()
    q, qd, tau = states(model, arms)

    def motion(q, qd, tau, monitor):
        how = {"steps": steps, "integrator": integrator, "monitor": monitor}
        return jd.rollout(model, q, qd, lambda t, *_: tau, 1e-3, **how)

    calls = {}
    for monitor in False, True:
        many = jax.jit(jd.batched(partial(motion, monitor=monitor)))
        calls[monitor] = ready(many, q, qd, tau)
    times = median_times(calls, turns)
    return {
        "integrator": integrator,
        "steps per second": arms * steps / times[False],
        "monitored": arms * steps / times[True],
        "time ratio": times[True] / times[False],
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--links", type=int, nargs="+", default=[8, 16, 32, 64, 256, 512])
    add("--batch", type=int, default=64)
    add("--arms", type=int, default=1024)
    add("--steps", type=int, default=1000)
    add("--turns", type=int, default=7)
    add("--json", type=Path)
    args = parser.parse_args(argv)
    console, report = Console(), {}
    console.print(about())

    title = f"κ of {args.batch} configurations; Lanczos over eigenvalues"
    report[title] = [kappas(n, args.batch, args.turns) for n in args.links]
    show(console, title, report[title])

    title = f"{args.arms} rollouts of {args.steps} steps, watched at every 20th"
    report[title] = [
        monitored(args.arms, args.steps, args.turns, name)
        for name in ("semi_implicit", "rk4")
    ]
    show(console, title, report[title])
    write(args.json, report)


if __name__ == "__main__":
    main()
