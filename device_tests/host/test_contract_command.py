# SPDX-License-Identifier: Apache-2.0
"""`arenite contract`: show, set, check; and a changed field arrives wherever the contract goes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arenite
from arenite.cli import main
from arenite.contract import (
    CONTRACT_METADATA,
    GOLDEN_METADATA,
    Calibration,
    Contract,
    contract_json,
    contract_of,
    make_contract,
)
from arenite.contract_check import show_contract
from arenite.errors import AreniteError, ContractError, ModelError, OutputError, UsageError
from arenite.golden import golden_of, pack_vectors
from arenite.onnx_model import with_onnx_contract
from arenite.tflite_graph import parse_graph, read_graph
from arenite_codegen import bundle
from arenite_codegen.contract_files import contract_files
from arenite_converters.golden import golden_vectors
from arenite_converters.metadata import with_metadata
from support.builder import ModelBuilder
from support.colour_model import LABELS, colour_model

Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A classifier of colours with its contract."""
    (tmp_path / "model.tflite").write_bytes(colour_model())
    return tmp_path / "model.tflite"


@pytest.fixture(scope="module")
def golden_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The same with two golden vectors."""
    pytest.importorskip("tflite_micro", reason="tflite-micro is not here: pip install 'arenite[firmware]'")
    content = colour_model()
    path = tmp_path_factory.mktemp("golden") / "model.tflite"
    path.write_bytes(content)
    inputs = [np.random.default_rng(i).integers(-128, 128, (1, 4, 4, 3)).astype(np.int8) for i in range(2)]
    found = golden_vectors(path, inputs)
    assert found is not None
    packed, entry = pack_vectors(inputs, *found)
    contract = replace(carried(path), golden=entry)
    return with_metadata(content, {CONTRACT_METADATA: contract.to_json().encode(), GOLDEN_METADATA: packed})


@pytest.fixture
def golden_model(golden_bytes: bytes, tmp_path: Path) -> Path:
    (tmp_path / "golden.tflite").write_bytes(golden_bytes)
    return tmp_path / "golden.tflite"


def carried(path: Path) -> Contract:
    """The contract in a file, which must be there."""
    contract = arenite.read_contract(path)
    assert contract is not None
    return contract


def rewritten(path: Path, *edits: Edit) -> Path:
    """The model with its contract's JSON edited, whatever comes of it."""
    content = json.loads(read_graph(path).metadata[CONTRACT_METADATA])
    for edit in edits:
        edit(content)
    path.write_bytes(with_metadata(path.read_bytes(), {CONTRACT_METADATA: json.dumps(content).encode()}))
    return path


def assign(value: Any, *names: Any) -> Edit:
    """Sets a field."""

    def apply(content: Any) -> None:
        for name in names[:-1]:
            content = content[name]
        content[names[-1]] = value

    return apply


