"""The story of an audit, decided once when it ends: main finding, errors beyond the limit, next steps.

It uses the audit's facts only. Each view has an estimate of its mean error, its own interval, which
decides whether it is within the limit, and its joint interval with all views and parts, which decides
whether it has a direction and is beyond the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from caltest.auditing.views import Group, Part, Rest, Slice, View
from caltest.laws import Survival
from caltest.laws.members import halves
from caltest.laws.sets import OF_ONE_SET
from caltest.lenses import within
from caltest.pvalues import interval_of_adjusted
from caltest.story import Finding, Step, Story, Verdict

POSTERIOR = "posterior draws"  #: What :func:`caltest.sbc` audits.
LITTLE = 0.1  # mean error up to which a model that passes is called usable
_FAR_AWAY = 10.0  # ratio to the present rows that few readers can reach
_STRIKING = 1.5  # ratio to the mean error above which the error clearly depends on the prediction
_DEVIATIONS = 3.0  # standard errors beyond which a slope is clear
#: Groups that audits of distributions make themselves.
MADE = ("predicted level", "predicted spread", "predicted survival")
OF_MODEL = " (of the model)"  # suffix if the user has a column of that name
#: Direction of the error, by sign of the statistic: negative, positive.
_TENDS = {"bias": ("too low", "too high"), "spread": ("too narrow", "too wide")}

_BY_FEATURES = {"feature_scan", "feature_ridge"}
MEANS = ("citl", "point_bias")  #: Statistics that check a mean.

Audit: TypeAlias = Any  #: :class:`caltest.Audit`, whose module imports this one.
Steps: TypeAlias = Iterable[Step]


def tell(audit: Audit) -> Story:
    """Decide the story of an audit."""
    found = audit.pvalue <= audit.alpha
    every = list(_marked(audit, found))
    shown = [] if audit.tolerance is not None else [each for each in every if _leads(audit, each)]
    shown.sort(key=_rank, reverse=True)
    subject = shown[0] if shown else None
    if found and (subject is None or subject.kind == "rest"):  # a view says more than a rest
        other = _without_direction(audit)
        subject = other if subject is None or (other and other.kind == "average") else subject
    whole = opposite = None
    if subject is not None and shown and subject.kind == "mean":
        means = [each for each in shown[1:] if each.kind == "mean"]
        held = [each for each in means if each.of.holds(subject.of)]
        held = [each for each in held if each.far or not subject.far]
        whole = max(held, key=lambda each: each.of.rows, default=None)
        others = (each for each in means if each is not whole and _opposes(each, subject))
        opposite = next(others, None)
    settled = ("beyond", "may be beyond")
    wholes = [each for each in every if each.part is None and each.place not in settled]
    open_ = [each for each in wholes if each.of.inside is False]
    story = Story(
        verdict=_verdict(audit, found, every),
        found=found,
        subject=subject,
        whole=whole,
        opposite=opposite,
        others=tuple(each for each in shown if each not in (subject, whole, opposite)),
        premises=audit.premises,
        unsettled=tuple(sorted(open_, key=lambda each: _openness(audit, each))),
        dropped=tuple(each for each in audit.skipped if each.inside is False),
        explains=_explains(audit, subject, every),
        alone=_alone(audit, subject, every),
        striking=_striking(subject),
        spared=found and not shown and _spared(audit),
        halves=_halves(audit),
        marks={each.sized.id: each for each in every},
    )
    return story.advised(_steps(audit, story))


# ------------------------------------------------------------------ the main finding


def _marked(audit: Audit, found: bool) -> Iterable[Finding]:
    """Yield every error with an interval, with its direction and place against the limit."""
    for view in audit.views:
        if view.low is None:
            continue
        yield _mean("mean", audit, view, found)
        for part in view.parts:
            place = audit.limit.place(part.predicted, part.low, part.high) if audit.limit else ""
            places = {"inside": "within", "beyond": _beyond(found)}
            yield Finding("part", view, part, part.side if found else None, places.get(place, ""))
    for rest in audit.rests:
        yield _mean("rest", audit, rest, found)
    for each in slices_of(audit):
        yield _mean("mean", audit, each, found)


def slices_of(audit: Audit) -> list[Slice]:
    """Return the slices that the story mentions."""
    return [each for each in audit.slices if each.shown]


def _mean(kind: str, audit: Audit, of: View | Rest, found: bool) -> Finding:
    """Mark a mean: it has a direction if its own check found an error, or if it is beyond the limit."""
    marked = Finding(kind, of, place=_place(audit, of, found))
    checked = marked.far or of.adjusted_pvalue <= audit.alpha
    return replace(marked, side=of.side if found and checked else None)


def _beyond(found: bool) -> str:
    """Return the place of an interval that lies beyond the limit."""
    return "beyond" if found else "may be beyond"


def _place(audit: Audit, of: View | Rest, found: bool) -> str:
    """Return the place of a mean error against the limit.

    "beyond": the whole joint interval is; "likely": the estimate is, with a proved direction; "within":
    by its own two tests; "pointless": also, but the limit exceeds the rate. Otherwise the error is
    unsettled: "may be beyond" (the interval is, but nothing was found), "estimated" (the estimate is,
    and a check found an error), "follow-up" (rows were not followed long enough), "ends" (outcomes have
    unknown ends), "never" (no number of rows would settle it), "few" (more rows would), or "close".
    """
    if not audit.limit or of.predicted is None or of.low is None or of.high is None:
        return ""
    if audit.limit.place(of.predicted, of.low, of.high) == "beyond":
        return _beyond(found)
    if found and of.side and audit.limit.exceeded(of.predicted, of.error):
        return "likely"
    if of.inside:
        by = None if audit.materiality_ratio else audit.limit.over
        stated = within(of.lens)[1].partition(":")[0] in ("interval", "quantile", "mean", "expectile")
        return "pointless" if by is not None and of.predicted <= by and not stated else "within"
    if of.adjusted_pvalue <= audit.alpha and audit.limit.exceeded(of.predicted, of.error):
        return "estimated"
    if of.rows_needed is None:
        return "follow-up" if of.unfollowed else "ends" if ends_lacking(audit) else "never"
    return "few" if of.rows_needed > of.rows else "close"


def ends_lacking(audit: Audit) -> list[str]:
    """Return the unknown ends of point outcomes without which nothing is proved "within".

    "At most so much too high" is exact if the low end is known, "too low" if the high end is.
    """
    sides = audit.limit.sides if audit.functional else ()
    each = zip(("low", "high"), ("over", "under"), audit.ends, strict=True)
    return [end for end, side, known in each if side in sides and not known]


def _leads(audit: Audit, each: Finding) -> bool:
    """Whether an error may lead: a mean with a direction, or an error beyond the limit."""
    if each.kind == "part":
        return each.place == "beyond"
    if each.kind == "rest":
        return each.far
    return each.side is not None and explains_zeros(audit, each.of)


def _rank(each: Finding) -> tuple[Any, ...]:
    """Return the sort key of an error: beyond the limit first, views before rests, then proved size."""
    beyond = {"beyond": 2, "likely": 1}.get(each.place, 0)
    return beyond, each.kind != "rest", each.kind == "mean", each.sized.proved, abs(each.sized.error)


def in_order(audit: Audit) -> list[View]:
    """Return the views in the order of all tables: first those in the story, in its order.

    Then come views in which a check found an error, unsettled ones, and the others by evidence; groups
    made by the audit itself come after named groups.
    """
    means = (each.of.id for each in audit.story.named if each.kind == "mean")
    told = {key: number for number, key in enumerate(means)}
    open_ = {each.of.id for each in audit.story.unsettled}

    def place(view: View) -> tuple[Any, ...]:
        first = told.get(view.id, len(told))
        seen = view.id not in audit.wrong_views, view.low is None, view.id not in open_
        return first, *seen, is_made(audit, view.group), view.adjusted_pvalue, -abs(view.error or 0.0)

    return sorted([*audit.views, *slices_of(audit)], key=place)


def _opposes(each: Finding, subject: Finding) -> bool:
    """Whether an error has the opposite sign, for the same probability or another class."""
    classes = all(of.lens.startswith("class:") for of in (each.of, subject.of))
    return each.side != subject.side and (each.of.lens == subject.of.lens or classes)


def explains_zeros(audit: Audit, view: View) -> bool:
    """Return whether impossible labels are no larger a share outside a group than its proved error."""
    if view.group is None or view.impossible is None:
        return True
    return bool(audit.impossible - view.impossible <= view.proved * (audit.n_samples - view.rows))


def finds_mean(audit: Audit, view: View) -> bool:
    """Return whether the check of a view's mean found an error, even if the joint interval holds 0."""
    return any(check.statistic in MEANS and check.view.key == view.key for check in audit.found)


