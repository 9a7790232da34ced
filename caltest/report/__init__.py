"""Write an audit as a report: a web page, a pull-request comment, data, or test results for CI.

All come from a frozen :class:`~caltest.auditing.result.Audit` and nothing else, so the same audit gives
the same bytes.
"""

from caltest.report.formats import save, schema, to_fragment, to_html, to_json, to_junit, to_markdown

__all__ = ["save", "schema", "to_fragment", "to_html", "to_json", "to_junit", "to_markdown"]
