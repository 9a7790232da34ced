"""Several tests at once: p-values adjusted for their number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._arguments import choose, real_array
from caltest._tail import TIE_TOLERANCE, exceeds
from caltest.exceptions import InputError

#: Corrections by name, with what they control.
CORRECTIONS = {
    "holm": "family-wise error rate, however the tests depend on each other",
    "bonferroni": "family-wise error rate, however the tests depend on each other",
    "holm-sidak": "family-wise error rate, of independent or positively dependent tests",
    "sidak": "family-wise error rate, of independent or positively dependent tests",
    "simes-hochberg": "family-wise error rate, of independent or positively dependent tests",
    "hommel": "family-wise error rate, of independent or positively dependent tests",
    "fdr_bh": "false discovery rate, of independent or positively dependent tests",
    "fdr_by": "false discovery rate, however the tests depend on each other",
    "fdr_tsbh": "false discovery rate, of independent tests",
    "fdr_tsbky": "false discovery rate, of independent tests",
}

SMALLEST = float(np.finfo(np.float64).tiny)
"""No p-value is printed as 0: those that underflow are this number."""


def check_correction(correction: str | None, *others: str) -> None:
    """Raise if there is no such correction, nor one of the others; None is no correction."""
    if correction is not None:
        choose("correction", correction, dict.fromkeys((*others, *CORRECTIONS)))


def adjusted(pvalues: ArrayLike, correction: str | None = "holm") -> NDArray[np.float64]:
    """Adjust p-values for their number; one alone stays as it is.

    Parameters
    ----------
    pvalues
        (k,) numbers in (0, 1], of the tests that make a family.
    correction
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

    with np.errstate(divide="ignore"):  # Šidák's takes the logarithm of 1 − p
        _, found, _, _ = multipletests(raw, method=correction)
    return np.asarray(np.clip(found, SMALLEST, 1.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class StepDown:
    """Westfall and Young's step-down maxima: counts over draws, of which only one block is held.

    Attributes
    ----------
    observed
        (H,) statistics of the H hypotheses, large where they speak against it.

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
        """The hypotheses, smallest statistic first; a NaN is as small as can be."""
        return np.argsort(np.where(np.isnan(self.observed), -np.inf, self.observed), kind="stable")

    def count(self, draws: ArrayLike) -> NDArray[np.int64]:
        """Count, for every hypothesis, the draws whose maximum reaches its statistic.

        The maximum is over the hypotheses whose observed statistic is no larger.

        Parameters
        ----------
        draws
            (B, H) statistics of B draws, or (H,) of one.

        Returns
        -------
        ndarray of shape (H,)
            In the order of ``observed``. Counts of blocks of draws add.
        """
        values = np.atleast_2d(real_array("draws", draws))
        if values.shape[1] != len(self.observed):
            raise InputError(
                f"draws has {values.shape[1]} columns for {len(self.observed)} hypotheses; "
                "give a column for each."
            )
        ordered = self.observed[self._order]
        finite = np.abs(ordered[np.isfinite(ordered)])
        tolerance = TIE_TOLERANCE * float(finite.max(initial=0.0))
        maxima = np.maximum.accumulate(values[:, self._order], axis=1)  # a NaN stays, and counts
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


def step_down(observed: ArrayLike, draws: Iterable[ArrayLike]) -> NDArray[np.float64]:
    """Adjust for the number of hypotheses by Westfall and Young's step-down maxima.

    Parameters
    ----------
    observed
        (H,) statistics, on one scale, large where they speak against their hypothesis.
    draws
        (B, H) the same statistics of B draws under which all hypotheses are true; or an iterable of
        draws (H,) or of blocks of draws (b, H), of which one is held at a time.

    Returns
    -------
    ndarray of shape (H,)
        Adjusted p-values in (0, 1], multiples of 1/(B + 1). Ties count for the null.

    Raises
    ------
    InputError
        If there are no draws, or a block has not a column for each hypothesis.

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
    test = StepDown.of(observed)
    counts, n_draws = np.zeros(len(test.observed), dtype=np.int64), 0
    for block in (draws,) if isinstance(draws, np.ndarray) else draws:
        values = np.atleast_2d(real_array("draws", block))
        counts += test.count(values)
        n_draws += len(values)
    if n_draws == 0:
        raise InputError("there are no draws to compare with; give one at least.")
    return test.pvalues(counts, n_draws)
