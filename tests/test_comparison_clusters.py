"""Comparisons of rows in clusters, and of rows that were sampled by their label."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from compared import raised, tempered
from support import binomial_limits, h_matrix, some_fast
from test_clusters import GOES, clustered, made
from typer.testing import CliRunner

import caltest
from caltest import InputError
from caltest.cli import app
from caltest.comparison.equality import Resampling, clusters_of
from caltest.data import Rows, sample
from caltest.kernels import Exponential
from caltest.statistics import STATISTICS, UnbiasedSKCE

PROBS, LABELS, CODES = clustered(40, 4, 3, 0.5, 1)
MODELS = {"own": PROBS, "sharp": tempered(PROBS, 3.0), "flat": np.full_like(PROBS, 1 / 3)}
COMPARED = [name for name in GOES if STATISTICS[name].growth is not None]


def quick(statistic="ecd", models=MODELS, labels=LABELS, clusters=CODES, **options):
    options = {"n_resamples": 20, "rng": 0, **options}
    return caltest.compare(models, labels, made(statistic), clusters=clusters, **options)


# ------------------------------------------------------------------ values and errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic",
    some_fast(COMPARED, "ecd", "ece", "ks", "skce_uq", "skce_b", "omnibus", "t_cal"),
)
def test_every_statistic(statistic):
    found = quick(statistic, n_resamples=5)
    assert found.n_clusters == 40
    for name, value in zip(found.names, found.values, strict=True):
        expected = caltest.estimate(MODELS[name], LABELS, made(statistic), clusters=CODES)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert ((found.pvalues > 0) & (found.pvalues <= 1)).all()
    assert (found.if_calibrated >= 0).all()
    assert found.first_proportions.sum() == pytest.approx(1.0)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n_clusters"] == 40


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["ecd", "citl", "skce_uq"])
def test_every_row_a_cluster_is_no_clusters(statistic):
    """The same rows are drawn, and all standard errors are those of rows."""
    alone, rows = (
        quick(statistic, clusters=np.arange(len(LABELS)), size=80),
        quick(statistic, clusters=None, size=80),
    )
    few = any("Few clusters carry" in note for note in alone.warnings)  # what is rare is allowed for
    more = () if few else ("pvalues", "intervals")
    names = ("values", "standard_errors", "pair_proportions", *more)
    for name in names:
        assert getattr(alone, name) == pytest.approx(getattr(rows, name), rel=1e-9, abs=1e-14), name
    assert (alone.n_clusters, rows.n_clusters) == (len(LABELS), None)


def test_whole_clusters_are_drawn():
    codes = np.repeat([3, 1, 2, 0, 4], [2, 1, 4, 3, 1])
    rows = Rows(np.full((11, 2), 0.5), clusters=codes)
    plan = Resampling.checked("subsampling", 3, 10, 11, 5, clusters_of(rows))
    for number in range(10):
        drawn = plan.draw(number, 11)
        assert len(np.unique(codes[drawn])) == 3
        assert drawn.tolist() == np.flatnonzero(np.isin(codes, codes[drawn])).tolist()
    plan = Resampling.checked("bootstrap", None, 60, 11, 5, clusters_of(rows))
    assert plan.size == 5
    for number in range(60):
        times = np.bincount(codes[plan.draw(number, 11)], minlength=5) / np.bincount(codes)
        assert times.sum() == 5.0
        assert (times == np.round(times)).all()
        assert np.count_nonzero(times) > 1  # one cluster alone tells nothing


def test_default_sizes():
    def size(count, rows):
        codes = np.arange(count * rows) // rows
        made = Rows(np.full((len(codes), 2), 0.5), clusters=codes)
        return Resampling.checked("subsampling", None, 2, len(codes), 0, clusters_of(made)).size

    assert [size(4, 1), size(40, 5), size(2000, 1), size(1000, 10), size(100, 200)] == [
        2,
        20,
        500,
        50,
        20,
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_resamples", "near"), [(400, 0.2), pytest.param(4000, 0.06, marks=pytest.mark.slow)]
)
def test_errors_of_a_mean_are_those_of_sums_by_cluster(n_resamples, near):
    """All (40 over 39) subsamples of 39 clusters: the jackknife, by hand."""
    found = quick("brier", size=39, n_resamples=n_resamples)
    values = []
    for cluster in range(40):
        kept = cluster != CODES
        values.append([caltest.estimate(p[kept], LABELS[kept], "brier") for p in MODELS.values()])
    jackknife = np.sqrt(39.0 / 40.0 * 40.0 * np.var(values, axis=0))
    assert found.standard_errors == pytest.approx(jackknife, rel=near)


@pytest.mark.slow
def test_errors_of_pairs_are_those_of_pairs_of_clusters():
    """Of clusters of one size: Hoeffding's variance of the U-statistic with kernel Σ Σ h_ij."""
    measure = UnbiasedSKCE(Exponential(0.5))
    found = quick(measure)
    assert found.errors_from == "u_statistic"
    sums = np.eye(40)[CODES].T
    for number, probs in enumerate(MODELS.values()):
        between = sums @ h_matrix(Exponential(0.5), probs, LABELS) @ sums.T / 16.0
        np.fill_diagonal(between, 0.0)
        count, total = 40, between.sum()
        chained = (between.sum(axis=1) ** 2).sum() - (between**2).sum()
        apart = total**2 - 4.0 * chained - 2.0 * (between**2).sum()
        mean = apart / (count * (count - 1) * (count - 2) * (count - 3))
        first = max(chained / (count * (count - 1) * (count - 2)) - mean, 0.0)
        second = max((between**2).sum() / (count * (count - 1)) - mean, 0.0)
        variance = (4.0 * (count - 2) * first + 2.0 * second) / (count * (count - 1))
        assert found.values[number] == pytest.approx(total / (count * (count - 1)))
        assert found.standard_errors[number] == pytest.approx(np.sqrt(variance))


