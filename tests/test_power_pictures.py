"""`PowerDisplay`: what is drawn."""

import numpy as np
import pytest
from planned import citl, constant

import caltest
from caltest.plots import PowerDisplay
from caltest.plots.canvas import FAINT
from validation.generative import m1, m2


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
def test_pictures():
    found = caltest.power(constant(), [30, 60, 90], **citl, n_datasets=20, rng=0, under_null=True)
    display = PowerDisplay.from_result(found)
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {"rejected if calibrated", "between the intervals"} <= set(named)
    assert display.ax_.get_title(loc="left").startswith("How often citl rejects at level 0.05")
    assert not any(dots.get_clip_on() for dots in display.ax_.lines if dots.get_marker() in "oD")
    search = caltest.sample_size(constant(), **citl, n_datasets=40, rng=0)
    display = PowerDisplay.from_result(search)
    display.figure_.canvas.draw()
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {f"{search.n} rows", "power wanted, 0.8"} <= set(named)
    drawn = [
        line.get_xdata()[0] for line in display.ax_.lines if line.get_label() == f"{search.n} rows"
    ]
    assert drawn == [search.n]
    used = display.figure_.get_tightbbox()
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()
    none = caltest.sample_size(m1, "ecd", min_n=20, max_n=40, n_datasets=20, rng=0)
    PowerDisplay.from_result(none).figure_.canvas.draw()


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
def test_pictures_of_one_size_and_on_a_dark_ground():
    import matplotlib.pyplot as plt

    one = caltest.power(constant(), 50, **citl, n_datasets=4, rng=0)
    left, right = PowerDisplay.from_result(one).ax_.get_xlim()
    assert left * right == pytest.approx(2500)
    with plt.style.context("dark_background"):
        dark = PowerDisplay.from_result(one).ax_
    (level,) = [line for line in dark.lines if line.get_label() == "level, 0.05"]
    assert level.get_color() == FAINT  # seen on a light ground too
    once = caltest.sample_size(m2, "ecd", min_n=200, n_datasets=24, rng=0)
    labels = [line.get_label() for line in PowerDisplay.from_result(once).ax_.lines]
    assert "at most 200 rows" in labels
