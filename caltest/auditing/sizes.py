"""How large: simultaneous exact intervals of the mean errors of all views and of their parts.

One family, fixed by predictions and groups before a label is seen: V views share four fifths of alpha,
the parts (tenths and halves of all rows, fifths of every group) one fifth; half of each on either side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from caltest.auditing import diagrams
from caltest.auditing.draws import Answers
from caltest.auditing.plan import Look, Plan, Source
from caltest.auditing.views import Part, View
from caltest.bounds.clopper_pearson import mean_bounds
from caltest.data import Sample
from caltest.forms import Side
from caltest.pvalues import reaching

Array: TypeAlias = NDArray[np.float64]

_OF_VIEWS = 0.8  # of alpha
_WHOLE = (10, 2)  # parts of all rows
_GROUP = (5,)
_FEWEST = 10  # rows of a part


class Cut(NamedTuple):
    """Rows of one probability in the order of the predictions, and where its parts end."""

    order: NDArray[np.intp]
    ends: tuple[tuple[int, NDArray[np.intp]], ...]  # how many parts, and the end of each in the order


def cut(scores: Array, whole: bool) -> Cut:
    """Cut a view by its predictions into parts of about equally many rows; ties stay together."""
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1) + 1  # where ties end
    ends = []
    for parts in _WHOLE if whole else _GROUP:
        if len(scores) < parts * _FEWEST:
            continue
        wanted = np.arange(1, parts + 1) * len(scores) / parts
        near = np.searchsorted(last, wanted - 1e-9)  # the first end of ties at or after
        found = np.unique(last[np.minimum(near, len(last) - 1)])
        if len(found) > 1:
            ends.append((parts, found))
    return Cut(order, tuple(ends))


class Family(NamedTuple):
    """The levels of single bounds, one side each."""

    of_view: float
    of_part: float

    @classmethod
    def of(cls, alpha: float, n_views: int, n_parts: int) -> Family:
        """Share alpha among so many views and parts."""
        part = (1.0 - _OF_VIEWS) * alpha / (2 * max(n_parts, 1))
        return cls(_OF_VIEWS * alpha / (2 * max(n_views, 1)), part)

    def interval(self, predicted: float, rows: int, events: int) -> tuple[float, float]:
        """Return the interval of a view's mean error, predicted less true rate."""
        (low,), (high,) = _errors(np.array([predicted]), [rows], [events], self.of_view)
        return float(low), float(high)

    def parts(self, scores: Array, labels: NDArray[np.integer], where: Cut) -> tuple[Part, ...]:
        """Return the parts of a view, with the intervals of their errors."""
        found: list[Part] = []
        ordered, events = scores[where.order], labels[where.order]
        for of, ends in where.ends:
            starts = np.r_[0, ends[:-1]]
            rows = np.diff(ends, prepend=0)
            sums = np.array([float(ordered[a:b].sum()) for a, b in zip(starts, ends, strict=True)])
            hits = np.add.reduceat(events.astype(np.int64), starts)
            lows, highs = _errors(sums / rows, rows, hits, self.of_part)
            for place in range(len(ends)):
                count = int(rows[place])
                found.append(
                    Part(
                        of=of,
                        place=place,
                        rows=count,
                        predicted=float(sums[place] / count),
                        observed=float(hits[place] / count),
                        low=float(lows[place]),
                        high=float(highs[place]),
                        start=float(ordered[starts[place]]),
                        end=float(ordered[ends[place] - 1]),
                    )
                )
        return tuple(found)


def _errors(
    predicted: Array, rows: Sequence[int] | NDArray[np.integer], events: object, level: float
) -> tuple[Array, Array]:
    counts, hits = np.asarray(rows, dtype=np.float64), np.asarray(events, dtype=np.float64)
    least, most = mean_bounds(counts, hits, level)
    return predicted - most, predicted - least


def binned_error(parts: Sequence[Part]) -> tuple[float, float, float] | None:
    """Return the mean absolute error over the finest parts: its lower end, estimate and upper end."""
    finest = [part for part in parts if part.of == max(each.of for each in parts)]
    if not finest:
        return None
    rows = np.array([part.rows for part in finest]) / sum(part.rows for part in finest)
    lows, highs = (np.array([getattr(part, end) for part in finest]) for end in ("low", "high"))
    least = np.maximum(np.maximum(lows, -highs), 0.0)
    most = np.maximum(np.abs(lows), np.abs(highs))
    errors = np.abs([part.error for part in finest])
    return float(rows @ least), float(rows @ errors), float(rows @ most)


