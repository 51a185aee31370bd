# SPDX-License-Identifier: Apache-2.0
"""Run an ML Program in NumPy, on any machine.

Core ML itself runs on Apple's systems only. This executor computes every operation in float32 and, where the program
stores float16, rounds the result to float16. That is a reference for a package's numbers, not a model of a Mac's
hardware: the Neural Engine and the GPU accumulate in ways of their own.
"""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.errors import ModelError, UnsupportedOperatorError
from arenite_converters.coreml.operators import OPERATORS
from arenite_converters.coreml.program import Operation, Program, Reference, read_program

__all__ = ["MilExecutor"]

Array = npt.NDArray[Any]
Watch = Callable[[Operation | None, str, Array], None]
Change = Callable[[Operation, Sequence[Mapping[str, Any]]], Operation]
# What computes no new value of a float type: there is nothing to round.
_EXACT = {
    "concat", "depth_to_space", "expand_dims", "max_pool", "pad", "pixel_shuffle", "relu", "relu6", "reshape",
    "slice_by_index", "slice_by_size", "space_to_depth", "split", "squeeze", "stack", "tile", "transpose",
}  # fmt: skip
# What a kernel raises on values that do not fit together, or on a choice that it does not know.
_MISFIT = (ValueError, TypeError, IndexError, KeyError, AttributeError, NotImplementedError, AssertionError)


class MilExecutor:
    """One program, its constants unpacked.

    Args:
        program: A package, or its program.

    Attributes:
        constants: What needs no input, by name.

    Raises:
        UnsupportedOperatorError: There is no kernel for an operation; all such are named.
        ModelError: The package is damaged.
    """

    def __init__(self, program: Program | Path | str) -> None:
        self.program = program if isinstance(program, Program) else read_program(program)
        self._refuse_unknown()
        self.constants: dict[str, Any] = {}
        self._operations = []
        for op in self.program.operations:
            if op.kind == "const" or op.kind.startswith("constexpr_"):
                self._compute(op, self.constants)
            else:
                self._operations.append(op)

    def run(self, inputs: Mapping[str, Array], watch: Watch | None = None) -> dict[str, Any]:
        """The outputs by name.

        Args:
            inputs: By name, in the program's shapes; a picture as 8-bit values [1, channels, height, width].
            watch: Told about each input and each computed value: its operation, its name, the value.

        Raises:
            ModelError: An input is missing or of another shape, or the program contradicts itself.
        """
        values = self.constants | self._inputs(inputs)
        if watch is not None:
            for value in self.program.inputs:
                watch(None, value.name, values[value.name])
        for op in self._operations:
            self._compute(op, values)
            for output in op.outputs:
                if watch is not None:
                    watch(op, output.name, values[output.name])
        return {name: values[name] for name in self.program.outputs}

    def run_together(self, samples: Sequence[Mapping[str, Array]], change: Change) -> None:
        """All samples side by side, operation by operation.

        Args:
            samples: Inputs, as `run` takes them.
            change: Given each operation and, by name, what every sample has for it; returns the one to run instead.

        Raises:
            ModelError: As `run`.
        """
        rows = [ChainMap(self._inputs(sample), self.constants) for sample in samples]
        gone = self._read_last()
        for i, op in enumerate(self._operations):
            chosen = change(op, rows)
            for row in rows:
                self._compute(chosen, row)
                for name in gone[i]:
                    row.maps[0].pop(name, None)

    def _read_last(self) -> list[list[str]]:
        """For each operation, the names that none behind it reads."""
        last = {name: i for i, op in enumerate(self._operations) for name in _read_by(op.inputs.values())}
        found: list[list[str]] = [[] for _ in self._operations]
        for name, i in last.items():
            found[i].append(name)
        return found

    def _inputs(self, given: Mapping[str, Array]) -> dict[str, Any]:
        return {value.name: self._input(value.name, value.shape, given) for value in self.program.inputs}

    def _input(self, name: str, shape: tuple[int, ...], inputs: Mapping[str, Array]) -> Array:
        if name not in inputs or np.shape(inputs[name]) != shape:
            given = list(np.shape(inputs[name])) if name in inputs else "nothing"
            raise ModelError(
                f"the program's input '{name}' is {list(shape)}, {given} was given", where=self.program.path
            )
        return np.asarray(inputs[name], np.float32)

    def _compute(self, op: Operation, values: MutableMapping[str, Any]) -> None:
        try:
            arguments = {name: _resolved(argument, values) for name, argument in op.inputs.items()}
            with np.errstate(all="ignore"):
                made = OPERATORS[op.kind](**arguments)
        except _MISFIT as error:
            raise ModelError(
                f"the program does not fit together ({type(error).__name__}: {error})",
                where=f"{self.program.path}, {op.kind} '{op.name}'",
                cure="Convert the model again.",
            ) from error
        for output, value in zip(op.outputs, made if isinstance(made, tuple) else (made,), strict=False):
            values[output.name] = value if op.kind in _EXACT else _stored(value, output.dtype)

    def _refuse_unknown(self) -> None:
        unknown: dict[str, str] = {}
        for op in self.program.operations:
            reason = _unknown(op)
            if reason:
                unknown.setdefault(reason, op.name)
        if unknown:
            named = "; ".join(f"{reason} (first '{name}')" for reason, name in unknown.items())
            raise UnsupportedOperatorError(
                f"the check cannot run {len(unknown)} kind(s) of operation: {named}",
                where=self.program.path,
                cure="Replace them in the trained model; on a Mac the package may still run.",
            )


def _unknown(op: Operation) -> str:
    """What of an operation no kernel covers, or ''."""
    if op.kind not in OPERATORS:
        return op.kind
    try:
        inspect.signature(OPERATORS[op.kind]).bind(**op.inputs)
    except TypeError as error:
        return f"{op.kind} ({error})"
    return ""


def _read_by(arguments: Iterable[Any]) -> Iterator[str]:
    """The names that arguments refer to."""
    for argument in arguments:
        if isinstance(argument, Reference):
            yield argument.name
        elif isinstance(argument, tuple):
            yield from _read_by(argument)


def _resolved(argument: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(argument, tuple):
        return tuple(_resolved(part, values) for part in argument)
    found = values[argument.name] if isinstance(argument, Reference) else argument
    half = isinstance(found, np.ndarray) and found.dtype == np.float16
    return found.astype(np.float32) if half else found


def _stored(value: Any, dtype: str) -> Any:
    """A value as the program stores it; float16 is kept as float32 that float16 can hold."""
    if dtype in ("string", "object") or isinstance(value, str | tuple):
        return value
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return np.asarray(value, np.float16).astype(np.float32)
    return np.asarray(value, dtype)
