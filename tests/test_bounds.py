"""`miscalibration_bounds`: never above the truth more often than stated, and where the error lies."""

import json
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp
from support import binomial_limits, dirichlet, form_within, labels_from

import caltest
from caltest import InputError
from caltest.binning import CountLaw
from caltest.bounds.intervals import largest_refuted
from caltest.bounds.lower import TOLERANCES, UNIT, ShiftedScan
from caltest.data import Rows
from caltest.laws.classes import LabelSampler
from caltest.plots import BoundsDisplay
from caltest.statistics import Scan
from caltest.tolerance import shifted

SIDES = ("over", "under")
GRID = TOLERANCES


def two_columns(scores):
    return np.column_stack([1.0 - np.asarray(scores), scores])


def drawn(scores, rng):
    return (rng.random(len(scores)) < scores).astype(int)


def scores_of(kind, n=500):
    rng = np.random.default_rng(8)
    return {
        "smooth": np.sort(rng.beta(4, 1, n)),
        "ties": np.sort(np.round(rng.random(n), 1)),
        "certain": np.sort(rng.choice([0.0, 0.02, 0.3, 1.0], n)),
    }[kind]


def bounds_of(scores, labels, **options):
    return caltest.miscalibration_bounds(scores, labels, **{"n_resamples": 79, "rng": 0, **options})


# ------------------------------------------------------------------ the numbers behind it


