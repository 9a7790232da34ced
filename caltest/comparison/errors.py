"""The error of each model in points, and differences between models, on all rows and in groups.

A mean absolute error over parts is too large on average, because chance adds to its size: sqrt(2/π)
times the standard error of each part without error, and less for parts with one. The interval of a
difference is therefore widened by what chance may add, on the side of the model to which it may have
added.

Rare outcomes leave no trace in the variation of rows if they did not occur. A standard error is
therefore at least what it would be if one of the two models were calibrated: the larger value for
errors, the smaller one for losses, which are unbounded.

For numeric outcomes equal to a stated quantile, count them as inside or outside, whichever makes the
error smaller. For survival times, the event is that it occurs by a horizon; the observed risk is Kaplan
and Meier's within parts of similar predicted risk, and each row contributes its influence on it.

For point forecasts of a mean or expectile, errors are means of V(x, y), in units of the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from caltest._sums import Array, blocks
from caltest.auditing.estimates import InUnits
from caltest.auditing.groups import Grouping, crossed, distinct, large_enough
from caltest.auditing.limits import Limit
from caltest.auditing.options import MIN_ROWS
from caltest.auditing.points import PointDesign
from caltest.auditing.sizes import Cut, Design, Family, cut
from caltest.auditing.times import Followed
from caltest.auditing.views import Group, Sized
from caltest.bounds.intervals import LARGEST_LEVEL, absolute_bounds
from caltest.data import Rows, Sample
from caltest.data.diagnose import impossible_labels
from caltest.data.rows import effective_number
from caltest.exceptions import InputError
from caltest.laws import Point, Pool, Predictive, Quantiles, Survival
from caltest.lenses import Interval, Lens, Quantile, TopLabel, Until, event, show
from caltest.sampling import child_seed
from caltest.statistics.distributions import pinball

_OF_CHANCE = (2.0 / np.pi) ** 0.5  # mean absolute value of a standard normal variable
_MOST_LOSS = 700.0  # loss for outcomes that were called impossible but not observed
_AT_ONCE = 2**20  # numbers in a table
_WIDTH = 0.8  # stated probability of the interval that is compared
_OF_FEW = 0.5  # the same, if ensembles have too few members for it
_ROUNDED = 9  # digits of levels
_DRAWS = 32  # draws of outcomes per model, to bound the variance of differences from below
_NUMBERS = 2**22

#: For an interval: lower end, estimate, upper end.
Ends: TypeAlias = tuple[float, float, float]


# ------------------------------------------------------------------ results


@dataclass(frozen=True)
class ModelError(Sized):
    """The error of one model: that of one probability, on all rows or in a group.

    Errors are differences of probabilities: 0.02 is 2 points. For point forecasts of a mean, or an
    expectile, they are in units of the outcome, and "predicted" is the mean outcome plus the mean of
    V(x, y): of a mean the mean forecast. Intervals are exact if both ends of outcomes are known, else
    about right.

    Attributes
    ----------
    model : str
        Its name.
    group : Group or None
        Which rows; None for all.
    rows : int
        Number of rows.
    predicted : float
        Mean probability of the event.
    observed : float
        Observed rate.
    low, high : float
        Interval of the mean error, predicted less true rate.
    absolute : tuple of three floats
        Mean absolute error over tenths of the model's own predictions, in a group over fifths: lower
        end, estimate and upper end. Errors of opposite sign do not cancel in it. Chance makes the
        estimate too large rather than too small.
    log_loss, brier : float or None
        Over all classes: mean of −log p and of Σ(p − y)²; for two classes the latter is (p − y)². None
        for numbers; for times until an event the Brier score of the risk until the horizon alone.
    crps : float or None
        For numbers, in their units: the mean continuous ranked probability score. Where a model states
        quantiles only it is, for all models, twice the mean pinball loss at the levels that they have
        in common (the weighted interval score, if these are symmetric). None for classes. For point
        forecasts of a median it is their mean absolute error.
    squared : float or None
        For point forecasts of a mean: the mean squared error. For those of an expectile of level τ: the
        mean of 2 |1{y ≤ x} − τ| (x − y)². Else None.
    units : InUnits or None
        For numbers: the mean error in their units, :class:`caltest.auditing.estimates.InUnits`. None
        for classes.
    """

    model: str
    group: Group | None
    rows: int
    predicted: float
    observed: float
    low: float
    high: float
    absolute: Ends
    log_loss: float | None = None
    brier: float | None = None
    crps: float | None = None
    squared: float | None = None
    units: InUnits | None = None


@dataclass(frozen=True)
class ModelDifference:
    """The difference between the errors of two models on the same rows.

    Attributes
    ----------
    model, other : str
        Differences are those of ``model`` less ``other``: above 0 where ``model`` is worse.
    group : Group or None
        Which rows; None for all.
    absolute : tuple of three floats
        Difference of mean absolute errors: lower end, estimate and upper end of a paired interval.
    mean : tuple of three floats
        Difference of mean errors, with their signs. Where both models predict the same event, it is the
        difference of mean predictions, which is known: the observed rate cancels, and both ends are the
        estimate.
    log_loss, brier, crps, squared : tuple of three floats, or None
        Differences of mean losses, with paired intervals; None where there are none.
    """

    model: str
    other: str
    group: Group | None
    absolute: Ends
    mean: Ends
    log_loss: Ends | Any = None  # Any, so that reading them needs no type checks
    brier: Ends | Any = None
    crps: Ends | Any = None
    squared: Ends | Any = None

    @property
    def turned(self) -> ModelDifference:
        """The same difference with the models exchanged."""
        kinds = (self.absolute, self.mean, self.log_loss, self.brier, self.crps, self.squared)
        turned: list[Any] = [each and (-each[2], -each[1], -each[0]) for each in kinds]
        return ModelDifference(self.other, self.model, self.group, *turned)


# ------------------------------------------------------------------ sizes


class _Shown(NamedTuple):
    """An event on some rows: probabilities, the values that order them, and whether it occurred.

    For quantile forecasts, ``opened`` counts outcomes that equal a quantile as outside, (n,) each.
    """

    scores: Array
    by: Array
    seen: NDArray[np.intp]
    opened: NDArray[np.intp]


def sizes_of(
    wholes: Mapping[str, Sample],
    lens: Lens | None,
    groupings: Iterable[Grouping],
    intersections: int,
    confidence: float,
    outcomes: Array | None = None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Measure all models, and all pairs of models, on all rows and in every group.

    Return fields of a comparison, and notes. ``outcomes`` are given for numeric predictions. Mean
    errors and absolute errors get half of the level each, shared among models and groups.
    """
    first, *_ = wholes.values()
    designs = {name: Design.of(x.rows, None) for name, x in wholes.items()}
    labels, n = first.labels, len(first.labels)
    split = [large_enough(each, MIN_ROWS) for each in groupings]
    split.append(crossed(list(groupings), intersections, MIN_ROWS))
    groups, twins = distinct(each for kept, _ in split for each in kept)
    small = [*(each for _, few in split for each in few), *twins]
    notes = [f"{each.what} {'are' if each.rows else 'is'} left out: {each.reason}." for each in small]
    where = [(None, np.arange(n)), *groups]
    models: dict[str, Any] = {}
    label, shown = lens.label if lens else None, first.rows
    if isinstance(lens, Until) and isinstance(first.rows.law, Survival):
        for name, whole in wholes.items():
            designs[name] = followed = Followed.until(whole, float(lens.threshold))
            models[name] = _Times(followed.rows.law.risk(followed.horizon))
    elif outcomes is not None and isinstance(first.rows.law, Point):
        label = first.rows.law.functional
        for name, whole in wholes.items():
            own = whole.rows
            designs[name] = PointDesign(own.weights, own.clusters, law=own.law)
            models[name] = _Points(own, outcomes, whole.labels, None, None)
    elif outcomes is None:
        for name, whole in wholes.items():
            view = show(whole.rows, lens)
            view = view if view.rows.n_classes == 2 else TopLabel().show(whole.rows)
            classes = np.arange(whole.rows.n_classes or 0)
            events = view.outcomes(np.repeat(classes[:, None], n, axis=1)).T == 1
            models[name] = _Classes(whole.rows.probs, view.rows.probs[:, 1], events, labels)
        label, shown = view.label, view.rows
    else:
        lens, levels, said = _scored_alike(lens, wholes)
        label, notes = lens.label, notes + said
        models = {k: _Numbers(x.rows, outcomes, x.labels, lens, levels) for k, x in wholes.items()}
    looks = {(name, group): models[name].shown(rows) for group, rows in where for name in wholes}
    cuts = {}
    for (name, group), each in looks.items():  # in groups fifths; one part if rows are few or equal
        parts = cut(each.by, group is None)
        cuts[name, group] = parts._replace(ends=parts.ends[:1] or ((1, np.array([len(each.by)])),))
    alpha, pairs = 1.0 - confidence, list(combinations(wholes, 2))
    counts = len(cuts), sum(len(each.ends[0][1]) for each in cuts.values())
    family = Family(*(min(0.25 * alpha / count, LARGEST_LEVEL) for count in counts))
    errors, gaps = [], []
    for group, rows in where:
        here = {}
        for name in wholes:
            design = designs[name].at(rows)
            found, *judged = _error(looks[name, group], cuts[name, group], design, family, label or "")
            here[name] = models[name].take(rows, looks[name, group].scores, *judged)
            errors.append(ModelError(name, group, len(rows), *found, **here[name].own(design, alpha)))
        for a, b in pairs:
            ends = _gap(here[a], here[b], designs[a].at(rows), alpha / (2 * len(where) * len(pairs)))
            gaps.append(ModelDifference(a, b, group, **ends))
    whose = {"probability": label or "canonical", "event": event(label, shown)}
    return {"errors": tuple(errors), "gaps": tuple(gaps), **whose}, tuple(notes)


