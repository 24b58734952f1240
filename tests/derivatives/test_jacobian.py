"""J̇, ∂J/∂q_k and J̇θ̇ in closed form: MATH 1.3, 2, 10.2."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from jaxtyping import TypeCheckError

import jaxdenoc as jd
from jaxdenoc.model import links_of

from ..support.oracle import Oracle
from ..support.robots import ALL, state

cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted")
AXES = {"body": pin.LOCAL, "base": pin.LOCAL_WORLD_ALIGNED}
ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
MODES = jax.jacfwd, jax.jacrev
SEEDS = range(3)
# the link that has the tool: behind every kind of joint in one of the robots, and with
# joints that do not move it before, after and beside it in the order of links
HOSTS = {"one_link": 0, "mixed_chain": 4, "tree": 4, "free_tree": 2}


def robot(name):
    """One of the robots with a frame on a link, and one on the base."""
    links = links_of(ALL[name]())
    c, s = np.cos(0.7), np.sin(0.7)
    place = {
        "rotation": np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "translation": (0.3, -0.2, 0.5),
    }
    tool = jd.Link("tool", links[HOSTS[name]].name, "fixed", **place)
    return jd.build([*links, tool, jd.Link("bench", kind="fixed", **place)])


def closed_forms(model, q, qd, link, axes):
    return (
        jd.jacobian_rate(model, q, qd, link, axes=axes),
        jd.jacobian_derivatives(model, q, link, axes=axes),
        jd.bias_acceleration(model, q, qd, link, axes=axes),
    )


class Case(NamedTuple):
    """What is found for the tool of a robot, in a batch of states."""

    model: jd.Model
    axes: str
    q: np.ndarray
    qd: np.ndarray
    rate: np.ndarray
    slopes: np.ndarray
    bias: np.ndarray


@pytest.fixture(scope="module", params=ALL)
def cases(request, link_by_link, interpreted):
    """In both axes: one program for each robot, which takes all states at a time."""
    model = robot(request.param)
    q, qd, _ = map(jnp.stack, zip(*(state(model, s) for s in SEEDS), strict=True))

    @jax.jit
    @jax.vmap
    def found(q, qd):
        return [closed_forms(model, q, qd, "tool", axes) for axes in AXES]

    return [
        Case(model, axes, *map(np.array, (q, qd, *arrays)))
        for axes, arrays in zip(AXES, found(q, qd), strict=True)
    ]


def close(a, b, tolerance=1e-12):
    assert np.shape(a) == np.shape(b)
    return np.abs(a - b).max() < tolerance * max(np.abs(b).max(), 1.0)


@cites("J̇ = Σ_k ∂J/∂q_k θ̇_k")
def test_rate_is_the_derivative_along_the_velocity(cases):
    for case in cases:
        along = np.einsum("skaj,sk->saj", case.slopes, case.qd)
        assert close(case.rate, along)
        assert close(case.bias, np.einsum("saj,sj->sa", along, case.qd))


class Theirs(Oracle):
    """Pinocchio's derivatives of the Jacobian of the tool, and its acceleration."""

    def __init__(self, model):
        super().__init__(model)
        k = model.frame_names.index("tool")
        R, t = (np.array(x[k]) for x in jax.tree.leaves(model.frame_placement))
        host = self.joints[model.frame_links[k]]
        tool = pin.Frame("tool", host, pin.SE3(R, t), pin.FrameType.OP_FRAME)
        self.tool = self.pin.addFrame(tool)
        self.data = self.pin.createData()

    def of_tool(self, get, axes):
        pin.updateFramePlacements(self.pin, self.data)
        return get(self.pin, self.data, self.tool, AXES[axes])

    def rate(self, q, qd, axes):
        q, v = self.configuration(q), self.velocity(qd)
        pin.computeJointJacobiansTimeVariation(self.pin, self.data, q, v)
        rate = self.of_tool(pin.getFrameJacobianTimeVariation, axes)
        return np.reshape(rate, (6, -1))[ANGULAR_FIRST][:, self.v]

    def slopes(self, q, axes):
        pin.computeJointJacobians(self.pin, self.data, self.configuration(q))
        pin.computeJointKinematicHessians(self.pin, self.data)
        slopes = self.of_tool(pin.getFrameKinematicHessian, axes)
        # its shape says (6, j, k), but in memory the numbers run the other way round
        nv = self.pin.nv
        slopes = np.ravel(slopes, order="K").reshape(nv, nv, 6)
        return slopes[np.ix_(self.v, self.v, ANGULAR_FIRST)].transpose(0, 2, 1)

    def bias(self, q, qd, axes):
        """The rate of the twist's numbers: spatial in the axes that turn along."""
        q, v = self.configuration(q), self.velocity(qd)
        pin.forwardKinematics(self.pin, self.data, q, v, 0 * v)
        spatial, classical = pin.getFrameAcceleration, pin.getFrameClassicalAcceleration
        a = self.of_tool(spatial if axes == "body" else classical, axes)
        return np.r_[a.angular, a.linear]


