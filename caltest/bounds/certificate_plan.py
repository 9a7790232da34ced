"""How many rows a certificate would need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from caltest._arguments import level_of_confidence
from caltest._seeds import generator
from caltest.bounds.certificate_bins import Array
from caltest.bounds.isotonic import cells_wanted, interval_bounds

if TYPE_CHECKING:
    from caltest.bounds.certificate_result import Certificate

CHANCE = 0.8
SHARE = 0.9
_KEPT_FOR_CHANCE = 0.1
_MOST_ROWS = 10**11
_MOST_CELLS = 2000  # as many as 16 million rows have
SMALLEST_PLANNED = 0.005
_FEW_CELLS = 64  # up to which samples are drawn, beyond which expected ones do
_DRAWS = 200
_LENGTHS = 45  # of intervals in a plan: neighbours differ by a sixth or less


def samples_for(certificate: Certificate, wanted: float, truth: Array) -> int | None:
    """Return the rows at which a certificate reaches ``wanted``, if shares are ``truth`` (K,)."""
    c = certificate
    if c.method == "bins":
        if (np.abs(truth - c.stated) >= wanted).any():
            return None
        return _smallest(lambda rows: _enough_for_bins(c, wanted, truth, rows), c.n_samples, 1.005)
    aim = (1.0 - _KEPT_FOR_CHANCE) * wanted
    few = len(c.counts) <= _FEW_CELLS
    if c.counts[np.abs(truth - c.stated) < (wanted if few else aim)].sum() < SHARE * c.n_samples:
        return None
    guess = c.n_samples * (c.distance_for(SHARE) / aim) ** 3  # how bands of rising curves shrink

    def enough(rows: float) -> bool:
        cells = _planned(c, truth, rows)
        if len(cells.counts) > _FEW_CELLS:
            return bool(_share_within(c, cells, cells.counts * cells.truth, aim) >= SHARE)
        return _often_within(c, cells, wanted)

    return _smallest(enough, guess, 1.03)


def _smallest(enough: Callable[[float], bool], start: float, near: float) -> int | None:
    """Return a number of rows that is enough, fewer by a factor of ``near`` being too few."""
    high = min(max(2.0, start), _MOST_ROWS)
    if enough(high):
        low = high / 2.0
        while low >= 2.0 and enough(low):
            low, high = low / 2.0, low
    else:
        low, high = high, 2.0 * high
        while not enough(high):
            if high > _MOST_ROWS:
                return None
            low, high = high, 2.0 * high
    while high > low * near and high - low > 1.0:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(2, int(np.ceil(high)))


def _enough_for_bins(certificate: Certificate, wanted: float, truth: Array, rows: float) -> bool:
    """Return whether all bins are within ``wanted`` with the chance of 80%.

    A bin is if its count of events s has L(s) ≥ stated − wanted and U(s) ≤ stated + wanted. L(s) ≥ p
    is P(B ≥ s) ≤ δ for B ~ Bin(n, p): a quantile says which counts will do, and the binomial of the
    assumed truth how probable they are. (Rows that differ within the bin make it more so.)
    """
    c = certificate
    n = np.maximum(np.floor(rows * c.counts / c.n_samples), 1.0)
    least = _least_events(n, c.stated - wanted, c.level)
    most = n - _least_events(n, 1.0 - c.stated - wanted, c.level)
    chances = binom.cdf(most, n, truth) - binom.cdf(least - 1.0, n, truth)
    return float(np.prod(np.clip(chances, 0.0, 1.0))) >= CHANCE


def _least_events(n: Array, p: Array, level: float) -> Array:
    """Return the smallest count whose lower bound is at least p."""
    found = binom.isf(level, n, np.clip(p, 0.0, 1.0)) + 1.0
    return np.where(p > 0.0, found, 0.0)


class _Planned(NamedTuple):
    """Cells of a larger sample: scores and their truth, rows, and whether other scores lie beside."""

    scores: Array
    truth: Array
    counts: Array
    between: NDArray[np.bool_]


def _planned(certificate: Certificate, truth: Array, rows: float) -> _Planned:
    """Return the cells of so many rows.

    Scores are spread evenly within each cell, so that a larger sample can be cut more finely. Cells of
    a single score stay what they are.
    """
    c = certificate
    cells = min(2 * cells_wanted(int(rows)), _MOST_CELLS)
    wide = c.ends > c.starts
    parts = np.where(wide, -(-cells // len(wide)), 1).astype(int)
    place = np.concatenate([(np.arange(k) + 0.5) / k for k in parts])
    scores = np.repeat(c.starts, parts) + np.repeat(c.ends - c.starts, parts) * place
    shares = scores if truth is c.stated else np.interp(scores, c.stated, truth)
    counts = np.repeat(c.counts / parts, parts) * rows / c.n_samples
    return _Planned(scores, np.clip(shares, 0.0, 1.0), counts, np.repeat(wide, parts))


def _share_within(certificate: Certificate, cells: _Planned, events: Array, aim: float) -> float:
    """Return the share of the rows for which the band of these events is within the aim.

    A score between others has the bounds of its neighbours, as rounding outwards gives.
    """
    counts = cells.counts
    lengths = np.unique(np.geomspace(1, len(counts), _LENGTHS).astype(int)).tolist()
    alpha = level_of_confidence(certificate.confidence)
    lower, upper = interval_bounds(counts, events, alpha, lengths)
    lower = np.where(cells.between, np.r_[0.0, lower[:-1]], lower)
    upper = np.where(cells.between, np.r_[upper[1:], 1.0], upper)
    near = np.maximum(upper - cells.scores, cells.scores - lower) <= aim
    return float(counts[near].sum() / counts.sum()) * (1.0 + 1e-12)


def _often_within(certificate: Certificate, cells: _Planned, wanted: float) -> bool:
    """Return whether drawn samples are within the distance for nine tenths of the rows, often enough.

    Each of a few cells, of tied scores for instance, is bounded by its own events almost alone, and
    one of them that falls out is many rows: no fixed reserve does for all numbers of cells. The draws
    are always the same.
    """
    draws = generator(0)
    rows, shares = round(float(cells.counts.sum())), cells.counts / cells.counts.sum()
    allowed = int((1.0 - CHANCE) * _DRAWS)
    failed = 0
    for _ in range(_DRAWS):
        counts = draws.multinomial(rows, shares)
        events = draws.binomial(counts, cells.truth).astype(np.float64)
        drawn = cells._replace(counts=counts.astype(np.float64))
        failed += _share_within(certificate, drawn, events, wanted) < SHARE
        if failed > allowed:
            return False
    return True
