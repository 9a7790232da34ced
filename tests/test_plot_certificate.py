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


@pytest.mark.parametrize("wrong", [False, True])
def test_parts(wrong):
    found = certified(wrong=wrong)
    display = CertificateDisplay.from_result(found)
    display.figure_.canvas.draw()
    named = texts(display)
    assert ("proved too high" in named) == wrong == bool(found.miscalibrated)
    distance = next(name for name in named if name.startswith("±"))
    assert distance in display.ax_.get_title(loc="left")
    assert float(distance.strip("± points")) == pytest.approx(100 * found.distance, abs=0.1)
    used = display.figure_.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()


def test_boxes_are_the_bounds_of_the_means():
    found = certified()
    band, *_ = CertificateDisplay.from_result(found).ax_.collections
    corners = band.get_paths()[0].vertices
    for ends in (found.lower - found.predicted, found.upper - found.predicted):
        assert np.isclose(corners[:, 1][:, None], ends, atol=1e-12).any(axis=0).all()
    assert set(np.cumsum(found.counts) / 400) <= set(corners[:, 0])


def test_ties_are_shaded_over_their_whole_width():
    digits = caltest.datasets.load_digits_predictions("naive_bayes")
    found = caltest.certificate(digits.probs, digits.labels)
    assert found.starts[-1] == found.ends[-1] == 1.0
    ax = CertificateDisplay.from_result(found).ax_
    _, *shaded = (each.get_paths()[0].vertices[:, 0] for each in ax.collections)
    assert [min(map(min, shaded)), max(map(max, shaded))] == pytest.approx([0.0, 1.0])


def test_one_score():
    CertificateDisplay.from_result(caltest.certificate([0.5] * 20, [0, 1] * 10)).figure_.canvas.draw()
