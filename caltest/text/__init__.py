"""All sentences that users read of results, and only here.

A result does not import its words. When it is printed it calls :func:`written` (through
:mod:`caltest._printers`), which finds them by the name of its class: a new result has its function in
:mod:`caltest.text.summaries`, and its line in the table. The function gathers facts; a page of
sentences is a template in ``templates/``.

A template names the parts of its page as it writes them: ``title``, ``headline`` and ``brief``, a
``row`` of the table, a ``paragraph`` (or one right ``beneath`` another), and ``lines`` that are laid
out already. Line breaks in a template are blanks.
"""

from __future__ import annotations

import inspect
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache, partial
from importlib import import_module
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from caltest import _numbers
from caltest._visible import line, message, shown, visible
from caltest.exceptions import Argument, Premise
from caltest.results import Page
from caltest.text.vocabulary import TENDS, WRONG

#: By the name of a result's class: the module here, and the function in it, that sums it up.
SUMMARIES = {
    "Audit": "audit.summary",
    "AuditPlan": "summaries.audit_plan",
    "CalibrationResult": "summaries.calibration",
    "ChiSquareTest": "summaries.chi_square",
    "Certificate": "summaries.certificate",
    "Comparison": "summaries.comparison",
    "MiscalibrationBounds": "summaries.bounds",
    "MonitorState": "summaries.monitor",
    "Recalibration": "summaries.recalibration",
    "Simulation": "summaries.planning",
    "SquaredErrorEstimate": "summaries.estimation",
}


def written(result: object, what: str) -> str:
    """Return a text about a result: its "summary", or that of another function of its module.

    A result of a derived class has the texts of its base.
    """
    name = next(each.__name__ for each in type(result).__mro__ if each.__name__ in SUMMARIES)
    module, _, summary = SUMMARIES[name].partition(".")
    write = getattr(import_module(f".{module}", __name__), summary if what == "summary" else what)
    text: str = write(result)
    return text


# ------------------------------------------------------------------ pages by templates

_BREAK: Literal["\r\n"] = "\r\n"  # of a template; texts that come with the data are made visible before


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
    environment.globals |= dict(inspect.getmembers(_numbers, inspect.isfunction))
    environment.globals |= {"shown": shown, "through": through, "finite": math.isfinite}
    environment.globals |= {"TENDS": TENDS, "WRONG": WRONG, "Argument": Argument}
    environment.filters |= {"quoted": repr, "visible": visible}
    return environment


def _joined(text: str) -> str:
    return re.sub(rf" *(?:{_BREAK} *)+", " ", text).strip()


def said(template: str, macro: str, *facts: Any) -> str:
    """Return the sentences that a macro of a template makes of facts."""
    return _joined(getattr(_environment().get_template(f"{template}.j2").module, macro)(*facts))


def filled(template: str, notes: Iterable[str | Premise], **facts: Any) -> Page:
    """Return the page that a template makes of facts."""
    rows: list[tuple[str, str]] = []
    blocks: list[list[str]] = []
    lead = dict.fromkeys(("title", "headline", "brief"), "")

    def part(put: Callable[..., object]) -> Callable[..., str]:
        def called(*name: str, caller: Callable[[], str]) -> str:
            put(*name, _joined(caller()))
            return ""  # stands in its place

        return called

    facts |= {
        "row": part(lambda name, text: rows.append((name, text))),
        "paragraph": part(lambda text: blocks.append(paragraph(text))),
        "beneath": part(lambda text: blocks[-1].extend(paragraph(text))),
        "lines": blocks.append,
    }
    facts |= {name: part(partial(lead.__setitem__, name)) for name in lead}
    _environment().get_template(f"{template}.j2").render(facts)
    return page(lead.pop("title"), rows, *blocks, notes=notes, **lead)


# ------------------------------------------------------------------ layout


_NARROWEST, _WIDEST = 40, 96  # columns
_PARAGRAPH = 4000  # characters
#: Whether lines are laid out for a file: the same, whatever the terminal.
OF_FILE = ContextVar("of_file", default=False)


def width() -> int:
    """Return how many columns a line has: those of the terminal that is written to, at most 96."""
    if OF_FILE.get() or sys.stdout is None or not sys.stdout.isatty():
        return _WIDEST
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))


def page(
    title: str,
    rows: Iterable[tuple[str, str]],
    *blocks: list[str],
    notes: Iterable[str | Premise] = (),
    headline: str = "",
    brief: str = "",
) -> Page:
    """Return a summary: a title, a table of names and texts, and blocks with a blank line before each.

    Premises in doubt come first, other notes last. A block is lines, such as those of a paragraph;
    empty ones are left out. Every summary is made here, and every line is one to whatever shows it, so
    that no name that comes with the data is obeyed by a terminal or a log. ``headline`` and ``brief``
    are for other printers, as :class:`Page` says.
    """
    rows, notes = tuple(rows), tuple(notes)
    doubts = [f"In doubt: {each}" for each in notes if isinstance(each, Premise)]
    plain = [str(each) for each in notes if not isinstance(each, Premise)]
    lines = [title, *(each for name, text in rows for each in row(name, text))]
    for block in (*map(paragraph, doubts), *blocks, *(paragraph(f"Note: {note}") for note in plain)):
        lines += ["", *block] if block else []
    found = Page("\n".join(map(line, lines)))
    found.headline, found.brief = (
        line(message(text, _PARAGRAPH)) for text in (headline or title, brief)
    )
    noted = (*rows, *(("note", note) for note in (*doubts, *plain)))
    found.rows = tuple((line(name), line(message(text, _PARAGRAPH))) for name, text in noted)
    return found


def row(name: str, text: str, room: int = 11) -> list[str]:
    """Return the lines of a row of a table: a name, in so many columns, and a text that may wrap."""
    first, rest = f"  {name:<{room}}", " " * (room + 2)
    layout = textwrap.TextWrapper(width(), first, rest, break_on_hyphens=False)
    return layout.wrap(message(text, _PARAGRAPH))


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph."""
    return textwrap.wrap(message(text, _PARAGRAPH), width(), break_on_hyphens=False)


def through(lens: str | None) -> str:
    """Say through which lens something was seen, after a noun."""
    return f", lens {shown(lens)}" if lens else ""
