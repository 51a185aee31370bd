# SPDX-License-Identifier: Apache-2.0
"""The trained models, compiled for this computer, against the reference kernels byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from arenite.host_model import HostModel
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.graph_batch import ISA_LEVELS, GraphBatch
from support.host_compiler import HostCompiler
from support.reference_models import REFERENCE_MODELS, random_inputs, sample_inputs

VECTORS = 20


@pytest.mark.reference
@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_outputs_equal_the_reference(shared_data: Path, tmp_path: Path, name: str) -> None:
    report = bundle(shared_data / name, "host", tmp_path / "b", vectors=0)
    compiled = HostModel(build(tmp_path / "b").elf)
    content = (shared_data / name).read_bytes()
    graph = parse_graph(content)
    tensor = graph.tensors[graph.inputs[0]]
    vectors = random_inputs(tensor, VECTORS, seed=1) + sample_inputs(shared_data, name, tensor)
    expected = reference_outputs(content, [[v] for v in vectors])
    for position, (vector, outputs) in enumerate(zip(vectors, expected, strict=True)):
        got = compiled.run([vector])
        assert got[0].tobytes() == outputs[0].tobytes(), f"vector {position}"
    assert report.mac_factor == 1.0


@pytest.mark.reference
@pytest.mark.parametrize("isa", ISA_LEVELS)
@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_clean_under_sanitisers(
    shared_data: Path, name: str, isa: str, compiler: HostCompiler, prebuilt: list[Path]
) -> None:
    """Once as it ships, then with every row in an allocation of its own at a random alignment."""
    content = (shared_data / name).read_bytes()
    graph = parse_graph(content)
    vector = random_inputs(graph.tensors[graph.inputs[0]], 1, seed=3)
    expected = reference_outputs(content, [vector])[0]
    with GraphBatch([content], compiler, prebuilt, isa=isa) as batch:
        if not batch.can_run:
            pytest.skip(f"this processor has no {isa}")
        for mode in (0, 1):
            got = batch.run(0, vector, expected, offset=mode * 4, mode=mode)
            assert [g.tobytes() for g in got] == [e.tobytes() for e in expected]
