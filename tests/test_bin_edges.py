"""One convention of bin edges: (a, b], the first bin with its low end, through every door.

Predictions lie on the edges of the bins, and on the floats beside them, such as 0.1 + 0.2. Whatever
shows bins must put each row in the bin that is found here by counting edges.
"""

from bisect import bisect_left

import matplotlib.pyplot as plt
import numpy as np
import pytest

import caltest
from caltest import binning
from caltest.binning import EqualMass, EqualWidth, FromEdges, MedianVariance, ReliabilityCurve, Uniform
from caltest.data import Rows
from caltest.estimation import HistogramBinning
from caltest.report.summary import summarise
from caltest.statistics import ACE, ECE, HosmerLemeshow, LargestBinError


def on_edges(n_bins):
    """Rows whose predictions are edges of bins, written in several ways, and their neighbours."""
    edges = [k / n_bins for k in range(n_bins + 1)]
    steps = [k * (1 / n_bins) for k in range(n_bins)]  # not always the same floats
    beside = [float(np.nextafter(e, to)) for e in edges for to in (0, 1)]
    middles = [(k + 0.4) / n_bins for k in range(n_bins)]
    few = np.array(edges + steps + np.linspace(0, 1, n_bins + 1).tolist() + beside + middles)
    rng = np.random.default_rng(n_bins)
    p = rng.permutation(np.concatenate([few, few, few[::2], [0.1 + 0.2, 0.3, 0.7, 0.1 * 7]]))
    return p, (rng.random(len(p)) < 0.2 + 0.5 * p).astype(int)


def by_counting(p, n_bins):
    """Bins of equal width: the first edge that is not below the prediction ends its bin."""
    inner = [k / n_bins for k in range(1, n_bins)]
    return np.array([bisect_left(inner, value) for value in p.tolist()])


def by_ranks(p, n_bins):
    """Bins of equal mass: the middle rank of equal predictions, of n, lies in one of n_bins parts."""
    values = p.tolist()
    middle = [sum(v < value for v in values) + values.count(value) / 2 for value in values]
    return np.array([int(rank * n_bins / len(p) * (1 + 1e-12)) for rank in middle])


def in_bins(p, y, cells):
    """Rows, mean prediction and share of events of every bin that holds rows."""
    members = [cells == cell for cell in np.unique(cells)]
    return [(int(m.sum()), float(p[m].mean()), float(y[m].mean())) for m in members]


def same(found, expected):
    assert [rows for rows, *_ in found] == [rows for rows, *_ in expected]
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-12)


# ------------------------------------------------------------------ what shows bins


def table(p, y, n_bins):
    found = caltest.bin_table(p, y, bins=n_bins).iloc[:-1]
    assert len(found) == n_bins
    found = found[found["count"] > 0]
    return list(found[["count", "confidence", "frequency"]].itertuples(index=False, name=None))


def shown(p, y, rule):
    display = caltest.ReliabilityDisplay.from_predictions(p, y, binning=rule, n_resamples=39, rng=0)
    plt.close(display.figure_)
    (panel,) = display.panels
    return panel


def picture(rule):
    def door(p, y, n_bins):
        panel = shown(p, y, rule(n_bins))
        return list(zip(panel.counts.tolist(), panel.predicted, panel.observed, strict=True))

    return door


def bounds(p, y, n_bins):
    assert n_bins == 15
    curve = caltest.miscalibration_bounds(p, y, n_resamples=99, rng=0).views[0].curve
    return list(zip(curve.rows, curve.predicted, curve.observed, strict=True))


def certificate(rule):
    def door(p, y, n_bins):
        found = caltest.certificate(p, y, binning=rule(n_bins))
        for low, high, rows in zip(found.starts, found.ends, found.counts, strict=True):
            assert ((p >= low) & (p <= high)).sum() == rows
        return list(
            zip(found.counts.astype(int).tolist(), found.predicted, found.estimates, strict=True)
        )

    return door


