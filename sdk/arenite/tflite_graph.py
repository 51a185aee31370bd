# SPDX-License-Identifier: Apache-2.0
"""Read a TFLite flatbuffer into the dataclasses of `arenite.graph`.

Nothing here decides what can be run: an operator that no kernel covers is read like any other. A file that is
truncated, corrupt or contradicts itself raises `ModelError` and never anything else.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError
from arenite.graph import UNSIZED_DTYPES, Graph, Operator, Quantisation, Tensor, printable

__all__ = ["parse_graph", "read_content", "read_graph"]

Array = npt.NDArray[Any]

# The only tensor types that the flatbuffer schema shares with NumPy; others are read by name without data.
_DTYPES = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    5: "string",
    6: "bool",
    7: "int16",
    8: "complex64",
    9: "int8",
    10: "float64",
    12: "uint64",
    13: "resource",
    14: "variant",
    15: "uint32",
    16: "uint16",
    17: "int4",
    18: "bfloat16",
}

# Options table of each operator and the fields that the code generator reads.
_CONV = ("Padding", "StrideH", "StrideW", "DilationHFactor", "DilationWFactor", "FusedActivationFunction")
_POOL = ("Padding", "StrideH", "StrideW", "FilterHeight", "FilterWidth", "FusedActivationFunction")
_OPTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "CONV_2D": ("Conv2DOptions", _CONV),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", (*_CONV, "DepthMultiplier")),
    "FULLY_CONNECTED": ("FullyConnectedOptions", ("FusedActivationFunction", "WeightsFormat", "KeepNumDims")),
    "ADD": ("AddOptions", ("FusedActivationFunction",)),
    "SUB": ("SubOptions", ("FusedActivationFunction",)),
    "MUL": ("MulOptions", ("FusedActivationFunction",)),
    "DIV": ("DivOptions", ("FusedActivationFunction",)),
    "CONCATENATION": ("ConcatenationOptions", ("Axis", "FusedActivationFunction")),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _POOL),
    "MAX_POOL_2D": ("Pool2DOptions", _POOL),
    "GELU": ("GeluOptions", ("Approximate",)),
    "L2_NORMALIZATION": ("L2NormOptions", ("FusedActivationFunction",)),
    "LEAKY_RELU": ("LeakyReluOptions", ("Alpha",)),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "MIRROR_PAD": ("MirrorPadOptions", ("Mode",)),
    "PACK": ("PackOptions", ("Axis", "ValuesCount")),
    "UNPACK": ("UnpackOptions", ("Axis", "Num")),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", ("BlockSize",)),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", ("BlockSize",)),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", ("AlignCorners", "HalfPixelCenters")),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", ("AlignCorners", "HalfPixelCenters")),
    "MEAN": ("ReducerOptions", ("KeepDims",)),
    "SUM": ("ReducerOptions", ("KeepDims",)),
    "REDUCE_MAX": ("ReducerOptions", ("KeepDims",)),
    "REDUCE_MIN": ("ReducerOptions", ("KeepDims",)),
    "SOFTMAX": ("SoftmaxOptions", ("Beta",)),
    "BATCH_MATMUL": ("BatchMatMulOptions", ("AdjX", "AdjY")),
    "SVDF": ("SVDFOptions", ("Rank", "FusedActivationFunction")),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        ("FusedActivationFunction", "CellClip", "ProjClip", "TimeMajor"),
    ),
    "TRANSPOSE_CONV": (
        "TransposeConvOptions",
        ("Padding", "StrideH", "StrideW", "FusedActivationFunction"),
    ),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset"),
    ),
    "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
    "VAR_HANDLE": ("VarHandleOptions", ("Container", "SharedName")),
}

_CORRUPT = (
    struct.error,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    UnicodeDecodeError,
    AttributeError,
    MemoryError,
)


def read_graph(path: Path | str) -> Graph:
    """Read a model file.

    Raises:
        ModelError: The file is missing, is not a TFLite model, or is corrupt.
    """
    return parse_graph(read_content(path), str(path))


def read_content(path: Path | str) -> bytes:
    """The bytes of a model file, whatever they are.

    Raises:
        ModelError: The file is missing or cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ModelError(
            f"cannot read the model: {error.strerror or error}", where=str(path), cure="Check the path."
        ) from error


