"""Options of an audit: lenses, statistics, their defaults, and the call that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import combinations
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from caltest import lenses as registered
from caltest._arguments import choose, has
from caltest._arguments import limit as limit_of
from caltest._parallel import ALONE, Workers
from caltest._visible import quoted
from caltest.auditing.limits import BOTH, Limit
from caltest.exceptions import Argument, InputError
from caltest.forms import Side
from caltest.laws import Covered, Law, Point, Pools, Quantiles, Survival
from caltest.lenses import Entry, Lens, OfVectors, Pair, find_lens
from caltest.nulls import MonteCarlo
from caltest.pvalues import check_correction
from caltest.sampling import Rng, seed_of
from caltest.statistics import Statistic, StatisticLike, find_statistic
from caltest.tolerance import check_possible

Lenses: TypeAlias = "str | Lens | Sequence[str | Lens]"
Materiality: TypeAlias = "float | Mapping[str, float | None] | None"
Statistics: TypeAlias = (
    "StatisticLike | Sequence[StatisticLike] | Mapping[str, StatisticLike | Sequence[StatisticLike]]"
)

CANONICAL = "canonical"
CLASSWISE = "classwise"
TOP_LABEL = "top_label"
DISTRIBUTION = "distribution"
COVERAGE = "coverage"  #: For sets, whose rows are covered or not.
LENSES = (CANONICAL, TOP_LABEL, CLASSWISE)
#: For distributions of numbers: the whole, intervals, the median and both tails.
LENSES_OF_NUMBERS = (
    DISTRIBUTION, "interval:0.5", "interval:0.8", "interval:0.95", "quantile:0.5", "quantile:0.025",
    "quantile:0.975",
)  # fmt: skip
_OF_VECTORS = (DISTRIBUTION, "ranks:average", "ranks:band_depth")
_FOLLOWED = 0.1  # share of rows that must be followed until the last default horizon
_MOST_PAIRED = 20  # entries up to which all pairs are examined
WESTFALL_YOUNG = "westfall_young"

ALPHA = 0.05
MIN_ROWS = 50
N_RESAMPLES = 999
INTERSECTIONS = 2


def _lenses_for(law: Law, lenses: Lenses, default: bool) -> Lenses:
    """Return the requested or default lenses; for vectors those of every entry.

    Pairs of entries are included by default if there are few entries.
    """
    if default and isinstance(law, Survival):
        return lenses_of_times(law)
    if default and isinstance(law, Quantiles):
        return _lenses_stated(law)
    if not isinstance(law, Pools):
        return LENSES_OF_NUMBERS if default and law.n_classes is None else lenses
    found: list[str | Lens] = list(_OF_VECTORS) if default and len(law.names) > 1 else []
    for one in _several(LENSES_OF_NUMBERS if default else lenses):
        lens = one if one is None else find_lens(one)
        if isinstance(lens, OfVectors) or not getattr(lens, "of_numbers", False):
            found.append(one)
        else:
            found += [Entry(name, lens) for name in law.names]
    if default and len(law.names) <= _MOST_PAIRED:
        found += [Pair(*names) for names in combinations(law.names, 2)]
    return found


def _lenses_stated(law: Quantiles) -> tuple[str, ...]:
    """Return the default lenses at the nearest levels that many rows state.

    If the stated levels nearest to the ends of an interval are not symmetric, each is examined as a
    quantile.
    """
    counts = (~np.isnan(law.values)).sum(axis=0)
    levels: list[float] = law.levels[2 * counts >= counts.max()].round(9).tolist()

    def nearest(level: float) -> float:
        """Return the nearest stated level; if two are equally near, the one farther from the median."""
        return min(levels, key=lambda each: (round(abs(each - level), 9), -abs(each - 0.5)))

    widths, single = set(), set()
    for kind, _, level in (name.partition(":") for name in LENSES_OF_NUMBERS[1:]):
        half = 0.5 * float(level)
        ends = (0.5 - half, 0.5 + half) if kind == "interval" else (float(level),)
        stated = [nearest(end) for end in ends]
        if (width := round(stated[-1] - stated[0], 9)) and round(sum(stated), 9) == 1.0:
            widths.add(f"interval:{width:.9g}")
        else:
            single.update(stated)
    return (DISTRIBUTION, *sorted(widths), *(f"quantile:{at:.9g}" for at in sorted(single)))


def lenses_of_times(law: Survival) -> tuple[str, ...]:
    """Return the default lenses: the whole, the time of half the predicted events, and the end.

    Horizons are times stated by the curves, unless these are many. The whole distribution is left out
    if curves state few times and nothing between them. The end is the time until which a tenth of the
    rows are still followed; observed minus expected events are 0 on average there as anywhere, because
    the number of rows followed is not informative about later events.
    """
    marks, stated = law.marks(100)
    last, ended = float(marks[-1]), law.last if law.seen is None else np.abs(law.seen)
    followed = np.array([float(np.mean(ended >= time)) for time in marks])
    marks = marks[: max(int(np.sum(followed >= _FOLLOWED)), 1)]
    risks = np.array([float(law.risk(time).mean()) for time in marks])
    half = int(np.searchsorted(risks, 0.5 * risks[-1]))
    # Where curves need not state the exact time, use few digits, unless that is beyond the last.
    plain = stated and (law.coarse or all(law.stated_time(float(f"{t:.6g}")) == t for t in marks))
    times = [
        float(time if plain else min(float(f"{time:.{digits}g}"), last))
        for time, digits in ((marks[half], 2), (marks[-1], 3))
    ]
    texts = [f"{t:.12g}" if law.stated_time(float(f"{t:.12g}")) <= t else str(t) for t in times]
    whole = () if law.horizon is not None or law.coarse else (DISTRIBUTION,)
    starts = [f"cause:{cause}/" for cause in law.causes] or [""]
    return (*whole, *dict.fromkeys(f"{start}until:{text}" for start in starts for text in texts))


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of an audit, resolved as far as possible without data.

    ``lenses`` are the requested ones by name, ``statistics`` those of each; None stands for the
    defaults. With rounding there always is a tolerance, possibly 0.
    """

    lenses: dict[str, Lens | None]
    statistics: dict[str, tuple[Statistic, ...] | None]
    correction: str
    alpha: float = ALPHA
    tolerance: float | None = None
    rounding: float | None = None
    materiality: Materiality = None
    materiality_ratio: float | None = None
    sides: tuple[Side, ...] = BOTH  #: Sides that are tested, unless a limit says otherwise.
    min_rows: int = MIN_ROWS
    intersections: int = INTERSECTIONS
    guaranteed: bool = False
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    workers: Workers = ALONE
    usual: bool = False  #: Whether lenses are the default ones.

    @classmethod
    def of(
        cls,
        law: Law | None = None,
        *,
        lenses: Lenses = LENSES,
        statistics: Statistics | None = None,
        tolerance: float | None = None,
        rounding: float | None = None,
        correction: str | None = None,
        rng: Rng = 0,
        n_jobs: int | None = None,
        progress: bool = False,
        **others: Any,
    ) -> Options:
        """Look names up and check combinations; default lenses depend on the law."""
        tolerance = tolerance if rounding is None else tolerance or 0.0
        if correction is None:
            correction = WESTFALL_YOUNG if tolerance is None else "holm"
        if correction != WESTFALL_YOUNG:
            check_correction(correction, WESTFALL_YOUNG)
        elif tolerance is not None:
            why = "every p-value has draws of its own, which 'westfall_young' cannot adjust jointly"
            do = f"give {Argument('correction', 'holm')}, or leave it out"
            raise InputError(f"with a tolerance {why}; {do}.")
        usual = isinstance(lenses, tuple) and lenses == LENSES
        covered, limit = isinstance(law, Covered), others.get("materiality")
        high = isinstance(limit, Mapping) and limit.get("too_high") is not None
        if covered and (tolerance is not None or not usual or high):
            least = Argument("materiality", {"too_low": 0.02}, shell="--materiality-low 0.02")
            do = f"give no lenses, no tolerance, and a limit of coverage that is too low: {least}"
            raise InputError(f"sets claim that at least so many rows are covered; {do}.")
        if not isinstance(law, Point) and limit is not None:
            limit_of("materiality", limit, 1.0)
        found = _lenses(lenses if law is None else _lenses_for(law, lenses, usual))
        found = {COVERAGE: None} if covered else found
        if isinstance(law, Point):
            if tolerance is not None or not usual:
                do = "leave lenses, tolerance and rounding out"
                found_of = f"of point forecasts errors of the {law.functional} are looked at"
                raise InputError(f"{found_of}; {do}.")
            if others.get("materiality_ratio") is not None and law.tau != 0.5:
                text = "a ratio is of means, and these are expectiles; give a limit in units."
                raise InputError(text)
            if others.get("materiality_ratio") is not None and (law.low is None or law.low < 0.0):
                text = "a ratio is of numbers that are not negative; give {low}, or a limit in units."
                raise InputError(text, low=Argument("low", 0))
            found = {law.functional: None}
        given = statistics if isinstance(statistics, Mapping) else dict.fromkeys(found, statistics)
        for name in given:
            choose("lens among those asked for", name, found)
        by_lens = dict[str, tuple[Statistic, ...] | None].fromkeys(found)  # the default ones
        for name, some in given.items():
            if some is not None:
                by_lens[name] = those = tuple(map(find_statistic, _several(some)))
                if not those:
                    raise InputError("statistics is empty; give at least one, or leave it out.")
                for each in those if tolerance is not None else ():
                    check_possible(each, MonteCarlo(), None)
        return cls(
            lenses=found,
            statistics=by_lens,
            correction=correction,
            tolerance=tolerance,
            rounding=rounding,
            seed=seed_of(rng),
            workers=Workers(n_jobs, progress),
            sides=BOTH if law is None else law.sides,
            usual=usual or tuple(found) in (LENSES, LENSES_OF_NUMBERS),
            **others,
        )

    @property
    def limit(self) -> Limit:
        """The mean error that matters; falsy if there is none."""
        return Limit.of(self.materiality, self.materiality_ratio, self.sides)


