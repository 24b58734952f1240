"""How long does a log take, and how good and how sure is what comes out?

    python benchmarks/identification.py --samples 1000000
    python benchmarks/identification.py --only coverage --count 200
    python benchmarks/identification.py --only adversarial --count 200
    python benchmarks/identification.py --only recovery
    python benchmarks/identification.py --only gradients

The log is of the Panda arm (7 joints) with noise on its torques: a CSV file of time,
positions, velocities and torques, 22 columns, which is read with accelerations from the
filter; and least squares for its 91 parameters. Peak memory is that of the process.

Coverage: experiments of the arm with 1 % noise on its torques; how many 95 % intervals
of base parameters hold the truth, and the error of torques held out, beside the noise.
Adversarial: robots and priors far apart, short logs, noise up to the torques' own size;
how many fits are no bodies. Recovery: base parameters without noise, by each loss.
Gradients: a step of 1,000 rollouts of 100 steps for all parameters of an arm, beside
central differences of the same loss over `mujoco.rollout`.
"""

import argparse
import importlib.util
import resource
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

from common import CORES, FILES, median_times, ready, robot  # noqa: E402

jax.config.update("jax_num_cpu_devices", CORES)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc.identify import parameters_of  # noqa: E402
from jaxdenoc.identify._coordinates import coordinates  # noqa: E402
from jaxdenoc.identify._selection import selection  # noqa: E402


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
    studies = {f.__name__: f for f in (coverage, adversarial, recovery, gradients)}
    parser.add_argument("--only", choices=studies)
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    if args.only:
        return studies[args.only](args.count)
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


def near(model, seed, by=0.3, joints=0.5):
    """A prior with bodies for links, and a robot so many factors e from it."""
    space, _, _ = coordinates(model, selection(model, "all"), True)
    full = [jnp.full(model.nv, joints)] * 3
    prior = eqx.tree_at(
        lambda m: (m.armature, m.damping, m.friction), space.robot(space.start), full
    )
    space, _, _ = coordinates(prior, selection(prior, "all"), True)
    step = by * np.random.default_rng(seed).normal(size=space.start.shape)
    return prior, space.robot(space.start + step)


inverse = jd.batched(jd.inverse_dynamics, in_axes=(None, 0, 0, 0))


def measured(truth, state, noise, rng):
    """Torques with noise of so large a part of theirs, joint by joint."""
    t, *state = state
    tau = np.asarray(inverse(truth, *state))
    size = noise * np.sqrt(np.mean(tau**2, axis=0))
    return jd.Measurements(t, *state, tau + size * rng.normal(size=tau.shape)), size


def coverage(count):
    prior, truth = near(panda(), 0)
    state, held = motion(prior, 1000, 0.02), motion(prior, 1000, 0.013)
    rng, inside, ratio = np.random.default_rng(1), [], []
    clean = np.asarray(inverse(truth, *held[1:]))
    start = perf_counter()
    for k in range(count):
        data, size = measured(truth, state, 0.01, rng)
        fit = jd.identify(prior, data, show=False)
        want = fit.base.project(parameters_of(truth).of(truth))
        inside.append(np.abs(fit.base_values - want) < 1.96 * fit.base_sigma)
        if k % 10 == 0:
            log = jd.Measurements(*held, clean + size * rng.normal(size=clean.shape))
            ratio.append(fit.validate(log)["rms"] / size)
    inside, ratio = np.array(inside), np.array(ratio)
    print(f"{count} experiments of 1000 samples, {perf_counter() - start:.0f} s")
    print(f"95 % intervals hold the truth in {100 * inside.mean():.1f} %")
    each = inside.mean(axis=0)
    print(f"  base parameter by base parameter {each.min():.3f} to {each.max():.3f}")
    print(f"held-out rms beside the noise {ratio.mean():.4f}, worst {ratio.max():.4f}")


