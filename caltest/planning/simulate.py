"""`power` and `sample_size`: how often a test rejects a wrong model, and how many rows it needs.

The number of rows doubles until the power is reached, and is then bisected. Far from the answer, a few
data sets are enough to decide, and the others are not simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from caltest import pvalues
from caltest._arguments import MOST_RESAMPLES, Number, Whole, anything, arguments, check_draws, flag
from caltest._parallel import Workers
from caltest.data import Rows, sample
from caltest.exceptions import Argument, InputError
from caltest.laws import Classes, Members, Quantiles, Survival, recognised
from caltest.lenses import Lens
from caltest.nulls import Null
from caltest.planning.pilot import Model, Pilot, check_rows_drawn, described, drawn_by, find_model
from caltest.results import Facts, Result
from caltest.sampling import Rng, child_seed, generator, seed_of
from caltest.simulation import Simulated
from caltest.statistics import StatisticLike, find_statistic
from caltest.story import Story
from caltest.testing import test

if TYPE_CHECKING:
    import pandas as pd

Interval: TypeAlias = tuple[float, float]
ModelLike: TypeAlias = "Model | Pilot | Simulated"

_EXCEEDANCES = 10  # draws that may exceed on one side: 199 draws for a level of 0.05
_count = Whole(1, 10_000_000)  # number of data sets
check_rows = Whole(2, 10**8, "give a whole number of rows, at least 2", f"give at most {10**8:,} rows")
_DATA, _TEST, _CALIBRATED_LABELS, _CALIBRATED_TEST = range(4)  # random streams of a data set
#: Arguments of the planned test, and attributes of its result that are reported.
_OF_TESTS = ("statistic", "null", "lens", "alternative", "tolerance")
_OF_RESULTS = ("null", "guarantee", "alternative", "lens", "n_classes")
_NO_OUTCOMES = (
    "{argument} draws outcomes from the predictions, and of these only their ranks can be drawn; leave "
    "it out: a test that is exact rejects at most alpha of calibrated models."
)
_MANY_TIMES = 10  # ratio of rows in a data set to those in the pilot from which on a note is due


# ------------------------------------------------------------------ results


@dataclass(frozen=True)
class PowerPoint(Facts):
    """Rejections among the data sets of one size.

    Attributes
    ----------
    n : int
        Rows of a data set.
    n_datasets : int
        Data sets, independent.
    rejections : int
        How many of them were rejected.
    false_rejections : int or None
        How many were rejected with labels drawn from the same predictions, as if the model were
        calibrated; None if not asked.
    """

    n: int
    n_datasets: int
    rejections: int
    false_rejections: int | None = None

    derived: ClassVar[tuple[str, ...]] = ("power", "interval", "size", "size_interval")

    def __add__(self, other: PowerPoint) -> PowerPoint:
        """Add the counts of another point of the same size."""
        own, more = self.false_rejections, other.false_rejections
        falsely = None if own is None or more is None else own + more
        counts = self.n_datasets + other.n_datasets, self.rejections + other.rejections
        return PowerPoint(self.n, *counts, falsely)

    @property
    def power(self) -> float:
        """The share of data sets rejected."""
        return self.rejections / self.n_datasets

    @property
    def interval(self) -> Interval:
        """95% Clopper–Pearson interval of the power: exact, because data sets are independent."""
        return pvalues.interval(self.rejections, self.n_datasets, "greater")

    @property
    def size(self) -> float | None:
        """The share of calibrated models rejected (type I error); None if not requested."""
        return None if self.false_rejections is None else self.false_rejections / self.n_datasets

    @property
    def size_interval(self) -> Interval | None:
        """95% Clopper–Pearson interval of the type I error; None if not requested."""
        falsely = self.false_rejections
        return None if falsely is None else pvalues.interval(falsely, self.n_datasets, "greater")


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulation(Result):
    """The attributes that the results of power and sample size share.

    Attributes
    ----------
    points : tuple of PowerPoint
        What was simulated, by number of rows.
    assumed : str
        The model, as a clause.
    error : float or None
        By how much it is wrong, where the truth is known: mean total variation distance of
        the predicted from the true probabilities, in [0, 1]. Else None.
    statistic, null, guarantee, alternative : str
        The test, as in :class:`caltest.CalibrationResult`.
    lens : str or None
        The lens of the test.
    tolerance : float or None
        The tolerance of the test.
    n_classes : int or None
        Classes of the predictions, as the lens shows them; None for distributions of numbers.
    alpha : float
        The level.
    n_resamples : int or None
        Resamples of each test; None where there are none.
    seed : int
        Integer that, given as ``rng``, repeats the numbers.
    warnings : tuple of str
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

    @property
    def story(self) -> Story:
        """The story of a simulation: a number, without a verdict."""
        return Story(verdict="")

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

        columns = ["n", "n_datasets", "rejections", "power", "low", "high"]
        columns += ["false_rejections", "size", "size_low", "size_high"]
        rows = [
            (x.n, x.n_datasets, x.rejections, x.power, *x.interval, x.false_rejections, x.size)
            + (x.size_interval or (None, None))
            for x in self.points
        ]
        return pd.DataFrame(rows, columns=columns)


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
        """The power for the only number of rows."""
        return self._only().power

    @property
    def interval(self) -> Interval:
        """Its 95% Clopper–Pearson interval."""
        return self._only().interval

    @property
    def size(self) -> float | None:
        """The type I error for the only number of rows; None if not requested."""
        return self._only().size

    def _only(self) -> PowerPoint:
        if len(self.points) != 1:
            do = "look at points, or to_frame()"
            raise InputError(f"there are {len(self.points)} numbers of rows; {do}.")
        return self.points[0]


