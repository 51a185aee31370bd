# SPDX-License-Identifier: Apache-2.0
"""How far float32 numbers are apart, in units in the last place.

Firmware computes exponentials, logarithms and tanh in C of its own, the reference with its platform's library: their
floats may differ in the last bits, and what follows them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_ULPS", "ulps_apart"]

MOST_ULPS = 32
"""Floats that are as far apart count as equal."""


def ulps_apart(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """For each pair, how many float32 lie between, 0 for equal ones; both zeros are one number, so are all NaN."""
    first, second = (_ordered(np.ascontiguousarray(values, np.float32)) for values in (a, b))
    apart: npt.NDArray[Any] = np.abs(first - second)
    return np.where(np.isnan(a) & np.isnan(b), 0, apart)


def _ordered(values: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Integers in the order of the floats."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
