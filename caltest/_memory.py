"""How much memory there is, and a refusal before work that does not fit."""

from __future__ import annotations

import errno
import math
import os
from contextlib import suppress
from pathlib import Path

from caltest.exceptions import InputError

_LEAST_ADDRESSES = 1e9  # bytes that the libraries reserve when they are loaded, and the smallest data


def available() -> float:
    """Return the bytes of memory that this process can have: the machine's, within its own limit."""
    machine = math.inf
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        machine = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    return min(machine, addresses_left())


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


def check_address_space() -> None:
    """Raise if this process may not use enough memory to load the libraries.

    With a lower limit (`ulimit -v`) imports fail half-way; and OpenBLAS, which asks for its buffers
    until it gets them, never ends.
    """
    limit = _address_limit()
    if limit < _LEAST_ADDRESSES:
        raise InputError(
            f"this process is limited to {limit / 1e6:.0f} MB of address space, and caltest needs "
            f"{_LEAST_ADDRESSES / 1e6:.0f} MB at least; raise the limit (ulimit -v)."
        )
    if limit < math.inf:  # a buffer for every core would not fit, and one thread is all we use
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def addresses_left() -> float:
    """Return the bytes of addresses that this process may still use; infinity without a limit."""
    limit = _address_limit()
    if limit < math.inf:
        with suppress(OSError):
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = max(0.0, limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return limit


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


def _address_limit() -> float:
    try:
        import resource  # not on Windows
    except ImportError:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if limit == resource.RLIM_INFINITY else float(limit)
