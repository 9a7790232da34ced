"""`power`: closed forms, levels, seeds, models, and wrong input."""

import json
from functools import partial

import joblib
import numpy as np
import pytest
from planned import P, citl, constant, exact_power
from support import binomial_limits, dirichlet, sentence

import caltest
from caltest import InputError
from caltest.planning import Pilot, pilot
from caltest.plots import PowerDisplay
from caltest.simulation import tempered
from validation.generative import m2


def test_simulated_data_are_read_only_and_may_share_a_seed_with_the_null():
    """The labels are none of those that the test then draws from the same seed."""
    right, again = (tempered(temperature=1.0, rng=11) for _ in range(2))
    assert right.ece == pytest.approx(0.0, abs=1e-12)
    for name in ("probs", "labels", "truth"):
        assert np.array_equal(getattr(right, name), getattr(again, name))
        with pytest.raises(ValueError, match="read-only"):
            getattr(right, name)[0] = 0
    found = caltest.test(right.probs, right.labels, "skce_uq", rng=11, n_resamples=200)
    assert not np.isclose(found.null_distribution, found.statistic, rtol=1e-12).any()
    assert np.isfinite(tempered(50, [1e-300] * 3, temperature=0.01, rng=0).probs).all()


# ------------------------------------------------------------------ power


@pytest.mark.level
@pytest.mark.parametrize(("n", "alpha"), [(40, 0.05), (150, 0.05), (150, 0.01)])
def test_power_of_a_binomial_test(n, alpha):
    found = caltest.power(constant(), n, **citl, alpha=alpha, n_datasets=250, rng=1, under_null=True)
    assert found.n_resamples == (199 if alpha == 0.05 else 999)
    low, high = binomial_limits(250, exact_power(n, alpha=alpha, resamples=found.n_resamples))
    assert low <= found.power <= high
    assert found.interval[0] < found.power < found.interval[1]
    low, high = binomial_limits(250, exact_power(n, P, alpha, found.n_resamples))
    assert low <= found.size <= high


@pytest.mark.level
def test_power_grows_with_the_rows():
    found = caltest.power(
        partial(tempered, temperature=0.8), [400, 50, 150, 50], "ecd", n_datasets=150, rng=3
    )
    assert [point.n for point in found.points] == [50, 150, 400]
    shares = [point.power for point in found.points]
    assert shares == sorted(shares)
    assert shares[0] < 0.5 < 0.9 < shares[-1]
    assert found.n_resamples == 399  # two sides
    with pytest.raises(InputError, match="there are 3 numbers of rows; look at points"):
        found.power  # noqa: B018


@pytest.mark.slow
def test_a_tolerance_and_a_lens():
    wrong = pilot(dirichlet(300, 3, 0), overconfidence=0.15)
    ask = partial(caltest.power, wrong, 300, lens="top_label", n_datasets=40, rng=0)
    beyond, within = ask(tolerance=0.02, alternative="over"), ask(tolerance=0.2, alternative="over")
    assert beyond.power > 0.8 > 0.1 >= within.power
    assert (beyond.statistic, beyond.lens, beyond.tolerance) == ("scan", "top_label", 0.02)
    assert "2 points" in beyond.summary()


def test_predicted_distributions_of_numbers():
    def wide(n, rng):
        mean = rng.normal(size=n)
        return caltest.predictive.GaussianPredictions(mean, np.full(n, 2.0)), rng.normal(mean, 1.0)

    found = caltest.power(wide, 60, "nees", n_datasets=60, rng=0, under_null=True)
    low, high = binomial_limits(60, 0.05)
    assert found.power > 0.9
    assert low <= found.size <= high
    assert found.n_classes is None
    assert "wide" in found.summary()


# ------------------------------------------------------------------ seeds


@pytest.mark.slow
def test_workers_and_backends_change_no_number():
    ask = partial(caltest.power, partial(tempered, temperature=0.7), 60, "ecd", n_datasets=24, rng=5)
    alone = ask(n_jobs=1, under_null=True).to_dict()
    assert ask(n_jobs=2, under_null=True).to_dict() == alone
    with joblib.parallel_config(backend="loky"):
        assert ask(n_jobs=2, under_null=True).to_dict() == alone
    find = partial(caltest.sample_size, constant(), **citl, n_datasets=60, rng=5)
    assert find(n_jobs=2).to_dict() == find(n_jobs=1).to_dict()


@pytest.mark.slow
def test_a_data_set_hangs_on_seed_size_and_number_alone():
    some = caltest.power(m2, [20, 40], "ecd", n_datasets=30, rng=7)
    more = caltest.power(m2, 40, "ecd", n_datasets=30, rng=7)
    assert some.points[1] == more.points[0]
    search = caltest.sample_size(constant(), **citl, n_datasets=30, rng=7)
    again = caltest.power(constant(), search.n, **citl, n_datasets=30, rng=7)
    assert again.points[0] in search.points
    assert caltest.power(m2, 40, "ecd", n_datasets=30, rng=more.seed).points == more.points
    other = caltest.power(constant(), 50, **citl, n_datasets=200, rng=8)
    assert other.points != caltest.power(constant(), 50, **citl, n_datasets=200, rng=9).points


