"""How many evaluations a second in a batch, beside other libraries on the same cores?

Inverse and forward dynamics, mass matrix, Jacobian and reverse mode of forward dynamics
and rollouts, by `jd.batched` on one device per core and by `jax.vmap` on one, under
XLA's default flags, beside Pinocchio, MuJoCo and whichever of MJX, Brax, JaxSim, frax
and adam are installed (the extra `bench`).

    python benchmarks/throughput.py                                   # a 7-link arm
    python benchmarks/throughput.py --robots panda ur5 solo12 talos chain50 chain200
        --batches 1 64 1024 16384 65536 --dtypes float64 float32
        --quantities "forward dynamics" --peers pinocchio [--turns 5] [--json PATH]

Medians; tracing and compilation are not in them. States lie where each library wants
them: for ours dealt out to the devices, for Pinocchio in Fortran's order.
`rneaInParallel` and `abaInParallel` take turns with ours in one process. The other
peers run in a process of their own (`peers.py`), between two turns of ours; JAX peers
at the better of XLA's default flags and those without fusion emitters. Memory is what
XLA plans for temporaries. The machine is likely to be busy with other things, so read
ratios, and run it twice.
"""

import argparse
import tempfile
from argparse import Namespace
from pathlib import Path

import common
import jax
import jax.numpy as jnp
import numpy as np
from common import CORES, in_type, median_times, ready
from peers import JAX_PEERS, PEERS, best_of_flags, measure, with_pinocchio
from peers.with_pinocchio import IN_THREADS
from rich.console import Console

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", CORES)

import jaxdenoc as jd  # noqa: E402

STEPS, DT = 1000, 1e-3


def vjp(model, q, qd, tau):
    back = jax.vjp(lambda *s: jd.forward_dynamics(model, *s), q, qd, tau)[1]
    return back(jnp.ones_like(qd))


def rollout(model, q, qd, tau):
    """The whole motion, as `mujoco.rollout` gives it, under a constant force."""
    motion = jd.rollout(model, q, qd, jnp.broadcast_to(tau, (STEPS, model.nv)), DT)
    return motion.q, motion.qd


OURS = {
    "inverse dynamics": jd.inverse_dynamics,
    "forward dynamics": jd.forward_dynamics,
    "mass matrix": lambda model, q, qd, x: jd.mass_matrix(model, q),
    "FD Jacobian": jd.forward_dynamics_derivatives,
    "FD VJP": vjp,
    "rollout": rollout,
}
PEERS_OF = {
    "inverse dynamics": tuple(PEERS),
    "forward dynamics": tuple(PEERS),
    "mass matrix": tuple(PEERS),
    "FD Jacobian": ("pinocchio", "frax", "adam"),  # the others take minutes to compile
    "FD VJP": JAX_PEERS,
    "rollout": ("mujoco",),
}
AXES = (None, 0, 0, 0)


