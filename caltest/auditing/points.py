"""An audit of point forecasts of means and expectiles: errors in units of the outcome.

No distribution of outcomes is predicted. If outcomes have known ends, p-values and intervals of mean
errors use bets and are exact (:mod:`caltest.statistics.points`); otherwise they use random signs of
rows or clusters, and t: these hold approximately, and only if effectively 50 rows carry the errors. An
interval that rests on t alone does not prove an error to be within a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from caltest._sums import Array, Mask
from caltest.auditing.draws import Answers, Subtraction, answers, columns_of_looks
from caltest.auditing.estimates import Folds, Kind, Mend
from caltest.auditing.limits import BOTH
from caltest.auditing.options import Options
from caltest.auditing.plan import BIAS, Hypothesis, Look, Plan
from caltest.auditing.sizes import Design, Sizes, binned_error
from caltest.auditing.slices import Named, Search
from caltest.auditing.views import Isotonic, Part, Skipped
from caltest.binning import DistinctScores
from caltest.clusters import Clusters
from caltest.data import Rows, Sample
from caltest.data.rows import effective_number
from caltest.exceptions import InputError
from caltest.forms import Side
from caltest.forms.features import ScanForm
from caltest.nulls.times import FEWEST_ROWS, carrying
from caltest.pvalues import Alternative
from caltest.resampling import Column, draws_of_signs, signed_columns, table
from caltest.statistics import FeatureScan, Statistic
from caltest.statistics.features import SIDES
from caltest.statistics.points import Bets, ErrorForm, evidence_of, mixed, slice_wealths

_POWER, _MOST_ROWS = 0.8, 2.0**40  # probability wanted of settling a view, and most rows considered
_TRIES, _NO_ROOM = 3, 1e-100  # iterations for that number, and the least room
_MOST_NAMED = 1000  # slices named
_LARGEST = 700.0  # bound on logarithms of evidence

# ------------------------------------------------------------------ sizes


@dataclass(frozen=True, eq=False)
class PointDesign(Design):
    """Weights and clusters of the rows, with the known ends of their outcomes."""

    law: Any = None
    rate: float = 1.0  #: Effective share of rows, or clusters, that carries the errors.

    @property
    def plain(self) -> bool:
        """Whether outcomes are events: never."""
        return False

    def at(self, rows: NDArray[np.intp] | None) -> Self:
        """Return the design of some rows."""
        found = super().at(rows)
        return found if rows is None else replace(found, law=self.law.take(rows))

    def of_look(self, look: Look) -> Self:
        """Return the design of a look's rows."""
        return self.at(look.places)

    def _sums(self, outcomes: Array) -> tuple[Array, Array]:
        """Return sums of errors and weights over rows, or over clusters."""
        return self.sums(self.weights * self.law.errors(outcomes)), self.sums(self.weights)

    def standard_error(self, outcomes: Array) -> float:
        """Return the standard error of the mean error."""
        sums, counts = self._sums(outcomes)
        apart = sums - counts * (sums.sum() / counts.sum())
        variance = float(apart @ apart) / (1.0 - 1.0 / max(len(sums), 2))
        return math.sqrt(variance) / float(counts.sum())

    def exact_ends(self, bets: Bets, level: float, times: float = 1.0) -> tuple[float, float]:
        """Return the interval that known ends of outcomes allow, as if rows were ``times`` as many."""
        least, most = self.law.ends
        low = bets.least_mean(float(least.min()), level, times=times)
        return low, -bets.least_mean(float(-most.max()), level, -1, times)

    def interval(
        self, chances: Array, labels: NDArray[Any], level: float, by_t: bool = False
    ) -> tuple[float, float, float, float]:
        """Return mean forecast, forecast minus error, and the interval; its ends are exact or by t."""
        ((mean, observed, joint, _),) = self.intervals(chances, labels, level)
        return mean, observed, *joint

    def intervals(self, chances: Array, labels: NDArray[Any], *levels: float) -> list[Any]:
        """Return the same for each level, followed by the exact interval."""
        bets, found = Bets(*self._sums(labels)), []
        sums, counts = bets.sums, bets.counts
        error, mean = float(sums.sum() / counts.sum()), float(self.weights @ chances / counts.sum())
        for level in levels:
            low, high = exact = self.exact_ends(bets, level)
            if not self.guaranteed and not self.law.bounded:
                carried, half = effective_number((sums - error * counts) ** 2), math.inf
                carried = min(carried, self.rate * len(sums))
                if carried >= FEWEST_ROWS:
                    half = float(stdtrit(carried - 1.0, 1.0 - level)) * self.standard_error(labels)
                low = error - half if math.isinf(low) else low
                high = error + half if math.isinf(high) else high
            found.append((mean, mean - error, (low, high), exact))
        return found


