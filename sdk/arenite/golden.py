# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of a model: inputs and the reference's outputs, as its metadata holds them."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import GOLDEN_METADATA, Golden, contract_of
from arenite.errors import ContractError
from arenite.graph import Graph

__all__ = ["GoldenVectors", "golden_of", "pack_vectors"]

Array = npt.NDArray[Any]
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)


@dataclass(frozen=True, eq=False)
class GoldenVectors:
    """Reference vectors.

    Attributes:
        inputs: [count, *shape of the input], in the model's type.
        outputs: [count, *shape of the first output].
        authority: Program and version that computed the outputs.
    """

    inputs: Array
    outputs: Array
    authority: str


def golden_of(graph: Graph) -> GoldenVectors | None:
    """The vectors that a model carries, None when it carries none.

    Raises:
        ContractError: They are damaged or do not fit the model.
    """
    contract = contract_of(graph)
    if contract is None or contract.golden is None:
        return None
    content = graph.metadata.get(GOLDEN_METADATA, b"")
    if hashlib.sha256(content).hexdigest() != contract.golden.sha256:
        raise _error(graph, f"contract field 'golden.sha256' does not match the metadata {GOLDEN_METADATA}")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            inputs, outputs = arrays["inputs"], arrays["outputs"]
    except _DAMAGED as error:
        raise _error(graph, f"the golden vectors are damaged ({error})") from error
    count = contract.golden.count
    for what, spec, values in (("inputs", contract.input, inputs), ("outputs", contract.outputs[0], outputs)):
        if values.shape != (count, *spec.shape) or str(values.dtype) != spec.dtype:
            found = f"{values.dtype}{list(values.shape)}"
            raise _error(graph, f"the golden {what} are {found}, not as the model's")
    return GoldenVectors(inputs, outputs, contract.golden.authority)


def pack_vectors(inputs: Sequence[Array], outputs: Sequence[Array], authority: str) -> tuple[bytes, Golden]:
    """The vectors as .npz bytes (`inputs` and `outputs`, [n, ...]) and their contract entry."""
    stream = io.BytesIO()
    np.savez_compressed(stream, inputs=np.stack(inputs), outputs=np.stack(outputs))
    content = stream.getvalue()
    return content, Golden(len(inputs), authority, hashlib.sha256(content).hexdigest())


def _error(graph: Graph, what: str) -> ContractError:
    return ContractError(what, where=graph.path, cure="Convert the model again.")
