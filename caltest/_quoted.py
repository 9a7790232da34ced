"""Values of the user's, quoted in messages: on one line, short, whatever they are."""

from __future__ import annotations

import inspect
import math
from numbers import Integral, Real
from typing import Any

#: Characters of a quoted value: enough to recognise it, and to leave room for the sentence.
MOST = 60


def quoted(value: object, most: int = MOST) -> str:
    """Write a value as in Python, its end left out if it is long; what has no short text by its kind.

    Examples
    --------
    >>> quoted("cat"), quoted(0.5), quoted("9" * 2000, 12), quoted(-(10**5000))
    ("'cat'", '0.5', "'999999999999…' (2000 characters)", 'a number of 5001 digits')
    >>> import numpy as np
    >>> quoted(np.zeros((2, 3))), quoted(np.float64(0.5)), quoted(lambda: 1), quoted(int)
    ('an array of shape (2, 3)', '0.5', 'a function', 'the class int')
    """
    kind = type(value)
    if isinstance(value, str):
        text = repr(value[:most])
        return text if len(value) <= most else f"{text[:-1]}…{text[-1]} ({len(value)} characters)"
    if isinstance(value, Integral) and not isinstance(value, bool):
        return _whole_number(int(value), most)
    if kind.__name__ in ("bool", "bool_") and has(value, "dtype"):
        return repr(bool(value))
    if isinstance(value, Real) and kind.__module__ == "numpy":
        return repr(float(value))
    shape = getattr(value, "shape", None) if has(value, "shape") else None
    if isinstance(shape, tuple):
        return _of_shape(kind, shape)
    if inspect.isfunction(value):
        return "a function" if value.__name__ == "<lambda>" else f"the function {value.__name__[:most]}"
    if isinstance(value, type):
        return f"the class {value.__name__[:most]}"
    try:
        text = repr(value)
    except Exception:  # a value that fails to write itself is wrong too, and is to be told so
        return _a(kind)
    unreadable = not text.isprintable() or " object at 0x" in text
    return _a(kind) if unreadable or len(text) > most else text


def has(value: Any, *names: str) -> bool:
    """Whether a value has all these attributes; an object that fails when it is asked has none.

    >>> has(1.5, "real", "imag"), has("a", "shape")
    (True, False)
    """
    try:
        return all(hasattr(value, name) for name in names)
    except Exception:  # a value of the user's may raise anything
        return False


def as_text(value: object) -> str | None:
    """Return a value as text; None for what cannot be written, as a number of thousands of digits.

    >>> as_text(3), as_text(10**5000)
    ('3', None)
    """
    try:
        return str(value)
    except Exception:  # a value of the user's may raise anything
        return None


def _of_shape(kind: type, shape: tuple[int, ...]) -> str:
    name = "an array" if kind.__name__ == "ndarray" else _a(kind)
    return f"{name} of shape {shape}" if shape else name


def _whole_number(value: int, most: int) -> str:
    digits = int(value.bit_length() * math.log10(2.0)) + 1  # or one less
    if digits <= most:
        return str(value)
    if digits < 10_000:
        digits -= abs(value) < 10 ** (digits - 1)
    return f"a number of {digits} digits"


def _a(kind: type) -> str:
    name = kind.__name__[:MOST]
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
