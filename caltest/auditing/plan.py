"""The plan of an audit: lenses, rows and statistics, chosen without seeing any label."""

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

#: Defaults for one probability: its mean, the whole curve, and the log loss.
MEAN, _KS, _ECD = map(find_statistic, ("citl", "ks", "ecd"))
#: For censored times up to a horizon.
EVENTS = find_statistic("events")
#: For point forecasts: all of them on all rows, the first in groups; the last is about exact.
OF_POINTS = tuple(find_statistic(f"point_{x}") for x in ("bias", "cumulative", "slope", "kernel"))
BIAS = OF_POINTS[0]
#: Default for the full probability vector; the kernel has low rank if there are many rows.
OF_VECTOR = UnbiasedSKCE(approximation="auto")
#: Defaults for the whole distribution of a number.
OF_DISTRIBUTION = tuple(map(find_statistic, ("bias", "spread", "pit_ks", "pit_ad")))
#: Default for whole vectors.
OF_VECTORS = (find_statistic("energy"),)

#: Defaults for the order of rows, if it is given and these tests are exact.
_OF_ORDER = tuple(map(find_statistic, ("runs", "decay", "autocorrelation")))
_NOT_IN_TIME = "chances vary, or distributions have atoms"

#: Events of numeric outcomes that are searched by features, besides the whole distribution.
_SEARCHED = (DISTRIBUTION, "quantile:0.5", "interval:0.8")
_MOST_SEARCHED = 10  # classes, or looks, at most

_COARSE = 0.06  # largest gap between a lens's level and what few members state

# ------------------------------------------------------------------ looks


