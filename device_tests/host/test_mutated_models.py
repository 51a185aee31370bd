# SPDX-License-Identifier: Apache-2.0
"""Models with one wrong number: refused by name, or run as the reference runs them, and never past the arena."""

from __future__ import annotations

import numpy as np
import pytest

from arenite.authority import authority_of
from arenite.errors import AreniteError, ModelError
from arenite.tflite_graph import parse_graph
from arenite_codegen.emit import emit
from arenite_codegen.legalise import legalise
from arenite_codegen.plan import Plan, make_plan
from arenite_codegen.schedule import make_schedule
from arenite_converters.flatbuffer import pack, unpack
from support.choices import Choices
from support.graph_batch import GraphBatch, GraphCrash, prebuild
from support.graphs import KINDS, random_graph
from support.host_compiler import find_compiler
from support.mutations import mutate

# Of each kind; all kinds together stay about as many when kinds are added.
COUNT = max(8, 720 // len(KINDS))
# A model that fits no board needs no comparison.
LARGEST_ARENA = 1 << 20


def mutants(kind: str, count: int, first: int = 0) -> list[tuple[bytes, str]]:
    found = []
    for seed in range(first, first + count):
        case = random_graph(kind, seed)
        changed = mutate(case.model_bytes, seed)
        if changed is not None:
            found.append((changed[0], f"{kind}:{seed} {case.description} | {changed[1]}"))
    return found


def accepted(model: bytes) -> bool:
    """Codegen takes the model; any error that is not its own fails the test."""
    try:
        return plan_of(model).arena_bytes <= LARGEST_ARENA
    except AreniteError:
        return False


def plan_of(model: bytes) -> Plan:
    """The plan of a model whose C was made too."""
    network = legalise(parse_graph(model))
    schedule = make_schedule(network)
    plan = make_plan(network, schedule)
    emit(network, schedule, plan)
    return plan


@pytest.mark.parametrize("kind", list(KINDS))
def test_mutants_raise_only_our_errors(kind: str) -> None:
    for model, _ in mutants(kind, 5 * COUNT, first=1000):
        accepted(model)


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_output_of_another_size_is_refused(kind: str) -> None:
    """Whatever an operator makes, its output holds that many elements: one row, pixel or channel more is refused."""
    for seed in range(3):
        model = random_graph(kind, seed).model_bytes
        for axis in range(len(parse_graph(model).tensors[parse_graph(model).outputs[0]].shape)):
            grown = with_larger_output(model, axis)
            with pytest.raises(AreniteError):
                plan_of(grown)


def with_larger_output(model: bytes, axis: int) -> bytes:
    """The model whose first output says that it has one more along an axis."""
    tree = unpack(model)
    graph = tree.subgraphs[0]
    output = graph.tensors[graph.outputs[0]]
    output.shape = output.shape + (np.arange(len(output.shape)) == axis)
    return pack(tree)


def test_accepted_mutants_equal_the_reference() -> None:
    compiler = find_compiler(sanitise=True)
    if compiler is None:
        pytest.skip("no C compiler: pip install 'arenite[firmware]'")
    cases = [m for kind in KINDS for m in mutants(kind, COUNT // 2) if accepted(m[0])]
    assert len(cases) > 60
    wrong = []
    with GraphBatch([model for model, _ in cases], compiler, prebuild(compiler)) as batch:
        for index, (model, text) in enumerate(cases):
            problem = _compare(batch, index, model)
            wrong += [f"{text}: {problem}"] if problem else []
    assert wrong == []


def _compare(batch: GraphBatch, index: int, model: bytes) -> str | None:
    graph = parse_graph(model)
    shapes = [(graph.tensors[i].shape, graph.tensors[i].dtype) for i in graph.inputs]
    inputs = [Choices.seeded(index).bytes_of(shape, dtype) for shape, dtype in shapes]
    try:
        authority = authority_of(graph)
        assert authority is not None
        expected = authority.outputs(model, [inputs])[0]
    except ModelError:
        return None  # the reference asks for more than is needed to compute
    try:
        found = batch.run(index, inputs, expected, offset=4, mode=index % 2)
    except GraphCrash as crash:
        return str(crash)
    return None if all(_agree(*pair) for pair in zip(expected, found, strict=True)) else "bytes differ"


def _agree(want: np.ndarray, got: np.ndarray) -> bool:
    """Bit for bit, but float32 may come from libm."""
    if want.dtype == np.float32:
        return bool(np.allclose(want, got, 1e-6, 1e-6, equal_nan=True))
    return np.array_equal(want, got)
