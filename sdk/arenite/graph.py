# SPDX-License-Identifier: Apache-2.0
"""What is known of a model, as plain frozen dataclasses, whatever file it was read from.

Apart from the readers, so that opening a model that was compiled before loads none of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CONTRACT_METADATA", "Graph", "Operator", "Quantisation", "Tensor", "UNSIZED_DTYPES", "printable"]

Array = npt.NDArray[Any]

# Name of the metadata that hold a model's contract, see `arenite.contract`.
CONTRACT_METADATA = "ARENITE_CONTRACT"
# Types of a tensor that NumPy lacks: their data are not read.
UNSIZED_DTYPES = frozenset({"string", "resource", "variant", "int4", "bfloat16"})


@dataclass(frozen=True)
class Quantisation:
    """Affine quantisation, real = scale × (q - zero_point).

    Attributes:
        scales: One scale, or one for each index of `axis`; float32 values.
        zero_points: As many as `scales`.
        axis: The dimension that the scales belong to when there are several.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0

    @property
    def scale(self) -> Any:
        """The first scale as float32, the type that the reference computes with."""
        return np.float32(self.scales[0])

    @property
    def zero_point(self) -> int:
        """The first zero point."""
        return self.zero_points[0]


@dataclass(frozen=True, eq=False)
class Tensor:
    """One tensor. `data` is None for everything that is computed at run time."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    quantisation: Quantisation | None
    data: Array | None
    shape_signature: tuple[int, ...] = ()
    is_variable: bool = False

    @property
    def is_constant(self) -> bool:
        """True when the model file holds the values."""
        return self.data is not None

    @property
    def elements(self) -> int:
        """The product of the dimensions."""
        return math.prod(self.shape)

    @property
    def element_bytes(self) -> int:
        """Bytes of one element; 1 for types that NumPy lacks, which no kernel takes."""
        return 1 if self.dtype in UNSIZED_DTYPES or self.dtype.startswith("type ") else np.dtype(self.dtype).itemsize

    @property
    def bytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.elements * self.element_bytes

    def __str__(self) -> str:
        return f"tensor {self.index} '{printable(self.name)}' {self.dtype}[{'×'.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Operator:
    """One operator. An index of -1 in `inputs` stands for an absent optional input."""

    index: int
    kind: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        return f"operator {self.index} {self.kind}"


@dataclass(frozen=True, eq=False)
class Graph:
    """The main subgraph of a TFLite file, operators in execution order.

    Attributes:
        initialisers: By index, the subgraphs that CALL_ONCE runs before the first inference.
        format: `tflite`. Readers of other formats fill what a session needs: inputs, outputs, kinds of operators,
            metadata.
    """

    path: str
    sha256: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    metadata: Mapping[str, bytes]
    format: str = "tflite"
    initialisers: Mapping[int, Graph] = field(default_factory=dict)


def printable(name: str, limit: int = 60) -> str:
    """A tensor name that cannot break a terminal, a path or a C comment."""
    clean = "".join(c if c.isprintable() and c not in "*\\" else "?" for c in name)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
