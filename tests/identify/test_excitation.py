"""Motions that tell much of the parameters, within limits at all times."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.identify._excitation import _check, random_series
from jaxdenoc.identify._fourier import basis, excess, motion, resting
from jaxdenoc.identify._information import Question, condition, logdet
from jaxdenoc.identify._limits import feasible, limits_of, torques_of

T = jnp.asarray(8.0)
FEW = {"period": 8.0, "harmonics": 3, "samples": 101, "starts": 2, "steps": 60}
ARM = eqx.tree_at(
    lambda m: (m.q_lower, m.q_upper, m.qd_limit, m.tau_limit),
    jd.robots.random_chain(jax.random.key(2), 3, kinds=("revolute",)),
    (
        jnp.array([-2.0, -0.5, -jnp.inf]),
        jnp.array([1.0, 2.5, jnp.inf]),
        jnp.array([1.5, 2.0, jnp.inf]),
        jnp.array([30.0, 20.0, 8.0]),
    ),
)


@eqx.filter_jit
def shrunk(limits, question, c):
    """A motion within limits, its condition number, and whether it is there."""
    c, ok = feasible(ARM, limits, c, T)
    x = motion(c, jnp.linspace(0.0, 8.0, 101), T)
    return c, condition(question.matrix(ARM, x)), ok


@pytest.fixture(scope="module")
def found():
    return jd.excitation(ARM, **FEW)


@pytest.fixture(scope="module")
def limits():
    return limits_of(ARM, None, None, None, None, 0.95)


@pytest.mark.cites("Swevers et al. 1997: finite Fourier series")
def test_velocities_and_accelerations_are_derivatives():
    c = jax.random.normal(jax.random.key(0), (2, 7))
    t = jnp.linspace(0.0, 8.0, 9)

    def q(t):
        return motion(c, t[None], T).q[0]

    x = motion(c, t, T)
    qd, qdd = jax.jit(jax.vmap(lambda t: (jax.jacfwd(q)(t), jax.hessian(q)(t))))(t)
    for a, b in ((x.q, jax.vmap(q)(t)), (x.qd, qd), (x.qdd, qdd)):
        np.testing.assert_allclose(a, b, atol=1e-12)
    w, (q0, a1, a2, a3, b1, b2, b3) = 2 * np.pi / 8, c[0]
    by_hand = q0 + sum(
        a / (w * k) * np.sin(w * k * t) - b / (w * k) * np.cos(w * k * t)
        for k, a, b in ((1, a1, b1), (2, a2, b2), (3, a3, b3))
    )
    np.testing.assert_allclose(x.q[:, 0], by_hand, atol=1e-12)
    np.testing.assert_allclose(x.q[0], x.q[-1], atol=1e-12)  # periodic


def test_at_rest_is_the_nearest_that_is():
    c = jax.random.normal(jax.random.key(1), (4, 9))
    still = resting(c)
    ends = motion(still, jnp.array([0.0, 8.0]), T)
    np.testing.assert_allclose(ends.qd, 0, atol=1e-12)
    np.testing.assert_allclose(ends.qdd, 0, atol=1e-11)
    _, B, C = basis(jnp.zeros(1), T, 4)
    rows = np.concatenate([B, C])
    nearest = c - c @ np.linalg.pinv(rows) @ rows
    np.testing.assert_allclose(still, nearest, atol=1e-12)


@pytest.mark.cites("Ehlich and Zeller 1964: a series between its samples")
def test_a_series_does_not_rise_far_above_its_samples():
    """And can come close to that: with a phase that misses the tops."""
    rng = np.random.default_rng(0)
    t, fine = np.arange(18) / 18, np.arange(1800) / 1800
    k = np.arange(1, 4)

    def series(a, phase, t):
        return np.cos(2 * np.pi * k * t[:, None] + phase) @ a

    for _ in range(200):
        a, phase = rng.normal(size=3), rng.uniform(0, 6, 3)
        most = [np.abs(series(a, phase, x)).max() for x in (t, fine)]
        assert most[1] <= excess(3, 18) * most[0] + 1e-12
    a, phase = np.array([0.0, 0, 1]), np.full(3, np.pi / 6)
    most = [np.abs(series(a, phase, x)).max() for x in (t, fine)]
    assert most[1] > 0.99 * excess(3, 18) * most[0]


def test_no_limit_is_broken_between_samples(found):
    """On a grid finer than that of the check, with the limits worked out by hand."""
    t = jnp.linspace(0.0, 8.0, 20_001)
    q, qd, qdd = found(t)
    tau = eqx.filter_jit(torques_of)(ARM, motion(jnp.asarray(found.coefficients), t, T))
    low, high = np.array([-2, -0.5, -np.pi]), np.array([1, 2.5, np.pi])
    middle, half = (low + high) / 2, (high - low) / 2
    rate = np.array([1.5, 2, 2])
    q, qd, qdd, tau = map(np.asarray, (q, qd, qdd, tau))
    left = {
        "q": 1 - np.abs(q - middle).max(0) / half,
        "qd": 1 - np.abs(qd).max(0) / rate,
        "qdd": 1 - np.abs(qdd).max(0) / (5 * rate),
        "tau": 1 - np.abs(tau).max(0) / np.asarray(ARM.tau_limit),
    }
    for name, x in left.items():
        assert x.min() > 0.05 - 1e-9, name
        assert (found.margin[name] <= x + 1e-9).all()
        np.testing.assert_allclose(found.margin[name], x, atol=0.02)


def test_far_better_than_random_ones(found, limits):
    """Of the same family and limits; and what it says is what base_parameters says."""
    base = jd.base_parameters(ARM)
    columns = jnp.asarray(base.parameters.columns[base.independent])
    question = Question(columns, limits.tau)
    many = random_series(limits, 3, jax.random.key(7), 200, at_rest=True)
    rows = [shrunk(limits, question, c)[1:] for c in many]
    kappa, ok = (np.array(x) for x in zip(*rows, strict=True))
    assert ok.all() and found.condition < 0.5 * kappa.min()
    seen = jd.base_parameters(ARM, found.measurements(), noise=limits.tau)
    assert seen.rank == base.rank
    np.testing.assert_array_equal(seen.independent, base.independent)
    np.testing.assert_allclose(seen.condition, found.condition, rtol=1e-6)


def test_the_determinant_is_what_is_asked_for(found):
    """Also with noise that is given, and not at rest."""
    noise = np.array([3.0, 2.0, 1.0])
    how = {"noise": noise, "at_rest": False, "criterion": "logdet"}
    volume = jd.excitation(ARM, **FEW, **how)
    base = jd.base_parameters(ARM)
    columns = base.parameters.columns[base.independent]

    def root(x):  # F = Aᵀ A
        regressor = jax.jit(
            jax.vmap(partial(jd.regressor, joints=True), (None, 0, 0, 0))
        )
        Y = np.asarray(regressor(ARM, *map(jnp.asarray, (x.q, x.qd, x.qdd))))
        return (Y[..., columns] / noise[:, None]).reshape(-1, base.rank)

    def volume_of(A):
        return 2 * np.sum(np.log(np.linalg.svd(A, compute_uv=False)))

    A, other = root(volume), volume_of(root(found))
    np.testing.assert_allclose(volume.logdet, volume_of(A))
    assert volume.logdet > other + 1 and volume.condition > found.condition
    F = jnp.asarray(A.T @ A)
    np.testing.assert_allclose(logdet(F), volume.logdet, rtol=1e-9)
    kappa = np.linalg.cond(A / np.linalg.norm(A, axis=0)) ** 2
    np.testing.assert_allclose(condition(F), kappa, rtol=1e-6)
    assert np.abs(volume.qd[0]).max() > 0.01 and np.abs(found.qd[0]).max() < 1e-12


def test_is_a_reference_that_a_robot_can_follow(found):
    """Computed torque from the right start stays on it."""
    q, qd, qdd = found(1.25)
    for x, rows in ((q, found.q), (qd, found.qd), (qdd, found.qdd)):
        assert x.shape == (3,)
        back = [np.interp(1.25, found.t, rows[:, j]) for j in range(3)]
        np.testing.assert_allclose(x, back, atol=0.05)
    law = jd.control.computed_torque(ARM, found, kp=100.0, kd=20.0)
    tau = eqx.filter_jit(law)(jnp.asarray(found.t[7]), found.q[7], found.qd[7])
    np.testing.assert_allclose(tau, found.tau[7], atol=1e-9)
    single = found(jnp.float32(1.25))
    assert all(x.dtype == jnp.float32 for x in single)
    np.testing.assert_allclose(found(9.25), found(1.25), atol=1e-9)  # goes on


def test_files(found, tmp_path):
    found.save(tmp_path / "a.npz")
    again = jd.Excitation.load(tmp_path / "a.npz")
    assert eqx.tree_equal(again, found) and again.names == found.names
    found.to_csv(tmp_path / "a.csv")
    log = jd.read_measurements(tmp_path / "a.csv", ARM)
    for name in ("t", "q", "qd", "qdd", "tau"):
        np.testing.assert_array_equal(getattr(log, name), getattr(found, name))
    noisy = found.measurements(noise=[0.1, 0.2, 0.3])
    spread = np.std(noisy.tau - found.tau, axis=0)
    np.testing.assert_allclose(spread, [0.1, 0.2, 0.3], rtol=0.3)
    assert "3 harmonics of 3 joints" in repr(found)
    odd = replace(found, names=('a,"b"', "c", "d"))
    odd.to_csv(tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text().startswith('t,"q_a,""b""",q_c')


