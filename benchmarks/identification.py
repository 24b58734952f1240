"""How long does a long log take: to be read, and to give base parameters?

    python benchmarks/identification.py --samples 1000000

The log is of the Panda arm (7 joints) with noise on its torques: a CSV file of time,
positions, velocities and torques, 22 columns, which is read with accelerations from the
filter; and least squares for its 91 parameters. Peak memory is that of the process.
"""

import argparse
import importlib.util
import resource
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from common import FILES  # noqa: E402

import jaxdenoc as jd  # noqa: E402


def panda():
    """The arm, with its fingers held still."""
    module = Path(importlib.util.find_spec("pinocchio").origin)
    prefix = next(p for p in module.parents if p.name == "cmeel.prefix")
    file = prefix / "share" / "example-robot-data" / "robots" / FILES["panda"][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jd.ModelWarning)
        model = jd.load(file, mimic="lock")
    fingers = [j for j in model.joint_names if "finger" in j]
    return jd.lock(model, dict.fromkeys(fingers, 0.0))


def motion(model, k, h=1e-3):
    """A Fourier series for every joint, sampled at steps h."""
    rng, t = np.random.default_rng(0), h * np.arange(k)
    w = 2 * np.pi * 0.1 * np.arange(1, 6)
    a, phase = rng.normal(size=(2, model.nv, 5))
    at = t[:, None, None] * w + phase
    q = np.sum(a / w * np.sin(at), axis=-1)
    qd, qdd = np.sum(a * np.cos(at), axis=-1), -np.sum(a * w * np.sin(at), axis=-1)
    return t, q, qd, qdd


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(what, f, *args, **keys):
    start = perf_counter()
    found = f(*args, **keys)
    print(f"{what:<44} {perf_counter() - start:7.2f} s   peak {memory():.2f} GB")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--csv", action="store_true", help="write and read a file, too")
    args = parser.parse_args()
    model = panda()
    t, q, qd, qdd = motion(model, args.samples)
    tau = jd.batched(jd.inverse_dynamics, in_axes=(None, 0, 0, 0))(model, q, qd, qdd)
    tau = np.asarray(tau) + 0.1 * np.random.default_rng(1).normal(size=q.shape)
    data = jd.Measurements(t, q, qd, qdd, tau)
    print(f"{args.samples} samples of {model.name}; peak so far {memory():.2f} GB")
    timed("base parameters of the robot, first time", jd.base_parameters, model)
    timed("base parameters of the robot", jd.base_parameters, model)
    timed(
        "least squares of the first 10 000 samples",
        jd.least_squares,
        model,
        data[:10000],
    )
    fit = timed("least squares", jd.least_squares, model, data)
    print(
        f"rank {fit.base.rank}, condition {fit.base.condition:.3g}, noise {fit.noise}"
    )
    timed("residuals", fit.residuals, data)
    if args.csv:
        read(model, t, q, qd, tau)


def read(model, t, q, qd, tau):
    names = [f"{s}_{j}" for s in ("q", "qd", "tau") for j in model.joint_names]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        table = np.column_stack([t, q, qd, tau])
        head = ",".join(["t", *names])
        np.savetxt(path, table, "%.9g", ",", header=head, comments="")
        print(
            f"a file of {path.stat().st_size / 2**20:.0f} MB, {table.shape[1]} columns"
        )
        timed("read_measurements", jd.read_measurements, path, model)


if __name__ == "__main__":
    main()
