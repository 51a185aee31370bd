# SPDX-License-Identifier: Apache-2.0
"""What lines for a person are made of."""

from __future__ import annotations

__all__ = ["printable", "table"]


def table(rows: list[tuple[str, ...]], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as lines of aligned columns; `right` are the columns that align to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return lines


def printable(value: object) -> str:
    """Text on one line; what cannot be printed is shown as an escape."""
    text = str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
