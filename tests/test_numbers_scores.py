"""Predicted numbers: scores, rows in clusters, and kernels of pairs."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from pages import rows_of
from scipy.integrate import quad
from support import binomial_limits, sentence, some_fast

import caltest
from caltest import InputError
from caltest.data import Rows
from caltest.predictive import Distribution, Ensemble, GaussianPredictions, Normal
from caltest.statistics import CRPS, ECD, Bias, DawidSebastiani, SKCEOfNumbers, Spread

N = 40


class Counts:
    """Poisson numbers that state their cdf and nothing else."""

    def __init__(self, mean):
        self.cdf = scipy.stats.poisson(mean).cdf


def law_of(name, n=N, seed=0):
    rng = np.random.default_rng(seed)
    place, scale, rate = rng.normal(size=n), rng.uniform(0.5, 2.0, n), rng.uniform(0.2, 15.0, n)
    made = {
        "normal": lambda: Normal(place, sd=scale),
        "student": lambda: Distribution(scipy.stats.t(5.0, place, scale)),
        "newer": lambda: Distribution(scipy.stats.Normal(mu=place, sigma=scale)),
        "poisson": lambda: Distribution(scipy.stats.poisson(rate)),
        "geometric": lambda: Distribution([scipy.stats.geom(1.0 / (1.0 + each)) for each in rate]),
        "cdf of counts": lambda: Distribution(Counts(rate)),
        "ensemble": lambda: Ensemble(rng.normal(place[:, None], 1.0, (n, 12))),
    }
    return made[name]()


SCORED = ["normal", "student", "newer", "poisson", "geometric", "cdf of counts", "ensemble"]
SCORES = {"crps": CRPS(), "dawid_sebastiani": DawidSebastiani(), "ecd": ECD()}


def drawn(law, seed=0, size=None):
    found = law.draw(np.random.default_rng(seed), size or 1)
    return found if size else found[0]


# ---------------------------------------------------------------------- scores


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", some_fast(SCORED, "poisson", "ensemble", mark="level"))
def test_scores_are_0_on_average(name, score):
    """Of 40 means of 4 000 draws the mean square z is below 2.5 in all but 1 of 10⁶ cases."""
    law = law_of(name)
    if name == "cdf of counts" and score != "crps":
        with pytest.raises(InputError, match=r"state no (mean and variance|density)"):
            caltest.test(law, drawn(law), SCORES[score])
        return
    if score == "ecd" and name == "normal":
        return  # half of the next
    values = SCORES[score].given(Rows(law)).scores.function(drawn(law, 1, 4000))[..., 0]
    z = values.mean(axis=0) / values.std(axis=0) * np.sqrt(len(values))
    assert np.mean(z**2) < 2.5


def test_the_crps_of_counts_is_the_ranked_probability_score():
    rates, grid = np.array([0.3, 4.0, 30.0]), np.arange(200)
    for law in (Distribution(scipy.stats.poisson(rates)), Distribution(Counts(rates))):
        for outcome in (0.0, 3.0, 90.0):
            hand = [
                ((cdf - (grid >= outcome)) ** 2).sum() - (cdf * (1.0 - cdf)).sum()
                for cdf in (scipy.stats.poisson(rate).cdf(grid) for rate in rates)
            ]
            found = caltest.estimate(law, np.full(3, outcome), "crps")
            assert found == pytest.approx(np.mean(hand), rel=1e-10)


def test_the_crps_of_ensembles_is_the_integral():
    law, grid = law_of("ensemble", 3), np.linspace(-20.0, 30.0, 200_001)
    cdf = law.cdf(np.tile(grid[:, None], 3))[1]
    for outcome in (-3.0, 0.4, 8.0):
        excess = (cdf - (grid[:, None] >= outcome)) ** 2 - cdf * (1.0 - cdf)
        found = law.crps_excess(np.full(3, outcome))
        assert found == pytest.approx(np.trapezoid(excess, grid, axis=0), abs=2e-4)


@pytest.mark.level
def test_the_integrated_crps_less_its_expectation_is_0_on_average():
    law = Distribution(scipy.stats.t(4.0, [0.0], 1.0))
    form, one = CRPS().given(Rows(law)), scipy.stats.t(4.0)
    ends = [-np.inf, *one.ppf((np.arange(99) + 0.5) / 99), np.inf]

    def weighted(outcome):
        return form.of_labels(np.array([[outcome]]))[0] * one.pdf(outcome)

    parts = (quad(weighted, *pair, epsabs=1e-9)[0] for pair in pairwise(ends))
    assert abs(sum(parts)) < 2e-6


# ---------------------------------------------------------------------- mixtures


def test_an_ensemble_is_a_mixture_of_its_kernels():
    """As SciPy's, which is one for every row."""
    law = law_of("ensemble", 4)
    sd = np.sqrt(12 ** (-2.0 / 5.0) * law.members.var(axis=1, ddof=1))
    rows = zip(law.members, sd, strict=True)
    same = Distribution(
        [scipy.stats.Mixture([scipy.stats.Normal(mu=m, sigma=s) for m in row]) for row, s in rows]
    )
    outcomes = drawn(law, 4, 3)
    assert same.cdf(outcomes)[1] == pytest.approx(law.cdf(outcomes)[1])
    assert same.log_density(outcomes) == pytest.approx(law.log_density(outcomes))
    assert same.entropy() == pytest.approx(law.entropy(), abs=1e-3)
    assert same.crps_excess(outcomes) == pytest.approx(law.crps_excess(outcomes), abs=1e-3)
    for found, expected in zip(law.mean_and_variance(), same.mean_and_variance(), strict=True):
        assert found == pytest.approx(expected)


