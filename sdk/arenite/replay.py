# SPDX-License-Identifier: Apache-2.0
"""What a pipeline would have done with one stage free: the measured frames played again without it.

In a sequence the gain is Amdahl's. In an overlapped pipeline two lanes run side by side, and the slower one sets the
pace: making a stage of the faster lane free gains nothing. The replay covers both, and the waiting between the lanes:

    feeding lane    source, read, decode, resize      one frame ahead; it waits until the model takes it
    invoking lane   invoke, post, second, app

It supposes that a stage takes as long as it did when another one is gone. Stages that compete for one processor core
or for memory get faster then, so the real gain can be larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

__all__ = ["FEEDING", "INVOKING", "Lap", "Replayed", "replay"]

FEEDING = ("source", "read", "decode", "resize")
INVOKING = ("invoke", "post", "second", "app")


@dataclass
class Lap:
    """Wall time of each stage of one frame, in milliseconds.

    Attributes:
        source_ms: Until the source gave the frame.
        read_ms: Reading its file.
        decode_ms: To an image.
        resize_ms: Resize, normalise, quantise.
        wait_ms: Ready, but the model was still busy with the frame before.
        invoke_ms: The model.
        post_ms: Its output to an answer.
        second_ms: A second model, when the first was unsure.
        app_ms: What the app did with the answer before it asked for the next one.
    """

    source_ms: float = 0.0
    read_ms: float = 0.0
    decode_ms: float = 0.0
    resize_ms: float = 0.0
    wait_ms: float = 0.0
    invoke_ms: float = 0.0
    post_ms: float = 0.0
    second_ms: float = 0.0
    app_ms: float = 0.0

    @property
    def latency_ms(self) -> float:
        """From the moment the source gave the frame to its answer."""
        times_ms: list[float] = [getattr(self, f.name) for f in fields(self)]
        return sum(times_ms) - self.source_ms - self.app_ms


@dataclass(frozen=True)
class Replayed:
    """A replay.

    Attributes:
        elapsed_ms: From the first frame's start to the end of the last.
        latencies_ms: Of each frame.
    """

    elapsed_ms: float
    latencies_ms: tuple[float, ...]


def replay(laps: Sequence[Lap], *, overlap: bool, free: str | None = None, period_ms: float | None = None) -> Replayed:
    """Play measured frames again.

    Args:
        laps: The frames.
        overlap: In two lanes, or one stage after the other.
        free: The stage that takes no time now; None leaves all as they were.
        period_ms: Of a source that gives a frame so often and not sooner, as a camera does; then its measured waiting
            is no work. None takes the source's measured times.
    """
    given_ms = taken_ms = done_ms = 0.0
    latencies = []
    for number, lap in enumerate(laps):
        start_ms = taken_ms if overlap else done_ms
        before_ms, given_ms = given_ms, start_ms
        if free != "source":
            paced = period_ms is not None
            given_ms += 0.0 if paced else lap.source_ms
            if period_ms is not None and number > 0:
                given_ms = max(given_ms, before_ms + period_ms)
        ready_ms = given_ms + _spent(lap, FEEDING[1:], free)
        taken_ms = max(ready_ms, done_ms)
        answered_ms = taken_ms + _spent(lap, INVOKING[:-1], free)
        done_ms = answered_ms + _spent(lap, INVOKING[-1:], free)
        latencies.append(answered_ms - given_ms)
    return Replayed(done_ms, tuple(latencies))


def _spent(lap: Lap, stages: Sequence[str], free: str | None) -> float:
    return sum(float(getattr(lap, f"{stage}_ms")) for stage in stages if stage != free)