# ------------------------------------------------------------------ power


@arguments(n_datasets=_count, under_null=flag)
def power(
    model: ModelLike,
    n: int | Sequence[int],
    statistic: StatisticLike | None = None,
    *,
    null: str | Null | None = None,
    lens: str | Lens | None = None,
    alternative: str | None = None,
    tolerance: float | None = None,
    alpha: float = 0.05,
    n_datasets: int = 400,
    n_resamples: int | None = None,
    under_null: bool = False,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> PowerResult:
    """Simulate the power of a test: how often it detects a given error with n rows.

    Parameters
    ----------
    model : callable, Pilot or Simulated
        The model that is assumed:

        * :func:`caltest.planning.pilot` with pilot predictions and an error that you state;
        * a function of :mod:`caltest.simulation`, with its options set by
          :func:`functools.partial`, or your own function: it is called with a number of rows and
          ``rng``, a numpy Generator, must take all random numbers from it, and returns a
          :class:`caltest.simulation.Simulated`, a pair (probs, labels), or, with weights, the result
          of ``caltest.data.sample(probs, labels, weights=…)``.
    n : int or sequence of int
        Number of rows per data set, or several numbers.
    statistic : str, Statistic or callable, optional
        The test to plan, as in :func:`caltest.test`.
    null : str or Null, optional
        The test to plan, as in :func:`caltest.test`.
    lens : str or Lens, optional
        The test to plan, as in :func:`caltest.test`.
    alternative : {"greater", "less", "two-sided", "over", "under"}, optional
        The test to plan, as in :func:`caltest.test`.
    tolerance : float, optional
        The test to plan, as in :func:`caltest.test`.
    alpha : float, default 0.05
        Level of the test: it rejects if the p-value is at most this.
    n_datasets : int, default 400
        Number of simulated data sets per size. Default 400: the 95% interval of a power of 0.8 is
        then ±0.04.
    n_resamples : int, optional
        Number of simulated label sets per test, where the null simulates. Default None: 10/alpha −
        1, which is 199 for 0.05 (twice as many for two-sided tests). More give the exact test
        slightly more power: at level 0.05, 999 give 0.798 where 199 have 0.792 and infinitely many
        0.8.
    under_null : bool, default False
        Also test the same predictions with labels drawn from them, to estimate the type I error,
        ``size``. For an exact null it is known to be at most alpha. Default False, because it
        doubles the time.
    rng : int, SeedSequence or Generator, optional
        The same ``rng`` gives the same numbers for every ``n_jobs``. Each data set depends only on
        ``rng``, its size and its number.
    n_jobs : int, optional
        Number of workers, as in joblib: None is one, −1 all cores. They share the data sets.
    progress : bool, default False
        Show a progress bar during long work, on standard error, if that is a terminal.

    Returns
    -------
    PowerResult
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``. ``points`` has
        all counts; ``power`` and ``interval`` (exact: Clopper–Pearson) are those of the only n.

    Raises
    ------
    InputError
        If an argument is wrong, or the test cannot be used with the model. The message says what
        to do.

    Notes
    -----
    The interval accounts for the simulation only, not for the assumptions: power is against the
    model you assume, and rows must be independent.

    Examples
    --------
    >>> import caltest
    >>> from caltest.planning import pilot
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> sure = pilot(digits.probs, overconfidence=0.02)
    >>> found = caltest.power(sure, 200, "ecd", n_datasets=100, rng=0)
    >>> found.power
    0.82
    """
    given = dict(locals())
    n = n.item() if isinstance(n, np.ndarray) and n.ndim == 0 else n
    if not (several := list(n) if np.iterable(n) and not isinstance(n, str | bytes) else [n]):
        raise InputError("n is empty; give a number of rows, or several.")
    sizes = sorted({check_rows("n", each) for each in several})
    simulator = Simulator(given, sizes[0])
    for size in sizes:
        simulator.count(size, 0, int(n_datasets))
    return PowerResult(**simulator.facts())


# ------------------------------------------------------------------ data sets


class Simulator:
    """Draws data sets of a model, tests them and keeps the counts.

    ``given`` are the arguments of :func:`power`, or of a function that plans with it; ``least`` rows
    are drawn to check the model. Data set i of n rows depends on the seed, n and i alone.
    """

    def __init__(self, given: Mapping[str, Any], least: int) -> None:
        self.seed, self.workers = seed_of(given["rng"]), Workers(given["n_jobs"], given["progress"])
        self.model, self.alpha = find_model(given["model"], least, self.seed), float(given["alpha"])
        self.under_null, n_resamples = given.get("under_null", False), given["n_resamples"]
        self.points, self.errors = dict[int, PowerPoint](), list[float]()  # errors, where known
        self.classes, self.result = set[int](), None  # a result to quote from
        self.options: dict[str, Any] = {name: given[name] for name in _OF_TESTS}  # of `test`
        statistic, alternative = self.options["statistic"], self.options["alternative"]
        if alternative is None:
            own = "greater" if statistic is None else find_statistic(statistic).alternatives[0]
            alternative = own if self.options["tolerance"] is None else "two-sided"
        if n_resamples is None:
            # α (B + 1) is a whole number for the usual levels.
            wanted = min(_sides(alternative) * _EXCEEDANCES / self.alpha, 2.0 * MOST_RESAMPLES)
            n_resamples = min(math.ceil(round(wanted, 9)) - 1, MOST_RESAMPLES)
        self.options |= {"n_resamples": int(n_resamples), "n_jobs": 1}

    def count(self, n: int, start: int, stop: int) -> PowerPoint:
        """Draw and test the data sets ``start`` to ``stop``, with ``n`` rows each."""
        tasks = [(n, number) for number in range(start, stop)]
        found = list(self.workers.map(self.outcome, tasks, f"{stop - start} data sets of {n:,} rows"))
        rejected, falsely, errors, results = zip(*found, strict=True)
        self.classes |= {each.n_classes for each in results if each.n_classes is not None}
        if len(self.classes) > 1:
            why = f"the model drew data sets of {min(self.classes)} and of {max(self.classes)} classes"
            raise InputError(f"{why}; draw as many classes each time.")
        self.errors += [each for each in errors if each is not None]
        self.result = results[0]
        point = PowerPoint(n, len(results), sum(rejected), sum(falsely) if self.under_null else None)
        self.points[n] = self.points[n] + point if n in self.points else point
        return point

    def outcome(self, n: int, number: int) -> tuple[bool, bool, float | None, Any]:
        """Return the decisions for data and for calibrated labels, the error, and the test's result."""
        own = child_seed(self.seed, n, number)
        probs, labels, error = drawn_by(self.model, n, generator(own, _DATA))
        result = test(probs, labels, **self.options, rng=child_seed(own, _TEST))
        counted = probs if isinstance(probs, Rows) else result  # tests leave out rows of weight 0
        check_rows_drawn(n, counted.n_samples)
        if result.n_resamples is not None:  # could any outcome be rejected?
            sides = _sides(result.alternative)
            check_draws("n_resamples", self.options["n_resamples"], self.alpha, sides)
        falsely = False
        if self.under_null:
            of_law = isinstance(probs, Rows) and not isinstance(probs.law, Classes)
            law = recognised(probs.law if of_law else probs)
            if isinstance(law, Quantiles | Members | Survival):
                raise InputError(_NO_OUTCOMES, argument="under_null")
            claimed = sample(probs, labels).rows if law is None else law
            drawn = claimed.sampler(child_seed(own, _CALIBRATED_LABELS)).draw(0, 1)[0]
            again = test(claimed, drawn, **self.options, rng=child_seed(own, _CALIBRATED_TEST))
            falsely = again.rejects(self.alpha)
        return result.rejects(self.alpha), falsely, error, result

    def facts(self) -> dict[str, Any]:
        """Return the facts in every result: counts by size, the model and the test."""
        last: Any = self.result
        error = float(np.mean(self.errors)) if self.errors else None
        notes: tuple[str, ...] = ()
        if isinstance(self.model, Pilot):
            error, notes = self.model.error, self.model.notes
            rows, largest = self.model.predictions.n_samples, max(self.points)
            if largest >= _MANY_TIMES * rows:
                notes += (
                    f"The pilot has {rows:,} rows, so that {largest:,} repeat each of them "
                    f"{largest / rows:.0f} times: what such a model says elsewhere is not known.",
                )
        facts = {"points": tuple(self.points[n] for n in sorted(self.points)), "seed": self.seed}
        facts |= {"assumed": described(self.model), "error": error, "alpha": self.alpha}
        facts |= {"warnings": notes, "tolerance": self.options["tolerance"]}
        facts["n_resamples"] = last.n_resamples and self.options["n_resamples"]
        return facts | {"statistic": last.name, **{name: getattr(last, name) for name in _OF_RESULTS}}


def _sides(alternative: str) -> int:
    return 2 if alternative == "two-sided" else 1


Reached: TypeAlias = Literal["yes", "at the smallest", "no"]

_FEWEST = 24  # data sets per number of rows
_SHARES = (8, 4, 2, 1)  # the data sets come in these fractions (1/8, 1/4, …) until they decide
_CLOSE = 0.05  # relative distance of bounds at which the search stops


@dataclass(frozen=True, kw_only=True, repr=False)
class SampleSizeResult(Simulation):
    """The number of rows a test needs to reach the power you want.

    The other attributes are those of :class:`Simulation`.

    Attributes
    ----------
    n : int or None
        The number of rows; None if the power is not reached with ``max_n``.
    interval : tuple of two floats
        95% Clopper–Pearson interval of the power with ``n`` rows; with ``max_n`` if it is not reached.
    reached : {"yes", "at the smallest", "no"}
        "yes"; "at the smallest": the power is reached with ``min_n``, so fewer might be enough; or
        "no".
    power : float
        The power you want.
    min_n, max_n : int
        The range of numbers of rows that was searched.

    Examples
    --------
    >>> import caltest
    >>> from functools import partial
    >>> too_sure = partial(caltest.simulation.tempered, temperature=0.5)
    >>> found = caltest.sample_size(too_sure, "ecd", n_datasets=50, rng=0, min_n=10, max_n=200)
    >>> found.n, found.reached
    (28, 'yes')
    """

    n: int | None
    interval: Interval
    reached: Reached
    power: float
    min_n: int
    max_n: int


@arguments(n_datasets=_count, power=anything, min_n=check_rows, max_n=check_rows)
def sample_size(
    model: ModelLike,
    statistic: StatisticLike | None = None,
    *,
    power: float = 0.8,
    null: str | Null | None = None,
    lens: str | Lens | None = None,
    alternative: str | None = None,
    tolerance: float | None = None,
    alpha: float = 0.05,
    min_n: int = 50,
    max_n: int = 20_000,
    n_datasets: int = 200,
    n_resamples: int | None = None,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> SampleSizeResult:
    """Find how many rows a test needs to detect a given error.

    Parameters
    ----------
    model : callable, Pilot or Simulated
        As in :func:`caltest.power`.
    statistic : str, Statistic or callable, optional
        As in :func:`caltest.power`.
    null : str or Null, optional
        As in :func:`caltest.power`.
    lens : str or Lens, optional
        As in :func:`caltest.power`.
    alternative : {"greater", "less", "two-sided", "over", "under"}, optional
        As in :func:`caltest.power`.
    tolerance : float, optional
        As in :func:`caltest.power`.
    alpha : float, default 0.05
        As in :func:`caltest.power`.
    n_resamples : int, optional
        As in :func:`caltest.power`.
    rng : int, SeedSequence or Generator, optional
        As in :func:`caltest.power`.
    n_jobs : int, optional
        As in :func:`caltest.power`.
    progress : bool, default False
        As in :func:`caltest.power`.
    power : float, default 0.8
        The power you want, between ``alpha`` and 1.
    min_n : int, default 50
        Smallest number of rows to consider.
    max_n : int, default 20 000
        Largest number of rows to consider. For a statistic whose time grows with the square of the
        rows, such as "skce_uq", give a smaller one.
    n_datasets : int, default 200
        Number of data sets simulated for each number of rows near the answer; far from it, as few as
        24 decide. Default 200: the power with the number of rows found is then known to about ±0.05.
        Four times as many halve that, and come closer to the fewest rows that are enough.

    Returns
    -------
    SampleSizeResult
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``. ``n`` is the
        answer, or None if the power is not reached with ``max_n``; ``interval`` is the 95% interval
        of the power with so many rows, and ``points`` has all counts.

    Raises
    ------
    InputError
        If an argument is wrong, or the test cannot be used with the model. The message says what
        to do.

    Notes
    -----
    The number of rows doubles until the power is reached, and is then bisected to 5%. The search ends
    at the first number of rows where the share of rejections is at least the power wanted and its 95%
    interval holds that power. It is the fewest but for the simulation's noise: 5% to 10% too many on
    average. The method assumes that power does not fall as n grows.

    Examples
    --------
    >>> import caltest
    >>> from functools import partial
    >>> from caltest.simulation import tempered
    >>> sure = partial(tempered, temperature=0.8)
    >>> found = caltest.sample_size(sure, "ecd", n_datasets=100, rng=0)
    >>> found.n, [round(end, 2) for end in found.interval]
    (283, [0.71, 0.87])
    """
    given = dict(locals())
    advice = f"give a probability above alpha, {alpha:g}, and below 1, such as 0.8"
    wanted = Number(alpha, 1.0, advice=advice)("power", power)
    if min_n >= max_n:
        text = "{argument} is {found} and {other} {most}; give a smaller and a larger number."
        raise InputError(text, argument="min_n", found=min_n, other=Argument("max_n"), most=max_n)
    simulator = Simulator(given, min_n)
    n = search(simulator.count, wanted, min_n, max_n, int(n_datasets))
    reached: Reached = "no" if n is None else "yes" if n > min_n else "at the smallest"
    interval = simulator.points[max_n if n is None else n].interval
    facts = simulator.facts() | {"power": wanted, "min_n": min_n, "max_n": max_n}
    return SampleSizeResult(n=n, interval=interval, reached=reached, **facts)


def search(
    count: Callable[[int, int, int], PowerPoint], wanted: float, least: int, most: int, n_datasets: int
) -> int | None:
    """Return a number of rows that reaches the wanted power; None if ``most`` is not enough.

    ``count`` tests the data sets of a number of rows, from a first to a last one.
    """
    stops = sorted({min(n_datasets, max(_FEWEST, n_datasets // share)) for share in _SHARES})

    def simulated(n: int) -> PowerPoint:
        """Simulate until the interval excludes the wanted power, or data sets run out."""
        point = count(n, 0, stops[0])
        for start, stop in pairwise(stops):
            if not point.interval[0] <= wanted <= point.interval[1]:
                break
            point += count(n, start, stop)
        return point

    few, n = 0, least  # too few rows, and the next number to simulate
    while (point := simulated(n)).power < wanted:
        if n == most:
            return None
        few, n = n, min(2 * n, most)
    enough, sure = n, point.interval[0] > wanted
    while sure and enough > least and enough - few > max(1.0, _CLOSE * few):
        n = round((few * enough) ** 0.5)
        if (point := simulated(n)).power >= wanted:
            enough, sure = n, point.interval[0] > wanted
        else:
            few = n
    return enough
