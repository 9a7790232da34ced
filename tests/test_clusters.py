"""Rows that depend on each other: signs of clusters against their definition, one row a cluster."""

import json
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.special import ndtr
from support import binomial_limits, command, dirichlet, h_matrix, labels_from, residuals, some_fast

import caltest
from caltest import InputError
from caltest.binning import EqualWidth
from caltest.clusters import Clusters
from caltest.data import Rows, sample
from caltest.forms import LinearSum, effective_clusters
from caltest.kernels import Exponential
from caltest.lenses import find_lens, through
from caltest.nulls import NULLS, ClusterSigns, OnePerCluster
from caltest.sampling import DRAWS, SignSampler
from caltest.statistics import CKCE, ECE, STATISTICS, ClasswiseECE, LinearSKCE, UnbiasedSKCE


def clustered(clusters, size, classes, correlation, seed, temperature=1.0):
    """Rows of a cluster share the centre of their predictions, and a latent cause of their labels."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(clusters), size)
    gammas = rng.standard_gamma(0.001 + 5.0 * rng.dirichlet(np.full(classes, 0.7), clusters)[codes])
    probs = gammas / gammas.sum(axis=1, keepdims=True)
    shared, own = rng.standard_normal(clusters)[codes], rng.standard_normal(len(codes))
    chances = ndtr(np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own)
    truth = probs ** (1.0 / temperature)
    sums = np.cumsum(truth / truth.sum(axis=1, keepdims=True), axis=1)
    return probs, (sums[:, :-1] < chances[:, None]).sum(axis=1), codes


PROBS, LABELS, CODES = clustered(30, 4, 3, 0.5, 0)
WEIGHTS = np.random.default_rng(9).uniform(0.5, 2.0, len(LABELS))
STAYS = ("cox", "ece_sweep", "mcb_brier", "mcb_log", "t_cal")
GOES = [name for name in STATISTICS if name not in STAYS]
#: One statistic for each kind of form.
KINDS = ("ecd", "ece", "ks", "scan", "skce_uq", "skce_ul", "ucme", "smooth_ece")


def made(name):
    """A statistic with signs for these rows: "ece" needs bins in which clusters meet."""
    few = {"ece": ECE(caltest.binning.Uniform(2)), "classwise_ece": ClasswiseECE(EqualWidth(2))}
    return few.get(name, name)


def run(statistic, probs=PROBS, labels=LABELS, clusters=CODES, **options):
    options = {"rng": 0, "n_resamples": 199, **options}
    return caltest.test(probs, labels, made(statistic), clusters=clusters, **options)


# ------------------------------------------------------------------ every statistic


@pytest.mark.slow
@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_statistic_goes_with_signs_or_says_what_does(statistic):
    if statistic not in GOES:
        with pytest.raises(InputError, match=r"every statistic but .*possible here: one_per_cluster"):
            run(statistic)
        return
    found = run(statistic)
    few = any("Few clusters carry" in note for note in found.warnings)
    assert (found.null, found.guarantee) == ("cluster_signs", "approximate" if few else "asymptotic")
    assert 0.0 < found.pvalue <= 1.0
    assert found.parameters["clusters"] == 30
    assert len(found.null_distribution) == found.n_resamples == 199
    assert few or "clusters grows" in found.summary()
    assert "in 30 clusters" in found.summary()
    if statistic == "omnibus":
        assert len(found.parts) == 4
        with pytest.raises(InputError, match="standardised by its draws"):
            caltest.estimate(PROBS, LABELS, statistic, clusters=CODES)
    else:
        value = caltest.estimate(PROBS, LABELS, made(statistic), clusters=CODES)
        assert found.statistic == pytest.approx(value, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
@pytest.mark.parametrize("statistic", [name for name in GOES if name != "omnibus"])
def test_signs_of_ones_give_the_value(statistic, weights):
    """What is no mean over pairs of rows is what it is without clusters."""
    value = caltest.estimate(PROBS, LABELS, statistic, clusters=CODES, weights=weights)
    plain = caltest.estimate(PROBS, LABELS, statistic, weights=weights)
    if statistic not in ("skce_uq", "skce_ul", "jkce"):
        assert value == pytest.approx(plain, rel=1e-9, abs=1e-13)
    every = np.arange(len(LABELS))
    alone = caltest.estimate(PROBS, LABELS, statistic, clusters=every, weights=weights)
    assert alone == pytest.approx(plain, rel=1e-9, abs=1e-13)  # every row a cluster of its own


def flipped_sums(probs, labels, codes, signs):
    return signs[:, codes, None] * residuals(probs, labels)


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("most", [1, 4, 900])
def test_pairs_add_up_by_cluster_in_any_order_of_rows(mixed, most):
    """More rows than a tile has, and clusters that lie in several tiles."""
    rng = np.random.default_rng(most)
    codes = np.repeat(np.arange(1300), rng.integers(1, most + 1, 1300))[:1300]
    codes = rng.permutation(codes) if mixed else codes
    codes = sample(np.full(1300, 0.5), codes % 2, clusters=codes).rows.clusters
    count, half = codes.max() + 1, rng.normal(size=(len(codes),) * 2)
    members = np.eye(count)[:, codes]
    found = Clusters(codes, count).pairs(lambda rows, columns: (half + half.T)[rows, columns])
    expected = members @ (half + half.T) @ members.T
    assert np.allclose(found, expected, rtol=0.0, atol=1e-9)


def test_sums_that_are_not_0_on_average_keep_their_mean():
    """Of scores of one's own: signs turn what is beside the mean, and ones give the value."""
    scores = np.random.default_rng(0).normal(2.0, 1.0, PROBS.shape)
    signed = LinearSum(scores, PROBS).signed(LABELS, Clusters(CODES, 30))
    signs = np.random.default_rng(1).choice([-1, 1], (20, 30)).astype(np.int8)
    mean = (PROBS * scores).sum(axis=1)
    own = scores[np.arange(len(LABELS)), LABELS] - mean
    assert signed.of_labels(signs) == pytest.approx(mean.sum() + signs[:, CODES] @ own)
    assert signed.observed == pytest.approx((mean + own).sum())


