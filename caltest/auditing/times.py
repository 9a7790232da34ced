"""An audit of times until an event, where follow-up of rows with an event is not known.

Events less expected ones, until every horizon, on all rows and in every group, by signs of rows, have
half of the level; completed times, through the lens "distribution", the other half. Sizes rest on what
does not need completions: events observed and expected, and risk at the horizon within strata of
similar predicted risk, averaged. Where follow-up is known, an audit is as of all other numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from caltest._sums import Array
from caltest._visible import shown_group
from caltest.auditing.diagrams import views_of
from caltest.auditing.draws import Answers, answers, check_resolution, columns_of_looks, draw_all
from caltest.auditing.groups import Grouping, notes_on
from caltest.auditing.limits import Limit, Wanted, rows_needed
from caltest.auditing.options import DISTRIBUTION, Options
from caltest.auditing.plan import Look, Plan, Scope, around, make_plan
from caltest.auditing.result import Audit
from caltest.auditing.sizes import (
    Design,
    Family,
    Sizes,
    binned_error,
    ends_by_t,
    enough_clusters,
    few_carry,
)
from caltest.auditing.views import Check, Count, Curves, Part, Rest, View
from caltest.bounds.intervals import (
    LARGEST_LEVEL,
    Sizing,
    StratifiedRisk,
    events_bounds,
    ratio_bounds,
    risk_bounds,
    scaled_risk,
)
from caltest.data import Rows, Sample
from caltest.data.rows import effective_number
from caltest.exceptions import Argument, InputError
from caltest.lenses import Until, find_lens
from caltest.lenses import event as clause
from caltest.nulls.base import Trial
from caltest.nulls.times import TIES, if_shared, of_count, of_sum, signed
from caltest.pvalues import Alternative, adjusted, of_exchangeable
from caltest.resampling import draws_of_signs
from caltest.statistics import Events
from caltest.statistics.times import STRATA, kaplan_meier, parts_of

_FEWEST = 4  # strata, by which risk is looked at; with fewer, events less expected ones are
_LEVELS = 500  # at which the interval of a risk at one time is looked at, for its p-value,
_LEAST = 1e-8  # … from the largest on to this
_MARKS = 40  # times of the curves
_LEFT = 5  # rows: with fewer that are still followed, nothing observed is drawn


def curves_of(whole: Sample, groups: Sequence[Any] = ()) -> Curves:
    """Return the curves of all rows; observed ones as long as rows of every group are followed."""
    law: Any = whole.rows.law
    (ended, event), found = law.until(law.seen), []
    most = min((ended[rows].max() for rows in groups if not event[rows].all()), default=np.inf)
    for time in law.marks(_MARKS)[0].tolist():
        risk, km = law.risk(time), kaplan_meier(ended, event, time)
        early, came = law.until(law.seen, time)
        hazard = risk if law.horizon is not None else law.cumulative_hazard(early)
        strata = risk_bounds(ended, event, risk, hazard, time)
        observed: tuple[float, float] | tuple[None, None]
        if strata is None or strata.unknown or km is None or km.left < _LEFT or time > most:
            observed = None, None
        else:
            observed = strata.limits(LARGEST_LEVEL).estimate, 1.0 - km.survival
        found.append((time, float(risk.mean()), *observed, float(came.sum()), float(hazard.sum())))
    columns: Any = zip(*found, strict=True)
    return Curves(float(np.mean(np.signbit(law.seen))), *columns)


def audit_of_times(whole: Sample, groupings: Sequence[Grouping], options: Options, call: str) -> Audit:
    """Audit censored times."""
    law: Any = whole.rows.law
    until = {name: lens for name, lens in options.lenses.items() if isinstance(lens, Until)}
    if options.tolerance is not None or set(options.lenses) - {*until, DISTRIBUTION}:
        raise InputError(
            "censored times are audited through 'distribution' and horizons such as 'until:365', "
            "without a {tolerance}; give these lenses, or {follow_up} where it is known of all rows.",
            tolerance=Argument("tolerance", ...),
            follow_up=Argument("follow_up"),
        )
    asked = [each for name in until for each in options.statistics.get(name) or ()]
    if wrong := [each.name for each in asked if not isinstance(law, each.laws)]:
        raise InputError(
            f"the statistic {wrong[0]!r} is not of censored times; at a horizon events less expected "
            "ones are looked at: leave it out, or give some for 'distribution', such as 'pit_ad'."
        )
    if law.horizon is not None and not (whole.rows.are_alike and whole.rows.clusters is None):
        raise InputError(
            "of rows that count differently or come in clusters the risk at one time is not enough; "
            "give whole curves."
        )
    lenses = {DISTRIBUTION: find_lens(DISTRIBUTION)}
    statistics = {DISTRIBUTION: options.statistics.get(DISTRIBUTION)}
    plan = make_plan(whole.rows, groupings, replace(options, lenses=lenses, statistics=statistics))
    taken = {each.column for each in groupings if each.crosses}
    looks = _looks(plan, taken, until)
    left = list(around(looks, options.min_rows))
    completed = DISTRIBUTION in options.lenses and law.horizon is None
    share = 2.0 if completed and looks else 1.0  # of the level, for either block
    level, draws = options.alpha, options.n_resamples
    if (n_clusters := whole.rows.n_clusters) is not None:  # of few all signs
        draws = draws_of_signs(n_clusters, draws, options.seed).count
    all_signs = n_clusters if draws < options.n_resamples else None
    check_resolution(
        ["two-sided"], options.correction, level, draws, all_signs, share * (1.0 + completed)
    )
    notes = [*whole.rows.notes, *notes_on(groupings)]
    views, rests, checks, evidence = list[View](), list[Rest](), list[Check](), [0.0]
    places = {each.group: each.where for each in looks if each.group is not None}.values()
    alone = _alone(whole.rows, until)
    if alone and not completed:  # nothing is taken to be known between times
        notes = [note for note in notes if note != law.between_times]
    zero = np.zeros(len(whole.labels), dtype=np.bool_)
    zero[whole.rows.impossible(whole.labels) if law.horizon is None else []] = True
    if looks:
        family = Family.of(level, len(looks) + len(left), STRATA * len(until))
        every = (*looks, *(parent.without(part) for part, parent in left))
        seen = _set_apart([_Seen.of(each, alone) for each in every])
        found = _of_events(seen, options, share)
        evidence.append(float(found.evidence.max()))
        if n_clusters is not None:
            notes += few_carry([each.carried for each in seen[: len(looks)]], family.of_view)
        notes += _unknown(seen[: len(looks)])
        for h, each in enumerate(seen):
            p = float(found.adjusted[h])
            sizes = each.sizes(family.of_view, options.limit, level) | {"adjusted_pvalue": p}
            if h < len(looks):
                at = int(zero[each.look.where].sum()) if zero.any() else None
                views.append(each.view(family, sizes | {"impossible": at}))
                checks.append(found.check(h, views[-1], Events(), level))
            else:
                group: Any
                group, parent = (look.group for look in left[h - len(looks)])
                rests.append(Rest(each.look.scope.label, group, parent, **sizes, found=p <= level))
    if completed:
        found, values = _of_completed(whole, plan, options, share)
        evidence.append(float(found.evidence.max()))
        no_events = Sizes.of(Design.of(whole.rows, None), plan.looks, 0, level, Limit(None, None))
        of_looks = views_of(plan, whole.labels, found, values, {}, no_events, zero)
        views += of_looks.values()
        for h, (look, statistic) in enumerate(plan.hypotheses):
            checks.append(found.check(h, of_looks[look], statistic, level))
    if not checks:
        raise InputError("there is nothing to test; give a lens such as 'until:365'.")
    pvalues = [each.adjusted for each in checks] + [each.adjusted_pvalue for each in rests]
    wholes: list[Any] = [*views, *rests]
    needed = (len(whole.labels) * each.rows_needed / each.rows for each in wholes if each.rows_needed)
    return Audit(
        pvalue=min([*pvalues, 1.0 / (1 + draws) if zero.any() else 1.0]),
        checks=tuple(sorted(checks, key=lambda check: (check.adjusted, check.pvalue))),
        views=tuple(views),
        rests=tuple(rests),
        skipped=tuple(replace(x, inside=False) if x in plan.dropped else x for x in plan.skipped),
        event=None,
        lenses=tuple(options.lenses),
        groups=tuple(each for each in plan.columns if completed or each in taken),
        n_resamples=draws,
        statistic=max(evidence) + 0.0,
        null_distribution=None,
        call=call,
        warnings=tuple(notes),
        impossible=int(zero.sum()),
        rows_in_all=max(map(math.ceil, needed), default=None),
        times=curves_of(whole, tuple(places)) if whole.rows.are_alike else None,
        **plan.stated(whole.rows, options),
    )


def _alone(rows: Rows, until: dict[str, Until]) -> bool:
    """Whether risk at the horizons is looked at alone: curves are of few times, these among them."""
    law: Any = rows.law
    if law.horizon is not None:
        return True
    plain = rows.are_alike and rows.clusters is None
    return plain and law.coarse and all(law.states(float(lens.threshold)) for lens in until.values())


def _looks(plan: Plan, columns: set[str], until: dict[str, Until]) -> list[Look]:
    """List all rows, and groups of the user's columns, through every horizon."""
    whole, found = plan.looks[0].scope.whole, list[Look]()
    law: Any = whole.law
    for name, lens in until.items():
        if (at := float(lens.threshold)) <= 0.0:
            raise InputError(f"the horizon is {at:g}; give a time above 0, as in 'until:365'.")
        law.check_horizon(at)
        scope = Scope(whole, name, name, lens)
        for look in plan.looks:
            if look.group is None or columns.issuperset(each.column for each in look.group.conditions):
                found.append(replace(look, scope=scope))
    return found


