"""Words that results share: names of views and groups, and directions of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from caltest._numbers import in_units, number, percent, points, pvalue
from caltest._visible import shortened, shown, shown_class, shown_column, visible
from caltest.auditing.options import COVERAGE, TOP_LABEL
from caltest.auditing.story import OF_MODEL, POSTERIOR, ends_lacking, is_made
from caltest.auditing.views import Horizon
from caltest.exceptions import Argument
from caltest.laws.members import halves
from caltest.lenses import within

if TYPE_CHECKING:
    from caltest.auditing.plan_rows import AuditPlan
    from caltest.auditing.posteriors import PosteriorSize
    from caltest.auditing.result import Audit
    from caltest.auditing.views import Group, View
    from caltest.statistics import Statistic

#: Names for a model whose confidence is too high or too low.
TENDS: Mapping[str, str] = {"over": "overconfident", "under": "underconfident"}
#: Directions for a probability.
WRONG: Mapping[str, str] = {"over": "too high", "under": "too low"}
#: Directions for intervals and quantiles: an interval said to contain 95% of outcomes, but containing
#: fewer, is too narrow.
_STATED: Mapping[str, Mapping[str, str]] = {
    "interval": {"over": "too narrow", "under": "too wide"},
    "quantile": {"over": "too low", "under": "too high"},
}
#: The same for everything that is not a probability: coverage below the claimed level is too low.
_WAYS = {**_STATED, "coverage": {"over": "too low", "under": "too high"}}
_POINTS = "mean", "expectile"  # functionals of point forecasts
_COUNTED: Mapping[str, str] = {"over": "fewer than predicted", "under": "more than predicted"}

#: Names of nulls and statistics in sentences, if they differ from their codes.
CALLED: Mapping[str, str] = {
    "monte_carlo": "Monte Carlo test",
    "cluster_signs": "cluster sign-flip test",
    "comonotone": "worst-case dependence within clusters",
    "omnibus": "combined test",
}

_ACRONYMS = "ece", "mce", "ace", "esce", "ecd", "crps"


def estimated(statistic: Statistic, value: float, lens: str | None, calibrated: float | None) -> str:
    """Write an estimate with the value that a calibrated model would have."""
    name, n_bins = statistic.name, getattr(getattr(statistic, "binning", None), "n_bins", None)
    within = filter(None, (n_bins and f"{n_bins} bins", lens and f"lens {shown(lens)}"))
    about = f" ({text})" if (text := ", ".join(within)) else ""
    called = name.upper() if name in _ACRONYMS else f"{visible(statistic.measures)}:"
    beside = f"; a calibrated model with these predictions: about {number(calibrated or 0.0, 2)}"
    return f"{capital(called)}{about} {number(value)}{'' if calibrated is None else beside}"


def posterior_size(of: PosteriorSize) -> str:
    """Return the estimated error of one parameter's draws, or of a pair's correlation, in words."""
    if of.observed is not None and of.stated is not None:
        stated = f"{round(of.stated, 2) + 0.0:.2f}".replace("-", "−")
        return f"correlation: stated {stated}, observed {in_units(of.observed, unit=1.0)}"
    said = []
    if of.factor is not None:
        low, factor, high = of.factor
        if of.spread == "under":
            low, factor, high = 1.0 / high, 1.0 / factor, 1.0 / low
        tells = {"over": "too narrow by a factor of", "under": "too wide by a factor of"}
        word = tells.get(of.spread or "", "spread ×")
        said.append(f"{word} {in_units((low, factor, high), unit=1.0)}")
    if of.shift is not None:
        said.append(f"{WRONG[of.way] if of.way else 'shift'} {in_units(of.shift, '+', unit=1.0)}")
    return "; ".join(said[:: -1 if of.way and not of.spread else 1]) or "not known"


def posterior_rows(audit: Audit) -> list[tuple[str, PosteriorSize, str, str]]:
    """Return a table of parameters and pairs: name, size, size in words, adjusted p-value."""
    listed = audit.posterior[:_LISTED]
    names = (" and ".join(map(shown_column, of.names)) for of in listed)
    ps = (pvalue(of.adjusted, audit.alpha) for of in listed)
    return list(zip(names, listed, map(posterior_size, listed), ps, strict=True))


#: The note above that table.
POSTERIOR_NOTE = (
    "As estimated, each with 95% limits. Shift: mean of the draws less true value, in standard "
    "deviations of the posterior. Spread ×: what that of the draws would have to be multiplied by."
)
_LISTED = 12

_WHOLE = {
    "canonical": "all classes together",
    "distribution": "the whole distribution",
    "sorted": "the ordered probabilities",
    "ranks:average": "the mean ranks of whole vectors",
    "ranks:band_depth": "how central whole vectors are",
}
_EVENT = 60  # characters of an event's name


def capital(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


#: Our own words at the beginning of names; other words come from the data and stay unchanged.
_OURS = {
    *("the", "class", "all", "rows", "top", "median", "whole"),
    *("dependence", "ordered", "mean", "how", "risk", "chance"),
}


def begun(name: str) -> str:
    """Return a view's name as it begins a sentence; names from the data are not changed."""
    return capital(name) if name.partition(" ")[0] in _OURS else name