class SizesOfPoints(Sizes):
    """Sizes in units of the outcome, for views and for the remaining rows."""

    design: PointDesign
    ends = -math.inf, math.inf
    vouches = False

    def of_mean(
        self, look: Look, seen: Sample, labels: NDArray[Any], level: float | None = None
    ) -> dict[str, Any]:
        """Return the mean error with both intervals; only exact ones prove it within the limit."""
        design, outcomes = self.design.of_look(look), labels[look.where]
        levels = level or self.family.of_view, self.own_level
        joint, (mean, observed, own, exact) = design.intervals(look.scores(), outcomes, *levels)
        facts = self.facts(mean, observed, joint[2], own)
        inside = self.limit.place(mean, *exact) == "inside" if self.limit else None
        return facts | {"exact": design.law.bounded, "inside": inside, "could_miss": None}

    def of_look(self, look: Look, seen: Sample, labels: NDArray[Any]) -> dict[str, Any]:
        """Return the sizes of a view and of its parts."""
        given = look.scores(), labels[look.where], self.cuts[look], self.design.of_look(look)
        parts = self.family.parts(*given, self.limit, self.ends)
        error = binned_error(parts)
        error = error if error and error[2] < math.inf else None
        return self.of_mean(look, seen, labels) | {"parts": parts, "binned_error": error}

    def settling(
        self, looks: Sequence[Look], found: list[Any], held: Sequence[int], labels: Any
    ) -> list[Any]:
        """Fill in the rows that would settle each tested view not yet within the limit."""
        in_all = list[float]()
        for k in held:
            design, each = self.design.of_look(looks[k]), found[k]
            alone, together = self.rows_for(each, design, labels[looks[k].where], len(held))
            in_all.append(together * len(labels) / each.rows)
            if not each.inside:
                needed = math.ceil(alone) if alone < math.inf else None
                clusters = design.clusters_in(needed)
                found[k] = replace(each, rows_needed=needed, clusters_needed=clusters)
        return in_all

    def in_all(self, wanted: Sequence[Any]) -> int | None:
        """Return the rows in total that settle all; None if no number does."""
        most = max(wanted)
        return math.ceil(most) if most < math.inf else None

    def rows_for(
        self, sized: Any, design: PointDesign, outcomes: Array, count: int
    ) -> tuple[float, float]:
        """Return the rows that prove a mean within the limit: alone, and as one of ``count`` together.

        The interval, scaled as if rows were more numerous, must leave room for the error of the
        estimate.
        """
        (least, most), sides = self.limit.allowed(sized.predicted), self.limit.sides
        room = {"over": sized.predicted - least, "under": most - sized.predicted}
        powers, times = _POWER ** np.array([1.0, 1.0 / count]), 1.0
        off = ndtri(1.0 - (1.0 - powers) / len(sides)) * design.standard_error(outcomes)
        bets = Bets(*design._sums(outcomes))
        for _ in range(_TRIES):
            low, high = design.exact_ends(bets, self.own_level, times)
            length = {"over": high - sized.error, "under": sized.error - low}
            shares = [(length[x] + off / times**0.5) / max(room[x], _NO_ROOM) for x in sides]
            both = times * np.max(shares, axis=0) ** 2
            if sized.rows * both[0] > _MOST_ROWS:
                return math.inf, math.inf
            times = float(both[0])
        return tuple((sized.rows * both).tolist())

    def notes(self, looks: Sequence[Look]) -> list[str]:
        """Return notes about the rows."""
        return [*looks[0].scope.whole.notes]


def as_clusters(rows: Rows) -> Rows:
    """Return rows in clusters; without clusters, each row is its own."""
    return rows if rows.clusters is not None else replace(rows, clusters=np.arange(rows.n_samples))


def count_of(whole: Sample, look: Look) -> int:
    """Return the number of clusters in a look, or of rows."""
    codes = whole.rows.clusters
    return look.n_rows if codes is None else len(np.unique(codes[look.where]))


