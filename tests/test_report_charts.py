"""The pictures of a report, by hand: where marks and axes are."""

import re
from dataclasses import replace

import audits
import numpy as np
import pytest
from scipy.stats import binom, norm

import caltest
from caltest import auditing, pictures
from caltest.auditing import diagrams
from caltest.report import charts
from caltest.report.summary import first_screen


def test_reliability_diagram_by_hand():
    r = auditing.Reliability((0.0, 0.5), (0.25, 1.0), (9, 9), (0.0, 0.25), (0.25, 0.75))
    (drawn,) = charts.drawn(pictures.reliability(r), "of two bins", [charts.SMALL])
    size = drawn.size
    dots = [mark for mark in drawn.marks if mark.kind.startswith("dot")]
    assert [mark.kind for mark in dots] == ["dot ok", "dot bad"]
    assert (dots[0].x, dots[0].y) == (size.left, pytest.approx(size.y(0.25), abs=0.06))
    assert dots[1].d.startswith(f"M{size.x(0.5)} {size.top - 5.4:.1f}")


def test_axes_by_hand():
    axis = pictures.logarithmic_axis([0.0006, 0.03])
    assert (axis.low, axis.high) == (0.0005, 0.05)
    assert [label for _, label in axis.marks] == ["0.5", "1", "2", "5", "10", "20", "50"]
    assert axis.at(0.005) == pytest.approx(0.5)
    assert (axis.at(0.0), axis.at(1.0)) == (0.0, 1.0)
    axis = pictures.axis_of_points(-0.098, 0.03)
    assert [label for _, label in axis.marks] == ["−8", "−6", "−4", "−2", "0", "+2"]
    assert 0.0 < axis.at(-0.098) < axis.at(0.0) < axis.at(0.03) < 1.0
    axis = pictures.axis_of_ratios(0.8, 1.7)
    assert "1×" in [label for _, label in axis.marks]
    assert axis.at(1.0) == pytest.approx((np.log(1.06 / 0.8)) / np.log(1.06**2 * 1.7 / 0.8))
    axis = pictures.stretched_axis([0.6, 0.9995])
    assert [label for _, label in axis.marks] == ["50%", "80%", "90%", "95%", "99%", "99.9%", "99.99%"]
    assert len([label for _, label in axis.thinned(4).marks if label]) == 4


def test_the_limit_may_be_a_ratio():
    first = first_screen(audits.rare(materiality_ratio=1.25))
    assert first.slices.corridor == (1.0 / 1.25, 1.25)
    assert first.slices.zero == 1.0
    assert first.slices.limit == "a factor of 1.25"
    assert first.kind == "material"


def _histogram(audit):
    """Return the picture of the evidence, and the one drawing of it."""
    made = diagrams.evidence_picture(audit, "labels")
    return made, *charts.drawn(made.picture, made.label, [charts.CHANCE])


def _marks(drawing, kind):
    return [mark for mark in drawing.marks if mark.kind == kind]


def test_histogram_by_hand():
    drawn = np.repeat([1.0, 2.0, 3.0], [10, 7, 2])
    made, drawing = _histogram(
        replace(audits.audit(), null_distribution=drawn, statistic=2.5, alpha=0.1, pvalue=0.15)
    )
    size = drawing.size
    tops = [float(re.match(r"M\S+ ([\d.]+)H", bar.d)[1]) for bar in _marks(drawing, "bar")]
    assert [(size.bottom - top) / (size.bottom - size.top) for top in tops] == pytest.approx(
        [1.0, 0.7, 0.2], abs=1e-3
    )
    (labels,) = _marks(drawing, "labels ok")
    assert labels.d.startswith(f"M{size.x(2.5 / 4.0)} ")
    (threshold,) = _marks(drawing, "threshold")
    assert threshold.d.startswith(f"M{size.x(3.0 / 4.0)} ")  # of 20, two may be as large
    assert (made.reached, made.draws, made.beyond) == (2, 19, 0)
    assert not made.far
    assert not made.doubled


def test_what_is_far_out_breaks_the_axis_and_is_counted():
    drawn = np.append(np.linspace(0.0, 4.0, 97), [60.0, np.inf, np.nan])
    made, drawing = _histogram(replace(audits.audit(), null_distribution=drawn, statistic=500.0))
    assert made.far
    assert made.beyond == 3
    assert len(_marks(drawing, "bar")) > 12
    assert len(_marks(drawing, "axis")) == 2
    assert (
        diagrams.evidence_picture(replace(audits.audit(), null_distribution=np.array([np.inf])), "")
        is None
    )


def test_histograms_of_pits_by_hand():
    rng = np.random.default_rng(0)
    y = 1.5 * rng.normal(size=400)
    found = caltest.audit(caltest.predictive.Normal(np.zeros(400), sd=1.0), y, n_resamples=99, rng=0)
    pit = next(view.pit for view in found.views if view.pit and view.group is None)
    assert pit.share == pytest.approx(np.histogram(norm.cdf(y), np.arange(11) / 10)[0] / 400)
    assert [pit.low, pit.high] == [end(0.0025, 400, 0.1) / 400 for end in (binom.ppf, binom.isf)]
    (drawn,) = charts.drawn(diagrams.pit_picture(pit, "outcomes"), "", [charts.SMALL])
    assert len(_marks(drawn, "bar bad")) == sum(pit.outside) > 0
    members = caltest.predictive.Members(rng.normal(size=(400, 4)))
    ranks = caltest.audit(members, y, n_resamples=99, rng=0).views[0].pit
    assert (ranks.kind, len(ranks.share)) == ("rank", 5)
    clusters = np.arange(400) // 2
    predicted = caltest.predictive.Normal(np.zeros(400), sd=1.0)
    views = caltest.audit(predicted, y, clusters=clusters, n_resamples=99, rng=0).views
    assert all(view.pit.low is None for view in views if view.pit)
