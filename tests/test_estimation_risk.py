"""The calibration estimation risk: double loops, complete enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm
from support import dirichlet, labels_from
from test_estimation_functions import CASES, FUNCTIONS, plain_residuals, rows

import caltest
from caltest.estimation import (
    DirichletKernelDensity,
    Fitted,
    KroneckerKernelRidge,
    PlugIn,
    Temperature,
    TwoStepKernelRidge,
    risk,
)


def plain(curve):
    """Return h = ⟨c, c'⟩ for a function c of predictions, fitted to nothing."""
    return Fitted(Temperature(), lambda places: iter([PlugIn(curve(places))]))


def double_loop(values, probs, labels):
    r = plain_residuals(probs, labels)
    n, total = len(r), 0.0
    for i, j in np.ndindex(n, n):
        if i != j:
            total += (r[i] @ r[j] - values[i, j]) ** 2
    return total / (n * (n - 1))


# ------------------------------------------------------------------ definitions


@pytest.mark.parametrize("others", [3, 40])
@pytest.mark.parametrize(("name", "m"), CASES)
def test_the_risk_is_a_mean_over_ordered_pairs(name, m, others):
    """Fewer rows than eigenvalues, and more."""
    train, labels, places = rows(m, others=others)
    truth = labels_from(places, np.random.default_rng(2))
    h = FUNCTIONS[name].fit(train, labels)
    expected = double_loop(h.gram(places, places), places, truth)
    assert risk(h, places, truth) == pytest.approx(expected, rel=1e-10)


def test_many_classes_and_a_full_rank():
    train, labels, places = rows(12, n=60, others=25)
    truth = labels_from(places, np.random.default_rng(2))
    for strength in KroneckerKernelRidge().search_space(12)[::4]:
        h = KroneckerKernelRidge(strength).fit(train, labels)
        expected = double_loop(h.gram(places, places), places, truth)
        assert risk(h, places, truth) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("name", "m"), CASES)
def test_the_order_of_rows_does_not_matter(name, m):
    train, labels, places = rows(m, others=50)
    truth = labels_from(places, np.random.default_rng(2))
    order = np.random.default_rng(0).permutation(50)
    h = FUNCTIONS[name].fit(train, labels)
    assert risk(h, places[order], truth[order]) == pytest.approx(risk(h, places, truth), rel=1e-10)


def test_the_risk_by_hand():
    """r = −.3, .7, .2, of two classes; h = 0.1: products −.21, −.06, .14."""
    probs, labels = np.array([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]]), [0, 1, 1]
    constant = plain(lambda places: np.full((len(places), 1), 0.1**0.5))
    assert risk(constant, probs, labels) == pytest.approx((0.31**2 + 0.16**2 + 0.04**2) / 3)


def test_input_is_checked():
    h = Temperature(2.0).fit(dirichlet(5, 3, 0), [0, 1, 2, 0, 1])
    with pytest.raises(caltest.InputError):
        risk(h, dirichlet(5, 3, 0), [0, 1, 2])
    with pytest.raises(caltest.InputError):
        risk(h, dirichlet(1, 3, 0), [0])


# ------------------------------------------------------------------ unbiasedness

STATES = np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]])  # what a model states, with these chances
CHANCES = np.array([0.5, 0.3, 0.2])
EVENTS = np.array([0.6, 0.45, 0.1])  # P(class 1): errors −.2, .05, 0
TRUE_CURVE = EVENTS - STATES[:, 1]
PAIRS = np.outer(CHANCES, CHANCES)


def of_curve(curve):
    """h = ⟨c, c'⟩ for a function c of the state."""
    return plain(lambda p: curve[np.abs(p[:, None] - STATES).sum(axis=2).argmin(axis=1)][:, None])


