"""`certificate`: by how much a model can be wrong at most, in every bin or at every score.

And how many rows a certificate of a given distance would need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from caltest._arguments import (
    Number,
    arguments,
    choose,
    level_of_confidence,
    positive_integer,
    real_array,
)
from caltest._sums import Array
from caltest._visible import quoted
from caltest.binning import Binning, EqualMass, reliability_curve, rising
from caltest.bounds import intervals
from caltest.bounds.intervals import ConfidenceBand, Segment
from caltest.data import Sample, whole_sample
from caltest.data.attributes import check_alike
from caltest.exceptions import InputError
from caltest.forms import Side
from caltest.lenses import Lens, event, one_probability
from caltest.results import Result
from caltest.sampling import generator

if TYPE_CHECKING:
    import pandas as pd

Truth: TypeAlias = Literal["predicted", "estimated"]
Method: TypeAlias = Literal["bins", "isotonic"]

_DEFAULT_BINS = 10
_LEAST = 1.0 - 2.0 * intervals.LARGEST_LEVEL
_CONFIDENCE = Number(_LEAST, 1.0, "[)", f"give one from {_LEAST:g} to below 1, such as 0.95")

#: Of a plan: the chance to reach the distance, and the share of the rows, if isotonic.
CHANCE = 0.8
SHARE = 0.9
_KEPT_FOR_CHANCE = 0.1
_MOST_ROWS = 10**11
_MOST_CELLS = 2000  # as many as 16 million rows have
_SMALLEST_PLANNED = 0.005
_FEW_CELLS = 64  # up to which samples are drawn, beyond which expected ones do
_DRAWS = 200
_LENGTHS = 45  # of intervals in a plan: neighbours differ by a sixth or less


def _distance(name: str, value: object) -> float:
    """Return a distance that can be planned for, or say that it is none."""
    found = Number(0.0, 1.0, "(]", "give a distance between 0 and 1, such as 0.02")(name, value)
    if found < _SMALLEST_PLANNED:
        text = f"{quoted(value)}, too small to plan for; give at least {_SMALLEST_PLANNED:g}"
        raise InputError(f"{name} is {text}.")
    return found


class Proved(NamedTuple):
    """A range of scores proved to be miscalibrated.

    "over": the event is rarer than stated; "under": it is more frequent. ``at_least`` says by how much
    the statement is off, on average over the bin or somewhere in the range of so many ``rows``.
    """

    low: float
    high: float
    direction: Side
    at_least: float
    rows: int


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Result):
    """A proven limit on how far predicted probabilities are from the true ones.

    Arrays have one entry per bin or cell, and are read-only.

    All statements are correct together with the stated confidence, so you may pick ranges and bins
    after seeing them.

    Attributes
    ----------
    method
        "bins" or "isotonic".
    distance
        The certified distance. For bins: between the mean prediction and the mean true probability
        of every bin. For isotonic: between prediction and true probability at every score among
        the rows. 1 (nothing is certified) if the isotonic bounds cross.
    over, under
        The largest possible overconfidence (score minus true probability) and underconfidence; the
        larger one is ``distance``.
    proved
        A lower bound on the largest distance; 0 if no error is proved.
    confidence
        Of all statements together.
    miscalibrated
        Ranges proved to be miscalibrated, from low scores to high ones.
    crossings
        Ranges in which the lower isotonic bound is above the upper one: no non-decreasing curve
        fits the data there, so the method's assumption is disproved. Always empty for bins.
    starts, ends, counts, predicted
        Smallest and largest score of every bin or cell, its number of rows, and their mean score,
        (K,).
    estimates
        Observed rates, (K,); for isotonic, made non-decreasing by isotonic regression.
    lower, upper
        Bins: bounds on the mean true probability, (K,). Isotonic: steps, (K,); ``lower[k]`` holds
        from ``ends[k]`` on, and ``upper[k]`` up to ``starts[k]``; :meth:`band` looks them up.
    distances
        The largest possible distance in the bin, or at any score seen in the cell, (K,).
    level
        The largest probability with which a single Clopper–Pearson bound fails.
    event
        The event that the probability refers to, as a clause.
    n_samples, lens, warnings
        As in :class:`caltest.CalibrationResult`.
    wanted, samples_wanted
        The distance you asked for, if any, and the number of rows it would need (see
        :meth:`samples_for`), if some number would do.

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
    starts: Array
    ends: Array
    counts: Array
    predicted: Array
    estimates: Array
    lower: Array
    upper: Array
    distances: Array
    level: float
    n_samples: int
    event: str
    lens: str | None = None
    wanted: float | None = None
    samples_wanted: int | None = None
    warnings: tuple[str, ...] = ()

    derived: ClassVar[tuple[str, ...]] = ("reached",)

    @property
    def reached(self) -> bool | None:
        """Whether the distance you wanted is certified; None if you gave none.

        Of bins all; isotonic, where the ends of the scores can hardly be certified, for nine tenths of
        the rows, as :meth:`samples_for` plans.
        """
        if self.wanted is None:
            return None
        return self.distance_for(SHARE if self.method == "isotonic" else 1.0) <= self.wanted

    @arguments(share=Number(0.0, 1.0, "(]", "give one above 0 and up to 1, such as 0.9"))
    def distance_for(self, share: float) -> float:
        """Return a distance that is certified for at least this share of the rows.

        Parameters
        ----------
        share
            Above 0, up to 1: the bins or cells in which the band is closest to the diagonal that hold
            this share of the rows. With 1 it is ``distance``.

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

    @arguments(wanted=_distance)
    def samples_for(self, wanted: float, *, at: Truth = "predicted") -> int | None:
        """Return about how many rows a certificate of the distance ``wanted`` would need.

        Parameters
        ----------
        wanted
            The distance, such as 0.02.
        at
            What the probabilities are taken to be: "predicted" (default), what the model says, the
            number then being the least that any model needs; or "estimated", ``estimates``, which are
            noisy.

        Returns
        -------
        int or None
            Rows of the same kind as these. Bins, as many as here: the number at which all bins are
            within ``wanted`` with a chance of 80%. Isotonic: the number at which the band is within
            ``wanted`` for nine tenths of the rows, up to 64 cells in 80% of drawn samples, beyond
            (with a tenth of ``wanted`` kept for chance) in 73% to 100% of those simulated; it takes
            seconds to find. None if no number will do: the data prove a larger distance, or the
            estimated one is larger.

        Raises
        ------
        InputError
            If ``wanted`` is not a number from 0.005 to 1, or there is no such ``at``.

        Examples
        --------
        >>> import caltest
        >>> model = caltest.simulation.tempered(n_samples=1000, temperature=1.0, rng=0)
        >>> found = caltest.certificate(model.probs, model.labels)
        >>> found.samples_for(0.05) > 1000, found.samples_for(0.02) > 6 * found.samples_for(0.05)
        (True, True)
        """
        truth = choose("truth", at, {"predicted": self.predicted, "estimated": self.estimates})
        if self.crossings or self.proved >= wanted:
            return None
        return (_rows_for_bins if self.method == "bins" else _rows_for_band)(self, float(wanted), truth)

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a row for each bin or cell.

        Returns
        -------
        pandas.DataFrame
            Columns ``from``, ``to`` (scores), ``rows``, ``predicted``, ``estimate``, ``lower`` and
            ``upper`` (bounds of the mean probability in the bin; isotonic: of the probability at any
            score of the cell), ``distance``.
        """
        import pandas as pd

        lower, upper = self.lower, self.upper
        if self.method == "isotonic":
            lower, upper = self.band(self.starts)[0], self.band(self.ends)[1]
        found = self.predicted, self.estimates, lower, upper, self.distances
        names = ("from", "to", "rows", "predicted", "estimate", "lower", "upper", "distance")
        columns = (self.starts, self.ends, self.counts.astype(int), *found)
        return pd.DataFrame(dict(zip(names, columns, strict=True)))


