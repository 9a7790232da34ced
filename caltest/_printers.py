"""Hooks for printers: functions of higher layers, plugged in when the package is imported.

A result holds facts, and imports no room that writes or draws them: those stand above it. When it is
printed, drawn or shown in a notebook, it calls one of these. The package's own ``__init__`` sets
them, which runs before any room does; the room behind each is imported when it is first called.
"""

from collections.abc import Callable
from typing import Any

#: `caltest.text.written`: the text about a result, "summary" or another name.
written: Callable[[object, str], str]
#: `caltest.plots.drawn`: the display of a result, drawn on given axes with given options.
drawn: Callable[[object, Any, dict[str, Any]], Any]
#: `caltest.report.to_fragment`: the first screen of an audit's report.
to_fragment: Callable[[object], str]
#: `caltest.report.summary.pictured`: titles and marks of an audit's first pictures.
pictured: Callable[[object], Any]
