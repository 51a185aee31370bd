# SPDX-License-Identifier: Apache-2.0
"""What a board says of itself: restarts, faults, watchdog, marker pin, heartbeat, traced rows; over other lines too."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import socket
import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arenite.device import Device, open_device, trace_run
from arenite.device.emulators import EmulatedBoard, start_emulator
from arenite.device.tracing import read_row, row_checksums
from arenite.errors import LinkError, UsageError
from arenite_codegen.boards import load_board
from arenite_codegen.build import build
from support.fake_bundle import expected_outputs, make_fake_bundle, random_inputs
from support.served_board import over_pty, over_socket

BOARDS = ["qemu-microbit", "qemu-mps2-an386", "qemu-riscv32"]
Built = Callable[[str], Path]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The built bundle of a board, made once."""
    pytest.importorskip("ziglang", reason="ziglang is not installed")
    made: dict[str, Path] = {}

    def get(board: str) -> Path:
        if board not in made:
            made[board] = make_fake_bundle(tmp_path_factory.mktemp("bundle"), board)
            build(made[board], "zig")
        return made[board]

    return get


@contextlib.contextmanager
def running(bundle: Path, emulator: str = "unicorn") -> Iterator[tuple[EmulatedBoard, Device]]:
    if emulator == "unicorn":
        pytest.importorskip("unicorn", reason="unicorn is not installed")
    else:
        need_qemu()
    with contextlib.closing(start_emulator(bundle, emulator)) as board:
        yield board, open_device(board.stream, timeout_s=30)


def need_qemu() -> None:
    if shutil.which("qemu-system-arm") is None or shutil.which("qemu-system-riscv32") is None:
        pytest.skip("QEMU is not installed")


def run(device: Device, seed: int = 0) -> list[bytes]:
    inputs = random_inputs(seed)
    for index, data in enumerate(inputs):
        device.load(index, data)
    device.run()
    return inputs


@pytest.mark.parametrize("board_name", BOARDS)
def test_about_and_heartbeat(built: Built, board_name: str) -> None:
    with running(built(board_name)) as (_, device):
        about = device.about()
        assert (about.rounding, about.layers, about.features) == ("double", 3, ())
        assert about.clock_hz == load_board(board_name).clock_hz
        before = device.heartbeat()
        assert (before.inferences, before.refusals, before.guards) == (0, 0, "absent")
        run(device)
        with pytest.raises(LinkError, match="status 5"):
            device.run()
        after = device.heartbeat()
        assert (after.inferences, after.refusals, after.last_command, after.last_status) == (1, 1, 4, 5)
        assert after.uptime > before.uptime
        assert 64 < after.stack_peak_bytes < 1024
        for index, data in enumerate(random_inputs(1)):
            device.load(index, data)
        once = device.run().counter
        for index, data in enumerate(random_inputs(2)):
            device.load(index, data)
        assert 2.9 * once < device.run(count=3).counter < 3.1 * once
        assert device.heartbeat().inferences == 5
        with pytest.raises(LinkError, match=r"no run since the last load \(status 6\)"):
            device.read_output(0)


@pytest.mark.parametrize("board_name", BOARDS)
def test_rows_are_seen_as_they_are_made(built: Built, board_name: str) -> None:
    with running(built(board_name)) as (_, device):
        inputs = random_inputs(3)
        total, mirrored = expected_outputs(inputs)
        _, records = trace_run(device, inputs)
        assert [record.rows for record in records] == [1, 1, 1]
        assert [record.checksum for record in records] == [zlib.crc32(total), zlib.crc32(mirrored), 0]
        assert records[0].counter > records[1].counter > 0
        assert row_checksums(device, inputs, 0, 1) == [zlib.crc32(total)]
        assert read_row(device, inputs, 0, 0, len(total)) == total  # three frames
        run(device, 4)
        assert device.read_output(1) == expected_outputs(random_inputs(4))[1]


@pytest.mark.parametrize("emulator", ["unicorn", "qemu"])
@pytest.mark.parametrize("board_name", BOARDS)
def test_a_board_restarts_when_asked_and_says_why(built: Built, board_name: str, emulator: str) -> None:
    with running(built(board_name), emulator) as (_, device):
        assert device.reset_cause().cause == "unknown"
        identity = device.identity
        run(device)
        device.parameter("marker", 0)
        assert device.reboot(timeout_s=20) == identity
        assert device.reset_cause().cause == "asked"
        assert device.heartbeat().inferences == 0
        assert device.parameter("marker") == 1
        inputs = run(device, 7)
        assert device.read_output(0) == expected_outputs(inputs)[0]


# Nothing answers at this address of any of the machines.
WILD = {"qemu-microbit": 0x60000000, "qemu-mps2-an386": 0x90000000, "qemu-riscv32": 0x20000}


