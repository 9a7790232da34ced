"""Cumulative differences: values by hand and by definition, the Brownian laws, size and power."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm
from support import binomial_limits, every_outcome

import caltest
from caltest.data import Rows
from caltest.nulls.asymptotic import tails
from caltest.statistics import STATISTICS

BOTH = ["ks", "kuiper"]


def form_of(statistic, p):
    p = np.asarray(p, dtype=float)
    return STATISTICS[statistic]().given(Rows(np.column_stack([1.0 - p, p])))


# ------------------------------------------------------------------ values

BY_HAND = {  # scores, labels, KS, Kuiper; C is given where it is not plain
    "one step": ([0.3, 0.3], [1, 0], 0.2, 0.2),
    "always too high": ([0.2, 0.5, 0.8], [0, 0, 0], 0.5, 0.5),
    "always too low": ([0.2, 0.5, 0.8], [1, 1, 1], 0.5, 0.5),
    "up and down: 0.15, -0.05": ([0.2, 0.2, 0.9, 0.9], [1, 0, 1, 0], 0.15, 0.2),
    "down and up: -0.125, 0.125": ([0.25, 0.25, 0.5, 0.5], [0, 0, 1, 1], 0.125, 0.25),
    "unsorted: -0.1, -0.05, -0.025": ([0.9, 0.2, 0.8, 0.2], [1, 0, 1, 0], 0.1, 0.1),
    "certain and right": ([0.0, 1.0], [0, 1], 0.0, 0.0),
    "certain and wrong": ([0.0, 1.0], [1, 0], 0.5, 0.5),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(case):
    probs, labels, ks, kuiper = BY_HAND[case]
    assert caltest.estimate(probs, labels, "ks") == pytest.approx(ks, abs=1e-15)
    assert caltest.estimate(probs, labels, "kuiper") == pytest.approx(kuiper, abs=1e-15)


@pytest.mark.parametrize("statistic", BOTH)
def test_one_vector_of_labels_has_its_value_among_many(statistic):
    rng = np.random.default_rng(0)
    p = np.concatenate([[0.0, -0.0, 1.0, 5e-324, 1e-300, 0.5, np.nextafter(0.5, 1)], rng.random(200)])
    p = rng.permutation(np.concatenate([p, p[:50], p[:9]]))
    labels = (rng.random((5, len(p))) < 0.5).astype(np.intp)
    many = form_of(statistic, p).of_labels(labels)
    assert [form_of(statistic, p).value(y) for y in labels] == pytest.approx(many, rel=1e-14)


@pytest.mark.parametrize("statistic", BOTH)
def test_tied_scores_are_one_step(statistic):
    """Ones first or zeros first would be excursions of a quarter; there is but one step, to 0."""
    p, y = np.full(100, 0.5), np.repeat([1, 0], 50)
    assert form_of(statistic, p).value(y) == form_of(statistic, p).value(1 - y) == 0.0
    apart = p + 1e-9 * np.arange(100)
    assert form_of(statistic, apart).value(y) == pytest.approx(0.25, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", BOTH)
def test_rounding_is_within_the_resolution(statistic):
    """A tenth, added 100 000 times, is off by 2e-8 of a row."""
    n = 100_000
    y = np.zeros(n, dtype=np.uint8)
    for p in (np.full(n, 0.1), 0.1 + 1e-9 * np.arange(n)):
        form = form_of(statistic, p)
        exact = float(sum(map(Fraction, p.tolist())) / n)
        assert abs(form.value(y) - exact) <= form.resolution <= 1e-10


# ------------------------------------------------------------------ the exact null


LEVELS = (0.05, 0.1, 0.2)


def rejections(statistic, null, data_sets, scores, **options):
    """Shares of calibrated data sets rejected at the levels."""
    found = []
    for seed in range(data_sets):
        rng = np.random.default_rng([3, seed])
        p = scores(rng)
        y = (rng.random(len(p)) < p).astype(int)
        found.append(caltest.test(p, y, statistic, null=null, rng=seed, **options).pvalue)
    return [np.mean(np.array(found) <= level + 1e-12) for level in LEVELS]


# ------------------------------------------------------------------ the Brownian laws

CATALAN = 0.915965594177219015


def moment(functional, k):
    """E T^k = ∫ k x^(k−1) P(T > x) dx."""
    return quad(lambda x: k * x ** (k - 1) * tails(functional, x)[0], 0, 40, points=[0.5, 1, 2, 4])[0]


def test_moments_of_the_range():
    """Feller 1951: mean 2 √(2/π), variance 4 (log 2 − 2/π)."""
    mean = moment("range", 1)
    assert mean == pytest.approx(2 * np.sqrt(2 / np.pi), rel=1e-10)
    assert moment("range", 2) - mean**2 == pytest.approx(4 * (np.log(2) - 2 / np.pi), rel=1e-9)


def test_moments_of_the_maximum():
    """Mean √(π/2), second moment twice Catalan's constant."""
    assert moment("maximum", 1) == pytest.approx(np.sqrt(np.pi / 2), rel=1e-10)
    assert moment("maximum", 2) == pytest.approx(2 * CATALAN, rel=1e-10)


