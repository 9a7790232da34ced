"""Bounds and certificates in plain language."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caltest._visible import CLAUSE, shortened, shown, visible
from caltest.bounds.certificates import CHANCE, SHARE, Certificate
from caltest.bounds.result import MiscalibrationBounds, SideBound
from caltest.text.numbers import confidence_text, page, percents, points, through
from caltest.text.vocabulary import WRONG

# ------------------------------------------------------------------ at least


_NAMED = 5  # places of a side
_CLASSES_DESCRIBED = 3  # of many, those with the largest bounds


def summary(b: MiscalibrationBounds) -> str:
    """Return what was looked at, what is proved of either side, where, and what is not proved."""
    blocks: list[Sequence[str]] = []
    if len(b.views) == 1:
        view = b.views[0]
        about, both = f"the probability that {shown(view.event, CLAUSE)}", "both bounds"
        for side in view.sides:
            blocks.append(f"{WRONG[side.side].capitalize()}: {_sentence(side, b.confidence)}")
            if sum(place.named for place in side.places) > 1:
                blocks.append(_places(side))
    else:
        about = f"each of the {len(b.views)} classes by itself"
        both = f"all {2 * len(b.views)} bounds"
        lines = [f"  {'':<24}  {'too high by':>18}  {'too low by':>18}"]
        for view in b.views:
            name = shortened(visible(view.event.removeprefix("the label is ")), 24)
            over, under = (
                (points(side.bound) if side.bound > 0.0 else "unknown amount")
                if side.found
                else "not shown"
                for side in view.sides
            )
            lines.append(f"  {name:<24}  {over:>18}  {under:>18}")
        blocks.append(lines)
        largest = [(side, view.event) for view in b.views for side in view.sides if side.found]
        largest.sort(key=lambda each: -each[0].bound)
        for side, event in largest[:_CLASSES_DESCRIBED]:
            blocks.append(f"Where {shown(event, CLAUSE)}: {_sentence(side, b.confidence)}")
        if not largest:
            blocks.append("No prediction is shown to be wrong.")
    caution = (
        "Points are percentage points. These are lower bounds: the true error may be larger, and an "
        "error that is not shown may still exist. They hold for any number of rows, provided that rows "
        "are independent and the labels were not used to fit the model."
    )
    if any(side.places for view in b.views for side in view.sides):
        caution += (
            " The statements about ranges hold for all of them at once, with the same confidence; each "
            "bound is proved for some rows of its range, not for their average."
        )
    rows = [
        ("data", f"{b.n_samples:,} predictions of {b.n_classes} classes: {about}"),
        ("confidence", f"{confidence_text(b.confidence)} for {both} at once"),
        ("method", f"a scan of all ranges of the probability, {b.n_resamples:,} simulated label sets"),
    ]
    found = [
        f"{f'at least {points(bound)} ' if bound > 0.0 else ''}too {way}"
        for way, bound, sides in (
            ("high", b.over, [view.over for view in b.views]),
            ("low", b.under, [view.under for view in b.views]),
        )
        if any(side.found for side in sides)
    ]
    headline = "No prediction is shown to be wrong."
    if found:
        sure = f"{confidence_text(b.confidence)} confidence"
        headline = f"Some predictions are {'; others '.join(found)} ({sure})."
    what = "; ".join(found) or "no error found"
    brief = f"{what}, {confidence_text(b.confidence)} confidence, n = {b.n_samples:,}"
    title = "Miscalibration: lower bounds"
    return page(title, rows, *blocks, caution, notes=b.warnings, headline=headline, brief=brief)


def _sentence(side: SideBound, confidence: float) -> str:
    """Return what is proved of one side, in one or two sentences."""
    if not side.found:
        return f"No prediction is shown to be {WRONG[side.side]} (p = {side.pvalue:.2g})."
    text = f"With {confidence_text(confidence)} confidence, some predictions are "
    if side.bound == 0.0:
        text += f"{WRONG[side.side]}; by how much is not shown."
    else:
        text += f"at least {points(side.bound)} {WRONG[side.side]}."
    if not side.places:
        return text
    place = side.places[0]
    low, high = percents(place.low, place.high, 1)
    where = f"between {low} and {high}" if place.low < place.high else f"at {low}"
    predicted, observed = percents(place.predicted, place.observed, 1)
    rows = f"in {place.rows:,} rows, predicted {predicted} on average, observed {observed}"
    if place.somewhere_by == 0.0:
        return f"{text} The evidence is strongest {where}: {rows}."
    amount = f"some of them at least {points(place.somewhere_by)} {WRONG[side.side]}"
    return f"{text} The largest proved error is {where}: {rows}; {amount}."


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
_SHARES = (0.9, 0.5)
_METHODS = {
    "bins": "simultaneous Clopper–Pearson bounds for the mean probability in every bin",
    "isotonic": (
        "isotonic band (Dimitriadis et al.); assumes that the probability never falls with the score"
    ),
}


def certificate(c: Certificate) -> str:
    """Return what is certified, what is proved wrong, and what more rows would do."""
    bins = c.method == "bins"
    parts = f"{len(c.counts)} {'bin' if bins else 'cell'}{'s' * (len(c.counts) > 1)}"
    where = "on average over each bin" if bins else "at every score in the data"
    certified = f"within ±{at_most(c.distance)} points, {where}"
    rows = [
        ("data", f"{c.n_samples:,} rows{through(c.lens)}, in {parts} by predicted probability"),
        ("method", _METHODS[c.method]),
        ("certified", "nothing: the bounds cross" if c.crossings else certified),
        ("confidence", f"{confidence_text(c.confidence)} for all statements here at once"),
    ]
    proofs = "No miscalibration is found: the diagonal lies within the band."
    if c.crossings:
        proofs = ""  # where it is wrong cannot be shown under an assumption that is disproved
    elif c.miscalibrated:
        named = sorted(sorted(c.miscalibrated, key=lambda each: -each.at_least)[:_NAMED_RANGES])
        texts = [
            f"{scores_between(each.low, each.high)}, {at_least(each.at_least)} points "
            f"{WRONG[each.direction]} ({each.rows:,} row{'s' * (each.rows != 1)})"
            for each in named
        ]
        if rest := len(c.miscalibrated) - len(named):
            texts.append(f"and {rest} smaller")
        somewhere = "on average over the bin" if bins else "somewhere in the range"
        proofs = (
            f"Miscalibration is found (at least this much {somewhere}): for scores {'; '.join(texts)}."
        )
    texts = [_certified(c), proofs, _wanted(c)]
    sure = f"{confidence_text(c.confidence)} confidence"
    headline, brief = "Nothing is certified: the isotonic bounds cross.", "nothing, the bounds cross"
    if not c.crossings:
        brief = f"within ±{at_most(c.distance)} points"
        headline = f"The predictions are {brief} of the truth, {where} ({sure})."
    brief = f"{brief}, {sure}, n = {c.n_samples:,}"
    title = "Certificate of calibration"
    return page(title, rows, *texts, notes=c.warnings, headline=headline, brief=brief)


def _certified(c: Certificate) -> str:
    if c.crossings:
        ranges = [f"for scores {scores_between(*each)}" for each in c.crossings[:_NAMED_RANGES]]
        if (rest := len(c.crossings) - _NAMED_RANGES) > 0:
            ranges.append(f"and {rest} more ranges")
        return (
            f"The lower bound is above the upper one {', '.join(ranges)}: at this confidence, the "
            "true probability falls somewhere as the score rises. The isotonic method assumes that it "
            "never does, and certifies nothing; method 'bins' makes no such assumption. A calibrated "
            "model's probability never falls, so miscalibration is found."
        )
    sides = (
        f"at most {at_most(c.over)} points {WRONG['over']}, at most {at_most(c.under)} {WRONG['under']}"
    )
    event = shown(c.event, CLAUSE)
    k = int(c.distances.argmax())
    place = scores_between(float(c.starts[k]), float(c.ends[k]))
    if c.method == "bins":
        return (
            f"In every bin, the mean prediction is within {at_most(c.distance)} points of the true "
            f"mean probability that {event}: {sides}. The bound is widest for scores {place}. "
            "These are averages: errors that cancel within a bin do not show."
        )
    parts = [
        f"±{at_most(c.distance_for(share))} for {100 * share:.0f}% of the rows" for share in _SHARES
    ]
    low, high = float(c.starts[0]), float(c.ends[-1])
    return (
        f"Every score in the data, {scores_between(low, high)}, is within {at_most(c.distance)} points "
        f"of the true probability that {event}: {sides}; {' and '.join(parts)}. The bound is widest "
        f"for scores {place}. Little can be certified near the ends of the scores and where rows are "
        "few."
    )


def _wanted(c: Certificate) -> str:
    if c.wanted is None:
        return ""
    text = f"The distance you asked for, ±{100 * c.wanted:.4g} points, is "
    if c.reached:
        part = "" if c.distance <= c.wanted else f" for {100 * SHARE:.0f}% of the rows"
        return f"{text}certified{part}."
    if c.samples_wanted is None:
        return f"{text}not certified, and no number of rows would certify it."
    if c.samples_wanted <= c.n_samples:
        return (
            f"{text}not certified. This many rows usually suffice for a calibrated model: either this "
            "one is not calibrated, or chance was against it."
        )
    step = int(10 ** max(0, len(str(c.samples_wanted)) - 2))  # two digits: a plan is no better
    aim = f"for {100 * SHARE:.0f}% of the rows"
    if c.method == "bins":
        aim = f"in as many bins, with probability {100 * CHANCE:.0f}%"
    return (
        f"{text}not certified. That needs about {-(-c.samples_wanted // step) * step:,} rows if the "
        f"model is calibrated ({aim}), more if it is not."
    )


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
