# SPDX-License-Identifier: Apache-2.0
"""Pictures into an input by compiled C with this computer's vectors: Pillow's own bytes, sooner.

Pillow stays the authority. The first picture of some extents goes through Pillow. With the second one the C is tried
beside it, in both orders of the two passes, since Pillow's versions differ in the one that they take. What gives
Pillow's bytes is used from the third on; where nothing does, Pillow goes on. So pictures that all have extents of their
own never pay for tables that are used once.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from arenite.resize import Axis, axis_of

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["CompiledResize"]

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
    """As long as the arrays live."""
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
    """From images of mode RGB to a model's input of one byte a value.

    Args:
        library: See `arenite.compiled.resize_library`; it must run here.
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
        size: tuple[int, int],
        box: Callable[[tuple[int, int]], tuple[float, float, float, float]],
        filter: str,
        table: Array,
        source: tuple[int, int, int],
        planar: bool,
    ) -> None:
        self._library, self._size, self._box, self._filter = _declared(library), size, box, filter
        self._table = np.ascontiguousarray(table).view(np.uint8)
        pixels = size[0] * size[1]
        steps = (1, pixels) if planar else (3, 1)
        self._how = _BytesStruct(self._table.ctypes.data, (ctypes.c_uint32 * 3)(*source), *steps)
        # Of extents: None once they were seen, then what can be right: both orders, one, which is used, or nothing.
        self._known: OrderedDict[tuple[int, int], tuple[_Passes, ...] | None] = OrderedDict()

    def write(self, image: Image, out: Array) -> bool:
        """Write the input if that is known to be Pillow's.

        Args:
            image: Of mode RGB.
            out: Array of the input's shape and type.

        Returns:
            False, and nothing is written, else.
        """
        passes = self._known.get(image.size)
        if passes is None or len(passes) != 1 or not out.flags.c_contiguous:
            return False
        fitted = _with_pixels(image, passes[0].run)
        count = fitted.shape[0] * fitted.shape[1]
        self._library.arenite_write_bytes(self._how, fitted.ctypes.data, count, out.ctypes.data)
        return True

    def learn(self, image: Image, fitted: Image) -> None:
        """See how Pillow resized an image.

        Args:
            image: Of mode RGB.
            fitted: What Pillow made of it.
        """
        right: tuple[_Passes, ...] | None = None
        if image.size in self._known:
            tried = self._known[image.size]
            expected = np.asarray(fitted)
            # A picture of one colour says nothing: both orders are right.
            right = tuple(
                passes
                for passes in (self._candidates(image.size) if tried is None else tried)
                if np.array_equal(_with_pixels(image, passes.run)[:, :, :3], expected)
            )
        self._known[image.size] = right
        if len(self._known) > _MOST_EXTENTS:
            self._known.popitem(last=False)

    def _candidates(self, size: tuple[int, int]) -> tuple[_Passes, ...]:
        left, top, right, bottom = self._box(size)
        axes = (
            axis_of(size[0], self._size[0], left, right, self._filter),
            axis_of(size[1], self._size[1], top, bottom, self._filter),
        )
        columns, rows = _Table.of(axes[0], _TAPS), _Table.of(axes[1], 1)
        if columns is None or rows is None:
            return ()
        # Where pixels of an axis are only chosen, both orders give the same.
        orders = (False,) if any(axis.chooses for axis in axes) else (False, True)
        return tuple(_Passes(self._library, size[0], columns, rows, order) for order in orders)


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    address, number = ctypes.c_void_p, ctypes.c_uint32
    axis = ctypes.POINTER(_AxisStruct)
    library.arenite_resize_columns.argtypes = [axis, address, number, number, address]
    library.arenite_resize_rows.argtypes = [axis, address, number, number, address]
    library.arenite_write_bytes.argtypes = [ctypes.POINTER(_BytesStruct), address, number, address]
    for function in (library.arenite_resize_columns, library.arenite_resize_rows, library.arenite_write_bytes):
        function.restype = None
    return library


def _with_pixels(image: Image, use: Callable[[int], Array]) -> Array:
    """Hands on the address of an image's pixels, four bytes each: in Pillow's own memory where it lends it."""
    export = getattr(image, "__arrow_c_array__", None)
    if export is not None:
        try:
            capsules = export()
        except (ValueError, MemoryError):  # it lies in several pieces
            pass
        else:
            address = _pixels_of(capsules[1], image.width * image.height)
            if address is not None:
                return use(address)
    content = np.frombuffer(image.tobytes("raw", "RGBX"), np.uint8)
    return use(content.ctypes.data)


def _pixels_of(capsule: object, count: int) -> int | None:
    """The address in an Arrow array of lists of four bytes."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    array = _ArrowArray.from_address(pointer(capsule, b"arrow_array"))
    if array.n_children != 1 or array.length != count or array.offset:
        return None
    values = array.children[0].contents
    if values.length != count * _PIXEL_BYTES or values.offset or values.n_buffers != 2:
        return None
    address: int | None = values.buffers[1]
    return address
