"""P-values: counted among draws, and adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, log_ndtr, ndtri_exp

from caltest._arguments import choose, real_array
from caltest.exceptions import InputError

# ------------------------------------------------------------------ counted among draws


Alternative: TypeAlias = Literal["greater", "less", "two-sided"]

# Two evaluations of one value may differ in the order of their sums. The largest difference seen is
# some 1e-13 of the largest value; a wider tolerance can only make a p-value larger.
TIE_TOLERANCE = 1e-10


Array = NDArray[np.float64]


def exceeds(draws: Array, observed: Any, resolution: float = 0.0) -> NDArray[np.bool_]:
    """Return a mask of draws (B, …) at least as large as ``observed`` (…); ties favour the null.

    Values that differ by no more than ``resolution``, or by rounding, are tied.
    """
    sizes = np.abs(draws)
    sizes[~np.isfinite(sizes)] = 0.0
    own = np.where(np.isfinite(observed), np.abs(observed), 0.0)
    scale = np.maximum(sizes.max(axis=0, initial=0.0), own)
    # NaN favours the null.
    return np.asarray(~(draws < observed - TIE_TOLERANCE * scale - resolution))


def count(draws: Array, observed: float, alternative: Alternative, resolution: float = 0.0) -> int:
    """Count the draws at least as extreme as ``observed``; for two sides, the side with fewer.

    Examples
    --------
    >>> count(np.array([1.0, 2.0, 3.0]), 2.0, "greater")
    2
    >>> count(np.array([1.0, 2.0, 3.0]), 0.0, "two-sided")
    0
    """
    if alternative == "two-sided":
        return min(count(draws, observed, side, resolution) for side in ("greater", "less"))
    if alternative == "less":
        draws, observed = -draws, -observed
    return int(np.count_nonzero(exceeds(draws, observed, resolution)))


def pvalue(exceedances: int, resamples: int, alternative: Alternative) -> float:
    """Return (1 + exceedances) / (1 + resamples), doubled for two sides, at most 1."""
    one_sided = (1 + exceedances) / (1 + resamples)
    return min(1.0, 2.0 * one_sided) if alternative == "two-sided" else one_sided


def interval(
    exceedances: int, resamples: int, alternative: Alternative, confidence: float = 0.95
) -> tuple[float, float]:
    """Return a Clopper–Pearson interval for the p-value that infinitely many resamples would give."""
    x, rest, beyond = exceedances, resamples - exceedances, (1.0 - confidence) / 2.0
    low = 0.0 if x == 0 else float(betaincinv(x, rest + 1, beyond))
    high = 1.0 if rest == 0 else float(betaincinv(x + 1, rest, 1.0 - beyond))
    sides = 2.0 if alternative == "two-sided" else 1.0
    return min(1.0, sides * low), min(1.0, sides * high)


def interval_of_adjusted(pvalue: float, resamples: int, times: float = 1.0) -> tuple[float, float]:
    """Return that interval for a p-value that is ``times`` one counted among the resamples."""
    reached = max(round(pvalue / times * (resamples + 1)) - 1, 0)
    low, high = (min(times * end, 1.0) for end in interval(reached, resamples, "greater"))
    return low, high


def of_exchangeable(pvalues: ArrayLike) -> float:
    """Return 2 min_k (mean of the first k) of exchangeable p-values, at most 1.

    References
    ----------
    Gasparin, Wang, Ramdas, "Combining exchangeable p-values", PNAS 122 (2025).
    """
    each = np.asarray(pvalues, dtype=np.float64)
    return float(min(1.0, 2.0 * (np.cumsum(each) / np.arange(1, len(each) + 1)).min()))


def combine_sides(greater: float, less: float, alternative: Alternative) -> float:
    """Return the p-value of ``alternative`` from the two one-sided ones."""
    both = min(1.0, 2.0 * min(greater, less))
    return {"greater": greater, "less": less, "two-sided": both}[alternative]


# ------------------------------------------------------------------ several statistics on one scale
#
# Statistics that are ranked together (the largest of several, the smallest of their p-values) need a
# common scale. Three standard deviations are not the same evidence for a skewed statistic as for a
# symmetric one. So mean, standard deviation and skewness are all removed, by Wilson and Hilferty's cube
# root, which makes a gamma variable of that skewness nearly normal.
#
# Validity does not depend on this: any quantity computed in the same way from the observed labels and
# from the draws can be ranked among the draws. Only power depends on it.


_SYMMETRIC = 1e-6  # smaller skewness is treated as 0
# Larger skewness means that the statistic depends on few unlikely labels, and no curve fits; the
# largest skewness of a weighted sum of centred χ²₁ variables is √8.
_MOST_SKEWED = 3.0
# Share of the way to −2/s, where the cube root is infinitely steep and a gamma variable ends, up to
# which it is used: its slope in z is 4 there. Beyond, the slope is 1, so that no value seems
# impossible.
_FOLLOWED = 7.0 / 8.0
_TIED = 1e-9  # tolerance for evidence or distance of one value, computed twice
_LOG_2 = float(np.log(2.0))


def evidence(z: ArrayLike, skewness: ArrayLike, alternative: Alternative) -> Array:
    """Return −log P(a value at least as extreme as z under H0), approximately.

    Parameters
    ----------
    z : float or array
        Standardised statistics; may be infinite.
    skewness : float or array
        Their skewness under H0, of a shape that goes with ``z``. More than 3 counts as 3.
    alternative : {"greater", "less", "two-sided"}
        Which values are extreme. For "two-sided", the smaller tail is doubled.

    Returns
    -------
    ndarray
        It grows with how extreme z is, from 0 on, and is NaN only where ``z`` is.

    References
    ----------
    Wilson and Hilferty, "The distribution of chi-square", PNAS 17 (1931).

    Examples
    --------
    >>> evidence([1.959964, 0.0], 0.0, "two-sided").round(4) + 0.0
    array([2.9957, 0.    ])
    >>> bool(evidence(3.0, 1.0, "greater") < evidence(3.0, 0.0, "greater"))
    True
    """
    normal = _nearly_normal(np.asarray(z, dtype=np.float64), np.asarray(skewness, dtype=np.float64))
    return _of_normal(normal, alternative)


def _of_normal(normal: Array, alternative: Alternative) -> Array:
    if alternative == "two-sided":
        return np.asarray(-log_ndtr(-np.abs(normal)) - _LOG_2)
    return np.asarray(-log_ndtr(-normal if alternative == "greater" else normal))


def _nearly_normal(z: Array, skewness: Array) -> Array:
    """Return (∛(1 + s z/2) − 1 + s²/36) · 6/s, which increases in z and equals z if s is 0."""
    flat = np.abs(skewness) < _SYMMETRIC
    s = np.where(flat, 1.0, np.clip(skewness, -_MOST_SKEWED, _MOST_SKEWED))
    x = 0.5 * s * z
    curve = (np.cbrt(1.0 + np.maximum(x, -_FOLLOWED)) - 1.0 + s * s / 36.0) * (6.0 / s)
    return np.where(flat, z, curve + np.minimum(x + _FOLLOWED, 0.0) * (2.0 / s))


def evidence_of_draws(
    values: ArrayLike, alternatives: Sequence[Alternative], resolutions: ArrayLike = 0.0
) -> Array:
    """Return the evidence of the observed labels and of every draw, each standardised by the others.

    Parameters
    ----------
    values : array of shape (1 + B, H)
        Statistics: the first row of the observed labels, the others of B draws.
    alternatives : sequence of str
        (H,) which values count against H0.
    resolutions : float, or array of shape (H,), default 0
        How far two evaluations of one value may differ by rounding.

    Returns
    -------
    ndarray of shape (1 + B, H)
        Row by row as extreme as the tail that it is in, see :func:`evidence`.

    Notes
    -----
    Mean, standard deviation and skewness are those of all rows but one, the farthest from the median.
    All rows are so treated alike, and what was exchangeable stays exchangeable: ranks among the draws
    are exact. That the farthest row is not part of the standard is what lets an observed value stand
    out by more than √B. Evidence is no more than what a row's rank says, except of the row that no
    other one reaches.

    Rounding counts for the null: the observed value is taken as less extreme by as much as rounding may
    have moved it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(999, 2)) * [1.0, 100.0]
    >>> found = evidence_of_draws(np.vstack([[5.0, 100.0], draws]), ["greater", "two-sided"])
    >>> (found[0] > found[1:].max(axis=0)).tolist()
    [True, False]
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    margins = np.broadcast_to(np.asarray(resolutions, dtype=np.float64), table.shape[1:])
    found = np.empty_like(table)
    for number, alternative in enumerate(alternatives):
        found[:, number] = _column(table[:, number], alternative, float(margins[number]))
    return found


