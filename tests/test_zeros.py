"""Probabilities of exactly 0: where they come from, and what to do; no cause before a wrong one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from support import labels_from

import caltest
from caltest.data import predictions, sample
from caltest.data.diagnose import Zeros, advice_on_zeros, why_zero

DATA = os.environ.get("CALTEST_REFERENCE_DATA")
LOGITS = np.random.default_rng(0).normal(0.0, 12.0, 3000)


def found(probs):
    """Read predictions and say why there are zeros."""
    rows = predictions(probs)
    assert (rows.probs == 0.0).any()
    return why_zero(rows.probs, rows.sums_off)


def classified(n_classes=2, n_fit=300):
    X, y = make_classification(
        2000 + 2 * n_fit, 12, n_informative=6, n_classes=n_classes, flip_y=0.02, random_state=0
    )
    return X[:n_fit], y[:n_fit], X[n_fit : 2 * n_fit], y[n_fit : 2 * n_fit], X[2 * n_fit :]


# ------------------------------------------------------------------ rounding, votes


@pytest.mark.parametrize("step", [0.001, 0.01, 0.05, 0.1, 0.25])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_one_rounded_probability(step, kind):
    probs = np.round(np.random.default_rng(0).beta(0.5, 0.5, 400) / step) * step
    why = found(probs.astype(kind))
    assert (why.cause, why.rounded) == ("steps", False)
    assert why.step == pytest.approx(step)


def test_few_of_the_steps_are_used():
    used = np.array([0.0, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95, 1.0])
    assert found(used[np.random.default_rng(0).integers(0, 8, 200)]) == Zeros("steps", 0.05)


def test_rare_events_in_whole_percent():
    assert found(np.round(np.random.default_rng(0).beta(0.5, 30, 500), 2)).step == 0.01


@pytest.mark.parametrize("decimals", [2, 3, 4, 5])
def test_rounded_rows_that_do_not_sum_to_one(decimals):
    probs = np.random.default_rng(0).dirichlet(np.full(4, 0.05), 2000)
    why = found(np.round(probs, decimals))
    assert why == Zeros("steps", 10.0**-decimals, rounded=True)


@pytest.mark.skipif(DATA is None, reason="no reference data; CALTEST_REFERENCE_DATA names their folder")
@pytest.mark.parametrize("decimals", [2, 3, 4, 5])
def test_rounded_predictions_of_a_network(decimals):
    logits = np.load(Path(DATA or "") / "cifar10_densenet40_logits.npz")
    probs = softmax(next(logits[k] for k in logits if logits[k].ndim == 2).astype(float), axis=1)
    assert found(np.round(probs, decimals)) == Zeros("steps", 10.0**-decimals, rounded=True)
    assert found(softmax(np.log(probs).astype(np.float32), axis=1)) == Zeros("precision")
    assert found(np.round(probs, 6)) is None  # many equal small numbers are no blocks


@pytest.mark.parametrize(
    ("model", "n_votes"),
    [(RandomForestClassifier(100, random_state=0), 100), (KNeighborsClassifier(7), 7)],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_votes(model, n_votes, n_classes):
    X, y, _, _, new = classified(n_classes)
    why = found(model.fit(X, y).predict_proba(new))
    assert why == Zeros("steps", 1 / n_votes)
    assert f"{n_votes} votes" in advice_on_zeros(why, n_classes)
    assert f"(votes + share)/({n_votes} + 1), " in advice_on_zeros(why, n_classes)


# ------------------------------------------------------------------ blocks


@pytest.mark.parametrize("n_fit", [100, 300, 1000])
def test_isotonic_regression(n_fit):
    X, y, X_iso, y_iso, new = classified(2, n_fit)
    model = LogisticRegression().fit(X, y)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(model.predict_proba(X_iso)[:, 1], y_iso)
    assert found(isotonic.predict(model.predict_proba(new)[:, 1])) == Zeros("blocks")
    for ensemble in (True, False)[n_fit == 100 :]:  # the mean of many has many values
        kept = CalibratedClassifierCV(LogisticRegression(), method="isotonic", ensemble=ensemble)
        assert found(kept.fit(X_iso, y_iso).predict_proba(new)) == Zeros("blocks")
    # And what is advised has no zeros.
    low = 1 / (n_fit + 2)
    advised = IsotonicRegression(y_min=low, y_max=1 - low, out_of_bounds="clip")
    probs = advised.fit(model.predict_proba(X_iso)[:, 1], y_iso).predict(model.predict_proba(new)[:, 1])
    assert 0.0 < probs.min() <= probs.max() < 1.0


@pytest.mark.parametrize("n_classes", [2, 5])
def test_trees(n_classes):
    X, y, _, _, new = classified(n_classes, 1000)
    assert found(DecisionTreeClassifier(min_samples_leaf=7).fit(X, y).predict_proba(new)) == Zeros(
        "blocks"
    )
    assert found(DecisionTreeClassifier().fit(X, y).predict_proba(new)) == Zeros("decisions")


# ------------------------------------------------------------------ precision, clipping


def single(z):
    return np.asarray(z, dtype=np.float32)


CONFIDENT = np.random.default_rng(1).normal(0.0, 40.0, (3000, 5))
PRECISION = {
    "softmax in float32": softmax(single(CONFIDENT), axis=1),
    "softmax in half precision": softmax(CONFIDENT / 5, axis=1).astype(np.float16),
    "sigmoid in float32": expit(single(LOGITS)),
    "its two columns": np.column_stack([1 - expit(single(LOGITS)), expit(single(LOGITS))]),
    "sigmoid in float64": expit(3 * LOGITS),
    "the top class in float32": softmax(single(CONFIDENT / 5), axis=1).max(axis=1),
}


@pytest.mark.parametrize("case", PRECISION)
def test_precision(case):
    assert found(PRECISION[case]) == Zeros("precision")


def test_what_is_advised_there_has_no_zeros():
    assert softmax(CONFIDENT.astype(float), axis=1).min() > 0.0
    assert min(expit(3 * LOGITS).min(), expit(-3 * LOGITS).min()) > 0.0


def test_clipping():
    clipped = np.clip(expit(single(2 * LOGITS)), single(1e-8), single(1 - 1e-8))
    assert found(clipped) == Zeros("clipping")


# ------------------------------------------------------------------ what is not plain

RNG = np.random.default_rng(2)
UNKNOWN = {
    "few rows": np.array([0.0, 0.5, 0.25] * 5),
    "structural zeros": np.where(RNG.random(1000) < 0.2, 0.0, RNG.beta(1, 3, 1000)),
    "a pruned score": np.where((score := RNG.beta(0.3, 1, 2000)) < 0.01, 0.0, score),
    "a clipped line": np.clip(RNG.normal(0.5, 0.4, 2000), 0, 1),
    "three levels": RNG.integers(0, 3, 50) / 2,
    "shares of small blocks": np.array([0, 1 / 4, 2 / 7, 1])[RNG.integers(0, 4, 100)],
    "logits beyond float64": softmax(RNG.normal(0, 400, (2000, 3)), axis=1),
    "kept classes": (kept := np.where((p := RNG.dirichlet(np.full(5, 0.3), 400)) < 0.05, 0, p))
    / kept.sum(axis=1, keepdims=True),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_nothing_is_said_of_the_unknown(case):
    assert found(UNKNOWN[case]) is None


def test_the_same_rows_many_times_are_no_blocks():
    rows = UNKNOWN["structural zeros"][RNG.integers(0, 1000, 1000)]
    assert found(rows) is None


# ------------------------------------------------------------------ words


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


@pytest.mark.parametrize("cause", ["decisions", "clipping", "precision", "blocks"])
def test_every_cause_has_its_advice(cause):
    text = advice_on_zeros(Zeros(cause), 3)
    assert text.endswith(".")
    assert len(text) < 350


def test_a_side_without_impossible_labels_is_told_nothing():
    scores = np.round(np.random.default_rng(0).random(200), 1)
    labels = (scores > 0.5).astype(int)
    assert not any(
        "multiple of" in each for each in caltest.test(scores, labels, "brier", rng=0).warnings
    )
