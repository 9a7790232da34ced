"""Premises that data contradict: refused if that is certain, else told first; never of right data."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq, isotonic_regression
from scipy.special import expit, softmax

import caltest
from caltest import InputError
from caltest.predictive import Distribution, Ensemble, Members, Normal, Quantiles, Survival

FEW = {"n_resamples": 99, "rng": 1}


def drawn(probs, rng):
    return (probs.cumsum(axis=1) < rng.random((len(probs), 1))).sum(axis=1)


def binary(seed, n=1000, a=2.0, b=2.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(a, b, n)
    return rng, p, (rng.random(n) < p).astype(int)


def names(result):
    return [each.name for each in result.premises]


# ------------------------------------------------------------------ members that rows share


def centred(rng, n=120):
    return rng.normal(size=(n, 1)), rng.normal(size=n)


def paths(rng):
    centre = rng.normal(size=(120, 1, 3))
    return centre + rng.normal(size=(20, 3)), centre[:, 0] + rng.normal(size=(120, 3))


def climatology(rng):
    years = rng.normal(size=21)
    return np.array([np.delete(years, k % 21) for k in range(126)]), years[np.arange(126) % 21]


def around(rng, made):
    """Of their centres, members; and outcomes that differ by a standard normal number."""
    centre, noise = centred(rng)
    return made(centre), centre[:, 0] + noise


SHARED = {
    "residuals around every forecast": lambda rng: around(rng, lambda c: c + rng.normal(size=200)),
    "one climatology": lambda rng: (np.tile(rng.normal(size=40), (120, 1)), rng.normal(size=120)),
    "scaled residuals": lambda rng: around(
        rng, lambda c: c + rng.gamma(3.0, size=(120, 1)) * rng.normal(size=25)
    ),
    "common quantiles": lambda rng: around(
        rng, lambda c: stats.norm.ppf(rng.random(30), c, rng.gamma(3.0, size=(120, 1)))
    ),
    "residuals turned round": lambda rng: around(
        rng, lambda c: c + rng.choice([-1.0, 1.0], (120, 1)) * rng.gamma(1.0, size=9)
    ),
    "three decimals": lambda rng: around(rng, lambda c: np.round(c + rng.normal(size=50), 3)),
    "factors": lambda rng: [np.exp(x) for x in around(rng, lambda c: c + rng.normal(size=30))],
    "paths": paths,
    "single precision": lambda rng: around(rng, lambda c: (c + rng.normal(size=30)).astype(np.float32)),
    "three members": lambda rng: around(rng, lambda c: c + rng.normal(size=3)),
    "one climatology, without the year itself": climatology,
    "a third of the rows": lambda rng: (
        np.where(np.arange(120)[:, None] % 3, rng.normal(size=(120, 12)), rng.normal(size=12)),
        rng.normal(size=120),
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_members_that_rows_share_are_refused(name):
    """Rows are not independent given such members: audits of right ones were all "material"."""
    members, outcomes = SHARED[name](np.random.default_rng(5))
    for call in (caltest.test, caltest.audit):
        with pytest.raises(InputError, match=r"% of the rows are one set of values.*Distribution"):
            call(Members(members), outcomes, **FEW)


def dry(rng, n=300):
    """Most members of most rows are 0, as those of rain."""
    wet = rng.random((n, 21)) < rng.beta(0.5, 2.0, (n, 1))
    values = np.where(wet, rng.gamma(2.0, size=(n, 21)), 0.0)
    return values[:, 1:], values[:, 0]


RIGHT_MEMBERS = {
    "two": lambda rng: np.split(rng.normal(size=(300, 3)), [2], axis=1),
    "whole numbers": lambda rng: np.split(rng.poisson(3.0, (300, 21)), [20], axis=1),
    "half steps": lambda rng: np.split(rng.poisson(2.0, (300, 6)) / 2.0, [5], axis=1),
    "dry days": dry,
    "one decimal": lambda rng: np.split(np.round(rng.normal(size=(300, 8)), 1), [7], axis=1),
    "own draws": lambda rng: np.split(rng.normal(size=(300, 10)), [9], axis=1),
}


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 20), marks=pytest.mark.level)])
@pytest.mark.parametrize("name", RIGHT_MEMBERS)
def test_own_members_are_not_refused(name, seeds):
    for seed in seeds:
        members, outcomes = RIGHT_MEMBERS[name](np.random.default_rng(seed))
        assert caltest.test(Members(members), np.ravel(outcomes), **FEW).premises == ()


def test_members_shared_in_part_are_asked_about():
    """Ten stations, each with one set of residuals: a tenth of the rows share each, which is a note."""
    rng = np.random.default_rng(1)
    centre, station = rng.normal(size=(400, 1)), np.arange(400) % 10
    law = Members(centre + rng.normal(size=(10, 30))[station])
    found = caltest.test(law, rng.normal(centre[:, 0]), **FEW)
    assert names(found) == ["independent rows"]
    assert "one set of residuals" in str(found).split("\n\n")[1]  # in the first lines


@pytest.mark.level
def test_what_shared_members_are_from_is_tested_instead():
    """By the distribution itself rows are independent, and the level holds: 12 of 200 at most at 5%."""
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        centre = rng.normal(size=150)
        levels = np.linspace(0.05, 0.95, 19)
        law = Quantiles(levels, centre[:, None] + stats.norm.ppf(levels))
        rejected += caltest.test(law, rng.normal(centre), n_resamples=99, rng=seed).pvalue <= 0.05
    assert rejected <= stats.binom.ppf(0.999, 200, 0.05)


# ------------------------------------------------------------------ functions of the outcome


def by_class(rng, y, *values):
    return np.take(values, y)


WEIGHTS_OF_CLASSES = {
    "balanced": lambda rng, y: np.where(y == 1, 8.0, 1.0),
    "negatives kept 1 in 20": lambda rng, y: np.where(y == 1, 1.0, 20.0),
    "two values for one class": lambda rng, y: np.where(y == 1, rng.choice([5.0, 7.0], len(y)), 1.0),
    "with noise": lambda rng, y: np.where(y == 1, 8.0, 1.0) * np.exp(0.1 * rng.normal(size=len(y))),
    "of ranges": lambda rng, y: y + rng.uniform(0.1, 0.9, len(y)),
    "0 for some": lambda rng, y: np.where(y == 1, 8.0, 1.0) * (rng.random(len(y)) < 0.8),
    "four classes, one apart": lambda rng, y: np.where(y == 1, 5.0, 1.0),
    "whether the top class was right": lambda rng, y: np.where(y == 1, 2.0, 1.0),
}


@pytest.mark.parametrize("name", WEIGHTS_OF_CLASSES)
def test_weights_that_are_functions_of_the_class_are_refused(name):
    """Balanced class weights made a calibrated model 36 points too low, 10 times of 10."""
    rng, p, y = binary(3, 400, 1.0, 4.0)
    if "four" in name:
        p = rng.dirichlet(np.ones(4), 400)
        y = drawn(p, rng)
    right = (p > 0.5) == (y == 1) if p.ndim == 1 else p.argmax(axis=1) == y
    y_of = right.astype(int) if "right" in name else y
    with pytest.raises(InputError, match=r"weights are a function of the outcome.*sampling_rates="):
        caltest.audit(p, y, weights=WEIGHTS_OF_CLASSES[name](rng, y_of), **FEW)


WEIGHTS_OF_NUMBERS = {
    "large outcomes": lambda y: np.where(y > 1.0, 20.0, 1.0),
    "far ones": lambda y: np.where(np.abs(y) > 1.0, 3.0, 1.0),
    "in four steps": lambda y: np.digitize(y, [-1.0, 0.0, 1.0]) + 1.0,
}


@pytest.mark.parametrize("name", WEIGHTS_OF_NUMBERS)
def test_weights_that_are_functions_of_a_number_are_refused(name):
    rng = np.random.default_rng(2)
    mean = rng.normal(size=300)
    y = rng.normal(mean)
    with pytest.raises(InputError, match="weights are a function of the outcome"):
        caltest.test(Normal(mean, np.ones(300)), y, weights=WEIGHTS_OF_NUMBERS[name](y), **FEW)


def test_sampling_rates_find_what_such_weights_hide():
    """Negatives kept 1 in 20, and probabilities a quarter too high: weights gave p = .09."""
    rng, p, y = binary(0, 20_000, 1.0, 30.0)
    kept = (y == 1) | (rng.random(len(y)) < 0.05)
    high = np.minimum(1.25 * p, 1.0)[kept]
    found = caltest.test(high, y[kept], "citl", sampling_rates={0: 0.05}, n_resamples=999, rng=1)
    assert found.pvalue <= 0.01


RIGHT_WEIGHTS = {
    "few rows, by chance": lambda rng, p, y: (p[:8], y[:8], 1.0 + y[:8]),
    "of the prediction": lambda rng, p, y: (p, y, np.where(p > 0.5, 3.0, 1.0)),
    "of the prediction, nearly sure": lambda rng, p, y: (
        q := np.where(p > 0.5, 1.0 - 1e-5, 1e-5),
        (q > 0.5).astype(int),
        np.where(q > 0.5, 3.0, 1.0),
    ),
    "of the prediction, too timid a model": lambda rng, p, y: (
        q := np.where(p > 0.5, 0.8, 0.2) + 0.01 * rng.random(len(p)),
        (q > 0.5).astype(int),
        np.where(q > 0.5, 3.0, 1.0),
    ),
    "all different": lambda rng, p, y: (p, y, rng.gamma(2.0, size=len(p))),
    "few values": lambda rng, p, y: (p, y, rng.choice([1.0, 2.0], len(p))),
}


@pytest.mark.parametrize("name", RIGHT_WEIGHTS)
def test_other_weights_are_not_refused(name):
    for seed in range(20):
        p, y, weights = RIGHT_WEIGHTS[name](*binary(seed, 300))
        caltest.test(p, y, "citl", weights=weights, **FEW)


GROUPS = {
    "the outcome": lambda y, right: {"died": y},
    "the outcome, cut finer": lambda y, right: {"died": 10 * y + np.arange(len(y)) % 3},
    "whether the top class was right": lambda y, right: {"error": ~right},
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_that_are_functions_of_the_outcome_are_left_out(name):
    _, p, y = binary(1, 800)
    right = (p > 0.5) == (y == 1)
    sex = np.arange(800) % 2
    audit = caltest.audit(p, y, groups=GROUPS[name](y, right) | {"sex": sex}, materiality=0.2, **FEW)
    assert names(audit) == ["groups known before the outcome"]
    assert audit.groups == ("sex",)
    assert audit.verdict == "undecided"
    assert all(view.inside for view in audit.views)
    assert "In doubt: Column" in str(audit)
    assert "function of the outcome" in audit.headline
    assert caltest.audit(p, y, groups={"sex": sex}, materiality=0.2, **FEW).verdict == "within"


def test_comparisons_leave_such_groups_out():
    _, p, y = binary(2, 600)
    found = caltest.compare({"a": p, "b": p**1.2}, y, groups={"died": y, "sex": np.arange(600) % 2})
    assert any("'died' of groups is a function of the outcome" in note for note in found.warnings)
    assert not any("died" in str(each.group) for each in found.errors)


def test_groups_of_numbers_and_times_too():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=400)
    y = rng.normal(mean)
    audit = caltest.audit(Normal(mean, np.ones(400)), y, groups={"high": y > 0.5, "x": mean > 0}, **FEW)
    assert names(audit) == ["groups known before the outcome"]
    curves = np.exp(-rng.gamma(2.0, size=(400, 1)) * np.array([0.5, 1.0]))
    time, ended = rng.uniform(0.1, 1.0, 400), rng.random(400) < 0.5
    audit = caltest.audit(Survival(curves, [0.5, 1.0]), (time, ended), groups={"died": ended}, **FEW)
    assert names(audit) == ["groups known before the outcome"]


# ------------------------------------------------------------------ rows used to fit


def scores(rng, n=1500):
    s = rng.normal(size=n)
    return s, (rng.random(n) < expit(1.7 * s - 0.5)).astype(int)


def isotonic(s, y):
    order = np.argsort(s)
    fitted = np.empty(len(s))
    fitted[order] = isotonic_regression(y[order]).x
    return fitted


def platt(s, y, steps=30):
    line = np.zeros(2)
    features = np.column_stack([np.ones_like(s), s])
    for _ in range(steps):
        p = expit(features @ line)
        line += np.linalg.solve((features * (p * (1 - p))[:, None]).T @ features, features.T @ (y - p))
    return expit(features @ line)


def of_bins(s, y, count=15):
    bins = np.minimum((stats.rankdata(s) / len(s) * count).astype(int), count - 1)
    return np.array([y[bins == k].mean() for k in range(count)])[bins]


FITTED = {
    "isotonic": isotonic,
    "isotonic, four decimals": lambda s, y: np.round(isotonic(s, y), 4),
    "isotonic, single precision": lambda s, y: isotonic(s, y).astype(np.float32),
    "bins": of_bins,
    "three bins": lambda s, y: of_bins(s, y, 3),
    "Platt": platt,
    "temperature": lambda s, y: expit(
        s * brentq(lambda t: ((expit(t * s) - y) * s).sum(), 0.01, 5.0, xtol=1e-14)
    ),
    "intercept": lambda s, y: expit(
        s + brentq(lambda a: expit(a + s).sum() - y.sum(), -9, 9, xtol=1e-14)
    ),
}


@pytest.mark.parametrize("name", FITTED)
def test_rows_used_to_fit_are_not_within(name):
    rng = np.random.default_rng(4)
    s, y = scores(rng)
    p = FITTED[name](s, y)
    audit = caltest.audit(p, y, materiality=0.15, **FEW)
    assert names(audit) == ["unseen rows"]
    assert audit.verdict == "undecided"
    assert all(each.inside for each in (*audit.views, *audit.rests))
    assert "used to fit" in str(audit).split("\n\n")[0]
    if name != "temperature":  # which takes longer to see than a test takes
        assert names(caltest.test(p, y, "citl", **FEW)) == ["unseen rows"]
    fresh = (rng.random(len(p)) < p).astype(int)
    assert caltest.audit(p, fresh, materiality=0.15, **FEW).verdict == "within"


def test_rows_used_to_fit_of_more_classes_and_of_numbers():
    rng = np.random.default_rng(6)
    probs = softmax(rng.normal(size=(1500, 4)), axis=1)
    y = drawn(probs, rng)
    cells = (4 * np.round(probs[:, :2], 1)).astype(int) @ [5, 1]  # a tree's leaves
    leaves = np.array([np.bincount(y[cells == k], minlength=4) for k in range(cells.max() + 1)])
    leaves = leaves / np.maximum(leaves.sum(axis=1, keepdims=True), 1)
    assert "unseen rows" in names(caltest.test(leaves[cells], y, **FEW))
    features = np.column_stack([np.ones(500), rng.normal(size=(500, 3))])
    outcomes = features @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=500)
    mean = features @ np.linalg.lstsq(features, outcomes)[0]
    for sd in ((outcomes - mean).std(), 1.1):
        assert names(caltest.test(Normal(mean, np.full(500, sd)), outcomes, **FEW)) == ["unseen rows"]
    count = rng.poisson(np.exp(features[:, :2] @ [0.5, 0.3]))
    line = np.zeros(2)
    for _ in range(30):
        rate = np.exp(features[:, :2] @ line)
        weighted = features[:, :2] * rate[:, None]
        line += np.linalg.solve(weighted.T @ features[:, :2], features[:, :2].T @ (count - rate))
    poisson = Distribution(stats.poisson(np.exp(features[:, :2] @ line)))
    assert names(caltest.test(poisson, count, **FEW)) == ["unseen rows"]
    levels = np.linspace(0.1, 0.9, 9)
    own = np.quantile(outcomes, levels, method="higher") + 1e-9
    assert names(caltest.test(Quantiles(levels, np.tile(own, (500, 1))), outcomes, **FEW)) == [
        "unseen rows"
    ]
    ranks = stats.uniform(0.0, np.full(500, 500.0))
    assert names(caltest.test(Distribution(ranks), np.arange(500) + 0.5, **FEW)) == ["unseen rows"]


# ------------------------------------------------------------------ right data


def levels(rng, n):
    p = rng.choice(np.linspace(0.05, 0.95, 11), n)
    return p, (rng.random(n) < p).astype(int)


def classes(rng, n, m=5):
    probs = rng.dirichlet(np.ones(m), n)
    return probs, drawn(probs, rng)


def votes(rng, n):
    probs = rng.multinomial(20, rng.dirichlet(np.ones(3), n)) / 20
    return probs, drawn(probs, rng)


def normal(rng, n):
    mean = rng.normal(size=n)
    return Normal(mean, np.ones(n)), np.round(rng.normal(mean), 2)


def counts(rng, n):
    rate = rng.gamma(2.0, size=n)
    return Distribution(stats.poisson(rate)), rng.poisson(rate)


def ensemble(rng, n):
    pool = rng.normal(size=(n, 1)) + rng.normal(size=(n, 12))
    return Members(pool[:, 1:]), pool[:, 0]


def smoothed(rng, n):
    law = Ensemble(rng.normal(size=(n, 1)) + rng.normal(size=15))
    return law, law.draw(rng, 1)[0]


RIGHT = {
    "continuous": lambda rng, n: (p := rng.beta(1.0, 3.0, n), (rng.random(n) < p).astype(int)),
    "levels": levels,
    "two decimals": lambda rng, n: (p := np.round(rng.random(n), 2), (rng.random(n) < p).astype(int)),
    "one rate": lambda rng, n: (np.full(n, 0.3), (rng.random(n) < 0.3).astype(int)),
    "five classes": classes, "votes": votes, "normal": normal, "counts": counts, "members": ensemble,
    "a shared kernel density": smoothed,
}  # fmt: skip


@pytest.mark.level
@pytest.mark.parametrize("name", RIGHT)
def test_right_data_are_never_doubted(name):
    """Ten kinds, 20 sets each of 30 to 500 rows: none is refused, none is in doubt."""
    for seed in range(20):
        rng = np.random.default_rng([17, seed])
        law, outcomes = RIGHT[name](rng, 30 + 25 * (seed % 20))
        group = {"g": rng.integers(0, 3, len(outcomes))}
        assert (
            caltest.audit(law, outcomes, groups=group, n_resamples=19, alpha=0.2, rng=0).premises == ()
        )


@pytest.mark.level
def test_rare_events_are_no_copies():
    """All labels are alike by chance: of events of .1% to 1% in most sets, which is no doubt."""
    for p in (np.full(100, 0.01), np.full(1000, 0.001), np.repeat([0.005, 0.995], 150)):
        for seed in range(60):
            y = (np.random.default_rng(seed).random(len(p)) < p).astype(int)
            assert not caltest.test(p, y, "citl", **FEW).premises


@pytest.mark.level
def test_few_blocks_match_by_chance():
    """Of 11 levels with ten rows each, five blocks have exactly their rate in most sets: no doubt."""
    p = np.repeat(np.linspace(0.0, 1.0, 11), 10)
    for seed in range(200):
        y = (np.random.default_rng(seed).random(110) < p).astype(int)
        assert not any(
            each.name == "unseen rows" for each in caltest.test(p, y, "citl", **FEW).premises
        )
