# SPDX-License-Identifier: Apache-2.0
"""A model that is fed row by row gives the bytes of the framed one, needs less RAM, and refuses wrong rows."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from arenite.errors import UnsupportedOperatorError
from arenite.host_model import FeedStruct, HostModel
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.build import build
from arenite_codegen.plan import make_plan
from arenite_codegen.row_feed import feed_by_rows
from arenite_codegen.schedule import make_schedule
from support.colour_model import colour_model
from support.graphs import random_graph
from support.plan_checker import replay
from support.random_networks import random_network
from support.reference_models import REFERENCE_MODELS, random_inputs

OK, ROW_SIZE, TOO_MANY_ROWS, TOO_FEW_ROWS = range(4)
# Arena in bytes that a row-fed model must not exceed.
MOST_BYTES = {
    "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite": 122_880,
    "mlperf_tiny/vww_96_int8.tflite": 12_288,
    "mlperf_tiny/pretrainedResnet_quant.tflite": 9_728,
    "mlperf_tiny/kws_ref_model.tflite": 3_840,
}
PLANAR = "mobilenet_v2/mobilenet_v2_quantized_1x3x224x224.tflite"


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "PAD", "MEAN"])
@pytest.mark.parametrize("seed", range(4))
def test_any_row_operator_can_be_fed(kind: str, seed: int, tmp_path: Path) -> None:
    case = random_graph(kind, seed)
    path = tmp_path / "model.tflite"
    path.write_bytes(case.model_bytes)
    assert bundle(path, "host", tmp_path / "b", row_fed=True, vectors=0).row_fed
    compiled = HostModel(build(tmp_path / "b").elf)
    expected = reference_outputs(case.model_bytes, [list(v) for v in case.vectors])
    for vector, outputs in zip(case.vectors, expected, strict=True):
        assert compiled.run(list(vector))[0].tobytes() == outputs[0].tobytes()


@pytest.mark.reference
@pytest.mark.parametrize("name", [n for n in REFERENCE_MODELS if n != PLANAR])
def test_real_models_give_the_same_bytes_in_less_ram(shared_data: Path, tmp_path: Path, name: str) -> None:
    report = bundle(shared_data / name, "host", tmp_path / "b", row_fed=True, vectors=0)
    assert report.arena_bytes <= MOST_BYTES.get(name, 4_608)
    compiled = HostModel(build(tmp_path / "b").elf)
    content = (shared_data / name).read_bytes()
    graph = parse_graph(content)
    vectors = [[v] for v in random_inputs(graph.tensors[graph.inputs[0]], 3, seed=5)]
    for vector, outputs in zip(vectors, reference_outputs(content, vectors), strict=True):
        assert compiled.run(vector)[0].tobytes() == outputs[0].tobytes()


def test_an_input_that_is_flattened_at_once_has_no_rows_of_its_own(tmp_path: Path) -> None:
    """The fully connected layer sees one row of 8x8 pixels: a camera's would not be it."""
    (tmp_path / "m.tflite").write_bytes(colour_model(8))
    with pytest.raises(UnsupportedOperatorError, match="cannot be fed row by row"):
        bundle(tmp_path / "m.tflite", "host", tmp_path / "b", row_fed=True)


@pytest.mark.reference
def test_an_input_that_is_read_as_a_whole_is_refused(shared_data: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match="cannot be fed row by row"):
        bundle(shared_data / PLANAR, "host", tmp_path / "b", row_fed=True)
    assert not (tmp_path / "b").exists()


def test_random_networks_keep_every_row_that_is_needed() -> None:
    fed = 0
    for seed in range(400):
        try:
            network = feed_by_rows(random_network(seed), "random")
        except UnsupportedOperatorError:
            continue
        fed += 1
        schedule = make_schedule(network)
        try:
            replay(network, schedule, make_plan(network, schedule))
        except AssertionError as error:
            raise AssertionError(f"random_network({seed}), row-fed: {error}") from error
    assert fed > 100


def test_rows_of_a_wrong_size_or_number_are_errors(tmp_path: Path) -> None:
    case = random_graph("CONV_2D", 8)
    path = tmp_path / "model.tflite"
    path.write_bytes(case.model_bytes)
    bundle(path, "host", tmp_path / "b", row_fed=True, vectors=0)
    compiled = HostModel(build(tmp_path / "b").elf)
    expected = compiled.run(list(case.inputs))[0]
    library, feed = compiled._library, ctypes.byref(FeedStruct())
    library.arenite_begin(feed, ctypes.byref(compiled._model), compiled.memory)
    size = library.arenite_row_bytes(feed)
    data = case.inputs[0].tobytes()
    assert library.arenite_feed_row(feed, data, ctypes.c_uint32(size + 1)) == ROW_SIZE
    for at in range(0, len(data), size):
        assert library.arenite_end(feed) == TOO_FEW_ROWS
        assert library.arenite_feed_row(feed, data[at : at + size], ctypes.c_uint32(size)) == OK
    assert library.arenite_end(feed) == OK
    assert library.arenite_feed_row(feed, data[:size], ctypes.c_uint32(size)) == TOO_MANY_ROWS
    assert compiled.view(compiled._model.outputs[0]).tobytes() == expected.tobytes()
