"""How much memory there is, and a refusal before work that does not fit."""

from __future__ import annotations

import errno
import math
import os
from contextlib import suppress
from pathlib import Path

from caltest.exceptions import InputError

# Limit and use of a container, and what it would give back of its use, in either version of control
# groups.
_GROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
# What the libraries take of it when they are loaded, and the least data, with a plot or an audit.
_LEAST_ADDRESSES = 1e9
# What loaders and threads say where there is no memory for them.
_WANTING = ("failed to map segment", "annot allocate memory", "start new thread")


def available() -> float:
    """Return the bytes of memory that are free for use, as far as the system says; else infinity."""
    return min(_of_machine(), _of_container(), addresses_left())


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

    Where its limit (`ulimit -v`) is below, imports break off in the middle; and OpenBLAS, which asks
    for its buffers until it gets them, never ends.
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
    if limit == math.inf:
        return limit
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(0.0, limit - pages * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
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
    return isinstance(error, ImportError | RuntimeError) and any(
        words in str(error) for words in _WANTING
    )


def _address_limit() -> float:
    try:
        import resource  # not on Windows
    except ImportError:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if limit == resource.RLIM_INFINITY else float(limit)


def _of_machine() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    try:  # all there is: what the system would free on demand is not known
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _of_container() -> float:
    for version, limit, use, idle in _GROUPS:
        folder = Path("/sys/fs/cgroup", version)
        with suppress(OSError, ValueError, StopIteration):  # "max" is no limit
            most, used = (int(Path(folder, name).read_text()) for name in (limit, use))
            lines = Path(folder, "memory.stat").read_text().splitlines()
            cached = next(int(line.split()[1]) for line in lines if line.split()[0] == idle)
            return float(most - used + cached)
    return math.inf
