"""`power` and `sample_size`: closed forms, levels, seeds, pilots, and wrong input."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy.stats import binom, norm
from support import binomial_limits, dirichlet

import caltest
from caltest import InputError, PowerDisplay
from caltest.planning import Pilot, pilot
from caltest.planning.curve import Curve, fit
from caltest.planning.datasets import Counted
from caltest.planning.result import PowerPoint
from caltest.planning.search import _Search
from caltest.simulation import m1, m2, tempered

P, Q = 0.3, 0.4  # what a constant model says, and what is true


def constant(truth=Q, rows=10):
    """A pilot whose predictions are all P, where ``truth`` is right."""
    return pilot(np.full(rows, P), truth=np.tile([1.0 - truth, truth], (rows, 1)))


def exact_power(n, truth=Q, alpha=0.05, resamples=199):
    """Power of the exact one-sided test of so many draws of the count of events, a binomial."""
    events = np.arange(n + 1)
    reached = binom.sf(events - 1, n, P)  # that a draw's count is as large
    allowed = round(alpha * (resamples + 1), 9) // 1 - 1
    return float(binom.pmf(events, n, truth) @ binom.cdf(allowed, resamples, reached))


citl = {"statistic": "citl", "alternative": "greater"}

# ------------------------------------------------------------------ power


@pytest.mark.parametrize(("n", "alpha"), [(40, 0.05), (150, 0.05), (150, 0.01)])
def test_power_of_a_binomial_test(n, alpha):
    found = caltest.power(constant(), n, **citl, alpha=alpha, n_datasets=400, rng=1, under_null=True)
    assert found.n_resamples == (199 if alpha == 0.05 else 999)
    low, high = binomial_limits(400, exact_power(n, alpha=alpha, resamples=found.n_resamples))
    assert low <= found.power <= high
    assert found.interval[0] < found.power < found.interval[1]
    low, high = binomial_limits(400, exact_power(n, P, alpha, found.n_resamples))
    assert low <= found.size <= high


def test_the_size_of_the_default_test():
    found = caltest.power(m1, 60, n_datasets=150, rng=2, under_null=True)
    assert (found.statistic, found.null, found.error) == ("omnibus", "monte_carlo", 0.0)
    low, high = binomial_limits(150, 0.05)
    assert low <= found.power <= high
    assert low <= found.size <= high
    (point,) = found.points
    assert point.rejections != point.false_rejections or point.rejections < 20  # labels of their own


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
        return caltest.predictive.Gaussian(mean, np.full(n, 2.0)), rng.normal(mean, 1.0)

    found = caltest.power(wide, 60, "nees", n_datasets=60, rng=0, under_null=True)
    low, high = binomial_limits(60, 0.05)
    assert found.power > 0.9
    assert low <= found.size <= high
    assert found.n_classes is None
    assert "wide" in found.summary()


# ------------------------------------------------------------------ seeds


def test_workers_and_backends_change_no_number():
    ask = partial(caltest.power, partial(tempered, temperature=0.7), 60, "ecd", n_datasets=24, rng=5)
    alone = ask(n_jobs=1, under_null=True).to_dict()
    assert ask(n_jobs=2, under_null=True).to_dict() == alone
    with joblib.parallel_config(backend="loky"):
        assert ask(n_jobs=2, under_null=True).to_dict() == alone
    find = partial(caltest.sample_size, constant(), **citl, n_datasets=60, rng=5)
    assert find(n_jobs=2).to_dict() == find(n_jobs=1).to_dict()


def test_a_data_set_hangs_on_seed_size_and_number_alone():
    some = caltest.power(m2, [20, 40], "ecd", n_datasets=30, rng=7)
    more = caltest.power(m2, 40, "ecd", n_datasets=30, rng=7)
    assert some.points[1] == more.points[0]
    search = caltest.sample_size(constant(), **citl, n_datasets=30, rng=7)
    again = caltest.power(constant(), 50, **citl, n_datasets=24, rng=7)
    assert again.points[0] == search.points[0]
    assert caltest.power(m2, 40, "ecd", n_datasets=30, rng=more.seed).points == more.points
    other = caltest.power(constant(), 50, **citl, n_datasets=200, rng=8)
    assert other.points != caltest.power(constant(), 50, **citl, n_datasets=200, rng=9).points


# ------------------------------------------------------------------ sample size


def test_sample_size_of_a_binomial_test():
    found = caltest.sample_size(constant(), **citl, n_datasets=600, rng=0)
    low, high = found.interval
    assert found.reached == "yes"
    assert low < found.n < high < 1.3 * low
    assert abs(exact_power(found.n) - 0.8) < 0.06
    closed = norm.isf(0.05) * np.sqrt(P * (1 - P)) + norm.ppf(0.8) * np.sqrt(Q * (1 - Q))
    assert found.n == pytest.approx((closed / (Q - P)) ** 2, rel=0.15)
    assert found.curve(found.n) == pytest.approx(0.8, abs=0.01)
    assert sum(point.n_datasets for point in found.points) >= 600


def test_a_higher_power_takes_more_rows():
    some, more = (
        caltest.sample_size(constant(), **citl, power=power, n_datasets=150, rng=0)
        for power in (0.5, 0.95)
    )
    assert 2 * some.n < more.n


def test_a_power_that_is_not_reached():
    found = caltest.sample_size(m1, "ecd", min_n=20, max_n=80, n_datasets=50, rng=0)
    assert (found.n, found.reached, found.interval[1]) == (None, "no", None)
    assert [point.n for point in found.points] == [20, 40, 80]
    assert "A power of 0.8 is not reached with max_n = 80 rows" in found.summary()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n"] is None


def test_a_power_that_is_reached_at_once():
    found = caltest.sample_size(m2, "ecd", min_n=200, n_datasets=50, rng=0)
    assert (found.n, found.reached) == (200, "at the smallest")
    assert found.interval[0] is None
    assert len(found.points) == 1
    assert "is reached with min_n = 200 rows already" in found.summary()


class Oracle:
    """Counts rejections of a test whose power is known."""

    asked = SimpleNamespace(alpha=0.05)

    def __init__(self, at, seed):
        self.at, self.rng = at, np.random.default_rng(seed)

    def count(self, n, start, stop):
        power = norm.cdf(norm.ppf(0.05) + (norm.ppf(0.8) - norm.ppf(0.05)) * np.sqrt(n / self.at))
        hits = int(self.rng.binomial(stop - start, power))
        return Counted(PowerPoint(n, stop - start, hits), None, None)


def test_intervals_hold_what_they_should():
    held, answers = 0, []
    for seed in range(40):
        search = _Search(Oracle(700.0, seed), 0.8, 50, 20_000)
        search.double()
        search.refine(400)
        found = search.answer()
        held += found["interval"][0] <= 700 <= found["interval"][1]
        answers.append(found["n"])
    low, high = binomial_limits(40, 0.94)
    assert low <= held / 40 <= high
    assert np.mean(np.log(np.array(answers) / 700.0)) == pytest.approx(0.0, abs=0.03)


def test_the_curve():
    truth = Curve(0.05, 0.8, 300.0, 0.5)
    assert truth(300.0) == pytest.approx(0.8)
    assert truth(1e-9) == pytest.approx(0.05, abs=1e-4)
    n = [100, 200, 300, 400, 800]
    counts = [round(100_000 * float(truth(rows))) for rows in n]
    found = fit(n, counts, [100_000] * 5, 0.05, 0.8)
    assert found.curve.n == pytest.approx(300.0, rel=0.01)
    assert found.curve.exponent == pytest.approx(0.5, rel=0.1)
    assert found.low < found.curve.n < found.high < 1.03 * found.low
    nothing = fit([50, 100], [2, 1], [24, 24], 0.05, 0.8)
    assert nothing.high == np.inf
    assert nothing.low > 100
    everything = fit([50], [24], [24], 0.05, 0.8)
    assert everything.low == 0.0
    assert everything.high < 60


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
    assert caltest.PowerResult is type(found)
    assert isinstance(constant(), Pilot)


@pytest.mark.usefixtures("pictures")
def test_pictures():
    found = caltest.power(constant(), [30, 60, 90], **citl, n_datasets=20, rng=0, under_null=True)
    display = PowerDisplay.from_result(found)
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "rejected if calibrated" in named
    search = caltest.sample_size(constant(), **citl, n_datasets=40, rng=0)
    display = PowerDisplay.from_result(search)
    display.figure_.canvas.draw()
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {f"{search.n} rows", "power wanted, 0.8", "its 95% interval"} <= set(named)
    drawn = [
        line.get_xdata()[0] for line in display.ax_.lines if line.get_label() == f"{search.n} rows"
    ]
    assert drawn == [search.n]
    used = display.figure_.get_tightbbox()
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()
    none = caltest.sample_size(m1, "ecd", min_n=20, max_n=40, n_datasets=20, rng=0)
    PowerDisplay.from_result(none).figure_.canvas.draw()


# ------------------------------------------------------------------ wrong input


def ask(model=m2, n=20, statistic="ecd", **options):
    return caltest.power(model, n, statistic, **{"n_datasets": 2, "rng": 0} | options)


def search(**options):
    return caltest.sample_size(m2, "ecd", **{"n_datasets": 2, "rng": 0} | options)


G = dirichlet(20, 3, 0)
Y = np.arange(20) % 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ask(model=G), "the model is a ndarray; give a function"),
        (lambda: ask(model=lambda n, rng: G), "the model drew ndarray; return"),
        (lambda: ask(model=lambda n, rng: (G, Y), n=7), "asked for 7 rows and drew 20"),
        (lambda: ask(n=1), "n is 1; give a whole number of rows, at least 2"),
        (lambda: ask(n=[]), "n is empty"),
        (lambda: ask(n="many"), "n is 'many'"),
        (lambda: ask(n_datasets=0), "n_datasets is 0"),
        (lambda: ask(alpha=5), "alpha is 5; give a level"),
        (lambda: ask(n_resamples=9), "nothing is ever rejected at level 0.05; give n_resamples=39"),
        (lambda: ask(statistic="edc"), "there is no statistic 'edc'"),
        (lambda: ask(null="spectral"), "the null 'spectral' needs"),
        (lambda: ask(lens="top"), "there is no lens 'top'"),
        (lambda: ask(alternative="up"), "the alternative 'up'"),
        (lambda: search(power=0.05), "give a probability above alpha, 0.05, and below 1"),
        (lambda: search(power=1), "power is 1; give a probability"),
        (lambda: search(min_n=90, max_n=90), "min_n is 90 and max_n 90"),
        (lambda: search(max_n=1e9), "max_n is 1000000000.0"),
    ],
)
def test_wrong_input(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
