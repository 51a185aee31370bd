# SPDX-License-Identifier: Apache-2.0
"""Contract JSON to dataclasses, field by field."""

from __future__ import annotations

import json
from functools import partial

import numpy as np

from arenite._fields import Fields
from arenite.boxes import BOX_ACTIVATIONS, BOX_FORMATS, BOX_LAYOUTS, BOX_UNITS, Boxes
from arenite.contract import (
    COLOURS,
    CROPS,
    DTYPES,
    FILTERS,
    FORMAT,
    LAYOUTS,
    MEANINGS,
    ORIENTATIONS,
    ROUNDINGS,
    Calibration,
    Contract,
    Golden,
    InputSpec,
    Normalisation,
    OutputSpec,
    Picture,
    Quantised,
)
from arenite.errors import ContractError

__all__ = ["parse_contract", "read_contract_text"]

_MAX_EXTENT = 1 << 24


def parse_contract(text: str | bytes, where: str | None = None) -> Contract:
    """Read and check a contract; see `Contract.from_json`."""
    found = read_contract_text(text, where)
    if isinstance(found, Contract):
        return found
    raise found[0]


def read_contract_text(text: str | bytes, where: str | None = None) -> Contract | list[ContractError]:
    """A contract, or all that is wrong with it: of each part the first mistake."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = f"the contract is not JSON ({error})"
        return [ContractError(problem, where=where, cure="Convert the model again.")]
    problems: list[ContractError] = []
    try:
        contract = _contract(Fields(content, where=where, problems=problems))
    except ContractError as error:
        return [*problems, error]
    return problems or contract


def _contract(fields: Fields) -> Contract:
    version = fields.integer("format", 0, 1 << 30)
    if version != FORMAT:
        raise fields.wrong("format", f"{FORMAT}, the version that this program knows", version)
    part = fields.part
    contract = Contract(
        name=part(lambda: fields.text("name")),
        input=part(lambda: _input(fields.child("input"))),
        outputs=tuple(part(partial(_output, child)) for child in part(lambda: fields.children("outputs")) or ()),
        rounding=part(lambda: fields.text("rounding", ROUNDINGS)),
        calibration=part(lambda: _calibration(fields.optional_child("calibration"))),
        golden=part(lambda: _golden(fields.optional_child("golden"))),
        tools=part(lambda: fields.strings_by_name("tools")),
    )
    part(fields.end)
    if not fields.problems:
        _check_scores(fields, contract.outputs)
        if not contract.outputs:
            raise fields.wrong("outputs", "a list of at least one output", [])
    return contract


def _input(fields: Fields) -> InputSpec:
    shape = fields.integers("shape", 1, _MAX_EXTENT)
    layout = fields.text("layout", LAYOUTS)
    dtype = fields.text("dtype", DTYPES)
    quantised = fields.part(lambda: _quantised(fields, dtype))
    child = fields.part(lambda: fields.optional_child("picture"))
    if child is not None and (layout == "flat" or len(shape) != 4):
        raise fields.wrong("layout", "NHWC or NCHW with four dimensions for a picture", layout)
    channels = 0 if child is None else shape[3] if layout == "NHWC" else shape[1]
    picture = None if child is None else fields.part(lambda: _picture(child, channels))
    spec = InputSpec(fields.text("name"), shape, layout, dtype, quantised, picture)
    fields.end()
    return spec


def _picture(fields: Fields, channels: int) -> Picture:
    part = fields.part
    picture = Picture(
        colour=part(lambda: _colour(fields, channels)),
        orientation=part(lambda: fields.text("orientation", ORIENTATIONS)),
        crop=part(lambda: fields.text("crop", CROPS)),
        crop_fraction=part(lambda: _crop_fraction(fields)),
        filter=part(lambda: fields.text("filter", FILTERS)),
        normalisation=part(lambda: _normalisation(fields.child("normalisation"), channels)),
    )
    fields.end()
    if picture.crop == "none" and picture.crop_fraction not in (None, 1):
        raise fields.wrong("crop_fraction", "1 when nothing is cropped", picture.crop_fraction)
    return picture


def _colour(fields: Fields, channels: int) -> str:
    colour = fields.text("colour", COLOURS)
    if channels != (1 if colour == "GREY" else 3):
        raise fields.wrong("colour", f"an order of {channels} channel(s), as the input has", colour)
    return colour


def _crop_fraction(fields: Fields) -> float:
    fraction = fields.number("crop_fraction", positive=True)
    if fraction > 1:
        raise fields.wrong("crop_fraction", "at most 1", fraction)
    return fraction


def _normalisation(fields: Fields, channels: int) -> Normalisation:
    scale = fields.number("scale", positive=True)
    mean, std = fields.numbers("mean"), fields.numbers("std", positive=True)
    for name, values in (("mean", mean), ("std", std)):
        if len(values) != channels:
            raise fields.wrong(name, f"a list of {channels} number(s), one for each channel", list(values))
    fields.end()
    return Normalisation(scale, mean, std)


def _output(fields: Fields) -> OutputSpec:
    shape = fields.integers("shape", 1, _MAX_EXTENT)
    dtype = fields.text("dtype", DTYPES)
    quantised = _quantised(fields, dtype)
    labels = fields.texts("labels")
    meaning = fields.text("meaning", MEANINGS)
    boxes = _boxes(fields.child("boxes"), shape) if meaning == "boxes" else None
    _check_labels(fields, labels, shape, boxes)
    spec = OutputSpec(fields.text("name"), shape, dtype, quantised, meaning, labels, boxes)
    fields.end()
    return spec


def _check_labels(fields: Fields, labels: tuple[str, ...], shape: tuple[int, ...], boxes: Boxes | None) -> None:
    if boxes is not None and boxes.scores_output is not None:
        return  # as many as the other output has scores: checked with all outputs
    count = int(np.prod(shape, dtype=np.int64)) if boxes is None else boxes.classes(shape)
    if labels and len(labels) != count:
        each = "element" if boxes is None else "class"
        raise fields.wrong("labels", f"empty or a list of {count}, one for each {each}", f"{len(labels)} labels")


def _boxes(fields: Fields, shape: tuple[int, ...]) -> Boxes:
    scores = fields.take("scores_output")
    boxes = Boxes(
        format=fields.text("format", BOX_FORMATS),
        units=fields.text("units", BOX_UNITS),
        layout=fields.text("layout", BOX_LAYOUTS),
        objectness=fields.flag("objectness"),
        activation=fields.text("activation", BOX_ACTIVATIONS),
        scores_output=None if scores is None else fields.integer("scores_output", 0, 255),
    )
    fields.end()
    if len(shape) != 3 or shape[0] != 1:
        raise fields.wrong("layout", "of an output [1, boxes, numbers] or [1, numbers, boxes]", list(shape))
    least = 4 + boxes.objectness + (boxes.scores_output is None)
    if boxes.numbers(shape) < least:
        raise fields.wrong("layout", f"one that gives each box {least} numbers or more", boxes.layout)
    return boxes


def _check_scores(fields: Fields, outputs: tuple[OutputSpec, ...]) -> None:
    """An output of scores must be there, hold a row for each box, and have a label for each class if any."""
    for i, spec in enumerate(outputs):
        boxes = spec.boxes
        if boxes is None or boxes.scores_output is None:
            continue
        place = f"outputs[{i}].boxes.scores_output"
        if boxes.scores_output == i or boxes.scores_output >= len(outputs):
            raise fields.wrong(place, "the place of another output", boxes.scores_output)
        shape = outputs[boxes.scores_output].shape
        axis = 1 if boxes.layout == "rows" else 2
        if len(shape) != 3 or shape[0] != 1 or shape[axis] != spec.shape[axis]:
            raise fields.wrong(place, f"that of an output with {spec.shape[axis]} boxes", list(shape))
        classes = boxes.numbers(shape)
        if spec.labels and len(spec.labels) != classes:
            expected = f"empty or a list of {classes}, one for each class"
            raise fields.wrong(f"outputs[{i}].labels", expected, f"{len(spec.labels)} labels")


def _quantised(fields: Fields, dtype: str) -> Quantised | None:
    child = fields.optional_child("quantised")
    if child is None:
        if dtype in ("int8", "uint8"):
            raise fields.wrong("quantised", f"given for {dtype}", None)
        return None
    if dtype == "float32":
        raise fields.wrong("quantised", "null for float32", "given")
    limits = np.iinfo(dtype)
    quantised = Quantised(
        child.number("scale", positive=True), child.integer("zero_point", int(limits.min), int(limits.max))
    )
    child.end()
    return quantised


def _calibration(fields: Fields | None) -> Calibration | None:
    if fields is None:
        return None
    found = Calibration(
        fields.text("digest"),
        fields.integer("samples", 1, 1 << 40),
        fields.number("low"),
        fields.number("high"),
    )
    fields.end()
    if found.low > found.high:
        raise fields.wrong("low", "at most high", found.low)
    return found


def _golden(fields: Fields | None) -> Golden | None:
    if fields is None:
        return None
    found = Golden(fields.integer("count", 1, 1 << 20), fields.text("authority"), fields.text("sha256"))
    fields.end()
    return found