def even(whole: Sample) -> bool:
    """Whether errors are symmetric, as stated; not for clusters, whose sums need not be."""
    return bool(whole.rows.law.symmetric) and whole.rows.clusters is None  # type: ignore[attr-defined]


def rate_of(whole: Sample) -> float:
    """Return the effective share of rows, or clusters, that carries the errors."""
    form = ErrorForm(whole.rows.law, whole.rows.weights, "mean")  # type: ignore[arg-type]
    codes: Any = as_clusters(whole.rows).clusters
    return carrying(form, whole.labels, codes) / (int(codes.max()) + 1)


def trusted(plan: Plan, whole: Sample, rate: float, guaranteed: bool) -> Plan:
    """Leave out views carried by few rows: without known ends of outcomes, nothing holds for them.

    All rows decide: a group in which a rare outcome did not occur says nothing about it.

    Raises
    ------
    InputError
        If these are all rows, or only exact answers are requested.
    """
    law: Any = whole.rows.law
    if even(whole) or law.bounded:
        return plan
    count = {look: rate * count_of(whole, look) for look in plan.looks}
    alone, first = law.low is law.high is None, count[plan.looks[0]]
    if alone and (guaranteed or first < FEWEST_ROWS):
        found = f"errors are carried by {first:.0f} rows in effect, and {FEWEST_ROWS:.0f} are needed"
        found = "nothing is exact" if guaranteed else found
        do = "give low and high, the ends of outcomes, if these are known"
        raise InputError(f"{found} where the ends of outcomes are not known; {do}.")
    left = [look for look in plan.looks if alone and count[look] < FEWEST_ROWS]
    why = {look: f"{count[look]:.0f} rows in effect carry its errors" for look in left}
    skipped = {Skipped(x.group.words, x.n_rows, why[x]): [x] for x in left}  # type: ignore[union-attr]
    # Slices need as many rows, because they are found by random signs.
    bets = bet_on(law) if whole.rows.clusters is None else ()
    fewest, hypotheses = math.ceil(FEWEST_ROWS / rate), list[Hypothesis]()
    for look, each in plan.hypotheses:
        if isinstance(each, FeatureScan) and each.min_rows < fewest and each.side not in bets:
            each = replace(each, min_rows=fewest)
            try:
                each.given(look.view().rows)
            except InputError:
                what = f"fewer than {fewest:,} rows, in which errors are carried by few, or all"
                skipped[Skipped("slices by features", None, what)] = []
                continue
        if look not in why:
            hypotheses.append((look, each))
    looks = tuple(look for look in plan.looks if look not in why)
    return plan._replace(looks=looks, hypotheses=tuple(hypotheses), skipped=plan.skipped | skipped)


# ------------------------------------------------------------------ p-values


def closed(logs: Array, others: Array | None = None) -> Array:
    """Return adjusted log-evidence from log e-values, valid under any dependence.

    A mean of e-values is an e-value (Vovk and Wang 2021): the mean over every set of hypotheses that
    contains this one has to be large. ``others`` are the hypotheses it is combined with, by default
    each other.
    """
    own = np.exp(np.clip(logs, -_LARGEST, _LARGEST))
    beside = np.sort(own if others is None else np.exp(np.clip(others, -_LARGEST, _LARGEST)))
    sums, sizes = np.append(0.0, np.cumsum(beside)), np.arange(1.0, len(beside) + 2.0)
    last = np.searchsorted(beside, own) + 1  # larger ones only add evidence
    sets = zip(own.tolist(), last.tolist(), strict=True)
    return np.log([((each + sums[:end]) / sizes[:end]).min() for each, end in sets])


def _pvalues(logs: Array) -> Array:
    return np.asarray(np.exp(-logs.clip(min=0.0)))


def bet_on(law: Any) -> tuple[Side, ...]:
    """Return the sides whose errors bets can prove: those on which outcomes have ends."""
    ends = {"under": law.low, "over": law.high}
    return tuple(side for side in BOTH if ends[side] is not None)


