"""Names that come with the data, as they are shown: nothing hidden in them, and not longer than a line.

What is looked at is told apart by the names as they are; how they are shown is decided here alone.
"""

from __future__ import annotations

from caltest._visible import shortened, visible

# Characters: each name by itself, so that a long one leaves no other out.
_CLASS = 24
_COLUMN = 20
_VALUE = 24


def shown_class(name: str, most: int = _CLASS) -> str:
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
