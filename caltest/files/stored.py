"""What is stored: predictions and labels that are read, and checked, a block of rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest._door import named
from caltest._sampling import ROWS
from caltest.data import Sample, merged_notes
from caltest.exceptions import InputError
from caltest.files.content import check_held


@dataclass(frozen=True, eq=False)
class Stored(ABC):
    """Predictions and labels that are read a block of rows at a time.

    :func:`caltest.test` takes it in place of predictions and labels. Nothing but the layout has been
    read; rows are checked when they are read.

    Attributes
    ----------
    name
        What errors call it: the file's name.
    n_samples
        Number of rows n.
    """

    name: str
    n_samples: int

    @abstractmethod
    def _chunks(self) -> Iterator[Any]:
        """Yield blocks of ROWS rows, and the rest, as they are stored."""

    @property
    @abstractmethod
    def _check(self) -> Callable[[Any], Sample]:
        """What checks one of them, without the data."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a row."""

    def tasks(self) -> StoredBlocks:
        """Return (number, block) of all blocks of 4096 rows, read as they are gone through."""
        return StoredBlocks(self)

    @property
    def checked(self) -> BlockCheck:
        """What checks a block, given its number and the block."""
        return BlockCheck(self.name, self.n_samples, self._check)

    def load(self) -> Sample:
        """Read all rows into memory.

        Raises
        ------
        InputError
            If they do not fit, or are wrong.
        """
        with named(self.name):
            check_held(self.n_samples, self.width)
        parts = [self.checked(number, block) for number, block in self.tasks()]
        probs = np.concatenate([part.rows.probs for part in parts])
        labels = np.concatenate([part.labels for part in parts])
        first = parts[0].rows
        notes = merged_notes(note for part in parts for note in part.rows.notes)
        return Sample(type(first)(probs, first.classes, notes), labels)


@dataclass(frozen=True)
class BlockCheck:
    """Checks blocks of stored rows. It goes to other processes, where the data are not.

    Attributes
    ----------
    name, n_samples
        As of what is stored.
    check
        Takes a block, returns its predictions and labels.
    """

    name: str
    n_samples: int
    check: Callable[[Any], Sample]

    def __call__(self, number: int, block: Any) -> Sample:
        """Check block ``number``, and say where it is if something is wrong with it."""
        try:
            return self.check(block)
        except InputError as error:
            raise error.moved(number * ROWS).within(self.name) from error


@dataclass(frozen=True, eq=False)
class StoredBlocks:
    """The blocks of stored rows, with their numbers: as many as it says, read one after the other.

    Attributes
    ----------
    stored
        Where they are.
    """

    stored: Stored

    def __len__(self) -> int:
        return -(-self.stored.n_samples // ROWS)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        count = 0
        for number, block in enumerate(self.stored._chunks()):
            count += len(block[0]) if isinstance(block, tuple) else len(block)
            if count > self.stored.n_samples:
                break
            yield number, block
        if count != self.stored.n_samples:
            raise InputError(
                f"{self.stored.name}: there were {self.stored.n_samples} rows when it was opened, and "
                "there is another number of them now; do not write to it while it is read."
            )
