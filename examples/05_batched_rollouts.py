"""65,536 robots that differ, under one controller: how far apart do they end?

A planar arm of three joints lifts a payload and holds it. Its controller, springs and
dampers with gravity cancelled, knows one arm only. Each robot has masses, a payload and
friction of its own, drawn at random: `jax.vmap` of a function that gives a `Model`
gives a batch of them, and `jd.batched` runs the rollouts of a batch on all cores. A
robot that runs into a limit of a joint stops there, and its status says so.

The figure shows the height of the hand in time, in bands that hold half and nine tenths
of the robots; where the hands end; what payload and friction have to do with it; and
when robots were stopped, at which joint.

    python examples/05_batched_rollouts.py [folder for the figure] [number of robots]
"""

import os
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

jax.config.update("jax_enable_x64", True)

import jaxdenoc as jd  # noqa: E402
from jaxdenoc import viz  # noqa: E402
from jaxdenoc._progress import progress  # noqa: E402

DT, HELD, ROWS = 0.002, 5, 260  # each of 260 torques is held for 5 steps of 2 ms
EVERY, CHUNKS = 4, 16  # samples that are kept; parts in which the robots are run
PAYLOAD, FRICTION, REACH = 0.5, 0.3, 0.22  # at most [kg], [N·m]; joint3 to hand [m]
START, GOAL = (-np.pi / 2, 0.0, 0.0), (0.5, 0.7, -0.5)  # angles [rad]


def nominal():
    """Three rods, with rotors at the joints and limits close to the motion."""
    arm = jd.robots.planar_arm()
    rows = [-2.0, -0.9, -0.93], [0.82, 1.06, 0.9], [0.04, 0.03, 0.02]
    where = lambda m: (m.q_lower, m.q_upper, m.armature)  # noqa: E731
    return eqx.tree_at(where, arm, tuple(map(jnp.array, rows)))


def carry(arm, payload):
    """`arm` with so many kilograms, a point, in its hand."""
    point = np.zeros((arm.n_links, 10))  # m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz
    point[-1, [0, 1, 6, 9]] = 1, REACH, REACH**2, REACH**2
    pi = jd.inertial_parameters(arm) + payload * point
    return jd.with_inertial_parameters(arm, pi)


def draw_robot(arm, key):
    """A robot, its payload and its friction."""
    of_mass, of_payload, of_friction = jr.split(key, 3)
    scale = jr.uniform(of_mass, (arm.n_links, 1), minval=0.8, maxval=1.2)
    payload = jr.uniform(of_payload, maxval=PAYLOAD)
    friction = jr.uniform(of_friction, maxval=FRICTION)
    arm = jd.with_inertial_parameters(arm, jd.inertial_parameters(arm) * scale)
    of_joint = friction * jnp.array([1.0, 0.5, 0.25])
    arm = eqx.tree_at(lambda m: m.friction, arm, of_joint)
    return carry(arm, payload), payload, friction


def lift(arm, law):
    """Where the hand of one robot is in time, and what became of the robot."""
    start = jnp.array(START)
    rest = jnp.zeros_like(start)
    motion = jd.rollout(arm, start, rest, law, DT, steps=ROWS, decimation=HELD)

    def hand(q):
        pose = jd.forward_kinematics(arm, q)[-1]
        return pose[:2, 3] + REACH * pose[:2, 0]

    return motion.t[::EVERY], jax.vmap(hand)(motion.q[::EVERY]), motion.status


def run(arm, law, robots):
    """All robots, part by part, so that only what is asked for stays in memory."""
    draw = jax.jit(jax.vmap(draw_robot, in_axes=(None, 0)))
    lifts = jd.batched(lift, in_axes=(0, None))
    found, clock = [], []
    with progress("rollouts", robots, "robots") as advance:
        for keys in jnp.split(jr.split(jr.key(0), robots), CHUNKS):
            models, *drawn = draw(arm, keys)
            found.append(jax.tree.map(np.asarray, (*drawn, *lifts(models, law))))
            clock.append(time.perf_counter())
            advance(len(keys))
    rate = (robots - len(keys)) * ROWS * HELD / (clock[-1] - clock[0])  # compiled once
    payload, friction, t, hand, status = jax.tree.map(
        lambda *x: np.concatenate(x), *found
    )
    status = jax.tree.map(jnp.asarray, status)
    return payload, friction, t[0], hand, status, rate


