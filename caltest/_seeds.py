"""Random numbers that depend on the seed alone, not on who draws them or in which order."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from caltest._quoted import quoted
from caltest.exceptions import InputError

Rng: TypeAlias = "int | np.random.SeedSequence | np.random.Generator | None"


MOST_SEED = 2**128


def seed_of(rng: Rng) -> int:
    """Reduce ``rng`` (SPEC 7: None, int, SeedSequence or Generator) to one integer seed.

    The integer is kept in the result, and giving it as ``rng`` repeats the numbers. A Generator is
    advanced (one draw), so that two calls with the same Generator differ; a SeedSequence is not.
    """
    if rng is None:
        rng = np.random.SeedSequence()
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
