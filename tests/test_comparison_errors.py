"""`compare`: standard errors, tests of equal error, and their correction for multiplicity."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest
from compared import LABELS, MODELS, ROWS, TRUTH, brier_score, quick, raised, tempered
from scipy.stats import t
from statsmodels.stats.multitest import multipletests
from support import binomial_limits, dirichlet, h_matrix, labels_from

import caltest
from caltest.comparison.equality import standard_errors
from caltest.data import Rows, sample
from caltest.kernels import Exponential
from caltest.lenses import find_lens
from caltest.pvalues import CORRECTIONS, SMALLEST, adjusted
from caltest.statistics import STATISTICS, LinearSKCE, UnbiasedSKCE

# ------------------------------------------------------------------ variance of U-statistics


def matrix_errors(*matrices):
    """Standard errors of the matrices' U-statistics, by way of tiles."""
    tiles = [lambda i, j, h=h: h[i, j].copy() for h in matrices]
    return standard_errors(tiles, len(matrices[0]))


def by_loops(h):
    """Hoeffding's variance with unbiased ζ, by loops over different rows."""
    n = len(h)
    chained = [h[i, j] * h[i, k] for i, j, k in permutations(range(n), 3)]
    apart = [h[i, j] * h[k, m] for i, j, k, m in permutations(range(n), 4)]
    squares = [h[i, j] ** 2 for i, j in permutations(range(n), 2)]
    first, second = np.mean(chained) - np.mean(apart), np.mean(squares) - np.mean(apart)
    return np.sqrt((4 * (n - 2) * max(first, 0) + 2 * max(second, 0)) / (n * (n - 1)))


@pytest.mark.parametrize("seed", range(4))
def test_standard_errors_by_loops(seed):
    rng = np.random.default_rng(seed)
    one, other = (x + x.T for x in rng.normal(loc=seed, size=(2, 7, 7)))
    found = matrix_errors(one, other)
    assert found.values == pytest.approx([by_loops(one), by_loops(other)])
    assert found.differences[0, 1] == found.differences[1, 0] == pytest.approx(by_loops(one - other))
    assert np.diagonal(found.differences).tolist() == [0, 0]


@pytest.mark.level
def test_the_variance_of_the_sample_variance():
    """½(x − y)² gives the sample variance s²: var s² = (μ₄ − σ⁴(n − 3)/(n − 1))/n, unbiasedly."""
    rng, n, repetitions = np.random.default_rng(0), 12, 4000
    found = []
    for _ in range(repetitions):
        x = rng.exponential(size=n)
        found.append(matrix_errors(0.5 * (x[:, None] - x) ** 2).values[0] ** 2)
    known = (9.0 - (n - 3) / (n - 1)) / n
    assert abs(np.mean(found) - known) < 4 * np.std(found) / np.sqrt(repetitions)


@pytest.mark.level
def test_standard_errors_of_skce_by_the_jackknife():
    """For a model that is badly calibrated the first-order term rules, which the jackknife has."""
    found = quick(
        {"a": MODELS["sharp"], "b": MODELS["biased"]}, statistic=UnbiasedSKCE(Exponential(0.5))
    )
    h = [h_matrix(Exponential(0.5), MODELS[name], LABELS) for name in ("sharp", "biased")]

    def jackknife(h):
        keep = ~np.eye(ROWS, dtype=bool)
        left_out = [h[np.ix_(row, row)][keep[:-1, :-1]].mean() for row in keep]
        return np.sqrt((ROWS - 1) * np.var(left_out))

    errors = [*found.standard_errors, found.difference_errors[0, 1]]
    assert errors == pytest.approx([jackknife(each) for each in (*h, h[0] - h[1])], rel=0.1)
    assert errors == pytest.approx([_by_sums(each) for each in (*h, h[0] - h[1])], rel=1e-9)


def _by_sums(h):
    """The same as `by_loops`, from sums."""
    h = h - np.diag(np.diagonal(h))
    n, r, q = len(h), h.sum(axis=1), (h**2).sum()
    apart = (r.sum() ** 2 - 4 * (r @ r - q) - 2 * q) / (n * (n - 1) * (n - 2) * (n - 3))
    first = (r @ r - q) / (n * (n - 1) * (n - 2)) - apart
    second = q / (n * (n - 1)) - apart
    return np.sqrt((4 * (n - 2) * max(first, 0) + 2 * max(second, 0)) / (n * (n - 1)))


