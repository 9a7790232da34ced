"""The words that several results share: names of views, and which way a model errs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from caltest._visible import shortened, shown_class, shown_column, shown_group, shown_value
from caltest.auditing.result import Audit, Check, Group, View
from caltest.forms import Side

# ------------------------------------------------------------------ what the audit's views are called


_WHOLE = {"canonical": "the full probabilities", "sorted": "the ordered probabilities"}


def lens_name(view: View) -> str:
    """Return what is looked at, whatever the rows."""
    if view.lens == "top_label":
        return "the top label"
    if view.event is None:
        return _WHOLE.get(view.lens, f"the lens {view.lens}")
    if view.lens != "canonical" and not view.lens.startswith("class:"):
        return f"the probability that {view.event}"
    name = view.event.removeprefix("the label is ")
    if name[:1] in ("'", '"') and name[-1:] == name[:1]:
        return f"class {name[0]}{shown_class(name[1:-1])}{name[0]}"
    return shown_class(name) if name.startswith("class ") else f"class {shown_class(name)}"


def group_name(group: Group) -> str:
    """Return a group as it is shown."""
    return shown_group(group.column, group.value)


def view_name(view: View) -> str:
    """Return what is looked at, and in which rows."""
    return lens_name(view) + (f" in {group_name(view.group)}" if view.group else "")


def narrow_name(view: View, most: int) -> str:
    """Return what is looked at in at most so many characters, 16 at least; every part is in it."""
    name = view_name(view)
    if len(name) <= most or view.group is None:
        return shortened(name, most)
    parts = lens_name(view), shown_column(view.group.column), shown_value(view.group.value)
    room = most - len(" in  = ")
    fitting = [k for k in range(1, room) if sum(min(len(part), k) for part in parts) <= room]
    what, column, value = (shortened(part, max(fitting, default=1)) for part in parts)
    return f"{what} in {column} = {value}"


# ------------------------------------------------------------------ directions
#
# Whether a view of an audit is called over-confident is decided by :func:`shown_direction`, or, of a
# probability vector, by :func:`signed`.

#: How a model errs whose confidence does.
TENDS: Mapping[str, str] = {"over": "over-confident", "under": "under-confident"}
#: How any one probability errs.
TOO: Mapping[str, str] = {"over": "too much", "under": "too little"}
#: The statistic that says which way probabilities err: above 0 they are too sure.
SIGNED = "ecd"

#: From where a difference is told from none, in its standard deviations.
DEVIATIONS = 3.0


def shown_direction(view: View) -> Side | None:
    """Return which way one probability errs on average, if its error is beyond the noise; else None."""
    if view.says is None or view.share is None:
        return None
    return view.direction if beyond_noise(view.says - view.share, view) else None


def signed(check: Check) -> Side | None:
    """Return which way a probability vector errs, if this check has found it."""
    return check.view.direction if check.found and check.statistic == SIGNED else None


def shown_directions(audit: Audit) -> dict[tuple[str, Group | None], Side | None]:
    """Return which way every view with a finding errs on average; None where that is not shown."""
    found: dict[tuple[str, Group | None], Side | None] = {}
    for check in audit.found:
        side = signed(check) if check.view.says is None else shown_direction(check.view)
        found[check.view.key] = found.get(check.view.key) or side
    return found


def beyond_noise(difference: float, view: View) -> bool:
    """Return whether a difference of means is more than chance makes of so many rows."""
    return abs(difference) > DEVIATIONS * deviation(view)


def deviation(view: View) -> float:
    """Return the standard deviation of the share under calibration, at most."""
    says = view.says or 0.0
    return math.sqrt(says * (1.0 - says) / view.rows)
