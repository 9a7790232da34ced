"""The size of an error in words, and its relation to the limit."""

from __future__ import annotations

import math

from caltest import _numbers as numbers
from caltest._numbers import outward_points, percents, unit, up_to, with_unit
from caltest._visible import shown_column
from caltest.auditing.result import Audit
from caltest.auditing.views import Condition, Part, Rest, Sized, View
from caltest.lenses import within
from caltest.text import vocabulary as words

RARE = 0.05  # predicted and observed rates up to which an error is written as a ratio
_TOLD_RATIO = 1.25
_TIED = 0.35  # share of min(level, 1 − level) by which ties must exceed the level to be mentioned
_ALIKE = 5e-5  # errors too small to write rates with more than one decimal
MOST_TIMES = 1e4  # larger ratios are treated as unbounded: rows cannot show them
PARTS = {10: "tenth", 5: "fifth", 2: "half"}  # names of parts


def _left(rest: Rest) -> tuple[set[Condition], Condition]:
    """Return the conditions of the larger group, and the one that the other rows do not meet."""
    around = set(rest.parent.conditions if rest.parent else ())
    (left,) = set(rest.group.conditions) - around
    return around, left


def left_by(rest: Rest) -> str:
    """Return the rows outside the group, as the end of a sentence."""
    left = _left(rest)[1]
    start = f"{words.where(rest.parent)} and" if rest.parent else " where"
    return f"{start} {shown_column(left.column)} is not {left.called}"


def impossible_rows(audit: Audit) -> str:
    """Return in how many rows a label with predicted probability 0 was observed."""
    rows = f"{audit.impossible:,} of {numbers.counted(audit.n_samples, 'row')}"
    certain = "was certain and wrong: it " if audit.n_classes == 2 else ""
    seen = "label" if audit.n_classes else "outcome"
    return f"In {rows} the model {certain}gave probability 0 to the observed {seen}"


def rates(view: Sized) -> tuple[float, float]:
    """Return the mean prediction and observation; 0 without an event."""
    return view.predicted or 0.0, view.observed or 0.0


def both(of: Sized) -> tuple[str, str]:
    """Write the mean prediction and observation."""
    return percents(*rates(of), 1, of.low or 0.0, of.high or 0.0)


def told_as_ratio(view: View, audit: Audit) -> bool:
    """Return whether an error is written as a ratio: for rare events, or numbers with a ratio limit."""
    low, high = sorted(rates(view))
    if unit().of_outcomes:
        return audit.materiality is None and audit.materiality_ratio is not None and low > 0.0
    return view.lens != "top_label" and 0.0 < low <= high / _TOLD_RATIO and high <= RARE


def off_centre(audit: Audit, of: View | Part) -> str:
    """Return " or off-centre" for a too narrow interval whose median is proved wrong too; else ""."""
    start, kind, _ = of.lens.rpartition("interval:")
    if not kind or of.side != "over" or isinstance(of, Part):
        return ""
    median = audit.story.marks.get((f"{start}quantile:0.5", of.group))
    return " or off-centre" if median is not None and median.side else ""


def way_of(view: View, audit: Audit) -> str:
    """Return the direction of a view's error, for a view with one."""
    return f"{words.way(view.direction, view.lens)}{off_centre(audit, view)}"


def too(view: View, audit: Audit) -> str:
    """Return direction and size of a view's error, for a view with a direction."""
    side, (predicted, observed) = way_of(view, audit), rates(view)
    if words.is_stated(view.lens):
        stated, share = percents(predicted, observed)
        place = "lie in it" if words.kind_of(view.lens) == "interval" else "lie at or below it"
        ties = f", and with ties {stated} should" if with_ties(view) else ""
        return f"{side}: about {share} of {words.outcomes_called(audit)} {place}{ties}"
    if told_as_ratio(view, audit) and not view.projected:
        times_observed, digits = predicted / observed, 2 + unit().of_outcomes
        number = f"{times_observed:,.0f}" if times_observed >= 9.95 else f"{times_observed:.{digits}g}"
        return f"{side}: about {number} times the {unit().seen} {unit().mean}"
    if view.projected:
        return f"at least {distances(view)[0]} percentage points {side}"
    return f"about {numbers.about_points(abs(predicted - observed))} {side}"


