# SPDX-License-Identifier: Apache-2.0
"""Signs that calibration samples are right in form and wrong in kind.

Nothing here is proof, so nothing is refused: each sign is a caution with its figures.

- *Order of colours.* Photographs are warmer than blue far more often than not, and a trained model is surer of its
  answers when the colours are right. Pictures are suspected when most of them are bluer than red, unless the model is
  markedly surer as they are; and whenever it is markedly surer the other way round.
- *Scale.* Training with batch normalisation leaves a first convolution whose channels spread by about 1. Pictures that
  are 127 times too large or too small make it 100 or 0.01, whatever the network.
- *Variety.* Pictures that are all grey, samples whose sizes are far apart, a model that gives one class to everything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.contract import NORMALISATIONS, Contract, InputSpec, Normalisation, normalisation_for
from arenite.graph import Graph
from arenite.labels import top
from arenite_converters.calibration import SampleSet, spread
from arenite_converters.layers import ActivationRunner
from arenite_converters.pictures import as_rgb
from arenite_converters.report import Caution

__all__ = ["order_against", "sample_cautions"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Run = Callable[[Floats], Array]

_MOST_SAMPLES, _FEWEST = 48, 8
# Of a picture's pixels, so many more must be warm or cold for the picture to count; a pixel by so many levels of 255.
_LEANS, _LEVELS = 0.1, 12
_COLD_SHARE, _CHANCE = 2 / 3, 0.01
# Paired difference of entropies: so many standard errors, and so much of the largest entropy that there is.
_ERRORS, _ENTROPY = 3.0, 0.05
# What the median channel of a first convolution spreads by; trained networks lie between 0.5 and 3.
_SPREAD = (0.05, 20.0)
_SIZES_APART = 50.0


def sample_cautions(
    samples: SampleSet, contract: Contract, graph: Graph, run: Run, what: str = "calibration"
) -> Iterator[Caution]:
    """All signs that one set of samples gives by itself.

    Args:
        samples: The set.
        contract: Of the float model.
        graph: The float model, read from a file.
        run: One inference of it, from an input to the first output.
        what: `calibration` or another name of the set.
    """
    chosen = spread(samples.samples, _MOST_SAMPLES)
    answers = [run(sample) for sample in chosen]
    yield from _one_answer(answers, contract, what)
    if contract.input.picture is None:
        yield from _sizes(samples, what)
    if contract.input.picture is None or contract.input.shape[0] != 1:
        return
    yield from _first_layer(chosen, contract.input, graph, what)
    if contract.input.picture.colour == "GREY":
        return
    pictures = [as_rgb(sample, contract.input) for sample in chosen]
    if all(float(np.ptp(picture, axis=2).max()) < 1 for picture in pictures):
        cure = "Give pictures in colour, as the application will see them."
        yield Caution(f"every {what} picture is grey", f"{len(pictures)} pictures, red = green = blue", cure)
        return
    yield from _order(samples, pictures, chosen, answers, contract, run, what)


def order_against(samples: SampleSet, others: SampleSet, spec: InputSpec, what: str, other: str) -> Iterator[Caution]:
    """Whether red and blue of one set are blue and red of the other.

    Args:
        samples: The set in question.
        others: The one that it is held against.
        spec: The input of both.
        what: Name of the first.
        other: Name of the second.
    """
    if spec.picture is None or spec.picture.colour == "GREY":
        return
    sides = []
    for group in (samples, others):
        leans = [float(np.diff(as_rgb(s, spec).mean((0, 1))[::2])[0]) for s in spread(group.samples, _MOST_SAMPLES)]
        sides.append((float(np.mean(leans)), float(np.std(leans)) / math.sqrt(len(leans))))
    (mean, error), (other_mean, other_error) = sides
    both = math.hypot(error, other_error) or 1e-9
    as_given, swapped = abs(mean - other_mean), abs(mean + other_mean)
    if as_given > max(_ERRORS * both, _LEVELS) and swapped < as_given / 3:
        yield Caution(
            f"{what} and {other} pictures have red and blue exchanged",
            f"blue exceeds red by {mean:+.1f} levels in {what}, by {other_mean:+.1f} in {other}",
            "One of the two sets is BGR: give arrays in RGB order, as files are read.",
        )


def _one_answer(answers: Sequence[Array], contract: Contract, what: str) -> Iterator[Caution]:
    classes = answers[0].size
    if contract.outputs[0].meaning not in ("probabilities", "logits") or classes < 3 or len(answers) < _FEWEST:
        return
    counted = Counter(top(answer, contract.outputs[0], 1)[0].text for answer in answers)
    if len(counted) == 1:
        yield Caution(
            "the trained model gives one class to everything",
            f"'{next(iter(counted))}' to all of {len(answers)} {what} samples",
            "Check normalisation and colour order, and that the samples are of more than one kind.",
        )


def _sizes(samples: SampleSet, what: str) -> Iterator[Caution]:
    largest = np.array([float(np.abs(sample).max()) for sample in samples.samples])
    usual = float(np.median(largest))
    apart = np.maximum(largest / max(usual, 1e-30), usual / np.maximum(largest, 1e-30))
    worst = int(apart.argmax())
    if apart[worst] > _SIZES_APART:
        yield Caution(
            f"{what} samples of different scales",
            f"{samples.names[worst]} reaches {largest[worst]:g}, the usual one {usual:g}",
            "Normalise all samples in the same way.",
        )


def _first_layer(chosen: Sequence[Floats], spec: InputSpec, graph: Graph, what: str) -> Iterator[Caution]:
    found = _first_spread(chosen, graph)
    if found is None or _SPREAD[0] <= found <= _SPREAD[1]:
        return
    better = [name for name, other in _other_scales(chosen, spec) if _plausible(_first_spread(other, graph))]
    yield Caution(
        f"{what} pictures seem to be of another scale than the model was trained with",
        f"channels of the first convolution spread by {found:.3g}; trained networks have about 1"
        + (f", and this one has so with {' or '.join(better)}" if better else ""),
        "Check the normalisation.",
    )


def _plausible(found: float | None) -> bool:
    return found is not None and _SPREAD[0] <= found <= _SPREAD[1]


def _other_scales(chosen: Sequence[Floats], spec: InputSpec) -> Iterator[tuple[str, list[Floats]]]:
    assert spec.picture is not None
    for name in NORMALISATIONS:
        if spec.picture.colour == "GREY" and name == "imagenet":
            continue
        how = normalisation_for(name, spec.picture.colour)
        if how != spec.picture.normalisation:
            yield name, [_normalised_again(sample, spec, how) for sample in spread(chosen, _FEWEST)]


def _normalised_again(sample: Floats, spec: InputSpec, how: Normalisation) -> Floats:
    assert spec.picture is not None
    old, axes = spec.picture.normalisation, (-1, 1, 1) if spec.layout == "NCHW" else (-1,)
    mean, std, new_mean, new_std = (np.array(v).reshape(axes) for v in (old.mean, old.std, how.mean, how.std))
    return np.asarray(((sample * std + mean) / old.scale * how.scale - new_mean) / new_std, np.float32)


def _first_spread(chosen: Sequence[Floats], graph: Graph) -> float | None:
    """Standard deviation of the first convolution's output before its activation, of the median channel."""
    op = next((op for op in graph.operators if op.kind == "CONV_2D"), None)
    weights = None if op is None else graph.tensors[op.inputs[1]].data
    if op is None or weights is None or weights.dtype != np.float32:
        return None
    source, stride = graph.tensors[op.inputs[0]].name, op.attributes["stride_h"]
    runner = ActivationRunner(Path(graph.path).read_bytes())
    made = []
    for sample in spread(chosen, _FEWEST):
        rows = next(iter(runner.activations(sample, [source])))[1][0]
        if rows.shape[2] != weights.shape[3]:
            return None  # in groups
        extents = (weights.shape[1], weights.shape[2])
        windows = np.lib.stride_tricks.sliding_window_view(rows, extents, axis=(0, 1))[::stride, ::stride]  # type: ignore[call-overload]
        made.append(np.einsum("hwcij,oijc->hwo", windows, weights, optimize=True).reshape(-1, len(weights)))
    return float(np.median(np.concatenate(made).std(axis=0)))


