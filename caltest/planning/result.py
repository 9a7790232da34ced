"""The results of planning: frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from caltest import pvalues
from caltest._arguments import arguments
from caltest.exceptions import InputError
from caltest.planning.curve import PowerCurve
from caltest.results import Result, plain

if TYPE_CHECKING:
    import pandas as pd

Interval: TypeAlias = tuple[float, float]
Reached: TypeAlias = Literal["yes", "at the smallest", "no"]


@dataclass(frozen=True)
class PowerPoint:
    """How often the data sets of one size were rejected.

    Attributes
    ----------
    n
        Rows of a data set.
    n_datasets
        Data sets, independent.
    rejections
        How many of them were rejected.
    false_rejections
        How many were rejected with labels drawn from the same predictions, as if the model were
        calibrated; None if not asked.
    """

    n: int
    n_datasets: int
    rejections: int
    false_rejections: int | None = None

    def __add__(self, other: PowerPoint) -> PowerPoint:
        """Return the counts of both, of one size."""
        falsely = None
        if self.false_rejections is not None and other.false_rejections is not None:
            falsely = self.false_rejections + other.false_rejections
        counts = self.n_datasets + other.n_datasets, self.rejections + other.rejections
        return PowerPoint(self.n, *counts, falsely)

    @property
    def power(self) -> float:
        """The share that was rejected."""
        return self.rejections / self.n_datasets

    @property
    def interval(self) -> Interval:
        """95% Clopper–Pearson interval of the power: exact, for data sets are independent."""
        return pvalues.interval(self.rejections, self.n_datasets, "greater")

    @property
    def size(self) -> float | None:
        """The share rejected of calibrated models (type I error); None if not asked."""
        return None if self.false_rejections is None else self.false_rejections / self.n_datasets

    @property
    def size_interval(self) -> Interval | None:
        """95% Clopper–Pearson interval of the type I error; None if not asked."""
        if self.false_rejections is None:
            return None
        return pvalues.interval(self.false_rejections, self.n_datasets, "greater")

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON."""
        names = ("n", "n_datasets", "rejections", "power", "interval")
        more = ("false_rejections", "size", "size_interval")
        return {name: plain(getattr(self, name)) for name in (*names, *more)}


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulation(Result):
    """The attributes that the results of power and sample size share.

    Attributes
    ----------
    points
        What was simulated, by number of rows.
    assumed
        The model, as a clause.
    error
        By how much it is wrong, where the truth is known: mean total variation distance of
        the predicted from the true probabilities, in [0, 1]. Else None.
    statistic, null, guarantee, alternative, lens, tolerance
        The test, as in :class:`caltest.CalibrationResult`.
    n_classes
        Classes of the predictions, as the lens shows them; None for distributions of numbers.
    alpha
        The level.
    n_resamples
        Resamples of each test; None where there are none.
    seed
        Integer that, given as ``rng``, repeats the numbers.
    warnings
        Sentences a reader should know.
    """

    points: tuple[PowerPoint, ...]
    assumed: str
    error: float | None
    statistic: str
    null: str
    guarantee: str
    alternative: str
    lens: str | None
    tolerance: float | None
    n_classes: int | None
    alpha: float
    n_resamples: int | None
    seed: int
    warnings: tuple[str, ...] = ()

    @arguments()
    def to_frame(self) -> pd.DataFrame:
        """Return a row for each number of rows simulated.

        Returns
        -------
        pandas.DataFrame
            Columns ``n``, ``n_datasets``, ``rejections``, ``power``, ``low`` and ``high`` (the 95%
            interval), ``false_rejections``, ``size``, ``size_low`` and ``size_high`` (missing if not
            asked).
        """
        import pandas as pd

        rows = []
        for point in self.points:
            made = point.to_dict()
            made["low"], made["high"] = made.pop("interval")
            made["size_low"], made["size_high"] = made.pop("size_interval") or (None, None)
            rows.append(made)
        order = ["n", "n_datasets", "rejections", "power", "low", "high"]
        return pd.DataFrame(rows)[[*order, "false_rejections", "size", "size_low", "size_high"]]


@dataclass(frozen=True, kw_only=True, repr=False)
class PowerResult(Simulation):
    """The power of a test for each number of rows: how often it detects the assumed error.

    The attributes are those of :class:`Simulation`.

    Examples
    --------
    >>> import caltest
    >>> from functools import partial
    >>> too_sure = partial(caltest.simulation.tempered, temperature=0.5)
    >>> found = caltest.power(too_sure, [20, 100], "ecd", n_datasets=50, rng=0)
    >>> [(point.n, point.power) for point in found.points]
    [(20, 0.68), (100, 1.0)]
    """

    @property
    def power(self) -> float:
        """The power, of the only number of rows."""
        return self._only().power

    @property
    def interval(self) -> Interval:
        """Its 95% Clopper–Pearson interval."""
        return self._only().interval

    @property
    def size(self) -> float | None:
        """The type I error, of the only number of rows; None if not asked."""
        return self._only().size

    def _only(self) -> PowerPoint:
        if len(self.points) != 1:
            raise InputError(
                f"there are {len(self.points)} numbers of rows; look at points, or to_frame()."
            )
        return self.points[0]


@dataclass(frozen=True, kw_only=True, repr=False)
class SampleSizeResult(Simulation):
    """The number of rows a test needs to reach the power you want.

    The other attributes are those of :class:`Simulation`.

    Attributes
    ----------
    n
        The number of rows; None if the power is not reached with ``max_n``.
    interval
        95% interval of the number of rows, which accounts for the simulation. The lower end is
        None if fewer than ``min_n`` may be enough. The upper end is None if more than ``max_n``
        may be needed, or if no number may be enough because the power levels off below the one you
        want. ``(80, None)`` with ``max_n=80`` means that more are needed, ``(None, 50)`` with
        ``min_n=50`` that 50 are enough.
    reached
        "yes"; "at the smallest": the power is reached with ``min_n``, so fewer might be enough; or
        "no".
    power
        The power you want.
    min_n, max_n
        The range of numbers of rows that was searched.
    curve
        The fitted curve of power; ``curve(n)`` is its height.

    Examples
    --------
    >>> import caltest
    >>> from functools import partial
    >>> too_sure = partial(caltest.simulation.tempered, temperature=0.5)
    >>> found = caltest.sample_size(too_sure, "ecd", n_datasets=50, rng=0, min_n=10, max_n=200)
    >>> found.n, found.interval, found.reached
    (25, (21, 33), 'yes')
    """

    n: int | None
    interval: tuple[int | None, int | None]
    reached: Reached
    power: float
    min_n: int
    max_n: int
    curve: PowerCurve
