"""Rows that were sampled by their label."""

import numpy as np
import pandas as pd
import pytest
from support import binomial_limits, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.data import sample

P = np.array([0.2, 0.01, 0.5])
Y = np.array([0, 0, 1])


def test_predictions_are_those_of_the_rows_kept():
    rows = sample(P, Y, sampling_rates={0: 0.1}).rows
    assert rows.probs[:, 1] == pytest.approx(P / (P + 0.1 * (1 - P)))
    assert rows.probs.sum(axis=1) == pytest.approx(np.ones(3))
    several = dirichlet(5, 3, 0)
    kept = sample(several, [0, 1, 2, 0, 1], sampling_rates={0: 0.5, 2: 0.25}).rows.probs
    expected = several * [0.5, 1.0, 0.25]
    assert kept == pytest.approx(expected / expected.sum(axis=1, keepdims=True))


def test_rates_of_all_classes_alike_change_nothing():
    every = (None, {0: 0.3, 1: 0.3}, {0: 1e-320, 1: 1e-320})
    plain, *kept = (caltest.test(P, Y, "brier", sampling_rates=rates, rng=0) for rates in every)
    for each in kept:
        assert (plain.statistic, plain.pvalue) == pytest.approx((each.statistic, each.pvalue))


def test_classes_are_named_as_labels_are():
    frame = pd.DataFrame(dirichlet(4, 3, 1), columns=["prob_cat", "prob_dog", "prob_eel"])
    labels = ["cat", "eel", "dog", "cat"]
    found = sample(frame, labels, sampling_rates={"eel": 0.1}).rows.probs
    for key in ("prob_eel", 2):
        assert (sample(frame, labels, sampling_rates={key: 0.1}).rows.probs == found).all()
    numbered = pd.DataFrame(frame.to_numpy(), columns=["1", "2", "3"])
    assert (sample(numbered, [1, 3, 2, 1], sampling_rates={3: 0.1}).rows.probs == found).all()
    with pytest.raises(InputError, match=r"for 'prob_doh', which is not a class; the classes are"):
        sample(frame, labels, sampling_rates={"prob_doh": 0.1})


def test_the_result_says_both_scales():
    result = caltest.test(P, Y, "brier", sampling_rates={0: 0.1}, n_resamples=9, rng=0)
    after = np.mean(P / (P + 0.1 * (1 - P)))
    (note,) = [each for each in result.warnings if "kept" in each]
    assert f"mean predicted of these rows: class 1 {P.mean():.3g} before and {after:.3g} after" in note
    assert "class 0 at 0.1" in note
    assert result.parameters["sampling_rates"] == {0: 0.1}
    assert "10% of class 0; predictions are adjusted to the rows" in " ".join(result.summary().split())
    assert result.to_dict()["parameters"]["sampling_rates"] == {"0": 0.1}


def test_weights_and_rates_go_together():
    rows = sample(P, Y, weights=[1, 2, 3], sampling_rates={0: 0.1}).rows
    assert rows.weights == pytest.approx([0.5, 1.0, 1.5])
    means = [np.average(each, weights=[1, 2, 3]) for each in (P, rows.probs[:, 1])]
    assert any("class 1 {:.3g} before and {:.3g} after".format(*means) in note for note in rows.notes)
    assert rows.probs[:, 1] == pytest.approx(P / (P + 0.1 * (1 - P)))
    both = {"weights": [1, 2, 3], "sampling_rates": {0: 0.1}}
    assert caltest.estimate(P, Y, "esce", **both) == pytest.approx(
        np.average(Y - rows.probs[:, 1], weights=[1, 2, 3])
    )


@pytest.mark.parametrize("more", [{"tolerance": 0.1}, {"rounding": 0.01}, {"alternative": "over"}])
def test_what_is_about_all_rows_is_refused(more):
    with pytest.raises(InputError, match="leave one of them out"):
        caltest.test(P, Y, sampling_rates={0: 0.1}, **more)


def rejections(rates, data_sets):
    found = []
    for seed in range(data_sets):
        rng = np.random.default_rng(seed)
        probs = rng.beta(0.3, 4.0, 2000)
        labels = (rng.random(2000) < probs).astype(int)
        kept = rng.random(2000) < np.where(labels == 0, 0.1, 1.0)
        found.append(
            caltest.test(
                probs[kept], labels[kept], "ece", sampling_rates=rates, n_resamples=39, rng=seed
            ).pvalue
        )
    return np.array(found)


@pytest.mark.slow
def test_level_of_a_model_that_is_calibrated_on_all_rows():
    found = rejections({0: 0.1}, 200)
    for level in (0.05, 0.2):
        low, high = binomial_limits(200, level)
        assert low <= np.mean(found <= level + 1e-12) <= high
    assert np.mean(rejections(None, 20) <= 0.05) == 1.0


@pytest.mark.level
def test_several_classes_keep_their_level():
    found = []
    shares = np.array([0.1, 1.0, 0.5])
    for seed in range(150):
        probs = dirichlet(400, 3, seed, 0.7)
        rng = np.random.default_rng([1, seed])
        labels = labels_from(probs, rng)
        kept = rng.random(400) < shares[labels]
        rates = {0: 0.1, 2: 0.5}
        found.append(
            caltest.test(
                probs[kept], labels[kept], "skce_uq", sampling_rates=rates, n_resamples=19, rng=seed
            ).pvalue
        )
    low, high = binomial_limits(150, 0.2)
    assert low <= np.mean(np.array(found) <= 0.2 + 1e-12) <= high


@pytest.mark.parametrize(
    ("names", "labels", "which"),
    [([1.0, 2.0], [1, 2], 1), (["p1", "p2"], [1, 2], 1), (["cat0", "cat1"], [0, 1], 0)],
)
def test_rates_are_matched_as_labels_are(names, labels, which):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 6, 400)
    probs, y = np.column_stack([1 - p, p]), (rng.random(400) < p).astype(int)
    named = caltest.data.sample(
        probs, np.array(labels)[y], class_names=names, sampling_rates={which: 0.2}
    )
    plain = caltest.data.sample(probs, y, sampling_rates={0: 0.2})
    assert named.rows.probs == pytest.approx(plain.rows.probs)
