"""A folder that is written by one process for each share, and can be taken up again.

`manifest.json` says what the files are: it is written first, and never changed. Locks
are the kernel's, so that those of a process that was killed are gone with it.
"""

import hashlib
import json
import os
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .._errors import ModelError
from .._npz import write_whole

MANIFEST = "manifest.json"
_NAME, _VERSION = "jaxdenoc.Dataset", 1


def made(folder: Path) -> None:
    """The folder, there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(
            f"{folder} cannot be a folder: {error.strerror}. Choose another place."
        ) from error


def settled(folder: Path) -> None:
    """The folder's names on the disk, as the files' contents already are."""
    here = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(here)
    finally:
        os.close(here)


def without_strays(folder: Path, names: Container[str]) -> None:
    """What a killed process left of these files, removed."""
    for stray in folder.glob(".*"):  # `.name.random`, as `write_whole` calls them
        if stray.name[1:].rpartition(".")[0] in names:
            stray.unlink(missing_ok=True)


def fingerprint(request: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def write_manifest(folder: Path, request: dict[str, Any]) -> None:
    head = {"format": _NAME, "version": _VERSION, "request": request}
    text = json.dumps(head, indent=1) + "\n"

    def fill(file):
        file.write(text.encode())

    write_whole(folder / MANIFEST, fill)
    settled(folder)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The request that the folder's files answer, if there is one."""
    path = folder / MANIFEST
    try:
        head = json.loads(path.read_bytes())
        if head["format"] != _NAME or head["version"] > _VERSION:
            raise ValueError(f"its format is {head['format']} {head['version']}")
        return dict(head["request"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} is not a manifest that `jd.generate` of this version wrote "
            f"({error}). Choose another folder, or update jaxdenoc."
        ) from error


def same_request(folder: Path, there: dict[str, Any], now: dict[str, Any]) -> None:
    """An error that names what differs, if anything does."""
    keys = [k for k in there | now if there.get(k) != now.get(k)]
    if keys:
        words = [f"{k} is {there.get(k)} there, {now.get(k)} now" for k in keys]
        raise ModelError(
            f"{folder} holds another data set: {'; '.join(words)}. Choose another "
            "folder, or ask for the same again."
        )


@contextmanager
def alone(folder: Path, share: tuple[int, int]) -> Iterator[None]:
    """Inside, no other process writes this share of the folder."""
    k, n = share
    with ExitStack() as held:
        # all of it excludes every share; shares exclude only themselves
        held.enter_context(_locked(folder / ".lock", shared=n > 1))
        if n > 1:
            held.enter_context(_locked(folder / f".lock-{k}-of-{n}"))
        yield


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Inside, no other process sets the folder up; waits until it is so."""
    with _locked(folder / ".lock-setup", wait=True):
        yield


@contextmanager
def _locked(path: Path, *, shared: bool = False, wait: bool = False) -> Iterator[None]:
    import fcntl  # here, because Windows has none, and the rest runs there

    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, how if wait else how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ModelError(
                f"Another process is writing {path.parent}. Wait until it has ended, "
                "or give each a `share` of its own, (0, 2) and (1, 2) for two."
            ) from None
        yield
