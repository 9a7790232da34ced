"""How much memory there is, and a refusal before work that does not fit."""

from __future__ import annotations

import errno
import math
import os
from contextlib import suppress
from pathlib import Path

from caltest.exceptions import InputError


def available() -> float:
    """Return the bytes of memory that this process can have: the machine's, within its own limit."""
    machine = math.inf
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        machine = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    with suppress(ImportError, OSError):  # nor a limit of addresses
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        if limit != resource.RLIM_INFINITY:
            machine = min(machine, max(0.0, limit - pages * os.sysconf("SC_PAGE_SIZE")))
    return machine


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


def is_want_of_memory(error: BaseException) -> bool:
    """Say whether an error means that there is not enough memory, whatever its class.

    Examples
    --------
    >>> is_want_of_memory(MemoryError()), is_want_of_memory(RuntimeError("can't start new thread"))
    (True, True)
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    words = ("failed to map segment", "annot allocate memory", "start new thread")
    return isinstance(error, ImportError | RuntimeError) and any(each in str(error) for each in words)
