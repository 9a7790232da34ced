"""Tables and numbers of the validation studies, read from their CSV files when the site is built.

.. code-block:: markdown

    ```{results} validity_summary.csv
    :command: python -m validation validity
    :table: table.query("level == 0.05")[["null", "largest_rate"]]
    ```

    In the text {value}`validity.csv | len(table)` cells.

    ```{picture} widmann_figure1.png
    :command: python -m validation widmann
    What the picture shows.
    ```

    ```{studies}
    ```

``table`` is the file as a data frame; what is shown is a data frame (its index is left out) or, in the
text, anything that prints. So nothing that is shown can differ from the file beside it. A study that
has not been run says so instead, and a command that does not write the file is an error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "validation" / "results"

sys.path.insert(0, str(ROOT))

from validation.__main__ import writes  # noqa: E402
from validation._registry import STUDIES  # noqa: E402


def shown(name: str, expression: str | None) -> Any:
    """Return what ``expression`` makes of a CSV file of the results."""
    table = pd.read_csv(RESULTS / name)
    names = {"table": table, "pd": pd}
    return table if expression is None else eval(expression, names)


def cell(value: object) -> str:
    """Return a number as text, short; nothing for what is missing."""
    if isinstance(value, float):
        if pd.isna(value):
            return ""
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return str(value)


class ResultsTable(SphinxDirective):
    """A table of a CSV file, with the command that writes the file under it."""

    required_arguments = 1
    option_spec: ClassVar = {
        "command": directives.unchanged_required,
        "table": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Read and show it."""
        name = self.arguments[0]
        self.env.note_dependency(str(RESULTS / name))
        _checked(self, name)
        if not (RESULTS / name).exists():
            return [_made_by(self.options["command"], name, " has not been run; it writes ")]
        try:
            frame = shown(name, self.options.get("table"))
        except Exception as error:
            raise self.severe(f"{name}: {type(error).__name__}: {error}") from error
        return [_table(frame), _made_by(self.options["command"], name)]


class Picture(SphinxDirective):
    """A picture of the results, with the command that draws it under it."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"command": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Show it."""
        name, command = self.arguments[0], self.options["command"]
        caption = " ".join(self.content)
        _checked(self, name)
        if not (RESULTS / name).exists():
            return [_made_by(command, name, " has not been run; it writes ")]
        path = "/" + os.path.relpath(RESULTS / name, self.env.srcdir)
        image = nodes.image(uri=path, alt=caption, width="100%")  # so that it opens in full
        return [
            image,
            nodes.paragraph("", caption, classes=["caption"]),
            _made_by(command, name, " draws "),
        ]


class Studies(SphinxDirective):
    """A table of all studies, from their registry."""

    def run(self) -> list[nodes.Node]:
        """List them."""
        rows = [
            (f"python -m validation {name}", study.title, study.full) for name, study in STUDIES.items()
        ]
        return [_table(pd.DataFrame(rows, columns=["command", "what it shows", "a full run"]))]


def _checked(directive: SphinxDirective, name: str) -> None:
    """See that the command beside a file is one that writes it."""
    command = directive.options["command"]
    try:
        written = writes(command)
    except ValueError as error:
        raise directive.severe(str(error)) from error
    if name not in written:
        raise directive.severe(f"{command} does not write {name}, but {', '.join(written)}")


def _table(frame: pd.DataFrame) -> nodes.table:
    table = nodes.table(classes=["results"])
    group = nodes.tgroup(cols=frame.shape[1])
    group += [nodes.colspec(colwidth=1) for _ in frame.columns]
    head, body = nodes.thead(), nodes.tbody()
    head += _row(frame.columns)
    body += [_row(map(cell, values)) for values in frame.itertuples(index=False)]
    group += [head, body]
    table += group
    return table


def _row(texts: Any) -> nodes.row:
    row = nodes.row()
    row += [nodes.entry("", nodes.paragraph("", text)) for text in texts]
    return row


def _made_by(command: str, name: str, verb: str = " writes ") -> nodes.paragraph:
    line = nodes.paragraph(classes=["made-by"])
    line += [
        nodes.literal("", command),
        nodes.Text(verb),
        nodes.literal("", f"validation/results/{name}"),
        nodes.Text("."),
    ]
    return line


class ResultsValue(SphinxRole):
    """A number in the text: ``file | expression``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Read and show it."""
        name, _, expression = map(str.strip, self.text.partition("|"))
        self.env.note_dependency(str(RESULTS / name))
        return [nodes.Text(cell(shown(name, expression)))], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive and the role."""
    app.add_directive("results", ResultsTable)
    app.add_directive("picture", Picture)
    app.add_directive("studies", Studies)
    app.add_role("value", ResultsValue())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
