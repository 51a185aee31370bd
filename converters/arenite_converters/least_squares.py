# SPDX-License-Identifier: Apache-2.0
"""Weights on their grid, rounded by least squares over what they are multiplied with.

Weights are put on the grid one column after the other; what rounding one takes from the output is made up for by the
columns that are still to come (Frantar et al., GPTQ, 2022).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_TERMS", "rounded_levels"]

Array = npt.NDArray[Any]
# A layer of more terms is not worth the time: the work grows with their cube.
MOST_TERMS = 4096
_LARGEST_LEVEL = 127
# Share of the mean diagonal that is added to the Hessian, so that directions seen rarely change little.
_DAMPING = 0.1
_BLOCK = 64
_TINY = 1e-12


def rounded_levels(weights: Array, scales: Array, hessian: Array) -> Array:
    """Levels of the weights, whole numbers from -127 to 127.

    Args:
        weights: Groups × channels × terms, float64.
        scales: Groups × channels × 1.
        hessian: Groups × terms × terms, the second moment of what the terms are multiplied with.
    """
    terms = weights.shape[2]
    diagonal = np.einsum("gii->gi", hessian)
    hessian = hessian + np.eye(terms) * (_DAMPING * diagonal.mean(axis=1) + _TINY)[:, None, None]
    # The terms that matter most are rounded first, while many others can still make up for it.
    order = np.argsort(-diagonal.sum(axis=0), kind="stable")
    upper = np.linalg.cholesky(np.linalg.inv(hessian[:, order][:, :, order])).transpose(0, 2, 1)
    left, levels = weights[:, :, order], np.empty_like(weights)
    for start in range(0, terms, _BLOCK):
        end = min(start + _BLOCK, terms)
        errors = np.empty((*weights.shape[:2], end - start))
        for i in range(start, end):
            whole = np.round(left[:, :, i] / scales[:, :, 0])
            levels[:, :, i] = np.clip(whole, -_LARGEST_LEVEL, _LARGEST_LEVEL)
            error = (left[:, :, i] - levels[:, :, i] * scales[:, :, 0]) / upper[:, i, i][:, None]
            left[:, :, i + 1 : end] -= error[:, :, None] * upper[:, None, i, i + 1 : end]
            errors[:, :, i - start] = error
        left[:, :, end:] -= errors @ upper[:, start:end, end:]
    return np.asarray(levels[:, :, np.argsort(order)])