# ---------------------------------------------------------------------- clusters

NAMES = ["pit_ks", "pit_kuiper", "pit_cvm", "pit_ad", "bias", "spread", "coverage", "crps", "ecd"]
NAMES += ["dawid_sebastiani", "omnibus", "skce_uq"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_clusters_need_no_lens(name):
    law, codes = law_of("normal", 240), np.arange(240) // 3
    outcomes = drawn(law, 5)
    options = {"n_resamples": 99, "rng": 0}
    found = caltest.test(law, outcomes, name, clusters=codes, **options)
    assert (found.null, found.parameters["clusters"]) == ("cluster_signs", 80)
    if name not in ("omnibus", "skce_uq"):  # whose means are over pairs of different clusters
        assert found.statistic == pytest.approx(caltest.estimate(law, outcomes, name))
        same = caltest.estimate(law, outcomes, name, clusters=codes)
        assert found.statistic == pytest.approx(same)
    for null in ("one_per_cluster", "comonotone"):
        other = caltest.test(law, outcomes, name, clusters=codes, null=null, **options)
        assert other.guarantee == ("exact" if null == "one_per_cluster" else "approximate")


def test_scores_of_cells_are_those_of_outcomes_there():
    law, weights = law_of("poisson"), np.linspace(0.5, 1.5, N)
    for measure in (Bias(), Spread(), CRPS(), DawidSebastiani()):
        form = measure.given(Rows(law, weights=weights))
        middles = drawn(law, 6)
        table, cells = form.row_scores, form.cells_of(middles)
        assert table.shape == form.probs.shape
        expected = [
            float(form.of_labels(np.where(np.arange(N) == k, middles, 3.0)[None])[0]) for k in (2, 7)
        ]
        base = float(form.of_labels(np.full((1, N), 3.0))[0])
        at_three = table[[2, 7], form.cells_of(np.full(N, 3.0))[[2, 7]]]
        scale = 1.0 if measure.name in ("crps", "dawid_sebastiani") else weights.sum()
        steps = (np.array(expected) - base) * scale
        assert table[[2, 7], cells[[2, 7]]] - at_three == pytest.approx(steps, abs=1e-9), measure.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "poisson"])
