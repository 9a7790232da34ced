"""Numbers beside the checks of an audit, which prove nothing: the usual ones, and errors in units.

The usual numbers are, of two classes, those of the probability of class 1, of more those of the
confidence in the top class, but for the log loss, which is of the full vector. Of predicted
distributions of numbers, errors are stated in units of the outcome. None of them is in the family of
checks or intervals of an audit.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from caltest._sums import Array
from caltest.auditing.sizes import Design, half_width
from caltest.binning import rising
from caltest.cox import Recalibration, recalibration_of
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.laws import Pool, Predictive
from caltest.lenses import through
from caltest.statistics import ECE

_MOST_SMOOTHED = 20_000  # rows of the smooth curve
_SPAN, _STEP = 0.75, 0.01  # of the curve: share of the rows near a point, and how far points are apart
_LEAST = 1e-15  # of a probability, for its logarithm; as scikit-learn has it
_STATED = 0.95  # probability of the interval that is widened


@dataclass(frozen=True)
class UsualNumbers:
    """Numbers that are usually printed of a model; NaN where the rows do not determine one.

    Attributes
    ----------
    lens
        Which probability they are of; None for that of class 1 of two classes.
    ece
        Expected calibration error, 15 bins of equal width (Guo et al. 2017).
    brier, miscalibration, discrimination, uncertainty
        Brier score of that probability, miscalibration − discrimination + uncertainty, by isotonic
        regression (Dimitriadis, Gneiting, Jordan 2021).
    log_loss
        Mean log loss of the full prediction, in nats, probabilities held at 1e-15 or more.
    auc, accuracy
        Area under the ROC curve of two classes; accuracy of the top class of more. Else None.
    slope, intercept
        Of the recalibration line; ``intercept`` is that with slope 1 (calibration in the large).
    ici, e50, e90
        Mean, median and 90th percentile of the distance of the predictions from a loess curve of what
        was observed (Austin and Steyerberg 2019); None where rows have weights.
    observed_to_expected
        Events observed over events expected, O/E.
    """

    lens: str | None
    ece: float
    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    log_loss: float
    auc: float | None
    accuracy: float | None
    slope: float
    intercept: float
    ici: float | None
    e50: float | None
    e90: float | None
    observed_to_expected: float


def usual_numbers(whole: Sample, line: Recalibration | None = None) -> UsualNumbers:
    """Return the usual numbers of predictions and labels already checked, ``line`` if it is fitted."""
    view, lens = through(whole, None, "top_label")
    p, y = view.rows.probs[:, 1], view.labels.astype(np.float64)
    w = view.rows.weights / view.rows.weights.sum()
    order = np.argsort(p, kind="stable")
    ordered = p[order]
    first = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))  # of equal predictions
    scores, of_scores = ordered[first], np.add.reduceat(w[order], first)
    events = np.add.reduceat((w * y)[order], first)
    rates = events / of_scores
    fitted = rising(events, of_scores)
    event_rate, brier = float(w @ y), float(w @ (p - y) ** 2)
    calibrated = brier - float(of_scores @ ((scores - rates) ** 2 - (fitted - rates) ** 2))
    uncertainty = event_rate * (1.0 - event_rate)
    of_label = whole.rows.probs[np.arange(len(whole.labels)), whole.labels]
    line, statistic = line or recalibration_of(view), ECE().fitted(view.rows)
    two = whole.rows.n_classes == 2
    others = of_scores - events  # pairs of an event and another row; ties count half
    pairs = float(events.sum() * others.sum())
    auc = float(events @ (np.cumsum(others) - others / 2)) / pairs if pairs > 0.0 else float("nan")
    smooth = _distances(ordered, y[order]) if view.rows.are_alike else None
    ici = e50 = e90 = None
    if smooth is not None:
        ici, (e50, e90) = float(smooth.mean()), np.quantile(smooth, (0.5, 0.9)).tolist()
    return UsualNumbers(
        lens=lens,
        ece=statistic.given(view.rows).value(view.labels),
        brier=brier,
        miscalibration=max(brier - calibrated, 0.0),
        discrimination=max(uncertainty - calibrated, 0.0),
        uncertainty=uncertainty,
        log_loss=float(-w @ np.log(np.maximum(of_label, _LEAST))),
        auc=auc if two else None,
        accuracy=None if two else event_rate,
        slope=line.slope,
        intercept=line.in_the_large,
        ici=ici,
        e50=e50,
        e90=e90,
        observed_to_expected=event_rate / float(w @ p) if w @ p > 0.0 else float("nan"),
    )


def _distances(p: Array, y: Array) -> Array | None:
    """Return how far ordered predictions are from a loess curve, of all rows or of every k-th."""
    from statsmodels.nonparametric.smoothers_lowess import lowess

    step = max(1, -(-len(p) // _MOST_SMOOTHED))
    if p[0] == p[-1]:
        return np.full(1, abs(float(p[0]) - float(y.mean())))
    p, y = p[step // 2 :: step], y[step // 2 :: step]
    delta = _STEP * float(p[-1] - p[0])
    with np.errstate(all="ignore"):  # of few different predictions there is no curve
        curve = lowess(y, p, frac=_SPAN, it=0, delta=delta, return_sorted=False)
    found = np.abs(np.clip(curve, 0.0, 1.0) - p)
    return found if np.isfinite(found).all() else None


# ------------------------------------------------------------------ in units of the outcome


@dataclass(frozen=True)
class InUnits:
    """Errors in units of the outcome: estimates, which prove nothing.

    Attributes
    ----------
    rows
        How many rows they are of.
    predicted, observed
        Mean predicted mean, and mean outcome; None where distributions state no mean.
    low, high
        About where the mean error lies, predicted less observed: a t interval of its own, with the
        audit's confidence.
    factor
        By what the distance of the ends of 95% intervals from the median would have to be multiplied
        for them to contain 95% of these outcomes, once the mean error is taken off (where means are
        stated); None where there is no such number, and of quantile forecasts.
    factor_low, factor_high
        About where it lies, by order statistics, with the audit's confidence; None where rows have
        weights or come in clusters.
    spread
        Of few members, which state no such interval: by what their distances from their mean would have
        to be multiplied for these outcomes to lie as far from it on average (root mean square), once
        the mean error is taken off. Else None.
    """

    rows: int
    predicted: float | None
    observed: float | None
    low: float | None
    high: float | None
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    spread: float | None = None

    @classmethod
    def of(cls, rows: Rows, outcomes: Array, design: Design, level: float) -> InUnits:
        """Estimate what correction some rows would need."""
        law: Any = rows.law
        predicted = observed = low = high = None
        error = 0.0  # where distributions state no mean
        with suppress(InputError), np.errstate(over="ignore", invalid="ignore"):
            (mean, _), w = law.mean_and_variance(), rows.weights
            predicted, observed = float(w @ mean / w.sum()), float(w @ outcomes / w.sum())
            error = design.stretch * (predicted - observed)
            predicted = observed + error
            sums = design.sums(w * (design.stretch * (mean - outcomes) - error))
            half = half_width(sums, float(w.sum()), level / 2)
            if np.isfinite([error - half, error + half]).all():
                low, high = error - half, error + half
            else:  # no number is as large
                predicted, observed, error = None, None, 0.0
        factor = _widening(law, outcomes + error, design.plain, level)
        few = isinstance(law, Pool) and factor[0] is None
        spread = _spread(rows, outcomes, error) if few else None
        return cls(rows.n_samples, predicted, observed, low, high, *factor, spread)


def _spread(rows: Rows, outcomes: Array, error: float) -> float | None:
    """Return by what members would have to be spread around their mean."""
    members: Any = rows.law.without(outcomes)  # type: ignore[attr-defined]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance = members.mean_and_variance()
        # Of an outcome that is as one of N members: (N + 1) / (N − 1) times their variance.
        expected = (members.size + 1) / max(members.size - 1, 1) * float(rows.weights @ variance)
        seen = float(rows.weights @ (outcomes + error - mean) ** 2)
    return float(np.sqrt(seen / expected)) if 0.0 < expected < np.inf and seen < np.inf else None


def _widening(
    law: Predictive, outcomes: Array, plain: bool, level: float
) -> tuple[float | None, float | None, float | None]:
    """Return by what the ends of intervals have to move away from the median, with an interval."""
    # Of quantile forecasts outcomes are known as cells, and few members have no such quantiles.
    if law.levels is not None or (1.0 - _STATED) * getattr(law, "size", np.inf) < 4.0:
        return None, None, None
    n = law.n_samples
    low, middle, high = (law.quantile(np.full(n, tau)) for tau in (0.025, 0.5, 0.975))
    over = outcomes - middle
    room = np.where(over > 0.0, high - middle, low - middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.sort(np.where(over == 0.0, 0.0, over / room))
    ranks = np.ceil(_STATED * n), binom.ppf(level / 2, n, _STATED), 1 + binom.isf(level / 2, n, _STATED)
    factor, *ends = (float(times[int(min(max(rank, 1), n)) - 1]) for rank in ranks)
    if not np.isfinite(factor):
        return None, None, None
    return factor, *(ends if plain else (None, None))
