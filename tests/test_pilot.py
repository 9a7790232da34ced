"""Pilots: what is assumed to be true of predictions."""

import numpy as np
import pandas as pd
import pytest
from support import binomial_limits, dirichlet, labels_from, sentence

import caltest
from caltest.planning import pilot
from caltest.simulation import tempered
from validation.generative import m2


def test_stated_errors():
    probs = dirichlet(50, 3, 1)
    sure = pilot(probs, temperature=0.5)
    assert sure.truth == pytest.approx(np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True))
    assert "overconfident" in sure.assumed
    odds = pilot(probs, bias=1.0, target=2)
    ratio = odds.truth[:, 2] / (1 - odds.truth[:, 2]) * (1 - probs[:, 2]) / probs[:, 2]
    assert ratio == pytest.approx(np.exp(-1.0))
    top = pilot(probs, overconfidence=0.05)
    rows, columns = np.arange(50), probs.argmax(axis=1)
    assert probs[rows, columns] - top.truth[rows, columns] == pytest.approx(0.05)
    assert top.error == pytest.approx(0.05)
    certain = pilot([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], overconfidence=-0.6)
    assert certain.truth.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    for made in (sure, odds, top):
        assert made.truth.sum(axis=1) == pytest.approx(1.0)
    assert pilot(probs, truth=lambda g: g[:, ::-1]).truth == pytest.approx(probs[:, ::-1])
    assert pilot(probs, bias=-1e4, target=0).truth == pytest.approx(np.eye(3)[[0] * 50])
    assert pilot(np.array([0.2, 0.6]), bias=0.0).error == 0.0


def test_names_of_classes():
    table = pd.DataFrame(dirichlet(30, 3, 0), columns=["1", "2", "cat"])
    assert pilot(table, bias=0.5, target="cat").assumed.startswith("the log-odds of class cat")
    drawn = pilot(table, bias=0.5, target="cat")(20, rng=np.random.default_rng(0))
    assert drawn.rows.classes == ("1", "2", "cat")
    found = caltest.power(
        pilot(table, temperature=0.5), 40, "ks", lens="class:cat", n_datasets=5, rng=0
    )
    assert found.lens == "class:cat"


