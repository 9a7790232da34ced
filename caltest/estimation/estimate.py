"""`estimate_squared_error`: from predictions and labels to estimates, their risks and a p-value.

The labels of the test rows play no role in any choice: estimation functions see the predictions of the
test rows alone. So the p-value is exact, given the split and the predictions: h and its options come
from the tuning rows, and given these the labels of the test rows are independent draws under H0.

Source: Gruber and Bach, "Optimizing estimators of squared calibration errors in classification", 2024,
Sections 3.2.2 and 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from caltest._arguments import Number, OneOf, Whole, arguments, choose, real_array, wrong
from caltest._numbers import short
from caltest._parallel import ALONE, Workers, single_threaded_blas
from caltest._sums import Array, Places, blocks
from caltest._visible import quoted, visible
from caltest.data import Rows, Sample, sample
from caltest.data.diagnose import impossible_labels
from caltest.data.rows import check_alike
from caltest.estimation import functions as known
from caltest.estimation.functions import EstimationFunction, PlugIn, Scaling, Surfaces, residuals
from caltest.exceptions import Argument, InputError
from caltest.forms import Form, Pairwise
from caltest.forms.kernel_matrices import DenseWeights, Term
from caltest.lenses import Lens, seen_through, through
from caltest.results import CalibrationResult, Facts, Result, plain
from caltest.sampling import ROWS, Rng, child_seed, generator, seed_of
from caltest.statistics import Statistic
from caltest.testing import test

if TYPE_CHECKING:
    import pandas as pd

FunctionLike: TypeAlias = str | EstimationFunction
Functions: TypeAlias = str | Sequence[FunctionLike]

ALL_PAIRS_UP_TO = 50_000  # rows; beyond, "all" leaves out functions of cost n²
_DRAWS = 999
_FEWEST_ROWS = 2  # in a fold and in the test part: a risk needs a pair
_ORDER = 7  # key of the seed that shuffles rows
_SPREAD_ROWS = 500  # enough for a standard deviation; a mean takes all rows


# ------------------------------------------------------------------ results


@dataclass(frozen=True, eq=False)
class FunctionRisk(Facts):
    """One estimator: its held-out risk for every value of its tuned option, and its estimate.

    Arrays are read-only.

    Attributes
    ----------
    label : str
        Name, with the option where it was given instead of tuned.
    name, is_a : str
        Registered name of the function, and what it is.
    tuned : str
        The tuned option.
    values : array of shape (G,)
        Its values.
    risks : array of shape (G, F)
        Validation risk: a row a value, a column a fold.
    estimates : array of shape (G, F)
        Mean of h(g, g) over the test part, by the model of each fold.
    errors : array of shape (G, F)
        Standard errors of the estimates over the rows of the test part, h held fixed; from 500 rows at
        most.
    parameters : dict
        Options in force, at the best value.
    """

    label: str
    name: str
    is_a: str
    tuned: str
    values: Array
    risks: Array = field(repr=False)
    estimates: Array = field(repr=False)
    errors: Array = field(repr=False)
    parameters: dict[str, Any] = field(repr=False)

    derived: ClassVar[tuple[str, ...]] = ("value", "risk", "risk_error", "estimate", "standard_error")

    @property
    def best(self) -> int:
        """Index of the value with the lowest mean validation risk."""
        return int(self.risks.mean(axis=1).argmin())

    @property
    def value(self) -> float:
        """The best value of the tuned option."""
        return float(self.values[self.best])

    @property
    def risk(self) -> float:
        """Mean validation risk of the best value."""
        return float(self.risks[self.best].mean())

    @property
    def risk_error(self) -> float:
        """Standard error of the risk over the folds."""
        return _error(self.risks[self.best])

    @property
    def estimate(self) -> float:
        """The squared calibration error estimated by the ensemble of fold models."""
        return float(self.estimates[self.best].mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the estimate, from tuning rows and test rows together.

        The fold models are those of a delete-a-group jackknife: (F − 1) times their standard error over
        the folds is the jackknife's, for all tuning rows. The other part is the mean of the fold
        models' errors, which is at least that of their ensemble. The choice of the option adds variance
        that is not included, so the result may still be too small.
        """
        tuning = (self.estimates.shape[1] - 1) * _error(self.estimates[self.best])
        return float(np.hypot(tuning, self.errors[self.best].mean()))


