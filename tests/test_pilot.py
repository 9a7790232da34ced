"""Pilots: what is assumed to be true of predictions, stated or estimated."""

from __future__ import annotations

import numpy as np
import pytest
from support import binomial_limits, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.planning import pilot
from caltest.simulation import m2, tempered


def test_stated_errors():
    probs = dirichlet(50, 3, 1)
    sure = pilot(probs, temperature=0.5)
    assert sure.truth == pytest.approx(np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True))
    assert "over-confident" in sure.assumed
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
    import pandas as pd

    table = pd.DataFrame(dirichlet(30, 3, 0), columns=["1", "2", "cat"])
    assert pilot(table, bias=0.5, target="cat").assumed.startswith("the log-odds of class cat")
    drawn = pilot(table, bias=0.5, target="cat")(20, rng=np.random.default_rng(0))
    assert drawn.predictions.classes == ("1", "2", "cat")
    found = caltest.power(
        pilot(table, temperature=0.5), 40, "ks", lens="class:cat", n_datasets=5, rng=0
    )
    assert found.lens == "class:cat"


def test_a_pilot_draws_its_rows_and_the_truth():
    made = pilot([[0.9, 0.1, 0.0], [0.2, 0.2, 0.6]], truth=[[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    drawn = made(4000, rng=np.random.default_rng(0))
    first = drawn.predictions.probs[:, 0] == 0.9
    low, high = binomial_limits(4000, 0.5)
    assert low <= first.mean() <= high
    assert (drawn.labels[~first] == 1).all()
    assert set(drawn.labels[first]) == {0, 2}
    low, high = binomial_limits(int(first.sum()), 0.5)
    assert low <= (drawn.labels[first] == 0).mean() <= high


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


def test_labels_called_impossible_are_left_out_of_the_fit_and_said():
    probs = np.vstack([dirichlet(200, 3, 3), [[0.5, 0.5, 0.0]]])
    labels = np.append(labels_from(probs[:-1], np.random.default_rng(3)), 2)
    made = pilot(probs, labels)
    assert "1 of 201 labels of the pilot were called impossible" in made.notes[0]
    assert np.isfinite(made.truth).all()


# ------------------------------------------------------------------ wrong input

G = dirichlet(20, 3, 0)
Y = np.arange(20) % 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pilot(G), "nothing is assumed to be true of the pilot; give one of temperature=0.8"),
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