def _order(
    samples: SampleSet,
    pictures: Sequence[Array],
    chosen: Sequence[Floats],
    answers: Sequence[Array],
    contract: Contract,
    run: Run,
    what: str,
) -> Iterator[Caution]:
    cold, voters = _cold_pictures(pictures)
    surer = _surer_as_given(chosen, answers, contract, run)
    bluish = voters >= _FEWEST and cold >= _COLD_SHARE * voters and _tail(cold, voters) < _CHANCE
    if surer[1] > 0 or not (bluish or surer[1] < 0):
        return
    assert contract.input.picture is not None
    given = contract.input.picture.colour
    arrays = "" if samples.from_files else " Give arrays in RGB order (OpenCV reads BGR)."
    yield Caution(
        f"{what} pictures look as if red and blue were exchanged (BGR for RGB)",
        f"{cold} of {voters} pictures that lean to a side are bluer than red; exchanging red and blue makes the "
        f"model's answers {abs(surer[0]):.3f} nats {'surer' if surer[0] < 0 else 'less sure'}",
        f"Check the pictures' channels and the contract's colour order ({given}).{arrays}",
    )


def _cold_pictures(pictures: Sequence[Array]) -> tuple[int, int]:
    """How many pictures are mostly bluer than red, and how many lean to either side."""
    leans = [np.diff(picture[:, :, ::2], axis=2) for picture in pictures]
    sides = np.array([float((d > _LEVELS).mean() - (d < -_LEVELS).mean()) for d in leans])
    return int((sides > _LEANS).sum()), int((np.abs(sides) > _LEANS).sum())


def _surer_as_given(
    chosen: Sequence[Floats], answers: Sequence[Array], contract: Contract, run: Run
) -> tuple[float, int]:
    """Mean entropy, in nats, that exchanging red and blue adds; and 1, 0 or -1: markedly so, no matter, less."""
    spec = contract.outputs[0]
    if spec.meaning not in ("probabilities", "logits") or answers[0].size < 2 or len(chosen) < _FEWEST:
        return 0.0, 0
    axis = 3 if contract.input.layout == "NHWC" else 1
    picture = contract.input.picture
    assert picture is not None
    how = picture.normalisation
    # Per-channel constants belong to the place, not to the colour that lies there.
    turned = replace(how, mean=how.mean[::-1], std=how.std[::-1])
    other = replace(contract.input, picture=replace(picture, normalisation=turned))
    exchanged = [_normalised_again(np.flip(sample, axis), other, how) for sample in chosen]
    apart = np.array([_entropy(run(s), spec) - _entropy(a, spec) for s, a in zip(exchanged, answers, strict=True)])
    mean, error = float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(len(apart))
    marked = abs(mean) > _ERRORS * error and abs(mean) > _ENTROPY * math.log(answers[0].size)
    return mean, int(np.sign(mean)) if marked else 0


def _entropy(answer: Array, spec: Any) -> float:
    scores = np.array([label.score for label in top(answer, spec, answer.size)])
    return float(-(scores * np.log(np.maximum(scores, 1e-12))).sum())


def _tail(hits: int, count: int) -> float:
    """Chance of so many hits or more when each is as likely as not."""
    return float(sum(math.comb(count, k) for k in range(hits, count + 1)) / 2**count)
