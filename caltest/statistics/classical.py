"""Proper scores, cumulative differences and classical tests: ECD, Brier, Kuiper, Cox, CORP."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import xlogy

from caltest import forms
from caltest._arguments import changed, options, positive_integer
from caltest._sums import over_columns
from caltest.binning import DistinctScores, EqualMass, rising
from caltest.data import Rows
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import CumulativeDifference, EventSum, LabelFunction, LinearSum
from caltest.forms.base import CERTAIN, Array, Labels
from caltest.laws import Classes, GaussianPredictions
from caltest.statistics.base import Listed

# ------------------------------------------------------------------ sums of scores

_EPSILON = float(np.finfo(float).eps)


def _brier(probs: Array) -> Array:
    """Return the Brier score less its expectation.

    It is 2 (‖g‖² − g_k). Every entry is accurate relative to its own size, or exactly 0: a row of 1 −
    1e-30 has an effect, and a uniform one has none.
    """
    rows, top = np.arange(len(probs)), probs.argmax(axis=1)
    highest, others = probs[rows, top], probs.copy()
    others[rows, top] = 0.0
    rest, squares = others.sum(axis=1), np.einsum("ik,ik->i", others, others)
    table = _difference((squares + highest**2)[:, None], probs)
    # Rounding of 1 − highest loses the others if they are small; their sum does not.
    table[rows, top] = _difference(squares, highest * rest)
    return np.asarray(2.0 * table)


def _difference(one: Array, other: Array) -> Array:
    """Subtract; a difference due to rounding alone becomes 0."""
    difference = one - other
    return np.where(np.abs(difference) <= 4.0 * _EPSILON * np.maximum(one, other), 0.0, difference)


class SumOfScores(Listed, takes_weights=True):
    """A sum of scores of the rows, reported as their mean or as z."""

    def given(self, predictions: Rows) -> LinearSum:
        """Return the form for these predictions."""
        if self.default_lens is not None:
            self.probability(predictions)
        probs, total = predictions.probs, predictions.whole.total if self.how == "mean" else 1.0
        if probs.shape[1] > 2:
            return LinearSum(predictions.weighted(_brier(probs)) / total, probs, self.how == "z")
        slopes = predictions.weights  # in y − p; the score of two classes is half that of many
        if self.what != "residual":
            slopes = predictions.weighted(probs[:, 0] - probs[:, 1])
        return EventSum(slopes if total == 1.0 else slopes / total, probs, self.how == "z")


class ESCE(SumOfScores, row="esce"):
    """Expected signed calibration error: observed event rate less mean predicted, for two classes.

    Below 0 the event was predicted too often, above 0 not often enough. More than two classes use the
    lens "top_label", where the event is that the top class is right: below 0 is then overconfident,
    above 0 underconfident. Weighted by their rows, the signed errors of any bins sum to the same
    number, so there is no binning to choose: it is calibration in the large.

    References
    ----------
    Sumler et al. 2025.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "esce"), 6)
    0.2
    """


# ------------------------------------------------------------------ ecd


@options()
class ECD(Listed, row="ecd"):
    """Entropic calibration difference: how much more surprising the labels are than predicted.

    ECD = n⁻¹ Σ_i [−log g_i(y_i) − H(g_i)], H the entropy, in nats. Above 0 the model is
    overconfident, below 0 underconfident, and a calibrated model has 0 on average. To ask only "is
    it overconfident?", a common question of safety, use the alternative "greater". For two classes
    the contribution of one row is never below −0.2785. An error y − p has weight logit p, so
    predictions of 1/2 (for more classes, uniform ones) have no effect.

    Predicted distributions of numbers (:mod:`caltest.predictive`) have an ECD too, with densities for
    probabilities.

    A label with predicted probability 0 is infinitely surprising: the ECD is then +∞, and p is at its
    minimum.

    Parameters
    ----------
    clip : float, optional
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

    reported = ("clip",)

    def given(self, predictions: Rows) -> LinearSum | forms.MeanOfNumbers:
        """Return a mean over the rows; for Gaussian predictions, ECD = ½ (NEES − d)."""
        law: Any = predictions.law
        if isinstance(law, Classes):
            table = predictions.weighted(law.surprises(self.clip))
            table /= predictions.whole.total
            return LinearSum(table, law.probs)
        if self.clip is not None:
            raise InputError("clip is for probabilities of classes; leave it out for densities.")
        if isinstance(law, GaussianPredictions):
            return forms.MeanSquare.of(law, predictions.weights, 0.5, -0.5 * (law.dimension or 1))
        return forms.MeanSurprise.of(law, predictions.weights)


