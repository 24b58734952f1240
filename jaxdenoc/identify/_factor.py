"""What a log says of the parameters, in one small triangle for every joint.

With the rows of the regressor and the torques of joint j, each times its weight,

    [Y_j  τ_j] = Q_j R_j ,     ‖Y_j x - τ_j‖ = ‖R_j [x; -1]‖   for any parameters x

R_j is made chunk by chunk, R ← qr([R; chunk]), so that a log of any length needs the
memory of a chunk. It keeps the joints apart: what weight a joint gets, and which of the
parameters are asked for, can be decided afterwards, with no second look at the log. The
rows of a joint are zero but for the links that it carries, and so is R_j, which has
columns for those only.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, repeat

import jax
import jax.numpy as jnp
import numpy as np

from .._progress import progress
from ..derivatives import regressor
from ..model import Model
from ._measurements import Measurements, as_logs
from ._parameters import in_double

CHUNK = 2048  # samples at a time: some ten megabytes for an arm
WORKERS = 2  # chunks at a time


@dataclass(frozen=True)
class Factor:
    """R_j of every joint, the columns it is of, and how many torques went into it.

    The last column of R_j is that of the torques. `a + b` is the factor of both logs.
    """

    triangles: tuple[np.ndarray, ...]
    columns: tuple[np.ndarray, ...]  # of `regressor(..., joints=True)`
    counts: np.ndarray  # of torques that count, per joint
    size: int  # of all columns

    def __add__(self, other: "Factor") -> "Factor":
        pairs = zip(self.triangles, other.triangles, strict=True)
        both = tuple(triangle(np.vstack(pair)) for pair in pairs)
        return Factor(both, self.columns, self.counts + other.counts, self.size)

    def rows(self, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All the joints' triangles, times a number each: of the parameters, and of τ.

        ‖A x - b‖² = Σ scale_j² ‖Y_j x - τ_j‖²
        """
        A, b = [], []
        for R, columns, s in zip(self.triangles, self.columns, scale, strict=True):
            rows = np.zeros((len(R), self.size))
            rows[:, columns] = R[:, :-1] * s
            A.append(rows)
            b.append(R[:, -1] * s)
        return np.concatenate(A), np.concatenate(b)

    def squares(self, x: np.ndarray) -> np.ndarray:
        """‖Y_j x - τ_j‖² of every joint, for parameters x of all columns."""
        pairs = zip(self.triangles, self.columns, strict=True)
        return np.array([np.sum((R @ np.append(x[c], -1)) ** 2) for R, c in pairs])

    def torque_squares(self) -> np.ndarray:
        """‖τ_j‖² of every joint."""
        return np.array([np.sum(R[:, -1] ** 2) for R in self.triangles])


def triangle(A: np.ndarray) -> np.ndarray:
    """R of A = Q R, which has all lengths and angles of its columns."""
    return np.asarray(np.linalg.qr(A, mode="r"))


def factorized(
    model: Model,
    data: Measurements | Iterable[Measurements],
    *,
    show: bool = True,
) -> Factor:
    """The factor of one log or of many, for this robot's geometry.

    In double precision, whatever JAX and the model are set to. It depends on where the
    joints are, on gravity and on `friction_speed`, but on none of the parameters.
    """
    logs = as_logs(data, model)
    total = sum(map(len, logs))
    columns = visible_columns(model)
    with (
        jax.enable_x64(True),
        progress("Reading torques", total, "samples", show=show) as advance,
    ):
        model = in_double(model)
        parts = _absorbed(model, columns, logs, advance)
    counts = np.sum([log.counts() for log in logs], axis=0)
    size = 10 * model.n_links + 3 * model.nv
    whole = [Factor(R, columns, 0 * counts, size) for R in parts]
    merged = sum(whole[1:], whole[0])
    return Factor(merged.triangles, columns, counts, size)


def visible_columns(model: Model) -> tuple[np.ndarray, ...]:
    """Of every joint, the columns in which its row of the regressor may be not zero."""
    k, v, rows = 10 * model.n_links, model.nv, model.rows
    found = []
    for j, row in enumerate(np.argsort(rows.velocity)):
        links = np.flatnonzero(rows.tree.ancestry[row, list(rows.body)])
        own = [10 * i + c for i in links for c in range(10)]
        found.append(np.array([*own, *(k + s * v + j for s in range(3))]))
    return tuple(found)


def _absorbed(model, columns, logs, advance) -> list[tuple[np.ndarray, ...]]:
    """Chunks dealt out to the workers in turn, each of which has its own factor."""
    absorb = _program(tuple(tuple(map(int, c)) for c in columns))
    nothing = tuple(np.zeros((len(c) + 1,) * 2) for c in columns)
    devices = jax.local_devices()

    def work(me: int, all_of_us: int) -> tuple[np.ndarray, ...]:
        R, device = nothing, devices[me % len(devices)]
        with jax.enable_x64(True), jax.default_device(device):
            for number, chunk in enumerate(_chunks(logs)):
                if number % all_of_us == me:
                    R = jax.block_until_ready(absorb(model, R, *_padded(chunk)))
                    advance(len(chunk[0]))
        return tuple(map(np.asarray, R))

    workers = min(WORKERS, sum(-(-len(log) // CHUNK) for log in logs))
    if workers == 1:
        return [work(0, 1)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, range(workers), repeat(workers)))


def _chunks(logs: list[Measurements]) -> Iterator[tuple[np.ndarray, ...]]:
    def of(log):
        arrays = log.q, log.qd, log.qdd, log.tau, log.weight
        return (
            tuple(np.asarray(x)[at : at + CHUNK] for x in arrays)
            for at in range(0, len(log), CHUNK)
        )

    return chain.from_iterable(map(of, logs))


def _padded(chunk: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Filled up with samples that do not count, for one program to serve all."""
    *state, weight = chunk
    short = CHUNK - len(weight)
    if not short:
        return chunk
    fill = [np.concatenate([x, np.repeat(x[-1:], short, 0)]) for x in state]
    return *fill, np.concatenate([weight, np.zeros((short, weight.shape[1]))])


@cache
def _program(columns: tuple[tuple[int, ...], ...]):
    """R ← qr([R; chunk]) of every joint, compiled once for a robot's topology."""
    of_samples = jax.vmap(partial(regressor, joints=True), (None, 0, 0, 0))

    @jax.jit
    def absorb(model, R, q, qd, qdd, tau, weight):
        Y = of_samples(model, q, qd, qdd)
        found = []
        for j, own in enumerate(columns):
            rows = jnp.concatenate([Y[:, j, np.array(own)], tau[:, j, None]], axis=1)
            rows = jnp.concatenate([R[j], rows * weight[:, j, None]])
            found.append(jnp.linalg.qr(rows, mode="r"))
        return tuple(found)

    return absorb