_NAMED = 3  # groups or classes named in a sentence
_COLUMN = 5  # fewest characters of a column's name


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence, at most the first few; names of groups are kept apart."""
    each = list(dict.fromkeys(names))
    apart = any("," in name or "=" in name or " and " in name for name in each)
    if len(each) > _NAMED:
        each = [*each[:_NAMED], f"{len(each) - _NAMED:,} more"]
    if len(each) < 2:
        return "".join(each)
    if apart:
        return f"{'; '.join(each[:-1])}; and {each[-1]}"
    return f"{', '.join(each[:-1])} and {each[-1]}"


def _ways(audit: Audit | AuditPlan) -> Mapping[str, str]:
    """Return the words for the directions of errors in an audit."""
    return _WAYS.get(audit.views[0].lens, WRONG) if of_probabilities(audit) else _COUNTED


def limit(audit: Audit | AuditPlan) -> str | None:
    """Return the limit as a noun: "2 points", "2 points too high"; None without one."""
    of, ways = audit.limit, _ways(audit)
    ends = {side: each for side, each in (("under", of.under), ("over", of.over)) if each is not None}
    by = " or ".join(f"{points(each)} {ways[side]}" for side, each in ends.items()) or None
    by = by if of.under is None or of.under != of.over else points(of.under)
    if of.ratio is None:
        return by
    times = f"a factor of {of.ratio:g}{f' {ways[of.only]}' if of.only else ''}"
    return f"{by} or {times} (the wider of both)" if by else times


def inside(audit: Audit | AuditPlan) -> str:
    """Return what a mean within the limit is: "within 2 points", "at most 2 points too high"."""
    if audit.limit.only is None:
        return f"within {limit(audit)}"
    zero = audit.limit.ratio is None and not any(audit.limit[:2])
    return f"right or {other_way(audit)}" if zero else f"at most {limit(audit)}"


def ends_wanted(audit: Audit) -> str:
    """Return the options that "within" needs for point forecasts: "low and high"; "" if given."""
    return " and ".join(str(Argument(end)) for end in ends_lacking(audit))


def only_with(audit: Audit) -> str:
    """Return the condition for an interval within the limit to count as "within", as a clause end."""
    return f", but only with {ends} given" if (ends := ends_wanted(audit)) else ""


def other_way(audit: Audit | AuditPlan) -> str:
    """Return the direction that does not matter: "too low"; "" if both do."""
    ways = _ways(audit)
    return {"over": ways["under"], "under": ways["over"]}.get(audit.limit.only or "", "")


def kind_of(lens: str) -> str:
    """Return the kind of a lens; for an entry of a vector, that of its inner lens."""
    return within(lens)[1].partition(":")[0]


def is_single(audit: Audit) -> bool:
    """Whether each row has a single prediction: the probability of one event, or a point forecast."""
    return audit.n_classes == 2 or audit.functional is not None


def of_distributions(audit: Audit) -> bool:
    """Whether predictions are whole distributions of numbers, with several views of the same rows."""
    return not (audit.n_classes or is_single(audit))


def of_probabilities(audit: Audit | AuditPlan) -> bool:
    """Whether errors are those of event probabilities, not of intervals or quantiles."""
    return not any(is_stated(view.lens) for view in audit.views)


def set_sizes(audit: Audit) -> str:
    """Return the average size of sets: "mean 2.53 classes, median 2; 0% are empty, …"."""
    of: Any = audit.set_sizes
    if of.empty is None:
        return f"mean {number(of.mean)}, median {number(of.median)}"
    shares = f"{percent(of.empty, 0)} are empty, {percent(of.single, 0)} have one class"
    return f"mean {of.mean:.2f} classes, median {of.median:g}; {shares}"


def unpromised(audit: Audit) -> str:
    """Return the columns by which coverage is shown without being claimed: "size, class and group"."""
    made = {"set size": "size", "interval width": "width", "class": "class"}
    return listed(made.get(view.group.column, "group") for view in audit.described if view.group)


def rows_called(audit: Audit) -> str:
    """Return the noun for a row."""
    return "simulation" if audit.about == POSTERIOR else "row"


def outcomes_called(audit: Audit) -> str:
    """Return the noun for outcomes, in the plural."""
    if audit.about == POSTERIOR:
        return "true values"
    if audit.n_classes:
        return "labels"
    return "times" if audit.times is not None or audit.about.startswith("times") else "outcomes"


def is_stated(lens: str) -> bool:
    """Whether a lens shows an interval or a quantile, not a probability."""
    return kind_of(lens) in _STATED


def way(side: str | None, lens: str = "") -> str:
    """Return the direction of an error for a probability, interval or quantile; "" without a side."""
    return _WAYS.get(kind_of(lens), WRONG).get(side or "", "")


def counted_way(side: str | None, lens: str = "") -> str:
    """Return the direction of an error: too high, or for stated intervals, fewer than predicted."""
    return _COUNTED.get(side or "", "") if is_stated(lens) else way(side, lens)


def lenses_of(audit: Audit) -> tuple[str, ...]:
    """Return the lenses of an audit, with all entries, and all pairs, of a vector as one."""
    known = ((lens, *within(lens)) for lens in audit.lenses)
    each = (f"entry:*/{inner}" if lens.startswith("entry:") else lens for lens, _, inner in known)
    return tuple(dict.fromkeys("pair:*" if kind_of(lens) == "pair" else lens for lens in each))


def event_name(audit: Audit) -> str:
    """Return the name of class 1 of two."""
    return shown_event(audit.event or "class 1")


def shown_event(name: str) -> str:
    """Return the name of an event in a sentence, in quotation marks if it could be misread."""
    text = shortened(visible(name), _EVENT)
    plain = text.replace("-", "").replace("_", "").replace(" ", "").isalnum() and text == text.strip()
    return text if plain else f"“{text}”"


def lens_name(view: View) -> str:
    """Return the name of what a view shows, without its rows."""
    if view.lens in (TOP_LABEL, COVERAGE):
        return "the top class" if view.lens == TOP_LABEL else COVERAGE
    entry, lens = within(view.lens)
    of = f" of {visible(entry)}" if entry else ""
    kind, _, level = lens.partition(":")
    if view.event is None:
        if kind == "pair":
            return f"the dependence of {' and '.join(map(visible, halves(level)))}"
        return f"{_WHOLE.get(lens, f'the lens {lens}')}{of}"
    if is_stated(lens) or kind in _POINTS:
        share = f"{100.0 * float(level):g}% " if level else ""
        return f"the median{of}" if lens == "quantile:0.5" else f"the {share}{kind}{of}"
    if kind == "until":
        return f"the {risk_name(view)}"
    if view.lens != "canonical" and not view.lens.startswith("class:"):
        return f"the probability that {view.event}"
    name = view.event.removeprefix("the label is ")
    if quoted := name[:1] in ("'", '"') and name[-1:] == name[:1]:
        name = name[1:-1]
    shown = shown_class(name)
    shown = shown_event(shown) if quoted else shown
    bare = view.lens == "canonical" and quoted
    return shown if bare or re.match(r"class(?![a-z])", name, re.IGNORECASE) else f"class {shown}"


def risk_name(view: View, *, named: bool = True) -> str:
    """Return the name of a horizon's risk: "365-day risk of death", or "risk by 365" without a unit."""
    at = view.horizon or Horizon(view.lens.partition(":")[2], None, None)
    if at.seen:
        return f"chance that {shown_event(at.event or 'the event')} is seen by {at.when}"
    name = f"{at.time}-{shown_event(at.unit).removesuffix('s')} risk" if at.unit else "risk"
    name += f" of {shown_event(at.event)}" if at.event and named else ""
    return name if at.unit else f"{name} by {at.time}"