def tends(audit: Audit, view: View) -> list[str]:
    """Return the directions in which a whole distribution is wrong."""
    found = [each for each in audit.found if each.view.key == view.key and each.statistic in _TENDS]
    ways = _TENDS | ({"bias": ("too early", "too late")} if audit.about == Survival.about else {})
    return [ways[each.statistic][each.value > 0.0] for each in found]


def _without_direction(audit: Audit) -> Finding | None:
    """Return the main finding if an error was found but no mean has a proved direction.

    "average": a mean is wrong, by its check; "shape": too extreme, or not extreme enough; "count": too
    many or too few events; "some": some predictions are wrong; "features": some are, by features alone;
    "distribution": the whole distribution; "order": only the order in time; "zeros": labels of
    probability 0; "rest": the other rows of a larger group.
    """
    by_key = {view.key: view for view in audit.views}
    where = next(iter(slices_of(audit)), None)  # a scan found an error
    views: list[Any] = [
        (check.statistic == "feature_scan" and where) or by_key.get(check.view.key, check.view)
        for check in audit.found
    ] + slices_of(audit)
    views = [view for view in views if explains_zeros(audit, view)]
    views.sort(key=lambda view: view.lens.startswith("ranks:"))  # findings that name entries come first
    if audit.tolerance is not None and views:
        view: Any = max(views, key=lambda view: (view.rows, abs(view.error or 0.0)))
        return Finding("average" if finds_mean(audit, view) else "some", view)
    of_means = audit.n_classes == 2 or audit.functional
    means = [view for view in views if finds_mean(audit, view)] if of_means else []
    shaped = [view for view in views if view.shape]
    counts = [view for view in views if view.events is not None]
    counts.sort(key=lambda view: -view.events.proved)
    first = means or shaped or counts or views
    view = first[0] if first else None
    directed = view is not None and (view.event or view.shape or tends(audit, view))
    if audit.impossible and not directed:
        return Finding("zeros")
    if view is None:
        rests = [rest for rest in audit.rests if rest.found]
        return Finding("rest", min(rests, key=lambda rest: rest.adjusted_pvalue)) if rests else None
    own = [check for check in audit.found if check.view.key == view.key]
    if own and all(check.order for check in own):
        return Finding("order", view)
    if view.shape:
        return Finding("shape", view, side=view.shape)
    if view.event is None:
        return Finding("distribution", view)
    if view.events is not None and view.events.proved > 1.0:
        return Finding("count", view, side="under" if (view.events.low or 0.0) > 1.0 else "over")
    if not isinstance(view, Slice) and {check.statistic for check in audit.found} <= _BY_FEATURES:
        return Finding("features", view)
    return Finding("average" if finds_mean(audit, view) else "some", view)


