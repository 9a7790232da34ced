"""What the commands read: predictions of one model, from a file or bundled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._options import column_names
from caltest.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from caltest.data import Rows, Sample


def read_sample(
    file: Path | None, label: str | None, columns: str | None, example: str | None
) -> Sample:
    """Read the file, or load the example."""
    _check_for_file(file, example, {"label": label, "columns": columns})
    if example is not None:
        return _example(example)
    from caltest import files

    return files.read(_given(file), label=label, columns=column_names(columns))


def read_pilot(
    file: Path | None,
    label: str | None,
    columns: str | None,
    example: str | None,
    *,
    needs_labels: bool,
) -> Sample | Rows:
    """Read a pilot; where it needs no labels, of a file without any its predictions."""
    if needs_labels or file is None or example is not None:
        return read_sample(file, label, columns, example)
    from caltest import files

    return files.read_pilot(file, label=label, columns=column_names(columns))


def read_or_scan(
    file: Path | None, label: str | None, columns: str | None, example: str | None
) -> tuple[Any, Any]:
    """Return predictions and labels; of a file that can be read a block at a time, the file."""
    if file is not None and example is None:
        from caltest import files

        if files.can_scan(file):
            return files.scan(file, label=label, columns=column_names(columns)), None
    sample = read_sample(file, label, columns, example)
    return sample.rows, sample.labels


def read_sample_with_groups(
    file: Path | None,
    label: str | None,
    columns: Sequence[str] | None,
    groups: Sequence[str],
    example: str | None,
) -> tuple[Sample, pd.DataFrame | None]:
    """Read the file, or load the example; return the columns of groups too, None without any."""
    if groups and example is not None:
        raise InputError(f"--group {groups[0]} is for a FILE; the examples have no groups.")
    _check_for_file(file, example, {"label": label, "columns": ",".join(columns or ()) or None})
    if example is not None:
        return _example(example), None
    from caltest import files
    from caltest.data.containers import NAME_COLUMNS

    try:
        sample, frame = files.read_with_groups(_given(file), label, columns=columns, groups=groups)
    except InputError as error:  # what is no probability may be meant as a group
        raise error.changed(
            lambda fact: f"{fact}, or group by it, with --group" if fact == NAME_COLUMNS else fact
        ) from error
    return sample, frame if groups else None


def _check_for_file(file: Path | None, example: str | None, given: dict[str, str | None]) -> None:
    """Raise if there is an example and something that only a file needs."""
    if example is None:
        return
    if file is not None:
        raise InputError(
            f"both FILE ({file}) and --example ({example or 'empty'}) are given; give one."
        )
    if given["label"] is not None:
        raise InputError(f"--label {given['label']} is for a FILE; the labels of an example are known.")
    if given["columns"] is not None:
        raise InputError(f"--columns {given['columns']} is for a FILE; those of an example are known.")


def _given(file: Path | None) -> Path:
    if file is None:
        raise InputError("nothing to read: give a FILE, or --example digits:naive_bayes.")
    return file


def _example(name: str) -> Sample:
    from caltest._arguments import choose
    from caltest.data import Rows, Sample
    from caltest.datasets import digits_models, load_digits_predictions

    models = {f"digits:{model}": model for model in digits_models()}
    digits = load_digits_predictions(choose("example", name, models))
    return Sample(Rows(digits.probs, digits.classes), digits.labels)


def source(file: Path | None, example: str | None) -> dict[str, str | None]:
    """Return where predictions came from, for JSON."""
    return {"file": None if file is None else str(file), "example": example}
