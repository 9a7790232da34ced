"""Names of any kind made fit to be shown: nothing hidden in them, and not longer than a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from caltest._visible import line, shortened, visible

_NAME = 48  # characters of a name that are shown
_SENTENCE = 1500
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_LIST = re.compile(r"^(\s*\d*)([-+.)])")
# What calls someone (@name), or is a link to whoever shows it: #1, !1, GH-1, www.name.org, https://…
_LINKED = re.compile(r"([@#!](?=\w)|(?<![^\W_])(?:GH-(?=\d)|www(?=\.))|:(?=//))", re.IGNORECASE)
_WORD_JOINER = "\N{WORD JOINER}"  # invisible: what it breaks is text


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
        short = shortened(shown, most)
        return cls(short, None if short == shown else shown)


def sentence(text: str) -> str:
    """Return a sentence with names in it as it is shown.

    Examples
    --------
    >>> sentence("The top label in region = north.")
    'The top label in region = north.'
    """
    return shortened(visible(text), _SENTENCE)


def markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is; no one is called, nothing is linked.

    Examples
    --------
    >>> print(markdown("a|b <c> *d*"))
    a\|b \<c\> \*d\*
    """
    escaped = _LIST.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", visible(text)))
    return _LINKED.sub(rf"\1{_WORD_JOINER}", escaped)


def code(text: str) -> str:
    r"""Return a text as a code span of Markdown, which fits into a table.

    Examples
    --------
    >>> print(code("a|b"), code("x`y"))
    `a\|b` ``x`y``
    """
    shown = line(text).replace("|", "\\|")
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