def _explains(audit: Audit, subject: Finding | None, every: list[Finding]) -> bool:
    """Whether a group explains the error: no error remains in the other rows of any larger group.

    Nor may a disjoint group show one, because errors may cancel there. Slices that were found cross
    groups, and are not evidence on this.
    """
    of: Any = None if subject is None or subject.kind != "mean" else subject.of
    rests = [rest for rest in audit.rests if of and (rest.lens, rest.group) == of.key]
    if not rests or any(rest.found for rest in rests):
        return False
    own = {each.column: each.value for each in of.conditions}
    means = [each.of for each in _of_groups(every) if each.side]
    return not any(own.get(c.column, c.value) != c.value for view in means for c in view.conditions)


def _of_groups(every: list[Finding]) -> list[Finding]:
    """Return the means of views that were named."""
    return [each for each in every if each.kind == "mean" and not isinstance(each.of, Slice)]


def _alone(audit: Audit, subject: Finding | None, every: list[Finding]) -> bool:
    """Whether there are groups besides the subject's, all without findings."""
    if subject is None or subject.kind != "mean" or subject.of.group is None or slices_of(audit):
        return False
    own: View = subject.of
    others = [each for each in _of_groups(every) if each.of.lens == own.lens]
    others = [each for each in others if each.of.group and each.of.key != own.key]
    others = [each for each in others if not (each.of.holds(own) or own.holds(each.of))]
    return bool(others) and not any(each.side or each.of.key in audit.wrong_views for each in others)


