"""Random numbers that depend on the seed alone: labels, or outcomes, drawn on a fixed grid of seeds.

A cell of the grid is a block of rows times a block of draws and has a child seed of its own, so that
neither workers, chunk sizes nor the number of draws asked for change any label drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from secrets import randbits
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._tiles import blocks
from caltest._visible import quoted
from caltest.exceptions import InputError

# ------------------------------------------------------------------ seeds


Rng: TypeAlias = "int | np.random.SeedSequence | np.random.Generator | None"


MOST_SEED = 2**128


def seed_of(rng: Rng) -> int:
    """Reduce ``rng`` (SPEC 7: None, int, SeedSequence or Generator) to one integer seed.

    The integer is kept in the result, and giving it as ``rng`` repeats the numbers. A Generator is
    advanced (one draw), so that two calls with the same Generator differ; a SeedSequence is not.
    """
    if rng is None:
        return randbits(128)
    if isinstance(rng, np.random.SeedSequence):
        return _integer(rng.generate_state(4))
    if isinstance(rng, np.random.Generator):
        return _integer(rng.integers(0, 2**32, size=4, dtype=np.uint32))
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and 0 <= rng < MOST_SEED:
        return int(rng)
    raise InputError(
        f"rng is {quoted(rng)}; give None, an integer from 0 to below 2**128, a numpy SeedSequence "
        "or a numpy Generator."
    )


def child_seed(seed: int, *key: int) -> int:
    """Return a seed apart from ``seed``, which with the same key is always the same."""
    return seed_of(np.random.SeedSequence(seed, spawn_key=key))


def _integer(words: np.ndarray) -> int:
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of one cell of the grid of random numbers that ``seed`` spans."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


# ------------------------------------------------------------------ samplers
#
# A cell of the grid is a block of rows times a block of draws and has a child seed of its own, so that
# neither workers, chunk sizes nor the number of draws asked for change any label drawn.


ROWS = 4096
DRAWS = 64
_NUMBERS = 2**22  # of drawn outcomes held at a time
_COUNT_UP_TO = 24  # cumulative sums; above, a guide table is faster than a comparison a class


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
        The block of ROWS that the rows start with, where they are not the first. Default 0.
    """

    cumulative: NDArray[np.float64]
    seed: int
    first: int = 0

    block: ClassVar[int] = DRAWS

    @classmethod
    def of(cls, probs: NDArray[np.float64], seed: int, first: int = 0) -> LabelSampler:
        """Prepare to draw from ``probs`` (n, m)."""
        m = probs.shape[1]
        sums = np.cumsum(probs, axis=1)
        cumulative = sums[:, :-1] / sums[:, -1:]  # what is missing from 1 is no one class's
        last_possible = m - 1 - np.argmax(probs[:, ::-1] > 0, axis=1)
        cumulative[np.arange(m - 1) >= last_possible[:, None]] = 1.0
        return cls(cumulative, seed, first)

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The smallest integer type that holds every label."""
        m = self.cumulative.shape[1] + 1
        return np.uint8 if m <= 2**8 else np.uint16 if m <= 2**16 else np.uint32

    def draw(self, start: int, stop: int) -> NDArray[np.unsignedinteger]:
        """Return draws ``start`` (a multiple of DRAWS) to ``stop`` as (stop − start, n) labels."""
        labels = np.empty((stop - start, len(self.cumulative)), dtype=self.dtype)
        for number, rows in enumerate(blocks(len(self.cumulative), ROWS)):
            self._fill(number, start, labels[:, rows])
        return labels

    def draw_rows(self, number: int, start: int, stop: int) -> NDArray[np.unsignedinteger]:
        """Return the same draws of the rows of one block of ROWS, counted from 0."""
        rows = min(ROWS, len(self.cumulative) - number * ROWS)
        labels = np.empty((stop - start, rows), dtype=self.dtype)
        self._fill(number, start, labels)
        return labels

    def _fill(self, number: int, start: int, labels: NDArray[np.unsignedinteger]) -> None:
        rows = slice(number * ROWS, (number + 1) * ROWS)
        for draws in blocks(len(labels), DRAWS):
            stream = generator(self.seed, self.first + number, (start + draws.start) // DRAWS)
            uniforms = stream.random((draws.stop - draws.start, labels.shape[1]))
            self._look_up(rows, uniforms, labels[draws])

    def at(self, quantiles: NDArray[np.float64]) -> NDArray[np.unsignedinteger]:
        """Return the labels of all rows at quantiles (B, n)."""
        labels = np.empty(quantiles.shape, dtype=self.dtype)
        self._look_up(slice(None), quantiles, labels)
        return labels

    def _look_up(
        self, rows: slice, quantiles: NDArray[np.float64], labels: NDArray[np.unsignedinteger]
    ) -> None:
        from caltest.loops import rows as _loops

        cumulative = self.cumulative[rows]
        if cumulative.shape[1] <= _COUNT_UP_TO:
            _loops.count_below(cumulative, quantiles, labels)
        else:
            _loops.look_up(cumulative, self._guide[rows], quantiles, labels)

    @cached_property
    def _guide(self) -> NDArray[np.unsignedinteger]:
        """Where to look for a number, (n, m to 2m): half of the memory of the sums, or less."""
        from caltest.loops import rows as _loops

        steps = 2 ** (self.cumulative.shape[1] + 1).bit_length()
        guide = np.empty((len(self.cumulative), steps), dtype=self.dtype)
        _loops.guide(self.cumulative, guide)
        return guide


@dataclass(frozen=True, eq=False)
class OutcomeSampler:
    """Draws outcomes of all rows together: the grid has blocks of draws only.

    Attributes
    ----------
    outcomes
        Takes a generator and a number of draws, returns (draws, n) or (draws, n, d) outcomes.
    size
        Numbers in one draw, n·d.
    seed
        The seed of the grid.
    """

    outcomes: Callable[[np.random.Generator, int], NDArray[np.float64]]
    size: int
    seed: int

    @property
    def block(self) -> int:
        """Draws in a block: fewer where rows are many, so that memory stays bounded."""
        return max(1, min(DRAWS, _NUMBERS // self.size))

    def draw(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return draws ``start`` (a multiple of the block) to ``stop``."""
        parts = [
            self.outcomes(generator(self.seed, (start + part.start) // self.block), self.block)
            for part in blocks(stop - start, self.block)
        ]
        return np.concatenate(parts)[: stop - start]


_SIGNS = 2**26  # of a block of draws
_MOST_BLOCKS = 8  # of DRAWS, in a block of draws of signs


@dataclass(frozen=True, eq=False)
class SignSampler:
    """Draws a sign for every cluster, +1 or −1 with equal chances; or enumerates all there are.

    Attributes
    ----------
    size
        Number of clusters G.
    seed
        The seed of the grid, which has blocks of draws only.
    every
        How many clusters have their sign turned, the first ones: draw b is then the b-th of the 2^every
        ways to do so, of which the way that turns none is left out. None: signs are drawn.
    """

    size: int
    seed: int
    every: int | None = None

    @property
    def block(self) -> int:
        """Draws in a block: fewer where clusters are many, so that memory stays bounded."""
        return DRAWS * int(np.clip(_SIGNS // (DRAWS * self.size), 1, _MOST_BLOCKS))

    def draw(self, start: int, stop: int) -> NDArray[np.int8]:
        """Return draws ``start`` (a multiple of the block) to ``stop`` as (stop − start, G) of ±1."""
        signs = np.ones((stop - start, self.size), dtype=np.int8)
        if self.every is not None:
            turned = (np.arange(start + 1, stop + 1)[:, None] >> np.arange(self.every)) & 1
            signs[:, : self.every] -= 2 * turned.astype(np.int8)
            return signs
        for part in blocks(stop - start, self.block):
            stream = generator(self.seed, (start + part.start) // self.block)
            bits = stream.integers(0, 2, (self.block, self.size), dtype=np.int8)
            signs[part] -= 2 * bits[: part.stop - part.start]
        return signs
