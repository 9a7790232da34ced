"""`caltest power`: how often a test finds an error, and how many rows it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from caltest.cli._input import source
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
from caltest.cli._power_model import OPTIONS, find_model
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest.planning import PowerResult, SampleSizeResult


def _option(kind: str, help_text: str, *names: str) -> Any:
    return typer.Option(*names, metavar=kind, help=help_text, show_default=False)


def run_power(
    file: File = None,
    label: Label = None,
    columns: Columns = None,
    n: Annotated[
        list[int] | None, _option("INT", "Rows of a data set; give it once for each size.", "--n")
    ] = None,
    sample_size: Annotated[
        bool, typer.Option("--sample-size", help="Find how many rows the wanted power takes.")
    ] = False,
    temperature: Annotated[
        float | None,
        _option(
            "FLOAT", "Assume logits divided by this: over-confident below 1, under-confident above."
        ),
    ] = None,
    bias: Annotated[
        float | None, _option("FLOAT", "Assume the log-odds of --target stated so much too high.")
    ] = None,
    target: Annotated[
        str | None, _option("CLASS", "The class of --bias.  [default: class 1 of two]")
    ] = None,
    overconfidence: Annotated[
        float | None,
        _option("FLOAT", "Assume the top class stated too surely by this, 0.05 for 5 points."),
    ] = None,
    recalibration: Annotated[
        str | None,
        _option(
            "NAME",
            "Assume the pilot's own error, as estimated by temperature, logistic or isotonic.  "
            "[default, if nothing else is assumed: logistic of two classes, temperature of more]",
        ),
    ] = None,
    careful: Annotated[
        bool,
        typer.Option(
            "--careful",
            help="Of a fit, assume the end of its 95% interval that is nearest to calibrated.",
        ),
    ] = False,
    simulate: Annotated[
        str | None,
        _option(
            "NAME",
            "A model instead of FILE: m2, m3, tempered (with --temperature), classwise (with --bias).",
        ),
    ] = None,
    classes: Annotated[
        int | None, _option("INT", "Classes of a model of --simulate.  [default: 10]")
    ] = None,
    statistic: Annotated[
        str | None,
        _option("NAME", "What is computed; see below.  [default: that of caltest test]"),
    ] = None,
    null: Annotated[
        str | None,
        _option("NAME", "Where the p-value comes from; see below.  [default: monte_carlo]"),
    ] = None,
    lens: LensName = None,
    alternative: Annotated[
        str | None, _option("NAME", "As of caltest test.  [default: the statistic's own]")
    ] = None,
    tolerance: Annotated[
        float | None,
        _option("FLOAT", "Test whether the model is wrong by more than this.  [default: by anything]"),
    ] = None,
    alpha: Annotated[float, typer.Option(metavar="FLOAT", help="Level of the test.")] = 0.05,
    power: Annotated[
        float | None, _option("FLOAT", "Power wanted, with --sample-size.  [default: 0.8]")
    ] = None,
    min_n: Annotated[
        int | None, _option("INT", "Fewest rows, with --sample-size.  [default: 50]")
    ] = None,
    max_n: Annotated[
        int | None, _option("INT", "Most rows, with --sample-size.  [default: 20000]")
    ] = None,
    under_null: Annotated[
        bool,
        typer.Option("--under-null", help="Count rejections of calibrated models of that size too."),
    ] = False,
    datasets: Annotated[
        int,
        typer.Option(metavar="INT", help="Data sets a size; with --sample-size, near the answer."),
    ] = 400,
    resamples: Annotated[
        int | None,
        _option("INT", "Draws of the null in each test.  [default: 199 for one side at level 0.05]"),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
    plot: Plot = None,
    jobs: Jobs = -1,
    example: Example = None,
) -> None:
    """Simulate how often a test finds an error, or find how many rows it takes.

    FILE is a pilot set: its predictions are drawn with replacement, and labels as if the model were
    wrong in the way that is assumed. Exit status: 0, or 2 if the input is wrong.
    """
    assumed: dict[str, Any] = {
        "temperature": temperature,
        "bias": bias,
        "target": target,
        "overconfidence": overconfidence,
        "recalibration": recalibration,
        "careful": careful,
    }
    test: dict[str, Any] = {
        "statistic": statistic,
        "null": null,
        "lens": lens,
        "alternative": alternative,
        "tolerance": tolerance,
        "alpha": alpha,
        "n_datasets": datasets,
        "n_resamples": resamples,
        "rng": seed,
        "n_jobs": jobs,
        "progress": True,
    }
    only: dict[str, Any] = {"power": power, "min_n": min_n, "max_n": max_n}
    with errors_reported():
        check_typed(jobs=jobs, alpha=alpha, tolerance=tolerance, resamples=resamples)
        check_picture(plot, file)
        search = {name: value for name, value in only.items() if value is not None}
        _check_question(n, sample_size, search, under_null)
        model = find_model(file, label, columns, example, simulate, classes, assumed)

        from caltest import planning
        from caltest.plots import PowerDisplay

        found: PowerResult | SampleSizeResult
        try:
            if sample_size:
                found = planning.sample_size(model, **search, **test)
            else:
                found = planning.power(model, n or [], under_null=under_null, **test)
        except InputError as error:
            raise error.renamed(OPTIONS) from error
        problem = draw(plot, lambda: PowerDisplay.from_result(found))
        origin = {**source(file, example), "simulate": simulate}
        if as_json:
            write_data(to_json({**origin, **found.to_dict()}))
        else:
            write(found.summary())
        if problem:
            raise problem


def _check_question(
    n: list[int] | None, sample_size: bool, search: dict[str, Any], under_null: bool
) -> None:
    """Raise unless one of two questions is asked."""
    if sample_size and n:
        raise InputError(
            f"both --n {n[0]} and --sample-size are given; give the rows, or let them be found."
        )
    if not sample_size and not n:
        raise InputError(
            "no number of rows is given: give --n 1000, or --sample-size to find how many it takes."
        )
    if not sample_size and search:
        name, value = next(iter(search.items()))
        raise InputError(
            f"--{name.replace('_', '-')} {value} is for --sample-size, and --n is given; leave one out."
        )
    if sample_size and under_null:
        raise InputError("--under-null is for --n, and --sample-size is given; leave one out.")
