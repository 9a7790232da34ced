"""Text from users in messages: on one line, short, with every character visible."""

from __future__ import annotations

import inspect
import math
import re
import unicodedata
from collections.abc import Callable
from numbers import Integral, Real
from typing import TypeVar

T = TypeVar("T")

# ------------------------------------------------------------------ every character visible
#
# Class names, groups, file names and cells are whatever someone wrote. On a terminal an escape sequence
# moves the cursor; in a job's log a line that begins with ``::`` is a command; a name of two megabytes
# drowns everything else. Every sentence and every table passes through :func:`line` or :func:`message`
# on its way out; names pass through :func:`shown` where a sentence is made.

_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_NO_WIDTH = "\u00ad\u180e\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\ufff9\ufffa\ufffb"
_TAGS = "".join(map(chr, range(0xE0000, 0xE0080)))  # an invisible copy of ASCII
_HIDDEN = frozenset(f"{_TAGS}{_DIRECTIONS}{_NO_WIDTH}\u2028\u2029\ufffe\uffff")

# Markers that CI systems read as commands: GitHub "::error" at the start of a line and "##[error]"
# anywhere in it, Azure "##vso[…]", TeamCity "##teamcity[…]".
_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\w*\[)")

CLAUSE = 80  # of a clause that contains a name
_WORD = 160  # of a run without blanks; a path may be long


def visible(text: str) -> str:
    """Write hidden characters (control characters, changes of direction) as Python escapes them.

    The result is safe for a terminal, HTML, XML and UTF-8. Visible characters stay unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    hidden = (each in _HIDDEN or unicodedata.category(each) in ("Cc", "Cs") for each in text)
    return "".join(escaped(each) if hides else each for each, hides in zip(text, hidden, strict=True))


def escaped(character: str) -> str:
    """Write a character as Python escapes it, even a visible one."""
    written = character.encode("unicode_escape").decode("ascii")
    return f"\\x{ord(character):02x}" if written == character else written


def line(text: str) -> str:
    """Return one line for a terminal or a log: all visible, and nothing that a CI system would obey."""
    return _COMMAND.sub(lambda found: f"{found[1] or ''}{escaped(found[0][-1])}", visible(text))


def visible_page(text: str) -> str:
    """Return lines for a terminal or a log, each as :func:`line` writes it."""
    return "\n".join(map(line, text.split("\n")))


def message(text: str, most: int = 500) -> str:
    """Return a message about an input as one line of at most 500 characters.

    A message begins with what was found and where, and ends with advice; anything that can be endless
    is quoted in between. So the cut is made there: first in long runs without blanks, then in the
    middle.
    """
    ends = clipped(text, 8 * most)  # first, so that no step runs over a huge text
    words = re.sub(rf"\S{{{_WORD + 1},}}", lambda word: clipped(word[0], _WORD), line(ends))
    return clipped(words, most)


def shown(name: str, most: int = 48) -> str:
    """Return a name from the data as shown in messages: visible and short."""
    return clipped(visible(name[: 4 * most] + name[4 * most :][-4 * most :]), most)


def shown_class(name: str) -> str:
    """Return the name of a class, shortened at its end if it is long."""
    return shortened(visible(name), 24)


def shown_value(value: str, most: int = 24) -> str:
    """Return the value of a group, or the name of a group column; outer blanks are made visible."""
    return shortened(visible(value) if value == value.strip() else f"'{visible(value)}'", most)


def shown_column(name: str) -> str:
    """Return the name of a group column."""
    return shown_value(name, 20)


def clipped(text: str, most: int) -> str:
    """Shorten a long text in its middle."""
    if len(text) <= most:
        return text
    start = shortened(text, most // 2 + 1)
    end = len(text) - (most - most // 2 - 1)
    while end < len(text) and _joined(text[end], text[end - 1]):
        end += 1
    return start + text[end:]


def shortened(name: str, most: int) -> str:
    """Shorten a long name at its end, without splitting a sign made of several characters."""
    if len(name) <= most:
        return name
    end = most - 1
    while end and _joined(name[end], name[end - 1]):
        end -= 1
    return f"{name[:end]}…"


def _joined(character: str, before: str) -> bool:
    """Whether a character belongs to the one before it: combining marks, parts of an emoji."""
    joiner = "\N{ZERO WIDTH JOINER}"
    skin = 0x1F3FB <= ord(character) <= 0x1F3FF
    return joiner in (character, before) or skin or unicodedata.category(character) in ("Mn", "Me")


# ------------------------------------------------------------------ values, as Python writes them

#: Length of a quoted value: enough to recognise it, with room for the rest of the sentence.
MOST = 60


def quoted(value: object, most: int = MOST) -> str:
    """Write a value as Python does, the start of a long text, or the type of anything else."""
    kind = type(value)
    name = kind.__name__[:MOST]
    a_kind = f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
    if isinstance(value, str):
        text = repr(value[:most])
        return text if len(value) <= most else f"{text[:-1]}…{text[-1]} ({len(value)} characters)"
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        digits = int(number.bit_length() * math.log10(2.0)) + 1  # or one less
        if digits <= most:
            return str(number)
        if digits < 10_000:
            digits -= abs(number) < 10 ** (digits - 1)
        return f"a number of {digits} digits"
    if (name in ("bool", "bool_") or isinstance(value, Real)) and kind.__module__ == "numpy":
        return repr(float(value) if isinstance(value, Real) else bool(value))
    shape = attempt(lambda: value.shape)  # type: ignore[attr-defined]
    if isinstance(shape, tuple):
        array = "an array" if name == "ndarray" else a_kind
        return f"{array} of shape {shape}" if shape else array
    if inspect.isfunction(value):
        return "a function" if value.__name__ == "<lambda>" else f"the function {value.__name__[:most]}"
    if isinstance(value, type):
        return f"the class {value.__name__[:most]}"
    text = attempt(lambda: repr(value)) or "\n"  # one that fails to write itself is to be told so too
    unreadable = not text.isprintable() or " object at 0x" in text
    return a_kind if unreadable or len(text) > most else text


def as_text(value: object) -> str | None:
    """Return a value as text; None if that fails, as for an integer with thousands of digits."""
    return attempt(lambda: str(value))


def reason(error: BaseException) -> str:
    """Return the message of a third-party error, on one line."""
    return " ".join(str(error).split())


def attempt(of: Callable[[], T]) -> T | None:
    """Return the result of a function, or None if it raises: user objects may raise anything."""
    try:
        return of()
    except Exception:
        return None