def curve_of(rule):
    def door(p, y, n_bins):
        found = binning.reliability_curve(Rows(np.column_stack([1 - p, p])), y, rule(n_bins))
        for cell, (low, high) in enumerate(zip(found.low, found.high, strict=True)):
            inside = (p > low) & (p <= high) | ((p == low) & (cell == 0))
            assert inside.tolist() == (found.cells == cell).tolist()
        return list(zip(found.counts.tolist(), found.predicted, found.observed, strict=True))

    return door


def edges(n_bins):
    return FromEdges([k / n_bins for k in range(n_bins + 1)])


WIDTH = {
    "bin_table": table, "reliability diagram": picture(EqualWidth),
    "reliability diagram, edges given": picture(edges), "bounds": bounds,
    "certificate": certificate(EqualWidth), "curve": curve_of(EqualWidth),
    "curve, edges given": curve_of(edges),
}  # fmt: skip


def every(doors, n_bins, **only):
    """Every door with every number of bins, but for those that have a number of their own."""
    return [(door, k) for door in doors for k in ((only[door],) if door in only else n_bins)]


@pytest.mark.slow
@pytest.mark.parametrize(("door", "n_bins"), every(WIDTH, (3, 10, 15), bounds=15))
def test_bins_of_equal_width(door, n_bins):
    p, y = on_edges(n_bins)
    same(WIDTH[door](p, y, n_bins), in_bins(p, y, by_counting(p, n_bins)))


def audited(p, y):
    """An audit with one diagram, of class 1: of 300 rows or more it has 15 bins."""
    found = caltest.audit(p, y, statistics="ecd", lenses="canonical", n_resamples=19, rng=0, alpha=0.1)
    (view,) = (each for each in found.views if each.reliability)
    return found, view.reliability


def audit(p, y, n_bins):
    _, found = audited(p, y)
    return list(zip(found.rows, found.predicted, found.observed, strict=True))


def report(p, y, n_bins):
    found, curve = audited(p, y)
    (drawn,) = summarise(found, title=None, command=None).pictures
    rows = [row for *_, row, _ in drawn.bins]
    return list(zip(rows, curve.predicted, curve.observed, strict=True))


MASS = {
    "reliability diagram": picture(EqualMass), "certificate": certificate(EqualMass),
    "curve": curve_of(EqualMass), "audit": audit, "report": report,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("door", "n_bins"), every(MASS, (10, 15), audit=15, report=15))
