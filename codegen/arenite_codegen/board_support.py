# SPDX-License-Identifier: Apache-2.0
"""A board's part of a bundle: application, drivers, start-up and linker script."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from arenite.errors import OutputError
from arenite_codegen.application import Benchmark
from arenite_codegen.board_hardware import BOOTS, FAMILIES
from arenite_codegen.board_model import Board, Writes
from arenite_codegen.board_schema import COUNTER_UNITS, COUNTERS, FPU_BITS, UARTS
from arenite_codegen.render import render

__all__ = ["APP_DEFINES", "copy_support", "firmware_folder"]

_APP_SOURCES = ("app.c", "crc32.c", "health.c", "link.c", "trace.c")
_APP_HEADERS = ("app.h", "board.h", "bytes.h", "command.h", "crc32.h", "health.h", "link.h", "trace.h")
APP_DEFINES = ("ARENITE_ON_STEP", "ARENITE_ON_ROW")
"""What the application needs of the runtime that is compiled with it."""
_BENCHMARK_SOURCES = ("decimal.c", "mlperf.c")
_BENCHMARK_HEADERS = ("decimal.h", "mlperf.h")
_BENCHMARK_APP_FILES = ("app.h", "board.h", "bytes.h", "crc32.c", "crc32.h")
_FREESTANDING_SOURCES = ("main.c", "mem.c")
_SUPPORT_HEADERS = ("counter_wide.h", "drivers.h")
_STARTUP = {"cortex-m": "startup_cortex_m.c.j2", "riscv32": "startup_riscv.S.j2"}
_FAULTS = {"cortex-m": "fault_cortex_m.c", "riscv32": "fault_riscv.c"}
_RISCV_MACROS = (
    ("m", "__riscv_mul"),
    ("a", "__riscv_atomic"),
    ("f", "__riscv_flen"),
    ("c", "__riscv_compressed"),
)


def copy_support(
    board: Board,
    bundle_dir: Path,
    context: Mapping[str, object] | None = None,
    benchmark: Benchmark | None = None,
) -> list[str]:
    """Writes a board's part of a bundle: `app/`, `board/`, start-up, drivers and linker script.

    Args:
        board: The board.
        bundle_dir: Root of the bundle; the folders are made.
        context: More values for the templates of start-up and linker script.
        benchmark: The application is MLPerf Tiny's instead of the serial link.

    Returns:
        The C and assembly files to compile, relative to `bundle_dir`, in a fixed order.

    Raises:
        OutputError: A file cannot be written.
    """
    try:
        app, support = bundle_dir / "app", bundle_dir / "board"
        app.mkdir(parents=True, exist_ok=True)
        support.mkdir(parents=True, exist_ok=True)
        sources: list[str] = []
        if board.architecture != "esp-idf":  # which starts, links and drives the chip itself
            sources += _copy_app(board, app, benchmark) + _copy_drivers(board, support)
            sources += _render_support(board, support, dict(context or {}))
        shutil.copyfile(board.directory / board.file, support / "board.toml")
        for own in board.own_c:
            shutil.copyfile(own, support / own.name)
            sources += [f"board/{own.name}"] if own.suffix == ".c" else []
    except OSError as error:
        file = f": {Path(error.filename).name}" if isinstance(error, FileNotFoundError) else ""
        problem = f"the board support cannot be written ({error.strerror}{file})"
        raise OutputError(problem, where=str(bundle_dir)) from error
    return sources


def _copy_app(board: Board, to: Path, benchmark: Benchmark | None) -> list[str]:
    hosted = board.architecture == "host"
    common = () if hosted else _FREESTANDING_SOURCES
    if benchmark is None:
        own = _copy("app", _APP_HEADERS + _APP_SOURCES + common, to)
    else:
        own = _copy("app", (*_BENCHMARK_APP_FILES, *common), to)
        own += _copy("mlperf", _BENCHMARK_HEADERS + _BENCHMARK_SOURCES, to)
        _render("mlperf_config.h.j2", to, {"mlperf": benchmark}, "mlperf")
    if not hosted:
        (to / "freestanding").mkdir(exist_ok=True)
        shim = Path("freestanding", "string.h")
        shutil.copyfile(firmware_folder("app") / shim, to / shim)
    return [f"app/{name}" for name in sorted(own) if name.endswith(".c")]


def _copy(part: str, names: tuple[str, ...], to: Path) -> list[str]:
    for name in names:
        shutil.copyfile(firmware_folder(part) / name, to / name)
    return list(names)


def _copy_drivers(board: Board, to: Path) -> list[str]:
    headers: tuple[str, ...]
    if board.architecture == "host":
        sources, headers = ["uart_host.c"], ("uart_host.h",)
    else:
        counter = COUNTERS[board.counter.kind]
        sources = ["board_init.c", "mcu_id.c", "reset.c", "stack.c", "writes.c", _FAULTS[board.architecture]]
        family = FAMILIES[board.hardware.family]
        sources += [UARTS[board.uart.kind], counter, _idle_source(board), family.source]
        sources += [BOOTS[board.hardware.boot]] if board.hardware.boot else []
        headers = _SUPPORT_HEADERS + family.headers
    for name in (*sources, *headers):
        shutil.copyfile(firmware_folder("startup") / name, to / name)
    return [f"board/{name}" for name in sorted(sources)]


def _idle_source(board: Board) -> str:
    if board.uart.irq is None or board.watchdog is not None:
        return "idle_none.c"
    return "idle_plic.c" if board.architecture == "riscv32" else "idle_nvic.c"


def _render_support(board: Board, to: Path, context: dict[str, object]) -> list[str]:
    context |= {
        "board": board,
        "counter_unit": COUNTER_UNITS.index(board.counter.unit),
        "fpu_bits": FPU_BITS[board.features.fpu],
        "riscv_macros": _RISCV_MACROS,
        "register_writes": _writes(board),
    }
    _render("board_config.h.j2", to, context)
    if board.architecture == "host":
        return []
    _render("link.ld.j2", to, context)
    return [f"board/{_render(_STARTUP[board.architecture], to, context)}"]


def _writes(board: Board) -> list[tuple[str, Writes]]:
    """Register writes of the board by the names of their macros."""
    parts = (
        ("WATCHDOG", board.watchdog, ("setup", "feed")),
        ("RESET_CAUSE", board.reset_cause, ("clear",)),
        ("MARKER", board.marker, ("setup", "on", "off")),
    )
    return [
        (f"BOARD_{part}_{name.upper()}", getattr(values, name))
        for part, values, names in parts
        if values is not None
        for name in names
    ]


def _render(template: str, to: Path, context: Mapping[str, object], part: str = "startup") -> str:
    name = template.removesuffix(".j2")
    text = render(template, context, firmware_folder(part))
    (to / name).write_text(text, encoding="utf-8", newline="\n")
    return name


def firmware_folder(folder: str) -> Path:
    return Path(str(resources.files("arenite_firmware"))) / folder
