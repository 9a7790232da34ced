"""Probabilities of exactly 0: where they come from, and what to do; no cause before a wrong one."""

import re

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from support import labels_from

import caltest
from caltest.data import sample

RNG = np.random.default_rng(2)


def advice(probs):
    """What a test says of the zeros among predictions, if a label of probability 0 was observed."""
    labels = probs.argmin(axis=1) if probs.ndim == 2 else (probs < 0.5).astype(int)
    notes = caltest.test(probs, labels, "brier", n_resamples=19, rng=0).warnings
    assert any("probability 0" in note for note in notes)
    found = [note for note in notes if note.startswith(("Every probability", "Zeros are"))]
    return found[0] if found else ""


def classified(n_classes):
    X, y = make_classification(
        2600, 12, n_informative=6, n_classes=n_classes, flip_y=0.02, random_state=0
    )
    return X[:300], y[:300], X[600:]


@pytest.mark.parametrize("step", [0.001, 0.01, 0.05, 0.1, 0.25])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_one_rounded_probability(step, kind):
    probs = np.round(np.random.default_rng(0).beta(0.5, 0.5, 400) / step) * step
    assert f"a multiple of {step}. If they are rounded, save more" in advice(probs.astype(kind))
    assert f"rounding={step})" in advice(probs)


def test_few_of_the_steps_are_used():
    used = np.array([0.0, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95, 1.0])
    assert "multiple of 0.05" in advice(used[np.random.default_rng(0).integers(0, 8, 200)])
    assert "multiple of 0.01" in advice(np.round(np.random.default_rng(0).beta(0.5, 30, 500), 2))


@pytest.mark.parametrize("decimals", [2, 3, 4, 5])
@pytest.mark.parametrize("concentration", [0.05, 0.2])
def test_rounded_rows_that_do_not_sum_to_one(decimals, concentration):
    probs = np.random.default_rng(0).dirichlet(np.full(4, concentration), 2000)
    step = f"{10.0**-decimals:.6g}"
    assert advice(np.round(probs, decimals)).startswith(f"Zeros are rounded, to multiples of {step}: ")


@pytest.mark.parametrize(
    ("model", "votes"),
    [(RandomForestClassifier(100, random_state=0), 100), (KNeighborsClassifier(7), 7)],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_votes(model, votes, n_classes):
    X, y, new = classified(n_classes)
    assert f"{votes} votes: give (votes + share)/({votes} + 1), " in advice(
        model.fit(X, y).predict_proba(new)
    ).replace("votes, give", "votes: give")


@pytest.mark.parametrize("n_classes", [2, 5])
def test_decisions(n_classes):
    X, y, new = classified(n_classes)
    found = advice(DecisionTreeClassifier().fit(X, y).predict_proba(new))
    assert found.startswith("Every probability is 0 or 1")


UNKNOWN = {
    "few rows": np.array([0.0, 0.5, 0.25] * 5),
    "structural zeros": np.where(RNG.random(1000) < 0.2, 0.0, RNG.beta(1, 3, 1000)),
    "a pruned score": np.where((score := RNG.beta(0.3, 1, 2000)) < 0.01, 0.0, score),
    "a clipped line": np.clip(RNG.normal(0.5, 0.4, 2000), 0, 1),
    "shares of small blocks": np.array([0, 1 / 4, 2 / 7, 1])[RNG.integers(0, 4, 100)],
    "logits beyond float64": softmax(RNG.normal(0, 400, (2000, 3)), axis=1),
    "sigmoid in float32": expit(RNG.normal(0.0, 99.0, 3000).astype(np.float32)),
    "kept classes": (kept := np.where((p := RNG.dirichlet(np.full(5, 0.3), 400)) < 0.05, 0, p))
    / kept.sum(axis=1, keepdims=True),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_nothing_is_said_of_the_unknown(case):
    assert advice(UNKNOWN[case]) == ""


def test_the_words_lead_somewhere():
    """Who does what the note says gets an answer without it."""
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.full(4, 0.2), 3000)
    labels = labels_from(probs, rng)
    stated = np.round(probs, 2)
    broken = int((stated[np.arange(3000), labels] == 0).sum())
    assert broken > 0
    notes = caltest.test(stated, labels, "brier", n_resamples=19, rng=0).warnings
    assert any(f"In {broken} of 3000 rows" in note for note in notes)
    why = next(note for note in notes if note.startswith("Zeros are rounded, to multiples of 0.01"))
    asked = re.search(r"caltest.test\(\.\.\., (.*)\)\.$", why)[1]
    assert asked == "lens='top_label', rounding=0.01"
    result = caltest.test(stated, labels, lens="top_label", rounding=0.01, n_resamples=199, rng=0)
    assert result.pvalue > 0.05
    assert not any("0" in note for note in result.warnings if "probability 0" in note)
    assert why in caltest.audit(stated, labels, n_resamples=199, rng=0).warnings


def test_rows_that_are_refused_are_told_the_same():
    probs = np.round(np.random.default_rng(0).dirichlet(np.full(5, 0.5), 400) * 20) / 20
    labels = probs.argmax(axis=1)
    with pytest.raises(
        caltest.InputError, match=r"multiples of 0.05, so .*lens='top_label', rounding=0.05"
    ):
        caltest.test(probs, labels)
    assert (
        caltest.test(probs, labels, lens="top_label", rounding=0.05, n_resamples=39, rng=0).pvalue > 0
    )
    read = sample([[0.333, 0.333, 0.333], [0.5, 0.25, 0.25]] * 20, [0, 1] * 20)
    with pytest.raises(caltest.InputError, match=r"give rounding=0.001 to what read it too"):
        caltest.test(read.rows, read.labels, lens="top_label", rounding=0.001)


def test_a_side_without_impossible_labels_is_told_nothing():
    scores = np.round(np.random.default_rng(0).random(200), 1)
    labels = (scores > 0.5).astype(int)
    assert not any(
        "multiple of" in each for each in caltest.test(scores, labels, "brier", rng=0).warnings
    )
