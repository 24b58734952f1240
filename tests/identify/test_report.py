"""The report of an identification, on one page."""

import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.identify import _report
from jaxdenoc.identify._charts import Panel, chart, thinned, ticks
from jaxdenoc.identify._report import write_report
from jaxdenoc.identify._reported import beyond_noise

from ..support.identified import Fitted

ARM = jd.robots.random_chain(jax.random.key(2), 3, kinds=("revolute",))
NAMES = ("shoulder <1>", "elbow & co", "wrist")


class Page(HTMLParser):
    """Elements by tag, the text of cells, and whether all that opens is closed."""

    EMPTY = ("meta", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.rows = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.EMPTY and tag != "path":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def all(self, tag):
        return [attrs for t, attrs in self.found if t == tag]


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(5)
    pi = np.asarray(jd.inertial_parameters(ARM)) * rng.uniform(0.8, 1.2, (3, 1))
    model = jd.with_inertial_parameters(ARM, pi)
    model = eqx.tree_at(lambda m: m.damping, model, jnp.array([0.5, 0.4, 0.3]))
    return replace(model, joint_names=NAMES)


def log(model, k, seed):
    t = np.linspace(0, 5, k)
    w = 1 + np.random.default_rng(seed).random((3, 1)) * 3
    q, qd, qdd = np.sin(w * t).T, (w * np.cos(w * t)).T, (-(w**2) * np.sin(w * t)).T
    tau = jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))(model, q, qd, qdd)
    noise = 0.05 * np.random.default_rng(seed + 9).normal(size=q.shape)
    weight = np.ones(q.shape)
    weight[10:20, 1] = 0
    return jd.Measurements(t, q, qd, qdd, np.asarray(tau) + noise, weight)


@pytest.fixture(scope="module")
def case(truth):
    prior = replace(ARM, joint_names=NAMES)
    data = [log(truth, 4000, 0), log(truth, 100, 1)]
    fit = jd.least_squares(prior, data)
    found = Fitted(fit, (5.0, 1.0, 0.3, 0.2), 4, ("Mind the <gap>.",))
    return found, data, log(truth, 3000, 2)


def test_says_all_of_it(case, tmp_path):
    found, data, held = case
    path = tmp_path / "report.html"
    write_report(found, path, data, held)
    text = path.read_text()
    page = Page(text)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]  # nothing beside it
    assert path.stat().st_size < 1_000_000
    figures = [a for a in page.all("figure") if a.get("class") == "joint"]
    assert len(figures) == 3 and len(page.all("svg")) == 4
    for name, attrs in zip(NAMES, page.all("svg"), strict=False):
        assert attrs["role"] == "img" and name in attrs["aria-label"]
    assert "Mind the &lt;gap&gt;." in text
    assert "<1>" not in text and "&lt;1&gt;.damping" in text and " & co" not in text
    rows = {row[0]: row for row in page.rows}
    for k, (name, source) in enumerate(
        zip(found.parameters.names, found.sources, strict=True)
    ):
        assert rows[name][5].startswith(source)
        assert ("changed" in rows[name][5]) == bool(beyond_noise(found)[k])
    assert "3000 samples that were not used" in text
    assert sum(row[-1] in found.base.names for row in page.rows) == found.base.rank


def test_changes_beyond_three_sigma_are_marked(case):
    found, data, _ = case
    name = "link3.m·cx" if "link3.m·cx" in found.parameters.names else None
    assert name is not None
    k = found.parameters.names.index(name)
    sigma = found.sigma[k]
    for by, marked in ((2.9, False), (3.1, True)):
        moved = found.prior_values.copy()
        moved[k] = found.values[k] + by * sigma
        case = _Moved(found, moved)
        row = next(r for r in Page(_report.report(case, data)).rows if r[0] == name)
        assert ("changed" in row[5]) == marked
        assert abs(float(row[4].replace("−", "-")) + by) < 0.01


class _Moved:
    def __init__(self, found, prior_values):
        self.found, self.prior_values = found, prior_values

    def __getattr__(self, name):
        return getattr(self.found, name)


def test_nothing_from_outside(case, tmp_path):
    found, data, held = case
    page = Page(_report.report(found, data, held))
    for tag, attrs in page.found:
        assert tag not in ("script", "link", "img", "iframe", "object")
        assert all(not k.startswith("on") and k != "src" for k in attrs)
        assert attrs.get("href", "#").startswith("#")
    assert "url(" not in _report.report(found, data) and "@import" not in repr(page.all)


def test_held_out_data_are_what_is_drawn(case):
    """And errors beyond the noise are said."""
    found, data, held = case
    worse = eqx.tree_at(lambda d: d.tau, held, held.tau + 1.0)
    for logs, word in ((held, "as good as the noise"), (worse, "above the noise")):
        text = _report.report(found, data, logs)
        assert word in text and "Torques of held-out data" in text
    assert "Torques of the data of the fit" in _report.report(found, data)
    ratio = np.sqrt(np.nanmean(found.residuals(worse) ** 2, axis=0)) / found.noise
    rms = np.sqrt(np.nanmean(found.residuals(worse)[:, 2] ** 2))
    assert f"{NAMES[2]}: measured" in text and f"root mean square {rms:.3g} N" in text
    cells = [r for r in Page(text).rows if r[0] == NAMES[2]]
    assert any(f"{ratio[2]:.3g}" in row for row in cells)


def test_long_logs_are_drawn_by_their_extremes():
    y = np.sin(np.linspace(0, 300, 100_000))
    y[77_777] = 9
    y[100:200] = np.nan
    at = thinned(y, 500)
    assert len(at) <= 502 and 77_777 in at and (np.diff(at) > 0).all()
    np.testing.assert_array_equal(thinned(y[:7], 500), np.arange(7))


def test_lines_break_where_numbers_are_missing():
    t = np.arange(6.0)
    y = np.array([0, 1, np.nan, 3, 4, 5.0])
    panel = Panel("y")
    panel.curves, panel.bands = [(t, y, "one")], [(t, y - 1, y + 1, "band")]
    svg = chart([panel], (0.0, 5.0), "a", "b")
    curve = svg.split('class="one" d="')[1].split('"')[0]
    assert curve.count("M") == 2 and svg.count('class="band"') == 2
    assert "nan" not in svg
    np.testing.assert_allclose(ticks(-1.1, 1.1, 4), [-1, -0.5, 0, 0.5, 1], atol=1e-12)
    for low, high in ((0.0, 1e-9), (-3e7, 8e7), (1.0, 1.0), (0.12, 0.13)):
        assert 1 <= len(ticks(low, high, 5)) <= 8


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_opens_in_a_browser(case, tmp_path):
    """Which shows a figure for every joint."""
    found, data, held = case
    path = tmp_path / "report.html"
    write_report(found, path, data, held)
    flags = ("--headless --no-sandbox --disable-gpu --no-first-run --disable-sync "
             "--disable-background-networking --disable-component-update")  # fmt: skip
    shown = subprocess.run(
        ["chromium", *flags.split(), f"--user-data-dir={tmp_path / 'user'}",
         "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    assert shown.count('<figure class="joint"><svg') == 3 and "</html>" in shown
