# SPDX-License-Identifier: Apache-2.0
"""Input tensors back to pictures, to look at them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import InputSpec, OutputSpec
from arenite.labels import Label, dequantise, top
from arenite_converters.report import PictureQuality
from arenite_converters.statistics import sqnr_db

__all__ = ["as_rgb", "worst_pictures"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
_SIDE_PX = 96


def as_rgb(sample: Floats, spec: InputSpec) -> npt.NDArray[np.float64]:
    """The 8-bit values, not rounded, that the contract's normalisation makes a sample of.

    Args:
        sample: In real values.
        spec: An input with a picture.

    Returns:
        H×W×3 in RGB order; of a grey input three equal channels.
    """
    assert spec.picture is not None
    how = spec.picture.normalisation
    rows = sample[0] if spec.layout == "NHWC" else sample[0].transpose(1, 2, 0)
    values = (rows.astype(np.float64) * np.array(how.std) + np.array(how.mean)) / how.scale
    if spec.picture.colour == "GREY":
        return np.repeat(values, 3, axis=2)
    return np.asarray(values[:, :, ::-1] if spec.picture.colour == "BGR" else values)


def worst_pictures(
    names: Sequence[str],
    samples: Sequence[Floats],
    spec: InputSpec,
    outputs: tuple[Sequence[Array], Sequence[Array]],
    specs: tuple[OutputSpec, OutputSpec],
    most: int = 6,
) -> tuple[PictureQuality, ...]:
    """The samples on which two models differ most: other classes first, then by SQNR.

    Args:
        names: Of the samples.
        samples: In real values.
        spec: Their input.
        outputs: Raw outputs of the first and of the second model.
        specs: What these mean.
        most: How many at most.
    """
    rows = []
    for i, (first, second) in enumerate(zip(*outputs, strict=True)):
        real, other = dequantise(first, specs[0]), dequantise(second, specs[1])
        same = int(real.reshape(-1).argmax()) == int(other.reshape(-1).argmax())
        rows.append((same, sqnr_db(real.reshape(-1), other.reshape(-1)), i))
    return tuple(
        PictureQuality(
            names[i],
            quality_db,
            _best(outputs[0][i], specs[0]),
            _best(outputs[1][i], specs[1]),
            _thumbnail(samples[i], spec),
        )
        for _, quality_db, i in sorted(rows)[:most]
    )


def _best(output: Array, spec: OutputSpec) -> Label:
    """The highest class; of boxes the highest number, which is no class."""
    return top(output, replace(spec, meaning="values", labels=()) if spec.meaning == "boxes" else spec, 1)[0]


def _thumbnail(sample: Floats, spec: InputSpec) -> str:
    if spec.picture is None:
        return ""
    from PIL import Image

    pixels = np.clip(np.rint(as_rgb(sample, spec)), 0, 255).astype(np.uint8)
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((_SIDE_PX, _SIDE_PX))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85, subsampling=0)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
