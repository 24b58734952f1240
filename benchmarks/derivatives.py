"""What do derivatives of the dynamics cost, beside the dynamics and beside Pinocchio?

Reverse and forward mode of forward dynamics by the closed rules, full Jacobians in
closed form, regressor and second derivatives, as `jax.jit(jax.vmap(f))` under XLA's
default flags. Each beside one forward dynamics; the Jacobian also beside plain `jacfwd`
through the recursion and a loop over Pinocchio's `computeABADerivatives`, run from
Python in one process per core. Then what reverse mode keeps in memory, and how long the
Jacobian takes to compile, as the robot grows.

    python benchmarks/derivatives.py [--batch 4096] [--repeats 60] [--json PATH]

Needs the extra `test` (Pinocchio). Float64, medians, calls turn about, compilation
apart. The machine is likely to be busy with other things: read ratios, run it twice.
"""

import argparse
import json
import os
import platform
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
from common import arm, show  # beside this script
from rich.console import Console

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402

CORES = os.cpu_count() or 1


def in_pinocchio(model):
    return pin.buildModelFromXML(jd.to_urdf(model))


def states(n, batch):
    return tuple(jnp.asarray(np.random.default_rng(n).normal(size=(4, batch, n))))


def vjp(model, q, qd, tau, x):
    return jax.vjp(lambda *s: jd.forward_dynamics(model, *s), q, qd, tau)[1](x)


def vjp_with_inertias(model, q, qd, tau, x):
    def where(m):
        return m.mass, m.com, m.inertia

    def f(numbers, *state):
        return jd.forward_dynamics(eqx.tree_at(where, model, numbers), *state)

    return jax.vjp(f, where(model), q, qd, tau)[1](x)


def jvp(model, q, qd, tau, x):
    def f(*state):
        return jd.forward_dynamics(model, *state)

    return jax.jvp(f, (q, qd, tau), (x, x, x))[1]


def autodiff(model, q, qd, tau, x):
    return jax.jacfwd(lambda *s: jd.forward_dynamics(model, *s), (0, 1, 2))(q, qd, tau)


ROWS = {  # name: the function of (model, q, qd, tau, x), and the rules it goes by
    "forward dynamics": (lambda m, q, qd, t, x: jd.forward_dynamics(m, q, qd, t), ""),
    "FD, reverse mode (q, qd, tau)": (vjp, "closed"),
    "FD, reverse mode, plain": (vjp, "plain"),
    "FD, reverse mode, inertias too": (vjp_with_inertias, "closed"),
    "FD, forward mode": (jvp, "closed"),
    "FD, full Jacobian": (
        lambda m, q, qd, t, x: jd.forward_dynamics_derivatives(m, q, qd, t),
        "",
    ),
    "FD, full Jacobian by jacfwd, closed rule": (autodiff, "closed"),
    "FD, full Jacobian by jacfwd, plain": (autodiff, "plain"),
    "inverse dynamics": (lambda m, q, qd, t, x: jd.inverse_dynamics(m, q, qd, t), ""),
    "ID, full Jacobian": (
        lambda m, q, qd, t, x: jd.inverse_dynamics_derivatives(m, q, qd, t),
        "",
    ),
    "ID, Hessian of λᵀτ times a vector": (
        lambda m, q, qd, t, x: jd.inverse_dynamics_hessian_product(
            m, q, qd, t, x, x, x, x
        ),
        "",
    ),
    "ID, Hessian of λᵀτ": (jd.inverse_dynamics_hessian, ""),
    "regressor": (lambda m, q, qd, t, x: jd.regressor(m, q, qd, t), ""),
}


def compiled(f, rules, *args):
    """A compiled batch, and the seconds that compiling it took."""
    with jd.autodiff_rules(rules or "closed"):
        lowered = jax.jit(jax.vmap(f, (None, 0, 0, 0, 0))).lower(*args)
    start = perf_counter()
    program = lowered.compile()
    return program, perf_counter() - start


def _loop(other, q, v, tau):
    """Seconds for one `computeABADerivatives` of each state, in this process."""
    data = other.createData()
    start = perf_counter()
    for k in range(len(q)):
        pin.computeABADerivatives(other, data, q[k], v[k], tau[k])
    return perf_counter() - start