def test_show_prints_each_field(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contract", "show", str(model)]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["input.picture.colour"] == '"RGB"'
    assert lines["outputs[0].labels"] == '["red", "green", "blue"]'
    assert main(["contract", "show", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["contract"] == contract_json(carried(model))


def test_a_model_without_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.tflite"
    path.write_bytes(with_metadata(colour_model(), {CONTRACT_METADATA: None}))
    assert main(["contract", "show", str(path)]) == 1
    assert main(["contract", "check", str(path)]) == 1
    assert "carries no contract" in capsys.readouterr().out
    arenite.set_contract(path, path, {"input.picture.normalisation": "unit", "outputs[0].labels": list(LABELS)})
    made = carried(path)
    assert made == make_contract(read_graph(path), name="plain", normalisation="unit", labels=LABELS)
    with pytest.raises(ContractError, match=r"input\.picture\.normalisation' is missing"):
        plain = with_metadata(colour_model(), {CONTRACT_METADATA: None})
        path.write_bytes(plain)
        arenite.set_contract(path, tmp_path / "out.tflite", {"input.picture.filter": "box"})


def test_set_changes_what_is_named_and_nothing_else(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    arguments = ["--set", "input.picture.colour=BGR", "--set", "input.picture.normalisation.mean=[0.1, 0, 0]"]
    assert main(["contract", "set", str(model), "-o", str(out), *arguments]) == 0
    before, after = contract_json(carried(model)), contract_json(carried(out))
    before["input"]["picture"]["colour"] = "BGR"
    before["input"]["picture"]["normalisation"]["mean"] = [0.1, 0.0, 0.0]
    assert after == before
    pairs = zip(read_graph(model).tensors, read_graph(out).tensors, strict=True)
    assert all(np.array_equal(a.data, b.data) for a, b in pairs if a.data is not None)


def test_set_reports_what_changed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = model.with_name("labels.txt")
    labels.write_text("a\nb\nc\n")
    command = ["contract", "set", str(model), "-o", str(model), "--labels", str(labels), "--set", "name=colours"]
    assert main([*command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["changed"] == [
        {"name": "name", "before": "model", "after": "colours"},
        {"name": "outputs[0].labels", "before": list(LABELS), "after": ["a", "b", "c"]},
    ]
    assert main(command) == 0
    assert "changed    nothing" in capsys.readouterr().out


@pytest.mark.parametrize("whole", [False, True])
def test_set_from_a_file(model: Path, tmp_path: Path, whole: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """A part of a contract, or what `show --json` prints."""
    picture = {"crop": "centre", "crop_fraction": 0.875}
    if whole:
        main(["contract", "show", str(model), "--json"])
        content = json.loads(capsys.readouterr().out)
        content["contract"]["input"]["picture"] |= picture
    else:
        content = {"input": {"picture": picture}}
    (tmp_path / "part.json").write_text(json.dumps(content))
    assert main(["contract", "set", str(model), "-o", str(model), "--from", str(tmp_path / "part.json")]) == 0
    found = carried(model).input.picture
    assert found is not None
    assert (found.crop, found.crop_fraction, found.colour) == ("centre", 0.875, "RGB")


@pytest.mark.parametrize(
    ("fields", "error", "named"),
    [
        ({}, UsageError, "no field"),
        ({"input.picture.color": "BGR"}, ContractError, r"'input\.picture\.color' is unknown"),
        ({"input.image.colour": "BGR"}, UsageError, r"no field 'input\.image\.colour'"),
        ({"outputs[1].labels": []}, UsageError, r"no field 'outputs\[1\]\.labels'"),
        ({"outputs[3]": {}}, UsageError, r"no field 'outputs\[3\]'"),
        ({"name.first": "x"}, UsageError, r"no field 'name\.first'"),
        ({"input[0]": "x"}, UsageError, r"no field 'input\[0\]'"),
        ({"..": 1}, UsageError, r"'\.\.' is no name"),
        ({"input.picture.filter": "cubic"}, ContractError, r"input\.picture\.filter"),
        ({"input.picture.normalisation": "caffe"}, ContractError, r"input\.picture\.normalisation"),
        ({"input.picture.normalisation.scale": float("nan")}, ContractError, r"normalisation\.scale"),
        ({"input.picture.normalisation.scale": 1j}, UsageError, "no JSON"),
        ({"input.picture": "RGB"}, ContractError, r"input\.picture"),
        ({"input": 3}, ContractError, "'input'"),
        ({"outputs[0].labels": ["a"]}, ContractError, r"outputs\[0\]\.labels"),
        ({"input.quantised.scale": 0.5}, ContractError, r"input\.quantised.*as in the model"),
        ({"input.shape": [1, 2, 8, 3]}, ContractError, r"input\.shape.*as in the model"),
        ({"format": 2}, ContractError, "'format'"),
        ({"golden": {"count": 1, "authority": "me", "sha256": "0"}}, UsageError, "golden"),
    ],
)
def test_a_wrong_change_is_named_and_writes_nothing(
    model: Path, tmp_path: Path, fields: dict[str, Any], error: type[AreniteError], named: str
) -> None:
    before = model.read_bytes()
    with pytest.raises(error, match=named) as caught:
        arenite.set_contract(model, model, fields)
    assert caught.value.cure
    assert model.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]


def test_a_file_that_is_no_contract(model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[1")
    arguments = ["contract", "set", str(model), "-o", str(tmp_path / "o.tflite"), "--from"]
    assert main([*arguments, str(tmp_path / "bad.json")]) == 2
    (tmp_path / "bad.json").write_text("[1]")
    assert main([*arguments, str(tmp_path / "bad.json")]) == 2
    assert main([*arguments, str(tmp_path / "none.json")]) == 2
    assert not (tmp_path / "o.tflite").exists()


def test_an_output_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="none"):
        arenite.set_contract(model, tmp_path / "none" / "o.tflite", {"name": "x"})
    with pytest.raises(OutputError):
        arenite.set_contract(model, tmp_path, {"name": "x"})
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]


def test_golden_vectors_outlive_what_does_not_touch_them(golden_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    report = arenite.set_contract(golden_model, out, {"input.picture.colour": "BGR", "name": "x"})
    assert report.golden.startswith("kept, 2 vectors by tflite-micro")
    before, after = golden_of(read_graph(golden_model)), golden_of(read_graph(out))
    assert before is not None and after is not None
    assert np.array_equal(before.inputs, after.inputs) and np.array_equal(before.outputs, after.outputs)
    check = arenite.verify_contract(out)
    assert check.valid and "run again by tflite-micro" in check.golden


@pytest.mark.parametrize(("field", "value", "why"), [("rounding", "single", "'double'"), ("golden", None, "asked")])
def test_golden_vectors_are_dropped(golden_model: Path, tmp_path: Path, field: str, value: Any, why: str) -> None:
    report = arenite.set_contract(golden_model, tmp_path / "out.tflite", {field: value})
    assert report.golden.startswith("dropped") and why in report.golden
    graph = read_graph(tmp_path / "out.tflite")
    assert GOLDEN_METADATA not in graph.metadata and golden_of(graph) is None
    assert len((tmp_path / "out.tflite").read_bytes()) < len(golden_model.read_bytes())


def test_what_is_replaced_leaves_nothing_behind(model: Path) -> None:
    arenite.set_contract(model, model, {"name": "first-name"})
    size = model.stat().st_size
    for name in ("other-name", "third-name"):
        arenite.set_contract(model, model, {"name": name})
        assert model.stat().st_size == size
    assert b"other-name" not in model.read_bytes()


def test_check_finds_all_that_is_wrong(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewritten(
        model,
        assign("RGBA", "input", "picture", "colour"),
        assign([1.0], "input", "picture", "normalisation", "mean"),
        assign("left", "input", "picture", "crop"),
        assign(["a"], "outputs", 0, "labels"),
        assign("up", "rounding"),
        assign(1, "surprise"),
    )
    assert main(["contract", "check", str(model), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["valid"]
    named = ("picture.colour", "picture.normalisation.mean", "picture.crop'", "labels", "rounding", "surprise")
    for name in named:
        assert sum(name in problem for problem in report["problems"]) == 1, name
    assert len(report["problems"]) == len(named)


def test_check_finds_contradictions_with_the_model(model: Path) -> None:
    rewritten(model, assign(0.5, "input", "quantised", "scale"), assign([3], "outputs", 0, "shape"))
    found = arenite.verify_contract(model)
    assert [problem.split("'")[1] for problem in found.problems][:2] == ["input.quantised", "outputs[0].shape"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"input.picture.normalisation": "symmetric"}, "50% of the 8-bit values are clipped"),
        ({"input.picture.normalisation": "raw"}, "clipped"),
        ({"input.picture.normalisation.scale": 1 / 2550}, "uses 26 of its steps"),
    ],
)
def test_check_finds_a_normalisation_that_the_input_cannot_hold(model: Path, fields: Any, said: str) -> None:
    """The input was quantised for 0..1."""
    assert arenite.verify_contract(model).valid
    arenite.set_contract(model, model, fields)
    found = arenite.verify_contract(model)
    assert len(found.problems) == 1 and said in found.problems[0]


def test_check_finds_another_range_than_calibration_saw(model: Path) -> None:
    calibration = contract_json(replace(carried(model), calibration=Calibration("d", 9, 0.0, 255.0)))["calibration"]
    arenite.set_contract(model, model, {"calibration": calibration})
    found = arenite.verify_contract(model)
    assert [problem for problem in found.problems if "calibrated on 0..255" in problem and "gives 0..1" in problem]


def test_check_runs_the_golden_vectors_again(golden_model: Path) -> None:
    assert arenite.verify_contract(golden_model).valid
    golden = golden_of(read_graph(golden_model))
    assert golden is not None
    outputs = golden.outputs.copy()
    outputs[1, 0, 2] ^= 1
    packed, entry = pack_vectors(list(golden.inputs), list(outputs), golden.authority)
    contract = replace(carried(golden_model), golden=entry)
    entries = {CONTRACT_METADATA: contract.to_json().encode(), GOLDEN_METADATA: packed}
    golden_model.write_bytes(with_metadata(golden_model.read_bytes(), entries))
    (problem,) = arenite.verify_contract(golden_model).problems
    assert "golden vector 1 differs in 1 of 3" in problem


def test_check_finds_damaged_golden_vectors(golden_model: Path) -> None:
    golden_model.write_bytes(with_metadata(golden_model.read_bytes(), {GOLDEN_METADATA: b"PK"}))
    (problem,) = arenite.verify_contract(golden_model).problems
    assert "golden.sha256" in problem
    with pytest.raises(ContractError, match=r"golden\.sha256"):
        arenite.set_contract(golden_model, golden_model, {"name": "x"})


def test_no_model_is_an_error(tmp_path: Path) -> None:
    for action in ("show", "check"):
        assert main(["contract", action, str(tmp_path / "none.tflite")]) == 2
    (tmp_path / "bad.mlmodel").write_bytes(b"\xff" * 40)
    with pytest.raises(ModelError, match="no Core ML package"):
        arenite.read_contract(tmp_path / "bad.mlmodel")
    (tmp_path / "bad.mlpackage").mkdir()
    with pytest.raises(ModelError):
        arenite.read_contract(tmp_path / "bad.mlpackage")


def test_contracts_of_onnx(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not here: pip install 'arenite[onnx]'")
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 3, 4, 4]) for n in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    assert arenite.read_contract(path) is None
    made = make_contract(arenite.read_model(path), name="relu", normalisation="imagenet")
    path.write_bytes(with_onnx_contract(path.read_bytes(), made))
    assert arenite.read_contract(path) == made
    arenite.set_contract(path, path, {"input.picture.colour": "BGR"})
    onnx.checker.check_model(onnx.load(path))
    entries = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert json.loads(entries[CONTRACT_METADATA])["input"]["picture"]["colour"] == "BGR"
    assert arenite.verify_contract(path).valid


# coremltools alone imports every framework that is here; its own protobuf and package format do without.
CORE_ML = """
import importlib.util, sys, types
package = types.ModuleType("coremltools")
package.__path__ = importlib.util.find_spec("coremltools").submodule_search_locations
sys.modules["coremltools"] = package
from coremltools.libmodelpackage import ModelPackage
from coremltools.proto import Model_pb2

flat, bundled, name, contract = sys.argv[1:]
content = Model_pb2.Model(specificationVersion=8)
content.description.metadata.author = "somebody"
content.description.metadata.userDefined["other"] = "thing"
content.description.metadata.userDefined[name] = contract
with open(flat, "wb") as file:
    file.write(content.SerializeToString())
ModelPackage(bundled).setRootModel(flat, "model.mlmodel", "com.apple.CoreML", "a model")
"""


def test_contracts_of_core_ml(model: Path, tmp_path: Path) -> None:
    """Written by coremltools, read without it."""
    if importlib.util.find_spec("coremltools") is None:
        pytest.skip("coremltools is not here: pip install 'arenite[coreml]'")
    paths = [tmp_path / "model.mlmodel", tmp_path / "model.mlpackage"]
    arguments = [*map(str, paths), CONTRACT_METADATA, carried(model).to_json()]
    subprocess.run([sys.executable, "-c", CORE_ML, *arguments], check=True)
    for path in paths:
        assert arenite.read_contract(path) == carried(model)
        assert arenite.verify_contract(path).valid
        assert show_contract(path).contract == contract_json(carried(model))
        with pytest.raises(UsageError, match="Core ML"):
            arenite.set_contract(path, tmp_path / "out.mlmodel", {"name": "x"})


@pytest.mark.parametrize(
    ("field", "value", "header"),
    [
        ("name", "colours", '_NAME "colours"'),
        ("input.picture.colour", "BGR", '_INPUT_COLOUR "BGR"'),
        ("input.picture.filter", "lanczos", '_INPUT_FILTER "lanczos"'),
        ("input.picture.normalisation.mean", [0.25, 0, 0], "_INPUT_NORMALISATION_MEAN { 0.25, 0.0, 0.0 }"),
        ("outputs[0].meaning", "values", '_OUTPUT_0_MEANING "values"'),
        ("outputs[0].labels", ['a"', "/*é", "c\\"], '"a\\042", \\\n    "/*\\303\\251", \\\n    "c\\134", \\\n'),
    ],
)
def test_a_changed_field_arrives_everywhere(model: Path, field: str, value: Any, header: str) -> None:
    """In the file, `inspect`, the session and the firmware's header."""
    before = made_header(model)
    arenite.set_contract(model, model, {field: value})
    changed = contract_of(parse_graph(model.read_bytes()))
    assert changed is not None
    assert arenite.inspect(model).contract == contract_json(changed)
    assert arenite.open(model).contract == changed
    after = made_header(model)
    assert header in after and header not in before


def made_header(model: Path) -> str:
    return contract_files("arenite_model", carried(model), None)["arenite_model_contract.h"]


def test_the_header_is_c(model: Path, compiler: Any) -> None:
    """Labels of any text, as one array."""
    arenite.set_contract(model, model, {"outputs[0].labels": ['a"b', "??/", "*/ ü"]})
    bundle(model, "host", model.parent / "bundle", vectors=0)
    source = model.parent / "labels.c"
    source.write_text(
        '#include <stdio.h>\n#include "arenite_model_contract.h"\n'
        "static const char *const labels[ARENITE_MODEL_OUTPUT_0_LABEL_COUNT] = ARENITE_MODEL_OUTPUT_0_LABELS;\n"
        "static const float mean[] = ARENITE_MODEL_INPUT_NORMALISATION_MEAN;\n"
        "int main(void) {\n"
        '    printf("%s|%s|%s|%d", labels[0], labels[1], labels[2], (int)(sizeof mean / sizeof mean[0]));\n'
        "    return 0;\n}\n"
    )
    folder = model.parent / "bundle" / "model"
    compiler.link(compiler.compile([source], [folder], model.parent / "obj"), model.parent / "labels")
    said = subprocess.run([model.parent / "labels"], capture_output=True, check=True).stdout.decode()
    assert said == 'a"b|??/|*/ ü|3'


def test_a_model_that_is_no_picture_has_a_header_without_one(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(n, (1, 16), "int8", scales=[0.1]) for n in "xy")
    builder.operator("RELU", [x], [y])
    contract = make_contract(parse_graph(builder.finish([x], [y])), name="sound")
    builder.metadata(CONTRACT_METADATA, contract.to_json().encode())
    (tmp_path / "sound.tflite").write_bytes(builder.finish([x], [y]))
    header = made_header(tmp_path / "sound.tflite")
    assert "ARENITE_MODEL_NAME" in header and "COLOUR" not in header
    with pytest.raises(ContractError, match="does not say how a picture"):
        bundle(tmp_path / "sound.tflite", "host", tmp_path / "b", camera="8x8:RGB")
    assert not (tmp_path / "b").exists()
