"""The table of statistics: *where* errors are sought, *what* is scored, *how* scores are combined.

A class names its row, ``class Brier(Listed, row="brier")``. The help of the command line, the
tables of the site and error messages are printed from these columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from caltest.laws import Classes, GaussianPredictions, Point, Pool, Pools, Predictive, Survival
from caltest.pvalues import Alternative

#: Alternatives of a statistic with a sign: two-sided unless one side is asked for.
SIGNED: tuple[Alternative, ...] = ("two-sided", "greater", "less")

# The question that a statistic answers.
ANY = "Is anything wrong?"
MEAN = "Too high or too low on average?"
CONFIDENCE = "Over- or underconfident, too narrow or too wide?"
ALONG = "Is one probability wrong somewhere along its range?"
SIZE = "How large is the error?"
WHERE = "Where is it wrong, when nobody has named the groups?"
NUMBERS = "Are predicted distributions of numbers wrong?"
TIMES = "Are predicted times wrong?"
POINTS = "Are point forecasts wrong?"
ORDER = "Do errors follow errors, in the order of time?"


def row(
    name: str, question: str, where: str, what: str, how: str, source: str, measures: str, **more: Any
) -> dict[str, Any]:
    """Return the columns of a statistic; ``more`` overrides defaults of `Statistic`."""
    columns = {"name": name, "question": question, "where": where, "what": what, "how": how}
    return columns | {"source": source, "measures": measures} | more


#: One probability: with more than two classes, the top class's unless the user names a lens.
event = partial(row, default_lens="top_label")
number = partial(row, laws=(Predictive,))
pit = partial(number, of_quantiles=True)
feature = partial(event, laws=(Classes, Predictive))
vector = partial(row, laws=(Pools,), alternatives=SIGNED)
time = partial(row, laws=(Survival,), of_seen=True)
point = partial(row, laws=(Point,))
EVIDENCE = "evidence of its strongest component, −log of a tail probability"
SKCE = "squared kernel calibration error"

# fmt: off
TABLE: dict[str, dict[str, Any]] = {each["name"]: each for each in (
    # for classes
    row("omnibus", ANY, "several", "several", "strongest evidence", "Westfall and Young 1993", EVIDENCE,
        laws=(Classes, Predictive), of_quantiles=True, of_parts=True),
    row("skce_uq", ANY, "pairs", "residuals", "mean over i ≠ j", "Widmann et al. 2019", SKCE,
        laws=(Classes, GaussianPredictions, Pool)),
    row("skce_b", ANY, "pairs", "residuals", "mean", "Widmann et al. 2019", SKCE),
    row("skce_ul", ANY, "disjoint pairs", "residuals", "mean", "Widmann et al. 2019", SKCE),
    row("ucme", ANY, "test locations", "residuals", "sum of squares", "Widmann et al. 2021",
        "squared unnormalised calibration mean embedding", of_parts=True),
    event("mmce", ALONG, "pairs", "residual", "mean", "Kumar et al. 2018",
        "squared maximum mean calibration error"),
    row("ckce", ANY, "pairs", "residuals", "ridge regression", "Moskvichev and Sejdinovic 2025",
        "conditional kernel calibration error"),
    row("jkce", ANY, "pairs", "residuals", "mean over i ≠ j", "Moskvichev and Sejdinovic 2025",
        "joint kernel calibration error", laws=(Classes,)),
    row("ece", SIZE, "bins", "residuals", "mean size", "Guo et al. 2017", "expected calibration error",
        of_parts=True),
    row("mce", SIZE, "bins", "residuals", "largest size", "Naeini et al. 2015",
        "maximum calibration error", of_parts=True),
    event("ace", SIZE, "bins of equal mass", "residuals", "mean size", "Nixon et al. 2019",
        "adaptive calibration error", of_parts=True),
    event("esce", MEAN, "everywhere", "residual", "mean", "Sumler et al. 2025",
        "expected signed calibration error, observed less predicted",
        alternatives=SIGNED, monotone=True, of_parts=True),
    row("ece_squared", SIZE, "bins", "residuals", "mean square", "Kumar et al. 2019",
        "squared expected calibration error", of_parts=True),
    row("ece_debiased", SIZE, "bins", "residuals", "mean square less variance", "Kumar et al. 2019",
        "debiased squared expected calibration error", of_parts=True),
    event("ece_sweep", SIZE, "bins, as many as rise", "residual", "mean size", "Roelofs et al. 2022",
        "expected calibration error in as many bins as leave observed rates in order"),
    row("classwise_ece", SIZE, "bins of every class", "residuals", "mean size", "Kull et al. 2019",
        "class-wise expected calibration error", of_parts=True),
    event("smooth_ece", SIZE, "smoothed", "residual", "mean size", "Błasiok and Nakkiran 2024",
        "smooth expected calibration error", of_parts=True),
    event("mcb_brier", SIZE, "isotonic fit", "Brier", "gain", "Dimitriadis et al. 2021",
        "miscalibration component of the Brier score"),
    event("mcb_log", SIZE, "isotonic fit", "log score", "gain", "Dimitriadis et al. 2021",
        "miscalibration component of the log score"),
    event("ks", ALONG, "order", "residual", "maximum", "Gupta et al. 2021",
        "Kolmogorov–Smirnov calibration error", of_parts=True),
    event("kuiper", ALONG, "order", "residual", "range", "Arrieta-Ibarra et al. 2022",
        "Kuiper calibration error", of_parts=True),
    event("scan", ALONG, "ranges", "residual", "largest z", "Dümbgen and Spokoiny 2001",
        "largest standardised error of any range of the scores", monotone=True, sided="side"),
    event("max_bin", ALONG, "bins", "residual", "largest z", "", "largest standardised error of a bin",
        monotone=True, sided="side"),
    event("t_cal", ALONG, "bins of all scales", "residual", "largest square", "Lee et al. 2023",
        "largest standardised squared error over bins of many scales"),
    row("ecd", CONFIDENCE, "everywhere", "log score", "mean", "Sumler et al. 2025",
        "entropic calibration difference, overconfident above 0",
        alternatives=SIGNED, laws=(Classes, Predictive), of_parts=True),
    row("log_score", CONFIDENCE, "everywhere", "log score", "mean", "Good 1952",
        "logarithmic score less its expectation if calibrated, overconfident above 0",
        alternatives=SIGNED, laws=(Classes, Predictive), of_parts=True),
    row("brier", CONFIDENCE, "everywhere", "Brier", "mean", "Brier 1950",
        "Brier score less its expectation if calibrated, overconfident above 0",
        alternatives=SIGNED, of_parts=True),
    row("spiegelhalter", CONFIDENCE, "everywhere", "Brier", "z", "Spiegelhalter 1986",
        "Spiegelhalter's z, overconfident above 0", alternatives=SIGNED, of_parts=True),
    event("hosmer_lemeshow", ALONG, "bins", "residual", "χ²", "Hosmer and Lemeshow 1980",
        "Hosmer and Lemeshow's chi-square"),
    event("citl", MEAN, "everywhere", "residual", "z", "Cox 1958",
        "calibration in the large, observed less predicted, standardised",
        alternatives=SIGNED, monotone=True, of_parts=True),
    event("cox", ALONG, "everywhere", "log score", "χ² of a logistic fit", "Cox 1958",
        "chi-square of recalibration, intercept 0 and slope 1"),
    # for features
    feature("feature_scan", WHERE, "slices by features", "residual", "largest root",
        "Westfall and Young 1993", "largest root of the likelihood ratio of any slice by features"),
    feature("feature_ridge", WHERE, "kernel of features", "residual", "kernel ridge regression",
        "Berrett and Wang 2022", "how well features and the prediction foretell residuals"),
    # for numbers
    pit("pit_ks", NUMBERS, "levels", "PIT", "largest", "Rosenblatt 1952",
        "largest distance of the PIT from uniform"),
    pit("pit_kuiper", NUMBERS, "levels", "PIT", "range", "Kuiper 1960",
        "largest error of a range of the PIT"),
    pit("pit_cvm", NUMBERS, "levels", "PIT", "mean square", "",
        "mean squared distance of the PIT from uniform"),
    pit("pit_ad", NUMBERS, "levels", "PIT", "mean square of z", "",
        "mean squared distance of the PIT from uniform, over its variance"),
    number("pit_chi2", NUMBERS, "levels", "PIT", "χ² of tenths", "Hamill and Colucci 1997",
        "chi-square of the PIT's histogram"),
    pit("bias", MEAN, "levels", "PIT", "mean", "",
        "half less the mean PIT, above 0 where predictions are too high", alternatives=SIGNED),
    pit("spread", CONFIDENCE, "levels", "PIT", "mean, signed about ½", "",
        "a quarter less the mean distance of the PIT from its middle, above 0 where too wide",
        alternatives=SIGNED),
    pit("coverage", CONFIDENCE, "central intervals", "PIT", "largest z", "",
        "largest standardised error of the coverage of central intervals"),
    number("crps", NUMBERS, "everywhere", "CRPS", "mean", "Gneiting and Raftery 2007",
        "continuous ranked probability score less its expectation, above 0 worse than predicted",
        alternatives=SIGNED),
    number("dawid_sebastiani", CONFIDENCE, "everywhere", "squared error", "mean",
        "Dawid and Sebastiani 1999",
        "squared errors over predicted variances less 1, above 0 where predictions are too narrow",
        alternatives=SIGNED),
    row("nees", CONFIDENCE, "everywhere", "squared error", "mean", "Bar-Shalom et al. 2001",
        "normalised estimation error squared", alternatives=SIGNED, laws=(GaussianPredictions,)),
    number("uce", SIZE, "bins of variance", "squared error", "mean size", "Laves et al. 2020",
        "uncertainty calibration error"),
    number("ence", SIZE, "bins of variance", "squared error", "mean share", "Levi et al. 2022",
        "expected normalised calibration error"),
    vector("energy", NUMBERS, "everywhere", "energy score", "mean", "Gneiting and Raftery 2007",
        "energy score less its expectation, above 0 worse than predicted"),
    # for times
    number("d_calibration", TIMES, "levels", "PIT", "χ² of tenths", "Haider et al. 2020",
        "chi-square of tenths of the PIT, per row"),
    time("events", TIMES, "everywhere", "events less expected", "mean", "Crowson et al. 2016",
        "events observed less expected, above 0 where risks are too low",
        alternatives=SIGNED),
    time("event_slope", TIMES, "ranks of risk", "events less expected", "mean", "Crowson et al. 2016",
        "events observed less expected by rank of risk, above 0 where risks differ too little",
        alternatives=SIGNED),
    time("gnd", TIMES, "strata of risk", "Kaplan–Meier less risk", "χ²", "Demler et al. 2015",
        "Greenwood–Nam–D'Agostino chi-square of risk at a time"),
    time("ici", TIMES, "nearest risks", "Kaplan–Meier less risk", "mean size", "Austin et al. 2020",
        "mean distance of predicted from observed risk at a time"),
    time("e50", TIMES, "nearest risks", "Kaplan–Meier less risk", "median size", "Austin et al. 2020",
        "median distance of predicted from observed risk at a time"),
    time("e90", TIMES, "nearest risks", "Kaplan–Meier less risk", "90% quantile", "Austin et al. 2020",
        "90% quantile of the distance of predicted from observed risk at a time"),
    # for points
    point("point_bias", POINTS, "everywhere", "error", "mean", "",
        "mean error, forecast less outcome, above 0 where forecasts are too high", alternatives=SIGNED),
    point("point_cumulative", POINTS, "order", "error", "maximum", "Denuit et al. 2021",
        "largest mean of errors up to any forecast"),
    point("point_slope", POINTS, "everywhere", "error", "slope", "Mincer and Zarnowitz 1969",
        "slope of errors along the forecast, above 0 where forecasts lie too far apart",
        alternatives=SIGNED),
    point("point_kernel", POINTS, "kernel of the forecast", "error", "kernel ridge regression",
        "Berrett and Wang 2022", "how well the forecast foretells errors"),
    # for the order of rows
    event("runs", ORDER, "neighbours in time", "hit", "number of pairs", "Christoffersen 1998",
        "hits that follow a hit"),
    event("decay", ORDER, "all pairs", "hit", "sum of .9^gap", "",
        "pairs of hits, those near in time counting most"),
    number("autocorrelation", ORDER, "rows 1 to 5 apart", "PIT", "largest z", "Diebold et al. 1998",
        "largest standardised autocorrelation of the PIT or of its distance from a half"),
)}
# fmt: on
