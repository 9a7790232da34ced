"""A law: a predicted distribution of the outcome for each of n rows; and the law of class labels.

For labels it is a probability for each of m classes, and labels are drawn from these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import real_array
from caltest._sums import Mask, Places, blocks, over_columns
from caltest._visible import quoted
from caltest.exceptions import InputError, Premise
from caltest.sampling import DRAWS, ROWS, generator

Array: TypeAlias = NDArray[np.float64]
#: Observed outcomes: numbers of classes, or numbers or vectors.
Outcomes: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.unsignedinteger]


class Sampler(Protocol):
    """Draws outcomes on the grid of seeds, see :mod:`caltest.sampling`."""

    @property
    def seed(self) -> int:
        """The seed of the grid."""

    @property
    def block(self) -> int:
        """Draws in a block of the grid."""

    def draw(self, start: int, stop: int) -> Outcomes:
        """Return draws ``start`` (a multiple of the block) to ``stop``, (stop − start, n)."""


class Law(ABC):
    """Predicted distributions of n rows; immutable.

    It can be drawn from, and that is all that an exact null needs. A statistic asks for more if it
    needs it (probabilities of classes, a density): `Statistic.laws` lists the laws that a statistic
    accepts.
    """

    #: What the predictions are, as worded in messages.
    about: str = "distributions of numbers"
    #: What to use instead of a statistic that does not apply to such a law, as a clause.
    instead: str = "use 'ecd', or a function of your own"
    #: Number of classes m; None if outcomes are not classes.
    n_classes: int | None = None
    #: The input that the parameters were read from, by name if several, to recognise reordered rows.
    given: Any = None
    #: Errors that the claim forbids: "at least" forbids predictions that are too high.
    sides: tuple[Any, ...] = ("under", "over")
    #: Assumptions about outcomes that no data can check.
    doubts: tuple[Premise, ...] = ()
    #: Outcomes before imputation, (n,); None if none was needed.
    seen: Any = None
    #: For point forecasts, the functional that they state, as :class:`.Point` names it; else None.
    functional: Any = None

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows, n."""

    @abstractmethod
    def take(self, rows: Any) -> Law:
        """Return the law of some rows."""

    @abstractmethod
    def sampler(self, seed: int, first: int = 0) -> Sampler:
        """Prepare to draw from ``seed``; if rows are a part, their first block is ``first``."""

    @abstractmethod
    def impossible(self, outcomes: Outcomes) -> Mask:
        """Return a mask of the rows whose outcome is impossible."""

    @abstractmethod
    def chance(self, outcomes: Outcomes) -> float:
        """Return the probability of all the outcomes together, or a lower bound of it."""

    def outcomes(self, values: Any) -> Outcomes:
        """Check the outcomes that a user passes."""
        return np.asarray(values)

    def met(self, outcomes: Any, weights: Array | None = None) -> tuple[Law, Outcomes]:
        """Return the law once outcomes are known, and the checked outcomes; for members, the pools.

        ``weights`` matter if the outcomes decide how the law is read.
        """
        return self, self.outcomes(outcomes)

    def remarks(self, outcomes: Outcomes) -> tuple[str, ...]:
        """Return remarks for the user about these outcomes and predictions, as sentences."""
        return ()

    def completed_anew(self) -> Iterable[Outcomes]:
        """Return further imputations of the outcomes, exchangeable with the first, if any."""
        return ()

    @abstractmethod
    def observed(self, outcomes: Outcomes) -> Outcomes:
        """Return checked outcomes, read-only, with the law's own type."""


