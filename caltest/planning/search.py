"""`sample_size`: how many rows a test needs for a power.

A sequential design. First the numbers of rows double from the smallest on, with few data sets each,
until the power wanted is seen: no size far beyond the answer is ever simulated, and those are what
takes time. Then come batches of data sets, each where the curve fitted to the counts so far reaches the
power. The curve fitted in the end gives the answer and, by a likelihood ratio, its interval. Data sets
are independent, so that the likelihood of the counts is what it is for a design fixed beforehand.
"""

from __future__ import annotations

from itertools import pairwise
from numbers import Real
from typing import Any, cast

import numpy as np

from caltest._choices import positive_integer
from caltest._parallel import Workers
from caltest._seeds import Rng, seed_of
from caltest.exceptions import InputError
from caltest.lenses import Lens
from caltest.named import StatisticLike
from caltest.nulls import Null
from caltest.planning.curve import Fit, fit
from caltest.planning.datasets import Asked, Counted, ModelLike, Simulator, check_rows, find_model
from caltest.planning.result import PowerPoint, Reached, SampleSizeResult
from caltest.planning.simulate import common

_COARSE = 24  # data sets of each of the doubling sizes
_NEAR = 3.0  # times as many rows, or as few, still tell of the answer
_BATCHES = 6  # of the data sets near the answer; the first are small, for where they lie is a guess


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
    """Find how many rows a test needs to reject a model that is wrong in a known way.

    Parameters
    ----------
    model, statistic, null, lens, alternative, tolerance, alpha, n_resamples, rng, n_jobs, progress
        As in :func:`caltest.power`.
    power
        The probability wanted, between ``alpha`` and 1. Default 0.8.
    min_n, max_n
        Fewest and most rows that are looked at. Default 50 and 20 000.
    n_datasets
        Data sets near the answer, after a few on the way there. Default 400: the answer is known to
        about an eighth (95% interval); four times as many halve that.

    Returns
    -------
    SampleSizeResult
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``. ``n`` is the
        answer, None if the power is not reached with ``max_n``, and ``interval`` where it lies, as far
        as the simulation goes; ``points`` has all counts.

    Raises
    ------
    InputError
        If an argument is wrong, or the test does not fit the model; the message says what to do.

    Notes
    -----
    The power is taken to grow with n, as Φ(−z_α + (z_α + z_w)(n/n*)^γ) (:mod:`caltest.planning.curve`).
    With the default statistic, ten classes, and an answer of 1 000 rows it takes less than a minute on
    two cores; a signed or cumulative statistic ("ecd", "ks") takes seconds.

    Examples
    --------
    >>> import caltest
    >>> from functools import partial
    >>> from caltest.simulation import tempered
    >>> sure = partial(tempered, temperature=0.8)
    >>> found = caltest.sample_size(sure, "ecd", n_datasets=100, rng=0)
    >>> found.n, found.interval
    (244, (211, 304))
    """
    chosen = find_model(model)
    asked = Asked.of(statistic, null, lens, alternative, tolerance, alpha, n_resamples)
    wanted = _checked_power(power, asked.alpha)
    least, most = check_rows("min_n", min_n), check_rows("max_n", max_n)
    if least >= most:
        raise InputError(f"min_n is {min_n} and max_n {max_n}; give a smaller and a larger number.")
    datasets = positive_integer("n_datasets", n_datasets)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    search = _Search(Simulator(chosen, asked, False, seed, workers), wanted, least, most)
    search.double()
    if search.undecided:
        search.refine(datasets)
    return SampleSizeResult(
        **common(chosen, asked, search.counted, seed),
        **search.answer(),
        power=wanted,
        min_n=least,
        max_n=most,
    )


def _checked_power(power: object, alpha: float) -> float:
    real = isinstance(power, Real) and not isinstance(power, bool)
    if not real or not alpha < float(cast("float", power)) < 1.0:
        raise InputError(
            f"power is {power!r}; give a probability above alpha, {alpha:g}, and below 1, such as 0.8."
        )
    return float(cast("float", power))


class _Search:
    """The counts so far, and what to simulate next."""

    def __init__(self, simulator: Simulator, power: float, least: int, most: int) -> None:
        self.simulator, self.power, self.least, self.most = simulator, power, least, most
        self.counted: list[Counted] = []

    @property
    def points(self) -> list[PowerPoint]:
        return [each.point for each in self.counted]

    def simulate(self, n: int, datasets: int) -> PowerPoint:
        """Simulate more data sets of ``n`` rows."""
        start = sum(point.n_datasets for point in self.points if point.n == n)
        self.counted.append(self.simulator.count(n, start, start + datasets))
        return self.counted[-1].point

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
        whole = self._fitted(self.points)
        near = [point for point in self.points if 1.0 / _NEAR <= point.n / whole.curve.n <= _NEAR]
        return self._fitted(near) if near else whole

    def _fitted(self, points: list[PowerPoint]) -> Fit:
        n, rejections, of = zip(
            *((point.n, point.rejections, point.n_datasets) for point in points), strict=True
        )
        return fit(n, rejections, of, self.simulator.asked.alpha, self.power)

    def refine(self, datasets: int) -> None:
        """Simulate data sets where the fitted curve reaches the power, in batches."""
        ends = np.unique((datasets * (np.arange(_BATCHES + 1) / _BATCHES) ** 1.5).round().astype(int))
        for start, stop in pairwise(ends.tolist()):
            n = _rounded(self.fit().curve.n)
            self.simulate(min(max(n, self.least), self.most), stop - start)

    def answer(self) -> dict[str, Any]:
        """Return the number of rows, its interval, and whether the power is reached."""
        found = self.fit()
        n: int | None = max(int(np.ceil(found.curve.n)), 2)
        reached: Reached = "yes"
        if (not self.undecided and self.points[-1].n == self.most) or cast("int", n) > self.most:
            n, reached = None, "no"
        elif cast("int", n) <= self.least:
            n, reached = self.least, "at the smallest"
        low = int(np.ceil(found.low)) if found.low > self.least else None
        high = int(np.ceil(found.high)) if found.high < self.most else None
        return {"n": n, "interval": (low, high), "reached": reached, "curve": found.curve}


def _rounded(n: float) -> int:
    """Round to two digits, so that batches meet at the same number of rows.

    >>> _rounded(17.4), _rounded(1234.0)
    (17, 1200)
    """
    step = 10.0 ** max(np.floor(np.log10(max(n, 1.0))) - 1.0, 0.0)
    return int(round(n / step) * step)
