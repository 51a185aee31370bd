# SPDX-License-Identifier: Apache-2.0
"""A picture to an input tensor by the contract: the only implementation, for calibration and sessions.

The mode `exact` is Pillow's arithmetic, byte for byte what calibration saw. The mode `fast` decodes a JPEG at the
smallest of 1/1, 1/2, 1/4 and 1/8 that still holds the input, and a camera's frame at the resolution of its colour:
several times faster, and a few levels off. `arenite.skew` measures how many.

An 8-bit picture has 256 values a channel, so normalising and quantising is one table of 256 entries a
channel. It is computed once in float64, rounded to float32, and quantised as the TFLite reference's QUANTIZE
does it: round(real / scale) half away from zero, plus the zero point, clamped. Looking up is exact.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from arenite._fields import wrong
from arenite.contract import InputSpec, Normalisation, Picture, Quantised
from arenite.errors import ContractError, UsageError
from arenite.frames import Frame

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

    from arenite.compiled_resize import CompiledResize

__all__ = [
    "MODES",
    "PICTURE_SUFFIXES",
    "PictureSource",
    "Preprocessor",
    "check_mode",
    "decode_picture",
    "pictures_in",
    "quantise",
    "read_picture",
    "value_table",
]

Array = npt.NDArray[Any]
MODES = ("exact", "fast")
PictureSource = Union[str, Path, bytes, "Image", Array, Frame]

# Formats whose decoders are pure Pillow code; others would run programs or are no photographs.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
PICTURE_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
_WIDE_MODES = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")

# What Pillow's readers raise on damaged files, beside its own errors.
_DAMAGED = (
    *(OSError, ValueError, SyntaxError, TypeError, ArithmeticError, LookupError, EOFError),
    *(AttributeError, AssertionError, struct.error, zlib.error),
)
_ORIENTATION_TAG = 0x0112
# Orientation of EXIF: what turns the picture upright. 1 is upright; other values mean nothing.
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
_SIDEWAYS = (5, 6, 7, 8)


def read_picture(source: PictureSource) -> PictureSource:
    """The bytes of a picture file; anything else is returned as it is.

    Raises:
        UsageError: The file cannot be read.
    """
    if not isinstance(source, (str, Path)):
        return source
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the picture: {error.strerror or error}", where=str(source), cure="Check the path."
        ) from error


def pictures_in(folder: Path, what: str) -> list[Path]:
    """The pictures in a folder and the folders below it, sorted.

    Args:
        folder: Where to look.
        what: Purpose of the pictures, for messages.

    Raises:
        UsageError: The folder cannot be read or holds no picture.
    """
    try:
        files = sorted(p for p in folder.rglob("*") if p.is_file())
    except OSError as error:
        raise UsageError(f"cannot read the {what} folder ({error})", where=str(folder)) from error
    pictures = [p for p in files if p.suffix.lower() in PICTURE_SUFFIXES]
    if not pictures:
        others = sorted({p.suffix or p.name for p in files})[:5]
        held = f"only {', '.join(others)}" if others else "nothing"
        raise UsageError(
            f"the {what} folder holds no picture, {held}",
            where=str(folder),
            cure=f"Put pictures there ({', '.join(PICTURE_SUFFIXES)}).",
        )
    return pictures


def decode_picture(
    source: PictureSource,
    orientation: str = "exif",
    where: str | None = None,
    least: Callable[[tuple[int, int]], tuple[int, int]] | None = None,
    mode: str = "RGB",
) -> Image:
    """Decode to an 8-bit RGB or grey image.

    Args:
        source: Path, file bytes, Pillow image, uint8 array H×W×3 in RGB order or H×W of any strides, or camera frame.
        orientation: `exif` turns the picture as its EXIF tag says, `stored` does not.
        where: Name of the picture in messages.
        least: From the extents of the whole upright picture to the smallest ones that are enough; a JPEG file is then
            decoded at a fraction of its size. None decodes all of it.
        mode: `L` lets a JPEG file decode its brightness alone when `least` is given.

    Raises:
        UsageError: No picture, damaged, or more than 8 bits a channel.
    """
    from PIL import Image, UnidentifiedImageError

    where = where or _name(source)
    source = read_picture(source)
    try:
        if isinstance(source, bytes):
            image: Image.Image = _opened(source)
        elif isinstance(source, Image.Image):
            image = source
        elif isinstance(source, Frame):
            return source.image(None if least is None else least((source.width, source.height)))
        else:
            return Image.fromarray(_checked_array(source, where))
        if least is not None and isinstance(source, bytes):  # an image of the caller's is left as it is
            _draft(image, orientation, least, mode)
        image.load()
        return _eight_bit(_upright(image) if orientation == "exif" else image, where)
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        unknown = isinstance(error, UnidentifiedImageError)
        reason = "no known format" if unknown else str(error) or type(error).__name__
        raise UsageError(
            f"cannot decode the picture ({reason})",
            where=where,
            cure=f"Supported formats: {', '.join(_FORMATS)}.",
        ) from error


def _opened(content: bytes) -> ImageFile:
    """The picture in a file's bytes, not decoded yet."""
    from PIL import Image as pil

    image = pil.open(io.BytesIO(content), formats=_FORMATS)
    # In one piece, the decoder reads the caller's bytes where they are. In Pillow's pieces of 64 KiB all are copied
    # three times, and at each seam libjpeg takes the slow of its two ways through the Huffman codes.
    image.decodermaxblock = len(content)
    return image