@dataclass(frozen=True, eq=False, repr=False)
class SquaredErrorEstimate(Result):
    """Estimates of the squared calibration error, and the held-out risk that decides between them.

    Attributes
    ----------
    functions : tuple of FunctionRisk
        The functions, lowest risk first.
    zero_risks : array of shape (F,)
        Validation risk of h = 0, which calls the model calibrated.
    test : CalibrationResult or None
        The test of calibration with its p-value, or None if not requested.
    n_samples, n_classes, seed : int
        As in :class:`caltest.CalibrationResult`.
    lens : str or None
        As in :class:`caltest.CalibrationResult`.
    warnings : tuple of str
        As in :class:`caltest.CalibrationResult`.
    n_tuning, n_test, n_folds : int
        Rows of the two parts, and the folds of the first.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.estimate_squared_error(
    ...     sure.probs, sure.labels, functions="binning", lens="top_label", rng=0
    ... )
    >>> found.recommended.label, round(found.root, 2), found.pvalue
    ('binning', 0.13, 0.001)
    """

    functions: tuple[FunctionRisk, ...]
    zero_risks: Array
    test: CalibrationResult | None
    lens: str | None
    n_samples: int
    n_classes: int
    n_tuning: int
    n_test: int
    n_folds: int
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def recommended(self) -> FunctionRisk:
        """The function with the lowest validation risk."""
        return self.functions[0]

    @property
    def estimate(self) -> float:
        """The recommended estimate of the squared error; for two classes, of P(class 1) alone."""
        return self.recommended.estimate

    @property
    def root(self) -> float:
        """Root of the estimate, in units of probability; 0 where the estimate is negative."""
        return float(np.sqrt(max(0.0, self.estimate)))

    @property
    def pvalue(self) -> float | None:
        """The p-value of :attr:`test`."""
        return self.test.pvalue if self.test else None

    @arguments(other=OneOf("caltest.estimation:FunctionRisk", "give one of .functions"))
    def gap(self, other: FunctionRisk | None = None) -> tuple[float, float]:
        """Return how far another function's risk lies above that of the recommended one.

        Parameters
        ----------
        other : FunctionRisk, optional
            The other function. Default None: h = 0, calling the model calibrated.

        Returns
        -------
        tuple of float
            Mean over the folds of the difference, fold by fold, and its standard error: folds share
            most of their training rows, so it is somewhat too small.
        """
        theirs = self.zero_risks if other is None else other.risks[other.best]
        differences = theirs - self.recommended.risks[self.recommended.best]
        return float(differences.mean()), _error(differences)

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a row for each function, lowest risk first.

        Returns
        -------
        pandas.DataFrame
            Index ``function``; columns ``tuned`` and ``value`` (the best one); ``risk`` and
            ``risk_error`` (validation risk, standard error over folds); ``gap`` and ``gap_error``
            (risk above the first row's, fold by fold); ``estimate`` and its ``standard_error``.
        """
        import pandas as pd

        index = pd.Index([visible(each.label) for each in self.functions], name="function")
        names = ["tuned", *FunctionRisk.derived]
        table = pd.DataFrame(map(attrgetter(*names), self.functions), index, names)
        table[["gap", "gap_error"]] = [self.gap(each) for each in self.functions]
        return table[[*names[:4], "gap", "gap_error", *names[4:]]]

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string."""
        told = {"recommended": self.recommended.label, "estimate": self.estimate, "root": self.root}
        return {**plain(told), **super().to_dict()}


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


# ------------------------------------------------------------------ from predictions to estimates


@arguments(
    n_folds=Whole(2, advice="give two at least: one fold validates what others teach"),
    test_size=Number(0.0, 1.0, advice="give a share between 0 and 1, such as 0.2"),
)
def estimate_squared_error(
    probs: object,
    labels: object,
    lens: str | Lens | None = None,
    functions: Functions = "all",
    *,
    class_names: Sequence[str | int] | None = None,
    pvalue: Literal["held_out", "none"] = "held_out",
    n_resamples: int | None = None,
    test_size: float = 0.2,
    n_folds: int = 5,
    order: Sequence[int] | Places | None = None,
    regularization_scaling: Scaling = "usual",
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> SquaredErrorEstimate:
    """Estimate the squared calibration error, with the estimator that has the lowest held-out risk.

    The rows are split into a tuning part and a test part. Every estimator is fitted to the folds
    of the tuning part, and its options are chosen by the risk on the folds left out. The models of
    all folds together then estimate the error on the predictions of the test part, which plays no
    role in any choice.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), or data frame
        As in :func:`caltest.test`.
    labels : array of shape (n,)
        As in :func:`caltest.test`.
    lens : str or Lens, optional
        "top_label", "class:3", … or an object of :mod:`caltest.lenses`. Default None: the full
        probability vector, whose squared error is E ‖P(Y | g) − g‖². With a lens of two classes it
        is the squared error of that one probability, E (P(event | p) − p)².
    functions : str, EstimationFunction, or sequence of these, default "all"
        Which estimators to try. "all" (default), or names ("binning", "kernel_density",
        "kronecker_ridge", "two_step_ridge", "temperature"), whose options are tuned; or objects of
        :mod:`caltest.estimation`, which are used as they are. "all" excludes "temperature"; "binning"
        if there are more than two classes; and "kernel_density", whose cost grows as n², above 50 000
        rows.
    class_names : sequence of str or int, optional
        Names of the classes, in the order of the columns, as in :func:`caltest.test`.
    pvalue : {"held_out", "none"}, default "held_out"
        "held_out" (default): do the errors estimated on the tuning part predict the residuals of
        the test part? Exact, given the split. "none": no p-value.
    n_resamples : int, default 999
        Number of simulated label sets.
    test_size : float, default 0.2
        Share of the rows in the test part.
    n_folds : int, default 5
        Number of folds of the tuning part.
    order : array of int of shape (n,), optional
        The rows in the order in which they are split: the folds one after another, then the test part.
        Default: shuffled by ``rng``.
    regularization_scaling : {"usual", "published"}, default "usual"
        "usual" (default) or "published", see :class:`caltest.estimation.KroneckerKernelRidge`.
    rng : int, SeedSequence or Generator, optional
        As in :func:`caltest.test`. The split depends on it, so the results do too.
    n_jobs : int, optional
        As in :func:`caltest.test`.
    progress : bool, default False
        As in :func:`caltest.test`.

    Returns
    -------
    SquaredErrorEstimate
        Frozen; ``print`` it, or call ``.table()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, there are too few rows, or an option
        cannot be used. The message says what to do.

    References
    ----------
    Gruber and Bach, "Optimizing estimators of squared calibration errors in classification", 2024.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.estimate_squared_error(digits.probs, digits.labels, "top_label", rng=0)
    >>> found.recommended.name, round(found.root, 2), found.pvalue
    ('two_step_ridge', 0.16, 0.001)
    """
    choose("p-value", pvalue, {"held_out": True, "none": True})
    if n_resamples is not None and pvalue == "none":
        text = "{argument} is {found}, and {none} draws none; leave it out."
        none = Argument("pvalue", "none")
        raise InputError(text, argument="n_resamples", found=n_resamples, none=none)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    view, lens_label = through(sample(probs, labels, class_names=class_names), lens)
    do = f"estimate with {Argument('caltest.estimate')}, which takes weights"
    check_alike(view.rows, "the estimate of lowest risk", do, weighted="the estimate")
    n, m = len(view.labels), view.rows.n_classes
    candidates = _candidates(functions, regularization_scaling, n, m)
    parts = Parts(view, *_split(n, n_folds, test_size, seed, order))
    tasks, tested = [(each, fold) for each in candidates for fold in range(n_folds)], parts.tested
    with single_threaded_blas():
        made = list(workers.map(parts.one_fold, tasks, "functions and folds"))
        found = list[FunctionRisk]()
        for place, (label, function, values) in enumerate(candidates):
            own = made[place * n_folds : (place + 1) * n_folds]
            risks, estimates, errors = np.stack([numbers for numbers, _ in own], axis=2)
            kind, tried = (function.name, function.is_a, function.tuned), np.array(values, np.float64)
            options = function.with_value(values[risks.mean(axis=1).argmin()]).parameters
            found.append(FunctionRisk(label, *kind, tried, risks, estimates, errors, options))
        least = int(np.argmin([each.risk for each in found]))
        result: CalibrationResult | None = None
        if pvalue != "none":
            agreement = parts.held_out(candidates[least], found[least].best)
            rows, seen, count = view.rows.take(tested), view.labels[tested], n_resamples or _DRAWS
            draws: Any = {"n_resamples": count, "n_jobs": n_jobs, "progress": progress}
            result = test(rows, seen, agreement, rng=child_seed(seed, 0), **draws)
    found.sort(key=lambda each: each.risk)
    seen_as = seen_through(lens_label, view.rows)
    first, notes = found[0], [*view.rows.notes, *impossible_labels(view, what=seen_as)]
    if n > ALL_PAIRS_UP_TO and "all" in functions and all(f.name != "kernel_density" for f in found):
        why = "The kernel density was left out: its cost grows as the square of the rows"
        notes.append(f"{why}; name it in functions to have it.")
    if len(first.values) > 1 and first.best in (0, len(first.values) - 1):
        best = f"The best {first.tuned} of {first.label}, {first.value:.4g}"
        notes.append(f"{best}, is at the end of the values tried: one beyond may be better still.")
    zeros = np.array([PlugIn(np.zeros_like(r)).risk(r) for r in map(parts.residuals, parts.folds)])
    notes += [note for _, own in made[::n_folds] for note in own]
    others = n, m, n - len(tested), len(tested), n_folds, seed, tuple(dict.fromkeys(notes))
    return SquaredErrorEstimate(tuple(found), zeros, result, lens_label, *others)


class Candidate(NamedTuple):
    """An estimation function, with the values of its tuned option to compare."""

    label: str
    function: EstimationFunction
    values: tuple[Any, ...]


def _candidates(functions: Functions, scaling: Scaling, n: int, m: int) -> list[Candidate]:
    """Return the functions to compare on n predictions of m classes, if they can handle them."""
    wanted, found = list[Any](), list[Candidate]()
    one = isinstance(functions, str | EstimationFunction) or not np.iterable(functions)
    every: list[Any] = [known.HistogramBinning(15), "binning"] if m == 2 else []
    every += ["kernel_density"] if n <= ALL_PAIRS_UP_TO else []
    every += ["kronecker_ridge", "two_step_ridge"]  # functions that can handle so many rows and classes
    for each in [functions] if one else functions:
        wanted += every if isinstance(each, str) and each == "all" else [each]
    for each in wanted:
        if isinstance(each, EstimationFunction):
            value = getattr(each, each.tuned)
            found.append(Candidate(f"{each.name}({each.tuned}={short(value)})", each, (value,)))
        elif isinstance(each, str):
            kind: Any = choose("estimation function", each, known.FUNCTIONS)
            made = kind(regularization_scaling=scaling) if issubclass(kind, known.Ridge) else kind()
            found.append(Candidate(made.name, made, made.search_space(m)))
        else:
            do = f"give names ({', '.join(known.FUNCTIONS)}), or objects of caltest.estimation"
            raise InputError(f"functions holds {quoted(each)}; {do}, such as TwoStepKernelRidge(0.1).")
    labels = [each.label for each in found]
    for place, (label, function, values) in enumerate(found):
        if labels.count(label) > 1 and len(values) == 1:  # full options distinguish objects
            options = ", ".join(f"{key}={value}" for key, value in function.parameters.items())
            found[place] = Candidate(f"{function.name}({options})", function, values)
        function.check_classes(m)
    labels = [each.label for each in found]
    if not found or len(set(labels)) < len(labels):
        raise InputError(f"functions are {labels}; give at least one, and each one once.")
    return found


def _split(n: int, n_folds: int, share: float, seed: int, order: Any) -> tuple[list[Places], Places]:
    """Split the rows, as ordered or shuffled by the seed, into folds and a test part."""
    tuning = int((1.0 - share) * n + 1e-9)  # so that (1 − 0.2) · 10 is 8
    if (fold := tuning // n_folds) < _FEWEST_ROWS or n - tuning < _FEWEST_ROWS:
        found = f"there are {n} rows, which leaves {fold} in a fold and {n - tuning} in the test part"
        do = f"{_FEWEST_ROWS} are needed in each: give more rows, fewer folds, or another share to test"
        raise InputError(f"{found}; {do}.")
    rows = generator(seed, _ORDER).permutation(n)
    if order is not None:
        do = f"give each of the rows 0 to {n - 1} once"
        if not np.array_equal(np.sort(places := real_array("order", order, do).ravel()), np.arange(n)):
            raise wrong("order", order, do)
        rows = places.astype(np.intp)
    return np.array_split(rows[:tuning], n_folds), rows[tuning:]


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows through a lens, split into folds and a test part."""

    view: Sample
    folds: Sequence[Places]
    tested: Places

    def residuals(self, rows: Places) -> Array:
        """Return the residuals of some rows, (rows, k)."""
        return residuals(self.view.rows.probs[rows], self.view.labels[rows])

    def learned(self, candidate: Candidate, values: Sequence[Any], fold: int) -> Surfaces:
        """Return what is learned from the tuning rows outside a fold."""
        rows = np.concatenate([own for number, own in enumerate(self.folds) if number != fold])
        return candidate.function.learned(self.view.rows.probs[rows], self.residuals(rows), values)

    def one_fold(self, candidate: Candidate, fold: int) -> tuple[Array, tuple[str, ...]]:
        """Return risks, estimates, errors (3, G), and notes, for a function fitted without a fold."""
        surfaces, probs = self.learned(candidate, candidate.values, fold), self.view.rows.probs
        found = np.empty((3, len(candidate.values)))
        places = (probs[rows] for rows in (self.folds[fold], self.tested, self.tested[:_SPREAD_ROWS]))
        for number, (validation, final, some) in enumerate(zip(*map(surfaces, places), strict=True)):
            spread = some.diagonal().std(ddof=1)
            risk = validation.risk(self.residuals(self.folds[fold]))
            found[:, number] = risk, final.mean(), spread / np.sqrt(len(self.tested))
            if np.isnan(found[:, number]).any():
                tuned = f"{candidate.function.tuned} {quoted(candidate.values[number])}"
                odd = f"{candidate.label} is not a number for some predictions, with {tuned}"
                raise InputError(f"{odd}; correct it, or leave the value out.")
        return found, validation.notes

    def held_out(self, chosen: Candidate, best: int) -> HeldOut:
        """Return the agreement of test rows with what the fold models of the best function learned."""
        values, probs = (chosen.values[best],), self.view.rows.probs[self.tested]
        learned = (self.learned(chosen, values, fold) for fold in range(len(self.folds)))
        factors = zip(*(next(surfaces(probs)).factors() for surfaces in learned), strict=True)
        left, right = map(np.hstack, factors)
        return HeldOut(chosen.label, left / len(self.folds), right)


# ------------------------------------------------------------------ the test statistic


@dataclass(frozen=True, eq=False)
class HeldOut(Statistic):
    """Agreement of residual products with a learned h: the mean of h(g_i, g_j) ⟨r_i, r_j⟩ over i ≠ j.

    It is SKCE_uq with a learned kernel and, apart from terms that do not depend on labels, half of the
    reduction in risk compared with calling the model calibrated, R(0) − R(h). On the held-out rows,
    h(g_i, g_j) = ⟨left_i, right_j⟩.
    """

    function: str
    left: Array = field(repr=False)
    right: Array = field(repr=False)

    name: ClassVar[str] = "held_out_agreement"
    measures: ClassVar[str] = "agreement of held-out residuals with the estimated errors"
    reported: ClassVar[tuple[str, ...]] = ("function",)

    def given(self, predictions: Rows) -> ProductsOfPairs | Pairwise:
        """Precompute what depends on the held-out predictions; keep h factored if that is smaller."""
        n, q = self.left.shape
        if 2 * q <= n:
            return ProductsOfPairs(predictions.probs, self.left, self.right)
        h = self.left @ self.right.T
        scale = (0.5 if predictions.n_classes == 2 else 1.0) / (n * (n - 1.0))
        return Pairwise(predictions.probs, (Term(DenseWeights(0.5 * (h + h.T)), None),), scale, False)


@dataclass(frozen=True, eq=False)
class ProductsOfPairs(Form):
    """(n(n − 1))⁻¹ Σ_{i≠j} ⟨u_i, v_j⟩ ⟨r_i, r_j⟩, from the sums Σ u rᵀ, Σ v rᵀ and Σ ⟨u, v⟩ ‖r‖²."""

    probs: Array
    left: Array
    right: Array

    @property
    def resolution(self) -> float:
        """Rounding error of the sum over all pairs."""
        sizes = np.linalg.norm(self.left, axis=1).mean() * np.linalg.norm(self.right, axis=1).mean()
        return 1e-13 * float(sizes)

    def of_labels(self, labels: Any, workers: Workers = ALONE) -> Array:
        """Return the means over pairs, (B,)."""
        n, sums = len(self.probs), list[Any]([0.0, 0.0, 0.0])
        for rows in blocks(n, ROWS):
            r = np.stack([residuals(self.probs[rows], own) for own in labels[:, rows]], axis=1)
            u, v = self.left[rows], self.right[rows]
            own = np.einsum("eq,eq,ebk->b", u, v, r**2, optimize=True)
            parts = np.tensordot(u, r, (0, 0)), np.tensordot(v, r, (0, 0)), own
            sums = [one + more for one, more in zip(sums, parts, strict=True)]
        total = np.einsum("qbk,qbk->b", *sums[:2]) - sums[2]
        return np.asarray(total / (n * (n - 1.0)))
