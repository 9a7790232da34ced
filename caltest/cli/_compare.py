"""`caltest compare`: several models on the same rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from caltest._door import called
from caltest.cli._options import (
    AsJson,
    Columns,
    Jobs,
    Label,
    LensName,
    Seed,
    StatisticName,
    check_typed,
    column_names,
    file_path,
)
from caltest.cli._output import errors_reported, to_json, write, write_data
from caltest.exceptions import InputError, Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from caltest.comparison.equality import Kind
    from caltest.data import Rows, Sample

    Labels = NDArray[np.intp]

_DIGITS = "digits"


def run_compare(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=file_path,
            metavar="FILES",
            help="Two files or more, of the same rows in the same order, as for caltest test.",
            show_default=False,
        ),
    ] = None,
    label: Label = None,
    columns: Columns = None,
    statistic: StatisticName = "ckce",
    lens: LensName = None,
    resampling: Annotated[
        str, typer.Option(metavar="NAME", help="How rows are drawn: subsampling or bootstrap.")
    ] = "subsampling",
    resamples: Annotated[int, typer.Option(metavar="INT", min=2, help="How often.")] = 500,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="INT",
            help="Rows of a subsample.  [default: 500, or half of the rows if less]",
            show_default=False,
        ),
    ] = None,
    correction: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="For the number of pairs: holm, bonferroni, hommel, fdr_bh, …, none."
        ),
    ] = "holm",
    seed: Seed = None,
    as_json: AsJson = False,
    jobs: Jobs = -1,
    example: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Bundled predictions instead of files: digits, by all models.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Rank models by a calibration error, and say how sure the ranking is.

    A model is called by its file. Exit status: 0, or 2 if the input is wrong.
    """
    with errors_reported():
        check_typed(jobs=jobs, resamples=resamples)
        sources, models, labels = _models(files or [], label, columns, example)

        from caltest import comparison

        found = comparison.compare(
            models,
            labels,
            statistic,
            lens=lens,
            resampling=cast("Kind", resampling),
            n_resamples=resamples,
            size=size,
            correction=None if correction == "none" else correction,
            rng=seed,
            n_jobs=jobs,
            progress=True,
        )
        if as_json:
            write_data(to_json({"files": sources, "example": example, **found.to_dict()}))
        else:
            write(found.summary())


def _models(
    files: Sequence[Path], label: str | None, columns: str | None, example: str | None
) -> tuple[dict[str, str] | None, dict[str, Rows], Labels]:
    """Return the files by model (None for an example), the predictions by model, and the labels."""
    if example is not None:
        if files:
            raise InputError(
                f"both files ({files[0]}, …) and --example ({example or 'empty'}) are given."
            )
        if label is not None or columns is not None:
            raise InputError("--label and --columns are for files; those of an example are known.")
        return (None, *_digits(example))
    if len(files) < 2:
        raise InputError(
            f"there {'is one file' if files else 'are no files'} to compare; give two or more, "
            "or --example digits."
        )
    names = model_names(files)
    from caltest.files import read

    samples = {
        name: read(path, label=label, columns=column_names(columns))
        for name, path in zip(names, files, strict=True)
    }
    sources = {name: str(path) for name, path in zip(names, files, strict=True)}
    (first, reference), *others = samples.items()
    predictions = {first: reference.rows}
    for name, other in others:
        predictions[name] = _aligned(sources[first], reference, sources[name], other)
    return sources, predictions, reference.labels


def model_names(files: Sequence[Path]) -> list[str]:
    """Return the stems of the files, or the whole paths where stems are equal."""
    places = [os.path.realpath(path) for path in files]  # of a loop of links, too
    twice = [path for path, place in zip(files, places, strict=True) if places.count(place) > 1]
    if twice:
        raise InputError(f"the file {called(twice[0])} is given twice; give every model once.")
    stems = [path.stem for path in files]
    return [
        stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, files, strict=True)
    ]


def _digits(example: str) -> tuple[dict[str, Rows], Labels]:
    from caltest._arguments import choose
    from caltest.data import Rows
    from caltest.datasets import digits_models, load_digits_predictions

    choose("example to compare", example, {_DIGITS: True})
    loaded = [load_digits_predictions(model) for model in digits_models()]
    return {each.model: Rows(each.probs, each.classes) for each in loaded}, loaded[0].labels


def _aligned(first: str, reference: Sample, second: str, other: Sample) -> Rows:
    """Return a file's predictions with its columns in the order of the first one's.

    Raises
    ------
    InputError
        If classes or labels are not the same.
    """
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
