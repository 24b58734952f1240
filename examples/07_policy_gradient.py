"""A neural network learns to move an arm, by gradients through the dynamics.

An arm of two rods lies on a table; its hand should come to a target and stay there. The
torques are those of a small network (Equinox) that sees the joints' angles and rates
and the way to the target. Nobody shows it how: the loss is the distance of the hand
along the motion, and `jd.rollout` gives its exact gradient with respect to the weights,
from the first step to the last, which optax's Adam follows. Every iteration draws other
starts and targets, so that what is learned serves for targets it has never seen.

The figure shows the loss, the distances to targets that were not trained on, before and
after, and the paths of the hand.

    python examples/07_policy_gradient.py [folder for the figure]
"""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

import jaxdenoc as jd
from jaxdenoc import viz
from jaxdenoc._progress import progress

DT, HELD, ROWS = 0.01, 2, 75  # a torque is held for 2 steps of 10 ms, 75 times
LENGTH, LIMIT = 0.5, (5.0, 2.5)  # of a rod [m]; of the torques [N·m]
NEAR, TESTS = 0.02, 256  # what counts as there [m]; targets that are kept for the test
FLOAT = jnp.float32


def hand(arm, q):
    pose = jd.forward_kinematics(arm, q)[-1]
    return pose[:2, 3] + LENGTH * pose[:2, 0]


class Policy(eqx.Module):
    net: eqx.nn.MLP

    def __init__(self, width, key):
        self.net = eqx.nn.MLP(8, 2, width, 2, jax.nn.tanh, dtype=FLOAT, key=key)

    def __call__(self, arm, target, q, qd):
        way = target - hand(arm, q)
        seen = jnp.concatenate([jnp.sin(q), jnp.cos(q), qd / 5, 4 * way])
        return jnp.array(LIMIT, FLOAT) * jnp.tanh(self.net(seen))


def draw_case(key):
    """A start, and a target within reach."""
    of_start, of_distance, of_angle = jr.split(key, 3)
    q = jr.uniform(of_start, (2,), FLOAT, minval=-1.0, maxval=1.0)
    r = jr.uniform(of_distance, (), FLOAT, minval=0.4, maxval=0.9)
    angle = jr.uniform(of_angle, (), FLOAT, minval=-2.0, maxval=2.0)
    return q, r * jnp.array([jnp.cos(angle), jnp.sin(angle)])


def reach(policy, arm, q, target):
    """The motion of one arm to one target, and the path of its hand."""

    def tau(t, q, qd):
        return policy(arm, target, q, qd)

    rest = jnp.zeros_like(q)
    motion = jd.rollout(arm, q, rest, tau, DT, steps=ROWS, decimation=HELD)
    return motion, jax.vmap(hand, in_axes=(None, 0))(arm, motion.q)


def cost(policy, arm, q, target):
    """The mean distance of the hand, the later the dearer; a little for haste."""
    motion, path = reach(policy, arm, q, target)
    late = motion.t / motion.t[-1]
    away = jnp.sqrt(jnp.sum((path - target[None]) ** 2, axis=1) + 1e-5)
    effort = jnp.sum((motion.tau / jnp.array([LIMIT], FLOAT)) ** 2, axis=1)
    speed = jnp.sum(motion.qd**2, axis=1)
    return jnp.mean(late * (away + 1e-3 * speed) + 1e-3 * effort)


def train(policy, arm, iterations, batch, rate):
    decay = optax.cosine_decay_schedule(rate, iterations)
    rule = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(decay))
    state = rule.init(eqx.filter(policy, eqx.is_array))

    @eqx.filter_value_and_grad
    def loss(policy, cases):
        costs = jax.vmap(cost, in_axes=(None, None, 0, 0))
        return jnp.mean(costs(policy, arm, *cases))

    @eqx.filter_jit
    def improve(policy, state, key):
        cases = jax.vmap(draw_case)(jr.split(key, batch))
        value, slope = loss(policy, cases)
        change, state = rule.update(slope, state)
        return eqx.apply_updates(policy, change), state, value

    values = []
    with progress("training", iterations, "iterations") as advance:
        for key in jr.split(jr.key(1), iterations):
            policy, state, value = improve(policy, state, key)
            values.append(float(value))
            advance(1)
    return policy, np.array(values)


