# SPDX-License-Identifier: Apache-2.0
"""The contract that a model carries: how a picture becomes its input tensor and what its output means.

A contract is JSON in the TFLite file's metadata under the name `ARENITE_CONTRACT`. Everything that makes an
input tensor, be it calibration, a session or firmware, reads it from there. A picture becomes a tensor in
this order:

    decode -> turn upright (orientation) -> colour -> crop -> resize -> (x * scale - mean) / std -> quantise

Numbers are those of Pillow's 8-bit resize and of the TFLite reference's QUANTIZE: round(real / scale) half
away from zero in float32, plus the zero point, clamped to the type. `docs/contract.md` describes each
field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from arenite._fields import wrong
from arenite.boxes import Boxes
from arenite.errors import ContractError
from arenite.graph import CONTRACT_METADATA, Graph, Tensor
from arenite.model_file import COREML_SUFFIXES, read_model

__all__ = [
    "CLASS_MEANINGS",
    "COLOURS",
    "CONTRACT_METADATA",
    "CROPS",
    "Calibration",
    "Contract",
    "FILTERS",
    "FORMAT",
    "GOLDEN_METADATA",
    "Golden",
    "InputSpec",
    "MEANINGS",
    "NORMALISATIONS",
    "Normalisation",
    "OutputSpec",
    "Picture",
    "Quantised",
    "check_contract",
    "checked_contract",
    "contract_of",
    "contradictions",
    "make_contract",
    "read_contract",
]

FORMAT = 1
GOLDEN_METADATA = "ARENITE_GOLDEN"

COLOURS = ("RGB", "BGR", "GREY")
FILTERS = ("bicubic", "bilinear", "box", "hamming", "lanczos", "nearest")
CROPS = ("none", "centre")
ORIENTATIONS = ("exif", "stored")
MEANINGS = ("boxes", "logits", "probabilities", "values")
# What an output of one score a class may mean.
CLASS_MEANINGS = MEANINGS[1:]
ROUNDINGS = ("double", "single", "float")
LAYOUTS = ("NHWC", "NCHW", "flat")
DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float32")


@dataclass(frozen=True)
class Quantised:
    """real = scale × (q - zero_point). `scale` is the float32 of the model file."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class Normalisation:
    """real = (x × scale - mean[c]) / std[c] of an 8-bit value x of channel c, in the input's colour order.

    Attributes:
        scale: Factor of the 8-bit value.
        mean: One value for each channel.
        std: One value above 0 for each channel.
    """

    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def range(self) -> tuple[float, float]:
        """The lowest and the highest real value that an 8-bit picture can give."""
        ends = [(x * self.scale - m) / s for x in (0, 255) for m, s in zip(self.mean, self.std, strict=True)]
        return min(ends), max(ends)


@dataclass(frozen=True)
class Picture:
    """How a picture is made fit.

    Attributes:
        colour: Order of the channels in memory: RGB, BGR or GREY.
        orientation: `exif` turns the picture as its EXIF tag says, `stored` takes the pixels as they lie.
        crop: `none` stretches the whole picture, `centre` takes the largest centred box with the input's
            aspect.
        crop_fraction: Part of that box's sides that is kept, above 0 and at most 1.
        filter: Pillow's antialiasing resize filter.
        normalisation: From 8-bit values to real values.
    """

    colour: str
    orientation: str
    crop: str
    crop_fraction: float
    filter: str
    normalisation: Normalisation


@dataclass(frozen=True)
class InputSpec:
    """The input tensor; `picture` is None when the input is no picture."""

    name: str
    shape: tuple[int, ...]
    layout: str
    dtype: str
    quantised: Quantised | None
    picture: Picture | None


@dataclass(frozen=True)
class OutputSpec:
    """One output tensor.

    Attributes:
        labels: Empty, or one text for each element; of boxes, for each class.
        boxes: What the numbers mean when `meaning` is `boxes`, else None.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    quantised: Quantised | None
    meaning: str
    labels: tuple[str, ...]
    boxes: Boxes | None = None


@dataclass(frozen=True)
class Calibration:
    """What the ranges were taken from.

    Attributes:
        digest: SHA-256 over the float32 samples in order, as they were fed.
        samples: How many.
        low: Lowest real input value seen.
        high: Highest real input value seen.
    """

    digest: str
    samples: int
    low: float
    high: float


@dataclass(frozen=True)
class Golden:
    """Reference vectors in the metadata `ARENITE_GOLDEN`, an .npz of `inputs` and `outputs`, [count, ...].

    Attributes:
        count: How many vectors.
        authority: Program and version that computed the outputs.
        sha256: Of the .npz bytes.
    """

    count: int
    authority: str
    sha256: str


@dataclass(frozen=True)
class Contract:
    """All that a model promises beside its graph.

    Attributes:
        rounding: Rule by which golden outputs are computed; those of other rules are never written.
    """

    name: str
    input: InputSpec
    outputs: tuple[OutputSpec, ...]
    rounding: str = "double"
    calibration: Calibration | None = None
    golden: Golden | None = None
    tools: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Sorted JSON, the same bytes for the same contract."""
        fields = {"format": FORMAT, **asdict(self)}
        for output in fields["outputs"]:
            if output["boxes"] is None:
                del output["boxes"]  # as readers that do not know boxes want it
        return json.dumps(fields, sort_keys=True, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, where: str | None = None) -> Contract:
        """Read and check a contract.

        Args:
            text: JSON.
            where: File named in messages.

        Raises:
            ContractError: Not JSON, or a field is missing, unknown or out of range.
        """
        from arenite._contract_reader import parse_contract

        return parse_contract(text, where)


