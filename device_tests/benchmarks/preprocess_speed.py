# SPDX-License-Identifier: Apache-2.0
"""A 1080p JPEG to the input tensor: both modes against the script that is usually written.

    python device_tests/benchmarks/preprocess_speed.py [PICTURE...]   JSON on standard output; exit 1 above the limit

Without pictures: the photograph of the reference data, and a synthetic picture with twice as many bits a pixel. Huffman
decoding, which no fraction of the size avoids, takes longer the more bits there are. The limit is for both, and for the
mode `fast` as a session has it: with the compiled resize where there is GCC or Clang. Pillow's own is measured, too.

The script decodes all of the picture with Pillow, resizes with BILINEAR, normalises and quantises with NumPy. All run
in this process in turn, on one thread, so that a busy machine hits all; compared are the least times.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from arenite.contract import InputSpec, Picture, Quantised, normalisation_for
from arenite.machine import machine
from arenite.preprocess import Preprocessor
from arenite.serving_skew import fast_skew, synthetic_picture

PHOTOGRAPH = Path(__file__).resolve().parents[3] / "shared" / "data" / "pictures" / "cat_1080p.jpg"
LIMIT = 0.35
ROUNDS = 30
SIDE = 224
QUANTISED = Quantised(float(np.float32(1 / 127.5)), -1)


def spec(normalisation: str) -> InputSpec:
    """MobileNetV2's input, int8."""
    how = Picture("RGB", "exif", "none", 1.0, "bilinear", normalisation_for(normalisation, "RGB"))
    return InputSpec("input", (1, SIDE, SIDE, 3), "NHWC", "int8", QUANTISED, how)


def usual_script(path: Path, normalisation: str) -> np.ndarray[Any, Any]:
    """Full decode, resize, normalise, quantise."""
    how = normalisation_for(normalisation, "RGB")
    picture = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    real = (np.asarray(picture, np.float32) * np.float32(how.scale) - np.array(how.mean, np.float32)) / np.array(
        how.std, np.float32
    )
    steps = np.round(real / np.float32(QUANTISED.scale)) + QUANTISED.zero_point
    return np.clip(steps, -128, 127).astype(np.int8)[None]


def least_ms(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least time of each call over rounds in which each runs once."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], 1e3 * (time.perf_counter() - start))
    return found


def measure(path: Path, normalisation: str) -> dict[str, Any]:
    """Times, ratios to the script, and how far each is from it or from the exact mode."""
    out = np.empty((1, SIDE, SIDE, 3), np.int8)
    calls: dict[str, Callable[[], Any]] = {"script": lambda: usual_script(path, normalisation)}
    resized_by = ""
    for mode in ("exact", "fast"):
        by_pillow, compiled = (Preprocessor(spec(normalisation), mode) for _ in range(2))
        compiled.compile_resize()
        resized_by = compiled.resized_by
        calls[mode] = lambda use=compiled: use(path, out)
        calls[f"{mode}_by_pillow"] = lambda use=by_pillow: use(path, out)
    times = least_ms(calls)
    return {
        "normalisation": normalisation,
        "resized_by": resized_by,
        "least_ms": times,
        "to_script": {name: least / times["script"] for name, least in times.items()},
        "skew_fast_to_exact": asdict(fast_skew(spec(normalisation), path).tensor),
    }


def of_picture(path: Path) -> dict[str, Any]:
    """Both normalisations of a picture, against the limit."""
    width, height = Image.open(path).size
    rows = [measure(path, name) for name in ("symmetric", "imagenet")]
    return {
        "picture": path.name,
        "extents": f"{width}×{height}",
        "bits_per_pixel": 8 * path.stat().st_size / (width * height),
        "runs": rows,
        "limit": LIMIT,
        "within": all(row["to_script"]["fast"] <= LIMIT for row in rows),
    }


def main() -> int:
    """Prints the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="*", type=Path, help="JPEG files")
    given = parser.parse_args().pictures
    found = [of_picture(path) for path in given or [PHOTOGRAPH] if path.exists()]
    if not given:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "synthetic.jpg"
            path.write_bytes(synthetic_picture())
            found.append(of_picture(path))
    print(json.dumps({"machine": asdict(machine()), "pictures": found}, indent=1))
    return 0 if all(picture["within"] for picture in found) else 1


if __name__ == "__main__":
    sys.exit(main())
