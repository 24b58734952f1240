"""MuJoCo: a Python loop over states in two processes; rollouts in two threads.

Each turn of the loop copies q, qd and x into `MjData` and makes one or two calls. For a
seven-link arm the copies are about 1.2 µs of 3.4 µs that forward dynamics of a state
takes on one core: without Python it would take two thirds of the time at best.
"""

import xml.etree.ElementTree as ET

import numpy as np

from . import clock, robot, with_loop
from .names import CORES, NotOffered
from .states import MUJOCO, Convention

NUMBERS_AT_ONCE = 2**24  # of a rollout's states and forces, held in memory
STEP = 1e-6  # of differences


def load(urdf, floating, dt=0.001):
    """The robot without contacts and joint limits; damping and friction as in the file.

    Euler's method is the semi-implicit one; taking damping implicitly is turned off.
    """
    import mujoco

    root = robot.plain(urdf)
    if floating:
        robot.on_world(root)
    compiler = {"fusestatic": "true", "discardvisual": "true", "strippath": "false"}
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", compiler)
    model = mujoco.MjModel.from_xml_string(robot.text(root))
    off = mujoco.mjtDisableBit
    for flag in ("CONTACT", "LIMIT", "EULERDAMP", "AUTORESET"):
        model.opt.disableflags |= getattr(off, f"mjDSBL_{flag}")
    model.jnt_limited[:] = 0
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    model.opt.timestep = dt
    return model


def joint_names(model, floating):
    names = [model.joint(i).name for i in range(model.njnt)]
    return names[1:] if floating else names


def run(quantity, states, options):
    if options.dtype != "float64":
        raise NotOffered("MuJoCo is built in float64")
    model = load(options.urdf, options.floating, options.dt)
    there = joint_names(model, options.floating)
    way = Convention(states, options.names, there, options.floating, MUJOCO)
    rollouts = {"rollout": rollout, "rollout gradient": rollout_gradient}
    if quantity in rollouts:
        numbers, found = rollouts[quantity](model, *way.to_peer(quantity), options)
        return numbers, way.from_peer(quantity, found)
    loops = {"inverse dynamics": inverse, "forward dynamics": forward}
    loops |= {"mass matrix": mass_matrix}
    if quantity not in loops:
        raise NotOffered("MuJoCo has finite differences of a step, not this derivative")
    args = way.to_peer(quantity)
    numbers, found = with_loop.measure(loops[quantity], model, args, options.repeats)
    return numbers, way.from_peer(quantity, found)


def inverse(model, q, qd, x, out):
    import mujoco

    data = mujoco.MjData(model)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], x[k]
        mujoco.mj_inverse(model, data)
        if out is not None:
            out.append(data.qfrc_inverse.copy())


def forward(model, q, qd, x, out):
    import mujoco

    data = mujoco.MjData(model)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[k], qd[k], x[k]
        mujoco.mj_forward(model, data)
        if out is not None:
            out.append(data.qacc.copy())


def mass_matrix(model, q, qd, x, out):
    import mujoco

    data, full = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    for k in range(len(q)):
        data.qpos[:] = q[k]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fullM(model, data, full)
        if out is not None:
            out.append(full.copy())


def rollout(model, q, qd, x, options):
    """`mujoco.rollout` under constant forces; the result is the last q and qd.

    A large batch is made in parts, so that all states of all steps need not be held at
    once.
    """
    import mujoco
    from mujoco.rollout import Rollout

    before = clock.peak_MB()
    start = np.hstack([np.zeros((len(q), 1)), q, qd])  # MuJoCo's begins with the time
    width = options.steps * (start.shape[1] + x.shape[1])
    count = -(-len(q) // max(CORES, NUMBERS_AT_ONCE // width))
    parts = list(
        zip(np.array_split(start, count), np.array_split(x, count), strict=True)
    )
    data = [mujoco.MjData(model) for _ in range(CORES)]

    def whole(pool):
        seconds, last = 0.0, []
        for first, force in parts:
            s, states = _part(pool, model, data, first, force, options.steps)
            seconds += s
            last.append(states[:, -1, 1:].copy())
        return seconds, np.concatenate(last)

    with Rollout(nthread=CORES) as pool:
        found = whole(pool)[1]
        numbers = clock.median(lambda: whole(pool)[0], options.repeats)
    return numbers | {"memory MB": clock.peak_MB() - before}, found


def rollout_gradient(model, q, qd, x, options):
    """Central differences of the sum of squares of the last q and qd, by q, qd and x.

    Only the rollouts are timed: two for each number, not for a free base.
    """
    if options.floating:
        raise NotOffered("differences by a quaternion are not written")
    at = np.hstack([q, qd, x])
    moves = STEP * np.eye(at.shape[1])
    around = np.concatenate([at + sign * m for sign in (1, -1) for m in moves])
    numbers, last = rollout(model, *np.split(around, 3, axis=1), options)
    ahead, behind = np.sum(last**2, axis=1).reshape(2, len(moves), len(at))
    return numbers, ((ahead - behind) / (2 * STEP)).T


def _part(pool, model, data, first, force, steps):
    """Seconds and states of one call; the forces of every step are laid out before."""
    from mujoco import mjtState

    forces = np.repeat(force[:, None], steps, axis=1)
    states = np.zeros((len(first), steps, first.shape[1]))
    kept = {"control": forces, "state": states, "nstep": steps}
    kept |= {"control_spec": mjtState.mjSTATE_QFRC_APPLIED.value}
    seconds = clock.timed(lambda: pool.rollout(model, data, first, **kept))
    return seconds, states
