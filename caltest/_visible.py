"""Text of others in our messages: on one line, short, every character to be seen."""

from __future__ import annotations

import inspect
import math
import re
import unicodedata
from numbers import Integral, Real
from typing import Any

# ------------------------------------------------------------------ every character to be seen
#
# Class names, groups, file names and cells are whatever someone wrote. On a terminal an escape
# sequence moves the cursor, in the log of a job a line that begins with ``::`` is a command, and a
# name of two megabytes is all that is seen. Every sentence and every table passes :func:`line` or
# :func:`message` on its way out; names pass :func:`shown` where a sentence is made.


_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_NO_WIDTH = "\u00ad\u180e\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\ufff9\ufffa\ufffb"
_HIDDEN = frozenset(f"{_DIRECTIONS}{_NO_WIDTH}\u2028\u2029\ufffe\uffff")
_TAGS = range(0xE0000, 0xE0080)  # a second ASCII, none of which is seen

# What continuous integration obeys: GitHub "::error" at the start of a line and "##[error]" anywhere in
# it, Azure "##vso[…]", TeamCity "##teamcity[…]".
_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\w*\[)")

_NAME = 48  # characters of a name in a sentence or a table
CLAUSE = 80  # of a clause with a name in it
_WORD = 160  # of what has no blank in it; a path may be long
_MESSAGE = 500
# Of names in the views of an audit, each by itself, so that a long one leaves no other out:
_CLASS_NAME = 24
_COLUMN = 20
_VALUE = 24


def visible(text: str) -> str:
    r"""Write what hides in a text (control characters, changes of direction) as Python escapes it.

    The result is fit for a terminal, for HTML, for XML and for UTF-8. What is visible already stays.

    Examples
    --------
    >>> print(visible("one\ntwo\x00"), visible("a\u202eb\ud800"))
    one\ntwo\x00 a\u202eb\ud800
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    hidden = character in _HIDDEN or ord(character) in _TAGS
    return (
        escaped(character) if hidden or unicodedata.category(character) in ("Cc", "Cs") else character
    )


def escaped(character: str) -> str:
    r"""Write a character as Python escapes it.

    >>> print(escaped("\x1b"), escaped(":"), escaped("é"))
    \x1b \x3a \xe9
    """
    written = character.encode("unicode_escape").decode("ascii")
    return f"\\x{ord(character):02x}" if written == character else written


def line(text: str) -> str:
    r"""Return one line for a terminal or a log: all of it visible, and no command to who reads the log.

    Examples
    --------
    >>> print(line("::error::x\n"), line("a ##[group]b"))
    \x3a:error::x\n a \x23#[group]b
    """
    return _COMMAND.sub(lambda found: f"{found[1] or ''}{escaped(found[0][-1])}", visible(text))


def visible_page(text: str) -> str:
    r"""Return lines for a terminal or a log, each as :func:`line` writes it.

    Examples
    --------
    >>> print(visible_page("one\n::two\x1b"))
    one
    \x3a:two\x1b
    """
    return "\n".join(map(line, text.split("\n")))


def message(text: str, most: int = _MESSAGE) -> str:
    """Return a sentence about an input in one line of at most 500 characters.

    A message begins with what was found and where, and ends with what to do; what may be endless is
    quoted in between. So it is cut there: first what has no blanks in it, then the middle.

    Examples
    --------
    >>> message("there is no column 'x'; give another.")
    "there is no column 'x'; give another."
    >>> long = message(f"column {'x' * 10**6} holds {'no number ' * 10**5}; give numbers.")
    >>> len(long), long[:10], long[-15:]
    (500, 'column xxx', '; give numbers.')
    """
    ends = clipped(text, 8 * most)  # before anything is done to each character of it
    words = re.sub(rf"\S{{{_WORD + 1},}}", lambda word: clipped(word[0], _WORD), line(ends))
    return clipped(words, most)


def shown(name: str, most: int = _NAME) -> str:
    r"""Return a name that comes with the data as it is shown: visible, and not long.

    Examples
    --------
    >>> print(shown("north"), shown("a\x1b"), shown("a_rather_long_name", 10))
    north a\x1b a_rat…name
    """
    return clipped(visible(name[: 4 * most] + name[4 * most :][-4 * most :]), most)


def shown_class(name: str, most: int = _CLASS_NAME) -> str:
    """Return the name of a class.

    Examples
    --------
    >>> shown_class("automobile"), shown_class("a_rather_long_name", 14)
    ('automobile', 'a_rather_long…')
    """
    return shortened(visible(name), most)


def shown_column(name: str, most: int = _COLUMN) -> str:
    r"""Return the name of a column.

    Examples
    --------
    >>> print(shown_column("region"), shown_column("a\x1b"))
    region a\x1b
    """
    return shortened(_with_ends(name), most)


def shown_value(value: str, most: int = _VALUE) -> str:
    """Return the value of a group; blanks at an end are seen.

    Examples
    --------
    >>> shown_value("north"), shown_value(" ")
    ('north', "' '")
    """
    return shortened(_with_ends(value), most)


def shown_group(column: str, value: str, most: tuple[int, int] = (_COLUMN, _VALUE)) -> str:
    """Return a column and a value, shortened one by one.

    Examples
    --------
    >>> shown_group("region", "north"), shown_group("region_of_the_world", "north", (8, 24))
    ('region = north', 'region_… = north')
    """
    return f"{shown_column(column, most[0])} = {shown_value(value, most[1])}"


def _with_ends(text: str) -> str:
    return visible(text) if text == text.strip() else f"'{visible(text)}'"


def clipped(text: str, most: int) -> str:
    """Leave out the middle of a long text.

    Examples
    --------
    >>> clipped("resnet18", 28), clipped("a_very_long_name_of_a_network_20240131", 28)
    ('resnet18', 'a_very_long_na…work_20240131')
    """
    if len(text) <= most:
        return text
    start = shortened(text, most // 2 + 1)
    end = len(text) - (most - most // 2 - 1)
    while end < len(text) and _joined(text[end], text[end - 1]):
        end += 1
    return start + text[end:]


def shortened(name: str, most: int) -> str:
    """Leave out the end of a long name, but not half of a sign that is made of several characters.

    Examples
    --------
    >>> shortened("automobile", 14), shortened("a_rather_long_name", 14)
    ('automobile', 'a_rather_long…')
    """
    if len(name) <= most:
        return name
    kept = name[: most - 1]
    while kept and _joined(name[len(kept)], kept[-1]):
        kept = kept[:-1]
    return f"{kept}…"


def _joined(character: str, before: str) -> bool:
    """Whether a character belongs to the one before it: a combining mark, or part of an emoji."""
    joiner = "\N{ZERO WIDTH JOINER}"
    skin = 0x1F3FB <= ord(character) <= 0x1F3FF
    return joiner in (character, before) or skin or unicodedata.category(character) in ("Mn", "Me")


# ------------------------------------------------------------------ values, as in Python

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
