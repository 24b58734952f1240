"""Data sets of rollouts: what a motion is, and that no interruption shows in a file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.simulate import _folder
from jaxdenoc.simulate._described import described

H, STEPS, COUNT = 0.01, 4, 10
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model():
    return jd.robots.rod_chain(1)


def torques(model, key):
    return jr.normal(key, (STEPS, model.nv), model.mass.dtype)


def other_mass(model, key):
    factor = jr.uniform(key, model.mass.shape, model.mass.dtype, 0.5, 2.0)
    return eqx.tree_at(lambda m: m.mass, model, model.mass * factor)


def generate(folder, model, shard=4, **options):
    asked = {"count": COUNT, "shard": shard, "torques": torques} | options
    return jd.generate(folder, model, None, H, randomize=other_mass, **asked)


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    return generate(tmp_path_factory.mktemp("data") / "made", model)


def contents(folder):
    files = (p for p in Path(folder).iterdir() if not p.name.startswith(".lock"))
    return {p.name: p.read_bytes() for p in files}


def by_hand(model, k, seed=0):
    of_start, of_model, of_force = jr.split(jr.fold_in(jr.key(seed), k), 3)
    robot = other_mass(model, of_model)
    q, qd = jd.random_state(robot, of_start)
    return robot, jd.rollout(robot, q, qd, torques(robot, of_force), H)


def same(a, b, rtol=1e-12):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("k", [0, 5, 9])
def test_a_motion_is_a_rollout_from_its_key(model, data, k):
    robot, run = by_hand(model, k)
    same(data[k], run)
    same(data.model_of(k), robot)


def test_motions_one_by_one_by_slice_by_number_and_by_shard(data):
    assert len(data) == COUNT and len(data.shards) == 3 and not data.missing()
    every = [jax.tree.leaves(run) for run in data]
    for numbers, batch in [
        (range(2, 9, 3), data[2:9:3]),
        ([9, 0, 4, 3, 0], data[[9, 0, 4, 3, -COUNT]]),
        (range(COUNT), jax.tree.map(lambda *x: jnp.concatenate(x), *data.batches())),
    ]:
        rows = [jnp.stack(x) for x in zip(*(every[k] for k in numbers), strict=True)]
        same(batch, jax.tree.unflatten(jax.tree.structure(batch), rows), rtol=0)
    assert data[5:5].q.shape == (0, STEPS + 1, 1)
    with pytest.raises(IndexError, match="motion 10 of a data set of 10"):
        data[COUNT]


def test_shards_do_not_matter(model, data, tmp_path):
    same(generate(tmp_path, model, shard=COUNT + 1)[:], data[:])


def test_a_table_no_force_and_a_policy_of_ones_own(model, tmp_path):
    """A policy of one's own closes over what its key gave."""

    def toward(model, key):
        goal = jr.normal(key, (model.nv,), model.mass.dtype)
        return lambda t, q, qd: goal - q

    def start(model, key):
        return jd.neutral(model), jnp.ones_like(model.damping)

    few = {"count": 2, "start": start}
    table = jnp.ones((3, 1))
    runs = [
        jd.generate(tmp_path / "a", model, table, H, **few)[1],
        jd.generate(tmp_path / "b", model, None, H, steps=3, **few)[1],
        jd.generate(tmp_path / "c", model, None, H, steps=3, torques=toward, **few)[1],
    ]
    np.testing.assert_array_equal(runs[0].tau, jnp.ones((4, 1)))
    np.testing.assert_array_equal(runs[1].tau, jnp.zeros((4, 1)))
    goal = jr.normal(jr.split(jr.fold_in(jr.key(0), 1), 3)[2], (1, 1))
    np.testing.assert_allclose(runs[2].tau, goal - runs[2].q)
    with pytest.raises(ValueError, match="either tau, for all, or torques"):
        jd.generate(tmp_path, model, table, H, torques=torques, **few)
    with pytest.raises(ValueError, match="say how many `steps`"):
        jd.generate(tmp_path, model, None, H, **few)


class Killed(BaseException):
    pass


def die_at(patch, step):
    """Patches the process to end at its n-th step towards the disk, tidying nothing."""
    done = 0

    def counted(f):
        def call(*args):
            nonlocal done
            done += 1
            if done == step:
                patch.setattr(Path, "unlink", lambda *_, **__: None)
                raise Killed
            return f(*args)

        return call

    for name in ("fsync", "replace"):
        patch.setattr(os, name, counted(getattr(os, name)))


def test_ended_at_any_step_and_taken_up_again(model, data, tmp_path):
    """For each file, after its bytes, before its name, and before the folder's."""
    expected, step, left = contents(data.folder), 0, 0
    while step := step + 1:
        folder = tmp_path / str(step)
        try:
            with pytest.MonkeyPatch.context() as patch:
                die_at(patch, step)
                generate(folder, model)
            break
        except Killed:
            left += len(contents(folder).keys() - expected)
            assert contents(generate(folder, model).folder) == expected
    assert step == 3 * 3 + 3 + 2 + 1  # shards, manifest, model, and nothing more
    assert left == 2 * 5  # the temporary file of each