@arguments(cells=positive_integer, confidence=_CONFIDENCE, wanted=_distance)
def certificate(
    probs: object,
    labels: object,
    *,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    method: Method = "bins",
    n_bins: int | None = None,
    binning: Binning | None = None,
    cells: int | None = None,
    confidence: float = 0.95,
    wanted: float | None = None,
) -> Certificate:
    """Prove that predictions are close to the true probabilities: "within ±3 points, 95% confidence".

    A test that does not reject proves nothing. A certificate does: with the stated confidence, for
    any number of rows, the distance between predicted and true probabilities is at most the one it
    gives.

    Parameters
    ----------
    probs, labels
        Predicted probabilities and observed classes, as in :func:`caltest.test`. Rows must be
        independent.
    lens
        Which probability to certify: "top_label", "class:3", "top:5" or an object of
        :mod:`caltest.lenses` that leaves two classes. Default None: class 1 of two classes, the
        top label of more.
    class_names
        Names of the classes, in the order of the columns, as in :func:`caltest.test`. Default None.
    method
        "bins" (default) compares the mean prediction with the mean true probability in every bin.
        It assumes nothing, but errors that cancel within a bin do not show. "isotonic" compares
        prediction and true probability at every score. It assumes that the true probability does
        not fall as the score rises, and needs far more rows. Near the smallest and largest scores
        its bounds are wide, because no data lie beyond them.
    n_bins
        Number of bins, with equal numbers of rows. Default 10. Fewer bins give a smaller distance,
        but hide more.
    binning
        An object of :mod:`caltest.binning` to use instead of ``n_bins``.
    cells
        Isotonic only: scores are pooled into this many cells of equal mass, which are cut again
        into as many of equal width. Default 4 n^(1/3). More cells are not better: with every score
        in its own cell (``cells=n``, as published) the certified distances for 2000 rows were 5%
        to 25% larger.
    confidence
        Of all bounds together, 0.5 or more. Default 0.95.
    wanted
        A distance, 0.005 or more, that you would like to certify. The result then says whether it
        is reached (isotonic: for nine tenths of the rows), and how many rows would be enough (see
        :meth:`Certificate.samples_for`). Default None.

    Returns
    -------
    Certificate
        Frozen; ``print`` it, or call ``.summary()``, ``.table()``, ``.to_dict()``.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, the lens leaves more than two classes,
        or an option is unknown or belongs to the other method.

    Notes
    -----
    Bins: two Clopper–Pearson bounds per bin, at level α/(2K) each for K bins. Rows of a bin may
    have different probabilities; "Many looks" in the documentation has the proof, and the
    correction it needs if exactly one event was observed. Isotonic: Clopper–Pearson bounds for all
    intervals of the G cells, at level α/(G² + G) each. Bins and cells depend on the predictions
    only.

    References
    ----------
    Clopper and Pearson, Biometrika 26 (1934); Hoeffding, Annals of Mathematical Statistics 27 (1956);
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel, "Honest calibration assessment for binary outcome
    predictions", Biometrika 110 (2023).

    Examples
    --------
    >>> import caltest
    >>> model = caltest.simulation.tempered(n_samples=5000, temperature=1.0, rng=0)
    >>> found = caltest.certificate(model.probs, model.labels)
    >>> found.proved < found.distance < 0.12, found.miscalibrated
    (True, ())
    """
    made: Any = choose("method", method, {"bins": _bins, "isotonic": _isotonic})
    confidence = float(confidence)
    if method == "isotonic" and (n_bins is not None or binning is not None):
        raise InputError("the isotonic method has no bins; leave n_bins and binning out.")
    if method == "bins" and cells is not None:
        raise InputError("cells are those of method='isotonic'; give n_bins, or that method.")
    if binning is None:
        binning = EqualMass(_DEFAULT_BINS if n_bins is None else n_bins)
    elif n_bins is not None:
        raise InputError("n_bins and binning are both given; give one of them.")
    whole = whole_sample(probs, labels, class_names=class_names)
    check_alike(whole.rows, "a certificate", "test with caltest.test, whose tolerance= takes weights")
    view, label = one_probability(whole, lens, "a certificate is of")
    found = made(view, binning if method == "bins" else cells, confidence)
    sides = {name: max(0.0, float(found[name].max())) for name in ("over", "under")}
    sides["distance"] = float(found["distances"].max())
    found |= dict.fromkeys(sides, 1.0) if found["crossings"] else sides
    found["miscalibrated"] = tuple(sorted(found["proved"]))
    found["proved"] = max((each.at_least for each in found["proved"]), default=0.0)
    proved = Certificate(
        method=method,
        confidence=confidence,
        n_samples=view.rows.n_samples,
        event=event(label, view.rows),
        lens=label,
        wanted=None if wanted is None else float(wanted),
        warnings=view.rows.notes,
        **found,
    )
    return proved if wanted is None else replace(proved, samples_wanted=proved.samples_for(wanted))


