# SPDX-License-Identifier: Apache-2.0
"""Two models on the same pictures: the numbers of a conversion's report for anything that a session opens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import arenite
from arenite.contract import Contract, OutputSpec, contract_of, make_contract
from arenite.engines import kinds_of
from arenite.errors import UsageError
from arenite.graph import Graph
from arenite.labels import dequantise, read_labels, top
from arenite.model_file import read_model
from arenite.preprocess import quantise
from arenite.progress import Progress
from arenite.session import Session
from arenite_converters.calibration import CalibrationSource, SampleSet, read_samples, spread
from arenite_converters.checks import agreement, check_agreement
from arenite_converters.layers import compare_activations
from arenite_converters.pictures import worst_pictures
from arenite_converters.quiet import quiet
from arenite_converters.report import Agreement, Check, PictureQuality, TensorQuality

__all__ = ["ComparedModel", "ModelComparison", "compare_models"]

Array = npt.NDArray[Any]
_LAYER_SAMPLES = 8


@dataclass(frozen=True)
class ComparedModel:
    """One of the two.

    Attributes:
        engine: What ran it, with its version.
        kernels: Which of the engine's.
        operators: How many of each kind.
        contract: Its own, or the one that stood in for it.
    """

    path: str
    model_sha256: str
    file_bytes: int
    engine: str
    kernels: str
    operators: Mapping[str, int]
    contract: Contract


@dataclass(frozen=True)
class ModelComparison:
    """Two models compared; the first is what the second is measured by.

    Attributes:
        models: First and second.
        agreement: Over all samples, of the first output.
        tensors: Activations with the same name and shape in two TFLite files that get the same input; else none.
        worst_pictures: Samples with the noisiest outputs, other classes first.
        checks: The limits.
        agrees: All limits are kept.
    """

    models: tuple[ComparedModel, ComparedModel]
    agreement: Agreement
    tensors: tuple[TensorQuality, ...]
    worst_pictures: tuple[PictureQuality, ...]
    checks: tuple[Check, ...]
    agrees: bool


def compare_models(
    first: Path | str,
    second: Path | str,
    *,
    pictures: CalibrationSource,
    min_sqnr_db: float = 5.0,
    min_top1: float = 0.0,
    progress: Progress | None = None,
    **contract: Any,
) -> ModelComparison:
    """Run two models on the same pictures.

    Args:
        first: What is right: any file that `arenite.open` opens, such as the float TFLite or ONNX model.
        second: The one in question.
        pictures: As the samples of `convert`.
        min_sqnr_db: They do not agree when the second one's output is noisier than this,
        min_top1: or when a smaller share of samples gets the first one's class.
        progress: Where to report.
        contract: For a model that carries none, arguments of `arenite.make_contract`; without them it gets the other
            one's.

    Raises:
        ModelError: A file is no model that an engine runs.
        ContractError: Neither has a contract and none was given, or it does not fit.
        UsageError: A sample is wrong, or the outputs are not comparable.
    """
    progress = progress or Progress()
    # It is gone through twice.
    source = list(pictures) if isinstance(pictures, Iterable) and not hasattr(pictures, "__len__") else pictures
    if isinstance(contract.get("labels"), (str, Path)):
        contract["labels"] = read_labels(contract["labels"])
    graphs = read_model(first), read_model(second)
    sides = [_Side(graph, known, progress) for graph, known in zip(graphs, _contracts(graphs, contract), strict=True)]
    for side in sides:
        side.read(source)
    reals, spec = _comparable(sides)
    agreed = agreement(reals[0], reals[1], spec, held_out=False)
    checks = tuple(check_agreement(agreed, min_sqnr_db, min_top1))
    samples, specs = sides[0].samples, (spec, spec)
    with progress.step("compare activations"), quiet():
        tensors = _tensors(graphs, sides)
    worst = worst_pictures(samples.names, samples.samples, sides[0].contract.input, (reals[0], reals[1]), specs)
    models = sides[0].described(), sides[1].described()
    return ModelComparison(models, agreed, tensors, worst, checks, all(check.passed for check in checks))


def _contracts(graphs: tuple[Graph, Graph], options: Mapping[str, Any]) -> list[Contract]:
    """Each model's own contract, or the options', or the other model's."""
    own = [contract_of(graph) for graph in graphs]
    found = []
    for graph, mine, other in zip(graphs, own, reversed(own), strict=True):
        found.append(mine or make_contract(graph, **(options or _borrowed(other))))
    return found


