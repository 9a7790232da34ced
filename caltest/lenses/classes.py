"""The lens interface, and lenses of classes: the top class, single ones, the top few, their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from caltest._arguments import name_or_place, options, whole_number
from caltest._sums import Places, blocks
from caltest._visible import quoted
from caltest.data import Rows, Sample
from caltest.data.containers import listed
from caltest.exceptions import InputError
from caltest.laws import Outcomes, Predictive
from caltest.laws.classes import Bits
from caltest.sampling import ROWS

#: Takes labels (…, r), whole numbers of any type, and the rows that they belong to; returns them in the
#: reduced classes, as small whole numbers, because blocks of drawn labels are large.
Reducer: TypeAlias = Callable[..., Outcomes]

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Reduction:
    """Rows seen through a lens, all or some, and what it does to outcomes.

    Attributes
    ----------
    rows : Rows
        The predictions, as the lens shows them.
    see : callable or None
        Takes outcomes (…, r) of the full predictions, and which rows they are of, to those that the
        lens shows; None where they stay as they are.
    label : str or None
        The name of the lens; None without one.
    places : array of int or None
        Which of the full rows these are; None for all.
    event : int or None
        The class that a class-wise lens looks at.
    see_open : callable or None
        For quantile forecasts, where an outcome may equal a quantile: as ``see``, but such outcomes
        count as outside the event where ``see`` counts them as inside. Default None: there are none.
    """

    rows: Rows
    see: Reducer | None = None
    label: str | None = None
    places: Places | None = None
    event: int | None = None
    see_open: Reducer | None = None

    @property
    def opened(self) -> Reduction:
        """The view in which outcomes equal to a quantile count as outside of the event."""
        return replace(self, see=self.see_open or self.see)

    @property
    def strict(self) -> Reduction:
        """The view in which outcomes equal to a quantile do not belong to the rarer class."""
        return replace(self, see=self.opened.see if self.share <= 0.5 else self.see, see_open=None)

    @cached_property
    def share(self) -> float:
        """Expected share of rows in class 1 of two."""
        return float(self.rows.probs[:, 1].mean())

    def outcomes(self, full: Outcomes, rows: slice = ALL) -> Outcomes:
        """Return the view's outcomes, (B, n of the view), from the full ones, (B, n).

        ``rows`` selects consecutive rows, if the view has all of them.
        """
        reduced = full if self.see is None else self.see(full, rows)
        return reduced if self.places is None else taken(reduced, self.places)

    def sample(self, outcomes: Outcomes) -> Sample:
        """Return the view as a sample with the observed outcomes, from the full ones (n,)."""
        return Sample(self.rows, self.outcomes(outcomes[None])[0])


def looked_up(table: Outcomes, outcomes: Outcomes, rows: slice = ALL) -> Outcomes:
    """Return the table's entry for every outcome, a whole number."""
    return np.asarray(table[outcomes])


def taken(outcomes: Outcomes, rows: Places) -> Outcomes:
    """Return the outcomes (B, n) of some rows; labels not packed as bits take a compiled loop."""
    if isinstance(outcomes, Bits) or len(outcomes) == 1 or outcomes.ndim > 2:
        return outcomes.take(rows, axis=1)
    from caltest.loops import rows as _loops

    found = np.empty((len(outcomes), len(rows)), dtype=outcomes.dtype)
    _loops.take_rows(outcomes, rows, found)
    return found


