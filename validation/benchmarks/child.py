"""One measurement, in a process of its own: ``python -m validation.benchmarks.child < task.json``.

The task names a function of a module. Called with the input, it returns what is to be measured: a
function without arguments that returns the numbers it finds. It runs once on a few rows first, so that
imports and compilation count for nothing. Then the input is loaded, the high-water mark of memory is
reset, and all that the first run holds above it is its memory. Further runs are for time alone. Where
the first run compiled a loop that the few rows did not need, the answer says so: the loop is on disk
now, and the runner measures again.

Needs NumPy and nothing else, so that any package can be measured in its own environment.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import json
import resource
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

MARK = "measured: "  # before the answer: libraries may print on their own

FEWEST, MOST = 3, 200  # runs
TWICE_ABOVE, ONCE_ABOVE = 3.0, 8.0  # seconds; so long a case is run two times, or once

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")

Measured = Callable[[], dict[str, Any]]


class NotMeasured(Exception):  # noqa: N818 -- nothing went wrong
    """Why something is not measured here."""


def reset_peak() -> float:
    """Reset the high-water mark to what is resident now, where the system can; return it in kB.

    Linux can. ``ru_maxrss``, which cannot be reset, is what is left elsewhere; on Linux it would not
    do, for a process inherits its parent's.
    """
    if _CLEAR.exists():
        with contextlib.suppress(OSError):
            _CLEAR.write_text("5")
    return peak()


def peak() -> float:
    """Return the high-water mark of resident memory in kB."""
    if _CLEAR.exists():
        lines = _STATUS.read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / 1024 if sys.platform == "darwin" else float(largest)


def few_rows(n_classes: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and labels to warm up with."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(n_classes), n)
    labels = (probs.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    labels[:2] = 0, 1
    return probs, labels


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """Carry out a task.

    Parameters
    ----------
    task
        ``module``, ``work`` (a function's name), ``probs`` and ``labels`` (NPY files, or None where the
        work needs no input), ``options`` (arguments by name), ``seconds`` (at least so long in all),
        ``package`` (whose version is told), ``root`` (the checkout whose caltest it is).
    """
    if "root" in task:
        sys.path.insert(0, task["root"])
    prepare = getattr(importlib.import_module(task["module"]), task["work"])
    options = task.get("options", {})
    if "root" in task and task["root"] not in map(str, Path(sys.modules["caltest"].__file__).parents):
        raise RuntimeError(f"the caltest that was imported is not the one of {task['root']}")
    if task.get("probs") is None:
        run: Measured = prepare(**options)
    else:
        n_classes = np.load(task["probs"], mmap_mode="r").shape[1]
        prepare(*few_rows(n_classes), **options)()
        run = prepare(np.load(task["probs"]), np.load(task["labels"]), **options)
    gc.collect()
    compiled, held = _compiled(), reset_peak()
    found, seconds = _timed(run)
    grown = peak() - held
    times = [seconds]
    while _wanted(times, task.get("seconds", 0.0)):
        times.append(_timed(run)[1])
    return {
        "best_s": min(times),
        "median_s": statistics.median(times),
        "runs": len(times),
        "memory_mb": grown / 1e3,
        "held_mb": held / 1e3,
        "compiled": _compiled() - compiled,
        "version": importlib.metadata.version(task["package"]) if task.get("package") else "",
        **found,
    }


def _timed(run: Measured) -> tuple[dict[str, Any], float]:
    """Return what is found, and seconds: its own, where another process was measured."""
    start = perf_counter()
    found = run()
    seconds = perf_counter() - start
    return found, found.pop("seconds", seconds)


def _compiled() -> int:
    """Return how many loops of caltest were compiled here, and not found on disk."""
    modules = [sys.modules.get(f"caltest.loops.{name}") for name in ("rows", "kernels")]
    members = [each for module in modules if module for each in vars(module).values()]
    found = [each for each in members if hasattr(each, "stats")]
    return sum(sum(each.stats.cache_misses.values()) for each in found)


def _wanted(times: list[float], at_least: float) -> bool:
    first = times[0]
    if at_least <= 0.0 or first > ONCE_ABOVE:
        return False
    if first > TWICE_ABOVE:
        return len(times) < 2
    return len(times) < MOST and (len(times) < FEWEST or sum(times) < at_least)


def main() -> None:
    """Read a task, print what was measured or why nothing was."""
    task = json.load(sys.stdin)
    try:
        answer = measure(task)
    except NotMeasured as reason:
        answer = {"reason": str(reason)}
    except Exception as error:  # a peer that fails is a row with its reason
        answer = {"reason": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    if task["module"].endswith(("peers", "findings")) and "caltest" in sys.modules:
        answer = {"reason": "caltest was imported beside the peer"}
    print(f"\n{MARK}{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    # One `NotMeasured`, not one of __main__ and another of the module that raises it.
    importlib.import_module("validation.benchmarks.child").main()
