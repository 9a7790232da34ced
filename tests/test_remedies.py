"""Remedies, tried by cross-fitting, on models whose error is known."""

import numpy as np
import pytest

import caltest
from caltest.auditing.estimates import remedies
from caltest.auditing.limits import Limit
from caltest.auditing.plan import Scope
from caltest.data import sample
from caltest.lenses import TopLabel

RNG = np.random.default_rng(7)
P = 1.0 / (1.0 + np.exp(-RNG.normal(-1.0, 1.0, 8000)))
GROUP = RNG.random(len(P)) < 0.15
LOGIT = np.log(P / (1.0 - P))
U = RNG.random(len(P))


def of_logit(logit):
    return (U * (1.0 + np.exp(-logit)) < 1.0).astype(int)


def tried(whole, lens=None, places=None, seed=0):
    """Return what is tried where nothing is known but what the advice is about: a lens, or a group."""
    name = lens.label if lens else "canonical"
    look = Scope(whole.rows, name, name, lens).look(None, places)
    return remedies(whole, look, {look.key: look}, {}, Limit(), seed)


def chosen(found):
    return next((each for each in found if each.chosen), None)


@pytest.mark.level
@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (of_logit(LOGIT + 0.6), "shift"),
        (of_logit(1.6 * LOGIT), "temperature"),
        (of_logit(1.6 * LOGIT + 1.5), "temperature and shift"),
        ((np.clip(P + 0.15 * np.sin(12.0 * P), 0.01, 0.99) > U).astype(int), "isotonic"),
        (of_logit(LOGIT), None),
    ],
)
def test_the_remedy_that_was_planted_is_chosen(labels, name):
    best = chosen(tried(sample(P, labels)))
    assert (best and best.name) == name
    if best is not None:
        assert abs(best.after) < 3.0 * best.after_se + 1e-3
        assert best.off_after < best.off_before


def test_an_error_of_one_group_is_mended_there():
    best = chosen(tried(sample(P, of_logit(LOGIT + 1.0 * GROUP)), places=np.flatnonzero(GROUP)))
    assert (best.name, best.in_group) == ("shift", True)
    assert best.before < -0.15
    assert abs(best.after) < 0.03


def test_temperature_mends_the_top_class_of_many():
    sure = caltest.simulation.tempered(3000, temperature=0.5, rng=1)
    best = chosen(tried(sample(sure.probs, sure.labels), TopLabel()))
    assert best.name == "temperature"
    assert best.slope == pytest.approx(0.5, abs=0.05)
    assert best.before > 0.1
    assert abs(best.after) < 0.03


@pytest.mark.slow
def test_promised_gains_are_those_on_fresh_rows():
    """Cross-fitting promises what fresh rows give, within its standard error."""
    promised, errors = [], []
    for seed in range(20):
        fresh = caltest.simulation.tempered(1500, temperature=0.6, rng=seed)
        several = tried(sample(fresh.probs, fresh.labels), TopLabel(), seed=seed)
        (found,) = (each for each in several if each.name == "temperature")
        more = caltest.simulation.tempered(20_000, temperature=0.6, rng=100 + seed)
        mended = more.probs**found.slope
        mended /= mended.sum(axis=1, keepdims=True)
        rows = np.arange(len(more.labels))
        gain = np.log(mended[rows, more.labels] / more.probs[rows, more.labels]).mean()
        promised.append((found.gain - gain) / found.gain_se)
        errors.append(abs(found.gain - gain))
    assert abs(np.mean(promised)) < 1.0
    assert np.std(promised) < 1.6


@pytest.mark.slow
def test_the_named_group_is_mended_alone_if_all_rows_cannot_mend_it():
    """Of three groups one is wrong: a shift of all rows halves its error, and harms the others."""
    group = np.arange(len(LOGIT)) % 3 == 0
    found = tried(sample(P, of_logit(LOGIT - 0.9 * group)), places=np.flatnonzero(group))
    everywhere = next(each for each in found if each.name == "shift" and not each.in_group)
    assert everywhere.clear
    assert everywhere.leaves
    (chosen,) = (each for each in found if each.chosen)
    assert (chosen.name, chosen.in_group, chosen.leaves) == ("shift", True, False)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_exchanged_columns_of_a_group_are_seen(classes):
    probs = RNG.dirichlet(np.ones(classes), 4000)
    labels = (RNG.random((4000, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    site = np.arange(4000) % 4
    stated = np.where((site == 2)[:, None], probs[:, [1, 0, *range(2, classes)]], probs)
    found = tried(sample(stated, labels), places=np.flatnonzero(site == 2))
    (chosen,) = (each for each in found if each.chosen)
    assert (chosen.name, chosen.in_group) == ("order", True)
    audit = caltest.audit(stated, labels, groups={"site": site.astype(str)}, n_resamples=199, rng=0)
    advice = " ".join(str(audit).split())
    assert "ook at the order of the classes for that group alone: columns seem to be exch" in advice
    assert not any(each.chosen for each in tried(sample(probs, labels)))


def test_rows_of_a_cluster_stay_in_one_fold():
    """A patient's rows that repeat each other must not teach the fold that they are applied to."""
    doctors = np.repeat(np.arange(200), 10)
    probs = np.repeat(RNG.uniform(0.2, 0.8, 200), 10)
    labels = np.repeat((RNG.random(200) < 0.5).astype(int), 10)
    apart = tried(sample(probs, labels, clusters=doctors))
    mixed = tried(sample(probs, labels))
    isotonic = [next(each for each in found if each.name == "isotonic") for found in (apart, mixed)]
    assert isotonic[0].gain < isotonic[1].gain


@pytest.mark.slow
def test_few_rows_and_impossible_labels():
    assert tried(sample(P[:50], of_logit(LOGIT)[:50])) == ()
    sure, labels = P.copy(), of_logit(LOGIT + 0.6)
    sure[:5], labels[:5] = 0.0, 1
    assert np.isfinite(chosen(tried(sample(sure, labels))).gain)


def test_what_chance_alone_makes_of_tenths():
    """Of a calibrated model the error of tenths is chance; of rows that are there twice, √2 times."""
    off, by_chance = [], []
    for rows in np.split(np.arange(8000), 10):
        first = tried(sample(P[rows], (U[rows] < P[rows]).astype(int)))[0]
        off.append(first.off_before)
        by_chance.append(first.off_chance)
    variance = np.sort(P * (1.0 - P)).mean() / 80.0  # of a tenth of 800 rows, about
    assert np.mean(by_chance) == pytest.approx((2.0 / np.pi * variance) ** 0.5, rel=0.05)
    assert np.mean(off) == pytest.approx(np.mean(by_chance), rel=0.2)
    twice = np.repeat(rows, 2)
    many = tried(sample(P[twice], (U[twice] < P[twice]).astype(int), clusters=twice))[0].off_chance
    alone = tried(sample(P[twice], (U[twice] < P[twice]).astype(int)))[0].off_chance
    assert many == pytest.approx(2.0**0.5 * alone, rel=0.02)
