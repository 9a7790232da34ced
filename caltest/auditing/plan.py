"""The plan of an audit: which lenses, on which rows, by which statistics; nothing here sees a label."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import signature
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from caltest import lenses as registered
from caltest._arguments import choose, has, level_of_confidence
from caltest._numbers import counted
from caltest._parallel import ALONE, Workers
from caltest._visible import quoted, shown_group
from caltest.auditing.groups import Grouping, Places, crossed, distinct, large_enough
from caltest.auditing.limits import Limit
from caltest.auditing.views import Group, Skipped
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.forms.pairs import sums_of_others
from caltest.laws import Classes, Law, Pools, Quantiles, Survival
from caltest.lenses import (
    ClassWise,
    Entry,
    Lens,
    OfVectors,
    Pair,
    View,
    event,
    find_lens,
    is_column,
    show,
    within,
)
from caltest.nulls import MonteCarlo
from caltest.pvalues import check_correction
from caltest.sampling import Rng, seed_of
from caltest.statistics import Statistic, StatisticLike, UnbiasedSKCE, find_statistic
from caltest.tolerance import check_possible

# ------------------------------------------------------------------ options

Lenses: TypeAlias = "str | Lens | Sequence[str | Lens]"
Statistics: TypeAlias = (
    "StatisticLike | Sequence[StatisticLike] | Mapping[str, StatisticLike | Sequence[StatisticLike]]"
)

CANONICAL = "canonical"
CLASSWISE = "classwise"
TOP_LABEL = "top_label"
DISTRIBUTION = "distribution"
LENSES = (CANONICAL, TOP_LABEL, CLASSWISE)
#: Of predicted distributions of numbers: the whole, intervals, the median, and both tails.
LENSES_OF_NUMBERS = (
    DISTRIBUTION, "interval:0.5", "interval:0.8", "interval:0.95", "quantile:0.5", "quantile:0.025",
    "quantile:0.975",
)  # fmt: skip
_OF_VECTORS = (DISTRIBUTION, "ranks:average", "ranks:band_depth")
_COARSE = 0.06  # by how much what few members state may differ from a lens's level
_FOLLOWED = 0.1  # of the rows, until the last horizon that is looked at by default
_MOST_PAIRED = 20  # entries of which every two are looked at
WESTFALL_YOUNG = "westfall_young"

ALPHA = 0.05
MIN_ROWS = 50
N_RESAMPLES = 999
INTERSECTIONS = 2

#: Of one probability by default: of its mean, of the whole curve, and of log losses.
MEAN, _KS, _ECD = map(find_statistic, ("citl", "ks", "ecd"))
#: Of the full probability vector by default: with a kernel of low rank where rows are many.
OF_VECTOR = UnbiasedSKCE(approximation="auto")
#: Of the whole distribution of a number by default.
OF_DISTRIBUTION = tuple(map(find_statistic, ("bias", "spread", "pit_ks", "pit_ad")))
#: Of whole vectors.
OF_VECTORS = tuple(map(find_statistic, ("energy", "variogram")))


def lenses_of(law: Law, lenses: Lenses) -> Lenses:
    """Return the lenses that are asked for, or the default ones; of vectors for every entry.

    Pairs of entries are looked at by default where these are few.
    """
    default = lenses == LENSES
    if default and isinstance(law, Survival):
        return _lenses_of_times(law)
    if default and isinstance(law, Quantiles):
        return _lenses_stated(law)
    if not isinstance(law, Pools):
        return lenses if not default or law.n_classes is not None else LENSES_OF_NUMBERS
    found: list[str | Lens] = list(_OF_VECTORS) if default and law.dimension > 1 else []
    for one in _several(LENSES_OF_NUMBERS if default else lenses):
        lens = one if one is None else find_lens(one)
        if isinstance(lens, OfVectors) or not getattr(lens, "of_numbers", False):
            found.append(one)
        else:
            found += [Entry(name, lens) for name in law.names]
    if default and law.dimension <= _MOST_PAIRED:
        found += [Pair(*names) for names in combinations(law.names, 2)]
    return found


def _lenses_stated(law: Quantiles) -> tuple[str, ...]:
    """Return the default lenses, each at the stated level of its kind that is nearest."""
    levels = law.levels.round(9)
    central = [1.0 - 2.0 * tail for tail in levels[levels < 0.5] if (1.0 - tail).round(9) in levels]
    stated = {"interval": central, "quantile": levels.tolist()}

    def nearest(name: str) -> str:
        kind, _, level = name.partition(":")
        near = min(stated.get(kind, ()), key=lambda each: abs(each - float(level)), default=None)
        return name if near is None else f"{kind}:{near:.9g}"

    return tuple(dict.fromkeys(map(nearest, LENSES_OF_NUMBERS)))


def _lenses_of_times(law: Survival) -> tuple[str, ...]:
    """Return the default lenses: until half of all events are predicted, until the end, the whole.

    The end is where a tenth of the rows are still followed: there events less expected ones are 0 on
    average as anywhere else, since how many are followed says nothing of what comes next.
    """
    if law.horizon is not None:
        return (f"until:{law.horizon:.12g}",)
    marks = law.marks(100)
    last = float(marks[-1])
    if law.seen is not None:
        followed = np.array([float(np.mean(np.abs(law.seen) >= time)) for time in marks])
        marks = marks[: max(int(np.sum(followed >= _FOLLOWED)), 1)]
        last = min(float(f"{marks[-1]:.3g}"), last)
    risks = np.array([float(law.risk(time).mean()) for time in marks])
    half = float(marks[int(np.searchsorted(risks, 0.5 * risks[-1]))])
    half = min(float(f"{half:.2g}"), last)  # two digits, if that is not too late
    names = dict.fromkeys(f"until:{time:.12g}" for time in (half, last))
    return (DISTRIBUTION, *names)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What an audit was asked for, read as far as can be without data.

    ``lenses`` are those asked for, by name, ``statistics`` those of each; None for the default ones.
    With a rounding there is a tolerance, if only of 0.
    """

    lenses: dict[str, Lens | None]
    statistics: dict[str, tuple[Statistic, ...] | None]
    correction: str
    alpha: float = ALPHA
    tolerance: float | None = None
    rounding: float | None = None
    materiality: float | None = None
    materiality_ratio: float | None = None
    min_rows: int = MIN_ROWS
    intersections: int = INTERSECTIONS
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    workers: Workers = ALONE
    usual: bool = False  #: Whether the lenses are the default ones.

    @classmethod
    def of(
        cls,
        *,
        lenses: Lenses = LENSES,
        statistics: Statistics | None = None,
        tolerance: float | None = None,
        rounding: float | None = None,
        correction: str | None = None,
        rng: Rng = 0,
        n_jobs: int | None = None,
        progress: bool = False,
        usual: bool = False,
        **others: Any,
    ) -> Options:
        """Look names up, and check what goes together."""
        if rounding is not None:
            tolerance = tolerance or 0.0
        if correction is None:
            correction = WESTFALL_YOUNG if tolerance is None else "holm"
        if correction != WESTFALL_YOUNG:
            check_correction(correction, WESTFALL_YOUNG)
        elif tolerance is not None:
            raise InputError(
                "with a tolerance every p-value has draws of its own, which 'westfall_young' cannot "
                "adjust jointly; give correction='holm', or leave it out."
            )
        found = _lenses(lenses)
        given = statistics if isinstance(statistics, Mapping) else dict.fromkeys(found, statistics)
        for name in given:
            choose("lens among those asked for", name, found)
        by_lens = {name: _statistics(given.get(name)) for name in found}
        if tolerance is not None:
            for each in [one for those in by_lens.values() for one in those or ()]:
                check_possible(each, MonteCarlo(), None)
        return cls(
            lenses=found,
            statistics=by_lens,
            correction=correction,
            tolerance=tolerance,
            rounding=rounding,
            seed=seed_of(rng),
            workers=Workers(n_jobs, progress),
            usual=usual or tuple(found) in (LENSES, LENSES_OF_NUMBERS),
            **others,
        )

    @property
    def limit(self) -> Limit:
        """The mean error that matters; it is false where none was given."""
        return Limit(self.materiality, self.materiality_ratio)

    def of_scope(self, scope: Scope) -> tuple[Statistic, ...]:
        """Return the statistics that fit what a lens shows.

        Of two classes the top label has the ECD of the probabilities themselves, number for number: by
        default it is looked at once. Of one probability the mean error is always looked at, since words
        of its direction are to have a p-value.
        """
        asked = self.statistics[scope.asked]
        if asked is not None:
            fits = [each for each in asked if isinstance(scope.first.law, each.laws)]
            return tuple(each for each in fits if scope.event or each.default_lens is None)
        if self.tolerance is not None:
            return (find_statistic("scan") if scope.whole.clusters is None else MEAN,)
        if scope.whole.n_classes is None:
            of_vector = getattr(scope.first.law, "dimension", None)
            usual = OF_DISTRIBUTION if of_vector is None else OF_VECTORS
            return (MEAN,) if scope.event else usual[:1] if isinstance(scope.lens, Pair) else usual
        found: list[Statistic] = [_KS, _ECD, MEAN] if scope.event else []
        if not scope.event or scope.label == CANONICAL:
            found = [OF_VECTOR, _ECD, *(each for each in found if each != _ECD)]
        elif scope.label == TOP_LABEL and scope.whole.n_classes == 2 and CANONICAL in self.lenses:
            of_vector = self.statistics[CANONICAL]
            if of_vector is None or _ECD in of_vector:
                found.remove(_ECD)
        if scope.whole.clusters is None:
            return tuple(found)
        # A few surprises make its sums skewed, and tails of signs light.
        return tuple(each for each in found if each != _ECD)


