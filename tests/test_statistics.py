"""What every statistic keeps: its value by a formula of NumPy, its law and moments, level and power."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit, xlogy
from scipy.stats import norm
from support import binomial_limits, central_moments, dirichlet, every_outcome, labels_from

import caltest
from caltest.binning import EqualMass, EqualWidth
from caltest.data import Rows, sample
from caltest.nulls import NULLS
from caltest.predictive import Normal
from caltest.simulation import tempered
from caltest.statistics import DENSITY_STATISTICS, STATISTICS

# ------------------------------------------------------------------ values, of one probability
#
# Of probabilities p and labels y, (n,), and weights w that are 1 on average.


def bins(binning, p, w):
    """The rows of every bin."""
    cells = binning.cells(sample(p, np.zeros(len(p), int), weights=w).rows)
    return [cells == each for each in np.unique(cells)]


def of_bins(binning, of, p, y, w):
    """A function of the sums of w (y − p), w and w² of every bin."""
    found = [((w * (y - p))[b].sum(), w[b].sum(), (w**2)[b].sum()) for b in bins(binning, p, w)]
    return of(*np.array(found).T)


def log_loss(q, y):
    return -xlogy(y, q) - xlogy(1 - y, 1 - q)


def gain(loss, p, y, w):
    """How much an isotonic fit to tied scores pooled gains, as a mean."""
    _, place = np.unique(p, return_inverse=True)
    counts = np.bincount(place, w)
    fit = isotonic_regression(np.bincount(place, w * y) / counts, weights=counts).x[place]
    return np.average(loss(p, y) - loss(fit.clip(0, 1), y), weights=w)


def path(p, y, w):
    """C at its start and at every distinct score."""
    return np.array([0.0, *((w * (y - p))[p <= x].sum() / len(p) for x in np.unique(p))])


def kernel(width, p, y, w, *, own):
    """The mean over pairs of rows of r_i r_j exp(−|p_i − p_j|/width)."""
    r, k = w * (y - p), np.exp(-np.abs(p[:, None] - p) / width)
    return r @ k @ r / len(p) ** 2 if own else (r @ k @ r - r @ r) / (w.sum() ** 2 - w @ w)


def median_distance(p):
    return np.median(np.abs(p[:, None] - p)[np.triu_indices(len(p), 1)])


def debiased(p, y, w):
    found = 0.0
    for b in bins(EqualWidth(15), p, w):
        n, rate = w[b].sum(), np.average(y[b], weights=w[b])
        if (effective := n**2 / (w[b] @ w[b])) > 1.0 + 1e-9:
            gap = rate - np.average(p[b], weights=w[b])
            found += n / len(p) * (gap**2 - rate * (1 - rate) / (effective - 1))
    return found


def hosmer_lemeshow(p, y, w):
    found = 0.0
    for b in bins(EqualMass(10), p, w):
        mean = np.average(p[b], weights=w[b])
        found += (w * (y - p))[b].sum() ** 2 / ((w[b] @ w[b]) * mean * (1 - mean))
    return found


def cox(p, y, w):
    def loss(line):
        return w @ log_loss(expit(line[0] + line[1] * logit(p)), y)

    return 2.0 * (loss([0, 1]) - minimize(loss, [0, 1], tol=1e-12).fun)


def t_cal(p, y, w):
    """Scale by scale; a bin is that of the middle of tied scores."""
    best, r, v = -np.inf, w * (y - p), w**2 * p * (1 - p)
    for halvings in range((len(p) // 10).bit_length()):
        error = variance = 0.0
        for b in bins(EqualMass(2**halvings), p, w):
            error += (r[b].sum() ** 2 - r[b] @ r[b]) / w[b].sum()
            variance += 2 * (v[b].sum() ** 2 - v[b] @ v[b]) / w[b].sum() ** 2
        best = max(best, error / np.sqrt(variance))
    return best


def largest_z(p, y, w, parts):
    errors = [abs((w * (y - p))[b].sum()) / (np.sqrt((w**2 * p * (1 - p))[b].sum()) + 1) for b in parts]
    return max(errors)


def sizes(of):
    return lambda p, y, w: of_bins(EqualWidth(15), of, p, y, w)


def squared(p, y):
    return (y - p) ** 2


def mean(loss):
    def found(p, y, w):
        expected = (1 - p) * loss(p, np.zeros_like(y)) + p * loss(p, np.ones_like(y))
        return np.average(loss(p, y) - expected, weights=w)

    return found


OF_ONE = {
    "skce_b": lambda p, y, w: 2 * kernel(median_distance(p), p, y, w, own=True),
    "skce_uq": lambda p, y, w: 2 * kernel(median_distance(p), p, y, w, own=False),
    "mmce": lambda p, y, w: kernel(0.4, p, y, w, own=True),
    "ece": sizes(lambda s, n, _: np.abs(s).sum() / n.sum()),
    "mce": sizes(lambda s, n, _: np.abs(s / n).max()),
    "ace": lambda p, y, w: np.abs(of_bins(EqualMass(15), lambda s, *_: s, p, y, w)).sum() / len(p),
    "classwise_ece": sizes(lambda s, n, _: np.abs(s).sum() / n.sum()),
    "esce": lambda p, y, w: np.average(y - p, weights=w),
    "ece_squared": sizes(lambda s, n, _: (s**2 / n).sum() / n.sum()),
    "ece_debiased": debiased,
    "mcb_brier": lambda p, y, w: gain(squared, p, y, w),
    "mcb_log": lambda p, y, w: gain(log_loss, p, y, w),
    "ks": lambda p, y, w: np.abs(path(p, y, w)).max(),
    "kuiper": lambda p, y, w: np.ptp(path(p, y, w)),
    "max_bin": lambda p, y, w: largest_z(p, y, w, bins(EqualMass(10), p, w)),
    "scan": lambda p, y, w: largest_z(p, y, w, [np.ones(len(p), bool)]),  # of fewer than 128 rows
    "t_cal": t_cal,
    "ecd": mean(log_loss),
    "log_score": mean(log_loss),
    "brier": mean(squared),
    "spiegelhalter": lambda p, y, w: (
        w @ ((y - p) * (1 - 2 * p)) / np.sqrt(w**2 @ ((1 - 2 * p) ** 2 * p * (1 - p)))
    ),
    "hosmer_lemeshow": hosmer_lemeshow,
    "citl": lambda p, y, w: w @ (y - p) / np.sqrt(w**2 @ (p * (1 - p))),
    "cox": cox,
}
#: Those whose values have tests of their own, beside what all keep here.
ELSEWHERE = {"omnibus", "skce_ul", "ucme", "ckce", "jkce", "ece_sweep", "smooth_ece"}

P = np.append(np.random.default_rng(0).uniform(0.02, 0.98, 70), np.repeat([0.3, 0.55], 10))
Y = (np.random.default_rng(1).random(90) < P**1.3).astype(int)
UNEVEN = np.random.default_rng(2).uniform(0.3, 2.0, 90)


def _two(p):
    return np.column_stack([1 - np.asarray(p), p])


def test_every_statistic_has_its_value_somewhere():
    assert not set(OF_ONE) & ELSEWHERE
    assert set(OF_ONE) | ELSEWHERE == set(STATISTICS)


@pytest.mark.parametrize("statistic", OF_ONE)
def test_values_by_formula(statistic):
    """Without weights, and with weights where the median distance of kernels does not count them."""
    for weights in (None, UNEVEN)[: 1 if statistic in ("skce_b", "skce_uq") else 2]:
        w = np.ones(90) if weights is None else weights / weights.mean()
        expected = OF_ONE[statistic](P, Y, w)
        found = caltest.estimate(P, Y, statistic, weights=weights)
        assert found == pytest.approx(expected, rel=1e-6 if statistic == "cox" else 1e-9)


@pytest.mark.parametrize("statistic", OF_ONE)
def test_values_through_a_lens(statistic):
    probs = dirichlet(90, 4, 0)
    labels = labels_from(probs, np.random.default_rng(1))
    views = {
        "top_label": (probs.max(axis=1), probs.argmax(axis=1) == labels),
        "class:3": (probs[:, 3], labels == 3),
    }
    for lens, (p, y) in views.items():
        expected = OF_ONE[statistic](p, y.astype(int), np.ones(90))
        found = caltest.estimate(probs, labels, statistic, lens=lens)
        assert found == pytest.approx(expected, rel=1e-5 if statistic == "cox" else 1e-9)


# ------------------------------------------------------------------ values, of numbers

MEANS = np.random.default_rng(3).normal(size=60)
SDS = np.random.default_rng(4).uniform(0.5, 2.0, 60)
X = np.random.default_rng(5).normal(MEANS + 0.3, 1.3)
T = np.arange(1, 200) / 200


def levels(of, x, mean, sd):
    """A function of the share of outcomes at or below every level, less the level."""
    return of((norm.cdf((x - mean) / sd)[:, None] <= T).mean(axis=0) - T)


def at_levels(of):
    return lambda x, mean, sd: levels(of, x, mean, sd)


def coverage(x, mean, sd):
    u, found = norm.cdf((x - mean) / sd), []
    for share in (0.5, 0.8, 0.9, 0.95):
        inside = (u > (1 - share) / 2 + 1e-12) & (u <= (1 + share) / 2 + 1e-12)
        found.append(abs(inside.mean() - share) / np.sqrt(share * (1 - share)))
    return max(found)


def crps(x, mean, sd):
    z = (x - mean) / sd
    score = sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    return np.mean(score - sd / np.sqrt(np.pi))


def by_spread(of):
    def found(x, mean, sd):
        pairs = [
            (len(rows), np.mean((x - mean)[rows] ** 2), np.mean(sd[rows] ** 2))
            for rows in np.array_split(np.argsort(sd), 10)
        ]
        return of(*np.array(pairs).T)

    return found


ENDS = np.array([0, *range(19, 199, 20), 198])
OF_NUMBERS = {
    "pit_ks": at_levels(lambda s: np.abs(s).max()),
    "pit_kuiper": at_levels(lambda s: max(s.max(), 0.0) - min(s.min(), 0.0)),
    "pit_cvm": at_levels(lambda s: (s**2).sum() / 200),
    "pit_ad": at_levels(lambda s: (s**2 / (T * (1 - T))).sum() / 200),
    "pit_chi2": at_levels(lambda s: 10 * (np.diff(s[19::20], prepend=0, append=0) ** 2).sum()),
    "d_calibration": at_levels(lambda s: 10 * (np.diff(s[19::20], prepend=0, append=0) ** 2).sum()),
    "bias": at_levels(lambda s: s.sum() / 200),
    "spread": at_levels(lambda s: (s * np.sign(T - 0.5)).sum() / 200),
    "coverage": coverage,
    "crps": crps,
    "ecd": lambda x, mean, sd: np.mean(((x - mean) / sd) ** 2 - 1) / 2,
    "log_score": lambda x, mean, sd: np.mean(((x - mean) / sd) ** 2 - 1) / 2,
    "dawid_sebastiani": lambda x, mean, sd: np.mean(((x - mean) / sd) ** 2 - 1),
    "nees": lambda x, mean, sd: np.mean(((x - mean) / sd) ** 2),
    "uce": by_spread(lambda n, errors, stated: n @ np.abs(errors - stated) / n.sum()),
    "ence": by_spread(lambda n, errors, stated: np.mean(np.abs(1 - np.sqrt(errors / stated)))),
}
#: Of kernels, of vectors, of times and of points.
OTHERS = {"omnibus", "skce_uq", "energy"} | {*("events", "event_slope", "gnd", "ici", "e50", "e90")}
OTHERS |= {"point_bias", "point_cumulative", "point_slope", "point_kernel"}


@pytest.mark.parametrize("statistic", OF_NUMBERS)
def test_values_of_numbers_by_formula(statistic):
    assert set(OF_NUMBERS) | OTHERS == set(DENSITY_STATISTICS)
    found = caltest.estimate(Normal(MEANS, sd=SDS), X, statistic)
    assert found == pytest.approx(OF_NUMBERS[statistic](X, MEANS, SDS), rel=1e-9)


# ------------------------------------------------------------------ the null

FEW = np.array([0.05, 0.2, 0.4, 0.4, 0.7, 0.9])  # two tied
OUTCOMES, CHANCES = every_outcome(_two(FEW))


@pytest.mark.parametrize("statistic", STATISTICS)
def test_drawn_values_follow_the_enumerated_law(statistic):
    """Every tail of the law of six rows, within binomial limits (1e-5 each)."""
    form = STATISTICS[statistic]().given(Rows(_two(FEW)))
    law, draws = form.of_labels(OUTCOMES), 999 if statistic in ("cox", "omnibus") else 2000
    found = caltest.test(FEW, OUTCOMES[21], statistic, n_resamples=draws, rng=0).null_distribution
    size = 1e-8 * max(np.abs(law).max(), 1.0)
    for value in np.unique(law.round(9)):
        low, high = binomial_limits(draws, min(1.0, CHANCES[law >= value - size].sum()), 1e-5)
        assert low <= np.mean(found >= value - size) <= high


#: Two and three classes, if the statistic is of more than one probability.
MIXED = {2: _two(np.append(FEW, [1e-3, 0.0])), 3: dirichlet(6, 3, 1, 0.5)}
FORMS = {
    (name, m): STATISTICS[name]().given(Rows(probs))
    for name in STATISTICS
    for m, probs in MIXED.items()
    if m == 2 or STATISTICS[name].default_lens is None
}


@pytest.mark.parametrize(("statistic", "m"), [at for at in FORMS if hasattr(FORMS[at], "moments")])
def test_moments_by_enumeration(statistic, m):
    """Of all label vectors, each with its probability."""
    outcomes, chances = every_outcome(MIXED[m])
    values = np.where(chances > 0.0, FORMS[statistic, m].of_labels(outcomes), 0.0)
    mean, variance, third = central_moments(values, chances)
    found = FORMS[statistic, m].moments()
    assert found.mean == pytest.approx(mean, abs=1e-12, rel=1e-9)
    assert found.variance == pytest.approx(variance, rel=1e-9, abs=1e-20)
    if variance > 1e-20:  # in the bins of some every row is alone
        assert found.skewness == pytest.approx(third / variance**1.5, rel=1e-7, abs=1e-8)


# ------------------------------------------------------------------ level and power

DESIGNS = {
    "three classes": lambda rng: rng.dirichlet([0.7] * 3, 60),
    "rare": lambda rng: _two(rng.beta(1, 20, 100)),
    "tied": lambda rng: _two(rng.integers(1, 6, 60) / 6),
}


@pytest.mark.level
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_level(statistic, design):
    """Any of these rates is beyond its limit by chance in 1 of 10 000 runs of them all."""
    found = []
    for seed in range(60 if statistic in ("cox", "omnibus", "ckce") else 300):
        rng = np.random.default_rng([3, seed])
        probs = DESIGNS[design](rng)
        labels = labels_from(probs, rng)
        found.append(caltest.test(probs, labels, statistic, n_resamples=39, rng=seed).pvalue)
    for level in (0.05, 0.2):
        high = binomial_limits(len(found), level, 1e-4 / 90)[1]
        assert np.mean(np.array(found) <= level + 1e-12) <= high


#: What hardly sees an overconfident model.
BLIND = {"ucme", "skce_ul", "mce"}
PAIRS = [
    (statistic, null)
    for statistic in STATISTICS
    for null in ("monte_carlo", "moments", "normal", "chi2", "brownian")
    if statistic not in BLIND and NULLS[null].fits(FORMS[statistic, 2])
]


@pytest.mark.parametrize(("statistic", "null"), PAIRS)
def test_power(statistic, null):
    """A model whose logits are doubled is found."""
    sure = tempered(n_samples=400, alpha=[0.3] * 4, temperature=0.5, rng=0)
    options = {"null": null, "n_resamples": 99, "rng": 0, "lens": "top_label"}
    assert caltest.test(sure.probs, sure.labels, statistic, **options).pvalue <= 0.02
