"""Views as the report shows them: the worst first, in words, in numbers and in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caltest._visible import visible
from caltest.auditing.result import Audit, Check, Group, View
from caltest.forms import Side
from caltest.report._text import Name
from caltest.report.charts import Diagram, Gauge, diagram, gauge
from caltest.text.audit import telling
from caltest.text.numbers import counted, percents, points, pvalue, signed_points
from caltest.text.vocabulary import TOO, lens_name, narrow_name, shown_directions

_DIAGRAMS = 6
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75)  # of the line of a gauge

_CLAIMS = {"over": "▲ claims too much", "under": "▼ claims too little"}
_NAME = 48  # characters of the name of a view


@dataclass(frozen=True)
class ViewRow:
    """A view: what it says, what came true, and what is proved."""

    name: Name
    rows: str
    found: bool
    direction: str
    says: str
    share: str
    gap: str
    proved: str
    adjusted: str
    gauge: Gauge


@dataclass(frozen=True)
class Picture:
    """A reliability diagram with its name, numbers and what is seen in it."""

    number: int
    name: Name
    rows: str
    seen: str
    diagram: Diagram
    bins: tuple[tuple[str, str, str, str, bool], ...]


@dataclass(frozen=True)
class Looked:
    """A view, its strongest check and the one that is told, any finding, and which way is shown."""

    view: View
    check: Check
    told: Check
    found: bool
    direction: Side | None

    @property
    def error(self) -> float:
        """What is proved of it, or what is said less what came true."""
        return max(self.view.over or 0.0, self.view.under or 0.0, abs(_gap(self.view) or 0.0))


def worst_first(audit: Audit) -> list[Looked]:
    """Return the views with a finding, of one probability, by their error; others, by evidence."""
    checks: dict[tuple[str, Group | None], list[Check]] = {}
    for check in audit.checks:
        checks.setdefault(check.view.key, []).append(check)
    shown = shown_directions(audit)
    looked = [
        Looked(
            each[0].view,
            each[0],
            telling(each),
            any(check.found for check in each),
            shown.get(key),
        )
        for key, each in checks.items()
    ]

    def order(each: Looked) -> tuple[bool, bool, float]:
        return not each.found, each.view.says is None, -each.error if each.found else 0.0

    return sorted(looked, key=order)


def scale_of(looked: Sequence[Looked]) -> float:
    """Return the largest error of any view, in probability, rounded up."""
    largest = max((each.error for each in looked), default=0.0)
    return next((end for end in _ENDS if end >= largest), 1.0)


def _gap(view: View) -> float | None:
    return None if view.says is None or view.share is None else view.says - view.share


def view_row(each: Looked, audit: Audit, scale: float) -> ViewRow:
    """Return a view in numbers."""
    view, gap = each.view, _gap(each.view)
    says, share = ("", "") if gap is None else percents(view.says or 0.0, view.share or 0.0, 1)
    return ViewRow(
        name=named(view),
        rows=f"{view.rows:,}",
        found=each.found,
        direction=_CLAIMS.get(str(each.direction), "cannot be told" if each.found else ""),
        says=says,
        share=share,
        gap="" if gap is None else signed_points(gap),
        proved=_proved(each),
        adjusted=pvalue(each.check.adjusted, audit.alpha),
        gauge=gauge(gap, view.over, view.under, scale),
    )


def _proved(each: Looked) -> str:
    view = each.view
    if view.over is None and view.under is None:
        return "not sought"
    sides = (("over", view.over), ("under", view.under))
    return "; ".join(f"{points(bound)} {TOO[side]}" for side, bound in sides if bound) or "not shown"


def named(view: View) -> Name:
    """Return what is looked at, as a heading or the head of a row.

    What is too long is shortened part by part: of a class and of a group something is always seen.
    """
    name = lens_name(view)
    if name.startswith("class ") and view.event:
        name = f"class {view.event.removeprefix('the label is ').removeprefix('class ')}"
    whole = visible(f"{name} in {view.group.label}" if view.group else name)
    short = narrow_name(view, _NAME)
    return Name(_capital(short), None if short == whole else _capital(whole))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def with_diagram(looked: Sequence[Looked]) -> tuple[list[Looked], list[Looked]]:
    """Choose the diagrams: that of the top label on all rows, then the worst.

    Returns
    -------
    tuple of lists
        The views with a diagram, and those of one probability with a finding and without a diagram.
    """
    drawable = [each for each in looked if each.view.reliability is not None]
    whole = [each for each in drawable if each.view.group is None]
    first = next((each for each in whole if each.view.lens == "top_label"), None)
    if first is None and whole:
        first = whole[0]
    chosen = [first, *(each for each in drawable if each is not first)] if first else drawable
    chosen = chosen[:_DIAGRAMS]
    kept = {id(each) for each in chosen}
    single = [each for each in looked if each.found and each.view.says is not None]
    return chosen, [each for each in single if id(each) not in kept]


def picture(place: int, each: Looked) -> Picture:
    """Return the reliability diagram of a view that has one."""
    view, r = each.view, each.view.reliability
    assert r is not None
    drawn = diagram(r)
    bins = tuple(
        (f"{rows:,}", *percents(says, share, 1), f"{_range(low, high)}", point.outside)
        for rows, says, share, low, high, point in zip(
            r.rows, r.says, r.share, r.low, r.high, drawn.points, strict=True
        )
    )
    seen = f"{drawn.outside} of {counted(len(bins), 'bin')} outside the band"
    return Picture(place, named(view), counted(view.rows, "row"), seen, drawn, bins)


def _range(low: float, high: float) -> str:
    return " to ".join(percents(low, high, 1))