# ------------------------------------------------------------------ results


def test_results_are_plain_and_frozen():
    found = caltest.power(constant(), [30, 60], **citl, n_datasets=20, rng=0, under_null=True)
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["points"][1]["n"] == 60
    assert written["points"][0]["size"] is not None
    assert list(found.to_frame()["n"]) == [30, 60]
    assert str(found) == found.summary()
    assert "if calibrated" in found.summary()
    with pytest.raises(AttributeError):
        found.alpha = 0.1
    assert caltest.power.__module__.startswith("caltest.planning")
    assert caltest.planning.PowerResult is type(found)
    assert isinstance(constant(), Pilot)


# ------------------------------------------------------------------ wrong input


def ask(model=m2, n=20, statistic="ecd", **options):
    return caltest.power(model, n, statistic, **{"n_datasets": 2, "rng": 0} | options)


def search(**options):
    return caltest.sample_size(m2, "ecd", **{"n_datasets": 2, "rng": 0} | options)


def everywhere(n, rng):
    return dirichlet(n, 3, 0), np.random.randint(0, 3, n)  # noqa: NPY002


def changing(n, rng):
    return np.full((n, m := int(rng.integers(2, 5))), 1.0 / m), rng.integers(0, m, n)


def coins(n, rng):
    return np.full(n, 0.5), rng.integers(0, 2, n)


def test_models_that_draw_as_they_should():
    """Few rows whose labels are equal by chance, a size as an array, a callable object."""
    assert ask(coins, np.array(2), "citl", n_datasets=4).points[0].n == 2
    assert ask(coins, [2, 2, 3], "citl", n_datasets=4).points[1].n == 3
    assert ask(partial(coins), 5, "citl").points == ask(coins, 5, "citl").points
    calls = []

    def counted(n, rng):
        calls.append(n)
        return coins(n, rng)

    ask(counted, [30, 20], "citl", n_datasets=3)
    assert sorted(calls) == [20] * 5 + [30] * 3  # two draws to look at the model


G = dirichlet(20, 3, 0)
Y = np.arange(20) % 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ask(model=G), "the model is a ndarray; give caltest.planning.pilot"),
        (lambda: ask(model=lambda n, rng: G), "the model drew ndarray; return"),
        (lambda: ask(model=lambda n, rng: (G, Y), n=7), "asked for 7 rows and drew 20"),
        (lambda: ask(model=dict), "the model is the class dict; give"),
        (lambda: ask(model=(G, Y)), "the model is a tuple; give caltest.planning.pilot"),
        (lambda: ask(model=lambda n: (G, Y)), "the model <lambda> cannot be called .* rng "),
        (lambda: ask(model=lambda n, generator: (G, Y)), "cannot be called with a number of rows"),
        (lambda: ask(model=lambda n, rng: (G, Y)), "draws the same data from every rng"),
        (lambda: ask(model=everywhere), "everywhere drew other data the second time from the same rng"),
        (lambda: ask(model=changing, n_datasets=20), "data sets of 2 and of 4 classes"),
        (lambda: ask(n=b"20"), "n is b'20'; give a whole number"),
        (lambda: ask(n=10**9), "n is 1000000000; give at most 100,000,000 rows"),
        (lambda: ask(under_null="no"), "under_null is 'no'; give True or False"),
        (lambda: search(max_n=10**9), "max_n is 1000000000; give at most 100,000,000 rows"),
        (lambda: PowerDisplay.from_result(None), "result is None; give what caltest.power"),
        (lambda: ask(n=1), "n is 1; give a whole number of rows, at least 2"),
        (lambda: ask(n=[]), "n is empty"),
        (lambda: ask(n="many"), "n is 'many'"),
        (lambda: ask(n_datasets=0), "n_datasets is 0"),
        (lambda: ask(alpha=5), "alpha is 5; give a level"),
        (lambda: ask(n_resamples=9), "nothing is ever rejected at level 0.05; give n_resamples=39"),
        (lambda: ask(statistic="edc"), "there is no statistic 'edc'"),
        (lambda: ask(null="bootstrap"), "the null 'bootstrap' needs"),
        (lambda: ask(lens="top"), "there is no lens 'top'"),
        (lambda: ask(alternative="up"), "the alternative 'up'"),
        (lambda: search(power=0.05), "give a probability above alpha, 0.05, and below 1"),
        (lambda: search(power=1), "power is 1; give a probability"),
        (lambda: search(min_n=90, max_n=90), "min_n is 90 and max_n 90"),
        (lambda: search(max_n=1e9), "max_n is 1000000000.0"),
    ],
)
def test_wrong_input(call, words):
    sentence(call, words)


def test_level_is_not_simulated_where_outcomes_cannot_be_drawn():
    def model(n, rng):
        y = rng.normal(size=n)
        return caltest.predictive.Quantiles([0.25, 0.5, 0.75], np.tile([-0.7, 0.0, 0.7], (n, 1))), y

    with pytest.raises(caltest.InputError, match="only their ranks can be drawn; leave it out"):
        caltest.power(model, 20, n_datasets=2, under_null=True)
