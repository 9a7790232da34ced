"""The plan of an audit: which lenses, on which rows, by which statistics; nothing here sees a label."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import level_of_confidence
from caltest._numbers import counted
from caltest._sums import blocks
from caltest._visible import attempt
from caltest.auditing.groups import Grouping, Places, crossed, distinct, large_enough
from caltest.auditing.options import CANONICAL, CLASSWISE, COVERAGE, DISTRIBUTION, TOP_LABEL, Options
from caltest.auditing.views import Group, Horizon, Skipped
from caltest.data import Rows, Sample
from caltest.exceptions import Argument, InputError
from caltest.forms import Form
from caltest.forms.pairs import sums_of_others
from caltest.laws import Classes, Point
from caltest.lenses import ClassWise, Entry, Lens, Pair, Reduction, Until, event, show, within
from caltest.lenses.classes import is_column
from caltest.sampling import ROWS
from caltest.statistics import FeatureRidge, FeatureScan, Statistic, UnbiasedSKCE, find_statistic
from caltest.statistics.order import EventsAfter, OfOrder

#: Of one probability by default: of its mean, of the whole curve, and of log losses.
MEAN, _KS, _ECD = map(find_statistic, ("citl", "ks", "ecd"))
#: Of censored times until a horizon.
EVENTS = find_statistic("events")
#: Of point forecasts: of all rows these, of groups the first; the last one is about right.
OF_POINTS = tuple(find_statistic(f"point_{x}") for x in ("bias", "cumulative", "slope", "kernel"))
BIAS = OF_POINTS[0]
#: Of the full probability vector by default: with a kernel of low rank where rows are many.
OF_VECTOR = UnbiasedSKCE(approximation="auto")
#: Of the whole distribution of a number by default.
OF_DISTRIBUTION = tuple(map(find_statistic, ("bias", "spread", "pit_ks", "pit_ad")))
#: Of whole vectors.
OF_VECTORS = (find_statistic("energy"),)

#: Of the order of rows by default, where that is given and they are exact.
_OF_ORDER = tuple(map(find_statistic, ("runs", "decay", "autocorrelation")))
_NOT_IN_TIME = "chances vary, or distributions have atoms"

#: Of numbers the events whose errors are searched for by features, beside the whole distribution.
_SEARCHED = (DISTRIBUTION, "quantile:0.5", "interval:0.8")
_MOST_SEARCHED = 10  # classes, or looks

_COARSE = 0.06  # by how much what few members state may differ from a lens's level

# ------------------------------------------------------------------ looks


@dataclass(frozen=True, eq=False)
class Scope:
    """All rows through a lens, none for the full probability vector; a class-wise one has a column.

    What a lens makes of the rows is kept, but for columns: a thousand classes share one table.
    """

    whole: Rows
    asked: str  # "canonical", "classwise", or the lens's label
    label: str  # "canonical" without a lens
    lens: Lens | None
    column: int | None = None
    others: NDArray[np.float64] | None = None  # what rows say of all classes but one, (n, m)

    @cached_property
    def censored(self) -> bool:
        """Whether it is of what was seen of censored times, with nothing completed."""
        return self.whole.law.seen is not None and isinstance(self.lens, Until)

    @property
    def of_points(self) -> bool:
        """Whether a functional of outcomes is all that is stated."""
        return isinstance(self.whole.law, Point)

    @cached_property
    def shown(self) -> Reduction:
        """All rows, and what the lens makes of labels; the rows of a column are still the full ones."""
        if self.censored:
            law, lens = self.whole.law, self.lens
            return Reduction(self.whole.shown_as(law.of_cause(lens.cause)))  # type: ignore[union-attr, attr-defined]
        if self.column is None:
            return show(self.whole, self.lens)
        columns = np.broadcast_to(self.column, self.whole.n_samples)
        return Reduction(self.whole, partial(is_column, columns), event=self.column)

    def view(self, places: Places | None) -> Reduction:
        """Return some rows as the engine takes them; None for all."""
        rows, column = self.shown.rows, self.column
        if column is not None and self.others is not None:
            own, classes = slice(None) if places is None else places, rows.classes
            name = classes[column] if classes else f"class {column}"
            pair = np.column_stack([self.others[own, column], rows.probs[own, column]])
            rows = rows if places is None else self._alone
            rows = rows.take(own, Classes(pair, ("another", name)))  # as `lenses.ClassWise` has them
        elif places is not self.shown.places:
            rows = self._alone.take(self._within(places))
        return replace(self.shown, rows=rows, places=places)

    def _within(self, places: Any) -> Any:
        """Return where rows are among those that the lens shows."""
        stated = self.shown.places
        return places if stated is None else np.searchsorted(stated, places)

    @cached_property
    def _alone(self) -> Rows:
        """All rows without features, which are of no use in groups."""
        return replace(self.shown.rows, features=None)

    @cached_property
    def first(self) -> Rows:
        """The first row through the lens: what can be said of all of them."""
        places = self.shown.places
        return self.view(np.arange(1) if places is None else places[:1]).rows

    @cached_property
    def event(self) -> str | None:
        """The event whose probability is viewed, as a clause; None with more than one probability."""
        if self.of_points:
            return f"the {self.label.replace(':', ' ')} of outcomes is as forecast"
        if self.first.n_classes != 2 and not self.censored:
            return None
        if (at := self.horizon) is None:
            return event(None if self.lens is None else self.label, self.first)
        name = "the event" if at.event is None else f"the event {at.event!r}"
        return f"{name} {'is seen' if at.seen else 'comes'} by {at.when}"

    @cached_property
    def horizon(self) -> Horizon | None:
        """What a risk of times is of."""
        if not isinstance(self.lens, Until):
            return None
        law: Any = self.whole.law
        seen = "seen" in (getattr(self.first.law, "names", None) or ())
        time = within(self.label)[1].partition(":")[2]
        return Horizon(time, law.time_unit, self.lens.cause or law.event, seen)

    def statistics(self, options: Options) -> tuple[Statistic, ...]:
        """Return the statistics that are asked for and fit what the lens shows.

        Of two classes the top label has the ECD of the probabilities themselves, number for number: by
        default it is looked at once. Of one probability the mean error is always looked at, since words
        of its direction are to have a p-value.
        """
        asked = options.statistics[self.asked]
        if self.censored:
            return (EVENTS,)
        if self.label == COVERAGE:
            return (MEAN,) if asked is None else asked
        if self.of_points and asked is None:
            return OF_POINTS[:-1] if self.whole.law.bounded else OF_POINTS  # type: ignore[attr-defined]
        if asked is not None:
            fits = [each for each in asked if isinstance(self.first.law, each.laws)]
            return tuple(each for each in fits if self.event or each.default_lens is None)
        if options.tolerance is not None:
            return (find_statistic("scan") if self.whole.clusters is None else MEAN,)
        if self.whole.n_classes is None and (self.event or self.first.n_classes is None):
            of_vector = getattr(self.first.law, "dimension", None)
            usual = OF_DISTRIBUTION if of_vector is None else OF_VECTORS
            return (MEAN,) if self.event else usual[:1] if isinstance(self.lens, Pair) else usual
        found: list[Statistic] = [_KS, _ECD, MEAN] if self.event else []
        if not self.event or self.label == CANONICAL:
            found = [OF_VECTOR, _ECD, *(each for each in found if each != _ECD)]
        elif self.label == TOP_LABEL and self.whole.n_classes == 2 and CANONICAL in options.lenses:
            of_vector = options.statistics[CANONICAL]
            if of_vector is None or _ECD in of_vector:
                found.remove(_ECD)
        if self.whole.clusters is None:
            return tuple(found)
        # A few surprises make its sums skewed, and tails of signs light.
        return tuple(each for each in found if each != _ECD)

    def of_features(self, options: Options) -> tuple[Statistic, ...]:
        """Return the statistics of features that fit, of all rows; the scan looks for what matters.

        Outcomes may equal predicted quantiles: a side each then has its own event, and pairs have none.
        """
        kind, fewest = within(self.label)[1], max(options.min_rows, 2)
        if self.of_points and self.whole.features is not None:
            law: Any = self.whole.law
            apart = law.bounded and self.whole.clusters is not None
            one = (law.low is None) != (law.high is None)  # whose side is looked at by bets
            sides = options.limit.sides if one else (options.limit.only or "both",)
            return () if apart else tuple(FeatureScan(fewest, side) for side in sides)
        stated = kind in _SEARCHED or kind.startswith("until:")
        if self.whole.features is None or self.censored or not (self.whole.n_classes or stated):
            return ()
        if not self.event and getattr(self.first.law, "dimension", 1) is not None:
            return ()
        if self.shown.see_open is not None:
            return tuple(FeatureScan(fewest, side) for side in ("over", "under"))
        if getattr(self.whole.law, "levels", None) is not None:
            return ()
        scan = FeatureScan(fewest, options.limit.only or "both")
        return (scan,) if self.label == COVERAGE else (scan, FeatureRidge())

    def look(self, group: Group | None = None, places: Places | None = None) -> Look:
        """Return all rows, or a group: those of them that state what the lens looks at."""
        if (stated := self.shown.places) is not None:
            places = stated if places is None else np.intersect1d(stated, places, assume_unique=True)
        n, few = self.whole.n_samples if places is None else len(places), float("inf")
        if self.first.n_classes == 2:
            p = self.shown.rows.probs[:, 1 if self.column is None else self.column]
            total = (p if places is None else p[self._within(places)]).sum()
            few = float(min(total, n - total))
        return Look(self, group, places, n, few)


@dataclass(frozen=True, eq=False)
class Look:
    """A lens on all rows, or on a group."""

    scope: Scope
    group: Group | None
    places: Places | None
    n_rows: int
    expected: float  # mean number of events, or of rows without: the smaller; infinite without classes
    less: Group | None = None  # the group that was taken out, if any

    @property
    def event(self) -> str | None:
        """The event whose probability is viewed, as a clause; None with more than one probability."""
        return self.scope.event

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all other looks of an audit."""
        group = self.group
        return self.scope.label, group.column if group else "", group.value if group else ""

    @property
    def where(self) -> Any:
        """The places of its rows, as an index."""
        return slice(None) if self.places is None else self.places

    def view(self) -> Reduction:
        """Return it as the engine takes it."""
        return self.scope.view(self.places)

    def scores(self) -> NDArray[np.float64]:
        """Return the probabilities of the event, or forecasts."""
        law: Any = self.scope.whole.law
        if (column := self.scope.column) is not None:
            return np.ascontiguousarray(self.scope.shown.rows.probs[self.where, column])
        return law.values[self.where] if self.scope.of_points else self.view().rows.probs[:, 1]

    def sample(self, labels: NDArray[Any]) -> Sample:
        """Return predictions and observed labels."""
        return self.view().sample(labels)

    def count(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return its rows, and events that are expected and observed, (3,)."""
        if (column := self.scope.column) is None:
            seen = self.sample(labels)
            return np.array([self.n_rows, seen.rows.probs[:, 1].sum(), seen.labels.sum()])
        stated = self.scope.shown.rows.probs[self.where, column].sum()
        return np.array([self.n_rows, stated, np.count_nonzero(labels[self.where] == column)])

    def without(self, part: Look) -> Look:
        """Return its rows that are not in a group inside, which are found anew and not held."""
        kept = np.ones(self.scope.whole.n_samples, dtype=np.bool_)
        kept[part.where] = False
        places = np.flatnonzero(kept) if self.places is None else self.places[kept[self.places]]
        return replace(self, places=places, n_rows=len(places), less=part.group)


def around(
    looks: Collection[Look], min_rows: int, among: Collection[Look] | None = None
) -> Iterator[tuple[Look, Look]]:
    """List every group with each that has a condition less, if that has ``min_rows`` rows besides."""
    by_key = {(look.scope.label, look.group): look for look in (looks if among is None else among)}
    for look in looks:
        for parent in () if look.group is None else look.group.parents():
            whole = by_key.get((look.scope.label, parent))
            if whole is not None and whole.n_rows - look.n_rows >= max(min_rows, 1):
                yield look, whole


#: That a look is calibrated, by a statistic.
Hypothesis: TypeAlias = tuple[Look, Statistic]


def form_of(look: Look, statistic: Statistic, predictions: Rows) -> Form:
    """Fit the statistic's rules to the look's predictions; return it as a function of its labels."""
    try:
        return statistic.fitted(predictions).given(predictions)
    except InputError as error:
        where = f"through the lens {look.scope.label!r}"
        where += f" in {look.group.words}" if look.group else ""
        raise InputError(f"{where}, {str(error)[:1].lower()}{str(error)[1:]}") from error


def in_time(look: Look) -> tuple[tuple[Statistic, ...], str]:
    """Return the statistics of the order of rows that are exact for a look, or why there are none."""
    rows = look.view().rows
    try:
        OfOrder.in_time(rows)
    except InputError as tie:
        return (), str(tie).partition(";")[0]
    fits = [x for x in _OF_ORDER if isinstance(rows.law, x.laws) and len(rows.law.sides) > 1]
    forms = [(x, attempt(partial(form_of, look, x, rows))) for x in fits]
    own = tuple(x for x, form in forms if form is not None and not isinstance(form, EventsAfter))
    return own, "" if own else _NOT_IN_TIME


# ------------------------------------------------------------------ plan

#: Events, and rows without, that a class-wise look must expect: with fewer, nothing could be found.
FEWEST_EVENTS = 5.0
MOST_HYPOTHESES = 3000
#: Rows of a look up to which a kernel statistic is a default: its features take 200 MB there.
MOST_FOR_KERNEL = 100_000

#: Rows times hypotheses times draws up to which pairs of a class and a group are a default: of "ks" and
#: "ecd", 1 to 4 ns each for rare classes, 7 to 13 ns for others: minutes on one core.
MOST_WORK = 3e10


_STATED = (
    "alpha", "materiality", "materiality_ratio", "tolerance", "rounding", "correction", "seed",
    "guaranteed",
)  # fmt: skip


class Plan(NamedTuple):
    """The hypotheses, in the order of the views: all rows first, then groups."""

    looks: tuple[Look, ...]
    hypotheses: tuple[Hypothesis, ...]
    skipped: dict[Skipped, list[Look]]  # with the views of the family, whatever the limit
    columns: tuple[str, ...]
    unseen: dict[str, int]  # by column, the rows of groups that are too small, if most rows are

    def stated(self, rows: Rows, options: Options) -> dict[str, Any]:
        """Return what an audit of these rows states of itself, whatever it finds."""
        m = rows.n_classes or 0  # 0 of numbers
        return {
            "unseen": self.unseen,
            "confidence": level_of_confidence(options.alpha),
            "n_samples": rows.n_samples,
            "n_classes": m,
            "classes": (rows.classes if m else None) or tuple(f"class {k}" for k in range(m)),
            "clusters": rows.n_clusters,
            "effective_n": None if rows.are_alike else rows.effective,
            "about": rows.law.about,
            "sides": options.limit.sides,
            **{name: getattr(options, name) for name in _STATED},
        }


def make_plan(whole: Rows, groupings: Sequence[Grouping], options: Options, n_draws: int = 0) -> Plan:
    """Decide what is looked at. Time is limited for so many label draws; by default it is not."""
    found: dict[Look, tuple[Statistic, ...]] = {}
    skipped: dict[Skipped, list[Look]] = {}

    def skip(what: str, reason: str, looks: Sequence[Look] = ()) -> None:
        skipped.setdefault(Skipped(what, None, reason), []).extend(looks)

    def eventful(looks: list[Look], what: str) -> list[Look]:
        if few := [look for look in looks if look.expected < FEWEST_EVENTS]:
            reason = f"fewer than {FEWEST_EVENTS:.0f} events, or rows without, are expected"
            skip(f"{len(few):,} of {len(looks):,} {what}", reason, few)
        return [look for look in looks if look.expected >= FEWEST_EVENTS]

    def fitting(look: Look) -> tuple[Statistic, ...]:
        scope, where = look.scope, f" in {look.group.words}" if look.group else ""
        if look.n_rows < min(max(options.min_rows, 2), whole.n_samples):
            skip(f"the lens {scope.label!r}{where}", f"only {counted(look.n_rows, 'row')} state it")
            return ()
        if options.tolerance is not None and not scope.event:
            skip(f"the lens {scope.label!r}", "a tolerance is about one probability")
            return ()
        statistics = scope.statistics(options)
        default = options.statistics[scope.asked] is None
        statistics = statistics[:1] if scope.of_points and look.group and default else statistics
        if look.n_rows > MOST_FOR_KERNEL and default and OF_VECTOR in statistics:
            statistics = tuple(each for each in statistics if each != OF_VECTOR)
            reason = "its time and memory grow with the rows; name it among the statistics to have it"
            skip(f"{OF_VECTOR.name!r} where rows are more than {MOST_FOR_KERNEL:,}", reason)
        names = {each.name for each in statistics}
        columns = () if look.group is None else (each.column for each in look.group.conditions)
        own_series = default and options.tolerance is None and derived.isdisjoint(columns)
        if whole.order is not None and own_series:
            own, why = in_time(look)
            statistics += own
            if why.startswith("order is") or (why and scope.event and look.group is None):
                skip(f"the order of rows through the lens {scope.label!r}{where}", why)
        if look in searched:
            statistics += tuple(x for x in scope.of_features(options) if x.name not in names)
        if not statistics:
            reason = "none of the statistics looks at more than one probability"
            if whole.n_classes is None:
                reason = "none of the statistics is of what it shows; add one, or leave the lens out"
            skip(f"the lens {scope.label!r}", reason, [look])
        return statistics

    def add(
        looks: Iterable[Look], what: str = "", most: int = MOST_HYPOTHESES, work: float = np.inf
    ) -> None:
        """Add looks, those with the most events or rows first, up to so many hypotheses or rows."""
        many, long = list[Look](), list[Look]()
        count = sum(map(len, found.values()))
        rows = sum(look.n_rows * len(statistics) for look, statistics in found.items())
        for look in sorted(looks, key=lambda look: (-min(look.expected, look.n_rows), look.key)):
            statistics = fitting(look)
            more = look.n_rows * len(statistics)
            if what and count + len(statistics) > most:
                many.append(look)
            elif rows + more > work:
                long.append(look)
            elif statistics:
                found[look] = statistics
                count, rows = count + len(statistics), rows + more
        if many:
            skip(f"{len(many):,} {what}", f"an audit has at most {MOST_HYPOTHESES:,} hypotheses", many)
        if long:
            do = f"ask for {Argument('lenses', 'classwise')} by itself, or for fewer draws or groups"
            reason = f"with so many rows they would take long; {do}, to have them"
            skip(f"{len(long):,} {what}", reason, long)

    searched = set[Look]()
    groups, unseen, entries = list[tuple[Group, Places]](), dict[str, int](), list[Skipped]()
    for grouping in groupings:
        large, small = large_enough(grouping, options.min_rows)
        if 2 * (few := sum(each.rows or 0 for each in small)) > len(grouping.member):
            unseen[grouping.column] = few
        groups += large
        entries += small
    cells_of, small = crossed(groupings, options.intersections, options.min_rows)
    derived = {each.column for each in groupings if not each.crosses}  # after those that were named
    groups, twins = distinct(sorted(groups + cells_of, key=lambda each: each[0].column in derived))
    skipped.update((each, []) for each in (*entries, *small, *twins))
    general, classes, numbers = list[Scope](), list[Scope](), whole.n_classes is None
    law: Any = whole.law
    if seen := law.seen is not None:
        _check_times(whole, options)
    for name, lens in options.lenses.items():
        if lens is None and numbers and not isinstance(law, Point):
            wrong = f"the lens {name!r} is for classes, and these are {whole.law.about}"
            raise InputError(f"{wrong}; give {DISTRIBUTION!r}, or leave it out.")
        if seen and name == DISTRIBUTION and law.horizon is not None:
            skip(f"the lens {name!r}", "the risk at one time alone is predicted")
            continue
        if numbers and options.usual and not seen and (reason := _unstated(whole, lens)):
            every = f"entry:*/{lens.inner.label}" if isinstance(lens, Entry) else name  # said once
            skip(f"the lens {every!r}", reason)
            continue
        if name == TOP_LABEL and options.usual and whole.n_classes == 2:
            continue  # one probability says all, and the canonical lens looks at it
        if name != CLASSWISE:
            general.append(Scope(whole, name, name, lens))
        elif whole.n_classes <= 2 and CANONICAL in options.lenses:
            if not options.usual:
                reason = "of two classes one probability says all, and the canonical lens looks at it"
                skip("each class by itself", reason)
        else:
            others = np.empty_like(whole.probs)
            for rows in blocks(whole.n_samples, ROWS):
                np.minimum(sums_of_others(whole.probs[rows]), 1.0, out=others[rows])
            for column in range(whole.n_classes) if whole.n_classes > 2 else [1]:
                # By its name, if it has one, which no other has.
                one = ClassWise(whole.classes[column] if whole.classes else column)
                classes.append(Scope(whole, name, one.label, one, column, others))
    overall = [scope.look() for scope in general]
    by_class = eventful([scope.look() for scope in classes], "classes by themselves")
    own = [each for each in groups if derived.isdisjoint(x.column for x in each[0].conditions)]
    by_group = [scope.look(*x) for scope in general for x in (own if scope.censored else groups)]
    most = {look.scope: look.n_rows for look in overall if look.places is not None}
    by_group = [look for look in by_group if look.n_rows != most.get(look.scope)]  # all of them
    cells = [scope.look(*group) for group in groups for scope in classes]
    cells = eventful(cells, "pairs of a class and a group")
    some = by_class if (whole.n_classes or 0) <= _MOST_SEARCHED else []
    some = [look for look in [*overall, *some] if look.scope.of_features(options)]
    for look in some[: 1 if whole.n_classes == 2 else _MOST_SEARCHED + 1]:
        try:
            form_of(look, look.scope.of_features(options)[0], look.view().rows)
            searched.add(look)
        except InputError as error:  # no slice is large enough
            skip("slices by features", str(error).partition(";")[0])
    add(overall)
    add(by_class, "classes by themselves, those with the fewest events", MOST_HYPOTHESES // 2)
    add(by_group, "looks at groups, those with the fewest rows")
    work = MOST_WORK / (1 + n_draws) if n_draws and options.usual else np.inf
    add(cells, "pairs of a class and a group, those with the fewest events", work=work)
    if not found:
        reasons = "; ".join(f"{each.what}: {each.reason}" for each in [*skipped][:3])
        raise InputError(f"there is nothing to test: {reasons}.")
    if whole.order is not None and not any(isinstance(x, OfOrder) for y in found.values() for x in y):
        do = f"leave it out, or take {Argument('caltest.test')} and 'runs', for chances that vary"
        why = next((x.reason for x in skipped if x.reason.startswith("order is")), _NOT_IN_TIME)
        why = why if options.tolerance is None else "it cannot be combined with a tolerance or rounding"
        raise InputError(f"{Argument('order')} is of no use here, as {why}; {do}.")
    place = {None: -1} | {group: number for number, (group, _) in enumerate(groups)}
    each = [look for look in (*overall, *by_class, *by_group, *cells) if look in found]
    # Of censored times what is completed comes first.
    looks = sorted(each, key=lambda look: (seen and look.event is not None, place[look.group]))
    return Plan(
        looks=tuple(looks),
        hypotheses=tuple((look, statistic) for look in looks for statistic in found[look]),
        skipped=skipped,
        columns=tuple(grouping.column for grouping in groupings),
        unseen=unseen,
    )


def _check_times(whole: Rows, options: Options) -> None:
    """Raise where an audit of censored times cannot look at what is asked for."""
    law: Any = whole.law
    until = [name for name, lens in options.lenses.items() if isinstance(lens, Until)]
    if options.tolerance is not None or set(options.lenses) - {*until, DISTRIBUTION}:
        raise InputError(
            "censored times are audited through 'distribution' and horizons such as 'until:365', "
            "without a {tolerance}; give these lenses, or {follow_up} where it is known of all rows.",
            tolerance=Argument("tolerance", ...),
            follow_up=Argument("follow_up"),
        )
    for each in (each for name in until for each in options.statistics[name] or ()):
        if not isinstance(law, each.laws):
            why = "at a horizon events less expected ones are looked at"
            do = "leave it out, or give some for 'distribution', such as 'pit_ad'"
            raise InputError(f"the statistic {each.name!r} is not of censored times; {why}: {do}.")
    if law.horizon is not None and not (whole.are_alike and whole.clusters is None):
        found = "of rows that count differently or come in clusters the risk at one time is not enough"
        raise InputError(f"{found}; give whole curves.")
    for name in until:
        options.lenses[name].check(whole)  # type: ignore[union-attr]


def _unstated(whole: Rows, lens: Lens | None) -> str:
    """Return why forecasts do not state what a lens looks at, as a clause; "" if they do."""
    law: Any = whole.law
    quantiles, size = getattr(law, "levels", None) is not None, getattr(law, "size", None)
    kind, _, level = within("" if lens is None else lens.label)[1].partition(":")
    many: Any = getattr(law, "counts", size)  # of every row where they differ
    if size is not None and kind in ("interval", "quantile"):
        tail = min(float(level), 1.0 - float(level)) if kind == "quantile" else 0.5 - 0.5 * float(level)
        if tail * (most := np.max(many)) < 1.0 - 1e-9:
            return f"{counted(most - 1, 'member')} cannot state a tail of {100.0 * tail:g}%"
    if quantiles and whole.clusters is not None and lens is not None and lens.label == DISTRIBUTION:
        return "of quantile forecasts in clusters events alone are checked"
    longest = int(np.argmax(getattr(law, "last", 0)))  # the first, without a follow-up
    try:
        shown = show(whole if quantiles or np.ndim(many) else whole.take([longest]), lens).rows
    except InputError as error:
        return str(error).rstrip(".")
    if size is not None and kind in ("interval", "quantile"):
        share = 1.0 / size  # of one of the pool, which may be as much as ties add to an interval
        if share > _COARSE and abs(float(shown.probs[:, 1].mean()) - float(level)) > _COARSE:
            return f"{counted(size - 1, 'member')} cannot state {100.0 * float(level):g}%"
    return ""