def test_errors_do_not_depend_on_the_order_of_rows():
    """Of more rows than are taken at once, cluster by cluster or mixed."""
    probs, labels, codes = clustered(150, 8, 2, 0.6, 0)
    mixed = np.random.default_rng(0).permutation(len(labels))
    found, other = (
        caltest.compare(
            {"a": raised(probs[rows], 0), "b": raised(probs[rows], 1)},
            labels[rows],
            UnbiasedSKCE(Exponential(0.5)),
            clusters=codes[rows],
            n_resamples=2,
            rng=0,
        )
        for rows in (slice(None), mixed)
    )
    assert found.standard_errors == pytest.approx(other.standard_errors)
    assert found.difference_errors == pytest.approx(other.difference_errors)
    assert found.pvalues == pytest.approx(other.pvalues)


def test_sizes_that_differ_alone_are_no_error():
    """Every pair of rows has the same h: the mean is that, however many rows a cluster has."""
    codes = np.repeat(np.arange(12), np.arange(1, 13))
    probs = np.full((len(codes), 2), 0.5)
    models = {"a": probs, "b": np.array([0.25, 0.75]) * np.ones_like(probs)}
    found = quick(UnbiasedSKCE(Exponential(0.5)), models, np.ones(len(codes), int), codes)
    assert found.values == pytest.approx([0.5, 0.125])
    assert found.standard_errors == pytest.approx([0.0, 0.0], abs=1e-9)


@pytest.mark.slow
def test_a_bias_has_the_dependence_in_it():
    same = {"a": PROBS, "b": tempered(PROBS, 1.5)}
    copies = {name: np.repeat(probs, 9, axis=0) for name, probs in same.items()}
    labels, codes = np.repeat(LABELS, 9), np.repeat(CODES, 9)
    known, alone = quick("ece", copies, labels, codes), quick("ece", copies, labels, None)
    assert (known.if_calibrated > 2.0 * alone.if_calibrated).all()
    once = quick("ece", same)
    assert known.values == pytest.approx(once.values)
    assert known.if_calibrated == pytest.approx(once.if_calibrated)  # copies are nothing new


@pytest.mark.slow
def test_weights_and_clusters():
    weights = np.random.default_rng(3).exponential(size=len(LABELS)) * (CODES != 7)
    found = quick("brier", weights=weights)
    assert found.n_clusters == 39
    value = caltest.estimate(PROBS, LABELS, "brier", weights=weights)
    assert found.values[0] == pytest.approx(value)
    assert quick("skce_uq", weights=weights).errors_from == "subsampling"


# ------------------------------------------------------------------ words and input


@pytest.mark.slow
def test_what_is_said():
    found = quick("skce_uq")
    text = found.summary()
    assert "160 rows of 3 classes, in 40 clusters" in text
    assert "U-statistic of clusters" in text
    assert "20 subsamples of 20 clusters" in " ".join(text.split())
    assert any("40 clusters are few" in note for note in found.warnings)
    display = caltest.plots.ComparisonDisplay.from_result(found)
    drawn = [each.get_text() for each in display.figure_.findobj(lambda x: hasattr(x, "get_text"))]
    assert any("over 40 clusters" in each for each in drawn)


def test_functions_and_fits_are_refused():
    def mean(probs, labels):
        return float(probs[:, 0].mean())

    for statistic in ("cox", "mcb_brier", mean):
        with pytest.raises(InputError, match=r"no form of .* valid for rows in clusters; compare by"):
            quick(statistic)


