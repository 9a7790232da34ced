"""The views of an audit with their sizes, and their pictures: as numbers and as marks."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrik

from caltest import pictures, pvalues
from caltest._numbers import figures, number, unit
from caltest._sums import Array
from caltest.auditing.draws import Answers
from caltest.auditing.plan import Look, Plan, form_of
from caltest.auditing.points import isotonic
from caltest.auditing.result import Audit
from caltest.auditing.sizes import Design, Sizes, half_width
from caltest.auditing.views import Cumulative, Histogram, PitHistogram, Reliability, View
from caltest.binning import ConsistencyBand, EqualMass, joint_bands, reliability_curve, share_bands
from caltest.data import Rows, Sample
from caltest.forms import Side
from caltest.forms.predictive import PitScores, levels_of
from caltest.laws import Classes, Pool, Quantiles, Survival
from caltest.lenses import within
from caltest.pictures import DIAGONAL, GRID, LINEAR, Axis, Mark, Picture, path_of, told_apart
from caltest.pvalues import reaching
from caltest.statistics import STATISTICS, PitKolmogorovSmirnov, Statistic
from caltest.statistics.times import observed_shares

_MOST_PICTURED = 30  # views with pictures, besides those with a bounded error
_KS, _ECD = "ks", "ecd"
_OF_LEVELS = PitKolmogorovSmirnov()
_UNSEEN = 3.0  # an event that did not occur in n rows has a rate below 3 / n with 95% confidence


def views_of(
    plan: Plan,
    labels: NDArray[np.intp],
    found: Answers,
    bounded: Mapping[Look, tuple[float, float]],
    sizes: Sizes,
    zero: NDArray[np.bool_],
) -> dict[Look, View]:
    """Describe every look; looks with bounds or findings get pictures.

    From the table of draws, (1 + B, H), only columns with a cumulative difference that was found are
    used. Bounds are kept if a check of the look found an error; lowering a bound is always valid.
    ``zero`` marks rows whose outcome has probability 0.
    """
    design, level, values = sizes.design, sizes.level, found.table
    own: dict[Look, list[int]] = {}
    for h, (look, _) in enumerate(plan.hypotheses):
        own.setdefault(look, []).append(h)
    order = np.argsort(-found.evidence[: len(plan.hypotheses)], kind="stable").tolist()
    wrong = dict.fromkeys(plan.hypotheses[h][0] for h in order if found.adjusted[h] <= level)
    scope = plan.looks[0].scope
    classes, points = scope.whole.n_classes is not None, scope.of_points
    chosen = {*list(wrong)[:_MOST_PICTURED], *bounded, *plan.looks[:points]}
    bands = bands_of(plan.looks, bounded, chosen if design.plain and classes else (), level)
    signed = sum(_registered(statistic) == _ECD for _, statistic in plan.hypotheses)
    views = {}
    for look in plan.looks:
        seen = look.sample(labels)
        by_name = {_registered(plan.hypotheses[h][1]): h for h in own[look]}
        told = {name for name, h in by_name.items() if found.adjusted[h] <= level}
        facts = sizes.of_look(look, seen, labels) if look.event else {}
        if _ECD in told and not design.guaranteed:  # a shape needs an interval of t
            facts["shape"] = shape_of(seen, design.at(look.places), level / signed)
        if look in bounded:
            lowest = bounded[look] if look in wrong else (0.0, 0.0)
            facts["at_least_over"], facts["at_least_under"] = lowest
        if look in bands:
            facts["reliability"] = reliability(seen, bands[look])
        if look in bands and _KS in told and values is not None and found.threshold is not None:
            _, band = reaching(values[:, by_name[_KS]], found.threshold, "greater")
            if np.isfinite(band):
                facts["cumulative"] = cumulative(seen, band)
        for h in own[look]:
            if values is not None and plan.hypotheses[h][1] == _OF_LEVELS:
                band = float(np.quantile(values[1:, h], 1.0 - level, method="higher"))
                facts |= {"cumulative": pit_difference(look, labels, band)}
                facts |= {"pit": pit_histogram(look, labels, level)}
        if look in bands or (look in chosen and not design.plain and look.event and classes):
            stated = design.of_look(look).scores
            facts["histogram"] = histogram(seen.rows.probs[:, 1] if stated is None else stated)
        if look in chosen and points:
            facts["histogram"] = histogram(look.scores(), (-math.inf, math.inf))
            facts["isotonic"] = isotonic(look, labels, facts["parts"])
        facts["horizon"] = look.scope.horizon
        facts["impossible"] = int(zero[look.where].sum()) if zero.any() else None
        pvalue = min(float(found.adjusted[h]) for h in own[look])
        view = View(look.scope.label, look.event, look.group, look.n_rows, **facts)
        pvalue = 1.0 if design.unproved(view) else pvalue
        views[look] = replace(view, direction=view.side, adjusted_pvalue=pvalue)
    return views


def _registered(statistic: Statistic) -> str:
    """Return the registered name of a statistic; "" for a user's own function."""
    return statistic.name if STATISTICS.get(statistic.name) is type(statistic) else ""


