"""Logistic recalibration, logit P(y = 1) = a + b · logit p: its likelihood, and tests of (0, 1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, xlogy

from caltest._parallel import ALONE, Workers
from caltest.forms.base import (
    ROUNDING,
    Array,
    ChiSquare,
    HasChiSquare,
    Labels,
)

_EQUAL = 1e-9  # logits that differ by this, relatively, differ by rounding only
_FLAT = 1e-7  # size of a score that is 0 up to rounding
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
    """The logits of predictions of two classes; rows predicted with certainty have none.

    Attributes
    ----------
    rows
        Rows with a finite logit, (k,), in ascending order of it.
    values
        Their logits; those that are equal up to rounding are equal.
    logs
        Logarithms of their two probabilities, (k, 2).
    certain, outcomes
        The other rows, and the label that each predicts.
    """

    rows: NDArray[np.intp]
    values: Array
    logs: Array
    certain: NDArray[np.intp]
    outcomes: NDArray[np.intp]

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
        """Say whether a label came true that had probability 0."""
        return bool((labels[self.certain] != self.outcomes).any())

    def loglik(self, labels: Labels) -> float:
        """Return the log-likelihood of (0, 1), the predictions as they are; labels (k,) sorted."""
        return float(np.where(labels == 1, self.logs[:, 1], self.logs[:, 0]).sum())

    def separated(self, labels: Labels) -> float | None:
        """Return the supremum of the log-likelihood if no slope attains it, else None.

        If all logits of one label lie at or beyond all those of the other, the likelihood grows with
        the slope for ever. In the limit every row is certain but those at the border itself, which
        all have one probability: their share of positives. Equal logits are such a border too, and
        attain it.

        Parameters
        ----------
        labels
            Sorted as the logits are, (k,).
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
        tied = np.array([np.count_nonzero(ones == border), np.count_nonzero(zeros == border)])
        return float(xlogy(tied, tied / max(tied.sum(), 1)).sum())


@dataclass(frozen=True, eq=False)
class Line:
    """The fitted line, logit P(y = 1) = a + b · logit p.

    Attributes
    ----------
    params, covariance
        (a, b), and the inverse of the information, (2, 2): infinite where that is 0 up to rounding.
        If b was held at 1, its variance is 0.
    loglik
        Maximum of the log-likelihood.
    wald
        (a, b − 1) information (a, b − 1)ᵀ.
    """

    params: Array
    covariance: Array
    loglik: float
    wald: float


def fit_line(values: Array, labels: Labels, *, slope: bool = True) -> Line:
    """Maximise the likelihood of a line by statsmodels; the maximum must exist.

    Newton's method from (0, 1) nearly always arrives. It may overshoot where predictions are wild;
    a trust region from the constant line then arrives for certain.

    Parameters
    ----------
    values, labels
        Logits and labels, (k,).
    slope
        Estimate b; else it is 1.
    """
    from statsmodels.discrete.discrete_model import Logit  # takes two seconds

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
        covariance = _covariance((design.T * weights) @ design, back)
    return Line(
        params=back @ found + (0.0, 1.0),
        covariance=covariance,
        loglik=-float(np.logaddexp(0.0, (1.0 - 2.0 * labels) * fitted).sum()),
        wald=float(weights @ change**2),
    )


def _covariance(information: Array, back: Array) -> Array:
    try:
        return np.asarray(back @ np.linalg.inv(information) @ back.T)
    except np.linalg.LinAlgError:  # all fitted probabilities are 0 or 1 up to rounding
        return np.full((2, 2), np.inf)


def _maximum(model: Any, start: Array, constant: Array) -> Array:
    found = _arrive(model, start, _NEWTON)
    if _steepness(model, found) <= _FLAT:
        return found
    safe = _arrive(model, constant, _TRUST_REGION)
    polished = _arrive(model, safe, _NEWTON)
    return min(found, safe, polished, key=lambda params: _steepness(model, params))


def _arrive(model: Any, start: Array, options: dict[str, Any]) -> Array:
    try:
        fit = model.fit(
            start,
            disp=False,
            skip_hessian=True,
            warn_convergence=False,
            callback=_no_comment,  # else it warns of probabilities near 0 and 1
            **options,
        )
    except np.linalg.LinAlgError:
        return start
    return np.asarray(fit.params)


def _no_comment(*_: Any) -> None:
    pass


def _steepness(model: Any, params: Array) -> float:
    size = float(np.abs(model.score(params)).max())
    return size if np.isfinite(size) else np.inf


@dataclass(frozen=True, eq=False)
class LogisticRecalibration(HasChiSquare):
    """T = the likelihood-ratio or Wald χ² of (a, b) = (0, 1).

    Attributes
    ----------
    probs
        The predictions, (n, 2).
    wald
        Take Wald's; else the likelihood ratio.
    """

    probs: Array
    wald: bool = False

    @cached_property
    def logits(self) -> Logits:
        """The predictions' logits."""
        return Logits.of(self.probs)

    @property
    def resolution(self) -> float:
        """Rounding of two log-likelihoods."""
        return ROUNDING * float(len(self.probs) - self.logits.logs.min(axis=1, initial=0.0).sum())

    @property
    def chi_square(self) -> ChiSquare:
        """As many degrees of freedom as parameters that the predictions can tell."""
        return ChiSquare(self.logits.estimable)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.array([self._evaluate_one(row) for row in labels], dtype=np.float64)

    def _evaluate_one(self, labels: Labels) -> float:
        logits, y = self.logits, labels[self.logits.rows].astype(np.intp)
        if logits.impossible(labels):
            return np.inf
        supremum = logits.separated(y)
        if supremum is None:
            line = fit_line(logits.values, y)
            if self.wald:
                return line.wald
            supremum = line.loglik
        elif self.wald and logits.estimable == 1 and 0 < y.sum() < len(y):
            return fit_line(logits.values, y, slope=False).wald
        return max(0.0, 2.0 * (supremum - logits.loglik(y)))