def test_comonotone_numbers_have_the_law_of_their_rows(name):
    law = law_of(name)
    quantiles = (np.arange(4000) + np.random.default_rng(0).random(4000)) / 4000
    for measure in (Bias(), Spread(), caltest.statistics.PitAndersonDarling()):
        form = measure.given(Rows(law))
        outcomes = form.comonotone().labels(np.tile(quantiles[:, None], N))
        mean, variance = law.mean_and_variance()
        assert np.abs(outcomes.mean(axis=0) - mean).max() < 0.01 * np.sqrt(variance).max()
        assert outcomes.var(axis=0) == pytest.approx(variance, rel=0.02)
        if measure.name != "pit_ad":
            # Sums of scores of all rows rise with the quantile, but for what is inside a cell.
            sums = form.of_labels(outcomes[:: 4000 // 62])
            assert (np.diff(sums) > -1.0 / 28).all()
            assert sums[-1] - sums[0] > 0.2


def test_rows_that_err_the_other_way_are_surprised_together():
    """A part by level has scores of either sign: its comonotone draws do not cancel."""
    law = Normal(np.linspace(0.0, 1.0, 40), sd=1.0)
    form = caltest.statistics.Omnibus().given(Rows(law)).components[3].form
    quantiles = np.repeat(np.random.default_rng(0).random(2000)[:, None], 40, axis=1)
    together = form.of_labels(form.comonotone().labels(quantiles)).var()
    assert together > 50.0 * form.of_labels(law.quantile(quantiles)).var()


@pytest.mark.level
def test_copies_are_no_new_evidence():
    law = Normal(np.zeros(60), sd=1.0)
    outcomes = drawn(law, 8)
    copies = np.repeat(np.arange(60), 20)
    alone = caltest.test(law, outcomes, rng=0)
    many = caltest.test(law.take(copies), outcomes[copies], rng=0, clusters=copies)
    assert caltest.test(law.take(copies), outcomes[copies], rng=0).pvalue < 0.01
    assert alone.pvalue > 0.05
    assert many.pvalue > 0.05


DATA_SETS = 120
SIZED = [
    ("normal", 20, name)
    for name in ("bias", "spread", "pit_ad", "coverage", "crps", "ecd", "dawid_sebastiani", "omnibus")
] + [("poisson", 60, name) for name in ("bias", "pit_ad", "crps")]  # the rest is of the study


@pytest.mark.level
@pytest.mark.parametrize("case", SIZED, ids=str)
def test_sizes_where_the_rows_of_a_cluster_share_everything(case):
    name, clusters, statistic = case
    codes = np.repeat(np.arange(clusters), 4)
    law, stream = law_of(name, len(codes), clusters), np.random.default_rng(clusters)
    uniforms = stream.random((DATA_SETS, clusters))[:, codes]
    pvalues, options = np.empty(DATA_SETS), {"clusters": codes, "n_resamples": 99}
    for seed, each in enumerate(law.quantile(uniforms)):
        pvalues[seed] = caltest.test(law, each, statistic, rng=seed, **options).pvalue
    for level in (0.01, 0.05, 0.1):
        assert np.mean(pvalues <= level) <= binomial_limits(DATA_SETS, level)[1]


@pytest.mark.level
@pytest.mark.parametrize("name", ["omnibus", "crps", "skce_uq"])
def test_power_with_clusters(name):
    n = 240 if name == "skce_uq" else 600
    codes, found = np.arange(n) // 4, []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        mean = rng.normal(size=n)
        shared = 0.7 * rng.normal(size=n // 4)[codes] + np.sqrt(0.51) * rng.normal(size=n)
        law = Normal(mean, sd=1.0)
        options = {"clusters": codes, "n_resamples": 199, "rng": seed}
        found.append(caltest.test(law, mean + 1.5 * shared, name, **options).pvalue)
    assert np.mean(np.array(found) <= 0.05) > 0.75


# ---------------------------------------------------------------------- kernels


def pairs_by_hand(mean, sd, outcomes, weights, of_predictions, of_outcomes):
    """Widmann, Lindsten, Zachariah 2021, Section 5."""

    def kernel(distance, variance):
        total = of_outcomes**2 + variance
        return of_outcomes / np.sqrt(total) * np.exp(-(distance**2) / (2.0 * total))

    apart, both = np.subtract.outer(mean, mean), np.add.outer(sd**2, sd**2)
    k = np.exp(-np.hypot(apart, np.subtract.outer(sd, sd)) / of_predictions)
    one = kernel(np.subtract.outer(mean, outcomes), sd[:, None] ** 2)
    h = kernel(np.subtract.outer(outcomes, outcomes), 0.0) - one - one.T + kernel(apart, both)
    counted = np.outer(weights, weights) * (1.0 - np.eye(len(mean)))
    return float((counted * k * h).sum() / counted.sum())


def test_the_kernel_error_by_hand():
    law = law_of("normal")
    outcomes, weights = drawn(law, 2), np.linspace(0.2, 1.8, N)
    for given in (np.ones(N), weights):
        fitted = SKCEOfNumbers().fitted(Rows(law, weights=given))
        hand = pairs_by_hand(
            law.mean, law.factors[:, 0, 0], outcomes, given, fitted.bandwidth, fitted.outcome_bandwidth
        )
        assert caltest.estimate(law, outcomes, weights=given) == pytest.approx(hand, abs=1e-9)
    mean, sd = law.mean, law.factors[:, 0, 0]
    upper = np.triu_indices(N, 1)
    distances = np.hypot(np.subtract.outer(mean, mean), np.subtract.outer(sd, sd))[upper]
    assert fitted.bandwidth == pytest.approx(np.median(distances))
    at_mean = caltest.estimate(Normal([0.0, 0.0], sd=1.0), [0.0, 0.0], SKCEOfNumbers(1.0, 1.0))
    assert at_mean == pytest.approx(1.0 - np.sqrt(2.0) + 1.0 / np.sqrt(3.0), abs=1e-9)


def test_outcomes_far_apart_do_not_resemble_each_other():
    """Beyond the range of the predictions the kernel repeats itself, and it stays a kernel."""
    law = Normal(np.array([0.0, 1e4, 0.0, 1.0]), sd=1.0)
    statistic = SKCEOfNumbers(1.0, 1.0)
    for outcomes in ([0.0, 1e4, 0.0, 1.0], [1e6, 0.0, 0.0, 3.0]):
        assert np.isfinite(caltest.estimate(law, outcomes, statistic))


@pytest.mark.slow
def test_features_stand_for_all_pairs():
    law = law_of("normal", 700)
    outcomes = drawn(law, 3) * 1.1
    exact, features = (
        caltest.test(law, outcomes, SKCEOfNumbers(approximation=each), n_resamples=199, rng=0)
        for each in (None, "nystrom")
    )
    assert features.statistic == pytest.approx(exact.statistic, rel=0.2)
    assert features.pvalue == pytest.approx(exact.pvalue, abs=0.05)
    assert caltest.test(law, outcomes, "skce_uq", n_resamples=19, rng=0).parameters["approximation"]
    few = SKCEOfNumbers(approximation="nystrom"), SKCEOfNumbers()
    law, outcomes = law_of("normal", 100), drawn(law_of("normal", 100))
    one, two = (caltest.estimate(law, outcomes, each) for each in few)
    assert one == pytest.approx(two, abs=1e-9)


@pytest.mark.slow
def test_pairs_inside_clusters_do_not_count():
    law, codes = law_of("normal"), np.arange(N) // 4
    outcomes, statistic = drawn(law, 3), SKCEOfNumbers(1.0, 1.0)
    found = caltest.estimate(law, outcomes, statistic, clusters=codes)
    alone = caltest.estimate(law, outcomes, statistic, clusters=np.arange(N))
    assert alone == pytest.approx(caltest.estimate(law, outcomes, statistic))
    pairs = total = 0.0
    for i in range(N):
        for j in range(N):
            if codes[i] != codes[j]:
                two = np.array([i, j])
                pairs += caltest.estimate(law.take(two), outcomes[two], statistic)
                total += 1
    assert found == pytest.approx(pairs / total)


DATA = Path(os.environ.get("CALTEST_REFERENCE_DATA", "not here"))


@pytest.mark.level
@pytest.mark.skipif(not DATA.is_dir(), reason="the published tables are not here")
@pytest.mark.parametrize("n", [4, 16, 64])
def test_the_published_study(n):
    """Widmann, Lindsten, Zachariah 2021, one dimension; their test at .05 rejects .142 with n = 4."""

    def published(model):
        rows, case = (
            rows_of(DATA / f"widmann2021_tests_{model}_model.csv"),
            ("SKCE (B = n)", "1", str(n)),
        )
        mine = [row for row in rows if (row["test"], row["dim"], row["nsamples"]) == case]
        return float(mine[0]["testerror"])

    rng, rejected = np.random.default_rng(n), np.zeros((400, 2), dtype=bool)
    for seed, own in enumerate(rejected):
        mean = rng.random(n)
        law, options = Normal(mean, sd=0.1), {"n_resamples": 99, "rng": seed}
        for which, centre in enumerate((mean, 0.1)):
            outcomes = rng.normal(centre, 0.1, n)
            own[which] = caltest.test(law, outcomes, "skce_uq", **options).pvalue <= 0.05
    size, power = rejected.mean(axis=0)
    assert size <= binomial_limits(400, 0.05)[1]
    # Their type II error belongs to a test that rejects too often.
    assert power >= 1.0 - published("uncalibrated") - (0.2 if n == 4 else 0.02)


# ---------------------------------------------------------------------- wrong input

NORMAL = law_of("normal")
VECTORS = GaussianPredictions(np.zeros((4, 2)), np.eye(2))
WRONG = {
    "infinite variance": (
        lambda: caltest.test(scipy.stats.t(2.0, np.zeros(3)), np.zeros(3), "dawid_sebastiani"),
        "row 0 .* variance inf, and 'dawid_sebastiani' needs finite ones",
    ),
    "no mean": (lambda: caltest.test(law_of("cdf of counts"), np.zeros(N), "dawid_sebastiani"),
        "state no mean and variance"),
    "moments of vectors": (lambda: caltest.test(VECTORS, np.zeros((4, 2)), "dawid_sebastiani"),
        "the outcomes are vectors"),
    "clusters of vectors": (
        lambda: caltest.test(VECTORS, np.zeros((4, 2)), "ecd", clusters=[0, 0, 1, 2]),
        "signs of clusters need quantiles, which vectors do not have; give null='one_per_cluster'",
    ),
    "guaranteed": (
        lambda: caltest.test(
            NORMAL,
            np.zeros(N),
            "bias",
            clusters=np.arange(N) // 2,
            null=caltest.nulls.ComonotoneLabels(guaranteed=True),
        ),
        "guaranteed=True is for sums over rows of classes, and 'bias' is none",
    ),
    "one row": (lambda: caltest.test(Normal([0.0], sd=1.0), [0.0], "skce_uq"), "compares rows, and"),
    "kernels of counts": (
        lambda: caltest.test(law_of("poisson"), np.zeros(N), "skce_uq"),
        "'skce_uq' is for .* Gaussian predictions of numbers or members of ensembles, and these are "
        "distributions of numbers",
    ),
    "bandwidth": (lambda: SKCEOfNumbers(0.0), "bandwidth is 0.0; give a positive number"),
    "approximation": (lambda: SKCEOfNumbers(approximation="fourier"), "'fourier'"),
    "options of classes": (
        lambda: caltest.test(
            NORMAL, np.zeros(N), caltest.statistics.UnbiasedSKCE(approximation="nystrom")
        ),
        "the options of 'skce_uq' are for probabilities of classes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_answered_in_a_sentence(case):
    sentence(*WRONG[case])
