"""What shows results: functions of rooms above them, which the front door plugs in by name.

A result holds facts, and imports no room that writes or draws them: those stand above it. When it is
printed, drawn or shown in a notebook, it calls one of these. The package's own ``__init__`` sets
them, which runs before any room does; the room behind each is imported when it is first called.
"""

from collections.abc import Callable
from typing import Any

#: `caltest.text.written`: a text about a result, its "summary" or another by its name.
written: Callable[[object, str], str]
#: `caltest.plots.drawn`: its display, drawn in given axes with given options.
drawn: Callable[[object, Any, dict[str, Any]], Any]
#: `caltest.report.to_fragment`: of an audit, the first screen of its report.
to_fragment: Callable[[object], str]
#: `caltest.report.summary.pictured`: of an audit, the titles and marks of its first pictures.
pictured: Callable[[object], Any]
