"""The pipeline: what is fitted, tuned and tested on which rows; the result; the p-values."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from support import binomial_limits, dirichlet, labels_from

import caltest
from caltest._parallel import Workers
from caltest.estimation import (
    CalibrationPipeline,
    DirichletKernelDensity,
    EstimationFunction,
    HistogramBinning,
    KroneckerKernelRidge,
    Temperature,
    TwoStepKernelRidge,
    estimate_squared_error,
    risk,
)
from caltest.estimation.base import PlugIn, residuals
from caltest.estimation.estimate import HeldOut, PipelineForm, ProductsOfPairs
from caltest.estimation.pipeline import recommended
from caltest.forms import Pairwise
from caltest.kernels import Gaussian
from caltest.laws import Classes
from caltest.resampling import Draws, columns_of, table
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


# ------------------------------------------------------------------ split and folds


def test_folds_and_test_part_hold_every_row_once():
    split = CalibrationPipeline().split(103, seed=4)
    assert len(split.test) == 21
    assert [len(rows) for rows in split.folds] == [17, 17, 16, 16, 16]
    assert sorted(np.concatenate([*split.folds, split.test])) == list(range(103))
    assert set(split.training(2)) == set(range(103)) - set(split.test) - set(split.folds[2])


def test_rows_are_cut_in_the_order_given():
    split = CalibrationPipeline(n_folds=2, test_size=0.5).split(8, order=[7, 6, 5, 4, 3, 2, 1, 0])
    assert [rows.tolist() for rows in split.folds] == [[7, 6], [5, 4]]
    assert split.test.tolist() == [3, 2, 1, 0]


def test_the_split_depends_on_the_seed_alone():
    first, again, other = (CalibrationPipeline().split(50, seed=s).test for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("size", [0.2, 0.3, 0.1])
def test_a_share_in_decimals_is_no_row_short(size):
    assert len(CalibrationPipeline(test_size=size).split(100).test) == round(100 * size)


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
        test = np.column_stack([1.0 - p[48:], p[48:]])
        means.append(h.diagonal(test).mean())
    np.testing.assert_allclose(row.risks[0], risks, rtol=1e-12)
    np.testing.assert_allclose(row.estimates[0], means, rtol=1e-12)
    assert row.estimate == pytest.approx(np.mean(means))
    assert row.estimate_error == pytest.approx(np.std(means, ddof=1) / 5**0.5)
    assert row.root_risk == pytest.approx(np.sqrt(risks).mean())


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
    found = estimate_squared_error(
        probs,
        data["test_labels"].ravel(),
        "top_label",
        [HistogramBinning(15), "binning"],
        order=order,
        pvalue="none",
        rng=0,
    )
    best, fixed = found.functions
    shown = [round(100 * each, 3) for each in (fixed.root_risk, fixed.root_risk_error)]
    assert shown == [6.141, 0.116]
    shown = [round(100 * each, 3) for each in (best.root_risk, best.root_risk_error)]
    assert shown == [6.122, 0.117]


def test_published_estimates_of_a_thousand_rows(reference):
    data = reference("cifar10_densenet40_logits.npz")
    probs = softmax(data["test_logits"][:1000].astype(np.float32), axis=1)
    order = np.random.RandomState(0).choice(1000, 1000, replace=False)
    found = estimate_squared_error(
        probs,
        data["test_labels"].ravel()[:1000],
        "top_label",
        ["two_step_ridge", "kronecker_ridge"],
        order=order,
        pvalue="none",
        regularization_scaling="published",
        rng=0,
    )
    estimates = {row.name: row.estimate for row in found.functions}
    assert estimates["two_step_ridge"] == pytest.approx(0.00843359, abs=1e-8)
    assert estimates["kronecker_ridge"] == pytest.approx(0.00606766, abs=1e-8)


# ------------------------------------------------------------------ many label vectors, many workers


@pytest.mark.slow
def test_a_block_of_label_vectors_gives_what_each_gives():
    pipeline = CalibrationPipeline(["two_step_ridge", "kronecker_ridge", DirichletKernelDensity(0.1)])
    split = pipeline.split(120, seed=0)
    draws = np.random.default_rng(0).integers(0, 3, (3, 120))
    together = pipeline.run(PROBS[:120], draws, split)
    for number, labels in enumerate(draws):
        alone = pipeline.run(PROBS[:120], labels[None], split)
        assert recommended(alone)[0] == recommended(together)[number]
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_allclose(one.risks[:, :, 0], many.risks[:, :, number], rtol=1e-9)
            assert one.estimate[0] == pytest.approx(many.estimate[number], rel=1e-9)


def test_blocks_of_any_size_are_the_same(monkeypatch):
    pipeline = CalibrationPipeline(["two_step_ridge"])
    split = pipeline.split(120, seed=0)
    draws = np.random.default_rng(0).integers(0, 3, (5, 120))
    whole = pipeline.run(PROBS[:120], draws, split)
    monkeypatch.setattr("caltest.estimation.pipeline._NUMBERS", 2 * 76 * 3)
    cut = pipeline.run(PROBS[:120], draws, split)
    np.testing.assert_allclose(whole[0].risks, cut[0].risks, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("pvalue", ["held_out", "pipeline"])
def test_workers_change_no_number(pvalue):
    options = {"functions": FAST, "pvalue": pvalue, "n_resamples": 19, "rng": 3}
    one, two = (
        estimate_squared_error(PROBS, LABELS, "top_label", n_jobs=jobs, **options) for jobs in (1, 2)
    )
    assert one.to_dict() == two.to_dict()


# ------------------------------------------------------------------ p-values


def test_agreement_of_held_out_rows_by_a_double_loop():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(12, 2)), rng.normal(size=(12, 2))
    h = left @ right.T + right @ left.T
    both, swapped = np.hstack([left, right]), np.hstack([right, left])
    probs = PROBS[:12]
    labels = rng.integers(0, 3, (4, 12))
    form = ProductsOfPairs(probs, both, swapped)
    r = residuals(probs, labels)
    for number, value in enumerate(form.of_labels(labels)):
        pairs = [
            h[i, j] * (r[i, number] @ r[j, number]) for i in range(12) for j in range(12) if i != j
        ]
        assert value == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize("m", [2, 3])
def test_both_ways_to_the_agreement_are_the_same(m):
    probs = dirichlet(40, m, 1)
    labels = np.random.default_rng(1).integers(0, m, (3, 40))
    left = np.random.default_rng(2).normal(size=(40, 30))
    learned = HeldOut("any", left, left)
    dense = learned.given(caltest.data.Rows(probs))
    assert isinstance(dense, Pairwise)
    np.testing.assert_allclose(
        dense.of_labels(labels), ProductsOfPairs(probs, left, left).of_labels(labels), rtol=1e-9
    )


def test_the_form_of_the_pipeline_is_its_estimate():
    found = estimate_squared_error(PROBS, LABELS, functions=["two_step_ridge"], pvalue="none", rng=5)
    pipeline = CalibrationPipeline(["two_step_ridge"])
    form = PipelineForm(PROBS, pipeline, pipeline.split(300, seed=5))
    assert form.value(LABELS) == pytest.approx(found.estimate, rel=1e-12)
    whole = estimate_squared_error(
        PROBS, LABELS, functions=["two_step_ridge"], pvalue="pipeline", n_resamples=9, rng=5
    )
    assert whole.test.statistic == pytest.approx(found.estimate, rel=1e-9)
    assert whole.test.guarantee == "exact"


@pytest.mark.level
@pytest.mark.parametrize(
    ("pvalue", "trials", "resamples"), [("held_out", 300, 39), ("pipeline", 250, 19)]
)
def test_type_i_errors(pvalue, trials, resamples):
    """At .05 and .25, calibrated models are rejected as often as that: false alarm 1e-4 in all."""
    pvalues = []
    for seed in range(trials):
        p, y = binary(60, 1000 + seed)
        found = estimate_squared_error(
            p,
            y,
            functions=[HistogramBinning(5), HistogramBinning(10)],
            pvalue=pvalue,
            n_resamples=resamples,
            rng=seed,
        )
        pvalues.append(found.pvalue)
    for level in (0.05, 0.25):
        low, high = binomial_limits(trials, level, 5e-5)
        assert low <= np.mean(np.array(pvalues) <= level + 1e-12) <= high


@pytest.mark.level
@pytest.mark.parametrize("pvalue", ["held_out", "pipeline"])
def test_power(pvalue):
    """Logits five times too large are found in nearly all of 20 data sets of 300 rows."""
    found = [
        estimate_squared_error(
            *binary(300, seed, 0.2), functions=FAST, pvalue=pvalue, n_resamples=19, rng=seed
        ).pvalue
        for seed in range(20)
    ]
    assert np.mean(np.array(found) <= 0.05) >= 0.9


# ------------------------------------------------------------------ the result


def test_the_table_and_the_dict_say_the_same():
    found = estimate_squared_error(SURE.probs, SURE.labels, "top_label", rng=0)
    table, plain = found.table(), json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(table.index) == [each["label"] for each in plain["functions"]]
    assert list(table["estimate"]) == [each["estimate"] for each in plain["functions"]]
    assert plain["recommended"] == table.index[0]
    assert set(table.index) == {
        "binning(n_bins=15)",
        "binning",
        "kernel_density",
        "kronecker_ridge",
        "two_step_ridge",
    }
    assert table["gap"].iloc[0] == 0.0
    assert (table["gap"] >= 0.0).all()
    assert plain["test"]["pvalue"] == found.pvalue
    with pytest.raises(ValueError, match="read-only"):
        found.recommended.risks[0, 0] = 0.0


def test_the_summary_names_what_matters():
    text = str(estimate_squared_error(SURE.probs, SURE.labels, "top_label", rng=0))
    for words in (
        "480 in 5 folds",
        "120 to estimate",
        "√risk × 100",
        "lowest held-out risk",
        "p-value",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 104


def test_a_negative_estimate_is_told():
    found = estimate_squared_error(PROBS, LABELS, functions=["two_step_ridge"], pvalue="none", rng=0)
    (row,) = found.functions
    found = replace(found, functions=(replace(row, estimates=-row.estimates),))
    assert found.estimate < 0.0
    assert found.root == 0.0
    assert "no error was found" in found.summary()


def test_objects_are_taken_as_they_are_and_names_are_tuned():
    found = estimate_squared_error(
        PROBS,
        LABELS,
        functions=[Temperature(2.0), TwoStepKernelRidge, TwoStepKernelRidge(0.5)],
        pvalue="none",
        rng=0,
    )
    tuned = {row.label: len(row.values) for row in found.functions}
    assert tuned == {
        "temperature(temperature=2)": 1,
        "two_step_ridge": 18,
        "two_step_ridge(regularization=0.5)": 1,
    }


def test_many_rows_leave_out_what_grows_as_their_square(monkeypatch):
    monkeypatch.setattr("caltest.estimation.pipeline.ALL_PAIRS_UP_TO", 100)
    found = estimate_squared_error(PROBS, LABELS, pvalue="none", rng=0)
    assert "kernel_density" not in found.table().index
    assert "kernel density was left out" in found.summary()


# ------------------------------------------------------------------ wrong input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"functions": "binnings"}, "no estimation function 'binnings'; did you mean 'binning'"),
        ({"functions": []}, "give at least one"),
        ({"functions": ["binning", "binning"]}, "each one once"),
        ({"functions": [3]}, "functions holds 3"),
        ({"functions": "binning", "lens": None}, "'binning' measures one probability, and there are 3"),
        ({"pvalue": "exact"}, "there is no p-value 'exact'"),
        ({"n_resamples": 0}, "n_resamples is 0"),
        ({"n_resamples": 9, "pvalue": "none"}, "pvalue='none' draws none"),
        ({"n_folds": 1}, "n_folds is 1"),
        ({"test_size": 1.0}, "test_size is 1.0"),
        ({"n_folds": 200}, "leaves 1 in a fold"),
        ({"order": [[1, 2], [3]]}, "each of the rows 0 to 299 once"),
        ({"functions": [(TwoStepKernelRidge(), [])]}, "pairs of a function and the values to try"),
        ({"functions": [EstimationFunction]}, "functions holds the class"),
        ({"order": [0, 1]}, "each of the rows 0 to 299 once"),
        ({"order": np.zeros(300, dtype=int)}, "each of the rows 0 to 299 once"),
        ({"regularization_scaling": "none"}, "no regularization_scaling 'none'"),
        ({"lens": "top"}, "no lens 'top'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(caltest.InputError, match=message):
        estimate_squared_error(PROBS, LABELS, **{"lens": "top_label", "rng": 0, **options})


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


@pytest.mark.level
def test_p_values_of_the_pipeline_where_labels_are_all_but_certain():
    """All labels are the likely ones, nearly all draws are too: risks are equal but for rounding."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        probs, labels = 1e-9 * rng.uniform(0.1, 1.0, (40, 3)), rng.integers(0, 3, 40)
        probs[np.arange(40), labels] = 0.0
        probs[np.arange(40), labels] = 1.0 - probs.sum(axis=1)
        found = estimate_squared_error(probs, labels, pvalue="pipeline", n_resamples=9, rng=seed)
        assert found.pvalue == 1.0


