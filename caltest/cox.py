"""The recalibration line of a model: its intercept and slope, with tests of 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import gammaincc, ndtri

from caltest import _printers
from caltest._arguments import arguments
from caltest._parallel import single_threaded_blas
from caltest.data import Sample, sample
from caltest.data.rows import refuse_clusters, without_zeros
from caltest.forms.recalibration import Line, Logits, fit_line
from caltest.lenses import Lens, through
from caltest.results import Result
from caltest.statistics import CoxRecalibration

Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class ChiSquareTest:
    """A likelihood-ratio test.

    Attributes
    ----------
    statistic
        Twice the difference of the log-likelihoods; infinite if a label of probability 0 was observed.
    degrees
        Degrees of freedom; 0 if the predictions leave nothing to test.
    pvalue
        In (0, 1], by the chi-square law: asymptotic.
    """

    statistic: float
    degrees: int
    pvalue: float

    def __str__(self) -> str:
        return _printers.written(self, "summary")


@dataclass(frozen=True, repr=False)
class Recalibration(Result):
    """A fitted recalibration line, logit P(y = 1) = intercept + slope · logit p.

    A calibrated model has intercept 0 and slope 1. Values that the data cannot determine are NaN.

    Attributes
    ----------
    intercept, slope : float
        Maximum-likelihood estimates. A slope below 1 means that predictions are too extreme, above
        1 that they are not extreme enough.
    intercept_se, slope_se : float
        Standard errors, from the information at the estimates.
    in_the_large, in_the_large_se : float
        The intercept with the slope held at 1, and its standard error: calibration in the large.
    test_both : ChiSquareTest
        Test of intercept 0 and slope 1.
    test_in_the_large : ChiSquareTest
        Test of intercept 0 given slope 1.
    test_slope : ChiSquareTest
        Test of slope 1, whatever the intercept. Its statistic and that of ``test_in_the_large``
        add up to that of ``test_both``.
    separated : bool
        Whether the logits separate the labels, so that no finite line fits best.
    n_samples : int
        Rows.
    lens : str or None
        Label of the lens; None for binary predictions as they are.
    warnings : tuple of str
        Sentences a reader should know.
    effective_n : float or None
        Effective number of rows, if they have weights; else None.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=1000, temperature=0.5, rng=0)
    >>> fit = caltest.recalibration(sure.probs, sure.labels)  # through "top_label"
    >>> round(fit.slope, 2), [round(end, 2) for end in fit.slope_interval]
    (0.61, [0.51, 0.72])
    >>> fit.test_slope.pvalue < 0.001, fit.lens
    (True, 'top_label')
    """

    intercept: float
    slope: float
    intercept_se: float
    slope_se: float
    in_the_large: float
    in_the_large_se: float
    test_both: ChiSquareTest
    test_in_the_large: ChiSquareTest
    test_slope: ChiSquareTest
    separated: bool
    n_samples: int
    lens: str | None = None
    warnings: tuple[str, ...] = ()
    effective_n: float | None = None

    derived = "intercept_interval", "slope_interval", "in_the_large_interval"

    @property
    def intercept_interval(self) -> Interval:
        """Wald's 95% confidence interval of the intercept."""
        return _interval(self.intercept, self.intercept_se)

    @property
    def slope_interval(self) -> Interval:
        """Wald's 95% confidence interval of the slope."""
        return _interval(self.slope, self.slope_se)

    @property
    def in_the_large_interval(self) -> Interval:
        """Wald's 95% confidence interval of the intercept given slope 1."""
        return _interval(self.in_the_large, self.in_the_large_se)


@arguments()
def recalibration(
    probs: object,
    labels: object,
    *,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    weights: object = None,
) -> Recalibration:
    """Fit the recalibration intercept and slope: logit P(y = 1) = a + b · logit p.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), or data frame
        Predicted probabilities, as in :func:`caltest.test`.
    labels : array of shape (n,)
        Observed classes, as in :func:`caltest.test`.
    lens : str or Lens, optional
        Which probability to look at: "top_label", "class:3", "top:5" or an object of
        :mod:`caltest.lenses` that leaves two classes. Default None: class 1 of two classes, the
        top label of more.
    class_names : sequence of str or int, optional
        Names of the classes, in the order of the columns, as in :func:`caltest.test`.
    weights : array of shape (n,), optional
        How much each row counts, as in :func:`caltest.test`. The weighted likelihood is maximised,
        with standard errors that stay right for weights that are not counts; tests are then
        Wald's. Default None: all rows have equal weight.

    Returns
    -------
    Recalibration
        Frozen; ``print`` it, or call ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, or the lens leaves more than two
        classes.

    Notes
    -----
    Fitted by Newton's method. Predictions of 0 or 1 have no logit, so these rows are left
    out; if one of them was wrong, every χ² is infinite.

    References
    ----------
    Cox, "Two further applications of a model for binary regression", Biometrika 45 (1958); Miller,
    Hui, Tierney, "Validation techniques for logistic regression models", Statistics in Medicine 10
    (1991).

    Examples
    --------
    >>> from caltest import recalibration
    >>> from caltest.simulation import tempered
    >>> sure = tempered(n_samples=1000, temperature=0.5, rng=0)
    >>> fit = recalibration(sure.probs, sure.labels)
    >>> fit.slope_interval[1] < 1.0
    True
    """
    whole = sample(probs, labels, weights=weights, class_names=class_names)
    refuse_clusters(whole.rows.clusters, "the line that recalibrates, with its intervals,")
    return recalibration_of(without_zeros(whole), lens)


