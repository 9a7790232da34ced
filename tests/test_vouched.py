"""The verdict "within" vouches for every view that was asked for, also where it was not checked."""

import numpy as np
import pytest
from scipy import stats
from support import some_fast

import caltest
from caltest import auditing

FEW = {"n_resamples": 59, "statistics": "citl", "rng": 1}
SETS = 30


def drawn(probs, rng):
    return (probs.cumsum(axis=1) < rng.random((len(probs), 1))).sum(axis=1)


def three(rare, n=1000, seed=0):
    """Two classes that are right, and one that is stated to be rare."""
    split = 0.35 + 0.3 * np.random.default_rng(seed).random(n)
    return np.column_stack([np.full(n, rare), (1 - rare) * split, (1 - rare) * (1 - split)])


def replaced(probs, first):
    """The same with another probability of class 0, the others in proportion."""
    first = np.broadcast_to(first, len(probs))[:, None]
    return np.column_stack(
        [first, (1 - first) * probs[:, 1:] / probs[:, 1:].sum(axis=1, keepdims=True)]
    )


def of_classes(rare, true, **options):
    probs = three(rare)
    return probs, replaced(probs, true), {"lenses": "classwise", **options}


def of_pairs():
    """Class 0 is right in one half of the rows; in the other hardly any is stated, and a tenth true."""
    half = np.arange(2000) % 2
    stated = replaced(three(0.1, 2000), np.where(half == 0, 0.001, 0.1))
    return stated, replaced(stated, 0.1), {"lenses": "classwise", "groups": {"half": half}}


#: Stated and true probabilities, where a mean is off by more than the limit of 6 points, and options.
FORGOTTEN = {
    "a class stated .01%, truly 8%": lambda: of_classes(1e-4, 0.08),
    "a class stated 0%, truly 7%": lambda: of_classes(0.0, 0.07),
    "a class stated .4%, truly 10%": lambda: of_classes(0.004, 0.1),
    "a limit as a ratio, too": lambda: of_classes(0.002, 0.08, materiality_ratio=1.5),
    "a class in a group": of_pairs,
    "with weights": lambda: of_classes(1e-4, 0.08, weights=1.0 + np.arange(1000) % 3),
    "with clusters": lambda: of_classes(1e-4, 0.09, clusters=np.arange(1000) // 2),
}


@pytest.mark.level
@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_view_that_was_not_checked_is_vouched_for_by_its_own_limits(name):
    """Before, 22 of 30 of the first kind were "within", though at most 5% may be."""
    stated, true, options = FORGOTTEN[name]()
    within = 0
    for seed in range(SETS):
        labels = drawn(true, np.random.default_rng(seed))
        audit = caltest.audit(stated, labels, materiality=0.06, **FEW, **options)
        within += audit.verdict == "within"
    assert within <= stats.binom.ppf(0.999, SETS, 0.05)


def test_it_is_said_what_could_be_off():
    stated = three(1e-4, 200)
    labels = drawn(replaced(stated, 0.06), np.random.default_rng(2))
    audit = caltest.audit(stated, labels, materiality=0.08, lenses="classwise", **FEW)
    (skipped,) = audit.story.dropped
    assert (skipped.inside, skipped.most > 0.08) == (False, True)
    assert "could not be checked" in audit.headline
    assert "1 of 3 classes" in " ".join(str(audit).split("What to do next")[0].split())
    data = audit.to_dict()["skipped"][0]
    assert (data["inside"], data["most"]) == (False, skipped.most)


@pytest.mark.parametrize("rows", some_fast([500, 2000], 500, mark="level"))
def test_right_models_of_rare_classes_are_within(rows):
    """Calibrated: nothing is lost where the limits of what was not checked are inside, too."""
    probs = three(1e-4, rows)
    found = [
        caltest.audit(
            probs,
            drawn(probs, np.random.default_rng(seed)),
            materiality=0.08,
            lenses="classwise",
            **FEW,
        )
        for seed in range(20)
    ]
    assert sum(each.verdict == "within" for each in found) >= 17
    assert all(each.inside for audit in found for each in audit.skipped)


def test_caps_are_no_excuse(monkeypatch):
    """What is left out for its work, for the number of checks, or for memory is not vouched for."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 720)
    labels = drawn(probs, rng)
    labels[:60] = np.where(labels[:60] == 0, 1, labels[:60])  # class 0 hardly comes in the first
    groups = {"g": np.repeat(np.arange(12), 60)}
    options = {"groups": groups, "materiality": 0.25, "rng": 0, "n_resamples": 99}
    assert caltest.audit(probs, labels, **options).skipped == ()
    monkeypatch.setattr("caltest.auditing.plan.MOST_WORK", 1.0)
    capped = caltest.audit(probs, labels, **options)
    assert capped.story.dropped
    assert capped.verdict != "within"
    monkeypatch.undo()
    monkeypatch.setattr("caltest.auditing.plan.MOST_HYPOTHESES", 20)
    assert caltest.audit(probs, labels, **options).story.dropped
    monkeypatch.undo()
    monkeypatch.setattr("caltest.auditing.groups._MOST_CROSSED", 1)
    crossed = groups | {"h": np.arange(720) % 2}
    right = drawn(probs, rng)
    audit = caltest.audit(probs, right, **options | {"groups": crossed, "lenses": "top_label"})
    assert [each.what for each in audit.story.dropped] == ["groups by g × h"]
    assert isinstance(audit, auditing.Audit)
