"""`test(..., tolerance=)`: valid for every model within the tolerance."""

import json

import numpy as np
import pytest
from support import P6, Y6, binomial_limits, every_outcome, form_within

import caltest
from caltest import InputError
from caltest.data import Rows
from caltest.predictive import GaussianPredictions
from caltest.statistics import STATISTICS, LargestBinError, Scan
from caltest.tolerance import one_sided, shifted

MONOTONE = [name for name, each in STATISTICS.items() if each.monotone]
SIDES = ("over", "under")


def two_columns(scores):
    return np.column_stack([1.0 - np.asarray(scores), scores])


def drawn(scores, rng):
    return (rng.random(len(scores)) < scores).astype(int)


def test_which_statistics_are_monotone():
    assert set(MONOTONE) == {"scan", "max_bin", "citl", "esce"}


@pytest.mark.parametrize("name", MONOTONE)
@pytest.mark.parametrize("side", SIDES)
def test_they_are(name, side):
    """Raising a label never adds to the evidence that predictions are too high."""
    rng = np.random.default_rng(0)
    predictions = Rows(two_columns(np.round(rng.random(80), 1)))
    statistic, counting = one_sided(STATISTICS[name](), side)
    form = form_within(statistic, predictions, side, 0.15)
    sign = (1.0 if counting == "greater" else -1.0) * (1.0 if side == "over" else -1.0)
    labels = rng.integers(0, 2, 80)
    raised = np.repeat(labels[None], 80, axis=0)
    np.fill_diagonal(raised, 1)
    assert (sign * form.of_labels(raised) <= sign * form.value(labels) + 1e-12).all()


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("tolerance", [0.0, 0.1, 0.35, 0.999])
def test_the_shifted_model(side, tolerance):
    scores = np.array([0.0, 1e-20, 0.05, 0.5, 0.9, 1.0])
    probs = shifted(Rows(np.column_stack([1.0 - scores, scores])), side, tolerance).probs
    sign = -1.0 if side == "over" else 1.0
    assert probs[:, 1] == pytest.approx(np.clip(scores + sign * tolerance, 0.0, 1.0), abs=1e-15)
    assert probs.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-15)
    if tolerance == 0.0:
        assert probs[1].tolist() == [1.0, 1e-20]


@pytest.mark.slow
@pytest.mark.parametrize("name", MONOTONE)
@pytest.mark.parametrize("side", SIDES)
def test_no_model_within_the_tolerance_is_rejected_too_often(name, side):
    """By complete enumeration: every outcome, its exact p-value, its chance under many truths."""
    rng = np.random.default_rng(1)
    scores = np.array([0.05, 0.2, 0.2, 0.45, 0.6, 0.6, 0.85, 0.95, 1.0])
    tolerance = 0.12
    predictions = Rows(two_columns(scores))
    hardest = shifted(predictions, side, tolerance)
    statistic, counting = one_sided(STATISTICS[name](), side)
    form = form_within(statistic, predictions, side, tolerance)
    outcomes, chances = every_outcome(hardest.probs)
    values = form.of_labels(outcomes) * (1.0 if counting == "greater" else -1.0)
    exact = np.array([chances[values >= value - 1e-9].sum() for value in values])
    low = np.clip(scores - tolerance, 0, 1) if side == "over" else np.zeros(9)
    high = np.ones(9) if side == "over" else np.clip(scores + tolerance, 0, 1)
    for truth in [low, high, *(low + (high - low) * rng.beta(0.4, 0.4, 9) for _ in range(200))]:
        _, likely = every_outcome(two_columns(truth))
        for level in (0.01, 0.05, 0.2, 0.5):
            assert likely[exact <= level].sum() <= level + 1e-12
    beyond = np.clip(low - 0.2, 0, 1) if side == "over" else np.clip(high + 0.2, 0, 1)
    _, likely = every_outcome(two_columns(beyond))
    assert likely[exact <= 0.2].sum() > chances[exact <= 0.2].sum()


@pytest.mark.level
@pytest.mark.parametrize("truth", ["boundary", "half"])
def test_the_size_by_simulation(truth):
    rejected = 0
    for seed in range(300):
        rng = np.random.default_rng([1, seed])
        scores = rng.uniform(0.3, 1.0, 150)
        right = scores - 0.05
        if truth == "half":
            right[scores > 0.65] = np.minimum(scores[scores > 0.65] + 0.05, 1.0)
        result = caltest.test(
            scores, drawn(right, rng), tolerance=0.05, alternative="over", n_resamples=39, rng=seed
        )
        rejected += result.pvalue <= 0.05
    assert rejected / 300 <= binomial_limits(300, 0.05)[1]