@pytest.mark.parametrize("board_name", BOARDS)
def test_a_fault_is_told_after_the_restart(tmp_path: Path, board_name: str) -> None:
    """The address is that of the faulting instruction, as the ELF's symbols say; the layer that which made it."""
    need_qemu()
    bundle = make_fake_bundle(tmp_path, board_name)
    model = bundle / "model" / "model.c"
    wild = f"(void)*(volatile uint32_t *){WILD[board_name]:#x}u; memset(out + A_AT"
    model.write_text(model.read_text().replace("memset(out + A_AT", wild))
    report = build(bundle)
    with running(bundle, "qemu") as (board, device):
        with pytest.raises(LinkError, match=r"restarted during `run`: fault, .* in step 0 of layer 2") as caught:
            run(device)
        found = re.search(r" at (0x[0-9a-f]+)", caught.value.what)
        assert found is not None
        start, size = symbol(report.elf, "spoil")
        assert start <= int(found[1], 16) < start + size
        again = open_device(board.stream, timeout_s=20)
        cause = again.reset_cause()
        assert cause.cause == "fault"
        assert cause.fault is not None
        assert cause.fault.pc == int(found[1], 16)
        assert again.heartbeat().inferences == 0


def symbol(elf: Path, name: str) -> tuple[int, int]:
    """Address and size of a function."""
    from arenite_codegen.elf import read_elf

    found = next(s for s in read_elf(elf).symbols if s.name == name)
    return found.value & ~1, found.size


WATCHDOG = """
[watchdog]
setup = [[0x40008C00, 0x1ACCE551], [0x40008000, 12_500_000], [0x40008008, 3]]
feed = [[0x4000800C, 1]]

[marker]
setup = []
on = [[0x40010004, 1]]
off = [[0x40010004, 0]]
"""


def own_board(folder: Path, more: str) -> Path:
    text = (load_board("qemu-mps2-an386").directory / "board.toml").read_text()
    path = folder / "board.toml"
    path.write_text(text + more)
    return path


def test_a_hang_is_ended_by_the_watchdog(tmp_path: Path) -> None:
    """QEMU's CMSDK watchdog: half a second unfed raises its interrupt; what runs for long but feeds it lives."""
    bundle = make_fake_bundle(tmp_path / "bundle", own_board(tmp_path, WATCHDOG))
    model = bundle / "model" / "model.c"
    hang = "while (out[B_AT] == 0x33) {\n        __asm__ volatile(\"nop\");\n    }\n    memset(out + A_AT"
    model.write_text(model.read_text().replace("memset(out + A_AT", hang))
    build(bundle)
    with running(bundle, "qemu") as (board, device):
        assert device.about().features == ("watchdog", "marker")
        inputs = random_inputs(5)
        harmless = [inputs[0], b"\x34" + inputs[1][1:]]
        for index, data in enumerate(harmless):
            device.load(index, data)
        device.run()
        assert device.read_output(1) == expected_outputs(harmless)[1]
        for index, data in enumerate([inputs[0], b"\x33" + inputs[1][1:]]):
            device.load(index, data)
        told = r"restarted during `run`: watchdog, NMI at 0x[0-9a-f]+, in step 0 of layer 2"
        with pytest.raises(LinkError, match=told):
            device.run()
        assert open_device(board.stream, timeout_s=20).reset_cause().cause == "watchdog"


RESET_CAUSE = """
[reset_cause]
register = 0x40011004
watchdog_bits = 0x60
clear = [[0x40011004, 0x80]]
"""


@pytest.mark.parametrize(("flags", "cause"), [(0x90, "unknown"), (0x20, "watchdog"), (0x40, "watchdog")])
def test_the_chip_says_that_its_watchdog_reset_it(tmp_path: Path, flags: int, cause: str) -> None:
    """A register as chips have one: the firmware reads it once and clears it. A restart that was asked for says so."""
    pytest.importorskip("unicorn", reason="unicorn is not installed")
    bundle = make_fake_bundle(tmp_path / "bundle", own_board(tmp_path, RESET_CAUSE))
    build(bundle)
    writes: list[tuple[int, int]] = []
    with contextlib.closing(start_emulator(bundle, "unicorn")) as board:
        board._engine.mmio_map(  # type: ignore[attr-defined]
            0x40011000,
            4096,
            lambda uc, at, size, user: flags if at == 4 else 0,
            None,
            lambda uc, at, size, value, user: writes.append((at, value)),
            None,
        )
        device = open_device(board.stream, timeout_s=30)
        assert device.reset_cause().cause == cause
        assert writes == [(4, 0x80)]
        device.reboot(timeout_s=20)
        assert device.reset_cause().cause == "asked"


def test_the_marker_is_high_while_an_inference_runs(tmp_path: Path) -> None:
    pytest.importorskip("unicorn", reason="unicorn is not installed")
    bundle = make_fake_bundle(tmp_path / "bundle", own_board(tmp_path, WATCHDOG))
    build(bundle)
    writes: list[int] = []
    board = start_emulator(bundle, "unicorn")
    engine = board._engine  # type: ignore[attr-defined]
    engine.mmio_map(0x40010000, 4096, None, None, lambda uc, at, size, value, user: writes.append(value), None)
    engine.mmio_map(0x40008000, 4096, None, None, lambda *_: None, None)
    device = open_device(board.stream, timeout_s=30)
    assert writes == [0]
    run(device)
    assert writes == [0, 1, 0]
    device.parameter("marker", 0)
    run(device)
    assert writes[3:] == [0, 0]


