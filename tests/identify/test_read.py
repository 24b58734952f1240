"""Logs from files: names, units, gaps, rates that were not measured, refusals."""

import subprocess
import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import tree

HEAD = "t,q_joint1,q_joint2,tau_joint1,tau_joint2"
RATES = "qd_joint1,qd_joint2,qdd_joint1,qdd_joint2"
W = 2 * np.pi * np.array([0.3, 0.5])  # of the motion that most tests read


@pytest.fixture(scope="module")
def arm():
    return jd.robots.rod_chain(2)


def swing(t):
    """q, θ̇, θ̈ at these times."""
    at = np.outer(t, W) + np.array([0.3, 1.0])
    return np.sin(at), W * np.cos(at), -(W**2) * np.sin(at)


def write(path, head, *columns):
    head = head if isinstance(head, str) else ",".join(head)
    table = np.column_stack(columns)
    np.savetxt(path, table, delimiter=",", header=head, comments="", fmt="%.17g")
    return path


def table(cells, head=HEAD):
    """A few lines of text, with numbers unless a cell (row, column) says otherwise."""
    n = head.count(",") + 1
    lines = [[f"{0.1 * k:.1f}", *["0.5"] * (n - 1)] for k in range(12)]
    for (row, column), text in cells.items():
        lines[row][column] = text
    return "\n".join([head, *map(",".join, lines)]) + "\n"