@pytest.mark.level
@pytest.mark.parametrize("names", [("true", "half"), ("sharp", "biased")], ids=["calibrated", "not"])
def test_standard_errors_by_simulation(names):
    """On average the stated variances are those over repeated data, of values and differences."""
    rng, n, repetitions = np.random.default_rng(1), 100, 400
    differences, variances, values, own = [], [], [], []
    for _ in range(repetitions):
        g = rng.dirichlet(np.ones(3), n)
        y = labels_from(g, rng)
        coin = rng.random((n, 1)) < 0.5
        every = {
            "true": np.where(coin, g, 1 / 3),
            "half": np.where(coin, 1 / 3, g),
            "sharp": tempered(g, 2.0),
            "biased": raised(g, 0),
        }
        found = quick(
            {name: every[name] for name in names}, y, UnbiasedSKCE(Exponential(0.5)), n_resamples=2
        )
        differences.append(found.differences[0, 1])
        variances.append(found.difference_errors[0, 1] ** 2)
        values.append(found.values[0])
        own.append(found.standard_errors[0] ** 2)
    # A variance of 400 values has a relative standard error of some 10% (heavy tails). Where ζ₁ is 0,
    # taking its negative estimates for 0 makes the stated variance too large.
    top = 2.2 if names[0] == "true" else 1.3
    assert 0.75 < np.mean(variances) / np.var(differences) < top
    assert 0.75 < np.mean(own) / np.var(values) < top


@pytest.mark.slow
def test_many_rows_need_no_square_of_memory():
    import tracemalloc

    g = dirichlet(3000, 3, 0)
    y = labels_from(g, np.random.default_rng(0))
    models = {"a": g, "b": tempered(g, 1.5)}
    tracemalloc.start()
    caltest.compare(models, y, UnbiasedSKCE(Exponential(0.5)), n_resamples=2, size=100, rng=0)
    assert tracemalloc.get_traced_memory()[1] < 3000**2 * 8 / 2
    tracemalloc.stop()


# ------------------------------------------------------------------ standard errors by resampling


@pytest.mark.level
@pytest.mark.parametrize(
    ("resampling", "size"), [("subsampling", None), ("subsampling", 100), ("bootstrap", None)]
)
def test_the_standard_error_of_a_mean(resampling, size):
    found = quick(statistic=brier_score, resampling=resampling, size=size, n_resamples=2000)
    rows = np.array([((np.eye(3)[LABELS] - g) ** 2).sum(axis=1) for g in MODELS.values()])
    assert found.values == pytest.approx(rows.mean(axis=1))
    assert found.standard_errors == pytest.approx(rows.std(axis=1) / np.sqrt(ROWS), rel=0.08)
    gaps = (rows[0] - rows[2]).std() / np.sqrt(ROWS)
    assert found.difference_errors[0, 2] == pytest.approx(gaps, rel=0.08)
    assert found.errors_from == resampling
    gap = found.differences[0, 2]
    bias = found.if_calibrated[0] - found.if_calibrated[2]
    z = (gap - np.clip(gap, min(bias, 0), max(bias, 0))) / found.difference_errors[0, 2]
    degrees = 1 / (1 / (ROWS - 1) + 1 / 1999)
    assert found.pvalues[0, 2] == pytest.approx(2 * t.sf(abs(z), degrees))
    low = found.values[1] + t.ppf(0.025, degrees) * found.standard_errors[1]
    assert found.intervals[1, 0] == pytest.approx(low)


def test_errors_of_sums():
    rng = np.random.default_rng(0)
    one, other = (x + x.T for x in rng.normal(size=(2, 7, 7)))
    found = matrix_errors(one, other)
    assert found.sums[0, 1] == found.sums[1, 0] == pytest.approx(by_loops(one + other))
    assert np.diagonal(found.sums) == pytest.approx([by_loops(2 * one), by_loops(2 * other)])


@pytest.mark.slow
@pytest.mark.parametrize("lens", [None, "class:1", "top_label"])
def test_the_least_standard_error(lens):
    """No class 1 happened: the rows vary little, and labels drawn from either model vary more."""
    g = np.column_stack([np.linspace(0.9, 0.94, 60), np.full(60, 0.05), np.linspace(0.05, 0.01, 60)])
    models, n = {"a": g, "b": np.tile([0.90, 0.08, 0.02], (60, 1))}, 60
    found = caltest.compare(models, np.zeros(n, int), brier_score, lens=lens, rng=0)
    columns = {None: [0, 1, 2], "class:1": [1], "top_label": [0]}[lens]

    def gaps(k):
        """Row by row, what class k adds to the difference of the scores."""

        def score(p):
            if lens is None:
                return 1 - 2 * p[:, k] + (p**2).sum(axis=1)
            hit = k == columns[0]
            return 2 * (hit - p[:, columns[0]]) ** 2

        return score(models["a"]) - score(models["b"])

    table = np.column_stack([gaps(k) for k in range(3)])
    spread = [
        np.sqrt(((p * table**2).sum(axis=1) - (p * table).sum(axis=1) ** 2).sum()) / n
        for p in models.values()
    ]
    assert found.difference_errors[0, 1] == pytest.approx(max(spread), rel=0.15)
    assert found.standard_errors[0] < found.difference_errors[0, 1]  # from the rows alone


