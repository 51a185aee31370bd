# SPDX-License-Identifier: Apache-2.0
"""LiteRT (`ai-edge-litert`) and its predecessor `tflite-runtime`, with views on their own tensors' memory."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
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
    kinds_of,
    read_only,
    refuse,
)
from arenite.errors import MissingToolError, ModelError, UsageError
from arenite.graph import Graph, Operator

__all__ = ["KERNELS", "LiteRt", "TfliteRuntime"]

Array = npt.NDArray[Any]
# Name: member of the runtime's OpResolverType, and the rounding rule of its quantised kernels.
KERNELS = {
    "fast": ("AUTO", "float"),
    "builtin": ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "mixed"),
    "reference": ("BUILTIN_REF", "mixed"),
}
# Inputs that decide an output's shape. If one is computed at run time, so is the shape, and memory moves.
_SHAPE_INPUTS: Mapping[str, tuple[int, ...]] = {
    "BATCH_TO_SPACE_ND": (1, 2),
    "BROADCAST_TO": (1,),
    "EXPAND_DIMS": (1,),
    "FILL": (0,),
    "MEAN": (1,),
    "MIRROR_PAD": (1,),
    "PAD": (1,),
    "PADV2": (1,),
    "RANGE": (0, 1, 2),
    "REDUCE_MAX": (1,),
    "REDUCE_MIN": (1,),
    "RESHAPE": (1,),
    "RESIZE_BILINEAR": (1,),
    "RESIZE_NEAREST_NEIGHBOR": (1,),
    "SLICE": (1, 2),
    "SPACE_TO_BATCH_ND": (1, 2),
    "SPLIT_V": (1, 2),
    "STRIDED_SLICE": (1, 2, 3),
    "SUM": (1,),
    "TILE": (1,),
    "TOPK_V2": (1,),
    "TRANSPOSE": (1,),
    "TRANSPOSE_CONV": (0,),
}
_SHAPE_FROM_VALUES = ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "UNIQUE", "WHERE", "WHILE", "IF")


class LiteRt:
    """One interpreter. Inputs are writable views on its memory, outputs read-only ones.

    In a model whose shapes are computed at run time the interpreter moves its memory, so there inputs and outputs are
    arrays of their own and each run copies.

    Args:
        graph: The model, already read; its file is mapped by the interpreter.
        options: What is asked.
        timeline: Where the steps of opening go.

    Raises:
        MissingToolError: The package is not installed.
        ModelError: The runtime refuses the model.
        UsageError: Unknown kernels.
    """

    name = "litert"
    title = "LiteRT"
    package = "ai-edge-litert"
    extra = "litert"

    def __init__(self, graph: Graph, options: EngineOptions | None = None, timeline: Timeline | None = None) -> None:
        options, timeline = options or EngineOptions(), timeline or Timeline()
        if options.kernels not in KERNELS:
            raise UsageError(f"unknown kernels '{options.kernels}'", cure="Use one of " + ", ".join(KERNELS) + ".")
        with timeline.step("import"):
            module = self._import(graph)
        delegates, refusals = self._delegates(module, graph, options, timeline)
        with timeline.step("build") as notes:
            self._interpreter, failed = self._build(module, graph, options, delegates)
            notes += [refusal.what for refusal in failed]
        delegate = options.delegate if delegates and not failed else None
        self._open_tensors(graph)
        self.report = self._report(graph, options, delegate, [*refusals, *failed])

    @staticmethod
    def _module() -> ModuleType:
        from ai_edge_litert import interpreter

        return interpreter  # type: ignore[no-any-return]

    @staticmethod
    def _version() -> str:
        # Not by the package's metadata: what reads that takes longer to import than a small model to open.
        import ai_edge_litert

        return str(ai_edge_litert.__version__)

    def _import(self, graph: Graph) -> ModuleType:
        try:
            return self._module()
        except ImportError as error:
            raise MissingToolError(
                f"no engine to run the model: the package {self.package} is not installed",
                where=graph.path,
                cure=f"pip install 'arenite[{self.extra}]'",
            ) from error

    def _delegates(
        self, module: ModuleType, graph: Graph, options: EngineOptions, timeline: Timeline
    ) -> tuple[list[Any], tuple[Refusal, ...]]:
        if options.delegate is None:
            return [], ()
        with timeline.step("delegate") as notes:
            try:
                # The runtime's own loader leaves a half-made object behind when there is no such library.
                ctypes.CDLL(options.delegate)
                return [module.load_delegate(options.delegate, dict(options.delegate_options))], ()
            except (ValueError, OSError, RuntimeError, AttributeError) as error:
                reason = ": ".join(line.strip() for line in str(error).splitlines() if line.strip())
                notes.append("refused")
                return [], (self._refused(graph, options, reason),)

    def _refused(self, graph: Graph, options: EngineOptions, reason: str) -> Refusal:
        consequence = f"{self.title}'s own kernels run its operators"
        return refuse(f"delegate {options.delegate}", reason, kinds_of(graph), consequence=consequence)

    def _build(
        self, module: ModuleType, graph: Graph, options: EngineOptions, delegates: list[Any]
    ) -> tuple[Any, tuple[Refusal, ...]]:
        try:
            return self._interpreter_of(module, graph, options, delegates), ()
        except (ValueError, RuntimeError, OSError) as error:
            if not delegates:
                raise ModelError(
                    f"{self.title} refuses the model ({first_line(error)})",
                    where=graph.path,
                    cure="Look for what it names with: arenite inspect MODEL",
                ) from error
            interpreter, _ = self._build(module, graph, options, [])
            return interpreter, (self._refused(graph, options, first_line(error)),)

    def _interpreter_of(self, module: ModuleType, graph: Graph, options: EngineOptions, delegates: list[Any]) -> Any:
        content = {} if options.mmap else {"model_content": Path(graph.path).read_bytes()}
        interpreter = module.Interpreter(
            model_path=graph.path if options.mmap else None,
            num_threads=options.threads,
            experimental_delegates=delegates or None,
            experimental_op_resolver_type=getattr(module.OpResolverType, KERNELS[options.kernels][0]),
            **content,
        )
        interpreter.allocate_tensors()
        return interpreter

    def _open_tensors(self, graph: Graph) -> None:
        inputs, outputs = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self._input_indices = [d["index"] for d in inputs]
        self._output_indices = [d["index"] for d in outputs]
        if has_static_shapes(graph):
            self.inputs = tuple(self._view(i, True) for i in self._input_indices)
            self.outputs = tuple(self._view(i, False) for i in self._output_indices)
            self.invoke = self._interpreter.invoke
            return
        self.inputs = tuple(aligned_array(tuple(d["shape"]), d["dtype"]) for d in inputs)
        self.outputs = tuple(read_only(np.zeros(tuple(d["shape"]), d["dtype"])) for d in outputs)
        self.invoke = self._invoke_copying

    def _invoke_copying(self) -> None:
        for index, value in zip(self._input_indices, self.inputs, strict=True):
            self._interpreter.set_tensor(index, value)
        self._interpreter.invoke()
        self.outputs = tuple(read_only(self._interpreter.get_tensor(i)) for i in self._output_indices)

    def reset(self) -> None:
        """Put a stateful model's variables back to their initial values."""
        self._interpreter.reset_all_variables()

    def _view(self, index: int, writable: bool) -> Array:
        # The runtime refuses to run while one of its own views lives, so only the address is taken from it. The
        # address stays: shapes are static and tensors are allocated once.
        own = self._interpreter.tensor(index)()
        address, shape, dtype = own.__array_interface__["data"][0], own.shape, own.dtype
        del own
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory: Any = (ctypes.c_uint8 * count).from_address(address)
        # Every view and slice ends in `memory`, which keeps the interpreter alive.
        memory.owner = self._interpreter
        view: Array = np.frombuffer(memory, dtype).reshape(shape)
        view.flags.writeable = writable
        return view

    def _report(
        self, graph: Graph, options: EngineOptions, delegate: str | None, refusals: list[Refusal]
    ) -> EngineReport:
        delegated = _delegated(self._interpreter._get_ops_details(), graph)
        if delegate and not delegated:
            refusals.append(self._refused(graph, options, "it took none of the operators"))
        names = ([delegate] if delegate else []) + (["XNNPACK"] if options.kernels == "fast" else [])
        places = {
            " or ".join(names): [op for op in graph.operators if op.index in delegated],
            self.title: [op for op in graph.operators if op.index not in delegated],
        }
        return EngineReport(
            engine=self.name,
            version=self._version(),
            kernels=options.kernels,
            rounding=KERNELS[options.kernels][1] if options.kernels != "fast" or delegated else "mixed",
            threads=options.threads,
            placements=tuple(_placement(where, operators) for where, operators in places.items() if operators),
            refusals=tuple(refusals),
        )


