"""Diagnosis of inputs: mistaken predictions, and probabilities of 0.

If several mistakes fit, the most specific one is reported. A wrong cause is worse than none: a cause
for probabilities of 0 is given only if hardly anything else looks like it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._sums import Mask, Places
from caltest.data.containers import NamedArray
from caltest.exceptions import Argument, InputError, OfAll, Phrase, Row
from caltest.laws.classes import Array

_LOOKS = {
    "log-probabilities": "probs looks like log-probabilities: no entry is positive, and the "
    "exponentials of each row sum to 1; give {exponentials}.",
    "logarithms": "probs looks like log-probabilities: {entry}, outside [0, 1], none positive; give "
    "{exponentials}, or {logits} if these are logits.",
    "no probability": "{column} of probs seems to be no probability, since the other columns of each "
    "row sum to 1; {leave}.",
    "other columns": "probs has columns that are no probabilities, beside {column}: {entry}, outside "
    "[0, 1]; {leave}, or of survival curves give the column of times too.",
    "numbers": "probs looks like {what}: {entry}, and the outcome there is {outcome}; numbers alone "
    "state no probability, so {say} point forecasts ({points}), intervals ({sets}) or "
    "distributions ({laws}).",
    "sets": "probs looks like prediction sets: all entries are 0 or 1, and {row} has {found} ones; "
    "give {sets}, or probabilities of the classes.",
    "pairs": "probs looks like pairs (p0, p1) of Venn-ABERS: p0 is never above p1, and {row} sums to "
    "{found}; give p1/(1 - p0 + p1), as P(class 1).",
    "curves": "probs looks like cumulative probabilities, which rise or fall along every row; give "
    "differences along rows, for classes, {survival}, for chances of no event by each time, or the "
    "softmax, for scores.",
    "scores": "probs looks like odds or distances: {entry}, outside [0, 1], and none is negative; give "
    "p/(1 + p) if these are odds, {logits} if logits, or fit probabilities to them first.",
    "percentages": "probs looks like percentages: its rows sum to about 100; divide by 100.",
    "percentage": "probs looks like percentages: {entry}, outside [0, 1]; divide by 100.",
    "counts": "probs looks like counts: whole numbers, {row} with the sum {found}; divide each row by "
    "its sum.",
    "logits": "probs looks like logits: {entry}, outside [0, 1], and the rows do not sum to 1; give "
    "{logits}, and their softmax is taken, or, if numbers are predicted, distributions ({laws}).",
    "logit": "probs looks like logits: {entry}, outside [0, 1]; give {logits}, and the logistic "
    "function is taken.",
    "labels": "probs looks like class labels: {entry}; give probabilities first and labels second, "
    "P(class 1) or one column of probabilities for every class.",
    "not finite": "probs has entries that are not finite{share}: {entry}; find where the model's "
    "numbers break, or leave these rows out of probs and labels alike.",
    "outside": "probs has entries outside [0, 1]{share}: {entry}; correct these rows, or leave them "
    "out of probs and labels alike.",
    "sums": "probs has rows that do not sum to 1{count}{most}: {row} sums to {found}; {do}.",
    "no multiples": "probs has values that are not multiples of {step}{share}: {entry}; give "
    "as rounding the step in which they were stated, or leave it out.",
    "no steps": "probs has rows that no probabilities round to in steps of {step}{count}: "
    "{row} sums to {found}; give one column for every class, or correct these rows.",
}
#: Words for what to do, in Python and in a shell.
WORDS: dict[str, Any] = {
    "logits": Argument("logits", True),
    "exponentials": Argument("np.exp(probs)", shell="their exponentials"),
    "leave": Argument("leave that column out", shell="use --group for it, or --columns for the others"),
    "points": Argument("predictive.Point(values, 'mean')", shell="--point COL"),
    "laws": Argument("predictive.Normal, Quantiles, Members", shell="--mean, --quantiles, --members"),
    "sets": Argument("predictive.Sets", shell="--sets, or --lower and --upper"),
    "survival": Argument("predictive.Survival", shell="--survival-at"),
}


@dataclass(frozen=True, eq=False)
class Suspect:
    """Predictions, (n,), (n, 1) or (n, m), farther from the simplex than the tolerance; and labels."""

    table: NamedArray
    tolerance: float
    labels: NDArray[Any] | None = None

    @cached_property
    def values(self) -> Array:
        """The entries in float64, (n, m), or (n, 1) for P(class 1)."""
        values = self.table.values.astype(np.float64)
        return values[:, None] if values.ndim == 1 else values

    @cached_property
    def sums(self) -> Array:
        """Row sums, (n,)."""
        return np.asarray(self.values.sum(axis=1))

    @property
    def outside(self) -> Mask:
        """Mask of entries outside [0, 1], (n, m)."""
        return (self.values < -self.tolerance) | (self.values > 1 + self.tolerance)

    def facts(self, wrong: Mask) -> dict[str, Any]:
        """Return facts on wrong entries (n, m): how many rows have some, the first, and its row."""
        rows = np.asarray(wrong.any(axis=1))
        row, column = map(int, np.argwhere(wrong)[0])
        named = "" if wrong.shape[1] == 1 else f", {self.table.column(column)}"
        what = {"row": Row(row), "column": named, "found": f"{self.values[row, column]:.6g}"}
        of = f"{rows.sum()} of {len(rows)}"
        return {
            "entry": Phrase("{row}{column} is {found}", what),
            "share": OfAll(f", in {of} rows"),
            "count": OfAll(f", {of}"),
            "row": row,
            "found": f"{self.sums[row]:.9g}",
            "column": self.table.column(int(np.argmin(wrong.any(axis=0)))),  # one that is right
        }

    @property
    def are_numbers(self) -> bool:
        """Whether outcomes are not classes, so that the predictions are probably numbers."""
        p, y, m = self.values, self.labels, self.values.shape[1]
        if y is None or y.dtype.kind not in "iuf" or not np.isfinite(p).all():
            return False
        off = self.outside.any(axis=1) | ((np.abs(self.sums - 1) > 1e-2) & (m > 1))
        known = np.unique(y[np.isfinite(y) & (y != -1)])  # -1 marks a missing label
        whole = (known == np.round(known)).all()
        few = len(known) <= 2 * m + 2 or np.median(p) > known[-1]
        # Three or more classes have a column each; ratings are forecast by one number, between them.
        few &= m > 1 or len(known) < 3 or np.mean(abs(p - p.clip(*known[[0, -1]])) > 0.5) > 0.05
        if m == 1 and np.count_nonzero(known % 1) > 0.5 * len(known):  # measured
            return bool(off.any())
        least = 0.5 if whole and m > 1 else 0.1
        return bool(off.mean() >= least and not (whole and (few or np.isin(p, y).all())))

    @property
    def are_sets(self) -> bool:
        """Whether entries tell which classes a set holds."""
        return bool(np.isin(self.values, (0, 1)).all() and np.mean(self.sums > 1) > 0.05)

    @property
    def are_scores(self) -> bool:
        """Whether non-negative numbers fit the labels better as odds than as percentages."""
        p, y = self.values, self.labels
        if y is None or y.dtype.kind not in "biuf" or len(y) < 20 or not np.isin(y, (0, 1)).all():
            return False
        as_percent, as_odds = (abs(each.mean() - y.mean()) for each in (p / 100, p / (1 + p)))
        return bool(np.median(p) < 10 and as_odds < as_percent)


# ------------------------------------------------------------------ rounded

_FEWEST_DECIMALS, _MOST_DECIMALS = 2, 5  # one explains anything; with six, nothing needs it
_MOST_OFF = 0.02
_ON_GRID = 1e-9  # tolerance for multiples of the step
_ON_GRID_COARSE = 1e-7  # tolerance for float32


def looks_rounded(suspect: Suspect) -> bool:
    """Return whether rounding explains row sums other than 1, and no class of importance is missing.

    With d decimals an entry is off by h = 10⁻ᵈ/2 at most, a zero only downwards. So a row of m entries
    may sum to less than 1 by at most mh, or to more by at most h per non-zero entry. A missing class
    makes sums too small on average, while rounding errors cancel: the mean may be below 1 by half of
    what zeros could hide, plus noise.
    """
    decimals = _decimals(suspect)
    if not _FEWEST_DECIMALS <= decimals <= _MOST_DECIMALS:
        return False
    half, (rows, width) = 0.5 * 10.0**-decimals, suspect.values.shape
    off, zeros = suspect.sums - 1, (suspect.values == 0).sum(axis=1)
    allowed = np.where(off > 0, width - zeros, width) * half
    if np.any(np.abs(off) > np.minimum(allowed, _MOST_OFF) + _multiples_within(suspect)):
        return False
    # Six standard errors, as files are checked in a thousand blocks; equal rows have equal errors.
    noise = 6.0 * half * np.sqrt((width - zeros.mean()) / 3 / rows) + 0.05 * width * half
    return bool(-noise - 0.5 * half * zeros.mean() <= off.mean() <= noise)


def _decimals(suspect: Suspect) -> int:
    """Return the largest number of decimals of all entries; 0 if it is more than this searches."""
    values, most = suspect.values, _multiples_within(suspect)
    return next((d for d in range(1, 8) if np.abs(values - np.round(values, d)).max() < most), 0)


def _multiples_within(suspect: Suspect) -> float:
    return 1e-6 if suspect.table.coarse else 1e-9


def in_steps(suspect: Suspect, step: float) -> Array:
    """Return the values (n, m), or (n, 1), as exact multiples of a step; 1 is a multiple of it too.

    A row may then sum to 1 within half a step per entry, as an entry of 0 was only rounded down.

    Raises
    ------
    InputError
        If a value is not a multiple, or a row has a sum that no rounded probabilities have.
    """
    values, per_one = suspect.values, round(1.0 / step)
    counts = np.round(values * per_one)
    stated = np.asarray(counts / per_one)
    off = np.abs(values - stated) > (_ON_GRID_COARSE if suspect.table.coarse else _ON_GRID)
    if off.any():
        raise InputError(_LOOKS["no multiples"], step=f"{step:.6g}", **suspect.facts(off))
    width = stated.shape[1]
    if width == 1:
        return stated
    exact = Suspect(NamedArray(stated), 0.0)
    least, most = 1.0 - 0.5 * step * width, 1.0 + 0.5 * step * (counts > 0).sum(axis=1)
    wrong = (exact.sums < max(least, 0.5 * step) - _ON_GRID) | (exact.sums > most + _ON_GRID)
    if wrong.any():
        raise InputError(_LOOKS["no steps"], step=f"{step:.6g}", **exact.facts(wrong[:, None]))
    return stated


# ------------------------------------------------------------------ wrong


def probs_error(suspect: Suspect) -> InputError:
    """Return the error for predictions off the simplex, with what they look like."""
    with np.errstate(over="ignore", invalid="ignore"):
        kind, wrong = next((kind, wrong) for kind, looks, wrong in _looks(suspect) if looks)
    facts: dict[str, Any] = WORDS | suspect.facts(wrong)
    if kind == "numbers" and suspect.labels is not None:
        alone = wrong.shape[1] == 1
        facts["what"] = "point forecasts" if alone else "predictions of numbers"
        facts["say"] = "give them as" if alone else "say which they are:"
        facts["outcome"] = f"{suspect.labels[0]:.6g}"
    elif kind == "sums":
        facts["most"] = OfAll(f", off by up to {np.abs(suspect.sums - 1).max():.2g}")
        facts["do"] = _advice(suspect)
    error, y = InputError(_LOOKS[kind], **facts), suspect.labels
    told = kind in ("numbers", "labels", "not finite") or wrong.shape[1] > 1
    if told or y is None or y.dtype.kind not in "iuf" or np.isin(y[np.isfinite(y)], (-1, 0, 1)).all():
        return error
    return error.explained(Phrase("if outcomes are numbers, give point forecasts ({points})", WORDS))


def _looks(suspect: Suspect) -> Iterator[tuple[str, Any, Mask]]:
    """Yield the names of possible mistakes, whether each fits, and its entries; most specific first."""
    values, sums, outside, near = suspect.values, suspect.sums, suspect.outside, suspect.tolerance
    low, high, nan, width = values.min(), values.max(), ~np.isfinite(values), values.shape[1]
    every, off, whole = np.ones_like(nan), np.abs(sums - 1), (values == np.round(values)).all()
    yield "numbers", suspect.are_numbers, every
    yield "sets", suspect.are_sets, every & (sums > 1)[:, None]
    logarithms = high <= near and np.abs(np.exp(values).sum(axis=1) - 1).max() <= 1e-2
    yield "log-probabilities", logarithms and width > 1, every
    yield "not finite", nan.any(), nan
    if width == 1:
        seen = np.unique(values)
        counted = len(seen) > 2 and np.array_equal(seen, np.arange(seen[0], seen[0] + len(seen)))
        yield "outside", outside.mean() < 0.1, outside
        yield "labels", whole and (counted or np.abs(values).max() < 10), outside
        yield "scores", low >= 0 and (high > 100 or suspect.are_scores), outside
        yield "percentage", low >= 0, outside
        yield "logarithms", high <= 0, outside
        yield "logit", True, outside
    # A column that is not a probability equals the excess of the row sums over 1, in every row.
    excess = (sums - 1)[:, None]
    extra = (np.abs(values - excess).max(axis=0) <= 1e-3) & (width >= 3)
    others_fit = np.abs(excess).max() >= 0.05 and not outside[:, ~extra].any()
    yield "no probability", extra.any() and others_fit, every & (np.arange(width) != extra.argmax())
    yield "percentages", low >= 0 and np.abs(sums - 100).max() <= 1, every
    yield "counts", low >= 0 and sums.min() >= 1 and high > 1 and whole, every
    # A few bad rows are just bad rows; logits are off in most rows, and leave [0, 1] in every column.
    most = outside.any(axis=1).mean() >= 0.5 and np.mean(off > 1e-2) >= 0.5
    yield "other columns", most and len(values) >= 20 and not outside.any(axis=0).all(), outside
    yield "scores", most and low >= 0, outside
    yield "logits", most, outside
    yield "outside", outside.any(), outside
    beyond, steps = every & (off > near)[:, None], np.diff(values)
    one_way = width > 2 and ((steps >= 0).all() or (steps <= 0).all())
    one_way |= width == 2 and steps.min() >= 0 and np.median(steps) < 0.2
    kind = "pairs" if width == 2 else "curves"  # with a class missing, rows sum to less
    yield kind, one_way and len(values) >= 10 and sums.max() > 1.05, beyond
    yield "sums", True, beyond


def _advice(suspect: Suspect) -> str:
    """Return advice on why rows may not sum to 1."""
    values, columns, tolerance = suspect.values, suspect.values.shape[1], suspect.tolerance
    off, decimals = np.abs(suspect.sums - 1), _decimals(suspect)
    if len(values) == columns and np.abs(values.sum(axis=0) - 1).max() <= tolerance:
        return f"its columns do, so give {Argument('probs.T', shell='its transpose')}"
    for step in (10.0**-decimals if decimals else None, step_of(values)):
        if step is None or off.max() > columns * 0.5 * step + 1e-9:
            continue
        if decimals > 1 and off.max() <= _MOST_OFF:
            return "a class may be missing, so give one column for every class, with more decimals"
        do = f"save more digits, divide each row by its sum, or {ask_about_one(step, columns)}"
        return f"they look rounded to multiples of {step:.6g}, so {do}"
    if off.max() <= 0.02:
        few = "values of few digits, as in bfloat16, sum so"
        return f"{few}: compute the softmax in float32, or divide each row by its sum"
    if np.mean(off > tolerance) < 0.5:
        return "correct these rows, or leave them out of probs and labels alike"
    if suspect.sums.max() < 1 + tolerance:
        return "a class may be missing, so give one column for every class"
    return (
        "they look like one sigmoid score a class, or columns of several models: give softmax "
        f"probabilities, or one column at a time{Argument('', shell=', with --columns')}, as P(class 1)"
    )


# ------------------------------------------------------------------ zeros

_MOST_VOTES = 1000
_FINEST = 1e-5  # smallest step recognised as rounding


def advice_on_zeros(rows: Any) -> str:
    """Return advice on probabilities of 0, if all are 0 or 1 or multiples of a step; else ""."""
    probs, rounded = rows.probs, rows.sums_off > 0.9 * _FINEST
    some = probs[:: -(-probs.size // 1_000_000)]
    if rounded:  # rows that did sum to 1 still hold the stated values
        some = some[(some < 1.0).all(axis=1)]
        grids = (np.abs(some - np.round(some, d)).max(axis=1) < _ON_GRID_COARSE for d in range(1, 6))
        *coarser, finest = (some[on_grid] for on_grid in grids)
        enough = len(finest) >= 0.05 * len(some)
        some = next((x for x in coarser if len(x) >= 0.9 * len(finest)), finest)[: len(some) * enough]
    if min(len(some), len(probs)) < 20:  # too few to be distinctive
        return ""
    if ((some == 0.0) | (some == 1.0)).all():
        found = "Every probability is 0 or 1, as of class decisions or of trees with pure leaves"
        return f"{found}: give probabilities (predict_proba), of leaves of more rows."
    if (step := step_of(some)) is None:
        return ""
    per_one = round(1.0 / step)
    save = "save more digits"
    if rows.clusters is None:  # rounding is not tested for rows in clusters
        save += f", or {ask_about_one(step, rows.n_classes)}"
    if rounded or per_one > _MOST_VOTES:
        return f"Zeros are rounded, to multiples of {step:.6g}: {save}."
    # One more vote, shared in proportion to the classes: one for every class would outvote few real
    # ones.
    return (
        f"Every probability is a multiple of {step:.6g}. If they are rounded, {save}. If they are "
        f"shares of {per_one} votes, give (votes + share)/({per_one} + 1), the share of the class "
        "among the training rows, and recalibrate these."
    )


def step_of(probs: Array) -> float | None:
    """Return the largest step that all probabilities are multiples of, unless this may be chance."""
    values = np.unique(probs[(probs > 0.0) & (probs < 1.0)])
    few = values[:: max(1, len(values) // 100)]
    for per_one in (*range(2, _MOST_VOTES + 1), 10_000, 100_000) if len(values) else ():
        off = (np.abs(x - np.round(x * per_one) / per_one).max() for x in (few, values))
        if all(most < _ON_GRID_COARSE for most in off):
            # Equally many shares of blocks of rows have no small common denominator.
            several = 5 if 100 % per_one == 0 else 30
            return 1.0 / per_one if len(values) >= max(3, min(several, (per_one - 1) // 2)) else None
    return None


def ask_about_one(step: float, n_classes: int) -> str:
    """Return advice on how to test one probability that was rounded to a step."""
    lens = "lens='top_label', " * (n_classes > 2)
    typed = f"{'--lens top_label ' * (n_classes > 2)}--rounding {step:.6g}"
    call = Argument(f"caltest.test(..., {lens}rounding={step:.6g})", shell=f"caltest test {typed}")
    return f"ask about one probability: {call}"


def impossible_labels(
    view: Any, label: int | None = None, what: str = "the observed label"
) -> tuple[str, ...]:
    """Return a note if a label with predicted probability 0 was observed: no test is needed then.

    A second note tells where probabilities of 0 come from and what to do, if that is clear. ``view`` is
    a sample of classes or of numbers, whose rows with ``label``, if any, are checked; ``what`` names
    its labels.
    """
    rows, broken = view.rows, view.rows.impossible(view.labels)
    if label is not None:
        broken = broken[view.labels[broken] == label]
    if rows.n_classes is None:
        return impossible_rows(broken, rows.n_samples, "the outcome")
    advice = advice_on_zeros(rows) if len(broken) else ""
    places = broken if rows.places is None else rows.places[broken]
    return (*impossible_rows(places, rows.n_samples, what), *([advice] if advice else []))


def impossible_rows(broken: Places, n: int, what: str = "the observed label") -> tuple[str, ...]:
    """Return a note on rows whose label had probability 0, if there are any among ``n``."""
    if len(broken) == 0:
        return ()
    named = ", ".join(map(str, broken[:5])) + (", …" if len(broken) > 5 else "")
    found = f"In {len(broken)} of {n} rows (counting from 0: {named}) {what} had probability 0"
    return (f"{found}: that alone proves the model miscalibrated, whatever p is.",)
