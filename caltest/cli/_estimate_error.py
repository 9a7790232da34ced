"""`caltest estimate-error`: squared calibration errors, by the estimator of least risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from caltest.cli._input import read_sample, source
from caltest.cli._options import (
    AsJson,
    Columns,
    Example,
    File,
    Jobs,
    Label,
    LensName,
    Seed,
    check_typed,
)
from caltest.cli._output import errors_reported, to_json, write, write_data
from caltest.cli._picture import Plot, check_picture, draw
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest.estimation.estimate import PValue
    from caltest.estimation.functions import Scaling


def run_estimate_error(
    file: File = None,
    label: Label = None,
    columns: Columns = None,
    lens: LensName = None,
    functions: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="What competes, separated by commas, see below; all: what learns and suits the data.",
        ),
    ] = "all",
    pvalue: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="held_out: of the rows kept apart; pipeline: of all rows, everything re-run for every "
            "draw, slow; none.",
        ),
    ] = "held_out",
    resamples: Annotated[
        int | None,
        typer.Option(
            metavar="INT",
            min=1,
            help="Draws of labels.  [default: 999, of the pipeline 99]",
            show_default=False,
        ),
    ] = None,
    test_size: Annotated[
        float, typer.Option(metavar="FLOAT", help="Share of the rows kept apart to estimate on.")
    ] = 0.2,
    folds: Annotated[
        int, typer.Option(metavar="INT", help="Folds of the others, to fit and tune.")
    ] = 5,
    regularization_scaling: Annotated[
        str,
        typer.Option(metavar="NAME", help="Of the kernel ridge regressions: usual or published."),
    ] = "usual",
    seed: Seed = None,
    as_json: AsJson = False,
    plot: Plot = None,
    jobs: Jobs = -1,
    example: Example = None,
) -> None:
    """Estimate the squared calibration error, by the estimator of least risk.

    Exit status: 0, or 2 if the input is wrong.
    """
    with errors_reported():
        check_typed(jobs=jobs, resamples=resamples)
        _check_resamples(pvalue, resamples)
        check_picture(plot, file)
        sample = read_sample(file, label, columns, example)

        from caltest import estimation
        from caltest.plots import RiskDisplay

        found = estimation.estimate_squared_error(
            sample.rows,
            sample.labels,
            lens,
            _names(functions),
            pvalue=cast("PValue", pvalue),
            n_resamples=resamples,
            test_size=test_size,
            n_folds=folds,
            regularization_scaling=cast("Scaling", regularization_scaling),
            rng=seed,
            n_jobs=jobs,
            progress=True,
        )
        problem = draw(plot, lambda: RiskDisplay.from_estimate(found))
        if as_json:
            write_data(to_json({**source(file, example), **found.to_dict()}))
        else:
            write(found.summary())
        if problem:
            raise problem


def _names(functions: str) -> str | list[str]:
    """Split the value of --functions; "all" stands for itself."""
    return "all" if functions.strip() == "all" else [name.strip() for name in functions.split(",")]


def _check_resamples(pvalue: str, resamples: int | None) -> None:
    if pvalue == "none" and resamples is not None:
        raise InputError(
            f"--resamples {resamples} is for a p-value, and --pvalue is none; leave one of them out."
        )
