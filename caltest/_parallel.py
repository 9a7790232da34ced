"""The machine: workers, warnings of long work, and a refusal of work that does not fit into memory.

The only module that uses joblib: parallel maps give the same numbers for every backend and n_jobs.
Workers are threads, processes, or the machines of a Dask cluster, as set by ``joblib.parallel_config``;
joblib sends a function with its data, and a task is a few numbers. Results are summed in one fixed
order, `added`.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias, TypeVar

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from caltest._numbers import counted, duration
from caltest.exceptions import InputError, LongWorkWarning, Phrase

Function: TypeAlias = Callable[..., Any]
Task: TypeAlias = tuple[Any, ...]
T = TypeVar("T")

_MOST = 32  # workers on a machine with fewer cores: more cost memory and gain nothing
BRANCHES = 8  # of a node of the tree of sums: few, so that runs of blocks can have several sizes
LONG = 60.0
"""Seconds of expected work that trigger a warning, once a twelfth of them has shown the pace."""


@dataclass
class _Course:
    """The progress of some work, which may consist of several maps."""

    begun: float
    first: tuple[float, float] = 0.0, 0.0  # time of the first task's end, and its share of the work
    last: float = math.inf  # share of the work that is done
    told: bool = False

    def expected(self, share: float) -> float:
        """Return the expected time of all work at the pace so far; 0 if too little is done.

        The first task is left out: loops may be compiled in it, and files opened. Earlier work is left
        out too, if work of another kind begins.
        """
        now = monotonic()
        self.first, self.last = (now, share) if share < self.last else self.first, share
        begin, done = self.first
        if share == done or now - begin <= LONG / 100 or now - self.begun <= LONG / 12:
            return 0.0
        return begin - self.begun + (now - begin) / (share - done) * (1.0 - done)


@dataclass(frozen=True)
class Workers:
    """The worker pool, and whether a progress bar is shown.

    Parameters
    ----------
    n_jobs
        As in joblib: None is one worker, unless a ``joblib.parallel_config`` sets another number; −1 is
        all cores. Workers are threads by default; the backend of a ``parallel_config`` has priority.
        More workers than cores are started up to 32 only.
    progress
        Show a bar on standard error, if that is a terminal.
    what, faster
        Words for the warning about long work: what it is, and what to do instead. Without ``faster``
        there is no warning.
    part
        The part of that work to do, as shares of its time: start and end.
    """

    n_jobs: int | None = None
    progress: bool = False
    what: str = ""
    faster: Phrase | None = None
    part: tuple[float, float] = (0.0, 1.0)
    course: Any = field(default=None, compare=False)

    def doing(self, what: str, faster: Phrase) -> Workers:
        """Return the same workers, which warn if the work takes long."""
        return replace(self, what=what, faster=faster, course=_Course(monotonic()))

    def parts(self, sizes: Iterable[float]) -> Iterator[Workers]:
        """Yield the same workers for parts of their work, whose times are proportional to ``sizes``."""
        (start, stop), ends = self.part, [0.0, *accumulate(sizes)]
        for pair in pairwise(start + (stop - start) * end / (ends[-1] or 1.0) for end in ends):
            yield replace(self, part=pair)

    @property
    def hands(self) -> int:
        """Number of workers at a time."""
        if (asked := joblib.effective_n_jobs(self.n_jobs)) == 1:
            return 1
        most = asked if asked <= _MOST else max(_MOST, joblib.effective_n_jobs(-1))
        return int(min(asked, most))

    def map(
        self, function: Function, tasks: Sequence[Task], description: str = "", sizes: Any = None
    ) -> Iterator[Any]:
        """Yield ``function(*task)`` for every task, in the order of the tasks.

        Parameters
        ----------
        function
            A function with its data inside (a partial, a method), which every worker gets once.
        tasks
            Arguments, one tuple per task.
        description
            The label of the progress bar.
        sizes
            Relative times of tasks; equal by default.
        """
        with single_threaded_blas():
            if (hands := 1 if len(tasks) < 2 else self.hands) == 1:
                results: Iterable[Any] = (function(*task) for task in tasks)
            else:
                results = _in_parallel(function, tasks, hands)
            shares = [each.part[1] for each in self.parts(sizes or [1.0] * len(tasks))]
            results = self._watched(results, shares, hands) if self.course else results
            yield from self._with_bar(results, shares, description) if self.progress else results

    def _watched(self, results: Iterable[T], shares: Sequence[float], hands: int) -> Iterator[T]:
        """Yield the results, and warn if the whole work will take more than a minute at their pace."""
        for result, share in zip(results, shares, strict=True):
            if (seconds := self.course.expected(share)) > LONG and not self.course.told:
                time = f"{duration(seconds)} on {counted(hands, 'worker')}"
                facts = {"what": self.what, "time": time, "faster": self.faster}
                self.course.told = True
                text = Phrase("{what} takes about {time}; {faster}.", facts)
                warnings.warn(LongWorkWarning(text), stacklevel=_calls_inside() + 1)
            yield result

    def _with_bar(self, results: Iterable[T], shares: Sequence[float], description: str) -> Iterator[T]:
        """Yield the results, with a progress bar of the whole work and the time left."""
        if shares == [1.0] or not sys.stderr.isatty():
            yield from results
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            done: Any = {"total": 1.0, "completed": self.part[0]}
            task = bar.add_task(": ".join(filter(None, [self.what, description])), **done)
            for result, share in zip(results, shares, strict=True):
                bar.update(task, completed=share)
                yield result


ALONE = Workers(n_jobs=1)


def added(terms: Iterable[T], add: Callable[[T, T], T]) -> T:
    """Add terms in the order of a tree that depends on their number only.

    Eight terms are added one after another, then eight such sums one after another, and so on. Sums of
    the consecutive terms below a node may therefore be computed anywhere and added here: no bit
    changes. Only one sum per level of the tree is held at a time.

    >>> added("abcdefghijklmnopqrs", lambda one, other: f"({one}{other})")
    '(((((((((ab)c)d)e)f)g)h)(((((((ij)k)l)m)n)o)p))((qr)s))'
    """
    levels: list[T | None] = []  # for each level, the sum of a node that is not yet full
    for number, term in enumerate(terms, start=1):
        level = rest = 0
        while rest == 0:  # a node is full
            levels += [None] * (level == len(levels))
            held = levels[level]
            term = term if held is None else add(held, term)
            number, rest = divmod(number, BRANCHES)
            levels[level] = term if rest else None
            level += 1
    total, *others = (held for held in levels if held is not None)
    for each in others:
        total = add(each, total)
    return total


# ------------------------------------------------------------------ memory


def available() -> float:
    """Return the bytes of memory available to this process: the machine's, within its own limit."""
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
    """Raise if some work needs more bytes than are available.

    Examples
    --------
    >>> check_fits(1e30, "a table of 1e15 rows", "take fewer rows")
    Traceback (most recent call last):
    caltest.exceptions.InputError: a table of 1e15 rows needs about 1e+21 GB of memory, but ... GB are
    available; take fewer rows.
    """
    if needed > (there := available()):
        raise InputError(
            f"{what} needs about {needed / 1e9:.3g} GB of memory, but {there / 1e9:.3g} GB are "
            f"available; {advice}."
        )


