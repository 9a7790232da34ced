"""Several tests at once: p-values adjusted for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._choices import choose
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


def check_correction(correction: str | None) -> None:
    """Raise if there is no such correction; None is no correction.

    Raises
    ------
    InputError
        With the names that there are.
    """
    if correction is None:
        return
    if not isinstance(correction, str):
        raise InputError(f"correction is {correction!r}; give a name such as 'holm', or None.")
    choose("correction", correction, CORRECTIONS)


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
    raw = np.array(pvalues, dtype=np.float64)
    if correction is None or len(raw) < 2:
        return raw
    from statsmodels.stats.multitest import multipletests  # slow to import

    with np.errstate(divide="ignore"):  # Šidák's takes the logarithm of 1 − p
        _, found, _, _ = multipletests(raw, method=correction)
    return np.asarray(np.clip(found, SMALLEST, 1.0), dtype=np.float64)
