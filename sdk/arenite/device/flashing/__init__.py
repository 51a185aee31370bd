# SPDX-License-Identifier: Apache-2.0
"""Flashes a built bundle onto its board, after it has made sure that it is its board."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arenite.device.flashing.declared import DeclaredLoader
from arenite.device.flashing.esp import EspLoader
from arenite.device.flashing.image import FlashTarget, pieces_of, read_flash_target
from arenite.device.flashing.model import FlashState, FoundChip, Loader, Piece, difference, ranges_of
from arenite.device.flashing.stm32 import Stm32Loader
from arenite.device.flashing.tools import check_port
from arenite.device.flashing.uf2 import Uf2Loader
from arenite.device.verify import VerifyReport, verify
from arenite.errors import FlashError
from arenite.progress import Progress, Step, silent

__all__ = ["FlashReport", "FlashState", "flash"]

_BAUD = 115_200


@dataclass(frozen=True)
class FlashReport:
    """What came of flashing. Sizes in bytes.

    Attributes:
        tool: The program that talks to the board's loader.
        chip: What the chip says it is; None where nobody can be asked.
        unique_id: Its serial number or MAC, if it tells.
        flash_bytes: What its flash has, if it tells.
        image_bytes, image_sha256: The firmware.
        written_bytes: That were written; `present_bytes` were there already.
        read_back: The flash was read back, or the chip made digests of it, and it is as it should be; None where that
            cannot be done.
        dry_run: Nothing was erased or written; `written_bytes` is what would be.
        started: The new firmware was started; otherwise somebody must press reset.
        verification: The golden vectors on the board; None where that was not asked for, or it was not started.
    """

    board: str
    tool: str
    port: str
    chip: str | None
    unique_id: str | None
    flash_bytes: int | None
    image_bytes: int
    image_sha256: str
    written_bytes: int
    present_bytes: int
    read_back: bool | None
    dry_run: bool
    started: bool
    verification: VerifyReport | None


def flash(
    bundle_dir: Path | str,
    port: str,
    *,
    baud: int = _BAUD,
    reset: bool = True,
    stub: bool = True,
    dry_run: bool = False,
    check: bool = True,
    verify_on: str | None = None,
    image: bytes | None = None,
    progress: Progress | None = None,
) -> FlashReport:
    """Flashes a built bundle.

    First the chip says what it is and how much flash it has: another one, a protected one or one that is too small is
    left as it is. Where the chip makes digests, what the flash holds already is not written again, so a flashing that
    broke off goes on where it stopped. Afterwards the flash is read back, the firmware started, and the golden vectors
    run.

    Args:
        bundle_dir: A built bundle whose board file says how it is flashed.
        port: The board's serial port; of a board with a UF2 drive its folder, or `auto`.
        baud: Speed while flashing.
        reset: The port's lines reset the board. Otherwise it is in its loader already, and is not started.
        stub: esptool may load its faster helper into RAM.
        dry_run: Ask and compare only.
        check: Run the golden vectors afterwards.
        verify_on: The port where the firmware answers, if it is not `port`. Without it a board with a UF2 drive is not
            verified.
        image: Of firmware for a slot its signed image; the loader goes with it.
        progress: Told of each stage.

    Raises:
        UsageError: The bundle is not built, or its board file does not say how it is flashed.
        MissingToolError: The program that flashes is not installed.
        FlashError: At some stage it went wrong; the error says which and what the flash holds now.
    """
    folder, say = Path(bundle_dir), progress or silent()
    target = read_flash_target(folder)
    pieces = pieces_of(folder, target, image)
    if target.method in ("esptool", "stm32loader"):
        check_port(port)
    loader = _loader(target, pieces, folder, port, baud, reset, stub)
    with say.step(f"identify the chip at {port}"):
        chip = loader.identify()
    if chip is not None:
        _check_chip(target, chip, pieces, port)
    with say.step("compare with what is there"):
        missing = _missing(loader, pieces)
    if not dry_run and missing:
        with say.step("write", sum(len(piece.data) for piece in missing)) as step:
            loader.write(missing, step.advance)
        with say.step("read back") as step:
            known = FlashState(ranges_of(pieces), erased=target.method == "stm32loader")
            read_back = _read_back(loader, pieces, known, port, step)
    else:
        read_back = None if dry_run and missing else True
    started = not dry_run and loader.start()
    answers_at = verify_on or (port if target.method != "uf2" else None)
    proof = verify(folder, on=answers_at, progress=progress) if check and started and answers_at is not None else None
    return _report(target, loader, port, chip, pieces, missing, read_back, dry_run, started, proof)


def _loader(
    target: FlashTarget, pieces: Sequence[Piece], folder: Path, port: str, baud: int, reset: bool, stub: bool
) -> Loader:
    if target.method == "esptool":
        return EspLoader(port, baud, reset, stub)
    if target.method == "stm32loader":
        return Stm32Loader(port, baud, target.family, pieces[0].address)
    if target.method == "uf2":
        return Uf2Loader(port, target.chip, int(target.family, 16))
    return DeclaredLoader(target.command, folder / "build" / "firmware.elf", port, folder)


def _check_chip(target: FlashTarget, chip: FoundChip, pieces: Sequence[Piece], port: str) -> None:
    if chip.chip.lower() != target.chip.lower():
        problem = f"the chip is {chip.name} ({chip.chip}), the bundle is for {target.board} ({target.chip})"
        raise _refused(problem, "identity", port, "Connect the right board, or bundle for this one")
    if chip.protected is not None:
        raise _refused(f"the chip is protected: {chip.protected}", "protection", port, "Take another board")
    if chip.flash_bytes is not None and chip.flash_bytes < target.size_bytes:
        sizes = f"{chip.flash_bytes:,} bytes of flash, {target.board} has {target.size_bytes:,}"
        raise _refused(f"the chip has {sizes}", "size", port, "Connect the right board, or correct the board file")
    if chip.flash_bytes is not None and target.method == "esptool" and pieces[-1].end > chip.flash_bytes:
        problem = f"the firmware ends at {pieces[-1].end:,}, the chip has {chip.flash_bytes:,} bytes of flash"
        raise _refused(problem, "size", port, "Use a board with more flash")


def _refused(problem: str, stage: str, port: str, cure: str) -> FlashError:
    return FlashError(problem, stage=stage, state=FlashState(), where=port, cure=cure)


def _missing(loader: Loader, pieces: Sequence[Piece]) -> list[Piece]:
    present = loader.present(pieces)
    return [piece for piece in pieces if piece not in present]


def _read_back(loader: Loader, pieces: Sequence[Piece], known: FlashState, port: str, step: Step) -> bool | None:
    wrong = loader.different(pieces, known)
    if wrong is None:
        return None
    if not wrong:
        return True
    step.note("it differs: read it twice")
    right = [piece for piece in pieces if piece not in wrong]
    state = FlashState(ranges_of(right), ranges_of(wrong), known.erased)
    problem, cure = difference(loader, wrong[0])
    raise FlashError(problem, stage="verify", state=state, where=port, cure=cure)


def _report(
    target: FlashTarget,
    loader: Loader,
    port: str,
    chip: FoundChip | None,
    pieces: Sequence[Piece],
    missing: Sequence[Piece],
    read_back: bool | None,
    dry_run: bool,
    started: bool,
    proof: VerifyReport | None,
) -> FlashReport:
    image, written = sum(len(piece.data) for piece in pieces), sum(len(piece.data) for piece in missing)
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.address.to_bytes(4, "little") + piece.data)
    return FlashReport(
        board=target.board,
        tool=loader.tool,
        port=port,
        chip=None if chip is None else chip.name,
        unique_id=None if chip is None else chip.unique_id,
        flash_bytes=None if chip is None else chip.flash_bytes,
        image_bytes=image,
        image_sha256=digest.hexdigest(),
        written_bytes=written,
        present_bytes=image - written,
        read_back=read_back,
        dry_run=dry_run,
        started=started,
        verification=proof,
    )
