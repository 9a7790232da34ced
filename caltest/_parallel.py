"""Workers: parallel maps that give the same numbers for every backend and n_jobs, and their time.

The one place with joblib. Workers are threads, processes, or the machines of a Dask cluster, as
``joblib.parallel_config`` says. A function with all its data is packed once, and unpacked once by every
worker process, so that what it has computed for one task is there for the next; a task is a few
numbers. What was being done by workers that are lost is done again by others. What tasks find is added
in one order, `added`, whoever adds it.
"""

from __future__ import annotations

import asyncio
import copy
import ctypes
import os
import pickle
import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from queue import SimpleQueue
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from uuid import uuid4

import cloudpickle
import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from caltest._memory import addresses_left
from caltest._numbers import counted, duration
from caltest._visible import quoted
from caltest.exceptions import InputError, LongWorkWarning, Phrase

Function: TypeAlias = Callable[..., Any]
Task: TypeAlias = tuple[Any, ...]
T = TypeVar("T")


class Tasks(Protocol):
    """Tasks, as many as it says; they may be created one by one."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Task]: ...


_MOST = 32  # workers on a machine with fewer cores: each costs memory, and gains nothing
_ADDRESSES = 2.5e8  # bytes that a thread sets aside: stack, heap, a buffer in each BLAS
_LARGE = 2**20  # bytes of a task that goes past the scheduler of a cluster
_AHEAD = 4  # tasks a worker that a cluster knows of before their results are fetched
_ANSWER = 5  # seconds within which a scheduler, and the first of its workers, have to answer
_LOSSES = 3  # in a row, without a result between them, before it is said that workers die of the work
BRANCHES = 8  # of a node of the tree of sums: few, so that runs of blocks have sizes to choose from

# What workers lost in mid-run look like, by name, so that no backend needs to be installed: processes
# of this machine, Dask.
_LOST = {"BrokenProcessPool", "CancelledError", "CommClosedError"}
_GIVEN_UP = {"KilledWorker"}  # Dask has tried elsewhere already


@dataclass(frozen=True)
class Workers:
    """Who does the work, and whether a bar shows it.

    Parameters
    ----------
    n_jobs
        As in joblib: None is one worker, unless a ``joblib.parallel_config`` says otherwise; −1 is all
        cores. Workers are threads by default; the backend of a ``parallel_config`` wins. More than
        there are cores are started up to 32 only, and fewer where a limit of address space is near.
    progress
        Show a bar on standard error, if that is a terminal.
    """

    n_jobs: int | None = None
    progress: bool = False

    @property
    def hands(self) -> int:
        """How many work at a time."""
        try:
            asked = joblib.effective_n_jobs(self.n_jobs)
            most = asked if asked <= _MOST else max(_MOST, joblib.effective_n_jobs(-1))
        except Exception as error:  # each backend has its own
            raise _no_answer(error) from None
        if asked == 1:
            return 1
        fitting = max(1.0, addresses_left() / _ADDRESSES)
        return int(min(asked, most, fitting))

    def map(self, function: Function, tasks: Tasks, description: str = "") -> Iterator[Any]:
        """Yield ``function(*task)`` for every task, in the order of the tasks.

        Parameters
        ----------
        function
            With the data inside (a partial, a method): they are sent to every worker once.
        tasks
            Arguments, one tuple a task, sent with it. They are taken as they are needed.
        description
            What the bar says.

        Raises
        ------
        LostError
            If workers were lost three times in a row: they die of the work.
        """
        with single_threaded_blas():
            hands = 1 if len(tasks) < 2 else self.hands
            if hands == 1:
                results: Iterable[Any] = (function(*task) for task in tasks)
            else:
                results = _to_the_end(function, tasks, hands)
            yield from _with_bar(results, len(tasks), description) if self.progress else results

    def merged(
        self, function: Function, tasks: Tasks, add: Callable[[T, T], T], description: str = ""
    ) -> T:
        """Return the sum of ``function(*task)`` over all tasks, in the order of `added`.

        On a cluster those who computed the terms add them too, and only the sum comes back. What
        ``add`` returns may be its first argument, changed. The rest is as of `map`.
        """
        with single_threaded_blas():
            backend, _ = get_active_backend(prefer="threads")
            if len(tasks) < 2 or not hasattr(backend, "client") or self.hands == 1:
                terms: Iterator[T] = self.map(function, tasks, description)
                return added(terms, add)
            losses = 0
            while True:
                try:
                    return _merged_by_dask(backend, function, tasks, add, description, self.progress)
                except Exception as error:
                    losses = _lost(error, losses, f"{len(tasks)} tasks were not yet added up")


ALONE = Workers(n_jobs=1)


def added(terms: Iterable[T], add: Callable[[T, T], T]) -> T:
    """Add terms in the order of a tree that their number alone decides: the one order of sums of rows.

    Eight terms one after the other, eight such sums one after the other, and so on. Sums of the
    consecutive terms below a node of the tree may therefore be made anywhere, and added here: no bit
    changes. As many sums are held at a time as the tree has levels.

    >>> added("abcdefghijklmnopqrs", lambda one, other: f"({one}{other})")
    '(((((((((ab)c)d)e)f)g)h)(((((((ij)k)l)m)n)o)p))((qr)s))'
    """
    levels: list[T | None] = []  # of each the sum of a node that is not yet full
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


def _keep_freed_memory() -> None:
    """Let glibc keep freed blocks of a tile's size, up to 64 MiB; elsewhere this does nothing.

    Else it gives them back to the system, and every new tile faults its pages in again, which costs
    more than the arithmetic (up to three times the run time was measured). Dask tells its workers to
    give back even more (MALLOC_TRIM_THRESHOLD_).
    """
    trim_threshold, mmap_threshold = -1, -3  # as in malloc.h
    with suppress(AttributeError, OSError, TypeError):  # no such function, no such library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(trim_threshold, 2**26)
        mallopt(mmap_threshold, 2**25)


_keep_freed_memory()


def _to_the_end(function: Function, tasks: Tasks, hands: int) -> Iterator[Any]:
    """Yield all results; those that were lost with their workers are computed again."""
    new, out, broken = iter(tasks), deque[Task](), list[Exception]()
    done = losses = 0

    def remaining() -> Iterator[Task]:
        again = list(out)
        out.clear()
        try:
            for task in chain(again, new):  # taken from where they come as they are needed
                out.append(task)
                yield task
        except Exception as error:  # a file that breaks off, say; joblib's own threads would lose it
            broken.append(error)

    while done < len(tasks):
        try:
            for result in _start(function, remaining(), hands):
                out.popleft()
                done, losses = done + 1, 0
                yield result
            if broken:
                raise broken[0]
            if done != len(tasks):
                raise RuntimeError(f"{done} tasks came, and {len(tasks)} were announced.")
        except Exception as error:
            losses = _lost(error, losses, f"{done} of {len(tasks)} tasks were done")


def _lost(error: Exception, losses: int, state: str) -> int:
    """Count workers lost in a row; raise if that is not what went wrong, or if they die of the work."""
    names = {each.__name__ for each in type(error).__mro__}
    if not names & (_LOST | _GIVEN_UP):
        raise error
    if names & _GIVEN_UP or losses + 1 == _LOSSES:
        raise LostError(
            f"workers died again and again when {state} ({type(error).__name__}), most often for want "
            "of memory; take fewer workers on a machine, or machines with more memory."
        ) from None
    return losses + 1


class LostError(RuntimeError):
    """Those who were to do the work are gone."""


def _no_answer(error: Exception) -> LostError:
    reason = str(error).split(". ")[0]
    return LostError(
        f"joblib's cluster does not answer ({reason}); start it, and workers of it, first."
    )


def _start(function: Function, tasks: Iterator[Task], hands: int) -> Iterator[Any]:
    backend, _ = get_active_backend(prefer="threads")
    if hasattr(backend, "client"):
        yield from _through_dask(backend, function, tasks, hands)
        return
    shipped = function if getattr(backend, "uses_threads", False) else Parcel.of(function)
    lazy = backend.supports_return_generator
    parallel = joblib.Parallel(
        n_jobs=hands, prefer="threads", return_as="generator" if lazy else "list"
    )
    results = parallel(joblib.delayed(_call)(shipped, task, _this_process()) for task in tasks)
    try:
        for result in results:  # noqa: UP028 -- `yield from` would close them loudly
            yield result
    finally:
        if lazy:  # who takes only some of them gets no warning from joblib
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def _through_dask(backend: Any, function: Function, tasks: Iterator[Task], hands: int) -> Iterator[Any]:
    """Yield results from a Dask cluster.

    Not through ``joblib.Parallel``, which sends a function's data with every task, and waits for ever
    for a task that kills its workers. A copy of the data on every worker outlives any of them.
    """
    client, waiting, here = backend.client, deque[Any](), _this_process()
    held = _sent(client, function)
    with backend.retrieval_context():  # if this is a task of Dask itself, others may run meanwhile
        for task in tasks:
            packed: Any = pickle.dumps(task)  # as one: Dask would not align the arrays inside
            if len(packed) > _LARGE:  # past the scheduler, to one worker
                packed = client.scatter(packed, hash=False)
            waiting.append(client.submit(_call, held, packed, here, pure=False))
            if len(waiting) == _AHEAD * hands:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _merged_by_dask(
    backend: Any,
    function: Function,
    tasks: Tasks,
    add: Callable[[T, T], T],
    description: str,
    progress: bool,
) -> T:
    """Return the sum of results that stay on a Dask cluster: every sum of two is a task there."""
    client, here = backend.client, _this_process()
    held, finished = _sent(client, function), SimpleQueue[Any]()

    def term(task: Task) -> Any:
        future = client.submit(_call, held, pickle.dumps(task), here, pure=False)
        if progress:
            future.add_done_callback(finished.put)
        return future

    def plus(one: Any, other: Any) -> Any:  # before further terms, so that few wait to be added
        return client.submit(_add_copied, add, one, other, pure=False, priority=1)

    with backend.retrieval_context():
        total: Any = added(map(term, tasks), plus)
        if progress:
            total.add_done_callback(lambda _: finished.put(None))
            deque(_with_bar(iter(finished.get, None), len(tasks), description), maxlen=0)
        return total.result()  # type: ignore[no-any-return]


def _add_copied(add: Callable[[T, T], T], one: T, other: T) -> T:
    """Add, and change neither: Dask may want them again."""
    return add(copy.deepcopy(one), other)


@contextmanager
def on_cluster(scheduler: str | None) -> Iterator[None]:
    """Have the workers of a Dask cluster do the work in the body; None: whoever does it else."""
    if scheduler is None:
        yield
        return
    try:
        import distributed
    except ImportError:
        raise InputError(
            "a scheduler needs Dask, which is not installed; pip install 'caltest[dask]'."
        ) from None

    dask: Any = distributed

    async def asked() -> int:
        async with dask.rpc(scheduler, timeout=_ANSWER) as there:
            return len((await there.identity())["workers"])

    try:  # a client that finds nobody would not go quietly
        workers = asyncio.run(asyncio.wait_for(asked(), _ANSWER))
    except Exception as error:  # of addresses, of sockets, of protocols
        reason = quoted(str(error) or type(error).__name__)
        raise InputError(
            f"no Dask scheduler answers at {quoted(scheduler)} ({reason}); start one there, or correct "
            "the address."
        ) from None
    if not workers:
        raise InputError(
            f"the Dask scheduler at {quoted(scheduler)} has no workers; start some, with dask worker."
        )
    with (
        dask.Client(scheduler, set_as_default=False) as client,
        joblib.parallel_config(backend="dask", client=client),
    ):
        yield


def _sent(client: Any, function: Function) -> Any:
    """Send a function with its data to all workers of a Dask cluster."""
    task = Parcel.of(function)
    try:
        return client.scatter(task, broadcast=True, hash=False)
    except OSError as error:
        raise _no_answer(error) from None


@dataclass(frozen=True, eq=False)
class Parcel:
    """A function with its data, on the way to other processes as one array.

    Attributes
    ----------
    packed
        The pickled function: joblib maps it into the memory of its processes, Dask keeps it.
    key
        By which a process knows the task that it unpacked last, whose function it keeps.
    """

    packed: NDArray[np.uint8]
    key: str

    @classmethod
    def of(cls, function: Function) -> Parcel:
        """Pack a function with all its data; raise InputError if something inside cannot be packed."""
        try:
            return cls(np.frombuffer(cloudpickle.dumps(function), dtype=np.uint8), uuid4().hex)
        except Exception as error:  # whatever the objects inside raise
            raise InputError(
                f"the statistic, or what it works with, cannot be sent to other processes ({error}): "
                "keep open files, locks and connections out of it, or take the backend 'threading'."
            ) from None

    def __call__(self, *task: Any) -> Any:
        if self.key not in _last:
            _last.clear()
            _last[self.key] = pickle.loads(self.packed.data)
        return _last[self.key](*task)


_last: dict[str, Function] = {}  # the function that this process unpacked last


def _call(function: Function, task: Task | bytes, parent: str) -> Any:
    # A worker process has a BLAS of its own. Worker threads share the parent's, which is limited
    # already (to limit it here too would race: threads would restore each other's settings).
    guard = nullcontext() if _this_process() == parent else single_threaded_blas()
    with guard:
        return function(*(pickle.loads(task) if isinstance(task, bytes) else task))


_ABOUT = uuid4().hex  # process numbers of machines, and of containers, are often the same


def _this_process() -> str:
    return f"{_ABOUT}-{os.getpid()}"


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """One BLAS thread a worker: no oversubscription, and sums in an order that never varies."""
    libraries = (each for each in _controller().lib_controllers if each.user_api == "blas")
    if all(library.get_num_threads() == 1 for library in libraries):
        return nullcontext()  # inside of another, most often; the rest takes as long as a statistic
    guard: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return guard


def _with_bar(results: Iterable[Any], total: int, description: str) -> Iterator[Any]:
    if total < 2 or not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(
        results, description=description, total=total, console=Console(stderr=True), transient=True
    )


# ------------------------------------------------------------------ how long it takes
#
# What is to be done is counted in elementary operations, from the shapes of the data alone. What one of
# each takes stands in `SECONDS`, and nowhere else.

Operation: TypeAlias = Literal["coordinate", "pair", "feature", "label", "fit"]
#: How often each is done.
Work: TypeAlias = Mapping[Operation, float]

#: Seconds that one operation takes one core, as ``python -m validation.benchmarks`` measures them with
#: ten classes: right to a factor of two or three, as an announcement must be.
SECONDS: dict[Operation, float] = {
    "coordinate": 2e-10,  # of the distance of two rows, its share of the kernel included
    "pair": 1e-10,  # of rows, in the sum of one label vector
    "feature": 1e-10,  # of a row, added to the sum of a drawn label
    "label": 1e-8,  # drawn, and looked up in a table
    "fit": 3e-7,  # of a line to drawn labels, a row
}
LONG = 60.0
"""Seconds from which on work is announced."""


def together(parts: Iterable[Work], times: float = 1.0) -> Work:
    """Add up the work of several parts, and take it so often."""
    total: Counter[Operation] = Counter()
    for part in parts:
        total.update({kind: times * count for kind, count in part.items()})
    return total


def announce(what: str, work: Work, workers: Workers, faster: Phrase) -> None:
    """Warn of work that will take more than a minute; ``faster`` says what to do instead."""
    alone = sum(SECONDS[kind] * count for kind, count in work.items())
    if alone < LONG or alone / (hands := workers.hands) < LONG:
        return
    facts = {
        "what": what,
        "time": duration(alone / hands),
        "workers": counted(hands, "worker"),
        "faster": faster,
    }
    text = Phrase("{what} takes about {time} on {workers}; {faster}.", facts)
    warnings.warn(LongWorkWarning(text), stacklevel=_calls_inside() + 1)


def _calls_inside() -> int:
    """Return how many frames lie between a caller and the line outside of the package."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "caltest":
        frame, depth = frame.f_back, depth + 1
    return depth - 1
