# SPDX-License-Identifier: Apache-2.0
"""From a model's contract and a camera's frame to the tables of the C that makes the model's input of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from arenite.contract import InputSpec, Quantised
from arenite.errors import AreniteError, ContractError, UsageError
from arenite.frames import FRAME_FORMATS, MATRICES, Frame, ycc_matrix
from arenite.preprocess import Preprocessor
from arenite.resize import Axis, axis_of, takes_rows_first
from arenite_codegen.network import IoTensor

__all__ = ["Camera", "MOST_PIXELS", "Preprocessing", "camera_entry", "make_preprocessing"]

# Of a side of a frame: what a frame of this size needs is still found in seconds.
MOST_PIXELS = 8192
_SPECIFICATION = re.compile(r"(\d{1,9})x(\d{1,9}):(\w+)((?::\w+)*)")
_EXAMPLE = "320x240:RGB565, or 640x480:YUYV:bt709:full"
_AXIS_BYTES = 4


@dataclass(frozen=True)
class Camera:
    """What frames a camera delivers.

    Attributes:
        width, height: Pixels.
        format: A key of `arenite.frames.FRAME_FORMATS`: its name is the order in memory.
        matrix, full_range: Of Y'CbCr formats, as for `arenite.Frame`.
    """

    width: int
    height: int
    format: str
    matrix: str = "bt601"
    full_range: bool = False

    def __post_init__(self) -> None:
        sides = [side for side in (self.width, self.height) if isinstance(side, int)]
        if max(sides, default=0) > MOST_PIXELS:
            raise UsageError(
                f"a camera frame of {self.width}×{self.height}", cure=f"A side has at most {MOST_PIXELS:,} pixels."
            )
        enough = 4 * max(1, *sides) ** 2 if len(sides) == 2 else 0
        # Frame checks name, extents and matrix; the memory behind these zeros is never touched.
        Frame(np.zeros(enough, np.uint8), self.width, self.height, self.format, matrix=self.matrix)

    @classmethod
    def parse(cls, text: str) -> Camera:
        """Read `WIDTHxHEIGHT:FORMAT`, for Y'CbCr with `:bt601` or `:bt709` and `:full` or `:limited` behind it.

        Raises:
            UsageError: It is none.
        """
        found = _SPECIFICATION.fullmatch(text)
        words = found[4].lower().split(":")[1:] if found else []
        matrices = [word for word in words if word in MATRICES]
        ranges = [word for word in words if word in ("full", "limited")]
        if found is None or len(matrices) > 1 or len(ranges) > 1 or len(words) > len(matrices) + len(ranges):
            raise UsageError(f"{text!r} describes no camera frame", cure=f"Write it as {_EXAMPLE}.")
        matrix = matrices[0] if matrices else "bt601"
        return cls(int(found[1]), int(found[2]), found[3].upper(), matrix, "full" in ranges)

    def __str__(self) -> str:
        chroma = f":{self.matrix}:{'full' if self.full_range else 'limited'}" if self.is_ycc else ""
        return f"{self.width}x{self.height}:{self.format}{chroma}"

    @property
    def is_ycc(self) -> bool:
        """Brightness and colour differences."""
        return FRAME_FORMATS[self.format].chroma != (1, 1)

    @property
    def channels(self) -> int:
        """1 of grey, else 3."""
        return 1 if self.format == "GREY" else 3


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """What the generated C makes a model's input of a frame with.

    Attributes:
        camera: The frame.
        columns, rows: Their resize.
        rows_first: Rows are resized before columns.
        channels: That are resized: 1 or 3.
        source: For each channel of the input the resized one.
        tables: uint8 [channels of the input, 256]: the input's byte for an 8-bit value; one row where all are the same.
        planar: The input's channels lie behind each other.
    """

    camera: Camera
    columns: Axis
    rows: Axis
    rows_first: bool
    channels: int
    source: tuple[int, ...]
    tables: Any
    planar: bool

    @property
    def ring_bytes(self) -> int:
        """Rows between the two axes of the resize."""
        width = self.columns.span if self.rows_first else len(self.columns.weights)
        return self.rows.ring * width * self.channels

    @property
    def memory_bytes(self) -> int:
        """RAM while a frame comes in: a line of it, a row of the input, the ring."""
        line = self.columns.span * self.camera.channels
        return line + len(self.columns.weights) * self.channels + self.ring_bytes

    @property
    def table_bytes(self) -> int:
        """Flash of the tables."""
        weights = sum(len(axis.flat_weights) + len(axis.taps) for axis in (self.columns, self.rows))
        return _AXIS_BYTES * weights + int(self.tables.size)

    @property
    def kernel(self) -> str:
        """C file, without suffix, that reads the camera's pixels."""
        if self.camera.is_ycc:
            return "arenite_pixels_ycc"
        return "arenite_pixels_565" if "565" in self.camera.format else "arenite_pixels_bytes"

    def context(self) -> dict[str, Any]:
        """Values for the templates."""
        height, width = len(self.rows.weights), len(self.columns.weights)
        pixel, channel = (1, width * height) if self.planar else (len(self.source), 1)
        return {
            "camera": self.camera,
            "preprocessing": self,
            "pixels": self._pixels(),
            "matrix": ycc_matrix(self.camera.matrix, self.camera.full_range) if self.camera.is_ycc else (),
            "left": self.columns.first[0],
            "row_taps": [(first + self.rows.first[0], count) for first, count in self.rows.taps],
            "out_width": width,
            "out_height": height,
            "pixel_step": pixel,
            "channel_step": channel,
            "row_step": width * pixel,
        }

    def _pixels(self) -> dict[str, Any]:
        """Fields of `arenite_pixels_t`."""
        layout = FRAME_FORMATS[self.camera.format]
        planes = 2 if layout.chroma == (2, 2) else 1
        places = layout.order if planes == 1 else (0, *layout.order)
        if not self.camera.is_ycc:
            high_byte = 0 if self.camera.format.endswith("BE") else 1
            places = (high_byte,) if "565" in self.camera.format else _places(layout.raw)
        return {
            "channels": self.camera.channels,
            "step": layout.pixel_bytes,
            "pair_step": (2 if planes == 2 else 4) if self.camera.is_ycc else 0,
            "planes": planes,
            "at": (*places, 0, 0)[:3],
        }


