"""Axes of the report's pictures: where a value is, and which marks are labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from caltest.text.numbers import probability_axis

Scale: TypeAlias = Literal["linear", "log", "logit"]

_ONE_TWO_FIVE = tuple(
    round(lead * 10.0**power, 9) for power in range(-6, 1) for lead in (1.0, 2.0, 5.0)
)
_STRETCHED = (
    0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999,
)  # fmt: skip
_RATIOS = (
    0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0,
    10.0, 20.0, 50.0, 100.0,
)  # fmt: skip
_STEPS = tuple(lead * 10.0**power for power in range(-4, 3) for lead in (1.0, 2.0, 5.0))


def _unfold(value: float, scale: Scale) -> float:
    if scale == "linear":
        return value
    if scale == "log":
        return math.log(max(value, 1e-12))
    inner = min(max(value, 1e-9), 1.0 - 1e-9)
    return math.log(inner / (1.0 - inner))


@dataclass(frozen=True)
class Axis:
    """From one value to another, on a scale; marks with labels in between."""

    low: float
    high: float
    marks: tuple[tuple[float, str], ...]
    scale: Scale = "linear"

    def at(self, value: float) -> float:
        """Return the place of a value, from 0 to 1; what lies beyond is at the end."""
        low, high = _unfold(self.low, self.scale), _unfold(self.high, self.scale)
        return min(max((_unfold(value, self.scale) - low) / (high - low), 0.0), 1.0)

    def thinned(self, most: int) -> Axis:
        """Return the axis with no more labels than there is room for; the grid stays."""
        step = math.ceil(len(self.marks) / most)
        start = next((k % step for k, (value, _) in enumerate(self.marks) if value == 0.0), 0)
        kept = tuple(
            (value, label if k % step == start else "") for k, (value, label) in enumerate(self.marks)
        )
        return Axis(self.low, self.high, kept, self.scale)


def probabilities(values: Sequence[float]) -> Axis:
    """Return an axis of probabilities in percent, no longer than what is shown on it needs."""
    marks = probability_axis(min(values), max(values), most=6)
    digits = max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-6) - 2)
    labels = tuple((mark, f"{100.0 * mark:.{digits}f}%") for mark in marks)
    return Axis(marks[0], marks[-1], labels)


def per_thousand(values: Sequence[float]) -> Axis:
    """Return a logarithmic axis of small probabilities, as events per 1,000 rows."""
    positive = [value for value in values if value > 0.0]
    low = max((mark for mark in _ONE_TWO_FIVE if mark <= min(positive)), default=_ONE_TWO_FIVE[0])
    high = min((mark for mark in _ONE_TWO_FIVE if mark >= max(positive)), default=1.0)
    marks = tuple((mark, f"{1000.0 * mark:,.6g}") for mark in _ONE_TWO_FIVE if low <= mark <= high)
    return Axis(low, high, marks, "log")


def stretched(values: Sequence[float]) -> Axis:
    """Return an axis that is stretched towards 0% and 100%."""
    low = max((mark for mark in _STRETCHED if mark <= min(values)), default=_STRETCHED[0])
    high = min((mark for mark in _STRETCHED if mark >= max(values)), default=_STRETCHED[-1])
    marks = tuple((mark, f"{100.0 * mark:.6g}%") for mark in _STRETCHED if low <= mark <= high)
    return Axis(low, high, marks, "logit")


def points(low: float, high: float, most: int = 7) -> Axis:
    """Return an axis of errors in percentage points, with 0 on it."""
    low, high = min(low, 0.0), max(high, 0.0)
    span = max(high - low, 1e-6)
    step = next((each for each in _STEPS if span * 100.0 / each <= most), _STEPS[-1])
    first, last = math.ceil(100.0 * low / step - 1e-9), math.floor(100.0 * high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    marks = tuple(
        (k * step / 100.0, f"{k * step:+.{digits}f}".replace("-", "−") if k else "0")
        for k in range(first, last + 1)
    )
    room = 0.035 * span
    return Axis(low - room, high + room, marks)


def ratios(low: float, high: float, most: int = 6) -> Axis:
    """Return a logarithmic axis of ratios, with 1 on it."""
    low, high = max(min(low, 0.95), 0.01) / 1.06, min(max(high, 1.05), 150.0) * 1.06
    inside = [mark for mark in _RATIOS if low <= mark <= high]
    room = math.log(high / low) / (most + 1)
    kept = [1.0]
    for mark in sorted(inside, key=lambda each: abs(math.log(each))):
        if all(abs(math.log(mark / other)) >= room for other in kept):
            kept.append(mark)
    return Axis(low, high, tuple((mark, f"{mark:g}×") for mark in sorted(kept)), "log")
