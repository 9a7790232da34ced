"""The plan of an audit: which lenses, on which rows, by which statistics; nothing here sees a label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest import lenses as registered
from caltest._arguments import choose
from caltest._visible import quoted, shown_group
from caltest.auditing.groups import Grouping, Places, large_enough
from caltest.auditing.result import Group, Skipped
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.forms.pairs import sums_of_others
from caltest.lenses import ClassWise, Lens, Reducer, find_lens
from caltest.named import StatisticLike, find_statistic
from caltest.nulls import MonteCarlo
from caltest.statistics import ECD, Statistic, UnbiasedSKCE
from caltest.tolerance import check_possible, event

# ------------------------------------------------------------------ looks


CANONICAL = "canonical"
CLASSWISE = "classwise"


@dataclass(frozen=True, eq=False)
class Scope:
    """A lens, with what it makes of the predictions of all rows.

    Attributes
    ----------
    asked
        Under which name it was asked for: "canonical", "classwise", or the lens's label.
    label
        The lens's label; "canonical" for the full probability vector.
    lens
        None for the full probability vector.
    column
        The class it looks at, of a class-wise lens.
    """

    asked: str
    label: str
    lens: Lens | None
    column: int | None = None


@dataclass(frozen=True, eq=False)
class Look:
    """A lens on all rows, or on a group.

    Attributes
    ----------
    scope
        The lens.
    group, rows
        The group and its rows; None for all.
    n_rows
        How many there are.
    expected
        Mean number of events and of rows without; the smaller. Infinite without an event.
    event
        What the one probability is of, as a clause; None where there is more than one.
    """

    scope: Scope
    group: Group | None
    rows: Places | None
    n_rows: int
    expected: float
    event: str | None

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all other looks of an audit."""
        return (
            self.scope.label,
            self.group.column if self.group else "",
            self.group.value if self.group else "",
        )


@dataclass(frozen=True, eq=False)
class Source:
    """All predictions, seen through any lens on any rows. Nothing here depends on labels.

    Attributes
    ----------
    predictions
        The full ones.
    """

    predictions: Rows

    @cached_property
    def _others(self) -> NDArray[np.float64]:
        """Return what every row says of all classes but one, (n, m), without a subtraction."""
        return np.minimum(sums_of_others(self.predictions.probs), 1.0)

    @cached_property
    def _reduced(self) -> dict[str, Rows]:
        return {}

    def seen(self, scope: Scope) -> Rows:
        """Return the predictions of all rows through a lens."""
        if scope.lens is None:
            return self.predictions
        if scope.column is not None:
            return self._one_class(scope.column)
        if scope.label not in self._reduced:
            self._reduced[scope.label] = scope.lens.reduce(self.predictions)
        return self._reduced[scope.label]

    def _one_class(self, column: int, rows: Places | slice = slice(None)) -> Rows:
        """Return (P(another), P(this class)), as :class:`caltest.lenses.ClassWise` does."""
        whole = self.predictions
        name = whole.classes[column] if whole.classes else f"class {column}"
        pair = np.column_stack([self._others[rows, column], whole.probs[rows, column]])
        return whole.shown_as(pair, ("another", name), rows)

    def at(self, look: Look) -> Rows:
        """Return the predictions of a look."""
        if look.rows is None:
            return self.seen(look.scope)
        if look.scope.column is not None:
            return self._one_class(look.scope.column, look.rows)
        whole = self.seen(look.scope)
        return whole.take(look.rows)

    def reducer(self, scope: Scope) -> Reducer | None:
        """Return what takes full labels to those of the lens; None where they stay."""
        if scope.lens is None or scope.label in self._reducers:
            return self._reducers.get(scope.label)
        return self._reducers.setdefault(scope.label, scope.lens.reducer(self.predictions))

    @cached_property
    def _reducers(self) -> dict[str, Reducer]:
        return {}

    def sample(self, look: Look, labels: NDArray[Any]) -> Sample:
        """Return predictions and observed labels of a look."""
        reducer = self.reducer(look.scope)
        reduced = reducer(labels) if reducer else labels
        return Sample(self.at(look), reduced if look.rows is None else reduced[look.rows])

    def look(self, scope: Scope, group: Group | None = None, rows: Places | None = None) -> Look:
        """Return a lens on all rows, or on a group."""
        whole = self.seen(scope) if scope.column is None else None
        n = self.predictions.n_samples if rows is None else len(rows)
        probs = self.predictions.probs[:, scope.column] if whole is None else whole.probs[:, 1]
        if whole is not None and whole.n_classes > 2:
            return Look(scope, group, rows, n, float("inf"), None)
        p = probs if rows is None else probs[rows]
        expected = float(min(p.sum(), n - p.sum()))
        about = event(None if scope.lens is None else scope.label, self._about(scope, whole))
        return Look(scope, group, rows, n, expected, about)

    def _about(self, scope: Scope, whole: Rows | None) -> Rows:
        return self._one_class(int(scope.column or 0), slice(0, 1)) if whole is None else whole


def class_scope(predictions: Rows, column: int) -> Scope:
    """Return the class-wise lens of a column: by its name, if it has one, which no other has."""
    lens = ClassWise(predictions.classes[column] if predictions.classes else column)
    return Scope(CLASSWISE, lens.label, lens, column)


# ------------------------------------------------------------------ wanted


