"""An audit in words: its headline, how large the error is, what to do, how sure it is, and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from caltest._numbers import (
    about_points,
    confidence_text,
    counted,
    leading,
    outward_points,
    percents,
    points,
    pvalue,
    signed_points,
)
from caltest._visible import line, shortened, shown, shown_column, visible
from caltest.auditing.result import POSTERIOR, Audit, against_limit, finds_mean, shows
from caltest.auditing.views import Check, Group, Rest, View
from caltest.exceptions import Argument
from caltest.lenses import within
from caltest.pvalues import CORRECTIONS, interval_of_adjusted
from caltest.text import captions, findings, page, paragraph, row, said, sizes, width
from caltest.text import vocabulary as words
from caltest.text.vocabulary import capital, lens_name, limit, subject, where

# ------------------------------------------------------------------ verdict


def chip(audit: Audit) -> tuple[str, str]:
    """Return the verdict in a few words, and what it means for the limit."""
    own = limit(audit)
    unlimited = (
        f"beyond the tolerance of {points(audit.tolerance)}" if audit.tolerance else "no limit set"
    )
    if audit.verdict == "undecided":
        found = "no error was found, which does not settle it"
        if audit.rejected:
            found = "an error was found; whether it is larger is not settled"
            if audit.told is not None and audit.told.inside:
                found = "an error was found; it is within on average, others are not settled"
        return f"Not shown to be within {own}", found
    if audit.verdict == "within":
        small = "an error was found, on average too small to matter"
        return f"Within your limit of {own}", small if audit.rejected else "no error was found"
    return {
        "material": ("Material error", f"larger than your limit of {own}"),
        "found": ("Error found", unlimited),
        "not found": ("No error found", "which does not prove calibration"),
    }[audit.verdict]


def headline(audit: Audit) -> str:
    """Return the answer in one sentence: event, group, direction and size, where they are proved."""
    if audit.tolerance is not None:
        by = f"by more than {points(audit.tolerance)}" if audit.tolerance else ""
        if audit.rounding:
            by += f"{' and' if by else 'by more than'} what rounding to {audit.rounding:g} explains"
        by = by or "in either direction"
        if not audit.rejected:
            return f"No prediction was shown to be wrong {by}."
        if not audit.found:
            return f"{sizes.impossible_rows(audit)}."
        view = audit.told or audit.found[0].view
        if finds_mean(audit, view):
            return f"{capital(subject(view))} is wrong on average {by}{where(view.group)}."
        return f"Some predictions of {lens_name(view)} are wrong {by}{where(view.group)}."
    if audit.verdict == "within" and audit.rejected:
        who, most = subject(audit.told or audit.views[0]), limit(audit)
        return f"{capital(who)} {_is(who)} wrong, but on average by less than your limit of {most}."
    if audit.verdict == "within":
        every = "Every average error is" if len(audit.wholes) > 1 else "The average error is"
        return f"{every} shown to be within your limit of {limit(audit)}."
    if audit.verdict == "undecided" and not audit.rejected:
        return f"Not shown to be within your limit of {limit(audit)}: {sizes.why_undecided(audit)}."
    if not audit.rejected:
        return "No error was found."
    worst = audit.worst
    if audit.verdict == "material" and (worst is None or against_limit(audit, worst) != "beyond"):
        whole, part = sizes.beyond(audit)
        worst = whole if isinstance(whole, View) and part is None else None
        if worst is None:
            who = subject(next(each for each in audit.views if each.lens == whole.lens))
            rows = sizes.left_by(whole) if isinstance(whole, Rest) else where(whole.group)
            by = f"by more than your limit of {limit(audit)}{' for some predictions' if part else ''}"
            return f"{capital(who)} {_is(who)} wrong {by}{rows}."
    if worst is not None:
        return f"{capital(subject(worst))} is {sizes.too(worst, audit)}{where(worst.group)}."
    if sizes.zeros_come_first(audit):
        return f"{sizes.impossible_rows(audit)}."
    if not audit.found:
        rest = sizes.found_rest(audit)
        view = next(each for each in audit.views if each.lens == rest.lens)
        return f"{capital(subject(view))} is wrong on average{sizes.left_by(rest)}."
    strongest = audit.told or audit.found[0].view
    if strongest.shape:
        extreme = "too extreme" if strongest.shape == "over" else "not extreme enough"
        return (
            f"The model is {words.TENDS[strongest.shape]}{where(strongest.group)}: its probabilities "
            f"are {extreme}."
        )
    if strongest.event is None:
        alone = words.listed(words.view_name(view) for view in audit.views if shows(audit, view))
        which = f"on average, those of {alone}" if alone else "no single class or group stands out"
        if not audit.n_classes:
            ways = (f"they are {each}" for each in sizes.tends(audit, strongest))
            which = words.listed(ways) or "no interval and no group stands out"
        return f"{capital(subject(strongest))} are wrong{where(strongest.group)}; {which}."
    who, rows, events = capital(subject(strongest)), where(strongest.group), strongest.events
    if events is not None and events.proved > 1.0:
        seen, expected = (f"{each:,.0f}" for each in (events.observed, events.expected))
        more = "More" if (events.low or 0.0) > 1.0 else "Fewer"
        return f"{more} events came than the model expects{rows}: {seen}, and {expected} were expected."
    about = sizes.estimated(strongest.error, strongest.lens)
    if finds_mean(audit, strongest):
        return f"{who} is wrong on average{rows}; as estimated, {about}."
    average = "on average it may be right"
    if audit.limit and sizes.estimated_beyond(audit, strongest):
        average = f"on average, as estimated, it is {about}"
    return f"{who} is wrong for some predictions{rows}; {average}."


def _is(who: str) -> str:
    several = "distributions", "correlations", "joint", "probabilities"
    return "are" if who.startswith(tuple(f"the predicted {each}" for each in several)) else "is"


# ------------------------------------------------------------------ what to do next
#
# First for who uses the probabilities, then for who maintains the model.

_MAINTAINER = "For whoever maintains the model: "
_OF_SAMPLER = (
    "Look at the sampler (warm-up, convergence, thinning, approximations), and at whether simulations "
    "and posterior have the same prior and the same likelihood: no recalibration can repair these."
)
_AGAIN = "Then audit again, on rows that were used neither to fit nor to recalibrate the model."


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    first: tuple[str, ...] = ()
    if audit.withheld:
        before = capital("; ".join(premise.do for premise in audit.withheld))
        first = (f"{before}. Until then neither this verdict nor what follows can be relied on.",)
    if not audit.rejected:
        return (*first, _AGAIN) if first else tuple(_after_a_pass(audit))
    told = audit.told
    group = told.group if told is not None else None
    texts = list(first if first and audit.verdict == "undecided" else (*first, *_use(audit, told)))
    if audit.about == POSTERIOR:
        return (*texts, _OF_SAMPLER, *_close(audit), "Then check again, with new simulations.")
    if told is not None and words.kind_of(told.lens) == "interval" and shows(audit, told):
        share = percents(*sizes.rates(told))[1]
        texts.append(f"Until then, read {lens_name(told)}{where(group)} as one of about {share}.")
    if audit.impossible:
        seen = "label" if audit.n_classes else "outcome"
        new = "a class that was not in the training data, " if audit.n_classes else ""
        why = f"{new}a wrong {seen}, or a lost small probability"
        about = audit.zeros or f"Look at the rows whose observed {seen} had probability 0 ({why})."
        about = f"{about[:1].lower()}{about[1:]}"
        texts.append(f"{_MAINTAINER}{about} Recalibration cannot change probabilities of 0 and 1.")
    if group is not None or (told is None and not audit.impossible):
        rows = "that group" if group is not None else "these rows"
        texts.append(
            f"{_MAINTAINER}look at the data of {rows} (labels, missing inputs, how they differ from "
            "others)."
        )
    zeros = audit.zeros and audit.worst is None
    if told is not None and not zeros and 2 * audit.impossible <= audit.n_samples:
        # Else nothing more is known until the zeros are gone.
        texts.append(capital(remedy(audit)) if group else f"{_MAINTAINER}{remedy(audit)}")
    return (*texts, *_close(audit), _AGAIN)


def _close(audit: Audit) -> Iterable[str]:
    """Say if the p-value is so close to the level that other draws might lie on the other side."""
    best = min(audit.checks, key=lambda check: check.adjusted)
    times = best.adjusted / best.pvalue if audit.correction != "westfall_young" else 1.0
    if times > 1.0 and best.pvalue <= 2.0 / (1 + audit.n_resamples):
        return  # no draw is as large: in other draws hardly any will be
    low, high = interval_of_adjusted(audit.pvalue, audit.n_resamples, times)
    every = audit.clusters is not None and audit.n_resamples + 1 == 2**audit.clusters  # signs
    if low < audit.alpha < high and not (every or audit.impossible):
        yield (
            f"p = {pvalue(audit.pvalue, audit.alpha)} is close to {audit.alpha:g}: another seed could "
            "change the verdict. Use more resamples, "
            f"{Argument('n_resamples', 10 * audit.n_resamples + 9)}."
        )


def _stated(audit: Audit) -> str:
    """Return what may be used, or not."""
    usual = "probabilities" if audit.n_classes else "predictions"
    return POSTERIOR if audit.about == POSTERIOR else usual


def _as_they_are(audit: Audit) -> Iterable[str]:
    """Say that the probabilities may be used, unless the limit lets everything pass."""
    if any(sizes.cannot_fail(audit)):
        yield (
            "Before you use the probabilities, audit again with a limit for rare events: a ratio "
            f"alone, such as {Argument('materiality_ratio', 1.25)}."
        )
    else:
        yield (
            f"Use the {_stated(audit)} as they are, where average errors of up to {limit(audit)} do "
            f"not matter{'; elsewhere, take the next steps' if audit.rejected else ''}."
        )


def _use(audit: Audit, told: View | None) -> Iterable[str]:
    """Say whether the probabilities may be used, and where."""
    rows = where(told.group) if told is not None else ""
    own, these = limit(audit), f"these {_stated(audit)}{rows}"
    everywhere = audit.worst is not None and audit.worst.group is None
    if rows and (everywhere or (told is not None and (told.impossible or 0) < audit.impossible)):
        these = f"these {_stated(audit)}, least of all{rows},"
    if audit.verdict == "within":
        yield from _as_they_are(audit)
    elif audit.verdict == "found" and not audit.tolerance:
        yield (
            "Decide how large an average error matters to you, and set that as the limit "
            f"(materiality). If this error matters, do not rely on {these} until they are corrected."
        )
    elif audit.verdict == "undecided":
        if told is not None and sizes.estimated_beyond(audit, told):
            yield (
                f"Do not rely on {these} until they are corrected: the error is "
                f"estimated to be beyond your limit of {own}, though it is not proved to be."
            )
        elif told is not None and told.inside:
            yield (
                f"Use the {_stated(audit)}{rows} where only averages matter: the average error is "
                f"within your limit of {own}. Elsewhere it could be larger: {_more_rows(audit)}."
            )
        else:
            yield (
                f"Whether the error{rows} exceeds your limit of {own} is not settled. Where that would "
                f"be costly, do not rely on these {_stated(audit)} until it is: {_more_rows(audit)}."
            )
    else:
        yield f"Do not rely on {these} until they are corrected."
    if audit.verdict == "material" and told is not None and told.group is not None:
        besides, _ = findings.wrong_besides(told, audit)
        far = [each for each in besides if against_limit(audit, each) == "beyond"]
        far = [each for each in far if each.group and not words.made_by(audit, each.group)]
        if names := [words.group_name(each.group) for each in leading(far, MOST_FINDINGS)]:
            yield f"The same goes for {words.listed(names)}."


def _more_rows(audit: Audit) -> str:
    """Return how many rows would settle it, as what to do; time or volume is the reader's."""
    rows = audit.rows_needed
    if rows is None:
        more = "rows that were followed for longer" if audit.views[0].events else "more rows"
        return f"audit again with {more}{', or fewer groups' if audit.groups else ''}"
    times, unit = rows / audit.n_samples, "rows"
    many = f"{times:.1f} times as many" if times < 9.95 else f"{times:,.0f} times as many"
    shares = ", if groups keep their shares" if audit.groups else ""
    if audit.clusters is not None:
        rows, unit = math.ceil(times * audit.clusters), "clusters like these"
    fewer = ", or fewer groups, takes" if audit.groups else " takes"
    less = f"; a wider limit{fewer} fewer" if times > _FAR_AWAY else ""
    return f"audit again with {sizes.about_rows(rows)} {unit} in all ({many}{shares}{less})"


