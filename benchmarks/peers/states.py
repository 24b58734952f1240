"""States in our convention and in a peer's.

Rates of a peer are T q̇ with an orthogonal T: its order of joints, and for a floating
base its order and axes of the twist. Then accelerations are T q̈ + Ṫ q̇, forces T τ,
and the mass matrix T ℳ Tᵀ. All of it is outside what is timed.
"""

import numpy as np

SEED = 0
OURS = "body, angular first"
LINEAR_FIRST = "body, linear first"
MUJOCO = "linear in world axes, angular in body axes"


def read(path, batch, names, floating):
    """q, qd, x and what is expected: from a file, or the same normal numbers always."""
    if path:
        with np.load(path) as file:
            return {key: np.array(v[:batch], dtype=float) for key, v in file.items()}
    rng, n, b = np.random.default_rng(SEED), len(names), 6 if floating else 0
    q, qd, x = (rng.normal(size=(batch, n + k)) for k in (b and 7, b, b))
    if floating:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return {"q": q, "qd": qd, "x": x}


class Convention:
    """The way from our states to a peer's, and back with its results."""

    def __init__(self, states, ours, theirs, floating, twist=OURS, scalar_last=False):
        order = [ours.index(name) for name in theirs]
        if sorted(order) != list(range(len(ours))):
            raise ValueError(f"the peer's joints are {list(theirs)}, ours {list(ours)}")
        self.floating = floating
        self.q, self.qd, self.x = states["q"], states["qd"], states["x"]
        self.turn = np.broadcast_to(
            np.eye(len(ours))[order], (len(self.q),) + 2 * (len(ours),)
        )
        self.drift = np.zeros_like(self.qd)
        self.peer_q = self.q[:, order]
        if floating:
            self._add_base(twist, scalar_last, order)

    def _add_base(self, twist, scalar_last, order):
        batch, nv = self.qd.shape
        joints, self.turn = self.turn, np.zeros((batch, nv, nv))
        self.turn[:, 6:, 6:] = joints
        eye = np.eye(3)
        if twist == OURS:
            self.turn[:, :3, :3] = self.turn[:, 3:6, 3:6] = eye
        else:
            R = rotation(self.q[:, 3:7]) if twist == MUJOCO else eye
            self.turn[:, :3, 3:6], self.turn[:, 3:6, :3] = R, eye
        if twist == MUJOCO:  # d(R v)/dt = R (v̇ + ω × v)
            moved = np.cross(self.qd[:, :3], self.qd[:, 3:6])
            self.drift[:, :3] = (R @ moved[..., None])[..., 0]
        base = [0, 1, 2, 4, 5, 6, 3] if scalar_last else list(range(7))
        self.peer_q = self.q[:, base + [7 + i for i in order]]

    def to_peer(self, quantity):
        """The peer's q, qd and x."""
        x = self.rates(self.x)
        if quantity == "inverse dynamics":
            x = x + self.drift
        return self.peer_q, self.rates(self.qd), x

    def from_peer(self, quantity, found):
        """A peer's result in our convention; None where the two cannot be compared."""
        back = np.swapaxes(self.turn, 1, 2)
        if quantity == "mass matrix":
            return back @ found @ self.turn
        if quantity == "inverse dynamics":
            return (back @ found[..., None])[..., 0]
        if quantity == "forward dynamics":
            return (back @ (found - self.drift)[..., None])[..., 0]
        if self.floating:  # a quaternion, or derivatives by one
            return None
        n = self.qd.shape[1]
        blocks = np.split(found, range(n, found.shape[-1], n), axis=-1)
        if quantity == "FD Jacobian":
            return np.concatenate([back @ b @ self.turn for b in blocks], -1)
        return np.concatenate([(back @ b[..., None])[..., 0] for b in blocks], -1)

    def rates(self, rates):
        return (self.turn @ rates[..., None])[..., 0]


def rotation(quaternions):
    """Rotation matrices of unit quaternions, scalar first."""
    w, x, y, z = quaternions.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def difference(found, expected):
    """The largest difference over the largest number."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    found = found.reshape(expected.shape)
    return float(np.abs(found - expected).max() / np.abs(expected).max())
