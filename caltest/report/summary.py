"""An audit as plain data, in the order of the report: templates lay it out and decide nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from caltest import pictures
from caltest._numbers import counted, in_unit_of, leading, number, percents, pvalue, signed_points, unit
from caltest._version import __version__
from caltest._visible import shortened, visible
from caltest.auditing import diagrams
from caltest.auditing.result import Audit
from caltest.auditing.story import in_order
from caltest.auditing.views import ByFeature, Check, Part, Rest, Sized, Slice, View
from caltest.lenses import within
from caltest.pictures import Picture
from caltest.report import charts
from caltest.text import audit as words
from caltest.text import captions, vocabulary
from caltest.text.advice import advice
from caltest.text.sizes import bracketed, ends, interval, means, rates, settled, times
from caltest.text.vocabulary import capital, group_name, lens_name, narrow_name, short_name

_ROWS = 9  # in the table of slices
_GROUPS = 4  # at least this many, below intervals and quantiles
_BIN, _BINS = 24, 12  # characters of a bin's name, and bins drawn
_NAME = 48  # characters of a name
_SENTENCE = 3200
_ROOM = {"checks": 300, "views": 200, "rests": 100, "pictures": 6}  # rows of tables, and pictures
_MOST = 200  # rows of coverage that is not claimed
_LISTED = 10  # views in a comment


def sentence(text: str) -> str:
    """Return a sentence that contains names for display: visible and not endless."""
    return shortened(visible(text), _SENTENCE)


def name(text: str, most: int = _NAME) -> SimpleNamespace:
    """Return a name for display: ``short``, and in ``full`` if that differs, else None."""
    shown = visible(text)
    short = shortened(shown, most)
    return SimpleNamespace(short=short, full=None if short == shown else shown)


# ------------------------------------------------------------------ the first screen


@in_unit_of
def first_screen(
    audit: Audit, *, title: str | None = None, date: str | None = None, gate: str | None = None
) -> SimpleNamespace:
    """Return the content of the report's first screen."""
    subject = _subject(audit)
    chip, why = words.chip(audit)
    slices = None if subject is None or audit.posterior else _slices(audit, subject)
    figure = _pair(audit) if subject is None else _figure(audit, subject)
    # For a group or class, the table of slices leads.
    slice_leads = subject is not None and (
        subject.group is not None
        or (subject.class_index is not None and subject.lens.startswith("class:"))
    )
    return SimpleNamespace(
        audit=audit,
        title=visible(title) if title else "Calibration audit",
        event=vocabulary.event_name(audit) if audit.n_classes == 2 else None,
        columns=[name(column, 24).short for column in audit.groups[:6]],
        date=date,
        rows=vocabulary.rows_called(audit),
        kind=audit.verdict.replace(" ", "-"),
        icon=captions.ICONS[audit.verdict],
        chip=sentence(chip),
        why=sentence(why),
        headline=sentence(audit.headline),
        size=sentence(" ".join(words.found(audit))),
        open=[sentence(text) for text in words.unsettled(audit)],
        gate=None if gate is None else sentence(gate),
        slices=slices,
        figure=figure,
        table_leads=slices is not None and (figure is None or slice_leads),
        advice=[sentence(text) for text in advice(audit)],
        posterior=vocabulary.posterior_rows(audit),
        posterior_note=vocabulary.POSTERIOR_NOTE,
        evidence=words.evidence(audit),
        evidence_note=sentence(words.evidence_note(audit)),
        assumes=sentence(words.assumes(audit)),
        version=__version__,
        ends=words.ends_of(audit),
    )


def _subject(audit: Audit) -> View | None:
    """Return the view to draw: the main finding if it has a single event, or the first possible one."""
    story = audit.story
    events = [view for view in audit.views if view.low is not None]
    lead = None if story.subject is None else story.subject.of
    if isinstance(lead, View) and lead.low is not None:
        return lead
    found = [check.view.key for check in audit.found if story.found]
    if strongest := [view for key in found for view in events if view.key == key]:
        return next((view for view in strongest if view.group is None), strongest[0])
    whole = [view for view in events if view.group is None]
    if story.unsettled and not audit.n_classes:
        first = story.unsettled[0].of
        whole = [view for view in whole if view.lens == first.lens] or whole
    return next(iter([view for view in whole if view.lens == "top_label"] or whole or events), None)