# ------------------------------------------------------------------ events until a horizon


@dataclass(frozen=True, eq=False)
class _Seen:
    """The rows of a look until its horizon: what was predicted of them, and seen."""

    look: Look
    horizon: float
    rows: Any  # whose law states times
    risk: Array
    came: Array
    expected: Array  # of what was seen; of a risk at one time alone as if nothing were censored
    alone: bool  # whether nothing is taken to be known of the risk before the horizon
    apart: NDArray[np.intp] | None = None  # above 0: of groups that nobody was followed in so long

    @classmethod
    def of(cls, look: Look, alone: bool = False) -> _Seen:
        lens: Any = look.scope.lens
        rows, at = look.scope.whole.take(look.where), float(lens.threshold)
        law: Any = rows.law
        risk, (ended, came) = law.risk(at), law.until(law.seen, at)
        expected = risk if alone else law.cumulative_hazard(ended)
        return cls(look, at, rows, risk, came.astype(float), expected, alone)

    @cached_property
    def design(self) -> Design:
        return Design.of(self.rows, None)

    @property
    def predicted(self) -> float:
        return float(np.average(self.risk, weights=self.rows.weights))

    @property
    def sums(self) -> tuple[float, float]:
        """How many events came, and were expected, as rows count."""
        w = self.rows.weights
        return float(w @ self.came), float(w @ self.expected)

    def ratio(self, level: float) -> Sizing:
        """Return the ratio of events to those expected, with limits."""
        total, whole = self.sums
        whole = max(whole, 1e-300)
        if self.design.plain:
            low, high = events_bounds(total, level)
        elif self.design.clusters is not None and self.carried >= enough_clusters(level):
            values = self.rows.weights * (self.came - total / whole * self.expected)
            units = effective_number(self.design.sums(self.rows.weights * self.expected**0.5) ** 2)
            below, above = ends_by_t(self.design, values, 1.0, level, units)
            low, high = max(total - below, 0.0), total + above
        else:
            given = total, self.expected, self.rows.weights, self.design.codes, level
            return Sizing(total / whole, *ratio_bounds(*given))
        return Sizing(total / whole, low / whole, high / whole)

    @cached_property
    def carried(self) -> float:
        """How many events of whole clusters are expected, in effect."""
        return if_shared(self.rows.weights, self.expected, self.design.codes)[1]

    @cached_property
    def ended(self) -> tuple[Array, NDArray[np.bool_]]:
        """When rows ended, whatever the horizon, and whether by an event, (n,) each."""
        return self.rows.law.until(self.rows.law.seen)  # type: ignore[no-any-return]

    @cached_property
    def unknown(self) -> float:
        """The share of rows in strata of which none was followed until the horizon."""
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
    def followed(self) -> _Seen:
        """The rows that are not set apart, of which there are some."""
        if self.apart is None or not self.apart.any():
            return self
        places = np.arange(self.look.scope.whole.n_samples)[self.look.where][self.apart == 0]
        return _Seen.of(replace(self.look, places=places, n_rows=len(places)), self.alone)

    @cached_property
    def strata(self) -> StratifiedRisk | None:
        """The risk until the horizon within strata; None with few strata."""
        if not self.design.plain:
            return None
        time, event = self.ended
        return risk_bounds(time, event, self.risk, self.expected, self.horizon, _FEWEST, self.apart)

    def bounds(self, level: float) -> tuple[Sizing, bool]:
        """Return the risk until the horizon, with limits, and whether these rest on strata.

        Else they are those of events, as if all hazards were so many times as large: which describes,
        and does not show what is within a limit. Of rows that are set apart nothing is known then.
        """
        if self.strata is not None:
            return self.strata.limits(level), True
        if self.alone:
            return Sizing(self.predicted, 0.0, 1.0), False  # nothing is known
        ratio = self.ratio(level) if self.sums[1] else Sizing(1.0, 0.0, np.inf)
        found = scaled_risk(self.risk, self.rows.weights, ratio.estimate)
        if (share := self.unknown) == 1.0:
            return Sizing(found, 0.0, 1.0), False
        known = self.followed
        low, high = (
            (1.0 - share) * scaled_risk(known.risk, known.rows.weights, each)
            for each in known.ratio(level)[1:]
        )
        return Sizing(min(max(found, low), high + share), low, high + share), False

    def sizes(self, of_view: float, limit: Limit, level: float) -> dict[str, Any]:
        """Return the error with its interval, and whether it is shown to be within the limit."""
        mean, (found, _) = self.predicted, self.bounds(of_view)
        sizes: dict[str, Any] = {"rows": self.look.n_rows, "predicted": mean, "exact": False}
        sizes["unfollowed"] = self.unknown
        sizes |= {"observed": found.estimate, "low": mean - found.high, "high": mean - found.low}
        level = min(level, LARGEST_LEVEL)
        own, shown = self.bounds(level)
        sizes |= limit.of_own(mean, mean - own.high, mean - own.low)
        if limit:
            sizes["inside"] = shown and sizes["inside"]
            missing = self.unknown * (mean - 1.0), self.unknown * mean
            if not sizes["inside"] and limit.place(mean, *missing) == "inside":  # else none would do
                spread = max((own.high - own.low) / (-2.0 * float(ndtri(level))), 1e-6) ** 2
                share = min(max(mean * (1.0 - mean) / (spread * self.look.n_rows), 1e-6), 1.0)
                (sizes["rows_needed"],) = rows_needed([Wanted(mean, share, False)], limit, level)
                sizes["clusters_needed"] = self.design.clusters_in(sizes["rows_needed"])
        return sizes

    def parts(self, level: float) -> tuple[Part, ...]:
        """Cut all rows into tenths of equal expected events, five at least; groups are not cut."""
        if self.look.group is not None:
            return ()
        found: list[Part] = []
        for places in parts_of(self.risk, self.expected):
            own = _Seen.of(replace(self.look, places=places), self.alone)
            own = own if self.apart is None else replace(own, apart=self.apart[places])
            mean, size = own.predicted, own.bounds(level)[0]
            ends = mean - size.high, mean - size.low, float(own.risk.min()), float(own.risk.max())
            found.append(Part(STRATA, len(found), len(places), mean, size.estimate, *ends))
        return tuple(found) if len(found) == STRATA else ()

    def view(self, family: Family, sizes: dict[str, Any]) -> View:
        """Return it as a view of these sizes."""
        lens, parts = self.look.scope.label, self.parts(family.of_part)
        total, whole = self.sums
        known = whole > 0.0 and not self.alone  # of a risk at one time, nothing is expected before
        limits = self.ratio(family.of_view)[1:] if known else (None, None)
        sizes |= {
            "parts": parts,
            "binned_error": binned_error(parts),
            "events": Count(total, None if self.alone else whole, *limits),
        }
        view = View(lens, clause(lens, self.rows), self.look.group, **sizes)
        return replace(view, direction=view.side)

    def least_pvalue(self) -> float:
        """Return a p-value that does not rest on signs, which that by signs is to be at least."""
        if not self.alone:
            if self.design.plain:
                return of_count(*self.sums)
            given = self.rows.weights, self.came, self.expected
            return of_sum(*given, clusters=self.design.codes)
        mean = self.predicted

        def holds(level: float) -> bool:
            found, _ = self.bounds(level)
            return found.low <= mean <= found.high

        levels = np.geomspace(LARGEST_LEVEL, _LEAST, _LEVELS)
        place = bisect_left(levels, True, key=lambda level: holds(float(level)))
        return 1.0 if place == 0 else 2.0 * float(levels[place - 1])


