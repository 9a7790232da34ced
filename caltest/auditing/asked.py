"""The Python call that repeats an audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np


def call_text(
    groups: tuple[object, tuple[str, ...]], seed: int, **options: tuple[object, object]
) -> str:
    """Write a call of :func:`caltest.audit`, with the options that are not the defaults.

    Parameters
    ----------
    groups
        What was given, and the names of its columns.
    seed
        What repeats the numbers, given as ``rng``.
    options
        By name: what was given, and the default.

    Examples
    --------
    >>> call_text((None, ()), 7, alpha=(0.1, 0.05), min_rows=(50, 50))
    'caltest.audit(probs, labels, alpha=0.1, rng=7)'
    """
    parts = ["probs", "labels"]
    given, columns = groups
    if given is not None:
        native: Any = nw.from_native(given, eager_only=True, allow_series=True, pass_through=True)
        frame = isinstance(native, nw.DataFrame)
        parts.append(f"groups=groups[{list(columns)!r}]" if frame else "groups=groups")
    for name, (value, default) in options.items():
        if not _same(value, default):
            parts.append(f"{name}={_written(value)}")
    return f"caltest.audit({', '.join([*parts, f'rng={seed}'])})"


def _same(value: object, default: object) -> bool:
    if isinstance(value, list | tuple) and isinstance(default, tuple):
        return len(value) == len(default) and all(
            isinstance(one, str) and one == other for one, other in zip(value, default, strict=True)
        )
    return value is default or (isinstance(value, int | float | np.generic) and value == default)


def _written(value: object) -> str:
    """Write a value as it would be typed; functions by their name."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {_written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(each) for each in value) + "]"
    if isinstance(value, tuple):
        return (
            "(" + ", ".join(_written(each) for each in value) + ("," if len(value) == 1 else "") + ")"
        )
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    return repr(value)