def reaching(values: ArrayLike, threshold: float, alternative: Alternative) -> tuple[float, float]:
    """Return the bounds below and above which a statistic has at least that much evidence.

    ``values`` are (1 + B,), the observed one first, as a column of :func:`evidence_of_draws`; the
    bounds are those of its curve, before ranks. Bounds that nothing reaches, or that favour H0, are
    infinite.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=100_000)
    >>> low, high = reaching(draws, -np.log(0.05), "two-sided")
    >>> round(low, 1), round(high, 1)
    (-2.0, 2.0)
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean, deviation, skewness = _standard(numbers[np.isfinite(numbers)])
    if deviation == 0.0:
        return -np.inf, np.inf
    sided = threshold + (_LOG_2 if alternative == "two-sided" else 0.0)
    normal = -float(ndtri_exp(-max(sided, 1e-300)))
    grid = np.linspace(-60.0, 60.0, 240_001)  # grid for an increasing curve
    curve = _nearly_normal(grid, np.asarray(skewness))
    low, high = np.interp([-normal, normal], curve, grid, left=-np.inf, right=np.inf)
    least = -np.inf if alternative == "greater" else mean + deviation * float(low)
    return least, np.inf if alternative == "less" else mean + deviation * float(high)


def _column(values: Array, alternative: Alternative, resolution: float) -> Array:
    finite = np.isfinite(values)
    margin = TIE_TOLERANCE * float(np.abs(values[finite]).max(initial=0.0)) + resolution
    mean, deviation, skewness = _standard(values[finite])
    if deviation <= margin:
        away = values - mean  # if only rounding varies, any difference is infinitely far
        beside = np.where(np.abs(away) > margin, np.inf, np.where(np.isnan(away), np.nan, 0.0))
        found = _of_normal(np.copysign(beside, away), alternative)
        observed = found[:1]
    else:
        normal = _nearly_normal((values - mean) / deviation, np.asarray(skewness))
        found = _of_normal(normal, alternative)
        ends = (values[0] + [-margin, margin] - mean) / deviation
        low, high = _nearly_normal(ends, np.asarray(skewness))
        # The value that is least evidence against H0: for two sides, the one nearest to the median of
        # the law, which for a skewed law is not its mean.
        least = {"greater": low, "less": high, "two-sided": np.clip(0.0, low, high)}[alternative]
        observed = _of_normal(np.array([least]), alternative)
    lowered = _tempered(found, found, finite)
    lowered[:1] = _tempered(observed, found, finite[:1])
    return lowered


def _tempered(found: Array, rows: Array, finite: NDArray[np.bool_]) -> Array:
    """Lower evidence to the evidence of its rank among all rows, if ranks are informative.

    A row that k ≥ 1 others reach has an estimated tail of k/N, of N rows; a curve with much less does
    not fit (a rare event, for example, that happens in a few draws). A single value that differs from a
    constant has 1/N.
    """
    total = len(rows)
    # NaN is sorted last, as if it reached everything.
    others = total - np.searchsorted(np.sort(rows), found - _TIED, side="left") - 1
    with np.errstate(divide="ignore"):
        seen = -np.log(others / total)
    seen[(others == 0) & np.isinf(found)] = np.log(total)
    return np.where(finite, np.minimum(found, seen), found)


def _standard(finite: Array) -> tuple[float, float, float]:
    """Return mean, standard deviation and skewness of all values but the farthest from the median.

    They depend on the set of values only, not on their order: of two equally far values, the larger is
    left out.
    """
    if len(finite) < 2:
        return float(finite.sum()), 0.0, 0.0
    ordered = np.sort(finite)
    centre = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0
    lower = centre - ordered[0] > (1.0 + _TIED) * (ordered[-1] - centre)  # rounding must not decide
    d = (ordered[1:] if lower else ordered[:-1]) - centre
    size = float(np.abs(d).max()) or 1.0
    d /= size  # third powers neither overflow nor vanish
    first, second, third = (float(np.mean(power)) for power in (d, d * d, d * d * d))
    variance = max(second - first**2, 0.0)
    deviation = variance**0.5
    cumulant = third - 3.0 * first * second + 2.0 * first**3
    skewness = cumulant / (variance * deviation) if variance > 0.0 else 0.0
    return centre + size * first, size * deviation, skewness


# ------------------------------------------------------------------ adjusted for their number

#: Corrections by name, with the error rate that they control.
CORRECTIONS = {
    "holm": "family-wise error rate, however the tests depend on each other",
    "bonferroni": "family-wise error rate, however the tests depend on each other",
    "fdr_bh": "false discovery rate, of independent or positively dependent tests",
    "fdr_by": "false discovery rate, however the tests depend on each other",
}

#: No p-value is printed as 0: those that underflow are this number.
SMALLEST = float(np.finfo(np.float64).tiny)


def check_correction(correction: str | None, *others: str) -> None:
    """Raise unless the correction is one of these, or one of the others; None is no correction."""
    if correction is not None:
        choose("correction", correction, dict.fromkeys((*others, *CORRECTIONS)))


def adjusted(pvalues: ArrayLike, correction: str | None = "holm") -> NDArray[np.float64]:
    """Adjust p-values for their number; one alone stays as it is.

    Parameters
    ----------
    pvalues : array of shape (k,)
        Numbers in (0, 1], of the tests that make a family.
    correction : str or None, default "holm"
        One of `CORRECTIONS`, statsmodels' names. Default "holm": it assumes nothing on how the tests
        depend on each other, and rejects whatever Bonferroni's correction does. None: no correction.

    Returns
    -------
    ndarray of shape (k,)
        To be compared with the level of the whole family.

    Raises
    ------
    InputError
        If there is no such correction.

    References
    ----------
    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6 (1979).

    Examples
    --------
    >>> adjusted([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    check_correction(correction)
    raw = real_array("pvalues", pvalues).copy()
    if correction is None or len(raw) < 2:
        return raw
    from statsmodels.stats.multitest import multipletests  # slow to import

    _, found, _, _ = multipletests(raw, method=correction)
    return np.asarray(np.clip(found, SMALLEST, 1.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class StepDown:
    """Westfall and Young's step-down maxima, counted over draws with one block held at a time.

    Attributes
    ----------
    observed : array of shape (H,)
        Statistics of the H hypotheses, large where they speak against it.

    Examples
    --------
    >>> test = StepDown.of([3.0, 1.0])
    >>> counts = test.count([[0.5, 2.0]]) + test.count([[0.0, 0.5], [4.0, 0.0]])
    >>> test.pvalues(counts, 3)
    array([0.5, 0.5])
    """

    observed: NDArray[np.float64]

    @classmethod
    def of(cls, observed: ArrayLike) -> StepDown:
        """Keep (H,) observed statistics."""
        return cls(real_array("observed", observed).reshape(-1).copy())

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The hypotheses, smallest statistic first; NaN is treated as smallest."""
        return np.argsort(np.where(np.isnan(self.observed), -np.inf, self.observed), kind="stable")

    def count(self, draws: ArrayLike) -> NDArray[np.int64]:
        """Count, for every hypothesis, the draws whose maximum reaches its statistic.

        The maximum is over the hypotheses whose observed statistic is no larger.

        Parameters
        ----------
        draws : array of shape (B, H) or (H,)
            (B, H) statistics of B draws, or (H,) of one.

        Returns
        -------
        ndarray of shape (H,)
            In the order of ``observed``. Counts of blocks of draws add.
        """
        values = np.atleast_2d(real_array("draws", draws))
        if values.shape[1] != len(self.observed):
            why = f"draws has {values.shape[1]} columns for {len(self.observed)} hypotheses"
            raise InputError(f"{why}; give a column for each.")
        ordered = self.observed[self._order]
        tolerance = TIE_TOLERANCE * float(np.abs(ordered[np.isfinite(ordered)]).max(initial=0.0))
        maxima = np.maximum.accumulate(values[:, self._order], axis=1)  # NaN propagates, and is counted
        with np.errstate(invalid="ignore"):  # inf − inf is NaN, a tie
            maxima -= ordered
        found = np.empty(len(ordered), dtype=np.int64)
        found[self._order] = np.count_nonzero(exceeds(maxima, 0.0, tolerance), axis=0)
        return found

    def pvalues(self, counts: ArrayLike, n_draws: int) -> NDArray[np.float64]:
        """Return the (H,) adjusted p-values, (1 + count) / (1 + n_draws), made monotone."""
        raw = (1.0 + np.asarray(counts)) / (1.0 + n_draws)
        falling = self._order[::-1]
        found = np.empty(len(raw))
        found[falling] = np.maximum.accumulate(raw[falling])
        return found


def step_down(observed: ArrayLike, draws: ArrayLike) -> NDArray[np.float64]:
    """Adjust for the number of hypotheses by Westfall and Young's step-down maxima.

    Parameters
    ----------
    observed : array of shape (H,)
        Statistics, on one scale, large where they speak against their hypothesis.
    draws : array of shape (B, H)
        The same statistics of B draws under which all hypotheses are true. For blocks of draws,
        :class:`StepDown` counts one at a time.

    Returns
    -------
    ndarray of shape (H,)
        Adjusted p-values in (0, 1], multiples of 1/(B + 1). Ties count for the null.

    Raises
    ------
    InputError
        If there are no draws, or they have not a column for each hypothesis.

    Notes
    -----
    The hypothesis with the largest statistic is held against the draws' maxima over all hypotheses,
    the second against those over all but the first, and so on; no p-value is below one before it.
    If all hypotheses are true and observed values and draws are exchangeable, the chance that any
    p-value is at most α is at most α, in every finite sample. If some are false, the chance that a
    true one is rejected is at most α too wherever the draws have the joint law of the true ones
    ("subset pivotality").

    References
    ----------
    Westfall and Young, "Resampling-based multiple testing", 1993, algorithm 4.1; Romano and Wolf,
    "Exact and approximate stepdown methods for multiple hypothesis testing", JASA 100 (2005).

    Examples
    --------
    >>> step_down([3.0, 1.0], [[0.5, 2.0], [0.0, 0.5], [4.0, 0.0]])
    array([0.5, 0.5])
    """
    test, values = StepDown.of(observed), np.atleast_2d(real_array("draws", draws))
    if len(values) == 0:
        raise InputError("there are no draws to compare with; give at least one.")
    return test.pvalues(test.count(values), len(values))
