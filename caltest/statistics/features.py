"""Statistics of features: where predictions are wrong, when nobody has named the groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest._arguments import choose, options, positive_integer
from caltest._sums import Array
from caltest.data import Rows
from caltest.exceptions import Argument, InputError
from caltest.forms import LinearSum
from caltest.forms.features import Cells, KernelRidge, RidgeForm, ScanForm, standardised
from caltest.statistics.base import Listed

_LEAST = 1e-6  # of a probability, for its log odds


def columns_of(predictions: Rows) -> Array:
    """Return what a learner is given of rows: what is predicted, and all columns, (n, D)."""
    if predictions.n_classes is not None:
        p = predictions.probs[:, 1].clip(_LEAST, 1.0 - _LEAST)
        return standardised(_features(predictions), np.log(p) - np.log1p(-p))
    law: Any = predictions.law
    return standardised(_features(predictions), law.level(), law.spread())


def _features(predictions: Rows) -> Any:
    if predictions.features is None:
        raise InputError(
            f"this statistic looks at features, and there are none; give {Argument('features', ...)}."
        )
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


#: Which sign of a root counts, by the side.
SIDES = {"both": 0, "over": -1, "under": 1}


@options(min_rows=positive_integer)
class FeatureScan(OfFeatures, row="feature_scan"):
    """Largest error of any slice by features: intervals of numbers, levels of categories, and any two.

    Of every slice the signed root of the likelihood ratio of one shift of the log odds, so that rare
    events do not win by skewness. Slices are of up to eight quantile bins of each column, and of up to
    four of every two; missing values are a level.

    Parameters
    ----------
    min_rows
        The least number of rows of a slice. Default 50: in fewer only errors of some 20 points could
        be found.
    side
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

    def __post_init__(self) -> None:
        choose("side", self.side, SIDES)

    def given(self, predictions: Rows) -> ScanForm:
        """Fix the predictions and the slices."""
        usual, features = self.usual(predictions), _features(predictions)
        cells = features.made.get(self.min_rows) or Cells.of(features, self.min_rows)
        features.made[self.min_rows] = cells
        if not cells.count:
            raise InputError(
                f"no slice by features has {self.min_rows} rows or more, and not all; give other "
                "columns, or leave the features out."
            )
        given = predictions.law, predictions.weights, usual
        return ScanForm.of(given, cells, SIDES[self.side], predictions.clusters)


class FeatureRidge(OfFeatures, row="feature_ridge"):
    """How well a learner foretells residuals from the features and the prediction.

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
        """Fix the predictions and the learner."""
        usual, columns = self.usual(predictions), columns_of(predictions)
        hat = KernelRidge.of(columns, len(_features(predictions).columns) + 1).features
        return RidgeForm.of(predictions.law, predictions.weights, usual, hat)
