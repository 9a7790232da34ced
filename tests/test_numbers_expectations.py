"""Expectations over predicted numbers: entropies of counts, the CRPS by integrals, normal limits."""

import warnings

import numpy as np
import pytest
import scipy.special
import scipy.stats as st
from scipy.integrate import quad
from scipy.special import beta, gammaincc, gammaln, ndtr
from support import binomial_limits, sentence

import caltest
from caltest import InputError
from caltest.data import Rows
from caltest.predictive import Distribution, Ensemble, GaussianPredictions, Members, Normal, Quantiles
from caltest.statistics import CRPS, ECD, Bias, DawidSebastiani


class ZeroInflated(st.rv_discrete):
    """A law that states its probabilities alone, whose moments SciPy's sums end too early."""

    def _argcheck(self, mu, share):
        return (mu > 0) & (share >= 0)

    def _pmf(self, k, mu, share):
        return np.where(k == 0, share, 0.0) + (1.0 - share) * st.poisson.pmf(k, mu)


class Stated:
    """Counts of the user's: a cdf that is wrong between whole numbers, and probabilities."""

    def __init__(self, mean):
        self.mean_of_rows = np.asarray(mean)

    def cdf(self, y):
        return np.where(np.asarray(y) < 0, 0.0, gammaincc(np.maximum(y, 0) + 1.0, self.mean_of_rows))

    def pmf(self, y):
        return np.exp(y * np.log(self.mean_of_rows) - self.mean_of_rows - gammaln(y + 1.0))


zero_inflated = ZeroInflated(name="zero_inflated")
TWO = np.ones(2)


def direct(law, last, first=0, step=500_000):
    """−Σ p log p over all whole numbers."""
    total = 0.0
    for start in range(first, last, step):
        logs = law.logpmf(np.arange(start, min(start + step, last))[:, None].astype(float))[:, 0]
        logs = logs[logs > -700.0]
        total -= float((np.exp(logs) * logs).sum())
    return total


