"""What an audit looks at: decided by predictions and group columns alone, before any label is seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from caltest._visible import shown_group
from caltest.auditing.groups import Grouping, Rows, large_enough
from caltest.auditing.looks import CANONICAL, CLASSWISE, Look, Scope, Source, class_scope
from caltest.auditing.result import Group, Skipped
from caltest.auditing.wanted import OF_VECTOR, Wanted
from caltest.data import Predictions
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.statistics import Statistic

_Statistics: TypeAlias = tuple[Statistic, ...]

#: Events, and rows without, that a class-wise look must expect: with fewer, nothing could be found.
FEWEST_EVENTS = 5.0
MOST_HYPOTHESES = 2000
#: Rows of a look up to which a kernel statistic is a default: its features take 200 MB there.
MOST_FOR_KERNEL = 100_000

#: Rows times hypotheses times draws up to which pairs of a class and a group are a default: of "ks" and
#: "ecd", 1 to 4 ns each for classes that seldom come true, 7 to 13 ns for others: minutes on one core.
MOST_WORK = 3e10

_LONG = (
    "with so many rows they would take long; ask for lenses='classwise' by itself, or for fewer draws "
    "or groups, to have them"
)
_SMALL_CLASS = f"fewer than {FEWEST_EVENTS:.0f} events, or rows without, are expected"


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """That a look is calibrated, by one statistic.

    Attributes
    ----------
    look
        What is looked at.
    statistic
        The statistic.
    """

    look: Look
    statistic: Statistic

    def form(self, predictions: Predictions) -> Form:
        """Fit the statistic's rules to the look's predictions; return it as a function of its labels.

        Raises
        ------
        InputError
            If the statistic does not fit these predictions; the message says where.
        """
        try:
            return self.statistic.fitted(predictions).given(predictions)
        except InputError as error:
            where = f"through the lens {self.look.scope.label!r}"
            group = self.look.group
            where += f" in {shown_group(group.column, group.value)}" if group else ""
            raise InputError(f"{where}, {str(error)[:1].lower()}{str(error)[1:]}") from error


@dataclass(frozen=True, eq=False)
class Plan:
    """The hypotheses, in the order of the views: all rows first, then groups.

    Attributes
    ----------
    looks, hypotheses
        What is looked at, and by which statistics.
    skipped
        What is not.
    lenses, columns
        Labels of the lenses asked for, and names of the group columns.
    """

    looks: tuple[Look, ...]
    hypotheses: tuple[Hypothesis, ...]
    skipped: tuple[Skipped, ...]
    lenses: tuple[str, ...]
    columns: tuple[str, ...]


def make_plan(
    source: Source,
    groupings: Sequence[Grouping],
    wanted: Wanted,
    min_rows: int,
    n_resamples: int = 0,
) -> Plan:
    """Decide what is looked at. Time is limited for so many label draws; by default it is not.

    Raises
    ------
    InputError
        If nothing is left, or a statistic does not fit the predictions.
    """
    kept, skipped = _groups(groupings, min_rows)
    general, classes, no_lens = _scopes(source.predictions, wanted)
    skipped += no_lens
    overall = [source.look(scope) for scope in general]
    by_class, few = _eventful([source.look(scope) for scope in classes], "classes by themselves")
    skipped += few
    by_group = [source.look(scope, *group) for group in kept for scope in general]
    cells = [source.look(look.scope, *group) for group in kept for look in by_class]
    cells, few = _eventful(cells, "pairs of a class and a group")
    skipped += few
    builder = _Builder(source, wanted, skipped)
    builder.add(overall, MOST_HYPOTHESES, None)
    builder.add(by_class, MOST_HYPOTHESES // 2, "classes by themselves, those with the fewest events")
    builder.add(by_group, MOST_HYPOTHESES, "looks at groups, those with the fewest rows")
    work = MOST_WORK / (1 + n_resamples) if n_resamples and wanted.has_default_lenses else None
    builder.add(
        cells, MOST_HYPOTHESES, "pairs of a class and a group, those with the fewest events", work
    )
    if not builder.found:
        raise InputError(
            "there is nothing to test: "
            + "; ".join(f"{each.what}: {each.reason}" for each in skipped[:3])
            + "."
        )
    order = {look.key: place for place, look in enumerate(overall + by_class)}
    place = {group: number for number, (group, _) in enumerate(kept)}
    looks = sorted(
        builder.found,
        key=lambda look: (
            place[look.group] if look.group else -1,
            order[(look.scope.label, "", "")],
        ),
    )
    return Plan(
        looks=tuple(looks),
        hypotheses=tuple(
            Hypothesis(look, statistic) for look in looks for statistic in builder.found[look]
        ),
        skipped=tuple(skipped),
        lenses=tuple(wanted.lenses),
        columns=tuple(grouping.column for grouping in groupings),
    )


def _groups(
    groupings: Sequence[Grouping], min_rows: int
) -> tuple[list[tuple[Group, Rows]], list[Skipped]]:
    kept: list[tuple[Group, Rows]] = []
    skipped: list[Skipped] = []
    for grouping in groupings:
        large, small = large_enough(grouping, min_rows)
        kept += [(Group(grouping.column, value), rows) for value, rows in large]
        skipped += small
    return kept, skipped


def _scopes(predictions: Predictions, wanted: Wanted) -> tuple[list[Scope], list[Scope], list[Skipped]]:
    """Return the lenses but the class-wise ones, those, and what was asked for in vain."""
    m = predictions.n_classes
    skipped: list[Skipped] = []
    general: list[Scope] = []
    classes: list[Scope] = []
    for name, lens in wanted.lenses.items():
        if name == CLASSWISE and m > 2:
            classes = [class_scope(predictions, column) for column in range(m)]
        elif name == CLASSWISE and CANONICAL in wanted.lenses:
            reason = "of two classes one probability says all, and the canonical lens looks at it"
            skipped.append(Skipped("each class by itself", None, reason))
        elif name == CLASSWISE:
            classes = [class_scope(predictions, 1)]
        else:
            general.append(Scope(name, name, lens))
    return general, classes, skipped


def _eventful(looks: list[Look], what: str) -> tuple[list[Look], list[Skipped]]:
    """Split looks into those to look at and those with too few events, counted."""
    kept = [look for look in looks if look.expected >= FEWEST_EVENTS]
    few = len(looks) - len(kept)
    if not few:
        return kept, []
    return kept, [Skipped(f"{few:,} of {len(looks):,} {what}", None, _SMALL_CLASS)]


class _Builder:
    """Collects looks with their statistics, and says what is left out.

    Attributes
    ----------
    found
        The statistics of every look.
    """

    def __init__(self, source: Source, wanted: Wanted, skipped: list[Skipped]) -> None:
        self.found: dict[Look, tuple[Statistic, ...]] = {}
        self._source, self._wanted, self._skipped = source, wanted, skipped
        self._count = self._rows = 0

    def add(
        self, looks: Iterable[Look], most: int, what: str | None, work: float | None = None
    ) -> None:
        """Add looks, those with the most events or rows first.

        Parameters
        ----------
        looks, what
            What they are called if some are left out.
        most
            Hypotheses, in all.
        work
            Rows times hypotheses a draw, in all; None: no matter.
        """
        ordered = sorted(looks, key=lambda look: (-min(look.expected, look.n_rows), look.key))
        many = long = 0
        for look in ordered:
            statistics = self._fitting(look)
            rows = look.n_rows * len(statistics)
            if what is not None and self._count + len(statistics) > most:
                many += 1
            elif work is not None and self._rows + rows > work:
                long += 1
            elif statistics:
                self.found[look] = statistics
                self._count += len(statistics)
                self._rows += rows
        if many:
            reason = f"an audit has at most {MOST_HYPOTHESES:,} hypotheses"
            self._skipped.append(Skipped(f"{many:,} {what}", None, reason))
        if long:
            self._skipped.append(Skipped(f"{long:,} {what}", None, _LONG))

    def _n_classes(self, look: Look) -> int:
        return 2 if look.event else self._source.seen(look.scope).n_classes

    def _fitting(self, look: Look) -> tuple[Statistic, ...]:
        """Return the statistics of a look, and say which do not fit."""
        scope, n_classes = look.scope, self._n_classes(look)
        if self._wanted.with_tolerance and n_classes > 2:
            self._say_once(f"the lens {scope.label!r}", "a tolerance is about one probability")
            return ()
        statistics = self._wanted.of_scope(scope, n_classes, self._source.predictions.n_classes)
        if look.n_rows > MOST_FOR_KERNEL and self._wanted.is_default(scope) and OF_VECTOR in statistics:
            statistics = tuple(each for each in statistics if each != OF_VECTOR)
            reason = "its time and memory grow with the rows; name it among the statistics to have it"
            self._say_once(f"{OF_VECTOR.name!r} where rows are more than {MOST_FOR_KERNEL:,}", reason)
        if not statistics:
            reason = "none of the statistics looks at more than one probability"
            self._say_once(f"the lens {scope.label!r}", reason)
        return statistics

    def _say_once(self, what: str, reason: str) -> None:
        entry = Skipped(what, None, reason)
        if entry not in self._skipped:
            self._skipped.append(entry)
