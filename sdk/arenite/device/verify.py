# SPDX-License-Identifier: Apache-2.0
"""Proves a built bundle: runs its golden vectors over the serial port and compares every output byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arenite._manifest import read_manifest
from arenite.device.client import Device, Identity, RunResult, open_device
from arenite.device.emulators import EMULATORS, EmulatedBoard, start_emulator
from arenite.device.host_runner import HostBoard
from arenite.device.target import read_target
from arenite.errors import LinkError, MemoryDamageError, UsageError
from arenite.progress import Progress, silent

__all__ = ["FirstDifference", "ModelProof", "VerifyReport", "verify"]

_RUN_S = 900.0
_FLASH = "Build and flash this bundle, or give the right one"


@dataclass(frozen=True)
class FirstDifference:
    """The first output byte of a model that is not as the authority has it, as unsigned bytes.

    Attributes:
        model: Place of the model in the bundle.
    """

    model: int
    vector: int
    output: int
    index: int
    expected: int
    got: int


@dataclass(frozen=True)
class ModelProof:
    """What came of one model. `instructions`, `counter` and `stack_peak_bytes` as in `VerifyReport`."""

    name: str
    symbol: str
    identical: bool
    vectors: int
    authority: str
    first_difference: FirstDifference | None
    instructions: int | None
    counter: int | None
    stack_peak_bytes: int | None


@dataclass(frozen=True)
class VerifyReport:
    """What came of a verification.

    Attributes:
        identical: Every output byte of every vector of every model is as expected.
        vectors: Vectors that were compared, of all models.
        instructions: Instructions of one inference, that of the first vector, of each model; None where they cannot be
            counted.
        first_difference: Of the first model that has one.
        emulator: Emulator and version; None on a real board.
        authority: What the expected outputs come from.
        arena_bytes: The arena that all models share.
        counter: The board's own counter for the same inferences, in `counter_unit`; None where it has none.
        stack_peak_bytes: Deepest stack that was measured by painting; None where the board cannot tell.
        models: Each model by itself.
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
    models: tuple[ModelProof, ...]


def verify(bundle_dir: Path, on: str = "emulator", progress: Progress | None = None) -> VerifyReport:
    """Runs the golden vectors of a built bundle, model after model, and compares every output byte.

    Args:
        bundle_dir: A built bundle.
        on: `emulator` (the fastest that is installed), `unicorn`, `qemu`, or the pyserial URL of a board.
            A bundle for the board `host` runs in this process.
        progress: Told of each vector.

    Raises:
        UsageError: The folder is no bundle, was not built, or its vectors are damaged.
        MissingToolError: The emulator or pyserial is not installed.
        LinkError: The board does not answer, or holds another model.
        MemoryDamageError: The bundle is a validation build, and a kernel wrote past the end of a block of the arena.
    """
    bundle_dir = Path(bundle_dir)
    manifest = read_manifest(bundle_dir)
    _check_application(manifest, bundle_dir)
    _check_vectors(manifest, bundle_dir)
    with _connect(bundle_dir, on) as (device, board):
        _check_count(device, manifest)
        total = sum(model["vectors"]["count"] for model in manifest["models"])
        with (progress or silent()).step(f"verify on {board.name if board else on}", total) as step:
            proofs = [
                _prove(bundle_dir, manifest["models"], index, device, board, step.advance)
                for index in range(len(manifest["models"]))
            ]
        return _report(device.identity, board, proofs)


def _prove(
    bundle_dir: Path,
    models: list[dict[str, Any]],
    index: int,
    device: Device,
    board: EmulatedBoard | None,
    advance: Callable[[], None],
) -> ModelProof:
    """Selects a model and runs its vectors."""
    model = models[index]
    identity = device.select(index)
    _check_identity(identity, model, device)
    results: list[RunResult] = []
    first = None
    for number, (inputs, expected) in enumerate(_read_vectors(bundle_dir, model, identity)):
        try:
            results.append(_run(device, inputs))
        except MemoryDamageError as damage:
            raise _named(damage, model, number) from damage
        first = first or _compare(device, index, number, expected)
        advance()
    run = results[0]
    counts = identity.counter_unit == "instructions"
    return ModelProof(
        name=model["name"],
        symbol=model["symbol"],
        identical=first is None,
        vectors=len(results),
        authority=str(model["vectors"].get("authority", "unknown")),
        first_difference=first,
        instructions=board.instructions(run) if board else (run.counter if counts else None),
        counter=run.counter if identity.counter_unit != "none" else None,
        stack_peak_bytes=max(result.stack_peak_bytes for result in results) or None,
    )


