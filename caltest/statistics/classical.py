"""Classical tests: calibration in the large, Spiegelhalter, Hosmer and Lemeshow, Cox, CORP."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from caltest._arguments import arguments, choose, positive_integer
from caltest._narrow import over_columns
from caltest.binning import EqualMass
from caltest.data import Rows
from caltest.exceptions import Argument, Phrase
from caltest.forms import (
    LabelFunction,
    LinearSum,
    LogisticRecalibration,
    PearsonGroups,
    WeightedRecalibration,
)
from caltest.forms.base import CERTAIN, Array, Labels
from caltest.statistics.base import SIGNED, BinaryStatistic

# ------------------------------------------------------------------ classical


_TESTS = {"likelihood_ratio": False, "wald": True}


@arguments(groups=positive_integer)
@dataclass(frozen=True)
class HosmerLemeshow(BinaryStatistic):
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


@arguments()
@dataclass(frozen=True)
class CalibrationInTheLarge(BinaryStatistic):
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


@arguments()
@dataclass(frozen=True)
class CoxRecalibration(BinaryStatistic):
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
class _MCB(BinaryStatistic):
    score: ClassVar[Literal["brier", "log"]]

    def given(self, predictions: Rows) -> LabelFunction:
        """Fix the predictions, tied ones pooled."""
        scores, group = np.unique(self.probability(predictions), return_inverse=True)
        group, weights = group.reshape(-1), predictions.weights
        sizes = np.bincount(group, weights=weights).astype(np.float64)
        evaluate = partial(_miscalibration, self.score, scores, group, sizes, weights)
        return LabelFunction(evaluate, predictions.probs)


@arguments()
@dataclass(frozen=True)
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


@arguments()
@dataclass(frozen=True)
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


def _miscalibration(
    score: str,
    scores: Array,
    group: Any,
    sizes: Array,
    weights: Array,
    probs: Array,
    labels: Labels,
) -> float:
    count = partial(np.bincount, group, minlength=len(sizes))
    # Both are counted: a difference has rounding, which a logarithm of 0 would make much of.
    positives, negatives = (count(weights=weights * (labels == y)).astype(np.float64) for y in (1, 0))
    recalibrated = isotonic_regression(positives / sizes, weights=sizes).x
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
