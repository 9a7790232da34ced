"""How far off models are, in points, and how much further one is than another: all rows, and groups.

A mean absolute error over parts is too large on average, since chance adds to its size: by sqrt(2/π) of
the standard error of every part where that has no error, and by less where it has one. What chance may
add therefore widens the interval of a difference, on the side of the model to which it may have added.

What happens seldom leaves no trace in the variation of rows if it did not happen. A standard error is
therefore at least what it would be if one of the two models were calibrated: of errors the larger one,
of losses, which have no limit, the smaller one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from caltest._sums import Array, blocks
from caltest.auditing.groups import Grouping, large_enough
from caltest.auditing.numbers import InUnits
from caltest.auditing.plan import MIN_ROWS
from caltest.auditing.sizes import Cut, Design, Family, cut
from caltest.bounds.intervals import LARGEST_LEVEL, absolute_bounds
from caltest.comparison.numbers import OfNumbers, Scored, lens_for, pools_differ, scored_by
from caltest.comparison.result import Interval, ModelDifference, ModelError
from caltest.data import Sample
from caltest.data.attributes import effective_number
from caltest.lenses import Lens, TopLabel, event, show

_OF_CHANCE = (2.0 / np.pi) ** 0.5  # the mean size of a normal number, in standard deviations
_MOST_LOSS = 700.0  # of what was not observed, and was called impossible
_AT_ONCE = 2**20  # numbers of a table


class Sizes(NamedTuple):
    """Errors in points and their differences, and whose they are: a lens, and its event."""

    probability: str
    event: str
    errors: tuple[ModelError, ...]
    gaps: tuple[ModelDifference, ...]
    warnings: tuple[str, ...]


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
) -> Sizes:
    """Measure all models, and all pairs of them, on all rows and in every group.

    ``outcomes`` are numbers, if these were predicted. Half of the level is for mean errors, half for
    absolute ones, shared among models and groups.
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
        view, numbers = lens.show(first.rows), OfNumbers.all_of(wholes, outcomes, lens)
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
    cuts = {key: _in_parts(each.by, key[1] is None) for key, each in looks.items()}
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
    about = event(view.label, view.rows)
    return Sizes(view.label or "canonical", about, tuple(errors), tuple(gaps), small)


def _in_parts(scores: Array, whole: bool) -> Cut:
    """Cut scores into tenths, of groups fifths; where they are too few, or all equal, into one part."""
    found = cut(scores, whole)
    return found._replace(ends=found.ends[:1] or ((1, np.array([len(scores)])),))


def _error(
    shown: _Shown, where: Cut, design: Design, family: Family
) -> tuple[tuple[float, float, float, float, Interval], Array, Array, float]:
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


def _gap(a: Any, b: Any, design: Design, level: float) -> list[Interval]:
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
