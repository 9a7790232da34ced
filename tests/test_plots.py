"""Reliability diagrams: their bands against complete enumeration and simulation, and what is drawn."""

import io
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.stats import binom
from support import binomial_limits, dirichlet, every_outcome, labels_from

import caltest
from caltest.binning import CountLaw, EqualMass, EqualWidth, MedianVariance, intervals, share_bands
from caltest.data import sample
from caltest.exceptions import InputError
from caltest.plots import NullDisplay, ReliabilityDisplay
from caltest.plots.panel import curve_bands

ALPHA = 0.05
SMALL = [0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1]


show = ReliabilityDisplay.from_predictions
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]


def draw(display):
    """Render the figure: layout and fonts are only worked out now."""
    display.figure_.savefig(io.BytesIO(), dpi=40)
    return display


def texts(display):
    return " ".join(t.get_text() for t in display.figure_.findobj(mpl.text.Text))


def shares(scores, cells, labels):
    return np.bincount(cells, weights=labels) / np.bincount(cells)


# ------------------------------------------------------------------ bands of bins


def test_count_law_of_many_rows():
    law, known = CountLaw(np.full(20_000, 0.01)), binom(20_000, 0.01)
    assert law.below == pytest.approx(known.cdf(np.arange(20_001)), abs=1e-11)
    assert law.above == pytest.approx(known.sf(np.arange(20_001) - 1), abs=1e-11)


@pytest.mark.parametrize("probs", [[0.3], [0.0, 1.0, 0.5], [0.9, 0.1, 0.01, 0.6, 1.0]])
def test_count_law_by_enumeration(probs):
    outcomes, weights = every_outcome(np.column_stack([1 - np.array(probs), probs]))
    mass = np.bincount(outcomes.sum(axis=1), weights=weights, minlength=len(probs) + 1)
    assert CountLaw(np.array(probs)).below == pytest.approx(np.cumsum(mass), abs=1e-15)


def test_limits_by_hand():
    law = CountLaw(np.array([0.5, 0.5]))  # 1/4, 1/2, 1/4
    assert law.limits(0.2) == (0, 2)
    assert law.limits(0.3) == (1, 1)
    assert law.coverage(0.3) == pytest.approx(0.5)
    assert CountLaw(np.zeros(5)).limits(0.025) == (0, 0)
    assert CountLaw(np.ones(5)).limits(0.025) == (5, 5)


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5])
def test_bands_of_bins_by_enumeration(alpha):
    scores = np.random.default_rng(4).beta(1, 1, 12)
    cells = intervals(scores, EqualMass(3).edges_of(scores))
    outcomes, weights = every_outcome(np.column_stack([1 - scores, scores]))
    point, joint = share_bands(scores, cells, alpha, alpha)
    drawn = np.array([shares(scores, cells, y) for y in outcomes])
    assert (weights @ point.leaves_out(drawn) <= alpha + 1e-12).all()
    assert weights @ joint.leaves_out(drawn).any(axis=1) <= alpha + 1e-12
    assert (joint.low <= point.low).all()
    assert (joint.high >= point.high).all()


def test_bands_of_bins_cover_as_they_say():
    """False-alarm rate of this test: below 1e-3 (16 limits of 1e-5 to 1e-4)."""
    scores = np.random.default_rng(1).beta(0.5, 0.5, 2000)
    cells = intervals(scores, EqualWidth(15).edges_of(scores))
    point, joint = share_bands(scores, cells, ALPHA, ALPHA)
    rng, n_sets = np.random.default_rng(2), 4000
    drawn = np.array([shares(scores, cells, rng.random(2000) < scores) for _ in range(n_sets)])
    missed = joint.leaves_out(drawn).any(axis=1).mean()
    assert missed <= binomial_limits(n_sets, ALPHA)[1]
    assert missed >= 0.03  # bins are large: little is lost to whole numbers
    each = point.leaves_out(drawn).mean(axis=0)
    assert (each <= binomial_limits(n_sets, ALPHA, 1e-5)[1]).all()
    assert each.mean() == pytest.approx(ALPHA, abs=0.02)


# ------------------------------------------------------------------ bands of curves


def test_pointwise_band_is_of_order_statistics():
    draws = np.arange(1.0, 40.0)[:, None]
    point, _ = curve_bands(np.array([20.0]), draws, 0.1, 0.1)  # k = 40 · 0.05 = 2
    assert (point.low.tolist(), point.high.tolist()) == ([2.0], [38.0])


