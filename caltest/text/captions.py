"""Captions: titles and notes of the pictures and tables of a report, from their own intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from caltest._numbers import confidence_text, number, outward_points, percent, percents, unit
from caltest._visible import shown_column, visible
from caltest.auditing.result import Audit
from caltest.auditing.story import POSTERIOR
from caltest.auditing.views import ByFeature, Cumulative, Part, PitHistogram, Slice, View
from caltest.lenses import within
from caltest.text import sizes, vocabulary
from caltest.text.vocabulary import begun, capital, group_name, lens_name, outcomes_called, view_name

if TYPE_CHECKING:
    from caltest.auditing.posteriors import PosteriorSize

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_VERDICTS = "material", "likely", "undecided", "found", "within", "not found"
#: Symbols for verdicts that need no colour.
ICONS = dict(zip(_VERDICTS, "▲△◐◆●○", strict=True))


def plural(noun: str, count: int = 2) -> str:
    """Return a noun in the singular or plural."""
    several = {"class": "classes", "half": "halves", "probability": "probabilities"}
    return noun if count == 1 else several.get(noun, f"{noun}s")


def many(count: int) -> str:
    """Write a small number as a word."""
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"


# ------------------------------------------------------------------ posteriors


def of_pair(of: PosteriorSize) -> tuple[str, str]:
    """Return the title and note for the picture of two parameters."""
    return f"{' and '.join(map(visible, of.names))} do not go together as their draws do.", (
        "True values less means of draws, in standard deviations of the posterior. Ellipses: dashed as "
        f"stated, drawn as observed; {vocabulary.posterior_size(of)}."
    )


# ------------------------------------------------------------------ intervals


def side(audit: Audit, of: View | Part) -> str | None:
    """Return the proved direction of an error, such as "too high"; None without one."""
    told = vocabulary.way(audit.story.mark(of).side, of.lens)
    return f"{told}{sizes.off_centre(audit, of)}" if told else None


def shaded(audit: Audit) -> str | None:
    """Return the label of the shaded limit in pictures and tables; None without one."""
    of = audit.limit  # points combined with a ratio differ by view
    alike = of.under is not None and of.under == of.over
    return f"{'±' * alike}{vocabulary.limit(audit)}" if of.drawn else None


def is_per_thousand(audit: Audit) -> bool:
    """Whether rates are written per 1,000 rows: for two classes with a rare event."""
    views = [view for view in audit.views if view.group is None and view.predicted is not None]
    rates = [rate for view in views for rate in (view.predicted, view.observed) if rate is not None]
    return audit.n_classes == 2 and 0.0 < max(rates, default=1.0) < sizes.RARE


def shares(of: Any, rare: bool = False) -> tuple[str, str]:
    """Write predicted and observed for a table, with more digits if rates are small."""
    if unit().of_outcomes:
        return sizes.both(of)
    stated, seen = (percent(rate, 1 if rate >= 0.001 and not rare else 2) for rate in sizes.rates(of))
    return stated, seen


def per_thousand(rate: float) -> str:
    """Write a small rate as events per 1,000 rows."""
    return f"{1000.0 * rate:,.{1 if rate >= 0.001 or not rate else 2}f}"


def at_least(view: View) -> str:
    """Return the proved error of some predictions, in points; a dash if not computed."""
    sides = {"too high": view.at_least_over, "too low": view.at_least_under}
    if set(sides.values()) == {None}:
        return "–"
    texts = [f"{outward_points(bound, bound)[0]} {way}" for way, bound in sides.items() if bound]
    return "; ".join(texts) or "not shown"


def usual(audit: Audit) -> list[tuple[str, str]]:
    """Return the usual metrics with their usual names."""
    if (of := audit.usual) is None:
        return []
    parts = f"{of.miscalibration:.3g} − {of.discrimination:.3g} + {of.uncertainty:.3g}"
    found: list[tuple[str, float | str | None]] = [
        ("ECE, 15 bins", of.ece),
        ("Brier score", f"{of.brier:.3g}"),
        ("= miscalibration − discrimination + uncertainty", parts),
        ("Log loss", of.log_loss),
        ("AUC", of.auc),
        ("Accuracy", of.accuracy),
        ("Slope", of.slope),
        ("Intercept", of.intercept),
        ("ICI", of.ici),
        ("E50", of.e50),
        ("E90", of.e90),
        ("Observed ÷ expected", of.observed_to_expected),
    ]
    told = [(name, value) for name, value in found if value is not None and value == value]
    return [(name, value if isinstance(value, str) else number(value)) for name, value in told]


# ------------------------------------------------------------------ pictures


def _kind(audit: Audit) -> str:
    sides = "one-sided " * (audit.limit.only is not None)
    return f"{sides}{'exact' if audit.exact_intervals else 'approximate'}"


def _intervals(audit: Audit) -> str:
    """Return the name of jointly valid intervals."""
    return f"{_kind(audit)} intervals, all correct together, {sizes.sure(audit)}"


def _unit(audit: Audit) -> str:
    return "rows" if audit.clusters is None else "clusters"


def _noun(parts: Sequence[Part]) -> tuple[str, str]:
    """Return the noun for parts, singular and plural; ties may leave fewer or unequal ones."""
    alike = len(parts) == parts[0].of and max(p.rows for p in parts) <= 1.3 * min(p.rows for p in parts)
    one = sizes.PARTS.get(parts[0].of, "part") if alike else "part"
    return one, plural(one)


def part_name(part: Part, view: View) -> str:
    """Return the name of a half, or of a part of tied predictions, in a table."""
    if part.of == 2 and abs(2 * part.rows - view.rows) <= 0.1 * view.rows:
        return f"{('Lower', 'Upper')[part.place]} half"
    return f"Predicted {' to '.join(dict.fromkeys(percents(part.start, part.end)))}"


def _titled(audit: Audit, view: View, text: str) -> str:
    """Return a title, prefixed by its view unless there is only one."""
    if vocabulary.is_single(audit):
        return f"{group_name(view.group)}: {text}" if view.group else capital(text)
    return f"{begun(view_name(view))}: {text}"


def parts_title(audit: Audit, view: View, parts: Sequence[Part], halves: Sequence[Part]) -> str:
    """Return the title of a picture of parts, from their intervals."""
    one, several = _noun(parts)
    whole = f"{many(len(parts))} parts of the predictions"
    sides = [side(audit, part) for part in parts]
    high, low = sides.count("too high"), sides.count("too low")
    if all(audit.story.mark(part).place == "within" for part in parts):
        text = f"every {one} of the predictions is inside the limit."
    elif high and low:
        text = f"shown too high in {many(high)}, too low in {many(low)} of {whole}."
    elif high or low:
        way, count = ("too high", high) if high else ("too low", low)
        every = f"both {several}" if len(parts) == 2 else f"all {many(len(parts))} parts"
        if count == len(parts):
            text = f"{way} in {every} of the predictions."
        else:
            text = f"shown {way} in {many(count)} of {whole}."
    else:
        half = ("the lower half", "the upper half")
        ways = [f"{half[part.place]} {told}" for part in halves if (told := side(audit, part))]
        if ways:
            text = f"{', '.join(ways)}, on average."
        elif audit.story.found:
            overall = f"{told} overall; " if (told := side(audit, view)) else ""
            text = f"{overall}each {one} alone has too few {_unit(audit)} to tell."
        elif any(part.side for part in parts):
            text = f"no error was found, though some intervals of {several} exclude zero."
        else:
            text = f"no {one} of the predictions is shown to be wrong."
    return _titled(audit, view, text)


_LINE, _BAND = "Line: isotonic regression", "; shaded: where the mean lies if it nowhere falls"


def parts_note(audit: Audit, kind: str, parts: Sequence[Part], halves: Sequence[Part], fit: Any) -> str:
    """Return the legend of a picture of parts; ``fit``: an isotonic curve, or None."""
    one, several = _noun(parts)
    wrong = "; ◆ proved wrong, ○ not" if any(side(audit, each) for each in parts) else ""
    bars = f"Bars: {_intervals(audit)}."
    if kind == "errors":
        boxes = " Boxes: the half of the rows with lower, and with higher predictions." * bool(halves)
        limit = f" Dashed: your limit, {shaded(audit)}." if shaded(audit) else ""
        return f"Dots: {several} of the predictions{wrong}. {bars}{boxes}{limit}"
    rare = kind == "rare" and not unit().of_outcomes
    rate = "events observed per 1,000 rows" if rare else f"{unit().seen} {unit().mean}"
    text = f"Dots: {rate} in each {one} of the predictions{wrong}. {bars} Dashed: predicted ="
    fitted = f" {_LINE}{_BAND if fit.low else ''}." if fit else ""
    return f"{text} {unit().seen}.{fitted}"


def feature_title(audit: Audit, of: ByFeature) -> str:
    """Return the title of a picture along a feature, from the intervals of its bins."""
    ways = Counter(vocabulary.way(x.side, of.lens) for x in of.bins if x.side and audit.story.found)
    told = [f"{text} in {many(count)}" for text, count in ways.items()]
    bins = f"{many(len(of.bins))} {plural('bin', len(of.bins))}"
    text = f"{', '.join(told) or 'no interval shows an error, in any'} of {bins}."
    view = next(each for each in audit.views if each.lens == of.lens)
    about = "" if vocabulary.is_single(audit) else f", {lens_name(view)}"
    return f"{shown_column(of.feature)}{about}: {text}"


def feature_note(audit: Audit) -> str:
    """Return the legend of a picture along a feature."""
    bars = f"intervals that allow for all {audit.n_slices:,} slices searched, {sizes.sure(audit)}"
    return f"Dots: {unit().seen} {unit().mean}; bars: {bars}. Dashed: predicted."


def cumulative_title(audit: Audit, view: View, drawn: Cumulative) -> str:
    """Return the title of a cumulative difference, by where it leaves its band."""
    out = drawn.outside.values()
    called = {True: "high", False: "low"} if unit().of_outcomes else {True: "often", False: "rarely"}
    ways = [f"predicted too {way}" for over, way in called.items() if over in out]
    return _titled(audit, view, f"{' and '.join(ways) or 'no more than chance alone explains'}.")


def cumulative_note(audit: Audit) -> str:
    """Return the legend of a cumulative difference."""
    seen = f"{unit().seen}{'' if unit().of_outcomes else ' events'}"
    added = f"Predicted less {seen}, added up from the lowest prediction to the highest"
    chance = f"chance alone ({confidence_text(audit.confidence)} for all checks together)"
    return f"{added}. A rising line: predictions too high there. Shaded: {chance}."


def levels_title(audit: Audit, view: View, drawn: Cumulative) -> str:
    """Return the title of the picture of all levels, by where it leaves its band."""
    out, every = drawn.outside, zip(drawn.difference, drawn.share, strict=True)
    far = [share for _, share in sorted(every) if not out or share in out]
    least, most = far[0], far[-1]  # the levels with the largest and the smallest share at or below
    outcomes, lower = outcomes_called(audit), set(out.values()) == {False}
    if not out:
        text = "at no level more than chance alone explains."
    elif view.key not in audit.wrong_views:
        text = "no error was found, though the line leaves the shaded band."
    elif vocabulary.kind_of(view.lens) == "ranks":
        text = "some ranks occur too often, others too rarely."
    elif len(set(out.values())) == 2:
        few, (low, high) = "few" if most < least else "many", sorted((least, most))
        text = f"too {few} {outcomes} below the {_level(low)} and above the {_level(high)} quantile."
    elif audit.times is not None:
        text = f"events come {'earlier' if lower else 'later'} than predicted."
    elif min(out) < _LOW and max(out) > 1.0 - _LOW:
        text = f"{outcomes} lie {'lower' if lower else 'higher'} than predicted."
    else:
        peak = least if lower else most
        few, tail = "many" if (peak < 0.5) == lower else "few", "below" if peak < 0.5 else "above"
        text = f"too {few} {outcomes} {tail} the {_level(peak)} quantile."
    return _named(view, text)


def _named(view: View, text: str) -> str:
    """Return the title of a picture for numeric outcomes, with its entry and group."""
    names = [visible(entry)] if (entry := within(view.lens)[0]) else []
    names += [group_name(view.group)] if view.group else []
    return f"{', '.join(names)}: {text}" if names else capital(text)


def _level(share: float) -> str:
    return f"{100.0 * share:.3g}%"


_LOW = 0.25  # level below which quantiles are called low


def pit_title(audit: Audit, view: View, drawn: PitHistogram) -> str:
    """Return the title of a histogram of PITs or ranks: where bars prove too many outcomes."""
    outcomes, last = outcomes_called(audit), len(drawn.share) - 1
    if ends := [name for end, name in ((0, "low"), (last, "high")) if end in drawn.above]:
        text = f"too many {outcomes} at {'both ends' if ends[1:] else f'the {ends[0]} end'}."
    elif drawn.above:
        text = f"too many {outcomes} in the middle."
    else:
        lone = "band for single bars" if drawn.low is None else "bar alone shows an error"
        text = f"no {lone if audit.story.found else 'error was found'}."
    return _named(view, text)


def pit_note(audit: Audit, drawn: PitHistogram) -> str:
    """Return the legend of a histogram of PITs or ranks, with its shape under calibration."""
    outcomes, sure = outcomes_called(audit), confidence_text(audit.confidence)
    bins = "rank bin" if drawn.kind == "rank" else "tenth of what was predicted"
    text = f"Bars: share of {outcomes} in each {bins}; calibrated: all alike (dashed)."
    if drawn.low is not None:
        text += f" Shaded: chance alone, {sure} for all bars of this picture (exact, binomial)."
    return text


def coverage_note(audit: Audit) -> str:
    """Return the legend of stated against observed coverage."""
    dots = "Dots: what was stated, and how often it was observed"
    return f"{dots}. Bars: {_intervals(audit)}. Dashed: stated = observed."


def diagrams_note(audit: Audit, pictures: int) -> str | None:
    """Return the legend of a report's diagrams, by their number; None for probabilities."""
    if audit.functional is not None:
        text = f"Intervals: {_kind(audit)}, all correct together, {sizes.sure(audit)}."
        if curves := [view.isotonic.low for view in audit.views if view.isotonic]:
            text += f" {_LINE}{_BAND if any(curves) else ''}."
        return f"Dots: {unit().seen} {unit().mean} in parts of the forecasts. {text}"
    return None if audit.n_classes else levels_note(audit, pictures)


