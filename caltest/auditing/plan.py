"""The plan of an audit: which lenses, on which rows, by which statistics; nothing here sees a label."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from caltest import lenses as registered
from caltest._arguments import MOST_RESAMPLES, choose, has
from caltest._visible import quoted, shown_group
from caltest.auditing.groups import Grouping, Places, crossed, large_enough
from caltest.auditing.views import Group, Skipped
from caltest.bounds.lower import draws_needed
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.forms.pair_mean import sums_of_others
from caltest.laws import Classes
from caltest.lenses import ClassWise, Lens, Reducer, View, event, find_lens
from caltest.nulls import MonteCarlo
from caltest.pvalues import Alternative, adjusted
from caltest.statistics import (
    ECD,
    CalibrationInTheLarge,
    KolmogorovSmirnov,
    Scan,
    Statistic,
    StatisticLike,
    UnbiasedSKCE,
    find_statistic,
)
from caltest.text.numbers import counted
from caltest.tolerance import check_possible

# ------------------------------------------------------------------ looks


CANONICAL = "canonical"
CLASSWISE = "classwise"
TOP_LABEL = "top_label"


@dataclass(frozen=True, eq=False)
class Scope:
    """A lens, none for the full probability vector; a class-wise one looks at a column."""

    asked: str  # "canonical", "classwise", or the lens's label
    label: str  # "canonical" without a lens
    lens: Lens | None
    column: int | None = None


@dataclass(frozen=True, eq=False)
class Look:
    """A lens on all rows, or on a group."""

    scope: Scope
    group: Group | None
    rows: Places | None
    n_rows: int
    expected: float  # mean number of events, or of rows without: the smaller; infinite without an event
    event: str | None  # what the one probability is of, as a clause; None where there is more than one

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all other looks of an audit."""
        group = self.group
        return self.scope.label, group.column if group else "", group.value if group else ""


class Source:
    """All predictions, seen through any lens on any rows; what a lens makes of them is kept."""

    def __init__(self, predictions: Rows) -> None:
        self.predictions = predictions
        self._reduced: dict[str, Rows] = {}
        self._reducers: dict[str, Reducer] = {}

    @cached_property
    def _others(self) -> NDArray[np.float64]:
        """What every row says of all classes but one, (n, m), without a subtraction."""
        return np.minimum(sums_of_others(self.predictions.probs), 1.0)

    def _one_class(self, column: int, rows: Places | slice) -> Rows:
        """Return (P(another), P(this class)), as :class:`caltest.lenses.ClassWise` does."""
        whole = self.predictions
        name = whole.classes[column] if whole.classes else f"class {column}"
        pair = np.column_stack([self._others[rows, column], whole.probs[rows, column]])
        return whole.take(rows, Classes(pair, ("another", name)))

    def seen(self, scope: Scope) -> Rows:
        """Return the predictions of all rows through a lens."""
        if scope.lens is None:
            return self.predictions
        if scope.column is not None:
            return self._one_class(scope.column, slice(None))
        if scope.label not in self._reduced:
            self._reduced[scope.label] = scope.lens.reduce(self.predictions)
        return self._reduced[scope.label]

    def at(self, look: Look) -> Rows:
        """Return the predictions of a look."""
        if look.rows is not None and look.scope.column is not None:
            return self._one_class(look.scope.column, look.rows)
        whole = self.seen(look.scope)
        return whole if look.rows is None else whole.take(look.rows)

    def view(self, look: Look) -> View:
        """Return a look as the engine takes it."""
        return View(self.at(look), self.reducer(look.scope), None, look.rows, look.scope.column)

    def reducer(self, scope: Scope) -> Reducer | None:
        """Return what takes full labels to those of the lens; None where they stay."""
        if scope.lens is not None and scope.label not in self._reducers:
            self._reducers[scope.label] = scope.lens.reducer(self.predictions)
        return self._reducers.get(scope.label)

    def sample(self, look: Look, labels: NDArray[Any]) -> Sample:
        """Return predictions and observed labels of a look."""
        return self.view(look).sample(labels)

    def look(self, scope: Scope, group: Group | None = None, rows: Places | None = None) -> Look:
        """Return a lens on all rows, or on a group."""
        n = self.predictions.n_samples if rows is None else len(rows)
        if scope.column is None:
            shown = self.seen(scope)
            if shown.n_classes > 2:
                return Look(scope, group, rows, n, float("inf"), None)
            p = shown.probs[:, 1]
        else:
            shown = self._one_class(scope.column, slice(0, 1))
            p = self.predictions.probs[:, scope.column]
        total = (p if rows is None else p[rows]).sum()
        about = event(None if scope.lens is None else scope.label, shown)
        return Look(scope, group, rows, n, float(min(total, n - total)), about)

    def n_classes(self, look: Look) -> int:
        """Return how many classes a look has."""
        return 2 if look.event else self.seen(look.scope).n_classes


