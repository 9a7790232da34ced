"""From the statistics of the observed labels and of all draws to p-values, alone and adjusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest import _tail
from caltest._arguments import MOST_RESAMPLES
from caltest._quoted import quoted
from caltest._tail import Alternative
from caltest.auditing.draws import Drawn
from caltest.evidence import evidence_of_draws
from caltest.exceptions import InputError
from caltest.multiplicity import StepDown, adjusted, check_correction

Array: TypeAlias = NDArray[np.float64]

WESTFALL_YOUNG = "westfall_young"
_EXPECTED = (0.025, 0.975)


@dataclass(frozen=True, eq=False)
class Answers:
    """What is said of every hypothesis, and of the whole. Arrays have one entry a hypothesis.

    Attributes
    ----------
    values
        Statistics of the observed labels, (H,).
    pvalues, intervals
        Each hypothesis alone, (H,), with the Monte-Carlo intervals.
    adjusted
        Adjusted for all, never below the p-value alone, (H,).
    expected
        Where 95% of the draws lie; None where there is not one null.
    evidence
        −log of the tail, (H,).
    largest
        (B,) the largest evidence of every draw; None where p-values are not jointly drawn.
    """

    values: Array
    pvalues: Array
    intervals: tuple[tuple[float, float], ...]
    adjusted: Array
    expected: tuple[tuple[float, float], ...] | None
    evidence: Array
    largest: Array | None


def checked_correction(correction: str | None, with_tolerance: bool) -> str:
    """Return the name of a correction; None is the default.

    Raises
    ------
    InputError
        If there is no such correction, or it does not go with a tolerance.
    """
    if correction is None:
        return "holm" if with_tolerance else WESTFALL_YOUNG
    if correction == WESTFALL_YOUNG and with_tolerance:
        raise InputError(
            "with a tolerance every p-value has draws of its own, which 'westfall_young' cannot "
            "adjust jointly; give correction='holm', or leave it out."
        )
    if correction != WESTFALL_YOUNG:
        check_correction(correction, WESTFALL_YOUNG)
    return correction


def check_resolution(
    alternatives: Sequence[Alternative], correction: str, alpha: float, n_resamples: int
) -> None:
    """Raise if the smallest p-value that so many draws can give would not be found at level alpha.

    Raises
    ------
    InputError
        With the number of resamples that would do.
    """
    sides = 2 if "two-sided" in alternatives else 1
    count = len(alternatives)

    def enough(draws: int) -> bool:
        smallest = min(1.0, sides / (1 + draws))
        if correction != WESTFALL_YOUNG:
            smallest = float(adjusted([smallest] + [1.0] * (count - 1), correction)[0])
        return smallest <= alpha  # as it will be compared, rounding and all

    if enough(n_resamples):
        return
    low, high = n_resamples, 2 * n_resamples
    while not enough(high):
        low, high = high, 2 * high
        if low > MOST_RESAMPLES:
            raise InputError(
                f"alpha = {alpha:g} is out of reach for {count:,} hypotheses adjusted by "
                f"{quoted(correction)}, with any number of resamples that is possible; look at fewer."
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    looks = f" of {count:,} hypotheses adjusted by {quoted(correction)}" if count > 1 else ""
    raise InputError(
        "{argument} is {found}, with which no p-value{looks} can reach alpha = {alpha}; give at least "
        "{high}.",
        argument="n_resamples",
        found=n_resamples,
        looks=looks,
        alpha=f"{alpha:g}",
        high=f"{high:,}",
    )


def answers(drawn: Drawn, alternatives: Sequence[Alternative], correction: str) -> Answers:
    """Rank the observed labels among the draws, each hypothesis alone and all together."""
    observed, draws = drawn.values[0], drawn.values[1:]
    counts = [
        _tail.count(draws[:, h], float(observed[h]), side, float(drawn.resolutions[h]))
        for h, side in enumerate(alternatives)
    ]
    n_draws = len(draws)
    pvalues = np.array(
        [_tail.pvalue(c, n_draws, side) for c, side in zip(counts, alternatives, strict=True)]
    )
    evidence = evidence_of_draws(drawn.values, alternatives, drawn.resolutions)
    evidence[np.isnan(evidence)] = 0.0  # of all rows alike: what is no number says nothing
    if correction == WESTFALL_YOUNG:
        test = StepDown.of(evidence[0])
        found = test.pvalues(test.count(evidence[1:]), n_draws)
    else:
        found = adjusted(pvalues, correction)
    return Answers(
        values=observed,
        pvalues=pvalues,
        intervals=tuple(
            _tail.interval(c, n_draws, side) for c, side in zip(counts, alternatives, strict=True)
        ),
        adjusted=np.maximum(found, pvalues),
        expected=tuple(_expected(draws[:, h]) for h in range(len(observed))),
        evidence=evidence[0],
        largest=evidence[1:].max(axis=1) + 0.0,
    )


def _expected(draws: Array) -> tuple[float, float]:
    numbers = draws[~np.isnan(draws)]
    if len(numbers) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(numbers, _EXPECTED, method="inverted_cdf")
    return float(low) + 0.0, float(high) + 0.0  # −0 is 0
