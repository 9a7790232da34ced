"""The report's pictures as SVG: plain numbers, which templates write out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

from caltest._numbers import unit
from caltest.auditing.views import Part, View
from caltest.pictures import BAD, Axis, Mark, Picture
from caltest.text.sizes import RARE


class Size(NamedTuple):
    """Sizes of a picture: the whole, the plot within it, and the bars below."""

    name: str
    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    floor: float  # baseline of the bars

    def x(self, place: float) -> float:
        """Return the coordinate of a position from 0 to 1."""
        return round(self.left + (self.right - self.left) * place, 1)

    def y(self, place: float) -> float:
        """Return the height of a position from 0 to 1."""
        return round(self.bottom - (self.bottom - self.top) * place, 1)


#: For the first screen: with room, and on a phone or on paper.
FIRST = (Size("wide", 540, 332, 46, 520, 22, 244, 296), Size("narrow", 342, 306, 46, 322, 22, 218, 270))
SMALL = Size("small", 342, 306, 50, 322, 22, 258, 264)

CHANCE = Size("chance", 342, 220, 16, 326, 34, 180, 180)

_BARS = 46.0  # height of the tallest bar
_HALF_LETTER = 3.6  # half the width of a digit in labels
_DIAMOND = "l5.4 5.4l-5.4 5.4l-5.4-5.4Z"


@dataclass
class Drawing:
    """An SVG picture: a description for those who cannot see it, and its elements, lowest first."""

    size: Size
    label: str
    marks: list[SimpleNamespace] = field(default_factory=list)

    def path(self, kind: str, d: str) -> None:
        """Add a line or a shape."""
        self.marks.append(SimpleNamespace(tag="path", kind=kind, d=d))

    def box(self, kind: str, left: float, top: float, right: float, bottom: float) -> None:
        """Add a rectangle."""
        self.path(kind, f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}Z")

    def text(self, x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> None:
        """Add a line of text."""
        where = {"x": round(x, 1), "y": round(y, 1), "anchor": anchor}
        self.marks.append(SimpleNamespace(tag="text", kind=kind, text=text, **where))

    def draw(self, picture: Picture) -> Drawing:
        """Add the marks of a picture with its axes, leaving room for their labels."""
        marks, x, y, of_x, of_y = picture
        if not any(mark.kind == "rows" for mark in marks):
            self.size = self.size._replace(bottom=self.size.floor)
        wide, last = max((len(label) for _, label in y.marks), default=0), len(x.marks[-1][1])
        left = max(self.size.left, round(2 * _HALF_LETTER * wide + 8, 1))
        right = min(self.size.right, round(self.size.width - 3 - _HALF_LETTER * last, 1))
        self.size = self.size._replace(left=left, right=right)
        for mark in marks:
            if mark.kind == "grid":
                self._grid(x, y, of_x, of_y)
            elif mark.kind == "rows":
                self._rows(x, mark)
            elif mark.kind == "text":
                across, up = mark.end
                at, half = self.size.x(mark.x) + across, _HALF_LETTER * len(mark.label)
                if not across:  # centred, but not cut off
                    at = min(max(at, half), self.size.width - half)
                anchor = "end" if across < 0 else "start" if across else "middle"
                self.text(at, self.size.y(mark.y) + up, mark.label, anchor, mark.style)
            else:
                across = [self.size.x(x.at(value)) for value in mark.x]
                of, place = (x, self.size.x) if mark.kind == "bars" else (y, self.size.y)
                ends = [place(of.at(value)) for value in mark.end]
                self._shapes(mark, across, [self.size.y(y.at(value)) for value in mark.y], ends)
        return self

    def _shapes(self, mark: Mark, x: list[float], y: list[float], end: list[float]) -> None:
        if mark.kind == "line":
            self.path(mark.style, "M" + "L".join(f"{a} {b}" for a, b in zip(x, y, strict=True)))
        elif mark.kind in ("area", "band"):
            corners = [*zip(x, end, strict=True), *zip(x[::-1], y[::-1], strict=True)]
            self.path(mark.style, f"M{'L'.join(f'{a} {b}' for a, b in corners)}Z")
        elif mark.kind == "columns":
            for (a, b), top in zip(pairwise(x), y, strict=True):
                if top < self.size.bottom:
                    self.box(mark.style, a, top, b, self.size.bottom)
        if mark.kind in ("intervals", "band"):
            kind = "ends" if mark.kind == "band" else f"int {mark.style}"
            for a, low, high in zip(x, y, end, strict=True):
                self.path(kind, f"M{a} {low}V{high}")
        elif mark.kind == "bars":
            for a, b, high in zip(x, y, end, strict=True):
                self.path(f"int {mark.style}", f"M{a} {b}H{high}")
        elif mark.kind == "points":
            for a, b in zip(x, y, strict=True):
                if mark.style == BAD:
                    self.path("dot bad", f"M{a:.1f} {b - 5.4:.1f}{_DIAMOND}")
                else:
                    self.marks.append(SimpleNamespace(tag="circle", kind="dot ok", x=a, y=b))

    def _grid(self, x: Axis, y: Axis, of_x: str, of_y: str) -> None:
        """Add the grid, its labels and the axis labels."""
        size = self.size
        for value, label in y.marks:
            at = size.y(y.at(value))
            self.path("grid", f"M{size.left} {at}H{size.right}")
            self.text(size.left - 6, at + 4, label, "end")
        self.text(0.0, 11.0, of_y, kind="lab")
        for value, label in x.thinned(7 if size.width > 400 else 6).marks:
            at = size.x(x.at(value))
            self.path("grid", f"M{at} {size.top}V{size.bottom}")
            self.text(at, size.floor + 18, label, "middle")
        self.text((size.left + size.right) / 2, size.floor + 33, of_x, "middle", "lab")

    def _rows(self, x: Axis, mark: Mark) -> None:
        """Add bars of rows beneath the plot; their areas are shares of the rows."""
        size = self.size
        ends = pairwise(size.x(x.at(edge)) for edge in mark.x)
        wide = [(a, b, count) for (a, b), count in zip(ends, mark.y, strict=True) if b > a]
        most = max((count / (b - a) for a, b, count in wide), default=0.0)
        for a, b, count in wide:
            if count:
                high = max(_BARS * count / (b - a) / most, 0.4)
                gap = 0.8 if b - a > 3.0 else 0.0
                self.box(mark.style, a + gap / 2, size.floor - high, b - gap / 2, size.floor)
        self.path("axis", f"M{size.left} {size.floor}H{size.right}")
        if mark.label:
            self.text(size.left - 6, size.floor - 8, mark.label, "end", "lab")


def drawn(picture: Picture, label: str, sizes: Sequence[Size] = FIRST) -> tuple[Drawing, ...]:
    """Draw a picture in each size."""
    return tuple(Drawing(size, label).draw(picture) for size in sizes)


def parts_of(view: View) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return the finest parts of a view, and its halves if they are even."""
    finest = max((part.of for part in view.parts), default=0)
    parts = tuple(part for part in view.parts if part.of == finest)
    halves = tuple(part for part in view.parts if part.of == 2)
    uneven = any(half.is_tied(view.rows) or half.start == half.end for half in halves)
    return parts, () if finest == 2 or len(halves) != 2 or uneven else halves


def is_rare(parts: Sequence[Part], view: View) -> bool:
    """Whether a view is drawn on logarithmic axes: for rare events, or for outcomes above 0."""
    below = any(end <= 0.0 for part in parts for end in (part.start, part.observed))
    if below if unit().of_outcomes else max(view.predicted or 0.0, view.observed or 0.0) >= RARE:
        return False
    predicted = [part.predicted for part in parts if part.predicted > 0.0]
    return len(predicted) > 1 and max(predicted) >= 10.0 * min(predicted)