@pytest.mark.parametrize("name", ["ece", "mce", "ece_squared", "ece_debiased"])
@pytest.mark.parametrize("bins", [2, 40])
def test_bins_of_one_cluster_are_like_others(name, bins):
    """Of many bins most have rows of one cluster, whose sign is all that is held."""
    statistic = STATISTICS[name](binning=caltest.binning.Uniform(bins))
    whole = sample(PROBS, LABELS)
    form = statistic.fitted(whole.rows).given(whole.rows)
    signs = np.random.default_rng(2).choice([-1, 1], (20, 30)).astype(np.int8)
    signed = form.signed(LABELS, Clusters(CODES, 30))
    sums = np.zeros((20, form.n_cells, PROBS.shape[1]))
    for number, draw in enumerate(flipped_sums(PROBS, LABELS, CODES, signs.astype(float))):
        np.add.at(sums[number], form.cells, draw)
    assert signed.of_labels(signs) == pytest.approx(form.reduce(sums.reshape(20, -1), form.fixed), 1e-9)
    own = np.zeros((30, form.n_cells, PROBS.shape[1]))
    np.add.at(own, (CODES, form.cells), residuals(PROBS, LABELS))
    (squares,) = form.squares_of(LABELS[None], Clusters(CODES, 30))
    assert squares == pytest.approx((own**2).sum(axis=(1, 2)))


@pytest.mark.slow
def test_bins_of_few_clusters_are_said():
    """Small residuals of one sign add up as they came: with 200 clusters one in three is rejected."""
    probs, labels, codes = clustered(200, 3, 10, 0.3, 1)
    options = {"clusters": codes, "n_resamples": 19, "rng": 0}
    for call in (
        lambda: caltest.test(probs, labels, "ece", **options),
        lambda: caltest.audit(probs, labels, statistics=["ece"], alpha=0.5, **options),
    ):
        with pytest.raises(InputError, match=r"a bin of 'ece' holds 1.. clusters in effect"):
            call()
    exact = caltest.test(probs, labels, "ece", null="one_per_cluster", **options)
    assert exact.guarantee == "exact"
    two = clustered(200, 3, 2, 0.3, 1)
    found = caltest.test(two[0], two[1], "ece", clusters=two[2], n_resamples=19, rng=0)
    assert any("Few clusters carry 'ece'" in note for note in found.warnings)
    wide = ECE(caltest.binning.Uniform(2))
    quiet = caltest.test(probs, labels, wide, lens="top_label", clusters=codes, n_resamples=19, rng=0)
    squares = caltest.test(probs, labels, "ece_squared", clusters=codes, n_resamples=19, rng=0)
    assert not any("in effect" in note for note in (*quiet.warnings, *squares.warnings))


