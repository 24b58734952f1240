"""How long a call takes, and how much memory a process has needed."""

import os
import resource
from time import perf_counter

import numpy as np

PATIENCE = 60  # seconds of repeats, whatever number was asked for


def timed(call):
    """Seconds of one call."""
    start = perf_counter()
    call()
    return perf_counter() - start


def median(seconds_of_call, repeats):
    """The median of what `seconds_of_call()` says, the least, and how often.

    On a machine that others use, the least tells more.
    """
    seconds, start = [], perf_counter()
    while len(seconds) < repeats:
        seconds.append(seconds_of_call())
        if len(seconds) >= 3 and perf_counter() - start > PATIENCE:
            break
    middle, least = float(np.median(seconds)), min(seconds)
    return {"seconds": middle, "least seconds": least, "repeats": len(seconds)}


def peak_MB():
    """The most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def total_MB():
    """The memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
