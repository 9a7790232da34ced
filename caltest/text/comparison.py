"""A comparison in plain language."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from caltest._arguments import level_of_confidence
from caltest._visible import shown
from caltest.comparison.result import Comparison
from caltest.text.numbers import confidence_text, page, paragraph, percent, short, table

_NAMED_PAIRS = 12
_NAME = 32  # characters of a model's name
_SMALLEST_PRINTED = 1e-9  # the tail of an approximate law is not printed beyond this

_ERRORS = {
    "u_statistic": "from the variance of a U-statistic, of both orders",
    "subsampling": "approximate, from the subsamples",
    "bootstrap": "approximate, from the bootstrap samples",
}


def summary(comparison: Comparison) -> str:
    """Return what was compared, the ranking, how sure it is, and which pairs are told apart."""
    c = comparison
    view = f", seen through the lens {shown(c.lens)}" if c.lens else ""
    rows = [
        ("compared", f"{len(c.names)} models on {c.n_samples} rows of {c.n_classes} classes{view}"),
        ("statistic", f"{shown(c.statistic)}  ({c.measures}); smallest first"),
    ]
    if options := _options(c):
        rows.append(("with", options))
    rows.append(("errors", _ERRORS[c.errors_from]))
    lines = ["Comparison of calibration", *table(rows), ""]
    lines += [*_ranking(c), ""]
    for text in (_how_sure(c), _told_apart(c), _caution(c)):
        lines += [*paragraph(text), ""]
    for warning in c.warnings:
        lines += [*paragraph(f"Note: {warning}"), ""]
    return page(lines[:-1])


def _options(c: Comparison) -> str:
    """Name the options that all models share, then those that differ."""
    first, *others = (c.parameters[name] for name in c.names)
    shared = [key for key in first if all(each.get(key) == first[key] for each in others)]
    own = [key for key in first if key not in shared]
    texts = [f"{key} {short(first[key])}" for key in shared]
    texts += [f"{key} of its own for each model" for key in own]
    return ", ".join(texts)


def _ranking(c: Comparison) -> list[str]:
    names = shown_names(c)
    width = max(len("model"), *(len(name) for name in names))
    title, statistic = f"{confidence_text(c.confidence)} interval", shown(c.statistic, 24)
    biased = c.errors_from != "u_statistic"
    bias = f"{'if calibrated':>13}  " if biased else ""
    lines = [f"  {'':>3}  {'model':<{width}}  {statistic:>11}  {title:^25}  {bias}first in"]
    for place, i in enumerate(c.order, 1):
        low, high = c.intervals[i]
        between = f"{low:>11.4g} to {high:<11.4g}"
        share = _percent(float(c.first_proportions[i]))
        bias = f"{c.if_calibrated[i]:>13.4g}  " if biased else ""
        found = f"{c.values[i]:>11.4g}  {between:^25}  {bias}{share:>8}"
        lines.append(f"  {place:>3}  {names[i]:<{width}}  {found}")
    return lines


def _how_sure(c: Comparison) -> str:
    best, names = c.order[0], shown_names(c)
    leaders = [names[j] for j in c.order if c.differences[best, j] == 0.0]
    alone = len(leaders) == 1
    text = (
        f"{' and '.join(leaders)} {'has' if alone else 'share'} the smallest error on all rows. "
        f"{'It' if alone else names[best]} came first in "
        f"{_percent(float(c.first_proportions[best]))} of {c.n_resamples:,} {resamples_of(c)} of "
        f"{c.size:,} rows (with more of them {_between(c.first_intervals[best])}), and all models "
        f"came in this order in {_percent(c.order_proportion)} ({_between(c.order_interval)}). "
    )
    often = int(c.first_proportions.argmax())
    if c.first_proportions[often] > c.first_proportions[best]:
        share = _percent(float(c.first_proportions[often]))
        text += f"{names[often]} came first more often ({share}). "
    return text + (
        f"These shares say how stable the ranking is under chance in the choice of {c.size:,} rows; "
        "they are no probabilities that it is right."
    )


def _told_apart(c: Comparison) -> str:
    alpha = level_of_confidence(c.confidence)
    pairs = list(combinations(c.order, 2))
    tested = [pair for pair in pairs if np.isfinite(c.difference_errors[pair])]
    apart = [pair for pair in tested if c.adjusted_pvalues[pair] <= alpha]
    together = [pair for pair in tested if c.adjusted_pvalues[pair] > alpha]
    family = f"{c.correction}, {len(pairs)} pairs" if c.correction else "not corrected for their number"
    if len(pairs) == 1:
        family = "one pair"
    text = f"Tests of equal error, two-sided at level {alpha:.4g} ({family}): "
    if not tested:
        return f"{text}none was possible."
    if len(tested) < len(pairs):
        text += f"{len(tested)} of {len(pairs)} pairs could be tested; "
    if not together:
        return f"{text}all told apart, the better one first: {_listed(c, apart)}."
    proof = "Not to be told apart is no proof of being equal."
    if not apart:
        return f"{text}none told apart: {_listed(c, together)}. {proof}"
    text += f"{len(apart)} of {len(tested)} told apart"
    if len(apart) <= len(together):
        return f"{text}, the better one first: {_listed(c, apart)}. {proof}"
    return f"{text}, all but {_listed(c, together)}. {proof}"


def _caution(c: Comparison) -> str:
    text = "Smallest is not calibrated: whether a model is, caltest.test says."
    if c.errors_from != "u_statistic":
        text += (
            " The column 'if calibrated' is the size that a calibrated model with these predictions "
            "would show on average"
        )
        text += (
            "."
            if c.signed
            else ", a bias: it is in the values, by which the ranking is, and in their intervals; in "
            "the tests a difference counts only as far as it exceeds the biases."
        )
    return text


def _listed(c: Comparison, pairs: Sequence[tuple[int, int]]) -> str:
    names = shown_names(c)
    named = [
        f"{names[i]} and {names[j]} ({_p(float(c.adjusted_pvalues[i, j]))})"
        for i, j in pairs[:_NAMED_PAIRS]
    ]
    rest = len(pairs) - len(named)
    return ", ".join(named) + (f", and {rest} more" if rest else "")


def _p(pvalue: float) -> str:
    return f"p < {_SMALLEST_PRINTED:g}" if pvalue < _SMALLEST_PRINTED else f"p = {pvalue:.2g}"


def resamples_of(c: Comparison) -> str:
    """Return what resamples are called, in the plural."""
    return "subsamples" if c.resampling == "subsampling" else "bootstrap samples"


def shown_names(c: Comparison, most: int = _NAME) -> list[str]:
    """Return short names that differ: longer ones if need be, and at last numbered ones."""
    for room in (most, 4 * most):
        names = [shown(name, room) for name in c.names]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


def _between(interval: Sequence[float]) -> str:
    low, high = interval
    return f"between {_percent(low)} and {_percent(high)}"


def _percent(share: float) -> str:
    """Write a share in percent, with a digit near none and all.

    >>> _percent(0.93), _percent(0.9996), _percent(1.0), _percent(0.004)
    ('93%', '>99.9%', '100%', '0.4%')
    """
    return percent(share, 0 if 0.01 <= share <= 0.99 else 1)
