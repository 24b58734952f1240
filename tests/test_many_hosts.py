"""Several processes give the numbers of one, and none is left over."""

import json
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples/06_many_hosts.py"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture
def children(monkeypatch):
    """Those that were started; all of them have ended when the test has."""
    started, popen = [], subprocess.Popen

    def start(*args, **options):
        started.append(popen(*args, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    yield started
    assert all(child.poll() is not None for child in started)


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(example, children):
    found = example["main"](["--processes", "2"])
    assert len(children) == 2
    assert found["same"] and found["many"]["q"].shape == (48, 21, 2)
    assert found["apart"] < 1e-12
    assert abs(found["one"]["slope"]) > 0.1


def test_processes_that_take_too_long_are_ended(example, children, tmp_path):
    launch = example["launch"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(launch.__globals__, "PATIENCE", 0)
        with pytest.raises(TimeoutError, match="took more than 0 s"):
            launch(2, tmp_path)
    assert [child.returncode for child in children] == [-signal.SIGKILL] * 2


LOCAL_VALUES = """
import json, os, sys, traceback
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
port, k = map(int, sys.argv[1:])
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 2)
try:
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, k)
    import jaxdenoc as jd
    def f(rule, c, x):
        return rule(c["a"] * x) + c["b"]
    run = jd.batched(f, in_axes=(None, None, 0))
    c = {"a": jnp.array(2.0), "b": 1.0}
    def apart(found, x):
        whole = jax.jit(lambda y: jnp.max(jnp.abs(y - np.sin(2 * x) - 1)))(found)
        return [found.is_fully_addressable, float(whole)]
    even, odd = np.arange(8.0), np.arange(13.0)
    turned = NamedSharding(Mesh(np.array(jax.devices())[::-1], "x"), PartitionSpec("x"))
    part = jax.make_array_from_callback(even.shape, turned, lambda i: even[i])
    last = jax.device_put(even, jax.local_devices()[1])
    slope = jax.grad(lambda a: jnp.sum(run(jnp.sin, {"a": a, "b": 1.0}, even)))(2.0)
    found = [apart(run(jnp.sin, c, x), np.asarray(x) if x is not part else even)
             for x in (even, odd, jnp.asarray(odd), last, part)]
    slope -= np.sum(even * np.cos(2 * even))
    print("found", json.dumps([found, float(slope)]))
    jax.distributed.shutdown()
except Exception:
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)
"""


@pytest.mark.slow
def test_values_that_every_process_has(example, children):
    """Of NumPy and of JAX, even and odd in number, and an array of all processes that
    lies in another order: all become one global array."""
    port = str(example["free_port"]())
    line = [sys.executable, "-c", LOCAL_VALUES, port]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    try:
        for k in range(2):
            subprocess.Popen([*line, str(k)], **pipe)
        said = [child.communicate(timeout=120) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    for out, errors in said:
        lines = [line for line in out.splitlines() if line.startswith("found")]
        assert lines, errors
        found, slope = json.loads(lines[0].removeprefix("found"))
        assert all(not alone and apart < 1e-15 for alone, apart in found)
        assert len(found) == 5 and abs(slope) < 1e-12
