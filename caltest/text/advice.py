"""Next steps in words: a sentence or two for each step in an audit's story."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from caltest._numbers import about_points, figures, leading, number, percents, pvalue, unit, up_to
from caltest._visible import visible
from caltest.auditing.result import Audit
from caltest.auditing.story import POSTERIOR, ends_lacking
from caltest.auditing.views import Slice, View
from caltest.exceptions import Argument
from caltest.story import Step
from caltest.text import said, sizes
from caltest.text import vocabulary as words

Facts: TypeAlias = Mapping[str, Any]

_MAINTAINER = "For whoever maintains the model: "
_MOST = 10  # groups to name

#: Names of remedies for two classes, for more, and for point forecasts.
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "order": ("the classes exchanged", "another order of the classes"),
    "temperature": ("a slope of the log-odds (temperature scaling)", "temperature scaling"),
    "shift": ("an intercept of the log-odds", "an intercept for every class", "a shift"),
    "factor": ("", "", "a factor"),
    "line": ("", "", "a line (a factor and a shift)"),
    "temperature and shift": (
        "a slope and an intercept of the log-odds (Platt scaling)",
        "a temperature and an intercept for every class",
    ),
    "isotonic": ("isotonic regression", "isotonic regression of every class", "isotonic regression"),
}


def advice(audit: Audit) -> tuple[str, ...]:
    """Return the next steps, a sentence or two each."""
    return tuple(_sentence(audit, step) for step in audit.story.steps)


def _sentence(audit: Audit, step: Step) -> str:
    """Return the text of a step; the first one for the model's maintainer names its addressee."""
    told = _SENTENCES[step.code]
    text = told(audit, step.facts) if callable(told) else told.format_map(_Names(audit, step.facts))
    if "first" not in step.facts:
        return text
    return f"{_MAINTAINER}{text}" if step.facts["first"] else words.capital(text)


class _Names(dict[str, str]):
    """Texts for placeholders in sentences, written on demand."""

    def __init__(self, audit: Audit, facts: Facts) -> None:
        self.audit, self.facts = audit, facts

    def __missing__(self, name: str) -> str:
        return _NAMES[name](self.audit, self.facts)


def _where(audit: Audit, facts: Facts) -> str:
    """Return the rows with an error, as the end of a noun phrase."""
    finding = facts["of"]
    return words.where(finding.of.group) if finding and isinstance(finding.of, View) else ""


def _these(audit: Audit, facts: Facts) -> str:
    """Return the predictions not to rely on, and where."""
    rows, these = _where(audit, facts), f"these {_stated(audit, facts)}"
    return f"{these}, least of all{rows}," if facts["least of all"] else f"{these}{rows}"


def _stated(audit: Audit, facts: Facts) -> str:
    """Return the noun for predictions that may or may not be used."""
    usual = "probabilities" if audit.n_classes else "predictions"
    usual = usual if audit.set_sizes is None else "sets"
    return POSTERIOR if audit.about == POSTERIOR else usual


def _more_rows(audit: Audit, facts: Facts) -> str:
    """Return advice on how many rows would settle it."""
    if facts["rows"] is None and facts["never"]:
        one = "top_label" if audit.n_classes else "quantile:0.5"
        lens = f"look at single probabilities ({Argument('lenses', [one])})"
        above = " above 0" if audit.limit and not any(audit.limit[:3]) else ""
        return f"set a limit{above} that rows can settle" if audit.story.marks else lens
    if facts["rows"] is None and facts["ends"]:
        ends = {"low": "the smallest", "high": "the largest"}
        which = " and ".join(ends[end] for end in ends_lacking(audit))
        return f"give {which} number that an outcome can be ({words.ends_wanted(audit)})"
    if facts["rows"] is None:
        more = "rows that were followed for longer" if facts["follow-up"] else "more rows"
        more = "more calibration rows" if facts["calibration"] else more
        return f"audit again with {more}{', or fewer groups' if audit.groups else ''}"
    times, far = facts["times"], facts["far"]
    many = f"{times:.2g} times as many" if times < 9.95 else f"{times:,.0f} times as many"
    groups = ", if groups keep their shares" if audit.groups else ""
    rows = f"{sizes.about(facts['rows'])} rows"
    if facts["clusters"] is not None:
        rows = f"{sizes.about(facts['clusters'])} clusters"
        if far:
            smaller = "make clusters smaller (of time, shorter blocks), set a wider limit"
            takes = f"with clusters like these it takes {rows} ({many})"
            return f"{smaller}, or name fewer groups: {takes}"
    fewer = f"; a wider limit{', or fewer groups,' if audit.groups else ''} takes fewer"
    return f"audit again with {rows} in all ({many}{groups}{fewer if far else ''})"


