"""What to do after an audit: first for who uses the probabilities, then for who maintains the model."""

from __future__ import annotations

import math
from collections.abc import Iterable

from caltest.auditing.result import Audit, against_limit, shows
from caltest.auditing.views import View
from caltest.data.diagnose import advice_on_zeros
from caltest.forms import Side
from caltest.pvalues import interval_of_adjusted
from caltest.text.numbers import outward_points, pvalue
from caltest.text.pages import said
from caltest.text.sizes import LITTLE
from caltest.text.vocabulary import TENDS, WRONG, lens_name, limit, listed, told_view, where

_MINOR = 0.1  # of the largest error: smaller ones of other classes do not decide the advice
DEVIATIONS = 3.0  # standard errors beyond which a slope or an intercept is clear

_MAINTAINER = "For whoever maintains the model: "
_HELD_OUT = "recalibrate it on held-out rows"
_AGAIN = "Then audit again, on rows that were used neither to fit nor to recalibrate the model."


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    if not audit.rejected:
        return tuple(_after_a_pass(audit))
    told = told_view(audit)
    group = told.group if told is not None else None
    texts = list(_use(audit, told))
    if audit.impossible:
        why = "a class that was not in the training data, a wrong label, or a lost small probability"
        about = (
            advice_on_zeros(audit.zeros, audit.n_classes, audit.clusters is not None)
            if audit.zeros
            else f"Look at the rows whose observed label had probability 0 ({why})."
        )
        about = f"{about[:1].lower()}{about[1:]}"
        texts.append(f"{_MAINTAINER}{about} Recalibration cannot change probabilities of 0 and 1.")
    if group is not None:
        texts.append(
            f"{_MAINTAINER}look at the data of that group (labels, missing inputs, how it differs from "
            f"the training rows), and recalibrate the group on held-out rows. One correction for all "
            "rows cannot fix an error in a single group."
        )
    elif told is None and not audit.impossible:
        texts.append(
            f"{_MAINTAINER}look at the data of these rows (labels, missing inputs, how they differ "
            "from others)."
        )
    elif told is not None and (audit.zeros is None or audit.worst is not None):
        # Else nothing more is known until the zeros are gone.
        by_classes = _of_two_classes if audit.n_classes == 2 else _of_more_classes
        texts.append(f"{_MAINTAINER}{by_classes(audit)}")
    return (*texts, *_close(audit), _AGAIN)


def _close(audit: Audit) -> Iterable[str]:
    """Say if the p-value is so close to the level that other draws might lie on the other side."""
    best = min(audit.checks, key=lambda check: check.adjusted)
    times = best.adjusted / best.pvalue if audit.correction != "westfall_young" else 1.0
    low, high = interval_of_adjusted(audit.pvalue, audit.n_resamples, times)
    every = audit.clusters is not None and audit.n_resamples + 1 == 2**audit.clusters  # signs
    if low < audit.alpha < high and not (every or audit.impossible):
        yield (
            f"p = {pvalue(audit.pvalue, audit.alpha)} is close to {audit.alpha:g}: another seed could "
            f"change the verdict. Use more resamples, n_resamples={10 * audit.n_resamples + 9}."
        )


def _use(audit: Audit, told: View | None) -> Iterable[str]:
    """Say whether the probabilities may be used, and where."""
    rows = where(told.group) if told is not None else ""
    own = limit(audit)
    if audit.verdict == "small":
        yield (
            f"Use the probabilities as they are where average errors up to {own} do not matter. The "
            "next steps remove even the small error."
        )
    elif audit.verdict == "found" and own is None and not audit.tolerance:
        yield (
            "Decide how large an average error matters to you, and set that as the limit "
            f"(materiality). If this error matters, do not rely on these probabilities{rows} until "
            "they are corrected."
        )
    elif audit.verdict == "found" and own is not None:
        if told is not None and _estimated_beyond(audit, told):
            yield (
                f"Do not rely on these probabilities{rows} until they are corrected: the error is "
                f"estimated to be beyond your limit of {own}, though it is not proved to be."
            )
        elif told is not None and against_limit(audit, told) == "inside":
            yield (
                f"Use the probabilities{rows} where only averages matter: the average error is within "
                f"your limit of {own}. Elsewhere, or in parts of these rows, it could be larger: audit "
                "again with more rows before you rely on them there."
            )
        else:
            yield (
                f"Whether the error{rows} exceeds your limit of {own} is not settled. Until it is, on "
                "more rows, do not rely on these probabilities where that would be costly."
            )
    else:
        yield f"Do not rely on these probabilities{rows} until they are corrected."


