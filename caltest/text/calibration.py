"""A test in words: what was tested, found, and may be concluded; and the line that recalibrates."""

from __future__ import annotations

from typing import cast

import numpy as np

from caltest._visible import shown
from caltest.cox import ChiSquareTest, Interval, Recalibration
from caltest.nulls import GUARANTEES
from caltest.pvalues import Alternative
from caltest.results import CalibrationResult
from caltest.text.numbers import (
    counted,
    kept_of,
    page,
    paragraph,
    points,
    short,
    through,
    without_rounding,
)
from caltest.text.vocabulary import TENDS

_UNRESOLVED = 1e-9  # an approximate tail is not printed beyond this

_COUNTS_AGAINST: dict[Alternative, str] = {
    "greater": "at least this large",
    "less": "this small or smaller",
    "two-sided": "at least this extreme in either direction",
}


def summary(result: CalibrationResult) -> str:
    """Return the result in plain language: what was tested, found, and may be concluded."""
    clusters = result.parameters.get("clusters")
    data = (
        f"{result.n_samples:,} predictions{through(result.lens) or f' of {result.n_classes} classes'}"
    )
    if clusters is not None:
        data += f", in {counted(clusters, 'cluster')}"
    if result.n_classes is None:
        data = f"{result.n_samples:,} predicted distributions of numbers"
    rows = [
        ("data", data),
        ("statistic", f"{shown(result.name)} = {statistic(result):.6g}  ({result.measures})"),
    ]
    apart = ("effective_n", "clusters", "sampling_rates")
    options = {k: v for k, v in result.parameters.items() if k not in apart}
    if options:
        rows.append(("options", ", ".join(f"{k} {short(v)}" for k, v in options.items())))
    if "effective_n" in result.parameters:
        effective = f"effective n = {result.parameters['effective_n']:,.0f} of {result.n_samples:,}"
        rows.append(("weights", effective))
    if "sampling_rates" in result.parameters:
        kept = kept_of(result.parameters["sampling_rates"])
        rows.append(("rows kept", f"{kept}; predictions are adjusted to the rows kept"))
    if "rounding" in result.parameters:
        rows.append(("rounding", rounded(result.parameters["rounding"], result.parameters["summed"])))
    worth = GUARANTEES[result.guarantee]
    if clusters is not None and result.guarantee == "asymptotic":
        worth = "valid only as the number of clusters grows"
    rows.append(("null", f"{result.null}, {result.guarantee}: {worth}"))
    p = f"{result.pvalue:.4g}"
    if result.guarantee == "approximate" and result.pvalue < _UNRESOLVED:
        p = f"below {_UNRESOLVED:g}"
    elif result.pvalue_interval is not None and result.n_resamples is not None:
        low, high = result.pvalue_interval
        p += f"  ({result.n_resamples:,} resamples; 95% Monte Carlo interval {low:.2g} to {high:.2g})"
    rows.append(("p-value", p))
    for number, part in enumerate(result.parts):
        text = f"p = {part.pvalue:.4g}, adjusted {part.adjusted:.4g}"
        rows.append(
            (
                "" if number else "parts",
                f"{shown(part.name)} = {without_rounding(part.value):.4g}: {text}",
            )
        )
    p = f"p {'is ' if _pvalue(result)[0].isalpha() else '= '}{_pvalue(result)}"
    if result.claim is not None:
        headline = f"{p} ({result.guarantee}) under the null hypothesis that {result.claim}."
    else:
        extreme = _COUNTS_AGAINST[cast("Alternative", result.alternative)]
        headline = (
            f"{p} ({result.guarantee}): the chance of a value {extreme} if the model is calibrated."
        )
    brief = f"{shown(result.name)}: {p}, n = {result.n_samples:,}, {result.guarantee}"
    text, notes = _reading(result), result.warnings
    return page("Calibration test", rows, text, notes=notes, headline=headline, brief=brief)


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


