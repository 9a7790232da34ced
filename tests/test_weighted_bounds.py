"""Exact intervals of mean errors with weights, rates and clusters: closed forms and coverage."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import betaincinv
from scipy.stats import binom
from support import some_fast

import caltest
from caltest.auditing.sizes import Design, enough_clusters
from caltest.bounds.intervals import error_bounds


def errors(scores, labels, level, weights=None, **options):
    weights = np.ones(len(scores)) if weights is None else weights
    return np.array(error_bounds(scores, labels, level, weights, **options))


@pytest.mark.parametrize(("level", "ratio"), [(0.025, 1.386), (0.001, 1.203), (0.0001, 1.153)])
def test_equal_weights_beside_clopper_and_pearson(level, ratio):
    """√(2 log(1/d)) standard errors where the normal law has its quantile."""
    n, events = 200_000, 60_000
    low, high = errors(np.full(n, 0.3), np.arange(n) < events, level)
    least = betaincinv(events, n - events + 1, level)
    most = 1.0 - betaincinv(n - events, events + 1, level)
    assert (high - low) / (most - least) == pytest.approx(ratio, abs=0.003)


@pytest.mark.parametrize("events", [0, 1, 3, 15, 29, 30])
def test_equal_weights_by_hand(events):
    """The worst probabilities are equal: Kullback and Leibler's distance is log(1/d)/n."""
    n, level, labels = 30, 0.01, np.arange(30) < events
    low, high = errors(np.full(n, 0.4), labels, level)
    rate = events / n
    for end, last in ((0.4 - high, 0.0), (0.4 - low, 1.0)):
        if abs(rate - last) < 1e-12:
            assert end == pytest.approx(last, abs=1e-12)
            continue
        parts = [a * np.log(a / b) for a, b in ((rate, end), (1 - rate, 1 - end)) if a]
        assert n * sum(parts) == pytest.approx(-np.log(level), rel=1e-4)


def largest(sizes, most, rate):
    """The largest Σ log(1 − q + q e^{λ D}) with Σ D q = b, by a general method."""
    least, last = np.where(sizes < 0, 1.0, 0.0), np.where(sizes < 0, 0.0, 1.0)
    share = (most - sizes @ least) / (sizes @ (last - least))
    if not 0.0 <= share <= 1.0:
        return -1e6
    powers = np.exp(rate * sizes)
    found = minimize(
        lambda q: -np.log1p(q * (powers - 1.0)).sum(),
        least + share * (last - least),
        jac=lambda q: -(powers - 1.0) / (1.0 + q * (powers - 1.0)),
        bounds=[(0.0, 1.0)] * len(sizes),
        constraints={"type": "eq", "fun": lambda q: sizes @ q - most, "jac": lambda q: sizes},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-12},
    )
    return -found.fun