def test_what_is_not_a_number_is_not_chosen(monkeypatch):
    def nowhere(self, probs, values):
        return lambda places: iter(
            [PlugIn(lambda residuals: np.full((len(places), *residuals.shape[1:]), np.nan))]
        )

    monkeypatch.setattr(Temperature, "given", nowhere)
    with pytest.raises(caltest.InputError, match=r"temperature\(temperature=1\) is not a number"):
        estimate_squared_error(PROBS, LABELS, functions=[Temperature()], pvalue="none", rng=0)


def test_the_standard_error_is_of_tuning_and_test_rows():
    found = estimate_squared_error(PROBS, LABELS, functions=["two_step_ridge"], pvalue="none", rng=0)
    (row,) = found.functions
    jackknife = np.sqrt(4 / 5 * ((row.estimates[row.best] - row.estimate) ** 2).sum())
    assert row.standard_error == pytest.approx(np.hypot(jackknife, row.sampling_error))


def test_pairs_of_a_function_and_values_and_objects_that_differ_in_other_options():
    found = estimate_squared_error(
        PROBS,
        LABELS,
        functions=[
            (KroneckerKernelRidge(kernel=Gaussian(1.0)), [0.1, 0.01]),
            TwoStepKernelRidge(0.1, Gaussian(0.1)),
            TwoStepKernelRidge(0.1, Gaussian(1.0)),
        ],
        pvalue="none",
        rng=0,
    )
    kernels = {row.parameters["kernel"] for row in found.functions}
    assert len(kernels) == 2
    assert len({row.label for row in found.functions}) == 3


@pytest.mark.slow
def test_all_and_one_more():
    found = estimate_squared_error(
        PROBS, LABELS, functions=["all", "temperature"], pvalue="none", rng=0
    )
    assert set(found.table().index) == {
        *("kernel_density", "kronecker_ridge", "two_step_ridge", "temperature"),
    }


def test_equal_labels_have_equal_estimates_wherever_they_are_among_the_draws():
    """Bit for bit: where labels are all but certain, rounding chooses among equal risks."""
    p = np.random.default_rng(1).random(40) * 0.01
    law, pipeline = Classes(np.column_stack([1.0 - p, p])), CalibrationPipeline()
    form = PipelineForm(law.probs, pipeline, pipeline.split(40, seed=1))
    draws = Draws(law.sampler(0), np.zeros(40, int), 999)
    values = table(columns_of(form), draws, Workers(1))[:, 0]
    labels = np.vstack([draws.observed, draws.sampler.draw(0, 999)])
    _, of_vector = np.unique(labels, axis=0, return_inverse=True)
    by_vector = [values[of_vector == vector] for vector in range(of_vector.max() + 1)]
    assert 1 < len(by_vector) < 100
    assert all(len(set(each)) == 1 for each in by_vector)