def test_values_are_those_of_turned_residuals():
    """By definition, one draw after another: bins, all pairs, a kernel's features, a path."""
    signs = np.random.default_rng(1).choice([-1, 1], (20, 30)).astype(np.int8)
    turned = flipped_sums(PROBS, LABELS, CODES, signs.astype(float))
    whole = sample(PROBS, LABELS)
    clusters = Clusters(CODES, 30)

    def values(statistic, lens=None):
        view = through(whole, lens)[0]
        form = statistic.fitted(view.rows).given(view.rows)
        return form.signed(view.labels, clusters).of_labels(signs)

    binned = ECE(caltest.binning.Uniform(4))
    cells = binned.binning.cells(Rows(PROBS))
    expected = []
    for draw in turned:
        sums = np.array([np.bincount(cells, column) for column in draw.T])
        expected.append(0.5 * np.abs(sums).sum() / len(LABELS))
    assert values(binned) == pytest.approx(expected, rel=1e-9)

    h = h_matrix(Exponential(), PROBS, LABELS)
    other = CODES[:, None] != CODES
    expected = [(h * np.outer(e[CODES], e[CODES]) * other).sum() / other.sum() for e in signs]
    assert values(UnbiasedSKCE()) == pytest.approx(expected, rel=1e-9)
    features = values(UnbiasedSKCE(approximation="nystrom", rank=120))
    assert features == pytest.approx(expected, rel=1e-3, abs=1e-5)

    top = through(whole, "top_label")[0]
    p, error = top.rows.probs[:, 1], top.labels - top.rows.probs[:, 1]
    paths = np.cumsum((signs[:, CODES] * error)[:, np.argsort(p)], axis=1) / len(p)
    expected = np.abs(paths).max(axis=1)
    assert values(STATISTICS["ks"](), "top_label") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("approximation", [None, "nystrom"])
