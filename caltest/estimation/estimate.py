"""`estimate_squared_error`: from predictions and labels to estimates, their risks and a p-value.

Both p-values are exact, the split and the predictions held fixed. Of the held-out rows: h and its
options come from the tuning rows alone, and given these the labels of the test rows are still
independent draws under H0. Of the whole pipeline: every simulated label vector is used for tuning,
selection and estimate as the observed one did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments, choose
from caltest._parallel import ALONE, Workers, added, single_threaded_blas
from caltest._sums import Array, blocks
from caltest._visible import visible
from caltest.data import Rows, Sample, sample
from caltest.data.diagnose import impossible_labels
from caltest.data.rows import check_alike
from caltest.estimation.base import Labels, PlugIn, residuals
from caltest.estimation.functions import Scaling
from caltest.estimation.pipeline import CalibrationPipeline, FunctionLike, Split, Tuning, recommended
from caltest.exceptions import Argument, InputError
from caltest.forms import Form, Pairwise
from caltest.forms.weights import DenseWeights, Term
from caltest.lenses import Lens, seen_through, through
from caltest.results import CalibrationResult, Facts, Result, plain
from caltest.sampling import ROWS, Rng, child_seed, seed_of
from caltest.statistics import Statistic
from caltest.testing import test

if TYPE_CHECKING:
    import pandas as pd

PValue: TypeAlias = Literal["held_out", "pipeline", "none"]
_PVALUES = {"held_out": 999, "pipeline": 99, "none": 0}  # and how many draws by default
_OF_RISK = ("tuned", "value", "risk", "risk_error", "root_risk", "root_risk_error")
_OF_ESTIMATE = ("estimate", "standard_error", "estimate_error", "sampling_error")


# ------------------------------------------------------------------ results


@dataclass(frozen=True, eq=False)
class FunctionRisk(Facts):
    """One estimator: its held-out risk for every value of its tuned option, and its estimate.

    Arrays are read-only.

    Attributes
    ----------
    label
        Name, with the option where it was given instead of tuned.
    name, is_a
        Registered name of the function, and what it is.
    tuned
        The tuned option.
    values
        Its values, (G,).
    risks
        Validation risk, (G, F): a row a value, a column a fold.
    estimates
        Mean of h(g, g) over the test part, by the model of each fold, (G, F).
    spreads
        Standard deviation of h(g, g) over rows of the test part, 500 at most, (G, F).
    parameters
        Options in force, at the best value.
    n_test
        Rows of the test part.
    """

    label: str
    name: str
    is_a: str
    tuned: str
    values: Array
    risks: Array = field(repr=False)
    estimates: Array = field(repr=False)
    spreads: Array = field(repr=False)
    parameters: dict[str, Any] = field(repr=False)
    n_test: int

    derived: ClassVar[tuple[str, ...]] = (*_OF_RISK[1:], *_OF_ESTIMATE)

    @property
    def best(self) -> int:
        """Place of the value with the least mean validation risk."""
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
        """Its standard error over the folds."""
        return _error(self.risks[self.best])

    @property
    def root_risk(self) -> float:
        """Mean over the folds of the root of the risk; times 100, what is published."""
        return float(np.sqrt(self.risks[self.best]).mean())

    @property
    def root_risk_error(self) -> float:
        """Its standard error over the folds."""
        return _error(np.sqrt(self.risks[self.best]))

    @property
    def estimate(self) -> float:
        """The squared calibration error, by the ensemble of the fold models."""
        return float(self.estimates[self.best].mean())

    @property
    def estimate_error(self) -> float:
        """Its standard error over the folds, as published: how far the models of the folds differ.

        They share most of their training rows: chance in these moves all of them alike, so this is
        much too small a standard error; see :attr:`standard_error`.
        """
        return _error(self.estimates[self.best])

    @property
    def standard_error(self) -> float:
        """Its standard error, of the tuning rows and of the test rows together.

        The fold models are those that a delete-a-group jackknife takes: (F − 1) times their standard
        error over the folds is the jackknife's, for all tuning rows. What the choice of the option
        adds is not in it, so it may be too small still.
        """
        tuning = (self.estimates.shape[1] - 1) * self.estimate_error
        return float(np.hypot(tuning, self.sampling_error))

    @property
    def sampling_error(self) -> float:
        """Its standard error over the rows of the test part, h held fixed; at most this.

        From the mean of the spreads of the fold models, which is at least that of their ensemble.
        """
        return float(self.spreads[self.best].mean() / np.sqrt(self.n_test))

    @property
    def on_edge(self) -> bool:
        """Whether the best value is the first or the last of several."""
        return len(self.values) > 1 and self.best in (0, len(self.values) - 1)


@dataclass(frozen=True, eq=False, repr=False)
class SquaredErrorEstimate(Result):
    """Estimates of the squared calibration error, and the held-out risk that decides between them.

    Attributes
    ----------
    functions
        The functions, lowest risk first.
    zero_risks
        Validation risk of h = 0, which calls the model calibrated, (F,).
    test
        The p-value, or None if none was asked for.
    n_samples, n_classes, lens, seed, warnings
        As in :class:`caltest.CalibrationResult`.
    n_tuning, n_test, n_folds
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
        """The function with the least validation risk."""
        return self.functions[0]

    @property
    def estimate(self) -> float:
        """Its estimate of the squared calibration error; of two classes, of P(class 1) alone."""
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
        other
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
            ``risk_error`` (validation risk, standard error over folds); ``root_risk`` and
            ``root_risk_error`` (the same of its root); ``gap`` and ``gap_error`` (risk above the
            first row's, fold by fold); ``estimate`` and its ``standard_error``; ``estimate_error``
            (over folds, as published) and ``sampling_error`` (over test rows). All are plain numbers,
            none times 100.
        """
        import pandas as pd

        rows = [
            [*attrgetter(*_OF_RISK)(each), *self.gap(each), *attrgetter(*_OF_ESTIMATE)(each)]
            for each in self.functions
        ]
        index = pd.Index([visible(each.label) for each in self.functions], name="function")
        return pd.DataFrame(rows, index=index, columns=[*_OF_RISK, "gap", "gap_error", *_OF_ESTIMATE])

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string."""
        told = {"recommended": self.recommended.label, "estimate": self.estimate, "root": self.root}
        return {**plain(told), **super().to_dict()}


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


# ------------------------------------------------------------------ from predictions to estimates


@arguments()
def estimate_squared_error(
    probs: object,
    labels: object,
    lens: str | Lens | None = None,
    functions: str | Sequence[FunctionLike] = "all",
    *,
    class_names: Sequence[str | int] | None = None,
    pvalue: PValue = "held_out",
    n_resamples: int | None = None,
    test_size: float = 0.2,
    n_folds: int = 5,
    order: Sequence[int] | NDArray[np.intp] | None = None,
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
    probs, labels
        As in :func:`caltest.test`.
    lens
        "top_label", "class:3", … or an object of :mod:`caltest.lenses`. Default None: the full
        probability vector, whose squared error is E ‖P(Y | g) − g‖². With a lens of two classes it
        is the squared error of that one probability, E (P(event | p) − p)².
    functions
        Which estimators to try. "all" (default), or names ("binning", "kernel_density",
        "kronecker_ridge", "two_step_ridge", "temperature") and classes, whose options are tuned;
        objects of :mod:`caltest.estimation`, which are used as they are; or pairs of an object and
        the values to try. "all" excludes "temperature"; "binning" if there are more than two
        classes; and "kernel_density", whose cost grows as n², above 50 000 rows.
    class_names
        Names of the classes, in the order of the columns, as in :func:`caltest.test`. Default None.
    pvalue
        "held_out" (default): do the errors estimated on the tuning part predict the residuals of
        the test part? Exact, given the split, and cheap. "pipeline": the recommended estimate is
        ranked among those for simulated labels, with all tuning and selection repeated for each.
        Exact, and uses all rows, but costs nearly as much as ``n_resamples`` estimations. "none":
        no p-value.
    n_resamples
        Number of simulated label sets. Default 999 for "held_out", 99 for "pipeline".
    test_size, n_folds
        Share of the rows in the test part, and number of folds of the tuning part. Default 0.2 and
        5, as published.
    order
        (n,) the rows in the order in which they are split: the folds one after another, then the
        test part. Default: shuffled by ``rng``.
    regularization_scaling
        "usual" (default) or "published", see :class:`caltest.estimation.KroneckerKernelRidge`.
    rng, n_jobs, progress
        As in :func:`caltest.test`. The split depends on ``rng``, so the results do too.

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
    draws = choose("p-value", pvalue, _PVALUES)
    if n_resamples is not None:
        if pvalue == "none":
            raise InputError(
                "{draws} is for a p-value, and {pvalue} draws none; leave one of them out.",
                draws=Argument("n_resamples", n_resamples),
                pvalue=Argument("pvalue", "none"),
            )
        draws = int(n_resamples)
    pipeline = CalibrationPipeline(functions, test_size, n_folds, regularization_scaling)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    view, lens_label = through(sample(probs, labels, class_names=class_names), lens)
    do = "estimate with caltest.estimate, which takes weights"
    check_alike(view.rows, "the estimate of lowest risk", do, weighted="the pipeline")
    known = view.rows.probs
    split = pipeline.split(len(known), seed=seed, order=order)
    with single_threaded_blas():
        paths = pipeline.run(known, view.labels[None, :], split, workers)
        best = paths[int(recommended(paths)[0])]
        result: CalibrationResult | None = None
        if pvalue != "none":
            whole = pvalue == "pipeline"
            part = view if whole else Sample(view.rows.take(split.test), view.labels[split.test])
            result = test(
                part.rows,
                part.labels,
                WholePipeline(pipeline, split) if whole else _held_out(view, split, best),
                n_resamples=draws,
                rng=child_seed(seed, 0),
                n_jobs=n_jobs,
                progress=progress,
            )
    found = []
    for path in paths:
        label, function, values = path.candidate
        found.append(
            FunctionRisk(
                label=label,
                name=function.name,
                is_a=function.is_a,
                tuned=function.tuned,
                values=np.array(values, dtype=np.float64),
                risks=path.risks[:, :, 0].copy(),
                estimates=path.estimates[:, :, 0].copy(),
                spreads=path.spreads[:, :, 0].copy(),
                parameters=function.with_value(values[int(path.best[0])]).parameters,
                n_test=len(split.test),
            )
        )
    found.sort(key=lambda each: each.risk)
    held_out = [residuals(known[rows], view.labels[None, rows]) for rows in split.folds]
    nothing = PlugIn(np.zeros_like)
    return SquaredErrorEstimate(
        functions=tuple(found),
        zero_risks=np.array([nothing.risks(own, own)[0] for own in held_out]),
        test=result,
        lens=lens_label,
        n_samples=len(known),
        n_classes=known.shape[1],
        n_tuning=len(known) - len(split.test),
        n_test=len(split.test),
        n_folds=pipeline.n_folds,
        seed=seed,
        warnings=_notes(view, lens_label, pipeline, found, paths),
    )


def _held_out(view: Sample, split: Split, best: Tuning) -> HeldOut:
    """Return the agreement with what the fold models of the best function learned."""
    probs, candidate = view.rows.probs, best.candidate
    lefts, rights = [], []
    for fold in range(len(split.folds)):
        rows = split.training(fold)
        surfaces = candidate.function.given(probs[rows], (candidate.values[int(best.best[0])],))
        known = residuals(probs[rows], view.labels[None, rows])
        left, right = next(surfaces(probs[split.test])).factors(known)
        lefts.append(left / len(split.folds))
        rights.append(right)
    return HeldOut(candidate.label, np.hstack(lefts), np.hstack(rights))


def _notes(
    view: Sample,
    lens: str | None,
    pipeline: CalibrationPipeline,
    found: Sequence[FunctionRisk],
    paths: Sequence[Tuning],
) -> tuple[str, ...]:
    notes = [*view.rows.notes, *impossible_labels(view, what=seen_through(lens, view.rows))]
    if "all" in pipeline.functions and all(each.name != "kernel_density" for each in found):
        notes.append(
            "The kernel density was left out: its cost grows as the square of the rows; name it in "
            "functions to have it."
        )
    if found[0].on_edge:
        notes.append(
            f"The best {found[0].tuned} of {found[0].label}, {found[0].value:.4g}, is at the end of "
            "the values tried: one beyond may be better still."
        )
    notes += [note for path in paths for note in path.notes]
    return tuple(dict.fromkeys(notes))


# ------------------------------------------------------------------ statistics


@dataclass(frozen=True, eq=False)
class HeldOut(Statistic):
    """How well h, learned elsewhere, foretells ⟨r_i, r_j⟩: the mean of h(g_i, g_j) ⟨r_i, r_j⟩, i ≠ j.

    It is SKCE_uq with a learned kernel, and, but for what labels do not change, half of what h takes
    off the risk of calling the model calibrated, R(0) − R(h). On the held-out rows, h(g_i, g_j) =
    ⟨left_i, right_j⟩.
    """

    function: str
    left: Array = field(repr=False)
    right: Array = field(repr=False)

    name: ClassVar[str] = "held_out_agreement"
    measures: ClassVar[str] = "agreement of held-out residuals with the estimated errors"
    reported: ClassVar[tuple[str, ...]] = ("function",)

    def given(self, predictions: Rows) -> ProductsOfPairs | Pairwise:
        """Fix the predictions of the held-out rows: through h itself if that is smaller."""
        n, q = self.left.shape
        if 2 * q <= n:
            return ProductsOfPairs(predictions.probs, self.left, self.right)
        h = self.left @ self.right.T
        scale = (0.5 if predictions.n_classes == 2 else 1.0) / (n * (n - 1.0))
        terms = (Term(DenseWeights(0.5 * (h + h.T)), None),)
        return Pairwise(predictions.probs, terms, scale, diagonal=False)


@dataclass(frozen=True, eq=False)
class ProductsOfPairs(Form):
    """(n(n − 1))⁻¹ Σ_{i≠j} ⟨u_i, v_j⟩ ⟨r_i, r_j⟩, from the sums Σ u rᵀ, Σ v rᵀ and Σ ⟨u, v⟩ ‖r‖²."""

    probs: Array
    left: Array
    right: Array

    @property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs."""
        sizes = np.linalg.norm(self.left, axis=1).mean() * np.linalg.norm(self.right, axis=1).mean()
        return 1e-13 * float(sizes)

    def _sums(self, rows: slice, labels: Labels) -> Array:
        """Return the three sums over some rows, (B, 2 q k + 1)."""
        r = residuals(self.probs[rows], labels)
        flat, u, v = r.reshape(len(r), -1), self.left[rows], self.right[rows]
        own = np.einsum("eq,eq,ebk->b", u, v, r**2, optimize=True)
        sums = [(each.T @ flat).reshape(each.shape[1], *r.shape[1:]) for each in (u, v)]
        parts = [each.transpose(1, 0, 2).reshape(len(labels), -1) for each in sums]
        return np.hstack([*parts, own[:, None]])

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) means over pairs."""
        n = len(self.probs)
        sums = added((self._sums(rows, labels[:, rows]) for rows in blocks(n, ROWS)), np.add)
        size = (sums.shape[1] - 1) // 2
        total = np.einsum("bs,bs->b", sums[:, :size], sums[:, size:-1]) - sums[:, -1]
        return np.asarray(total / (n * (n - 1.0)))


@dataclass(frozen=True, eq=False)
class WholePipeline(Statistic):
    """The estimate of the function that the pipeline recommends, all of it re-run for given labels."""

    pipeline: CalibrationPipeline
    split: Split = field(repr=False)

    name: ClassVar[str] = "squared_error_estimate"
    measures: ClassVar[str] = "estimated squared calibration error, recommended function"

    def given(self, predictions: Rows) -> PipelineForm:
        """Fix the predictions."""
        return PipelineForm(predictions.probs, self.pipeline, self.split)


@dataclass(frozen=True, eq=False)
class PipelineForm(Form):
    """The pipeline as a function of the labels."""

    probs: Array
    pipeline: CalibrationPipeline
    split: Split

    parallel_inside: ClassVar[bool] = True

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) estimates for ``labels`` (B, n).

        Where labels are all but certain, risks are equal up to rounding, and rounding chooses among
        them. Every different vector is evaluated once, in an order of its own: equal labels then
        give equal estimates, and the result does not depend on which of them was observed.
        """
        different, places = np.unique(labels, axis=0, return_inverse=True)
        paths = self.pipeline.run(self.probs, different, self.split, workers)
        chosen = recommended(paths)
        values = np.stack([path.estimate for path in paths])[chosen, np.arange(len(different))]
        return np.asarray(values[places.reshape(-1)])
