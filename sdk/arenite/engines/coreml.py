# SPDX-License-Identifier: Apache-2.0
"""Core ML, on macOS."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.cold_start import Timeline
from arenite.contract import Contract, contract_of
from arenite.coreml_package import eight_bit, read_package
from arenite.engines import (
    EngineOptions,
    EngineReport,
    Placement,
    Refusal,
    aligned_array,
    first_line,
    only_fast_kernels,
    read_only,
    refuse,
)
from arenite.errors import MissingToolError, ModelError
from arenite.graph import Graph

__all__ = ["CoreMl"]

Array = npt.NDArray[Any]
# Delegate: coremltools' name of the compute units.
UNITS = {"all": "ALL", "cpu": "CPU_ONLY", "gpu": "CPU_AND_GPU", "ane": "CPU_AND_NE"}


class CoreMl:
    """One Core ML model. Its runtime has buffers of its own: inputs and outputs are copied at each run.

    Args:
        graph: The model, already read.
        options: A delegate names the compute units: `all` (default), `cpu`, `gpu` or `ane`.
        timeline: Where the steps of opening go.

    Raises:
        MissingToolError: Not on macOS, or coremltools is missing.
        ModelError: Core ML refuses the model.
    """

    def __init__(self, graph: Graph, options: EngineOptions, timeline: Timeline) -> None:
        only_fast_kernels("coreml", options)
        wanted = (options.delegate or "all").lower()
        refusals: tuple[Refusal, ...] = ()
        if wanted not in UNITS:
            reason = f"Core ML has {', '.join(UNITS)}"
            refusals = (refuse(f"delegate {options.delegate}", reason, consequence="Core ML chooses by itself"),)
        with timeline.step("build"):
            self._model = _load(Path(graph.path), UNITS.get(wanted, "ALL"))
        self._names = [graph.tensors[i].name for i in graph.inputs]
        self._contract = contract_of(graph)
        features = read_package(Path(graph.path)).inputs
        self._pictures = {feature.name for feature in features if feature.kind == "picture"}
        self._output_names = [graph.tensors[i].name for i in graph.outputs]
        self.inputs = tuple(aligned_array(graph.tensors[i].shape, graph.tensors[i].dtype) for i in graph.inputs)
        self._filled = tuple(aligned_array(graph.tensors[i].shape, graph.tensors[i].dtype) for i in graph.outputs)
        self.outputs = tuple(read_only(array) for array in self._filled)
        self.report = EngineReport(
            engine="coreml",
            version=_version(),
            kernels="fast",
            rounding="float",
            threads=options.threads,
            placements=(Placement(f"Core ML, {UNITS.get(wanted, 'ALL')}", {}),),
            refusals=refusals,
        )

    def invoke(self) -> None:
        """One inference."""
        answer = self._model.predict(
            {name: self._given(name, array) for name, array in zip(self._names, self.inputs, strict=True)}
        )
        for name, array in zip(self._output_names, self._filled, strict=True):
            np.copyto(array, self._scores(answer[name]).reshape(array.shape))

    def _given(self, name: str, array: Array) -> Any:
        """What Core ML takes for an input: the array, or the picture that it was made of."""
        if name not in self._pictures or self._contract is None:
            return array
        return picture_of(array, self._contract)

    def _scores(self, answer: Any) -> Array:
        """An output as an array; a classifier's scores come by label."""
        if isinstance(answer, dict) and self._contract is not None:
            answer = [answer[label] for label in self._contract.outputs[0].labels]
        return np.asarray(answer)

    def reset(self) -> None:
        """Nothing to do: no state is kept between runs."""


def picture_of(real: Array, contract: Contract) -> Any:
    """The Pillow image, RGB or grey, whose values the contract's normalisation makes these [1, H, W, C] of."""
    from PIL import Image

    picture = contract.input.picture
    assert picture is not None
    values = eight_bit(real, picture.normalisation)[0]
    if picture.colour == "GREY":
        return Image.fromarray(values[:, :, 0])
    # Core ML takes pictures as they are and brings the channels in the program's order itself.
    return Image.fromarray(np.ascontiguousarray(values[:, :, ::-1] if picture.colour == "BGR" else values))


def _load(path: Path, units: str) -> Any:
    if sys.platform != "darwin":
        raise MissingToolError(
            "Core ML models run on macOS only",
            where=str(path),
            cure="Open the .tflite or .onnx file of the same model here.",
        )
    try:
        import coremltools
    except ImportError as error:
        raise MissingToolError(
            "coremltools is not installed", where=str(path), cure="pip install 'arenite[coreml]'"
        ) from error
    try:
        return coremltools.models.MLModel(str(path), compute_units=coremltools.ComputeUnit[units])
    except Exception as error:  # coremltools raises plain Exception and RuntimeError
        raise ModelError(
            f"Core ML refuses the model ({first_line(error)})", where=str(path), cure="Convert the model again."
        ) from error


def _version() -> str:
    import coremltools

    return str(coremltools.__version__)
