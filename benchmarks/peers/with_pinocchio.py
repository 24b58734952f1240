"""Pinocchio: its own batches in two threads, or a Python loop in two processes."""

import numpy as np

from . import clock, robot, with_loop
from .names import CORES, NotOffered
from .states import LINEAR_FIRST, Convention

IN_THREADS = {
    "inverse dynamics": "rneaInParallel",
    "forward dynamics": "abaInParallel",
}


def run(quantity, states, options):
    if options.dtype != "float64":
        raise NotOffered("Pinocchio's Python module is built in float64")
    model, way, args = prepare(quantity, states, options)
    if quantity in IN_THREADS:
        numbers, found = in_threads(model, quantity, args, options.repeats)
    else:
        loops = {"mass matrix": mass_matrix, "FD Jacobian": jacobian}
        if quantity not in loops:
            raise NotOffered("Pinocchio has no reverse mode; see its FD Jacobian")
        loop = loops[quantity]
        numbers, found = with_loop.measure(loop, model, args, options.repeats)
    return numbers, way.from_peer(quantity, found)


def prepare(quantity, states, options):
    """Pinocchio's model, the way to its convention, and its q, v and x."""
    import pinocchio as pin

    root = [pin.JointModelFreeFlyer()] if options.floating else []
    model = pin.buildModelFromXML(robot.text(robot.plain(options.urdf)), *root)
    there = list(model.names)[2 if options.floating else 1 :]
    way = Convention(states, options.names, there, options.floating, LINEAR_FIRST, True)
    q, qd, x = way.to_peer(quantity)
    return model, way, (with_circles(model, q), qd, x)


def with_circles(model, q):
    """A continuous joint is cos q and sin q to Pinocchio."""
    columns, taken = [], 0
    for joint in list(model.joints)[1:]:
        width = 7 if joint.nv == 6 else 1
        part, taken = q[:, taken : taken + width], taken + width
        circle = joint.nq == 2
        columns += [np.cos(part), np.sin(part)] if circle else [part]
    return np.hstack(columns)


def in_threads(model, quantity, args, repeats):
    before = clock.peak_MB()
    call, out = threads(model, quantity, args)
    call()
    numbers = clock.median(lambda: clock.timed(call), repeats)
    return numbers | {"memory MB": clock.peak_MB() - before}, out.T.copy()


def threads(model, quantity, args):
    """A call of Pinocchio's own batch on all cores, and where its results are."""
    import pinocchio as pin

    function, pool = getattr(pin, IN_THREADS[quantity]), pin.ModelPool(model, CORES)
    args = [np.asfortranarray(a.T) for a in args]
    out = np.zeros((model.nv, args[0].shape[1]), order="F")
    return lambda: function(CORES, pool, *args, out), out


def mass_matrix(model, q, qd, x, out):
    import pinocchio as pin

    data = model.createData()
    for k in range(len(q)):
        pin.crba(model, data, q[k])
        if out is not None:
            out.append(np.triu(data.M) + np.triu(data.M, 1).T)


def jacobian(model, q, qd, x, out):
    import pinocchio as pin

    data = model.createData()
    for k in range(len(q)):
        pin.computeABADerivatives(model, data, q[k], qd[k], x[k])
        if out is not None:
            inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
            out.append(np.hstack([data.ddq_dq, data.ddq_dv, inverse]))
