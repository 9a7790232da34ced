"""Names of any kind made fit to be shown: nothing hidden in them, and not longer than a line."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_NAME = 48  # characters of a name that are shown
_SENTENCE = 1500
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_LIST = re.compile(r"^(\s*\d*)([-+.)])")
_MENTION = re.compile(r"([@#])(?=\w)")
_WORD_JOINER = "\N{WORD JOINER}"  # invisible: @name then calls nobody, and #1 links to nothing
_DIRECTIONS = frozenset("\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NO_CHARACTERS = frozenset("\ufffe\uffff\u2028\u2029\ufeff")


@dataclass(frozen=True)
class Name:
    """A name as it is shown, and in full where that is more.

    Attributes
    ----------
    short
        At most 48 characters.
    full
        All of it; None if ``short`` is.
    """

    short: str
    full: str | None

    @classmethod
    def of(cls, text: str, most: int = _NAME) -> Name:
        """Shorten a text.

        Examples
        --------
        >>> Name.of("north"), Name.of("a_rather_long_name", 8)
        (Name(short='north', full=None), Name(short='a_rathe…', full='a_rather_long_name'))
        """
        shown = visible(text)
        short = clipped(shown, most)
        return cls(short, None if short == shown else shown)


def visible(text: str) -> str:
    r"""Write what hides in a text (control characters, changes of direction) as Python escapes it.

    The result is fit for HTML, for XML and for UTF-8.

    Examples
    --------
    >>> print(visible("one\ntwo\x00"), visible("a\u202eb\ud800"))
    one\ntwo\x00 a\u202eb\ud800
    """
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    hidden = character in _DIRECTIONS or character in _NO_CHARACTERS
    if hidden or unicodedata.category(character) in ("Cc", "Cs"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def clipped(text: str, most: int) -> str:
    """Leave out the end of a long text, but not half of a sign that is made of several characters.

    Examples
    --------
    >>> clipped("automobile", 5), clipped("abc", 3)
    ('auto…', 'abc')
    """
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    while kept and _joined(text[len(kept)], kept[-1]):
        kept = kept[:-1]
    return f"{kept}…"


def _joined(character: str, before: str) -> bool:
    """Whether a character belongs to the one before it: a combining mark, or part of an emoji."""
    joiner = "\N{ZERO WIDTH JOINER}"
    skin = 0x1F3FB <= ord(character) <= 0x1F3FF
    return joiner in (character, before) or skin or unicodedata.category(character) in ("Mn", "Me")


def sentence(text: str) -> str:
    """Return a sentence with names in it as it is shown.

    Examples
    --------
    >>> sentence("The top label in region = north.")
    'The top label in region = north.'
    """
    return clipped(visible(text), _SENTENCE)


def markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is; no one is called, nothing is linked.

    Examples
    --------
    >>> print(markdown("a|b <c> *d*"))
    a\|b \<c\> \*d\*
    """
    escaped = _LIST.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", visible(text)))
    return _MENTION.sub(rf"\1{_WORD_JOINER}", escaped)


def code(text: str) -> str:
    r"""Return a text as a code span of Markdown, which fits into a table.

    Examples
    --------
    >>> print(code("a|b"), code("x`y"))
    `a\|b` ``x`y``
    """
    shown = visible(text).replace("|", "\\|")
    fence = "`" * (1 + longest_run(shown, "`"))
    space = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) or not shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def fenced(text: str, language: str) -> str:
    """Return a block of code of Markdown.

    Examples
    --------
    >>> print(fenced("f(x)", "python"))
    ```python
    f(x)
    ```
    """
    fence = "`" * max(3, 1 + longest_run(text, "`"))
    return f"{fence}{language}\n{text}\n{fence}"


def longest_run(text: str, character: str) -> int:
    """Return how often a character follows itself at most.

    Examples
    --------
    >>> longest_run("a``b`", "`"), longest_run("", "`")
    (2, 0)
    """
    return max((len(run) for run in re.findall(f"{re.escape(character)}+", text)), default=0)