def _set_apart(seen: Sequence[_Seen]) -> list[_Seen]:
    """Set rows of groups that nobody was followed in apart, in all views: no others tell of them."""
    n = seen[0].look.scope.whole.n_samples
    lost: dict[float, NDArray[np.intp]] = {}
    for each in seen:
        if each.look.n_rows < n and each.unknown == 1.0:  # groups, and what they leave of others
            codes = 2 * lost.get(each.horizon, np.zeros(n, dtype=np.intp))
            codes[each.look.where] += 1
            # Numbered anew, so that they stay small; 0 stays that of rows that are not lost.
            lost[each.horizon] = np.unique(np.append(0, codes), return_inverse=True)[1][1:]
    return [
        replace(each, apart=lost[each.horizon][each.look.where]) if each.horizon in lost else each
        for each in seen
    ]


def _unknown(seen: Sequence[_Seen]) -> list[str]:
    """Note in how many views risk is not known of some rows until the horizon."""
    some = [each for each in seen if each.unknown]
    if not some:
        return []
    most = max(some, key=lambda each: each.unknown)
    group = most.look.group
    where = f"where {shown_group(group.column, group.value)}" if group else "of all rows"
    going_on = "as predicted" if most.alone else "as until then"
    return [
        f"In {len(some):,} of {len(seen):,} views, some rows are like none that was followed until the "
        f"horizon ({most.unknown:.0%} {where}, until {most.horizon:g}). What came of these by then is "
        "not known. Intervals hold whatever came after they were followed; what stands as observed, in "
        f"brackets where it is of such rows alone, supposes that they go on {going_on}. "
        "Longer follow-up would tell; more rows that are followed as long would not."
    ]


