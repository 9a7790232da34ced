"""`CertificateDisplay`: what is drawn."""

from __future__ import annotations

from itertools import pairwise

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
    assert ("proved too high" in named) == wrong == bool(found.miscalibrated)
    distance = next(name for name in named if name.startswith("±"))
    assert distance in display.ax_.get_title(loc="left")
    assert float(distance.strip("± points")) == pytest.approx(100 * found.distance, abs=0.1)
    used = display.figure_.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()


def test_bars_are_the_bounds_of_the_means():
    """A certificate by bins is about means: a bar stands at the mean prediction, within the lines."""
    found = certified("bins")
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
    """By default, with their mean predictions above; ties, too, are shaded over their whole width."""
    digits = caltest.datasets.load_digits_predictions("naive_bayes")
    found = caltest.certificate(digits.probs, digits.labels)
    assert found.starts[-1] == found.ends[-1] == 1.0
    display = CertificateDisplay.from_result(found)
    assert display.against == "rows"
    display.figure_.canvas.draw()
    (above,) = display.ax_.child_axes
    means = [each.get_text() for each in above.get_xticklabels()]
    assert means[:3] == [
        "0.8696",
        "0.9996",
        "1\n− 2e−6",
    ]
    (shaded,) = (each for each in display.ax_.patches if each.get_alpha())
    assert [shaded.get_x(), shaded.get_width()] == pytest.approx([0.0, 1.0])
    assert CertificateDisplay.from_result(certified("bins")).against == "scores"
    assert CertificateDisplay.from_result(certified("isotonic")).against == "scores"


def test_steps_are_the_band():
    found = certified("isotonic")
    ax = CertificateDisplay.from_result(found).ax_
    lower, upper = (line for line in ax.lines if line.get_color() == "#A3A3A3")
    between = (lower.get_xdata()[::2] + lower.get_xdata()[1::2]) / 2
    assert lower.get_ydata()[::2] == pytest.approx(found.band(between)[0])
    assert upper.get_ydata()[1::2] == pytest.approx(found.band(between)[1])


def test_by_rows_band_distance_and_ranges_agree():
    """Every row's place has the band of its score, within the distance; shaded where it excludes 0."""
    found = certified("isotonic", wrong=True)
    ax = CertificateDisplay.from_result(found, against="rows").ax_
    lower, upper = (line for line in ax.lines if line.get_color() == "#A3A3A3")
    places, ends = lower.get_xdata(), np.stack([found.starts, found.ends], axis=1).ravel()
    middle = found.counts > 1
    for line, bound, side in ((lower, 0, np.minimum), (upper, 1, np.maximum)):
        assert np.abs(line.get_ydata()).max() <= 100 * found.distance + 1e-9
        assert (side(line.get_ydata(), 0.0) * (2 * bound - 1) >= 0).all()
        scores = (found.starts + found.ends) / 2
        drawn = line.get_ydata().reshape(-1, 2).mean(axis=1)[middle]
        expected = 100 * (found.band(scores)[bound] - scores)[middle]
        inside = np.abs(expected) < 100 * found.distance - 4
        assert drawn[inside] == pytest.approx(expected[inside])
    shaded = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches]
    assert all(one[1] < other[0] for one, other in pairwise(shaded))
    covered = [any(a - 1e-9 <= x <= b + 1e-9 for a, b in shaded) for x in places]
    proved = [any(r.low <= score <= r.high for r in found.miscalibrated) for score in ends]
    assert np.array(covered)[np.array(proved)].all()
    assert np.mean(np.array(covered) == np.array(proved)) > 0.9  # but for gaps too small to be seen


def test_crossing_bounds_certify_nothing():
    scores = np.repeat([0.2, 0.8], 100)
    falling = caltest.certificate(
        np.column_stack([1 - scores, scores]), [1] * 100 + [0] * 100, method="isotonic"
    )
    display = CertificateDisplay.from_result(falling)
    assert "bounds cross" in texts(display)
    assert not any("band" in name for name in texts(display))
    assert not [each for each in display.ax_.collections if isinstance(each, PolyCollection)]
    (hatched,) = (patch for patch in display.ax_.patches if patch.get_hatch())
    assert [hatched.get_x(), hatched.get_x() + hatched.get_width()] == pytest.approx([0.2, 0.8])
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
