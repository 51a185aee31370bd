# SPDX-License-Identifier: Apache-2.0
"""ONNX to float TFLite, channel-last, operator by operator.

1. `source`: fix the dimensions, turn the activations' quantisation into the clipping that it stands for.
2. `graph`: refuse what no lowering covers, run the model once for the shape of every value, fold constants.
3. `rewrites`: transpositions that undo each other meet, zeros around a map go into the convolution that reads them.
4. `lowering` and `operators`: each node becomes TFLite operators. A value knows in which order its axes lie, so that a
   transposition costs nothing until an operator needs another order.

Nothing here needs TensorFlow or PyTorch.
"""

from arenite_converters.onnx_import.graph import read_onnx_graph
from arenite_converters.onnx_import.lowering import Imported, lower
from arenite_converters.onnx_import.rewrites import VANISHING, merge_pads, sink_transposes
from arenite_converters.onnx_import.source import fixed_model, infer

__all__ = ["Imported", "VANISHING", "fixed_model", "infer", "lower", "merge_pads", "read_onnx_graph", "sink_transposes"]
