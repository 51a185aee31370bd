# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs with the outputs that the authority gives for them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.authority import authority_of
from arenite.golden import golden_of
from arenite.graph import Graph, Tensor

__all__ = ["Vectors", "make_vectors"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Vectors:
    """Inputs and expected outputs; without an authority there are none.

    Attributes:
        authority: Name and version of what computed the outputs.
    """

    authority: str | None
    inputs: tuple[tuple[Array, ...], ...]
    outputs: tuple[tuple[Array, ...], ...]

    @property
    def count(self) -> int:
        """Number of vectors."""
        return len(self.inputs)

    def files(self) -> Mapping[str, bytes]:
        """Raw bytes by file name; several inputs of one vector lie one behind the other."""
        found = {}
        for i, (inputs, outputs) in enumerate(zip(self.inputs, self.outputs, strict=True)):
            found[f"input_{i:03}.bin"] = b"".join(a.tobytes() for a in inputs)
            found[f"output_{i:03}.bin"] = b"".join(a.tobytes() for a in outputs)
        return found


def make_vectors(model: bytes, graph: Graph, count: int) -> Vectors:
    """The contract's own inputs, then random ones over the whole range of their type, seeded by the model. A model that
    remembers starts afresh at the first and goes on from one to the next.

    The expected outputs are always those of the reference at hand, so that they can be trusted; where it is not
    installed there are no vectors, and `verify` says so. Nor are there for a model of both references that remembers.

    Raises:
        ContractError: The model's contract or its golden vectors are damaged.
    """
    own = _contract_inputs(graph)
    authority = authority_of(graph)
    if authority is None or not authority.available:
        return Vectors(None, (), ())
    inputs = [*own, *_random_inputs(graph, count)]
    outputs = authority.outputs(model, inputs, graph.path)
    return Vectors(authority.name, tuple(inputs), tuple(tuple(o) for o in outputs))


def _random_inputs(graph: Graph, count: int) -> list[tuple[Array, ...]]:
    seed = int.from_bytes(hashlib.sha256(graph.sha256.encode()).digest()[:8], "little")
    generator = np.random.default_rng(seed)
    tensors = [graph.tensors[i] for i in graph.inputs]
    return [tuple(_random(generator, t) for t in tensors) for _ in range(count)]


def _random(generator: np.random.Generator, tensor: Tensor) -> Array:
    """The whole range of what is quantised, else small numbers."""
    if tensor.dtype in ("int8", "uint8", "int16"):
        drawn = generator.integers(0, 256, tensor.bytes, dtype=np.uint8)
        return drawn.view(tensor.dtype).reshape(tensor.shape)
    if tensor.dtype == "bool":
        return generator.integers(0, 2, tensor.shape).astype(np.bool_)
    numbers: Array = generator.normal(0.0, 2.0 if tensor.dtype == "float32" else 100.0, tensor.shape)
    return numbers.astype(tensor.dtype)


def _contract_inputs(graph: Graph) -> list[tuple[Array, ...]]:
    golden = golden_of(graph)
    return [] if golden is None else [(item,) for item in golden.inputs]
