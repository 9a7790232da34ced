"""Every recipe of README and docs keeps its level, and finds what it is for.

A row is a recipe: data shaped as its page says, right or wrong, and the page's call, with fewer rows
and draws. Of 60 right data sets (of slow ones fewer) at most the 99.99% quantile of the binomial law
at 5% may be found wrong; of WRONG ones at least the share that the row states. That pages run and
print what they show is tested elsewhere.
"""

import re
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.stats
from pages import ROOT
from scipy.special import ndtr, softmax
from scipy.stats import binom

import caltest
from caltest.predictive import (
    Distribution,
    GaussianPredictions,
    Members,
    Normal,
    Point,
    Quantiles,
    Sets,
    Survival,
)

pytestmark = pytest.mark.level

SETS, WRONG = 40, 10


class Recipe(NamedTuple):
    pages: tuple[str, ...]
    of_data: Any  #: Takes a generator, and whether data are wrong; returns a p-value, 0.0 if found.
    power: float
    sets: int


RECIPES: list[Any] = []


def recipe(*pages, power=0.9, sets=SETS):
    """Add a row: what is done on these pages."""

    def added(of_data):
        row = Recipe(pages, of_data, power, sets)
        RECIPES.append(pytest.param(row, id=f"{pages[0]}: {of_data.__name__}"))
        return of_data

    return added


AUDITS = 25
FEW = {"rng": 1, "n_resamples": 99}


def pvalue_of(*data, **options):
    return caltest.test(*data, **options, **FEW).pvalue


def audited(*data, **options):
    return caltest.audit(*data, **options, **FEW).pvalue


@pytest.mark.parametrize("row", RECIPES)
def test_level_and_power(row):
    right = [row.of_data(np.random.default_rng([seed, 0]), False) for seed in range(row.sets)]
    wrong = [row.of_data(np.random.default_rng([seed, 1]), True) for seed in range(WRONG)]
    found = np.less_equal(right, 0.05).sum(), np.less_equal(wrong, 0.05).mean()
    assert found[0] <= binom.ppf(1 - 1e-4, row.sets, 0.05), found
    assert found[1] >= row.power, found


# ------------------------------------------------------------------ what data are made of


def binary(rng, wrong, n=200, by=0.25):
    """One probability a row; wrong ones are stated too high."""
    p = rng.uniform(0.3, 0.9, n)
    return p, (rng.random(n) < p - by * wrong).astype(int)


def drawn(rng, probs):
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def several(rng, wrong, n=150, m=3, power=0.3):
    """Probabilities of classes; wrong ones are overconfident."""
    probs = rng.dirichlet(np.ones(m), n)
    truth = probs ** (power if wrong else 1.0)
    return probs, drawn(rng, truth / truth.sum(axis=1, keepdims=True))


def pairs_of(rng, n, **names):
    return {column: rng.choice(values, n) for column, values in names.items()}


# ------------------------------------------------------------------ classes


@recipe("docs/start.md", "docs/fix.md", "docs/examples/plot_9_before_after.py", sets=AUDITS)
def audit_of_a_model(rng, wrong):
    return audited(*binary(rng, wrong), materiality=0.02)


@recipe("docs/clusters.md", sets=AUDITS)
def audit_of_a_file_with_groups_and_patients(rng, wrong):
    p, label, patient = visits(rng, wrong, 60, 4)
    groups = pairs_of(rng, 240, region=["a", "b"])
    return audited(p, label, groups=groups, clusters=patient, materiality=0.02)


@recipe("docs/start.md", "docs/scale.md", "docs/fix.md")
def of_a_model(rng, wrong):
    return pvalue_of(*binary(rng, wrong))


@recipe("docs/start.md")
def confident_errors(rng, wrong):
    def share(probs, labels):
        return ((probs.max(axis=1) > 0.8) & (probs.argmax(axis=1) != labels)).mean()

    return pvalue_of(*binary(rng, wrong, by=0.4), share)


