# SPDX-License-Identifier: Apache-2.0
"""The firmware application on emulated chips: every board, compiler and emulator, over the serial link."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arenite.device import Device, open_device, verify
from arenite.device import emulators as emulators_module
from arenite.device.emulators import EmulatedBoard, start_emulator
from arenite.device.protocol import IDENTIFY, REPLY, Frame, FrameReader, encode_frame
from arenite.errors import DoesNotFitError, LinkError, MissingToolError, ToolchainError, UsageError
from arenite_codegen import toolchain as toolchain_module
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.fake_bundle import ARENA_BYTES, SHA256, expected_outputs, make_fake_bundle, random_inputs

BOARDS = ["qemu-mps2-an386", "qemu-mps2-an500", "qemu-riscv32"]
# Other cores, and other drivers: what only these touch is tested on them too.
OTHER_BOARDS = ["qemu-microbit", "qemu-mps2-an385", "qemu-mps2-an505", "qemu-netduinoplus2"]
TOOLCHAINS = ["gcc", "zig"]
EMULATORS = ["unicorn", "qemu"]
HELIUM = "qemu-mps3-an547"  # Unicorn has no Cortex-M55
RUNS = [*((board, emulator) for board in BOARDS + OTHER_BOARDS for emulator in EMULATORS), (HELIUM, "qemu")]
GCC = {"qemu-riscv32": "riscv64-unknown-elf-gcc"}
QEMU = {"qemu-riscv32": "qemu-system-riscv32"}

Built = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Returns the built bundle of a board and a toolchain; builds each once."""
    made: dict[tuple[str, str], Path] = {}

    def get(board: str, toolchain: str) -> Path:
        need(toolchain, board)
        if (board, toolchain) not in made:
            folder = make_fake_bundle(tmp_path_factory.mktemp("bundle"), board)
            build(folder, toolchain)
            made[board, toolchain] = folder
        return made[board, toolchain]

    return get


def need(tool: str, board: str) -> None:
    """Skips when a compiler or an emulator is not installed."""
    programs = {"gcc": GCC.get(board, "arm-none-eabi-gcc"), "qemu": QEMU.get(board, "qemu-system-arm")}
    if tool in programs:
        if shutil.which(programs[tool]) is None:
            pytest.skip(f"{programs[tool]} is not installed")
    else:
        pytest.importorskip({"zig": "ziglang"}.get(tool, tool), reason=f"{tool} is not installed")


@contextlib.contextmanager
def running(bundle: Path, emulator: str) -> Iterator[tuple[EmulatedBoard, Device]]:
    board = start_emulator(bundle, emulator)
    try:
        yield board, open_device(board.stream, timeout_s=30)
    finally:
        board.close()


@pytest.mark.parametrize(("board_name", "emulator"), RUNS)
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_identify_load_run_read(built: Built, board_name: str, toolchain: str, emulator: str) -> None:
    need(emulator, board_name)
    with running(built(board_name, toolchain), emulator) as (board, device):
        assert device.identity.board == board_name
        assert device.identity.model_sha256 == SHA256.hex()
        assert device.identity.arena_bytes == ARENA_BYTES
        assert device.identify() == device.identity
        counts = set()
        for seed in range(2):
            inputs = random_inputs(seed)
            for index, data in enumerate(inputs):
                device.load(index, data)
            result = device.run()
            assert [device.read_output(i) for i in (0, 1)] == expected_outputs(inputs)
            counts.add(board.instructions(result))
            assert 64 < result.stack_peak_bytes < 1024
        assert len(counts) == 1, "the same work takes the same number of instructions"


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board_name", BOARDS + OTHER_BOARDS)
def test_the_emulators_count_the_same_instructions(built: Built, board_name: str, toolchain: str) -> None:
    need("qemu", board_name)
    need("unicorn", board_name)
    reports = [verify(built(board_name, toolchain), on) for on in EMULATORS]
    assert all(report.identical and report.vectors == 3 for report in reports)
    assert reports[0].instructions == reports[1].instructions
    assert reports[0].instructions is not None
    assert reports[0].instructions > 3 * 3000


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board_name", BOARDS)
def test_the_stack_stays_below_its_bound(tmp_path: Path, board_name: str, toolchain: str) -> None:
    """A frame of 1,000 bytes behind a function pointer: the bound knows it, the painted stack shows it."""
    need(toolchain, board_name)
    need("unicorn", board_name)
    bundle = make_fake_bundle(tmp_path, board_name)
    _edit_model(bundle, DEEP_CALL)
    report = build(bundle, toolchain)
    assert report.stack_is_bound
    measured = verify(bundle, "unicorn").stack_peak_bytes
    assert measured is not None
    assert 1000 < measured <= report.stack_bytes < measured + 200


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board_name", ["qemu-mps2-an386", "qemu-riscv32"])
def test_a_recursion_has_no_bound(tmp_path: Path, board_name: str, toolchain: str) -> None:
    need(toolchain, board_name)
    bundle = make_fake_bundle(tmp_path, board_name)
    _edit_model(bundle, RECURSION)
    report = build(bundle, toolchain)
    assert not report.stack_is_bound
    assert report.stack_bytes == 4096


