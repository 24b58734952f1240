"""Dynamics in fifty digits, to measure the library's errors by.

The textbook recursions (Featherstone, Rigid Body Dynamics Algorithms: RNEA, CRBA, ABA)
in body axes, link by link, in plain Python over whatever numbers they are given: those
of gmpy2, which are fast, or of mpmath. Nothing here is the library's: it works in base
axes, by U D Uᵀ, on rows of arrays.

The numbers of a model and a state are taken exactly as they are, float32 or float64.
Only two kinds of them cannot be meant as they are: nine rounded numbers are no rotation
and three no unit vector. They stand for the nearest rotation and the unit vector in the
same direction, as a quaternion stands for the one of length 1. What that leaves is not
the arithmetic's, but below it: `precision.py` states how much.

    robot = Robot(model)
    tau = robot.inverse_dynamics(q, qd, qdd)  # lists of numbers with fifty digits
    error(found, tau)                         # ‖found - tau‖ / ‖tau‖
"""

from typing import Any, NamedTuple

import gmpy2
import mpmath
import numpy as np

DIGITS = 50
BITS = 3 + int(DIGITS * 3.33)
gmpy2.get_context().precision = BITS
mpmath.mp.prec = BITS


class Arithmetic(NamedTuple):
    """Numbers, from a Python float and exactly, and their functions."""

    number: Any
    sqrt: Any
    sin: Any
    cos: Any
    tanh: Any


GMP = Arithmetic(gmpy2.mpfr, gmpy2.sqrt, gmpy2.sin, gmpy2.cos, gmpy2.tanh)
MPMATH = Arithmetic(mpmath.mpf, mpmath.sqrt, mpmath.sin, mpmath.cos, mpmath.tanh)


# vectors are triples, matrices triples of rows