NORMALISATIONS: Mapping[str, tuple[float, tuple[float, float, float], tuple[float, float, float]]] = {
    # name: scale, mean and std of R, G, B
    "imagenet": (1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "raw": (1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "symmetric": (1 / 127.5, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
    "unit": (1 / 255, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}


def normalisation_for(choice: str | Normalisation, colour: str) -> Normalisation:
    """The normalisation of a name in `NORMALISATIONS`, its channels in the order of `colour`.

    Raises:
        ContractError: The name is unknown, or the channel counts differ.
    """
    channels = 1 if colour == "GREY" else 3
    if isinstance(choice, Normalisation):
        if len(choice.mean) != channels or len(choice.std) != channels:
            cure = f"Give {channels} number(s) each as mean and std."
            expected = f"{channels} numbers for {colour}"
            raise wrong("input.picture.normalisation.mean", expected, choice.mean, cure=cure)
        return choice
    if choice not in NORMALISATIONS:
        names = ", ".join(NORMALISATIONS)
        cure = f"Choose {names}, or give a Normalisation of your own."
        raise wrong("input.picture.normalisation", f"one of {names}", choice, cure=cure)
    scale, mean, std = NORMALISATIONS[choice]
    if colour == "GREY":
        if len(set(mean)) > 1 or len(set(std)) > 1:
            expected = "one with a single mean for a grey input"
            cure = "Choose symmetric, unit or raw, or give a Normalisation with one mean and one std."
            raise wrong("input.picture.normalisation", expected, choice, cure=cure)
        return Normalisation(scale, mean[:1], std[:1])
    step = -1 if colour == "BGR" else 1
    return Normalisation(scale, tuple(mean[::step]), tuple(std[::step]))


def make_contract(
    graph: Graph,
    *,
    name: str = "model",
    normalisation: str | Normalisation | None = None,
    colour: str | None = None,
    crop: str = "none",
    crop_fraction: float = 1.0,
    filter: str = "bilinear",
    orientation: str = "exif",
    meaning: str = "values",
    labels: Sequence[str] = (),
    boxes: Boxes | None = None,
) -> Contract:
    """A contract for a model that carries none; shapes, types and quantisation come from the graph.

    Args:
        graph: The model.
        name: What to call it.
        normalisation: A name (`symmetric` is x/127.5-1, `unit` x/255, `imagenet`, `raw`) or numbers; None
            when the input is no picture.
        colour: RGB, BGR or GREY; by default RGB for three channels and GREY for one.
        crop: See `Picture`, as for `crop_fraction`, `filter` and `orientation`.
        meaning: logits, probabilities or values, of the first output.
        labels: One text for each element of the first output (of boxes: for each class), or none.
        boxes: The first output holds boxes, and this is what their numbers mean.

    Raises:
        ContractError: An argument contradicts the model.
    """
    if len(graph.inputs) != 1:
        raise wrong("input", "the only input of the model", f"{len(graph.inputs)} inputs")
    tensor = graph.tensors[graph.inputs[0]]
    layout = _layout(tensor.shape)
    picture = None
    if normalisation is not None:
        if layout == "flat":
            raise wrong("input.shape", "a picture, N×H×W×C or N×C×H×W with 1 or 3 channels", tensor.shape)
        channels = tensor.shape[3] if layout == "NHWC" else tensor.shape[1]
        colour = colour or ("GREY" if channels == 1 else "RGB")
        picture = Picture(
            colour, orientation, crop, crop_fraction, filter, normalisation_for(normalisation, colour)
        )
    outputs = [
        OutputSpec(
            t.name,
            t.shape,
            t.dtype,
            quantised_of(t),
            ("values" if i else "boxes" if boxes is not None else meaning),
            tuple(labels) if i == 0 else (),
            boxes if i == 0 else None,
        )
        for i, t in enumerate(graph.tensors[index] for index in graph.outputs)
    ]
    contract = Contract(
        name,
        InputSpec(tensor.name, tensor.shape, layout, tensor.dtype, quantised_of(tensor), picture),
        tuple(outputs),
    )
    try:
        return checked_contract(contract, graph)
    except ContractError as error:
        # A file's contract has the same messages, but here it is an argument that must change.
        raise ContractError(error.what, where=error.where, cure="Change the argument that it names.") from error


def checked_contract(contract: Contract, graph: Graph) -> Contract:
    """The contract, checked as one in a file is: each field, and against the model's tensors.

    Raises:
        ContractError: A field is no plain value or out of range, or contradicts the model.
    """
    if not isinstance(contract, Contract):
        raise ContractError(
            f"a {type(contract).__name__} was given as the contract",
            where=graph.path,
            cure="Give what arenite.make_contract or Contract.from_json returns.",
        )
    read = Contract.from_json(_json_or_error(contract, graph.path), graph.path)
    check_contract(read, graph)
    return read


def _json_or_error(contract: Contract, where: str) -> str:
    try:
        return contract.to_json()
    except (TypeError, ValueError) as error:
        raise ContractError(
            f"the contract cannot be written as JSON ({error})",
            where=where,
            cure="Give finite plain numbers and texts.",
        ) from error


def read_contract(path: Path | str) -> Contract | None:
    """The contract in a model file, None when it carries none.

    Args:
        path: A .tflite, .onnx, .mlpackage or .mlmodel file. Of Core ML models the metadata alone is read, anywhere, and
            the contract is not compared with the tensors.

    Raises:
        ModelError: The file is no such model.
        ContractError: The contract is malformed or contradicts the model.
    """
    path = Path(path)
    if path.suffix.lower() in COREML_SUFFIXES:
        from arenite.coreml_package import coreml_metadata

        text = coreml_metadata(path).get(CONTRACT_METADATA)
        return None if text is None else Contract.from_json(text, str(path))
    return contract_of(read_model(path))


def contract_of(graph: Graph) -> Contract | None:
    """The contract in a model's metadata, checked against the model; None when it carries none."""
    text = graph.metadata.get(CONTRACT_METADATA)
    if text is None:
        return None
    contract = Contract.from_json(text, graph.path)
    check_contract(contract, graph)
    return contract


def check_contract(contract: Contract, graph: Graph) -> None:
    """Compare a contract with the tensors of its model.

    Raises:
        ContractError: A shape, type or quantisation differs, or the layout does not fit the shape.
    """
    for contradiction in contradictions(contract, graph):
        raise contradiction


def contradictions(contract: Contract, graph: Graph) -> Iterator[ContractError]:
    """All that `check_contract` finds wrong."""
    if len(graph.inputs) != 1:
        yield wrong("input", "the only input of the model", f"{len(graph.inputs)} inputs", graph.path)
        return
    yield from _in_tensor("input", contract.input, graph.tensors[graph.inputs[0]], graph.path)
    yield from _in_layout(contract.input, graph.path)
    if len(contract.outputs) != len(graph.outputs):
        yield wrong("outputs", f"a list of {len(graph.outputs)}", len(contract.outputs), graph.path)
        return
    for i, spec in enumerate(contract.outputs):
        yield from _in_tensor(f"outputs[{i}]", spec, graph.tensors[graph.outputs[i]], graph.path)


def _in_tensor(path: str, spec: InputSpec | OutputSpec, tensor: Tensor, where: str) -> Iterator[ContractError]:
    if spec.shape != tensor.shape:
        yield wrong(f"{path}.shape", f"{list(tensor.shape)} as in the model", list(spec.shape), where)
    if spec.dtype != tensor.dtype:
        yield wrong(f"{path}.dtype", f"'{tensor.dtype}' as in the model", spec.dtype, where)
    elif spec.quantised != quantised_of(tensor):
        yield wrong(f"{path}.quantised", f"{quantised_of(tensor)} as in the model", spec.quantised, where)


def _in_layout(spec: InputSpec, where: str) -> Iterator[ContractError]:
    if spec.layout == "flat":
        return
    channels = {"NHWC": 3, "NCHW": 1}[spec.layout]
    if len(spec.shape) != 4 or spec.shape[channels] not in (1, 3):
        yield wrong("input.layout", f"'{_layout(spec.shape)}' for {list(spec.shape)}", spec.layout, where)


def quantised_of(tensor: Tensor) -> Quantised | None:
    """A tensor's scale and zero point; None of float32."""
    quantisation = tensor.quantisation
    if quantisation is None or tensor.dtype == "float32":
        return None
    return Quantised(float(np.float32(quantisation.scales[0])), int(quantisation.zero_points[0]))


def _layout(shape: tuple[int, ...]) -> str:
    if len(shape) == 4 and shape[3] in (1, 3):
        return "NHWC"
    if len(shape) == 4 and shape[1] in (1, 3):
        return "NCHW"
    return "flat"


def contract_json(contract: Contract) -> dict[str, Any]:
    """The contract as plain JSON values."""
    return dict(json.loads(contract.to_json()))
