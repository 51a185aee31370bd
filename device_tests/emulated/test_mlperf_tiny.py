# SPDX-License-Identifier: Apache-2.0
"""The benchmark application on an emulated Cortex-M4: what the host program of MLPerf Tiny sends and must get."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from arenite.device import verify
from arenite.device.emulators import start_emulator
from arenite.errors import UsageError
from arenite.graph import Tensor
from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.dense_network import dense_network
from support.mlperf_runner import MlperfRunner, Window
from support.tflm import TflmModel

BOARD, CLOCK_HZ = "qemu-mps2-an386", 25_000_000
INSTRUCTION_US = 0.128  # of the emulated board
BAUD_DIVIDER, PIN = 0x40004010, 0x20200000
# A word of memory that nothing else uses stands for the pin's register.
MARKER = f"""
[marker]
setup = []
on = [[{PIN}, 1]]
off = [[{PIN}, 0]]

[[memory]]
name = "pin"
kind = "ram"
origin = {PIN}
length = 0x1000
"""
SIZES = {"kws01": (490, 12), "ic01": (3072, 10), "ad01": (640, 640)}

Bytes = npt.NDArray[np.uint8]


class Firmware:
    """A benchmark bundle, and the reference kernels' answers for it."""

    def __init__(
        self,
        folder: Path,
        model: bytes,
        app: str = "mlperf",
        baud: int | None = None,
        board: str | Path = BOARD,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.tflite").write_bytes(model)
        self.folder = folder / "b"
        bundle(folder / "model.tflite", board, self.folder, app=app, baud=baud, vectors=0)
        build(self.folder)
        self.graph = parse_graph(model)
        self._reference = TflmModel(model)

    @property
    def input(self) -> Tensor:
        return self.graph.tensors[self.graph.inputs[0]]

    def answer(self, quantised: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """Real values of the output for an input tensor."""
        output = self.graph.tensors[self.graph.outputs[0]]
        q = self._reference.run([quantised.reshape(self.input.shape)])[0].reshape(-1)
        assert output.quantisation is not None
        scale = np.float32(float(output.quantisation.scale))
        return (q.astype(np.float32) - np.float32(output.quantisation.zero_point)) * scale

    def expected(self, model_id: str, payload: bytes) -> list[str]:
        """What `m-results` must say, by this computer's own printf."""
        if model_id == "ad01":
            real = np.frombuffer(payload, "<f4")
            values = [float(np.mean((self.answer(self.quantised(real)) - real) ** 2, dtype=np.float64))]
        elif model_id in ("ic01", "vww01"):
            pixels = np.frombuffer(payload, np.uint8)
            values = [float(v) for v in self.answer((pixels.astype(np.int16) - 128).astype(np.int8))]
        else:
            values = [float(v) for v in self.answer(np.frombuffer(payload, np.int8))]
        return [f"{value:.3f}" for value in values]

    def quantised(self, real: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
        quantisation = self.input.quantisation
        assert quantisation is not None
        steps = real / np.float32(float(quantisation.scale))
        rounded = np.trunc(steps + np.copysign(np.float64(0.5), steps)) + quantisation.zero_point
        return rounded.clip(-128, 127).astype(np.int8)


@contextmanager
def session(firmware: Firmware, emulator: str | None = None) -> Iterator[MlperfRunner]:
    with closing(start_emulator(firmware.folder, emulator)) as board:
        yield MlperfRunner(board.stream)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Firmware]:
    """Firmware of a small model of a test's sizes; each is built once."""
    made: dict[str, Firmware] = {}

    def get(model_id: str) -> Firmware:
        if model_id not in made:
            made[model_id] = Firmware(tmp_path_factory.mktemp(model_id), dense_network(*SIZES[model_id]))
        return made[model_id]

    return get


def payload_of(model_id: str, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    inputs = SIZES[model_id][0]
    if model_id == "ad01":
        # Steps of a quarter of the grid: halves on both sides of zero, and values that saturate.
        return (rng.integers(-700, 700, inputs) * np.float32(0.0075)).astype("<f4").tobytes()
    return rng.bytes(inputs)


def test_boot_name_and_profile(firmware: Callable[[str], Firmware]) -> None:
    with session(firmware("kws01")) as runner:
        banner = runner.reply()
        assert banner[0] == "m-timestamp-mode-performance"
        assert banner[1].startswith("m-lap-us-")
        assert banner[2] == "m-init-done"
        assert runner.command("name") == [f"m-name-dut-[Arenite {BOARD}]"]
        assert runner.command("profile")[1] == "m-model-[kws01]"


@pytest.mark.parametrize(
    ("model_id", "emulator"), [("kws01", "unicorn"), ("ic01", "unicorn"), ("ad01", "unicorn"), ("kws01", "qemu")]
)
def test_accuracy(firmware: Callable[[str], Firmware], model_id: str, emulator: str) -> None:
    need(emulator)
    with session(firmware(model_id), emulator) as runner:
        runner.reply()
        for seed in range(3):
            payload = payload_of(model_id, seed)
            runner.load(payload)
            assert runner.buffer(len(payload)) == payload
            window = runner.infer(1, 0)
            check_results(window, model_id, firmware(model_id).expected(model_id, payload))
            assert runner.command("results") == window.lines[-1:]


def test_many_inferences_give_the_results_of_one_and_the_time_of_many(firmware: Callable[[str], Firmware]) -> None:
    with session(firmware("ic01"), "unicorn") as runner:
        runner.reply()
        payload = payload_of("ic01", 7)
        runner.load(payload)
        one, many = runner.infer(1, 0), runner.infer(21)
        assert one.lines[0] == "m-warmup-start-0"
        assert many.lines[0] == "m-warmup-start-10"
        assert many.lines[2] == "m-infer-start-21"
        assert many.results == one.results
        assert runner.buffer(40, 3000) == payload[3000:3040]
        each = (elapsed(many.laps_us) - elapsed(one.laps_us)) / 20
        # 30,720 multiply-accumulates: between one and twenty instructions for each.
        assert 30_720 * INSTRUCTION_US < each < 20 * 30_720 * INSTRUCTION_US
        assert elapsed(one.laps_us) == pytest.approx(each, rel=0.05)


@pytest.mark.parametrize(
    ("commands", "error"),
    [
        (["foo"], "e-[Unknown command: foo]"),
        ([""], "e-[Unknown command: ]"),
        (["x" * 81], "e-[The command is too long]"),
        (["db"], "e-[db needs an argument]"),
        (["db load"], "e-[db load needs the number of bytes]"),
        (["db load ten"], "e-[db load needs the number of bytes]"),
        (["db load 99999999999999999999"], "e-[db load needs the number of bytes]"),
        (["db load 491"], "e-[This model takes 490 bytes]"),
        (["db 00"], "e-[No bytes are expected: send db load first]"),
        (["db load 490", "db 0"], "e-[Odd number of digits, or more bytes than expected: 0]"),
        (["db load 490", "db 0g"], "e-[Not hexadecimal: 0g]"),
        (["db load 490", *["db " + "00" * 31] * 15, "db " + "00" * 26], None),
        (["db print 4 491"], "e-[db print takes a number of bytes and an offset within the buffer]"),
        (["infer"], "e-[infer needs a number of inferences, at least 1, and takes one of warm-ups]"),
        (["infer 0"], "e-[infer needs a number of inferences, at least 1, and takes one of warm-ups]"),
        (["infer 1"], "e-[The input is not loaded: send db load and its bytes]"),
        (["db load 490", "db 00", "infer 1"], "e-[The input is not loaded: send db load and its bytes]"),
        (["results"], "e-[Nothing was inferred since the last load]"),
    ],
)
def test_wrong_commands_are_errors_and_the_board_stays_ready(
    firmware: Callable[[str], Firmware], commands: list[str], error: str | None
) -> None:
    with session(firmware("kws01")) as runner:
        runner.reply()
        for command in commands[:-1]:
            assert not any(line.startswith("e-") for line in runner.command(command))
        last = runner.command(commands[-1])
        if error is None:
            # Fifteen times 31 bytes and 26 are one too many: the last one is refused whole.
            assert last == ["e-[Odd number of digits, or more bytes than expected: " + "00" * 26 + "]"]
        else:
            assert last == [error]
        runner.load(payload_of("kws01", 1))
        assert len(runner.infer(1, 0).results) == 12


def test_energy_mode_marks_time_with_a_pin(tmp_path: Path) -> None:
    unicorn = pytest.importorskip("unicorn")
    source = load_board(BOARD).directory / "board.toml"
    (tmp_path / "board.toml").write_text(source.read_text() + MARKER)
    made = Firmware(tmp_path, dense_network(*SIZES["kws01"]), app="mlperf-energy", board=tmp_path / "board.toml")
    assert '"baud": 9600' in (made.folder / "manifest.json").read_text()
    with closing(start_emulator(made.folder, "unicorn")) as board:
        levels = watch(board, unicorn, PIN)
        runner = MlperfRunner(board.stream)
        assert runner.reply() == ["m-timestamp-mode-energy", "m-init-done"]
        booted = falls(levels)
        assert booted == 1
        assert runner.command("timestamp") == []
        assert falls(levels) == booted + 1
        payload = payload_of("kws01", 2)
        runner.load(payload)
        window = runner.infer(3, 1)
        assert window.laps_us == []
        assert falls(levels) == booted + 3
        assert levels[-1] & 1, "the pin rests high"


@pytest.mark.reference
@pytest.mark.parametrize("baud", [115_200, 921_600])
@pytest.mark.parametrize("model_id", ["ic01", "vww01", "kws01", "ad01"])
def test_reference_models(shared_data: Path, tmp_path: Path, model_id: str, baud: int) -> None:
    """Accuracy and performance of the benchmark's own models, inputs of its own among them."""
    unicorn = pytest.importorskip("unicorn")
    model, payloads = reference_inputs(shared_data / "mlperf_tiny", model_id)
    made = Firmware(tmp_path, model.read_bytes(), baud=baud)
    with closing(start_emulator(made.folder, "unicorn")) as board:
        dividers = watch(board, unicorn, BAUD_DIVIDER)
        runner = MlperfRunner(board.stream)
        runner.reply()
        assert CLOCK_HZ / dividers[-1] == pytest.approx(baud, rel=0.02)
        assert runner.command("profile")[1] == f"m-model-[{model_id}]"
        for payload in payloads:
            runner.load(payload)
            accuracy = runner.infer(1, 0)
            check_results(accuracy, model_id, made.expected(model_id, payload))
        performance = runner.infer(2, 1)
        assert performance.results == accuracy.results
        assert elapsed(performance.laps_us) == pytest.approx(2 * elapsed(accuracy.laps_us), rel=0.05)


def test_verify_says_that_a_benchmark_build_has_no_link(firmware: Callable[[str], Firmware]) -> None:
    with pytest.raises(UsageError, match="protocol of MLPerf Tiny"):
        verify(firmware("kws01").folder)


@pytest.mark.parametrize(
    ("inputs", "units", "board", "app", "problem"),
    [
        (491, 12, BOARD, "mlperf", "none of MLPerf Tiny: its input and output have 491 and 12 bytes"),
        (490, 12, "host", "mlperf", "no counter that tells the time"),
        (490, 12, "qemu-mps2-an500", "mlperf-energy", "names no pin"),
        (490, 12, BOARD, "blink", "there is no application 'blink'"),
    ],
)
def test_what_cannot_be_a_benchmark_is_refused(
    tmp_path: Path, inputs: int, units: int, board: str, app: str, problem: str
) -> None:
    (tmp_path / "model.tflite").write_bytes(dense_network(inputs, units))
    with pytest.raises(UsageError, match=problem):
        bundle(tmp_path / "model.tflite", board, tmp_path / "b", app=app, vectors=0)


def reference_inputs(folder: Path, model_id: str) -> tuple[Path, list[bytes]]:
    """The model of a test and two payloads: of its own data, and random."""
    rng = np.random.default_rng(3)
    if model_id == "ad01":
        frames = np.fromfile(folder / "normal_id_01_00000000_hist_librosa.bin", "<f4").reshape(-1, 640)
        return folder / "ad01_int8.tflite", [frames[0].tobytes(), frames[7].tobytes()]
    if model_id == "kws01":
        return folder / "kws_ref_model.tflite", [np.load(folder / "kws_inputs_int8.npy").tobytes(), rng.bytes(490)]
    if model_id == "ic01":
        pictures = np.load(folder / "ic_inputs_uint8.npy").reshape(-1, 3072)
        return folder / "pretrainedResnet_quant.tflite", [pictures[0].tobytes(), rng.bytes(3072)]
    picture = np.round(np.load(folder / "vww_inputs_float32.npy").reshape(-1, 27_648)[0] * 255)
    return folder / "vww_96_int8.tflite", [picture.astype(np.uint8).tobytes()]


def check_results(window: Window, model_id: str, expected: list[str]) -> None:
    if model_id == "ad01":
        # 640 squares added in single precision on the board, in double here.
        assert window.results == [pytest.approx(float(expected[0]), rel=2e-6, abs=0.0011)]
    else:
        assert window.lines[-1] == f"m-results-[{','.join(expected)}]"


def need(emulator: str) -> None:
    if emulator == "qemu" and shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    if emulator == "unicorn":
        pytest.importorskip("unicorn")


def elapsed(laps_us: list[int]) -> int:
    assert len(laps_us) == 2
    return laps_us[1] - laps_us[0]


def watch(board: object, unicorn: object, address: int) -> list[int]:
    """What the firmware writes to a register, as it runs."""
    values: list[int] = []

    def written(engine: object, access: int, at: int, size: int, value: int, user: object) -> None:
        values.append(value)

    board._engine.hook_add(unicorn.UC_HOOK_MEM_WRITE, written, None, address, address + 3)  # type: ignore[attr-defined]
    return values


def falls(levels: list[int]) -> int:
    return sum(a & 1 and not b & 1 for a, b in pairwise(levels))