class Case:
    """One quantity of one robot at one batch size and precision."""

    def __init__(self, name, quantity, dtype, batch, folder):
        self.about = {"robot": name, "quantity": quantity}
        self.about |= {"dtype": dtype, "batch": batch}
        self.model = common.robot(name)
        self.states = common.states(self.model, batch)
        if quantity == "rollout":  # not so far that chaos has the last word
            self.states = tuple(0.1 * x for x in self.states)
        self.urdf = folder / f"{name}.urdf"
        self.urdf.write_text(jd.to_urdf(self.model))
        args = in_type((self.model, *self.states), dtype)
        f = OURS[quantity]
        batched = jd.batched(f, in_axes=AXES)
        _, self.seconds, self.memory = common.compiled(batched, *args)
        self.ours = ready(batched, args[0], *common.dealt(args[1:]))
        self.file = folder / "states.npz"
        q, qd, x = map(np.array, self.states)
        np.savez(self.file, q=q, qd=qd, x=x, **self._expected())
        vmapped, *_ = common.compiled(jax.vmap(f, AXES), *args)
        self.one_core = ready(vmapped, *args)

    def _expected(self):
        """What a peer should find: one array; for a rollout, of the last q and qd."""
        if self.model.floating_base:
            return {}
        found = self.ours()
        if self.about["quantity"] == "rollout":
            found = tuple(x[:, -1] for x in found)
        parts = found if isinstance(found, tuple) else (found,)
        return {"expected": np.concatenate([np.array(x) for x in parts], -1)}

    def alone(self, turns):
        times = median_times({"both": self.ours, "one": self.one_core}, turns)
        batch = self.about["batch"]
        return self.about | {
            "batched, per second": batch / times["both"],
            "vmap, one device": batch / times["one"],
            "compile s": self.seconds,
            "temporaries MB": self.memory,
        }

    def beside(self, peer, turns, limit):
        quantity, batch = self.about["quantity"], self.about["batch"]
        if peer == "pinocchio" and quantity in IN_THREADS and self.in_double:
            ours, found = self._in_turns(turns)
        else:
            ours, found = self._between(peer, turns, limit)
        row = self.about | {"peer": peer, "ours per second": batch / ours}
        if "error" in found:
            return row | {"peer per second": found["error"], "ratio": None}
        return row | {
            "peer per second": batch / found["seconds"],
            "ratio": found["seconds"] / ours,
            "difference": found.get("difference"),
            "its compile s": found.get("compile seconds"),
            "its MB": found.get("memory MB"),
            "flags": found.get("flags", ""),
        }

    @property
    def in_double(self):
        return self.about["dtype"] == "float64"

    def _in_turns(self, turns):
        options = Namespace(
            dtype="float64",
            urdf=self.urdf,
            floating=self.model.floating_base,
            names=self.model.joint_names[int(self.model.floating_base) :],
        )
        quantity = self.about["quantity"]
        given = dict(zip(("q", "qd", "x"), map(np.array, self.states), strict=True))
        model, way, args = with_pinocchio.prepare(quantity, given, options)
        call, out = with_pinocchio.threads(model, quantity, args)
        times = median_times({"ours": self.ours, "theirs": call}, turns)
        found = way.from_peer(quantity, out.T)
        expected = np.array(self.ours())
        difference = np.abs(found - expected).max() / np.abs(expected).max()
        return times["ours"], {"seconds": times["theirs"], "difference": difference}

    def _between(self, peer, turns, limit):
        """A peer in its own process; ours before and after it."""
        before = median_times({"": self.ours}, turns)[""]
        asked = best_of_flags if peer in JAX_PEERS else measure
        found = asked(
            peer,
            self.about["quantity"],
            urdf=self.urdf,
            batch=self.about["batch"],
            dtype="float64" if peer in ("pinocchio", "mujoco") else self.about["dtype"],
            repeats=4 * turns,
            states=self.file,
            floating=self.model.floating_base,
            steps=STEPS,
            dt=DT,
            seconds=limit,
        )
        after = median_times({"": self.ours}, turns)[""]
        return float(np.median([before, after])), found


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="+", default=["arm"])
    parser.add_argument("--batches", nargs="+", type=int, default=[16384])
    parser.add_argument("--dtypes", nargs="+", default=["float64"])
    parser.add_argument("--quantities", nargs="+", default=list(OURS)[:5], choices=OURS)
    parser.add_argument("--peers", nargs="*", default=["pinocchio"], choices=PEERS)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--limit", type=int, default=120, help="seconds for a peer")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    console = Console(width=None if Console().is_terminal else 160)
    console.print(f"{common.about()}, {jax.device_count()} devices")
    alone, beside = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.robots:
            for quantity in args.quantities:
                for dtype in args.dtypes:
                    for batch in args.batches:
                        case = Case(name, quantity, dtype, batch, Path(folder))
                        alone.append(case.alone(args.turns))
                        beside += [
                            case.beside(peer, args.turns, args.limit)
                            for peer in args.peers
                            if peer in PEERS_OF[quantity]
                        ]
    common.show(console, "jaxdenoc", alone)
    if beside:
        common.show(console, f"beside others, {CORES} threads or processes", beside)
    common.write(args.json, {"alone": alone, "beside": beside})


if __name__ == "__main__":
    main()