def test_a_pilot_draws_its_rows_and_the_truth():
    made = pilot([[0.9, 0.1, 0.0], [0.2, 0.2, 0.6]], truth=[[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    drawn = made(4000, rng=np.random.default_rng(0))
    first = drawn.rows.probs[:, 0] == 0.9
    low, high = binomial_limits(4000, 0.5)
    assert low <= first.mean() <= high
    assert (drawn.labels[~first] == 1).all()
    assert set(drawn.labels[first]) == {0, 2}
    low, high = binomial_limits(int(first.sum()), 0.5)
    assert low <= (drawn.labels[first] == 0).mean() <= high


@pytest.mark.slow
def test_rows_to_come_have_weights_like_the_pilots():
    rng = np.random.default_rng(4)
    probs, wrong = rng.uniform(0.2, 0.8, 500), rng.random(500) < 0.5
    truth = np.where(wrong, probs - 0.15, probs)
    weights = np.where(wrong, 0.0, rng.uniform(0.5, 2.0, 500))
    options = {"n": 150, "statistic": "citl", "n_datasets": 200, "n_resamples": 99, "rng": 0}

    alike = caltest.power(pilot(probs, truth=truth), **options)
    same = caltest.power(pilot(probs, truth=truth, weights=np.full(500, 3.0)), **options)
    assert same.to_dict() == alike.to_dict()

    right = pilot(probs, truth=truth, weights=weights)  # where it is wrong, no row counts
    assert right.error == 0.0
    found = caltest.power(right, **options, under_null=True)
    low, high = binomial_limits(200, 0.05)
    assert low <= found.power <= high
    assert low <= found.size <= high
    worse = pilot(probs, truth=truth, weights=np.where(wrong, 1.0, 0.01))
    assert worse.error == pytest.approx(0.15 / 1.01, rel=0.1)
    assert caltest.power(worse, **options).power > alike.power
    assert "Rows to come are assumed to have weights like those of the pilot" in worse.notes[-1]

    rows = caltest.data.sample(probs, labels_from(np.c_[1 - probs, probs], rng), weights=weights).rows
    assert caltest.power(pilot(rows, truth=truth), **options).power == found.power
    drawn = right(50, rng=np.random.default_rng(0))
    assert drawn.rows.weights[drawn.rows.weights > 0.0].mean() == pytest.approx(1.0)


@pytest.mark.level
def test_tests_of_weighted_rows_have_the_power_of_those_in_effect():
    """A test of a mean has the power of as many rows as these count in effect."""
    rng = np.random.default_rng(5)
    probs, weights = rng.uniform(0.3, 0.7, 2000), rng.choice([1.0, 9.0], 2000)
    weighted = pilot(probs, bias=0.35, weights=weights)
    share = weights.mean() ** 2 / (weights**2).mean()
    given = {"statistic": "citl", "n_datasets": 300, "n_resamples": 199, "rng": 1}
    found = caltest.power(weighted, 400, **given)
    effective = caltest.power(pilot(probs, bias=0.35), round(400 * share), **given)
    low, high = found.interval
    assert low - 0.05 <= effective.power <= high + 0.05
    assert caltest.power(pilot(probs, bias=0.35), 400, **given).power > high


def test_known_truths_and_samples():
    sure = tempered(n_samples=200, temperature=0.5, rng=0)
    assert pilot(sure).truth == pytest.approx(sure.truth)
    assert pilot(sure).error == pytest.approx(sure.ece)
    whole = caltest.data.sample(sure.probs, sure.labels)  # whose labels are not looked at
    assert pilot(whole, temperature=0.5).truth == pytest.approx(sure.truth)
    many = caltest.power(pilot(whole, temperature=0.5), 2000, "ecd", n_datasets=2, rng=0)
    assert "repeat each of them 10 times" in many.warnings[-1]


def test_no_error_is_rounding():
    assert pilot(dirichlet(50, 3, 1), temperature=1.0).error == 0.0
    p = np.array([0.2, 0.6, 0.9])
    one = pilot(p, truth=p**2)
    assert one.truth[:, 1].tolist() == (p**2).tolist()
    assert pilot(p, truth=lambda g: g[:, 1] ** 2).truth == pytest.approx(one.truth)


# ------------------------------------------------------------------ wrong input

G = dirichlet(20, 3, 0)
Y = np.arange(20) % 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pilot(G), "nothing is assumed to be true of the pilot; give one of temperature=0.8"),
        (lambda: pilot(G, weights=[1.0], temperature=2), "weights has 1 entry, and there are 20 rows"),
        (
            lambda: pilot(pd.DataFrame(G), weights=pd.Series(Y, Y + 3), temperature=2),
            "weights and probs|probs and weights",
        ),
        (lambda: pilot(G, temperature=2, bias=1.0, target=0), "both temperature= and bias= are"),
        (lambda: pilot(G, temperature=-1), "temperature is -1; give a positive number"),
        (lambda: pilot(G, bias=1.0), r"\(target\): give a column from 0 to 2, not nothing"),
        (lambda: pilot(G, bias=1.0, target=3), "a column from 0 to 2, not 3"),
        (lambda: pilot(G, bias=np.inf, target=0), "bias is inf; give log-odds"),
        (lambda: pilot(G, overconfidence=5), "overconfidence is 5; give a difference"),
        (lambda: pilot(G, target=1), "target is 1, which is the class of a bias"),
        (lambda: pilot(G, truth=G[:5]), "truth has shape .5, 3., and the pilot's predictions .20, 3."),
        (lambda: pilot(G, truth=2 * G), "row 0 of truth .* sums to 2"),
        (lambda: pilot(G, truth="none"), "truth is 'none'; give probabilities"),
        (lambda: pilot(G, truth=G * (1 + 1j)), "give probabilities .N, m., or a function"),
        (lambda: pilot(2 * G, temperature=2), "probs"),
        (lambda: pilot(m2(rng=0), truth=G), "simulated data know their truth"),
        (lambda: pilot(m2(rng=0), bias=1), "both bias= and truth= are"),
    ],
)
def test_wrong_input(call, words):
    sentence(call, words)


def test_weights_cost_rows():
    weights = np.random.default_rng(5).choice([1.0, 9.0], 2000)
    share = weights.mean() ** 2 / (weights**2).mean()
    weighted = pilot(np.linspace(0.3, 0.7, 2000), bias=0.35, weights=weights)
    assert f"100 rows are worth {100 * share:.0f} of equal weight" in weighted.notes[-1]
