"""The words that several results share: names of views and groups, and which way a model is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from caltest._numbers import points
from caltest._visible import shortened, shown_class, shown_column, shown_value, visible
from caltest.lenses import within

if TYPE_CHECKING:
    from caltest.auditing.ahead import AuditPlan
    from caltest.auditing.result import Audit
    from caltest.auditing.views import Group, View

#: What a model is called whose confidence is too high or too low.
TENDS: Mapping[str, str] = {"over": "overconfident", "under": "underconfident"}
#: What a probability is.
WRONG: Mapping[str, str] = {"over": "too high", "under": "too low"}
#: Which way intervals and quantiles are wrong: one that is said to contain 95% of outcomes, and
#: contains too few, is too narrow.
_STATED: Mapping[str, Mapping[str, str]] = {
    "interval": {"over": "too narrow", "under": "too wide"},
    "quantile": {"over": "too low", "under": "too high"},
}
_COUNTED: Mapping[str, str] = {"over": "too few", "under": "too many"}

_WHOLE = {
    "canonical": "all classes together",
    "distribution": "the whole distribution",
    "sorted": "the ordered probabilities",
    "ranks:average": "the mean ranks of whole vectors",
    "ranks:band_depth": "how central whole vectors are",
}
_EVENT = 60  # characters of an event's name


def capital(text: str) -> str:
    """Return a sentence's beginning."""
    return text[:1].upper() + text[1:]


_NAMED = 3  # groups or classes in one sentence


def listed(names: Iterable[str]) -> str:
    """Return names as a sentence has them, the first few of many; groups are kept apart."""
    each = list(dict.fromkeys(names))
    apart = any("," in name or "=" in name for name in each)
    if len(each) > _NAMED:
        each = [*each[:_NAMED], f"{len(each) - _NAMED:,} more"]
    if len(each) < 2:
        return "".join(each)
    if apart:
        return f"{'; '.join(each[:-1])}; and {each[-1]}"
    return f"{', '.join(each[:-1])} and {each[-1]}"


def limit(audit: Audit | AuditPlan) -> str | None:
    """Return the limit that was set, as a noun: "2 points"; None where none was."""
    by = None if audit.materiality is None else points(audit.materiality)
    if audit.materiality_ratio is None:
        return by
    times = f"a factor of {audit.materiality_ratio:g}"
    return f"{by} or {times} (the wider of both)" if by else times


def kind_of(lens: str) -> str:
    """Return the kind of a lens, of an entry of a vector that of what looks at it."""
    return within(lens)[1].partition(":")[0]


def of_probabilities(audit: Audit) -> bool:
    """Whether errors are those of probabilities: of classes, or of events until a time."""
    return audit.n_classes > 0 or any(view.lens.startswith("until:") for view in audit.views)


def is_stated(lens: str) -> bool:
    """Whether an interval or a quantile is looked at, and not a probability."""
    return kind_of(lens) in _STATED


def way(side: str | None, lens: str = "") -> str:
    """Return which way a probability is wrong, or an interval or quantile; "" without a side."""
    return _STATED.get(kind_of(lens), WRONG).get(side or "", "")


def counted_way(side: str | None, lens: str = "") -> str:
    """Return which way the error is: probabilities are too high, or outcomes too few in an interval."""
    return (_COUNTED if is_stated(lens) else WRONG).get(side or "", "")


def lenses_of(audit: Audit) -> tuple[str, ...]:
    """Return the lenses of an audit, those of all entries and pairs of a vector as one."""
    known = ((lens, *within(lens)) for lens in audit.lenses)
    each = (f"entry:*/{inner}" if entry else lens for lens, entry, inner in known)
    return tuple(dict.fromkeys("pair:*" if kind_of(lens) == "pair" else lens for lens in each))


def event_name(audit: Audit) -> str:
    """Return what class 1 of two classes is called."""
    return shown_event(audit.event or "class 1")


def shown_event(name: str) -> str:
    """Return the name of an event as it stands in a sentence; one that could be misread is quoted."""
    text = shortened(visible(name), _EVENT)
    plain = text.replace("-", "").replace("_", "").replace(" ", "").isalnum() and text == text.strip()
    return text if plain else f"“{text}”"