def test_pairs_of_different_clusters_count_as_their_weights_say(approximation):
    statistic = UnbiasedSKCE(Exponential(0.5), approximation=approximation, rank=120)
    found = caltest.estimate(PROBS, LABELS, statistic, weights=WEIGHTS, clusters=CODES)
    h, w = h_matrix(Exponential(0.5), PROBS, LABELS), np.outer(WEIGHTS, WEIGHTS)
    w[CODES[:, None] == CODES] = 0.0
    assert found == pytest.approx((h * w).sum() / w.sum(), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("diagonal", [True, False])
def test_two_classes_go_along_the_line(diagonal):
    """The kernel of exponential distances on a line, one pass a draw, is that of all pairs."""
    probs = np.column_stack([1.0 - PROBS[:, 0], PROBS[:, 0]])
    labels = (LABELS == 0).astype(int)
    signs = np.random.default_rng(1).choice([-1, 1], (20, 30)).astype(np.int8)
    name = "skce_b" if diagonal else "skce_uq"
    form = STATISTICS[name]().fitted(Rows(probs)).given(Rows(probs))
    h = h_matrix(Exponential(), probs, labels)
    counted = np.ones_like(h) if diagonal else CODES[:, None] != CODES
    expected = [(h * np.outer(e[CODES], e[CODES]) * counted).sum() / counted.sum() for e in signs]
    assert form.signed(labels, Clusters(CODES, 30)).of_labels(signs) == pytest.approx(expected, 1e-9)


def test_features_held_or_not_are_the_same(monkeypatch):
    predictions = Rows(PROBS)
    form = UnbiasedSKCE(approximation="nystrom", rank=20).fitted(predictions).given(predictions)
    signs = np.random.default_rng(1).choice([-1, 1], (20, 30)).astype(np.int8)
    clusters = Clusters(CODES, 30)
    held = form.of_cluster_sums(form.cluster_sums(LABELS, clusters), clusters.share_between)
    monkeypatch.setattr("caltest.forms.low_rank._MOST_HELD", 1)
    streamed = form.signed(LABELS, clusters)
    assert streamed.of_labels(signs) == pytest.approx(held.of_labels(signs), rel=1e-9)
    monkeypatch.setattr("caltest.forms.low_rank._MOST_HELD", 30**2)
    paired = form.signed(LABELS, clusters)
    assert paired.of_labels(signs) == pytest.approx(held.of_labels(signs), rel=1e-9)
    of_rows = form.pairs.signed(LABELS, clusters)
    assert of_rows.of_labels(signs) == pytest.approx(held.of_labels(signs), rel=1e-9)


# ------------------------------------------------------------------ few clusters


@pytest.mark.parametrize(("statistic", "ways"), [("ecd", 64), ("skce_uq", 32), ("ks", 32)])
def test_all_signs_of_few_clusters(statistic, ways):
    """By hand: every way to turn signs, where turning all of them changes nothing half of them."""
    rows = CODES < 6
    probs, labels, codes = PROBS[rows], LABELS[rows], CODES[rows]
    found = run(statistic, probs, labels, codes, alternative="greater")
    assert any(f"All {ways} ways" in note for note in found.warnings)
    lens = find_lens(STATISTICS[statistic].default_lens)
    view = through(sample(probs, labels), lens)[0]
    form = STATISTICS[statistic]().given(view.rows)
    signs = np.array(list(product([1, -1], repeat=6)), dtype=np.int8)
    values = form.signed(view.labels, Clusters(codes, 6)).of_labels(signs)
    assert found.pvalue >= np.mean(values >= values[0] - 1e-12)  # few clusters: the larger of two
    assert found.n_resamples == ways - 1  # nothing is left to chance


def test_levels_that_few_clusters_cannot_reach_are_said():
    rows = CODES < 4
    found = run("ecd", PROBS[rows], LABELS[rows], CODES[rows])
    assert any("no p-value can be below 0.125" in note for note in found.warnings)
    assert found.pvalue >= 0.125


def test_few_clusters_in_effect_are_said():
    assert any("'skce_uq', 'ecd'" in note for note in run("omnibus").warnings)
    assert any("Few clusters carry 'ecd': " in note for note in run("ecd").warnings)
    probs, labels, codes = clustered(300, 2, 3, 0.3, 1)
    assert not any("Few clusters" in note for note in run("ks", probs, labels, codes).warnings)


def test_intervals_hold_the_p_value_that_counts():
    """Of parts in two families, whose p-values share the level."""
    for seed in range(10):
        found = run("omnibus", *clustered(60, 5, 2, 0.5, seed))
        low, high = found.pvalue_interval
        assert low <= found.pvalue <= high


def test_exact_where_cluster_sums_are_symmetric():
    """Predictions of 1/2, rows of a cluster alike: p-values of all outcomes keep every level."""
    codes = np.repeat(np.arange(5), 3)
    found = []
    for outcome in product([0, 1], repeat=5):  # the rows of a cluster are alike
        labels = np.array(outcome)[codes]
        found.append(run("esce", np.full(15, 0.5), labels, codes, alternative="greater").pvalue)
    for level in np.unique(found):
        assert np.mean(np.array(found) <= level + 1e-12) <= level + 1e-12


# ------------------------------------------------------------------ what does not matter


@pytest.mark.slow
@pytest.mark.parametrize("statistic", [*KINDS, "omnibus"])
def test_names_of_clusters_do_not_matter(statistic):
    names = np.array([f"patient {code * 7 % 30}" for code in CODES])
    assert run(statistic, clusters=names).pvalue == run(statistic).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("statistic", some_fast(KINDS, "ecd", "scan", "skce_uq", "skce_ul"))
def test_order_of_rows_does_not_matter(statistic):
    """Inside clusters it changes nothing, and among clusters only which of them gets which sign."""
    order = np.argsort(CODES + 0.9 * np.random.default_rng(3).random(len(CODES)))
    one, other = run(statistic), run(statistic, PROBS[order], LABELS[order], CODES[order])
    if statistic == "skce_ul":
        return  # pairs of equal predictions, of which there are none here, may change
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-14)
    assert other.null_distribution == pytest.approx(one.null_distribution, rel=1e-7, abs=1e-13)
    order = np.random.default_rng(4).permutation(len(CODES))
    other = run(statistic, PROBS[order], LABELS[order], CODES[order], n_resamples=999)
    assert other.pvalue == pytest.approx(run(statistic, n_resamples=999).pvalue, abs=0.1)


