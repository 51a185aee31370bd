# SPDX-License-Identifier: Apache-2.0
"""Core ML, on macOS."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.cold_start import Timeline
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
from arenite.tflite_graph import Graph, Tensor

__all__ = ["CoreMl", "read_coreml"]

Array = npt.NDArray[Any]
# Delegate: coremltools' name of the compute units.
UNITS = {"all": "ALL", "cpu": "CPU_ONLY", "gpu": "CPU_AND_GPU", "ane": "CPU_AND_NE"}


def read_coreml(path: Path) -> Graph:
    """Inputs, outputs and metadata of a .mlpackage or .mlmodel.

    Raises:
        MissingToolError: Not on macOS, or coremltools is missing.
        ModelError: No Core ML model, or an input that is no array.
    """
    model = _load(path, "CPU_ONLY")
    spec = model.get_spec()
    features = [*spec.description.input, *spec.description.output]
    tensors = tuple(_tensor(i, feature, path) for i, feature in enumerate(features))
    count = len(spec.description.input)
    return Graph(
        path=str(path),
        sha256=_digest(path),
        tensors=tensors,
        operators=(),
        inputs=tuple(range(count)),
        outputs=tuple(range(count, len(tensors))),
        metadata={key: value.encode() for key, value in model.user_defined_metadata.items()},
        format="coreml",
    )


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
        answer = self._model.predict(dict(zip(self._names, self.inputs, strict=True)))
        for name, array in zip(self._output_names, self._filled, strict=True):
            np.copyto(array, np.asarray(answer[name]).reshape(array.shape))

    def reset(self) -> None:
        """Nothing to do: no state is kept between runs."""


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


def _tensor(index: int, feature: Any, path: Path) -> Tensor:
    if feature.type.WhichOneof("Type") != "multiArrayType":
        raise ModelError(
            f"'{feature.name}' is no array",
            where=str(path),
            cure="Convert the model with arrays as inputs and outputs: preprocessing is the contract's.",
        )
    kind = feature.type.multiArrayType
    dtype = {65568: "float32", 65600: "float64", 65552: "float16", 131104: "int32"}[int(kind.dataType)]
    return Tensor(index, feature.name, tuple(int(d) for d in kind.shape), dtype, None, None)


def _digest(path: Path) -> str:
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    found = hashlib.sha256()
    for file in files:
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()