def test_the_grid():
    assert GRID[0] == 0
    assert GRID[-1] == UNIT
    steps = np.diff(GRID)
    assert steps.min() == 1
    assert steps.max() == 100
    assert (steps[20:] <= 0.1 * GRID[20:-1]).all()
    assert (steps[100:] <= 0.05 * GRID[100:-1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["smooth", "ties", "certain"])
def test_events_of_a_piece_are_drawn_from_their_law(kind):
    """Tolerance 0 alone: what is drawn for a piece is what rows drawn one by one add up to."""
    scores = scores_of(kind)
    scan = ShiftedScan.of(two_columns(scores), GRID[:1])
    for edge, chances in zip(scan.intervals.edges, scan.chances_of_counts, strict=False):
        law = np.ones(1)
        for p in np.sort(scores)[edge : edge + len(chances)]:
            law = np.convolve(law, [1.0 - p, p])
        assert chances == pytest.approx(np.cumsum(law)[:-1], abs=1e-12)
    alone, every = (
        np.concatenate([each.draw(seed, b, b + 64)["over"][1] for b in range(0, 2560, 64)])
        for seed, each in ((5, scan), (6, ShiftedScan.of(two_columns(scores), GRID)))
    )
    kept = np.isfinite(alone).all(axis=0)  # intervals with rows
    assert (kept == np.isfinite(every).all(axis=0)).all()
    agree = [
        ks_2samp(*pair, method="asymp").pvalue
        for pair in zip(alone.T[kept], every.T[kept], strict=True)
    ]
    assert min(agree) >= 0.001 / len(agree)
    assert ks_2samp(alone.max(axis=1), every.max(axis=1), method="asymp").pvalue >= 0.001


@pytest.mark.parametrize("kind", ["smooth", "ties", "certain"])
@pytest.mark.parametrize("side", SIDES)
def test_all_tolerances_at_once_are_the_tests_of_each(kind, side):
    """The same uniforms, the same labels, the same statistics as `test` draws for every tolerance."""
    scores = scores_of(kind)
    scan = ShiftedScan.of(two_columns(scores), GRID)
    labels = drawn(scores, np.random.default_rng(0))
    errors = scan.errors(labels, side).max(axis=0)
    maxima = scan.draw(5, 0, 40)[side][0]
    predictions = Rows(two_columns(scores))
    for g in (0, 1, 17, 60, 120, 200, 260, 300, 339):
        hardest = shifted(predictions, side, GRID[g] / UNIT)
        form = form_within(Scan(), predictions, side, GRID[g] / UNIT)
        drawn_labels = LabelSampler.of(hardest.probs, 5).draw(0, 40)
        assert maxima[:, g] == pytest.approx(form.of_labels(drawn_labels), abs=1e-9)
        assert errors[g] == pytest.approx(form.value(labels), abs=1e-9)


@pytest.mark.parametrize("side", SIDES)
def test_the_bound_is_the_last_tolerance_that_is_refuted(side):
    scores = scores_of("smooth")
    wrong = -0.2 if side == "over" else 0.2
    labels = drawn(np.clip(scores + wrong, 0, 1), np.random.default_rng(1))
    found = getattr(bounds_of(scores, labels).views[0], side)
    place = int(np.flatnonzero(np.round(found.bound * UNIT) == GRID)[0])
    pvalues = [
        caltest.test(
            *(scores, labels), tolerance=GRID[g] / UNIT, alternative=side, n_resamples=79, rng=0
        ).pvalue
        for g in (*range(0, place + 1, 1 if place < 10 else 5), place + 1)
    ]
    assert max(pvalues[:-1]) <= 0.025 < pvalues[-1]


@pytest.mark.level
@pytest.mark.parametrize("number", range(7))
def test_bounds_of_places_fail_no_more_often_than_they_may(number):
    """Critical counts by convolution: as the package's own bounds, and seldom reached."""
    places = pytest.importorskip("validation.places", reason="validation is part of the source")
    scan, truth = places.scan_of(list(places.DESIGNS)[number])
    errors = places.largest_errors(scan, truth)
    labels = (np.random.default_rng(17).random((5000, len(truth))) < truth).astype(np.intp)
    running = np.column_stack([np.zeros(5000, dtype=np.intp), np.cumsum(labels, axis=1)])
    starts, stops = scan.intervals.bounds.T
    for level in (0.2, 0.05, 0.01):
        most = places.critical(scan, errors, level)
        wrong = places.misses(scan, running[:, stops] - running[:, starts], most)
        assert np.count_nonzero(wrong) <= binom.ppf(1 - 1e-5, 5000, level)
        for each in np.r_[np.flatnonzero(wrong)[:2], :2]:
            assert places.said(scan, labels[each], errors, level) == wrong[each]


def test_one_interval_has_the_exact_bound_of_its_count():
    scores = np.linspace(0.3, 0.7, 60)
    scan = ShiftedScan.of(two_columns(scores), GRID)
    labels = np.repeat([0, 1], [45, 15])
    (last,) = largest_refuted(scan, labels, "over", 0.05)
    chances = [CountLaw(scores - GRID[g] / UNIT).below[15] for g in (last, last + 1)]
    assert chances[0] <= 0.05 < chances[1]
    mirrored = ShiftedScan.of(two_columns(1.0 - scores), GRID)
    assert largest_refuted(mirrored, 1 - labels, "under", 0.05).tolist() == [last]


def test_intervals_of_many_rows_have_a_bound_that_is_hardly_lower(monkeypatch):
    scores = np.sort(np.random.default_rng(3).uniform(0.2, 0.8, 2000))
    labels = drawn(scores - 0.15, np.random.default_rng(4))
    scan = ShiftedScan.of(two_columns(scores), GRID)
    exact = largest_refuted(scan, labels, "over", 0.05)
    monkeypatch.setattr("caltest.bounds.intervals._EXACT_ROWS", 0)
    binomial = largest_refuted(scan, labels, "over", 0.05)
    assert (binomial <= exact).all()
    assert scan.tolerances[exact].max() - scan.tolerances[binomial].max() < 0.01


@pytest.mark.level
def test_false_bounds_are_rare():
    """Bounds and places of models whose truth is known, at the level of 10% for both sides."""
    above = amount = 0
    for seed in range(120):
        rng = np.random.default_rng([3, seed])
        scores = rng.uniform(0.2, 0.8, 300)
        error = np.where(scores < 0.5, 0.1, -0.1)
        found = bounds_of(scores, drawn(scores - error, rng), confidence=0.9, rng=seed, n_resamples=39)
        (view,) = found.views
        above += found.over > 0.1 + 1e-9 or found.under > 0.1 + 1e-9
        for side, sign in ((view.over, 1.0), (view.under, -1.0)):
            for place in side.places:
                inside = (scores >= place.low) & (scores <= place.high)
                amount += place.somewhere_by > max((sign * error[inside]).max(), 0.0) + 1e-9
    limit = binomial_limits(120, 0.1)[1]
    assert above / 120 <= limit
    assert amount / 120 <= limit


# ------------------------------------------------------------------ what is found


@pytest.fixture(scope="module")
def local():
    """Claims .3 too much between .6 and .8."""
    rng = np.random.default_rng(0)
    scores = rng.random(4000)
    inside = (scores > 0.6) & (scores < 0.8)
    labels = drawn(np.where(inside, scores - 0.3, scores), rng)
    return scores, labels, bounds_of(scores, labels, n_resamples=199)


def test_how_much_and_where(local):
    scores, labels, bounds = local
    assert 0.2 < bounds.over <= 0.3
    assert bounds.under == 0.0
    best = bounds.where().iloc[0]
    assert best["side"] == "over"
    assert 0.58 < best["from"] < best["to"] < 0.82
    assert 0.15 < best["somewhere_by"] <= bounds.over
    inside = (scores >= best["from"]) & (scores <= best["to"])
    assert best["rows"] == inside.sum()
    assert best["predicted"] == pytest.approx(scores[inside].mean())
    assert best["observed"] == pytest.approx(labels[inside].mean())
    assert best["pvalue"] == pytest.approx(2 / 200)


def test_places_named_do_not_overlap(local):
    bounds = local[2]
    named, every = bounds.where(), bounds.where(overlapping=True)
    assert len(named) < len(every)
    ends = named.sort_values("from")[["from", "to"]].to_numpy()
    assert (ends[1:, 0] > ends[:-1, 1]).all()
    assert (every["pvalue"] <= 0.05).all()
    assert every["somewhere_by"].is_monotonic_decreasing
    assert list(named.columns) == [
        *("event", "side", "from", "to", "rows", "predicted", "observed", "somewhere_by", "pvalue")
    ]


def test_the_other_class_has_the_other_side(local):
    scores, labels, bounds = local
    mirrored = bounds_of(1.0 - scores, 1 - labels, n_resamples=199)
    assert mirrored.over == 0.0
    assert mirrored.under == pytest.approx(bounds.over, abs=0.011)


@pytest.mark.slow
def test_row_order_and_workers_do_not_change_a_number():
    scores = np.round(0.9 * scores_of("smooth", 5000), 3)
    labels = drawn(scores * 0.9, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(5000)
    one = bounds_of(scores, labels).to_dict()
    assert bounds_of(scores[order], labels[order], n_jobs=2).to_dict() == one
    assert bounds_of(scores, labels, rng=1).to_dict() != one


@pytest.mark.slow
def test_more_confidence_bounds_less():
    scores = scores_of("smooth")
    labels = drawn(scores * 0.8, np.random.default_rng(0))
    found = [bounds_of(scores, labels, confidence=c, n_resamples=1999).over for c in (0.5, 0.95, 0.999)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] > 0.0


@pytest.mark.slow
def test_what_had_probability_0_is_said_of_the_event():
    """Of the top class only rows in which it was certain: fewer than of all labels."""
    probs = np.array([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0]] * 20)
    bounds = caltest.miscalibration_bounds(probs, [1, 2] * 20, rng=0)
    told = "In 20 of 40 rows (counting from 0: 0, 2, 4, 6, 8, …) what was observed, whether the top "
    assert bounds.warnings[0].startswith(f"{told}class is right, had probability 0")
    whole = caltest.test(probs, [1, 2] * 20, "brier", n_resamples=19, rng=0)
    (told,) = (each for each in whole.warnings if each.startswith("In 40 of 40 rows"))
    assert "the observed label had probability 0" in told


def test_classwise():
    probs = dirichlet(3000, 3, 0)
    truth = probs.copy()
    moved = 0.5 * truth[:, 0]
    truth[:, 0] -= moved
    truth[:, 1] += moved
    labels = labels_from(truth, np.random.default_rng(0))
    bounds = caltest.miscalibration_bounds(probs, labels, lens="classwise", rng=0)
    assert (bounds.lens, len(bounds.views), bounds.n_resamples) == ("classwise", 3, 599)
    assert bounds.level == pytest.approx(0.05 / 6)
    first, second, third = bounds.views
    assert first.over.bound == bounds.over > 0.1
    assert second.under.bound == bounds.under > 0.1
    assert not third.over.found
    assert not third.under.found
    assert first.under.bound == second.over.bound == 0.0
    assert bounds.table()["event"].tolist()[::2] == [f"the label is class {k}" for k in range(3)]
    alone = caltest.miscalibration_bounds(
        probs, labels, lens="class:0", confidence=1 - 0.05 / 3, n_resamples=599, rng=0
    )
    assert alone.views[0].over == type(first.over)(
        "over", first.over.bound, True, alone.views[0].over.pvalue, alone.views[0].over.places
    )
    assert "The probability that the label is class 0, between" in bounds.summary()


def test_classwise_of_two_classes_is_one_view():
    scores = scores_of("smooth")
    labels = drawn(scores, np.random.default_rng(0))
    assert len(bounds_of(scores, labels, lens="classwise").views) == 1


# ------------------------------------------------------------------ extremes and errors

EXTREMES = {
    "two rows": ([0.6, 0.3], [0, 1]), "two rows, both wrong": ([1.0, 0.0], [0, 1]),
    "equal": ([0.5] * 40, [0, 1] * 20), "all right": ([0.9] * 200, [1] * 200),
    "all wrong": ([0.9] * 200, [0] * 200), "certain and right": ([0.0, 1.0] * 100, [0, 1] * 100),
    "certain and wrong": ([0.0, 1.0] * 100, [1, 0] * 100), "rare": ([1e-9] * 200, [0] * 200),
}  # fmt: skip


@pytest.mark.parametrize("case", EXTREMES)
def test_extremes(case):
    bounds = bounds_of(*EXTREMES[case])
    assert 0.0 <= bounds.over < 1.0
    assert 0.0 <= bounds.under < 1.0
    json.dumps(bounds.to_dict(), allow_nan=False)
    assert bounds.summary()
    view = bounds.views[0]
    if case in ("equal", "certain and right", "two rows", "rare"):
        assert not view.over.found
        assert not view.under.found
    if case == "all wrong":
        assert 0.8 < bounds.over < 0.9
        assert len(view.over.places) == 1
        assert (view.over.places[0].low, view.over.places[0].high) == (0.9, 0.9)
    if case == "all right":
        assert 0.0 < bounds.under < 0.1
    if case == "certain and wrong":
        assert bounds.over > 0.9
        assert bounds.under > 0.9
    if "wrong" in case and "certain" in case:
        assert any("that alone proves the model miscalibrated" in each for each in bounds.warnings)


@pytest.mark.slow
def test_days_of_work_are_refused_before_they_begin():
    probs = np.full((1000, 1000), 1e-3)
    with pytest.raises(InputError, match=r"39,999 draws each would take hours; give one class"):
        caltest.miscalibration_bounds(probs, np.arange(1000), lens="classwise", rng=0)


@pytest.mark.parametrize(
    ("confidence", "draws"), [(0.95, 499), (0.995, 1999), (0.9995, 9999), (0.99995, 39_999)]
)
def test_draws_suffice_for_the_confidence(confidence, draws):
    found = caltest.miscalibration_bounds([0.6, 0.3], [0, 1], confidence=confidence, rng=0)
    assert found.n_resamples == draws


def test_what_is_proved_of_a_place_is_not_said_of_its_mean():
    """One label at .01, and 15 of 20 at .9 missing: .188 predicted on average, .06 observed."""
    scores = np.r_[np.full(80, 0.01), np.full(20, 0.9)]
    labels = [1] + [0] * 79 + [1] * 5 + [0] * 15
    bounds = caltest.miscalibration_bounds(scores, labels, rng=0)
    (place,) = bounds.where().iloc[:1].to_dict("records")
    assert place["somewhere_by"] > place["predicted"] - place["observed"]
    text = " ".join(bounds.summary().split())
    assert "(100 rows): predicted 18.8%, observed 6.0%, too high for some by at least 35.5" in text
    assert "holds for some rows of a range, not for their mean" in text


def test_what_is_impossible_is_counted_once_whatever_the_view():
    scores = [0.0, 0.0, 1.0] + [0.5] * 37
    labels = [1, 0, 0] + [0, 1] * 18 + [0]
    both = caltest.miscalibration_bounds(scores, labels, rng=0)
    assert "In 2 of 40 rows (counting from 0: 0, 2)" in both.warnings[-1]
    probs = np.full((30, 3), 1 / 3)
    probs[:2] = [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    found = caltest.miscalibration_bounds(
        probs, [1, 0] + [0, 1, 2] * 9 + [0], lens="classwise", rng=0, n_resamples=119
    )
    assert "In 2 of 30 rows (counting from 0: 0, 1)" in found.warnings[-1]


def test_one_impossible_label_is_no_contradiction():
    bounds = caltest.miscalibration_bounds([0.5] * 100 + [0.0], [0, 1] * 50 + [1], rng=0)
    text = " ".join(bounds.summary().split())
    assert text.startswith("No error found, which does not prove that there is none.")
    assert "In 1 of 101 rows (counting from 0: 100)" in text


# ------------------------------------------------------------------ the result

SUMMARY = """\
Error found, 95% confidence. Some predictions are at least 33 points too high.
The probability that the label is class 1, at 80.0% (200 rows): predicted 80.0%, observed 40.0%,
too high for some by at least 31 points.

What to do next
  1. caltest.audit says how large mean errors are, in which groups, and what corrects them.

  data       400 predictions of 2 classes: the probability that the label is class 1
  method     a scan of all ranges of the probability, 79 simulated label sets; both bounds and
             all ranges are correct at once, with 95% confidence
  supposed   independent rows, and labels that were not used to fit the model
  bounds     in percentage points; the true error may be larger, and holds for some rows of a
             range, not for their mean"""


def test_the_summary():
    scores = [0.2] * 200 + [0.8] * 200
    labels = [1] * 40 + [0] * 160 + [1] * 80 + [0] * 120
    bounds = bounds_of(scores, labels)
    assert bounds.summary() == str(bounds) == SUMMARY


def test_frozen_and_picklable(local):
    bounds = local[2]
    with pytest.raises(FrozenInstanceError):
        bounds.confidence = 0.5
    assert pickle.loads(pickle.dumps(bounds)) == bounds
    plain = json.loads(json.dumps(bounds.to_dict(), allow_nan=False))
    assert plain["over"] == bounds.over
    assert plain["views"][0]["over"]["places"][0]["somewhere_by"] == bounds.where()["somewhere_by"][0]


@pytest.mark.slow
def test_real_networks(reference):
    for name, (over, under) in {"resnet18": (0.18, 0.0), "googlenet": (0.005, 0.003)}.items():
        data = reference(f"cifar10_{name}.npz")
        bounds = caltest.miscalibration_bounds(data["probs"], data["labels"], rng=0, n_resamples=199)
        assert bounds.over >= over
        assert bounds.under >= under


# ------------------------------------------------------------------ the picture


@pytest.mark.usefixtures("pictures")
def test_the_display(local):
    bounds = local[2]
    display = BoundsDisplay.from_result(bounds)
    display.figure_.canvas.draw()
    ax = display.ax_
    shaded = [area for area in ax.collections if area.get_alpha() is not None]
    assert len(shaded) == min(len(bounds.where()), 5)
    assert "30" not in ax.get_title(loc="left")
    assert f"{100 * bounds.over:.4g} points" in ax.get_title(loc="left")
    used = display.figure_.get_tightbbox()
    assert min(used.x0, used.y0) >= 0.0
    assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()


@pytest.mark.usefixtures("pictures")
def test_the_display_of_a_view_and_of_nothing():
    scores = scores_of("smooth")
    bounds = bounds_of(scores, drawn(scores, np.random.default_rng(0)))
    for view in (1, -1, 0.5, "a", None, True):
        with pytest.raises(InputError, match=f"view is {view!r}.*; give the number of one"):
            BoundsDisplay.from_result(bounds, view=view)


@pytest.mark.usefixtures("pictures")
def test_the_lines_of_the_display_are_not_drawn_from_the_mean():
    scores = np.repeat(np.arange(1, 12) / 12, 200)
    labels = np.zeros(2200, dtype=int)  # always too much
    scores[::2] = np.arange(1100) / 1100
    labels[::2] = drawn(scores[::2], np.random.default_rng(0))
    bounds = bounds_of(scores, labels)
    every = bounds.where()
    display = BoundsDisplay.from_result(bounds)
    lines = [x for x in display.ax_.lines if x.get_linewidth() == 3.5 and len(x.get_xdata())]
    places = every.iloc[:5].to_dict("records")
    assert len(lines) == len(places)
    for line, place in zip(lines, places, strict=True):
        assert line.get_xdata()[0] <= place["from"] <= place["to"] <= line.get_xdata()[1]
        assert np.ptp(line.get_ydata()) == pytest.approx(np.ptp(line.get_xdata()))
        assert line.get_xdata()[0] - line.get_ydata()[0] == pytest.approx(place["somewhere_by"])
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any(f"(5 of {len(every)} ranges)" in name for name in named) == (len(every) > 5)
    assert "somewhere in the range, the true probability is below this line" in named
    marks = {handle.get_marker(): handle for handle in display.ax_.get_legend().legend_handles}
    assert marks["D"].get_linestyle() == "None"  # as it is drawn
    title = display.ax_.get_title(loc="left").replace("\n", " ")
    assert f"some predictions are at least {100 * bounds.over:.4g} points too high" in title
    worst = f"in the worst range alone at least {100 * every['somewhere_by'].max():.4g} point"
    assert (worst in title) == (every["somewhere_by"].max() < bounds.over)
