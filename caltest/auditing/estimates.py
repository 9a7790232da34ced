"""Estimates shown beside the checks of an audit; they prove nothing.

*The usual numbers* describe the probability of class 1 for two classes, and the confidence in the top
class for more; the log loss is that of the full vector. *Errors in units of the outcome* are for
predicted distributions of numbers. *Remedies* are what the usual recalibrations would gain, by
cross-fitting inside the rows at hand. None of them is in the family of checks or intervals of an audit.

A remedy is fitted to four fifths of the rows and applied to the last fifth, five times, so that every
row has a recalibrated prediction that its own label had no part in. It is the softmax of
slope · log p_k + shift_k of the predictions p_k, with a slope ("temperature"), shifts ("shift"), or
both; or isotonic regression class by class; or the same probabilities with the classes in another order
("order"), for columns that were mixed up. Parameters are fitted by maximum likelihood, each held by one
more row that says "no change", so that a class without an event has a finite shift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import bdtrik, logsumexp

from caltest._arguments import when_asked
from caltest._sums import Array, Mask
from caltest.auditing.limits import Limit
from caltest.auditing.plan import Look
from caltest.auditing.sizes import Design, half_width
from caltest.binning import DistinctScores
from caltest.cox import Recalibration, recalibration_of
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.laws import Pool, Predictive
from caltest.lenses import TopLabel, through
from caltest.sampling import generator
from caltest.statistics import ECE

_MOST_SMOOTHED = 20_000  # rows for the smooth curve
_SPAN, _STEP = 0.75, 0.01  # of the curve: share of rows near a point, and distance of its points
_LEAST = 1e-15  # lower bound of a probability before taking its logarithm, as in scikit-learn
_STATED = 0.95  # level of the interval that is widened
_ROUNDING = 1e-9  # of a count


@when_asked("ici", "e50", "e90")
@dataclass(frozen=True)
class UsualNumbers:
    """Metrics commonly reported for a model; NaN where the rows do not determine one.

    Attributes
    ----------
    lens : str or None
        The lens of the probability; None for that of class 1 of two.
    ece : float
        Expected calibration error, 15 bins of equal width (Guo et al. 2017).
    brier, miscalibration, discrimination, uncertainty : float
        Brier score of that probability, miscalibration − discrimination + uncertainty, by isotonic
        regression (Dimitriadis, Gneiting, Jordan 2021).
    log_loss : float
        Mean log loss of the full prediction, in nats, probabilities held at 1e-15 or more.
    auc, accuracy : float or None
        Area under the ROC curve of two classes; accuracy of the top class of more. Else None.
    slope, intercept : float
        The recalibration line; ``intercept`` is the one with slope 1 (calibration in the large).
    ici, e50, e90 : float or None
        Mean, median and 90th percentile of the distance of the predictions from a loess curve of what
        was observed (Austin and Steyerberg 2019); None where rows have weights.
    observed_to_expected : float
        Events observed over events expected, O/E.
    """

    lens: str | None
    ece: float
    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    log_loss: float
    auc: float | None
    accuracy: float | None
    slope: float
    intercept: float
    ici: float | None
    e50: float | None
    e90: float | None
    observed_to_expected: float


def usual_numbers(whole: Sample, line: Recalibration | None = None) -> UsualNumbers:
    """Return the usual metrics for checked predictions and labels; ``line`` if already fitted."""
    view, lens = through(whole, None, "top_label")
    p, y = view.rows.probs[:, 1], view.labels.astype(np.float64)
    w = view.rows.weights / view.rows.weights.sum()
    pooled = DistinctScores.of(p, w)
    scores, of_scores, events = pooled.scores, pooled.sizes, pooled.counted(y)
    rates, fitted = events / of_scores, pooled.rising(y)
    event_rate, brier = float(w @ y), float(w @ (p - y) ** 2)
    calibrated = brier - float(of_scores @ ((scores - rates) ** 2 - (fitted - rates) ** 2))
    uncertainty = event_rate * (1.0 - event_rate)
    of_label = whole.rows.probs[np.arange(len(whole.labels)), whole.labels]
    terms = brier, max(brier - calibrated, 0.0), max(uncertainty - calibrated, 0.0), uncertainty
    line, ece = line or recalibration_of(view), ECE().fitted(view.rows).given(view.rows)
    others = of_scores - events  # pairs of an event and a non-event; ties count half
    pairs = float(events.sum() * others.sum())
    auc = float(events @ (np.cumsum(others) - others / 2)) / pairs if pairs > 0.0 else float("nan")
    ranked = (auc, None) if whole.rows.n_classes == 2 else (None, event_rate)
    log_loss = float(-w @ np.log(np.maximum(of_label, _LEAST)))
    distances = _distances(p, y) if view.rows.are_alike else lambda: (None, None, None)
    smooth = (lambda k=k: distances()[k] for k in range(3))
    ratio = event_rate / float(w @ p) if w @ p > 0.0 else float("nan")
    given: tuple[Any, ...] = (*ranked, line.slope, line.in_the_large, *smooth, ratio)
    return UsualNumbers(lens, ece.value(view.labels), *terms, log_loss, *given)


def _distances(p: Array, y: Array) -> Callable[[], tuple[float | None, ...]]:
    """Return a function for the distances from a loess curve: mean, median and 90th percentile.

    The curve uses all rows, or every k-th.
    """
    step, order = max(1, -(-len(p) // _MOST_SMOOTHED)), np.argsort(p, kind="stable")
    if p[order[0]] == p[order[-1]]:
        return lambda: (abs(float(p[0]) - float(y[order].mean())),) * 3
    some = order[step // 2 :: step]
    return cache(partial(_from_curve, p[some], y[some]))


def _from_curve(p: Array, y: Array) -> tuple[float | None, ...]:
    from statsmodels.nonparametric.smoothers_lowess import lowess  # as slow as a small audit

    with np.errstate(all="ignore"):  # with few distinct predictions there is no curve
        curve = lowess(y, p, frac=_SPAN, it=0, delta=_STEP * float(np.ptp(p)), return_sorted=False)
    found = np.abs(np.clip(curve, 0.0, 1.0) - p)
    if not np.isfinite(found).all():
        return None, None, None
    return float(found.mean()), *np.quantile(found, (0.5, 0.9)).tolist()


# ------------------------------------------------------------------ in units of the outcome


@dataclass(frozen=True)
class InUnits:
    """Errors in units of the outcome: estimates, which prove nothing.

    Attributes
    ----------
    rows : int
        Number of rows.
    predicted, observed : float or None
        Mean of the predicted means, and mean outcome; None if distributions state no mean.
    low, high : float or None
        Approximate interval of the mean error, predicted minus observed: its own t interval, with the
        audit's confidence.
    factor : float or None
        Factor for the distances of the ends of 95% intervals from the median with which they would
        contain 95% of these outcomes, after removing the mean error (if means are stated); None if
        there is no such number, and for quantile forecasts.
    factor_low, factor_high : float or None
        Approximate interval of the factor, by order statistics, with the audit's confidence; None if
        rows have weights or come in clusters.
    spread : float or None
        For few members, which state no such interval: factor for their distances from their mean with
        which these outcomes would lie as far from it on average (root mean square), after removing the
        mean error. Else None.
    """

    rows: int
    predicted: float | None
    observed: float | None
    low: float | None
    high: float | None
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    spread: float | None = None

    @classmethod
    def of(cls, rows: Rows, outcomes: Array, design: Design, level: float) -> InUnits:
        """Estimate the correction that some rows need."""
        law: Any = rows.law
        predicted = observed = low = high = None
        error = 0.0  # for distributions without a mean
        with suppress(InputError), np.errstate(over="ignore", invalid="ignore"):
            (mean, _), w = law.mean_and_variance(), rows.weights
            observed = float(w @ outcomes / w.sum())
            parts = (float(design.pulls @ each / design.pulls.sum()) for each in (mean, -outcomes))
            error = design.stretch * sum(parts)
            predicted = observed + error
            sums = design.sums(w * (design.stretches * (mean - outcomes) - error))
            half = half_width(sums, float(w.sum()), level / 2)
            if np.isfinite([error - half, error + half]).all():
                low, high = error - half, error + half
            else:  # overflow: the numbers are not finite
                predicted, observed, error = None, None, 0.0
        factor = _widening(law, outcomes + error, design.plain, level)
        few = isinstance(law, Pool) and factor[0] is None
        spread = _spread(rows, outcomes, error) if few else None
        return cls(rows.n_samples, predicted, observed, low, high, *factor, spread)


def _spread(rows: Rows, outcomes: Array, error: float) -> float | None:
    """Return the factor by which members would have to spread around their mean."""
    members: Any = rows.law.without(outcomes)  # type: ignore[attr-defined]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance = members.mean_and_variance()
        # If the outcome is like one of N members, its expected squared distance is (N + 1) / (N − 1)
        # times their variance.
        more = np.asarray((members.counts + 1) / np.maximum(members.counts - 1, 1))
        w = rows.weights * (members.counts > 1)  # a single member has no spread
        expected = more.max() * float(w @ (variance * (more / more.max())))
        seen = float(w @ (outcomes + error - mean) ** 2)
    return float(np.sqrt(seen / expected)) if 0.0 < expected < np.inf and seen < np.inf else None


def _widening(
    law: Predictive, outcomes: Array, plain: bool, level: float
) -> tuple[float | None, float | None, float | None]:
    """Return the factor by which interval ends must move away from the median, with an interval."""
    # Outcomes of quantile forecasts are known only as cells; few members have no such quantiles.
    if law.levels is not None or (1.0 - _STATED) * np.min(getattr(law, "counts", np.inf)) < 4.0:
        return None, None, None
    n = law.n_samples
    low, middle, high = (law.quantile(np.full(n, tau)) for tau in (0.025, 0.5, 0.975))
    over = outcomes - middle
    room = np.where(over > 0.0, high - middle, low - middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.sort(np.where(over == 0.0, 0.0, over / room))
    first, last = np.ceil(bdtrik([level / 2, 1.0 - level / 2], n, _STATED) - _ROUNDING)
    ranks = np.ceil(_STATED * n), first, 1 + last
    factor, *ends = (float(times[int(min(max(rank, 1), n)) - 1]) for rank in ranks)
    if not np.isfinite(factor) or max(ranks) > n:  # too few rows to bound it
        return None, None, None
    return factor, *(ends if plain else (None, None))


# ------------------------------------------------------------------ remedies

Labels: TypeAlias = NDArray[np.intp]
Kind: TypeAlias = Literal[
    "order", "shift", "temperature", "temperature and shift", "factor", "line", "isotonic"
]

#: From the simplest on; a later one is chosen only if it gains clearly more.
KINDS: tuple[Kind, ...] = ("order", "temperature", "shift", "temperature and shift", "isotonic")
_FOLDS = 5
_FEWEST = 100  # rows, below which no remedy is tried
_MOST = 2e5  # predicted numbers in the rows used
_MOST_ISOTONIC = 100  # classes
_CLEAR = 2.0  # standard errors
_MOST_LEFT = 30  # views for which the remaining error is estimated
_OF_CHANCE = (2.0 / np.pi) ** 0.5  # mean absolute value of a standard normal variable
_SMALLEST = 1e-12  # lower bound of a probability before taking its logarithm


@dataclass(frozen=True)
class Remedy:
    """One recalibration, with cross-fitted estimates of its effect.

    Attributes
    ----------
    name : str
        "order", "shift", "temperature", "temperature and shift", or "isotonic"; for point forecasts
        "shift", "factor", "line" (both) or "isotonic".
    in_group : bool
        Whether it was fitted to the named group and changes that group only.
    gain, gain_se : float
        Reduction of the mean log loss in nats, or of the mean squared error, over all rows tried, and
        its standard error.
    before, after : float
        Mean error, predicted minus observed, in these rows, for the view that the advice is about.
    after_se : float
        Standard error of ``after``.
    off_before, off_after : float
        Mean absolute error over tenths of that view's predictions.
    off_chance : float
        About its value for a calibrated model, by chance: √(2/π) times the tenths' standard errors.
    slope : float or None
        Fitted slope of log probabilities, or factor of point forecasts; None for remedies without one.
    rows : int
        Number of rows tried.
    left : tuple
        For every view found wrong, or moved beyond the limit: its lens and group, its new mean
        prediction, and an estimate of the remaining mean error.
    excess : float
        The largest of these that is beyond the limit; 0 if none is.
    chosen : bool
        Whether it is the recommended one.
    shift : float or None
        Shift that is then added to point forecasts; None for isotonic regression, and for classes.
    loss : float
        Mean log loss, or squared error, before recalibration.
    """

    name: Kind
    in_group: bool
    gain: float
    gain_se: float
    before: float
    after: float
    after_se: float
    off_before: float
    off_after: float
    off_chance: float
    slope: float | None
    rows: int
    left: tuple[tuple[Any, float, float], ...] = ()
    excess: float = 0.0
    chosen: bool = False
    shift: float | None = None
    loss: float = float("nan")

    @property
    def clear(self) -> bool:
        """Whether the gain is larger than chance explains (about)."""
        return self.gain > _CLEAR * self.gain_se

    @property
    def leaves(self) -> bool:
        """Whether the remaining mean error is larger than chance explains (about)."""
        return abs(self.after) > _CLEAR * self.after_se


def remedies(
    whole: Sample,
    about: Look,
    shown: Mapping[Any, Look],
    others: Mapping[Any, Look],
    limit: Limit,
    seed: int,
    of: type[Folds] | None = None,
) -> tuple[Remedy, ...]:
    """Try remedies on all rows, and on a group alone.

    Among remedies that leave no mean error beyond the limit, choose the simplest one that no other
    clearly beats; if all leave one, choose the one that leaves the least. Without a limit, choose the
    simplest one that no other clearly beats; but if it leaves an error in the group that a remedy for
    the group alone removes, choose the simplest of those.

    Parameters
    ----------
    whole
        Predictions and labels of all rows.
    about
        The subject of the advice.
    shown
        Views found to be wrong on average, by key.
    others
        Other views: they matter if a remedy moves their mean beyond the limit.
    limit
        The mean error that matters.
    seed
        Seed of the folds.
    of
        The class that corrects rows. Default None: for probabilities of classes.
    """
    possible = np.setdiff1d(np.arange(len(whole.labels)), whole.rows.impossible(whole.labels))
    stream = generator(seed)
    places = stream.permutation(possible)[: int(_MOST / (whole.rows.n_classes or 1))]
    if len(places) < _FEWEST:
        return ()
    places = np.sort(places)
    rows, labels = whole.rows.take(places), whole.labels[places]
    units = np.arange(len(labels)) if rows.clusters is None else rows.clusters
    numbers = np.unique(units, return_inverse=True)[1]
    fold = (stream.permutation(numbers.max() + 1) % _FOLDS)[numbers]
    some = dict(islice(shown.items(), _MOST_LEFT))
    beside = dict(islice(others.items(), _MOST_LEFT))
    trial = (of or Folds)(rows, labels, fold, numbers, about, some, beside, places, limit)
    apart = about.places is not None and trial.member(about).sum() >= _FEWEST
    tried = [trial.remedy(kind, own) for own in (False, True)[: 1 + apart] for kind in trial.kinds]
    best = trial.best(tried)
    return tuple(replace(each, chosen=best is not None and each is best[0]) for each, _ in tried)


#: A remedy, and the loss of each row under it.
Tried: TypeAlias = tuple[Remedy, Array]


@dataclass(frozen=True, eq=False)
class Folds:
    """Rows split into folds by ``unit``: clusters, or rows."""

    rows: Rows
    labels: NDArray[Any]
    fold: Labels
    unit: Labels
    about: Look
    shown: Mapping[Any, Look]
    others: Mapping[Any, Look]
    places: Labels  # positions of these rows among all rows
    limit: Limit

    @property
    def given(self) -> Array:
        """The uncorrected predictions."""
        return np.asarray(self.rows.probs)

    @property
    def kinds(self) -> Sequence[Kind]:
        """The remedies to try, simplest first."""
        few = self.rows.n_classes <= _MOST_ISOTONIC
        return [kind for kind in KINDS if few or kind not in ("isotonic", "order")]

    def fit(self, kind: Kind, rows: Mask) -> tuple[Mend, dict[str, float]]:
        """Fit a remedy on some rows; return it, with its parameters by field name."""
        mend, slope = fit(kind, self.given[rows], self.labels[rows], self.rows.weights[rows])
        return mend, {"slope": slope} if "temperature" in kind else {}

    def losses(self, probs: Array) -> Array:
        """Return the loss of each row."""
        return np.asarray(-np.log(np.maximum(probs[np.arange(len(probs)), self.labels], _SMALLEST)))

    def member(self, look: Look) -> NDArray[np.bool_]:
        """Return which rows belong to a look."""
        all_rows = np.ones(len(self.labels), bool)
        return all_rows if look.places is None else np.isin(self.places, look.places)

    def through(self, look: Look, probs: Array) -> tuple[Array, Array, Array]:
        """Return scores, errors and weights of the rows in a look."""
        own = look.scope.lens
        lens = own if own is not None or self.rows.n_classes == 2 else TopLabel()
        view, _ = through(Sample(self.rows.shown_as(probs, self.rows.classes), self.labels), lens)
        w = np.where(self.member(look), self.rows.weights, 0.0)
        scores = view.rows.probs[:, 1]
        return scores, scores - view.labels, w

    def left(self, probs: Array) -> tuple[tuple[tuple[Any, float, float], ...], float]:
        """Return mean predictions and errors of reported and newly wrong views, and the largest excess.

        Views that were not wrong are listed if the change alone would put them beyond the limit.
        """
        found = [(key, *self.mean_of(look, probs)) for key, look in self.shown.items()]
        for key, look in self.others.items():
            mean, error = self.mean_of(look, probs)
            moved = mean - self.stated[key]
            if self.limit.exceeded(mean, moved) and self.limit.exceeded(mean, error):
                found.append((key, mean, error))
        beyond = [abs(error) for _, mean, error in found if self.limit.exceeded(mean, error)]
        return tuple(found), max(beyond, default=0.0)

    @cached_property
    def stated(self) -> dict[Any, float]:
        """Mean predictions of views without a proved error, by the key of the view."""
        return {key: self.mean_of(look, self.given)[0] for key, look in self.others.items()}

    def mean_of(self, look: Look, probs: Array) -> tuple[float, float]:
        """Return the mean prediction and its error."""
        scores, errors, w = self.through(look, probs)
        total = max(float(w.sum()), np.finfo(float).tiny)
        return float(w @ scores) / total, float(w @ errors) / total

    def mean(self, values: Array, weights: Array | None = None) -> tuple[float, float]:
        """Return the weighted mean and its cluster-robust standard error."""
        w = self.rows.weights if weights is None else weights
        found = float(w @ values) / float(w.sum())
        sums = np.bincount(self.unit, w * (values - found))
        return found, float(np.sqrt(sums @ sums)) / float(w.sum())

    def remedy(self, kind: Kind, in_group: bool) -> Tried:
        """Cross-fit a remedy; return it with the loss of each row."""
        given, changed, fits = self.given, self.given.copy(), list[dict[str, float]]()
        inside = self.member(self.about) if in_group else np.ones(len(self.labels), bool)
        for k in range(_FOLDS):
            train, apply = inside & (self.fold != k), inside & (self.fold == k)
            if apply.any() and train.any():
                mend, numbers = self.fit(kind, train)
                changed[apply] = mend(given[apply])
                fits.append(numbers)
        held, loss = self.losses(given), self.losses(changed)
        before, _, off_before, _ = self._errors(given)
        after, after_se, off_after, chance = self._errors(changed)
        names = {name for each in fits for name in each}
        means: Any = {name: float(np.mean([each[name] for each in fits])) for name in names}
        errors = before, after, after_se, off_before, off_after, chance
        gain, (left, excess) = self.mean(held - loss), self.left(changed)
        told: Any = {"left": left, "excess": excess, "loss": self.mean(held)[0], "slope": None, **means}
        return Remedy(kind, in_group, *gain, *errors, rows=len(self.labels), **told), loss

    def best(self, tried: Sequence[Tried]) -> Tried | None:
        """Return the remedy to recommend; None if none helps."""
        before = self.left(self.given)[1]
        least = min(each.excess for each, _ in tried)
        if least < before:
            enough = [pair for pair in tried if pair[0].excess == least]
            return self._simplest(enough, enough[0])
        # The limit does not separate them: none brings more views within it than the raw predictions
        # do.
        best = self._simplest(tried)
        if best is not None and best[0].leaves:  # one for the group alone may leave none there
            inside = [pair for pair in tried if pair[0].in_group and not pair[0].leaves]
            best = self._simplest(inside) or best
        return best

    def _simplest(self, tried: Iterable[Tried], best: Tried | None = None) -> Tried | None:
        """Return the simplest remedy that no other clearly beats, starting from ``best``."""
        for remedy, loss in tried:
            if not remedy.clear:
                continue
            if best is not None and best[0] is not remedy:
                more, error = self.mean(best[1] - loss)
                both = {best[0].name, remedy.name} in ({"temperature", "shift"}, {"factor", "shift"})
                both &= (self.rows.n_classes or 2) == 2 and best[0].in_group == remedy.in_group
                if more <= (0.0 if both else _CLEAR * error):  # both have one parameter
                    continue
            best = remedy, loss
        return best

    def _errors(self, probs: Array) -> tuple[float, float, float, float]:
        """Return the mean error of the view, its standard error, that of its tenths, and by chance."""
        scores, errors, w = self.through(self.about, probs)
        total = float(w.sum())
        order = np.argsort(scores, kind="stable")
        tenth = np.minimum((np.cumsum(w[order]) / total * 10.0).astype(np.intp), 9)
        sums = np.bincount(tenth, (w * errors)[order], 10)
        means = sums / np.maximum(np.bincount(tenth, w[order], 10), np.finfo(float).tiny)
        centred, units = (w * errors)[order] - w[order] * means[tenth], self.unit.max() + 1
        by_unit = np.bincount(tenth * units + self.unit[order], centred, 10 * units).reshape(10, units)
        chance = _OF_CHANCE * float(np.sqrt((by_unit**2).sum(axis=1)).sum()) / total
        return *self.mean(errors, w), float(np.abs(sums).sum()) / total, chance


Mend: TypeAlias = Callable[[Array], Array]


def fit(kind: Kind, probs: Array, labels: Labels, weights: Array) -> tuple[Mend, float]:
    """Fit a remedy; return the correction as a function of probabilities, and its slope."""
    how = {"isotonic": _isotonic, "order": _order}.get(kind, partial(_softmax, kind))
    return how(probs, labels, weights)


def _order(probs: Array, labels: Labels, weights: Array) -> tuple[Mend, float]:
    """Assign columns to classes so that the labels are most likely."""
    logs, m = weights[:, None] * np.log(np.maximum(probs, _SMALLEST)), probs.shape[1]
    won = np.stack([np.bincount(labels, column, m) for column in logs.T])  # by column and class
    _, columns = scipy.optimize.linear_sum_assignment(won.T, maximize=True)
    return lambda more: more[:, columns], 1.0


def _softmax(kind: Kind, probs: Array, labels: Labels, weights: Array) -> tuple[Mend, float]:
    """Fit a slope, shifts, or both."""
    logs, m = np.log(np.maximum(probs, _SMALLEST)), probs.shape[1]
    w, right = weights / weights.sum(), np.zeros_like(probs)
    right[np.arange(len(labels)), labels] = 1.0
    held, start = 1.0 / len(labels), np.append(1.0, np.zeros(m))  # the slope, then shifts
    free = np.append("temperature" in kind, np.full(m, "shift" in kind))

    def split(flat: Array) -> tuple[float, Array]:
        found = start.copy()
        found[free] = flat
        return float(found[0]), found[1:]

    def loss(flat: Array) -> tuple[float, Array]:
        slope, shift = split(flat)
        scores = slope * logs + shift
        normed = scores - logsumexp(scores, axis=1, keepdims=True)
        held_back = held * ((slope - 1.0) ** 2 + float(shift @ shift)) / 2
        gap = w[:, None] * (np.exp(normed) - right)
        of_slope = float((gap * logs).sum()) + held * (slope - 1.0)
        both = np.append(of_slope, gap.sum(axis=0) + held * shift)
        return held_back - float(w @ normed[right == 1.0]), both[free]

    slope, shift = split(scipy.optimize.minimize(loss, start[free], jac=True, method="L-BFGS-B").x)

    def mend(more: Array) -> Array:
        scores = slope * np.log(np.maximum(more, _SMALLEST)) + shift
        return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))

    return mend, slope


def _isotonic(probs: Array, labels: Labels, weights: Array) -> tuple[Mend, float]:
    """Fit isotonic regression for each class, keeping probabilities away from 0 and 1."""
    least = 1.0 / (len(labels) + 2.0)
    columns = range(1, 2) if probs.shape[1] == 2 else range(probs.shape[1])
    steps = []
    for column in columns:
        pooled = DistinctScores.of(probs[:, column], weights)
        steps.append((pooled.scores, pooled.rising(labels == column).clip(least, 1.0 - least)))

    def mend(more: Array) -> Array:
        pairs = zip(columns, steps, strict=True)
        found = np.column_stack([np.interp(more[:, k], *step) for k, step in pairs])
        if probs.shape[1] == 2:
            return np.column_stack([1.0 - found[:, 0], found[:, 0]])
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    return mend, 1.0