def subject(view: View) -> str:
    """Return the view's prediction as the subject of a sentence."""
    if view.lens in (TOP_LABEL, COVERAGE):
        return "the model's confidence in its top class" if view.lens == TOP_LABEL else COVERAGE
    if view.event is None:
        entry, lens = within(view.lens)
        if lens == "distribution":
            return f"the predicted distributions{f' of {visible(entry)}' if entry else ''}"
        name = lens_name(view)
        return {
            "pair": f"the predicted correlations of {name.removeprefix('the dependence of ')}",
            "ranks": f"the predicted joint distributions, by {name},",
        }.get(kind_of(lens), "the predicted probabilities")
    if is_stated(view.lens) or kind_of(view.lens) in ("until", *_POINTS):
        return lens_name(view).replace("the ", "the predicted ", 1)
    if view.lens != "canonical" and not view.lens.startswith("class:"):
        return f"the predicted probability that {visible(view.event)}"
    return f"the predicted probability of {lens_name(view)}"


def group_name(group: Group | None) -> str:
    """Return the name of a group: "sex = F, age = 65 and over", or "all rows"."""
    return "all rows" if group is None else group.words


def where(group: Group | None) -> str:
    """Return the rows of a group as the end of a sentence; "" for all rows."""
    return "" if group is None else f" where {' and '.join(each.clause for each in group.conditions)}"


