"""An audit of times until an event, if follow-up of rows with an event is not known.

Observed minus expected events until every horizon, on all rows and in every group, tested by signs of
rows, get half of the level; imputed times, through the lens "distribution", the other half. Sizes rest
on what needs no imputation: observed and expected events, and risk at the horizon, averaged over strata
of similar predicted risk. If follow-up is known, times are audited like other numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from caltest._sums import Array
from caltest.auditing import sizes
from caltest.auditing.draws import Answers, Subtraction, answers, columns_of_looks, draw_all
from caltest.auditing.limits import Limit, Wanted
from caltest.auditing.options import Options
from caltest.auditing.plan import Hypothesis, Look
from caltest.auditing.sizes import Design, Family, Sizes
from caltest.auditing.views import Count, Curves, Part
from caltest.bounds import intervals
from caltest.bounds.intervals import LARGEST_LEVEL, Sizing, StratifiedRisk, scaled_risk
from caltest.data import Sample
from caltest.data.rows import effective_number
from caltest.forms import FEWEST_CLUSTERS
from caltest.nulls.base import Trial
from caltest.nulls.times import TIES, if_shared, of_count, of_sum, signed
from caltest.pvalues import Alternative, adjusted, of_exchangeable
from caltest.statistics.times import STRATA, kaplan_meier, parts_of

_FEWEST = 4  # strata by predicted risk; with fewer, observed minus expected events are used
_LEVELS = 500  # levels at which the interval of a risk at one time is evaluated for its p-value,
_LEAST = 1e-8  # … from the largest down to this one
_MARKS = 40  # points of the curves
_ROUNDED = 1e-12  # spread that is rounding: all rows had the event, or none
_LEFT = 5  # rows still followed; with fewer, nothing observed is drawn


def curves_of(whole: Sample, looks: Sequence[Look] = (), cause: str | None = None) -> Curves:
    """Return the curves of all rows; observed ones end once some group is no longer followed."""
    law: Any = whole.rows.law.of_cause(cause)  # type: ignore[attr-defined]
    (ended, event), found = law.until(law.seen), []
    groups = [look.where for look in looks if look.group and look.event]
    most = min((ended[rows].max() for rows in groups if not event[rows].all()), default=np.inf)
    for time in law.marks(_MARKS)[0].tolist():
        risk, km = law.risk(time), kaplan_meier(ended, event, time)
        early, came = law.until(law.seen, time)
        hazard = risk if law.horizon is not None else law.cumulative_hazard(early)
        strata = intervals.risk_bounds(ended, event, risk, hazard, time)
        observed: Any = None, None
        if strata and not strata.unknown and km and km.left >= _LEFT and time <= most:
            observed = strata.limits(LARGEST_LEVEL).estimate, 1.0 - km.survival
        counts = float(np.sum(came == 1)), float(hazard.sum())
        found.append((time, float(risk.mean()), *observed, *counts))
    columns: Any = *zip(*found, strict=True), cause
    return Curves(float(np.mean(np.signbit(law.seen))), *columns)


# ------------------------------------------------------------------ events until a horizon


@dataclass(frozen=True, eq=False)
class Risk:
    """The risk of some rows until a horizon, predicted and observed."""

    horizon: float
    rows: Any  # whose law holds times
    ended: tuple[Array, NDArray[np.bool_]]  # end of observation, and whether by an event
    risk: Array
    came: Array
    expected: Array  # of the observed part; for a risk at one time, as if nothing were censored
    alone: bool  # whether the risk before the horizon is treated as unknown
    look: Any = None
    apart: NDArray[np.intp] | None = None  # above 0: in groups where nobody was followed to the horizon
    fewest: int = _FEWEST  # strata

    @classmethod
    def of(cls, look: Look, alone: bool, apart: NDArray[np.intp] | None = None) -> Risk:
        """Return the risk of a look's rows until its horizon."""
        lens: Any = look.scope.lens
        rows, at = look.view().rows, float(lens.threshold)
        return cls.until(rows, at, rows.law.risk(at), alone, look=look, apart=apart)  # type: ignore[attr-defined]

    @classmethod
    def until(cls, rows: Any, at: float, risk: Array, alone: bool, **more: Any) -> Risk:
        """Return the risk of rows whose law holds observations and predictions."""
        law, (ended, came) = rows.law, rows.law.until(rows.law.seen, at)
        expected = risk if alone else law.cumulative_hazard(ended)
        return cls(at, rows, law.until(law.seen), risk, 1.0 * (came == 1), expected, alone, **more)

    @cached_property
    def design(self) -> Design:
        """Weights and clusters of the rows."""
        return Design.of(self.rows, None)

    @property
    def predicted(self) -> float:
        """The mean predicted risk."""
        return float(np.average(self.risk, weights=self.rows.weights))

    @property
    def sums(self) -> tuple[float, float]:
        """Weighted numbers of observed and expected events."""
        w = self.rows.weights
        return float(w @ self.came), float(w @ self.expected)

    def ratio(self, level: float) -> Sizing:
        """Return the ratio of observed to expected events, with limits."""
        total, whole = self.sums
        whole, enough = max(whole, 1e-300), sizes.enough_clusters(level)
        if self.design.plain:
            low, high = intervals.events_bounds(total, level)
        elif self.design.clusters is not None and total > 0.0 and self.carried >= enough:
            values = self.rows.weights * (self.came - total / whole * self.expected)
            below, above = self.reach(values, level)
            low, high = max(total - below, 0.0), total + above
        else:
            given = total, self.expected, self.rows.weights, self.design.codes, level
            return Sizing(total / whole, *intervals.ratio_bounds(*given))
        return Sizing(total / whole, low / whole, high / whole)

    @cached_property
    def carried(self) -> float:
        """Effective number of expected events, counting clusters as one."""
        return if_shared(self.rows.weights, self.expected, self.design.codes)[1]

    def reach(self, values: Array, level: float) -> tuple[float, float]:
        """Return how far limits lie below and above, from centred values of rows."""
        enough, w = sizes.enough_clusters(level), self.rows.weights
        due = self.expected if self.carried >= enough else self.came
        if if_shared(w, due, self.design.codes)[1] < enough or np.ptp(values) < _ROUNDED:
            return np.inf, np.inf
        units = effective_number(self.design.sums(w * due**0.5) ** 2)
        return sizes.ends_by_t(self.design, values, 1.0, level, units)

    @cached_property
    def unknown(self) -> float:
        """Share of rows in strata where no row was followed until the horizon."""
        time, event = self.ended
        if not event.all() and time.max() < self.rows.law.stated_time(self.horizon):
            return 1.0
        if self.strata is not None:
            return self.strata.unknown
        if kaplan_meier(time, event, self.horizon) is None:
            return 1.0
        lost = np.zeros(len(time)) if self.apart is None else self.apart > 0
        return float(np.average(lost, weights=self.rows.weights))

    @cached_property
    def followed(self) -> Risk:
        """The rows that are not set apart, if any are."""
        if self.apart is None or not self.apart.any():
            return self
        places = np.arange(self.look.scope.whole.n_samples)[self.look.where][self.apart == 0]
        return Risk.of(replace(self.look, places=places, n_rows=len(places)), self.alone)

    @cached_property
    def strata(self) -> StratifiedRisk | None:
        """The risk within strata; None if they are too few, unless only strata are informative."""
        direct, plain = self.direct and not self.alone, self.design.plain
        if not plain and not direct:
            return None
        given = *self.ended, self.risk, self.expected, self.horizon
        more = None if plain else self.rows.weights, None if plain else self.reach
        return intervals.risk_bounds(*given, 0 if direct else self.fewest, self.apart, *more)

    @property
    def direct(self) -> bool:
        """Whether hazard ratios are uninformative: with competing events, or none expected."""
        none = not self.expected.any() or (self.came > 0.0)[self.risk == 0.0].any()
        return bool(self.rows.law.code or none)

    @property
    def tells(self) -> bool:
        """Whether it may be proved within a limit: not with few expected events."""
        return self.strata is not None and (not self.direct or self.carried >= FEWEST_CLUSTERS)

    def bounds(self, level: float) -> Sizing:
        """Return the risk until the horizon, with limits.

        Without strata, limits are derived from the number of events, as if all hazards (of one kind of
        event) were multiplied by the same factor: they describe, and prove nothing to be within a
        limit. Rows set apart are then unknown.
        """
        if self.strata is not None:
            return self.strata.limits(level)
        if self.alone:
            return Sizing(self.predicted, 0.0, 1.0)  # nothing is known
        found = scaled_risk(self.risk, self.rows.weights, self.ratio(level).estimate)
        if (share := self.unknown) == 1.0:
            return Sizing(found, 0.0, 1.0)
        known, part = self.followed, 1.0 - share
        risk, w = known.risk, known.rows.weights
        low, high = (part * scaled_risk(risk, w, each) for each in known.ratio(level)[1:])
        return Sizing(min(max(found, low), high + share), low, high + share)

    def parts(self, level: float, limit: Limit) -> tuple[Part, ...]:
        """Cut all rows into tenths of equal expected events, five at least; groups are not cut."""
        if self.look.group is not None:
            return ()
        found: list[Part] = []
        for places in parts_of(self.risk, self.expected):
            apart = None if self.apart is None else self.apart[places]
            own = Risk.of(replace(self.look, places=places), self.alone, apart)
            mean, size = own.predicted, own.bounds(level)
            joint = limit.cut(mean, mean - size.high, mean - size.low)
            ends = *joint, float(own.risk.min()), float(own.risk.max())
            found.append(Part(STRATA, len(found), len(places), mean, size.estimate, *ends))
        return tuple(found) if len(found) == STRATA else ()

    def least_pvalue(self) -> float:
        """Return a p-value without random signs, a lower bound for the one by signs."""
        if not self.alone:
            if self.design.plain:
                return of_count(*self.sums)
            return of_sum(self.rows.weights, self.came, self.expected, "two-sided", self.design.codes)
        mean = self.predicted

        def holds(level: float) -> bool:
            found = self.bounds(level)
            return found.low <= mean <= found.high

        levels = np.geomspace(LARGEST_LEVEL, _LEAST, _LEVELS)
        place = bisect_left(levels, True, key=lambda level: holds(float(level)))
        return 1.0 if place == 0 else 2.0 * float(levels[place - 1])


