"""Motions in files and tables, and what their status says."""

import csv

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import tree

T = 0.1 * jnp.arange(4.0)


def motion(rows=(4,), nq=2, nv=2, bad=None):
    rng = np.random.default_rng(0)
    q, qd, tau = (jnp.asarray(rng.normal(size=(*rows, n))) for n in (nq, nv, nv))
    if bad is not None:
        qd = qd.at[bad].set(jnp.nan)
    return jd.Trajectory(jnp.broadcast_to(T, rows), q, qd, tau)


def test_status_says_which_step_and_joint():
    run = motion(bad=(2, 1))
    np.testing.assert_array_equal(run.status, [True, True, False, True])
    assert not run.status.all() and run.status.any() and not run.status.ok
    model = jd.robots.rod_chain(2)
    assert run.status.describe(model) == (
        "left the finite numbers at step 1: joint 'joint2'"
    )
    assert motion().status.describe(model) == "ran to the end"
    assert (motion().status.step, motion().status.joint) == (-1, -1)


def test_status_of_a_batch_and_of_a_free_base():
    """The seven numbers of a free base are one joint, the first."""
    free = tree(2, (-1, 0, 1), floating_base=True)
    run = motion((3, 4), free.nq, free.nv, bad=(1, 3, 2))
    assert run.status.shape == (3, 4) and list(run.status.ok) == [True, False, True]
    assert run.status.describe(free) == [
        "ran to the end",
        f"left the finite numbers at step 2: joint '{free.joint_names[0]}'",
        "ran to the end",
    ]
    last = motion((4,), free.nq, free.nv, bad=(1, free.nv - 1))
    assert last.status.joint == 2


@pytest.mark.parametrize("rows", [(4,), (3, 4)])
def test_saved_and_loaded_to_the_last_bit(tmp_path, rows):
    run = motion(rows, bad=(*rows[:-1], 1))
    run.save(tmp_path / "run.npz")
    back = jd.Trajectory.load(tmp_path / "run.npz")
    assert jax.tree.structure(back) == jax.tree.structure(run)
    for x, y in zip(jax.tree.leaves(run), jax.tree.leaves(back), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    with np.load(tmp_path / "run.npz") as file:  # open to others
        np.testing.assert_array_equal(file["tau"], run.tau)
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_the_same_motion_makes_the_same_file(tmp_path):
    for name in "ab":
        motion().save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    motion().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(jd.ModelError, match=r"run.npz is not a whole archive"):
        jd.Trajectory.load(path)
    jd.save(jd.robots.rod_chain(1), path)
    with pytest.raises(jd.ModelError, match=r"not a whole archive"):
        jd.Trajectory.load(path)
    with pytest.raises(jd.ModelError, match=r"is not there. Give the path"):
        jd.Trajectory.load(tmp_path / "none.npz")


def test_changed_numbers_are_noticed(tmp_path):
    """An archive that is sound as a zip file, but whose numbers are not those saved."""
    path = tmp_path / "run.npz"
    motion().save(path)
    with np.load(path) as file:
        parts = dict(file)
    parts["q"][0, 0] += 1
    np.savez(path, **parts)
    with pytest.raises(jd.ModelError, match="its checksum is not that of its numbers"):
        jd.Trajectory.load(path)


def test_a_table_reads_back_as_the_same_numbers(tmp_path):
    model = jd.robots.rod_chain(2)
    run = motion(bad=(3, 0))
    run.to_csv(tmp_path / "run.csv", model)
    with open(tmp_path / "run.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["t", "q_joint1", "q_joint2", "qd_joint1", "qd_joint2",
                    "tau_joint1", "tau_joint2", "sound"]  # fmt: skip
    found = np.array(rows, float)
    whole = [run.t[:, None], run.q, run.qd, run.tau, run.status.sound[:, None]]
    np.testing.assert_array_equal(found, np.concatenate(whole, axis=1))


def test_tables_of_batches_and_of_free_bases(tmp_path):
    free = tree(2, (-1, 0), floating_base=True)
    run = motion((2, 4), free.nq, free.nv)
    run.to_csv(tmp_path / "run.csv", free)
    with open(tmp_path / "run.csv", newline="") as file:
        head, *rows = csv.reader(file)
    base = free.joint_names[0]
    assert head[:3] == ["motion", "t", f"q_{base}.x"] and f"qd_{base}.wx" in head
    assert len(rows) == 8 and [r[0] for r in rows] == ["0"] * 4 + ["1"] * 4
    assert float(rows[5][head.index(f"qd_{base}.vz")]) == run.qd[1, 1, 5]
    run.to_csv(tmp_path / "plain.csv")
    assert "q_7" in (tmp_path / "plain.csv").read_text().splitlines()[0]