@recipe("docs/audit.md", "docs/examples/plot_3_audit.py", sets=20)
def groups_and_slices(rng, wrong):
    probs, label = several(rng, False, 300)
    groups = pairs_of(rng, 300, region=["east", "south"], age=["old", "young"])
    sharp = probs**4 / (probs**4).sum(axis=1, keepdims=True)
    probs = np.where((groups["region"] == "south")[:, None] & wrong, sharp, probs)
    return caltest.audit(probs, label, groups=groups, materiality=0.02, n_resamples=199, rng=1).pvalue


@recipe("README.md", "docs/where.md", sets=20)
def slices_that_nobody_named(rng, wrong):
    p, age = rng.beta(2, 6, 800), rng.normal(55, 18, 800)
    people = {"age": age, "lab": rng.normal(size=800), "region": rng.choice(["north", "south"], 800)}
    corner = (age > 67) & (people["region"] == "north")
    label = (rng.random(800) < np.clip(p + 0.5 * wrong * corner, 0, 1)).astype(int)
    return caltest.audit(p, label, features=people, materiality=0.05, n_resamples=199, rng=1).pvalue


@recipe("docs/recipes.md", "docs/audit.md", sets=AUDITS)
def grades_that_promise_at_most(rng, wrong):
    grade = rng.integers(0, 3, 900)
    stated = np.array([0.02, 0.05, 0.2])[grade]
    happened = (rng.random(900) < np.where((grade == 2) & wrong, 0.4, stated)).astype(int)
    limit = {"too_low": 0, "too_high": None}
    return audited(stated, happened, groups={"grade": grade}, materiality=limit, statistics="citl")


@recipe("docs/recipes.md", sets=AUDITS)
def one_confidence_and_topics(rng, wrong):
    confidence, topic = rng.beta(5, 2, 400), rng.choice(["history", "law"], 400)
    right = rng.random(400) < confidence * np.where((topic == "law") & wrong, 0.7, 1.0)
    return audited(confidence, right.astype(int), groups={"topic": topic}, event="a right answer")


@recipe("docs/audit.md", sets=AUDITS)
def tolerance_of_an_audit(rng, wrong):
    """Right here is wrong by exactly the tolerance."""
    p, label = binary(rng, True, by=0.3 if wrong else 0.05)
    return audited(p, label, tolerance=0.05)


@recipe("docs/ci.md", sets=AUDITS)
def assert_calibrated(rng, wrong):
    try:
        caltest.assert_calibrated(*several(rng, wrong, 300), lenses="top_label", materiality=0.02)
    except AssertionError:
        return 0.0
    return 1.0


@recipe("docs/recipes.md")
def full_vector(rng, wrong):
    return pvalue_of(*several(rng, wrong))


@recipe("docs/extend/statistic.md", sets=AUDITS)
def own_statistic_of_every_group(rng, wrong):
    def share(probs, labels):
        return np.mean((probs[:, 1] > 0.6) & (labels != 1))

    probs, label = several(rng, wrong, 300)
    groups = pairs_of(rng, 300, light=["day", "night"])
    return audited(probs, label, groups=groups, lenses="canonical", statistics=["skce_uq", share])


@recipe("docs/sizes.md", "docs/examples/plot_5_bounds.py", power=0.8)
def bounds(rng, wrong):
    """Some are too high, or too low, by more than 0: never of a calibrated model, in 95%."""
    probs, label = several(rng, wrong, 500, power=0.1)
    least = caltest.miscalibration_bounds(probs, label, lens="class:1", rng=1)
    return float(least.over == least.under == 0.0)


@recipe("docs/sizes.md")
def tolerance(rng, wrong):
    p, label = binary(rng, True, 400, by=0.25 if wrong else 0.02)
    return pvalue_of(p, label, tolerance=0.02, alternative="over")


