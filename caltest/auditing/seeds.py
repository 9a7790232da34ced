"""Seeds keyed by what they are for, so that one thing more leaves the others' numbers alone."""

from __future__ import annotations

from hashlib import sha256


def key_of(*names: str) -> tuple[int, int, int, int]:
    """Return whole numbers that stand for some names, the same on every machine.

    Examples
    --------
    >>> key_of("bounds", "top_label") == key_of("bounds", "top_label")
    True
    >>> key_of("ab", "c") == key_of("a", "bc")
    False
    """
    words = [int.from_bytes(sha256(repr(names).encode()).digest()[4 * k : 4 * k + 4]) for k in range(4)]
    return words[0], words[1], words[2], words[3]
