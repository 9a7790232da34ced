"""Simulated data sets of one size, each tested: what power and sample size are counted from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from caltest._arguments import MOST_RESAMPLES, Whole, check_draws
from caltest._parallel import Workers
from caltest._sampling import child_seed, generator
from caltest.data import sample
from caltest.exceptions import InputError
from caltest.lenses import Lens, find_lens
from caltest.named import StatisticLike, find_null, find_statistic
from caltest.nulls import Null
from caltest.planning.models import Model, check_rows_drawn, drawn_by
from caltest.planning.result import PowerPoint
from caltest.predictive import recognised
from caltest.results import CalibrationResult
from caltest.testing import test

_EXCEEDANCES = 10  # of the draws that a side may have: 199 draws for a level of 0.05
_MOST_ROWS = 100_000_000
_DATA, _TEST, _CALIBRATED_LABELS, _CALIBRATED_TEST = range(4)  # streams of a data set


@dataclass(frozen=True)
class Asked:
    """The test whose power is asked for: the arguments of :func:`caltest.test`, and the level."""

    statistic: StatisticLike | None
    null: str | Null | None
    lens: str | Lens | None
    alternative: str | None
    tolerance: float | None
    alpha: float
    n_resamples: int

    @classmethod
    def of(
        cls,
        statistic: StatisticLike | None,
        null: str | Null | None,
        lens: str | Lens | None,
        alternative: str | None,
        tolerance: float | None,
        alpha: float,
        n_resamples: int | None,
    ) -> Asked:
        """Check what is asked; find a number of resamples if none is given."""
        find_null(null)
        find_lens(lens)
        sides = _sides(statistic, alternative, tolerance)
        if n_resamples is None:
            # α (B + 1) is whole, for levels as one writes them.
            wanted = min(sides * _EXCEEDANCES / alpha, 2.0 * MOST_RESAMPLES)
            n_resamples = min(math.ceil(round(wanted, 9)) - 1, MOST_RESAMPLES)
        return cls(statistic, null, lens, alternative, tolerance, float(alpha), int(n_resamples))

    def tested(self, probs: object, labels: object, seed: int) -> CalibrationResult:
        """Test one data set."""
        named: dict[str, Any] = {} if self.statistic is None else {"statistic": self.statistic}
        return test(
            probs,
            labels,
            **named,
            null=self.null,
            lens=self.lens,
            alternative=cast("Any", self.alternative),
            tolerance=self.tolerance,
            n_resamples=self.n_resamples,
            rng=seed,
            n_jobs=1,
        )

    def check_reach(self, result: CalibrationResult) -> None:
        """Raise if no outcome whatever could be rejected with so few resamples."""
        if result.n_resamples is None:
            return
        sides = 2 if result.alternative == "two-sided" else 1
        check_draws("n_resamples", self.n_resamples, self.alpha, sides)


def _sides(statistic: StatisticLike | None, alternative: str | None, tolerance: float | None) -> int:
    if alternative is not None:
        return 2 if alternative == "two-sided" else 1
    if tolerance is not None:
        return 2
    return 1 if statistic is None else 1 + (find_statistic(statistic).alternatives[0] == "two-sided")


class Outcome(NamedTuple):
    """What became of one data set.

    Attributes
    ----------
    rejected
        Whether the test rejected it.
    falsely
        Whether it rejected the same predictions with labels drawn from them; None if not asked.
    error
        By how much the model was wrong, where the truth is known.
    result
        The test's result.
    """

    rejected: bool
    falsely: bool | None
    error: float | None
    result: CalibrationResult


class Counted(NamedTuple):
    """Data sets of one size: the counts, the mean error if known, and a test's result to quote from."""

    point: PowerPoint
    error: float | None
    result: CalibrationResult


@dataclass(frozen=True)
class Simulator:
    """Draws data sets of a model and tests them.

    The numbers of data set i of n rows hang on the seed, n and i alone.
    """

    model: Model
    asked: Asked
    under_null: bool
    seed: int
    workers: Workers

    def count(self, n: int, start: int, stop: int) -> Counted:
        """Draw and test the data sets ``start`` to ``stop`` of ``n`` rows."""
        one = partial(_outcome, self.model, self.asked, self.under_null, self.seed)
        tasks = [(n, number) for number in range(start, stop)]
        description = f"{stop - start} data sets of {n:,} rows"
        found: list[Outcome] = list(self.workers.map(one, tasks, description))
        check_classes([each.result for each in found])
        falsely = sum(bool(each.falsely) for each in found) if self.under_null else None
        errors = [each.error for each in found if each.error is not None]
        point = PowerPoint(n, len(found), sum(each.rejected for each in found), falsely)
        return Counted(point, float(np.mean(errors)) if errors else None, found[0].result)


def _outcome(model: Model, asked: Asked, under_null: bool, seed: int, n: int, number: int) -> Outcome:
    own = child_seed(seed, n, number)
    probs, labels, error = drawn_by(model, n, generator(own, _DATA))
    result = asked.tested(probs, labels, child_seed(own, _TEST))
    check_rows_drawn(n, result.n_samples)
    asked.check_reach(result)
    falsely = None
    if under_null:
        densities = recognised(probs)
        claimed = sample(probs, labels).rows if densities is None else densities
        drawn = claimed.sampler(child_seed(own, _CALIBRATED_LABELS)).draw(0, 1)[0]
        falsely = asked.tested(claimed, drawn, child_seed(own, _CALIBRATED_TEST)).rejects(asked.alpha)
    return Outcome(result.rejects(asked.alpha), falsely, error, result)


def check_classes(results: Iterable[CalibrationResult]) -> None:
    """Raise if data sets have different numbers of classes."""
    counts = sorted({each.n_classes for each in results if each.n_classes is not None})
    if len(counts) > 1:
        raise InputError(
            f"the model drew data sets of {counts[0]} and of {counts[-1]} classes; draw as many "
            "classes each time."
        )


def check_rows(name: str, value: object, least: int = 2) -> int:
    """Return a number of rows."""
    advice = f"give a whole number of rows, at least {least}"
    return Whole(least, _MOST_ROWS, advice, f"give at most {_MOST_ROWS:,} rows")(name, value)
