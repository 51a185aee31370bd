# SPDX-License-Identifier: Apache-2.0
"""Writes docs/boards/: a page for each board of real hardware, out of its board file.

python device_tests/benchmarks/board_pages.py
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from arenite_codegen.board_list import BoardSummary, summary
from arenite_codegen.board_model import Board, MemoryRegion
from arenite_codegen.boards import list_boards, load_board

__all__ = ["FOLDER", "pages"]

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "boards"
_LICENCE = "<!-- SPDX-License-Identifier: Apache-2.0 -->"
_PROVEN = {
    "built": "Built: the image has been made and looked at, and its constants compared with data that are not ours\n"
    "(`device_tests/host/test_real_boards.py`); no board has run it yet. If yours does, or does not, say so.",
    "emulated by rp2040js": "Emulated: the image runs in rp2040js with its own boot code, clocks, serial port, timer\n"
    "and marker pin, and every byte right (`device_tests/emulated/test_rp2040js.py`); its constants agree with data\n"
    "that are not ours. No board has run it yet.",
    "exported": "Exported: the component compiles for the chip's instruction set; nothing has run on the chip yet.",
}


def pages() -> Mapping[str, str]:
    """Text of every page by file name."""
    boards = [load_board(name) for name in list_boards()]
    found = {f"{board.name}.md": _page(board) for board in boards if board.proven in _PROVEN}
    return found | {"README.md": _index([board for board in boards if board.proven in _PROVEN])}


def _index(boards: list[Board]) -> str:
    rows = [
        f"| [`{board.name}`]({board.name}.md) | {board.hardware.chip} | {board.cpu} | {board.clock_hz / 1e6:g} | "
        f"{_sizes(board.rams)} | {_sizes(board.flashes)} | {board.proven} |"
        for board in boards
    ]
    head = ["| board | chip | core | MHz | RAM | flash | proven |", "|---|---|---|--:|---|---|---|"]
    lead = "Boards of real hardware; [how a board is described](../boards.md), and how to add yours."
    return "\n".join([_LICENCE, "# The boards", "", lead, "", *head, *rows, ""])


def _sizes(regions: tuple[MemoryRegion, ...]) -> str:
    return " + ".join(_bytes(region.length) for region in regions)


def _bytes(count: int) -> str:
    return f"{count / (1 << 20):.4g} MB" if count >= 1 << 20 else f"{count / 1024:.4g} KB"


def _page(board: Board) -> str:
    told = summary(board)
    parts = [
        [_LICENCE, f"# {board.name}", "", f"{board.description}.", "", *_comments(board)],
        _core(board, told),
        ["## Memories", "", *_memories(told)],
        _use(board),
        _meter(board),
        ["## How far it is proven", "", _PROVEN[board.proven], *_clocks(board)],
    ]
    return "\n".join("\n".join(part) + "\n" for part in parts if part)


def _clocks(board: Board) -> list[str]:
    if board.hardware.family not in ("stm32-f4-f7", "stm32-h7", "stm32-u5"):
        return []
    return [
        "What its own C writes into the registers of clocks and pins was read back in Unicorn, and comes out as stated",
        "here (`device_tests/emulated/test_stm32_clocks.py`).",
    ]


def _comments(board: Board) -> list[str]:
    """What the board file says before its first field."""
    lines = (board.directory / board.file).read_text(encoding="utf-8").splitlines()
    head = lines[1 : next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    return [line.removeprefix("# ") for line in head]


def _core(board: Board, told: BoardSummary) -> list[str]:
    rows = [
        ("chip", board.hardware.chip),
        ("core", f"{board.cpu}{', ' + told.features if told.features else ''}"),
        ("clock", f"{board.clock_hz / 1e6:g} MHz"),
    ]
    uart, counter = board.uart, board.counter
    if uart.base is not None:
        pins = (
            f"{_pin(board, uart.tx_pin)} sends, {_pin(board, uart.rx_pin)} receives, "
            if uart.tx_pin is not None
            else ""
        )
        rows.append(("serial port", f"`{uart.kind}` at `0x{uart.base:08X}`, {pins}{uart.baud:,} baud"))
        rows.append(("time of a run", f"`{counter.kind}`: {counter.unit} of {counter.hz / 1e6:g} MHz"))
    if board.power is not None:
        rows.append(("draws, running", f"{board.power.active_uw_per_mhz:g} µW/MHz: {board.power.source}"))
    return ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows)]


def _pin(board: Board, number: int | None) -> str:
    if number is None:
        return ""
    family = board.hardware.family
    if family.startswith("stm32"):
        return f"P{chr(ord('A') + number // 16)}{number % 16}"
    return f"P{number // 32}.{number % 32:02}" if family == "nrf52" else f"GP{number}"


def _memories(told: BoardSummary) -> list[str]:
    rows = [f"| `{m.name}` | {m.kind} | {_bytes(m.bytes)} | {m.word_cycles} | {m.good_for} |" for m in told.memories]
    return ["| name | kind | size | cycles a word | good for |", "|---|---|--:|--:|---|", *rows]


def _use(board: Board) -> list[str]:
    if board.architecture == "esp-idf":
        steps = [f"arenite bundle model.tflite --board {board.name} --export esp-idf -o firmware"]
        steps += ["cp -r firmware/exports/esp-idf my_project/components/model", "idf.py -C my_project build flash"]
        return ["## Use", "", *(f"    {step}" for step in steps)]
    steps = [f"arenite bundle model.tflite --board {board.name} -o firmware", "arenite build firmware"]
    if board.flashing is None:
        loader = "Then write `firmware/build/firmware.elf` with the board's own loader."
        return ["## Use", "", *(f"    {step}" for step in steps), "", loader]
    steps.append("arenite flash firmware --port PORT")
    command = " ".join(board.flashing.command)
    note = f"`arenite flash` calls `{command}`." if command else f"`arenite flash` writes by `{board.flashing.method}`."
    return ["## Use", "", *(f"    {step}" for step in steps), "", note]


def _meter(board: Board) -> list[str]:
    if board.marker is None:
        return []
    lines = (board.directory / board.file).read_text(encoding="utf-8").splitlines()
    pin = lines[lines.index("[marker]") - 1].removeprefix("# ").split(";")[0].rstrip(".")
    text = [
        f"{pin} is high while an inference runs.",
        "Wire it to the meter's trigger or logic input, ground to ground, and the meter into the supply of the chip or",
        "of the board: what the pin marks is then the energy of one inference ([energy](../energy.md)).",
        "The pin's level is the chip's supply: 3.3 V, on some boards 1.8 V.",
    ]
    return ["## A meter", "", *text]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(pages())} pages\n")
