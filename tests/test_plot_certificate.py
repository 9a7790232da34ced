"""`CertificateDisplay`: what is drawn."""

import numpy as np
import pytest

import caltest
from caltest.plots import CertificateDisplay

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]


def certified(n=400, wrong=False):
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    labels = rng.random(n) < (scores**4 if wrong else scores)
    return caltest.certificate(np.column_stack([1 - scores, scores]), labels)


def texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("against", ["scores", "rows"])
@pytest.mark.parametrize("wrong", [False, True])
def test_parts(against, wrong):
    found = certified(wrong=wrong)
    display = CertificateDisplay.from_result(found, against=against)
    display.figure_.canvas.draw()
    named = texts(display)
    assert ("proved too high" in named) == wrong == bool(found.miscalibrated)
    distance = next(name for name in named if name.startswith("±"))
    assert distance in display.ax_.get_title(loc="left")
    assert float(distance.strip("± points")) == pytest.approx(100 * found.distance, abs=0.1)
    used = display.figure_.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()


def test_bars_are_the_bounds_of_the_means():
    """A certificate by bins is about means: a bar stands at the mean prediction, within the lines."""
    found = certified()
    ax = CertificateDisplay.from_result(found, against="scores").ax_
    bars, ranges = (np.array(each.get_segments()) for each in ax.collections)
    assert (bars[:, :, 0] == found.predicted[:, None]).all()
    assert (bars[:, :, 1] == np.stack([found.lower, found.upper], axis=1)).all()
    assert (np.abs(bars[:, :, 1] - bars[:, :, 0]) <= found.distance).all()
    assert (ranges[:, :, 0] == np.stack([found.starts, found.ends], axis=1)).all()
    low, high = ax.get_xlim()
    assert low <= found.starts[0] < found.ends[-1] <= high
    ax = CertificateDisplay.from_result(found, against="rows").ax_
    (boxes,) = ax.containers
    corners = np.array([box.get_bbox().get_points() for box in boxes])
    assert corners[:, 0, 1] == pytest.approx(100.0 * (found.lower - found.predicted))
    assert corners[:, 1, 1] == pytest.approx(100.0 * (found.upper - found.predicted))
    assert corners[1:, 0, 0] == pytest.approx(corners[:-1, 1, 0])


def test_bins_that_crowd_lie_side_by_side():
    """By default; ties, too, are shaded over their whole width."""
    digits = caltest.datasets.load_digits_predictions("naive_bayes")
    found = caltest.certificate(digits.probs, digits.labels)
    assert found.starts[-1] == found.ends[-1] == 1.0
    display = CertificateDisplay.from_result(found)
    assert display.against == "rows"
    display.figure_.canvas.draw()
    (shaded,) = (each for each in display.ax_.patches if each.get_alpha())
    assert [shaded.get_x(), shaded.get_width()] == pytest.approx([0.0, 1.0])
    assert CertificateDisplay.from_result(certified()).against == "scores"


@pytest.mark.parametrize("against", ["scores", "rows"])
def test_one_score(against):
    found = caltest.certificate([0.5] * 20, [0, 1] * 10)
    display = CertificateDisplay.from_result(found, against=against)
    display.figure_.canvas.draw()
