"""What an input looks like: wrong predictions, and probabilities of 0.

Of several mistakes the most telling is said. A wrong cause is worse than none: why probabilities are 0
is said only where hardly anything else looks like it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._numbers import counted
from caltest.data.containers import Table
from caltest.exceptions import Argument, InputError, Phrase, Row

Array: TypeAlias = NDArray[np.float64]

_LOOKS = {
    "log-probabilities": "probs looks like log-probabilities: no entry is positive, and the "
    "exponentials of each row sum to 1; give np.exp(probs).",
    "logarithms": "probs looks like log-probabilities: {entry}, outside [0, 1], none positive; give "
    "np.exp(probs), or {logits} if these are logits.",
    "no probability": "{column} of probs seems to be no probability, since the other columns of each "
    "row sum to 1; leave that column out.",
    "other columns": "probs has columns that are no probabilities: {entry}, outside [0, 1], while "
    "{column} lies inside; give the columns of probabilities alone, or of survival curves the column "
    "of times too (predictive.Survival, --time).",
    "percentages": "probs looks like percentages: its rows sum to about 100; divide by 100.",
    "percentage": "probs looks like percentages: {entry}, outside [0, 1]; divide by 100.",
    "counts": "probs looks like counts: whole numbers, row 0 with the sum {found}; divide each row by "
    "its sum.",
    "logits": "probs looks like logits: {entry}, outside [0, 1], and the rows do not sum to 1; give "
    "{logits}, and their softmax is taken, or say that these are members of an ensemble "
    "(predictive.Members, --members).",
    "logit": "probs looks like logits: {entry}, outside [0, 1]; give {logits}, and the logistic "
    "function is taken.",
    "labels": "probs looks like class labels: {entry}; give probabilities first and labels second, "
    "P(class 1) or one column of probabilities for every class.",
    "not finite": "probs has entries that are not finite, in {wrong} of {rows} rows: {entry}; find "
    "where the model's numbers break, or leave these rows out of probs and labels alike.",
    "outside": "probs has entries outside [0, 1], in {wrong} of {rows} rows: {entry}; correct these "
    "rows, or leave them out of probs and labels alike.",
    "sums": "probs has rows that do not sum to 1, {wrong} of {rows}, off by up to {most}: {row} sums "
    "to {found}; {do}.",
    "no multiples": "probs has values that are not multiples of {step}, in {wrong} of {rows} rows: "
    "{entry}; give as rounding the step in which they were stated, or leave it out.",
    "no steps": "probs has rows that no probabilities round to in steps of {step}, {wrong} of {rows}: "
    "{row} sums to {found}; give one column for every class, or correct these rows.",
}


@dataclass(frozen=True, eq=False)
class Suspect:
    """Predictions, (n,), (n, 1) or (n, m), farther from the simplex than the tolerance."""

    table: Table
    tolerance: float

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
    def outside(self) -> NDArray[np.bool_]:
        """Which entries lie outside [0, 1], (n, m)."""
        return (self.values < -self.tolerance) | (self.values > 1 + self.tolerance)

    def entry(self, where: NDArray[np.bool_]) -> Phrase:
        """Name the first entry, row by row, of those in the mask ``where``."""
        row, column = (int(index) for index in np.argwhere(where)[0])
        named = "" if self.values.shape[1] == 1 else f", {self.table.column(column)}"
        found = f"{self.values[row, column]:.6g}"
        return Phrase("{row}{column} is {found}", {"row": Row(row), "column": named, "found": found})

    def entries(self, wrong: NDArray[np.bool_]) -> dict[str, Any]:
        """Return facts on wrong entries: in how many rows they are, and the first."""
        in_rows = int(wrong.any(axis=1).sum())
        return {"wrong": in_rows, "rows": len(wrong), "entry": self.entry(wrong)}

    def rows(self, wrong: NDArray[np.bool_], digits: int) -> dict[str, Any]:
        """Return facts on rows with a wrong sum: how many there are, and the first."""
        row = int(np.argmax(wrong))
        found = f"{self.sums[row]:.{digits}g}"
        return {"wrong": int(wrong.sum()), "rows": len(wrong), "row": row, "found": found}


# ------------------------------------------------------------------ rounded

_FEWEST_DECIMALS, _MOST_DECIMALS = 2, 5  # with one anything is explained; with six nothing need be
_MOST_OFF = 0.02
_NOISE = 6.0  # standard errors: files of a thousand blocks are checked block by block
_SLACK = 0.05  # of the bound, as equal rows are off by equal amounts
_ON_GRID = 1e-9  # how far from a multiple of the step a multiple may be
_ON_GRID_COARSE = 1e-7  # of float32


def looks_rounded(suspect: Suspect) -> bool:
    """Whether rounding explains why rows do not sum to 1, and no class can be missing that matters.

    With d decimals an entry is off by h = 10⁻ᵈ/2 at most, a zero only downwards. So no row of m
    entries may be below 1 by more than mh, or above by more than h an entry that is not 0. A missing
    class makes sums too small on average, where errors of rounding cancel: the mean may be below 1 by
    half of what zeros could hide, and by noise.
    """
    decimals = _decimals(suspect)
    if not _FEWEST_DECIMALS <= decimals <= _MOST_DECIMALS:
        return False
    half, (rows, width) = 0.5 * 10.0**-decimals, suspect.values.shape
    off, zeros = suspect.sums - 1, (suspect.values == 0).sum(axis=1)
    allowed = np.where(off > 0, width - zeros, width) * half
    if np.any(np.abs(off) > np.minimum(allowed, _MOST_OFF) + _multiples_within(suspect)):
        return False
    noise = _NOISE * half * np.sqrt((width - zeros.mean()) / 3 / rows) + _SLACK * width * half
    return bool(-noise - 0.5 * half * zeros.mean() <= off.mean() <= noise)


def _decimals(suspect: Suspect) -> int:
    """Return how many decimals all entries have at most; 0 if more than are looked for."""
    values, most = suspect.values, _multiples_within(suspect)
    return next((d for d in range(1, 8) if np.abs(values - np.round(values, d)).max() < most), 0)


def _multiples_within(suspect: Suspect) -> float:
    return 1e-6 if suspect.table.coarse else 1e-9


def in_steps(suspect: Suspect, step: float) -> Array:
    """Return the values (n, m), or (n, 1), as exact multiples of a step of which 1 is a multiple.

    A row may then sum to 1 within half a step an entry, where an entry of 0 was rounded down only.

    Raises
    ------
    InputError
        If a value is no multiple, or a row sums to what no probabilities do that round to it.
    """
    values, per_one = suspect.values, round(1.0 / step)
    counts = np.round(values * per_one)
    stated = np.asarray(counts / per_one)
    off = np.abs(values - stated) > (_ON_GRID_COARSE if suspect.table.coarse else _ON_GRID)
    if off.any():
        raise InputError(_LOOKS["no multiples"], step=f"{step:.6g}", **suspect.entries(off))
    width = stated.shape[1]
    if width == 1:
        return stated
    exact = Suspect(Table(stated), 0.0)
    least, most = 1.0 - 0.5 * step * width, 1.0 + 0.5 * step * (counts > 0).sum(axis=1)
    wrong = (exact.sums < max(least, 0.5 * step) - _ON_GRID) | (exact.sums > most + _ON_GRID)
    if wrong.any():
        raise InputError(_LOOKS["no steps"], step=f"{step:.6g}", **exact.rows(wrong, 6))
    return stated


# ------------------------------------------------------------------ wrong


def probs_error(suspect: Suspect) -> InputError:
    """Say what predictions that are not on the simplex look like."""
    look = _of_one_column if suspect.values.shape[1] == 1 else _of_columns
    with np.errstate(over="ignore", invalid="ignore"):
        kind, facts = look(suspect)
    return InputError(_LOOKS[kind], logits=Argument("logits", True), **facts)


_ENOUGH_ROWS = 20


def _of_columns(suspect: Suspect) -> tuple[str, dict[str, Any]]:
    """Return what several columns look like, with the facts of that sentence."""
    values, sums, outside = suspect.values, suspect.sums, suspect.outside
    low, high, finite = values.min(), values.max(), np.isfinite(values)
    if high <= suspect.tolerance and np.abs(np.exp(values).sum(axis=1) - 1).max() <= 1e-2:
        return "log-probabilities", {}
    if not finite.all():
        return "not finite", suspect.entries(~finite)
    if values.shape[1] >= 3:
        # A column that is no probability is what the row sums exceed 1 by, in every row.
        excess = (sums - 1)[:, None]
        extra = np.abs(values - excess).max(axis=0) <= 1e-3
        if extra.any() and np.abs(excess).max() >= 0.05 and not outside[:, ~extra].any():
            return "no probability", {"column": suspect.table.column(int(np.argmax(extra)))}
    if low >= 0 and np.abs(sums - 100).max() <= 1:
        return "percentages", {}
    if low >= 0 and sums.min() >= 1 and high > 1 and np.all(values == np.round(values)):
        return "counts", {"found": f"{sums[0]:.6g}"}
    off = np.abs(sums - 1)
    # A few bad rows are bad rows; logits are off in most.
    if outside.any(axis=1).mean() >= 0.5 and np.mean(off > 1e-2) >= 0.5:
        within = ~outside.any(axis=0)
        if within.any() and len(values) >= _ENOUGH_ROWS:  # logits leave it in every column
            column = suspect.table.column(int(np.argmax(within)))
            return "other columns", {"entry": suspect.entry(outside), "column": column}
        return "logits", {"entry": suspect.entry(outside)}
    if outside.any():
        return "outside", suspect.entries(outside)
    facts = suspect.rows(off > suspect.tolerance, 9)
    return "sums", {**facts, "most": f"{off.max():.2g}", "do": _advice(suspect)}


def _of_one_column(suspect: Suspect) -> tuple[str, dict[str, Any]]:
    """Return what one column looks like, with the facts of that sentence."""
    values, outside, finite = suspect.values, suspect.outside, np.isfinite(suspect.values)
    if not finite.all():
        return "not finite", suspect.entries(~finite)
    if outside.mean() < 0.1:
        return "outside", suspect.entries(outside)
    seen = np.unique(values)
    every = len(seen) > 2 and np.array_equal(seen, np.arange(seen[0], seen[0] + len(seen)))
    kind = "logarithms" if values.max() <= 0 else "logit"
    if np.all(values == np.round(values)) and (every or np.abs(values).max() < 10):
        kind = "labels"
    elif values.min() >= 0 and values.max() <= 100:
        kind = "percentage"
    return kind, {"entry": suspect.entry(outside)}


def _advice(suspect: Suspect) -> str:
    """Say why rows that do not sum to 1 may not."""
    values, sums = suspect.values, suspect.sums
    rows, columns = values.shape
    off, decimals = np.abs(sums - 1), _decimals(suspect)
    if decimals and off.max() <= columns * 0.5 * 10.0**-decimals + 1e-9:
        if decimals > 1 and off.max() <= _MOST_OFF:
            return "a class may be missing, so give one column for every class, with more decimals"
        return (
            f"they look rounded to {counted(decimals, 'decimal')}, so save them with more, divide "
            f"each row by its sum, or {ask_about_one(10.0**-decimals, columns)}"
        )
    if rows == columns and np.abs(values.sum(axis=0) - 1).max() <= suspect.tolerance:
        return "its columns do, so give probs.T"
    step = step_of(np.unique(values[(values > 0.0) & (values < 1.0)]))
    if step is not None and off.max() <= columns * 0.5 * step + 1e-9:
        ask = ask_about_one(step, columns)
        return f"they look rounded to multiples of {step:.6g}, so save more digits, or {ask}"
    if off.max() <= 0.02:
        return "compute the softmax in float32 or float64, or divide each row by its sum"
    if np.mean(off > suspect.tolerance) < 0.5:
        return "correct these rows, or leave them out of probs and labels alike"
    if sums.max() < 1 + suspect.tolerance:
        return "a class may be missing, so give one column for every class"
    if sums.min() < 1 < sums.max():
        return (
            "they look like one sigmoid score a class, or columns of several models: give softmax "
            "probabilities, or one column at a time, as P(class 1) (--columns NAME of a file)"
        )
    return "give softmax probabilities, one column for every class"


# ------------------------------------------------------------------ zeros

Cause: TypeAlias = Literal["decisions", "clipping", "precision", "steps", "blocks"]

_FEWEST_ROWS = 20  # fewer may look like anything
_MOST = 1_000_000  # entries that are looked at
_MOST_TIED = 2_000  # rows in which ties are looked for: in many, what is rounded is tied too
_DECIMALS = (1, 2, 3, 4, 5)
_MOST_VOTES = 1000
_MANY = 30  # different values: as many shares of blocks have no small common denominator
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53  # from 1 to the number before it
_CLIPPED_AT = [10.0**-k for k in range(8, 31)]


@dataclass(frozen=True)
class Zeros:
    """Why probabilities are 0.

    Attributes
    ----------
    cause
        "decisions": all are 0 or 1. "clipping": many are the same small number, 1 minus which is 1.
        "precision": others are next to 0 or 1 as near as numbers come. "steps": all are multiples of a
        step. "blocks": there are few, as there are shares of the rows of a block.
    step
        That of which all are multiples; None where that is not the cause, or is not known.
    rounded
        Whether steps can be of nothing but rounding, since rows do not sum to 1.
    """

    cause: Cause
    step: float | None = None
    rounded: bool = False


def why_zero(probs: Array, off: float = 0.0) -> Zeros | None:
    """Return why entries of predictions (n, m) are 0; None if that is not plain.

    ``off`` is by how much sums of rows differed from 1 at most, before rows were divided by them.
    """
    if len(probs) < _FEWEST_ROWS:
        return None
    some = probs[:: -(-probs.size // _MOST)]
    values, times = _inner(some)
    if len(values) == 0:
        return Zeros("decisions")
    columns = some.T if some.shape[1] == 2 else ()
    for column in columns:
        found, times = _inner(column)
        if len(found) and times[0] > 2 and np.isclose(found[0], _CLIPPED_AT, rtol=1e-3, atol=0.0).any():
            return Zeros("clipping")
    if any(_precision_ends(_inner(each)[0]) for each in (some, *columns) if not each.all()):
        return Zeros("precision")
    if off > 0.9 * 10.0 ** -_DECIMALS[-1]:  # by so much sums of rounded numbers are off at least
        return _rounded(some)
    per_one, sure = _grid(values)
    if per_one:
        return Zeros("steps", 1.0 / per_one) if sure else None
    tied = probs[:: -(-len(probs) // _MOST_TIED)]
    values, times = _inner(tied[(tied > 0.01) & (tied < 0.99)])
    return Zeros("blocks") if times.sum() >= max(_MANY, 2 * len(values)) else None


def _inner(values: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the different values between 0 and 1 in their order, and how often each occurs."""
    found, times = np.unique(values, return_counts=True)
    inner = (found > 0.0) & (found < 1.0)
    return found[inner], times[inner]


