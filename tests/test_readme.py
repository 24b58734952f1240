"""The README's snippets run as they are pasted."""

import re
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.slow
def test_snippets(tmp_path, monkeypatch):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(snippets) == 8
    monkeypatch.chdir(tmp_path)
    names = {}
    for snippet in snippets:
        exec(snippet, names)
    assert np.abs(names["qdd"]).max() < 1e-10
    np.testing.assert_allclose(names["energy"][0], names["energy"][-1], atol=1e-5)
    assert abs(names["nu"] @ names["C"]) < 1e-12
    jd, arm, stop = names["jd"], names["model"], names["stop"]
    energies = [jd.kinetic_energy(arm, stop.q[k], stop.qd[k]) for k in (0, -1)]
    np.testing.assert_allclose(energies[1], energies[0] * np.exp(-2), rtol=1e-5)
    np.testing.assert_allclose(names["dqdd_dq"], names["jacobian"], atol=1e-8)
    np.testing.assert_allclose(names["same"], names["jacobian"][0], atol=1e-8)
    assert names["Y"].shape == (6, 60)
    assert names["motions"].q.shape == (256, 21, 6)
    assert names["arms"].mass.shape == (64, 2)
    assert np.ptp(names["kept"].energy(names["swing"])) < 1e-11
    assert names["stopped"].status.reason == names["until"].status.reason == 2
    np.testing.assert_allclose(names["until"].q[-1, 0], 0.6, atol=1e-7)
    assert 0.3 < names["watched"].condition.estimate[-1] / names["kappa"] < 3
    assert len(names["data"]) == 200 and not names["data"].missing()