def levels_note(audit: Audit, pictures: int = 1) -> str:
    """Return the legend of pictures of all levels, by their number."""
    sure, outcomes = confidence_text(audit.confidence), outcomes_called(audit)
    seen = f"{outcomes} at or below the predicted quantile of this level"
    below = f"{outcomes} lie lower than predicted"
    band = f"where the whole line lies in {sure} of simulations"
    if "quantile" in audit.about and any(x.rows < audit.n_samples for x in audit.views if not x.group):
        seen += " (where a row states none there, counted as suits the forecast)"
    if any(view.cumulative.bands for view in audit.views if view.cumulative):  # for times
        seen += " (Kaplan–Meier: no time is filled in; the line ends where ten rows are followed)"
        below = "events come earlier than predicted"
        band = f"chance alone, about {sure} for the whole line"
    if (chance := round(pictures * audit.alpha)) and pictures > 1:
        of = "leaves its band" if chance == 1 else "leave their bands"
        band += f": of {pictures:,} pictures of a calibrated model, about {many(chance)} {of}"
    level = f"For every level, such as 0.9: the level less the share of {seen}. Below zero: {below}"
    line = "A line that falls and then rises through zero: too narrow; the other way round: too wide"
    return f"{level}. {line}. Shaded, for each picture alone: {band}."


