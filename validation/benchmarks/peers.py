"""What is measured of other packages, on the same input; caltest is not imported here.

Each function takes the input and returns what is to be run. Values are brought to the scale of
caltest's, which is said where it is done. Written from the packages' documentation and source:
probcal 0.4, netcal 1.4, MAPIE 1.6, relplot 1.0, hyppo 0.5, calzone-tool 0.1, pycaleva 0.8,
scikit-learn 1.9, scoringrules 0.10, SurvivalEVAL 0.9, sbi 0.27.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from timeit import repeat
from typing import Any

import numpy as np

from validation.benchmarks import inputs
from validation.benchmarks.child import Measured

#: Packages by the name they are installed by; a version that is newer may be met. Each has an
#: environment of its own, with what makes it fastest.
PACKAGES = {
    "probcal": (), "netcal": (), "mapie": (), "relplot": (), "hyppo": (), "calzone-tool": (),
    "pycaleva": (), "scikit-learn": (), "scoringrules": ("numba",), "SurvivalEVAL": (), "sbi": (),
}  # fmt: skip


def _binary(probs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ascontiguousarray(probs[:, 1]), labels.astype(np.int64)


# ------------------------------------------------------------------ probcal


def probcal_skce(probs: np.ndarray, labels: np.ndarray, *, bandwidth: float) -> Measured:
    """SKCE_uq of two classes: the same formula, with n×n arrays."""
    from probcal.metrics import skce

    p, y = _binary(probs, labels)
    return lambda: {"value": skce(y, p, bandwidth=bandwidth)}


def probcal_skce_test(
    probs: np.ndarray, labels: np.ndarray, *, bandwidth: float, draws: int, method: str
) -> Measured:
    """Test by SKCE_uq and a bootstrap of rows, or by SKCE_ul and its normal limit: both asymptotic.

    SKCE_ul pairs rows at random, so that its value is another than ours.
    """
    from probcal.metrics import skce_test

    p, y = _binary(probs, labels)

    def run() -> dict[str, float]:
        result = skce_test(y, p, method=method, n_boot=draws, bandwidth=bandwidth, random_state=0)
        return {"value": result.statistic, "pvalue": result.p_value}

    return run


def probcal_smooth_ece(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Smooth ECE on the scale of log-odds, not of probabilities: another number by definition."""
    from probcal.metrics import smooth_ece

    p, y = _binary(probs, labels)
    return lambda: {"value": smooth_ece(y, p)}


