# SPDX-License-Identifier: Apache-2.0
"""Conversion to Core ML: packages that are made, read back and run here, and broken ones that are caught."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arenite
from arenite.coreml_package import content_digest, eight_bit, read_package
from arenite.engines.coreml import picture_of
from arenite.errors import CheckFailedError, ContractError, MissingToolError, ModelError, UsageError
from arenite.preprocess import value_table
from arenite_converters.coreml import check_coreml, convert_coreml
from arenite_converters.coreml.checking import Runner, package_contract
from arenite_converters.quiet import quiet

NEEDED = ("coremltools", "keras", "torch")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
LABELS = ("a", "b", "c", "d", "e")


def pictures(count: int = 30, side: int = 24, seed: int = 0) -> Any:
    blocks = np.random.default_rng(seed).integers(0, 256, (count, side // 8, side // 8, 3))
    return blocks.repeat(8, 1).repeat(8, 2).astype(np.uint8)


def keras_model() -> Any:
    with quiet():
        import keras

        keras.utils.set_random_seed(1)
        layers = keras.layers
        inputs = keras.Input((24, 24, 3))
        x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu6")(inputs)
        x = layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x))
        x = layers.Add()([x, layers.Conv2D(8, 1, activation="relu")(x)])
        x = layers.Rescaling(4.0)(layers.GlobalAveragePooling2D()(x))
        return keras.Model(inputs, layers.Dense(5, activation="softmax")(x))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    with quiet():
        keras_model().save(folder / "small.keras")
    return folder / "small.keras"


@pytest.fixture(scope="module")
def report(model: Path, folder: Path) -> Any:
    """Float16, a classifier, a standard deviation for each channel, BGR."""
    return arenite.convert(
        model, folder / "small.mlpackage", calibration=pictures(), evaluation=pictures(12, seed=1),
        normalisation="imagenet", colour="BGR", labels=LABELS, verify_on_mac=True,
    )  # fmt: skip


def test_package_answers_as_keras(report: Any, model: Path) -> None:
    """Pixels to scores, independently of the conversion's own preprocessing."""
    with quiet():
        import keras

        trained = keras.models.load_model(model, compile=False)
        chosen = pictures(6, seed=2)[..., ::-1].astype(np.float32)
        mean, std = np.array([0.406, 0.456, 0.485]), np.array([0.225, 0.224, 0.229])
        expected = np.asarray(trained((chosen / 255 - mean) / std))
    executor = Runner(read_package(Path(report.path)), report.contract).executor
    for value, scores in zip(chosen, expected, strict=True):
        answer = executor.run({executor.program.inputs[0].name: value[None].transpose(0, 3, 1, 2)})
        np.testing.assert_allclose(answer["classLabel_probs"], scores, atol=3e-3)
        assert answer["classLabel"] == LABELS[int(scores.argmax())]


def test_contract_travels(report: Any) -> None:
    contract = arenite.read_contract(report.path)
    assert contract == report.contract and contract is not None
    assert contract.input.picture is not None and contract.input.picture.colour == "BGR"
    assert contract.outputs[0].labels == LABELS and contract.outputs[0].meaning == "probabilities"
    shown = arenite.inspect(report.path)
    assert shown.inputs[0].shape == (1, 24, 24, 3) and shown.outputs[0].shape == (1, 5)
    kinds = [feature.kind for feature in read_package(Path(report.path)).outputs]
    assert sorted(kinds) == ["scores", "text"]
    if sys.platform != "darwin":
        with pytest.raises(MissingToolError, match="macOS only"):
            arenite.open(report.path)


def test_divisors_of_their_own_are_a_layer(report: Any) -> None:
    """Core ML's image input has one scale: 1/255 here, then a product over the channels."""
    program = Runner(read_package(Path(report.path)), report.contract).executor
    found = [np.ravel(c) for c in program.constants.values() if isinstance(c, np.ndarray) and c.size in (1, 3)]
    assert any(c.size == 1 and abs(float(c[0]) * 255 - 1) < 1e-5 for c in found if c.dtype == np.float32)
    assert report.check.agreement.sqnr_db > 40 and report.check.agreement.held_out


def test_pictures_are_made_of_real_values(report: Any) -> None:
    picture = report.contract.input.picture
    values = np.arange(256, dtype=np.uint8)
    real = value_table(picture.normalisation).T[None, None]
    assert (eight_bit(real, picture.normalisation) == values[None, None, :, None]).all()
    image = np.asarray(picture_of(real, report.contract))
    assert image.shape == (1, 256, 3) and (image[0] == values[:, None]).all()


@pytest.fixture
def copy(report: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(report.path, tmp_path / "copy.mlpackage"))


def damaged(check: Any) -> list[str]:
    return [c.name for c in check.checks if not c.passed]


def edit(path: Path, change: Callable[[bytearray], None]) -> None:
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def test_one_flipped_byte_of_a_weight_is_caught(copy: Path, model: Path) -> None:
    assert check_coreml(copy, model, samples=pictures(8, seed=3)).passed

    def flip(content: bytearray) -> None:
        content[129] ^= 0x40  # the highest bit of the exponent of the first blob's first float16

    edit(copy / "Data/com.apple.CoreML/weights/weight.bin", flip)
    check = check_coreml(copy, model, samples=pictures(8, seed=3))
    assert "program and weights are as they were written" in damaged(check)
    assert "SQNR is at least 40 dB" in damaged(check)


