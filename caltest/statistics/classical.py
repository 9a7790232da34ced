"""Proper scores and classical tests: the ECD, Brier, Spiegelhalter, Hosmer and Lemeshow, Cox, CORP."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from scipy.special import xlogy

from caltest._arguments import choose, options, positive_integer
from caltest._sums import over_columns
from caltest.binning import DistinctScores, EqualMass, rising
from caltest.data import Rows
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import (
    LabelFunction,
    LinearSum,
    LogisticRecalibration,
    MeanOfNumbers,
    MeanSquare,
    MeanSurprise,
    PearsonGroups,
    WeightedRecalibration,
)
from caltest.forms.base import CERTAIN, Array, Labels
from caltest.laws import Classes, GaussianPredictions, Predictive
from caltest.statistics.base import SIGNED, BinaryStatistic, Statistic

# ------------------------------------------------------------------ ecd


@options()
class ECD(Statistic, takes_weights=True):
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

    def given(self, predictions: Rows) -> LinearSum | MeanOfNumbers:
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
            return MeanSquare.of(law, predictions.weights, 0.5, -0.5 * (law.dimension or 1))
        return MeanSurprise.of(law, predictions.weights)


@options()
class NEES(Statistic, takes_weights=True):
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

    def given(self, predictions: Rows) -> MeanOfNumbers:
        """Fix the predictions."""
        assert isinstance(predictions.law, GaussianPredictions)
        return MeanSquare.of(predictions.law, predictions.weights)


# ------------------------------------------------------------------ scores


_EPSILON = float(np.finfo(float).eps)


@options()
class Brier(Statistic, takes_weights=True):
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


@options()
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


@options()
class Spiegelhalter(Statistic, takes_weights=True):
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


# ------------------------------------------------------------------ classical


_TESTS = {"likelihood_ratio": False, "wald": True}


@options(groups=positive_integer)
class HosmerLemeshow(BinaryStatistic, takes_weights=True):
    """Hosmer–Lemeshow χ²: predicted against observed events in groups of rows, for two classes.

    H = Σ_g (O_g − E_g)² / (n_g p̄_g (1 − p̄_g)), with O_g counted and E_g expected events. A group
    whose predictions are all 0 or all 1 adds nothing, and makes H infinite if one of them was wrong.
    With more than two classes, the top class is tested (the lens "top_label").

    With ``null="chi2"`` it has as many degrees of freedom as groups that can vary. The usual g − 2
    belong to predictions fitted by logistic regression on these very rows; with predictions of any
    other origin they reject about 11% of calibrated models at a level of 5%, and up to 17% of those
    that predict rare events. For rare events take the exact null, g degrees reject up to 14% too.

    Parameters
    ----------
    groups
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

    name = "hosmer_lemeshow"
    growth = 1.0
    measures = "Hosmer and Lemeshow's chi-square"
    reported = ("groups",)

    def given(self, predictions: Rows) -> PearsonGroups:
        """Fix the predictions and their groups."""
        self.probability(predictions)
        cells = EqualMass(self.groups).cells(predictions)
        count, total = int(cells.max()) + 1, predictions.whole.total
        return PearsonGroups(predictions.probs, cells, count, predictions.weights, total)


