# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG text, without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

__all__ = ["Bar", "Span", "bars", "columns", "histogram", "series", "spans"]

Array = npt.NDArray[np.float64]
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 820, 64, 16, 16, 34
_PLOT = _WIDTH - _LEFT - _RIGHT
_BINS, _COLUMNS = 60, 300


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        name: Beside it.
        value: Its length.
        text: Behind it.
        interval: Drawn over its end.
        kind: Its class in the page's style: `bar`, `idle` or `rest`.
    """

    name: str
    value: float
    text: str
    interval: tuple[float, float] | None = None
    kind: str = "bar"


def bars(rows: Sequence[Bar]) -> str:
    """Horizontal bars from zero on one scale."""
    most = max([*(row.value for row in rows), *(row.interval[1] for row in rows if row.interval)])
    name_px, text_px, step = 110, 190, 26
    scale = (_WIDTH - name_px - text_px) / (most or 1.0)
    parts = []
    for i, row in enumerate(rows):
        y = i * step + 4
        parts.append(f'<text x="{name_px - 8}" y="{y + 14}" text-anchor="end">{escape(row.name)}</text>')
        width = max(0.0, row.value) * scale
        parts.append(f'<rect class="{row.kind}" x="{name_px}" y="{y}" width="{width:.1f}" height="18"/>')
        end = width
        if row.interval is not None:
            low, high = (max(0.0, value) * scale for value in row.interval)
            parts.append(_line("error", name_px + low, y + 9, name_px + high, y + 9))
            end = max(end, high)
        parts.append(f'<text x="{name_px + end + 8:.1f}" y="{y + 14}">{escape(row.text)}</text>')
    return _svg(len(rows) * step + 4, parts)


@dataclass(frozen=True)
class Span:
    """A range inside another one.

    Attributes:
        name: Shown when the pointer rests on it.
        inner: Drawn dark.
        outer: Drawn pale behind it; None draws none.
    """

    name: str
    inner: tuple[float, float]
    outer: tuple[float, float] | None


def columns(rows: Sequence[Bar], unit: str) -> str:
    """Upright bars from zero, one beside the other in their order; name and text show when the pointer rests on one."""
    finite = [0.0, *(row.value for row in rows if math.isfinite(row.value))]
    least, most = min(finite), max(finite) or 1.0
    height, x_of, y_of = _upright(len(rows), least, most)
    parts = _grid(least, most, y_of, unit) + _ticks(0, len(rows), x_of, height, "")
    for i, row in enumerate(rows):
        top, bottom = y_of(min(max(row.value, least, 0.0), most)), y_of(max(min(row.value, 0.0), least))
        bar = _rect(row.kind, x_of(i), top, x_of(i + 1) - x_of(i), max(bottom - top, 0.5))
        parts.append(_titled(bar, f"{i} {row.name}: {row.text}"))
    return _svg(height, parts)


def spans(rows: Sequence[Span]) -> str:
    """Ranges, one beside the other in their order; names show when the pointer rests on one."""
    ends = [end for row in rows for end in (*row.inner, *(row.outer or ()))]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    height, x_of, y_of = _upright(len(rows), least, most)
    parts = _grid(least, most, y_of) + _ticks(0, len(rows), x_of, height, "")
    for i, row in enumerate(rows):
        drawn = []
        for kind, ends_of, inset in (("held", row.outer, 0.0), ("bar", row.inner, 0.2)):
            if ends_of is not None:
                left, top = x_of(i + inset), y_of(ends_of[1])
                drawn.append(_rect(kind, left, top, x_of(i + 1 - inset) - left, y_of(ends_of[0]) - top))
        holds = "" if row.outer is None else f" of {row.outer[0]:.4g} to {row.outer[1]:.4g}"
        parts.append(_titled("".join(drawn), f"{i} {row.name}: {row.inner[0]:.4g} to {row.inner[1]:.4g}{holds}"))
    return _svg(height, parts)


def _upright(count: int, low: float, high: float) -> tuple[int, _Scale, _Scale]:
    """Height, places along the axis and places of values."""
    height = 200
    return height, _Scale(0, count, _LEFT, _LEFT + _PLOT), _Scale(low, high, height - _BOTTOM, _TOP)


def _titled(shape: str, text: str) -> str:
    return f"<g><title>{escape(text)}</title>{shape}</g>"


def histogram(values: Array, marks: Sequence[tuple[str, float]], unit: str) -> str:
    """How often each value occurs; the slowest hundredth stands in one bar at the right."""
    cut = float(np.quantile(values, 0.99, method="inverted_cdf")) if len(values) >= 100 else float(values.max())
    low = float(values.min())
    high = cut if cut > low else low + max(abs(low), 1e-9) * 1e-3
    counts, edges = np.histogram(values[values <= high], _BINS, (low, high))
    beyond = int((values > high).sum())
    height = 220
    most = max(int(counts.max()), beyond)
    room = _PLOT - 40
    x_of = _Scale(low, high, _LEFT, _LEFT + room)
    y_of = _Scale(0, most, height - _BOTTOM, _TOP)
    parts = _grid(0, most, y_of) + _ticks(low, high, x_of, height, unit)
    for count, a, b in zip(counts, edges, edges[1:], strict=False):
        parts.append(_rect("bar", x_of(a), y_of(count), x_of(b) - x_of(a), y_of(0) - y_of(count)))
    if beyond:
        parts.append(_rect("rest", _LEFT + room + 14, y_of(beyond), 18, y_of(0) - y_of(beyond)))
        parts.append(f'<text x="{_LEFT + room + 23}" y="{height - 20}" text-anchor="middle">slower</text>')
    for name, value in marks:
        if low <= value <= high:
            parts.append(_line("mark", x_of(value), _TOP, x_of(value), height - _BOTTOM))
            parts.append(f'<text x="{x_of(value):.1f}" y="{_TOP - 4}" text-anchor="middle">{escape(name)}</text>')
    return _svg(height, parts)


def series(times: Array, values: Array, unit: str, *, from_zero: bool = True) -> str:
    """Values over time: the median as a line, least and most as a band, over up to 300 columns."""
    height = 180
    groups = np.array_split(np.arange(len(values)), min(_COLUMNS, len(values)))
    at = [float(times[group].mean()) for group in groups]
    least, middle, most = ([float(f(values[group])) for group in groups] for f in (np.min, np.median, np.max))
    # One outlier must not flatten the rest.
    top = min(max(most), 4 * max(middle)) or 1.0
    bottom = 0.0 if from_zero else min(least)
    top = top if top > bottom else bottom + 1.0
    x_of = _Scale(float(times[0]), max(float(times[-1]), float(times[0]) + 1e-9), _LEFT, _LEFT + _PLOT)
    y_of = _Scale(bottom, top, height - _BOTTOM, _TOP)
    upper = [f"{x_of(x):.1f},{y_of(min(y, top)):.1f}" for x, y in zip(at, most, strict=True)]
    lower = [f"{x_of(x):.1f},{y_of(min(y, top)):.1f}" for x, y in zip(at, least, strict=True)]
    centre = [f"{x_of(x):.1f},{y_of(min(y, top)):.1f}" for x, y in zip(at, middle, strict=True)]
    parts = _grid(bottom, top, y_of, unit) + _ticks(float(times[0]), float(times[-1]), x_of, height, "s")
    parts.append(f'<polygon class="band" points="{" ".join(upper + lower[::-1])}"/>')
    parts.append(f'<polyline class="line" points="{" ".join(centre)}"/>')
    return _svg(height, parts)


class _Scale:
    """A value's place in pixels."""

    def __init__(self, low: float, high: float, start_px: float, end_px: float) -> None:
        self._low, self._start = low, start_px
        self._px = (end_px - start_px) / ((high - low) or 1.0)

    def __call__(self, value: float) -> float:
        return self._start + (value - self._low) * self._px


def _round_steps(low: float, high: float) -> list[float]:
    """Four to ten round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _grid(low: float, high: float, y_of: _Scale, unit: str = "") -> list[str]:
    parts = []
    for value in _round_steps(low, high):
        y = y_of(value)
        parts.append(_line("grid", _LEFT, y, _LEFT + _PLOT, y))
        text = f"{value:g} {unit}".strip()
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    return parts


def _ticks(low: float, high: float, x_of: _Scale, height: int, unit: str) -> list[str]:
    base = height - _BOTTOM
    parts = [_line("axis", _LEFT, base, _LEFT + _PLOT, base)]
    for value in _round_steps(low, high):
        text = f"{value:.6g} {unit}"
        parts.append(f'<text x="{x_of(value):.1f}" y="{base + 14}" text-anchor="middle">{escape(text)}</text>')
    return parts


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(0.5, width - 0.5):.1f}" height="{height:.1f}"/>'


def _svg(height: int, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">\n' + "\n".join(parts) + "\n</svg>"
