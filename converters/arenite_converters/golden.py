# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs and the reference's outputs, carried in the model file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from arenite.errors import CheckFailedError, ModelError
from arenite.reference import reference_available, reference_name, reference_outputs

__all__ = ["golden_vectors"]

Array = npt.NDArray[Any]


def golden_vectors(model: Path, inputs: Sequence[Array]) -> tuple[list[Array], str] | None:
    """Reference outputs for some inputs.

    The authority is tflite-micro's reference kernels. LiteRT's round otherwise, so nothing stands in for them.

    Returns:
        One output for each input, and the authority with its version; None when it is not installed.

    Raises:
        CheckFailedError: The reference refuses the model.
    """
    if not reference_available():
        return None
    try:
        outputs = reference_outputs(model.read_bytes(), [[value] for value in inputs])
    except ModelError as error:
        raise CheckFailedError(
            f"the converted model does not run on the reference: {error.what}",
            cure="Replace the operator that it names.",
        ) from error
    return [found[0] for found in outputs], reference_name()
