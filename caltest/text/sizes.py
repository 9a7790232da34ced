"""How large an audit's errors are, in words: sizes with intervals, where else, what may remain."""

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
)
from caltest._visible import shown_column, shown_value
from caltest.auditing.result import Audit, against_limit, finds_mean, intervals, shows
from caltest.auditing.views import Condition, Part, Rest, Sized, View
from caltest.lenses import within
from caltest.text.vocabulary import (
    WRONG,
    capital,
    counted_way,
    group_name,
    is_stated,
    kind_of,
    lens_name,
    limit,
    listed,
    made_by,
    outcomes_called,
    rows_called,
    subject,
    view_name,
    way,
    where,
)

LITTLE = 0.1  # an average error up to which a pass is called usable
RARE = 0.05  # predicted and observed rates below which an error is stated as a ratio
_TOLD_RATIO = 1.25
_ALIKE = 5e-5  # an error too small to write its rates with more than a digit
MOST_TIMES = 1e4  # a larger ratio is none that rows could show


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

    def order(one: tuple[View | Rest, Part | None]) -> tuple[bool, float]:
        whole, part = one
        of = part or whole
        return isinstance(whole, View), of.proved

    return max(audit.beyond, key=order)


def zeros_come_first(audit: Audit) -> bool:
    """Say whether labels of probability 0 are the answer: no other error found has a direction."""
    told = audit.told
    if not audit.impossible or audit.verdict != "found":
        return False
    if told is None or audit.tolerance is not None:
        return not (audit.found and audit.tolerance is not None)
    return audit.worst is None and not (told.event or told.shape or tends(audit, told))


def _zeros_by_group(audit: Audit) -> Iterable[str]:
    """Say in which groups labels of probability 0 were observed."""
    own = [each for each in audit.views if each.lens == audit.views[0].lens and each.impossible]
    own = [each for each in own if each.group and not made_by(audit, each.group)]
    own = [each for each in own if each.group and len(each.group.conditions) == 1]
    own.sort(key=lambda each: -(each.impossible or 0) / each.rows)
    if told := [
        f"{each.impossible:,} of {each.rows:,}{where(each.group)}" for each in own[:_MOST_TOLD]
    ]:
        yield f"By group{', the largest shares' * (len(own) > len(told))}: {listed(told)}."


_MOST_TOLD = 3  # groups, or means


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
        share = percents(predicted, observed)[1]
        place = "lie in it" if kind_of(view.lens) == "interval" else "lie at or below it"
        return f"{side}{off_centre(audit, view)}: about {share} of {outcomes_called(audit)} {place}"
    if told_as_ratio(view):
        times_observed = predicted / observed
        number = f"{times_observed:,.0f}" if times_observed >= 9.95 else f"{times_observed:.2g}"
        return f"{side}: about {number} times the observed rate"
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
    """Return an estimated error: "13.9 points too high"."""
    side = counted_way("over" if error > 0.0 else "under", lens)
    return f"{about_points(abs(error), 'point')} {side}"


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
    return f"predicted {predicted}, observed {observed}"


def times(view: Sized, confidence: float) -> str:
    """Return between which multiples of the true rate a rare event's prediction lies."""
    predicted, (low, high) = view.predicted or 0.0, view.true_rates
    sure = f"({confidence_text(confidence)} confidence)"
    least = f"{math.floor(100.0 * predicted / high) / 100.0:.2f}"
    if low <= predicted / MOST_TIMES:  # the true rate may be 0
        return f"at least {least} times the true rate {sure}"
    most = f"{math.ceil(100.0 * predicted / low) / 100.0:,.2f}"
    return f"between {least} and {most} times the true rate {sure}"


def size(audit: Audit) -> str:
    """Return the paragraph below the headline: the size, where else, and what is not settled."""
    return " ".join([*found(audit), *unsettled(audit)])


