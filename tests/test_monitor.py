"""Monitoring: e-values are fair, batches and files change no number, and what is wrong is refused."""

import json
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.stats import binom
from support import command, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.monitoring.bettors import Bettors, radius
from caltest.predictive import Distribution, Normal, Point, Quantiles

RNG = np.random.default_rng
MOST = 0.999  # quantile of a number of false alarms


def said(state):
    return " ".join(state.summary().split())


def alarms(streams, one):
    return sum(one(RNG(seed)).alarm for seed in range(streams))


def allowed(streams, alpha=0.05):
    return binom.ppf(MOST, streams, alpha)


# ------------------------------------------------------------------ e-values are 1 on average, exactly


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3])
def test_the_mean_over_all_labels_is_one(m):
    probs, groups = dirichlet(5, m, m), ["a", "b", "a", "b", "b"]
    total, detector = 0.0, 0.0
    for labels in product(range(m), repeat=5):
        chance = probs[np.arange(5), labels].prod()
        total += chance * caltest.Monitor().update(probs, labels, groups=groups).evalue
        change = caltest.Monitor(mode="change")
        detector += chance * change.update(probs, labels).evalue
    assert total == pytest.approx(1.0, rel=1e-12)
    assert detector == pytest.approx(5.0, rel=1e-12)  # R − rows is a martingale


def test_classes_of_probability_zero_are_no_trouble():
    probs = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [0.3, 0.7, 0.0]])
    total = 0.0
    for labels in product(range(3), repeat=4):
        chance = probs[np.arange(4), labels].prod()
        state = caltest.Monitor().update(probs, labels)
        if chance == 0.0:
            assert state.alarm
            assert state.evalue == np.inf
            assert 0.0 < state.pvalue < 1e-100
        total += chance * state.evalue if chance else 0.0
    assert total == pytest.approx(1.0, rel=1e-12)


def test_whatever_the_dependence_inside_clusters():
    """One uniform number decides all labels of a cluster."""
    p, clusters = np.array([0.3, 0.6, 0.1, 0.5, 0.8]), [0, 0, 0, 1, 1]
    first, second = (np.sort(np.r_[0.0, p[part], 1.0]) for part in (slice(3), slice(3, 5)))
    total = 0.0
    for (a, b), (c, d) in product(*map(pairwise, (first, second))):
        labels = np.r_[(a + b) / 2 < p[:3], (c + d) / 2 < p[3:]]
        state = caltest.Monitor().update(p, labels, clusters=clusters)
        total += (b - a) * (d - c) * state.evalue
    assert state.clusters == 2
    assert total == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("functional", "level"), [("mean", 0.5), ("expectile:0.8", 0.8)])
def test_the_mean_over_all_outcomes_between_two_ends_is_one(functional, level):
    """Outcomes are 10, the forecast, or 50, as often as it takes to be right."""
    x, total = np.array([18.0, 45.0]), 0.0
    law = Point(x, functional, low=10, high=50)
    below, above = (1.0 - level) * (x - 10.0), level * (50.0 - x)
    chances = np.array([0.7 * above, 0.3 * (below + above), 0.7 * below]) / (below + above)
    for places in product(range(3), repeat=2):
        outcomes = np.choose(places, [np.full(2, 10.0), x, np.full(2, 50.0)])
        chance = chances[places, np.arange(2)].prod()
        total += chance * caltest.Monitor().update(law, outcomes).evalue
    assert total == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("side", [-1.0, 0.0, 1.0])
def test_with_a_tolerance_at_most_one_at_its_ends(side):
    stated, delta = np.array([0.3, 0.01, 0.6, 0.97, 0.5]), 0.05
    truth = np.clip(stated + side * delta, 0.0, 1.0)
    total = 0.0
    for labels in product(range(2), repeat=5):
        chance = np.where(labels, truth, 1.0 - truth).prod()
        monitor = caltest.Monitor(tolerance=delta)
        total += chance * monitor.update(stated, labels).evalue if chance else 0.0
    assert total <= 1.0 + 1e-12


@pytest.mark.slow
def test_numbers_with_atoms():
    law = scipy.stats.binom(3, [0.3, 0.6, 0.5])
    total = 0.0
    for outcomes in product(range(4), repeat=3):
        chance = law.pmf(outcomes).prod()
        total += chance * caltest.Monitor().update(Distribution(law), outcomes).evalue
    assert total == pytest.approx(1.0, rel=1e-9)


def test_quantiles_that_outcomes_equal_are_at_most_one():
    law, levels = scipy.stats.binom(3, [0.3, 0.6, 0.5]), [0.1, 0.5, 0.8]
    values = np.stack([law.ppf(level) for level in levels], axis=1)
    total = 0.0
    for outcomes in product(range(4), repeat=3):
        chance = law.pmf(outcomes).prod()
        total += chance * caltest.Monitor().update(Quantiles(levels, values), outcomes).evalue
    assert 0.3 < total <= 1.0


def test_laws_that_meet_outcomes_in_a_pool():
    """As members of ensembles do: each place in the pool has the same chance."""
    pool = np.sort(RNG(0).normal(size=(3, 4)), axis=1)
    pool[1, 2] = pool[1, 1]

    class Pool(caltest.predictive.GaussianPredictions):
        def __init__(self):
            super().__init__(np.zeros(3), 1.0)

        def cdf(self, outcomes):
            here = outcomes[:, None]
            return (pool < here).mean(axis=1), (pool <= here).mean(axis=1)

    total = 0.0
    for places in product(range(4), repeat=3):
        total += caltest.Monitor().update(Pool(), pool[np.arange(3), list(places)]).evalue / 64
    assert total == pytest.approx(1.0, rel=1e-9)


# ------------------------------------------------------------------ the loops beside plain NumPy