def _places(raw: str) -> tuple[int, ...]:
    return tuple(raw.index(colour) for colour in "RGB") if raw else (0,)


def make_preprocessing(spec: InputSpec, io: IoTensor, camera: Camera, where: str) -> Preprocessing:
    """The tables for one model and one camera.

    Args:
        spec: The model's input by its contract.
        io: The same as the C has it: a QUANTIZE at the boundary may have gone.
        where: The model's file, for messages.

    Raises:
        ContractError: The contract says nothing of pictures, or its input is a batch.
    """
    spec = replace(spec, dtype=io.dtype, quantised=Quantised(io.scale, io.zero_point))
    try:
        preprocessor = Preprocessor(spec)
    except AreniteError as error:
        raise ContractError(error.what, where=where, cure="Leave out --camera.") from error
    assert spec.picture is not None
    size = (camera.width, camera.height)
    left, top, right, bottom = preprocessor.box(size)
    axes = (
        axis_of(size[0], preprocessor.size[0], left, right, spec.picture.filter),
        axis_of(size[1], preprocessor.size[1], top, bottom, spec.picture.filter),
    )
    grey = spec.picture.colour == "GREY"
    tables = preprocessor.table.view(np.uint8)
    return Preprocessing(
        camera=camera,
        columns=axes[0],
        rows=axes[1],
        rows_first=takes_rows_first(preprocessor.fit, size, "L" if grey else "RGB", axes),
        channels=1 if grey or camera.channels == 1 else 3,
        source=_sources(spec.picture.colour, camera),
        tables=tables[:1] if np.array_equal(tables, np.broadcast_to(tables[:1], tables.shape)) else tables,
        planar=spec.layout == "NCHW",
    )


def _sources(colour: str, camera: Camera) -> tuple[int, ...]:
    if colour == "GREY":
        return (0,)
    if camera.channels == 1:
        return (0, 0, 0)
    return (2, 1, 0) if colour == "BGR" else (0, 1, 2)


def camera_entry(preprocessing: Preprocessing) -> dict[str, Any]:
    """What a manifest says of the preprocessing of a model."""
    return {
        "frame": str(preprocessing.camera),
        "rows_first": preprocessing.rows_first,
        "ring_rows": preprocessing.rows.ring,
        "memory_bytes": preprocessing.memory_bytes,
        "table_bytes": preprocessing.table_bytes,
    }
