"""The compiled innermost loops: over rows, and for kernels.

They are imported only when a loop runs: on first use on a machine they are compiled, which takes
seconds, and then cached on disk. Loops release the interpreter's lock, so workers can be threads. Each
loop adds in one fixed order for every label vector: equal label vectors give equal bits, and neither
blocks nor workers change a bit. No loop calls one of another module: the disk cache is then recompiled
only if its own module has changed.
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
    """Announces compilation once, on a terminal, and pauses garbage collection meanwhile.

    It is notified of everything the process compiles, so nothing may be raised here. It stays
    registered, because Numba would skip the next listener if one leaves.
    """

    said = False
    paused: Any = None

    def on_start(self, event: Any) -> None:
        with suppress(Exception):
            if not event.data["dispatcher"].py_func.__module__.startswith("caltest."):
                return
            if gc.isenabled():  # Numba's objects stay, and scanning them takes a tenth of the time
                self.paused = event.data
                gc.disable()
            if not self.said and sys.stderr.isatty():
                sys.stderr.write("caltest compiles its loops for this machine, once; a few seconds.\n")
                self.said = True

    def on_end(self, event: Any) -> None:
        if event.data is self.paused:  # not a nested compilation
            self.paused = None
            gc.enable()


event.register("numba:compile", _Announced())  # type: ignore[no-untyped-call]


def loop(function: Loop) -> Loop:
    """Compile a function on its first call, and cache it on disk if there is a writable place.

    A loop whose name begins with "_" is only called by other loops, and becomes a part of them: it is
    not cached by itself, and gets no wrapper for calls from Python.
    """
    inner = function.__name__.startswith("_")
    how: dict[str, Any] = {"no_cpython_wrapper": inner, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **how)(function)
    with suppress(RuntimeError):  # a read-only package, and no user folder
        if not inner:
            compiled.enable_caching()
    return cast("Loop", compiled)
