"""Changes to XML text in their places, while every other byte stays as it is."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers.expat import ParserCreate

_TAG = re.compile(rb"""<[^\s/>]+((?:\s+[^\s=>]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*/?>""")
_ATTRIBUTE = re.compile(rb"""\s+([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_BLANK = " \t\r\n\ufeff"


@dataclass
class Place:
    """An element: where its tags begin and end, in bytes, and what is in it."""

    tag: str
    attributes: dict[str, str]
    start: int
    opened: int = 0  # behind its first tag
    empty: bool = False  # <tag/>
    end: int = 0  # behind its last tag
    children: list["Place"] = field(default_factory=list)

    def child(self, tag: str) -> "Place | None":
        return next((c for c in self.children if c.tag == tag), None)


@dataclass
class New:
    """An element to put in."""

    tag: str
    attributes: Mapping[str, str]
    children: Sequence["New"] = ()

    def lines(self, indent: str, step: str) -> list[str]:
        pairs = "".join(f' {name}="{value}"' for name, value in self.attributes.items())
        if not self.children:
            return [f"{indent}<{self.tag}{pairs}/>"]
        inner = [x for c in self.children for x in c.lines(indent + step, step)]
        return [f"{indent}<{self.tag}{pairs}>", *inner, f"{indent}</{self.tag}>"]


class Edits:
    """XML text, known to be sound, and the changes to be made to it."""

    def __init__(self, text: str):
        body = text.lstrip(_BLANK)
        self._before = text[: len(text) - len(body)]
        self._bytes = body.encode()
        self._changes: list[tuple[int, int, bytes]] = []
        self._end_of_line = "\r\n" if "\r\n" in body else "\n"
        self.root = _places(self._bytes)

    def set(self, place: Place, name: str, value: str) -> None:
        """An attribute's value, or a new attribute behind the others."""
        tag = _TAG.match(self._bytes, place.start)
        assert tag is not None  # as the parser has found one here
        for found in _ATTRIBUTE.finditer(self._bytes, *tag.span(1)):
            if found[1] == name.encode():
                group = 2 if found[2] is not None else 3
                self._changes.append((*found.span(group), value.encode()))
                return
        self._changes.append((tag.end(1), tag.end(1), f' {name}="{value}"'.encode()))

    def add(self, place: Place, new: Sequence[New], *, last: bool = False) -> None:
        """New elements inside a place, first or last, indented as its others are."""
        outer = self._indent(place)
        inner = self._indent(place.children[0]) if place.children else None
        if outer is None or (place.children and inner is None):  # all in one line
            text = "".join("".join(x.lines("", "")) for x in new)
            around = "", ""
        else:
            inner = f"{outer}  " if inner is None else inner
            step = inner.removeprefix(outer) or "  "
            lines = [line for x in new for line in x.lines(inner, step)]
            text = self._end_of_line.join(lines)
            around = self._end_of_line, f"{self._end_of_line}{outer}"
        if place.empty:
            at = self._bytes.rindex(b"/", place.start, place.opened)
            closing = f">{around[0]}{text}{around[1]}</{place.tag}>"
            self._changes.append((at, place.opened, closing.encode()))
            return
        at = place.children[-1].end if last and place.children else place.opened
        tail = "" if place.children else around[1]
        if not place.children and b"\n" in self._bytes[place.opened : place.end]:
            tail = ""
        self._changes.append((at, at, f"{around[0]}{text}{tail}".encode()))

    def text(self) -> str:
        """The text with all changes made."""
        parts, at = [], 0
        for start, end, new in sorted(self._changes):
            parts += [self._bytes[at:start], new]
            at = end
        return self._before + b"".join([*parts, self._bytes[at:]]).decode()

    def _indent(self, place: Place) -> str | None:
        """The blanks before an element, or none if something else is in its line."""
        line = self._bytes[: place.start].rpartition(b"\n")
        blank = line[2].decode(errors="replace")
        return blank if line[1] and not blank.strip() else None


def _places(data: bytes) -> Place:
    """The tree of places. Document types have been refused before."""
    parser = ParserCreate("utf-8")
    top = Place("", {}, 0)
    inside = [top]

    def start(tag, attributes):
        at = parser.CurrentByteIndex
        found = _TAG.match(data, at)
        assert found is not None
        place = Place(tag, attributes, at, found.end(), found[0].endswith(b"/>"))
        inside[-1].children.append(place)
        inside.append(place)

    def end(tag):
        place = inside.pop()
        at = place.opened if place.empty else parser.CurrentByteIndex
        place.end = at if place.empty else data.index(b">", at) + 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    return top.children[0]