#: That a look is calibrated, by a statistic.
Hypothesis: TypeAlias = tuple[Look, Statistic]


def form_of(look: Look, statistic: Statistic, predictions: Rows) -> Form:
    """Fit the statistic's rules to the look's predictions; return it as a function of its labels."""
    try:
        return statistic.fitted(predictions).given(predictions)
    except InputError as error:
        where = f"through the lens {look.scope.label!r}"
        where += f" in {shown_group(look.group.column, look.group.value)}" if look.group else ""
        raise InputError(f"{where}, {str(error)[:1].lower()}{str(error)[1:]}") from error


# ------------------------------------------------------------------ wanted


Lenses: TypeAlias = "str | Lens | Sequence[str | Lens]"
Statistics: TypeAlias = (
    "StatisticLike | Sequence[StatisticLike] | Mapping[str, StatisticLike | Sequence[StatisticLike]]"
)

LENSES = (CANONICAL, TOP_LABEL, CLASSWISE)
#: Of the mean of one probability.
MEAN = CalibrationInTheLarge()
#: Of the full probability vector by default: with a kernel of low rank where rows are many.
OF_VECTOR = UnbiasedSKCE(approximation="auto")


@dataclass(frozen=True)
class Wanted:
    """The lenses asked for, by name, and the statistics of each; None for the default ones."""

    lenses: dict[str, Lens | None]
    statistics: dict[str, tuple[Statistic, ...] | None]
    with_tolerance: bool  # whether only one probability at a time can be looked at
    in_clusters: bool = False  # whether signs of clusters are drawn, which skewed sums do not suit

    @classmethod
    def of(cls, lenses: Lenses, statistics: Statistics | None, with_tolerance: bool) -> Wanted:
        """Look names up, as far as can be without data."""
        if lenses is None or not (isinstance(lenses, str | Lens | type) or np.iterable(lenses)):
            names = ", ".join(map(repr, LENSES))
            raise InputError(
                f"lenses is {quoted(lenses)}; give names such as {names}, or leave it out."
            )
        known: dict[str, object] = {CANONICAL: None, CLASSWISE: None}
        found: dict[str, Lens | None] = {}
        several: Any = [lenses] if isinstance(lenses, str | Lens | type) else lenses
        for one in several:
            if isinstance(one, str) and ":" not in one:
                choose("lens", one, known | registered.LENSES)
            if isinstance(one, str) and one in known:
                found[one] = None
                continue
            lens = find_lens(one)
            if lens is None:
                raise InputError("lenses holds None; the full probability vector is 'canonical'.")
            found[lens.label] = lens
        if not found:
            raise InputError("lenses is empty; give at least one, such as 'top_label'.")
        if isinstance(statistics, Mapping):
            for name in statistics:
                choose("lens among those asked for", name, found)
            by_lens = {name: _statistics(statistics.get(name)) for name in found}
        else:
            by_lens = dict.fromkeys(found, _statistics(statistics))
        if with_tolerance:
            for each in [one for those in by_lens.values() for one in those or ()]:
                check_possible(each, MonteCarlo(), None)
        return cls(found, by_lens, with_tolerance)

    def of_scope(self, scope: Scope, n_classes: int, of_classes: int) -> tuple[Statistic, ...]:
        """Return the statistics that fit a lens that leaves so many classes of so many.

        Of two classes the top label has the ECD of the probabilities themselves, number for number: by
        default it is looked at once. Of one probability the mean error is always looked at, since words
        of its direction are to have a p-value.
        """
        asked = self.statistics[scope.asked]
        if asked is not None:
            return tuple(each for each in asked if n_classes == 2 or each.default_lens is None)
        if self.with_tolerance:
            return (Scan(),)
        found: list[Statistic] = [KolmogorovSmirnov(), ECD(), MEAN] if n_classes == 2 else []
        if n_classes > 2 or scope.label == CANONICAL:
            found = [OF_VECTOR, ECD(), *(each for each in found if each != ECD())]
        elif scope.label == TOP_LABEL and of_classes == 2 and CANONICAL in self.lenses:
            of_vector = self.statistics[CANONICAL]
            if of_vector is None or ECD() in of_vector:
                found.remove(ECD())
        if self.in_clusters:  # a few surprises make its sums skewed, and tails of signs too light
            found = [each for each in found if each != ECD()]
        return tuple(found)


