"""The line that would recalibrate predictions, in words."""

from __future__ import annotations

import numpy as np

from caltest._visible import shown
from caltest.cox import Interval, Recalibration
from caltest.text.numbers import page, paragraph, table
from caltest.text.vocabulary import TENDS

_ADVICE = (
    "The p-values are those of likelihood ratios, valid only as the number of rows grows; "
    "caltest.test(…, 'cox') has an exact one."
)


def summary(result: Recalibration) -> str:
    """Return the fit in plain language."""
    view = f", seen through the lens {shown(result.lens)}" if result.lens else ""
    rows = [
        ("fitted", f"logit P(y = 1) = intercept + slope · logit p, {result.n_samples} rows{view}"),
        ("intercept", _text(result.intercept, result.intercept_interval)),
        ("slope", _text(result.slope, result.slope_interval)),
        ("at slope 1", f"intercept {_text(result.in_the_large, result.in_the_large_interval)}"),
        ("tests", f"intercept 0 and slope 1: {result.test_both}"),
        ("", f"intercept 0 at slope 1: {result.test_in_the_large}"),
        ("", f"slope 1: {result.test_slope}"),
    ]
    lines = ["Logistic recalibration", *table(rows), ""]
    lines += paragraph(f"A calibrated model has intercept 0 and slope 1. {_reading(result)}")
    lines += paragraph(_ADVICE)
    for warning in result.warnings:
        lines += ["", *paragraph(f"Note: {warning}")]
    return page(lines)


def _reading(result: Recalibration) -> str:
    low, high = result.slope_interval
    if np.isnan(result.slope):
        return "These data do not tell the slope."
    if high < 1.0:
        return f"The slope is below 1: predictions are too extreme, the model is {TENDS['over']}."
    if low > 1.0:
        return f"The slope is above 1: predictions are too timid, the model is {TENDS['under']}."
    return "These data do not tell the slope from 1."


def _text(value: float, interval: Interval) -> str:
    if np.isnan(value):
        return "not determined by these data"
    return f"{value:.4g}  (95% interval {interval[0]:.4g} to {interval[1]:.4g})"