def parse_graph(content: bytes, path: str = "<memory>") -> Graph:
    """Read a model from bytes; `path` is only used in messages.

    Raises:
        ModelError: The bytes are not a TFLite model or are corrupt.
    """
    if len(content) < 8 or content[4:8] != b"TFL3":
        raise ModelError(
            "not a TFLite model (the identifier TFL3 is missing)",
            where=path,
            cure="Convert the trained model first: arenite convert MODEL -o model.tflite",
        )
    try:
        graph = _Reader(content, path).graph()
    except _CORRUPT as error:
        raise ModelError(
            f"the file is truncated or corrupt ({type(error).__name__} while reading it)",
            where=path,
            cure="Copy or convert the model again.",
        ) from error
    _check_order(graph)
    for initialiser in graph.initialisers.values():
        _check_order(initialiser)
    return graph


class _Reader:
    def __init__(self, content: bytes, path: str) -> None:
        self._schema = importlib.import_module("tflite")
        self._content = content
        self._path = path
        self._model = self._schema.Model.GetRootAs(content, 0)
        self._kinds = {v: k for k, v in vars(self._schema.BuiltinOperator).items() if isinstance(v, int)}

    def graph(self) -> Graph:
        if self._model.SubgraphsLength() < 1:
            raise self._error("the model holds no subgraph")
        main = self._subgraph(0)
        if not main.inputs or not main.outputs:
            raise self._error("the model has no input or no output")
        called = {int(op.attributes["init_subgraph_index"]) for op in main.operators if op.kind == "CALL_ONCE"}
        return replace(main, initialisers={index: self._subgraph(index) for index in sorted(called)})

    def _subgraph(self, index: int) -> Graph:
        if not 0 <= index < self._model.SubgraphsLength():
            raise self._error(f"subgraph {index} does not exist")
        subgraph = self._model.Subgraphs(index)
        tensors = tuple(self._tensor(subgraph.Tensors(i), i) for i in range(subgraph.TensorsLength()))
        operators = tuple(
            self._operator(subgraph.Operators(i), i, len(tensors)) for i in range(subgraph.OperatorsLength())
        )
        inputs = self._indices(subgraph.InputsLength(), subgraph.Inputs, len(tensors), "a graph input")
        outputs = self._indices(subgraph.OutputsLength(), subgraph.Outputs, len(tensors), "a graph output")
        return Graph(
            path=self._path,
            sha256=hashlib.sha256(self._content).hexdigest(),
            tensors=tensors,
            operators=operators,
            inputs=inputs,
            outputs=outputs,
            metadata=self._metadata(),
        )

    def _error(self, what: str) -> ModelError:
        return ModelError(what, where=self._path, cure="Copy or convert the model again.")

    def _indices(
        self, count: int, get: Callable[[int], int], tensors: int, what: str, optional: bool = False
    ) -> tuple[int, ...]:
        indices = tuple(int(get(i)) for i in range(count))
        lowest = -1 if optional else 0
        if any(not lowest <= i < tensors for i in indices):
            raise self._error(f"{what} names a tensor that does not exist ({indices})")
        return indices

    def _tensor(self, raw: Any, index: int) -> Tensor:
        dtype = _DTYPES.get(raw.Type(), f"type {raw.Type()}")
        shape = tuple(int(raw.Shape(i)) for i in range(raw.ShapeLength()))
        name = (raw.Name() or b"").decode("utf-8", "replace")
        if any(d < 0 for d in shape) or len(shape) > 8:
            what = f"tensor {index} '{printable(name)}' has the shape {shape}; every dimension must be known"
            raise self._error(what)
        return Tensor(
            index=index,
            name=name,
            shape=shape,
            dtype=dtype,
            quantisation=self._quantisation(raw.Quantization()),
            data=self._data(raw, dtype, shape, f"tensor {index} '{printable(name)}'"),
            shape_signature=tuple(int(raw.ShapeSignature(i)) for i in range(raw.ShapeSignatureLength())),
            is_variable=bool(raw.IsVariable()),
        )

    def _quantisation(self, raw: Any) -> Quantisation | None:
        if raw is None or raw.ScaleLength() == 0:
            return None
        # Element by element, a MobileNetV2's 18,000 channels take 0.2 s: longer than the engine takes to open it.
        scales = tuple(raw.ScaleAsNumpy().tolist())
        zero_points = tuple(raw.ZeroPointAsNumpy().tolist()) if raw.ZeroPointLength() else ()
        if len(zero_points) != len(scales):
            zero_points = (zero_points or (0,)) * len(scales)
        return Quantisation(scales, zero_points[: len(scales)], int(raw.QuantizedDimension()))

    def _data(self, raw: Any, dtype: str, shape: tuple[int, ...], where: str) -> Array | None:
        buffer = self._buffer(raw.Buffer())
        if len(buffer) == 0 or dtype in UNSIZED_DTYPES or dtype.startswith("type "):
            return None
        if raw.Sparsity() is not None:
            raise self._error(f"{where} is stored sparse; convert the model without sparsity")
        expected = int(np.prod(shape, dtype=np.float64)) * np.dtype(dtype).itemsize
        if expected != len(buffer):
            raise self._error(f"{where} has {len(buffer)} bytes of data, its shape needs {expected}")
        return np.frombuffer(buffer, dtype=dtype).reshape(shape)

    def _buffer(self, index: int) -> bytes:
        if not 0 <= index < self._model.BuffersLength():
            raise self._error(f"buffer {index} does not exist")
        raw = self._model.Buffers(index)
        if raw.DataLength() > 0:
            return bytes(raw.DataAsNumpy())
        offset, size = int(raw.Offset()), int(raw.Size())
        # Offsets 0 and 1 are the schema's "no external data".
        return self._content[offset : offset + size] if offset > 1 else b""

    def _operator(self, raw: Any, index: int, tensors: int) -> Operator:
        code = self._model.OperatorCodes(raw.OpcodeIndex())
        if not 0 <= raw.OpcodeIndex() < self._model.OperatorCodesLength():
            raise self._error(f"operator {index} has no operator code")
        builtin = _builtin_code(code)
        kind = self._kinds.get(builtin, f"BUILTIN_{builtin}")
        if kind == "CUSTOM":
            kind = "CUSTOM:" + printable((code.CustomCode() or b"?").decode("utf-8", "replace"))
        where = f"operator {index} {kind}"
        return Operator(
            index=index,
            kind=kind,
            version=int(code.Version()),
            inputs=self._indices(raw.InputsLength(), raw.Inputs, tensors, where, optional=True),
            outputs=self._indices(raw.OutputsLength(), raw.Outputs, tensors, where),
            attributes=self._attributes(kind, raw, where),
        )

    def _attributes(self, kind: str, raw: Any, where: str) -> dict[str, Any]:
        if kind not in _OPTIONS:
            return {}
        table, fields = _OPTIONS[kind]
        union = raw.BuiltinOptions()
        if union is None or raw.BuiltinOptionsType() != getattr(self._schema.BuiltinOptions, table):
            raise self._error(f"{where} has no {table}")
        options = getattr(self._schema, table)()
        options.Init(union.Bytes, union.Pos)
        values = {_snake(name): getattr(options, name)() for name in fields}
        for name, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise self._error(f"{where}: its {name} is {value}")
        return {k: v.decode("utf-8", "replace") if isinstance(v, bytes) else v for k, v in values.items()}

    def _metadata(self) -> dict[str, bytes]:
        found = {}
        for i in range(self._model.MetadataLength()):
            entry = self._model.Metadata(i)
            name = (entry.Name() or b"").decode("utf-8", "replace")
            found[name] = self._buffer(entry.Buffer())
        return found