@recipe("docs/sizes.md", "docs/examples/plot_5_bounds.py", power=1.0)
def certificate(rng, wrong):
    """The true error of every bin, .25, is within; a certificate of a calibrated model is smaller."""
    return float(caltest.certificate(*binary(rng, not wrong, 2000)).distance >= 0.25)


@recipe("docs/sizes.md", sets=AUDITS, power=0.5)
def squared_error(rng, wrong):
    probs, label = several(rng, wrong, 250)
    return caltest.estimate_squared_error(probs, label, lens="top_label", **FEW).pvalue


@recipe("docs/sizes.md")
def rounded_predictions(rng, wrong):
    p, label = binary(rng, wrong, 400)
    return pvalue_of(np.round(p, 1), label, rounding=0.1)


@recipe("docs/examples/plot_2_null.py", "docs/examples/plot_1_reliability.py")
def ece_of_the_top_class(rng, wrong):
    return pvalue_of(*several(rng, wrong), "ece", lens="top_label")


@recipe("docs/fix.md")
def several_candidates_by_holm(rng, wrong):
    """Two calibrated candidates, one of which sees less."""
    p, label = binary(rng, wrong)
    coarse = np.where(p > 0.6, 0.75, 0.45)
    return 2 * min([pvalue_of(each, label) for each in (p, coarse)])


@recipe("docs/fix.md", power=0.6)
def recalibration(rng, wrong):
    """Intercept and slope of a calibrated model are 0 and 1."""
    p, label = binary(rng, wrong, 500)
    return caltest.recalibration(p, label).test_both.pvalue


# ------------------------------------------------------------------ comparisons


def equals(rng, wrong, n=300):
    """Two models that are as far off as each other; or one is, and the other is not."""
    p = rng.uniform(0.3, 0.7, n)
    return {"one": p + 0.25, "other": p if wrong else p - 0.25}, (rng.random(n) < p).astype(int)


@recipe("docs/compare.md", "docs/fix.md", "docs/examples/plot_4_comparison.py", sets=AUDITS, power=0.5)
def gap(rng, wrong):
    models, label = equals(rng, wrong)
    low, _, high = caltest.compare(models, label).gap("one", "other").absolute
    return float(low <= 0.0 <= high)


@recipe("docs/compare.md", sets=AUDITS)
def errors_of_models_in_groups(rng, wrong):
    """No error is shown of a calibrated model, in any group."""
    p, label = binary(rng, wrong, 300)
    groups = pairs_of(rng, 300, region=["north", "south"])
    found = caltest.compare({"a": p, "b": p}, label, groups=groups)
    return float(max(each.absolute[0] for each in found.errors) <= 0.0)


# ------------------------------------------------------------------ dependent and weighted rows


def visits(rng, wrong, patients=50, each=4):
    """Visits share a hidden cause of their patient."""
    patient = np.repeat(np.arange(patients), each)
    p = rng.uniform(0.3, 0.9, patients * each)
    cause = np.sqrt(0.5) * (rng.normal(size=patients)[patient] + rng.normal(size=len(p)))
    return p, (ndtr(cause) < p - 0.3 * wrong).astype(int), patient


@recipe("docs/clusters.md")
def several_rows_a_patient(rng, wrong):
    p, label, patient = visits(rng, wrong, 80)
    return pvalue_of(p, label, clusters=patient)


@recipe("docs/clusters.md", sets=AUDITS, power=0.6)
def one_row_a_patient(rng, wrong):
    p, label, patient = visits(rng, wrong, 80)
    return pvalue_of(p, label, clusters=patient, null="one_per_cluster")


@recipe("docs/clusters.md")
def comonotone_guaranteed(rng, wrong):
    p, label, patient = visits(rng, wrong, 80)
    null = caltest.nulls.ComonotoneLabels(guaranteed=True)
    return pvalue_of(p, label, "citl", clusters=patient, null=null)