def test_what_is_expected_of_calibrated_models():
    found = quick(statistic=brier_score)
    known = [1 - (g**2).sum(axis=1).mean() for g in MODELS.values()]
    assert found.if_calibrated == pytest.approx(known, abs=0.02)
    assert quick(statistic="skce_uq").if_calibrated.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in STATISTICS
        if name not in ("skce_uq", "jkce", "ece_debiased") and STATISTICS[name].growth is not None
    ],
)
def test_how_statistics_grow(name):
    """Every row twice: a statistic that estimates a number stays the same, the others are listed."""
    view = sample(MODELS["sharp"], LABELS)
    lens = find_lens(STATISTICS[name].default_lens)
    view = lens.view(view) if lens else view
    probs, labels = view.rows.probs, view.labels
    # A second copy of the rows has pairs like the first one's only if they are those that follow.
    chosen = LinearSKCE(pairing="rows") if name == "skce_ul" else STATISTICS[name]()
    measure = chosen.fitted(view.rows)
    once = measure.given(view.rows).value(labels)
    twice = measure.given(Rows(np.tile(probs, (2, 1)))).value(np.tile(labels, 2))
    assert twice / once == pytest.approx(2.0**measure.growth, rel=1e-3)


@pytest.mark.level
@pytest.mark.parametrize("name", [name for name in STATISTICS if STATISTICS[name].growth])
def test_errors_of_statistics_that_grow(name):
    """Whatever is drawn, the standard error on all rows is about the same."""
    g = dirichlet(400, 2, 3)
    y = labels_from(g, np.random.default_rng(3))
    models = {"a": raised(g, 0, 1.5), "b": raised(g, 1)}
    small, large, boot = (
        quick(models, y, name, n_resamples=200, **options).standard_errors
        for options in ({"size": 80}, {"size": 250}, {"resampling": "bootstrap"})
    )
    assert small == pytest.approx(large, rel=0.3)
    assert boot == pytest.approx(large, rel=0.3)


def test_statistics_without_a_rate_are_refused():
    with pytest.raises(caltest.InputError, match="'scan' grows with the rows by no fixed power"):
        quick(statistic="scan")


# ------------------------------------------------------------------ tests of equal error


def two_models(design, rng, n=100):
    """Two models of the same rows, by one truth."""
    g = rng.dirichlet(np.full(4, 0.5), n)
    y = labels_from(g, rng)
    if design == "equal":
        return {"a": raised(g, 0), "b": raised(g, 1)}, y
    if design == "calibrated":
        coin = rng.random((n, 1)) < 0.5
        return {"a": np.where(coin, g, 0.25), "b": np.where(coin, 0.25, g)}, y
    return {"a": g, "b": tempered(np.maximum(g, 1e-300), 4.0)}, y


def rejections(design, statistic, repetitions, n_resamples=2, **options):
    rng = np.random.default_rng(7)
    found = [
        quick(*two_models(design, rng), statistic, n_resamples=n_resamples, **options).pvalues[0, 1]
        for _ in range(repetitions)
    ]
    return np.mean(np.array(found) <= 0.05)


@pytest.mark.level
@pytest.mark.parametrize("statistic", ["skce_uq", "jkce"])
def test_size_of_the_test(statistic):
    """Equal errors by symmetry, not 0: the rate is .05 up to small samples, false alarm 1e-4."""
    low, _ = binomial_limits(300, 0.03)
    _, high = binomial_limits(300, 0.06)
    assert low <= rejections("equal", statistic, 300) <= high


@pytest.mark.level
@pytest.mark.parametrize("statistic", ["skce_uq", "jkce"])
def test_size_of_the_test_where_both_are_calibrated(statistic):
    """The first-order variance is 0, and the level is kept all the same; false alarm 1e-4."""
    assert rejections("calibrated", statistic, 300) <= binomial_limits(300, 0.05)[1]