def _precision_ends(values: Array) -> bool:
    """Whether sorted values between 0 and 1 go on to where numbers end, near 0 or near 1."""
    if np.count_nonzero(values < 1e-20) > 2 and 1e-46 < values[0] < 1e-30:
        return True
    for unit in (_SINGLE, _DOUBLE):  # what one column next to 1 leaves to the other; or half precision
        counts = values[values < 40.0 * unit] / unit
        if len(counts) > 9 and np.all(np.abs(counts - np.round(counts)) < 2e-3 * counts):
            return True
    return False


def _rounded(probs: Array) -> Zeros | None:
    """Find the step in rows that did sum to 1: they are as they were stated."""
    rows = probs[(probs < 1.0).all(axis=1)]
    off = {
        d: np.abs(rows - np.round(rows, d)).max(axis=1, initial=0.0) < _ON_GRID_COARSE
        for d in _DECIMALS
    }
    whole = np.count_nonzero(off[_DECIMALS[-1]])
    if whole < max(_FEWEST_ROWS, 0.05 * len(rows)):
        return None
    decimals = next(d for d in _DECIMALS if np.count_nonzero(off[d]) >= 0.9 * whole)
    steps = step_of(_inner(rows[off[decimals]])[0])
    return Zeros("steps", 10.0**-decimals if steps is None else steps, rounded=True)


