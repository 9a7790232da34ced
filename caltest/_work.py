"""How long work will take, and the sentence that says so before it starts.

What is to be done is counted in elementary operations, from the shapes of the data alone. What one of
each takes stands in `SECONDS`, and nowhere else.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from caltest._parallel import Workers
from caltest.exceptions import LongWorkWarning, Phrase
from caltest.text.numbers import counted, duration

Operation: TypeAlias = Literal["coordinate", "pair", "feature", "label", "fit"]
#: How often each is done.
Work: TypeAlias = Mapping[Operation, float]

#: Seconds that one operation takes one core, as ``python -m validation.benchmarks`` measures them with
#: ten classes: right to a factor of two or three, as an announcement must be.
SECONDS: dict[Operation, float] = {
    "coordinate": 2e-10,  # of the distance of two rows, its share of the kernel included
    "pair": 1e-10,  # of rows, in the sum of one label vector
    "feature": 1e-10,  # of a row, added to the sum of a drawn label
    "label": 1e-8,  # drawn, and looked up in a table
    "fit": 3e-7,  # of a line to drawn labels, a row
}
LONG = 60.0
"""Seconds from which on work is announced."""


def together(parts: Iterable[Work], times: float = 1.0) -> Work:
    """Add up the work of several parts, and take it so often."""
    total: Counter[Operation] = Counter()
    for part in parts:
        total.update({kind: times * count for kind, count in part.items()})
    return total


def announce(what: str, work: Work, workers: Workers, faster: Phrase) -> None:
    """Warn of work that will take more than a minute; ``faster`` says what to do instead."""
    alone = sum(SECONDS[kind] * count for kind, count in work.items())
    if alone < LONG or alone / (hands := workers.hands) < LONG:
        return
    facts = {
        "what": what,
        "time": duration(alone / hands),
        "workers": counted(hands, "worker"),
        "faster": faster,
    }
    text = Phrase("{what} takes about {time} on {workers}; {faster}.", facts)
    warnings.warn(LongWorkWarning(text), stacklevel=_calls_inside() + 1)


def _calls_inside() -> int:
    """Return how many frames lie between a caller and the line outside of the package."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "caltest":
        frame, depth = frame.f_back, depth + 1
    return depth - 1