def test_signs_live_on_a_grid():
    sampler = SignSampler(40, 7)
    whole = sampler.draw(0, 1200)
    assert set(np.unique(whole)) == {-1, 1}
    assert np.array_equal(sampler.draw(sampler.block, 1200), whole[sampler.block :])
    assert np.array_equal(sampler.draw(0, 100), whole[:100])
    assert abs(whole.mean()) < 0.03
    assert SignSampler(2**26, 0).block == DRAWS


# ------------------------------------------------------------------ clusters as they are given


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ([1, 2], "clusters has 2 entries for 4 rows"),
        ([1, None, 2, 2], r"missing values, the first in row 1 .* a cluster of its own"),
        (np.array([1.0, 2.0, np.nan, 2.0]), "missing values, the first in row 2"),
        (pd.Series(["a", "b", None, "b"]), "missing values, the first in row 2"),
        (["a", "b", "NA", "b"], r"missing values, the first, 'NA', in row 2 .* a name that no other"),
        (np.array(["a", np.nan, "b", "b"]), "missing values, the first, 'nan', in row 1"),
        (pl.Series(["a", "b", "b", " Null "]), "missing values, the first, ' Null ', in row 3"),
        (["None", "a", "b", "n/a"], "missing values, the first, 'None', in row 0"),
        (np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0]), "missing values, the first in row 1"),
        (np.array(["2020", "2021", "NaT", "2021"], "M8[ns]"), "missing values, the first in row 2"),
        ([np.float32("nan"), 1, 2, 2], "missing values, the first in row 0"),
        ([1, Decimal("nan"), 2, 2], "missing values, the first in row 1"),
        ([1, 2, Decimal("snan"), 2], "missing values, the first in row 2"),
        ([1, 2, 2, np.datetime64("NaT")], "missing values, the first in row 3"),
        ([1, 1, 1, 1], "clusters is 1 for every row"),
        ([[1], [2], [1], [2]], "clusters holds .* in row 0"),
        (np.ones((4, 2)), "give one column"),
        ("abcd", "give one column"),
        (7, "give one column"),
    ],
)
def test_columns_that_are_none(column, says):
    with pytest.raises(InputError, match=says):
        caltest.test([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1], "ecd", clusters=column)


@pytest.mark.parametrize(
    ("column", "codes", "pair"),
    [
        ([1, "1", 2, "2.0"], [0, 0, 1, 1], "1, and '1' as text"),
        ([Decimal(7), "8", "7.0", 9], [0, 1, 0, 2], "Decimal('7'), and '7.0' as text"),
        ([True, "True", 1, "x"], [0, 0, 1, 2], "True, and 'True' as text"),
        (["1.10", "1.1", "007", "7"], [0, 0, 1, 2], "'1.10', and '1.1'"),
        ([True, 1, 2, 1.0], [0, 1, 2, 1], None),
    ],
)
def test_text_that_is_a_number_is_that_number(column, codes, pair):
    found = sample([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1], clusters=column).rows
    assert found.clusters.tolist() == codes
    said = () if pair is None else (f"Clusters holds {pair}: they count as one cluster.",)
    assert found.notes == said


