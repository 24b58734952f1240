"""Tables in files: names of columns, and those columns as numbers.

A table is opened for its names first and read for some of its columns then, so that
text in a column that nobody needs does no harm. A missing number is NaN. Rows are
counted as a spreadsheet does: of a CSV file the header is row 1, of others the first
sample is.
"""

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._errors import ModelError
from ..simulate import Trajectory

MISSING = frozenset({"", "nan", "na", "n/a", "none", "null", "-"})
_BLOCK = 1 << 16  # lines at a time


class Table(ABC):
    """A file, by the names of its columns."""

    def __init__(self, path: Path):
        self.path = path
        self.names: list[str] = []
        self.rows = np.zeros(0, int)  # of each sample, its row in the file

    @abstractmethod
    def read(self, names: Sequence[str]) -> np.ndarray:
        """These columns, one row per sample; fills in `rows`."""

    def refuse(self, why: str, sample: int | None = None, column: str = "") -> Any:
        """An error that says where."""
        where = [self.path.name]
        if sample is not None:
            where.append(f"row {self.rows[sample]}")
        if column:
            where.append(f"column '{column}'")
        raise ModelError(f"{', '.join(where)}: {why}")

    def _distinct(self) -> None:
        twice = {s for s in self.names if self.names.count(s) > 1 and s}
        if twice:
            self.refuse(f"more than one column is named '{min(twice)}'.")


def opened(path: Path) -> Table:
    """By the ending of its name."""
    kinds = {".npz": Arrays, ".parquet": Parquet, ".pq": Parquet}
    kinds |= dict.fromkeys((".csv", ".tsv", ".txt"), Text)
    if path.suffix.lower() not in kinds:
        raise ModelError(
            f"{path.name} ends in '{path.suffix}'. Give a file in {', '.join(kinds)}."
        )
    if not path.is_file():
        raise ModelError(f"{path} is not there. Give the path of a log.")
    return kinds[path.suffix.lower()](path)


class Text(Table):
    """Comma-separated values, or with semicolons, tabs or blanks between them."""

    def __init__(self, path: Path):
        super().__init__(path)
        try:
            with self._lines() as file:
                lines = ((k, line) for k, line in enumerate(file, 1) if line.strip())
                self.header, first = next(lines, (0, ""))
        except (OSError, UnicodeDecodeError) as error:
            self.refuse(f"it is not text that can be read ({error}).")
        if not first:
            self.refuse("it is empty. It needs a row of names, and rows of numbers.")
        first = first.strip().removeprefix("#")
        self.between = next((s for s in ",;\t" if s in first), " ")
        self.names = [s.strip() for s in self._cells(first.strip(" "))]
        if all(_is_number(s) for s in self.names):
            self.refuse(
                "it has no names of columns. Let the first row be of names, such as "
                "t, q_joint1, tau_joint1.",
            )
        self._distinct()

    def read(self, names: Sequence[str]) -> np.ndarray:
        columns = [self.names.index(s) for s in names]
        parts, rows = [np.zeros((0, len(columns)))], [np.zeros(0, int)]
        with self._lines() as file:
            at = self.header + 1
            list(islice(file, self.header))
            while lines := list(islice(file, _BLOCK)):
                found, own = self._block(lines, at, columns)
                parts.append(found)
                rows.append(own)
                at += len(lines)
        self.rows = np.concatenate(rows)
        return np.concatenate(parts)

    def _lines(self):
        return open(self.path, encoding="utf-8-sig", newline="")

    def _cells(self, line: str) -> list[str]:
        if self.between == " ":
            return line.split()
        return next(csv.reader([line], delimiter=self.between), [])

    def _block(self, lines, at, columns) -> tuple[np.ndarray, np.ndarray]:
        """By NumPy where every cell is a number, and else cell by cell."""
        between = None if self.between == " " else self.between
        found = np.zeros((0, 0))
        if between and {s.count(between) for s in lines} == {len(self.names) - 1}:
            with suppress(ValueError):
                found = np.loadtxt(
                    lines, delimiter=between, usecols=columns, comments=None, ndmin=2
                )
        if len(found) == len(lines):
            return found, np.arange(at, at + len(lines))
        full = [(k, line) for k, line in enumerate(lines, at) if line.strip()]
        rows = np.array([k for k, _ in full], int)
        found = [self._row(k, line, columns) for k, line in full]
        return np.array(found, float).reshape(-1, len(columns)), rows

    def _row(self, row: int, line: str, columns: list[int]) -> list[float]:
        cells = self._cells(line)
        if len(cells) != len(self.names):
            raise ModelError(
                f"{self.path.name}, row {row}: it has {len(cells)} cells, but there "
                f"are names for {len(self.names)}."
            )
        return [self._number(row, c, cells[c].strip()) for c in columns]

    def _number(self, row: int, column: int, cell: str) -> float:
        if self.between == ";":
            cell = cell.replace(",", ".")
        try:
            return float(cell)
        except ValueError:
            if cell.lower() in MISSING:
                return np.nan
        raise ModelError(
            f"{self.path.name}, row {row}, column '{self.names[column]}': '{cell}' is "
            "not a number. Leave the cell empty if there is none."
        )


