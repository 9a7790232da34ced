"""What the data say of a look: what it claims, what came true, and the reliability diagram."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from caltest.auditing.bounded import Bounded
from caltest.auditing.looks import Look
from caltest.auditing.result import Reliability, View
from caltest.binning import ConsistencyBand, EqualMass, reliability_curve
from caltest.data import Sample
from caltest.forms import Side

_MOST_BINS = 15
_ROWS_OF_A_BIN = 20
_ROUNDING = 1e-12  # of means of probabilities


def described(
    look: Look, sample: Sample, bounded: Bounded | None, band: ConsistencyBand | None
) -> View:
    """Return the view of a look.

    Parameters
    ----------
    look, sample
        What is looked at, with its predictions and labels.
    bounded
        Its bounds, if it has any.
    band
        The band of its reliability diagram; None: no diagram.
    """
    if look.event is None:
        return View(
            lens=look.scope.label,
            event=None,
            group=look.group,
            rows=look.n_rows,
            direction=_direction(_entropic(sample)),
        )
    p = sample.predictions.probs[:, 1]
    says, share = float(p.mean()), float(sample.labels.mean())
    return View(
        lens=look.scope.label,
        event=look.event,
        group=look.group,
        rows=look.n_rows,
        says=says,
        share=share,
        direction=_direction(says - share),
        over=bounded.over if bounded else None,
        under=bounded.under if bounded else None,
        reliability=None if band is None else reliability(sample, band),
    )


def _entropic(sample: Sample) -> float:
    """Return the entropic calibration difference, above 0 where the model claims too much."""
    table = sample.predictions.surprises()
    return float(table[np.arange(len(table)), sample.labels].mean())


def _direction(error: float) -> Side | None:
    if math.isnan(error) or abs(error) <= _ROUNDING:
        return None
    return "over" if error > 0.0 else "under"


def _binning(n_rows: int) -> EqualMass:
    """Return the bins of a diagram: up to 15, of at least 20 rows or so."""
    return EqualMass(int(np.clip(n_rows // _ROWS_OF_A_BIN, 1, _MOST_BINS)))


def bins_of(probs: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of every row of two classes, from left to right, as in the diagram."""
    return _binning(len(probs)).cells(probs)


def reliability(sample: Sample, band: ConsistencyBand) -> Reliability:
    """Return the reliability diagram of one probability, with a band of its bins."""
    probs = sample.predictions.probs
    curve = reliability_curve(probs, sample.labels, _binning(len(probs)))
    return Reliability(
        says=tuple(curve.predicted.tolist()),
        share=tuple(curve.observed.tolist()),
        rows=tuple(curve.counts.tolist()),
        low=tuple(band.low.tolist()),
        high=tuple(band.high.tolist()),
    )
