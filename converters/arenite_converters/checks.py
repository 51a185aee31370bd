# SPDX-License-Identifier: Apache-2.0
"""Checks of a converted model: ordinary routes silently give bad models, so none leaves unchecked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import OutputSpec
from arenite.errors import ContractError
from arenite.graph import Graph, Operator, Tensor
from arenite.inspection import float_operators
from arenite.labels import dequantise
from arenite_converters.report import Agreement, Caution, Check, TensorQuality
from arenite_converters.statistics import decibels, signal_interval_db, wilson_interval

__all__ = [
    "agreement",
    "check_agreement",
    "check_graph",
    "check_outputs",
    "check_tensors",
    "concat_cautions",
    "last_computing_operator",
    "output_cautions",
    "refuse_wrong_meaning",
]

Array = npt.NDArray[Any]
_INT32_MAX = 2**31 - 1
_CONFIDENT_MARGIN = 0.3
_SUM_SLACK = 0.05
_FORM_ONLY = ("RESHAPE", "SQUEEZE", "QUANTIZE", "DEQUANTIZE")
# An activation whose direction is lost: cosine of the angle to its float original.
_MIN_COSINE = 0.5
_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
# Of a multiplier m × 2^e with m in 0.5..1: beyond these the 32-bit product is shifted out to the left or to 0.
_SHIFTS = (-31, 30)
# A part of a tensor that keeps fewer steps of 256 than this has lost three bits.
_FEW_STEPS = 32
# The largest value that a fused activation names, that of RELU6.
_LARGEST_CLAMP = 6.0
_SMALLEST_SCALE = float(np.finfo(np.float32).tiny)
# What pads a maximum (-3.4e38) makes such a range when it is taken for an activation, and everything else 0.
_LARGEST_SCALE = 1e30


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
        _check_multipliers(graph),
        _check_clamps(graph),
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
    return any(not _SMALLEST_SCALE <= s <= _LARGEST_SCALE for s in scales)


def _overflowing(tensor: Tensor) -> bool:
    if tensor.dtype != "int32" or tensor.data is None or tensor.quantisation is None:
        return False
    return bool((np.abs(tensor.data.astype(np.int64)) >= _INT32_MAX).any())


def _check_multipliers(graph: Graph) -> Check:
    """Input scale × weight scale / output scale must have a shift that the kernels can do, or answers are 0 or wrap."""
    weighted = [op for op in graph.operators if op.kind in _WEIGHTED]
    bad = [f"{op} of {graph.tensors[op.outputs[0]]}" for op in weighted if not _shifts_fit(graph, op)]
    name = "every requantisation shift is one that kernels can do"
    return _check(name, not bad, "; ".join(bad[:5]) or f"{len(weighted)} operators with weights")


def _check_clamps(graph: Graph) -> Check:
    """A RELU6 on a tensor of values near 1e-9 ends more than int32 of steps away: no runtime prepares it."""
    clamped = [op for op in graph.operators if op.attributes.get("fused_activation_function")]
    ends = [(op, graph.tensors[op.outputs[0]]) for op in clamped]
    bad = [
        f"{op} of {tensor}"
        for op, tensor in ends
        if tensor.quantisation and min(tensor.quantisation.scales) * _INT32_MAX <= _LARGEST_CLAMP
    ]
    name = "every fused activation ends within int32 steps"
    return _check(name, not bad, "; ".join(bad[:5]) or f"{len(clamped)} operators with one")


def _shifts_fit(graph: Graph, op: Operator) -> bool:
    weights = graph.tensors[op.inputs[1]]
    ends = [graph.tensors[i].quantisation for i in (op.inputs[0], op.outputs[0])]
    if weights.quantisation is None or weights.data is None or None in ends:
        return True  # a float operator is another check's
    source, target = (float(end.scales[0]) for end in ends if end is not None)
    axis = weights.quantisation.axis
    others = tuple(i for i in range(weights.data.ndim) if i != axis) if len(weights.quantisation.scales) > 1 else None
    # The scale of a channel of zeros has no say.
    used = np.atleast_1d((weights.data != weights.quantisation.zero_point).any(axis=others))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        multipliers = np.divide(source * np.array(weights.quantisation.scales)[used], target)
    exponents = np.frexp(multipliers)[1]
    return bool(((multipliers > 0) & (exponents >= _SHIFTS[0]) & (exponents <= _SHIFTS[1])).all())


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
    power, noise = (real**2).sum(axis=1), ((real - other) ** 2).sum(axis=1)
    confident = np.zeros(len(real), bool)
    if spec.meaning == "probabilities" and real.shape[1] > 1:
        best = np.sort(real, axis=1)
        confident = best[:, -1] - best[:, -2] > _CONFIDENT_MARGIN
    return Agreement(
        samples=len(real),
        held_out=held_out,
        sqnr_db=decibels(float(power.sum()), float(noise.sum())),
        sqnr_interval_db=signal_interval_db(power, noise),
        top1=float(same.mean()),
        top1_interval=wilson_interval(int(same.sum()), len(same)),
        top1_confident=float(same[confident].mean()) if confident.any() else None,
        confident_samples=int(confident.sum()),
    )


def check_agreement(agreed: Agreement, min_sqnr_db: float, min_top1: float) -> list[Check]:
    """The limits that the user set; a share of 0 is none."""
    over = f"over {agreed.samples} samples"
    low_db, high_db = agreed.sqnr_interval_db
    noise = f"{agreed.sqnr_db:.1f} dB {over} (95 %: {low_db:.1f} to {high_db:.1f})"
    checks = [_check(f"SQNR is at least {min_sqnr_db:g} dB", agreed.sqnr_db >= min_sqnr_db, noise)]
    if min_top1 > 0:
        low, high = agreed.top1_interval
        share = f"{agreed.top1:.3f} {over} (95 %: {low:.3f} to {high:.3f})"
        checks.append(_check(f"top-1 agreement is at least {min_top1:g}", agreed.top1 >= min_top1, share))
    return checks


def check_tensors(qualities: Sequence[TensorQuality]) -> Check:
    """No activation lost its direction."""
    lost = [f"{q.name} (cosine {q.cosine:.2f})" for q in qualities if q.cosine < _MIN_COSINE]
    lowest = min((q.cosine for q in qualities), default=1.0)
    detail = "; ".join(lost[:5]) or f"{len(qualities)} tensors, lowest cosine {lowest:.3f}"
    return _check(f"every activation keeps its direction (cosine at least {_MIN_COSINE})", not lost, detail)


def concat_cautions(graph: Graph, ranges: Mapping[str, tuple[float, float]]) -> Iterator[Caution]:
    """Parts of one tensor with ranges far apart: the small part keeps few of the 256 steps, or none.

    Args:
        graph: The quantised model.
        ranges: Lowest and highest float value of activations, by name.
    """
    for op in graph.operators:
        output = graph.tensors[op.outputs[0]]
        if op.kind != "CONCATENATION" or output.quantisation is None:
            continue
        scale = float(output.quantisation.scales[0])
        for part in (_requantised(graph, i) for i in op.inputs):
            low, high = ranges.get(part.name, (0.0, math.inf))
            if (high - low) / scale < _FEW_STEPS:
                yield _few_steps(f"'{part.name}'", f"'{output.name}'", high - low, scale)


def _requantised(graph: Graph, index: int) -> Tensor:
    """The tensor, or what it was before it was put on the joint scale."""
    made_by = next((op for op in graph.operators if index in op.outputs), None)
    source = made_by.inputs[0] if made_by is not None and made_by.kind == "QUANTIZE" else index
    return graph.tensors[source]


def output_cautions(floats: Sequence[Array], spec: OutputSpec) -> Iterator[Caution]:
    """The same of one output that holds several kinds of numbers along an axis, such as boxes and scores.

    Args:
        floats: The float model's outputs.
        spec: The output of the quantised model.
    """
    if len(spec.shape) < 3 or spec.quantised is None or spec.meaning in ("probabilities", "logits"):
        return
    values, scale = np.stack(floats), spec.quantised.scale
    for axis in range(2, values.ndim):
        others = tuple(i for i in range(values.ndim) if i != axis)
        spans = values.max(axis=others) - values.min(axis=others)
        few = np.flatnonzero((spans > 0) & (spans / scale < _FEW_STEPS))
        if len(few) and spans.max() / scale >= _FEW_STEPS:
            where = f"{len(few)} of {len(spans)} along axis {axis - 1} (first: {few[0]})"
            yield _few_steps(where, f"output '{spec.name}'", float(spans[few].max()), scale)
            return


def _few_steps(part: str, whole: str, span: float, scale: float) -> Caution:
    steps = span / scale
    lost = "all of it is rounded to one value" if steps < 1 else f"{steps:.1f} steps of 256 are left of it"
    return Caution(
        "ranges far apart in one tensor",
        f"{part} spans {span:g}, a step of {whole} is {scale:g}: {lost}",
        "Give the model two outputs, or scale the parts alike before they are joined.",
    )
