"""`sample_size`: how many rows a test needs for a power.

A sequential design. First the numbers of rows double from the smallest on, with few data sets each,
until the power wanted is seen: no size far beyond the answer is ever simulated, and those are what
takes time. Then come batches of data sets, each where the curve fitted to the counts so far reaches the
power, and one at twice that, which tells a power that goes on rising from one that levels off. The
curve fitted in the end gives the answer and, by a likelihood ratio, its interval. Data sets are
independent, so that the likelihood of the counts is what it is for a design fixed beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from caltest._arguments import Number, anything, arguments, count_of_datasets
from caltest.exceptions import Argument, InputError
from caltest.lenses import Lens
from caltest.nulls import Null
from caltest.planning.curve import UNLIKELY, Fit, PowerCurve, fit
from caltest.planning.simulate import ModelLike, PowerPoint, Simulation, Simulator, check_rows
from caltest.sampling import Rng
from caltest.statistics import StatisticLike

Reached: TypeAlias = Literal["yes", "at the smallest", "no"]

_COUNTS = ("n", "rejections", "n_datasets")
_COARSE = 24  # data sets of each of the doubling sizes
_NEAR = 3.0  # times as many rows, or as few, still tell of the answer
_BATCHES = 6  # of the data sets near the answer; the first are small, for where they lie is a guess
_BEYOND, _SHARE = 2, 8  # so many times as many rows have one in so many of these data sets


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
    n_datasets: int = 400,
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
        Smallest and largest number of rows to consider. Default 50 and 20 000. If the power is not
        reached, 24 data sets of ``max_n`` rows are tested; for a statistic whose time grows with
        the square of the rows, such as "skce_uq", give a smaller ``max_n``.
    n_datasets
        Number of data sets simulated near the answer, after a few on the way there; an eighth of
        them have twice as many rows. Default 400: the 95% interval is then about an eighth of the
        answer either way. Four times as many halve it.

    Returns
    -------
    SampleSizeResult
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``. ``n`` is the
        answer, or None if the power is not reached with ``max_n``; ``interval`` is its 95%
        interval, which accounts for the simulation only; ``points`` has all counts.

    Raises
    ------
    InputError
        If an argument is wrong, or the test cannot be used with the model. The message says what
        to do.

    Notes
    -----
    The power is modelled as Φ(−z_α + r·n^γ), or as levelling off below 1, as it does if the model
    is wrong in only some of its data sets. The interval allows for both. It has no upper end if
    the counts do not rule out that the power is never reached. The method assumes that power does
    not fall as n grows, and has no steps between the numbers of rows simulated; a note says if the
    counts contradict this (:mod:`caltest.planning.curve`).

    With the default statistic, ten classes and an answer of 1 000 rows, it takes less than a
    minute on two cores; signed or cumulative statistics ("ecd", "ks") take seconds.

    Examples
    --------
    >>> import caltest
    >>> from functools import partial
    >>> from caltest.simulation import tempered
    >>> sure = partial(tempered, temperature=0.8)
    >>> found = caltest.sample_size(sure, "ecd", n_datasets=100, rng=0)
    >>> found.n, found.interval
    (233, (200, 284))
    """
    given = dict(locals())
    advice = f"give a probability above alpha, {alpha:g}, and below 1, such as 0.8"
    wanted = Number(alpha, 1.0, advice=advice)("power", power)
    if min_n >= max_n:
        raise InputError(
            "{argument} is {found} and {other} {most}; give a smaller and a larger number.",
            argument="min_n",
            found=min_n,
            other=Argument("max_n"),
            most=max_n,
        )
    simulator = Simulator.of(given, min_n)
    search = Search(simulator.count, float(alpha), wanted, min_n, max_n)
    search.double()
    if search.undecided:
        search.refine(int(n_datasets))
    facts = simulator.facts()
    facts["warnings"] += search.notes()
    return SampleSizeResult(**facts, **search.answer(), power=wanted, min_n=min_n, max_n=max_n)


