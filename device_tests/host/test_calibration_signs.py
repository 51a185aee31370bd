# SPDX-License-Identifier: Apache-2.0
"""Calibration that is right in form and wrong in kind: colours exchanged, another scale, grey, another folder."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from arenite.contract import Contract, make_contract
from arenite.engines.litert import LiteRt
from arenite.graph import Graph
from arenite.progress import silent
from arenite.tflite_graph import read_graph
from arenite_converters.calibration import SampleSet, read_samples
from arenite_converters.drift import drift_cautions, measure_drift
from arenite_converters.guards import order_against, sample_cautions
from arenite_converters.report import ServingDrift
from arenite_converters.statistics import energy_distance, signal_interval_db, wilson_interval
from support.photograph_network import SIDE, network, photographs

pytest.importorskip("ai_edge_litert", reason="needs LiteRT: pip install 'arenite[litert]'")
EXCHANGED = "calibration pictures look as if red and blue were exchanged (BGR for RGB)"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("signs") / "float.tflite"
    path.write_bytes(network())
    return read_graph(path)


def runner(graph: Graph) -> Callable[[Any], Any]:
    engine = LiteRt(graph)

    def run(sample: Any) -> Any:
        engine.inputs[0][...] = sample
        engine.invoke()
        return engine.outputs[0].copy()

    return run


def contract_for(graph: Graph, **options: Any) -> Contract:
    return make_contract(graph, **{"normalisation": "symmetric", "meaning": "logits", **options})


def read(source: Any, contract: Contract) -> SampleSet:
    with silent().step("read") as step:
        return read_samples(source, contract, what="calibration", min_samples=2, step=step)


def names(graph: Graph, source: Any, **options: Any) -> list[str]:
    contract = contract_for(graph, **options)
    return [c.name for c in sample_cautions(read(source, contract), contract, graph, runner(graph))]


def test_right_pictures_raise_no_doubt(graph: Graph) -> None:
    assert names(graph, photographs()) == []
    assert names(graph, photographs(seed=3)) == []


def test_bgr_is_named(graph: Graph, tmp_path: Path) -> None:
    exchanged = photographs()[..., ::-1]
    assert names(graph, exchanged) == [EXCHANGED]
    for i, picture in enumerate(exchanged):
        Image.fromarray(np.ascontiguousarray(picture)).save(tmp_path / f"{i:02}.png")
    assert names(graph, tmp_path) == [EXCHANGED]
    # A model of BGR takes RGB pictures and turns them itself.
    assert names(graph, photographs(), colour="BGR") == []
    assert names(graph, exchanged, colour="BGR") == [EXCHANGED]


def test_few_or_undecided_pictures_say_nothing(graph: Graph) -> None:
    assert names(graph, photographs(6)[..., ::-1]) == []
    mixed = photographs()
    mixed[::2] = mixed[::2, :, :, ::-1]
    assert names(graph, mixed) == []


def test_bgr_against_another_set(graph: Graph) -> None:
    contract = contract_for(graph)
    ours, theirs = (read(p, contract) for p in (photographs()[..., ::-1], photographs(seed=9)))
    (found,) = order_against(ours, theirs, contract.input, "calibration", "serving")
    assert found.name == "calibration and serving pictures have red and blue exchanged"
    assert list(order_against(theirs, read(photographs(), contract), contract.input, "a", "b")) == []


def test_another_scale_is_named(graph: Graph) -> None:
    """0..255 for a network of -1..1, because the contract says so; x/255 is too near to tell."""
    pictures = photographs()
    assert not any("another scale" in name for name in names(graph, pictures, normalisation="unit"))
    contract = contract_for(graph, normalisation="raw")
    found = sample_cautions(read(pictures, contract), contract, graph, runner(graph))
    (caution,) = [c for c in found if "another scale" in c.name]
    weights = graph.tensors[graph.operators[0].inputs[1]].data
    assert weights is not None
    windows = np.lib.stride_tricks.sliding_window_view(pictures[:: 40 // 8].astype(np.float64), (3, 3), axis=(1, 2))
    expected = np.median(np.einsum("nhwcij,oijc->nhwo", windows, weights).std(axis=(0, 1, 2)))
    assert f"spread by {expected:.3g};" in caution.detail
    assert "has so with imagenet or symmetric or unit" in caution.detail


def test_grey_pictures_are_named(graph: Graph) -> None:
    grey = np.repeat(photographs().mean(axis=3, keepdims=True).astype(np.uint8), 3, axis=3)
    assert "every calibration picture is grey" in names(graph, grey)


def test_one_class_for_all_is_named(graph: Graph) -> None:
    close = np.clip(photographs(1).astype(int) + np.arange(12)[:, None, None, None], 0, 255).astype(np.uint8)
    assert "the trained model gives one class to everything" in names(graph, close)


def test_samples_of_two_scales_are_named(graph: Graph) -> None:
    """Without a contract of pictures nothing says which scale is right."""
    values = np.random.default_rng(0).normal(0, 1, (20, SIDE, SIDE, 3))
    assert names(graph, values, normalisation=None, meaning="values") == []
    values[4] *= 255
    assert names(graph, values, normalisation=None, meaning="values") == ["calibration samples of different scales"]


def drift_of(graph: Graph, tmp_path: Path, serving: Any, int8_range: float = 6.0) -> ServingDrift:
    path = tmp_path / "int8.tflite"
    path.write_bytes(network(int8_range))
    contract = contract_for(graph)
    sets = [read(source, contract).samples for source in (photographs(), serving)]
    with silent().step("drift") as step:
        return measure_drift(Path(graph.path), path, *sets, step)


def test_another_folder_is_far(graph: Graph, tmp_path: Path) -> None:
    near = drift_of(graph, tmp_path, photographs(seed=1))
    assert near.drift < 0.1 and list(drift_cautions(near)) == []
    far = drift_of(graph, tmp_path, photographs(seed=1, contrast=8))
    assert far.drift > 0.5 and far.p_value < 0.01
    assert [c.name for c in drift_cautions(far)] == ["serving is far from calibration"]
    assert [t.name for t in far.tensors] == ["x", "y", "m", "z"]


def test_clipping_is_counted(graph: Graph, tmp_path: Path) -> None:
    """Share of float values beyond what the INT8 tensor holds, by NumPy."""
    serving = photographs(seed=1)
    drift = drift_of(graph, tmp_path, serving, int8_range=1.0)
    contract = contract_for(graph)
    weights = graph.tensors[graph.operators[0].inputs[1]].data
    assert weights is not None
    expected = []
    for pictures in (serving, photographs()):
        values = np.concatenate(read(pictures, contract).samples).astype(np.float64)
        padded = np.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        made = np.clip(np.einsum("nhwcij,oijc->nhwo", windows, weights), 0, 6)
        expected.append(float((made > 1 + 0.5 / 255).mean()))
    row = next(t for t in drift.tensors if t.name == "y")
    assert (row.clipped, row.calibration_clipped) == pytest.approx(expected, abs=2e-4)
    assert expected[0] > 0.1
    assert [c.name for c in drift_cautions(drift)] == []  # calibration is clipped as much: a choice, no drift


def test_serving_beyond_the_ranges_is_named(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "int8.tflite"
    path.write_bytes(network(6.0))
    contract = contract_for(graph, normalisation=None, meaning="values")
    values = np.random.default_rng(0).uniform(-0.9, 0.9, (20, SIDE, SIDE, 3))
    sets = [read(source, contract).samples for source in (values, 2 * values)]
    with silent().step("drift") as step:
        found = measure_drift(Path(graph.path), path, *sets, step)
    named = {c.name: c.detail for c in drift_cautions(found)}
    assert "x (44" in named["serving leaves the calibrated ranges"]  # |v| > 1 of 0..1.8


def test_wilson_interval() -> None:
    """Figures of the literature: 8 of 10, all of 10, none of 10 (Newcombe, Statistics in Medicine 17 (1998))."""
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson_interval(20, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)


def test_bootstrap_interval_covers() -> None:
    """In about 95 of 100 experiments the interval holds the true ratio of powers, 20 dB."""
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(100):
        low, high = signal_interval_db(rng.exponential(100, 60), rng.exponential(1, 60))
        inside += low <= 20 <= high
    assert 88 <= inside <= 100
    assert signal_interval_db(np.ones(5), np.zeros(5)) == (math.inf, math.inf)


def test_energy_distance_by_its_definition() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, (12, 3)), rng.normal(1, 2, (9, 3))
    between = np.mean([np.linalg.norm(x - y) for x in a for y in b])
    pairs = [[np.linalg.norm(x - y) for x, y in itertools.permutations(side, 2)] for side in (a, b)]
    within = [np.mean(distances) for distances in pairs]
    found, p_value = energy_distance(a, b)
    assert found == pytest.approx(1 - sum(within) / (2 * between))
    assert 0 < p_value < 0.05
    assert energy_distance(a, a[::-1])[0] == 0
    assert energy_distance(np.zeros((4, 2)), np.ones((4, 2))) == (1.0, pytest.approx(3 / 201, abs=0.03))


@pytest.mark.reference
def test_trained_network_and_photographs(shared_data: Path, tmp_path: Path) -> None:
    """ResNet-8 on crops of real photographs: silent when all is right, named when it is not."""
    pytest.importorskip("tensorflow", reason="conversion needs TensorFlow")
    from arenite_converters.loaders import load
    from arenite_converters.quiet import quiet

    with quiet():
        content = load(shared_data / "mlperf_tiny" / "pretrainedResnet.h5").content
    (tmp_path / "resnet.tflite").write_bytes(content)
    resnet = read_graph(tmp_path / "resnet.tflite")
    files = sorted(p for p in (shared_data / "pictures").iterdir() if p.suffix in (".jpg", ".bmp"))
    rng, crops = np.random.default_rng(0), []
    for i in range(48):
        with Image.open(files[i % len(files)]) as file:
            picture = file.convert("RGB")
        left, top = rng.integers(0, picture.width // 3), rng.integers(0, picture.height // 3)
        box = (int(left), int(top), int(left) + picture.width * 2 // 3, int(top) + picture.height * 2 // 3)
        crops.append(np.asarray(picture.crop(box).resize((64, 64))))
    options = {"normalisation": "raw", "meaning": "probabilities"}
    assert names(resnet, crops, **options) == []
    assert EXCHANGED in names(resnet, [crop[:, :, ::-1] for crop in crops], **options)
    wrong = names(resnet, crops, normalisation="symmetric", meaning="probabilities")
    assert any("another scale" in name for name in wrong)
