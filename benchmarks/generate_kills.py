"""Is a data set that was killed twenty times while written the one that never was?

Processes that run `jd.generate` are killed with SIGKILL at random moments: some while
they start, most among the writing of small shards. After each kill every shard under
its name must be whole; in the end every file must have the bytes of an uninterrupted
run. Children are forked from a process that has imported JAX and not yet used it.

    python benchmarks/generate_kills.py --kills 20
"""

import argparse
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import jax
import jax.random as jr

import jaxdenoc as jd

SHARDS_PER_KILL, ROWS, STEPS = 120, 3, 4


def torques(model, key):
    return jr.normal(key, (STEPS, model.nv), model.mass.dtype)


def generate(folder: Path, kills: int) -> None:
    jax.config.update("jax_enable_x64", True)
    model = jd.robots.rod_chain(1)
    count = SHARDS_PER_KILL * ROWS * (kills + 1) - 1  # and a last shard that is short
    options = {"count": count, "shard": ROWS, "torques": torques, "progress": False}
    jd.generate(folder, model, None, 0.01, **options)


def forked(work, *args) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*args)
        code = 0
    finally:
        os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(folder: Path, kills: int, rng: random.Random) -> bool:
    """One process, killed; False if it had ended before."""
    child, before = forked(generate, folder, kills), shards(folder)
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 2))  # while it imports, compiles and checks
    else:
        while shards(folder) == before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.15))
    os.kill(child, signal.SIGKILL)
    return ended(child) == -signal.SIGKILL


def shards(folder: Path) -> int:
    return len(list(folder.glob("shard-*.npz")))


def strays(folder: Path) -> int:
    return len([p for p in folder.glob(".*") if not p.name.startswith(".lock")])


def whole(folder: Path) -> None:
    """Exits with code 0 if each shard that is there is whole."""
    jax.config.update("jax_enable_x64", True)
    data = jd.Dataset(folder)
    for s, path in enumerate(data.shards):
        assert not path.exists() or data.is_whole(s), path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, start = random.Random(args.seed), time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        once, often = Path(place, "once"), Path(place, "often")
        reference = forked(generate, once, args.kills)
        done = left = 0
        while done < args.kills:
            if not killed(often, args.kills, rng):
                print(f"The run ended after {done} kills. Give it more shards.")
                return 1
            done, left = done + 1, left + strays(often)
            print(f"kill {done}: {shards(often)} shards, {strays(often)} strays")
            if shards(often) and ended(forked(whole, often)):
                print("A shard is not whole.")
                return 1
        codes = ended(forked(generate, often, args.kills)), ended(reference)
        same = contents(once) == contents(often)
        files = len(contents(once))
    print(
        f"{done} kills, {left} files left half-written and removed, {files} files "
        f"{'the same' if same else 'NOT THE SAME'} as of an uninterrupted run, "
        f"{time.perf_counter() - start:.0f} s, jax {jax.__version__}"
    )
    return 0 if same and codes == (0, 0) else 1


if __name__ == "__main__":
    raise SystemExit(main())
