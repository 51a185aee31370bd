# SPDX-License-Identifier: Apache-2.0
"""Operators that compute element by element."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite_converters.onnx_import.axes import Order, Shuffle, channel_last, natural
from arenite_converters.onnx_import.graph import Node
from arenite_converters.onnx_import.lowering import Lowering, Value
from arenite_converters.onnx_import.operators import affine

__all__ = [
    "BINARY",
    "UNARY",
    "batch_normalisation",
    "binary",
    "cast",
    "clip",
    "hard_sigmoid",
    "leaky_relu",
    "power",
    "prelu",
    "unary",
]

Array = npt.NDArray[Any]
# TFLite operator, its options table, and whether no result is below zero.
UNARY: Mapping[str, tuple[str, str | None, bool]] = {
    "Abs": ("ABS", "AbsOptions", True),
    "Ceil": ("CEIL", None, False),
    "Cos": ("COS", "CosOptions", False),
    "Elu": ("ELU", None, False),
    "Exp": ("EXP", "ExpOptions", True),
    "Floor": ("FLOOR", None, False),
    "Gelu": ("GELU", "GeluOptions", False),
    "HardSwish": ("HARD_SWISH", "HardSwishOptions", False),
    "Log": ("LOG", None, False),
    "Neg": ("NEG", "NegOptions", False),
    "Round": ("ROUND", None, False),
    "Sigmoid": ("LOGISTIC", None, True),
    "Sin": ("SIN", None, False),
    "Sqrt": ("SQRT", None, True),
    "Tanh": ("TANH", None, False),
}
BINARY: Mapping[str, tuple[str, str]] = {
    "Add": ("ADD", "AddOptions"),
    "Div": ("DIV", "DivOptions"),
    "Max": ("MAXIMUM", "MaximumMinimumOptions"),
    "Min": ("MINIMUM", "MaximumMinimumOptions"),
    "Mul": ("MUL", "MulOptions"),
    "Sub": ("SUB", "SubOptions"),
    "Sum": ("ADD", "AddOptions"),
}
_FUSING = ("ADD", "DIV", "MUL", "SUB")
_FLOATS = (1, 10, 11, 16)  # float32, float16, float64, bfloat16 in ONNX
_SIXTH = 1 / 6


def cast(to: Lowering, node: Node) -> None:
    """The same value, as long as it stays a real number."""
    if node.attributes["to"] not in _FLOATS:
        raise to.refuse(node, "to a type that is not float")
    to.values[node.outputs[0]] = to.values[node.inputs[0]]


def unary(to: Lowering, node: Node) -> None:
    """One operator with one input."""
    kind, table, positive = UNARY[node.kind]
    if node.attributes.get("alpha", 1.0) != 1.0:
        raise to.refuse(node, "with alpha")
    attributes = {"approximate": node.attributes.get("approximate") == "tanh"} if kind == "GELU" else {}
    _like_input(to, node, node.outputs[0], kind, table, positive, **attributes)


def _like_input(
    to: Lowering, node: Node, name: str, kind: str, table: str | None, positive: bool, **attributes: Any
) -> None:
    value = to.values[node.inputs[0]]
    shape = to.memory_shape(name, value.order)
    result = to.emit(kind, [value.tensor], shape, name, table, **attributes)
    to.values[name] = Value(result, value.order, value.shuffle, positive)


def leaky_relu(to: Lowering, node: Node) -> None:
    """LEAKY_RELU."""
    alpha = node.attributes.get("alpha", 0.01)
    _like_input(to, node, node.outputs[0], "LEAKY_RELU", "LeakyReluOptions", False, alpha=alpha)


def clip(to: Lowering, node: Node) -> None:
    """RELU and its kin; other limits are a MAXIMUM and a MINIMUM; none where they cannot bind."""
    limits = to.clip_limits(node)
    assert limits is not None  # the table sends Relu and Clip here
    name, value = node.outputs[0], to.values[node.inputs[0]]
    low, high = limits if not value.is_positive else (max(limits[0], 0.0), limits[1])
    known = {(0.0, math.inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1", (0.0, 1.0): "RELU_0_TO_1"}
    if value.is_positive and (low, high) == (0.0, math.inf):
        to.values[name] = value
    elif (low, high) in known:
        _like_input(to, node, name, known[low, high], None, low >= 0)
    else:
        shape, tensor = to.memory_shape(name, value.order), value.tensor
        for kind, limit in (("MAXIMUM", low), ("MINIMUM", high)):
            if math.isfinite(limit):
                constant = to.add(np.float32(limit), f"{name}/limit")
                tensor = to.emit(kind, [tensor, constant], shape, name, "MaximumMinimumOptions")
        to.values[name] = Value(tensor, value.order, value.shuffle, low >= 0)


def hard_sigmoid(to: Lowering, node: Node) -> None:
    """HARD_SWISH where the value is multiplied with it, else clip(alpha × x + beta, 0, 1)."""
    alpha, beta = node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5)
    name, source = node.outputs[0], node.inputs[0]
    reader = to.only_reader(name)
    is_sixth = math.isclose(alpha, _SIXTH, rel_tol=1e-4) and beta == 0.5
    if is_sixth and reader is not None and reader.kind == "Mul" and set(reader.inputs) == {name, source}:
        to.absorb(reader)
        _like_input(to, node, reader.outputs[0], "HARD_SWISH", "HardSwishOptions", False)
        return
    value = to.values[source]
    shape = to.memory_shape(name, value.order)
    offset, factor = to.add(np.float32(beta / alpha), f"{name}/offset"), to.add(np.float32(alpha), f"{name}/factor")
    if is_sixth:
        options = {"fusedActivationFunction": "RELU6"}
        tensor = to.emit("ADD", [value.tensor, offset], shape, f"{name}/clipped", "AddOptions", **options)
        tensor = to.emit("MUL", [tensor, factor], shape, name, "MulOptions")
    else:
        tensor = to.emit("ADD", [value.tensor, offset], shape, f"{name}/moved", "AddOptions")
        tensor = to.emit("MUL", [tensor, factor], shape, f"{name}/scaled", "MulOptions")
        tensor = to.emit("RELU_0_TO_1", [tensor], shape, name)
    to.values[name] = Value(tensor, value.order, value.shuffle, True)


def power(to: Lowering, node: Node) -> None:
    """MUL for squares, SQRT for roots, POW for other constant exponents."""
    exponent = to.required(node, 1, "exponent")
    name, value = node.outputs[0], to.values[node.inputs[0]]
    shape = to.memory_shape(name, value.order)
    if exponent.size != 1:
        raise to.refuse(node, "whose exponents differ")
    if exponent.flat[0] == 2:
        result = to.emit("MUL", [value.tensor] * 2, shape, name, "MulOptions")
    elif exponent.flat[0] == 0.5:
        result = to.emit("SQRT", [value.tensor], shape, name)
    else:
        constant = to.add(np.float32(exponent.flat[0]), f"{name}/exponent")
        result = to.emit("POW", [value.tensor, constant], shape, name, "PowOptions")
    to.values[name] = Value(result, value.order, value.shuffle, exponent.flat[0] in (0.5, 2))


def prelu(to: Lowering, node: Node) -> None:
    """PRELU."""
    name, value = node.outputs[0], to.value(node.inputs[0])
    slope = _aligned(to, to.required(node, 1, "slope"), value, len(value.order))
    # TFLite wants a slope without the batch.
    constant = to.add(slope.reshape(slope.shape[1:]), node.inputs[1])
    result = to.emit("PRELU", [value.tensor, constant], to.memory_shape(name, value.order), name)
    to.values[name] = Value(result, value.order)


def batch_normalisation(to: Lowering, node: Node) -> None:
    """MUL and ADD, where no convolution before it could take them."""
    name, value = node.outputs[0], to.value(node.inputs[0])
    scale, offset = affine.batch_normalisation(to, node)
    shape = to.memory_shape(name, value.order)
    extents = [len(scale) if axis == 1 else 1 for axis in value.order]
    tensor = to.emit(
        "MUL", [value.tensor, to.add(scale.reshape(extents), f"{name}/scale")], shape, f"{name}/scaled", "MulOptions"
    )
    activation, name = to.activation(name)
    constant = to.add(offset.reshape(extents), f"{name}/offset")
    options = {"fusedActivationFunction": activation}
    tensor = to.emit("ADD", [tensor, constant], shape, name, "AddOptions", **options)
    to.values[name] = Value(tensor, value.order, None, activation in ("RELU", "RELU6"))


def binary(to: Lowering, node: Node) -> None:
    """One operator with two inputs, or a chain of them for more."""
    swished = _hard_swish(to, node) if node.kind == "Add" else None
    if swished is not None:
        to.absorb(swished)
        _like_input(to, node, swished.outputs[0], "HARD_SWISH", "HardSwishOptions", False)
        return
    names, kind = _as_usual(to, node)
    table = BINARY[node.kind][1] if kind != "MUL" else "MulOptions"
    table = "AddOptions" if kind == "ADD" else table
    activation, name = to.activation(node.outputs[0]) if kind in _FUSING else ("NONE", node.outputs[0])
    order, shuffle = _common_order(to, names, len(to.shape(name)))
    tensors = [_operand(to, operand, order, shuffle) for operand in names]
    options = {"fusedActivationFunction": activation} if kind in _FUSING else {}
    result = tensors[0]
    for other in tensors[1:]:
        result = to.emit(kind, [result, other], to.memory_shape(name, order), name, table, **options)
    positive = activation in ("RELU", "RELU6") or (
        kind in ("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL") and all(_is_positive(to, n) for n in names)
    )
    to.values[name] = Value(result, order, shuffle, positive)


def _as_usual(to: Lowering, node: Node) -> tuple[list[str | Array], str]:
    """Operands and TFLite operator; dividing by or subtracting a constant is multiplying or adding another one."""
    kind = BINARY[node.kind][0]
    names: list[str | Array] = []
    for name in node.inputs:
        constant = to.constant(name)
        names.append(name if constant is None else constant)
    last = names[-1]
    if isinstance(last, np.ndarray) and kind == "DIV" and (last != 0).all():
        return [names[0], 1 / last], "MUL"
    if isinstance(last, np.ndarray) and kind == "SUB":
        return [names[0], -last], "ADD"
    return names, kind


def _is_positive(to: Lowering, operand: str | Array) -> bool:
    return to.values[operand].is_positive if isinstance(operand, str) else bool((operand >= 0).all())


def _common_order(to: Lowering, operands: list[str | Array], rank: int) -> tuple[Order, Shuffle | None]:
    """The order of the result: the operands' own one where they agree, else channel-last if one has it."""
    values = [to.values[name] for name in operands if isinstance(name, str)]
    first = values[0]
    if len(first.order) == rank and all((v.order, v.shuffle) == (first.order, first.shuffle) for v in values):
        return first.order, first.shuffle
    orders = [value.order for value in values if len(value.order) == rank]
    if channel_last(rank) in orders:
        return channel_last(rank), None
    return (orders[0] if orders else natural(rank)), None