@cites("MATH 10.2: Ṡ_j = crm(V_j) S_j", "MATH 1.3: Ẋ = -crm(V) X")
def test_against_pinocchio(cases):
    for case in cases:
        theirs = Theirs(case.model)
        for s in SEEDS:
            q, qd = case.q[s], case.qd[s]
            assert close(case.rate[s], theirs.rate(q, qd, case.axes))
            assert close(case.slopes[s], theirs.slopes(q, case.axes))
            assert close(case.bias[s], theirs.bias(q, qd, case.axes))


@pytest.fixture(scope="module")
def free(link_by_link):
    model = robot("free_tree")
    return model, *state(model)[:2]


@cites("MATH 1.4: ∂/∂q_k of a free base, along qd_k", "∂J/∂q_k against autodiff")
@pytest.mark.parametrize("axes", AXES)
def test_derivatives_are_those_of_the_jacobian(free, axes):
    model, q, _ = free

    @jax.jit
    def both(q):
        def moved(dq):
            return jd.jacobian(model, jd.integrate(model, q, dq), "tool", axes=axes)

        slopes = jax.jacfwd(moved)(jnp.zeros(model.nv))
        return jd.jacobian_derivatives(model, q, "tool", axes=axes), slopes

    found, want = both(q)
    assert close(found, np.moveaxis(want, -1, 0))


@cites("J̇ against central differences")
def test_rate_is_that_of_the_numbers(free):
    model, q, qd = free
    link = model.n_links - 1

    def J(t):
        return jd.jacobian(model, jd.integrate(model, q, t * qd), link, axes="base")

    h = 1e-5
    slope = (J(h) - J(-h)) / (2 * h)
    assert close(jd.jacobian_rate(model, q, qd, link, axes="base"), slope, 1e-8)


@cites("MATH 1.4: H of a free base is 1₆ in body axes")
def test_a_free_base_has_constant_axes(free):
    model, q, qd = free
    assert not jd.jacobian_derivatives(model, q, 0).any()
    assert not jd.bias_acceleration(model, q, qd, 0).any()


def test_frames_on_the_base_do_not_move(free):
    model, q, qd = free
    for place in "bench", "base", -1:
        rate, slopes, bias = closed_forms(model, q, qd, place, "base")
        assert rate.shape == (6, model.nv) and not rate.any()
        assert slopes.shape == (model.nv, 6, model.nv) and not slopes.any()
        assert bias.shape == (6,) and not bias.any()


@cites("∂(J̇θ̇)/∂θ̇_k = J̇_k + ∂J/∂q_k θ̇", "∂J̇/∂θ̇_k = ∂J/∂q_k")
def test_derivatives_in_both_modes():
    """Of rods that are straight and parallel: finite at rest, and those of J."""
    model = jd.robots.rod_chain(3)

    def forms(q, qd):
        return closed_forms(model, q, qd, 2, "body")

    @jax.jit
    def found(q, qd):
        return forms(q, qd), *(d(forms, (0, 1))(q, qd) for d in MODES)

    for qd in jnp.zeros(3), jnp.arange(3.0):
        (rate, slopes, _), forward, reverse = found(jnp.zeros(3), qd)
        for a, b in zip(*map(jax.tree.leaves, (forward, reverse)), strict=True):
            assert np.isfinite(a).all()
            assert close(a, b)
        (rate_q, d_rate), (slopes_q, _), (_, d_bias) = forward
        assert close(rate_q, np.einsum("lajk,l->ajk", slopes_q, qd))
        assert close(d_rate, np.moveaxis(slopes, 0, -1))
        assert close(d_bias, rate + np.einsum("kaj,j->ak", slopes, qd))


def test_float32(free):
    model, q, qd = free
    single = jax.tree.map(lambda x: x.astype(jnp.float32), (model, q, qd))
    double = jax.tree.map(lambda x: x.astype(jnp.float64), single)

    @jax.jit
    def forms(model, q, qd):
        return closed_forms(model, q, qd, "tool", "body")

    for found, want in zip(forms(*single), forms(*double), strict=True):
        assert found.dtype == jnp.float32
        assert close(np.float64(found), want, 2e-6)


def test_what_is_refused(free):
    model, q, qd = free
    with pytest.raises((ValueError, TypeCheckError), match="body"):
        jd.jacobian_rate(model, q, qd, 0, axes="world")
    with pytest.raises(jd.ModelError, match="no link or frame 'hand'"):
        jd.jacobian_derivatives(model, q, "hand")
    with pytest.raises(jd.ModelError, match=r"qd has shape \(3,\)"):
        jd.bias_acceleration(model, q, qd[:3], "tool")