def recalibration_of(whole: Sample, lens: str | Lens | None = None) -> Recalibration:
    """Fit the line to predictions and labels already checked; see :func:`recalibration`."""
    view, lens_label = through(whole, lens, CoxRecalibration.default_lens)
    CoxRecalibration().probability(view.rows)
    with single_threaded_blas():
        logits, labels = Logits.of(view.rows.probs), view.labels
        y, k = labels[logits.rows], logits.estimable
        w = view.rows.weights[logits.rows]
        mixed = bool(y.any() and not y.all())
        supremum = logits.separated(y, w)
        level = fit_line(logits.values, y, w, slope=False) if mixed else None
        line = fit_line(logits.values, y, w) if supremum is None else None
    separated = supremum is not None and len(y) > 0 and not (mixed and k == 1)
    # Log-likelihoods of (0, 1), of the best (a, 1) and of the best (a, b).
    none, one = logits.loglik(y, w), level.loglik if level else 0.0
    two = line.loglik if line else supremum or 0.0
    impossible = np.inf if logits.impossible(labels) else 0.0

    def test(gain: float, degrees: int) -> ChiSquareTest:
        statistic = (max(0.0, gain) if degrees else 0.0) + impossible
        p = gammaincc(0.5 * degrees, 0.5 * statistic) if degrees else float(statistic == 0.0)
        return ChiSquareTest(statistic, degrees, max(float(p), float(np.finfo(float).tiny)))

    gains = [2.0 * (two - none), 2.0 * (one - none), 2.0 * (two - one)]
    remarks = []
    if not view.rows.are_alike:  # gains of weighted likelihoods have no known law
        gains[1] = gains[1] if level is None else _distance(level, 1)
        if line is not None:
            gains[0], gains[2] = _distance(line, 2), _distance(line, 2, first=1)
        elif k == 1:
            gains[0] = gains[1]
    if len(logits.certain):
        wrong = int(np.count_nonzero(labels[logits.certain] != logits.outcomes))
        were = "was" if wrong == 1 else "were"
        proof = f"{wrong} of them {were} wrong, which proves the model miscalibrated"
        some = f"{len(logits.certain)} of {len(labels)} rows were predicted with certainty"
        found = f"{some} and have no logit, so they are left out"
        remarks.append(f"{found}; {proof if wrong else 'all of them were right'}.")
    if separated and mixed:
        remarks.append("The logits separate the labels: ever steeper lines fit ever better.")
    elif separated:
        remarks.append("All labels fitted are of one class: ever more extreme lines fit ever better.")
    elif k == 1:
        remarks.append("All predictions are equal: they tell no slope.")
    estimates = _estimates(line if line or k == 2 else level, free=2 if line else 1)
    tests = test(gains[0], k), test(gains[1], min(k, 1)), test(gains[2], k // 2)
    effective = None if view.rows.are_alike else view.rows.effective
    about: Any = separated, len(labels), lens_label, (*view.rows.notes, *remarks), effective
    return Recalibration(*estimates, *_estimates(level, free=1)[::2], *tests, *about)


def _distance(line: Line, last: int, first: int = 0) -> float:
    """Return Wald's χ² for intercept 0 and slope 1, or for one of them."""
    change = np.asarray(line.params - (0.0, 1.0))[first:last]
    with suppress(np.linalg.LinAlgError):
        return float(change @ np.linalg.solve(line.covariance[first:last, first:last], change))
    return np.inf


def _estimates(line: Line | None, free: int) -> tuple[float, float, float, float]:
    """Return a, b and their standard errors; NaN without a line, or if b is not free."""
    if line is None:
        return (np.nan,) * 4
    a, b = (float(value) for value in line.params)
    errors = [float(value) for value in np.sqrt(np.diag(line.covariance))]
    return (a, b, errors[0], errors[1]) if free == 2 else (a, np.nan, errors[0], np.nan)


def _interval(value: float, error: float) -> Interval:
    half = float(ndtri(0.975)) * error
    return value - half, value + half
