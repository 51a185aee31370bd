# SPDX-License-Identifier: Apache-2.0
"""Checks of a converted model: ordinary routes silently give bad models, so none leaves unchecked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import OutputSpec
from arenite.errors import ContractError
from arenite.inspection import float_operators
from arenite.labels import dequantise
from arenite.tflite_graph import Graph, Tensor
from arenite_converters.report import Agreement, Check, TensorQuality

__all__ = [
    "agreement",
    "check_graph",
    "check_outputs",
    "check_tensors",
    "last_computing_operator",
    "refuse_wrong_meaning",
    "sqnr_db",
]

Array = npt.NDArray[Any]
_INT32_MAX = 2**31 - 1
_CONFIDENT_MARGIN = 0.3
_SUM_SLACK = 0.05
_FORM_ONLY = ("RESHAPE", "SQUEEZE", "QUANTIZE", "DEQUANTIZE")
# An activation whose direction is lost: cosine of the angle to its float original.
_MIN_COSINE = 0.5
_SMALLEST_SCALE = float(np.finfo(np.float32).tiny)


def sqnr_db(signal: Array, quantised: Array) -> float:
    """Signal to quantisation noise in decibels; inf when equal."""
    signal = signal.astype(np.float64)
    noise = float(((signal - quantised) ** 2).sum())
    power = float((signal**2).sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(power / noise) if power > 0 else -math.inf


def check_graph(graph: Graph, dtype: str = "int8", kept: Sequence[str] | None = ()) -> list[Check]:
    """Checks that need no run: types, scales, biases.

    Args:
        graph: The quantised model.
        dtype: Type that input and output should have.
        kept: Names of what the layers write that may be float; None when all may.
    """
    floats = () if kept is None else _unwanted(graph, kept)
    ends = [graph.tensors[i] for i in (*graph.inputs, *graph.outputs)]
    return [
        _check(
            "no operator stayed float", not floats, ", ".join(floats) or f"{len(graph.operators)} operators"
        ),
        _check(
            f"input and output are {dtype}",
            all(t.dtype == dtype for t in ends),
            ", ".join(f"{t.name} {t.dtype}" for t in ends),
        ),
        _list_check("every scale is above 0 and finite", graph, _bad_scale),
        _list_check("no bias overflows int32", graph, _overflowing),
    ]


def _unwanted(graph: Graph, kept: Sequence[str]) -> tuple[str, ...]:
    """Float operators, less the kept ones and the steps between them and the integers."""
    wanted = {
        f"{op.index} {op.kind}"
        for op in graph.operators
        if kept and (op.kind in ("QUANTIZE", "DEQUANTIZE") or graph.tensors[op.outputs[0]].name in kept)
    }
    return tuple(found for found in float_operators(graph) if found not in wanted)


def _check(name: str, passed: bool, detail: str) -> Check:
    return Check(name, bool(passed), detail)


def _list_check(name: str, graph: Graph, is_bad: Any) -> Check:
    bad = [str(t) for t in graph.tensors if is_bad(t)]
    return _check(name, not bad, "; ".join(bad[:5]) or f"{len(graph.tensors)} tensors")


def _bad_scale(tensor: Tensor) -> bool:
    scales = tensor.quantisation.scales if tensor.quantisation else ()
    return any(not math.isfinite(s) or s < _SMALLEST_SCALE for s in scales)


def _overflowing(tensor: Tensor) -> bool:
    if tensor.dtype != "int32" or tensor.data is None or tensor.quantisation is None:
        return False
    return bool((np.abs(tensor.data.astype(np.int64)) >= _INT32_MAX).any())


def check_outputs(floats: Sequence[Array], quantised: Sequence[Array], spec: OutputSpec) -> list[Check]:
    """Checks of the answers: not all the same, and probabilities sum to one.

    Args:
        floats: The float model's outputs.
        quantised: The INT8 model's raw outputs for the same inputs.
        spec: Meaning and quantisation of the output.
    """
    varied = len({q.tobytes() for q in quantised}) > 1
    float_varied = len({f.tobytes() for f in floats}) > 1
    checks = [
        _check("the output is not constant", varied or not float_varied, f"over {len(quantised)} samples")
    ]
    if spec.meaning == "probabilities":
        checks.append(_check_sums(quantised, spec))
    return checks


def refuse_wrong_meaning(floats: Sequence[Array], spec: OutputSpec, where: str) -> None:
    """Probabilities must be some before the model is quantised.

    Raises:
        ContractError: The trained model's own outputs do not sum to 1, as those of a single sigmoid.
    """
    if spec.meaning != "probabilities":
        return
    sums = [float(f.sum(dtype=np.float64)) for f in floats]
    if all(abs(total - 1) <= _SUM_SLACK for total in sums):
        return
    raise ContractError(
        f"the trained model's own output is no probabilities: it sums to {min(sums):.3f} to {max(sums):.3f}, not to 1",
        where=where,
        cure="Give meaning 'values': sigmoids, and scores of any other kind, are values.",
    )


def last_computing_operator(graph: Graph) -> str:
    """Kind of the operator that computes the first output, behind those that only change its form; or ''."""
    made_by = {index: op for op in graph.operators for index in op.outputs}
    op = made_by.get(graph.outputs[0])
    while op is not None and op.kind in _FORM_ONLY:
        op = made_by.get(op.inputs[0])
    return "" if op is None else op.kind


def _check_sums(quantised: Sequence[Array], spec: OutputSpec) -> Check:
    real = [dequantise(q, spec) for q in quantised]
    half = (spec.quantised.scale if spec.quantised else 0.0) / 2
    # A class may be half a step off. What rounds to zero is missing from the sum and never makes it larger.
    lowest = 1 - _SUM_SLACK - half * math.prod(spec.shape)
    passed = all(lowest <= r.sum() <= 1 + _SUM_SLACK + half * np.count_nonzero(r) for r in real)
    sums = [float(r.sum()) for r in real]
    return _check(
        "probabilities sum to 1, less what rounds to 0", passed, f"{min(sums):.3f} to {max(sums):.3f}"
    )


def agreement(
    floats: Sequence[Array], quantised: Sequence[Array], spec: OutputSpec, held_out: bool
) -> Agreement:
    """Float against INT8 over all samples; arguments as in `check_outputs`."""
    real = np.stack([f.reshape(-1) for f in floats]).astype(np.float64)
    other = np.stack([dequantise(q, spec).reshape(-1) for q in quantised])
    same = real.argmax(axis=1) == other.argmax(axis=1)
    confident = np.zeros(len(real), bool)
    if spec.meaning == "probabilities" and real.shape[1] > 1:
        best = np.sort(real, axis=1)
        confident = best[:, -1] - best[:, -2] > _CONFIDENT_MARGIN
    return Agreement(
        samples=len(real),
        held_out=held_out,
        sqnr_db=sqnr_db(real, other),
        top1=float(same.mean()),
        top1_confident=float(same[confident].mean()) if confident.any() else None,
        confident_samples=int(confident.sum()),
    )


def check_tensors(qualities: Sequence[TensorQuality]) -> Check:
    """No activation lost its direction."""
    lost = [f"{q.name} (cosine {q.cosine:.2f})" for q in qualities if q.cosine < _MIN_COSINE]
    lowest = min((q.cosine for q in qualities), default=1.0)
    detail = "; ".join(lost[:5]) or f"{len(qualities)} tensors, lowest cosine {lowest:.3f}"
    return _check(f"every activation keeps its direction (cosine at least {_MIN_COSINE})", not lost, detail)
