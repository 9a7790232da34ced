"""Statistics that count: their law by enumeration, far into the tail, and the level it gives."""

import numpy as np
import pytest
from scipy.stats import binom
from support import every_outcome

import caltest
from caltest._sums import law_of_sum, tail_of_sum
from caltest.forms import LinearSum

rng = np.random.default_rng(0)
SCORES = {
    "few rows": rng.uniform(0.1, 0.9, 12),
    "ties": np.repeat([0.2, 0.5], 7),
    "rare events": np.full(14, 0.004),
    "certain rows": np.r_[0.0, 1.0, rng.uniform(size=10)],
    "all but certain": np.r_[np.full(8, 1e-9), 0.3, 0.5],
}
DESIGNS = {
    "20 rows": np.linspace(0.05, 0.95, 20),
    "ties": np.repeat([0.1, 0.5, 0.7], 20),
    "rare events": np.linspace(0.001, 0.01, 400),
    "50 rows at .1": np.full(50, 0.1),
    "1000 rows": np.linspace(0.0, 1.0, 1000),
}


def two_columns(scores):
    return np.column_stack([1.0 - scores, scores])


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("side", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("statistic", ["citl", "esce"])
def test_pvalues_are_those_of_all_outcomes(name, side, statistic):
    scores = SCORES[name]
    outcomes, chances = every_outcome(two_columns(scores))
    events = outcomes.sum(axis=1)
    for count in np.unique(events[chances > 0]):
        labels = outcomes[np.flatnonzero((events == count) & (chances > 0))[0]]
        above, below = chances[events >= count].sum(), chances[events <= count].sum()
        both = min(1.0, 2.0 * min(above, below))
        exact = {"greater": above, "less": below, "two-sided": both}[side]
        found = caltest.test(scores, labels, statistic, null="moments", alternative=side)
        assert found.guarantee == "exact"
        assert found.n_resamples is None
        assert found.pvalue == pytest.approx(exact, rel=1e-10)


def test_a_label_that_could_not_be_has_no_chance():
    labels = np.zeros(10, dtype=int)
    labels[0] = 1
    assert caltest.test(np.r_[0.0, np.full(9, 1e-3)], labels, "esce", null="moments").pvalue <= 1.0


def test_steps_of_any_number():
    """Three classes that add 0, 1 or 3 steps; a class that cannot be; rows that cannot move."""
    probs = np.array([[0.2, 0.3, 0.5], [0.6, 0.0, 0.4], [1.0, 0.0, 0.0], [0.1, 0.8, 0.1]])
    table = 0.5 * np.array([[0, 0, 1], [1, np.inf, 0], [3, 9, 9], [2, 1, 2]]) - 0.1
    form = LinearSum(table, probs)
    start, span, masses = form.lattice_terms(100)
    assert (start, span) == pytest.approx((1.6, 0.5))
    outcomes, chances = every_outcome(probs)
    possible = chances > 0
    steps = np.round((form.of_labels(outcomes[possible]) - start) / span).astype(int)
    law = np.bincount(steps, weights=chances[possible])
    assert law_of_sum(masses)[: len(law)] == pytest.approx(law)
    assert form.lattice_terms(1) is None
    assert LinearSum(np.pi * table**2, probs).lattice_terms(100) is None


@pytest.mark.parametrize("n", [1, 7, 60, 700])
def test_tails_are_relatively_exact_however_small(n):
    chances = np.random.default_rng(n).beta(0.3, 2.0, n)
    law = np.ones(1, dtype=np.longdouble)
    for p in chances:
        law = np.convolve(law, np.array([1.0 - p, p], dtype=np.longdouble))
    tails = np.cumsum(law[::-1])[::-1].astype(float)
    for least in [least for least in range(0, n + 1, max(1, n // 40)) if tails[least] > 1e-290]:
        assert tail_of_sum(two_columns(chances), least) == pytest.approx(tails[least], rel=1e-10)


@pytest.mark.level
@pytest.mark.parametrize("name", DESIGNS)
def test_the_level_is_kept_and_reached(name):
    """5 000 data sets; p-values of every count are found once."""
    scores = DESIGNS[name]
    counts = np.array(
        [(part < scores).sum() for part in np.random.default_rng(3).random((5000, len(scores)))]
    )
    found = {}
    for count in np.unique(counts):
        labels = np.zeros(len(scores), dtype=int)
        labels[np.argsort(-scores)[:count]] = 1
        found[count] = caltest.test(scores, labels, "citl", null="moments").pvalue
    pvalues = np.array([found[count] for count in counts])
    law = law_of_sum(two_columns(scores))
    above, below = np.cumsum(law[::-1])[::-1], np.cumsum(law)
    exact = np.minimum(1.0, 2.0 * np.minimum(above, below))
    for level in (0.05, 0.01):
        rejected = int(np.count_nonzero(pvalues <= level))
        attained = float(law[exact <= level].sum())
        assert rejected <= binom.ppf(1 - 1e-5, 5000, level)
        assert rejected >= binom.ppf(1e-5, 5000, attained)