def answers_of_points(
    hypotheses: Sequence[Hypothesis],
    rests: Sequence[Subtraction],
    whole: Sample,
    options: Options,
    rate: float,
) -> tuple[Answers, Array]:
    """Return p-values for views and remaining rows, each alone and jointly.

    Also return the log-evidence of bets, by which slices are named; NaN where there is none.
    """
    law: Any = whole.rows.law
    codes: Any = as_clusters(whole.rows).clusters
    columns, known, statistics = list[Column](), [], list[Statistic]()
    for look, statistic in chain(hypotheses, ((each.remaining, BIAS) for each in rests)):
        (column,) = columns_of_looks([(look, statistic)], options.seed)
        own = column.form, whole.labels[look.where], codes[look.where]
        if law.bounded:  # nothing is drawn
            known.append((*_wealth(*own), column.form.value(own[1])))
            continue
        known.append((*_wealth(*own), min(carrying(*own), rate * count_of(whole, look))))
        columns.append(column)
        statistics.append(statistic)
    logs, least, values = np.array(known).T
    bets, exact = np.flatnonzero(~np.isnan(logs)), np.ones((2, len(logs)))
    if len(bets):
        exact[:, bets] = _pvalues(logs[bets]), _pvalues(closed(logs[bets], least[bets]))
    ps, joint = exact[0], exact.max(axis=0)
    alone = tuple((p, p) for p in ps.tolist())
    found = Answers(values, ps, alone, joint, None, -np.log(ps), None)
    if law.bounded:
        return found._replace(evidence=np.where(np.isnan(logs), 0.0, logs)), logs
    signed = signed_columns(columns, whole.labels, codes, whole.rows.weights)
    drawn = table(
        signed, draws_of_signs(int(codes.max()) + 1, options.n_resamples, options.seed), options.workers
    )
    other: Alternative = "less" if law.low is None else "greater"
    one = len(bets) > 0 and not even(whole)
    sides: list[Alternative] = [
        other if one and each == BIAS else each.alternatives[0] for each in statistics
    ]
    resolutions = np.array([column.form.resolution for column in signed])
    by_signs = answers(drawn, resolutions, sides, options.correction, options.alpha)
    few = np.array([not even(whole) and (options.guaranteed or each < FEWEST_ROWS) for each in values])
    few |= one & ~np.isnan(logs) & np.array([each != BIAS for each in statistics])  # scans by bets
    p, together = (np.where(few, 1.0, each) for each in (by_signs.pvalues, by_signs.adjusted))
    by_signs = by_signs._replace(pvalues=p, adjusted=together)
    if not one:
        return by_signs, logs
    # Bets on the side with an end, and signs for all others, get half of the level each.
    p, joint = (np.minimum(2.0 * np.minimum(*x), 1.0) for x in ((p, ps), (together, joint)))
    alone = tuple((each, each) for each in p.tolist())
    facts: Any = {"pvalues": p, "intervals": alone, "adjusted": np.maximum(joint, p)}
    return by_signs._replace(**facts, evidence=-np.log(p), largest=None), logs


def _wealth(form: Any, outcomes: Array, codes: Any) -> tuple[float, float]:
    """Return the evidence of bets on the sides with ends; NaN if there is none.

    Also return the smallest evidence that it averages: a set of other checks may contain any slices.
    """
    law, none = form.law, (math.nan, math.nan)
    if not bet_on(law):
        return none
    clusters = Clusters.of(codes, form.weights)
    if isinstance(form, ScanForm):
        possible = law.bounded or form.side in [SIDES[side] for side in bet_on(law)]
        if clusters.count < len(codes) or not possible:
            return none
        slices = slice_wealths(form, outcomes)
        return mixed(slices), float(slices.min())
    if not isinstance(form, ErrorForm) or not (law.bounded or form.kind == "mean"):
        return none
    if law.bounded:
        return (evidence_of(form, outcomes, clusters),) * 2
    return (max(form.wealths(outcomes, clusters)),) * 2  # −∞ on the other side


def named(scans: Sequence[Search], logs: Array, whole: Sample, alpha: float) -> list[Named]:
    """Name slices found by bets: together they count as one check among all other bets."""
    listed, law = list[Named](), cast("Any", whole.rows.law)
    for scan in scans:
        form, others = scan.form, np.delete(logs, scan.place)
        own = slice_wealths(form, whole.labels)
        adjusted = (1.0 if law.bounded else 2.0) * _pvalues(
            closed(closed(own), others[~np.isnan(others)])
        )
        errors = form.cells.sums((form.weights * form.law.errors(whole.labels))[None])[0]
        roots = -np.sign(errors) * np.sqrt(2.0 * own.clip(min=0.0))
        those = np.flatnonzero(adjusted <= alpha).tolist()
        listed += [Named(scan, k, float(roots[k]), float(adjusted[k])) for k in those]
    return sorted(listed, key=lambda each: -abs(each.root))[:_MOST_NAMED]


