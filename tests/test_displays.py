"""What every display does, whatever it shows; what each draws is tested by itself."""

import json
import warnings
from dataclasses import replace
from functools import cache, partial
from itertools import combinations

import numpy as np
import pytest
from support import dirichlet, labels_from, some_fast

import caltest
from caltest import InputError
from validation.generative import m3

pytestmark = pytest.mark.usefixtures("pictures")

PROBS = dirichlet(200, 3, 0)
LABELS = labels_from(PROBS**2 / (PROBS**2).sum(axis=1, keepdims=True), np.random.default_rng(0))
TWO = np.column_stack([1 - PROBS[:, 0], PROBS[:, 0]])
TIMES = (
    caltest.predictive.Survival(np.column_stack([1 - PROBS[:, 0] / 2, 1 - PROBS[:, 0]]), [1.0, 2.0]),
    (4 * PROBS[:, 1], PROBS[:, 2] > 0.4),
)


@cache
def results():
    """What displays show, by the display's name; as quick as can be."""
    models = {"one": PROBS, "other": PROBS[:, [1, 0, 2]]}
    return {
        "AuditDisplay": caltest.audit(TWO, LABELS == 0, n_resamples=99, materiality=0.05, rng=0),
        "BoundsDisplay": caltest.miscalibration_bounds(PROBS, LABELS, rng=0, n_resamples=99),
        "ComparisonDisplay": caltest.compare(models, LABELS, "ecd"),
        "MonitorDisplay": caltest.Monitor().update(PROBS, LABELS, date="2026-05-01"),
        "NullDisplay": caltest.test(PROBS, LABELS, "ecd", n_resamples=99, rng=0),
        "PowerDisplay": caltest.power(m3, [50, 100], "ecd", n_datasets=5, rng=0),
    }


def reliability(probs, labels, **options):
    return caltest.ReliabilityDisplay.from_predictions(probs, labels, n_resamples=99, rng=0, **options)


#: Every display, and those that look different, as a function of `ax`.
DISPLAYS = {
    **{
        name: lambda name=name, **ax: getattr(caltest.plots, name).from_result(results()[name], **ax)
        for name in ("AuditDisplay", "BoundsDisplay", "ComparisonDisplay",
                     "MonitorDisplay", "NullDisplay", "PowerDisplay")
    },
    **{
        f"PITDisplay, {kind}": lambda kind=kind, **ax: caltest.plots.PITDisplay.from_predictions(
            caltest.predictive.Normal(PROBS[:, 0], sd=0.5), PROBS[:, 1], kind=kind, n_resamples=99,
            rng=0, **ax,
        )
        for kind in ("difference", "histogram", "coverage")
    },
    **{
        f"SurvivalDisplay, {kind}": partial(
            caltest.plots.SurvivalDisplay.from_predictions, *TIMES, kind=kind
        )
        for kind in ("curves", "horizon", "events")
    },
    "ReliabilityDisplay": lambda **ax: reliability(PROBS, LABELS, **ax),
    "ReliabilityDisplay, corp": lambda **ax: reliability(PROBS, LABELS, curve="corp", **ax),
    "ReliabilityDisplay, panels": lambda **ax: reliability(PROBS, LABELS, lens="classwise", **ax),
    "ReliabilityDisplay, models": lambda **ax: reliability(
        {"one": PROBS, "other": PROBS[:, [1, 0, 2]]}, LABELS, **ax
    ),
}  # fmt: skip
COUNTS = {"AuditDisplay": 2, "ComparisonDisplay": 2, "MonitorDisplay": 3}
COUNTS["ReliabilityDisplay, panels"] = 3


@pytest.fixture(params=DISPLAYS)
def name(request):
    return request.param


def given_axes(count, width, height=4.0):
    import matplotlib.pyplot as plt

    size = (width * (count + 1), height)
    return plt.subplots(1, count + 1, figsize=size, layout="constrained", squeeze=False)


def render(figure):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout without room, a glyph that is missing
        figure.canvas.draw()


def test_every_display_is_here():
    public = {each for each in caltest.plots.__all__ if each.endswith("Display")} - {"Display"}
    assert public == {each.replace(",", " ").split()[0] for each in DISPLAYS}
    assert all(issubclass(getattr(caltest.plots, each), caltest.plots.Display) for each in public)


