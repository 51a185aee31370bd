# SPDX-License-Identifier: Apache-2.0
"""One HTML file of sections, without scripts and without anything from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

__all__ = ["facts", "folded", "grid", "note", "page"]

_TEMPLATE = Path(__file__).with_name("page.html")


def page(title: str, subtitle: str, sections: Iterable[tuple[str, str]]) -> str:
    """A page.

    Args:
        title: Plain text.
        subtitle: Plain text.
        sections: Heading, which is plain text, and HTML.
    """
    body = "\n".join(f"<h2>{escape(name)}</h2>\n{content}" for name, content in sections)
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), subtitle=escape(subtitle), sections=body)


def facts(rows: Mapping[str, str]) -> str:
    """Names and values, as a table."""
    lines = [f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items()]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a heading; a row's cells are plain text."""
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return '<table class="grid">\n' + "\n".join(lines) + "\n</table>"


def note(text: str) -> str:
    """Small print; nothing of an empty text."""
    return f'\n<p class="note">{escape(text)}</p>' if text.strip() else ""


def folded(name: str, text: str) -> str:
    """Plain text behind a heading that opens it."""
    return f"\n<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
