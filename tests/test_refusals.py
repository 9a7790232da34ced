"""Every wrong option is refused in one sentence, which says what to give instead."""

import numpy as np
import pytest
from ridge import GROUPS
from support import P6, Y6, dirichlet, sentence

import caltest
from caltest import binning, estimation, kernels, lenses, nulls, plots, predictive, statistics

#: What the sources name, beside what is public.
NAMES = {"np": np, "caltest": caltest, "P6": P6, "Y6": Y6, "GROUPS": GROUPS, "inf": np.inf}
for module in (binning, estimation, kernels, lenses, nulls, plots, predictive, statistics):
    NAMES |= {name: getattr(module, name) for name in module.__all__}


class Own(kernels.Kernel):
    bound = 1.0

    def __call__(self, x, y):
        return np.ones((len(x), len(y)))

    def paired(self, x, y):
        return np.ones(len(x))


NAMES |= {
    "OWN": Own(),
    "EYES": kernels.MatrixKernel([(kernels.Gaussian(), np.eye(3)), (kernels.Exponential(), np.eye(3))]),
    "FOUR": dirichlet(5, 4, 0),
    "STEPS": np.round(dirichlet(40, 5, 0) / 0.05) * 0.05,
    "THREE": dirichlet(300, 3, 0),
}


def asked(**options):
    return caltest.test(P6, Y6, **options)


def rounded(**options):
    return caltest.test(NAMES["STEPS"], np.arange(40) % 5, **{"rounding": 0.05, **options})


def seen(lens):
    return caltest.estimate(NAMES["FOUR"], [0, 1, 2, 3, 0], "ece", lens=lens)


def bounded(**options):
    options = {"rng": 0, **options}
    return caltest.miscalibration_bounds(NAMES["THREE"][:30], [0, 1, 2] * 10, **options)


def certified(**options):
    return caltest.certificate([0.2, 0.7] * 10, [0, 1] * 10, **options)


def risks(**options):
    options = {"lens": "top_label", "rng": 0, **options}
    return caltest.estimate_squared_error(NAMES["THREE"], np.arange(300) % 3, **options)


def planned(**options):
    return caltest.plan([0.2, 0.7] * 40, **options)


def hits(probs, labels):
    return float(np.mean(probs.argmax(axis=1) == labels))


def calm(n, rng):
    return caltest.simulation.tempered(n, temperature=1.0, rng=rng)


CALLS = (calm, hits, asked, rounded, seen, bounded, certified, risks, planned)
NAMES |= {call.__name__: call for call in CALLS}