def step_of(values: Array) -> float | None:
    """Return the step of which all of some different values are multiples, where that is no chance."""
    per_one, sure = _grid(values)
    return 1.0 / per_one if sure else None


def _grid(values: Array) -> tuple[int, bool]:
    """Return 1 over the largest step of which all values are multiples, 0 for none; is it no chance?"""
    if len(values) == 0:
        return 0, False
    few = values[:: max(1, len(values) // 100)]
    for per_one in (*(10**d for d in _DECIMALS), *range(2, _MOST_VOTES + 1)):
        if all(
            np.all(np.abs(x - np.round(x * per_one) / per_one) < _ON_GRID_COARSE) for x in (few, values)
        ):
            break
    else:
        return 0, False
    counts = np.unique(np.round(values * per_one).astype(np.int64))
    shared = int(np.gcd.reduce(np.append(counts, per_one)))
    counts, per_one = counts // shared, per_one // shared
    small = np.unique(np.minimum(counts, per_one - counts))
    filled = len(counts) >= 3 and 2 * len(counts) >= per_one - 1
    in_a_row = small[0] <= 2 and np.median(np.diff(small, append=small[-1:])) == 1.0
    percents = 100 % per_one == 0
    return per_one, bool(filled or len(counts) >= _MANY or (len(small) >= 5 and (in_a_row or percents)))


#: What to do about each cause but steps, of which it depends on what they are.
_CAUSES = {
    "decisions": "Every probability is 0 or 1, as of class decisions or of trees with pure leaves: "
    "give probabilities (predict_proba), of leaves of more rows.",
    "clipping": "Zeros come from clipping: 1 minus so small a number is 1. Compute probabilities from "
    "logits in float64 by softmax, a column for every class, and do not clip them.",
    "precision": "Zeros are probabilities too small for the numbers that hold them. Compute them "
    "from logits in float64 by softmax, a column for every class (of two, expit(-z) and expit(z)).",
    "blocks": "There are few different probabilities, as of isotonic regression, bins or a tree, where "
    "a block of rows without the event has probability 0. Fit it on more rows, or keep 0 and 1 out: (k "
    "+ 1)/(n + 2) for k events of n, or IsotonicRegression(y_min=1/(n + 2), y_max=1 - 1/(n + 2)) of n "
    "rows.",
}


def advice_on_zeros(zeros: Zeros, n_classes: int, clustered: bool = False) -> str:
    """Return why probabilities are 0 and what to do: no rounding for rows in clusters."""
    if zeros.step is None:
        return _CAUSES[zeros.cause]
    per_one, step = round(1.0 / zeros.step), f"{zeros.step:.6g}"
    # One more vote, shared as the classes are: one for every class would outvote few real ones.
    votes = (
        f"give (votes + share)/({per_one} + 1), the share of the class among the training rows, "
        "and recalibrate these"
    )
    if 10 ** _DECIMALS[-1] % per_one:
        return f"Every probability is a multiple of 1/{per_one}, a share of {per_one} votes: {votes}."
    save = "save more digits" + ("" if clustered else f", or {ask_about_one(zeros.step, n_classes)}")
    if zeros.rounded or per_one > _MOST_VOTES:
        return f"Zeros are rounded, to multiples of {step}: {save}."
    return (
        f"Every probability is a multiple of {step}. If they are rounded, {save}. If they are shares "
        f"of {per_one} votes, {votes}."
    )


def ask_about_one(step: float, n_classes: int) -> str:
    """Say how to test one probability that was rounded to a step."""
    lens = "" if n_classes == 2 else "lens='top_label', "
    return f"ask about one probability: caltest.test(..., {lens}rounding={step:.6g})"


def impossible_labels(
    view: Any, label: int | None = None, what: str = "the observed label"
) -> tuple[str, ...]:
    """Return a note if a label with predicted probability 0 was observed: no test is needed then.

    Say too where probabilities of 0 come from and what to do, if that is plain.
    ``view`` is a sample of classes or of numbers, of which only rows with ``label`` are looked at;
    ``what`` names its labels.
    """
    broken = view.rows.impossible(view.labels)
    if label is not None:
        broken = broken[view.labels[broken] == label]
    if view.rows.n_classes is None:
        return impossible_rows(broken, len(view.labels), "the outcome")
    zeros = why_zero(view.rows.probs, view.rows.sums_off) if len(broken) else None
    places = view.rows.places
    broken = broken if places is None else places[broken]
    found = impossible_rows(broken, len(view.labels), what)
    if zeros is None:
        return found
    return (*found, advice_on_zeros(zeros, view.rows.n_classes, view.rows.clusters is not None))


def impossible_rows(
    broken: NDArray[np.intp], n: int, what: str = "the observed label"
) -> tuple[str, ...]:
    """Return a note on rows whose label had probability 0, if there are any among ``n``."""
    if len(broken) == 0:
        return ()
    named = ", ".join(map(str, broken[:5])) + (", …" if len(broken) > 5 else "")
    return (
        f"In {len(broken)} of {n} rows (counting from 0: {named}) {what} had "
        "probability 0: that alone proves the model miscalibrated, whatever p is.",
    )
