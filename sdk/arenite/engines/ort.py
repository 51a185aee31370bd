# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime, reading and writing arrays of ours in place through its IO binding."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy.typing as npt

from arenite.cold_start import Timeline
from arenite.engines import (
    EngineOptions,
    EngineReport,
    Placement,
    Refusal,
    aligned_array,
    first_line,
    kinds_of,
    only_fast_kernels,
    refuse,
)
from arenite.errors import MissingToolError, ModelError
from arenite.graph import Graph

__all__ = ["OnnxRuntime", "PROVIDERS"]

Array = npt.NDArray[Any]
_CPU = "CPUExecutionProvider"
# Delegate: ONNX Runtime's name of it. Full names are taken as they are.
PROVIDERS = {
    "coreml": "CoreMLExecutionProvider",
    "cpu": _CPU,
    "cuda": "CUDAExecutionProvider",
    "qnn": "QNNExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}


class OnnxRuntime:
    """One inference session, bound once to arrays of ours.

    Without a delegate every operator runs on the CPU. What a delegate does not take runs on the CPU too.

    Args:
        graph: The model, already read.
        options: What is asked; a delegate is a key of `PROVIDERS` or a provider's full name.
        timeline: Where the steps of opening go.

    Raises:
        MissingToolError: `onnxruntime` is not installed.
        ModelError: ONNX Runtime refuses the model.
        UsageError: Other kernels than `fast`.
    """

    def __init__(self, graph: Graph, options: EngineOptions, timeline: Timeline) -> None:
        only_fast_kernels("onnxruntime", options)
        with timeline.step("import"):
            self._runtime = _import(graph)
        self._provider = PROVIDERS.get((options.delegate or "cpu").lower(), options.delegate or _CPU)
        with timeline.step("build") as notes:
            self._session, refusals = self._open(graph, options)
            notes += [refusal.what for refusal in refusals]
            self._bind(graph)
        self.report = self._report(graph, options, refusals)

    def _open(self, graph: Graph, options: EngineOptions) -> tuple[Any, tuple[Refusal, ...]]:
        if self._provider == _CPU:
            return self._create(graph, options, [_CPU]), ()
        available = self._runtime.get_available_providers()
        if self._provider not in available:
            reason = f"this build of ONNX Runtime has only {', '.join(available)}"
            return self._create(graph, options, [_CPU]), (self._refused(graph, options, reason),)
        try:
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                session = self._create(graph, options, [(self._provider, dict(options.delegate_options)), _CPU])
        except ModelError as error:
            return self._create(graph, options, [_CPU]), (self._refused(graph, options, error.what),)
        if self._provider not in session.get_providers():
            reason = "it could not start; ONNX Runtime wrote why on standard error"
            return session, (self._refused(graph, options, reason),)
        return session, ()

    def _refused(self, graph: Graph, options: EngineOptions, reason: str) -> Refusal:
        return refuse(f"delegate {options.delegate}", reason, kinds_of(graph), consequence="the CPU runs its operators")

    def _create(self, graph: Graph, options: EngineOptions, providers: list[Any]) -> Any:
        settings = self._runtime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.inter_op_num_threads = 1
        # Between two inferences its threads would otherwise spin.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        model = graph.path if options.mmap else Path(graph.path).read_bytes()
        try:
            return self._runtime.InferenceSession(model, settings, providers=providers)
        except Exception as error:  # its own exceptions derive from Exception alone
            raise ModelError(
                f"ONNX Runtime refuses the model ({first_line(error)})",
                where=graph.path,
                cure="Check the model with onnx.checker, or export it again.",
            ) from error

    def _bind(self, graph: Graph) -> None:
        binding = self._session.io_binding()
        self.inputs = tuple(_array(graph, i) for i in graph.inputs)
        outputs = tuple(_array(graph, i) for i in graph.outputs)
        for index, array in zip(graph.inputs, self.inputs, strict=True):
            name = graph.tensors[index].name
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        for index, array in zip(graph.outputs, outputs, strict=True):
            name = graph.tensors[index].name
            binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
            array.flags.writeable = False
        self.outputs = outputs
        # Kept by the session, so the addresses that it was given stay good.
        self._binding = binding
        self._run = self._session.run_with_iobinding

    def invoke(self) -> None:
        """One inference."""
        self._run(self._binding)

    def reset(self) -> None:
        """Nothing to do: an ONNX model's state goes in and out as tensors."""

    def _report(self, graph: Graph, options: EngineOptions, refusals: tuple[Refusal, ...]) -> EngineReport:
        placements = self._placements(graph)
        took = any(self._provider in placement.where for placement in placements)
        if options.delegate is not None and not refusals and not took:
            refusals = (self._refused(graph, options, "it took none of the operators"),)
        return EngineReport(
            engine="onnxruntime",
            version=str(self._runtime.__version__),
            kernels="fast",
            rounding="float",
            threads=options.threads,
            placements=placements,
            refusals=refusals,
        )

    def _placements(self, graph: Graph) -> tuple[Placement, ...]:
        found: dict[str, Counter[str]] = {}
        try:
            for part in self._session.get_provider_graph_assignment_info():
                found.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
        except (AttributeError, RuntimeError):
            # Before 1.24 ONNX Runtime does not say; on one provider there is nothing to ask.
            found = {" or ".join(self._session.get_providers()): Counter(kinds_of(graph))}
        return tuple(Placement(where, dict(sorted(kinds.items()))) for where, kinds in found.items())


def _import(graph: Graph) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingToolError(
            "no engine to run the model: the package onnxruntime is not installed",
            where=graph.path,
            cure="pip install 'arenite[onnx]'",
        ) from error
    return onnxruntime


def _array(graph: Graph, index: int) -> Array:
    tensor = graph.tensors[index]
    if tensor.dtype not in ("float32", "float64", "float16", "bool") and not tensor.dtype.lstrip("u").startswith("int"):
        raise ModelError(f"{tensor} is of a type that no array has", where=graph.path)
    return aligned_array(tensor.shape, tensor.dtype)
