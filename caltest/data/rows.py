"""`Rows` and `Sample`: predictions, and with them observed labels; a subsample of very many rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._visible import quoted
from caltest.data.attributes import Extent, effective_number, one_cluster_counts
from caltest.exceptions import InputError, Premise
from caltest.laws import Classes, Law
from caltest.laws.classes import Array, Outcomes, read_only


class Note(str):
    """A note on what was done to the input, of a kind and by an amount: those of parts are merged."""

    _SENTENCES: ClassVar[dict[str, str]] = {
        "clipped": "Entries outside [0, 1] were clipped: off by up to {:.1g}.",
        "renormalised": "Rows were renormalised: sums were off by up to {:.1g}.",
        "rounded": "Rows look rounded, and were renormalised: sums were off by up to {:.1g}.",
    }
    kind: str
    amount: float

    def __new__(cls, kind: str, amount: float) -> Note:
        """Make the sentence."""
        note = super().__new__(cls, cls._SENTENCES[kind].format(amount))
        note.kind, note.amount = kind, amount
        return note

    def __getnewargs__(self) -> tuple[str, float]:  # type: ignore[override]
        return self.kind, self.amount


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictions without outcomes.

    Statistics, bins and kernels are built from this alone, so they cannot peek at what was observed.

    Attributes
    ----------
    law
        What was predicted of n rows; probabilities (n, m) are read as :class:`caltest.laws.Classes`.
    notes
        What was done to the input and is worth telling. Default none.
    stated
        Of rows that were read as rounded, the values as they were stated, (n, m), which need not sum
        to 1. Default None.
    weights
        What every row counts, (n,); of :func:`sample` 1 on average. Default: ones.
    clusters
        Numbers of clusters, (n,): rows of one may depend on each other. Default None: all rows are
        independent.
    places
        Where these rows are among those that were given, (n,). Default None: they are these.
    part_of
        How many rows there are in all, and how they count, where these are only some of them: a
        statistic of a part is in units of the whole. Default None: there are no others.

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
    stated: Array | None = field(default=None, repr=False, metadata={"by_row": np.float64})
    weights: Array = field(default=None, repr=False, metadata={"by_row": np.float64})  # type: ignore[arg-type]
    clusters: NDArray[np.intp] | None = field(default=None, repr=False, metadata={"by_row": np.intp})
    places: NDArray[np.intp] | None = field(default=None, repr=False)
    part_of: Extent | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            object.__setattr__(self, "law", Classes(self.law))
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(self.n_samples))
        for each in fields(self):
            if each.metadata and (values := getattr(self, each.name)) is not None:
                object.__setattr__(self, each.name, read_only(values, each.metadata["by_row"]))

    def __reduce__(self) -> tuple[Any, ...]:
        # By way of the constructor: an unpickled array is writable until made read-only again.
        return partial(type(self), **{each.name: getattr(self, each.name) for each in fields(self)}), ()

    @property
    def _by_row(self) -> dict[str, np.ndarray]:
        """What has an entry for every row, by name."""
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.metadata}
        return {name: values for name, values in found.items() if values is not None}

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return self.law.n_samples

    @property
    def n_classes(self) -> Any:
        """Number of classes, m; None if outcomes are no classes."""
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
        """Whether every row counts 1."""
        return bool((self.weights == 1.0).all())

    @cached_property
    def whole(self) -> Extent:
        """How many rows there are in all, and how they count."""
        if self.part_of is not None:
            return self.part_of
        n, w = self.n_samples, self.weights
        total = float(w.sum())
        return Extent.alike(n) if self.are_alike else Extent(n, total, float(w @ (total - w)))

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters, G, as they are numbered; None if rows are independent."""
        return None if self.clusters is None else int(self.clusters.max()) + 1

    @property
    def effective(self) -> float:
        """Effective number of rows, (Σ w)²/Σ w²: so many of equal weight are as noisy."""
        return effective_number(self.weights)

    def weighted(self, values: Array) -> Array:
        """Return what is of rows, (n,) or (n, k), as rows count."""
        if self.are_alike:
            return values
        weights = self.weights if values.ndim == 1 else self.weights[:, None]
        if self.weights.min() == 0.0:  # 0 times infinite is 0
            values = np.where(weights > 0.0, values, 0.0)
        return np.asarray(values * weights)

    @property
    def sums_off(self) -> float:
        """By how much sums of rows differed from 1 at most when they were read, as far as was noted."""
        known = [note for note in self.notes if isinstance(note, Note) and note.kind != "clipped"]
        return max((note.amount for note in known), default=0.0)

    def take(self, rows: Any, law: Law | None = None) -> Rows:
        """Return some rows, with all that belongs to them; notes are of the whole input.

        Their law is another one if it is given. Fields with ``metadata={"by_row": …}``, a type, have an
        entry for every row, and are taken along.
        """
        own = {name: values[rows] for name, values in self._by_row.items()}
        places = np.arange(self.n_samples)[rows] if self.places is None else self.places[rows]
        law = self.law.take(rows) if law is None else law
        return replace(self, law=law, notes=(), places=places, part_of=None, **own)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts, one part after the other, with all that belongs to them."""
        first, names = parts[0], parts[0]._by_row
        own: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in names
        }
        law = Classes(np.concatenate([part.probs for part in parts]), first.classes)
        return replace(first, law=law, places=None, part_of=None, **own)

    def shown_as(self, law: Law | Array, names: tuple[str, ...] | None = None) -> Rows:
        """Return the same rows with another law, as a lens shows them."""
        return replace(self, law=law if isinstance(law, Law) else Classes(law, names))

    def sampler(self, seed: int, first: int = 0) -> Any:
        """Prepare to draw outcomes from ``seed``; of rows that start with block ``first`` of many."""
        return self.law.sampler(seed, first)

    def impossible(self, outcomes: Outcomes) -> NDArray[np.intp]:
        """Return the rows that count and whose outcome could not be."""
        return np.flatnonzero(self.law.impossible(outcomes) & (self.weights > 0.0))


@dataclass(frozen=True, eq=False)
class Sample:
    """Predictions together with what was observed.

    Attributes
    ----------
    rows
        What was predicted of n rows, and what else belongs to them.
    labels
        What was observed, (n,), read-only: classes, whole numbers in 0..m−1; or numbers, or vectors
        (n, d), where these are predicted.
    premises
        What was found in doubt when they were read. Default none.

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
    """Drop rows of weight 0, as if they had never been given, to the last bit; number clusters anew."""
    rows, labels = whole.rows, whole.labels
    if rows.clusters is None and rows.weights.min() > 0.0:
        return whole
    if rows.weights.min() == 0.0:
        places = np.flatnonzero(rows.weights)
        n, zeros = rows.n_samples, rows.n_samples - len(places)
        note = f"Left out: {zeros:,} of {n:,} rows, whose weight is 0."
        rows = replace(rows.take(places), notes=(*rows.notes, note))
        # What was seen of these rows is the seed of what completes it.
        labels = labels[places] if rows.law.seen is None else rows.law.completed(0)  # type: ignore[attr-defined]
    if rows.clusters is not None:
        _, first, codes = np.unique(rows.clusters, return_index=True, return_inverse=True)
        if len(first) == 1:
            raise one_cluster_counts()
        rows = replace(rows, clusters=first.argsort().argsort()[codes])  # in the order they come in
    return replace(whole, rows=rows, labels=labels)


