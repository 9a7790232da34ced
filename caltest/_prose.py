"""Results in words: the one place that lays text out, and turns values into plain data."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np


def row(name: str, text: str) -> str:
    """Return a line of a table: a name, and a text that may wrap."""
    return textwrap.fill(text, 96, initial_indent=f"  {name:<11}", subsequent_indent=" " * 13)


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph."""
    return textwrap.wrap(text, 96)


def short(value: Any) -> str:
    """Return a value in few characters."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    """Return plain data, ready for strict JSON: a number that is not finite becomes a string."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value