def _more(audit: Audit, facts: Facts) -> str:
    more = "rows" if audit.clusters is None else "clusters"
    return f"more {more}{', or with fewer groups' if audit.groups else ''}"


def _avoid(audit: Audit, facts: Facts) -> str:
    text = f"Do not rely on {_these(audit, facts)} until they are corrected"
    if audit.verdict in ("likely", "undecided"):
        limit = words.limit(audit)
        text += f": the error is estimated to be beyond your limit of {limit}, which is not proved"
    also = [words.group_name(each.of.group) for each in leading(facts.get("also", ()), _MOST)]
    return f"{text}. The same goes for {words.listed(also)}." if also else f"{text}."


def _zeros(audit: Audit, facts: Facts) -> str:
    seen = "label" if audit.n_classes else "outcome"
    new = "a class that was not in the training data, " if audit.n_classes else ""
    why = f"{new}a wrong {seen}, or a lost small probability"
    about = audit.zeros or f"Look at the rows whose observed {seen} had probability 0 ({why})."
    about = f"{about[:1].lower()}{about[1:]}"
    return f"{_MAINTAINER}{about} Recalibration cannot change probabilities of 0 and 1."


def _noun(audit: Audit) -> str:
    """Return the noun for the headline's rows, if they are not all rows."""
    return "slice" if audit.story.subject and isinstance(audit.story.subject.of, Slice) else "group"


def _correct(audit: Audit, facts: Facts) -> str:
    whom = f"that {_noun(audit)}" if facts["group"] else "the model"
    of = f" of {visible(facts['entry'])}" if facts["entry"] else ""
    return f"{said('audit', 'remedy_of_numbers', audit, whom, of).rstrip()}{_also(facts)}"


def _also(facts: Facts) -> str:
    """Return a sentence on other groups that need their own correction."""
    names = words.listed(words.group_name(each.of.group) for each in facts["apart"])
    return f" What else is beyond your limit needs a correction of its own: {names}." if names else ""


def _recalibrate(audit: Audit, facts: Facts) -> str:
    text = f"recalibrate the {_noun(audit) if facts['group'] else 'model'} on held-out rows."
    if facts["hazards"] is None:
        return f"{text}{_also(facts)}"
    by, low, high = (number(each, 3) for each in facts["hazards"])
    ends = f"{low} or more" if high == "∞" else f"{high} or less" if low == "0" else f"{low} to {high}"
    match = f"hazards multiplied by {by} ({ends}) match the number of events observed"
    return f"{text} As estimated, {match}.{_also(facts)}"


def _tried(facts: Facts) -> str:
    rows = "these rows" if facts["rows"] is None else f"{facts['rows']:,} of these rows"
    return f"Tried by cross-fitting inside {rows}"


def _called(audit: Audit, remedy: str) -> str:
    return REMEDIES[remedy][2 if unit().of_outcomes else audit.n_classes > 2]


def _by(best: Any) -> str:
    """Return the numbers of a correction of point forecasts, as advice; "" without any."""
    if best.shift is None:
        return ""
    add = f"{'add' if best.shift > 0.0 else 'subtract'} about {about_points(abs(best.shift))}"
    multiply = f"multiply by about {best.slope:.3g}"
    do = {"shift": add, "factor": multiply, "line": f"{multiply} and {add}"}
    return f": {do[best.name]}"


def _nothing_helps(audit: Audit, facts: Facts) -> str:
    names = ", ".join(_called(audit, name) for name in facts["tried"])
    nothing = f"no usual recalibration clearly lowers the {unit().loss} here: look at the data"
    return f"{nothing}. {_tried(facts)}: {names}."


