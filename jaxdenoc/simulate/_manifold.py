"""A free base in time: the steps of any solver, taken in charts.

A step that begins at q_n looks for a twist δ(t) in place of q(t) [Munthe-Kaas]:

    q = q_n exp(δ) ,   δ(t_n) = 0 ,   q_{n+1} = q_n exp(δ(t_{n+1}))

δ lives in a vector space, where a solver of any kind is at home, and the quaternion is
a unit one because exp makes no other. Only `simulate` imports this module, for diffrax
takes its time to import.
"""

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Position
from ..model import Model, difference, integrate, neutral

_WIDEST = 2.0  # radians in a step; a chart ends at π


class InChart(diffrax.AbstractTerm):
    """The rates of (δ, x) where `term` has those of (q, x), in the chart at `origin`.

    The rate of δ is that of q through the differential of `difference`: dexp⁻¹.
    """

    term: diffrax.AbstractTerm
    model: Model
    origin: Position

    def vf(self, t, y, args):
        delta, x = y
        q = integrate(self.model, self.origin, delta)
        q_rate, x_rate = self.term.vf(t, (q, x), args)

        def chart(q):
            return difference(self.model, self.origin, q)

        return jax.jvp(chart, (q,), (q_rate,))[1], x_rate

    def contr(self, t0, t1, **kwargs):
        return self.term.contr(t0, t1, **kwargs)

    def prod(self, vf, control):
        return self.term.prod(vf, control)


class InChartInterpolation(diffrax.AbstractLocalInterpolation):
    """What a solver interpolates is δ; q is made of it."""

    t0: Float[Array, ""]
    t1: Float[Array, ""]
    inner: diffrax.AbstractLocalInterpolation
    model: Model
    shift: Position  # of the chart's origin from the neutral configuration

    def evaluate(self, t0, t1=None, left=True):
        if t1 is not None:
            return jax.tree.map(jnp.subtract, self.evaluate(t1), self.evaluate(t0))
        delta, x = self.inner.evaluate(t0, left=left)
        return integrate(self.model, neutral(self.model) + self.shift, delta), x


class OnManifold(diffrax.AbstractAdaptiveSolver, diffrax.AbstractWrappedSolver):
    """`solver`, for a state (q, x) whose q is a configuration of `model`."""

    solver: diffrax.AbstractSolver
    model: Model

    @property
    def term_structure(self):  # type: ignore[override]
        return self.solver.term_structure

    @property
    def interpolation_cls(self):  # type: ignore[override]
        def make(*, t0, t1, shift, inner):
            inner = self.solver.interpolation_cls(t0=t0, t1=t1, **inner)
            return InChartInterpolation(t0, t1, inner, self.model, shift)

        return make

    @property
    def root_finder(self):  # where diffrax puts the tolerances of implicit solvers
        return self.solver.root_finder  # type: ignore[attr-defined]

    @property
    def root_find_max_steps(self):
        return self.solver.root_find_max_steps  # type: ignore[attr-defined]

    def order(self, terms):
        return self.solver.order(terms)

    def error_order(self, terms):
        return self.solver.error_order(terms)

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, args)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(*self._in_chart(terms, t0, t1, y0), args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """A step in the chart at y0.

        Every chart is a new one, so what a solver kept of the last is not for this: it
        hears of a jump. The error is carried from δ to q, which it is measured by.
        """
        q0, _ = y0
        (delta, x), error, dense, state, result = self.solver.step(
            *self._in_chart(terms, t0, t1, y0), args, solver_state, made_jump=True
        )

        def place(delta):
            return integrate(self.model, q0, delta)

        assert error is not None  # `simulate` takes adaptive solvers only
        q, q_error = jax.jvp(place, (delta,), (error[0],))
        wide = delta[:3] @ delta[:3] > _WIDEST**2
        error = jnp.where(wide, jnp.inf, q_error), error[1]
        # from the neutral configuration, because diffrax begins with zeros, and a zero
        # quaternion would spoil the derivatives
        dense = {"shift": q0 - neutral(self.model), "inner": dense}
        return (q, x), error, dense, state, result

    def _in_chart(self, terms, t0, t1, y0):
        q0, x0 = y0
        chart = InChart(terms, self.model, q0)
        return chart, t0, t1, (jnp.zeros(self.model.nv, q0.dtype), x0)
