"""`compare`: rankings, what is refused, and the result."""

from __future__ import annotations

import json
import re
from dataclasses import FrozenInstanceError, replace

import joblib
import numpy as np
import pandas as pd
import pytest
from compared import LABELS, MODELS, ROWS, TRUTH, brier_score, quick, tempered
from statsmodels.stats.proportion import proportion_confint
from support import P6, Y6, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.comparison.equality import Resampling, signs
from caltest.kernels import Exponential
from caltest.predictive import GaussianPredictions
from caltest.statistics import STATISTICS, UnbiasedSKCE

# ------------------------------------------------------------------ ranking


def test_ranking_and_proportions_by_hand():
    """The statistic is the mean of the first column: all can be counted."""
    columns = {"a": [0.1, 0.2, 0.9, 0.3, 0.5, 0.4], "b": [0.3, 0.1, 0.4, 0.4, 0.5, 0.9]}
    columns["c"] = columns["a"]
    models = {name: np.column_stack([x, 1 - np.array(x)]) for name, x in columns.items()}

    def first_column(probs, labels):
        return float(probs[:, 0].mean())

    found = quick(models, [0, 1] * 3, first_column, size=2, n_resamples=40, rng=3)
    plan = Resampling("subsampling", 2, 40, 3)
    means = np.array([[np.mean(np.take(columns[x], plan.draw(b, 6))) for x in "ab"] for b in range(40)])
    gap = np.round(means[:, 1] - means[:, 0], 12)
    below = np.mean(gap > 0) + 0.5 * np.mean(gap == 0)
    assert found.ranking == ("a", "c", "b")
    assert found.pair_proportions[0] == pytest.approx([0.5, below, 0.5])
    assert found.pair_proportions + found.pair_proportions.T == pytest.approx(np.ones((3, 3)))
    assert found.order_proportion == pytest.approx(np.mean(gap >= 0))
    firsts = np.mean(gap > 0) / 2 + np.mean(gap == 0) / 3
    assert found.first_proportions == pytest.approx([firsts, 1 - 2 * firsts, firsts])
    low, high = proportion_confint(np.sum(gap >= 0), 40, method="wilson")
    assert found.order_interval == pytest.approx((low, high))
    low, high = proportion_confint(40 * below, 40, method="wilson")
    assert found.pair_intervals[0, 1] == pytest.approx([low, high])


def test_rows_of_resamples():
    plan = Resampling("subsampling", 30, 10, 5)
    rows = plan.draw(3, 100)
    assert len(np.unique(rows)) == 30
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == plan.draw(3, 100).tolist() != plan.draw(4, 100).tolist()
    with_replacement = Resampling("bootstrap", 100, 10, 5).draw(3, 100)
    assert len(with_replacement) == 100
    assert len(np.unique(with_replacement)) < 80


def test_ties():
    one, other = np.array([1.0, np.inf, np.inf, 1.0, -np.inf]), np.array([1.0, np.inf, 1.0, 2.0, 0.0])
    assert signs(one, other, 0.0).tolist() == [0, 0, -1, 1, 1]
    assert signs(np.array([1.0]), np.array([1.0 + 1e-13]), 0.0).tolist() == [0]
    assert signs(np.array([1e-17]), np.array([2e-17]), 1e-15).tolist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("cox", "smooth_ece") else ())
        for name in STATISTICS
        if STATISTICS[name].growth is not None
    ],
)
def test_every_statistic(statistic):
    found = quick(statistic=statistic, n_resamples=5)
    assert found.statistic == statistic
    for name, value in zip(found.names, found.values, strict=True):
        assert value == caltest.estimate(MODELS[name], LABELS, statistic)
    assert np.isfinite(found.standard_errors).all()
    assert ((found.pvalues > 0) & (found.pvalues <= 1)).all()
    assert np.array_equal(found.differences, -found.differences.T)
    for shares in (found.first_proportions, found.pair_proportions):
        assert ((shares >= 0) & (shares <= 1)).all()
    assert found.first_proportions.sum() == pytest.approx(1.0)
    keys = np.abs(found.values) if found.signed else found.values
    assert [found.names[i] for i in np.argsort(keys, kind="stable")] == list(found.ranking)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["ranking"] == list(found.ranking)
    assert statistic in found.summary()
    assert found.signed == (STATISTICS[statistic].alternatives[0] == "two-sided")
    assert ("whatever the sign" in found.measures) == found.signed


