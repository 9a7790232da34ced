"""A page of text: paragraphs and tables, in lines that fit a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from caltest._visible import line, message

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