# ------------------------------------------------------------------ views

_MOST_PICTURED = 30  # views with pictures, besides those whose error is bounded
_KS, _ECD = "ks", "ecd"


def views_of(
    source: Source,
    whole: Sample,
    plan: Plan,
    found: Answers,
    values: Array | None,
    bounded: Mapping[Look, tuple[float, float]],
    level: float,
) -> dict[Look, View]:
    """Describe every look; those with bounds or findings have pictures.

    Of the draws (1 + B, H) only the columns of cumulative differences that were found are needed.
    Bounds are kept where a check of the look found an error; a bound may always be lowered.
    """
    own: dict[Look, list[int]] = {}
    for h, (look, _) in enumerate(plan.hypotheses):
        own.setdefault(look, []).append(h)
    order = np.argsort(-found.evidence[: len(plan.hypotheses)], kind="stable").tolist()
    wrong = dict.fromkeys(plan.hypotheses[h][0] for h in order if found.adjusted[h] <= level)
    bands = diagrams.bands(
        source, plan.looks, bounded, {*list(wrong)[:_MOST_PICTURED], *bounded}, level
    )
    single = [look for look in plan.looks if look.event is not None]
    cuts = {look: cut(source.at(look).probs[:, 1], look.group is None) for look in single}
    family = Family.of(level, len(single), sum(len(ends) for c in cuts.values() for _, ends in c.ends))
    signed = sum(statistic.name == _ECD for _, statistic in plan.hypotheses)
    views = {}
    for look in plan.looks:
        seen = source.sample(look, whole.labels)
        by_name = {plan.hypotheses[h][1].name: h for h in own[look]}
        told = {name for name, h in by_name.items() if found.adjusted[h] <= level}
        over, under = (
            bounded.get(look, (None, None))
            if look in wrong
            else ((0.0, 0.0) if look in bounded else (None, None))
        )
        view = View(
            lens=look.scope.label,
            event=look.event,
            group=look.group,
            rows=look.n_rows,
            shape=_shape(seen, level / signed) if _ECD in told else None,
            at_least_over=over,
            at_least_under=under,
            adjusted_pvalue=min(float(found.adjusted[h]) for h in own[look]),
        )
        if look.event is not None:
            view = _sized(view, look, seen, cuts[look], family)
        if look in bands:
            cumulative = None
            if _KS in told and values is not None and found.threshold is not None:
                _, band = reaching(values[:, by_name[_KS]], found.threshold, "greater")
                cumulative = diagrams.cumulative(seen, band)
            view = replace(
                view,
                reliability=diagrams.reliability(seen, bands[look]),
                cumulative=cumulative,
                histogram=diagrams.histogram(seen.rows.probs[:, 1]),
            )
        views[look] = view
    return views


def _sized(view: View, look: Look, seen: Sample, where: Cut, family: Family) -> View:
    """Add sizes: predicted, observed, their difference with its interval, and those of parts."""
    scores, labels = seen.rows.probs[:, 1], seen.labels
    predicted, events = float(scores.mean()), int(labels.sum())
    low, high = family.interval(predicted, look.n_rows, events)
    parts = family.parts(scores, labels, where)
    return replace(
        view,
        predicted=predicted,
        observed=events / look.n_rows,
        low=low,
        high=high,
        direction="over" if low > 0.0 else "under" if high < 0.0 else None,
        class_index=1 if look.scope.lens is None else look.scope.column,
        parts=parts,
        binned_error=binned_error(parts),
    )


def _shape(seen: Sample, level: float) -> Side | None:
    """Return the sign of the mean surprise, where its t interval excludes 0."""
    rows = len(seen.labels)
    each = seen.rows.surprises()[np.arange(rows), seen.labels]
    if not np.isfinite(each).all():
        return None
    mean, deviation = float(each.mean()), float(each.std(ddof=1))
    if abs(mean) <= stdtrit(rows - 1, 1.0 - level / 2) * deviation / rows**0.5:
        return None
    return "over" if mean > 0.0 else "under"