def draw(arm, goal, payload, friction, t, hand, status):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 8), layout="constrained")
    figure.suptitle(f"{len(hand):,} arms that differ, one controller", fontsize=12)
    (bands, ends), (causes, stops) = figure.subplots(2, 2)
    ok = np.asarray(status.ok)
    some = np.arange(len(hand))[:4000]  # more would cover one another
    fine, lost = some[ok[some]], np.flatnonzero(~ok)[:400]
    dots = {"s": 5, "linewidths": 0}

    low, lower, middle, upper, high = np.quantile(
        hand[ok, :, 1], [0.05, 0.25, 0.5, 0.75, 0.95], axis=0
    )
    bands.fill_between(t, low, high, color="C0", alpha=0.2, lw=0, label="90 % of them")
    bands.fill_between(t, lower, upper, color="C0", alpha=0.4, lw=0, label="50 %")
    bands.plot(t, middle, "C0", label="median")
    bands.axhline(goal[1], color="k", ls=":", label="goal")
    bands.set(title="robots that ran to the end", xlabel="time [s]")
    bands.set(ylabel="height of the hand [m]", xlim=(0, t[-1]))

    shade = ends.scatter(*hand[fine, -1].T, c=payload[fine], cmap="viridis", **dots)
    figure.colorbar(shade, ax=ends, label="payload [kg]")
    ends.plot(*hand[lost, -1].T, "rx", ms=3, mew=0.7, label="stopped at a limit")
    ends.plot(*goal, "k+", ms=14, mew=2, label="goal")
    ends.set(title="where the hands end", xlabel="x [m]", ylabel="y [m]")
    ends.set_aspect("equal", adjustable="datalim")

    shade = causes.scatter(
        payload[fine], hand[fine, -1, 1], c=friction[fine], cmap="plasma", **dots
    )
    figure.colorbar(shade, ax=causes, label="friction at joint1 [N·m]")
    causes.axhline(goal[1], color="k", ls=":", label="goal")
    causes.set(title="payload and friction")
    causes.set(xlabel="payload [kg]", ylabel="height of the hand in the end [m]")

    step, joint = np.asarray(status.step), np.asarray(status.joint)
    times = [step[joint == j] * DT * HELD for j in range(arm.nv)]
    labels = [f"{s}: {len(x):,}" for s, x in zip(arm.joint_names, times, strict=True)]
    stops.hist(times, np.arange(0, t[-1] + 0.05, 0.05), stacked=True, label=labels)
    stops.set(title=f"{np.sum(~ok):,} robots were stopped at a limit")
    stops.set(xlabel="time [s]", ylabel="robots in 0.05 s", xlim=(0, t[-1]))
    for axes in (bands, ends, causes, stops):
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    return figure


def main(out="figures", robots=65_536):
    arm = nominal()
    known, goal = carry(arm, PAYLOAD / 2), jnp.array(GOAL)
    kp, kd = np.array([8.0, 4.0, 1.5]), np.array([2.0, 0.8, 0.3])
    law = jd.control.pd_gravity(known, goal, kp=kp, kd=kd)
    payload, friction, t, hand, status, rate = run(arm, law, robots)

    ok = np.asarray(status.ok)
    pose = np.asarray(jd.forward_kinematics(arm, goal)[-1])
    goal = pose[:2, 3] + REACH * pose[:2, 0]
    miss = np.linalg.norm(hand[ok, -1] - goal, axis=1)
    slope = np.polyfit(payload[ok], hand[ok, -1, 1], 1)[0]
    print(f"{robots:,} robots, {t[-1]:g} s in steps of {1e3 * DT:g} ms:")
    print(
        f"  {rate / 1e6:.1f} million steps a second on {jax.device_count()} device(s)"
    )
    print(f"  ran to the end    {ok.sum():,}")
    for j, name in enumerate(arm.joint_names):
        print(f"  left limits of {name} {np.sum(status.joint[~ok] == j):,}")
    if not ok.all():
        first = jax.tree.map(lambda x: x[np.argmin(ok)], status)
        print(f"    the first of them: {first.describe(arm)}")
    print(f"  the hand misses by {100 * np.median(miss):.1f} cm in the median,")
    print(f"  and sags by {-10 * slope:.1f} cm for each 0.1 kg of payload")

    figure = draw(arm, goal, payload, friction, t, hand, status)
    path = viz.save_figure(figure, Path(out) / "batched_rollouts.png")
    print(f"wrote {path}")
    return {"payload": payload, "miss": miss, "slope": slope, "hand": hand} | {
        "status": status,
        "rate": rate,
        "goal": goal,
    }


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", os.cpu_count())  # a core is a device
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