# ------------------------------------------------------------------ the picture


def _figure(audit: Audit, view: View) -> SimpleNamespace | None:
    """Choose and draw the picture for the main finding."""
    if isinstance(view, Slice):
        along = sorted(audit.by_feature, key=lambda each: -max(part.proved for part in each.bins))
        return _along(audit, along[0], charts.FIRST) if along else None
    lead = audit.story.subject
    told = lead.of if lead and isinstance(lead.of, View) and not audit.n_classes else None
    whole = told
    if told is None or told.event is not None:  # that of the whole distribution on the same rows
        entry, _ = within(view.lens)
        key = (f"entry:{entry}/distribution" if entry else "distribution"), view.group
        whole = next((each for each in audit.views if each.key == key), None)
    if told is not None and whole is told and told.cumulative is None:  # as for correlations
        return _pair(audit)
    if whole is not None and whole.cumulative is not None:
        outcomes = vocabulary.outcomes_called(audit)
        title = captions.levels_title(audit, whole, whole.cumulative)
        if whole.pit is not None:
            title = captions.pit_title(audit, whole, whole.pit)
            picture = diagrams.pit_picture(whole.pit, outcomes)
            note = captions.pit_note(audit, whole.pit)
        else:
            stated, note = diagrams.coverage_of(audit, whole, view), captions.coverage_note(audit)
            seen = [*map(audit.limit.shown, stated)]
            wrong = [each for each in seen if audit.story.mark(each).side]
            picture = diagrams.coverage_picture(seen, wrong, outcomes)
        return _pictured(title, note, picture, f"{note} {title}")
    return _of_parts(audit, view) if charts.parts_of(view)[0] else None  # else the table shows as much


def _of_parts(audit: Audit, view: View, *, least: bool = False) -> SimpleNamespace:
    """Draw observed against predicted, or errors, or the cumulative difference if that shows more."""
    parts, halves = charts.parts_of(view)
    bad = [audit.limit.shown(of) for of in (view, *parts, *halves) if audit.story.mark(of).side]
    label = vocabulary.begun(f"{vocabulary.view_name(view)}, {counted(view.rows, 'row')}: ")
    if audit.rejected and view.cumulative is not None and not bad and not least:
        title = captions.cumulative_title(audit, view, view.cumulative)
        picture, note = diagrams.cumulative_picture(view.cumulative), captions.cumulative_note(audit)
        return _pictured(title, note, picture, f"{label}cumulative difference. {title}")
    flat, rare = audit.verdict == "within" and len(parts) > 1, charts.is_rare(parts, view)
    drawn = [*map(audit.limit.shown, parts)]
    if not (rare or least) and (flat or pictures.small(drawn) or pictures.crowded(parts)):
        kind, what, shown = "errors", "error by prediction", halves
        lines = audit.limit.drawn if audit.limit.ratio is None else ()
        picture = pictures.errors(drawn, [*map(audit.limit.shown, halves)], view.histogram, bad, lines)
    else:
        kind, what, shown = "rare" if rare else "curve", "predicted against observed", ()
        picture = pictures.curve(drawn, view.histogram, bad, view.isotonic, rare=rare)
    title = captions.parts_title(audit, view, parts, shown)
    note = captions.parts_note(audit, kind, parts, shown, view.isotonic)
    return _pictured(title, note, picture, f"{label}{what}. {title}")


def _along(audit: Audit, of: ByFeature, sizes: Sequence[charts.Size]) -> SimpleNamespace:
    """Draw predicted and observed along a feature."""
    drawn, title = of.bins, captions.feature_title(audit, of)
    if len(drawn) > _BINS:  # bins of a categorical feature
        drawn = tuple(sorted(drawn, key=lambda each: (-each.proved, -abs(each.error)))[:_BINS])
        title += f" Here: the {_BINS} furthest off."
    bad = [each.side is not None and audit.story.found for each in drawn]
    bins = [replace(x, name=name(x.name, _BIN).short) for x in map(audit.limit.shown, drawn)]
    found = _pictured(title, captions.feature_note(audit), pictures.along(bins, bad), title, sizes)
    pairs = zip(drawn, bad, strict=True)
    found.rows = [_sized(each, audit, name=name(each.name), bad=is_) for each, is_ in pairs]
    return found


