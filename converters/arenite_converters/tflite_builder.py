# SPDX-License-Identifier: Apache-2.0
"""Builds a TFLite file tensor by tensor and operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.flatbuffer import pack, schema

__all__ = ["ModelBuilder"]


class ModelBuilder:
    """A model of one subgraph: add tensors, add operators, finish.

    Example:
        builder = ModelBuilder()
        x = builder.tensor("x", (1, 4), "int8", scales=[0.1], zero_points=[3])
        y = builder.tensor("y", (1, 4), "int8", scales=[0.1], zero_points=[3])
        builder.operator("RELU", [x], [y])
        model_bytes = builder.finish([x], [y])
    """

    def __init__(self) -> None:
        self._schema = schema()
        self._buffers: list[Any] = [self._buffer(None)]
        self._tensors: list[Any] = []
        self._operators: list[Any] = []
        self._codes: list[tuple[str, int]] = []
        self._metadata: list[Any] = []
        self._initialised: list[tuple[str, int]] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        *,
        variable: bool = False,
        scales: Sequence[float] | None = None,
        zero_points: Sequence[int] | None = None,
        axis: int = 0,
        data: npt.NDArray[Any] | None = None,
    ) -> int:
        """Adds a tensor and returns its index.

        Args:
            name: The tensor's name, any text.
            shape: Its shape; an empty one is a scalar.
            dtype: "int8", "uint8", "int16", "int32", "int64", "float32", "bool", or "resource" for a variable's handle.
            scales: One scale, or one for each index along `axis`; None leaves the tensor unquantised.
            zero_points: As many as scales; None is all zero.
            axis: The quantised dimension of per-channel scales.
            variable: An operator keeps its state there.
            data: Constant contents, of the stated shape and type.
        """
        tensor = self._schema.TensorT()
        tensor.name = name
        tensor.shape = [int(extent) for extent in shape]
        tensor.type = getattr(self._schema.TensorType, dtype.upper())
        tensor.buffer = self._constant(name, tuple(shape), dtype, data)
        tensor.isVariable = variable
        tensor.quantization = self._quantisation(scales, zero_points, axis)
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def operator(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        version: int = 1,
        options: str | None = None,
        **attributes: Any,
    ) -> int:
        """Adds an operator and returns its index.

        Args:
            kind: A name of TFLite's BuiltinOperator enumeration, such as "CONV_2D".
            inputs: Tensor indices; -1 is an absent optional input.
            outputs: Tensor indices.
            version: The operator's version in the file.
            options: Name of the options table without "T" ("Conv2DOptions"); None for none.
            attributes: Fields of that table by their names in the schema ("strideW").
        """
        operator = self._schema.OperatorT()
        operator.opcodeIndex = self._code(kind, version)
        operator.inputs = [int(index) for index in inputs]
        operator.outputs = [int(index) for index in outputs]
        if options is not None:
            operator.builtinOptionsType = getattr(self._schema.BuiltinOptions, options)
            operator.builtinOptions = getattr(self._schema, f"{options}T")()
            for field, value in attributes.items():
                if not hasattr(operator.builtinOptions, field):
                    raise AttributeError(f"{options} has no field {field}")
                setattr(operator.builtinOptions, field, value)
        self._operators.append(operator)
        return len(self._operators) - 1

    def initialise(self, variable: str, tensor: int) -> None:
        """CALL_ONCE shall assign the constant `tensor` to a resource variable; `finish` makes the subgraph."""
        self._initialised.append((variable, tensor))

    def metadata(self, name: str, payload: bytes) -> None:
        """Adds a metadata entry to the file."""
        entry = self._schema.MetadataT()
        entry.name = name
        entry.buffer = len(self._buffers)
        self._buffers.append(self._buffer(np.frombuffer(payload, np.uint8)))
        self._metadata.append(entry)

    def finish(self, inputs: Sequence[int], outputs: Sequence[int], signature: str | None = None) -> bytes:
        """Packs the model with these graph inputs and outputs; a signature names them by their tensors."""
        subgraph = self._schema.SubGraphT()
        subgraph.name = "main"
        subgraph.tensors = self._tensors
        subgraph.operators = self._operators
        subgraph.inputs = [int(index) for index in inputs]
        subgraph.outputs = [int(index) for index in outputs]
        initialiser = self._initialiser()
        model = self._schema.ModelT()
        model.version = 3
        model.description = "built by Arenite"
        model.operatorCodes = [self._operator_code(kind, version) for kind, version in self._codes]
        model.subgraphs = [subgraph, *initialiser]
        model.buffers = self._buffers
        model.metadata = self._metadata
        if signature is not None:
            model.signatureDefs = [self._signature(signature, inputs, outputs)]
        return pack(model)

    def _initialiser(self) -> list[Any]:
        """The subgraph that CALL_ONCE runs, if there is one."""
        if not self._initialised:
            return []
        subgraph, main = self._schema.SubGraphT(), (self._tensors, self._operators)
        constants = [(name, self._tensors[index]) for name, index in self._initialised]
        self._tensors, self._operators = [], []
        for name, constant in constants:
            handle = self.tensor(name, (), "resource")
            self._tensors.append(constant)
            self.operator("VAR_HANDLE", [], [handle], options="VarHandleOptions", sharedName=name)
            self.operator("ASSIGN_VARIABLE", [handle, handle + 1], [])
        subgraph.name, subgraph.inputs, subgraph.outputs = "initialiser", [], []
        subgraph.tensors, subgraph.operators = self._tensors, self._operators
        self._tensors, self._operators = main
        return [subgraph]

    def _constant(self, name: str, shape: tuple[int, ...], dtype: str, data: npt.NDArray[Any] | None) -> int:
        if data is None:
            return 0
        if data.shape != shape or data.dtype != np.dtype(dtype):
            raise ValueError(f"{name}: data is {data.dtype}{data.shape}, the tensor {dtype}{shape}")
        self._buffers.append(self._buffer(np.frombuffer(data.tobytes(), np.uint8)))
        return len(self._buffers) - 1

    def _code(self, kind: str, version: int) -> int:
        if (kind, version) not in self._codes:
            self._codes.append((kind, version))
        return self._codes.index((kind, version))

    def _signature(self, key: str, inputs: Sequence[int], outputs: Sequence[int]) -> Any:
        signature = self._schema.SignatureDefT()
        signature.signatureKey = key
        signature.inputs, signature.outputs = ([self._end(i) for i in ends] for ends in (inputs, outputs))
        return signature

    def _end(self, index: int) -> Any:
        end = self._schema.TensorMapT()
        end.name, end.tensorIndex = self._tensors[index].name, index
        return end

    def _buffer(self, data: npt.NDArray[np.uint8] | None) -> Any:
        buffer = self._schema.BufferT()
        buffer.data = data
        return buffer

    def _quantisation(self, scales: Sequence[float] | None, zero_points: Sequence[int] | None, axis: int) -> Any:
        if scales is None:
            return None
        quantisation = self._schema.QuantizationParametersT()
        quantisation.scale = [float(scale) for scale in scales]
        quantisation.zeroPoint = [int(point) for point in zero_points or [0] * len(scales)]
        quantisation.quantizedDimension = axis
        return quantisation

    def _operator_code(self, kind: str, version: int) -> Any:
        code = self._schema.OperatorCodeT()
        builtin = getattr(self._schema.BuiltinOperator, kind)
        code.builtinCode = builtin
        code.deprecatedBuiltinCode = min(builtin, 127)
        code.version = version
        return code
