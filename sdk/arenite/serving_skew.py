# SPDX-License-Identifier: Apache-2.0
"""Training-serving skew: one picture through the libraries that models are trained with, and through ours.

Every route decodes, resizes, normalises and quantises by the model's contract; what a library cannot do as the contract
says (another resize filter, no EXIF turn) it does in its own way, and that is the skew. The exact mode is what all are
compared with, since calibration saw it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import InputSpec, Picture
from arenite.errors import UsageError
from arenite.labels import Label, dequantise, top
from arenite.preprocess import PictureSource, Preprocessor, read_picture
from arenite.session import Session

__all__ = ["Difference", "FastSkew", "Route", "SkewReport", "fast_skew", "measure_skew", "synthetic_picture"]

Array = npt.NDArray[Any]
STEPS = ("decode", "resize", "tensor")


@dataclass(frozen=True)
class Difference:
    """How far one step's result is from the exact mode's.

    Attributes:
        largest: Over all values: 8-bit levels of `decode` and `resize`, quantisation steps of `tensor` (real units of a
            float input). None when the extents differ.
        mean: The same, averaged.
        note: Extents that differ.
    """

    largest: float | None
    mean: float | None
    note: str = ""

    @property
    def differs(self) -> bool:
        """True when a single value is another one."""
        return self.largest is None or self.largest > 0


@dataclass(frozen=True)
class Route:
    """One way from the picture to the answer.

    Attributes:
        name: Library and filter.
        differences: Of each step.
        first: The first step that differs; None when none does.
        best: The label it leads to.
        same_answer: It is the exact mode's.
        score_change: Of the exact mode's best label.
        output_sqnr_db: The exact mode's output over the difference; None when there is none.
    """

    name: str
    differences: Mapping[str, Difference]
    first: str | None
    best: Label
    same_answer: bool
    score_change: float
    output_sqnr_db: float | None


@dataclass(frozen=True)
class SkewReport:
    """All routes that could be gone here.

    Attributes:
        best: The exact mode's label.
        routes: Ours in the mode `fast`, then those of other libraries.
        missing: Libraries that are not installed.
        same_answer: All routes lead to the same label.
    """

    model: str
    picture: str
    best: Label
    routes: tuple[Route, ...]
    missing: tuple[str, ...]
    same_answer: bool


@dataclass(frozen=True)
class FastSkew:
    """The mode `fast` against `exact` on one picture.

    Attributes:
        picture: Its name.
        resized: In 8-bit levels.
        tensor: In quantisation steps, or real units of a float input.
    """

    picture: str
    resized: Difference
    tensor: Difference


@dataclass(frozen=True)
class _Result:
    """What each step gave: uint8 H×W×3 in RGB order, real 8-bit-scale values of the input's extents, the tensor."""

    decode: Array
    resize: Array
    tensor: Array


def measure_skew(session: Session, picture: PictureSource) -> SkewReport:
    """Go every route that is installed.

    Args:
        session: The model.
        picture: A path or the bytes of a picture file.

    Raises:
        ContractError: The contract does not say how a picture becomes the input.
        UsageError: The picture is no file, or cannot be read or decoded.
    """
    content = read_picture(picture)
    if not isinstance(content, bytes):
        raise UsageError(f"a {type(content).__name__} is no picture file", cure="Give a path, or a file's bytes.")
    spec = session.preprocessor.spec
    exact = _ours(content, spec, "exact")
    answer = _run(session, exact.tensor)
    best = _best(session, answer)
    found = [(name, go(content, spec)) for name, go in _routes(spec).items()]
    routes = tuple(_route(session, name, exact, result, answer, best) for name, result in found)
    return SkewReport(
        model=session.path,
        picture=str(picture) if isinstance(picture, (str, Path)) else "picture given as bytes",
        best=best,
        routes=routes,
        missing=tuple(name for name, module in _LIBRARIES.items() if find_spec(module) is None),
        same_answer=all(route.same_answer for route in routes),
    )


def fast_skew(spec: InputSpec, picture: PictureSource | None = None) -> FastSkew:
    """The mode `fast` against `exact`, on a picture or on `synthetic_picture`."""
    content = synthetic_picture() if picture is None else read_picture(picture)
    exact, fast = (_ours(content, spec, mode) for mode in ("exact", "fast"))
    name = "a synthetic 1920×1080 JPEG" if picture is None else str(picture)
    return FastSkew(name, _difference(fast.resize, exact.resize), _difference(fast.tensor, exact.tensor))