def _draft(image: Image, orientation: str, least: Callable[[tuple[int, int]], tuple[int, int]], mode: str) -> None:
    """Tells the decoder of a file that is not decoded yet how small the picture may become."""
    turned = orientation == "exif" and image.getexif().get(_ORIENTATION_TAG) in _SIDEWAYS
    width, height = image.size
    wanted = least((height, width) if turned else (width, height))
    image.draft(mode, wanted[::-1] if turned else wanted)


def _upright(image: Image) -> Image:
    """Turns the pixels as the EXIF tag says; nothing else of the EXIF data is read or kept."""
    from PIL import Image as pil

    turn = image.getexif().get(_ORIENTATION_TAG)
    method = _TURNS.get(turn) if isinstance(turn, int) else None
    return image if method is None else image.transpose(pil.Transpose[method])


def _name(source: PictureSource) -> str:
    if isinstance(source, (str, Path)):
        return str(source)
    return "picture given as " + type(source).__name__


def _checked_array(source: object, where: str) -> Array:
    cure = "Give a uint8 array H×W×3 in RGB order, or H×W for grey; other orders as arenite.Frame."
    if not isinstance(source, np.ndarray):
        raise UsageError(f"a {type(source).__name__} is no picture", where=where, cure=cure)
    grey = source.ndim == 2
    colour = source.ndim == 3 and source.shape[2] == 3
    if source.dtype != np.uint8 or not (grey or colour) or source.size == 0:
        raise UsageError(f"an array {source.dtype}{list(source.shape)} is no picture", where=where, cure=cure)
    return np.ascontiguousarray(source)


def _eight_bit(image: Image, where: str) -> Image:
    if image.mode in _WIDE_MODES:
        raise UsageError(
            f"the picture has more than 8 bits a channel (mode {image.mode})",
            where=where,
            cure="Save it with 8 bits a channel.",
        )
    if image.mode in ("RGB", "L"):
        return image
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")
    return image.convert("L" if image.mode in ("1", "LA", "La") else "RGB")


def value_table(normalisation: Normalisation) -> npt.NDArray[np.float32]:
    """The real value of each 8-bit value of each channel, float32 [channels, 256]."""
    x = np.arange(256, dtype=np.float64)
    mean = np.asarray(normalisation.mean)[:, None]
    std = np.asarray(normalisation.std)[:, None]
    return np.asarray((x * normalisation.scale - mean) / std, np.float32)


def quantise(real: npt.ArrayLike, quantised: Quantised, dtype: str) -> Array:
    """Quantise float32 values as the TFLite reference's QUANTIZE does.

    Args:
        real: Any shape.
        quantised: Scale and zero point.
        dtype: int8, uint8 or int16.

    Returns:
        clamp(round_half_away_from_zero(real / scale) + zero_point), the quotient taken in float32.
    """
    limits = np.iinfo(dtype)
    with np.errstate(over="ignore"):
        quotient = (np.asarray(real, np.float32) / np.float32(quantised.scale)).astype(np.float64)
    # Adding one half is exact in float64, so 0.49999997 stays below one half.
    rounded = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient) + quantised.zero_point
    return np.asarray(np.clip(rounded, limits.min, limits.max), dtype)


