"""The twelve panels of the figures of the record: designs, our tests, and other people's tests.

A panel draws calibrated data (``error=False``) or data with one planted error. Our tests return their
p-value and what the result says of it; other people's tests ("peer") are written down from formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import binom, chi2, kstest, norm, ttest_1samp

import caltest
from caltest.predictive import Members, Normal, Quantiles
from validation import clusters, numbers, points, survival
from validation._feature_designs import in_corner, named
from validation._sizes import Data
from validation.members import continuous_ranks
from validation.weights import labels_of

Array: TypeAlias = NDArray[Any]
Rng: TypeAlias = np.random.Generator
Seed: TypeAlias = np.random.SeedSequence
#: A test of a data set: its p-value, and "exact", "bound", "asymptotic", "approximate" or "peer".
Test: TypeAlias = Callable[[Any, Seed], tuple[float, str]]

RESAMPLES = 199
COMBINED = "combined test (default)"


class Panel(NamedTuple):
    """A kind of forecast: how data are drawn, the tests, and the sizes of both figures.

    ``rows`` and ``datasets`` are those of the level; ``sizes`` and ``repeated`` those of power, whose
    tests are ``shown``.
    """

    title: str
    draw: Callable[[int, bool, Rng], Any]
    tests: dict[str, Test]
    rows: int
    datasets: int
    error: str
    sizes: tuple[int, ...]
    repeated: int
    shown: tuple[str, ...]


# ------------------------------------------------------------------ tests


def ours(*statistic: Any, of: str = "", without: str = "", **more: Any) -> Test:
    """Test by :func:`caltest.test`, the part ``of`` the data; ``without`` an option: a peer."""

    def test(data: Any, draws: Seed) -> tuple[float, str]:
        own = data[of] if of else data
        given = {name: x for name, x in own.options.items() if name != without}
        given |= {"n_resamples": RESAMPLES, "rng": draws, **more}
        result = caltest.test(own.probs, own.labels, *statistic, **given)
        return result.pvalue, "peer" if without else result.guarantee

    return test


def peer(function: Callable[..., float], of: str = "", draws_too: bool = False) -> Test:
    """Return a test of other people: a function of the data, and of a generator if it draws."""

    def test(data: Any, draws: Seed) -> tuple[float, str]:
        own = data[of] if of else data
        return float(
            function(own, np.random.default_rng(draws)) if draws_too else function(own)
        ), "peer"

    return test


def audited(data: Data, draws: Seed) -> tuple[float, str]:
    """Audit, by groups or features: the joint p-value, which is exact for independent rows."""
    given = {"n_resamples": RESAMPLES, "rng": draws, "n_jobs": 1, **data.options}
    return caltest.audit(data.probs, data.labels, **given).pvalue, "exact"


def chances(data: Data) -> tuple[Array, Array]:
    """Return one probability a row, and the event: of class 1, or of the top class of more."""
    p = np.asarray(data.probs)
    if p.ndim == 2 and p.shape[1] > 2:
        return p.max(axis=1), data.labels == p.argmax(axis=1)
    return (p[:, 1] if p.ndim == 2 else p), data.labels == 1


def z_squared(data: Data, codes: Array) -> Array:
    """Return squared z-scores of mean errors of parts of the rows; weights count like copies."""
    p, y = chances(data)
    w = data.options.get("weights", np.ones(len(p)))
    w = w / w.mean()
    off, spread = (np.bincount(codes, each) for each in (w * (y - p), w * p * (1.0 - p)))
    return np.asarray(off**2 / spread)


def parts(x: Array, many: int) -> Array:
    """Return equal parts of the rows by the order of some numbers."""
    return np.asarray(many * np.argsort(np.argsort(x)) // len(x))


def hosmer_lemeshow(data: Data) -> float:
    """χ² of tenths by the predictions, with 10 degrees of freedom."""
    return float(chi2.sf(z_squared(data, parts(chances(data)[0], 10)).sum(), 10))


def spiegelhalter(data: Data) -> float:
    """Spiegelhalter's z with the normal law, of two sides."""
    p, y = chances(data)
    variance = ((1.0 - 2.0 * p) ** 2 * p * (1.0 - p)).sum()
    return float(2.0 * norm.sf(abs(((y - p) * (1.0 - 2.0 * p)).sum()) / variance**0.5))