@pytest.mark.level
def test_differences_of_biases_do_not_count():
    """B hides half of the rows: both are calibrated, and their ECEs are biased very differently."""
    rng, found = np.random.default_rng(3), []
    for _ in range(60):
        g = rng.dirichlet(np.full(6, 0.3), 200)
        models = {"a": g, "b": np.where(rng.random((200, 1)) < 0.5, 1 / 6, g)}
        found.append(quick(models, labels_from(g, rng), "ece", n_resamples=30))
    gaps = np.array([each.differences[0, 1] / each.difference_errors[0, 1] for each in found])
    assert np.mean(np.abs(gaps) > 1.96) > 0.5  # what a test that forgets the biases would find
    rate = np.mean([each.pvalues[0, 1] <= 0.05 for each in found])
    assert rate <= binomial_limits(60, 0.05)[1]


EQUAL = {
    "constant": lambda q, coin: (q, np.full(len(q), 0.5)),  # both calibrated, as the next
    "swapped": lambda q, coin: (np.where(coin, q, 0.5), np.where(coin, 0.5, q)),
    "mirrored": lambda q, coin: (0.8 * q + 0.2, 0.8 * q),  # of truth 0.8 q + 0.1
}


@pytest.mark.level
@pytest.mark.parametrize("design", EQUAL)
@pytest.mark.parametrize("statistic", ["ecd", "citl", "spiegelhalter", "skce_uq"])
def test_size_with_few_rows(statistic, design):
    """The size of a signed statistic is half-normal where its mean is 0; false alarm 1e-4 a level."""
    rng, found = np.random.default_rng(20), []
    resamples = 2 if statistic == "skce_uq" else 20  # of a U-statistic they are not used
    for _ in range(100):
        q = rng.uniform(0.05, 0.95, 20)
        one, other = EQUAL[design](q, rng.random(20) < 0.5)
        y = (rng.random(20) < (0.8 * q + 0.1 if design == "mirrored" else q)).astype(int)
        models = {"a": one, "b": other}
        found.append(quick(models, y, statistic, n_resamples=resamples).pvalues[0, 1])
    for level in (0.05, 0.01, 0.001):
        assert np.mean(np.array(found) <= level) <= binomial_limits(100, level)[1]


@pytest.mark.level
def test_labels_that_are_rare_and_did_not_occur():
    """Two calibrated constants, and no event in most data sets: nothing is told apart."""
    rng = np.random.default_rng(0)
    models = {"a": np.full(30, 0.02), "b": np.where(np.arange(30) % 2, 0.03, 0.01)}
    found = [quick(models, (rng.random(30) < 0.02).astype(int), "ecd") for _ in range(60)]
    assert np.mean([each.pvalues[0, 1] <= 0.05 for each in found]) <= binomial_limits(60, 0.05)[1]
    assert min(each.pvalues[0, 1] for each in found) > 0.001


def test_errors_of_opposite_signs_are_compared_by_their_sum():
    """Of calibration in the large, one model 15 points too high, one 15 too low, one right."""
    rng = np.random.default_rng(1)
    q = rng.uniform(0.25, 0.75, 2000)
    models = {"high": q + 0.15, "low": q - 0.15, "right": q}
    found = quick(models, (rng.random(2000) < q).astype(int), "citl", n_resamples=200)
    assert found.pvalues[0, 1] > 0.05
    assert max(found.pvalues[0, 2], found.pvalues[1, 2]) < 0.001
    assert found.values[0] * found.values[1] < 0
    assert found.difference_errors[0, 1] > found.standard_errors.max()  # of the sum


@pytest.mark.parametrize(("rows", "few"), [(49, True), (50, False)])
def test_few_rows_are_said(rows, few):
    models = {name: g[:rows] for name, g in MODELS.items()}
    found = quick(models, LABELS[:rows])
    assert any("rows are few" in note for note in found.warnings) == few


def test_labels_that_another_model_calls_impossible_are_left_out():
    sure = np.where(np.arange(ROWS)[:, None] < 2, np.eye(3)[LABELS], TRUTH)
    found = quick({"a": TRUTH, "sure": sure}, statistic="ecd")
    assert 0.0 < found.difference_errors[0, 1] < np.inf


@pytest.mark.level
def test_power():
    assert rejections("sharper", "skce_uq", 40) >= 0.6
    # Its bias makes the test of the ECE cautious.
    assert rejections("sharper", "ece", 40, n_resamples=50, lens="top_label") >= 0.4