def test_hull_leaves_out_the_most_extreme_curve():
    """Of 20 curves the observed one alone is most extreme: it has three extreme ranks."""
    draws = np.random.default_rng(0).random((19, 4))
    observed = np.array([2.0, 2.0, 2.0, 0.5])
    _, joint = curve_bands(observed, draws, 0.1, 0.05)
    assert joint.leaves_out(observed).tolist() == [True, True, True, False]
    assert joint.high == pytest.approx(draws.max(axis=0))


def test_equal_curves_are_inside():
    point, joint = curve_bands(np.full(3, 0.1 + 0.2), np.full((99, 3), 0.3), ALPHA, ALPHA)
    assert not joint.leaves_out(np.full(3, 0.3)).any()
    assert point.low.tolist() == [0.3] * 3


@pytest.mark.level
def test_isotonic_bands_cover_as_they_say():
    """False-alarm rate: 1e-4 for the joint limit, 1e-3 for the pointwise ones."""
    rng, n_sets, n = np.random.default_rng(3), 1000, 40
    missed, missed_points = 0, np.zeros(n)
    for _ in range(n_sets):
        scores = np.sort(rng.random(n))
        labels = (rng.random((100, n)) < scores).astype(int)
        curves = np.array([isotonic_regression(y).x for y in labels])
        point, joint = curve_bands(curves[0], curves[1:], ALPHA, ALPHA)
        observed = np.round(curves[0], 12)
        missed += joint.leaves_out(observed).any()
        missed_points += point.leaves_out(observed)
    assert missed / n_sets <= binomial_limits(n_sets, ALPHA)[1]
    assert missed / n_sets >= 0.02
    assert (missed_points / n_sets <= binomial_limits(n_sets, ALPHA, 2e-3 / n)[1]).all()


# ------------------------------------------------------------------ panels


def test_bins_by_hand():
    (panel,) = show(*SMALL, rng=0).panels
    assert panel.predicted == pytest.approx([0.2, 0.9])
    assert panel.observed.tolist() == [0.5, 1.0]
    assert panel.counts.tolist() == [2, 2]
    assert panel.scores.tolist() == [0.2, 0.2, 0.9, 0.9]
    assert panel.result.statistic == pytest.approx(0.2)
    assert panel.line is None
    assert not panel.outside.any()


def test_curve_by_hand():
    panel = show(*SMALL, curve="corp", rng=0).panels[0]
    assert panel.predicted.tolist() == [0.2, 0.9]
    assert panel.observed.tolist() == [0.5, 1.0]
    assert [part.tolist() for part in panel.line] == [[0.2, 0.9], [0.5, 1.0]]
    assert panel.counts is None
    assert panel.result.statistic == pytest.approx(0.05)


@pytest.mark.parametrize(("curve", "statistic"), [("binned", "ece"), ("corp", "mcb_brier")])
@pytest.mark.parametrize("lens", ["top_label", "class:1", "top:2"])
def test_the_test_is_the_packages_own(curve, statistic, lens):
    probs = dirichlet(60, 4, 5)
    labels = labels_from(probs, np.random.default_rng(6))
    binning = EqualWidth(15) if curve == "binned" else None
    display = show(probs, labels, lens=lens, curve=curve, binning=binning, rng=7, n_resamples=99)
    ours = display.panels[0].result
    alone = caltest.test(probs, labels, statistic, lens=lens, rng=7, n_resamples=99)
    assert (ours.statistic, ours.pvalue, ours.lens) == (alone.statistic, alone.pvalue, lens)
    assert f"p = {alone.pvalue:.3g}" in display.axes_[0].get_title(loc="left")


