# SPDX-License-Identifier: Apache-2.0
"""One front for quantising: float TFLite in, quantised TFLite out, by what was chosen or by what wins.

    equalise (on request) -> ranges -> backend -> round and correct -> input and output type

The default (percentile ranges, rounding and bias correction, litert-quantizer) is what won the experiments of
`device_tests/benchmarks/quantiser_defaults.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import CheckFailedError, UsageError
from arenite.graph import Graph
from arenite.inspection import float_operators
from arenite.progress import Step
from arenite.tflite_graph import parse_graph
from arenite_converters.backends import BACKENDS, by_litert, by_tensorflow
from arenite_converters.calibration import halves
from arenite_converters.correction import corrected
from arenite_converters.ends import with_uint8_ends
from arenite_converters.equalise import equalised
from arenite_converters.flatbuffer import with_unique_names
from arenite_converters.float_model import package_version
from arenite_converters.outputs import fidelity, outputs_of
from arenite_converters.quantisation import IO_TYPES, PRECISIONS, Quantisation, QuantiseOptions, Sensitivity, Trial
from arenite_converters.ranges import ESTIMATORS, activation_ranges
from arenite_converters.sensitivity import chosen_layers, layer_sensitivity

__all__ = ["CANDIDATES", "kept_layers", "layers_alone", "quantise"]

Samples = Sequence[npt.NDArray[np.float32]]
# What `search` tries, in this order; of equals the first is taken.
CANDIDATES: tuple[dict[str, Any], ...] = (
    {},
    {"ranges": "min-max"},
    {"ranges": "mse"},
    {"rounding": False},
    {"ranges": "min-max", "equalise": True},
)


def quantise(
    content: bytes,
    samples: Samples,
    options: QuantiseOptions | None = None,
    *,
    function: Any = None,
    where: str = "model",
    step: Step | None = None,
) -> tuple[bytes, Quantisation]:
    """Quantise a float model.

    The same model, samples, options and package versions give the same bytes.

    Args:
        content: Float TFLite, one input and one output, batch 1.
        samples: Calibration inputs in real values.
        options: How; by default full INT8.
        function: TensorFlow's concrete function of the model, for the backend tensorflow.
        where: The source, for messages.
        step: Told about each sample and layer.

    Returns:
        The TFLite file's bytes, and what was done.

    Raises:
        UsageError: Options contradict each other, or name no layer.
        ModelError: The backend cannot quantise the model.
        MissingToolError: The backend is not installed.
        CheckFailedError: No choice of float layers keeps `max_drop`.
    """
    options = options or QuantiseOptions()
    _check(options, function)
    source = _Source(with_unique_names(content), samples, function, where, step)
    trials: tuple[Trial, ...] = ()
    if options.search:
        trials = tuple(source.trial(replace(options, **change, search=False)) for change in CANDIDATES)
        options = max(trials, key=lambda trial: (trial.fidelity.top1, trial.fidelity.sqnr_db)).options
    kept = kept_layers(parse_graph(source.content), options.keep_float)
    if options.max_drop is not None:
        kept = source.within_budget(options, kept)
    made, options = source.quantised(options, kept)
    package = {"litert": "litert-quantizer", "tensorflow": "tensorflow"}[str(options.backend)]
    return made, Quantisation(options, f"{package} {package_version(package)}", kept, trials)


def layers_alone(
    content: bytes, samples: Samples, options: QuantiseOptions, step: Step | None = None
) -> list[Sensitivity]:
    """What quantising each layer alone does, ranges by the same samples; see `layer_sensitivity`.

    Raises:
        UsageError: The precision has no integer activations.
    """
    if not options.is_integer:
        raise UsageError(f"layers cannot be quantised alone to {options.precision}", cure="Leave sensitivity away.")
    named = with_unique_names(content)
    ranges = activation_ranges(named, samples, options.estimator, step)
    return layer_sensitivity(named, samples, ranges, options.precision, step)


def kept_layers(graph: Graph, wanted: Sequence[str]) -> tuple[str, ...]:
    """Names of the layers that `first`, `last` or parts of names mean, in the model's order.

    Raises:
        UsageError: A name fits no layer.
    """
    layers = chosen_layers(graph)
    found: set[str] = set()
    for name in wanted:
        ends = {"first": layers[:1], "last": layers[-1:]}
        fitting = ends.get(name, tuple(layer for layer in layers if name in layer))
        if not fitting or not name:
            raise UsageError(
                f"no layer's name holds {name!r}",
                where="keep_float",
                cure=f"Give first, last or part of one of: {', '.join(layers[:3])} …",
            )
        found.update(fitting)
    return tuple(layer for layer in layers if layer in found)


def _check(options: QuantiseOptions, function: Any) -> None:
    known = (
        ("precision", options.precision, PRECISIONS),
        ("io", options.io, IO_TYPES),
        ("backend", options.backend, (*BACKENDS, None)),
        ("ranges", options.ranges, (*ESTIMATORS, None)),
    )
    for name, value, choices in known:
        if value not in choices:
            raise UsageError(f"{name} {value!r} is unknown", cure=f"Give one of: {', '.join(filter(None, choices))}.")
    if options.io == "uint8" and options.precision != "int8":
        raise UsageError(f"io uint8 is for int8 models, not {options.precision}", cure="Leave io away.")
    if options.max_drop is not None and not 0 <= options.max_drop < 100:
        raise UsageError(f"max_drop {options.max_drop:g} is no percentage", cure="Give a number from 0 to below 100.")
    asked = [n for n in ("ranges", "equalise", "keep_float", "search") if getattr(options, n)]
    asked += [] if options.max_drop is None else ["max_drop"]
    if not options.is_integer and asked:
        cure = f"Leave {', '.join(asked)} away: activations stay float."
        raise UsageError(f"{', '.join(asked)} has no meaning for {options.precision}", cure=cure)
    if options.backend == "tensorflow":
        if function is None:
            raise UsageError("TensorFlow did not load the model, so it cannot quantise it", cure="Take backend litert.")
        if set(asked) - {"ranges"} or options.ranges not in (None, "min-max"):
            cure = "Take backend litert: TFLiteConverter has min-max ranges and all or nothing only."
            raise UsageError(f"backend tensorflow cannot do {', '.join(asked)}", cure=cure)


@dataclass
class _Source:
    """The float model and its samples, ranges computed once."""

    content: bytes
    samples: Samples
    function: Any
    where: str
    step: Step | None

    def __post_init__(self) -> None:
        self.tried, self.compared = halves(self.samples)
        self._ranges: dict[tuple[str, bool, int], dict[str, tuple[float, float]]] = {}
        self._floats: list[npt.NDArray[np.float64]] | None = None

    def quantised(
        self, options: QuantiseOptions, kept: tuple[str, ...], samples: Samples | None = None
    ) -> tuple[bytes, QuantiseOptions]:
        """The model quantised and calibrated on all samples or some, and what was left open filled in."""
        samples = self.samples if samples is None else samples
        original = equalised(self.content) if options.equalise else self.content
        backend = options.backend or "litert"
        if backend == "litert":
            ranges = self.ranges(options, samples) if options.is_integer else {}
            content = by_litert(original, options.precision, ranges, kept)
            incomplete = options.precision == "int8" and not kept and float_operators(parse_graph(content))
            if incomplete and options.backend is None and self.function is not None:
                backend = "tensorflow"
        if backend == "tensorflow":
            original = self.content
            content = by_tensorflow(self.function, options.precision, samples, self.where)
        if options.is_integer:
            content = corrected(
                content, original, samples, rounding=options.rounding, bias=options.bias_correction, step=self.step
            )
        if options.io == "uint8":
            content = with_uint8_ends(content)
        ranges_by = "min-max" if backend == "tensorflow" else options.estimator
        return content, replace(options, backend=backend, ranges=ranges_by if options.is_integer else None)

    def ranges(self, options: QuantiseOptions, samples: Samples) -> dict[str, tuple[float, float]]:
        """The activations' ranges on all samples or the tried half; what was computed before is not computed again."""
        key = options.estimator, options.equalise, len(samples)
        if key not in self._ranges:
            content = equalised(self.content) if options.equalise else self.content
            self._ranges[key] = activation_ranges(content, samples, options.estimator, self.step)
        return self._ranges[key]

    def trial(self, options: QuantiseOptions, kept: tuple[str, ...] = ()) -> Trial:
        """Calibrate on one half of the samples, compare on the other."""
        kept = kept or kept_layers(parse_graph(self.content), options.keep_float)
        made, _ = self.quantised(options, kept, self.tried)
        if self._floats is None:
            self._floats = outputs_of(self.content, self.compared)
        return Trial(options, fidelity(self._floats, outputs_of(made, self.compared)))

    def within_budget(self, options: QuantiseOptions, kept: tuple[str, ...]) -> tuple[str, ...]:
        """As few of the most sensitive layers as keep the answers, by bisection."""
        assert options.max_drop is not None
        allowed = 1 - options.max_drop / 100
        if self.trial(options, kept).fidelity.top1 >= allowed:
            return kept
        ranges = self.ranges(options, self.tried)
        found = layer_sensitivity(self.content, self.compared, ranges, options.precision)
        layers = [s.layer for s in sorted(found, key=lambda s: s.sqnr_db) if s.layer not in kept]
        few, many = 0, len(layers)
        while few < many:
            middle = (few + many) // 2
            is_enough = self.trial(options, (*kept, *layers[:middle])).fidelity.top1 >= allowed
            few, many = (few, middle) if is_enough else (middle + 1, many)
        chosen = (*kept, *layers[:many])
        if self.trial(options, chosen).fidelity.top1 < allowed:
            raise CheckFailedError(
                f"more than {options.max_drop:g} % of the answers change even with every layer float",
                where=self.where,
                cure="Give more calibration samples, or a larger max_drop.",
            )
        return chosen
