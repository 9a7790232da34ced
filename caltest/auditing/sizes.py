"""How large: simultaneous exact intervals of the mean errors of all views and of their parts.

One family, fixed by predictions and groups before a label is seen: V views share four fifths of alpha,
the parts (tenths and halves of all rows, fifths of every group) one fifth; half of each on either side.

Of rows that count differently, or depend on each other, intervals are those of t, by the sums of
clusters (of rows, where there are none), longer where these sums are skewed: right for many of them.
Where events are too few for that they are Hoeffding's, wide and right for any number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammainccinv, gammaincinv, kl_div, ndtri, stdtrit

from caltest.auditing import diagrams
from caltest.auditing.draws import Answers
from caltest.auditing.plan import Look, Plan, Source
from caltest.auditing.views import Part, View
from caltest.bounds.clopper_pearson import LARGEST_LEVEL, mean_bounds
from caltest.data import Sample
from caltest.data.counting import effective_number
from caltest.data.rates import rates_by_class
from caltest.forms import FEWEST_CLUSTERS, Side
from caltest.pvalues import reaching
from caltest.statistics import STATISTICS, Statistic
from caltest.text import audit_notes

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


_FEWEST_EVENTS = 10.0  # effective ones, and rows without, of an interval of t


class Design(NamedTuple):
    """How rows count, which of them depend on each other, and what was predicted of the population.

    Of rows that were kept by their label, ``counts`` are inverse rates, and ``scores`` P(class 1) in
    the whole population; else these are weights and None.
    """

    counts: Array | None = None
    clusters: NDArray[np.intp] | None = None
    scores: Array | None = None

    @classmethod
    def of(cls, whole: Sample, rates: Mapping[Any, float] | None) -> Design:
        """Return that of all rows, kept by their label at these rates; of two classes these count."""
        rows = whole.rows
        if rates is None or rows.n_classes != 2:
            return cls(rows.weights, rows.clusters)
        by_class = rates_by_class(rates, 2, rows.classes)
        kept = np.array([by_class.get(k, 1.0) for k in range(2)])
        counts = (1.0 / kept)[whole.labels]
        if rows.weights is not None:
            counts = counts * rows.weights
        before = rows.probs / kept
        return cls(counts, rows.clusters, before[:, 1] / before.sum(axis=1))

    @property
    def plain(self) -> bool:
        """Whether rows are independent and count alike, so that intervals are exact."""
        return self.counts is None and self.clusters is None

    def at(self, rows: NDArray[np.intp] | None) -> Design:
        """Return that of some rows."""
        if rows is None:
            return self
        return Design(
            None if self.counts is None else self.counts[rows],
            None if self.clusters is None else self.clusters[rows],
            None if self.scores is None else self.scores[rows],
        )

    def sums(self, values: Array) -> Array:
        """Add values of rows up over clusters; without any, every row is one."""
        if self.clusters is None:
            return values
        _, codes = np.unique(self.clusters, return_inverse=True)
        return np.asarray(np.bincount(codes.reshape(-1), values), dtype=np.float64)

    def interval(
        self, scores: Array, labels: NDArray[np.integer], level: float
    ) -> tuple[float, float, float, float]:
        """Return what is predicted and observed on average, and the interval of the error."""
        scores = scores if self.scores is None else self.scores
        w = np.ones(len(scores)) if self.counts is None else self.counts
        whole = float(w.sum())
        predicted, observed = float(w @ scores) / whole, float(w @ labels) / whole
        error = predicted - observed
        sums = self.sums(w * (scores - labels - error))
        # Clusters with events, and without, and clusters by their rows.
        effective = map(effective_number, map(self.sums, (w * labels, w * (1 - labels), w)))
        if len(sums) < 2 or min(effective) < _FEWEST_EVENTS:
            least, most = self._of_few(w, labels, level) if self.scores is None else (0.0, 1.0)
            return predicted, observed, predicted - most, predicted - least
        below, above = _ends(sums, whole, level)
        return predicted, observed, max(error - below, predicted - 1.0), min(error + above, predicted)

    def _of_few(self, w: Array, labels: NDArray[np.integer], level: float) -> tuple[float, float]:
        """Return bounds of the true rate for any number of clusters and events.

        Sums of clusters are independent and at most the largest cluster's weight, so that their mean
        is as concentrated as one of coins (Hoeffding 1963, theorem 1, with the Kullback-Leibler
        distance).
        """
        sums = self.sums(w)
        n, most = len(sums), float(sums.max())
        mean, far = min(float(w @ labels) / (n * most), 1.0), -math.log(level) / n

        def beyond(rate: float) -> float:
            return float(kl_div(mean, rate) + kl_div(1.0 - mean, 1.0 - rate)) - far

        def end(furthest: float) -> float:
            return furthest if beyond(furthest) <= 0.0 else float(brentq(beyond, furthest, mean))

        scale = n * most / float(w.sum())
        return min(end(1e-300) * scale, 1.0), min(end(1.0 - 1e-16) * scale, 1.0)


def few_clusters(
    source: Source, looks: Iterable[Look], whole: Sample, design: Design
) -> tuple[str, ...]:
    """Note in how many views of one probability few clusters carry the errors."""
    if design.clusters is None:
        return ()
    carrying = []
    for look in looks:
        seen, here = source.sample(look, whole.labels), design.at(look.rows)
        w = 1.0 if here.counts is None else here.counts
        squares = here.sums(w * (seen.rows.probs[:, 1] - seen.labels)) ** 2
        carrying.append(effective_number(squares))
    few = sum(each < FEWEST_CLUSTERS for each in carrying)
    if not few:
        return ()
    return (audit_notes.few_clusters(few, len(carrying), FEWEST_CLUSTERS, min(carrying)),)


def _half_width(sums: Array, whole: float, level: float) -> float:
    """Return half the width of the t interval of a mean, by centred sums of what is independent."""
    n = len(sums)
    error: float = (n / (n - 1.0) * float(sums @ sums)) ** 0.5 / whole
    return float(stdtrit(n - 1, 1.0 - level)) * error


_STRAIGHT = 1e6  # events in effect from where on sums are not skewed


def _ends(sums: Array, whole: float, level: float) -> tuple[float, float]:
    """Return how far the interval of an error goes below and above it, by centred sums.

    Few events make sums skewed, and intervals of t too short on the side where errors are larger: with
    fewer events than expected the standard error comes out too small as well. Sums with variance v and
    third moment c are like c / v times a Poisson count of v³ / c² events, whose bounds are exact
    (Garwood 1936; Fay and Feuer 1997, for weights). On either side the longer one counts.
    """
    half, largest = _half_width(sums, whole, level), float(np.abs(sums).max())
    if largest == 0.0:
        return half, half
    sums = sums / largest
    second, third = float(sums @ sums), float(sums @ (sums * sums))
    if second**3 >= _STRAIGHT * third**2:
        return half, half
    events, unit = second**3 / third**2, abs(third) / second * largest / whole
    unit *= float(stdtrit(len(sums) - 1, level) / ndtri(level))  # since moments are estimated
    short = unit * (events - float(gammaincinv(events, level)))
    long = unit * (float(gammainccinv(events + 1.0, level)) - events)
    below, above = (long, short) if third < 0.0 else (short, long)
    return max(half, below), max(half, above)


class Family(NamedTuple):
    """The levels of single bounds, one side each."""

    of_view: float
    of_part: float

    @classmethod
    def of(cls, alpha: float, n_views: int, n_parts: int) -> Family:
        """Share alpha among so many views, with what groups leave, and parts."""
        part = (1.0 - _OF_VIEWS) * alpha / (2 * max(n_parts, 1))
        view = _OF_VIEWS * alpha / (2 * max(n_views, 1))
        return cls(min(view, LARGEST_LEVEL), min(part, LARGEST_LEVEL))

    def interval(self, predicted: float, rows: int, events: int) -> tuple[float, float]:
        """Return the interval of a view's mean error, predicted less true rate."""
        (low,), (high,) = _errors(np.array([predicted]), [rows], [events], self.of_view)
        return float(low), float(high)

    def parts(
        self, scores: Array, labels: NDArray[np.integer], where: Cut, design: Design
    ) -> tuple[Part, ...]:
        """Return the parts of a view, with the intervals of their errors."""
        found: list[Part] = []
        ordered, events = scores[where.order], labels[where.order]
        for of, ends in where.ends:
            starts = np.r_[0, ends[:-1]]
            rows = np.diff(ends, prepend=0)
            if design.plain:
                sums = np.array([float(ordered[a:b].sum()) for a, b in zip(starts, ends, strict=True)])
                hits = np.add.reduceat(events.astype(np.int64), starts)
                both = _errors(sums / rows, rows, hits, self.of_part)
                sized = np.column_stack([sums / rows, hits / rows, *both])
            else:
                each = [where.order[a:b] for a, b in zip(starts, ends, strict=True)]
                sized = np.array(
                    [design.at(own).interval(scores[own], labels[own], self.of_part) for own in each]
                )
            for place, (predicted, observed, low, high) in enumerate(sized.tolist()):
                found.append(
                    Part(
                        of=of,
                        place=place,
                        rows=int(rows[place]),
                        predicted=predicted,
                        observed=observed,
                        low=low,
                        high=high,
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
_UNSEEN = 3.0  # what did not occur in n rows has a rate below 3 / n with 95% confidence


def family_of(source: Source, plan: Plan, n_rests: int, level: float) -> tuple[Family, dict[Look, Cut]]:
    """Cut all views of an event into parts, and share the level among all that have an interval."""
    single = [look for look in plan.looks if look.event is not None]
    cuts = {look: cut(source.at(look).probs[:, 1], look.group is None) for look in single}
    n_parts = sum(len(ends) for each in cuts.values() for _, ends in each.ends)
    return Family.of(level, len(single) + n_rests, n_parts), cuts


def views_of(
    source: Source,
    whole: Sample,
    plan: Plan,
    found: Answers,
    values: Array | None,
    bounded: Mapping[Look, tuple[float, float]],
    design: Design,
    family: Family,
    cuts: Mapping[Look, Cut],
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
    chosen = {*list(wrong)[:_MOST_PICTURED], *bounded}
    bands = diagrams.bands(source, plan.looks, bounded, chosen, level) if design.plain else {}
    signed = sum(_registered(statistic) == _ECD for _, statistic in plan.hypotheses)
    views = {}
    for look in plan.looks:
        seen = source.sample(look, whole.labels)
        by_name = {_registered(plan.hypotheses[h][1]): h for h in own[look]}
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
            shape=_shape(seen, design.at(look.rows), level / signed) if _ECD in told else None,
            at_least_over=over,
            at_least_under=under,
            adjusted_pvalue=min(float(found.adjusted[h]) for h in own[look]),
        )
        if look.event is not None:
            view = _sized(view, look, seen, cuts[look], family, design.at(look.rows))
        if look in bands or (look in chosen and not design.plain and look.event is not None):
            cumulative = None
            if design.plain and _KS in told and values is not None and found.threshold is not None:
                _, band = reaching(values[:, by_name[_KS]], found.threshold, "greater")
                if np.isfinite(band):
                    cumulative = diagrams.cumulative(seen, band)
            view = replace(
                view,
                reliability=diagrams.reliability(seen, bands[look]) if look in bands else None,
                cumulative=cumulative,
                histogram=diagrams.histogram(seen.rows.probs[:, 1]),
            )
        views[look] = view
    return views


def _registered(statistic: Statistic) -> str:
    """Return the name of a statistic of the package; a function of the user's has none."""
    return statistic.name if STATISTICS.get(statistic.name) is type(statistic) else ""


def _sized(view: View, look: Look, seen: Sample, where: Cut, family: Family, design: Design) -> View:
    """Add sizes: predicted, observed, their difference with its interval, and those of parts."""
    scores, labels = seen.rows.probs[:, 1], seen.labels
    if design.plain:
        predicted, events = float(scores.mean()), int(labels.sum())
        observed = events / look.n_rows
        low, high = family.interval(predicted, look.n_rows, events)
    else:
        predicted, observed, low, high = design.interval(scores, labels, family.of_view)
    parts = family.parts(scores, labels, where, design)
    return replace(
        view,
        predicted=predicted,
        observed=observed,
        low=low,
        high=high,
        direction="over" if low > 0.0 else "under" if high < 0.0 else None,
        class_index=1 if look.scope.lens is None else look.scope.column,
        parts=parts,
        binned_error=binned_error(parts),
    )


def _shape(seen: Sample, design: Design, level: float) -> Side | None:
    """Return the sign of the mean surprise, where its t interval excludes 0."""
    each = seen.rows.surprises()[np.arange(len(seen.labels)), seen.labels]
    if not np.isfinite(each).all():
        return None
    w = np.ones(len(each)) if seen.rows.weights is None else seen.rows.weights
    mean = float(w @ each) / float(w.sum())
    sums = design.sums(w * (each - mean))
    if len(sums) < 2 or abs(mean) <= _half_width(sums, float(w.sum()), level / 2):
        return None
    if mean > 0.0:
        return "over"
    # Surprises that did not occur, at a rate of 3 / n, must not turn the sign: they all are positive.
    possible = seen.rows.surprises(clip=1e-300).max()
    return "under" if mean + _UNSEEN * float(possible) / len(each) < 0.0 else None
