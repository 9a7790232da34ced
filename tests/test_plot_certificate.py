"""`CertificateDisplay`: what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import caltest
from caltest import CertificateDisplay, InputError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]


def certified(method, n=400, wrong=False, **options):
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    labels = rng.random(n) < (scores**4 if wrong else scores)
    return caltest.certificate(np.column_stack([1 - scores, scores]), labels, method=method, **options)


def texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("method", ["bins", "isotonic"])
@pytest.mark.parametrize("against", ["scores", "rows"])
@pytest.mark.parametrize("wrong", [False, True])
def test_parts(method, against, wrong):
    found = certified(method, wrong=wrong)
    display = CertificateDisplay.from_result(found, against=against)
    display.figure_.canvas.draw()
    named = texts(display)
    assert ("proved over-confident" in named) == wrong == bool(found.miscalibrated)
    distance = next(name for name in named if name.startswith("±"))
    assert distance in display.ax_.get_title(loc="left")
    assert float(distance.strip("± points")) == pytest.approx(100 * found.distance, abs=0.1)
    used = display.figure_.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()


def test_boxes_are_the_bounds_of_the_bins():
    found = certified("bins")
    for against, shift, scale in (("scores", 0.0, 1.0), ("rows", found.stated, 100.0)):
        ax = CertificateDisplay.from_result(found, against=against).ax_
        (boxes,) = (each for each in ax.collections if isinstance(each, PolyCollection))
        ends = np.array([path.vertices[:4] for path in boxes.get_paths()])
        assert ends[:, 0, 1] == pytest.approx(scale * (found.lower - shift))
        assert ends[:, 1, 1] == pytest.approx(scale * (found.upper - shift))
        if against == "scores":
            assert ends[:, 0, 0] == pytest.approx(found.starts)
            assert ends[:, 2, 0] == pytest.approx(found.ends)


def test_steps_are_the_band():
    found = certified("isotonic")
    ax = CertificateDisplay.from_result(found).ax_
    lower, upper = (line for line in ax.lines if line.get_color() == "#A3A3A3")
    between = (lower.get_xdata()[::2] + lower.get_xdata()[1::2]) / 2
    assert lower.get_ydata()[::2] == pytest.approx(found.band(between)[0])
    assert upper.get_ydata()[1::2] == pytest.approx(found.band(between)[1])


def test_crossing_bounds_certify_nothing():
    scores = np.repeat([0.2, 0.8], 100)
    falling = caltest.certificate(
        np.column_stack([1 - scores, scores]), [1] * 100 + [0] * 100, method="isotonic"
    )
    display = CertificateDisplay.from_result(falling)
    assert "bounds cross" in texts(display)
    assert not any(name.startswith(("±", "proved")) for name in texts(display))
    assert "nothing certified" in display.ax_.get_title(loc="left")


@pytest.mark.parametrize("method", ["bins", "isotonic"])
@pytest.mark.parametrize("against", ["scores", "rows"])
def test_one_score(method, against):
    found = caltest.certificate([0.5] * 20, [0, 1] * 10, method=method)
    display = CertificateDisplay.from_result(found, against=against)
    display.figure_.canvas.draw()


def test_no_such_axis():
    with pytest.raises(InputError, match="there is no axis 'score'; did you mean 'scores'"):
        CertificateDisplay.from_result(certified("bins"), against="score")
