"""Logistic recalibration, logit P(y = 1) = a + b · logit p: its likelihood, and tests of (0, 1)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import expit, logit, xlogy

from caltest._parallel import ALONE, Workers
from caltest._sums import Places
from caltest.forms.base import CERTAIN, ROUNDING, Array, ChiSquare, HasChiSquare, Labels, OneByOne

_EQUAL = 1e-9  # relative difference up to which logits are equal
# The climb: most steps, terms that keep steps finite, and its end.
_MOST_STEPS, _RIDGE, _CLOSE, _LEAST_STEP = 200, 1e-14, 1e-15, 1e-10
_LOST = 1e-8  # share of the likelihood above which a remaining gain is not rounding


@dataclass(frozen=True, eq=False)
class Logits:
    """The logits of predictions of two classes; rows predicted with certainty have none."""

    rows: Places  # rows with a finite logit, (k,), in ascending order of it
    values: Array  # their logits; made equal if they differ by rounding only
    logs: Array  # logarithms of their two probabilities, (k, 2)
    certain: Places  # the other rows
    outcomes: Places  # the label that each of these predicts

    @classmethod
    def of(cls, probs: Array) -> Self:
        """Prepare predictions (n, 2)."""
        possible = (probs > 0.0).all(axis=1)
        rows, certain = np.flatnonzero(possible), np.flatnonzero(~possible)
        logs = np.log(probs[rows])
        order = np.argsort(logs[:, 1] - logs[:, 0], kind="stable")
        logs = logs[order]
        values = logs[:, 1] - logs[:, 0]
        first = np.ones(len(values), dtype=np.bool_)
        first[1:] = np.diff(values) > _EQUAL * (1.0 + np.abs(values[1:]))
        values = values[first][np.cumsum(first) - 1] if len(values) else values
        return cls(rows[order], values, logs, certain, probs[certain].argmax(axis=1))

    @property
    def estimable(self) -> int:
        """Number of parameters that the predictions can identify, of intercept and slope: 0, 1 or 2."""
        return min(len(self.rows), 1 + int(len(self.rows) > 0 and self.values[0] < self.values[-1]))

    def impossible(self, labels: Labels) -> bool:
        """Return whether a label of probability 0 was observed."""
        return bool((labels[self.certain] != self.outcomes).any())

    def loglik(self, labels: Labels, weights: Array) -> float:
        """Return the log-likelihood of (0, 1), the unchanged predictions; labels (k,) sorted."""
        return float(weights @ np.where(labels == 1, self.logs[:, 1], self.logs[:, 0]))

    def separated(self, labels: Labels, weights: Array) -> float | None:
        """Return the supremum of the log-likelihood if no slope attains it, else None.

        If all logits of one label lie at or beyond all those of the other, the likelihood grows with
        the slope without end. In the limit every row is certain except those at the border itself,
        which all have one probability: their share of positives. If all logits are equal, they are such
        a border too, and attain it. Labels (k,) are sorted as the logits are.
        """
        ones, zeros = self.values[labels == 1], self.values[labels == 0]
        if len(ones) == 0 or len(zeros) == 0:
            return 0.0
        if ones[0] >= zeros[-1]:
            border = ones[0]
        elif zeros[0] >= ones[-1]:
            border = zeros[0]
        else:
            return None
        at = self.values == border
        counted = np.array([weights[at & (labels == 1)].sum(), weights[at & (labels == 0)].sum()])
        return float(xlogy(counted, counted / counted.sum()).sum())


@dataclass(frozen=True, eq=False)
class Line:
    """The fitted line, logit P(y = 1) = a + b · logit p."""

    params: Array  # (a, b)
    covariance: Array  # the inverse of the information, (2, 2); infinite if that is 0 up to rounding
    loglik: float  # maximum of the log-likelihood


def fit_line(values: Array, labels: Labels, weights: Array, *, slope: bool = True) -> Line:
    """Maximise the likelihood of a line; the maximum must exist.

    The concave likelihood is maximised by Newton's steps, halved if one overshoots. Without ``slope`` b
    is 1, and its variance 0. Terms of the likelihood are weighted, and the covariance is the estimates'
    for any weights: I⁻¹ (Σ w² v x xᵀ) I⁻¹ for I = Σ w v x xᵀ.
    """
    middle = float(np.average(values, weights=weights))
    spread = float(np.sqrt(np.average((values - middle) ** 2, weights=weights))) if slope else 1.0
    # In terms of α + β (x − x̄)/s = a + (b − 1) x, which rounds best.
    design = np.ones((len(values), 1 + slope))
    if slope:
        design[:, 1] = (values - middle) / spread
    back = np.array([[1.0, -middle / spread], [0.0, 1.0 / spread]])[:, : 1 + slope]
    turned = 1.0 - 2.0 * labels

    def height(fitted: Array) -> float:
        away = turned * fitted  # log(1 + exp(away)), in NumPy's fast functions
        return -float(weights @ (np.log1p(np.exp(-np.abs(away))) + np.maximum(away, 0.0)))

    def climb(found: Array) -> tuple[Array, float]:
        """Return the end point, and approximately the gain that remains there."""
        close, fitted = False, values + design @ found
        loglik = height(fitted)
        for _ in range(_MOST_STEPS):
            tail = np.exp(-np.abs(fitted))
            score = design.T @ (weights * (labels - np.where(fitted > 0.0, 1.0, tail) / (1.0 + tail)))
            information = (design.T * (weights * tail / (1.0 + tail) ** 2)) @ design
            information[np.diag_indices(1 + slope)] += _RIDGE * float(np.trace(information)) + CERTAIN
            step = np.linalg.solve(information, score)
            gain, size = float(np.abs(score @ step)) / (1.0 + abs(loglik)), 1.0
            close = close or gain <= _CLOSE
            while (higher := height(values + design @ (found + size * step))) <= loglik:
                size *= 0.5
                if close or size <= _LEAST_STEP:
                    break
            if close or higher <= loglik:  # the gain of the last step is below the rounding of height
                return (found + step if close else found), gain
            found, loglik = found + size * step, higher
            fitted = values + design @ found
        return found, np.inf

    found, left = climb(np.zeros(1 + slope))
    if left > _LOST:  # among certain rows no step is right: start again from a constant line
        level = float(np.average(labels, weights=weights))
        again, less = climb(np.array([logit(level) - middle, -spread])[: 1 + slope])
        found = again if less < left else found
    fitted = values + design @ found
    variances = expit(fitted) * expit(-fitted)
    covariance = np.full((2, 2), np.inf)
    with suppress(np.linalg.LinAlgError):  # all fitted probabilities are 0 or 1 up to rounding
        inverse = np.linalg.inv((design.T * (weights * variances)) @ design)
        outer = (design.T * (weights**2 * variances)) @ design
        covariance = np.asarray(back @ inverse @ outer @ inverse @ back.T)
    return Line(back @ found + (0.0, 1.0), covariance, height(fitted))


@dataclass(frozen=True, eq=False)
class WeightedRecalibration(OneByOne):
    """T = the likelihood-ratio statistic of (a, b) = (0, 1), with weighted terms."""

    probs: Array  #: The predictions, (n, 2).
    weights: Array  #: (n,).

    @cached_property
    def logits(self) -> Logits:
        """The logits of the predictions."""
        return Logits.of(self.probs)

    @property
    def resolution(self) -> float:
        """Rounding error of two log-likelihoods."""
        return ROUNDING * float(len(self.probs) - self.logits.logs.min(axis=1, initial=0.0).sum())

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        """Return the value for one label vector (n,)."""
        logits = self.logits
        y, w = labels[logits.rows].astype(np.intp), self.weights[logits.rows]
        if logits.impossible(labels):
            return np.inf
        supremum = logits.separated(y, w)
        if supremum is None:
            supremum = fit_line(logits.values, y, w).loglik
        return max(0.0, 2.0 * (supremum - logits.loglik(y, w)))


class LogisticRecalibration(HasChiSquare, WeightedRecalibration):
    """The likelihood-ratio statistic with equal weights, a χ²."""

    @property
    def chi_square(self) -> ChiSquare:
        """One degree of freedom for every parameter that the predictions can identify."""
        return ChiSquare(self.logits.estimable)