def chance_note(audit: Audit) -> str:
    """Return the legend of a picture of the evidence."""
    outcomes = outcomes_called(audit)
    drawn = f"in each set of {outcomes} simulated from the model's own predictions"
    if audit.clusters is not None or audit.functional is not None:
        drawn = f"with the errors of randomly chosen {_unit(audit)} reversed"
    return f"Grey: the strongest evidence of any check, {drawn}. Thick line: in your {outcomes}."


def chance_title(reached: int, draws: int) -> str:
    """Return how the observed evidence ranks among the simulations."""
    count = f"{reached:,}" if reached else "None"
    return f"{count} of {draws:,} simulations gave evidence this strong."


# ------------------------------------------------------------------ the table of slices


def slices_title(audit: Audit, views: Sequence[View], noun: str) -> str:
    """Return the title of a table of views; ``noun``: "group", "class" or "part"."""
    of_numbers = noun == "class" and vocabulary.of_distributions(audit)
    lead, noun = audit.story.subject, "probability" if of_numbers else noun
    of = [v for v in views if v.group or v.lens.startswith("class:") or noun == "probability"]
    counts = Counter(way for view in of if (way := side(audit, view)))
    if audit.story.alone:
        return f"One {noun} stands out."
    if counts:
        every = "both" if len(of) == 2 else f"all {many(len(of))}"
        found = {way: every if 1 < count == len(of) else many(count) for way, count in counts.items()}
        texts = [f"{way} in {some} {plural(noun, counts[way])}" for way, some in found.items()]
        return capital(f"{', '.join(texts)}.")
    if lead is not None and lead.kind in ("mean", "average"):
        way, name = side(audit, lead.of), begun(view_name(lead.of))
        return f"{name}: {f'{way} on average' if way else 'wrong on average, by its own check'}."
    if some := sum(view.key in audit.wrong_views for view in of):
        are = "is" if some == 1 else "are"
        text = f"{many(some)} of {many(len(of))} {plural(noun)} {are} wrong for"
        return capital(f"{text} some predictions; on average none is proved to be.")
    wrong = vocabulary.way(audit.limit.only, audit.views[0].lens) or "wrong"
    return f"No {'mean' if noun == 'part' else noun} is proved to be {wrong} on average."


