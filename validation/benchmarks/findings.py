"""What was found in other packages on the way: each with the few lines that show it.

Run with the peers' Python; caltest is not imported here. A finding that a newer version no longer shows
says so: ``shown`` is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from validation.benchmarks.child import Measured

LEVEL = 0.05


class Finding(NamedTuple):
    """What is claimed, the numbers, and whether they show it."""

    claim: str
    numbers: str
    shown: bool


def _calibrated(rng: np.random.Generator, p: np.ndarray) -> np.ndarray:
    return (rng.random(len(p)) < p).astype(np.int64)


def _rejections(
    test: Callable[[np.ndarray, np.ndarray], float], n: int, of: int, a: float, b: float
) -> float:
    """Return the share of calibrated data sets, p ~ Beta, that a test rejects at the level."""
    rng = np.random.default_rng(1)
    pvalues: list[float] = []
    while len(pvalues) < of:
        p = rng.beta(a, b, n)
        y = _calibrated(rng, p)
        if 0 < y.sum() < n:
            pvalues.append(test(y, p))
    return float(np.mean(np.array(pvalues) <= LEVEL))


def probcal_asymptotic_size() -> Finding:
    """Look at the normal limit of SKCE_ul where events are rare."""
    from probcal.metrics import skce_test

    def test(y: np.ndarray, p: np.ndarray) -> float:
        return float(skce_test(y, p, method="asymptotic").p_value)

    rate = _rejections(test, 500, 500, 0.2, 20.0)
    return Finding(
        "skce_test(method='asymptotic') rejects calibrated models of rare events far too often",
        f"n = 500, p ~ Beta(0.2, 20), 500 data sets: {rate:.3f} rejected at {LEVEL}",
        rate > 0.08,
    )


def probcal_order() -> Finding:
    """Look at the median heuristic of more than 4 096 rows."""
    from probcal.metrics import skce_test

    rng = np.random.default_rng(0)
    p = np.where(np.arange(8192) % 2 == 0, rng.uniform(0.10, 0.11, 8192), rng.uniform(0.7, 0.9, 8192))
    y, order = _calibrated(rng, p), rng.permutation(8192)
    bandwidths = [
        skce_test(y[rows], p[rows], n_boot=1, method="asymptotic").bandwidth
        for rows in (np.arange(8192), order)
    ]
    return Finding(
        "above 4 096 rows the bandwidth looks at every k-th row: it depends on their order",
        f"bandwidth {bandwidths[0]:.4f} in one order, {bandwidths[1]:.4f} in another, 8 192 rows",
        max(bandwidths) > 1.5 * min(bandwidths),
    )


def netcal_mmce_of_one_column() -> Finding:
    """Look at the MMCE of P(class 1)."""
    from netcal.metrics import MMCE

    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = _calibrated(rng, p)
    one, two = (float(MMCE().measure(X, y)) for X in (p, np.column_stack([1.0 - p, p])))
    return Finding(
        "MMCE of one column takes P(class 1) for the confidence in class 0 too: calibrated models get "
        "an error",
        f"one calibrated model, 4 000 rows: {one:.3f} from one column, {two:.3f} from two",
        one > 5.0 * two,
    )


def mapie_spiegelhalter_side() -> Finding:
    """Look at Spiegelhalter's p-value of a model that is too unsure."""
    from mapie.metrics.calibration import spiegelhalter_p_value, spiegelhalter_statistic

    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    y, p = _calibrated(rng, truth), 0.5 + 0.5 * (truth - 0.5)
    z, pvalue = spiegelhalter_statistic(y, p), spiegelhalter_p_value(y, p)
    return Finding(
        "spiegelhalter_p_value is one-sided: no underconfident model is ever rejected",
        f"predictions half as far from .5 as the truth, 2 000 rows: z = {z:.1f}, p = {pvalue:.3f}",
        pvalue > 0.5,
    )


def mapie_order() -> Finding:
    """Look at Kolmogorov–Smirnov and Kuiper with tied scores."""
    from mapie.metrics.calibration import kolmogorov_smirnov_p_value, kuiper_p_value

    rng = np.random.default_rng(0)
    p = np.round(rng.random(2000), 1)
    y = _calibrated(rng, p)
    orders = [rng.permutation(2000) for _ in range(50)]
    ranges = [
        (min(found), max(found))
        for test in (kolmogorov_smirnov_p_value, kuiper_p_value)
        for found in [[float(test(y[rows], p[rows])) for rows in orders]]
    ]
    shown = ", ".join(f"{name} {low:.2f} to {high:.2f}" for name, (low, high) in zip(
        ("Kolmogorov-Smirnov p", "Kuiper p"), ranges, strict=True))  # fmt: skip
    return Finding(
        "ties are broken by noise laid on the rows: p-values depend on the order of the rows",
        f"scores of one decimal, 2 000 rows, 50 orders: {shown}",
        any(high > low + 0.01 for low, high in ranges),
    )


def calzone_hosmer_lemeshow_size() -> Finding:
    """Look at Hosmer–Lemeshow's degrees of freedom where predictions were not fitted to the data."""
    from calzone.metrics import CalibrationMetrics

    made = CalibrationMetrics(class_to_calculate=1, num_bins=10)

    def test(y: np.ndarray, p: np.ndarray) -> float:
        rows = np.column_stack([1.0 - p, p])
        return float(made.calculate_metrics(y, rows, metrics=["HL-C"])["HL-C p-value"])

    rate = _rejections(test, 2000, 500, 1.0, 1.0)
    return Finding(
        "Hosmer-Lemeshow subtracts two degrees of freedom by default, for a model that was fitted "
        "elsewhere too: too many rejections",
        f"n = 2 000, p uniform, 500 data sets: {rate:.3f} rejected at {LEVEL}",
        rate > 0.08,
    )


def pycaleva_order() -> Finding:
    """Look at the groups of Hosmer–Lemeshow with tied scores."""
    from pycaleva import CalibrationEvaluator

    rng = np.random.default_rng(0)
    p = np.repeat([0.1, 0.2, 0.4], [1000, 700, 300])
    y = _calibrated(rng, p)
    found = []
    for rows in (np.argsort(y, kind="stable"), rng.permutation(2000)):
        made = CalibrationEvaluator(y[rows], p[rows], outsample=True, n_groups=10)
        found.append(float(made.hosmerlemeshow(verbose=False).pvalue))
    return Finding(
        "tied scores are cut into groups by their place: p-values depend on the order of the rows",
        f"one calibrated model, three distinct scores, 2 000 rows: p = {found[0]:.3g} with the labels "
        f"in order, {found[1]:.3g} in random order",
        abs(found[0] - found[1]) > 0.01,
    )


FINDINGS: dict[str, tuple[str, Callable[[], Finding]]] = {
    made.__name__: (package, made)
    for package, made in (
        ("probcal", probcal_asymptotic_size),
        ("probcal", probcal_order),
        ("netcal", netcal_mmce_of_one_column),
        ("mapie", mapie_spiegelhalter_side),
        ("mapie", mapie_order),
        ("calzone-tool", calzone_hosmer_lemeshow_size),
        ("pycaleva", pycaleva_order),
    )
}


def finding(*, name: str) -> Measured:
    """Return a function that tells what is found."""

    def run() -> dict[str, Any]:
        return FINDINGS[name][1]()._asdict()

    return run
