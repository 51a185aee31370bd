# SPDX-License-Identifier: Apache-2.0
"""VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE: names for values that outlive a run. No kernel runs."""

from __future__ import annotations

from arenite.graph import Graph, Operator
from arenite_codegen.operators.base import Context, refuse

__all__ = ["lower_assign", "lower_call_once", "lower_handle", "lower_read"]


def lower_handle(context: Context) -> None:
    """The output stands for a variable from here on."""
    if context.batch != 1:
        raise refuse(context, f"a variable of a model with a batch of {context.batch}", "Convert it with a batch of 1.")
    context.build.states.name_handle(context.output, _name(context.operator))


def lower_read(context: Context) -> None:
    """The output is the memory of the state, or of what was assigned before."""
    found = context.build.states.read(context.input(0), context.output)
    if isinstance(found, int):
        context.build.alias_value(found, context.output)
    else:
        context.build.alias(context, found, context.output)


def lower_assign(context: Context) -> None:
    """The tensor takes the state's place when the run ends."""
    tensor = context.input(1)
    context.build.value(tensor)  # which refuses one that nobody computes
    context.build.states.assign(context.input(0), tensor)


def lower_call_once(context: Context) -> None:
    """Its subgraph may only give variables constant values: these are what a reset restores."""
    graph = context.graph.initialisers[int(context.operator.attributes["init_subgraph_index"])]
    names: dict[int, str] = {}
    for operator in graph.operators:
        if operator.kind == "VAR_HANDLE" and len(operator.outputs) == 1:
            names[operator.outputs[0]] = _name(operator)
        elif operator.kind == "ASSIGN_VARIABLE" and len(operator.inputs) == 2:
            _initialise(context, graph, operator, names)
        else:
            raise refuse(context, f"its subgraph runs {operator}; it may only assign constants to variables")


def _initialise(context: Context, graph: Graph, operator: Operator, names: dict[int, str]) -> None:
    handle, source = operator.inputs
    values = graph.tensors[source].data if source >= 0 else None
    if handle not in names or values is None:
        raise refuse(context, f"its subgraph assigns what is no constant to a variable ({operator})")
    context.build.states.initialise(names[handle], values)


def _name(operator: Operator) -> str:
    """Containers are name spaces."""
    container, name = (operator.attributes[key] or "" for key in ("container", "shared_name"))
    return f"{container}/{name}".lstrip("/")