class Arrays(Table):
    """NumPy's archives: columns by name, or tables by name, `q` for q_0, q_1, …"""

    def __init__(self, path: Path):
        super().__init__(path)
        self.found: dict[str, np.ndarray] = {}
        for name, x in self._arrays().items():
            if x.dtype.kind not in "fiub" or x.ndim == 0:
                continue  # a text, or one number for all of the file
            if x.ndim > 2:
                self.refuse(f"{name} has shape {x.shape}: give one motion a file.")
            if x.ndim == 1:
                self.found[name] = x
            else:
                self.found |= {f"{name}_{k}": x[:, k] for k in range(x.shape[1])}
        self.names = list(self.found)

    def read(self, names: Sequence[str]) -> np.ndarray:
        sizes = {name: len(self.found[name]) for name in names}
        if len(set(sizes.values())) > 1:
            self.refuse(f"its columns have different lengths: {sizes}.")
        k = next(iter(sizes.values()))
        self.rows = np.arange(1, k + 1)
        return np.stack([self.found[s].astype(float) for s in names], axis=1)

    def _arrays(self) -> dict[str, np.ndarray]:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                if "about" in file.files:
                    return self._motion()
                return {name: file[name] for name in file.files}
        except ModelError:
            raise
        except Exception as error:  # whatever NumPy and zip raise over other bytes
            return self.refuse(f"it is not a whole NumPy archive ({error}).")

    def _motion(self) -> dict[str, np.ndarray]:
        """What `Trajectory.save` wrote, with its checksum."""
        with jax.enable_x64(True):
            arrays = Trajectory.load(self.path).arrays()
        if arrays["t"].ndim > 1:
            self.refuse(f"it holds a batch of {len(arrays['t'])} motions: save one.")
        kept = {name: arrays[name] for name in ("t", "q", "qd", "tau")}
        return kept | {"sound": arrays["status.sound"]}


class Parquet(Table):
    """Parquet, by pyarrow, which is not installed with this library."""

    def __init__(self, path: Path):
        super().__init__(path)
        try:
            import pyarrow.parquet as parquet  # type: ignore[import-not-found]
        except ImportError:
            raise ModelError(
                f"{path.name} needs pyarrow to be read: pip install 'jaxdenoc[data]'."
            ) from None
        try:
            self.file = parquet.ParquetFile(path)
        except Exception as error:  # pyarrow has its own classes of errors
            self.refuse(f"it is not a whole Parquet file ({error}).")
        self.names = list(self.file.schema_arrow.names)
        self._distinct()

    def read(self, names: Sequence[str]) -> np.ndarray:
        table = self.file.read(columns=list(names))
        self.rows = np.arange(1, table.num_rows + 1)
        return np.stack([self._column(table, s) for s in names], axis=1)

    def _column(self, table, name: str) -> np.ndarray:
        column = table.column(name)
        try:
            return column.cast("float64").to_numpy()
        except Exception:
            kind = column.type
        return self.refuse(f"it holds {kind}, not numbers.", column=name)


def some_of(names: Sequence[str]) -> Iterator[str]:
    """Names for an error message, not too many of them."""
    yield from names[:12]
    if len(names) > 12:
        yield f"and {len(names) - 12} more"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