def slices_note(audit: Audit, unit: str | None, shown: Sequence[View | Part]) -> str:
    """Return the legend of the bars in a table of slices."""
    alone = sizes.own_sure(audit, len(audit.limit.sides))
    text = f"Thin bars: {_intervals(audit)}; thick: each alone, {alone}."
    inside = f"thick bar inside{vocabulary.only_with(audit)}"
    text += f" Beyond your limit: thin bar outside it; within: {inside}." if audit.limit else ""
    if any(isinstance(of, Slice) for of in shown):
        text += f" Slices: thin bars alone, which allow for all {audit.n_slices:,} that were searched."
    text = " ".join(filter(None, (text, members_note(audit), made_note(audit, shown))))
    return f"{unit}. {text}" if unit else text


def members_note(audit: Audit) -> str:
    """Return why predicted shares may differ from an interval's name: few members, or ties; or ""."""
    if any(sizes.with_ties(view) for view in audit.views):
        return "With ties: values equal to a quantile, or to the end of an interval, count too."
    if not ("members" in audit.about or audit.about == POSTERIOR) or vocabulary.of_probabilities(audit):
        return ""
    return "Predicted: what so many members can state; few cannot state every level."


def made_note(audit: Audit, shown: Sequence[View | Part]) -> str:
    """Return remarks on groups that the audit makes itself, and on projected values; or ""."""
    groups = (of.group for of in shown if isinstance(of, View) and of.group)
    made = dict.fromkeys(text for group in groups if (text := vocabulary.made_by(audit, group)))
    projected = any(of.projected for of in shown)
    told = [*made, *["In brackets: projected, as nobody was followed so long."] * projected]
    if (level := (audit.functional or "").partition(":")[2]) and shown:
        error = f"Error: mean of 2 |1{{outcome ≤ forecast}} − {level}| (forecast − outcome)"
        told.append(f"{error}; implied: forecast less error.")
    return " ".join(told)
