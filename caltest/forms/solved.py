"""Logistic recalibration, logit P(y = 1) = a + b · logit p: its likelihood, and tests of (0, 1)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, xlogy

from caltest._parallel import ALONE, Workers
from caltest._work import Work
from caltest.forms.base import (
    CERTAIN,
    ROUNDING,
    Array,
    ChiSquare,
    Form,
    HasChiSquare,
    Labels,
)

_EQUAL = 1e-9  # logits that differ by this, relatively, differ by rounding only
_FLAT = 1e-7  # size of a score that is 0 up to rounding
# Of the climb where terms count differently: steps, what keeps them finite, and where it ends.
_MOST_STEPS, _RIDGE, _CLOSE, _LEAST_STEP = 200, 1e-14, 1e-15, 1e-10
_NEWTON = {"method": "newton", "tol": 1e-10}
_TRUST_REGION = {
    "method": "minimize",
    "min_method": "trust-exact",
    "gtol": 1e-12,
    "max_trust_radius": 1e6,
    "maxiter": 500,
}


@dataclass(frozen=True, eq=False)
class Logits:
    """The logits of predictions of two classes; rows predicted with certainty have none."""

    rows: NDArray[np.intp]  # with a finite logit, (k,), in ascending order of it
    values: Array  # their logits; those that are equal up to rounding are equal
    logs: Array  # logarithms of their two probabilities, (k, 2)
    certain: NDArray[np.intp]  # the other rows
    outcomes: NDArray[np.intp]  # the label that each of them predicts

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
        """How many of intercept and slope the predictions can tell: 0, 1 or 2."""
        return min(len(self.rows), 1 + int(len(self.rows) > 0 and self.values[0] < self.values[-1]))

    def impossible(self, labels: Labels) -> bool:
        """Say whether a label of probability 0 was observed."""
        return bool((labels[self.certain] != self.outcomes).any())

    def loglik(self, labels: Labels, weights: Array | None = None) -> float:
        """Return the log-likelihood of (0, 1), the predictions as they are; labels (k,) sorted."""
        terms = np.where(labels == 1, self.logs[:, 1], self.logs[:, 0])
        return float(terms.sum() if weights is None else weights @ terms)

    def separated(self, labels: Labels, weights: Array | None = None) -> float | None:
        """Return the supremum of the log-likelihood if no slope attains it, else None.

        If all logits of one label lie at or beyond all those of the other, the likelihood grows with
        the slope for ever. In the limit every row is certain but those at the border itself, which
        all have one probability: their share of positives. Equal logits are such a border too, and
        attain it. Labels (k,) are sorted as the logits are.
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
        if weights is None:
            tied = np.array([np.count_nonzero(ones == border), np.count_nonzero(zeros == border)])
            return float(xlogy(tied, tied / max(tied.sum(), 1)).sum())
        at = self.values == border
        counted = np.array([weights[at & (labels == 1)].sum(), weights[at & (labels == 0)].sum()])
        return float(xlogy(counted, counted / counted.sum()).sum())


@dataclass(frozen=True, eq=False)
class Line:
    """The fitted line, logit P(y = 1) = a + b · logit p."""

    params: Array  # (a, b)
    covariance: Array  # the inverse of the information, (2, 2); infinite where that is 0 up to rounding
    loglik: float  # maximum of the log-likelihood
    wald: float  # (a, b − 1) information (a, b − 1)ᵀ


def fit_line(
    values: Array, labels: Labels, *, slope: bool = True, weights: Array | None = None
) -> Line:
    """Maximise the likelihood of a line by statsmodels; the maximum must exist.

    Newton's method from (0, 1) nearly always arrives. It may overshoot where predictions are wild;
    a trust region from the constant line then arrives for certain. Without ``slope`` b is 1, and its
    variance 0. Terms of the likelihood count as weights say, and the covariance is then that of the
    estimates whatever these are: I⁻¹ (Σ w² v x xᵀ) I⁻¹ for I = Σ w v x xᵀ.
    """
    from statsmodels.discrete.discrete_model import Logit  # takes two seconds

    if weights is not None:
        return _fit_weighted(values, labels.astype(np.float64), weights, slope)
    middle, spread = values.mean(), values.std() if slope else 1.0
    # In terms of α + β (x − x̄)/s = a + (b − 1) x, which rounds best.
    design = np.ones((len(values), 1 + slope))
    if slope:
        design[:, 1] = (values - middle) / spread
    constant = np.array([logit(labels.mean()) - middle, -spread][: 1 + slope])
    back = np.array([[1.0, -middle / spread], [0.0, 1.0 / spread]])[:, : 1 + slope]
    with np.errstate(all="ignore"):
        model = Logit(labels.astype(np.float64), design, offset=values, check_rank=False)
        found = _maximum(model, np.zeros(1 + slope), constant)
        change = design @ found
        fitted = values + change
        weights = expit(fitted) * expit(-fitted)
        try:
            inverse = np.linalg.inv((design.T * weights) @ design)
            covariance = np.asarray(back @ inverse @ back.T)
        except np.linalg.LinAlgError:  # all fitted probabilities are 0 or 1 up to rounding
            covariance = np.full((2, 2), np.inf)
    return Line(
        params=back @ found + (0.0, 1.0),
        covariance=covariance,
        loglik=-float(np.logaddexp(0.0, (1.0 - 2.0 * labels) * fitted).sum()),
        wald=float(weights @ change**2),
    )