class NEES(Listed, row="nees"):
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

    def given(self, predictions: Rows) -> forms.MeanOfNumbers:
        """Return the form for these predictions."""
        assert isinstance(predictions.law, GaussianPredictions)
        return forms.MeanSquare.of(predictions.law, predictions.weights)


class Brier(SumOfScores, row="brier"):
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


class LogScore(ECD, row="log_score"):
    """Logarithmic score (cross-entropy) minus its expectation: the ECD under its older name.

    n⁻¹ Σ_i [−log g_i(y_i) − H(g_i)], H the entropy.

    See :class:`~caltest.statistics.ECD`, also for ``clip``.

    References
    ----------
    Good 1952; Sumler et al. 2025, Equation 12.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "log_score"), 6)
    0.098083
    """


class Spiegelhalter(SumOfScores, row="spiegelhalter"):
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


# ------------------------------------------------------------------ cumulative

#: Cells of scores, for more rows than can be sorted.
_GRID = 1024


class _InOrder(Listed, takes_weights=True):
    def fitted(self, predictions: Rows) -> Self:
        """Choose quantiles of sampled scores at which to evaluate C, if rows are too many to sort."""
        scores = self.probability(predictions)
        if predictions.part_of is None:
            return self
        shares = np.arange(1, _GRID) / _GRID
        return changed(self, _fit=np.unique(np.quantile(scores, shares, method="inverted_cdf")))

    def given(self, predictions: Rows) -> CumulativeDifference | forms.GriddedDifference:
        """Return the form for these predictions and their order."""
        scores, weights, edges = self.probability(predictions), predictions.weights, self._fit
        how: Any = self.how
        if edges is None:
            return CumulativeDifference(scores, how, weights)
        cells, whole = np.searchsorted(edges, scores, side="left"), predictions.whole.total
        return forms.GriddedDifference(scores, cells, len(edges) + 1, weights, whole, how)


class KolmogorovSmirnov(_InOrder, row="ks"):
    """Kolmogorov–Smirnov calibration error: the largest cumulative difference, for two classes.

    max_x |C(x)|, C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i).

    Errors of the rows below a score are added up and divided by n; the statistic is the largest
    absolute value over all scores, in units of probability, not standardised. There is nothing to
    choose, and an error is weighted by the share of rows that have it. Tied scores are one step.
    With two classes, using the other class's probability gives a different value, because C then
    starts at the other end; :class:`Kuiper` gives the same.
    With more than two classes, the top class is tested (the lens "top_label").

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley, "Calibration of neural networks using
    splines", ICLR 2021; Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for
    probabilistic predictions", JMLR 23 (2022): ECCE-MAD.

    Examples
    --------
    C is 0.15 after the rows of 0.2 and −0.05 after those of 0.9:

    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 0], "ks"), 6)
    0.15
    """


class Kuiper(_InOrder, row="kuiper"):
    """Kuiper calibration error: the range of the cumulative differences, for two classes.

    max_x C(x) − min_x C(x), with C as in :class:`KolmogorovSmirnov`, and C = 0 at the start.

    Errors of the rows between two scores are added up and divided by n; the statistic is the largest
    absolute value over all pairs of scores, in units of probability, not standardised. It is at least
    the Kolmogorov–Smirnov error and at most twice that, and detects errors of opposite signs better.
    Both classes of two give the same value. Ties and lens as in :class:`KolmogorovSmirnov`.

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for probabilistic
    predictions", JMLR 23 (2022): ECCE-R.

    Examples
    --------
    C is 0.15 after the rows of 0.2 and −0.05 after those of 0.9:

    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 0], "kuiper"), 6)
    0.2
    """


