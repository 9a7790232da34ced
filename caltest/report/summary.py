"""An audit as plain data, in the order of the report: templates lay out, and decide nothing."""

from __future__ import annotations

from types import SimpleNamespace

from caltest._visible import visible, visible_page
from caltest.auditing.result import Audit
from caltest.auditing.views import Check, Rest, View
from caltest.report import charts
from caltest.report.first import first_screen, name, sentence
from caltest.text import audit as words
from caltest.text import report as captions
from caltest.text.glossary import words_of
from caltest.text.numbers import (
    confidence_text,
    counted,
    leading,
    number,
    outward_points,
    percents,
    points,
    pvalue,
    signed_points,
)
from caltest.text.vocabulary import capital, group_name, limit, narrow_group, narrow_name, view_name

_CHECKS, _VIEWS, _RESTS, _SKIPPED = 300, 200, 100, 50  # rows of tables
_LISTED = 10  # views in a comment
_DIAGRAMS = 6
_WHAT = 200  # characters of what was skipped, a clause that may hold names
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
    checks = sorted(audit.checks, key=lambda check: not check.found)
    rests = sorted(audit.rests, key=lambda rest: rest.adjusted_pvalue)
    pictured = [view for view in views if view.reliability is not None][:_DIAGRAMS]
    measures = dict.fromkeys((check.statistic, check.measures) for check in audit.checks)
    versions, null = audit.to_dict(), charts.histogram(audit)
    return SimpleNamespace(
        first=first_screen(audit, title=title, date=date, gate=gate),
        rejected=audit.rejected,
        confidence=confidence_text(audit.confidence),
        bounded=any(view.at_least_over is not None for view in sized),
        unbounded=any(view.at_least_over is None for view in sized),
        alpha=f"{audit.alpha:g}",
        correction=audit.correction,
        words=words_of(audit),
        null=null,
        chance=None if null is None else captions.chance_title(null.reached, null.draws),
        chance_note=captions.chance_note(audit.clusters),
        pictures=[_picture(view, audit) for view in pictured],
        checks=[_check_row(check, audit) for check in checks[:_CHECKS]],
        found=len(audit.found) + sum(rest.found for rest in audit.rests),
        all_checks=audit.n_checks,
        more_checks=max(len(checks) - _CHECKS, 0),
        views=[_view_row(view, audit) for view in sized[:_VIEWS]],
        more_views=max(len(sized) - _VIEWS, 0),
        listed=[_view_row(view, audit) for view in leading(sized, _LISTED)],
        more_listed=len(sized) - len(leading(sized, _LISTED)),
        rests=[_rest_row(rest, audit) for rest in rests[:_RESTS]],
        more_rests=max(len(rests) - _RESTS, 0),
        skipped=[
            SimpleNamespace(
                what=name(each.what, _WHAT),
                rows="" if each.rows is None else f"{each.rows:,}",
                reason=sentence(each.reason),
            )
            for each in audit.skipped[:_SKIPPED]
        ],
        more_skipped=max(len(audit.skipped) - _SKIPPED, 0),
        notes=[sentence(text) for text in audit.warnings],
        measures=[
            (
                name(words.KINDS.get(statistic, statistic)).short,
                sentence(f"{text.replace(*_FLIPPED)} ({statistic})"),
            )
            for statistic, text in measures
        ],
        call=visible_page(audit.call),
        command=None if command is None else visible_page(command),
        settings=[
            ("seed", str(audit.seed)),
            ("draws" if audit.clusters else "label draws", f"{audit.n_resamples:,}"),
            ("alpha", f"{audit.alpha:g}"),
            ("limit", limit(audit) or "none"),
            ("tolerance", "none" if audit.tolerance is None else points(audit.tolerance)),
            ("correction", audit.correction),
            ("lenses", sentence(", ".join(audit.lenses))),
            ("groups", sentence(", ".join(audit.groups)) or "none"),
        ],
        versions=[("caltest", versions["caltest"]), *versions["versions"].items()],
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
    return SimpleNamespace(
        short=short,
        full=visible(whole) if "…" in short else None,
    )


def _view_row(view: View, audit: Audit) -> SimpleNamespace:
    assert view.predicted is not None
    assert view.observed is not None
    assert view.low is not None
    assert view.high is not None
    predicted, observed = map(captions.share, (view.predicted, view.observed))
    low, high = outward_points(view.low, view.high)
    return SimpleNamespace(
        name=named(view, audit),
        rows=f"{view.rows:,}",
        n_rows=view.rows,
        predicted=predicted,
        observed=observed,
        raw=(view.predicted, view.observed, view.error, view.adjusted_pvalue),
        error=signed_points(view.predicted - view.observed),
        interval=f"{low} to {high}",
        side=captions.side(audit, view),
        at_least=captions.at_least(view),
        adjusted=pvalue(view.adjusted_pvalue, audit.alpha),
    )


def _rest_row(rest: Rest, audit: Audit) -> SimpleNamespace:
    predicted, observed = map(captions.share, (rest.predicted, rest.observed))
    view = next(each for each in audit.views if each.key == (rest.lens, rest.group))
    several = len({each.lens for each in audit.rests}) > 1
    return SimpleNamespace(
        group=name(view_name(view) if several else group_name(rest.group)),
        parent=name("all rows" if rest.parent is None else group_name(rest.parent)),
        rows=f"{rest.rows:,}",
        n_rows=rest.rows,
        predicted=predicted,
        observed=observed,
        error=signed_points(rest.error),
        ends=" to ".join(outward_points(rest.low, rest.high)),
        raw=(rest.predicted, rest.observed, rest.error, rest.adjusted_pvalue),
        adjusted=pvalue(rest.adjusted_pvalue, audit.alpha),
        found=rest.found,
    )


def _picture(view: View, audit: Audit) -> SimpleNamespace:
    """Return the reliability diagram of a view that has one, and its numbers."""
    r = view.reliability
    assert r is not None
    bins = [
        SimpleNamespace(
            rows=f"{rows:,}",
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
    return SimpleNamespace(
        name=shown,
        rows=counted(view.rows, "row"),
        seen=seen,
        outside=outside,
        drawing=charts.reliability(r, f"Reliability diagram of {shown.short}: {seen}."),
        bins=bins,
    )


def _check_row(check: Check, audit: Audit) -> SimpleNamespace:
    low, high = check.pvalue_interval
    # The mean has the sign of the error that stands beside it, and not that of its statistic.
    sign = -1.0 if check.statistic == "citl" else 1.0
    expected = sorted(sign * end for end in check.expected or ())
    return SimpleNamespace(
        name=named(check.view, audit),
        rows=f"{check.view.rows:,}",
        n_rows=check.view.rows,
        statistic=name(words.KINDS.get(check.statistic, check.statistic)).short,
        measures=sentence(check.measures),
        value=number(sign * check.value),
        expected=" to ".join(map(number, expected)),
        pvalue=pvalue(check.pvalue, audit.alpha),
        interval=f"{low:.2g} to {high:.2g}",
        adjusted=pvalue(check.adjusted, audit.alpha),
        raw=(check.adjusted, check.pvalue, sign * check.value),
        found=check.found,
    )
