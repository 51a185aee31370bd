# SPDX-License-Identifier: Apache-2.0
"""The contract: what it says survives the file, and every wrong field is named."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.contract import (
    CONTRACT_METADATA,
    GOLDEN_METADATA,
    NORMALISATIONS,
    Contract,
    Golden,
    Normalisation,
    contract_of,
    make_contract,
    normalisation_for,
)
from arenite.errors import AreniteError, ContractError
from arenite.golden import golden_of
from arenite.graph import Graph
from arenite.tflite_graph import parse_graph
from support.builder import ModelBuilder

SCALE = float(np.float32(1 / 127.5))


def picture_model(channels: int = 3, classes: int = 4, metadata: dict[str, bytes] | None = None) -> bytes:
    """8×8 picture -> FULLY_CONNECTED -> classes."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 8, 8, channels), "int8", scales=[SCALE], zero_points=[-1])
    weights = rng.integers(-127, 128, (classes, 64 * channels)).astype(np.int8)
    w = builder.tensor("w", weights.shape, "int8", scales=[0.01], zero_points=[0], data=weights)
    b = builder.tensor("b", (classes,), "int32", scales=[0.01 * SCALE], data=np.zeros(classes, np.int32))
    y = builder.tensor("y", (1, classes), "int8", scales=[0.5], zero_points=[3])
    builder.operator("FULLY_CONNECTED", [x, w, b], [y], options="FullyConnectedOptions")
    for name, content in (metadata or {}).items():
        builder.metadata(name, content)
    return builder.finish([x], [y])


@pytest.fixture(scope="module")
def graph() -> Graph:
    return parse_graph(picture_model(), "model.tflite")


@pytest.fixture(scope="module")
def contract(graph: Graph) -> Contract:
    return make_contract(graph, normalisation="symmetric", labels=("a", "b", "c", "d"), meaning="logits")


def test_survives_the_file(contract: Contract) -> None:
    model = picture_model(metadata={CONTRACT_METADATA: contract.to_json().encode()})
    assert contract_of(parse_graph(model)) == contract


def test_same_contract_same_bytes(contract: Contract) -> None:
    assert Contract.from_json(contract.to_json()).to_json() == contract.to_json()


def test_no_contract_is_none(graph: Graph) -> None:
    assert contract_of(graph) is None


def test_quantisation_is_the_models(contract: Contract) -> None:
    assert contract.input.quantised is not None
    assert np.float32(contract.input.quantised.scale) == np.float32(1 / 127.5)
    assert contract.input.quantised.zero_point == -1