def test_a_stack_that_is_reserved_too_small_is_refused(tmp_path: Path) -> None:
    need("zig", "qemu-mps2-an386")
    small = board_file(tmp_path, "qemu-mps2-an386", ("stack_bytes = 4096", "stack_bytes = 512"))
    bundle = make_fake_bundle(tmp_path / "bundle", small)
    build(bundle, "zig")
    _edit_model(bundle, DEEP_CALL)
    with pytest.raises(DoesNotFitError, match=r"may use 1\d\d\d bytes of stack, 512 are reserved. Raise `stack_bytes`"):
        build(bundle, "zig")


DEEP_CALL = """
static void deep(uint8_t *a) {
    volatile uint8_t wide[1000];
    for (uint32_t i = 0; i < sizeof wide; i++) {
        wide[i] = a[i];
    }
    a[0] = wide[0];
}
static void (*const table[])(uint8_t *) = {deep};
static void extra(uint8_t *a) { (*(void (*const volatile *)(uint8_t *))table)(a); }
"""
RECURSION = """
static uint32_t extra(uint8_t *a);
static uint32_t (*volatile again)(uint8_t *a) = extra;
static uint32_t extra(uint8_t *a) { return a[0] == 1 && a[1] == 2 && a[2] == 3 ? again(a + 1) : 0; }
"""


def _edit_model(bundle: Path, code: str) -> None:
    """Adds code to the runtime, with a function `extra` that every run calls."""
    model = bundle / "runtime" / "arenite.c"
    text = model.read_text()
    at = text.index("void arenite_run(")
    body = text[at:].replace("{\n", "{\n    (void)extra(memory[0]);\n", 1)
    model.write_text(text[:at] + code.lstrip() + "\n" + body)


@pytest.mark.parametrize("emulator", EMULATORS)
@pytest.mark.parametrize("board_name", ["qemu-mps2-an386", "qemu-riscv32"])
def test_errors_and_garbage_leave_the_board_usable(built: Built, board_name: str, emulator: str) -> None:
    need(emulator, board_name)
    with running(built(board_name, "zig"), emulator) as (board, device):
        with pytest.raises(LinkError, match=r"an input is not loaded whole \(status 5\)"):
            device.run()
        with pytest.raises(LinkError, match=r"no run since the last load \(status 6\)"):
            device.read_output(0)
        half = encode_frame(Frame(IDENTIFY, 1, b"x" * 700))[:350]
        board.stream.write(b"garbage" * 100 + half + encode_frame(Frame(IDENTIFY, 77, b"")))
        reader, found = FrameReader(), []
        while not found:
            found = [f for f in reader.feed(board.stream.read(10)) if f.sequence == 77]
        assert (found[0].command, found[0].payload[0]) == (IDENTIFY | REPLY, 0)
        inputs = random_inputs(9)
        for index, data in enumerate(inputs):
            device.load(index, data)
        device.run()
        assert device.read_output(1) == expected_outputs(inputs)[1]


# verify


