# SPDX-License-Identifier: Apache-2.0
"""Rows over the serial link, in chunks of any size: the bytes of the framed build."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from arenite.device import open_device, verify
from arenite.device.emulators import start_emulator
from arenite.errors import LinkError
from arenite_codegen import bundle
from arenite_codegen.build import build
from support.graphs import random_graph

BOARDS = ["qemu-mps2-an386", "qemu-mps2-an500", "qemu-riscv32"]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fed")
    (folder / "model.tflite").write_bytes(random_graph("CONV_2D", 8).model_bytes)
    bundle(folder / "model.tflite", "qemu-mps2-an386", folder / "b", row_fed=True)
    build(folder / "b")
    return folder / "b"


def test_golden_vectors_agree(firmware: Path) -> None:
    report = verify(firmware)
    assert report.identical
    assert report.instructions is None or report.instructions > 0


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 1000])
def test_any_chunking_gives_the_same_bytes(firmware: Path, chunk_bytes: int) -> None:
    data = (firmware / "vectors" / "input_000.bin").read_bytes()
    with closing(start_emulator(firmware)) as board, open_device(board.stream) as device:
        device.load(0, data, chunk_bytes=chunk_bytes)
        device.run()
        assert device.read_output(0) == (firmware / "vectors" / "output_000.bin").read_bytes()


def test_a_frame_that_is_not_finished_is_an_error_and_can_be_started_anew(firmware: Path) -> None:
    data = (firmware / "vectors" / "input_000.bin").read_bytes()
    with closing(start_emulator(firmware)) as board, open_device(board.stream) as device:
        device.request(3, bytes([0]) + (0).to_bytes(4, "little") + data[: len(data) // 2])
        with pytest.raises(LinkError):
            device.run()
        with pytest.raises(LinkError):
            device.request(3, bytes([0]) + (len(data) // 2 + 1).to_bytes(4, "little") + data[-1:])
        device.load(0, data)
        device.run()
        assert device.read_output(0) == (firmware / "vectors" / "output_000.bin").read_bytes()


@pytest.mark.parametrize("board", BOARDS)
def test_chains_run_in_strips(tmp_path: Path, board: str) -> None:
    (tmp_path / "model.tflite").write_bytes(random_graph("MOBILE_BLOCKS", 1).model_bytes)
    report = bundle(tmp_path / "model.tflite", board, tmp_path / "b", row_fed=True, max_mac_factor=3.0)
    assert report.mac_factor > 1.0
    built = build(tmp_path / "b")
    assert built.stack_is_bound
    assert verify(tmp_path / "b").identical


@pytest.mark.reference
@pytest.mark.parametrize(
    ("board", "factor", "most_bytes"),
    [("qemu-mps2-an386", 1.0, 106_496), ("qemu-mps2-an500", 1.2, 51_200), ("qemu-riscv32", 1.2, 51_200)],
)
def test_mobilenet_is_fed_row_by_row(
    shared_data: Path, tmp_path: Path, board: str, factor: float, most_bytes: int
) -> None:
    model = shared_data / "mobilenet_v2" / "tf2_mobilenet_v2_1.0_224_ptq.tflite"
    report = bundle(model, board, tmp_path / "b", row_fed=True, max_mac_factor=factor, vectors=1)
    assert report.arena_bytes <= most_bytes
    build(tmp_path / "b")
    assert verify(tmp_path / "b").identical
