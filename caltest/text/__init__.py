"""All sentences that users read of results, and only here.

A result does not import its texts. When printed, it calls :func:`written` (through
:mod:`caltest._printers`), which finds them by the name of its class: a new result needs a function in
:mod:`caltest.text.summaries`, and a line in `SUMMARIES`. The function gathers facts; the sentences are
a template in ``templates/``.

A template names the parts of its page as it writes them: ``about``, ``chip`` with ``why`` beside it,
``headline``, ``size`` and ``brief``, a ``step`` to take next, a ``row`` of the evidence and a
``detail`` for verbose output, a ``paragraph`` (or one right ``beneath`` another), and ``lines`` already
laid out. Line breaks in a template become blanks.
"""

from __future__ import annotations

import inspect
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import cache, partial
from importlib import import_module
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from caltest import _numbers
from caltest._numbers import in_unit_of, leading
from caltest._visible import line, message, shortened, shown, visible
from caltest.exceptions import Argument, Premise
from caltest.results import Page, PageTable
from caltest.story import Story
from caltest.text.vocabulary import CALLED, TENDS, WRONG

#: Function that summarises a result, by the name of its class.
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
    """Return a text about a result: its "summary", or the text of another function in its module.

    A derived class uses the texts of its base.
    """
    name = next(each.__name__ for each in type(result).__mro__ if each.__name__ in SUMMARIES)
    module, _, summary = SUMMARIES[name].partition(".")
    write = getattr(import_module(f".{module}", __name__), summary if what == "summary" else what)
    text: str = in_unit_of(write)(result)
    return text


# ------------------------------------------------------------------ pages by templates

_BREAK: Literal["\r\n"] = "\r\n"  # in a template; texts of the data are made visible first


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("caltest.text"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        newline_sequence=_BREAK,
        autoescape=False,  # a page is plain text; whoever displays it must escape it
    )
    environment.globals |= dict(inspect.getmembers(_numbers, inspect.isfunction))
    environment.globals |= {"shown": shown, "through": through, "finite": math.isfinite}
    environment.globals |= {"TENDS": TENDS, "WRONG": WRONG, "CALLED": CALLED, "Argument": Argument}
    environment.filters |= {"quoted": repr, "visible": visible}
    return environment


def _joined(text: str) -> str:
    return re.sub(rf" *(?:{_BREAK} *)+", " ", text).strip()


def said(template: str, macro: str, *facts: Any) -> str:
    """Return the sentences that a template macro makes from facts."""
    return _joined(getattr(_environment().get_template(f"{template}.j2").module, macro)(*facts))


_NONE = Story("")


def filled(template: str, notes: Iterable[str | Premise], story: Story = _NONE, **facts: Any) -> Page:
    """Return the page that a template makes from a story and other facts."""
    rows: list[tuple[str, str]] = []
    blocks: list[Any] = []
    details: list[tuple[str, str]] = []
    steps: list[str] = []
    lead = dict.fromkeys(("about", "chip", "why", "headline", "size", "brief"), "")

    def part(put: Callable[..., object]) -> Callable[..., str]:
        def called(*name: str, caller: Callable[[], str]) -> str:
            put(*name, _joined(caller()))
            return ""  # the text stands in its place

        return called

    facts |= {
        "story": story,
        "row": part(lambda name, text: rows.append((name, text))),
        "detail": part(lambda name, text: details.append((name, text))),
        "paragraph": part(lambda text: blocks.append(paragraph(text))),
        "beneath": part(lambda text: blocks[-1].extend(paragraph(text))),
        "step": part(steps.append),
        "lines": blocks.append,
        "table_of": lambda *given: blocks.append(PageTable(*given)),
    }
    facts |= {name: part(partial(lead.__setitem__, name)) for name in lead}
    _environment().get_template(f"{template}.j2").render(facts)
    found = laid_out(story, rows, blocks, steps, notes, **lead)
    found.details = "\n".join(line(each) for of in details for each in row(*of))
    return found


