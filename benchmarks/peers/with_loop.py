"""A library called state by state from Python, in one process per core."""

from multiprocessing import get_context
from time import perf_counter

import numpy as np

from . import clock
from .names import CORES


def measure(loop, model, args, repeats):
    """Numbers of `loop(model, *args, out)` split over the cores, and all results.

    Each process times itself; the slowest counts. Neither starting the processes nor
    sending states to them and results back is in the times, and results are only kept
    in a first, untimed call.
    """
    parts = list(zip(*(np.array_split(a, CORES) for a in args), strict=True))
    with get_context("spawn").Pool(CORES) as pool:

        def run(keep):
            work = [(loop, model, part, keep) for part in parts]
            return pool.starmap(_timed, work, chunksize=1)

        first = run(True)
        numbers = clock.median(lambda: max(s for s, _, _ in run(False)), repeats)
        pool.close()
        pool.join()
    grown = sum(memory for _, memory, _ in first)
    found = np.concatenate([out for _, _, out in first])
    return numbers | {"memory MB": grown}, found


def _timed(loop, model, part, keep):
    out, before = [] if keep else None, clock.peak_MB()
    start = perf_counter()
    loop(model, *part, out)
    seconds, grown = perf_counter() - start, clock.peak_MB() - before
    return seconds, grown, np.array(out) if keep else None
