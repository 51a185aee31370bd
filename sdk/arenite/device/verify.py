# SPDX-License-Identifier: Apache-2.0
"""Proves a built bundle: runs its golden vectors over the serial port and compares every output byte.

On a difference it names the first layer that is not as the reference kernels have it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arenite._manifest import read_manifest
from arenite._ulps import MOST_ULPS, ulps_apart
from arenite.device.client import Device, Identity, RunResult, open_device
from arenite.device.emulators import EMULATORS, EmulatedBoard, start_emulator
from arenite.device.first_layer import LayerDifference, ReferenceModel, first_wrong_layer
from arenite.device.host_runner import HostBoard
from arenite.device.target import read_target
from arenite.device.tracing import run_once
from arenite.errors import LinkError, MemoryDamageError, MissingToolError, UsageError
from arenite.progress import Progress, silent

__all__ = ["FirstDifference", "ModelProof", "VerifyReport", "check_board", "connect", "verify"]

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
    random_vectors: int = 0
    layers_checked: int = 0
    first_layer: LayerDifference | None = None
    float_ulps: int | None = None


@dataclass(frozen=True)
class VerifyReport:
    """What came of a verification.

    Attributes:
        same_build: The board runs the very firmware of the bundle's build folder; None where that does not say which.
        identical: Every output byte of every vector of every model is as expected, floats but for their last bits
            (`float_ulps`), and for the first vector the rows of every layer that was compared.
        vectors: Vectors that were compared, of all models, `random_vectors` among them.
        layers_checked: Layers whose rows were compared, of all models; 0 where the reference kernels are not installed
            or the bundle is of an older version.
        first_layer: Of the first model that has one, the first layer that differs, for the vector of `first_difference`
            or, where all outputs are right, for the first.
        float_ulps: By how many units in the last place float outputs differ at most, where there are such outputs; up
            to 32 count as identical, since the reference takes exponentials from its platform's library.
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
    random_vectors: int = 0
    layers_checked: int = 0
    first_layer: LayerDifference | None = None
    same_build: bool | None = None
    float_ulps: int | None = None