COUNTS = {
    **{
        f"Poisson {mean:g}": (st.poisson(mean * TWO), int(mean + 40 * mean**0.5 + 50))
        for mean in (1e-3, 0.2, 30.0, 1e5)
    },
    "negative binomial": (st.nbinom(0.5 * TWO, 0.5 / 100.5), 30_000),
    "binomial": (st.binom(1000, 0.3 * TWO), 1001),
    "hypergeometric": (st.hypergeom(2000, np.array([700, 700]), 120), 121),
    "geometric": (st.geom(0.01 * TWO), 6000),
    "beta-binomial": (st.betabinom(60, 0.5 * TWO, 2.0), 61),
    "zero-inflated": (zero_inflated(1e4 * TWO, 0.4), 20_000),
    "newer binomial": (st.Binomial(n=np.array([40, 40]), p=0.3), 41),
    "zeta": (st.zipf(5.0 * TWO), 100_000),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", COUNTS)
def test_entropies_of_counts_are_sums_over_their_table(name):
    law, last = COUNTS[name]
    with np.errstate(divide="ignore"):
        expected = direct(law, last)
    predicted = Distribution(law)
    assert predicted.entropy() == pytest.approx([expected] * 2, abs=2e-9)
    assert predicted.take([1]).entropy() == pytest.approx([expected], abs=2e-9)
    outcomes = predicted.draw(np.random.default_rng(0), 1)[0]
    surprise = -law.logpmf(outcomes).mean()
    assert caltest.estimate(predicted, outcomes, "ecd") == pytest.approx(surprise - expected, abs=1e-8)


def test_entropies_of_the_finding():
    """Of 10⁷ the asymptotic expansion of the entropy is right to 10⁻¹⁵."""
    mean = 1e7
    expected = 0.5 * np.log(2 * np.pi * np.e * mean) - 1 / (12 * mean) - 1 / (24 * mean**2)
    assert Distribution(st.poisson([mean] * 3)).entropy() == pytest.approx([expected] * 3, abs=2e-9)
    law = Distribution(st.poisson([1e5] * 2))
    assert caltest.estimate(law, [1e5, 1e5], "ecd") == pytest.approx(-0.5, abs=1e-3)


def test_moments_that_end_early_are_those_of_the_table():
    """SciPy's sums give 5 972 and 1.87 · 10⁷."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, variance = Distribution(zero_inflated(np.array([1e4, 2.0]), 0.4)).mean_and_variance()
    share = np.array([1e4, 2.0])
    assert mean == pytest.approx(0.6 * share)
    assert variance == pytest.approx(0.6 * share * (1.0 + 0.4 * share))
    heavy = st.zipf([3.2, 2.5])  # the table lacks what its tail adds
    assert Distribution(heavy).mean_and_variance()[1].tolist() == heavy.var().tolist()


# ---------------------------------------------------------------------- the CRPS by integrals


def student(df):
    half = 2.0 * df**0.5 / (df - 1.0) * beta(0.5, df - 0.5) / beta(0.5, 0.5 * df) ** 2
    law = st.t(df)
    return law, half, lambda y: y * (2 * law.cdf(y) - 1) + 2 * law.pdf(y) * (df + y * y) / (df - 1)


def lognormal(sd):
    mean = np.exp(0.5 * sd * sd)
    half = mean * (2.0 * ndtr(sd / 2**0.5) - 1.0)

    def size(y):
        z = np.log(y) / sd
        return y * (2.0 * ndtr(z) - 1.0) + 2.0 * mean * ndtr(sd - z) - mean

    return st.lognorm(sd), half, size


def pareto(shape):
    law, mean = st.genpareto(shape), 1.0 / (1.0 - shape)
    half = mean / (2.0 - shape)
    return law, half, lambda y: y - mean + 2.0 * law.sf(y) ** (1.0 - shape) * mean


def gamma(shape):
    law, more = st.gamma(shape), st.gamma(shape + 1.0)
    half = 1.0 / beta(0.5, shape)
    return law, half, lambda y: y * (2 * law.cdf(y) - 1) - shape * (2 * more.cdf(y) - 1)


def by_parts(law, half, mean):
    """E|X − y| of laws above 0, whose survival function is integrated."""
    return law, half, lambda y: y - mean + 2.0 * quad(law.sf, y, np.inf, epsabs=1e-13, limit=400)[0]


#: A law, ½ E|X − X′|, and E|X − y|.
CLOSED = {
    "normal": (st.norm(), np.pi**-0.5, lambda y: y * (2 * ndtr(y) - 1) + 2 * st.norm.pdf(y)),
    "exponential": (st.expon(), 0.5, lambda y: y - 1.0 + 2.0 * np.exp(-y)),
    **{f"gamma {shape}": gamma(shape) for shape in (0.5, 2.0, 50.0)},
    **{f"generalised Pareto {shape}": pareto(shape) for shape in (0.3, 0.9, 0.95)},
    **{f"Student {df}": student(df) for df in (1.5, 2.0, 3.0)},
    **{f"lognormal {sd}": lognormal(sd) for sd in (1.0, 2.0, 3.0)},
    "uniform": (st.uniform(), 1.0 / 6.0, lambda y: y * y - y + 0.5 if 0.0 < y < 1.0 else abs(y - 0.5)),
    "Weibull .5": by_parts(st.weibull_min(0.5), 1.5, 2.0),
    "Laplace": (st.laplace(), 0.75, lambda y: abs(y) + np.exp(-abs(y))),
    "logistic": (st.logistic(), 1.0, lambda y: y - 2.0 * np.log(st.logistic.cdf(y))),
    "Lomax 1.2": (st.lomax(1.2), 5.0 - 1.0 / 1.4, lambda y: y - 5.0 + 10.0 * (1.0 + y) ** -0.2),
    "Weibull 3": by_parts(
        st.weibull_min(3.0),
        scipy.special.gamma(4 / 3) * (1.0 - 2.0 ** (-1 / 3)),
        scipy.special.gamma(4 / 3),
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CLOSED)
def test_the_crps_without_a_closed_form_is_right_to_1e_4(name):
    law, half, size = CLOSED[name]
    predicted = Distribution([law])
    for outcome in law.ppf([1e-6, 0.01, 0.2, 0.5, 0.61, 0.9, 0.999, 1.0 - 1e-9]):
        score = size(outcome) - half
        assert predicted.crps(np.array([outcome])) == pytest.approx([score], rel=1e-4)
        found = caltest.estimate(predicted, [outcome], "crps")
        assert found == pytest.approx(score - half, abs=1e-4 * score + 1e-4 * half)


def test_the_crps_of_laws_with_atoms_and_gaps():
    dry, rng = np.linspace(0.05, 0.9, 6), np.random.default_rng(0)

    class Rain:
        def cdf(self, y):
            return np.where(np.asarray(y) < 0.0, 0.0, dry + (1.0 - dry) * st.gamma.cdf(y, 2.0))

    rain = Distribution(Rain())
    for row, share in enumerate(dry):

        def cdf(z, share=share):
            return share + (1.0 - share) * st.gamma.cdf(z, 2.0)

        for outcome in (0.0, 0.5, 3.0):
            below = quad(lambda z: cdf(z) ** 2, 0.0, outcome)[0]
            above = quad(lambda z: (1.0 - cdf(z)) ** 2, outcome, np.inf)[0]
            assert rain.crps(np.full(6, outcome))[row] == pytest.approx(below + above, rel=2e-4)
    mixture = Ensemble(rng.normal(0.0, 50.0, (5, 3)), 0.01)

    class Mixed:
        def cdf(self, y):
            return mixture.cdf(np.broadcast_to(y, np.broadcast_shapes(np.shape(y), (5,))))[1]

    outcomes = mixture.draw(rng, 40)
    assert Distribution(Mixed()).crps(outcomes) == pytest.approx(mixture.crps(outcomes), rel=1e-4)


def test_counts_too_many_for_a_table_are_integrated():
    few = [st.poisson(0.3), st.poisson(3.0), st.nbinom(0.5, 0.05), st.geom(0.01), st.binom(4000, 0.4)]
    many = st.randint(0, 10**8)
    law, table = Distribution([*few, many]), Distribution(few)
    assert law.crps(np.full(6, 3e7))[5] == pytest.approx((0.3**2 - 0.3 + 1 / 3) * 1e8, rel=1e-4)
    for level in (0.01, 0.5, 0.9, 0.999):
        outcomes = np.array([each.ppf(level) for each in (*few, many)])
        assert law.crps(outcomes)[:5] == pytest.approx(table.crps(outcomes[:5]), rel=1e-4)


@pytest.mark.parametrize(
    "law",
    [st.cauchy(), st.pareto(0.9), st.loggamma(1e-3), st.genpareto(1.3), st.halfcauchy(), st.levy()],
    ids=lambda law: law.dist.name,
)
def test_means_that_are_infinite_are_refused(law):
    if law.dist.name == "loggamma":  # finite, and far out on one side
        assert np.isfinite(caltest.estimate([law] * 2, [0.0, 1.0], "crps"))
        return
    with pytest.raises(InputError, match=r"row 0 .* as if the mean were infinite; use 'pit_ad'"):
        caltest.test([law] * 2, [1.0, 2.0], "crps")


@pytest.mark.filterwarnings("error")
def test_quantiles_that_do_not_rise_are_refused():
    """As SciPy 1.17's far out for some inverse Gaussian laws, with warnings."""

    class Falling:
        cdf = st.norm([0.0, 0.0]).cdf

        def ppf(self, levels):
            warnings.warn("unable to locate", RuntimeWarning, stacklevel=1)
            return np.where(levels < 1e-9, 5.0, st.norm.ppf(levels))

    with pytest.raises(InputError, match=r"row 0 .* do not rise with their level; use 'pit_ad'"):
        Distribution(Falling()).crps(np.zeros(2))


# ---------------------------------------------------------------------- asked at whole numbers

MEANS = np.linspace(0.5, 30.0, 15)


@pytest.mark.parametrize("null", ["monte_carlo", "normal"])
@pytest.mark.parametrize("statistic", ["omnibus", "bias", "crps", "ecd"])
def test_counts_of_the_users_are_asked_at_whole_numbers(statistic, null):
    if null == "normal" and statistic == "omnibus":
        return
    outcomes = np.random.default_rng(1).poisson(MEANS)
    own, scipy_s = (
        caltest.test(law, outcomes, statistic, null=null, rng=0, n_resamples=199)
        for law in (Stated(MEANS), Distribution(st.poisson(MEANS)))
    )
    if statistic != "omnibus":
        assert own.statistic == pytest.approx(scipy_s.statistic, rel=1e-9, abs=1e-9)
    assert own.pvalue == pytest.approx(scipy_s.pvalue, abs=0.15)  # other draws


@pytest.mark.parametrize(
    "law",
    [
        st.hypergeom(50, np.array([20, 30]), 12),
        [st.hypergeom(50, 20, 12), st.norm(5.0, 2.0)],
        st.Binomial(n=np.array([12, 12]), p=np.array([0.4, 0.6])),
        st.nhypergeom(30, np.array([10, 12]), 4),
        st.binom(np.array([12, 12]), 0.4, loc=0.5),
        [st.rv_discrete(values=([0.0, 0.5, 5.0], [0.2, 0.3, 0.5]))] * 2,
    ],
    ids=["hypergeometric", "beside a normal", "newer", "negative", "halves", "table"],
)
def test_discrete_laws_state_what_is_below(law):
    parts = law if isinstance(law, list) else None
    for outcome in (0.0, 0.5, 4.5, 5.0):
        below, at = Distribution(law).cdf(np.full(2, outcome))
        for row in range(2):

            def chance(y, row=row):
                if parts is not None:
                    own = parts[row]
                    return own.pmf(y) if hasattr(own, "pmf") else 0.0
                return np.broadcast_to(law.pmf(y), 2)[row]

            if parts is not None and not hasattr(parts[row], "pmf"):
                assert [below[row], at[row]] == pytest.approx([parts[row].cdf(outcome)] * 2)
                continue
            places = np.arange(0.0, outcome + 0.25, 0.5)
            masses = [chance(y) for y in places]
            assert at[row] == pytest.approx(sum(masses), abs=1e-12)
            assert below[row] == pytest.approx(sum(masses[:-1]), abs=1e-12)


# ---------------------------------------------------------------------- normal limits

RATES = np.random.default_rng(5).uniform(0.5, 30.0, 100)
SCORES = ["crps", "ecd", "dawid_sebastiani", "bias"]
LAWS = {"Poisson": st.poisson(RATES), "negative binomial": st.nbinom(4.0, 4.0 / (4.0 + RATES))}


def z_of(result):
    return -st.norm.ppf(0.5 * result.pvalue) * np.sign(result.statistic)


@pytest.mark.parametrize("name", LAWS)
def test_normal_limits_have_the_moments_of_scores(name):
    """As in Wei and Held 2014: (Σ score − Σ E) / √Σ Var; dss in closed form, the others summed."""
    law, grid = LAWS[name], np.arange(3000.0)[:, None]
    outcomes = law.rvs(random_state=np.random.default_rng(2))
    mean, variance, kurtosis = (np.asarray(each) for each in law.stats("mvk"))
    if name == "Poisson":
        assert kurtosis == pytest.approx(1.0 / RATES)  # so that Var dss is 2 + 1/μ
    squares = (outcomes - mean) ** 2 / variance - 1.0
    found = caltest.test(law, outcomes, "dawid_sebastiani", null="normal")
    assert z_of(found) == pytest.approx(squares.sum() / np.sqrt((2.0 + kurtosis).sum()), abs=1e-6)
    masses, cdf = law.pmf(grid), law.cdf(grid)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(masses > 0.0, -np.log(masses), 0.0)
    rows, at = np.arange(100), outcomes.astype(int)
    ranked = np.cumsum(cdf**2, axis=0) - cdf**2 + np.cumsum(((1 - cdf) ** 2)[::-1], axis=0)[::-1]
    for statistic, table in (("ecd", logs), ("crps", ranked)):
        expected = (masses * table).sum(axis=0)
        spread = (masses * (table - expected) ** 2).sum()
        z = (table[at, rows] - expected).sum() / np.sqrt(spread)
        assert z_of(caltest.test(law, outcomes, statistic, null="normal")) == pytest.approx(z, abs=1e-6)


def test_normal_limits_of_continuous_laws():
    outcomes = np.random.default_rng(0).normal(RATES, 1.3 * RATES)
    law = Normal(RATES, sd=RATES)
    z = (outcomes - RATES) / RATES
    found = caltest.test(law, outcomes, "dawid_sebastiani", null="normal")
    assert z_of(found) == pytest.approx((z**2 - 1.0).sum() / np.sqrt(200.0), abs=1e-6)

    def excess(x):
        return x * (2.0 * ndtr(x) - 1.0) + 2.0 * st.norm.pdf(x) - 2.0 / np.pi**0.5

    spread = quad(lambda x: excess(x) ** 2 * st.norm.pdf(x), -12.0, 12.0)[0]
    expected = (RATES * excess(z)).sum() / np.sqrt((RATES**2).sum() * spread)
    assert z_of(caltest.test(law, outcomes, "crps", null="normal")) == pytest.approx(expected, abs=1e-5)
    found = caltest.test(law, outcomes, "bias", null="normal")
    assert z_of(found) == pytest.approx((0.5 - ndtr(z)).sum() / np.sqrt(100 / 12), rel=0.01)


@pytest.mark.filterwarnings("ignore:The statistic depends on few")
@pytest.mark.parametrize("statistic", SCORES)
def test_normal_limits_are_near_the_exact_null(statistic):
    """Also for heavy tails, members and ranks; a note says where few rows count."""
    rng = np.random.default_rng(7)
    members = rng.normal(size=(100, 19))
    laws = {
        **{name: Distribution(law) for name, law in LAWS.items()},
        "gamma": Distribution(st.gamma(8.0, scale=RATES)),
    }
    if statistic in ("crps", "bias"):
        laws["members"] = Members(members)
    for name, law in laws.items():
        y = rng.normal(size=100) if name == "members" else law.draw(np.random.default_rng(4), 1)[0]
        limit, exact = (
            caltest.test(law, y, statistic, null=null, rng=0, n_resamples=1999).pvalue
            for null in ("normal", "monte_carlo")
        )
        assert limit == pytest.approx(exact, abs=0.06), name


@pytest.mark.level
@pytest.mark.filterwarnings("ignore:The statistic depends on few")
@pytest.mark.parametrize("statistic", [CRPS, ECD, DawidSebastiani, Bias])
@pytest.mark.parametrize("name", LAWS)
def test_the_level_and_power_of_normal_limits(name, statistic):
    """Of 2 000 data sets of 100 rows, all at once: within limits of 99.9% about 5%."""
    law, rng = Distribution(LAWS[name]), np.random.default_rng(11)
    form = statistic().given(Rows(law))
    _, mean, variance = form.cumulant_generator(0.0)

    def pvalues(outcomes):
        return 2.0 * ndtr(-np.abs(form.of_labels(outcomes) - mean) / variance**0.5)

    drawn = law.draw(rng, 2000)
    found = pvalues(drawn)
    assert caltest.test(law, drawn[0], statistic(), null="normal").pvalue == pytest.approx(found[0])
    low, high = binomial_limits(2000, 0.05, 0.001)
    assert low <= np.mean(found <= 0.05) <= high
    wider = Distribution(st.nbinom(1.0, 1.0 / (1.0 + RATES)))
    assert np.mean(pvalues(wider.draw(rng, 200)) <= 0.05) > 0.6


def test_sums_whose_moments_are_not_known_are_refused_in_true_words():
    vectors = GaussianPredictions(np.zeros((9, 2)), np.eye(2)), np.ones((9, 2))
    quantiles = Quantiles([0.1, 0.5, 0.9], np.tile([-1.0, 0.0, 1.0], (9, 1))), np.ones(9)
    for (law, outcomes), statistic in ((vectors, "ecd"), (quantiles, "bias")):
        with pytest.raises(InputError, match=r"of known mean and variance, which .* possible here: "):
            caltest.test(law, outcomes, statistic, null="normal")


# ---------------------------------------------------------------------- shapes of spreads

MATRICES = np.tile([[1.0, 0.3], [0.3, 0.8]], (5, 1, 1))
POINTS, PAIRS = np.zeros((5, 2)), np.zeros((2, 2))
SHAPES = {
    "matrices": (lambda: Normal(POINTS, sd=MATRICES), r"sd has shape \(5, 2, 2\); .*as variance="),
    "one matrix": (lambda: Normal(POINTS, sd=MATRICES[0]), r"sd has shape \(2, 2\); .*as variance="),
    "one matrix for as many rows": (lambda: Normal(PAIRS, sd=MATRICES[0]), "matrix; .*as variance="),
    "one a row for vectors": (lambda: Normal(POINTS, sd=np.ones(5)), r"has shape \(5,\); .*\(5, 2\)"),
    "one an entry": (lambda: Normal(POINTS, sd=[1.0, 2.0]), r"sd has shape \(2,\); give \(5, 2\)"),
    "a matrix for numbers": (lambda: Normal(np.zeros(3), sd=np.eye(3) + 1), r"\(3, 3\); give \(3,\)"),
    "a column for numbers": (lambda: Normal(np.zeros(3), sd=np.ones((3, 1))), r"sd has shape \(3, 1\)"),
    "variances of entries": (lambda: Normal(POINTS, variance=np.ones((5, 2))),
        r"the variance has shape \(5, 2\); .* give \(5, 2, 2\) matrices"),
    "variances for as many rows": (lambda: Normal(PAIRS, variance=[[1.0, 2.0], [3.0, 4.0]]),
        "not symmetric"),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES)
def test_spreads_of_other_shapes_are_refused(case):
    sentence(*SHAPES[case])


def test_spreads_that_are_clear_are_taken():
    outcomes = np.ones((5, 2))
    by_entry = Normal(POINTS, sd=[[1.0, 2.0]] * 5)
    assert caltest.estimate(by_entry, outcomes, "nees") == pytest.approx(1.25)
    assert caltest.estimate(Normal(POINTS, sd=[[1.0, 2.0]]), outcomes, "nees") == pytest.approx(1.25)
    hand = np.linalg.solve(MATRICES[0], [1.0, 1.0]).sum()
    for matrices in (MATRICES, MATRICES[0]):
        found = caltest.estimate(Normal(POINTS, variance=matrices), outcomes, "nees")
        assert found == pytest.approx(hand)
    for sd in (2.0, [2.0], np.full(2, 2.0), np.full((2, 1), 2.0)):
        column = np.shape(sd) == (2, 1)
        law = Normal(np.zeros((2, 1)) if column else np.zeros(2), sd=sd)
        assert caltest.estimate(law, [2.0, 2.0], "nees") == pytest.approx(1.0)
    assert Normal(PAIRS, sd=np.ones((2, 2))).n_samples == 2
    assert Normal(PAIRS, sd=[[1.0, 2.0], [3.0, 1.0]]).n_samples == 2
