# SPDX-License-Identifier: Apache-2.0
"""Activations, arithmetic, comparisons, normalisations and reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]
Kernel = Callable[..., Any]


def _erf(x: Array) -> Array:
    """Error function; Python's own is exact but takes one number at a time, so each value is computed once."""
    values, places = np.unique(x, return_inverse=True)
    return np.array([math.erf(value) for value in values], np.float32)[places].reshape(x.shape)


def _gelu(x: Array, mode: str = "EXACT") -> Array:
    if mode == "EXACT":
        return np.asarray(0.5 * x * (1 + _erf(x * np.float32(math.sqrt(0.5)))))
    if mode == "TANH_APPROXIMATION":
        return np.asarray(0.5 * x * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + 0.044715 * x**3))))
    return np.asarray(x * sigmoid(1.702 * x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 * (np.tanh(0.5 * x) + 1))


def _softmax(x: Array, axis: Array | int = -1) -> Array:
    exponents = np.exp(x - x.max(axis=int(axis), keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=int(axis), keepdims=True))


def _per_channel(parameter: Array, x: Array) -> Array:
    return parameter.reshape(-1, *[1] * (x.ndim - 2))


def _batch_norm(
    x: Array, mean: Array, variance: Array, gamma: Array | None = None, beta: Array | None = None, epsilon: Any = 1e-5
) -> Array:
    factor = (1 if gamma is None else gamma) / np.sqrt(variance + epsilon)
    offset = (0 if beta is None else beta) - mean * factor
    return np.asarray(x * _per_channel(factor, x) + _per_channel(offset, x))


def _centred(x: Array, axes: tuple[int, ...], epsilon: Any) -> Array:
    centred = x - x.mean(axis=axes, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + epsilon))


def _instance_norm(x: Array, gamma: Array | None = None, beta: Array | None = None, epsilon: Any = 1e-5) -> Array:
    y = _centred(x, tuple(range(2, x.ndim)), epsilon)
    y = y if gamma is None else y * _per_channel(gamma, x)
    return np.asarray(y if beta is None else y + _per_channel(beta, x))


def _layer_norm(x: Array, axes: Array, gamma: Any = 1, beta: Any = 0, epsilon: Any = 1e-5) -> Array:
    return np.asarray(_centred(x, tuple(np.atleast_1d(axes).tolist()), epsilon) * gamma + beta)


def _l2_norm(x: Array, epsilon: Any = 1e-6) -> Array:
    axes = tuple(range(x.ndim - 3, x.ndim))
    return np.asarray(x / np.sqrt((x**2).sum(axis=axes, keepdims=True) + epsilon))


def _reduction(reduce: Kernel) -> Kernel:
    def run(x: Array, axes: Array | None = None, keep_dims: Any = False) -> Array:
        chosen = tuple(range(x.ndim)) if axes is None else tuple(np.atleast_1d(axes).tolist())
        return np.asarray(reduce(x, axis=chosen, keepdims=bool(keep_dims)))

    return run


def _log_sum_exp(x: Array, axis: Any, keepdims: bool) -> Array:
    highest = x.max(axis=axis, keepdims=True)
    total = np.log(np.exp(x - highest).sum(axis=axis, keepdims=True)) + highest
    return np.asarray(total if keepdims else total.squeeze(axis))


def _place(find: Kernel) -> Kernel:
    def run(x: Array, axis: Any = -1, keep_dims: Any = False) -> Array:
        return np.asarray(find(x, axis=int(axis), keepdims=bool(keep_dims)))

    return run


def _binary(function: Kernel) -> Kernel:
    return lambda x, y: function(x, y)


def _unary(function: Kernel) -> Kernel:
    return lambda x: function(x)


_BINARY: Mapping[str, Kernel] = {
    "add": np.add, "equal": np.equal, "floor_div": np.floor_divide, "greater": np.greater,
    "greater_equal": np.greater_equal, "less": np.less, "less_equal": np.less_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "maximum": np.maximum, "minimum": np.minimum,
    "mod": np.mod, "mul": np.multiply, "not_equal": np.not_equal, "pow": np.power, "real_div": np.divide,
    "sub": np.subtract,
}  # fmt: skip
_UNARY: Mapping[str, Kernel] = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "erf": _erf, "exp": np.exp, "exp2": np.exp2, "floor": np.floor,
    "logical_not": np.logical_not, "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "round": np.rint, "sigmoid": sigmoid, "sign": np.sign, "silu": lambda x: x * sigmoid(x), "sin": np.sin,
    "softplus": lambda x: np.logaddexp(x, 0), "softsign": lambda x: x / (1 + np.abs(x)), "sqrt": np.sqrt,
    "square": np.square, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
_REDUCTIONS: Mapping[str, Kernel] = {
    "reduce_l1_norm": lambda x, **o: np.abs(x).sum(**o),
    "reduce_l2_norm": lambda x, **o: np.sqrt(np.square(x).sum(**o)),
    "reduce_log_sum_exp": _log_sum_exp,
    "reduce_max": np.max,
    "reduce_mean": np.mean,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_sum": np.sum,
    "reduce_sum_square": lambda x, **o: np.square(x).sum(**o),
}
OPERATORS: Mapping[str, Kernel] = {
    **{name: _binary(function) for name, function in _BINARY.items()},
    **{name: _unary(function) for name, function in _UNARY.items()},
    **{name: _reduction(function) for name, function in _REDUCTIONS.items()},
    "batch_norm": _batch_norm,
    # The type of its output says to what.
    "cast": lambda x, dtype: np.trunc(x) if "int" in dtype and x.dtype.kind == "f" else x,
    "clamped_relu": lambda x, alpha, beta: np.minimum(np.where(x >= 0, x, alpha * x), beta),
    "clip": lambda x, alpha, beta: np.clip(x, alpha, beta),
    "elu": lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "gelu": _gelu,
    "instance_norm": _instance_norm,
    "inverse": lambda x, epsilon=1e-4: 1 / (x + epsilon),
    "l2_norm": _l2_norm,
    "layer_norm": _layer_norm,
    "leaky_relu": lambda x, alpha: np.where(x >= 0, x, alpha * x),
    "linear_activation": lambda x, alpha, beta: alpha * x + beta,
    "log": lambda x, epsilon=1e-45: np.log(x + epsilon),
    "prelu": lambda x, alpha: np.where(x >= 0, x, _per_channel(alpha, x) * x),
    "reduce_argmax": _place(np.argmax),
    "reduce_argmin": _place(np.argmin),
    "rsqrt": lambda x, epsilon=1e-12: 1 / np.sqrt(x + epsilon),
    "scaled_tanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "select": lambda cond, a, b: np.where(cond, a, b),
    "sigmoid_hard": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "softmax": _softmax,
    "threshold": lambda x, alpha: np.maximum(x, alpha),
    "thresholded_relu": lambda x, alpha: np.where(x >= alpha, x, 0),
}