def _pair(audit: Audit) -> SimpleNamespace | None:
    """Draw two parameters with a wrong dependence; if there are none, the evidence."""
    of = next(iter(audit.posterior), None)
    if of is None or of.points is None or of.stated is None or of.observed is None or not of.found:
        if (h := diagrams.evidence_picture(audit, vocabulary.outcomes_called(audit))) is None:
            return None
        title, note = captions.chance_title(h.reached, h.draws), captions.chance_note(audit)
        return _pictured(title, note, h.picture, h.label, [charts.CHANCE])
    title, note = captions.of_pair(of)
    picture = pictures.pair(of.points, of.stated, of.observed[1])
    one, other = (f"{visible(each)}: true value less mean of draws" for each in of.names)
    return _pictured(title, note, picture._replace(of_x=one, of_y=other), f"{title} {note}")


def _pictured(
    title: str, note: str, picture: Picture, label: str, sizes: Sequence[charts.Size] = charts.FIRST
) -> SimpleNamespace:
    shown: dict[str, Any] = {"title": sentence(title), "note": sentence(note), "picture": picture}
    return SimpleNamespace(**shown, drawings=charts.drawn(picture, label, sizes))


def pictured(audit: Audit) -> list[tuple[str, Picture]]:
    """Return titles and pictures of the first screen, the leading one first."""
    first = first_screen(audit)
    found = [(each.title, each.picture) for each in [first.figure] if each is not None]
    if (t := first.slices) is not None:
        found.insert(0 if first.table_leads else 1, (t.title, diagrams.slices_picture(t)))
    return found


# ------------------------------------------------------------------ the table of slices


def _chosen(audit: Audit, subject: View) -> tuple[list[tuple[str, View | Part]], list[View], str, str]:
    """Choose the slices to show: the overall one first, then by proved error.

    Return names with their views, all candidates, the noun, and the head of the name column.
    """
    order = [view for view in in_order(audit) if view.low is not None]
    whole = [view for view in order if view.group is None]
    groups = [view for view in order if view.group is not None and view.lens == subject.lens]
    every = classes = [view for view in whole if view.lens.startswith("class:")]
    told = subject.group is None and any(audit.story.mark(view).side for view in classes)
    by_class = told or (len(whole) > 1 and not groups)
    sliced = any(isinstance(view, Slice) for view in groups)
    noun = "class" if by_class else "slice" if sliced else "group" if groups else "part"
    numbers = vocabulary.of_distributions(audit)
    if not by_class or numbers:
        every = whole if by_class else [view for view in order if view.lens == subject.lens]
    if not numbers:  # the overall error first
        pool = whole if by_class else sorted(every, key=lambda view: view.group is not None)
        chosen = list(leading(pool, _ROWS))
    else:  # everything stated, and the groups of the leading view
        chosen = [*whole, *groups[: max(_ROWS - len(whole), _GROUPS)]][: max(_ROWS, len(whole))]
    left = [view for view in every if view not in chosen]
    chosen += left if len(left) == 1 else []  # instead of "1 more"
    columns = {each.column for view in every if view.group for each in view.group.conditions}
    column = columns.pop() if len(columns) == 1 else None  # the column of all groups
    called = list[tuple[str, View | Part]]()
    called += [(_called(numbers, view, by_class, column is not None), view) for view in chosen]
    parts, halves = charts.parts_of(subject)
    beside = parts if parts and len(parts) < parts[0].of else halves  # ties: each value
    if noun == "part" and len(beside) < _ROWS:
        called += [(captions.part_name(part, subject), part) for part in beside]
    return called, every, noun, name(column, 24).short if column else capital(noun)


