"""Predicted distributions of numbers: laws, the PIT, statistics, lenses, sizes and powers."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.special import pdtr
from support import binomial_limits, sentence, some_fast

import caltest
from caltest import InputError
from caltest.data import Rows, Sample
from caltest.laws import recognised
from caltest.lenses import event, find_lens, through
from caltest.predictive import Distribution, Ensemble, GaussianPredictions, Normal

N = 40
LEVELS = np.arange(1, 200) / 200


class ZeroInflated:
    """Zero with an extra probability, else a Poisson number: it states its cdf and nothing else."""

    def __init__(self, mean, extra):
        self.mean, self.extra = mean, extra

    def cdf(self, y):
        count = pdtr(np.floor(np.maximum(y, 0.0)), self.mean)
        return np.where(np.asarray(y) < 0.0, 0.0, self.extra + (1.0 - self.extra) * count)


def law_of(name, n=N, seed=0):
    rng = np.random.default_rng(seed)
    place, scale = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    mean, extra = rng.uniform(0.2, 15.0, n), rng.uniform(0.0, 0.5, n)
    made = {
        "normal": lambda: Normal(place, sd=scale),
        "student": lambda: Distribution(scipy.stats.t(4.0, place, scale)),
        "poisson": lambda: Distribution(scipy.stats.poisson(mean)),
        "zero-inflated": lambda: Distribution(ZeroInflated(mean, extra)),
        "list": lambda: Distribution([ZeroInflated(m, e) for m, e in zip(mean, extra, strict=True)]),
        "one variance": lambda: GaussianPredictions(place, 2.0),
        "vectors": lambda: GaussianPredictions(place[:, None] + np.zeros(3), np.eye(3)),
        "ensemble": lambda: Ensemble(rng.normal(place[:, None], 1.0, (n, 20))),
    }
    return made[name]()


SIZED = ["normal", "student", "poisson", "zero-inflated"]
LAWS = [*SIZED, "list", "one variance", "ensemble"]
NAMES = ["pit_ks", "pit_kuiper", "pit_cvm", "pit_ad", "bias", "spread", "coverage", "crps", "omnibus"]
LENSES = ["below:2", "above:2", "quantile:0.5", "interval:0.9", "pit:10"]


def drawn(law, seed=0, size=None):
    found = law.draw(np.random.default_rng(seed), size or 1)
    return found if size else found[0]


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("name", [*LAWS, "vectors"])
def test_some_rows_have_the_law_of_these_rows(name):
    law, rows = law_of(name), np.array([7, 7, 0, 31])
    some = Rows(law).take(rows).law
    outcomes = drawn(law, size=5)
    assert some.n_samples == 4
    assert some.draw(np.random.default_rng(0), 3).shape == (3, *outcomes[0, rows].shape)
    again = some.take(np.array([True, False, False, True]))
    if name == "vectors":
        expected = law.log_density(outcomes)[:, [7, 31]]
        assert again.log_density(outcomes[:, [7, 31]]) == pytest.approx(expected)
        return
    for found, whole in zip(some.cdf(outcomes[:, rows]), law.cdf(outcomes), strict=True):
        assert np.array_equal(found, whole[:, rows])
    assert np.array_equal(again.cdf(outcomes[:, [7, 31]])[1], law.cdf(outcomes)[1][:, [7, 31]])
    assert np.array_equal(some.quantile(np.full(4, 0.3)), law.quantile(np.full(N, 0.3))[rows])
    if name in ("normal", "one variance", "student", "ensemble"):
        assert some.entropy() == pytest.approx(law.entropy()[rows])


@pytest.mark.parametrize("name", LAWS)
def test_quantiles_are_the_smallest_numbers_with_that_probability(name):
    law = law_of(name)
    for level in (0.01, 0.5, 0.975):
        at = law.quantile(np.full(N, level))
        assert (law.cdf(at)[1] >= level - 1e-9).all()
        assert (law.cdf(at)[0] <= level + 1e-9).all()


def test_a_cdf_alone_gives_the_quantiles_that_scipy_gives():
    class Alone:
        def __init__(self, law):
            self.cdf = law.cdf

    levels = np.random.default_rng(0).random((3, N))
    poisson = scipy.stats.poisson(np.linspace(0.1, 900.0, N))
    for law in (poisson, scipy.stats.norm(np.full(N, 1e6), 1e3)):
        assert Distribution(Alone(law)).quantile(levels) == pytest.approx(law.ppf(levels), rel=1e-12)
        assert isinstance(recognised(Alone(law)), Distribution)


@pytest.mark.skipif(not hasattr(scipy.stats, "Normal"), reason="SciPy before 1.15 has none")
def test_scipys_newer_distributions_are_read():
    older = Distribution(scipy.stats.norm(np.arange(3.0), 2.0))
    newer = Distribution(scipy.stats.Normal(mu=np.arange(3.0), sigma=np.full(3, 2.0)))
    for levels in (np.full(3, 0.2), np.full((2, 3), 0.7)):
        assert newer.quantile(levels) == pytest.approx(older.quantile(levels))
    assert newer.cdf(np.ones(3))[1] == pytest.approx(older.cdf(np.ones(3))[1])


def test_sd_and_variance_are_the_same():
    mean, sd = np.zeros(3), np.array([0.5, 1.0, 2.0])
    outcomes = np.array([0.3, -1.0, 2.5])
    for one in (Normal(mean, sd), Normal(mean, sd=sd), Normal(mean, variance=sd**2)):
        assert one.log_density(outcomes) == pytest.approx(scipy.stats.norm(mean, sd).logpdf(outcomes))
    rows = np.arange(6.0).reshape(2, 3)
    entries = Normal(np.zeros((2, 3)), sd=rows + 1.0)
    expected = scipy.stats.norm(0.0, rows + 1.0).logpdf(rows).sum(axis=1)
    assert entries.log_density(rows) == pytest.approx(expected)


@pytest.mark.parametrize(("given", "meant"), [("sd", "variances"), ("variance", "standard deviations")])
def test_a_variance_in_place_of_an_sd_is_noted(given, meant):
    sd = np.full(300, 5.0)
    outcomes = np.random.default_rng(0).normal(0.0, sd)
    wrong = Normal(np.zeros(300), **{given: sd**2 if given == "sd" else sd})
    for lens in (None, "interval:0.9"):
        found = caltest.test(wrong, outcomes, "spread" if lens is None else "citl", lens=lens, rng=0)
        assert [each for each in found.warnings if f"if these are {meant}" in each]
    assert not caltest.test(Normal(np.zeros(300), sd=sd), outcomes, "spread", rng=0).warnings


# ---------------------------------------------------------------------- the pit


def direct(law, outcomes, weights):
    """The scores by their definition, (n, T)."""
    below, at = (each[:, None] for each in law.cdf(outcomes))
    atoms = at - below > 1e-6
    share = np.clip((LEVELS - below) / np.where(atoms, at - below, 1.0), 0.0, 1.0)
    return weights[:, None] * (np.where(atoms, share, at <= LEVELS) - LEVELS)


@pytest.mark.parametrize("name", LAWS)
def test_statistics_are_those_of_scores_by_their_definition(name):
    law, weights = law_of(name), np.random.default_rng(1).exponential(size=N)
    outcomes = drawn(law, 3, 1)[0]
    scores = direct(law, outcomes, weights).sum(axis=0) / weights.sum()
    by_hand = {"pit_ks": np.abs(scores).max(), "bias": scores.sum() / 200.0}
    by_hand |= {"pit_cvm": (scores**2).sum() / 200.0, "pit_kuiper": np.ptp([0.0, *scores])}
    by_hand |= {"spread": np.sign(LEVELS - 0.5) @ scores / 200.0}
    for statistic, value in by_hand.items():
        found = caltest.estimate(law, outcomes, statistic, weights=weights)
        assert found == pytest.approx(value, abs=1e-10), statistic


@pytest.mark.parametrize("name", ["poisson", "zero-inflated"])
def test_scores_are_0_on_average_by_enumeration(name):
    law = law_of(name)
    total = np.zeros((N, len(LEVELS)))
    for count in range(120):
        outcomes = np.full(N, float(count))
        below, at = law.cdf(outcomes)
        total += (at - below)[:, None] * direct(law, outcomes, np.ones(N))
    assert np.abs(total).max() < 1e-9


def test_signs_say_which_error():
    law, z = Normal(np.zeros(400), sd=1.0), np.random.default_rng(0).normal(size=400)
    assert caltest.estimate(law, z - 0.5, "bias") > 0.1
    assert caltest.estimate(law, z + 0.5, "bias") < -0.1
    assert caltest.estimate(law, 0.5 * z, "spread") > 0.05
    assert caltest.estimate(law, 2.0 * z, "spread") < -0.05
    assert caltest.estimate(law, 2.0 * z, "crps") > 0.2


# ---------------------------------------------------------------------- what is asked


def test_the_default_is_the_omnibus_of_numbers():
    law, outcomes = law_of("normal"), drawn(law_of("normal"))
    found = caltest.test(law, outcomes, rng=0)
    names = ["bias", "spread", "pit_ad", "bias, by level", "spread, by level"]
    assert [part.name for part in found.parts] == names
    assert (found.name, found.guarantee) == ("omnibus", "exact")
    for same in ("omnibus", caltest.statistics.Omnibus()):
        assert caltest.test(law, outcomes, same, rng=0).pvalue == found.pvalue
    assert caltest.estimate(law, outcomes, "omnibus") == pytest.approx(found.statistic)
    alike = caltest.test(Normal(np.zeros(N), sd=1.0), outcomes, rng=0)
    assert [part.name for part in alike.parts] == names[:3]
    assert "40 predicted distributions" in found.summary()


def test_weights_of_0_are_left_out():
    law, rng = law_of("poisson"), np.random.default_rng(0)
    outcomes, weights = drawn(law), rng.exponential(size=N)
    weights[[3, 8]] = 0.0
    kept = np.flatnonzero(weights)
    for name in NAMES:
        found = caltest.test(law, outcomes, name, weights=weights, rng=0, n_resamples=19)
        same = caltest.test(Rows(law, weights=weights), outcomes, name, rng=0, n_resamples=19)
        some = caltest.estimate(law.take(kept), outcomes[kept], name, weights=weights[kept])
        assert [found.statistic, same.statistic] == pytest.approx([some, some], rel=1e-9), name
        assert "Left out: 2 of 40 rows, whose weight is 0." in found.warnings
        assert found.parameters["effective_n"] < 38
    normal = law_of("normal")
    with pytest.raises(InputError, match="which 'nees' of rows with weights is not; possible here"):
        caltest.test(normal, drawn(normal), "nees", weights=np.arange(1.0, N + 1), null="chi2")


def test_weights_count_rows():
    law, outcomes = law_of("zero-inflated"), drawn(law_of("zero-inflated"), 4)
    twice = np.repeat(np.arange(N), np.arange(N) % 2 + 1)
    for name in NAMES[:-1]:
        copied = caltest.estimate(law.take(twice), outcomes[twice], name)
        counted = caltest.estimate(law, outcomes, name, weights=np.arange(N) % 2 + 1.0)
        assert counted == pytest.approx(copied, rel=1e-9), name


class Certain:
    """Points: the outcome of row k is k."""

    def cdf(self, y):
        return (np.asarray(y) >= np.arange(5.0)).astype(float)


def test_what_is_certain_and_does_not_occur_is_found():
    outcomes = np.arange(5.0)
    for name in ("omnibus", "pit_ks", "bias", "crps"):
        assert caltest.test(Certain(), outcomes, name, n_resamples=19, rng=0).pvalue == 1.0
        found = caltest.test(Certain(), outcomes + 1.0, name, n_resamples=19, rng=0)
        assert found.pvalue <= 0.1, name
        assert any("had probability 0" in each for each in found.warnings)


def test_numbers_that_are_far_out_are_tested():
    for mean, sd in ((1e200, 1.0), (0.0, 1e-100), (0.0, 1e100)):
        law = Normal(np.full(5, mean), sd=sd)
        assert caltest.test(law, np.full(5, 1.0), "pit_ad", n_resamples=19, rng=0).pvalue > 0.0


def test_equal_rows_tie():
    """All draws with as many ones have one value, whatever the order of the rows."""
    law = Distribution(scipy.stats.bernoulli(np.full(30, 0.3)))
    outcomes = np.arange(30) < 9
    for name in NAMES:
        found = caltest.test(law, outcomes, name, n_resamples=199, rng=0)
        turned = caltest.test(law, outcomes[::-1], name, n_resamples=199, rng=0)
        assert found.exceedances == turned.exceedances, name


def test_workers_change_nothing():
    law = law_of("poisson")
    for name in ("omnibus", "crps"):
        one, two = (caltest.test(law, drawn(law), name, rng=1, n_jobs=jobs) for jobs in (None, 2))
        assert one.pvalue == two.pvalue
        assert np.array_equal(one.null_distribution, two.null_distribution)


# ---------------------------------------------------------------------- lenses


@pytest.mark.parametrize("name", some_fast(LAWS, "normal", "poisson", mark="level"))
def test_lenses_state_the_probabilities_that_outcomes_have(name):
    law = law_of(name)
    outcomes = drawn(law, 7, 3000)
    for lens in LENSES:
        view = find_lens(lens).show(Rows(law))
        labels, probs = view.outcomes(outcomes), view.rows.probs
        assert labels[:, 5:9].tolist() == view.outcomes(outcomes[:, 5:9], slice(5, 9)).tolist()
        for k in range(probs.shape[1]):
            error = (labels == k).mean(axis=0) - probs[:, k]
            sd = np.sqrt(probs[:, k] * (1.0 - probs[:, k]) / len(outcomes)) + 1e-9
            assert np.abs(error / sd).max() < 5.0, (lens, k)


def test_lenses_by_hand():
    law = Distribution(scipy.stats.poisson([2.0, 2.0, 2.0, 2.0]))
    rows, outcomes = Rows(law), np.array([0.0, 1.0, 2.0, 6.0])
    poisson = scipy.stats.poisson(2.0)
    hand = {
        "below:2": (poisson.cdf(1), [1, 1, 0, 0]),
        "above:1": (poisson.sf(1), [0, 0, 1, 1]),
        "quantile:.5": (poisson.cdf(2), [1, 1, 1, 0]),
        "interval:0.5": (poisson.cdf(3) - poisson.cdf(0), [0, 1, 1, 0]),
    }
    for lens, (chance, labels) in hand.items():
        view = through(Sample(rows, outcomes), lens)[0]
        assert view.rows.probs[0, 1] == pytest.approx(chance)
        assert view.labels.tolist() == labels
    view = through(Sample(rows, outcomes), "pit:4")[0]
    cuts = [poisson.cdf(q) for q in (1, 2, 3)]
    assert view.rows.probs[0] == pytest.approx(np.diff([0.0, *cuts, 1.0]))
    assert view.labels.tolist() == [0, 0, 1, 3]


def test_events_are_clauses():
    rows = Rows(law_of("normal"))
    assert event("below:30", rows) == "the outcome is below 30"
    assert event("above:-1.5", rows) == "the outcome is above -1.5"
    assert event("quantile:0.05", rows) == "the outcome is at most its predicted 5% quantile"
    assert event("interval:0.9", rows) == "the outcome is in its predicted 90% interval"


def test_every_statistic_of_classes_works_through_a_lens():
    law, weights = law_of("zero-inflated", 80), np.arange(1.0, 81.0)
    outcomes, options = drawn(law), {"n_resamples": 19, "rng": 0}
    for name in caltest.statistics.STATISTICS:
        for lens in ("below:2", "quantile:0.5"):
            found = caltest.test(law, outcomes, name, lens=lens, weights=weights, **options)
            assert (found.n_classes, found.lens, found.guarantee) == (2, lens, "exact")
    assert caltest.test(law, outcomes, "ece", lens="pit:10", **options).n_classes == 10
    found = caltest.test(law, outcomes, lens="below:2", tolerance=0.05, **options)
    assert "probability that the outcome is below 2 is wrong" in found.claim
    codes = np.arange(80) // 2
    for name in ("citl", "omnibus"):
        found = caltest.test(law, outcomes, name, lens="below:2", clusters=codes, **options)
        assert (found.null, found.parameters["clusters"]) == ("cluster_signs", 40)
    view = through(Sample(Rows(law), outcomes), "below:2")[0]
    same = caltest.test(view.rows, view.labels, "ece", **options)
    assert caltest.test(law, outcomes, "ece", lens="below:2", **options).pvalue == same.pvalue


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_statistics_of_the_pit_are_the_same_through_the_lens_of_whole_distributions(name):
    """The omnibus sorts rows by their predicted medians, which ranks do not know."""
    law = law_of(name)
    outcomes = law.draw(np.random.default_rng(1), 1)[0]
    for statistic in ("omnibus", "bias", "pit_ad"):
        ask = partial(caltest.test, law, outcomes, statistic, rng=0, n_resamples=49)
        alone, seen = ask(), ask(lens="distribution")
        assert (seen.pvalue, seen.parts) == (alone.pvalue, alone.parts)


def test_a_lens_can_be_sent_to_another_process():
    view = find_lens("pit:10").show(Rows(law_of("normal")))
    again = pickle.loads(pickle.dumps(view))
    outcomes = drawn(law_of("normal"), size=2)
    assert np.array_equal(again.outcomes(outcomes), view.outcomes(outcomes))


# ---------------------------------------------------------------------- sizes

ASKED = [*NAMES, *LENSES]
DATA_SETS, ROWS, RESAMPLES = 300, 60, 19


def looking(name):
    """Return the statistic and the lens that are asked for."""
    if name not in LENSES:
        return {"statistic": name}
    return {"statistic": "ece_squared" if name == "pit:10" else "citl", "lens": name}


SIZES = [(name, asked) for name in SIZED for asked in ASKED]
FAST = [("normal", "pit_ad"), *((name, "quantile:0.5") for name in SIZED)]


@pytest.mark.slow
@pytest.mark.parametrize("case", some_fast(SIZES, *FAST, mark="level"), ids="-".join)
def test_sizes(case):
    """Of 112 rates at two levels one leaves its limits by chance in 1 of 90 runs at most."""
    name, asked = case
    slower = (3 if name == "zero-inflated" else 1) * (3 if asked == "omnibus" else 1)
    law, count = law_of(name, ROWS), DATA_SETS // slower
    pvalues, options = np.empty(count), {"n_resamples": RESAMPLES, **looking(asked)}
    for seed, outcomes in enumerate(drawn(law, 9, count)):
        pvalues[seed] = caltest.test(law, outcomes, rng=seed, **options).pvalue
    for level in (0.1, 0.2):
        low, high = binomial_limits(count, level)
        rejected = np.mean(pvalues <= level)
        assert rejected <= high
        # Events, and counts, tie: their tests reject less often, never more often.
        assert asked in LENSES or rejected >= low


# ---------------------------------------------------------------------- powers


def wrong_data(kind, seed, n=500):
    rng = np.random.default_rng(seed)
    mean, sd, z = rng.normal(size=n), rng.uniform(0.5, 1.5, n), rng.normal(size=n)
    errors = {
        "bias": z + 0.2,
        "spread": 1.2 * z,
        "skewness": (rng.gamma(4.0, size=n) - 4.0) / 2.0,
        "tails": rng.standard_t(4.0, size=n) / np.sqrt(2.0),
        "spread by level": z * np.where(mean > 0.0, 1.25, 0.8),
    }
    return Normal(mean, sd=sd), mean + sd * errors[kind]


#: Statistics that find an error in 4 of 5 data sets, and some that see nothing of it.
FINDS = {
    "bias": (["omnibus", "bias", "pit_ad", "pit_cvm", "pit_ks"], ["spread", "coverage"]),
    "spread": (["omnibus", "spread", "coverage", "crps", "pit_kuiper"], ["bias"]),
    "skewness": (["omnibus", "pit_ad", "pit_kuiper"], ["spread", "crps"]),
    "tails": (["omnibus", "spread", "coverage", "pit_ad", "pit_kuiper"], ["bias"]),
    "spread by level": (["omnibus"], ["spread", "bias", "pit_ks", "pit_cvm", "pit_ad"]),
}
POWERS = [(kind, name) for kind, both in FINDS.items() for name in (*both[0], *both[1])]


@pytest.mark.level
@pytest.mark.parametrize(
    "power", some_fast(POWERS, ("spread by level", "omnibus"), mark="level"), ids="-".join
)
def test_powers(power):
    """Of 40 data sets: an error with power .93 is missed here in 1 of 10⁴ cases."""
    kind, name = power
    found = [
        caltest.test(*wrong_data(kind, seed), name, n_resamples=99, rng=seed).pvalue <= 0.05
        for seed in range(40)
    ]
    sees, _ = FINDS[kind]
    assert np.mean(found) >= 0.75 if name in sees else np.mean(found) <= 0.35


# ---------------------------------------------------------------------- published


@pytest.mark.level
@pytest.mark.parametrize(
    ("bias", "dispersion", "rate"), [(0.0, 0.0, 0.0450), (0.1, 0.0, 0.3508), (0.2, 0.2, 0.9264)]
)
def test_rates_that_were_published(bias, dispersion, rate):
    """Arnold, Henzi, Ziegel 2023, 5 000 simulations: n = 360, forecasts N(bias, 1 + dispersion).

    The dispersion is of the *variance*: an sd of 1.2 would be found in .987.
    """
    law = Normal(np.full(360, bias), variance=1.0 + dispersion)
    outcomes = np.random.default_rng(3).normal(size=(1000, 360))
    found = [
        caltest.test(law, each, "pit_ks", n_resamples=199, rng=seed).pvalue <= 0.05
        for seed, each in enumerate(outcomes)
    ]
    error = np.sqrt(rate * (1.0 - rate) * (1 / 1000 + 1 / 5000))
    assert abs(np.mean(found) - rate) < 3.3 * error


def test_the_rates_above_are_the_published_ones(reference):
    table = pd.read_csv(reference("arnold_henzi_ziegel_n360.csv")).round({"bias": 3, "dispersion": 3})
    table = table[(table["type"] == "pit") & (table.method == "ptest")]
    rates = table.set_index(["bias", "dispersion"])["rej_0.05"]
    assert [rates[each] for each in ((0.0, 0.0), (0.1, 0.0), (0.2, 0.2))] == [0.0450, 0.3508, 0.9264]


# ---------------------------------------------------------------------- wrong input


class Stating:
    """A distribution of three rows whose cdf is a function."""

    def __init__(self, cdf):
        self.cdf = cdf


def raising(y):
    if np.ndim(y):
        raise RuntimeError("out of\nreach")
    return np.full(3, 0.5)


def above_one(y):
    return np.where(np.asarray(y) > 1.0, 1.5, 0.5) * np.ones(3)


Y3 = np.array([0.1, 2.0, 0.3])
NORMAL, OUTCOMES = law_of("normal"), drawn(law_of("normal"))
WRONG = {
    "sd of 0": (lambda: Normal([0, 1], sd=[1, 0]), r"sd is 0 in row 1 \(counting from 0\); give"),
    "mean and sd swapped": (lambda: Normal([1, 1], [0.5, -3]), "sd is -3 in row 1 .* the mean first"),
    "sd too large": (lambda: Normal([0.0], sd=1e300), "sd is 1e.300; give standard deviations"),
    "sd NaN": (lambda: Normal([0, 1], sd=[1, np.nan]), "sd holds nan in row 1"),
    "variance NaN": (lambda: Normal([0, 1], variance=[1, np.nan]), "the variance holds nan in row 1"),
    "variance of 0": (lambda: Normal([0, 1], variance=[1, 0]), "the variance of row 1 .* positive"),
    "mean NaN": (lambda: Normal([0, np.nan], sd=1), "the mean holds nan in row 1"),
    "neither": (lambda: Normal([0, 1]), "^neither of sd= and variance= given; give one of them.$"),
    "both": (lambda: Normal([0, 1], sd=1, variance=1), "^both of sd= and variance= given"),
    "shape": (lambda: Normal([0, 1], sd=[1, 1, 1]), r"sd has shape \(3,\); give"),
    "outcome NaN": (lambda: caltest.test(NORMAL, [np.nan] * N), "the outcomes holds nan in row 0"),
    "too few outcomes": (lambda: caltest.test(NORMAL, OUTCOMES[:3]), r"the outcomes have shape \(3,\)"),
    "cdf raises": (lambda: caltest.test(Stating(raising), Y3), "fail to state their cdf .out of"),
    "cdf raises at once": (lambda: Distribution(Stating(lambda y: 1 / 0)), "division by zero"),
    "cdf above 1": (lambda: caltest.test(Stating(above_one), Y3), "cdf of row 0 .* is 1.5 at 4; give"),
    "cdf above 1 at once": (lambda: Distribution(Stating(lambda y: y + 2 * np.ones(3))), "cdf at 0 2"),
    "cdf of another shape": (
        lambda: caltest.test(Stating(lambda y: np.full(3, 0.5)[: 2 + (np.ndim(y) == 0)]), Y3),
        "fail to state their cdf",
    ),
    "cdf of no rows": (lambda: Distribution(Stating(lambda y: 0.5)), "does not say how many rows"),
    "cdfs of several": (lambda: Distribution([Stating(lambda y: np.full(2, 0.5))]), "of a number or"),
    "no distribution": (lambda: Distribution([object()]), "states neither a cdf nor an entropy"),
    "lens of classes": (lambda: caltest.test(NORMAL, OUTCOMES, lens="top_label"),
        "'top_label' is for classes, and these are normal distributions of numbers; give a lens of nu"),
    "lens of numbers": (lambda: caltest.test([0.5, 0.5], [0, 1], "citl", lens="quantile:0.5"),
        "'quantile:0.5' is for predicted distributions of numbers, and these are probab"),
    "audit of classes": (
        lambda: caltest.audit([0.5, 0.4] * 50, [0, 1] * 50, lenses=["below:2"], n_resamples=199),
        "'below:2' is for predicted distributions",
    ),
    "no number": (lambda: find_lens("below:x"), "threshold is 'x'; give a number"),
    "infinite": (lambda: find_lens("above:inf"), "threshold is inf; give a number"),
    "level of 90": (lambda: find_lens("interval:90"), "level is 90.0; give a number between 0 and 1"),
    "level NaN": (lambda: find_lens("quantile:nan"), "level is nan"),
    "one cell": (lambda: find_lens("pit:1"), "the lens asks for '1' cells"),
    "statistic of classes": (lambda: caltest.test(NORMAL, OUTCOMES, "ece"),
        "'ece' is for probabilities of classes.*; give a lens such as 'quantile:0.5', or .* 'pit_ad'"),
    "statistic of numbers": (lambda: caltest.test([0.5, 0.5], [0, 1], "pit_ad"),
        "'pit_ad' is for distributions of numbers, and these are probabilities"),
    "options of classes": (
        lambda: caltest.test(NORMAL, OUTCOMES, caltest.statistics.Omnibus(multiples=2.0)),
        "the options of 'omnibus' are for probabilities of classes",
    ),
    "tolerance": (lambda: caltest.test(NORMAL, OUTCOMES, tolerance=0.1),
        "these are normal distributions of numbers; give a lens, such as 'quantile:0.5'"),
    "rounding": (lambda: caltest.test(NORMAL, OUTCOMES, rounding=0.1), "rounding.* is about probab"),
    "logits": (lambda: caltest.test(NORMAL, OUTCOMES, logits=True), "logits.* is about probabilities"),
    "rates": (lambda: caltest.test(NORMAL, OUTCOMES, sampling_rates={0: 0.1}), "sampling_rates.* is"),
    "weights": (lambda: caltest.test(NORMAL, OUTCOMES, weights=[1.0]), "weights has 1 entry"),
    "vectors": (lambda: caltest.test(law_of("vectors"), np.zeros((N, 3)), "pit_ad"),
        "the outcomes are vectors"),
    "vectors, a statistic of classes": (
        lambda: caltest.test(law_of("vectors"), np.zeros((N, 3)), "ece"),
        "use 'ecd', or a function of your own",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_answered_in_a_sentence(case):
    sentence(*WRONG[case])


# ---------------------------------------------------------------------- pictures


@pytest.mark.parametrize("name", ["normal", "poisson"])
def test_the_picture_of_differences_is_the_test_by_pit_ks(name):
    law = law_of(name)
    for outcomes in (drawn(law), drawn(law) + 1.0):
        picture = caltest.plots.PITDisplay.from_predictions(law, outcomes, n_resamples=199, rng=3)
        found = caltest.test(law, outcomes, "pit_ks", n_resamples=199, rng=3)
        assert picture.outside.any() == found.rejects(0.05)
        assert np.abs(picture.values).max() == pytest.approx(found.statistic)


def test_pictures_of_histograms_and_coverage():
    law, outcomes = law_of("normal", 400), drawn(law_of("normal", 400), seed=5)
    inside = np.abs(outcomes - law.mean) <= scipy.stats.norm.ppf(0.9) * law.factors[:, 0, 0]
    coverage = caltest.plots.PITDisplay.from_predictions(law, outcomes, kind="coverage", rng=0)
    assert coverage.values[coverage.x == 0.8] == pytest.approx(inside.mean())
    histogram = caltest.plots.PITDisplay.from_predictions(law, outcomes, kind="histogram", rng=0)
    expected = np.histogram(law.cdf(outcomes)[1], bins=10, range=(0.0, 1.0))[0]
    assert histogram.values * 40 == pytest.approx(expected)
    with pytest.raises(InputError, match="give distributions of numbers"):
        caltest.plots.PITDisplay.from_predictions([0.2, 0.8, 0.5], [0, 1, 1])
    with pytest.raises(InputError, match="there is no kind 'curve'"):
        caltest.plots.PITDisplay.from_predictions(law, outcomes, kind="curve")


# ---------------------------------------------------------------------- through lenses


@pytest.mark.parametrize("lens", ["below:1", "interval:0.8"])
def test_what_is_of_one_probability_looks_through_lenses_too(lens):
    law, outcomes = law_of("normal", 300), drawn(law_of("normal", 300), seed=4)
    view = through(Sample(Rows(law), outcomes), lens)[0]
    probs, labels = view.rows.probs[:, 1], view.labels
    found = caltest.miscalibration_bounds(law, outcomes, lens=lens, n_resamples=99, rng=0)
    assert "None" not in str(found)
    assert found.over == caltest.miscalibration_bounds(probs, labels, n_resamples=99, rng=0).over
    assert caltest.certificate(law, outcomes, lens=lens).distance == pytest.approx(
        caltest.certificate(probs, labels).distance
    )
    table = caltest.bin_table(law, outcomes, lens=lens)
    assert table["count"].tolist() == caltest.bin_table(probs, labels)["count"].tolist()
    drawn_ = caltest.ReliabilityDisplay.from_predictions(
        law, outcomes, lens=lens, n_resamples=39, rng=0
    )
    texts = [each.get_text() for each in drawn_.figure_.findobj(lambda x: hasattr(x, "get_text"))]
    assert any("outcome is" in " ".join(text.split()) for text in texts)
    with pytest.raises(InputError, match="these are normal distributions of numbers; give a lens"):
        caltest.bin_table(law, outcomes)


def test_scores_in_units_of_the_outcome_are_not_of_ranks():
    law = caltest.predictive.Normal(np.zeros(40), sd=1.0)
    outcomes = np.random.default_rng(0).normal(size=40)
    with pytest.raises(caltest.exceptions.InputError, match=r"ranks in normal .* such as 'pit_ad'"):
        caltest.test(law, outcomes, "crps", lens="distribution")
    with pytest.raises(caltest.exceptions.InputError, match="state no score in units"):
        caltest.audit(law, outcomes, statistics=["crps"], n_resamples=99)
