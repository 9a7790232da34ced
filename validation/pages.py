r"""Numbers, tables and the index of the record on pages, which are then read without building anything.

``34%<!-- = clusters_summary.csv | expression -->``
    A number: the word before the mark. Several words begin at ``<!-- text -->``.
``<!-- results: clusters_summary.csv | expression -->`` to ``<!-- end -->``
    A table, with its file and the command that writes it below.
``<!-- studies -->`` to ``<!-- end -->``
    All studies, and where each is shown.

In an expression ``table`` is the file as a data frame, whose index is left out, and ``frame(name)``
is another one; inside a Markdown table
``|`` is written ``\|``. ``python -m validation.pages`` writes the pages again; with ``--check`` it
names those that differ, and fails if there are any.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from caltest.nulls import NULLS
from caltest.statistics import TABLE
from validation._registry import STUDIES
from validation._study import RESULTS, ROOT

NAMES = {*TABLE, *NULLS, "one_calibration", "ksd_calibration"}
VALUE = re.compile(
    r"(<!-- text -->[^\n]*?|\d{1,3}(?: \d{3})+%?|[^\s`|(*\[>=/–]+)<!-- = (\w+\.csv) \\?\| ([^\n]*?) -->"
)
TABLE = re.compile(
    r"^<!-- results: (\w+\.csv)(?: \| ([^\n]*))? -->\n(?:(?!^<!-- results).)*?^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
INDEX = re.compile(r"^<!-- studies -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that may have marks."""
    built = {"generated", "gallery", "_build"}
    docs = [path for path in (ROOT / "docs").rglob("*.md") if not built & set(path.parts)]
    others = ("README.md", "validation/README.md", ".github/release/paper.md")
    return [*(ROOT / each for each in others), *sorted(docs)]


@cache
def frame(name: str) -> pd.DataFrame:
    """Return a CSV file of the record."""
    return pd.read_csv(RESULTS / name)


def shown(name: str, expression: str | None) -> Any:
    """Return what ``expression`` makes of a CSV file of the record."""
    if expression is None:
        return frame(name)
    try:
        return eval(expression.replace(r"\|", "|"), {"table": frame(name), "frame": frame, "pd": pd})
    except Exception as error:
        raise ValueError(f"{name} | {expression}: {type(error).__name__}: {error}") from error


def cell(value: object) -> str:
    """Return a number as text, short; nothing for what is missing."""
    if isinstance(value, float):
        if pd.isna(value):
            return ""
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return str(value)


def command_of(name: str) -> str | None:
    """Return the command that writes a file of a study."""
    for study, each in STUDIES.items():
        if name in each.files:
            parts = [f" --only {part}" for part in each.commands if name in part.leaves]
            return f"python -m validation {study}{''.join(parts)}"
    return None


def markdown(heads: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table; columns of numbers are aligned on the right, names of columns in words."""
    heads = [
        str(head) if str(head).split("/")[0] in NAMES else str(head).replace("_", " ") for head in heads
    ]
    texts = [[re.sub(r"([|*$`\[\]\\])", r"\\\1", cell(each)) for each in row] for row in (heads, *rows)]
    columns = zip(*texts[1:], strict=True) if len(texts) > 1 else [()] * len(texts[0])
    rules = ["---:" if _numbers(column) else "---" for column in columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (texts[0], rules, *texts[1:]))


def _numbers(column: Sequence[str]) -> bool:
    found = [each for each in column if each]
    return bool(found) and all(re.fullmatch(r"[-−]?[\d.]+(?:e-?\d+)?%?", each) for each in found)


def rewritten(text: str, page: Path) -> str:
    """Return a page with what the files of the record say."""

    def link(path: Path, name: str = "") -> str:
        return f"[{name or path.name}]({os.path.relpath(path, page.parent)})"

    def value(mark: re.Match[str]) -> str:
        new, (old, name, expression) = cell(shown(mark[2], mark[3])), mark.groups()
        if not new:
            raise ValueError(f"{name} | {expression} is nothing")
        begin = "<!-- text -->" if old.startswith("<!-- text -->") else ""
        if re.search(rf"(?:^|[^\d.]){re.escape(new)}$", old) and not begin:
            return mark[0]
        return f"{begin}{new}{mark[0][len(old) :]}"

    def table(mark: re.Match[str]) -> str:
        found = shown(mark[1], mark[2])
        command = command_of(mark[1])
        made = link(RESULTS / mark[1]) + (f": `{command}`" if command else "")
        written = markdown(found.columns, found.itertuples(index=False))
        return f"{mark[0].partition(chr(10))[0]}\n\n{written}\n\n<sub>{made}</sub>\n\n<!-- end -->"

    def index(mark: re.Match[str]) -> str:
        heads = "| question | where | figures and tables | command | a full run |"
        rows = [heads, "| --- | --- | --- | --- | --- |"]
        of_studies = {ROOT / "docs" / f"{name}.md" for name in ("validation", "others", "wild")}
        of_studies |= {*(ROOT / "docs" / "validation").glob("*.md")}
        for name, study in STUDIES.items():
            at = [each for each in sorted(of_studies) if _shows(each, study.files)]
            where = ", ".join(link(each, each.stem) for each in at)
            there = [each for each in sorted(study.files, key=_last) if (RESULTS / each).exists()]
            files = ", ".join(link(RESULTS / each) for each in there)
            command = f"`python -m validation {name}`"
            rows.append(f"| {study.title} | {where} | {files} | {command} | {study.full} |")
        return "<!-- studies -->\n\n" + "\n".join(rows) + "\n\n<!-- end -->"

    return INDEX.sub(index, TABLE.sub(table, VALUE.sub(value, text)))


def _last(name: str) -> bool:
    return not name.endswith(".png")


def _shows(page: Path, names: Sequence[str]) -> bool:
    """Whether a page has a table or a picture of one of the files."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    marks = re.findall(r"^<!-- results: (\w+\.csv)|/results/(\w+\.png)\)", text, flags=re.MULTILINE)
    return any(name in names for mark in marks for name in mark if name)


def differing() -> dict[Path, str]:
    """Return the pages that differ from the files, each as it should be."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages() if page.exists()}
    again = {page: rewritten(text, page) for page, text in texts.items() if "<!-- " in text}
    return {page: text for page, text in again.items() if text != texts[page]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages again, or say which differ."""
    parser = argparse.ArgumentParser(prog="python -m validation.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page differs")
    given = parser.parse_args(arguments)
    found = differing()
    for page, text in found.items():
        print(page.relative_to(ROOT))
        if not given.check:
            page.write_text(text, encoding="utf-8")
    return int(given.check and bool(found))


if __name__ == "__main__":
    sys.exit(main())