def rare_in_large_clusters(seed, of="single"):
    """Common rows beside rare events that all rows of a large cluster share."""
    rng = np.random.default_rng(seed)
    if of == "single":
        p = np.r_[rng.uniform(0.05, 0.95, 4000), np.full(10_000, 0.01)]
        codes = np.r_[np.arange(4000), 4000 + np.arange(10_000) // 50]
    else:
        p, codes = np.r_[np.full(6000, 0.004), np.full(1500, 0.5)], np.arange(7500) // 10
    return p, (rng.random(codes.max() + 1)[codes] < p).astype(int), codes


@pytest.mark.slow
def test_clusters_are_counted_by_the_predictions():
    """Of rare events in large clusters few count in effect, however many rows there are."""
    p, labels, codes = rare_in_large_clusters(2)
    for statistic, few in (("citl", 2.7), ("ks", 2.7), ("brier", None), ("ecd", None)):
        found = caltest.test(p, labels, statistic, clusters=codes, rng=1, n_resamples=199)
        (note,) = (each for each in found.warnings if "Few clusters carry" in each)
        assert found.guarantee == "approximate"
        assert few is None or f"about {few:.0f} of 4,200 in effect" in note
        assert found.pvalue > 0.05  # by signs alone: 0.002 to 0.01
        assert caltest.test(p, 1 - labels, statistic, clusters=codes, rng=1).warnings != ()
    form = STATISTICS["citl"]().given(sample(p, labels).rows)
    assert effective_clusters("citl", form, Clusters(codes, 4200), labels) == pytest.approx(2.7, 0.02)
    p, labels, codes = rare_in_large_clusters(2, "ten")
    form = STATISTICS["citl"]().given(sample(p, labels).rows)
    assert effective_clusters("citl", form, Clusters(codes, 750), labels) == pytest.approx(136, abs=1)
    found = caltest.test(p, labels, clusters=codes, rng=1, n_resamples=199)
    assert found.guarantee == "approximate"  # 'ecd' is carried by few, 'kuiper' by many
    assert "Few clusters carry 'ecd'" in " ".join(found.warnings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic", some_fast(["citl", "ecd", "skce_uq", "ece_squared"], "citl", "skce_uq")
)
def test_effective_clusters_by_definition(statistic):
    """(Σ E|S_g|²)² / Σ E|S_g|⁴ of comonotone labels; in closed form or by draws, the same."""
    probs, labels, codes = clustered(25, 4, 2, 0.3, 1)
    form = STATISTICS[statistic]().given(sample(probs, labels).rows)
    clusters = Clusters(codes, 25)
    drawn = form.comonotone().labels(np.tile((np.arange(4000)[:, None] + 0.5) / 4000, 100))
    squares = form.squares_of(drawn, clusters)
    mean, fourth = np.mean(squares, axis=0), np.mean(np.square(squares), axis=0)
    expected = mean.sum() ** 2 / fourth.sum()
    assert effective_clusters(statistic, form, clusters, labels) == pytest.approx(expected, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["skce_uq", "jkce", "skce_ul", "ckce", "ecd", "omnibus"])
def test_the_null_of_labels_surprised_together(statistic):
    """All rows of a cluster with one label each draw: of means over pairs, those of other clusters."""
    found = run(statistic, null="comonotone")
    assert (found.null, found.guarantee, found.n_resamples) == ("comonotone", "approximate", 199)
    assert 0.0 < found.pvalue <= 1.0
    if statistic != "omnibus":
        value = caltest.estimate(PROBS, LABELS, statistic, clusters=CODES)
        assert found.statistic == pytest.approx(value, rel=1e-9, abs=1e-14)
        again = run(statistic)
        assert again.pvalue >= found.pvalue or "Few clusters carry" not in " ".join(again.warnings)


def test_a_guaranteed_p_value_of_a_comonotone_sum():
    """By hand: three clusters that share an outcome of 0.0003; the mean of the largest share a is T."""
    null = caltest.nulls.ComonotoneLabels(guaranteed=True)
    codes = np.repeat(np.arange(3), 100)
    p, labels = np.full(300, 0.0003), (codes == 1).astype(int)
    found = caltest.test(p, labels, "citl", null=null, clusters=codes, alternative="greater")
    assert found.guarantee == "bound"
    # Of k clusters with the event: P(k >= 1), and the share of k = 0 that lowers the mean to 1.
    tail = stats.binom.pmf([3, 2, 1], 3, 0.0003)
    above = float(tail @ [2.0, 1.0, 0.0])
    assert found.pvalue == pytest.approx(tail.sum() + above / 1.0, rel=1e-2)
    with pytest.raises(InputError, match="guaranteed=True is for sums over rows of classes, and 'ks'"):
        caltest.test(p, labels, "ks", null=null, clusters=codes)
    assert caltest.test(p, np.zeros(300, int), "citl", null=null, clusters=codes).pvalue == 1.0


def test_clusters_stay_with_their_rows():
    rows = sample(PROBS, LABELS, clusters=CODES).rows
    assert rows.take(np.array([8, 1, 119])).clusters.tolist() == [2, 0, 29]
    assert find_lens("top_label").show(rows).rows.clusters is not None
    assert caltest.test(rows, LABELS, "ecd", n_resamples=49, rng=0).null == "cluster_signs"


def test_two_clusters_at_least_must_count():
    weights = np.where(CODES == 3, 1.0, 0.0)
    with pytest.raises(InputError, match="one cluster alone"):
        run("ecd", weights=weights)
    weights = np.where(CODES < 6, WEIGHTS, 0.0)
    kept = CODES < 6
    some = run("ecd", PROBS[kept], LABELS[kept], CODES[kept], weights=WEIGHTS[kept])
    assert run("ecd", weights=weights).pvalue == some.pvalue


# ------------------------------------------------------------------ what is refused


def test_nulls_and_clusters_must_go_together():
    for name, null in NULLS.items():
        if null.of_clusters:
            with pytest.raises(InputError, match="give clusters="):
                caltest.test(PROBS, LABELS, "ecd", null=name)
        else:
            with pytest.raises(InputError, match="'cluster_signs' or 'one_per_cluster'"):
                run("ecd", null=name)


@pytest.mark.parametrize("option", [{"tolerance": 0.02}, {"rounding": 0.05}, {"alternative": "over"}])
def test_tolerances_are_refused(option):
    with pytest.raises(InputError, match="independent rows only"):
        run("scan", lens="top_label", **option)


def test_files_and_vectors_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([PROBS, LABELS]))
    with pytest.raises(InputError, match=r"caltest\.files\.scan\(path, clusters="):
        caltest.test(caltest.files.scan(tmp_path / "rows.npy", label=-1), clusters=CODES)
    densities = caltest.predictive.GaussianPredictions(np.zeros((4, 2)), np.eye(2))
    with pytest.raises(InputError, match="need quantiles, which vectors do not have"):
        caltest.test(densities, np.zeros((4, 2)), "ecd", clusters=[1, 1, 2, 2])


