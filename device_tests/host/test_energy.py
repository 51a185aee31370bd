# SPDX-License-Identifier: Apache-2.0
"""Energy figures: models that say so, batteries, and figures that stay unknown."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import arenite
from arenite.energy import Energy, EnergyModel, read_energy_model
from arenite.errors import UnsupportedOperatorError, UsageError
from arenite.graph import Tensor
from arenite.model_cost import mac_count, moved_bytes
from arenite.tflite_graph import parse_graph, read_graph
from arenite_codegen.legalise import legalise
from support import bad_models
from support.builder import ModelBuilder


def test_model_is_tagged_with_its_source() -> None:
    energy = EnergyModel(4.6e-12, 1e-9, "measured on board X at 480 MHz").energy(300_000_000, 4_000_000)
    assert energy.energy_mj == pytest.approx(1.38 + 4.0)
    assert energy.tag == "modelled" and energy.average_w is None and energy.interval_mj is None
    assert "board X" in str(energy) and "modelled" in str(energy)


def test_model_with_idle_power_keeps_it_apart() -> None:
    energy = EnergyModel(1e-12, 0, "x", idle_w=0.5).energy(10**9, 0, duration_s=0.010)
    assert energy.energy_mj == pytest.approx(1.0)
    assert energy.gross_mj == pytest.approx(1.0 + 5.0)
    assert energy.inferences_from(10) == pytest.approx(10 * 3600 / 6e-3)


@pytest.mark.parametrize(
    "arguments",
    [(1e-12, 1e-9, " "), (-1e-12, 0, "x"), (float("nan"), 0, "x"), (2.0, 0, "x"), (0, 0, "x", -1.0)],
)
def test_model_without_source_or_sense_is_refused(arguments: tuple[float, float, str]) -> None:
    with pytest.raises(UsageError, match="source"):
        EnergyModel(*arguments)


def test_model_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text('j_per_mac = 2e-12\nj_per_byte = 0\nidle_w = 1\nsource = "datasheet"\n')
    assert read_energy_model(path) == EnergyModel(2e-12, 0, "datasheet", 1)
    for text in ("", "j_per_mac = 1e-12", 'j_per_mac = "x"\nj_per_byte = 0\nsource = "d"', "j_per_mac = ["):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"model\.toml"):
            read_energy_model(path)
    path.write_text('j_per_mac = 2e-12\nj_per_byte = 0\nsource = "datasheet"\nvolts = 5\n')
    with pytest.raises(UsageError, match="volts"):
        read_energy_model(path)


def test_battery_needs_a_figure() -> None:
    assert Energy(None, "unknown", "no meter").inferences_from(10) is None
    assert Energy(2.0, "measured", "m", lower_bound=True).inferences_from(10) is None
    assert Energy(2.0, "measured", "m", gross_mj=4.0).inferences_from(1) == pytest.approx(3600e3 / 4)


def test_fallback_only_without_a_meter(no_meter: None) -> None:
    declared = EnergyModel(1e-12, 0, "datasheet").energy(10**9, 0)
    with arenite.meter(fallback=declared) as meter:
        meter.tick()
    assert meter.source is None and meter.per_inference() == declared
    with arenite.meter() as meter:
        meter.tick()
    assert meter.per_inference().tag == "unknown"


def test_unknown_name_names_the_others() -> None:
    with pytest.raises(UsageError, match="ppk2"), arenite.meter("wattmeter"):
        pass


@pytest.mark.reference
@pytest.mark.parametrize(
    "name",
    [
        "mobilenet_v2/mobilenet_v2_quantized_1x3x224x224.tflite",
        "mlperf_tiny/kws_ref_model.tflite",
        "mlperf_tiny/ad01_int8.tflite",
    ],
)
def test_macs_are_those_of_the_compiler(shared_data: Path, name: str) -> None:
    graph = read_graph(shared_data / name)
    assert mac_count(graph) == legalise(graph).macs


def test_costs_of_a_small_model() -> None:
    graph = parse_graph(bad_models.good_model())
    assert mac_count(graph) == 6 * 6 * 3 * 4
    # Input, weights, biases and output of the convolution; input and output of the softmax.
    assert moved_bytes(graph) == (108 + 432 + 16 + 4) + (4 + 4)


def test_operator_without_a_known_count_is_refused() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2), "int8", scales=[1.0], zero_points=[0])
    y = builder.tensor("y", (1, 2, 2), "int8", scales=[1.0], zero_points=[0])
    builder.operator("SVDF", [x, x], [y], options="SVDFOptions")
    with pytest.raises(UnsupportedOperatorError, match="SVDF"):
        mac_count(parse_graph(builder.finish([x], [y])))


@pytest.mark.parametrize(
    ("dtype", "size_bytes"),
    [("int4", 3), ("int8", 5), ("bool", 5), ("int16", 10), ("float16", 10), ("int32", 20), ("int64", 40)],
)
def test_bytes_of_each_type(dtype: str, size_bytes: int) -> None:
    """Five values; two of four bits share a byte, and a byte that is begun counts whole."""
    tensor = Tensor(0, "x", (5,), dtype, None, None)
    graph: Any = SimpleNamespace(tensors=[tensor], operators=[SimpleNamespace(inputs=[0, -1], outputs=[])])
    assert moved_bytes(graph) == size_bytes
