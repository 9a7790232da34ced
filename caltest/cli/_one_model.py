"""`caltest test` and `caltest estimate`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from caltest.cli._options import (
    AsJson,
    Columns,
    Example,
    File,
    Jobs,
    Label,
    LensName,
    Seed,
    StatisticName,
    check_jobs,
    column_names,
)
from caltest.cli._output import NOT_REJECTED, REJECTED, errors_reported, to_json, write
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest._tail import Alternative
    from caltest.data import Sample
    from caltest.result import CalibrationResult


def run_test(
    file: File = None,
    label: Label = None,
    columns: Columns = None,
    statistic: StatisticName = "skce_uq",
    null: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where the p-value comes from; see below.  [default: monte_carlo]",
            show_default=False,
        ),
    ] = None,
    lens: LensName = None,
    alternative: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="greater, less or two-sided.  [default: the statistic's own]",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(metavar="FLOAT", help="Level: reject if the p-value is not above it.")
    ] = 0.05,
    resamples: Annotated[
        int, typer.Option(metavar="INT", min=1, help="Draws of the null, where it draws.")
    ] = 999,
    seed: Seed = None,
    as_json: AsJson = False,
    jobs: Jobs = -1,
    example: Example = None,
) -> None:
    """Test whether predictions are calibrated.

    Exit status: 0 not rejected, 1 rejected, 2 wrong input.
    """
    with errors_reported():
        check_jobs(jobs)
        _check_level(alpha)
        sample = _sample(file, label, columns, example)

        from caltest import testing

        result = testing.test(
            sample.predictions,
            sample.labels,
            statistic,
            null=null,
            lens=lens,
            alternative=cast("Alternative | None", alternative),
            n_resamples=resamples,
            rng=seed,
            n_jobs=jobs,
            progress=True,
        )
        _check_reach(result, alpha)
        rejected = result.rejects(alpha)
        if as_json:
            decision = {"alpha": alpha, "rejected": rejected}
            write(to_json({**_source(file, example), **result.to_dict(), **decision}))
        else:
            write(f"{result.summary().rstrip()}\n\n{_decision(rejected, alpha)}")
        raise typer.Exit(REJECTED if rejected else NOT_REJECTED)


def run_estimate(
    file: File = None,
    label: Label = None,
    columns: Columns = None,
    statistic: StatisticName = "skce_uq",
    lens: LensName = None,
    as_json: AsJson = False,
    jobs: Jobs = -1,
    example: Example = None,
) -> None:
    """Estimate a calibration error, without a test.

    Exit status: 0, or 2 if the input is wrong.
    """
    with errors_reported():
        check_jobs(jobs)
        sample = _sample(file, label, columns, example)

        from caltest import testing

        value = testing.estimate(sample.predictions, sample.labels, statistic, lens=lens, n_jobs=jobs)
        if as_json:
            asked = {"name": statistic, "lens": lens}
            number = value if math.isfinite(value) else str(value)
            write(to_json({**_source(file, example), **asked, "statistic": number}))
        else:
            write(repr(value))


def _check_level(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"--alpha is {alpha}; give a level between 0 and 1, such as 0.05.")


def _check_reach(result: CalibrationResult, alpha: float) -> None:
    """Raise if no outcome whatever could have been rejected with so few resamples."""
    if result.n_resamples is None:
        return
    sides = 2 if result.alternative == "two-sided" else 1
    smallest, needed = sides / (result.n_resamples + 1), math.ceil(sides / alpha) - 1
    if smallest > alpha:
        raise InputError(
            f"with --resamples {result.n_resamples} no p-value is below {smallest:.3g}, so the "
            f"level {alpha} cannot be reached; give --resamples {needed} or more."
        )


def _sample(file: Path | None, label: str | None, columns: str | None, example: str | None) -> Sample:
    if example is None:
        if file is None:
            raise InputError("nothing to read: give a FILE, or --example digits:naive_bayes.")
        from caltest import files

        return files.read(file, label=label, columns=column_names(columns))
    if file is not None:
        raise InputError(f"both FILE ({file}) and --example ({example}) are given; give one.")
    if label is not None:
        raise InputError(f"--label {label} is for a FILE; the labels of an example are known.")
    if columns is not None:
        raise InputError(f"--columns {columns} is for a FILE; those of an example are known.")
    return _example(example)


def _example(name: str) -> Sample:
    from caltest._choices import choose
    from caltest.data import Predictions, Sample
    from caltest.datasets import digits_models, load_digits_predictions

    models = {f"digits:{model}": model for model in digits_models()}
    digits = load_digits_predictions(choose("example", name, models))
    return Sample(Predictions(digits.probs, digits.classes), digits.labels)


def _source(file: Path | None, example: str | None) -> dict[str, str | None]:
    return {"file": None if file is None else str(file), "example": example}


def _decision(rejected: bool, alpha: float) -> str:
    verdict, status = ("Rejected", REJECTED) if rejected else ("Not rejected", NOT_REJECTED)
    return f"{verdict} at alpha = {alpha} (exit status {status})."
