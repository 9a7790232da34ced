"""The first screen of a report as plain data: which slices, which picture, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from caltest._version import __version__
from caltest._visible import shortened, shown_value, visible
from caltest.auditing.result import Audit, shows
from caltest.auditing.views import Part, View
from caltest.pictures import axes
from caltest.report import charts
from caltest.text import audit as words
from caltest.text import report as captions
from caltest.text.audit import advice
from caltest.text.numbers import counted, leading
from caltest.text.sizes import rates, size
from caltest.text.vocabulary import capital, event_name, group_name, lens_name, view_name

_ROWS = 9  # of the table of slices
_NAME = 48  # characters of a name that are shown
_SENTENCE = 1500
_FAR = 2.5  # times the errors of interest: where an interval is cut off


def sentence(text: str) -> str:
    """Return a sentence with names in it as it is shown: nothing hidden in it, and not endless."""
    return shortened(visible(text), _SENTENCE)


def name(text: str, most: int = _NAME) -> SimpleNamespace:
    """Return a name as it is shown, ``short``, and in ``full`` where that is more, else None."""
    shown = visible(text)
    short = shortened(shown, most)
    return SimpleNamespace(short=short, full=None if short == shown else shown)


def first_screen(
    audit: Audit, *, title: str | None = None, date: str | None = None, gate: str | None = None
) -> SimpleNamespace:
    """Return what stands on the first screen of a report."""
    subject = _subject(audit)
    chip, why = words.chip(audit)
    slices = None if subject is None else _slices(audit, subject)
    return SimpleNamespace(
        audit=audit,
        title=visible(title) if title else "Calibration audit",
        event=event_name(audit) if audit.n_classes == 2 else None,
        columns=[name(column, 24).short for column in audit.groups[:6]],
        date=date,
        kind=audit.verdict.replace(" ", "-"),
        icon=captions.ICONS[audit.verdict],
        chip=sentence(chip),
        why=sentence(why),
        headline=sentence(audit.headline),
        size=sentence(size(audit)),
        gate=None if gate is None else sentence(gate),
        slices=slices,
        figure=_chance(audit) if subject is None else _figure(audit, subject),
        table_leads=subject is not None and _is_slice(subject),
        advice=[sentence(text) for text in advice(audit)],
        evidence=words.evidence(audit),
        evidence_note=sentence(words.evidence_note(audit)),
        assumes=sentence(words.assumes(audit)),
        version=__version__,
    )


def _is_slice(view: View) -> bool:
    """Whether a view is a group or a class, so that the table of slices carries the sentence."""
    return view.group is not None or (view.class_index is not None and view.lens.startswith("class:"))


def _subject(audit: Audit) -> View | None:
    """Return the view that carries the sentence: the one that explains, or the first of one event."""
    events = [view for view in audit.views if view.low is not None]
    if audit.rejected:
        if audit.worst is not None and audit.worst.low is not None:
            return audit.worst
        found = [check.view.key for check in audit.found]
        strongest = [view for key in found for view in events if view.key == key]
        whole = [view for view in strongest if view.group is None]
        if strongest:
            return (whole or strongest)[0]
    whole = [view for view in events if view.group is None]
    top = [view for view in whole if view.lens == "top_label"]
    return next(iter(top or whole or events), None)


# ------------------------------------------------------------------ the picture


def _figure(audit: Audit, view: View) -> SimpleNamespace:
    """Choose the picture of the check that carries the sentence, and draw it."""
    parts, halves = charts.parts_of(view)
    sized: tuple[View | Part, ...] = (view, *parts, *halves)
    bad = [of for of in sized if shows(audit, of)]
    label = capital(f"{view_name(view)}, {counted(view.rows, 'row')}: ")
    if audit.rejected and view.cumulative is not None and not bad:
        title = captions.cumulative_title(audit, view, view.cumulative)
        drawings = charts.cumulative(view.cumulative, f"{label}cumulative difference. {title}")
        return _pictured(title, captions.cumulative_note(audit), drawings)
    flat = audit.verdict in ("small", "within") and len(parts) > 1
    kind = "errors" if flat or charts.small(parts) or charts.crowded(parts) else "curve"
    kind = "rare" if charts.is_rare(parts, view) else kind
    shown = halves if kind == "errors" else ()
    title = captions.parts_title(audit, view, parts, shown)
    if kind == "errors":
        drawings = charts.errors(view, f"{label}error by prediction. {title}", bad, audit.materiality)
    else:
        drawings = charts.curve(view, f"{label}predicted against observed. {title}", bad)
    return _pictured(title, captions.parts_note(audit, kind, parts, shown), drawings)


def _chance(audit: Audit) -> SimpleNamespace | None:
    """Draw the evidence among that of the draws, of an audit in which no one event is looked at."""
    h = charts.histogram(audit)
    if h is None:
        return None
    title = captions.chance_title(h.reached, h.draws)
    return _pictured(title, captions.chance_note(audit.clusters), (h.drawing,))


def _pictured(title: str, note: str, drawings: Sequence[charts.Drawing]) -> SimpleNamespace:
    return SimpleNamespace(title=sentence(title), note=sentence(note), drawings=drawings)


# ------------------------------------------------------------------ the table of slices


def _slices(audit: Audit, subject: View) -> SimpleNamespace:
    """Choose the slices to show, the largest proved error first, and lay out their intervals."""
    events = [view for view in audit.views if view.low is not None]
    whole = [view for view in events if view.group is None]
    groups = [view for view in events if view.group is not None and view.lens == subject.lens]
    classes = [view for view in whole if view.lens.startswith("class:")]
    by_class = len(whole) > 1 and not groups
    if subject.group is None and any(shows(audit, view) for view in classes):
        by_class = True
    pool = whole if by_class else [view for view in events if view.lens == subject.lens]
    chosen = _chosen(audit, subject, pool, by_class)
    column = _one_column(pool)
    rows: list[tuple[str, View | Part]] = [
        (_called(view, by_class, column is not None), view) for view in chosen
    ]
    parts, halves = charts.parts_of(subject)
    beside = parts if len(parts) < max(part.of for part in parts) else halves  # ties: each value
    if subject.group is None and not by_class and len(beside) < _ROWS:
        named = [(captions.part_name(part, subject), part) for part in beside]
        if not groups:
            rows += named if len(parts) > 1 else []
        elif audit.worst is None and any(shows(audit, half) for half in halves):
            rows = [*named, *rows[: _ROWS - len(named)]]
    if groups:
        rows.sort(key=lambda row: not shows(audit, row[1]))
        rows.sort(key=lambda row: row[1].group is None if isinstance(row[1], View) else False)
    noun, nouns = ("class", "classes") if by_class else ("group", "groups")
    if not by_class and not groups:
        noun, nouns = "part", "parts"
    limit = audit.materiality
    rare = captions.is_rare(audit)
    as_ratio = audit.materiality_ratio is not None or (rare and limit is None)
    unit = "Events per 1,000 rows" if rare else None
    rate = captions.per_thousand if rare else captions.share
    words_of = captions.ratio_words if as_ratio else captions.error_words
    if not by_class and audit.n_classes != 2:
        unit = capital(lens_name(subject))
    ends = [_ends(of, as_ratio) for _, of in rows]
    if as_ratio:
        low, high = _interest([(max(a, 0.05), b, min(c, 50.0)) for a, b, c in ends], 1.0, 1.0)
        axis, zero = axes.ratios(low, high, most=4), 1.0
        ratio = audit.materiality_ratio
        corridor = None if ratio is None else (1.0 / ratio, ratio)
        head = "Predicted ÷ observed"
    else:
        low, high = _interest(ends, 0.0, limit or 0.0)
        axis, zero = axes.points(low, high, most=6 if max(-low, high) < 0.1 else 4), 0.0
        corridor = None if limit is None else (-limit, limit)
        head = "Error, points"
    bars, scale = charts.gauges(ends, axis, corridor, zero)
    of_rows = name(column, 24).short if column else capital(noun)
    if noun == "part":
        title = captions.rows_title(audit, subject)
    else:
        title = captions.slices_title(audit, pool, audit.worst, noun)
    more = len([view for view in pool if not by_class or view in classes])
    more -= sum(isinstance(of, View) and (not by_class or of in classes) for _, of in rows)
    return SimpleNamespace(
        title=sentence(title),
        note=sentence(captions.slices_note(audit, unit)),
        marked=audit.rejected,
        limit=captions.shaded(audit),
        head=head,
        noun=of_rows,
        by_class=by_class,
        axis=scale,
        rows=[
            SimpleNamespace(
                name=name(called),
                of=of,
                predicted=rate(rates(of)[0]),
                observed=rate(rates(of)[1]),
                bad=shows(audit, of) is not None,
                bar=bar,
                words=f"{name(called).short}: {words_of(of)}",
            )
            for (called, of), bar in zip(rows, bars, strict=True)
        ],
        more=more,
        nouns=noun if more == 1 else nouns,
    )


def _one_column(views: Sequence[View]) -> str | None:
    """Return the column that all groups are of; None if there are several, or none."""
    columns = {each.column for view in views if view.group for each in view.group.conditions}
    return columns.pop() if len(columns) == 1 else None


def _called(view: View, by_class: bool, one_column: bool) -> str:
    if by_class:
        called = lens_name(view)
        return called.removeprefix("class ") if view.lens != "top_label" else capital(called)
    if view.group is None:
        return "All rows"
    return shown_value(view.group.value) if one_column else group_name(view.group)


def _chosen(audit: Audit, subject: View, pool: Sequence[View], by_class: bool) -> list[View]:
    """Return about nine views: what explains, what is shown and its parents, siblings, the worst."""

    def related(view: View) -> int:
        if view.key == subject.key or view.group is None:
            return 0
        own = set(subject.group.conditions) if subject.group else set()
        if shows(audit, view) or set(view.group.conditions) < own:
            return 1
        return 2 if subject.group and view.group.column == subject.group.column else 3

    by_size = sorted(pool, key=lambda view: (-view.proved, -abs(view.error or 0.0)))
    if not by_class:
        ordered = sorted(by_size, key=related)
    else:  # classes; the top class, unless its error leaves no room to see theirs
        top = [view for view in by_size if view.lens == "top_label"]
        single = [view for view in by_size if view.lens != "top_label"]
        first = [view for view in single if view.key == subject.key]
        first += [view for view in top if _reach([view]) <= 4.0 * _reach(single[:_ROWS])]
        ordered = [*first, *(view for view in single if view not in first)]
    kept = leading(ordered, _ROWS)
    return [view for view in by_size if view in kept]


def _reach(views: Sequence[View]) -> float:
    """Return how far from 0 the intervals reach."""
    return max((max(-(view.low or 0.0), view.high or 0.0) for view in views), default=0.0)


def _ends(of: View | Part, as_ratio: bool) -> tuple[float, float, float]:
    """Return the low end, the estimate and the high end of an error or of a ratio."""
    if not as_ratio:
        return of.low or 0.0, of.error or 0.0, of.high or 0.0
    low, high = captions.ratio_ends(of)
    return low, rates(of)[0] / of.observed if of.observed else high, high


def _interest(
    ends: Sequence[tuple[float, float, float]], zero: float, limit: float
) -> tuple[float, float]:
    """Return from where to where an axis goes: wide intervals of small groups do not press the rest."""
    if zero == 1.0:
        return min(low for low, _, _ in ends), max(high for _, _, high in ends)
    proved = [end for low, _, high in ends if not low <= 0.0 <= high for end in (low, high)]
    narrow = sorted(max(-low, high) for low, _, high in ends)[len(ends) // 2]
    least = max([limit, narrow, *(abs(value) for _, value, _ in ends), *map(abs, proved)])
    low = max(min([*(low for low, _, _ in ends), -1.05 * limit]), -_FAR * least)
    return low, min(max([*(high for _, _, high in ends), 1.05 * limit]), _FAR * least)
