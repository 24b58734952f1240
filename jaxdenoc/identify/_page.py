"""A page of HTML that needs nothing else: its style, its tables."""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5c6670; --line: #d5dade;
  --paper: #fcfcfb; --panel: #f1f3f4; --one: #1f6fb2; --two: #c2571a; --band: #c2571a33;
  --mark: #8a5a00; --markbg: #fff3d6; --bad: #a4262c; --good: #1b7340; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --soft: #9aa5af;
  --line: #3a4148; --paper: #15181b; --panel: #1f2428; --one: #6cb2ee; --two: #f0965a;
  --band: #f0965a33; --mark: #ffd479; --markbg: #3a2f14; --bad: #ff8d8d;
  --good: #7fd6a2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; padding-bottom: .2rem;
  border-bottom: 1px solid var(--line); }
p, ul { margin: .5rem 0; max-width: 46rem; } .soft, figcaption { color: var(--soft);
  font-size: .9rem; }
nav a { margin-right: .9rem; } a { color: var(--one); }
.scroll { overflow: auto; max-height: 34rem; border: 1px solid var(--line);
  border-radius: 4px; margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: var(--panel); font-weight: 600; }
td:first-child, th:first-child, .words { text-align: left; }
.words { white-space: normal; min-width: 16rem; }
tr.mark td { background: var(--markbg); } .mark b { color: var(--mark); }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
figure { margin: 1.2rem 0; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font-size: 11px; } svg .x { text-anchor: middle; }
svg .y { text-anchor: end; } svg path { fill: none; stroke-linejoin: round; }
svg .grid { stroke: var(--line); stroke-width: .7; }
svg .one { stroke: var(--one); stroke-width: 1; }
svg .two { stroke: var(--two); stroke-width: 1.4; }
svg .edge { stroke: var(--two); stroke-width: 1; stroke-dasharray: 5 3; }
svg .band { fill: var(--band); stroke: none; }
svg .rest { stroke: var(--soft); stroke-width: .8; }
.key { display: inline-block; width: 1.4em; height: .25em; vertical-align: middle;
  margin: 0 .3em 0 .8em; } .key.one { background: var(--one); }
.key.two { background: var(--two); }
.key.band { background: var(--band); height: .8em; }
@media print { .scroll { max-height: none; } figure { break-inside: avoid; } }
"""


def page(title: str, sections: Iterable[tuple[str, str]], lead: str) -> str:
    """Title, a way to every section, and the sections, of HTML that is sound."""
    parts = [(f"s{k}", name, html) for k, (name, html) in enumerate(sections)]
    ways = "".join(f'<a href="#{i}">{escape(name)}</a> ' for i, name, _ in parts)
    body = "".join(
        f'<section id="{i}"><h2>{escape(name)}</h2>{html}</section>\n'
        for i, name, html in parts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>"
        f"<main><h1>{escape(title)}</h1>{lead}<nav>{ways}</nav>\n{body}</main>"
        "</body></html>\n"
    )


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int | None = None,
    marked: Sequence[bool] | None = None,
) -> str:
    """Cells are HTML. `words` is the column of text, and `marked` rows stand out."""
    lines = []
    for k, row in enumerate(rows):
        kind = ' class="mark"' if marked is not None and marked[k] else ""
        cells = "".join(
            f'<td class="words">{c}</td>' if j == words else f"<td>{c}</td>"
            for j, c in enumerate(row)
        )
        lines.append(f"<tr{kind}>{cells}</tr>")
    kinds = [' class="words"' if j == words else "" for j in range(len(head))]
    top = "".join(
        f'<th scope="col"{kind}>{escape(s)}</th>'
        for s, kind in zip(head, kinds, strict=True)
    )
    label = escape(caption, quote=True)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table>'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def number(x: float, digits: int = 4) -> str:
    """With a true minus, and a dash for what is not there."""
    if not np.isfinite(x):
        return "–"
    text = f"{float(x):.{digits}g}"
    base, e, power = text.partition("e")
    text = f"{base}·10<sup>{int(power)}</sup>" if e else base
    return text.replace("-", "−")


def listed(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(s)}</li>" for s in items) + "</ul>"