_FAR_AWAY = 10.0  # times as many rows, which few readers can get


#: What remedies are called, of two classes and of more.
_REMEDIES: Mapping[str, tuple[str, str]] = {
    "order": ("the classes exchanged", "another order of the classes"),
    "temperature": ("a slope of the log-odds (temperature scaling)", "temperature scaling"),
    "shift": ("an intercept of the log-odds", "an intercept for every class"),
    "temperature and shift": (
        "a slope and an intercept of the log-odds (Platt scaling)",
        "a temperature and an intercept for every class",
    ),
    "isotonic": ("isotonic regression", "isotonic regression of every class"),
}


def remedy(audit: Audit) -> str:
    """Return which recalibration to try, and what cross-fitting says that it brings."""
    line, told, many = audit.recalibration, audit.told, audit.n_classes > 2
    if audit.units is not None:
        entry = within(told.lens)[0] if told else ""
        of = f" of {visible(entry)}" if entry else ""
        everywhere = told is None or told.group is None or (audit.worst and audit.worst.group is None)
        whom = "the model" if everywhere else "that group"
        return said("audit", "remedy_of_numbers", audit, whom, of).rstrip()
    if told is not None and words.kind_of(told.lens) == "pair":
        return (
            f"correct how the members of {lens_name(told).removeprefix('the dependence of ')} go "
            "together, on held-out rows; reordering them as past outcomes were ordered is one way."
        )
    if line is not None and (vain := said("recalibrate", "in_vain", line, _DEVIATIONS)):
        return vain
    if not audit.remedies:
        do = f"recalibrate the {'group' if told and told.group else 'model'} on held-out rows."
        count = next((view.events for view in (told, *audit.views) if view and view.events), None)
        if count is None or not count.observed or (count.low or 0.0) <= 1.0 <= (count.high or 1.0):
            return do
        return f"{do} {said('audit', 'hazards', count)}"
    best, rows = next((each for each in audit.remedies if each.chosen), None), audit.remedies[0].rows
    some = "these rows" if rows == audit.n_samples else f"{rows:,} of these rows"
    tried = f"Tried by cross-fitting inside {some}"
    if best is None:
        usual = [each for each in audit.remedies if not each.in_group and each.name != "order"]
        names = (_REMEDIES[each.name][many] for each in usual)
        nothing = "no usual recalibration clearly lowers the log loss here: look at the data"
        return f"{nothing}. {tried}: {', '.join(names)}."
    brings = "the mean error"
    if told is not None and told.event is not None:
        brings = f"the mean error of {lens_name(told)}{where(told.group)}"
    elif many:
        brings = "the mean error of the top class"
    if best.off_before > _STRIKING * abs(best.before):
        sizes_of = best.off_before, best.off_after, best.off_chance
        before, after, chance = (about_points(each, "point") for each in sizes_of)
        brings = f"the error of tenths of the predictions, on average, from {before} to {after}"
        brings += f" (of a calibrated model it would be about {chance}, by chance)"
    else:
        error = about_points(best.after_se, "point")
        after = sizes.estimated(best.after) if abs(best.after) > 2.0 * best.after_se else "about 0"
        brings += f" from {sizes.estimated(best.before)} to {after} (standard error {error})"
    alike = [each for each in audit.remedies if each.in_group == best.in_group]
    later = [_REMEDIES[each.name][many] for each in alike[alike.index(best) + 1 :]]
    later = [] if best.name == "order" else later
    alone = " for that group alone" if best.in_group else ""
    whom = alone or (" the whole model" if told and told.group else "")
    others = f"{', '.join(later[:-1])}{' or ' if later[1:] else ''}{later[-1]}" if later else ""
    more = f" Nothing clear is gained beyond it by {others}." if later else ""
    do = f"recalibrate{whom} on held-out rows by {_REMEDIES[best.name][many]}."
    if best.name == "order":
        do = f"look at the order of the classes{alone}: columns seem to be exchanged."
        tried = f"{tried}, with {_REMEDIES['order'][many]}"
    return (
        f"{do} {tried}, it takes "
        f"{brings}, and lowers the log loss by {best.gain:.2g} (standard error {best.gain_se:.1g})."
        f"{more} These are estimates, not a test."
    )