def test_class_bets_are_what_they_say():
    probs = dirichlet(30, 3, 4)
    labels = labels_from(probs, RNG(5))
    monitor = caltest.Monitor()
    monitor.update(probs, labels)
    waves, shifts, slopes, _, columns, begins, steps = Bettors(3)._spec[0]
    fixed, learned = np.zeros(len(slopes)), []
    for p, y in zip(probs, labels, strict=True):
        q = p ** slopes[:, None]
        fixed += np.log(q[:, y] / q.sum(axis=1) / p[y])
    for t, step in enumerate(steps):
        theta, squares, total = 0.0, 100.0, 0.0
        for p, y in zip(probs, labels, strict=True):
            phi = np.r_[1.0, np.cos(waves @ p + shifts)][columns[begins[t] : begins[t + 1]]]
            q = p * np.exp(phi @ (np.zeros((len(phi), 3)) + theta))
            q /= q.sum()
            total += np.log(q[y] / p[y])
            slope = np.outer(phi, q - np.eye(3)[y])
            squares = squares + slope**2
            theta = theta - step * slope / np.sqrt(squares)
        learned.append(total)
    assert monitor._books["logs"][0] == pytest.approx(np.r_[fixed, learned], rel=1e-9, abs=1e-12)


def test_number_bets_are_what_they_say():
    law = Normal(np.zeros(40), sd=1.0)
    outcomes = RNG(3).normal(size=40)
    monitor = caltest.Monitor()
    monitor.update(law, outcomes)
    waves, densities, steps = Bettors(None)._spec[0]
    cells = (scipy.stats.norm.cdf(outcomes) * 64).astype(int)
    assert densities.mean(axis=1) == pytest.approx(1.0)
    expected = [*np.log(densities[:, cells]).sum(axis=1)]
    for step in steps:
        theta, squares, total = np.zeros(6), 100.0, 0.0
        for cell in cells:
            density = np.exp(theta @ waves)
            density /= density.mean()
            total += np.log(density[cell])
            slope = (waves * density).mean(axis=1) - waves[:, cell]
            squares = squares + slope**2
            theta = theta - step * slope / np.sqrt(squares)
        expected.append(total)
    assert monitor._books["logs"][0] == pytest.approx(np.array(expected), rel=1e-9, abs=1e-12)


# ------------------------------------------------------------------ false alarms


def calibrated(rng, n, m):
    probs = rng.dirichlet(np.full(m, 0.7), n)
    return probs, labels_from(probs, rng)


@pytest.mark.level
def test_false_alarms_of_classes_with_groups():
    def one(rng):
        probs, labels = calibrated(rng, 500, 3)
        return caltest.Monitor().update(probs, labels, groups={"g": rng.integers(4, size=500)})

    assert alarms(150, one) <= allowed(150)


@pytest.mark.level
def test_false_alarms_of_clusters_that_share_most():
    def one(rng):
        p = rng.uniform(0.05, 0.6, 400)
        z = np.sqrt(0.8) * rng.normal(size=100).repeat(4) + np.sqrt(0.2) * rng.normal(size=400)
        labels = scipy.stats.norm.cdf(z) < p
        return caltest.Monitor().update(p, labels, clusters=np.arange(100).repeat(4))

    assert alarms(150, one) <= allowed(150)


@pytest.mark.level
def test_false_alarms_where_predictions_depend_on_past_outcomes():
    def one(rng):
        p, labels, seen = np.empty(400), np.empty(400, int), 0.5
        for t, u in enumerate(rng.random(400)):
            p[t] = min(max(seen, 0.05), 0.95)
            labels[t] = u < p[t]
            seen = 0.8 * seen + 0.2 * labels[t]
        return caltest.Monitor().update(p, labels)

    assert alarms(150, one) <= allowed(150)


@pytest.mark.level
@pytest.mark.parametrize("rare", [True, False])
def test_false_alarms_of_points_that_are_rare_or_depend_on_the_outcome_before(rare):
    def one(rng):
        x, y = rng.uniform(1.0, 10.0, 500), np.empty(500)
        for t, u in enumerate(rng.random(500)):
            x[t] = x[t] if rare else 20.0 + (0.4 * y[t - 1] if t else 0.0)
            y[t] = 200.0 * (u < x[t] / 200.0) if rare else 2.0 * x[t] * u
        state = caltest.Monitor().update(Point(x, low=0, high=200), y)
        assert state.evidence[0].low <= 0.0 <= state.evidence[0].high
        return state

    assert alarms(150, one) <= allowed(150)


def test_false_alarms_at_the_limit():
    def one(rng):
        p = rng.uniform(0.1, 0.9, 500)
        return caltest.Monitor(tolerance=0.05).update(p, rng.random(500) < p + 0.05)

    assert alarms(40, one) <= allowed(40)


@pytest.mark.level
def test_rows_to_a_false_alarm_of_changes():
    """Means of 60 waiting times, cut at 2 000 rows, which only makes them shorter."""
    waits = []
    for seed in range(60):
        rng = RNG(seed)
        p = rng.uniform(0.2, 0.8, 2000)
        monitor = caltest.Monitor(mode="change", mean_run_length=300.0)
        found = monitor.update(p, rng.random(2000) < p)
        waits.append(2000 if found.alarm_row is None else found.alarm_row)
    assert np.mean(waits) > 300.0


@pytest.mark.level
def test_limits_of_errors_hold_at_all_times():
    missed = 0
    for seed in range(100):
        rng = RNG(seed)
        p = rng.uniform(0.05, 0.5, 1000)
        truth = np.clip(p + 0.1 * (np.arange(1000) > 500), 0.0, 1.0)  # it changes
        error = np.cumsum((labels := rng.random(1000) < truth) - truth)
        squares = np.cumsum((labels - p) ** 2)
        missed += (np.abs(error) > radius(squares, np.full(1000, 0.025))).any()
    assert missed <= allowed(100)
    assert radius(np.array([0.0, 100.0]), np.array([0.025, 0.025])) == pytest.approx(
        [7.1, 38.5], rel=0.01
    )


@pytest.mark.level
@pytest.mark.parametrize("mode", ["by batch", "waiting"])
def test_false_alarms_of_clusters_that_come_back_with_the_same_outcome(mode):
    """Of 40 streams of 25 batches, half of whose rows copy one of the first batch."""

    def one(rng):
        monitor = caltest.Monitor()
        first = rng.uniform(0.05, 0.6, 20), None
        first = first[0], rng.random(20) < first[0]
        for k in range(25):
            p = np.r_[rng.uniform(0.05, 0.6, 20), first[0]]
            labels = np.r_[rng.random(20) < p[:20], first[1]]
            patients = np.r_[np.arange(20) + 20 * (k + 1), np.arange(20)]
            ids = None if mode == "by batch" else [f"{k}/{row}" for row in range(40)]
            monitor.update(p, labels, clusters=patients, ids=ids, batch=str(k))
        assert (monitor.state.rows, monitor.state.set_aside) == (520, 480)
        return monitor.state

    assert alarms(40, one) <= allowed(40)