def _several(given: Any) -> Iterable[Any]:
    """Return lenses or statistics as several, one too."""
    single = isinstance(given, str | Lens | Statistic | type) or callable(given)
    return [given] if single or not np.iterable(given) else given


def _lenses(given: Lenses) -> dict[str, Lens | None]:
    if given is None or not (isinstance(given, str | Lens | type) or np.iterable(given)):
        names = ", ".join(map(repr, LENSES))
        raise InputError(f"lenses is {quoted(given)}; give names such as {names}, or leave it out.")
    known: dict[str, object] = {CANONICAL: None, CLASSWISE: None}
    found: dict[str, Lens | None] = {}
    for one in _several(given):
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
    return found


def _statistics(given: Any) -> tuple[Statistic, ...] | None:
    if given is None:
        return None
    found = tuple(find_statistic(each) for each in _several(given))
    if not found:
        raise InputError("statistics is empty; give at least one, or leave it out.")
    return found


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
    def shown(self) -> View:
        """All rows, and what the lens makes of labels; the rows of a column are still the full ones."""
        if self.column is None:
            return show(self.whole, self.lens)
        columns = np.broadcast_to(self.column, self.whole.n_samples)
        return View(self.whole, partial(is_column, columns), event=self.column)

    def view(self, places: Places | None) -> View:
        """Return some rows as the engine takes them; None for all."""
        rows, column = self.shown.rows, self.column
        if column is not None and self.others is not None:
            own, classes = slice(None) if places is None else places, rows.classes
            name = classes[column] if classes else f"class {column}"
            pair = np.column_stack([self.others[own, column], rows.probs[own, column]])
            rows = rows.take(own, Classes(pair, ("another", name)))  # as `lenses.ClassWise` has them
        elif places is not None:
            rows = rows.take(places)
        return replace(self.shown, rows=rows, places=places)

    @cached_property
    def first(self) -> Rows:
        """The first row through the lens: what can be said of all of them."""
        return self.view(np.arange(1)).rows

    @cached_property
    def event(self) -> str | None:
        """What the one probability is of, as a clause; None where there is more than one."""
        if self.first.n_classes != 2:
            return None
        return event(None if self.lens is None else self.label, self.first)

    def look(self, group: Group | None = None, places: Places | None = None) -> Look:
        """Return all rows, or a group."""
        n, few = self.whole.n_samples if places is None else len(places), float("inf")
        if self.event:
            full = self.column is not None
            p = self.shown.rows.probs[:, self.column if full else 1]
            total = (p if places is None else p[places]).sum()
            few = float(min(total, n - total))
        return Look(self, group, places, n, few)


