# SPDX-License-Identifier: Apache-2.0
"""Random crops of the photographs of the shared data: different pictures to calibrate with and to compare on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

__all__ = ["photographs", "random_crops"]


def photographs(shared_data: Path) -> list[Path]:
    """The files in a fixed order; every other one is a fair half."""
    return sorted(path for path in (shared_data / "pictures").iterdir() if path.suffix in (".bmp", ".jpg"))


def random_crops(
    files: Sequence[Path], count: int, size: int, seed: int, least_side: float = 0.4
) -> npt.NDArray[np.uint8]:
    """Random squares of the photographs in turn, uint8 [count, size, size, 3].

    Args:
        files: Photographs.
        count: Of crops.
        size: Their side in pixels, after a bilinear resize.
        seed: The same one gives the same crops.
        least_side: The smallest side of a square as a share of the picture's shorter side; the largest is all of it.
    """
    generator = np.random.default_rng(seed)
    pictures = [Image.open(path).convert("RGB") for path in files]
    found: list[Any] = []
    for index in range(count):
        picture = pictures[index % len(pictures)]
        side = int(min(picture.size) * generator.uniform(least_side, 1))
        left, top = (int(generator.integers(0, extent - side + 1)) for extent in picture.size)
        square = picture.crop((left, top, left + side, top + side))
        found.append(np.asarray(square.resize((size, size), Image.Resampling.BILINEAR)))
    return np.stack(found)