# ------------------------------------------------------------------ layout


_NARROWEST, _WIDEST = 40, 96  # columns
_PARAGRAPH = 4000  # characters
#: Whether lines are laid out for a file: independent of the terminal.
OF_FILE = ContextVar("of_file", default=False)


def width() -> int:
    """Return the number of columns in a line: the terminal's if we write to one, at most 96."""
    if OF_FILE.get() or sys.stdout is None or not sys.stdout.isatty():
        return _WIDEST
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))


def laid_out(
    story: Story,
    rows: Sequence[tuple[str, str]],
    blocks: Sequence[list[str] | PageTable],
    steps: Sequence[str],
    notes: Iterable[str | Premise],
    **lead: str,
) -> Page:
    """Return a summary: the answer, its numbers, tables, next steps, evidence and notes.

    Premises in doubt come directly below the answer, because it rests on them.
    """
    verdict, notes = ", ".join(filter(None, (lead["chip"], lead["why"]))), tuple(notes)
    doubts = [f"In doubt: {each}" for each in notes if isinstance(each, Premise)]
    others = [str(each) for each in notes if not isinstance(each, Premise)]
    answer = " ".join(filter(None, (verdict and f"{verdict}.", lead["headline"])))
    todo = ["What to do next"]
    for number, text in enumerate(steps, 1):
        todo += paragraph(text, f"  {number}. ", 5)
    table = [each for name, text in rows for each in row(name, text)]
    lines = [*paragraph(answer), *paragraph(lead["size"])]
    told = [each for note in others for each in paragraph(f"Note: {note}")]
    for block in (*map(paragraph, doubts), *blocks, todo if steps else [], table, told):
        block = _columns(block) if isinstance(block, PageTable) else block
        lines += ["", *block] if block else []
    shown = (x if isinstance(x, PageTable) else "\n".join(map(line, x)) for x in blocks if x)
    found = Page("\n".join(map(line, lines)))  # terminals and logs obey nothing in names from the data
    for name, text in {"answer": answer, "kind": story.verdict.replace(" ", "-"), **lead}.items():
        setattr(found, name, _line(text))
    found.rows = tuple((name, _line(text)) for name, text in rows)
    found.notes, found.steps = (tuple(map(_line, each)) for each in ([*doubts, *others], steps))
    found.blocks = tuple(shown)
    return found


_FIRST = 36  # characters of a table's first column


def _columns(table: PageTable) -> list[str]:
    """Lay out a table: its first rows, and as many columns as fit."""
    rows = leading(table.rows, table.most)
    lines = [tuple(map(visible, each)) for each in (table.heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    widths[0] = min(widths[0], _FIRST)
    while sum(widths) + 2 * len(widths) > width() and len(widths) > 2:
        del widths[-1]
    found = list[str]()
    for each in lines:
        cells = (f"  {shortened(cell, w):{w}}" for cell, w in zip(each, widths, strict=False))
        found.append("".join(cells).rstrip())
    more = len(table.rows) - len(rows)
    return [*found, *([f"  and {more:,} more: see {table.where}"] if more else [])]


def _line(text: str) -> str:
    return line(message(text, _PARAGRAPH))


def row(name: str, text: str, room: int = 11) -> list[str]:
    """Return the lines of a table row: a name in ``room`` columns, and a text that may wrap."""
    return paragraph(text, f"  {name:<{room - 1}} ", room + 2)


def paragraph(text: str, first: str = "", indent: int = 0) -> list[str]:
    """Return the lines of a paragraph; ``first`` is put before it, blanks before further lines."""
    text = message(text, _PARAGRAPH)
    indents: Any = {"initial_indent": first, "subsequent_indent": " " * indent}
    return textwrap.wrap(text, width(), break_on_hyphens=False, **indents)


def through(lens: str | None) -> str:
    """Return the lens as a clause after a noun; "" without one."""
    return f", lens {shown(lens)}" if lens else ""
