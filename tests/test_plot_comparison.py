"""`ComparisonDisplay`: what is drawn, and that nothing overlaps."""

import numpy as np
import pytest
from support import dirichlet, labels_from

import caltest
from caltest.plots import ComparisonDisplay

TRUTH = dirichlet(100, 3, 0)
LABELS = labels_from(TRUTH, np.random.default_rng(0))


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]


def tempered(factor):
    powers = TRUTH**factor
    return powers / powers.sum(axis=1, keepdims=True)


def comparison(count, statistic="skce_uq", name="model_{}", **options):
    models = {name.format(k): tempered(1.0 + 0.5 * k) for k in range(count)}
    return caltest.compare(models, LABELS, statistic, **options)


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
    for axis in (left.xaxis, left.yaxis, right.xaxis):
        labels = boxes(axis.get_ticklabels())
        assert not any(a.overlaps(b) for k, a in enumerate(labels) for b in labels[:k])
    titles = boxes([left.title, right.title, left._left_title, right._left_title])
    assert not any(a.overlaps(b) for k, a in enumerate(titles) for b in titles[:k])


def test_what_is_drawn():
    found = comparison(4)
    left, right = ComparisonDisplay.from_result(found).axes_
    nearest, *others = found.nearest
    assert [label.get_text() for label in left.get_yticklabels()] == [nearest, *others]
    errors = {each.model: each.absolute for each in found.errors}
    drawn = next(line for line in left.lines if line.get_marker() == "|").get_xdata()
    assert drawn == pytest.approx([100 * errors[name][1] for name in found.nearest])
    gaps = [found.gap(name, nearest).absolute for name in others]
    for ax, expected in ((left, [errors[name] for name in found.nearest]), (right, gaps)):
        (bars,) = ax.collections
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        assert ends == pytest.approx(100 * np.array(expected)[:, [0, 2]])
    marks = {line.get_marker(): line.get_xdata() for line in right.lines}
    shown = [100 * gap[1] for gap in gaps if gap[0] > 0]
    assert marks.get("D", np.empty(0)) == pytest.approx(shown)
    assert len(marks["o"]) == len(gaps) - len(shown)
    what = left.get_title(loc="left").replace("\n", " ")
    assert what == "Off by: the model's confidence in its top class"
    assert right.get_title(loc="left") == f"Further off than {nearest}"


def test_groups_are_not_drawn_and_it_says_so():
    found = comparison(2, "ece", groups={"half": np.arange(100) % 2})
    left, _ = draw(ComparisonDisplay.from_result(found)).axes_
    assert not left.get_legend().get_window_extent().overlaps(left.xaxis.label.get_window_extent())
    assert "of all rows; errors in groups are printed, not drawn" in left.get_xlabel()
    assert "groups" not in ComparisonDisplay.from_result(comparison(2, "ece")).axes_[0].get_xlabel()


def test_one_probability_and_given_axes():
    import matplotlib.pyplot as plt

    found = comparison(2, "ece", lens="class:1")
    _, axes = plt.subplots(1, 2, layout="constrained")
    left, right = draw(ComparisonDisplay.from_result(found, ax=axes)).axes_
    assert "the predicted probability of class 1" in left.get_title(loc="left").replace("\n", " ")
    assert len(right.get_yticklabels()) == 2


def test_names_are_taken_as_they_are():
    """A pair of dollar signs makes no formula, and long names that differ stay different."""
    display = draw(ComparisonDisplay.from_result(comparison(2, name="a $\\q$ {}")))
    assert "$" in display.axes_[0].get_yticklabels()[0].get_text()
    long = "resnet50_imagenet_seed_{}_trained_for_90_epochs_final"
    labels = draw(ComparisonDisplay.from_result(comparison(3, name=long))).axes_[0].get_yticklabels()
    assert len({label.get_text() for label in labels}) == 3