def _reading(result: CalibrationResult) -> str:
    p = _pvalue(result)
    if result.claim is not None:
        tolerance = result.parameters.get("tolerance")
        error = "a larger error" if tolerance else "an error in that direction"
        if tolerance and "rounding" in result.parameters:
            error = "an error that rounding does not explain"
        elif not tolerance and result.alternative == "two-sided":
            error = "an error"
        return (
            f"Null hypothesis (H0): {result.claim}. If H0 is true, evidence this strong against it has "
            f"probability {p} at most, provided that rows are independent and the labels were not used "
            f"to fit the model. If p is at or below the level you chose beforehand, {error} is found, "
            "and the false-alarm rate is at most that level. If p is above it, no such error is found; "
            "that does not prove H0."
        )
    claim, truth = "each label occurs with its predicted probability", "labels"
    if result.n_classes is None:
        claim, truth = "outcomes follow the predicted distributions", "outcomes"
    independent = "clusters" if "clusters" in result.parameters else "rows"
    holds = result.guarantee in ("exact", "bound")  # for any number of rows
    about = "" if holds or p[0].isalpha() else "about "
    return (
        f"Null hypothesis (H0): the model is calibrated, so that {claim}. If H0 is true, a value "
        f"{_COUNTS_AGAINST[cast('Alternative', result.alternative)]} has probability {about}{p}, "
        f"provided that {independent} are independent and the {truth} were not used to fit the model. "
        "If p is at or below the level you chose beforehand, miscalibration is found, and the "
        f"false-alarm rate is {'at most' if holds else 'about'} that level; p does not measure how "
        "large the error is. If p is above it, no miscalibration is found. That does not prove "
        "calibration: the error may be too small for this many rows, or of a kind that this statistic "
        "cannot detect."
    )


# ------------------------------------------------------------------ recalibration


_ADVICE = (
    "The p-values come from {} and are valid only as the number of rows grows; "
    "caltest.test(…, 'cox') gives an exact one."
)


def recalibration(result: Recalibration) -> str:
    """Return the fit in plain language."""
    lens = through(result.lens)
    rows = [
        ("fitted", f"logit P(y = 1) = intercept + slope · logit p, {result.n_samples:,} rows{lens}"),
        ("intercept", _estimate(result.intercept, result.intercept_interval)),
        ("slope", _estimate(result.slope, result.slope_interval)),
        ("at slope 1", f"intercept {_estimate(result.in_the_large, result.in_the_large_interval)}"),
        ("tests", f"intercept 0 and slope 1: {chi_square(result.test_both)}"),
        ("", f"intercept 0 at slope 1: {chi_square(result.test_in_the_large)}"),
        ("", f"slope 1: {chi_square(result.test_slope)}"),
    ]
    low, high = result.slope_interval
    reading = "The slope does not differ significantly from 1."
    if np.isnan(result.slope):
        reading = "The slope cannot be estimated from these data."
    elif high < 1.0:
        reading = f"The slope is below 1: predictions are too extreme (the model is {TENDS['over']})."
    elif low > 1.0:
        reading = (
            f"The slope is above 1: predictions are not extreme enough (the model is {TENDS['under']})."
        )
    if result.effective_n is not None:
        rows.append(("weights", f"effective n = {result.effective_n:,.0f} of {result.n_samples:,}"))
    kind = "likelihood-ratio tests" if result.effective_n is None else "Wald tests"
    text = paragraph(f"A calibrated model has intercept 0 and slope 1. {reading}")
    text += paragraph(_ADVICE.format(kind))
    brief = f"intercept {result.intercept:.2g}, slope {result.slope:.2g}, n = {result.n_samples:,}"
    return page(
        "Logistic recalibration", rows, text, notes=result.warnings, headline=reading, brief=brief
    )


def _estimate(value: float, interval: Interval) -> str:
    if np.isnan(value):
        return "cannot be estimated from these data"
    return f"{value:.4g}  (95% interval {interval[0]:.4g} to {interval[1]:.4g})"


def chi_square(test: ChiSquareTest) -> str:
    """Write a likelihood-ratio test."""
    if test.degrees == 0:
        return "a certain prediction was wrong" if test.statistic else "nothing to test"
    freedom = f"{test.degrees} degree{'' if test.degrees == 1 else 's'} of freedom"
    return f"χ² = {test.statistic:.4g}, {freedom}, p = {test.pvalue:.3g}"
