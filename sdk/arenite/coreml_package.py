# SPDX-License-Identifier: Apache-2.0
"""Read a Core ML package without Core ML and without coremltools, on any machine.

Field numbers are those of Model.proto and FeatureTypes.proto (Model, ModelDescription, Metadata, FeatureDescription,
FeatureType, ArrayFeatureType, ImageFeatureType).

A package of Arenite's has a picture as input where its contract has one: Core ML hands the program 8-bit values and
the program normalises them. Its contract says what it says in a TFLite file, so the tensor that a session fills holds
real values, and `eight_bit` turns them back.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from arenite._protobuf import Message, fields, integers, text
from arenite.contract import CONTRACT_METADATA, Contract, Normalisation
from arenite.errors import ModelError
from arenite.graph import Graph, Tensor, printable

__all__ = [
    "CoreMlFile",
    "Feature",
    "PRECISIONS",
    "content_digest",
    "coreml_metadata",
    "eight_bit",
    "parsed",
    "read_coreml",
    "read_package",
]

Array = npt.NDArray[Any]
PRECISIONS = ("float16", "w8", "w8a8", "palettised")
_Read = TypeVar("_Read")
_DESCRIPTION, _PROGRAM = 2, 502
_INPUTS, _OUTPUTS, _METADATA, _USER_DEFINED, _TYPE = 1, 10, 100, 100, 3
_KINDS = {3: "text", 4: "picture", 5: "array", 6: "scores"}
_DTYPES = {65552: "float16", 65568: "float32", 65600: "float64", 131104: "int32"}
_DAMAGE = (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, OverflowError)


@dataclass(frozen=True)
class Feature:
    """An input or output of a package.

    Attributes:
        kind: `array`, `picture`, `text` (the best class) or `scores` (each class's by its label).
        shape: Of an array; (height, width) of a picture.
        dtype: Of an array, else ''.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class CoreMlFile:
    """A .mlpackage or .mlmodel.

    Attributes:
        metadata: What its maker wrote, by name.
        program: The ML Program, a message of MIL.proto; None for a model of another kind.
        weights: The blobs that the program refers to.
    """

    path: Path
    inputs: tuple[Feature, ...]
    outputs: tuple[Feature, ...]
    metadata: Mapping[str, str]
    program: memoryview | None
    weights: bytes


def read_package(path: Path) -> CoreMlFile:
    """Description, metadata, program and weights of a .mlpackage or .mlmodel.

    Raises:
        ModelError: It is none, or damaged.
    """
    return parsed(path, lambda: _read(path))


def coreml_metadata(path: Path) -> Mapping[str, bytes]:
    """What the maker of a .mlpackage or .mlmodel wrote, by name; see `read_package`."""
    return {name: content.encode() for name, content in read_package(path).metadata.items()}


def parsed(path: Path, read: Callable[[], _Read]) -> _Read:
    """What `read` returns; what it stumbles over in a file's bytes becomes a ModelError."""
    try:
        return read()
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(
            f"cannot read the package: {error.strerror or error}", where=str(path), cure="Check the path."
        ) from error
    except _DAMAGE as error:
        raise ModelError(
            f"no Core ML package, or damaged ({error or type(error).__name__})",
            where=str(path),
            cure="Convert or copy it again.",
        ) from error


def _read(path: Path) -> CoreMlFile:
    model_file = _model_file(path) if path.is_dir() else path
    weights = model_file.parent / "weights" / "weight.bin"
    model = fields(memoryview(model_file.read_bytes()))
    description = fields(model[_DESCRIPTION][0])
    metadata = fields(description[_METADATA][0]) if _METADATA in description else {}
    return CoreMlFile(
        path=path,
        inputs=tuple(_feature(fields(entry)) for entry in description.get(_INPUTS, [])),
        outputs=tuple(_feature(fields(entry)) for entry in description.get(_OUTPUTS, [])),
        metadata={text(entry, 1): text(entry, 2) for entry in map(fields, metadata.get(_USER_DEFINED, []))},
        program=model[_PROGRAM][0] if _PROGRAM in model else None,
        weights=weights.read_bytes() if weights.is_file() else b"",
    )


def _model_file(package: Path) -> Path:
    manifest = json.loads((package / "Manifest.json").read_text(encoding="utf-8"))
    found: Path = package / "Data" / manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"]
    if package.resolve() not in found.resolve().parents:
        raise ValueError("its manifest points outside")
    return found


def _feature(entry: Message) -> Feature:
    number, message = next((n, fields(values[0])) for n, values in fields(entry[_TYPE][0]).items() if n in _KINDS)
    shape: tuple[int, ...] = ()
    dtype = ""
    if _KINDS[number] == "array":
        shape, dtype = tuple(integers(message.get(1, []))), _DTYPES[message[2][0]]
    elif _KINDS[number] == "picture":
        shape = (int(message[2][0]), int(message[1][0]))
    return Feature(text(entry, 1), _KINDS[number], shape, dtype)


def content_digest(package: CoreMlFile) -> str:
    """SHA-256 over program and weights; the metadata is left out."""
    program = bytes(package.program or b"")
    return hashlib.sha256(len(program).to_bytes(8, "little") + program + package.weights).hexdigest()


def read_coreml(path: Path) -> Graph:
    """Inputs, outputs and metadata of a .mlpackage or .mlmodel.

    Raises:
        ModelError: No Core ML model, or one whose pictures or scores no contract explains.
    """
    package = read_package(path)
    text = package.metadata.get(CONTRACT_METADATA)
    contract = None if text is None else Contract.from_json(text, str(path))
    inputs = [_input(i, feature, contract, path) for i, feature in enumerate(package.inputs)]
    chosen = [feature for feature in package.outputs if feature.kind != "text"]
    outputs = [_output(len(inputs) + i, feature, contract, path) for i, feature in enumerate(chosen)]
    return Graph(
        path=str(path),
        sha256=hashlib.sha256(content_digest(package).encode() + repr(package.metadata).encode()).hexdigest(),
        tensors=(*inputs, *outputs),
        operators=(),
        inputs=tuple(range(len(inputs))),
        outputs=tuple(range(len(inputs), len(inputs) + len(outputs))),
        metadata=coreml_metadata(path),
        format="coreml",
    )


def _input(index: int, feature: Feature, contract: Contract | None, path: Path) -> Tensor:
    if feature.kind == "array":
        return Tensor(index, feature.name, feature.shape, feature.dtype, None, None)
    if feature.kind == "picture" and contract is not None and contract.input.picture is not None:
        return Tensor(index, feature.name, contract.input.shape, "float32", None, None)
    raise _unexplained(feature, path)


def _output(index: int, feature: Feature, contract: Contract | None, path: Path) -> Tensor:
    if feature.kind == "array":
        return Tensor(index, feature.name, feature.shape, feature.dtype, None, None)
    if feature.kind == "scores" and contract is not None and contract.outputs[0].labels:
        return Tensor(index, feature.name, contract.outputs[0].shape, "float32", None, None)
    raise _unexplained(feature, path)


def _unexplained(feature: Feature, path: Path) -> ModelError:
    return ModelError(
        f"'{printable(feature.name)}' is a {feature.kind}, no array, and no contract says what it holds",
        where=str(path),
        cure="Convert the model with `arenite convert`, or with arrays as inputs and outputs.",
    )


def eight_bit(real: Array, normalisation: Normalisation) -> npt.NDArray[np.uint8]:
    """The 8-bit values that a normalisation makes these real values of: the way back of `preprocess.value_table`.

    Args:
        real: [..., channels]; what no 8-bit value gives is rounded to the nearest.
        normalisation: Of the contract.
    """
    mean, std = np.asarray(normalisation.mean), np.asarray(normalisation.std)
    values = (real.astype(np.float64) * std + mean) / normalisation.scale
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)