def _borrowed(other: Contract | None) -> dict[str, Any]:
    if other is None:
        return {}
    picture, output = other.input.picture, other.outputs[0]
    options: dict[str, Any] = {"meaning": output.meaning, "labels": output.labels, "boxes": output.boxes}
    if picture is not None:
        for name in ("normalisation", "colour", "crop", "crop_fraction", "filter", "orientation"):
            options[name] = getattr(picture, name)
    return options


class _Side:
    """One model: its samples and its answers."""

    def __init__(self, graph: Graph, contract: Contract, progress: Progress) -> None:
        self.graph, self.contract, self._progress = graph, contract, progress
        self._session: Session = arenite.open(graph.path, contract=contract)

    def read(self, source: CalibrationSource) -> None:
        """Samples by the model's own contract, and the answers to them."""
        name = Path(self.graph.path).name
        with self._progress.step(f"run {name}") as step:
            self.samples: SampleSet = read_samples(source, self.contract, what="comparison", min_samples=1, step=step)
            self.answers = [self._answer(sample) for sample in self.samples.samples]

    def _answer(self, sample: npt.NDArray[np.float32]) -> Array:
        spec = self.contract.input
        self._session.input[...] = sample if spec.quantised is None else quantise(sample, spec.quantised, spec.dtype)
        self._session.run()
        return dequantise(np.array(self._session.outputs[0]), self.contract.outputs[0])

    def described(self) -> ComparedModel:
        """Its entry in the report."""
        engine, path = self._session.report, Path(self.graph.path)
        size = path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
        kinds = kinds_of(self.graph)
        name = f"{engine.engine} {engine.version}"
        return ComparedModel(str(path), self.graph.sha256, size, name, engine.kernels, kinds, self.contract)


def _comparable(sides: list[_Side]) -> tuple[list[list[Array]], OutputSpec]:
    """Real outputs of both sides with one meaning, and a plain description of them."""
    specs = [side.contract.outputs[0] for side in sides]
    sizes = [side.answers[0].size for side in sides]
    if sizes[0] != sizes[1]:
        raise UsageError(
            f"the outputs are not comparable: {sizes[0]} numbers and {sizes[1]}",
            where=sides[1].graph.path,
            cure="Compare models with the same classes.",
        )
    meanings = {spec.meaning for spec in specs}
    plain = replace(specs[0], quantised=None, dtype="float32")
    reals = [[answer.reshape(plain.shape) for answer in side.answers] for side in sides]
    if meanings != {"logits", "probabilities"}:
        return reals, plain
    # One of the two has no softmax of its own.
    for i, spec in enumerate(specs):
        if spec.meaning == "logits":
            reals[i] = [_probabilities(answer, replace(plain, meaning="logits")) for answer in reals[i]]
    return reals, replace(plain, meaning="probabilities")


def _probabilities(logits: Array, spec: OutputSpec) -> Array:
    scores = {label.index: label.score for label in top(logits, spec, logits.size)}
    return np.array([scores[i] for i in range(logits.size)]).reshape(logits.shape)


def _tensors(graphs: tuple[Graph, Graph], sides: list[_Side]) -> tuple[TensorQuality, ...]:
    same_input = sides[0].samples.digest == sides[1].samples.digest
    if not same_input or any(graph.format != "tflite" for graph in graphs):
        return ()
    some = spread(sides[0].samples.samples, _LAYER_SAMPLES)
    return tuple(compare_activations(graphs[0].path, graphs[1].path, some))
