"""Simultaneous exact intervals of the mean errors of all views and of their parts.

One family, fixed by predictions and groups before a label is seen: V views share four fifths of alpha,
the parts (tenths and halves of all rows, fifths of every group) one fifth; half of each on either side.

For rows with weights, sampled by label or in clusters, intervals are those of
:mod:`caltest.bounds.intervals`: exact for any number of rows or clusters. Only views that many clusters
carry have t intervals, unless the level is small: shorter, and approximately right for many clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtr, ndtri, stdtrit

from caltest._numbers import counted
from caltest._sums import Array, Mask, Places
from caltest.auditing.draws import Answers, Subtraction
from caltest.auditing.limits import Goal, Limit, Wanted, quickest, rows_in_all
from caltest.auditing.plan import MEAN, Look, Plan, around
from caltest.auditing.views import Part, Rest, Sensitivity, Sized, Skipped, View
from caltest.bounds.intervals import LARGEST_LEVEL, error_bounds, mean_bounds
from caltest.data import Rows, Sample
from caltest.data.labels import rates_by_class
from caltest.data.rows import effective_number
from caltest.forms import FEWEST_CLUSTERS, Atoms
from caltest.pvalues import reaching

_OF_PARTS = 0.2  # share of alpha; and the same for slices by features, if any are searched
_WHOLE = (10, 2)  # numbers of parts of all rows
_GROUP = (5,)
_FEWEST = 10  # rows in a part
_MOST_BY_BOUND = 1000  # skipped views: above that, intervals of milliseconds each are not computed


class Cut(NamedTuple):
    """Rows of one probability in order of predictions, and the ends of its parts."""

    order: NDArray[np.intp]
    ends: tuple[tuple[int, NDArray[np.intp]], ...]  # number of parts, with their ends in this order


def cut(scores: Array, whole: bool) -> Cut:
    """Cut a view by its predictions into parts of about equal size; ties stay together."""
    order = np.argsort(scores)
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1) + 1  # ends of ties
    ends = []
    for parts in _WHOLE if whole else _GROUP:
        wanted = np.arange(1, parts + 1) * len(scores) / parts
        # the first end of ties at or after the wanted one
        found = np.unique(last[np.minimum(np.searchsorted(last, wanted - 1e-9), len(last) - 1)])
        if len(found) > 1 and len(scores) >= parts * _FEWEST:
            ends.append((parts, found))
    return Cut(order, tuple(ends))


_LEAST_LEVEL = 0.0005  # level of one side of a t interval, beyond which it was not simulated


def enough_clusters(level: float) -> float:
    """Return how many clusters must carry a mean error for a t interval at this one-sided level.

    20 for levels down to .01, 40 at .0025, 80 at .000625: with so many, either end misses about as
    rarely as it should (`python -m validation clusters --only intervals`).
    """
    return max(float(FEWEST_CLUSTERS), 2.0 * level**-0.5) if level >= _LEAST_LEVEL else math.inf


@dataclass(frozen=True, eq=False)
class Design:
    """Weights, clusters and sampling rates of rows, and the probabilities in the population.

    For rows sampled by label, ``scores`` are probabilities of the event in the whole population, and
    ``kept`` the sampling rates of rows without and with it, (n, 2). For ensembles, errors are those of
    pools times ``stretches``, because the outcome is a member of its pool; this does not apply where
    the pool states one probability for all outcomes, as for ranks. With ``guaranteed`` there are no t
    intervals.
    """

    weights: Array
    clusters: NDArray[np.intp] | None = None
    scores: Array | None = None
    kept: Array | None = None
    stretches: Any = 1.0  # one number, or one per row, (n,)
    guaranteed: bool = False

    @classmethod
    def of(cls, rows: Rows, rates: Mapping[Any, float] | None) -> Design:
        """Return the design of all rows; ``rates``, by label, are used for two classes."""
        if rates is None or rows.n_classes != 2:
            return cls(rows.weights, rows.clusters, stretches=getattr(rows.law, "stretch", 1.0))
        by_class = rates_by_class(rates, 2, rows.classes)
        kept = np.array([[by_class.get(0, 1.0), by_class.get(1, 1.0)]]).repeat(len(rows.probs), axis=0)
        before = rows.probs / kept
        return cls(rows.weights, rows.clusters, before[:, 1] / before.sum(axis=1), kept)

    @cached_property
    def pulls(self) -> Array:
        """Weights of errors: those of rows, times their stretches if these differ."""
        return self.weights * self.stretches if np.ndim(self.stretches) else self.weights

    @property
    def stretch(self) -> float:
        """Factor applied to the errors of pools, on average."""
        differ = np.ndim(self.stretches) > 0
        return float(self.pulls.sum() / self.weights.sum() if differ else self.stretches)

    @property
    def plain(self) -> bool:
        """Whether rows are independent, with weight 1, not sampled by label, and without members."""
        apart = self.clusters is None and self.scores is None and self.stretch == 1.0
        return apart and bool((self.weights == 1.0).all())

    def at(self, rows: NDArray[np.intp] | None) -> Self:
        """Return the design of some rows."""
        if rows is None:
            return self
        names = ("weights", "clusters", "scores", "kept", "stretches")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        return replace(self, **{name: each[rows] for name, each in given.items() if np.ndim(each)})

    def of_look(self, look: Look) -> Design:
        """Return the design of a look's rows; its event need not be class 1."""
        own = self.at(look.places)
        if own.stretch != 1.0:
            return own.of_scores(look.scores(), look.scope.label)
        if own.scores is None or own.kept is None:
            return own
        return own.turned(look.sample(np.ones(len(self.weights), dtype=np.intp)).labels == 0)

    def turned(self, rows: Mask) -> Design:
        """Return the design with the opposite event in some of the rows."""
        if self.scores is None or self.kept is None:
            return self
        kept = np.where(rows[:, None], self.kept[:, ::-1], self.kept)
        return replace(self, scores=np.where(rows, 1.0 - self.scores, self.scores), kept=kept)

    def of_scores(self, scores: Array, label: str) -> Design:
        """Return the design for an event with these probabilities, through the lens of that label."""
        if np.ndim(self.stretches) == 0:
            return self if np.ptp(scores) > 0.0 else replace(self, stretches=1.0)
        if not label.startswith(("interval:", "quantile:")):
            return self
        _, alike = np.unique(self.stretches, return_inverse=True)  # without ties scores alone decide
        least = np.array([scores[alike == k].min() for k in range(alike.max() + 1)])
        return replace(self, stretches=np.where(scores > least[alike], self.stretches, 1.0))

    @cached_property
    def codes(self) -> NDArray[np.intp] | None:
        """The clusters of these rows, numbered from 0."""
        if self.clusters is None:
            return None
        return np.asarray(np.cumsum(np.bincount(self.clusters) > 0) - 1)[self.clusters]

    @property
    def several(self) -> NDArray[np.intp] | None:
        """The same; None if no cluster has several rows."""
        codes = self.codes
        return None if codes is None or int(codes.max()) + 1 == len(codes) else codes

    def counts(self, labels: NDArray[np.integer]) -> Array:
        """Return the weights of rows in the population."""
        return self.pulls / (1.0 if self.kept is None else self.kept[np.arange(len(labels)), labels])

    def sums(self, values: Array) -> Array:
        """Sum values over clusters; without clusters, return them as they are."""
        return values if self.codes is None else np.bincount(self.codes, values).astype(np.float64)

    def _table(self, chances: Array) -> Array:
        """Return the contribution of each row to the error without and with the event, (n, 2)."""
        scores = chances if self.scores is None else self.scores
        table = np.column_stack([-scores * self.pulls, (1.0 - scores) * self.pulls])
        return table / (1.0 if self.kept is None else self.kept)

    def effective(self, chances: Array) -> float:
        """Return the effective number of clusters that carry the mean error if their rows move as one.

        The smaller of the effective numbers with and without the event, computed from predictions: no
        label decides which interval is used. If rare events in some clusters outweigh all others, the
        number is smaller.
        """
        assert self.codes is not None
        rates = self.sums(self.weights * chances) / self.sums(self.weights)
        shared = self.units(chances) * min(float(rates.mean()), float(1.0 - rates.mean()))
        both = np.column_stack([1.0 - chances, chances])
        return min(shared, Atoms.of(self._table(chances), both, self.codes, len(rates)).effective)

    def carried(self, chances: Array) -> float:
        """Return the same for designs that use t intervals; 0 for others."""
        return 0.0 if self.several is None or self.guaranteed else self.effective(chances)

    def units(self, chances: Array) -> float:
        """Return the effective number of clusters, by variance, if their rows are fully dependent."""
        each = np.diff(self._table(chances))[:, 0] * np.sqrt(chances * (1.0 - chances))
        return max(effective_number(self.sums(each) ** 2), 1.0)

    def could_miss(self, chances: Array, level: float) -> float:
        """Return the largest share of clusters that an effect may concern and still not appear.

        About (1 - share)^G = level, for G effective clusters.
        """
        return min(-math.log(level) / self.units(chances), 1.0)

    def clusters_in(self, rows: int | None) -> int | None:
        """Return the number of clusters like these with so many rows; None without clusters."""
        if rows is None or self.codes is None:
            return None
        return math.ceil(rows * (int(self.codes.max()) + 1) / len(self.codes))

    def unproved(self, error: Sized) -> bool:
        """Return whether an error found by random signs lacks an exact interval that excludes 0."""
        return self.guaranteed and self.clusters is not None and error.side is None

    def interval(
        self, chances: Array, labels: NDArray[np.integer], level: float, by_t: bool = False
    ) -> tuple[float, float, float, float]:
        """Return mean prediction, mean observation and the interval of the error.

        ``chances`` are probabilities of the event in these rows. The interval is exact, or with
        ``by_t`` a t interval.
        """
        scores = chances if self.scores is None else self.scores
        each, codes = self.counts(labels), self.several
        whole = float(each.sum())
        predicted, observed = float((each * scores).sum()) / whole, float((each * labels).sum()) / whole
        error = predicted - observed
        if by_t:
            values = each * (scores - labels - error)
            below, above = ends_by_t(self, values, whole, level, self.units(chances))
            low, high = max(error - below, predicted - 1.0), min(error + above, predicted)
        elif codes is None and each.min() == each.max() and self.kept is None:
            low, high = error_of_mean(predicted, len(each), float(labels.sum()), level)
        else:
            low, high = error_bounds(scores, labels, level, self.pulls, self.kept, codes)
        by = self.stretch
        if self.pulls is not self.weights:
            observed = float(self.weights @ labels / self.weights.sum())
        return observed + by * error, observed, by * low, by * high

    def of_parts(
        self, chances: Array, labels: NDArray[Any], order: Places, starts: Places, level: float
    ) -> Any:
        """Return the `interval` of each part; chances and labels follow ``order`` too."""
        if type(self) is not Design or not self.plain:
            cut = (np.split(each, starts[1:]) for each in (order, chances, labels))
            return [self.at(r).interval(p, y, level) for r, p, y in zip(*cut, strict=True)]
        counts = np.diff(starts, append=len(order)).astype(np.float64)
        predicted, events = (np.add.reduceat(x, starts, dtype=np.float64) for x in (chances, labels))
        predicted /= counts
        least, most = mean_bounds(counts, events, level)
        return np.stack([predicted, events / counts, predicted - most, predicted - least], 1).tolist()

    def ways(self, chances: Array, labels: Places, part: float, level: float) -> list[Wanted]:
        """Return the ways to prove a mean within a limit: exact, or by t with enough clusters."""
        stated, counts = chances if self.scores is None else self.scores, self.counts(labels)
        exact = Wanted.of(stated, counts, self.share(labels, by_t=False), part)
        if not (carried := self.carried(chances)):
            return [exact]
        by_t = Wanted.of(stated, counts, self.share(labels, by_t=True), part)
        return [exact, by_t._replace(least=len(chances) * enough_clusters(level) / carried)]

    def share(self, labels: NDArray[np.integer], by_t: bool) -> tuple[float, bool]:
        """Return the effective share of a row, and whether intervals are Chernoff's.

        Rows of a cluster are taken to be fully dependent, unless t measures their dependence.
        """
        n, each = len(self.weights), self.counts(labels)
        if self.several is None and self.kept is None and each.min() == each.max():
            return self.stretch**-2, False
        whole, sums = float(each.sum()), self.sums(each)
        rate = float(each @ labels) / whole
        if (by_t or self.kept is not None) and 0.0 < rate < 1.0:
            values = each * (labels - rate)
            sums = max(self.sums(values), values, key=lambda found: float(found @ found))
            sums = sums / (rate * (1.0 - rate)) ** 0.5
        share = whole**2 / float(sums @ sums) / n / self.stretch**2  # above 1 for rows kept out of many
        return share if self.kept is not None else min(share, 1.0), not by_t