def _slices(audit: Audit, subject: View) -> SimpleNamespace:
    """Lay out the intervals of the slices shown."""
    called, every, noun, of_names = _chosen(audit, subject)
    by_class = noun == "class"
    limit = max((each for each in audit.limit[:2] if each is not None), default=None)
    rare, mark = captions.is_per_thousand(audit), audit.story.mark
    as_ratio = limit is None and (audit.materiality_ratio is not None or rare)
    about = "Events per 1,000 rows" if rare and as_ratio else None  # as the errors beside them
    numbers = vocabulary.of_distributions(audit)
    if not by_class and audit.n_classes > 2:
        about = vocabulary.begun(lens_name(subject))

    def ends(of: View | Part, low: float, high: float) -> tuple[float, float]:
        """Return the ends of an interval for an error or a ratio; the true rate may be 0."""
        if not as_ratio:
            return low, high
        stated, least, most = of.predicted or 0.0, *((of.predicted or 0.0) - end for end in (high, low))
        return stated / most if most else math.inf, stated / least if least > 0.0 else math.inf

    def row(called: str, of: View | Part) -> SimpleNamespace:
        """Lay out a slice; ``bar``: low end, estimate and high end of its joint interval."""
        shown = audit.limit.shown(of)
        low, high = ends(of, shown.low or 0.0, shown.high or 0.0)
        (stated, seen), marked, texts = rates(of), mark(of), captions.shares(of, rare)
        if rare and as_ratio:
            texts = captions.per_thousand(stated), captions.per_thousand(seen)
        value = (stated / seen if seen else high) if as_ratio else of.error or 0.0
        alone = None if of.own_low is None or of.own_high is None else ends(of, of.own_low, of.own_high)
        if isinstance(of, Slice):
            alone = value, value  # it was chosen by its outcomes
        return SimpleNamespace(
            name=name(called),
            of=of,
            predicted=texts[0],
            observed=bracketed(texts[1], of),
            bad=marked.side is not None,
            found=marked.side is None and of.id in audit.wrong_views,
            pointless=f"limit not meaningful (rate {texts[0]})" * (marked.place == "pointless"),
            above=capital(short_name(of)) if of is first_group and numbers else None,
            bar=(low, value, high),
            own=alone,
            error=f"{value:.3g}×" if as_ratio else signed_points(value, low, high),
            words=f"{name(called).short}: {means(of)}: {(times if as_ratio else interval)(of, audit)}",
        )

    shown = [of for _, of in called]
    first_group = next((of for of in shown if isinstance(of, View) and of.group), None)
    rows = [row(*each) for each in called]
    reach = (sorted((*each.bar, *(each.own or ()))) for each in rows)  # its own end decides "within"
    bars = [(low, row.bar[1], high) for (low, *_, high), row in zip(reach, rows, strict=True)]
    axis = pictures.axis_of_bars(bars, limit or 0.0, as_ratio=as_ratio)
    more = len({view.key for view in every} - {of.key for of in shown if isinstance(of, View)})
    return SimpleNamespace(
        title=sentence(captions.slices_title(audit, [subject] if noun == "part" else every, noun)),
        note=sentence(captions.slices_note(audit, about, shown)),
        marked=any(each.bad for each in rows),
        limit=captions.shaded(audit),
        seen=capital(unit().seen),
        head=f"Predicted ÷ {unit().seen}" if as_ratio else f"Error, {unit().heading}",
        noun="Stated" if numbers else of_names,
        ends=[each.removesuffix(" are covered") for each in words.ends_of(audit)],
        by_class=by_class,
        axis=axis,
        zero=float(as_ratio),
        corridor=audit.limit.drawn,
        ticks=diagrams.ticks(axis, audit.limit.drawn),
        rows=rows,
        more=more,
        nouns="stated probabilities" if by_class and numbers else captions.plural(noun, more),
    )


def _called(numbers: bool, view: View, by_class: bool, one_column: bool) -> str:
    if numbers and view.group is None:
        return capital(short_name(view))
    if by_class:
        called = lens_name(view)
        return called.removeprefix("class ") if view.lens != "top_label" else capital(called)
    if view.group is None:
        return "All rows"
    if numbers:
        return vocabulary.short_group(view.group)
    return view.group.conditions[0].called if one_column else group_name(view.group)


# ------------------------------------------------------------------ the whole report


