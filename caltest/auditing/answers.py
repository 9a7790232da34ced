"""From a plan to p-values: one set of draws for every hypothesis, alone and adjusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import MOST_RESAMPLES
from caltest._memory import check_fits
from caltest._parallel import Workers
from caltest._sampling import child_seed
from caltest._visible import quoted
from caltest.auditing.plan import Hypothesis, Look, Scope, Source
from caltest.exceptions import InputError
from caltest.forms import LabelFunction
from caltest.lenses import Reducer
from caltest.nulls import MonteCarlo
from caltest.pvalues import (
    Alternative,
    StepDown,
    adjusted,
    check_correction,
    count,
    evidence_of_draws,
    interval,
    pvalue,
)
from caltest.resampling import Column, LabelDraws, LabelView, Reduce, table
from caltest.tolerance import sided_answer

# ------------------------------------------------------------------ seeds


def key_of(*names: str) -> tuple[int, int, int, int]:
    """Return whole numbers that stand for some names, the same on every machine.

    Examples
    --------
    >>> key_of("bounds", "top_label") == key_of("bounds", "top_label")
    True
    >>> key_of("ab", "c") == key_of("a", "bc")
    False
    """
    words = [int.from_bytes(sha256(repr(names).encode()).digest()[4 * k : 4 * k + 4]) for k in range(4)]
    return words[0], words[1], words[2], words[3]


# ------------------------------------------------------------------ draws
#
# Labels are drawn from the full predictions, and every lens and group sees the same draws. Of the
# labels one block of draws is held at a time and worker, of the statistics all: (1 + B, H) numbers.


Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]

# Predicted numbers of the looks of a batch; forms hold about as many, in 8 bytes each, twice.
_HELD = 2**24
_TABLES = 4.0  # tables of draws and hypotheses that are held at a time, with their ranks


@dataclass(frozen=True, eq=False)
class Drawn:
    """The statistics of the observed labels and of all draws.

    Attributes
    ----------
    values
        (1 + B, H): the first row of the observed labels.
    resolutions
        (H,) how far two evaluations of one value may differ by rounding.
    """

    values: Array
    resolutions: Array


def draw_all(
    source: Source,
    labels: NDArray[np.intp],
    hypotheses: Sequence[Hypothesis],
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Drawn:
    """Evaluate every hypothesis's statistic on the observed labels and on the same draws.

    Parameters
    ----------
    source
        The full predictions.
    labels
        The observed labels, (n,).
    hypotheses
        H hypotheses, those of a look side by side.
    n_resamples
        Label draws, B.
    seed
        Of the draws: those of :func:`caltest.test` with this seed.
    workers
        Who does the work.
    """
    hypotheses = [replace(each, statistic=each.statistic.shuffled(seed)) for each in hypotheses]
    check_fits(
        _TABLES * 8.0 * n_resamples * len(hypotheses),
        f"an audit of {len(hypotheses)} hypotheses with {n_resamples} draws each",
        "take fewer draws, groups or statistics",
    )
    drawn = Drawn(np.empty((1 + n_resamples, len(hypotheses))), np.zeros(len(hypotheses)))
    draws = LabelDraws(source.predictions.sampler(seed), labels, n_resamples)
    batches = list(_batches(source, hypotheses))
    if len(batches) > 1:
        draws = draws.held(workers)
    for batch in batches:
        columns = _columns(source, hypotheses, batch)
        values = table(columns, draws, workers)
        drawn.values[:, batch] = values
        drawn.resolutions[batch] = [form.resolution for _, form in columns]
        for (view, form), value in zip(columns, values[0], strict=True):
            if isinstance(form, LabelFunction):
                form.check_unmoved(view.labels(labels[None])[0], float(value))
    return drawn


def _batches(source: Source, hypotheses: Sequence[Hypothesis]) -> Iterator[list[int]]:
    """Yield places of hypotheses whose forms are held at once; those of a look stay together."""
    batch: list[int] = []
    held, last = 0, None
    for place, hypothesis in enumerate(hypotheses):
        look = hypothesis.look
        size = look.n_rows * (2 if look.event else source.seen(look.scope).n_classes)
        if batch and look is not last and held + size > _HELD:
            yield batch
            batch, held = [], 0
        batch.append(place)
        held, last = held + size, look
    yield batch


def _columns(source: Source, hypotheses: Sequence[Hypothesis], batch: Sequence[int]) -> list[Column]:
    """Return the columns of a batch; those of a look share its view, those of a lens its labels."""
    reduced: dict[Scope, Reduce | None] = {}
    columns: list[Column] = []
    last: Look | None = None
    for place in batch:
        look = hypotheses[place].look
        if look is not last:
            last = look
            if look.scope not in reduced:
                reducer = source.reducer(look.scope)
                reduced[look.scope] = None if reducer is None else partial(_of_all, reducer)
            predictions = source.at(look)
            share = float(predictions.probs[:, 1].mean())
            view = LabelView(look.rows, reduced[look.scope], look.scope.column, share)
        columns.append(Column(view, hypotheses[place].form(predictions)))
    return columns


def _of_all(reducer: Reducer, labels: Labels, rows: slice) -> Labels:
    return reducer(labels)


# ------------------------------------------------------------------ joint


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
        count(draws[:, h], float(observed[h]), side, float(drawn.resolutions[h]))
        for h, side in enumerate(alternatives)
    ]
    n_draws = len(draws)
    pvalues = np.array([pvalue(c, n_draws, side) for c, side in zip(counts, alternatives, strict=True)])
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
            interval(c, n_draws, side) for c, side in zip(counts, alternatives, strict=True)
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


# ------------------------------------------------------------------ tolerated


def tolerated(
    source: Source,
    labels: NDArray[np.intp],
    hypotheses: Sequence[Hypothesis],
    tolerance: float,
    correction: str,
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Answers:
    """Test every hypothesis on both sides; its seed hangs on what it is, not on the others."""
    found = []
    for hypothesis in hypotheses:
        look = hypothesis.look
        found.append(
            sided_answer(
                hypothesis.statistic,
                MonteCarlo(),
                source.sample(look, labels),
                tolerance,
                "two-sided",
                n_resamples,
                child_seed(seed, *key_of("tolerance", *look.key, hypothesis.statistic.name)),
                workers,
            )
        )
    pvalues = np.array([each.answer.pvalue for each in found])
    return Answers(
        values=np.array([each.value for each in found]),
        pvalues=pvalues,
        intervals=tuple(each.answer.pvalue_interval or (0.0, 1.0) for each in found),
        adjusted=adjusted(pvalues, correction),
        expected=None,
        evidence=-np.log(pvalues),
        largest=None,
    )
