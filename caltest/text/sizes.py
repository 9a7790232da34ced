"""How an error's size is written, and how it stands to the limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from caltest._numbers import (
    about_points,
    confidence_text,
    counted,
    outward_points,
    percent,
    percents,
    points,
    without_rounding,
)
from caltest._visible import shown_column, shown_value
from caltest.auditing.result import Audit, against_limit, shows
from caltest.auditing.views import Condition, Part, Rest, Sized, View
from caltest.lenses import within
from caltest.text.vocabulary import (
    counted_way,
    group_name,
    is_stated,
    kind_of,
    limit,
    made_by,
    outcomes_called,
    rows_called,
    view_name,
    way,
    where,
)

LITTLE = 0.1  # an average error up to which a pass is called usable
RARE = 0.05  # predicted and observed rates below which an error is stated as a ratio
_TOLD_RATIO = 1.25
_TIED = 0.35  # of what an interval or quantile leaves out, or has, by its name
_ALIKE = 5e-5  # an error too small to write its rates with more than a digit
MOST_TIMES = 1e4  # a larger ratio is none that rows could show
PARTS = {10: "tenth", 5: "fifth", 2: "half"}  # what parts are called


def found_rest(audit: Audit) -> Rest:
    """Return what is found where no check of a view is: the strongest of what groups leave."""
    return min(audit.rests, key=lambda each: each.adjusted_pvalue)


def _left(rest: Rest) -> tuple[set[Condition], Condition]:
    """Return the conditions of the larger group, and the one that its rest does not meet."""
    around = set(rest.parent.conditions if rest.parent else ())
    (left,) = set(rest.group.conditions) - around
    return around, left


def left_by(rest: Rest) -> str:
    """Return which rows a group leaves, as the end of a sentence."""
    left = _left(rest)[1]
    start = f"{where(rest.parent)} and" if rest.parent else " where"
    return f"{start} {shown_column(left.column)} is not {shown_value(left.value)}"


def beyond(audit: Audit) -> tuple[View | Rest, Part | None]:
    """Return what is furthest beyond the limit: a view, a part of one, or what a group leaves."""
    return max(audit.beyond, key=lambda one: (isinstance(one[0], View), (one[1] or one[0]).proved))


def zeros_come_first(audit: Audit) -> bool:
    """Say whether labels of probability 0 are the answer: no other error found has a direction."""
    told = audit.told
    if not audit.impossible or audit.verdict != "found":
        return False
    if told is None or audit.tolerance is not None:
        return not (audit.found and audit.tolerance is not None)
    return audit.worst is None and not (told.event or told.shape or tends(audit, told))


def impossible_rows(audit: Audit) -> str:
    """Return in how many rows a label of probability 0 was observed."""
    rows = f"{audit.impossible:,} of {counted(audit.n_samples, 'row')}"
    certain = "was certain and wrong: it " if audit.n_classes == 2 else ""
    seen = "label" if audit.n_classes else "outcome"
    return f"In {rows} the model {certain}gave probability 0 to the observed {seen}"


def rates(view: Sized) -> tuple[float, float]:
    """Return what is predicted on average, and what was observed; 0 without an event."""
    return view.predicted or 0.0, view.observed or 0.0


def told_as_ratio(view: View) -> bool:
    """Say whether an error of a view is stated as a ratio, since its event is rare."""
    low, high = sorted(rates(view))
    return view.lens != "top_label" and 0.0 < low <= high / _TOLD_RATIO and high <= RARE


def off_centre(audit: Audit, of: View | Part) -> str:
    """Return what else an interval with too few outcomes may be, if its median is shown to be wrong."""
    start, kind, _ = of.lens.rpartition("interval:")
    if not kind or of.side != "over" or isinstance(of, Part):
        return ""
    median = (f"{start}quantile:0.5", of.group)
    off = any(each.key == median and shows(audit, each) for each in audit.views)
    return " or off-centre" if off else ""


def too(view: View, audit: Audit) -> str:
    """Return which way and by how much a view's mean is wrong, of one with a direction."""
    side, (predicted, observed) = way(view.direction, view.lens), rates(view)
    if is_stated(view.lens):
        stated, share = percents(predicted, observed)
        place = "lie in it" if kind_of(view.lens) == "interval" else "lie at or below it"
        ties = f", and with ties {stated} should" if with_ties(view) else ""
        return (
            f"{side}{off_centre(audit, view)}: about {share} of {outcomes_called(audit)} {place}{ties}"
        )
    if told_as_ratio(view) and not view.projected:
        times_observed = predicted / observed
        number = f"{times_observed:,.0f}" if times_observed >= 9.95 else f"{times_observed:.2g}"
        return f"{side}: about {number} times the observed rate"
    if view.projected:
        return f"at least {distances(view)[0]} percentage points {side}"
    return f"about {about_points(abs(predicted - observed))} {side}"


