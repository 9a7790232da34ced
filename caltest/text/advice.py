"""What to do next, in words: a sentence or two for every step that an audit has decided on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from caltest._numbers import about_points, leading, number, outward_points, percents, pvalue
from caltest._visible import visible
from caltest.auditing.result import Audit
from caltest.auditing.story import POSTERIOR
from caltest.auditing.views import View
from caltest.exceptions import Argument
from caltest.text import said, sizes
from caltest.text import vocabulary as words

Facts: TypeAlias = Mapping[str, Any]

_MAINTAINER = "For whoever maintains the model: "
_MOST = 10  # groups that are named

#: What remedies are called, of two classes and of more.
REMEDIES: Mapping[str, tuple[str, str]] = {
    "order": ("the classes exchanged", "another order of the classes"),
    "temperature": ("a slope of the log-odds (temperature scaling)", "temperature scaling"),
    "shift": ("an intercept of the log-odds", "an intercept for every class"),
    "temperature and shift": (
        "a slope and an intercept of the log-odds (Platt scaling)",
        "a temperature and an intercept for every class",
    ),
    "isotonic": ("isotonic regression", "isotonic regression of every class"),
}


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    return tuple(_SENTENCES[step.code](audit, step.facts) for step in audit.story.steps)


# ------------------------------------------------------------------ for who uses the predictions


def _stated(audit: Audit) -> str:
    """Return what may be used, or not."""
    usual = "probabilities" if audit.n_classes else "predictions"
    return POSTERIOR if audit.about == POSTERIOR else usual


def _these(audit: Audit, facts: Facts) -> str:
    """Return what not to rely on, and where."""
    finding, rows = facts["of"], ""
    if finding is not None and isinstance(finding.of, View):
        rows = words.where(finding.of.group)
    return (
        f"these {_stated(audit)}, least of all{rows},"
        if facts["least of all"]
        else (f"these {_stated(audit)}{rows}")
    )


def _premises(audit: Audit, facts: Facts) -> str:
    before = words.capital("; ".join(facts["do"]))
    return f"{before}. Until then neither this verdict nor what follows can be relied on."


def _use(audit: Audit, facts: Facts) -> str:
    elsewhere = "; elsewhere, take the next steps" if facts["found"] else ""
    return (
        f"Use the {_stated(audit)} as they are, where average errors of up to {words.limit(audit)} do "
        f"not matter{elsewhere}."
    )


def _rare(audit: Audit, facts: Facts) -> str:
    return (
        "Before you use the probabilities, audit again with a limit for rare events: a ratio "
        f"alone, such as {Argument('materiality_ratio', 1.25)}."
    )


def _set_a_limit(audit: Audit, facts: Facts) -> str:
    return (
        "Decide how large an average error matters to you, and set that as the limit "
        f"({Argument('materiality')}). If this error matters, do not rely on "
        f"{_these(audit, facts)} until "
        "they are corrected."
    )


def _avoid(audit: Audit, facts: Facts) -> str:
    text = f"Do not rely on {_these(audit, facts)} until they are corrected"
    if audit.verdict in ("likely", "undecided"):
        limit = words.limit(audit)
        text += f": the error is estimated to be beyond your limit of {limit}, which is not proved"
    also = [words.group_name(each.of.group) for each in leading(facts.get("also", ()), _MOST)]
    return f"{text}. The same goes for {words.listed(also)}." if also else f"{text}."


def _averages(audit: Audit, facts: Facts) -> str:
    of = facts["of"].of
    return (
        f"Use the {_stated(audit)}{words.where(of.group)} where only averages matter: the average "
        "error "
        f"is within your limit of {words.limit(audit)}. Elsewhere it could be larger: "
        f"{_more_rows(audit, facts)}."
    )


def _open(audit: Audit, facts: Facts) -> str:
    finding = facts["of"]
    rows = words.where(finding.of.group) if finding and isinstance(finding.of, View) else ""
    return (
        f"Whether the error{rows} exceeds your limit of {words.limit(audit)} is not settled. Where "
        "that "
        f"would be costly, do not rely on these {_stated(audit)} until it is: "
        f"{_more_rows(audit, facts)}."
    )


def _not_settled(audit: Audit, facts: Facts) -> str:
    return (
        "Not settled is not wrong: no error was found. If errors above "
        f"{words.limit(audit)} would be costly, {_more_rows(audit, facts)}."
    )


def _more_rows(audit: Audit, facts: Facts) -> str:
    """Return how many rows would settle it, as what to do."""
    if facts["rows"] is None:
        more = "rows that were followed for longer" if facts["follow-up"] else "more rows"
        return f"audit again with {more}{', or fewer groups' if audit.groups else ''}"
    many = (
        f"{facts['times']:.2g} times as many"
        if facts["times"] < 9.95
        else (f"{facts['times']:,.0f} times as many")
    )
    groups = ", if groups keep their shares" if audit.groups else ""
    rows = f"{sizes.about(facts['rows'])} rows"
    if facts["clusters"] is not None:
        rows = f"{sizes.about(facts['clusters'])} clusters"
        if facts["far"]:
            return (
                f"make clusters smaller (days in place of weeks, {Argument('blocks', '1d')}), set "
                "a wider "
                f"limit, or name fewer groups: with clusters like these it takes {rows} ({many})"
            )
    fewer = ", or fewer groups, takes" if audit.groups else " takes"
    less = f"; a wider limit{fewer} fewer" if facts["far"] else ""
    return f"audit again with {rows} in all ({many}{groups}{less})"


def _use_up_to(audit: Audit, facts: Facts) -> str:
    most = outward_points(0.0, facts["most"])[1]
    return (
        f"Use the {_stated(audit)} as they are where average errors up to {most} points do not matter. "
        f"If smaller ones matter, audit again with {_more(audit)}."
    )


def _possible(audit: Audit, facts: Facts) -> str:
    most = outward_points(0.0, facts["most"])[1]
    where = "in groups" if audit.groups else "over all rows"
    return (
        f"Average errors of up to {most} points remain possible {where}, and larger ones in parts "
        "of the "
        f"predictions. If that matters, audit again with {_more(audit)}; a limit "
        f"({Argument('materiality')}) tells how many are needed."
    )


def _more(audit: Audit) -> str:
    more = "rows" if audit.clusters is None else "clusters"
    return f"more {more}{', or with fewer groups' if audit.groups else ''}"


def _no_proof(audit: Audit, facts: Facts) -> str:
    return "This does not prove calibration: an error may be too small for this many rows."


def _read_as(audit: Audit, facts: Facts) -> str:
    view = facts["of"].of
    share, where = percents(*sizes.rates(view))[1], words.where(view.group)
    return f"Until then, read {words.lens_name(view)}{where} as one of about {share}."


def _more_draws(audit: Audit, facts: Facts) -> str:
    return (
        f"p = {pvalue(audit.pvalue, audit.alpha)} is close to {audit.alpha:g}: another seed could "
        f"change the verdict. Use more resamples, {Argument('n_resamples', facts['draws'])}."
    )


def _watch(audit: Audit, facts: Facts) -> str:
    what = "sampler" if audit.about == POSTERIOR else "model"
    return f"Audit again when the {what} or its inputs change."


def _again(audit: Audit, facts: Facts) -> str:
    return "Then audit again on new rows, used neither to fit nor to recalibrate the model."


def _simulate_again(audit: Audit, facts: Facts) -> str:
    return "Then check again, with new simulations."


# ------------------------------------------------------------------ for who maintains the model


def _sampler(audit: Audit, facts: Facts) -> str:
    return (
        "Look at the sampler (warm-up, convergence, thinning, approximations), and at whether "
        "simulations and posterior have the same prior and the same likelihood: no recalibration can "
        "repair these."
    )


def _zeros(audit: Audit, facts: Facts) -> str:
    seen = "label" if audit.n_classes else "outcome"
    new = "a class that was not in the training data, " if audit.n_classes else ""
    why = f"{new}a wrong {seen}, or a lost small probability"
    about = audit.zeros or f"Look at the rows whose observed {seen} had probability 0 ({why})."
    about = f"{about[:1].lower()}{about[1:]}"
    return f"{_MAINTAINER}{about} Recalibration cannot change probabilities of 0 and 1."


def _look(audit: Audit, facts: Facts) -> str:
    rows = "that group" if facts["group"] else "these rows"
    return (
        f"{_MAINTAINER}look at the data of {rows} (labels, missing inputs, how they differ from "
        "others)."
    )


def _first(facts: Facts, text: str) -> str:
    """Return a sentence for who maintains the model, who is named where it is the first for them."""
    return f"{_MAINTAINER}{text}" if facts["first"] else words.capital(text)


def _correct(audit: Audit, facts: Facts) -> str:
    whom = "that group" if facts["group"] else "the model"
    of = f" of {visible(facts['entry'])}" if facts["entry"] else ""
    return _first(facts, said("audit", "remedy_of_numbers", audit, whom, of).rstrip())


def _dependence(audit: Audit, facts: Facts) -> str:
    pair = " and ".join(map(visible, facts["entries"]))
    return _first(
        facts,
        f"correct how the members of {pair} go together, on held-out rows; reordering them as past "
        "outcomes were ordered is one way.",
    )


def _no_fit(audit: Audit, facts: Facts) -> str:
    return _first(
        facts,
        "no recalibration can be fitted to these rows, because they have one label only or the "
        "predictions separate the labels: check the labels.",
    )


def _useless(audit: Audit, facts: Facts) -> str:
    return _first(
        facts,
        "the predictions hardly separate events from non-events, or rank them the wrong way round, "
        "which "
        "recalibration cannot fix: check the labels and the inputs, and refit.",
    )


def _recalibrate(audit: Audit, facts: Facts) -> str:
    text = f"recalibrate the {'group' if facts['group'] else 'model'} on held-out rows."
    if facts["hazards"] is not None:
        by, low, high = map(number, facts["hazards"])
        text += (
            f" As estimated, hazards multiplied by {by} ({low} to {high}) would expect as many "
            "events as "
            "came."
        )
    return _first(facts, text)


def _tried(facts: Facts) -> str:
    rows = "these rows" if facts["rows"] is None else f"{facts['rows']:,} of these rows"
    return f"Tried by cross-fitting inside {rows}"


def _nothing_helps(audit: Audit, facts: Facts) -> str:
    names = ", ".join(REMEDIES[name][audit.n_classes > 2] for name in facts["tried"])
    nothing = "no usual recalibration clearly lowers the log loss here: look at the data"
    return _first(facts, f"{nothing}. {_tried(facts)}: {names}.")


def _remedy(audit: Audit, facts: Facts) -> str:
    """Say which recalibration to try, what it brings, what others would not, and what stays."""
    best, many = next(each for each in audit.remedies if each.chosen), audit.n_classes > 2
    view, name = audit.story.subject.of, REMEDIES[facts["name"]][many]  # type: ignore[union-attr]
    brings = "the mean error"
    if view.event is not None:
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
    alone = " for that group alone" if facts["group"] else " the whole model" if facts["all"] else ""
    do, tried = f"recalibrate{alone} on held-out rows by {name}.", _tried(facts)
    if facts["name"] == "order":
        do = f"look at the order of the classes{alone}: columns seem to be exchanged."
        tried = f"{tried}, with {name}"
    texts = [
        f"{do} {tried}, it takes {brings}, and lowers the log loss by {best.gain:.2g} (standard error "
        f"{best.gain_se:.1g})."
    ]
    for other, error in facts["failing"].items():
        left = f"{sizes.estimated(error)}, beyond your limit of {words.limit(audit)}"
        texts.append(f"{words.capital(REMEDIES[other][many])} alone would leave {left}.")
    if stays := facts["stays"]:
        parts = [f"{words.view_name(of.of)} ({sizes.estimated(error)})" for of, error in stays]
        texts.append(
            f"What stays beyond your limit, and has to be corrected apart: {words.listed(parts)}."
        )
    return _first(facts, " ".join([*texts, "These are estimates, not a test."]))


_SENTENCES: Mapping[str, Callable[[Audit, Facts], str]] = {
    "premises": _premises,
    "use": _use,
    "limit for rare events": _rare,
    "set a limit": _set_a_limit,
    "avoid": _avoid,
    "averages": _averages,
    "open": _open,
    "not settled": _not_settled,
    "use up to": _use_up_to,
    "possible": _possible,
    "no proof": _no_proof,
    "read as": _read_as,
    "sampler": _sampler,
    "simulate again": _simulate_again,
    "zeros": _zeros,
    "look": _look,
    "correct": _correct,
    "dependence": _dependence,
    "no fit": _no_fit,
    "useless scores": _useless,
    "recalibrate": _recalibrate,
    "nothing helps": _nothing_helps,
    "remedy": _remedy,
    "more draws": _more_draws,
    "watch": _watch,
    "again": _again,
}
