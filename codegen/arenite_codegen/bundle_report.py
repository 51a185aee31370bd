# SPDX-License-Identifier: Apache-2.0
"""What `bundle` says of what it made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

__all__ = ["BundleReport", "ModelReport", "OperatorReport", "RegionReport", "digest_of", "report_of"]


@dataclass(frozen=True)
class OperatorReport:
    """What became of one operator of a model file.

    Attributes:
        index: Its place in the file.
        kind: Its TFLite name.
        kernel: The kernel that runs it; None if it needs none.
        macs: Multiply-accumulates of one inference.
        modelled_instructions: Of one inference, as `arenite_codegen.cost_model` reckons them: modelled, not counted.
            None where that knows nothing of the kernel on this kind of core, or where there are no MACs.
        ring_rows: Rows of its output that exist at once; 0 if it needs no memory of its own.
        note: Why it has no kernel, or in which chain it runs.
        variant: Which implementation of the kernel the board and the layer allow; None if it needs none.
        passed_over: Faster variants of the kernel, and why they cannot run it.
        model: Place of its model in the bundle.
    """

    index: int
    kind: str
    kernel: str | None
    macs: int
    ring_rows: int
    note: str = ""
    variant: str | None = None
    passed_over: Mapping[str, str] = field(default_factory=dict)
    model: int = 0
    modelled_instructions: int | None = None

    @property
    def modelled_instructions_per_mac(self) -> float | None:
        """None where `modelled_instructions` is."""
        return None if self.modelled_instructions is None else self.modelled_instructions / self.macs


@dataclass(frozen=True)
class RegionReport:
    """What lies in one of the board's memories.

    Attributes:
        name: Of the memory, as the board file says.
        holds: `arena`, `weights`, or, in the caller's memory, such as `input 0`.
        bytes: That the model uses there.
        capacity_bytes: That are there for a model.
        traffic_bytes: That an inference reads and writes there, as `arenite_codegen.traffic` counts them.
        word_cycles: Core cycles that 32 bits take on average, as the board file says.
        modelled_cycles: Core cycles that the traffic takes in words: modelled, not measured.
    """

    name: str
    holds: str
    bytes: int
    capacity_bytes: int
    traffic_bytes: int
    word_cycles: int
    modelled_cycles: int


@dataclass(frozen=True)
class ModelReport:
    """One model of a bundle. Sizes in bytes.

    Attributes:
        name: Its file's name.
        symbol: Its name in C.
        sha256: Digest of its TFLite file as the board runs it.
        arena_bytes: All the RAM that it needs while it runs, inputs and outputs included but for the caller's.
        arena_lower_bound_bytes: Rows alive at the worst moment of its schedule: no placement needs less.
        weights_bytes: Constants in flash.
        row_fed: The input comes row by row and is not in the arena.
        mac_factor: MACs that run, over those of the model; 1.0 means that nothing is computed twice, less that rows
            which nobody reads are not made.
        camera_bytes: RAM, beside the arena, while a camera's frame becomes the input; 0 without `--camera`.
        integer_ends: Inputs and outputs that are float32 in the file and integers here.
    """

    name: str
    symbol: str
    sha256: str
    arena_bytes: int
    arena_lower_bound_bytes: int
    weights_bytes: int
    macs: int
    mac_factor: float
    row_fed: bool
    vectors: int
    camera_bytes: int = 0
    integer_ends: tuple[str, ...] = ()


@dataclass(frozen=True)
class BundleReport:
    """What `bundle` made. Sizes in bytes; of several models that share an arena, what all need together.

    Attributes:
        model_sha256: Digest of the model file; of several, the digest of their digests in order.
        arena_bytes: All the RAM that the models need, one at a time, without the caller's memory: in each memory that
            of the largest.
        arena_lower_bound_bytes: The largest of the models' lower bounds.
        weights_bytes: Constants in flash, of all models.
        code_bytes, stack_bytes: Known after `build`.
        macs: Multiply-accumulates of one inference of each model.
        row_fed: Every model's input comes row by row.
        mac_factor: MACs that run, over `macs`.
        regions: Which memories of the board are used, and for what; by several models in turn, the most of each.
        operators: Those of all models, model after model.
        vectors: Golden vectors of all models.
        guards: A validation build, which watches a word behind every block of the arena.
        models: Each model by itself.
        camera_bytes: RAM, beside the arena, while a camera's frame becomes an input: the most of all models.
    """

    out_dir: str
    board: str
    model_sha256: str
    arena_bytes: int
    arena_lower_bound_bytes: int
    weights_bytes: int
    code_bytes: int | None
    macs: int
    row_fed: bool
    mac_factor: float
    stack_bytes: int | None
    regions: tuple[RegionReport, ...]
    operators: tuple[OperatorReport, ...]
    vectors: int
    authority: str | None
    guards: bool
    models: tuple[ModelReport, ...]
    camera_bytes: int = 0


def report_of(place: Path, manifest: Mapping[str, Any]) -> BundleReport:
    """The report of a bundle from its manifest."""
    models: list[dict[str, Any]] = manifest["models"]
    macs = sum(model["macs"] for model in models)
    run = sum(model["macs"] * model["mac_factor"] for model in models)
    return BundleReport(
        out_dir=str(place),
        board=manifest["board"],
        model_sha256=digest_of(models),
        arena_bytes=manifest["arena_bytes"],
        arena_lower_bound_bytes=max(model["arena_lower_bound_bytes"] for model in models),
        weights_bytes=manifest["weights_bytes"],
        code_bytes=None,
        macs=macs,
        row_fed=all(model["row_fed"] for model in models),
        mac_factor=models[0]["mac_factor"] if len(models) == 1 else run / macs if macs else 1.0,
        stack_bytes=None,
        regions=tuple(RegionReport(**region) for region in manifest["regions"]),
        operators=tuple(
            OperatorReport(**row, model=index) for index, model in enumerate(models) for row in model["operators"]
        ),
        vectors=sum(model["vectors"]["count"] for model in models),
        authority=models[0]["vectors"]["authority"],
        guards=manifest["guards"],
        camera_bytes=manifest.get("camera_bytes", 0),
        models=tuple(_model_report(model) for model in models),
    )


def _model_report(model: dict[str, Any]) -> ModelReport:
    own = {field.name: model[field.name] for field in fields(ModelReport) if field.name in model}
    own |= {"vectors": model["vectors"]["count"], "integer_ends": tuple(model["integer_ends"])}
    return ModelReport(**own)


def digest_of(models: Sequence[dict[str, Any]]) -> str:
    """What tells one set of models from another: a model's own digest, or that of several in order."""
    digests = [str(model["sha256"]) for model in models]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
