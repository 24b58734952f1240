"""Pinocchio beside a jaxdenoc model: the same robot, states mapped joint by joint."""

import importlib.util
from pathlib import Path

import numpy as np
import pinocchio as pin


def robot_file(path):
    """A URDF of the example-robot-data wheel, which lives beside Pinocchio's."""
    module = Path(importlib.util.find_spec("pinocchio").origin)
    prefix = next(p for p in module.parents if p.name == "cmeel.prefix")
    return prefix / "share" / "example-robot-data" / "robots" / path


def pinocchio_model(model):
    """The same robot in Pinocchio, joint by joint."""
    kinds = {
        "revolute": lambda a, s: pin.JointModelRevoluteUnaligned(a),
        "continuous": lambda a, s: pin.JointModelRevoluteUnaligned(a),
        "prismatic": lambda a, s: pin.JointModelPrismaticUnaligned(a),
        "helical": lambda a, s: pin.JointModelHelicalUnaligned(a, s),
        "free": lambda a, s: pin.JointModelFreeFlyer(),
    }
    other, number = pin.Model(), {-1: 0}
    for i, kind in enumerate(model.joint_kinds):
        joint = kinds[kind](np.array(model.axis[i]), float(model.pitch[i]))
        place = pin.SE3(
            np.array(model.placement.rotation[i]),
            np.array(model.placement.translation[i]),
        )
        number[i] = other.addJoint(
            number[model.parent[i]], joint, place, model.joint_names[i]
        )
        inertia = pin.Inertia(
            float(model.mass[i]), np.array(model.com[i]), np.array(model.inertia[i])
        )
        other.appendBodyToJoint(number[i], inertia, pin.SE3.Identity())
    other.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
    other.armature = np.array(model.armature)
    return other


class Oracle:
    """What Pinocchio says of a model's state, in the model's order and conventions."""

    def __init__(self, model, other=None, joints=None):
        self.model = model
        self.pin = pinocchio_model(model) if other is None else other
        self.data = self.pin.createData()
        names = model.joint_names if joints is None else joints
        self.joints = [self.pin.getJointId(s) for s in names]
        self.v, self.q = [], []  # ours[k] = theirs[v[k]]
        for j in self.joints:
            joint = self.pin.joints[j]
            v, q = joint.idx_v, joint.idx_q
            if joint.nv == 6:  # theirs: linear first, and x y z w
                self.v += [v + 3, v + 4, v + 5, v, v + 1, v + 2]
                self.q += [q, q + 1, q + 2, q + 6, q + 3, q + 4, q + 5]
            else:
                self.v.append(v)
                self.q.append(q)

    def configuration(self, q):
        q = np.asarray(q)
        theirs = pin.neutral(self.pin)
        k = 0
        for j in self.joints:
            joint = self.pin.joints[j]
            if joint.nv == 6:
                theirs[joint.idx_q : joint.idx_q + 7] = np.r_[q[:3], q[4:7], q[3]]
                k += 7
            elif joint.nq == 2:  # a continuous joint as a point on the circle
                theirs[joint.idx_q : joint.idx_q + 2] = np.cos(q[k]), np.sin(q[k])
                k += 1
            else:
                theirs[joint.idx_q] = q[k]
                k += 1
        return theirs

    def velocity(self, x):
        theirs = np.zeros(self.pin.nv)
        theirs[self.v] = np.asarray(x)
        return theirs

    def vector(self, x):
        return np.array(x)[self.v]

    def matrix(self, x):
        return np.array(x)[np.ix_(self.v, self.v)]

    def inverse_dynamics(self, q, qd, qdd):
        q, v, a = self.configuration(q), self.velocity(qd), self.velocity(qdd)
        return self.vector(pin.rnea(self.pin, self.data, q, v, a))

    def forward_dynamics(self, q, qd, tau):
        q, v, t = self.configuration(q), self.velocity(qd), self.velocity(tau)
        return self.vector(pin.aba(self.pin, self.data, q, v, t))

    def mass_matrix(self, q):
        M = pin.crba(self.pin, self.data, self.configuration(q))
        return self.matrix(np.triu(M) + np.triu(M, 1).T)

    def bias_forces(self, q, qd):
        q, v = self.configuration(q), self.velocity(qd)
        return self.vector(pin.nonLinearEffects(self.pin, self.data, q, v))

    def gravity_forces(self, q):
        q = self.configuration(q)
        return self.vector(pin.computeGeneralizedGravity(self.pin, self.data, q))

    def coriolis_matrix(self, q, qd):
        q, v = self.configuration(q), self.velocity(qd)
        return self.matrix(pin.computeCoriolisMatrix(self.pin, self.data, q, v))

    def inverse_dynamics_derivatives(self, q, qd, qdd):
        q, v, a = self.configuration(q), self.velocity(qd), self.velocity(qdd)
        dq, dv, M = pin.computeRNEADerivatives(self.pin, self.data, q, v, a)
        M = np.triu(M) + np.triu(M, 1).T
        return self.matrix(dq), self.matrix(dv), self.matrix(M)

    def forward_dynamics_derivatives(self, q, qd, tau):
        q, v, t = self.configuration(q), self.velocity(qd), self.velocity(tau)
        pin.computeABADerivatives(self.pin, self.data, q, v, t)
        d = self.data
        inverse = np.triu(d.Minv) + np.triu(d.Minv, 1).T
        return tuple(map(self.matrix, (d.ddq_dq, d.ddq_dv, inverse)))

    def forward_kinematics(self, q):
        pin.forwardKinematics(self.pin, self.data, self.configuration(q))
        return np.array([self.data.oMi[j].homogeneous for j in self.joints])

    def jacobian(self, q, link, axes="body"):
        frame = pin.LOCAL if axes == "body" else pin.LOCAL_WORLD_ALIGNED
        pin.computeJointJacobians(self.pin, self.data, self.configuration(q))
        J = pin.getJointJacobian(self.pin, self.data, self.joints[link], frame)
        J = np.reshape(J, (6, -1))[[3, 4, 5, 0, 1, 2]]
        return J[:, self.v]

    def momentum(self, q, qd):
        q, v = self.configuration(q), self.velocity(qd)
        pin.computeCentroidalMomentum(self.pin, self.data, q, v)
        h = self.data.hg.vector
        return np.r_[h[3:], h[:3]]


def error(x, y):
    """The largest difference, relative to the largest entry."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape, (x.shape, y.shape)
    return np.abs(x - y).max() / max(np.abs(y).max(), 1e-30)