REFUSED = {
    # ------------------------------------------------------------------ statistics
    "HosmerLemeshow(0)": "groups is 0; give a positive whole number",
    "HosmerLemeshow(2.5)": r"groups is 2\.5",
    "asked(statistic='cox', lens='class:0', alternative='less')": "the alternative 'less'",
    **{
        f"ECD(clip={x})": "give a small probability such as 1e-7"
        for x in ("0.0", "1.0", "-1e-7", "'1'", "True")
    },
    **{f"TCal({x})": "min_rows" for x in (0, -3, 2.5, "'ten'")},
    **{
        f"Omnibus(multiples={x})": "give positive numbers"
        for x in ("()", "(0.0,)", "(inf,)", "'abc'", "None")
    },
    **{f"LinearSKCE({x})": "pairing|seed" for x in ("pairing='both'", "seed=-1", "seed='x'")},
    **{f"ECESweep(norm={x})": "norm is .*; give 1 or 2" for x in (0, 3, 1.5, "'2'")},
    **{f"ClasswiseECE({x})": "give a binning of one score" for x in ("Uniform(10)", 15, "'equal'")},
    "ECE(15)": "binning is 15; give an object of caltest.binning",
    "ECE(distance='l3')": "there is no distance 'l3'",
    "Scan('up')": "there is no side 'up'",
    "LargestBinError('over', 10)": "give an object of caltest.binning",
    "asked(statistic='scan', lens='sorted')": "measures one probability",
    "UnbiasedSKCE('gaussian')": "kernel is 'gaussian'; give an object",
    "UnbiasedSKCE(approximation='lanczos')": "no approximation .lanczos.; choices: auto, nystrom, fo",
    "UnbiasedSKCE(approximation='nystrom', rank=0)": "rank is 0; give a positive whole number",
    "UnbiasedSKCE(Gaussian() + OWN, 'fourier')": "no Fourier features of .*; use approx",
    "UnbiasedSKCE(EYES, 'nystrom')": "kernel has 2 parts, and an approximation takes one",
    "CKCE('gaussian')": "kernel is 'gaussian'; give an object of caltest.kernels",
    "CKCE(EYES)": "kernel has 2 parts; ckce takes one",
    "CKCE(regularization=0.0)": r"regularization is 0.0; give a positive number up to 1e\+06, or 'n",
    "CKCE(regularization=1e12)": "regularization is 1000000000000.0; give a positive number up to",
    "CKCE(regularization=True)": "regularization is True; give a positive number",
    "CKCE(regularization=np.nan)": "regularization is nan; give a positive number",
    "CKCE(regularization='n^-1/3')": "there is no rule for the regularization 'n.-1/3'; did you",
    "CKCE(method='cholesky')": "there is no method 'cholesky'",
    "CKCE(features=0)": "features is 0; give a positive whole number",
    "CKCE(features=20, method='exact')": "features is for method='nystrom' or 'fourier'",
    "CKCE(OWN, method='fourier')": "not .*Own.*; method='nystrom' takes",
    "CKCE(method='fourier', groups=GROUPS)": "be combined with groups; use method='nystrom'",
    "CKCE(groups=[0.5, inf])": r"groups has the entry inf in row 1 \(counting from 0\)",
    "CKCE(groups=[[1, 2], [3, 4]])": r"groups has shape \(2, 2\); give one column",
    "CKCE(groups=['a', None])": "groups has missing values",
    "CKCE(seed=-1)": "seed is -1; give a whole number that is not negative",
    "asked(statistic=CKCE(groups=GROUPS[:4]))": "groups has 4 entries for 6 rows; give one per row",
    "UCME(locations=[[0.5, 0.5], [0.5, 0.6]])": r"\[0.5, 0.6\] in row 1 \(counting from 0\); give rows",
    "UCME(locations=[[1.5, -0.5]])": r"\[1.5, -0.5\] in row 0",
    "UCME(locations=[[np.nan, 1.0]])": r"\[nan, 1.0\] in row 0",
    "UCME(locations=[0.5, 0.5])": r"shape \(2,\); give rows of m probabilities",
    "UCME(locations=np.zeros((0, 3)))": r"shape \(0, 3\)",
    **{
        f"UCME(locations={x})": "give a number of them, or points"
        for x in ("[['a', 'b']]", "[[.5, .5], [1.]]")
    },
    **{
        f"UCME(locations={x})": "locations is .*; give a positive whole number"
        for x in ("'ten'", 0, 1.5)
    },
    "UCME(seed=-1)": "seed is -1",
    "UCME('gaussian')": "kernel is 'gaussian'",
    "UCME(EYES)": "kernel",
    "asked(statistic=UCME(locations=[[0.5, 0.5]]))": "points of 2 classes, and there are 3; give a",
    # ------------------------------------------------------------------ names that are none
    "asked(null='bootstrap', statistic='skce_b')": "U-statistic of degree two, which 'skce_b' is not; "
    "possible here: monte_carlo, moments, bound",
    "asked(null='normal')": "sum of independent terms of known mean and variance, which 'skce_uq' is n",
    "asked(null='moments', statistic=hits)": "which 'hits' is not; possible here: monte_carlo",
    "asked(null='xyz')": "there is no null 'xyz'; choices: monte_carlo, moments",
    "asked(null=3)": "null is 3; give a name or an object of caltest.nulls",
    "asked(statistic='skce')": "there is no statistic 'skce'; did you mean 'skce_",
    "asked(statistic=7)": "statistic is 7; give a name",
    "asked(alternative='less')": "the alternative 'less' is not one that 'omnibus' with the null "
    "'monte_carlo' can answer; possible: greater",
    "asked(alternative='bigger', statistic=hits)": "possible: greater, less, two-sided",
    "asked(n_resamples=0)": "n_resamples is 0; give a positive whole number",
    **{f"asked(n_resamples={x})": f"n_resamples is {x}" for x in ("-5", "99.0", "True", "'99'")},
    "asked(rng=np.random.RandomState(0))": "rng is RandomState",
    # ------------------------------------------------------------------ kernels
    **{f"{x} * Linear()": "give a positive number" for x in ("0", "-1.0", "np.nan", "inf")},
    "Gaussian(distance='tv')": "not positive semi-definite.*the kernel Exponential",
    "Exponential(distance='helinger')": r"did you mean 'hellinger'\?",
    "Exponential('medain')": r"did you mean 'median'\?",
    "Exponential('silverman')": "choices: median, median_exact",
    "Gaussian(-1)": "give a positive number",
    **{
        f"Exponential({x})": "give a positive number, at least 1e-.*, or the name of a rule"
        for x in ("0", "-1.0", "np.nan", "inf", "True", "None", "1e-200", "[1.0]")
    },
    "MatrixKernel([])": "give pairs of a real-valued kernel",
    "MatrixKernel([(Linear(), np.eye(2)), (Linear(), np.eye(3))])": "have 2 and 3 rows",
    "MatrixKernel([(Linear(), np.eye(2)), (Linear(), [[1, 2], [2, 1]])])": "1 .*eigenvalue is -1",
    "MatrixKernel([(Linear(), [[1, 2], [0, 1]])])": "Matrix 0 .*not symmetric.*up to 2",
    "MatrixKernel([(Linear(), [1, 2])])": r"has shape \(2,\)",
    "MatrixKernel([(Linear(), [[np.nan]])])": "finite",
    "MatrixKernel([('linear', np.eye(2))])": "give pairs of a real-valued kernel",
    **{
        f"{x}": r"scale it so that these lie between 1e-40 and 1e\+40"
        for f in ("1e-40", "1e40")
        for x in (
            f"{f} * ({f} * Gaussian())",
            f"{f} * ({f} * Gaussian() + {f} * Gaussian())",
            f"MatrixKernel([({f} * Gaussian(), {f} * np.eye(3))])",
            f"MatrixKernel([(Gaussian(), {f}**2 * np.eye(3))])",
        )
    },
    # ------------------------------------------------------------------ bins, lenses, nulls
    **{f"{x}(0)": "positive" for x in ("Uniform", "EqualWidth", "EqualMass", "MedianVariance")},
    "EqualWidth(2.5)": r"n_bins is 2\.5; give a positive whole number",
    "FromEdges('abc')": "edges is 'abc'",
    "FromEdges([0, 0.8, 0.8])": "numbers that increase",
    "seen('class:4')": "asks for class '4', and there are 4 classes; give a column from 0 to 3",
    "seen('class:-1')": "asks for class '-1'",
    "seen('class:²')": "asks for class '²'",
    "seen('top:0')": "the top '0'; give a size, as in 'top:5'",
    "seen('top:4')": "top 4 of 4 classes",
    "seen('top:many')": "asks for the top 'many'; give a size, as in 'top:5'",
    "seen('top_lable')": "did you mean 'top_label'",
    "seen('class')": "did you mean 'class:'",
    "seen(7)": "lens is 7; give a name such as 'top_label'",
    **{f"NormalApproximation(ddof={x})": "ddof is" for x in (-1, 0.5, "'1'", True)},
    "Bound(0)": "p is 0",
    "asked(statistic='ece', null='normal')": "needs a sum of independent terms",
    "caltest.test(P6[:3], Y6[:3], 'skce_ul', null='normal')": r"has 1 pair\(s\) of rows",
    **{f"asked(rng={x}, n_resamples=9)": "rng is" for x in (-1, 1.5, "'0'", True, [1.5, 2])},
    **{f"asked(n_resamples=9).rejects({x})": "alpha is" for x in (0, 1, -0.1, 5, "np.nan")},
    "asked(n_resamples=10**20)": "give at most 10,000,000",
    "caltest.estimate(P6, Y6, n_jobs=0)": "n_jobs is 0; give how many",
    "asked(null='moment')": "did you mean 'moments'",
    "asked(statistic='skce_qu')": "did you mean 'skce_uq'",
    "caltest.audit(P6, Y6, correction='bonferonni')": "did you mean 'bonferroni'",
    "caltest.audit(P6, Y6, lenses='clasewise')": "did you mean 'classwise'",
    # ------------------------------------------------------------------ a tolerance, rounding
    "asked(tolerance=1)": "tolerance is 1; give a difference of probabilities",
    "asked(tolerance=-0.1)": "tolerance is -0.1",
    "asked(tolerance='2%')": "tolerance is '2%'",
    "asked(tolerance=np.nan)": "tolerance is nan",
    "asked(tolerance=True)": "tolerance is True",
    "asked(tolerance=0.1, statistic='ece')": "'ece' is not monotone .* esce, scan, max_bin, citl",
    "asked(tolerance=0.1, statistic=lambda p, y: 0.0)": "is not monotone in the labels",
    "asked(statistic='skce_uq', alternative='over')": "'skce_uq' is not monotone",
    "asked(tolerance=0.1, statistic='citl', null='normal')": "possible here: monte_carlo, moments",
    "asked(tolerance=0.1, null='consistency')": "cannot test a single given model",
    "asked(tolerance=0.1, null='moments')": "possible here: monte_carlo.",
    "asked(tolerance=0.1, alternative='greater')": "give 'over' .predictions too high",
    "asked(tolerance=0.1, lens='sorted')": "give a lens such as 'top_label'",
    "rounded()": "rounding needs a single probability, and 5 are tested.*give lens='top_label', 'cl",
    "rounded(lens='sorted')": "rounding needs a single probability, and 5 are tested",
    "rounded(lens='top_label', rounding=0.1)": r"multiples of 0.1, in .* of 40 rows: row \d+ .* is 0",
    "rounded(rounding=0.03)": "rounding is 0.03; give the step .*, 1 a multiple of it",
    "rounded(rounding=0)": "rounding is 0; give the step",
    "rounded(rounding=5)": "rounding is 5; give the step",
    "rounded(rounding='5%')": "rounding is '5%'",
    "rounded(lens='top_label', statistic='ece')": "'ece' is not monotone",
    "rounded(lens='top_label', alternative='greater')": "give 'over'",
    "caltest.test([[0.6, 0.05, 0.0], [0.5, 0.5, 0.0]], [0, 1], rounding=0.05, lens='top_label')": (
        "row 0 .* sums to 0.65; give one column for every class"
    ),
    "caltest.test(np.zeros((3, 60)), [0, 1, 2], rounding=0.05, lens='top_label')": "sums to 0; ",
    "caltest.test(GaussianPredictions([0.0], [1.0]), [0.0], rounding=0.1)": "about probabilities of cl",
    "caltest.test([0.5, 0.33], [0, 1], rounding=0.05)": r"row 1 \(counting from 0\) is 0.33; give",
    "caltest.test([50.0, 35.0], [0, 1], rounding=0.05)": "percentages",
    "caltest.test(np.eye(4), [0, 1, 2, 3], rounding=1, lens='top:2')": "adds up 2 values, so any",
    # ------------------------------------------------------------------ too few draws for a level
    "caltest.ReliabilityDisplay.from_predictions(P6, Y6, n_resamples=1)": r"\b19\b",
    "caltest.audit(P6, Y6, n_resamples=5, min_rows=2, lenses='top_label')": r"\b39\b",
    "caltest.assert_calibrated(P6, Y6, alpha=0.01, n_resamples=99, min_rows=2)": r"\b199\b",
    "bounded(n_resamples=5)": r"\b39\b",
    "caltest.ReliabilityDisplay.from_predictions(P6, Y6, curve='corp', n_resamples=38)": "at least 39",
    "caltest.ReliabilityDisplay((), 'binned', 0.95).plot()": "there are no panels",
    "caltest.power(calm, 20, 'ecd', n_resamples=5, n_datasets=2)": r"\b39\b",
    # ------------------------------------------------------------------ bounds, risks, plans
    "bounded(confidence=1.0)": "confidence is 1.0; give one between 0 and 1",
    "bounded(confidence='95%')": "confidence is '95%'",
    "bounded(confidence=True)": "confidence is True; give one between 0 and 1",
    "bounded(confidence=1 - 1e-9)": "would take hours; give fewer rows or a lower confidence",
    "bounded(n_resamples=20)": "n_resamples is 20, .*level 0.025; give n_resamples=39 or more",
    "bounded(n_resamples=0)": "n_resamples is 0; give a positive whole number",
    "bounded(lens='sorted')": "give 'top_label', 'classwise', 'class:0' or 'top:5'",
    "bounded(lens='classwise', n_resamples=50)": "give n_resamples=119 or more",
    "certified(confidence=0.4)": "confidence is 0.4; give one from 0.5 to below 1",
    "certified(confidence=1.0)": "confidence is 1.0",
    "certified(n_bins=0)": "n_bins is 0",
    "certified(n_bins=5, binning=EqualMass(5))": "n_bins and binning are both given",
    "certified(binning=5)": "binning is 5; give an object of caltest.binning",
    "HistogramBinning(0)": "n_bins is 0",
    "DirichletKernelDensity(0.0)": r"^bandwidth is 0\.0; give a positive number, 1e-40 to 1e40\.$",
    "Temperature(-1.0)": r"^temperature is -1\.0; give a positive number, 1e-40 to 1e40\.$",
    "TwoStepKernelRidge(inf)": r"^regularization is inf; give a positive number, 1e-40 to 1e40\.$",
    "KroneckerKernelRidge(kernel='rbf')": r"^kernel is 'rbf'; give a real-valued kernel of",
    "KroneckerKernelRidge(regularization_scaling='publishd')": "published",
    "HistogramBinning().fit(P6, Y6)": "^'binning' measures one probability, and there are 3 classes",
    "Temperature().fit(P6, Y6 + 1)": "3",
    "risks(functions='binnings')": "no estimation function 'binnings'; did you mean 'binning'",
    "risks(functions=[])": "give at least one",
    "risks(functions=['binning', 'binning'])": "each one once",
    "risks(functions=[3])": "functions holds 3",
    "risks(functions='binning', lens=None)": "'binning' measures one probability, and there are 3",
    "risks(pvalue='exact')": "there is no p-value 'exact'",
    "risks(n_resamples=0)": "n_resamples is 0",
    "risks(n_resamples=9, pvalue='none')": "pvalue='none' draws none",
    "risks(n_folds=1)": "n_folds is 1",
    "risks(n_folds=200)": "leaves 1 in a fold",
    "risks(test_size=1.0)": "test_size is 1.0",
    "risks(functions=[(TwoStepKernelRidge(), [0.1])])": "functions holds .*; give names",
    "risks(functions=[Temperature])": "functions holds the class",
    **{
        f"risks(order={x})": "each of the rows 0 to 299 once"
        for x in ("[0, 1]", "[[1, 2], [3]]", "np.zeros(300, dtype=int)")
    },
    "risks(regularization_scaling='none')": "no regularization_scaling 'none'",
    "risks(lens='top')": "no lens 'top'",
    "planned()": r"there is no limit; give materiality=0\.02",
    "planned(materiality=2)": "give a difference of probabilities between 0 and 1",
    "planned(materiality=0.02, n=1)": "give a whole number of rows, at least 2",
    "planned(materiality=0.02, power=1.0)": "give a probability between 0 and 1",
    "planned(materiality=0.02, error=-0.1)": "half a point",
    "planned(materiality=0.02, groups={'site': [1] * 5})": "5",
}


@pytest.mark.parametrize("source", REFUSED)
def test_a_wrong_option_is_refused_in_a_sentence(source):
    sentence(lambda: eval(source, dict(NAMES)), REFUSED[source])
