# SPDX-License-Identifier: Apache-2.0
"""Proves a built bundle: runs its golden vectors over the serial port and compares every output byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arenite._manifest import read_manifest
from arenite.device.client import Device, Identity, RunResult, open_device
from arenite.device.emulators import EMULATORS, EmulatedBoard, start_emulator
from arenite.device.host_runner import HostBoard
from arenite.device.target import read_target
from arenite.errors import LinkError, UsageError
from arenite.progress import Progress, silent

__all__ = ["FirstDifference", "VerifyReport", "verify"]

_RUN_S = 900.0


@dataclass(frozen=True)
class FirstDifference:
    """The first output byte that is not as the authority has it, as unsigned bytes."""

    vector: int
    output: int
    index: int
    expected: int
    got: int


@dataclass(frozen=True)
class VerifyReport:
    """What came of a verification.

    Attributes:
        identical: Every output byte of every vector is as expected.
        vectors: Vectors that were compared.
        instructions: Instructions of the first vector's inference; None where they cannot be counted.
        counter: The board's own counter for the same inference, in `counter_unit`; None where it has none.
        stack_peak_bytes: Deepest stack that was measured by painting; None where the board cannot tell.
        emulator: Emulator and version; None on a real board.
        authority: What the expected outputs come from.
    """

    identical: bool
    vectors: int
    instructions: int | None
    first_difference: FirstDifference | None
    emulator: str | None
    authority: str
    board: str
    arena_bytes: int
    counter: int | None
    counter_unit: str
    stack_peak_bytes: int | None


def verify(bundle_dir: Path, on: str = "emulator", progress: Progress | None = None) -> VerifyReport:
    """Runs a built bundle's golden vectors and compares every output byte.

    Args:
        bundle_dir: A built bundle.
        on: `emulator` (the fastest that is installed), `unicorn`, `qemu`, or the pyserial URL of a board.
            A bundle for the board `host` runs in this process.
        progress: Told of each vector.

    Raises:
        UsageError: The folder is no bundle, was not built, or its vectors are damaged.
        MissingToolError: The emulator or pyserial is not installed.
        LinkError: The board does not answer, or holds another model.
    """
    bundle_dir = Path(bundle_dir)
    manifest = read_manifest(bundle_dir)
    _check_vectors(manifest, bundle_dir)
    with _connect(bundle_dir, on) as (device, board):
        identity = device.identity
        _check_identity(identity, manifest, device)
        vectors = _read_vectors(bundle_dir, manifest, identity)
        results: list[RunResult] = []
        first = None
        with (progress or silent()).step(f"verify on {board.name if board else on}", len(vectors)) as step:
            for number, (inputs, expected) in enumerate(vectors):
                results.append(_run(device, inputs))
                first = first or _compare(device, number, expected)
                step.advance()
    return _report(identity, manifest, board, results, first)


def _report(
    identity: Identity,
    manifest: dict[str, Any],
    board: EmulatedBoard | None,
    results: list[RunResult],
    first: FirstDifference | None,
) -> VerifyReport:
    run = results[0]
    counts = identity.counter_unit == "instructions"
    return VerifyReport(
        identical=first is None,
        vectors=len(results),
        instructions=board.instructions(run) if board else (run.counter if counts else None),
        first_difference=first,
        emulator=board.name if board and board.name != "host" else None,
        authority=str(manifest["vectors"].get("authority", "unknown")),
        board=identity.board,
        arena_bytes=identity.arena_bytes,
        counter=run.counter if identity.counter_unit != "none" else None,
        counter_unit=identity.counter_unit,
        stack_peak_bytes=max(result.stack_peak_bytes for result in results) or None,
    )


@contextmanager
def _connect(bundle_dir: Path, on: str) -> Iterator[tuple[Device, EmulatedBoard | None]]:
    if on != "emulator" and on not in EMULATORS:
        with open_device(on) as device:
            yield device, None
        return
    target = read_target(bundle_dir)
    if target.architecture == "host":
        board: EmulatedBoard = HostBoard(target)
    else:
        board = start_emulator(bundle_dir, None if on == "emulator" else on)
    with closing(board), open_device(board.stream, timeout_s=30.0) as device:
        yield device, board


def _run(device: Device, inputs: list[bytes]) -> RunResult:
    for index, data in enumerate(inputs):
        device.load(index, data)
    return device.run(timeout_s=_RUN_S)


def _compare(device: Device, vector: int, expected: list[bytes]) -> FirstDifference | None:
    for output, want in enumerate(expected):
        got = device.read_output(output)
        for index, (a, b) in enumerate(zip(want, got, strict=True)):
            if a != b:
                return FirstDifference(vector, output, index, a, b)
    return None


def _check_vectors(manifest: dict[str, Any], bundle_dir: Path) -> None:
    if manifest["vectors"]["count"] < 1:
        cure = "Bundle the model again with the package tflite-micro installed: it makes the vectors"
        raise UsageError("the bundle has no golden vectors to compare with", where=str(bundle_dir), cure=cure)


def _check_identity(identity: Identity, manifest: dict[str, Any], device: Device) -> None:
    want = manifest.get("model_sha256")
    if identity.model_sha256 != want:
        ids = f"{identity.model_sha256[:16]}…, this bundle has {str(want)[:16]}…"
        problem = f"the board runs another model: {ids}"
        raise LinkError(problem, where=device.name, cure="Build and flash this bundle, or give the right one")


def _read_vectors(
    bundle_dir: Path, manifest: dict[str, Any], identity: Identity
) -> list[tuple[list[bytes], list[bytes]]]:
    folder = bundle_dir / "vectors"
    input_sizes = [tensor.bytes for tensor in identity.inputs]
    output_sizes = [tensor.bytes for tensor in identity.outputs]
    return [
        (
            _split(folder / f"input_{i:03}.bin", input_sizes),
            _split(folder / f"output_{i:03}.bin", output_sizes),
        )
        for i in range(manifest["vectors"]["count"])
    ]


def _split(path: Path, sizes: list[int]) -> list[bytes]:
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = f"a golden vector cannot be read ({error.strerror})"
        raise UsageError(problem, where=str(path), cure="Bundle the model again") from error
    if len(data) != sum(sizes):
        problem = f"the golden vector has {len(data)} bytes, the model's tensors {sum(sizes)}"
        raise UsageError(problem, where=str(path), cure="Bundle the model again")
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return parts
