"""Colours and marks: told apart by lightness and shape too, so in grey and without colour vision."""

from __future__ import annotations

from typing import Any

BLUE = "#0072B2"  # Okabe and Ito's palette
VERMILION = "#D55E00"
BLACK = "#222222"
WIDE_BAND = "#DADADA"
NARROW_BAND = "#A3A3A3"
PALE = "#C4C4C4"
FAINT = "#777777"
NARROW = 4.0  # inches: axes of less have short titles and legends


def is_narrow(ax: Any) -> bool:
    """Say whether axes are too narrow for sentences."""
    return bool(ax.get_window_extent().width < NARROW * ax.figure.dpi)


def short(number: float) -> str:
    """Write a count in at most four characters or so.

    Examples
    --------
    >>> short(87), short(9412), short(98765), short(1_230_000)
    ('87', '9.4k', '99k', '1.2M')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            digits = f"{number / size:.1f}" if number < 9.95 * size else f"{number / size:.0f}"
            return digits.removesuffix(".0") + letter
    return f"{number:.0f}"
