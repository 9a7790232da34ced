"""The words that several results share: names of statistics, guarantees, directions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from caltest._visible import shortened, shown_class, shown_column, shown_group, shown_value
from caltest.auditing.result import Audit, Check, Group, View
from caltest.forms import Side
from caltest.pvalues import CORRECTIONS
from caltest.text.numbers import confidence_text, counted, points, pvalue

# ------------------------------------------------------------------ what the audit's views are called


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


# ------------------------------------------------------------------ guarantees


@dataclass(frozen=True)
class Fact:
    """A term, what it is here, and what that means."""

    term: str
    value: str
    note: str


def facts(audit: Audit) -> tuple[Fact, ...]:
    """Return the p-value, what is controlled, why it is exact, and what was looked at."""
    return (_pvalue(audit), _controlled(audit), _exact(audit), _looked_at(audit))


def claim(audit: Audit) -> str:
    """Return the hypothesis as a clause, after "if"."""
    if audit.tolerance:
        return f"no probability looked at were wrong by more than {points(audit.tolerance)}"
    return f"the model were calibrated{' in every group' if audit.groups else ''}"


def _pvalue(audit: Audit) -> Fact:
    note = f"{'At or below' if audit.rejected else 'Above'} alpha = {audit.alpha:g}"
    if audit.pvalue <= (1.0 + 1e-9) / (audit.n_resamples + 1):
        note += f"; the smallest that {counted(audit.n_resamples, 'draw')} can show"
    if audit.rejected and audit.impossible:
        note += "; a label of probability 0 came true"
    return Fact("p-value of the whole", pvalue(audit.pvalue, audit.alpha), f"{note}.")


def _controlled(audit: Audit) -> Fact:
    n, chance = counted(len(audit.checks), "check"), confidence_text(audit.alpha)
    condition = _condition(audit)
    proviso = f" That is proved {condition} only." if condition else ""
    if audit.correction.startswith("fdr"):
        note = f"Of what is found by {n}, a share of at most {chance} is false on average.{proviso}"
        return Fact("Controlled", "false discovery rate", note)
    note = f"If {claim(audit)}, the chance of any finding among {n} would be at most {chance}.{proviso}"
    return Fact("Controlled", "family-wise error", note)


def _condition(audit: Audit) -> str | None:
    """Return of which tests a correction is valid; None if it is however they depend on each other."""
    told = CORRECTIONS.get(audit.correction, "").partition(", ")[2]
    return told if told.startswith("of ") else None


def _exact(audit: Audit) -> Fact:
    exact = audit.correction == "westfall_young" and audit.tolerance is None
    model = "the model" if audit.tolerance is None else "the worst model within the tolerance"
    note = (
        f"By {counted(audit.n_resamples, 'draw')} of the labels from {model}: for any number of rows, "
        "if they are independent and not training data"
    )
    if _condition(audit):
        each = "Each check by itself is valid; all together are if they depend as “Controlled” says"
        return Fact("Guarantee", "conditional", f"{note}. {each}.")
    return Fact("Guarantee", "exact" if exact else "valid", f"{note}.")


def _looked_at(audit: Audit) -> Fact:
    rows = f"{counted(audit.n_samples, 'prediction')} of {counted(audit.n_classes, 'class', 'classes')}"
    skipped = f"; {len(audit.skipped):,} skipped" if audit.skipped else ""
    note = f"{counted(len(audit.views), 'view')} of {rows}{skipped}."
    return Fact("Looked at", counted(len(audit.checks), "check"), note)


def findings_counted(audit: Audit) -> str:
    """Return how many checks there are, and how many found an error."""
    found = len(audit.found)
    right = "calibrated" if audit.tolerance is None else "within the tolerance"
    return (
        f"A check is one hypothesis: that what is looked at is {right}, by one statistic. "
        f"Of {counted(len(audit.checks), 'check')}, {found:,} found an error: the adjusted p-value "
        f"is at or below alpha = {audit.alpha:g}."
    )


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
    """Return which way one probability errs on average, if its error is beyond the noise; else None.

    Examples
    --------
    >>> shown_direction(View("top_label", "", None, 900, says=0.91, share=0.84, direction="over"))
    'over'
    >>> shown_direction(View("top_label", "", None, 900, says=0.91, share=0.90, direction="over"))
    """
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
