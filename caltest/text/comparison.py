"""A comparison in plain language."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from caltest._arguments import level_of_confidence
from caltest._visible import shown
from caltest.comparison.result import Comparison
from caltest.text.numbers import confidence_text, percent, short
from caltest.text.pages import written

_NAME = 32  # characters of a model's name


def summary(c: Comparison) -> str:
    """Return what was compared, the ranking, how sure it is, and which pairs differ."""
    best, *others = c.order
    names, alpha = shown_names(c), level_of_confidence(c.confidence)
    first, *rest = (c.parameters[name] for name in c.names)
    shared = [key for key in first if all(each.get(key) == first[key] for each in rest)]
    options = [f"{key} {short(first[key])}" for key in shared]
    options += [f"{key} differs by model" for key in first if key not in shared]
    known = c.adjusted_pvalues[np.isfinite(c.adjusted_pvalues) & ~np.eye(len(names), dtype=bool)]
    pairs = list(combinations(c.order, 2))
    tested = [pair for pair in pairs if np.isfinite(c.difference_errors[pair])]
    return written(
        "comparison",
        c.warnings,
        c=c,
        names=names,
        options=options,
        ranking=_ranking(c),
        level_of_confidence=level_of_confidence,
        ahead=sum(c.adjusted_pvalues[best, j] <= alpha for j in others),  # NaN, if not tested, is not
        leaders=[names[j] for j in c.order if c.differences[best, j] == 0.0],
        alike=(known > alpha).all(),
        often=int(c.first_proportions.argmax()),
        resamples=resamples_of(c),
        drawn=drawn(c),
        share=_percent,
        pairs=len(pairs),
        apart=[pair for pair in tested if c.adjusted_pvalues[pair] <= alpha],
        together=[pair for pair in tested if c.adjusted_pvalues[pair] > alpha],
    )


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


def _percent(share: float) -> str:
    """Write a share in percent, with a digit near none and all."""
    return percent(share, 0 if 0.01 <= share <= 0.99 else 1)