@dataclass(frozen=True, eq=False)
class Look:
    """A lens on all rows, or on a group."""

    scope: Scope
    group: Group | None
    places: Places | None
    n_rows: int
    expected: float  # mean number of events, or of rows without: the smaller; infinite without an event

    @property
    def event(self) -> str | None:
        """What the one probability is of, as a clause; None where there is more than one."""
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

    def view(self) -> View:
        """Return it as the engine takes it."""
        return self.scope.view(self.places)

    def scores(self) -> NDArray[np.float64]:
        """Return the probabilities of the event."""
        return self.view().rows.probs[:, 1]

    def sample(self, labels: NDArray[Any]) -> Sample:
        """Return predictions and observed labels."""
        return self.view().sample(labels)

    def without(self, part: Look) -> Look:
        """Return its rows that are not in a group inside, which are found anew and not held."""
        places = np.arange(self.scope.whole.n_samples)[self.where]
        places = np.setdiff1d(places, part.where, assume_unique=True)
        return replace(self, places=places, n_rows=len(places))


def around(looks: Collection[Look], min_rows: int) -> Iterator[tuple[Look, Look]]:
    """List every group with each that has a condition less, if that has ``min_rows`` rows besides."""
    by_key = {(look.scope.label, look.group): look for look in looks}
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
        where += f" in {shown_group(look.group.column, look.group.value)}" if look.group else ""
        raise InputError(f"{where}, {str(error)[:1].lower()}{str(error)[1:]}") from error


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
)  # fmt: skip


