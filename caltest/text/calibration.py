"""A test in words: what was tested, found, and may be concluded."""

from __future__ import annotations

from typing import cast

from caltest._visible import shown
from caltest.nulls import GUARANTEES, Part
from caltest.pvalues import Alternative
from caltest.results import CalibrationResult
from caltest.text.numbers import page, paragraph, short, table

_UNRESOLVED = 1e-9  # an approximate tail is not printed beyond this

_COUNTS_AGAINST: dict[Alternative, str] = {
    "greater": "at least this large",
    "less": "at most this large",
    "two-sided": "at least this extreme, on either side,",
}


def summary(result: CalibrationResult) -> str:
    """Return the result in plain language: what was tested, found, and may be concluded."""
    view = f", seen through the lens {shown(result.lens)}" if result.lens else ""
    tested = f"{result.n_samples} predictions of {result.n_classes} classes{view}"
    if result.n_classes is None:
        tested = f"{result.n_samples} predicted distributions of numbers"
    rows = [
        ("tested", tested),
        ("statistic", f"{shown(result.name)} = {result.statistic:.6g}  ({result.measures})"),
    ]
    if result.parameters:
        rows.append(("with", ", ".join(f"{k} {short(v)}" for k, v in result.parameters.items())))
    rows.append(("null", f"{result.null}, {result.guarantee}: {GUARANTEES[result.guarantee]}"))
    rows.append(("p-value", _pvalue(result)))
    rows += [("" if number else "parts", _part(part)) for number, part in enumerate(result.parts)]
    lines = ["Calibration test", *table(rows), ""]
    lines += paragraph(_reading(result))
    for warning in result.warnings:
        lines += ["", *paragraph(f"Note: {warning}")]
    return page(lines)


def _reading(result: CalibrationResult) -> str:
    if result.claim is not None:
        return _reading_of_claim(result, result.claim)
    claim, truth = "the probabilities mean what they say", "labels"
    if result.n_classes is None:
        claim, truth = "outcomes are draws from the predicted distributions", "outcomes"
    return (
        f"The claim tested (H0): {claim}. If that were so, a value "
        f"{_COUNTS_AGAINST[cast('Alternative', result.alternative)]} would occur with probability "
        f"{_probability(result)} (rows independent, {truth} not used "
        "to fit the model). If p is at or below the level chosen beforehand, the model is "
        "miscalibrated, at that risk of a false alarm; p does not say by how much. "
        "If p is above, the data do not show it, which is no proof of calibration: "
        "an error may be too small for this many rows, or of a kind this statistic does not see."
    )


def _reading_of_claim(result: CalibrationResult, claim: str) -> str:
    more = "by more than that" if result.parameters.get("tolerance") else "that way"
    if result.alternative == "two-sided" and not result.parameters.get("tolerance"):
        more = "somewhere"
    return (
        f"The claim tested (H0): {claim}. If that were so, evidence against it as strong as here "
        f"would occur with probability {_probability(result)} at most (rows "
        "independent, labels not used to fit the model). If p is at or below the level chosen "
        f"beforehand, the model is wrong {more}, at that risk of a false alarm. If p is above, the "
        "data do not show it, which is no proof of the claim."
    )


def _probability(result: CalibrationResult) -> str:
    if result.guarantee == "approximate" and result.pvalue < _UNRESOLVED:
        return f"below {_UNRESOLVED:g}"
    return f"at most {result.pvalue:.3g}" if result.guarantee == "bound" else f"{result.pvalue:.3g}"


def _part(part: Part) -> str:
    name = shown(part.name)
    return f"{name} = {part.value:.4g}: p {part.pvalue:.4g} alone, {part.adjusted:.4g} adjusted"


def _pvalue(result: CalibrationResult) -> str:
    if result.guarantee == "approximate" and result.pvalue < _UNRESOLVED:
        return f"below {_UNRESOLVED:g}"
    if result.pvalue_interval is None or result.n_resamples is None:
        return f"{result.pvalue:.4g}"
    low, high = result.pvalue_interval
    return (
        f"{result.pvalue:.4g}  ({result.n_resamples} resamples; with more of them "
        f"between {low:.2g} and {high:.2g}, 95% interval)"
    )