@pytest.mark.parametrize("curve", ["binned", "corp"])
def test_workers_change_nothing(curve):
    probs = dirichlet(300, 3, 8)
    labels = labels_from(probs, np.random.default_rng(9))
    one, two = (show(probs, labels, curve=curve, rng=1, n_jobs=k).panels[0] for k in (1, 2))
    for name in ("predicted", "observed", "pointwise", "simultaneous"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert one.result.pvalue == two.result.pvalue


@pytest.mark.parametrize("binning", [EqualWidth(5), EqualMass(5), MedianVariance(20)])
def test_order_of_rows_changes_no_bin(binning):
    probs = np.random.default_rng(10).random(200)
    labels = np.random.default_rng(11).integers(0, 2, 200)
    order = np.argsort(labels)
    one = show(probs, labels, binning=binning).panels[0]
    two = show(probs[order], labels[order], binning=binning).panels[0]
    assert one.predicted == pytest.approx(two.predicted, abs=1e-12)
    assert (np.diff(one.predicted) > 0).all()
    for name in ("observed", "counts", "pointwise", "simultaneous"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_values_on_edges_are_counted_with_their_bin():
    panel = show([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0, 0, 1, 0, 1, 1], binning=EqualWidth(5)).panels[0]
    assert panel.counts.tolist() == [2, 1, 1, 1, 1]


def test_sees_overconfidence_and_finds_calibrated_models_calibrated():
    rng = np.random.default_rng(12)
    truth = rng.random(2000)
    labels = rng.random(2000) < truth
    stated = truth**2 / (truth**2 + (1 - truth) ** 2)
    for curve in ("binned", "corp"):
        options = {"curve": curve, "rng": 0, "n_resamples": 199}
        wrong = show(stated, labels, **options)
        right = show(truth, labels, **options)
        assert wrong.panels[0].outside.sum() > 5
        assert wrong.panels[0].result.pvalue == 1 / 200
        assert not right.panels[0].outside.any()
        if curve == "binned":
            number = f"{wrong.panels[0].outside.sum()} of 15 bins outside the band; ECE"
            assert number in wrong.ax_.get_title(loc="left")
            assert "no bin outside the band; ECE" in right.ax_.get_title(loc="left")


# ------------------------------------------------------------------ lenses and words


def test_default_lens_and_words():
    probs, labels = dirichlet(20, 3, 13), np.arange(20) % 3
    top = show(probs, labels)
    assert top.panels[0].title == "Top class"
    assert top.axes_[0].get_ylabel() == "share in which the top class is right"
    assert "predicted probability that the top class is right" in texts(top)
    binary = show(*SMALL)
    assert binary.panels[0].predicted_label == "predicted probability that the label is class 1"
    frame = {"cat": probs[:, 0], "dog": probs[:, 1], "emu": probs[:, 2]}
    named = show(pytest.importorskip("pandas").DataFrame(frame), labels, lens="class:dog")
    assert named.panels[0].observed_label == "share in which the label is 'dog'"
    assert named.panels[0].title == "Class dog"


def test_classwise_panels():
    digits = caltest.datasets.load_digits_predictions("naive_bayes")
    display = draw(show(digits.probs, digits.labels, lens="classwise", rng=0, n_resamples=39))
    assert [panel.title for panel in display.panels] == [f"Class {k}" for k in range(10)]
    assert len(display.axes_) == 10
    alone = show(digits.probs, digits.labels, lens="class:8", rng=0, n_resamples=39).panels[0]
    among = display.panels[8]
    assert np.array_equal(alone.pointwise, among.pointwise)
    assert (among.simultaneous.low <= alone.simultaneous.low).all()
    assert (among.simultaneous.low < alone.simultaneous.low).any()  # it holds for ten panels together
    assert "all bins of all panels" in texts(display)


@pytest.mark.parametrize("n_panels", [1, 2, 3, 7, 20])
def test_grids_of_panels(n_panels):
    probs, labels = dirichlet(30, 20, 14), np.arange(30) % 20
    display = show(probs, labels, lens="classwise", classes=range(n_panels), n_resamples=19)
    assert len(draw(display).axes_) == n_panels
    assert len(display.figure_.axes) == n_panels  # none empty


WRONG = {
    "too many panels": ({"lens": "classwise"}, "makes 25 panels"),
    "no panel": ({"lens": "classwise", "classes": []}, "makes 0 panels"),
    "classes alone": ({"classes": [0]}, "classes chooses the panels"),
    "more than two classes": ({"lens": "sorted"}, "25 classes through the lens"),
    "lens": ({"lens": "top_lable"}, "did you mean 'top_label'"),
    "curve": ({"curve": "corps"}, "did you mean 'corp'"),
    "binning of a curve": ({"curve": "corp", "binning": EqualMass(5)}, "has no bins"),
    "binning": ({"binning": 15}, "object of caltest.binning"),
    "confidence": ({"confidence": 95}, "confidence is 95"),
    "resamples": ({"n_resamples": 0}, "n_resamples is 0"),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_options(options, message):
    import matplotlib.pyplot as plt

    with pytest.raises(InputError, match=message):
        show(dirichlet(30, 25, 15), np.arange(30) % 25, **options)
    assert plt.get_fignums() == []


# ------------------------------------------------------------------ drawing

EDGES = {
    "two rows": ([0.3, 0.8], [1, 1]),
    "equal scores": ([0.4] * 50, [0, 1] * 25),
    "one class only": (np.linspace(0.1, 0.9, 30), np.zeros(30, dtype=int)),
    "certain": ([0.0, 1.0] * 20, [0, 1] * 20),
    "certain and wrong": ([0.0, 1.0] * 20, [0, 1] * 19 + [1, 0]),
    "tiny": (np.full(200, 1e-20), [0] * 199 + [1]),
}


@pytest.mark.parametrize("curve", ["binned", "corp"])
@pytest.mark.parametrize(("probs", "labels"), EDGES.values(), ids=EDGES)
def test_edge_cases(probs, labels, curve):
    display = draw(show(probs, labels, curve=curve, rng=0, n_resamples=99))
    (panel,) = display.panels
    for band in (panel.pointwise, panel.simultaneous):
        assert ((band.low >= 0) & (band.low <= band.high) & (band.high <= 1)).all()
    assert len(panel.predicted) == len(panel.observed) > 0
    ax = display.axes_[0]
    assert ax.get_position().height > 0.55  # nothing drawn eats the room of the diagram


def test_impossible_labels_are_outside():
    panel = show(*EDGES["certain and wrong"]).panels[0]
    assert panel.outside.all()
    assert "had probability 0" in " ".join(panel.result.warnings)


def test_points_outside_have_another_shape():
    labels = np.zeros(400, dtype=int)
    display = show(np.tile([0.05, 0.5], 200), labels, rng=0)
    assert display.panels[0].outside.tolist() == [True, True]
    lines = {line.get_marker(): line for line in display.axes_[0].lines}
    assert lines["D"].get_markerfacecolor() != "white"
    assert len(lines["D"].get_xdata()) == 2
    assert "o" not in lines
    assert "bin outside the lighter band" in texts(display)


def test_given_axes():
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    display = draw(show(*SMALL, ax=left))
    assert len(figure.axes) == 2
    draw(display.plot(figure.add_axes([0.6, 0.5, 0.3, 0.3])))  # in no grid
    assert not right.lines
    assert plt.get_fignums() == [figure.number]


def test_given_axes_of_several_panels_are_labelled():
    import matplotlib.pyplot as plt

    display = draw(show(*SMALL, lens="classwise", ax=plt.subplots(1, 2, layout="constrained")[1]))
    labels = [f"share in which the label is class {k}" for k in (0, 1)]
    assert [ax.get_ylabel() for ax in display.axes_] == labels
    assert "predicted probability that the label is class 0" in texts(display)


def bars_of(display):
    """Return the heights of the bars beneath, and the edges between them."""
    bars = display.ax_.patches
    edges = [bar.get_x() for bar in bars] + [bars[-1].get_x() + bars[-1].get_width()]
    return np.array([bar.get_height() for bar in bars]), np.array(edges)


def rare(n=20_000):
    rng = np.random.default_rng(3)
    probs = 1.0 / (1.0 + np.exp(rng.normal(5.2, 1.2, n)))
    return probs, (rng.random(n) < probs).astype(int)


def sure(n=20_000):
    probs, labels = rare(n)
    return 1.0 - probs, 1 - labels


SHAPES = {
    "all over": (np.random.default_rng(0).random(3000), None),
    "rare": rare(),
    "sure": sure(),
    "few rows": (np.random.default_rng(1).random(30), None),
    "one score": (np.full(50, 0.4), None),
    "a narrow range": (np.random.default_rng(2).uniform(0.50, 0.52, 4000), None),
}


@pytest.mark.parametrize("curve", ["binned", "corp"])
@pytest.mark.parametrize("shape", SHAPES)
def test_axes_hold_all_points_and_bars_nearly_all_rows(shape, curve):
    probs, labels = SHAPES[shape]
    if labels is None:
        labels = (np.random.default_rng(5).random(len(probs)) < probs).astype(int)
    display = draw(show(probs, labels, curve=curve, rng=0, n_resamples=99))
    (ax,), (panel,) = display.axes_, display.panels
    for values, (low, high) in ((panel.predicted, ax.get_xlim()), (panel.observed, ax.get_ylim())):
        with_a_place = values[(values > 0.0) & (values < 1.0)]
        assert low <= with_a_place.min() <= with_a_place.max() <= high
    heights, edges = bars_of(display)
    inside = ((probs > edges[0]) | np.isclose(probs, edges[0])) & (probs <= edges[-1])
    counts = np.histogram(-probs[inside], -edges[::-1])[0][::-1]  # bars are (a, b]
    assert counts.sum() >= 0.98 * len(probs)
    assert heights / heights.sum() == pytest.approx(counts / counts.sum(), abs=1e-6)
    forward = ax.xaxis.get_transform().transform
    assert np.ptp(np.diff(forward(edges))) < 1e-6 * np.ptp(forward(edges))  # equally wide
    labelled = "log scale" in ax.get_xlabel(), "log scale" in ax.get_ylabel()
    assert labelled == (shape in ("rare", "sure"),) * 2
    marks = [text.get_text() for text in ax.get_xticklabels()]
    assert len(set(marks)) == len(marks) >= 2


def test_bins_hold_equal_counts_and_fewer_rows_make_fewer():
    rng = np.random.default_rng(7)
    for rows, bins in ((30, 5), (200, 10), (5000, 15)):
        panel = show(rng.random(rows), rng.integers(0, 2, rows), rng=0).panels[0]
        assert len(panel.counts) == bins
        assert np.ptp(panel.counts) <= 1


def test_the_legend_shows_what_is_drawn():
    """One score has a dot and bars, and no line."""
    legend = show([0.4] * 50, [0, 1] * 25, curve="corp", rng=0).ax_.get_legend()
    named = {each.get_label(): each for each in legend.legend_handles}
    assert named["point"].get_marker() == "o"
    assert "isotonic regression" not in named


def test_many_rows_make_few_marks():
    rng = np.random.default_rng(16)
    probs = rng.random(100_000)
    labels = rng.random(100_000) < probs
    for curve in ("binned", "corp"):
        display = show(probs, labels, curve=curve, confidence=0.9, n_resamples=19, rng=0)
        assert sum(len(line.get_xdata()) for line in display.axes_[0].lines) < 2000


def test_matplotlib_waits():
    code = "import caltest, caltest.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------ the null distribution


def test_the_observed_value_stands_among_all_draws():
    result = caltest.test(*SMALL, "ecd", rng=0, n_resamples=99)
    display = draw(NullDisplay.from_result(result))
    assert f"p = {result.pvalue:.3g} (exact)" in texts(display)
    assert f"{result.exceedances} of them at least as extreme" in texts(display)
    assert any(result.statistic in line.get_xdata() for line in display.ax_.lines)


def test_null_of_other_shapes():
    import matplotlib.pyplot as plt

    certain = caltest.test([0.0, 1.0, 1.0], [0, 1, 1], "ece", rng=0, n_resamples=19)
    assert np.ptp(certain.null_distribution) == 0.0
    draw(NullDisplay.from_result(certain))
    endless = caltest.test([0.0, 0.5, 0.5], [1, 1, 0], "mcb_log", rng=0, n_resamples=19)
    assert "observed: ∞" in texts(draw(NullDisplay.from_result(endless)))
    far = caltest.test(np.full(200, 0.5), np.ones(200, int), "ece", rng=0, n_resamples=19)
    ax = plt.figure().add_subplot()
    display = draw(NullDisplay.from_result(far, ax=ax))
    assert display.ax_ is ax
    assert "19 resamples if calibrated, none of them at least as extreme" in texts(display)


def test_no_null_distribution():
    result = caltest.test(dirichlet(20, 3, 0), np.arange(20) % 3, "skce_uq", null="bound")
    with pytest.raises(InputError, match="null='monte_carlo'"):
        NullDisplay.from_result(result)


def test_predictions_objects_are_read_too():
    checked = sample(*SMALL)
    assert show(checked.rows, checked.labels, rng=0).panels[0].counts.tolist() == [2, 2]
