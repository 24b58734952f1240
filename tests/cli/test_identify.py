"""`jaxdenoc identify`, called in process, with least squares for the search."""

import json
import warnings
from importlib import import_module

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.cli import main

from ..support.identified import Fitted

layer = import_module("jaxdenoc.identify")  # whose name a function takes
ARM = jd.robots.random_chain(jax.random.key(2), 2, kinds=("revolute",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot's file, and a log of one that is heavier and rubs."""
    folder = tmp_path_factory.mktemp("robot")
    (folder / "arm.urdf").write_text(
        jd.to_urdf(ARM).replace("<link", "<!-- a --><link")
    )
    pi = jd.inertial_parameters(ARM) * 1.2
    losses = jnp.array([0.3, 0.2])
    truth = eqx.tree_at(
        lambda m: m.damping, jd.with_inertial_parameters(ARM, pi), losses
    )
    t = np.linspace(0, 6, 601)
    w = np.array([[1.7, 2.9]])
    at, more = w * t[:, None], 2.3 * w * t[:, None]
    q, qd = np.sin(at) + np.cos(more), w * np.cos(at) - 2.3 * w * np.sin(more)
    qdd = -(w**2) * (np.sin(at) + 2.3**2 * np.cos(more))
    tau = np.asarray(
        jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))(truth, q, qd, qdd)
    )
    tau = tau + 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    names = ARM.velocity_names
    head = ["t", *(f"{s}_{n}" for s in ("q", "qd", "qdd", "tau") for n in names)]
    table = np.column_stack([t, q, qd, qdd, tau])
    np.savetxt(
        folder / "a.csv", table, "%.17g", ",", header=",".join(head), comments=""
    )
    return folder


@pytest.fixture
def asked(monkeypatch):
    """What `identify` was asked for, answered by least squares."""
    calls = []

    def identify(model, data, **how):
        calls.append((model, data, how))
        return Fitted(fitted(model, data), (2.0, 1.0), 2, ("Look here.",))

    monkeypatch.setattr(layer, "identify", identify, raising=False)
    return calls


def fitted(model, data):
    return jd.least_squares(model, data, joints=("damping",))


def identify(*options):
    return main(["identify", *map(str, options)])


def test_reads_identifies_validates_and_writes(folder, asked, tmp_path, capsys):
    out, page, numbers = (tmp_path / s for s in ("new.urdf", "r.html", "n.json"))
    files = ("--out", out, "--report", page, "--json", numbers)
    code = identify(folder / "arm.urdf", folder / "a.csv", *files)
    printed = capsys.readouterr().out
    ((model, data, how),) = asked
    found = Fitted(fitted(model, data))
    assert code == (0 if found.consistent.all() else 1)
    assert how == {"parameters": "all", "loss": "torque", "robust": None,
                   "checkpoint": None}  # fmt: skip
    assert [len(log) for log in data] == [481]  # the last fifth is held out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jd.ModelWarning)
        new = jd.load(out)
    for name in ("mass", "com", "inertia", "damping", "friction"):
        x, y = (np.asarray(getattr(m, name)) for m in (new, found.model))
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    assert out.read_text().count("<!-- a -->") == 3
    for words in ("481 samples of 1 logs", "- Look here.", "to noise", f"wrote {out}"):
        assert words.replace(" ", "") in printed.replace("\n", "").replace(" ", "")
    assert page.read_text().count('<figure class="joint">') == 2
    said = json.loads(numbers.read_text())
    rows = {row["name"]: row for row in said["parameters"]}
    np.testing.assert_allclose([r["after"] for r in rows.values()], found.values)
    assert 0.8 < said["joints"][0]["held_out"] / 0.01 < 1.2
    np.testing.assert_allclose(said["joints"][1]["noise"], 0.01, rtol=0.1)
    assert list(said["consistent"].values()) == found.consistent.tolist()


def test_options_arrive(folder, asked, tmp_path, capsys):
    options = ("--held-out", 0, "--robust", "--loss", "rollout", "--checkpoint",
               tmp_path / "c.npz", "--out", tmp_path / "m.npz", "--all")  # fmt: skip
    log = folder / "a.csv"
    identify(folder / "arm.urdf", log, log, *options, "--parameters", "*.m", "link1.*")
    ((_, data, how),) = asked
    assert [len(x) for x in data] == [601, 601]
    assert how == {"parameters": ("*.m", "link1.*"), "loss": "rollout",
                   "robust": "huber", "checkpoint": tmp_path / "c.npz"}  # fmt: skip
    assert jd.restore(tmp_path / "m.npz").n_links == 2
    printed = capsys.readouterr().out
    assert "held out" not in printed and all(
        name in printed for name in ("link2.Izz", "joint1.damping")
    )


def test_a_saved_model_goes_into_the_file_it_came_from(folder, asked, tmp_path):
    jd.save(ARM, tmp_path / "arm.npz")
    ways = tmp_path / "a.urdf", tmp_path / "b.urdf"
    for out, into in zip(ways, ((), ("--into", folder / "arm.urdf")), strict=True):
        identify(tmp_path / "arm.npz", folder / "a.csv", "--out", out, *into)
    plain, own = (path.read_text() for path in ways)
    assert "<!-- a -->" in own and "<!-- a -->" not in plain


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("no.csv",), "no.csv"),
        (("{log}", "--out", "no/a.urdf"), "there is no folder no"),
        (("{log}", "--held-out", "1"), "'1' is not a number from 0 up to 1"),
        (("{log}", "--cutoff", "-3"), "'-3' is not a positive float"),
        (("{log}", "--into", "no.urdf"), "--into is no.urdf, which is no file"),
        (("{log}", "--loss", "mean"), "invalid choice: 'mean'"),
    ],
)
def test_refused_in_one_line(
    options, says, folder, asked, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    options = [s.format(log=folder / "a.csv") for s in options]
    try:
        code = identify(folder / "arm.urdf", *options)
    except SystemExit as stop:
        code = stop.code
    assert code == 2 and not asked
    assert says in capsys.readouterr().err


def test_stopped_by_hand_it_says_how_to_go_on(folder, capsys, monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(layer, "identify", stop, raising=False)
    robot = folder / "arm.urdf", folder / "a.csv"
    assert identify(*robot) == 130
    assert capsys.readouterr().err == "\nstopped.\n"
    assert identify(*robot, "--checkpoint", tmp_path / "c.npz") == 130
    assert "The same command goes on from here" in capsys.readouterr().err