class Lens(ABC):
    """Base class of lenses: a view of predictions and labels.

    Subclasses are frozen dataclasses of options.
    """

    #: Start of its name, before its options.
    kind: ClassVar[str]
    #: Whether it turns predicted distributions of numbers into classes; if not, it is for classes.
    of_numbers: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """The name of the lens, with its options."""
        options = ",".join(str(getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return f"{self.kind}:{options}" if options else self.kind

    @abstractmethod
    def show(self, predictions: Rows) -> Reduction:
        """Return the rows seen through the lens.

        All work on the predictions is done here. The view's function of labels takes one label vector
        (r,) or a block of them (B, r), whole numbers of any type, and the rows that they belong to.
        """

    def check(self, predictions: Rows) -> None:
        """Raise unless the lens applies to such predictions."""
        law = predictions.law
        if isinstance(law, Predictive) == self.of_numbers:
            return
        kind, of = "classes", "a lens of numbers such as 'quantile:0.5' or 'below:10'"
        if self.of_numbers:
            kind, of = "predicted distributions of numbers", "a lens of classes such as 'top_label'"
        raise self._refusing(kind, law.about, f"give {of}, or leave the lens out")

    def _refusing(self, kind: str, these: str, do: str) -> InputError:
        """Return the error for predictions that the lens does not apply to."""
        return InputError(f"the lens {quoted(self.label)} is for {kind}, and these are {these}; {do}.")


# ------------------------------------------------------------------ lenses of classes


def is_column(columns: Places, labels: Outcomes, rows: slice = ALL) -> Outcomes:
    """Return 1 where a label is the column of its row, else 0."""
    return np.asarray(labels == columns[rows].astype(labels.dtype)).view(np.uint8)


def _of_rows(table: Outcomes, labels: Outcomes, rows: slice = ALL) -> Outcomes:
    """Return the entry of the table (n, m) for every label."""
    own = table[rows]
    return np.asarray(own[np.arange(len(own)), labels])


class _Event(Lens):
    """A lens of two classes: class 1 means that the label is among some columns of its row."""

    @abstractmethod
    def _columns(self, predictions: Rows) -> tuple[Places, tuple[str, str]]:
        """Return the columns, (n, k), and the names of both classes."""

    def show(self, predictions: Rows) -> Reduction:
        """Return (P(not), P(among them)), both as sums: one minus the other would lose 1e-20."""
        columns, names = self._columns(predictions)
        pair = np.empty((len(columns), 2))
        for rows in blocks(len(columns), ROWS):
            others, own = predictions.probs[rows].copy(), columns[rows]
            pair[rows, 1] = np.take_along_axis(others, own, axis=1).sum(axis=1)
            np.put_along_axis(others, own, 0.0, axis=1)
            pair[rows, 0] = others.sum(axis=1)
        np.minimum(pair, 1.0, out=pair)
        if columns.shape[1] == 1:
            see = partial(is_column, columns[:, 0])
        else:
            member = np.zeros(predictions.probs.shape, dtype=np.uint8)
            np.put_along_axis(member, columns, 1, axis=1)
            see = partial(_of_rows, member)
        return Reduction(predictions.shown_as(pair, names), see, self.label)


@options()
class TopLabel(_Event):
    """Look at the most probable class: is it right as often as predicted?

    Class 1 of the view is "right".

    If classes are tied, the first is the top one.

    Examples
    --------
    >>> import caltest
    >>> from caltest.data import sample
    >>> whole = sample([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], [0, 2])
    >>> view, _ = caltest.lenses.through(whole, TopLabel())
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.25, 0.75], [0.5, 0.5]], [1, 0])
    """

    kind: ClassVar[str] = "top_label"

    def _columns(self, predictions: Rows) -> tuple[Places, tuple[str, str]]:
        law: Any = predictions.law
        return law.top[:, None], ("wrong", "right")


@options(which=name_or_place)
class ClassWise(_Event):
    """Look at one class against all others: does it occur as often as predicted?

    Class 1 of the view is "it occurred".

    Parameters
    ----------
    which : int or str
        A column, counted from 0, or the name of the class.

    Examples
    --------
    >>> import caltest
    >>> from caltest.data import sample
    >>> whole = sample([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], [0, 1])
    >>> view, _ = caltest.lenses.through(whole, ClassWise(1))
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    """

    which: int | str

    kind: ClassVar[str] = "class"

    def _columns(self, predictions: Rows) -> tuple[Places, tuple[str, str]]:
        classes, m = predictions.classes or (), predictions.n_classes
        column = whole_number(self.which)
        if isinstance(self.which, str) and self.which in classes:
            column = classes.index(self.which)
        if column is None or column >= m:
            known = f" or a name among {listed(classes)}" if classes else ""
            found = f"the lens asks for class {quoted(self.which)}, and there are {m} classes"
            raise InputError(f"{found}; give a column from 0 to {m - 1}{known}.")
        name = classes[column] if classes else f"class {column}"
        return np.full((predictions.n_samples, 1), column), ("another", name)


@options()
class TopK(_Event):
    """Look at the k most probable classes: is the label among them as often as predicted?

    Class 1 of the view is "among them".

    If classes are tied, the first ones are taken.

    Parameters
    ----------
    k : int or str
        Size of the set, 1 to m − 1.

    Raises
    ------
    InputError
        If ``k`` is not a positive whole number.

    Examples
    --------
    >>> import caltest
    >>> from caltest.data import sample
    >>> whole = sample([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]], [2, 2])
    >>> view, _ = caltest.lenses.through(whole, TopK(2))
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.25, 0.75], [0.0, 1.0]], [0, 1])
    """

    k: int | str

    kind: ClassVar[str] = "top"

    def __post_init__(self) -> None:
        if not whole_number(self.k):
            raise InputError(f"the lens asks for the top {quoted(self.k)}; give a size, as in 'top:5'.")

    def _columns(self, predictions: Rows) -> tuple[Places, tuple[str, str]]:
        size = int(self.k)
        if not 1 <= size < predictions.n_classes:
            found = f"the lens asks for the top {self.k} of {predictions.n_classes} classes"
            raise InputError(f"{found}; give k from 1 to {predictions.n_classes - 1}.")
        return np.argsort(-predictions.probs, axis=1, kind="stable")[:, :size], ("outside", "inside")


@options()
class Sorted(Lens):
    """Sort each row's probabilities: is the j-th most probable class right as often as predicted?

    If classes are tied, the first comes first.

    Examples
    --------
    >>> import caltest
    >>> from caltest.data import sample
    >>> whole = sample([[0.25, 0.5, 0.25], [0.0, 0.5, 0.5]], [2, 1])
    >>> view, _ = caltest.lenses.through(whole, Sorted())
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]], [2, 0])
    """

    kind: ClassVar[str] = "sorted"

    def show(self, predictions: Rows) -> Reduction:
        """Return rows in decreasing order of probability, and ranks of observed classes, from 0."""
        n, m = predictions.probs.shape
        order = np.argsort(-predictions.probs, axis=1, kind="stable")
        places = np.arange(m).astype(np.min_scalar_type(m))
        ranks = np.empty((n, m), dtype=places.dtype)
        np.put_along_axis(ranks, order, np.broadcast_to(places, (n, m)), axis=1)
        falling = -np.sort(-predictions.probs, axis=1)
        return Reduction(predictions.shown_as(falling), partial(_of_rows, ranks), self.label)