def brownian_paths(n_paths, steps, rng):
    """Maxima and minima of Brownian motion on [0, 1], those between grid points included.

    Given its ends a and b, a step of length t has a maximum m with
    P(m > x) = exp(−2 (x − a)(x − b)/t). A path's maximum and minimum lie in one step so seldom that
    their dependence there does not count.
    """
    w = np.cumsum(rng.normal(scale=steps**-0.5, size=(n_paths, steps)), axis=1)
    a, b = np.hstack([np.zeros((n_paths, 1)), w[:, :-1]]), w
    reach = [np.sqrt((b - a) ** 2 - 2 * np.log(1 - rng.random(w.shape)) / steps) for _ in range(2)]
    return ((a + b + reach[0]) / 2).max(axis=1), ((a + b - reach[1]) / 2).min(axis=1)


@pytest.mark.level
def test_laws_against_simulated_paths():
    """Kolmogorov's test of 20 000 paths; a right law fails it with probability 1e-3."""
    highest, lowest = brownian_paths(20_000, 200, np.random.default_rng(0))
    samples = {"maximum": np.maximum(highest, -lowest), "range": highest - lowest}
    for functional, sample in samples.items():
        law = np.vectorize(lambda x, functional=functional: tails(functional, x)[1])
        assert kstest(sample, law).pvalue > 1e-3
        assert kstest(1.01 * sample, law).pvalue < 0.5 * kstest(sample, law).pvalue


@pytest.mark.parametrize("functional", ["maximum", "range"])
def test_tails_are_continuous_and_monotone(functional):
    """The two series meet where they are switched, to the last digits."""
    x = np.concatenate([np.linspace(0, 12, 2401), [1 - 1e-13, 1 + 1e-13, 2 - 1e-13, 2 + 1e-13]])
    x.sort()
    greater, less = np.array([tails(functional, value) for value in x]).T
    assert greater + less == pytest.approx(1.0, abs=1e-15)
    assert np.all(np.diff(greater) <= 1e-15)
    assert np.all((greater >= 0) & (greater <= 1) & (less >= 0) & (less <= 1))
    for switch in (1.0, 2.0):
        below, above = (tails(functional, switch + side)[0] for side in (-1e-13, 1e-13))
        assert below == pytest.approx(above, abs=3e-13)


