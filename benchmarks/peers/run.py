"""The program: one peer, one quantity, one line of JSON."""

import argparse
import json
import os
import warnings
from importlib import import_module, metadata
from pathlib import Path

from . import robot, states
from .names import JAX_PEERS, PEERS, QUANTITIES


def main(argv=None):
    options = arguments(argv)
    about = {"peer": options.peer, "quantity": options.quantity}
    warnings.simplefilter("ignore")
    try:
        print(json.dumps(about | one(options)), flush=True)
    except metadata.PackageNotFoundError as error:
        print(json.dumps(about | {"error": f"not installed: {error.name}"}))
    except Exception as error:  # whatever a peer has to say against it
        reason = (str(error).strip().splitlines() or [""])[0]
        print(json.dumps(about | {"error": f"{type(error).__name__}: {reason}"}))


def arguments(argv):
    parser = argparse.ArgumentParser(description="One measurement of one peer.")
    parser.add_argument("peer", choices=tuple(PEERS))
    parser.add_argument("quantity", choices=QUANTITIES)
    parser.add_argument("--urdf", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--floating", action="store_true")
    parser.add_argument("--states", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--dt", type=float, default=0.001)
    parser.add_argument("--mode", help="of several ways to the numbers, this one only")
    return parser.parse_args(argv)


def one(options):
    """The measurement, with the largest difference from what is expected."""
    os.environ["JAX_ENABLE_X64"] = "1" if options.dtype == "float64" else "0"
    version = metadata.version(PEERS[options.peer])
    options.names = robot.joint_names(options.urdf, options.floating)
    given = states.read(options.states, options.batch, options.names, options.floating)
    numbers, found = (in_jax if options.peer in JAX_PEERS else outside)(options, given)
    expected = given.get("expected")
    compared = found is not None and expected is not None
    return {
        "version": version,
        "batch": len(given["q"]),
        "dtype": options.dtype,
        "compile seconds": 0.0,
        "difference": states.difference(found, expected) if compared else None,
    } | numbers


def outside(options, given):
    """A library without JAX."""
    peer = import_module(f".with_{options.peer}", __package__)
    return peer.run(options.quantity, given, options)


def in_jax(options, given):
    """A JAX library. The cotangent of reverse mode is ones unless the file has one."""
    from . import with_jax

    peer = import_module(f".with_{options.peer}", __package__).build(options)
    ours, theirs, floating = options.names, peer.names, options.floating
    way = states.Convention(given, ours, theirs, floating, peer.twist)
    ones = 0 * given["qd"] + 1
    cotangent = way.rates(given.get("cotangent", ones))
    args = (*way.to_peer(options.quantity), cotangent)
    numbers, found = with_jax.measure(peer, options.quantity, args, options)
    return numbers, way.from_peer(options.quantity, found)
