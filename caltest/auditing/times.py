"""An audit of times until an event, where limits of rows with an event are not known.

Events less expected ones, until every horizon, on all rows and in every group, by signs of rows, have
half of the level; completed times, through the lens "distribution", the other half. Sizes rest on what
does not need completions: events observed and expected, and risk at the horizon within strata of
similar predicted risk, averaged. Where limits are known, an audit is as of all other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from caltest._sums import Array
from caltest.auditing.describe import views_of
from caltest.auditing.draws import Answers, answers, check_resolution, columns_of_looks, draw_all
from caltest.auditing.groups import Grouping
from caltest.auditing.limits import Limit, Wanted, rows_needed
from caltest.auditing.plan import DISTRIBUTION, Options, make_plan
from caltest.auditing.result import Audit
from caltest.auditing.sizes import Design, Family, Sizes, binned_error
from caltest.auditing.views import Check, Count, Curves, Group, Part, Rest, View
from caltest.bounds.intervals import LARGEST_LEVEL, Sizing, events_bounds, risk_bounds, scaled_risk
from caltest.data import Rows, Sample
from caltest.exceptions import Argument, InputError
from caltest.laws import Survival
from caltest.lenses import Until, find_lens
from caltest.lenses import event as clause
from caltest.nulls.base import Trial
from caltest.nulls.times import of_count, of_sum, signed
from caltest.pvalues import adjusted, of_exchangeable
from caltest.statistics import Events
from caltest.statistics.times import STRATA, kaplan_meier, strata_of

Places = NDArray[np.intp]

_FEWEST = 4  # strata, by which risk is looked at; with fewer, events less expected ones are
_MARKS = 40  # times of the curves
_LEFT = 5  # rows: with fewer that are still followed, nothing observed is drawn


def lenses_of_times(law: Survival) -> tuple[str, ...]:
    """Return the default lenses: until half of all events are predicted, until the end, the whole."""
    if law.horizon is not None:
        return (f"until:{law.horizon:.12g}",)
    marks = law.marks(100)
    risks = np.array([float(law.risk(time).mean()) for time in marks])
    last = float(marks[-1])
    half = float(marks[int(np.searchsorted(risks, 0.5 * risks[-1]))])
    half = min(float(f"{half:.2g}"), last)  # two digits, if that is not too late
    names = dict.fromkeys(f"until:{time:.12g}" for time in (half, last))
    return (DISTRIBUTION, *names)


def curves_of(whole: Sample) -> Curves:
    """Return the curves of all rows."""
    law: Any = whole.rows.law
    (ended, event), found = law.until(law.seen), []
    for time in law.marks(_MARKS).tolist():
        risk, km = law.risk(time), kaplan_meier(ended, event, time)
        early, came = law.until(law.seen, time)
        hazard = risk if law.horizon is not None else law.cumulative_hazard(early)
        sized = risk_bounds(ended, event, risk, hazard, time, LARGEST_LEVEL)
        observed: tuple[float, float] | tuple[None, None]
        if sized is None or km is None or km.left < _LEFT:
            observed = None, None
        else:
            observed = sized.estimate, 1.0 - km.survival
        found.append((time, float(risk.mean()), *observed, float(came.sum()), float(hazard.sum())))
    columns: Any = zip(*found, strict=True)
    return Curves(float(np.mean(np.signbit(law.seen))), *columns)


class _Where(NamedTuple):
    """Some rows until a horizon."""

    lens: str
    horizon: float
    group: Group | None
    places: Places
    parent: Group | None = None
    rest: bool = False


def audit_of_times(whole: Sample, groupings: Sequence[Grouping], options: Options, call: str) -> Audit:
    """Audit censored times."""
    law: Any = whole.rows.law
    until = {name: lens for name, lens in options.lenses.items() if isinstance(lens, Until)}
    if options.tolerance is not None or set(options.lenses) - {*until, DISTRIBUTION}:
        raise InputError(
            "censored times are audited through 'distribution' and horizons such as 'until:365', "
            "without a {tolerance}; give these lenses, or {limit} where limits of all rows are known.",
            tolerance=Argument("tolerance", ...),
            limit=Argument("limit"),
        )
    if law.horizon is not None and not (whole.rows.are_alike and whole.rows.clusters is None):
        raise InputError(
            "of rows that count differently or come in clusters the risk at one time is not enough; "
            "give whole curves."
        )
    lenses = {DISTRIBUTION: find_lens(DISTRIBUTION)}
    statistics = {DISTRIBUTION: options.statistics.get(DISTRIBUTION)}
    plan = make_plan(whole.rows, groupings, replace(options, lenses=lenses, statistics=statistics))
    completed = DISTRIBUTION in options.lenses and law.horizon is None
    taken = {each.column for each in groupings if each.crosses}
    asked = _horizons(whole, plan, taken, until, options.min_rows)
    share = 2.0 if completed and asked else 1.0  # of the level, for either block
    level, draws = options.alpha, options.n_resamples
    check_resolution(["two-sided"], options.correction, level / (share * (1.0 + completed)), draws)
    views, rests, checks, evidence = list[View](), list[Rest](), list[Check](), [0.0]
    if asked:
        sizing = _Sizing.of(whole, options, len(asked), STRATA * len(until))
        described, residuals, by_counts = zip(*map(sizing.of_rows, asked), strict=True)
        found = sizing.answers(residuals, by_counts)
        found = found._replace(adjusted=np.minimum(share * found.adjusted, 1.0))
        evidence.append(float(found.evidence.max()))
        for h, each in enumerate(described):
            p = float(found.adjusted[h])
            if isinstance(each, Rest):
                rests.append(replace(each, adjusted_pvalue=p, found=p <= level))
                continue
            views.append(replace(each, adjusted_pvalue=p))
            checks.append(found.check(h, views[-1], Events(), level))
    if completed:
        found, values = _of_completed(whole, plan, options, share)
        evidence.append(float(found.evidence.max()))
        sizes = Sizes.of(Design.of(whole.rows, None), plan.looks, 0, level, Limit(None, None))
        of_looks = views_of(plan, whole.labels, found, values, {}, sizes)
        views += of_looks.values()
        for h, (look, statistic) in enumerate(plan.hypotheses):
            checks.append(found.check(h, of_looks[look], statistic, level))
    if not checks:
        raise InputError("there is nothing to test; give a lens such as 'until:365'.")
    impossible = len(whole.rows.impossible(whole.labels)) if law.horizon is None else 0
    pvalues = [each.adjusted for each in checks] + [each.adjusted_pvalue for each in rests]
    wholes: list[Any] = [*views, *rests]
    needed = (len(whole.labels) * each.rows_needed / each.rows for each in wholes if each.rows_needed)
    return Audit(
        pvalue=min([*pvalues, 1.0 / (1 + draws) if impossible else 1.0]),
        checks=tuple(sorted(checks, key=lambda check: (check.adjusted, check.pvalue))),
        views=tuple(views),
        rests=tuple(rests),
        n_classes=0,
        classes=(),
        event=None,
        lenses=tuple(options.lenses),
        groups=tuple(each for each in plan.columns if completed or each in taken),
        n_resamples=draws,
        statistic=max(evidence) + 0.0,
        null_distribution=None,
        call=call,
        warnings=whole.rows.notes,
        impossible=impossible,
        rows_in_all=max(map(int, needed), default=None),
        times=curves_of(whole) if whole.rows.are_alike else None,
        **plan.stated(whole.rows, options),
    )


def _horizons(
    whole: Sample, plan: Any, columns: set[str], until: dict[str, Any], min_rows: int
) -> list[_Where]:
    """List all rows, groups of the user's columns, and what these leave, until every horizon."""
    law: Any = whole.rows.law
    every, found = np.arange(len(whole.labels)), []
    groups: dict[Group | None, Places] = {
        look.group: every if look.places is None else look.places
        for look in plan.looks
        if look.group is None or columns.issuperset(each.column for each in look.group.conditions)
    }
    for name, lens in until.items():
        at = float(lens.threshold)
        if at <= 0.0:
            raise InputError(f"the horizon is {at:g}; give a time above 0, as in 'until:365'.")
        law.check_horizon(at)
        found += [_Where(name, at, group, places) for group, places in groups.items()]
        for group, places in groups.items():
            for parent in () if group is None else group.parents():
                left = np.setdiff1d(groups.get(parent, every[:0]), places)
                if len(left) >= max(min_rows, 1):
                    found.append(_Where(name, at, group, left, parent, True))
    return found