def draw(losses, t, targets, paths, away):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 8.6), layout="constrained")
    figure.suptitle("A network learns to reach, through the dynamics", fontsize=12)
    panels = figure.subplots(2, 2)
    (falls, distances), plans = panels
    falls.semilogy(1 + np.arange(len(losses)), losses, linewidth=1)
    falls.set(title="training", xlabel="iteration", ylabel="loss [m]")

    names = "before", "after training"
    for color, name, x in zip(("C1", "C0"), names, away, strict=True):
        low, middle, high = np.quantile(100 * x, [0.05, 0.5, 0.95], axis=0)
        distances.fill_between(t, low, high, color=color, alpha=0.2, linewidth=0)
        distances.plot(t, middle, color, label=f"{name}: median, 90 %")
    distances.axhline(100 * NEAR, color="k", ls=":", label="there")
    distances.set(title=f"{len(targets)} targets not trained on", yscale="log")
    distances.set(xlabel="time [s]", ylabel="distance of the hand [cm]")
    distances.set(xlim=(t[0], t[-1]), ylim=(0.03, 300))

    for axes, name, path in zip(plans, names, paths, strict=True):
        for k in range(8):
            axes.plot(*path[k].T, f"C{k}", linewidth=1.3)
            axes.plot(*path[k, 0], f"C{k}o", markersize=5, markerfacecolor="w")
            axes.plot(*targets[k], f"C{k}+", markersize=11, markeredgewidth=2)
        axes.plot([], [], "ko", markersize=5, markerfacecolor="w", label="start")
        axes.plot([], [], "k+", markersize=11, markeredgewidth=2, label="target")
        axes.plot(0, 0, "ks", markersize=7, label="base")
        axes.set(title=f"paths of the hand, {name}", xlabel="x [m]", ylabel="y [m]")
        axes.set(xlim=(-1.25, 1.25), ylim=(-1.1, 1.1), aspect="equal")
    for axes in panels.flat:
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (distances, *plans):
        axes.legend(frameon=False, fontsize=9)
    return figure


def main(out="figures", iterations=1000, batch=128, width=64, rate=5e-3):
    arm = jd.robots.rod_chain(2, length=LENGTH, gravity=(0.0, 0.0, -9.81), dtype=FLOAT)
    start = Policy(width, jr.key(0))
    policy, losses = train(start, arm, iterations, batch, rate)

    cases = jax.vmap(draw_case)(jr.split(jr.key(2), TESTS))
    run = eqx.filter_jit(jax.vmap(reach, in_axes=(None, None, 0, 0)))
    targets = np.asarray(cases[1])
    motions, paths = zip(*(run(x, arm, *cases) for x in (start, policy)), strict=True)
    paths = np.array(paths)
    away = np.linalg.norm(paths - targets[:, None], axis=-1)
    there = np.mean(away[:, :, -1] < NEAR, axis=1)
    speed = float(np.median(np.abs(motions[1].qd[:, -1]).max(axis=1)))

    print(f"{iterations} iterations of {batch} motions:")
    print(f"  loss from {losses[0]:.3f} to {losses[-1]:.3f} m")
    print(f"{TESTS} targets not trained on, distance in the end:")
    for name, share, x in zip(("before", "after"), there, away, strict=True):
        middle, most = 100 * np.quantile(x[:, -1], [0.5, 0.95])
        print(f"  {name:6} {middle:5.1f} cm in the median, 95 % within {most:.1f} cm,")
        print(f"         {100 * share:5.1f} % within {100 * NEAR:g} cm")
    print(f"  median speed of the faster joint at the end: {speed:.3f} rad/s")
    t = np.asarray(motions[1].t[0])
    path = viz.save_figure(
        draw(losses, t, targets, paths, away), Path(out) / "policy_gradient.png"
    )
    print(f"wrote {path}")
    return {"losses": losses, "there": there, "away": away, "speed": speed}


if __name__ == "__main__":
    main(*sys.argv[1:2])