def test_pairs_inside_clusters_only_are_refused():
    with pytest.raises(InputError, match="every pair of rows"):
        run(LinearSKCE(pairing="rows"), clusters=np.arange(len(LABELS)) // 2)


def test_labels_that_cannot_be_have_the_smallest_pvalue():
    probs = np.vstack([PROBS, [[1.0, 0.0, 0.0]] * 4])
    labels, codes = np.append(LABELS, [1] * 4), np.append(CODES, [30, 30, 31, 31])
    for statistic in ("ecd", "omnibus"):
        found = run(statistic, probs, labels, codes)
        assert found.statistic == np.inf
        assert found.pvalue <= 2 / 200


# ------------------------------------------------------------------ one row a cluster


@pytest.mark.parametrize("statistic", ["ecd", "cox", "mcb_brier", "omnibus"])
def test_one_row_a_cluster_fits_any_statistic(statistic):
    found = run(statistic, null=OnePerCluster(choices=3), n_resamples=19)
    assert (found.null, found.guarantee) == ("one_per_cluster", "exact")
    assert 2 / 20 <= found.pvalue <= 1.0


def test_one_row_a_cluster_looks_at_no_other_row():
    """Bandwidths and groups are those of the rows chosen; what is not chosen may be anything."""
    calls = []

    class Seen(UnbiasedSKCE):
        def fitted(self, predictions):
            calls.append(predictions.n_samples)
            return super().fitted(predictions)

    run(Seen(), null=OnePerCluster(choices=2), n_resamples=9)
    assert calls[-2:] == [30, 30]
    measure = CKCE(groups=np.arange(len(LABELS)) % 2)
    assert 0.0 < run(measure, null=OnePerCluster(choices=2), n_resamples=9).pvalue <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["citl", "ks", "skce_uq", "ece_squared"])
def test_common_rows_that_cancel_do_not_hide_rare_clusters(statistic):
    """Exactly one of two options is right; a rare event comes to four rows at once, or here to none."""
    rng = np.random.default_rng(1)
    count, rare = 600, 0.004
    first, together = rng.random(count) < 0.5, rng.random(count) < rare
    probs = np.tile([0.5, 0.5, *[rare] * 4], count)
    labels = np.column_stack([first, ~first, *[together] * 4]).astype(int).ravel()
    result = caltest.test(probs, labels, statistic, clusters=np.repeat(np.arange(count), 6), rng=1)
    assert result.pvalue > 0.05
    assert result.guarantee == "approximate"
    assert any("Few clusters carry" in note for note in result.warnings)


def test_one_row_a_cluster_takes_functions():
    def errors(probs, labels):
        return float(np.mean(probs.argmax(axis=1) != labels))

    assert 0.0 < run(errors, null=OnePerCluster(choices=3), n_resamples=19).pvalue <= 1.0
    with pytest.raises(InputError, match="functions of your own"):
        run(errors)


