"""`caltest.witness`: the formula, exact p-values, what is told, and input of all kinds."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from support import P6, Y6, binomial_limits, dirichlet, labels_from, matrix_kernel, some_fast, tied
from test_step_down import plain_loop

import caltest
from caltest import InputError
from caltest import localisation as places
from caltest.data import Rows
from caltest.kernels import Exponential, Gaussian, Kernel, Linear, LinearGaussian
from caltest.localisation import Places, cover, kernels_of, places_told
from caltest.predictive import GaussianPredictions
from caltest.simulation import classwise, local, m1

NARROW = Exponential(0.05)


def formula(kernel, probs, labels, point):
    """The witness at a point by plain loops: w, z, stated and true shares, effective rows."""
    n, m = probs.shape
    own = kernel(point[None, :], point[None, :])[0, 0]
    k = np.array([kernel(row[None, :], point[None, :])[0, 0] for row in probs])
    k[k < 0.05 * own] = 0.0
    sums, variance, stated, true = np.zeros((4, m))
    for j, c in np.ndindex(n, m):
        sums[c] += k[j] * ((labels[j] == c) - probs[j, c])
        variance[c] += k[j] ** 2 * probs[j, c] * (1.0 - probs[j, c])
        stated[c] += k[j] * probs[j, c]
        true[c] += k[j] * (labels[j] == c)
    z = sums / np.sqrt(variance + own**2)
    return sums / n, z, stated / k.sum(), true / k.sum(), k.sum() ** 2 / (k**2).sum()


@pytest.mark.parametrize(
    "kernel", [Exponential(0.2), Gaussian(0.2), Linear(), LinearGaussian(0.3), 3.0 * Exponential(0.2)]
)
def test_the_formula(kernel):
    w = caltest.witness(P6, Y6, kernel=kernel, n_resamples=19, rng=0)
    assert sorted(w.rows) == list(range(6))
    for place, row in enumerate(w.rows):
        expected = formula(kernel, P6, Y6, P6[row])
        found = (w.values, w.standardised, w.predicted, w.observed, w.weights)
        for values, wanted in zip(found, expected, strict=True):
            assert values[place] == pytest.approx(wanted, abs=1e-12)


def test_by_hand():
    """Two equal rows of (¾, ¼), both labels 1: sums ∓1.5, variance 2·3/16, floor 1."""
    w = caltest.witness([[0.75, 0.25]] * 2, [1, 1], kernel=Exponential(1.0), n_resamples=19, rng=0)
    assert w.n_places == 1
    assert w.values.tolist() == [[-0.75, 0.75]]
    assert w.standardised[0, 1] == pytest.approx(1.5 / np.sqrt(1.375))
    assert w.predicted.tolist() == [[0.75, 0.25]]
    assert w.observed.tolist() == [[0.0, 1.0]]
    assert w.weights.tolist() == [2.0]


def test_the_default_has_three_scales_of_the_kernel_of_the_skce():
    probs = dirichlet(50, 3, 0)
    w = caltest.witness(probs, labels_from(probs, np.random.default_rng(0)), n_resamples=19, rng=0)
    widest = Exponential().fitted(probs).bandwidth
    assert [each["bandwidth"] for each in w.kernels] == [widest, widest / 4, widest / 16]
    assert w.n_places == 150
    assert (np.diff(w.weights.reshape(3, 50), axis=0) < 0).all()  # narrower: fewer rows near


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3])
def test_pvalues_by_the_definition(m):
    probs = dirichlet(12, m, 1)
    labels = np.zeros(12, dtype=int)
    w = caltest.witness(probs, labels, kernel=[Exponential(0.1), Gaussian(0.3)], n_resamples=100, rng=5)
    drawn = Rows(probs).sampler(5).draw(0, 100)
    kernels = [Exponential(0.1)] * 12 + [Gaussian(0.3)] * 12

    def z(y):
        places = zip(kernels, w.centres, strict=True)
        return np.array([np.abs(formula(k, probs, y, p)[1])[list(w.tested)] for k, p in places]).ravel()

    expected = np.array(plain_loop(z(labels), [z(y) for y in drawn]))
    assert w.pvalues[:, list(w.tested)].ravel() == pytest.approx(expected)
    assert w.pvalue == pytest.approx(expected.min())


def test_of_two_classes_one_mirrors_the_other():
    probs = dirichlet(40, 2, 2)
    w = caltest.witness(probs[:, 1], np.ones(40, dtype=int), n_resamples=99, rng=0)
    assert w.tested == (1,)
    assert (w.standardised[:, 0] == -w.standardised[:, 1]).all()
    assert (w.pvalues[:, 0] == w.pvalues[:, 1]).all()
    assert w.values.sum(axis=1) == pytest.approx(np.zeros(len(w.values)), abs=1e-14)
    assert set(w.table()["class"]) == {"class 1"}


def equal(one, other):
    for name in ("rows", "values", "standardised", "pvalues", "predicted", "observed", "weights"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    assert one.identified == other.identified


@pytest.mark.slow
def test_workers_blocks_and_memory_change_no_number(monkeypatch):
    data = classwise(300, np.ones(4), rng=0)
    whole = caltest.witness(data.probs, data.labels, n_resamples=200, n_points=20, rng=3)
    assert whole.identified
    for settings in ({}, {"_HELD": 0}, {"_SUMS": 1}, {"_SUMS": 10**9}):
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setattr(places, name, value)
            for n_jobs in (1, 3):
                again = caltest.witness(
                    data.probs, data.labels, n_resamples=200, n_points=20, rng=3, n_jobs=n_jobs
                )
                equal(whole, again)


@pytest.mark.parametrize("n", [60, 2000])
def test_the_order_of_the_rows_does_not_matter(n):
    data = local(n, np.ones(3), rng=1)
    order = np.random.default_rng(0).permutation(n)
    one = caltest.witness(data.probs, data.labels, n_points=60, n_resamples=19, rng=0)
    other = caltest.witness(data.probs[order], data.labels[order], n_points=60, n_resamples=19, rng=0)
    assert order[other.rows].tolist() == one.rows.tolist()
    assert other.standardised == pytest.approx(one.standardised, abs=1e-9)
    assert other.weights == pytest.approx(one.weights)


def test_names_of_the_classes_do_not_matter():
    data = local(50, np.ones(4), rng=2)
    classes = np.array([2, 0, 3, 1])
    one = caltest.witness(data.probs, data.labels, n_resamples=19, rng=0)
    other = caltest.witness(data.probs[:, classes], np.argsort(classes)[data.labels], n_resamples=19)
    z = [np.abs(w.standardised[np.argsort(w.rows[:50])]) for w in (one, other)]
    assert z[1] == pytest.approx(z[0][:, classes], abs=1e-9)


# ------------------------------------------------------------------ what is promised


@pytest.mark.level
@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: m1(60, 5, rng=seed),
        lambda seed: m1(100, 2, rng=seed),
        lambda seed: rare(80, seed),
    ],
)
def test_a_calibrated_model_gets_no_claim(draw):
    repetitions, claims = 400, 0
    for seed in range(repetitions):
        data, labels = unpack(draw(seed), seed)
        w = caltest.witness(data, labels, n_points=12, n_resamples=39, rng=10_000 + seed)
        claims += w.pvalue <= 0.05
    assert claims / repetitions <= binomial_limits(repetitions, 0.05)[1]
    assert claims / repetitions >= binomial_limits(repetitions, 0.05)[0]


def rare(n, seed):
    p = np.random.default_rng(seed).beta(1, 30, n)
    return np.column_stack([1 - p, p])


def unpack(data, seed):
    if isinstance(data, np.ndarray):
        return data, labels_from(data, np.random.default_rng(1000 + seed))
    return data.probs, data.labels


@pytest.mark.level
def test_places_out_of_reach_of_an_error_get_no_claim():
    """Strong control: of the classes that every row within reach states rightly."""
    repetitions, false, found = 200, 0, 0
    for seed in range(repetitions):
        data = local(300, np.ones(3), region=lambda g: g[:, 0] > 0.6, strength=0.9, rng=seed)
        w = caltest.witness(
            data.probs, data.labels, kernel=NARROW, n_points=40, n_resamples=39, rng=seed + 500
        )
        weights = Places.of((NARROW,), w.centres).weights(data.probs)
        wrong = np.where(np.abs(data.truth - data.probs) > 1e-9, 1.0, 0.0)
        right = weights.T @ wrong == 0.0
        assert right.any()
        false += (w.pvalues[right] <= 0.05).any()
        found += (w.pvalues[~right] <= 0.05).any()
    assert false / repetitions <= binomial_limits(repetitions, 0.05)[1]
    assert found > 0.8 * repetitions


def test_an_error_is_found_in_its_place_and_class():
    data = local(2000, np.ones(3), region=lambda g: g[:, 0] > 0.6, strength=0.5, rng=4)
    w = caltest.witness(data.probs, data.labels, n_resamples=199, rng=0)
    first = w.identified[0]
    assert w.centres[first, 0] > 0.6
    assert all((w.standardised[first, c] < 0) == (c == 0) for c in w.claims(first))  # 0 is too high
    pushed = classwise(2000, np.ones(3), target=1, bias=-1.0, rng=4)
    w = caltest.witness(pushed.probs, pushed.labels, n_resamples=199, rng=0)
    assert w.claims(w.identified[0])[0] == 1
    assert w.standardised[w.identified[0], 1] > 0  # under-predicted


CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def test_a_network_takes_cats_for_dogs(reference):
    arrays = reference("cifar10_resnet18.npz")
    probs = pd.DataFrame(arrays["probs"], columns=CIFAR)
    w = caltest.witness(probs, arrays["labels"], n_resamples=99, rng=0)
    claims = {}
    for place in w.identified:
        over, under = (
            [w.names[c] for c in w.claims(place) if sign * w.standardised[place, c] > 0]
            for sign in (-1, 1)
        )
        claims[over[0]] = under[0]
    assert claims["cat"] == "dog"
    assert claims["dog"] == "cat"
    assert claims["truck"] == "automobile"
    assert "cat predicted" in w.summary()


# ------------------------------------------------------------------ what is told


def test_what_is_said():
    data = local(800, np.ones(3), region=lambda g: g[:, 0] > 0.6, rng=1)
    probs = pd.DataFrame(data.probs, columns=["cat", "dog", "eel"])
    w = caltest.witness(probs, data.labels, n_resamples=399, rng=0)
    assert w.summary().splitlines()[:9] == [
        "Where the probabilities are wrong",
        "  data       800 predictions of 3 classes",
        "  places     128 points, each with 3 kernels",
        "  options    kernel Exponential, bandwidth 0.3851 / 0.09628 / 0.02407, distance tv",
        "  p-values   exact, adjusted for 1,152 comparisons (399 label draws)",
        "",
        "Near predictions like row 360 (cat 93%), effectively about 63 rows: cat predicted 85%, "
        "observed",
        "61%; adjusted p = 0.0025.",
        "",
    ]


def test_without_a_claim_no_place_is_named():
    data = m1(rng=1)
    w = caltest.witness(data.probs, data.labels, n_resamples=99, rng=0)
    assert w.identified == ()
    assert w.to_dict()["findings"] == []
    assert "No place stands out: of 3,840 comparisons none is significant at level 0.05" in str(w)
    assert "row " not in str(w)
    assert "does not prove calibration" in " ".join(str(w).split())
    assert len(w.table(significant=True)) == 0
    assert len(w.table()) == 3840


def test_places_told_say_different_things():
    data = classwise(3000, np.ones(3), target=1, bias=1.5, rng=0)
    w = caltest.witness(data.probs, data.labels, n_resamples=99, rng=0)
    assert 1 <= len(w.identified) <= 5
    places = Places.of(kernels_of(None, data.probs), w.centres[:128])
    main = [(w.claims(p)[0], np.sign(w.standardised[p, w.claims(p)[0]])) for p in w.identified]
    for i, one in enumerate(w.identified):
        for j, other in enumerate(w.identified[:i]):
            reached = places.weights(w.centres[[one]])[0, other] > 0
            assert not (main[i] == main[j] and reached)


def test_of_places_alike_the_one_with_fewest_rows_near_is_told():
    places = Places.of((Exponential(1.0), Exponential(0.1)), np.array([[0.6, 0.4], [0.5, 0.5]]))
    z = np.array([[-5.0, 5.0], [-4.9, 4.9], [-4.5, 4.5], [-3.9, 3.9]])
    weights = np.array([100.0, 100.0, 20.0, 10.0])
    everywhere = np.ones_like(z, dtype=bool)
    assert places_told(places, z, everywhere, weights) == (2,)
    assert places_told(places, z, ~everywhere, weights) == ()
    opposite = z * [[1], [1], [1], [-1]]
    assert places_told(places, opposite, everywhere, weights) == (2, 3)
    assert places_told(places, opposite, everywhere, weights, most=1) == (2,)


def test_table_and_dict():
    data = classwise(300, np.ones(3), bias=2.0, rng=0)
    w = caltest.witness(data.probs, data.labels, n_resamples=99, rng=0)
    table = w.table()
    assert len(table) == w.n_places * 3
    assert table["standardised"].abs().is_monotonic_decreasing
    first = table.iloc[0]
    assert first["difference"] == first["observed"] - first["predicted"]
    assert w.rows[first["place"]] == first["row"]
    assert (w.table(significant=True)["adjusted"] <= 0.05).all()
    assert len(w.table(significant=True)) == (w.pvalues <= 0.05).sum()
    data = json.loads(json.dumps(w.to_dict(), allow_nan=False))
    assert [each["place"] for each in data["findings"]] == list(w.identified)
    claim = data["findings"][0]["claims"][0]
    assert claim["pvalue"] == w.pvalue == 0.01
    assert "pvalues" not in data
    assert len(json.loads(json.dumps(w.to_dict(arrays=True), allow_nan=False))["pvalues"]) == w.n_places


def test_frozen():
    w = caltest.witness(P6, Y6, n_resamples=19, rng=0)
    with pytest.raises(AttributeError):
        w.seed = 1
    with pytest.raises(ValueError, match="read-only"):
        w.pvalues[0] = 0.0
    again = caltest.witness(P6, Y6, n_resamples=19, rng=w.seed)
    equal(w, again)


# ------------------------------------------------------------------ places


def test_cover():
    probs = np.concatenate([np.tile([[1.0, 0.0]], (500, 1)), dirichlet(40, 2, 0)])
    rows = cover(probs, 20, Exponential(0.1))
    assert len(rows) == 20
    assert len(np.unique(probs[rows], axis=0)) == 20
    assert rows[0] < 500  # most rows are there
    order = np.random.default_rng(0).permutation(540)
    again = probs[order][cover(probs[order], 20, Exponential(0.1))]
    assert again.tolist() == probs[rows].tolist()
    few = tied(1000, 3, 0)
    assert len(cover(few, 20, Exponential(0.1))) == len(np.unique(few, axis=0))
    assert len(cover(np.full((1000, 3), 1 / 3), 20, Exponential(0.1))) == 1
    hard = np.eye(4)[np.arange(1000) % 4]  # no label is uncertain
    assert len(cover(hard, 20, Exponential(0.1))) == 4


def test_given_points():
    rows = caltest.witness(P6, Y6, points=[4, 1], kernel=NARROW, n_resamples=19, rng=0)
    vectors = caltest.witness(P6, Y6, points=P6[[4, 1]], kernel=NARROW, n_resamples=19, rng=0)
    assert rows.rows.tolist() == [4, 1]
    assert vectors.rows.tolist() == [-1, -1]
    assert rows.pvalues.tolist() == vectors.pvalues.tolist()
    assert vectors.centres == pytest.approx(P6[[4, 1]])
    all_ones = caltest.witness([0.5] * 20, [1] * 20, points=[[0.5, 0.5]], n_resamples=99, rng=0)
    assert "Near predictions like point 0 (class 0 50%, class 1 50%), over nearly all predictions:" in (
        " ".join(str(all_ones).split())
    )


@pytest.mark.usefixtures("pictures")
def test_a_place_of_most_rows_says_so():
    close = np.column_stack([np.linspace(0.48, 0.52, 60), np.linspace(0.52, 0.48, 60)])
    w = caltest.witness(close, [1] * 60, kernel=Exponential(1.0, "tv"), n_resamples=99, rng=0)
    assert w.weights.min() > 54
    assert "over nearly all predictions" in " ".join(str(w).split())
    display = caltest.WitnessDisplay.from_result(w)
    assert display.ax_.get_yticklabels()[0].get_text().endswith("most rows")


def test_a_point_without_rows_near():
    w = caltest.witness(P6, Y6, points=[[0.0, 0.0, 1.0]], kernel=NARROW, n_resamples=19, rng=0)
    assert np.isnan(w.predicted).all()
    assert w.weights.tolist() == [0.0]
    assert w.pvalues.tolist() == [[1.0, 1.0, 1.0]]
    json.dumps(w.to_dict(arrays=True), allow_nan=False)


# ------------------------------------------------------------------ hostile input


CONSTANT = np.full((60, 3), [0.5, 0.3, 0.2])
NEVER = np.column_stack([dirichlet(60, 2, 0), np.zeros(60)])
HARD = np.eye(3)[np.arange(60) % 3]


@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        (P6[:2], [0, 1]),
        ([0.0, 1.0], [0, 1]),
        ([0.0, 1.0], [1, 0]),
        (CONSTANT, np.arange(60) % 3),
        (CONSTANT, np.zeros(60, dtype=int)),
        (NEVER, np.arange(60) % 2),
        (NEVER, np.full(60, 2)),
        (HARD, np.arange(60) % 3),
        (HARD, (np.arange(60) + 1) % 3),
        (tied(60, 3, 1), np.arange(60) % 3),
        (P6, P6.argmin(axis=1)),
    ],
)
def test_hostile_input(probs, labels):
    w = caltest.witness(probs, labels, n_resamples=39, rng=0)
    assert np.isfinite(w.standardised).all()
    assert w.pvalues.min() >= 1 / 40
    assert w.pvalues.max() <= 1.0
    assert str(w).startswith("Where the probabilities are wrong")
    assert len(w.table()) == w.n_places * len(w.tested)
    json.dumps(w.to_dict(arrays=True), allow_nan=False)


def test_certain_and_right_is_not_significant_and_impossible_labels_are_named():
    right = caltest.witness(HARD, np.arange(60) % 3, n_resamples=99, rng=0)
    assert (right.pvalues == 1.0).all()
    wrong = caltest.witness(HARD, (np.arange(60) + 1) % 3, n_resamples=99, rng=0)
    assert wrong.pvalue == 0.01
    assert (
        "In 60 of 60 rows (counting from 0: 0, 1, 2, 3, 4, …) the observed label" in wrong.warnings[-2]
    )


def test_one_surprise_in_a_rare_class_is_no_finding():
    probs = np.column_stack([np.full(500, 1 - 1e-4), np.full(500, 1e-4)])
    once = caltest.witness(probs, np.eye(500, dtype=int)[0], n_resamples=99, rng=0)
    assert abs(once.standardised).max() < 1.0
    often = caltest.witness(probs, (np.arange(500) < 8).astype(int), n_resamples=99, rng=0)
    assert often.pvalue == 0.01


def test_lenses():
    data = local(3000, rng=0)
    w = caltest.witness(data.probs, data.labels, lens="top_label", n_resamples=99, rng=0)
    assert w.lens == "top_label"
    assert w.names == ("wrong", "right")
    assert "right predicted" in str(w)
    assert "lens top_label" in str(w)


def test_too_few_draws_are_refused():
    with pytest.raises(InputError, match=r"no p-value is below 0\.1, .* give n_resamples=19 or more"):
        caltest.witness(P6, Y6, n_resamples=9, rng=0)
    assert caltest.witness(P6, Y6, n_resamples=19, rng=0).warnings == ()


class Zero(Kernel):
    """No kernel to look with."""

    bound = 1.0

    def __call__(self, x, y):
        return np.zeros((len(x), len(y)))

    def paired(self, x, y):
        return np.zeros(len(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": matrix_kernel(3, 1)}, "give a real-valued kernel"),
        ({"kernel": "exponential"}, "give a real-valued kernel"),
        ({"kernel": []}, "give a real-valued kernel"),
        ({"kernel": Zero()}, "is 0 at evaluation point 0 and itself"),
        ({"confidence": 95}, "confidence is 95; give one between 0 and 1"),
        ({"n_points": 0}, "n_points is 0"),
        ({"n_resamples": 0}, "n_resamples is 0"),
        ({"n_resamples": 10**9}, "give at most 10,000,000"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"rng": -1}, "rng is -1"),
        ({"lens": "top"}, "there is no lens 'top'"),
        ({"points": [6]}, "points has the row 6, and there are 6; give rows from 0 to 5"),
        ({"points": [-1]}, "points has the row -1"),
        ({"points": [[0.5, 0.5]]}, r"points has shape \(1, 2\)"),
        ({"points": [0.5, 0.5]}, r"points has shape \(2,\)"),
        ({"points": []}, r"points has shape \(0,\)"),
        ({"points": [[0.2, 0.2, 0.6], [0.5, 0.6, 0.1]]}, "points has in row 1"),
        ({"points": [[np.nan, 0.5, 0.5]]}, "points has in row 0"),
        ({"points": ["cat"]}, "points is of type list and holds no numbers"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError, match=message):
        caltest.witness(P6, Y6, **{"rng": 0, **options})


def test_distributions_of_numbers_have_no_classes():
    with pytest.raises(InputError, match="give probabilities of classes"):
        caltest.witness(GaussianPredictions(np.zeros(5), np.ones(5)), np.zeros(5))


# ------------------------------------------------------------------ the picture


@pytest.mark.usefixtures("pictures")
class TestPicture:
    @staticmethod
    @cache
    def found(m=3, **options):
        data = classwise(1500, np.ones(m), bias=2.0, rng=0)
        probs = pd.DataFrame(data.probs, columns=[f"kind {c}" for c in range(m)])
        return caltest.witness(probs, data.labels, n_resamples=99, n_points=30, rng=0, **options)

    def texts(self, display):
        display.figure_.canvas.draw()
        return [text.get_text() for text in display.ax_.texts]

    @pytest.mark.slow
    @pytest.mark.parametrize("m", some_fast([2, 3, 10, 12], 3, 12))
    def test_nothing_is_clipped_and_nothing_overlaps(self, m):
        display = caltest.WitnessDisplay.from_result(self.found(m))
        display.figure_.canvas.draw()
        used = display.figure_.get_tightbbox()
        assert min(used.x0, used.y0) >= 0.0
        assert (np.array([used.x1, used.y1]) <= display.figure_.get_size_inches()).all()
        boxes = [text.get_window_extent() for text in display.ax_.texts]
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("m", "width"),
        [
            (3, 6.0),
            (10, 3.0),
            *(pytest.param(*each, marks=pytest.mark.slow) for each in [(2, 3.0), (10, 6.5)]),
        ],
    )
    def test_cells_hold_what_they_have_room_for(self, m, width):
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(width, 0.8 * width), layout="constrained")
        display = caltest.WitnessDisplay.from_result(self.found(m), ax=ax)
        figure.canvas.draw()
        rows, columns = display.ax_.images[0].get_array().shape
        texts = [text for text in ax.texts if text.get_text()]
        assert len(texts) > 0
        for text in texts:
            box = text.get_window_extent()
            assert box.width < ax.bbox.width / columns
            assert box.height < ax.bbox.height / rows
        percentages = any("→" in text.get_text() for text in texts)
        assert percentages == ("predicted → % observed" in ax.get_title(loc="left").replace("\n", " "))
        assert percentages or m == 10
        title = ax.get_title(loc="left").replace("\n", " ")
        assert (width > 4.0) == ("a small z may be significant" in title)
        assert ax._left_title.get_window_extent().x1 <= figure.bbox.x1
        meaning = display.ax_.images[0].colorbar.ax.get_ylabel().replace("\n", " ")
        assert "− observed less" in meaning
        assert "+ " in meaning

    def test_what_is_drawn(self):
        w = self.found()
        display = caltest.WitnessDisplay.from_result(w)
        texts = self.texts(display)
        assert len(texts) == 3 * len(w.identified)
        place = w.identified[0]
        for text, c in zip(texts, range(3), strict=False):
            claimed = w.pvalues[place, c] <= 0.05
            assert ("*" in text) == claimed
            sign = "−" if w.standardised[place, c] < 0 else "+"
            assert text.startswith(sign)
        weights = [text.get_weight() for text in display.ax_.texts]
        assert weights == ["bold" if "*" in text else "normal" for text in texts]
        assert f"row {w.rows[place]}" in display.ax_.get_yticklabels()[0].get_text()

    @pytest.mark.slow
    def test_of_many_classes_those_named(self):
        data = m1(2000, 15, rng=0)
        labels = np.where(data.labels == 3, 7, data.labels)
        w = caltest.witness(data.probs, labels, n_resamples=99, n_points=40, rng=0)
        display = caltest.WitnessDisplay.from_result(w)
        shown = [label.get_text() for label in display.ax_.get_xticklabels()]
        assert {"class 3", "class 7"} <= set(shown)
        assert len(shown) <= 12
        assert f"{len(shown)} of 15 classes" in display.ax_.get_title(loc="left")

    def test_nothing_found(self):
        data = m1(200, 15, rng=1)
        w = caltest.witness(data.probs, data.labels, n_resamples=99, rng=0)
        (text,) = self.texts(caltest.WitnessDisplay.from_result(w))
        assert text.startswith("Nothing stands out")