BAD = {
    "text": (table({(3, 3): "abc"}), r"row 5, column 'tau_joint1': 'abc' is not a num"),
    "infinite": (
        table({(2, 1): "inf"}),
        r"row 4, column 'q_joint1': the number is inf",
    ),
    "no time": (table({(7, 0): ""}), r"row 9: the time is missing"),
    "late": (table({(7, 0): "0.55"}), r"row 9: the time 0\.55 s comes after 0\.6 s"),
    "twice": (table({(7, 0): "0.6"}), r"row 9: the time 0\.6 s is there twice"),
    "cells": (
        table({(4, 1): "1,2"}),
        r"row 6: it has 6 cells, but there are names for 5",
    ),
    "no t": (table({}, HEAD.replace("t,q", "x,q", 1)), r"no column of times"),
    "no q": (table({}, HEAD.replace("q_joint2", "u")), r"no column q_joint2.*jd\.lock"),
    "no tau": (table({}, HEAD.replace("tau", "u")), r"no torques, such as tau_joint1"),
    "some qd": (table({}, HEAD + ",qd_joint1"), r"no column qd_joint2"),
    "same": (table({}, HEAD + ",pos_joint1"), r"'q_joint1' and 'pos_joint1' are both"),
    "named twice": (table({}, HEAD + ",t"), r"more than one column is named 't'"),
    "no names": ("0,1,2,3,4\n" * 9, r"no names of columns"),
    "empty": ("\n", r"it is empty"),
    "short": (HEAD + "\n0,1,2,3,4\n", r"1 samples: too few"),
    "unit": (
        table({}, HEAD.replace("q_joint1", "q_joint1 [kg]")),
        r"'kg' is no unit of",
    ),
    "length": (
        table({}, HEAD.replace("q_joint1", "q_joint1 [mm]")),
        r"'mm' is no unit",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused_with_row_and_column(name, arm, tmp_path):
    text, message = BAD[name]
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(jd.ModelError, match=r"log\.csv.*" + message):
        jd.read_measurements(path, arm)


def test_refused_files_and_arguments(arm, tmp_path):
    (path := tmp_path / "log.csv").write_text(table({}))
    (bad := tmp_path / "log.npz").write_bytes(b"PK no archive")
    np.savez(uneven := tmp_path / "uneven.npz", t=np.arange(9), q=np.ones((8, 2)),
             tau=np.ones((9, 2)))  # fmt: skip
    np.savez(batch := tmp_path / "batch.npz", t=np.ones((2, 9)), q=np.ones((2, 9, 2)))
    for file, keys, message in [
        (tmp_path / "log.xls", {}, r"ends in '\.xls'"),
        (tmp_path / "none.csv", {}, r"is not there"),
        (bad, {}, r"log\.npz: it is not a whole NumPy archive"),
        (uneven, {}, r"different lengths"),
        (batch, {}, r"q has shape \(2, 9, 2\): give one motion"),
        (path, {"columns": {"x": "q_joint1"}}, r"'x', which is no column"),
        (
            path,
            {"columns": {"t": "wave_joint1"}},
            r"'wave_joint1', which is no quantity",
        ),
        (path, {"units": {"x": "deg"}}, r"units names 'x'"),
        (path, {"units": {"q": "parsec"}}, r"'parsec' is no unit of the position"),
        (path, {"cutoff": -1.0}, r"cutoff is -1"),
        (path, {"gap": 0}, r"gap is 0"),
        (path, {"cutoff": 0.1}, r"long enough to be filtered"),
        (path, {"motion": 1}, r"no column 'motion'"),
    ]:
        with pytest.raises(jd.ModelError, match=message):
            jd.read_measurements(file, arm, **keys)


NAMES = {
    "csv": ("t", "q_{}", "tau_{}"),
    "words": ("Time", "position_{}", "Effort_{}"),
    "behind": ("timestamp", "{}.position", "{}/torque"),
    "bracketed": ("time (s)", "q_{} [rad]", "tau_{} (N·m)"),
    "degrees": ("t [ms]", "q_{} [deg]", "tau_{} [N mm]"),
    "suffix": ("t_ms", "{}_pos_deg", "{}_torque_Nmm"),
}


@pytest.mark.parametrize("style", NAMES)
def test_names_and_units(style, arm, tmp_path):
    t = 0.01 * np.arange(200)
    q, qd, qdd = swing(t)
    tau = qd + 2
    time, *of_joints = NAMES[style]
    head = [time, *(s.format(j) for s in of_joints for j in arm.joint_names)]
    scale = np.pi / 180, 1e-3, 1e-3
    scale = scale if style in ("degrees", "suffix") else (1, 1, 1)
    columns = t / scale[1], q / scale[0], tau / scale[2], qd, qdd
    path = write(tmp_path / "log.csv", [*head, *RATES.split(",")], *columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = jd.read_measurements(path, arm)
    for x, y in zip((data.t, data.q, data.qd, data.tau), (t, q, qd, tau), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(data.weight, 1)


@pytest.mark.parametrize("first", [0, 1])
def test_numbered_and_renamed_columns(first, arm, tmp_path):
    t = 0.01 * np.arange(200)
    q, qd, qdd = swing(t)
    head = ["t", *(f"{s}{k + first}" for s in ("q", "qd", "qdd") for k in (0, 1))]
    head += ["Motor A", "Motor B [Nmm]", "mode"]
    path = write(tmp_path / "log.csv", head, t, q, qd, qdd, qd[:, 0], qd[:, 1], 0 * t)
    path.write_text(path.read_text().replace(",0\n", ",AUTO\n"))  # text, not needed
    names = {"Motor A": "tau_joint1", "Motor B [Nmm]": "tau_joint2"}
    with pytest.warns(jd.ModelWarning, match=r"not used: mode\.$"):
        data = jd.read_measurements(path, arm, columns=names, units={"Motor A": "kNm"})
    np.testing.assert_array_equal(data.q, q)
    np.testing.assert_allclose(data.tau, qd * [1e3, 1e-3], rtol=1e-15)


def test_semicolons_and_decimal_commas(arm, tmp_path):
    path = tmp_path / "log.csv"
    text = table({(3, 1): "0.25", (5, 3): ""}, f"{HEAD},{RATES}")
    path.write_text("\ufeff" + text.replace(",", ";").replace(".", ",") + "\n")
    data = jd.read_measurements(path, arm)
    assert data.q[3, 0] == 0.25 and data.t[-1] == 1.1
    assert data.weight[5, 0] == 0 and data.weight.sum() == 23


@pytest.mark.parametrize("between", [" ", "\t", ";", ", "])
def test_what_numpy_writes(between, arm, tmp_path):
    t = 0.01 * np.arange(40)
    q, qd, qdd = swing(t)
    head = f"{HEAD},{RATES}".replace(",", between)
    columns = np.column_stack([t, q, qd, qd, qdd])
    np.savetxt(tmp_path / "log.txt", columns, delimiter=between, header=head)
    data = jd.read_measurements(tmp_path / "log.txt", arm)
    np.testing.assert_allclose(data.qdd, qdd, rtol=1e-15)


@pytest.mark.parametrize("limits, message", [
    ((0.9, np.inf, np.inf), "'joint1' goes from .* maybe positions are in degrees"),
    ((np.inf, 0.1, np.inf), "velocity of 'joint1' comes to .* maybe it is in deg/s"),
    ((np.inf, np.inf, 0.05), "torque of 'joint1' comes to .* maybe it is in N·mm"),
])  # fmt: skip
def test_implausible_numbers_are_told(limits, message, arm, tmp_path):
    q, qd, tau = (jnp.full(2, x) for x in limits)
    arm = eqx.tree_at(
        lambda m: (m.q_lower, m.q_upper, m.qd_limit, m.tau_limit), arm, (-q, q, qd, tau)
    )
    t = 0.01 * np.arange(200)
    q, qd, qdd = swing(t)
    write(tmp_path / "log.csv", f"{HEAD},{RATES}", t, 2 * q, q, qd, qdd)
    with pytest.warns(jd.ModelWarning, match=message):
        jd.read_measurements(tmp_path / "log.csv", arm)
    with warnings.catch_warnings():  # units that are said are believed
        warnings.simplefilter("error")
        units = {"q": "rad", "qd": "rad/s", "tau": "Nm"}
        jd.read_measurements(tmp_path / "log.csv", arm, units=units)


def test_times_in_milliseconds_are_suspected(arm, tmp_path):
    t = 0.01 * np.arange(50)
    path = write(
        tmp_path / "l.csv", f"{HEAD},{RATES}", 1e3 * t, *swing(t)[:2], *swing(t)[1:]
    )
    with pytest.warns(jd.ModelWarning, match="10 s apart: maybe times are in ms"):
        jd.read_measurements(path, arm)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize("free", [False, True])
def test_what_a_trajectory_writes_is_read_back(free, kind, named, tmp_path):
    model = tree(2, (-1, 0, 1), free) if free else jd.robots.rod_chain(2)
    rng = np.random.default_rng(0)
    sizes = (model.nq, model.nv, model.nv)
    q, qd, tau = (rng.normal(size=(300, n)) for n in sizes)
    if free:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    qd[280:] = np.nan  # the motion has stopped
    t = jnp.asarray(0.01 * np.arange(300))
    motion = jd.Trajectory(t, *(jnp.asarray(x) for x in (q, qd, tau)))
    path = tmp_path / f"run.{kind}"
    if kind == "csv":
        motion.to_csv(path, model if named else None)
    else:
        motion.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = jd.read_measurements(path, model)
    assert len(data) == 280
    for x, y in zip((data.t, data.qd, data.tau), (t, qd, tau), strict=True):
        np.testing.assert_array_equal(x, y[:280])
    np.testing.assert_allclose(data.q, q[:280], rtol=1e-15)


def test_one_motion_of_a_batch(arm, tmp_path):
    t = np.arange(40) * 0.01
    rows = [np.stack([x, 2 * x]) for x in swing(t)]
    t = np.stack([t, t])
    jd.Trajectory(*map(jnp.asarray, (t, *rows))).to_csv(tmp_path / "two.csv", arm)
    with pytest.raises(jd.ModelError, match=r"2 motions\. Say which: motion=0"):
        jd.read_measurements(tmp_path / "two.csv", arm)
    data = jd.read_measurements(tmp_path / "two.csv", arm, motion=1, cutoff=np.inf)
    np.testing.assert_array_equal(data.q, rows[0][1])


@pytest.mark.parametrize("measured", ["q", "q qd"])
@pytest.mark.parametrize("stamps", ["even", "uneven"])
def test_rates_that_were_not_measured(measured, stamps, arm, tmp_path):
    """Against the derivatives of the motion that was sampled."""
    rng = np.random.default_rng(3)
    t = 0.005 * np.arange(4000)
    if stamps == "uneven":
        t = t + rng.uniform(-0.002, 0.002, t.shape)
    q, qd, qdd = swing(t)
    noise = 1e-5 * rng.normal(size=q.shape)
    columns, head = [t, q + noise, q], HEAD
    if "qd" in measured:
        columns, head = [*columns, qd], f"{head},qd_joint1,qd_joint2"
    data = jd.read_measurements(write(tmp_path / "log.csv", head, *columns), arm)
    counts = data.weight[:, 0] > 0
    assert 0.75 < counts.mean() < 1 and not counts[[0, -1]].any()
    np.testing.assert_array_equal(data.t, t)
    assert np.abs(data.qd - qd)[counts].max() < (1e-15 if "qd" in measured else 5e-4)
    assert np.abs(data.qdd - qdd)[counts].max() < 1.5e-3 * np.abs(qdd).max()
    if measured == "q":  # whose noise comes through a filter that is wide open
        wide = jd.read_measurements(tmp_path / "log.csv", arm, cutoff=40.0)
        assert np.abs(wide.qdd - qdd)[counts].max() > 0.1


def test_unfiltered_rates_are_of_fourth_order(arm, tmp_path):
    errors = []
    for h in (0.04, 0.02):
        t = h * np.arange(round(4 / h))
        q, _, qdd = swing(t)
        path = write(tmp_path / "log.csv", HEAD, t, q, q)
        data = jd.read_measurements(path, arm, cutoff=np.inf)
        np.testing.assert_array_equal(data.weight, 1)
        middle = slice(round(1 / h), -round(1 / h))
        errors.append(np.abs(data.qdd - qdd)[middle].max())
    assert errors[0] / errors[1] > 12


def test_gaps(arm, tmp_path):
    """Short ones are filled and do not count, long ones part the log."""
    t = 0.01 * np.arange(3000)
    q, qd, qdd = swing(t)
    holes = q.copy()
    holes[500:504, 0] = np.nan  # 0.05 s: short
    holes[1500:1600, 1] = np.nan  # 1 s: long
    holes[:3] = np.nan  # before the first
    tau = qd.copy()
    tau[700, 1] = np.nan
    keep = np.r_[0:2000, 2005:2500, 2700:3000]  # rows that are not there at all
    path = write(tmp_path / "log.csv", HEAD, *(x[keep] for x in (t, holes, tau)))
    path.write_text(path.read_text().replace("nan", "", 7))
    with pytest.warns(jd.ModelWarning, match=r"103 samples were left out"):
        data = jd.read_measurements(path, arm, cutoff=3.0)
    assert len(data) == len(keep) - 103
    where = np.searchsorted(t, data.t - 1e-9)
    assert np.abs(data.q - q[where]).max() < 1e-6
    counts = np.flatnonzero(data.weight[:, 0])
    assert np.abs(data.qdd - qdd[where])[counts].max() < 0.01 * np.abs(qdd).max()
    weight = np.full((3000, 2), np.nan)
    weight[where] = data.weight
    assert not weight[500:504].any() and weight[[498, 505]].all()
    assert list(weight[700]) == [1, 0] and data.tau[where == 700][0, 1] == 0
    # three periods of the cutoff from the ends of each of three runs
    for edge in (3, 1500, 1600, 2500, 2700, 3000):
        near = weight[max(edge - 95, 0) : edge + 95]
        assert not np.nan_to_num(near).any()
    assert weight[1890:2000].all() and len(data.pieces(0.1)) == 3


def test_parquet(arm, tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        path.write_bytes(b"PAR1")
    else:
        t = 0.01 * np.arange(200)
        q, qd, qdd = swing(t)
        tau = [None, *qd[1:, 0]]
        names = [s for s in f"{HEAD},{RATES}".split(",") if s != "tau_joint1"]
        numbers = np.column_stack([t, q, qd[:, 1], qd, qdd]).T
        columns = dict(zip(names, numbers, strict=True)) | {"tau_joint1": tau}
        parquet.write_table(pyarrow.table(columns | {"mode": ["AUTO"] * 200}), path)
        with pytest.warns(jd.ModelWarning, match="not used: mode"):
            data = jd.read_measurements(path, arm)
        np.testing.assert_array_equal(data.q, q)
        assert data.weight[0, 0] == 0 and data.weight.sum() == 399
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(jd.ModelError, match=r"pip install 'jaxdenoc\[data\]'"):
        jd.read_measurements(path, arm)


def test_a_joint_without_torques_has_no_weight(arm, tmp_path):
    t = 0.01 * np.arange(50)
    q, qd, qdd = swing(t)
    path = write(tmp_path / "log.csv", f"{HEAD[:-11]},{RATES}", t, q, q[:, 0], qd, qdd)
    data = jd.read_measurements(path, arm)
    np.testing.assert_array_equal(data.counts(), [50, 0])


def test_single_precision_keeps_times(arm, tmp_path):
    t = 1e5 + 1e-3 * np.arange(50)
    q, qd, qdd = swing(t)
    path = write(tmp_path / "log.csv", f"{HEAD},{RATES}", t, q, qd, qd, qdd)
    with jax.enable_x64(False):
        data = jd.read_measurements(path, arm)
    np.testing.assert_array_equal(data.t, t)


def test_nothing_is_loaded_before_it_is_needed():
    code = (
        "import sys, jaxdenoc; print([s for s in ('scipy.signal', 'scipy.interpolate', "
        "'pyarrow') if s in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "[]", out.stderr
