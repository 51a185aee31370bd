# SPDX-License-Identifier: Apache-2.0
"""Give an INT8 model uint8 input and output, as cameras and older programs have them."""

from __future__ import annotations

from typing import Any

from arenite_converters.flatbuffer import pack, schema, unpack

__all__ = ["with_uint8_ends"]

_SHIFT = 128  # from int8's zero point to uint8's; the scale stays, so no value changes


def with_uint8_ends(content: bytes) -> bytes:
    """The same model behind a QUANTIZE at its input and before one at its output."""
    model = unpack(content)
    graph = model.subgraphs[0]
    code = _quantize_code(model)
    outside = [_twin(graph, int(index)) for index in (*graph.inputs, *graph.outputs)]
    source, result = outside[: len(graph.inputs)], outside[len(graph.inputs) :]
    before = [_operator(code, new, int(old)) for new, old in zip(source, graph.inputs, strict=True)]
    after = [_operator(code, int(old), new) for old, new in zip(graph.outputs, result, strict=True)]
    graph.operators = [*before, *graph.operators, *after]
    renamed = {int(old): new for old, new in zip((*graph.inputs, *graph.outputs), outside, strict=True)}
    for signature in model.signatureDefs or []:
        for entry in (*signature.inputs, *signature.outputs):
            entry.tensorIndex = renamed.get(int(entry.tensorIndex), entry.tensorIndex)
    graph.inputs, graph.outputs = source, result
    return pack(model)


def _quantize_code(model: Any) -> int:
    builtin = schema().BuiltinOperator.QUANTIZE
    code = schema().OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = builtin
    code.version = 1
    model.operatorCodes.append(code)
    return len(model.operatorCodes) - 1


def _twin(graph: Any, index: int) -> int:
    inner = graph.tensors[index]
    outer, grid = schema().TensorT(), schema().QuantizationParametersT()
    grid.scale = inner.quantization.scale
    grid.zeroPoint = [int(inner.quantization.zeroPoint[0]) + _SHIFT]
    outer.name, outer.shape, outer.quantization = inner.name, inner.shape, grid
    outer.type, outer.buffer = schema().TensorType.UINT8, 0
    inner.name = inner.name + b"_int8"
    graph.tensors.append(outer)
    return len(graph.tensors) - 1


def _operator(code: int, source: int, result: int) -> Any:
    operator = schema().OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = code, [source], [result]
    operator.builtinOptionsType = schema().BuiltinOptions.QuantizeOptions
    operator.builtinOptions = schema().QuantizeOptionsT()
    return operator