def interval(view: View | Part | Rest, confidence: float) -> str:
    """Return where the error lies: "between 5.9 and 9.8 points too low (95% confidence)"."""
    sure = f"({confidence_text(confidence)} confidence)"
    if view.side:
        least, most = distances(view)
        return f"between {least} and {most} points {counted_way(view.side, view.lens)} {sure}"
    under, over = outward_points(view.low or 0.0, view.high or 0.0)
    low, high = (counted_way(side, view.lens) for side in ("under", "over"))
    return f"between {under.lstrip('−')} points {low} and {over} points {high} {sure}"


def distances(of: Sized) -> tuple[str, str]:
    """Return how far from 0 the ends of an interval are, the nearer one first, in points."""
    return outward_points(*sorted((abs(of.low or 0.0), abs(of.high or 0.0))))


def estimated(error: float, lens: str = "") -> str:
    """Return an estimated error: "13.9 points too high"; none is "0 points"."""
    error = without_rounding(error)
    side = f" {counted_way('over' if error > 0.0 else 'under', lens)}" if error else ""
    return f"{about_points(abs(error), 'point')}{side}"


def estimated_beyond(audit: Audit, of: Sized) -> bool:
    """Whether a mean error as estimated, without its interval, is beyond the limit."""
    predicted, observed = rates(of)
    return audit.limit.place(predicted, predicted - observed, predicted - observed) == "beyond"


def found_beyond(audit: Audit, of: View | Rest) -> bool:
    """Whether an error was found that is estimated to be beyond the limit."""
    return of.adjusted_pvalue <= audit.alpha and estimated_beyond(audit, of)


def means(of: Sized) -> str:
    """Return what is predicted and observed on average: "predicted 28.1%, observed 35.0%"."""
    predicted, observed = percents(*rates(of), 1)
    if abs(of.error) < _ALIKE and min(rates(of)) >= 0.1:
        predicted, observed = (percent(rate, 1) for rate in rates(of))
    ties = " (with ties)" if with_ties(of) else ""
    return f"predicted {predicted}{ties}, {'projected' if of.projected else 'observed'} {observed}"


def with_ties(of: Sized) -> bool:
    """Whether an interval or quantile states clearly more than its name, as values at its ends do.

    Few members, of which none are equal, state up to a third of its tail more.
    """
    lens = of.lens if isinstance(of, View | Rest) else ""
    level = float(within(lens)[1].partition(":")[2]) if is_stated(lens) else math.inf
    return (of.predicted or 0.0) - level > _TIED * min(level, 1.0 - level)


def bracketed(observed: str, of: Sized) -> str:
    """Return what stands as observed in a table: in brackets where it is projected."""
    return f"({observed})" if of.projected else observed


def times(view: Sized, confidence: float) -> str:
    """Return between which multiples of the true rate a rare event's prediction lies."""
    predicted, (low, high) = view.predicted or 0.0, view.true_rates
    sure = f"({confidence_text(confidence)} confidence)"
    least = f"{math.floor(100.0 * predicted / high) / 100.0:.2f}"
    if low <= predicted / MOST_TIMES:  # the true rate may be 0
        return f"at least {least} times the true rate {sure}"
    most = f"{math.ceil(100.0 * predicted / low) / 100.0:,.2f}"
    return f"between {least} and {most} times the true rate {sure}"