def _statistics(given: Any) -> tuple[Statistic, ...] | None:
    if given is None:
        return None
    single = isinstance(given, str | Statistic | type) or callable(given) or not np.iterable(given)
    found = tuple(find_statistic(each) for each in ([given] if single else given))
    if not found:
        raise InputError("statistics is empty; give at least one, or leave it out.")
    return found


# ------------------------------------------------------------------ plan

#: Events, and rows without, that a class-wise look must expect: with fewer, nothing could be found.
FEWEST_EVENTS = 5.0
MOST_HYPOTHESES = 3000
#: Rows of a look up to which a kernel statistic is a default: its features take 200 MB there.
MOST_FOR_KERNEL = 100_000

#: Rows times hypotheses times draws up to which pairs of a class and a group are a default: of "ks" and
#: "ecd", 1 to 4 ns each for rare classes, 7 to 13 ns for others: minutes on one core.
MOST_WORK = 3e10

WESTFALL_YOUNG = "westfall_young"


class Plan(NamedTuple):
    """The hypotheses, in the order of the views: all rows first, then groups."""

    looks: tuple[Look, ...]
    hypotheses: tuple[Hypothesis, ...]
    skipped: tuple[Skipped, ...]
    columns: tuple[str, ...]
    unseen: dict[str, int]  # by column, the rows of groups that are too small, if most rows are