_DEVIATIONS = 3.0  # standard errors beyond which a slope is clear
_STRIKING = 1.5  # times the mean error: then the error depends on the prediction


def _after_a_pass(audit: Audit) -> Iterable[str]:
    if audit.verdict == "within":
        yield from _as_they_are(audit)
    elif audit.verdict == "undecided":
        yield (
            f"Not settled is not wrong: no error was found. If errors above {limit(audit)} would be "
            f"costly, {_more_rows(audit)}."
        )
    elif audit.at_most is not None:
        _, most = outward_points(0.0, audit.at_most)
        more = f"more {'rows' if audit.clusters is None else 'clusters'}"
        fewer = ", or with fewer groups" if audit.groups else ""
        if audit.at_most <= sizes.LITTLE:
            yield (
                f"Use the {_stated(audit)} as they are where average errors up to {most} points do not "
                f"matter. If smaller ones matter, audit again with {more}{fewer}."
            )
        else:
            where_left = "in groups" if audit.groups else "over all rows"
            _, most = outward_points(0.0, sizes.most_of_views(audit))
            yield (
                f"Average errors of up to {most} points remain possible {where_left}, and larger ones "
                f"in parts of the predictions. If that matters, audit again with {more}{fewer}; a "
                "limit (materiality) tells how many are needed."
            )
    else:
        yield "This does not prove calibration: an error may be too small for this many rows."
    yield from _close(audit)
    what = "sampler" if audit.about == POSTERIOR else "model"
    yield f"Audit again when the {what} or its inputs change."


