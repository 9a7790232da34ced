"""Twenty designs of classes with rare ones: views that are too rare to be checked, right and wrong.

Every design draws a data set: predictions, labels, the options of an audit, and the truth about it. In
right designs labels are draws from the predictions. In the others the mean of some view that is too
rare to be checked (a class, or a pair of a class and a group) is off by more than the limit, so that
"within" is false. The mean error is given by class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Drawn: TypeAlias = tuple[Array, NDArray[np.intp], dict[str, Any], dict[str, Any]]

_LIMIT = 0.06
_BEYOND = 1.1  # times the limit: how far off a forgotten view is


def _split(rng: np.random.Generator, n: int, rare: Array, common: int) -> Array:
    """Return rare classes (k,), or (n, k), with what is stated of them, and common ones that differ."""
    stated = np.broadcast_to(rare, (n, np.shape(rare)[-1]))
    others = rng.dirichlet(np.full(common, 4.0), n)
    return np.column_stack([stated, (1.0 - stated.sum(axis=1, keepdims=True)) * others])


def _labels(rng: np.random.Generator, probs: Array) -> NDArray[np.intp]:
    return np.asarray(
        (probs.cumsum(axis=1) < rng.random((len(probs), 1))).sum(axis=1).clip(0, probs.shape[1] - 1)
    )


def _made(
    rng: np.random.Generator, n: int, rare: Any, common: int, wrong: Any = None, **options: Any
) -> Drawn:
    """Draw a data set; of ``wrong`` rows, (n,), the first class has a chance beyond the limit."""
    probs = _split(rng, n, np.atleast_1d(np.asarray(rare, dtype=np.float64)), common)
    true, limit = probs, options.get("materiality", _LIMIT)
    if wrong is not None:
        hit = np.broadcast_to(np.asarray(wrong, dtype=bool), n)
        first = np.where(hit, probs[:, 0] + _BEYOND * limit, probs[:, 0])
        rest = probs[:, 1:] / probs[:, 1:].sum(axis=1, keepdims=True)
        true = np.column_stack([first, (1.0 - first)[:, None] * rest])
    asked = {"lenses": "classwise", "materiality": limit, **options}
    weights = options.get("weights")
    return probs, _labels(rng, true), asked, {
        "calibrated": wrong is None,
        "within_is_false": wrong is not None,
        "mean_error": np.average(probs - true, axis=0, weights=weights),
    }  # fmt: skip


def _halves(n: int) -> NDArray[np.intp]:
    return np.arange(n) % 2


def _pair(rng: np.random.Generator, n: int, common: int, wrong: bool, **options: Any) -> Drawn:
    """Draw a class that is common in one half of the rows, and hardly ever stated in the other."""
    half = _halves(n)
    stated = np.where(half == 0, 0.0005, 0.12)[:, None]
    return _made(rng, n, stated, common, half == 0 if wrong else None, groups={"half": half}, **options)


def designs() -> dict[str, Callable[[np.random.Generator], Drawn]]:
    """Return the designs by name; each takes a generator and draws a data set of at most 1 500 rows."""
    weights = 1.0 + np.arange(1000) % 4
    pairs = np.arange(1000) // 2
    return {
        "one of three, right": lambda rng: _made(rng, 1000, 1e-4, 2),
        "one of three, wrong": lambda rng: _made(rng, 1000, 1e-4, 2, True),
        "one of six, right": lambda rng: _made(rng, 1200, 0.002, 5),
        "one of six, wrong": lambda rng: _made(rng, 1200, 0.002, 5, True),
        "stated as 0, wrong": lambda rng: _made(rng, 800, 0.0, 2, True),
        "three of eight, right": lambda rng: _made(rng, 1200, [1e-3, 5e-4, 1e-4], 5),
        "three of eight, wrong": lambda rng: _made(rng, 1200, [1e-3, 5e-4, 1e-4], 5, True),
        "ten rare ones, right": lambda rng: _made(rng, 1000, np.full(10, 1e-3), 2),
        "ten rare ones, wrong": lambda rng: _made(rng, 1000, np.full(10, 1e-3), 2, True),
        "few rows, right": lambda rng: _made(rng, 150, 0.01, 2, materiality=0.12),
        "few rows, wrong": lambda rng: _made(rng, 150, 0.01, 2, True, materiality=0.12),
        "a pair of class and group, right": lambda rng: _pair(rng, 1400, 2, False),
        "a pair of class and group, wrong": lambda rng: _pair(rng, 1400, 2, True),
        "pairs of five classes, wrong": lambda rng: _pair(rng, 1500, 4, True, materiality=0.08),
        "a rare class, wrong in one group": lambda rng: _made(
            rng, 1500, 1e-3, 2, _halves(1500) == 0, groups={"half": _halves(1500)}
        ),
        "crossed groups, wrong in one": lambda rng: _made(
            rng, 1500, 1e-3, 2, (np.arange(1500) % 2 == 0) & (np.arange(1500) % 3 == 0),
            groups={"a": np.arange(1500) % 2, "b": np.arange(1500) % 3}, materiality=0.1,
        ),
        "weights, right": lambda rng: _made(rng, 1000, 1e-3, 2, weights=weights),
        "weights, wrong": lambda rng: _made(rng, 1000, 1e-3, 2, True, weights=weights),
        "clusters of two, wrong": lambda rng: _made(
            rng, 1000, 1e-3, 2, True, clusters=pairs, materiality=0.1
        ),
        "a limit as a ratio, wrong": lambda rng: _made(
            rng, 1000, 0.003, 2, True, materiality_ratio=2.0
        ),
    }  # fmt: skip