def test_torques_make_it_smaller_when_nothing_else_does():
    """Limits of torque that hold the robot, but not much more."""
    wide = limits_of(ARM, None, None, None, None, 1.0)
    force = jnp.abs(jd.gravity_forces(ARM, wide.centre))
    tight = limits_of(ARM, None, None, None, np.asarray(force) + 0.5, 1.0)
    c = random_series(tight, 3, jax.random.key(0), 1, at_rest=True)[0]
    base = jd.base_parameters(ARM)
    columns = jnp.asarray(base.parameters.columns[base.independent])
    (small, _, ok), (large, _, _) = (
        shrunk(x, Question(columns, wide.tau), c) for x in (tight, wide)
    )
    assert ok and np.abs(small[:, 1:]).max() < 0.9 * np.abs(large[:, 1:]).max()
    tau = eqx.filter_jit(torques_of)(
        ARM, motion(small, jnp.linspace(0.0, 8.0, 4001), T)
    )
    assert (jnp.abs(tau) <= tight.tau[None]).all()


def test_refused():
    with pytest.raises(jd.ModelError, match="free base"):
        jd.excitation(jd.robots.random_tree(jax.random.key(0), 3, True))
    for how, message in (
        ({"period": -1.0}, "positive number of seconds"),
        ({"share": 1.5}, "share is 1.5"),
        ({"harmonics": 1}, "harmonics is 1"),
        ({"samples": 5}, "samples is 5"),
        ({"q_limits": (0.0, 0.0)}, "joint1.*cannot move"),
        ({"qd_limit": [1.0, 0.0, 1.0]}, "qd_limit of joint 'joint2' is 0"),
        ({"tau_limit": 1e-3}, "cannot hold the robot up"),
        ({"noise": [1.0, 0.0, 1.0]}, "positive standard deviation"),
    ):
        with pytest.raises(jd.ModelError, match=message):
            jd.excitation(ARM, **how)
    with pytest.raises(jd.ModelError, match="give 'condition' or 'logdet'"):
        _check(ARM, 10.0, 5, 101, 1.0, "trace", 1, 1)