def expected_risk(curve):
    """Return E (⟨r, r'⟩ − h)² of independent rows, from the moments of r given the state."""
    squares = EVENTS * (1 - STATES[:, 1]) ** 2 + (1 - EVENTS) * STATES[:, 1] ** 2
    noise = np.outer(squares, squares) - np.outer(TRUE_CURVE, TRUE_CURVE) ** 2
    return np.sum(PAIRS * (noise + (np.outer(TRUE_CURVE, TRUE_CURVE) - np.outer(curve, curve)) ** 2))


CURVES = {"truth": TRUE_CURVE, "calibrated": np.zeros(3), "wrong": np.array([0.3, -0.2, 0.4])}


@pytest.mark.parametrize("curve", CURVES)
def test_the_risk_is_unbiased_over_all_data_sets(curve):
    """All 6³ data sets of three rows, with their probabilities."""
    outcomes = list(product(range(3), range(2)))
    chance = {(s, y): CHANCES[s] * (EVENTS[s] if y else 1 - EVENTS[s]) for s, y in outcomes}
    h, found, whole = of_curve(CURVES[curve]), 0.0, 0.0
    for data in product(outcomes, repeat=3):
        probs, labels = STATES[[s for s, _ in data]], np.array([y for _, y in data])
        weight = np.prod([chance[each] for each in data])
        found += weight * risk(h, probs, labels)
        whole += weight
    assert whole == pytest.approx(1.0)
    assert found == pytest.approx(expected_risk(CURVES[curve]), rel=1e-10)


@pytest.mark.level
@pytest.mark.parametrize("m", [2, 4])
def test_differences_of_risks_are_mean_squared_errors_of_h(m):
    """Fixed functions, 200 data sets: R(h) − R(h') = E (h − t)² − E (h' − t)², t the truth."""
    rng = np.random.default_rng(7)
    temperature, n, count = 1.6, 40, 200

    def draw(size):
        truth = rng.dirichlet(np.full(m, 0.7), size)
        labels = np.array([rng.choice(m, p=p) for p in truth])
        return softmax(np.log(truth) / temperature, axis=1), labels

    train = draw(300)
    functions = [Temperature(temperature), TwoStepKernelRidge(1e-5), KroneckerKernelRidge(1e-4)]
    truth, *others = [function.fit(*train) for function in functions]
    found = []
    for _ in range(count):
        probs, labels = draw(n)
        base, t = risk(truth, probs, labels), truth.gram(probs, probs)
        away = ~np.eye(n, dtype=bool)
        known = [np.mean((h.gram(probs, probs) - t)[away] ** 2) for h in others]
        found.append([risk(h, probs, labels) - base - e for h, e in zip(others, known, strict=True)])
    z = np.mean(found, axis=0) / (np.std(found, axis=0, ddof=1) / np.sqrt(count))
    assert np.all(np.abs(z) < norm.isf(1e-4 / 4))
    assert np.all(np.std(found, axis=0) > 0)


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize("m", [2, 10])
@pytest.mark.parametrize("kind", [TwoStepKernelRidge, KroneckerKernelRidge])
def test_extreme_regularisation(kind, m):
    train, labels, places = rows(m, n=200, others=50)
    truth = labels_from(places, np.random.default_rng(3))
    zero = risk(Temperature(1.0).fit(train, labels), places, truth)
    for strength in (1e-17, 1e-9, 1e8, 1e40):
        h = kind(strength).fit(train, labels)
        assert np.isfinite(risk(h, places, truth))
        assert risk(h, places, truth) == pytest.approx(
            double_loop(h.gram(places, places), places, truth), rel=1e-6
        )
    assert risk(h, places, truth) == pytest.approx(zero, rel=1e-12)


def test_a_wide_density_is_the_constant_share():
    train, labels, places = rows(3, others=20)
    truth = labels_from(places, np.random.default_rng(3))
    share = np.bincount(labels, minlength=3) / 30.0
    constant = plain(lambda places: share - places)
    found = risk(DirichletKernelDensity(1e9).fit(train, labels), places, truth)
    assert found == pytest.approx(risk(constant, places, truth), rel=1e-5)
