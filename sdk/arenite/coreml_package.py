# SPDX-License-Identifier: Apache-2.0
"""What a Core ML package or model says of itself, read anywhere: its metadata is a few fields of a protobuf.

Field numbers are those of Core ML's Model.proto (Model, ModelDescription, Metadata).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from arenite._protobuf import fields, text
from arenite.errors import ModelError

__all__ = ["coreml_metadata"]

_DESCRIPTION, _METADATA, _USER_DEFINED = 2, 100, 100


def coreml_metadata(path: Path) -> Mapping[str, bytes]:
    """The user-defined metadata of a .mlpackage or .mlmodel, by name.

    Raises:
        ModelError: It is none, or is corrupt.
    """
    try:
        model = fields(memoryview(_specification(path).read_bytes()))
        described = fields(model[_DESCRIPTION][0]).get(_METADATA, [])
        entries = [fields(entry) for metadata in described for entry in fields(metadata).get(_USER_DEFINED, [])]
        return {text(entry, 1): text(entry, 2).encode() for entry in entries}
    except OSError as error:
        problem = f"cannot read the model: {error.strerror or error}"
        raise ModelError(problem, where=str(path), cure="Check the path.") from error
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        problem = f"no Core ML model, or corrupt ({type(error).__name__} while reading it)"
        raise ModelError(problem, where=str(path), cure="Convert or copy the model again.") from error


def _specification(path: Path) -> Path:
    """The model inside a package, by the package's own table."""
    if not path.is_dir():
        return path
    table = json.loads((path / "Manifest.json").read_bytes())
    return path / "Data" / str(table["itemInfoEntries"][table["rootModelIdentifier"]]["path"])
