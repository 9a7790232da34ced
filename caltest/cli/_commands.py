"""The commands that look at one model, or compare some: each a function and its text."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from caltest._arguments import check_draws, choose
from caltest.cli._options import (
    Clusters,
    Found,
    Input,
    Jobs,
    LensName,
    SamplingRate,
    Scheduler,
    Seed,
    StatisticName,
    Weights,
    command,
    default,
    file_path,
    option,
    rates_of,
)
from caltest.cli._output import NOT_REJECTED, REJECTED
from caltest.exceptions import InputError, Row
from caltest.files.places import called

if TYPE_CHECKING:
    from caltest.data import Rows, Sample


_NAMES = {
    "lens": "--lens",
    "rounding": "--rounding",
    "weights": "--weights",
    "clusters": "--clusters",
    "sampling_rates": "--sampling-rate",
}


@command(names=_NAMES)
def test(
    asked: Input,
    weights: Weights = None,
    clusters: Clusters = None,
    sampling_rate: SamplingRate = None,
    statistic: Annotated[
        str | None,
        option(
            "NAME",
            "What is computed; see below.  [default: omnibus; with a null other than monte_carlo, "
            "skce_uq; with a tolerance, scan]",
        ),
    ] = None,
    null: Annotated[
        str | None,
        option(
            "NAME",
            "Where the p-value comes from; see below.  [default: monte_carlo; with clusters, "
            "cluster_signs]",
        ),
    ] = None,
    lens: LensName = None,
    approximation: Annotated[
        str | None,
        option(
            "NAME",
            "Take the kernel of skce_uq, skce_b or jkce of low rank: nystrom, fourier, or auto for "
            "many rows only; exact too, and its cost grows as the rows.  [default: none]",
        ),
    ] = None,
    rank: Annotated[int | None, option("INT", "Columns of the approximation.  [default: 256]")] = None,
    alternative: Annotated[
        str | None,
        option(
            "NAME",
            "greater, less or two-sided; with a tolerance over, under or two-sided.  [default: the "
            "statistic's own]",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        option(
            "FLOAT",
            "Test whether the model is anywhere wrong by more than this, 0.02 for 2 points.  [default: "
            "by anything]",
        ),
    ] = None,
    rounding: Annotated[
        float | None,
        option(
            "FLOAT",
            "The step to which probabilities were rounded, 0.05 for 0%, 5%, … 100%; more than two "
            "classes need a lens of one probability.  [default: not rounded]",
        ),
    ] = None,
    alpha: Annotated[
        float, default("FLOAT", "Significance level: the highest p-value that counts as a finding.")
    ] = 0.05,
    resamples: Annotated[
        int, default("INT", "Simulated label sets, where the null needs them.", min=1)
    ] = 999,
    seed: Seed = None,
    scheduler: Scheduler = None,
    jobs: Jobs = -1,
) -> Found:
    """Test whether predictions are calibrated.

    Exit status: 0 if no miscalibration is found, 1 if it is found, 2 if the input is wrong.
    """
    data = asked.rows_or_file(rounding)

    from caltest import testing
    from caltest._parallel import on_cluster
    from caltest.statistics import find_statistic

    measure: dict[str, Any] = {} if statistic is None else {"statistic": statistic}
    if approximation is not None:
        found: Any = find_statistic("skce_uq" if statistic is None else statistic)
        if not hasattr(found, "approximation") or not hasattr(found, "rank"):
            raise InputError(
                f"--approximation is for kernel statistics, and {found.name!r} is none of them; leave "
                "it out, or give --statistic skce_uq, skce_b or jkce."
            )
        given = {"approximation": approximation, "rank": found.rank if rank is None else rank}
        measure = {"statistic": replace(found, **given)}
    elif rank is not None:
        raise InputError(f"--rank {rank} is that of an approximation; give --approximation too.")
    with on_cluster(scheduler):
        result = testing.test(
            *data,
            **measure,
            null=null,
            lens=lens,
            alternative=cast("Any", alternative),
            tolerance=tolerance,
            rounding=rounding,
            sampling_rates=rates_of(sampling_rate),
            n_resamples=resamples,
            rng=seed,
            n_jobs=jobs,
            progress=True,
        )
    if result.null == "one_per_cluster":
        check_draws("--resamples", resamples, alpha, 2)
    elif result.n_resamples is not None:  # else no outcome whatever could be rejected
        sides = 2 if result.alternative == "two-sided" else 1
        least = sides / (1 + result.n_resamples)
        if clusters is not None and result.n_resamples < resamples and least > alpha:
            raise InputError(  # all signs of few clusters
                f"--clusters {clusters} names so few clusters that no p-value is below {least:.3g}, "
                f"and nothing is ever rejected at level {alpha:g}; choose a level that they can reach, "
                "or give more clusters."
            )
        check_draws("--resamples", result.n_resamples, alpha, sides)
    rejected = result.rejects(alpha)
    error = "miscalibration" if result.claim is None else "error"
    verdict, status = f"no {error} found", NOT_REJECTED
    if rejected:
        verdict, status = f"{error} found", REJECTED
    decision = f"{verdict.capitalize()} at alpha = {alpha} (exit status {status})."
    return Found(
        {**asked.source, **result.to_dict(), "alpha": alpha, "rejected": rejected},
        f"{result.summary().rstrip()}\n\n{decision}",
        status=status,
    )


@command(names=_NAMES)
def estimate(
    asked: Input,
    weights: Weights = None,
    clusters: Clusters = None,
    sampling_rate: SamplingRate = None,
    statistic: StatisticName = "skce_uq",
    lens: LensName = None,
    jobs: Jobs = -1,
) -> Found:
    """Estimate a calibration error, without a test.

    Exit status: 0, or 2 if the input is wrong.
    """
    sample = asked.sample()

    from caltest import testing

    value = testing.estimate(
        sample.rows,
        sample.labels,
        statistic,
        lens=lens,
        sampling_rates=rates_of(sampling_rate),
        n_jobs=jobs,
    )
    number = value if math.isfinite(value) else str(value)
    return Found({**asked.source, "name": statistic, "lens": lens, "statistic": number}, repr(value))


@command(plot=True)
def estimate_error(
    asked: Input,
    lens: LensName = None,
    functions: Annotated[
        str,
        default(
            "NAMES",
            "The estimators to compare, separated by commas, see below; all: those that suit the data.",
        ),
    ] = "all",
    pvalue: Annotated[
        str,
        default(
            "NAME",
            "held_out: from the test rows; pipeline: from all rows, everything repeated for every "
            "simulated label set (slow); none.",
        ),
    ] = "held_out",
    resamples: Annotated[
        int | None, option("INT", "Draws of labels.  [default: 999, of the pipeline 99]", min=1)
    ] = None,
    test_size: Annotated[float, default("FLOAT", "Share of the rows held out for the estimate.")] = 0.2,
    folds: Annotated[int, default("INT", "Folds of the other rows, to fit and tune.")] = 5,
    regularization_scaling: Annotated[
        str, default("NAME", "Of the kernel ridge regressions: usual or published.")
    ] = "usual",
    seed: Seed = None,
    jobs: Jobs = -1,
) -> Found:
    """Estimate the squared calibration error, by the estimator with the lowest risk.

    Exit status: 0, or 2 if the input is wrong.
    """
    if pvalue == "none" and resamples is not None:
        raise InputError(
            f"--resamples {resamples} is for a p-value, and --pvalue is none; leave one of them out."
        )
    sample = asked.sample()

    from caltest import estimation
    from caltest.plots import RiskDisplay

    compete = [name.strip() for name in functions.split(",")]
    found = estimation.estimate_squared_error(
        sample.rows,
        sample.labels,
        lens,
        "all" if compete == ["all"] else compete,
        pvalue=cast("Any", pvalue),
        n_resamples=resamples,
        test_size=test_size,
        n_folds=folds,
        regularization_scaling=cast("Any", regularization_scaling),
        rng=seed,
        n_jobs=jobs,
        progress=True,
    )
    picture = lambda: RiskDisplay.from_result(found)  # noqa: E731
    return Found({**asked.source, **found.to_dict()}, found.summary(), picture)


@command(plot=True)
def bounds(
    asked: Input,
    lens: LensName = None,
    confidence: Annotated[
        float, default("FLOAT", "Confidence for all statements of one kind at once.")
    ] = 0.95,
    resamples: Annotated[
        int | None,
        option("INT", "Simulated label sets.  [default: 499, more if there are many bounds]", min=1),
    ] = None,
    certificate: Annotated[
        str,
        default(
            "NAME",
            "What bounds the errors from above: bins (on average over each of ten), isotonic (at every "
            "score, if the truth never falls as the score rises) or none.",
        ),
    ] = "bins",
    wanted: Annotated[
        float | None,
        option("FLOAT", "Report how many rows would certify this distance, 0.02 for 2 points."),
    ] = None,
    seed: Seed = None,
    jobs: Jobs = -1,
) -> Found:
    """Bound the error of the model: at least how large, in which direction and where, and at most.

    The lens may also be classwise: every class at once, lower bounds only. Exit status: 0, or 2 if
    the input is wrong.
    """
    choose("certificate", certificate, {"bins": True, "isotonic": True, "none": True})
    certified = certificate != "none" and lens != "classwise"
    if wanted is not None and not certified:
        why = "--certificate none" if certificate == "none" else "--lens classwise"
        raise InputError(
            f"--wanted {wanted} is for a certificate, and {why} asks for none; leave it out."
        )
    sample = asked.sample()

    import caltest.bounds as own
    from caltest.plots import BoundsDisplay

    upper = None
    if certified:
        upper = own.certificate(
            sample.rows,
            sample.labels,
            lens=lens,
            method=cast("Any", certificate),
            confidence=confidence,
            wanted=wanted,
        )
    lower = own.miscalibration_bounds(
        sample.rows,
        sample.labels,
        lens=lens,
        confidence=confidence,
        n_resamples=resamples,
        rng=seed,
        n_jobs=jobs,
        progress=True,
    )

    def picture() -> Any:  # of the view with the largest bound
        sizes = [max(view.over.bound, view.under.bound) for view in lower.views]
        return BoundsDisplay.from_result(lower, view=sizes.index(max(sizes)))

    data = {**asked.source, **lower.to_dict(), "certificate": upper.to_dict() if upper else None}
    return Found(data, "\n\n".join(each.summary() for each in (lower, upper) if each), picture)


# ------------------------------------------------------------------ compare


@command()
def compare(
    asked: Input,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=file_path,
            metavar="FILES",
            help="Two files or more, of the same rows in the same order; or one, with a column of "
            "P(class 1) for each model (--columns before,after).",
            show_default=False,
        ),
    ] = None,
    weights: Weights = None,
    clusters: Clusters = None,
    sampling_rate: SamplingRate = None,
    statistic: StatisticName = "ckce",
    lens: LensName = None,
    resampling: Annotated[
        str, default("NAME", "How rows are drawn: subsampling or bootstrap.")
    ] = "subsampling",
    resamples: Annotated[
        int, default("INT", "Number of subsamples or bootstrap samples.", min=2)
    ] = 500,
    size: Annotated[
        int | None,
        option(
            "INT",
            "Rows of a subsample, or clusters.  [default: 500 rows, or about as many in clusters; half "
            "of all if less]",
        ),
    ] = None,
    correction: Annotated[
        str,
        default(
            "NAME", "Correction for the number of pairs: holm, bonferroni, hommel, fdr_bh, …, none."
        ),
    ] = "holm",
    seed: Seed = None,
    jobs: Jobs = -1,
    example: Annotated[
        str | None, option("NAME", "Bundled predictions instead of files: digits, by all models.")
    ] = None,
) -> Found:
    """Rank models by a calibration error, and show how certain the ranking is.

    A model is called by its file, or its column. Exit status: 0, or 2 if the input is wrong.
    """
    sources, models, labels = _models(asked, files or [], example)

    from caltest import comparison

    found = comparison.compare(
        models,
        labels,
        statistic,
        lens=lens,
        resampling=cast("Any", resampling),
        n_resamples=resamples,
        size=size,
        correction=None if correction == "none" else correction,
        sampling_rates=rates_of(sampling_rate),
        rng=seed,
        n_jobs=jobs,
        progress=True,
    )
    return Found({"files": sources, "example": example, **found.to_dict()}, found.summary())


def _models(
    asked: Input, files: Sequence[Path], example: str | None
) -> tuple[dict[str, str] | None, dict[str, Rows], Any]:
    """Return the files by model (None for an example), the predictions by model, and the labels."""
    if example is not None:
        if files:
            raise InputError(
                f"both files ({files[0]}, …) and --example ({example or 'empty'}) are given."
            )
        if asked.weights is not None:
            raise InputError(f"--weights {asked.weights} is for files; the examples have no weights.")
        if asked.clusters is not None:
            raise InputError(
                f"--clusters {asked.clusters} is for files; the rows of an example are independent."
            )
        if asked.label is not None or asked.columns is not None or asked.group:
            raise InputError("--label and --columns are for files; those of an example are known.")

        from caltest.data import Rows
        from caltest.datasets import digits_models, load_digits_predictions
        from caltest.laws import Classes

        choose("example to compare", example, {"digits": True})
        loaded = [load_digits_predictions(model) for model in digits_models()]
        models = {each.model: Rows(Classes(each.probs, each.classes)) for each in loaded}
        return None, models, loaded[0].labels
    if len(files) == 1 and asked.columns and len(asked.columns) > 1:  # one of P(class 1) a model
        whose = {name: replace(asked, file=files[0], columns=[name]).sample() for name in asked.columns}
        rows = {name: sample.rows for name, sample in whose.items()}
        return dict.fromkeys(rows, str(files[0])), rows, next(iter(whose.values())).labels
    if len(files) < 2:
        raise InputError(
            f"there {'is one file' if files else 'are no files'} to compare; give two or more, or one "
            "whose --columns are P(class 1) by each model, or --example digits."
        )
    places = [os.path.realpath(path) for path in files]  # of a loop of links, too
    twice = [path for path, place in zip(files, places, strict=True) if places.count(place) > 1]
    if twice:
        raise InputError(f"the file {called(twice[0])} is given twice; give every model once.")
    stems = [
        Path(path).stem for path in files
    ]  # what models are called; by whole paths if stems are equal
    pairs = zip(stems, files, strict=True)
    names = [stem if stems.count(stem) == 1 else str(path) for stem, path in pairs]
    sources = {name: str(path) for name, path in zip(names, files, strict=True)}
    samples = {
        name: replace(asked, file=path).sample() for name, path in zip(names, files, strict=True)
    }
    (first, reference), *others = samples.items()
    predictions = {first: reference.rows}
    for name, other in others:
        predictions[name] = _aligned(sources[first], reference, sources[name], other)
    return sources, predictions, reference.labels


def _aligned(first: str, reference: Sample, second: str, other: Sample) -> Rows:
    """Return a file's predictions with columns in the order of the first one's; labels are equal."""
    import numpy as np

    from caltest.comparison.ranking import aligned

    found = aligned(first, reference, second, other)
    differ = np.flatnonzero(reference.labels != found.labels)
    if len(differ):
        row = int(differ[0])
        classes = reference.rows.classes or range(reference.rows.n_classes)
        names = [str(each) for each in classes]
        raise InputError(
            f"the labels differ: {Row(row)} is {names[reference.labels[row]]!r} in {first} and "
            f"{names[found.labels[row]]!r} in {second}; give files of the same rows in the same order."
        )
    return found.rows
