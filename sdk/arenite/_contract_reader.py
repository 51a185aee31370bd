# SPDX-License-Identifier: Apache-2.0
"""Contract JSON to dataclasses, field by field."""

from __future__ import annotations

import json

import numpy as np

from arenite._fields import Fields
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

__all__ = ["parse_contract"]

_MAX_EXTENT = 1 << 24


def parse_contract(text: str | bytes, where: str | None = None) -> Contract:
    """Read and check a contract; see `Contract.from_json`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ContractError(
            f"the contract is not JSON ({error})", where=where, cure="Convert the model again."
        ) from error
    return _contract(Fields(content, where=where))


def _contract(fields: Fields) -> Contract:
    version = fields.integer("format", 0, 1 << 30)
    if version != FORMAT:
        raise fields.wrong("format", f"{FORMAT}, the version that this program knows", version)
    contract = Contract(
        name=fields.text("name"),
        input=_input(fields.child("input")),
        outputs=tuple(_output(child) for child in fields.children("outputs")),
        rounding=fields.text("rounding", ROUNDINGS),
        calibration=_calibration(fields.optional_child("calibration")),
        golden=_golden(fields.optional_child("golden")),
        tools=fields.strings_by_name("tools"),
    )
    fields.end()
    if not contract.outputs:
        raise fields.wrong("outputs", "a list of at least one output", [])
    return contract


def _input(fields: Fields) -> InputSpec:
    shape = fields.integers("shape", 1, _MAX_EXTENT)
    layout = fields.text("layout", LAYOUTS)
    dtype = fields.text("dtype", DTYPES)
    quantised = _quantised(fields, dtype)
    child = fields.optional_child("picture")
    if child is not None and (layout == "flat" or len(shape) != 4):
        raise fields.wrong("layout", "NHWC or NCHW with four dimensions for a picture", layout)
    picture = None if child is None else _picture(child, shape[3] if layout == "NHWC" else shape[1])
    spec = InputSpec(fields.text("name"), shape, layout, dtype, quantised, picture)
    fields.end()
    return spec


def _picture(fields: Fields, channels: int) -> Picture:
    colour = fields.text("colour", COLOURS)
    if channels != (1 if colour == "GREY" else 3):
        raise fields.wrong("colour", f"an order of {channels} channel(s), as the input has", colour)
    fraction = fields.number("crop_fraction", positive=True)
    if fraction > 1:
        raise fields.wrong("crop_fraction", "at most 1", fraction)
    picture = Picture(
        colour=colour,
        orientation=fields.text("orientation", ORIENTATIONS),
        crop=fields.text("crop", CROPS),
        crop_fraction=fraction,
        filter=fields.text("filter", FILTERS),
        normalisation=_normalisation(fields.child("normalisation"), channels),
    )
    fields.end()
    if picture.crop == "none" and fraction != 1:
        raise fields.wrong("crop_fraction", "1 when nothing is cropped", fraction)
    return picture


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
    elements = int(np.prod(shape, dtype=np.int64))
    if labels and len(labels) != elements:
        raise fields.wrong(
            "labels", f"empty or a list of {elements}, one for each element", f"{len(labels)} labels"
        )
    spec = OutputSpec(fields.text("name"), shape, dtype, quantised, fields.text("meaning", MEANINGS), labels)
    fields.end()
    return spec


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