def edit(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Sets the field at `a.b.0` of a JSON object."""

    def apply(content: Any) -> None:
        *parents, last = path.split(".")
        for name in parents:
            content = content[int(name)] if isinstance(content, list) else content[name]
        content[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("format", 2, "'format'"),
        ("format", "1", "'format'"),
        ("format", True, "'format'"),
        ("name", 3, "'name'"),
        ("input", [], "'input'"),
        ("input.shape", [1, 8, 8, -1], r"'input.shape\[3\]'"),
        ("input.shape", [1, 8, 8, 2**40], r"'input.shape\[3\]'"),
        ("input.shape", "8x8", "'input.shape'"),
        ("input.layout", "HWC", "'input.layout'"),
        ("input.layout", "flat", "'input.layout'"),
        ("input.dtype", "int4", "'input.dtype'"),
        ("input.quantised", None, "'input.quantised'"),
        ("input.quantised.scale", 0, "'input.quantised.scale'"),
        ("input.quantised.scale", float("nan"), "'input.quantised.scale'"),
        ("input.quantised.scale", 10**400, "'input.quantised.scale'"),
        ("input.quantised.zero_point", 200, "'input.quantised.zero_point'"),
        ("input.quantised.zero_point", 0.5, "'input.quantised.zero_point'"),
        ("input.picture.colour", "GREY", "'input.picture.colour'"),
        ("input.picture.colour", "RGBA", "'input.picture.colour'"),
        ("input.picture.filter", "cubic", "'input.picture.filter'"),
        ("input.picture.crop", "left", "'input.picture.crop'"),
        ("input.picture.crop_fraction", 1.5, "'input.picture.crop_fraction'"),
        ("input.picture.crop_fraction", 0.5, "'input.picture.crop_fraction'"),
        ("input.picture.orientation", "left", "'input.picture.orientation'"),
        ("input.picture.normalisation.mean", [1.0], "'input.picture.normalisation.mean'"),
        ("input.picture.normalisation.std", [1.0, 0.0, 1.0], r"'input.picture.normalisation.std\[1\]'"),
        ("input.picture.normalisation.scale", float("inf"), "'input.picture.normalisation.scale'"),
        ("outputs", [], "'outputs'"),
        ("outputs.0.labels", ["a"], r"'outputs\[0\].labels'"),
        ("outputs.0.labels", ["a", "b", "c", 4], r"'outputs\[0\].labels\[3\]'"),
        ("outputs.0.meaning", "odds", r"'outputs\[0\].meaning'"),
        ("rounding", "up", "'rounding'"),
        ("calibration", {"digest": "d", "samples": 0, "low": 0, "high": 1}, "'calibration.samples'"),
        ("calibration", {"digest": "d", "samples": 1, "low": 2, "high": 1}, "'calibration.low'"),
        ("golden", {"count": 1, "authority": "x"}, "'golden.sha256'"),
        ("tools", {"numpy": 2}, "'tools.numpy'"),
        ("surprise", 1, "'surprise'"),
        ("input.picture.gamma", 2.2, "'input.picture.gamma'"),
    ],
)
def test_wrong_field_is_named(contract: Contract, path: str, value: Any, named: str) -> None:
    content = json.loads(contract.to_json())
    edit(path, value)(content)
    with pytest.raises(ContractError, match=named) as caught:
        Contract.from_json(json.dumps(content), "model.tflite")
    assert caught.value.where == "model.tflite"
    assert caught.value.cure


@pytest.mark.parametrize(
    "name", ["format", "name", "input", "outputs", "rounding", "calibration", "golden", "tools"]
)
def test_missing_field_is_named(contract: Contract, name: str) -> None:
    content = json.loads(contract.to_json())
    del content[name]
    with pytest.raises(ContractError, match=f"'{name}' is missing"):
        Contract.from_json(json.dumps(content))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"text"', "[" * 100_000, "\udcff", b"\xff\xfe\x00"])
def test_not_a_contract(text: str | bytes) -> None:
    with pytest.raises(ContractError):
        Contract.from_json(text)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_is_read_or_refused(value: Any) -> None:
    with pytest.raises(ContractError):
        Contract.from_json(json.dumps(value))


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("input.shape", [1, 4, 16, 3], "'input.shape'"),
        ("input.dtype", "uint8", "'input"),
        ("input.quantised.scale", 0.007, "'input.quantised'"),
        ("input.quantised.zero_point", 0, "'input.quantised'"),
        ("outputs.0.shape", [4], r"'outputs\[0\].shape'"),
    ],
)
def test_contradiction_with_the_model_is_named(contract: Contract, path: str, value: Any, named: str) -> None:
    content = json.loads(contract.to_json())
    edit(path, value)(content)
    model = picture_model(metadata={CONTRACT_METADATA: json.dumps(content).encode()})
    with pytest.raises(ContractError, match=named):
        contract_of(parse_graph(model))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"normalisation": "sigmoid"}, "normalisation"),
        ({"normalisation": "unit", "colour": "GREY"}, "colour"),
        ({"normalisation": "unit", "filter": "cubic"}, "filter"),
        ({"normalisation": "unit", "crop_fraction": 0.5}, "crop_fraction"),
        ({"normalisation": Normalisation(1.0, (0.0,), (1.0,))}, "mean"),
        ({"normalisation": Normalisation(1.0, (0.0,) * 3, (1.0, 0.0, 1.0))}, "std"),
        ({"normalisation": Normalisation(float("nan"), (0.0,) * 3, (1.0,) * 3)}, "JSON"),
        ({"labels": ("a", "b")}, "labels"),
        ({"meaning": "odds"}, "meaning"),
    ],
)
def test_wrong_argument_is_named(graph: Graph, arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ContractError, match=named):
        make_contract(graph, **arguments)


def test_grey_by_default_for_one_channel() -> None:
    found = make_contract(parse_graph(picture_model(channels=1)), normalisation="unit")
    assert found.input.picture is not None
    assert found.input.picture.colour == "GREY"
    assert found.input.picture.normalisation.mean == (0.0,)


def test_channels_follow_the_memory_order() -> None:
    rgb, bgr = normalisation_for("imagenet", "RGB"), normalisation_for("imagenet", "BGR")
    assert rgb.mean == (0.485, 0.456, 0.406)
    assert bgr.mean == rgb.mean[::-1]
    assert bgr.std == rgb.std[::-1]
    with pytest.raises(ContractError, match="single mean"):
        normalisation_for("imagenet", "GREY")


@pytest.mark.parametrize(("name", "low", "high"), [("symmetric", -1, 1), ("unit", 0, 1), ("raw", 0, 255)])
def test_range_of_a_normalisation(name: str, low: float, high: float) -> None:
    assert normalisation_for(name, "RGB").range() == pytest.approx((low, high))
    assert name in NORMALISATIONS


def test_flat_input_is_no_picture() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 16), "int8", scales=[0.1])
    y = builder.tensor("y", (1, 16), "int8", scales=[0.1])
    builder.operator("RELU", [x], [y])
    flat = parse_graph(builder.finish([x], [y]))
    with pytest.raises(ContractError, match=r"input\.shape"):
        make_contract(flat, normalisation="unit")
    assert make_contract(flat).input.picture is None


def test_two_inputs_are_refused_by_name() -> None:
    builder = ModelBuilder()
    inputs = [builder.tensor(n, (1, 4), "int8", scales=[0.1]) for n in "ab"]
    y = builder.tensor("y", (1, 4), "int8", scales=[0.1])
    builder.operator("ADD", inputs, [y], options="AddOptions")
    with pytest.raises(AreniteError, match="2 inputs"):
        make_contract(parse_graph(builder.finish(inputs, [y])))


def golden_model(content: bytes, count: int = 2) -> Graph:
    model = picture_model()
    made = make_contract(parse_graph(model))
    golden = Golden(count, "a reference", hashlib.sha256(content).hexdigest())
    text = replace(made, golden=golden).to_json().encode()
    return parse_graph(
        picture_model(metadata={CONTRACT_METADATA: text, GOLDEN_METADATA: content}), "model.tflite"
    )


def packed(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


INPUTS, OUTPUTS = np.zeros((2, 1, 8, 8, 3), np.int8), np.ones((2, 1, 4), np.int8)


def test_golden_vectors_are_read() -> None:
    golden = golden_of(golden_model(packed(inputs=INPUTS, outputs=OUTPUTS)))
    assert golden is not None
    assert np.array_equal(golden.inputs, INPUTS)
    assert np.array_equal(golden.outputs, OUTPUTS)
    assert golden.authority == "a reference"
    assert golden_of(parse_graph(picture_model())) is None


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"", 2),
        (b"PK\x03\x04 and no more", 2),
        (packed(inputs=INPUTS), 2),
        (packed(inputs=INPUTS, outputs=OUTPUTS)[:-30], 2),
        (packed(inputs=INPUTS, outputs=OUTPUTS), 3),
        (packed(inputs=INPUTS, outputs=OUTPUTS[..., :3]), 2),
        (packed(inputs=INPUTS.astype(np.int16), outputs=OUTPUTS), 2),
        (packed(inputs=INPUTS, outputs=np.array([{}, {}], object)), 2),
    ],
)
def test_damaged_golden_vectors_are_refused(content: bytes, count: int) -> None:
    with pytest.raises(ContractError, match=r"model\.tflite.*golden"):
        golden_of(golden_model(content, count))


def test_exchanged_golden_vectors_are_refused() -> None:
    graph = golden_model(packed(inputs=INPUTS, outputs=OUTPUTS))
    metadata = {**graph.metadata, GOLDEN_METADATA: packed(inputs=INPUTS, outputs=OUTPUTS + 1)}
    with pytest.raises(ContractError, match=r"'golden\.sha256'"):
        golden_of(replace(graph, metadata=metadata))