class _Seen(NamedTuple):
    """Some rows until a horizon: what was predicted of them, and seen."""

    rows: Any
    horizon: float
    risk: Array
    came: Array
    expected: Array  # of what was seen; of a risk at one time alone as if nothing were censored

    @classmethod
    def of(cls, whole: Rows, places: Any, horizon: float) -> _Seen:
        rows = whole.take(places)
        law: Any = rows.law
        risk = law.risk(horizon)
        if law.horizon is None:
            return cls(rows, horizon, risk, *law.events(law.seen, horizon))
        return cls(rows, horizon, risk, law.until(law.seen, horizon)[1].astype(float), risk)

    @property
    def plain(self) -> bool:
        return self.rows.are_alike and self.rows.clusters is None

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
        if self.plain:
            low, high = events_bounds(total, level)
        else:
            design = Design(self.rows.weights, self.rows.clusters)
            each = design.sums(design.weights * (self.came - total / whole * self.expected))
            k = max(len(each), 2)
            half = float(-stdtrit(k - 1, level)) * (k / (k - 1.0) * float(each @ each)) ** 0.5
            low, high = max(total - half, 0.0), total + half
        return Sizing(total / whole, low / whole, high / whole)

    def bounds(self, level: float) -> tuple[Sizing, bool]:
        """Return the risk until the horizon, with limits, and whether these rest on strata.

        Else they are those of events, as if all hazards were so many times as large: which describes,
        and does not show what is within a limit.
        """
        law = self.rows.law
        time, event = law.until(law.seen)
        if self.plain:
            given = time, event, self.risk, self.expected, self.horizon, level, _FEWEST
            if (found := risk_bounds(*given)) is not None:
                return found, True
        if law.horizon is not None or kaplan_meier(time, event, self.horizon) is None:
            return Sizing(self.predicted, 0.0, 1.0), False  # nothing is known
        by_events = (scaled_risk(self.risk, self.rows.weights, each) for each in self.ratio(level))
        return Sizing(*by_events), False


