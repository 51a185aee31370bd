# SPDX-License-Identifier: Apache-2.0
"""Several models in one firmware: a symbol for each, the shared arena, the limits of the shared runtime.

Models that never run at once share one arena, as large as the largest of them needs: no model leaves anything there
that its next run reads. What a model remembers lies in a region of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path

from arenite_codegen.board_schema import MOST_REGIONS
from arenite_codegen.emit import SINGLE_SYMBOL, Emitted
from arenite_codegen.plan import Plan
from arenite_codegen.regions import Region
from arenite_codegen.render import render

__all__ = ["Shared", "shared_files", "symbols_of"]

_MOST_CHARACTERS = 40
_NAME = re.compile(r"\barenite_\w+")


def symbols_of(models: Sequence[Path]) -> list[str]:
    """A C identifier for each model, from its file name; unique, also where upper and lower case are one."""
    if len(models) == 1:
        return [SINGLE_SYMBOL]
    taken = set(_firmware_names())
    symbols = []
    for model in models:
        symbol = _free(_identifier(model.stem), taken)
        taken.update(_names_of(symbol))
        symbols.append(symbol)
    return symbols


@dataclass(frozen=True)
class Shared:
    """The memory of models that take turns.

    Attributes:
        buffers: Of each memory the largest part of an arena, then of what else it holds.
        flash: The weights of all models, by memory.
    """

    buffers: tuple[Region, ...]
    flash: tuple[Region, ...]

    @classmethod
    def of(cls, models: Sequence[Emitted], plans: Sequence[Plan]) -> Shared:
        """What these models need together."""
        return cls(_shared_buffers(plans), _shared_flash(models))

    @property
    def arena(self) -> tuple[Region, ...]:
        """The arena's parts."""
        return tuple(buffer for buffer in self.buffers if buffer.holds == "arena")

    @property
    def arena_bytes(self) -> int:
        """All of them."""
        return sum(part.bytes for part in self.arena)


def shared_files(models: Sequence[Emitted], plans: Sequence[Plan], shared: Shared) -> Mapping[str, str]:
    """Generated files that belong to all models together, by name."""
    largest = max(zip(models, plans, strict=True), key=lambda pair: pair[1].arena_bytes)[0]
    context = {
        "models": models,
        "buffers": shared.buffers,
        "memory": [_buffers_of(shared.buffers, plan, number) for number, plan in enumerate(plans)],
        "most_regions": max(len(plan.regions) for plan in plans),
        "one_arena": len(shared.arena) == 1,
        "arena_bytes": shared.arena_bytes,
        "largest": largest.symbol,
        "most_layers": max(model.layers for model in models),
        "max_pointers": max(model.max_pointers for model in models),
        "stage_kernels": sorted({pair for model in models for pair in model.stage_kernels}),
        "guards": any(plan.guards for plan in plans),
    }
    return {
        "arenite_models.h": render("models.h.j2", context),
        "arenite_models.c": render("models.c.j2", context),
        "arenite_limits.h": render("limits.h.j2", context),
    }


def _shared_buffers(plans: Sequence[Plan]) -> tuple[Region, ...]:
    found: dict[tuple[str, str], list[Region]] = {}
    for number, plan in enumerate(plans):
        for region in plan.regions:
            found.setdefault((region.name, _shared_as(region, number)), []).append(region)
    arena_first = sorted(found, key=lambda key: key[1] != "arena")
    return tuple(replace(_together(found[key], max), holds=key[1]) for key in arena_first)


def _shared_as(region: Region, model: int) -> str:
    """What models take turns in has one name; the first model's state is `state`, another's `state 1`, and so on."""
    return f"state {model}" if region.holds == "state" and model else region.holds


def _shared_flash(models: Sequence[Emitted]) -> tuple[Region, ...]:
    """The weights of all models, by memory."""
    found: dict[str, list[Region]] = {}
    for model in models:
        for region in model.flash:
            found.setdefault(region.name, []).append(region)
    return tuple(_together(regions, sum) for regions in found.values())


def _together(regions: list[Region], size: Callable[[Iterable[int]], int]) -> Region:
    return replace(
        regions[0],
        bytes=size(region.bytes for region in regions),
        capacity_bytes=max(region.capacity_bytes for region in regions),
        traffic_bytes=sum(region.traffic_bytes for region in regions),
    )


def _buffers_of(buffers: Sequence[Region], plan: Plan, model: int) -> list[int]:
    keys = [(buffer.name, buffer.holds) for buffer in buffers]
    return [keys.index((region.name, _shared_as(region, model))) for region in plan.regions]


def _identifier(stem: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")
    return f"arenite_{words[:_MOST_CHARACTERS].rstrip('_') or 'unnamed'}"


def _free(wanted: str, taken: set[str]) -> str:
    symbol, number = wanted, 1
    while taken.intersection(_names_of(symbol)):
        number += 1
        symbol = f"{wanted}_{number}"
    return symbol


def _names_of(symbol: str) -> tuple[str, ...]:
    """What a model's files define or are called."""
    arrays = (f"{symbol}_data", *(f"{symbol}_data_{region}" for region in range(1, MOST_REGIONS)))
    return symbol, f"{symbol}_weights", f"{symbol}_contract", f"{symbol}_camera", *arrays


@lru_cache
def _firmware_names() -> frozenset[str]:
    """Every name that the hand-written C uses, files included: a model called `run` must not become `arenite_run`."""
    root = Path(str(resources.files("arenite_firmware")))
    folders = ("runtime", "kernels", "camera", "app", "startup")
    files = [path for folder in folders for path in (root / folder).glob("*.*")]
    names = {name for path in files for name in _NAME.findall(f"{path.name} {path.read_text(encoding='utf-8')}")}
    return frozenset(names | {"arenite_limits", "arenite_models", SINGLE_SYMBOL})