def test_bins_of_equal_mass(door, n_bins):
    p, y = (np.tile(each, -(-300 // len(each))) for each in on_edges(n_bins))
    same(MASS[door](p, y, n_bins), in_bins(p, y, by_ranks(p, n_bins)))


# ------------------------------------------------------------------ numbers made in bins


def of_bins(measure):
    """A number made of rows, predicted and observed of all bins."""

    def expected(p, y, cells):
        rows, predicted, observed = np.array(in_bins(p, y, cells)).T
        return measure(rows, predicted, observed, p, y, cells)

    return expected


def ece(rows, predicted, observed, *_):
    return (rows * abs(observed - predicted)).sum() / rows.sum()


def largest(rows, predicted, observed, p, y, cells):
    spread = np.array([np.sqrt((p * (1 - p))[cells == cell].sum()) for cell in np.unique(cells)])
    return (abs(rows * (observed - predicted)) / (spread + 1)).max()


def pearson(rows, predicted, observed, *_):
    varied = (predicted > 0) & (predicted < 1)
    terms = rows[varied] * (observed - predicted)[varied] ** 2
    return (terms / (predicted * (1 - predicted))[varied]).sum()


def estimate(make):
    return lambda p, y, n_bins: caltest.estimate(p, y, make(n_bins))


def of_a_file(make):
    """The same statistic of rows that come in parts."""

    def door(p, y, n_bins):
        stored = caltest.files.scan_arrays(np.column_stack([1 - p, p]), y)
        return caltest.test(stored, None, make(n_bins), n_resamples=9, rng=0).statistic

    return door


def table_total(p, y, n_bins):
    return caltest.bin_table(p, y, bins=n_bins).loc["weighted sum", "ece"]


def histogram_binning(p, y, n_bins):
    """Σ over rows of the mean residual of the row's bin, absolute, from h(p, p) = ĉ(p)²."""
    return np.sqrt(HistogramBinning(n_bins).fit(p, y).diagonal(np.column_stack([1 - p, p]))).mean()


NUMBERS = {
    "ece": (estimate(lambda k: ECE(EqualWidth(k))), by_counting, ece),
    "ece, edges given": (estimate(lambda k: ECE(edges(k))), by_counting, ece),
    "ece of a file": (of_a_file(lambda k: ECE(EqualWidth(k))), by_counting, ece),
    "ece of a table": (table_total, by_counting, ece),
    "ace": (estimate(lambda k: ACE(EqualMass(k))), by_ranks, ece),
    "ace of a file": (of_a_file(lambda k: ACE(EqualMass(k))), by_ranks, ece),
    "histogram binning": (histogram_binning, by_counting, ece),
    "max_bin": (estimate(lambda k: LargestBinError(binning=EqualWidth(k))), by_counting, largest),
    "hosmer_lemeshow": (estimate(HosmerLemeshow), by_ranks, pearson),
}


@pytest.mark.parametrize("n_bins", [3, 10, 15])
@pytest.mark.parametrize("door", NUMBERS)
def test_numbers_of_bins(door, n_bins):
    found, cells_of, measure = NUMBERS[door]
    p, y = on_edges(n_bins)
    p, y = p[(p > 0) & (p < 1) | (y == (p > 0.5))], y[(p > 0) & (p < 1) | (y == (p > 0.5))]
    expected = of_bins(measure)(p, y, cells_of(p, n_bins))
    assert found(p, y, n_bins) == pytest.approx(expected, rel=1e-9)


# ------------------------------------------------------------------ bands, and bins without edges


@pytest.mark.parametrize("rule", [EqualWidth(10), EqualMass(10), MedianVariance(5), Uniform(10)])
def test_bands_are_of_the_bins_of_the_curve(rule):
    """Bin by bin, the pointwise band is that of the rows whose mean and share are shown there."""
    p, y = on_edges(10)
    panel = shown(p, y, rule)
    curve = binning.reliability_curve(Rows(np.column_stack([1 - p, p])), y, rule)
    assert isinstance(curve, ReliabilityCurve)
    assert (np.diff(curve.predicted) >= 0).all()
    for cell, rows in enumerate(panel.counts):
        inside = curve.cells == cell
        assert inside.sum() == rows
        assert p[inside].mean() == pytest.approx(panel.predicted[cell], abs=1e-12)
        low, high = binning.CountLaw(p[inside]).limits(0.025)
        assert panel.pointwise.low[cell] == pytest.approx(low / rows)
        assert panel.pointwise.high[cell] == pytest.approx(high / rows)


@pytest.mark.parametrize("rule", [EqualWidth(10), EqualMass(7), MedianVariance(5), Uniform(10)])
def test_equal_predictions_stay_together(rule):
    p, _ = on_edges(10)
    cells = rule.cells(Rows(np.column_stack([1 - p, p])))
    for value in np.unique(p):
        assert len(set(cells[p == value].tolist())) == 1


def test_names_of_a_table_say_its_edges():
    names = caltest.bin_table([0.1, 0.3, 0.1 + 0.2, 0.8], [0, 1, 0, 1]).index
    assert names[:2].tolist() == ["[0, 0.1]", "(0.1, 0.2]"]
    counts = caltest.bin_table([0.1, 0.3, 0.1 + 0.2, 0.8], [0, 1, 0, 1])["count"]
    assert counts[["[0, 0.1]", "(0.2, 0.3]", "(0.3, 0.4]", "(0.7, 0.8]"]].tolist() == [1, 1, 1, 1]