# ------------------------------------------------------------------ the mean as a function of the
# forecast

_PLACES = 200  # at most


def isotonic(look: Look, outcomes: NDArray[Any], parts: Sequence[Part]) -> Isotonic | None:
    """Return the isotonic curve of outcomes with its band; None for expectiles or without parts.

    A non-decreasing mean is at least that of each part below and at most that of each part above.
    """
    whole, where = cast(Any, look.scope.whole), look.where
    if whole.law.tau != 0.5 or not parts:
        return None
    pooled = DistinctScores.of(look.scores(), whole.weights[where])
    places = np.unique(np.linspace(0, len(pooled.scores) - 1, _PLACES).round().astype(np.intp))
    at, mean = pooled.scores[places], pooled.rising(outcomes[where])[places]
    low = [max((p.true_rates[0] for p in parts if p.end <= x), default=-math.inf) for x in at]
    high = [min((p.true_rates[1] for p in parts if p.start >= x), default=math.inf) for x in at]
    ends = zip(low, high, strict=True)
    known = [(a, b) if -math.inf < a <= b < math.inf else (None, None) for a, b in ends]
    band = zip(*known, strict=True) if {*known} != {(None, None)} else ()
    return Isotonic(tuple(at.tolist()), tuple(mean.tolist()), *band)


# ------------------------------------------------------------------ remedies

_STEPS = 20  # for asymmetric least squares: about five suffice


class PointFolds(Folds):
    """Cross-fitted corrections of point forecasts: each makes the mean error on its training rows 0."""

    rows: Any

    @property
    def given(self) -> Array:
        """The uncorrected forecasts."""
        return np.asarray(self.rows.law.values)

    @property
    def kinds(self) -> Sequence[Kind]:
        """The corrections to try, simplest first; a factor only if no forecast is negative."""
        return ("shift", *(("factor",) if self.given.min() >= 0.0 else ()), "line", "isotonic")

    def fit(self, kind: Kind, rows: Mask) -> tuple[Mend, dict[str, float]]:
        """Fit a correction within the ends of outcomes; for expectiles by asymmetric least squares."""
        x, y, w, law = self.given[rows], self.labels[rows], self.rows.weights[rows], self.rows.law
        ends = (-math.inf if law.low is None else law.low), law.high
        mend, numbers = corrected(kind, x, y, w)
        for _ in range(0 if law.tau == 0.5 else _STEPS):
            mend, numbers = corrected(kind, x, y, w * np.abs((mend(x) >= y) - law.tau))
        return lambda more: np.clip(mend(more), *ends), numbers

    def losses(self, values: Array) -> Array:
        """Return the squared error of each row, for expectiles weighted by its sign."""
        apart = values - self.labels
        return np.asarray(self.rows.law.identified(apart) * apart)

    def through(self, look: Look, values: Array) -> tuple[Array, Array, Array]:
        """Return forecasts, errors and weights of the rows in a look."""
        errors = self.rows.law.identified(values - self.labels)
        return values, errors, np.where(self.member(look), self.rows.weights, 0.0)


def corrected(kind: Kind, x: Array, y: Array, weights: Array) -> tuple[Mend, dict[str, float]]:
    """Regress outcomes on forecasts; return the correction as a function, with its slope and shift."""
    if kind == "isotonic":
        pooled = DistinctScores.of(x, weights)
        rising = pooled.rising(y)
        return lambda more: np.interp(more, pooled.scores, rising), {}
    mean, observed = (float(weights @ each / weights.sum()) for each in (x, y))
    apart, slope, shift = weights * (x - mean), 1.0, 0.0
    if kind == "factor" and mean > 0.0:
        slope = observed / mean
    if kind == "line" and np.ptp(x) > 0.0:
        slope = float(apart @ y) / float(apart @ x)
    if kind != "factor":
        shift = observed - slope * mean
    return lambda more: slope * more + shift, {"slope": slope, "shift": shift}
