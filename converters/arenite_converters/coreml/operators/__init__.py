# SPDX-License-Identifier: Apache-2.0
"""MIL's operators in NumPy, one function each, its parameters named as in MIL.

A function takes float32 for every floating type and returns one array, or a tuple for several outputs. Layout is that
of MIL: N×C×spatial. A new operator is one function and one row of its module's table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from arenite_converters.coreml.operators import constants, elementwise, shapes, windowed

__all__ = ["OPERATORS"]

OPERATORS: Mapping[str, Callable[..., Any]] = {
    **constants.OPERATORS,
    **elementwise.OPERATORS,
    **shapes.OPERATORS,
    **windowed.OPERATORS,
}
