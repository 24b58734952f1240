"""The text of a description as it stands, and the encoding that it says it has."""

import os
import re
from pathlib import Path

from .._errors import ModelError

_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.:-]+)["']""")

_WIDE = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def declared(source: str | os.PathLike) -> tuple[str, str]:
    """The text with its line ends, of a path or as given; and the encoding."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source, "utf-8"
    data = Path(source).read_bytes()
    if data[:2] in _WIDE:
        encoding = _WIDE[data[:2]]
    else:
        found = _ENCODING.match(data.removeprefix(b"\xef\xbb\xbf"))
        encoding = found[1].decode() if found else "utf-8"
    try:
        return data.decode(encoding), encoding
    except (LookupError, UnicodeError) as error:
        raise ModelError(
            f"{source} is not {encoding} ({error}). Save it anew."
        ) from None
