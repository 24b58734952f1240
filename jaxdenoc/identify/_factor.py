"""What a log says of the parameters, in one small triangle for every joint.

With the rows of the regressor and the torques of joint j, each times its weight,

    [Y_j  τ_j] = Q_j R_j ,     ‖Y_j x - τ_j‖ = ‖R_j [x; -1]‖   for any parameters x

It keeps the joints apart: what weight a joint gets, and which of the parameters are
asked for, can be decided afterwards, with no second look at the log. The rows of a
joint are zero but for the links that it carries, and so R_j has columns for those only.

R_j comes from sums of products over chunks of a log of any length, in two passes. The
first is made regular by ε where it is singular, which it always is; the second is that
of rows that are all but orthonormal, so that nothing is lost to squares [shifted
Cholesky QR, Fukaya et al. 2020]. With A = [Y_j τ_j] and columns of length one,

    R₁ᵀ R₁ = Aᵀ A + ε₁ ,    R₂ᵀ R₂ = (A R₁⁻¹)ᵀ (A R₁⁻¹) + ε₂ ,    R = R₂ R₁

What is zero in R is then 10⁻¹³, where the square root of rounding would be 10⁻⁸.
Householder's QR would be exact in one pass, but that of LAPACK, on threads of its own
that wait for one another, was found to take up to 500 times as long on busy cores.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, repeat
from threading import Lock

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
FIRST, SECOND = 1e-12, 1e-14  # ε₁ and ε₂: above the rounding of the sums


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

    def balance(self, of: np.ndarray) -> np.ndarray:
        """Numbers to multiply the joints' rows by, so that no unit of theirs matters.

        With the columns `of` then scaled to length one, an entry is as large in the
        rows of one joint as in those of another.
        """
        N = np.zeros((len(self.counts), self.size))
        for row, R, columns in zip(N, self.triangles, self.columns, strict=True):
            row[columns] = np.sum(R[:, :-1] ** 2, axis=0)
        N = N[:, of]
        some = 1e-28 * N.max() < N  # squares: not those of rounding
        scale = np.ones(len(N))
        for _ in range(20):  # to a per cent or so, which is enough
            d = scale @ N
            share = np.where(some, N / np.where(d > 0, d, 1), 0).sum(axis=1)
            scale = np.where(
                share > 0, some.sum(axis=1) / np.where(share > 0, share, 1), 0
            )
        return np.sqrt(scale)

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
    columns = visible_columns(model)
    program = _program(tuple(tuple(map(int, c)) for c in columns))
    total = 2 * sum(map(len, logs))
    with progress("Reading torques", total, "samples", show=show) as advance:
        gram = partial(_gram, in_double(model), program, logs, advance)
        triangles = _triangles(columns, gram)
    counts = np.sum([log.counts() for log in logs], axis=0)
    return Factor(triangles, columns, counts, 10 * model.n_links + 3 * model.nv)


def visible_columns(model: Model) -> tuple[np.ndarray, ...]:
    """Of every joint, the columns in which its row of the regressor may be not zero."""
    k, v, rows = 10 * model.n_links, model.nv, model.rows
    found = []
    for j, row in enumerate(np.argsort(rows.velocity)):
        links = np.flatnonzero(rows.tree.ancestry[row, list(rows.body)])
        own = [10 * i + c for i in links for c in range(10)]
        found.append(np.array([*own, *(k + s * v + j for s in range(3))]))
    return tuple(found)


def _triangles(columns, gram) -> tuple[np.ndarray, ...]:
    """R of every joint from `gram(S)`, which sums up (A S)ᵀ (A S) over the logs."""
    first = gram(tuple(np.eye(len(c) + 1) for c in columns))
    lengths = [np.sqrt(np.diagonal(G)) for G in first]
    R1 = []
    for G, d in zip(first, lengths, strict=True):
        d = np.where(d > 0, d, 1)
        R1.append(_root(G / np.outer(d, d), FIRST) * d)
    second = gram(tuple(np.linalg.inv(R) for R in R1))
    found = zip(second, R1, lengths, strict=True)
    return tuple((_root(G, SECOND) @ R) * (d > 0) for G, R, d in found)


def _root(G: np.ndarray, shift: float) -> np.ndarray:
    """R of Rᵀ R = G + shift."""
    return np.linalg.cholesky(G + shift * np.eye(len(G))).T


def _gram(model, program, logs, advance, S) -> list[np.ndarray]:
    """Chunks dealt out to the workers in turn, each of which has its own sums."""
    devices, lock = jax.local_devices(), Lock()
    nothing = tuple(np.zeros_like(x) for x in S)

    def work(me: int, all_of_us: int) -> tuple[np.ndarray, ...]:
        G, device = nothing, devices[me % len(devices)]
        with jax.enable_x64(True), jax.default_device(device):
            for number, chunk in enumerate(_chunks(logs)):
                if number % all_of_us == me:
                    G = jax.block_until_ready(program(model, S, G, *_padded(chunk)))
                    with lock:
                        advance(len(chunk[0]))
        return tuple(map(np.asarray, G))

    workers = min(WORKERS, sum(-(-len(log) // CHUNK) for log in logs))
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(work, range(workers), repeat(workers)))
    return [np.sum(G, axis=0) for G in zip(*parts, strict=True)]


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
    """G + (A S)ᵀ (A S) of every joint, compiled once for a robot's topology."""
    of_samples = jax.vmap(partial(regressor, joints=True), (None, 0, 0, 0))
    times = partial(jnp.matmul, precision="highest")

    @jax.jit
    def add(model, S, G, q, qd, qdd, tau, weight):
        Y = of_samples(model, q, qd, qdd)
        found = []
        for j, own in enumerate(columns):
            A = jnp.concatenate([Y[:, j, np.array(own)], tau[:, j, None]], axis=1)
            A = times(A * weight[:, j, None], S[j])
            found.append(G[j] + times(A.T, A))
        return tuple(found)

    return add