@pytest.mark.level
def test_size_where_errors_come_from_resamples():
    """Approximate: not far from the level."""
    assert rejections("equal", "brier", 300, n_resamples=50) <= binomial_limits(300, 0.08)[1]


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["skce_uq", "ckce", "ece", brier_score])
def test_identical_models(statistic):
    found = quick({"a": TRUTH, "b": TRUTH.copy(), "c": MODELS["sharp"]}, statistic=statistic)
    assert found.differences[0, 1] == 0.0
    assert found.pvalues[0, 1] == found.adjusted_pvalues[0, 1] == 1.0
    assert found.pair_proportions[0, 1] == found.pair_proportions[1, 0] == 0.5
    assert found.ranking.index("b") == found.ranking.index("a") + 1
    text = found.summary().replace("\n", " ")
    shared = "a and b share the smallest" in text or "a and b come first" in text
    assert shared == (found.ranking[0] == "a")
    assert "nan" not in json.dumps(found.to_dict(), allow_nan=False)


def test_models_equal_up_to_rounding():
    near = tempered(TRUTH, 1.0 + 1e-15)
    found = quick({"a": TRUTH, "b": near}, statistic=UnbiasedSKCE(Exponential(0.5)))
    assert found.pvalues[0, 1] == 1.0
    assert found.differences[0, 1] == 0.0


def test_a_difference_without_variation_is_not_tested():
    models = {"a": np.tile([0.9, 0.1], (20, 1)), "b": np.tile([0.6, 0.4], (20, 1))}

    def first(probs, labels):
        return float(probs[0, 0])

    found = quick(models, np.zeros(20, int), first)
    assert found.pvalues[0, 1] == 1.0
    assert any("cannot be tested" in note for note in found.warnings)


def test_no_pvalue_is_0():
    g = dirichlet(2000, 2, 1)
    y = g.argmax(axis=1)
    models = {"a": np.where(g > 0.5, 0.99, 0.01), "b": np.where(g > 0.5, 0.01, 0.99)}
    found = quick(models, y, brier_score)
    assert 0.0 < found.pvalues[0, 1] < 1e-30
    assert "p < 1e-09" in found.summary()


def test_infinite_values_rank_last():
    labels = LABELS.copy()
    wrong = TRUTH.copy()
    wrong[0] = np.eye(3)[(labels[0] + 1) % 3]
    found = quick({"a": wrong, "b": TRUTH, "c": wrong.copy()}, labels, "ecd")
    assert found.ranking == ("b", "a", "c")
    assert found.pvalues.tolist() == np.ones((3, 3)).tolist()
    assert found.differences[0, 2] == 0.0
    assert found.standard_errors[1] < np.inf
    assert found.intervals[0].tolist() == [-np.inf, np.inf]
    assert "none was possible" in found.summary()
    assert any(note.startswith("a, c: The value is infinite") for note in found.warnings)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["values"][0] == "inf"


# ------------------------------------------------------------------ multiplicity


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_corrections_are_those_of_statsmodels(correction):
    raw = np.array([0.001, 0.3, 0.02, 0.04, 0.9])
    assert adjusted(raw, correction) == pytest.approx(multipletests(raw, method=correction)[1])
    assert adjusted([0.02], correction).tolist() == [0.02]
    assert (adjusted([SMALLEST, SMALLEST, 1.0], correction) > 0).all()
    assert adjusted([], correction).shape == (0,)


def test_no_correction():
    assert adjusted([0.01, 0.04], None).tolist() == [0.01, 0.04]
    assert "not corrected" in quick(correction=None).summary()


def test_pairs_are_adjusted_together():
    found = quick()
    raw = [found.pvalues[i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    after = [found.adjusted_pvalues[i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    assert after == pytest.approx(multipletests(raw, method="holm")[1])
    for matrix in (found.pvalues, found.adjusted_pvalues):
        assert np.array_equal(matrix, matrix.T)
        assert np.diagonal(matrix).tolist() == [1, 1, 1]


@pytest.mark.level
def test_equal_errors_in_different_places():
    """Both have an ECE of 0.15; one errs everywhere, the other where half of the rows are."""

    def pvalue(seed):
        rng = np.random.default_rng(seed)
        q = rng.uniform(0.05, 0.65, 300)
        y = (rng.random(300) < q).astype(int)
        shifted, half = q + 0.15, np.where(q < 0.35, q, q + 0.30)
        models = {"a": shifted, "b": half}
        return caltest.compare(models, y, "ace", n_resamples=30, rng=seed).pvalues[0, 1]

    rejected = np.mean([pvalue(seed) <= 0.05 for seed in range(60)])
    assert rejected <= binomial_limits(60, 0.05)[1]
