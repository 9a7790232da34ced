"""How much memory there is, and a refusal before work that does not fit."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from caltest.exceptions import InputError

# Limit and use of a container, and what it would give back of its use, in either version of control
# groups.
_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def available() -> float:
    """Return the bytes of memory that are free for use, as far as the system says; else infinity."""
    return min(_of_machine(), _of_container())


def check_fits(needed: float, what: str, advice: str) -> None:
    """Raise if some work needs more bytes than there are.

    Examples
    --------
    >>> check_fits(1e30, "a table of 1e15 rows", "take fewer rows")
    Traceback (most recent call last):
    caltest.exceptions.InputError: a table of 1e15 rows needs about 1e+21 GB of memory, but ... GB are
    available; take fewer rows.
    """
    there = available()
    if needed > there:
        raise InputError(
            f"{what} needs about {needed / 1e9:.3g} GB of memory, but {there / 1e9:.3g} GB are "
            f"available; {advice}."
        )


def _of_machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    try:  # all there is: what the system would free on demand is not known
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return np.inf


def _of_container() -> float:
    for folder, limit, use, idle in _GROUPS:
        with suppress(OSError, ValueError, StopIteration):  # "max" is no limit
            most, used = (int(Path(folder, name).read_text()) for name in (limit, use))
            lines = Path(folder, "memory.stat").read_text().splitlines()
            cached = next(int(line.split()[1]) for line in lines if line.split()[0] == idle)
            return float(most - used + cached)
    return np.inf