# glibc returns freed blocks of a tile's size to the system, so every new tile page-faults again, which
# takes a sixth of the time of sums over pairs: let glibc keep up to 64 MiB.
with suppress(AttributeError, OSError, TypeError):  # other systems have no such function
    _mallopt, _TRIM_THRESHOLD, _MMAP_THRESHOLD = ctypes.CDLL(None).mallopt, -1, -3  # as in malloc.h
    _mallopt(_TRIM_THRESHOLD, 2**26)
    _mallopt(_MMAP_THRESHOLD, 2**25)


def _in_parallel(function: Function, tasks: Sequence[Task], hands: int) -> Iterator[Any]:
    backend, _ = get_active_backend(prefer="threads")
    lazy = backend.supports_return_generator
    how = "generator" if lazy else "list"
    parallel = joblib.Parallel(n_jobs=hands, prefer="threads", return_as=how)
    results = parallel(joblib.delayed(_call)(function, task) for task in tasks)
    try:
        for result in results:  # noqa: UP028 -- `yield from` would close them loudly
            yield result
    finally:
        if lazy:  # if a caller takes only some results, joblib should not warn
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def _call(function: Function, task: Task) -> Any:
    with single_threaded_blas():
        return function(*task)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def single_threaded_blas() -> AbstractContextManager[Any]:
    """Use one BLAS thread per worker: no oversubscription, and sums always in the same order."""
    if {library.get_num_threads() for library in _blas().lib_controllers} <= {1}:
        return nullcontext()  # usually nested; a new limit would take as long as a statistic
    guard: AbstractContextManager[Any] = _blas().limit(limits=1)
    return guard


def _calls_inside() -> int:
    """Return the number of frames between a caller and the line outside of the package."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "caltest":
        frame, depth = frame.f_back, depth + 1
    return depth - 1
