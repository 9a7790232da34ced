"""The content of a file: which columns are labels, probabilities and groups, and what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import Any, TypeAlias

import pandas as pd

from caltest._arguments import closest
from caltest._memory import check_fits
from caltest._visible import quoted
from caltest.data import Rows, Sample, predictions, sample
from caltest.data.containers import chosen_label, likely_labels, listed
from caltest.exceptions import InputError

_COPIES = 4.0  # of float64 predictions that reading, checking and sampling them takes


@dataclass(frozen=True)
class Roles:
    """Which columns of a file are what: the names that a user gives.

    Attributes
    ----------
    label
        Of the labels; None to find them.
    columns
        Of the probabilities, in class order; None for all but the label and the groups.
    groups
        Of the columns that group rows.
    needs_labels
        Whether a file without labels is wrong.
    """

    label: str | None
    columns: tuple[str, ...] | None
    groups: tuple[str, ...]
    needs_labels: bool = True

    @classmethod
    def of(
        cls,
        label: str | int | None,
        columns: Sequence[str] | None,
        groups: Sequence[str] = (),
        needs_labels: bool = True,
    ) -> Roles:
        """Take names as users give them; one name is one."""
        return cls(
            None if label is None else str(label),
            None if columns is None else _named(columns),
            _named(groups),
            needs_labels,
        )

    @property
    def may_lack_labels(self) -> bool:
        """Whether predictions alone are enough, as no labels are named."""
        return not self.needs_labels and self.label is None

    def found_label(self, names: Sequence[str], kind: str) -> str | None:
        """Return the name of the labels; None if there may be none, and there are none."""
        if self.may_lack_labels and not likely_labels(names):
            return None
        return self.found(names, lambda some: chosen_label(some, self.label, kind))

    def found(self, names: Sequence[str], find: Callable[[Sequence[str]], str]) -> str:
        """Return the name that ``find`` finds, among those that are no groups if it is there."""
        try:
            return find([name for name in names if name not in self.groups])
        except InputError:
            return find(names)

    def check_groups(self, names: Sequence[str], truth: str | None, kind: str) -> None:
        """Raise unless every group is a column (an array) of its own, neither label nor probability.

        Parameters
        ----------
        names
            Of all columns or arrays in the file.
        truth
            Of the one that holds the labels, if any.
        kind
            "column" or "array".
        """
        for name in self.groups:
            if name not in names:
                close = closest(name, names)
                meant = f" (is {quoted(close)} meant?)" if close else ""
                raise InputError(
                    f"there is no {kind} {quoted(name)} to group by{meant}; the {kind}s are "
                    f"{listed(names)}."
                )
            if name == truth:
                raise InputError(
                    f"the {kind} {quoted(name)} holds the labels, so it cannot be a group; group by "
                    "what was known before, or say what holds the labels, with --label (label=… in "
                    "Python)."
                )
            if self.columns is not None and name in self.columns:
                raise InputError(
                    f"the {kind} {quoted(name)} is given as a probability and as a group; give "
                    "it as one."
                )
            if self.groups.count(name) > 1:
                raise InputError(f"the group {quoted(name)} is given twice; give it once.")


Read: TypeAlias = "tuple[Sample, pd.DataFrame]"


@dataclass(frozen=True, eq=False)
class Content:
    """What was read from a file, before it is checked.

    Attributes
    ----------
    probs
        Predictions, in a container that :func:`caltest.data.sample` takes.
    labels
        What came true, likewise; None if the file has no labels.
    groups
        The columns that group rows.
    notes
        What is worth telling of the file.
    origin
        From where in the file, as a clause; None if there are no names.
    """

    probs: Any
    labels: Any
    groups: pd.DataFrame
    notes: tuple[str, ...] = ()
    origin: str | None = None

    def checked(self, *, part: bool = False) -> Sample:
        """Check predictions and labels."""
        with self._told():
            found = sample(self.probs, self.labels, part=part)
        return Sample(self._noting(found.rows), found.labels)

    def checked_predictions(self) -> Rows:
        """Check predictions alone."""
        with self._told():
            found = predictions(self.probs)
        return self._noting(found)

    def _noting(self, found: Rows) -> Rows:
        return replace(found, notes=(*found.notes, *self.notes))

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            if self.origin is None:
                raise
            raise error.explained(self.origin) from error


Reader: TypeAlias = "Callable[[BufferedReader, Roles], Content]"


def unread_note(kind: str, unread: Sequence[str]) -> tuple[str, ...]:
    """Note what else is in the file."""
    return (f"{kind.capitalize()} not read: {listed(unread)}.",) if unread else ()


def _named(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(str(name) for name in given)


def check_held(rows: int, width: int) -> None:
    """Raise if so many rows of so many numbers, read and checked, do not fit into memory."""
    check_fits(
        _COPIES * 8.0 * rows * width,
        f"a table of {rows} rows and {width} columns",
        "take fewer rows or, for a test, a statistic that reads the rows of a file in one pass, such "
        "as 'omnibus', 'ecd' or 'brier' (caltest.files.scan in Python)",
    )
