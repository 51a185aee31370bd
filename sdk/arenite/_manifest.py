# SPDX-License-Identifier: Apache-2.0
"""Read the manifest of a bundle, checked as far as building and verifying rely on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from arenite.errors import UsageError

__all__ = ["FORMAT", "MANIFEST", "read_manifest"]

MANIFEST = "manifest.json"
FORMAT = 2
_CURE = "Give the folder that `arenite bundle` wrote"


def read_manifest(bundle_dir: Path) -> dict[str, Any]:
    """The manifest of a bundle.

    Raises:
        UsageError: The folder is no bundle, was written by another version, or its manifest is damaged.
    """
    path = bundle_dir / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = "this folder is not a bundle: it has no readable manifest.json"
        raise UsageError(problem, where=str(bundle_dir), cure=_CURE) from error
    except ValueError as error:
        raise UsageError("the manifest is not valid JSON", where=str(path), cure=_CURE) from error
    if not isinstance(manifest, dict):
        raise UsageError("the manifest is not an object", where=str(path), cure=_CURE)
    if manifest.get("format") != FORMAT:
        problem = f"the manifest has format {manifest.get('format')!r}, this version of Arenite reads {FORMAT}"
        raise UsageError(problem, where=str(path), cure="Bundle the model again with this version")
    problem = _problem(manifest)
    if problem:
        raise UsageError(problem, where=str(path), cure=_CURE)
    return manifest


def _problem(manifest: dict[str, Any]) -> str:
    """What is wrong with the manifest's content; empty when nothing is."""
    for name in ("sources", "include_dirs"):
        values = manifest.get(name)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            return f"the manifest lacks its list `{name}`"
    if not isinstance(manifest.get("weights_bytes"), int):
        return "the manifest's `weights_bytes` is no number"
    models = manifest.get("models")
    if not isinstance(models, list) or not models:
        return "the manifest lacks its list `models`"
    for number, model in enumerate(models):
        if not isinstance(model, dict) or not all(isinstance(model.get(n), str) for n in ("name", "symbol", "sha256")):
            return f"the manifest does not say what model {number} is"
        vectors = model.get("vectors")
        if (
            not isinstance(vectors, dict)
            or not isinstance(vectors.get("count"), int)
            or not isinstance(vectors.get("folder"), str)
        ):
            return f"the manifest does not say which `vectors` model {number} has"
    return ""