def _of_events(seen: Sequence[_Seen], options: Options, share: float) -> Answers:
    """Return p-values by signs of rows, joint, and at least those that do not rest on signs."""
    whole: Any = seen[0].look.scope.whole
    design, values = Design.of(whole, None), np.zeros((whole.n_samples, len(seen)))
    by_signs = not seen[0].alone
    if by_signs:
        for h, each in enumerate(seen):
            values[each.look.where, h] = each.rows.weights * (each.came - each.expected)
    values = np.column_stack([design.sums(own) for own in values.T])
    drawn = signed(values, options.n_resamples, options.seed)
    sides: list[Alternative] = ["two-sided"] * len(seen)
    found = answers(drawn, np.full(len(seen), TIES), sides, options.correction, options.alpha)
    least = np.array([each.least_pvalue() for each in seen])
    # Such intervals are about right, and not trusted further out than draws would be.
    floor = 0.0 if by_signs else 1.0 / (1 + options.n_resamples)
    together = np.maximum(np.maximum(by_signs * found.adjusted, adjusted(least, "holm")), floor)
    own = np.column_stack([found.pvalues, found.intervals])  # and how far draws alone may move it
    own = np.maximum(np.maximum(by_signs * own, least[:, None]), floor)
    if not by_signs:  # events less those predicted, had all rows been followed
        more = [each.bounds(LARGEST_LEVEL)[0].estimate - each.predicted for each in seen]
        missing = np.array([each.look.n_rows for each in seen]) * more
        found = found._replace(values=missing, expected=None)
    return found._replace(
        pvalues=own[:, 0],
        intervals=tuple((low, high) for low, high in own[:, 1:].tolist()),
        adjusted=np.minimum(share * together, 1.0),
    )