def _fit_weighted(values: Array, labels: Array, weights: Array, slope: bool) -> Line:
    """Climb the concave likelihood by Newton's steps, halved where one overshoots."""
    middle = float(np.average(values, weights=weights))
    spread = float(np.sqrt(np.average((values - middle) ** 2, weights=weights))) if slope else 1.0
    design = np.ones((len(values), 1 + slope))
    if slope:
        design[:, 1] = (values - middle) / spread
    back = np.array([[1.0, -middle / spread], [0.0, 1.0 / spread]])[:, : 1 + slope]

    def height(params: Array) -> float:
        fitted = values + design @ params
        return -float(weights @ np.logaddexp(0.0, (1.0 - 2.0 * labels) * fitted))

    found = np.zeros(1 + slope)
    loglik = height(found)
    for _ in range(_MOST_STEPS):
        fitted = values + design @ found
        score = design.T @ (weights * (labels - expit(fitted)))
        spread_of = weights * expit(fitted) * expit(-fitted)
        information = (design.T * spread_of) @ design
        information[np.diag_indices(1 + slope)] += _RIDGE * float(np.trace(information)) + CERTAIN
        step = np.linalg.solve(information, score)
        if np.abs(score @ step) <= _CLOSE * (1.0 + abs(loglik)):
            break
        size = 1.0
        while (higher := height(found + size * step)) <= loglik and size > _LEAST_STEP:
            size *= 0.5
        if higher <= loglik:
            break
        found, loglik = found + size * step, higher
    fitted = values + design @ found
    variances = expit(fitted) * expit(-fitted)
    covariance, wald = np.full((2, 2), np.inf), float(weights @ (variances * (design @ found) ** 2))
    with suppress(np.linalg.LinAlgError):  # all fitted probabilities are 0 or 1 up to rounding
        inverse = np.linalg.inv((design.T * (weights * variances)) @ design)
        outer = (design.T * (weights**2 * variances)) @ design
        covariance = np.asarray(back @ inverse @ outer @ inverse @ back.T)
    return Line(params=back @ found + (0.0, 1.0), covariance=covariance, loglik=loglik, wald=wald)


def _maximum(model: Any, start: Array, constant: Array) -> Array:
    def steepness(params: Array) -> float:
        size = float(np.abs(model.score(params)).max())
        return size if np.isfinite(size) else np.inf

    found = _arrive(model, start, _NEWTON)
    if steepness(found) <= _FLAT:
        return found
    safe = _arrive(model, constant, _TRUST_REGION)
    return min(found, safe, _arrive(model, safe, _NEWTON), key=steepness)


def _arrive(model: Any, start: Array, options: dict[str, Any]) -> Array:
    try:
        fit = model.fit(
            start,
            disp=False,
            skip_hessian=True,
            warn_convergence=False,
            callback=lambda *_: None,  # else it warns of probabilities near 0 and 1
            **options,
        )
    except np.linalg.LinAlgError:
        return start
    return np.asarray(fit.params)


@dataclass(frozen=True, eq=False)
class WeightedRecalibration(Form):
    """T = the likelihood-ratio or Wald statistic of (a, b) = (0, 1), terms counted as weights say."""

    probs: Array  #: The predictions, (n, 2).
    wald: bool = False  #: Take Wald's; else the likelihood ratio.
    weights: Array | None = None  #: (n,); None for ones.

    @cached_property
    def logits(self) -> Logits:
        """The predictions' logits."""
        return Logits.of(self.probs)

    @property
    def resolution(self) -> float:
        """Rounding of two log-likelihoods."""
        return ROUNDING * float(len(self.probs) - self.logits.logs.min(axis=1, initial=0.0).sum())

    @cached_property
    def _counted(self) -> Array | None:
        """The weights of the rows that have a logit, sorted by it."""
        return None if self.weights is None else self.weights[self.logits.rows]

    def work(self, draws: int) -> Work:
        """Return a fit for every label vector."""
        return {"fit": float(draws) * len(self.probs)}

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.array([self._evaluate_one(row) for row in labels], dtype=np.float64)

    def _evaluate_one(self, labels: Labels) -> float:
        logits, y, w = self.logits, labels[self.logits.rows].astype(np.intp), self._counted
        if logits.impossible(labels):
            return np.inf
        supremum = logits.separated(y, w)
        if supremum is None:
            line = fit_line(logits.values, y, weights=w)
            if self.wald:
                return line.wald
            supremum = line.loglik
        elif self.wald and logits.estimable == 1 and 0 < y.sum() < len(y):
            return fit_line(logits.values, y, slope=False, weights=w).wald
        return max(0.0, 2.0 * (supremum - logits.loglik(y, w)))


class LogisticRecalibration(HasChiSquare, WeightedRecalibration):
    """The same of terms of equal weight, a χ²."""

    @property
    def chi_square(self) -> ChiSquare:
        """As many degrees of freedom as parameters that the predictions can tell."""
        return ChiSquare(self.logits.estimable)
