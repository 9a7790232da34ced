"""Axes of probabilities that show where the predictions are: zoomed, logarithmic near 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.text.numbers import probabilities, probability_axis

Array: TypeAlias = NDArray[np.float64]
Limits: TypeAlias = tuple[float, float]

_RARE = 0.1  # predictions are logarithmic if all are below this, or above 1 less this, …
_DECADE = 10.0  # … and differ by more than this factor
_NEARLY_ONE = 0.9999  # a mark beyond it has too many nines
_LEAST = 1e-16  # a probability below it has no place of its own
_MARGIN, _LEAST_SPAN = 0.04, 1e-6  # of the span; in the units of the axis
_SHOWN_ANYWAY = 1.5  # times the span that is needed
_LEAST_SHARE = 1 / 3  # of an axis that both directions share


@dataclass(frozen=True)
class Scale:
    """How an axis of probabilities runs; ``forward`` gives places along it."""

    words: str  #: What a label says of it.
    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]

    def limits(self, values: Array) -> Limits:
        """Return the ends of an axis with room around values, of which those without place are none."""
        places = self.forward(values)
        inside = values[np.abs(places) < -np.log10(_LEAST)]
        low, high = (float(end(self.forward(inside))) for end in (np.min, np.max))
        room = _MARGIN * (high - low) if high - low > _LEAST_SPAN else 0.05
        return float(self.inverse(low - room)), float(self.inverse(high + room))

    def span(self, ends: Limits) -> float:
        """Return how long a range of the axis is."""
        return float(self.forward(ends[1]) - self.forward(ends[0]))

    def marks(self, ends: Limits, most: int) -> list[float]:
        """Return the marks between the ends of an axis, with ``most`` spaces between them or so."""
        if self is LINEAR:
            marks = probability_axis(max(ends[0], 0.0), min(ends[1], 1.0), most)
        else:
            most -= self is NEAR_ONE  # whose marks are longer
            for leading in ((1, 2, 5), (1, 3), (1,)):
                small = sorted(k * 10.0**power for power in range(-16, 0) for k in leading)
                marks = small if self is NEAR_ZERO else [1.0 - each for each in reversed(small)]
                marks = [each for each in marks if ends[0] <= each <= ends[1]]
                if len(marks) <= most + 1:
                    break
            marks = marks[:: -(-len(marks) // (most + 1))]
        return [each for each in marks if ends[0] - 1e-12 <= each <= ends[1] + 1e-12]

    def bars(self, ends: Limits, count: int) -> Array:
        """Return the ends of so many bars that look equally wide, (count + 1,)."""
        low, high = max(ends[0], 0.0), min(ends[1], 1.0)
        edges = self.inverse(np.linspace(self.forward(low), self.forward(high), count + 1))
        edges[[0, -1]] = low, high
        return np.asarray(edges)

    def set(self, ax: Any, across: Limits, upwards: Limits, most: int) -> None:
        """Give axes these ends in both directions, and marks."""
        for axis, ends in ((ax.xaxis, across), (ax.yaxis, upwards)):
            if self is not LINEAR:
                axis._set_axes_scale("function", functions=(self.forward, self.inverse))
            marks = self.marks(ends, most)
            axis.set_ticks(marks, [_text(each) for each in marks])
        ax.set(xlim=across, ylim=upwards)


def _text(mark: float) -> str:
    return probabilities([mark])[0] if mark > _NEARLY_ONE else f"{mark:.12g}".replace("e-0", "e−")


def _log(values: Any) -> Any:
    return np.log10(np.maximum(values, _LEAST))


LINEAR = Scale("", lambda values: np.asarray(values) + 0.0, lambda places: np.asarray(places) + 0.0)
NEAR_ZERO = Scale("log scale", _log, lambda places: np.power(10.0, places))
NEAR_ONE = Scale(
    "log scale of the distance to 1",
    lambda values: -_log(1.0 - np.asarray(values)),
    lambda places: 1.0 - np.power(10.0, -np.asarray(places)),
)


def scale_of(predicted: Array) -> Scale:
    """Return the scale for predictions: logarithmic if they are near 0, or 1, by different orders.

    That is: all below 0.1, or below 0.5 and half of them below a tenth of the largest.
    """
    middle = float(np.median(predicted))
    for scale, low, half, high in (
        (NEAR_ZERO, float(predicted.min()), middle, float(predicted.max())),
        (NEAR_ONE, 1.0 - float(predicted.max()), 1.0 - middle, 1.0 - float(predicted.min())),
    ):
        near = high < _RARE or (high < 0.5 and half < _RARE * high)
        if near and high > _DECADE * low > 0.0:
            return scale
    return LINEAR


def zoomed(scale: Scale, points: Array, rest: Array, heights: Array) -> tuple[Limits, Limits]:
    """Return the ends of both axes: of points, of the rest if it is not far, and of all heights.

    Both directions have the same ends, unless the points would be a heap.
    """
    across, whole = scale.limits(points), scale.limits(np.concatenate([points, rest]))
    if scale.span(whole) <= _SHOWN_ANYWAY * scale.span(across):
        across = whole
    upwards = scale.limits(heights)
    both = min(across[0], upwards[0]), max(across[1], upwards[1])
    if scale.span(across) >= _LEAST_SHARE * scale.span(both):
        return both, both
    return across, upwards