def _bins(view: Sample, rule: Binning, confidence: float) -> dict[str, Any]:
    """Return the fields of a certificate by bins."""
    bins = reliability_curve(view.rows, view.labels, rule)
    counts, events = bins.counts.astype(np.float64), bins.events
    level = level_of_confidence(confidence) / (2.0 * len(counts))
    lower, upper = intervals.mean_bounds(counts, events, level)
    over, under = bins.predicted - lower, upper - bins.predicted
    proved = [
        Proved(
            low=float(bins.smallest[k]),
            high=float(bins.largest[k]),
            direction="over" if under[k] < 0.0 else "under",
            at_least=-min(float(over[k]), float(under[k])),
            rows=int(counts[k]),
        )
        for k in np.flatnonzero(np.minimum(over, under) < 0.0)
    ]
    return {
        "distances": np.maximum(over, under),
        "over": over,
        "under": under,
        "proved": proved,
        "crossings": (),
        # What is proved is proved of the scores that there are, not of all between a bin's edges.
        "starts": bins.smallest,
        "ends": bins.largest,
        "counts": counts,
        "predicted": bins.predicted,
        "estimates": bins.observed,
        "lower": lower,
        "upper": upper,
        "level": level,
    }


def _isotonic(view: Sample, n_cells: int | None, confidence: float) -> dict[str, Any]:
    """Return the fields of an isotonic certificate."""
    scores = view.rows.probs[:, 1]
    alpha = level_of_confidence(confidence)
    cells = intervals.pool(scores, view.labels, n_cells or intervals.cells_wanted(len(scores)))
    lower, upper = intervals.interval_bounds(cells.counts, cells.events, alpha)
    band = ConfidenceBand(cells.starts, cells.ends, lower, upper)
    over = cells.scores - band.lower_at(cells.scores)
    under = band.upper_at(cells.scores) - cells.scores
    proved = []  # where the diagonal is outside the band
    sides: tuple[tuple[Side, Array, list[Segment]], ...] = (
        ("under", -over, band.too_low()),
        ("over", -under, band.too_high()),
    )
    for direction, gap, ranges in sides:
        for low, high in ranges:
            inside = (cells.scores >= low) & (cells.scores <= high) & (gap > 0.0)
            rows = int(cells.multiplicities[inside].sum())
            proved.append(Proved(low, high, direction, float(gap[inside].max()), rows))
    first = np.flatnonzero(np.r_[True, np.diff(cells.cell) > 0])
    largest = np.maximum.reduceat(np.maximum(over, under), first)
    return {
        "distances": largest,
        "over": over,
        "under": under,
        "proved": proved,
        "crossings": band.crossings(),
        "starts": cells.starts,
        "ends": cells.ends,
        "counts": cells.counts,
        "predicted": cells.predicted,
        "estimates": rising(cells.events, cells.counts).clip(0.0, 1.0),
        "lower": lower,
        "upper": upper,
        "level": intervals.level_of(len(cells.counts), alpha),
    }


