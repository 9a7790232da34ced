"""The story of a result, decided once: verdict, main finding, other findings, and next steps.

The function that makes a result also makes its story. Text, reports and pictures choose words and marks
by its codes, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from caltest.exceptions import Premise

Verdict: TypeAlias = Literal["material", "likely", "undecided", "within", "found", "not found"]
#: Whether a reported error is too high or too low.
Direction: TypeAlias = Literal["over", "under"]


@dataclass(frozen=True)
class Finding:
    """An error in a story, or the little that is known about it.

    Attributes
    ----------
    kind
        What was found, by code: "mean" (of a view, with a proved direction), "part" (a tenth, fifth or
        half of one), "rest" (all other rows of a larger group), and others that a result names.
    of
        What it was found in, with its numbers: a view, a model, a quantity. None for all of the result.
    part
        The part of it that a finding of kind "part" is about.
    side
        "over" (predicted too high) or "under", where that is proved.
    place
        Where it stands against the limit, by code; "" without one.
    """

    kind: str
    of: Any = None
    part: Any = None
    side: Direction | None = None
    place: str = ""

    @property
    def far(self) -> bool:
        """Whether the error is proved or likely to be beyond the limit."""
        return self.place in ("beyond", "likely")

    @property
    def sized(self) -> Any:
        """The object that holds the numbers: the part if there is one, else the whole."""
        return self.of if self.part is None else self.part


@dataclass(frozen=True)
class Step:
    """A next step: a code with its own sentence, and the numbers in it."""

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Story:
    """The story of a result: everything that its texts are written from.

    Attributes
    ----------
    verdict
        The answer in a word.
    found
        Whether an error was found, whatever its size: a second fact beside the verdict.
    subject
        What the headline is about; None where nothing leads.
    whole
        The largest view with an error that holds the subject; None where none does.
    opposite
        An error of the other sign that the headline names beside the subject.
    others
        All other errors with a proved direction: beyond the limit first, then by their proved size.
    premises, dropped
        What the data put in doubt, and what was not examined.
    unsettled
        What is neither shown to be within the limit nor beyond it.
    steps
        What to do next, in order.
    explains
        Whether the subject's group explains the error: none was found in all other rows of larger ones.
    alone
        Whether nothing was found in any other group.
    striking
        The part of the subject that is proved to be much further off than its mean; else None.
    spared
        Whether what was found is on the side that does not matter: no mean is found on the other.
    halves
        The lower and the upper half of all rows, if they are proved wrong in opposite directions.
    marks
        Of every error with an interval, by its ``id``: its direction and its place against the limit.
    """

    verdict: Any  # a code; an audit's is a Verdict
    found: bool = False
    subject: Finding | None = None
    whole: Finding | None = None
    opposite: Finding | None = None
    others: tuple[Finding, ...] = ()
    premises: tuple[Premise, ...] = ()
    unsettled: tuple[Finding, ...] = ()
    dropped: tuple[Any, ...] = ()
    steps: tuple[Step, ...] = ()
    explains: bool = False
    alone: bool = False
    striking: Any = None
    spared: bool = False
    halves: tuple[Any, ...] = ()
    marks: Mapping[Any, Finding] = field(default_factory=dict, repr=False)

    @property
    def named(self) -> tuple[Finding, ...]:
        """All errors with a proved direction: subject, whole, opposite and others."""
        first = (self.subject, self.whole, self.opposite)
        return (*(each for each in first if each is not None and each.of is not None), *self.others)

    def mark(self, of: Any) -> Finding:
        """Return the finding for an error with an interval."""
        return self.marks.get(of.id, Finding("", of))

    def advised(self, steps: Iterable[Step]) -> Story:
        """Return a copy of the story with these next steps."""
        return replace(self, steps=tuple(steps))
