"""The one place with joblib: parallel maps that give the same numbers for every backend and n_jobs."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from caltest.exceptions import InputError


@dataclass(frozen=True)
class Workers:
    """Who does the work, and whether a bar shows it.

    Parameters
    ----------
    n_jobs
        As in joblib: None is one worker, unless a ``joblib.parallel_config`` says otherwise; −1 is all
        cores. Workers are threads by default; the backend of a ``parallel_config`` wins.
    progress
        Show a bar on standard error, if that is a terminal.
    """

    n_jobs: int | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        whole = isinstance(self.n_jobs, Integral) and not isinstance(self.n_jobs, bool)
        if self.n_jobs is not None and (not whole or self.n_jobs == 0):
            raise InputError(f"n_jobs is {self.n_jobs!r}; give how many workers, or -1 for all cores.")

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        description: str = "",
    ) -> Iterator[Any]:
        """Yield ``function(*task)`` for every task, in the order of the tasks."""
        with single_threaded_blas():
            if len(tasks) < 2 or joblib.effective_n_jobs(self.n_jobs) == 1:
                results: Iterable[Any] = (function(*task) for task in tasks)
            else:
                parent = os.getpid()
                parallel = joblib.Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
                calls = (joblib.delayed(_call)(function, task, parent) for task in tasks)
                results = _quietly_closed(parallel(calls))
            yield from _with_bar(results, len(tasks), description) if self.progress else results


ALONE = Workers(n_jobs=1)

# glibc gives freed blocks of a tile's size back to the system, and every new tile then faults its
# pages in again, which costs more than the arithmetic (up to three times the run time was measured).
# Freeing one block of just below 32 MiB raises the two thresholds behind that for good; the block is
# never touched, so it costs nothing. Elsewhere this does nothing.
_ = np.empty(2**25 - 2**16, dtype=np.uint8)
del _


def _quietly_closed(results: Generator[Any]) -> Iterator[Any]:
    """Yield the results; who takes only some of them gets no warning from joblib."""
    try:
        for result in results:  # noqa: UP028 -- `yield from` would close them loudly
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """One BLAS thread a worker: no oversubscription, and sums in an order that never varies."""
    guard: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return guard


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], parent: int) -> Any:
    # A worker process has a BLAS of its own. Worker threads share the parent's, which is limited
    # already (to limit it here too would race: threads would restore each other's settings).
    guard = nullcontext() if os.getpid() == parent else single_threaded_blas()
    with guard:
        return function(*arguments)


def _with_bar(results: Iterable[Any], total: int, description: str) -> Iterator[Any]:
    if total < 2 or not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(
        results, description=description, total=total, console=Console(stderr=True), transient=True
    )