# ------------------------------------------------------------------ how many rows it would need


def _smallest(enough: Callable[[float], bool], start: float, near: float) -> int | None:
    """Return a number of rows that is enough, fewer by a factor of ``near`` being too few."""
    low = high = min(max(2.0, start), _MOST_ROWS)
    while low >= 2.0 and enough(low):
        low, high = low / 2.0, low
    if low == high:
        high = 2.0 * low
        while not enough(high):
            if high > _MOST_ROWS:
                return None
            low, high = high, 2.0 * high
    while high > low * near and high - low > 1.0:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(2, int(np.ceil(high)))


def _rows_for_bins(c: Certificate, wanted: float, truth: Array) -> int | None:
    """Return how many rows are enough for all bins to be within ``wanted`` with the chance of 80%.

    A bin is if its count of events s has L(s) ≥ predicted − wanted and U(s) ≤ predicted + wanted. L(s)
    ≥ p is P(B ≥ s) ≤ δ for B ~ Bin(n, p): a quantile says which counts will do, and the binomial of the
    assumed truth how probable they are. (Rows that differ within the bin make it more so.)
    """
    from scipy.stats import binom  # which takes long to import

    if (np.abs(truth - c.predicted) >= wanted).any():
        return None

    def least_events(n: Array, p: Array) -> Array:
        """Return the smallest count whose lower bound is at least p."""
        found = binom.isf(c.level, n, np.clip(p, 0.0, 1.0)) + 1.0
        return np.where(p > 0.0, found, 0.0)

    def enough(rows: float) -> bool:
        n = np.maximum(np.floor(rows * c.counts / c.n_samples), 1.0)
        least = least_events(n, c.predicted - wanted)
        most = n - least_events(n, 1.0 - c.predicted - wanted)
        chances = binom.cdf(most, n, truth) - binom.cdf(least - 1.0, n, truth)
        return float(np.prod(np.clip(chances, 0.0, 1.0))) >= CHANCE

    return _smallest(enough, c.n_samples, 1.005)


