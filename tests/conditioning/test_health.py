"""The bill of health: robots that are well, and robots with one thing wrong each."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.cli import main

ARM = jd.robots.stanford_arm()


def changed(**numbers):
    model = ARM
    for name, value in numbers.items():
        model = eqx.tree_at(lambda m, s=name: getattr(m, s), model, value)
    return model


@pytest.fixture(scope="module")
def arm(interpreted):
    return jd.health(ARM, states=4)


def test_an_arm_in_numbers(arm):
    assert arm.verdict == "healthy" and arm.ok and arm.states == 4
    assert arm.mass_spread == 18 and arm.heaviest_link == "link1"
    assert arm.lightest_link == "link6"
    np.testing.assert_allclose(arm.length_spread, 0.6 / 0.1)
    assert not arm.massless and not arm.near_massless and not arm.inconsistent
    assert arm.pivot_ratio <= arm.condition_number
    assert arm.diagonal_ratio <= arm.condition_number
    for method, error in arm.accuracy["float32"].items():
        assert 1e-8 < error < 1e-3, method
        assert 1e-17 < arm.accuracy["float64"][method] < 1e-12, method
    text = str(arm)
    assert "stanford_arm: healthy" in text and "smallest pivot" in text


def test_at_one_configuration(interpreted):
    q = jnp.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    found = jd.health(ARM, q, states=4)
    kappa = jd.condition_number(ARM, q)
    np.testing.assert_allclose(found.condition_number, kappa, rtol=1e-9)
    D = jd.factorize(ARM, q).D
    np.testing.assert_allclose(found.smallest_pivot, D.min(), rtol=1e-12)
    assert found.smallest_pivot_joint == ARM.joint_names[int(jnp.argmin(D))]


def test_what_is_wrong_is_named(interpreted):
    light = changed(
        mass=ARM.mass.at[5].set(1e-7), inertia=ARM.inertia.at[5].multiply(1e-7)
    )
    found = jd.health(light, states=4)
    assert found.near_massless == ("link6",) and found.smallest_pivot_joint == "joint6"
    assert any("millionth" in text for text in found.remarks)

    nothing = changed(mass=ARM.mass.at[5].set(0.0), inertia=ARM.inertia.at[5].set(0.0))
    found = jd.health(nothing, states=4)
    assert found.verdict == "unfit" and not found.ok and found.massless == ("link6",)
    assert any("'joint6' has next to nothing to move" in s for s in found.remarks)
    held = eqx.tree_at(lambda m: m.armature, nothing, ARM.armature.at[5].set(0.01))
    assert jd.health(held, states=4).ok

    flat = changed(inertia=ARM.inertia.at[0].set(jnp.diag(jnp.array([1.0, 1.0, 9.0]))))
    found = jd.health(flat, states=4)
    assert found.inconsistent == ("link1",) and found.verdict == "unfit"


def test_a_long_chain_is_for_the_recursion(interpreted):
    found = jd.health(jd.robots.rod_chain(40), jnp.zeros(40), states=2)
    assert found.accuracy["float32"]["recursive"] < 1e-5
    assert found.accuracy["float32"]["dense"] > 1e-3
    assert any("solve with factorize" in text for text in found.remarks)


def test_refused():
    with pytest.raises(jd.ModelError, match="states is 0"):
        jd.health(ARM, states=0)
    with pytest.raises(jd.ModelError, match="cannot be inside jit"):
        jax.jit(lambda m: jd.health(m).condition_number)(ARM)
    with pytest.raises(jd.ModelError, match="needs"):
        jd.health(ARM, jnp.zeros(2))


def test_from_the_shell(tmp_path, capsys, arm):
    path = tmp_path / "arm.json"
    assert main(["check", "stanford_arm", "--states", "4", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "condition number" in printed and "healthy" in printed
    written = json.loads(path.read_text())
    assert written == json.loads(json.dumps(dataclasses.asdict(arm)))

    empty = tmp_path / "empty.urdf"
    empty.write_text(
        '<robot name="r"><link name="base"/><link name="arm"><inertial>'
        '<mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<link name="tip"/><joint name="a" type="continuous"><parent link="base"/>'
        '<child link="arm"/><axis xyz="0 0 1"/></joint><joint name="b" '
        'type="continuous"><parent link="arm"/><child link="tip"/></joint></robot>'
    )
    assert main(["check", str(empty)]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "'b' has next to nothing to move" in printed and "unfit" in printed
    assert main(["check", "nobody"]) == 2
