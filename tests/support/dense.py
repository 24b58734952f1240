"""The operators of the papers as dense matrices, from their definitions, in NumPy.

Independent of the library's recursions: body axes and pose products here, base axes
and component sweeps there. MATH 1.2, 1.3, 1.6.
"""

import numpy as np

import jaxdenoc as jd


def skew(a):
    x, y, z = a
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def crm(V):
    w, v = skew(V[:3]), skew(V[3:])
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def crf(V):
    return -crm(V).T


def motion_transform(R, p):
    """X(A→B) for the pose (R, p) of B in A: twists from A to B coordinates."""
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])


def spatial_inertia(m, c, I_C):
    C = skew(c)
    return np.block([[I_C + m * C @ C.T, m * C], [m * C.T, m * np.eye(3)]])


class Dense:
    """φ, H, M, P, D, G, K, ψ ... of a model at q, blocks in link order, body axes.

    A joint of d degrees of freedom has d rows in H: for a free base angular first.
    """

    def __init__(self, model, q):
        n = model.n_links
        poses = np.array(jd.forward_kinematics(model, q))
        self.model, self.n, self.parent = model, n, model.parent
        self.H_blocks, self.M_blocks, self.phi_blocks = [], [], []
        for i in range(n):
            p = model.parent[i]
            pose = np.linalg.solve(poses[p], poses[i]) if p >= 0 else poses[i]
            self.phi_blocks.append(motion_transform(pose[:3, :3], pose[:3, 3]).T)
            self.H_blocks.append(motion_axes(model, i))
            self.M_blocks.append(
                spatial_inertia(
                    float(model.mass[i]),
                    np.array(model.com[i]),
                    np.array(model.inertia[i]),
                )
            )
        self.first = np.cumsum([0] + [h.shape[1] for h in self.H_blocks])
        self.armature = np.diag(np.array(model.armature))
        self.E_phi = self.to_parent(self.phi_blocks)
        self.one = np.eye(6 * n)
        self.phi = np.linalg.inv(self.one - self.E_phi)
        self.H = np.zeros((model.nv, 6 * n))
        for i, h in enumerate(self.H_blocks):
            self.H[self.rows(i), 6 * i : 6 * i + 6] = h.T
        self.M = self.diagonal(self.M_blocks)
        self.mass_matrix = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T
        self.riccati()

    def rows(self, i):
        return slice(self.first[i], self.first[i + 1])

    def diagonal(self, blocks):
        out = np.zeros((6 * self.n, 6 * self.n))
        for i, b in enumerate(blocks):
            out[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = b
        return out

    def to_parent(self, blocks):
        out = np.zeros((6 * self.n, 6 * self.n))
        for i, p in enumerate(self.parent):
            if p >= 0:
                out[6 * p : 6 * p + 6, 6 * i : 6 * i + 6] = blocks[i]
        return out

    def riccati(self):
        """MATH 5.1, block by block from tip to base."""
        n, nv = self.n, self.model.nv
        P = [b.copy() for b in self.M_blocks]
        self.D = np.zeros((nv, nv))
        self.G = np.zeros((6 * n, nv))
        tau = [None] * n
        for i in reversed(range(n)):
            h, rows = self.H_blocks[i], self.rows(i)
            D = h.T @ P[i] @ h + self.armature[rows, rows]
            G = P[i] @ h @ np.linalg.inv(D)
            self.D[rows, rows], self.G[6 * i : 6 * i + 6, rows] = D, G
            tau[i] = np.eye(6) - G @ h.T
            if self.parent[i] >= 0:
                f = self.phi_blocks[i]
                P[self.parent[i]] += f @ (P[i] - G @ D @ G.T) @ f.T
        self.P, self.tau_bar = self.diagonal(P), self.diagonal(tau)
        self.K = self.E_phi @ self.G
        self.E_psi = self.E_phi @ self.tau_bar
        self.psi = np.linalg.inv(self.one - self.E_psi)
        self.U = np.eye(nv) + self.H @ self.phi @ self.K

    def twists(self, qd):
        return (self.phi.T @ self.H.T @ np.array(qd)).reshape(-1, 6)


def motion_axes(model, i):
    """H_i in body axes, 6×d [MATH 1.4]."""
    h = np.array(model.axis[i])
    zero = np.zeros(3)
    return {
        "revolute": np.r_[h, zero][:, None],
        "continuous": np.r_[h, zero][:, None],
        "prismatic": np.r_[zero, h][:, None],
        "helical": np.r_[h, float(model.pitch[i]) * h][:, None],
        "free": np.eye(6),
    }[model.joint_kinds[i]]
