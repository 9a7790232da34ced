"""`scorer` for scikit-learn's searches and cross-validation, and a metric for evaluation harnesses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from caltest._arguments import Whole, anything, arguments
from caltest._visible import quoted
from caltest.binning import EqualMass, reliability_curve
from caltest.bounds.intervals import absolute_bounds
from caltest.data.rows import check_alike
from caltest.data.sample import predicted_by, whole_sample
from caltest.exceptions import InputError
from caltest.lenses import Lens, find_lens, one_probability
from caltest.statistics import ECE, StatisticLike, find_statistic
from caltest.testing import estimate, test


@dataclass(frozen=True)
class Scorer:
    """A scikit-learn scorer that returns minus a calibration error; made by :func:`scorer`.

    Attributes
    ----------
    statistic : str or Statistic
        As in :func:`caltest.estimate`.
    lens : str, Lens or None
        As in :func:`caltest.estimate`.
    sample_weight : bool, str or None
        The request made with :meth:`set_score_request`.

    Examples
    --------
    >>> import caltest
    >>> caltest.scorer("ece", lens="top_label")
    Scorer(statistic='ece', lens='top_label')
    """

    statistic: Any
    lens: Any = None
    sample_weight: bool | str | None = field(default=None, repr=False)

    @arguments(estimator=anything)
    def __call__(self, estimator: Any, X: object, y: object, sample_weight: object = None) -> float:
        """Return the score of a fitted model: 0 is best.

        Parameters
        ----------
        estimator : fitted classifier
            As ``model`` in :meth:`caltest.ReliabilityDisplay.from_estimator`.
        X : array of shape (n, d), or data frame
            As there.
        y : array of shape (n,)
            As there.
        sample_weight : array of shape (n,), optional
            As ``weights`` in :func:`caltest.estimate`.

        Returns
        -------
        float
            Minus the size of the statistic; of one that estimates a square without bias, minus its
            value, which may be below 0.
        """
        probs, labels = predicted_by(estimator, X, y)
        value = estimate(probs, labels, self.statistic, lens=self.lens, weights=sample_weight)
        signed = find_statistic(self.statistic).alternatives[0] == "two-sided"
        return float(-np.abs(value) if signed else -value)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Scorer:
        """Set whether scikit-learn's metadata routing passes weights on, as for its own scorers.

        Parameters
        ----------
        sample_weight : bool, str or None
            True: weights are passed on, and the score is weighted. False: they are not. None:
            scikit-learn raises if weights are passed, as it does without a request. A text: the name
            under which weights are passed.

        Returns
        -------
        Scorer
            This one.

        Raises
        ------
        InputError
            If metadata routing is not enabled.
        """
        from sklearn import get_config

        if not get_config().get("enable_metadata_routing"):
            found = "without metadata routing scikit-learn passes on no weights that are asked for"
            raise InputError(f"{found}; call sklearn.set_config(enable_metadata_routing=True) first.")
        is_name = isinstance(sample_weight, str) and sample_weight.isidentifier()
        if not (is_name or sample_weight is None or isinstance(sample_weight, bool)):
            do = "give True, False, None or a name"
            raise InputError(argument="sample_weight", found=quoted(sample_weight), do=do)
        object.__setattr__(self, "sample_weight", sample_weight)  # in place, as in scikit-learn
        return self

    def get_metadata_routing(self) -> Any:
        """Return the request of this scorer for scikit-learn's metadata routing."""
        from sklearn.utils.metadata_routing import MetadataRequest

        asked = MetadataRequest(owner=repr(self))
        asked.score.add_request(param="sample_weight", alias=self.sample_weight)
        return asked

    def _accept_sample_weight(self) -> bool:
        """Tell scikit-learn to pass on the weights of a fit when metadata routing is disabled."""
        return True


