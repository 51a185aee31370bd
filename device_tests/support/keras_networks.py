# SPDX-License-Identifier: Apache-2.0
"""Well-known image networks with random weights, converted to full INT8: their shapes are real, their answers are not.

Without the softmax at the end: logits of random weights are too small for its INT8 grid.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["NETWORKS", "converted"]

CALIBRATION_SAMPLES = 3


def _application(name: str, size: int, *width: float) -> Callable[[Any], Any]:
    options = {"weights": None, "classes": 1000, "classifier_activation": None}
    return lambda keras: getattr(keras.applications, name)((size, size, 3), *width, **options)


NETWORKS: dict[str, Callable[[Any], Any]] = {
    "MobileNetV2 1.0/224": _application("MobileNetV2", 224, 1.0),
    "MobileNetV2 0.75/192": _application("MobileNetV2", 192, 0.75),
    "MobileNetV2 0.5/160": _application("MobileNetV2", 160, 0.5),
    "MobileNetV2 0.35/96": _application("MobileNetV2", 96, 0.35),
    "MobileNetV1 1.0/224": _application("MobileNet", 224, 1.0),
    "MobileNetV1 0.25/96": _application("MobileNet", 96, 0.25),
}


def converted(name: str) -> bytes:
    """The full-INT8 TFLite file of a network; the same on every run of one TensorFlow version."""
    keras = importlib.import_module("keras")
    tensorflow = importlib.import_module("tensorflow")
    keras.utils.set_random_seed(0)
    model = NETWORKS[name](keras)
    shape = (1, *model.input_shape[1:])
    generator = np.random.default_rng(0)

    def samples() -> Iterator[list[Any]]:
        for _ in range(CALIBRATION_SAMPLES):
            yield [generator.uniform(-1, 1, shape).astype(np.float32)]

    converter = tensorflow.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tensorflow.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.target_spec.supported_ops = [tensorflow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tensorflow.int8
    content: bytes = converter.convert()
    return content