def lens_name(view: View) -> str:
    """Return what is looked at, whatever the rows."""
    if view.lens == "top_label":
        return "the top class"
    entry, lens = within(view.lens)
    of = f" of {visible(entry)}" if entry else ""
    kind, _, level = lens.partition(":")
    if view.event is None:
        if kind == "pair":
            return f"the dependence of {' and '.join(map(visible, level.split(',')))}"
        return f"{_WHOLE.get(lens, f'the lens {lens}')}{of}"
    if is_stated(lens):
        share = f"{100.0 * float(level):g}%"
        return f"the median{of}" if lens == "quantile:0.5" else f"the {share} {kind}{of}"
    if view.lens != "canonical" and not view.lens.startswith("class:"):
        return f"the probability that {view.event}"
    name = view.event.removeprefix("the label is ")
    if quoted := name[:1] in ("'", '"') and name[-1:] == name[:1]:
        name = name[1:-1]
    shown = shown_class(name)
    shown = shown_event(shown) if quoted else shown
    bare = view.lens == "canonical" and quoted
    return shown if bare or re.match(r"class(?![a-z])", name, re.IGNORECASE) else f"class {shown}"


def subject(view: View) -> str:
    """Return whose mean is predicted, as the subject of a sentence."""
    if view.lens == "top_label":
        return "the model's confidence in its top class"
    if view.event is None:
        entry, lens = within(view.lens)
        if lens == "distribution":
            return f"the predicted distributions{f' of {visible(entry)}' if entry else ''}"
        name = lens_name(view)
        return {
            "pair": f"the predicted correlations of {name.removeprefix('the dependence of ')}",
            "ranks": f"the predicted joint distributions, by {name},",
        }.get(kind_of(lens), "the predicted probabilities")
    if is_stated(view.lens):
        return lens_name(view).replace("the ", "the predicted ", 1)
    if view.lens != "canonical" and not view.lens.startswith("class:"):
        return f"the predicted probability that {visible(view.event)}"
    return f"the predicted probability of {lens_name(view)}"


def group_name(group: Group | None) -> str:
    """Return a group as it is shown: "sex = F, age = 65 and over", or "all rows"."""
    if group is None:
        return "all rows"
    return ", ".join(
        f"{shown_column(each.column)} = {shown_value(each.value)}" for each in group.conditions
    )


def where(group: Group | None) -> str:
    """Return in which rows, as the end of a sentence; nothing for all rows."""
    if group is None:
        return ""
    conditions = (
        f"{shown_column(each.column)} is {shown_value(each.value)}" for each in group.conditions
    )
    return f" where {' and '.join(conditions)}"


def view_name(view: View) -> str:
    """Return what is looked at, and in which rows."""
    return lens_name(view) + (f" in {group_name(view.group)}" if view.group else "")


def narrow_group(group: Group | None, most: int) -> str:
    """Return a group in at most so many characters, 16 at least: if need be, its values alone."""
    name = group_name(group)
    if len(name) <= most or group is None:
        return shortened(name, most)
    return _fitted([shown_value(each.value) for each in group.conditions], most)


def narrow_name(view: View, most: int) -> str:
    """Return what is looked at in at most so many characters, 16 at least: of groups the values."""
    name = view_name(view)
    name = name if len(name) <= most else name.removeprefix("the probability that ")
    if len(name) <= most or view.group is None:
        return shortened(name, most)
    values = [shown_value(each.value) for each in view.group.conditions]
    return _fitted([lens_name(view), *values], most, ": ")


def _fitted(parts: list[str], most: int, first: str = ", ") -> str:
    """Join parts, the longest of them shortened."""
    room = most - len(first) - (len(parts) - 2) * len(", ")
    fitting = [k for k in range(1, most) if sum(min(len(part), k) for part in parts) <= room]
    what, *others = (shortened(part, max(fitting, default=1)) for part in parts)
    return shortened(f"{what}{first if others else ''}{', '.join(others)}", most)