def found(audit: Audit) -> list[str]:
    """Return the size, and where else, in sentences."""
    texts = [
        f"Column {shown_column(column)!r}: {rows:,} of {audit.n_samples:,} rows are in groups too "
        "small to check; merge its values, or lower min_rows."
        for column, rows in audit.unseen.items()
    ]
    few = [each for each in audit.skipped if each.rows and "fewer than" in each.reason]
    left = [f"{each.what} ({each.rows:,} rows)" for each in few] if not audit.unseen else []
    unchecked = f"Too few rows to look at: {listed(left)}." if left else ""
    view = audit.worst
    if audit.verdict == "within":
        texts += [*cannot_fail(audit), *_shown_within(audit), *_halves(audit)]
    elif view is not None:
        other_is_told = audit.verdict == "material" and against_limit(audit, view) != "beyond"
        if other_is_told:
            texts += [_size_beyond(audit), _sizes(view, audit, named=True)]
        else:
            texts += [_sizes(view, audit), *_worst_part(view)]
        texts += _elsewhere(view, audit) if view.group or not other_is_told else ()
        texts += _beside(view, audit)
    elif audit.rejected:
        material = audit.verdict == "material"
        whole = beyond(audit)[0] if material else None
        strongest = whole if isinstance(whole, View) else audit.told
        halves = list(_halves(audit))
        texts += [_size_beyond(audit), *halves] if material else halves
        if strongest is not None and strongest.event is not None:
            texts.append(_sizes(strongest, audit, counts=not halves, named=material))
        texts += [proved for proved in (at_least(strongest, audit),) if proved and not halves]
        if not material and not audit.found and audit.rests and not audit.impossible:
            texts.append(finding_of_rest(found_rest(audit), audit))
        if strongest is not None:
            if tends(audit, strongest) and not any(shows(audit, each) for each in audit.views):
                texts.append("No single interval or quantile is shown to be wrong.")
            texts += _beside(strongest, audit)
    elif audit.verdict == "undecided":
        texts += _largest(audit)
    else:
        texts += [*_would_have_been_found(audit), *_largest(audit)]
    if audit.rejected and audit.impossible:
        first = zeros_come_first(audit)
        texts += [*([] if first else [f"{impossible_rows(audit)}."]), *_zeros_by_group(audit)]
        also = [each for each in audit.views if shows(audit, each) or finds_mean(audit, each)]
        if first and also:
            means_of = listed(f"{view_name(each)} ({means(each)})" for each in also[:_MOST_TOLD])
            texts.append(f"Also found wrong on average: {means_of}.")
    if not audit.rejected or audit.verdict == "within":
        texts += [unchecked] if unchecked else []
    return texts


def unsettled(audit: Audit) -> list[str]:
    """Return what is not settled, what would settle it, and what is; nothing of other verdicts."""
    if audit.verdict != "undecided":
        return []
    inside = [_whole_name(each, audit) for each in audit.views if each.inside]
    texts = [*_possible_errors(audit), *needs(audit)]
    return [*texts, f"Shown to be within your limit: {listed(inside)}."] if inside else texts


def _sizes(view: View, audit: Audit, counts: bool = True, named: bool = False) -> str:
    """Return predicted and observed, the interval, and events; ``named``: with the rows they are of."""
    text = capital(means(view))
    if named:
        text = f"On average over {_rows_of(view, audit)}, {means(view)}"
    if not counts:
        return f"{text}." if named else f"On average: {means(view)}."
    expected, seen = (rate * view.rows for rate in rates(view))
    rows = counted(view.rows, rows_called(audit))
    events = (
        f"The model expected {counted(round(expected), 'event')} in {rows}; {seen:,.0f} "
        f"{'was' if round(seen) == 1 else 'were'} observed."
    )
    if view.events is not None and view.events.expected is not None:
        events = (
            f"{counted(round(view.events.observed), 'event')} came in {rows} while they were followed; "
            f"{view.events.expected:,.0f} were expected in that time."
        )
    elif view.events is not None:
        events = f"{counted(round(view.events.observed), 'event')} came in {rows}."
    if is_stated(view.lens):
        place = "in it" if kind_of(view.lens) == "interval" else "at or below it"
        outcomes = outcomes_called(audit)
        events = f"Of {rows}, {expected:,.0f} {outcomes} were expected {place}, and {seen:,.0f} are."
    if view.lens == "top_label":
        events = f"It expected to be right in {expected:,.0f} of {rows}, and was right in {seen:,.0f}."
    told = times(view, audit.confidence) if told_as_ratio(view) else interval(view, audit.confidence)
    if view.side is None and finds_mean(audit, view):
        told += ". The check of the mean is sharper than this interval, which holds for all at once"
    if named or audit.sampled or audit.effective_n is not None:  # of a population, not of these rows
        return f"{text}: {told}."
    return f"{text}: {told}. {events}"


