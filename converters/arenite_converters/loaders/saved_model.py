# SPDX-License-Identifier: Apache-2.0
"""SavedModel folders, by one of their signatures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from arenite.errors import ModelError, UsageError
from arenite_converters.float_model import FloatModel, first_line, several
from arenite_converters.loaders.tensorflow import float_model, static_shape, tensorflow

__all__ = ["load_saved_model"]

_USUAL = "serving_default"


def load_saved_model(path: Path, input_shape: Sequence[int] | None, signature: str | None) -> FloatModel:
    """Load a SavedModel.

    Args:
        path: Its folder.
        input_shape: Without the batch, for models that leave dimensions open.
        signature: Which of its functions; by default serving_default, or the only one.

    Raises:
        ModelError: TensorFlow cannot load it, or the function has several inputs or outputs.
        UsageError: There is no such signature.
    """
    tf = tensorflow()
    try:
        loaded = tf.saved_model.load(str(path))
    except Exception as error:  # whatever a foreign file makes the library raise
        raise ModelError(
            f"TensorFlow cannot load the SavedModel ({first_line(error)})",
            where=str(path),
            cure="Check that the folder is whole.",
        ) from error
    name = _chosen(sorted(loaded.signatures), signature, str(path))
    function = loaded.signatures[name]
    inputs, outputs = function.structured_input_signature[1], function.structured_outputs
    if len(inputs) != 1:
        raise several("inputs", len(inputs), str(path))
    argument, spec = next(iter(inputs.items()))
    shapes = [tuple(t.shape) if t.shape.rank is not None else None for t in (spec, *outputs.values())]
    shape = static_shape(shapes[0], shapes[1] if len(outputs) == 1 else shapes[1:], input_shape, str(path))
    loader = f"SavedModel, tensorflow {tf.__version__}, signature {name}"
    return float_model(lambda x: function(**{argument: x}), shape, loader, str(path))


def _chosen(names: list[str], wanted: str | None, where: str) -> str:
    if wanted is None:
        if _USUAL in names or len(names) == 1:
            return _USUAL if _USUAL in names else names[0]
        wanted = _USUAL
    if wanted in names:
        return wanted
    raise UsageError(
        f"the SavedModel has no signature '{wanted}'",
        where=where,
        cure=f"It has {', '.join(names) or 'none'}; give one with --signature.",
    )
