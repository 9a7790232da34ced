"""A certificate in plain language."""

from __future__ import annotations

import math
from collections.abc import Callable

from caltest._visible import CLAUSE, shown
from caltest.bounds.certificates import CHANCE, SHARE, Certificate, Proved
from caltest.bounds.clopper_pearson import Segment
from caltest.text.numbers import confidence_text, page, paragraph, table
from caltest.text.vocabulary import TENDS

_NAMED_RANGES = 6
_SHARES = (0.9, 0.5)


def summary(certificate: Certificate) -> str:
    """Return what is certified, what is proved wrong, and what more rows would do."""
    c = certificate
    view = f", seen through the lens {shown(c.lens)}" if c.lens else ""
    bins = c.method == "bins"
    unit = "bin" if bins else "cell"
    parts = f"{len(c.counts)} {unit}{'s' * (len(c.counts) > 1)}"
    rows = [
        ("rows", f"{c.n_samples:,}{view}, in {parts} by what the model says"),
        ("method", _METHODS[c.method]),
        ("certified", _certified(c)),
        ("confidence", f"{confidence_text(c.confidence)}, of all statements here together"),
    ]
    lines = ["Certificate of calibration", *table(rows), ""]
    texts = [_reading(c), _proofs(c), _plan(c)]
    for text in (*texts, *(f"Note: {warning}" for warning in c.warnings)):
        if text:
            lines += [*paragraph(text), ""]
    return page(lines[:-1])


_METHODS = {
    "bins": "simultaneous Clopper–Pearson bounds of the mean probability in every bin",
    "isotonic": "isotonic band (Dimitriadis et al.), if the probability never falls as the score rises",
}


def _certified(c: Certificate) -> str:
    if c.crossings:
        return "nothing: the bounds cross"
    where = "on average over each bin" if c.method == "bins" else "at every score among the rows"
    return f"within ±{at_most(c.distance)} points, {where}"


def _reading(c: Certificate) -> str:
    if c.crossings:
        return (
            f"The lower bound is above the upper one {_ranges(c.crossings)}: that the probability "
            "never falls as the score rises is disproved at this confidence, and the isotonic method "
            "certifies nothing; method 'bins' does not assume it. A calibrated model's would not fall, "
            "so miscalibration is proved."
        )
    sides = (
        f"{TENDS['over']} by at most {at_most(c.over)} points, "
        f"{TENDS['under']} by at most {at_most(c.under)}"
    )
    event = shown(c.event, CLAUSE)
    k = int(c.distances.argmax())
    place = scores_between(float(c.starts[k]), float(c.ends[k]))
    if c.method == "bins":
        return (
            f"In every bin, the mean probability that {event} is within {at_most(c.distance)} points "
            f"of the mean that the model states: {sides}. The bound is largest for scores {place}. "
            "These are averages: errors that cancel within a bin do not show."
        )
    parts = [
        f"±{at_most(c.distance_for(share))} for {100 * share:.0f}% of the rows" for share in _SHARES
    ]
    low, high = float(c.starts[0]), float(c.ends[-1])
    return (
        f"At every score among the rows, {scores_between(low, high)}, the probability that {event} "
        f"is within {at_most(c.distance)} points of the score: {sides}; {' and '.join(parts)}. The "
        f"bound is largest for scores {place}. Near the ends of the scores, and where rows are few, "
        "little can be certified."
    )


def _proofs(c: Certificate) -> str:
    if c.crossings:
        return ""  # where it is wrong cannot be told without what is disproved
    if not c.miscalibrated:
        return "No miscalibration is proved: the diagonal lies within the band."
    named = sorted(sorted(c.miscalibrated, key=lambda each: -each.at_least)[:_NAMED_RANGES])
    rest = len(c.miscalibrated) - len(named)
    text = "; ".join(_proof(each) for each in named) + (f"; and {rest} smaller" if rest else "")
    somewhere = "on average over the bin" if c.method == "bins" else "somewhere in the range"
    return f"Miscalibration is proved ({somewhere} by at least so much), for scores {text}."


def _proof(each: Proved) -> str:
    return (
        f"{scores_between(each.low, each.high)} {TENDS[each.direction]} by "
        f"{at_least(each.at_least)} ({each.rows:,} row{'s' * (each.rows != 1)})"
    )


def _plan(c: Certificate) -> str:
    if c.wanted is None:
        return ""
    points = f"±{100 * c.wanted:.4g} points"
    if c.reached:
        part = "" if c.distance <= c.wanted else f" for {100 * SHARE:.0f}% of the rows"
        return f"The distance wanted, {points}, is certified{part}."
    if c.samples_wanted is None:
        return f"The distance wanted, {points}, is not certified, and no number of rows will do it."
    if c.samples_wanted <= c.n_samples:
        return (
            f"The distance wanted, {points}, is not certified. As a rule these rows are enough, if the "
            "model is calibrated: it is not, or chance was against it."
        )
    rows = f"about {_rounded(c.samples_wanted):,} rows"
    if c.method == "bins":
        aim = f"with so many bins and a chance of {100 * CHANCE:.0f}%"
    else:
        aim = f"for {100 * SHARE:.0f}% of the rows"
    return (
        f"The distance wanted, {points}, is not certified; it would take {rows} if the model were "
        f"calibrated ({aim}), more if it is not."
    )


def _ranges(segments: tuple[Segment, ...]) -> str:
    named = ", ".join(f"for scores {scores_between(*each)}" for each in segments[:_NAMED_RANGES])
    rest = len(segments) - _NAMED_RANGES
    return f"{named}, and {rest} more ranges" if rest > 0 else named


def scores_between(low: float, high: float) -> str:
    """Name a range of scores.

    >>> scores_between(0.25, 0.5), scores_between(0.5, 0.5), scores_between(0.99991, 1.0)
    ('0.25 to 0.5', 'of 0.5', '0.9999 to 1')
    >>> scores_between(0.99996, 0.99996), scores_between(0.500001, 0.500002)
    ('of 0.99996', '0.500001 to 0.500002')
    """
    for digits in range(4, 18):
        first, last = f"{low:.{digits}g}", f"{high:.{digits}g}"
        certain = [text for value, text in ((low, first), (high, last)) if value < 1.0 and text == "1"]
        if not certain and (first != last or low == high):
            break
    return f"of {first}" if first == last else f"{first} to {last}"


def at_most(distance: float) -> str:
    """Write a distance in points, rounded up.

    >>> at_most(0.05201), at_most(0.0031), at_most(1.0)
    ('5.3', '0.31', '100')
    """
    return _points(distance, math.ceil, 1.0 - 1e-9)


def at_least(distance: float) -> str:
    """Write a distance in points, rounded down.

    >>> at_least(0.05299), at_least(0.00319)
    ('5.2', '0.31')
    """
    return _points(distance, math.floor, 1.0 + 1e-9)


def _points(distance: float, to_whole: Callable[[float], int], slack: float) -> str:
    digits = 1 if distance >= 0.01 else 2
    scale = 10**digits
    return f"{to_whole(100.0 * distance * scale * slack) / scale:g}"


def _rounded(rows: int) -> int:
    """Round up to two digits: a plan is no better.

    >>> _rounded(41_273), _rounded(87)
    (42000, 87)
    """
    step = int(10 ** max(0, len(str(rows)) - 2))
    return -(-rows // step) * step
