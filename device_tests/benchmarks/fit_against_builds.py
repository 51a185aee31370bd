# SPDX-License-Identifier: Apache-2.0
"""What `arenite fit` says of models, held against builds: it fits if and only if the image links.

    PYTHONPATH=device_tests python device_tests/benchmarks/fit_against_builds.py MODEL ... [--toolchain zig]

A model is a file, or the name ("ResNet50/224") of a network of `support.keras_networks`, made here with random
weights. For every board that is built here: what fits is bundled, built and linked. What does not fit is proven by
sums where weights alone exceed the flash or the arena alone the RAM; where it is a matter of code or stack, the image
is built for a board with more memory, and its size compared with the memory that there is. Exit 1 if a verdict is
wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import arenite
from arenite.errors import AreniteError
from arenite_codegen.board_fit import BoardFit, fit, hardware_boards
from arenite_codegen.board_model import Board
from arenite_codegen.boards import load_board
from arenite_codegen.build import BuildReport

ROOMY_BYTES = {"flash": 0x4000000, "ram": 0x1000000}


def verdicts(model: Path, folder: Path, toolchain: str) -> Iterator[tuple[BoardFit, str, bool]]:
    """Each board's verdict, how it was checked, and whether it is right."""
    boards = [name for name in hardware_boards() if load_board(name).architecture != "esp-idf"]
    for found in fit(model, boards).boards:
        board = load_board(found.board)
        if found.fits:
            yield found, *_linked(model, board, folder / board.name, toolchain)
        elif found.weights_bytes > board.flash_bytes or found.arena_bytes > board.ram_bytes:
            yield found, "by its sums", True
        else:
            yield found, *_too_large(model, board, folder / board.name, toolchain)


def _linked(model: Path, board: Board, folder: Path, toolchain: str) -> tuple[str, bool]:
    try:
        report = _build(model, board.name, folder, toolchain)
    except AreniteError as error:
        return f"no image: {error.what}", False
    return f"linked: {report.code_bytes:,} of code", True


def _too_large(model: Path, board: Board, folder: Path, toolchain: str) -> tuple[str, bool]:
    folder.mkdir()
    roomy = folder / "roomy.toml"
    roomy.write_text(_with_more_memory(board), encoding="utf-8")
    report = _build(model, roomy, folder / "b", toolchain)
    flash = report.code_bytes + report.weights_bytes
    ram = report.data_bytes + report.bss_bytes + report.stack_bytes
    arena = sum(part["bytes"] for part in _regions(folder / "b") if part["holds"] in ("arena", "state"))
    over = flash > board.flash_bytes or max(ram, board.stack_bytes) + arena > board.ram_bytes
    return f"built elsewhere: {flash:,} of flash, {ram:,} of RAM beside an arena of {arena:,}", over


def _regions(bundle: Path) -> list[dict[str, int | str]]:
    from arenite._manifest import read_manifest

    regions: list[dict[str, int | str]] = read_manifest(bundle)["regions"]
    return regions


def _with_more_memory(board: Board) -> str:
    """Its file, with the last memory of each kind made large."""
    text = (board.directory / board.file).read_text(encoding="utf-8")
    for kind, bytes_ in ROOMY_BYTES.items():
        last = [region for region in board.memory if region.kind == kind][-1]
        text = re.sub(rf'(name = "{last.name}"\n.*\n.*\nlength = )\w+', rf"\g<1>{bytes_:#x}", text)
    return text


def _build(model: Path, board: str | Path, folder: Path, toolchain: str) -> BuildReport:
    arenite.bundle(model, board, folder, vectors=0)
    return arenite.build(folder, toolchain)


def _model(name: str, folder: Path) -> Path:
    if Path(name).is_file():
        return Path(name)
    from support.keras_networks import converted

    path = folder / f"{re.sub('[^A-Za-z0-9]', '_', name)}.tflite"
    path.write_bytes(converted(name))
    return path


def main() -> int:
    """Check all and print a line for each board."""
    parser = argparse.ArgumentParser(description="What `arenite fit` says, held against builds.")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a file, or a network of support.keras_networks")
    parser.add_argument("--toolchain", choices=("gcc", "zig"), default="gcc")
    arguments = parser.parse_args()
    wrong = 0
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as at:
            print(name)
            for found, how, right in verdicts(_model(name, Path(at)), Path(at), arguments.toolchain):
                verdict = "fits" if found.fits else "does not fit"
                print(f"  {found.board:26} {verdict:12} {'right' if right else 'WRONG'}, {how}", flush=True)
                wrong += not right
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