# ------------------------------------------------------------------ classical


@options(groups=positive_integer)
class HosmerLemeshow(Listed, row="hosmer_lemeshow"):
    """Hosmer–Lemeshow χ²: predicted against observed events in groups of rows, for two classes.

    H = Σ_g (O_g − E_g)² / (n_g p̄_g (1 − p̄_g)), with O_g observed and E_g expected events. A group
    whose predictions are all 0 or all 1 adds nothing, and makes H infinite if one of them was wrong.
    With more than two classes, the top class is tested (the lens "top_label").

    With ``null="chi2"`` it has one degree of freedom per group that can vary. The usual g − 2 apply to
    predictions fitted by logistic regression on these very rows; with any other predictions they reject
    about 11% of calibrated models at a level of 5%, and up to 17% of those that predict rare events.
    For rare events use the exact null: with g degrees, up to 14% are rejected too.

    Parameters
    ----------
    groups : int, default 10
        Number of groups of equal numbers of rows. Default 10, the authors'; equal predictions stay
        together.

    Raises
    ------
    InputError
        If ``groups`` is not a positive whole number, or there are more than two classes.

    References
    ----------
    Hosmer and Lemeshow 1980; Hosmer, Lemeshow, Sturdivant, "Applied logistic regression", 2013,
    Section 5.2.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.statistics import HosmerLemeshow
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], HosmerLemeshow(groups=2)), 6)
    1.347222
    """

    groups: int = 10

    reported = ("groups",)

    def given(self, predictions: Rows) -> forms.PearsonGroups:
        """Return the form for these predictions and their groups."""
        self.probability(predictions)
        cells = EqualMass(self.groups).cells(predictions)
        count, total = int(cells.max()) + 1, predictions.whole.total
        return forms.PearsonGroups(predictions.probs, cells, count, predictions.weights, total)


class CalibrationInTheLarge(SumOfScores, row="citl"):
    """Calibration in the large: is the event as frequent as predicted, overall? For two classes.

    z = Σ (y_i − p_i) / √(Σ p_i (1 − p_i)).

    Above 0, events were more frequent than predicted (the model is underconfident, with the lens
    "top_label", the default for more than two classes); below 0, less frequent. It is "esce" in units
    of its standard deviation under H0.

    Predictions of 0 and 1 add their errors only. If there are no others, z is 0, or infinite with the
    sign of Σ (y_i − p_i) if some were wrong (positive if that sum is 0).

    References
    ----------
    Cox 1958; Miller, Hui, Tierney, "Validation techniques for logistic regression models", 1991
    (there from a logistic regression, here by the score test).

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "citl"), 6)
    1.131371
    """

    def given(self, predictions: Rows) -> LinearSum:
        """Return the form for these predictions."""
        self.probability(predictions)
        probs = predictions.probs
        variance = float(predictions.weights**2 @ over_columns(np.multiply, probs))
        if variance > CERTAIN or predictions.part_of is not None:
            return super().given(predictions)
        # y − p; wrong labels are nudged upwards, by less in all than sums differ: +∞ on ties.
        apart = 1.0 if predictions.are_alike else 1e-9
        errors = np.array([-1.0, 1.0]) + apart / (len(probs) + 1.0)
        return _AllCertain(predictions.weighted(np.where(probs < 0.5, errors, 0.0)), probs)


class _AllCertain(LinearSum):
    """Σ (y_i − p_i) of certain predictions, over a standard deviation of 0."""

    def reduce(self, sums: Array, fixed: Array) -> Array:
        """Return 0, or infinity with the sign of the sums."""
        return np.where(sums[:, 0] == 0.0, 0.0, np.copysign(np.inf, sums[:, 0]))