# ------------------------------------------------------------------ what is found


def test_what_is_wrong_is_found_and_where_and_since_when():
    """The headline has the size and the place of the error that is proved to be largest."""
    rng, monitor = RNG(1), caltest.Monitor(model="risk 2.1")
    for week in range(12):
        p, region = rng.uniform(0.1, 0.6, 400), rng.choice(["north", "south", "west"], 400)
        wrong = 0.15 * (region == "north") * (week >= 5)
        date = f"2026-05-{week + 1:02}"
        state = monitor.update(p, rng.random(400) < p + wrong, groups={"region": region}, date=date)
    worst, subject = state.worst, state.story.subject
    assert state.alarm
    assert (worst.column, worst.value, worst.found, worst.side) == ("region", "north", True, "under")
    assert (subject.of, subject.side, subject.place) == (worst, "under", "later")
    assert worst.predicted_since < worst.observed_since
    assert worst.low <= worst.error <= worst.high < 0.0
    assert worst.proved == max(each.proved for each in state.evidence if each.found)
    assert 1_800 <= worst.since <= 2_200
    assert state.alarm_row > 2_000
    assert state.date_of(worst.since) in ("2026-05-05", "2026-05-06")
    text, page = said(state), state._page()
    assert text.startswith(
        f"ALARM, raised at row {state.alarm_row:,} ({state.alarm_date}). Predictions have "
    )
    assert re.search(r"have become .*about \d+ points too low where region is north\.", page.headline)
    assert "Odds against the model: more than a billion to 1; alarm at 20 to 1; p < 1e-9, valid" in text
    assert len(page.steps) == 4
    assert "The start is an estimate" in page.steps[1]
    assert "Do not test the same rows again" in page.steps[3]
    assert "model risk 2.1" in text
    assert "10^" not in text + repr(state)
    assert len(state.summary().splitlines()) <= 40
    assert state.evalue == pytest.approx(sum(each.adjusted for each in state.evidence) + 0.2)
    data = json.loads(json.dumps(state.to_dict(), allow_nan=False))
    assert (data["alarm"], len(data["evidence"]), data["model"]) == (True, 4, "risk 2.1")
    assert repr(state).startswith("MonitorState(alarm, odds against the model more than")
    assert "<table>" in state._repr_html_()


def test_no_alarm_and_no_rows():
    p, labels = calibrated(RNG(3), 2_000, 2)
    state = caltest.Monitor().update(p, labels)
    assert state.story.verdict == "no alarm"
    assert said(state).startswith(
        "No alarm, in 2,000 rows. No error found so far. Odds against the model: "
    )
    assert "No alarm does not prove calibration" in said(state)
    nothing = caltest.Monitor().state
    assert said(nothing).startswith("No rows yet. What to do next 1. Give the next rows")
    assert repr(caltest.Monitor()) == "Monitor(ever, no alarm, odds against the model 1 to 1, n = 0)"


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "most"), [(0.7, 150), (0.4, 500)])
def test_since_when_is_near_the_change(shift, most):
    """Nine of ten estimates are as near as docs/monitoring.md has it."""
    off = []
    for seed in range(60):
        rng = RNG(seed)
        p = rng.beta(2.0, 5.0, 3000)
        chance = 1.0 / (1.0 + (1.0 / p - 1.0) * np.exp(-shift * (np.arange(3000) >= 2000)))
        state = caltest.Monitor().update(p, rng.random(3000) < chance)
        off += [abs(state.worst.since - 2000)] * state.alarm
    assert len(off) >= 45
    assert np.quantile(off, 0.9) <= most


def test_a_model_that_is_overconfident():
    rng = RNG(0)
    truth = rng.dirichlet(np.ones(3), 3000)
    stated = truth**1.6 / (truth**1.6).sum(axis=1, keepdims=True)
    state = caltest.Monitor().update(stated, labels_from(truth, rng))
    assert state.alarm
    assert state.worst.bet == "flatter"
    assert state.worst.event == "the top class is right"
    assert state.worst.low > 0.0


@pytest.mark.parametrize(("factor", "word"), [(1.5, "narrow"), (0.6, "wide")])
def test_what_is_said_of_a_spread_is_what_is_drawn_and_kept(factor, word, tmp_path):
    """Two batches that are right and three that are not, of the event of the headline; loaded, too."""
    rng, monitor = RNG(0), caltest.Monitor()
    for k in range(5):
        mean = rng.normal(size=600)
        monitor.update(Normal(mean, sd=1.0), rng.normal(mean, factor if k > 1 else 1.0))
    monitor.save(tmp_path / "state.json")
    state = caltest.Monitor.load(tmp_path / "state.json").state
    assert state.worst.event == "the outcome is outside its predicted central half"
    assert f"Predicted distributions have become too {word}." in said(state)
    errors = [abs(each.predicted - each.observed) for each in state.periods]
    assert max(errors[:2]) < 0.05 < 0.1 < min(errors[2:])
    assert {each.event for each in state.periods} == {state.worst.event}
    assert state.pictures[1][0].endswith("together: the outcome is outside its predicted central half")


def test_numbers_that_are_too_low():
    rng, mean = RNG(0), RNG(1).normal(size=1500)
    state = caltest.Monitor().update(Normal(mean, sd=1.0), rng.normal(mean + 0.2))
    assert state.alarm
    assert state.worst.event == "the outcome is above its predicted median"
    assert state.worst.observed_since > 0.5
    assert state.n_classes is None


