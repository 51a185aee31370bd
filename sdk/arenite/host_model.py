# SPDX-License-Identifier: Apache-2.0
"""Run a bundle that was compiled as a shared library, in this process."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from arenite._library import fresh_library
from arenite.errors import ToolchainError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HostModel", "ModelStruct"]

Array = npt.NDArray[Any]
_DTYPES = tuple(np.dtype(t) for t in (np.int8, np.uint8, np.int16, np.int32, np.float32, np.bool_))
_ALIGNMENT = 16
_REGION_SHIFT = 28


class IoStruct(ctypes.Structure):
    """`arenite_io_t` of the runtime."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("place", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("dtype", ctypes.c_uint8),
        ("zero_point", ctypes.c_int16),
        ("scale", ctypes.c_float),
    ]


class ModelStruct(ctypes.Structure):
    """`arenite_model_t` of the runtime."""

    _fields_ = [
        ("arena_bytes", ctypes.c_uint32),
        ("region_bytes", ctypes.POINTER(ctypes.c_uint32)),
        ("sha256", ctypes.POINTER(ctypes.c_uint8)),
        ("inputs", ctypes.POINTER(IoStruct)),
        ("outputs", ctypes.POINTER(IoStruct)),
        ("layers", ctypes.c_void_p),
        ("steps", ctypes.c_void_p),
        ("row_table", ctypes.c_void_p),
        ("constants", ctypes.c_void_p),
        ("states", ctypes.c_void_p),
        ("row_unit", ctypes.c_uint32),
        ("step_bytes", ctypes.c_uint32),
        ("counters_place", ctypes.c_uint32),
        ("layer_count", ctypes.c_uint16),
        ("batch", ctypes.c_uint16),
        ("state_count", ctypes.c_uint16),
        ("region_count", ctypes.c_uint8),
        ("input_count", ctypes.c_uint8),
        ("output_count", ctypes.c_uint8),
        ("row_fed", ctypes.c_uint8),
    ]


class FeedStruct(ctypes.Structure):
    """`arenite_feed_t` of the runtime; `done` is only there in a build with guards."""

    _fields_ = [
        ("model", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("step", ctypes.c_uint32),
        ("layer", ctypes.c_uint16),
        ("left", ctypes.c_uint16),
        ("item", ctypes.c_uint16),
        ("again", ctypes.c_uint16),
        ("done", ctypes.c_uint32),
    ]


class HostModel:
    """A compiled model with an arena of its own.

    Args:
        library: The shared library that a bundle for the board `host` builds: its file, of which a copy is loaded, or
            the loaded library itself.
        symbol: Name of the model in it.

    Raises:
        ToolchainError: The library cannot be loaded or holds no such model.
    """

    def __init__(self, library: Path | str | ctypes.CDLL, symbol: str = "arenite_model") -> None:
        try:
            self._library = library if isinstance(library, ctypes.CDLL) else fresh_library(library)
            self._model = ModelStruct.in_dll(self._library, symbol)
        except (OSError, ValueError) as error:
            raise ToolchainError(
                f"cannot load the compiled model ({error})", where=str(library), cure="Build the bundle again."
            ) from error
        self._address = ctypes.addressof(self._model)
        self._run = self._library.arenite_run
        self._run.restype = None
        self._run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._library.arenite_row_bytes.restype = ctypes.c_uint32
        self.arena_bytes = int(self._model.arena_bytes)
        self.regions = [_aligned(size) for size in self._model.region_bytes[: self._model.region_count]]
        self.memory = (ctypes.c_void_p * len(self.regions))(*(region.ctypes.data for region in self.regions))
        self.reset()

    def reset(self) -> None:
        """Forget: every state of the model is as before the first run."""
        self._library.arenite_reset(ctypes.byref(self._model), self.memory)

    @property
    def inputs(self) -> list[npt.NDArray[np.uint8]]:
        """The bytes of each input, in the arena. A run may overwrite them."""
        return [self.view(io) for io in self._model.inputs[: self._model.input_count]]

    @property
    def outputs(self) -> list[npt.NDArray[np.uint8]]:
        """The bytes of each output, in the arena, good until the next input is written."""
        return [self.view(io) for io in self._model.outputs[: self._model.output_count]]

    def invoke(self) -> None:
        """One inference on what lies in the inputs, of a model that is not row-fed."""
        self._run(self._address, self.memory)

    def run(self, inputs: list[Array]) -> list[Array]:
        """One inference.

        Args:
            inputs: One array for each input, any shape, of the input's type and size.

        Returns:
            One flat array for each output, a copy.

        Raises:
            UsageError: An input has the wrong number, type or size.
        """
        descriptors = self._model.inputs[: self._model.input_count]
        if len(inputs) != len(descriptors):
            raise UsageError(f"the model has {len(descriptors)} inputs, {len(inputs)} were given")
        for position, (values, io) in enumerate(zip(inputs, descriptors, strict=True)):
            dtype = _DTYPES[io.dtype]
            if values.dtype != dtype or values.nbytes != io.bytes:
                wanted = f"{dtype}[{io.bytes // dtype.itemsize}]"
                raise UsageError(f"input {position} is {values.dtype}[{values.size}], expected {wanted}")
            if not self._model.row_fed:
                self.view(io)[:] = np.ascontiguousarray(values).ravel().view(np.uint8)
        if self._model.row_fed:
            self._feed(np.ascontiguousarray(inputs[0]))
        else:
            self.invoke()
        return [self.view(io).view(_DTYPES[io.dtype]).copy() for io in self._model.outputs[: self._model.output_count]]

    def view(self, io: IoStruct) -> npt.NDArray[np.uint8]:
        """The bytes of an input or output."""
        offset = io.place & ((1 << _REGION_SHIFT) - 1)
        region: npt.NDArray[np.uint8] = self.regions[io.place >> _REGION_SHIFT]
        return region[offset : offset + io.bytes]

    def _feed(self, frame: Array) -> None:
        feed = ctypes.byref(FeedStruct())
        self._library.arenite_begin(feed, ctypes.byref(self._model), self.memory)
        data, at = frame.tobytes(), 0
        while row_bytes := int(self._library.arenite_row_bytes(feed)):
            self._library.arenite_feed_row(feed, data[at : at + row_bytes], ctypes.c_uint32(row_bytes))
            at += row_bytes
        if at != len(data) or self._library.arenite_end(feed) != 0:
            raise ToolchainError(f"the compiled model took {at} bytes of rows, the input has {len(data)}")


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    """Zeros that start on a 16-byte boundary."""
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]
