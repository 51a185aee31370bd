# SPDX-License-Identifier: Apache-2.0
"""Image networks, well-known ones and small ones of odd shape, with random weights, converted to full INT8.

Their shapes are real, their answers are not.
Without the softmax at the end: logits of random weights are too small for its INT8 grid.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from arenite_converters.quiet import quiet
from support.photograph_network import CLASSES, SIDE, photographs

__all__ = ["LITE0_STAGES", "NETWORKS", "converted", "photograph_classifier"]

CALIBRATION_SAMPLES = 3


def _application(name: str, size: int, *width: float, **more: Any) -> Callable[[Any], Any]:
    options = {"weights": None, "classes": 1000, "classifier_activation": None, **more}
    return lambda keras: getattr(keras.applications, name)((size, size, 3), *width, **options)


def _residual(keras: Any) -> Any:
    """Three stages of two blocks each, with strided projections beside them."""
    layers = keras.layers
    inputs = x = keras.Input((48, 64, 3))
    for width, stride in ((8, 1), (8, 1), (16, 2), (16, 1), (24, 2), (24, 1)):
        y = layers.Conv2D(width, 3, stride, "same", activation="relu")(x)
        y = layers.Conv2D(width, 3, 1, "same")(y)
        shortcut = x if x.shape[-1] == width else layers.Conv2D(width, 1, stride, "same")(x)
        x = layers.ReLU()(layers.Add()([y, shortcut]))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def _inception(keras: Any) -> Any:
    """Four branches of different depth and reach, joined along the channels, twice."""
    layers = keras.layers
    inputs = x = keras.Input((40, 40, 3))
    for width in (4, 6):
        one = layers.Conv2D(width, 1, activation="relu")(x)
        three = layers.Conv2D(width, 3, padding="same", activation="relu")(layers.Conv2D(width, 1)(x))
        five = layers.Conv2D(width, 5, padding="same", activation="relu")(layers.Conv2D(width, 1)(x))
        pooled = layers.Conv2D(width, 1)(layers.MaxPooling2D(3, 1, "same")(x))
        x = layers.MaxPooling2D(2)(layers.Concatenate()([one, three, five, pooled]))
    return keras.Model(inputs, layers.Dense(7)(layers.Flatten()(x)))


def _two_branches(keras: Any) -> Any:
    """A coarse and a fine path from one picture that meet at the end."""
    layers = keras.layers
    inputs = keras.Input((64, 64, 3))
    fine = layers.Conv2D(6, 3, 2, "same", activation="relu")(inputs)
    fine = layers.DepthwiseConv2D(3, 2, "same", activation="relu")(fine)
    coarse = layers.Conv2D(6, 7, 1, "same", activation="relu")(layers.AveragePooling2D(4)(inputs))
    joined = layers.Conv2D(12, 3, 2, "valid", activation="relu")(layers.Concatenate()([fine, coarse]))
    return keras.Model(inputs, layers.Dense(5)(layers.GlobalAveragePooling2D()(joined)))


# Expansion, channels, blocks, stride of the first, kernel.
LITE0_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def _efficientnet_lite0(keras: Any) -> Any:
    """Inverted residuals with 3x3 and 5x5 kernels, ReLU6, no squeeze and excitation."""
    layers = keras.layers
    inputs = keras.Input((224, 224, 3))
    x = layers.ReLU(6.0)(layers.Conv2D(32, 3, 2, "same")(inputs))
    for expansion, channels, blocks, stride, kernel in LITE0_STAGES:
        for block in range(blocks):
            y = layers.ReLU(6.0)(layers.Conv2D(expansion * x.shape[-1], 1)(x)) if expansion > 1 else x
            y = layers.DepthwiseConv2D(kernel, stride if block == 0 else 1, "same")(y)
            y = layers.Conv2D(channels, 1)(layers.ReLU(6.0)(y))
            x = layers.Add()([x, y]) if block else y
    x = layers.ReLU(6.0)(layers.Conv2D(1280, 1)(x))
    return keras.Model(inputs, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


NETWORKS: dict[str, Callable[[Any], Any]] = {
    "MobileNetV2 1.0/224": _application("MobileNetV2", 224, 1.0),
    "MobileNetV2 0.75/192": _application("MobileNetV2", 192, 0.75),
    "MobileNetV2 0.5/160": _application("MobileNetV2", 160, 0.5),
    "MobileNetV2 0.35/96": _application("MobileNetV2", 96, 0.35),
    "MobileNetV1 1.0/224": _application("MobileNet", 224, 1.0),
    "MobileNetV1 0.25/96": _application("MobileNet", 96, 0.25),
    "MobileNetV1 0.25/96, 2 classes": _application("MobileNet", 96, 0.25, classes=2),
    "ResNet50/224": _application("ResNet50", 224),
    "MobileNetV3-small 1.0/224": _application("MobileNetV3Small", 224, include_preprocessing=False),
    "EfficientNetV2-B0/224": _application("EfficientNetV2B0", 224, include_preprocessing=False),
    "EfficientNet-Lite0": _efficientnet_lite0,
    "residual": _residual,
    "inception": _inception,
    "two branches": _two_branches,
}


# So deep that the usual random weights let nothing through to the end.
_DEEP = ("MobileNetV3-small 1.0/224", "EfficientNetV2-B0/224")


def _spread(model: Any) -> None:
    """Weights with which activations keep their spread from layer to layer."""
    generator = np.random.default_rng(0)
    for weight in model.weights:
        if weight.name in ("kernel", "depthwise_kernel"):
            shape = tuple(weight.shape)
            fan_in = math.prod(shape[:2] if weight.name == "depthwise_kernel" else shape[:-1])
            weight.assign(generator.normal(0, math.sqrt(2.5 / fan_in), shape))


def converted(name: str) -> bytes:
    """The full-INT8 TFLite file of a network; the same on every run of one TensorFlow version."""
    keras = importlib.import_module("keras")
    tensorflow = importlib.import_module("tensorflow")
    keras.utils.set_random_seed(0)
    model = NETWORKS[name](keras)
    if name in _DEEP:
        _spread(model)
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


def photograph_classifier(folder: Path) -> Path:
    """Writes `model.keras`, a small classifier with a softmax, and pictures in `calibration/` and `evaluation/`."""
    with quiet():
        keras = importlib.import_module("keras")
        keras.utils.set_random_seed(7)
        layers = keras.layers
        x = inputs = keras.Input((SIDE, SIDE, 3))
        x = layers.Conv2D(8, 3, 1, "same", kernel_initializer=keras.initializers.RandomNormal(stddev=0.5))(x)
        y = layers.DepthwiseConv2D(3, padding="same")(layers.ReLU(6.0)(x))
        x = layers.GlobalAveragePooling2D()(layers.Add()([x, layers.Conv2D(8, 1)(layers.ReLU(6.0)(y))]))
        x = layers.Dense(CLASSES, "softmax", kernel_initializer=keras.initializers.RandomNormal(stddev=6))(x)
        keras.Model(inputs, x).save(folder / "model.keras")
    for name, seed, count in (("calibration", 0, 40), ("evaluation", 1, 24)):
        (folder / name).mkdir()
        for i, picture in enumerate(photographs(count, seed)):
            Image.fromarray(picture).save(folder / name / f"{i:02}.png")
    return folder