def sure(audit: Audit) -> str:
    """Return the joint confidence of all intervals: "95% confidence"."""
    return f"{numbers.confidence_text(audit.confidence)} confidence"


def own_sure(audit: Audit, ends: int = 2) -> str:
    """Return the confidence of an interval by itself, or of one of its ends."""
    return numbers.confidence_text(1.0 - ends * min(audit.alpha, 0.25))


def interval(view: View | Part | Rest, audit: Audit) -> str:
    """Return the interval of an error: "between 5.9 and 9.8 points too low (95% confidence)".

    If one side matters: the proved size, or the upper limit by the view's own interval.
    """
    if (only := audit.limit.only) is None:
        if math.isinf(view.low or 0.0) and math.isinf(view.high or 0.0):
            return "the true error is not known"
        return f"{between(view.low or 0.0, view.high or 0.0, view.lens)} ({sure(audit)})"
    side = words.counted_way(only, view.lens)
    if view.proved:
        least = with_unit(outward_points(view.proved, view.proved)[0])
        return f"at least {least} {side} ({sure(audit)})"
    if view.own_low is None or math.isinf(own_most(view, audit)):
        return f"not shown to be {side}"
    return f"at most {up_to(own_most(view, audit))} {side} ({own_sure(audit, 1)} confidence, by itself)"


def own_most(of: Sized, audit: Audit) -> float:
    """Return the largest error on the side that matters, by the view's own interval."""
    return max((of.own_high or 0.0) if audit.limit.only == "over" else -(of.own_low or 0.0), 0.0)


def ends(of: Sized, audit: Audit, *, own: bool = False) -> str:
    """Return the interval of an error, joint or own: "−9.8 to −5.9"; "1.2 or more" without an end.

    If one side matters, the joint interval gives the lower limit of the error, its own the upper one.
    """
    shown, only = audit.limit.shown(of), audit.limit.only
    both_ends = (of.own_low, of.own_high) if own else (shown.low, shown.high)
    low, high = (end or 0.0 for end in both_ends)
    start, end = outward_points(low, high)
    from_ = only != ("over" if own else "under") and math.isfinite(low)
    to = only != ("under" if own else "over") and math.isfinite(high)
    if from_ and to:
        return f"{start} to {end}"
    return f"{start} or more" if from_ else f"{end} or less" if to else "not known"


def between(low: float, high: float, lens: str) -> str:
    """Return an interval of errors in words."""
    if low > 0.0 or high < 0.0:
        least, most = outward_points(*sorted((abs(low), abs(high))))
        side = words.counted_way("over" if low > 0.0 else "under", lens)
        if math.isinf(high - low):
            return f"at least {with_unit(least)} {side}"
        return f"between {least} and {with_unit(most)} {side}"
    ends = (with_unit(each.lstrip("−")) for each in outward_points(low, high))
    under, over = ("an unknown amount" if "∞" in each else each for each in ends)
    below, above = (words.counted_way(side, lens) for side in ("under", "over"))
    return f"between {under} {below} and {over} {above}"


def distances(of: Sized) -> tuple[str, str]:
    """Return the distances of an interval's ends from 0, the nearer one first, in points."""
    return outward_points(*sorted((abs(of.low or 0.0), abs(of.high or 0.0))))


def estimated(error: float, lens: str = "") -> str:
    """Return an estimated error: "13.9 points too high"; 0 is "0 points"."""
    error = numbers.without_rounding(error)
    side = f" {words.counted_way('over' if error > 0.0 else 'under', lens)}" if error else ""
    return f"{numbers.about_points(abs(error), 'point')}{side}"


def means(of: Sized) -> str:
    """Return the mean prediction and observation: "predicted 28.1%, observed 35.0%"."""
    predicted, observed = both(of)
    least, most = sorted(rates(of))
    if most - least < _ALIKE and least >= 0.1 and not unit().of_outcomes:
        predicted, observed = (numbers.percent(rate, 1) for rate in rates(of))
    ties = " (with ties)" if with_ties(of) else ""
    return f"predicted {predicted}{ties}, {'projected' if of.projected else unit().seen} {observed}"