def _key(look: Look) -> tuple[Any, ...]:
    return look.scope.label, look.group, look.less


@dataclass(frozen=True, eq=False)
class SizesOfTimes(Sizes):
    """Sizes of risks until horizons, for views and for the remaining rows."""

    risks: dict[Any, Risk]  # by lens, group, and group taken out
    vouches = False

    @classmethod
    def of_rows(
        cls,
        rows: Any,
        looks: Sequence[Look],
        rests: Sequence[Subtraction],
        options: Options,
        n_slices: int = 0,
    ) -> SizesOfTimes:
        """Collect all risks, and divide the level among all intervals."""
        every, law = [*(look for look in looks if look.event), *(x.remaining for x in rests)], rows.law
        times = {x.scope.label: float(x.scope.lens.threshold) for x in every}  # type: ignore[union-attr]
        plain = rows.are_alike and rows.clusters is None
        stated = all(map(law.states, times.values()))
        alone = law.horizon is not None or (plain and law.coarse and stated)
        risks = {_key(x.look): x for x in _set_apart([Risk.of(look, alone) for look in every])}
        sides = len(options.limit.sides)
        family = Family.of(options.alpha, len(risks), STRATA * len(times), n_slices, sides)
        return cls(Design.of(rows, None), options.alpha, family, {}, options.limit, risks)

    def of_look(self, look: Look, seen: Sample, labels: NDArray[Any]) -> dict[str, Any]:
        """Return the mean error, the parts, and observed and expected events."""
        risk = self.risks[_key(look)]
        (total, whole), parts = risk.sums, risk.parts(self.family.of_part, self.limit)
        known = whole > 0.0 and not risk.alone  # for a risk at one time, no expected events before it
        limits: Any = risk.ratio(self.family.of_view)[1:] if known else (None, None)
        if self.limit.only:  # fewer events than expected: predicted too high
            limits = (None, limits[1]) if self.limit.only == "over" else (limits[0], None)
        events = Count(total, None if risk.alone else whole, *limits)
        means = self.of_mean(look, seen, labels)
        return means | {"parts": parts, "binned_error": sizes.binned_error(parts), "events": events}

    def of_mean(
        self, look: Look, seen: Sample, labels: NDArray[Any], level: float | None = None
    ) -> dict[str, Any]:
        """Return the mean error with both intervals; only strata prove that it is within the limit."""
        risk = self.risks.get(_key(look)) or Risk.of(look, next(iter(self.risks.values())).alone)
        levels = (level or self.family.of_view, self.own_level)
        mean, joint, own = risk.predicted, *map(risk.bounds, levels)
        ends = ((mean - each.high, mean - each.low) for each in (joint, own))
        found = self.facts(mean, joint.estimate, *ends) | {"unfollowed": risk.unknown, "exact": False}
        return found | {"inside": found["inside"] and risk.tells}

    def ways(self, look: Look, sized: Any, labels: NDArray[Any]) -> list[Wanted]:
        """Return the way to prove it, by the width of its interval; none if rows are not followed."""
        mean, missing = sized.predicted, sized.unfollowed
        deviation = (sized.own_high - sized.own_low) / (-2.0 * float(ndtri(self.own_level)))
        share = mean * (1.0 - mean) / (max(deviation, 1e-6) ** 2 * sized.rows)
        place = self.limit.place(mean, missing * (mean - 1.0), missing * mean)
        least = 0.0 if place == "inside" else np.inf
        return [Wanted(mean, min(max(share, 1e-6), 1.0), False, sized.rows / len(labels), least=least)]

    def notes(self, looks: Sequence[Look]) -> list[str]:
        """Return notes, also on rows whose risk is not known."""
        seen = [each for each in self.risks.values() if each.look.less is None]
        whole: Any = looks[0].scope.whole
        notes = [*whole.notes]
        if all(each.event and self.risks[_key(each)].alone for each in looks):
            notes = [each for each in notes if each != whole.law.between_times]
        if self.design.clusters is not None:
            notes += sizes.few_carry([each.carried for each in seen], self.family.of_view)
        if not (some := [each for each in seen if each.unknown]):
            return notes
        most = max(some, key=lambda each: each.unknown)
        group = most.look.group
        where = f"where {group.words}" if group else "of all rows"
        until: Any = most.look.scope.horizon
        going_on = "without events" if most.direct else "as until then"
        going_on = "as predicted" if most.alone else going_on
        return [
            *notes,
            f"In {len(some):,} of {len(seen):,} views, some rows are like none that was followed until "
            f"the horizon ({most.unknown:.0%} {where}, until {until.when}). What came of these by "
            "then is not known. Intervals hold whatever came after they were followed; what stands as "
            "observed, in brackets where it is of such rows alone, supposes that they go on "
            f"{going_on}. Longer follow-up would tell; more rows that are followed as long would not.",
        ]