def test_wrong_image_scale_is_caught(copy: Path, model: Path) -> None:
    """1/127.5 for 1/255."""
    scale, wrong = (np.float32(value).tobytes() for value in (1 / 255, 1 / 127.5))

    def replace(content: bytearray) -> None:
        assert content.count(scale) == 1
        at = content.index(scale)
        content[at : at + 4] = wrong

    edit(copy / "Data/com.apple.CoreML/model.mlmodel", replace)
    check = check_coreml(copy, model, samples=pictures(8, seed=3))
    assert "SQNR is at least 40 dB" in damaged(check)


def test_damaged_packages_are_errors(copy: Path) -> None:
    program = copy / "Data/com.apple.CoreML/model.mlmodel"
    whole = program.read_bytes()
    for length in (0, 7, len(whole) // 2, len(whole) - 3):
        program.write_bytes(whole[:length])
        with pytest.raises((ModelError, ContractError)):
            Runner(read_package(copy), package_contract(read_package(copy)))
    program.write_bytes(whole)
    (copy / "Data/com.apple.CoreML/weights/weight.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="Convert"):
        Runner(read_package(copy), package_contract(read_package(copy)))


def test_script_for_a_mac(report: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Its comparing half, with answers of the executor in the place of a Mac's."""
    folder = Path(report.mac_folder)
    source = (folder / "verify_on_mac.py").read_text(encoding="utf-8")
    compile(source, "verify_on_mac.py", "exec")
    script = runpy.run_path(str(folder / "verify_on_mac.py"))
    about, inputs, references = script["load_vectors"](folder / "golden.npz")
    assert about["package"] == Path(report.path).name and len(inputs) == len(references) == 12
    executor = Runner(read_package(Path(report.path)), report.contract).executor
    answers = []
    for value in inputs:
        answer = executor.run({about["input"]: value[None].transpose(0, 3, 1, 2).astype(np.float32)})
        by_label = dict(zip(LABELS, answer[about["output"]], strict=True))
        answers.append(script["as_scores"](by_label, about["labels"]))
        image = np.asarray(script["as_input"](value, about["colour"]))
        assert (image == value[..., ::-1]).all()
    sqnr_db, top1, good = script["compare"](references, np.stack(answers), about)
    assert good and top1 == 1.0 and sqnr_db > 40
    assert not script["compare"](references, np.stack(answers)[:, ::-1], about)[2]
    if sys.platform != "darwin":
        assert script["main"]() == 2 and "needs a Mac" in capsys.readouterr().err


@pytest.mark.parametrize("precision", ["w8a8", "palettised"])
def test_pytorch_program_of_eight_bits(precision: str, tmp_path: Path) -> None:
    from support.torch_networks import small

    options = {"normalisation": "symmetric", "meaning": "logits", "input_shape": (3, 32, 32)}
    with quiet():
        report = convert_coreml(
            small(), tmp_path / "small.mlpackage", precision=precision, calibration=pictures(side=32), **options
        )
    operators = report.check.operators
    if precision == "w8a8":
        # Two layers that read one tensor share its quantising.
        assert operators["constexpr_affine_dequantize"] == report.layers == 8
        assert operators["quantize"] == operators["dequantize"] == 7 and report.kept_float == ()
    assert report.check.agreement.sqnr_db > 17
    assert report.contract.calibration is not None and report.contract.input.layout == "NHWC"


def test_failed_checks_write_nothing(model: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match=r"SQNR is at least 200 dB.*Nothing was written"):
        arenite.convert(
            model, tmp_path / "x.mlpackage", calibration=pictures(), normalisation="unit", min_sqnr_db=200.0
        )
    assert list(tmp_path.iterdir()) == []


def test_recipe_gives_the_same_package(model: Path, tmp_path: Path, arenite_command: Callable[..., Any]) -> None:
    np.save(tmp_path / "pictures.npy", pictures())
    options = ("--calibration", "pictures.npy", "--normalisation", "unit", "--precision", "w8")
    first = arenite_command("convert", model, "-o", "a.mlpackage", *options, "--save-recipe", "a.json", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    again = arenite_command("convert", "--recipe", "a.json", "-o", "b.mlpackage", cwd=tmp_path)
    assert again.returncode == 0 and "recipe     the bytes of the first time" in again.stdout, again.stderr
    made = [read_package(tmp_path / name) for name in ("a.mlpackage", "b.mlpackage")]
    assert made[0].program == made[1].program and made[0].weights == made[1].weights
    recipe = json.loads((tmp_path / "a.json").read_text())
    assert recipe["arguments"]["precision"] == "w8" and recipe["result_sha256"] == content_digest(made[0])
    assert recipe["model_sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert recipe["samples_sha256"].keys() == {"calibration"} and recipe["versions"]["coremltools"]
    with pytest.raises(UsageError, match=r"the recipe makes a \.mlpackage file.*Name it \*\.mlpackage"):
        arenite.reconvert(tmp_path / "a.json", tmp_path / "m.tflite")


def test_wrong_arguments(model: Path, tmp_path: Path, arenite_command: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="no precision 'int4'"):
        arenite.convert(model, tmp_path / "x.mlpackage", calibration=pictures(), precision="int4")
    with pytest.raises(UsageError, match="is no trained model"):
        convert_coreml(3, tmp_path / "x.mlpackage", calibration=pictures())
    with pytest.raises(UsageError, match=r"must be named \*\.mlpackage"):
        convert_coreml(model, tmp_path / "x.tflite", calibration=pictures())
    done = arenite_command("convert", model, "-o", "x.tflite", "--calibration", ".", "--precision", "w8", cwd=tmp_path)
    assert done.returncode == 2 and "--precision belongs to an .mlpackage" in done.stderr
    assert list(tmp_path.iterdir()) == []