def _report(identity: Identity, board: EmulatedBoard | None, proofs: list[ModelProof]) -> VerifyReport:
    stacks = [proof.stack_peak_bytes for proof in proofs if proof.stack_peak_bytes is not None]
    return VerifyReport(
        identical=all(proof.identical for proof in proofs),
        vectors=sum(proof.vectors for proof in proofs),
        instructions=_sum([proof.instructions for proof in proofs]),
        first_difference=next((proof.first_difference for proof in proofs if not proof.identical), None),
        emulator=board.name if board and board.name != "host" else None,
        authority=proofs[0].authority,
        board=identity.board,
        arena_bytes=identity.arena_bytes,
        counter=_sum([proof.counter for proof in proofs]),
        counter_unit=identity.counter_unit,
        stack_peak_bytes=max(stacks, default=None),
        models=tuple(proofs),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


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


def _named(damage: MemoryDamageError, model: dict[str, Any], vector: int) -> MemoryDamageError:
    """The same damage in the model's own words."""
    try:
        layer, block = model["guards"]["layers"][damage.layer], model["guards"]["blocks"][damage.guard]
        culprit = f"operator {layer['operator']} {layer['kind']}, which makes {layer['output']},"
    except (KeyError, IndexError, TypeError):
        return damage
    return MemoryDamageError(
        f"{culprit} wrote past the end of {block} in step {damage.step} of vector {vector}",
        guard=damage.guard,
        layer=damage.layer,
        step=damage.step,
        where=model["name"],
        cure="If the bundle was not edited by hand, this is a fault of Arenite: report it with the model",
    )


def _compare(device: Device, model: int, vector: int, expected: list[bytes]) -> FirstDifference | None:
    for output, want in enumerate(expected):
        got = device.read_output(output)
        for index, (a, b) in enumerate(zip(want, got, strict=True)):
            if a != b:
                return FirstDifference(model, vector, output, index, a, b)
    return None


def _check_application(manifest: dict[str, Any], bundle_dir: Path) -> None:
    if manifest.get("benchmark"):
        cure = "Bundle it again without --app to verify it: kernels, schedule and weights are the same"
        problem = "this firmware speaks the protocol of MLPerf Tiny and not the serial link"
        raise UsageError(problem, where=str(bundle_dir), cure=cure)


def _check_vectors(manifest: dict[str, Any], bundle_dir: Path) -> None:
    for model in manifest["models"]:
        if model["vectors"]["count"] < 1:
            cure = "Bundle the model again with the package tflite-micro installed: it makes the vectors"
            problem = f"the bundle has no golden vectors to compare {model['name']} with"
            raise UsageError(problem, where=str(bundle_dir), cure=cure)


def _check_count(device: Device, manifest: dict[str, Any]) -> None:
    found, wanted = device.identity.models, len(manifest["models"])
    if found != wanted:
        problem = f"the board runs other firmware: it holds {found} models, this bundle {wanted}"
        raise LinkError(problem, where=device.name, cure=_FLASH)


def _check_identity(identity: Identity, model: dict[str, Any], device: Device) -> None:
    if identity.model_sha256 != model["sha256"]:
        ids = f"{identity.model_sha256[:16]}…, this bundle has {model['sha256'][:16]}…"
        raise LinkError(f"the board runs another model: {ids}", where=device.name, cure=_FLASH)


def _read_vectors(bundle_dir: Path, model: dict[str, Any], identity: Identity) -> list[tuple[list[bytes], list[bytes]]]:
    folder = bundle_dir / model["vectors"]["folder"]
    input_sizes = [tensor.bytes for tensor in identity.inputs]
    output_sizes = [tensor.bytes for tensor in identity.outputs]
    return [
        (
            _split(folder / f"input_{i:03}.bin", input_sizes),
            _split(folder / f"output_{i:03}.bin", output_sizes),
        )
        for i in range(model["vectors"]["count"])
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
