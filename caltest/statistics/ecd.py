"""The entropic calibration difference (ECD) of classes and of densities, and the NEES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from caltest._arguments import arguments
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import LinearSum, MeanSquare, MeanSurprise
from caltest.predictive import GaussianPredictions, Predictive
from caltest.pvalues import Alternative
from caltest.statistics.base import SIGNED, Partwise, Statistic


@arguments()
@dataclass(frozen=True)
class ECD(Statistic):
    """Entropic calibration difference: the mean surprise of the labels less the surprise expected.

    ECD = n⁻¹ Σ_i [−log g_i(y_i) − H(g_i)], H the entropy, in nats. Above 0 the model is
    over-confident, below 0 under-confident, and 0 on average if it is calibrated. The safety question,
    "is it over-confident?", is the alternative "greater". Of two classes, one row is never below
    −0.2785; an error y − p counts logit p, so the ECD is blind to predictions of 1/2 (of more classes,
    to uniform ones).

    Predicted distributions of numbers (:mod:`caltest.predictive`) have an ECD too, with densities for
    probabilities.

    A label whose probability is 0 is infinitely surprising: the ECD is then +∞ and p at its minimum.

    Parameters
    ----------
    clip
        Raise probabilities below this to it, inside the logarithms. Default None: clipping hides the
        labels that a model calls impossible. With it the ECD is finite, and 0 on average still.

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

    name: ClassVar[str] = "ecd"
    measures: ClassVar[str] = "entropic calibration difference, over-confident above 0"
    alternatives: ClassVar[tuple[Alternative, ...]] = SIGNED

    def given(self, predictions: Rows) -> LinearSum:
        """Fix the predictions: a sum of one entry a row."""
        return self._of_rows(predictions.n_samples, predictions)

    def in_parts(self, whole: int, glimpse: Callable[[], Rows]) -> Partwise:
        """There is nothing to fit."""
        return Partwise(self, partial(self._of_rows, whole))

    def _of_rows(self, whole: int, predictions: Rows) -> LinearSum:
        table = predictions.surprises(self.clip)
        table /= whole
        return LinearSum(table, predictions.probs)

    def given_densities(self, predictive: Predictive) -> MeanSurprise | MeanSquare:
        """Fix predicted distributions; of Gaussian ones, ECD = ½ (NEES − d)."""
        if self.clip is not None:
            raise InputError("clip goes with probabilities of classes; leave it out for densities.")
        if isinstance(predictive, GaussianPredictions):
            return MeanSquare(predictive, 0.5, -0.5 * (predictive.dimension or 1))
        return MeanSurprise(predictive)

    @property
    def parameters(self) -> dict[str, Any]:
        """The clipping, if any."""
        return {} if self.clip is None else {"clip": self.clip}


@arguments()
@dataclass(frozen=True)
class NEES(Statistic):
    """Normalised estimation error squared of Gaussian predictions: n⁻¹ Σ (x − μ)ᵀ C⁻¹ (x − μ).

    It is d on average if the predictions are calibrated, more if they are over-confident, less if
    under-confident: NEES = d + 2 ECD. Its law is known: n·NEES is χ² with n·d degrees of freedom,
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

    name: ClassVar[str] = "nees"
    measures: ClassVar[str] = "normalised estimation error squared"
    alternatives: ClassVar[tuple[Alternative, ...]] = SIGNED

    def given(self, predictions: Rows) -> MeanSquare:
        """Refuse: these are classes."""
        raise InputError(
            "'nees' looks at Gaussian predictions of numbers; give a "
            "caltest.predictive.GaussianPredictions, or use 'ecd' for probabilities of classes."
        )

    def given_densities(self, predictive: Predictive) -> MeanSquare:
        """Fix the predictions."""
        if not isinstance(predictive, GaussianPredictions):
            raise InputError(
                f"'nees' looks at Gaussian predictions, and these are {type(predictive).__name__}; "
                "use 'ecd', which looks at any."
            )
        return MeanSquare(predictive)
