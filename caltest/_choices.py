"""The one place that looks a name up among choices, and says what was meant if it is none."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import TypeVar, cast

from caltest.exceptions import InputError

T = TypeVar("T")

_MOST_DIGITS = 18  # of a number that 64 bits hold


def positive_integer(name: str, value: object) -> int:
    """Return ``value`` as an integer of at least 1, or say that it is none."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} is {value!r}; give a positive whole number.")
    return int(value)


def positive_number(name: str, value: object) -> None:
    """Raise unless the value is a positive, finite number."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not 0.0 < float(cast("float", value)) < math.inf:
        raise InputError(f"{name} is {value!r}; give a positive number.")


def check_confidence(confidence: object, least: float = 0.0) -> float:
    """Return a confidence, above 0 (or from ``least``) and below 1.

    Raises
    ------
    InputError
        If it is none.
    """
    real = isinstance(confidence, Real) and not isinstance(confidence, bool)
    found = float(cast("float", confidence)) if real else 0.0
    if not least <= found < 1.0 or found == 0.0:
        asked = f"from {least:g} to below 1" if least else "between 0 and 1"
        raise InputError(f"confidence is {confidence!r}; give one {asked}, such as 0.95.")
    return found


def level_of_confidence(confidence: float) -> float:
    """Return 1 − confidence as it is written, where floats would say 0.050000000000000044.

    Examples
    --------
    >>> level_of_confidence(0.95), level_of_confidence(0.9999999999999)
    (0.05, 1e-13)
    """
    return float(1 - Decimal(repr(float(confidence))))


def whole_number(value: object) -> int | None:
    """Return a number from 0 on that is written in decimal digits, 18 at most; None if it is none.

    Examples
    --------
    >>> whole_number("12"), whole_number(3), whole_number("-1"), whole_number("9" * 5000)
    (12, 3, None, None)
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value) if 0 <= int(value) < 10**_MOST_DIGITS else None
    text = str(value)
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def closest(name: object, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name that an unknown one may have meant, if any is close."""
    close = difflib.get_close_matches(str(name), list(names), n=1, cutoff=cutoff)
    return close[0] if close else None


def choose(kind: str, name: str, choices: Mapping[str, T]) -> T:
    """Return ``choices[name]``.

    Raises
    ------
    InputError
        If there is no such choice; the message names the closest one and all others.

    Examples
    --------
    >>> choose("null", "moment", {"moments": 1, "normal": 2})
    Traceback (most recent call last):
    caltest.exceptions.InputError: there is no null 'moment'; did you mean 'moments'? Choices: ...
    """
    if isinstance(name, str) and name in choices:
        return choices[name]
    close = closest(name, choices, cutoff=0.5)
    hint = f"did you mean {close!r}? Choices" if close else "choices"
    raise InputError(f"there is no {kind} {name!r}; {hint}: {', '.join(choices)}.")
