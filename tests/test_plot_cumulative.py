"""Cumulative differences: the path by hand, and a band that says what the test says."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from support import dirichlet, labels_from

import caltest
from caltest import InputError, pvalues
from caltest.pictures import critical
from caltest.plots import CumulativeDisplay

pytestmark = pytest.mark.usefixtures("pictures")


def titles(display):
    return display.ax_.get_title(loc="left")


@pytest.mark.parametrize("alpha", [0.05, 0.7, 0.3, 0.01, np.nextafter(0.05, 0.0), 0.05 + 1e-15])
@pytest.mark.parametrize("count", [9, 19, 99, 169, 999])
def test_p_is_at_most_the_level_exactly_beyond_the_mark(count, alpha):
    rng = np.random.default_rng(count)
    for most in (10**6, 20):  # draws are hardly ever tied, and often
        draws = rng.integers(most, size=count).astype(float)
        limit = critical(draws, alpha)
        for observed in np.concatenate([draws, draws + 0.5, [draws.min() - 1.0]]):
            p = pvalues.pvalue(pvalues.count(draws, observed, "greater"), count, "greater")
            assert (p <= alpha) == (observed > limit)


def test_the_path_by_hand():
    display = CumulativeDisplay.from_predictions([0.9, 0.2, 0.5, 0.2], [1, 0, 1, 1], rng=0)
    assert display.shares.tolist() == [0.0, 0.5, 0.75, 1.0]
    assert display.differences == pytest.approx([0.0, -0.15, -0.275, -0.3])
    assert display.result.statistic == pytest.approx(0.3)
    assert "n = 4" in titles(display)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.95, 0.9, 0.5])
@pytest.mark.parametrize("n", [12, 100])  # of few rows statistics are tied
@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 40), marks=pytest.mark.slow)])
def test_the_path_leaves_the_band_exactly_if_the_test_rejects(seeds, n, confidence):
    rng, seen = np.random.default_rng(n), set()
    for seed in seeds:
        probs = rng.choice([0.1, 0.3, 0.6, 0.9], n) if seed % 2 else rng.random(n)
        labels = (rng.random(n) < np.sqrt(probs) * (seed % 4 > 1) + probs * (seed % 4 < 2)).astype(int)
        options = {"n_resamples": 99, "rng": seed}
        display = CumulativeDisplay.from_predictions(probs, labels, confidence=confidence, **options)
        tested = caltest.test(probs, labels, "ks", **options)
        largest = np.abs(display.differences).max()
        assert largest == pytest.approx(tested.statistic, abs=1e-12)
        assert display.result.pvalue == tested.pvalue
        leaves = largest > display.critical * (1.0 + 1e-9)
        assert leaves == display.outside == (tested.pvalue <= 1.0 - confidence + 1e-12)
        assert ("not rejected" in titles(display)) == (not leaves)
        assert (f"p = {tested.pvalue:.2g}" in titles(display)) or tested.pvalue == 1.0
        seen.add(leaves)
        plt.close(display.figure_)
    assert seen == {True, False} or len(seeds) == 6


def test_many_classes_are_seen_through_a_lens():
    probs = dirichlet(80, 4, 5)
    labels = labels_from(probs, np.random.default_rng(6))
    top = CumulativeDisplay.from_predictions(probs, labels, n_resamples=19, rng=0)
    assert (top.title, top.result.lens) == ("Top class", "top_label")
    named = CumulativeDisplay.from_predictions(probs, labels, lens="class:2", n_resamples=19, rng=0)
    assert named.title == "Class 2"
    with pytest.raises(InputError, match="the lens 'sorted' shows 4 classes"):
        CumulativeDisplay.from_predictions(probs, labels, lens="sorted")
    with pytest.raises(InputError, match="give n_resamples=19 or more"):
        CumulativeDisplay.from_predictions(probs, labels, n_resamples=18)


def test_what_cannot_be_chance_is_told_whatever_p_is():
    rng = np.random.default_rng(0)
    probs = rng.random(500)
    labels = (rng.random(500) < probs).astype(int)
    probs[3], labels[3] = 0.0, 1
    display = CumulativeDisplay.from_predictions(probs, labels, rng=0)
    assert display.impossible == 1
    assert not display.outside
    assert titles(display).endswith("labels of probability 0 occurred: that alone proves it wrong")