class Plan(NamedTuple):
    """The hypotheses, in the order of the views: all rows first, then groups."""

    looks: tuple[Look, ...]
    hypotheses: tuple[Hypothesis, ...]
    skipped: tuple[Skipped, ...]
    columns: tuple[str, ...]
    unseen: dict[str, int]  # by column, the rows of groups that are too small, if most rows are

    def stated(self, rows: Rows, options: Options) -> dict[str, Any]:
        """Return what an audit of these rows states of itself, whatever it finds."""
        m = rows.n_classes or 0  # 0 of numbers
        classes = rows.classes if m else None
        return {
            "skipped": self.skipped,
            "unseen": self.unseen,
            "confidence": level_of_confidence(options.alpha),
            "n_samples": rows.n_samples,
            "n_classes": m,
            "classes": classes or tuple(f"class {k}" for k in range(m)),
            "clusters": None if rows.clusters is None else int(rows.clusters.max()) + 1,
            "effective_n": None if rows.are_alike else rows.effective,
            "about": rows.law.about,
            **{name: getattr(options, name) for name in _STATED},
        }


def make_plan(whole: Rows, groupings: Sequence[Grouping], options: Options, n_draws: int = 0) -> Plan:
    """Decide what is looked at. Time is limited for so many label draws; by default it is not."""
    default_lenses = options.usual
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
        scope = look.scope
        if options.tolerance is not None and not scope.event:
            skip(f"the lens {scope.label!r}", "a tolerance is about one probability")
            return ()
        statistics = options.of_scope(scope)
        default = options.statistics[scope.asked] is None
        if look.n_rows > MOST_FOR_KERNEL and default and OF_VECTOR in statistics:
            statistics = tuple(each for each in statistics if each != OF_VECTOR)
            reason = "its time and memory grow with the rows; name it among the statistics to have it"
            skip(f"{OF_VECTOR.name!r} where rows are more than {MOST_FOR_KERNEL:,}", reason)
        if not statistics:
            reason = "none of the statistics looks at more than one probability"
            if whole.n_classes is None:
                reason = "none of the statistics is of what it shows; add one, or leave the lens out"
            skip(f"the lens {scope.label!r}", reason)
        return statistics

    def add(
        looks: Iterable[Look], what: str = "", most: int = MOST_HYPOTHESES, work: float = np.inf
    ) -> None:
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
        large, small = large_enough(grouping, options.min_rows)
        if 2 * (few := sum(each.rows or 0 for each in small)) > len(grouping.member):
            unseen[grouping.column] = few
        groups += large
        skipped += small
    cells_of, small = crossed(groupings, options.intersections, options.min_rows)
    derived = {each.column for each in groupings if not each.crosses}  # after those that were named
    groups, twins = distinct(sorted(groups + cells_of, key=lambda each: each[0].column in derived))
    skipped += small + twins
    general: list[Scope] = []
    classes: list[Scope] = []
    numbers = whole.n_classes is None
    for name, lens in options.lenses.items():
        if lens is None and numbers:
            raise InputError(
                f"the lens {name!r} is for classes, and these are {whole.law.about}; give "
                f"{DISTRIBUTION!r}, or leave it out."
            )
        if numbers and default_lenses and (reason := _unstated(whole, lens)):
            every = f"entry:*/{lens.inner.label}" if isinstance(lens, Entry) else name  # said once
            skip(f"the lens {every!r}", reason)
            continue
        if name == TOP_LABEL and default_lenses and whole.n_classes == 2:
            continue  # one probability says all, and the canonical lens looks at it
        if name != CLASSWISE:
            general.append(Scope(whole, name, name, lens))
        elif whole.n_classes <= 2 and CANONICAL in options.lenses:
            if not default_lenses:
                reason = "of two classes one probability says all, and the canonical lens looks at it"
                skip("each class by itself", reason)
        else:
            others = np.minimum(sums_of_others(whole.probs), 1.0)
            for column in range(whole.n_classes) if whole.n_classes > 2 else [1]:
                # By its name, if it has one, which no other has.
                one = ClassWise(whole.classes[column] if whole.classes else column)
                classes.append(Scope(whole, name, one.label, one, column, others))
    overall = [scope.look() for scope in general]
    by_class = eventful([scope.look() for scope in classes], "classes by themselves")
    by_group = [scope.look(*group) for group in groups for scope in general]
    cells = [look.scope.look(*group) for group in groups for look in by_class]
    cells = eventful(cells, "pairs of a class and a group")
    add(overall)
    add(by_class, "classes by themselves, those with the fewest events", MOST_HYPOTHESES // 2)
    add(by_group, "looks at groups, those with the fewest rows")
    work = MOST_WORK / (1 + n_draws) if n_draws and default_lenses else np.inf
    add(cells, "pairs of a class and a group, those with the fewest events", work=work)
    if not found:
        reasons = "; ".join(f"{each.what}: {each.reason}" for each in skipped[:3])
        raise InputError(f"there is nothing to test: {reasons}.")
    place = {None: -1} | {group: number for number, (group, _) in enumerate(groups)}
    each = [look for look in (*overall, *by_class, *by_group, *cells) if look in found]
    looks = sorted(each, key=lambda look: place[look.group])
    return Plan(
        looks=tuple(looks),
        hypotheses=tuple((look, statistic) for look in looks for statistic in found[look]),
        skipped=tuple(skipped),
        columns=tuple(grouping.column for grouping in groupings),
        unseen=unseen,
    )


def _unstated(whole: Rows, lens: Lens | None) -> str:
    """Return why forecasts do not state what a lens looks at, as a clause; "" if they do."""
    quantiles, size = getattr(whole.law, "levels", None) is not None, getattr(whole.law, "size", None)
    kind, _, level = within("" if lens is None else lens.label)[1].partition(":")
    if size is not None and kind in ("interval", "quantile"):
        tail = min(float(level), 1.0 - float(level)) if kind == "quantile" else 0.5 - 0.5 * float(level)
        if tail * size < 1.0 - 1e-9:
            return f"{counted(size - 1, 'member')} state no tail of {100.0 * tail:g}%"
    if quantiles and whole.clusters is not None and lens is not None and lens.label == DISTRIBUTION:
        return "of quantile forecasts in clusters events alone are checked"
    try:
        shown = show(whole.take(np.arange(1)), lens).rows
    except InputError as error:
        return str(error).rstrip(".")
    if size is not None and kind in ("interval", "quantile"):
        share = 1.0 / size  # of one of the pool, which may be as much as ties add to an interval
        if share > _COARSE and abs(float(shown.probs[0, 1]) - float(level)) > _COARSE:
            return f"{counted(size - 1, 'member')} state nothing near {100.0 * float(level):g}%"
    return ""


#: What a call that repeats an audit names, in this order, where it is not the default.
_NAMED = (
    "lenses", "statistics", "alpha", "tolerance", "correction", "min_rows", "n_resamples",
    "intersections", "event", "class_names", "sampling_rates", "rounding", "materiality",
    "materiality_ratio", "logits",
)  # fmt: skip


def call_of(
    function: Callable[..., Any],
    given: Mapping[str, object],
    columns: tuple[str, ...],
    of_rows: Iterable[str],
    seed: int,
    of_numbers: bool,
) -> str:
    """Write the call that repeats an audit, with what was given and is not the default.

    What has an entry per row (weights, clusters) stands there by its name.
    """

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            pairs = (f"{written(name)}: {written(each)}" for name, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, list | tuple):
            each = ", ".join(map(written, value))
            return f"[{each}]" if isinstance(value, list) else f"({each}{',' * (len(value) == 1)})"
        if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
            return str(value.__name__)
        if has(value, "tolist"):  # numbers and arrays of NumPy, names in an index of pandas
            return repr(value.tolist())
        return repr(value)

    parts = ["predicted", "outcomes"] if of_numbers else ["probs", "labels"]
    if (groups := given["groups"]) is not None:
        native: Any = nw.from_native(groups, eager_only=True, allow_series=True, pass_through=True)
        frame = isinstance(native, nw.DataFrame)
        parts.append(f"groups=groups[{list(columns)!r}]" if frame else "groups=groups")
    parts += [f"{name}={name}" for name in of_rows]
    defaults = signature(function).parameters
    for name in _NAMED:
        value = given[name]
        same = written(tuple(value) if isinstance(value, list) else value)
        if same != written(defaults[name].default):
            parts.append(f"{name}={written(value)}")
    return f"caltest.{function.__name__}({', '.join([*parts, f'rng={seed}'])})"