def resampled_ece(data: Data, rng: Rng) -> float:
    """ECE of ten bins among those of bootstrapped rows with labels drawn from their predictions.

    Consistency resampling (Bröcker and Smith 2007; Vaicenavicius et al. 2019).
    """
    p, y = chances(data)
    rows = rng.integers(len(p), size=(RESAMPLES, len(p)))
    drawn = p[rows]
    simulated = (rng.random(drawn.shape) < drawn) - drawn
    cell = np.minimum((10.0 * drawn).astype(int), 9) + 10 * np.arange(RESAMPLES)[:, None]
    sums = np.bincount(cell.ravel(), simulated.ravel(), 10 * RESAMPLES).reshape(RESAMPLES, 10)
    observed = np.bincount(np.minimum((10.0 * p).astype(int), 9), y - p, 10)
    return float((np.abs(sums).sum(axis=1) >= np.abs(observed).sum()).mean())


def smallest(data: Data) -> float:
    """Take the smallest p-value of z-tests of the groups."""
    return float(chi2.sf(z_squared(data, data.options["groups"]["group"]).max(), 1))


def bonferroni(function: Callable[[Data], float], many: int) -> Test:
    """Multiply a smallest p-value by how many there are."""
    return peer(lambda data: min(1.0, many * function(data)))


def searched(data: Data) -> float:
    """Take the smallest p-value of z-tests of all fifths of all features."""
    fifths = (parts(x, 5) for x in data.options["features"].values())
    return float(chi2.sf(max(z_squared(data, each).max() for each in fifths), 1))


def asymptotic_ks(data: Data) -> float:
    """Kolmogorov–Smirnov test of PIT values."""
    return float(kstest(data.probs.cdf(data.labels)[1], "uniform").pvalue)


def interval_covers(data: Data) -> float:
    """Binomial test of how often the 95% interval holds the outcome."""
    low, high = data.probs.values[:, [1, -2]].T
    inside, n = int(((data.labels >= low) & (data.labels <= high)).sum()), len(data.labels)
    tails = binom.cdf(inside, n, 0.95), binom.sf(inside - 1, n, 0.95)
    return float(min(1.0, 2.0 * min(tails)))


def of_cells(cells: Array, shares: Array) -> float:
    """χ² of counts against equal or known shares."""
    expected = shares * len(cells)
    off = np.bincount(cells, minlength=len(shares)) - expected
    return float(chi2.sf((off**2 / expected).sum(), len(shares) - 1))


def between_quantiles(data: Data) -> float:
    """χ² of the outcomes between quantiles."""
    shares = np.diff(np.r_[0.0, numbers.LEVELS, 1.0])
    return of_cells((data.labels[:, None] > data.probs.values).sum(axis=1), shares)


def continuous(data: Data, rng: Rng) -> float:
    """Test ranks as if they were continuous numbers, as sbi's ``check_sbc``."""
    return continuous_ranks(data.probs.values, data.labels, rng)


def rank_histogram(data: Data) -> float:
    """χ² of the rank histogram."""
    ranks = (data.probs.values < data.labels[:, None]).sum(axis=1)
    return of_cells(ranks, np.full(21, 1.0 / 21.0))


def evidence(data: Data, _: Seed) -> tuple[float, str]:
    """Return one over the largest evidence so far: an alarm at α is a p-value of at most α."""
    return float(caltest.Monitor().update(data.probs, data.labels).pvalue), "bound"


def weeks(data: Data) -> float:
    """Take the smallest p-value of all weeks, each of a Hosmer–Lemeshow test; nobody adjusts it."""
    week = (slice(start, start + WEEK) for start in range(0, len(data.labels), WEEK))
    return min(hosmer_lemeshow(Data(data.probs[each], data.labels[each])) for each in week)


