"""Certificates: exact validity of the bounds, closed forms, words, hostile input."""

import json
from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta
from support import binomial_limits, every_outcome

import caltest
from caltest import InputError
from caltest.binning import EqualMass, EqualWidth, FromEdges
from caltest.bounds.intervals import mean_bounds
from caltest.data import Rows


def counts_law(q):
    """Probabilities of 0..n events of unequal chances."""
    law = np.ones(1)
    for chance in q:
        law = np.convolve(law, [1.0 - chance, chance])
    return law


def adversaries(n, mean, rng):
    """Probabilities of the same mean, as unequal as possible and less so."""
    total = n * mean
    yield np.full(n, mean)
    for sure in range(int(total) + 1):
        for sharing in range(1, n - sure + 1):
            if (total - sure) / sharing <= 1.0:
                q = np.zeros(n)
                q[:sure], q[sure : sure + sharing] = 1.0, (total - sure) / sharing
                yield q
    for _ in range(10):
        q = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0]))) * total
        if q.max() <= 1.0:
            yield q


def worst_miss(n, level, lower):
    """The largest probability that a lower bound exceeds the mean, just below each of its values."""
    rng = np.random.default_rng(n)
    means = lower[lower > 0.0] * (1.0 - 1e-9)
    return max(
        counts_law(q)[lower > q.mean() * (1.0 + 1e-12)].sum()
        for mean in means
        for q in adversaries(n, mean, rng)
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 14])
@pytest.mark.parametrize("level", [0.25, 0.025, 0.0005])
def test_bounds_of_a_mean_hold_whatever_the_probabilities(n, level):
    events = np.arange(n + 1.0)
    lower, upper = mean_bounds(np.full(n + 1, float(n)), events, level)
    assert worst_miss(n, level, lower) <= level * (1.0 + 1e-6)
    assert upper == pytest.approx(1.0 - lower[::-1], abs=1e-12)
    assert (np.diff(lower) > 0.0).all()
    # Clopper and Pearson's own bound of one event would fail: the test can tell.
    plain = np.r_[0.0, beta.ppf(level, events[1:], n - events[1:] + 1.0)]
    assert lower[2:] == pytest.approx(plain[2:])
    assert (worst_miss(n, level, plain) > level * (1.0 + 1e-6)) == (n > 1)


@pytest.mark.slow
@pytest.mark.parametrize("q", [np.full(8, 0.5), np.tile([0.0, 1.0], 4), np.linspace(0.02, 0.4, 8)])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_all_bins_hold_at_once_in_all_outcomes(q, confidence):
    scores = np.linspace(0.1, 0.9, 8)
    truth = q.reshape(2, 4).mean(axis=1)
    outcomes, chances = every_outcome(np.column_stack([1 - q, q]))
    held = 0.0
    for labels, chance in zip(outcomes, chances, strict=True):
        found = caltest.certificate(two(scores), labels, n_bins=2, confidence=confidence)
        held += chance * ((found.lower <= truth) & (truth <= found.upper)).all()
    assert held >= confidence


def two(scores):
    scores = np.asarray(scores, dtype=float)
    return np.column_stack([1.0 - scores, scores])


def calibrated(n, seed):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return two(scores), (rng.random(n) < scores).astype(int)


@pytest.mark.level
def test_coverage_of_distances():
    """Scores too extreme by a temperature of 0.7: the distance lies between proved and certified."""
    held, repetitions = 0, 200
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        q = rng.random(150)
        odds = (q / (1.0 - q)) ** (1 / 0.7)
        probs = two(odds / (1.0 + odds))
        found = caltest.certificate(probs, rng.random(150) < q)
        cells = EqualMass(10).cells(Rows(probs))
        truth = np.abs(np.bincount(cells, weights=q - probs[:, 1]) / np.bincount(cells)).max()
        held += found.proved <= truth <= found.distance
    assert held / repetitions >= binomial_limits(repetitions, 0.95)[0]


def test_by_hand():
    """Ten rows that say 0.2, of which three come true, and ten that say 0.9, of which all do."""
    scores, labels = np.repeat([0.2, 0.9], 10), [1] * 3 + [0] * 7 + [1] * 10
    found = caltest.certificate(two(scores), labels, n_bins=2, confidence=0.9)
    assert found.level == pytest.approx(0.025)
    low, high = beta.ppf(0.025, 3, 8), beta.ppf(0.975, 4, 7)
    assert found.lower == pytest.approx([low, 0.025**0.1])
    assert found.upper == pytest.approx([high, 1.0])
    assert found.distances == pytest.approx([high - 0.2, 0.9 - 0.025**0.1])
    assert found.distance == found.under == pytest.approx(high - 0.2)
    assert found.over == pytest.approx(0.9 - 0.025**0.1)
    assert (found.proved, found.miscalibrated) == (0.0, ())
    assert found.estimates.tolist() == [0.3, 1.0]
    table = found.table()
    assert table["rows"].tolist() == [10, 10]
    assert table["lower"].tolist() == found.lower.tolist()


def test_miscalibration_is_proved():
    scores, labels = np.repeat([0.2, 0.9], 100), [1] * 100 + [0] * 100
    found = caltest.certificate(two(scores), labels, n_bins=2)
    bound = 0.0125 ** (1 / 100)
    first, second = found.miscalibrated
    assert first == (0.2, 0.2, "under", pytest.approx(bound - 0.2), 100)
    assert second == (0.9, 0.9, "over", pytest.approx(bound - 0.1), 100)
    assert found.proved == pytest.approx(bound - 0.1)


# ------------------------------------------------------------------ the result


