# SPDX-License-Identifier: Apache-2.0
"""Camera frames by the names of their formats.

Y'CbCr becomes R'G'B' by the matrix of its standard: with Kr and Kb of BT.601 or BT.709 and Kg = 1 - Kr - Kb,

    R = Y + 2 (1 - Kr) Cr
    B = Y + 2 (1 - Kb) Cb
    G = Y - 2 Kb (1 - Kb) / Kg Cb - 2 Kr (1 - Kr) / Kg Cr

where Y runs over 0..255 and Cb, Cr lie around 0 once the range is undone: full range stores them around 128, limited
range stores Y as 16..235 and the others as 16..240. The result is rounded and clipped to 8 bits. A chroma sample is
that of all its pixels, as the camera took it: it is repeated, not interpolated.

The matrix is that of the standard in steps of 1/16384. Pillow computes in float32, where sums below 1,024 in such steps
are exact: so every processor, and firmware with nothing but integers, gives the same bytes. They are within 0.52 of the
real value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from arenite.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FRAME_FORMATS", "Frame", "MATRICES", "MATRIX_ONE", "ycc_matrix"]

Bytes = npt.NDArray[np.uint8]
# Weights of red and blue in the brightness.
MATRICES: Mapping[str, tuple[float, float]] = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}
# 1.0 in the integers of `ycc_matrix`.
MATRIX_ONE = 1 << 14


@dataclass(frozen=True)
class _Format:
    """How a format lies in memory.

    Attributes:
        pixel_bytes: Of the first plane.
        raw: Pillow's name of a packed RGB format.
        order: Places of Y, Cb, Cr in a pair of pixels, or of Cb, Cr in the second plane.
        chroma: How many pixels, across and down, share one chroma sample.
    """

    pixel_bytes: int
    raw: str = ""
    order: tuple[int, ...] = ()
    chroma: tuple[int, int] = (1, 1)


# The order of the name is the order of the bytes in memory; RGB565 is a little-endian 16-bit word, as V4L2 has it.
FRAME_FORMATS: Mapping[str, _Format] = {
    "BGR": _Format(3, "BGR"),
    "BGRA": _Format(4, "BGRX"),
    "GREY": _Format(1),
    "NV12": _Format(1, "", (0, 1), (2, 2)),
    "NV21": _Format(1, "", (1, 0), (2, 2)),
    "RGB": _Format(3, "RGB"),
    "RGB565": _Format(2),
    "RGB565_BE": _Format(2),
    "RGBA": _Format(4, "RGBX"),
    "UYVY": _Format(2, "", (1, 0, 2), (2, 1)),
    "YUYV": _Format(2, "", (0, 1, 3), (2, 1)),
}


class Frame:
    """A picture as a camera delivers it.

    Args:
        data: Its bytes: bytes, memoryview, mmap, or a uint8 array of any shape and strides. More may follow them.
        width: Pixels.
        height: Pixels.
        format: A key of `FRAME_FORMATS`. NV12 and NV21 hold the chroma plane behind the other, with the same stride.
        stride_bytes: From row to row; by default rows follow each other without a gap.
        matrix: `bt601` or `bt709`, for Y'CbCr formats. Cameras say which; BT.601 is usual up to 576 rows.
        full_range: Y'CbCr stored over 0..255, as JPEG does, instead of 16..235.

    Raises:
        UsageError: An unknown name, extents that the format cannot have, or too few bytes.
    """

    def __init__(
        self,
        data: Any,
        width: int,
        height: int,
        format: str,
        *,
        stride_bytes: int | None = None,
        matrix: str = "bt601",
        full_range: bool = False,
    ) -> None:
        self.format, self.width, self.height = format, width, height
        if format not in FRAME_FORMATS:
            raise self._wrong(f"there is no frame format {format!r}", f"Use one of {', '.join(FRAME_FORMATS)}.")
        if matrix not in MATRICES:
            raise self._wrong(f"there is no matrix {matrix!r}", f"Use {' or '.join(MATRICES)}.")
        self._layout = FRAME_FORMATS[format]
        self._matrix, self._full_range = matrix, full_range
        self._check_extents()
        row_bytes = width * self._layout.pixel_bytes
        self._stride = row_bytes if stride_bytes is None else stride_bytes
        if not isinstance(self._stride, int) or self._stride < row_bytes:
            raise self._wrong(f"a stride of {stride_bytes!r} bytes", f"A row of it has {row_bytes}.")
        self._bytes = self._checked(data)

    def _check_extents(self) -> None:
        for name, value, step in (
            ("width", self.width, self._layout.chroma[0]),
            ("height", self.height, self._layout.chroma[1]),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1 or value % step:
                even = "an even number of at least 2" if step == 2 else "a number of at least 1"
                raise self._wrong(f"a {name} of {value!r}", f"It must be {even}.")

    def _checked(self, data: Any) -> Bytes:
        rows = self.height * 3 // 2 if self._layout.chroma == (2, 2) else self.height
        needed = self._stride * (rows - 1) + self.width * self._layout.pixel_bytes
        try:
            if isinstance(data, np.ndarray):
                found: Bytes = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            else:
                found = np.frombuffer(data, np.uint8)
        except (TypeError, ValueError, BufferError) as error:
            raise self._wrong(f"{type(data).__name__} holds no bytes ({error})", "Give bytes or an array.") from error
        if found.size < needed:
            raise self._wrong(f"{found.size:,} bytes", f"{needed:,} are needed, {self._stride:,} from row to row.")
        # The last row need not be padded: what lacks behind it is nobody's pixel.
        lacking = self._stride * rows - found.size
        return np.pad(found, (0, lacking)) if lacking > 0 else found

    def _wrong(self, what: str, cure: str) -> UsageError:
        return UsageError(what, where=f"frame {self.width}×{self.height} {self.format}", cure=cure)

    def image(self, least: tuple[int, int] | None = None) -> Image:
        """An 8-bit image, RGB or grey.

        Args:
            least: Extents that are enough: brightness is then averaged to the chroma's own resolution where that is
                not less. None gives every pixel.
        """
        from PIL import Image as pil

        if self.format == "GREY":
            return pil.fromarray(np.ascontiguousarray(self._rows(0, self.height)[:, : self.width]))
        if self._layout.chroma != (1, 1):
            return self._from_chroma(least)
        if self._layout.raw:
            size, raw = (self.width, self.height), self._layout.raw
            return pil.frombytes("RGB", size, self._bytes.data, "raw", raw, self._stride, 1)
        return pil.fromarray(self._from_565())

    def _rows(self, start: int, count: int) -> Bytes:
        """Whole rows, [count, stride]."""
        return self._bytes[start * self._stride : (start + count) * self._stride].reshape(count, self._stride)

    def _pixels(self) -> Bytes:
        size = self._layout.pixel_bytes
        return self._rows(0, self.height)[:, : self.width * size].reshape(self.height, self.width, size)

    def _from_565(self) -> Bytes:
        low, high = (1, 0) if self.format == "RGB565_BE" else (0, 1)
        pixels = self._pixels()
        word = pixels[:, :, high].astype(np.uint16) << 8 | pixels[:, :, low]
        red, green, blue = word >> 11, word >> 5 & 0x3F, word & 0x1F
        # The highest bits fill the lowest, so that full scale stays full scale.
        wide = (red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2)
        return np.stack(wide, axis=2).astype(np.uint8)

    def _from_chroma(self, least: tuple[int, int] | None) -> Image:
        from PIL import Image as pil

        luma, blue, red = (pil.fromarray(np.ascontiguousarray(plane)) for plane in self._planes())
        factor = self._layout.chroma
        if least is not None and blue.width >= least[0] and blue.height >= least[1]:
            luma = luma.reduce(factor)
        else:
            size = (self.width, self.height)
            blue, red = (plane.resize(size, pil.Resampling.NEAREST) for plane in (blue, red))
        return pil.merge("RGB", (luma, blue, red)).convert("RGB", self._conversion())

    def _conversion(self) -> tuple[float, ...]:
        """Pillow's 3×4 matrix from Y, Cb, Cr to R, G, B."""
        return tuple(value / MATRIX_ONE for value in ycc_matrix(self._matrix, self._full_range))

    def _planes(self) -> tuple[Bytes, Bytes, Bytes]:
        if self._layout.chroma == (2, 2):
            chroma = self._rows(self.height, self.height // 2)[:, : self.width].reshape(-1, self.width // 2, 2)
            blue, red = self._layout.order
            return self._rows(0, self.height)[:, : self.width], chroma[:, :, blue], chroma[:, :, red]
        luma, blue, red = self._layout.order
        pairs = self._pixels().reshape(self.height, self.width // 2, 4)
        return self._pixels()[:, :, luma], pairs[:, :, blue], pairs[:, :, red]


def ycc_matrix(matrix: str, full_range: bool) -> tuple[int, ...]:
    """From Y, Cb, Cr to R, G, B: three rows of three factors and a term to add, in steps of 1 / `MATRIX_ONE`.

    Args:
        matrix: A key of `MATRICES`.
        full_range: As for `Frame`.
    """
    kr, kb = MATRICES[matrix]
    kg = 1 - kr - kb
    luma, chroma, black = (1.0, 1.0, 0) if full_range else (255 / 219, 255 / 224, 16)
    y = round(luma * MATRIX_ONE)
    rows: list[int] = []
    for cb, cr in (
        (0.0, 2 * (1 - kr)),
        (-2 * kb * (1 - kb) / kg, -2 * kr * (1 - kr) / kg),
        (2 * (1 - kb), 0.0),
    ):
        blue, red = round(cb * chroma * MATRIX_ONE), round(cr * chroma * MATRIX_ONE)
        rows += [y, blue, red, -y * black - 128 * (blue + red)]
    return tuple(rows)