def students_t(data: Data) -> float:
    """Student's t test of the mean error."""
    return float(ttest_1samp(data.probs.values - data.labels, 0.0).pvalue)


# ------------------------------------------------------------------ data


def two_classes(n: int, error: bool, rng: Rng) -> Data:
    """Draw one event in ten rows; true log-odds are closer to those of one in ten than predicted."""
    p, middle = rng.beta(1.0, 9.0, n), logit(0.1)
    truth = expit(middle + 0.6 * (logit(p) - middle)) if error else p
    return Data(p, (rng.random(n) < truth).astype(int))


def ten_classes(n: int, error: bool, rng: Rng) -> Data:
    """Draw ten classes; the true odds of one of them are larger."""
    probs = rng.dirichlet(np.full(10, 0.3), n)
    truth = probs * np.r_[2.0 if error else 1.0, np.ones(9)]
    return Data(probs, labels_of(rng, truth / truth.sum(axis=1, keepdims=True)))


GROUPS = 8


def grouped(n: int, error: bool, rng: Rng) -> Data:
    """Draw eight groups; in one of them the event comes more often."""
    p, group = rng.uniform(0.05, 0.95, n), np.arange(n) % GROUPS
    truth = expit(logit(p) + 1.0 * error * (group == 0))
    return Data(p, (rng.random(n) < truth).astype(int), {"groups": {"group": group}})


