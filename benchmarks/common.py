"""What the benchmarks share: robots, states, compiling, timing, tables."""

import importlib.util
import json
import os
import platform
import warnings
from pathlib import Path
from time import perf_counter, sleep

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxdenoc as jd

CORES = os.cpu_count() or 1
FILES = {  # of the example-robot-data wheel, and whether the base is free
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
}


def arm(n=7):
    """An arm of n revolute joints with the geometry of a random chain."""
    return jd.robots.random_chain(jax.random.key(7), n, kinds=("revolute",))


def robot(name):
    """ "arm", "chain20" and the like, or one of `FILES`.

    Without damping and friction, which not every peer has, and a gripper held still.
    """
    if name == "arm" or name.startswith("chain"):
        return arm(int(name.removeprefix("chain")) if name != "arm" else 7)
    file, floating = FILES[name]
    module = Path(importlib.util.find_spec("pinocchio").origin)
    prefix = next(p for p in module.parents if p.name == "cmeel.prefix")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jd.ModelWarning)
        model = jd.load(
            prefix / "share" / "example-robot-data" / "robots" / file,
            floating_base=floating,
            mimic="free",
        )
    fingers = [j for j in model.joint_names if "finger" in j]
    model = jd.lock(model, dict.fromkeys(fingers, 0.0)) if fingers else model
    still = jnp.zeros_like(model.damping)
    return eqx.tree_at(lambda m: (m.damping, m.friction), model, (still, still))


def states(model, batch, dtype="float64"):
    """q, qd, and something for tau or qdd."""
    keys = jax.random.split(jax.random.key(0), batch)
    q, qd = jax.jit(jax.vmap(jd.random_state, (None, 0)))(model, keys)
    x = np.random.default_rng(0).normal(size=(batch, model.nv))
    return in_type((q, qd, jnp.asarray(x)), dtype)


def in_type(tree, dtype):
    return jt.map(lambda x: x.astype(dtype), tree)


def dealt(rows):
    """A batch on all devices, as `jd.batched` gives it and takes it."""
    mesh = jax.make_mesh((jax.device_count(),), ("batch",))
    there = jax.NamedSharding(mesh, jax.P("batch"))
    fits = len(jt.leaves(rows)[0]) % jax.device_count() == 0
    return jax.device_put(rows, there) if fits else rows


def compiled(f, *args):
    """A compiled call, the seconds that took, and its temporaries in MB."""
    lowered = jax.jit(f).lower(*args)
    start = perf_counter()
    program = lowered.compile()
    seconds = perf_counter() - start
    return program, seconds, program.memory_analysis().temp_size_in_bytes / 1e6


def ready(program, *args):
    """A call that waits for its result."""
    return lambda: jax.block_until_ready(program(*args))


def median_times(calls, turns=5, least=5, span=0.4, pause=0.3):
    """The median time of each call.

    They take turns, so that all see the same noise. A turn is `span` seconds of calls,
    `least` at least, after as many unmeasured ones as fit a tenth of a second: a core
    that was idle takes that long to be back. Before it is a pause, in case the threads
    of one library still wait on the cores of the other.
    """
    times = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            sleep(pause)
            _for(0.1, call)
            times[name] += _for(span, call, least)
    return {name: float(np.median(t)) for name, t in times.items()}


def _for(span, call, least=1):
    """The times of calls, one after the other, for so many seconds."""
    times, begin = [], perf_counter()
    while len(times) < least or perf_counter() - begin < span:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return times


def exponent(sizes, times):
    """k of the power law time ~ sizeᵏ through all points, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def about():
    cpu = f"{CORES} cores, {platform.machine()}"
    return f"jaxdenoc {jd.__version__}, jax {jax.__version__}, {cpu}"


def show(console: Console, title, rows):
    table = Table(title=title)
    for key in rows[0]:
        words = all(isinstance(row.get(key), str) for row in rows)
        table.add_column(key, justify="left" if words else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(key)) for key in rows[0]))
    console.print(table)


def _cell(value):
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write(path, report):
    if path:
        Path(path).write_text(json.dumps({"about": about()} | report, indent=1))
