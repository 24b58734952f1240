"""The caller's side: start one measurement, wait for it, read its line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent.with_suffix(".py")
NO_EMITTERS = "--xla_cpu_use_fusion_emitters=false"


def measure(
    peer,
    quantity,
    *,
    urdf,
    batch,
    dtype="float64",
    repeats=20,
    states=None,
    floating=False,
    steps=None,
    dt=None,
    mode=None,
    flags="",
    seconds=180,
):
    """One measurement in a process of its own: what it printed, or what went wrong."""
    options = {"urdf": urdf, "batch": batch, "dtype": dtype, "repeats": repeats}
    options |= {"states": states, "steps": steps, "dt": dt, "mode": mode}
    command = [sys.executable, str(PROGRAM), peer, quantity]
    command += ["--floating"] if floating else []
    for name, value in options.items():
        command += [f"--{name}", str(value)] if value is not None else []
    environment = os.environ | {"XLA_FLAGS": flags}
    return {"peer": peer, "quantity": quantity} | _run(command, environment, seconds)


def best_of_flags(peer, quantity, *, flags=("", NO_EMITTERS), **options):
    """A JAX peer under each of XLA's flags: the fastest answer, with its `flags`.

    The other times are kept under "seconds by flags".
    """
    found = [measure(peer, quantity, flags=f, **options) | {"flags": f} for f in flags]
    times = {r["flags"]: r["seconds"] for r in found if "seconds" in r}
    best = min(found, key=lambda r: r.get("seconds", float("inf")))
    return best | {"seconds by flags": times}


def _run(command, environment, seconds):
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its own children end with it
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"error": f"no result in {seconds} s"}
    finally:
        _end(process)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if lines:
        return json.loads(lines[-1])
    last = (err.strip().splitlines() or ["nothing printed"])[-1]
    return {"error": f"ended with code {process.returncode}: {last}"}


def _end(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
