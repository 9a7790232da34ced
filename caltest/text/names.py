"""What the audit's views are called."""

from __future__ import annotations

from caltest._visible import shortened, shown_class, shown_column, shown_group, shown_value
from caltest.auditing.result import Group, View

_WHOLE = {"canonical": "the full probabilities", "sorted": "the ordered probabilities"}
_BETWEEN = len(" in  = ")


def lens_name(view: View) -> str:
    """Return what is looked at, whatever the rows.

    Examples
    --------
    >>> lens_name(View("top_label", "the top class is right", None, 100))
    'the top label'
    >>> lens_name(View("class:cat", "the label is 'cat'", None, 100))
    "class 'cat'"
    >>> lens_name(View("top:2", "the label is among the top 2", None, 100))
    'the probability that the label is among the top 2'
    """
    if view.lens == "top_label":
        return "the top label"
    if view.event is None:
        return _WHOLE.get(view.lens, f"the lens {view.lens}")
    if view.lens != "canonical" and not of_class(view):
        return f"the probability that {view.event}"
    name = view.event.removeprefix("the label is ")
    if name[:1] in ("'", '"') and name[-1:] == name[:1]:
        return f"class {name[0]}{shown_class(name[1:-1])}{name[0]}"
    return shown_class(name) if name.startswith("class ") else f"class {shown_class(name)}"


def view_name(view: View) -> str:
    """Return what is looked at, and in which rows.

    Examples
    --------
    >>> from caltest.auditing import Group
    >>> view_name(View("top_label", "the top class is right", Group("region", "north"), 100))
    'the top label in region = north'
    """
    return lens_name(view) + (f" in {group_name(view.group)}" if view.group else "")


def group_name(group: Group) -> str:
    """Return a group as it is shown.

    Examples
    --------
    >>> group_name(Group("region", "north"))
    'region = north'
    """
    return shown_group(group.column, group.value)


def narrow_name(view: View, most: int) -> str:
    """Return what is looked at in at most so many characters, 16 at least; every part is in it.

    Examples
    --------
    >>> view = View("top_label", "", Group("region_of_the_world", "north"), 100)
    >>> narrow_name(view, 48), narrow_name(view, 30)
    ('the top label in region_of_the_world = north', 'the top … in region_o… = north')
    """
    name = view_name(view)
    if len(name) <= most or view.group is None:
        return shortened(name, most)
    parts = lens_name(view), shown_column(view.group.column), shown_value(view.group.value)
    room = most - _BETWEEN
    each = max(
        (k for k in range(1, room) if sum(min(len(part), k) for part in parts) <= room), default=1
    )
    what, column, value = (shortened(part, each) for part in parts)
    return f"{what} in {column} = {value}"


def of_class(view: View) -> bool:
    """Return whether it looks at one class by itself."""
    return view.lens.startswith("class:")
