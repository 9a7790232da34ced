"""Remedies: what the usual recalibrations would gain, tried by cross-fitting inside the rows at hand.

Each remedy is fitted to four fifths of the rows and applied to the last fifth, five times, so that
every row has a recalibrated prediction that its own label had no part in. Gains are estimates: they say
which remedy to try, and are not a test of what it leaves.

Of the logarithms of the predictions, log p_k, a remedy is the softmax of slope · log p_k + shift_k,
with a slope ("temperature"), shifts ("shift"), or both; or isotonic regression class by class; or the
same probabilities with the classes in another order ("order"), for columns that were mixed up. Maximum
likelihood, each parameter held by one more row that says "no change", so that a class without an event
has a finite shift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import logsumexp

from caltest._sums import Array
from caltest.binning import DistinctScores
from caltest.data import Rows, Sample
from caltest.lenses import Lens, TopLabel, through
from caltest.sampling import generator

Labels: TypeAlias = NDArray[np.intp]
Kind: TypeAlias = Literal["order", "shift", "temperature", "temperature and shift", "isotonic"]

#: From the simplest on: a later one has to gain clearly more to be chosen.
KINDS: tuple[Kind, ...] = ("order", "temperature", "shift", "temperature and shift", "isotonic")
_FOLDS = 5
_FEWEST = 100  # rows, below which nothing is tried
_MOST = 2e5  # predicted numbers of the rows that are tried
_MOST_ISOTONIC = 100  # classes
_CLEAR = 2.0  # standard errors
_OF_CHANCE = (2.0 / np.pi) ** 0.5  # the mean size of a normal number, in its deviations
_LEAST = 1e-12  # of a probability, for its logarithm


@dataclass(frozen=True)
class Remedy:
    """One recalibration, as cross-fitting estimates what it brings.

    Attributes
    ----------
    name
        "order", "shift", "temperature", "temperature and shift", or "isotonic".
    in_group
        Whether it was fitted to the named group and changes that group only.
    gain, gain_se
        By how much it lowers the mean log loss of all rows tried, in nats, and its standard error.
    before, after
        Mean error of the view that the advice is about, predicted less observed, of these rows.
    after_se
        Standard error of ``after``.
    off_before, off_after
        The mean absolute error over tenths of that view's predictions.
    off_chance
        About what chance makes it of a calibrated model: √(2/π) of the tenths' standard errors.
    slope
        The fitted slope of the logarithms of probabilities; None of remedies without one.
    chosen
        Whether it is the simplest remedy that none gains clearly more than.
    rows
        How many rows were tried.
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
    chosen: bool = False

    @property
    def clear(self) -> bool:
        """Whether the gain is beyond what chance explains, or about."""
        return self.gain > _CLEAR * self.gain_se

    @property
    def leaves(self) -> bool:
        """Whether the mean error that it leaves is beyond what chance explains, or about."""
        return abs(self.after) > _CLEAR * self.after_se


def remedies(
    whole: Sample, lens: str | Lens | None, group: NDArray[np.intp] | None, seed: int
) -> tuple[Remedy, ...]:
    """Try remedies on all rows, and on a group alone.

    The simplest that none gains clearly more than is the one chosen. Where the advice is about a group,
    and that one leaves an error of the group which a remedy of the group alone does not, it is the
    simplest of these.

    Parameters
    ----------
    whole
        Predictions and labels of all rows.
    lens
        Of the view that the advice is about; None for class 1 of two classes, or the top class.
    group
        The places of its rows; None for all.
    seed
        Of the folds.
    """
    possible = whole.rows.probs[np.arange(len(whole.labels)), whole.labels] > 0.0
    stream = generator(seed)
    places = stream.permutation(np.flatnonzero(possible))[: int(_MOST / whole.rows.n_classes)]
    if len(places) < _FEWEST:
        return ()
    rows, labels = whole.rows.take(np.sort(places)), whole.labels[np.sort(places)]
    member = np.ones(len(labels), bool) if group is None else np.isin(np.sort(places), group)
    units = np.arange(len(labels)) if rows.clusters is None else rows.clusters
    numbers = np.unique(units, return_inverse=True)[1]
    fold = (stream.permutation(numbers.max() + 1) % _FOLDS)[numbers]
    looked = lens if lens is not None or rows.n_classes == 2 else TopLabel()
    tried = _Trial(rows, labels, fold, numbers, member, looked)
    found, losses = [], []
    for in_group in (False, True) if group is not None else (False,):
        if in_group and member.sum() < _FEWEST:
            continue
        for kind in KINDS:
            if kind in ("isotonic", "order") and rows.n_classes > _MOST_ISOTONIC:
                continue
            remedy, loss = tried.remedy(kind, in_group)
            found.append(remedy)
            losses.append(loss)
    best = _simplest(range(len(found)), found, losses, tried)
    if best is not None and found[best].leaves:  # an error of the group that one of the group does not
        inside = [k for k, each in enumerate(found) if each.in_group and not each.leaves]
        own = _simplest(inside, found, losses, tried)
        best = best if own is None else own
    return tuple(replace(each, chosen=k == best) for k, each in enumerate(found))