def _set_apart(seen: Sequence[Risk]) -> list[Risk]:
    """Set rows apart in all views if nobody in their group was followed: no other rows inform them."""
    lost: dict[float, NDArray[np.intp]] = {}
    for each in seen:
        n = each.look.scope.whole.n_samples
        if each.look.n_rows < n and each.unknown == 1.0:  # groups, and remaining rows
            codes = 2 * lost.get(each.horizon, np.zeros(n, dtype=np.intp))
            codes[each.look.where] += 1
            # Renumber to keep codes small; 0 remains for rows that are not set apart.
            lost[each.horizon] = np.unique(np.append(0, codes), return_inverse=True)[1][1:]
    return [
        replace(each, apart=lost[each.horizon][each.look.where]) if each.horizon in lost else each
        for each in seen
    ]


def share_of_level(hypotheses: Sequence[Hypothesis]) -> float:
    """Return the factor for p-values of imputed times: both blocks get half of the level."""
    completed = [look.event is None for look, _ in hypotheses]
    return (1.0 + any(completed)) * (2.0 if any(completed) and not all(completed) else 1.0)


def answers_of_times(
    risks: Sequence[Risk], hypotheses: Sequence[Hypothesis], whole: Sample, options: Options
) -> Answers:
    """Return p-values for views and remaining rows; the table holds imputed times only."""
    completed = [each for each in hypotheses if not each[0].event]
    share = 2.0 if completed and risks else 1.0
    found = [_of_completed(whole, completed, options, share)] if completed else []
    found += [_of_events(risks, options, share)] if risks else []
    names = ("values", "pvalues", "adjusted", "evidence")
    both: Any = {name: np.concatenate([getattr(each, name) for each in found]) for name in names}
    both["intervals"] = tuple(ends for each in found for ends in each.intervals)
    both["expected"] = tuple(x for each in found for x in each.expected or [None] * len(each.values))
    return found[0]._replace(**both, largest=None)