def shape_of(seen: Sample, design: Design, level: float) -> Side | None:
    """Return the sign of the mean surprise if its t interval excludes 0."""
    law: Any = seen.rows.law
    each = law.surprises()[np.arange(len(seen.labels)), seen.labels]
    if not np.isfinite(each).all():
        return None
    w = seen.rows.weights
    mean = float(w @ each) / float(w.sum())
    if abs(mean) <= half_width(design.sums(w * (each - mean)), float(w.sum()), level / 2):
        return None
    if mean > 0.0:
        return "over"
    # Surprises that did not occur could have a rate of up to 3 / n and are all positive: the sign must
    # survive them.
    possible = law.surprises(clip=1e-300).max()
    return "under" if mean + _UNSEEN * float(possible) / len(each) < 0.0 else None


# ------------------------------------------------------------------ pictures as numbers

_MOST_IN_BANDS = 2_000_000  # rows of all views: a second or two
_OF_ALWAYS = 0.8  # share of the level for diagrams that are always drawn
_MOST_BINS = 15
_ROWS_OF_A_BIN = 20
_PLACES = 200  # points of a cumulative difference
_BARS = 40
_ROUNDING = 1e-9  # of a count
_MARKS = 50  # points of the picture of levels
_TENTHS, _MOST_RANKS = 10, 25  # bins of a PIT histogram, and most bins of a rank histogram


def bands_of(
    looks: Sequence[Look], always: Collection[Look], chosen: Collection[Look], level: float
) -> dict[Look, ConsistencyBand]:
    """Return bands for the reliability diagrams of the chosen looks.

    Looks that are always drawn depend on predictions only and get most of the level. Which others are
    drawn depends on labels, so all of them share the rest. With very many rows, each look gets an equal
    share of the level; otherwise shares adapt to the counts.
    """
    single = [look for look in looks if look.event is not None]
    first = [look for look in single if look in always]
    rest = [look for look in single if look not in always]
    share = _OF_ALWAYS if first and rest else float(bool(first))
    joint: dict[Look, ConsistencyBand] = {}
    for part, alpha in ((first, share * level), (rest, (1.0 - share) * level)):
        if not (drawn := [look for look in part if look in chosen]):
            continue
        together = sum(look.n_rows for look in part) <= _MOST_IN_BANDS
        wanted = part if together else drawn
        views = [(pair[:, 1], bins_of(pair)) for pair in [look.view().rows.probs for look in wanted]]
        if together:
            found = joint_bands(views, alpha)
        else:
            own = alpha / len(part)
            found = [share_bands(scores, cells, own, own)[1] for scores, cells in views]
        joint |= {look: band for look, band in zip(wanted, found, strict=True) if look in chosen}
    return joint


