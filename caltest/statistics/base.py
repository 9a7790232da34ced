"""The statistic interface: a measure of miscalibration, before any p-value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, fields, is_dataclass
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, Self

from caltest._arguments import options, takes
from caltest._numbers import counted
from caltest._parallel import Workers
from caltest._sums import Array
from caltest._visible import quoted
from caltest.data import Rows
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import Form, LabelFunction
from caltest.laws import Classes, Law
from caltest.pvalues import Alternative
from caltest.statistics.table import TABLE


class AllRowsNeededError(InputError):
    """Raised when a statistic needs all rows at once, and cannot read a file block by block."""


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
    #: The quantity that it measures, as a noun phrase for reports.
    measures: ClassVar[str]
    #: The question that it answers; lists of statistics are grouped by question.
    question: ClassVar[str] = "Your own"
    #: Where it looks for errors, how a row is scored there, and how scores are combined into one
    #: number.
    where: ClassVar[str] = ""
    what: ClassVar[str] = ""
    how: ClassVar[str] = ""
    #: Who proposed it.
    source: ClassVar[str] = ""
    #: Alternatives that make sense; the first is the default.
    alternatives: ClassVar[tuple[Alternative, ...]] = ("greater",)
    #: Lens for more than two classes unless the user names one; None for all classes.
    default_lens: ClassVar[str | None] = None
    #: Names of the options that a result reports; a kernel or a binning comes with its own options.
    reported: ClassVar[tuple[str, ...]] = ()
    #: The laws that it applies to.
    laws: ClassVar[tuple[type[Law], ...]] = (Classes,)
    #: For numbers: whether quantiles at some levels are enough.
    of_quantiles: ClassVar[bool] = False
    #: Whether it uses censored outcomes as observed if the end of follow-up is unknown.
    of_seen: ClassVar[bool] = False
    #: Whether, once fitted, it can be evaluated on a part of the rows, in units of `Rows.whole`.
    of_parts: ClassVar[bool] = False
    #: Whether `given` uses `Rows.weights`; if not, rows with weights are refused. A class with its own
    #: `given` states it in its first line: ``class Mine(Statistic, takes_weights=True)``.
    takes_weights: ClassVar[bool] = False
    #: Default number of draws in a test.
    usual_resamples: ClassVar[int] = 999
    #: Name of the option that chooses one of two sides.
    sided: ClassVar[str | None] = None
    #: Whether, for two classes, it is monotone in every label, in the direction of its side or, without
    #: sides, increasing. Then it can test whether the model is wrong by more than a tolerance.
    monotone: ClassVar[bool] = False

    def __init_subclass__(cls, *, takes_weights: bool = False, **more: Any) -> None:
        """Make `given` refuse weights unless the class declares that it takes them."""
        super().__init_subclass__(**more)
        if "given" in vars(cls):  # a base class's use of weights does not carry over
            cls.takes_weights = takes_weights or bool(vars(cls).get("takes_weights"))
            if not cls.takes_weights:
                cls.given = _of_equal_weights(cls.given)  # type: ignore[method-assign]

    @abstractmethod
    def given(self, predictions: Rows) -> Form:
        """Precompute all that depends only on the predictions; the returned form maps labels to values.

        Parameters
        ----------
        predictions : Rows
            The probabilities ``probs``, (n, m), with the weights and clusters of the rows; no labels.
            Where they are a part of ``predictions.whole``, what is returned is in units of the whole.

        Returns
        -------
        Form
            Its ``of_labels`` takes (B, n) labels and returns (B,) values. Which nulls can be used
            depends on the class of the form; see :mod:`caltest.forms`.
        """

    def fitted(self, predictions: Rows) -> Self:
        """Replace options that are rules (a bandwidth heuristic) by their values for these predictions.

        If these are a sample of more rows, ``predictions.part_of``, everything that depends on rows is
        fixed: the statistic is then evaluated on one part of the rows after the other.
        """
        if predictions.part_of is not None and not self.of_parts:
            raise AllRowsNeededError(f"{self.name!r} needs all rows at once.")
        return self

    def shuffled(self, seed: int) -> Self:
        """Return the statistic with its own random choices made from the seed of a test."""
        return self

    def sides(self, law: Law) -> tuple[Alternative, ...]:
        """Return the alternatives that make sense for a law; one side's if its claim is one-sided.

        Raises
        ------
        InputError
            If it claims "at least", and the statistic does not fall with every outcome that is covered.
        """
        if len(law.sides) > 1:
            return self.alternatives
        if self.name != "citl" and getattr(self, "side", "") != "over":
            why = f"{self.name!r} looks for errors of both sides, and {law.about} claim 'at least'"
            raise InputError(f"{why}; use 'citl', or FeatureScan(side='over') with features.")
        return ("less",) if self.name == "citl" else ("greater",)

    @property
    def parameters(self) -> dict[str, Any]:
        """The options in force, flat and ready for JSON; those that are None are left out."""
        found: dict[str, Any] = {}
        for name in self.reported:
            value = getattr(self, name)
            own = getattr(value, "parameters", None)
            if own is None and is_dataclass(value):
                own = {each.name: getattr(value, each.name) for each in fields(value)}
            if own is not None:
                found |= {name: type(value).__name__, **own}
            elif value is not None:
                found[name] = value
        return found

    @property
    def faster(self) -> Phrase:
        """Advice for long computations, as a clause."""
        facts = {"draws": Argument("n_resamples"), "moments": Argument("null", "moments")}
        return Phrase("fewer draws ({draws}) take less, and {moments} needs none where it fits", facts)

    def by(self, workers: Workers, n_samples: int, null: str | None = None) -> Workers:
        """Return workers that report this computation and the advice if it takes long."""
        by = "" if null is None else f", by the null {null!r},"
        return workers.doing(f"{self.name!r} of {counted(n_samples, 'row')}{by}", self.faster)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the options for readers of the result, as sentences."""
        options = (getattr(self, name) for name in self.reported)
        return tuple(note for option in options for note in getattr(option, "notes", ()))