def _builtin_code(code: Any) -> int:
    """The larger of the old and the new field, as TFLite takes it; the package's own accessor prefers the old one."""
    offset = code._tab.Offset(10)
    (stored,) = struct.unpack_from("<i", code._tab.Bytes, code._tab.Pos + offset) if offset else (0,)
    return max(int(stored), int(code.DeprecatedBuiltinCode()))


def _snake(name: str) -> str:
    words = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    # StrideH -> stride_h, FusedActivationFunction -> fused_activation_function
    return words.lstrip("_")


def _check_order(graph: Graph) -> None:
    known = set(graph.inputs) | {t.index for t in graph.tensors if t.is_constant or t.is_variable}
    for operator in graph.operators:
        for index in operator.inputs:
            if index >= 0 and index not in known and graph.tensors[index].elements > 0:
                raise ModelError(
                    f"{operator} reads {graph.tensors[index]} before any operator has written it",
                    where=graph.path,
                    cure="Copy or convert the model again.",
                )
        for index in operator.outputs:
            if graph.tensors[index].is_constant or index in graph.inputs:
                raise ModelError(
                    f"{operator} writes {graph.tensors[index]}, which is an input or a constant",
                    where=graph.path,
                    cure="Copy or convert the model again.",
                )
            if index in known and not graph.tensors[index].is_variable:
                raise ModelError(
                    f"{operator} writes {graph.tensors[index]}, which another operator has written",
                    where=graph.path,
                    cure="Copy or convert the model again.",
                )
            known.add(index)
    for index in graph.outputs:
        if index not in known:
            raise ModelError(
                f"no operator writes the output {graph.tensors[index]}",
                where=graph.path,
                cure="Copy or convert the model again.",
            )