def _binning(n_rows: int) -> EqualMass:
    """Return the bins of a diagram: up to 15, of about 20 rows or more each."""
    return EqualMass(int(np.clip(n_rows // _ROWS_OF_A_BIN, 1, _MOST_BINS)))


def bins_of(probs: Array) -> NDArray[np.intp]:
    """Return the bin of each row in the diagram for two classes, from left to right."""
    return _binning(len(probs)).cells(Rows(Classes(probs)))


def reliability(sample: Sample, band: ConsistencyBand) -> Reliability:
    """Return the reliability diagram of one probability, with a consistency band."""
    rows, labels = Rows(Classes(sample.rows.probs)), sample.labels
    curve = reliability_curve(rows, labels, _binning(len(labels)))
    parts = (curve.predicted, curve.observed, curve.counts, band.low, band.high)
    return Reliability(*(tuple(part.tolist()) for part in parts))


def cumulative(sample: Sample, band: float) -> Cumulative:
    """Return the cumulative difference at about 200 places, including that of its largest distance."""
    scores, share, path = path_of(sample.rows.probs[:, 1], sample.labels, np.ones(len(sample.labels)))
    places = np.linspace(0, len(path) - 1, _PLACES).round().astype(np.intp)
    kept = np.union1d(places, [np.abs(path).argmax()])
    shares, stated, values = (tuple(each[kept].tolist()) for each in (share, scores, path + 0.0))
    return Cumulative(shares, stated, values, float(band))


def pit_difference(look: Look, outcomes: NDArray[Any], band: float) -> Cumulative:
    """Return each level minus the share of outcomes at or below the predicted quantile."""
    view = look.view()
    law: Any = getattr(view.rows.law, "law", view.rows.law)  # the law inside ranks
    if of_times := isinstance(law, Survival):
        own = outcomes if look.places is None else outcomes[look.places]
        levels, found, reach = observed_shares(law, own, view.rows.weights)
        shares = found - levels
    else:
        form: Any = form_of(look, _OF_LEVELS, view.rows)
        shares = replace(form, distance=np.asarray).of_labels(view.outcomes(outcomes[None]))[0]
        levels = levels_of(form.law)
    every = -(-len(shares) // _MARKS)
    kept = np.union1d(np.arange(0, len(shares), every), [np.abs(shares).argmax(), len(shares) - 1])
    share, difference = (tuple(each[kept].tolist()) for each in (levels, 0.0 - shares))
    bands = tuple((band * reach[kept]).tolist()) if of_times else None
    return Cumulative(share, share, difference, band, bands)


def bins_of_pit(law: Any) -> int:
    """Return the number of PIT bins: one per rank of few members, a divisor of the number of many."""
    if not isinstance(law, Pool) or law.known is not True:
        return _TENTHS
    if law.size <= _MOST_RANKS:
        return law.size
    return max((bins for bins in range(_TENTHS, _MOST_RANKS) if law.size % bins == 0), default=_TENTHS)


def pit_histogram(look: Look, outcomes: NDArray[Any], level: float) -> PitHistogram | None:
    """Return the PIT histogram of outcomes; None for quantile forecasts."""
    view = look.view()
    form: Any = form_of(look, _OF_LEVELS, view.rows)
    if isinstance(form.law, Quantiles):
        return None
    law: Any = getattr(form.law, "law", form.law)
    bins, n = bins_of_pit(law), view.rows.n_samples
    sums = PitScores(form.law, form.weights, bins).sums(view.outcomes(outcomes[None]))[0]
    shares = np.diff(np.arange(1, bins) / bins + sums / form.weights.sum(), prepend=0.0, append=1.0)
    low = high = None
    if view.rows.are_alike and view.rows.clusters is None and getattr(law, "known", True) is True:
        side = level / (2 * bins)
        low, high = (np.ceil(bdtrik([side, 1.0 - side], n, 1.0 / bins) - _ROUNDING) / n).tolist()
    kind: Any = "rank" if isinstance(law, Pool) else "pit"
    return PitHistogram(kind, tuple(np.round(shares.clip(0.0, 1.0), 12).tolist()), low, high)


def histogram(scores: Array, ends: tuple[float, float] = (0.0, 1.0)) -> Histogram:
    """Count the rows in bins of equal width from the smallest to the largest prediction."""
    low, high = float(scores.min()), float(scores.max())
    if high - low < 1e-9:
        low, high = max(ends[0], low - 0.005), min(ends[1], high + 0.005)
    counts, edges = np.histogram(scores, bins=_BARS, range=(low, high))
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


# ------------------------------------------------------------------ pictures as marks

#: Axis labels of a cumulative difference, for probabilities and for distributions of numbers.
OF_ROWS = "share of the rows, from the lowest prediction", "{} of all rows"
OF_LEVELS = "level of the predicted quantile", "stated − observed, points of the rows"


def cumulative_picture(drawn: Cumulative, of: tuple[str, str] = OF_ROWS) -> Picture:
    """Draw the cumulative difference of a view with its band under calibration."""
    bands = drawn.bands and (drawn.bands[0], *drawn.bands)
    path = (0.0, *drawn.share), (0.0, *drawn.difference)
    of_x, of_y = of[0], of[1].format(unit().heading)
    return pictures.cumulative(*path, bands or drawn.band)._replace(of_x=of_x, of_y=of_y)


def pit_picture(drawn: PitHistogram, outcomes: str) -> Picture:
    """Draw the histogram of PIT values, or of ranks."""
    count = len(drawn.share)
    edges, even = np.linspace(0.0, 1.0, count + 1), 1.0 / count
    x = pictures.axis_of_probabilities([0.0, 1.0])
    of_x = f"where {outcomes} lie in what was predicted (PIT)"
    if drawn.kind == "rank":
        ends = (0.0, "lowest"), (0.5, "middle"), (1.0, "highest")
        x, of_x = Axis(0.0, 1.0, ends), f"rank of {outcomes} among what was predicted, {count} bins"
    y = pictures.axis_of_probabilities([0.0, 1.15 * max(*drawn.share, drawn.high or even)])
    marks, outside = [GRID], np.array(drawn.outside)
    for style, chosen in (("bar", ~outside), ("bar bad", outside)):
        marks.append(Mark("columns", style, edges, np.where(chosen, drawn.share, 0.0)))
    if drawn.low is not None and drawn.high is not None:
        marks.append(Mark("area", "over", (0.0, 1.0), (drawn.low,) * 2, (drawn.high,) * 2))
    marks.append(Mark("line", "diag", (0.0, 1.0), (even, even)))
    return Picture(marks, x, y, of_x, f"share of {outcomes}")


def coverage_of(audit: Audit, view: View, lead: View) -> list[View]:
    """Return the views comparable to the leading one: intervals or quantiles on the same rows."""
    entry, _ = within(view.lens)
    here = (each for each in audit.views if each.low is not None and each.group == view.group)
    beside = [each for each in here if within(each.lens)[0] == entry]
    kind = "quantile:" if within(lead.lens)[1].startswith("quantile:") else "interval:"
    alike = [each for each in beside if within(each.lens)[1].startswith(kind)]
    return sorted(alike if len(alike) > 1 else beside, key=lambda each: each.predicted or 0.0)


def coverage_picture(views: Sequence[View], shown: Sequence[Any], outcomes: str) -> Picture:
    """Draw observed against stated coverage: a dot for each view, with its interval."""
    x, y = [view.predicted or 0.0 for view in views], [view.observed or 0.0 for view in views]
    axis = pictures.axis_of_probabilities([0.0, 1.0])
    low, high = zip(*(each.true_rates for each in views), strict=True)
    marks = [GRID, DIAGONAL, Mark("line", "thin", x, y)]
    marks += pictures.with_intervals(x, y, low, high, [each in shown for each in views])
    of_x, of_y, above, below = "stated level", f"share of {outcomes} at or below", "high", "low"
    if all(within(view.lens)[1].startswith("interval:") for view in views):
        of_x, of_y = "stated probability of the interval", f"share of {outcomes} in it"
        above, below = "wide", "narrow"
    marks.append(Mark("text", "lab", 0.0, 1.0, (8, 16), f"above: too {above}"))
    marks.append(Mark("text", "lab", 1.0, 0.0, (-8, -10), f"below: too {below}"))
    return Picture(marks, axis, axis, of_x, of_y)


# ------------------------------------------------------------------ errors of views


_APART = 0.25  # of an axis: labels this far apart do not touch
_LETTER = 0.055  # of an axis: room per letter for labels of any length


def ticks(axis: Axis, limits: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """Return the tick labels of an axis: those of the limits first, then others that have room.

    If limits are too close to each other, the text above names them, and the middle is labelled here.
    """
    of_outcomes, long = unit().of_outcomes, max(len(label) for _, label in axis.marks)
    apart = _LETTER * long if of_outcomes else _APART
    ratio = axis.scale is not LINEAR
    signed = (f"{'+' * (end > 0.0)}{figures(unit().times * end, 3)}" for end in limits)
    ends = tuple(zip(limits, [f"{x:.3g}×" for x in limits] if ratio else list(signed), strict=True))
    if len(limits) > 1 and axis.at(limits[1]) - axis.at(limits[0]) < apart:
        ends = ((1.0, "1×") if ratio else (0.0, "0"),)
    kept = [*ends]
    for each in axis.marks:
        beside = kept if of_outcomes else ends
        if all(abs(axis.at(each[0]) - axis.at(end)) >= apart for end, _ in beside):
            kept.append(each)
    return tuple(sorted(kept))


def slices_picture(t: Any) -> Picture:
    """Draw the errors in a table of views: own intervals thick, joint intervals thin."""
    marks, count = [Mark("line", "zero", (t.zero, t.zero), (0.5, 0.5 - len(t.rows)))], len(t.rows)
    for row, place in zip(t.rows, range(0, -count, -1), strict=True):
        low, value, high = row.bar
        kind, own = "bad" if row.bad else "ok", row.own or (low, high)
        for style, ends in (("joint", (low, high)), ("own", own)):
            marks.append(Mark("bars", f"{style} {kind}", ends[:1], (place,), ends[1:]))
        marks += told_apart([value], [place], [row.bad])
        for end in () if row.pointless else t.corridor:
            marks.append(Mark("line", "limit", (end, end), (place + 0.5, place - 0.5)))
        marks.append(Mark("text", kind, 1.0, (place - 0.5 + count) / count, (6, 4), row.error))
    names = tuple((-float(k), row.name.short) for k, row in enumerate(t.rows))
    of_x = f"◂ {t.ends[0]}    {t.head[:1].lower()}{t.head[1:]}    {t.ends[1]} ▸"
    return Picture(marks, replace(t.axis, marks=t.ticks), Axis(0.5 - count, 0.5, names), of_x)


# ------------------------------------------------------------------ the evidence among the draws

_COLUMNS, _FAR = 30, 2.0  # multiple of the 95% quantile of the draws, where the axis is cut off
_ROOM = 0.82  # share of its width for the draws, if the observed value is far away


def evidence_picture(audit: Audit, outcomes: str) -> SimpleNamespace | None:
    """Draw the largest evidence in each draw and in the data; None where it is not known.

    Its fields are ``picture``, ``label``, ``reached`` (draws at least as large as the observed value),
    ``draws``, ``beyond`` (draws off the axis), ``far`` (whether the observed value is), and whether the
    overall p-value equals that rank (``ranked``), is larger (``doubled``: a two-sided check, or few
    clusters carry the statistic) or smaller (``settled``: by a label of probability 0).
    """
    if (drawn := audit.null_distribution) is None or not np.isfinite(drawn).any():
        return None
    draws, observed = np.sort(drawn[np.isfinite(drawn)]), audit.statistic
    span = float(min(draws[-1], _FAR * np.quantile(draws, 0.95)))  # few extremes do not press the rest
    far = not math.isfinite(observed) or observed > _FAR * span
    end, most = 1.0, span if far else max(span, observed)
    if most > 0.0:  # a round number, not smaller
        size = 10.0 ** math.floor(math.log10(most))
        end = next(k * size for k in (1.0, 2.0, 4.0, 6.0, 8.0, 10.0) if k * size >= most * (1 - 1e-12))
    ranked = audit.correction == "westfall_young"
    limit = pictures.critical(drawn, audit.alpha) if ranked else math.inf
    # If the overall p-value is not this rank, the observed value may lie on the other side of the
    # limit.
    stands = limit <= end and (observed > limit) == audit.rejected
    reached = pvalues.count(drawn, observed, "greater")
    rank = (1 + reached) / (1 + len(drawn))
    label = (
        f"Strongest evidence of {len(drawn):,} draws: median "
        f"{number(float(np.median(draws)))}, largest {number(float(draws[-1]))}; of the observed "
        f"{outcomes} {number(observed)}, which {reached:,} reach."
    )
    texts = f"your {outcomes}: {number(observed)}", "strongest evidence of any check"
    how: Any = {"bad": audit.rejected, "ends": (0.0, end), "limit": limit if stands else None}
    picture = among_draws(draws, observed, *texts, far=far, **how)
    beyond = len(drawn) - int(np.count_nonzero(draws <= end))
    counts = {"reached": reached, "draws": len(drawn), "beyond": beyond}
    settled = audit.impossible > 0 and audit.pvalue < (1.0 - 1e-9) * rank
    kinds = {"ranked": ranked, "doubled": audit.pvalue > (1.0 + 1e-9) * rank, "settled": settled}
    return SimpleNamespace(picture=picture, label=label, far=far, **counts, **kinds)


def among_draws(
    draws: Array, observed: float, text: str, of_x: str, *, bad: bool,
    ends: tuple[float, float], far: bool, limit: float | None = None,
) -> Picture:  # fmt: skip
    """Draw an observed value among values of draws; if ``far``, on a broken axis."""
    low, end = ends
    counts, edges = np.histogram(draws, bins=_COLUMNS, range=ends)
    x, y = pictures.axis_between(low, end), Axis(0.0, 1.0, ())
    bars = Mark("columns", "bar", edges, counts / max(counts))
    marks = [GRID, bars, Mark("line", "axis", (low, end), (0.0, 0.0))]
    if far:
        x = replace(x, high=low + (end - low) / _ROOM)
        zigzag = end + 0.015 * (end - low) * np.arange(4)
        marks.append(Mark("line", "axis", [*zigzag, x.high], (0.0, 0.0, 0.06, 0.0, 0.0)))
        observed = (end + x.high) / 2
    lines = [(f"labels {'bad' if bad else 'ok'}", observed, "strong", text, -22)]
    if limit is not None:
        lines.insert(0, ("threshold", limit, "", "rejects beyond", -6))
    for style, at, of_name, name, up in lines:
        marks.append(Mark("line", style, (at, at), (0.0, 1.0)))
        marks.append(Mark("text", of_name, x.at(at), 1.0, (0, up), name))
    return Picture(marks, x, y, of_x)
