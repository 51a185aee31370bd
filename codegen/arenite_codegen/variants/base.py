# SPDX-License-Identifier: Apache-2.0
"""What a variant of a kernel is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "PORTABLE", "Parameters", "Variant", "as_they_are", "never", "per_channel"]

Array = npt.NDArray[Any]
Parameters = Mapping[str, Any]

PORTABLE = "portable"


def never(parameters: Parameters) -> str:
    """Refuses no layer."""
    return ""


def as_they_are(parameters: Parameters) -> Parameters:
    """Packs nothing."""
    return parameters


@dataclass(frozen=True)
class Variant:
    """One implementation of a kernel. All variants of a kernel compute the same bytes from the same parameter struct.

    Attributes:
        kernel: The kernel that it implements; its struct is `arenite_<kernel>_t`.
        name: What reports call it.
        function: The C function is `arenite_<function>`, in kernels/arenite_<function>.c.
        sources: Further C files of kernels/, without prefix and suffix.
        architecture: The boards that can run it; None for all.
        feature: A field of the board's `features` that must be set, or an empty text.
        refusal: Why a layer with these parameters cannot use it, or an empty text. The kernel relies on this alone.
        pack: From the lowering's plain parameters to the fields of the struct. Plain weights are
            [out_c][kernel_h][kernel_w][in_c], depthwise ones [out_c][kernel_h][kernel_w].
        alignment_bytes: What its constants want.
        yields: Why another variant is faster for a layer that this one could run too, or an empty text.
    """

    kernel: str
    name: str
    function: str
    sources: tuple[str, ...] = ()
    architecture: str | None = None
    feature: str = ""
    refusal: Callable[[Parameters], str] = never
    pack: Callable[[Parameters], Parameters] = as_they_are
    alignment_bytes: int = 4
    yields: Callable[[Parameters], str] = never

    @property
    def files(self) -> tuple[str, ...]:
        """All its C files, without prefix and suffix."""
        return (self.function, *self.sources)


def per_channel(parameters: Parameters, name: str, channels: int) -> Array:
    """A parameter that has one entry, or one for each channel, as one for each channel."""
    values: Array = np.broadcast_to(np.asarray(parameters[name]), (channels,))
    return values