def _of_equal_weights(given: Any) -> Any:
    @wraps(given)
    def guarded(self: Any, predictions: Rows) -> Any:
        if predictions.whole.are_alike:
            return given(self, predictions)
        declared = f"{type(self).__name__}(Statistic, takes_weights=True)"
        do = f"leave them out, or let its given() use predictions.weights and declare {declared}"
        raise InputError(f"the statistic {self.name!r} takes no weights; {do}.")

    return guarded


def _takes_weights(function: Callable[..., Any]) -> bool:
    """Return whether a third argument takes weights: it is named so, or has no default."""
    with suppress(ValueError):  # it has no signature
        third = [*signature(function).parameters.values()][2:3]
        meant = all(each.name == "weights" or each.default is each.empty for each in third)
        return meant and takes("probs", "labels", "weights", of=function)
    return True


@options()
class Listed(Statistic):
    """Base class of the statistics of this package: their columns come from a row of the table."""

    _fit: Any = field(default=None, init=False, repr=False, compare=False)  # results of `fitted`

    #: The class for every row of the table.
    of_name: ClassVar[dict[str, type[Statistic]]] = {}

    def __init_subclass__(cls, *, row: str | None = None, **more: Any) -> None:
        """Copy the columns of a row of the table into class attributes."""
        if row is not None:
            Listed.of_name[row] = cls
            for column, value in TABLE[row].items():
                setattr(cls, column, value)
        super().__init_subclass__(**{"takes_weights": row is not None, **more})

    def check_default(self, law: Law) -> None:
        """Raise if options for classes were chosen but numbers are predicted."""
        if self != type(self)():
            raise InputError(
                f"the options of {self.name!r} are for probabilities of classes, and these are "
                f"{law.about}; leave them out, or give a lens such as 'quantile:0.5'."
            )

    def probability(self, predictions: Rows) -> Array:
        """Return the probabilities of class 1 of two classes.

        Raises
        ------
        InputError
            If there are more classes.
        """
        if (m := predictions.n_classes) != 2:
            found = f"{self.name!r} measures one probability, and there are {m} classes"
            raise InputError(f"{found}; give a lens such as 'top_label' or 'class:0'.")
        return predictions.probs[:, 1]


@options()
class FunctionStatistic(Statistic, takes_weights=True):
    """Your own function ``f(probs, labels) -> float`` as a statistic, large where calibration is bad.

    Attributes
    ----------
    function : callable
        Takes predictions (n, m) and labels (n,), returns a number. One with a third argument that is
        called "weights", or has no default, is given the weights of the rows there, (n,), 1 on average.
    """

    function: Callable[[Any, Any], float]

    def __post_init__(self) -> None:
        if not callable(self.function):
            do = "give a function f(probs, labels) -> float"
            raise InputError(f"function is {quoted(self.function)}; {do}.")
        if not takes("probs", "labels", "weights", of=self.function):
            takes("probs", "labels", of=self.function, called="statistic")

    measures = "the value of your function"
    alternatives = ("greater", "less", "two-sided")
    laws = (Law,)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The function's own name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def given(self, predictions: Rows) -> LabelFunction:
        """Return the form for these predictions, and the weights if there are any."""
        law = predictions.law
        predicted: Any = law.probs if isinstance(law, Classes) else law
        if predictions.are_alike and takes("probs", "labels", of=self.function):
            return LabelFunction(self.function, predicted)
        if not _takes_weights(self.function):
            do = "write it as def f(probs, labels, weights), or leave the weights out"
            text = f"{{argument}} takes two arguments and no weights; {do}."
            raise InputError(text, argument="function")
        return LabelFunction(self.function, predicted, predictions.weights)
