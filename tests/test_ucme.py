"""The unnormalised calibration mean embedding: values by hand and by definition, size, power."""

import numpy as np
import pytest
from support import P6, Y6, dirichlet, kernels_for, labels_from, residuals

import caltest
from caltest.data import Rows
from caltest.kernels import Gaussian
from caltest.statistics import UCME
from validation.generative import classwise

PROBS = dirichlet(40, 3, 0)
WHOLE = Rows(np.full((40, 2), 0.5)).whole
LABELS = labels_from(PROBS, np.random.default_rng(1))


def naive(probs, labels, kernel, points):
    """Location by location and row by row."""
    total = 0.0
    for point in points:
        summed = np.zeros(probs.shape[1])
        for g, d in zip(probs, residuals(probs, labels), strict=True):
            summed += kernel(g[None], point[None])[0, 0] * d
        total += summed @ summed
    return total / len(probs) ** 2


# ------------------------------------------------------------------ values


def test_by_hand():
    """Of labels 0 and 0, D = (0, 0) and (1, -1); of 1 and 0, D = (-1, 1) and (1, -1)."""
    probs, k = [[1.0, 0.0], [0.0, 1.0]], np.exp(-1.0)
    assert caltest.estimate(probs, [0, 0], UCME(Gaussian(1.0))) == pytest.approx((1 + k**2) / 2)
    assert caltest.estimate(probs, [1, 0], UCME(Gaussian(1.0))) == pytest.approx((1 - k) ** 2)
    assert caltest.estimate(probs, [0, 1], UCME(Gaussian(1.0))) == 0.0


@pytest.mark.parametrize("kernel", [name for name in kernels_for(3) if "matrix" not in name])
def test_by_definition_if_all_rows_are_locations(kernel):
    expected = naive(P6, Y6, kernels_for(3)[kernel].fitted(P6), P6)
    assert caltest.estimate(P6, Y6, UCME(kernels_for(3)[kernel])) == pytest.approx(expected)


@pytest.mark.parametrize("seed", [0, 1])
def test_by_definition(seed):
    fitted = UCME(locations=7, seed=seed).fitted(Rows(PROBS))
    form = fitted.given(Rows(PROBS))
    assert len(fitted._fit) == 7
    assert all((point == PROBS).all(axis=1).any() for point in fitted._fit)
    expected = naive(PROBS, LABELS, fitted.kernel, fitted._fit)
    assert form.value(LABELS) == pytest.approx(expected, rel=1e-12)


OWN = np.array([[0.8, 0.1, 0.1], [0.2, 0.2, 0.6], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("given", [OWN, OWN.tolist(), OWN[:1]], ids=["array", "lists", "one"])
def test_locations_of_ones_own(given):
    statistic = UCME(Gaussian(0.4), given, seed=2)
    points = np.array(given)
    form = statistic.given(Rows(PROBS))
    expected = naive(PROBS, LABELS, Gaussian(0.4), points)
    assert form.value(LABELS) == pytest.approx(expected, rel=1e-12)
    assert statistic == UCME(Gaussian(0.4), points.copy(), seed=2)
    assert statistic != UCME(Gaussian(0.4), points[::-1] * 0 + [0, 0, 1], seed=2)
    assert isinstance(hash(statistic), int)
    halves = [statistic.fitted(Rows(PROBS, part_of=WHOLE))] * 2
    parts = [
        each.given(Rows(PROBS[rows], part_of=WHOLE))
        for each, rows in zip(halves, (slice(0, 9), slice(9, 40)), strict=True)
    ]
    sums = parts[0].scores.sums(LABELS[None, :9]) + parts[1].scores.sums(LABELS[None, 9:])
    assert parts[0].reduce(sums, parts[0].fixed)[0] == pytest.approx(expected)


def test_neither_rows_nor_classes_count_by_where_they_stand():
    rng = np.random.default_rng(0)
    for statistic in (UCME(locations=5), UCME(seed=3)):
        for _ in range(5):
            rows, names = rng.permutation(40), rng.permutation(3)
            permuted = np.empty_like(PROBS)
            permuted[:, names] = PROBS
            one = caltest.estimate(PROBS, LABELS, statistic)
            other = caltest.estimate(permuted[rows], names[LABELS][rows], statistic)
            assert other == pytest.approx(one, rel=1e-9)


# ------------------------------------------------------------------ the null


@pytest.mark.level
def test_power():
    """Wrong in one class: found as often as by all pairs of rows.

    200 data sets gave .90 (all pairs) and .91; limits are four standard errors away.
    """
    simulated = [classwise(200, (1.0,) * 4, bias=0.75, rng=seed) for seed in range(200)]
    pairs, every = (
        np.array(
            [
                caltest.test(data.probs, data.labels, statistic, n_resamples=99, rng=0).pvalue <= 0.05
                for data in simulated
            ]
        )
        for statistic in ("skce_uq", "ucme")
    )
    assert every.mean() > 0.82
    assert abs(every.mean() - pairs.mean()) < 4.0 * np.std(every ^ pairs) / np.sqrt(200)