@arguments()
def scorer(statistic: StatisticLike = "ece", *, lens: str | Lens | None = None) -> Scorer:
    """Make a scikit-learn scorer: pass it as ``scoring=`` to ``cross_val_score`` or ``GridSearchCV``.

    Use scores to rank models, and p-values to test them. A score alone does not tell whether a
    model is calibrated. It also depends on the number of rows, so compare scores only between
    folds of one size. A model selected by its score looks better on those rows than it is; test it
    on fresh ones.

    Parameters
    ----------
    statistic : str, Statistic or callable, default "ece"
        As in :func:`caltest.estimate`: a name, an object of :mod:`caltest.statistics`, or a function
        ``f(probs, labels) -> float`` that is large where calibration is bad. The bias of "ece" grows as
        rows get fewer; "skce_uq" and "ece_debiased" do not have it.
    lens : str or Lens, optional
        As in :func:`caltest.estimate`, such as "top_label".

    Returns
    -------
    Scorer
        Called with a fitted classifier, rows and their labels, it returns minus the statistic, so
        that greater is better. A regressor is asked for distributions of numbers, by ``pred_dist``, by
        ``predict(X, return_std=True)`` or, at seven levels, by ``predict(X, quantiles=…)``: take a
        statistic such as "pit_ad". The ``predict`` of all others is read as point forecasts: of the
        mean, for "point_bias" and others, or, if the model's own parameters name a quantile or an
        absolute loss, of that quantile, for "pit_ad". For statistics with a sign, such as "ecd" and
        "citl", it returns minus the absolute value. Labels are matched to the classifier's
        ``classes_``, which may have any names.

    Raises
    ------
    InputError
        If the statistic or lens does not exist; when the scorer is called, if the classifier gives
        no probabilities, or a label is not one of its classes.

    Examples
    --------
    >>> import caltest
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> scoring = caltest.scorer("brier", lens="top_label")
    >>> bool((cross_val_score(GaussianNB(), X, y, scoring=scoring) <= 0.0).all())
    True
    """
    find_statistic(statistic)
    find_lens(lens)
    return Scorer(statistic, lens)


@arguments(n_bins=Whole(1, 12))
def ece_with_interval(
    references: object, predictions: object, *, n_bins: int = 10, rng: Any = None
) -> dict[str, float]:
    """Return the binned calibration error with an exact interval and p-value, as metrics do.

    It takes the arguments, and returns the dictionary, of metrics of the packages that evaluate
    language models: ``compute(references=…, predictions=…)``. A score alone does not tell whether an
    error is more than chance; the interval and the p-value do.

    Parameters
    ----------
    references
        Observed classes, (n,): whether answers were right, or which choice was.
    predictions
        P(class 1), (n,), or probabilities of all classes, (n, m); of more than two the top class is
        looked at. Rows must be independent.
    n_bins
        Number of bins, with equal numbers of rows, up to 12. Default 10. Predictions and observed
        rates are compared in bins, so that errors which cancel within one do not show.
    rng
        As in :func:`caltest.test`, for the p-value.

    Returns
    -------
    dict
        ``ece``, the mean distance of observed rates from mean predictions; ``low`` and ``high``, exact
        95% bounds of what it would be with the true probabilities in place of observed outcomes;
        ``n``, the number of rows; and ``p_value``, exact too, of calibrated predictions. With few rows
        ``ece`` is above 0 by chance, and may lie above ``high``.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.scoring import ece_with_interval
    >>> confidence = np.repeat([0.6, 0.9], 500)
    >>> right = np.arange(1000) % 10 < 6
    >>> found = ece_with_interval(references=right, predictions=confidence, n_bins=2, rng=0)
    >>> {name: round(value, 3) for name, value in found.items()}
    {'ece': 0.15, 'low': 0.111, 'high': 0.19, 'n': 1000, 'p_value': 0.001}
    """
    view, _ = one_probability(whole_sample(predictions, references), None, "the error is of")
    check_alike(view.rows, "the interval", "give predictions as an array")
    binning = EqualMass(n_bins)
    bins = reliability_curve(view.rows, view.labels, binning)
    low, high = absolute_bounds(bins.predicted, bins.counts.astype(np.float64), bins.events, 0.025)
    found = test(view.rows, view.labels, ECE(binning), rng=rng)
    rows = view.rows.n_samples
    return {"ece": found.statistic, "low": low, "high": high, "n": rows, "p_value": found.pvalue}