# ------------------------------------------------------------------ how sure


def assumes(audit: Audit) -> str:
    """Return what the numbers rest on, in three short sentences."""
    controls = CORRECTIONS.get(audit.correction, "")
    return said("audit", "assumes", audit, controls, words.outcomes_called(audit))


#: What a check looks at, for its row of evidence.
KINDS = {
    "citl": "mean",
    "ks": "cumulative difference",
    "ecd": "log score",
    "skce_uq": "kernel statistic",
    "scan": "any range of predictions",
}


def evidence(audit: Audit) -> tuple[tuple[str, str], ...]:
    """Return rows of p-values: of the whole, of the view in the headline, and of all others."""

    def p(value: float) -> str:
        return pvalue(value, audit.alpha)

    rows = [(f"Whole audit, {counted(audit.n_checks, 'check')}", f"p = {p(audit.pvalue)}")]
    told = audit.told
    first = [check for check in audit.checks if told is not None and check.view.key == told.key]
    for check in sorted(first, key=lambda check: check.statistic != "citl")[:3]:
        group, narrow = words.group_name(check.view.group), words.narrow_name(check.view, 60)
        of = group if audit.n_classes == 2 else narrow
        column = audit.n_classes == 2 and check.view.group  # its name stays as it is
        name = f"{of if column else capital(of)}, {KINDS.get(check.statistic, check.statistic)}"
        rows.append((name, f"adjusted p = {p(check.adjusted)}"))
    around: set[tuple[str, Group | None]] = set()
    if told is not None and told.group is not None:
        own = set(told.group.conditions)
        some = ((each.key, set(each.group.conditions if each.group else ())) for each in audit.views)
        around = {key for key, conditions in some if conditions <= own or own <= conditions}
    others = [
        check.adjusted
        for check in audit.checks
        if around and check.view.group and check.view.key not in around
    ]
    if others:
        rows.append(("Other groups, smallest p", f"adjusted p = {p(min(others))}"))
    return tuple(rows)


