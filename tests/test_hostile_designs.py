"""Levels where they are easily too large: sorted rows, few distinct rows, odd functions of users."""

from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import caltest
from caltest import InputError
from caltest.kernels import Exponential
from caltest.statistics import CKCE, STATISTICS, LinearSKCE, UnbiasedSKCE
from validation.moments_small import LIMITS, STATISTICS_SMALL, law_of_counts, law_of_pairs, levels

FALSE_ALARM = 1e-5  # of one test of level
REPETITIONS = 60


def beyond(pvalues, level):
    """The largest count of rejections that a valid test shows but once in 1/FALSE_ALARM runs."""
    rejections = np.count_nonzero(np.asarray(pvalues) <= level)
    return rejections > binom.ppf(1 - FALSE_ALARM, len(pvalues), level)


# ------------------------------------------------------------------ sorted rows

ORDERS = {
    "by label": lambda probs, labels: np.argsort(labels, kind="stable"),
    "by prediction": lambda probs, labels: np.lexsort(probs.T),
    "by label, then prediction": lambda probs, labels: np.lexsort((*probs.T, labels)),
    "by prediction, then label": lambda probs, labels: np.lexsort((labels, *probs.T)),
    "reversed label": lambda probs, labels: np.argsort(-labels, kind="stable"),
}
DESIGNS = {
    "three classes": lambda r: r.dirichlet(np.ones(3), 80),
    "ties of two classes": lambda r: (lambda p: np.stack([1 - p, p], 1))(r.integers(1, 5, 80) / 5),
    "two distinct rows of three classes": lambda r: np.repeat(r.dirichlet(np.ones(3), 2), 40, axis=0),
}


def drawn(probs, rng):
    return (rng.random((len(probs), 1)) >= probs.cumsum(axis=1)[:, :-1]).sum(axis=1)


def your_own(probs, labels):
    return float(np.abs(np.eye(probs.shape[1])[labels] - probs).sum())


@pytest.mark.level
@pytest.mark.parametrize(
    ("statistic", "design"),
    [
        (statistic, design)
        for statistic in [*STATISTICS, "your own"]
        for design in DESIGNS
        if statistic not in ("cox", "omnibus") or design == "three classes"
    ],
)
def test_sorted_rows(statistic, design):
    """Rows in any order that a file may have, one that knows the labels too: no statistic minds."""
    if statistic == "your own":
        statistic = your_own
    pvalues = []
    for seed in range(REPETITIONS):
        rng = np.random.default_rng(seed)
        probs = DESIGNS[design](rng)
        labels = drawn(probs, rng)
        order = list(ORDERS.values())[seed % len(ORDERS)](probs, labels)
        result = caltest.test(probs[order], labels[order], statistic, n_resamples=19, rng=seed)
        pvalues.append(result.pvalue)
    assert not beyond(pvalues, 0.05)
    assert not beyond(pvalues, 0.25)


@pytest.mark.level
@pytest.mark.parametrize(("n", "p"), [(70, 0.3), (34, 0.05), (102, 0.3)])
@pytest.mark.parametrize("door", ["test", "audit"])
def test_equal_rows_sorted_by_label(n, p, door):
    """Of equal rows, a fixed pairing of sorted labels would be a function of their number alone."""
    pvalues = []
    for seed in range(REPETITIONS):
        labels = np.sort(np.random.default_rng(seed).random(n) < p).astype(int)
        if door == "test":
            found = caltest.test(np.full(n, p), labels, "skce_ul", n_resamples=39, rng=seed)
        else:
            options = {"statistics": "skce_ul", "lenses": "canonical", "n_resamples": 39, "rng": seed}
            found = caltest.audit(np.full(n, p), labels, **options)
        pvalues.append(found.pvalue)
    assert not beyond(pvalues, 0.05)


