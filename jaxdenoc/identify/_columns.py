"""What a column of a log is: of which quantity and joint, and in which unit."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import pi

import numpy as np

from .._errors import ModelError
from ..model import Model

# names of quantities, in any case and with any of . / - : or a blank for the underscore
ALIASES = {
    "q": "q pos position positions angle joint_position theta",
    "qd": "qd dq qdot q_dot vel velocity velocities speed rate joint_velocity",
    "qdd": "qdd ddq qddot q_ddot acc accel acceleration accelerations",
    "tau": "tau torque torques effort efforts force trq joint_torque joint_effort",
}
TIMES = "t time times timestamp stamp time_stamp seconds"
OTHERS = ("sound", "motion")  # what `Trajectory.to_csv` writes beside the numbers

_TIME = {"s": 1, "sec": 1, "second": 1, "seconds": 1, "min": 60.0}
_TIME |= {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_TURN = {"rad": 1, "radian": 1, "radians": 1, "mrad": 1e-3, "rev": 2 * pi}
_TURN |= {"turn": 2 * pi} | dict.fromkeys(("deg", "degree", "degrees", "°"), pi / 180)
_LENGTH = {"m": 1, "cm": 1e-2, "mm": 1e-3}
_TORQUE = {"nm": 1, "mnm": 1e-3, "nmm": 1e-3, "ncm": 1e-2, "knm": 1e3}
_FORCE = {"n": 1, "mn": 1e-3, "kn": 1e3}


def _per(unit: dict, *times: str) -> dict:
    return {u + s: x for u, x in unit.items() for s in times}


# of a joint that turns and of one that slides, by quantity
_UNITS = {
    ("q", False): _TURN,
    ("q", True): _LENGTH,
    ("qd", False): _per(_TURN, "/s", "/sec", "ps") | {"rpm": pi / 30},
    ("qd", True): _per(_LENGTH, "/s", "/sec"),
    ("qdd", False): _per(_TURN, "/s2", "/sec2"),
    ("qdd", True): _per(_LENGTH, "/s2", "/sec2"),
    ("tau", False): _TORQUE,
    ("tau", True): _FORCE,
}


@dataclass(frozen=True)
class Column:
    """One that is used: its name in the file, what it is, and what makes it SI."""

    name: str
    quantity: str  # t, q, qd, qdd, tau, or one of OTHERS
    index: int  # in the array of that quantity
    factor: float
    declared: bool  # whether its unit was said


def coordinate_names(model: Model) -> dict[str, tuple[str, ...]]:
    """Of every quantity, the names that `Trajectory.to_csv` gives its entries."""
    rates = model.velocity_names
    of_q = rates
    if model.floating_base:
        base = model.joint_names[0]
        parts = ("x", "y", "z", "qw", "qx", "qy", "qz")
        of_q = (*(f"{base}.{s}" for s in parts), *rates[6:])
    return {"q": of_q, "qd": rates, "qdd": rates, "tau": rates}


def columns_of(
    file: str,
    headers: Sequence[str],
    model: Model,
    columns: Mapping[str, str] | None,
    units: Mapping[str, str] | None,
) -> tuple[list[Column], list[str]]:
    """The columns that are used, and the names of those that are not."""
    given, wanted = dict(columns or {}), dict(units or {})
    known = _known(model, headers)
    found: dict[tuple[str, int], Column] = {}
    unused = []
    for s in given:
        if s not in headers:
            raise ModelError(f"{file}: columns names '{s}', which is no column of it.")
    for header in headers:
        place, unit = _place(file, header, given, known)
        if place is None:
            unused.append(header)
            continue
        said = wanted.pop(header, None) or unit or wanted.get(place[0])
        factor = _factor(file, header, place, said, model)
        column = Column(header, *place, factor, bool(said))
        if place in found:
            raise ModelError(
                f"{file}: '{found[place].name}' and '{header}' are both the "
                f"{_in_words(place, model)}. Say with columns= which one it is, or "
                "rename the other."
            )
        found[place] = column
    _all_used(file, wanted)
    return list(found.values()), unused


def _place(file, header, given, known) -> tuple[tuple[str, int] | None, str]:
    """The quantity and number of a column, and the unit that its name says."""
    if header in given:
        place = known.get(_plain(given[header]))
        if place is None:
            raise ModelError(
                f"{file}: columns says that '{header}' is '{given[header]}', which is "
                "no quantity of a joint. Write t, or q_, qd_, qdd_ or tau_ and a joint."
            )
        return place, _bracketed(header)[1]
    if (place := known.get(_plain(header))) is not None:
        return place, ""
    name, unit = _bracketed(header)
    if (place := known.get(_plain(name))) is not None:
        return place, unit
    name, _, unit = header.rpartition("_")  # q_joint1_deg
    place = known.get(_plain(name))
    return (place, unit) if place and _is_unit(unit) else (None, "")


def _known(model: Model, headers: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Every name that a column may have, as `_plain` makes it."""
    plain = {_plain(_bracketed(s)[0]) for s in headers} | {_plain(s) for s in headers}
    known = {}
    for quantity, joints in coordinate_names(model).items():
        for alias in ALIASES[quantity].split():
            one = _counts_from_one(alias, len(joints), plain)
            if len(joints) == 1:
                known[alias] = quantity, 0
            for k in range(len(joints)):
                for text in (f"{alias}_{k + one}", f"{alias}{k + one}"):
                    known[text] = quantity, k
    for quantity, joints in coordinate_names(model).items():  # joints' names go first
        for alias, (k, joint) in _pairs(ALIASES[quantity], joints):
            known[_plain(f"{alias}_{joint}")] = quantity, k
            known[_plain(f"{joint}_{alias}")] = quantity, k
    known |= dict.fromkeys(TIMES.split(), ("t", 0))
    return known | {s: (s, 0) for s in OTHERS}