def read_only(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return a read-only view of an array."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


# ------------------------------------------------------------------ labels as bits


@dataclass(frozen=True, eq=False)
class Bits:
    """Labels (B, n) of two classes, those of 64 draws of a row in one word.

    Attributes
    ----------
    words
        (⌈B / 64⌉, n) integers: the first draw is the lowest bit of the first word.
    count
        Number of draws B.
    """

    words: NDArray[np.uint64]
    count: int

    @classmethod
    def of(cls, labels: Labels | Bits) -> Bits:
        """Return labels (B, n), or signs, packed as bits."""
        if isinstance(labels, Bits):
            return labels
        from caltest.loops import rows as _loops

        words = np.zeros((-(-len(labels) // DRAWS), labels.shape[1]), dtype=np.uint64)
        for own, draws in zip(words, blocks(len(labels), DRAWS), strict=True):
            _loops.pack(labels[draws], own)
        return cls(words, len(labels))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Yield the slice of draws that each word holds, and the words of all rows."""
        return zip(blocks(self.count, DRAWS), self.words, strict=True)

    def take(self, rows: Places, axis: int = 1) -> Bits:
        """Return the labels of some rows."""
        return Bits(self.words.take(rows, axis=axis), self.count)

    def with_one(self, labels: Places) -> Bits:
        """Return the bits with the labels (n,) of one more draw."""
        place = self.count % DRAWS
        words = self.words.copy() if place else np.pad(self.words, [(0, 1), (0, 0)])
        words[-1] |= labels.astype(np.uint64) << np.uint64(place)
        return Bits(words, self.count + 1)


# ------------------------------------------------------------------ classes

_STAYING = 2**16  # numbers that stay in the cache over several passes
_COUNT_UP_TO = 24  # cumulative sums; above, a guide table is faster than a comparison for each class


@dataclass(frozen=True, eq=False)
class Classes(Law):
    """The law of a label: one of m classes.

    Only the shape is checked here; :func:`caltest.data.sample` checks the rest.

    Attributes
    ----------
    probs : array of shape (n, m)
        Probabilities, float64 of shape (n, m), C-contiguous and read-only; rows sum to 1.
    names : tuple of str, or None
        The m class names, in column order, if known.
    given : index or None
        The names of the rows, as an index has them.

    Examples
    --------
    >>> law = Classes([[0.25, 0.75], [0.5, 0.5]], names=("cat", "dog"))
    >>> law.n_samples, law.n_classes, law.top.tolist()
    (2, 2, [1, 0])
    """

    about = "probabilities of classes"

    probs: Array = field(repr=False)
    names: tuple[str, ...] | None = None
    given: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        probs = self.probs
        if type(probs) is not np.ndarray or probs.dtype != np.float64:
            probs = real_array("probs", probs, "give probabilities of shape (n, m)")
        if probs.ndim != 2:
            raise InputError(f"probs is {quoted(self.probs)}; give probabilities of shape (n, m).")
        object.__setattr__(self, "probs", read_only(probs, np.float64))

    def __reduce__(self) -> tuple[Any, ...]:
        # Go through the constructor: an unpickled array is writable until made read-only again.
        return type(self), (self.probs, self.names)

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return int(self.probs.shape[0])

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Number of classes, m."""
        return int(self.probs.shape[1])

    @cached_property
    def top(self) -> Places:
        """The most probable class of every row, (n,); the first if tied."""
        return likeliest(self.probs)

    def take(self, rows: Any) -> Classes:
        """Return the law of some rows."""
        own = isinstance(rows, np.ndarray) and rows.dtype == np.intp  # take is faster than indexing
        return Classes(self.probs.take(rows, axis=0) if own else self.probs[rows], self.names)

    def sampler(self, seed: int, first: int = 0) -> LabelSampler:
        """Prepare to draw labels from ``seed``; see ``Law.sampler`` for ``first``."""
        return LabelSampler.of(self.probs, seed, first)

    def observed(self, outcomes: Outcomes) -> Places:
        """Return labels as whole numbers, read-only."""
        return read_only(outcomes, np.intp)

    def of_labels(self, labels: Places, rows: slice = slice(None)) -> Array:
        """Return the probability of every label, for all rows or some."""
        probs = self.probs[rows]
        return probs.take(labels + np.arange(0, probs.size, probs.shape[1]))

    def impossible(self, outcomes: Outcomes) -> Mask:
        """Return a mask of the labels that have probability 0."""
        if self.probs.min(initial=1.0) > 0.0:
            return np.zeros(len(outcomes), dtype=np.bool_)
        return np.asarray(self.of_labels(outcomes) == 0.0)

    def chance(self, outcomes: Outcomes) -> float:
        """Return the probability of all the labels together."""
        chance = 1.0
        for rows in blocks(len(outcomes), ROWS // 2):
            chance *= float(self.of_labels(outcomes[rows], rows).prod())
            if chance == 0.0:  # underflow, as in most samples after some hundreds of rows
                break
        return chance

    def surprises(self, clip: float | None = None) -> Array:
        """Return −log g_ik − H(g_i), (n, m): the entropic calibration difference for each label.

        Probabilities below ``clip`` are raised to it inside the logarithms.
        """
        floored = self.probs if clip is None else np.maximum(self.probs, clip)
        found, m, possible = np.empty(self.probs.shape), self.n_classes, self.probs.min() > 0.0
        for rows in blocks(len(found), max(1, _STAYING // m)):
            probs = self.probs[rows]
            with np.errstate(divide="ignore"):
                logs = np.log(floored[rows], out=found[rows])
            known = logs if possible else np.where(probs > 0, logs, 0.0)
            sums = over_columns(np.add, probs * known) if m < 8 else np.einsum("ik,ik->i", probs, known)
            np.subtract(sums[:, None], logs, out=logs)
        return found


def likeliest(probs: Array) -> Places:
    """Return the most probable class of every row of ``probs`` (n, m); the first if tied."""
    parts = blocks(len(probs), max(1, _STAYING // probs.shape[1]))  # NumPy copies read-only arrays
    return np.concatenate([probs[rows].argmax(axis=1) for rows in parts])


@dataclass(frozen=True, eq=False)
class LabelSampler:
    """Draws label vectors row by row from the predictions, which are held fixed.

    Attributes
    ----------
    cumulative
        (n, m − 1) sums p_0, p_0 + p_1, …; 1 from the last possible class on, so that a class of
        probability 0 is never drawn.
    seed
        The seed of the grid.
    first
        The block of ROWS that the rows start with, if they are not the first. Default 0.
    """

    cumulative: Array
    seed: int
    first: int = 0

    block: ClassVar[int] = DRAWS

    @classmethod
    def of(cls, probs: Array, seed: int, first: int = 0) -> LabelSampler:
        """Prepare to draw from ``probs`` (n, m)."""
        m = probs.shape[1]
        cumulative = np.empty((len(probs), m - 1))
        for rows in blocks(len(probs), max(1, _STAYING // m)):
            sums = np.cumsum(probs[rows], axis=1)
            own = np.divide(sums[:, :-1], sums[:, -1:], out=cumulative[rows])  # rounding leaves gaps
            ends = np.flatnonzero(probs[rows, -1] <= 0)  # that belongs to no class
            last_possible = m - 1 - np.argmax(probs[rows][ends, ::-1] > 0, axis=1)
            own[ends] = np.where(np.arange(m - 1) >= last_possible[:, None], 1.0, own[ends])
        return cls(cumulative, seed, first)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest integer type that holds every label."""
        return np.min_scalar_type(self.cumulative.shape[1])

    def draw(self, start: int, stop: int) -> Labels:
        """Return draws ``start`` (a multiple of DRAWS) to ``stop`` as (stop − start, n) labels."""
        cells = range(-(-len(self.cumulative) // ROWS))
        return np.hstack([self.draw_rows(number, start, stop) for number in cells])

    def draw_rows(self, number: int, start: int, stop: int) -> Labels:
        """Return the same draws for the rows of one block of ROWS, counted from 0."""
        rows = min(ROWS, len(self.cumulative) - number * ROWS)
        labels = np.empty((stop - start, rows), dtype=self.dtype)
        self._fill(number, start, labels)
        return labels

    def bits(self, start: int, stop: int) -> Bits:
        """Return the same draws for two classes, at most DRAWS of them, as bits."""
        from caltest.loops import rows as _loops

        words = np.zeros((1, len(self.cumulative)), dtype=np.uint64)
        for number, rows in enumerate(blocks(words.size, ROWS)):
            uniforms = self._uniforms(number, start, (stop - start, rows.stop - rows.start))
            _loops.bits_above(self.cumulative[rows, 0], uniforms, words[0, rows])
        return Bits(words, stop - start)

    def _uniforms(self, number: int, start: int, shape: tuple[int, int]) -> Array:
        """Return the random numbers of a cell of the grid."""
        return generator(self.seed, self.first + number, start // DRAWS).random(shape)

    def _fill(self, number: int, start: int, labels: Labels) -> None:
        for draws in blocks(len(labels), DRAWS):
            uniforms = self._uniforms(number, start + draws.start, labels[draws].shape)
            self._look_up(slice(number * ROWS, (number + 1) * ROWS), uniforms, labels[draws])

    def at(self, quantiles: Array) -> Labels:
        """Return the labels of all rows at quantiles (B, n)."""
        labels = np.empty(quantiles.shape, dtype=self.dtype)
        self._look_up(slice(None), quantiles, labels)
        return labels

    def _look_up(self, rows: slice, quantiles: Array, labels: Labels) -> None:
        from caltest.loops import rows as _loops

        cumulative = self.cumulative[rows]
        if cumulative.shape[1] <= _COUNT_UP_TO:
            _loops.count_below(cumulative, quantiles, labels)
        else:
            _loops.look_up(cumulative, self._guide[rows], quantiles, labels)

    @cached_property
    def _guide(self) -> NDArray[np.unsignedinteger]:
        """Starting points for looking up a number, (n, m to 2m), in at most half the memory of sums."""
        from caltest.loops import rows as _loops

        steps = 2 ** (self.cumulative.shape[1] + 1).bit_length()
        guide = np.empty((len(self.cumulative), steps), dtype=self.dtype)
        _loops.guide(self.cumulative, guide)
        return guide
