# SPDX-License-Identifier: Apache-2.0
"""Degrade instead of failing: another model, a smaller input, or fewer frames; every decision is counted.

A `Pipeline` and a `MultiStream` take one of these in place of a session.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from arenite.errors import UsageError
from arenite.labels import Label
from arenite.preprocess import Preprocessor
from arenite.session import Session

__all__ = ["AdaptiveSize", "Cascade", "Chooser", "FrameSkipper", "as_chooser"]

# AdaptiveSize decides on the median of so many frames, and measures afresh after each change.
_WINDOW = 8
# A larger input is tried when it is expected to need no more than this part of the budget.
_ROOM = 0.85
# Every so often a size that was too slow is tried again: the machine may have cooled down.
_FORGET_FRAMES = 300


class Chooser:
    """Which session answers a frame. This one has only one.

    Args:
        sessions: Those that it chooses from.

    Attributes:
        decisions: How often what was decided.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        if not sessions:
            raise UsageError("there is no session to choose", cure="Give at least one open session.")
        self.sessions = tuple(sessions)
        self.decisions: Counter[str] = Counter()

    def pick(self) -> Session:
        """The session of the next frame. May be asked in another thread than runs it, one frame ahead."""
        return self.sessions[0]

    def decoder(self, session: Session) -> Preprocessor:
        """What decodes a frame for this session, and for one that may have to look again."""
        return session.preprocessor

    def second(self, answer: Any) -> Session | None:
        """The session that looks again because of this answer; None takes the answer."""
        return None

    def learn(self, session: Session, cost_ms: float) -> None:
        """What a frame cost with this session."""


class Cascade(Chooser):
    """A small model first; a second one looks at the same frame when the first is unsure.

    Args:
        first: Answers every frame.
        second: Answers again; its answer counts then.
        unsure: Below this score of its best label the first is unsure, as it is without any label; or a function of the
            answer that says so.

    Raises:
        UsageError: One of them turns pictures by their EXIF tag and the other does not, or a score outside 0..1.
    """

    def __init__(self, first: Session, second: Session, *, unsure: float | Callable[[Any], bool] = 0.6) -> None:
        super().__init__((first, second))
        if not callable(unsure) and not 0 <= unsure <= 1:
            raise UsageError(f"a score of {unsure!r} is no limit", cure="Give a number from 0 to 1, or a function.")
        self._unsure = unsure
        both = (first.preprocessor, second.preprocessor)
        if len({how.spec.picture.orientation for how in both if how.spec.picture}) > 1:
            raise UsageError(
                "the models of a cascade must agree on the orientation of pictures",
                cure="Give both contracts the same `orientation`.",
            )
        # One decoded image serves both: in full if either is exact, else at the size of the larger.
        self._decoder = max(both, key=_richness)

    def decoder(self, session: Session) -> Preprocessor:
        """One that decodes enough for both."""
        return self._decoder

    def second(self, answer: Any) -> Session | None:
        """The second model when the first is unsure."""
        unsure = self._unsure(answer) if callable(self._unsure) else _best_score(answer) < self._unsure
        self.decisions["second model" if unsure else "first model"] += 1
        return self.sessions[1] if unsure else None


def _richness(how: Preprocessor) -> tuple[bool, bool, int]:
    colour = how.spec.picture is not None and how.spec.picture.colour != "GREY"
    return how.mode == "exact", colour, how.size[0] * how.size[1]


def _best_score(answer: Any) -> float:
    if not isinstance(answer, tuple) or not all(isinstance(label, Label) for label in answer):
        raise UsageError(
            f"a cascade cannot tell from a {type(answer).__name__} whether the model is unsure",
            cure="Give `unsure` as a function of the answer.",
        )
    return max((label.score for label in answer), default=0.0)


class AdaptiveSize(Chooser):
    """The largest input that meets the budget: the same task, trained or converted for several input sizes.

    When the median cost of the last eight frames is over the budget, the next smaller model is taken. When a larger one
    is expected to fit with room to spare, by what it cost before or else by the number of its input's pixels, it is
    taken; what a larger one cost is forgotten after 300 frames.

    Args:
        sessions: In any order; the one with the most input pixels starts.
        budget_ms: What a frame may cost: all of the pipeline's own stages one after the other, or of the slower lane of
            an overlapped one.
    """

    def __init__(self, sessions: Sequence[Session], *, budget_ms: float) -> None:
        super().__init__(sorted(sessions, key=_pixels, reverse=True))
        if not budget_ms > 0:
            raise UsageError(f"a budget of {budget_ms!r} ms", cure="Give a number above 0.")
        self._budget_ms = budget_ms
        self._place = 0
        self._recent: deque[float] = deque(maxlen=_WINDOW)
        self._known_ms: dict[int, tuple[int, float]] = {}
        self._frames = 0

    def pick(self) -> Session:
        """The session of the size that is chosen now."""
        return self.sessions[self._place]

    def learn(self, session: Session, cost_ms: float) -> None:
        """Counts the frame, and changes the size when it should."""
        width, height = session.preprocessor.size
        self.decisions[f"{width}×{height}"] += 1
        self._frames += 1
        if session is not self.sessions[self._place]:
            return  # begun before the change
        self._recent.append(cost_ms)
        if len(self._recent) == _WINDOW:
            self._decide(median(self._recent))

    def _decide(self, cost_ms: float) -> None:
        self._known_ms[self._place] = (self._frames, cost_ms)
        if cost_ms > self._budget_ms and self._place + 1 < len(self.sessions):
            self._move(1, "smaller input")
        elif self._place > 0 and self._expected_ms(self._place - 1, cost_ms) <= _ROOM * self._budget_ms:
            self._move(-1, "larger input")

    def _expected_ms(self, place: int, cost_ms: float) -> float:
        frame, known_ms = self._known_ms.get(place, (0, 0.0))
        if known_ms and self._frames - frame < _FORGET_FRAMES:
            return known_ms
        return cost_ms * _pixels(self.sessions[place]) / _pixels(self.sessions[self._place])

    def _move(self, step: int, name: str) -> None:
        self._place += step
        self._recent.clear()
        self.decisions[name] += 1


def _pixels(session: Session) -> int:
    width, height = session.preprocessor.size
    return width * height


class FrameSkipper:
    """Lets as many frames through as can be answered when one is due every `every_ms`.

    A frame that costs more runs up a debt, and a frame that is skipped pays `every_ms` of it back: at a cost of 2.5
    times the interval three of five frames are skipped. A frame whose answer is there early earns nothing for later.

    Args:
        every_ms: Time from frame to frame.
    """

    def __init__(self, every_ms: float) -> None:
        if not every_ms > 0:
            raise UsageError(f"a frame every {every_ms!r} ms", cure="Give a number above 0.")
        self._every_ms = every_ms
        self._debt_ms = 0.0
        self._lock = threading.Lock()  # one thread feeds, another answers

    def skip(self) -> bool:
        """Whether the next frame is to be skipped."""
        with self._lock:
            if self._debt_ms < self._every_ms:
                return False
            self._debt_ms -= self._every_ms
            return True

    def spent(self, cost_ms: float) -> None:
        """A frame was answered and cost this."""
        with self._lock:
            self._debt_ms = max(0.0, self._debt_ms + cost_ms - self._every_ms)


def as_chooser(model: Session | Chooser) -> Chooser:
    """A chooser as it is; a session as the only one.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(model, Session):
        return Chooser((model,))
    if isinstance(model, Chooser):
        return model
    raise UsageError(
        f"a {type(model).__name__} is no open model", cure="Give arenite.open(...), a Cascade or an AdaptiveSize."
    )