@options()
class CalibrationInTheLarge(BinaryStatistic, takes_weights=True):
    """Calibration in the large: is the event as frequent as predicted, overall? For two classes.

    z = Σ (y_i − p_i) / √(Σ p_i (1 − p_i)).

    Above 0, events were more frequent than predicted (the model is underconfident, through the lens
    "top_label", by which more than two classes are seen); below 0, less frequent. It is "esce" in
    units of its standard deviation under H0.

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

    name = "citl"
    growth = 0.5
    measures = "calibration in the large, observed less predicted, standardised"
    monotone = True
    alternatives = SIGNED
    of_parts = True

    def given(self, predictions: Rows) -> LinearSum:
        """Fix the predictions."""
        p, w = self.probability(predictions), predictions.weights
        probs = predictions.probs
        variance = float(w**2 @ over_columns(np.multiply, probs))
        if variance <= CERTAIN and predictions.part_of is None:
            return _AllCertain(predictions.weighted(_errors_of_certainty(probs)), probs)
        # y − p is p₀ if y = 1 and −p₁ else; 1 − p₁ would lose a small p₀.
        table = predictions.weighted(np.column_stack([-p, probs[:, 0]]))
        return LinearSum(table, probs, standardised=True)


class _AllCertain(LinearSum):
    """Σ (y_i − p_i) of certain predictions, over a standard deviation of 0."""

    def reduce(self, sums: Array, fixed: Array) -> Array:
        """Return 0, or infinity with the sign of the sums."""
        return np.where(sums[:, 0] == 0.0, 0.0, np.copysign(np.inf, sums[:, 0]))


def _errors_of_certainty(probs: Array) -> Array:
    """Return the table of y − p; wrong labels are raised, by less than 1 together: +∞ on ties."""
    raised = 1.0 / (len(probs) + 1.0)
    unlikely = probs < 0.5
    return np.where(unlikely, np.array([-1.0, 1.0]) + raised, 0.0)


@options()
class CoxRecalibration(BinaryStatistic, takes_weights=True):
    """Cox's test of the recalibration line: intercept 0 and slope 1, for two classes.

    The line is logit P(y = 1) = a + b · logit p.

    The statistic is the χ² of both, with 2 degrees of freedom under ``null="chi2"``; with 1 if all
    predictions are equal, since they tell no slope. What a and b are :func:`caltest.recalibration`
    shows.
    With more than two classes, the top class is tested (the lens "top_label").

    Predictions of 0 and 1 have no logit: they are left out if they were right, and make the statistic
    infinite if not. Where the labels are separated by the logits (all of one class, too), the
    likelihood only approaches its supremum, which is taken for its maximum; Wald's statistic, which
    falls to 0 on the way there (Hauck and Donner 1977), is then replaced by the likelihood ratio.

    Parameters
    ----------
    test
        "likelihood_ratio" (default: it grows with the misfit, always) or "wald".

    Raises
    ------
    InputError
        If there is no such test, or there are more than two classes.

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

    test: Literal["likelihood_ratio", "wald"] = "likelihood_ratio"

    name = "cox"
    growth = 1.0
    measures = "chi-square of recalibration, intercept 0 and slope 1"
    reported = ("test",)

    def __post_init__(self) -> None:
        choose("test", self.test, _TESTS)

    @property
    def faster(self) -> Phrase:
        """One fit instead of one per draw."""
        return Phrase("{option} takes one fit", {"option": Argument("null", "chi2")})

    def given(self, predictions: Rows) -> WeightedRecalibration:
        """Fix the predictions."""
        self.probability(predictions)
        kind = LogisticRecalibration if predictions.are_alike else WeightedRecalibration
        return kind(predictions.probs, predictions.weights, _TESTS[self.test])


# ------------------------------------------------------------------ corp


@dataclass(frozen=True)
class _MCB(BinaryStatistic, takes_weights=True):
    score: ClassVar[Literal["brier", "log"]]

    def given(self, predictions: Rows) -> LabelFunction:
        """Fix the predictions, tied ones pooled."""
        pooled = DistinctScores.of(self.probability(predictions), predictions.weights)
        return LabelFunction(partial(_miscalibration, self.score, pooled), predictions.probs)


@options()
class BrierMCB(_MCB):
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

    name = "mcb_brier"
    measures = "miscalibration component of the Brier score"
    score = "brier"


@options()
class LogMCB(_MCB):
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

    name = "mcb_log"
    measures = "miscalibration component of the log score"
    score = "log"


def _miscalibration(score: str, pooled: DistinctScores, probs: Array, labels: Labels) -> float:
    # Both are counted: a difference has rounding, which a logarithm of 0 would make much of.
    positives, negatives = (pooled.counted(labels == y) for y in (1, 0))
    scores, sizes = pooled.scores, pooled.sizes
    recalibrated = rising(positives, sizes)
    if score == "brier":
        # Σ (y − p)² − Σ (y − q)² with y² = y.
        gain = scores**2 - recalibrated**2
        return float((sizes @ gain - 2.0 * positives @ (scores - recalibrated)) / sizes.sum())
    recalibrated = np.clip(recalibrated, 0.0, 1.0)
    before, after = (_log_loss(q, positives, negatives) for q in (scores, recalibrated))
    return float((before - after) / sizes.sum())


def _log_loss(q: Array, positives: Array, negatives: Array) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.sum(xlogy(positives, q) + xlogy(negatives, 1.0 - q)))
