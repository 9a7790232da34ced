"""Random numbers that depend on the seed only: labels, or outcomes, drawn on a fixed grid of seeds.

A cell of the grid is a block of rows times a block of draws and has a child seed of its own, so neither
workers, chunk sizes nor the number of draws requested change any label drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from secrets import randbits
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import wrong
from caltest._sums import blocks

# ------------------------------------------------------------------ seeds


Rng: TypeAlias = "int | np.random.SeedSequence | np.random.Generator | None"


MOST_SEED = 2**128


def seed_of(rng: Rng) -> int:
    """Reduce ``rng`` (SPEC 7: None, int, SeedSequence or Generator) to one integer seed.

    The integer is kept in the result, and passing it as ``rng`` reproduces the numbers. A Generator is
    advanced (one draw), so two calls with the same Generator differ; a SeedSequence is not.
    """
    if rng is None:
        return randbits(128)
    if isinstance(rng, np.random.SeedSequence):
        return _integer(rng.generate_state(4))
    if isinstance(rng, np.random.Generator):
        return _integer(rng.integers(0, 2**32, size=4, dtype=np.uint32))
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and 0 <= rng < MOST_SEED:
        return int(rng)
    kinds = "an integer from 0 to below 2**128, a numpy SeedSequence or a numpy Generator"
    raise wrong("rng", rng, f"give None, {kinds}")


def child_seed(seed: int, *key: int) -> int:
    """Return a seed independent of ``seed``, always the same for the same key."""
    return seed_of(np.random.SeedSequence(seed, spawn_key=key))


def _integer(words: np.ndarray) -> int:
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the generator for one cell of the grid of random numbers that ``seed`` defines."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


# ------------------------------------------------------------------ samplers
#
# A cell of the grid is a block of rows times a block of draws and has a child seed of its own, so
# neither workers, chunk sizes nor the number of draws requested change any label drawn.


ROWS = 4096
DRAWS = 64


_SIGNS = 2**26  # signs in a block of draws
_MOST_BLOCKS = 8  # of DRAWS, in a block of draws of signs


@dataclass(frozen=True, eq=False)
class SignSampler:
    """Draws a sign for every cluster, +1 or −1 with equal probability; or enumerates all sign vectors.

    Attributes
    ----------
    size
        Number of clusters G.
    seed
        The seed of the grid, which has blocks of draws only.
    every
        Number of clusters whose signs are enumerated, the first ones: draw b is then the b-th of the
        2^every combinations, without the one that flips none. None: signs are drawn.
    """

    size: int
    seed: int
    every: int | None = None

    @property
    def block(self) -> int:
        """Draws per block: fewer if clusters are many, so that memory stays bounded."""
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