def few_carry(carrying: Sequence[float], level: float) -> tuple[str, ...]:
    """Return advice if few clusters carry the error; ``carrying`` holds their number for each view."""
    enough = enough_clusters(max(level, _LEAST_LEVEL))
    if not (few := sum(each < enough for each in carrying)):
        return ()
    return (
        f"In {few:,} of {counted(len(carrying), 'view')} too few clusters count for narrow intervals "
        f"(the worst: {min(carrying):.0f} with the event, or without; {math.ceil(enough)} would do): "
        "make clusters smaller where dependence allows it (of time, shorter blocks), use fewer or "
        "larger groups, or collect more clusters.",
    )


def half_width(sums: Array, whole: float, level: float, units: float | None = None) -> float:
    """Return half the width of the t interval of a mean, from centred sums of independent units.

    There are ``units`` effective units, by default as many as sums.
    """
    if (n := len(sums) if units is None else units) <= 1.0:
        return math.inf
    error: float = (n / (n - 1.0) * float(sums @ sums)) ** 0.5 / whole
    return float(stdtrit(n - 1, 1.0 - level)) * error


_STRAIGHT = 1e6  # effective events above which skewness is ignored


def ends_by_t(
    design: Design, values: Array, whole: float, level: float, units: float
) -> tuple[float, float]:
    """Return how far the t interval reaches below and above an error, from centred values of rows.

    Rows form ``units`` effective clusters, which determine the degrees of freedom. The interval is
    never shorter than for independent rows, because in few clusters sums may cancel by chance.

    Few events make sums skewed, and t intervals too short on the side of larger errors: with fewer
    events than expected, the standard error is too small as well. Sums with variance v and third moment
    c behave like c / v times a Poisson count with mean v³ / c², whose bounds are exact (Garwood 1936;
    Fay and Feuer 1997, for weights). On each side the longer of both is used.
    """
    sums = max(design.sums(values), values, key=lambda each: float(each @ each))
    half, largest = half_width(sums, whole, level, units), float(np.abs(sums).max())
    sums = sums / (largest or 1.0)
    second, third = float(sums @ sums), float(sums @ (sums * sums))
    if second**3 >= _STRAIGHT * third**2:
        return half, half
    events, unit = second**3 / third**2, abs(third) / second * largest / whole
    unit *= float(stdtrit(units - 1.0, level) / ndtri(level))  # because moments are estimated
    short = unit * (events - float(gammaincinv(events, level)))
    long = unit * (float(gammainccinv(events + 1.0, level)) - events)
    below, above = (long, short) if third < 0.0 else (short, long)
    return max(half, below), max(half, above)