def adversarial(count):
    rng, broken, bad, arm = np.random.default_rng(0), 0, 0, panda()
    start = perf_counter()
    for k in range(count):
        _, truth = near(arm, k, rng.uniform(0.1, 2))
        _, prior = near(arm, 1000 + k, rng.uniform(0.1, 2))
        size = int(rng.integers(20, 200))
        state = motion(arm, size, 0.05)
        data, _ = measured(truth, state, 10 ** rng.uniform(-3, 0), rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jd.ModelWarning)
            fit = jd.identify(prior, data, show=False)
            plain = jd.identify(prior, data, physical=False, show=False)
        pi = np.asarray(jd.inertial_parameters(fit.model))
        J = np.asarray(jax.vmap(jd.pseudo_inertia)(pi))
        sound = fit.consistent.all() and (np.linalg.eigvalsh(J)[:, 0] > 0).all()
        bad += not sound
        broken += not plain.consistent.all()
    print(f"{count} starts and noise levels, {perf_counter() - start:.0f} s")
    print(f"no body: physical {bad}, least squares {broken}")


def recovery(count):
    for name in ("panda", "ur5"):
        prior, truth = near(robot(name), 1)
        data = [rolled(truth, k) for k in range(60 if name == "ur5" else 100)]
        for keys in ({"physical": False}, {}, {"loss": "rollout"}):
            start = perf_counter()
            fit = jd.identify(prior, data, show=False, **keys)
            want = fit.base.project(parameters_of(truth).of(truth))
            error = np.abs(fit.base_values / want - 1).max()
            spent = perf_counter() - start
            print(f"{name} {keys}: rank {fit.base.rank}, {error:.1e}, {spent:.1f} s")


def rolled(truth, seed):
    rng = np.random.default_rng(seed)
    q, qd = rng.normal(size=(2, truth.nv))
    tau = 5 * rng.normal(size=(10, truth.nv))
    run = jd.rollout(
        truth, jnp.asarray(q), jnp.asarray(qd), tau, 0.002, integrator="rk4",
        limits="ignore",
    )  # fmt: skip
    return jd.Measurements.of(run, truth)


def gradients(count, batch=1000, steps=100, dt=1e-3):
    """Ours by reverse mode; theirs two calls of all rollouts for each parameter."""
    import tempfile

    from peers.with_mujoco import load

    model = near(robot("panda"), 0, 0.0, 0.0)[0]
    rng = np.random.default_rng(0)
    q, qd, tau = (0.1 * rng.normal(size=(batch, model.nv)) for _ in range(3))

    def miss(theta, space, q, qd, tau):
        run = jd.rollout(
            space.robot(theta), q, qd, lambda t, q, qd: tau, dt, steps=steps,
            samples="ends", checkpoint="sqrt", limits="ignore",
        )  # fmt: skip
        return jnp.sum(run.q[-1] ** 2) + jnp.sum(run.qd[-1] ** 2)

    space, _, _ = coordinates(model, selection(model, "all"), True)
    over = jd.batched(miss, in_axes=(None, None, 0, 0, 0))
    step = jax.jit(jax.value_and_grad(lambda *args: jnp.sum(over(*args))))
    args = jnp.asarray(space.start), space, q, qd, tau
    call = ready(step, *args)
    call()
    ours = median_times({"": call}, 3, least=3)[""]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(jd.to_urdf(model))
        theirs = mujoco_rollouts(load(path, False, dt), q, qd, tau, steps)
    p = len(space.start)
    print(f"{batch} rollouts of {steps} steps, {p} parameters")
    print(f"gradient step, reverse mode {ours:.3f} s")
    print(f"mujoco.rollout {theirs:.3f} s, 2 x {p} of them {2 * p * theirs:.1f} s")
    print(f"ratio {2 * p * theirs / ours:.1f}")


def mujoco_rollouts(model, q, qd, tau, steps):
    """Seconds of one call for all of them, on all cores."""
    import mujoco
    from mujoco.rollout import Rollout

    data = [mujoco.MjData(model) for _ in range(CORES)]
    start = np.hstack([np.zeros((len(q), 1)), q, qd])
    forces = np.repeat(tau[:, None], steps, axis=1)
    states = np.zeros((len(q), steps, start.shape[1]))
    kept = {"control": forces, "state": states, "nstep": steps}
    kept |= {"control_spec": mujoco.mjtState.mjSTATE_QFRC_APPLIED.value}
    with Rollout(nthread=CORES) as pool:
        call = {"": lambda: pool.rollout(model, data, start, **kept)}
        return median_times(call, 3, least=3)[""]


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