def summarise(audit: Audit, *, command: str | None = None, **told: str | None) -> SimpleNamespace:
    """Return the content of a report; ``told``: title, date and gate for the first screen."""
    views = in_order(audit)
    sized = [view for view in views if view.low is not None]
    listed = leading(sized, _LISTED)
    if (null := diagrams.evidence_picture(audit, vocabulary.outcomes_called(audit))) is not None:
        (null.drawing,) = charts.drawn(null.picture, null.label, [charts.CHANCE])
    drawn = "isotonic" if audit.functional else "reliability" if audit.n_classes else "cumulative"
    tables: dict[str, tuple[Sequence[Any], Callable[[Any, Audit], SimpleNamespace]]] = {
        "checks": (sorted(audit.checks, key=lambda check: not check.found), _check_row),
        "views": (sized, _view_row),
        "rests": (sorted(audit.rests, key=lambda rest: rest.adjusted_pvalue), _rest_row),
        "pictures": ([view for view in views if getattr(view, drawn)], _picture),
    }
    c, over_time = audit.times, None
    if c is not None and len(c.times) > 1 and any(each is not None for each in c.observed):
        of_time = audit.time_unit or ""
        label = f"Chance of {c.cause or audit.event or 'the event'} until "
        label += f"{c.times[-1]:.3g} {of_time}".strip() + f": predicted {c.predicted[-1]:.1%}"
        label += f", {c.events[-1]:,.0f} events, {c.expected[-1]:,.0f} expected."
        curves = pictures.over_time(c.times, c.observed, c.kaplan_meier, c.predicted, unit=of_time)
        (over_time,) = charts.drawn(curves, label, [charts.SMALL])
    measures = dict.fromkeys((check.statistic, check.measures) for check in audit.checks)
    more = {table: max(len(rows) - _ROOM[table], 0) for table, (rows, _) in tables.items()}
    return SimpleNamespace(
        audit=audit,
        first=first_screen(audit, **told),
        bounded=any(view.at_least_over is not None for view in sized),
        unbounded=any(view.at_least_over is None for view in sized),
        null=null,
        chance=None if null is None else captions.chance_title(null.reached, null.draws),
        features=words.by_feature(audit),
        along_note=captions.feature_note(audit),
        along=[_along(audit, each, [charts.SMALL]) for each in audit.by_feature],
        usual=captions.usual(audit),
        over_time=over_time,
        counts=[(named(view, audit), *_counts(view)) for view in views if view.events is not None],
        of_diagrams=captions.diagrams_note(audit, len(tables["pictures"][0])),
        unit=unit(),
        made=captions.made_note(audit, views),
        of_usual="the top class" if audit.usual and audit.usual.lens else None,
        found=len(audit.found) + sum(rest.found for rest in audit.rests),
        listed=[_view_row(view, audit) for view in listed],
        described=[_view_row(view, words.unlimited(audit)) for view in audit.described[:_MOST]],
        more=more | {"listed": len(sized) - len(listed)},
        measures=[(_statistic(statistic), f"{text} ({statistic})") for statistic, text in measures],
        command=command,
        versions=audit.to_dict()["versions"],
        **{
            table: [row(each, audit) for each in rows[: _ROOM[table]]]
            for table, (rows, row) in tables.items()
        },
    )


def named(view: View, audit: Audit) -> SimpleNamespace:
    """Return the name of a view as a row head; if it is cut, the whole is in ``full``.

    With two classes there is only one event, so a row is named by its group alone.
    """
    if vocabulary.is_single(audit) and view.lens == audit.views[0].lens:
        short = narrow_name(view, _NAME, rows_alone=True)
        short = short if view.group else capital(short)
    else:
        short = vocabulary.begun(narrow_name(view, _NAME))
    whole = f"{view.event or view.lens}{f' in {view.group.label}' if view.group else ''}"
    return SimpleNamespace(short=short, full=visible(whole) if "…" in short else None)


def _sized(of: Sized, audit: Audit, **more: Any) -> SimpleNamespace:
    """Return a table row for an error with its interval; ``of`` holds the numbers to sort by."""
    rare, shown = captions.is_per_thousand(audit), audit.limit.shown(of)
    predicted, observed = captions.shares(of, rare)
    return SimpleNamespace(
        of=of,
        predicted=predicted,
        observed=bracketed(observed, of),
        error=signed_points(of.error or 0.0, shown.low or 0.0, shown.high or 0.0),
        interval=ends(of, audit),
        **more,
    )


