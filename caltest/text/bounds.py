"""Bounds and certificates in plain language."""

from __future__ import annotations

import math

from caltest._visible import shortened, visible
from caltest.bounds.certificates import CHANCE, SHARE, Certificate
from caltest.bounds.lower import MiscalibrationBounds, SideBound
from caltest.text.numbers import percents, points
from caltest.text.pages import written

_NAMED = 5  # places of a side


def summary(b: MiscalibrationBounds) -> str:
    """Return what was looked at, what is proved of either side, where, and what is not proved."""
    table = [f"  {'':<24}  {'too high by':>18}  {'too low by':>18}"]
    for view in b.views:
        name = shortened(visible(view.event.removeprefix("the label is ")), 24)
        over, under = (
            (points(side.bound) if side.bound > 0.0 else "unknown amount")
            if side.found
            else "not shown"
            for side in view.sides
        )
        table.append(f"  {name:<24}  {over:>18}  {under:>18}")
    largest = [(side, view.event) for view in b.views for side in view.sides if side.found]
    largest.sort(key=lambda each: -each[0].bound)
    found = [
        f"{f'at least {points(bound)} ' if bound > 0.0 else ''}too {way}"
        for way, bound, sides in (
            ("high", b.over, [view.over for view in b.views]),
            ("low", b.under, [view.under for view in b.views]),
        )
        if any(side.found for side in sides)
    ]
    placed = any(side.places for view in b.views for side in view.sides)
    facts = {"placed": placed, "table": table, "largest": largest, "found": found, "places": _places}
    return written("bounds", b.warnings, b=b, **facts)


def _places(side: SideBound) -> list[str]:
    """Lay out the named places as a table, from low to high probability."""
    named = [place for place in side.places if place.named]
    lines = [f"  {'from':>9}  {'to':>9}  {'rows':>8}  {'predicted':>9}  {'observed':>8}  some wrong by"]
    for place in sorted(named[:_NAMED], key=lambda place: place.low):
        low, high = percents(place.low, place.high, 1)
        predicted, observed = percents(place.predicted, place.observed, 1)
        least = f"> {points(place.somewhere_by)}" if place.somewhere_by > 0.0 else "not shown"
        lines.append(f"  {low:>9}  {high:>9}  {place.rows:>8,}  {predicted:>9}  {observed:>8}  {least}")
    if len(named) > _NAMED:
        lines.append(f"  and {len(named) - _NAMED} more, in where()")
    return lines


# ------------------------------------------------------------------ at most


_NAMED_RANGES = 6


def certificate(c: Certificate) -> str:
    """Return what is certified, what is proved wrong, and what more rows would do."""
    largest = sorted(sorted(c.miscalibrated, key=lambda each: -each.at_least)[:_NAMED_RANGES])
    return written(
        "certificate",
        c.warnings,
        c=c,
        largest=largest,
        SHARE=SHARE,
        CHANCE=CHANCE,
        at_most=at_most,
        at_least=at_least,
        scores_between=scores_between,
        about=_about,
    )


def _about(rows: int) -> int:
    """Round up to two digits: a plan is no better."""
    step = int(10 ** max(0, len(str(rows)) - 2))
    return -(-rows // step) * step


def scores_between(low: float, high: float) -> str:
    """Name a range of scores."""
    for digits in range(4, 18):
        first, last = f"{low:.{digits}g}", f"{high:.{digits}g}"
        certain = [text for value, text in ((low, first), (high, last)) if value < 1.0 and text == "1"]
        if not certain and (first != last or low == high):
            break
    return f"of {first}" if first == last else f"{first} to {last}"


def at_most(distance: float) -> str:
    """Write a distance in points, rounded up."""
    scale = 10 if distance >= 0.01 else 100
    return f"{math.ceil(100.0 * distance * scale * (1.0 - 1e-9)) / scale:g}"


def at_least(distance: float) -> str:
    """Write a distance in points, rounded down."""
    scale = 10 if distance >= 0.01 else 100
    return f"{math.floor(100.0 * distance * scale * (1.0 + 1e-9)) / scale:g}"