@recipe("docs/clusters.md")
def blocks_of_time(rng, wrong):
    """Blocks of four weeks, errors that last for days."""
    noise = rng.normal(size=28 * 50 + 4)
    errors = sum(noise[k : k + 28 * 50] for k in range(4)) / 2
    p = rng.uniform(0.3, 0.9, 28 * 50)
    label = (ndtr(errors) < p - 0.2 * wrong).astype(int)
    return pvalue_of(p, label, clusters=np.arange(28 * 50) // 28)


@recipe("docs/clusters.md", sets=AUDITS, power=0.5)
def compare_in_clusters(rng, wrong):
    """Two models that are as far off, in one direction and the other."""
    p, label, patient = visits(rng, False, 200)
    models = {"one": np.clip(p + 0.2, 0, 1), "other": p if wrong else p - 0.2}
    found = caltest.compare(models, label, "esce", clusters=patient)
    low, _, high = found.gap("one", "other").absolute
    return float(low <= 0.0 <= high)


def surveyed(rng, wrong):
    young = rng.random(300) < 0.8
    p = np.where(young, rng.beta(2, 8, 300), rng.beta(4, 4, 300))
    right = np.where(young | (not wrong), p, 0.4 * p)
    return p, (rng.random(300) < right).astype(int), np.where(young, 0.5, 3.0)


@recipe("docs/weights.md")
def survey_weights(rng, wrong):
    p, label, weight = surveyed(rng, wrong)
    return pvalue_of(p, label, "esce", weights=weight)


@recipe("docs/weights.md")
def own_function_with_weights(rng, wrong):
    def too_high(probs, labels, weights):
        return float(np.average(probs[:, 1] - labels, weights=weights))

    p, label, weight = surveyed(rng, wrong)
    return pvalue_of(p, label, too_high, weights=weight)


@recipe("docs/weights.md", sets=AUDITS)
def audit_with_weights(rng, wrong):
    p, label, weight = surveyed(rng, wrong)
    return audited(p, label, weights=weight, groups={"old": weight > 1})


@recipe("docs/sampling.md")
def kept_by_label(rng, wrong):
    p = rng.beta(0.3, 20, 10_000)
    label = (rng.random(10_000) < p * (0.4 if wrong else 1.0)).astype(int)
    kept = (label == 1) | (rng.random(10_000) < 0.01)
    return pvalue_of(p[kept], label[kept], sampling_rates={0: 0.01})


# ------------------------------------------------------------------ numbers


def numbers(rng, wrong, n=200, by=1.6):
    mean = rng.uniform(20, 100, n)
    return mean, rng.normal(mean, 10.0 * (by if wrong else 1.0))


LAWS = {
    "normal": lambda mean: Normal(mean, sd=10.0),
    "variance": lambda mean: Normal(mean, variance=100.0),
    "of SciPy": lambda mean: scipy.stats.norm(mean, 10.0),
    "a cdf": lambda mean: Distribution(scipy.stats.norm(mean, 10.0)),
}


def of_law(law):
    def test_of_numbers(rng, wrong):
        mean, demand = numbers(rng, wrong)
        return pvalue_of(LAWS[law](mean), demand)

    test_of_numbers.__name__ = f"law: {law}"
    return test_of_numbers


for _law in LAWS:
    recipe("docs/numbers.md", "docs/recipes.md", sets=AUDITS)(of_law(_law))


@recipe("docs/numbers.md", "docs/reports.md", sets=AUDITS)
def audit_of_numbers(rng, wrong):
    mean, demand = numbers(rng, wrong)
    return audited(Normal(mean, sd=10.0), demand, materiality=0.05)


@recipe("docs/numbers.md", sets=AUDITS)
def compare_numbers(rng, wrong):
    """Too narrow and too wide, as far off as each other; or one of them right: the gap of errors."""
    mean, demand = numbers(rng, False, 400)
    of_interval = scipy.stats.norm.ppf(0.9)  # states 80%; holds 65% and 95%, or 40% and 80%
    held = scipy.stats.norm.ppf([0.7, 0.9] if wrong else [0.825, 0.975])
    models = {str(k): Normal(mean, sd=10.0 * each / of_interval) for k, each in enumerate(held)}
    low, _, high = caltest.compare(models, demand).gap("0", "1").absolute
    return float(low <= 0.0 <= high)


@recipe("docs/numbers.md", "docs/recipes.md")
def quantiles_of_counts(rng, wrong):
    levels, rate = [0.025, 0.25, 0.5, 0.75, 0.975], rng.uniform(1, 20, 200)
    values = scipy.stats.poisson(rate[:, None]).ppf(levels)
    counts = rng.poisson(rate * (0.6 if wrong else 1.0))
    return pvalue_of(Quantiles(levels, values), counts)


@recipe("docs/recipes.md")
def spread_of_a_regression(rng, wrong):
    mean, outcome = numbers(rng, wrong)
    return pvalue_of(Normal(mean, sd=np.full(200, 10.0)), outcome, "spread")


@recipe("docs/recipes.md", sets=AUDITS)
def conformal_intervals_in_groups(rng, wrong):
    mean, outcome = numbers(rng, False, 300)
    groups = pairs_of(rng, 300, site=["a", "b"])
    outcome = np.where(wrong & (groups["site"] == "b"), mean + 2 * (outcome - mean), outcome)
    law = Quantiles([0.05, 0.95], scipy.stats.norm(mean[:, None], 10.0).ppf([0.05, 0.95]))
    return audited(law, outcome, lenses="interval:0.9", groups=groups, materiality=0.05)


@recipe("docs/sets.md", sets=AUDITS, power=0.8)
def coverage_of_sets(rng, wrong):
    """Wrong sets hold fewer outcomes of one class; coverage of classes is claimed."""
    label = rng.integers(0, 3, 600)
    held = rng.random(600) < np.where((label == 2) & wrong, 0.75, 0.9)
    members = np.eye(3, dtype=bool)[np.where(held, label, (label + 1) % 3)]
    return audited(Sets(members, 0.9, claims=["class"]), label)


@recipe("docs/sets.md", sets=AUDITS)
def one_calibration_set(rng, wrong):
    """Split conformal sets: given 200 calibration rows coverage is a draw from a beta law."""
    held = rng.random(800) < rng.beta(181, 20) - 0.12 * wrong
    members = np.eye(2, dtype=bool)[np.where(held, 1, 0)]
    return pvalue_of(Sets(members, 0.9, calibration_rows=200), np.ones(800, int))


@recipe("docs/numbers.md")
def event_of_a_number(rng, wrong):
    mean, demand = numbers(rng, wrong)
    return pvalue_of(Normal(mean, sd=10.0), demand + 12 * wrong, "citl", lens="above:80")


@recipe("docs/numbers.md")
def tolerance_of_an_interval(rng, wrong):
    """Wrong by as much as the tolerance, 78% in place of 80%; or by far more."""
    mean = rng.uniform(20, 100, 300)
    demand = rng.normal(
        mean, 10.0 * (2.0 if wrong else scipy.stats.norm.ppf(0.9) / scipy.stats.norm.ppf(0.89))
    )
    return pvalue_of(Normal(mean, sd=10.0), demand, tolerance=0.02, lens="interval:0.8")


@recipe("docs/examples/plot_8_densities.py", power=0.7)
def densities(rng, wrong):
    mean, outcome = numbers(rng, wrong)
    return pvalue_of(GaussianPredictions(mean, np.full(200, 100.0)), outcome, "ecd")


@recipe("docs/examples/plot_8_densities.py")
def nees(rng, wrong):
    mean, outcome = numbers(rng, wrong)
    return caltest.test(
        GaussianPredictions(mean, np.full(200, 100.0)), outcome, "nees", null="chi2"
    ).pvalue


# ------------------------------------------------------------------ ensembles


def ensemble(rng, wrong, n=200, size=20, by=1.6):
    level = rng.normal(15, 5, n)
    members = level[:, None] + rng.normal(size=(n, size))
    return Members(members), level + rng.normal(size=n) * (by if wrong else 1.0)


def paths(rng, wrong, n=100):
    steps = rng.normal(size=(n, 21, 3)).cumsum(axis=2)
    return steps[:, :20], steps[:, 20] * (1.8 if wrong else 1.0)


@recipe("docs/ensembles.md", "docs/reports.md", "docs/posteriors.md", sets=AUDITS)
def audit_of_members(rng, wrong):
    return audited(*ensemble(rng, wrong), materiality=0.05)


@recipe("docs/ensembles.md", "docs/doors.md", sets=AUDITS)
def audit_of_paths(rng, wrong):
    runs, seen = paths(rng, wrong)
    return audited(Members(runs, names=["6 h", "12 h", "18 h"]), seen)


@recipe("docs/ensembles.md", sets=12)
def lead_times_of_an_origin(rng, wrong):
    runs, seen = paths(rng, wrong, 60)
    rows = Members(runs.swapaxes(1, 2).reshape(180, 20))
    origin, lead = np.repeat(np.arange(60), 3), np.tile(["6 h", "12 h", "18 h"], 60)
    return audited(rows, seen.ravel(), clusters=origin, groups={"lead time": lead})


# ------------------------------------------------------------------ posteriors


def posterior(rng, wrong, n=150, draws=20):
    theta = rng.normal(size=(n, 2))
    data = rng.normal(theta)
    scale = np.sqrt(0.5) * (0.6 if wrong else 1.0)
    return theta, data / 2 + scale * rng.normal(size=(draws, n, 2)), data


@recipe("docs/posteriors.md", "docs/doors.md", sets=AUDITS)
def more_quantities(rng, wrong):
    theta, draws, data = posterior(rng, wrong)
    likely = [-0.5 * ((data - at) ** 2).sum(axis=-1) for at in (theta, draws)]
    quantities = {"sum": lambda at: at["intercept"] + at["slope"], "log likelihood": tuple(likely)}
    names = ["intercept", "slope"]
    return caltest.sbc(theta, draws, names=names, quantities=quantities, **FEW).pvalue


# ------------------------------------------------------------------ doors


@recipe("docs/ensembles.md", "docs/doors.md")
def scores_of_members(rng, wrong):
    return pvalue_of(*ensemble(rng, wrong), "crps")


@recipe("docs/ensembles.md", "docs/doors.md", power=0.8)
def energy_of_paths(rng, wrong):
    runs, seen = paths(rng, wrong)
    return pvalue_of(Members(runs), seen, "energy")


# ------------------------------------------------------------------ point forecasts, and order


@recipe("docs/points.md", "docs/recipes.md", "docs/examples/plot_10_points.py", sets=20)
def means_of_amounts(rng, wrong):
    x, area = rng.uniform(1, 4, 400), rng.choice(["city", "town"], 400)
    y = x * rng.gamma(4, 0.25 + 0.15 * wrong * (area == "city"))
    return audited(Point(x, low=0), y, groups={"area": area}, materiality=0.2, unit="EUR")


@recipe("docs/order.md", power=0.8)
def hits_that_follow_hits(rng, wrong):
    y, at_risk = np.zeros(500), np.zeros(500)
    for t, u in enumerate(rng.random(500)):
        stressed = t and y[t - 1] < at_risk[t - 1]
        at_risk[t], y[t] = -1 - t % 7, -1 - t % 7 + (u - (0.4 if wrong and stressed else 0.05))
    return pvalue_of(Point(at_risk, "quantile:0.05"), y, "runs", order=True)


# ------------------------------------------------------------------ times


def followed(rng, wrong, n=200):
    rate, days = rng.lognormal(-0.5, 0.5, n), np.linspace(0.05, 3.0, 60)
    event = rng.exponential(1 / (rate * (1.8 if wrong else 1.0)))
    return rate, days, np.exp(-np.outer(rate, days)), event


@recipe("docs/times.md", sets=AUDITS)
def times(rng, wrong):
    _, days, curves, event = followed(rng, wrong)
    loss = rng.exponential(2.0, 200)
    return pvalue_of(Survival(curves, days), (np.minimum(event, loss), event <= loss))


@recipe("docs/times.md", sets=20)
def audit_of_times(rng, wrong):
    _, days, curves, event = followed(rng, wrong, 300)
    loss, smoker = rng.exponential(2.0, 300), rng.random(300) < 0.3
    outcomes = np.minimum(event, loss), event <= loss
    lenses, groups = ["distribution", "until:1"], {"smoker": smoker}
    return caltest.audit(
        Survival(curves, days), outcomes, groups=groups, lenses=lenses, n_resamples=399, rng=1
    ).pvalue


@recipe("docs/times.md", "docs/reports.md", sets=AUDITS)
def audit_of_times_with_limits(rng, wrong):
    _, days, curves, event = followed(rng, wrong)
    limit = rng.uniform(1, 3, 200)
    predicted = Survival(curves, days, follow_up=limit)
    outcomes = np.minimum(event, limit), event <= limit
    return audited(predicted, outcomes, lenses=["until:0.5", "until:1"])


@recipe("docs/times.md", sets=AUDITS)
def risk_at_one_time(rng, wrong):
    rate, _, _, event = followed(rng, wrong, 300)
    loss = rng.exponential(3.0, 300)
    predicted = Survival(risk=-np.expm1(-rate), times=1.0)
    outcomes = np.minimum(event, loss), event <= loss
    return caltest.audit(predicted, outcomes, n_resamples=399, rng=1).pvalue


@recipe("docs/times.md", power=0.8)
def d_calibration(rng, wrong):
    rate, _, _, event = followed(rng, wrong)
    loss = rng.exponential(2.0, 200)
    predicted = Survival(scipy.stats.expon(scale=1 / rate))
    outcomes = np.minimum(event, loss), event <= loss
    return pvalue_of(predicted, outcomes, "d_calibration")


# ------------------------------------------------------------------ monitors: an alarm, ever


def alarm(state):
    return float(not state.alarm)


@recipe("docs/monitoring.md", "docs/reports.md", power=0.8)
def weeks_and_regions(rng, wrong):
    monitor = caltest.Monitor(alpha=0.05)
    for week in range(8):
        risk, region = rng.uniform(0.05, 0.6, 200), rng.choice(["north", "south"], 200)
        chance = risk + 0.3 * (region == "north") * (week >= 4) * wrong
        state = monitor.update(risk, rng.random(200) < chance, groups={"region": region})
    return alarm(state)


@recipe("docs/monitoring.md")
def change(rng, wrong):
    """A false alarm after 20 times as many rows, on average."""
    p = rng.uniform(0.05, 0.6, 1000)
    truth = p + 0.25 * wrong * (np.arange(1000) >= 500)
    watch = caltest.Monitor(mode="change", mean_run_length=20_000)
    return alarm(watch.update(p, rng.random(1000) < truth))


@recipe("docs/monitoring.md")
def monitored_tolerance(rng, wrong):
    p = rng.uniform(0.3, 0.9, 1500)
    labels = rng.random(1500) < p - (0.25 if wrong else 0.05)
    return alarm(caltest.Monitor(tolerance=0.05).update(p, labels))


@recipe("docs/monitoring.md")
def monitored_times(rng, wrong):
    _, days, curves, event = followed(rng, wrong, 600)
    end = rng.exponential(1.0, 600)
    outcomes = np.minimum(event, end), event <= end
    return alarm(caltest.Monitor().update(Survival(curves, days), outcomes))


@recipe("docs/monitoring.md")
def one_statistic(rng, wrong):
    return alarm(caltest.Monitor(statistic="brier").update(*several(rng, wrong, 800, 4)))


@recipe("docs/monitoring.md")
def monitored_clusters(rng, wrong):
    p, label, patient = visits(rng, wrong, 300, 4)
    return alarm(caltest.Monitor().update(p, label, clusters=patient))


@recipe("docs/monitoring.md")
def monitored_numbers(rng, wrong):
    mean, demand = numbers(rng, wrong, 600, 2.0)
    return alarm(caltest.Monitor().update(Normal(mean, sd=10.0), demand))


# ------------------------------------------------------------------ where people work


@recipe("docs/recipes.md")
def logits(rng, wrong):
    right = rng.normal(scale=1.5, size=(200, 5))
    labels = drawn(rng, softmax(right, axis=1))
    return pvalue_of(((2 if wrong else 1) * right).astype(np.float32), labels, logits=True)


@recipe("docs/recipes.md", "docs/clusters.md", sets=20)
def several_answers_to_a_question(rng, wrong):
    question = np.repeat(np.arange(100), 4)
    topic = np.array(["history", "law"])[question % 2]
    chance = rng.beta(5, 3, 100)[question]
    stated = np.round(np.clip(chance + 0.25 * wrong * (topic == "law"), 0, 1) / 0.05) * 0.05
    right = (rng.random(400) < chance).astype(int)
    return caltest.audit(
        stated, right, groups={"topic": topic}, clusters=question, rounding=0.05, n_resamples=199, rng=1
    ).pvalue


@recipe("docs/recipes.md", sets=AUDITS)
def choices_of_questions(rng, wrong):
    """Three to five choices; a choice that a question does not have has −∞."""
    scores = rng.normal(-8, 2, size=(200, 5))
    scores[np.arange(5) >= rng.integers(3, 6, 200)[:, None]] = -np.inf
    target = drawn(rng, softmax(scores / (3 if wrong else 1), axis=1))
    groups = pairs_of(rng, 200, subject=["anatomy", "law"])
    return audited(scores, target, logits=True, lenses="top_label", groups=groups)


# ------------------------------------------------------------------ plans


@recipe("docs/planning.md", sets=20)
def power_of_a_calibrated_model(rng, wrong):
    """The simulated share of rejections of a right model has 5% in its interval."""
    p = rng.dirichlet([4, 2, 1], 100)
    matters = caltest.planning.pilot(p, overconfidence=0.2 if wrong else 0.0)
    return float(caltest.power(matters, 200, "ks", n_datasets=40, rng=rng).interval[0] <= 0.05)


@recipe("docs/planning.md", sets=AUDITS, power=0.5)
def planned_within(rng, wrong):
    """A model as wrong as the limit is "within" in 5% at most; a calibrated one in 80%, as planned."""
    p = rng.beta(2, 6, 200)
    n = caltest.plan(p, materiality=0.1).n
    risk = rng.choice(p, n)
    label = (rng.random(n) < risk + 0.1 * (not wrong)).astype(int)
    return float(caltest.audit(risk, label, materiality=0.1, **FEW).verdict != "within")


# ------------------------------------------------------------------ every page

#: Pages with blocks that are of no data, or whose own blocks count levels.
WITHOUT = {
    "docs/extend/house.md": "counts one p-value anew",
    "docs/extend/null.md": "its own block counts rejections of calibrated models",
    "docs/others.md": "a command that repeats records of other packages",
    "docs/validation.md": "commands that repeat the records of levels and powers",
    "docs/examples/plot_7_power.py": "the plan of docs/planning.md",
}


def test_every_page_has_a_row_or_a_reason():
    """And every page that is named is there."""
    pages = {"README.md"}
    for path in (ROOT / "docs").rglob("*.md"):
        if re.search(r"^```(python|py|console)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            pages.add(path.relative_to(ROOT).as_posix())
    pages |= {p.relative_to(ROOT).as_posix() for p in (ROOT / "docs" / "examples").glob("*.py")}
    tested = {page for row in RECIPES for page in row.values[0].pages}
    assert tested | set(WITHOUT) == pages
    assert not tested & set(WITHOUT)
