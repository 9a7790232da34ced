"""Proper scores and the entropic calibration difference: sums over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest._arguments import arguments
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import LinearSum, MeanSquare, MeanSurprise
from caltest.forms.base import Array
from caltest.laws import Classes, GaussianPredictions, Predictive
from caltest.statistics.base import SIGNED, Statistic

# ------------------------------------------------------------------ ecd


@arguments()
@dataclass(frozen=True)
class ECD(Statistic):
    """Entropic calibration difference: how much more surprising the labels are than predicted.

    ECD = n⁻¹ Σ_i [−log g_i(y_i) − H(g_i)], H the entropy, in nats. Above 0 the model is
    overconfident, below 0 underconfident, and a calibrated model has 0 on average. To ask only "is
    it overconfident?", a common question of safety, use the alternative "greater". For two classes
    the contribution of one row is never below −0.2785. An error y − p has weight logit p, so
    predictions of 1/2 (for more classes, uniform ones) have no effect.

    Predicted distributions of numbers (:mod:`caltest.predictive`) have an ECD too, with densities for
    probabilities.

    A label with predicted probability 0 is infinitely surprising: the ECD is then +∞, and p at its
    minimum.

    Parameters
    ----------
    clip
        Raise smaller probabilities to this value inside the logarithms. The ECD is then finite,
        and still 0 on average for a calibrated model. Default None, because clipping hides labels
        of predicted probability 0.

    Raises
    ------
    InputError
        If ``clip`` is not between 0 and 1.

    References
    ----------
    Sumler, Devlin, Maskell, Lane, "An entropic metric for measuring calibration of machine learning
    models", 2025, Equations 8, 12 and 15.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "ecd"), 6)
    0.098083
    """

    clip: float | None = None

    name = "ecd"
    measures = "entropic calibration difference, overconfident above 0"
    alternatives = SIGNED
    laws = (Classes, Predictive)
    reported = ("clip",)
    of_parts = True

    def given(self, predictions: Rows) -> LinearSum | MeanSurprise | MeanSquare:
        """Return a mean over the rows; of Gaussian predictions, ECD = ½ (NEES − d)."""
        law = predictions.law
        if isinstance(law, Classes):
            table = predictions.weighted(law.surprises(self.clip))
            table /= predictions.whole.total
            return LinearSum(table, law.probs)
        if self.clip is not None:
            raise InputError("clip is for probabilities of classes; leave it out for densities.")
        assert isinstance(law, Predictive)
        if isinstance(law, GaussianPredictions):
            return MeanSquare(law, predictions.weights, 0.5, -0.5 * (law.dimension or 1))
        return MeanSurprise(law, predictions.weights)


@arguments()
@dataclass(frozen=True)
class NEES(Statistic):
    """Normalised estimation error squared: squared errors over predicted variances, for Gaussians.

    n⁻¹ Σ (x − μ)ᵀ C⁻¹ (x − μ), with predicted means μ and covariances C.

    It is d on average if the predictions are calibrated, more if they are overconfident, less if
    underconfident: NEES = d + 2 ECD. Its law is known: n·NEES is χ² with n·d degrees of freedom,
    so ``null="chi2"`` is exact. The predictions are a :class:`caltest.predictive.GaussianPredictions`.

    References
    ----------
    Bar-Shalom, Li, Kirubarajan 2001, Section 5.4; Sumler et al. 2025, Equations 7 and 11.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.GaussianPredictions([0.0, 1.0, 2.0], [1.0, 1.0, 4.0])
    >>> caltest.estimate(predicted, [1.0, 1.0, 4.0], "nees")
    0.6666666666666666
    """

    name = "nees"
    measures = "normalised estimation error squared"
    alternatives = SIGNED
    laws = (GaussianPredictions,)

    def given(self, predictions: Rows) -> MeanSquare:
        """Fix the predictions."""
        assert isinstance(predictions.law, GaussianPredictions)
        return MeanSquare(predictions.law, predictions.weights)


# ------------------------------------------------------------------ scores


_EPSILON = float(np.finfo(float).eps)


@arguments()
@dataclass(frozen=True)
class Brier(Statistic):
    """Brier score minus its expectation: how much worse the model scores than it expects.

    n⁻¹ Σ_i [‖e(y_i) − g_i‖² − (1 − ‖g_i‖²)], e(y) the one-hot label.

    A Brier score mixes calibration with how hard the labels are to predict. Its expectation under
    H0 depends on the predictions only, so the difference measures miscalibration. Above 0 the
    model is overconfident, below 0 underconfident. For two classes it is the score (y − p)² of the
    one probability, half the squared norm. An error y − p has weight 1 − 2p, so predictions of 1/2
    (for more classes, uniform ones) have no effect.

    References
    ----------
    Brier 1950; Spiegelhalter, "Probabilistic prediction in patient management and clinical trials",
    Statistics in Medicine 5 (1986).

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "brier"), 6)
    0.05
    """

    name = "brier"
    measures = "Brier score less its expectation if calibrated, overconfident above 0"
    alternatives = SIGNED
    of_parts = True

    def given(self, predictions: Rows) -> LinearSum:
        """Return the mean over the rows of score less expected score."""
        table = predictions.weighted(_brier_deviations(predictions.probs))
        table /= predictions.whole.total
        return LinearSum(table, predictions.probs)


@arguments()
@dataclass(frozen=True)
class LogScore(ECD):
    """Logarithmic score (cross-entropy) minus its expectation: the ECD under its older name.

    n⁻¹ Σ_i [−log g_i(y_i) − H(g_i)], H the entropy.

    It is the entropic calibration difference by its older name, see
    :class:`~caltest.statistics.ECD`, also for ``clip``.

    References
    ----------
    Good 1952; Sumler et al. 2025, Equation 12.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "log_score"), 6)
    0.098083
    """

    name = "log_score"
    measures = "logarithmic score less its expectation if calibrated, overconfident above 0"


@arguments()
@dataclass(frozen=True)
class Spiegelhalter(Statistic):
    """Spiegelhalter's z: the Brier score minus its expectation, in standard deviations.

    For two classes z = Σ (y − p)(1 − 2p) / √(Σ (1 − 2p)² p (1 − p)); for more, the same with the
    Brier score of all classes. The test is two-sided by default: above 0 the model is
    overconfident, below 0 underconfident, and a one-sided test would miss one of these. The
    p-values are those of :class:`Brier`; ``null="normal"`` is the classical one.

    If no label can move the Brier score (every prediction is 1/2, or certain), z is 0, and +∞ if a
    label of probability 0 was observed.

    References
    ----------
    Spiegelhalter 1986.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "spiegelhalter"), 6)
    0.416667
    """

    name = "spiegelhalter"
    growth = 0.5
    measures = "Spiegelhalter's z, overconfident above 0"
    alternatives = SIGNED
    of_parts = True

    def given(self, predictions: Rows) -> LinearSum:
        """Fix the predictions."""
        table = predictions.weighted(_brier_deviations(predictions.probs))
        return LinearSum(table, predictions.probs, standardised=True)


def _brier_deviations(probs: Array) -> Array:
    """Return the Brier score less its expectation for every row and label, (n, m).

    It is 2 (‖g‖² − g_k), of two classes half of that. Every entry is right relative to its own size,
    or exactly 0: a row of 1 − 1e-30 counts, and a uniform one does not.
    """
    if probs.shape[1] == 2:
        difference, table = probs[:, 1] - probs[:, 0], np.empty_like(probs)
        np.multiply(probs[:, 1], difference, out=table[:, 0])
        np.multiply(probs[:, 0], -difference, out=table[:, 1])
        return table
    rows, top = np.arange(len(probs)), probs.argmax(axis=1)
    highest, others = probs[rows, top], probs.copy()
    others[rows, top] = 0.0
    rest, squares = others.sum(axis=1), np.einsum("ik,ik->i", others, others)
    table = _difference((squares + highest**2)[:, None], probs)
    # 1 − highest is lost in rounding where the others are small; their sum is not.
    table[rows, top] = _difference(squares, highest * rest)
    return np.asarray(2.0 * table)


def _difference(one: Array, other: Array) -> Array:
    """Subtract; what is left by rounding alone is 0."""
    difference = one - other
    return np.where(np.abs(difference) <= 4.0 * _EPSILON * np.maximum(one, other), 0.0, difference)
