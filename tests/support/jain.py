"""Sections 5 to 8 of Jain and Rodriguez as printed (corrected by MATH 14), in NumPy.

On the dense operators of `Dense`: body axes, links from the base, crf and crm where the
paper has Ω̃. For joints of one degree of freedom.
"""

import numpy as np

from .dense import Dense, crf, crm


def crfb(f):
    """crf(V) f = crfb(f) V [MATH 1.2]."""
    n, f = f[:3], f[3:]

    def skew(a):
        x, y, z = a
        return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])

    return -np.block([[skew(n), skew(f)], [skew(f), np.zeros((3, 3))]])


class Moving(Dense):
    """The operators of a robot that moves, with their local rates [MATH 7.2]."""

    def __init__(self, model, q, qd):
        super().__init__(model, q)
        self.qd = np.array(qd)
        n = self.n
        self.V_blocks = self.twists(qd)
        self.V = self.V_blocks.ravel()
        self.vJ = (self.H.T @ self.qd).reshape(n, 6)
        self.arriving = self.V_blocks - self.vJ
        self.W = self.diagonal([crf(v) for v in self.vJ])  # Ẇ
        self.W_m = self.diagonal([crm(v) for v in self.vJ])
        self.Vt = self.diagonal([crm(v).T for v in self.V_blocks])  # Ṽ*
        self.Dh = np.linalg.cholesky(self.D)
        self.m = self.U @ self.Dh
        self.l = np.linalg.inv(self.m)
        self.xi = self.U.T @ self.qd
        self.nu = self.m.T @ self.qd
        self.P_plus = self.tau_bar @ self.P
        self.Pd = self.diagonal(self.rates_7a())
        WP = self.W @ self.P
        self.Gamma = self.Pd + WP + WP.T

    def block(self, A, i, j=None):
        j = i if j is None else j
        return A[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]

    def rates_7a(self):
        """Ṗ = Σ φ (τ̄ Ṗ τ̄* + W + Wᵀ) φ* , W = crf(v_J) P⁺ [MATH 7.a]."""
        Pd = [np.zeros((6, 6)) for _ in range(self.n)]
        for i in reversed(range(self.n)):
            t, P_plus = self.block(self.tau_bar, i), self.block(self.P_plus, i)
            W = crf(self.vJ[i]) @ P_plus
            p, phi = self.parent[i], self.phi_blocks[i]
            if p >= 0:
                Pd[p] = Pd[p] + phi @ (t @ Pd[i] @ t.T + W + W.T) @ phi.T
        return Pd

    def algorithm_6_1(self):
        """Γ = Σ ψ Γ ψ* + W + Wᵀ, Ṗ = Σ ψ Γ ψ* , W = crf(v_J) P [J&R Alg 6.1]."""
        Pd = [np.zeros((6, 6)) for _ in range(self.n)]
        for i in reversed(range(self.n)):
            W = crf(self.vJ[i]) @ self.block(self.P, i)
            Gamma = Pd[i] + W + W.T
            psi = self.phi_blocks[i] @ self.block(self.tau_bar, i)
            if self.parent[i] >= 0:
                Pd[self.parent[i]] = Pd[self.parent[i]] + psi @ Gamma @ psi.T
        return self.diagonal(Pd)

    def algorithm_7_1(self):
        """C(θ, ν) by one inward sweep [J&R Alg 7.1; MATH 7.4]."""
        y = np.zeros((self.n, 6))
        C = np.zeros(self.n)
        for i in reversed(range(self.n)):
            V, M = self.V_blocks[i], self.M_blocks[i]
            W = crf(self.vJ[i]) @ self.block(self.P, i)
            t, Gamma = self.block(self.tau_bar, i), self.block(self.Gamma, i)
            y[i] += 2 * crf(V) @ M @ V - (W - W.T) @ V - Gamma @ t.T @ self.arriving[i]
            C[i] = self.H_blocks[i][:, 0] @ y[i] / self.Dh[i, i] / 2
            if self.parent[i] >= 0:
                psi = self.phi_blocks[i] @ t
                y[self.parent[i]] += psi @ (y[i] + Gamma @ V)
        return C

    def algorithm_8_1(self, tau, F):
        """ξ̇ by two sweeps, F the weight and external wrenches [J&R Alg 8.1]."""
        gamma = np.zeros((self.n, 6))
        xi_dot = np.zeros(self.n)
        for i in reversed(range(self.n)):
            V, M, h = self.V_blocks[i], self.M_blocks[i], self.H_blocks[i][:, 0]
            P, Gamma = self.block(self.P, i), self.block(self.Gamma, i)
            gamma[i] += Gamma @ h * self.xi[i] + crf(V) @ M @ V
            gamma[i] -= crf(self.vJ[i]) @ P @ V + F[i]
            xi_dot[i] = (tau[i] - h @ gamma[i]) / self.D[i, i]
            if self.parent[i] >= 0:
                phi = self.phi_blocks[i]
                G = self.G[6 * i : 6 * i + 6, i]
                passed = self.block(self.tau_bar, i) @ gamma[i] + G * tau[i]
                gamma[self.parent[i]] += phi @ passed
        return xi_dot

    def skew_form(self):
        """A of C = A ν [J&R Identity 7.1; MATH 7.4]."""
        B = np.linalg.inv(self.Dh) @ self.H @ self.psi
        M = [crfb(M @ V) for M, V in zip(self.M_blocks, self.V_blocks, strict=True)]
        inner = self.E_psi @ self.Gamma - self.Gamma @ self.E_psi.T
        inner = inner - self.W @ self.P - self.P @ self.W_m + 2 * self.diagonal(M)
        return B @ inner @ B.T / 2

    def weight(self, poses, fext):
        """Gravity and external wrenches on every link, body axes."""
        g = np.array(self.model.gravity)
        return np.array(
            [
                M @ np.r_[0, 0, 0, R.T @ g] + f
                for M, R, f in zip(
                    self.M_blocks, np.array(poses)[:, :3, :3], fext, strict=True
                )
            ]
        )
