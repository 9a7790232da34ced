"""What a lens is, and what it shows: rows with classes, and what becomes of outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._visible import quoted
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.laws import Predictive

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.intp]
#: Takes labels (…, r) of whole numbers of any type, and which rows they are of; returns them in the
#: reduced classes, as small whole numbers: blocks of drawn labels are large.
Reducer: TypeAlias = Callable[..., NDArray[Any]]

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Reduction:
    """Rows as a lens shows them, all or some, and what it does to outcomes.

    Attributes
    ----------
    rows
        The predictions, as the lens shows them.
    see
        Takes outcomes (…, r) of the full predictions, and which rows they are of, to those that the
        lens shows; None where they stay as they are.
    label
        The name of the lens; None without one.
    places
        Which of the full rows these are; None for all.
    event
        The class that a class-wise lens looks at.
    see_open
        Of quantile forecasts, where an outcome may equal a quantile: as ``see``, and such outcomes
        count as outside of the event, where they count as inside. Default None: there are none.
    """

    rows: Rows
    see: Reducer | None = None
    label: str | None = None
    places: NDArray[np.intp] | None = None
    event: int | None = None
    see_open: Reducer | None = None

    @property
    def opened(self) -> Reduction:
        """The view in which outcomes that equal a quantile count as outside of the event."""
        return replace(self, see=self.see_open or self.see)

    @cached_property
    def share(self) -> float:
        """Share of its rows in which class 1 of two is expected."""
        return float(self.rows.probs[:, 1].mean())

    def seen(self, full: NDArray[Any], rows: slice = ALL) -> NDArray[Any]:
        """Return outcomes (…, r) of full rows, all or some that follow each other, as the lens does."""
        return full if self.see is None else self.see(full, rows)

    def outcomes(self, full: NDArray[Any]) -> NDArray[Any]:
        """Return the view's outcomes, (B, n of the view), from the full ones."""
        reduced = self.seen(full)
        return reduced if self.places is None else taken(reduced, self.places)

    def sample(self, outcomes: NDArray[Any]) -> Sample:
        """Return the view with the observed outcomes, (n,) full ones."""
        return Sample(self.rows, self.outcomes(outcomes[None])[0])


def looked_up(table: NDArray[Any], outcomes: NDArray[Any], rows: slice = ALL) -> NDArray[Any]:
    """Return what a table has for every outcome, a whole number."""
    return np.asarray(table[outcomes])


def taken(outcomes: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Return the outcomes (B, n) of some rows; of labels by a compiled loop."""
    if len(outcomes) == 1 or outcomes.ndim > 2:
        return outcomes.take(rows, axis=1)
    from caltest.loops import rows as _loops

    found = np.empty((len(outcomes), len(rows)), dtype=outcomes.dtype)
    _loops.take_rows(outcomes, rows, found)
    return found


class Lens(ABC):
    """Base class of lenses: a view of predictions and labels.

    Subclasses are frozen dataclasses of options.
    """

    #: What calibration means through this lens, as a sentence.
    claim: ClassVar[str]
    #: What its name begins with, before its options.
    kind: ClassVar[str]
    #: Whether it makes classes of predicted distributions of numbers; else it is for classes.
    of_numbers: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """The name by which the lens is asked for, options included."""
        options = ",".join(str(getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return f"{self.kind}:{options}" if options else self.kind

    @abstractmethod
    def show(self, predictions: Rows) -> Reduction:
        """Return the rows as the lens shows them.

        All work on the predictions is done here. What the view does to labels takes one label vector
        (r,) or a block of them (B, r), of whole numbers of any type, and which rows they are of.
        """

    def view(self, sample: Sample) -> Sample:
        """Return the sample as the lens shows it."""
        self.check(sample.rows)
        return self.show(sample.rows).sample(sample.labels)

    def check(self, predictions: Rows) -> None:
        """Raise unless it is a lens for what was predicted."""
        law = predictions.law
        if isinstance(law, Predictive) == self.of_numbers:
            return
        kind, of = "classes", "a lens of numbers such as 'quantile:0.5' or 'below:10'"
        if self.of_numbers:
            kind, of = "predicted distributions of numbers", "a lens of classes such as 'top_label'"
        raise InputError(
            f"the lens {quoted(self.label)} is for {kind}, and these are {law.about}; give {of}, or "
            "leave the lens out."
        )
