"""Hooks for printers: functions of higher layers, plugged in when the package is imported.

A result holds facts, and does not import the modules that write or draw them, because they are in
higher layers. When it is printed, drawn or shown in a notebook, it calls one of these hooks. The
package's ``__init__`` sets them before any other module runs; the module behind each one is imported on
its first call.
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