def _simplest(
    those: Iterable[int], found: list[Remedy], losses: list[Array], tried: _Trial
) -> int | None:
    """Return the place of the simplest that none gains clearly more than; None if none is clear."""
    best: int | None = None
    for k in those:
        remedy = found[k]
        if not remedy.clear:
            continue
        if best is not None:
            more, error = tried.mean(losses[best] - losses[k])
            if more <= (0.0 if tried.as_simple(found[best], remedy) else _CLEAR * error):
                continue
        best = k
    return best


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows that are cut into folds: ``unit`` are clusters, or rows."""

    rows: Rows
    labels: Labels
    fold: Labels
    unit: Labels
    member: NDArray[np.bool_]
    lens: str | Lens | None

    def mean(self, values: Array, weights: Array | None = None) -> tuple[float, float]:
        """Return the weighted mean and its standard error, over clusters."""
        w = self.rows.weights if weights is None else weights
        found = float(w @ values) / float(w.sum())
        sums = np.bincount(self.unit, w * (values - found))
        return found, float(np.sqrt(sums @ sums)) / float(w.sum())

    def as_simple(self, one: Remedy, other: Remedy) -> bool:
        """Say whether two remedies have equally many parameters: of two classes a shift is one."""
        both = {one.name, other.name} == {"temperature", "shift"}
        return both and self.rows.n_classes == 2 and one.in_group == other.in_group

    def remedy(self, kind: Kind, in_group: bool) -> tuple[Remedy, Array]:
        """Cross-fit a remedy; return it with the log loss of every row."""
        probs, changed = self.rows.probs, self.rows.probs.copy()
        inside = self.member if in_group else np.ones(len(self.labels), bool)
        slopes = []
        for k in range(_FOLDS):
            train, apply = inside & (self.fold != k), inside & (self.fold == k)
            if not apply.any() or not train.any():
                continue
            mend, slope = fit(kind, probs[train], self.labels[train], self.rows.weights[train])
            changed[apply] = mend(probs[apply])
            slopes.append(slope)
        each = np.arange(len(self.labels)), self.labels
        held, loss = (-np.log(np.maximum(table[each], _LEAST)) for table in (probs, changed))
        before, _, off_before, _ = self._errors(probs)
        after, after_se, off_after, chance = self._errors(changed)
        mean = float(np.mean(slopes)) if "temperature" in kind else None
        gain, gain_se = self.mean(held - loss)
        found = (gain, gain_se, before, after, after_se, off_before, off_after, chance, mean)
        return Remedy(kind, in_group, *found, len(self.labels)), loss

    def _errors(self, probs: Array) -> tuple[float, float, float, float]:
        """Return the mean error of the view, its standard error, that of its tenths, and by chance."""
        view, _ = through(Sample(self.rows.shown_as(probs, self.rows.classes), self.labels), self.lens)
        scores, w = view.rows.probs[:, 1], np.where(self.member, self.rows.weights, 0.0)
        errors, total = scores - view.labels, float(w.sum())
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
    """Fit a remedy; return what it makes of probabilities, and its slope."""
    how = {"isotonic": _isotonic, "order": _order}.get(kind, partial(_softmax, kind))
    return how(probs, labels, weights)


def _order(probs: Array, labels: Labels, weights: Array) -> tuple[Mend, float]:
    """Give every class the column with which the labels are most likely."""
    logs, m = weights[:, None] * np.log(np.maximum(probs, _LEAST)), probs.shape[1]
    won = np.stack([np.bincount(labels, column, m) for column in logs.T])  # by column and class
    _, columns = linear_sum_assignment(won.T, maximize=True)
    return lambda more: more[:, columns], 1.0


def _softmax(kind: Kind, probs: Array, labels: Labels, weights: Array) -> tuple[Mend, float]:
    """Fit a slope, shifts, or both."""
    with_slope, with_shift = "temperature" in kind, "shift" in kind
    logs, m = np.log(np.maximum(probs, _LEAST)), probs.shape[1]
    w, right = weights / weights.sum(), np.zeros_like(probs)
    right[np.arange(len(labels)), labels] = 1.0
    held = 1.0 / len(labels)

    def split(flat: Array) -> tuple[float, Array]:
        slope = float(flat[0]) if with_slope else 1.0
        shift: Array = flat[with_slope:] if with_shift else np.zeros(m)
        return slope, shift

    def loss(flat: Array) -> tuple[float, Array]:
        slope, shift = split(flat)
        scores = slope * logs + shift
        normed = scores - logsumexp(scores, axis=1, keepdims=True)
        held_back = held * ((slope - 1.0) ** 2 + float(shift @ shift)) / 2
        gap = w[:, None] * (np.exp(normed) - right)
        of_slope = [float((gap * logs).sum()) + held * (slope - 1.0)] if with_slope else []
        of_shift = gap.sum(axis=0) + held * shift if with_shift else []
        return held_back - float(w @ normed[right == 1.0]), np.append(of_slope, of_shift)

    start = np.append([1.0] if with_slope else [], np.zeros(m) if with_shift else [])
    slope, shift = split(minimize(loss, start, jac=True, method="L-BFGS-B").x)

    def mend(more: Array) -> Array:
        scores = slope * np.log(np.maximum(more, _LEAST)) + shift
        return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))

    return mend, slope


def _isotonic(probs: Array, labels: Labels, weights: Array) -> tuple[Mend, float]:
    """Fit isotonic regression of every class; no probability is 0 or 1."""
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
