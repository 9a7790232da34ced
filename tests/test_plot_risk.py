"""`RiskDisplay`: what is drawn, that nothing overlaps, and that nothing is hidden."""

from dataclasses import replace

import numpy as np
import pytest
from support import dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.estimation import FUNCTIONS, HistogramBinning, Temperature, TwoStepKernelRidge
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


def altered(result, place, **changes):
    """Return a result whose function at a place has other numbers."""
    functions = list(result.functions)
    functions[place] = replace(functions[place], **changes)
    return replace(result, functions=tuple(functions))


GIVEN = (HistogramBinning(15), Temperature(0.5), TwoStepKernelRidge(0.00001234))


@pytest.mark.parametrize(
    "functions",
    [
        ["two_step_ridge"], [Temperature(0.5)], ["binning", Temperature(2.0)],
        ["binning", "temperature", "kernel_density"], "all", [*FUNCTIONS],
        [*list(FUNCTIONS)[:3], *GIVEN], [*FUNCTIONS, *GIVEN],
    ],
    ids=lambda functions: functions if isinstance(functions, str) else len(functions),
)  # fmt: skip
def test_nothing_is_clipped_and_nothing_overlaps(functions):
    display = draw(RiskDisplay.from_result(estimated(functions)))
    used = display.figure_.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()
    for ax in display.axes_:
        assert apart(ax.get_xticklabels())
        assert apart(ax.get_yticklabels())
        assert apart(
            [ax._left_title, *(each for top in ax.child_axes for each in top.get_xticklabels())]
        )
        assert apart([ax.xaxis.label, ax.xaxis.get_offset_text()])
        assert apart(ax.get_legend().get_texts())


def test_the_risks_are_those_of_the_result():
    result = estimated([*FUNCTIONS, HistogramBinning(15)])
    ax = draw(RiskDisplay.from_result(result)).ax_
    lines = {line.get_label(): line for line in ax.lines}
    expected = [100 * np.sqrt(each.risk) for each in result.functions]
    assert lines["best option"].get_xdata() == pytest.approx(expected)
    zero = 100 * np.sqrt(result.zero_risks.mean())
    assert lines["h = 0: calibrated"].get_xdata()[0] == pytest.approx(zero)
    (bars,) = ax.collections
    for each, segment in zip(result.functions, bars.get_segments(), strict=True):
        gap, error = result.gap(each)
        ends = 100 * np.sqrt(result.recommended.risk + gap + np.array([-error, error]))
        assert segment[:, 0] == pytest.approx(ends, rel=1e-9)
    assert result.gap(result.recommended) == (0.0, 0.0)


def test_the_estimates_are_those_of_the_result():
    result = estimated()
    first, last = draw(RiskDisplay.from_result(result)).axes_
    names = [label.get_text().replace("\n", "") for label in first.get_yticklabels()]
    assert names == [f"{place}  {each.label}" for place, each in enumerate(result.functions, 1)]
    places = first.get_yticks()
    assert all(places[:-1] > places[1:])  # the first is on top
    assert first.get_yticklabels()[0].get_weight() == "bold"
    values = next(line for line in last.lines if line.get_marker() == "|").get_xdata()
    assert list(values) == [each.estimate for each in result.functions]
    (bars,) = last.collections
    errors = [np.diff(segment[:, 0])[0] / 2 for segment in bars.get_segments()]
    assert errors == pytest.approx([each.standard_error for each in result.functions])


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
    axes = plt.subplots(1, 3, figsize=(21, 4))[1]
    assert draw(RiskDisplay.from_result(result, ax=axes[1:])).axes_ == tuple(axes[1:])
    with pytest.raises(InputError, match="there are 3 axes; give 2: one for risks, and one"):
        RiskDisplay.from_result(result, ax=axes)
    loose = plt.figure()
    placed = [loose.add_axes((0.1 + 0.5 * k, 0.2, 0.35, 0.6)) for k in range(2)]
    assert draw(RiskDisplay.from_result(result, ax=placed)).axes_ == tuple(placed)


def test_labels_are_taken_as_they_are():
    """A pair of dollar signs makes no formula."""
    result = altered(estimated([Temperature(0.5), "temperature"]), 0, label="a $\\q$ b")
    display = draw(RiskDisplay.from_result(altered(result, 1, label="a $\\z$ c")))
    assert "$" in display.ax_.get_yticklabels()[0].get_text()
