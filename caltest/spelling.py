"""Spelling: one value is one group, cluster or name, in any way of writing and in any container."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import count
from numbers import Number
from typing import Any, NamedTuple, TypeAlias
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

from caltest._visible import attempt, quoted
from caltest.exceptions import InputError, Premise

NAMELESS = ("NoneType", "NAType", "NaTType")
_ABSENT = ("", "na", "n/a", "#n/a", "nan", "-nan", "none", "null", "<na>", "nat")
_NUMBER = re.compile(r"\s*[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf(inity)?)\s*", re.A | re.I)
# Text that is a number, not a code such as "00501" or "12e4".
_COUNTED = re.compile(
    r"[+-]?(?=\.?\d)(?:0|[1-9]\d{0,39})?(?:\.\d{0,40}(?:e[+-]?\d{1,3})?|e[+-]\d{1,3})?", re.A | re.I
)
_LONGEST = 40  # digits of a whole number
_TIME = re.compile(
    r"(?ai)(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|[+-]\d\d(?::?\d\d)?| UTC)?"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?: .+)?")
_UTC = ("Z", "z", "+00:00", "+0000", " UTC")
# Cyrillic and Greek letters that look like Latin capitals; dashes; 0 and o, 1 and l and i.
_TAKEN_FOR = str.maketrans(
    "авсеһіјкмнорѕтухѵαβεζηικμνορτυχı‐‑–—−’‘oli", "abceh1jkmh0pstyxvabezh1kmn0ptyx1-----''011", "\u0307"
)
_NAMES = 1000  # distinct values; if there are more, they are numbers of something rather than names


def is_number(cell: str) -> bool:
    """Return whether text is a number as CSV readers define it (Python accepts "1_000" too).

    >>> is_number(" -1.5e3 "), is_number("inf"), is_number("nan"), is_number("1_000")
    (True, True, False, False)
    """
    return _NUMBER.fullmatch(cell) is not None


def is_missing(cell: Any) -> bool:
    """Return whether an entry is empty, NaN, or a word for a missing value ("NA", "null")."""
    if type(cell).__name__ in NAMELESS:
        return True
    if isinstance(cell, str):
        return cell.strip().lower() in _ABSENT
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return isinstance(cell, Number | np.generic) and bool(cell != cell)


def spelled(cell: Any) -> str | None:
    """Return one text for all ways to write a value; None if it is missing.

    Numbers are normalised, except codes with leading zeros; so are booleans, dates and times. Other
    text is compared character by character, without blanks at its ends.

    >>> [spelled(cell) for cell in (1, 1.0, "1.0", "0.10", "1e+06", "007", True, "TRUE", b"a ")]
    ['1', '1', '1', '0.1', '1000000', '007', 'True', 'True', 'a']
    >>> spelled("2024-01-05T00:00:00"), spelled(float("nan"))
    ('2024-01-05', None)
    """
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "surrogateescape")
    elif not isinstance(cell, str):
        if is_missing(cell):
            return None
        cell = str(cell)  # for numbers, the shortest text that gives the number in its own precision
    text: str = cell.strip().strip("\ufeff")
    if _COUNTED.fullmatch(text):
        return text if text.isdecimal() else _as_number(text)
    if (word := text[:5].capitalize()) in ("True", "False") and len(word) == len(text):
        return word
    if time := _TIME.fullmatch(text):
        return attempt(lambda: _as_time(*(each or "" for each in time.groups()))) or text
    return text if text.isascii() else normalize("NFC", text)


def _as_number(text: str) -> str:
    number = Decimal(text)
    if number == number.to_integral_value() and number.adjusted() < _LONGEST:
        return str(int(number))
    found = float(number)
    return repr(found) if found and abs(found) < np.inf else text


def _as_time(date: str, minute: str, second: str, part: str, zone: str) -> str:
    """Write a time, in UTC if it has a zone; a time at midnight is written as a date."""
    if zone:
        zone = "+00:00" if zone in _UTC else zone
        there = datetime.fromisoformat(f"{date}T{minute}{second}{zone}").astimezone(UTC)
        date, minute, second = f"{there:%Y-%m-%d %H:%M %S}".split()
    clock = f"{minute}:{second.strip(':') or '00'}{part.rstrip('.0')}"
    return date if clock == "00:00:00" else f"{date} {clock}{'+00:00' * bool(zone)}"


def number_of(text: str | None) -> float:
    """Return a spelled value as a number; NaN if it is not a number.

    >>> number_of("2.5"), number_of("007")
    (2.5, nan)
    """
    return float(text) if text is not None and _COUNTED.fullmatch(text) else np.nan


def moment_of(text: str | None) -> np.datetime64 | None:
    """Return a spelled date or time, to microseconds; None if it is neither.

    >>> [str(moment_of(text)) for text in ("2024-01-31", "2024-01-31 12:00:00+00:00", "2024-02-31")]
    ['2024-01-31T00:00:00.000000', '2024-01-31T12:00:00.000000', 'None']
    """
    plain = (text or "").removesuffix("+00:00")
    return attempt(lambda: np.datetime64(plain, "us")) if _DATE.fullmatch(plain) else None


# ------------------------------------------------------------------ columns of values


_BOOLEANS = ((False,), (True,))


#: A code for every row, and the cells that the codes stand for.
Different: TypeAlias = tuple[NDArray[np.intp], np.ndarray]


def different(cells: Sequence[Any], what: str) -> Different:
    """Return a code for every row, and the cells, as written, that the codes stand for.

    Missing cells come last. ``what`` is the name of the argument.
    """
    kinds = set(map(type, cells))
    if kinds & {bool, np.bool_}:  # True is not 1
        cells = [_BOOLEANS[bool(x)] if isinstance(x, bool | np.bool_) else x for x in cells]
    if Decimal in kinds:  # a NaN Decimal cannot be compared
        cells = [None if isinstance(x, Decimal) and x.is_nan() else x for x in cells]
    values = np.array(cells if kinds in ({int}, {float}) else None)
    if values.dtype.kind in ("iu" if int in kinds else "f"):  # not too large
        ordered, first, places = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        codes, distinct = np.argsort(order)[places], ordered[order]
        absent = np.isnan(distinct)
    else:
        number_of_cell = defaultdict[Any, int](count().__next__)
        try:
            codes = np.fromiter(map(number_of_cell.__getitem__, cells), np.intp, len(cells))
        except Exception:  # an entry that is not hashable, or not comparable
            for row, cell in enumerate(cells):
                if attempt(partial(hash, cell)) is None:
                    raise no_value(what, row, cell) from None
            return different([*map(str, cells)], what)
        every = [x[0] if type(x) is tuple and x in _BOOLEANS else x for x in number_of_cell]
        distinct = np.fromiter(every, object, len(every))
        absent = np.array([not isinstance(x, str) and is_missing(x) for x in every], np.bool_)
    if absent.any():
        codes = np.where(absent, (~absent).sum(), np.cumsum(~absent) - 1)[codes]
        distinct = np.append(distinct[~absent], [np.nan if distinct.dtype.kind == "f" else None])
    return codes, distinct


def no_value(what: str, row: int, cell: Any) -> InputError:
    """Return the error for a cell that is neither a name nor a number."""
    do = "{argument} holds {found} in {row}; give a name or a number for every row, as text if need be."
    return InputError(do, argument=what, found=quoted(cell), row=row)


class Spelled(NamedTuple):
    """A spelled column: a code for every row, and the value that each code stands for."""

    codes: NDArray[np.intp]
    texts: list[str | None]
    notes: tuple[str, ...]  #: On values written in several ways.
    doubts: tuple[Premise, ...]  #: On different values that look the same.


def column_of(
    cells: Sequence[Any], what: str, kind: str, needed: str = "", read: Different | None = None
) -> Spelled:
    """Read the values of a column.

    Parameters
    ----------
    cells
        The cells of a column.
    what, kind
        The name of the column in messages, and the noun for rows of one value: "cluster".
    needed
        Advice on missing values, if there must be none.
    read
        The result of :func:`different`, if it is known already.
    """
    codes, distinct = read or different(cells, what)
    if distinct.dtype.kind in "iu":
        return Spelled(codes, list(map(str, distinct.tolist())), (), ())
    places = np.empty(len(distinct), np.intp)
    known: dict[str | None, tuple[int, Any]] = {}
    merged = ""
    for number, cell in enumerate(distinct.tolist()):
        try:
            text = spelled(cell)
        except Exception:  # as Python writes no number of more than 4300 digits
            raise no_value(what, int(np.argmax(codes == number)), cell) from None
        if needed and is_missing(cell):
            word = f", {quoted(cell)}," if isinstance(cell, str) and cell else ""
            missing = "{argument} has missing values, the first{found} in {row}; {do}."
            row = int(np.argmax(codes == number))
            raise InputError(missing, argument=what, found=word, row=row, do=needed)
        places[number], first = known.setdefault(text, (len(known), cell))
        if not (merged or first is cell) and any(isinstance(x, str | Decimal) for x in (first, cell)):
            mixed = not (isinstance(first, str) and isinstance(cell, str))
            pair = [quoted(x) + " as text" * (mixed and isinstance(x, str)) for x in (first, cell)]
            both = ", and ".join(pair)
            merged = f"{what[:1].upper()}{what[1:]} holds {both}: they count as one {kind}."
    texts = list(known)
    return Spelled(places[codes], texts, (merged,) * bool(merged), alike(texts, what, kind))


def alike(texts: Iterable[str | None], what: str, kind: str) -> tuple[Premise, ...]:
    """Return a doubt about the first two values that look the same."""
    every = [text for text in texts if text]
    names = {text for text in every if not _COUNTED.fullmatch(text)}
    first: dict[str, str] = {}
    for name in every if names and len(every) <= _NAMES else ():
        folded = normalize("NFKC", name).casefold().translate(_TAKEN_FOR)
        key = "".join(x for x in folded if category(x) not in ("Zs", "Cc", "Cf"))
        if (other := first.setdefault(key, name)) is not name and {name, other} & names:
            both = f"{what[:1].upper()}{what[1:]} holds {quoted(other)} and {quoted(name)}"
            alike = f"differ by case, blanks or letters that look alike, and count as two {kind}s"
            seen = f"{both}, which {alike}"
            return (Premise(f"names of {kind}s", seen, "if they are one, write them alike"),)
    return ()
