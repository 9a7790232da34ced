"""The error that a wrong input raises, a premise in doubt, a warning, and the parts of sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from caltest._visible import message


@dataclass(frozen=True)
class Row:
    """A row in a sentence, counted from 0: in all of a table, or in one of its files."""

    number: int
    of: str = ""  # the one of several files that it is counted in

    def __str__(self) -> str:
        return f"row {self.number} (counting from 0){self.of and f' of {self.of}'}"


class OfAll(str):
    """What a sentence says of all rows, left out where only some of them were read."""

    __slots__ = ()


#: Where a command runs: the options, and commands, by what these are called in Python.
IN_SHELL: ContextVar[Mapping[str, str]] = ContextVar("IN_SHELL")


@dataclass(frozen=True)
class Argument:
    """An argument in a sentence, with the value it is given, ``...`` if any; or an expression.

    It is written as in Python; where a command runs, as the option that it is there, or in the words
    ``shell``.
    """

    name: str
    value: object = None
    shell: str = ""

    def __str__(self) -> str:
        name = (IN_SHELL.get({}) and self.shell) or IN_SHELL.get({}).get(self.name, self.name)
        if self.value is None:
            return name
        if "--" in name:
            return name if self.value in (..., True) else f"{name} {self.value}"
        return f"{name}=" if self.value is ... else f"{name}={self.value!r}"


@dataclass(frozen=True)
class Phrase:
    """A sentence, or a part of one, with the facts in it by name: phrases themselves, or plain."""

    text: str
    facts: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text.format_map(self.facts)

    def fact(self, name: str) -> Any:
        """Return a fact by its name, that of a phrase in it too; None if there is none."""
        if name in self.facts:
            return self.facts[name]
        parts = (fact.fact(name) for fact in self.facts.values() if isinstance(fact, Phrase))
        return next((found for found in parts if found is not None), None)

    def changed(self, change: Callable[[object], object]) -> Phrase:
        """Return it with other facts, those of its phrases too."""
        facts = {
            name: fact.changed(change) if isinstance(fact, Phrase) else change(fact)
            for name, fact in self.facts.items()
        }
        return Phrase(self.text, facts)


@dataclass(frozen=True)
class Premise:
    """A premise of a result that its data contradict, or put in doubt.

    Attributes
    ----------
    name : str
        What is supposed: "independent rows", "unseen rows", "groups known before the outcome", ….
    seen : str
        What was seen, as a sentence without its full stop.
    do : str
        What to do, as a clause.
    withholds : bool
        Whether the verdict "within" is withheld because of it.

    Examples
    --------
    >>> print(Premise("unseen rows", "These rows were used to fit the model", "give new ones"))
    These rows were used to fit the model; give new ones.
    """

    name: str
    seen: str
    do: str
    withholds: bool = False

    def __str__(self) -> str:
        return f"{self.seen}; {self.do}."


class LongWorkWarning(UserWarning):
    """Warns that a call will take more than a minute: about how long, and what would be faster.

    Nothing is wrong with the call. The command line writes it on standard error.

    Examples
    --------
    To silence it:

    >>> import warnings, caltest
    >>> warnings.simplefilter("ignore", caltest.LongWorkWarning)
    """

    def __init__(self, phrase: Phrase) -> None:
        self.phrase = phrase
        super().__init__(message(str(phrase)))


class InputError(ValueError):
    """Raised when an input cannot be used: says what was found, where, and what to do.

    Its message says, in one sentence, what was found, where, and what to do. It is one line of visible
    characters, whatever the input holds, and of at most 500: a longer one loses its middle. The command
    line prints it and exits with status 2.

    Parameters
    ----------
    text : str, default ""
        The message. With facts, their names stand in it in braces; without a text it is "{argument} is
        {found}; {do}."
    argument : str, optional
        Name of the argument that is wrong.
    row : int, optional
        Where: the row, counted from 0.
    **more : any
        Other facts in the text: ``found``, what was found there, ``do``, what to do, and others.

    Examples
    --------
    >>> import caltest
    >>> try:
    ...     caltest.test([0.2, 1.4], [0, 1])
    ... except caltest.InputError as error:
    ...     print(error)
    probs looks like percentages: row 1 (counting from 0) is 1.4, outside [0, 1]; divide by 100.
    >>> print(InputError(argument="alpha", found=2, do="give a level between 0 and 1"))
    alpha is 2; give a level between 0 and 1.
    """

    def __init__(
        self, text: object = "", *, argument: str | None = None, row: int | None = None, **more: object
    ) -> None:
        told = {
            "argument": None if argument is None else Argument(argument),
            "row": None if row is None else Row(row),
        }
        facts = {name: fact for name, fact in told.items() if fact is not None} | more
        if isinstance(text, Phrase):
            self.phrase = text
        elif facts:
            self.phrase = Phrase(str(text) or "{argument} is {found}; {do}.", facts)
        else:  # braces in it are braces
            self.phrase = Phrase("{text}", {"text": str(text)})
        super().__init__(message(str(self.phrase)))

    def fact(self, name: str) -> Any:
        """Return a fact of the message by its name, wherever it stands in it; None if it has none."""
        return self.phrase.fact(name)

    def changed(self, change: Callable[[object], object]) -> InputError:
        """Return it with other facts."""
        return InputError(self.phrase.changed(change))

    def moved(self, rows: int) -> InputError:
        """Return it with rows that so many others stand before, and nothing that is said of all."""
        without = self.changed(lambda fact: "" if isinstance(fact, OfAll) else fact)
        return without.placed(lambda number: Row(number + rows))

    def placed(self, place: Callable[[int], object]) -> InputError:
        """Return it with other words for its rows, those whose file is not known yet."""
        return self.changed(
            lambda fact: place(fact.number) if isinstance(fact, Row) and not fact.of else fact
        )

    def within(self, name: str) -> InputError:
        """Return it as one of what is called so, a file for instance."""
        return InputError("{name}: {error}", name=name, error=self.phrase)

    def explained(self, why: str | Phrase) -> InputError:
        """Return it with a clause after what to do."""
        return InputError("{error}; {why}.", error=_without_stop(self.phrase), why=why)


def _without_stop(phrase: Phrase) -> Phrase:
    """Return a sentence without its full stop."""
    last = phrase.text.rpartition("{")[2].removesuffix("}")
    if not phrase.text.endswith("}"):
        return Phrase(phrase.text.removesuffix("."), phrase.facts)
    fact = phrase.facts[last]
    shorter = _without_stop(fact) if isinstance(fact, Phrase) else str(fact).removesuffix(".")
    return Phrase(phrase.text, {**phrase.facts, last: shorter})