def _of_events(seen: Sequence[Risk], options: Options, share: float) -> Answers:
    """Return joint p-values by signs of rows, at least those that need no signs."""
    whole: Any = seen[0].look.scope.whole
    design, values = Design.of(whole, None), np.zeros((whole.n_samples, len(seen)))
    if by_signs := not seen[0].alone:
        for h, each in enumerate(seen):
            values[each.look.where, h] = each.rows.weights * (each.came - each.expected)
    values = np.column_stack([design.sums(own) for own in values.T])
    drawn = signed(values, options.n_resamples, options.seed)
    sides: list[Alternative] = ["two-sided"] * len(seen)
    found = answers(drawn, np.full(len(seen), TIES), sides, options.correction, options.alpha)
    least = np.array([each.least_pvalue() for each in seen])
    # These intervals are about right; do not trust them further out than draws would be.
    floor = 0.0 if by_signs else 1.0 / (1 + options.n_resamples)
    together = np.maximum(np.maximum(by_signs * found.adjusted, adjusted(least, "holm")), floor)
    own = np.column_stack([found.pvalues, found.intervals])  # with the range due to random draws
    own = np.maximum(np.maximum(by_signs * own, least[:, None]), floor)
    if not by_signs:  # observed events minus those predicted under full follow-up
        more = [each.bounds(LARGEST_LEVEL).estimate - each.predicted for each in seen]
        missing = np.array([each.look.n_rows for each in seen]) * more
        found = found._replace(values=missing, expected=None)
    pvalues, intervals = own[:, 0], tuple((low, high) for low, high in own[:, 1:].tolist())
    together = np.minimum(share * together, 1.0)
    return found._replace(pvalues=pvalues, intervals=intervals, adjusted=together, table=None)