@pytest.mark.level
@pytest.mark.parametrize(("off", "rate"), [(0.05, 0.022), (0.0, 0.004)])
def test_two_sides_together_are_cautious(off, rate):
    """As docs/theory/bounds.md says, of 400 rows."""
    rejected = 0
    for seed in range(600):
        rng = np.random.default_rng([2, seed])
        scores = rng.uniform(0.1, 0.9, 400)
        labels = drawn(scores - off, rng)
        result = caltest.test(scores, labels, tolerance=0.05, n_resamples=199, rng=seed)
        rejected += result.pvalue <= 0.05
    low, high = binomial_limits(600, rate, 1e-3)
    assert low <= rejected / 600 <= high


def test_an_error_beyond_the_tolerance_is_found():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.4, 1.0, 1000)
    labels = drawn(scores - 0.2, rng)
    options = {"n_resamples": 199, "rng": 0}
    assert caltest.test(scores, labels, tolerance=0.05, alternative="over", **options).pvalue == 0.005
    assert caltest.test(scores, labels, tolerance=0.05, alternative="under", **options).pvalue == 1.0
    assert caltest.test(scores, labels, tolerance=0.05, **options).pvalue == 0.01
    assert caltest.test(scores, labels, tolerance=0.3, alternative="over", **options).pvalue > 0.5


@pytest.mark.parametrize("statistic", [Scan, LargestBinError])
@pytest.mark.parametrize("side", SIDES)
def test_without_tolerance_it_is_the_exact_test_of_that_side(statistic, side):
    rng = np.random.default_rng(4)
    scores = np.round(rng.random(200), 2)
    labels = drawn(scores, rng)
    plain = caltest.test(scores, labels, statistic(side), rng=3, n_resamples=99)
    sided = caltest.test(scores, labels, statistic(), alternative=side, rng=3, n_resamples=99)
    named = caltest.test(
        scores, labels, statistic(), alternative=side, tolerance=0, rng=3, n_resamples=99
    )
    assert plain.pvalue == sided.pvalue == named.pvalue
    assert plain.statistic == pytest.approx(sided.statistic, abs=1e-12)


def test_two_sided_doubles_the_smaller():
    rng = np.random.default_rng(4)
    scores = rng.random(200)
    labels = drawn(np.clip(scores - 0.1, 0, 1), rng)
    over, under, both = (
        caltest.test(scores, labels, tolerance=0.02, alternative=side, rng=3, n_resamples=99)
        for side in ("over", "under", "two-sided")
    )
    assert both.pvalue == min(1.0, 2.0 * min(over.pvalue, under.pvalue))
    assert both.parameters["side"] == "over"
    assert both.statistic == over.statistic
    low, high = over.pvalue_interval
    assert both.pvalue_interval == (min(1, 2 * low), min(1, 2 * high))


def test_moments_agree_with_draws_for_a_linear_statistic():
    rng = np.random.default_rng(5)
    scores = rng.random(500)
    labels = drawn(np.clip(scores - 0.06, 0, 1), rng)
    options = {"tolerance": 0.02, "alternative": "over", "rng": 0, "n_resamples": 4999}
    exact, curve = (
        caltest.test(scores, labels, "citl", null=null, **options)
        for null in ("monte_carlo", "moments")
    )
    assert exact.guarantee == "exact"
    assert curve.guarantee == "exact"  # it counts
    low, high = exact.pvalue_interval
    assert 0.8 * low < curve.pvalue < 1.2 * high


def test_densities_are_refused():
    law = GaussianPredictions([0.0, 1.0], [1.0, 1.0])
    with pytest.raises(InputError, match="this is about one probability, and these are Gaussian"):
        caltest.test(law, [0.0, 1.0], tolerance=0.1)
    with pytest.raises(InputError, match="a tolerance is about probabilities of an event"):
        caltest.test(law, [0.0, 1.0], "bias", tolerance=0.1)


