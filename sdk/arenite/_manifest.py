# SPDX-License-Identifier: Apache-2.0
"""Read the manifest of a bundle, checked as far as building and verifying rely on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from arenite.errors import UsageError

__all__ = ["MANIFEST", "read_manifest"]

MANIFEST = "manifest.json"
_CURE = "Give the folder that `arenite bundle` wrote"


def read_manifest(bundle_dir: Path) -> dict[str, Any]:
    """The manifest of a bundle.

    Raises:
        UsageError: The folder is no bundle, or its manifest is damaged.
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
    for name in ("sources", "include_dirs"):
        values = manifest.get(name)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise UsageError(f"the manifest lacks its list `{name}`", where=str(path), cure=_CURE)
    if not isinstance(manifest.get("weights_bytes", 0), int):
        raise UsageError("the manifest's `weights_bytes` is no number", where=str(path), cure=_CURE)
    vectors = manifest.get("vectors")
    if not isinstance(vectors, dict) or not isinstance(vectors.get("count"), int):
        raise UsageError("the manifest does not say which `vectors` there are", where=str(path), cure=_CURE)
    return manifest