class TfliteRuntime(LiteRt):
    """The same interface from the older package; its INT8 kernels are several times slower on x86-64."""

    name = "tflite-runtime"
    title = "tflite-runtime"
    package = "tflite-runtime"
    extra = "tflite-runtime"

    @staticmethod
    def _module() -> ModuleType:
        if int(np.__version__.split(".")[0]) >= 2:
            # Its compiled module would print a traceback of NumPy's and then fail.
            raise ImportError("tflite-runtime needs numpy<2")
        from tflite_runtime import interpreter

        return interpreter  # type: ignore[no-any-return]

    @staticmethod
    def _version() -> str:
        from importlib import metadata

        try:
            return metadata.version(TfliteRuntime.package)
        except metadata.PackageNotFoundError:
            return "unknown"


def has_static_shapes(graph: Graph) -> bool:
    """True when no shape is computed at run time, so that tensors stay where they were allocated."""
    if any(extent < 0 for tensor in graph.tensors for extent in tensor.shape_signature):
        return False
    return not any(_computes_shape(op, graph) for op in graph.operators)


def _computes_shape(op: Operator, graph: Graph) -> bool:
    if op.kind in _SHAPE_FROM_VALUES or op.kind.startswith("CUSTOM"):
        return True
    given = [op.inputs[i] for i in _SHAPE_INPUTS.get(op.kind, ()) if i < len(op.inputs)]
    return any(index >= 0 and not graph.tensors[index].is_constant for index in given)


def _placement(where: str, operators: Sequence[Operator]) -> Placement:
    return Placement(where, dict(sorted(Counter(op.kind for op in operators).items())))


def _delegated(details: Sequence[dict[str, Any]], graph: Graph) -> set[int]:
    """Operators that lie between the inputs and the outputs of a delegate's nodes."""
    producers = {index: op for op in graph.operators for index in op.outputs}
    found: set[int] = set()
    for node in details:
        if node["op_name"] != "DELEGATE":
            continue
        stop = {int(i) for i in node["inputs"]}
        pending = [int(i) for i in node["outputs"]]
        while pending:
            tensor = pending.pop()
            op = producers.get(tensor)
            if op is None or tensor in stop or op.index in found:
                continue
            found.add(op.index)
            pending.extend(op.inputs)
    return found
