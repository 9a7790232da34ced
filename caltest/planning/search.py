"""`sample_size`: how many rows a test needs for a power.

The number of rows doubles until the power is reached, and is then bisected. Far from the answer a few
data sets decide whether the power is reached, and the others are not simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from caltest._arguments import Number, anything, arguments, count_of_datasets
from caltest.exceptions import Argument, InputError
from caltest.lenses import Lens
from caltest.nulls import Null
from caltest.planning.simulate import Interval, ModelLike, PowerPoint, Simulation, Simulator, check_rows
from caltest.sampling import Rng
from caltest.statistics import StatisticLike

Reached: TypeAlias = Literal["yes", "at the smallest", "no"]

_FEWEST = 24  # data sets of a number of rows
_SHARES = (8, 4, 2, 1)  # of the data sets, one in so many at a time, until they decide
_CLOSE = 0.05  # of a number of rows: no closer bounds are looked for


@dataclass(frozen=True, kw_only=True, repr=False)
class SampleSizeResult(Simulation):
    """The number of rows a test needs to reach the power you want.

    The other attributes are those of :class:`Simulation`.

    Attributes
    ----------
    n
        The number of rows; None if the power is not reached with ``max_n``.
    interval
        95% Clopper–Pearson interval of the power with ``n`` rows; with ``max_n`` if it is not reached.
    reached
        "yes"; "at the smallest": the power is reached with ``min_n``, so fewer might be enough; or
        "no".
    power
        The power you want.
    min_n, max_n
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


@arguments(n_datasets=count_of_datasets, power=anything, min_n=check_rows, max_n=check_rows)
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
    model, statistic, null, lens, alternative, tolerance, alpha, n_resamples, rng, n_jobs, progress
        As in :func:`caltest.power`.
    power
        The power you want, between ``alpha`` and 1. Default 0.8.
    min_n, max_n
        Smallest and largest number of rows to consider. Default 50 and 20 000. For a statistic whose
        time grows with the square of the rows, such as "skce_uq", give a smaller ``max_n``.
    n_datasets
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
    simulator = Simulator.of(given, min_n)
    n = search(simulator.count, wanted, min_n, max_n, int(n_datasets))
    reached: Reached = "no" if n is None else "yes" if n > min_n else "at the smallest"
    interval = simulator.points[max_n if n is None else n].interval
    facts = simulator.facts() | {"power": wanted, "min_n": min_n, "max_n": max_n}
    return SampleSizeResult(n=n, interval=interval, reached=reached, **facts)


def search(
    count: Callable[[int, int, int], PowerPoint], wanted: float, least: int, most: int, n_datasets: int
) -> int | None:
    """Return a number of rows whose power is at least the one wanted; None if ``most`` has less.

    ``count`` tests the data sets of a number of rows, from one to another.
    """
    stops = sorted({min(n_datasets, max(_FEWEST, n_datasets // share)) for share in _SHARES})

    def simulated(n: int) -> PowerPoint:
        """Simulate until the power wanted is outside the interval, or there are no more data sets."""
        point = count(n, 0, stops[0])
        for start, stop in pairwise(stops):
            if not point.interval[0] <= wanted <= point.interval[1]:
                break
            point += count(n, start, stop)
        return point

    few, n = 0, least  # too few rows, and those that are simulated next
    while (point := simulated(n)).power < wanted:
        if n == most:
            return None
        few, n = n, min(2 * n, most)
    enough, sure = n, point.interval[0] > wanted
    while sure and enough > least and enough - few > max(1.0, _CLOSE * few):
        n = round((few * enough) ** 0.5)
        point = simulated(n)
        if point.power >= wanted:
            enough, sure = n, point.interval[0] > wanted
        else:
            few = n
    return enough
