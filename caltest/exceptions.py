"""Errors and warnings about inputs, premises in doubt, and the sentences they are built from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from caltest._visible import message


@dataclass(frozen=True)
class Row:
    """A row in a message, counted from 0 in the whole table or in one of its files."""

    number: int
    of: str = ""  # the file in which it is counted, if there are several

    def __str__(self) -> str:
        return f"row {self.number} (counting from 0){self.of and f' of {self.of}'}"


class OfAll(str):
    """A remark about all rows, left out if only some of them were read."""

    __slots__ = ()


#: In a command: names of options and commands, by their names in Python.
IN_SHELL: ContextVar[Mapping[str, str]] = ContextVar("IN_SHELL")


@dataclass(frozen=True)
class Argument:
    """An argument in a message, with its value if any (``...``: any value); or an expression.

    It is written as in Python; in a command, as the option of that name there, or as ``shell``.
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
    """A sentence or part of one, with its facts by name: nested phrases or plain values."""

    text: str
    facts: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text.format_map(self.facts)

    def fact(self, name: str) -> Any:
        """Return a fact by name, searching nested phrases too; None if there is none."""
        if name in self.facts:
            return self.facts[name]
        parts = (fact.fact(name) for fact in self.facts.values() if isinstance(fact, Phrase))
        return next((found for found in parts if found is not None), None)

    def changed(self, change: Callable[[object], object]) -> Phrase:
        """Return a copy with ``change`` applied to every fact, nested ones too."""
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
    """Warns that a call will take more than a minute, about how long, and how to make it faster.

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
    """Raised when an input cannot be used; says what was found, where, and what to do.

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
        else:  # no facts: braces in the text are literal
            self.phrase = Phrase("{text}", {"text": str(text)})
        super().__init__(message(str(self.phrase)))

    def fact(self, name: str) -> Any:
        """Return a fact of the message by name, nested ones too; None if there is none."""
        return self.phrase.fact(name)

    def changed(self, change: Callable[[object], object]) -> InputError:
        """Return a copy with ``change`` applied to every fact."""
        return InputError(self.phrase.changed(change))

    def moved(self, rows: int) -> InputError:
        """Return a copy with row numbers moved up by ``rows``, without remarks about all rows."""
        without = self.changed(lambda fact: "" if isinstance(fact, OfAll) else fact)
        return without.placed(lambda number: Row(number + rows))

    def placed(self, place: Callable[[int], object]) -> InputError:
        """Return a copy with other words for rows whose file is not known yet."""
        return self.changed(
            lambda fact: place(fact.number) if isinstance(fact, Row) and not fact.of else fact
        )

    def within(self, name: str) -> InputError:
        """Return a copy that names its source, such as a file."""
        return InputError("{name}: {error}", name=name, error=self.phrase)

    def explained(self, why: str | Phrase) -> InputError:
        """Return a copy with a clause after the advice."""
        return InputError("{error}; {why}.", error=_without_stop(self.phrase), why=why)


def _without_stop(phrase: Phrase) -> Phrase:
    """Return a sentence without its final full stop."""
    last = phrase.text.rpartition("{")[2].removesuffix("}")
    if not phrase.text.endswith("}"):
        return Phrase(phrase.text.removesuffix("."), phrase.facts)
    fact = phrase.facts[last]
    shorter = _without_stop(fact) if isinstance(fact, Phrase) else str(fact).removesuffix(".")
    return Phrase(phrase.text, {**phrase.facts, last: shorter})
