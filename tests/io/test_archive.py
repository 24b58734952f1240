import inspect
import io
import json
import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdenoc import ModelError, ModelWarning
from jaxdenoc.io import restore, save


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_model_comes_back_to_the_last_bit(
    tmp_path, random_model, floating_base, dtype
):
    model = random_model(1, floating_base)
    model = eqx.tree_at(lambda m: m.armature, model, model.armature + 0.1)
    model = jax.tree.map(lambda x: x.astype(dtype), model)
    if dtype.endswith("16"):  # too coarse for the rotations of a random robot
        eye = jnp.broadcast_to(jnp.eye(3, dtype=dtype), model.inertia.shape)
        where = lambda m: (m.placement.rotation, m.axis, m.inertia)  # noqa: E731
        model = eqx.tree_at(where, model, (eye, eye[:, 0], eye))
    save(model, tmp_path / "robot.npz")
    back = restore(tmp_path / "robot.npz")
    assert jax.tree.structure(back) == jax.tree.structure(model)
    for x, y in zip(jax.tree.leaves(model), jax.tree.leaves(back), strict=True):
        assert x.dtype == y.dtype
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def test_the_file_is_open_to_others(tmp_path, random_model):
    model = random_model(2)
    save(model, str(tmp_path / "robot"))
    with np.load(tmp_path / "robot", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["placement.rotation"][0],
                                      model.placement.rotation[0])  # fmt: skip
        assert json.loads(file["static"].tobytes())["parent"] == list(model.parent)


def test_a_failed_save_leaves_the_old_file(tmp_path, random_model, monkeypatch):
    model, path = random_model(3), tmp_path / "robot.npz"
    save(model, path)
    before = path.read_bytes()

    def full_disk(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(ModelError, match=r"No space left on device. Choose another"):
        save(random_model(4), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_float64_without_x64_is_said(tmp_path, random_model):
    model, path = random_model(5), tmp_path / "robot.npz"
    save(model, path)
    with jax.enable_x64(False):
        with pytest.warns(ModelWarning, match=r"robot.npz holds float64.*enable_x64"):
            back = restore(path)
        assert {x.dtype for x in jax.tree.leaves(back)} == {jnp.dtype("float32")}


def test_what_is_not_a_model_is_not_saved(tmp_path, random_model):
    with pytest.raises(ModelError, match="Only a Model can be saved"):
        inspect.unwrap(save)({"mass": 1.0}, tmp_path / "x.npz")
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), random_model(0))
    with pytest.raises(ModelError, match="mass has shape"):
        save(batch, tmp_path / "x.npz")
    with pytest.raises(ModelError, match=r"No such file or directory. Choose another"):
        save(random_model(0), tmp_path / "no" / "x.npz")


def _edited(whole: bytes, change) -> bytes:
    """The archive with its members changed."""
    with zipfile.ZipFile(io.BytesIO(whole)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
    return out.getvalue()


def _with_head(**changes):
    def change(members):
        head = json.loads(np.load(io.BytesIO(members["static.npy"])).tobytes())
        text = np.frombuffer(json.dumps(head | changes).encode(), np.uint8)
        file = io.BytesIO()
        np.save(file, text)
        members["static.npy"] = file.getvalue()

    return change


def _pickled(members):
    file = io.BytesIO()
    np.save(file, np.array([print], dtype=object), allow_pickle=True)
    members["mass.npy"] = file.getvalue()


BROKEN = {
    "empty": (lambda whole: b"", "not a whole archive"),
    "text": (lambda whole: b"<robot/>", "not a whole archive"),
    "cut": (lambda whole: whole[:-100], "not a whole archive"),
    "half": (lambda whole: whole[: len(whole) // 2], "not a whole archive"),
    "flipped": (lambda whole: whole[:700] + b"\xff" * 9 + whole[709:], "archive|sound"),
    "pickle": (lambda whole: _edited(whole, _pickled), "not a whole archive"),
    "foreign": (
        lambda whole: _edited(whole, _with_head(format="other")),
        "its format is other.*`jd.save` wrote",
    ),
    "newer": (lambda whole: _edited(whole, _with_head(version=2)), "Update jaxdenoc"),
    "no array": (
        lambda whole: _edited(whole, lambda m: m.pop("mass.npy")),
        "its checksum is not that of its numbers",
    ),
    "other array": (
        lambda whole: _edited(whole, lambda m: m.update({"x.npy": m["mass.npy"]})),
        "not a whole archive",
    ),
    "topology": (
        lambda whole: _edited(whole, _with_head(parent=[5])),
        "no sound model.*Save it again",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused(tmp_path, random_model, case):
    path = tmp_path / "robot.npz"
    save(random_model(6), path)
    damage, message = BROKEN[case]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match=f"robot.npz(?s:.*)({message})"):
        restore(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"robot.npz is not there. Give the path"):
        restore(tmp_path / "robot.npz")
    with pytest.raises(ModelError, match="not a whole archive"):
        restore(tmp_path)