@pytest.mark.slow
def test_killed_and_taken_up_again():
    """With SIGKILL, at random; `benchmarks/generate_kills.py` does it 20 times."""
    script = ROOT / "benchmarks" / "generate_kills.py"
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, script, "--kills", "3"],
        capture_output=True,
        env=env,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"3 kills, .* files the same as of an uninterrupted", run.stdout)


@pytest.mark.parametrize("damage", ["cut", "changed", "swapped", "gone"])
def test_a_bad_shard_is_named_and_made_again(model, data, tmp_path, damage):
    folder = generate(tmp_path, model).folder
    path, other = folder / "shard-000001.npz", folder / "shard-000000.npz"
    whole = path.read_bytes()
    middle = len(whole) // 2
    if damage == "gone":
        path.unlink()
    else:
        bad = {
            "cut": whole[:middle],
            "changed": whole[:middle]
            + bytes([whole[middle] ^ 1])
            + whole[middle + 1 :],
            "swapped": other.read_bytes(),
        }
        path.write_bytes(bad[damage])
    again = jd.Dataset(folder)
    assert again.missing() == ([path] if damage == "gone" else [])
    with pytest.raises(jd.ModelError, match=r"1 of 4 files .* shard-000001"):
        again.verify()
    with pytest.raises(jd.ModelError, match="shard-000001"):
        again[4]
    inode = other.stat().st_ino
    generate(folder, model).verify()
    assert path.read_bytes() == whole
    assert other.stat().st_ino == inode  # which was whole, and was left alone


def test_another_request_is_refused(model, data):
    before = contents(data.folder)
    heavier = eqx.tree_at(lambda m: m.mass, model, 2 * model.mass)
    for robot, options, word in [
        (model, {"seed": 1}, "seed is 0 there, 1 now"),
        (model, {"count": 11}, "count is 10 there, 11 now"),
        (model, {"torques": lambda m, key: torques(m, key)}, "torques is"),
        (model, {"integrator": "rk4"}, "options is"),
        (heavier, {}, "model is"),
    ]:
        with pytest.raises(jd.ModelError, match=word + r".* Choose another folder"):
            generate(data.folder, robot, **options)
    assert contents(data.folder) == before


def test_functions_are_known_by_what_they_do():
    def scaled(a, offset=0):
        return lambda t, q, qd: a * q + offset

    assert described(scaled(2.0)) == described(scaled(2.0))
    assert described(scaled(2.0)) != described(scaled(3.0))
    assert described(scaled(jnp.ones(2))) != described(scaled(jnp.zeros(2)))
    assert described(lambda t, q, qd: q) != described(lambda t, q, qd: -q)
    assert described(jax.jit(torques)) != described(torques)

    def net(seed):
        return eqx.nn.MLP(2, 1, 3, 1, activation=jnp.tanh, key=jr.key(seed))

    assert described(net(0)) == described(net(0)) != described(net(1))
    assert list({0, 8}) != list({8, 0})  # as its parts happen to lie
    assert described({0, 8}) == described({8, 0})

    class Spring(eqx.Module):
        k: float

        def __call__(self, t, q, qd):
            return -self.k * q

    class Damper(Spring):
        def __call__(self, t, q, qd):
            return -self.k * qd

    Damper.__qualname__ = Spring.__qualname__
    assert described(Spring(1.0)) == described(Spring(1.0))
    assert described(Spring(1.0)) != described(Spring(2.0))
    assert described(Spring(1.0)) != described(Damper(1.0))


def test_a_folder_has_one_writer(model, data, tmp_path):
    with (
        _folder.alone(data.folder, (0, 1)),
        pytest.raises(jd.ModelError, match="Another process is writing"),
    ):
        generate(data.folder, model)
    with _folder.alone(data.folder, (0, 2)):
        with pytest.raises(jd.ModelError, match="Another process is writing"):
            generate(data.folder, model)  # all of it
        with pytest.raises(jd.ModelError, match="give each a `share` of its own"):
            generate(data.folder, model, share=(0, 2))
        generate(data.folder, model, share=(1, 2))


def test_shares_make_the_whole(model, data, tmp_path):
    half = generate(tmp_path, model, share=(1, 2))
    missing = ["shard-000000.npz", "shard-000002.npz"]
    assert [p.name for p in half.missing()] == missing
    with pytest.raises(jd.ModelError, match="has not been made yet"):
        half[0]
    generate(tmp_path, model, share=(0, 2))
    assert contents(tmp_path) == contents(data.folder)
    with pytest.raises(ValueError, match=r"share is \(2, 2\)"):
        generate(tmp_path, model, share=(2, 2))


def test_refusals_before_anything_is_written(model, tmp_path):
    def other_robot(model, key):
        return jd.robots.rod_chain(2)

    folder = tmp_path / "new"
    with pytest.raises(jd.ModelError, match="a robot of other joints"):
        jd.generate(folder, model, None, H, count=1, steps=1, randomize=other_robot)
    with pytest.raises(ValueError, match="count is 0"):
        generate(folder, model, count=0)
    with pytest.raises(jd.ModelError, match="tau has shape"):
        jd.generate(folder, model, jnp.zeros((3, 2)), H, count=1)
    assert not folder.exists()
    with pytest.raises(jd.ModelError, match="holds no data set"):
        jd.Dataset(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(jd.ModelError, match="cannot be a folder"):
        generate(tmp_path / "file", model)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(jd.ModelError, match="is not a manifest"):
        generate(tmp_path, model)