def finding_of_rest(rest: Rest, audit: Audit) -> str:
    """Return what was found in the rows that a group leaves, as a sentence."""
    rows = counted(rest.rows, "row")
    return f"{capital(means(rest))} in these {rows}: {interval(rest, audit.confidence)}."


def _size_beyond(audit: Audit) -> str:
    """Return the size of what is beyond the limit, as the headline has named it."""
    whole, part = beyond(audit)
    if isinstance(whole, Rest):
        return finding_of_rest(whole, audit)
    wholes = dict.fromkeys(each.key for each, _ in audit.beyond if isinstance(each, View))
    others = [each for each in audit.views if each.key in wholes and each.key != whole.key]
    also = f" Beyond it too: {listed(_whole_name(each, audit) for each in others)}." if others else ""
    if part is None:
        told = times if told_as_ratio(whole) else interval
        rows = f"{'these' if whole.group else 'all'} {counted(whole.rows, 'row')}"
        return f"{capital(means(whole))} in {rows}: {told(whole, audit.confidence)}.{also}"
    ends = " to ".join(dict.fromkeys(percents(part.start, part.end)))
    return (
        f"Beyond your limit: for predictions from {ends}{where(whole.group)}, {means(part)}, "
        f"{interval(part, audit.confidence)}.{also}"
    )


def _rows_of(view: View, audit: Audit) -> str:
    """Return which rows a mean is of, and of more than two classes, of which probability."""
    rows = f"the rows{where(view.group)}" if view.group else "all rows"
    same = audit.n_classes == 2 or (audit.beyond and beyond(audit)[0].lens == view.lens)
    return rows if same else f"{rows}, of {lens_name(view)}"


_STRIKING = 1.5  # times the mean error, from where on a part of a view is named too


def _worst_part(view: View) -> Iterable[str]:
    """Name the tenth or fifth that is furthest off, if it is much further off than the mean."""
    finest = [part for part in view.parts if part.of > 2]
    part = max(finest, key=lambda each: each.proved, default=None)
    if part is None or part.side is None or told_as_ratio(view):
        return
    if part.proved < _STRIKING * abs(view.error or 0.0):
        return
    name = {0: "lowest", len(finest) - 1: "highest"}.get(part.place)
    predicted, observed = percents(part.predicted, part.observed)
    noun = PARTS[part.of]
    if is_tied(part, view.rows):
        rows = f"the {counted(part.rows, 'row')} {_predictions(part)}"
    elif name:
        rows = f"the {noun} of these rows with the {name} predictions"
    else:
        rows = f"the {noun} {_predictions(part)}"
    yield f"The error depends on the prediction: in {rows}, predicted {predicted}, observed {observed}."


def is_tied(part: Part, rows: int) -> bool:
    """Say whether equal predictions make a part larger, or smaller, than its name says."""
    return abs(part.of * part.rows - rows) > 0.2 * rows


def _predictions(part: Part) -> str:
    """Return which predictions a part has, as the end of a noun: "with predictions of 50%"."""
    ends = dict.fromkeys(percents(part.start, part.end))
    return f"with predictions {'from' if len(ends) > 1 else 'of'} {' to '.join(ends)}"


# ------------------------------------------------------------------ against the limit