def _pairs(aliases: str, joints: Sequence[str]) -> Iterator:
    return ((alias, pair) for alias in aliases.split() for pair in enumerate(joints))


def _counts_from_one(alias: str, n: int, plain: set[str]) -> int:
    first, last = ({f"{alias}_{k}", f"{alias}{k}"} & plain for k in (0, n))
    return int(bool(last) and not first)


def _plain(name: str) -> str:
    """Lower case, and one underscore for whatever stands between words."""
    return re.sub(r"[\s./:\-\[\]()_]+", "_", name.casefold()).strip("_")


def _bracketed(name: str) -> tuple[str, str]:
    """A name and the unit in brackets after it, if one is there that is no number."""
    found = re.fullmatch(
        r"(.*?)\s*[\[(]\s*([^\[\]()]*[^\d\s\[\]()][^\[\]()]*)[\])]\s*", name
    )
    return (found[1], found[2].strip()) if found else (name, "")


def _tidy(unit: str) -> str:
    unit = re.sub(r"[\s·*.⋅^_-]", "", unit.casefold().replace("²", "2"))
    return unit.replace("newtonmeter", "nm").replace("/s/s", "/s2")


def _is_unit(text: str) -> bool:
    known = set(_TIME).union(*_UNITS.values())
    return _tidy(text) in known


def _factor(file, header, place, unit, model) -> float:
    """What makes it SI; an error if it is no unit of such a quantity."""
    quantity, k = place
    if not unit or quantity in OTHERS or _no_unit(place, model):
        return 1.0
    table = (
        _TIME if quantity == "t" else _UNITS[quantity, bool(slides(model, quantity)[k])]
    )
    if _tidy(unit) not in table:
        raise ModelError(
            f"{file}, column '{header}': '{unit}' is no unit of the "
            f"{_in_words(place, model)}. Known are {', '.join(table)}."
        )
    return float(table[_tidy(unit)])


def _no_unit(place, model) -> bool:  # a quaternion
    return place[0] == "q" and model.floating_base and 3 <= place[1] < 7


def slides(model: Model, quantity: str) -> np.ndarray:
    """Of every entry, whether it is a length and not an angle, a force, no torque."""
    if not model.floating_base:
        return np.array([kind == "prismatic" for kind in model.joint_kinds])
    rest = [kind == "prismatic" for kind in model.joint_kinds[1:]]
    base = [True] * 3 + [False] * 4 if quantity == "q" else [False] * 3 + [True] * 3
    return np.array(base + rest)


def _in_words(place, model) -> str:
    quantity, k = place
    what = {"t": "time", "q": "position", "qd": "velocity", "qdd": "acceleration"}
    what |= {"tau": "torque"}
    if quantity not in coordinate_names(model):
        return what.get(quantity, f"'{quantity}'")
    return f"{what[quantity]} of '{coordinate_names(model)[quantity][k]}'"


def _all_used(file: str, units: Mapping[str, str]) -> None:
    left = [s for s in units if s not in ("t", *ALIASES)]
    if left:
        raise ModelError(
            f"{file}: units names '{left[0]}', which is no quantity (t, "
            f"{', '.join(ALIASES)}) and no column that is used."
        )
