# SPDX-License-Identifier: Apache-2.0
"""What a model remembers: resource variables, and the variable tensors of recurrent operators.

A resource variable is read and assigned by operators of their own. Within a run every read sees the assignment before
it, so a variable is a value like any other; what was assigned last takes the place of the state when the run ends. A
variable tensor belongs to one operator, whose kernel updates it where it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arenite.errors import UnsupportedOperatorError
from arenite.graph import Graph, Tensor
from arenite_codegen.network import State
from arenite_codegen.operators.base import Array

__all__ = ["States"]


@dataclass
class _Variable:
    name: str
    initial: Array | None = None
    first_read: Tensor | None = None
    value: int = -1
    assigned: Tensor | None = None


class States:
    """The states of a graph, while its operators are lowered in order.

    Args:
        add: Makes the value of a state of a tensor's size.
    """

    def __init__(self, graph: Graph, add: Callable[[Tensor], int]) -> None:
        self._graph = graph
        self._add = add
        self._variables: dict[str, _Variable] = {}
        self._names: dict[int, str] = {}
        self._owners: dict[int, int] = {}
        self._owned: list[State] = []

    def name_handle(self, handle: Tensor, name: str) -> None:
        """The tensor `handle` stands for the variable `name`."""
        self._names[handle.index] = name
        self._variables.setdefault(name, _Variable(name))

    def initialise(self, name: str, values: Array) -> None:
        """What the variable holds before the first run."""
        self._variables.setdefault(name, _Variable(name)).initial = values

    def read(self, handle: Tensor, tensor: Tensor) -> int | Tensor:
        """What a read into `tensor` sees: the state's value, or the tensor that this run has assigned."""
        variable = self._of(handle)
        if variable.assigned is not None:
            self._check_size(variable, variable.assigned, tensor)
            return variable.assigned
        if variable.first_read is None:
            variable.first_read, variable.value = tensor, self._add(tensor)
        self._check_size(variable, variable.first_read, tensor)
        return variable.value

    def assign(self, handle: Tensor, tensor: Tensor) -> None:
        """From here on the variable is this tensor."""
        variable = self._of(handle)
        if variable.first_read is not None:
            self._check_size(variable, variable.first_read, tensor)
        variable.assigned = tensor

    def owned(self, tensor: Tensor, operator: int) -> int:
        """The value of a variable tensor that one operator reads and updates.

        Raises:
            UnsupportedOperatorError: Another operator has it too.
        """
        if self._owners.setdefault(tensor.index, operator) != operator:
            raise self._refusal(f"{tensor} is the state of two operators, {self._owners[tensor.index]} and {operator}")
        value = self._add(tensor)
        fill = tensor.quantisation.zero_point if tensor.dtype == "int8" and tensor.quantisation else 0
        initial = np.full(tensor.bytes, fill, np.int8)
        self._owned.append(State(tensor.name, value, None, initial))
        return value

    def finished(self, keep: Callable[[int], None], value_of: Callable[[int], int]) -> list[State]:
        """All states that some operator reads.

        Args:
            keep: Lets the value of a tensor, by its index, last to the end of the run.
            value_of: The value that lasts so.
        """
        found = []
        for variable in self._variables.values():
            if variable.first_read is None:
                continue
            follower = None
            if variable.assigned is not None and value_of(variable.assigned.index) != variable.value:
                keep(variable.assigned.index)
                follower = value_of(variable.assigned.index)
            found.append(State(variable.name, variable.value, follower, self._initial(variable)))
        return found + self._owned

    def _initial(self, variable: _Variable) -> Array:
        tensor = variable.first_read
        assert tensor is not None
        if variable.initial is None:
            fill = tensor.quantisation.zero_point if tensor.dtype == "int8" and tensor.quantisation else 0
            return np.full(tensor.bytes, fill, np.int8)
        if variable.initial.nbytes != tensor.bytes:
            raise self._refusal(f"variable '{variable.name}' starts with {variable.initial.nbytes} bytes, not {tensor}")
        return np.frombuffer(variable.initial.tobytes(), np.int8)

    def _of(self, handle: Tensor) -> _Variable:
        if handle.index not in self._names:
            raise self._refusal(f"{handle} is no variable that a VAR_HANDLE names")
        return self._variables[self._names[handle.index]]

    def _check_size(self, variable: _Variable, one: Tensor, other: Tensor) -> None:
        if one.bytes != other.bytes or one.dtype != other.dtype:
            raise self._refusal(f"variable '{variable.name}' is {one} in one place and {other} in another")

    def _refusal(self, what: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(what, where=self._graph.path, cure="Convert the model again.")