@pytest.mark.level
def test_sensible_rankings():
    truth = dirichlet(600, 3, 1)
    labels = labels_from(truth, np.random.default_rng(5))
    models = {"sharp": tempered(truth, 2.0), "calibrated": truth}
    for statistic in ("skce_uq", "jkce", "ckce", "mmce", "smooth_ece", "ecd"):
        found = quick(models, labels, statistic)
        assert found.ranking == ("calibrated", "sharp")
        assert found.pair_proportions[1, 0] > 0.9


def test_signed_statistics_are_compared_by_size():
    g = dirichlet(3000, 2, 2, alpha=5.0)
    y = labels_from(g, np.random.default_rng(2))
    models = {"over": tempered(g, 1.5), "under": tempered(g, 1 / 1.5)}
    found = quick(models, y, "ecd", n_resamples=100)
    assert found.values[0] > 0 > found.values[1]
    sizes = np.abs(found.values)
    assert found.differences[0, 1] == pytest.approx(sizes[0] - sizes[1])
    assert found.difference_errors[0, 1] < found.standard_errors.sum()


# ------------------------------------------------------------------ input


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "resampling"),
    [("skce_uq", "subsampling"), ("ckce", "bootstrap"), (brier_score, "bootstrap")],
)
def test_the_same_seed_gives_the_same_numbers(statistic, resampling):
    def numbers(**options):
        return quick(statistic=statistic, resampling=resampling, rng=4, **options).to_dict()

    alone = numbers(n_jobs=1)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert numbers() == alone
    if (statistic, resampling) == ("ckce", "bootstrap"):  # processes are slow to start
        assert numbers(n_jobs=2) == alone
    assert quick(statistic=statistic, rng=alone["seed"], resampling=resampling).to_dict() == alone
    other = quick(statistic=statistic, rng=5, resampling=resampling).to_dict()
    assert other["values"] == alone["values"]


def test_another_seed_draws_other_rows():
    near = {"a": TRUTH, "b": tempered(TRUTH, 1.1)}
    one, other = (quick(near, statistic="brier", rng=seed) for seed in (1, 2))
    assert one.standard_errors.tolist() != other.standard_errors.tolist()


def test_adding_a_model_leaves_the_others_alone():
    two = {name: MODELS[name] for name in ("sharp", "true")}
    less, more = (quick(models, statistic="ece") for models in (two, MODELS))
    assert more.pair_proportions[0, 1] == less.pair_proportions[0, 1]
    assert more.standard_errors[:2] == pytest.approx(less.standard_errors)


def test_a_lens():
    found = quick(lens="top_label", statistic="ece")
    assert (found.lens, found.n_classes) == ("top_label", 2)
    assert found.values[0] == caltest.estimate(MODELS["sharp"], LABELS, "ece", lens="top_label")
    assert quick(statistic="ks").lens == "top_label"


@pytest.mark.slow
def test_defaults():
    n = 1200
    g = dirichlet(n, 2, 0)
    y = labels_from(g, np.random.default_rng(0))
    found = caltest.compare({"a": g, "b": tempered(g, 2.0)}, y, brier_score, rng=0)
    assert (found.size, found.n_resamples, found.resampling) == (500, 500, "subsampling")
    assert (found.confidence, found.correction) == (0.95, "holm")
    assert quick().size == ROWS // 2
    assert quick(resampling="bootstrap").size == ROWS