def _view_row(view: View, audit: Audit) -> SimpleNamespace:
    more = {"name": named(view, audit), "settled": settled(audit, view)}
    more |= {"side": captions.side(audit, view), "at_least": captions.at_least(view)}
    adjusted, found = pvalue(view.adjusted_pvalue, audit.alpha), view.key in audit.wrong_views
    return _sized(view, audit, adjusted=adjusted, found=found, **more)


def _rest_row(rest: Rest, audit: Audit) -> SimpleNamespace:
    view = next(each for each in audit.views if each.key == (rest.lens, rest.group))
    several = len({each.lens for each in audit.rests}) > 1
    group = name(narrow_name(view, _NAME) if several else group_name(rest.group))
    told = {"group": group, "parent": name(group_name(rest.parent)), "settled": settled(audit, rest)}
    return _sized(rest, audit, adjusted=pvalue(rest.adjusted_pvalue, audit.alpha), **told)


def _picture(view: View, audit: Audit) -> SimpleNamespace:
    """Return a view's reliability diagram and its numbers, or the picture of all levels."""
    shown, outside = named(view, audit), int(view.key in audit.wrong_views)
    r, drawn, bins = view.reliability, view.cumulative, list[tuple[Any, ...]]()
    seen = "an error was found" if outside else "nothing was found"
    if drawn is not None and vocabulary.of_distributions(audit):
        label = f"Level by level. {shown.short}: {captions.levels_title(audit, view, drawn)}"
        picture = diagrams.cumulative_picture(drawn, diagrams.OF_LEVELS)
    else:
        for of in charts.parts_of(view)[0] if r is None else ():
            bad = audit.story.mark(of).side is not None
            bins.append((*captions.shares(of), ends(of, audit), of.rows, bad))
        of_bins = () if r is None else zip(r.predicted, r.observed, r.low, r.high, r.rows, strict=True)
        for p, y, low, high, rows in of_bins:
            band = " to ".join(percents(low, high, 1))
            bins.append((*percents(p, y, 1), band, rows, not low <= y <= high))
        found, outside = outside, sum(bad for *_, bad in bins)
        count = counted(len(bins), "bin" if r else "part")
        if outside or not found:
            seen = f"{outside} of {count} {'outside the band' if r else 'proved wrong'}"
        else:
            seen += f"; each of {count} alone has too few rows to show it"
        label = f"Reliability diagram of {shown.short}: {seen}."
        picture = pictures.reliability(r) if r else _of_parts(audit, view, least=True).picture
        picture = picture._replace(marks=[each for each in picture.marks if each.kind != "rows"])
    (drawing,) = charts.drawn(picture, label, [charts.SMALL])
    told = {"rows": view.rows, "seen": seen, "outside": outside, "bins": bins}
    return SimpleNamespace(name=shown, drawing=drawing, **told)


def _counts(view: View) -> tuple[str, str, str]:
    """Return observed and expected events, and their ratio with limits."""
    count: Any = view.events
    if count.expected is None or count.low is count.high is None:
        return f"{count.observed:,.0f}", "–", "–"
    ratio = count.observed / max(count.expected, 1e-300)
    low, high = ("" if each is None else f"{each:.2f}" for each in (count.low, count.high))
    ends = f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less"
    return f"{count.observed:,.0f}", f"{count.expected:,.1f}", f"{ratio:.2f} ({ends})"


def _statistic(statistic: str) -> str:
    return str(name(words.KINDS.get(statistic, statistic)).short)


def _check_row(check: Check, audit: Audit) -> SimpleNamespace:
    low, high = check.pvalue_interval
    return SimpleNamespace(
        of=check,
        name=named(check.view, audit),
        statistic=_statistic(check.statistic),
        value=number(check.value),
        expected=" to ".join(map(number, check.expected or ())),
        pvalue=pvalue(check.pvalue, audit.alpha),
        interval=f"{low:.2g} to {high:.2g}",
        adjusted=pvalue(check.adjusted, audit.alpha),
    )