def test_points_are_watched_in_their_units():
    x = RNG(0).uniform(20.0, 60.0, 500)
    y = (x - 4.0 + RNG(1).normal(0.0, 10.0, 500)).clip(0.0, 100.0)
    state = (monitor := caltest.Monitor()).update(Point(x, low=0, high=100), y)
    (e,) = state.evidence
    assert (state.functional, state.n_classes, e.kind, e.side) == ("mean", None, "mean", "over")
    assert (e.error, state.periods[0].predicted) == pytest.approx((np.mean(x - y), x.mean()))
    assert 1.0 < e.low < 4.0 < e.high
    assert "Predictions are about 4" in said(state)
    with pytest.raises(InputError, match="how far apart the ends"):
        monitor.update(Point(x, low=0, high=200), y)
    with pytest.raises(InputError, match="give low and high"):
        caltest.Monitor().update(Point(x, low=0), y)
    with pytest.raises(InputError, match="these are point forecasts; leave it out"):
        caltest.Monitor(tolerance=0.1).update(Point(x, low=0, high=100), y)
    (e,) = caltest.Monitor().update(Point(x + 12.8, "quantile:0.9"), y).evidence
    assert (e.event, e.side) == ("the outcome is above its predicted 90% quantile", "over")
    assert e.error == pytest.approx(0.1 - np.mean(y > x + 12.8))


def test_a_limit_forgives_what_is_smaller():
    rng = RNG(0)
    p = rng.uniform(0.1, 0.9, 6000)
    labels = rng.random(6000) < p - 0.04
    assert caltest.Monitor().update(p, labels).alarm
    assert not caltest.Monitor(tolerance=0.05).update(p, labels).alarm
    assert caltest.Monitor(tolerance=0.01).update(p, labels).alarm


# ------------------------------------------------------------------ batches, files


def books(monitor):
    return {name: array.tobytes() for name, array in monitor._books.items()}


def pieces(n, size):
    return [slice(start, start + size) for start in range(0, n, size)]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mode": "change"}, {"lens": "top_label", "tolerance": 0.02}])
def test_batches_and_files_change_no_number(options, tmp_path):
    rng = RNG(2)
    probs = rng.dirichlet(np.ones(4), 600)
    labels, group = labels_from(probs, rng), rng.choice(["a", "b", "c"], 600)
    clusters = np.arange(600) // 3
    whole = caltest.Monitor(**options)
    expected = whole.update(probs, labels, groups={"g": group}, clusters=clusters)
    path = tmp_path / "state.json"
    caltest.Monitor(**options).save(path)
    for part in pieces(600, 30):
        monitor = caltest.Monitor.load(path)
        monitor.update(probs[part], labels[part], groups={"g": group[part]}, clusters=clusters[part])
        monitor.save(path)
    same = [{**books(each), "bins": None} for each in (monitor, whole)]
    assert same[0] == same[1]
    assert monitor._books["bins"] == pytest.approx(whole._books["bins"], abs=1e-12)  # sums, rounded
    assert monitor.state.log_evalue == expected.log_evalue
    assert [each.log_evalue for each in caltest.Monitor.load(path).state.evidence] == [
        each.log_evalue for each in expected.evidence
    ]


def of_kind(kind, rng, n=60):
    """Predictions, outcomes and options of a monitor of one kind."""
    p, labels = calibrated(rng, n, 2 if kind == "two classes" else 3)
    mean = rng.normal(size=n)
    return {
        "numbers": (Normal(mean, sd=1.0), rng.normal(mean), {}),
        "change": (p, labels, {"mode": "change"}),
        "a lens": (p, labels, {"lens": "top_label", "tolerance": 0.02}),
    }.get(kind, (p, labels, {}))


@pytest.mark.parametrize(
    "kind", ["two classes", "numbers", "change", "a lens", "from a file", "waiting"]
)
def test_rows_of_a_cluster_that_comes_back_are_set_aside_and_the_rest_goes_on(kind, tmp_path):
    """As if they had not been given: numbers are the same, and they are counted."""
    predicted, outcomes, options = of_kind(kind, RNG(6))
    patients, site = np.arange(60) // 2, np.array(["n", "s", "e"])[np.arange(60) % 3]
    patients[40:50] = [0, 0, 3, 3, 3, 7, 7, 9, 11, 12]  # of the first batch
    site[40] = "a site of its own"
    told = [np.arange(30), np.arange(30, 60), np.arange(40, 50)]
    kept = [told[0], np.setdiff1d(told[1], told[2])]

    def watch(batches):
        monitor = caltest.Monitor(**options)
        for number, rows in enumerate(batches):
            law = predicted.take(rows) if hasattr(predicted, "take") else None
            law = predicted[rows] if isinstance(predicted, np.ndarray) else law
            more = {"ids": rows + 100 * number} if kind == "waiting" else {}
            about = {"groups": {"g": site[rows]}, "clusters": patients[rows], "batch": str(number)}
            monitor.update(law, outcomes[rows], **about, **more)
            if kind == "from a file":
                monitor.save(tmp_path / f"{len(batches)}.json")
                monitor = caltest.Monitor.load(tmp_path / f"{len(batches)}.json")
        return monitor.state

    found, expected = watch(told), watch(kept)
    assert found.set_aside == 20
    assert found.to_dict() == {**expected.to_dict(), "set_aside": 20}
    assert (found.rows, found.clusters) == (50, 25)
    assert [found.evidence[0].rows, found.evidence[0].clusters] == [50, 25]
    assert "50 rows in 25 clusters" in said(found)
    assert "; 20 rows set aside, of clusters that came before" in said(found)


