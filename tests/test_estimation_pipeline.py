"""`estimate_squared_error`: what is fitted, tuned and tested on which rows; result and p-value."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from support import binomial_limits, dirichlet, labels_from

from caltest.estimation import (
    HistogramBinning,
    Temperature,
    TwoStepKernelRidge,
    estimate_squared_error,
    risk,
)
from caltest.kernels import Gaussian
from caltest.simulation import tempered

PROBS = dirichlet(300, 3, 0)
LABELS = labels_from(PROBS, np.random.default_rng(0))
SURE = tempered(600, [1.0, 1.0, 1.0], temperature=0.4, rng=0)
FAST = ("binning", "two_step_ridge")


def binary(n, seed, factor=1.0):
    """Scores of two classes, and labels drawn from the truth: logits smaller by a factor."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 1.0, n)
    truth = 1.0 / (1.0 + ((1.0 - p) / p) ** factor)
    return p, (rng.random(n) < truth).astype(int)


# ------------------------------------------------------------------ what is learned from what


def test_risks_and_estimates_by_hand():
    p, y = binary(60, 0)
    order = np.arange(60)
    found = estimate_squared_error(
        p, y, functions=[HistogramBinning(4)], order=order, pvalue="none", rng=0
    )
    (row,) = found.functions
    risks, means = [], []
    for fold in range(5):
        rows = np.array_split(np.arange(48), 5)[fold]
        inside = np.setdiff1d(np.arange(48), rows)
        h = HistogramBinning(4).fit(p[inside], y[inside])
        risks.append(risk(h, p[rows], y[rows]))
        means.append(h.diagonal(np.column_stack([1.0 - p[48:], p[48:]])).mean())
    np.testing.assert_allclose(row.risks[0], risks, rtol=1e-12)
    np.testing.assert_allclose(row.estimates[0], means, rtol=1e-12)
    assert row.estimate == pytest.approx(np.mean(means))


@pytest.mark.slow
def test_labels_of_the_test_part_change_no_estimate_and_no_choice():
    order = np.arange(600)
    turned = SURE.labels.copy()
    turned[480:] = (turned[480:] + 1) % 3
    first, second = (
        estimate_squared_error(SURE.probs, y, order=order, pvalue="none", rng=0)
        for y in (SURE.labels, turned)
    )
    assert first.table().equals(second.table())
    other = SURE.labels.copy()
    other[:480] = (other[:480] + 1) % 3
    third = estimate_squared_error(SURE.probs, other, order=order, pvalue="none", rng=0)
    assert not first.table().equals(third.table())


def test_the_best_value_has_the_least_mean_risk():
    found = estimate_squared_error(SURE.probs, SURE.labels, pvalue="none", rng=0)
    for row in found.functions:
        assert row.risk == row.risks.mean(axis=1).min()
        assert row.value == row.values[row.risks.mean(axis=1).argmin()]
    assert found.recommended.risk == min(row.risk for row in found.functions)


def test_the_known_truth_is_found():
    truth = ((SURE.truth - SURE.probs) ** 2).sum(axis=1).mean()
    found = estimate_squared_error(
        SURE.probs, SURE.labels, functions=["temperature", "two_step_ridge"], pvalue="none", rng=0
    )
    assert found.recommended.name == "temperature"
    assert found.recommended.value == pytest.approx(0.4, abs=0.06)
    assert found.estimate == pytest.approx(truth, rel=0.25)
    gap, error = found.gap()
    assert gap > 2 * error


def test_a_calibrated_model_has_no_error_to_speak_of():
    p, y = binary(4000, 1)
    found = estimate_squared_error(p, y, functions=["temperature", *FAST], rng=0)
    assert abs(found.estimate) < 2e-4
    assert found.pvalue > 0.01


def test_published_numbers_of_a_network(reference):
    data = reference("cifar10_densenet40_logits.npz")
    probs = softmax(data["test_logits"].astype(np.float64), axis=1)
    order = np.random.RandomState(0).choice(10_000, 10_000, replace=False)
    labels, functions = data["test_labels"].ravel(), [HistogramBinning(15), "binning"]
    options = {"order": order, "pvalue": "none", "rng": 0}
    best, fixed = estimate_squared_error(probs, labels, "top_label", functions, **options).functions
    for row, published in ((fixed, [6.141, 0.116]), (best, [6.122, 0.117])):
        roots = 100 * np.sqrt(row.risks[row.best])
        assert [round(roots.mean(), 3), round(roots.std(ddof=1) / 5**0.5, 3)] == published