def test_clusters_must_be_those_of_the_same_rows():
    known, other = (sample(PROBS, LABELS, clusters=codes).rows for codes in (CODES, CODES // 2))
    with pytest.raises(InputError, match="different clusters of rows"):
        quick(models={"a": known, "b": other}, clusters=None)
    with pytest.raises(InputError, match="different clusters of rows"):
        quick(models={"a": known, "b": PROBS}, clusters=None)
    named = quick(
        models={"a": known, "b": sample(PROBS, LABELS, clusters=CODES + 7).rows}, clusters=None
    )
    assert named.n_clusters == 40


def test_few_clusters_and_sizes_are_refused():
    with pytest.raises(InputError, match="there are 3 clusters; a comparison needs 4"):
        quick(clusters=np.arange(len(LABELS)) % 3)
    with pytest.raises(InputError, match="of 40 clusters, a subsample has from 2 to 39"):
        quick(size=40)
    with pytest.raises(InputError, match="a bootstrap draws all clusters"):
        quick(size=10, resampling="bootstrap")


@pytest.mark.slow
def test_the_command(tmp_path):
    files = []
    for name, probs in MODELS.items():
        frame = pd.DataFrame(probs, columns=["a", "b", "c"]).assign(label=LABELS, patient=CODES)
        files.append(tmp_path / f"{name}.csv")
        frame.to_csv(files[-1], index=False)
    rest = [
        "--statistic",
        "ecd",
        "--clusters",
        "patient",
        "--resamples",
        "20",
        "--seed",
        "0",
        "--jobs",
        "1",
    ]
    printed = CliRunner().invoke(app, ["compare", *map(str, files), *rest, "--json"])
    found, expected = json.loads(printed.stdout), quick()
    assert found["pvalues"] == pytest.approx(expected.pvalues)
    assert (found["n_clusters"], found["size"]) == (40, 20)
    shown = CliRunner().invoke(app, ["compare", *map(str, files), *rest]).stdout
    assert "in 40 clusters" in shown


# ------------------------------------------------------------------ rows sampled by their label


@pytest.mark.slow
def test_models_are_compared_among_the_rows_kept(tmp_path):
    rates = {0: 0.1, 2: 0.5}
    kept = {
        name: probs * [0.1, 1.0, 0.5] / (probs * [0.1, 1.0, 0.5]).sum(axis=1, keepdims=True)
        for name, probs in MODELS.items()
    }
    found, expected = (
        quick(clusters=None, sampling_rates=rates),
        quick(models=kept, clusters=None),
    )
    assert found.values == pytest.approx(expected.values)
    assert found.pvalues == pytest.approx(expected.pvalues)
    assert found.sampling_rates == rates
    assert "10% of class 0, 50% of class 2; errors refer to the rows kept" in found.summary()
    with pytest.raises(InputError, match="5, which is not a class"):
        quick(sampling_rates={5: 0.1})
    files = []
    for name, probs in MODELS.items():
        frame = pd.DataFrame(probs, columns=["a", "b", "c"]).assign(label=np.array(list("abc"))[LABELS])
        files.append(str(tmp_path / f"{name}.csv"))
        frame.to_csv(files[-1], index=False)
    rest = ("--sampling-rate", "a=0.1", "--sampling-rate", "c=0.5", "--statistic", "ecd")
    options = ("--resamples", "20", "--seed", "0", "--jobs", "1", "--json")
    printed = json.loads(CliRunner().invoke(app, ["compare", *files, *rest, *options]).stdout)
    assert printed["values"] == pytest.approx(expected.values)
    assert printed["sampling_rates"] == {"a": 0.1, "c": 0.5}


# ------------------------------------------------------------------ level


def rejections(statistic, sets, of, clusters=True):
    """Compare models of equal error in clusters of which rows err together."""
    count = 0
    for seed in range(sets):
        probs, labels, codes = clustered(60, 5, 2, 0.6, seed)
        found = caltest.compare(
            of(probs, seed),
            labels,
            statistic,
            clusters=codes if clusters else None,
            n_resamples=60,
            rng=seed,
        )
        count += found.pvalues[0, 1] <= 0.05
    return count / sets


def opposite(probs, seed):
    return {"a": raised(probs, 0), "b": raised(probs, 1)}


def calibrated(probs, seed):
    coin = np.random.default_rng(seed).random(len(probs)) < 0.5
    return {"a": probs, "b": np.where(coin[:, None], 0.5, probs)}


@pytest.mark.slow
@pytest.mark.parametrize("tests", [10, pytest.param(60, marks=pytest.mark.level)])
def test_equal_and_opposite_errors_of_dependent_rows(tests):
    assert rejections("esce", tests, opposite) <= binomial_limits(tests, 0.05)[1]


@pytest.mark.level
def test_rows_taken_as_independent_are_told_apart_much_too_often():
    assert rejections("esce", 60, opposite, clusters=False) > binomial_limits(60, 0.05)[1]


@pytest.mark.level
@pytest.mark.parametrize("models", [opposite, calibrated])
@pytest.mark.parametrize("statistic", ["ecd", "esce", "skce_uq", "ece"])
def test_level(statistic, models):
    assert rejections(statistic, 400, models) <= binomial_limits(400, 0.05)[1]