@dataclass
class Search:
    """The counts so far, and what to simulate next.

    ``count`` takes a number of rows, and from which data set of that size to which, and tests them.
    """

    count: Callable[[int, int, int], PowerPoint]
    alpha: float
    power: float
    least: int
    most: int
    points: list[PowerPoint] = field(default_factory=list)

    def simulate(self, n: int, datasets: int) -> PowerPoint:
        """Simulate more data sets of ``n`` rows."""
        start = sum(point.n_datasets for point in self.points if point.n == n)
        self.points.append(self.count(n, start, start + datasets))
        return self.points[-1]

    def double(self) -> None:
        """Double the number of rows until the power is seen, or there are no more."""
        n = self.least
        while self.simulate(n, _COARSE).power < self.power and n < self.most:
            n = min(2 * n, self.most)

    @property
    def undecided(self) -> bool:
        """Whether the answer may lie between the smallest and the largest number of rows."""
        first, last = self.points[0], self.points[-1]
        at_once = len(self.points) == 1 and first.interval[0] > self.power
        never = last.n == self.most and last.interval[1] < self.power
        return not (at_once or never)

    def fit(self) -> Fit:
        """Fit the curve to the counts near the answer.

        Far from it the curve's form would matter: a test whose true level is far below alpha starts
        lower.
        """

        def of(points: list[PowerPoint]) -> Fit:
            rows, rejections, counts = ([getattr(each, name) for each in points] for name in _COUNTS)
            return fit(rows, rejections, counts, self.alpha, self.power)

        whole = of(self.points)
        near = [point for point in self.points if 1.0 / _NEAR <= point.n / whole.curve.n <= _NEAR]
        return of(near) if near else whole

    def refine(self, datasets: int) -> None:
        """Simulate data sets where the fitted curve reaches the power, in batches, and a few beyond.

        None has more than twice the rows with which doubling saw the power: if it levels off, the
        answer may be anywhere, and the work would have no end.
        """
        furthest = min(_BEYOND * self.points[-1].n, self.most)
        beyond = datasets // _SHARE
        near = datasets - beyond
        ends = np.unique((near * (np.arange(_BATCHES + 1) / _BATCHES) ** 1.5).round().astype(int))
        for start, stop in pairwise(ends.tolist()):
            # To two digits, so that batches meet at the same number of rows.
            there = min(self.fit().curve.n, furthest)
            step = 10.0 ** max(np.floor(np.log10(max(there, 1.0))) - 1.0, 0.0)
            n = max(int(round(there / step) * step), self.least)
            if beyond and stop == ends[-2]:
                self.simulate(min(_BEYOND * n, furthest), beyond)
            self.simulate(min(n, furthest), stop - start)

    def answer(self) -> dict[str, Any]:
        """Return the number of rows, its interval, whether the power is reached, and the curve."""
        found = self.fit()
        n: int | None = None
        reached: Reached = "no"
        if found.curve.n <= self.most and (self.undecided or self.points[-1].n < self.most):
            n = max(int(np.ceil(found.curve.n)), self.least)
            reached = "yes" if n > self.least else "at the smallest"
        low = min(int(np.ceil(found.low)), self.most) if found.low > self.least else None
        high = max(int(np.ceil(found.high)), self.least) if found.high < self.most else None
        return {"n": n, "interval": (low, high), "reached": reached, "curve": found.curve}

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the answer should know."""
        found, notes = self.fit(), []
        if found.misfit < UNLIKELY:
            notes.append(
                f"The counts lie on no curve of the kind that is fitted (p = {found.misfit:.1g}): the "
                "power may rise in steps, or fall again; look at points, and simulate the power near "
                "the answer."
            )
        if found.curve.n <= self.most < found.high:
            notes.append(
                f"The simulation does not exclude that the power levels off below {self.power:g}, or "
                f"reaches it with more than max_n = {self.most:,} rows only; more data sets would tell."
            )
        return tuple(notes)
