"""ECE sweep and class-wise ECE: loops by definition, values by hand, level, power, clusters."""

from itertools import pairwise

import numpy as np
import pytest
from support import binomial_limits, dirichlet, labels_from, tied

import caltest
from caltest import InputError
from caltest.binning import EqualMass, EqualWidth, FromEdges, intervals
from caltest.clusters import Clusters
from caltest.data import Rows, sample
from caltest.forms import cells as cells_of_forms
from caltest.statistics import ClasswiseECE, ECESweep

# ------------------------------------------------------------------ sweep


def swept(rows, labels, norm):
    """Return ECE sweep and its number of bins, bin by bin as the source has it."""
    p, w = rows.probs[:, 1], rows.weights

    def bins_of(number):
        cells = EqualMass(number).cells(rows)
        inside = [cells == each for each in np.unique(cells)]
        return [
            (w[b].sum(), np.average(labels[b], weights=w[b]), np.average(p[b], weights=w[b]))
            for b in inside
        ]

    chosen = 1
    for number in range(2, len(p) + 1):
        rates = [rate for _, rate, _ in bins_of(number)]
        if any(after < before - 1e-9 for before, after in pairwise(rates)):
            break
        chosen = number
    error = sum(size * abs(rate - mean) ** norm for size, rate, mean in bins_of(chosen))
    return (error / w.sum()) ** (1 / norm), chosen


def spread(n, seed):
    return np.random.default_rng(seed).beta(0.7, 0.7, n)


DESIGNS = {
    "spread": spread(60, 0), "many": spread(200, 1), "tied": tied(80, 2, 2)[:, 1],
    "rounded": np.round(spread(150, 3), 1),
    "sure": np.where(spread(90, 4) < 0.5, 1e-3, 0.999) + 1e-4 * spread(90, 5),
    "one score": np.full(30, 0.3), "two rows": np.array([0.2, 0.9]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("design", DESIGNS)
def test_the_sweep_by_definition(design, norm, weighted):
    """All draws at once, as they are by loops: with ties, weights, and labels that rise throughout."""
    p, rng = DESIGNS[design], np.random.default_rng(6)
    weights = rng.integers(1, 5, len(p)) if weighted else None
    rows = sample(p, np.zeros(len(p), int), weights=weights).rows
    draws = (rng.random((6, len(p))) < p).astype(np.uint8)
    draws[0], draws[1], draws[2] = p > 0.5, p < 0.5, 0
    form = ECESweep(norm=norm).given(rows)
    expected = [swept(rows, labels, norm)[0] for labels in draws]
    assert form.of_labels(draws) == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert [form.value(labels) for labels in draws] == list(form.of_labels(draws))


def test_how_many_bins():
    """By hand: 4 rows whose rates fall from the first of 2, of 3, and of no number of bins."""
    p = np.array([0.1, 0.2, 0.7, 0.9])
    rows = Rows(np.column_stack([1 - p, p]))
    observed = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 0, 1, 1]])
    assert [swept(rows, labels, 1)[1] for labels in observed] == [1, 2, 4]
    one_bin = abs(2 / 4 - p.mean())
    assert caltest.estimate(p, [1, 1, 0, 0], ECESweep(norm=1)) == pytest.approx(one_bin)
    two = (0.5 - 0.15) / 2, (1 - 0.8) / 2
    assert caltest.estimate(p, [1, 0, 1, 1], ECESweep(norm=1)) == pytest.approx(sum(two))
    alone = [0.1, 0.2, 0.3, 0.1]
    assert caltest.estimate(p, [0, 0, 1, 1], ECESweep(norm=1)) == pytest.approx(np.mean(alone))
    squares = np.sqrt(np.mean(np.square(alone)))
    assert caltest.estimate(p, [0, 0, 1, 1], "ece_sweep") == pytest.approx(squares)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_bins_of_the_source(norm):
    """It puts row i of n, in order, into bin floor(i b/n); where b divides n, that is ours."""
    for seed in range(5):
        rng = np.random.default_rng([8, seed])
        n, p = 2520, np.sort(rng.uniform(0.45, 0.55, 2520))
        labels, found = (rng.random(n) < 0.5).astype(int), np.zeros(n, int)
        for number in range(2, 11):  # which all divide n
            cells = np.arange(n) * number // n
            rates = np.bincount(cells, labels) / np.bincount(cells)
            if (np.diff(rates) < 0).any():
                break
            found = cells
        else:
            raise AssertionError("more bins than divide n")
        sizes = np.bincount(found)
        gaps = np.abs(np.bincount(found, labels) - np.bincount(found, p)) / sizes
        expected = (gaps**norm @ sizes / n) ** (1 / norm)
        assert caltest.estimate(p, labels, ECESweep(norm=norm)) == pytest.approx(expected)


