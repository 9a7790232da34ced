"""Numbers as the report writes them."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Write a number with four digits.

    Examples
    --------
    >>> number(0.012345), number(-2.0), number(-0.0), number(float("inf"))
    ('0.01235', '−2', '0', '∞')
    """
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value or 0.0:.4g}".replace("-", "−")


def signed_points(gap: float) -> str:
    """Write a difference of probabilities in percentage points, with its sign.

    Examples
    --------
    >>> signed_points(0.0423), signed_points(-0.11), signed_points(0.0), signed_points(0.0001)
    ('+4.2', '−11.0', '0.0', '+0.01')
    """
    for digits in (1, 2, 3):
        text = f"{100.0 * gap:+.{digits}f}"
        if float(text) != 0.0:
            return text.replace("-", "−")
    return "0.0"
