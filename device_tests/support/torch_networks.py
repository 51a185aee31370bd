# SPDX-License-Identifier: Apache-2.0
"""PyTorch networks for tests of the converters; importable only where PyTorch is."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from support.keras_networks import LITE0_STAGES

__all__ = ["cumulated", "efficientnet_lite0", "small", "without_onnx_form"]


class _Small(nn.Module):  # type: ignore[misc]
    """What image networks are made of, with what goes wrong between frameworks.

    Symmetric pads with stride 2, depthwise and residual, max-pool with pads over negative values, concatenation,
    flatten before a dense layer, global average pool.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.depthwise = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.pointwise = nn.Conv2d(8, 8, 1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.left, self.right = nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 1, 2)
        self.dense = nn.Linear(16 * 4 * 4, 12)
        self.last = nn.Conv2d(16, 24, 3, 2, 1)
        self.head = nn.Linear(24 + 12, 5)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = self.pool(x + self.pointwise(self.depthwise(x)))
        x = torch.cat([functional.relu(self.left(x)), functional.relu(self.right(x))], 1)
        flat = functional.relu(self.dense(torch.flatten(x, 1)))
        mean = functional.adaptive_avg_pool2d(functional.relu(self.last(x)), 1).flatten(1)
        return self.head(torch.cat([mean, flat], 1))


def small() -> nn.Module:
    """A small CNN over 3×32×32 whose batch norms have seen data."""
    torch.manual_seed(0)
    module = _Small().train()
    with torch.no_grad():
        for _ in range(5):
            module(torch.randn(8, 3, 32, 32))
    return module.eval()


class _Head(nn.Module):  # type: ignore[misc]
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class _WithHead(nn.Module):  # type: ignore[misc]
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 4, 3), _Head(function)

    def forward(self, x: Any) -> Any:
        return self.head(self.stem(x)).mean((2, 3))


def cumulated() -> nn.Module:
    """Has an operator that ONNX knows and TFLite's importer does not."""
    return _WithHead(lambda x: torch.cumsum(x, 3))


def without_onnx_form() -> nn.Module:
    """Has an operator that ONNX does not know."""
    return _WithHead(lambda x: torch.special.bessel_j0(x))


class _Same(nn.Conv2d):  # type: ignore[misc]
    """A convolution with TensorFlow's pads, which are more after than before."""

    def forward(self, x: Any) -> Any:
        pads = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [total // 2, total - total // 2]
        return super().forward(functional.pad(x, pads))


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


class _Block(nn.Module):  # type: ignore[misc]
    """An inverted residual, its parts named as in the published weights."""

    def __init__(self, inputs: int, expansion: int, outputs: int, stride: int, kernel: int) -> None:
        super().__init__()
        middle = inputs * expansion
        self.expanded, self.residual = expansion > 1, stride == 1 and inputs == outputs
        if self.expanded:
            self._expand_conv, self._bn0 = nn.Conv2d(inputs, middle, 1, bias=False), _norm(middle)
        self._depthwise_conv = _Same(middle, middle, kernel, stride, groups=middle, bias=False)
        self._bn1, self._bn2 = _norm(middle), _norm(outputs)
        self._project_conv = nn.Conv2d(middle, outputs, 1, bias=False)

    def forward(self, x: Any) -> Any:
        y = functional.relu6(self._bn0(self._expand_conv(x))) if self.expanded else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.residual else y


class _Lite0(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = _Same(3, 32, 3, 2, bias=False), _norm(32)
        blocks, channels = [], 32
        for expansion, outputs, count, stride, kernel in LITE0_STAGES:
            for index in range(count):
                blocks.append(_Block(channels, expansion, outputs, stride if index == 0 else 1, kernel))
                channels = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = nn.Conv2d(320, 1280, 1, bias=False), _norm(1280)
        self._fc = nn.Linear(1280, 1000)

    def forward(self, x: Any) -> Any:
        x = functional.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        x = functional.relu6(self._bn1(self._conv_head(x)))
        return self._fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def efficientnet_lite0() -> nn.Module:
    """EfficientNet-Lite0 over 3×224×224, without trained weights."""
    return _Lite0().eval()
