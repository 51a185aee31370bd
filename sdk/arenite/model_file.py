# SPDX-License-Identifier: Apache-2.0
"""Read a model of any format that an engine runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from arenite.graph import Graph

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["COREML_SUFFIXES", "read_model"]

COREML_SUFFIXES = (".mlmodel", ".mlpackage")


def read_model(path: Path | str, engine: str | None = None) -> Graph:
    """Inputs, outputs, operators and metadata: of a .onnx, .mlpackage or .mlmodel by its name, else of a TFLite file.

    Args:
        path: The file.
        engine: What shall run it: for `aot` a model that was compiled before is not read again.

    Raises:
        ModelError: The file is missing, is no such model, or is corrupt.
    """
    # Without pathlib, for the engine whose opening its import would lengthen by a tenth.
    suffix = os.path.splitext(os.path.normpath(path))[1].lower()
    if engine == "aot" and suffix not in (".onnx", *COREML_SUFFIXES):
        from arenite.compiled import read_compiled

        return read_compiled(path)
    from pathlib import Path

    path = Path(path)
    if suffix == ".onnx":
        from arenite.onnx_model import read_onnx

        return read_onnx(path)
    if suffix in COREML_SUFFIXES:
        from arenite.coreml_package import read_coreml

        return read_coreml(path)
    from arenite.tflite_graph import read_graph

    return read_graph(path)
