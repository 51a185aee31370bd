# SPDX-License-Identifier: Apache-2.0
"""Change fields of the contract that a model carries, or give it one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from arenite.contract import (
    CONTRACT_METADATA,
    GOLDEN_METADATA,
    Contract,
    checked_contract,
    contract_json,
    contract_of,
    make_contract,
    normalisation_for,
)
from arenite.errors import ContractError, UsageError
from arenite.golden import golden_of
from arenite.graph import Graph
from arenite.model_file import COREML_SUFFIXES, read_model
from arenite.onnx_model import with_onnx_contract
from arenite_converters.metadata import with_metadata
from arenite_converters.writing import write_whole

__all__ = ["ChangedField", "ContractEdit", "set_contract"]

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_CURE = "`arenite contract show` lists the fields; their values are in docs/contract.md."
_PICTURE = "input.picture"


@dataclass(frozen=True)
class ChangedField:
    """One field, as JSON values."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ContractEdit:
    """What `set_contract` wrote.

    Attributes:
        path: The new file.
        created: The model carried no contract.
        changed: Fields whose values differ, from those of a contract that says nothing where there was none.
        golden: What became of the golden vectors.
        contract: The whole, as JSON values.
    """

    path: str
    created: bool
    changed: tuple[ChangedField, ...]
    golden: str
    contract: Mapping[str, Any]


def set_contract(
    model: Path | str,
    out: Path | str,
    fields: Mapping[str, Any] | None = None,
    *,
    merge: Mapping[str, Any] | None = None,
) -> ContractEdit:
    """Write a copy of a model with other values in its contract; a model without one gets one.

    Golden vectors are tensors, so they stay when preprocessing or labels change; another rounding rule drops them.

    Args:
        model: A .tflite or .onnx file.
        out: The file to write; may be the same.
        fields: JSON values by names such as `input.picture.colour` or `outputs[0].labels`. A normalisation may be one
            of the names in `NORMALISATIONS`. Other fields keep their values: BGR for RGB does not turn a mean around.
        merge: A contract, whole or in part, as JSON values, applied before `fields`: objects field by field, anything
            else whole.

    Raises:
        ModelError: The file is no model.
        ContractError: The contract would be malformed or contradict the model. Nothing is written.
        UsageError: Nothing is to be changed, or a field cannot be.
        OutputError: The file cannot be written.
    """
    model, out = Path(model), Path(out)
    if not fields and not merge:
        raise UsageError("no field is to be changed", cure="Give --set FIELD=VALUE, --labels or --from.")
    if model.suffix.lower() in COREML_SUFFIXES:
        raise UsageError(
            "a Core ML model computes by its contract, so another contract needs another model",
            where=str(model),
            cure="Change the contract of what it is converted from, and convert it again.",
        )
    graph = read_model(model)
    before = contract_of(graph)
    golden_of(graph)  # what is damaged is refused, not copied
    base = before or make_contract(graph, name=model.stem)
    after, golden = _with_golden(base, _changed(base, fields or {}, merge or {}, graph))
    write_whole(out, _stamped(model.read_bytes(), graph, after))
    content = contract_json(after)
    changed = tuple(_differences("", contract_json(base), content))
    return ContractEdit(str(out), before is None, changed, golden, content)


def _changed(contract: Contract, fields: Mapping[str, Any], merge: Mapping[str, Any], graph: Graph) -> Contract:
    content = contract_json(contract)
    if content["input"]["picture"] is None and _speaks_of_picture(fields, merge):
        content["input"]["picture"] = _usual_picture(contract)
    _merge(content, merge)
    for name, value in fields.items():
        _assign(content, name, value)
    _name_normalisation(content)
    try:
        return checked_contract(Contract.from_json(json.dumps(content), graph.path), graph)
    except (TypeError, ValueError) as error:
        raise UsageError(f"a value is no JSON ({error})", cure=_CURE) from error
    except ContractError as error:
        raise ContractError(error.what, where=error.where, cure=_CURE) from error


def _speaks_of_picture(fields: Mapping[str, Any], merge: Mapping[str, Any]) -> bool:
    inside = merge.get("input")
    merged = isinstance(inside, Mapping) and isinstance(inside.get("picture"), Mapping)
    return merged or any(name.startswith(f"{_PICTURE}.") for name in fields)


def _usual_picture(contract: Contract) -> dict[str, Any]:
    """What `arenite.make_contract` assumes, without the normalisation, which nobody can guess."""
    channels = contract.input.shape[3 if contract.input.layout == "NHWC" else 1] if contract.input.shape[1:] else 0
    how = {"orientation": "exif", "crop": "none", "crop_fraction": 1.0, "filter": "bilinear"}
    return {"colour": "GREY" if channels == 1 else "RGB", **how}


def _merge(content: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        old = content.get(name)
        if isinstance(old, dict) and isinstance(value, Mapping):
            _merge(old, value)
        else:
            content[name] = value


def _assign(content: Any, name: str, value: Any) -> None:
    steps = [int(index) if index else word for word, index in _STEP.findall(name)]
    if not steps or _STEP.sub("", name).strip("."):
        raise UsageError(f"'{name}' is no name of a field", cure=_CURE)
    for step in steps[:-1]:
        content = _inside(content, step, name)
    if isinstance(content, list):
        _inside(content, steps[-1], name)
    elif not isinstance(content, dict) or isinstance(steps[-1], int):
        raise UsageError(f"the contract has no field '{name}'", cure=_CURE)
    content[steps[-1]] = value


def _inside(content: Any, step: str | int, name: str) -> Any:
    try:
        return content[step]
    except (KeyError, IndexError, TypeError) as error:
        raise UsageError(f"the contract has no field '{name}'", cure=_CURE) from error


def _name_normalisation(content: dict[str, Any]) -> None:
    """Numbers for a normalisation that is given by its name."""
    picture = content["input"].get("picture") if isinstance(content.get("input"), dict) else None
    if isinstance(picture, dict) and isinstance(picture.get("normalisation"), str):
        picture["normalisation"] = asdict(normalisation_for(picture["normalisation"], str(picture.get("colour"))))


def _with_golden(before: Contract, after: Contract) -> tuple[Contract, str]:
    """The contract with the entry of the vectors that stay true, and what became of them."""
    if after.golden is None:
        return after, "none" if before.golden is None else "dropped, as asked"
    if after.golden != before.golden:
        raise UsageError("golden vectors cannot be named, only dropped", cure="--set golden=null drops them.")
    if after.rounding != before.rounding:
        return replace(after, golden=None), f"dropped: they were rounded by the rule '{before.rounding}'"
    return after, f"kept, {after.golden.count} vectors by {after.golden.authority}"


def _stamped(content: bytes, graph: Graph, contract: Contract) -> bytes:
    if graph.format == "onnx":
        return with_onnx_contract(content, contract, graph.path)
    entries: dict[str, bytes | None] = {CONTRACT_METADATA: contract.to_json().encode()}
    if contract.golden is None:
        entries[GOLDEN_METADATA] = None
    return with_metadata(content, entries)


def _differences(name: str, before: Any, after: Any) -> list[ChangedField]:
    if isinstance(after, dict) and isinstance(before, dict | None):
        before = before or {}
        names = [*before, *(key for key in after if key not in before)]
        inside = (_differences(f"{name}.{key}" if name else key, before.get(key), after.get(key)) for key in names)
        return [field for fields in inside for field in fields]
    if _are_objects(before) and _are_objects(after) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [field for i, (a, b) in pairs for field in _differences(f"{name}[{i}]", a, b)]
    return [] if before == after else [ChangedField(name, before, after)]


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