def probcal_hosmer_lemeshow(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Ten groups of equal size, chi-square with ten degrees of freedom."""
    from probcal.metrics import hosmer_lemeshow

    p, y = _binary(probs, labels)

    def run() -> dict[str, float]:
        result = hosmer_lemeshow(y, p)
        return {"value": result.statistic, "pvalue": result.p_value}

    return run


def probcal_spiegelhalter(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Spiegelhalter's z, two-sided."""
    from probcal.metrics import spiegelhalter_z

    p, y = _binary(probs, labels)

    def run() -> dict[str, float]:
        result = spiegelhalter_z(y, p)
        return {"value": result.z, "pvalue": result.p_value}

    return run


def probcal_cox(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Likelihood ratio of Cox's intercept and slope."""
    from probcal.metrics import calibration_test

    p, y = _binary(probs, labels)

    def run() -> dict[str, float]:
        result = calibration_test(y, p)
        return {"value": result.statistic, "pvalue": result.p_value}

    return run


# ------------------------------------------------------------------ netcal, relplot, hyppo


def netcal_mmce(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """MMCE of the top class, squared here, as ours is."""
    from netcal.metrics import MMCE

    return lambda: {"value": float(MMCE().measure(probs, labels)) ** 2}


def netcal_ece(probs: np.ndarray, labels: np.ndarray, *, bins: int) -> Measured:
    """ECE of the top class, bins of equal width."""
    from netcal.metrics import ECE

    return lambda: {"value": float(ECE(bins).measure(probs, labels))}


def relplot_smece(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Smooth ECE; its bandwidth is searched to 0.001."""
    import relplot

    p, y = _binary(probs, labels)
    y = y.astype(np.float64)
    return lambda: {"value": float(relplot.smECE(p, y))}


def hyppo_mmd(probs: np.ndarray, labels: np.ndarray, *, draws: int) -> Measured:
    """Compare (prediction, label) with (prediction, drawn label) as two samples, by permutation.

    The nearest that a package of tests of independence has: another statistic, and a p-value that
    depends on one draw of labels.
    """
    from hyppo.ksample import MMD

    rng = np.random.default_rng(0)
    uniforms = rng.random((len(labels), 1))
    drawn = (probs.cumsum(axis=1)[:, :-1] < uniforms).sum(axis=1)
    eye = np.eye(probs.shape[1])
    first, second = (np.hstack([probs, eye[which]]) for which in (labels, drawn))

    def run() -> dict[str, float]:
        found = MMD().test(first, second, reps=draws, workers=1, auto=False, random_state=0)
        return {"value": float(found[0]), "pvalue": float(found[1])}

    return run


# ------------------------------------------------------------------ MAPIE, calzone-tool, pycaleva


def mapie_ks(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Kolmogorov–Smirnov; the value is divided by the scale that ours is not divided by."""
    from mapie.metrics import calibration

    p, y = _binary(probs, labels)
    value = calibration.kolmogorov_smirnov_statistic(y, p) * calibration.length_scale(p)  # not timed
    return lambda: {"value": value, "pvalue": float(calibration.kolmogorov_smirnov_p_value(y, p))}


def mapie_kuiper(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Kuiper, as `mapie_ks`."""
    from mapie.metrics import calibration

    p, y = _binary(probs, labels)
    value = calibration.kuiper_statistic(y, p) * calibration.length_scale(p)  # not timed
    return lambda: {"value": value, "pvalue": float(calibration.kuiper_p_value(y, p))}


def mapie_spiegelhalter(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Spiegelhalter's z; its p-value is one-sided."""
    from mapie.metrics import calibration

    p, y = _binary(probs, labels)
    value = calibration.spiegelhalter_statistic(y, p)  # not timed
    return lambda: {"value": value, "pvalue": calibration.spiegelhalter_p_value(y, p)}


def mapie_top_label_ece(probs: np.ndarray, labels: np.ndarray, *, bins: int) -> Measured:
    """ECE of each top class, averaged over classes: another number by definition."""
    from mapie.metrics import calibration

    return lambda: {
        "value": calibration.top_label_ece(labels, probs, num_bins=bins, split_strategy="uniform")
    }


def calzone_tests(probs: np.ndarray, labels: np.ndarray, *, metric: str, name: str) -> Measured:
    """Hosmer–Lemeshow with eight degrees of freedom of ten groups, or Spiegelhalter's z."""
    from calzone.metrics import CalibrationMetrics

    def run() -> dict[str, float]:
        made = CalibrationMetrics(class_to_calculate=1, num_bins=10)
        found = made.calculate_metrics(labels.copy(), probs, metrics=[metric])
        return {"value": float(found[f"{name} score"]), "pvalue": float(found[f"{name} p-value"])}

    return run


def pycaleva_tests(probs: np.ndarray, labels: np.ndarray, *, test: str) -> Measured:
    """Hosmer–Lemeshow for external data, or Spiegelhalter's z, its making included."""
    from pycaleva import CalibrationEvaluator

    p, y = _binary(probs, labels)
    options = {"verbose": False} if test == "hosmerlemeshow" else {}

    def run() -> dict[str, float]:
        made = CalibrationEvaluator(y, p, outsample=True, n_groups=10)
        found = getattr(made, test)(**options)
        return {"value": float(found.statistic), "pvalue": float(found.pvalue)}

    return run


# ------------------------------------------------------------------ scikit-learn, scoringrules, others


def calibration_curve(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Ten bins of equal width; the value is the observed frequency of the first."""
    from sklearn.calibration import calibration_curve as curve

    p, y = _binary(probs, labels)
    return lambda: {"value": float(curve(y, p, n_bins=10)[0][0])}


def _fastest(ways: list[Callable[[], Any]]) -> Callable[[], Any]:
    """Return the way that took least, each run once for what is compiled and three times more."""
    for way in ways:
        way()
    return min(ways, key=lambda way: min(repeat(way, number=1, repeat=3)))


def normals(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Mean CRPS of normals, by the fastest engine; less what it is under H0, as ours is."""
    import scoringrules

    mean, sd, outcomes = inputs.normals(labels)
    engines = ("numpy", "numba")
    score = _fastest(
        [partial(scoringrules.crps_normal, outcomes, mean, sd, backend=each) for each in engines]
    )
    expected = float(sd.mean()) / math.sqrt(math.pi)  # not timed
    return lambda: {"value": float(score().mean()) - expected}


def members(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Mean fair CRPS of 20 members, by the fastest engine and form; ours is less that of members."""
    import scoringrules

    drawn, outcomes = inputs.members(labels)
    score = _fastest(
        [
            partial(scoringrules.crps_ensemble, outcomes, drawn, estimator=form, backend=engine)
            for form in ("fair", "pwm", "qd", "nrg")
            for engine in ("numpy", "numba")
        ]
    )
    return lambda: {"value": float(score().mean())}


def curves(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """D-calibration of chances at the times that were seen; taking these from curves is not timed."""
    from SurvivalEVAL.evaluations.calibration.distributional import d_calibration

    rate, time, event = inputs.times(labels)
    left = np.exp(-rate * time)
    return lambda: {"pvalue": float(d_calibration(left, event)[1])}


def ranks(probs: np.ndarray, labels: np.ndarray) -> Measured:
    """Uniformity of the ranks of one parameter."""
    import torch
    from sbi.diagnostics.sbc import check_uniformity_frequentist

    drawn, outcomes = inputs.members(labels)
    given = torch.as_tensor((drawn < outcomes[:, None]).sum(axis=1))[:, None]
    return lambda: {"pvalue": float(check_uniformity_frequentist(given, inputs.MEMBERS)[0])}
