"""Numbers and lines as a reader sees them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import Any

from caltest._visible import line, message

# ------------------------------------------------------------------ numbers


_MOST_DIGITS = 4  # of percentages


def short(value: Any) -> str:
    """Return a value in few characters."""
    return f"{value + 0.0:.4g}" if isinstance(value, float) else str(value)  # −0 is 0


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


def points(error: float) -> str:
    """Write a difference of probabilities in percentage points.

    Examples
    --------
    >>> points(0.062), points(0.01), points(0.0001)
    ('6.2 points', '1 point', '0.01 points')
    """
    number = f"{100.0 * error:.4g}"
    return f"{number} point{'' if number == '1' else 's'}"


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


def percent(share: float, digits: int) -> str:
    """Write a share; one that is not quite all or nothing does not look as if it were.

    Examples
    --------
    >>> percent(0.52, 0), percent(0.00002, 1), percent(0.99999, 1), percent(0.0, 1), percent(1.0, 0)
    ('52%', '<0.1%', '>99.9%', '0%', '100%')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}%"
    smallest = 10.0**-digits
    text = f"{100.0 * share:.{digits}f}%"
    if text == f"{0.0:.{digits}f}%":
        return f"<{smallest:.{digits}f}%"
    return f">{100.0 - smallest:.{digits}f}%" if text == f"{100.0:.{digits}f}%" else text


def percents(one: float, other: float, least: int = 0) -> tuple[str, str]:
    """Write two shares in percent, with as many digits as it takes to tell them apart, or ``least``.

    Examples
    --------
    >>> percents(0.52, 0.4), percents(0.9931, 0.8968), percents(0.50001, 0.50012)
    (('52%', '40%'), ('99.3%', '89.7%'), ('50.001%', '50.012%'))
    >>> percents(0.8, 0.8), percents(1e-12, 3e-9), percents(1 - 1e-9, 1.0)
    (('80%', '80%'), ('1e-10%', '3e-07%'), ('>99.9%', '100%'))
    >>> percents(0.58, 0.25, 1)
    ('58.0%', '25.0%')
    >>> percents(1 - 1e-9, 1 - 1e-12)
    ('100% − 1e-07%', '100% − 1e-10%')
    """
    first = max(least, 1 if min(one, other) < 0.1 or max(one, other) > 0.9 else 0)
    for digits in range(first, _MOST_DIGITS + 1):
        texts = percent(one, digits), percent(other, digits)
        plainly = {one, other} & {0.0, 1.0} or abs(one - other) >= 0.02 * 10.0**-digits
        if one == other or (texts[0] != texts[1] and plainly):
            return texts
    if texts[0] == texts[1] and max(one, other) < 0.5 * 10.0 ** (-_MOST_DIGITS - 2):
        return f"{100.0 * one:.0e}%", f"{100.0 * other:.0e}%"
    if texts[0] == texts[1] and min(one, other) > 1.0 - 0.5 * 10.0 ** (-_MOST_DIGITS - 2):
        return f"100% − {100.0 * (1.0 - one):.0e}%", f"100% − {100.0 * (1.0 - other):.0e}%"
    return texts


def confidence_text(confidence: float) -> str:
    """Write a confidence in percent, which never is 100.

    Examples
    --------
    >>> confidence_text(0.95), confidence_text(0.975), confidence_text(0.99999), confidence_text(2 / 3)
    ('95%', '97.5%', '99.999%', '66.67%')
    """
    for digits in range(4, 18):
        text = f"{100.0 * confidence:.{digits}g}"
        if float(text) < 100.0:
            break
    return f"{text}%"


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


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "check"), counted(12345, "row"), counted(2, "hypothesis", "hypotheses")
    ('1 check', '12,345 rows', '2 hypotheses')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


# ------------------------------------------------------------------ layout


_WIDTH = 96
_PARAGRAPH = 4000  # characters


def page(lines: Iterable[str]) -> str:
    """Return a text of these lines, each of which is one line to whatever shows it.

    Every summary is made here, so no name that comes with the data is obeyed by a terminal or a log.
    """
    return "\n".join(map(line, lines))


def row(name: str, text: str) -> list[str]:
    """Return the lines of a row of a table: a name, and a text that may wrap."""
    whole = message(text, _PARAGRAPH)
    return textwrap.wrap(whole, _WIDTH, initial_indent=f"  {name:<11}", subsequent_indent=" " * 13)


def table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines of a table of names and texts."""
    return [each for name, text in rows for each in row(name, text)]


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph."""
    return textwrap.wrap(message(text, _PARAGRAPH), _WIDTH)