def test_published_estimates_of_a_thousand_rows(reference):
    data = reference("cifar10_densenet40_logits.npz")
    probs = softmax(data["test_logits"][:1000].astype(np.float32), axis=1)
    order = np.random.RandomState(0).choice(1000, 1000, replace=False)
    labels, functions = data["test_labels"].ravel()[:1000], ["two_step_ridge", "kronecker_ridge"]
    options = {"order": order, "pvalue": "none", "regularization_scaling": "published", "rng": 0}
    found = estimate_squared_error(probs, labels, "top_label", functions, **options)
    estimates = {row.name: row.estimate for row in found.functions}
    assert estimates["two_step_ridge"] == pytest.approx(0.00843359, abs=1e-8)
    assert estimates["kronecker_ridge"] == pytest.approx(0.00606766, abs=1e-8)


@pytest.mark.slow
def test_workers_change_no_number():
    options = {"functions": FAST, "n_resamples": 19, "rng": 3}
    one, two = (
        estimate_squared_error(PROBS, LABELS, "top_label", n_jobs=jobs, **options) for jobs in (1, 2)
    )
    assert one.to_dict() == two.to_dict()


# ------------------------------------------------------------------ p-values


@pytest.mark.parametrize("bins", [3, 60])
@pytest.mark.parametrize("m", [2, 3])
def test_agreement_of_held_out_rows_by_a_double_loop(m, bins):
    """By the models of the folds that are tested; in few coordinates and in many."""
    probs, order = dirichlet(60, m, 1), np.arange(60)
    labels = np.random.default_rng(1).integers(0, m, 60)
    function = HistogramBinning(bins) if m == 2 else TwoStepKernelRidge(1.0 / bins)
    found = estimate_squared_error(
        probs, labels, functions=[function], order=order, n_resamples=9, rng=0
    )
    h, test = np.zeros((12, 12)), np.arange(48, 60)
    for rows in np.array_split(np.arange(48), 5):
        inside = np.setdiff1d(np.arange(48), rows)
        h += function.fit(probs[inside], labels[inside]).gram(probs[test], probs[test]) / 5
    r = labels[test] - probs[test, 1] if m == 2 else np.eye(m)[labels[test]] - probs[test]
    products = np.outer(r, r) if m == 2 else r @ r.T
    expected = (h * products)[~np.eye(12, dtype=bool)].mean()
    assert found.test.statistic == pytest.approx(expected, rel=1e-9)
    assert found.test.guarantee == "exact"


@pytest.mark.level
def test_type_i_errors():
    """At .05 and .25, calibrated models are rejected as often as that: false alarm 1e-4 in all."""
    pvalues, trials = [], 200
    for seed in range(trials):
        p, y = binary(60, 1000 + seed)
        functions = [HistogramBinning(5), HistogramBinning(10)]
        found = estimate_squared_error(p, y, functions=functions, n_resamples=39, rng=seed)
        pvalues.append(found.pvalue)
    for level in (0.05, 0.25):
        low, high = binomial_limits(trials, level, 5e-5)
        assert low <= np.mean(np.array(pvalues) <= level + 1e-12) <= high


# ------------------------------------------------------------------ the result


def test_the_table_and_the_dict_say_the_same():
    found = estimate_squared_error(SURE.probs, SURE.labels, "top_label", rng=0)
    table, plain = found.table(), json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(table.index) == [each["label"] for each in plain["functions"]]
    assert list(table["estimate"]) == [each["estimate"] for each in plain["functions"]]
    assert plain["recommended"] == table.index[0]
    assert {*table.index} == {"binning(n_bins=15)", "binning"} | {
        *("kernel_density", "kronecker_ridge", "two_step_ridge")
    }
    assert table["gap"].iloc[0] == 0.0
    assert (table["gap"] >= 0.0).all()
    assert plain["test"]["pvalue"] == found.pvalue
    with pytest.raises(ValueError, match="read-only"):
        found.recommended.risks[0, 0] = 0.0