class CoxRecalibration(Listed, row="cox"):
    """Cox's test of the recalibration line: intercept 0 and slope 1, for two classes.

    The line is logit P(y = 1) = a + b · logit p.

    The statistic is the χ² of both, with 2 degrees of freedom under ``null="chi2"``; with 1 if all
    predictions are equal, because they determine no slope. :func:`caltest.recalibration` gives a and b.
    With more than two classes, the top class is tested (the lens "top_label").

    Predictions of 0 and 1 have no logit: they are left out if they were right, and make the statistic
    infinite if not. If the logits separate the labels (or all labels are of one class), the likelihood
    only approaches its supremum, which is used as its maximum. The statistic always grows with the
    misfit; Wald's statistic falls to 0 on the way there (Hauck and Donner 1977).

    Raises
    ------
    InputError
        If there are more than two classes.

    Notes
    -----
    Every drawn label vector is fitted by Newton's method, to the last digits; 999 draws
    take 3 s at n = 10 000.

    References
    ----------
    Cox, "Two further applications of a model for binary regression", Biometrika 45 (1958); Miller,
    Hui, Tierney 1991.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.4, 0.7, 0.9], [0, 1, 0, 1], "cox"), 6)
    0.146058
    """

    @property
    def faster(self) -> Phrase:
        """Advice to use one fit instead of one per draw."""
        return Phrase("{option} takes one fit", {"option": Argument("null", "chi2")})

    def given(self, predictions: Rows) -> forms.WeightedRecalibration:
        """Return the form for these predictions."""
        self.probability(predictions)
        kind = forms.LogisticRecalibration if predictions.are_alike else forms.WeightedRecalibration
        return kind(predictions.probs, predictions.weights)


# ------------------------------------------------------------------ corp


class _IsotonicGain(Listed, takes_weights=True):
    def given(self, predictions: Rows) -> LabelFunction:
        """Return the form for these predictions, with tied ones pooled."""
        pooled = DistinctScores.of(self.probability(predictions), predictions.weights)
        return LabelFunction(partial(_miscalibration, self.what, pooled), predictions.probs)


class BrierMCB(_IsotonicGain, row="mcb_brier"):
    """Miscalibration part of the Brier score: how much isotonic recalibration would improve it.

    Mean (y − p)² minus the same with recalibrated p.

    Recalibration is isotonic regression of the labels on p, tied p pooled.
    With more than two classes, the top class is tested (the lens "top_label").

    References
    ----------
    Dimitriadis, Gneiting, Jordan, "Stable reliability diagrams for probabilistic classifiers",
    PNAS 118 (2021).

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "mcb_brier"), 6)
    0.05
    """


class LogMCB(_IsotonicGain, row="mcb_log"):
    """Miscalibration part of the log score: how much isotonic recalibration would improve it.

    Mean −log p(label) minus the same with recalibrated p.

    Infinite where a label of probability 0 was observed. Recalibration and lens as in
    :class:`BrierMCB`.

    References
    ----------
    Dimitriadis, Gneiting, Jordan, PNAS 118 (2021).

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "mcb_log"), 6)
    0.164252
    """


def _miscalibration(score: str, pooled: DistinctScores, probs: Array, labels: Labels) -> float:
    # Count both: a difference would leave rounding errors, which a logarithm near 0 would magnify.
    positives, negatives = (pooled.counted(labels == y) for y in (1, 0))
    scores, sizes = pooled.scores, pooled.sizes
    recalibrated = rising(positives, sizes)
    if score == "Brier":
        # Σ (y − p)² − Σ (y − q)² with y² = y.
        gain = scores**2 - recalibrated**2
        return float((sizes @ gain - 2.0 * positives @ (scores - recalibrated)) / sizes.sum())
    recalibrated = np.clip(recalibrated, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        logs = [np.sum(xlogy(positives, q) + xlogy(negatives, 1.0 - q)) for q in (scores, recalibrated)]
    return float((logs[1] - logs[0]) / sizes.sum())
