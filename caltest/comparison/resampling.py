"""The same rows, drawn again and again for all models: how stable a ranking is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Whole, choose, positive_integer
from caltest._parallel import ALONE, Workers
from caltest._quoted import quoted
from caltest._seeds import child_seed, generator
from caltest._tail import TIE_TOLERANCE
from caltest._tiles import Array, Tile, blocks
from caltest.comparison.u_statistics import StandardErrors
from caltest.data import Sample
from caltest.exceptions import InputError
from caltest.statistics import Statistic

Kind: TypeAlias = Literal["subsampling", "bootstrap"]
Places: TypeAlias = NDArray[np.intp]

RESAMPLINGS = dict.fromkeys(("subsampling", "bootstrap"), True)
_RANGE = "give from 2 to 100,000"
N_RESAMPLES = Whole(2, 100_000, _RANGE, _RANGE)
_LARGEST_DEFAULT = 500  # the source's
_BATCH = 8  # resamples a task


class ModelStatistic(NamedTuple):
    """One model: what its statistic is on all rows, and what it takes to compute it on others.

    Attributes
    ----------
    name
        Of the model.
    measure
        The statistic, with the options that are rules fitted on all rows.
    view
        Predictions and labels as the lens shows them.
    value
        On all rows.
    drawn
        The value on all rows for labels drawn from every model's predictions, (K, draws).
    gram
        h_ij of a U-statistic of degree two, else None.
    resolution
        How far two evaluations of one value may differ, by rounding.
    """

    name: str
    measure: Statistic
    view: Sample
    value: float
    drawn: Array
    gram: Tile | None
    resolution: float


@dataclass(frozen=True)
class Resampling:
    """How rows are drawn.

    Attributes
    ----------
    kind
        "subsampling" (without replacement) or "bootstrap" (with replacement, as many as there are).
    size
        Rows of a resample.
    n_resamples
        How many.
    seed
        Resample b is drawn from the seed's stream number b.
    """

    kind: Kind
    size: int
    n_resamples: int
    seed: int

    @classmethod
    def checked(cls, kind: Kind, size: int | None, n_resamples: int, n: int, seed: int) -> Resampling:
        """Fill in the default size, or raise if the options do not fit n rows."""
        choose("resampling", kind, RESAMPLINGS)
        resamples = int(n_resamples)
        if kind == "bootstrap":
            if size is not None:
                raise InputError("size is for subsampling, a bootstrap draws all rows; leave it out.")
            return cls(kind, n, resamples, seed)
        rows = min(_LARGEST_DEFAULT, n // 2) if size is None else positive_integer("size", size)
        if not 2 <= rows < n:
            raise InputError(f"size is {size}; of {n} rows, a subsample has from 2 to {n - 1}.")
        return cls(kind, rows, resamples, seed)

    @property
    def label_seed(self) -> int:
        """The seed of labels drawn from the predictions, apart from those of the resamples."""
        return child_seed(self.seed, 0, 0)

    @property
    def described(self) -> str:
        """Say what one resample is."""
        return (
            f"a {'subsample' if self.kind == 'subsampling' else 'bootstrap sample'} of {self.size} rows"
        )

    def draw(self, number: int, n: int) -> Places:
        """Return the rows of one resample, in increasing order."""
        stream = generator(self.seed, number)
        if self.kind == "bootstrap":
            return np.sort(stream.integers(n, size=n))
        return np.sort(stream.choice(n, size=self.size, replace=False, shuffle=False))

    def values(self, candidates: Sequence[ModelStatistic], workers: Workers) -> Array:
        """Return the statistic of every model in every resample, (B, K)."""
        sent = tuple(c._replace(gram=None, drawn=np.empty(0)) for c in candidates)
        evaluate = partial(_evaluate, self, sent)
        tasks = [(batch.start, batch.stop) for batch in blocks(self.n_resamples, _BATCH)]
        return np.concatenate(list(workers.map(evaluate, tasks, "resamples")))

    def standard_errors(self, values: Array, n: int, growth: float) -> StandardErrors:
        """Estimate standard errors on n rows from values in resamples, (B, K).

        The variance of a mean of b rows drawn without replacement from n is (1 − b/n) σ²/b, and σ²/n
        is wanted. A statistic that grows as n to the power a is (n/b)ᵃ larger on all rows.
        """
        share = self.size / n
        factor = 1.0 if self.kind == "bootstrap" else share ** (0.5 - growth) / np.sqrt(1.0 - share)
        with np.errstate(invalid="ignore"):  # inf − inf
            apart = np.array([_spread(values - column[:, None]) for column in values.T])
            together = np.array([_spread(values + column[:, None]) for column in values.T])
        return StandardErrors(factor * _spread(values), factor * apart, factor * together)


def _spread(columns: Array) -> Array:
    """Return standard deviations; infinite where a value is not finite."""
    usable = np.isfinite(columns).all(axis=0)
    known = np.where(usable, columns, 0.0)
    spread = np.std(known - known[0], axis=0, ddof=1)  # exactly 0 where nothing varies
    return np.where(usable, spread, np.inf)


def _evaluate(plan: Resampling, candidates: Sequence[ModelStatistic], start: int, stop: int) -> Array:
    n = len(candidates[0].view.labels)
    resamples = [plan.draw(number, n) for number in range(start, stop)]
    return np.array([[_value(plan, c, rows) for c in candidates] for rows in resamples])


def _value(plan: Resampling, candidate: ModelStatistic, rows: Places) -> float:
    predictions, labels = candidate.view.rows, candidate.view.labels
    drawn = predictions.take(rows)
    with about_model(candidate.name, f"on {plan.described}, "):
        value = candidate.measure.given(drawn).value(labels[rows], ALONE)
        return checked_value(candidate.measure, value)


def checked_value(measure: Statistic, value: float) -> float:
    """Return a value that is a number, or raise."""
    if np.isnan(value):
        raise InputError(f"the statistic {measure.name!r} is not a number.")
    if value == -np.inf:
        raise InputError(f"the statistic {measure.name!r} is −∞, which is no size of an error.")
    return value


@contextmanager
def about_model(name: str, where: str = "") -> Iterator[None]:
    """Let an error name the model."""
    try:
        yield
    except InputError as error:
        raise InputError(f"model {quoted(name)}: {where}{error}") from error


class Order(NamedTuple):
    """How often resamples order the models in a way, each with a Wilson interval.

    Attributes
    ----------
    pairs, pair_intervals
        [i, j]: model i below model j, ties counted half; (K, K), and (K, K, 2).
    first, first_intervals
        Model i below all others, ties shared; (K,), and (K, 2).
    whole, whole_interval
        No two models the other way round than ``ranking`` has them.
    """

    pairs: Array
    pair_intervals: Array
    first: Array
    first_intervals: Array
    whole: float
    whole_interval: tuple[float, float]


def order_of(keys: Array, ranking: Sequence[int], resolution: float, confidence: float) -> Order:
    """Count how often (B, K) keys, small ones best, are ordered in a way."""
    below = signs(keys[:, :, None], keys[:, None, :], resolution)  # 1 where i is below j
    resamples = len(keys)
    pairs = 0.5 + 0.5 * below.sum(axis=0, dtype=np.int64) / resamples
    leads = (below >= 0).all(axis=2)
    first = (leads / leads.sum(axis=1, keepdims=True)).mean(axis=0)
    neighbours = below[:, ranking[:-1], ranking[1:]]
    whole = float((neighbours >= 0).all(axis=1).mean())
    low, high = wilson(np.array(whole), resamples, confidence).tolist()
    return Order(
        pairs,
        wilson(pairs, resamples, confidence),
        first,
        wilson(first, resamples, confidence),
        whole,
        (low, high),
    )


def signs(one: Array, other: Array, resolution: float) -> NDArray[np.int8]:
    """Return 1 where ``one`` is smaller, −1 where it is larger, 0 where only rounding differs."""
    size = np.maximum(np.abs(one), np.abs(other))
    finite = np.isfinite(size)
    with np.errstate(invalid="ignore"):  # inf − inf
        near = np.abs(one - other) <= TIE_TOLERANCE * np.where(finite, size, 0.0) + resolution
    return np.where(near | (one == other), 0, np.where(one < other, 1, -1)).astype(np.int8)


def wilson(proportions: Array, trials: int, confidence: float) -> Array:
    """Return Wilson's intervals of proportions, their ends along a new last axis."""
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    ends = proportion_confint(trials * proportions, trials, 1.0 - confidence, method="wilson")
    return np.clip(np.stack([np.asarray(end, dtype=np.float64) for end in ends], axis=-1), 0.0, 1.0)