def _error(
    shown: _Shown, where: Cut, design: Design, family: Family, label: str
) -> tuple[tuple[float, float, float, float, Ends], Array, Array, float]:
    """Return mean and absolute error with intervals, per row the event and side, and error by chance.

    If outcomes equal a quantile, the error lies between that of the closed and that of the open event;
    the smallest in size is used, and intervals contain both.
    """
    scores, w, ends = shown.scores, design.weights, where.ends[0][1]
    design = design.of_scores(scores, label)
    by = design.stretches
    tied = bool((shown.seen != shown.opened).any())
    outcomes = (shown.seen, shown.opened)[: 1 + tied]
    both = [family.parts(scores, each, where, design, Limit()) for each in outcomes]
    sizes = np.diff(ends, prepend=0)
    part_of = np.empty(len(scores), dtype=np.intp)
    part_of[where.order] = np.repeat(np.arange(len(both[0])), sizes)
    share = np.bincount(part_of, w) / w.sum()
    closed, opened = (np.array([(x.error, x.low, x.high) for x in p]).T for p in (both[0], both[-1]))
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 if both are equal
        of_closed = np.nan_to_num(opened[0] / (opened[0] - closed[0]), nan=1.0).clip(0.0, 1.0)
    error = of_closed * closed[0] + (1.0 - of_closed) * opened[0]
    seen = shown.opened + of_closed[part_of] * (shown.seen - shown.opened)
    seen = design.spread(part_of, both[0]) if isinstance(design, Followed) else seen
    variances = scores * (1.0 - scores)
    if isinstance(design, PointDesign):  # point forecasts state no variance
        seen, variances = scores - design.law.errors(seen), 0.0 * scores
    least = np.maximum(np.maximum(closed[1], -opened[2]), 0.0) @ share
    most = np.maximum(np.abs(closed[1]), np.abs(opened[2])) @ share
    if design.plain and not tied:
        events = np.bincount(part_of, shown.seen).astype(np.float64)
        stated = np.array([part.predicted for part in both[0]])
        least, most = absolute_bounds(stated, sizes.astype(np.float64), events, family.of_view)
    centred = w * (by * (scores - seen) - error[part_of])
    by_part = [design.sums(np.where(part_of == k, centred, 0.0)) for k in range(len(both[0]))]
    varied = np.bincount(part_of, (by * w) ** 2 * variances)
    varied = np.maximum([float(sums @ sums) for sums in by_part], varied)
    absolute = float(least), float(share @ abs(error)), float(most)
    predicted, observed, low, high = design.interval(scores, shown.seen, family.of_view)
    if tied:
        observed = float(w @ seen / w.sum())
        high = design.interval(scores, shown.opened, family.of_view)[3]
    chance = _OF_CHANCE * float(np.sqrt(varied).sum() / w.sum())
    found = predicted, observed, low, high, absolute
    return found, seen, np.where(error >= 0.0, 1.0, -1.0)[part_of], chance


