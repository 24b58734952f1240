"""Base parameters: what torques can show of a robot's parameters, and in which sums.

The columns of the regressor are linearly dependent whatever the motion. With r of them
chosen that are independent, and K the others in terms of these,

    Y = [Y_1  Y_2] ,  Y_2 = Y_1 K ,    Y π = Y_1 (π_1 + K π_2) = Y_1 β

so that torques show the r base parameters β = π_1 + K π_2 and nothing else. All is
worked out from the triangle of the stacked regressor (`_factor.py`), each column of it
scaled to length one, so that no unit matters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from warnings import warn

import numpy as np

from .._errors import ModelError, ModelWarning
from .._types import Numbers
from ..model import Model
from ._columns import slides
from ._factor import Factor, factorized, triangle
from ._measurements import Measurements
from ._parameters import Parameters, parameters_of

TOLERANCE = 1e-9  # of singular values of scaled columns, to the largest
CLEAR = 100.0  # the gap at the rank that leaves no doubt
EARLY = 0.03  # the part of a column that must be new for it to be chosen in its turn
ROUNDING = 1e-10  # of entries of K for scaled columns
FEW = 1e-4  # entries that words leave out


@dataclass(frozen=True)
class BaseParameters:
    """Which combinations of a robot's parameters torques can show.

    parameters      all that were looked at, with their names
    independent     which of them stand for the base parameters, π_1
    combination     (rank, k): β = combination @ π, [1 K] with the columns in order
    singular_values of the regressor with columns of length one
    condition       of the normal matrix of the independent columns, of length one
    gap             by how much singular values fall at the rank
    """

    parameters: Parameters
    independent: np.ndarray
    combination: np.ndarray
    lengths: np.ndarray  # of all columns
    singular_values: np.ndarray
    condition: float

    @property
    def rank(self) -> int:
        return len(self.independent)

    @property
    def gap(self) -> float:
        """Infinite where all parameters can be seen."""
        s, r = self.singular_values, self.rank
        return float(s[r - 1] / max(s[r], 1e-300)) if r < len(s) else np.inf

    @property
    def names(self) -> tuple[str, ...]:
        """Every base parameter in words: "link3.m·cx + 0.316·link4.m"."""
        return tuple(self.words(i) for i in range(self.rank))

    @property
    def invisible(self) -> tuple[str, ...]:
        """The parameters that no torque depends on."""
        names = self.parameters.names
        return tuple(names[c] for c in np.flatnonzero(~self.combination.any(axis=0)))

    @cached_property
    def nullspace(self) -> np.ndarray:
        """(k, k - rank), orthonormal: changes of π that change no torque."""
        k = len(self.parameters)
        others = np.setdiff1d(np.arange(k), self.independent)
        N = np.zeros((k, len(others)))
        N[self.independent] = -self.combination[:, others]
        N[others, np.arange(len(others))] = 1
        return np.linalg.qr(N)[0]

    def alone(self) -> np.ndarray:
        """Of every parameter, whether torques show it by itself, not only in a sum.

        It is then one that no change in the null space touches.
        """
        one = np.count_nonzero(self.combination, axis=1) == 1
        found = np.zeros(len(self.parameters), bool)
        found[self.independent] = one
        return found

    def project(self, pi: Numbers) -> np.ndarray:
        """The base parameters β of parameters π, or of rows of them."""
        pi = np.asarray(pi, float)
        if pi.shape[-1:] != (len(self.parameters),):
            raise ModelError(
                f"pi has shape {pi.shape}, but there are {len(self.parameters)} "
                "parameters: give a number for each, in the order of their names."
            )
        return pi @ self.combination.T

    def words(self, i: int, digits: int = 3, least: float = FEW) -> str:
        """Base parameter i, without what makes no more than `least` of its torque."""
        row, own = self.combination[i], self.independent[i]
        share = np.abs(row) * self.lengths[own]  # of torque, beside that of the column
        whole = np.where(self.lengths > 0, self.lengths, 1)
        others = [c for c in np.flatnonzero(share > least * whole) if c != own]
        text = self.parameters.names[own]
        for c in others:
            size = f"{abs(row[c]):.{digits}g}"
            factor = "" if size == "1" else f"{size}·"
            sign = "+" if row[c] > 0 else "-"
            text += f" {sign} {factor}{self.parameters.names[c]}"
        return text

    def describe(self) -> str:
        """All of it in words, one base parameter a line."""
        k, unseen = len(self.parameters), self.invisible
        lines = [
            f"{self.rank} base parameters of {k}; condition number of the normal "
            f"matrix {self.condition:.2g}",
            *(f"  {name}" for name in self.names),
        ]
        if unseen:
            lines += ["no torque depends on", f"  {', '.join(unseen)}"]
        return "\n".join(lines)


def base_parameters(
    model: Model,
    data: Factor | Measurements | Iterable[Measurements] | None = None,
    *,
    joints: bool | Iterable[str] = True,
    noise: Numbers | None = None,
    tolerance: float = TOLERANCE,
) -> BaseParameters:
    """Which combinations of the parameters the data can see; of the robot, if no data.

    Without data these are the combinations that any motion at all can show: random
    positions, within limits or not, rates and accelerations. With data, fewer may be
    left, since a motion that is poor shows less. Parameters are the ten of every link,
    and of every joint those that `joints` names, of "armature", "damping", "friction".
    `noise` is the standard deviation of every joint's torque, by which rows are divided
    for the `condition`; if it is not given, rows are scaled so that no joint outweighs
    another.

    Numbers smaller than `tolerance` beside the largest are taken for zero. A warning
    says so where there is no clear gap.
    """
    names = joints if isinstance(joints, bool | str) else tuple(joints)
    parameters = parameters_of(model, names)
    if data is None:
        data = [_random_motion(model)]
    factor = data if isinstance(data, Factor) else factorized(model, data)
    if noise is None:
        scale = factor.balance(parameters.columns)
    else:
        scale = 1 / np.asarray(noise, float)
    return analysed(parameters, factor.rows(scale)[0], tolerance)


def analysed(parameters: Parameters, A: np.ndarray, tolerance: float) -> BaseParameters:
    """The base parameters of regressor rows, given for all columns there are."""
    A = A[:, parameters.columns]
    lengths = np.linalg.norm(A, axis=0)
    lengths[lengths <= tolerance * _usual(parameters, lengths)] = 0
    seen = np.flatnonzero(lengths)
    if not len(seen):
        raise ModelError("The torques show none of the parameters: the data are empty.")
    unit = triangle(A[:, seen] / lengths[seen])
    s = np.linalg.svd(unit, compute_uv=False)
    rank = int(np.sum(s > tolerance * s[0]))
    chosen = _independent(unit, rank)
    Q, R = np.linalg.qr(unit[:, chosen])
    K = np.linalg.solve(R, Q.T @ unit)
    K[np.abs(K) < max(ROUNDING, 1e-14 * s[0] / s[rank - 1])] = 0
    K[:, chosen] = np.eye(rank)
    independent = seen[chosen]
    combination = np.zeros((rank, len(parameters)))
    combination[:, seen] = K * lengths[seen] / lengths[independent][:, None]
    condition = float(np.linalg.cond(R)) ** 2
    zeros = np.zeros(len(parameters) - len(s))
    found = BaseParameters(
        *(parameters, independent, combination, lengths),
        *(np.concatenate([s, zeros]), condition),
    )
    _warn_if_in_doubt(s, rank)
    return found


def _usual(parameters: Parameters, lengths: np.ndarray) -> np.ndarray:
    """Of every column, the longest one of its unit: m, m c, I, or one of the joints."""
    kind = [name.rpartition(".")[2] for name in parameters.names]
    unit = np.array(
        [s[0] if s[0] == "I" else s.partition("·")[::2][1][:1] or s for s in kind]
    )
    longest = {u: lengths[unit == u].max() for u in set(unit)}
    return np.array([longest[u] for u in unit])


def _independent(unit: np.ndarray, rank: int) -> np.ndarray:
    """Columns that span all of them, in their order.

    QR with pivots: a column is taken in its turn, from the base outward, if a good part
    of it is new, so that sums are those of outer links' parameters with inner ones', as
    in a book; and what is still missing is taken by the largest new part, which is the
    usual rule of pivots.
    """
    left, chosen = unit.copy(), []

    def take(c):
        q = left[:, c] / np.linalg.norm(left[:, c])
        left[:] -= np.outer(q, q @ left)
        left[:, c] = 0
        chosen.append(c)

    for c in range(unit.shape[1]):
        if len(chosen) < rank and np.linalg.norm(left[:, c]) > EARLY:
            take(c)
    while len(chosen) < rank:
        take(int(np.argmax(np.sum(left**2, axis=0))))
    return np.sort(chosen)


def _random_motion(model: Model) -> Measurements:
    """States of any kind, as many as leave no combination unseen by chance.

    What slides goes as far as the robot's joints lie apart, about.
    """
    rng = np.random.default_rng(0)
    apart = np.linalg.norm(np.asarray(model.placement.translation, float), axis=1)
    length = float(apart[apart > 0].mean()) if apart.any() else 1.0
    far = np.where(slides(model, "q"), length, np.pi)
    unit = np.where(slides(model, "qd"), length, 1.0)
    count = 64 + 8 * model.n_links
    q = rng.uniform(-1, 1, (count, model.nq)) * far
    if model.floating_base:
        p = rng.normal(size=(count, 4))
        q[:, 3:7] = p / np.linalg.norm(p, axis=1, keepdims=True)
    qd, qdd = rng.normal(size=(2, count, model.nv)) * unit
    return Measurements(np.arange(count), q, 2 * qd, 6 * qdd, np.zeros_like(qd))


def _warn_if_in_doubt(s: np.ndarray, rank: int) -> None:
    if rank < len(s) and s[rank - 1] < CLEAR * s[rank]:
        warn(
            f"It is not clear how many base parameters there are: {rank}, as singular "
            f"value {rank} is {s[rank - 1]:.1e} and the next {s[rank]:.1e}, beside a "
            f"largest of {s[0]:.1e}. Give a tolerance between two that are far apart, "
            "or data of a richer motion.",
            ModelWarning,
            stacklevel=3,
        )
