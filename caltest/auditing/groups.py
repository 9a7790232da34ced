"""Group columns, read from containers of any kind."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._numbers import counted, leading, positional
from caltest._visible import quoted, shown_column, shown_value
from caltest.auditing.views import Condition, Group, Skipped
from caltest.data import Sample
from caltest.data.containers import EMPTY, columns_of, entries_of, listed
from caltest.data.features import Features
from caltest.data.premises import functions_of_outcome
from caltest.exceptions import InputError, Premise, Row
from caltest.laws import Predictive
from caltest.spelling import column_of, different, is_missing, number_of

Places: TypeAlias = NDArray[np.intp]

MISSING = "(missing)"
NO_NUMBER = "(not a number)"
MOST_VALUES = 1000
FEWEST_ROWS = 2  # rows in a group: pair statistics need two
MOST_NUMBERS = 20  # distinct numbers in a column; columns with more are cut into ranges
_TENTHS = 10  # ranges of the predicted level or spread
_NAMED = 20  # small groups of a column that are named
_ONLY_NAME = "group"  # name of a column without a name
_MOST_CROSSED = 50_000_000  # rows held for all groups of several columns: 400 MB
_CODE = re.compile(r"0\d+")


class Grouping(NamedTuple):
    """The groups of one column: their values as text, in order, and the value index of each row."""

    column: str
    values: tuple[str, ...]
    member: Places
    cut: int = 0  # number of distinct values, if they were cut into ranges
    notes: tuple[str, ...] = ()  # about entries of an unusual kind
    crosses: bool = True  # whether it is crossed with other columns
    doubts: tuple[Premise, ...] = ()  # about values that look like a missing value

    def rows(self) -> list[Places]:
        """Return the row numbers of each value."""
        return _parts(self.member, len(self.values))


def read_groups(
    groups: object, n_rows: int, counting: Places | None = None, **beside: object
) -> tuple[Grouping, ...]:
    """Read group columns as `audit` takes them; ``beside``: other arguments with these rows, by name.

    Values are compared as spelled; missing values form their own group. If ``counting`` is given,
    groups are formed from these rows as if there were no others.
    """
    columns = columns_of(groups, "groups", _ONLY_NAME, n_rows, entries_of, beside)
    return tuple(_grouping(name, cells, counting) for name, cells in columns.items())


def group_texts(groups: object, n_rows: int, **beside: object) -> dict[str, list[str]]:
    """Read group columns without cutting numbers into ranges: a text per row, by column name."""
    found = dict[str, list[str]]()
    for name, cells in columns_of(groups, "groups", _ONLY_NAME, n_rows, entries_of, beside).items():
        own = column_of(cells, f"column {shown_column(name)!r}", "group")
        apart = [f"({text})" if text in (MISSING, EMPTY) else text for text in own.texts]
        values = [MISSING if text is None else text or EMPTY for text in apart]
        found[name] = [values[code] for code in own.codes]
    return found


def by_prediction(law: Predictive, taken: Iterable[str], min_rows: int) -> Iterable[Grouping]:
    """Group rows by predicted level and predicted spread, in tenths if there are enough rows."""
    for column, values in ((law.level_name, law.level()), ("predicted spread", law.spread())):
        column = f"{column} (of the model)" if column in taken else column
        largest = float(np.abs(np.nan_to_num(values, posinf=0.0, neginf=0.0)).max()) or 1.0
        values = np.round(values / largest, 9) * largest  # differences by rounding vanish
        first, last = _cut(values, min(_TENTHS, law.n_samples // max(min_rows, FEWEST_ROWS)))
        if len(last) > 1:
            yield _in_ranges(column, values, first, last)


def _in_ranges(column: str, values: Any, first: Any, last: Any) -> Grouping:
    """Group numbers by ranges, named with as few digits as distinguish them."""
    for digits in range(2, 18):
        names = [" to ".join(dict.fromkeys(ends)) for ends in _ends(first, last, digits)]
        if len(set(names)) == len(names):
            break
    return Grouping(column, tuple(names), np.searchsorted(last, values).astype(np.intp), crosses=False)


def claimed(
    sets: Any, groups: Sequence[Grouping], features: Sequence[Grouping], min_rows: int
) -> tuple[tuple[Grouping, ...], ...]:
    """Return the columns for which sets claim coverage (size and class too), and the other columns.

    Sizes with few rows are merged, and empty sets with the next size; interval widths are cut into
    fifths.
    """
    size = sets.size.astype(np.float32)  # differences by rounding vanish in float32
    sizes, counts = np.unique(size, return_counts=True)
    fewest = min_rows if sets.names else max(min_rows, sets.n_samples // 5)
    first, held = [0], 0
    for k, count in enumerate(counts.tolist()):
        if held >= fewest and sizes[k - 1] > 0.0 and (counts[k:].sum() >= fewest or len(first) == 1):
            first, held = [*first, k], 0
        held += count
    last = [*(k - 1 for k in first[1:]), len(sizes) - 1]
    name = "set size" if sets.names else "interval width"
    every = {"groups": groups, "features": features}
    every["size"] = [_in_ranges(name, size, sizes[first], sizes[last])]
    if sets.names:
        seen, codes = np.unique(sets.codes, return_inverse=True)
        every["class"] = [Grouping("class", tuple(sets.names[k] for k in seen), codes, crosses=False)]
    return tuple(
        tuple(one for claim, each in every.items() if (claim in sets.claims) is told for one in each)
        for told in (True, False)
    )


def _cut(numbers: NDArray[np.float64], parts: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cut numbers at their quantiles, keeping ties together; return first and last values of parts."""
    ordered = np.sort(numbers)
    last = np.unique(ordered[-(-np.arange(1, parts + 1) * len(ordered) // max(parts, 1)) - 1])
    return np.append(ordered[0], ordered[np.searchsorted(ordered, last[:-1], "right")]), last


def _parts(member: Places, count: int) -> list[Places]:
    """Return the row numbers of each of ``count`` values, in order."""
    places = np.argsort(member, kind="stable")
    return np.split(places, np.cumsum(np.bincount(member, minlength=count))[:-1])


def _ranges(
    column: str, cells: list[Any], codes: Places, values: Any, counting: Places | None
) -> Grouping | None:
    """Cut a column of many distinct numbers at its quantiles, keeping ties together; None if few.

    Values are numbers, or texts as spelled. A few entries may not be numbers: they form their own
    group. Codes with leading zeros are text.
    """
    text, absent = np.zeros((2, len(values)), dtype=np.bool_)
    each = np.asarray(values)
    if each.dtype.kind not in "iuf":
        if any(value is not None and _CODE.fullmatch(value) for value in values):
            return None
        each, text = np.array([number_of(x) for x in values]), np.array([bool(x) for x in values])
        absent = np.array([value is None or is_missing(value) for value in values])
    each = each.astype(np.float64)  # large integers may become equal
    is_number, times = np.isfinite(each), np.bincount(codes, minlength=len(values))
    absent |= np.isnan(each) & ~text
    other = ~is_number & ~absent
    # A column of numbers may hold at most a tenth of other entries.
    if times[other].sum() > 0.1 * times[~absent].sum():
        return None
    numbers = np.where(is_number, each, np.nan)[codes]
    known = numbers[is_number[codes]]
    if (different := len(np.unique(each[is_number]))) <= MOST_NUMBERS:
        return None
    first, last = _cut(known, 5)
    if len(last) == 1:  # most rows hold the largest number
        last = np.append(known[known < last].max(), last)
        first = np.append(first, last[1])
    written = [_ends(first, last, digits) for digits in (4, 6, 9, 17)]
    apart = (ends for ends in written if len({x for each in ends for x in each}) == sum(map(len, ends)))
    names = [" to ".join(each) for each in next(apart, written[-1])]
    member = np.searchsorted(last, numbers).astype(np.intp)
    notes: list[str] = []
    for name, those in ((NO_NUMBER, other), (MISSING, absent & ~is_number)):
        if times[those].any():
            member[those[codes]] = len(names)
            names.append(name)
        if (said := (those & (text | other))[codes]).any():
            row, many = int(np.argmax(said)), int(said.sum())
            place = Row(row if counting is None else int(counting[row]))
            one = f"the first is {quoted(cells[row])} in {place}"
            found = f"Column {shown_column(column)!r} holds no number in {counted(many, 'row')} ({one})"
            notes.append(f"{found}; there the group is {name!r}.")
    return Grouping(column, tuple(names), member, different, tuple(notes))


def _ends(first: np.ndarray, last: np.ndarray, digits: int) -> list[list[str]]:
    """Write the ends of ranges; a range of a single number has one end."""
    pairs = zip(first.tolist(), last.tolist(), strict=True)
    return [[positional(end, digits) for end in dict.fromkeys(pair)] for pair in pairs]


def _grouping(column: str, cells: list[Any], counting: Places | None) -> Grouping:
    if counting is not None:
        cells = [cells[row] for row in counting]
    what = f"column {shown_column(column)!r}"
    codes, numbers = read = different(cells, what)
    if numbers.dtype.kind in "iuf" and (found := _ranges(column, cells, codes, numbers, counting)):
        return found
    codes, texts, notes, doubts = column_of(cells, what, "group", read=read)
    if found := _ranges(column, cells, codes, texts, counting):
        return found._replace(notes=(*found.notes, *notes))
    names: dict[str | None, str] = {}
    for text in texts:  # missing and empty values get a name that no other value has
        names[text] = text or (MISSING if text is None else EMPTY)
        while not text and names[text] in texts:
            names[text] = f"({names[text]})"
    if len(names) > MOST_VALUES:
        many = f"column {quoted(column)} of groups has {len(names):,} different values"
        do = "leave it out, or merge values"
        raise InputError(f"{many}, more than the {MOST_VALUES:,} that are possible; {do}.")

    def place(text: str | None) -> tuple[int, float, str]:
        """Return the sort key of a value: numbers by size, then text, then missing."""
        name, number = names[text], math.nan
        with suppress(ValueError):
            number = float(name)
        return (2 if text is None else int(number != number)), 0.0 if number != number else number, name

    rank = {text: k for k, text in enumerate(sorted(names, key=place))}
    member = np.array([rank[text] for text in texts], dtype=np.intp)[codes]
    return Grouping(column, tuple(names[x] for x in rank), member, notes=notes, doubts=doubts)


def notes_on(groupings: Iterable[Grouping]) -> tuple[str, ...]:
    """Return notes on how columns were read."""
    found = [
        f"Column {shown_column(each.column)!r} has {each.cut:,} different numbers, and was cut at its "
        f"own quantiles into {sum(value not in (NO_NUMBER, MISSING) for value in each.values)} ranges "
        "of about equally many rows; equal numbers stay together."
        for each in groupings
        if each.cut
    ]
    return (*found, *(note for each in groupings for note in each.notes))


def known_before(
    groupings: Sequence[Grouping], sample: Sample
) -> tuple[tuple[Grouping, ...], tuple[Premise, ...]]:
    """Return the columns that are not functions of the outcome, and a premise for each other one."""
    codes = {each.column: (each.member, each.member) for each in groupings}
    found = functions_of_outcome(codes, sample, "groups", "its groups are not examined")
    return tuple(each for each in groupings if each.column not in found), tuple(found.values())


def sought(whole: Sample, columns: Sequence[str]) -> tuple[Sample, tuple[Premise, ...]]:
    """Drop features that are also groups, or functions of the outcome; return premises about these."""
    rows, features = whole.rows, whole.rows.features
    if features is None:
        return whole, ()
    own = tuple(each for each in features.columns if each.name not in columns)
    codes = {each.name: each.codes() for each in own}
    found = functions_of_outcome(codes, whole, "features", "it is not searched")
    kept = tuple(each for each in own if each.name not in found)
    twice = [each.name for each in features.columns if each.name in columns]
    notes = (f"Not searched, nor inside them, as they are groups: {listed(twice)}.",) * bool(twice)
    features = Features(kept, features.notes) if kept else None
    rows = replace(rows, features=features, notes=(*rows.notes, *notes))
    return replace(whole, rows=rows), tuple(found.values())


def large_enough(grouping: Grouping, min_rows: int) -> tuple[list[tuple[Group, Places]], list[Skipped]]:
    """Split the groups of a column into those to examine and those too small, with the reason."""
    column = shown_column(grouping.column)
    if len(grouping.values) == 1:
        value = shown_value(grouping.values[0]).strip("'")
        reason = f"all rows have the one value '{value}', so it is no group of its own"
        return [], [Skipped(f"column '{column}'", None, reason)]
    fewest = max(min_rows, FEWEST_ROWS)
    pairs = list(zip(grouping.values, grouping.rows(), strict=True))
    large = [(value, rows) for value, rows in pairs if fewest <= len(rows) < len(grouping.member)]
    kept = [(Group((Condition(grouping.column, value),)), rows) for value, rows in large]
    small = [(value, len(rows)) for value, rows in pairs if len(rows) < fewest]
    small.sort(key=lambda each: -each[1])
    reason = f"fewer than {fewest} rows"
    named = leading(small, _NAMED)
    skipped = [Skipped(Condition(grouping.column, value).words, rows, reason) for value, rows in named]
    if rest := small[len(named) :]:
        what = f"{len(rest):,} more groups of {column}"
        skipped.append(Skipped(what, sum(rows for _, rows in rest), f"{reason} each"))
    return kept, skipped


def crossed(
    groupings: Sequence[Grouping], intersections: int, min_rows: int
) -> tuple[list[tuple[Group, Places]], list[Skipped]]:
    """Cross up to ``intersections`` columns; groups that are too small are reported."""
    several = [grouping for grouping in groupings if len(grouping.values) > 1 and grouping.crosses]
    fewest = max(min_rows, FEWEST_ROWS)
    kept, skipped, held = list[tuple[Group, Places]](), list[Skipped](), 0
    for count in range(2, intersections + 1):
        for numbers in combinations(range(len(several)), count):
            each = [several[k] for k in numbers]
            name = " × ".join(shown_column(grouping.column) for grouping in each)
            held += len(each[0].member)
            if held > _MOST_CROSSED:
                reason = "with so many rows and columns the groups would take too much memory"
                skipped.append(Skipped(f"groups by {name}", None, reason, inside=False))
                continue
            shape = tuple(len(grouping.values) for grouping in each)
            member = np.ravel_multi_index([grouping.member for grouping in each], shape)
            codes, member, rows_of = np.unique(member, return_inverse=True, return_counts=True)
            parts = _parts(member.reshape(-1), len(codes))
            for code, rows, size in zip(codes.tolist(), parts, rows_of.tolist(), strict=True):
                if fewest <= size < len(member):
                    values = map(int, np.unravel_index(code, shape))
                    named = [(g.column, g.values[value]) for g, value in zip(each, values, strict=True)]
                    kept.append((Group(tuple(Condition(*one) for one in named)), rows))
            small = rows_of[rows_of < fewest]
            if len(small):
                what = f"{len(small):,} of {len(codes):,} groups by {name}"
                skipped.append(Skipped(what, int(small.sum()), f"fewer than {fewest} rows each"))
    return kept, skipped


def distinct(every: Iterable[tuple[Group, Places]]) -> tuple[list[tuple[Group, Places]], list[Skipped]]:
    """Keep the first of groups with the same rows; report the others, except its own crossings."""
    first: dict[bytes, Group] = {}
    kept, skipped, more = list[tuple[Group, Places]](), list[Skipped](), 0
    for group, rows in every:
        if (own := first.setdefault(sha256(rows.data).digest(), group)) is group:
            kept.append((group, rows))
        elif set(own.conditions) <= set(group.conditions):
            continue
        elif len(group.conditions) > 1 or len(skipped) == _NAMED:
            more += 1
        else:
            name, same = (", ".join(each.words for each in one.conditions) for one in (group, own))
            skipped.append(Skipped(name, None, f"it has the same rows as {same}"))
    if more:
        skipped.append(Skipped(f"{more:,} more groups", None, "each has the same rows as another one"))
    return kept, skipped
