"""Pilots: what is assumed to be true of predictions, stated or estimated."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2
from support import binomial_limits, dirichlet, labels_from

import caltest
from caltest import InputError
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
    given = pilot(probs, truth=lambda g: g[:, ::-1])
    assert given.truth == pytest.approx(probs[:, ::-1])
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
    again = caltest.power(pilot(rows, truth=truth), **options)
    assert again.power == found.power
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


def test_estimated_errors():
    sure = tempered(n_samples=4000, temperature=0.8, rng=0)
    fitted = pilot(sure.probs, sure.labels)
    assert np.abs(fitted.truth - sure.truth).max() < 0.03
    assert fitted.error == pytest.approx(sure.ece, rel=0.25)
    assert "takes some of the pilot's noise" in fitted.notes[-1]
    binary = tempered(n_samples=4000, alpha=[1.0, 1.0], temperature=0.7, rng=1)
    line = pilot(binary.probs, binary.labels)
    own = caltest.recalibration(binary.probs, binary.labels)
    p = binary.probs[:, 1]
    assert np.log(line.truth[:, 1] / line.truth[:, 0]) == pytest.approx(
        own.intercept + own.slope * np.log(p / (1 - p))
    )
    steps = pilot(binary.probs, binary.labels, recalibration="isotonic")
    assert (np.diff(steps.truth[np.argsort(p), 1]) >= -1e-12).all()
    assert "overstated" in steps.notes[-1]
    assert steps.error > line.error


def test_known_truths_and_pairs():
    sure = tempered(n_samples=200, temperature=0.5, rng=0)
    assert pilot(sure).truth == pytest.approx(sure.truth)
    assert pilot(sure).error == pytest.approx(sure.ece)
    whole = caltest.data.sample(sure.probs, sure.labels)
    results = [
        caltest.power(model, 50, "ecd", n_datasets=20, rng=0)
        for model in (whole, (sure.probs, sure.labels), pilot(whole))
    ]
    assert len({result.points for result in results}) == 1
    assert "as fitted to the pilot" in results[0].summary()


def test_a_pilot_that_shows_nothing_says_so():
    probs = dirichlet(100, 3, 2)
    labels = labels_from(probs, np.random.default_rng(2))
    found = caltest.power((probs, labels), 30, "ecd", n_datasets=5, rng=0)
    assert any("does not show that its model is miscalibrated" in note for note in found.warnings)
    many = caltest.power(pilot(probs, temperature=0.5), 1000, "ecd", n_datasets=2, rng=0)
    assert "repeat each of them 10 times" in many.warnings[-1]


def test_the_careful_end_of_a_temperature():
    """It is where a likelihood ratio is just not rejected; the interval is never below 0."""
    sure = tempered(n_samples=400, temperature=0.7, rng=4)
    made, end = (pilot(sure.probs, sure.labels, careful=careful) for careful in (False, True))
    low, high = map(float, re.findall(r"interval (\S+) to (\S+)\)", made.assumed)[0])
    assert 0.0 < low < high < 1.0
    assert f"a temperature of {high:.3g}, the careful end of" in end.assumed

    def loglik(truth):
        return float(np.log(truth[np.arange(400), sure.labels]).sum())

    assert 2.0 * (loglik(made.truth) - loglik(end.truth)) == pytest.approx(chi2.isf(0.05, 1), rel=1e-3)
    assert end.error < made.error
    assert f"has an error of {100 * end.error:.2g} points: careful=True" in made.notes[-1]
    assert not any("careful" in note for note in end.notes)
    few = pilot([[0.5, 0.3, 0.2]] * 2 + [[0.4, 0.5, 0.1]], [0, 2, 0])
    low = float(re.findall(r"interval (\S+) to", few.assumed)[0])
    assert low > 0.0


def test_the_careful_end_of_a_line():
    rng = np.random.default_rng(1)
    p = rng.beta(2.0, 2.0, 500)
    labels = (rng.random(500) < p**1.5).astype(int)
    made, end = (pilot(p, labels, careful=careful) for careful in (False, True))
    chosen = np.arange(500), labels
    gain = np.log(made.truth[chosen]).sum() - np.log(end.truth[chosen]).sum()
    assert 2.0 * gain == pytest.approx(chi2.isf(0.05, 2), rel=1e-3)
    moved, whole = (logit(each.truth[:, 1]) - logit(p) for each in (end, made))
    assert np.ptp(moved / whole) < 1e-6  # on the way from the fit to calibrated
    assert 0.0 < end.error < made.error


def test_the_careful_end_does_not_promise_too_much():
    """Of 60 pilots of a model that is little wrong, few overstate its error at the careful end."""
    rng, more, best = np.random.default_rng(0), 0, 0
    for _ in range(60):
        p = rng.beta(2.0, 2.0, 300)
        truth = expit(0.8 * logit(p))
        labels = (rng.random(300) < truth).astype(int)
        error = float(np.abs(p - truth).mean())
        best += pilot(p, labels).error > error
        try:
            more += pilot(p, labels, careful=True).error > error
        except InputError:
            continue
    assert best > 30
    assert more <= 60 * binomial_limits(60, 0.05)[1]


def test_isotonic_fits_say_where_they_may_be_noise():
    rng = np.random.default_rng(5)
    p = rng.beta(2.0, 2.0, 200)
    made = [pilot(p, (rng.random(200) < p).astype(int), recalibration="isotonic") for _ in range(12)]
    assert sum(any("does not show" in note for note in each.notes) for each in made) >= 9
    wrong = pilot(p, (rng.random(200) < p**3).astype(int), recalibration="isotonic")
    assert not any("does not show" in note for note in wrong.notes)


def test_notes_are_said_once_and_nothing_is_rounding():
    made = pilot([0.1, 0.4, 0.6, 0.7, 0.3, 0.2], [0, 1, 0, 1, 0, 1])
    assert len(set(made.notes)) == len(made.notes)
    assert pilot(dirichlet(50, 3, 1), temperature=1.0).error == 0.0
    p = np.array([0.2, 0.6, 0.9])
    one = pilot(p, truth=p**2)
    assert one.truth[:, 1].tolist() == (p**2).tolist()
    assert pilot(p, truth=lambda g: g[:, 1] ** 2).truth == pytest.approx(one.truth)


def test_labels_called_impossible_are_left_out_of_the_fit_and_said():
    probs = np.vstack([dirichlet(200, 3, 3), [[0.5, 0.5, 0.0]]])
    labels = np.append(labels_from(probs[:-1], np.random.default_rng(3)), 2)
    made = pilot(probs, labels)
    assert "1 of 201 labels of the pilot had predicted probability 0" in made.notes[0]
    assert np.isfinite(made.truth).all()


# ------------------------------------------------------------------ wrong input

G = dirichlet(20, 3, 0)
Y = np.arange(20) % 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pilot(G), "nothing is assumed to be true of the pilot; give one of temperature=0.8"),
        (
            lambda: pilot(G, Y, weights=np.arange(20) % 4 + 1),
            "the pilot has weights, and a fit .* state an error, overconfidence=0.05 for instance, or",
        ),
        (lambda: pilot(G, weights=[1.0], temperature=2), "weights has 1 entry, and there are 20 rows"),
        (
            lambda: pilot(pd.DataFrame(G), weights=pd.Series(Y, Y + 3), temperature=2),
            "weights and probs|probs and weights",
        ),
        (
            lambda: pilot(G, pd.Series(Y), weights=pd.Series(Y, Y + 3), temperature=2),
            "weights and labels|labels and weights",
        ),
        (
            lambda: pilot(G, temperature=2, bias=1.0, target=0),
            "both temperature= and bias= are",
        ),
        (lambda: pilot(G, temperature=-1), "temperature is -1; give a positive number"),
        (lambda: pilot(G, bias=1.0), "a bias needs the class it is of .* from 0 to 2"),
        (lambda: pilot(G, bias=1.0, target=3), "target is 3, and the pilot has 3 classes"),
        (lambda: pilot(G, bias=np.inf, target=0), "bias is inf; give log-odds"),
        (lambda: pilot(G, overconfidence=5), "overconfidence is 5; give a difference"),
        (lambda: pilot(G, target=1), "target is 1, which is the class of a bias"),
        (lambda: pilot(G, truth=G[:5]), "truth has shape .5, 3., and the pilot's predictions .20, 3."),
        (lambda: pilot(G, truth=2 * G), "row 0 of truth .* sums to 2"),
        (lambda: pilot(G, truth="none"), "truth is 'none'; give probabilities"),
        (lambda: pilot(G, truth=G * (1 + 1j)), "give probabilities .N, m., or a function"),
        (lambda: pilot(G, temperature=2, careful=True), "careful=True is for an error as fitted"),
        (lambda: pilot([0.1, 0.4, 0.6, 0.7], [0, 1, 0, 1], careful=True), "has nothing to plan for"),
        (
            lambda: pilot([0.1, 0.4, 0.7], [0, 1, 0], recalibration="isotonic", careful=True),
            "an isotonic regression has none; give recalibration='logistic'",
        ),
        (lambda: pilot(G, recalibration="isotonic"), "which needs the pilot's labels"),
        (lambda: pilot(G, Y, recalibration="platt"), "there is no recalibration 'platt'"),
        (lambda: pilot(G, Y, recalibration="logistic"), "is for two classes, and the pilot has 3"),
        (lambda: pilot(G, G.argmax(axis=1)), "no temperature fits the pilot's labels"),
        (lambda: pilot([0.2, 0.3, 0.7, 0.8], [0, 0, 1, 1]), "no logistic recalibration fits"),
        (lambda: pilot(2 * G, temperature=2), "probs"),
        (lambda: pilot(m2(rng=0), [1]), "simulated data know their labels"),
        (lambda: pilot(caltest.data.sample(G, Y), Y), "the pilot is a Sample, which has labels"),
    ],
)
def test_wrong_input(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_weights_cost_rows():
    weights = np.random.default_rng(5).choice([1.0, 9.0], 2000)
    share = weights.mean() ** 2 / (weights**2).mean()
    weighted = pilot(np.linspace(0.3, 0.7, 2000), bias=0.35, weights=weights)
    assert f"100 rows are worth {100 * share:.0f} of equal weight" in weighted.notes[-1]
