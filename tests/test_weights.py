"""Rows that count differently: every statistic, against the rows that their weights stand for."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, kstest
from support import binomial_limits, central_moments, dirichlet, every_outcome, labels_from, some_fast

import caltest
from caltest import InputError, binning
from caltest.data import Rows, sample
from caltest.files import scan
from caltest.forms import HasMoments, LinearSum
from caltest.kernels import Exponential, Gaussian, LinearGaussian
from caltest.lenses import find_lens, through
from caltest.nulls import NULLS
from caltest.statistics import (
    ACE,
    CKCE,
    ECE,
    MCE,
    STATISTICS,
    UCME,
    BiasedSKCE,
    LinearSKCE,
    Omnibus,
    Statistic,
    UnbiasedSKCE,
)
from caltest.tolerance import one_sided

PROBS = dirichlet(60, 3, 0, 0.7)
LABELS = labels_from(PROBS, np.random.default_rng(1))
WEIGHTS = np.random.default_rng(2).exponential(size=60)
P = PROBS[:, 1]
Y = (LABELS == 1).astype(int)
show = caltest.ReliabilityDisplay.from_predictions


def estimate(statistic, probs=PROBS, labels=LABELS, weights=None, **options):
    return caltest.estimate(probs, labels, statistic, weights=weights, **options)


# ------------------------------------------------------------------ every statistic


@pytest.mark.parametrize("statistic", STATISTICS)
def test_weights_change_the_value(statistic):
    lens = {"lens": "top_label"} if statistic == "mce" else {}  # else each bin holds one row
    found = estimate(statistic, weights=WEIGHTS, **lens)
    assert found != pytest.approx(estimate(statistic, **lens), rel=1e-6)
    assert estimate(statistic, weights=7.3 * WEIGHTS, **lens) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_equal_weights_change_no_bit(statistic):
    plain, equal = (
        caltest.test(PROBS, LABELS, statistic, weights=w, n_resamples=39, rng=3)
        for w in (None, np.full(60, 2.5))
    )
    assert plain.to_dict(draws=True) == equal.to_dict(draws=True)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_weight_of_0_leaves_the_row_out(statistic):
    some = np.append(np.ones(59), 0.0)
    assert estimate(statistic, weights=some) == estimate(statistic, PROBS[:59], LABELS[:59])
    result = caltest.test(PROBS, LABELS, statistic, weights=some, n_resamples=19, rng=0)
    without = caltest.test(PROBS[:59], LABELS[:59], statistic, n_resamples=19, rng=0)
    assert (result.pvalue, result.n_samples) == (without.pvalue, 59)


#: Means and V-statistics, with whatever is fitted to the rows given.
MEANS = ["ecd", "log_score", "brier", "esce", "smooth_ece", "mcb_brier", "mcb_log", "ks", "kuiper"]
COPIED = {
    **{name: name for name in [*MEANS, "ece", "mce", "ece_squared", "mmce"]},
    "ace": ACE(binning.FromEdges([0, 0.3, 0.6, 1.0])),
    "ece of bins": ECE(binning.FromEdges([0, 0.4, 1.0]), "l2"),
    "mce of bins": MCE(binning.FromEdges([0, 0.4, 1.0]), "sqeuclidean"),
    "skce_b": BiasedSKCE(Exponential(0.3)),
    "skce_b, gaussian": BiasedSKCE(Gaussian(0.3)),
    "skce_b, low rank": BiasedSKCE(Gaussian(0.3), "nystrom", 60),
    "ckce": CKCE(LinearGaussian(0.5), regularization=0.1),
    "ckce, low rank": CKCE(LinearGaussian(0.5), regularization=0.1, method="nystrom", features=60),
    "ucme": UCME(Gaussian(0.3), locations=60),
}


@pytest.mark.parametrize("name", COPIED)
def test_a_weight_of_2_is_a_row_twice(name):
    statistic = COPIED[name]
    counts = np.where(np.arange(60) % 3 == 0, 2, 1)
    if name == "ucme":  # the same locations
        statistic = statistic.fitted(Rows(PROBS))
    again = np.repeat(np.arange(60), counts)
    lens = {} if name not in ("ace", "ece of bins", "mce of bins") else {"lens": "top_label"}
    if name == "ucme":
        form = statistic.given(sample(PROBS, LABELS, weights=counts).rows)
        copies = statistic.given(Rows(PROBS[again]))
        assert form.value(LABELS) == pytest.approx(copies.value(LABELS[again]), rel=1e-9)
        return
    found = estimate(statistic, weights=counts, **lens)
    assert found == pytest.approx(estimate(statistic, PROBS[again], LABELS[again], **lens), rel=1e-7)


# ------------------------------------------------------------------ by hand


def test_pairs_by_hand():
    for probs, labels, kernel in ((PROBS, LABELS, Gaussian(0.4)), (P, Y, Exponential(0.4))):
        rows = sample(probs, labels).rows.probs
        K, w, n = kernel(rows, rows), WEIGHTS, len(rows)
        D = np.eye(rows.shape[1])[labels] - rows
        h = K * (D @ D.T) * np.outer(w, w)
        apart = h[~np.eye(n, dtype=bool)].sum()
        pairs = w.sum() ** 2 - w @ w
        assert estimate(UnbiasedSKCE(kernel), probs, labels, w) == pytest.approx(apart / pairs)
        assert estimate(BiasedSKCE(kernel), probs, labels, w) == pytest.approx(h.sum() / w.sum() ** 2)
        linear = estimate(LinearSKCE(kernel, pairing="rows"), probs, labels, w)
        i, j = np.arange(0, n, 2), np.arange(1, n, 2)
        assert linear == pytest.approx(h[i, j].sum() / (w[i] * w[j]).sum())


def test_bins_of_equal_mass_hold_equal_weight():
    rows = Rows(np.column_stack([1 - P, P]), weights=WEIGHTS)
    shares = np.bincount(binning.EqualMass(4).cells(rows), WEIGHTS) / WEIGHTS.sum()
    assert np.abs(shares - 0.25).max() < 0.5 * WEIGHTS.max() / WEIGHTS.sum() + 1e-12
    alike = Rows(rows.probs, weights=np.full(60, 3.0))
    assert (binning.EqualMass(7).cells(alike) == binning.EqualMass(7).cells(Rows(rows.probs))).all()
    halves = binning.MedianVariance(5).cells(Rows(PROBS, weights=np.ones(60)))
    assert (halves == binning.MedianVariance(5).cells(Rows(PROBS))).all()


@pytest.mark.parametrize("distance", ["tv", "euclidean"])
@pytest.mark.parametrize("rule", ["median", "median_exact", "median_full", "mean"])
def test_bandwidths_of_weights(rule, distance):
    ones = Exponential(rule, distance).fitted(PROBS, np.ones(60)).bandwidth
    assert ones == pytest.approx(Exponential(rule, distance).fitted(PROBS).bandwidth, rel=1e-9)
    found = Exponential(rule, distance).fitted(PROBS, WEIGHTS).bandwidth
    d = -np.log(Exponential(1.0, distance)(PROBS, PROBS))
    above = np.triu_indices(60, 1)
    if rule == "median":
        counts, values = np.outer(WEIGHTS, WEIGHTS)[above], d[above]
        below, upto = (counts[values < found * by].sum() for by in (1 - 1e-9, 1 + 1e-9))
        assert below <= 0.5 * counts.sum() <= upto + 1e-9
    if rule == "mean":
        assert found == pytest.approx(np.average(d[above], weights=np.outer(WEIGHTS, WEIGHTS)[above]))


def test_bandwidth_of_many_rows():
    probs = dirichlet(6000, 3, 5)
    w = np.where(np.arange(6000) < 3000, 1.0, 1e-9)
    assert Exponential().fitted(probs, w).bandwidth == pytest.approx(
        Exponential().fitted(probs[:3000]).bandwidth, rel=0.02
    )


# ------------------------------------------------------------------ p-values


SMALL = dirichlet(6, 3, 4)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", STATISTICS)
def test_moments_are_those_of_all_labels(statistic):
    """Mean, variance and skewness, where a form knows them, by enumeration."""

    w = np.array([0.2, 1.5, 0.7, 1.1, 2.0, 0.5])
    lens = find_lens(STATISTICS[statistic].default_lens)
    rows = Rows(SMALL, weights=w)
    rows = lens.show(rows).rows if lens else rows
    form = STATISTICS[statistic]().fitted(rows).given(rows)
    if not isinstance(form, HasMoments):
        return
    labels, chances = every_outcome(rows.probs)
    values = form.of_labels(labels.astype(np.uint8))
    mean, variance, third = central_moments(values, chances)
    found = form.moments()
    assert found.mean == pytest.approx(mean, abs=1e-9)
    assert found.variance == pytest.approx(variance, rel=1e-6)
    if variance > 1e-20:
        assert found.skewness == pytest.approx(third / variance**1.5, rel=1e-5, abs=1e-6)
    if isinstance(form, LinearSum):
        assert form.cumulant_generator(0.3)[0] == pytest.approx(np.log(chances @ np.exp(0.3 * values)))


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_null_answers_or_says_what_does(statistic):
    lens = find_lens(STATISTICS[statistic].default_lens)
    rows = Rows(PROBS, weights=WEIGHTS)
    form = STATISTICS[statistic]().given(lens.show(rows).rows if lens else rows)
    value = estimate(statistic, weights=WEIGHTS)
    for name, null in NULLS.items():
        options = {"null": name, "n_resamples": 19, "rng": 0, "weights": WEIGHTS}
        if null.of_clusters:
            options["clusters"] = np.arange(60) // 2
        refused = None
        if not null.fits(form):
            first = "one_per_cluster" if null.of_clusters else "monte_carlo"
            refused = f"of rows with weights is not; possible here: {first}"
        elif statistic in ("ece", "classwise_ece") and name == "cluster_signs":
            refused = r"holds [12]\.\d clusters in effect, on average, too"
        if refused:
            with pytest.raises(InputError, match=refused):
                caltest.test(PROBS, LABELS, statistic, **options)
            continue
        result = caltest.test(PROBS, LABELS, statistic, **options)
        assert 0.0 < result.pvalue <= 1.0, name
        assert name not in ("bound", "bootstrap")
        assert null.of_clusters or result.statistic == value, name


#: Whose values tie so seldom that they reach their level.
FAST = ["ecd", "ece", "kuiper", "skce_uq", "scan"]


def rejections(statistic, null, data_sets, design=3):
    found = []
    for seed in range(data_sets):
        probs = dirichlet(80, design, seed, 0.7)
        labels = labels_from(probs, np.random.default_rng([1, seed]))
        w = np.random.default_rng([2, seed]).exponential(size=80)
        options = {"null": null, "weights": w, "n_resamples": 39, "rng": seed}
        found.append(caltest.test(probs, labels, statistic, **options).pvalue)
    return np.array(found)


@pytest.mark.parametrize("statistic", some_fast(STATISTICS, "ecd", mark="level"))
def test_level_of_every_statistic(statistic):
    found = rejections(statistic, "monte_carlo", 200)
    for level in (0.05, 0.1, 0.2):
        low, high = binomial_limits(200, level)
        assert (low if statistic in FAST else 0.0) <= np.mean(found <= level + 1e-12) <= high


@pytest.mark.level
@pytest.mark.parametrize(
    ("statistic", "null"),
    [
        ("skce_uq", "moments"), ("skce_b", "moments"), ("ecd", "moments"), ("ece_squared", "moments"),
        ("citl", "normal"), ("kuiper", "brownian"), ("hosmer_lemeshow", "chi2"),
        ("skce_ul", "normal"),
    ],
)  # fmt: skip
def test_level_of_analytic_nulls(statistic, null):
    found = rejections(statistic, null, 400, 2)
    assert np.mean(found <= 0.05) <= 0.1
    if null == "moments":
        assert kstest(found, "uniform").pvalue > 1e-4


# ------------------------------------------------------------------ the door


def test_a_column_of_weights():
    assert estimate("brier", weights=WEIGHTS[:, None]) == estimate("brier", weights=WEIGHTS)


def test_the_result_shows_the_effective_number_of_rows():
    result = caltest.test(PROBS, LABELS, "brier", weights=WEIGHTS, n_resamples=9, rng=0)
    effective = WEIGHTS.sum() ** 2 / (WEIGHTS @ WEIGHTS)
    assert result.parameters["effective_n"] == pytest.approx(effective)
    assert f"effective n = {effective:.0f} of 60" in " ".join(result.summary().split())


def test_functions_of_ones_own():
    def mean(probs, labels, weights):
        return abs(np.average((labels == 0) - probs[:, 0], weights=weights))

    def plain(probs, labels):
        return abs(np.mean((labels == 0) - probs[:, 0]))

    result = caltest.test(PROBS, LABELS, mean, weights=WEIGHTS, n_resamples=19, rng=0)
    other = caltest.test(PROBS, LABELS, "esce", lens="class:0", weights=WEIGHTS, n_resamples=19, rng=0)
    assert result.statistic == pytest.approx(abs(other.statistic))
    assert result.name == "mean"
    with pytest.raises(InputError, match="no weights"):
        caltest.test(PROBS, LABELS, plain, weights=WEIGHTS)
    assert estimate(mean) == pytest.approx(estimate(plain))
    assert estimate(plain, weights=np.ones(60)) == estimate(plain)


def _table(predictions, weights):
    """The mean of (class 1) less predicted, by weights that need not be those of the rows."""
    table = np.repeat(-predictions.probs[:, 1:2], predictions.n_classes, axis=1)
    table[:, 1] += 1.0
    return LinearSum(table * (weights / weights.sum())[:, None], predictions.probs)


@dataclass(frozen=True)
class Ignoring(Statistic):
    """Written as if rows had no weights."""

    name: ClassVar[str] = "own"
    measures: ClassVar[str] = "surplus of class 1"
    alternatives: ClassVar = ("two-sided", "greater", "less")
    of_parts: ClassVar = True

    def given(self, predictions):
        return _table(predictions, np.ones(predictions.n_samples))


@dataclass(frozen=True)
class Opaque(Ignoring):
    """The same as a form that the engine cannot look into."""

    def given(self, predictions):
        return caltest.statistics.FunctionStatistic(two).given(predictions)


@dataclass(frozen=True)
class Derived(caltest.statistics.Brier):
    """What the base class does with weights, its own `given` does not."""

    def given(self, predictions):
        return Ignoring.given(self, predictions)


@dataclass(frozen=True)
class Using(Ignoring, takes_weights=True):
    def given(self, predictions):
        return _table(predictions, predictions.weights)


@dataclass(frozen=True, slots=True)
class Declared(Ignoring):
    """Declared inside, in a class that `slots` makes twice."""

    takes_weights: ClassVar = True

    def given(self, predictions):
        return _table(predictions, predictions.weights)


def two(probs, labels):
    return (labels == 1).mean() - probs[:, 1].mean()


def binned(probs, labels, bins=10):
    """Its third argument is something else."""
    return two(probs, labels) + bins


def keyword(probs, labels, *, weights=None):
    return two(probs, labels)


def three(probs, labels, weights=None):
    return np.average((labels == 1) - probs[:, 1], weights=weights)


def _of_file(own, weights, folder, monkeypatch):
    monkeypatch.setattr("caltest.testing.HELD_UP_TO", 10)
    frame = pd.DataFrame(PROBS, columns=list("abc")).assign(
        label=np.array(list("abc"))[LABELS], w=weights
    )
    frame.to_parquet(folder / "rows.parquet")
    stored = scan(folder / "rows.parquet", columns=list("abc"), weights="w")
    return caltest.test(stored, None, own, n_resamples=9, rng=0)


CALLS = {
    "test": lambda own, w, *_: caltest.test(PROBS, LABELS, own, weights=w, n_resamples=9, rng=0),
    "lens": lambda own, w, *_: caltest.test(P, Y, own, lens="class:1", weights=w, n_resamples=9, rng=0),
    "estimate": lambda own, w, *_: estimate(own, weights=w),
    "clusters": lambda own, w, *_: caltest.estimate(
        PROBS, LABELS, own, weights=w, clusters=np.arange(60) // 2
    ),
    "score": lambda own, w, *_: caltest.scorer(own)(_Stated(), PROBS, LABELS, sample_weight=w),
    "compare": lambda own, w, *_: caltest.compare(
        {"a": PROBS, "b": PROBS[:, [1, 0, 2]]}, LABELS, own, weights=w
    ),
    "audit": lambda own, w, *_: caltest.audit(
        PROBS, LABELS, lenses="canonical", statistics=["ecd", own], weights=w, n_resamples=99, rng=0
    ),
    "file": _of_file,
}


class _Stated:
    def predict_proba(self, X):
        return X


@pytest.mark.parametrize(
    "own",
    [Ignoring(), Opaque(), Derived(), two, binned, keyword],
    ids=lambda own: getattr(own, "__name__", type(own).__name__),
)
@pytest.mark.parametrize("call", CALLS)
def test_a_statistic_of_ones_own_that_does_not_say_so_takes_no_weights(
    call, own, tmp_path, monkeypatch
):
    CALLS[call](own, np.full(60, 2.0), tmp_path, monkeypatch)
    with pytest.raises(InputError, match=r"no weights[;,] .*(takes_weights=True|labels, weights)"):
        CALLS[call](own, WEIGHTS, tmp_path, monkeypatch)


SAYING = {"said": Using(), "inside": Declared(), "a function": three}


@pytest.mark.parametrize("own", SAYING.values(), ids=SAYING)
def test_one_that_says_so_is_weighted(own, tmp_path, monkeypatch):
    expected = np.average((LABELS == 1) - PROBS[:, 1], weights=WEIGHTS)
    for call in ("test", "estimate", "file"):
        found = CALLS[call](own, WEIGHTS, tmp_path, monkeypatch)
        assert getattr(found, "statistic", found) == pytest.approx(expected)
        assert expected != pytest.approx(estimate(own), rel=0.1)
    CALLS["compare"](own, WEIGHTS)
    CALLS["audit"](own, WEIGHTS)


@pytest.mark.parametrize("name", some_fast(SAYING, "said", mark="level"))
def test_one_that_says_so_is_exact(name):
    rejected = {"right": 0, "wrong": 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        probs, weights = rng.dirichlet(np.ones(3), 60), rng.exponential(size=60)
        right = labels_from(probs, rng)
        for kind, labels in (("right", right), ("wrong", np.where(rng.random(60) < 0.3, 1, right))):
            options = {"alternative": "two-sided", "weights": weights, "n_resamples": 99, "rng": seed}
            rejected[kind] += caltest.test(probs, labels, SAYING[name], **options).pvalue <= 0.05
    # 10 are expected; beyond 23 lies less than 1e-4 of their binomial law
    assert rejected["right"] <= binom.ppf(1 - 1e-4, 200, 0.05) == 23
    assert rejected["wrong"] >= 100


def test_impossible_labels_are_named_by_their_places():
    p = np.array([0.5, 0.5, 0.0, 0.4])
    result = caltest.test(p, [0, 1, 1, 0], "ecd", weights=[0, 1, 2, 1], n_resamples=9, rng=0)
    assert any("counting from 0: 2" in note for note in result.warnings)
    result = caltest.test(p, [0, 1, 1, 0], "ecd", weights=[1, 1, 0, 2], n_resamples=9, rng=0)
    assert np.isfinite(result.statistic)


def test_distributions_of_numbers_take_weights():
    predicted = caltest.predictive.GaussianPredictions([0.0, 1.0], [1.0, 1.0])
    assert caltest.estimate(predicted, [1.0, 3.0], "nees", weights=[1, 2]) == pytest.approx(3.0)
    with pytest.raises(InputError, match="weights has 1 entry"):
        caltest.test(predicted, [0.0, 1.0], "nees", weights=[1])


def test_groups_of_rows_that_count():
    groups = np.arange(60) % 2
    weights = np.append(np.ones(59), 0.0)
    found = estimate(CKCE(groups=groups), weights=weights)
    assert found == estimate(CKCE(groups=groups[:59]), PROBS[:59], LABELS[:59])


@pytest.mark.slow
@pytest.mark.parametrize("statistic", some_fast(["skce_uq", "skce_b", "omnibus"], "skce_uq"))
@pytest.mark.parametrize("spread", some_fast([1.0, 4.0], 4.0))
def test_low_rank_is_near_the_kernel(statistic, spread):
    probs = dirichlet(4500, 3, 9)
    labels = labels_from(probs, np.random.default_rng(0))
    w = np.random.default_rng(1).exponential(size=4500) ** spread
    if statistic in ("skce_uq", "skce_b"):
        kind = {"skce_uq": UnbiasedSKCE, "skce_b": BiasedSKCE}[statistic]
        low, whole = (
            caltest.test(probs, labels, kind(approximation=by), null="moments", weights=w)
            for by in ("nystrom", None)
        )
        assert low.statistic == pytest.approx(whole.statistic, rel=0.12, abs=2e-6)
        assert low.pvalue == pytest.approx(whole.pvalue, abs=0.03)
    if statistic == "omnibus":
        options = {"weights": w, "n_resamples": 99, "rng": 0}
        for part in caltest.test(probs, labels, Omnibus(approximation="nystrom"), **options).parts:
            assert 0.0 < part.pvalue <= 1.0


# ------------------------------------------------------------------ beside tests


def test_tables_of_bins():
    p, y, w = P[:40], Y[:40], WEIGHTS[:40]
    table = caltest.bin_table(p, y, bins=4, weights=w)
    cells = np.minimum(np.ceil(p * 4).astype(int) - 1, 3)
    for b in np.unique(cells):
        own, row = cells == b, table.iloc[b]
        assert row["count"] == own.sum()
        assert row["share"] == pytest.approx(w[own].sum() / w.sum())
        assert row["confidence"] == pytest.approx(np.average(p[own], weights=w[own]))
        assert row["frequency"] == pytest.approx(np.average(y[own], weights=w[own]))
    for column, statistic in (("ece", None), ("esce", "esce"), ("ecd", "ecd")):
        rule = statistic or ECE(binning.EqualWidth(4))
        assert table[column].iloc[-1] == pytest.approx(estimate(rule, p, y, w))
    plain, equal = (caltest.bin_table(p, y, weights=each) for each in (None, np.full(40, 2.0)))
    assert plain.equals(equal)


def test_the_line_that_recalibrates():
    sure = caltest.simulation.tempered(n_samples=600, alpha=(1.0, 1.0), temperature=0.5, rng=0)
    counts = np.where(np.arange(600) % 3 == 0, 2, 1)
    again = np.repeat(np.arange(600), counts)
    found = caltest.recalibration(sure.probs, sure.labels, weights=counts)
    copies = caltest.recalibration(sure.probs[again], sure.labels[again])
    for name in ("intercept", "slope", "in_the_large"):
        assert getattr(found, name) == pytest.approx(getattr(copies, name), abs=1e-6)
        assert getattr(found, f"{name}_se") > getattr(copies, f"{name}_se")  # copies are no rows
    alike = caltest.recalibration(sure.probs, sure.labels)
    assert found.slope_se == pytest.approx(alike.slope_se, rel=0.15)
    assert found.effective_n == pytest.approx(counts.sum() ** 2 / (counts**2).sum())
    assert found.test_slope.pvalue < 1e-3
    assert "Wald" in found.summary()
    equal = caltest.recalibration(sure.probs, sure.labels, weights=np.full(600, 3))
    assert equal.to_dict() == alike.to_dict()


@pytest.mark.level
def test_tests_of_the_line_keep_their_level():
    found = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 300)
        fit = caltest.recalibration(p, rng.random(300) < p, weights=rng.exponential(size=300))
        tests = (fit.test_both, fit.test_in_the_large, fit.test_slope)
        found.append([each.pvalue for each in tests])
    assert (np.mean(np.array(found) <= 0.05, axis=0) < 0.1).all()


def test_models_are_compared():
    models = {"a": PROBS, "b": 0.5 * PROBS + 0.5 / 3}
    options = {"statistic": "brier"}
    found = caltest.compare(models, LABELS, weights=WEIGHTS, **options)
    for name, value in zip(found.names, found.values, strict=True):
        assert value == pytest.approx(estimate("brier", models[name], LABELS, WEIGHTS))
    assert any("effective n" in note for note in found.warnings)
    equal, alike = (caltest.compare(models, LABELS, weights=w, **options) for w in (np.ones(60), None))
    assert equal.to_dict() == alike.to_dict()
    one, other = (sample(PROBS, LABELS, weights=w).rows for w in (WEIGHTS, WEIGHTS[::-1]))
    with pytest.raises(InputError, match="different weights"):
        caltest.compare({"a": one, "b": other}, LABELS, **options)


def test_rows_of_weight_0_are_left_out_and_said():
    weights, models = np.where(np.arange(60) < 9, 0.0, 1.0), {"a": P, "b": 0.9 * P}
    found = (
        caltest.test(P, Y, "ecd", n_resamples=19, weights=weights, rng=0),
        caltest.audit(P, Y, n_resamples=99, weights=weights, rng=0),
        caltest.compare(models, Y, "ecd", weights=weights),
    )
    for result in found:
        assert sum("Left out: 9 of 60 rows, whose weight is 0." in x for x in result.warnings) == 1


# ------------------------------------------------------------------ tolerance


def too_high(seed, by):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.2, 0.9, 150)
    return p, (rng.random(150) < p - by).astype(int), rng.exponential(size=150)


@pytest.mark.parametrize(
    "statistic", some_fast(["scan", "max_bin", "citl", "esce"], "citl", mark="level")
)
def test_a_tolerance_is_exact_at_its_edge(statistic):
    """The hardest model within the tolerance is rejected as often as the level says."""
    found = []
    for seed in range(200):
        p, labels, w = too_high(seed, 0.1)
        options = {"tolerance": 0.1, "alternative": "over", "n_resamples": 39, "rng": seed}
        found.append(caltest.test(p, labels, statistic, weights=w, **options).pvalue)
    low, high = binomial_limits(200, 0.2)
    assert low <= np.mean(np.array(found) <= 0.2 + 1e-12) <= high


@pytest.mark.parametrize("side", ["over", "under"])
@pytest.mark.parametrize("statistic", ["scan", "max_bin", "citl", "esce"])
def test_monotone_statistics_stay_so(statistic, side):
    measure, _ = one_sided(STATISTICS[statistic](), side)
    rows = sample(P, Y, weights=WEIGHTS).rows
    form = measure.fitted(rows).given(rows)
    labels = np.random.default_rng(0).integers(0, 2, 60)
    values = [form.value(labels)]
    for place in np.flatnonzero(labels == 0):
        labels[place] = 1
        values.append(form.value(labels))
    falls = statistic in ("scan", "max_bin") and side == "over"
    assert (np.diff(values) * (-1 if falls else 1) >= -1e-12).all()


# ------------------------------------------------------------------ pictures


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("curve", ["binned", "corp"])
def test_reliability_of_rows_that_count(curve):
    rule = {"binning": binning.EqualWidth(4)} if curve == "binned" else {}
    (panel,) = show(P, Y, curve=curve, weights=WEIGHTS, n_resamples=199, rng=0, **rule).panels
    if curve == "binned":
        table = caltest.bin_table(P, Y, bins=4, weights=WEIGHTS).dropna().iloc[:-1]
        assert panel.observed == pytest.approx(table["frequency"].to_numpy())
        assert panel.predicted == pytest.approx(table["confidence"].to_numpy())
    name = "mcb_brier" if curve == "corp" else ECE(binning.EqualWidth(4))
    assert panel.result.statistic == pytest.approx(estimate(name, P, Y, WEIGHTS))
    counts = np.where(np.arange(60) % 3 == 0, 2, 1)
    again = np.repeat(np.arange(60), counts)
    one = show(P, Y, curve=curve, weights=counts, n_resamples=99, rng=0, **rule)
    two = show(P[again], Y[again], curve=curve, n_resamples=99, rng=0, **rule)
    assert one.panels[0].observed == pytest.approx(two.panels[0].observed)


@pytest.mark.usefixtures("pictures")
@pytest.mark.level
@pytest.mark.parametrize("curve", ["binned", "corp"])
def test_bands_of_rows_that_count_keep_their_level(curve):
    import matplotlib.pyplot as plt

    left = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p, w = rng.random(100), rng.exponential(size=100)
        display = show(
            p, rng.random(100) < p, curve=curve, weights=w, n_resamples=99, rng=seed, confidence=0.9
        )
        left.append(display.panels[0].outside.any())
        plt.close(display.figure_)
    assert np.mean(left) <= binomial_limits(200, 0.1)[1]


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize("power", [15, 60, 77, 160, 300, 320])
@pytest.mark.parametrize("statistic", ["omnibus", "t_cal", "citl", "skce_uq"])
def test_what_is_nothing_beside_the_others_changes_nothing(statistic, power):
    weights = np.where(np.arange(60) < 30, WEIGHTS, WEIGHTS * 10.0**-power)
    alone = np.where(np.arange(60) < 30, WEIGHTS, 0.0)
    found, held = (
        caltest.test(P, Y, statistic, weights=w, n_resamples=19, rng=1, null="monte_carlo")
        for w in (weights * 1e-3, alone)
    )
    assert found.statistic == pytest.approx(held.statistic, rel=1e-9, abs=1e-12)


def test_audits_and_comparisons_of_weights_that_differ_without_end():
    low = np.array([1e-12, 1e-77, 1e-100, 1e-200, 1e-308])
    groups = {"g": np.arange(60) // 12}
    for weights in (WEIGHTS * low[np.arange(60) // 12], WEIGHTS * np.repeat([1e160, 1.0], 30)):
        found = caltest.audit(PROBS, LABELS, weights=weights, groups=groups, min_rows=10, rng=1)
        assert 0.0 < found.pvalue <= 1.0
        assert "rows" in found.summary()
        found = caltest.compare({"a": PROBS, "b": PROBS[:, ::-1]}, LABELS, weights=weights)
        assert "a" in found.summary()
    single = np.where(np.arange(60) == 7, 1e160, 1.0)
    with pytest.raises(InputError, match="as one is more than 1e60 times every other; two rows"):
        caltest.audit(P, Y, weights=single)


@pytest.mark.parametrize("share", [1e-8, 1e-12, 1e-17])
def test_audits_in_which_one_row_counts_nearly_all(share):
    weights = np.where(np.arange(60) == 0, 1.0, share)
    labels = np.where(np.arange(60) == 0, 1, Y)
    audit = caltest.audit(
        P, labels, weights=weights, groups={"g": np.arange(60) // 30}, rng=1, min_rows=10
    )
    assert all(-1.0 <= view.low <= view.high <= 1.0 for view in audit.views)


@pytest.mark.parametrize("lens", ["top_label", "class:1", "top:2", "sorted"])
@pytest.mark.parametrize("statistic", ["omnibus", "skce_uq", "ckce", "ece", "ecd"])
def test_weights_go_through_lenses(statistic, lens):
    seen = through(sample(PROBS, LABELS, weights=WEIGHTS), lens)[0]
    options = {"statistic": statistic, "n_resamples": 19, "rng": 3}
    found = caltest.test(PROBS, LABELS, lens=lens, weights=WEIGHTS, **options)
    direct = caltest.test(seen.rows, seen.labels, **options)
    assert (found.statistic, found.pvalue) == pytest.approx((direct.statistic, direct.pvalue))
    assert found.parameters["effective_n"] == direct.parameters["effective_n"]