@pytest.mark.slow
def test_it_draws_into_a_new_figure_in_which_all_is_seen(name):
    display = DISPLAYS[name]()
    figure, axes = display.figure_, display.axes_
    assert len(axes) == COUNTS.get(name, 1)
    assert display.ax_ is axes[0]
    assert all(ax.figure is figure for ax in axes)
    render(figure)
    used = figure.get_tightbbox()  # in inches
    assert min(used.x0, used.y0) >= -1e-6
    assert (np.array([used.x1, used.y1]) <= figure.get_size_inches() + 1e-6).all()
    assert display.plot() is display
    assert display.figure_ is not figure


@pytest.mark.slow
def test_it_draws_into_given_axes_and_nowhere_else(name):
    import matplotlib.pyplot as plt

    figure, axes = given_axes(COUNTS.get(name, 1), 6.0)
    *wanted, other = axes.ravel()
    display = DISPLAYS[name](ax=wanted if len(wanted) > 1 else wanted[0])
    assert (display.figure_, display.axes_) == (figure, tuple(wanted))
    assert plt.get_fignums() == [figure.number]
    assert not other.has_data()
    render(figure)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [None, 1, "ax", (), [1, 2]], ids=repr)
def test_what_is_no_axes_is_told_in_one_sentence(name, wrong):
    display = DISPLAYS[name]()
    count, before = COUNTS.get(name, 1), display.axes_
    axes = list(given_axes(count, 3.0)[1].ravel()) if wrong is None else wrong
    with pytest.raises(InputError) as caught:
        display.plot(axes)
    expected = f"there are {count + 1} axes; give {count}" if wrong is None else "give matplotlib axes"
    assert expected in str(caught.value)
    assert str(caught.value).endswith(".")
    assert display.axes_ == before


def merged_marks(display):
    """Return the marks of axes that run into each other."""
    render(display.figure_)
    found = []
    drawn = [each for ax in display.figure_.axes for each in (ax, *ax.child_axes)]
    for ax in drawn:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [each for each in axis.get_major_ticks() if low <= each.get_loc() <= high]
            marks = [mark for each in ticks for mark in (each.label1, each.label2)]
            marks = [mark for mark in marks if mark.get_visible() and mark.get_text()]
            for one, other in combinations(marks, 2):
                if one.get_window_extent().overlaps(other.get_window_extent()):
                    found.append((one.get_text(), other.get_text()))
    return found


@pytest.mark.slow
def test_no_marks_of_an_axis_merge(name):
    assert merged_marks(DISPLAYS[name]()) == []


@pytest.mark.slow
@pytest.mark.parametrize("sure", [False, True])
def test_no_marks_merge_near_0_and_1(sure):
    rng = np.random.default_rng(0)
    probs = rng.beta(0.4, 60.0, 5000)
    labels = (rng.random(5000) < probs).astype(int)
    given = (1.0 - probs, 1 - labels) if sure else (probs, labels)
    made = caltest.ReliabilityDisplay.from_predictions(*given, n_resamples=99, rng=0)
    assert merged_marks(made) == []


@pytest.mark.slow
def test_a_result_draws_itself():
    for name, found in results().items():
        display = found.plot()
        assert type(display) is getattr(caltest.plots, name)
        assert display.ax_ is not None


def test_a_result_is_drawn_with_options_into_given_axes():
    *_, ax = given_axes(1, 6.0)[1].ravel()
    display = results()["BoundsDisplay"].plot(ax, view=0)
    assert (display.ax_, display.view) == (ax, 0)
    with pytest.raises(InputError, match="no picture of a result of the kind Recalibration"):
        caltest.recalibration(TWO, LABELS == 0).plot()


def test_a_result_is_one_line():
    lines = {name: repr(found) for name, found in results().items()}
    bounds = "MiscalibrationBounds(at least 5.4 points too low, 95% confidence, n = 200)"
    assert lines["BoundsDisplay"] == bounds
    compared = "Comparison(one nearest of 2, off by 12.3 (0.0 to 25.0) points, n = 200)"
    assert lines["ComparisonDisplay"] == compared
    assert lines["NullDisplay"] == "CalibrationResult(ecd: p = 0.02, n = 200, exact)"
    assert lines["PowerDisplay"].startswith("PowerResult(ecd: power ")
    assert all(len(each.splitlines()) == 1 and len(each) < 120 for each in lines.values())


