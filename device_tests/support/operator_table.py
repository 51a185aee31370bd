# SPDX-License-Identifier: Apache-2.0
"""The table of supported operators, made from what the random graphs of the tests compile to.

    python -m support.operator_table        writes it into docs/operators.md

Nothing in it is written by hand: an operator without a random graph has no row, and a test says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from arenite.errors import UnsupportedOperatorError
from arenite.graph import Graph
from arenite.tflite_graph import parse_graph
from arenite_codegen.legalise import legalise
from arenite_codegen.network import Layer, Network, Role
from arenite_codegen.operators import OPERATORS
from arenite_codegen.variants import VARIANTS
from support.graph_case import GraphCase
from support.graphs import KINDS, random_graph

__all__ = ["PAGE", "missing_operators", "page_with", "table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"
_BEGIN, _END = "<!-- table of operators: begin -->", "<!-- table of operators: end -->"
# Of each kind; more where types and shapes make many combinations.
_GRAPHS = 24
_MANY_GRAPHS = dict.fromkeys(("CAST", "REQUANTIZE", "AVERAGE_POOL_2D"), 120)
_NO_CODE = "no code"


@dataclass
class _Row:
    """What was seen of one operator."""

    types: set[str] = field(default_factory=set)
    reach: set[str] = field(default_factory=set)
    authorities: set[str] = field(default_factory=set)
    kernels: set[str] = field(default_factory=set)


@lru_cache
def _observed() -> dict[str, _Row]:
    found: dict[str, _Row] = {}
    for kind in KINDS:
        for seed in range(_MANY_GRAPHS.get(kind, _GRAPHS)):
            case = random_graph(kind, seed)
            for operator, types, reach, kernel in _seen_in(case):
                row = found.setdefault(operator, _Row())
                row.types.add(types)
                row.reach.add(reach)
                row.kernels.add(kernel)
                row.authorities.add(case.authority)
    return found


def _seen_in(case: GraphCase) -> Iterator[tuple[str, str, str, str]]:
    """Operator, types, how it reads, kernel; of each operator of a graph."""
    graph = parse_graph(case.model_bytes)
    try:
        network = legalise(graph)
    except UnsupportedOperatorError:
        return
    layers: dict[int, list[Layer]] = {}
    for layer in network.layers:
        layers.setdefault(layer.operator, []).append(layer)
    for operator in graph.operators:
        types = _types(graph, operator.inputs, operator.outputs)
        for layer in layers.get(operator.index, ()):
            yield operator.kind, types, _reach(network, layer), layer.kernel
        if operator.index not in layers:
            yield operator.kind, types, _NO_CODE, ""


def _types(graph: Graph, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> str:
    """Of what is computed at run time; of constants where nothing is."""
    read = [graph.tensors[index] for index in inputs if index >= 0]
    source = next((t.dtype for t in read if not t.is_constant), read[0].dtype if read else "")
    made = graph.tensors[outputs[0]].dtype if outputs else source
    return source if source == made else f"{source} → {made}"


def _reach(network: Network, layer: Layer) -> str:
    computed = [read for read in layer.reads if network.values[read.value].role is not Role.STATE]
    return "whole" if any(read.whole for read in computed) else "rows"


def missing_operators() -> list[str]:
    """Operators with a lowering that no random graph reaches."""
    return sorted(set(OPERATORS) - set(_observed()))


def table() -> str:
    """The table in Markdown."""
    lines = [
        "| operator | types | reads | authority | kernel | variants beside `portable` |",
        "|---|---|---|---|---|---|",
    ]
    for operator, row in sorted(_observed().items()):
        variants = sorted({v.name for kernel in row.kernels for v in VARIANTS.get(kernel, ())} - {"portable"})
        cells = (
            operator,
            ", ".join(sorted(row.types)),
            _words(row.reach),
            ", ".join(sorted(row.authorities, reverse=True)),
            ", ".join(f"`{kernel}`" for kernel in sorted(row.kernels) if kernel),
            ", ".join(variants),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _words(reach: set[str]) -> str:
    """Rows where any graph goes by rows; the others are named beside."""
    order = [name for name in ("rows", "whole", _NO_CODE) if name in reach]
    return " or ".join(order)


def page_with(text: str, new: str) -> str:
    """A page with the table between its marks replaced."""
    head, _, rest = text.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}\n{new}\n{_END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), table()), encoding="utf-8")