@dataclass
class _Limits:
    """What is asked for beside the golden vectors, and how long it all may take."""

    random: int
    seed: int
    deadline: float

    def left_s(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            cure = "Give a longer --timeout if the board is only slow; else look at its reset cause and heartbeat"
            raise LinkError("the verification did not end in time", cure=cure)
        return left


def verify(
    bundle_dir: Path,
    on: str = "emulator",
    progress: Progress | None = None,
    *,
    random: int = 0,
    seed: int = 0,
    timeout_s: float = 3600.0,
    baud: int | None = None,
) -> VerifyReport:
    """Runs the golden vectors of a built bundle, model after model, and compares every output byte.

    The bundle's own vectors are the contract's and random ones; `random` adds others, whose outputs the reference
    kernels give now.

    Args:
        bundle_dir: A built bundle.
        on: `emulator` (the fastest that is installed), `unicorn`, `qemu`, or the pyserial URL of a board.
            A bundle for the board `host` runs in this process.
        progress: Told of each vector.
        random: Random vectors of each model, beside the bundle's.
        seed: Of these.
        timeout_s: For everything: a board that hangs is named then.
        baud: Rate of a real port; None takes the board's.

    Raises:
        UsageError: The folder is no bundle, was not built, or its vectors are damaged.
        MissingToolError: The emulator, pyserial or, for random vectors, a package of reference kernels is missing.
        LinkError: The board does not answer, or holds another model.
        MemoryDamageError: The bundle is a validation build, and a kernel wrote past the end of a block of the arena.
    """
    bundle_dir = Path(bundle_dir)
    manifest = read_manifest(bundle_dir)
    _check_application(manifest, bundle_dir)
    _check_vectors(manifest, bundle_dir, random)
    limits = _Limits(random, seed, time.monotonic() + timeout_s)
    with connect(bundle_dir, on, baud) as (device, board):
        check_board(device, manifest)
        total = sum(model["vectors"]["count"] + random for model in manifest["models"])
        with (progress or silent()).step(f"verify on {board.name if board else on}", total) as step:
            proofs = [
                _prove(bundle_dir, manifest["models"], index, device, board, limits, step.advance)
                for index in range(len(manifest["models"]))
            ]
        built = read_target(bundle_dir).build_id
        return _report(device.identity, board, proofs, device.about().build_id == built if built else None)


def _prove(
    bundle_dir: Path,
    models: list[dict[str, Any]],
    index: int,
    device: Device,
    board: EmulatedBoard | None,
    limits: _Limits,
    advance: Callable[[], None],
) -> ModelProof:
    """Selects a model and runs its vectors."""
    model = models[index]
    identity = device.select(index)
    _check_identity(identity, model, device)
    results: list[RunResult] = []
    first, layer, checked, ulps = None, None, 0, None
    types = [str(output.get("dtype")) for output in model["outputs"]]
    golden = _read_vectors(bundle_dir, model, identity)
    vectors = [*golden, *_random_vectors(bundle_dir, model, limits, golden)]
    remembers = _remembers(model)
    for number, (inputs, expected) in enumerate(vectors):
        try:
            results.append(run_once(device, inputs, limits.left_s()))
        except MemoryDamageError as damage:
            raise _named(damage, model, number) from damage
        if first is None:
            first, apart = _compare(device, index, number, expected, types)
            ulps = apart if ulps is None or apart is None else max(ulps, apart)
            # What is wrong inside need not reach an output: of the first vector every layer is compared.
            # One that remembers is compared at its start, and then brought back to where it was.
            if layer is None and (number == 0 or (first is not None and not remembers)):
                checked, layer = _check_layers(bundle_dir, model, device, inputs, limits)
                if remembers:
                    device.select(index)
                    run_once(device, inputs, limits.left_s())
        advance()
    run = results[0]
    counts = identity.counter_unit == "instructions"
    return ModelProof(
        name=model["name"],
        symbol=model["symbol"],
        identical=first is None and layer is None,
        vectors=len(results),
        authority=str(model["vectors"].get("authority", "unknown")),
        first_difference=first,
        instructions=board.instructions(run) if board else (run.counter if counts else None),
        counter=run.counter if identity.counter_unit != "none" else None,
        stack_peak_bytes=max(result.stack_peak_bytes for result in results) or None,
        random_vectors=limits.random,
        layers_checked=checked,
        first_layer=layer,
        float_ulps=ulps,
    )


def _check_layers(
    bundle_dir: Path, model: dict[str, Any], device: Device, inputs: list[bytes], limits: _Limits
) -> tuple[int, LayerDifference | None]:
    """How many layers were compared, and the first that is wrong."""
    reference = ReferenceModel(bundle_dir, model) if "layers" in model else None
    if reference is None or not reference.can_compare_layers:
        return 0, None
    wrong = first_wrong_layer(device, reference, model["layers"], inputs, limits.left_s())
    return sum(layer["tensor"] is not None for layer in model["layers"]), wrong


def _remembers(model: dict[str, Any]) -> bool:
    """Whether its runs depend on those before."""
    return any(region["holds"] == "state" for region in model.get("regions", ()))


def _random_vectors(
    bundle_dir: Path, model: dict[str, Any], limits: _Limits, golden: list[tuple[list[bytes], list[bytes]]]
) -> list[tuple[list[bytes], list[bytes]]]:
    if limits.random < 1:
        return []
    reference = ReferenceModel(bundle_dir, model)
    generator = np.random.default_rng(limits.seed)
    inputs = [reference.random_inputs(generator) for _ in range(limits.random)]
    before = [data for data, _ in golden] if _remembers(model) else []
    found = reference.outputs([*before, *inputs])[len(before) :]
    return [(data, outputs) for data, outputs in zip(inputs, found, strict=True)]


def _report(
    identity: Identity, board: EmulatedBoard | None, proofs: list[ModelProof], same_build: bool | None
) -> VerifyReport:
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
        random_vectors=sum(proof.random_vectors for proof in proofs),
        layers_checked=sum(proof.layers_checked for proof in proofs),
        first_layer=next((proof.first_layer for proof in proofs if not proof.identical), None),
        same_build=same_build,
        float_ulps=max((proof.float_ulps for proof in proofs if proof.float_ulps is not None), default=None),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


@contextmanager
def connect(bundle_dir: Path, on: str, baud: int | None = None) -> Iterator[tuple[Device, EmulatedBoard | None]]:
    """The board of a built bundle, running: an emulator, or, with None for it, the board at a port."""
    target = read_target(bundle_dir)
    if on != "emulator" and on not in EMULATORS:
        with open_device(on, baud=baud or int(target.uart["baud"])) as device:
            yield device, None
        return
    if target.architecture == "host":
        board: EmulatedBoard = HostBoard(target)
    else:
        board = start_emulator(bundle_dir, None if on == "emulator" else on)
    with closing(board), open_device(board.stream, timeout_s=30.0) as device:
        yield device, board


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


def _compare(
    device: Device, model: int, vector: int, expected: list[bytes], types: list[str]
) -> tuple[FirstDifference | None, int | None]:
    """The first byte that differs, and how far floats are apart at most; those that are near count as equal."""
    most: int | None = None
    for output, (want, dtype) in enumerate(zip(expected, types, strict=True)):
        got = device.read_output(output)
        if dtype == "float32" and len(want) == len(got):
            apart = int(ulps_apart(*(np.frombuffer(data, np.float32) for data in (want, got))).max(initial=0))
            most = max(most or 0, apart)
            if apart <= MOST_ULPS:
                continue
        for index, (a, b) in enumerate(zip(want, got, strict=True)):
            if a != b:
                return FirstDifference(model, vector, output, index, a, b), most
    return None, most


def _check_application(manifest: dict[str, Any], bundle_dir: Path) -> None:
    if manifest.get("benchmark"):
        cure = "Bundle it again without --app to verify it: kernels, schedule and weights are the same"
        problem = "this firmware speaks the protocol of MLPerf Tiny and not the serial link"
        raise UsageError(problem, where=str(bundle_dir), cure=cure)


def _check_vectors(manifest: dict[str, Any], bundle_dir: Path, random: int) -> None:
    """There is something to compare each model with: the bundle's vectors, or an authority on random ones."""
    for model in manifest["models"]:
        why = ReferenceModel(bundle_dir, model).why_no_outputs if random or not model["vectors"]["count"] else ""
        if random and why:
            raise MissingToolError(f"random vectors need the reference kernels of {model['name']}", cure=why)
        if not random and model["vectors"]["count"] < 1:
            problem = f"the bundle has no golden vectors to compare {model['name']} with"
            again = "Bundle the model again: its reference kernels are installed now, which make the vectors"
            raise UsageError(problem, where=str(bundle_dir), cure=f"{why}, and bundle it again" if why else again)


def check_board(device: Device, manifest: dict[str, Any]) -> None:
    """Whether a board holds as many models as a bundle.

    Raises:
        LinkError: It does not.
    """
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
