"""An audit in words: headline, size of the error, next steps, confidence, and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from caltest import _numbers as numbers
from caltest._numbers import confidence_text, counted, percents, points, pvalue, unit, with_unit
from caltest._visible import line, shortened, shown, shown_column
from caltest.auditing.limits import BOTH
from caltest.auditing.options import COVERAGE
from caltest.auditing.result import Audit
from caltest.auditing.story import ends_lacking, in_order, slices_of, tends
from caltest.auditing.views import Check, Part, Rest, Slice, View
from caltest.exceptions import Argument
from caltest.lenses import within
from caltest.pvalues import CORRECTIONS
from caltest.results import Page
from caltest.story import Finding, Story
from caltest.text import captions, laid_out, paragraph, said, sizes, width
from caltest.text import vocabulary as words
from caltest.text.advice import advice
from caltest.text.vocabulary import capital, inside, lens_name, limit, subject, where

# ------------------------------------------------------------------ verdict


@numbers.in_unit_of
def chip(audit: Audit) -> tuple[str, str]:
    """Return the verdict in a few words, and its relation to the limit."""
    own, found = limit(audit), audit.story.found
    by = points(audit.tolerance or 0.0)
    unlimited = f"beyond the tolerance of {by}" if audit.tolerance else "no limit set"
    small = "an error was found; on average it is too small to matter"
    small = "an error was found; on average none that matters" if audit.limit.only else small
    small = "an error was found on the side that does not matter" if audit.story.spared else small
    larger = "it matters" if audit.limit.only else "it is larger"
    open_ = small if audit.story.spared else f"an error was found; whether {larger} is not settled"
    return {
        "material": ("Material error", f"larger than your limit of {own}"),
        "likely": ("Likely material error", f"estimated to be larger than your limit of {own}"),
        "undecided": (f"Not shown to be {inside(audit)}", open_ if found else "not settled either way"),
        "within": (f"Within your limit of {own}", small if found else "on average; no error was found"),
        "found": ("Error found", unlimited),
        "not found": ("No error found", "which does not prove calibration"),
    }[audit.verdict]


def headline(audit: Audit) -> str:
    """Return the answer in one sentence: event, group, direction and size, where proved."""
    story, own = audit.story, limit(audit)
    if story.verdict == "within" and audit.limit.only and not unit().of_outcomes:
        return _promise(audit)
    if not story.found:
        if audit.tolerance is not None:
            return f"No prediction was shown to be wrong {_by_tolerance(audit)}."
        if story.verdict == "within":
            every = "Every average error is" if len(audit.views) > 1 else "The average error is"
            return f"{every} shown to be within your limit of {own}."
        return "No error was found." if story.verdict == "not found" else _undecided(audit)
    lead = story.subject
    if story.verdict == "within":
        who = subject(lead.of if lead and isinstance(lead.of, View) else audit.views[0])
        return f"{capital(who)} {_is(who)} wrong, but on average by less than your limit of {own}."
    return "An error was found." if lead is None else _HEADLINES[lead.kind](audit, lead)


def _promise(audit: Audit) -> str:
    """Return the sentence that a one-sided promise such as "at least 90%" is kept."""
    view, more = audit.views[0], "least" if audit.limit.only == "over" else "most"
    rate = percents(*sizes.rates(view), 1)[0]
    whose = f"{capital(subject(view))} keeps its promise of at {more} {rate}"
    whose = "Every average keeps its promise" if len(audit.views) > 1 else whose
    return f"{whose}: it is shown to be {inside(audit)}."


def _by_tolerance(audit: Audit) -> str:
    by = f"by more than {points(audit.tolerance)}" if audit.tolerance else ""
    if audit.rounding:
        by += f"{' and' if by else 'by more than'} what rounding to {audit.rounding:g} explains"
    return by or "in either direction"


def _mean(audit: Audit, lead: Finding) -> str:
    """Return the largest proved error, the whole first, with one in the opposite direction."""
    story, view = audit.story, lead.of
    who, own = capital(subject(view)), f"{sizes.too(view, audit)}{where(view.group)}"
    texts = [own]
    if (whole := story.whole) is not None:
        rows = " overall" if whole.of.group is None else where(whole.of.group)
        texts = [f"{sizes.too(whole.of, audit)}{rows}", own]
    if (other := story.opposite) is not None:
        that = "" if other.of.lens == view.lens else f"that of {lens_name(other.of)} "
        texts.append(f"{that}{sizes.too(other.of, audit)}{where(other.of.group)}")
    first, *others = texts
    # Words already used for the first size are not repeated.
    begun = f"{sizes.way_of(view, audit)}: about "
    begun = begun if words.is_stated(view.lens) or begun in own else "about "
    brief = [text.replace(begun, "").replace("percentage points", "points") for text in others]
    *most, last = [first, *brief]
    return f"{who} is {', '.join(most)}{', and ' if most else ''}{last}."


def _part(audit: Audit, lead: Finding) -> str:
    who, only = subject(lead.of), audit.limit.only
    how = "wrong" if only is None else words.counted_way(only, lead.of.lens)
    by = "by more than your limit" + ("" if only else f" of {limit(audit)}")
    return f"{capital(who)} {_is(who)} {how} {by} for some predictions{where(lead.of.group)}."


def _rest(audit: Audit, lead: Finding) -> str:
    rest = lead.of
    who = subject(next(each for each in audit.views if each.lens == rest.lens))
    size = f"about {sizes.estimated(rest.error, rest.lens)}" if lead.side else "wrong on average"
    return f"{capital(who)} {_is(who)} {size}{sizes.left_by(rest)}."


def _average(audit: Audit, lead: Finding) -> str:
    view = lead.of
    who, rows = capital(subject(view)), where(view.group)
    if audit.tolerance is not None:
        return f"{who} is wrong on average {_by_tolerance(audit)}{rows}."
    return f"{who} is wrong on average{rows}; as estimated, {sizes.estimated(view.error, view.lens)}."


def _some(audit: Audit, lead: Finding) -> str:
    view = lead.of
    who, rows = subject(view), where(view.group)
    if audit.tolerance is not None:
        return f"Some predictions of {lens_name(view)} are wrong {_by_tolerance(audit)}{rows}."
    by = ", depending on the features" if lead.kind == "features" else ""
    some = f"wrong for some predictions{rows}{by}"
    return f"{capital(who)} {_is(who)} {some}; on average it may be right."


def _shape(audit: Audit, lead: Finding) -> str:
    extreme = "too extreme" if lead.side == "over" else "not extreme enough"
    tends = words.TENDS[lead.side or ""]
    return f"The model is {tends}{where(lead.of.group)}: its probabilities are {extreme}."


def _count(audit: Audit, lead: Finding) -> str:
    events = lead.of.events
    seen, expected = (f"{each:,.0f}" for each in (events.observed, events.expected))
    more, rows = "More" if lead.side == "under" else "Fewer", where(lead.of.group)
    return f"{more} events came than the model expects{rows}: {seen}, and {expected} were expected."


def _distribution(audit: Audit, lead: Finding) -> str:
    which = "no single class or group stands out"
    if not audit.n_classes:
        ways = (f"they are {each}" for each in tends(audit, lead.of))
        which = words.listed(ways) or "no interval and no group stands out"
    sized = (each for each in audit.posterior if lead.of.lens == f"pair:{','.join(each.names)}")
    which += "".join(f": {words.posterior_size(each).removeprefix('correlation: ')}" for each in sized)
    return f"{capital(subject(lead.of))} are wrong{where(lead.of.group)}; {which}."


def _order(audit: Audit, lead: Finding) -> str:
    told = next(each.order for each in audit.found if each.order and each.view.key == lead.of.key)
    who = subject(lead.of)
    return f"{capital(who)} {_is(who)} not right given earlier outcomes{where(lead.of.group)}. {told}"


_HEADLINES: Mapping[str, Callable[[Audit, Finding], str]] = {
    "mean": _mean,
    "part": _part,
    "rest": _rest,
    "average": _average,
    "some": _some,
    "features": _some,
    "shape": _shape,
    "count": _count,
    "distribution": _distribution,
    "order": _order,
    "zeros": lambda audit, _: f"{sizes.impossible_rows(audit)}.",
}


def _is(who: str) -> str:
    several = "distributions", "correlations", "joint", "probabilities"
    return "are" if who.startswith(tuple(f"the predicted {each}" for each in several)) else "is"


# ------------------------------------------------------------------ unsettled errors

#: Reasons to withhold "within", by the name of the premise.
_WITHHELD = {
    "independent rows": "rows do not look independent",
    "unseen rows": "the rows look as if they were used to fit the model",
    "groups known before the outcome": "a column of groups is a function of the outcome",
}


def _undecided(audit: Audit) -> str:
    """Return what is not settled and why, when no error was found."""
    story = audit.story
    texts = [_WITHHELD[each.name] for each in audit.withheld]
    beyond = [each.of for each in story.marks.values() if each.place == "may be beyond"][:1]
    texts += [f"the error of {sizes.whole_name(of, audit)} may be beyond your limit" for of in beyond]
    texts += [f"{each.what} could not be checked" for each in story.dropped]
    by_place = _by_place(story)
    stuck = [*by_place["close"], *by_place["estimated"], *by_place["follow-up"]]
    if not texts and audit.rows_needed and not any(isinstance(each, View) for each in stuck):
        rows = f"{sizes.about(audit.rows_needed)} {words.rows_called(audit)}s"
        every = "all averages" if len(audit.views) > 1 else "the average"
        takes = f"No error was found. To show {every} to be {inside(audit)} takes {rows}"
        return f"{takes}; there {'are' if audit.n_samples > 1 else 'is'} {audit.n_samples:,}."
    if not texts and audit.limit.only and not any(audit.limit[:3]) and by_place["never"]:
        largest = max(by_place["never"], key=lambda each: sizes.own_most(each, audit))
        of = f"; the largest that is possible is of {sizes.whole_name(largest, audit)}"
        of *= len(audit.views) > 1
        return f"No error that matters was found{of}: {sizes.interval(largest, audit)}."
    few = "rows" if audit.clusters is None else "independent clusters"
    reasons = ((why, by_place[place]) for place, why in _WHY.items())
    texts += [why.format(_counted(which, audit), few=few) for why, which in reasons if which]
    why = ", and ".join(dict.fromkeys(texts)) or "no view has a single probability"
    return f"No error was found, but {why}."


_WHY = {
    "follow-up": "too short a follow-up for {}",
    "few": "too few {few} for {}",
    "never": "no number of rows would settle {}",
    "ends": "ends of outcomes must be known to settle {}",
    "estimated": "the error of {} may be beyond your limit",
    "close": "the error of {} is close to your limit",
}


def _by_place(story: Story) -> dict[str, list[Any]]:
    """Return the unsettled errors by reason."""
    found: dict[str, list[Any]] = {place: [] for place in _WHY}
    for each in story.unsettled:
        found.get(each.place, []).append(each.of)
    return found


def _counted(some: Sequence[View | Rest], audit: Audit) -> str:
    """Return some of the averages that must be within the limit, as "3 of 42 averages"."""
    views = [each for each in some if isinstance(each, View)]
    if len(one := views or some) == 1:
        return sizes.whole_name(one[0], audit)
    if not views:
        return f"the rows outside of {counted(len(some), 'group')}"
    return f"{len(views):,} of {sum(each.low is not None for each in audit.views):,} averages"


def unsettled(audit: Audit) -> list[str]:
    """Return what is not settled and what would settle it; nothing unless the verdict is undecided."""
    if audit.verdict != "undecided":
        return []
    story, texts = audit.story, list[str]()
    by_place = _by_place(story)
    if lost := by_place["follow-up"]:
        shown_so = f"to show {_counted(lost, audit)} to be {inside(audit)}"
        texts.append(f"Rows were not followed long enough {shown_so}, and more rows would not show it.")
    if few := [*by_place["few"], *by_place["ends"], *by_place["never"]]:
        first, *others = [each for each in few if isinstance(each, View)] or few
        name = words.begun(sizes.whole_name(first, audit))
        never = first.rows_needed is None
        ways = ("are", "is", "not shown either") if never else ("have", "has", "too few")
        more = f" {len(others):,} more {ways[not others[1:]]} {ways[2]}." if others else ""
        enough = "no number of rows like these would show it"
        enough = enough if never else f"{sizes.enough(first, audit)} would show it, if it is calibrated"
        there = f"There {'are' if first.rows > 1 else 'is'} {counted(first.rows, 'row')}"
        why = f"an error of {sizes.farthest(first, audit)} is possible. {there}, and {enough}"
        why = _without_ends(first, audit) if first in by_place["ends"] else why
        texts.append(f"{name} is not shown to be {inside(audit)}: {why}.{more}")
    if close := [*by_place["estimated"], *by_place["close"]]:
        size, name = sizes.estimated(close[0].error, close[0].lens), sizes.whole_name(close[0], audit)
        may = "may be beyond" if by_place["estimated"] else "is not shown to be within"
        texts.append(f"The error of {name} {may} your limit; as estimated, it is {size}.")
    for each in story.dropped:
        most = "" if each.most is None else f" of up to {numbers.up_to(each.most)}"
        texts.append(f"Not checked: {each.what} ({each.reason}). There an error{most} is possible.")
    return texts


def _without_ends(of: View | Rest, audit: Audit) -> str:
    """Return why errors cannot be proved small on a side where outcomes have no known end."""
    open_ = " or ".join({"low": "too high", "high": "too low"}[end] for end in ends_lacking(audit))
    seen = f"its interval lies inside, but is not exact where forecasts are {open_}"
    if audit.limit.place(of.predicted or 0.0, of.own_low or 0.0, of.own_high or 0.0) != "inside":
        seen = f"an error of {sizes.farthest(of, audit)} is possible"
    return f"{seen}; without {words.ends_wanted(audit)} no number of rows would show it"


# ------------------------------------------------------------------ size and place of errors

_MOST_TOLD = 2  # groups or means to name


def size(audit: Audit) -> str:
    """Return the paragraph below the headline: sizes, other places, and unsettled errors."""
    return " ".join([*found(audit), *unsettled(audit)])


def found(audit: Audit) -> list[str]:
    """Return the size of the error and where else errors are, as sentences."""
    story, lead = audit.story, audit.story.subject
    texts = [f"In doubt: {premise}" for premise in story.premises]
    for column, rows in audit.unseen.items():
        small = f"{rows:,} of {audit.n_samples:,} rows are in groups too small to check"
        do = f"merge its values, or lower {Argument('min_rows')}"
        texts.append(f"Column {shown_column(column)!r}: {small}; {do}.")
    if story.verdict == "within":
        texts += [*_pointless(audit), *_shown_within(audit), *_halves(audit)]
    elif not story.found:
        told = audit.sensitivity
        if story.verdict == "not found" and told is not None and told.error is not None:
            view = audit.views[told.view]
            ways = "too high, or too low," if len(audit.sides) > 1 else "too low"
            error = f"{ways} by about {numbers.about_points(told.error)} throughout{where(view.group)}"
            would = "an audit like this would find it 4 times in 5"
            texts.append(f"If {subject(view)} were {error}, {would}.")
    elif lead is not None:
        texts += [*_of_lead(audit, lead), *_elsewhere(audit, lead)]
    leads = "" if story.verdict == "within" else "order"
    lead_key = lead.of.key if lead is not None and lead.kind == leads else None
    more = {each.view.key: each for each in audit.found[::-1] if each.order}
    rest = (each for key, each in more.items() if key != lead_key)
    texts += [f"{words.begun(words.view_name(x.view))}: {x.order}" for x in rest][:_MOST_TOLD]
    if story.spared and story.verdict != "within":  # else the verdict says so
        texts.append("This error is on the side that does not matter.")
    if short := max(audit.described, key=lambda view: view.low or 0.0, default=None):
        seen, *ends = (numbers.percent(each, 0) for each in (short.observed or 0.0, *short.true_rates))
        if short.side == "over":
            covered = f"Coverage is {seen} ({' to '.join(ends)}){where(short.group)}"
            texts.append(f"{covered}; the claim is of all rows together.")
    zeros = lead is not None and lead.kind == "zeros" and story.verdict != "within"  # as the headline
    if story.found and audit.impossible and not zeros:
        texts.append(f"{sizes.impossible_rows(audit)}.")
    return texts


def _of_lead(audit: Audit, lead: Finding) -> Iterable[str]:
    """Yield the size of the main finding."""
    if isinstance(lead.of, Rest):
        yield finding_of_rest(lead.of, audit)
        return
    if (view := lead.of) is None or view.event is None:
        return
    halves = list(_halves(audit)) if lead.kind != "mean" else []
    if lead.part is not None:
        ends = " to ".join(dict.fromkeys(percents(lead.part.start, lead.part.end)))
        rows = f"for predictions from {ends}{where(view.group)}"
        error = f"{sizes.means(lead.part)}, {sizes.interval(lead.part, audit)}"
        yield f"Beyond your limit: {rows}, {error}."
        rows = f"the rows{where(view.group)}" if view.group else "all rows"
        rows += "" if words.is_single(audit) else f", of {lens_name(view)}"
        yield f"On average over {rows}, {sizes.means(view)}: {sizes.interval(view, audit)}."
        return
    yield from halves
    if halves or audit.tolerance is not None:
        yield f"On average: {sizes.means(view)}."
    else:
        yield _sizes(view, audit, lead)
        if (part := audit.story.striking) is not None and not sizes.told_as_ratio(view, audit):
            yield _worst_part(view, part)
    if (proved := at_least(view, audit)) and not halves and lead.kind != "mean":
        yield proved


def _sizes(view: View, audit: Audit, lead: Finding) -> str:
    """Return predicted and observed, the interval, and numbers of events."""
    whose = f"{where(view.group).strip()}: " if audit.story.whole else ""  # the headline has two
    text = capital(f"{whose}{sizes.means(view)}")
    expected, seen = (rate * view.rows for rate in sizes.rates(view))
    rows = counted(view.rows, words.rows_called(audit))
    came, were = counted(round(expected), "event"), "was" if round(seen) == 1 else "were"
    events = f"The model expected {came} in {rows}; {seen:,.0f} {were} observed."
    if audit.is_censored:  # events refer to the whole follow-up, not only to the horizon
        return f"{text}: {sizes.interval(view, audit)}."
    if words.is_stated(view.lens):
        place = "in it" if words.kind_of(view.lens) == "interval" else "at or below it"
        outcomes = words.outcomes_called(audit)
        events = f"Of {rows}, {expected:,.0f} {outcomes} were expected {place}, and {seen:,.0f} are."
    elif view.lens == COVERAGE:
        events = f"Of {rows}, {expected:,.0f} were to be covered, and {seen:,.0f} are."
    elif view.lens == "top_label":
        events = f"It expected to be right in {expected:,.0f} of {rows}, and was right in {seen:,.0f}."
    told = (sizes.times if sizes.told_as_ratio(view, audit) else sizes.interval)(view, audit)
    if lead.kind == "average" and audit.limit.only is None:
        alone = sizes.between(view.own_low or 0.0, view.own_high or 0.0, view.lens)
        told = f"by itself {alone} ({sizes.own_sure(audit)}); allowing for all views at once, {told}"
    text = f"{text}: {told}."
    uncounted = audit.sampled or audit.effective_n is not None or audit.functional is not None
    return text if uncounted else f"{text} {events}"


def finding_of_rest(rest: Rest | Slice, audit: Audit) -> str:
    """Return the finding in all other rows of a larger group, as a sentence."""
    rows = counted(rest.rows, "row")
    return f"{capital(sizes.means(rest))} in these {rows}: {sizes.interval(rest, audit)}."


def _worst_part(view: View, part: Part) -> str:
    """Return a sentence on the tenth or fifth that is much further off than the mean."""
    finest = [each for each in view.parts if each.of == part.of]
    name = {0: "lowest", len(finest) - 1: "highest"}.get(part.place)
    noun, tied = sizes.PARTS[part.of], part.is_tied(view.rows)
    rows = f"the {counted(part.rows, 'row') if tied else noun} {sizes.with_predictions(part)}"
    if name and not tied:
        rows = f"the {noun} of these rows with the {name} predictions"
    seen = "predicted {}, observed {}".format(*percents(part.predicted, part.observed))
    return f"The error depends on the prediction: in {rows}, {seen}."


def _elsewhere(audit: Audit, lead: Finding) -> Iterable[str]:
    """Yield the error around the subject, whether a group explains it, and other errors."""
    story = audit.story
    if (whole := story.whole) is not None:
        rows = "Over all rows" if whole.of.group is None else capital(where(whole.of.group).strip())
        yield f"{rows}: {sizes.means(whole.of)}, {sizes.interval(whole.of, audit)}."
    if story.explains:
        yield "In the other rows of the larger groups no average was found wrong."
    elif story.alone:
        yield "No error was found in the other groups."
    places = {"beyond": "Beyond your limit, too", "likely": "Likely beyond your limit"}
    by_text = {text: list[Finding]() for text in (*places.values(), "Also wrong on average")}
    for each in [each for each in (story.opposite, *story.others) if each and each.kind == "mean"]:
        by_text[places.get(each.place, "Also wrong on average")].append(each)
    for text, some in by_text.items():
        names = [sizes.whole_name(each.of, audit) for each in some[:_MOST_TOLD]]
        names += [f"{len(some) - _MOST_TOLD:,} more"] * (len(some) > _MOST_TOLD)
        if names:
            yield f"{text}: {'; '.join(names)}."
    if least := audit.at_least_by_features:  # if proved
        off = f"off by at least {with_unit(numbers.outward_points(least, least)[0])} given the features"
        yield f"On average over half of the rows, predictions are {off} ({sizes.sure(audit)})."
    if isinstance(lead.of, View):
        yield from _beside(lead.of, audit)


def by_feature(audit: Audit) -> list[str]:
    """Return what was searched by features, what was found, and how to judge it."""
    if not audit.features:
        return []
    few, every = len(slices_of(audit)), len(audit.slices)
    were = "was" if every == 1 else "were"
    found = f"{every:,} {were} found to be wrong" if every else "none was found"
    if every > few:
        are = "is" if few == 1 else "are"
        found += f", {few:,} of which {are} shown: the others tell no more, and are in the JSON report"
    return [
        f"{capital(of_features(audit))}; {found}.",
        "That no slice is wrong is more than calibration: a calibrated model that does not use a "
        "feature may be wrong by it. So judge slices by a limit, not by p.",
    ]


def _beside(view: View, audit: Audit) -> Iterable[str]:
    """Yield which other entries of vectors, and which dependences, were found wrong."""
    own = within(view.lens)[0]
    named = dict.fromkeys(each.view.key for each in audit.found)
    told = []
    for each in (each for each in audit.views if each.key in named and each.key != view.key):
        other = each.group is None and (within(each.lens)[0] or own) != own
        if (other or words.kind_of(each.lens) == "pair") and (ways := tends(audit, each)):
            told.append(f"{subject(each).removeprefix('the predicted ')} are {' and '.join(ways)}")
    if told:
        yield f"Also found: {words.listed(told)}."


def _shown_within(audit: Audit) -> Iterable[str]:
    """Yield that all errors are within the limit, with what confidence, and what parts may hide."""
    several = len(audit.views) > 1
    groups = "groups with enough rows" if any(each.rows for each in audit.skipped) else "groups"
    left = f", of {groups}, and of the rows outside each group" if audit.rests else f" and {groups}"
    every = f"The average errors of all rows{left} are" if several else "The average error is"
    larger = "If one were" if several else "If it were"
    about = "at most" if audit.exact_intervals or audit.functional else "about"
    share = confidence_text(min(audit.alpha, 0.25))
    wrongly = f"{larger} larger, we would wrongly say this in {about} {share} of cases"
    yield f"{every} shown to be {inside(audit)}. {wrongly}. {supposed(audit)}".rstrip()
    views = [each for each in audit.views if each.low is not None]
    only = audit.limit.only
    largest = max(views, key=lambda each: (only in (None, each.sign), abs(each.error)))
    of = f"the largest error, as estimated, is that of {sizes.whole_name(largest, audit)}: "
    yield capital(f"{of * several}{sizes.means(largest)}.")
    if audit.features:
        were = "were" if audit.n_slices > 1 else "was"
        slices = f"{counted(audit.n_slices, 'slice')} by features {were} searched"
        yield f"{slices}; one that nobody named could still be off by more."
    hidden = [e for e in audit.story.marks.values() if e.part is not None and e.place != "within"]
    narrower = "Narrower slices have fewer rows and tell less"
    if hidden and only:
        yield f"{narrower}: larger errors there are not excluded."
    elif hidden:
        far = max(hidden, key=lambda each: each.part.most)
        size, name = sizes.farthest(far.part, audit), sizes.whole_name(far.of, audit)
        name = name if words.is_single(audit) else f"the predictions of {name}"
        rows = f"one {sizes.PARTS[far.part.of]} of {name}"
        if far.part.is_tied(far.of.rows):
            rows = f"{far.part.rows:,} of {name}, {sizes.with_predictions(far.part)}"
        yield f"{narrower}: an error of {size} in {rows} is not excluded."


def supposed(audit: Audit) -> str:
    """Return what "within" supposes about clusters if it rests on t intervals; otherwise ""."""
    share = math.ceil(1000.0 * (audit.could_miss or 0.0)) / 10.0 if audit.verdict == "within" else 0.0
    text = f"This supposes that no effect is confined to fewer than {share:g}% of the clusters; "
    return f"{text}to rule that out, use {Argument('guaranteed', True)}." if share else ""


def _pointless(audit: Audit) -> Iterable[str]:
    """Yield a remark for each event whose rate is below the limit in points."""
    for view in audit.views if audit.n_classes <= 2 else ():
        if view.group is None and audit.story.mark(view).place == "pointless":
            name = "the predicted rate" if words.is_single(audit) else lens_name(view)
            rate = f"{name} ({points(view.predicted or 0.0)})"
            so = "so that predicting 0 would be within it, too"
            yield f"Your limit of {limit(audit)} is larger than {rate}, {so}."


def _halves(audit: Audit) -> Iterable[str]:
    """Yield the halves of all rows if both are proved wrong, in opposite directions."""
    if audit.story.halves:
        lower, upper = (
            f"{sizes.estimated(part.error)} ({' to '.join(sizes.distances(part))})"
            for part in audit.story.halves
        )
        view = next(each for each in audit.views if each.group is None and each.parts)
        of = "" if words.is_single(audit) else f"Of {lens_name(view)}, "
        both = f"the half of the rows with lower predictions is {lower}, the other half {upper}"
        yield capital(f"{of}{both}, with {sizes.sure(audit)}.")


def at_least(view: View | None, audit: Audit) -> str | None:
    """Return the proved error of some predictions, as a sentence; None if nothing is proved."""
    sides = [] if view is None else [("over", view.at_least_over), ("under", view.at_least_under)]
    texts = [
        f"{'some predictions are' if not k else 'others'} at least {points(bound)} {words.WRONG[side]}"
        for k, (side, bound) in enumerate((side, bound) for side, bound in sides if bound)
    ]
    return f"{capital('; '.join(texts))} ({sizes.sure(audit)})." if texts else None


# ------------------------------------------------------------------ confidence


def assumes(audit: Audit) -> str:
    """Return the assumptions behind the numbers, in three short sentences."""
    controls = CORRECTIONS.get(audit.correction, "") if audit.n_resamples else ""
    return said("audit", "assumes", audit, controls, words.outcomes_called(audit))


#: Names of checks in rows of evidence.
KINDS = {
    **dict.fromkeys(("citl", "point_bias"), "mean"),
    **dict.fromkeys(("ks", "point_cumulative"), "cumulative difference"),
    **dict.fromkeys(("skce_uq", "point_kernel"), "kernel statistic"),
    "ecd": "log score",
    "point_slope": "slope",
    "scan": "any range of predictions",
    "feature_scan": "any slice by features",
    "feature_ridge": "kernel of features",
}


def evidence(audit: Audit) -> tuple[tuple[str, str], ...]:
    """Return rows of p-values: the whole audit, the view in the headline, and other lines of evidence.

    Also return the sizes of sets.
    """

    def p(value: float) -> str:
        return pvalue(value, audit.alpha)

    rows = [(f"Whole audit, {counted(audit.n_checks, 'check')}", f"p = {p(audit.pvalue)}")]
    rows += [("Size of sets", words.set_sizes(audit))] if audit.set_sizes else []
    lead = audit.story.subject
    told = lead.of if lead is not None and isinstance(lead.of, View) else None
    first = [check for check in audit.checks if told is not None and check.view.key == told.key]
    if isinstance(told, Slice):
        name = f"{words.group_name(told.group)}, among {counted(audit.n_slices, 'slice')}"
        rows.append((name, f"adjusted p = {p(told.adjusted_pvalue)}"))
    for check in sorted(first, key=lambda check: KINDS.get(check.statistic) != "mean")[:3]:
        of = words.group_name(check.view.group)
        of = of if words.is_single(audit) else words.narrow_name(check.view, 60)
        name = f"{words.begun(of)}, {KINDS.get(check.statistic, check.statistic)}"
        rows.append((name, f"adjusted p = {p(check.adjusted)}"))
    return tuple(rows)


def evidence_note(audit: Audit) -> str:
    """Return how the p-values are computed."""
    return said("audit", "evidence_note", audit, words.outcomes_called(audit))


def finding(check: Check, audit: Audit) -> str:
    """Return the finding of one check, as a sentence."""
    view, text = check.view, "wrong, in a direction that this check does not show"
    if view.error is not None:
        text = f"{sizes.means(view)}, {sizes.interval(view, audit)}"
    elif view.shape:
        text = words.TENDS[view.shape]
    name = f"{words.begun(words.view_name(view))} ({counted(view.rows, 'row')})"
    return f"{name}: {text} ({check.statistic!r}, adjusted p = {check.adjusted:.3g})."


# ------------------------------------------------------------------ the page

_ROWS = 6  # of the table, so that a page fits on a screen
IN_SKIPPED = Argument("skipped", shell="--report")  # where all skipped views are listed
_NARROWEST = 16  # characters of a view's name before columns are left out,
_FEWEST = 12  # … and at least
_SKIPPED = 3  # lines


def summary(audit: Audit) -> Page:
    """Return the page of an audit: verdict, sizes, places, next steps and confidence."""
    names = words.lenses_of(audit)
    lenses = f"lens{'es' * (len(names) > 1)}: {', '.join(map(shown, names))}"
    verdict, why = chip(audit)
    of_classes = audit.n_classes > 0 and audit.set_sizes is None
    event = f" of {words.event_name(audit)}" if audit.event and of_classes else ""
    noun = "prediction" if of_classes else words.rows_called(audit)
    outcomes = f"{audit.n_classes} classes" if of_classes else audit.about
    groups = f"; groups: {', '.join(map(shown_column, audit.groups))}" if audit.groups else ""
    groups += f"; {of_features(audit)}" if audit.features else ""
    p, checks = pvalue(audit.pvalue, audit.alpha), counted(audit.n_checks, "check")
    rows = [
        ("evidence", f"p = {p}, of {checks} together; level {audit.alpha:g}"),
        ("data", f"{counted(audit.n_samples, noun)}{event}, {outcomes}; {lenses}{groups}"),
        ("assumes", capital(assumes(audit).removeprefix("Assumes "))),
    ]
    rows += [("sizes", capital(words.set_sizes(audit)))] if audit.set_sizes else []
    skipped: dict[str, list[str]] = {}  # grouped by reason
    for entry in audit.skipped[:_SKIPPED]:
        many = f" ({counted(entry.rows, 'row')})" if entry.rows is not None else ""
        skipped.setdefault(entry.reason, []).append(f"{entry.what}{many}")
    left = [f"{'; '.join(which)}: {reason}" for reason, which in skipped.items()]
    if more := max(len(audit.skipped) - _SKIPPED, 0):
        left.append(f"{more:,} more, in {IN_SKIPPED}")
    rows += [("not checked", "; ".join(left))] if left else []
    found = laid_out(
        audit.story,
        rows,
        [_table(audit, [view for view in in_order(audit) if view.error is not None]), described(audit)],
        advice(audit),
        audit.warnings,
        about="Calibration audit",
        chip=verdict,
        why=why,
        headline=headline(audit),
        size=size(audit),
        brief=f"{verdict.lower()}, p = {p}, n = {audit.n_samples:,}, {checks}",
    )
    found.details = "\n".join(paragraph(evidence_note(audit)))
    return found


def _posterior_table(audit: Audit) -> list[str]:
    """Return a table of the errors of parameters and pairs."""
    rows = words.posterior_rows(audit)
    long = max(len(size) for _, _, size, _ in rows)
    names = [shortened(row[0], max(_NARROWEST, width() - long - 12)) for row in rows]
    wide = max(map(len, names))
    lines = [*paragraph(words.POSTERIOR_NOTE), f"  {'':<{wide}}  {'':<{long}}  adj. p"]
    for name, (_, of, size, p) in zip(names, rows, strict=True):
        lines.append(f"{'◆' if of.found else ' '} {name:<{wide}}  {size:<{long}}  {p}")
    more = len(audit.posterior) - len(names)
    return lines + [f"  and {more:,} more, in {Argument('posterior', shell='--json')}"] * (more > 0)


def described(audit: Audit) -> list[str]:
    """Return a table of coverage that is not claimed, largest shortfalls first; empty without any."""
    views = sorted(audit.described, key=lambda view: -(view.low or 0.0))
    head = f"Not promised, and in neither p nor verdict: coverage by {words.unpromised(audit)}."
    return [head, *_table(unlimited(audit), views)] if views else []


def unlimited(audit: Audit) -> Audit:
    """Return an audit as if both sides mattered, for intervals with both ends."""
    return replace(audit, materiality=None, materiality_ratio=None, sides=BOTH)


def _table(audit: Audit, sized: Sequence[View]) -> list[str]:
    """Return a table of the views with an event; names take the room that other columns leave."""
    if audit.posterior:
        return _posterior_table(audit)
    if not (views := numbers.leading(sized, _ROWS)):
        return []
    claimed = views[0] not in audit.described
    sure, alone = confidence_text(audit.confidence), sizes.own_sure(audit, len(audit.limit.sides))
    columns: dict[str, list[str]] = {
        "rows": [f"{view.rows:,}" for view in views],
        "predicted": [sizes.both(view)[0] for view in views],
        unit().seen: [sizes.bracketed(sizes.both(view)[1], view) for view in views],
        "error": [numbers.signed_points(v.error, v.low, v.high) for v in map(audit.limit.shown, views)],
        f"all: {sure}": [sizes.ends(v, audit) for v in views],
    }
    if audit.limit:
        own = ("" if isinstance(v, Slice) else sizes.ends(v, audit, own=True) for v in views)
        columns[f"alone: {alone}"] = list(own)
        within_what = "the limit" if audit.limit.only or " or " in str(limit(audit)) else limit(audit)
        columns[f"within {within_what}"] = [sizes.settled(audit, view) for view in views]
    elif claimed:
        columns["adjusted p"] = [pvalue(view.adjusted_pvalue, audit.alpha) for view in views]
    widths = {head: max(map(len, [head, *cells])) for head, cells in columns.items()}
    one = len({view.lens for view in views}) == 1  # then only the rows differ
    full = [len(words.narrow_name(view, width(), rows_alone=one)) for view in views]
    least = min(max(full), _NARROWEST)
    for head, few in {f"alone: {alone}": least, f"all: {sure}": min(least, _FEWEST)}.items():
        if head in widths and width() - 2 - sum(widths.values()) - 2 * len(widths) < few:
            del widths[head]
    room = max(_FEWEST, width() - 2 - sum(widths.values()) - 2 * len(widths))
    names = [words.narrow_name(view, room, rows_alone=one) for view in views]
    longest = max(map(len, names))
    what = f"(predicted − {unit().seen}; negative: {ends_of(audit)[0]}), with intervals"
    lines = [f"Errors in {unit().heading} {what}"]
    for k, name in enumerate(["", *names]):
        cells = (f"{[head, *columns[head]][k]:>{w}}" for head, w in widths.items())
        lines.append(f"  {name:<{longest}}  {'  '.join(cells)}".rstrip())
    if audit.limit and len(widths) < len(columns):
        by = f"the {alone} interval of a mean alone is inside{words.only_with(audit)}"
        lines += paragraph(f"Within: {by}; beyond: the one shown is outside.")
    more, all_ = len(sized) - len(views), "to_frame()" if claimed else "described"
    lines += [f"  and {more:,} more, in {Argument(all_, shell='--report')}"] if more > 0 else []
    notes = [captions.members_note(audit), captions.made_note(audit, views)]
    return [*lines, *(each for note in notes if note for each in paragraph(note))]


def of_features(audit: Audit) -> str:
    """Return the columns searched, and the number of slices."""
    names = list(map(shown_column, audit.features))
    names = names if len(names) <= _ROWS else [*names[:2], f"{len(names) - 2:,} more"]
    return f"features: {words.listed(names)}; {counted(audit.n_slices, 'slice')} searched"


def ends_of(audit: Audit) -> tuple[str, str]:
    """Return the meaning of errors below 0 and of those above, for probabilities or for outcomes."""
    if audit.set_sizes is not None:
        return "more are covered", "fewer are covered"
    return ("too low", "too high") if words.of_probabilities(audit) else ("too many", "too few")


def failure(audit: Audit) -> str:
    """Return the message of a failed assertion: headline, page, and the call that repeats it."""
    name, _ = chip(audit)
    p = pvalue(audit.pvalue, audit.alpha)
    verdict = f"{name.lower()}, p = {p} at alpha = {audit.alpha:g}: {headline(audit)}"
    return f"{verdict}\n\n{audit.summary().rstrip()}\n\nTo repeat it: {line(audit.call)}"
