# SPDX-License-Identifier: Apache-2.0
"""The authority on output bytes: TensorFlow Lite for Microcontrollers' reference kernels (`tflite-micro`).

It has none for models that were born uint8: theirs are LiteRT's reference kernels.
"""

from __future__ import annotations

import io
import subprocess
import sys
from importlib import metadata, util
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite._reference_worker import LITERT, REFUSED, TFLM, key
from arenite.errors import MissingToolError, ModelError
from arenite.graph import Graph
from arenite.tflite_graph import parse_graph

__all__ = ["LITERT", "TFLM", "reference_available", "reference_name", "reference_outputs"]

Array = npt.NDArray[Any]

_TIMEOUT_S = 600
# TFLM places everything in one arena of fixed size. Room for every activation at once is always enough for
# them; the rest is the interpreter's own bookkeeping.
_BOOKKEEPING_BYTES = 1 << 20


_MODULES = {TFLM: "tflite_micro", LITERT: "ai_edge_litert"}


def reference_available(package: str = TFLM) -> bool:
    """True when the package is installed."""
    return util.find_spec(_MODULES[package]) is not None


def reference_name(package: str = TFLM) -> str:
    """Name and version of the authority, for reports."""
    return f"{package} {metadata.version(package)}"


def reference_outputs(
    model: bytes, vectors: list[list[Array]], path: str = "<memory>", package: str = TFLM
) -> list[list[Array]]:
    """Run a model on the reference kernels.

    Args:
        package: Whose: TFLM's, or LiteRT's for what TFLM refuses.
        model: The TFLite file's bytes.
        vectors: For each run, one array for each input, of the input's shape and type.

    Returns:
        For each run, one array for each output.

    Raises:
        MissingToolError: The package is not installed, or cannot be imported.
        ModelError: The reference refuses the model.
    """
    if not reference_available(package):
        cure = "Install it: pip install 'arenite[firmware]'"
        raise MissingToolError(f"{package} is not installed", cure=cure)
    graph = parse_graph(model, path)
    archive = io.BytesIO()
    np.savez(archive, **_job(model, graph, vectors))  # type: ignore[arg-type]
    answer = _call_worker(archive.getvalue(), graph.path, package)
    with np.load(io.BytesIO(answer), allow_pickle=False) as outputs:
        return [[outputs[key(run, i)] for i in range(len(graph.outputs))] for run in range(len(vectors))]


def _job(model: bytes, graph: Graph, vectors: list[list[Array]]) -> dict[str, Array]:
    activations = sum(4 * t.elements for t in graph.tensors if not t.is_constant)
    bookkeeping = _BOOKKEEPING_BYTES + 1024 * (len(graph.tensors) + len(graph.operators))
    job: dict[str, Array] = {
        "model": np.frombuffer(model, np.uint8),
        "arena_bytes": np.array(activations + bookkeeping),
        "outputs": np.array(len(graph.outputs)),
    }
    for run, inputs in enumerate(vectors):
        job.update({key(run, i): np.asarray(values, order="C") for i, values in enumerate(inputs)})
    return job


def _call_worker(job: bytes, where: str, package: str) -> bytes:
    """The library trusts its model and may take its process down: it gets one of its own."""
    cure = "The file is probably corrupt: copy or convert the model again."
    command = [sys.executable, "-m", "arenite._reference_worker", package]
    try:
        done = subprocess.run(command, input=job, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        problem = f"{package} ran the model for {_TIMEOUT_S} s without an end"
        raise ModelError(problem, where=where, cure=cure) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        if done.returncode == 1:
            raise MissingToolError(
                f"{package} is installed but cannot be imported ({said[-1] if said else 'nothing was said'})",
                cure="Install it again; or a file in this folder is named like a module of Python's and hides it.",
            )
        reason = said[-1] if done.returncode == REFUSED and said else f"its process ended with {done.returncode}"
        raise ModelError(f"{package} cannot run the model ({reason})", where=where, cure=cure)
    return done.stdout
