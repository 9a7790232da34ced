"""CORP: the miscalibration component (MCB) of a proper score, by isotonic recalibration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from caltest._arguments import arguments
from caltest.data import Rows
from caltest.forms import LabelFunction
from caltest.forms.base import Array, Labels
from caltest.statistics.base import Statistic
from caltest.statistics.ece import two_classes


@dataclass(frozen=True)
class _MCB(Statistic):
    score: ClassVar[Literal["brier", "log"]]
    default_lens: ClassVar[str | None] = "top_label"

    def given(self, predictions: Rows) -> LabelFunction:
        """Fix the predictions, tied ones pooled."""
        scores, group = np.unique(two_classes(self, predictions), return_inverse=True)
        sizes = np.bincount(group).astype(np.float64)
        evaluate = partial(_miscalibration, self.score, scores, group.reshape(-1), sizes)
        return LabelFunction(evaluate, predictions.probs)


@arguments()
@dataclass(frozen=True)
class BrierMCB(_MCB):
    """Miscalibration component of the Brier score: mean (y − p)² less that of the recalibrated p.

    Recalibration is isotonic regression of the labels on p, tied p pooled. Two classes; more are
    seen through the lens "top_label".

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

    name: ClassVar[str] = "mcb_brier"
    measures: ClassVar[str] = "miscalibration component of the Brier score"
    score: ClassVar[Literal["brier", "log"]] = "brier"


@arguments()
@dataclass(frozen=True)
class LogMCB(_MCB):
    """Miscalibration component of the log score: mean −log p(label) less that of the recalibrated p.

    Infinite where a label came true whose probability was 0. Recalibration and lens as in
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

    name: ClassVar[str] = "mcb_log"
    measures: ClassVar[str] = "miscalibration component of the log score"
    score: ClassVar[Literal["brier", "log"]] = "log"


def _miscalibration(
    score: str, scores: Array, group: Any, sizes: Array, probs: Array, labels: Labels
) -> float:
    positives = np.bincount(group, weights=labels, minlength=len(sizes)).astype(np.float64)
    recalibrated = isotonic_regression(positives / sizes, weights=sizes).x
    if score == "brier":
        # Σ (y − p)² − Σ (y − q)² with y² = y.
        gain = scores**2 - recalibrated**2
        return float((sizes @ gain - 2.0 * positives @ (scores - recalibrated)) / sizes.sum())
    recalibrated = np.clip(recalibrated, 0.0, 1.0)
    return float(
        (_log_loss(scores, positives, sizes) - _log_loss(recalibrated, positives, sizes)) / sizes.sum()
    )


def _log_loss(q: Array, positives: Array, sizes: Array) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.sum(xlogy(positives, q) + xlogy(sizes - positives, 1.0 - q)))
