"""A statistic: what is measured, before any p-value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, check_takes, takes
from caltest._visible import quoted
from caltest.data import Extent, Rows
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import Additive, Combined, Form, LabelFunction, Side
from caltest.predictive import Predictive
from caltest.pvalues import Alternative

#: Alternatives of a statistic with a sign: both sides count unless one is asked for.
SIGNED: tuple[Alternative, ...] = ("two-sided", "greater", "less")


class AllRowsNeededError(InputError):
    """Raised when a statistic needs all rows at once, and cannot read a file block by block."""


@dataclass(frozen=True)
class Partwise:
    """A statistic computed over a file a block at a time: its sums over blocks add up.

    Attributes
    ----------
    statistic
        What it is, its options fitted.
    given
        Takes the predictions of some rows, returns the form of these rows, in units of all.
    """

    statistic: Statistic
    given: Callable[[Rows], Additive | Combined]


class Statistic(ABC):
    """Base class of the measures of miscalibration; a null turns a value into a p-value.

    Subclasses are frozen dataclasses whose fields are the options.

    Examples
    --------
    >>> import caltest
    >>> statistic = caltest.statistics.ECE(distance="l2")
    >>> statistic.name, statistic.measures
    ('ece', 'expected calibration error')
    >>> round(caltest.estimate([0.9, 0.9], [1, 0], statistic), 4)
    0.5657
    """

    #: Registered name.
    name: ClassVar[str]
    #: What it measures, as a noun phrase for reports.
    measures: ClassVar[str]
    #: Alternatives that make sense; the first is the default.
    alternatives: ClassVar[tuple[Alternative, ...]] = ("greater",)
    #: Lens that is used with more than two classes unless the user names one; None: all classes.
    default_lens: ClassVar[str | None] = None
    #: It grows as this power of the number of rows where the error stays the same; 0: not at all;
    #: None: by no fixed power.
    growth: ClassVar[float | None] = 0.0
    #: Whether a different order of the rows is a different statistic.
    depends_on_row_order: ClassVar[bool] = False
    #: Whether, of two classes, it moves one way in every label (on one side, if it has sides; as the
    #: labels do, if not). Then it can test whether the model is wrong by more than a tolerance.
    monotone: ClassVar[bool] = False

    @abstractmethod
    def given(self, predictions: Rows) -> Form:
        """Do once what depends on the predictions only, and return a form: the value by labels.

        Parameters
        ----------
        predictions
            The probabilities ``probs``, (n, m), with the weights and clusters of the rows; no labels.

        Returns
        -------
        Form
            Its ``of_labels`` takes (B, n) labels and returns (B,) values. Which nulls can be used
            depends on the class of the form; see :mod:`caltest.forms`.
        """

    def in_parts(self, whole: Extent, subsample: Callable[[], Rows]) -> Partwise:
        """Do what :meth:`given` does where the rows are too many for memory, one block after another.

        Parameters
        ----------
        whole
            Number of all rows, and their weights in sum.
        subsample
            Returns a sample of the rows, from which options such as a bandwidth are chosen.

        Raises
        ------
        AllRowsNeededError
            If the statistic needs all rows at once.
        """
        raise AllRowsNeededError(f"{self.name!r} needs all rows at once.")

    def given_densities(self, predictive: Predictive) -> Form:
        """Do the same for predicted distributions of numbers, where the statistic is about these.

        Raises
        ------
        InputError
            If it is not.
        """
        raise InputError(
            f"{self.name!r} is for probabilities of classes, and the predictions are distributions "
            "of numbers; use 'ecd', 'nees' (Gaussian ones), or a function of your own."
        )

    def given_shifted(self, predictions: Rows, shifted: Rows) -> Form:
        """Do what :meth:`given` does for predictions that are shifted by a tolerance.

        Bins and other choices are made from ``predictions``, so that they stay the same; the labels are
        compared with ``shifted``. By default all is done with ``shifted``.
        """
        return self.given(shifted)

    def one_sided(self, side: Side) -> tuple[Statistic, Alternative]:
        """Return the monotone statistic that sees one side, and which of its values count.

        Here it is the statistic itself, which grows with the labels: the smaller it is, the more the
        model is too high.
        """
        return self, "less" if side == "over" else "greater"

    def fitted(self, predictions: Rows) -> Self:
        """Replace options that are rules (a bandwidth heuristic) by what they give here."""
        return self

    def shuffled(self, seed: int) -> Statistic:
        """Return the statistic with what it leaves to chance drawn from the seed of a test."""
        return self

    def at(self, places: NDArray[np.intp]) -> Statistic:
        """Return the statistic of some of the rows, where an option has an entry for each."""
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The options in force, flat and ready for JSON."""
        return {}

    @property
    def faster(self) -> Phrase:
        """What to do where it takes long, as a clause."""
        facts = {"draws": Argument("n_resamples"), "moments": Argument("null", "moments")}
        return Phrase("fewer draws ({draws}) take less, and {moments} needs none where it fits", facts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result should know of the options, in sentences."""
        return ()


class RowSum(Statistic):
    """A statistic that is a sum over rows, with nothing to fit: any part of the rows has its own."""

    @abstractmethod
    def of_rows(self, rows: Rows, whole: float) -> Additive:
        """Return the form of some rows of ``whole`` in all, or of that weight, in units of all."""

    def given(self, predictions: Rows) -> Additive:
        """Fix the predictions."""
        return self.of_rows(predictions, predictions.total)

    def in_parts(self, whole: Extent, subsample: Callable[[], Rows]) -> Partwise:
        """There is nothing to fit."""
        return Partwise(self, partial(self.of_rows, whole=whole.total))


@dataclass(frozen=True, eq=False)
class _Counting:
    """A function that gets the weights of all rows, a copy, each time."""

    function: Callable[..., float]
    weights: NDArray[np.float64]

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, probs: Any, labels: Any) -> float:
        return self.function(probs, labels, self.weights.copy())


@arguments()
@dataclass(frozen=True)
class FunctionStatistic(Statistic):
    """Your own function ``f(probs, labels) -> float`` as a statistic, large where calibration is bad.

    Attributes
    ----------
    function
        Takes predictions (n, m) and labels (n,), returns a number. One with a third argument is given
        the weights of the rows there, (n,), 1 on average.
    """

    function: Callable[[Any, Any], float]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                f"function is {quoted(self.function)}; give a function f(probs, labels) -> float."
            )
        if not takes("probs", "labels", "weights", of=self.function):
            check_takes("function", self.function, "probs", "labels")

    measures: ClassVar[str] = "the value of your function"
    alternatives: ClassVar[tuple[Alternative, ...]] = ("greater", "less", "two-sided")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The function's own name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def given(self, predictions: Rows) -> LabelFunction:
        """Fix the predictions, and the weights where there are any."""
        if predictions.weights is None and takes("probs", "labels", of=self.function):
            return LabelFunction(self.function, predictions.probs)
        if not takes("probs", "labels", "weights", of=self.function):
            raise InputError(
                "{argument} takes {found} and no weights; write it as def f(probs, labels, weights), "
                "or leave the weights out.",
                argument="function",
                found="two arguments",
            )
        weights = predictions.weights
        if weights is None:
            weights = np.ones(predictions.n_samples)
        return LabelFunction(_Counting(self.function, weights), predictions.probs)

    def given_densities(self, predictive: Predictive) -> LabelFunction:
        """Fix the predicted distributions: the function is called with them and the outcomes."""
        return LabelFunction(self.function, predictive)