def _remedy(audit: Audit, facts: Facts) -> str:
    """Return which recalibration to try, its gain, what others would leave, and what remains."""
    best, many = next(each for each in audit.remedies if each.chosen), audit.n_classes > 2
    view, name = audit.story.subject.of, _called(audit, facts["name"])  # type: ignore[union-attr]
    brings = f"the mean error{words.where(view.group)}"
    if view.event is not None and not unit().of_outcomes:
        brings = f"the mean error of {words.lens_name(view)}{words.where(view.group)}"
    elif many:
        brings = "the mean error of the top class"
    if facts["tenths"]:
        sizes_of = best.off_before, best.off_after, best.off_chance
        before, after, chance = (about_points(each, "point") for each in sizes_of)
        brings = f"the error of tenths of the predictions, on average, from {before} to {after}"
        brings += f" (of a calibrated model it would be about {chance}, by chance)"
    else:
        after = "about 0" if facts["about 0"] else sizes.estimated(best.after)
        error = about_points(best.after_se, "point")
        brings += f" from {sizes.estimated(best.before)} to {after} (standard error {error})"
    alone = " the whole model" if facts["all"] else ""
    alone = f" for that {_noun(audit)} alone" if facts["group"] else alone
    do, tried = f"recalibrate{alone} on held-out rows by {name}{_by(best)}.", _tried(facts)
    if facts["name"] == "order":
        do = f"look at the order of the classes{alone}: columns seem to be exchanged."
        tried = f"{tried}, with {name}"
    way = "lowers" if best.gain >= 0.0 else "raises"
    chance = "" if facts["clear"] else ", which chance may explain"
    of, share = (100.0 / best.loss, "%") if unit().of_outcomes else (1.0, "")
    loss = f"{unit().loss}{' of all rows' * (view.group is not None)}"
    gain, error = figures(of * abs(best.gain), 2), figures(of * best.gain_se, 1)
    lowers = f"{way} the {loss} by {gain}{share} (standard error {error}{share}){chance}"
    texts = [f"{do} {tried}, it takes {brings}, and {lowers}."]
    for other, error in facts["failing"].items():
        left = f"{sizes.estimated(error)}, beyond your limit of {words.limit(audit)}"
        texts.append(f"{words.capital(_called(audit, other))} alone would leave {left}.")
    if stays := facts["stays"]:
        names = (f"{words.view_name(of.of)} ({sizes.estimated(error)})" for of, error in stays)
        left = words.listed(names)
        texts.append(f"What stays beyond your limit needs a correction of its own: {left}.")
    return " ".join([*texts, "These are estimates, not a test."])


