# SPDX-License-Identifier: Apache-2.0
"""Preprocessing in C for many contracts and cameras, in one program that runs on this computer."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import InputSpec, Picture, Quantised, normalisation_for
from arenite.frames import FRAME_FORMATS, Frame
from arenite_codegen.camera import Camera, Preprocessing, make_preprocessing
from arenite_codegen.network import IoTensor
from arenite_codegen.render import render
from support.emission import FIRMWARE
from support.host_compiler import HostCompiler

__all__ = ["CameraCase", "CameraProgram", "encoded", "picture_spec", "random_frame"]

Array = npt.NDArray[Any]
CAMERA = FIRMWARE / "camera"
RUNNER = Path(__file__).parent / "camera_runner.c"
SYMBOL = Quantised(float(np.float32(1 / 127.5)), -1)


def picture_spec(
    width: int,
    height: int,
    colour: str = "RGB",
    layout: str = "NHWC",
    dtype: str = "int8",
    quantised: Quantised = SYMBOL,
    normalisation: Any = "symmetric",
    **picture: Any,
) -> InputSpec:
    """An input of these extents; `picture` are fields of its `Picture`."""
    how: dict[str, Any] = {"orientation": "exif", "crop": "none", "crop_fraction": 1.0, "filter": "bilinear", **picture}
    channels = 1 if colour == "GREY" else 3
    shape = (1, height, width, channels) if layout == "NHWC" else (1, channels, height, width)
    made = Picture(colour=colour, normalisation=normalisation_for(normalisation, colour), **how)
    return InputSpec("x", shape, layout, dtype, quantised, made)


@dataclass(frozen=True)
class CameraCase:
    """A model's input and a camera's frames."""

    spec: InputSpec
    camera: Camera
    padding_bytes: int = 0
    """Behind each row of a frame."""
    code: Preprocessing = field(init=False)

    def __post_init__(self) -> None:
        quantised = self.spec.quantised
        assert quantised is not None
        io = IoTensor("x", 0, self.spec.shape, self.spec.dtype, quantised.scale, quantised.zero_point)
        object.__setattr__(self, "code", make_preprocessing(self.spec, io, self.camera, "case"))

    @property
    def stride_bytes(self) -> int:
        """From row to row of a frame."""
        return self.camera.width * FRAME_FORMATS[self.camera.format].pixel_bytes + self.padding_bytes

    def frame(self, data: bytes) -> Frame:
        """The bytes as the session takes them."""
        camera = self.camera
        how = {"stride_bytes": self.stride_bytes, "matrix": camera.matrix, "full_range": camera.full_range}
        return Frame(data, camera.width, camera.height, camera.format, **how)  # type: ignore[arg-type]

    def with_picture(self, **changes: Any) -> CameraCase:
        """The same with other fields of the contract."""
        assert self.spec.picture is not None
        return replace(self, spec=replace(self.spec, picture=replace(self.spec.picture, **changes)))


def random_frame(case: CameraCase, seed: int = 0) -> bytes:
    """A frame of noise: any bytes, its last row without padding."""
    rows = case.camera.height * (3 if FRAME_FORMATS[case.camera.format].chroma == (2, 2) else 2) // 2
    size = case.stride_bytes * rows - case.padding_bytes
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()


class CameraProgram:
    """A compiled program that holds some cases.

    Args:
        compiler: With the sanitisers of this computer.
        folder: For its files.
    """

    def __init__(self, cases: Sequence[CameraCase], compiler: HostCompiler, folder: Path) -> None:
        self.cases = cases
        sources = [_written(case, f"case_{i}", folder) for i, case in enumerate(cases)]
        (folder / "camera_cases.h").write_text(_table(cases))
        sources += [*sorted(CAMERA.glob("*.c")), RUNNER]
        self._program = folder / "program"
        compiler.link(compiler.compile(sources, [folder, CAMERA], folder / "obj"), self._program)

    def inputs(self, frames: Sequence[bytes]) -> list[Array]:
        """The inputs that the C makes of one frame for each case, of the case's shape and type."""
        request = b"".join(
            np.array([i, case.stride_bytes, len(data)], np.uint32).tobytes() + data
            for i, (case, data) in enumerate(zip(self.cases, frames, strict=True))
        )
        done = subprocess.run([self._program], input=request, capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"exit {done.returncode}: {done.stderr.decode(errors='replace')[-3000:]}")
        found, at = [], 0
        for case in self.cases:
            size = int(np.prod(case.spec.shape))
            part = np.frombuffer(done.stdout, np.dtype(case.spec.dtype), size, at)
            found.append(part.reshape(case.spec.shape))
            at += size
        assert at == len(done.stdout)
        return found


def _written(case: CameraCase, symbol: str, folder: Path) -> Path:
    values = {"symbol": symbol, **case.code.context()}
    for suffix in "hc":
        (folder / f"{symbol}_camera.{suffix}").write_text(render(f"camera.{suffix}.j2", values))
    return folder / f"{symbol}_camera.c"


def _table(cases: Sequence[CameraCase]) -> str:
    numbers = range(len(cases))
    lines = [f'#include "case_{i}_camera.h"' for i in numbers]
    lines += ["typedef struct {", "    const arenite_camera_t *camera;", "    uint32_t memory_bytes, input_bytes;"]
    lines += ["} camera_case_t;", "static const camera_case_t camera_cases[] = {"]
    for i, case in enumerate(cases):
        lines.append(f"    {{&case_{i}_camera, CASE_{i}_CAMERA_BYTES, {int(np.prod(case.spec.shape))}u}},")
    return "\n".join([*lines, "};", ""])


def encoded(rgb: Array, format: str, matrix: str = "bt601", full_range: bool = False) -> bytes:
    """Pixels [height, width, 3] as a frame, each format by its own definition; chroma is that of every other pixel."""
    red, green, blue = (rgb[..., i].astype(np.uint16) for i in range(3))
    made: Array
    if "565" in format:
        word = red >> 3 << 11 | green >> 2 << 5 | blue >> 3
        made = word.astype(">u2" if format.endswith("BE") else "<u2")
    elif format == "GREY":
        made = rgb.mean(2).astype(np.uint8)
    elif "Y" in format or format.startswith("NV"):
        return _encoded_ycc(rgb, format, matrix, full_range)
    else:
        planes = [rgb[..., "RGB".index(c)] if c != "A" else np.full(rgb.shape[:2], 77, np.uint8) for c in format]
        made = np.stack(planes, 2)
    return made.tobytes()


def _encoded_ycc(rgb: Array, format: str, matrix: str, full_range: bool) -> bytes:
    kr, kb = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}[matrix]
    red, green, blue = np.moveaxis(rgb / 255, 2, 0)
    luma = kr * red + (1 - kr - kb) * green + kb * blue
    chroma = [(blue - luma) / (2 * (1 - kb)), (red - luma) / (2 * (1 - kr))]
    low, span, width = (0, 255, 255) if full_range else (16, 219, 224)
    planes = (low + span * luma, *(128 + width * c for c in chroma))
    y, cb, cr = (np.round(plane).clip(0, 255).astype(np.uint8) for plane in planes)
    if format.startswith("NV"):
        pair = [c[::2, ::2] for c in ((cb, cr) if format == "NV12" else (cr, cb))]
        return bytes(y.tobytes() + np.stack(pair, 2).tobytes())
    quad = [y[:, ::2], cb[:, ::2], y[:, 1::2], cr[:, ::2]]
    return bytes(np.stack(quad if format == "YUYV" else [quad[i] for i in (1, 0, 3, 2)], 2).tobytes())
