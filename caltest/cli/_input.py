"""What the commands read: predictions of one model, from a file or bundled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from caltest.cli._options import column_names
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest.data import Sample


def read_sample(
    file: Path | None, label: str | None, columns: str | None, example: str | None
) -> Sample:
    """Read the file, or load the example."""
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


def source(file: Path | None, example: str | None) -> dict[str, str | None]:
    """Return where predictions came from, for JSON."""
    return {"file": None if file is None else str(file), "example": example}