def _striking(subject: Finding | None) -> Part | None:
    """Return the tenth or fifth of the subject that is much further off than its mean, if any."""
    if subject is None or subject.kind != "mean":
        return None
    finest = [part for part in subject.of.parts if part.of > 2 and part.side]
    part = max(finest, key=lambda each: each.proved, default=None)
    return part if part and part.proved >= _STRIKING * abs(subject.of.error) else None


def _halves(audit: Audit) -> tuple[Part, ...]:
    """Return the halves of all rows if both are proved wrong, in opposite directions."""
    view = next((each for each in audit.views if each.group is None and each.parts), None)
    halves = tuple(part for part in (view.parts if view else ()) if part.of == 2)
    even = len(halves) == 2 and not any(part.is_tied(audit.n_samples) for part in halves)
    return halves if even and {part.side for part in halves} == {"over", "under"} else ()


def _spared(audit: Audit) -> bool:
    """Whether only one side matters and every mean found wrong is wrong on the other side."""
    sides = {view.sign for view in audit.views if finds_mean(audit, view)}
    return bool(sides) and audit.limit.only is not None and audit.limit.only not in sides


def _verdict(audit: Audit, found: bool, every: list[Finding]) -> Verdict:
    """Return the verdict; see :attr:`caltest.Audit.verdict`."""
    if not audit.limit:
        return "found" if found else "not found"
    places = {each.place for each in every}
    if "beyond" in places:
        return "material"
    if "likely" in places:
        return "likely"
    if "may be beyond" in places:
        return "undecided"
    wholes = [each.of for each in every if each.part is None]
    vouched = not audit.withheld and all(each.inside is not False for each in audit.skipped)
    return "within" if wholes and vouched and all(of.inside for of in wholes) else "undecided"


_CLOSE = ("close", "estimated")


def _openness(audit: Audit, each: Finding) -> tuple[Any, ...]:
    """Return the sort key of an unsettled error: named groups first, then by the rows still lacking."""
    times = (each.of.rows_needed or math.inf) / each.of.rows
    made = is_made(audit, each.of.group) or isinstance(each.of, Slice)
    return made, each.kind == "rest", each.place in _CLOSE, -times


def is_made(audit: Audit, group: Group | None) -> bool:
    """Whether the audit made this group itself, by what distributions predict."""
    if group is None or audit.n_classes:
        return False
    column = group.column
    return column.removesuffix(OF_MODEL) in MADE and f"{column}{OF_MODEL}" not in audit.groups


# ------------------------------------------------------------------ next steps
#
# First for those who use the predictions, then for those who maintain the model.


def _steps(audit: Audit, story: Story) -> Steps:
    """Yield the next steps, in order."""
    withheld = bool(audit.withheld)
    if withheld:
        yield Step("premises", {"do": [premise.do for premise in audit.withheld]})
    if not story.found:
        yield from [Step("again")] if withheld else _after_a_pass(audit, story)
        return
    subject: Any = story.subject
    view = subject.of if subject is not None and isinstance(subject.of, View) else None
    if not (withheld and story.verdict == "undecided"):
        yield from _use(audit, story)
    if audit.about == POSTERIOR:
        yield Step("sampler")
        yield from _close(audit)
        yield Step("simulate again")
        return
    if view is not None and within(view.lens)[1].startswith("interval:") and subject.side:
        yield Step("read as", {"of": subject})
    if audit.impossible:
        yield Step("zeros")
    yield from _rare_classes(audit, story)
    in_group = view is not None and view.group is not None
    if in_group or (view is None and not audit.impossible):
        yield Step("look", {"group": in_group})
    zeros = audit.zeros and subject is not None and subject.side is None
    if subject is not None and subject.kind == "order":
        yield Step("order")
    elif view is not None and not zeros and 2 * audit.impossible <= audit.n_samples:
        yield from _remedy(audit, story, view)  # otherwise nothing is known until the zeros are gone
    yield from _close(audit)
    yield Step("confirm", {"of": subject}) if isinstance(view, Slice) else Step("again")


