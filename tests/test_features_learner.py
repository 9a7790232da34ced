"""Learners of residuals: any model as a statistic, and how far predictions are off at least."""

import time

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import binomial_limits

import caltest
from caltest.exceptions import LongWorkWarning
from caltest.predictive import Normal
from caltest.statistics import Learned


class Line:
    """Least squares, with nothing but fit and predict."""

    def fit(self, X, y):
        self.slope = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0]

    def predict(self, X):
        return np.column_stack([np.ones(len(X)), X]) @ self.slope


def data(seed, n=400, off=0.0, d=3):
    """Return predictions, outcomes and features; predictions ignore the sign of the second column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    p = 1 / (1 + np.exp(0.5 - x[:, 0]))
    q = np.clip(p + off * np.sign(x[:, 1]), 0, 1)
    return p, (rng.random(n) < q).astype(int), x


# ------------------------------------------------------------------ as a statistic


def level(n_datasets, of, **more):
    """Return how often Learned rejects data sets without an error, of 39 draws."""
    found = [
        caltest.test(
            *of(seed)[:2], Learned(Line()), features=of(seed)[2], n_resamples=39, rng=seed, **more
        )
        for seed in range(n_datasets)
    ]
    return np.mean([each.pvalue <= 0.05 for each in found])


def test_level():
    assert level(20, lambda seed: data(seed, 100)) <= binomial_limits(20, 0.05)[1]


@pytest.mark.level
def test_level_of_many_data_sets():
    low, high = binomial_limits(300, 0.05)
    assert low <= level(300, lambda seed: data(seed, 100)) <= high


@pytest.mark.level
def test_level_in_clusters():
    """Clusters of four rows that share their outcome and all features."""

    def copied(seed):
        return tuple(np.repeat(each, 4, axis=0) for each in data(seed, 150))

    where = np.repeat(np.arange(150), 4)
    assert level(200, copied, clusters=where) <= binomial_limits(200, 0.05)[1]
    assert level(40, copied) > 0.3  # as if rows were independent


def test_it_finds_what_features_explain_and_takes_99_draws():
    p, y, x = data(0, off=0.15)
    found = caltest.test(p, y, Learned(LinearRegression()), features=x, rng=0)
    assert (found.pvalue, found.n_resamples, found.guarantee) == (0.01, 99, "exact")
    assert found.parameters == {"model": "LinearRegression", "folds": 2}
    other = caltest.test(p, y, Learned(Line()), features=x)
    assert found.statistic == pytest.approx(other.statistic)
    assert other.statistic > 0
    more = caltest.test(p, y, Learned(Line(), folds=5), features=x, n_resamples=199, rng=0)
    assert (more.pvalue, more.n_resamples) == (0.005, 199)
    assert caltest.test(p, y, "ecd", rng=0).n_resamples == 999


def test_other_predictions():
    """Lenses of more classes, numbers, weights and clusters."""
    p, y, x = data(1, off=0.2)
    rng, learned = np.random.default_rng(0), Learned(Line())
    three = np.column_stack([(1 - p) / 2, (1 - p) / 2, p])
    classes = np.where(y == 1, 2, rng.integers(0, 2, len(y)))
    assert caltest.test(three, classes, learned, lens="class:2", features=x, rng=0).pvalue == 0.01
    numbers = Normal(x[:, 0], sd=1.0), x[:, 0] + 0.4 * x[:, 1] + rng.normal(size=len(y))
    assert caltest.test(*numbers, learned, features=x, rng=0).pvalue == 0.01
    assert caltest.test(p, y, learned, features=x, weights=rng.random(len(y)), rng=0).pvalue == 0.01
    where = np.arange(len(y)) // 4
    clustered = caltest.test(p, y, learned, features=x, clusters=where, rng=0)
    assert (clustered.pvalue, clustered.null) == (0.01, "cluster_signs")
    one = caltest.test(p, y, learned, features=x, clusters=where, null="one_per_cluster", rng=0)
    assert one.guarantee == "exact"


def test_random_states_are_fixed_and_workers_do_not_matter():
    p, y, x = data(2, 120)
    for model in (
        RandomForestRegressor(5),
        make_pipeline(StandardScaler(), SGDRegressor()),
        SGDRegressor(random_state=np.random.RandomState(3)),
    ):
        found = [
            caltest.test(p, y, Learned(model), features=x, n_resamples=9, rng=0, n_jobs=jobs)
            for jobs in (1, 2)
        ]
        assert found[0].statistic == found[1].statistic
        assert (found[0].null_distribution == found[1].null_distribution).all()
        assert not hasattr(model, "n_features_in_")  # copies were fitted


def test_what_a_model_learnt_before_is_forgotten():
    p, y, x = data(3)
    warm = SGDRegressor(warm_start=True, random_state=0)
    fresh = caltest.test(p, y, Learned(warm), features=x, n_resamples=9, rng=0)
    warm.fit(np.ones((3, 4)), [1.0, 2.0, 30.0])
    again = caltest.test(p, y, Learned(warm), features=x, n_resamples=9, rng=0)
    assert fresh.statistic == again.statistic


RANDOM = np.random.default_rng(0)


class Chance(Line):
    def predict(self, X):
        return RANDOM.random(len(X))


class Counter(Line):
    calls = 0

    def fit(self, X, y):
        Counter.calls += 1
        super().fit(X, y + Counter.calls)


class Two(Line):
    def predict(self, X):
        return [1.0, 2.0]


@pytest.mark.parametrize("model", [Chance(), Counter()])
def test_models_that_remember_or_draw_are_refused(model):
    p, y, x = data(0, 60)
    with pytest.raises(caltest.InputError, match="predicts other numbers when fitted to the same data"):
        caltest.test(p, y, Learned(model), features=x, n_resamples=19, rng=0)


def test_refusals():
    p, y, x = data(0, 60)
    for bad in (LinearRegression, 3, object()):
        with pytest.raises(caltest.InputError, match=r"an object with fit\(X, y\) and predict\(X\)\.$"):
            Learned(bad)
    with pytest.raises(caltest.InputError, match=r"LogisticRegression.*which predicts numbers, not cl"):
        Learned(LogisticRegression())
    with pytest.raises(caltest.InputError, match="folds is 1"):
        Learned(Line(), folds=1)
    with pytest.raises(caltest.InputError, match=r"predicted \[1.0, 2.0\] for 30 rows; give a model"):
        caltest.test(p, y, Learned(Two()), features=x, rng=0)
    with pytest.raises(caltest.InputError, match="there are none; give features="):
        caltest.test(p, y, Learned(Line()), rng=0)
    with pytest.raises(caltest.InputError, match="possible here: monte_carlo"):
        caltest.test(p, y, Learned(Line()), features=x, null="moments")


@pytest.mark.slow
def test_it_says_how_long_it_will_take():
    class Slow(Line):
        def fit(self, X, y):
            time.sleep(0.35)
            super().fit(X, y)

    p, y, x = data(0, 60)
    with pytest.raises(LongWorkWarning, match=r"'learned' of 60 rows.* takes about .*; fewer draws"):
        caltest.test(p, y, Learned(Slow()), features=x, rng=0)


# ------------------------------------------------------------------ how large at least


def bound(p, y, x, **more):
    return caltest.audit(p, y, features=x, n_resamples=39, rng=0, **more).at_least_by_features


@pytest.mark.slow
def test_an_error_is_proved_from_half_of_the_rows():
    p, y, x = data(0, 8000, off=0.08, d=2)
    truth = 0.08  # but where it was cut at 0 or 1
    assert 0.04 < bound(p, y, x) < truth
    assert 0.04 < bound(p, y, x, learner=Line()) < truth
    assert 0.02 < bound(p, y, x, weights=np.random.default_rng(0).random(8000)) < truth
    assert bound(p, y, None) is None
    assert bound(*data(1, 2000)) < 0.02


@pytest.mark.slow
def test_halves_are_of_clusters():
    """Rows that share their outcome prove no more than one of them."""
    p, y, x = data(0, 800, off=0.2, d=2)
    once, where = bound(p, y, x), np.repeat(np.arange(800), 3)
    p, y, x = (np.repeat(each, 3, axis=0) for each in (p, y, x))
    x += np.random.default_rng(0).normal(0, 0.01, x.shape)
    assert 0.0 < bound(p, y, x, clusters=where) < once < bound(p, y, x)


@pytest.mark.slow
def test_rows_sampled_by_their_label():
    """The bound is about the population."""
    p, y, x = data(0, 40_000, off=0.15, d=2)
    kept = (y == 1) | (np.random.default_rng(1).random(len(y)) < 0.3)
    assert 0.05 < bound(p[kept], y[kept], x[kept], sampling_rates={0: 0.3}) < 0.15


def test_a_learner_without_features_is_refused():
    p, y, _ = data(0, 60)
    with pytest.raises(caltest.InputError, match="learns from features, and there are none"):
        caltest.audit(p, y, learner=Line())
    with pytest.raises(caltest.InputError, match="learner is 3; give a regressor"):
        caltest.audit(p, y, learner=3)


def test_the_call_names_the_learner():
    p, y, x = data(0, 200)
    found = caltest.audit(p, y, features=x, learner=Line(), n_resamples=39, rng=0)
    assert "learner=learner" in found.call


@pytest.mark.level
@pytest.mark.parametrize("copies", [1, 3])
def test_calibrated_models_are_rarely_off_by_anything(copies):
    above, where = 0, np.repeat(np.arange(400), copies)
    for seed in range(150):
        p, y, x = (np.repeat(each, copies, axis=0) for each in data(seed, 400, d=2))
        x += np.random.default_rng(seed).normal(0, 0.01, x.shape)
        more = {"clusters": where} if copies > 1 else {}
        above += bound(p, y, x, statistics="feature_scan", learner=Line(), **more) > 0
    assert above / 150 <= binomial_limits(150, 0.05)[1]
