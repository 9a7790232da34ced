"""`Rows` and `Sample`: predictions, and with them the observed labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import real_array
from caltest._sampling import ROWS, LabelSampler
from caltest._tiles import blocks
from caltest._visible import quoted
from caltest.data.weights import Extent, effective_number, on_average_one
from caltest.exceptions import InputError


class Event(str):
    """A note on what was done to the input, of a kind and by an amount: those of parts are merged."""

    _SENTENCES: ClassVar[dict[str, str]] = {
        "clipped": "Entries outside [0, 1] were clipped: off by up to {:.1g}.",
        "renormalised": "Rows were renormalised: sums were off by up to {:.1g}.",
        "rounded": "Rows look rounded, and were renormalised: sums were off by up to {:.1g}.",
    }
    kind: str
    amount: float

    def __new__(cls, kind: str, amount: float) -> Event:
        """Make the sentence."""
        event = super().__new__(cls, cls._SENTENCES[kind].format(amount))
        event.kind, event.amount = kind, amount
        return event

    def __getnewargs__(self) -> tuple[str, float]:  # type: ignore[override]
        return self.kind, self.amount


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictions without labels.

    Statistics, bins and kernels are built from this alone, so they cannot peek at the labels.
    Only the shape is checked here; :func:`sample` checks the rest.

    Attributes
    ----------
    probs
        Probabilities, float64 of shape (n, m), C-contiguous and read-only; rows sum to 1.
    classes
        The m class names, in column order, if known. Default None.
    notes
        What was done to the input and is worth telling. Default none.
    stated
        Of rows that were read as rounded, the values as they were stated, (n, m), which need not sum
        to 1. Default None.
    weights
        What every row counts, (n,), where that differs; of :func:`sample` 1 on average. Default None:
        all rows have equal weight.
    clusters
        Numbers of clusters, (n,): rows of one may depend on each other. Default None: all rows are
        independent.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.data import Rows
    >>> predictions = Rows(np.array([[0.25, 0.75], [0.5, 0.5]]), classes=("cat", "dog"))
    >>> predictions.n_samples, predictions.n_classes
    (2, 2)
    """

    probs: NDArray[np.float64] = field(repr=False)
    classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    stated: NDArray[np.float64] | None = field(default=None, repr=False, metadata={"by_row": True})
    weights: NDArray[np.float64] | None = field(default=None, repr=False, metadata={"by_row": True})
    clusters: NDArray[np.intp] | None = field(default=None, repr=False, metadata={"by_row": True})

    def __post_init__(self) -> None:
        probs = self.probs
        if type(probs) is not np.ndarray or probs.dtype != np.float64:
            probs = real_array("probs", probs, "give probabilities of shape (n, m)")
        if probs.ndim != 2:
            raise InputError(f"probs is {quoted(self.probs)}; give probabilities of shape (n, m).")
        object.__setattr__(self, "probs", _read_only(probs, np.float64))
        if self.stated is not None:
            object.__setattr__(self, "stated", _read_only(self.stated, np.float64))
        if self.weights is not None:
            object.__setattr__(self, "weights", _read_only(self.weights, np.float64))
        if self.clusters is not None:
            object.__setattr__(self, "clusters", _read_only(self.clusters, np.intp))

    def __reduce__(self) -> tuple[Any, ...]:
        # By way of the constructor: an unpickled array is writable until made read-only again.
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return int(self.probs.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, m."""
        return int(self.probs.shape[1])

    @property
    def total(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.n_samples if self.weights is None else self.weights.sum())

    @property
    def pairs(self) -> float:
        """Number of pairs i ≠ j, or Σ_{i≠j} w_i w_j."""
        n, w = self.n_samples, self.weights
        return n * (n - 1.0) if w is None else float(w @ (w.sum() - w))

    @property
    def effective(self) -> float:
        """Effective number of rows, (Σ w)²/Σ w²: so many of equal weight are as noisy."""
        return float(self.n_samples) if self.weights is None else effective_number(self.weights)

    @property
    def whole(self) -> Extent:
        """How many rows these are, and how they count."""
        return Extent(self.n_samples, self.total, self.pairs)

    def weighted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is of rows, (n,) or (n, k), as rows count."""
        if self.weights is None:
            return values
        weights = self.weights if values.ndim == 1 else self.weights[:, None]
        if self.weights.min() == 0.0:  # 0 times infinite is 0
            values = np.where(weights > 0.0, values, 0.0)
        return np.asarray(values * weights)

    @property
    def sums_off(self) -> float:
        """By how much sums of rows differed from 1 at most when they were read, as far as was noted."""
        events = [note for note in self.notes if isinstance(note, Event) and note.kind != "clipped"]
        return max((event.amount for event in events), default=0.0)

    @cached_property
    def top(self) -> NDArray[np.intp]:
        """The most probable class of every row, (n,); of tied classes the first."""
        return np.asarray(self.probs.argmax(axis=1))

    def take(self, places: Any) -> Rows:
        """Return some rows, with all that belongs to them; notes are of the whole input."""
        return self.shown_as(self.probs[places], self.classes, places)

    def shown_as(
        self, probs: NDArray[np.float64], classes: tuple[str, ...] | None, places: Any = None
    ) -> Rows:
        """Return the same rows, or those at some places, with probabilities as a lens shows them.

        Fields with ``metadata={"by_row": True}`` have an entry for every row, and are taken along.
        """
        if places is None:
            return replace(self, probs=probs, classes=classes)
        own = {
            each.name: getattr(self, each.name)[places]
            for each in fields(self)
            if each.metadata.get("by_row") and getattr(self, each.name) is not None
        }
        return replace(self, probs=probs, classes=classes, notes=(), **own)

    def sampler(self, seed: int, first: int = 0) -> LabelSampler:
        """Prepare to draw labels from ``seed``; of rows that start with block ``first`` of many."""
        return LabelSampler.of(self.probs, seed, first)

    def impossible(self, labels: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the rows whose label has probability 0."""
        impossible = self.of_labels(labels) == 0.0
        return np.flatnonzero(impossible if self.weights is None else impossible & (self.weights > 0))

    def chance(self, labels: NDArray[np.intp]) -> float:
        """Return the probability of all the labels."""
        chance = 1.0
        for rows in blocks(len(labels), ROWS):
            chance *= float(self.of_labels(labels[rows], rows).prod())
            if chance == 0.0:  # below all numbers, as of most samples after some hundreds of rows
                break
        return chance

    def of_labels(self, labels: NDArray[np.intp], rows: slice = slice(None)) -> NDArray[np.float64]:
        """Return the probability of every label, of all rows or of some."""
        probs = self.probs[rows]
        return probs.take(labels + np.arange(0, probs.size, probs.shape[1]))

    def surprises(self, clip: float | None = None) -> NDArray[np.float64]:
        """Return −log g_ik − H(g_i), (n, m): the entropic calibration difference of any label.

        Probabilities below ``clip`` count as that, inside the logarithms.
        """
        floored = self.probs if clip is None else np.maximum(self.probs, clip)
        with np.errstate(divide="ignore"):
            logs = np.log(floored)
        expected = np.einsum("ik,ik->i", self.probs, np.where(self.probs > 0, logs, 0.0))
        return np.asarray(np.subtract(expected[:, None], logs, out=logs))


@dataclass(frozen=True, eq=False)
class Sample:
    """Predictions together with the observed labels.

    Attributes
    ----------
    rows
        The predictions, of n rows and m classes, and what else belongs to the rows.
    labels
        Which class was observed, integers in 0..m−1 of shape (n,), read-only.

    Examples
    --------
    >>> from caltest.data import sample
    >>> sample([[0.25, 0.75], [0.5, 0.5]], [1, 0]).labels
    array([1, 0])
    """

    rows: Rows
    labels: NDArray[np.intp] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", _read_only(self.labels, np.intp))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self))


def without_zeros(whole: Sample) -> tuple[Sample, NDArray[np.intp] | None]:
    """Drop rows of weight 0, and return the rest with their positions (None if none were dropped)."""
    rows = whole.rows
    if rows.weights is None or rows.weights.min() > 0.0:
        return whole, None
    places = np.flatnonzero(rows.weights)
    n, zeros = rows.n_samples, rows.n_samples - len(places)
    note = f"Left out: {zeros:,} of {n:,} rows, whose weight is 0."
    weights = on_average_one(rows.weights[places])
    kept = replace(rows.take(places), notes=(*rows.notes, note), weights=weights)
    return Sample(kept, whole.labels[places]), places


def merged_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Merge the notes on parts of one table: each once, with the largest of its numbers."""
    found: dict[str, str] = {}
    for note in notes:
        about = note.kind if isinstance(note, Event) else note
        known = found.get(about)
        if not (isinstance(known, Event) and isinstance(note, Event) and known.amount >= note.amount):
            found[about] = note
    return tuple(found.values())


def _read_only(array: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