def test_clusters_of_one_row_are_the_exact_null_twice():
    """Every choice is the whole: p is twice the mean of Monte-Carlo p-values of one test."""
    found = run("ecd", clusters=np.arange(len(LABELS)), null="one_per_cluster", n_resamples=999)
    exact = caltest.test(PROBS, LABELS, "ecd", n_resamples=999, rng=0)
    assert found.statistic == pytest.approx(exact.statistic)
    assert found.pvalue == pytest.approx(min(1.0, 2.0 * exact.pvalue), abs=0.05)


# ------------------------------------------------------------------ level and power


def rejections(statistic, designs, size=4, **options):
    found = []
    for seed in range(designs):
        probs, labels, codes = clustered(60, size, 2, 0.6, seed)
        given = {"clusters": codes, "n_resamples": 99, "rng": seed, **options}
        found.append(caltest.test(probs, labels, statistic, **given).pvalue)
    return np.mean(np.array(found) <= 0.05 + 1e-12)


@pytest.mark.level
def test_without_clusters_dependence_passes_for_evidence():
    assert rejections("skce_uq", 150, 10, clusters=None) > 0.12


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic", some_fast([name for name in GOES if name != "ckce"], "esce", mark="level")
)
def test_level_of_every_statistic(statistic):
    """Rows that depend on each other are no evidence; taken as independent they would be."""
    assert rejections(statistic, 80) <= binomial_limits(80, 0.08)[1]


@pytest.mark.slow
def test_one_row_a_cluster_has_its_level():
    assert rejections("esce", 100, null=OnePerCluster(choices=5)) <= binomial_limits(100, 0.05)[1]


@pytest.mark.parametrize("statistic", ["ecd", "skce_uq", "omnibus"])
def test_what_is_wrong_is_found(statistic):
    probs, labels, codes = clustered(200, 4, 3, 0.3, 5, temperature=2.5)
    assert run(statistic, probs, labels, codes).pvalue <= 0.01


def test_rows_that_are_independent_lose_little():
    """With every row a cluster of its own, the p-value is about that of the exact null."""
    probs = dirichlet(400, 3, 6)
    labels = labels_from(probs, np.random.default_rng(7))
    exact = caltest.test(probs, labels, "ecd", n_resamples=999, rng=0).pvalue
    assert run("ecd", probs, labels, np.arange(400), n_resamples=999).pvalue == pytest.approx(
        exact, abs=0.15
    )


def test_the_default_null_is_an_object_too():
    assert run("ecd", null=ClusterSigns()).pvalue == run("ecd").pvalue


# ------------------------------------------------------------------ from a file


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """A table with a column of patients."""
    table = pd.DataFrame(PROBS, columns=["a", "b", "c"])
    table["label"], table["patient"] = np.array(["a", "b", "c"])[LABELS], [f"p{i}" for i in CODES]
    path = tmp_path_factory.mktemp("clusters") / "rows.csv"
    table.to_csv(path, index=False)
    return path


def test_clusters_of_a_column(patients):
    found = command(
        "test", patients, "--clusters", "patient", "--statistic", "ecd", "--json", "--seed", 0
    )
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert (data["null"], data["pvalue"]) == ("cluster_signs", run("ecd", n_resamples=999).pvalue)
    assert data["parameters"]["clusters"] == 30
    value = command("estimate", patients, "--clusters", "patient", "--statistic", "skce_uq", "--json")
    expected = caltest.estimate(PROBS, LABELS, "skce_uq", clusters=CODES)
    assert json.loads(value.stdout)["statistic"] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--clusters", "patien"], "did you mean 'patient'"),
        (["--clusters", "patient", "--tolerance", "0.02"], "independent rows only"),
        (["--group", "patient", "--null", "cluster_signs"], "give --clusters"),
        (["--clusters", "patient", "--alpha", "1e-9", "--null", "one_per_cluster"], "--resamples"),
    ],
)
def test_commands_say_what_is_wrong(patients, options, says):
    found = command("test", patients, *options)
    assert found.exit_code == 2
    assert says in found.stderr


def test_a_level_that_few_clusters_cannot_reach_is_refused(patients, tmp_path):
    pd.read_csv(patients).iloc[:12].to_csv(tmp_path / "few.csv", index=False)
    found = command("test", tmp_path / "few.csv", "--clusters", "patient", "--statistic", "ecd")
    assert found.exit_code == 2
    assert "no p-value is below 0.25" in found.stderr
    assert command("test", "--example", "digits:naive_bayes", "--clusters", "patient").exit_code == 2
