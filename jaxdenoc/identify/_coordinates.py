"""Coordinates in which a search is free, and which parameters they stand for.

    a whole link        log-Cholesky [MATH 11] of 𝒰₀⁻¹ 𝒥 𝒰₀⁻ᵀ , 𝒥₀ = 𝒰₀ 𝒰₀ᵀ the prior's
    some of a link      steps from the prior, bent back inside the bodies (`_gauge.py`)
    of a joint          x = w (θ/2)² , w the usual size: never negative
    of a placement      hundredths of a radian and of the usual length
    not physical        x = x₀ + w θ

A step of one is about a factor e for all but placements: of masses and moments, of what
a joint has; a mass centre moves by the radius of gyration about √2. Seen from the prior
body no unit and no frame matters, and ½ ‖θ‖² is Burg's distance to second order, that
of `_interior.py`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model import (
    Model,
    from_log_cholesky,
    from_pseudo_inertia,
    log_cholesky,
    pseudo_inertia,
    with_inertial_parameters,
)
from ..spatial import _quaternion as quaternion
from ._gauge import inside
from ._parameters import AT_JOINTS, all_values, in_double, typical
from ._selection import Selection

THIN = 1e-6  # of 𝒥 in units of the link: a thousandth as thick as long is no body
FLOOR = 1e-3  # which is then made some thirtieth
UNITS = np.array([0.5] * 4 + [0.5**0.5] * 6)  # of log-Cholesky
LEAST = 1e-2  # of a joint's numbers, in usual sizes: to begin with
PLACEMENT = 1e-2

Theta = Float[Array | np.ndarray, " p"]


class Coordinates(eqx.Module):
    """θ of a model's free parameters: where they start, and what they make of it."""

    model: Model  # the prior, in double precision
    x0: np.ndarray  # of all columns
    start: np.ndarray  # θ₀, of whole links, of others, of joints, plain, of placements
    units: np.ndarray  # what a step of one in θ is
    roots: np.ndarray  # 𝒰₀ of whole links
    whole: tuple[int, ...] = eqx.field(static=True)
    some: tuple[int, ...] = eqx.field(static=True)  # columns
    joints: tuple[int, ...] = eqx.field(static=True)  # columns
    plain: tuple[int, ...] = eqx.field(static=True)  # columns
    places: tuple[int, ...] = eqx.field(static=True)

    def values(self, theta: Theta) -> Float[Array, " k"]:
        """The parameters of all columns."""
        x = jnp.asarray(self.x0)
        step = theta * self.units
        links, some, joints, plain, _ = self._parts(step)
        if self.whole:
            ten = jax.vmap(_seen_from)(jnp.asarray(self.roots), links.reshape(-1, 10))
            at = 10 * np.array(self.whole)[:, None] + np.arange(10)
            x = x.at[at].set(ten)
        for i in sorted({c // 10 for c in self.some}):
            own = [k for k, c in enumerate(self.some) if c // 10 == i]
            u = jnp.zeros(10).at[np.array([self.some[k] % 10 for k in own])]
            pi = jnp.asarray(self.x0[10 * i : 10 * i + 10])
            there = inside(pi, u.set(some[np.array(own)]))
            at = np.array([self.some[k] for k in own])
            x = x.at[at].set(there[at - 10 * i])
        if self.joints:  # √units of θ, so that it is w (θ/2)²
            x = x.at[np.array(self.joints)].set((joints / 2) ** 2)
        if self.plain:
            at = np.array(self.plain)
            x = x.at[at].set(self.x0[at] + plain)
        return x

    def offsets(self, theta: Theta) -> Float[Array, "n 6"]:
        """Of every joint's placement, the turn and the shift."""
        six = jnp.zeros(6 * self.model.n_links)
        if self.places:
            at = np.array(self.places)
            six = six.at[at].set(self._parts(theta * self.units)[-1])
        return six.reshape(-1, 6)

    def robot(self, theta: Theta) -> Model:
        """The prior with all that θ says, to be simulated."""
        x, n, v = self.values(theta), self.model.n_links, self.model.nv
        model = with_inertial_parameters(self.model, x[: 10 * n].reshape(n, 10))
        joints = jnp.split(x[10 * n :], [v, 2 * v])
        model = eqx.tree_at(lambda m: [getattr(m, s) for s in AT_JOINTS], model, joints)
        return moved(model, self.offsets(theta)) if self.places else model

    def _parts(self, theta):
        sizes = 10 * len(self.whole), *map(len, (self.some, self.joints, self.plain))
        return jnp.split(theta, np.cumsum(sizes))


def moved(model: Model, offsets) -> Model:
    """Every joint turned in its own axes, and shifted in its parent's.

    R = R₀ exp(r̃) ,   t = t₀ + s
    """

    def turned(R, r):
        turn, _ = quaternion.exponential(r, jnp.zeros_like(r))
        return jnp.matmul(R, quaternion.rotation(turn), precision="highest")

    place = model.placement
    R = jax.vmap(turned)(jnp.asarray(place.rotation), offsets[:, :3])
    t = place.translation + offsets[:, 3:]
    return eqx.tree_at(
        lambda m: (m.placement.rotation, m.placement.translation), model, (R, t)
    )


def coordinates(
    model: Model, chosen: Selection, physical: bool
) -> tuple[Coordinates, Selection, list[str]]:
    """Of what was chosen; what of it is free; and what is to be said of that."""
    x0, w = all_values(model), typical(model)
    columns, k = chosen.parameters.columns, 10 * model.n_links
    remarks: list[str] = []
    whole: list[int] = []
    units: list[np.ndarray] = []
    start: list[np.ndarray] = []
    roots = [np.zeros((0, 4, 4))]
    some = np.zeros(0, int)
    if physical:
        links, counts = np.unique(columns[columns < k] // 10, return_counts=True)
        whole = links[counts == 10].tolist()
        for i in whole:
            own = slice(10 * i, 10 * i + 10)
            x0[own] = _raised(x0[own], w[own], model.link_names[i], remarks)
            roots.append(_root(x0[own]))
            start.append(np.zeros(10))
            units.append(UNITS)
        held = [i for i in links[counts < 10] if not _is_body(x0[10 * i :][:10])]
        for i in held:
            remarks.append(
                f"Link '{model.link_names[i]}' is no body in the model, and only some "
                "of its parameters are free: it is held."
            )
        chosen = chosen.without(10 * np.array(held)[:, None] + np.arange(10))
        columns = chosen.parameters.columns
        some = columns[(columns < k) & ~np.isin(columns // 10, whole)]
    joints = columns[columns >= k] if physical else columns[:0]
    plain = columns[:0] if physical else columns
    root = np.sqrt(w[joints])
    low = x0[joints] < LEAST * root**2
    if low.any():
        names = [chosen.parameters.names[list(columns).index(c)] for c in joints[low]]
        remarks.append(f"Zero in the model, begun a bit above it: {', '.join(names)}.")
    x0[joints] = np.where(low, LEAST * root**2, x0[joints])
    length = _length(model)
    of_places = PLACEMENT * np.where(chosen.places % 6 < 3, 1.0, length)
    start += [np.zeros(len(some)), 2 * np.sqrt(x0[joints]) / root]
    start += [np.zeros(len(plain) + len(chosen.places))]
    units += [w[some], root, w[plain], of_places]
    found = Coordinates(
        *(in_double(model), x0, np.concatenate(start), np.concatenate(units)),
        np.concatenate([roots[0], *(U[None] for U in roots[1:])]),
        whole=tuple(whole),
        some=tuple(some.tolist()),
        joints=tuple(joints.tolist()),
        plain=tuple(plain.tolist()),
        places=tuple(chosen.places.tolist()),
    )
    return found, chosen, remarks


def _seen_from(U: Float[Array, "4 4"], theta: Float[Array, "10"]):
    """π of 𝒥 = 𝒰₀ 𝒥(θ) 𝒰₀ᵀ."""
    half = U @ pseudo_inertia(from_log_cholesky(theta))
    return from_pseudo_inertia(half @ U.T)


def _root(pi: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.linalg.cholesky(np.asarray(pseudo_inertia(pi)))


def of_body(U: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """θ for which `_seen_from` gives π."""
    half = np.linalg.inv(U)
    with jax.enable_x64(True):
        J = half @ np.asarray(pseudo_inertia(pi)) @ half.T
        return np.asarray(log_cholesky(from_pseudo_inertia(J)))


def _is_body(pi: np.ndarray) -> bool:
    with jax.enable_x64(True):
        return bool(np.linalg.eigvalsh(np.asarray(pseudo_inertia(pi)))[0] > 0)


def _raised(pi, w, name: str, remarks: list[str]) -> np.ndarray:
    """The nearest body that is thick enough, in units of the link's size."""
    unit = np.sqrt(np.array([w[4]] * 3 + [w[0]]))
    with jax.enable_x64(True):
        J = np.asarray(pseudo_inertia(pi)) / np.outer(unit, unit)
        values, Q = np.linalg.eigh(J)
        if values[0] >= THIN:
            return pi
        J = (Q * np.maximum(values, FLOOR)) @ Q.T * np.outer(unit, unit)
        remarks.append(
            f"Link '{name}' is too thin to be a body in the model, or without mass: "
            "begun from the nearest one."
        )
        return np.asarray(from_pseudo_inertia(J))


def _length(model: Model) -> float:
    apart = np.linalg.norm(np.asarray(model.placement.translation, float), axis=1)
    return float(apart[apart > 0].mean()) if apart.any() else 1.0