def _as_they_are(audit: Audit, story: Story) -> Step:
    """Return the step that predictions may be used, unless the limit lets everything pass."""
    if audit.n_classes == 2 and story.mark(audit.views[0]).place == "pointless":
        return Step("limit for rare events")
    return Step("use", {"found": story.found})


def _use(audit: Audit, story: Story) -> Steps:
    """Yield steps on whether and where predictions may be used."""
    subject = story.subject
    view: Any = subject.of if subject is not None and isinstance(subject.of, View) else None
    rows = {"of": subject, "least of all": False}
    if view is not None and view.group is not None:
        everywhere = story.whole is not None and story.whole.of.group is None
        rows["least of all"] = everywhere or (view.impossible or 0) < audit.impossible
    if story.verdict == "within":
        yield _as_they_are(audit, story)
    elif story.verdict == "found" and audit.tolerance is None:
        yield Step("set a limit", rows)
    elif story.verdict == "undecided":
        estimated = view is not None and view.error is not None
        if estimated and audit.limit.exceeded(view.predicted, view.error):
            yield Step("avoid", rows)
        else:
            inside = view is not None and bool(view.inside)
            yield Step("averages" if inside else "open", rows | _rows(audit, story))
    else:
        named = view is not None and view.group is not None and not rows["least of all"]
        yield Step("avoid", rows | {"also": _apart(audit, story, view) if named else []})


def corrected(story: Story) -> Any:
    """Return the view whose rows need correction: all rows, unless a group explains the error."""
    whole = story.whole if story.whole is not None and story.whole.of.group is None else None
    of = story.subject if whole is None or story.explains else whole
    return None if of is None else of.of


def _apart(audit: Audit, story: Story, view: View) -> list[Finding]:
    """Return findings beyond the limit in other groups than the view's, one per group."""
    far = [each for each in story.named if each.kind == "mean" and each.far]
    far = [each for each in far if each.of.group and not is_made(audit, each.of.group)]
    apart = [each for each in far if view.group and not view.conditions <= each.of.conditions]
    return [*{each.of.group: each for each in apart}.values()]


def rows_needed(audit: Audit, unsettled: Iterable[Finding]) -> int | None:
    """Return the rows in total that would settle everything; None if rows are not what is lacking."""
    wanted = [(each.of.rows_needed, each.of.rows) for each in unsettled]
    if any(needed is None for needed, _ in wanted):
        return None
    most = max(((needed or 0) / rows for needed, rows in wanted), default=0.0)
    return max(math.ceil(most * audit.n_samples), audit.rows_in_all or 0) if most > 1.0 else None


def _rows(audit: Audit, story: Story) -> dict[str, Any]:
    """Return the rows in total that would settle it; converting them to time is left to the reader."""
    rows = rows_needed(audit, story.unsettled)
    if rows is None:
        never = not story.marks or any(each.place == "never" for each in story.unsettled)
        followed = any(view.events for view in audit.views)
        calibration = OF_ONE_SET in audit.warnings and not story.unsettled
        ends = any(each.place == "ends" for each in story.unsettled)
        more = {"never": never, "ends": ends, "calibration": calibration}
        return {"rows": None, "follow-up": followed, **more}
    times = rows / audit.n_samples
    clusters = None if audit.clusters is None else math.ceil(times * audit.clusters)
    return {"rows": rows, "times": times, "clusters": clusters, "far": times > _FAR_AWAY}


def _rare_classes(audit: Audit, story: Story) -> Steps:
    """Yield a step if the limit is above the event rate or the rate of some classes."""
    rare = [each.of for each in story.marks.values() if each.place == "pointless"]
    rare = [of for of in rare if of.group is None]
    if audit.n_classes == 2 and rare and story.verdict != "within":
        yield Step("rare event")
    classes = sum(of.lens.startswith("class:") for of in rare)
    if audit.n_classes > 2 and classes:
        yield Step("rare classes", {"count": classes})