def view_name(view: View) -> str:
    """Return the name of a view with its rows, for a sentence."""
    return lens_name(view) + where(view.group)


def short_group(group: Group) -> str:
    """Return a group's name for a table; in audits of distributions "predicted level" is "level"."""
    return re.sub(r"^predicted (level|spread|survival) =", r"\1 =", group_name(group))


_MADE: Mapping[str, str] = {
    "predicted level": "Level: the predicted median.",
    "predicted spread": "Spread: how far the predicted 90% quantile lies above the 10% quantile.",
    "predicted survival": "Survival: the predicted chance of no event, averaged over time.",
}


def made_by(audit: Audit, group: Group) -> str:
    """Return how the audit made a group of distributions itself, as a sentence; "" for other groups."""
    if not is_made(audit, group):
        return ""
    text = _MADE[group.column.removesuffix(OF_MODEL)]
    if "quantile" in audit.about:
        text = text.replace("quantile.", "quantile (those stated nearest to them).")
        text = text.replace("median.", "median (or the stated quantile nearest to it).")
    return text


def short_name(view: View) -> str:
    """Return a view's name for a table, without rows: "80% interval", "risk by 1"."""
    risk = kind_of(view.lens) == "until"
    return risk_name(view, named="/" in view.lens) if risk else lens_name(view).removeprefix("the ")


def narrow_name(view: View, most: int, *, rows_alone: bool = False) -> str:
    """Return a view's name, or that of its rows alone, shortened for a table.

    The name has at most ``most`` characters, at least 16. If that is too few, the name of a single
    column is shortened before its value; for several columns only the values are kept.
    """
    what, group = short_name(view), view.group
    name = group_name(group) if rows_alone else f"{what} in {group_name(group)}" if group else what
    if len(name) <= most or group is None:
        return shortened(name, most)
    values = [each.called for each in group.conditions]
    if rows_alone:
        return _fitted(values, most)
    end = group.conditions[0].words.removeprefix(shown_column(group.conditions[0].column))
    room, column = most - len(f"{what}: {end}"), short_group(group).removesuffix(end)
    if len(values) == 1 and room >= min(_COLUMN, len(column)):
        return f"{what}: {shortened(column, room)}{end}"
    return _fitted([what, *values], most, ": ")


def _fitted(parts: list[str], most: int, first: str = ", ") -> str:
    """Join parts, shortening the longest."""
    room = most - len(first) - (len(parts) - 2) * len(", ")
    fitting = [k for k in range(1, most) if sum(min(len(part), k) for part in parts) <= room]
    what, *others = (shortened(part, max(fitting, default=1)) for part in parts)
    return shortened(f"{what}{first if others else ''}{', '.join(others)}", most)
