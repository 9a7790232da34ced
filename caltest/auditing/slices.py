"""Slices found by features that nobody named: which are wrong, by how much, and which are shown.

A scan is the largest root of all its slices. On the scale of its evidence every slice is a check, and
one step-down over slices and all other checks of the audit names slices: a slice in which every
prediction is right is named with probability at most alpha, whatever is wrong elsewhere. Many of the
named slices overlap in one error, so only a few are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from caltest._sums import Array, Mask, Places
from caltest.auditing.draws import Answers, columns_of_looks
from caltest.auditing.options import Options
from caltest.auditing.plan import Look, Plan
from caltest.auditing.sizes import Sizes
from caltest.auditing.views import Bin, ByFeature, Condition, Group, Slice
from caltest.bounds.intervals import LARGEST_LEVEL
from caltest.clusters import Clusters, folds_of
from caltest.forms.features import foretold, hat_features
from caltest.lenses import within
from caltest.nulls.base import Trial
from caltest.pvalues import Alternative, StepDown, evidence_of_draws, of_exchangeable
from caltest.resampling import Column, Draws, draws_of_signs
from caltest.statistics.features import FeatureScan, columns_of

_MOST_NAMED = 1000  # slices held, those with the largest roots
_MOST_LOOKED_AT = 200  # of these, candidates to be shown
_MOST_SHOWN, _MOST_LISTED = 10, 100
_MOST_PICTURED = 3  # features
_CLOSE = 0.5  # if roots differ by less, the slice with fewer conditions is shown


@dataclass(frozen=True, eq=False)
class Search:
    """One scan of an audit: its position among the hypotheses, and its look."""

    place: int
    look: Look
    sized: Look | None  # look whose event the sizes refer to
    column: Column

    @property
    def form(self) -> Any:
        """The form of the scan."""
        return self.column.form

    def group(self, k: int) -> Group:
        """Return the conditions of a slice as a group."""
        conditions = self.form.cells.conditions(k)
        return Group(tuple(Condition(name, value, relation) for name, relation, value in conditions))

    def part(self, rows: Mask, group: Group) -> Look:
        """Return a look at some of the rows, for their sizes."""
        assert self.sized is not None
        return self.sized.scope.look(group, np.flatnonzero(rows))


def searches(plan: Plan, seed: int) -> list[Search]:
    """Return the scans of an audit."""
    scans = [(h, x) for h, x in enumerate(plan.hypotheses) if isinstance(x[1], FeatureScan)]
    columns = columns_of_looks([hypothesis for _, hypothesis in scans], seed)
    events = {each.scope.label: each for _, (each, _) in scans if each.event}
    horizons = [look for look in plan.looks if look.scope.censored and look.group is None]

    def sized(look: Look) -> Look | None:
        if horizons:
            return horizons[-1]
        entry = within(look.scope.label)[0]
        median = f"entry:{entry}/quantile:0.5" if entry else "quantile:0.5"
        return look if look.event else events.get(median)

    each = zip(scans, columns, strict=True)
    return [Search(h, look, sized(look), column) for (h, (look, _)), column in each]


def count_of(some: Iterable[Search]) -> int:
    """Return how many slices have intervals; these share their portion of the level."""
    ordered = sorted(some, key=lambda each: each.form.cells.count)  # of several, that with most
    return sum({each.sized: each.form.cells.count for each in ordered if each.sized}.values())


def notes(some: Iterable[Search]) -> list[str]:
    """Return a note if few clusters carry the error in some slices."""
    dropped = max((each.form.dropped for each in some), default=0)
    said = f"{dropped:,} slices by features are not searched: too few clusters carry their error."
    return [said] if dropped else []


# ------------------------------------------------------------------ naming


class Named(NamedTuple):
    """A slice that a scan proved wrong."""

    search: Search
    cell: int
    root: float
    adjusted: float


def named(
    some: Sequence[Search],
    plan: Plan,
    trial: Trial,
    found: Answers,
    how: tuple[Sequence[Alternative], Array],
    options: Options,
) -> list[Named]:
    """Name slices by step-down maxima over them and all other checks, on the same draws.

    ``how`` holds the side of each check, and its rounding error. Several imputations of censored times
    give one p-value.
    """
    some, values = [each for each in some if found.adjusted[each.place] <= options.alpha], found.table
    completed = tuple(trial.rows.law.completed_anew())
    if not some or values is None or (completed and trial.rows.clusters is not None):
        return []
    count, scans = values.shape[1], [each.place for each in some]
    sides, resolutions = how[0][:count], how[1][:count]
    every = [(each, *_roots(each, trial, _MOST_NAMED // len(some))) for each in some]

    def together(values: Array, sizes: Iterable[Array]) -> Array:
        known = np.nan_to_num(evidence_of_draws(values, sides, resolutions), nan=0.0)
        beside = [np.delete(known, scans, axis=1)]
        for place, own in zip(scans, sizes, strict=True):  # as if each were the largest of its draw
            order = np.argsort(values[:, place], kind="stable")
            beside.append(np.interp(own, values[order, place], known[order, place]))
        evidence = np.hstack(beside)
        test = StepDown.of(evidence[0])
        return test.pvalues(test.count(evidence[1:]), len(evidence) - 1)[count - len(scans) :]

    adjusted = together(values, [sizes for *_, sizes in every])
    if completed:
        columns, anew = columns_of_looks(plan.hypotheses[:count], options.seed), [adjusted]
        for labels in completed:
            own = [each.form.of_labels(each.outcomes(labels[None]))[0] for each in columns]
            pairs = zip(every, [each.column.outcomes(labels[None]) for each in some], strict=True)
            sizes = [np.vstack([x[0].form.among(x[2]).of_labels(y), x[3][1:]]) for x, y in pairs]
            anew.append(together(np.vstack([own, values[1:]]), sizes))
        share = 1.0 + any(look.scope.censored for look in plan.looks)
        adjusted = np.minimum(share * np.apply_along_axis(of_exchangeable, 0, np.array(anew)), 1.0)
    listed, start = list[Named](), 0
    for each, roots, chosen, _ in every:
        # at least the scan's own adjusted p-value, which may come from another correction
        ps = np.maximum(adjusted[start : start + len(chosen)], found.adjusted[each.place])
        start += len(chosen) + 1  # the last one stands for all not chosen
        both = zip(chosen.tolist(), ps.tolist(), strict=True)
        listed += [Named(each, k, float(roots[k]), p) for k, p in both if p <= options.alpha]
    return listed


def _roots(each: Search, trial: Trial, most: int) -> tuple[Array, Places, Array]:
    """Return observed roots, the slices with the largest ones, and their sizes on all draws."""
    form, labels, codes = each.form, trial.labels, trial.rows.clusters
    seen = each.column.outcomes(labels[None])
    if codes is None:
        own = form.roots(seen)[0]
        draws = Draws(trial.rows.sampler(trial.seed), labels, trial.n_resamples)
    else:
        clusters = Clusters.of(codes, trial.rows.weights)
        own = form.of_signs(seen[0], clusters)(np.ones((1, clusters.count), np.int8))[0]
        draws = draws_of_signs(clusters.count, trial.n_resamples, trial.seed)
    chosen = np.argsort(-form.sizes(own[None].copy())[0], kind="stable")[:most]
    some: Any = form.among(chosen)
    column = Column(each.column.view, some)
    if codes is not None:
        column = Column(None, some.signed(seen[0], clusters))
    parts = trial.workers.map(partial(_of_block, column, draws), draws.tasks(), "slices")
    return own, chosen, np.concatenate(list(parts))


def _of_block(column: Column, draws: Draws, start: int, stop: int) -> Array:
    return np.asarray(column.form.of_labels(column.outcomes(draws.draw(start, stop))))


# ------------------------------------------------------------------ selection


def shown(listed: Sequence[Named], labels: Any) -> list[Named]:
    """Choose slices one by one: the largest root after removing mean errors of those chosen before.

    The mean error of all rows is removed first, if it is as clear. Among roots that are close, the
    slice with fewest conditions is chosen.
    """
    kept: list[Named] = []
    for search in dict.fromkeys(each.search for each in listed):
        left = sorted((x for x in listed if x.search is search), key=lambda each: -abs(each.root))
        least, left, form = abs(left[-1].root), left[:_MOST_LOOKED_AT], search.form
        cells = form.cells.kept([x.cell for x in left])
        crossed = [form.cells.is_crossed(x.cell) for x in left]
        r = form.weights * form.residuals(search.column.outcomes(labels[None]))[0]
        v = form.weights**2 * form.variances
        deviations = np.sqrt(cells.sums(v[None])[0])
        rows = np.full(len(r), abs(float(r.sum())) >= least * float(v.sum()) ** 0.5)
        while len(kept) < _MOST_SHOWN:
            r = r - rows * v * (r[rows].sum() / (v[rows].sum() or 1.0))
            roots = np.abs(cells.sums(r[None])[0]) / deviations
            if roots.max() < least:
                break
            first = min(np.flatnonzero(roots >= roots.max() - _CLOSE).tolist(), key=crossed.__getitem__)
            kept.append(left[first])
            rows = cells.rows(first)
    return sorted(kept, key=lambda each: -abs(each.root))


# ------------------------------------------------------------------ sizes


def at_least(scans: list[Search], sizes: Sizes, labels: Any, learner: Any, seed: int) -> float | None:
    """Return a lower bound, at least 0, for the mean of |P(event | X) − p| over half of the rows.

    One half of the rows learns a sign s(x). On the other half, let e be the event where s = 1 and its
    opposite where s = −1, and c the prediction for e: the mean absolute error is at least the mean of s
    (P(event | X) − p), that is the true rate of e minus the mean of c, whatever was learned. That has
    an exact limit. Return None unless a single event of classes is audited.
    """
    looks = [each.look for each in scans if each.look.event]
    if len(looks) != 1 or looks[0].scope.whole.n_classes is None:
        return None
    seen, design = looks[0].sample(labels), sizes.design.of_look(looks[0])
    p, columns, features = seen.rows.probs[:, 1], columns_of(seen.rows), seen.rows.features
    here, residuals = folds_of(len(p), seen.rows.clusters, 2, seed) == 1, seen.labels - p
    if learner is None and features is not None:
        hat = hat_features(columns, len(features.columns) + 1)
        # Ridge regression of one half's residuals, except that ΦᵀΦ is half of that of all rows.
        rising = hat[here] @ (hat[~here].T @ residuals[~here].astype(hat.dtype)) >= 0.0
    else:
        rising = foretold(learner, columns, residuals, here) >= 0.0
    stated, events = (np.where(rising, x[here], 1 - x[here]) for x in (p, seen.labels))
    own = design.at(np.flatnonzero(here)).turned(~rising)
    return max(-own.interval(stated, events, min(sizes.level, LARGEST_LEVEL))[3], 0.0)


def slices_of(
    listed: Sequence[Named], sizes: Sizes, labels: Any
) -> tuple[dict[Look, Slice], tuple[Slice, ...], tuple[ByFeature, ...]]:
    """Return the shown slices by look, all named slices, and bins along their features."""
    first, every, seen = shown(listed, labels), dict[Look, Slice](), set[Any]()
    rest = sorted((each for each in listed if each not in first), key=lambda each: -abs(each.root))
    for each in [*first, *rest[:_MOST_LISTED]]:
        if each.search.sized is not None:
            group = each.search.group(each.cell)
            look = each.search.part(each.search.form.cells.rows(each.cell), group)
            one = _slice(look, each.adjusted, sizes, labels, each in first)
            if look.key not in seen and not sizes.design.unproved(one):
                every[look] = one
            seen.add(look.key)

    def far(look: Look) -> tuple[Any, ...]:
        """Return the sort key of an error: its place against the limit, then its proved size."""
        one: Any = every[look]
        beyond = sizes.limit and sizes.limit.place(one.predicted, one.low, one.high) == "beyond"
        likely = one.side and sizes.limit.exceeded(one.predicted, one.error)
        return bool(beyond), bool(likely), one.shown, one.proved

    most = max(every, key=far, default=None)
    alone = not any(each.shown for each in every.values())
    if most is not None and (alone or any(far(most)[:2])):  # the one that the verdict is about
        every[most] = replace(every[most], shown=True)
    looks = [look for look, each in every.items() if each.shown]
    found = [every[look] for look in looks]
    sizes.settling(looks, found, [k for k, x in enumerate(found) if x.inside is False], labels)
    views = dict(zip(looks, found, strict=True))
    others = (each for each in every.values() if not each.shown)
    return views, (*views.values(), *others), tuple(_along(first, sizes, labels))


def _slice(look: Look, adjusted: float, sizes: Sizes, labels: Any, is_shown: bool) -> Slice:
    facts = sizes.of_mean(look, look.sample(labels), labels, sizes.family.of_slice)
    column = 1 if look.scope.lens is None else look.scope.column
    own: dict[str, Any] = {"class_index": column, "horizon": look.scope.horizon, "shown": is_shown}
    own["adjusted_pvalue"] = adjusted
    found = Slice(look.scope.label, look.event, look.group, look.n_rows, **facts, **own)
    return replace(found, direction=found.side)


def _along(first: Sequence[Named], sizes: Sizes, labels: Any) -> Iterable[ByFeature]:
    """Yield predicted and observed along the features of the shown slices."""
    done = dict[tuple[str, str], None]()
    for each in first:
        search, cells = each.search, each.search.form.cells
        d, which = len(cells.bins) // 2, cells.which
        for j in (which[each.cell, : 1 + cells.is_crossed(each.cell)] % d).tolist():
            column = cells.bins[j].column.name
            lens = "" if search.sized is None else search.sized.scope.label
            if (column, lens) in done or len(done) == _MOST_PICTURED or not lens:
                continue
            done[column, lens] = None
            own = np.flatnonzero((which[:, 0] == j) & (which[:, 3] == which[:, 2] + 1))
            bins = []
            for k in own[np.argsort(which[own, 2], kind="stable")].tolist():
                look = search.part(cells.rows(k), search.group(k))
                mean = sizes.of_mean(look, look.sample(labels), labels, sizes.family.of_slice)
                means = (mean[name] for name in ("predicted", "observed", "low", "high"))
                name = cells.bins[j].called(int(which[k, 2]))
                bins.append(Bin(name, look.n_rows, *means))
            if bins:
                yield ByFeature(column, lens, tuple(bins))