def test_rows_of_evidence_are_rows():
    p, labels = calibrated(RNG(0), 60, 2)
    groups, clusters = {"g": np.arange(60) // 20}, np.arange(60) // 5
    state = caltest.Monitor().update(p, labels, groups=groups, clusters=clusters)
    assert [(each.rows, each.clusters) for each in state.evidence] == [(60, 12), *[(20, 4)] * 3]
    state = caltest.Monitor().update(p, labels, groups=groups)
    assert [(each.rows, each.clusters) for each in state.evidence] == [(60, None), *[(20, None)] * 3]


def test_a_detector_is_not_said_to_be_odds_and_nothing_to_be_found():
    """On calibrated rows it has the mean of their number."""
    p, labels = calibrated(RNG(0), 2_000, 2)
    state = caltest.Monitor(mode="change").update(p, labels, groups={"g": np.arange(2_000) % 2})
    text = said(state)
    assert text.startswith("No alarm, in 2,000 rows. No change found so far. Change score ")
    assert not re.search(r"\d to 1\b", text + repr(state))
    assert "it grows by up to 1 a row, on average" in text


def test_days_that_are_fed_late_keep_their_dates():
    """Rows of several days in one batch: every date is a period; with clusters a batch is one."""
    rng, p = RNG(0), np.full(900, 0.3)
    days = np.repeat([f"2026-05-{k + 1:02}" for k in range(9)], 100)
    labels = rng.random(900) < 0.3 + 0.6 * (np.arange(900) >= 600)
    state = caltest.Monitor().update(p, labels, date=days)
    one = caltest.Monitor().update(p, labels, date="2026-06-01")
    assert [each.date for each in state.periods] == [*dict.fromkeys(days)]
    assert (state.alarm_row, state.log_evalue) == (one.alarm_row, one.log_evalue)
    assert (state.alarm_date, state.date_of(650)) == ("2026-05-07", "2026-05-07")
    grouped = caltest.Monitor().update(p, labels, date=days, clusters=np.arange(900) // 3)
    assert [each.date for each in grouped.periods] == ["2026-05-09"]
    with pytest.raises(caltest.InputError, match="date has rows of '2026-05-09' before and after"):
        caltest.Monitor().update(p, labels, date=np.roll(days, 50))


def test_dates_are_those_of_predictions_or_none():
    monitor = caltest.Monitor()
    monitor.update([0.2, 0.7], [None, None], ids=["a", "b"], date="2026-05-01")
    monitor.update([0.3, 0.6], [0, 1], ids=["c", "d"], date="2026-05-02")
    monitor.update(None, [1], ids=["b"], date="2026-06-01")
    days = monitor.update(None, [0], ids=["a"]).periods
    assert [(each.date, each.rows) for each in days] == [("2026-05-01", 2), ("2026-05-02", 2)]
    assert [each.date for each in caltest.Monitor().update([0.2, 0.7], [0, 1]).periods] == [None]


def test_the_first_and_the_latest_rows_of_a_group():
    """Blocks of 500 rows of the group itself: the first, and the last one or two."""
    rng, monitor = RNG(4), caltest.Monitor()
    p, group = rng.uniform(0.0, 1.0, 5200), np.arange(5200) % 4
    labels = rng.random(5200) < p
    for part in pieces(5200, 130):
        state = monitor.update(p[part], labels[part], groups={"g": group[part]})
    own = next(each for each in state.evidence if each.value == "1")
    assert (own.first[:, 0].sum(), own.latest[:, 0].sum()) == (500, 800)
    of_group = np.flatnonzero(group == 1)
    for bins, rows in ((own.first, of_group[:500]), (own.latest, of_group[500:])):
        ordered = rows[np.argsort(p[rows])]
        parts = np.split(ordered, bins[:-1, 0].astype(int).cumsum())  # neighbours share a bin
        assert bins[:, 1] == pytest.approx([p[part].sum() for part in parts])
        assert bins[:, 2].tolist() == [labels[part].sum() for part in parts]
        assert len(bins) == 10
        assert 0.5 * len(rows) < 10 * bins[:, 0].min() < 10 * bins[:, 0].max() < 1.5 * len(rows)
    short = caltest.Monitor().update(p[:30], labels[:30]).evidence[0]
    assert short.latest.tolist() == short.first.tolist()
    assert short.first[:, 0].tolist() == [30]


# ------------------------------------------------------------------ outcomes that come late


def test_late_outcomes_enter_in_the_order_of_prediction():
    rng = RNG(4)
    p = rng.uniform(0.1, 0.9, 60)
    labels = (rng.random(60) < p).astype(int)
    ids, groups = [f"r{k}" for k in range(60)], rng.choice(["a", "b"], 60)
    whole = caltest.Monitor()
    whole.update(p, labels, groups={"g": groups})
    monitor = caltest.Monitor()
    monitor.update(p[:40], [None] * 40, ids=ids[:40], groups={"g": groups[:40]})
    monitor.update(None, labels[10:40], ids=ids[10:40])
    assert (monitor.state.rows, monitor.state.waiting) == (0, 40)
    monitor.update(p[40:], labels[40:].tolist(), ids=ids[40:], groups={"g": groups[40:]})
    state = monitor.update(None, labels[:10][::-1], ids=ids[:10][::-1])
    assert (state.rows, state.waiting) == (60, 0)
    assert books(monitor) == books(whole)


def test_events_that_are_seen_sooner_raise_no_alarm(tmp_path):
    """The first outcomes are all events: rows enter in the order of prediction."""
    rng = RNG(0)
    p, ids, path = np.full(400, 0.05), np.arange(400), tmp_path / "state.json"
    labels = rng.random(400) < p
    monitor = caltest.Monitor()
    monitor.update(p, [None] * 400, ids=ids)
    monitor.update(None, labels[labels], ids=ids[labels])
    monitor.save(path)
    state = caltest.Monitor.load(path).update(None, labels[~labels], ids=ids[~labels])
    assert (state.rows, state.alarm) == (400, False)


def test_rows_that_wait_are_alike():
    monitor = caltest.Monitor()
    monitor.update([[0.2, 0.8]], [None], ids=["a"])
    with pytest.raises(caltest.InputError, match="the number of classes: this batch has '3', and"):
        monitor.update([[0.2, 0.3, 0.5]], [None], ids=["b"])
    with pytest.raises(caltest.InputError, match="predicted has 2 rows and outcomes 1; give one for"):
        monitor.update([0.2, 0.3], [None], ids=["c"])
    with pytest.raises(caltest.InputError, match="ids holds 'a' twice, or a row that came before"):
        monitor.update([0.2, 0.4], [None, None], ids=["a", "z"])
    assert monitor.update(None, [1], ids=["a"]).rows == 1
    with pytest.raises(caltest.InputError, match="predicted is None, and no row waits"):
        monitor.update(None, [1])
    with pytest.raises(caltest.InputError, match="ids holds 'a' twice, or a row that came before"):
        monitor.update([0.2], [1], ids=["a"])


def test_rows_that_wait_keep_the_names_of_their_classes(tmp_path):
    monitor, columns = caltest.Monitor(), ["dry", "rain", "snow"]
    first = pd.DataFrame([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]], columns=columns)
    monitor.update(first, [None, None], ids=["a", "b"])
    monitor.save(tmp_path / "state.json")
    monitor = caltest.Monitor.load(tmp_path / "state.json")
    monitor.update(first.iloc[::-1], ["rain", None], ids=["c", "d"])
    state = monitor.update(None, ["dry", "snow", "rain"], ids=["a", "b", "d"])
    assert (state.rows, state.waiting) == (4, 0)


def test_clusters_wait_for_all_of_their_rows():
    monitor = caltest.Monitor()
    monitor.update([0.2, 0.4, 0.6], [1, None, 1], ids=[1, 2, 3], clusters=["a", "a", "b"])
    assert monitor.state.rows == 0
    assert monitor.update(None, [0], ids=[2]).clusters == 2


# ------------------------------------------------------------------ what is refused

P, Y = [0.2, 0.7, 0.4], [0, 1, 1]


def started(**options):
    monitor = caltest.Monitor()
    monitor.update(P, Y, **options)
    return monitor


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: started().update(P, Y), "taken in before"),
        (lambda: started(batch="a").update(P, Y, batch="a"), "called 'a' was taken in before"),
        (lambda: started().update([[0.2, 0.3, 0.5]], [1]), "number of classes"),
        (
            lambda: started(groups={"g": Y}).update(P, Y, groups={"h": Y}, batch="b"),
            "columns of groups: this batch has 'h', and earlier ones had 'g'; give the same",
        ),
        (lambda: started().update(P, Y, clusters=[1, 2, 3], batch="b"), "clusters: this batch"),
        (
            lambda: started().update(caltest.data.sample(P, Y, weights=[1, 2, 3]).rows, Y),
            "multiplies one bet",
        ),
        (lambda: started().update(Normal([0.0], sd=1.0), [1.0]), "predictions: this batch"),
        (lambda: caltest.Monitor(tolerance=0.02).update([[0.2, 0.3, 0.5]], [1]), "one probability"),
        (lambda: caltest.Monitor(tolerance=0.02).update(Normal([0.0], sd=1.0), [1.0]), "interval:0.9"),
        (
            lambda: caltest.Monitor().update(Normal([[0.0, 1.0]], sd=[[1.0, 1.0]]), [[1.0, 2.0]]),
            "vectors",
        ),
        (
            lambda: caltest.Monitor(lens="quantile:0.5").update(Quantiles([0.5], [[1.0]]), [1.0]),
            "no bet is fair",
        ),
        (lambda: caltest.Monitor(mode="sometimes"), "there is no mode"),
        (lambda: caltest.Monitor(alpha=2), "give a level"),
        (lambda: caltest.Monitor(mean_run_length=0), "above 1"),
        (lambda: caltest.Monitor(lens="nonsense"), "nonsense"),
        (lambda: caltest.Monitor(model=3), "give a text"),
        (lambda: started().update(P, [0, None, 1]), "missing"),
        (lambda: caltest.Monitor().update(P, Y, ids=["a", "a", "b"]), "twice"),
        (lambda: caltest.Monitor().update(P, Y, ids=["a", "b"]), "one for every row"),
        (lambda: caltest.Monitor().update(P, Y, clusters=["a", None, "b"]), "the first in row 1"),
        (lambda: started().update(None, [1], ids=["x"]), "no row waits"),
        (lambda: caltest.Monitor().update(Normal([0.0], sd=1.0), [1.0], ids=["a"]), "of classes wait"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(call, words):
    with pytest.raises(caltest.InputError, match=words):
        call()


def test_nothing_is_changed_by_what_is_refused():
    monitor = started(groups={"g": ["a", "b", "a"]}, clusters=[1, 1, 2])
    before = books(monitor), monitor._processes[:], monitor._batches[:], monitor._clusters[:]
    for wrong in (
        {"groups": {"h": ["c", "d", "e"]}, "clusters": [1, 8, 9]},
        {"groups": {"g": ["c", "d", "e"]}},
        {"groups": {"g": ["c", "d"]}, "clusters": [7, 8, 9]},
    ):
        with pytest.raises(caltest.InputError):
            monitor.update(P, Y, batch="b", **wrong)
    assert before == (books(monitor), monitor._processes, monitor._batches, monitor._clusters)


@pytest.mark.parametrize("lens", [None, "top_label", "class:1"])
def test_columns_in_another_order_are_refused_whatever_a_lens_shows(lens, tmp_path):
    pd = pytest.importorskip("pandas")
    monitor = caltest.Monitor(lens=lens)
    frame = pd.DataFrame({"cat": [0.2, 0.5], "dog": [0.5, 0.4], "owl": [0.3, 0.1]})
    monitor.update(frame, ["cat", "dog"])
    monitor.save(tmp_path / "state.json")
    for each in (monitor, caltest.Monitor.load(tmp_path / "state.json")):
        with pytest.raises(caltest.InputError, match=r"classes: this batch has .*owl.*, .*cat"):
            each.update(frame[["owl", "dog", "cat"]], ["cat", "owl"])
        with pytest.raises(caltest.InputError, match=r"number of classes: this batch has '4'"):
            each.update(np.full((2, 4), 0.25), [0, 1])


def test_rows_that_wait_need_their_names():
    monitor = caltest.Monitor()
    monitor.update(P, [None, 1, 0], ids=["a", "b", "c"])
    with pytest.raises(caltest.InputError, match="give ids"):
        monitor.update(P, Y)
    with pytest.raises(caltest.InputError, match="known already"):
        monitor.update(None, [1], ids=["b"])
    with pytest.raises(caltest.InputError, match="ids holds 'a' twice"):
        monitor.update(None, [1, 0], ids=["a", "a"])
    with pytest.raises(caltest.InputError, match="columns of groups: this batch has"):
        monitor.update(P, Y, ids=["d", "e", "f"], groups=["x", "y", "z"])


def test_files_that_others_changed(tmp_path):
    path = tmp_path / "state.json"
    mine = started()
    mine.save(path)
    theirs = caltest.Monitor.load(path)
    theirs.update(P, Y, batch="theirs")
    theirs.save(path)
    mine.update(P, Y, batch="mine")
    with pytest.raises(caltest.InputError, match="changed by someone else"):
        mine.save(path)
    with pytest.raises(caltest.InputError, match="is there already"):
        started().save(path)
    assert caltest.Monitor.load(path).state.rows == 6


@pytest.mark.parametrize("how", ["cut", "changed", "other", "empty"])
def test_a_corrupt_file(how, tmp_path):
    path = tmp_path / "state.json"
    started().save(path)
    text = path.read_text()
    edited = text.replace('"alpha": 0.05', '"alpha": 0.5')
    assert edited != text
    path.write_text({"cut": text[:200], "other": "{}", "empty": "", "changed": edited}[how])
    with pytest.raises(caltest.InputError, match="no state of a monitor"):
        caltest.Monitor.load(path)


def test_a_state_of_another_version(tmp_path, monkeypatch):
    monkeypatch.setattr("caltest.monitoring.state._SCHEMA", 99)
    started().save(tmp_path / "state.json")
    monkeypatch.undo()
    with pytest.raises(caltest.InputError, match="is a state of version 99"):
        caltest.Monitor.load(tmp_path / "state.json")


WRITER = """
import sys, caltest
monitor = caltest.Monitor.load(sys.argv[1])
for k in range(int(sys.argv[2])):
    monitor.update([0.2, 0.7, 0.4], [0, 1, 1], batch=f"{k} of {sys.argv[3]}")
    monitor.save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_file(tmp_path):
    path = tmp_path / "state.json"
    started().save(path)
    for turn in (0, 3):
        process = subprocess.Popen([sys.executable, "-c", WRITER, path, "100000", str(turn)])
        before, began = caltest.Monitor.load(path).state.rows, time.monotonic()
        while caltest.Monitor.load(path).state.rows == before and time.monotonic() < began + 60:
            time.sleep(0.01)
        time.sleep(0.003 * turn)
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = caltest.Monitor.load(path)
        assert after.state.rows > before
        after.update(P, Y, batch=f"after {turn}")
        after.save(path)


# ------------------------------------------------------------------ results, pictures, the command


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("numbers", [False, True])
def test_pages_and_pictures_have_the_same_marks(numbers, tmp_path):
    rng, monitor = RNG(0), caltest.Monitor()
    for _ in range(4):
        p = rng.uniform(0.1, 0.9, 300)
        given = (Normal(p, sd=1.0), rng.normal(p)) if numbers else (p, rng.random(300) < p)
        state = monitor.update(*given)
    display = caltest.plots.MonitorDisplay.from_result(state)
    titles = [" ".join(ax.get_title(loc="left").split()) for ax in display.axes_]
    assert titles == [title for title, _ in state.pictures]
    assert "limits hold for all of them together" in titles[1]
    assert titles[2] == "Then (thin: first 500 rows) and now (latest 700 rows), 95% bands: all rows"
    bands = [mark for mark in state.pictures[2][1].marks if mark.style == "band"]
    assert [len(mark.x) for mark in bands] == [10, 10]
    display.save(tmp_path / "path.svg")
    caltest.report.save(state, tmp_path / "page.html")
    page = " ".join((tmp_path / "page.html").read_text().split())
    assert page.count('<svg class="wide"') == 3
    assert "matplotlib" not in page
    assert "rows come in the order in which they were predicted" in page
    assert '<th scope="row">alarm at</th>' in page


def test_a_picture_of_rows_that_all_wait():
    state = caltest.Monitor().update([0.2, 0.7], [None, None], ids=["a", "b"])
    assert (state.rows, state.waiting, state.evidence, len(state.pictures)) == (0, 2, (), 1)


def outside(state):
    """Return how many marks of then and now lie outside their bands."""
    marks = state.pictures[2][1].marks
    return sum(len(mark.x) for mark in marks if (mark.kind, mark.style) == ("points", "bad"))


def test_bands_leave_out_marks_of_a_model_that_is_wrong():
    rng = RNG(0)
    p = np.r_[rng.uniform(0.2, 0.6, 500), rng.uniform(0.2, 0.6, 1000)]
    labels = rng.random(1500) < p + 0.25 * (np.arange(1500) >= 500)
    assert outside(caltest.Monitor().update(p, labels)) == 10


@pytest.mark.level
@pytest.mark.parametrize("numbers", [False, True])
def test_bands_hold_all_marks_together(numbers):
    """Of calibrated models, in at most one picture of twenty a mark is outside, in the worst group."""
    wrong = 0
    for seed in range(40):
        rng = RNG(seed)
        p, groups = rng.beta(2.0, 5.0, 1200), {"g": rng.integers(0, 3, 1200)}
        given = (Normal(p, sd=1.0), rng.normal(p)) if numbers else (p, rng.random(1200) < p)
        wrong += outside(caltest.Monitor().update(*given, groups=groups)) > 0
    assert wrong <= allowed(40)


def batch(path, seed, shift=0.0, n=300):
    rng = RNG(seed)
    p, site = rng.uniform(0.1, 0.6, n).round(3), rng.choice(["007", "12"], n)
    y = (rng.random(n) < p + shift).astype(int)
    rows = zip(p, site, np.arange(n) // 2 + 1000 * seed, y, strict=True)
    lines = [f"{a},{b},{c},{d}" for a, b, c, d in rows]
    Path(path).write_text("\n".join(["risk,site,patient,outcome", *lines]) + "\n")
    return path


COLUMNS = ("--label", "outcome", "--columns", "risk", "--group", "site")


@pytest.mark.slow
def test_the_command_creates_and_continues(tmp_path):
    state = tmp_path / "state.json"
    found = command("monitor", state, batch(tmp_path / "a.csv", 1), *COLUMNS, "--date", "2026-05-01")
    assert (found.exit_code, "No alarm (exit status 0)." in found.output) == (0, True)
    assert caltest.Monitor.load(state).state.date_of(0) == "2026-05-01"
    again = command("monitor", state, tmp_path / "a.csv", *COLUMNS)
    assert again.exit_code == 2
    assert "a.csv: a batch with this content was taken in before" in again.output
    other = command("monitor", state, batch(tmp_path / "b.csv", 2), *COLUMNS, "--alpha", 0.1)
    assert other.exit_code == 2
    assert "begun with --alpha 0.05" in other.output
    page = tmp_path / "page.html"
    worse = [batch(tmp_path / f"{k}.csv", k, 0.2) for k in range(3, 7)]
    alarm = command("monitor", state, *worse, *COLUMNS, "--json", "--report", page)
    data = json.loads(alarm.stdout)
    assert (alarm.exit_code, data["alarm"], data["rows"]) == (1, True, 1500)
    assert {each["value"] for each in data["evidence"]} == {None, "007", "12"}
    assert "<title>ALARM: Monitoring of calibration</title>" in page.read_text()
    assert (caltest.Monitor.load(state).state.rows, data["alarm_date"]) == (1500, None)


@pytest.mark.slow
def test_the_command_takes_clusters_and_numbers(tmp_path):
    state = tmp_path / "state.json"
    options = (*COLUMNS, "--clusters", "patient", "--json")
    found = command(
        "monitor", state, batch(tmp_path / "a.csv", 1), batch(tmp_path / "b.csv", 2), *options
    )
    assert json.loads(found.stdout)["clusters"] == 300
    back = Path(batch(tmp_path / "c.csv", 3))
    back.write_text(back.read_text() + "0.4,007,1003,1\n")  # a patient of a.csv
    page = tmp_path / "page.html"
    assert command("monitor", state, back, *options, "--report", page).exit_code == 0
    assert "1 row set aside, of clusters that came before" in " ".join(page.read_text().split())
    rng = RNG(0)
    lines = [f"{m},{rng.normal(m, 2.0)}" for m in rng.normal(size=400)]
    (tmp_path / "n.csv").write_text("\n".join(["m,y", *lines]) + "\n")
    law = ("--mean", "m", "--sd", "m2")
    numbers = tmp_path / "numbers.json"
    assert command("monitor", numbers, tmp_path / "n.csv", "--label", "y", *law).exit_code == 2
    (tmp_path / "n.csv").write_text("\n".join(["m,y,s", *(f"{line},1.0" for line in lines)]) + "\n")
    law = ("--mean", "m", "--sd", "s")
    assert command("monitor", numbers, tmp_path / "n.csv", "--label", "y", *law).exit_code == 1
    assert command("monitor", numbers).exit_code == 2


@pytest.mark.slow
def test_the_command_waits_for_late_outcomes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("risk,name,seen,site\n0.2,a,,n\n0.7,b,1,s\n0.4,c,,n\n")
    Path("b.csv").write_text("name,seen\na,0\nc,1\n")
    options = ("--label", "seen", "--id", "name", "--columns", "risk", "--group", "site", "--json")
    first = json.loads(command("monitor", "state.json", "a.csv", *options).stdout)
    assert (first["rows"], first["waiting"]) == (0, 3)
    then = json.loads(command("monitor", "state.json", "b.csv", *options).stdout)
    assert (then["rows"], then["waiting"], len(then["evidence"])) == (3, 0, 3)
    again = command("monitor", "state.json", "b.csv", *options)
    assert again.exit_code == 2
    assert "b.csv: no row waits that is called 'a'" in again.output
    bare = command("monitor", "other.json", "a.csv", "--id", "name", "--columns", "risk")
    assert "--id name is about labels that come late; give --label too" in bare.output
    Path("one.csv").write_text("risk,seen\n0.3,1\n")
    assert command("monitor", "one.json", "one.csv", "--label", "seen").exit_code == 0


@pytest.mark.slow
def test_the_command_goes_on_with_the_column_that_it_began_with(tmp_path):
    state, path = tmp_path / "state.json", tmp_path / "a.csv"
    path.write_text("risk,score,y\n0.2,0.3,0\n0.6,0.5,1\n")
    assert command("monitor", state, path, "--label", "y", "--columns", "risk").exit_code == 0
    other = command("monitor", state, path, "--label", "y", "--columns", "score")
    assert other.exit_code == 2
    assert "predictions are from column 'score', and earlier ones from 'risk'" in other.output
    late = tmp_path / "late.csv"
    late.write_text("id,risk,score,y,note\na,0.2,0.3,,x\nb,0.6,0.5,1,y\n")
    how = ("--label", "y", "--id", "id")
    assert command("monitor", state, late, *how, "--columns", "score").exit_code == 2
    assert command("monitor", state, late, *how).exit_code == 0  # from the column of the state
    late.write_text("id,y,note\na,0,some\n")
    assert json.loads(command("monitor", state, late, *how, "--json").stdout)["rows"] == 4


@pytest.mark.slow
def test_the_command_takes_times(tmp_path):
    rng = RNG(0)
    rate = rng.uniform(0.3, 1.0, 400)
    time, end = rng.exponential(0.5 / rate), rng.exponential(1.0, 400)
    columns = np.column_stack([np.exp(-rate), np.exp(-3.0 * rate), np.minimum(time, end), time <= end])
    lines = [",".join(map(str, row)) for row in columns]
    (tmp_path / "t.csv").write_text("\n".join(["s1,s3,t,d", *lines]) + "\n")
    how = ("--time", "t", "--event", "d", "--survival-at", "1=s1", "--survival-at", "3=s3", "--json")
    found = command("monitor", tmp_path / "state.json", tmp_path / "t.csv", *how)
    assert found.exit_code == 1
    assert json.loads(found.stdout)["evidence"][0]["bet"] == "sooner"


def test_rows_of_a_cluster_that_waits_are_set_aside_whatever_its_outcome():
    """Else what counts of a cluster would depend on outcomes that are known early."""
    monitors = [caltest.Monitor(), caltest.Monitor()]
    for monitor, known in zip(monitors, (1, None), strict=True):
        monitor.update([0.5], [known], ids=["a"], clusters=["c"])
        monitor.update([0.5], [None], ids=["b"], clusters=["c"])
        late = {"b": 0} if known else {"a": 1, "b": 0}
        monitor.update(None, [*late.values()], ids=[*late])
    first, second = (each.state for each in monitors)
    assert first.log_evalue == second.log_evalue
    assert (first.rows, first.set_aside, first.waiting) == (1, 1, 0)
    assert (second.rows, second.set_aside, second.waiting) == (1, 1, 0)


@pytest.mark.parametrize("clusters", [True, False])
def test_the_day_of_an_alarm_is_that_of_its_row(clusters):
    days = np.repeat([f"2026-01-{day:02}" for day in range(1, 31)], 20)
    p, happened = np.full(600, 0.2), np.arange(600) % 2
    beside = {"clusters": days} if clusters else {}
    state = caltest.Monitor().update(p, happened, date=days, **beside)
    assert state.alarm_date == days[state.alarm_row - 1] < days[-1]
    assert len(state.periods) == 30
