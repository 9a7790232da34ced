"""`power`: how often a test rejects a model that is wrong in a known way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest._arguments import arguments, count_of_datasets, flag
from caltest._parallel import Workers
from caltest._sampling import Rng, seed_of
from caltest.exceptions import InputError
from caltest.lenses import Lens
from caltest.named import StatisticLike
from caltest.nulls import Null
from caltest.planning.datasets import Asked, Counted, Simulator, check_classes, check_rows
from caltest.planning.models import Model, ModelLike, check_repeatable, described, find_model
from caltest.planning.pilot import Pilot
from caltest.planning.result import PowerPoint, PowerResult

_MANY_TIMES = 10  # rows of a data set, times those of the pilot, from which on a note is due


@arguments(n_datasets=count_of_datasets, under_null=flag)
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
    """Simulate the power of a test: how often it rejects a model that is wrong in a known way.

    Parameters
    ----------
    model
        What is assumed of the model:

        * :func:`caltest.planning.pilot` of a pilot set, with a stated error or the pilot's own; a pair
          (probs, labels) or a :class:`caltest.data.Sample` stands for ``pilot(probs, labels)``;
        * a function of :mod:`caltest.simulation`, with :func:`functools.partial` for its options, or
          one of your own: it is called with a number of rows and ``rng``, a numpy Generator from which
          alone it draws, and returns a :class:`caltest.simulation.Simulated` or a pair (probs, labels).
    n
        Rows of a data set, or several such numbers.
    statistic, null, lens, alternative, tolerance
        The test, as in :func:`caltest.test`.
    alpha
        The level: rejected is what has a p-value at or below it. Default 0.05.
    n_datasets
        Data sets of each size. Default 400: the 95% interval of a power of 0.8 is ±0.04.
    n_resamples
        Resamples of each test, where the null draws any. Default None: 10/alpha − 1, 199 for 0.05
        (twice as many for two-sided tests). The exact test of more resamples has a little more power:
        with 999 and a level of 0.05, 0.798 where 199 have 0.792 and infinitely many 0.8.
    under_null
        Test the same predictions with labels drawn from them too: ``size``, the type I error, which
        for an exact null is known to be at most alpha. Default False: it doubles the time.
    rng
        None, an integer, a SeedSequence or a Generator (SPEC 7). The same ``rng`` gives the same
        numbers for every ``n_jobs``. A data set hangs on ``rng``, its size and its number alone.
    n_jobs
        Workers, as in joblib: None is one, −1 all cores. They share the data sets.
    progress
        Show a bar on standard error during long work, if that is a terminal.

    Returns
    -------
    PowerResult
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``. ``points`` has
        all counts; ``power`` and ``interval`` (exact: Clopper–Pearson) are those of the only n.

    Raises
    ------
    InputError
        If an argument is wrong, or the test does not fit the model; the message says what to do.

    Notes
    -----
    The interval is that of the simulation. The assumption it does not know: power is that against the
    model assumed, and rows must be independent.

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
    chosen = find_model(model)
    asked = Asked.of(statistic, null, lens, alternative, tolerance, alpha, n_resamples)
    sizes = _sizes(n)
    datasets = int(n_datasets)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    check_repeatable(chosen, sizes[0], seed)
    simulator = Simulator(chosen, asked, bool(under_null), seed, workers)
    counted = [simulator.count(size, 0, datasets) for size in sizes]
    return PowerResult(**common(chosen, asked, counted, seed))


def _sizes(n: int | Sequence[int]) -> list[int]:
    """Return the numbers of rows, rising."""
    if isinstance(n, np.ndarray) and n.ndim == 0:
        n = n.item()
    given = list(n) if np.iterable(n) and not isinstance(n, str | bytes) else [n]
    if not given:
        raise InputError("n is empty; give a number of rows, or several.")
    return sorted({check_rows("n", each) for each in given})


def common(model: Model, asked: Asked, counted: Sequence[Counted], seed: int) -> dict[str, Any]:
    """Return what every result says: the counts of each size together, the model and the test."""
    points: dict[int, PowerPoint] = {}
    for each in counted:
        points[each.point.n] = merged(points.get(each.point.n), each.point)
    check_classes([each.result for each in counted])
    last = counted[-1].result
    return {
        "points": tuple(points[n] for n in sorted(points)),
        "assumed": described(model),
        "error": model.error if isinstance(model, Pilot) else _mean_error(counted),
        "statistic": last.name,
        "null": last.null,
        "guarantee": last.guarantee,
        "alternative": last.alternative,
        "lens": last.lens,
        "tolerance": asked.tolerance,
        "n_classes": last.n_classes,
        "alpha": asked.alpha,
        "n_resamples": last.n_resamples and asked.n_resamples,
        "seed": seed,
        "warnings": _warnings(model, max(points)),
    }


def merged(one: PowerPoint | None, other: PowerPoint) -> PowerPoint:
    """Return the counts of both, of one size."""
    if one is None:
        return other
    falsely = None
    if one.false_rejections is not None and other.false_rejections is not None:
        falsely = one.false_rejections + other.false_rejections
    together = one.n_datasets + other.n_datasets
    return PowerPoint(one.n, together, one.rejections + other.rejections, falsely)


def _mean_error(counted: Sequence[Counted]) -> float | None:
    known = [(each.error, each.point.n_datasets) for each in counted if each.error is not None]
    if not known:
        return None
    return sum(error * count for error, count in known) / sum(count for _, count in known)


def _warnings(model: Model, largest: int) -> tuple[str, ...]:
    if not isinstance(model, Pilot):
        return ()
    rows = model.predictions.n_samples
    if largest < _MANY_TIMES * rows:
        return model.notes
    return (
        *model.notes,
        f"The pilot has {rows:,} rows, so that {largest:,} repeat each of them {largest / rows:.0f} "
        "times on average: what such a model says elsewhere is not known.",
    )
