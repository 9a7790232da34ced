"""What an audit found, in the paragraph below its headline: sizes, where else, what may remain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from caltest._numbers import about_points, confidence_text, counted, outward_points, percents, points
from caltest._visible import shown_column
from caltest.auditing.result import Audit, against_limit, finds_mean, intervals, shows
from caltest.auditing.views import Part, Rest, Sized, View
from caltest.exceptions import Argument
from caltest.lenses import within
from caltest.text import sizes
from caltest.text import vocabulary as words
from caltest.text.vocabulary import capital, group_name, limit, listed, where

_MOST_TOLD = 3  # groups, or means
_MOSTLY = 0.75  # of an error, from where on it is said to be mostly that of some rows
_STRIKING = 1.5  # times the mean error, from where on a part of a view is named too


def size(audit: Audit) -> str:
    """Return the paragraph below the headline: the size, where else, and what is not settled."""
    return " ".join([*found(audit), *unsettled(audit)])


def found(audit: Audit) -> list[str]:
    """Return the size, and where else, in sentences."""
    texts = [f"In doubt: {premise}" for premise in audit.premises]
    texts += [
        f"Column {shown_column(column)!r}: {rows:,} of {audit.n_samples:,} rows are in groups too "
        f"small to check; merge its values, or lower {Argument('min_rows')}."
        for column, rows in audit.unseen.items()
    ]
    few = [each for each in audit.skipped if each.rows and "fewer than" in each.reason]
    left = [f"{each.what} ({each.rows:,} rows)" for each in few] if not audit.unseen else []
    unchecked = f"Too few rows to look at: {listed(left)}." if left else ""
    view = audit.worst
    if audit.verdict == "within":
        texts += [*sizes.cannot_fail(audit), *_shown_within(audit), *_halves(audit)]
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
        whole = sizes.beyond(audit)[0] if material else None
        strongest = whole if isinstance(whole, View) else audit.told
        halves = list(_halves(audit))
        texts += [_size_beyond(audit), *halves] if material else halves
        if strongest is not None and strongest.event is not None:
            texts.append(_sizes(strongest, audit, counts=not halves, named=material))
        texts += [proved for proved in (at_least(strongest, audit),) if proved and not halves]
        if not material and not audit.found and audit.rests and not audit.impossible:
            texts.append(finding_of_rest(sizes.found_rest(audit), audit))
        if strongest is not None:
            if sizes.tends(audit, strongest) and not any(shows(audit, each) for each in audit.views):
                texts.append("No single interval or quantile is shown to be wrong.")
            texts += _beside(strongest, audit)
    elif audit.verdict == "undecided":
        texts += _largest(audit)
    else:
        told = audit.sensitivity
        if told is not None and told.error is not None:
            view = audit.views[told.view]
            texts.append(
                f"If {words.subject(view)} were too high, or too low, by about "
                f"{about_points(told.error)} throughout{where(view.group)}, an audit like this would "
                "find it 4 times in 5."
            )
        texts += _largest(audit)
    if audit.rejected and audit.impossible:
        first = sizes.zeros_come_first(audit)
        texts += [] if first else [f"{sizes.impossible_rows(audit)}."]
        own = [each for each in audit.views if each.lens == audit.views[0].lens and each.impossible]
        own = [
            of
            for of in own
            if of.group and len(of.conditions) == 1 and not words.made_by(audit, of.group)
        ]
        own.sort(key=lambda each: -(each.impossible or 0) / each.rows)
        by_group = [f"{of.impossible:,} of {of.rows:,}{where(of.group)}" for of in own[:_MOST_TOLD]]
        if by_group:
            larger = ", the largest shares" * (len(own) > _MOST_TOLD)
            texts.append(f"By group{larger}: {listed(by_group)}.")
        also = [each for each in audit.views if shows(audit, each) or finds_mean(audit, each)]
        if first and also:
            means_of = listed(
                f"{words.view_name(each)} ({sizes.means(each)})" for each in also[:_MOST_TOLD]
            )
            texts.append(f"Also found wrong on average: {means_of}.")
    if not audit.rejected or audit.verdict == "within":
        texts += [unchecked] if unchecked else []
    return texts


def unsettled(audit: Audit) -> list[str]:
    """Return what is not settled, what would settle it, and what is; nothing of other verdicts."""
    if audit.verdict != "undecided":
        return []
    inside = [sizes.whole_name(each, audit) for each in audit.views if each.inside]
    texts, told = [], audit.told if audit.materiality is not None else None
    far = max(audit.unsettled, key=lambda each: _farthest(each, audit), default=None)
    if far is not None and not (isinstance(far, View) and told is not None and far.key == told.key):
        texts.append(f"An error of {_possible(far, None, audit)} is still possible.")
    texts += [*sizes.needs(audit), *sizes.unvouched(audit)]
    return [*texts, f"Shown to be within your limit: {listed(inside)}."] if inside else texts


def _sizes(view: View, audit: Audit, counts: bool = True, named: bool = False) -> str:
    """Return predicted and observed, the interval, and events; ``named``: with the rows they are of."""
    text = capital(sizes.means(view))
    if named:
        text = f"On average over {_rows_of(view, audit)}, {sizes.means(view)}"
    if not counts:
        return f"{text}." if named else f"On average: {sizes.means(view)}."
    expected, seen = (rate * view.rows for rate in sizes.rates(view))
    rows = counted(view.rows, words.rows_called(audit))
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
        events = (
            f"{counted(round(view.events.observed), 'event')} came in {rows} while they were followed."
        )
    if words.is_stated(view.lens):
        place = "in it" if words.kind_of(view.lens) == "interval" else "at or below it"
        outcomes = words.outcomes_called(audit)
        events = f"Of {rows}, {expected:,.0f} {outcomes} were expected {place}, and {seen:,.0f} are."
    if view.lens == "top_label":
        events = f"It expected to be right in {expected:,.0f} of {rows}, and was right in {seen:,.0f}."
    written = sizes.times if sizes.told_as_ratio(view) else sizes.interval
    told = written(view, audit.confidence)
    if view.side is None and finds_mean(audit, view):
        told += ". The check of the mean is sharper than this interval, which holds for all at once"
    if named or audit.sampled or audit.effective_n is not None:  # of a population, not of these rows
        return f"{text}: {told}."
    return f"{text}: {told}. {events}"


def finding_of_rest(rest: Rest, audit: Audit) -> str:
    """Return what was found in the rows that a group leaves, as a sentence."""
    rows = counted(rest.rows, "row")
    return f"{capital(sizes.means(rest))} in these {rows}: {sizes.interval(rest, audit.confidence)}."


def _size_beyond(audit: Audit) -> str:
    """Return the size of what is beyond the limit, as the headline has named it."""
    whole, part = sizes.beyond(audit)
    if isinstance(whole, Rest):
        return finding_of_rest(whole, audit)
    wholes = dict.fromkeys(each.key for each, _ in audit.beyond if isinstance(each, View))
    others = [each for each in audit.views if each.key in wholes and each.key != whole.key]
    names = listed(sizes.whole_name(each, audit) for each in others)
    also = f" Beyond it too: {names}." if others else ""
    if part is None:
        told = sizes.times if sizes.told_as_ratio(whole) else sizes.interval
        rows = f"{'these' if whole.group else 'all'} {counted(whole.rows, 'row')}"
        return f"{capital(sizes.means(whole))} in {rows}: {told(whole, audit.confidence)}.{also}"
    ends = " to ".join(dict.fromkeys(percents(part.start, part.end)))
    return (
        f"Beyond your limit: for predictions from {ends}{where(whole.group)}, {sizes.means(part)}, "
        f"{sizes.interval(part, audit.confidence)}.{also}"
    )


def _rows_of(view: View, audit: Audit) -> str:
    """Return which rows a mean is of, and of more than two classes, of which probability."""
    rows = f"the rows{where(view.group)}" if view.group else "all rows"
    same = audit.n_classes == 2 or (audit.beyond and sizes.beyond(audit)[0].lens == view.lens)
    return rows if same else f"{rows}, of {words.lens_name(view)}"


def _worst_part(view: View) -> Iterable[str]:
    """Name the tenth or fifth that is furthest off, if it is much further off than the mean."""
    finest = [part for part in view.parts if part.of > 2]
    part = max(finest, key=lambda each: each.proved, default=None)
    if part is None or part.side is None or sizes.told_as_ratio(view):
        return
    if part.proved < _STRIKING * abs(view.error or 0.0):
        return
    name = {0: "lowest", len(finest) - 1: "highest"}.get(part.place)
    predicted, observed = percents(part.predicted, part.observed)
    noun = sizes.PARTS[part.of]
    if sizes.is_tied(part, view.rows):
        rows = f"the {counted(part.rows, 'row')} {sizes.with_predictions(part)}"
    elif name:
        rows = f"the {noun} of these rows with the {name} predictions"
    else:
        rows = f"the {noun} {sizes.with_predictions(part)}"
    yield f"The error depends on the prediction: in {rows}, predicted {predicted}, observed {observed}."


def _shown_within(audit: Audit) -> Iterable[str]:
    """Say that all are within the limit, how sure that is, and what may hide in parts."""
    own, wholes = limit(audit), audit.wholes
    few = any(each.rows is not None and "fewer than" in each.reason for each in audit.skipped)
    groups = "groups with enough rows" if few else "groups"
    left = f", of {groups}, and of the rows outside each group" if audit.rests else f" and {groups}"
    every = f"The average errors of all rows{left} are" if len(wholes) > 1 else "The average error is"
    larger = "If one were" if len(wholes) > 1 else "If it were"
    about = "at most" if all(each.exact for each in wholes) else "about"
    yield (
        f"{every} shown to be within {own}. {larger} larger, we would wrongly say this in {about} "
        f"{confidence_text(min(audit.alpha, 0.25))} of cases. {supposed(audit)}".rstrip()
    )
    views = [each for each in wholes if isinstance(each, View)]
    largest = max(views, key=lambda each: abs(each.error))
    told = sizes.means(largest)
    yield (
        f"The largest error, as estimated, is that of {sizes.whole_name(largest, audit)}: {told}."
        if len(wholes) > 1
        else f"{capital(told)}."
    )
    parts = [(view, part) for view, part in intervals(audit) if part is not None]
    hidden = [one for one in parts if against_limit(audit, one[1]) != "inside"]
    if hidden:
        view, part = max(hidden, key=lambda one: _farthest(one[1], audit))
        yield (
            "Of single parts of the predictions fewer rows tell less: an error of "
            f"{_possible(view, part, audit)} is not excluded."
        )


def supposed(audit: Audit) -> str:
    """Say what "within" supposes about clusters if it rests on intervals of t; else ""."""
    share = math.ceil(1000.0 * (audit.could_miss or 0.0)) / 10.0 if audit.verdict == "within" else 0.0
    text = (
        f"This supposes that no effect is confined to fewer than {share:g}% of the clusters; to rule "
    )
    return f"{text}that out, use {Argument('guaranteed', True)}." if share else ""


def _possible(whole: View | Rest, part: Part | None, audit: Audit) -> str:
    """Return how large an error is possible, and where."""
    far = _farthest(part or whole, audit)
    if audit.materiality is not None:
        of = part or whole
        side = "under" if -(of.low or 0.0) > (of.high or 0.0) else "over"
        size = f"up to {outward_points(0.0, far)[1]} points"
        size += "" if words.is_stated(of.lens) else f" {words.counted_way(side, of.lens)}"
    else:
        size = (
            f"a factor of up to {math.ceil(100.0 * far) / 100.0:,.2f}"
            if far < math.inf
            else "any factor"
        )
    name = sizes.whole_name(whole, audit)
    if part is not None and audit.n_classes != 2:
        name = f"the predictions of {name}"
    if part is not None and sizes.is_tied(part, whole.rows):
        return f"{size} in {part.rows:,} of {name}, {sizes.with_predictions(part)}"
    return f"{size} in {name}" if part is None else f"{size} in one {sizes.PARTS[part.of]} of {name}"


def _farthest(of: Sized, audit: Audit) -> float:
    """Return the largest error that an interval holds: in points, or as a ratio."""
    if audit.materiality is not None or audit.materiality_ratio is None:
        return of.most
    predicted, (least, most) = of.predicted or 0.0, of.true_rates
    if least <= 0.0 or predicted <= 0.0:  # the true rate may be 0, or what is predicted is
        return math.inf
    return max(predicted / least, most / predicted)


def _beside(view: View, audit: Audit) -> Iterable[str]:
    """Say which other entries of vectors are found to be wrong, and which go together wrongly."""
    own = within(view.lens)[0]
    named = dict.fromkeys(each.view.key for each in audit.found)
    others = [each for each in audit.views if each.key in named and each.group is None]
    others = [each for each in others if each.key != view.key and (within(each.lens)[0] or own) != own]
    pairs = [each for each in audit.views if each.key in named and words.kind_of(each.lens) == "pair"]
    every = [*others, *(pair for pair in pairs if pair.key != view.key)]
    told = [
        f"{words.subject(each).removeprefix('the predicted ')} are {' and '.join(ways)}"
        for each in every
        if (ways := sizes.tends(audit, each))
    ]
    if told:
        yield f"Also found: {listed(told)}."


def _elsewhere(view: View, audit: Audit) -> Iterable[str]:
    """Say which groups include the worst one and are wrong with it, and that others are not found."""
    found = {check.view.key for check in audit.found}
    own = view.conditions
    alike = [each for each in audit.views if each.lens == view.lens and each.key != view.key]
    around = [each for each in alike if shows(audit, each) == shows(audit, view) and each.holds(view)]

    def because(wholes: Sequence[View]) -> str:
        """Say how much of larger views' error is this one's, where rows count alike."""
        alike = audit.effective_n is None and not audit.sampled
        alike = alike and not any(each.unfollowed for each in (view, *wholes))
        of = max(abs(each.error * each.rows) for each in wholes)
        mostly = alike and abs(view.error * view.rows) >= _MOSTLY * of
        return f"{'mostly' if mostly else 'partly'} because of these"

    side = words.way(shows(audit, view), view.lens)
    for each in around if view.group else ():
        if each.group is None:
            size = sizes.estimated(each.error or 0.0, each.lens)
            all_rows = "Over all rows it is" if words.is_stated(view.lens) else "All rows together are"
            yield f"{all_rows} {size}, {because([each])}."
    larger = [each for each in around if each.group]
    if larger:
        parents = [each.group for each in larger]
        rests = [each for each in audit.rests if each.group == view.group and each.parent in parents]
        yield f"Also {side}, {because(larger)}: {listed(_named(larger))}."
        if not all(each.inside for each in rests if each.lens == view.lens):
            other = "Its other rows are" if len(larger) == 1 else "Their other rows are"
            yield f"{other} not shown to be right."
    others = [
        each
        for each in alike
        if each.group and each not in around and not (own and own <= each.conditions)
    ]
    worse = [each for each in others if shows(audit, each)]
    besides, through = wrong_besides(view, audit) if view.group else ([], [])
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
        which = "it is" if len(worse) == 1 else "shown to be furthest off is"
        yield f"Also found in {groups_found}; {which} {group_name(far.group)}: {sizes.means(far)}."
    elif besides:
        more = [f"{len(besides) - _MOST_TOLD:,} more"] * (len(besides) > _MOST_TOLD)
        yield f"Also wrong on average: {listed([*_named(besides[:_MOST_TOLD]), *more])}."
    if through:
        names = listed(group_name(each.group) for each in through)
        yield f"No average error was found in {names} outside of these rows."


def wrong_besides(view: View, audit: Audit) -> tuple[list[View], list[View]]:
    """Return other groups whose mean is wrong, and those of which only these rows are found to be.

    Of the former those that explain an error, and those that neither hold one of these, nor are a part
    of another; those furthest off first.
    """
    found = [each.view for each in audit.found if each.view.group]

    def through(whole: View) -> bool:
        """Say whether nothing is found in what this view leaves of a group, nor in any part of it."""
        own, around = view.conditions, whole.conditions
        left = [each for each in audit.rests if each.key == whole.key and not each.found]
        left = [each for each in left if own <= set(each.group.conditions)]
        parts = [each.conditions for each in found]
        return bool(left) and not any(around < part and not own <= part for part in parts)

    side = shows(audit, view)
    wrong = [each for each in audit.views if each.lens == view.lens and each.group != view.group]
    wrong = [each for each in wrong if each.group and shows(audit, each) and not view.holds(each)]
    wrong = [each for each in wrong if not (each.holds(view) and shows(audit, each) == side)]
    only_here = [each for each in wrong if through(each)]
    wrong = [each for each in wrong if each not in only_here]
    explaining = [each for each in wrong if each in audit.explanations]
    others = [each for each in wrong if each not in explaining]
    others = [each for each in others if not any(each.holds(one) for one in explaining)]
    others = [each for each in others if not any(one.holds(each) for one in (*explaining, *others))]
    return sorted([*explaining, *others], key=lambda each: -each.proved), only_here


def _named(views: Sequence[View]) -> list[str]:
    """Return groups with what is predicted and observed in them."""
    return [f"{group_name(each.group)} ({sizes.means(each)})" for each in views]


def _largest(audit: Audit) -> Iterable[str]:
    """Say how large an average error can be: over all rows, and in groups, if that is not much."""
    whole = [view for view in audit.views if view.low is not None and view.group is None]
    if audit.at_most is None or not whole or whole[0].inside:
        return
    all_rows, of_views = max(view.most for view in whole), sizes.most_of_views(audit)
    grouped = of_views > all_rows
    least = max((view for view in audit.views if view.low is not None), key=lambda each: each.most)
    small = "; some groups were not followed so long" if least.unfollowed else ""
    small = small or "; some groups are too small to judge" if grouped else ""
    where_else, most = ("groups", of_views) if grouped else ("parts of them", audit.at_most)
    if most <= sizes.LITTLE and audit.at_most > all_rows:
        small = f", and of up to {outward_points(0.0, most)[1]} points in some {where_else}"
    small = "" if audit.verdict == "undecided" else small  # of which more is said
    sure, up_to = f"({confidence_text(audit.confidence)} confidence)", outward_points(0.0, all_rows)[1]
    yield f"These data allow an average error of up to {up_to} points {sure} over all rows{small}."


def _halves(audit: Audit) -> Iterable[str]:
    """Name the halves of all rows, if both are proved wrong, in opposite directions."""
    view = next((each for each in audit.views if each.group is None and each.parts), None)
    halves = [part for part in (view.parts if view else ()) if part.of == 2]
    even = len(halves) == 2 and not any(sizes.is_tied(half, audit.n_samples) for half in halves)
    if view and even and {part.side for part in halves} == {"over", "under"}:
        lower, upper = (
            f"{about_points(abs(part.error), 'point')} {words.WRONG[part.side or '']} "
            f"({' to '.join(sizes.distances(part))})"
            for part in halves
        )
        sure = confidence_text(audit.confidence)
        of = "" if audit.n_classes == 2 else f"Of {words.lens_name(view)}, "
        both = f"the half of the rows with lower predictions is {lower}, the other half {upper}"
        yield capital(f"{of}{both}, with {sure} confidence.")


def at_least(view: View | None, audit: Audit) -> str | None:
    """Return how wrong some predictions are at least, as a sentence; None if nothing is proved."""
    sides = [] if view is None else [("over", view.at_least_over), ("under", view.at_least_under)]
    texts = [
        f"{'some predictions are' if not k else 'others'} at least {points(bound)} {words.WRONG[side]}"
        for k, (side, bound) in enumerate((side, bound) for side, bound in sides if bound)
    ]
    if not texts:
        return None
    return f"{capital('; '.join(texts))} ({confidence_text(audit.confidence)} confidence)."
