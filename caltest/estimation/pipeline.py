"""The calibration-evaluation pipeline: tune on one part of the rows, estimate on the other.

Source: Gruber and Bach 2024, Sections 3.2.2 and 5.2. The labels of the test rows are never looked at:
estimation functions are given the predictions of the test rows alone, so nothing can be chosen by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import isabstract
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Number, Whole, arguments, choose, real_array
from caltest._numbers import short
from caltest._parallel import ALONE, Workers
from caltest._sums import Array, blocks
from caltest._visible import quoted
from caltest.estimation.base import EstimationFunction, Labels, residuals
from caltest.estimation.functions import FUNCTIONS, HistogramBinning, Ridge, Scaling
from caltest.exceptions import InputError
from caltest.sampling import generator

Places: TypeAlias = NDArray[np.intp]

# ------------------------------------------------------------------ what competes

FunctionLike: TypeAlias = (
    "str | EstimationFunction | type[EstimationFunction] | tuple[EstimationFunction, Sequence[Any]]"
)

ALL_PAIRS_UP_TO = 50_000  # rows; "all" leaves out functions of cost n² beyond


class Candidate(NamedTuple):
    """An estimation function and the values of its tuned option that compete."""

    label: str
    function: EstimationFunction
    values: tuple[Any, ...]


def _candidate(wanted: FunctionLike, scaling: Scaling, n_classes: int) -> Candidate:
    if isinstance(wanted, EstimationFunction):
        value = getattr(wanted, wanted.tuned)
        return Candidate(f"{wanted.name}({wanted.tuned}={short(value)})", wanted, (value,))
    kind: Any = wanted
    if isinstance(wanted, str):
        kind = choose("estimation function", wanted, FUNCTIONS)
    if isinstance(kind, type) and issubclass(kind, EstimationFunction) and not isabstract(kind):
        scaled = issubclass(kind, Ridge)
        function: Any = kind(regularization_scaling=scaling) if scaled else kind()  # type: ignore[call-arg]
        return Candidate(function.name, function, function.search_space(n_classes))
    if not isinstance(wanted, tuple):
        raise InputError(
            f"functions holds {quoted(wanted)}; give names ({', '.join(FUNCTIONS)}) or objects of "
            "caltest.estimation."
        )
    function, values = wanted if len(wanted) == 2 else (None, ())
    values = tuple(values) if isinstance(values, Iterable) else ()
    if not isinstance(function, EstimationFunction) or not values:
        raise InputError(
            f"functions holds {quoted(wanted)}; give pairs of a function and the values to try, as in "
            "(TwoStepKernelRidge(), [0.1, 0.01])."
        )
    for value in values:
        function.with_value(value)  # raises if it cannot be used
    return Candidate(function.name, function, values)


# ------------------------------------------------------------------ the pipeline

_N_FOLDS = Whole(2, advice="give two at least: one fold validates what others teach")
_TEST_SIZE = Number(0.0, 1.0, advice="give a share between 0 and 1, such as 0.2")

_FEWEST_ROWS = 2  # of a fold, and of the test part: a risk needs a pair
_ORDER = 7  # key of the seed from which rows are shuffled
_NUMBERS = 2**24  # residuals held at a time
_SPREAD_ROWS = 500  # tell a standard deviation well enough, and a mean needs no row of its own


class Split(NamedTuple):
    """Rows by their use: folds of the tuning part, and the test part."""

    folds: tuple[Places, ...]
    test: Places

    def training(self, fold: int) -> Places:
        """Return the tuning rows that are not in a fold."""
        return np.concatenate([rows for number, rows in enumerate(self.folds) if number != fold])


@dataclass(frozen=True, eq=False)
class Tuning:
    """What the folds say of one function: (G values of its option, F folds, B label vectors).

    ``risks`` are those of the held-out fold; ``estimates`` the means of h(g, g) over the test part by
    the model of every fold, and ``spreads`` its standard deviations over the first 500 rows.
    """

    candidate: Candidate
    risks: Array
    estimates: Array
    spreads: Array
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> NDArray[np.intp]:
        """Place of the value with the least mean risk over the folds, (B,)."""
        return np.asarray(self.risks.mean(axis=1).argmin(axis=0))

    @property
    def least(self) -> Array:
        """The least mean risk, (B,)."""
        return np.asarray(self.risks.mean(axis=1).min(axis=0))

    @property
    def estimate(self) -> Array:
        """The estimate by the ensemble of the fold models of the best value, (B,)."""
        means = self.estimates.mean(axis=1)
        return np.asarray(np.take_along_axis(means, self.best[None, :], axis=0)[0])


@arguments(n_folds=_N_FOLDS, test_size=_TEST_SIZE)
@dataclass(frozen=True)
class CalibrationPipeline:
    """Tune estimators of the squared error by cross-validation, and average those of the folds.

    Parameters
    ----------
    functions, test_size, n_folds, regularization_scaling
        As in :func:`caltest.estimate_squared_error`.

    Examples
    --------
    >>> import caltest
    >>> from caltest.estimation import CalibrationPipeline
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> pipeline = CalibrationPipeline(["two_step_ridge"])
    >>> split = pipeline.split(len(digits.labels), seed=0)
    >>> len(split.folds), len(split.test)
    (5, 360)
    >>> (path,) = pipeline.run(digits.probs, digits.labels[None, :], split)
    >>> path.candidate.label, path.candidate.values[path.best[0]], path.estimate.round(3)
    ('two_step_ridge', 0.0001, array([0.067]))
    """

    functions: str | Sequence[FunctionLike] = "all"
    test_size: float = 0.2
    n_folds: int = 5
    regularization_scaling: Scaling = "usual"

    def __post_init__(self) -> None:
        given: Any = self.functions
        one = isinstance(given, str | EstimationFunction | type) or not np.iterable(given)
        object.__setattr__(self, "functions", (given,) if one else tuple(given))
        self.candidates(2, 2)

    def candidates(self, n_samples: int, n_classes: int) -> tuple[Candidate, ...]:
        """Return the functions that compete on n predictions of m classes, if they take so many."""
        wanted: list[FunctionLike] = []
        for given in self.functions:
            if isinstance(given, str) and given == "all":  # what so many rows and classes allow
                wanted += [HistogramBinning(15), "binning"] if n_classes == 2 else []
                wanted += ["kernel_density"] if n_samples <= ALL_PAIRS_UP_TO else []
                wanted += ["kronecker_ridge", "two_step_ridge"]
            else:
                wanted.append(given)
        found = [_candidate(each, self.regularization_scaling, n_classes) for each in wanted]
        labels = [each.label for each in found]
        for place, (label, function, values) in enumerate(found):
            if labels.count(label) > 1 and len(values) == 1:  # options in full tell objects apart
                options = ", ".join(f"{key}={value}" for key, value in function.parameters.items())
                found[place] = Candidate(f"{function.name}({options})", function, values)
        labels = [each.label for each in found]
        if not found or len(set(labels)) < len(labels):
            raise InputError(f"functions are {labels}; give at least one, and each one once.")
        for each in found:
            each.function.check_classes(n_classes)
        return tuple(found)

    def split(
        self, n_samples: int, *, seed: int = 0, order: Sequence[int] | Places | None = None
    ) -> Split:
        """Cut the rows, in the order given (or shuffled by the seed), into folds and test part."""
        tuning = int((1.0 - self.test_size) * n_samples + 1e-9)  # (1 − 0.2) · 10 is 8
        fold = tuning // self.n_folds
        if fold < _FEWEST_ROWS or n_samples - tuning < _FEWEST_ROWS:
            raise InputError(
                f"there are {n_samples} rows, which leaves {fold} in a fold and "
                f"{n_samples - tuning} in the test part; {_FEWEST_ROWS} are needed in each: give more "
                "rows, or other values of n_folds and test_size."
            )
        if order is None:
            rows = generator(seed, _ORDER).permutation(n_samples)
        else:
            places = real_array("order", order, f"give each of the rows 0 to {n_samples - 1} once")
            whole = places.ndim == 1 and np.issubdtype(np.asarray(order).dtype, np.integer)
            if not whole or not np.array_equal(np.sort(places), np.arange(n_samples)):
                raise InputError(
                    f"order has to hold each of the rows 0 to {n_samples - 1} once; it decides which "
                    "rows are tuned on and which are tested. Leave it out to have them shuffled."
                )
            rows = cast("Places", places.astype(np.intp))
        return Split(tuple(np.array_split(rows[:tuning], self.n_folds)), rows[tuning:])

    def run(
        self, probs: Array, labels: Labels, split: Split, workers: Workers = ALONE
    ) -> tuple[Tuning, ...]:
        """Run all candidates on all folds, for B label vectors (B, n) of predictions (n, m)."""
        candidates = self.candidates(*probs.shape)
        tasks = [
            (candidate, probs, labels, split, fold)
            for candidate in candidates
            for fold in range(self.n_folds)
        ]
        found = list(workers.map(_one_fold, tasks, "functions and folds"))
        paths = []
        for place, candidate in enumerate(candidates):
            folds = found[place * self.n_folds : (place + 1) * self.n_folds]
            numbers = np.stack([each for each, _ in folds], axis=2)
            paths.append(Tuning(candidate, numbers[0], numbers[1], numbers[2], folds[0][1]))
        return tuple(paths)


def recommended(paths: Sequence[Tuning]) -> NDArray[np.intp]:
    """Return the place of the function with the least validation risk, (B,)."""
    return np.asarray(np.stack([path.least for path in paths]).argmin(axis=0))


def _one_fold(
    candidate: Candidate, probs: Array, labels: Labels, split: Split, fold: int
) -> tuple[Array, tuple[str, ...]]:
    """Return risks, estimates and spreads (3, G, B), and notes, of a function fitted without a fold."""
    known, held_out = split.training(fold), split.folds[fold]
    places = (probs[held_out], probs[split.test], probs[split.test[:_SPREAD_ROWS]])
    k = 1 if probs.shape[1] == 2 else probs.shape[1]
    parts = blocks(len(labels), max(1, _NUMBERS // (len(known) * k)))

    def made(part: slice) -> tuple[slice, Array, Array]:
        """Return the residuals of the training rows and of the fold, of some label vectors."""
        first, second = (residuals(probs[rows], labels[part, rows]) for rows in (known, held_out))
        return part, first, second

    lessons = [made(parts[0])] if len(parts) == 1 else []  # a single one is kept, several are made anew
    found = np.empty((3, len(candidate.values), len(labels)))
    notes: tuple[str, ...] = ()
    surfaces = candidate.function.given(probs[known], candidate.values)
    for number, (validation, test, some) in enumerate(zip(*map(surfaces, places), strict=True)):
        for part, lesson, check in lessons or map(made, parts):
            found[0, number, part] = validation.risks(lesson, check)
            found[1, number, part] = test.means(lesson)
            found[2, number, part] = some.diagonals(lesson).std(axis=0, ddof=1)
        if np.isnan(found[:, number]).any():
            raise InputError(
                f"{candidate.label} is not a number for some predictions, with "
                f"{candidate.function.tuned} {quoted(candidate.values[number])}; correct it, or leave "
                "the value out."
            )
        notes = validation.notes
    return found, notes