Lenses: TypeAlias = "str | Lens | Sequence[str | Lens]"
Statistics: TypeAlias = (
    "StatisticLike | Sequence[StatisticLike] | Mapping[str, StatisticLike | Sequence[StatisticLike]]"
)

_TOP_LABEL = "top_label"
LENSES = (CANONICAL, _TOP_LABEL, CLASSWISE)
#: Of the full probability vector by default: with a kernel of low rank where rows are many.
OF_VECTOR = UnbiasedSKCE(approximation="auto")
_ECD = "ecd"
_OF_VECTORS: tuple[StatisticLike, ...] = (OF_VECTOR, _ECD)
_OF_ONE: tuple[StatisticLike, ...] = ("ks", _ECD)
_NAMED: dict[str, object] = {CANONICAL: None, CLASSWISE: None}
_WITH_TOLERANCE: tuple[StatisticLike, ...] = ("scan",)


@dataclass(frozen=True)
class Wanted:
    """What was asked for, checked as far as it can be without data.

    Attributes
    ----------
    lenses
        By the name under which they were asked for.
    statistics
        By lens; None under a lens means the default.
    with_tolerance
        Whether only one probability at a time can be looked at.
    """

    lenses: dict[str, Lens | None]
    statistics: dict[str, tuple[Statistic, ...] | None]
    with_tolerance: bool

    @classmethod
    def of(cls, lenses: Lenses, statistics: Statistics | None, with_tolerance: bool) -> Wanted:
        """Look names up.

        Raises
        ------
        InputError
            If there is no such lens or statistic.
        """
        each = [lenses] if isinstance(lenses, str | Lens | type) else _several(lenses)
        found: dict[str, Lens | None] = {}
        for one in each:
            if isinstance(one, str) and ":" not in one:
                choose("lens", one, _NAMED | registered.LENSES)
            if isinstance(one, str) and one in _NAMED:
                found[one] = None
            else:
                lens = find_lens(one)
                if lens is None:
                    raise InputError("lenses holds None; the full probability vector is 'canonical'.")
                found[lens.label] = lens
        if not found:
            raise InputError("lenses is empty; give one at least, such as 'top_label'.")
        if isinstance(statistics, Mapping):
            for name in statistics:
                choose("lens among those asked for", name, found)
            by_lens = {name: _statistics(statistics.get(name)) for name in found}
        else:
            by_lens = dict.fromkeys(found, _statistics(statistics))
        if with_tolerance:
            for each_statistic in [one for those in by_lens.values() for one in those or ()]:
                check_possible(each_statistic, MonteCarlo(), None)
        return cls(found, by_lens, with_tolerance)

    @property
    def has_default_lenses(self) -> bool:
        """Return whether the lenses are the default ones."""
        return tuple(self.lenses) == LENSES

    def is_default(self, scope: Scope) -> bool:
        """Return whether nobody asked for the statistics of a lens."""
        return self.statistics[scope.asked] is None

    @property
    def _vector_has_ecd(self) -> bool:
        """Return whether the full probability vector is looked at by the ECD."""
        if CANONICAL not in self.lenses:
            return False
        asked = self.statistics[CANONICAL]
        return asked is None or ECD() in asked

    def of_scope(self, scope: Scope, n_classes: int, of_classes: int) -> tuple[Statistic, ...]:
        """Return the statistics that fit a lens that leaves so many classes of so many.

        Of two classes the top label has the ECD of the probabilities themselves, number for number: by
        default it is looked at once.
        """
        asked = self.statistics[scope.asked]
        if asked is not None:
            return tuple(each for each in asked if n_classes == 2 or each.default_lens is None)
        if self.with_tolerance:
            names = _WITH_TOLERANCE
        else:
            vectors = n_classes > 2 or scope.label == CANONICAL
            names = (*(_OF_VECTORS if vectors else ()), *(_OF_ONE if n_classes == 2 else ()))
            if scope.label == _TOP_LABEL and of_classes == 2 and self._vector_has_ecd:
                names = tuple(name for name in names if name != _ECD)
        return tuple(find_statistic(name) for name in dict.fromkeys(names))


def _several(lenses: Any) -> list[Any]:
    if lenses is None or not np.iterable(lenses):
        names = ", ".join(map(repr, LENSES))
        raise InputError(f"lenses is {quoted(lenses)}; give names such as {names}, or leave it out.")
    return list(lenses)


def _statistics(given: Any) -> tuple[Statistic, ...] | None:
    if given is None:
        return None
    single = isinstance(given, str | Statistic | type) or callable(given) or not np.iterable(given)
    found = tuple(find_statistic(each) for each in ([given] if single else given))
    if not found:
        raise InputError("statistics is empty; give one at least, or leave it out.")
    return found


# ------------------------------------------------------------------ plan


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

    def form(self, predictions: Rows) -> Form:
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
) -> tuple[list[tuple[Group, Places]], list[Skipped]]:
    kept: list[tuple[Group, Places]] = []
    skipped: list[Skipped] = []
    for grouping in groupings:
        large, small = large_enough(grouping, min_rows)
        kept += [(Group(grouping.column, value), rows) for value, rows in large]
        skipped += small
    return kept, skipped


def _scopes(predictions: Rows, wanted: Wanted) -> tuple[list[Scope], list[Scope], list[Skipped]]:
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