def why_undecided(audit: Audit) -> str:
    """Return why it is not settled whether errors are within the limit, as a clause."""
    texts, (few, close) = [], _few_and_close(audit)
    if beyond_it := audit.beyond:
        name = _whole_name(beyond_it[0][0], audit)
        texts.append(f"{name} may be beyond it, but no error was found")
    if few:
        unit = "rows" if audit.clusters is None else "independent clusters"
        every = len(few) == sum(isinstance(each, View) for each in audit.wholes)
        texts.append(f"too few {unit}{'' if every else f' for {_counted_wholes(few, audit)}'}")
    if close:
        which, s = _counted_wholes(close, audit), "s" * (len(close) > 1)
        texts.append(f"the error{s} of {which}, as estimated, {'are' if s else 'is'} too close to it")
    return ", and ".join(texts) or "no view has a single probability"


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


def _made(whole: View | Rest, audit: Audit) -> bool:
    return whole.group is not None and made_by(audit, whole.group) != ""


def _counted_wholes(some: Sequence[View | Rest], audit: Audit) -> str:
    """Return which of all that has to be within the limit: "3 of 42 groups"."""
    views = [each for each in some if isinstance(each, View)]
    if len(one := views or some) == 1:
        return _whole_name(one[0], audit)
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
    if few:
        first, *others = few
        have = "has" if len(others) == 1 else "have"
        more = f"; {len(others):,} more {have} too few" if others else ""
        name, own = _whole_name(first, audit), f"to be within {limit(audit)}"
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
        way = " may be beyond" if estimated_beyond(audit, far) else ", as estimated, is too close to"
        size = estimated(far.error, far.lens)
        yield f"The error of {_whole_name(far, audit)}{way} your limit: about {size}."


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


def _shown_within(audit: Audit) -> Iterable[str]:
    """Say that all are within the limit, how sure that is, and what may hide in parts."""
    own, wholes = limit(audit), audit.wholes
    left = ", of groups, and of the rows outside each group" if audit.rests else " and groups"
    every = f"The average errors of all rows{left} are" if len(wholes) > 1 else "The average error is"
    larger = "If one were" if len(wholes) > 1 else "If it were"
    about = "at most" if all(each.exact for each in wholes) else "about"
    yield (
        f"{every} shown to be within {own}. {larger} larger, we would wrongly say this in {about} "
        f"{confidence_text(min(audit.alpha, 0.25))} of cases."
    )
    views = [each for each in wholes if isinstance(each, View)]
    largest = max(views, key=lambda each: abs(each.error))
    yield (
        f"The largest error, as estimated, is that of {_whole_name(largest, audit)}: {means(largest)}."
        if len(wholes) > 1
        else f"{capital(means(largest))}."
    )
    parts = [(view, part) for view, part in intervals(audit) if part is not None]
    hidden = [one for one in parts if against_limit(audit, one[1]) != "inside"]
    if hidden:
        view, part = max(hidden, key=lambda one: _farthest(one[1], audit))
        yield f"Single parts of the predictions may be further off: {_possible(view, part, audit)}."


def _possible_errors(audit: Audit) -> Iterable[str]:
    """Say where an error beyond the limit remains possible, unless its interval is told already."""
    if audit.unsettled:
        far = max(audit.unsettled, key=lambda each: _farthest(each, audit))
        told = audit.told if audit.materiality is not None else None
        if not (isinstance(far, View) and told is not None and far.key == told.key):
            yield f"An error of {_possible(far, None, audit)} is still possible."


def _whole_name(whole: View | Rest, audit: Audit) -> str:
    """Return the rows of a mean, and of more than two classes, of which probability."""
    if isinstance(whole, Rest):  # of two groups, one leaves the other
        around, left = _left(whole)
        for view in audit.views:
            own = set(view.group.conditions if view.group else ())
            same = view.lens == whole.lens and view.rows == whole.rows and around <= own
            if same and left not in own and [each.column for each in own - around] == [left.column]:
                return _whole_name(view, audit)
        return f"rows{left_by(whole)}"
    return group_name(whole.group) if audit.n_classes == 2 else view_name(whole)