def _gap(a: Any, b: Any, design: Design, level: float) -> dict[str, Ends]:
    """Return the errors of a minus those of b with t intervals; of length 0 where known exactly."""
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
    if a.knows(b):  # observations cancel
        reach[1] = 0.0
    chances = np.zeros((2, len(values)))
    chances[:, 0] = a.chance, b.chance
    known = np.isfinite(means)
    low = np.where(known, means - reach - chances[0], -np.inf)
    high = np.where(known, means + reach + chances[1], np.inf)
    ends = zip(low.tolist(), means.tolist(), high.tolist(), strict=True)
    return dict(zip(("absolute", "mean", *a.scored), ends, strict=True))


# ------------------------------------------------------------------ classifiers


@dataclass(frozen=True, eq=False)
class _Classes:
    """One classifier on some rows: its probabilities, scores of an event, and labels in it, (n, m).

    ``labels`` are observed; ``sides`` is the direction of error, 1 or −1, in each row's part of the
    predictions; ``chance`` is the most that chance adds to the absolute error.
    """

    law: Array
    scores: Array
    events: NDArray[np.bool_]
    labels: NDArray[np.intp]
    sides: Any = None
    chance: float = 0.0
    scored = ("log_loss", "brier")

    def shown(self, rows: NDArray[np.intp]) -> _Shown:
        """Return the event on some rows."""
        scores, seen = self.scores[rows], self.events[rows, self.labels[rows]].astype(np.intp)
        return _Shown(scores, scores, seen, seen)

    def take(self, rows: NDArray[np.intp], scores: Array, seen: Array, *judged: Any) -> _Classes:
        """Return some rows with their errors."""
        return _Classes(self.law[rows], scores, self.events[rows], self.labels[rows], *judged)

    def own(self, design: Design, alpha: float) -> dict[str, Any]:
        """Return the mean scores."""
        values, _ = self.less(None)
        means = values[2:] @ design.weights / design.weights.sum()
        return dict(zip(self.scored, means.tolist(), strict=True))

    def _table(self, rows: slice) -> Array:
        """Return absolute error, error, log loss and Brier score of rows for each label, (4, r, m)."""
        law = self.law[rows]
        errors = self.scores[rows, None] - self.events[rows]
        with np.errstate(divide="ignore"):
            logs = -np.log(law)
        squares = (law**2).sum(axis=1, keepdims=True) + 1.0 - 2.0 * law
        squares /= 2.0 if law.shape[1] == 2 else 1.0  # for two classes, the score of one of them
        return np.stack([self.sides[rows, None] * errors, errors, logs, squares])

    def less(self, b: _Classes | None) -> tuple[Array, Array]:
        """Return rows' terms of the four, minus another's, (4, n), and variances under either law."""
        values, variances, labels = [], [], self.labels
        for rows in blocks(len(labels), max(1, _AT_ONCE // self.law.shape[1])):
            with np.errstate(invalid="ignore"):  # inf − inf
                table = self._table(rows) - (0.0 if b is None else b._table(rows))
            values.append(table[:, np.arange(table.shape[1]), labels[rows]])
            known = np.nan_to_num(table, posinf=_MOST_LOSS, neginf=-_MOST_LOSS)
            laws = [each.law[rows] for each in (self, b) if each is not None]
            means = [(law * known).sum(axis=2, keepdims=True) for law in laws]
            each = zip(laws, means, strict=True)
            variances.append([(law * (known - mean) ** 2).sum(axis=2) for law, mean in each])
        return np.concatenate(values, axis=1), np.concatenate(variances, axis=2)

    def knows(self, other: _Classes) -> bool:
        """Whether both concern the same event, so that observations cancel."""
        return bool((self.events == other.events).all())


# ------------------------------------------------------------------ forecasts of numbers


def _scored_alike(lens: Lens | None, wholes: Mapping[str, Sample]) -> tuple[Lens, Any, list[str]]:
    """Return the lens for errors in points, the levels at which quantiles are scored, and notes.

    If some models state quantiles only, all are scored at levels; otherwise the levels are None. The
    lens shows one event, by default the interval nearest to 80%.
    """
    laws = [x.rows.law for x in wholes.values()]
    finite = [(x, np.isfinite(x.values).all(axis=0)) for x in laws if isinstance(x, Quantiles)]
    stated = [law.levels[of_all].round(_ROUNDED) for law, of_all in finite]
    levels = reduce(np.intersect1d, stated) if stated else None
    notes = [f"{name}: {note}" for name, x in wholes.items() for note in impossible_labels(x)]
    if levels is not None:
        if not len(levels):
            do = "give forecasts with a level in common, such as 0.5"
            raise InputError(f"no level is stated in every row of every model; {do}.")
        notes += [
            "In place of the CRPS stands the mean quantile score, twice the pinball loss, of all "
            f"models at {len(levels)} of their levels, from {levels[0]:g} to {levels[-1]:g}."
        ] * (laws[0].functional is None)
    pools = [int(np.min(law.counts)) for law in laws if isinstance(law, Pool)]
    fewest = min(pools, default=np.inf)
    if pools and (len(pools) < len(laws) or max(pools) > fewest):
        notes.append(
            f"A statistic of L members sees L/(L + 1) of an error, and there are models of {fewest - 1}"
            ", as the outcome is among the values that it is compared with. Errors in points, and "
            "scores, are those of the members alone."
        )
    if lens is None or lens.label.partition(":")[0] in ("pit", "distribution"):
        if levels is None:
            kept = [each for each in (_WIDTH, _OF_FEW) if 0.5 * (1.0 - each) * fewest > 1.0 - 1e-9]
            return Interval(kept[0]) if kept else Quantile(0.5), levels, notes
        widths = np.round(1.0 - 2.0 * levels[levels < 0.5], _ROUNDED)
        if len(widths := widths[np.isin(np.round(0.5 + 0.5 * widths, _ROUNDED), levels)]):
            return Interval(float(widths[np.abs(widths - _WIDTH).argmin()])), levels, notes
        return Quantile(float(levels[np.abs(levels - 0.5).argmin()])), levels, notes
    if any(lens.show(x.rows).places is not None for x in wholes.values()):
        do = "give a level that all state"
        raise InputError(f"not all rows state what {lens.label!r} looks at; {do}.")
    return lens, levels, notes


@dataclass(frozen=True, eq=False)
class _Numbers:
    """One forecast of numbers on some rows: predictions, outcomes, and their codes under its law.

    ``lens`` shows the event; ``levels`` are those of the scored quantiles, or None; ``seen`` is whether
    the event occurred; the other fields are as in :class:`_Classes`.
    """

    rows: Rows
    outcomes: Array
    codes: NDArray[Any]
    lens: Any
    levels: Array | None
    scores: Any = None
    seen: Any = None
    sides: Any = None
    chance: float = 0.0
    scored = ("crps",)

    @property
    def _law(self) -> Predictive:
        return cast("Predictive", self.rows.law)

    def shown(self, rows: NDArray[np.intp]) -> _Shown:
        """Return the event on some rows."""
        some = self.take(rows)
        view = self.lens.show(some.rows)
        scores = view.rows.probs[:, 1]
        by = some._law.level() if isinstance(self.lens, Interval | Quantile) else scores
        closed, opened = (each.sample(some.codes).labels for each in (view, view.opened))
        return _Shown(scores, by, closed, opened)

    def take(self, rows: NDArray[np.intp], *judged: Any) -> _Numbers:
        """Return some rows with their errors."""
        own = (self.rows, self.outcomes, self.codes)
        if len(rows) < len(self.outcomes):
            own = self.rows.take(rows), self.outcomes[rows], self.codes[rows]
        return type(self)(*own, self.lens, self.levels, *judged)

    def own(self, design: Design, alpha: float) -> dict[str, Any]:
        """Return the mean score, and the mean error in units of the outcome."""
        w = design.weights
        crps = float(self._score(self.outcomes[None])[0] @ w / w.sum())
        return {"crps": crps, "units": InUnits.of(self.rows, self.outcomes, design, alpha)}

    def _score(self, outcomes: Array) -> Array:
        """Return CRPS, or mean quantile scores, of outcomes, (B, n)."""
        law, levels = self._law, self.levels
        if levels is None:
            return np.asarray(law.crps(outcomes), dtype=np.float64)
        # Quantiles of the pool would use the outcome itself.
        law = law.without(self.outcomes) if isinstance(law, Pool) else law
        at: Iterable[Array] = (law.quantile(np.full(law.n_samples, level)) for level in levels)
        return pinball(outcomes, levels, at)

    def _terms(self, seen: Array, outcomes: Array) -> Array:
        design = Design.of(self.rows, None).of_scores(self.scores, self.lens.label)
        errors = design.stretches * (self.scores - seen)
        return np.stack([self.sides * errors, errors, self._score(outcomes)])

    def less(self, other: _Numbers) -> tuple[Array, Array]:
        """Return absolute errors, errors and scores minus another's, (3, n), and variances by law."""
        pair = (self, other)
        one, two = (x._terms(x.seen[None], x.outcomes[None])[:, 0] for x in pair)
        # No numbers can be drawn from these.
        if any(isinstance(x._law, Quantiles | Point) for x in pair):
            return one - two, np.zeros((1, *one.shape))
        variances = []
        draws = int(np.clip(_NUMBERS // len(self.seen), 2, _DRAWS))
        for x in pair:
            drawn = x.rows.sampler(child_seed(0, _DRAWS)).draw(0, draws)
            came = (y.lens.show(y.rows).outcomes(drawn).astype(np.float64) for y in pair)
            first, second = (y._terms(seen, drawn) for y, seen in zip(pair, came, strict=True))
            variances.append((first - second).var(axis=1, ddof=1))
        return one - two, np.array(variances)

    def knows(self, other: _Numbers) -> bool:
        """Whether both concern the same event, so that observations cancel."""
        return bool(self.lens.label.startswith(("below", "above")))


class _Points(_Numbers):
    """Forecasts of a mean or expectile, without a lens; the outcome takes the place of the event."""

    scored = ("squared",)

    def shown(self, rows: NDArray[np.intp]) -> _Shown:
        """Return forecasts and outcomes."""
        scores, seen = self._law.level()[rows], cast("Any", self.outcomes[rows])
        return _Shown(scores, scores, seen, seen)

    def own(self, design: Design, alpha: float) -> dict[str, Any]:
        """Return the mean loss."""
        losses = self._terms(self.seen, self.outcomes)[2]
        return {"squared": float(design.weights @ losses / design.weights.sum())}

    def _terms(self, seen: Array, outcomes: Array) -> Array:
        law = cast("Point", self._law)
        errors = law.errors(outcomes)
        return np.stack([self.sides * errors, errors, errors * (law.values - outcomes)])

    def knows(self, other: _Numbers) -> bool:
        """Whether differences in error are differences in forecast: for means."""
        return cast("Point", self._law).tau == 0.5


# ------------------------------------------------------------------ times


@dataclass(frozen=True, eq=False)
class _Times:
    """One model on some rows: risks until a horizon; fields as in :class:`_Classes`."""

    scores: Array
    seen: Any = None
    sides: Any = None
    chance: float = 0.0
    scored = ("brier",)

    def shown(self, rows: NDArray[np.intp]) -> _Shown:
        """Return some rows; the design holds what was observed."""
        scores, none = self.scores[rows], np.zeros(len(rows), np.intp)
        return _Shown(scores, scores, none, none)

    def take(self, rows: NDArray[np.intp], scores: Array, *judged: Any) -> _Times:
        """Return some rows with their errors."""
        return _Times(scores, *judged)

    def own(self, design: Design, alpha: float) -> dict[str, Any]:
        """Return the mean score."""
        return {"brier": float(self._terms()[2].mean())}

    def _terms(self) -> Array:
        """Return contributions of rows to absolute error, risk and Brier score, (3, n)."""
        risk, seen = self.scores, self.seen
        return np.stack([self.sides * (risk - seen), risk, risk**2 + (1.0 - 2.0 * risk) * seen])

    def less(self, other: _Times) -> tuple[Array, Array]:
        """Return these minus another's, with the variance of each row under either law."""
        risks = np.stack([self.scores, other.scores])
        by_event = [other.sides - self.sides, 0.0 * self.sides, -2.0 * (risks[0] - risks[1])]
        return self._terms() - other._terms(), np.square(by_event) * (risks * (1.0 - risks))[:, None]

    def knows(self, other: _Times) -> bool:
        """Whether observations cancel."""
        return True