def is_tied(part: Part, rows: int) -> bool:
    """Say whether equal predictions make a part larger, or smaller, than its name says."""
    return abs(part.of * part.rows - rows) > 0.2 * rows


def with_predictions(part: Part) -> str:
    """Return which predictions a part has, as the end of a noun: "with predictions of 50%"."""
    ends = dict.fromkeys(percents(part.start, part.end))
    return f"with predictions {'from' if len(ends) > 1 else 'of'} {' to '.join(ends)}"


def whole_name(whole: View | Rest, audit: Audit) -> str:
    """Return the rows of a mean, and of more than two classes, of which probability."""
    if isinstance(whole, Rest):  # of two groups, one leaves the other
        around, left = _left(whole)
        for view in audit.views:
            own = view.conditions
            same = view.lens == whole.lens and view.rows == whole.rows and around <= own
            if same and left not in own and [each.column for each in own - around] == [left.column]:
                return whole_name(view, audit)
        return f"rows{left_by(whole)}"
    return group_name(whole.group) if audit.n_classes == 2 else view_name(whole)


#: Which way distributions are wrong whose statistic is found below 0, and above.
_TENDS = {"bias": ("too low", "too high"), "spread": ("too narrow", "too wide")}


def tends(audit: Audit, view: View) -> list[str]:
    """Return which ways the whole distribution is found to be wrong."""
    found = [each for each in audit.found if each.view.key == view.key and each.statistic in _TENDS]
    ways = _TENDS | ({"bias": ("too early", "too late")} if outcomes_called(audit) == "times" else {})
    return [ways[each.statistic][each.value > 0.0] for each in found]


def most_of_views(audit: Audit) -> float:
    """Return how large the mean error of any view is at most; parts of views may be further off."""
    return max((view.most for view in audit.views if view.low is not None), default=0.0)


# ------------------------------------------------------------------ against the limit


def why_undecided(audit: Audit) -> str:
    """Return why it is not settled whether errors are within the limit, as a clause."""
    texts, (few, close) = [], _few_and_close(audit)
    lost, few = _not_followed(few)
    texts += [_WITHHELD[each.name] for each in audit.withheld]
    if beyond_it := audit.beyond:
        name = whole_name(beyond_it[0][0], audit)
        texts.append(f"{name} may be beyond it, but no error was found")
    if lost:
        texts.append(f"too short a follow-up for {_counted_wholes(lost, audit)}")
    if few:
        unit = "rows" if audit.clusters is None else "independent clusters"
        every = len(few) == sum(isinstance(each, View) for each in audit.wholes)
        texts.append(f"too few {unit}{'' if every else f' for {_counted_wholes(few, audit)}'}")
    if close:
        which, s = _counted_wholes(close, audit), "s" * (len(close) > 1)
        texts.append(f"the error{s} of {which} may be beyond it")
    texts += [f"{each.what} could not be checked" for each in audit.unvouched]
    return ", and ".join(dict.fromkeys(texts)) or "no view has a single probability"


#: Why "within" is withheld, by the name of a premise.
_WITHHELD = {
    "independent rows": "rows do not look independent",
    "unseen rows": "the rows look as if they were used to fit the model",
    "groups known before the outcome": "a column of groups is a function of the outcome",
}


def unvouched(audit: Audit) -> Iterable[str]:
    """Say what was not checked and could be off by more than the limit."""
    for each in audit.unvouched:
        most = "" if each.most is None else f" of up to {outward_points(0.0, each.most)[1]} points"
        yield f"Not checked: {each.what} ({each.reason}). There an error{most} is possible."


def _few_and_close(audit: Audit) -> tuple[list[View | Rest], list[View | Rest]]:
    """Return what has too few rows, those that need most times as many first, and what is close.

    What groups leave is told of where no view is unsettled, and groups that were named come first.
    """
    unsettled = [each for each in audit.unsettled if not found_beyond(audit, each)]
    told = [each for each in unsettled if isinstance(each, View)] or unsettled
    times = {id(each): (each.rows_needed or math.inf) / each.rows for each in told}
    few = sorted(told, key=lambda each: (_made(each, audit), -times[id(each)]))
    few = [each for each in few if times[id(each)] > 1.0]
    return few, [each for each in told if times[id(each)] <= 1.0]