def test_a_wrong_byte_is_found_and_named(built: Built, tmp_path: Path) -> None:
    need("unicorn", "qemu-mps2-an386")
    bundle = tmp_path / "bundle"
    shutil.copytree(built("qemu-mps2-an386", "zig"), bundle)
    golden = bundle / "vectors" / "output_001.bin"
    data = bytearray(golden.read_bytes())
    data[3000 + 5] ^= 0x10
    golden.write_bytes(data)
    report = verify(bundle, "unicorn")
    assert not report.identical
    assert report.vectors == 3
    assert report.first_difference is not None
    found = report.first_difference
    assert (found.vector, found.output, found.index) == (1, 1, 5)
    assert found.expected == found.got ^ 0x10
    assert report.authority == "support/fake_bundle.py"
    assert report.emulator is not None
    assert report.emulator.startswith("unicorn 2")


def test_a_board_with_another_model_is_refused(built: Built, tmp_path: Path) -> None:
    need("unicorn", "qemu-mps2-an386")
    bundle = tmp_path / "bundle"
    shutil.copytree(built("qemu-mps2-an386", "zig"), bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["models"][0]["sha256"] = "0" * 64
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LinkError, match="the board runs another model: ab0102"):
        verify(bundle, "unicorn")


def test_what_cannot_be_verified_is_named(built: Built, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a bundle"):
        verify(tmp_path)
    bundle = make_fake_bundle(tmp_path / "unbuilt", "qemu-riscv32")
    with pytest.raises(UsageError, match=r"not built.*arenite build DIR"):
        verify(bundle)
    copy = tmp_path / "copy"
    shutil.copytree(built("qemu-riscv32", "zig"), copy)
    (copy / "vectors" / "input_002.bin").write_bytes(b"short")
    with pytest.raises(UsageError, match=r"input_002.bin: the golden vector has 5 bytes, the model's tensors 3037"):
        verify(copy, "unicorn")
    (copy / "build" / "build.json").write_text("{}")
    with pytest.raises(UsageError, match="the build report is damaged"):
        verify(copy)


def test_a_missing_emulator_names_its_cure(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = built("qemu-riscv32", "zig")
    monkeypatch.setattr(emulators_module, "_is_installed", lambda name, target: False)
    with pytest.raises(MissingToolError, match=r"no emulator for qemu-riscv32.*pip install 'arenite\[firmware\]'"):
        verify(bundle)
    with pytest.raises(MissingToolError, match="Install qemu-system-riscv32 and put it on PATH"):
        verify(bundle, "qemu")


def test_a_fault_names_the_address(built: Built, tmp_path: Path) -> None:
    need("unicorn", "qemu-mps2-an386")
    bundle = make_fake_bundle(tmp_path / "bundle", "qemu-mps2-an386")
    model = bundle / "model" / "model.c"
    wild = "*(volatile uint32_t *)0x60000000u = 1; memset(out + A_AT"
    model.write_text(model.read_text().replace("memset(out + A_AT", wild))
    build(bundle, "zig")
    with pytest.raises(LinkError, match="the firmware faulted at address 0x"):
        verify(bundle, "unicorn")


def test_without_a_compiler_unicorn_runs_and_does_not_count(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    need("unicorn", "qemu-mps2-an500")
    from arenite.device.emulators.block_counter import BlockCounter

    monkeypatch.setattr(BlockCounter, "load", staticmethod(lambda: None))
    report = verify(built("qemu-mps2-an500", "zig"), "unicorn")
    assert report.identical
    assert report.instructions is None


def test_the_host_board_speaks_the_same_link(tmp_path: Path) -> None:
    bundle = make_fake_bundle(tmp_path / "bundle", "host")
    build(bundle)
    report = verify(bundle)
    assert (report.identical, report.vectors, report.board, report.emulator) == (True, 3, "host", None)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system has no /proc")
def test_qemu_does_not_outlive_a_killed_python(built: Built) -> None:
    need("qemu", "qemu-mps2-an386")
    folder = built("qemu-mps2-an386", "zig")
    code = (
        "import sys, time; from pathlib import Path; from arenite.device.emulators import start_emulator\n"
        "board = start_emulator(Path(sys.argv[1]), 'qemu'); print(board._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True) as python:
        assert python.stdout is not None
        supervisor = int(python.stdout.readline())
        qemu = int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])
        python.kill()
    deadline = time.monotonic() + 10
    while _runs(qemu):
        assert time.monotonic() < deadline, "QEMU runs on"
        time.sleep(0.05)


def test_qemu_outlives_the_thread_that_started_it(built: Built) -> None:
    need("qemu", "qemu-mps2-an386")
    with ThreadPoolExecutor(1) as pool:
        board = pool.submit(start_emulator, built("qemu-mps2-an386", "zig"), "qemu").result()
    with contextlib.closing(board), open_device(board.stream) as device:
        assert device.identity.board == "qemu-mps2-an386"


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1]
    except OSError:
        return False


# Serial ports


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_a_pseudo_terminal_is_a_port(built: Built) -> None:
    ours, theirs = os.openpty()
    try:
        _verify_over(built, lambda: ours, os.ttyname(theirs))
    finally:
        os.close(theirs)


@pytest.mark.skipif(os.name == "nt", reason="sockets are no files on this system")
def test_a_socket_is_a_port(built: Built) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"socket://127.0.0.1:{server.getsockname()[1]}"
        _verify_over(built, lambda: server.accept()[0].detach(), url)


def _verify_over(built: Built, open_line: Callable[[], int], url: str) -> None:
    """Puts an emulated board at one end of a line and verifies it through the port at the other end."""
    need("unicorn", "qemu-mps2-an386")
    pytest.importorskip("serial")
    bundle = built("qemu-mps2-an386", "zig")
    board = start_emulator(bundle, "unicorn")
    stop = threading.Event()
    pump = threading.Thread(target=_pump, args=(board, open_line, stop))
    pump.start()
    try:
        report = verify(bundle, url)
    finally:
        stop.set()
        pump.join()
    assert (report.identical, report.vectors, report.emulator, report.counter_unit) == (True, 3, None, "ticks")


def _pump(board: EmulatedBoard, open_line: Callable[[], int], stop: threading.Event) -> None:
    line = open_line()
    os.set_blocking(line, False)
    while not stop.is_set():
        with contextlib.suppress(BlockingIOError):
            board.stream.write(os.read(line, 4096))
        data = board.stream.read(0.01)
        while data:
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(line, data) :]
    os.close(line)


