"""An audit as plain data, in the order of the report: templates lay out, and decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from caltest._visible import visible
from caltest.auditing.result import Audit
from caltest.auditing.views import Check, Rest, View
from caltest.report import charts
from caltest.report.first import first_screen, name
from caltest.text import audit as words
from caltest.text import report as captions
from caltest.text.numbers import (
    counted,
    leading,
    number,
    outward_points,
    percents,
    pvalue,
    signed_points,
)
from caltest.text.sizes import rates
from caltest.text.vocabulary import capital, group_name, narrow_group, narrow_name, view_name

_ROOM = {"checks": 300, "views": 200, "rests": 100, "pictures": 6}  # rows of tables, and pictures
_LISTED = 10  # views in a comment
_NAME = 48
_FLIPPED = "observed less predicted", "predicted less observed"  # the value of the mean, in a report


def summarise(
    audit: Audit,
    *,
    title: str | None = None,
    command: str | None = None,
    date: str | None = None,
    gate: str | None = None,
) -> SimpleNamespace:
    """Return what a report says of an audit; ``gate``: what lets more pass than the defaults."""
    views = _worst_first(audit)
    sized = [view for view in views if view.low is not None]
    listed, null = leading(sized, _LISTED), charts.histogram(audit)
    tables: dict[str, tuple[Sequence[Any], Callable[[Any, Audit], SimpleNamespace]]] = {
        "checks": (sorted(audit.checks, key=lambda check: not check.found), _check_row),
        "views": (sized, _view_row),
        "rests": (sorted(audit.rests, key=lambda rest: rest.adjusted_pvalue), _rest_row),
        "pictures": ([view for view in views if view.reliability is not None], _picture),
    }
    measures = dict.fromkeys((check.statistic, check.measures) for check in audit.checks)
    more = {table: max(len(rows) - _ROOM[table], 0) for table, (rows, _) in tables.items()}
    return SimpleNamespace(
        audit=audit,
        first=first_screen(audit, title=title, date=date, gate=gate),
        bounded=any(view.at_least_over is not None for view in sized),
        unbounded=any(view.at_least_over is None for view in sized),
        null=null,
        chance=None if null is None else captions.chance_title(null.reached, null.draws),
        found=len(audit.found) + sum(rest.found for rest in audit.rests),
        listed=[_view_row(view, audit) for view in listed],
        more=more | {"listed": len(sized) - len(listed)},
        measures=[
            (_statistic(statistic), f"{text.replace(*_FLIPPED)} ({statistic})")
            for statistic, text in measures
        ],
        command=command,
        versions=audit.to_dict()["versions"],
        **{
            table: [row(each, audit) for each in rows[: _ROOM[table]]]
            for table, (rows, row) in tables.items()
        },
    )


def _worst_first(audit: Audit) -> list[View]:
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


def named(view: View, audit: Audit) -> SimpleNamespace:
    """Return what is looked at, as the head of a row; where a name is cut, the whole in ``full``.

    Of two classes there is one thing to look at, and the rows tell what the row is.
    """
    if audit.n_classes == 2 and view.lens == audit.views[0].lens:
        short = narrow_group(view.group, _NAME)
        short = short if view.group else capital(short)
    else:
        short = capital(narrow_name(view, _NAME))
    whole = f"{view.event or view.lens}{f' in {view.group.label}' if view.group else ''}"
    return SimpleNamespace(short=short, full=visible(whole) if "…" in short else None)


def _sized(of: View | Rest, audit: Audit, **more: Any) -> SimpleNamespace:
    """Return a row of an error with its interval; ``of``: as numbers, by which tables are sorted."""
    predicted, observed = map(captions.share, rates(of))
    return SimpleNamespace(
        of=of,
        predicted=predicted,
        observed=observed,
        error=signed_points(of.error or 0.0),
        interval=" to ".join(outward_points(of.low or 0.0, of.high or 0.0)),
        adjusted=pvalue(of.adjusted_pvalue, audit.alpha),
        **more,
    )


def _view_row(view: View, audit: Audit) -> SimpleNamespace:
    side, least = captions.side(audit, view), captions.at_least(view)
    return _sized(view, audit, name=named(view, audit), side=side, at_least=least)


def _rest_row(rest: Rest, audit: Audit) -> SimpleNamespace:
    view = next(each for each in audit.views if each.key == (rest.lens, rest.group))
    several = len({each.lens for each in audit.rests}) > 1
    group = name(view_name(view) if several else group_name(rest.group))
    return _sized(rest, audit, group=group, parent=name(group_name(rest.parent)), found=rest.found)


def _picture(view: View, audit: Audit) -> SimpleNamespace:
    """Return the reliability diagram of a view that has one, and its numbers."""
    r = view.reliability
    assert r is not None
    bins = [
        SimpleNamespace(
            rows=rows,
            rates=percents(predicted, observed, 1),
            band=" to ".join(percents(low, high, 1)),
            outside=not low <= observed <= high,
        )
        for predicted, observed, rows, low, high in zip(
            r.predicted, r.observed, r.rows, r.low, r.high, strict=True
        )
    ]
    outside = sum(each.outside for each in bins)
    seen = f"{outside} of {counted(len(bins), 'bin')} outside the band"
    shown = named(view, audit)
    drawing = charts.reliability(r, f"Reliability diagram of {shown.short}: {seen}.")
    return SimpleNamespace(
        name=shown, rows=view.rows, seen=seen, outside=outside, drawing=drawing, bins=bins
    )


def _statistic(statistic: str) -> str:
    short: str = name(words.KINDS.get(statistic, statistic)).short
    return short


def _check_row(check: Check, audit: Audit) -> SimpleNamespace:
    low, high = check.pvalue_interval
    # The mean has the sign of the error that stands beside it, and not that of its statistic.
    sign = -1.0 if check.statistic == "citl" else 1.0
    return SimpleNamespace(
        of=check,
        name=named(check.view, audit),
        statistic=_statistic(check.statistic),
        raw=sign * check.value,
        value=number(sign * check.value),
        expected=" to ".join(map(number, sorted(sign * end for end in check.expected or ()))),
        pvalue=pvalue(check.pvalue, audit.alpha),
        interval=f"{low:.2g} to {high:.2g}",
        adjusted=pvalue(check.adjusted, audit.alpha),
        found=check.found,
    )
