"""`RiskDisplay`: what is drawn, that nothing overlaps, and that nothing is hidden."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support import dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.estimation import (
    FUNCTIONS,
    HistogramBinning,
    Temperature,
    TwoStepKernelRidge,
)
from caltest.plots import RiskDisplay

PROBS = dirichlet(200, 2, 0)
LABELS = labels_from(PROBS**2 / (PROBS**2).sum(axis=1, keepdims=True), np.random.default_rng(0))

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]


def estimated(functions="all", **options):
    return caltest.estimate_squared_error(
        PROBS, LABELS, None, functions, pvalue="none", rng=0, **options
    )


def draw(display):
    """Render the figure: layout and fonts are only worked out now."""
    display.figure_.canvas.draw()
    return display


def boxes(texts):
    return [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]


def apart(texts):
    found = boxes(texts)
    return not any(a.overlaps(b) for k, a in enumerate(found) for b in found[:k])


def curve(ax):
    (line,) = (line for line in ax.lines if line.get_marker() == "o")
    return line


def diamond(ax):
    (line,) = (line for line in ax.lines if line.get_marker() == "D")
    return line.get_xydata()[0]


def altered(result, place, **changes):
    """Return a result whose function at a place has other numbers."""
    functions = list(result.functions)
    functions[place] = replace(functions[place], **changes)
    return replace(result, functions=tuple(functions))


GIVEN = (HistogramBinning(15), Temperature(0.5), TwoStepKernelRidge(0.00001234))


@pytest.mark.parametrize(
    "functions",
    [
        ["two_step_ridge"],
        [Temperature(0.5)],
        ["binning", Temperature(2.0)],
        ["binning", "temperature", "kernel_density"],
        "all",
        [*FUNCTIONS],
        [*list(FUNCTIONS)[:3], *GIVEN],
        [*FUNCTIONS, *GIVEN],
    ],
    ids=lambda functions: functions if isinstance(functions, str) else len(functions),
)
def test_nothing_is_clipped_and_nothing_overlaps(functions):
    display = draw(RiskDisplay.from_result(estimated(functions)))
    figure, (*panels, last) = display.figure_, display.axes_
    used = figure.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= figure.get_size_inches()).all()
    for ax in (*panels, last):
        for axis in (ax.xaxis, ax.yaxis):
            assert apart(axis.get_ticklabels())
        (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        shown = [x for x in ax.get_xticks() if left <= x <= right]
        assert len(shown) >= 2 or ax not in panels or len(functions) == 1
        assert any(bottom <= y <= top for y in ax.get_yticks())
    assert apart([ax._left_title for ax in panels] + [text for ax in panels for text in ax.texts])
    (roots,) = last.child_axes or [None]
    if roots:
        assert apart(roots.get_xticklabels())
        assert apart([last._left_title, *roots.get_xticklabels()])
    assert apart([last.xaxis.label, last.xaxis.get_offset_text()])
    (legend,) = figure.legends
    assert apart(legend.get_texts())


def test_the_risks_are_those_of_the_result():
    result = estimated()
    display = draw(RiskDisplay.from_result(result))
    tuned = [each for each in result.functions if len(each.values) > 1]
    assert [ax.get_xlabel() for ax in display.axes_[:-1]] == [each.tuned for each in tuned]
    for ax, function in zip(display.axes_, tuned, strict=False):
        means = 100 * np.sqrt(function.risks.mean(axis=1))
        assert curve(ax).get_xdata() == pytest.approx(function.values)
        assert curve(ax).get_ydata() == pytest.approx(means)
        assert diamond(ax) == pytest.approx([function.value, means.min()])
        assert ax.get_xscale() == "log"
        assert ax.get_title(loc="left").endswith(f"  {function.label}")
        levels = sorted(line.get_ydata()[0] for line in ax.lines if len(set(line.get_ydata())) == 1)
        (binning,) = (each for each in result.functions if each.label == "binning(n_bins=15)")
        expected = sorted(100 * np.sqrt([binning.risk, result.zero_risks.mean()]))
        assert [y for y in expected if np.isclose(levels, y, rtol=1e-12).any()] == expected
        assert ax.get_ylim() == display.axes_[0].get_ylim()


def test_the_band_is_the_error_of_the_difference():
    """It shuts at the best value of the best function, and elsewhere agrees with `gap`."""
    result = estimated(["two_step_ridge", "temperature"])
    display = RiskDisplay.from_result(result)
    for ax, function in zip(display.axes_, result.functions, strict=False):
        (band,) = ax.collections
        outline = band.get_paths()[0].vertices
        gap, error = result.gap(function)
        ends = 100 * np.sqrt(result.recommended.risk + gap + np.array([-error, error]))
        here = outline[np.isclose(outline[:, 0], function.value, rtol=1e-12), 1]
        assert [here.min(), here.max()] == pytest.approx(ends, rel=1e-9)
    assert result.gap(result.recommended) == (0.0, 0.0)


def test_the_estimates_are_those_of_the_result():
    result = estimated()
    last = draw(RiskDisplay.from_result(result)).axes_[-1]
    names = [label.get_text().replace("\n", "") for label in last.get_yticklabels()]
    assert names == [f"{place}  {each.label}" for place, each in enumerate(result.functions, 1)]
    assert last.get_ylim()[0] > last.get_ylim()[1]  # the first is on top
    assert last.get_yticklabels()[0].get_weight() == "bold"
    values = next(line for line in last.lines if line.get_marker() == "|").get_xdata()
    assert list(values) == [each.estimate for each in result.functions]
    (bars,) = last.collections
    errors = [np.diff(segment[:, 0])[0] / 2 for segment in bars.get_segments()]
    assert errors == pytest.approx([each.standard_error for each in result.functions])
    (roots,) = last.child_axes
    for place, text in zip(roots.get_xticks(), roots.get_xticklabels(), strict=True):
        assert float(text.get_text()) ** 2 == pytest.approx(place, abs=1e-12)


def test_what_is_above_the_top_is_said():
    result = estimated(["two_step_ridge", "temperature"])
    risks = result.functions[0].risks.copy()
    far = [k for k in range(len(risks)) if k != result.functions[0].best][:3]
    risks[far] = np.array([1.0, 25.0, 4.0])[:, None]
    first, second, _ = draw(RiskDisplay.from_result(altered(result, 0, risks=risks))).axes_
    top = first.get_ylim()[1]
    assert top < 100.0
    (arrows,) = (line for line in first.lines if line.get_marker() == "^")
    above = 100 * np.sqrt(risks.mean(axis=1)) > top
    assert above[far].all()
    assert list(arrows.get_xdata()) == list(result.functions[0].values[above])
    assert set(arrows.get_ydata()) == {top}
    assert not arrows.get_clip_on()
    assert [text.get_text() for text in first.texts] == ["▲ above, up to 500"]
    assert bool(second.texts) == bool((curve(second).get_ydata() > top).any())


def test_nothing_is_below_the_bottom():
    for functions in ("all", ["temperature"], [*FUNCTIONS]):
        *panels, _ = RiskDisplay.from_result(estimated(functions)).axes_
        for ax in panels:
            assert min(np.min(line.get_ydata()) for line in ax.lines) > ax.get_ylim()[0]
            for band in ax.collections:
                (path,) = band.get_paths()
                middle = np.isfinite(path.vertices).all(axis=1)
                assert path.vertices[middle, 1].min() > ax.get_ylim()[0]


def test_an_infinite_risk_is_an_arrow():
    result = estimated(["two_step_ridge", "temperature"])
    risks = result.functions[1].risks.copy()
    wrong = 0 if result.functions[1].best else len(risks) - 1
    risks[wrong, 2] = np.inf
    shown = draw(RiskDisplay.from_result(altered(result, 1, risks=risks))).axes_[1]
    assert [text.get_text() for text in shown.texts] == ["▲ above, up to inf"]
    assert np.isfinite(shown.get_ylim()).all()


def test_negative_estimates():
    """They lie left of 0, and have no root."""
    result = estimated(["two_step_ridge", "temperature"])
    for shift in (0.0, 1.0):
        changed = result
        for place, each in enumerate(result.functions):
            estimates = each.estimates - shift - 2.0 * each.estimates[each.best].mean()
            changed = altered(changed, place, estimates=estimates)
        last = draw(RiskDisplay.from_result(changed)).axes_[-1]
        assert last.get_xlim()[0] < changed.functions[0].estimate < 0.0
        for roots in last.child_axes:
            assert min(roots.get_xticks()) >= 0.0
            assert roots.get_xticklabels()[0].get_text() == "0"


def test_only_given_options():
    result = estimated([HistogramBinning(10), Temperature(0.5), Temperature(2.0)])
    panel, _ = draw(RiskDisplay.from_result(result)).axes_
    assert panel.get_title(loc="left") == "options as given"
    assert [label.get_text() for label in panel.get_xticklabels()] == ["1", "2", "3"]
    points = [line.get_xydata()[0] for line in panel.lines if line.get_marker() == "D"]
    expected = [[k, 100 * np.sqrt(each.risk)] for k, each in enumerate(result.functions)]
    assert np.array(points) == pytest.approx(np.array(expected))


def test_options_that_are_not_positive_have_a_linear_axis():
    result = estimated(["temperature"])
    values = result.functions[0].values - 1.0
    shown = draw(RiskDisplay.from_result(altered(result, 0, values=values))).axes_[0]
    assert shown.get_xscale() == "linear"


@pytest.mark.parametrize("right", [True, False])
def test_certain_predictions(right):
    labels = np.arange(60) % 2
    probs = np.eye(2)[labels if right else 1 - labels]
    result = caltest.estimate_squared_error(probs, labels, pvalue="none", rng=0)
    display = draw(RiskDisplay.from_result(result))
    for ax in display.axes_:
        assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
        assert apart(ax.xaxis.get_ticklabels())


def test_more_than_two_classes_and_a_lens():
    probs = dirichlet(150, 3, 1)
    labels = labels_from(probs, np.random.default_rng(1))
    for lens, title in ((None, "estimates, 30 rows"), ("top_label", "estimates, top_label, 30 rows")):
        result = caltest.estimate_squared_error(probs, labels, lens, pvalue="none", rng=0)
        last = draw(RiskDisplay.from_result(result)).axes_[-1]
        assert last.get_title(loc="left") == title


def test_given_axes():
    import matplotlib.pyplot as plt

    result = estimated(["two_step_ridge", Temperature(0.5)])
    figure, axes = plt.subplots(1, 3, figsize=(21, 4))
    display = draw(RiskDisplay.from_result(result, ax=axes[1:]))
    assert figure.legends == []
    assert any("temperature" in text.get_text() for text in axes[1].get_legend().get_texts())
    assert axes[1].get_ylabel() == "√ mean validation risk × 100"
    with pytest.raises(InputError, match="there are 3 axes; give 2: one for every tuned function"):
        display.plot(axes)
    loose = plt.figure()
    placed = [loose.add_axes((0.1 + 0.5 * k, 0.2, 0.35, 0.6)) for k in range(2)]
    assert draw(RiskDisplay.from_result(result, ax=placed)).axes_ == tuple(placed)


def test_labels_are_taken_as_they_are():
    """A pair of dollar signs makes no formula."""
    result = altered(estimated([Temperature(0.5), "temperature"]), 0, label="a $\\q$ b")
    display = draw(RiskDisplay.from_result(altered(result, 1, label="a $\\z$ c")))
    assert "$" in display.axes_[-1].get_yticklabels()[0].get_text()