def test_the_summary_names_what_matters():
    text = str(estimate_squared_error(SURE.probs, SURE.labels, "top_label", rng=0))
    shown = ("480 in 5 folds", "120 to estimate", "√risk × 100", "lowest held-out risk", "p-value")
    assert all(words in text for words in shown)
    assert max(map(len, text.splitlines())) <= 104


def test_a_negative_estimate_is_told():
    found = estimate_squared_error(PROBS, LABELS, functions=["two_step_ridge"], pvalue="none", rng=0)
    (row,) = found.functions
    found = replace(found, functions=(replace(row, estimates=-row.estimates),))
    assert found.estimate < 0.0
    assert found.root == 0.0
    assert "no error was found" in found.summary()


def test_objects_are_taken_as_they_are_and_names_are_tuned():
    functions = [Temperature(2.0), "two_step_ridge", TwoStepKernelRidge(0.5)]
    found = estimate_squared_error(PROBS, LABELS, functions=functions, pvalue="none", rng=0)
    tuned = {row.label: len(row.values) for row in found.functions}
    assert tuned == {
        "temperature(temperature=2)": 1,
        "two_step_ridge": 18,
        "two_step_ridge(regularization=0.5)": 1,
    }


def test_many_rows_leave_out_what_grows_as_their_square(monkeypatch):
    monkeypatch.setattr("caltest.estimation.estimate.ALL_PAIRS_UP_TO", 100)
    found = estimate_squared_error(PROBS, LABELS, pvalue="none", rng=0)
    assert "kernel_density" not in found.table().index
    assert "kernel density was left out" in found.summary()


# ------------------------------------------------------------------ wrong input


@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        (np.full((30, 3), 1 / 3), np.zeros(30, dtype=int)),
        (np.eye(3)[np.arange(30) % 3], np.arange(30) % 3),
        (np.eye(3)[np.arange(30) % 3], (np.arange(30) + 1) % 3),
        (np.full(30, 0.5), np.arange(30) % 2),
        (np.zeros(30), np.arange(30) % 2),
    ],
)
def test_extreme_predictions_give_numbers(probs, labels):
    found = estimate_squared_error(probs, labels, n_resamples=19, rng=0)
    assert np.isfinite(found.table().drop(columns="tuned").to_numpy(dtype=float)).all()
    assert 0.0 < found.pvalue <= 1.0


def test_a_truncated_kernel_matrix_is_told(monkeypatch):
    monkeypatch.setattr("caltest.estimation.functions._DENSE_UP_TO", 10)
    monkeypatch.setattr("caltest.estimation.functions._FEWEST_COLUMNS", 3)
    monkeypatch.setattr("caltest.estimation.functions._COLUMNS", 3)
    found = estimate_squared_error(PROBS, LABELS, functions=["two_step_ridge"], pvalue="none", rng=0)
    assert "3 features were kept" in found.summary()


def test_the_standard_error_is_of_tuning_and_test_rows():
    found = estimate_squared_error(PROBS, LABELS, functions=["two_step_ridge"], pvalue="none", rng=0)
    (row,) = found.functions
    jackknife = np.sqrt(4 / 5 * ((row.estimates[row.best] - row.estimate) ** 2).sum())
    assert row.standard_error == pytest.approx(np.hypot(jackknife, row.errors[row.best].mean()))


def test_objects_that_differ_in_other_options():
    functions = [TwoStepKernelRidge(0.1, Gaussian(width)) for width in (0.1, 1.0)]
    found = estimate_squared_error(PROBS, LABELS, functions=functions, pvalue="none", rng=0)
    assert len({row.parameters["kernel"] for row in found.functions}) == 2
    assert len({row.label for row in found.functions}) == 2


@pytest.mark.slow
def test_all_and_one_more():
    found = estimate_squared_error(
        PROBS, LABELS, functions=["all", "temperature"], pvalue="none", rng=0
    )
    assert set(found.table().index) == {
        *("kernel_density", "kronecker_ridge", "two_step_ridge", "temperature")
    }
