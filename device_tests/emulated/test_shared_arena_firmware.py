# SPDX-License-Identifier: Apache-2.0
"""Two models in one arena on an emulated chip, in turns over the serial link, byte for byte."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from arenite.device import open_device, verify
from arenite.device.emulators import start_emulator
from arenite.errors import LinkError
from arenite.reference import reference_outputs
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.graphs import random_graph
from support.reference_models import random_inputs

BOARD = "qemu-mps2-an386"
CASES = [random_graph("CONV_2D", 8), random_graph("ADD", 3)]


@pytest.fixture(scope="module", params=[False, True], ids=["framed", "one row-fed"])
def firmware(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    models = [folder / "conv.tflite", folder / "sum.tflite"]
    for path, case in zip(models, CASES, strict=True):
        path.write_bytes(case.model_bytes)
    bundle(models, BOARD, folder / "b", row_fed=[request.param, False])
    build(folder / "b")
    return folder / "b"


def test_models_take_turns(firmware: Path) -> None:
    expected = [reference_outputs(case.model_bytes, [list(v) for v in case.vectors]) for case in CASES]
    with closing(start_emulator(firmware)) as board, open_device(board.stream) as device:
        assert device.identity.models == 2
        for turn in range(60):
            for index, case in enumerate(CASES):
                device.select(index)
                for position, data in enumerate(case.vectors[turn % 3]):
                    device.load(position, data.tobytes())
                device.run()
                assert device.read_output(0) == expected[index][turn % 3][0].tobytes()


def test_a_switch_leaves_nothing_to_run_or_to_read(firmware: Path) -> None:
    with closing(start_emulator(firmware)) as board, open_device(board.stream) as device:
        device.load(0, CASES[0].inputs[0].tobytes())
        device.run()
        device.select(1)
        for _ in range(2):
            with pytest.raises(LinkError, match="no run since the last load"):
                device.read_output(0)
            with pytest.raises(LinkError, match="an input is not loaded whole"):
                device.run()
            device.select(0)
        device.load(0, CASES[0].inputs[0].tobytes())
        device.select(0)
        with pytest.raises(LinkError, match="an input is not loaded whole"):
            device.run()


def test_verify_proves_each_whatever_was_selected_before(firmware: Path) -> None:
    report = verify(firmware)
    assert report.identical and [m.vectors for m in report.models] == [3, 3]
    counts = [m.instructions for m in report.models]
    assert report.instructions == (None if None in counts else sum(c for c in counts if c is not None))


@pytest.mark.reference
def test_keyword_and_person_detection_on_an_m4(shared_data: Path, tmp_path: Path) -> None:
    models = [shared_data / "mlperf_tiny" / f"{name}.tflite" for name in ("kws_ref_model", "vww_96_int8")]
    report = bundle(models, BOARD, tmp_path / "b", vectors=1)
    assert report.arena_bytes == max(m.arena_bytes for m in report.models)
    build(tmp_path / "b")
    graphs = [parse_graph(model.read_bytes()) for model in models]
    inputs = [random_inputs(graph.tensors[graph.inputs[0]], 3, seed=4) for graph in graphs]
    expected = [reference_outputs(m.read_bytes(), [[v] for v in own]) for m, own in zip(models, inputs, strict=True)]
    with closing(start_emulator(tmp_path / "b")) as board, open_device(board.stream) as device:
        for turn in range(6):
            for index in (0, 1):
                device.select(index)
                device.load(0, inputs[index][turn % 3].tobytes())
                device.run()
                assert device.read_output(0) == expected[index][turn % 3][0].tobytes()
