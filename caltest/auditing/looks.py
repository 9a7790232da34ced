"""A look: a lens on some rows, as the predictions alone determine it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.auditing.result import Group
from caltest.data import Predictions, Sample
from caltest.forms.pairs import sums_of_others
from caltest.lenses import ClassWise, Lens, Reducer
from caltest.tolerance import event

Rows: TypeAlias = NDArray[np.intp]

CANONICAL = "canonical"
CLASSWISE = "classwise"


@dataclass(frozen=True, eq=False)
class Scope:
    """A lens, with what it makes of the predictions of all rows.

    Attributes
    ----------
    asked
        Under which name it was asked for: "canonical", "classwise", or the lens's label.
    label
        The lens's label; "canonical" for the full probability vector.
    lens
        None for the full probability vector.
    column
        The class it looks at, of a class-wise lens.
    """

    asked: str
    label: str
    lens: Lens | None
    column: int | None = None


@dataclass(frozen=True, eq=False)
class Look:
    """A lens on all rows, or on a group.

    Attributes
    ----------
    scope
        The lens.
    group, rows
        The group and its rows; None for all.
    n_rows
        How many there are.
    expected
        Mean number of events and of rows without; the smaller. Infinite without an event.
    event
        What the one probability is of, as a clause; None where there is more than one.
    """

    scope: Scope
    group: Group | None
    rows: Rows | None
    n_rows: int
    expected: float
    event: str | None

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all other looks of an audit."""
        return (
            self.scope.label,
            self.group.column if self.group else "",
            self.group.value if self.group else "",
        )


@dataclass(frozen=True, eq=False)
class Source:
    """All predictions, seen through any lens on any rows. Nothing here depends on labels.

    Attributes
    ----------
    predictions
        The full ones.
    """

    predictions: Predictions

    @cached_property
    def _others(self) -> NDArray[np.float64]:
        """Return what every row says of all classes but one, (n, m), without a subtraction."""
        return np.minimum(sums_of_others(self.predictions.probs), 1.0)

    @cached_property
    def _reduced(self) -> dict[str, Predictions]:
        return {}

    def seen(self, scope: Scope) -> Predictions:
        """Return the predictions of all rows through a lens."""
        if scope.lens is None:
            return self.predictions
        if scope.column is not None:
            return self._one_class(scope.column)
        if scope.label not in self._reduced:
            self._reduced[scope.label] = scope.lens.reduce(self.predictions)
        return self._reduced[scope.label]

    def _one_class(self, column: int, rows: Rows | slice = slice(None)) -> Predictions:
        """Return (P(another), P(this class)), as :class:`caltest.lenses.ClassWise` does."""
        whole = self.predictions
        name = whole.classes[column] if whole.classes else f"class {column}"
        pair = np.column_stack([self._others[rows, column], whole.probs[rows, column]])
        return whole.shown_as(pair, ("another", name), rows)

    def at(self, look: Look) -> Predictions:
        """Return the predictions of a look."""
        if look.rows is None:
            return self.seen(look.scope)
        if look.scope.column is not None:
            return self._one_class(look.scope.column, look.rows)
        whole = self.seen(look.scope)
        return whole.take(look.rows)

    def reducer(self, scope: Scope) -> Reducer | None:
        """Return what takes full labels to those of the lens; None where they stay."""
        if scope.lens is None or scope.label in self._reducers:
            return self._reducers.get(scope.label)
        return self._reducers.setdefault(scope.label, scope.lens.reducer(self.predictions))

    @cached_property
    def _reducers(self) -> dict[str, Reducer]:
        return {}

    def sample(self, look: Look, labels: NDArray[Any]) -> Sample:
        """Return predictions and observed labels of a look."""
        reducer = self.reducer(look.scope)
        reduced = reducer(labels) if reducer else labels
        return Sample(self.at(look), reduced if look.rows is None else reduced[look.rows])

    def look(self, scope: Scope, group: Group | None = None, rows: Rows | None = None) -> Look:
        """Return a lens on all rows, or on a group."""
        whole = self.seen(scope) if scope.column is None else None
        n = self.predictions.n_samples if rows is None else len(rows)
        probs = self.predictions.probs[:, scope.column] if whole is None else whole.probs[:, 1]
        if whole is not None and whole.n_classes > 2:
            return Look(scope, group, rows, n, float("inf"), None)
        p = probs if rows is None else probs[rows]
        expected = float(min(p.sum(), n - p.sum()))
        about = event(None if scope.lens is None else scope.label, self._about(scope, whole))
        return Look(scope, group, rows, n, expected, about)

    def _about(self, scope: Scope, whole: Predictions | None) -> Predictions:
        return self._one_class(int(scope.column or 0), slice(0, 1)) if whole is None else whole


def class_scope(predictions: Predictions, column: int) -> Scope:
    """Return the class-wise lens of a column: by its name, if it has one, which no other has."""
    lens = ClassWise(predictions.classes[column] if predictions.classes else column)
    return Scope(CLASSWISE, lens.label, lens, column)