def test_drawing_changes_no_result():
    for name, result in results().items():
        before = json.dumps(result.to_dict(), default=repr)
        DISPLAYS[name]()
        assert json.dumps(result.to_dict(), default=repr) == before


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".pdf", ".SVG"])
def test_it_is_saved(suffix, tmp_path):
    display = caltest.plots.PowerDisplay(results()["PowerDisplay"])  # not yet drawn
    path = tmp_path / f"power{suffix}"
    display.save(path)
    start = {".png": b"\x89PNG", ".pdf": b"%PDF", ".SVG": b"<?xml"}[suffix]
    assert path.read_bytes().startswith(start)
    assert display.figure_ is not None
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("power.txt", "give a file that ends in .png, .pdf or .svg."),
        ("none/power.png", "give a file in a folder"),
        ("a\0.png", "null character"),
        (None, "give the path of a file"),
    ],
)
def test_what_cannot_be_saved_is_told(path, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        caltest.plots.PowerDisplay(results()["PowerDisplay"]).save(path)
    assert told in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ a model, and its rows


class Model:
    """It gives the probabilities that it is given."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return X


CLASSES = {
    "places": [0, 1, 2], "floats": [0.0, 1.0, 2.0], "other numbers": [1, 2, 3], "signs": [-1, 0, 1],
    "names": ["ant", "bee", "cat"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_a_model_is_shown_by_the_classes_that_it_knows(classes):
    options = {"lens": "classwise", "n_resamples": 19, "rng": 0}
    shown = caltest.ReliabilityDisplay.from_estimator(
        Model(classes), PROBS, np.array(classes)[LABELS], **options
    )
    plain = caltest.ReliabilityDisplay.from_predictions(PROBS, LABELS, **options)
    titles = [panel.title.replace("“", "").replace("”", "") for panel in shown.panels]
    assert titles == [f"Class {each}" for each in classes]
    for one, other in zip(shown.panels, plain.panels, strict=True):
        assert np.array_equal(one.observed, other.observed)
        assert np.array_equal(one.predicted, other.predicted)
        assert one.result.pvalue == other.result.pvalue


def test_a_model_of_two_classes_and_axes():
    ax = given_axes(1, 6.0)[1].ravel()[0]
    model = Model(["no", "yes"])
    labels = np.array(["yes", "no"])[(LABELS == 0).astype(int)]
    display = caltest.ReliabilityDisplay.from_estimator(model, TWO, labels, rng=0, ax=ax)
    assert display.ax_ is ax
    assert display.panels[0].predicted_label == "predicted probability that the label is 'yes'"


@pytest.mark.parametrize(
    ("model", "labels", "told"),
    [
        (Model([0, 1, 2]), LABELS + 1, "label '3' in row"),
        (Model, LABELS, "model is the class Model; give a fitted classifier with predict_proba."),
        (object(), LABELS, "give a fitted classifier with predict_proba"),
        (Model([0, 1, 2]), LABELS[:5], "labels has 5 entries"),
    ],
    ids=["label", "class", "no model", "too few"],
)
def test_a_model_that_cannot_be_shown(model, labels, told):
    with pytest.raises(InputError) as caught:
        caltest.ReliabilityDisplay.from_estimator(model, PROBS, labels)
    assert told in str(caught.value)


@pytest.mark.slow
def test_columns_with_numbers_of_their_own_have_a_panel_each():
    """Column "1" is the first here, not the one at place 1."""
    frame = pytest.importorskip("pandas").DataFrame(PROBS, columns=["1", "2", "3"])
    named = reliability(frame, LABELS + 1, lens="classwise")
    plain = reliability(PROBS, LABELS, lens="classwise")
    assert [panel.title for panel in named.panels] == ["Class 1", "Class 2", "Class 3"]
    for one, other in zip(named.panels, plain.panels, strict=True):
        assert np.array_equal(one.predicted, other.predicted)


def test_before_it_is_drawn_a_display_has_no_figure():
    display = caltest.plots.NullDisplay.from_result(caltest.test([0.2, 0.7, 0.9], [0, 1, 1], rng=0))
    undrawn = replace(display)
    for name in ("figure_", "ax_"):
        with pytest.raises(InputError, match=r"nothing is drawn yet; call \.plot\(\) first"):
            getattr(undrawn, name)
    assert undrawn.axes_ == ()


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("given", some_fast(["abc", "1e9", "9" * 30, "-"], "abc"))
def test_a_date_that_is_none_is_refused_before_a_picture_is_written(given, tmp_path, monkeypatch):
    display = caltest.plots.NullDisplay.from_result(caltest.test([0.2, 0.7, 0.9], [0, 1, 1], rng=0))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    for suffix in (".pdf", ".svg", ".png"):
        with pytest.raises(InputError, match=f"SOURCE_DATE_EPOCH is '{given[:9]}.*; set it to whole"):
            display.save(tmp_path / f"a{suffix}")
    for right in ("", "0", "1700000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", right)
        display.save(tmp_path / "a.pdf")
