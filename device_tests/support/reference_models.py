# SPDX-License-Identifier: Apache-2.0
"""The trained INT8 models of the shared data, and inputs for them that mean something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.graph import Tensor

__all__ = ["REFERENCE_MODELS", "random_inputs", "sample_inputs"]

Array = npt.NDArray[Any]

REFERENCE_MODELS = (
    "mlperf_tiny/ad01_int8.tflite",
    "mlperf_tiny/kws_ref_model.tflite",
    "mlperf_tiny/pretrainedResnet_quant.tflite",
    "mlperf_tiny/str_ww_ref_model.tflite",
    "mlperf_tiny/vww_96_int8.tflite",
    "mobilenet_v2/mobilenet_v2_quantized_1x3x224x224.tflite",
    "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite",
    "tflm/hello_world_int8.tflite",
    "tflm/micro_speech_quantized.tflite",
)


def random_inputs(tensor: Tensor, count: int, seed: int) -> list[Array]:
    """Inputs over the whole range of a byte."""
    generator = np.random.default_rng(seed)
    return [generator.integers(0, 256, tensor.shape, dtype=np.uint8).view(tensor.dtype) for _ in range(count)]


def sample_inputs(shared_data: Path, name: str, tensor: Tensor) -> list[Array]:
    """The sample inputs that come with a model, on the grid of its input tensor."""
    tiny = shared_data / "mlperf_tiny"
    loaders: dict[str, Callable[[], Array]] = {
        "mlperf_tiny/ad01_int8.tflite": lambda: np.fromfile(
            tiny / "normal_id_01_00000000_hist_librosa.bin", "<f4"
        ).reshape(-1, 640)[:3],
        "mlperf_tiny/pretrainedResnet_quant.tflite": lambda: np.load(tiny / "ic_inputs_uint8.npy").astype(np.float32),
        "mlperf_tiny/str_ww_ref_model.tflite": lambda: np.load(tiny / "calibration_samples.npz")["specs"][:3],
        "mlperf_tiny/vww_96_int8.tflite": lambda: np.load(tiny / "vww_inputs_float32.npy"),
    }
    if name == "mlperf_tiny/kws_ref_model.tflite":
        return [np.load(tiny / "kws_inputs_int8.npy")]
    if name.startswith("mobilenet_v2/"):
        return [_picture(shared_data / "pictures" / "cat.bmp", tensor)]
    if name not in loaders:
        return []
    return [_quantised(sample, tensor) for sample in loaders[name]()]


def _picture(path: Path, tensor: Tensor) -> Array:
    from PIL import Image

    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB").resize((224, 224), Image.Resampling.BILINEAR), np.float32)
    real = pixels / 127.5 - 1
    planar = tensor.shape[1] == 3
    return _quantised(real.transpose(2, 0, 1) if planar else real, tensor)


def _quantised(real: Array, tensor: Tensor) -> Array:
    quantisation = tensor.quantisation
    assert quantisation is not None
    limits = np.iinfo(tensor.dtype)
    grid = np.round(real.reshape(tensor.shape) / float(quantisation.scale)) + quantisation.zero_point
    return grid.clip(limits.min, limits.max).astype(tensor.dtype)