def _not_followed(few: Sequence[View | Rest]) -> tuple[list[View | Rest], list[View | Rest]]:
    """Return what only rows that are followed longer would settle, and the rest."""
    lost = [each for each in few if each.unfollowed and each.rows_needed is None]
    return lost, [each for each in few if each not in lost]


def _made(whole: View | Rest, audit: Audit) -> bool:
    return whole.group is not None and made_by(audit, whole.group) != ""


def _counted_wholes(some: Sequence[View | Rest], audit: Audit) -> str:
    """Return which of all that has to be within the limit: "3 of 42 groups"."""
    views = [each for each in some if isinstance(each, View)]
    if len(one := views or some) == 1:
        return whole_name(one[0], audit)
    if not views:
        return f"the rows outside of {counted(len(some), 'group')}"
    every = [each for each in audit.wholes if isinstance(each, View)]
    noun = "averages"
    if audit.n_classes == 2 and all(view.group for view in views):
        every, noun = [view for view in every if view.group], "groups"
    return f"{len(views):,} of {len(every):,} {noun}"


def needs(audit: Audit) -> Iterable[str]:
    """Say how many rows would settle what is furthest from it, if it is calibrated."""
    few, close = _few_and_close(audit)
    lost, few = _not_followed(few)
    if lost:
        yield (
            f"Rows were not followed long enough to show {_counted_wholes(lost, audit)} to be within "
            f"{limit(audit)}, and more rows would not show it."
        )
    if few:
        first, *others = few
        have = "has" if len(others) == 1 else "have"
        more = f"; {len(others):,} more {have} too few" if others else ""
        name, own = whole_name(first, audit), f"to be within {limit(audit)}"
        has = f"there are {first.rows:,}" if name == "all rows" else f"{name} has {first.rows:,}"
        like = "" if audit.clusters is None else " in clusters like these"
        if first.rows_needed is None:
            yield f"No number of rows like these would show {name} {own}{more}."
        else:
            enough = f"{about_rows(first.rows_needed)}{like}"
            yield (
                f"Too few {rows_called(audit)}s: {has}, and {enough} would show it {own}, if it is "
                f"calibrated{more}."
            )
    if close:
        far = max(close, key=lambda each: abs(each.error))
        size, name = estimated(far.error, far.lens), whole_name(far, audit)
        yield f"The error of {name} may be beyond your limit; as estimated, it is {size}."


def least_settled(audit: Audit) -> View | None:
    """Return the view that is said first not to be settled; None where none is."""
    few, close = _few_and_close(audit)
    return next((each for each in (*few, *close) if isinstance(each, View)), None)


def about_rows(count: int) -> str:
    """Return a number of rows to two figures, rounded up: "about 9,200"."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return f"about {math.ceil(count / step) * step:,}"


def cannot_fail(audit: Audit) -> Iterable[str]:
    """Say so of two classes, where a limit in points is larger than the rate of the event."""
    predicted, by = audit.views[0].predicted, audit.materiality
    if audit.n_classes == 2 and by is not None and predicted is not None and predicted <= by:
        yield (
            f"Your limit of {points(by)} is larger than the predicted rate ({points(predicted)}), so "
            "that predicting 0 would be within it, too."
        )


def decided_apart(audit: Audit, shown: Iterable[Sized]) -> str:
    """Say that another interval than one shown decides what is within the limit; "" if none does."""
    views = [each for each in shown if isinstance(each, View)]
    if any(each.inside and against_limit(audit, each) != "inside" for each in views):
        own = confidence_text(max(1.0 - 2.0 * audit.alpha, 0.5))
        return (
            "An interval may leave your limit and its mean still count as within: that is decided for "
            f"each mean alone, by its {own} interval."
        )
    return ""