def _possible(whole: View | Rest, part: Part | None, audit: Audit) -> str:
    """Return how large an error is possible, and where."""
    far = _farthest(part or whole, audit)
    if audit.materiality is not None:
        of = part or whole
        side = "under" if -(of.low or 0.0) > (of.high or 0.0) else "over"
        size = f"up to {outward_points(0.0, far)[1]} points"
        size += "" if is_stated(of.lens) else f" {counted_way(side, of.lens)}"
    else:
        size = (
            f"a factor of up to {math.ceil(100.0 * far) / 100.0:,.2f}"
            if far < math.inf
            else "any factor"
        )
    name = _whole_name(whole, audit)
    if part is not None and audit.n_classes != 2:
        name = f"the predictions of {name}"
    if part is not None and is_tied(part, whole.rows):
        return f"{size} in {part.rows:,} of {name}, {_predictions(part)}"
    return f"{size} in {name}" if part is None else f"{size} in one {PARTS[part.of]} of {name}"


def _farthest(of: Sized, audit: Audit) -> float:
    """Return the largest error that an interval holds: in points, or as a ratio."""
    if audit.materiality is not None or audit.materiality_ratio is None:
        return of.most
    predicted, (least, most) = of.predicted or 0.0, of.true_rates
    if least <= 0.0 or predicted <= 0.0:  # the true rate may be 0, or what is predicted is
        return math.inf
    return max(predicted / least, most / predicted)


#: What parts are called.
PARTS = {10: "tenth", 5: "fifth", 2: "half"}


#: Which way distributions are wrong whose statistic is found below 0, and above.
_TENDS = {"bias": ("too low", "too high"), "spread": ("too narrow", "too wide")}


def tends(audit: Audit, view: View) -> list[str]:
    """Return which ways the whole distribution is found to be wrong."""
    found = [each for each in audit.found if each.view.key == view.key and each.statistic in _TENDS]
    ways = _TENDS | ({"bias": ("too early", "too late")} if outcomes_called(audit) == "times" else {})
    return [ways[each.statistic][each.value > 0.0] for each in found]


def _beside(view: View, audit: Audit) -> Iterable[str]:
    """Say which other entries of vectors are found to be wrong, and which go together wrongly."""
    own = within(view.lens)[0]
    named = dict.fromkeys(each.view.key for each in audit.found)
    others = [each for each in audit.views if each.key in named and each.group is None]
    others = [each for each in others if each.key != view.key and (within(each.lens)[0] or own) != own]
    pairs = [each for each in audit.views if each.key in named and kind_of(each.lens) == "pair"]
    every = [*others, *(pair for pair in pairs if pair.key != view.key)]
    told = [
        f"{subject(each).removeprefix('the predicted ')} are {' and '.join(ways)}"
        for each in every
        if (ways := tends(audit, each))
    ]
    if told:
        yield f"Also found: {listed(told)}."


def _elsewhere(view: View, audit: Audit) -> Iterable[str]:
    """Say which groups include the worst one and are wrong with it, and that others are not found."""
    found = {check.view.key for check in audit.found}
    own = set(view.group.conditions) if view.group else set()
    alike = [each for each in audit.views if each.lens == view.lens and each.key != view.key]
    around = [
        each
        for each in alike
        if shows(audit, each) == shows(audit, view)
        and (each.group is None or set(each.group.conditions) < own)
    ]
    side = way(shows(audit, view), view.lens)
    for each in around if view.group else ():
        if each.group is None:
            size = about_points(abs(each.error or 0.0), "point")
            off = counted_way(shows(audit, view), view.lens)
            all_rows = "Over all rows it is" if is_stated(view.lens) else "All rows together are"
            yield f"{all_rows} {size} {off}, partly because of these."
    larger = [each for each in around if each.group]
    if larger:
        told = [f"{group_name(each.group)} ({means(each)})" for each in larger]
        parents = [each.group for each in larger]
        rests = [each for each in audit.rests if each.group == view.group and each.parent in parents]
        yield f"Also {side}, partly because of these: {listed(told)}."
        if not all(each.inside for each in rests if each.lens == view.lens):
            other = "Its other rows are" if len(larger) == 1 else "Their other rows are"
            yield f"{other} not shown to be right."
    others = [
        each
        for each in alike
        if each.group and each not in around and not (own and own <= set(each.group.conditions))
    ]
    worse = [each for each in others if shows(audit, each)]
    groups = {each.group for each in others}
    if view.group and others and not any(group in groups for _, group in found):
        apart = {group for _, group in found if group and not own & set(group.conditions)}
        yield (
            f"Other kinds of error were found in {listed(sorted(map(group_name, apart)))}."
            if apart
            else "No error was found in the other groups."
        )
    elif worse and view.group is None:
        far = max(worse, key=lambda each: each.proved)
        groups_found = counted(len(worse), "group")
        which = "it is" if len(worse) == 1 else "furthest off is"
        yield f"Also found in {groups_found}; {which} {group_name(far.group)}: {means(far)}."
    elif worse:
        yield f"Also wrong on average: {listed(group_name(each.group) for each in worse)}."


