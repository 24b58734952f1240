"""How many steps, and gradients of them, a second, beside MuJoCo, MJX, Brax, JaxSim?

An arm under constant joint torques, without contacts, limits and damping, in semi-
implicit steps of a millisecond: rollouts, and the gradient of the sum of squares of
the last q and θ̇ with respect to the first ones and the torques. Ours by `jd.batched`
on one device per core under XLA's default flags.

    python benchmarks/rollouts.py [--batches 256 4096] [--steps 1000]
        [--peers mujoco mjx brax jaxsim] [--peer-steps 100] [--gradient-steps 100]
        [--turns 3] [--limit 120] [--alone-batch 256] [--json PATH]

A peer runs in a process of its own (`peers.py`), between two turns of ours, under a
time limit: JAX peers as `lax.scan` under `vmap`, at the better of XLA's default flags
and those without fusion emitters, and for the gradient of every step kept and
`jax.checkpoint` of a step. They take `--peer-steps`, MuJoCo `--steps`, and ours as many
as the one beside it. `mujoco.rollout` gives all states, and so do ours beside it;
beside JAX peers it is the last state. MuJoCo's gradient is central differences.
"Difference" is the largest of the results over the largest number.

Alone, ours: what the steps of each integrator cost in forward dynamics, and, on one
device, what the gradient needs in time and memory with each `checkpoint`. Medians;
compilation apart.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import common
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from common import CORES, median_times, ready
from peers import JAX_PEERS, best_of_flags, measure
from rich.console import Console

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", CORES)

import jaxdenoc as jd  # noqa: E402

DT = 1e-3
INTEGRATORS = ("semi_implicit", "rk4", "cayley", "implicit_midpoint", "energy")
CHECKPOINTS = (None, "sqrt", 10)
MODES = {"rollout": (None,), "rollout gradient": ("checkpoint", "kept")}


class Constant(eqx.Module):
    """A policy that always asks for the same."""

    tau: jax.Array

    def __call__(self, t, q, qd):
        return self.tau


def rollout(model, q, qd, tau, *, steps, samples="ends", **options):
    options |= {"steps": steps, "samples": samples}
    motion = jd.rollout(model, q, qd, Constant(tau), DT, **options)
    return jnp.concatenate([motion.q, motion.qd], axis=-1)


def gradient(model, q, qd, tau, **options):
    def loss(*state):
        return jnp.sum(rollout(model, *state, **options)[-1] ** 2)

    return jnp.concatenate(jax.grad(loss, (0, 1, 2))(q, qd, tau))


OURS = {"rollout": rollout, "rollout gradient": gradient}


class Case:
    """A function of one robot's q, θ̇, τ on a batch: compiled, and ready to be timed."""

    def __init__(self, f, batch, devices=None):
        self.model, self.batch = common.arm(), batch
        self.states = tuple(0.1 * x for x in common.states(self.model, batch))
        batched = jd.batched(f, in_axes=(None, 0, 0, 0), devices=devices)
        args = self.model, *self.states
        _, self.compile_seconds, self.memory = common.compiled(batched, *args)
        rows = self.states if devices else common.dealt(self.states)
        self.call = ready(batched, self.model, *rows)

    def seconds(self, turns):
        return median_times({"": self.call}, turns, least=3)[""]


def beside(peer, quantity, batch, args):
    """A peer's steps a second between two turns of ours."""
    mujoco = peer not in JAX_PEERS
    forward = args.steps if mujoco else args.peer_steps
    steps = forward if quantity == "rollout" else args.gradient_steps
    options = {"samples": "all"} if mujoco and quantity == "rollout" else {}
    case = Case(partial(OURS[quantity], steps=steps, **options), batch)
    before = case.seconds(args.turns)
    found = asked(peer, quantity, case, steps, args)
    ours = float(np.median([before, case.seconds(args.turns)]))
    row = {"quantity": quantity, "batch": batch, "steps": steps, "peer": peer}
    row["ours, steps per second"] = batch * steps / ours
    if "error" in found:
        return row | {"peer, steps per second": found["error"]}
    return row | {
        "peer, steps per second": batch * steps / found["seconds"],
        "ratio": found["seconds"] / ours,
        "ours, rollouts per second": batch / ours,
        "peer, rollouts per second": batch / found["seconds"],
        "difference": found["difference"],
        "its compile s": found["compile seconds"],
        "its MB": found["memory MB"],
        "mode": found.get("mode", ""),
        "flags": found.get("flags", ""),
    }


