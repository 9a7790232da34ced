"""The command line: parse, call, write. Everything heavy is imported when it is needed."""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand

from caltest._version import __version__
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest._tail import Alternative
    from caltest.data import Sample
    from caltest.result import CalibrationResult

NOT_REJECTED, REJECTED, WRONG_INPUT, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141

app = typer.Typer(
    help="Do a model's probabilities mean what they say? Tests of calibration, on a file.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 -- closed by whoever called
    try:
        app(prog_name="caltest")
    except SystemExit as stop:
        if stop.code == INTERRUPTED:  # worker threads may still run; their end is not waited for
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise
    except OSError as error:  # help or version, on a full disk
        print(f"Error: the output cannot be written: {error.strerror}.", file=sys.stderr)  # noqa: T201
        os._exit(WRONG_INPUT)  # no second try to flush


class _WithChoices(TyperCommand):
    """A command whose help lists the statistics, nulls and lenses that there are."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from caltest.lenses import LENSES
        from caltest.nulls import NULLS
        from caltest.statistics import STATISTICS

        registries: dict[str, Mapping[str, object]]
        registries = {"statistic": STATISTICS, "null": NULLS, "lens": LENSES}
        for parameter in self.params:
            if parameter.name in registries:
                with formatter.section(f"Values of --{parameter.name}"):
                    formatter.write_dl(_entries(registries[parameter.name]))


def _entries(registry: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return names and first lines of documentation; a name that ends in a colon wants more."""
    return [
        (
            f"{name}…" if name.endswith(":") else name,
            getattr(of, "measures", None) or (getdoc(of) or "").partition("\n")[0],
        )
        for name, of in registry.items()
    ]


File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet, NPZ or NPY: a column of probabilities a class, and one of labels.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="The column of labels.  [default: label, y, y_true, target or class]",
        show_default=False,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="COLS",
        help="The columns of probabilities, separated by commas.  [default: all but the label]",
        show_default=False,
    ),
]
StatisticName = Annotated[
    str, typer.Option("--statistic", metavar="NAME", help="What is computed; see below.")
]
LensName = Annotated[
    str | None,
    typer.Option(
        "--lens", metavar="NAME", help="A view of the predictions; see below.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of prose.")]
Jobs = Annotated[int, typer.Option(metavar="INT", help="Cores to use; -1 is all of them.")]
Example = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Bundled predictions instead of FILE, for instance digits:naive_bayes.",
        show_default=False,
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        _write(f"caltest {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command("test", cls=_WithChoices)
def _test(
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
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="INT",
            min=0,
            help="Repeats the numbers.  [default: random]",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    jobs: Jobs = -1,
    example: Example = None,
) -> None:
    """Test whether predictions are calibrated.

    Exit status: 0 not rejected, 1 rejected, 2 wrong input.
    """
    with _errors_reported():
        _check_jobs(jobs)
        _check_level(alpha)
        sample = _sample(file, label, columns, example)

        from caltest.testing import test

        result = test(
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
            _write(_json({**_source(file, example), **result.to_dict(), **decision}))
        else:
            _write(f"{result.summary().rstrip()}\n\n{_decision(rejected, alpha)}")
        raise typer.Exit(REJECTED if rejected else NOT_REJECTED)


@app.command("estimate", cls=_WithChoices)
def _estimate(
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
    with _errors_reported():
        _check_jobs(jobs)
        sample = _sample(file, label, columns, example)

        from caltest.testing import estimate

        value = estimate(sample.predictions, sample.labels, statistic, lens=lens, n_jobs=jobs)
        if as_json:
            asked = {"name": statistic, "lens": lens}
            number = value if math.isfinite(value) else str(value)
            _write(_json({**_source(file, example), **asked, "statistic": number}))
        else:
            _write(repr(value))


@contextmanager
def _errors_reported() -> Iterator[None]:
    """Turn an exception into a line on standard error and an exit status that says what it was."""
    try:
        yield
    except InputError as error:
        _fail(str(error), WRONG_INPUT)
    except typer.Exit:
        raise
    except Exception:
        traceback.print_exc()
        _fail("this is a bug in caltest; please report it with the lines above.", BUG)


def _fail(message: str, status: int) -> NoReturn:
    print(f"Error: {message}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(status)


def _check_jobs(jobs: int) -> None:
    if jobs == 0:
        raise InputError("--jobs is 0; give a number of cores, or -1 for all of them.")


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

        named = None if columns is None else [name.strip() for name in columns.split(",")]
        return files.read(file, label=label, columns=named)
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


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, allow_nan=False)


def _write(text: str) -> None:
    """Write all of the output at once; a reader that left, or a full disk, is not a bug."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more at exit: let it succeed, so that our status stands.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(BROKEN_PIPE) from None
        _fail(f"the output cannot be written: {error.strerror}.", WRONG_INPUT)


if __name__ == "__main__":
    main()
