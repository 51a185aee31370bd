# SPDX-License-Identifier: Apache-2.0
"""Pictures into an input by compiled C with this computer's vectors: Pillow's own bytes, sooner.

Pillow stays the authority. The first picture of some extents goes through Pillow. When a second one comes, the C must
make of noise of those extents what Pillow makes of it, in one of the two orders of the passes, since Pillow's versions
differ in the one that they take; where it does not, Pillow goes on. So pictures that all have extents of their own
never pay for tables that are used once.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from arenite.errors import AreniteError, ToolchainError
from arenite.resize import Axis, axis_of

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["CompiledResize", "declared", "usable_library"]

Array = npt.NDArray[Any]
_PIXEL_BYTES = 4
# Taps of a column's pixel that are multiplied at once.
_TAPS = 2
# Extents that are remembered.
_MOST_EXTENTS = 64


class _AxisStruct(ctypes.Structure):
    """`arenite_axis_t`."""

    _fields_ = [
        ("first", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
        ("taps", ctypes.c_uint32),
    ]


class _BytesStruct(ctypes.Structure):
    """`arenite_bytes_t`."""

    _fields_ = [
        ("table", ctypes.c_void_p),
        ("source", ctypes.c_uint32 * 3),
        ("pixel_step", ctypes.c_uint32),
        ("channel_step", ctypes.c_uint32),
    ]


class _ArrowArray(ctypes.Structure):
    """`struct ArrowArray` of Arrow's C data interface, as far as it is read."""


_ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
]


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@dataclass(frozen=True, eq=False)
class _Table:
    """An axis as the C wants it: every pixel has as many taps, and reads inside of the picture.

    Attributes:
        first: uint32 [pixels of the result].
        weights: int32 [pixels of the result, taps].
    """

    first: Array
    weights: Array

    @classmethod
    def of(cls, axis: Axis, multiple: int) -> _Table | None:
        """None where the picture has fewer pixels than taps."""
        first, stop = np.array(axis.first), np.array(axis.stop)
        taps = -(-int((stop - first).max()) // multiple) * multiple
        if taps > axis.weights.shape[1]:
            return None
        first = np.minimum(first, axis.weights.shape[1] - taps)
        weights = np.take_along_axis(axis.weights, first[:, None] + np.arange(taps), 1)
        return cls(first.astype(np.uint32), weights)


def _axis_struct(first: Array, weights: Array, extents: tuple[int, ...]) -> Any:
    """Points to the arrays and does not keep them alive."""
    return ctypes.pointer(_AxisStruct(first.ctypes.data, weights.ctypes.data, *extents))


class _Passes:
    """The resize of pictures of one size, in one order.

    Args:
        columns, rows: Of the two axes; those of columns have an even number of taps.
        rows_first: The order.
    """

    def __init__(self, library: ctypes.CDLL, width: int, columns: _Table, rows: _Table, rows_first: bool) -> None:
        self._library = library
        # Each weight of columns once for each byte of a pixel.
        repeated = np.repeat(columns.weights, _PIXEL_BYTES, 1)
        self._kept = (columns.first, repeated, rows)
        self._columns = _axis_struct(columns.first, repeated, columns.weights.shape)
        self._rows = _axis_struct(rows.first, rows.weights, rows.weights.shape)
        self._stride, self._rows_first = width * _PIXEL_BYTES, rows_first
        self._out_width, self._out_height = len(columns.first), len(rows.first)
        # Rows of the picture that are needed.
        self._top = int(rows.first.min())
        self._used = int(rows.first.max()) + rows.weights.shape[1] - self._top

    def run(self, pixels: int) -> Array:
        """uint8 [height, width, 4] of pixels at this address."""
        out = np.empty((self._out_height, self._out_width, _PIXEL_BYTES), np.uint8)
        columns, rows = self._library.arenite_resize_columns, self._library.arenite_resize_rows
        row_bytes = self._out_width * _PIXEL_BYTES
        if self._rows_first:
            between = np.empty((self._out_height, self._stride), np.uint8)
            rows(self._rows, pixels, self._stride, self._stride, between.ctypes.data)
            columns(self._columns, between.ctypes.data, self._stride, self._out_height, out.ctypes.data)
            return out
        between = np.empty((self._top + self._used, row_bytes), np.uint8)
        first = self._top * self._stride
        columns(self._columns, pixels + first, self._stride, self._used, between[self._top :].ctypes.data)
        rows(self._rows, between.ctypes.data, row_bytes, row_bytes, out.ctypes.data)
        return out


class CompiledResize:
    """From images of mode RGB to a model's input of one byte a value. Any thread may use it.

    Args:
        library: See `usable_library`.
        fit: Pillow's resize of an image of mode RGB.
        size: Width and height of the input.
        box: From the extents of an image to the part that is taken.
        filter: One of `arenite.contract.FILTERS`.
        table: The input's byte for each 8-bit value of each of its channels, [3, 256].
        source: For each channel of the input that of the image.
        planar: The input's channels lie behind each other.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        fit: Callable[[Image], Image],
        size: tuple[int, int],
        box: Callable[[tuple[int, int]], tuple[float, float, float, float]],
        filter: str,
        table: Array,
        source: tuple[int, int, int],
        planar: bool,
    ) -> None:
        self._library, self._fit, self._size, self._box, self._filter = library, fit, size, box, filter
        self._table = np.ascontiguousarray(table).view(np.uint8)
        steps = (1, size[0] * size[1]) if planar else (3, 1)
        self._how = _BytesStruct(self._table.ctypes.data, (ctypes.c_uint32 * 3)(*source), *steps)
        # Of extents: None where they were seen once, else what is proven, if it is.
        self._known: OrderedDict[tuple[int, int], tuple[_Passes, ...] | None] = OrderedDict()
        self._learning = threading.Lock()

    def write(self, image: Image, out: Array) -> bool:
        """Write the input if the result is known to be Pillow's.

        Args:
            image: Of mode RGB.
            out: Array of the input's shape and type.

        Returns:
            False, and nothing is written, else.
        """
        passes = self._passes(image.size)
        if not passes or not out.flags.c_contiguous:
            return False
        fitted = _with_pixels(image, passes[0].run)
        count = fitted.shape[0] * fitted.shape[1]
        self._library.arenite_write_bytes(self._how, fitted.ctypes.data, count, out.ctypes.data)
        return True

    def _passes(self, size: tuple[int, int]) -> tuple[_Passes, ...]:
        with self._learning:
            if size not in self._known:
                self._known[size] = None
                if len(self._known) > _MOST_EXTENTS:
                    self._known.popitem(last=False)
                return ()
            self._known.move_to_end(size)
            known = self._known[size]
            if known is None:
                known = self._known[size] = self._proven(size)
            return known

    def _proven(self, size: tuple[int, int]) -> tuple[_Passes, ...]:
        from PIL import Image

        left, top, right, bottom = self._box(size)
        try:
            columns = _Table.of(axis_of(size[0], self._size[0], left, right, self._filter), _TAPS)
            rows = _Table.of(axis_of(size[1], self._size[1], top, bottom, self._filter), 1)
            if columns is None or rows is None:
                return ()
            noise = Image.fromarray(_noise(size))
            expected = np.asarray(self._fit(noise))
            for rows_first in (False, True):
                passes = _Passes(self._library, size[0], columns, rows, rows_first)
                if np.array_equal(_with_pixels(noise, passes.run)[:, :, :3], expected):
                    return (passes,)
        except MemoryError:  # of a huge picture: Pillow goes on
            pass
        return ()


def _noise(size: tuple[int, int]) -> Array:
    """uint8 [height, width, 3]; half of it is black or white, so that sums run over both ends."""
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    np.multiply(pixels[::2] >> 7, 255, out=pixels[::2])
    return pixels


@lru_cache(maxsize=1)
def usable_library() -> tuple[ctypes.CDLL | None, str]:
    """The compiled resize and its compiler, or why it cannot be used; found out once in a process.

    Nothing that goes wrong is an error: Pillow does the same.
    """
    from arenite.compiled import resize_library

    try:
        library, compiler = resize_library(soon=True)
    except AreniteError as error:
        return None, error.what
    except Exception as error:  # a packed or stripped installation has many ways to lack its files
        return None, f"{type(error).__name__}: {error}"
    if not library.arenite_resize_runs_here():
        return None, "it needs a processor with AVX2 or NEON"
    return library, compiler


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """The loaded library with the types of its functions.

    Raises:
        ToolchainError: It lacks one.
    """
    address, number = ctypes.c_void_p, ctypes.c_uint32
    axis, how = ctypes.POINTER(_AxisStruct), ctypes.POINTER(_BytesStruct)
    arguments = {
        "arenite_resize_columns": [axis, address, number, number, address],
        "arenite_resize_rows": [axis, address, number, number, address],
        "arenite_write_bytes": [how, address, number, address],
    }
    try:
        library.arenite_resize_runs_here.restype = ctypes.c_int32
        if library.arenite_resize_runs_here():
            for name, types in arguments.items():
                function = getattr(library, name)
                function.argtypes, function.restype = types, None
    except AttributeError as error:
        raise ToolchainError(f"the compiled resize is damaged ({error})") from error
    return library


def _with_pixels(image: Image, use: Callable[[int], Array]) -> Array:
    """Hands on the address of an image's pixels, four bytes each: in Pillow's own memory where it lends it."""
    if _lends(image):
        try:
            capsules = image.__arrow_c_array__()
        except (ValueError, MemoryError):  # it lies in several pieces
            pass
        else:
            address = _pixels_of(capsules[1], image.width * image.height)
            if address is not None:
                return use(address)
    content = np.frombuffer(image.tobytes("raw", "RGBX"), np.uint8)
    return use(content.ctypes.data)


def _lends(image: Image) -> bool:
    """Whether its memory can be had by Arrow's interface, with rows that follow each other.

    Pillow 11.2 loses the memory that it lends, those before 13 may crash for images that were borrowed themselves, and
    with an alignment of rows it names the wrong address.
    """
    from PIL import Image as pil
    from PIL import __version__

    core: Any = pil.core  # type: ignore[attr-defined]
    return int(__version__.split(".")[0]) >= 13 and not image.readonly and core.get_alignment() == 1


def _pixels_of(capsule: object, count: int) -> int | None:
    """The address in an Arrow array of lists of four bytes."""
    array = _ArrowArray.from_address(_capsule_pointer(capsule, b"arrow_array"))
    if array.n_children != 1 or array.length != count or array.offset:
        return None
    values = array.children[0].contents
    if values.length != count * _PIXEL_BYTES or values.offset or values.n_buffers != 2:
        return None
    address: int | None = values.buffers[1]
    return address
