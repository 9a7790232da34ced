"""Bets on times until an event, and on the scores of a statistic: fair, and about what was seen."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, expon, poisson
from support import dirichlet, labels_from

import caltest
from caltest.monitoring.bettors import compensated
from caltest.predictive import Normal, Quantiles, Survival

RNG = np.random.default_rng


def followed(rng, n=600, factor=1.0, censored=1.0):
    """Draw predicted curves, and what was seen of times whose hazard is a multiple of the predicted."""
    rate, times = rng.uniform(0.3, 1.0, n), np.linspace(0.05, 4.0, 80)
    time, end = rng.exponential(1.0 / (factor * rate)), rng.exponential(censored, n) * (1.2 - rate)
    return Survival(np.exp(-np.outer(rate, times)), times), (np.minimum(time, end), time <= end)


CURVES, GRID = np.array([[0.7, 0.4, 0.0], [0.9, 0.5, 0.2], [0.6, 0.6, 0.1]]), np.array([1.0, 2.0, 3.0])
CHANCES = -np.diff(np.column_stack([np.ones(3), CURVES, np.zeros(3)]), axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(1.5, 2.5, 9.0), (2.0, 0.5, 1.0), (2.5, 2.5, 3.0)])
def test_whatever_the_censoring_the_mean_over_all_times_is_one(ends):
    """Three rows, each followed until its own end; all that can be seen, with its probability."""
    total = 0.0
    for places in product(range(4), repeat=3):
        time, end = np.array([*GRID, 9.0])[list(places)], np.array(ends)
        law, seen = Survival(CURVES, GRID, interpolation="step"), (np.minimum(time, end), time <= end)
        chance = CHANCES[np.arange(3), places].prod()
        total += chance * caltest.Monitor().update(law, seen).evalue if chance else 0.0
    assert total == pytest.approx(1.0, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("end", [0.3, 1.6, 2.9, 9.0])
def test_between_the_times_of_a_curve_too(end):
    """One row; within a piece of its curve the time is uniform: the middles of a fine grid."""
    total = 0.0
    for piece in range(4):
        for offset in (np.arange(60) + 0.5) / 60:
            law = Survival(CURVES[1:2], GRID)
            seen = ([min(piece + offset, end)], [piece + offset <= end])
            total += CHANCES[1, piece] / 60 * caltest.Monitor().update(law, seen).evalue
    assert total == pytest.approx(1.0, rel=2e-3)


def test_bets_are_likelihood_ratios_of_what_was_seen():
    """(h_q/h_p)^δ exp(−(Λ_q − Λ_p)(X)) for hazards that are multiples of the predicted ones."""
    law, seen = followed(RNG(3), 1)
    monitor = caltest.Monitor()
    monitor.update(law, seen)
    hazard, event = float(law.cumulative_hazard(seen[0])[0]), float(seen[1][0])
    factors = np.exp(np.linspace(-0.7, 0.7, 15))
    expected = event * np.log(factors) - (factors - 1.0) * hazard
    assert monitor._books["logs"][0, :15] == pytest.approx(expected, abs=0.03)  # 64 cells


def test_batches_of_times_change_no_number():
    law, (time, event) = followed(RNG(5), 300)
    whole, parts = caltest.Monitor(), caltest.Monitor()
    whole.update(law, (time, event))
    for start in range(0, 300, 25):
        part = slice(start, start + 25)
        parts.update(law.take(part), (time[part], event[part]))
    assert parts._books["logs"] == pytest.approx(whole._books["logs"], rel=1e-12)
    assert parts.state.evidence[0].low == pytest.approx(whole.state.evidence[0].low)


@pytest.mark.slow
def test_false_alarms_of_censored_times():
    alarms = sum(caltest.Monitor().update(*followed(RNG(seed), 400)).alarm for seed in range(120))
    assert alarms <= binom.ppf(0.999, 120, 0.05)


@pytest.mark.parametrize(("factor", "bet"), [(1.4, "sooner"), (0.7, "later")])
def test_wrong_hazards_are_found_and_told(factor, bet):
    state = caltest.Monitor().update(*followed(RNG(0), 3000, factor))
    assert state.alarm
    assert state.worst.bet == bet
    assert state.worst.observed_since / state.worst.predicted_since == pytest.approx(factor, abs=0.15)
    assert (state.worst.high < 0.0) if factor > 1.0 else (state.worst.low > 0.0)
    assert "events per 100 rows" in state.summary()
    assert "the event comes" not in state.summary()


@pytest.mark.level
def test_limits_of_expected_events_hold_at_all_times():
    """Counts are read after every event; the limits of what was expected hold at all of them."""
    rng, missed = RNG(1), 0
    for _ in range(200):
        expected = np.cumsum(rng.exponential(size=150))  # of a Poisson process at its events
        low, high = compensated(np.arange(1.0, 151.0), np.full(150, 0.05))
        missed += bool(((low > expected) | (high < expected)).any())
    assert missed <= binom.ppf(0.999, 200, 0.1)
    low, high = compensated(np.array([0.0, 10.0]), np.array([0.025, 0.025]))
    assert low[0] == 0.0
    assert poisson.cdf(0, high[0]) < 0.025  # wider than limits for one time
    assert poisson.sf(9, low[1]) < 0.025


def test_a_lens_of_censored_times_needs_their_limits():
    """Completed times would depend on how rows are batched."""
    law, seen = followed(RNG(2), 50)
    with pytest.raises(caltest.InputError, match="a lens of times needs to know until when every row"):
        caltest.Monitor(lens="until:1").update(law, seen)
    hazard, times = np.full(200, 0.5), np.linspace(0.1, 3.0, 30)
    known = Survival(np.exp(-np.outer(hazard, times)), times, follow_up=2.0)
    time = RNG(1).exponential(2.0, 200)
    found = caltest.Monitor(lens="until:1").update(known, (np.minimum(time, 2.0), time <= 2.0))
    assert found.n_classes == 2


def test_curves_that_say_nothing_of_censored_rows_are_refused():
    law = Survival(risk=[0.2, 0.4, 0.1], times=2.0)
    with pytest.raises(caltest.InputError, match="1 rows are censored before; give whole curves"):
        caltest.Monitor().update(law, ([1.0, 2.5, 0.5], [1, 0, 0]))
    assert caltest.Monitor().update(law, ([1.0, 2.5, 3.0], [1, 0, 0])).rows == 3


@pytest.mark.slow
def test_limits_of_quantiles_that_outcomes_equal():
    """Where an outcome leaves cells open, events are counted where they are fewest and most."""
    levels = [0.05, 0.25, 0.4, 0.6, 0.75, 0.95]
    values = np.where(np.array(levels) <= 0.45, 0.0, expon.ppf((np.array(levels) - 0.45) / 0.55))
    law, missed = Quantiles(levels, np.tile(values, (600, 1))), 0
    for seed in range(60):
        rng, monitor = RNG(seed), caltest.Monitor()
        outcomes = np.where(rng.random(600) < 0.45, 0.0, rng.exponential(size=600))
        for part in (slice(0, 300), slice(300, 600)):
            state = monitor.update(Quantiles(levels, np.tile(values, (300, 1))), outcomes[part])
        every = [*state.evidence, *state.periods]
        missed += any(each.low > 0.0 or each.high < 0.0 for each in every)
    assert missed <= binom.ppf(0.999, 60, 0.1)
    assert caltest.Monitor().update(law, RNG(0).exponential(3.0, 600) + 1.0).evidence[0].high < 0.0


# ------------------------------------------------------------------ scores of a statistic


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["brier", "log_score", "spiegelhalter"])
def test_of_a_statistic_the_mean_over_all_labels_is_one(statistic):
    probs, total = dirichlet(4, 3, 1), 0.0
    for labels in product(range(3), repeat=4):
        chance = probs[np.arange(4), labels].prod()
        total += chance * caltest.Monitor(statistic=statistic).update(probs, labels).evalue
    assert total == pytest.approx(1.0, rel=1e-12)


def test_statistics_that_add_up_scores_are_those_that_are_listed():
    from caltest.forms.sums import LinearSum
    from caltest.monitoring.bettors import SCORED
    from caltest.statistics import find_statistic

    rows = caltest.data.predictions([0.2, 0.7, 0.4])
    assert all(isinstance(find_statistic(name).given(rows), LinearSum) for name in SCORED)


def test_scores_that_are_too_large_are_found():
    rng = RNG(2)
    probs = rng.dirichlet(np.ones(4), 2000)
    true = probs**0.7
    labels = labels_from(true / true.sum(axis=1, keepdims=True), rng)
    state = caltest.Monitor(statistic="brier").update(probs, labels)
    assert state.alarm
    assert state.worst.observed_since > state.worst.predicted_since
    assert "the score of a row (brier) is above its predicted median" in state.worst.event
    assert not caltest.Monitor(statistic="brier").update(probs, labels_from(probs, rng)).alarm


@pytest.mark.parametrize(
    ("options", "given", "words"),
    [
        ({"statistic": "skce_uq"}, None, "choices: brier, log_score, spiegelhalter, ecd, citl"),
        ({"statistic": "bries"}, None, "did you mean 'brier'"),
        ({"statistic": "brier", "tolerance": 0.02}, None, "leave statistic out"),
        ({"statistic": "brier"}, Normal(np.zeros(3), sd=1.0), "are normal distributions of numbers"),
    ],
)
def test_what_no_bet_can_be_on_is_said(options, given, words):
    asked = ([0.2, 0.7, 0.4], [0, 1, 1]) if given is None else (given, [0.1, 0.3, 2.0])
    with pytest.raises(caltest.InputError, match=words):
        caltest.Monitor(**options).update(*asked)
