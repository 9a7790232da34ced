"""`Rows` and `Sample`: predictions, labels, weights and clusters; a subsample of very many rows."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from caltest._arguments import wrong
from caltest._numbers import counted
from caltest._sums import Places, blocks
from caltest._visible import quoted
from caltest.data.containers import cells_of, read_table, shape_of
from caltest.data.features import Features, read_features, read_order
from caltest.exceptions import Argument, InputError, Premise
from caltest.laws import Classes, Covered, Law, Point
from caltest.laws.classes import Array, Outcomes, read_only
from caltest.laws.sets import refuse_sets
from caltest.spelling import Spelled, column_of, is_number, moment_of

# ------------------------------------------------------------------ weights


#: A share of the largest weight, or of the mean, too small to change any double-precision sum.
_NOTHING = 1e-60


def effective_number(sizes: Array) -> float:
    """Return (Σ s)²/Σ s², the number of equal sizes that would be as noisy; 0 if all are 0."""
    return float(sizes.sum() ** 2 / max(float(sizes @ sizes), 1e-300))


class Extent(NamedTuple):
    """Totals over all rows, for use with a part of them.

    Attributes
    ----------
    rows
        Number of rows n.
    total
        The sum of their weights; n if all have equal weight.
    pairs
        Σ_{i≠j} w_i w_j; n (n − 1) if all have equal weight.
    """

    rows: int
    total: float
    pairs: float

    @classmethod
    def alike(cls, n: int) -> Extent:
        """Return the extent of rows of equal weight."""
        return cls(n, float(n), n * (n - 1.0))

    @property
    def effective(self) -> float:
        """Effective number of rows, (Σ w)²/Σ w²."""
        return self.total**2 / (self.total**2 - self.pairs)

    @property
    def are_alike(self) -> bool:
        """Whether all rows have equal weight."""
        return self == type(self).alike(self.rows)


@dataclass
class Weighing:
    """Sums of weights that are added part by part."""

    rows: int = 0
    total: float = 0.0  # in units
    squares: float = 0.0
    least: float = np.inf
    largest: Array = field(default_factory=lambda: np.zeros(2))  # the second largest, and the largest

    @property
    def unit(self) -> float:
        """A power of two near the largest weight, so that squares do not overflow."""
        return 2.0 ** (math.frexp(max(self.largest[1], 5e-324))[1] - 1)

    def add(self, weights: Array) -> None:
        """Add checked weights of some rows."""
        before, self.largest = self.unit, np.sort(np.append(self.largest, np.sort(weights)[-2:]))[-2:]
        shrunk, weights = before / self.unit, weights / self.unit
        self.rows += len(weights)
        self.total = self.total * shrunk + float(weights.sum())
        self.squares = self.squares * shrunk**2 + float(weights @ weights)
        self.least = min(self.least, float(weights.min()) * self.unit)

    def scaled(self, weights: Array) -> Array:
        """Return the weights of some of these rows, scaled so that all have mean 1."""
        check_some(self.largest)
        if self.least == self.largest[1]:
            return np.ones(len(weights))
        weights = weights / self.unit / (self.total / self.rows)
        return np.where(weights < _NOTHING, 0.0, weights)

    @property
    def extent(self) -> Extent:
        """The extent for a part, with weights of mean 1."""
        if self.least == self.largest[1]:
            return Extent.alike(self.rows)
        n = float(self.rows)
        return Extent(self.rows, n, n**2 - self.squares / (self.total / n) ** 2)


def check_alike(rows: Any, what: str, do: str, *, weighted: str | None = None) -> None:
    """Raise if rows are in clusters, or have weights: the next step needs independent, equal rows."""
    refuse_sets(rows.law, f"{what} is of errors of both sides")
    refuse_clusters(rows.clusters, what)
    if not rows.are_alike:
        raise InputError(f"{weighted or what} takes no weights, and these rows have some; {do}.")


def check_some(weights: Array) -> None:
    """Raise unless at least two weights are positive, and comparable."""
    if np.count_nonzero(weights > _NOTHING * weights.max(initial=0.0)) < 2:
        found = ("all are 0", "all but one are 0", "one is more than 1e60 times every other")
        what = found[min(int(np.count_nonzero(weights)), 2)]
        raise InputError(f"weights leaves nothing to test, as {what}; two rows at least must count.")


def row_weights(given: object, n: int) -> Array:
    """Return the weight of each row, (n,), with mean 1 over those above 0.

    Raises
    ------
    InputError
        If these are not n finite, non-negative numbers, at least two of them positive.

    Examples
    --------
    >>> row_weights([1, 1, 4], 3).tolist(), row_weights([2.0, 2.0, 0.0], 3).tolist()
    ([0.5, 0.5, 2.0], [1.0, 1.0, 0.0])
    """
    return on_average_one(checked_weights(given, n))


def checked_weights(given: object, n: int) -> Array:
    """Return checked weights of n rows, or of a part of them, unscaled."""
    table = read_table(given, "weights")
    values = table.flat
    if values.ndim != 1:
        do = "give one number per row, as an array of shape (n,)"
        raise InputError(f"weights has shape {shape_of(values)}; {do}.")
    if table.is_text:
        found = quoted(values[0]) if len(values) else "nothing"
        text = "weights holds text ({found} comes first), not numbers; give one number per row."
        raise InputError(text, argument="weights", found=found)
    if len(values) != n:
        found = f"{counted(len(values), 'entry', 'entries')}, and there are {counted(n, 'row')}"
        raise InputError(f"weights has {found}; give one weight for every row.")
    weights = values.astype(np.float64)
    wrong = np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))
    if len(wrong):
        found = f"{weights[wrong[0]]:g}"
        text = "{argument} has {found} in {row}; give finite numbers, 0 or more."
        raise InputError(text, argument="weights", found=found, row=int(wrong[0]))
    return weights


def on_average_one(weights: Array) -> Array:
    """Return checked weights divided by the mean of those above 0."""
    check_some(weights)
    weights = weights / weights.max()  # so that their sum does not overflow
    weights = np.where(weights > _NOTHING, weights, 0.0)
    counting = weights[weights > 0.0]  # identical to the last bit to weights without zeros
    return weights if counting.min() == 1.0 else weights / counting.mean()


# ------------------------------------------------------------------ clusters

_OWN = "a row that depends on no other is a cluster of its own, so give it a name that no other row has"


_LENGTH, _MONDAY = re.compile(r"([1-9]\d{0,5}) ?(h|d|w|mo)"), np.datetime64("1969-12-29", "us")


def in_blocks(cells: Sequence[Any], length: str) -> list[int]:
    """Return the number of the time block for every date or time of a column, (n,).

    Blocks have length "12h", "7d", "4w" or "1mo", one after another; weeks start on Mondays.

    Examples
    --------
    >>> in_blocks(["2024-01-05", "2024-01-07T23:00", "2024-01-08"], "7d")
    [2818, 2818, 2819]
    """
    parsed, found = _LENGTH.fullmatch(length), column_of(cells, "clusters", "cluster", _OWN)
    if parsed is None:
        do = "give a number of hours, days, weeks or months, such as '12h', '7d', '4w' or '1mo'"
        raise wrong("blocks", length, do)
    moments = [moment_of(each) for each in found.texts]
    if (other := next((k for k, each in enumerate(moments) if each is None), None)) is not None:
        what = "clusters holds {found} in {row}, not a date that blocks could hold"
        do = "write 2024-01-31, or leave out {blocks}."
        row, text = int(np.argmax(found.codes == other)), str(found.texts[other])
        cell = quoted(text.removesuffix("+00:00"))
        raise InputError(f"{what}; {do}", found=cell, row=row, blocks=Argument("blocks"))
    times, count = np.array(moments, "datetime64[us]"), int(parsed[1])
    hours = (times - _MONDAY) // np.timedelta64(1, "h") // {"h": 1, "d": 24, "w": 168}.get(parsed[2], 1)
    numbers = times.astype("datetime64[M]").astype(int) if parsed[2] == "mo" else hours
    blocks: list[int] = (numbers // count)[found.codes].tolist()
    return blocks


@dataclass(eq=False)
class Clustering:
    """Clusters of rows that are added part by part, numbered in order of appearance.

    Attributes
    ----------
    known
        The number of every cluster name.
    totals
        The total weight of every cluster, (G,), perhaps padded with zeros.
    """

    known: dict[Hashable, int] = field(default_factory=dict)
    totals: Array = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.known)

    def codes(self, cells: Sequence[Any]) -> Places:
        """Return the numbers of the clusters of some rows; new clusters are added."""
        found = column_of(cells, "clusters", "cluster", _OWN)
        numbers = [self.known.setdefault(name, len(self.known)) for name in found.texts]
        return np.array(numbers, np.intp)[found.codes]

    def add(self, cells: Sequence[Any], weights: Array | None) -> None:
        """Add some rows with their weights; None for weights of 1."""
        codes = self.codes(cells)
        if len(self.totals) < len(self):
            self.totals = np.append(self.totals, np.zeros(len(self)))
        self.totals[: len(self)] += np.bincount(codes, weights, len(self))

    def counted(self) -> Clustering:
        """Return the clusters with positive weight, renumbered; rows of others have no effect."""
        check_several(self.known)
        counts = self.totals[: len(self)] > 0.0
        if counts.sum() < 2:
            raise one_cluster()
        places = np.where(counts, np.cumsum(counts) - 1, 0)
        known = {name: int(places[number]) for name, number in self.known.items()}
        return Clustering(known, self.totals[: len(self)][counts])

    @property
    def count(self) -> int:
        """Number of clusters G, once all rows are added."""
        return len(self.totals)


def check_several(names: Iterable[Any]) -> None:
    """Raise unless there are two clusters or more."""
    if len(some := list(names)[:2]) < 2:
        found = some[0] if is_number(str(some[0])) else quoted(some[0])
        raise one_cluster(f"clusters is {found} for every row")


def one_cluster(found: str = "the rows of one cluster alone have weights above 0") -> InputError:
    """Return the error for rows that are all in one cluster."""
    depend = "all rows of one cluster may depend on each other, so nothing can be tested"
    return InputError(f"{found}, and {depend}; give at least two clusters that count.")


def cluster_codes(clusters: object, n_rows: int) -> Spelled:
    """Return the cluster of every row, (n,) of 0..G−1, in order of appearance.

    Parameters
    ----------
    clusters
        A column of n names or numbers, in any container: rows with one value, in any spelling, are one
        cluster, see :func:`caltest.spelling.spelled`.
    n_rows
        Number of rows n.

    Raises
    ------
    InputError
        If it is not such a column, an entry is missing, or all rows are in one cluster.

    Examples
    --------
    >>> cluster_codes(["b", "a", "b"], 3).codes.tolist()
    [0, 1, 0]
    """
    if (cells := cells_of(clusters, "clusters")) is None:
        do = "give one column, with the name or number of a cluster for every row"
        raise InputError(f"clusters is {quoted(clusters)}; {do}.")
    if len(cells) != n_rows:
        count = f"{len(cells)} entries for {n_rows} rows of probs"
        raise InputError(f"clusters has {count}; give one for every row.")
    found = column_of(cells, "clusters", "cluster", _OWN)
    check_several(found.texts)
    return found


def refuse_clusters(clusters: Places | None, what: str) -> None:
    """Raise if rows are in clusters and no valid form of a method is known for these."""
    if clusters is not None:
        raise InputError(
            f"{what} takes rows to be independent, and these are in clusters: no valid form for those "
            f"is known; keep one row per cluster, or test with {Argument('caltest.test')}."
        )


# ------------------------------------------------------------------ rows


class Note(str):
    """A note on a change of the input, with its kind and amount; notes on parts can be merged."""

    _SENTENCES: ClassVar[dict[str, str]] = {
        "clipped": "Entries outside [0, 1] were clipped: off by up to {:.1g}.",
        "renormalised": "Rows were renormalised: sums were off by up to {:.1g}.",
        "rounded": "Rows look rounded, and were renormalised: sums were off by up to {:.1g}.",
    }
    kind: str
    amount: float

    def __new__(cls, kind: str, amount: float) -> Note:
        """Format the sentence."""
        note = super().__new__(cls, cls._SENTENCES[kind].format(amount))
        note.kind, note.amount = kind, amount
        return note

    def __getnewargs__(self) -> tuple[str, float]:  # type: ignore[override]
        return self.kind, self.amount


#: Fields of rows with one entry per row, and their types.
_BY_ROW = {"stated": np.float64, "weights": np.float64, "clusters": np.intp, "order": np.intp}


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictions without outcomes.

    Statistics, bins and kernels are built from this alone, so they cannot use the outcomes.

    Attributes
    ----------
    law : Law
        What was predicted of n rows; probabilities (n, m) are read as :class:`caltest.laws.Classes`.
    notes : tuple of str
        What was done to the input and is worth telling. Default none.
    doubts : tuple of Premise
        Premises that these notes put in doubt, such as whether two clusters are one. Default none.
    stated : array of shape (n, m), or None
        For rows that were read as rounded, the values as they were stated, which need not sum to 1.
    weights : array of shape (n,)
        Weight of each row; from :func:`sample`, 1 on average. Default: ones.
    clusters : array of int of shape (n,), or None
        Number of the cluster of each row: rows of one may depend on each other. Default None: all rows
        are independent.
    places : array of int of shape (n,), or None
        Places of these rows among the given ones. Default None: they are the given ones.
    part_of : Extent or None
        How many rows there are in all, and how they count, where these are only some of them: a
        statistic of a part is in units of the whole. Default None: there are no others.
    features : Features or None
        Columns that describe the rows, known before the outcome. Default None: there are none.
    order : array of int of shape (n,), or None
        The place of every row in the order of time. Default None: order says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.data import Rows
    >>> predictions = Rows(np.array([[0.25, 0.75], [0.5, 0.5]]))
    >>> predictions.n_samples, predictions.n_classes, predictions.weights.tolist()
    (2, 2, [1.0, 1.0])
    """

    law: Law = field(repr=False)
    _: KW_ONLY
    notes: tuple[str, ...] = ()
    doubts: tuple[Premise, ...] = field(default=(), repr=False)
    stated: Array | None = field(default=None, repr=False)
    weights: Array = field(default=None, repr=False)  # type: ignore[arg-type]
    clusters: Places | None = field(default=None, repr=False)
    places: Places | None = field(default=None, repr=False)
    part_of: Extent | None = field(default=None, repr=False)
    features: Features | None = field(default=None, repr=False)
    order: Places | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            object.__setattr__(self, "law", Classes(self.law))
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(self.n_samples))
            vars(self)["are_alike"] = True
        for name, values in self._by_row.items():
            vars(self)[name] = read_only(values, _BY_ROW[name])

    def __reduce__(self) -> tuple[Any, ...]:
        # Go through the constructor: an unpickled array is writable until made read-only again.
        return partial(type(self), **{each.name: getattr(self, each.name) for each in fields(self)}), ()

    @property
    def _by_row(self) -> dict[str, np.ndarray]:
        """Fields with one entry per row, by name."""
        return {name: vars(self)[name] for name in _BY_ROW if vars(self)[name] is not None}

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return self.law.n_samples

    @property
    def given(self) -> Any:
        """The input that the predictions were read from, with row names; None if it has none."""
        return self.law.given

    @property
    def n_classes(self) -> Any:
        """Number of classes, m; None if outcomes are not classes."""
        return self.law.n_classes

    @property
    def probs(self) -> Array:
        """Probabilities of classes, (n, m)."""
        return self.law.probs  # type: ignore[attr-defined, no-any-return]

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The m class names, in column order, if known."""
        return self.law.names  # type: ignore[attr-defined, no-any-return]

    @cached_property
    def are_alike(self) -> bool:
        """Whether every row has weight 1."""
        return bool((self.weights == 1.0).all())

    @cached_property
    def whole(self) -> Extent:
        """Totals over all rows: their number and weights."""
        if self.part_of is not None:
            return self.part_of
        n, w = self.n_samples, self.weights
        total = float(w.sum())
        return Extent.alike(n) if self.are_alike else Extent(n, total, float(w @ (total - w)))

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters, G, by their codes; None if rows are independent."""
        return None if self.clusters is None else int(self.clusters.max()) + 1

    @property
    def effective(self) -> float:
        """Effective number of rows, (Σ w)²/Σ w²: that many of equal weight would be as noisy."""
        return effective_number(self.weights)

    def weighted(self, values: Array) -> Array:
        """Return values of rows, (n,) or (n, k), times their weights."""
        if self.are_alike:
            return values
        weights = self.weights if values.ndim == 1 else self.weights[:, None]
        if self.weights.min() == 0.0:  # 0 times infinite is 0
            values = np.where(weights > 0.0, values, 0.0)
        return np.asarray(values * weights)

    @property
    def sums_off(self) -> float:
        """Largest difference of row sums from 1 when they were read, according to the notes."""
        known = [note for note in self.notes if isinstance(note, Note) and note.kind != "clipped"]
        return max((note.amount for note in known), default=0.0)

    def take(self, rows: Any, law: Law | None = None) -> Rows:
        """Return some rows, with everything that belongs to them; notes are of the whole input.

        ``law`` replaces their law if passed.
        """
        own = {name: values[rows] for name, values in self._by_row.items()}
        numbered = isinstance(rows, np.ndarray) and rows.dtype == np.intp
        every = rows if numbered else np.arange(self.n_samples)[rows]
        places = every if self.places is None else self.places[rows]
        law = self.law.take(rows) if law is None else law
        features = None if self.features is None else self.features.take(rows)
        return replace(self, law=law, notes=(), places=places, part_of=None, features=features, **own)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts, in order, with everything that belongs to them."""
        first, names = parts[0], parts[0]._by_row
        own: Any = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        law = Classes(np.concatenate([part.probs for part in parts]), first.classes)
        return replace(first, law=law, places=None, part_of=None, **own)

    def shown_as(self, law: Law | Array, names: tuple[str, ...] | None = None) -> Rows:
        """Return the same rows with another law, as seen through a lens."""
        return replace(self, law=law if isinstance(law, Law) else Classes(law, names, self.given))

    def sampler(self, seed: int, first: int = 0) -> Any:
        """Prepare to draw outcomes from ``seed``; see ``Law.sampler`` for ``first``."""
        return self.law.sampler(seed, first)

    def impossible(self, outcomes: Outcomes) -> Places:
        """Return the rows with positive weight whose outcome is impossible."""
        (found,) = self.law.impossible(outcomes).nonzero()
        return found[self.weights[found] > 0.0]


@dataclass(frozen=True, eq=False)
class Sample:
    """Predictions together with the observed outcomes.

    Attributes
    ----------
    rows : Rows
        What was predicted of n rows, and what else belongs to them.
    labels : array of shape (n,) or (n, d)
        What was observed, read-only: classes, whole numbers in 0..m−1; or numbers, or vectors (n, d),
        where these are predicted.
    premises : tuple of Premise
        Premises put in doubt when the input was read. Default none.

    Examples
    --------
    >>> from caltest.data import sample
    >>> sample([[0.25, 0.75], [0.5, 0.5]], [1, 0]).labels
    array([1, 0])
    """

    rows: Rows
    labels: Outcomes = field(repr=False)
    premises: tuple[Premise, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", self.rows.law.observed(self.labels))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self))


def without_zeros(whole: Sample) -> Sample:
    """Drop rows of weight 0, identical to the last bit to an input without them; renumber clusters."""
    rows, labels = whole.rows, whole.labels
    if rows.clusters is None and (rows.are_alike or rows.weights.min() > 0.0):
        return whole
    if rows.weights.min() == 0.0:
        places = np.flatnonzero(rows.weights)
        n, zeros = rows.n_samples, rows.n_samples - len(places)
        note = f"Left out: {zeros:,} of {n:,} rows, whose weight is 0."
        rows = replace(rows.take(places), notes=(*rows.notes, note))
        # The observed data of these rows seed their imputation.
        labels = labels[places] if rows.law.seen is None else rows.law.completed(0)  # type: ignore[attr-defined]
    if rows.clusters is not None:
        _, first, codes = np.unique(rows.clusters, return_index=True, return_inverse=True)
        if len(first) == 1:
            raise one_cluster()
        rows = replace(rows, clusters=first.argsort().argsort()[codes])  # in order of appearance
    return replace(whole, rows=rows, labels=labels)


def described(rows: Rows, features: object, n_rows: int, **beside: Any) -> Rows:
    """Return rows with features, read for all n input rows; ``beside`` is data with the same rows."""
    if features is None:
        return rows
    found = read_features(features, n_rows, rows.places, **beside)
    return replace(rows, features=found, notes=(*rows.notes, *found.notes))


def in_time(rows: Rows, order: object, n_rows: int, **beside: Any) -> Rows:
    """Return rows with their places in the order of a column of the n input rows.

    ``order`` may be True: the rows are in order already. ``beside`` names data with the same rows.

    Raises
    ------
    InputError
        If these are not n numbers or dates, or if the order of such rows cannot be tested.
    """
    mixed = isinstance(rows.law, Point | Covered) or not (rows.clusters is None and rows.are_alike)
    if order is not None and (mixed or rows.law.seen is not None):
        text = "{order} cannot be combined with means, sets, clusters, weights or censored times."
        raise InputError(text, order=Argument("order"))
    if order is None or order is True:
        return replace(rows, order=np.arange(rows.n_samples)) if order else rows
    return replace(rows, order=read_order(order, n_rows, rows.places, **beside))


def as_order(name: str, value: object) -> object:
    """Return True (NumPy's too), None for False, and a column unchanged."""
    return (bool(value) or None) if isinstance(value, bool | np.bool_) else value


def merged_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Merge the notes on parts of one table: each once, with the largest amount."""
    found: dict[str, str] = {}
    for note in notes:
        about = note.kind if isinstance(note, Note) else note
        known = found.get(about)
        if not (isinstance(known, Note) and isinstance(note, Note) and known.amount >= note.amount):
            found[about] = note
    return tuple(found.values())


# ------------------------------------------------------------------ subsample

SUBSAMPLED = 8192
"""Rows of a subsample: enough for a median distance, for quantiles and for landmarks."""

_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # from SplitMix64
_STEP = np.uint64(0x9E3779B97F4A7C15)


def subsample(n: int, size: int = SUBSAMPLED) -> Places:
    """Return the places of a random sample of n rows, in random order.

    The choice depends on the places only: rows whose number has the smallest hash value are taken. Only
    the rows chosen so far need to be kept, and equal rows are as frequent as among all.
    """
    values, places = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp)
    for rows in blocks(n, 2**20):
        found = np.arange(rows.start + 1, rows.stop + 1, dtype=np.uint64) * _STEP
        for shift, mixer in zip((30, 27), _MIXERS, strict=True):
            found = (found ^ (found >> np.uint64(shift))) * mixer
        values = np.append(values, found ^ (found >> np.uint64(31)))
        places = np.append(places, np.arange(rows.start, rows.stop))
        order = np.argsort(values)[:size]
        values, places = values[order], places[order]
    return places
