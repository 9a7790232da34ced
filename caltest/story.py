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
        Code of the finding: "mean" (of a view, with a proved direction), "part" (a tenth, fifth or half
        of one), "rest" (all other rows of a larger group), and others used by particular results.
    of
        The object with the error and its numbers: a view, a model, a quantity. None for the whole
        result.
    part
        The part of it, for findings of kind "part".
    side
        "over" (predicted too high) or "under", if proved.
    place
        Code of its place against the limit; "" without one.
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
        The verdict as a code.
    found
        Whether an error was found, whatever its size: a second fact beside the verdict.
    subject
        The subject of the headline; None if there is no main finding.
    whole
        The largest view with an error that contains the subject; None if there is none.
    opposite
        An error in the opposite direction that the headline names beside the subject.
    others
        All other errors with a proved direction: beyond the limit first, then by their proved size.
    premises, dropped
        Premises in doubt, and views that were not examined.
    unsettled
        Errors proved neither within the limit nor beyond it.
    steps
        Next steps, in order.
    explains
        Whether the subject's group explains the error: the other rows of larger groups show none.
    alone
        Whether no error was found in any other group.
    striking
        The part of the subject that is proved much further off than its mean; else None.
    spared
        Whether the error found is only on the side that does not matter.
    halves
        The lower and the upper half of all rows, if proved wrong in opposite directions.
    marks
        For every error with an interval, by ``id``: its direction and its place against the limit.
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
