"""`scan` and `max_bin`: intervals, hand counts, monotone in every label."""

import numpy as np
import pytest

import caltest
from caltest.data import Rows
from caltest.statistics import Scan


def two_columns(scores):
    return np.column_stack([1.0 - np.asarray(scores), scores])


def dyadic(scores):
    """The ranges of these scores that a scan looks at."""
    return Scan().given(Rows(two_columns(np.asarray(scores)))).intervals


def by_hand(scores, labels, intervals, side):
    """The definition, by a loop over the intervals."""
    values = []
    for start, stop in intervals.bounds:
        rows = intervals.order[start:stop]
        if len(rows) == 0:
            continue
        p, y = scores[rows], labels[rows]
        error = p.sum() - y.sum()
        error = {"over": error, "under": -error, "both": abs(error)}[side]
        values.append(error / (np.sqrt((p * (1 - p)).sum()) + 1.0))
    return max(values)


@pytest.mark.parametrize("side", ["over", "under", "both"])
@pytest.mark.parametrize("kind", ["smooth", "ties", "certain"])
def test_the_definition(side, kind):
    rng = np.random.default_rng(3)
    scores = {
        "smooth": rng.random(700),
        "ties": np.round(rng.random(700), 1),
        "certain": rng.choice([0.0, 0.3, 1.0], 700),
    }[kind]
    labels = rng.integers(0, 2, (70, 700))
    intervals = dyadic(scores)
    found = Scan(side).given(Rows(two_columns(scores))).of_labels(labels)
    expected = [by_hand(scores, row, intervals, side) for row in labels]
    assert found == pytest.approx(np.array(expected), rel=1e-12)


def test_intervals_overlap_by_half():
    intervals = dyadic(np.linspace(0, 1, 256))
    assert intervals.bounds.tolist() == [
        [0, 256],
        *([start, start + 128] for start in (0, 64, 128)),
        *([start, start + 64] for start in range(0, 193, 32)),
    ]


@pytest.mark.parametrize(
    ("n", "shortest"), [(2, 2), (127, 127), (128, 64), (10_000, 156), (300_000, 1171), (10**6, 3906)]
)
def test_how_short_intervals_are(n, shortest):
    lengths = np.diff(dyadic(np.arange(n) / n).bounds, axis=1)
    assert lengths.max() == n
    assert abs(lengths.min() - shortest) <= 1


@pytest.mark.parametrize("values", [1, 2, 5, 40])
def test_equal_scores_stay_together(values):
    scores = np.random.default_rng(values).integers(0, values, 2000) / 40.0
    intervals = dyadic(scores)
    ordered = scores[intervals.order]
    for edge in intervals.edges[1:-1]:
        assert edge in (0, 2000) or ordered[edge - 1] < ordered[edge]
    assert intervals.edges[0] == 0
    assert intervals.edges[-1] == 2000
    assert (np.diff(intervals.edges) >= 0).all()


def test_a_constant_score_has_one_interval():
    intervals = dyadic(np.full(500, 0.4))
    assert {tuple(each) for each in intervals.bounds.tolist() if each[0] < each[1]} == {(0, 500)}


def test_both_is_the_larger_side():
    scores, labels = np.random.default_rng(0).random(200), np.random.default_rng(1).integers(0, 2, 200)
    values = {side: caltest.estimate(scores, labels, Scan(side)) for side in ("over", "under", "both")}
    assert values["both"] == max(values["over"], values["under"])


def test_a_model_that_is_never_too_sure_has_a_negative_value():
    assert caltest.estimate([0.5] * 4 + [0.25] * 4, [1] * 8, Scan("over")) == pytest.approx(
        -5.0 / (np.sqrt(1.75) + 1.0)
    )


def test_a_local_error_that_averages_out_is_found():
    rng = np.random.default_rng(2)
    scores = rng.random(3000)
    wrong = np.where((scores > 0.5) & (scores < 0.6), -0.25, np.where(scores > 0.9, 0.0, 0.0))
    wrong[(scores > 0.3) & (scores < 0.4)] = 0.25
    labels = (rng.random(3000) < scores + wrong).astype(int)
    assert caltest.test(scores, labels, "scan", rng=0).pvalue == 0.001
    assert caltest.test(scores, labels, "citl", rng=0).pvalue > 0.05
