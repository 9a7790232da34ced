"""`test(..., rounding=)`: probabilities that were stated in steps."""

import json

import numpy as np
import pytest
from support import binomial_limits, command, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.data import Rows, sample
from caltest.tolerance import rounded_view

FAST = {"n_resamples": 99, "rng": 0}


def stated(probs, step):
    return np.round(np.asarray(probs) / step) * step


def drawn(scores, rng):
    return (rng.random(len(scores)) < scores).astype(int)


# ------------------------------------------------------------------ size and power


def rejections(step, datasets, draws, alternative, classes=2):
    """Count rejections at .05 of models that are calibrated until they are rounded, and just so."""
    count = 0
    for seed in range(datasets):
        rng = np.random.default_rng([7, seed])
        if classes > 2:
            probs = rng.dirichlet(np.full(classes, 0.3), 200)
            labels, options = labels_from(probs, rng), {"lens": "top_label"}
        else:  # all are rounded upwards, by as much as can be
            probs = (rng.integers(1, round(1 / step), 200) + 0.5 + 1e-6) * step
            labels, options = drawn(probs, rng), {}
        result = caltest.test(
            stated(probs, step),
            labels,
            rounding=step,
            alternative=alternative,
            n_resamples=draws,
            rng=seed,
            **options,
        )
        count += result.pvalue <= 0.05
    return count


def test_the_size_where_all_are_rounded_upwards():
    assert rejections(0.1, 60, 39, "over") / 60 <= binomial_limits(60, 0.05)[1]


@pytest.mark.level
@pytest.mark.parametrize("step", [0.05, 0.1])
@pytest.mark.parametrize("alternative", ["over", "two-sided"])
@pytest.mark.parametrize("classes", [2, 6])
def test_the_size(step, alternative, classes):
    assert rejections(step, 300, 79, alternative, classes) / 300 <= binomial_limits(300, 0.05)[1]


def test_rounding_alone_is_found_by_who_does_not_know_of_it():
    rng = np.random.default_rng(0)
    probs = (rng.integers(1, 10, 4000) + 0.5 + 1e-6) / 10
    labels = drawn(probs, rng)
    assert caltest.test(stated(probs, 0.1), labels, **FAST).pvalue <= 0.02
    assert caltest.test(stated(probs, 0.1), labels, rounding=0.1, **FAST).pvalue > 0.05


def test_an_error_beyond_rounding_is_found():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.3, 1.0, 1000)
    labels = drawn(scores - 0.2, rng)
    found = caltest.test(stated(scores, 0.05), labels, rounding=0.05, **FAST)
    assert found.pvalue == 0.02
    assert found.parameters["side"] == "over"
    probs = dirichlet(1500, 5, 0, 0.3)
    wrong = np.where(rng.random(1500) < 0.3, rng.integers(0, 5, 1500), labels_from(probs, rng))
    kept = {"rounding": 0.05, "lens": "top_label", **FAST}
    assert caltest.test(stated(probs, 0.05), wrong, **kept).pvalue == 0.02


# ------------------------------------------------------------------ what is tested


def test_it_is_the_test_of_half_a_step():
    rng = np.random.default_rng(1)
    scores = stated(rng.random(300), 0.05)
    labels = drawn(np.clip(scores + 0.1, 0, 1), rng)
    one = caltest.test(scores, labels, rounding=0.05, **FAST)
    other = caltest.test(scores, labels, tolerance=0.025, **FAST)
    assert (one.pvalue, one.alternative) == (other.pvalue, other.alternative)
    assert one.statistic == pytest.approx(other.statistic, abs=1e-12)
    both = caltest.test(scores, labels, rounding=0.05, tolerance=0.02, **FAST)
    assert both.parameters["tolerance"] == pytest.approx(0.045)
    assert both.pvalue == caltest.test(scores, labels, tolerance=0.045, **FAST).pvalue


