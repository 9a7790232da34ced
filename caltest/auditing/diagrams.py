"""The pictures of a view as numbers: reliability diagrams with joint bands, cumulative differences."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from caltest.auditing.plan import Look
from caltest.auditing.views import Cumulative, Histogram, Reliability
from caltest.binning import ConsistencyBand, EqualMass, joint_bands, reliability_curve, share_bands
from caltest.data import Rows, Sample
from caltest.laws import Classes
from caltest.pictures.axes import Array
from caltest.pictures.marks import path_of

_MOST_IN_BANDS = 2_000_000  # rows of all views: a second or two
_OF_ALWAYS = 0.8  # of the level of all bands, for the diagrams that are drawn whatever is found
_MOST_BINS = 15
_ROWS_OF_A_BIN = 20
_PLACES = 200  # of a cumulative difference
_BARS = 40


def bands(
    looks: Sequence[Look],
    always: Collection[Look],
    chosen: Collection[Look],
    level: float,
) -> dict[Look, ConsistencyBand]:
    """Return the bands of the reliability diagrams of the chosen looks.

    Looks that are drawn always, which the predictions alone determine, have most of the level; which
    others are drawn depends on labels, so that all of them share what is left. Of very many rows, each
    look has an equal part of the level; else what counts leave is shared.
    """
    single = [look for look in looks if look.event is not None]
    first = [look for look in single if look in always]
    rest = [look for look in single if look not in always]
    share = _OF_ALWAYS if first and rest else float(bool(first))
    joint: dict[Look, ConsistencyBand] = {}
    for part, alpha in ((first, share * level), (rest, (1.0 - share) * level)):
        drawn = [look for look in part if look in chosen]
        if not drawn:
            continue
        together = sum(look.n_rows for look in part) <= _MOST_IN_BANDS
        wanted = part if together else drawn
        probs = [look.scope.rows(look.places).probs for look in wanted]
        views = [(pair[:, 1], bins_of(pair)) for pair in probs]
        if together:
            found = joint_bands(views, alpha)
        else:
            own = alpha / len(part)
            found = [share_bands(scores, cells, own, own)[1] for scores, cells in views]
        joint |= {look: band for look, band in zip(wanted, found, strict=True) if look in chosen}
    return joint


def _binning(n_rows: int) -> EqualMass:
    """Return the bins of a diagram: up to 15, of at least 20 rows or so."""
    return EqualMass(int(np.clip(n_rows // _ROWS_OF_A_BIN, 1, _MOST_BINS)))


def bins_of(probs: Array) -> NDArray[np.intp]:
    """Return the bin of every row of two classes, from left to right, as in the diagram."""
    return _binning(len(probs)).cells(Rows(Classes(probs)))


def reliability(sample: Sample, band: ConsistencyBand) -> Reliability:
    """Return the reliability diagram of one probability, with a band of its bins."""
    probs = sample.rows.probs
    curve = reliability_curve(Rows(Classes(probs)), sample.labels, _binning(len(probs)))
    parts = (curve.predicted, curve.observed, curve.counts, band.low, band.high)
    return Reliability(*(tuple(part.tolist()) for part in parts))


def cumulative(sample: Sample, band: float) -> Cumulative:
    """Return the cumulative difference at up to so many places, the largest distance among them."""
    scores, share, path = path_of(sample.rows.probs[:, 1], sample.labels, np.ones(len(sample.labels)))
    kept = np.unique(np.linspace(0, len(path) - 1, _PLACES).round().astype(np.intp))
    kept = np.union1d(kept, [np.abs(path).argmax()])
    shares, predictions, differences = (
        tuple(each[kept].tolist()) for each in (share, scores, path + 0.0)
    )
    return Cumulative(shares, predictions, differences, float(band))


def histogram(scores: Array) -> Histogram:
    """Count the rows in bins of equal width from the smallest to the largest prediction."""
    low, high = float(scores.min()), float(scores.max())
    if high - low < 1e-9:
        low, high = max(0.0, low - 0.005), min(1.0, high + 0.005)
    counts, edges = np.histogram(scores, bins=_BARS, range=(low, high))
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))