def test_a_port_that_does_not_exist_is_named() -> None:
    pytest.importorskip("serial")
    with pytest.raises(LinkError, match=r"/dev/no-such-port: the port cannot be opened .*Check the cable"):
        open_device("/dev/no-such-port")


def test_dtr_and_rts_are_set_before_the_port_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    serial = pytest.importorskip("serial")
    events: list[str] = []

    class Port:
        baudrate = timeout = None

        def __setattr__(self, name: str, value: object) -> None:
            events.append(f"{name}={value}")

        def open(self) -> None:
            events.append("open")

    def serial_for_url(url: str, do_not_open: bool) -> Port:
        assert do_not_open
        return Port()

    monkeypatch.setattr(serial, "serial_for_url", serial_for_url)
    from arenite.device import SerialStream

    SerialStream("anything")
    assert events.index("dtr=False") < events.index("open")
    assert events.index("rts=False") < events.index("open")


# Builds that must fail


def board_file(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """A board file like another one, with some of its text replaced."""
    text = (load_board(name).directory / "board.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "board.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_a_board_that_denies_its_dsp_extension_does_not_build(tmp_path: Path, toolchain: str) -> None:
    need(toolchain, "qemu-mps2-an386")
    lie = board_file(tmp_path, "qemu-mps2-an386", ("dsp = true", "dsp = false"))
    bundle = make_fake_bundle(tmp_path / "bundle", lie)
    with pytest.raises(ToolchainError, match="told of a DSP extension that the board has not"):
        build(bundle, toolchain)
    assert not (bundle / "build" / "build.json").exists()


@pytest.mark.parametrize(
    ("board_name", "machine", "message"),
    [
        ("qemu-mps2-an386", ("-mcpu=cortex-m4", "-mthumb"), "the floating-point unit that the compiler was told of"),
        ("qemu-mps2-an500", ("-mcpu=cortex-m3", "-mthumb"), "the floating-point unit that the compiler was told of"),
        ("qemu-riscv32", ("-march=rv32im_zicsr", "-mabi=ilp32"), "the RISC-V extension c and the compiler was not"),
        ("qemu-riscv32", ("-march=rv32imac_zicsr", "-mabi=ilp32"), "the RISC-V extension a, which the board has not"),
    ],
)
def test_a_compiler_that_is_told_of_another_chip_does_not_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board_name: str, machine: tuple[str, ...], message: str
) -> None:
    need("gcc", board_name)
    monkeypatch.setattr(toolchain_module, "_gcc_machine", lambda board: machine)
    with pytest.raises(ToolchainError, match=message):
        build(make_fake_bundle(tmp_path, board_name), "gcc")


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize(
    ("name", "change", "region", "missing"),
    [
        ("qemu-mps2-an386", ("length = 655360", "length = 8192"), "sram", range(2500, 4000)),
        ("qemu-mps2-an500", ("length = 0x400000", "length = 1024"), "flash", range(4500, 7500)),
        ("qemu-riscv32", ("length = 409600", "length = 8192"), "sram", range(2500, 4000)),
    ],
)
def test_a_firmware_that_does_not_fit_names_region_and_bytes(
    tmp_path: Path, name: str, change: tuple[str, str], region: str, missing: range, toolchain: str
) -> None:
    need(toolchain, name)
    small = board_file(tmp_path, name, change)
    with pytest.raises(DoesNotFitError, match=rf"region {region} lacks (\d+) bytes") as caught:
        build(make_fake_bundle(tmp_path / "bundle", small), toolchain)
    assert caught.value.exit_code == 1
    assert int(caught.value.what.split(" lacks ")[1].split()[0]) in missing


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_ram_that_is_exactly_enough_builds_and_a_word_less_does_not(tmp_path: Path, toolchain: str) -> None:
    need(toolchain, "qemu-riscv32")
    small = board_file(tmp_path, "qemu-riscv32", ("length = 409600", "length = 8192"))
    bundle = make_fake_bundle(tmp_path / "bundle", small)
    with pytest.raises(DoesNotFitError) as caught:
        build(bundle, toolchain)
    enough = 8192 + int(caught.value.what.split(" lacks ")[1].split()[0])
    for length, fits in ((enough, True), (enough - 4, False)):
        other = tmp_path / str(length)
        other.mkdir()
        changed = board_file(other, "qemu-riscv32", ("length = 409600", f"length = {length}"))
        folder = make_fake_bundle(other / "bundle", changed)
        with contextlib.nullcontext() if fits else pytest.raises(DoesNotFitError, match="sram lacks 4 bytes"):
            build(folder, toolchain)


def test_a_compile_error_names_file_and_message(tmp_path: Path) -> None:
    need("zig", "qemu-riscv32")
    bundle = make_fake_bundle(tmp_path, "qemu-riscv32")
    (bundle / "model" / "model.c").write_text("int main(void) { return missing; }\n")
    with pytest.raises(ToolchainError, match=r"model/model.c: the compiler refused it: .*missing"):
        build(bundle, "zig")


@pytest.mark.parametrize("content", ["not json", "[]", '{"sources": []}'])
def test_a_damaged_manifest_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UsageError, match="manifest"):
        build(tmp_path)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board_name", BOARDS)
def test_a_build_is_the_same_twice_and_says_its_sizes(tmp_path: Path, board_name: str, toolchain: str) -> None:
    need(toolchain, board_name)
    reports = []
    for run in ("a", "b"):
        reports.append(build(make_fake_bundle(tmp_path / run, board_name), toolchain))
    assert reports[0].elf.read_bytes() == reports[1].elf.read_bytes()
    assert (tmp_path / "a/build/build.json").read_bytes() == (tmp_path / "b/build/build.json").read_bytes()
    assert reports[0].weights_bytes == 40  # 37, rounded up to words
    assert 5000 < reports[0].code_bytes < 9500
    assert reports[0].data_bytes == 0
    assert 1040 < reports[0].bss_bytes < 1400