LENSES = [
    ("top_label", 1),
    ("class:2", 1),
    ("top:2", 2),
    ("top:5", 1),  # the one class outside was stated
    ("top:3", 3),
]


@pytest.mark.parametrize(("lens", "n_summed"), LENSES)
def test_sums_of_stated_values(lens, n_summed):
    true = dirichlet(50, 6, 0)
    labels = np.arange(50) % 6
    whole = sample(stated(true, 0.05), labels, rounding=0.05)
    found = rounded_view(whole, caltest.lenses.find_lens(lens), 0.05)
    assert found.n_summed == n_summed
    assert found.tolerance == pytest.approx(0.025 * n_summed)
    # What the lens shows of the true probabilities is within the tolerance of what is stated.
    columns = caltest.lenses.find_lens(lens).show(Rows(whole.rows.stated)).outcomes
    inside = np.stack([columns(np.full(50, k)) for k in range(6)], axis=1)
    assert np.abs(found.view.rows.probs[:, 1] - (true * inside).sum(axis=1)).max() <= found.tolerance
    assert found.view.labels.tolist() == columns(labels).tolist()
    counts = found.view.rows.probs * 20
    assert np.abs(counts - np.round(counts)).max() < 1e-12
    assert found.view.rows.probs.sum(axis=1) == pytest.approx(np.ones(50))


def test_rows_need_sum_to_one_only_as_rounding_allows():
    probs = [[0.35, 0.35, 0.35], [0.3, 0.3, 0.35], [0.35, 0.7, 0.0]] * 10
    whole = sample(probs, [0, 1, 1] * 10, rounding=0.05)
    assert whole.rows.probs.sum(axis=1) == pytest.approx(np.ones(30))
    assert whole.rows.stated[:3] == pytest.approx(np.array(probs[:3]))
    assert whole.rows.take(slice(2)).stated.shape == (2, 3)
    result = caltest.test(probs, [0, 1, 1] * 10, rounding=0.05, lens="class:1", **FAST)
    assert result.parameters["tolerance"] == 0.025
    again = caltest.test(whole.rows, [0, 1, 1] * 10, rounding=0.05, lens="class:1", **FAST)
    assert again.pvalue == result.pvalue
    with pytest.raises(InputError, match="do not sum to 1"):
        caltest.test(probs, [0, 1, 1] * 10, lens="class:1")


def test_single_precision_and_the_ends():
    scores = np.array([0.0, 0.05, 0.35, 0.7, 1.0, 1.0], dtype=np.float32)
    whole = sample(scores, [0, 0, 1, 1, 1, 1], rounding=0.05)
    assert whole.rows.probs[:, 1].tolist() == [0.0, 0.05, 0.35, 0.7, 1.0, 1.0]
    result = caltest.test(scores, [1, 0, 1, 1, 0, 1], rounding=0.05, **FAST)
    assert not any("probability 0" in each for each in result.warnings)  # it may be up to 2.5%


# ------------------------------------------------------------------ words


def test_the_words():
    result = caltest.test([0.7, 0.35, 0.0, 1.0], [1, 0, 0, 1], rounding=0.05, **FAST)
    text = " ".join(result.summary().split())
    assert "rounding to 5%: a stated 70% means 67.5 to 72.5%" in text
    assert "is wrong by more than 2.5 points" in text
    assert "No error beyond 2.5 points found" in text
    assert json.loads(json.dumps(result.to_dict()))["parameters"]["rounding"] == 0.05
    text = caltest.test(
        stated(dirichlet(20, 6, 0), 0.1), [0] * 20, lens="top:2", rounding=0.1, **FAST
    ).summary()
    assert "70% means 65 to 75%, and a sum of 2 is good to ±10 points" in " ".join(text.split())


# ------------------------------------------------------------------ files