@dataclass(frozen=True, eq=False)
class _Sizing:
    """How sizes are found: at which level, against which limit."""

    whole: Sample
    options: Options
    family: Family
    limit: Limit

    @classmethod
    def of(cls, whole: Sample, options: Options, n_views: int, n_parts: int) -> _Sizing:
        limit = Limit(options.materiality, options.materiality_ratio)
        return cls(whole, options, Family.of(options.alpha, n_views, n_parts), limit)

    def parts(self, where: _Where) -> tuple[Part, ...]:
        """Cut all rows into tenths of equal expected events, five at least; groups are not cut."""
        if where.group is not None:
            return ()
        seen, found = _Seen.of(self.whole.rows, slice(None), where.horizon), list[Part]()
        for places in strata_of(seen.risk, seen.expected):
            own = _Seen.of(self.whole.rows, places, where.horizon)
            mean, size = own.predicted, own.bounds(self.family.of_part)[0]
            ends = mean - size.high, mean - size.low, float(own.risk.min()), float(own.risk.max())
            found.append(Part(STRATA, len(found), len(places), mean, size.estimate, *ends))
        return tuple(found) if len(found) == STRATA else ()

    def of_rows(self, where: _Where) -> tuple[View | Rest, Array, float]:
        """Say how large the error of some rows is until a horizon, its p-value left open.

        And return the residuals of independent units, which signs turn, and a p-value by another law,
        which the one by signs is to be at least.
        """
        places, seen = where.places, _Seen.of(self.whole.rows, where.places, where.horizon)
        predicted, found = seen.predicted, seen.bounds(self.family.of_view)[0]
        inside = needed = None
        if self.limit:
            level = min(self.options.alpha, LARGEST_LEVEL)
            own, shown = seen.bounds(level)
            place = self.limit.place(predicted, predicted - own.high, predicted - own.low)
            inside = shown and place == "inside"
            spread = max((own.high - own.low) / (-2.0 * float(ndtri(level))), 1e-6) ** 2 * len(places)
            share = min(max(predicted * (1.0 - predicted) / spread, 1e-6), 1.0)
            if not inside:
                (needed,) = rows_needed([Wanted(predicted, share, False)], self.limit, level, 1)
        residuals, codes = np.zeros(self.whole.rows.n_samples), self.whole.rows.clusters
        total, whole = seen.sums
        if seen.rows.law.horizon is not None:  # about, by the width of its interval
            far = (found.high if predicted > found.estimate else found.low) - found.estimate
            error = max(abs(far) / -float(ndtri(self.family.of_view)), 1e-12)
            least = 1.0 / (1 + self.options.n_resamples)
            p = max(2.0 * float(ndtr(-abs(predicted - found.estimate) / error)), least)
            events = Count(total, None, None, None)
        else:
            w = seen.rows.weights
            residuals[places] = w * (seen.came - seen.expected)
            p = of_count(total, whole) if seen.plain else of_sum(w, seen.came, seen.expected)
            events = Count(total, whole, *seen.ratio(self.family.of_view)[1:])
        if codes is not None:
            residuals = np.bincount(codes, residuals).astype(np.float64)
        ends = predicted - found.high, predicted - found.low
        sizes: Any = len(places), predicted, found.estimate, *ends
        facts: Any = {"exact": False, "inside": inside, "rows_needed": needed}
        if where.rest:
            rest: Any = where.lens, where.group, where.parent, *sizes, 1.0, False
            return Rest(*rest, **facts), residuals, p
        parts, about = self.parts(where), clause(where.lens, self.whole.rows)
        facts |= {"parts": parts, "binned_error": binned_error(parts), "events": events}
        view = View(where.lens, about, where.group, *sizes, **facts)
        return replace(view, direction=view.side), residuals, p

    def answers(self, residuals: Sequence[Array], by_counts: Sequence[float]) -> Answers:
        """Return p-values by signs of rows, joint, and at least those by counts."""
        values = np.column_stack(residuals)
        options, sides = self.options, ["two-sided"] * len(residuals)
        drawn = signed(values, options.n_resamples, options.seed)
        found = answers(drawn, np.zeros(len(sides)), sides, options.correction, options.alpha)  # type: ignore[arg-type]
        if not values.any():  # risk at one time alone
            found = found._replace(pvalues=np.zeros(len(sides)), adjusted=np.zeros(len(sides)))
        return found._replace(
            pvalues=np.maximum(found.pvalues, by_counts),
            adjusted=np.maximum(found.adjusted, adjusted(np.array(by_counts), "holm")),
        )


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
    both = [np.array([getattr(each, name) for each in every]).T for name in ("pvalues", "adjusted")]
    alone, together = (np.array([of_exchangeable(own) for own in each]) for each in both)
    joint = np.minimum(share * np.maximum(together, alone), 1.0)
    return every[0]._replace(pvalues=alone, adjusted=joint), values