@dataclass(frozen=True, eq=False)
class Scope:
    """All rows through a lens, or the full probability vector; a class-wise scope has a column.

    The rows through a lens are cached, except for columns: a thousand classes share one table.
    """

    whole: Rows
    asked: str  # "canonical", "classwise", or the lens's label
    label: str  # "canonical" without a lens
    lens: Lens | None
    column: int | None = None
    others: NDArray[np.float64] | None = None  # rows' sums over all classes but one, (n, m)

    @cached_property
    def censored(self) -> bool:
        """Whether it concerns events observed until a horizon, without imputed times."""
        return self.whole.law.seen is not None and isinstance(self.lens, Until)

    @property
    def of_points(self) -> bool:
        """Whether predictions state only a functional of the outcome."""
        return isinstance(self.whole.law, Point)

    @cached_property
    def shown(self) -> Reduction:
        """All rows and the labels through the lens; for a class-wise column, the rows stay complete."""
        if self.censored:
            law, lens = self.whole.law, self.lens
            return Reduction(self.whole.shown_as(law.of_cause(lens.cause)))  # type: ignore[union-attr, attr-defined]
        if self.column is None:
            return show(self.whole, self.lens)
        columns = np.broadcast_to(self.column, self.whole.n_samples)
        return Reduction(self.whole, partial(is_column, columns), event=self.column)

    def view(self, places: Places | None) -> Reduction:
        """Return some rows, or all, in the engine's form."""
        rows, column = self.shown.rows, self.column
        if column is not None and self.others is not None:
            own, classes = slice(None) if places is None else places, rows.classes
            name = classes[column] if classes else f"class {column}"
            pair = np.column_stack([self.others[own, column], rows.probs[own, column]])
            rows = rows if places is None else self._alone
            rows = rows.take(own, Classes(pair, ("another", name)))  # as in `lenses.ClassWise`
        elif places is not self.shown.places:
            rows = self._alone.take(self._within(places))
        return replace(self.shown, rows=rows, places=places)

    def _within(self, places: Any) -> Any:
        """Return positions among the rows that the lens shows."""
        stated = self.shown.places
        return places if stated is None else np.searchsorted(stated, places)

    @cached_property
    def _alone(self) -> Rows:
        """All rows without features, which groups do not use."""
        return replace(self.shown.rows, features=None)

    @cached_property
    def first(self) -> Rows:
        """The first row through the lens, as an example of all."""
        places = self.shown.places
        return self.view(np.arange(1) if places is None else places[:1]).rows

    @cached_property
    def event(self) -> str | None:
        """The event whose probability is viewed, as a clause; None for more than one probability."""
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
        """The horizon of a predicted risk; None for other lenses."""
        if not isinstance(self.lens, Until):
            return None
        law: Any = self.whole.law
        seen = "seen" in (getattr(self.first.law, "names", None) or ())
        time = within(self.label)[1].partition(":")[2]
        return Horizon(time, law.time_unit, self.lens.cause or law.event, seen)

    def statistics(self, options: Options) -> tuple[Statistic, ...]:
        """Return the requested or default statistics that fit what the lens shows.

        For two classes, ECD through the top label equals ECD of the probabilities, number for number;
        by default it is computed once. For a single probability the mean error is always checked,
        because statements on its direction need a p-value.
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
        # A few surprises make these sums skewed, and sign flips light-tailed.
        return tuple(each for each in found if each != _ECD)

    def of_features(self, options: Options) -> tuple[Statistic, ...]:
        """Return the feature statistics for all rows; the scan covers the sides that matter.

        If outcomes may equal predicted quantiles, each side has its own event, and pairs have none.
        """
        kind, fewest = within(self.label)[1], max(options.min_rows, 2)
        if self.of_points and self.whole.features is not None:
            law: Any = self.whole.law
            apart = law.bounded and self.whole.clusters is not None
            one = (law.low is None) != (law.high is None)  # the side that bets test
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
        """Return the look for all rows or a group, limited to rows that state what the lens needs."""
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
    """A lens applied to all rows or to a group."""

    scope: Scope
    group: Group | None
    places: Places | None
    n_rows: int
    expected: float  # mean number of events or of non-events, the smaller; infinite without classes
    less: Group | None = None  # the group taken out, if any

    @property
    def event(self) -> str | None:
        """The event whose probability is viewed, as a clause; None for more than one probability."""
        return self.scope.event

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of a look within an audit."""
        group = self.group
        return self.scope.label, group.column if group else "", group.value if group else ""

    @property
    def where(self) -> Any:
        """The row numbers as an index."""
        return slice(None) if self.places is None else self.places

    def view(self) -> Reduction:
        """Return the rows in the engine's form."""
        return self.scope.view(self.places)

    def scores(self) -> NDArray[np.float64]:
        """Return the probabilities of the event, or the forecasts."""
        law: Any = self.scope.whole.law
        if (column := self.scope.column) is not None:
            return np.ascontiguousarray(self.scope.shown.rows.probs[self.where, column])
        return law.values[self.where] if self.scope.of_points else self.view().rows.probs[:, 1]

    def sample(self, labels: NDArray[Any]) -> Sample:
        """Return predictions and observed labels."""
        return self.view().sample(labels)

    def count(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the number of rows, and of expected and observed events, (3,)."""
        if (column := self.scope.column) is None:
            seen = self.sample(labels)
            return np.array([self.n_rows, seen.rows.probs[:, 1].sum(), seen.labels.sum()])
        stated = self.scope.shown.rows.probs[self.where, column].sum()
        return np.array([self.n_rows, stated, np.count_nonzero(labels[self.where] == column)])

    def without(self, part: Look) -> Look:
        """Return the rows outside a group within it, computed on each call and not kept."""
        kept = np.ones(self.scope.whole.n_samples, dtype=np.bool_)
        kept[part.where] = False
        places = np.flatnonzero(kept) if self.places is None else self.places[kept[self.places]]
        return replace(self, places=places, n_rows=len(places), less=part.group)


def around(
    looks: Collection[Look], min_rows: int, among: Collection[Look] | None = None
) -> Iterator[tuple[Look, Look]]:
    """List each group with its parents (one condition less) that have ``min_rows`` more rows."""
    by_key = {(look.scope.label, look.group): look for look in (looks if among is None else among)}
    for look in looks:
        for parent in () if look.group is None else look.group.parents():
            whole = by_key.get((look.scope.label, parent))
            if whole is not None and whole.n_rows - look.n_rows >= max(min_rows, 1):
                yield look, whole


#: The hypothesis that a look is calibrated, with the statistic that tests it.
Hypothesis: TypeAlias = tuple[Look, Statistic]


def form_of(look: Look, statistic: Statistic, predictions: Rows) -> Form:
    """Fit the statistic to the look's predictions; return it as a function of labels."""
    try:
        return statistic.fitted(predictions).given(predictions)
    except InputError as error:
        where = f"through the lens {look.scope.label!r}"
        where += f" in {look.group.words}" if look.group else ""
        raise InputError(f"{where}, {str(error)[:1].lower()}{str(error)[1:]}") from error


def in_time(look: Look) -> tuple[tuple[Statistic, ...], str]:
    """Return the order statistics that are exact for a look, or the reason for none."""
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

#: Events and non-events that a class-wise look must expect: with fewer, nothing could be found.
FEWEST_EVENTS = 5.0
MOST_HYPOTHESES = 3000
#: Rows up to which a kernel statistic is a default: beyond, its features take over 200 MB.
MOST_FOR_KERNEL = 100_000

#: Rows × hypotheses × draws up to which pairs of class and group are a default: "ks" and "ecd" take 1
#: to 4 ns each for rare classes, 7 to 13 ns for others, so minutes on one core.
MOST_WORK = 3e10


_STATED = (
    "alpha", "materiality", "materiality_ratio", "tolerance", "rounding", "correction", "seed",
    "guaranteed",
)  # fmt: skip


class Plan(NamedTuple):
    """The hypotheses of an audit, in the order of its views: all rows first, then groups."""

    looks: tuple[Look, ...]
    hypotheses: tuple[Hypothesis, ...]
    skipped: dict[Skipped, list[Look]]  # with their looks, which a limit covers too
    columns: tuple[str, ...]
    unseen: dict[str, int]  # rows in groups that are too small, by column, if that is most rows

    def stated(self, rows: Rows, options: Options) -> dict[str, Any]:
        """Return what an audit of these rows reports about itself, whatever it finds."""
        m = rows.n_classes or 0  # 0 for numbers
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
    """Choose the looks and statistics; ``n_draws``, if positive, limits computing time."""
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
        """Add looks, those with most events or rows first, up to a number of hypotheses or work."""
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
    derived = {each.column for each in groupings if not each.crosses}  # after named groups
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
            continue  # one probability says it all: the canonical lens covers it
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
                # By its name, which is unique, if it has one.
                one = ClassWise(whole.classes[column] if whole.classes else column)
                classes.append(Scope(whole, name, one.label, one, column, others))
    overall = [scope.look() for scope in general]
    by_class = eventful([scope.look() for scope in classes], "classes by themselves")
    own = [each for each in groups if derived.isdisjoint(x.column for x in each[0].conditions)]
    by_group = [scope.look(*x) for scope in general for x in (own if scope.censored else groups)]
    most = {look.scope: look.n_rows for look in overall if look.places is not None}
    by_group = [look for look in by_group if look.n_rows != most.get(look.scope)]  # these hold all rows
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
    # For censored times, looks with imputed times come first.
    looks = sorted(each, key=lambda look: (seen and look.event is not None, place[look.group]))
    return Plan(
        looks=tuple(looks),
        hypotheses=tuple((look, statistic) for look in looks for statistic in found[look]),
        skipped=skipped,
        columns=tuple(grouping.column for grouping in groupings),
        unseen=unseen,
    )


def _check_times(whole: Rows, options: Options) -> None:
    """Raise if an audit of censored times cannot do what is requested."""
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
    """Return why forecasts do not state what a lens needs, as a clause; "" if they do."""
    law: Any = whole.law
    quantiles, size = getattr(law, "levels", None) is not None, getattr(law, "size", None)
    kind, _, level = within("" if lens is None else lens.label)[1].partition(":")
    many: Any = getattr(law, "counts", size)  # per row where they differ
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
        share = 1.0 / size  # weight of one member, which ties may add to an interval
        if share > _COARSE and abs(float(shown.probs[:, 1].mean()) - float(level)) > _COARSE:
            return f"{counted(size - 1, 'member')} cannot state {100.0 * float(level):g}%"
    return ""