def _largest(audit: Audit) -> Iterable[str]:
    """Say how large an average error can be: over all rows, and in groups, if that is not much."""
    whole = [view for view in audit.views if view.low is not None and view.group is None]
    if audit.at_most is None or not whole or whole[0].inside:
        return
    grouped, most = most_of_views(audit) > (all_rows := max(view.most for view in whole)), audit.at_most
    small = "; some groups are too small to judge" if grouped else ""
    if (most_of_views(audit) if grouped else most) <= LITTLE and most > all_rows:
        where_else, most = ("groups", most_of_views(audit)) if grouped else ("parts of them", most)
        small = f", and of up to {outward_points(0.0, most)[1]} points in some {where_else}"
    small = "" if audit.verdict == "undecided" else small  # of which more is said
    sure, up_to = f"({confidence_text(audit.confidence)} confidence)", outward_points(0.0, all_rows)[1]
    yield f"These data allow an average error of up to {up_to} points {sure} over all rows{small}."


def most_of_views(audit: Audit) -> float:
    """Return how large the mean error of any view is at most; parts of views may be further off."""
    return max((view.most for view in audit.views if view.low is not None), default=0.0)


def _halves(audit: Audit) -> Iterable[str]:
    """Name the halves of all rows, if both are proved wrong, in opposite directions."""
    view = next((each for each in audit.views if each.group is None and each.parts), None)
    halves = [part for part in (view.parts if view else ()) if part.of == 2]
    even = len(halves) == 2 and not any(is_tied(half, audit.n_samples) for half in halves)
    if view and even and {part.side for part in halves} == {"over", "under"}:
        lower, upper = (
            f"{about_points(abs(part.error), 'point')} {WRONG[part.side or '']} "
            f"({' to '.join(distances(part))})"
            for part in halves
        )
        sure = confidence_text(audit.confidence)
        of = "" if audit.n_classes == 2 else f"Of {lens_name(view)}, "
        both = f"the half of the rows with lower predictions is {lower}, the other half {upper}"
        yield capital(f"{of}{both}, with {sure} confidence.")


def at_least(view: View | None, audit: Audit) -> str | None:
    """Return how wrong some predictions are at least, as a sentence; None if nothing is proved."""
    sides = [] if view is None else [("over", view.at_least_over), ("under", view.at_least_under)]
    texts = [
        f"{'some predictions are' if not k else 'others'} at least {points(bound)} {WRONG[side]}"
        for k, (side, bound) in enumerate((side, bound) for side, bound in sides if bound)
    ]
    if not texts:
        return None
    return f"{capital('; '.join(texts))} ({confidence_text(audit.confidence)} confidence)."


def _would_have_been_found(audit: Audit) -> Iterable[str]:
    told = audit.sensitivity
    if told is None or told.error is None:
        return
    view = audit.views[told.view]
    yield (
        f"If {subject(view)} were too high, or too low, by about {about_points(told.error)} "
        f"throughout{where(view.group)}, an audit like this would find it 4 times in 5."
    )
