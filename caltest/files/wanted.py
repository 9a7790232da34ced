"""What is asked of a file: which columns are what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from caltest._arguments import closest
from caltest._memory import check_fits
from caltest._quoted import quoted
from caltest.data import Sample
from caltest.data.containers import listed
from caltest.exceptions import InputError

_COPIES = 4.0  # of float64 predictions that reading, checking and sampling them takes


@dataclass(frozen=True)
class Wanted:
    """The names that a user gives.

    Attributes
    ----------
    label
        Of the labels; None to find them.
    columns
        Of the probabilities, in class order; None for all but the label and the groups.
    groups
        Of the columns that group rows.
    """

    label: str | None
    columns: tuple[str, ...] | None
    groups: tuple[str, ...]

    def found(self, names: Sequence[str], find: Callable[[Sequence[str]], str]) -> str:
        """Return the name that ``find`` finds, among those that are no groups if it is there."""
        try:
            return find([name for name in names if name not in self.groups])
        except InputError:
            return find(names)

    def check_groups(self, names: Sequence[str], truth: str, kind: str) -> None:
        """Raise unless every group is a column (an array) of its own, neither label nor probability.

        Parameters
        ----------
        names
            Of all columns or arrays in the file.
        truth
            Of the one that holds the labels.
        kind
            "column" or "array".
        """
        for name in self.groups:
            if name not in names:
                close = closest(name, names)
                meant = f" (is {close!r} meant?)" if close else ""
                raise InputError(
                    f"there is no {kind} {quoted(name)} to group by{meant}; the {kind}s are "
                    f"{listed(names)}."
                )
            if name == truth:
                raise InputError(
                    f"the {kind} {name!r} holds the labels, so it cannot be a group; group by what was "
                    "known before, or say what holds the labels, with --label (label=… in Python)."
                )
            if self.columns is not None and name in self.columns:
                raise InputError(
                    f"the {kind} {name!r} is given as a probability and as a group; give it as one."
                )
            if self.groups.count(name) > 1:
                raise InputError(f"the group {name!r} is given twice; give it once.")


Read: TypeAlias = "tuple[Sample, pd.DataFrame]"
Reader: TypeAlias = "Callable[[Path, Wanted], Read]"


def named(given: Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple; one name is one."""
    return (given,) if isinstance(given, str) else tuple(str(name) for name in given)


def reason(error: Exception) -> str:
    """Make one clause of a library's message."""
    return " ".join(str(error).split()).removesuffix(".").replace(". ", ": ")


def noting_unread(checked: Sample, kind: str, unread: Sequence[str]) -> Sample:
    """Return the sample with a note of what else is in the file."""
    if not unread:
        return checked
    notes = (*checked.predictions.notes, f"{kind.capitalize()} not read: {listed(unread)}.")
    return Sample(replace(checked.predictions, notes=notes), checked.labels)


def check_held(rows: int, width: int) -> None:
    """Raise if so many rows of so many numbers, read and checked, do not fit into memory."""
    check_fits(
        _COPIES * 8.0 * rows * width,
        f"a table of {rows} rows and {width} columns",
        "take fewer rows or, for a test, a statistic that reads the rows of a file in one pass, such "
        "as 'omnibus', 'ecd' or 'brier' (caltest.files.scan in Python)",
    )