class PinocchioLoop:
    """`computeABADerivatives` in a process per core, all busy at the same time."""

    def __init__(self, model, args):
        self.pool = get_context("spawn").Pool(CORES)
        parts = [np.array_split(np.array(x), CORES) for x in args]
        self.work = [(in_pinocchio(model), *part) for part in zip(*parts, strict=True)]

    def __call__(self):
        """Seconds for the whole batch."""
        return max(self.pool.starmap(_loop, self.work, chunksize=1))


def agreement(model, args, found):
    """The largest difference to Pinocchio's Jacobian of the first state, relative."""
    other = in_pinocchio(model)
    data = other.createData()
    pin.computeABADerivatives(other, data, *(np.array(x[0]) for x in args))
    inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    pairs = zip(found, (data.ddq_dq, data.ddq_dv, inverse), strict=True)
    return max(float(np.abs(a[0] - b).max() / np.abs(b).max()) for a, b in pairs)


def costs(batch, repeats):
    model = arm()
    args = model, *states(model.nv, batch)
    programs, compile_seconds = {}, {}
    for name, (f, rules) in ROWS.items():
        programs[name], compile_seconds[name] = compiled(f, rules, *args)
        found = jax.block_until_ready(programs[name](*args))
        if name == "FD, full Jacobian":
            difference = agreement(model, args[1:4], found)
    peer = PinocchioLoop(model, args[1:4])
    peer()
    times = {name: [] for name in (*programs, "peer")}
    for _ in range(repeats):
        for name, program in programs.items():
            start = perf_counter()
            jax.block_until_ready(program(*args))
            times[name].append(perf_counter() - start)
        times["peer"].append(peer())
    peer.pool.terminate()
    median = {name: float(np.median(t)) for name, t in times.items()}
    one = median["forward dynamics"]
    rows = [
        {
            "function": name,
            "ns": median[name] / batch * 1e9,
            "of one FD": median[name] / one,
            "compile s": compile_seconds[name],
        }
        for name in programs
    ]
    name = f"Pinocchio computeABADerivatives, {CORES} processes"
    rows.append({"function": name, "ns": median["peer"] / batch * 1e9})
    jacobian = median["FD, full Jacobian"]
    ratios = {
        "reverse mode of FD over FD": median["FD, reverse mode (q, qd, tau)"] / one,
        "Jacobians a second, over Pinocchio's": median["peer"] / jacobian,
        "full Jacobian, times as fast as plain jacfwd": (
            median["FD, full Jacobian by jacfwd, plain"] / jacobian
        ),
        "largest difference to Pinocchio": difference,
    }
    return rows, ratios


def memory(lengths=(14, 28, 56), batches=(1024, 2048, 4096)):
    """Temporary bytes of reverse mode, as XLA states them for the compiled program."""
    most = batches[-1]
    cases = [(7, b, "closed") for b in batches] + [(n, most, "closed") for n in lengths]
    rows = []
    for n, batch, rules in [*cases, (7, most, "plain")]:
        program, _ = compiled(vjp, rules, arm(n), *states(n, batch))
        kept = program.memory_analysis().temp_size_in_bytes
        row = {"rules": rules, "n": n, "batch": batch, "MB": kept / 1e6}
        rows.append(row | {"bytes per robot and link": kept / batch / n})
    return rows


def compile_times(lengths=(7, 100)):
    """Median seconds to compile the full Jacobian of forward dynamics."""
    rows = []
    f, rules = ROWS["FD, full Jacobian"]
    for n in lengths:
        seconds = []
        for _ in range(3):
            jax.clear_caches()
            seconds.append(compiled(f, rules, arm(n), *states(n, 256))[1])
        rows.append({"n": n, "compile s": float(np.median(seconds))})
    return rows


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console = Console(width=110)
    versions = f"jax {jax.__version__}, pinocchio {pin.__version__}"
    console.print(f"{versions}, {CORES} cores, {platform.machine()}, float64")
    rows, ratios = costs(args.batch, args.repeats)
    show(console, f"7 revolute links, batch {args.batch}", rows)
    for name, value in ratios.items():
        console.print(f"{name}: {value:.3g}")
    kept = memory()
    show(console, "What reverse mode of forward dynamics keeps", kept)
    seconds = compile_times()
    show(console, "Compiling the full Jacobian of forward dynamics", seconds)
    growth = seconds[-1]["compile s"] / seconds[0]["compile s"]
    console.print(f"compile time, n = 100 over n = 7: {growth:.2f}×")
    if args.json:
        report = {"versions": versions, "costs": rows, "ratios": ratios}
        report |= {"memory": kept, "compile": seconds}
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
