"""A search's state, and the file from which it can be taken up again."""

import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import jax
import numpy as np

from .._errors import ModelError
from .._npz import Format

FORMAT = Format(
    *("jaxdenoc.search", 1, "about", "an unfinished search", "`jd.identify`")
)


@dataclass(frozen=True)
class State:
    theta: np.ndarray
    d: np.ndarray  # of every segment's start
    history: np.ndarray
    damping: float
    count: int
    done: bool
    inner: tuple[np.ndarray, ...]  # of an optimiser


class Store:
    """Writes a state now and then, whole or not at all, if there is a file for it."""

    def __init__(self, path: str | os.PathLike | None, asked: str, every: float):
        from .. import __version__  # here, because the package is not there before

        self.path = None if path is None else Path(path)
        self.about = {"asked": asked, "jaxdenoc": __version__, "jax": jax.__version__}
        self.every, self.last = every, monotonic()

    def read(self) -> State | None:
        if self.path is None or not self.path.exists():
            return None
        about, x = FORMAT.read(self.path)
        for key, mine in self.about.items():
            if about.get(key) != mine:
                what = "another model, other data or options" if key == "asked" else (
                    f"{key} {about.get(key)}, and this is {mine}"
                )  # fmt: skip
                raise ModelError(
                    f"{self.path.name} is the checkpoint of {what}. Ask for the same, "
                    "or give another file."
                )
        inner = tuple(x[f"inner{i}"] for i in range(about["inner"]))
        plain = about["damping"], about["count"], about["done"]
        return State(x["theta"], x["d"], x["history"], *plain, inner)

    def write(self, state: State, last: bool = False) -> None:
        if self.path is None or not (last or monotonic() - self.last >= self.every):
            return
        about = {"damping": state.damping, "count": state.count, "done": state.done}
        arrays = {"theta": state.theta, "d": state.d, "history": state.history}
        arrays |= {f"inner{i}": np.asarray(x) for i, x in enumerate(state.inner)}
        about |= {"inner": len(state.inner)} | self.about
        FORMAT.write(self.path, about, arrays)
        self.last = monotonic()
