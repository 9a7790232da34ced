"""`caltest test` and `caltest estimate`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from caltest._arguments import check_draws
from caltest.cli._input import read_or_scan, read_sample, source
from caltest.cli._options import (
    AsJson,
    Columns,
    Example,
    File,
    FileOrFolder,
    Jobs,
    Label,
    LensName,
    Seed,
    StatisticName,
    check_typed,
)
from caltest.cli._output import NOT_REJECTED, REJECTED, errors_reported, to_json, write, write_data
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest.forms import Side
    from caltest.pvalues import Alternative
    from caltest.results import CalibrationResult


def run_test(
    file: FileOrFolder = None,
    label: Label = None,
    columns: Columns = None,
    statistic: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What is computed; see below.  [default: omnibus; with a null other than "
            "monte_carlo, skce_uq; with a tolerance, scan]",
            show_default=False,
        ),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where the p-value comes from; see below.  [default: monte_carlo]",
            show_default=False,
        ),
    ] = None,
    lens: LensName = None,
    approximation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Take the kernel of skce_uq, skce_b or jkce of low rank: nystrom, fourier, or auto "
            "for many rows only; exact too, and its cost grows as the rows.  [default: none]",
            show_default=False,
        ),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(
            metavar="INT", help="Columns of the approximation.  [default: 256]", show_default=False
        ),
    ] = None,
    alternative: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="greater, less or two-sided; with a tolerance over, under or two-sided.  "
            "[default: the statistic's own]",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="FLOAT",
            help="Test whether the model is anywhere wrong by more than this, 0.02 for 2 points.  "
            "[default: by anything]",
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
        check_typed(jobs=jobs, alpha=alpha, tolerance=tolerance, resamples=resamples)
        data = read_or_scan(file, label, columns, example)

        from caltest import testing

        result = testing.test(
            *data,
            **_asked_statistic(statistic, approximation, rank),
            null=null,
            lens=lens,
            alternative=cast("Alternative | Side | None", alternative),
            tolerance=tolerance,
            n_resamples=resamples,
            rng=seed,
            n_jobs=jobs,
            progress=True,
        )
        _check_reach(result, alpha)
        rejected = result.rejects(alpha)
        if as_json:
            decision = {"alpha": alpha, "rejected": rejected}
            write_data(to_json({**source(file, example), **result.to_dict(), **decision}))
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
        check_typed(jobs=jobs)
        sample = read_sample(file, label, columns, example)

        from caltest import testing

        value = testing.estimate(sample.rows, sample.labels, statistic, lens=lens, n_jobs=jobs)
        if as_json:
            asked = {"name": statistic, "lens": lens}
            number = value if math.isfinite(value) else str(value)
            write_data(to_json({**source(file, example), **asked, "statistic": number}))
        else:
            write(repr(value))


def _asked_statistic(name: str | None, approximation: str | None, rank: int | None) -> dict[str, Any]:
    """Return the statistic as an argument, if one is asked for."""
    if approximation is None:
        if rank is not None:
            raise InputError(f"--rank {rank} is that of an approximation; give --approximation too.")
        return {} if name is None else {"statistic": name}
    from caltest.named import find_statistic

    found: Any = find_statistic("skce_uq" if name is None else name)
    if not hasattr(found, "approximation") or not hasattr(found, "rank"):
        raise InputError(
            f"--approximation is for kernel statistics, and {found.name!r} is none of them; leave it "
            "out, or give --statistic skce_uq, skce_b or jkce."
        )
    given = {"approximation": approximation, "rank": found.rank if rank is None else rank}
    return {"statistic": replace(found, **given)}


def _check_reach(result: CalibrationResult, alpha: float) -> None:
    """Raise if no outcome whatever could have been rejected with so few resamples."""
    if result.n_resamples is not None:
        sides = 2 if result.alternative == "two-sided" else 1
        check_draws("--resamples", result.n_resamples, alpha, sides)


def _decision(rejected: bool, alpha: float) -> str:
    verdict, status = ("Rejected", REJECTED) if rejected else ("Not rejected", NOT_REJECTED)
    return f"{verdict} at alpha = {alpha} (exit status {status})."