def _rows_for_band(c: Certificate, wanted: float, truth: Array) -> int | None:
    """Return how many rows are enough for the band to be within ``wanted`` for nine tenths of them.

    Scores are spread evenly within each cell, so that a larger sample can be cut more finely. Cells of
    a single score stay what they are; if there are few, each is bounded by its own events almost alone,
    and one of them that falls out is many rows: no fixed reserve does for all numbers of cells, and
    samples are drawn, always the same.
    """
    aim, few = (1.0 - _KEPT_FOR_CHANCE) * wanted, len(c.counts) <= _FEW_CELLS
    within = np.abs(truth - c.predicted) < (wanted if few else aim)
    if c.counts[within].sum() < SHARE * c.n_samples:
        return None
    wide, alpha = c.ends > c.starts, level_of_confidence(c.confidence)

    def enough(rows: float) -> bool:
        cells = min(2 * intervals.cells_wanted(int(rows)), _MOST_CELLS)
        parts = np.where(wide, -(-cells // len(wide)), 1).astype(int)
        place = np.concatenate([(np.arange(k) + 0.5) / k for k in parts])
        scores = np.repeat(c.starts, parts) + np.repeat(c.ends - c.starts, parts) * place
        assumed = scores if truth is c.predicted else np.interp(scores, c.predicted, truth)
        shares, between = np.clip(assumed, 0.0, 1.0), np.repeat(wide, parts)
        expected = np.repeat(c.counts / parts, parts) * rows / c.n_samples
        lengths = np.unique(np.geomspace(1, len(expected), _LENGTHS).astype(int)).tolist()

        def near(counts: Array, events: Array, distance: float) -> bool:
            """Return whether the band of these events is so near, for enough rows."""
            lower, upper = intervals.interval_bounds(counts, events, alpha, lengths)
            # A score between others has the bounds of its neighbours, as rounding outwards gives.
            lower = np.where(between, np.r_[0.0, lower[:-1]], lower)
            upper = np.where(between, np.r_[upper[1:], 1.0], upper)
            inside = np.maximum(upper - scores, scores - lower) <= distance
            return float(counts[inside].sum() / counts.sum()) * (1.0 + 1e-12) >= SHARE

        if len(expected) > _FEW_CELLS:
            return near(expected, expected * shares, aim)
        draws, failed = generator(0), 0
        total = expected.sum()
        for _ in range(_DRAWS):
            counts = draws.multinomial(round(float(total)), expected / total)
            events = draws.binomial(counts, shares).astype(np.float64)
            failed += not near(counts.astype(np.float64), events, wanted)
            if failed > int((1.0 - CHANCE) * _DRAWS):
                return False
        return True

    # How bands of rising curves shrink.
    return _smallest(enough, c.n_samples * (c.distance_for(SHARE) / aim) ** 3, 1.03)
