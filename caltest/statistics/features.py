"""Statistics of features: find where predictions are wrong, without groups named in advance."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest._arguments import Whole, among, options, positive_integer, regressor
from caltest._sums import Array
from caltest.clusters import folds_of
from caltest.data import Rows
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import LinearSum
from caltest.forms.features import Cells, LearnerForm, RidgeForm, ScanForm, hat_features, standardised
from caltest.laws import Classes, Predictive
from caltest.statistics.base import Listed

_LEAST = 1e-6  # clipping of a probability, for its log odds


def columns_of(predictions: Rows) -> Array:
    """Return the inputs of a learner, the predictions and all columns, (n, D)."""
    if predictions.n_classes is not None:
        p = predictions.probs[:, 1].clip(_LEAST, 1.0 - _LEAST)
        return standardised(_features(predictions), np.log(p) - np.log1p(-p))
    law: Any = predictions.law
    return standardised(_features(predictions), law.level(), law.spread())


def _features(predictions: Rows) -> Any:
    if predictions.features is None:
        do = f"give {Argument('features', ...)}"
        raise InputError(f"this statistic looks at features, and there are none; {do}.")
    return predictions.features


class OfFeatures(Listed, takes_weights=True):
    """A statistic of residuals and features."""

    def usual(self, predictions: Rows) -> Any:
        """Return the form of the sum of residuals."""
        if predictions.n_classes is None:
            return Listed.of_name["bias"]().given(predictions)
        p = self.probability(predictions)
        table = np.column_stack([-p, 1.0 - p]) * predictions.weights[:, None]
        return LinearSum(table, predictions.probs)


#: Signs of roots that are used, by side.
SIDES = {"both": 0, "over": -1, "under": 1}


@options(min_rows=positive_integer, side=among(*SIDES))
class FeatureScan(OfFeatures, row="feature_scan"):
    """Largest error of any slice by features: intervals of numbers, levels of categories, and any two.

    The value for a slice is the signed root of the likelihood ratio of one shift of the log odds, so
    rare events do not win by skewness. Slices use up to eight quantile bins of each column, and up to
    four of each column in a pair; missing values are a level.

    Parameters
    ----------
    min_rows : int, default 50
        The least number of rows of a slice. Default 50: fewer could only show errors of some 20 points.
    side : {"over", "under", "both"}, default "both"
        Which errors count: "over" (predictions too high), "under", or "both" (default).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, 1000)
    >>> ill = rng.random(1000) < np.where(age > 65, 0.5, 0.2)
    >>> caltest.test(np.full(1000, 0.275), ill, "feature_scan", features={"age": age}, rng=0).pvalue
    0.001
    """

    min_rows: int = 50
    side: str = "both"

    def given(self, predictions: Rows) -> ScanForm:
        """Return the form for these predictions and the slices."""
        usual, features = self.usual(predictions), _features(predictions)
        cells = features.made.get(self.min_rows) or Cells.of(features, self.min_rows)
        features.made[self.min_rows] = cells
        if not cells.count:
            found = f"no slice by features has {self.min_rows} rows or more, and not all"
            raise InputError(f"{found}; give other columns, or leave the features out.")
        given = predictions.law, predictions.weights, usual
        return ScanForm.of(given, cells, SIDES[self.side], predictions.clusters)


class FeatureRidge(OfFeatures, row="feature_ridge"):
    """How well a learner predicts residuals from the features and the prediction.

    The score, with every row left out, of kernel ridge regression with a Gaussian kernel on ranks of
    numbers, levels of categories and the log odds of the prediction. It finds errors that spread over
    many slices. With more than 1 500 rows the kernel is of low rank.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2))
    >>> y = rng.random(500) < 1 / (1 + np.exp(-x[:, 0] * x[:, 1]))
    >>> caltest.test(np.full(500, 0.5), y, "feature_ridge", features=x, rng=0).pvalue
    0.001
    """

    def given(self, predictions: Rows) -> RidgeForm:
        """Return the form for these predictions and the learner."""
        hat = hat_features(columns_of(predictions), len(_features(predictions).columns) + 1)
        return RidgeForm.of(predictions.law, predictions.weights, self.usual(predictions), hat)


@options(model=regressor, folds=Whole(2))
class Learned(OfFeatures, takes_weights=True):
    """How well your own learner predicts residuals from the features and the prediction.

    The mean, over rows, of the residual times its prediction by the learner, fitted to the residuals of
    the other folds: 0 or less if nothing can be predicted. The learner is fitted anew to every draw of
    labels, so the p-value is exact for any learner. :func:`caltest.test` therefore takes 99 draws by
    default, and p-values are .01 or more. "feature_ridge" is much faster, and finds as much on most
    data.

    Parameters
    ----------
    model : regressor
        A regressor of scikit-learn, or any object with ``fit(X, y)`` and ``predict(X)``. X are ranks of
        numbers and indicators of categories, standardised, and the log odds of the prediction; y are
        residuals: the event (0 or 1) less its probability, for numbers the PIT less ½. It is copied
        before every fit. A ``random_state`` of None is set to 0; a model that predicts other numbers
        when fitted to the same data again is refused. Weights of rows count in the mean, not in the
        fit.
    folds : int, default 2
        How many times it is fitted to each draw, every time to all rows but one fold. Rows of one
        cluster are in one fold.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> class Nearest:
    ...     def fit(self, X, y):
    ...         self.X, self.y = X, y
    ...
    ...     def predict(self, X):
    ...         distances = ((X[:, None] - self.X) ** 2).sum(axis=2)
    ...         return self.y[np.argsort(distances, axis=1)[:, :50]].mean(axis=1)
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 2))
    >>> y = rng.random(400) < 1 / (1 + np.exp(-2 * x[:, 0] * x[:, 1]))
    >>> learned = caltest.statistics.Learned(Nearest())
    >>> caltest.test(np.full(400, 0.5), y, learned, features=x, rng=0).pvalue
    0.01
    """

    model: Any
    folds: int = 2

    name = "learned"
    measures = "how well a learner foretells residuals from the features and the prediction"
    laws = (Classes, Predictive)
    usual_resamples = 99

    def given(self, predictions: Rows) -> LearnerForm:
        """Return the form for these predictions, the columns and the folds."""
        usual, columns = self.usual(predictions), columns_of(predictions)
        folds = folds_of(predictions.n_samples, predictions.clusters, self.folds)
        return LearnerForm(predictions.law, predictions.weights, usual, columns, self.model, folds)

    @property
    def parameters(self) -> dict[str, Any]:
        """The kind of model, and the number of folds."""
        return {"model": type(self.model).__name__, "folds": self.folds}

    @property
    def faster(self) -> Phrase:
        """Return advice on how to take less time, as a clause."""
        facts = {"draws": Argument("n_resamples"), "jobs": Argument("n_jobs", -1)}
        return Phrase("fewer draws ({draws}), all cores ({jobs}) or a faster model take less", facts)
