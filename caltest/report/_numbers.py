"""Numbers as the report writes them."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Write a number with four digits.

    Examples
    --------
    >>> number(0.012345), number(-2.0), number(float("inf"))
    ('0.01235', '−2', '∞')
    """
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")


def pvalue(value: float, alpha: float) -> str:
    """Write a p-value so that it is seen on which side of alpha it lies.

    Examples
    --------
    >>> pvalue(0.0384, 0.05), pvalue(0.0500004, 0.05), pvalue(0.05, 0.05), pvalue(1.0, 0.05)
    ('0.038', '0.0500004', '0.05', '1')
    """
    for digits in range(2, 17):
        text = f"{value:.{digits}g}"
        if (float(text) <= alpha) == (value <= alpha):
            break
    return text


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


def of(count: int, noun: str, plural: str | None = None) -> str:
    """Write a count of things.

    Examples
    --------
    >>> of(1, "row"), of(12345, "row"), of(2, "hypothesis", "hypotheses")
    ('1 row', '12,345 rows', '2 hypotheses')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