def evidence_note(audit: Audit) -> str:
    """Return what the p-values are made of."""
    return said("audit", "evidence_note", audit, words.outcomes_called(audit))


def finding(check: Check, audit: Audit) -> str:
    """Return what one check found, as a sentence."""
    view, parts = check.view, []
    if view.error is not None:
        parts.append(f"{sizes.means(view)}, {sizes.interval(view, audit.confidence)}")
    elif view.shape:
        parts.append(words.TENDS[view.shape])
    else:
        parts.append("wrong, in a direction that this check does not show")
    name = words.view_name(view)
    return (
        f"{capital(name)} ({counted(view.rows, 'row')}): {'; '.join(parts)} "
        f"({check.statistic!r}, adjusted p = {check.adjusted:.3g})."
    )


# ------------------------------------------------------------------ the page

MOST_FINDINGS = 10
_ROWS = 7  # of the table: a page is to fit on a screen
_NARROWEST = 16  # of a view's name there
_SKIPPED = 3  # lines


def worst_first(audit: Audit) -> list[View]:
    """Return the views: the one that explains, then with a finding, the largest proved error first."""
    found = {check.view.key for check in audit.found}
    first = None if audit.worst is None else audit.worst.key
    return sorted(
        audit.views,
        key=lambda view: (
            view.key != first,
            view.key not in found,
            view.low is None,
            -view.proved,
            view.adjusted_pvalue,
            -abs(view.error or 0.0),
        ),
    )