def test_far_tails():
    """One reflection above, one mode of the interval below: each to full relative precision."""
    for x in (7.0, 15.0, 30.0):
        assert tails("maximum", x)[0] == pytest.approx(4 * norm.sf(x), rel=1e-12)
        assert tails("range", x)[0] == pytest.approx(8 * norm.sf(x), rel=1e-12)
    for x in (0.1, 0.2, 0.3):
        mode = np.exp(-(np.pi**2) / (8 * x**2))
        assert tails("maximum", x)[1] == pytest.approx(4 / np.pi * mode, rel=1e-12)
        mode = np.exp(-(np.pi**2) / (8 * x**2))  # of an interval of length 2x
        assert tails("range", 2 * x)[1] == pytest.approx((2 / x**2 + 8 / np.pi**2) * mode, rel=1e-12)
    for functional in ("maximum", "range"):
        for x in (-1.0, 0.0, 1e-300, 0.02, 0.021):
            assert tails(functional, x) == (1.0, 0.0)
        assert tails(functional, 1e5) == tails(functional, np.inf) == (0.0, 1.0)


def test_table_of_critical_values():
    """sup |W|, of which P(T > x) = 4 Q(x) − 4 Q(3x) + …: the 10, 5 and 1 % points in the literature."""
    for x, chance in ((1.9600, 0.1), (2.2414, 0.05), (2.8070, 0.01)):
        assert tails("maximum", x)[0] == pytest.approx(chance, rel=2e-4)


# ------------------------------------------------------------------ the Brownian null


def test_the_scale_is_the_deviation_of_the_end():
    p = np.array([0.15, 0.4, 0.4, 0.7])
    outcomes, chances = every_outcome(np.column_stack([1 - p, p]))
    ends = (outcomes - p).mean(axis=1)
    form = form_of("ks", p)
    assert form.brownian_limit.scale == pytest.approx(np.sqrt(chances @ ends**2), rel=1e-14)


@pytest.mark.level
@pytest.mark.parametrize("statistic", BOTH)
def test_size_of_the_brownian_null(statistic):
    """1000 rows: C misses the peaks between its steps, so rates lie somewhat below the level.

    At most the upper binomial limit of the level, at least the lower one of 0.8 times the level; each
    is crossed with probability 5e-5 at most.
    """
    rates = rejections(statistic, "brownian", 1000, lambda rng: rng.random(1000))
    for level, rate in zip(LEVELS, rates, strict=True):
        assert binomial_limits(1000, 0.8 * level)[0] <= rate <= binomial_limits(1000, level)[1]


@pytest.mark.parametrize("statistic", BOTH)
def test_rare_events_are_noted(statistic):
    probs, labels = np.full(300, 0.01) + 1e-6 * np.arange(300), np.zeros(300, dtype=int)
    result = caltest.test(probs, labels, statistic, null="brownian")
    assert any("on some 3 unlikely labels" in note for note in result.warnings)
    enough = caltest.test(np.full(300, 0.1), labels, statistic, null="brownian")
    assert not any("unlikely" in note for note in enough.warnings)


@pytest.mark.parametrize("statistic", BOTH)
def test_certain_predictions(statistic):
    probs, truth = np.eye(2)[np.arange(40) % 2], np.arange(40) % 2
    right = caltest.test(probs, truth, statistic, null="brownian")
    wrong = caltest.test(probs, 1 - truth, statistic, null="brownian")
    assert (right.statistic, right.pvalue) == (0.0, 1.0)
    assert wrong.pvalue < 1e-100


@pytest.mark.parametrize("statistic", BOTH)
def test_nulls_agree(statistic):
    """5000 rows, slightly overconfident: p-values within 0.04 (error of 2000 draws, and steps)."""
    rng = np.random.default_rng(2)
    truth = rng.beta(2, 2, 5000)
    probs = 0.5 + 1.04 * (truth - 0.5)
    probs = probs.clip(0.001, 0.999)
    labels = (rng.random(5000) < truth).astype(int)
    drawn = caltest.test(probs, labels, statistic, n_resamples=2000, rng=0).pvalue
    brownian = caltest.test(probs, labels, statistic, null="brownian").pvalue
    assert 0.02 < drawn < 0.9
    assert brownian == pytest.approx(drawn, abs=0.04)