def asked(peer, quantity, case, steps, args):
    """The fastest answer of a peer's modes and flags, or why there is none."""
    expected = np.asarray(case.call())
    expected = expected[:, -1] if quantity == "rollout" else expected
    q, qd, x = map(np.array, case.states)
    with tempfile.TemporaryDirectory() as folder:
        urdf, states = Path(folder) / "robot.urdf", Path(folder) / "states.npz"
        urdf.write_text(jd.to_urdf(case.model))
        np.savez(states, q=q, qd=qd, x=x, expected=expected)
        options = {"urdf": urdf, "states": states, "batch": case.batch}
        options |= {"repeats": 5, "steps": steps, "dt": DT, "seconds": args.limit}
        if peer not in JAX_PEERS:
            return measure(peer, quantity, **options)
        found = [
            best_of_flags(peer, quantity, mode=mode, **options)
            for mode in MODES[quantity]
        ]
    return min(found, key=lambda r: r.get("seconds", float("inf")))


def in_turns(cases, turns):
    return median_times({name: c.call for name, c in cases.items()}, turns, least=3)


def integrators(args):
    """Steps a second of each, and their cost in evaluations of forward dynamics."""
    batch = args.alone_batch
    counts = dict.fromkeys(INTEGRATORS, args.steps)
    cases = {
        name: Case(partial(rollout, steps=args.steps, integrator=name), batch)
        for name in INTEGRATORS
    }
    back = "semi_implicit, gradient"
    counts[back] = args.gradient_steps
    cases[back] = Case(partial(gradient, steps=args.gradient_steps), batch)
    times = in_turns(cases | {"unit": Case(jd.forward_dynamics, batch)}, args.turns)
    return [
        {
            "integrator": name,
            "steps": count,
            "steps per second": batch * count / times[name],
            "in forward dynamics": times[name] / count / times["unit"],
            "compile s": cases[name].compile_seconds,
        }
        for name, count in counts.items()
    ]


def checkpoints(args):
    """Time and memory of the gradient of a rollout of all `--steps`, on one device."""
    batch, steps = args.alone_batch, args.steps
    cases = {
        str(kept): Case(
            partial(gradient, steps=steps, checkpoint=kept), batch, jax.devices()[:1]
        )
        for kept in CHECKPOINTS
    }
    times, memory = in_turns(cases, args.turns), cases["None"].memory
    return [
        {
            "checkpoint": name,
            "gradient steps per second": batch * steps / times[name],
            "time ratio": times[name] / times["None"],
            "temporaries MB": case.memory,
            "memory ratio": case.memory / memory,
            "compile s": case.compile_seconds,
        }
        for name, case in cases.items()
    ]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", nargs="*", type=int, default=[256, 4096])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--peer-steps", type=int, default=100)
    parser.add_argument("--gradient-steps", type=int, default=100)
    parser.add_argument("--quantities", nargs="+", default=list(OURS), choices=OURS)
    parser.add_argument(
        "--peers",
        nargs="*",
        default=["mujoco", "mjx", "brax", "jaxsim"],
        choices=("mujoco", *JAX_PEERS),
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=120, help="seconds for a peer")
    parser.add_argument("--alone-batch", type=int, default=256, help="0 for none")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console = Console(width=None if Console().is_terminal else 220)
    console.print(f"{common.about()}, {jax.device_count()} devices, float64")
    report = {}

    def tell(title, rows):
        report[title] = rows
        common.show(console, title, rows)

    if args.alone_batch:
        tell(f"gradients of {args.steps} steps, one device", checkpoints(args))
        tell("integrators", integrators(args))
    others = [
        beside(peer, quantity, batch, args)
        for quantity in args.quantities
        for batch in args.batches
        for peer in args.peers
    ]
    if others:
        tell("beside others", others)
    common.write(args.json, report)


if __name__ == "__main__":
    main()