def test_rows_in_clusters_and_other_norms_are_refused():
    p = DESIGNS["spread"]
    labels, clusters = (p > 0.5).astype(int), np.arange(60) // 3
    with pytest.raises(InputError, match="possible here: one_per_cluster"):
        caltest.test(p, labels, "ece_sweep", clusters=clusters)
    found = caltest.test(
        p, labels, "ece_sweep", clusters=clusters, null="one_per_cluster", n_resamples=9, rng=0
    )
    assert 0 < found.pvalue <= 1
    with pytest.raises(InputError, match="measures one probability"):
        ECESweep().given(Rows(dirichlet(20, 3, 0)))


# ------------------------------------------------------------------ class by class


def classwise(rows, labels, binning):
    """The mean over classes of the ECE of each, cell by cell."""
    errors = []
    for k, p in enumerate(rows.probs.T):
        cells = intervals(p, binning.edges_of(p, rows.weights))
        inside = [cells == each for each in np.unique(cells)]
        gaps = [abs(float(rows.weights[b] @ ((labels == k)[b] - p[b]))) for b in inside]
        errors.append(sum(gaps) / rows.weights.sum())
    return np.mean(errors)


BINNINGS = [EqualWidth(15), EqualWidth(4), EqualMass(5), FromEdges([0, 0.1, 0.5, 1])]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("binning", BINNINGS, ids=str)
@pytest.mark.parametrize("m", [2, 3, 10])
def test_class_by_class_by_definition(m, binning, weighted, monkeypatch):
    probs, rng = dirichlet(70, m, 0, 0.4), np.random.default_rng(1)
    probs[:2] = np.eye(m)[:2]
    weights = rng.integers(1, 5, 70) if weighted else None
    draws = np.stack([labels_from(probs, rng) for _ in range(6)])
    rows = sample(probs, draws[0], weights=weights).rows
    form = ClasswiseECE(binning).given(rows)
    expected = [classwise(rows, labels, binning) for labels in draws]
    assert form.of_labels(draws) == pytest.approx(expected, rel=1e-12)
    assert form.value(draws[0]) == pytest.approx(expected[0], rel=1e-12)
    monkeypatch.setattr(cells_of_forms, "_TABLE", 1)
    monkeypatch.setattr(cells_of_forms, "_SPARSE", 0)  # so that only counts above 0 are visited
    assert form.of_labels(draws) == pytest.approx(expected, rel=1e-12)


def test_signs_of_clusters_act_on_the_cells():
    probs, rng = dirichlet(90, 3, 3), np.random.default_rng(4)
    labels, codes = labels_from(probs, rng), rng.integers(0, 30, 90)
    form, clusters = ClasswiseECE(EqualWidth(3)).given(Rows(probs)), Clusters(codes, 30, np.ones(90))
    signs = rng.choice(np.array([-1, 1], np.int8), (5, 30))
    for own, value in zip(signs, form.signed(labels, clusters).of_labels(signs), strict=True):
        turned = own[codes][:, None] * (np.eye(3)[labels] - probs)
        gaps = 0.0
        for k, p in enumerate(probs.T):
            sums = np.bincount(intervals(p, np.arange(4) / 3), turned[:, k])
            gaps += float(np.abs(sums).sum())
        assert value == pytest.approx(gaps / 3 / 90)


# ------------------------------------------------------------------ level and power


@pytest.mark.level
def test_level_of_signs_of_clusters():
    """200 clusters of 4 rows that share a label, in few bins: an approximation, within its limits."""
    found = []
    for seed in range(100):
        rng = np.random.default_rng([5, seed])
        probs = np.repeat(dirichlet(200, 3, seed), 4, axis=0)
        labels = np.repeat(labels_from(probs[::4], rng), 4)
        options = {"clusters": np.arange(800) // 4, "n_resamples": 99, "rng": seed}
        found.append(caltest.test(probs, labels, ClasswiseECE(EqualWidth(3)), **options).pvalue)
    assert np.mean(np.array(found) <= 0.05) <= binomial_limits(100, 0.05)[1]
