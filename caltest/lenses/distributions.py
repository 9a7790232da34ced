"""Lenses of numbers: events of outcomes, with the probabilities that distributions give them.

They turn outcomes into classes, so every statistic of classes applies to numbers. For vectors, they
take one number of each.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Kind, Number, choose, options, whole_number
from caltest._sums import Array
from caltest._visible import quoted
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.laws import Outcomes, Pool, Pools, Predictive, Quantiles, Ranks, Survival
from caltest.lenses.classes import ALL, Lens, Reduction, looked_up

_ROUNDING = 1e-9  # largest difference by rounding between a quantile's probability and its level


class NumberLens(Lens):
    """A lens of predicted distributions of numbers."""

    of_numbers = True

    def show(self, predictions: Rows) -> Reduction:
        """Return classes, with their probabilities by each row's distribution."""
        self.check(predictions)
        law: Any = predictions.law
        if not isinstance(law, Quantiles):
            return self._of_law(predictions, law)
        classes = self._of_cells(law)
        lengths = np.diff(law.levels, prepend=0.0, append=1.0)
        probs = _tied(np.asarray(np.bincount(classes, lengths), np.float64), *law.levels)
        shown = predictions.shown_as(np.tile(probs, (law.n_samples, 1)), self._names)
        least, most = (partial(looked_up, table) for table in law.over_cells(classes))
        view = Reduction(shown, most, self.label, see_open=least)
        return self._where(view, ~np.isnan(law.values[:, np.flatnonzero(np.diff(classes))]).any(axis=1))

    def _where(self, view: Reduction, stated: Any) -> Reduction:
        """Return a view of only those rows that state what the lens needs."""
        if not (n := np.count_nonzero(stated)):
            found = f"no row states what the lens {quoted(self.label)} looks at"
            raise InputError(f"{found}; give another level.")
        if n == len(stated):
            return view
        notes = (*view.rows.notes, f"Of {len(stated):,} rows {n:,} state {self.label}.")
        rows = replace(view.rows.take(places := np.flatnonzero(stated)), notes=notes)
        return replace(view, rows=rows, places=places)

    _names: ClassVar[tuple[str, ...] | None] = None  # of the classes

    def _of_cells(self, law: Quantiles) -> NDArray[np.uint8]:
        """Return the classes of the cells between stated quantiles, (K + 1,)."""
        level = law.levels[len(law.levels) // 2]
        found = f"the lens {quoted(self.label)} needs whole distributions, and these are {law.about}"
        raise InputError(f"{found}; give a lens at their levels, such as 'quantile:{level:g}'.")

    @abstractmethod
    def _of_law(self, predictions: Rows, law: Predictive) -> Reduction:
        """Return the view of distributions."""


def _tied(probs: Array, *levels: float) -> Array:
    """Return probabilities, replaced by the level if they differ by rounding only: equal rows tie."""
    for level in levels:
        probs = np.where(np.abs(probs - level) < _ROUNDING, level, probs)
    return probs


def _read(kind: Kind) -> Kind:
    """Accept a number also as text, as in the name of a lens."""

    def read(name: str, value: object) -> Any:
        with suppress(ValueError):
            value = float(value) if isinstance(value, str) else value
        return kind(name, value)

    return read


_threshold = _read(Number(advice="give a number, as in 'below:10'"))
_level = _read(Number(0.0, 1.0, advice="give a number between 0 and 1, as in 'quantile:0.5'"))


@options()
class WholeDistribution(NumberLens):
    """For numbers: do outcomes lie in the whole predicted distribution as often as predicted?

    It is for statistics of the PIT: these have the same value through it, and are faster for many
    groups.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 1.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [1.0, 2.0], "bias", lens="distribution"), 2)
    -0.34
    """

    kind: ClassVar[str] = "distribution"

    def show(self, predictions: Rows) -> Reduction:
        """Return the ranks of outcomes; cells of quantile forecasts and places in pools are kept."""
        stated = isinstance(predictions.law, Quantiles | Pools)
        return Reduction(predictions, label=self.label) if stated else super().show(predictions)

    def _of_law(self, predictions: Rows, law: Predictive) -> Reduction:
        ranks = Ranks(law)
        return Reduction(predictions.shown_as(ranks), ranks.of, self.label)


# ------------------------------------------------------------------ two classes


class _Between(NumberLens):
    """A lens of two classes: class 1 means that the outcome lies between two ends, both included."""

    _names = ("outside", "inside")

    @property
    def _number(self) -> float:
        """The threshold, or the level."""
        return float(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]

    @property
    def label(self) -> str:
        """Kind and number."""
        return f"{self.kind}:{repr(self._number).removesuffix('.0')}"

    @abstractmethod
    def _ends(self, law: Predictive) -> tuple[Array | None, Array | None]:
        """Return both ends, (n,); None for an open end."""

    def _of_law(self, predictions: Rows, law: Predictive) -> Reduction:
        low, high = self._ends(law)
        up_to = np.ones(law.n_samples) if high is None else law.cdf(high)[1]
        inside = (up_to - (0.0 if low is None else law.cdf(low)[0])).clip(min=0.0)
        if isinstance(self, _AtLevel):  # equals the level unless there are atoms
            inside = _tied(inside, self._number)
        shown = predictions.shown_as(np.column_stack([1.0 - inside, inside]), self._names)
        return Reduction(shown, partial(_between, low, high), self.label)


def _between(low: Array | None, high: Array | None, outcomes: Outcomes, rows: slice = ALL) -> Outcomes:
    """Return 1 if an outcome lies between the ends of its row, else 0."""
    inside = [] if low is None else [outcomes >= low[rows]]
    inside += [] if high is None else [outcomes <= high[rows]]
    return reduce(np.bitwise_and, inside).view(np.uint8)


@options(threshold=_threshold)
class _AtThreshold(_Between):
    threshold: float | str


@options(level=_level)
class _AtLevel(_Between):
    level: float | str

    def _of_law(self, predictions: Rows, law: Predictive) -> Reduction:
        view, counts = super()._of_law(predictions, law), getattr(law, "counts", 0)
        if np.ndim(counts) == 0:
            return view
        upper = self._number if self.kind == "quantile" else 0.5 + 0.5 * self._number
        return self._where(view, min(upper, 1.0 - upper) * counts > 1.0 - _ROUNDING)


class Below(_AtThreshold):
    """For numbers: is the outcome below a threshold as often as predicted?

    Parameters
    ----------
    threshold : float or str
        In the units of the outcome; an equal outcome does not count as below.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 1.0, 2.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [0.5, 0.5, 2.5], "citl", lens="below:1"), 3)  # log odds
    0.695
    """

    kind = "below"

    def _ends(self, law: Predictive) -> tuple[Array | None, Array | None]:
        return None, np.full(law.n_samples, np.nextafter(self._number, -np.inf))


class Above(_AtThreshold):
    """For numbers: is the outcome above a threshold as often as predicted?

    Parameters
    ----------
    threshold : float or str
        In the units of the outcome; an equal outcome does not count as above.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 1.0, 2.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [0.5, 0.5, 2.5], "citl", lens="above:1"), 3)  # log odds
    -0.695
    """

    kind = "above"

    def _ends(self, law: Predictive) -> tuple[Array | None, Array | None]:
        return np.full(law.n_samples, np.nextafter(self._number, np.inf)), None


SEEN = ("not seen", "seen")


@options(threshold=_threshold)
class Until(_AtThreshold):
    """For times: does the event come until a time, the horizon, as often as predicted?

    If the end of follow-up is known, the question is whether the event is observed by the horizon and
    within follow-up.

    Parameters
    ----------
    threshold : float or str
        The horizon, in the units of the times; the time itself counts.
    cause : str, optional
        With competing events, the one that is meant, as in "cause:relapse/until:365". Default None:
        any.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Survival([[0.5, 0.2], [0.5, 0.2]], [1.0, 2.0], follow_up=2.0)
    >>> caltest.estimate(predicted, ([0.7, 2.0], [1, 0]), "citl", lens="until:1")
    0.0
    """

    cause: str | None = None

    kind = "until"

    @property
    def label(self) -> str:
        """Cause, if any, then kind and number."""
        return super().label if self.cause is None else f"cause:{self.cause}/{super().label}"

    def check(self, predictions: Rows) -> None:
        """Raise unless times are predicted."""
        super().check(predictions)
        if not isinstance(predictions.law, Survival):
            do = f"give 'below:{self._number:g}'"
            raise self._refusing(Survival.about, predictions.law.about, do)
        predictions.law.of_cause(self.cause).check_horizon(self._number)

    def _of_law(self, predictions: Rows, law: Any) -> Reduction:
        law = law.of_cause(self.cause)
        view = super()._of_law(predictions, law)
        if law.causes:
            view = replace(view, see=partial(_came, law, self._number))
        ended = float(np.mean(law.last < self._number)) if law.follow_up is not None else 0.0
        if ended == 0.0:
            return view
        stated, seen = float(law.risk(self._number).mean()), float(view.rows.probs[:, 1].mean())
        note = (
            f"{ended:.0%} of rows were followed for less than {self._number:g}: of these it counts "
            f"whether the event comes while they are followed. The stated risk by {self._number:g} is "
            f"{stated:.1%} on average, and {seen:.1%} that it comes and is seen."
        )
        rows = predictions.shown_as(view.rows.probs, SEEN)
        return replace(view, rows=replace(rows, notes=(*rows.notes, note)))

    def _ends(self, law: Any) -> tuple[Array | None, Array | None]:
        return None, np.minimum(law.last, law.stated_time(self._number))


def _came(law: Survival, until: float, outcomes: Outcomes, rows: slice = ALL) -> Outcomes:
    """Return 1 if an event of the law's cause occurred by a time, else 0."""
    own = law if rows == ALL else law.take(rows)
    return np.asarray(own.until(outcomes, until)[1] == 1).view(np.uint8)


class Quantile(_AtLevel):
    """For numbers: is the outcome at most the predicted quantile as often as predicted?

    If a distribution has an atom at its quantile, the event has its exact probability, above the level.

    Parameters
    ----------
    level : float or str
        Level of the quantile, between 0 and 1.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 1.0, 2.0, 3.0], sd=1.0)
    >>> caltest.estimate(predicted, [-1.0, 0.0, 1.0, 4.0], "citl", lens="quantile:0.5")
    1.0
    """

    kind = "quantile"

    def _ends(self, law: Predictive) -> tuple[Array | None, Array | None]:
        return None, law.quantile(np.full(law.n_samples, self._number))

    def _of_cells(self, law: Quantiles) -> NDArray[np.uint8]:
        return (np.arange(len(law.levels) + 1) <= law.place(self._number)).astype(np.uint8)


class Interval(_AtLevel):
    """For numbers: is the outcome in the predicted central interval as often as predicted?

    Both ends belong to it. If a distribution has atoms at the ends, the interval has its exact
    probability, above the level.

    Parameters
    ----------
    level : float or str
        Between 0 and 1: 0.9 is from the 5% to the 95% quantile.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 1.0, 2.0, 3.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [0.0, 1.0, 2.0, 6.0], "citl", lens="interval:0.9"), 2)
    -1.0
    """

    kind = "interval"

    def _ends(self, law: Predictive) -> tuple[Array | None, Array | None]:
        return law.central(self._number)

    def _of_cells(self, law: Quantiles) -> NDArray[np.uint8]:
        tail, cells = 0.5 * (1.0 - self._number), np.arange(len(law.levels) + 1)
        return ((cells > law.place(tail)) & (cells <= law.place(1.0 - tail))).astype(np.uint8)


# ------------------------------------------------------------------ many classes


@options()
class Pit(NumberLens):
    """For numbers: does the outcome lie in each of K cells between quantiles as often as predicted?

    Class k is from the quantile k/K, excluded, to the quantile (k + 1)/K, included.

    Parameters
    ----------
    cells : int or str
        Number of cells K, 2 to 100.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Normal([0.0, 1.0, 2.0], sd=1.0)
    >>> rows = caltest.data.Rows(predicted)
    >>> sample = caltest.data.Sample(rows, np.array([0.1, -3.0, 9.0]))
    >>> view, _ = caltest.lenses.through(sample, "pit:4")
    >>> view.rows.probs[0].tolist(), view.labels.tolist()
    ([0.25, 0.25, 0.25, 0.25], [2, 0, 3])
    """

    cells: int | str

    kind: ClassVar[str] = "pit"

    def __post_init__(self) -> None:
        if not 2 <= (whole_number(self.cells) or 0) <= 100:
            do = "give 2 to 100, as in 'pit:10'"
            raise InputError(f"the lens asks for {quoted(self.cells)} cells; {do}.")

    @property
    def _levels(self) -> Array:
        return np.arange(1, int(self.cells)) / int(self.cells)

    def _of_cells(self, law: Quantiles) -> NDArray[np.uint8]:
        cuts = [law.place(level) for level in self._levels]
        return np.searchsorted(cuts, np.arange(len(law.levels) + 1)).astype(np.uint8)

    def _of_law(self, predictions: Rows, law: Predictive) -> Reduction:
        levels = self._levels
        cuts = law.quantile(np.repeat(levels[:, None], law.n_samples, axis=1))
        up_to = _tied(law.cdf(cuts)[1], *levels)
        probs = np.diff(up_to, axis=0, prepend=0.0, append=1.0).clip(min=0.0).T
        return Reduction(predictions.shown_as(probs), partial(_cells_of, cuts), self.label)


def _cells_of(cuts: Array, outcomes: Outcomes, rows: slice = ALL) -> Outcomes:
    """Return the number of its row's cuts (K, n) that lie below each outcome."""
    found = np.zeros(outcomes.shape, dtype=np.uint8)
    for cut in cuts:
        found += outcomes > cut[rows]
    return found


# ------------------------------------------------------------------ vectors
#
# One number of every member vector, whose place in its pool is the vector's. All of these share the
# same places, so results over entries, pairs and ranks are exact jointly.


class OfVectors(NumberLens):
    """A lens of members that are vectors: one number of each, seen through a lens of numbers."""

    @property
    def inner(self) -> Lens:
        """The lens of numbers that the number is seen through."""
        return WholeDistribution()

    @abstractmethod
    def _values(self, law: Pools) -> Array:
        """Return the numbers of all vectors in the pools, (n, N)."""

    def _of_law(self, predictions: Rows, law: Predictive) -> Reduction:
        if not isinstance(law, Pools):
            do = "give a lens such as 'interval:0.9'"
            raise self._refusing("members that are vectors", f"{law.about} that are numbers", do)
        values = self._values(law)
        view = self.inner.show(predictions.shown_as(Pool(np.sort(values, axis=1))))
        table = np.ascontiguousarray(view.outcomes(values.T).swapaxes(0, 1)).reshape(*values.shape, -1)
        unit = 1.0
        if table.dtype.kind == "f":  # ranks, which are multiples of 1/N
            table = np.rint(table * law.size).astype(np.min_scalar_type(law.size))
            unit = 1.0 / law.size
        return Reduction(view.rows, partial(_placed, table, unit), self.label)


def _placed(table: Outcomes, unit: float, outcomes: Outcomes, rows: slice = ALL) -> Outcomes:
    """Return entries of a table (n, N, K) at places (…, r) of rows; without the last axis if K is 1."""
    from caltest.loops import rows as _loops

    own, flat = table[rows], np.atleast_2d(outcomes)
    found = np.empty((*flat.shape, table.shape[2]), np.uint8 if unit == 1.0 else np.float64)
    _loops.at_places(own, flat, unit, found)
    return found.reshape(outcomes.shape if table.shape[2] == 1 else (*outcomes.shape, table.shape[2]))


@options()
class Entry(OfVectors):
    """For vectors: one entry, such as a parameter or a horizon, seen through a lens of numbers.

    Parameters
    ----------
    entry : str
        Its name among those of the members.
    within : Lens, optional
        A lens for numbers. Default None: "distribution", where the entry lies among those of the
        members.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> draws = caltest.predictive.Members(rng.normal(size=(200, 19, 2)), names=["mu", "tau"])
    >>> truth = rng.normal(0.0, [1.0, 2.0], size=(200, 2))
    >>> caltest.test(draws, truth, "spread", lens="entry:tau", rng=0).pvalue
    0.002
    """

    entry: str
    within: Lens | None = None

    @property
    def inner(self) -> Lens:
        """The lens that the entry is seen through."""
        return self.within or WholeDistribution()

    @property
    def label(self) -> str:
        """Its name, and the lens that it is seen through."""
        return f"entry:{self.entry}/{self.inner.label}"

    def _values(self, law: Pools) -> Array:
        return law.entry(self.entry)


@options()
class Pair(OfVectors):
    """For vectors: how two entries vary together, as the product of their deviations from pool means.

    Through it, "bias" is above 0 if predicted correlations are too high, below 0 if too low.

    Parameters
    ----------
    first, second : str
        Names of entries.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> draws = caltest.predictive.Members(rng.normal(size=(300, 19, 2)), names=["a", "b"])
    >>> truth = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=300)
    >>> caltest.test(draws, truth, "bias", lens="pair:a,b", rng=0).pvalue
    0.002
    """

    first: str
    second: str

    kind: ClassVar[str] = "pair"

    def _values(self, law: Pools) -> Array:
        pair = (law.entry(each) for each in (self.first, self.second))
        one, other = (values - values.mean(axis=1, keepdims=True) for values in pair)
        return np.asarray(one * other)


@options()
class VectorRanks(OfVectors):
    """For vectors: how far out in the pool a whole vector lies.

    Parameters
    ----------
    by : {"average", "band_depth"}
        "average": the mean rank of its entries; outcomes that are too high give too few low ranks, and
        too weak a predicted dependence gives too many at both ends. "band_depth": how central its
        entries are, Σ_k (N − r_k)(r_k − 1); too narrow predictions give too many low ones.

    References
    ----------
    Thorarinsdottir, Scheuerer, Heinz, "Assessing the calibration of high-dimensional ensemble forecasts
    using rank histograms", Journal of Computational and Graphical Statistics 25 (2016), Equations 7 and
    8.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> draws = caltest.predictive.Members(rng.normal(size=(300, 9, 4)))
    >>> truth = rng.normal(0.0, 1.4, size=(300, 4))
    >>> caltest.test(draws, truth, "bias", lens="ranks:band_depth", rng=0).pvalue
    0.002
    """

    by: str

    kind: ClassVar[str] = "ranks"

    def __post_init__(self) -> None:
        choose("ranks", self.by, dict.fromkeys(("average", "band_depth")))

    def _values(self, law: Pools) -> Array:
        found = np.zeros(law.pool.shape[:2])
        for name in law.names:
            values = law.entry(name)
            shares = np.stack(Pool(np.sort(values, axis=1)).cdf(values.T)).swapaxes(1, 2)
            below, upto = np.rint(shares * law.size)
            found += below + upto if self.by == "average" else (law.size - upto) * below + upto - below
        return found