def test_binary_columns_frames_and_names():
    frame = pd.DataFrame(TRUTH, columns=["p_ant", "p_bee", "p_cat"])
    names = np.array(["ant", "bee", "cat"])[LABELS]
    swapped = frame[["p_cat", "p_ant", "p_bee"]]
    found = quick({"a": frame, "b": swapped}, names)
    assert found.differences[0, 1] == pytest.approx(0.0, abs=1e-15)
    binary = quick({"a": TRUTH[:, 0], "b": TRUTH[:, 1].tolist()}, LABELS % 2)
    assert binary.warnings == ("One column, read as P(class 1).",)


REFUSED = [
    ({"models": {"a": P6}}, "at least two different ones"),
    ({"models": [P6, P6]}, "models is of type list; give predictions by name"),
    ({"models": {"1": P6, 1: P6}}, "models has the names '1', 1"),
    ({"models": {"a": P6, "b": P6[:5]}}, "model 'b': "),
    ({"models": {"a": P6, "b": 3 * P6}}, "model 'b': "),
    ({"models": {"a": P6, "b": P6[:, :2]}}, "model 'b': "),
    (
        {"models": {"a": P6, "b": np.hstack([P6, np.zeros((6, 1))])}},
        "a has 6 rows of 3 classes, b 6 of 4",
    ),
    (
        {"models": {"a": P6, "b": GaussianPredictions(np.zeros(6), np.ones(6))}},
        "model 'b': these are Gaussian predictions of numbers",
    ),
    ({"statistic": "ckse"}, "did you mean 'ckce'"),
    ({"lens": "top_lable"}, "there is no lens 'top_lable'"),
    ({"lens": "class:7"}, "model 'a': the lens asks for class '7'"),
    ({"statistic": "ece", "lens": 3}, "lens is 3"),
    ({"resampling": "jackknife"}, "there is no resampling 'jackknife'"),
    ({"resampling": "bootstrap", "size": 3}, "size is for subsampling"),
    ({"size": 6}, "size is 6; of 6 rows, a subsample has from 2 to 5"),
    ({"size": 1}, "size is 1"),
    ({"size": 2.5}, "size is 2.5"),
    ({"n_resamples": 1}, "n_resamples is 1; give from 2"),
    ({"n_resamples": 10**9}, "give from 2 to 100,000"),
    ({"n_resamples": "many"}, "n_resamples is 'many'"),
    ({"confidence": 95}, "confidence is 95; give one between 0 and 1"),
    ({"confidence": None}, "confidence is None"),
    ({"correction": "hom"}, "did you mean 'holm'"),
    ({"correction": 3}, "correction is 3"),
    ({"rng": -1}, "rng is -1"),
    ({"n_jobs": 0}, "n_jobs is 0"),
    ({"statistic": lambda probs, labels: None}, "model 'a': the statistic <lambda> returned None"),
    (
        {"statistic": lambda probs, labels: 1.0 if len(labels) == 6 else np.nan},
        "model 'a': on a subsample of 3 rows, the statistic <lambda> returned nan",
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_refusals(options, message):
    with pytest.raises(InputError) as caught:
        quick(**{"models": {"a": P6, "b": P6[:, [1, 0, 2]]}, "labels": Y6, **options})
    assert message in str(caught.value)


def test_an_error_of_a_model_keeps_its_facts():
    broken = np.where(np.arange(6)[:, None] == 2, np.nan, P6)
    with pytest.raises(InputError) as caught:
        quick({"a": P6, "b": broken}, Y6)
    assert caught.value.fact("model") == "'b'"
    assert str(caught.value.fact("row")) == "row 2 (counting from 0)"
    assert "row 7 (counting from 0)" in str(caught.value.moved(5))


def test_few_rows():
    with pytest.raises(InputError, match="there are 3 rows; a comparison needs 4 at least"):
        quick({"a": P6[:3], "b": P6[:3]}, Y6[:3])
    assert quick({"a": P6[:4], "b": P6[1:5]}, Y6[:4]).size == 2


def test_columns_in_another_order_are_noticed():
    frame = pd.DataFrame(P6, columns=["ant", "bee", "cat"])
    with pytest.raises(InputError, match=r"model 'b': the columns are 'bee', 'ant', 'cat', .* row 0"):
        quick({"a": frame, "b": frame[["bee", "ant", "cat"]]}, Y6)


# ------------------------------------------------------------------ the result


def test_the_result_is_frozen_and_plain():
    found = quick()
    with pytest.raises(FrozenInstanceError):
        found.size = 3
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 1.0
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["parameters"]["true"]["kernel"] == "Exponential"
    assert plain["order_interval"][0] <= plain["order_proportion"] <= plain["order_interval"][1]


def test_tables():
    found = quick()
    table, pairs = found.table(), found.pairs()
    assert tuple(table.index) == found.ranking
    assert table.loc["sharp", "value"] == found.values[0]
    assert len(pairs) == 3
    assert (pairs["difference"] >= 0).all()
    assert (pairs["better"].iloc[0], pairs["worse"].iloc[0]) == found.ranking[:2]
    assert (pairs["adjusted"] >= pairs["pvalue"]).all()


def test_summary():
    found = quick({"sharp": MODELS["sharp"], "true": TRUTH}, statistic=UnbiasedSKCE(Exponential(0.5)))
    assert found.summary() == str(found) == SUMMARY


SUMMARY = """\
Comparison of calibration
  data       2 models on 120 rows of 3 classes
  errors     of the model's confidence in its top class, predicted less observed, in percentage
             points
  intervals  95%: of errors all correct together, of differences about right

No error is shown in true's confidence in its top class (at most 30.1 points on average);
sharp's is off by about 19.7 points on average (1.0 to 39.6). No difference in this error is
shown between true and sharp (5.7 points, about −14.4 to 27.2).

By log loss, which also counts how well predictions separate, true is best; sharp loses 0.22
(about 0.06 to 0.39) more than true.

  model  off by (95%)          mean error              more than true (about)
  true   14.0 (0.0 to 30.1)    −1.2 (−12.2 to 10.7)
  sharp  19.7 (1.0 to 39.6)    +19.0 (8.0 to 30.9)     +5.7 (−14.4 to 27.2)

  model  log loss  more than true (about)              Brier   more (about)
  true   0.8008                                        0.4844
  sharp  1.0227    +0.22 (0.06 to 0.39)                0.5553  +0.07 (0.01 to 0.14)

“Off by” is the mean absolute error over tenths of a model's own predictions: too high here does
not cancel too low there. Chance makes it larger rather than smaller. In the mean error they
cancel; its difference between two models is that of their mean predictions, known exactly;
which of them is nearer to 0 may still be open.

Behind it, a ranking by skce_uq (squared kernel calibration error), smallest first; kernel
Exponential, bandwidth 0.5, bandwidth_rule given, distance tv; standard errors from the variance
of a U-statistic, of both orders.

       model      skce_uq         95% interval        first in
    1  true         0.008       -0.004 to 0.020             95%
    2  sharp        0.015        0.001 to 0.030              5%

No difference shown by skce_uq: true comes first, but other rows may give another order. “First
in”: the share of 20 subsamples of 60 rows in which a model comes first, 76% to 99.1% for true
(95% interval). The whole ranking was the same in 95% (76% to 99.1%). These shares are not the
probability that the ranking is right.

Tests of equal error by skce_uq, two-sided at level 0.05 (one pair): no difference found: true
and sharp (p = 0.096). A difference that is not found may still exist.

The smallest error is not always a small one: use caltest.test to test calibration."""


def test_one_error_may_differ_where_another_does_not():
    """What the intervals leave open and the tests show is said in one place."""
    two = {"sharp": MODELS["sharp"], "true": TRUTH}
    said = " ".join(quick(two, confidence=0.9).summary().split())
    assert "No difference in this error is shown between true and sharp (5.7 points, about" in said
    assert "By skce_uq, below, these differ, better model first: true and sharp (p = 0.052)." in said
    assert "below, these differ" not in quick(two).summary()


def test_summary_names_the_more_frequent_first():
    def moody(probs, labels):
        return float(probs[0, 0]) if len(labels) == ROWS else 1.0 - float(probs[0, 0])

    first, second = np.tile([0.2, 0.8], (ROWS, 1)), np.tile([0.7, 0.3], (ROWS, 1))
    found = quick({"a": first, "b": second}, np.arange(ROWS) % 2, moody)
    assert found.ranking == ("a", "b")
    assert "b ranked first more often (100%)" in found.summary().replace("\n", " ")


def test_summary_of_many_models():
    many = {f"model_{k}": tempered(TRUTH, 1.0 + 0.02 * k) for k in range(7)}
    text = quick(many, statistic="skce_uq").summary()
    assert "and 9 more" in text.replace("\n", " ")
    assert all(len(line) <= 100 for line in text.splitlines())


def test_numbers_have_the_decimals_that_their_intervals_justify():
    found = quick(statistic="skce_uq")
    small = replace(
        found,
        values=found.values / 25.0,
        intervals=np.column_stack([found.values / 25.0 - 2e-4, found.values / 25.0 + 2e-4]),
    )
    row = next(line for line in small.summary().splitlines() if line.startswith("    1  "))
    assert re.fullmatch(r"    1  \w+ +-?0\.\d{5} +-?0\.\d{5} to -?0\.\d{5} +.*%", row)
    huge = replace(found, values=found.values * 1e5, intervals=found.intervals * 1e5)
    assert re.search(r"    1  \w+ +-?\d+\.\d +-?\d+\.\d to -?\d+\.\d ", huge.summary())


def test_a_lens_says_what_the_rows_are_of():
    found = quick(statistic="ece", lens="top_label")
    assert " models on 120 rows of 3 classes, lens top_label\n" in found.summary()
    assert (found.n_predicted, found.probability, found.event) == (
        3,
        "top_label",
        "the top class is right",
    )


def test_what_cannot_be_resampled_is_said():
    from caltest.statistics import CKCE

    grouped = CKCE(groups=["x", "y"] * (ROWS // 2))
    with pytest.raises(InputError, match="model 'sharp': groups belong to fixed rows"):
        quick(statistic=grouped)


def test_models_in_another_order_of_rows_or_columns():
    rng = np.random.default_rng(4)
    probs = pd.DataFrame(rng.dirichlet(np.ones(3), 60), columns=["x", "y", "z"])
    other = pd.DataFrame(rng.dirichlet(np.ones(3), 60), columns=["x", "y", "z"])
    labels = pd.Series(rng.choice(["x", "y", "z"], 60))
    models = {"a": probs, "b": other}
    usual = caltest.compare(models, labels, "skce_uq", lens="class:0", n_resamples=5, rng=0)
    turned = {"a": probs, "b": other[["z", "x", "y"]]}
    again = caltest.compare(turned, labels, "skce_uq", lens="class:0", n_resamples=5, rng=0)
    assert again.values == pytest.approx(usual.values, rel=1e-12)
    with pytest.raises(InputError, match="the pandas indexes of probs and labels differ"):
        caltest.compare(models, labels.sample(frac=1, random_state=0), "skce_uq")
    shuffled = {"a": probs, "b": other.sample(frac=1, random_state=0)}
    with pytest.raises(InputError, match="the pandas indexes of a and b differ"):
        caltest.compare(shuffled, np.zeros(60, dtype=int), "skce_uq")
    renamed = {"a": probs, "b": other.rename(columns={"z": "w"})}
    with pytest.raises(InputError, match="the classes of a are 'x', 'y', 'z', those of b"):
        caltest.compare(renamed, np.zeros(60, dtype=int), "skce_uq")


def test_a_statistic_without_a_size():
    with pytest.raises(InputError, match="−∞, which is not a size"):
        caltest.compare(
            {"a": P6, "b": P6[::-1]}, [0, 1, 0, 0, 2, 2], lambda p, y: -np.inf, n_resamples=3
        )