def _estimated_beyond(audit: Audit, view: View) -> bool:
    """Whether the mean error as estimated, without its interval, is beyond the limit."""
    predicted, observed = view.predicted or 0.0, view.observed or 0.0
    if audit.materiality_ratio is None:
        return abs(predicted - observed) > (audit.materiality or math.inf)
    return max(predicted, observed) > audit.materiality_ratio * min(predicted, observed)


def _of_two_classes(audit: Audit) -> str:
    """Advise by the line that fits."""
    return said("recalibrate", "of_two_classes", audit.recalibration, _HELD_OUT, DEVIATIONS)


def _of_more_classes(audit: Audit) -> str:
    """Advise one temperature only where no class is proved too high or too low."""
    overall = [check.view for check in audit.found if check.view.group is None]
    shown = [each for each in overall if shows(audit, each)]
    least = _MINOR * max((abs(each.error or 0.0) for each in shown), default=0.0)
    top: Side | None = next(
        (shows(audit, each) for each in shown if each.lens == "top_label"), None
    ) or next((each.shape for each in overall if each.event is None and each.shape), None)
    classes = [each for each in shown if each.lens.startswith("class:")]
    large = [each for each in classes if abs(each.error or 0.0) >= least]
    large = [each for each in large if against_limit(audit, each) != "inside"]
    classes = large if top or large else classes
    if top and not classes:
        of_top = any(each.lens == "top_label" for each in shown)
        return (
            f"{_HELD_OUT}. It is {TENDS[top]}{' in its top class' if of_top else ''}; temperature "
            "scaling is the first thing to try."
        )
    told = told_view(audit)
    if not classes and told is not None and told.event is not None:
        return (
            f"{_HELD_OUT}. Whether it is too extreme or too cautious was not shown; the "
            f"reliability diagram of {lens_name(told)} shows which predictions are off."
        )
    if not classes:
        return (
            f"{_HELD_OUT}. No single class stands out; caltest.witness shows near which predictions "
            "the error is found."
        )
    sides = {
        WRONG[side]: listed(lens_name(each) for each in classes if shows(audit, each) == side)
        for side in ("over", "under")
    }
    off = "; ".join(f"{names}: {side} on average" for side, names in sides.items() if names)
    with_temperature, alone = (" and a temperature", "may not") if top else ("", "cannot")
    these = "this class is" if len(classes) == 1 else "these classes are"
    return (
        f"{_HELD_OUT} class by class ({off}): an intercept for every class{with_temperature}, as "
        f"in vector scaling. Temperature scaling alone {alone} fix this. Check how {these} labelled."
    )


def _after_a_pass(audit: Audit) -> Iterable[str]:
    if audit.verdict == "within":
        yield (
            f"Use the probabilities as they are where average errors up to {limit(audit)} do not "
            "matter."
        )
    elif audit.at_most is not None:
        _, most = outward_points(0.0, audit.at_most)
        more = f"more {'rows' if audit.clusters is None else 'clusters'}"
        fewer = ", or with fewer groups" if audit.groups else ""
        own = limit(audit)
        if audit.at_most <= LITTLE and own is None:
            yield (
                f"Use the probabilities as they are where average errors up to {most} points do not "
                f"matter. If smaller ones matter, audit again with {more}{fewer}."
            )
        else:
            small = " in small groups" if audit.groups else ""
            known = f"errors above your limit of {own}" if own else f"large errors{small}"
            many = "; caltest.sample_size estimates how many" if audit.clusters is None else ""
            yield (
                f"These rows cannot rule out {known}. If that matters, audit again with "
                f"{more}{fewer}{many}."
            )
    else:
        yield "This does not prove calibration: an error may be too small for this many rows."
    yield from _close(audit)
    yield "Audit again when the model or its inputs change."
