"""`estimate_squared_error`: from predictions and labels to estimates, their risks and a p-value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from caltest._arguments import arguments, choose
from caltest._parallel import Workers, single_threaded_blas
from caltest._sampling import Rng, child_seed, seed_of
from caltest.data import Sample, impossible_labels, sample
from caltest.estimation.base import residuals, u_statistic
from caltest.estimation.candidates import ALL_PAIRS_UP_TO, FunctionLike
from caltest.estimation.held_out import HeldOut, WholePipeline
from caltest.estimation.pipeline import (
    N_FOLDS,
    TEST_SIZE,
    CalibrationPipeline,
    Path,
    Places,
    Split,
    recommended,
)
from caltest.estimation.result import FunctionRisk, SquaredErrorEstimate
from caltest.estimation.ridge import Scaling
from caltest.exceptions import InputError
from caltest.lenses import Lens, find_lens, seen
from caltest.results import CalibrationResult
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
    """Estimate the squared calibration error, by the estimator whose risk on held-out rows is least.

    Every estimation function is fitted to the folds of a tuning part of the rows, its options are
    chosen by the risk on the folds left out, and the models of the folds together estimate the error
    on the predictions of the other part. Nothing is chosen by the test part.

    Parameters
    ----------
    probs, labels
        As in :func:`caltest.test`.
    lens
        "top_label", "class:3", … or an object of :mod:`caltest.lenses`. Default None: the full
        probability vector, whose squared error is E ‖P(Y | g) − g‖². Through a lens of two classes it
        is that of the one probability shown, E (P(event | p) − p)².
    functions
        "all" (default), or names ("binning", "kernel_density", "kronecker_ridge", "two_step_ridge",
        "temperature") and classes, which are tuned; objects of :mod:`caltest.estimation`, which are
        taken as they are; and pairs of an object and the values to try. "all" leaves out "temperature";
        "binning" for more than two classes; and "kernel_density", whose cost grows as n², for more
        than 50 000 rows.
    pvalue
        "held_out" (default): do the errors estimated from the tuning part foretell the residuals of
        the test part? Exact, given the split, and cheap. "pipeline": the recommended estimate, ranked
        among those of drawn labels, all tuning and selection re-run for each; exact, uses all rows,
        and costs as much as ``n_resamples`` estimations, less what depends on predictions only.
        "none": no p-value.
    n_resamples
        Label draws. Default 999 for "held_out", 99 for "pipeline".
    test_size, n_folds
        Share of the rows in the test part, and folds of the other. Default 0.2 and 5, as published.
    order
        (n,) the rows, in the order in which they are cut: folds one after another, the test part
        last. Default: shuffled by ``rng``.
    regularization_scaling
        "usual" (default) or "published", see :class:`caltest.estimation.KroneckerKernelRidge`.
    rng, n_jobs, progress
        As in :func:`caltest.test`. The split depends on the seed, so results depend on it too.

    Returns
    -------
    SquaredErrorEstimate
        Frozen; ``print`` it, or call ``.table()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If the input is no set of predictions and labels, there are too few rows, or an option cannot
        be used; the message says what to do.

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
    view, lens_label = seen(sample(probs, labels), lens)
    known = view.rows.probs
    split = pipeline.split(len(known), seed=seed, order=order)
    with single_threaded_blas():
        paths = pipeline.run(known, view.labels[None, :], split, workers)
        best = paths[int(recommended(paths)[0])]
        result: CalibrationResult | None = None
        if pvalue == "held_out":
            result = _held_out(view, split, best, draws, seed, workers)
        elif pvalue == "pipeline":
            whole = WholePipeline(pipeline, split)
            result = _tested(view, whole, draws, seed, workers)
    found = sorted((_row(path, len(split.test)) for path in paths), key=lambda each: each.risk)
    return SquaredErrorEstimate(
        functions=tuple(found),
        zero_risks=np.array([_risk_of_zero(view, rows) for rows in split.folds]),
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


def _held_out(
    view: Sample, split: Split, best: Path, n_resamples: int, seed: int, workers: Workers
) -> CalibrationResult:
    """Test the labels of the test part by what the fold models of the best function learned."""
    probs = view.rows.probs
    function = best.candidate.function.with_value(best.candidate.values[int(best.best[0])])
    lefts, rights = [], []
    for fold in range(len(split.folds)):
        rows = split.training(fold)
        surface = function.given(probs[rows]).at(probs[split.test])
        left, right = surface.factors(residuals(probs[rows], view.labels[None, rows]))
        lefts.append(left / len(split.folds))
        rights.append(right)
    learned = HeldOut(best.candidate.label, np.hstack(lefts), np.hstack(rights))
    part = Sample(view.rows.take(split.test), view.labels[split.test])
    return _tested(part, learned, n_resamples, seed, workers)


def _tested(
    view: Sample, statistic: HeldOut | WholePipeline, n_resamples: int, seed: int, workers: Workers
) -> CalibrationResult:
    return test(
        view.rows,
        view.labels,
        statistic,
        n_resamples=n_resamples,
        rng=child_seed(seed, 0),
        n_jobs=workers.n_jobs,
        progress=workers.progress,
    )


def _row(path: Path, n_test: int) -> FunctionRisk:
    label, function, values = path.candidate
    best = function.with_value(values[int(path.best[0])])
    return FunctionRisk(
        label=label,
        name=function.name,
        is_a=function.is_a,
        tuned=function.tuned,
        values=np.array(values, dtype=np.float64),
        risks=path.risks[:, :, 0].copy(),
        estimates=path.estimates[:, :, 0].copy(),
        spreads=path.spreads[:, :, 0].copy(),
        parameters=best.parameters,
        n_test=n_test,
    )


def _risk_of_zero(view: Sample, rows: Places) -> float:
    """Return the mean of ⟨r_i, r_j⟩² over the pairs i ≠ j."""
    own = residuals(view.rows.probs[rows], view.labels[None, rows])
    products = own[:, 0].T @ own[:, 0]
    return float(u_statistic(np.sum(products**2).reshape(1), np.zeros((1, 1)), own)[0])


def _notes(
    view: Sample, pipeline: CalibrationPipeline, found: Sequence[FunctionRisk], paths: Sequence[Path]
) -> tuple[str, ...]:
    notes = [*view.rows.notes, *impossible_labels(view)]
    if "all" in pipeline.functions and len(view.labels) > ALL_PAIRS_UP_TO:
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
