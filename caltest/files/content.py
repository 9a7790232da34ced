"""The content of a file: which columns are labels, probabilities and groups, and what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from caltest._arguments import closest
from caltest._memory import check_fits
from caltest._visible import quoted
from caltest.data import Rows, Sample, predictions, sample
from caltest.data.clusters import Clustering
from caltest.data.containers import Table, listed
from caltest.data.weights import checked_weights, in_means
from caltest.exceptions import InputError
from caltest.files.columns import check_columns, chosen_columns, chosen_label, likely_labels

_COPIES = 4.0  # of float64 predictions that reading, checking and sampling them takes


@dataclass(frozen=True)
class Roles:
    """Which columns are what, as the user says: None where they are to be found."""

    label: str | None
    columns: tuple[str, ...] | None
    groups: tuple[str, ...]
    needs_labels: bool = True
    weights: str | None = None
    clusters: str | None = None  # among the groups too, as which they are read

    @classmethod
    def of(
        cls,
        label: str | int | None,
        columns: Sequence[str] | None,
        groups: Sequence[str] = (),
        needs_labels: bool = True,
        weights: str | None = None,
        clusters: str | None = None,
    ) -> Roles:
        """Take names as users give them; one name is one."""
        several = [
            (each,) if isinstance(each, str) else tuple(map(str, each))
            for each in (columns or (), groups)
        ]
        named = None if columns is None else several[0]
        truth = None if label is None else str(label)
        own, together = (None if each is None else str(each) for each in (weights, clusters))
        read = several[1]
        if together is not None and together not in read:
            read = (*read, together)
        return cls(truth, named, read, needs_labels, own, together)

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
            return find([name for name in names if name not in (*self.groups, self.weights)])
        except InputError:
            return find(names)

    def check_weights(self, names: Sequence[str], truth: str | None, kind: str) -> None:
        """Raise unless the weights are a column (an array) of their own."""
        name = self.weights
        if name is None:
            return
        if name not in names:
            close = closest(name, names)
            meant = f" (is {quoted(close)} meant?)" if close else ""
            raise InputError(
                f"there is no {kind} {quoted(name)} of weights{meant}; the {kind}s are {listed(names)}."
            )
        others: dict[str | None, str] = dict.fromkeys(self.columns or (), "a probability")
        others.update((each, "a group") for each in self.groups)
        others[self.clusters] = "clusters"
        others[truth] = "the labels"
        if name in others:
            raise InputError(
                f"the {kind} {quoted(name)} is given as weights and as {others[name]}; give it as one."
            )

    def check_groups(self, names: Sequence[str], truth: str | None, kind: str) -> None:
        """Raise unless every group is a column (an array) of its own, neither label nor probability."""
        for name in self.groups:
            together = name == self.clusters
            if name not in names:
                close = closest(name, names)
                meant = f" (is {quoted(close)} meant?)" if close else ""
                of = "of clusters" if together else "to group by"
                raise InputError(
                    f"there is no {kind} {quoted(name)} {of}{meant}; the {kind}s are {listed(names)}."
                )
            if name == truth:
                what, do = (
                    ("cannot say what belongs together", "give a column such as patient")
                    if together
                    else ("cannot be a group", "group by what was known before")
                )
                raise InputError(
                    f"the {kind} {quoted(name)} holds the labels, so it {what}; {do}, or say what "
                    "holds the labels, with --label (label=… in Python)."
                )
            if self.columns is not None and name in self.columns:
                raise InputError(
                    f"the {kind} {quoted(name)} is given as a probability and as "
                    f"{'clusters' if together else 'a group'}; give it as one."
                )
            if self.groups.count(name) > 1:
                raise InputError(f"the group {quoted(name)} is given twice; give it once.")


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what."""

    label: str | None
    probs: tuple[str, ...]
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    given: bool  # whether the user names the probabilities
    weights: str | None = None
    clusters: str | None = None

    @classmethod
    def of(cls, roles: Roles, names: Sequence[str]) -> Columns:
        """Find them among the names of a table."""
        truth = roles.found_label(names, "column")
        roles.check_groups(names, truth, "column")
        roles.check_weights(names, truth, "column")
        apart = (truth, roles.weights, *roles.groups)
        others = dict.fromkeys(name for name in names if name not in apart)
        chosen = list(others) if roles.columns is None else chosen_columns(others, roles.columns)
        read = set(chosen)  # there may be very many
        notes = unread_note("columns", [name for name in others if name not in read])
        given = roles.columns is not None
        return cls(truth, tuple(chosen), roles.groups, notes, given, roles.weights, roles.clusters)

    @property
    def read(self) -> list[str]:
        """Names of all columns that are read."""
        single = [name for name in (self.label, self.weights) if name is not None]
        return [*self.probs, *single, *self.groups]

    def check_kinds(self, schema: Any, load: Callable[[str], Any]) -> None:
        """Raise if a column of Arrow's schema can be no class's probability; ``load`` loads it."""
        frame: Any = nw.from_native(schema.empty_table(), eager_only=True)
        check_columns(frame.select(self.probs).schema, load, given=self.given)

    def content(self, table: Any) -> Content:
        """Return what is in a table of Arrow, or in a part of its rows."""
        frame: Any = nw.from_native(table, eager_only=True)
        probs, where = self._floats(table) or frame.select(self.probs), listed(self.probs)
        groups = {name: frame.get_column(name).to_list() for name in self.groups}
        weights = None if self.weights is None else frame.get_column(self.weights)
        clusters = None if self.clusters is None else groups[self.clusters]
        apart = {"weights": weights, "clusters": clusters}
        if self.label is None:
            origin = f"probs were read from {where}"
            return Content(probs, None, groups, self.notes, origin, **apart)
        origin = f"labels were read from column {quoted(self.label)}, probs from {where}"
        return Content(probs, frame.get_column(self.label), groups, self.notes, origin, **apart)

    def _floats(self, table: Any) -> Table | None:
        """Read probabilities of the usual kind, which is quicker than to ask what kind they are."""
        columns = [table.column(name) for name in self.probs]
        if any(str(each.type) not in ("float", "double") or each.null_count for each in columns):
            return None
        values = np.column_stack([each.to_numpy() for each in columns])
        return Table(values, self.probs, any(str(each.type) == "float" for each in columns))


