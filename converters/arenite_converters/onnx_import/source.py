# SPDX-License-Identifier: Apache-2.0
"""The ONNX model before its graph is read: parsed, checked, static, float."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import MissingToolError, ModelError, UsageError
from arenite_converters.float_model import dims, first_line, several

__all__ = ["fixed_model", "infer", "onnx_package"]

Array = npt.NDArray[Any]
_CURE = "pip install 'arenite[onnx]'"
# An upper bound of an activation's range that means a ReLU6: its quantiser saw values up to the clipping.
_RELU6_FROM = 5.5


def onnx_package() -> Any:
    """The `onnx` package.

    Raises:
        MissingToolError: It is not installed.
    """
    try:
        return import_module("onnx")
    except ImportError as error:
        raise MissingToolError("onnx, which reads the model, is not installed", cure=_CURE) from error


def infer(content: bytes, where: str) -> Any:
    """A session of ONNX Runtime on one thread, without any rewriting of the graph.

    Raises:
        MissingToolError: ONNX Runtime is not installed.
        ModelError: It cannot load the model.
    """
    try:
        ort = import_module("onnxruntime")
    except ImportError as error:
        raise MissingToolError("onnxruntime, which runs the model, is not installed", cure=_CURE) from error
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # whatever ONNX Runtime raises for a foreign file
        raise ModelError(
            f"ONNX Runtime cannot load the model ({first_line(error)})",
            where=where,
            cure="Check the file with onnx.checker, or export it again.",
        ) from error


def fixed_model(model: Any, input_shape: Sequence[int] | None, where: str) -> Any:
    """The model with one float32 input of static shape, its functions inlined and its activations float.

    Args:
        model: ONNX ModelProto; it is changed.
        input_shape: Without the batch, in the model's own order, for models that leave dimensions open.
        where: For messages.

    Raises:
        ModelError: Several inputs or outputs, or an input that is not float32.
        UsageError: A dimension stays open.
    """
    if model.functions:
        model = import_module("onnx.inliner").inline_local_functions(model)
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    for what, found in (("inputs", inputs), ("outputs", graph.output)):
        if len(found) != 1:
            raise several(what, len(found), where)
    tensor = inputs[0].type.tensor_type
    if tensor.elem_type != onnx_package().TensorProto.FLOAT:
        kind = onnx_package().TensorProto.DataType.Name(tensor.elem_type).lower()
        raise ModelError(
            f"the input '{inputs[0].name}' is {kind}",
            where=where,
            cure="Export the model with a float32 input; Arenite quantises it itself.",
        )
    _fix_shape(tensor.shape.dim, input_shape, where)
    _drop_activation_quantisation(model)
    # They were true of open dimensions and of quantised values.
    del graph.value_info[:]
    graph.output[0].type.tensor_type.ClearField("shape")
    return model


def _fix_shape(axes: Any, wanted: Sequence[int] | None, where: str) -> None:
    known = [axis.dim_value if axis.dim_value > 0 else None for axis in axes]
    names = [str(axis.dim_value if axis.dim_value > 0 else axis.dim_param or "?") for axis in axes]
    if not known or known[0] not in (None, 1):
        raise ModelError(
            f"the model takes a batch of {names[0]}" if known else "the model's input has no dimension",
            where=where,
            cure="Export it with a batch of 1 or an open batch.",
        )
    fixed = [1, *(known[1:] if wanted is None else wanted)]
    if wanted is not None and (
        len(fixed) != len(known) or any(k not in (None, f) for k, f in zip(known, fixed, strict=True))
    ):
        raise UsageError(
            f"the model's input is {dims(known[1:])}, not {dims(wanted)}",
            where=where,
            cure="Leave input_shape away or give one that fits.",
        )
    if None in fixed:
        raise UsageError(
            f"the model leaves dimensions of its input open ({'×'.join(names[1:])})",
            where=where,
            cure="Give input_shape in the model's own order, such as (3, 224, 224): firmware needs static shapes.",
        )
    for axis, extent in zip(axes, fixed, strict=True):
        axis.dim_value = extent


def _drop_activation_quantisation(model: Any) -> None:
    """QuantizeLinear of an activation becomes the clipping that its range stands for, DequantizeLinear nothing.

    Quantisers drop the ReLU that a range starting at zero makes superfluous; without the range it must come back.
    Weights stay: what dequantises a constant is a constant.
    """
    helper = onnx_package().numpy_helper
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                constants[node.output[0]] = attribute.t
    known = set(constants)
    for node in model.graph.node:
        if all(name in known for name in node.input if name):
            known.update(node.output)
        elif node.op_type == "QuantizeLinear":
            scale, zero = (constants.get(name) for name in (*node.input[1:3], "")[:2])
            range_ = None
            if scale is not None and zero is not None:
                range_ = _range(helper.to_array(scale), helper.to_array(zero))
            _become_clip(model, node, range_)
        elif node.op_type == "DequantizeLinear":
            _become(node, "Identity")


def _range(scale: Array, zero: Array) -> tuple[float, float] | None:
    if scale.size != 1:
        return None
    limits = np.iinfo(zero.dtype)
    low, high = ((limit - int(zero.flat[0])) * float(scale.flat[0]) for limit in (limits.min, limits.max))
    return low, high


def _become_clip(model: Any, node: Any, range_: tuple[float, float] | None) -> None:
    if range_ is None or range_[0] < 0:
        _become(node, "Identity")
    elif range_[1] < _RELU6_FROM or range_[1] > 6.001:
        _become(node, "Relu")
    else:
        _become(node, "Clip")
        onnx = onnx_package()
        for name, value in (("low", 0.0), ("high", 6.0)):
            unique = f"{node.output[0]}/{name}"
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(value), unique))
            node.input.append(unique)


def _become(node: Any, kind: str) -> None:
    node.op_type, node.domain = kind, ""
    del node.input[1:]
    del node.attribute[:]
