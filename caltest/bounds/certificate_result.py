"""The result of a certificate, and how many rows one would need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from caltest._arguments import Number, arguments, choose, level_of_confidence, real_array
from caltest._sampling import generator
from caltest._visible import quoted
from caltest.bounds.isotonic import ConfidenceBand, Segment, cells_wanted, interval_bounds
from caltest.exceptions import InputError
from caltest.results import Result

if TYPE_CHECKING:
    import pandas as pd

Array: TypeAlias = NDArray[np.float64]
Direction: TypeAlias = Literal["over", "under"]
Truth: TypeAlias = Literal["stated", "estimated"]
Method: TypeAlias = Literal["bins", "isotonic"]

#: Of a plan: the chance to reach the distance, and the share of the rows, if isotonic.
CHANCE = 0.8
SHARE = 0.9
_KEPT_FOR_CHANCE = 0.1
_MOST_ROWS = 10**11
_MOST_CELLS = 2000  # as many as 16 million rows have
SMALLEST_PLANNED = 0.005
_FEW_CELLS = 64  # up to which samples are drawn, beyond which expected ones do
_DRAWS = 200
_LENGTHS = 45  # of intervals in a plan: neighbours differ by a sixth or less


class Proved(NamedTuple):
    """A range of scores proved to be miscalibrated.

    Attributes
    ----------
    low, high
        The range.
    direction
        "over": the event is rarer than stated; "under": it is more frequent.
    at_least
        By how much the statement is off, at least, on average over the bin or somewhere in the range.
    rows
        Rows with a score in it.
    """

    low: float
    high: float
    direction: Direction
    at_least: float
    rows: int


@dataclass(frozen=True, eq=False)
class Certificate(Result):
    """How far a model's statements can be from the truth. Arrays: one entry a bin or cell, read-only.

    Everything holds at once with the stated confidence, so ranges and bins may be picked afterwards.

    Attributes
    ----------
    method
        "bins" or "isotonic".
    distance
        The certified distance: of the mean statement and the mean probability in every bin; or, at
        every score among the rows, of the score and the probability there. 1 (nothing is certified)
        if the isotonic bounds cross.
    over, under
        The largest over-confidence (score less probability) and under-confidence possible; the larger
        one is ``distance``.
    proved
        The largest distance is at least this; 0 if none is proved.
    confidence
        Of all statements together.
    miscalibrated
        Ranges proved to be miscalibrated, from low scores to high ones.
    crossings
        Ranges in which the lower isotonic bound is above the upper one: there, no curve that never
        falls fits the data, and what the method assumes is disproved. Always empty for bins.
    starts, ends
        Smallest and largest score of every bin or cell, (K,).
    counts
        Their rows, (K,).
    stated
        Their mean scores, (K,).
    estimates
        Their shares of events; isotonic: made to rise by isotonic regression, (K,).
    lower, upper
        Bins: bounds of the mean probability. Isotonic: steps; ``lower[k]`` holds from ``ends[k]`` on,
        ``upper[k]`` up to ``starts[k]``; :meth:`band` looks them up. (K,).
    distances
        The largest possible distance in the bin, or at any score seen in the cell, (K,).
    level
        Probability at most with which a single Clopper–Pearson bound fails.
    n_samples
        Rows.
    event
        What the probability is of, as a clause.
    lens
        Label of the lens; None for binary predictions as they are.
    wanted
        The distance asked for, if any.
    samples_wanted
        Rows it would need, as :meth:`samples_for` says; None if none was asked for, or no number does.
    warnings
        Sentences a reader should know.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.certificate(sure.probs, sure.labels)
    >>> found.method, round(found.distance, 2), round(found.over, 2), round(found.under, 2)
    ('bins', 0.59, 0.59, 0.17)
    >>> found.counts[:3].tolist(), found.estimates[:3].round(2).tolist()
    ([30.0, 30.0, 30.0], [0.4, 0.5, 0.77])
    """

    method: Method
    distance: float
    over: float
    under: float
    proved: float
    confidence: float
    miscalibrated: tuple[Proved, ...]
    crossings: tuple[Segment, ...]
    starts: Array = field(repr=False)
    ends: Array = field(repr=False)
    counts: Array = field(repr=False)
    stated: Array = field(repr=False)
    estimates: Array = field(repr=False)
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    distances: Array = field(repr=False)
    level: float
    n_samples: int
    event: str
    lens: str | None = None
    wanted: float | None = None
    samples_wanted: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def reached(self) -> bool | None:
        """Whether the distance wanted is certified; None if none was asked for.

        Of bins all; isotonic, where the ends of the scores can hardly be certified, for nine tenths of
        the rows, as :meth:`samples_for` plans.
        """
        if self.wanted is None:
            return None
        return self.distance_for(SHARE if self.method == "isotonic" else 1.0) <= self.wanted

    @arguments(share=Number(0.0, 1.0, "(]", "give one above 0 and up to 1, such as 0.9"))
    def distance_for(self, share: float) -> float:
        """Return a distance within which at least this share of the rows is certified to be.

        Parameters
        ----------
        share
            Above 0, up to 1: the bins or cells in which the band is closest to the diagonal that hold
            this share of the rows. With 1 it is ``distance``.

        Raises
        ------
        InputError
            If ``share`` is no such number.

        Examples
        --------
        >>> import caltest
        >>> model = caltest.simulation.tempered(n_samples=2000, temperature=1.0, rng=0)
        >>> found = caltest.certificate(model.probs, model.labels)
        >>> found.distance_for(0.5) < found.distance_for(1.0) == found.distance
        True
        """
        if self.crossings:
            return self.distance
        order = np.argsort(self.distances, kind="stable")
        rows = np.cumsum(self.counts[order])
        place = int(np.searchsorted(rows, share * self.n_samples * (1.0 - 1e-12)))
        return float(self.distances[order][place])

    @arguments()
    def band(self, scores: object) -> tuple[Array, Array]:
        """Return the isotonic bounds at any scores, also between those seen.

        Parameters
        ----------
        scores
            Probabilities of the event, (n,).

        Returns
        -------
        tuple of arrays
            Lower and upper bounds of the probability of the event at these scores, (n,) each.

        Raises
        ------
        InputError
            If the method is "bins", whose bounds are those of averages.
        """
        if self.method != "isotonic":
            raise InputError(
                "the bounds of bins are those of averages over a bin, not of a score; read .table(), "
                "or give method='isotonic'."
            )
        band = ConfidenceBand(self.starts, self.ends, self.lower, self.upper)
        values = real_array("scores", scores)
        return band.lower_at(values), band.upper_at(values)

    @arguments()
    def samples_for(self, wanted: float, *, at: Truth = "stated") -> int | None:
        """Return how many rows a certificate of the distance ``wanted`` would need, about.

        Parameters
        ----------
        wanted
            The distance, such as 0.02.
        at
            What the probabilities are taken to be: "stated" (default), what the model says, the number
            then being the least that any model needs; or "estimated", ``estimates``, which are noisy.

        Returns
        -------
        int or None
            Rows of the same kind as these. Bins, as many as here: the number at which all bins are
            within ``wanted`` with a chance of 80%. Isotonic: the number at which the band is within
            ``wanted`` for nine tenths of the rows. Up to 64 cells it is so in 80% of drawn samples.
            Beyond, in the one of the expected counts, with a tenth of ``wanted`` kept for chance:
            enough for scores that hardly repeat. (``distance_for(0.9)`` then was at most ``wanted`` in
            73% to 100% of simulated samples of 1 to 300 distinct scores.) This takes seconds to find.
            None if no number will do: the data prove a larger distance, or the estimated one is
            larger.

        Raises
        ------
        InputError
            If ``wanted`` is no number from 0.005 to 1, or there is no such ``at``.

        Examples
        --------
        >>> import caltest
        >>> model = caltest.simulation.tempered(n_samples=1000, temperature=1.0, rng=0)
        >>> found = caltest.certificate(model.probs, model.labels)
        >>> found.samples_for(0.05) > 1000, found.samples_for(0.02) > 6 * found.samples_for(0.05)
        (True, True)
        """
        target = checked_wanted(wanted)
        truth = choose("truth", at, {"stated": self.stated, "estimated": self.estimates})
        if self.crossings or self.proved >= target:
            return None
        return _samples_for(self, target, truth)

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a row for each bin or cell.

        Returns
        -------
        pandas.DataFrame
            Columns ``from``, ``to`` (scores), ``rows``, ``stated``, ``estimate``, ``lower`` and
            ``upper`` (bounds of the mean probability in the bin; isotonic: of the probability at any
            score of the cell), ``distance``.
        """
        import pandas as pd

        lower, upper = self.lower, self.upper
        if self.method == "isotonic":
            lower, upper = self.band(self.starts)[0], self.band(self.ends)[1]
        found = {
            "from": self.starts,
            "to": self.ends,
            "rows": self.counts.astype(int),
            "stated": self.stated,
            "estimate": self.estimates,
            "lower": lower,
            "upper": upper,
            "distance": self.distances,
        }
        return pd.DataFrame(found)

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string."""
        return {**super().to_dict(), "reached": self.reached}


def checked_wanted(wanted: object) -> float:
    """Return a distance that can be planned for, or say that it is none."""
    found = Number(0.0, 1.0, "(]", "give a distance between 0 and 1, such as 0.02")("wanted", wanted)
    if found < SMALLEST_PLANNED:
        raise InputError(
            f"wanted is {quoted(wanted)}, too small to plan for; give at least {SMALLEST_PLANNED:g}."
        )
    return found


# ------------------------------------------------------------------ how many rows it would need


def _samples_for(certificate: Certificate, wanted: float, truth: Array) -> int | None:
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