@dataclass(frozen=True, eq=False)
class Content:
    """What was read from a file, before it is checked: labels are None if it has none."""

    probs: Any
    labels: Any
    groups: dict[str, list[Any]]
    notes: tuple[str, ...] = ()
    origin: str | None = None  # from where in the file, as a clause; None if there are no names
    weights: Any = None
    clusters: list[Any] | None = None

    def checked(self, *, rounding: float | None = None) -> Sample:
        """Check predictions, labels, weights and clusters."""
        with self._told():
            found = sample(self.probs, self.labels, rounding=rounding, weights=self.weights)
        if self.clusters is not None:
            found = sample(found.rows, found.labels, clusters=self.clusters)
        return Sample(self._noting(found.rows), found.labels)

    def checked_part(self, mean: float | None = None, clustering: Clustering | None = None) -> Sample:
        """Check those of some of the rows, whose weights are all divided by a mean."""
        with self._told():
            found = sample(self.probs, self.labels, part=True)
            weights = clusters = None
            if mean is not None:
                weights = in_means(checked_weights(self.weights, len(found.labels)), mean)
            if clustering is not None and self.clusters is not None:
                clusters = clustering.codes(self.clusters)
        own: dict[str, Any] = {"weights": weights, "clusters": clusters}
        return Sample(replace(self._noting(found.rows), **own), found.labels)

    def checked_predictions(self) -> Rows:
        """Check predictions and weights alone."""
        with self._told():
            return self._noting(predictions(self.probs, self.weights))

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


def unread_note(kind: str, unread: Sequence[str]) -> tuple[str, ...]:
    """Note what else is in the file."""
    return (f"{kind.capitalize()} not read: {listed(unread)}.",) if unread else ()


def check_held(rows: int, width: int) -> None:
    """Raise if so many rows of so many numbers, read and checked, do not fit into memory."""
    check_fits(
        _COPIES * 8.0 * rows * width,
        f"a table of {rows} rows and {width} columns",
        "take fewer rows or, for a test, a statistic that reads the rows of a file in one pass, such "
        "as 'omnibus', 'ecd' or 'brier' (caltest.files.scan in Python)",
    )