class Family(NamedTuple):
    """Levels of single bounds, for one side each."""

    of_view: float
    of_part: float
    of_slice: float = 0.0

    @classmethod
    def of(cls, alpha: float, n_views: int, n_parts: int, n_slices: int = 0, sides: int = 2) -> Family:
        """Share alpha among views (with remaining rows), their parts, and slices by features.

        Intervals are two-sided, or one-sided.
        """
        of_views = 1.0 - _OF_PARTS * (1 + (n_slices > 0))
        shares = ((of_views, n_views), (_OF_PARTS, n_parts), (_OF_PARTS, n_slices))
        levels = (share * alpha / (sides * max(count, 1)) for share, count in shares)
        return cls(*(min(level, LARGEST_LEVEL) for level in levels))

    def parts(
        self,
        scores: Array,
        labels: NDArray[Any],
        where: Cut,
        design: Design,
        limit: Limit,
        ends: tuple[float, float] = (0.0, 1.0),
    ) -> tuple[Part, ...]:
        """Return the parts of a view, with intervals of their errors."""
        found, own = list[Part](), (scores[where.order], labels[where.order])
        # In population scale, as the sizes are.
        stated = own[0] if design.scores is None else design.scores[where.order]
        for of, cuts in where.ends:
            starts = np.append(0, cuts[:-1])
            sizes = design.of_parts(*own, where.order, starts, self.of_part)
            lows, highs = (each.reduceat(stated, starts).tolist() for each in (np.minimum, np.maximum))
            rows = np.diff(starts, append=cuts[-1]).tolist()
            for place, (mean, observed, *joint) in enumerate(sizes):
                joint = limit.cut(mean, *joint, ends=ends)
                ends_of = lows[place], highs[place]
                found.append(Part(of, place, rows[place], mean, observed, *joint, *ends_of))
        return tuple(found)