def make_plan(
    source: Source,
    groupings: Sequence[Grouping],
    wanted: Wanted,
    min_rows: int,
    intersections: int = 1,
    n_resamples: int = 0,
) -> Plan:
    """Decide what is looked at. Time is limited for so many label draws; by default it is not."""
    whole = source.predictions
    default_lenses = tuple(wanted.lenses) == LENSES
    found: dict[Look, tuple[Statistic, ...]] = {}
    skipped: list[Skipped] = []

    def skip(what: str, reason: str) -> None:
        entry = Skipped(what, None, reason)
        if entry not in skipped:
            skipped.append(entry)

    def eventful(looks: list[Look], what: str) -> list[Look]:
        kept = [look for look in looks if look.expected >= FEWEST_EVENTS]
        if few := len(looks) - len(kept):
            reason = f"fewer than {FEWEST_EVENTS:.0f} events, or rows without, are expected"
            skip(f"{few:,} of {len(looks):,} {what}", reason)
        return kept

    def fitting(look: Look) -> tuple[Statistic, ...]:
        scope, n_classes = look.scope, source.n_classes(look)
        if wanted.with_tolerance and n_classes > 2:
            skip(f"the lens {scope.label!r}", "a tolerance is about one probability")
            return ()
        statistics = wanted.of_scope(scope, n_classes, whole.n_classes)
        default = wanted.statistics[scope.asked] is None
        if look.n_rows > MOST_FOR_KERNEL and default and OF_VECTOR in statistics:
            statistics = tuple(each for each in statistics if each != OF_VECTOR)
            reason = "its time and memory grow with the rows; name it among the statistics to have it"
            skip(f"{OF_VECTOR.name!r} where rows are more than {MOST_FOR_KERNEL:,}", reason)
        if not statistics:
            reason = "none of the statistics looks at more than one probability"
            skip(f"the lens {scope.label!r}", reason)
        return statistics

    def add(looks: Iterable[Look], most: int, what: str = "", work: float = float("inf")) -> None:
        """Add looks, those with the most events or rows first, up to so many hypotheses or rows."""
        many = long = 0
        count = sum(map(len, found.values()))
        rows = sum(look.n_rows * len(statistics) for look, statistics in found.items())
        for look in sorted(looks, key=lambda look: (-min(look.expected, look.n_rows), look.key)):
            statistics = fitting(look)
            more = look.n_rows * len(statistics)
            if what and count + len(statistics) > most:
                many += 1
            elif rows + more > work:
                long += 1
            elif statistics:
                found[look] = statistics
                count, rows = count + len(statistics), rows + more
        if many:
            skip(f"{many:,} {what}", f"an audit has at most {MOST_HYPOTHESES:,} hypotheses")
        if long:
            reason = (
                "with so many rows they would take long; ask for lenses='classwise' by itself, or for "
                "fewer draws or groups, to have them"
            )
            skip(f"{long:,} {what}", reason)

    groups: list[tuple[Group, Places]] = []
    unseen: dict[str, int] = {}
    for grouping in groupings:
        large, small = large_enough(grouping, min_rows)
        if 2 * (few := sum(each.rows or 0 for each in small)) > len(grouping.member):
            unseen[grouping.column] = few
        groups += large
        skipped += small
    cells_of, small = crossed(groupings, intersections, min_rows)
    groups += cells_of
    skipped += small
    general: list[Scope] = []
    classes: list[Scope] = []
    for name, lens in wanted.lenses.items():
        if name == TOP_LABEL and default_lenses and whole.n_classes == 2:
            continue  # one probability says all, and the canonical lens looks at it
        if name != CLASSWISE:
            general.append(Scope(name, name, lens))
        elif whole.n_classes <= 2 and CANONICAL in wanted.lenses:
            if not default_lenses:
                reason = "of two classes one probability says all, and the canonical lens looks at it"
                skip("each class by itself", reason)
        else:
            for column in range(whole.n_classes) if whole.n_classes > 2 else [1]:
                # By its name, if it has one, which no other has.
                one = ClassWise(whole.classes[column] if whole.classes else column)
                classes.append(Scope(name, one.label, one, column))
    overall = [source.look(scope) for scope in general]
    by_class = eventful([source.look(scope) for scope in classes], "classes by themselves")
    by_group = [source.look(scope, *group) for group in groups for scope in general]
    cells = [source.look(look.scope, *group) for group in groups for look in by_class]
    cells = eventful(cells, "pairs of a class and a group")
    add(overall, MOST_HYPOTHESES)
    add(by_class, MOST_HYPOTHESES // 2, "classes by themselves, those with the fewest events")
    add(by_group, MOST_HYPOTHESES, "looks at groups, those with the fewest rows")
    limited = n_resamples and default_lenses
    work = MOST_WORK / (1 + n_resamples) if limited else float("inf")
    add(cells, MOST_HYPOTHESES, "pairs of a class and a group, those with the fewest events", work)
    if not found:
        reasons = "; ".join(f"{each.what}: {each.reason}" for each in skipped[:3])
        raise InputError(f"there is nothing to test: {reasons}.")
    order = {look.key: place for place, look in enumerate(overall + by_class)}
    place = {group: number for number, (group, _) in enumerate(groups)}
    looks = sorted(
        found,
        key=lambda look: (place[look.group] if look.group else -1, order[look.scope.label, "", ""]),
    )
    return Plan(
        looks=tuple(looks),
        hypotheses=tuple((look, statistic) for look in looks for statistic in found[look]),
        skipped=tuple(skipped),
        columns=tuple(grouping.column for grouping in groupings),
        unseen=unseen,
    )


def check_resolution(
    alternatives: Sequence[Alternative],
    correction: str,
    alpha: float,
    n_resamples: int,
    n_clusters: int | None = None,
) -> None:
    """Raise if the smallest p-value that so many draws can give would not be found at level alpha.

    ``n_clusters`` is their number where the draws are all signs that there are of them.
    """
    sides = 2 if "two-sided" in alternatives else 1
    count = len(alternatives)

    def enough(draws: int) -> bool:
        smallest = min(1.0, sides / (1 + draws))
        if correction != WESTFALL_YOUNG:
            smallest = float(adjusted([smallest] + [1.0] * (count - 1), correction)[0])
        return smallest <= alpha  # as it will be compared, rounding and all

    if enough(n_resamples):
        return
    every = range(MOST_RESAMPLES + 1)
    needed = bisect_left(every, True, lo=n_resamples, key=enough)
    if needed > MOST_RESAMPLES:
        raise InputError(
            f"alpha = {alpha:g} is out of reach for {count:,} hypotheses adjusted by "
            f"{quoted(correction)}, with any number of resamples that is possible; look at fewer."
        )
    if needed > n_resamples:
        if n_clusters is not None:
            raise InputError(
                "{argument} names {found}, too few for any p-value to reach alpha = {alpha}; give rows "
                "of more clusters.",
                argument="clusters",
                found=counted(n_clusters, "cluster"),
                alpha=f"{alpha:g}",
            )
        looks = f" of {count:,} hypotheses adjusted by {quoted(correction)}" if count > 1 else ""
        raise InputError(
            "{argument} is {found}, with which not every p-value{looks} can reach alpha = {alpha}; "
            "give at least {high}.",
            argument="n_resamples",
            found=n_resamples,
            looks=looks,
            alpha=f"{alpha:g}",
            high=f"{needed:,}",
        )


def call_of(
    function: Callable[..., Any],
    groups: object,
    columns: tuple[str, ...],
    of_rows: Mapping[str, object],
    seed: int,
    given: Mapping[str, object],
) -> str:
    """Write the call that repeats an audit, with what was given and is not the default.

    What has an entry per row (weights, clusters) stands there by its name.
    """

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            return (
                "{"
                + ", ".join(f"{written(name)}: {written(each)}" for name, each in value.items())
                + "}"
            )
        if isinstance(value, list | tuple):
            each = ", ".join(map(written, value))
            return f"[{each}]" if isinstance(value, list) else f"({each}{',' * (len(value) == 1)})"
        if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
            return str(value.__name__)
        if has(value, "tolist"):  # numbers and arrays of NumPy, names in an index of pandas
            return repr(value.tolist())
        return repr(value)

    parts = ["probs", "labels"]
    if groups is not None:
        native: Any = nw.from_native(groups, eager_only=True, allow_series=True, pass_through=True)
        frame = isinstance(native, nw.DataFrame)
        parts.append(f"groups=groups[{list(columns)!r}]" if frame else "groups=groups")
    parts += [f"{name}={name}" for name, value in of_rows.items() if value is not None]
    defaults = signature(function).parameters
    for name, value in given.items():
        same = written(tuple(value) if isinstance(value, list) else value)
        if same != written(defaults[name].default):
            parts.append(f"{name}={written(value)}")
    return f"caltest.{function.__name__}({', '.join([*parts, f'rng={seed}'])})"


# ------------------------------------------------------------------ whose error is bounded

MOST_GROUPS = 30
MOST_CLASSES = 10
_DRAWS = 499
_MOST_BOUNDING = 1e9  # rows times draws: a minute or two at worst on one core
_MOST_FOR_ONE = 1e10
_ROWS_OF_A_DRAW = 5_000  # what a draw costs besides its rows


def bounded_looks(looks: Iterable[Look], alpha: float) -> tuple[tuple[Look, ...], int]:
    """Choose the looks whose error is bounded, from the predictions alone, and how many draws it takes.

    The top label on all rows (or what one probability the audit looks at on all rows), the classes
    with the most expected events on all rows, and the top label in the largest groups: as many of
    them, in this order, as can be bounded in minutes.
    """
    single = [look for look in looks if look.event is not None]
    overall = [look for look in single if look.group is None]
    general = [look for look in overall if look.scope.column is None]
    first = sorted(general, key=lambda look: look.scope.label == CANONICAL)
    classes = [look for look in overall if look.scope.column is not None]
    classes = sorted(classes, key=lambda look: (-look.expected, look.key))[:MOST_CLASSES]
    named = first[0].scope.label if first else None
    label = TOP_LABEL if any(look.scope.label == TOP_LABEL for look in single) else named
    groups = [look for look in single if look.group and look.scope.label == label]
    groups = sorted(groups, key=lambda look: (-look.n_rows, look.key))[:MOST_GROUPS]
    kept = [*first, *classes, *groups]
    while kept:
        n_draws = max(_DRAWS, draws_needed(alpha / (2 * len(kept))))
        work = n_draws * sum(look.n_rows + _ROWS_OF_A_DRAW for look in kept)
        if work <= (_MOST_BOUNDING if len(kept) > 1 else _MOST_FOR_ONE):
            return tuple(look for look in [*first, *groups, *classes] if look in kept), n_draws
        kept.pop()
    return (), 0
