"""The templates of the report."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from caltest.report._text import code, fenced, markdown
from caltest.report.summary import Report


@cache
def _environment() -> Environment:
    """HTML is escaped by itself, whatever a template forgets; Markdown by its filters."""
    environment = Environment(
        loader=PackageLoader("caltest.report"),
        autoescape=lambda name: name is None or not name.endswith(".md.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["markdown"] = markdown
    environment.filters["code"] = code
    environment.filters["fenced"] = fenced
    environment.filters["thousands"] = "{:,}".format
    return environment


def render(template: str, report: Report) -> str:
    """Return a report in the shape of a template."""
    return _environment().get_template(template).render(report=report)