def _operand(to: Lowering, operand: str | Array, order: Order, shuffle: Shuffle | None) -> int:
    if isinstance(operand, str):
        if shuffle is not None:
            return to.values[operand].tensor
        rank = len(to.shape(operand))
        if rank == len(order):
            return to.operand(operand, order)
        shape = (*(1,) * (len(order) - rank), *to.shape(operand))
        tensor = to.reshape(to.operand(operand, natural(rank)), shape, f"{operand}/wide")
        return to.transpose(tensor, shape, order, f"{operand}/wide")
    if operand.size == 1:
        return to.add(np.float32(operand.reshape(-1)[0]))
    full = operand.reshape((1,) * (len(order) - operand.ndim) + operand.shape).transpose(order)
    return to.add(full if shuffle is None or full.shape[-1] == 1 else full[..., shuffle.indices()])


def _aligned(to: Lowering, constant: Array, value: Value, rank: int) -> Array:
    full = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
    return np.asarray(full.transpose(value.order))


def _hard_swish(to: Lowering, node: Node) -> Node | None:
    """The last node of x × relu6(x + 3) / 6 when this one is its first; those between are absorbed."""
    source = node.inputs[0]
    clipped = to.only_reader(node.outputs[0])
    if not _is_constant(to, node, source, 3) or clipped is None or to.clip_limits(clipped) != (0.0, 6.0):
        return None
    first = to.only_reader(clipped.outputs[0])
    last = None if first is None else to.only_reader(first.outputs[0])
    if first is None or last is None:
        return None
    for product, sixth, factor in (
        (first, last, first.outputs[0]),
        (last, first, clipped.outputs[0]),
    ):
        other = clipped.outputs[0] if product is first else first.outputs[0]
        if product.kind == "Mul" and set(product.inputs) == {source, other} and _is_sixth(to, sixth, factor):
            to.absorb(clipped)
            to.absorb(first)
            return last
    return None


def _is_sixth(to: Lowering, node: Node, source: str) -> bool:
    wanted = {"Mul": _SIXTH, "Div": 6.0}.get(node.kind)
    return wanted is not None and _is_constant(to, node, source, wanted)


def _is_constant(to: Lowering, node: Node, source: str, wanted: float) -> bool:
    others = [name for name in node.inputs if name != source]
    constant = to.constant(others[0]) if len(others) == 1 else None
    return constant is not None and constant.size == 1 and math.isclose(constant.flat[0], wanted, rel_tol=1e-4)
