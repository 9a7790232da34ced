"""How far off models are, in points, and how much further one is than another: all rows, and groups.

A mean absolute error over parts is too large on average, since chance adds to its size: by sqrt(2/π) of
the standard error of every part where that has no error, and by less where it has one. What chance may
add therefore widens the interval of a difference, on the side of the model to which it may have added.

What happens seldom leaves no trace in the variation of rows if it did not happen. A standard error is
therefore at least what it would be if one of the two models were calibrated: of errors the larger one,
of losses, which have no limit, the smaller one.

Of numbers, outcomes that equal a stated quantile count as inside or outside, whichever makes an error
smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from caltest._sums import Array, blocks
from caltest.auditing.asked import MIN_ROWS
from caltest.auditing.groups import Grouping, large_enough
from caltest.auditing.numbers import InUnits
from caltest.auditing.sizes import Cut, Design, Family, cut
from caltest.bounds.intervals import LARGEST_LEVEL, absolute_bounds
from caltest.comparison.result import Interval as Ends
from caltest.comparison.result import ModelDifference, ModelError
from caltest.data import Rows, Sample
from caltest.data.attributes import effective_number
from caltest.exceptions import InputError
from caltest.laws import Pool, Predictive, Quantiles
from caltest.lenses import Interval, Lens, Quantile, TopLabel, event, show
from caltest.sampling import child_seed
from caltest.statistics.numbers import pinball

_OF_CHANCE = (2.0 / np.pi) ** 0.5  # the mean size of a normal number, in standard deviations
_MOST_LOSS = 700.0  # of what was not observed, and was called impossible
_AT_ONCE = 2**20  # numbers of a table
_WIDTH = 0.8  # stated probability of the interval that is looked at
_OF_FEW = 0.5  # the same, where pools of members hold too few values for the former
_ROUNDED = 9  # digits of levels
_DRAWS = 32  # of outcomes by each model, of which the least variance of differences is taken
_NUMBERS = 2**22


class _OfClasses(NamedTuple):
    """One model on some rows: its law (n, m), scores of an event, and of which labels that is, (n, m).

    ``sides`` is on which side its part of the predictions is wrong, 1 or −1, and ``chance`` what chance
    adds to its absolute error at most; ``labels`` are observed.
    """

    law: Array
    scores: Array
    events: NDArray[np.bool_]
    labels: NDArray[np.intp]
    sides: Array
    chance: float

    def table(self, rows: slice) -> Array:
        """Return (4, r, m): absolute error, error, log loss and Brier score of rows, by label."""
        law = self.law[rows]
        errors = self.scores[rows, None] - self.events[rows]
        with np.errstate(divide="ignore"):
            logs = -np.log(law)
        squares = (law**2).sum(axis=1, keepdims=True) + 1.0 - 2.0 * law
        squares = squares / 2.0 if law.shape[1] == 2 else squares  # of two classes, that of one of them
        return np.stack([self.sides[rows, None] * errors, errors, logs, squares])

    def less(self, b: _OfClasses | None) -> tuple[Array, Array]:
        """Return what rows add to the four, less another's, (4, n), and its variance by either law."""
        values, variances, labels = [], [], self.labels
        for rows in blocks(len(labels), max(1, _AT_ONCE // self.law.shape[1])):
            with np.errstate(invalid="ignore"):  # inf − inf
                table = self.table(rows) - (0.0 if b is None else b.table(rows))
            values.append(table[:, np.arange(table.shape[1]), labels[rows]])
            known = np.nan_to_num(table, posinf=_MOST_LOSS, neginf=-_MOST_LOSS)
            laws = [each.law[rows] for each in (self, b) if each is not None]
            means = [(law * known).sum(axis=2, keepdims=True) for law in laws]
            each = zip(laws, means, strict=True)
            variances.append([(law * (known - mean) ** 2).sum(axis=2) for law, mean in each])
        return np.concatenate(values, axis=1), np.concatenate(variances, axis=2)

    def knows(self, other: _OfClasses) -> bool:
        """Whether both are of the same event, so that what was observed cancels."""
        return bool((self.events == other.events).all())


class _Shown(NamedTuple):
    """An event on some rows: probabilities, what they are ordered by, and whether it occurred.

    Of quantile forecasts, ``opened`` counts outcomes that equal a quantile as outside, (n,) each.
    """

    scores: Array
    by: Array
    seen: NDArray[np.intp]
    opened: NDArray[np.intp]


def sizes_of(
    wholes: Mapping[str, Sample],
    lens: Lens | None,
    groupings: Iterable[Grouping],
    confidence: float,
    outcomes: Array | None = None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Measure all models, and all pairs of them, on all rows and in every group.

    Return fields of a comparison, and notes. ``outcomes`` are numbers, if these were predicted. Half of
    the level is for mean errors, half for absolute ones, shared among models and groups.
    """
    first, *_ = wholes.values()
    labels, classes = first.labels, np.arange(first.rows.n_classes or 0)
    designs, n = {name: Design.of(x.rows, None) for name, x in wholes.items()}, len(labels)
    groups = [large_enough(grouping, MIN_ROWS) for grouping in groupings]
    where = [(None, np.arange(n)), *(each for kept, _ in groups for each in kept)]
    numbers: dict[str, OfNumbers] = {}
    of_classes: dict[str, tuple[Array, NDArray[np.bool_]]] = {}
    if outcomes is not None:
        lens = lens_for(lens, wholes)
        view, at = lens.show(first.rows), stated_by(wholes)  # all are scored alike
        numbers = {name: OfNumbers(x.rows, outcomes, x.labels, lens, at) for name, x in wholes.items()}
    else:
        for name, whole in wholes.items():
            view = show(whole.rows, lens)
            view = view if view.rows.n_classes == 2 else TopLabel().show(whole.rows)
            events = view.seen(np.repeat(classes[:, None], n, axis=1)).T == 1
            of_classes[name] = view.rows.probs[:, 1], events

    def shown(name: str, rows: NDArray[np.intp]) -> _Shown:
        if numbers:
            return _Shown(*numbers[name].take(rows).seen())
        scores, events = of_classes[name]
        seen = events[rows, labels[rows]].astype(np.intp)
        return _Shown(scores[rows], scores[rows], seen, seen)

    looks = {(name, group): shown(name, rows) for group, rows in where for name in wholes}
    cuts = {}
    for (name, group), each in looks.items():  # of groups fifths; too few rows, or equal ones, are one
        parts = cut(each.by, group is None)
        cuts[name, group] = parts._replace(ends=parts.ends[:1] or ((1, np.array([len(each.by)])),))
    alpha, pairs = 1.0 - confidence, list(combinations(wholes, 2))
    counts = len(cuts), sum(len(each.ends[0][1]) for each in cuts.values())
    family = Family(*(min(0.25 * alpha / count, LARGEST_LEVEL) for count in counts))
    errors, gaps = [], []
    for group, rows in where:
        models: dict[str, Any] = {}
        for name in wholes:
            own, here = looks[name, group], designs[name].at(rows)
            found, seen, sides, chance = _error(own, cuts[name, group], here, family)
            if numbers:
                model = numbers[name].take(rows)
                models[name] = Scored(model, own.scores, seen, sides, chance)
                score = float(model.score(model.outcomes[None])[0] @ here.weights / here.weights.sum())
                units = InUnits.of(model.rows, model.outcomes, here, alpha)
                error = ModelError(name, group, len(rows), *found, None, None, score, units)
            else:
                events, law = of_classes[name][1][rows], wholes[name].rows.probs[rows]
                models[name] = _OfClasses(law, own.scores, events, labels[rows], sides, chance)
                values, _ = models[name].less(None)
                losses = (values[2:] @ here.weights / here.weights.sum()).tolist()
                error = ModelError(name, group, len(rows), *found, *losses)
            errors.append(error)
        level = alpha / (2 * len(where) * len(pairs))
        for a, b in pairs:
            kinds = _gap(models[a], models[b], here, level)
            ends = (*kinds[:2], None, None, kinds[2]) if numbers else kinds
            gaps.append(ModelDifference(a, b, group, *ends))
    small = tuple(f"{each.what} is left out: {each.reason}." for _, few in groups for each in few)
    small += (*scored_by(wholes), *pools_differ(wholes)) if numbers else ()
    whose = {"probability": view.label or "canonical", "event": event(view.label, view.rows)}
    return {"errors": tuple(errors), "gaps": tuple(gaps), **whose}, small


def _error(
    shown: _Shown, where: Cut, design: Design, family: Family
) -> tuple[tuple[float, float, float, float, Ends], Array, Array, float]:
    """Return the mean error with its interval, the absolute one, and by row events and sides; chance.

    Where outcomes equal a quantile, an error lies between that of the closed event and of the open one;
    what counts is the smallest in size, and intervals hold both.
    """
    scores, w, ends = shown.scores, design.weights, where.ends[0][1]
    design = design.of_scores(scores)
    by = design.stretch
    tied = bool((shown.seen != shown.opened).any())
    both = [
        family.parts(scores, each, where, design) for each in (shown.seen, shown.opened)[: 1 + tied]
    ]
    sizes = np.diff(ends, prepend=0)
    part_of = np.empty(len(scores), dtype=np.intp)
    part_of[where.order] = np.repeat(np.arange(len(both[0])), sizes)
    share = np.bincount(part_of, w) / w.sum()
    closed, opened = (
        np.array([(x.error, x.low, x.high) for x in parts]).T for parts in (both[0], both[-1])
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 where both are the same
        of_closed = np.nan_to_num(opened[0] / (opened[0] - closed[0]), nan=1.0).clip(0.0, 1.0)
    error = of_closed * closed[0] + (1.0 - of_closed) * opened[0]
    seen = shown.opened + of_closed[part_of] * (shown.seen - shown.opened)
    least = np.maximum(np.maximum(closed[1], -opened[2]), 0.0) @ share
    most = np.maximum(np.abs(closed[1]), np.abs(opened[2])) @ share
    if design.plain and not tied:
        events = np.bincount(part_of, shown.seen).astype(np.float64)
        stated = np.array([part.predicted for part in both[0]])
        least, most = absolute_bounds(stated, sizes.astype(np.float64), events, family.of_view)
    centred = w * (by * (scores - seen) - error[part_of])
    by_part = [design.sums(np.where(part_of == k, centred, 0.0)) for k in range(len(both[0]))]
    varied = np.bincount(part_of, (by * w) ** 2 * scores * (1.0 - scores))
    varied = np.maximum([float(sums @ sums) for sums in by_part], varied)
    absolute = float(least), float(share @ abs(error)), float(most)
    predicted, observed, low, high = design.interval(scores, shown.seen, family.of_view)
    if tied:
        observed = float(w @ seen / w.sum())
        high = design.interval(scores, shown.opened, family.of_view)[3]
    chance = _OF_CHANCE * float(np.sqrt(varied).sum() / w.sum())
    found = predicted, observed, low, high, absolute
    return found, seen, np.where(error >= 0.0, 1.0, -1.0)[part_of], chance


def _gap(a: Any, b: Any, design: Design, level: float) -> list[Ends]:
    """Return a's errors less b's with intervals of t, over rows or clusters; of length 0 if known."""
    w, (values, variances) = design.weights, a.less(b)
    units = max(effective_number(design.sums(w)) - 1.0, 1.0)
    with np.errstate(invalid="ignore"):  # inf − inf
        means = values @ w / w.sum()
        centred = w * (values - means[:, None])
        sums = np.array([design.sums(each) for each in centred])
        least = variances @ w**2
        least[:, 2:] = least[:, 2:].min(axis=0)
        varied = [(centred**2).sum(axis=1), (sums**2).sum(axis=1), *least]
        reach = -float(stdtrit(units, level)) * np.sqrt(np.max(varied, axis=0)) / w.sum()
    if a.knows(b):  # what was observed cancels
        reach[1] = 0.0
    chances = np.zeros((2, len(values)))
    chances[:, 0] = a.chance, b.chance
    known = np.isfinite(means)
    low = np.where(known, means - reach - chances[0], -np.inf)
    high = np.where(known, means + reach + chances[1], np.inf)
    return list(zip(low.tolist(), means.tolist(), high.tolist(), strict=True))


# ------------------------------------------------------------------ numbers


def stated_by(wholes: Mapping[str, Sample]) -> Array | None:
    """Return the levels at which all are scored if some models state quantiles only; else None."""
    stated = [x.rows.law.levels for x in wholes.values() if isinstance(x.rows.law, Quantiles)]
    if not stated:
        return None
    levels = reduce(np.intersect1d, [each.round(_ROUNDED) for each in stated])
    if not len(levels):
        raise InputError(
            "the models state quantiles at different levels, with none in common; give forecasts with "
            "a level in common, such as 0.5."
        )
    return levels


def scored_by(wholes: Mapping[str, Sample]) -> tuple[str, ...]:
    """Say what is scored instead of the CRPS if some models state quantiles only."""
    if (levels := stated_by(wholes)) is None:
        return ()
    return (
        f"In place of the CRPS stands the mean quantile score, twice the pinball loss, of all models "
        f"at {len(levels)} levels from {levels[0]:g} to {levels[-1]:g}.",
    )


def _pool_sizes(wholes: Mapping[str, Sample]) -> list[int]:
    return [x.rows.law.size for x in wholes.values() if isinstance(x.rows.law, Pool)]


def pools_differ(wholes: Mapping[str, Sample]) -> tuple[str, ...]:
    """Say what statistics see less of where models have different numbers of members."""
    sizes = _pool_sizes(wholes)
    if not sizes or (len(sizes) == len(wholes) and min(sizes) == max(sizes)):
        return ()
    return (
        f"A statistic of L members sees L/(L + 1) of an error, and there are models of {min(sizes) - 1}"
        ", as the outcome is among the values that it is compared with. Errors in points, and scores, "
        "are those of the members alone.",
    )


def lens_for(lens: Lens | None, wholes: Mapping[str, Sample]) -> Lens:
    """Return the lens of errors in points: one event, by default the interval nearest to 80%."""
    if lens is not None and lens.label.partition(":")[0] not in ("pit", "distribution"):
        return lens
    if (levels := stated_by(wholes)) is None:
        fewest = min(_pool_sizes(wholes), default=np.inf)
        kept = [each for each in (_WIDTH, _OF_FEW) if 0.5 * (1.0 - each) * fewest > 1.0 - 1e-9]
        return Interval(kept[0]) if kept else Quantile(0.5)
    widths = np.round(1.0 - 2.0 * levels[levels < 0.5], _ROUNDED)
    widths = widths[np.isin(np.round(0.5 + 0.5 * widths, _ROUNDED), levels)]
    if not len(widths):
        return Quantile(float(levels[np.abs(levels - 0.5).argmin()]))
    return Interval(float(widths[np.abs(widths - _WIDTH).argmin()]))


@dataclass(frozen=True, eq=False)
class OfNumbers:
    """One model on some rows: probabilities of an event, whether it occurred, and a score.

    Attributes
    ----------
    rows
        Its predictions.
    outcomes
        Numbers, (n,), and the outcomes that its law makes of them.
    lens
        Of the event.
    levels
        Of the quantiles that are scored; None: no model states quantiles only.
    """

    rows: Rows
    outcomes: Array
    codes: NDArray[Any]
    lens: Lens
    levels: Array | None

    def take(self, rows: NDArray[np.intp]) -> OfNumbers:
        """Return some rows."""
        if len(rows) == len(self.outcomes):
            return self
        given = self.rows.take(rows), self.outcomes[rows], self.codes[rows]
        return OfNumbers(*given, self.lens, self.levels)

    def seen(self) -> tuple[Array, Array, NDArray[np.intp], NDArray[np.intp]]:
        """Return probabilities, what rows are ordered by, and the closed and open event, (n,) each."""
        view, law = self.lens.show(self.rows), self.law
        scores = view.rows.probs[:, 1]
        stated = isinstance(self.lens, Interval | Quantile)
        closed, opened = (each.sample(self.codes).labels for each in (view, view.opened))
        return scores, law.level() if stated else scores, closed, opened

    @property
    def law(self) -> Predictive:
        """What was predicted."""
        return cast("Predictive", self.rows.law)

    def score(self, outcomes: Array) -> Array:
        """Return CRPS or mean quantile scores of numbers, (B, n)."""
        law, levels = self.law, self.levels
        if isinstance(law, Pool) and levels is not None:  # a quantile of the pool knows the outcome
            law = law.without(self.outcomes)
        if levels is None:
            return np.asarray(law.crps(outcomes), dtype=np.float64)
        at: Iterable[Array] = (law.quantile(np.full(law.n_samples, level)) for level in levels)
        return pinball(outcomes, levels, at)


@dataclass(frozen=True, eq=False)
class Scored:
    """A model on some rows, with its errors by row.

    ``sides`` is on which side its part of the predictions is wrong, ``seen`` whether the event occurred
    and ``chance`` what chance adds to its absolute error at most.
    """

    model: OfNumbers
    scores: Array
    seen: Array
    sides: Array
    chance: float

    def _terms(self, seen: Array, outcomes: Array) -> Array:
        by = getattr(self.model.law, "stretch", 1.0) if np.ptp(self.scores) > 0.0 else 1.0
        errors = by * (self.scores - seen)
        return np.stack([self.sides * errors, errors, self.model.score(outcomes)])

    def less(self, other: Scored) -> tuple[Array, Array]:
        """Return absolute errors, errors and scores less another's, (3, n), and variances by laws."""
        pair = (self, other)
        one, two = (x._terms(x.seen[None], x.model.outcomes[None])[:, 0] for x in pair)
        if any(isinstance(x.model.law, Quantiles) for x in pair):  # of which no numbers are drawn
            return one - two, np.zeros((1, *one.shape))
        variances = []
        draws = int(np.clip(_NUMBERS // len(self.seen), 2, _DRAWS))
        for x in pair:
            drawn = x.model.rows.sampler(child_seed(0, _DRAWS)).draw(0, draws)
            first, second = (
                y._terms(y.model.lens.show(y.model.rows).seen(drawn).astype(np.float64), drawn)
                for y in pair
            )
            variances.append((first - second).var(axis=1, ddof=1))
        return one - two, np.array(variances)

    def knows(self, other: Scored) -> bool:
        """Whether both are of the same event, so that what was observed cancels."""
        return self.model.lens.label.startswith(("below", "above"))