def summary(audit: Audit) -> str:
    """Return the verdict, how large the error is, where, what to do next, and how sure it is."""
    names = words.lenses_of(audit)
    lenses = f"lens{'es' * (len(names) > 1)}: {', '.join(map(shown, names))}"
    name, beside = chip(audit)
    event = f" of {words.event_name(audit)}" if audit.event else ""
    noun = "prediction" if audit.n_classes else words.rows_called(audit)
    outcomes = f"{audit.n_classes} classes" if audit.n_classes else audit.about
    rows = [
        ("verdict", f"{name} ({beside}), p = {pvalue(audit.pvalue, audit.alpha)}"),
        ("data", f"{counted(audit.n_samples, noun)}{event}, {outcomes}; {lenses}"),
        ("groups", ", ".join(map(shown_column, audit.groups)) or "none"),
        (
            "checks",
            f"{audit.n_checks:,}, of {counted(len(audit.views), 'view')}; overall level "
            f"{audit.alpha:g}",
        ),
    ]
    todo = ["What to do next", *(each for text in advice(audit) for each in row("", text))]
    skipped, why = ["Not checked"] if audit.skipped else [], dict[str, list[str]]()
    for entry in audit.skipped[:_SKIPPED]:  # what has one reason together
        many = f" ({counted(entry.rows, 'row')})" if entry.rows is not None else ""
        why.setdefault(entry.reason, []).append(f"{entry.what}{many}")
    for reason, which in why.items():
        skipped += row("", f"{'; '.join(which)}: {reason}")
    if (more := len(audit.skipped) - _SKIPPED) > 0:
        skipped += row("", f"and {more:,} more, in skipped")
    sure = [*paragraph(evidence_note(audit)), *paragraph(assumes(audit))]
    answer = [*paragraph(headline(audit)), *paragraph(findings.size(audit))]
    p = pvalue(audit.pvalue, audit.alpha)
    brief = f"{name.lower()}, p = {p}, n = {audit.n_samples:,}, {counted(audit.n_checks, 'check')}"
    blocks = answer, _table(audit), todo, sure, skipped
    return page(
        "Calibration audit", rows, *blocks, notes=audit.warnings, headline=headline(audit), brief=brief
    )


