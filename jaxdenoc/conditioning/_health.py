"""A robot's bill of health: what of it costs digits, and how many."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from .._errors import ModelError
from .._types import Position
from ..dynamics import (
    check_state,
    factorize,
    forward_dynamics,
    inverse_dynamics,
    mass_matrix,
)
from ..model import Model, neutral, random_state
from ._ratios import mass_matrix_diagonal

METHODS = ("recursive", "refined", "dense", "inverse")  # of what accuracy is told
NEAR_MASSLESS = 1e-6  # of the heaviest link
NO_PIVOT = 1e-12  # of the largest: nothing to move
FIT, ENOUGH = 1e-4, 1e-2  # errors of float32: for most work; for a rough look
HEALTHY, CARE, UNFIT = "healthy", "with care", "unfit"


@dataclass(frozen=True)
class Health:
    """What `jd.health` found; `print` it, or read the numbers."""

    name: str
    states: int  # looked at; every number is the worst over them
    condition_number: float  # κ of ℳ
    diagonal_ratio: float  # largest over smallest of its diagonal
    pivot_ratio: float  # largest over smallest D of U D Uᵀ
    smallest_pivot: float
    smallest_pivot_joint: str
    mass_spread: float  # heaviest over lightest link
    lightest_link: str
    heaviest_link: str
    length_spread: float  # longest over shortest distance from joint to joint
    massless: tuple[str, ...]  # links without mass
    near_massless: tuple[str, ...]  # with less than 1e-6 of the heaviest one's
    inconsistent: tuple[str, ...]  # links that no body can be like
    accuracy: dict[str, dict[str, float]]  # [dtype][method]: relative error to expect
    verdict: str  # "healthy", "with care" or "unfit"
    remarks: tuple[str, ...]  # why, and what to do

    @property
    def ok(self) -> bool:
        return self.verdict != UNFIT

    def __str__(self) -> str:
        rows = [f"{self.name}: {self.verdict}"]
        rows += [f"  {label}: {value}" for label, value in self.rows()]
        return "\n".join(rows + [f"- {remark}" for remark in self.remarks])

    def rows(self) -> list[tuple[str, str]]:
        """Labels and values, for a table."""
        light, heavy = self.lightest_link, self.heaviest_link
        errors = self.accuracy
        single, double = (
            ", ".join(f"{errors[kind][m]:.0e} {m}" for m in METHODS)
            for kind in ("float32", "float64")
        )
        return [
            ("condition number κ", f"{self.condition_number:.4g}"),
            ("largest over smallest of the diagonal", f"{self.diagonal_ratio:.4g}"),
            ("largest over smallest pivot", f"{self.pivot_ratio:.4g}"),
            (
                "smallest pivot",
                f"{self.smallest_pivot:.4g} at '{self.smallest_pivot_joint}'",
            ),
            ("spread of masses", f"{self.mass_spread:.4g} ('{heavy}' to '{light}')"),
            ("spread of lengths", f"{self.length_spread:.4g}"),
            ("error in float32", single),
            ("error in float64", double),
        ]


def health(
    model: Model,
    q: Position | None = None,
    *,
    states: int = 32,
    key: PRNGKeyArray | Array | None = None,
) -> Health:
    """How well the dynamics of this robot can be computed, and what stands in the way.

    At the neutral configuration and at random ones, `states` in all, or at `q`; the
    velocities and joint forces are random, the worst is told. `accuracy` holds relative
    errors, ‖error‖ / ‖value‖, of forward dynamics by U D Uᵀ ("recursive"), with
    refine=1 ("refined"), by mass matrix and Cholesky factor ("dense"), and of inverse
    dynamics. In float32 they are measured against float64; in float64 that of "dense"
    is measured against the recursion, and the others are those of float32 times the
    ratio of the types' precisions. Not for use inside `jit`.
    """
    if q is not None:
        check_state(model, q=q)
    if states < 1:
        raise ModelError(f"states is {states}; give 1 or more.")
    if isinstance(model.mass, jax.core.Tracer):
        raise ModelError("health looks at numbers, so it cannot be inside jit or vmap.")
    given = None if q is None else np.asarray(q, np.float64)
    with jax.enable_x64(True):
        model = _in_type(model, "float64")
        rows = _states(model, given, states, jax.random.key(0) if key is None else key)
        found = jt.map(np.asarray, _numbers(model, rows[0]))
        errors = _errors(model, rows)
    facts = _facts(model, found)
    verdict, remarks = _verdict(facts, errors["float32"])
    return Health(
        name=model.name,
        states=len(rows[0]),
        accuracy=errors,
        verdict=verdict,
        remarks=tuple(remarks),
        **facts,
    )


def _in_type(tree, dtype: str):
    return jt.map(
        lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree
    )


def _states(model: Model, q, number: int, key) -> tuple[Array, Array, Array]:
    """Rows of q, θ̇ and τ, the first of them neutral, or all at `q`."""
    keys = jax.random.split(key, number + 1)
    qs, qds = jax.vmap(lambda k: random_state(model, k))(keys[1:])
    qs = qs.at[0].set(neutral(model)) if q is None else jnp.broadcast_to(q, qs.shape)
    tau = jax.random.normal(keys[0], (number, model.nv), qs.dtype)
    scale = jax.vmap(partial(mass_matrix_diagonal, model))(qs)
    return qs, qds, tau * scale  # of accelerations about one


@jax.jit
def _numbers(model: Model, qs) -> tuple[Array, Array, Array]:
    """Eigenvalues, D and the diagonal of ℳ, one row a state."""

    def at(q):
        M = mass_matrix(model, q)
        return jnp.linalg.eigvalsh(M), factorize(model, q).D, jnp.diagonal(M)

    return jax.vmap(at)(qs)


@jax.jit
def _results(model: Model, q, qd, tau) -> dict[str, Array]:
    def at(q, qd, tau):
        run = partial(forward_dynamics, model, q, qd, tau)
        return {
            "recursive": run(),
            "refined": run(refine=1),
            "dense": run(method="dense"),
            "inverse": inverse_dynamics(model, q, qd, tau),
        }

    return jax.vmap(at)(q, qd, tau)


def _errors(model: Model, rows) -> dict[str, dict[str, float]]:
    """Of each type and method, the largest relative error over the states."""
    single = _in_type((model, *rows), "float32")
    double = jt.map(np.asarray, _results(*_in_type(single, "float64")))  # same inputs
    known = double | {"refined": double["recursive"], "dense": double["recursive"]}
    found = jt.map(lambda x: np.asarray(x, np.float64), _results(*single))
    errors = {m: _apart(found[m], known[m]) for m in METHODS}
    digits = float(jnp.finfo("float64").eps / jnp.finfo("float32").eps)
    expected = {m: e * digits for m, e in errors.items()}
    expected["dense"] = _apart(double["dense"], known["dense"])
    return {"float32": errors, "float64": expected}


def _apart(found, known) -> float:
    with np.errstate(all="ignore"):
        size = np.linalg.norm(known, axis=1)
        e = np.linalg.norm(found - known, axis=1) / np.where(size > 0, size, 1)
    return float(np.max(np.where(np.isfinite(e), e, np.inf)))


def _facts(model: Model, found) -> dict[str, Any]:
    eigenvalues, D, diagonal = found
    low, high = eigenvalues[:, 0], eigenvalues[:, -1]
    kappa = np.where(low > 0, high / np.where(low > 0, low, 1), np.inf)
    mass, names = np.asarray(model.mass), model.link_names
    some = np.where(mass > 0, mass, np.inf)
    heaviest, lightest = int(np.argmax(mass)), int(np.argmin(some))
    steps = np.linalg.norm(np.asarray(model.placement.translation), axis=1)
    lengths = steps[(np.asarray(model.parent) >= 0) & (steps > 0)]
    D = np.where(np.isnan(D), np.inf, D)  # that is what a zero makes of those inboard
    worst = np.unravel_index(np.argmin(D), D.shape)
    return {
        "condition_number": float(np.max(kappa)),
        "diagonal_ratio": _spread(diagonal),
        "pivot_ratio": _spread(D),
        "smallest_pivot": float(D[worst]),
        "smallest_pivot_joint": model.velocity_names[int(worst[1])],
        "mass_spread": float(mass[heaviest] / some[lightest]),
        "lightest_link": names[lightest],
        "heaviest_link": names[heaviest],
        "length_spread": float(max(lengths, default=1.0) / min(lengths, default=1.0)),
        "massless": _named(names, mass == 0),
        "near_massless": _named(
            names, (mass > 0) & (mass < NEAR_MASSLESS * mass[heaviest])
        ),
        "inconsistent": _named(names, ~_possible(np.asarray(model.inertia))),
    }


def _possible(inertia) -> np.ndarray:
    """Whether no moment is more than the two others together; equal is a thin rod."""
    moments = np.linalg.eigvalsh(inertia)
    size = np.sum(np.abs(moments), axis=1)
    return np.sum(moments, axis=1) - 2 * moments[:, 2] >= -1e-9 * size


def _spread(rows) -> float:
    low, high = np.min(rows, axis=1), np.max(rows, axis=1)
    return float(np.max(np.where(low > 0, high / np.where(low > 0, low, 1), np.inf)))


def _named(names: tuple[str, ...], which) -> tuple[str, ...]:
    return tuple(name for name, yes in zip(names, which, strict=True) if yes)


def _verdict(facts: dict[str, Any], error: dict[str, float]) -> tuple[str, list[str]]:
    """The worst that is found decides; every finding is a sentence."""
    found: list[tuple[str, str]] = []

    def say(grade: str, text: str) -> None:
        found.append((grade, text))

    if not facts["pivot_ratio"] < 1 / NO_PIVOT:
        joint = facts["smallest_pivot_joint"]
        say(
            UNFIT,
            f"'{joint}' has next to nothing to move: give the links beyond it mass, "
            "the joint an armature, or lock it with jd.lock.",
        )
    for link in facts["inconsistent"]:
        say(
            UNFIT,
            f"Link '{link}' has an inertia that no body has: correct it, or take "
            "jd.nearest_consistent.",
        )
    if facts["massless"]:
        say(HEALTHY, f"Without mass: {_list(facts['massless'])}. The recursion can do "
            "that, method='parallel' cannot.")  # fmt: skip
    if facts["near_massless"]:
        say(HEALTHY, f"With less than a millionth of the heaviest link's mass: "
            f"{_list(facts['near_massless'])}. Is that meant?")  # fmt: skip
    best = min(error["recursive"], error["refined"])
    how = "refine=1" if error["refined"] < error["recursive"] / 3 else "the recursion"
    if best <= FIT:
        say(HEALTHY, f"float32 is good for {_digits(best)} digits, by {how}.")
    elif best <= ENOUGH:
        say(CARE, f"float32 is good for {_digits(best)} digits only, by {how}: enough "
            "for a rough look, float64 for the rest.")  # fmt: skip
    else:
        say(CARE if best * 1e-9 < FIT else UNFIT, "float32 is not enough: use float64.")
    if error["dense"] > 100 * best:
        say(HEALTHY, "The mass matrix and its Cholesky factor lose "
            f"{_lost(error['dense'], best)}: solve with factorize or method="
            "'recursive'.")  # fmt: skip
    order = (HEALTHY, CARE, UNFIT)
    verdict = max((grade for grade, _ in found), key=order.index)
    return verdict, [text for _, text in found]


def _list(names: tuple[str, ...]) -> str:
    quoted = [f"'{name}'" for name in names]
    more = f" and {len(quoted) - 5} more" if len(quoted) > 5 else ""
    return ", ".join(quoted[:5]) + more


def _digits(error: float) -> int:
    return int(-np.log10(max(error, 1e-16)))


def _lost(error: float, best: float) -> str:
    if not np.isfinite(error) or error > 0.1:
        return "all digits in float32"
    return f"{round(np.log10(error / max(best, 1e-16)))} digits more"