def synthetic_picture() -> bytes:
    """A JPEG of 1920×1080 whose detail falls off as in photographs (amplitude over frequency); always the same."""
    from PIL import Image

    generator = np.random.default_rng(0)
    total = np.full((1080, 1920, 3), 128, np.float32)
    for octave in range(2, 9):
        noise = generator.integers(0, 256, (9 << (octave - 2), 16 << (octave - 2), 3), dtype=np.uint8)
        layer = Image.fromarray(noise).resize((1920, 1080), Image.Resampling.BICUBIC)
        total += (np.asarray(layer, np.float32) - 128) * (2.0 / octave**1.5)
    stream = io.BytesIO()
    Image.fromarray(np.clip(total, 0, 255).astype(np.uint8)).save(stream, "JPEG", quality=85)
    return stream.getvalue()


def _route(session: Session, name: str, exact: _Result, result: _Result, answer: Array, best: Label) -> Route:
    differences = {step: _difference(getattr(result, step), getattr(exact, step)) for step in STEPS}
    found = _run(session, result.tensor)
    label = _best(session, found)
    scores = [_score(session, values, best.index) for values in (answer, found)]
    return Route(
        name=name,
        differences=differences,
        first=next((step for step, difference in differences.items() if difference.differs), None),
        best=label,
        same_answer=label.index == best.index,
        score_change=scores[1] - scores[0],
        output_sqnr_db=_sqnr_db(session, answer, found),
    )


def _difference(found: Array, exact: Array) -> Difference:
    if found.shape != exact.shape:
        return Difference(None, None, f"{found.shape[1]}×{found.shape[0]} instead of {exact.shape[1]}×{exact.shape[0]}")
    apart = np.abs(found.astype(np.float64) - exact.astype(np.float64))
    return Difference(float(apart.max()), float(apart.mean()))


def _run(session: Session, tensor: Array) -> Array:
    session.input[...] = tensor
    session.run()
    return session.outputs[0].copy()


def _best(session: Session, values: Array) -> Label:
    return top(values, session.known_contract.outputs[0], 1)[0]


def _score(session: Session, values: Array, index: int) -> float:
    labels = top(values, session.known_contract.outputs[0], values.size)
    return next(label.score for label in labels if label.index == index)


def _sqnr_db(session: Session, exact: Array, found: Array) -> float | None:
    spec = session.known_contract.outputs[0]
    signal, noise = dequantise(exact, spec), dequantise(found, spec) - dequantise(exact, spec)
    power = float((noise**2).sum())
    return None if power == 0 else float(10 * np.log10(max(float((signal**2).sum()), 1e-300) / power))


def _ours(content: PictureSource, spec: InputSpec, mode: str) -> _Result:
    preprocessor = Preprocessor(spec, mode)
    decoded = preprocessor.decode(content)
    fitted = preprocessor.fit(decoded)
    tensor = preprocessor.tensor()
    preprocessor.write(fitted, tensor)
    return _Result(np.asarray(decoded.convert("RGB")), _three(np.asarray(fitted)), tensor)


def _three(pixels: Array) -> Array:
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


# Library: the module that is imported.
_LIBRARIES = {"OpenCV": "cv2", "TensorFlow": "tensorflow"}
_CV_FILTERS = {"bicubic": "CUBIC", "bilinear": "LINEAR", "box": "AREA", "lanczos": "LANCZOS4", "nearest": "NEAREST"}
_TF_FILTERS = {"bicubic": "bicubic", "bilinear": "bilinear", "box": "area", "lanczos": "lanczos5", "nearest": "nearest"}
_Go = Callable[[bytes, InputSpec], _Result]


