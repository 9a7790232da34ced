"""A comparison in plain language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from caltest._arguments import level_of_confidence
from caltest._visible import shown
from caltest.comparison.result import Comparison
from caltest.text.numbers import (
    confidence_text,
    kept_of,
    page,
    percent,
    short,
    through,
)

_NAMED_PAIRS = 12
_NAME = 32  # characters of a model's name
_SMALLEST_PRINTED = 1e-9  # the tail of an approximate law is not printed beyond this

_ERRORS = {
    "u_statistic": "from the variance of a U-statistic{}, of both orders",
    "subsampling": "approximate, from the subsamples",
    "bootstrap": "approximate, from the bootstrap samples",
}


def summary(c: Comparison) -> str:
    """Return what was compared, the ranking, how sure it is, and which pairs differ."""
    rows = [
        (
            "data",
            f"{len(c.names)} models on {c.n_samples:,} rows"
            + (through(c.lens) or f" of {c.n_classes} classes")
            + ("" if c.n_clusters is None else f", in {c.n_clusters:,} clusters"),
        ),
        ("statistic", f"{shown(c.statistic)}  ({c.measures}); smallest first"),
    ]
    first, *others = (c.parameters[name] for name in c.names)
    shared = [key for key in first if all(each.get(key) == first[key] for each in others)]
    options = [f"{key} {short(first[key])}" for key in shared]
    options += [f"{key} differs by model" for key in first if key not in shared]
    if options:
        rows.append(("options", ", ".join(options)))
    if c.sampling_rates is not None:
        rows.append(("rows kept", f"{kept_of(c.sampling_rates)}; errors refer to the rows kept"))
    rows.append(
        ("errors", _ERRORS[c.errors_from].format("" if c.n_clusters is None else " of clusters"))
    )
    caution = "The smallest error is not always a small one: use caltest.test to test calibration."
    if c.errors_from != "u_statistic":
        caution += (
            " The column 'if calibrated' is the average size that a calibrated model with these "
            "predictions would show."
        )
    if c.errors_from != "u_statistic" and not c.signed:
        caution += (
            " This bias is part of the values, the ranking and the intervals; the tests count a "
            "difference only as far as it exceeds the biases."
        )
    texts = [_ranking(c), _how_sure(c), _differences(c), caution]
    title, (headline, brief) = "Comparison of calibration", _answer(c)
    return page(title, rows, *texts, notes=c.warnings, headline=headline, brief=brief)


def _answer(c: Comparison) -> tuple[str, str]:
    """Return which models have the smallest error: in one sentence, and in a few words."""
    best, *others = c.order
    alpha, names = level_of_confidence(c.confidence), shown_names(c)
    apart = sum(c.adjusted_pvalues[best, j] <= alpha for j in others)  # NaN, if not tested, is not
    rest = "the other one" if len(others) == 1 else f"{apart} of the {len(others)} others"
    differ = f"its error differs from that of {rest} (p ≤ {alpha:.2g})"
    if not apart:
        differ = "no test shows that its error differs from the others'"
    brief = f"{names[best]} first of {len(c.names)}, {shown(c.statistic)}, n = {c.n_samples:,}"
    return f"{names[best]} has the smallest error on these rows; {differ}.", brief


def _ranking(c: Comparison) -> list[str]:
    names = shown_names(c)
    width = max(len("model"), *(len(name) for name in names))
    title, statistic = f"{confidence_text(c.confidence)} interval", shown(c.statistic, 24)
    biased = c.errors_from != "u_statistic"
    bias = f"{'if calibrated':>13}  " if biased else ""
    lines = [f"  {'':>3}  {'model':<{width}}  {statistic:>11}  {title:^25}  {bias}first in"]
    wide = np.diff(c.intervals)  # no more decimals than the narrowest interval justifies
    narrow = float(wide[np.isfinite(wide) & (wide > 0.0)].min(initial=1.0))
    decimals = min(1 - math.floor(math.log10(narrow)), 9)
    for place, i in enumerate(c.order, 1):
        ends = (round(each, decimals) + 0.0 for each in (*c.intervals[i], c.values[i]))
        low, high, value = (f"{each:.{decimals}f}" for each in ends)
        between = f"{low:>11} to {high:<11}"
        share = _percent(float(c.first_proportions[i]))
        bias = f"{c.if_calibrated[i]:>13.{decimals}f}  " if biased else ""
        found = f"{value:>11}  {between:^25}  {bias}{share:>8}"
        lines.append(f"  {place:>3}  {names[i]:<{width}}  {found}")
    return lines


def _how_sure(c: Comparison) -> str:
    best, names = c.order[0], shown_names(c)
    leaders = [names[j] for j in c.order if c.differences[best, j] == 0.0]
    alone = len(leaders) == 1
    known = c.adjusted_pvalues[np.isfinite(c.adjusted_pvalues) & ~np.eye(len(names), dtype=bool)]
    same = "; no difference shown" if (known > level_of_confidence(c.confidence)).all() else ""
    text = (
        f"{' and '.join(leaders)} {'has' if alone else 'share'} the smallest error on all rows{same}. "
        f"“First in”: the share of {c.n_resamples:,} {resamples_of(c)} of {c.size:,} {drawn(c)} in "
        f"which a model comes first, {_between(c.first_intervals[best])} for {names[best]} "
        f"({confidence_text(c.confidence)} interval). The whole ranking was the same in "
        f"{_percent(c.order_proportion)} ({_between(c.order_interval)}). "
    )
    often = int(c.first_proportions.argmax())
    if c.first_proportions[often] > c.first_proportions[best]:
        share = _percent(float(c.first_proportions[often]))
        text += f"{names[often]} ranked first more often ({share}). "
    return f"{text}These shares are not the probability that the ranking is right."


def _differences(c: Comparison) -> str:
    names = shown_names(c)

    def listed(pairs: Sequence[tuple[int, int]]) -> str:
        each = []
        for i, j in pairs[:_NAMED_PAIRS]:
            p = float(c.adjusted_pvalues[i, j])
            size = f"p < {_SMALLEST_PRINTED:g}" if p < _SMALLEST_PRINTED else f"p = {p:.2g}"
            each.append(f"{names[i]} and {names[j]} ({size})")
        rest = len(pairs) - len(each)
        return ", ".join(each) + (f", and {rest} more" if rest else "")

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
        return f"{text}all pairs differ, better model first: {listed(apart)}."
    proof = "A difference that is not found may still exist."
    if not apart:
        return f"{text}no difference found: {listed(together)}. {proof}"
    text += f"{len(apart)} of {len(tested)} pairs differ"
    if len(apart) <= len(together):
        return f"{text}, better model first: {listed(apart)}. {proof}"
    return f"{text}, all but {listed(together)}. {proof}"


def resamples_of(c: Comparison) -> str:
    """Return what resamples are called, in the plural."""
    return "subsamples" if c.resampling == "subsampling" else "bootstrap samples"


def drawn(c: Comparison) -> str:
    """Return what a resample is of."""
    return "rows" if c.n_clusters is None else "clusters"


def shown_names(c: Comparison, most: int = _NAME) -> list[str]:
    """Return short names that differ: longer ones if need be, and at last numbered ones."""
    for room in (most, 4 * most):
        names = [shown(name, room) for name in c.names]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


def _between(interval: Sequence[float]) -> str:
    low, high = interval
    return f"{_percent(low)} to {_percent(high)}"


def _percent(share: float) -> str:
    """Write a share in percent, with a digit near none and all."""
    return percent(share, 0 if 0.01 <= share <= 0.99 else 1)
