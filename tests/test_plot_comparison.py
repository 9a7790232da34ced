"""`ComparisonDisplay`: what is drawn, and that nothing overlaps."""

from __future__ import annotations

import numpy as np
import pytest
from support import dirichlet, labels_from

import caltest
from caltest import ComparisonDisplay

TRUTH = dirichlet(100, 3, 0)
LABELS = labels_from(TRUTH, np.random.default_rng(0))


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]


def tempered(factor):
    powers = TRUTH**factor
    return powers / powers.sum(axis=1, keepdims=True)


def comparison(count, statistic="skce_uq", name="model_{}", **options):
    models = {name.format(k): tempered(1.0 + 0.5 * k) for k in range(count)}
    return caltest.compare(models, LABELS, statistic, n_resamples=20, rng=0, **options)


def draw(display):
    """Render the figure: layout and fonts are only worked out now."""
    display.figure_.canvas.draw()
    return display


def boxes(texts):
    return [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("count", [2, 3, 7, 12])
@pytest.mark.parametrize("name", ["m{}", "a_rather_long_name_of_a_network_trained_in_2024_{}"])
def test_nothing_is_clipped_and_nothing_overlaps(count, name):
    display = draw(ComparisonDisplay.from_result(comparison(count, name=name)))
    figure = display.figure_
    left, right = display.axes_
    used = figure.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= figure.get_size_inches()).all()
    for axis in (left.xaxis, left.yaxis, right.xaxis, right.yaxis):
        labels = boxes(axis.get_ticklabels())
        assert not any(a.overlaps(b) for k, a in enumerate(labels) for b in labels[:k])
    numbers = boxes(right.texts)
    assert not any(a.overlaps(b) for k, a in enumerate(numbers) for b in numbers[:k])
    titles = boxes([left.title, right.title, left._left_title, right._left_title])
    assert not any(a.overlaps(b) for k, a in enumerate(titles) for b in titles[:k])


def test_what_is_drawn():
    found = comparison(3)
    left, right = ComparisonDisplay.from_result(found).axes_
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names == [f"{place}  {name}" for place, name in enumerate(found.ranking, 1)]
    columns = [label.get_text() for label in right.get_xticklabels()]
    assert columns == names
    order = found.order
    drawn = next(line for line in left.lines if line.get_marker() == "|").get_xdata()
    assert drawn.tolist() == found.values[order].tolist()
    (bars,) = left.collections
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    assert ends == pytest.approx(found.intervals[order])
    texts = {tuple(map(int, text.get_position())): text for text in right.texts}
    for i, j in ((0, 1), (1, 0), (0, 2)):
        share = 100 * found.pair_proportions[order[i], order[j]]
        assert texts[j, i].get_text().strip("<>") == f"{share:.0f}"
        bold = found.adjusted_pvalues[order[i], order[j]] <= 0.05
        assert (texts[j, i].get_weight() == "bold") == bold
    assert "full probabilities, 100 rows" in left.get_title(loc="left")
    assert "20 subsamples of 50 rows" in right.get_title(loc="left")


def test_infinite_values():
    wrong = TRUTH.copy()
    wrong[0] = np.eye(3)[(LABELS[0] + 1) % 3]
    for models in ({"wrong": wrong, "true": TRUTH}, {"wrong": wrong, "wrong too": wrong}):
        found = caltest.compare(models, LABELS, "ecd", n_resamples=20, rng=0)
        left, _ = draw(ComparisonDisplay.from_result(found)).axes_
        assert "inf, interval unknown" in [text.get_text() for text in left.texts]


def test_bootstrap_and_no_correction():
    found = comparison(2, "ece", resampling="bootstrap", correction=None, lens="top_label")
    left, right = draw(ComparisonDisplay.from_result(found)).axes_
    assert "bootstrap samples of 100 rows" in right.get_title(loc="left")
    assert right.get_xlabel() == "bold: errors differ (p ≤ 0.05)"
    assert "top_label" in left.get_title(loc="left")


def test_names_are_taken_as_they_are():
    """A pair of dollar signs makes no formula, and long names that differ stay different."""
    display = draw(ComparisonDisplay.from_result(comparison(2, name="a $\\q$ {}")))
    assert "$" in display.axes_[0].get_yticklabels()[0].get_text()
    long = "resnet50_imagenet_seed_{}_trained_for_90_epochs_final"
    labels = draw(ComparisonDisplay.from_result(comparison(3, name=long))).axes_[0].get_yticklabels()
    assert len({label.get_text().split("  ")[1] for label in labels}) == 3


def test_the_size_of_a_calibrated_model_is_drawn_where_there_is_a_bias():
    biased = ComparisonDisplay.from_result(comparison(3, "ece", lens="top_label"))
    named = ["95% interval", "error on all rows"]
    legend = biased.axes_[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == [*named, "mean if calibrated"]
    signed = ComparisonDisplay.from_result(comparison(3)).axes_[0]
    assert [text.get_text() for text in signed.get_legend().get_texts()] == ["0: no error", *named]
    assert biased.axes_[0].get_xlabel() == "expected calibration error"
    assert biased.axes_[0].get_title(loc="left").startswith("ece, distance tv: top_label")


def test_pairs_that_could_not_be_tested_look_different():
    probs = np.array(TRUTH)
    probs[0] = np.eye(3)[(LABELS[0] + 1) % 3]  # what came true was called impossible
    models = {"broken": probs, "truth": TRUTH, "sharp": tempered(2.0)}
    found = caltest.compare(models, LABELS, "ecd", n_resamples=20, rng=0)
    right = draw(ComparisonDisplay.from_result(found)).axes_[1]
    assert right.get_xlabel().endswith("italic: not tested")
    assert {text.get_style() for text in right.texts} == {"normal", "italic"}
