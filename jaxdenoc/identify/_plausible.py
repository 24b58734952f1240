"""Numbers of a log that are probably in another unit than they are taken to be in."""

import numpy as np

from ..model import Model
from ._columns import Column, coordinate_names, slides

FAR = 0.5  # of the range between its limits, beyond which no joint is thought to go
FAST = 10.0  # times a limit of speed or torque
TURN = 180 / np.pi


def doubts(
    columns: list[Column], arrays: dict[str, np.ndarray], model: Model
) -> list[str]:
    """What to tell of units, a sentence each. Units that were said are believed."""
    unsaid = {(c.quantity, c.index) for c in columns if not c.declared}
    found = [*_positions(arrays["q"], model, unsaid)]
    for quantity, limit in (("qd", model.qd_limit), ("tau", model.tau_limit)):
        if quantity in arrays:
            found += _sizes(
                quantity, arrays[quantity], np.asarray(limit), model, unsaid
            )
    step = np.median(np.diff(arrays["t"])) if len(arrays["t"]) > 1 else 0.0
    if ("t", 0) in unsaid and step >= 0.5:
        found.append(
            f"samples are {step:.3g} s apart: maybe times are in ms; say units={{'t': "
            "'ms'}"
        )
    return found


def _positions(q, model, unsaid):
    skip = 7 if model.floating_base else 0
    names, sliding = coordinate_names(model)["q"], slides(model, "q")
    offset = 6 if model.floating_base else 0
    limits = np.asarray(model.q_lower)[offset:], np.asarray(model.q_upper)[offset:]
    far = []
    for j, (low, high) in enumerate(zip(*limits, strict=True)):
        k = skip + j
        if ("q", k) not in unsaid or not np.isfinite([low, high]).all():
            continue
        if not np.isfinite(q[:, k]).any():
            continue
        least, most = np.nanmin(q[:, k]), np.nanmax(q[:, k])
        if max(low - least, most - high) > FAR * (high - low) + 0.1:
            far.append((names[k], least, most, low, high, sliding[k]))
    for name, least, most, low, high, slid in far:
        unit, other = ("m", "mm") if slid else ("rad", "deg")
        yield (
            f"'{name}' goes from {least:.4g} to {most:.4g} {unit}, far beyond its "
            f"limits {low:.4g} and {high:.4g}: maybe positions are in "
            f"{_word(other)}; say units={{'q': '{other}'}}"
        )


def _word(unit: str) -> str:
    return {"deg": "degrees", "mm": "millimetres"}[unit]


def _sizes(quantity, x, limit, model, unsaid):
    what, other = {
        "qd": ("velocity", "deg/s"),
        "tau": ("torque", "N·mm"),
    }[quantity]
    names = coordinate_names(model)[quantity]
    for k, most in enumerate(limit):
        here = np.abs(x[:, k])
        largest = np.nanmax(here) if np.isfinite(here).any() else 0.0
        if (quantity, k) in unsaid and 0 < FAST * most < largest:
            yield (
                f"the {what} of '{names[k]}' comes to {largest:.4g}, far beyond its "
                f"limit {most:.4g}: maybe it is in {other}"
            )
