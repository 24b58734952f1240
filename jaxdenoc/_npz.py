"""Arrays in `.npz` files: whole or not at all, checksummed, with no pickle.

A file holds arrays by name and a head, which is JSON: what format and version it is,
whatever its writer adds, and the SHA-256 of the arrays' names, types, shapes and bytes.
The same contents make the same bytes.
"""

import hashlib
import json
import os
import uuid
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ._errors import ModelError

_BROKEN = (  # all that NumPy, zip and JSON raise over bytes that are not theirs
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError),
    *(ValueError, TypeError, LookupError, AttributeError, RuntimeError),
)


class Format:
    """One kind of file: what it is called, and how its errors say so."""

    def __init__(self, name: str, version: int, head: str, what: str, maker: str):
        self.name, self.version, self.head = name, version, head
        self.what, self.maker = what, maker

    def write(
        self,
        path: str | os.PathLike,
        about: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
    ) -> None:
        """One file with `about` and `arrays`, there whole or not at all."""
        head = {"format": self.name, "version": self.version, **about}
        head["dtypes"] = {name: a.dtype.name for name, a in arrays.items()}
        head["sha256"] = digest(arrays)
        text = np.frombuffer(json.dumps(head).encode(), np.uint8)
        plain = {name: _plain(a) for name, a in arrays.items()}

        def fill(file):
            np.savez(file, allow_pickle=False, **{self.head: text}, **plain)

        write_whole(Path(path), fill)

    def read(
        self, path: str | os.PathLike
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The head and the arrays of a file, or an error that says what is wrong."""
        path = Path(path)
        try:
            with np.load(path, allow_pickle=False) as file:
                head = json.loads(file[self.head].tobytes())
                if head["format"] != self.name:
                    raise ValueError(f"its format is {head['format']}")
                if head["version"] > self.version:
                    raise ModelError(
                        f"{path.name} is of format version {head['version']}, and this "
                        f"library reads up to {self.version}. Update jaxdenoc."
                    )
                names = [name for name in file.files if name != self.head]
                arrays = {s: file[s].view(head["dtypes"][s]) for s in names}
                if "sha256" in head and head["sha256"] != digest(arrays):
                    raise ValueError("its checksum is not that of its numbers")
                return head, arrays
        except FileNotFoundError:
            raise ModelError(
                f"{path} is not there. Give the path of {self.what}."
            ) from None
        except ModelError:
            raise
        except _BROKEN as error:
            raise ModelError(
                f"{path.name} is not a whole archive of {self.what} ({error}). Give a "
                f"file that {self.maker} wrote, or write it again."
            ) from error


def write_whole(path: Path, fill: Callable[[IO[bytes]], Any]) -> None:
    """What `fill` writes, under a name of its own until it is safe on the disk."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # beside it: one disk
    try:
        with open(part, "xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise ModelError(
            f"{path} cannot be written: {error.strerror}. Choose another place."
        ) from error
    finally:
        part.unlink(missing_ok=True)


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of the arrays, in the order of their names."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        a = arrays[name]
        found.update(f"{name} {a.dtype.name} {a.shape} ".encode())
        found.update(np.ascontiguousarray(_plain(a)).data)
    return found.hexdigest()


def _plain(a: np.ndarray) -> np.ndarray:
    """What NumPy has no type for, such as bfloat16, as the integers of its bits."""
    return a if a.dtype.kind in "fiub" else a.view(f"u{a.itemsize}")