def error_of_mean(predicted: float, rows: int, events: float, level: float) -> tuple[float, float]:
    """Return the interval of a mean error (predicted minus true rate) for rows of equal weight."""
    (least,), (most,) = mean_bounds(np.array([float(rows)]), np.array([float(events)]), level)
    return predicted - float(most), predicted - float(least)


def binned_error(parts: Sequence[Part]) -> tuple[float, float, float] | None:
    """Return the mean absolute error over the finest parts: lower end, estimate and upper end."""
    if not (finest := [part for part in parts if part.of == max(each.of for each in parts)]):
        return None
    rows = np.array([part.rows for part in finest])
    each = np.array([(part.proved, abs(part.error), part.most) for part in finest])
    least, error, most = (rows / rows.sum() @ each).tolist()
    return least, error, most


# ------------------------------------------------------------------ all views


@dataclass(frozen=True, eq=False)
class Sizes:
    """The source of all intervals in an audit: design, level, and its division.

    ``cuts`` exist for every view of an event.
    """

    ends: ClassVar = 0.0, 1.0  #: of outcomes
    vouches: ClassVar = True  #: Whether skipped views may be proved to be within the limit.

    design: Design
    level: float
    family: Family
    cuts: dict[Look, Cut]
    limit: Limit

    @property
    def own_level(self) -> float:
        """One-sided level of a view's own interval."""
        return min(self.level, LARGEST_LEVEL)

    @classmethod
    def of(
        cls,
        design: Design,
        looks: Iterable[Look],
        n_rests: int,
        level: float,
        limit: Limit,
        n_slices: int = 0,
    ) -> Sizes:
        """Cut all views of an event into parts, and divide the level among all intervals."""
        cuts = {look: cut(look.scores(), look.group is None) for look in looks if look.event}
        n_parts = sum(len(ends) for each in cuts.values() for _, ends in each.ends)
        family = Family.of(level, len(cuts) + n_rests, n_parts, n_slices, len(limit.sides))
        return cls(design, level, family, cuts, limit)

    def intervals(
        self, look: Look, seen: Sample, labels: NDArray[Any], *levels: float
    ) -> tuple[float, list[tuple[float, ...]]]:
        """Return how many clusters carry the error, and its interval at each level.

        The interval consists of the predicted and observed rates, the outer ends and the inner ends. If
        outcomes may equal a quantile, there are two counts, of the closed and of the open event, and
        the claim concerns one between them. The observed rate is then the one nearest to the
        prediction. Otherwise inner and outer ends are equal.
        """
        design, scores = self.design.of_look(look), seen.rows.probs[:, 1]
        carried, found = design.carried(scores), list[tuple[float, ...]]()
        opened = look.view().opened.sample(labels).labels if look.scope.shown.see_open else None
        for level in levels:
            by_t = carried >= enough_clusters(level)
            predicted, observed, low, high = design.interval(scores, seen.labels, level, by_t)
            inner = low, high
            if opened is not None:
                _, least, low_open, high_open = design.interval(scores, opened, level, by_t)
                observed = min(max(predicted, least), observed)
                error = predicted - observed
                inner, high = (min(low_open, error), max(high, error)), high_open
            found.append((predicted, observed, low, high, *inner))
        return carried, found

    def facts(self, predicted: float, observed: float, joint: Any, own: Any) -> dict[str, Any]:
        """Return a mean error with both intervals, and if it is within the limit; None without one."""
        inside = self.limit.place(predicted, *own) == "inside" if self.limit else None
        low, high = self.limit.cut(predicted, *joint, ends=self.ends)
        found = {"predicted": predicted, "observed": observed, "low": low, "high": high}
        return found | {"own_low": own[0], "own_high": own[1], "inside": inside}

    def of_look(self, look: Look, seen: Sample, labels: NDArray[Any]) -> dict[str, Any]:
        """Return predicted, observed, their difference with its interval, and the same for parts."""
        given = seen.rows.probs[:, 1], seen.labels, self.cuts[look], self.design.of_look(look)
        parts = self.family.parts(*given, self.limit)
        column = 1 if look.scope.lens is None else look.scope.column
        found = self.of_mean(look, seen, labels) | {"class_index": column}
        return found | {"parts": parts, "binned_error": binned_error(parts)}

    def of_mean(
        self, look: Look, seen: Sample, labels: NDArray[Any], level: float | None = None
    ) -> dict[str, Any]:
        """Return the mean error with both intervals, and whether its own interval is within the limit.

        ``level`` is the one-sided level of the joint interval; None for that of a view.
        """
        levels, missed = (level or self.family.of_view, self.own_level), None
        carried, (joint, own) = self.intervals(look, seen, labels, *levels)
        if carried >= enough_clusters(self.own_level):
            missed = self.design.of_look(look).could_miss(seen.rows.probs[:, 1], self.level)
        sizes = self.facts(joint[0], joint[1], joint[2:4], own[4:])
        return sizes | {"exact": missed is None, "could_miss": missed}

    def of_rest(
        self, left: Subtraction, views: Mapping[Look, View], labels: NDArray[Any], adjusted: float
    ) -> Rest:
        """Describe the remaining rows of a larger group, with this adjusted p-value."""
        part, whole = views[left.look], views[left.parent]
        scope = left.look.scope  # for censored times the whole and the group do not determine the rest
        if self.design.plain and not scope.censored and scope.shown.see_open is None:
            both: Any = ((whole.predicted, part.predicted), (whole.observed, part.observed))
            means = [(of * whole.rows - own * part.rows) / left.rows for of, own in both]
            predicted, observed = (min(max(mean, 0.0), 1.0) for mean in means)
            given = predicted, left.rows, round(observed * left.rows)
            ends = (error_of_mean(*given, level) for level in (self.family.of_view, self.own_level))
            sized = self.facts(predicted, observed, *ends)
        else:
            sized = self.of_mean(left.remaining, left.remaining.sample(labels), labels)
        sized |= {"adjusted_pvalue": adjusted, "found": adjusted <= self.level}
        rest = Rest(part.lens, part.group, whole.group, left.rows, **sized)  # type: ignore[arg-type]
        return replace(rest, adjusted_pvalue=1.0, found=False) if self.design.unproved(rest) else rest

    def vouched(self, plan: Plan, labels: NDArray[np.intp], min_rows: int) -> tuple[Skipped, ...]:
        """Return skipped views, with whether their own intervals prove errors within the limit.

        Like other views, they include the remaining rows of larger groups.
        """
        if not self.limit:
            return tuple(plan.skipped)
        if not self.vouches:
            return tuple(replace(x, inside=False) if of else x for x, of in plan.skipped.items())
        every = {look.key: look for looks in (plan.looks, *plan.skipped.values()) for look in looks}
        level, skipped = self.own_level, list(plan.skipped)
        for k, each in enumerate(skipped):
            looks = [look for look in plan.skipped[each] if look.event]
            if each.inside is False or not looks:
                continue
            rests = list(around(looks, min_rows, every.values()))
            found: Iterable[Any]  # predicted mean, and interval of the error
            if self.design.plain and all(look.scope.shown.see_open is None for look in looks):
                counts = {look: look.count(labels) for look in {*looks, *(of for _, of in rests)}}
                parts = [*map(counts.get, looks), *(counts[of] - counts[own] for own, of in rests)]
                rows, stated, events = np.array(parts).T
                least, most = mean_bounds(rows, events, level)
                mean = stated / rows
                found = np.column_stack([mean, mean - most, mean - least]).tolist()
            elif len(looks) + len(rests) > _MOST_BY_BOUND:
                skipped[k] = replace(each, inside=False)
                continue
            else:
                wholes = [*looks, *(of.without(own) for own, of in rests)]
                sized = (self.intervals(x, x.sample(labels), labels, level) for x in wholes)
                found = ((own[0], *own[4:]) for _, (own,) in sized)
            far = [max(-one[1], one[2]) for one in found if self.limit.place(*one) != "inside"]
            skipped[k] = replace(each, inside=not far, most=max(far, default=None))
        return tuple(skipped)

    def notes(self, looks: Sequence[Look]) -> list[str]:
        """Return notes about the rows, and about views whose error few clusters carry."""
        notes = [*dict.fromkeys(note for look in looks for note in look.scope.shown.rows.notes)]
        each = ((look, self.design.of_look(look)) for look in self.cuts)
        carrying = [own.effective(look.scores()) for look, own in each if own.several is not None]
        return notes + list(few_carry(carrying, self.family.of_view)) if carrying else notes

    def with_rows_needed(
        self, views: dict[Look, View], left: list[Rest], rests: Sequence[Subtraction], labels: Any
    ) -> tuple[dict[Look, View], list[Rest], int | None]:
        """Add to each unsettled view or rest the rows that would settle it.

        Also return the rows in total that would settle all of them.
        """
        found = list[Any]([*views.values(), *left])
        held = [k for k, each in enumerate(found) if each.inside is not None]
        if all(found[k].inside for k in held):
            return views, left, None
        wanted = self.settling([*views, *(each.remaining for each in rests)], found, held, labels)
        return dict(zip(views, found, strict=False)), found[len(views) :], self.in_all(wanted)

    def in_all(self, wanted: Sequence[Any]) -> int | None:
        """Return the rows in total that settle all; None if no number does."""
        return rows_in_all(wanted, Goal(self.limit, self.own_level))

    def settling(
        self, looks: Sequence[Look], found: list[Any], held: Sequence[int], labels: Any
    ) -> list[Wanted]:
        """Fill in the rows that would settle each tested view not yet within the limit."""
        ways = [self.ways(looks[k], found[k], labels) for k in held]
        wanted, needed = quickest(ways, Goal(self.limit, self.own_level))
        for k, rows in zip(held, needed, strict=True):
            if not found[k].inside:
                clusters = self.design.of_look(looks[k]).clusters_in(rows)
                found[k] = replace(found[k], rows_needed=rows, clusters_needed=clusters)
        return wanted

    def ways(self, look: Look, sized: View | Rest, labels: NDArray[np.intp]) -> list[Wanted]:
        """Return the ways to prove a mean within the limit."""
        seen, part = look.sample(labels), look.n_rows / len(labels)
        chances, design = seen.rows.probs[:, 1], self.design.of_look(look)
        return design.ways(chances, seen.labels, part, self.own_level)


