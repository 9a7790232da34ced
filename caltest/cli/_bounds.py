"""`caltest bounds`: by how much a model is wrong, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from caltest._arguments import choose
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
    from caltest.bounds import MiscalibrationBounds
    from caltest.bounds.certificates import Method


def run_bounds(
    file: File = None,
    label: Label = None,
    columns: Columns = None,
    lens: LensName = None,
    confidence: Annotated[
        float, typer.Option(metavar="FLOAT", help="Of all statements of one kind together.")
    ] = 0.95,
    resamples: Annotated[
        int | None,
        typer.Option(
            metavar="INT",
            min=1,
            help="Draws of labels.  [default: 499, or more where there are many bounds]",
            show_default=False,
        ),
    ] = None,
    certificate: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What bounds the errors from above: bins (on average over each of ten), isotonic (at "
            "every score, if the truth never falls as the score rises) or none.",
        ),
    ] = "bins",
    wanted: Annotated[
        float | None,
        typer.Option(
            metavar="FLOAT",
            help="Say how many rows would certify this, 0.02 for 2 points.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
    plot: Plot = None,
    jobs: Jobs = -1,
    example: Example = None,
) -> None:
    """Say by how much the model is wrong at least, on which side and where, and by how much at most.

    The lens may also be classwise: every class at once, errors at least only. Exit status: 0, or 2 if
    the input is wrong.
    """
    with errors_reported():
        check_typed(jobs=jobs, confidence=confidence, resamples=resamples)
        check_picture(plot, file)
        _check_certificate(certificate, wanted, lens)
        sample = read_sample(file, label, columns, example)

        from caltest import bounds
        from caltest.plots import BoundsDisplay

        upper = None
        if certificate != "none" and lens != "classwise":
            upper = bounds.certificate(
                sample.rows,
                sample.labels,
                lens=lens,
                method=cast("Method", certificate),
                confidence=confidence,
                wanted=wanted,
            )
        lower = bounds.miscalibration_bounds(
            sample.rows,
            sample.labels,
            lens=lens,
            confidence=confidence,
            n_resamples=resamples,
            rng=seed,
            n_jobs=jobs,
            progress=True,
        )
        problem = draw(plot, lambda: BoundsDisplay.from_bounds(lower, view=_worst(lower)))
        if as_json:
            both = {**lower.to_dict(), "certificate": upper.to_dict() if upper else None}
            write_data(to_json({**source(file, example), **both}))
        else:
            write("\n\n".join(each.summary() for each in (lower, upper) if each))
        if problem:
            raise problem


def _check_certificate(certificate: str, wanted: float | None, lens: str | None) -> None:
    choose("certificate", certificate, {"bins": True, "isotonic": True, "none": True})
    if wanted is not None and (certificate == "none" or lens == "classwise"):
        why = "--certificate none" if certificate == "none" else "--lens classwise"
        raise InputError(
            f"--wanted {wanted} is for a certificate, and {why} asks for none; leave it out."
        )


def _worst(lower: MiscalibrationBounds) -> int:
    """Return the place of the view with the largest bound."""
    sizes = [max(view.over.bound, view.under.bound) for view in lower.views]
    return sizes.index(max(sizes))