def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def sub(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def scale(s, a):
    return s * a[0], s * a[1], s * a[2]


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    (x, y, z), (u, v, w) = a, b
    return y * w - z * v, z * u - x * w, x * v - y * u


def mat_vec(A, x):
    return dot(A[0], x), dot(A[1], x), dot(A[2], x)


def transpose(A):
    return tuple(zip(*A, strict=True))


def mat_mul(A, B):
    columns = transpose(B)
    return tuple((dot(r, columns[0]), dot(r, columns[1]), dot(r, columns[2]))
                 for r in A)  # fmt: skip


def mat_add(A, B):
    return add(A[0], B[0]), add(A[1], B[1]), add(A[2], B[2])


def mat_sub(A, B):
    return sub(A[0], B[0]), sub(A[1], B[1]), sub(A[2], B[2])


def mat_scale(s, A):
    return tuple(scale(s, row) for row in A)


def outer(a, b):
    return tuple(scale(x, b) for x in a)


def skew(a):
    x, y, z = a
    o = 0 * x
    return (o, -z, y), (z, o, -x), (-y, x, o)


def skew_times(a, B):
    """ã B, column by column."""
    return transpose(tuple(cross(a, column) for column in transpose(B)))


# six-vectors are pairs, angular first; inertias are (J, C, M), P = [[J, C], [Cᵀ, M]]


def plus(A, B):
    return add(A[0], B[0]), add(A[1], B[1])


def times(s, A):
    return scale(s, A[0]), scale(s, A[1])


def power(A, B):
    return dot(A[0], B[0]) + dot(A[1], B[1])


def crm(V, A):
    """V × A for a twist A."""
    return cross(V[0], A[0]), add(cross(V[0], A[1]), cross(V[1], A[0]))


def crf(V, f):
    """V ×* f for a wrench f."""
    return add(cross(V[0], f[0]), cross(V[1], f[1])), cross(V[0], f[1])


def outward(pose, V):
    """A twist of the parent's, in the axes of the link and about its origin."""
    (_, E, p), (w, v) = pose, V
    return mat_vec(E, w), mat_vec(E, add(v, cross(w, p)))


def inward(pose, f):
    """A wrench of the link's, in the axes of the parent and about its origin."""
    R, _, p = pose
    force = mat_vec(R, f[1])
    return add(mat_vec(R, f[0]), cross(p, force)), force


def inward_inertia(pose, P):
    """φ P φ* for P of the link's."""
    R, E, p = pose
    J, C, M = (mat_mul(R, mat_mul(block, E)) for block in P)
    moved = mat_add(C, skew_times(p, M))  # C + p̃ M
    pC = skew_times(p, transpose(C))  # p̃ Cᵀ, and C' p̃ᵀ is the transpose of p̃ C'ᵀ
    right = transpose(skew_times(p, transpose(moved)))
    return mat_add(J, mat_add(pC, right)), moved, M


def inertia_plus(P, Q):
    return tuple(mat_add(a, b) for a, b in zip(P, Q, strict=True))


def inertia_times(P, V):
    J, C, M = P
    return (
        add(mat_vec(J, V[0]), mat_vec(C, V[1])),
        add(mat_vec(transpose(C), V[0]), mat_vec(M, V[1])),
    )


class Robot:
    """A model and what it does, in exact numbers. Results are lists of them."""

    def __init__(self, model, by: Arithmetic = GMP):
        self.by, self.parent, self.kinds = by, model.parent, model.joint_kinds
        number = by.number

        def exact(x):
            x = np.asarray(x)
            return tuple(map(exact, x)) if x.ndim else number(float(x))

        zero = self.zero = number(0.0)
        self.one = number(1.0)
        self.still = (zero,) * 3, (zero,) * 3
        self.axis = [self._unit(h) for h in exact(model.axis)]
        self.R_tree = [self._rotation(R) for R in exact(model.placement.rotation)]
        self.t_tree = exact(model.placement.translation)
        self.pitch = exact(model.pitch)
        self.mass, self.com = exact(model.mass), exact(model.com)
        upper = [np.triu(np.asarray(x)) for x in model.inertia]
        self.I_C = exact([x + np.triu(x, 1).T for x in upper])
        self.armature, self.damping = exact(model.armature), exact(model.damping)
        self.friction = exact(model.friction)
        self.friction_speed = exact(model.friction_speed)
        self.gravity = exact(model.gravity)
        self.free = "free" in self.kinds
        self.n, self.nv = len(self.parent), model.nv

    def numbers(self, x):
        return [self.by.number(float(x)) for x in np.asarray(x).ravel()]

    def _unit(self, h):
        length = self.by.sqrt(dot(h, h))
        return tuple(x / length for x in h) if length else h

    def _rotation(self, R):
        """The nearest rotation, R (RᵀR)^-½, by Newton's and Schulz's iteration."""
        half = self.one / 2
        three = mat_scale(3 * self.one, self._identity())
        for _ in range(8):
            step = mat_sub(three, mat_mul(transpose(R), R))
            R = mat_scale(half, mat_mul(R, step))
        return R

    def _identity(self):
        o, i = self.zero, self.one
        return (i, o, o), (o, i, o), (o, o, i)

    # joints

    def _place(self, i, q):
        """R, Rᵀ and origin of link i in its parent's axes."""
        R, p = self.R_tree[i], self.t_tree[i]
        if self.kinds[i] == "free":
            p = add(p, mat_vec(R, tuple(q[:3])))
            R = mat_mul(R, self._turned(q[3:7]))
            return R, transpose(R), p
        angle, slid = self._turn_and_slide(i, q[self._of(i) + self.free])
        if slid is not None:
            p = add(p, mat_vec(R, scale(slid, self.axis[i])))
        if angle is not None:
            h = skew(self.axis[i])
            sin, versin = self.by.sin(angle), 1 - self.by.cos(angle)
            turn = mat_add(mat_scale(sin, h), mat_scale(versin, mat_mul(h, h)))
            R = mat_mul(R, mat_add(self._identity(), turn))
        return R, transpose(R), p

    def _of(self, i):
        """Where the velocity of joint i is; its coordinate is one later if free."""
        return i + 5 if self.free and i else i

    def _turn_and_slide(self, i, x):
        kind = self.kinds[i]
        if kind == "prismatic":
            return None, x
        return x, x * self.pitch[i] if kind == "helical" else None

    def _turned(self, p):
        length = self.by.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
        w, *xyz = (x / length for x in p)
        u = skew(tuple(xyz))
        turn = mat_add(mat_scale(2 * w, u), mat_scale(2 * self.one, mat_mul(u, u)))
        return mat_add(self._identity(), turn)

    def _columns(self, i):
        """Joint i's motions, and where they stand among the velocities."""
        o, axis = self.still[0], self.axis[i]
        if self.kinds[i] == "free":
            e = self._identity()
            return [(k, (e[k], o)) for k in range(3)] + [
                (3 + k, (o, e[k])) for k in range(3)
            ]
        turn, slide = self._turn_and_slide(i, self.one)
        H = (axis if turn is not None else o), (scale(slide, axis) if slide else o)
        return [(self._of(i), H)]

    def _motion(self, i, rates):
        """H θ̇."""
        total = self.still
        for k, H in self._columns(i):
            total = plus(total, times(rates[k], H))
        return total

    # bodies

    def _momentum(self, i, V):
        """M V."""
        c, (w, v) = self.com[i], V
        force = scale(self.mass[i], add(v, cross(w, c)))
        return add(mat_vec(self.I_C[i], w), cross(c, force)), force

    def _inertia(self, i):
        m, c = self.mass[i], skew(self.com[i])
        mc = mat_scale(m, c)
        J = mat_sub(self.I_C[i], mat_mul(mc, c))
        return J, mc, mat_scale(m, self._identity())

    def _drag(self, k, rate):
        found = self.damping[k] * rate
        if self.friction[k]:
            found += self.friction[k] * self.by.tanh(rate / self.friction_speed)
        return found

    # dynamics

    def inverse_dynamics(self, q, qd, qdd, fext=None):
        """RNEA."""
        V, a, f, poses = [], [], [], []
        at_base = self.still, (self.still[0], scale(-self.one, self.gravity))
        for i, p in enumerate(self.parent):
            pose = self._place(i, q)
            V_p, a_p = (V[p], a[p]) if p >= 0 else at_base
            vJ = self._motion(i, qd)
            V_i = plus(outward(pose, V_p), vJ)
            a_i = plus(plus(outward(pose, a_p), self._motion(i, qdd)), crm(V_i, vJ))
            f_i = plus(self._momentum(i, a_i), crf(V_i, self._momentum(i, V_i)))
            if fext is not None:
                f_i = plus(f_i, times(-self.one, fext[i]))
            V.append(V_i)
            a.append(a_i)
            f.append(f_i)
            poses.append(pose)
        tau = [self.zero] * self.nv
        for i in reversed(range(self.n)):
            for k, H in self._columns(i):
                tau[k] = power(H, f[i]) + self.armature[k] * qdd[k]
                tau[k] = tau[k] + self._drag(k, qd[k])
            if self.parent[i] >= 0:
                f[self.parent[i]] = plus(f[self.parent[i]], inward(poses[i], f[i]))
        return tau

    def mass_matrix(self, q):
        """CRBA."""
        poses = [self._place(i, q) for i in range(self.n)]
        inertia = [self._inertia(i) for i in range(self.n)]
        found = [[self.zero] * self.nv for _ in range(self.nv)]
        for i in reversed(range(self.n)):
            p = self.parent[i]
            if p >= 0:
                more = inward_inertia(poses[i], inertia[i])
                inertia[p] = inertia_plus(inertia[p], more)
            for k, H in self._columns(i):
                F, j = inertia_times(inertia[i], H), i
                while j >= 0:
                    for l, H_j in self._columns(j):
                        found[k][l] = found[l][k] = power(H_j, F)
                    F, j = inward(poses[j], F), self.parent[j]
                found[k][k] += self.armature[k]
        return found

    def forward_dynamics(self, q, qd, tau, fext=None, gravity=None):
        """ABA."""
        gravity = self.gravity if gravity is None else gravity
        V, c, P, bias, poses = [], [], [], [], []
        for i, p in enumerate(self.parent):
            pose = self._place(i, q)
            vJ = self._motion(i, qd)
            V_i = plus(outward(pose, V[p] if p >= 0 else self.still), vJ)
            b_i = crf(V_i, self._momentum(i, V_i))
            if fext is not None:
                b_i = plus(b_i, times(-self.one, fext[i]))
            V.append(V_i)
            c.append(crm(V_i, vJ))
            P.append(self._inertia(i))
            bias.append(b_i)
            poses.append(pose)
        released: list[Any] = [None] * self.n
        for i in reversed(range(self.n)):
            u = {
                k: tau[k] - self._drag(k, qd[k]) - power(H, bias[i])
                for k, H in self._columns(i)
            }
            if self.kinds[i] == "free":  # at the base: there is nothing beyond it
                released[i] = u
                continue
            ((k, H),) = self._columns(i)
            F = inertia_times(P[i], H)
            D = power(H, F) + self.armature[k]
            released[i] = F, D, u[k]
            p = self.parent[i]
            if p >= 0:
                n, f = F
                G = times(1 / D, F)
                J, C, M = P[i]
                left = (
                    mat_sub(J, outer(G[0], n)),
                    mat_sub(C, outer(G[0], f)),
                    mat_sub(M, outer(G[1], f)),
                )
                arrives = plus(bias[i], inertia_times(left, c[i]))
                arrives = plus(arrives, times(u[k], G))
                P[p] = inertia_plus(P[p], inward_inertia(poses[i], left))
                bias[p] = plus(bias[p], inward(poses[i], arrives))
        qdd, a = [self.zero] * self.nv, []
        start = self.still[0], scale(-self.one, gravity)
        for i, p in enumerate(self.parent):
            a_i = plus(outward(poses[i], a[p] if p >= 0 else start), c[i])
            columns = self._columns(i)
            if self.kinds[i] == "free":
                D = [[power(H, inertia_times(P[i], G)) for _, G in columns]
                     for _, H in columns]  # fmt: skip
                F = inertia_times(P[i], a_i)
                b = [released[i][k] - power(H, F) for k, H in columns]
                for k, _ in columns:
                    D[k][k] += self.armature[k]
                qdd[:6] = _solved(D, b)
            else:
                F, D, u = released[i]
                qdd[columns[0][0]] = (u - power(F, a_i)) / D
            a.append(plus(a_i, self._motion(i, qdd)))
        return qdd

    def solve(self, q, b):
        """ℳ⁻¹ b: forward dynamics at rest, without weight."""
        return self.forward_dynamics(q, [self.zero] * self.nv, b, None, self.still[0])

    # derivatives

    def slope(self, q, qd, tau, dq, dqd, dtau, h=1e-15):
        """d/ds of forward dynamics at q + s dq, ..., to some thirty digits.

        A central difference: h² = 1e-30 is left out, rounding is 1e-50 / h.
        """
        h = self.by.number(h)

        def at(s):
            pairs = (q, dq), (qd, dqd), (tau, dtau)
            return self.forward_dynamics(
                *([x + s * y for x, y in zip(*pair, strict=True)] for pair in pairs)
            )

        return [(x - y) / (2 * h) for x, y in zip(at(h), at(-h), strict=True)]

    def gradient(self, q, qd, tau, weights):
        """Of weightsᵀ θ̈ with respect to q, θ̇ and τ, one list.

        With μ = ℳ⁻¹ weights, that is μ for τ and -∇(μᵀ ID) at constant θ̈ for q and θ̇,
        by a tape of every operation of RNEA.
        """
        mu, qdd = self.solve(q, weights), self.forward_dynamics(q, qd, tau)
        taped = [Taped(x) for x in (*q, *qd)]
        plain, self.by = self.by, _taped(self.by)
        try:
            found = self.inverse_dynamics(taped[: len(q)], taped[len(q) :], qdd)
        finally:
            self.by = plain
        total = Taped(self.zero)
        for x, y in zip(mu, found, strict=True):
            total = total + x * y
        slopes = total.backward()
        return [-slopes.get(id(x), self.zero) for x in taped] + mu

    # motion

    def integrate(self, q, dq):
        """q + dq, and for a free base its pose times exp(dq)."""
        if not self.free:
            return [x + y for x, y in zip(q, dq, strict=True)]
        w, v = tuple(dq[:3]), tuple(dq[3:6])
        R = self._turned(q[3:7])
        square = dot(w, w)
        angle = self.by.sqrt(square)
        wv = cross(w, v)
        if angle:
            sin, cos = self.by.sin(angle), self.by.cos(angle)
            b, c = (1 - cos) / square, (angle - sin) / (square * angle)
            v = add(v, add(scale(b, wv), scale(c, cross(w, wv))))
        half = angle / 2
        vector = scale(self.by.sin(half) / angle if angle else self.one / 2, w)
        turn = self.by.cos(half), *vector
        p = _product(q[3:7], turn)
        length = self.by.sqrt(sum(x * x for x in p))
        rest = [x + y for x, y in zip(q[7:], dq[6:], strict=True)]
        return [*add(tuple(q[:3]), mat_vec(R, v)), *(x / length for x in p), *rest]

    def rollout(self, q, qd, dt, steps):
        """q and θ̇ after so many semi-implicit steps without joint forces.

        An OverflowError where the steps are too long for the robot, and it flies apart.
        """
        dt, tau = self.by.number(dt), [self.zero] * self.nv
        for _ in range(steps):
            qdd = self.forward_dynamics(q, qd, tau)
            qd = [x + dt * y for x, y in zip(qd, qdd, strict=True)]
            if max(map(abs, qd)) > 1e9:
                raise OverflowError
            q = self.integrate(q, [dt * x for x in qd])
        return q, qd


def _product(a, b):
    """Of quaternions."""
    (s, *u), (t, *v) = a, b
    u, v = tuple(u), tuple(v)
    return s * t - dot(u, v), *add(add(scale(s, v), scale(t, u)), cross(u, v))


def _solved(A, b):
    """A⁻¹ b for a positive matrix, by elimination; A and b are used up."""
    n = len(b)
    for k in range(n):
        for i in range(k + 1, n):
            factor = A[i][k] / A[k][k]
            b[i] -= factor * b[k]
            for j in range(k, n):
                A[i][j] -= factor * A[k][j]
    x: list[Any] = [None] * n
    for k in reversed(range(n)):
        known = sum(A[k][j] * x[j] for j in range(k + 1, n))
        x[k] = (b[k] - known) / A[k][k]
    return x


class Taped:
    """A number that knows which it was made of, and its slopes along them."""

    __slots__ = ("of", "value")

    def __init__(self, value, *of):
        self.value, self.of = value, of

    def __add__(self, b):
        if isinstance(b, Taped):
            return Taped(self.value + b.value, (self, 1), (b, 1))
        return Taped(self.value + b, (self, 1))

    def __sub__(self, b):
        if isinstance(b, Taped):
            return Taped(self.value - b.value, (self, 1), (b, -1))
        return Taped(self.value - b, (self, 1))

    def __rsub__(self, b):
        return Taped(b - self.value, (self, -1))

    def __mul__(self, b):
        if isinstance(b, Taped):
            return Taped(self.value * b.value, (self, b.value), (b, self.value))
        return Taped(self.value * b, (self, b))

    def __truediv__(self, b):
        if isinstance(b, Taped):
            value = self.value / b.value
            return Taped(value, (self, 1 / b.value), (b, -value / b.value))
        return Taped(self.value / b, (self, 1 / b))

    def __neg__(self):
        return Taped(-self.value, (self, -1))

    def __bool__(self):
        return True

    __radd__, __rmul__ = __add__, __mul__

    def backward(self):
        """The slopes of this number along all that it was made of, by `id`."""
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            x, done = stack.pop()
            if done:
                order.append(x)
            elif id(x) not in seen:
                seen.add(id(x))
                stack.append((x, True))
                stack.extend((y, False) for y, _ in x.of)
        slopes = {id(self): self.value * 0 + 1}
        for x in reversed(order):
            slope = slopes[id(x)]
            for y, s in x.of:
                slopes[id(y)] = slopes.get(id(y), 0) + slope * s
        return slopes


def _taped(by):
    def sqrt(x):
        root = by.sqrt(x.value)
        return Taped(root, (x, 1 / (2 * root)))

    def sin(x):
        return Taped(by.sin(x.value), (x, by.cos(x.value)))

    def cos(x):
        return Taped(by.cos(x.value), (x, -by.sin(x.value)))

    def tanh(x):
        y = by.tanh(x.value)
        return Taped(y, (x, 1 - y * y))

    return Arithmetic(by.number, sqrt, sin, cos, tanh)


def halves(x):
    """Exact numbers as two arrays of float64 whose sum has 32 digits of them."""
    flat, shape = list(x), np.shape(x)
    if flat and isinstance(flat[0], list):
        flat = [y for row in flat for y in row]
    high = [float(y) for y in flat]
    low = [float(y - z) for y, z in zip(flat, high, strict=True)]
    return np.reshape(high, shape), np.reshape(low, shape)


def error(found, known):
    """‖found - known‖ / ‖known‖; `known` is exact numbers, or their `halves`."""
    high, low = known if isinstance(known, tuple) else halves(known)
    found = np.asarray(found, float)
    assert found.shape == high.shape, (found.shape, high.shape)
    return float(np.linalg.norm((found - high) - low) / np.linalg.norm(high))