def _table(audit: Audit) -> list[str]:
    """Lay out the views of an event: names in what room the other columns leave."""
    sized = [view for view in worst_first(audit) if view.error is not None]
    if not (views := leading(sized, _ROWS)):
        return []
    sure = confidence_text(audit.confidence)
    table = [("rows", "predicted", "observed", "error", f"{sure} interval", "adj. p")]
    found_by = ["found by"]
    for view in views:
        predicted, observed = percents(*sizes.rates(view), 1)
        low, high = outward_points(view.low or 0.0, view.high or 0.0)
        found = [check.statistic for check in audit.found if check.view.key == view.key]
        found_by.append(", ".join(shortened(visible(each), 10) for each in found[:3]) or "–")
        table.append(
            (
                f"{view.rows:,}",
                predicted,
                sizes.bracketed(observed, view),
                signed_points(view.error or 0.0, view.low or 0.0, view.high or 0.0),
                f"{low} to {high}",
                pvalue(view.adjusted_pvalue, audit.alpha),
            )
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = width() - 2 - sum(widths) - 2 * len(widths)
    by = 2 + max(map(len, found_by))  # left out where all are of the mean, or there is no room
    if set(found_by[1:]) <= {"citl", "–"} or room - by < _NARROWEST:
        found_by, by = [""] * len(table), 0
    room = max(_NARROWEST, room - by)
    one = len({view.lens for view in views}) == 1  # then only rows differ
    names = [words.narrow_name(view, room, rows_alone=one) for view in views]
    longest = max(map(len, names))
    many = f"too many {words.outcomes_called(audit)} there"
    negative = "too low" if words.of_probabilities(audit) else many
    lines = [f"Errors in percentage points (predicted − observed); negative is {negative}"]
    for name, cells, seen in zip(["", *names], table, found_by, strict=True):
        right = "  ".join(f"{each:>{w}}" for each, w in zip(cells, widths, strict=True))
        lines.append(f"  {name:<{longest}}  {right}  {seen}".rstrip())
    more = len(sized) - len(views)
    lines += [f"  and {more:,} more, in {Argument('to_frame()')}"] if more > 0 else []
    notes = [captions.members_note(audit), captions.made_note(audit, views)]
    if audit.verdict in ("within", "undecided"):
        notes.append(sizes.decided_apart(audit, views))
    return [*lines, *(each for note in notes if note for each in paragraph(note))]


def failure(audit: Audit) -> str:
    """Return what a failed test of one's own says: the headline, the page, and how to repeat it."""
    name, _ = chip(audit)
    p = pvalue(audit.pvalue, audit.alpha)
    verdict = f"{name.lower()}, p = {p} at alpha = {audit.alpha:g}: {headline(audit)}"
    return f"{verdict}\n\n{audit.summary().rstrip()}\n\nTo repeat it: {line(audit.call)}"
