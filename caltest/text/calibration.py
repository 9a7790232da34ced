"""A test in words: what was tested, found, and may be concluded; and the line that recalibrates."""

from __future__ import annotations

import numpy as np

from caltest.cox import ChiSquareTest, Recalibration
from caltest.nulls import GUARANTEES
from caltest.results import CalibrationResult
from caltest.text.numbers import points, without_rounding
from caltest.text.pages import written

_UNRESOLVED = 1e-9  # an approximate tail is not printed beyond this

_COUNTS_AGAINST = {
    "greater": "at least this large",
    "less": "this small or smaller",
    "two-sided": "at least this extreme in either direction",
}


def summary(result: CalibrationResult) -> str:
    """Return the result in plain language: what was tested, found, and may be concluded."""
    apart = ("effective_n", "clusters", "sampling_rates")
    return written(
        "test",
        result.warnings,
        t=result,
        p=_pvalue(result),
        value=statistic(result),
        options={name: each for name, each in result.parameters.items() if name not in apart},
        worth=GUARANTEES[result.guarantee],
        extreme=_COUNTS_AGAINST,
        rounded=rounded,
    )


def statistic(result: CalibrationResult) -> float:
    """Return the statistic, or 0 where it is rounding beside the draws."""
    draws = result.null_distribution
    finite = draws[np.isfinite(draws)] if draws is not None else np.empty(0)
    return without_rounding(result.statistic, *([np.abs(finite).max()] if len(finite) else []))


def _pvalue(result: CalibrationResult) -> str:
    """Write the p-value as what is known of it."""
    if result.guarantee == "approximate" and result.pvalue < _UNRESOLVED:
        return f"below {_UNRESOLVED:g}"
    return f"{'at most ' if result.guarantee == 'bound' else ''}{result.pvalue:.3g}"


def rounded(step: float, n_summed: int = 1) -> str:
    """Return what a stated probability stands for, and the sum of several; 70% is an example.

    Examples
    --------
    >>> rounded(0.05), rounded(0.001, 5)  # doctest: +NORMALIZE_WHITESPACE
    ('to 5%: a stated 70% means 67.5 to 72.5%',
     'to 0.1%: a stated 70% means 69.95 to 70.05%, and a sum of 5 is good to ±0.25 points')
    """
    stated = round(0.7 / step) * step
    low, high = max(stated - 0.5 * step, 0.0), min(stated + 0.5 * step, 1.0)
    text = f"to {100.0 * step:.4g}%: a stated {100.0 * stated:.6g}% means "
    text += f"{100.0 * low:.6g} to {100.0 * high:.6g}%"
    return text + (
        f", and a sum of {n_summed} is good to ±{points(0.5 * step * n_summed)}" * (n_summed > 1)
    )


def recalibration(result: Recalibration) -> str:
    """Return the fit in plain language."""
    return written("recalibration", result.warnings, r=result, chi_square=chi_square)


def chi_square(test: ChiSquareTest) -> str:
    """Write a likelihood-ratio test."""
    if test.degrees == 0:
        return "a certain prediction was wrong" if test.statistic else "nothing to test"
    freedom = f"{test.degrees} degree{'' if test.degrees == 1 else 's'} of freedom"
    return f"χ² = {test.statistic:.4g}, {freedom}, p = {test.pvalue:.3g}"