def test_pairs_of_consecutive_rows_need_an_order_without_labels():
    """What the default of skce_ul avoids, and what is said of the option that does not."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 300)
    labels = drawn(probs, rng)
    order = np.argsort(labels, kind="stable")
    by_rows = caltest.test(probs[order], labels[order], LinearSKCE(pairing="rows"), rng=1)
    assert by_rows.pvalue == 0.001
    assert any("order of the rows" in note for note in by_rows.warnings)
    assert caltest.test(probs[order], labels[order], "skce_ul", rng=1).pvalue > 0.01


def test_random_pairs_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.ones(4), 101)
    labels = drawn(probs, rng)
    value = caltest.estimate(probs, labels, "skce_ul")
    for _ in range(5):
        order = rng.permutation(101)
        assert caltest.estimate(probs[order], labels[order], "skce_ul") == pytest.approx(
            value, rel=1e-12
        )
    assert caltest.estimate(probs, labels, LinearSKCE(seed=1)) != pytest.approx(value, rel=1e-3)


def test_random_pairs_have_power():
    digits = caltest.datasets.load_digits_predictions("naive_bayes")
    assert caltest.test(digits.probs, digits.labels, "skce_ul", null="moments").pvalue <= 1e-3


# ------------------------------------------------------------------ few distinct rows

SMALL = {
    "a coin": ([[0.5, 0.5]], [21]),
    "a coin, 30 rows": ([[0.5, 0.5]], [30]),
    "nearly a coin": ([[0.6, 0.4]], [25]),
    "a rare event": ([[0.9, 0.1]], [30]),
    "three equal classes": ([[1 / 3, 1 / 3, 1 / 3]], [17]),
    "two values": ([[0.3, 0.7], [0.7, 0.3]], [15, 15]),
    "two values, one rare": ([[0.03, 0.97], [0.4, 0.6]], [40, 25]),
    "two close values": ([[0.4, 0.6], [0.45, 0.55]], [14, 16]),
    "three values": ([[0.4, 0.6], [0.5, 0.5], [0.7, 0.3]], [10, 12, 7]),
    "four values": ([[0.45, 0.55], [0.54, 0.46], [0.4, 0.6], [0.6, 0.4]], [7, 5, 6, 7]),
    "three classes, two values": ([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], [6, 7]),
}


@pytest.mark.level
@pytest.mark.parametrize("design", SMALL)
@pytest.mark.parametrize("statistic", STATISTICS_SMALL)
def test_moments_of_few_distinct_rows(statistic, design):
    """The level of the analytic null by enumeration of all counts, or labels are drawn: exact."""
    rows, copies = (np.array(each) for each in SMALL[design])
    probs = np.repeat(rows, copies, axis=0)
    if statistic != "skce_ul":
        labels, chances = law_of_counts(rows, copies)
    elif len(rows) > 1:
        pytest.skip("pairs are counted where one row is distinct")
    else:
        probs = probs[: 2 * (len(probs) // 2)]
        labels, chances = law_of_pairs(rows[0], LinearSKCE()._pairs(probs))
    try:
        found = levels(statistic, probs, labels, chances)
    except InputError:
        pytest.skip("of two classes")
    if found is not None:
        assert all(found[level] <= limit * level for level, limit in LIMITS.items())


def near_certain(rng):
    return np.concatenate([rng.beta(1, 1e4, 300), rng.uniform(0.05, 0.95, 90)])


NARROW = UnbiasedSKCE(Exponential(1e-6))
FEW_CARRY = {
    "a narrow median bandwidth": (lambda r: near_certain(r), "skce_uq"),
    "tied pairs among others": (
        lambda r: np.r_[np.repeat([0.5, 0.501, 0.502], 2), r.uniform(0.05, 0.95, 300)],
        NARROW,
    ),
    "twelve tied pairs": (
        lambda r: np.r_[np.repeat(0.5 + 0.001 * np.arange(12), 2), r.uniform(0.05, 0.95, 300)],
        NARROW,
    ),
    "eight equal rows among others": (lambda r: np.r_[np.full(8, 0.5), r.uniform(0, 1, 200)], NARROW),
    "thirty equal rows among others": (lambda r: np.r_[np.full(30, 0.5), r.uniform(0, 1, 200)], NARROW),
    "one group and many of one row": (lambda r: np.full(126, 0.5),
        CKCE(groups=["A"] * 6 + [f"s{i}" for i in range(120)])),
    "few of a larger group": (lambda r: r.uniform(0.4, 0.6, 110),
        CKCE(groups=["A"] * 10 + [f"s{i}" for i in range(100)])),
}  # fmt: skip


@pytest.mark.parametrize("case", FEW_CARRY)
def test_few_rows_that_carry_the_variance_are_drawn(case):
    """Whatever the other rows are: they have uncertain labels, and weights of nearly 0."""
    make, statistic = FEW_CARRY[case]
    rng = np.random.default_rng(2)
    p = make(rng)
    labels = (rng.random(len(p)) < p).astype(int)
    result = caltest.test(p, labels, statistic, null="moments", n_resamples=19, rng=0)
    assert result.n_resamples == 19


@pytest.mark.parametrize(("p", "n"), [(0.02, 550), (0.01, 2000), (0.05, 600)])
def test_pairs_of_rare_events_are_drawn(p, n):
    labels = np.zeros(n, int)
    labels[:5] = 1
    result = caltest.test(np.full(n, p), labels, "skce_ul", null="moments", n_resamples=19, rng=0)
    assert result.n_resamples == 19


@pytest.mark.parametrize("statistic", ["skce_uq", "skce_b", "ckce", "jkce", "skce_ul", "ece_debiased"])
@pytest.mark.parametrize("n", [100, 400])
def test_untied_designs_stay_analytic(statistic, n):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    assert caltest.test(p, rng.random(n) < p, statistic, null="moments").n_resamples is None


# ------------------------------------------------------------------ functions of users


def counting():
    calls = []
    return lambda probs, labels: -float(len(calls.append(0) or calls))


def running_mean():
    seen = []

    def value(probs, labels):
        seen.append(float(np.abs(labels - probs[:, 1]).sum()))
        return seen[-1] - np.mean(seen)

    return value


def noisy():
    rng = np.random.default_rng(0)
    return lambda probs, labels: float(labels.sum() + rng.random())


def last_labels():
    last = [None]

    def value(probs, labels):
        before, last[0] = last[0], labels
        return 0.0 if before is None else float(np.abs(before - labels).sum())

    return value


@pytest.mark.parametrize("make", [counting, running_mean, noisy, last_labels])
@pytest.mark.parametrize("door", ["test", "audit"])
def test_functions_that_remember(make, door):
    rng = np.random.default_rng(1)
    p = rng.random(60)
    labels = (rng.random(60) < p).astype(int)
    ask = {
        "test": partial(caltest.test, p, labels),
        "audit": partial(caltest.audit, p, labels, lenses="canonical"),
    }[door]
    chosen = {"test": "statistic", "audit": "statistics"}[door]
    with pytest.raises(InputError, match="its two arguments alone"):
        ask(**{chosen: make()}, n_resamples=99, rng=0)


@pytest.mark.level
@pytest.mark.parametrize("place", [1, 2, 3, 10])
@pytest.mark.parametrize("door", ["test", "audit"])
def test_functions_that_know_the_labels_of_one_call(place, door):
    """Wherever the observed labels were evaluated, this one would give them its largest value."""
    rng = np.random.default_rng(2)
    p = rng.random(20)
    rejected = 0
    for number in range(60):
        labels = (rng.random(20) < p).astype(int)
        calls = []

        def knows(probs, labels, calls=calls):
            calls.append(labels.copy())
            return float(len(calls) >= place and np.array_equal(labels, calls[place - 1]))

        ask = {
            "test": partial(caltest.test, p, labels, knows),
            "audit": partial(caltest.audit, p, labels, lenses="canonical", statistics=knows),
        }[door]
        with suppress(InputError):
            rejected += ask(n_resamples=19, rng=number).pvalue <= 0.05
    assert rejected <= 9  # 3 are expected of 60 at 0.05; more than 9 with probability 0.001


@pytest.mark.level
def test_functions_that_remember_every_vector():
    """The later a vector of labels was seen first, the smaller its value, and always the same."""
    rng = np.random.default_rng(3)
    p = rng.random(30)
    rejected = 0
    for number in range(100):
        labels = (rng.random(30) < p).astype(int)
        seen = {}

        def remembers(probs, labels, seen=seen):
            return float(seen.setdefault(bytes(labels), -len(seen)))

        result = caltest.test(p, labels, remembers, n_resamples=39, rng=number)
        rejected += result.pvalue <= 0.05
    assert rejected <= 14  # 5 are expected; more than 14 with probability 2e-4


def test_functions_that_mutate():
    """Labels are theirs to change; predictions refuse."""
    rng = np.random.default_rng(1)
    p = rng.random(60)
    labels = (rng.random(60) < p).astype(int)
    kept = p.copy(), labels.copy()

    def sorts(probs, labels):
        labels.sort()
        return float(labels @ np.arange(60))

    assert 0 < caltest.test(p, labels, sorts, n_resamples=99, rng=0).pvalue <= 1

    def writes(probs, labels):
        probs[:] = 0.5
        return 0.0

    with pytest.raises(ValueError, match="read-only"):
        caltest.test(p, labels, writes, n_resamples=99, rng=0)

    assert np.array_equal(p, kept[0])
    assert np.array_equal(labels, kept[1])


@pytest.mark.parametrize("wrong", [np.nan, None, "x", [1, 2], np.ones(3), np.ma.masked])
def test_functions_that_return_no_number(wrong):
    """At once, or after some draws."""
    rng = np.random.default_rng(1)
    p = rng.random(60)
    labels = (rng.random(60) < p).astype(int)
    for first in (0, 5):
        calls = []

        def function(probs, labels, first=first, calls=calls):
            calls.append(0)
            return 1.0 if len(calls) <= first else wrong

        with pytest.raises(InputError, match="one number"):
            caltest.test(p, labels, function, n_resamples=99, rng=0)