def _routes(spec: InputSpec) -> dict[str, _Go]:
    """Every route that is installed, by name."""
    assert spec.picture is not None  # the exact mode has refused others
    wanted = spec.picture.filter
    found: dict[str, _Go] = {
        "Arenite, fast": partial(_ours, mode="fast"),
        f"Pillow, {wanted}": partial(_pillow, filter=wanted),
    }
    if wanted != "bicubic":
        found["Pillow, its default (bicubic)"] = partial(_pillow, filter="bicubic")
    if find_spec("cv2") is not None:
        for name in dict.fromkeys((_CV_FILTERS.get(wanted, "LINEAR"), "AREA")):
            found[f"OpenCV, INTER_{name}"] = partial(_opencv, interpolation=name)
    if find_spec("tensorflow") is not None:
        name = _TF_FILTERS.get(wanted, "bilinear")
        found[f"TensorFlow, {name}"] = partial(_tensorflow, method=name, antialias=False)
        if name not in ("area", "nearest"):
            found[f"TensorFlow, {name}, antialias"] = partial(_tensorflow, method=name, antialias=True)
    return found


def _pillow(content: bytes, spec: InputSpec, filter: str) -> _Result:
    from PIL import Image, ImageOps

    picture = _picture(spec)
    stored = Image.open(io.BytesIO(content))
    image = (ImageOps.exif_transpose(stored) if picture.orientation == "exif" else stored).convert("RGB")
    decoded = np.asarray(image)
    if picture.colour == "GREY":
        image = image.convert("L")
    resized = _cropped(np.asarray(image), spec)
    fitted = Image.fromarray(resized).resize(_extents(spec), Image.Resampling[filter.upper()])
    return _finish(decoded, np.asarray(fitted), spec)


def _opencv(content: bytes, spec: InputSpec, interpolation: str) -> _Result:
    import cv2

    picture = _picture(spec)
    flags = cv2.IMREAD_COLOR | (0 if picture.orientation == "exif" else cv2.IMREAD_IGNORE_ORIENTATION)
    decoded = cv2.imdecode(np.frombuffer(content, np.uint8), flags)
    if decoded is None:
        raise UsageError("OpenCV cannot decode the picture", cure="Give a JPEG, PNG or BMP file.")
    decoded = cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)
    image = cv2.cvtColor(decoded, cv2.COLOR_RGB2GRAY) if picture.colour == "GREY" else decoded
    method = getattr(cv2, f"INTER_{interpolation}")
    return _finish(decoded, cv2.resize(_cropped(image, spec), _extents(spec), interpolation=method), spec)


def _tensorflow(content: bytes, spec: InputSpec, method: str, antialias: bool) -> _Result:
    import tensorflow as tf

    try:
        decoded = tf.io.decode_image(content, channels=3, expand_animations=False)
    except tf.errors.InvalidArgumentError as error:
        raise UsageError("TensorFlow cannot decode the picture", cure="Give a JPEG, PNG or BMP file.") from error
    image = tf.image.rgb_to_grayscale(decoded) if _picture(spec).colour == "GREY" else decoded
    width, height = _extents(spec)
    fitted = tf.image.resize(_cropped(image.numpy(), spec), (height, width), method, antialias=antialias)
    return _finish(decoded.numpy(), fitted.numpy(), spec)


def _cropped(pixels: Array, spec: InputSpec) -> Array:
    """The contract's box, cut at whole pixels as scripts do."""
    height, width = pixels.shape[:2]
    left, top, right, bottom = (round(edge) for edge in Preprocessor(spec).box((width, height)))
    return np.ascontiguousarray(pixels[top:bottom, left:right])


def _finish(decoded: Array, fitted: Array, spec: InputSpec) -> _Result:
    """Normalise and quantise in float32, as training scripts write it."""
    picture, values = _picture(spec), _three(fitted).astype(np.float32)
    ordered = values[:, :, ::-1] if picture.colour == "BGR" else values
    how = picture.normalisation
    real = (ordered * np.float32(how.scale) - np.array(how.mean, np.float32)) / np.array(how.std, np.float32)
    if spec.quantised is not None:
        limits = np.iinfo(spec.dtype)
        steps = np.round(real / np.float32(spec.quantised.scale)) + spec.quantised.zero_point
        real = np.clip(steps, limits.min, limits.max).astype(spec.dtype)
    tensor = real if spec.layout == "NHWC" else real.transpose(2, 0, 1)
    return _Result(decoded, values, np.ascontiguousarray(tensor[None]))


def _extents(spec: InputSpec) -> tuple[int, int]:
    return Preprocessor(spec).size


def _picture(spec: InputSpec) -> Picture:
    assert spec.picture is not None
    return spec.picture