def test_files(tmp_path):
    rng = np.random.default_rng(3)
    probs, labels = stated(rng.dirichlet(np.ones(4), 200), 0.05), rng.integers(0, 4, 200)
    table = tmp_path / "rows.csv"
    lines = [",".join(f"{p:.2f}" for p in row) + f",{y}" for row, y in zip(probs, labels, strict=True)]
    table.write_text("\n".join(["0,1,2,3,label", *lines]) + "\n")
    arrays = tmp_path / "rows.npz"
    np.savez(arrays, probs=probs, labels=labels)
    expected = caltest.test(probs, labels, rounding=0.05, lens="class:1", rng=0, n_resamples=99).pvalue
    found = caltest.files.scan(table)
    assert caltest.test(found, rounding=0.05, lens="class:1", rng=0, n_resamples=99).pvalue == expected
    assert caltest.files.read(arrays, rounding=0.05).rows.stated == pytest.approx(probs)
    options = ["--seed", "0", "--resamples", "99", "--json", "--jobs", "1", "--rounding", "0.05"]
    for file in (table, arrays):
        run = command("test", file, "--lens", "class:1", *options)
        assert json.loads(run.stdout)["pvalue"] == expected
    refused = command("test", table, *options)
    assert refused.exit_code == 2
    assert "rounding needs a single probability" in refused.output
    assert "give --lens top_label" in refused.output


# ------------------------------------------------------------------ clusters


def answers_in_clusters(rng, clusters=120, each=5, shift=0.0):
    """Stated confidences of several answers a question, rounded upwards by half a step.

    True rates are ``shift`` below what was stated less half a step.
    """
    truth = np.repeat((rng.integers(3, 11, clusters) + 0.5 + 1e-9) / 10 - 0.1, each)
    together = rng.random(clusters)[:, None] * np.ones(each)
    alone = rng.random((clusters, each))
    uniforms = np.where(rng.random((clusters, each)) < 0.6, together, alone).ravel()
    labels = (uniforms < truth - shift).astype(int)
    return np.ceil((truth - 1e-6) * 10) / 10, labels, np.repeat(np.arange(clusters), each)


def found_in_clusters(datasets, **options):
    count = 0
    for seed in range(datasets):
        probs, labels, clusters = answers_in_clusters(np.random.default_rng([3, seed]), **options)
        half = {"half": np.arange(len(labels)) % 2}
        given = {"clusters": clusters, "groups": half, "rounding": 0.1, "n_resamples": 199, "rng": seed}
        count += caltest.audit(probs, labels, **given).rejected
    return count


@pytest.mark.level
def test_the_size_of_means_in_clusters():
    # All are rounded upwards by half a step: one side of three views is at the border.
    assert found_in_clusters(60) / 60 <= binomial_limits(60, 0.05)[1]


@pytest.mark.slow
def test_an_error_beyond_rounding_is_found_in_clusters():
    assert found_in_clusters(4, shift=0.2) >= 3


def test_with_clusters_means_are_tested():
    probs, labels, clusters = answers_in_clusters(np.random.default_rng(0))
    found = caltest.audit(probs, labels, clusters=clusters, rounding=0.1, **FAST)
    assert {check.statistic for check in found.checks} == {"citl"}
    assert "rounding to 0.1 explains" in found.summary() or not found.rejected
    same = caltest.audit(probs, labels, clusters=clusters, tolerance=0.05, **FAST)
    assert same.pvalue == found.pvalue
    names = [f"q{cluster}" for cluster in clusters]
    assert caltest.audit(probs, labels, clusters=names, rounding=0.1, **FAST).pvalue == found.pvalue
    with pytest.raises(InputError, match="only means are tested"):
        caltest.audit(
            probs, labels, clusters=clusters, rounding=0.1, statistics=["citl", "scan"], **FAST
        )
    with pytest.raises(InputError, match=r"use caltest\.audit, which tests means"):
        caltest.test(probs, labels, clusters=clusters, rounding=0.1, **FAST)
