"""`jaxdenoc generate`: a data set of random motions of a robot, in a folder."""

import argparse
import sys
from pathlib import Path
from time import perf_counter

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._errors import ModelError
from ..model import Model
from ..simulate import Dataset, generate
from ..simulate._described import described
from ._bench import _use_all_cores
from ._robot import add_robot, positive_float, positive_int, robot

NAME = "generate"
HELP = "Writes random motions of a robot to a folder; goes on where it was stopped."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add = parser.add_argument
    add("folder", metavar="FOLDER", type=Path, help="for the files")
    add("--count", type=positive_int, default=1024, help="motions in all")
    add("--steps", type=positive_int, default=100, help="of each motion")
    add("--dt", type=positive_float, default=0.01, help="seconds of a step")
    add("--shard", type=positive_int, default=1024, help="motions in a file")
    add("--seed", type=int, default=0)
    add("--integrator", default="semi_implicit", help="as of jd.rollout")
    add(
        "--torque",
        type=positive_float,
        help="largest of the random joint forces, which keep to the robot's limits; "
        "the limits themselves, or 1 where there is none, if not given",
    )
    add("--check", action="store_true", help="make nothing, read all of it again")


def run(args: argparse.Namespace) -> int:
    _use_all_cores()
    jax.config.update("jax_enable_x64", True)
    model = robot(args)
    if args.check:
        return check(model, args.folder)
    start = perf_counter()
    try:
        data = generate(
            args.folder,
            model,
            None,
            args.dt,
            torques=Uniform(largest(model, args.torque), args.steps),
            count=args.count,
            seed=args.seed,
            shard=args.shard,
            integrator=args.integrator,
        )
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130
    except ValueError as error:  # of an option, as the integrator
        raise ModelError(str(error)) from error
    seconds = perf_counter() - start
    print(f"{len(data)} motions of '{model.name}', {args.steps} steps of {args.dt:g} s")
    print(f"{len(data.shards)} files in {args.folder}, {seconds:.1f} s")
    return 0


class Uniform(eqx.Module):
    """Joint forces that are drawn anew for each step."""

    largest: Float[Array, " v"]
    steps: int

    def __call__(self, model: Model, key):
        shape = self.steps, model.nv
        return jr.uniform(key, shape, model.mass.dtype, -self.largest, self.largest)


def largest(model: Model, asked: float | None) -> Float[Array, " v"]:
    """Of each joint force: the smaller of what is asked for and the robot's limit."""
    limit = model.tau_limit
    if asked is None:
        return jnp.where(jnp.isfinite(limit), limit, jnp.ones_like(limit))
    return jnp.minimum(limit, jnp.full_like(limit, asked))


def check(model: Model, folder: Path) -> int:
    """Reads all files, and says whether they are whole and how the motions ended."""
    data = Dataset(folder)
    if data.request["model"] != described(model):
        raise ModelError(
            f"{folder} holds motions of another robot than '{model.name}'. Give that "
            "of the data set."
        )
    data.verify()
    sound = sum(int(np.sum(batch.status.ok)) for batch in data.batches())
    print(f"{len(data)} motions in {len(data.shards)} files: all are whole.")
    print(f"{sound} of the motions ran to the end.")
    return 0
