"""The compiled innermost loops: those that pass over the rows, and those of kernels.

Imported only when a loop runs: the first time on a machine they are compiled, which takes seconds, and
are kept on disk. Loops release the interpreter's lock, so that workers are threads. Each adds up in one
fixed order for every label vector, and never across rows in another: equal label vectors have equal
bits, and neither blocks nor workers change one. None calls one of another module: what is kept on disk
is compiled again where its own module has changed, and only there.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from caltest._arguments import check_variable

check_variable("NUMBA_NUM_THREADS")

import numba  # noqa: E402
from numba.core import event  # noqa: E402

Loop = TypeVar("Loop", bound=Callable[..., Any])


class _Announced(event.Listener):
    """Says once, on a terminal, what takes seconds, and looks for no garbage meanwhile.

    It hears of all that the process compiles, and whatever that is, nothing is raised here. It stays
    registered: Numba would pass over the next listener while one leaves.
    """

    said = False
    paused: Any = None

    def on_start(self, event: Any) -> None:
        with suppress(Exception):
            if not event.data["dispatcher"].py_func.__module__.startswith("caltest."):
                return
            if gc.isenabled():  # all that Numba makes stays, and looking through it takes a tenth
                self.paused = event.data
                gc.disable()
            if not self.said and sys.stderr.isatty():
                sys.stderr.write("caltest compiles its loops for this machine, once; a few seconds.\n")
                self.said = True

    def on_end(self, event: Any) -> None:
        if event.data is self.paused:  # not one that was compiled on the way
            self.paused = None
            gc.enable()


event.register("numba:compile", _Announced())  # type: ignore[no-untyped-call]


def loop(function: Loop) -> Loop:
    """Compile when it is first called; kept on disk, if there is a place that can be written to.

    A loop whose name begins with "_" is called by others only, of which it becomes a part: by itself it
    is not kept, nor is compiled what would call it from Python.
    """
    inner = function.__name__.startswith("_")
    how: dict[str, Any] = {"no_cpython_wrapper": inner, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **how)(function)
    with suppress(RuntimeError):  # a package that is read-only, and no folder of the user's
        if not inner:
            compiled.enable_caching()
    return cast("Loop", compiled)