def check_mode(mode: str) -> None:
    """Refuse what is no mode of a `Preprocessor`.

    Raises:
        UsageError: No such mode.
    """
    if mode not in MODES:
        raise UsageError(f"there is no preprocessing '{mode}'", cure=f"Use {' or '.join(MODES)}.")


class Preprocessor:
    """Makes pictures into the input tensor of one model.

    Args:
        spec: The input of the model's contract.
        mode: `exact` or `fast`.

    Raises:
        UsageError: No such mode.
        ContractError: The input is no picture, or holds more than one.
    """

    def __init__(self, spec: InputSpec, mode: str = "exact") -> None:
        check_mode(mode)
        if spec.picture is None:
            raise ContractError(
                "the contract does not say how a picture becomes the input",
                where=spec.name,
                cure="Convert with a normalisation, or open it with contract=arenite.make_contract(...).",
            )
        if spec.shape[0] != 1:
            raise wrong("input.shape[0]", "1 for single pictures", spec.shape[0])
        self.mode = mode
        self.spec = spec
        self._picture: Picture = spec.picture
        height, width = spec.shape[1:3] if spec.layout == "NHWC" else spec.shape[2:4]
        self.size = (width, height)
        self.values = value_table(self._picture.normalisation)
        self.table = (
            self.values if spec.quantised is None else quantise(self.values, spec.quantised, spec.dtype)
        )
        self._xor = _xor_constant(self.table)
        self._points = self._point_table() if self.table.dtype.itemsize == 1 else []
        self._translation = _common_row(self.table)
        self._compiled: CompiledResize | None = None
        self.resized_by = "Pillow"

    def compile_resize(self) -> None:
        """From now on resize by compiled C wherever its bytes are Pillow's, see `arenite.compiled_resize`.

        `resized_by` says by which compiler's, or why Pillow goes on. What is not compiled yet is, if GCC or Clang is
        here; ziglang can take half a minute.
        """
        from arenite.compiled_resize import CompiledResize, usable_library

        if self._mode != "RGB" or self.table.dtype.itemsize != 1:
            self.resized_by = "Pillow (the compiled resize makes three channels of a byte)"
            return
        library, said = usable_library()
        if library is None:
            self.resized_by = f"Pillow ({said})"
            return
        source = (2, 1, 0) if self._picture.colour == "BGR" else (0, 1, 2)
        planar = self.spec.layout == "NCHW"
        self._compiled = CompiledResize(
            library, self.fit, self.size, self.box, self._picture.filter, self.table, source, planar
        )
        self.resized_by = f"compiled C ({said})"

    def decode(self, source: PictureSource, where: str | None = None) -> Image:
        """An upright 8-bit image; see `decode_picture`. In the mode `fast` it may be smaller than the picture."""
        return self.decode_sized(source, where)[0]

    def decode_sized(self, source: PictureSource, where: str | None = None) -> tuple[Image, tuple[int, int]]:
        """As `decode`, with the extents of the whole upright picture, which the image may be smaller than."""
        sizes: list[tuple[int, int]] = []
        if self.mode == "exact":
            image = decode_picture(source, self._picture.orientation, where)
            return image, image.size

        def least(size: tuple[int, int]) -> tuple[int, int]:
            sizes.append(size)
            return self._least(size)

        image = decode_picture(source, self._picture.orientation, where, least, self._mode)
        return image, sizes[0] if sizes else image.size

    @property
    def _mode(self) -> str:
        return "L" if self._picture.colour == "GREY" else "RGB"

    def _least(self, size: tuple[int, int]) -> tuple[int, int]:
        """The smallest extents of a whole picture whose box still has those of the input."""
        left, top, right, bottom = self.box(size)
        return ceil(size[0] * self.size[0] / (right - left)), ceil(size[1] * self.size[1] / (bottom - top))

    def fit(self, image: Image) -> Image:
        """Colour, crop and resize: an image of the input's extents, mode RGB or L."""
        from PIL import Image as pil

        image = self._coloured(image)
        resample = getattr(pil.Resampling, self._picture.filter.upper())
        return image.resize(self.size, resample, self.box(image.size))

    def fit_into(self, image: Image, out: Array) -> None:
        """`fit` and `write` in one; compiled where `compile_resize` was called."""
        image = self._coloured(image)
        if self._compiled is None or not self._compiled.write(image, self._checked(out)):
            self.write(self.fit(image), out)

    def _coloured(self, image: Image) -> Image:
        return image if image.mode == self._mode else image.convert(self._mode)

    def box(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the part of a picture of these extents that is taken, in pixels."""
        width, height = size
        if self._picture.crop == "none":
            return 0, 0, width, height
        side = min(width / self.size[0], height / self.size[1]) * self._picture.crop_fraction
        left, top = (width - side * self.size[0]) / 2, (height - side * self.size[1]) / 2
        # Rounding must not put the box outside the picture.
        return max(left, 0), max(top, 0), min(width - left, width), min(height - top, height)

    def write(self, fitted: Image, out: Array) -> None:
        """Normalise and quantise a fitted image into `out`, an array of the input's shape and type."""
        target = self._as_rows(self._checked(out))
        if self._xor is not None:
            np.bitwise_xor(self._pixels(fitted), np.uint8(self._xor), out=target.view(np.uint8))
        elif self._translation is not None:
            target.view(np.uint8)[...] = self._as_pixels(fitted, fitted.tobytes().translate(self._translation))
        elif self.table.dtype.itemsize == 1:
            target.view(np.uint8)[...] = self._pixels(fitted.point(self._points))
        else:
            self._look_up(self._pixels(fitted), self.table, target)

    def real(self, fitted: Image) -> npt.NDArray[np.float32]:
        """The normalised picture before quantisation, float32 of the input's shape, for calibration."""
        out = np.empty(self.spec.shape, np.float32)
        self._look_up(self._pixels(fitted), self.values, self._as_rows(out))
        return out

    def tensor(self) -> Array:
        """A new array of the input's shape and type; what it holds is arbitrary."""
        return np.empty(self.spec.shape, self.spec.dtype)

    def __call__(self, source: PictureSource, out: Array | None = None) -> Array:
        """All steps, from any picture source to the input tensor."""
        if out is None:
            out = self.tensor()
        self.fit_into(self.decode(source), out)
        return out

    def _checked(self, out: Array) -> Array:
        if out.shape != self.spec.shape or out.dtype != self.table.dtype or not out.flags.writeable:
            raise UsageError(
                f"cannot write a picture into an array of shape {list(out.shape)} and type {out.dtype}",
                cure=f"A writable array of shape {list(self.spec.shape)} and type {self.spec.dtype} is needed.",
            )
        return out

    def _as_rows(self, out: Array) -> Array:
        picture: Array = out[0]
        return picture if self.spec.layout == "NHWC" else picture.transpose(1, 2, 0)

    def _pixels(self, image: Image) -> npt.NDArray[np.uint8]:
        # Twice as fast as NumPy's own way to a Pillow image.
        return self._as_pixels(image, image.tobytes())

    def _as_pixels(self, image: Image, content: bytes) -> npt.NDArray[np.uint8]:
        pixels = np.frombuffer(content, np.uint8).reshape(image.height, image.width, -1)
        return pixels[:, :, ::-1] if self._picture.colour == "BGR" else pixels

    def _point_table(self) -> list[int]:
        # Pillow wants the channels in the image's order, which is RGB whatever the memory order is.
        table = self.table[::-1] if self._picture.colour == "BGR" else self.table
        return [int(v) for v in table.view(np.uint8).ravel()]

    def _look_up(self, pixels: npt.NDArray[np.uint8], table: Array, target: Array) -> None:
        for channel in range(table.shape[0]):
            target[:, :, channel] = table[channel][pixels[:, :, channel]]


def _common_row(table: Array) -> bytes | None:
    """The bytes of one channel's table when all channels have the same: looking up is then one pass over bytes."""
    same = table.dtype.itemsize == 1 and bool((table == table[0]).all())
    return table[0].tobytes() if same else None


def _xor_constant(table: Array) -> int | None:
    """0 or 0x80 when XOR with it gives the whole table, else None."""
    if table.dtype.itemsize != 1:
        return None
    bits = table.view(np.uint8)
    for constant in (0, 0x80):
        if bool((bits == (np.arange(256, dtype=np.uint8) ^ constant)).all()):
            return constant
    return None
