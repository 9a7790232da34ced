"""Bounds in plain language."""

from __future__ import annotations

from caltest._visible import CLAUSE, shortened, shown, visible
from caltest.bounds.result import MiscalibrationBounds, Place, SideBound, ViewBounds
from caltest.text.numbers import confidence_text, page, paragraph, percents, points, table
from caltest.text.vocabulary import TENDS, TOO

_NAMED = 5  # places of a side
_CLASSES_DESCRIBED = 3  # of many, those with the largest bounds


def summary(bounds: MiscalibrationBounds) -> str:
    """Return what was looked at, what is proved of either side, where, and what is not proved."""
    b = bounds
    about = _about(b.views[0]) if len(b.views) == 1 else f"each of the {len(b.views)} classes by itself"
    both = "both bounds" if len(b.views) == 1 else f"all {2 * len(b.views)} bounds"
    rows = [
        ("looked at", f"{b.n_samples:,} predictions of {b.n_classes} classes: {about}"),
        ("confidence", f"{confidence_text(b.confidence)} for {both} together"),
        ("found by", f"a scan of all stretches of the probability, {b.n_resamples:,} label draws"),
    ]
    lines = ["Miscalibration, at least", *table(rows), ""]
    lines += _one(b) if len(b.views) == 1 else _many(b)
    lines += ["", *paragraph(_caution(b))]
    for warning in b.warnings:
        lines += ["", *paragraph(f"Note: {warning}")]
    return page(lines)


def sentence(side: SideBound, confidence: float) -> str:
    """Return what is proved of one side, in one or two sentences."""
    sure = f"With {confidence_text(confidence)} confidence"
    if not side.found:
        return (
            f"The scan does not show that the model claims {TOO[side.side]} anywhere "
            f"(p = {side.pvalue:.2g})."
        )
    if side.bound == 0.0:
        text = f"{sure}, the model claims {TOO[side.side]} somewhere; by how much is not shown."
    else:
        text = f"{sure}, the model claims at least {points(side.bound)} {TOO[side.side]} somewhere."
    if side.places:
        text += f" {_place(side, side.places[0])}."
    return text


def _about(view: ViewBounds) -> str:
    return f"the probability that {shown(view.event, CLAUSE)}"


def _place(side: SideBound, place: Place) -> str:
    low, high = percents(place.low, place.high, 1)
    where = f"between {low} and {high}" if place.low < place.high else f"at {low}"
    says, share = percents(place.says, place.share, 1)
    text = f"in {place.rows:,} predictions it says {says} on average, and {share} came true"
    if place.somewhere_by == 0.0:
        return f"It shows most {where}: {text}"
    amount = f"somewhere there by at least {points(place.somewhere_by)} {TOO[side.side]}"
    return f"Proved worst {where}, {amount}: {text}"


def _one(b: MiscalibrationBounds) -> list[str]:
    (view,) = b.views
    lines: list[str] = []
    for side in view.sides:
        lines += ["", *paragraph(f"{TENDS[side.side].capitalize()}: {sentence(side, b.confidence)}")]
        named = [place for place in side.places if place.named]
        if len(named) > 1:
            lines += ["", *_places(side, named)]
    return lines[1:]


def _places(side: SideBound, named: list[Place]) -> list[str]:
    """Lay out the places as a table, from low to high probability."""
    shown = sorted(named[:_NAMED], key=lambda place: place.low)
    lines = [f"  {'from':>9}  {'to':>9}  {'rows':>8}  {'says':>8}  {'came true':>9}  somewhere by"]
    for place in shown:
        low, high = percents(place.low, place.high, 1)
        says, share = percents(place.says, place.share, 1)
        least = f"> {points(place.somewhere_by)}" if place.somewhere_by > 0.0 else "not shown"
        lines.append(f"  {low:>9}  {high:>9}  {place.rows:>8,}  {says:>8}  {share:>9}  {least}")
    if len(named) > len(shown):
        lines.append(f"  and {len(named) - len(shown)} more, in where()")
    return lines


def _many(b: MiscalibrationBounds) -> list[str]:
    lines = [f"  {'':<24}  {'claims too much':>18}  {'claims too little':>18}"]
    for view in b.views:
        over, under = (_cell(side) for side in view.sides)
        lines.append(f"  {_name(view.event):<24}  {over:>18}  {under:>18}")
    found = [(side.bound, view, side) for view in b.views for side in view.sides if side.found]
    found.sort(key=lambda each: -each[0])
    for _, view, side in found[:_CLASSES_DESCRIBED]:
        lines += ["", *paragraph(f"Where {shown(view.event, CLAUSE)}: {sentence(side, b.confidence)}")]
    if not found:
        lines += ["", "The scan does not show that the model is wrong anywhere."]
    return lines


def _cell(side: SideBound) -> str:
    if not side.found:
        return "not shown"
    return points(side.bound) if side.bound > 0.0 else "yes"


def _name(event: str) -> str:
    return shortened(visible(event.removeprefix("the label is ")), 24)


def _caution(b: MiscalibrationBounds) -> str:
    text = (
        "Points are percentage points. These are lower bounds: the truth may be worse, and what is not "
        "shown is no proof of calibration. They hold whatever the number of rows, if rows are "
        "independent and the labels were not used to fit the model."
    )
    if any(side.places for view in b.views for side in view.sides):
        text += (
            " What is said of places holds for all of them together, with the same confidence; how far "
            "it is off there is proved of some of its rows, not of their average."
        )
    return text