# ------------------------------------------------------------------ sensitivity

_POWER = 0.8
_MOST_LAW = 20_000  # predictions used to compute the power of a mean
_HALVINGS = 40


def sensitivity(plan: Plan, found: Answers, level: float) -> Sensitivity | None:
    """Return the smallest shift of one probability that the check of its mean would have detected.

    Use the normal approximation to the number of events if all probabilities are too high, or too low,
    by the same amount, against the threshold of the check in the joint test.
    """
    h = next((h for h, (_, each) in enumerate(plan.hypotheses) if each == MEAN), None)
    if h is None or found.table is None or found.threshold is None:
        return None
    look = plan.hypotheses[h][0]
    law: Any = look.scope.whole.law
    signs = [sign for sign, side in ((1.0, "under"), (-1.0, "over")) if side in law.sides]
    low, high = reaching(found.table[:, h], found.threshold, MEAN.sides(law)[0])
    p, n = np.sort(look.scores()), look.n_rows
    if n > _MOST_LAW:
        p = p[((np.arange(_MOST_LAW) + 0.5) * n / _MOST_LAW).astype(np.intp)]
    scale = math.sqrt(n * float((p * (1.0 - p)).mean()))
    # No adjusted p-value is below the unadjusted one, which counts both sides.
    draws = np.sort(found.table[1:, h])
    # Number of draws that may reach it.
    beyond = math.floor(level * (len(draws) + 1) / len(signs) * (1.0 + 1e-12)) - 1
    if scale == 0.0 or beyond < 0:
        return Sensitivity(plan.looks.index(look), None, _POWER)
    low, high = min(low, draws[beyond] - 0.5 / scale), max(high, draws[-1 - beyond] + 0.5 / scale)
    if low * scale < -n * float(p.mean()):  # not even without any event
        low = -math.inf

    def shifted(by: float) -> tuple[float, float]:
        """Return the mean shift of the probabilities, and the probability that the check finds it."""
        q = np.clip(p + by, 0.0, 1.0)
        mean, spread = float((q - p).mean()), math.sqrt(n * float((q * (1.0 - q)).mean()))
        reached = n * mean - high * scale if by > 0.0 else low * scale - n * mean
        return abs(mean), float(ndtr(reached / max(spread, 1e-12)))

    errors = []
    for sign in signs:
        least, most = 0.0, 1.0
        if shifted(sign * most)[1] < _POWER:
            return Sensitivity(plan.looks.index(look), None, _POWER)
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (least, middle) if shifted(sign * middle)[1] >= _POWER else (middle, most)
        errors.append(shifted(sign * most)[0])
    return Sensitivity(plan.looks.index(look), max(errors), _POWER)