@pytest.mark.slow
@pytest.mark.parametrize("kept", [(1.0, 1.0), (0.5, 1.0), (0.1, 1.0), (1.0, 0.3)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_ends_are_where_the_bound_reaches_the_level(kept, seed):
    """At an end the best bound is the level, for the worst probabilities; beyond it it is smaller."""
    rng = np.random.default_rng(seed)
    n, level = 8, 0.05
    w, c, y = rng.lognormal(size=n), rng.random(n) / 2, np.r_[1, 0, rng.random(n - 2) < 0.4]
    low, high = errors(c, y, level, w, kept=np.tile(kept, (n, 1)))

    def refuted(error, mirrored):
        sizes = w * ((1 - c + error) / kept[1] + (c - error) / kept[0])
        most, seen = (w * (c - error)).sum() / kept[0], sizes @ y
        if mirrored:
            most, seen = sizes.sum() - most, sizes.sum() - seen
        unit = np.abs(sizes).max()

        def bound(x):
            rate = np.exp(x) / unit
            return largest(sizes, most, rate) - rate * seen

        return minimize_scalar(bound, bounds=(-4, 4), method="bounded", options={"xatol": 1e-4}).fun

    goal = np.log(level)
    for end, last, mirrored in ((high, c.max(), False), (low, c.min() - 1.0, True)):
        inside = end - 2e-3 * (last - end)
        assert refuted(inside, mirrored) > goal - 1e-3
        for share in (1e-3, 0.1, 0.5, 0.9):
            assert refuted(end + share * (last - end), mirrored) < goal + 1e-3


def drawn(seed, n=400, sigma=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 6.0, n)
    return p, (rng.random(n) < p).astype(int), rng.lognormal(0.0, sigma, n)


def test_a_coarser_grid_is_never_shorter(monkeypatch):
    p, y, w = drawn(0)
    ends = []
    for ratio, nodes in ((1.005, 2770), (1.05, 283), (1.3, 53), (2.0, 20)):
        monkeypatch.setattr("caltest.bounds.intervals._RATIO", ratio)
        monkeypatch.setattr("caltest.bounds.intervals._NODES", nodes)
        ends.append(errors(p, y, 0.001, w))
    lows, highs = np.array(ends).T
    assert (np.diff(lows) <= 1e-9).all()
    assert (np.diff(highs) >= -1e-9).all()
    assert np.ptp(lows[:2]) + np.ptp(highs[:2]) < 5e-4 * (highs[0] - lows[0])


def test_intervals_are_monotone():
    """More events move both ends down; a smaller level makes them longer; rates of 1 are none."""
    p, y, w = drawn(1, 200)
    before = errors(p, y, 0.001, w)
    for place in np.flatnonzero(y == 0)[:20]:
        y[place] = 1
        after = errors(p, y, 0.001, w)
        assert (after <= before + 1e-9).all()
        before = after
    low, high = np.array([errors(p, y, level, w) for level in (0.2, 0.01, 1e-4, 1e-8)]).T
    assert (np.diff(low) < 0).all()
    assert (np.diff(high) > 0).all()
    assert errors(p, y, 0.01, w, kept=np.ones((200, 2))) == pytest.approx(errors(p, y, 0.01, w))
    alone = errors(p, y, 0.01, w, codes=np.arange(200))
    assert alone == pytest.approx(errors(p, y, 0.01, w), abs=1e-6)
    pairs = errors(p, y, 0.01, w, codes=np.arange(200) // 2)
    assert pairs[0] < alone[0] < alone[1] < pairs[1]


@pytest.mark.parametrize("labels", ["none", "all", "mixed"])
@pytest.mark.parametrize("kept", [None, (0.001, 1.0), (1.0, 1e-6)])
@pytest.mark.parametrize("clustered", [False, True])
def test_weights_of_any_size(labels, kept, clustered):
    """Over 300 orders of magnitude: no warning, and ends in order."""
    rng = np.random.default_rng(0)
    n = 60
    p, w = rng.random(n), 10.0 ** np.linspace(-300, 5, n)
    y = {"none": np.zeros(n, int), "all": np.ones(n, int), "mixed": rng.integers(0, 2, n)}[labels]
    kept = None if kept is None else np.tile(kept, (n, 1))
    codes = np.arange(n) // 3 if clustered else None
    for weights in (w, w[::-1], np.where(np.arange(n) == 5, 1e300, 1e-300), np.ones(n)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            low, high = errors(p, y, 1e-5, weights, kept=kept, codes=codes)
        assert -1.0 <= low <= high <= 1.0
        assert np.isfinite([low, high]).all()


def test_a_constant_weight_of_a_group_is_no_weight():
    """Where the rows of a view count alike, its interval is Clopper and Pearson's."""
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y, group = (rng.random(600) < p).astype(int), np.repeat(["a", "b"], 300)
    w = np.where(group == "a", 1.0, 7.0)
    audit = caltest.audit(p, y, weights=w, groups={"g": group}, n_resamples=99, rng=0)
    plain = caltest.audit(p, y, groups={"g": group}, n_resamples=99, rng=0)
    for one, other in zip(audit.views[1:], plain.views[1:], strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high))
    assert audit.views[0].high - audit.views[0].low > plain.views[0].high - plain.views[0].low
    assert audit.exact_intervals


# ------------------------------------------------------------------ coverage


def hundred(rng):
    """1 000 rows, and 100 that count a hundred times as much."""
    return np.full(1100, 0.02), np.full(1100, 0.02), Design(np.r_[np.ones(1000), np.full(100, 100.0)])


def few_heavy(rng):
    """Errors of .009 at most, in 50 rows of weight 600 beside 30 000."""
    true = np.full(30_050, 0.02)
    stated = true + np.r_[np.zeros(30_000), np.full(50, 0.009)]
    return stated, true, Design(np.r_[np.ones(30_000), np.full(50, 600.0)])


def hidden(rng):
    """Twenty rows of weight 1 000 that hide an error."""
    stated = np.r_[rng.uniform(0.1, 0.3, 5000), np.full(20, 0.1)]
    return stated, np.r_[stated[:5000], np.full(20, 0.19)], Design(np.r_[np.ones(5000), [1e3] * 20])


def survey(rng):
    true = rng.beta(1.0, 9.0, 1000)
    return true, true, Design(rng.lognormal(0.0, 1.5, 1000))


def rare_clusters(rng):
    """4 000 single rows, and 200 clusters of 50 rows that share their outcome."""
    true = np.r_[rng.uniform(0.05, 0.95, 4000), np.full(10_000, 0.01)]
    clusters = np.r_[np.arange(4000), 4000 + np.arange(10_000) // 50]
    return true, true, Design(np.ones(len(true)), clusters)


def missed(design, seed, level):
    rng = np.random.default_rng(seed)
    stated, true, how = design(rng)
    codes = np.arange(len(true)) if how.clusters is None else how.clusters
    labels = (rng.random(codes.max() + 1)[codes] < true).astype(int)
    error = np.average(stated - true, weights=how.weights)
    *_, low, high = how.interval(stated, labels, level, how.carried(stated) >= enough_clusters(level))
    return not low <= error <= high


@pytest.mark.slow
@pytest.mark.parametrize("design", [hundred, few_heavy, hidden, survey, rare_clusters])
@pytest.mark.parametrize("count", [25, pytest.param(400, marks=pytest.mark.level)])
def test_intervals_miss_no_more_often_than_said(design, count):
    assert sum(missed(design, seed, 0.02) for seed in range(count)) <= binom.ppf(0.999, count, 0.04)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", some_fast([1.0, 0.7], 0.7, mark="level"))
@pytest.mark.parametrize("weighted", some_fast([False, True], True, mark="level"))
def test_intervals_of_rows_kept_by_their_label(wrong, weighted):
    """One in a hundred of those without the event; the error is that of what the rows stand for."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.3, 20.0, 20_000)
        labels = (rng.random(20_000) < wrong * p).astype(int)
        at = np.array([0.01, 1.0])
        rows = rng.random(20_000) < at[labels]
        c, true = p[rows], wrong * p[rows]
        w = rng.exponential(size=len(c)) if weighted else np.ones(len(c))
        share = w / (at[0] * (1 - true) + at[1] * true)
        low, high = errors(c, labels[rows], 0.025, w, kept=np.tile(at, (len(c), 1)))
        found += not low <= share @ (c - true) / share.sum() <= high
    assert found <= binom.ppf(0.999, 40, 0.05)


def test_the_other_class_kept_by_its_label_is_the_mirror():
    """Views of class 0, and of the top class, are about their own events."""
    rng = np.random.default_rng(5)
    p = rng.beta(2.0, 2.0, 8000)
    y = (rng.random(8000) < p).astype(int)
    kept = (y == 1) | (rng.random(8000) < 0.2)
    options = {"sampling_rates": {0: 0.2}, "n_resamples": 99, "rng": 0}
    lenses = ("class:0", "class:1", "top_label")
    zero, one, top = (
        caltest.audit(p[kept], y[kept], lenses=lens, **options).views[0] for lens in lenses
    )
    assert (zero.low, zero.high) == pytest.approx((-one.high, -one.low))
    assert zero.predicted == pytest.approx(1.0 - one.predicted)
    likely = p >= 0.2 * (1.0 - p)  # among the rows kept
    assert top.predicted == pytest.approx(np.where(likely, p, 1 - p).mean(), abs=0.02)
    assert top.low < 0.0 < top.high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "limit", "wrong"), [("heavy", 0.01, "material"), ("few", 0.05, "within")]
)
def test_verdicts_with_weights_are_true(weights, limit, wrong):
    """No limit is proved to be exceeded, or kept, by a few rows that carry the weight."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        if weights == "heavy":
            stated, true, how = few_heavy(rng)
        else:
            stated, true, how = hidden(rng)
        labels = (rng.random(len(true)) < true).astype(int)
        audit = caltest.audit(
            stated, labels, weights=how.weights, materiality=limit, n_resamples=99, rng=seed
        )
        assert audit.verdict != wrong


@pytest.mark.parametrize("shared", [0.4, 1.0])
def test_either_end_of_an_interval_of_t_misses_as_rarely_as_said(shared):
    """400 data sets of 50 clusters of unequal sizes, of which about 24 have the event in effect."""
    rng = np.random.default_rng(7)
    codes = np.repeat(np.arange(50), 6 + np.arange(50) % 5)
    design, missed = Design(np.ones(len(codes)), codes), np.zeros(2)
    for _ in range(400):
        true = rng.uniform(0.2, 0.8, len(codes))
        cause = np.where(rng.random(len(codes)) < shared, rng.random(50)[codes], rng.random(len(codes)))
        assert design.carried(true) >= enough_clusters(0.05)
        *_, low, high = design.interval(true, (cause < true).astype(int), 0.05, True)
        missed += low > 0.0, high < 0.0
    assert missed.max() <= binom.ppf(0.999, 400, 0.05)


def test_a_view_that_many_clusters_carry_has_an_interval_of_t():
    """At least 20 of them with the event, and without it, by the predictions; else it is exact."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(300), 4)
    p = rng.uniform(0.2, 0.8, 300)[cluster]
    y = (rng.random(300)[cluster] < p).astype(int)
    options = {"clusters": cluster, "n_resamples": 99, "rng": 0}
    one = caltest.audit(p, y, **options)
    assert [view.exact for view in one.views] == [False] == [one.exact_intervals]
    assert "Intervals are approximate" in str(one)
    many = caltest.audit(p, y, groups={"g": cluster % 12}, **options)
    assert [view.exact for view in (*many.views, *many.rests)] == [False] + 12 * [True] + 12 * [False]
    assert "Intervals are exact" in str(caltest.audit(p, y, guaranteed=True, **options))
    rare = np.where(cluster < 280, 1e-4, 0.5)
    few = caltest.audit(rare, (rng.random(300)[cluster] < rare).astype(int), **options)
    assert few.exact_intervals
    assert any("too few clusters count" in each for each in few.warnings)
    for audit in (one, many, few):
        assert audit.to_dict()["views"][0]["exact"] is audit.views[0].exact


def test_rows_of_opposite_errors_do_not_shorten_an_interval():
    """The variance is never taken to be less than that of independent rows."""
    cluster, labels = np.repeat(np.arange(100), 2), np.tile([0, 1], 100)  # one event in every cluster
    p = np.full(200, 0.5)
    design = Design(np.ones(200), cluster)
    assert design.carried(p) >= enough_clusters(0.02)
    *_, low, high = design.interval(p, labels, 0.02, True)
    assert high - low > 2 * 2.0 * np.sqrt(0.25 / 200)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 300), marks=pytest.mark.slow)])
def test_few_rows_of_any_weights_and_rates(seeds):
    """Neither an exception nor a warning; ends in order, about the estimate, within what can be."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        p, y = rng.choice([rng.random(n), rng.choice([0, 0.01, 0.5, 1], n)]), rng.integers(0, 2, n)
        w = 10.0 ** -rng.uniform(0, rng.choice([0, 2, 100]), n)
        kept = np.repeat(10.0 ** -rng.uniform(0, [[rng.choice([3, 12]), 1e-9]], (1, 2)), n, 0)
        codes = rng.choice([np.arange(n), np.arange(n) // 2])
        low, high = errors(p, y, 0.01, w, kept=kept, codes=codes)
        each = w / kept[np.arange(n), y]
        assert p.min() - 1 - 1e-12 <= low <= each @ (p - y) / each.sum() + 1e-12
        assert each @ (p - y) / each.sum() - 1e-12 <= high <= p.max()


def test_an_event_that_is_rarely_kept_in_three_rows():
    audit = caltest.audit(
        [0.5, 0.01, 0.01], [0, 1, 1], sampling_rates={1: 0.001}, n_resamples=99, rng=1
    )
    assert all(-1.0 <= view.low <= view.error <= view.high <= 1.0 for view in audit.views)


@pytest.mark.parametrize("share", [0.9e-10, 3e-12])
def test_rates_by_which_rounding_would_decide(share):
    """An interval is all that can be, where rates differ by more than ten orders of magnitude."""
    kept = np.tile([0.5, 0.5 * share], (40, 1))
    p, y = np.linspace(0.1, 0.4, 40), np.arange(40) % 2
    assert tuple(errors(p, y, 0.05, kept=kept)) == pytest.approx((0.1 - 1.0, 0.4), abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-300, 1e-160, 1e-60, 1e-30, 1e-16, 1e-9])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("labels", [[0, 0], [1, 1], [0, 1], [0, 1] * 40])
def test_rates_that_differ_by_any_number_of_orders(rate, which, labels):
    for probs in ([0.875, 0.125], [0.125, 0.125], [0.25, 0.75], [0.75, 0.75]):
        scores = (probs * len(labels))[: len(labels)]
        audit = caltest.audit(scores, labels, sampling_rates={which: rate}, alpha=0.1, rng=0)
        assert all(-1.0 <= view.low <= view.high <= 1.0 for view in audit.views)