# ------------------------------------------------------------------ completed times


def _of_completed(whole: Sample, plan: Any, options: Options, share: float) -> tuple[Answers, Array]:
    """Return p-values of completed times, from several completions, and values of the first."""
    law: Any = whole.rows.law
    sides = [each.alternatives[0] for _, each in plan.hypotheses]

    def asked(values: Array, resolutions: Array) -> Answers:
        return answers(values, resolutions, sides, options.correction, options.alpha)

    def trial(labels: Any) -> Trial:
        return Trial(whole.rows, labels, options.n_resamples, options.seed, options.workers)

    values, resolutions, _ = draw_all(plan.hypotheses, trial(whole.labels))
    every = [asked(values, resolutions)]
    columns = columns_of_looks(plan.hypotheses, options.seed) if whole.rows.clusters is None else []
    for labels in law.completed_anew():
        if columns:
            own = [each.form.of_labels(each.outcomes(labels[None]))[0] for each in columns]
            every.append(asked(np.vstack([own, values[1:]]), resolutions))
        else:
            every.append(asked(*draw_all(plan.hypotheses, trial(labels))[:2]))
    each = np.array([[one.pvalues, one.adjusted, *np.transpose(one.intervals)] for one in every])
    alone, together, *ends = np.apply_along_axis(of_exchangeable, 0, each)
    joint = np.minimum(share * np.maximum(together, alone), 1.0)
    intervals = tuple((float(low), float(high)) for low, high in zip(*ends, strict=True))
    return every[0]._replace(pvalues=alone, intervals=intervals, adjusted=joint), values