def test_a_hanging_board_is_named_in_time(tmp_path: Path) -> None:
    from arenite.device import verify

    bundle = make_fake_bundle(tmp_path, "qemu-mps2-an386")
    model = bundle / "model" / "model.c"
    hang = "for (;;) {\n        __asm__ volatile(\"nop\");\n    }\n    memset(out + A_AT"
    model.write_text(model.read_text().replace("memset(out + A_AT", hang))
    build(bundle)
    need_qemu()
    with pytest.raises(LinkError, match=r"no answer to `run` after 1 attempts within [0-9.]+ s"):
        verify(bundle, "qemu", timeout_s=2.5)


# Other lines

RATES = [9600, 19_200, 38_400, 57_600, 115_200, 230_400, 250_000, 460_800, 921_600, 1_000_000, 2_000_000, 3_000_000]
_TCGETS2, _TERMIOS2 = 0x802C542A, "4I B 19B 2I"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for the rate of the port")
def test_a_port_runs_at_the_rate_that_is_asked_for(built: Built) -> None:
    """The kernel says at which rate the port is; also for those that termios has no name for."""
    import fcntl

    pytest.importorskip("serial", reason="pyserial is not installed")
    with over_pty(built("qemu-mps2-an386")) as port:
        for rate in RATES:
            with open_device(port, baud=rate, timeout_s=20) as device, Path(port).open("rb", buffering=0) as same:
                answer = fcntl.ioctl(same, _TCGETS2, bytes(struct.calcsize(_TERMIOS2)))
                assert struct.unpack(_TERMIOS2, answer)[-2:] == (rate, rate)
                inputs = run(device, rate % 97)
                assert device.read_output(0) == expected_outputs(inputs)[0]



@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pyserial's own
def test_a_port_over_rfc_2217(built: Built) -> None:
    """pyserial's own server of that protocol, with the emulated board's line as its serial port."""
    pytest.importorskip("serial", reason="pyserial is not installed")
    from serial import rfc2217, serial_for_url

    stop = threading.Event()
    with (
        over_socket(built("qemu-mps2-an386")) as url,
        socket.create_server(("127.0.0.1", 0)) as server,
        serial_for_url(url, timeout=0.01) as local,
    ):
        thread = threading.Thread(target=serve, args=(server, local, rfc2217.PortManager, stop))
        thread.start()
        try:
            with open_device(f"rfc2217://127.0.0.1:{server.getsockname()[1]}", timeout_s=20) as device:
                inputs = run(device, 2)
                assert device.read_output(0) == expected_outputs(inputs)[0]
        finally:
            stop.set()
            thread.join()


def serve(server: socket.socket, port: Any, manager_of: Callable[..., Any], stop: threading.Event) -> None:
    """One connection of a network serial port."""
    connection, _ = server.accept()
    sending = threading.Lock()

    class Writer:
        def write(self, data: bytes) -> None:
            with sending:
                connection.sendall(data)

    manager = manager_of(port, Writer())
    with connection, contextlib.suppress(ConnectionError):
        while not stop.is_set():
            if select.select([connection], [], [], 0.01)[0]:
                data = connection.recv(4096)
                if not data:
                    break
                port.write(b"".join(manager.filter(data)))
            data = port.read(4096)
            if data:
                Writer().write(b"".join(manager.escape(data)))


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_a_board_that_comes_back_under_another_name_is_found(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ports that are real, and a list of USB devices that says which of them the board is at now."""
    pytest.importorskip("serial", reason="pyserial is not installed")
    from serial.tools import list_ports, list_ports_common

    def device_at(path: str, serial_number: str) -> Any:
        info = list_ports_common.ListPortInfo(path, skip_link_detection=True)
        info.vid, info.pid, info.serial_number = 0x0483, 0x374B, serial_number
        return info

    with over_pty(built("qemu-mps2-an386")) as first, over_pty(built("qemu-microbit")) as second:
        plugged = [device_at(first, "A1"), device_at("/dev/other", "B2")]
        monkeypatch.setattr(list_ports, "comports", lambda: list(plugged))
        with pytest.raises(LinkError, match=r"2 such devices are plugged in: .*usb:0483:374b:SERIAL"):
            open_device("usb:0483:374b")
        with pytest.raises(LinkError, match="usb:0483:374c: no such device is plugged in"):
            open_device("usb:0483:374c")
        with open_device("usb:0483:374b:A1", timeout_s=20) as device:
            assert device.identity.board == "qemu-mps2-an386"
            plugged[0] = device_at(second, "A1")
            assert device.reboot(timeout_s=20).board == "qemu-microbit"


def test_what_names_no_usb_device_is_refused() -> None:
    with pytest.raises(UsageError, match=r"usb:0483: this names no USB device. Write usb:VID:PID"):
        open_device("usb:0483")