_NAMES: Mapping[str, Callable[[Audit, Facts], str]] = {
    "these": _these,
    "where": _where,
    "stated": _stated,
    "more_rows": _more_rows,
    "more": _more,
    "outcomes": lambda audit, _: words.outcomes_called(audit),
    "limit": lambda audit, _: str(words.limit(audit)),
    "any": lambda audit, _: f", and any {words.other_way(audit)}," if audit.limit.only else "",
    "averages": lambda audit, _: "averages that are" if audit.limit.only else "errors",
    "inside": lambda audit, _: words.inside(audit),
    "before": lambda _, facts: words.capital("; ".join(facts["do"])),
    "elsewhere": lambda _, facts: "; elsewhere, take the next steps" if facts["found"] else "",
    "materiality": lambda *_: str(Argument("materiality")),
    "count": lambda _, facts: f"{facts['count']:,}",
    "classes": lambda audit, _: f"{audit.n_classes:,}",
    "ratio": lambda *_: str(Argument("materiality_ratio", 1.25)),
    "most": lambda _, facts: up_to(facts["most"]),
    "in_rows": lambda audit, _: "in groups" if audit.groups else "over all rows",
    "view": lambda _, facts: words.lens_name(facts["of"].of),
    "share": lambda _, facts: percents(*sizes.rates(facts["of"].of))[1],
    "p": lambda audit, _: pvalue(audit.pvalue, audit.alpha),
    "alpha": lambda audit, _: f"{audit.alpha:g}",
    "draws": lambda _, facts: str(Argument("n_resamples", facts["draws"])),
    "whose": lambda audit, facts: f"that {_noun(audit)}" if facts["group"] else "these rows",
    "slice": lambda _, facts: words.group_name(facts["of"].of.group),
    "groups": lambda *_: str(Argument("groups")),
    "pair": lambda _, facts: " and ".join(map(visible, facts["entries"])),
    "what": lambda audit, _: "sampler" if audit.about == POSTERIOR else "model",
}
_SENTENCES: Mapping[str, str | Callable[[Audit, Facts], str]] = {
    # For those who use the predictions.
    "premises": "{before}. Until then neither this verdict nor what follows can be relied on.",
    "use": "Use the {stated} as they are, where average errors of up to {limit}{any} do not "
    "matter{elsewhere}.",
    "limit for rare events": "Before you use the probabilities, audit again with a limit for rare "
    "events: a ratio alone, such as {ratio}.",
    "set a limit": "Decide how large an average error matters to you, and set that as the limit "
    "({materiality}). If this error matters, do not rely on {these} until they are corrected.",
    "avoid": _avoid,
    "averages": "Use the {stated}{where} where only averages matter: the average error is within your "
    "limit of {limit}. Elsewhere it could be larger: {more_rows}.",
    "open": "Whether the error{where} exceeds your limit of {limit} is not settled. Where that "
    "would be costly, do not rely on these {stated} until it is: {more_rows}.",
    "not settled": "Not settled is not wrong: no error was found. Before you rely on {averages} "
    "{inside}, {more_rows}.",
    "use up to": "Use the {stated} as they are where average errors up to {most} do not "
    "matter. If smaller ones matter, audit again with {more}.",
    "possible": "Average errors of up to {most} remain possible {in_rows}, and larger ones "
    "in parts of the predictions. If that matters, audit again with {more}; a limit ({materiality}) "
    "tells how many are needed.",
    "no proof": "This does not prove calibration: an error may be too small for this many rows.",
    "rare event": "Your limit of {limit} is larger than the predicted rate, so that it says nothing "
    "over all rows: audit again with a ratio alone, such as {ratio}.",
    "rare classes": "For {count} of {classes} classes your limit is larger than what is predicted, so "
    "that it says nothing there: audit again with a ratio alone, such as {ratio}.",
    "read as": "Until then, read {view}{where} as one of about {share}.",
    "more draws": "p = {p} is close to {alpha}: another seed could change the verdict. Use more "
    "resamples, {draws}.",
    "watch": "Audit again when the {what} or its inputs change.",
    "again": "Then audit again on new rows, used neither to fit nor to recalibrate the model.",
    "confirm": "Then audit new rows, used neither to fit nor to recalibrate the model, with {slice} "
    "named as a group ({groups}): a search found it, and new rows show whether it stays.",
    "simulate again": "Then check again, with new simulations.",
    # For those who maintain the model.
    "sampler": "Look at the sampler (warm-up, convergence, thinning, approximations), and at whether "
    "simulations and posterior have the same prior and the same likelihood: no recalibration can "
    "repair these.",
    "zeros": _zeros,
    "look": f"{_MAINTAINER}look at the data of {{whose}} ({{outcomes}}, missing inputs, how they "
    "differ from others).",
    "order": f"{_MAINTAINER}let forecasts use the latest outcomes: no correction of their level takes "
    "away that errors follow errors.",
    "correct": _correct,
    "dependence": "correct how the members of {pair} go together, on held-out rows; reordering them as "
    "past outcomes were ordered is one way.",
    "no fit": "no recalibration can be fitted to these rows, because they have one label only or the "
    "predictions separate the labels: check the labels.",
    "useless forecasts": "outcomes do not rise with the forecast, which no recalibration can fix: "
    "check the outcomes and the inputs, and refit.",
    "useless scores": "the predictions hardly separate events from non-events, or rank them the "
    "wrong way round, which recalibration cannot fix: check the labels and the inputs, and refit.",
    "recalibrate": _recalibrate,
    "nothing helps": _nothing_helps,
    "remedy": _remedy,
}