def test_the_result_is_inert_and_plain():
    found = caltest.certificate(*calibrated(300, 2))
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["distance"] == found.distance
    with pytest.raises(FrozenInstanceError):
        found.distance = 0.0
    with pytest.raises(ValueError, match="read-only"):
        found.lower[0] = 0.0
    scores = two(np.repeat([0.2, 0.9], 100))
    (first, _) = caltest.certificate(scores, [1] * 100 + [0] * 100).to_dict()["miscalibrated"]
    assert first["direction"] == "under"


def test_ties_leave_fewer_bins():
    scores, labels = np.r_[np.linspace(0.1, 0.9, 20), np.ones(60)], np.arange(80) % 4 > 0
    text = caltest.certificate(two(scores), labels, n_bins=8).summary()
    assert "80 rows, in 3 bins by predicted probability, equal ones in one bin" in text


def test_one_lens_at_a_time():
    """What audits and lower bounds take, every class by itself, is explained where it is not taken."""
    probs, labels = np.full((30, 3), 1 / 3), np.arange(30) % 3
    for call in caltest.certificate, partial(caltest.test, tolerance=0.02):
        with pytest.raises(InputError, match="'classwise' is every class by itself, which only"):
            call(probs, labels, lens="classwise")


def test_summary():
    scores, labels = np.repeat([0.2, 0.9], 10), [1] * 3 + [0] * 7 + [1] * 10
    assert caltest.certificate(two(scores), labels, n_bins=2).summary() == SUMMARY


SUMMARY = """\
The predicted probability that the label is class 1 is within ±49.2 points of the truth, on
average over each bin (95% confidence).
At most 25.5 points too high, at most 49.2 too low; the most where 20.0% is predicted.

  data       20 rows, in 2 bins by predicted probability
  method     Clopper–Pearson bounds of the mean probability in every bin, all at once
  supposed   independent rows; errors that cancel within a bin do not show"""


def test_row_order_does_not_matter():
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.ones(3), 500)
    labels = rng.integers(0, 3, 500)
    order = rng.permutation(500)
    one = caltest.certificate(probs, labels).to_dict()
    assert one == caltest.certificate(probs[order], labels[order]).to_dict()
    assert one["lens"] == "top_label"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([0.3] * 30, [0, 1] * 15), ([0.3, 0.6], [0, 1]), ([0.5, 0.5], [1, 1]),
        (np.linspace(0, 1, 40), [1] * 40), (np.linspace(0, 1, 40), [0] * 40),
        ([0.0] * 20 + [1.0] * 20, [0] * 20 + [1] * 20),
        ([0.0] * 20 + [1.0] * 20, [1] * 20 + [0] * 20), ([1.0] * 30, [1] * 29 + [0]),
        ([1e-300, 1.0, 0.5, 1 - 1e-16], [0, 1, 0, 1]),
        (np.repeat(np.linspace(0, 1, 5), 8), np.tile([0, 1], 20)),
    ],
)  # fmt: skip
def test_hostile_input(scores, labels):
    found = caltest.certificate(two(scores), labels)
    assert 0.0 <= found.proved <= found.distance <= 1.0
    assert ((found.lower >= 0.0) & (found.upper <= 1.0) & (found.distances >= 0.0)).all()
    assert found.counts.sum() == len(scores)
    assert "of the truth, on" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.table()) == len(found.counts)


def test_certain_predictions():
    right = caltest.certificate(two([1.0] * 100), [1] * 100)
    assert len(right.counts) == 1  # ties stay together
    assert right.distance == pytest.approx(1.0 - 0.025**0.01)
    assert right.under == 0.0
    wrong = caltest.certificate(two([1.0] * 100), [1] * 99 + [0])
    assert wrong.proved == pytest.approx(0.025 / 100)  # once is enough


def test_bins_of_all_kinds():
    probs, labels = calibrated(200, 5)
    found = caltest.certificate(probs, labels, binning=EqualWidth(4))
    assert len(found.counts) == 4
    assert (np.diff(found.predicted) > 0).all()
    assert caltest.certificate(probs, labels, n_bins=500).counts.tolist() == [1.0] * 200
    assert caltest.certificate(probs, labels, n_bins=1).distance < found.distance
    given = caltest.certificate(probs, labels, binning=FromEdges([0, 0.5, 1]))
    assert given.starts.tolist() == [probs[:, 1].min(), probs[probs[:, 1] > 0.5, 1].min()]


def test_three_classes_through_lenses():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 300)
    labels = rng.integers(0, 3, 300)
    assert caltest.certificate(probs, labels, lens="class:2").lens == "class:2"
    with pytest.raises(InputError, match=r"3 classes through the lens 'sorted'; give a lens such as"):
        caltest.certificate(probs, labels, lens="sorted")


def test_the_event_is_named():
    probs = pd.DataFrame({"healthy": [0.25, 0.6] * 20, "ill": [0.75, 0.4] * 20})
    found = caltest.certificate(probs, ["healthy", "ill"] * 20)
    assert found.event == found.to_dict()["event"] == "the label is 'ill'"
    assert str(found).startswith(
        "The predicted probability that the label is 'ill' is within ±75 points"
    )


def test_nearly_certain_is_not_certain():
    text = str(caltest.certificate(two([0.99996] * 50), [1] * 50, confidence=0.99999))
    assert "(99.999% confidence)" in text
    assert "the most where >99.9% is predicted" in " ".join(text.split())


def test_networks(reference):
    """VGG-19 states 99% and is right far less often; GoogLeNet is near what it says."""
    vgg, googlenet = (
        caltest.certificate(arrays["probs"], arrays["labels"])
        for arrays in map(reference, ("cifar10_vgg19_bn.npz", "cifar10_googlenet.npz"))
    )
    assert vgg.proved > 0.15
    assert googlenet.distance < 0.1 < vgg.distance
