# SPDX-License-Identifier: Apache-2.0
"""ONNX files, float and with quantised activations, by Arenite's own importer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError
from arenite_converters.float_model import FloatModel, first_line, package_version
from arenite_converters.onnx_import import (
    VANISHING,
    fixed_model,
    infer,
    lower,
    merge_pads,
    read_onnx_graph,
    sink_transposes,
)
from arenite_converters.onnx_import.operators import TABLE
from arenite_converters.onnx_import.source import onnx_package

__all__ = ["import_model", "load_onnx"]

Floats = npt.NDArray[np.float32]


def load_onnx(path: Path, input_shape: Sequence[int] | None) -> FloatModel:
    """Load an ONNX file; it is compared with ONNX Runtime.

    Raises:
        ModelError: It is damaged, has several inputs or outputs, or its batch is not 1.
        UnsupportedOperatorError: An operator cannot be converted.
        MissingToolError: onnx or onnxruntime is not installed.
    """
    onnx = onnx_package()
    try:
        model = onnx.load(str(path))
    except Exception as error:  # protobuf and onnx raise many kinds for a foreign file
        raise ModelError(
            f"the file is damaged or no ONNX model ({first_line(error)})",
            where=str(path),
            cure="Copy it again, with the file of its weights beside it when it has one.",
        ) from error
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    quantised = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    kind = f"ONNX opset {opset}{', QDQ' if quantised else ''}"
    return import_model(model, input_shape, str(path), f"{kind}, onnx {package_version('onnx')}")


def import_model(
    model: Any,
    input_shape: Sequence[int] | None,
    where: str,
    loader: str,
    trained: Callable[[Floats], Floats] | None = None,
) -> FloatModel:
    """A loaded ONNX model as a float model.

    Args:
        model: ONNX ModelProto; it is changed.
        input_shape: Without the batch, in the model's own order.
        where: For messages.
        loader: What to call it.
        trained: The trained model itself, in its own order; by default the ONNX model in ONNX Runtime.
    """
    try:
        model = fixed_model(model, input_shape, where)
        graph = read_onnx_graph(model, {*TABLE, *VANISHING}, where)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # What the onnx package raises for types that do not exist and contents that do not fit their shapes.
        raise ModelError(
            f"the file contradicts itself ({first_line(error)})", where=where, cure="Export or copy it again."
        ) from error
    imported = lower(merge_pads(sink_transposes(graph)), TABLE)
    source = trained or _in_onnx_runtime(model, where)
    # Axis i of the source's input is axis back[i] of ours.
    back = [imported.input_order.index(axis) for axis in range(len(imported.input_order))]

    def run(sample: Floats) -> Floats:
        output = source(np.ascontiguousarray(sample.transpose(back)))
        return np.asarray(output.transpose(imported.output_order))

    return FloatModel(imported.content, imported.shape, loader, run)


def _in_onnx_runtime(model: Any, where: str) -> Callable[[Floats], Floats]:
    session = infer(model.SerializeToString(), where)
    name = session.get_inputs()[0].name
    return lambda sample: np.asarray(session.run(None, {name: sample})[0], np.float32)
