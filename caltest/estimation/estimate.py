"""`estimate_squared_error`: from predictions and labels to estimates, their risks and a p-value.

Both p-values are exact, the split and the predictions held fixed. Of the held-out rows: h and its
options come from the tuning rows alone, and given these the labels of the test rows are still
independent draws under H0. Of the whole pipeline: every simulated label vector is used for tuning,
selection and estimate as the observed one did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from caltest._arguments import arguments, choose
from caltest._parallel import ALONE, Workers, added, single_threaded_blas
from caltest._sums import blocks
from caltest.data import Rows, Sample, impossible_labels, sample
from caltest.data.clusters import refuse_clusters
from caltest.data.weights import check_alike
from caltest.estimation.base import Array, Labels, residuals, u_statistic
from caltest.estimation.functions import Scaling
from caltest.estimation.pipeline import (
    N_FOLDS,
    TEST_SIZE,
    CalibrationPipeline,
    FunctionLike,
    Path,
    Places,
    Split,
    recommended,
)
from caltest.estimation.result import FunctionRisk, SquaredErrorEstimate
from caltest.exceptions import InputError
from caltest.forms import Form, Pairwise
from caltest.forms.weights import DenseWeights, Term
from caltest.lenses import Lens, find_lens, seen
from caltest.results import CalibrationResult
from caltest.sampling import ROWS, Rng, child_seed, seed_of
from caltest.statistics import Statistic
from caltest.testing import test

PValue: TypeAlias = Literal["held_out", "pipeline", "none"]
_PVALUES = {"held_out": 999, "pipeline": 99, "none": 0}  # and how many draws by default


@arguments(n_folds=N_FOLDS, test_size=TEST_SIZE)
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
                f"n_resamples is {n_resamples}, and pvalue='none' draws none; leave it out."
            )
        draws = int(n_resamples)
    find_lens(lens)
    pipeline = CalibrationPipeline(functions, test_size, n_folds, regularization_scaling)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    view, lens_label = seen(sample(probs, labels, class_names=class_names), lens)
    refuse_clusters(view.rows.clusters, "the estimate of lowest risk")
    check_alike(view.rows, "the pipeline", "estimate with caltest.estimate, which takes weights")
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
                n_jobs=workers.n_jobs,
                progress=workers.progress,
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
    zero = []
    for rows in split.folds:  # the mean of ⟨r_i, r_j⟩² over the pairs i ≠ j
        own = residuals(known[rows], view.labels[None, rows])
        squares = np.sum((own[:, 0].T @ own[:, 0]) ** 2).reshape(1)
        zero.append(float(u_statistic(squares, np.zeros((1, 1)), own)[0]))
    return SquaredErrorEstimate(
        functions=tuple(found),
        zero_risks=np.array(zero),
        test=result,
        lens=lens_label,
        n_samples=len(known),
        n_classes=known.shape[1],
        n_tuning=len(known) - len(split.test),
        n_test=len(split.test),
        n_folds=n_folds,
        seed=seed,
        warnings=_notes(view, pipeline, found, paths),
    )


def _held_out(view: Sample, split: Split, best: Path) -> HeldOut:
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
    view: Sample, pipeline: CalibrationPipeline, found: Sequence[FunctionRisk], paths: Sequence[Path]
) -> tuple[str, ...]:
    notes = [*view.rows.notes, *impossible_labels(view)]
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

    label: str
    left: Array = field(repr=False)
    right: Array = field(repr=False)

    name: ClassVar[str] = "held_out_agreement"
    measures: ClassVar[str] = "agreement of held-out residuals with the estimated errors"

    @property
    def parameters(self) -> dict[str, Any]:
        """Which function was learned."""
        return {"function": self.label}

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

    together: ClassVar[bool] = True

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
