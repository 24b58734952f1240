"""XML that is refused where it is dangerous or wrong, and never dropped in silence."""

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from .._errors import ModelError

_DIGITS = frozenset("+-.eE0123456789")  # float() alone takes 1_0, nan and inf too
_INFINITE = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}


class Node:
    """An element that remembers what was read of it, so that the rest can be listed.

    `where` names the file and the element in every refusal.
    """

    def __init__(self, element: Element, where: str):
        self.element, self.where = element, where
        self._attributes: set[str] = set()
        self._children: dict[int, Node] = {}  # by place
        self._aside: dict[str, str] = {}  # tags, and what to call them

    def refuse(self, message: str) -> NoReturn:
        raise ModelError(f"{self.where}: {message}")

    def get(self, attribute: str, default: str = "") -> str:
        self._attributes.add(attribute)
        return self.element.get(attribute, default)

    def need(self, attribute: str) -> str:
        text = self.get(attribute)
        if not text:
            self.refuse(f'it has no {attribute}. Write {attribute}="..." into it.')
        return text

    def number(
        self, attribute: str, default: float | None = None, *, infinite: bool = False
    ) -> float:
        """One number; without a default it must be there."""
        if default is not None and attribute not in self.element.attrib:
            return default
        return self._numbers(self.need(attribute), attribute, 1, infinite)[0]

    def numbers(self, attribute: str, default: Sequence[float]) -> list[float]:
        """As many numbers as the default has."""
        if attribute not in self.element.attrib:
            return list(default)
        return self._numbers(self.get(attribute), attribute, len(default))

    def _numbers(self, text, attribute, count, infinite=False) -> list[float]:
        words = text.split()
        if len(words) != count:
            self.refuse(
                f"{attribute} is '{_short(text)}', which is {len(words)} numbers. "
                f"Write {count}, with spaces between them."
            )
        try:
            return [_float(word, infinite) for word in words]
        except ValueError:
            remedy = "Run xacro on the file first" if "$" in text else "Correct it"
            self.refuse(
                f"{attribute} is '{_short(text)}', which is not a finite number. "
                f"{remedy}."
            )

    def child(self, tag: str) -> "Node | None":
        """The one child of this tag, if there is any."""
        found = self.children(tag)
        if len(found) > 1:
            self.refuse(f"it has {len(found)} <{tag}>. Keep one of them.")
        return found[0] if found else None

    def children(self, tag: str, *, key: str = "") -> list["Node"]:
        """The children of a tag; `key` is the attribute that names them in refusals."""
        for place, element in enumerate(self.element):
            if element.tag == tag and place not in self._children:
                name = element.get(key) if key else None
                what = f"{tag} '{name}'" if name else f"<{tag}>"
                self._children[place] = Node(element, f"{self.where}, {what}")
        return [self._children[i] for i, e in enumerate(self.element) if e.tag == tag]

    def set_aside(self, tags: Sequence[str], why: str) -> None:
        """List children as left out for a reason, read or not."""
        self._aside |= {tag: f"{tag} {why}" for tag in tags}

    def left_out(self) -> Counter[str]:
        """What nothing asked for: elements by tag, attributes as "tag attribute"."""
        count: Counter[str] = Counter()
        for attribute in self.element.attrib:
            if attribute not in self._attributes:
                count[f"{_local(self.element.tag)} {_local(attribute)}"] += 1
        for place, element in enumerate(self.element):
            tag = _local(element.tag)
            if place in self._children and tag not in self._aside:
                count += self._children[place].left_out()
            else:
                count[self._aside.get(tag, tag)] += 1
        return count


def read(source: str | os.PathLike) -> tuple[str, Node]:
    """What to call the source in messages, and its root element."""
    name, text = _text(source)
    if not text.strip():
        raise ModelError(f"{name} is empty. Give a URDF file or its text.")
    try:
        root = fromstring(text, forbid_dtd=True)
    except DefusedXmlException:
        raise ModelError(
            f"{name} declares a document type or entities, which is not safe to read. "
            "Delete its <!DOCTYPE ...>, and write entities out."
        ) from None
    except (ParseError, ValueError, LookupError) as error:
        remedy = "Run xacro on it" if "unbound prefix" in str(error) else "Repair it"
        raise ModelError(
            f"{name} is not complete XML: {error}. {remedy}, or fetch it again."
        ) from None
    return name, Node(root, name)


def _text(source: str | os.PathLike) -> tuple[str, str | bytes]:
    if isinstance(source, str):
        text = source.lstrip("\ufeff \t\r\n")
        if not text or text.startswith("<"):
            return "URDF text", text
    try:
        path = Path(source)
        return path.name, path.read_bytes().lstrip()
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"{_short(str(source))} cannot be read: {error}. Give the path of a URDF "
            "file, or its text, which begins with '<'."
        ) from None


def _float(word: str, infinite: bool) -> float:
    if infinite and word.lower() in _INFINITE:
        return float(word)
    value = float(word)
    if not _DIGITS.issuperset(word) or math.isinf(value):
        raise ValueError
    return value


def _local(tag: object) -> str:
    return str(tag).rpartition("}")[2]  # without its namespace


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