def _close(audit: Audit) -> Steps:
    """Yield a step if the p-value is so close to alpha that other draws might change the decision."""
    if audit.functional and audit.exact_intervals:
        return  # nothing was drawn
    best = min(audit.checks, key=lambda check: check.adjusted)
    times = best.adjusted / best.pvalue if audit.correction != "westfall_young" else 1.0
    if times > 1.0 and best.pvalue <= 2.0 / (1 + audit.n_resamples):
        return  # no draw is as large, and in other draws hardly any would be
    low, high = interval_of_adjusted(audit.pvalue, audit.n_resamples, times)
    every = audit.clusters is not None and audit.n_resamples + 1 == 2**audit.clusters  # all signs
    if low < audit.alpha < high and not (every or audit.impossible):
        yield Step("more draws", {"draws": 10 * audit.n_resamples + 9})


def _after_a_pass(audit: Audit, story: Story) -> Steps:
    """Yield steps on what may be used if nothing was found."""
    if story.verdict == "within":
        yield _as_they_are(audit, story)
    elif story.verdict == "undecided":
        yield Step("not settled", _rows(audit, story))
    elif audit.at_most is None:
        yield Step("no proof")
    elif audit.functional is None and audit.at_most <= LITTLE:
        yield Step("use up to", {"most": audit.at_most})
    else:
        yield Step("possible", {"most": audit.most_of_views})
    yield from _rare_classes(audit, story)
    yield from _close(audit)
    yield Step("watch")


# ------------------------------------------------------------------ remedies


def _remedy(audit: Audit, story: Story, view: View) -> Steps:
    """Yield the correction to try, with its gain and the errors that remain beyond the limit."""
    group = view.group is not None
    first = not group and not audit.impossible
    if audit.units is not None:
        mended: View = corrected(story)
        facts = {"group": mended.group is not None, "entry": within(view.lens)[0], "first": first}
        yield Step("correct", facts | {"apart": _apart(audit, story, mended)})
        return
    if within(view.lens)[1].startswith("pair:"):
        pair = halves(within(view.lens)[1].removeprefix("pair:"))
        yield Step("dependence", {"entries": pair, "first": first})
        return
    line = audit.recalibration
    if line is not None and not (line.slope > _DEVIATIONS * line.slope_se):
        fitted = math.isfinite(line.slope)
        if fitted or not audit.impossible:
            yield Step("useless scores" if fitted else "no fit", {"first": first})
        return
    if not audit.remedies:
        views = (view,) if isinstance(view, Slice) else (view, *audit.views)
        count: Any = next((each.events for each in views if each.events), None)
        facts = {"group": group, "first": first, "hazards": None, "apart": _apart(audit, story, view)}
        if count is not None and count.expected and count.observed and count.proved > 1.0:
            # Factor for hazards so that as many events are expected as observed.
            facts["hazards"] = count.observed / count.expected, count.low or 0.0, count.high or math.inf
        yield Step("recalibrate", facts)
        return
    if any(each.name == "line" and each.slope <= 0.0 for each in audit.remedies[:3]):
        yield Step("useless forecasts", {"first": first})
        return
    best = next((each for each in audit.remedies if each.chosen), None)
    rows = None if audit.remedies[0].rows == audit.n_samples else audit.remedies[0].rows
    if best is None:
        names = [each.name for each in audit.remedies if not each.in_group and each.name != "order"]
        yield Step("nothing helps", {"tried": names, "rows": rows, "first": first})
        return
    alike = [each for each in audit.remedies if each.in_group == best.in_group]
    place = alike.index(best)
    failing = [each for each in alike[:place] if each.clear and each.excess and not best.excess]
    facts = {"name": best.name, "group": best.in_group, "all": group and not best.in_group}
    facts |= {"first": first, "rows": rows, "tenths": best.off_before > _STRIKING * abs(best.before)}
    facts["about 0"] = not best.leaves and not (best.excess and audit.limit.exceeded(1.0, best.after))
    facts |= {"clear": best.clear, "failing": {each.name: each.after for each in failing[:1]}}
    beyond = (each for each in best.left if audit.limit.exceeded(*each[1:]))  # by its estimate
    stays = sorted(((story.marks[key], error) for key, _, error in beyond), key=lambda x: -abs(x[1]))
    yield Step("remedy", facts | {"stays": stays})