def _several(given: Any) -> Iterable[Any]:
    """Return lenses or statistics as an iterable, even a single one."""
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
        if (lens := find_lens(one)) is None:
            raise InputError("lenses holds None; the full probability vector is 'canonical'.")
        found[lens.label] = lens
    if not found:
        raise InputError("{argument} holds nothing; give one, such as 'top_label'.", argument="lenses")
    return found


#: Arguments that the repeated call names differently, or need not name.
_APART = ("probs", "labels", "groups", "features", "weights", "clusters", "rng", "n_jobs", "progress")


def call_of(
    function: Callable[..., Any],
    given: Mapping[str, object],
    columns: Mapping[str, Sequence[str]],
    of_rows: Sequence[str],
    seed: int,
    of_numbers: bool,
) -> str:
    """Write the call that repeats an audit, with all arguments that differ from their defaults.

    Arguments with an entry per row (weights, clusters) and a learner are written by name; groups and
    features also with the names of their ``columns``.
    """

    def written(value: Any) -> str:
        if isinstance(value, Mapping):
            return f"{{{', '.join(f'{written(k)}: {written(each)}' for k, each in value.items())}}}"
        if isinstance(value, list | tuple):
            each = ", ".join(map(written, value))
            return f"[{each}]" if isinstance(value, list) else f"({each}{',' * (len(value) == 1)})"
        if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
            return str(value.__name__)
        # Write NumPy numbers and arrays, and names in a pandas index, as plain values.
        return repr(value.tolist() if has(value, "tolist") else value)

    parts = ["predicted", "outcomes"] if of_numbers else ["probs", "labels"]
    for name, own in columns.items():
        native: Any = nw.from_native(given[name], eager_only=True, allow_series=True, pass_through=True)
        some = f"[{list(own)!r}]" if isinstance(native, nw.DataFrame) else ""
        parts += [f"{name}={name}{some}"] if native is not None or own else []
    parts += [f"{name}={name}" for name in of_rows]
    # Leave out arguments with an entry per row: they would be too long.
    options = signature(function).parameters.values()
    for option in (each for each in options if each.name not in (*_APART, *of_rows)):
        value = given[option.name]
        if written(tuple(value) if isinstance(value, list) else value) != written(option.default):
            parts.append(f"{option.name}={written(value)}")
    return f"caltest.{function.__name__}({', '.join([*parts, f'rng={seed}'])})"