def merged_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Merge the notes on parts of one table: each once, with the largest of its numbers."""
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

_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of SplitMix64
_STEP = np.uint64(0x9E3779B97F4A7C15)


def subsample(parts: Iterable[NDArray[np.float64]], size: int = SUBSAMPLED) -> Rows:
    """Return a random sample of the rows of ``parts``, each (rows, m), in random order.

    Which rows these are depends on their places alone: those whose number has the smallest hash value.
    Where the parts begin does not matter, nothing need be kept but the rows chosen so far, and equal
    rows are as frequent as among all.
    """
    if not isinstance(parts, Iterable):
        raise InputError(f"parts is {quoted(parts)}; give arrays of rows.")
    kept: NDArray[np.float64] | None = None
    values, first = np.empty(0, dtype=np.uint64), 1
    for part in parts:
        found, probs = np.arange(first, first + len(part), dtype=np.uint64) * _STEP, part
        for shift, mixer in zip((30, 27), _MIXERS, strict=True):
            found = (found ^ (found >> np.uint64(shift))) * mixer
        found ^= found >> np.uint64(31)
        first += len(part)
        if kept is not None:
            near = found < values[-1] if len(values) == size else slice(None)
            found = np.concatenate([values, found[near]])
            probs = np.concatenate([kept, part[near]])
        order = np.argsort(found)[:size]
        values, kept = found[order], probs[order]
    if kept is None:
        raise InputError("there is no part; give one array of rows at least.")
    return Rows(Classes(kept))