def with_ties(of: Sized) -> bool:
    """Whether ties give an interval or quantile clearly more probability than its name says.

    With few members, none of them equal, the predicted tail is larger by up to a third.
    """
    lens = of.lens if isinstance(of, View | Rest) else ""
    level = float(within(lens)[1].partition(":")[2]) if words.is_stated(lens) else math.inf
    return (of.predicted or 0.0) - level > _TIED * min(level, 1.0 - level)


def bracketed(observed: str, of: Sized) -> str:
    """Return the observed value for a table: in brackets if it is projected."""
    return f"({observed})" if of.projected else observed


def times(view: Sized, audit: Audit) -> str:
    """Return the interval of predicted ÷ true rate (or mean), in words."""
    predicted, (low, high) = view.predicted or 0.0, view.true_rates
    least, of = f"{math.floor(100.0 * predicted / high) / 100.0:.2f}", f"times the true {unit().mean}"
    if low <= predicted / MOST_TIMES:  # the true rate may be 0
        return f"at least {least} {of} ({sure(audit)})"
    most = f"{math.ceil(100.0 * predicted / low) / 100.0:,.2f}"
    one = audit.limit.only == "under" or math.isinf(high)
    return f"{'at most' if one else f'between {least} and'} {most} {of} ({sure(audit)})"


def with_predictions(part: Part) -> str:
    """Return the predictions in a part, as the end of a noun phrase: "with predictions of 50%"."""
    ends = dict.fromkeys(percents(part.start, part.end))
    return f"with predictions {'from' if len(ends) > 1 else 'of'} {' to '.join(ends)}"


def whole_name(whole: View | Rest, audit: Audit) -> str:
    """Return the rows of a mean and, if several probabilities are audited, which one."""
    if isinstance(whole, Rest):  # the rest of two groups is one of them
        around, left = _left(whole)
        for view in audit.views:
            own = view.conditions
            same = view.lens == whole.lens and view.rows == whole.rows and around <= own
            if same and left not in own and [each.column for each in own - around] == [left.column]:
                return whole_name(view, audit)
        return f"rows{left_by(whole)}"
    return words.group_name(whole.group) if words.is_single(audit) else words.view_name(whole)


# ------------------------------------------------------------------ against the limit


def farthest(of: View | Part | Rest, audit: Audit) -> str:
    """Return the largest possible error: in points or units, or as a ratio."""
    if math.isinf(own_most(of, audit) if audit.limit.only else of.most):
        return "unknown size"
    if only := audit.limit.only:
        by = f"({own_sure(audit, 1)} confidence, by itself)"
        return f"up to {up_to(own_most(of, audit))} {words.counted_way(only, of.lens)} {by}"
    if audit.materiality is not None or audit.materiality_ratio is None:
        _, side = max((-(of.low or 0.0), "under"), (of.high or 0.0, "over"))
        return f"up to {up_to(of.most)} {words.counted_way(side, of.lens)}"
    predicted, (least, most) = of.predicted or 0.0, of.true_rates
    if least <= 0.0 or predicted <= 0.0:  # the true rate, or the prediction, may be 0
        return "any factor"
    factor = max(predicted / least, most / predicted)
    return f"a factor of up to {math.ceil(100.0 * factor) / 100.0:,.2f}"


def enough(of: View | Rest, audit: Audit) -> str:
    """Return how many rows would settle it, or for clusters, how many clusters like these."""
    if of.clusters_needed is not None:
        return f"{about(of.clusters_needed)} clusters like these"
    return f"{about(of.rows_needed or 0)} {words.rows_called(audit)}s"


def about(count: int) -> str:
    """Return a number of rows rounded up to two figures: "about 9,200"."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return f"about {math.ceil(count / step) * step:,}"


#: Places of a mean error against the limit, as written in tables, if not by their code.
PLACES = {
    "likely": "likely beyond",
    "pointless": "limit above the rate",
    "estimated": "beyond as estimated",
    "follow-up": "not followed long enough",
    "never": "no number of rows would show it",
    "ends": "needs {ends}",
    "close": "close to the limit",
    "few": "needs {} such rows",
}


def settled(audit: Audit, of: View | Rest) -> str:
    """Return whether a mean is proved within the limit, or what would prove it."""
    place = audit.story.mark(of).place
    return PLACES.get(place, place).format(about(of.rows_needed or 0), ends=words.ends_wanted(audit))
