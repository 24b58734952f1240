"""One batch of robots over many hosts: each makes its own share, all make one call.

The robots differ in their masses and starts, and brake with torques -k θ̇. A process
draws only its share: robot number i follows from (seed, i), whoever draws it. Put
together they are global arrays, of which each process holds its part, and `jd.batched`
of a rollout takes them as any others. What is asked of all robots, mean and spread of
where they end and the slope of their mean energy along k, is summed up over the hosts.

    python examples/06_many_hosts.py --processes 2

starts two processes here, and compares them with a single one. On a cluster, say the
same on each of N hosts, with a K of its own from 0 to N - 1:

    python examples/06_many_hosts.py --coordinator HOST:PORT --processes N \\
        --process-id K
"""

import argparse
import faulthandler
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402

SEED, ROBOTS, STEPS, DT = 7, 48, 20, 0.01
TILE = 4  # robots at a time, the same however many devices there are
K = 0.3  # of the brakes [N·m·s]
DEVICES = 2  # of each process that is started here
PATIENCE = 300  # seconds, after which a process gives up, and so does who started it


def robot(i):
    """Robot number i and its start."""
    of_mass, of_start = jr.split(jr.fold_in(jr.key(SEED), i))
    arm = jd.robots.rod_chain(2)
    factor = jr.uniform(of_mass, (arm.n_links,), minval=0.5, maxval=1.5)
    arm = eqx.tree_at(
        lambda m: (m.mass, m.inertia),
        arm,
        (arm.mass * factor, arm.inertia * factor[:, None, None]),
    )
    return arm, *jr.uniform(of_start, (2, arm.nv), minval=-1.0, maxval=1.0)


def everyone(mesh):
    """All robots, dealt out over the mesh; this process draws those of its devices."""
    if ROBOTS % mesh.size:
        raise ValueError(f"{ROBOTS} robots do not divide over {mesh.size} devices")
    shares = np.split(np.arange(ROBOTS), jax.process_count())
    mine = jax.jit(jax.vmap(robot))(shares[jax.process_index()])
    dealt = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
    put_together = partial(jax.make_array_from_process_local_data, dealt)
    return jax.tree.map(lambda x: put_together(np.asarray(x)), mine)


def brake(k, arm, q, qd):
    return jd.rollout(arm, q, qd, lambda t, q, qd: -k * qd, DT, steps=STEPS)


@jax.jit
def statistics(q):
    end = q[:, -1]
    return {"mean": jnp.mean(end, axis=0), "spread": jnp.std(end, axis=0)}


def run(folder=None):
    """What every process does."""
    mesh = Mesh(np.array(jax.devices()), ("hosts",))
    robots = everyone(mesh)
    rollouts = jd.batched(brake, in_axes=(None, 0, 0, 0), tile=TILE, devices=mesh)

    @jax.jit
    @jax.grad
    def slope(k, robots):
        motions = rollouts(k, *robots)
        last = motions.q[:, -1], motions.qd[:, -1]
        return jnp.mean(jax.vmap(jd.kinetic_energy)(robots[0], *last))

    motions = rollouts(K, *robots)
    found = statistics(motions.q) | {"slope": slope(K, robots)}
    found = {name: np.asarray(x) for name, x in found.items()}
    if jax.process_index() == 0:
        report(found, mesh)
    found["q"] = held(motions.q)
    if folder is not None:
        np.savez(Path(folder) / f"{jax.process_index()}.npz", **found)
    return found


def held(x):
    """The part of a global array that this process holds."""
    parts = sorted(x.addressable_shards, key=lambda part: part.index[0].start or 0)
    return np.concatenate([part.data for part in parts])


def report(found, mesh):
    print(f"{ROBOTS} robots, {jax.process_count()} process(es), {mesh.size} device(s):")
    ends = zip(found["mean"], found["spread"], strict=True)
    for j, (mean, spread) in enumerate(ends):
        print(f"  joint {j + 1} ends at {mean:8.5f} ± {spread:.5f} rad")
    slope = found["slope"]
    print(f"  kinetic energy changes by {slope:.5f} J per N·m·s of k", flush=True)


def join(options):
    """Be one process of many."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    if options.devices:
        jax.config.update("jax_num_cpu_devices", options.devices)
    try:
        jax.distributed.initialize(
            options.coordinator, options.processes, options.process_id
        )
        found = run(options.folder)
    except Exception:
        traceback.print_exc()
        os._exit(1)  # at once: JAX would first wait for the others, who wait for us
    jax.distributed.shutdown()
    faulthandler.cancel_dump_traceback_later()
    return found


def launch(processes, folder):
    """Start them all here, and put together what they found."""
    line = [sys.executable, __file__, "--coordinator", f"127.0.0.1:{free_port()}"]
    line += ["--processes", str(processes), "--devices", str(DEVICES)]
    line += ["--folder", str(folder), "--process-id"]
    children = [subprocess.Popen([*line, str(k)]) for k in range(processes)]
    try:
        wait_for(children)
    finally:
        for child in children:
            child.kill()
            child.wait()
    shares = [np.load(Path(folder) / f"{k}.npz") for k in range(processes)]
    return dict(shares[0]) | {"q": np.concatenate([share["q"] for share in shares])}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for(children):
    """If one fails, the others would wait for it: that ends it for all."""
    latest = time.monotonic() + PATIENCE
    codes = [None]
    while None in codes and not any(codes):
        if time.monotonic() > latest:
            raise TimeoutError(f"the processes took more than {PATIENCE} s")
        time.sleep(0.05)
        codes = [child.poll() for child in children]
    if any(codes):
        raise RuntimeError(f"a process failed; their exit codes are {codes}")


def compare(processes):
    """Several processes, and this one alone."""
    with tempfile.TemporaryDirectory() as folder:
        many = launch(processes, folder)
    one = run()
    q, summed = many["q"], ("mean", "spread", "slope")
    same = np.array_equal(q, one["q"])
    apart = max(np.max(np.abs(many[x] / one[x] - 1)) for x in summed)
    print(f"Every robot the same to the last bit: {'yes' if same else 'no'};")
    print(f"  what is summed up differs by {apart:.1e} at most, relatively")
    return {"same": same, "apart": apart, "one": one, "many": many}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--process-id", type=int)
    parser.add_argument("--coordinator", metavar="HOST:PORT")
    parser.add_argument("--devices", type=int, help="virtual ones of this process")
    parser.add_argument("--folder", help="for what this process finds")
    options = parser.parse_args(arguments)
    return join(options) if options.coordinator else compare(options.processes)


if __name__ == "__main__":
    main()