EXTREMES = {
    "two rows": ([0.6, 0.3], [0, 1]),
    "equal": ([0.5] * 20, [0, 1] * 10),
    "all right": ([0.9] * 20, [1] * 20),
    "all wrong": ([0.9] * 20, [0] * 20),
    "certain and right": ([0.0, 1.0] * 10, [0, 1] * 10),
    "certain and wrong": ([0.0, 1.0] * 10, [1, 0] * 10),
}


@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("name", MONOTONE)
@pytest.mark.parametrize("tolerance", [0.0, 0.02, 0.7])
def test_extremes(case, name, tolerance):
    scores, labels = EXTREMES[case]
    for side in (*SIDES, "two-sided"):
        result = caltest.test(
            scores, labels, name, tolerance=tolerance, alternative=side, n_resamples=99, rng=0
        )
        assert 0.0 < result.pvalue <= 1.0
        json.dumps(result.to_dict(draws=True), allow_nan=False)
        if case == "certain and right":
            assert result.pvalue == 1.0
        if case == "all right" and side == "over":
            assert result.pvalue > 0.9
        if case == "all wrong" and side == "over" and tolerance < 0.5:
            assert result.pvalue == 0.01
    if case == "certain and wrong" and tolerance == 0.0:
        assert "that alone proves the model miscalibrated" in result.summary().replace("\n", " ")


def test_the_words_say_what_was_tested():
    result = caltest.test(P6, Y6, tolerance=0.02, alternative="over", n_resamples=99, rng=0)
    text = " ".join(result.summary().split())
    assert text.startswith("No error beyond 2 points found, p = 0.96 (exact), which does not prove")
    assert "H0 no predicted probability that the top class is right is more than 2 points" in text
    assert result.alternative == "over"
    assert result.parameters == {"side": "over", "tolerance": 0.02}
    assert result.to_dict()["claim"] == result.claim
    text = caltest.test([0.2, 0.7], [0, 1], alternative="under", n_resamples=9, rng=0).claim
    assert text == "no predicted probability that the label is class 1 is too low"


@pytest.mark.parametrize(
    ("lens", "words"), [("class:2", "the label is class 2"), ("top:2", "the label is among the top 2")]
)
def test_the_event_is_that_of_the_lens(lens, words):
    result = caltest.test(P6, Y6, lens=lens, tolerance=0.01, n_resamples=9, rng=0)
    assert result.claim == f"no predicted probability that {words} is wrong by more than 1 point"


def test_the_second_choice():
    result = caltest.test([0.2, 0.7], [0, 1], lens="sorted", tolerance=0.0, n_resamples=9, rng=0)
    assert result.claim == ("no predicted probability that the second choice is right is wrong")


def test_what_is_impossible_is_noted_of_the_sides_tested():
    scores, labels = [0.0, 1.0, 0.0] + [0.5] * 7, [1, 0, 0] + [0, 1] * 3 + [0]
    said = {
        side: caltest.test(scores, labels, alternative=side, tolerance=0, n_resamples=9, rng=0).warnings
        for side in ("over", "under", "two-sided")
    }
    assert "In 1 of 10 rows (counting from 0: 1) the observed label" in said["over"][-1]
    assert "In 1 of 10 rows (counting from 0: 0) the observed label" in said["under"][-1]
    assert "In 2 of 10 rows (counting from 0: 0, 1) the observed label" in said["two-sided"][-1]
    beyond = caltest.test(scores, labels, tolerance=0.1, n_resamples=9, rng=0).warnings
    assert not any("probability 0" in each for each in beyond)


def test_workers_do_not_change_a_number():
    rng = np.random.default_rng(0)
    scores = rng.random(500)
    labels = drawn(scores, rng)
    one, two = (
        caltest.test(scores, labels, tolerance=0.01, rng=1, n_resamples=199, n_jobs=n) for n in (1, 2)
    )
    assert one.pvalue == two.pvalue
    assert np.array_equal(one.null_distribution, two.null_distribution)


@pytest.mark.parametrize("statistic", ["esce", "citl"])
def test_more_classes_than_two_have_no_tolerance(statistic):
    """Labels of more classes would be looked up among two."""
    probs = np.random.default_rng(0).dirichlet(np.ones(5), 60)
    with pytest.raises(caltest.exceptions.InputError, match="one probability, and there are 5 classes"):
        caltest.test(probs, np.arange(60) % 5, statistic, lens="sorted", tolerance=0.05)
