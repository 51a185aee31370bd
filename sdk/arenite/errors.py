# SPDX-License-Identifier: Apache-2.0
"""The one error tree of Arenite.

    AreniteError                    exit 2  usage or environment
    ├── UsageError                  exit 2  an argument is wrong
    │   └── ConcurrentUseError      exit 2  two threads use one session
    ├── ModelError                  exit 2  the model file cannot be read
    │   └── UnsupportedOperatorError  exit 2  a valid model that no kernel covers
    ├── ContractError               exit 2  the contract is missing, malformed or contradicts the model
    ├── MissingToolError            exit 2  a package or program must be installed
    ├── ToolchainError              exit 2  a compiler or linker refused
    ├── LinkError                   exit 2  the board at the other end does not answer as it should
    │   └── FlashError              exit 2  flashing failed; 1 where the answer is no: wrong chip, protected, differs
    ├── MeterError                  exit 2  an energy meter cannot measure now
    ├── FrameError                  exit 2  a stage of a pipeline failed on a frame
    ├── OutputError                 exit 2  a file or folder cannot be written
    ├── DoesNotFitError             exit 1  the answer is no: too large for the board
    └── CheckFailedError            exit 1  the answer is no: a check on the result failed
        └── MemoryDamageError       exit 1  a kernel wrote outside its memory

Every message says what happened, where (file, operator, tensor) and what to do next. What was refused but could be done
in another way is no error but a `FallbackWarning`.
"""

from __future__ import annotations

__all__ = [
    "AreniteError",
    "CheckFailedError",
    "ConcurrentUseError",
    "ContractError",
    "DoesNotFitError",
    "FallbackWarning",
    "FlashError",
    "FrameError",
    "LinkError",
    "MemoryDamageError",
    "MeterError",
    "MissingToolError",
    "ModelError",
    "OutputError",
    "ToolchainError",
    "UnsupportedOperatorError",
    "UsageError",
]


class AreniteError(Exception):
    """Root of every error that Arenite raises on purpose.

    Args:
        what: What is wrong, one sentence without a full stop.
        where: File, operator or tensor concerned.
        cure: What the user can do next.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, cure: str | None = None) -> None:
        self.what = what
        self.where = where
        self.cure = cure
        super().__init__(self._message())

    def _message(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}. {self.cure}" if self.cure else head


class UsageError(AreniteError):
    """An argument is wrong."""


class ConcurrentUseError(UsageError):
    """Two threads use one session."""


class ModelError(AreniteError):
    """The model file cannot be read."""


class UnsupportedOperatorError(ModelError):
    """A valid model holds something that no kernel covers."""


class ContractError(AreniteError):
    """The contract is missing, malformed or contradicts the model."""


class MissingToolError(AreniteError):
    """A package or program must be installed first."""


class ToolchainError(AreniteError):
    """A compiler or linker refused its input."""


class LinkError(AreniteError):
    """The board at the other end of the cable does not answer as it should."""


class FlashError(LinkError):
    """A board could not be flashed. The message says what its flash holds now.

    Args:
        stage: port, sync, identity, size, protection, write, verify or start.
        state: What the flash holds: an `arenite.device.flashing.FlashState`.
    """

    _NO = frozenset({"identity", "size", "protection", "verify"})

    def __init__(
        self, what: str, *, stage: str, state: object, where: str | None = None, cure: str | None = None
    ) -> None:
        self.stage, self.state = stage, state
        self.exit_code = 1 if stage in self._NO else 2
        super().__init__(f"{what}; {state}", where=where, cure=cure)


class MeterError(AreniteError):
    """An energy meter is missing, may not be read or cannot measure now."""


class FrameError(AreniteError):
    """A stage of a pipeline failed on a frame, or its source did.

    Args:
        stage: source, read, decode, resize, invoke, post or second.
        frame: The frame's name.
    """

    def __init__(self, what: str, *, stage: str, frame: str, cure: str | None = None) -> None:
        self.stage, self.frame = stage, frame
        super().__init__(f"{stage} failed: {what}", where=frame, cure=cure)


class OutputError(AreniteError):
    """A file or folder cannot be written."""


class DoesNotFitError(AreniteError):
    """The model is too large for the board: the answer is no."""

    exit_code = 1


class CheckFailedError(AreniteError):
    """A check on the result failed: the answer is no.

    Attributes:
        report: What is known of the result all the same, or None.
    """

    exit_code = 1
    report: object | None = None


class MemoryDamageError(CheckFailedError):
    """A kernel wrote past the end of a block of the arena: a guard word of a validation build was damaged.

    Args:
        guard: Which guard word of the model.
        layer: Which layer of the model ran.
        step: After which step of the row schedule the damage was seen.
    """

    def __init__(
        self, what: str, *, guard: int, layer: int, step: int, where: str | None = None, cure: str | None = None
    ) -> None:
        self.guard, self.layer, self.step = guard, layer, step
        super().__init__(what, where=where, cure=cure)


class FallbackWarning(UserWarning):
    """Something that was asked for was refused, and something slower was done instead."""