def clustered(n: int, error: bool, rng: Rng) -> Data:
    """Draw clusters of ten rows; predictions of one class are too low."""
    design = clusters.Design(n // 10, 10, 2, 0.5, shift=0.6 * error)
    return clusters.draw(design, np.random.SeedSequence(int(rng.integers(2**63))))


def weighted(n: int, error: bool, rng: Rng) -> dict[str, Data]:
    """Draw rows with survey weights; and such that one in ten without the event is kept."""
    p, q = rng.random(n), rng.beta(0.3, 20.0, 10 * n)
    y = (rng.random(n) < (expit(0.7 * logit(p)) if error else p)).astype(int)
    z = (rng.random(10 * n) < q).astype(int)
    kept = rng.random(10 * n) < np.where(z == 1, 1.0, 0.1)
    return {
        "survey": Data(p, y, {"weights": rng.lognormal(0.0, 1.0, n)}),
        "sampled": Data(q[kept], z[kept], {"sampling_rates": {0: 0.1}}),
    }


def of_numbers(n: int, error: bool, rng: Rng) -> Data:
    """Draw numbers; predictions are too low by a quarter of a standard deviation."""
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return Data(Normal(mean, sd=sd), mean + sd * (rng.normal(size=n) + 0.25 * error))


def of_quantiles(n: int, error: bool, rng: Rng) -> Data:
    """Draw numbers of which 23 quantiles are predicted; all intervals are too narrow."""
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    values = mean[:, None] + sd[:, None] * norm.ppf(numbers.LEVELS)
    wide = 1.25 if error else 1.0
    return Data(Quantiles(numbers.LEVELS, values), mean + wide * sd * rng.normal(size=n))


def of_members(n: int, error: bool, rng: Rng) -> Data:
    """Draw ensembles of 20; outcomes spread a fifth more than the members."""
    centre, wide = rng.normal(size=n), 1.2 if error else 1.0
    members = centre[:, None] + rng.normal(size=(n, 20))
    return Data(Members(members), centre + wide * rng.normal(size=n))


def of_times(n: int, error: bool, rng: Rng) -> dict[str, Data]:
    """Draw times, half of them censored; hazards are a quarter larger than predicted."""
    way = "by predictors"
    wrong = "hazards × 1.25" if error else ""
    found = survival.cohort(rng, n, way, survival.scale_of(way, 0.5), wrong)
    return {
        "known": Data(found.law(True), found.outcomes),
        "unknown": Data(found.law(), found.outcomes),
        "cohort": Data(found, found.outcomes),
    }


WEEK, WEEKS = 250, 20


def stream(n: int, error: bool, rng: Rng) -> Data:
    """Draw a stream of events whose true log-odds drift away by .1 every 500 rows."""
    p = rng.beta(1.0, 4.0, n)
    truth = expit(logit(p) + 0.1 * error * np.arange(n) / 500.0)
    return Data(p, (rng.random(n) < truth).astype(int))


def featured(n: int, error: bool, rng: Rng) -> Data:
    """Draw eight features; where two of them are high, in 16% of the rows, predictions are too low."""
    x = rng.normal(size=(n, 8))
    p = expit(x[:, 0] - 1.0)
    truth = np.minimum(p + 0.2 * error * in_corner(x), 1.0)
    return Data(p, (rng.random(n) < truth).astype(int), {"features": named(x)})


def of_points(n: int, error: bool, rng: Rng) -> dict[str, Data]:
    """Draw shares near 0 and 1, too low by 5 points, normal errors, and rare events."""
    shares, even, rare = (points.DESIGNS[x](n, rng) for x in ("U-shaped", "normal", "rare events"))
    return {
        "shares": Data(shares.law("nothing", -0.05 * error), shares.y),
        "bounded": Data(shares.law("ends", -0.05 * error), shares.y),
        "even": Data(even.law("symmetric"), even.y),
        "rare": Data(rare.law("ends"), rare.y),
    }


# ------------------------------------------------------------------ panels

HL, ECE, NAIVE = "Hosmer–Lemeshow, χ²", "ECE", "combined test, clusters ignored"
BOOT = "ECE, consistency resampling"
FEATURES = "whole audit"

PANELS: dict[str, Panel] = {
    "classes": Panel(
        "Two classes: 300 rows, 1 event in 10",
        two_classes,
        {
            COMBINED: ours(), ECE: ours("ece"), "Brier score": ours("brier"),
            "kernel test": ours("skce_uq"), HL: peer(hosmer_lemeshow),
            "Spiegelhalter’s z, normal law": peer(spiegelhalter),
            BOOT: peer(resampled_ece, draws_too=True),
        },
        300, 4000, "overconfident (log-odds × 0.6 around 1 in 10)", (100, 200, 400, 800, 1600), 300,
        (COMBINED, ECE, HL, "Spiegelhalter’s z, normal law", BOOT),
    ),
    "top class": Panel(
        "Ten classes, top class: 300 rows",
        ten_classes,
        {
            COMBINED: ours(), "kernel test": ours("skce_uq"),
            "ECE of the top class": ours("ece", lens="top_label"),
            BOOT: peer(resampled_ece, draws_too=True),
        },
        300, 2000, "one class too low (odds × 2)", (50, 100, 200, 400, 800), 300,
        (COMBINED, "ECE of the top class", BOOT),
    ),
    "groups": Panel(
        "Audit of 8 groups: 400 rows",
        grouped,
        {
            "audit: joint p-value": audited, "8 z-tests, smallest p": peer(smallest),
            "8 z-tests, Bonferroni": bonferroni(smallest, GROUPS),
        },
        400, 2000, "one is too low (log-odds + 1)", (100, 200, 400, 800), 300,
        ("audit: joint p-value", "8 z-tests, Bonferroni"),
    ),
    "clusters": Panel(
        "Clusters: 100 patients × 10 rows",
        clustered,
        {
            COMBINED: ours(), "bias": ours("citl"), NAIVE: ours(without="clusters"),
            HL: peer(hosmer_lemeshow),
        },
        1000, 2000, "one class too low (log-odds + 0.6)", (200, 500, 1000, 2000), 300,
        (COMBINED, "bias", NAIVE),
    ),
    "weights": Panel(
        "Weights, by row or label: 300 rows",
        weighted,
        {
            COMBINED: ours(of="survey"), "ECE, weighted": ours("ece", of="survey"),
            "events sampled 10 times as often": ours(of="sampled"),
            "Hosmer–Lemeshow, weights as counts": peer(hosmer_lemeshow, of="survey"),
        },
        300, 2000, "overconfident (log-odds × 0.7)", (100, 200, 400, 800, 1600), 300,
        (COMBINED, "ECE, weighted", "Hosmer–Lemeshow, weights as counts"),
    ),
    "numbers": Panel(
        "Numbers: 100 normal forecasts",
        of_numbers,
        {
            COMBINED: ours(), "KS of the PIT": ours("pit_ks"), "spread": ours("spread"),
            "CRPS": ours("crps"), "KS of the PIT, asymptotic": peer(asymptotic_ks),
        },
        100, 2000, "too low (by a quarter of a standard deviation)", (25, 50, 100, 200, 400), 300,
        (COMBINED, "KS of the PIT, asymptotic"),
    ),
    "quantiles": Panel(
        "Quantiles: 23 of them, 100 rows",
        of_quantiles,
        {
            COMBINED: ours(), "KS of the PIT": ours("pit_ks"), "coverage": ours("coverage"),
            "cells between quantiles, χ²": peer(between_quantiles),
            "95% interval, binomial": peer(interval_covers),
        },
        100, 2000, "too narrow (outcomes spread × 1.25)", (50, 100, 200, 400, 800), 300,
        (COMBINED, "coverage", "cells between quantiles, χ²", "95% interval, binomial"),
    ),
    "members": Panel(
        "Ensembles of 20 draws: 300 rows",
        of_members,
        {
            COMBINED: ours(), "KS of ranks": ours("pit_ks"), "spread": ours("spread"),
            "KS of ranks, as if continuous": peer(continuous, draws_too=True),
            "rank histogram, χ²": peer(rank_histogram),
        },
        300, 2000, "too narrow (outcomes spread × 1.2)", (50, 100, 200, 400, 800), 300,
        (COMBINED, "spread", "KS of ranks, as if continuous", "rank histogram, χ²"),
    ),
    "times": Panel(
        "Times, half censored: 100 rows",
        of_times,
        {
            COMBINED: ours(of="unknown"), "combined, follow-up known": ours(of="known"),
            "D-calibration, our imputation": ours("d_calibration", of="unknown"),
            "D-calibration, usual": peer(lambda x: survival.spread_mass(x.probs), of="cohort"),
        },
        100, 2000, "too late (hazards × 1.25)", (50, 100, 200, 400), 300,
        (COMBINED, "combined, follow-up known", "D-calibration, usual"),
    ),
    "monitoring": Panel(
        "Monitoring: any alarm in 5 000 rows",
        stream,
        {
            "Monitor": evidence, "weekly tests, unadjusted": peer(weeks),
            "weekly tests, Bonferroni": bonferroni(weeks, WEEKS),
        },
        5000, 2000, "slow drift (log-odds + 0.1 every 500 rows)", (500, 1000, 2000, 4000),
        300, ("Monitor", "weekly tests, unadjusted", "weekly tests, Bonferroni"),
    ),
    "features": Panel(
        "Slices of 8 features: 200 rows",
        featured,
        {
            FEATURES: audited, "scan of slices": ours("feature_scan"),
            "40 z-tests of slices, smallest p": peer(searched),
        },
        200, 2000, "a corner too low (16% of rows, 20 points)", (200, 400, 800), 300,
        (FEATURES, "40 z-tests of slices, smallest p"),
    ),
    "points": Panel(
        "Point forecasts: 200 rows",
        of_points,
        {
            "symmetric errors": ours("point_bias", of="even"),
            "nothing known": ours("point_bias", of="shares"),
            "ends known": ours("point_bias", of="bounded"), "t test": peer(students_t, of="shares"),
            "rare events, ends known": ours("point_bias", of="rare"),
            "rare events, t test": peer(students_t, of="rare"),
        },
        200, 4000, "too low (by 5 points of 100)", (100, 200, 400, 800, 1600), 300,
        ("nothing known", "ends known", "t test"),
    ),
}  # fmt: skip