# ------------------------------------------------------------------ imputed times


def _of_completed(
    whole: Sample, hypotheses: Sequence[Hypothesis], options: Options, share: float
) -> Answers:
    """Return p-values from several imputations of times; the table is of the first."""
    sides = [each.alternatives[0] for _, each in hypotheses]

    def asked(values: Array, resolutions: Array) -> Answers:
        return answers(values, resolutions, sides, options.correction, options.alpha)

    def trial(labels: Any) -> Trial:
        return Trial(whole.rows, labels, options.n_resamples, options.seed, options.workers)

    values, resolutions, _ = draw_all(hypotheses, trial(whole.labels))
    every = [asked(values, resolutions)]
    columns = columns_of_looks(hypotheses, options.seed) if whole.rows.clusters is None else []
    for labels in whole.rows.law.completed_anew():
        if columns:
            own = [each.form.of_labels(each.outcomes(labels[None]))[0] for each in columns]
            every.append(asked(np.vstack([own, values[1:]]), resolutions))
        else:
            every.append(asked(*draw_all(hypotheses, trial(labels))[:2]))
    each = np.array([[one.pvalues, one.adjusted, *np.transpose(one.intervals)] for one in every])
    alone, together, *ends = np.apply_along_axis(of_exchangeable, 0, each)
    joint = np.minimum(share * np.maximum(together, alone), 1.0)
    intervals = tuple((float(low), float(high)) for low, high in zip(*ends, strict=True))
    return every[0]._replace(pvalues=alone, intervals=intervals, adjusted=joint)


# ------------------------------------------------------------------ one risk, to compare models


@dataclass(frozen=True, eq=False)
class Followed(Design):
    """Independent rows of equal weight, with times observed until a horizon."""

    rows: Any = None
    horizon: float = 0.0

    @classmethod
    def until(cls, whole: Sample, horizon: float) -> Followed:
        """Return the design of all rows."""
        law: Any = copy(whole.rows.law)
        law.check_horizon(horizon)
        law.seen = whole.labels if law.seen is None else law.seen
        rows = replace(whole.rows, law=law)
        return cls(rows.weights, rows=rows, horizon=law.stated_time(horizon))

    plain = False  #: Whether counts of events are known: not for censored rows.

    def at(self, rows: NDArray[np.intp] | None) -> Self:
        """Return the design of some rows."""
        found = super().at(rows)
        return found if rows is None else replace(found, rows=self.rows.take(rows))

    def interval(
        self, chances: Array, labels: NDArray[np.integer], level: float, by_t: bool = True
    ) -> tuple[float, float, float, float]:
        """Return mean predicted risk, observed risk, and the interval of their difference."""
        alone, mean = self.rows.law.horizon is not None, float(chances.mean())
        risk = Risk.until(self.rows, self.horizon, chances, alone)
        found = replace(risk, alone=False, fewest=1).bounds(level)
        return mean, found.estimate, mean - found.high, mean - found.low

    def spread(self, part_of: NDArray[np.intp], parts: Sequence[Part]) -> Array:
        """Return each row's contribution to the observed risks of parts: its influence on them."""
        ended, came = self.rows.law.until(self.rows.law.seen)
        seen = np.empty(len(ended))
        for k, part in enumerate(parts):
            rows, observed = part_of == k, part.observed
            time, ordered = ended[rows], np.sort(ended[rows])
            early = came[rows] & (time <= self.horizon)
            followed = part.rows - np.searchsorted(ordered, time)
            passed = np.append(0.0, np.cumsum(np.sort(1.0 / followed[early] ** 2)))
            passed = passed[np.searchsorted(np.sort(time[early]), time, "right")]
            seen[rows] = observed + (1.0 - observed) * part.rows * (early / followed - passed)
        return seen
