# SPDX-License-Identifier: Apache-2.0
"""Several models in one firmware: a symbol for each, the shared arena, the limits of the shared runtime.

Models that never run at once share one arena, as large as the largest of them needs: no model leaves anything there
that its next run reads. One that did, because it keeps state between runs, would need memory of its own; the legaliser
refuses such models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path

from arenite_codegen.emit import SINGLE_SYMBOL, Emitted
from arenite_codegen.plan import Plan
from arenite_codegen.render import render

__all__ = ["shared_files", "symbols_of"]

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


def shared_files(models: Sequence[Emitted], plans: Sequence[Plan]) -> Mapping[str, str]:
    """Generated files that belong to all models together, by name."""
    largest = max(zip(models, plans, strict=True), key=lambda pair: pair[1].arena_bytes)[0]
    context = {
        "models": models,
        "largest": largest.symbol,
        "max_pointers": max(model.max_pointers for model in models),
        "guards": any(plan.guards for plan in plans),
    }
    return {
        "arenite_models.h": render("models.h.j2", context),
        "arenite_models.c": render("models.c.j2", context),
        "arenite_limits.h": render("limits.h.j2", context),
    }


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
    return symbol, f"{symbol}_data", f"{symbol}_weights"


@lru_cache
def _firmware_names() -> frozenset[str]:
    """Every name that the hand-written C uses, files included: a model called `run` must not become `arenite_run`."""
    root = Path(str(resources.files("arenite_firmware")))
    files = [path for folder in ("runtime", "kernels", "app", "startup") for path in (root / folder).glob("*.*")]
    names = {name for path in files for name in _NAME.findall(f"{path.name} {path.read_text(encoding='utf-8')}")}
    return frozenset(names | {"arenite_limits", "arenite_models", SINGLE_SYMBOL})
