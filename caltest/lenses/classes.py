"""Lenses of classes: the top class, single classes, sets of them, and their order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, name_or_place, whole_number
from caltest._visible import quoted
from caltest.data import Rows
from caltest.data.containers import listed
from caltest.exceptions import InputError
from caltest.lenses.base import ALL, Labels, Lens, Reduction, looked_up


def is_column(columns: Labels, labels: NDArray[Any], rows: slice = ALL) -> NDArray[Any]:
    """Return 1 where a label is the column of its row, else 0."""
    return np.asarray(labels == columns[rows].astype(labels.dtype)).view(np.uint8)


def _of_rows(table: NDArray[Any], labels: NDArray[Any], rows: slice = ALL) -> NDArray[Any]:
    """Return what the table (n, m) says of every label."""
    own = table[rows]
    return np.asarray(own[np.arange(len(own)), labels])


class _Event(Lens):
    """A lens of two classes: class 1 is that the label is among some columns of its row."""

    @abstractmethod
    def _columns(self, predictions: Rows) -> tuple[Labels, tuple[str, str]]:
        """Return the columns, (n, k), and the names of both classes."""

    def show(self, predictions: Rows) -> Reduction:
        """Return (P(not), P(among them)): both sums, not one minus the other, so that 1e-20 stays."""
        columns, names = self._columns(predictions)
        inside = np.take_along_axis(predictions.probs, columns, axis=1).sum(axis=1)
        others = predictions.probs.copy()
        np.put_along_axis(others, columns, 0.0, axis=1)
        pair = np.minimum(np.column_stack([others.sum(axis=1), inside]), 1.0)
        if columns.shape[1] == 1:
            see = partial(is_column, columns[:, 0])
        else:
            member = np.zeros(predictions.probs.shape, dtype=np.uint8)
            np.put_along_axis(member, columns, 1, axis=1)
            see = partial(_of_rows, member)
        return Reduction(predictions.shown_as(pair, names), see, self.label)


@arguments()
@dataclass(frozen=True)
class TopLabel(_Event):
    """Look at the most probable class: is it right as often as predicted?

    Class 1 of the view is "right".

    Of tied classes the first is the top one.

    Examples
    --------
    >>> from caltest.data import sample
    >>> view = TopLabel().view(sample([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], [0, 2]))
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.25, 0.75], [0.5, 0.5]], [1, 0])
    """

    claim: ClassVar[str] = "the top class is right as often as predicted"
    kind: ClassVar[str] = "top_label"

    def _columns(self, predictions: Rows) -> tuple[Labels, tuple[str, str]]:
        law: Any = predictions.law
        return law.top[:, None], ("wrong", "right")


@arguments(which=name_or_place)
@dataclass(frozen=True)
class ClassWise(_Event):
    """Look at one class against all others: does it occur as often as predicted?

    Class 1 of the view is "it occurred".

    Parameters
    ----------
    which
        Column, a whole number counting from 0; or as text, the name of the class, or a column.

    Examples
    --------
    >>> from caltest.data import sample
    >>> view = ClassWise(1).view(sample([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]], [0, 1]))
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    """

    which: int | str

    claim: ClassVar[str] = "the class occurs as often as predicted"
    kind: ClassVar[str] = "class"

    def _columns(self, predictions: Rows) -> tuple[Labels, tuple[str, str]]:
        classes = predictions.classes or ()
        column = whole_number(self.which)
        if isinstance(self.which, str) and self.which in classes:
            column = classes.index(self.which)
        if column is None or column >= predictions.n_classes:
            known = f" or a name among {listed(classes)}" if classes else ""
            raise InputError(
                f"the lens asks for class {quoted(self.which)}, and there are {predictions.n_classes} "
                f"classes; give a column from 0 to {predictions.n_classes - 1}{known}."
            )
        name = classes[column] if classes else f"class {column}"
        return np.full((predictions.n_samples, 1), column), ("another", name)


@arguments()
@dataclass(frozen=True)
class TopK(_Event):
    """Look at the k most probable classes: is the label among them as often as predicted?

    Class 1 of the view is "among them".

    Of tied classes the first ones are taken.

    Parameters
    ----------
    k
        Size of the set, 1 to m − 1.

    Raises
    ------
    InputError
        If ``k`` is not a positive whole number.

    Examples
    --------
    >>> from caltest.data import sample
    >>> view = TopK(2).view(sample([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]], [2, 2]))
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.25, 0.75], [0.0, 1.0]], [0, 1])
    """

    k: int | str

    claim: ClassVar[str] = "the label is among the most probable classes as often as predicted"
    kind: ClassVar[str] = "top"

    def __post_init__(self) -> None:
        if not whole_number(self.k):
            raise InputError(f"the lens asks for the top {quoted(self.k)}; give a size, as in 'top:5'.")

    def _columns(self, predictions: Rows) -> tuple[Labels, tuple[str, str]]:
        size = int(self.k)
        if not 1 <= size < predictions.n_classes:
            raise InputError(
                f"the lens asks for the top {self.k} of {predictions.n_classes} classes; "
                f"give k from 1 to {predictions.n_classes - 1}."
            )
        members = np.argsort(-predictions.probs, axis=1, kind="stable")[:, :size]
        return members, ("outside", "inside")


@arguments()
@dataclass(frozen=True)
class ClassSets(Lens):
    """Merge classes into sets: is the label in each set as often as predicted?

    Parameters
    ----------
    sets
        Disjoint sets of columns; classes in none of them form a last set of their own.

    Examples
    --------
    >>> from caltest.data import sample
    >>> view = ClassSets([[0, 1], [2]]).view(sample([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]], [2, 1]))
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.75, 0.25], [0.5, 0.5]], [1, 0])
    """

    sets: Sequence[Sequence[int]]

    claim: ClassVar[str] = "every set of classes occurs as often as predicted"

    def __post_init__(self) -> None:
        try:
            sets = tuple(tuple(whole_number(k) for k in part) for part in self.sets)
        except Exception:  # what calls itself a list may raise anything
            sets = ((None,),)
        if any(column is None for part in sets for column in part):
            raise InputError(
                f"the sets are {quoted(self.sets)}; give lists of columns, as in [[0, 1], [2]]."
            )
        object.__setattr__(self, "sets", sets)

    @property
    def label(self) -> str:
        """Sets and their columns."""
        return "sets:" + "|".join("+".join(map(str, part)) for part in self.sets)

    def _membership(self, predictions: Rows) -> Labels:
        m = predictions.n_classes
        member = np.full(m, -1, dtype=np.intp)
        for number, part in enumerate(self.sets):
            for column in part:
                if not 0 <= column < m or member[column] >= 0:
                    raise InputError(
                        f"the lens puts class {quoted(column)} into set {number}, but it is taken or "
                        f"not among the {m} classes; give disjoint sets of columns 0 to {m - 1}."
                    )
                member[column] = number
        member[member < 0] = len(self.sets)
        if member.max() == 0:
            raise InputError(
                "the lens puts all classes into one set, which leaves nothing to test; "
                "give at least two sets, or leave some class out."
            )
        return member

    def show(self, predictions: Rows) -> Reduction:
        """Return the sums over every set, and of every label its set."""
        member = self._membership(predictions)
        indicator = np.eye(member.max() + 1)[member]
        sums = np.minimum(predictions.probs @ indicator, 1.0)
        see = partial(looked_up, member.astype(np.min_scalar_type(int(member.max()))))
        return Reduction(predictions.shown_as(sums), see, self.label)


@arguments()
@dataclass(frozen=True)
class Sorted(Lens):
    """Sort each row's probabilities: is the j-th most probable class right as often as predicted?

    Of tied classes the first comes first.

    Examples
    --------
    >>> from caltest.data import sample
    >>> view = Sorted().view(sample([[0.25, 0.5, 0.25], [0.0, 0.5, 0.5]], [2, 1]))
    >>> view.rows.probs.tolist(), view.labels.tolist()
    ([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]], [2, 0])
    """

    claim: ClassVar[str] = "the first, second, … choice occurs as often as predicted"
    kind: ClassVar[str] = "sorted"

    def show(self, predictions: Rows) -> Reduction:
        """Return the rows in decreasing order, and the rank of the observed class, from 0."""
        n, m = predictions.probs.shape
        order = np.argsort(-predictions.probs, axis=1, kind="stable")
        places = np.arange(m).astype(np.min_scalar_type(m))
        ranks = np.empty((n, m), dtype=places.dtype)
        np.put_along_axis(ranks, order, np.broadcast_to(places, (n, m)), axis=1)
        falling = -np.sort(-predictions.probs, axis=1)
        return Reduction(predictions.shown_as(falling), partial(_of_rows, ranks), self.label)
