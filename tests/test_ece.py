"""The ECE family: brute force, published numbers, enumeration, type I error."""

import numpy as np
import pytest
from pages import rows_of
from scipy.special import softmax
from scipy.stats import binom

import caltest
from caltest.binning import EqualMass, EqualWidth, MedianVariance, Uniform
from caltest.data import Rows
from caltest.statistics import ACE, ECE, MCE, SmoothECE, SquaredECE

NETWORKS = ["densenet121", "googlenet", "resnet18", "vgg19_bn"]


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.5] * 3, 40)
    probs[:2] = np.eye(3)[:2]
    return probs, rng.integers(0, 3, 40)


def brute_ece(probs, labels, cells, distance, maximum):
    gaps = np.eye(probs.shape[1])[labels] - probs
    values, weights = [], []
    for cell in np.unique(cells):
        gap = gaps[cells == cell].mean(axis=0)
        values.append(
            {
                "tv": 0.5 * np.abs(gap).sum(),
                "l1": np.abs(gap).sum(),
                "l2": np.sqrt(gap @ gap),
                "sqeuclidean": gap @ gap,
            }[distance]
        )
        weights.append(np.mean(cells == cell))
    return max(values) if maximum else np.dot(values, weights)


@pytest.mark.parametrize("distance", ["tv", "l1", "l2", "sqeuclidean"])
@pytest.mark.parametrize("binning", [Uniform(2), Uniform(10), MedianVariance(3)])
def test_against_brute_force(small, distance, binning):
    probs, labels = small
    cells = binning.cells(Rows(probs))
    for make, maximum in ((ECE, False), (MCE, True)):
        form = make(binning, distance).given(Rows(probs))
        expected = brute_ece(probs, labels, cells, distance, maximum)
        assert form.value(labels) == pytest.approx(expected, abs=1e-14)
        assert form._evaluate_visited(labels) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_published_values(reference, network):
    rows = rows_of(reference("widmann2019_networks_errors.csv"))
    published = {row["model"]: row for row in rows}[network]
    data = reference(f"cifar10_{network}.npz")
    raw = Rows(data["probs"])  # not renormalised, as published
    for statistic, column in (
        (ECE(Uniform(10)), "ECE_uniform"),
        (ECE(MedianVariance(100)), "ECE_dynamic"),
    ):
        value = statistic.given(raw).value(data["labels"])
        assert value == pytest.approx(float(published[column]), rel=1e-9)


def test_densenet40_published_values(reference):
    data = reference("cifar10_densenet40_logits.npz")
    probs = softmax(data["test_logits"].astype(float), axis=1)
    labels = data["test_labels"]
    assert caltest.estimate(probs, labels, ECE(Uniform(3), "l1")) == pytest.approx(0.11892, abs=5e-6)
    squared = caltest.estimate(probs, labels, SquaredECE(EqualWidth(15)), lens="top_label")
    assert squared == pytest.approx(0.0067677, abs=1e-7)


def test_smooth_ece_against_its_definition():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=300)
    labels = (rng.random(300) < scores**1.5).astype(int)
    t = (np.arange(4000) + 0.5) / 4000

    def smoothed_error(width):
        images = [scores, -scores, 2 - scores, 2 + scores, scores - 2]
        kernel = sum(np.exp(-0.5 * ((t[:, None] - c) / width) ** 2) for c in images)
        kernel /= width * np.sqrt(2 * np.pi)
        return np.abs(kernel @ (labels - scores) / 300).mean()

    value = caltest.estimate(scores, labels, SmoothECE())
    assert smoothed_error(value) == pytest.approx(value, abs=5e-4)


def test_log_mcb_of_an_impossible_label_is_infinite():
    result = caltest.test([0.0, 0.5, 0.7, 0.2], [1, 0, 1, 0], "mcb_log", rng=0)
    assert result.statistic == np.inf
    assert result.pvalue == 0.001
    assert any("had probability 0" in warning for warning in result.warnings)
    assert result.to_dict()["statistic"] == "inf"


@pytest.mark.level
def test_consistency_rejects_every_calibrated_model_and_says_so():
    rng = np.random.default_rng(0)
    rejected = {"consistency": 0, "monte_carlo": 0}
    repetitions = 40
    for _ in range(repetitions):
        probs = rng.dirichlet([0.1] * 10, 250)
        labels = np.array([rng.choice(10, p=p) for p in probs])
        for null in rejected:
            result = caltest.test(probs, labels, ECE(Uniform(10)), null=null, n_resamples=99, rng=rng)
            rejected[null] += result.rejects(0.05)
            assert (null == "consistency") == any("may reject every" in w for w in result.warnings)
    assert rejected["consistency"] == repetitions  # published: 1.0
    assert rejected["monte_carlo"] <= binom.ppf(1 - 1e-4, repetitions, 0.05)


@pytest.mark.slow
def test_a_thousand_classes_in_the_smallest_memory():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(1000, 0.02), 3000)
    labels = rng.integers(0, 1000, 3000)
    form = ECE(Uniform(10)).given(Rows(probs))
    values = form.of_labels(np.stack([labels, labels[::-1]]))
    assert values[0] == pytest.approx(brute_ece(probs, labels, form.cells, "tv", False), rel=1e-10)


def test_default_binning_and_lens_are_reported(small):
    probs, labels = small
    assert caltest.test(probs, labels, "ece", rng=0).parameters["binning"] == "Uniform"
    through = caltest.test(probs, labels, "ece", lens="top_label", rng=0)
    assert through.parameters == {"binning": "EqualWidth", "n_bins": 15, "distance": "tv"}
    assert caltest.test(probs, labels, ACE(EqualMass(3)), rng=0).lens == "top_label"
