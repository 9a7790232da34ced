"""Pages by templates: sentences stand in ``templates/``, and the facts of a result come from here.

A template names the parts of its page as it writes them: ``title``, ``headline`` and ``brief``, a
``row`` of the table, a ``paragraph`` (or one right ``beneath`` another), and ``lines`` that are laid
out already. Line breaks in a template are blanks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from caltest._visible import shown, visible
from caltest.text import numbers
from caltest.text.numbers import Page, page
from caltest.text.vocabulary import TENDS, WRONG

_BREAK: Literal["\r\n"] = "\r\n"  # of a template; texts that come with the data are made visible before
_FACTS = (
    "confidence_text",
    "counted",
    "kept_of",
    "percent",
    "percents",
    "points",
    "pvalue",
    "short",
    "through",
    "without_rounding",
)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("caltest.text"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        newline_sequence=_BREAK,
        autoescape=False,  # a page is plain text; who shows it escapes it
    )
    environment.globals |= {name: getattr(numbers, name) for name in _FACTS}
    environment.globals |= {"shown": shown, "TENDS": TENDS, "WRONG": WRONG, "finite": math.isfinite}
    environment.filters |= {"quoted": repr, "visible": visible}
    return environment


def _joined(text: str) -> str:
    return re.sub(rf" *(?:{_BREAK} *)+", " ", text).strip()


def said(template: str, macro: str, *facts: Any) -> str:
    """Return the sentences that a macro of a template makes of facts."""
    return _joined(getattr(_environment().get_template(f"{template}.j2").module, macro)(*facts))


def written(template: str, notes: Iterable[str], **facts: Any) -> Page:
    """Return the page that a template makes of facts."""
    rows: list[tuple[str, str]] = []
    blocks: list[Sequence[str]] = []
    lead = dict.fromkeys(("title", "headline", "brief"), "")

    def row(name: str, caller: Callable[[], str]) -> str:
        rows.append((name, _joined(caller())))
        return ""

    def paragraph(caller: Callable[[], str]) -> str:
        blocks.append(_joined(caller()))
        return ""

    def beneath(caller: Callable[[], str]) -> str:
        above = blocks.pop()
        blocks.append(
            [
                *(numbers.paragraph(above) if isinstance(above, str) else above),
                *numbers.paragraph(_joined(caller())),
            ]
        )
        return ""

    def lines(block: Sequence[str]) -> str:
        blocks.append(block)
        return ""

    def leading(caller: Callable[[], str], name: str) -> str:
        lead[name] = _joined(caller())
        return ""

    facts |= {"row": row, "paragraph": paragraph, "beneath": beneath, "lines": lines}
    facts |= {name: partial(leading, name=name) for name in lead}
    _environment().get_template(f"{template}.j2").render(facts)
    return page(
        lead["title"], rows, *blocks, notes=notes, headline=lead["headline"], brief=lead["brief"]
    )
