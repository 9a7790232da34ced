"""T-Cal: values by hand and by definition, mean and variance, ties, parts, size and power."""

import numpy as np
import pytest

import caltest
from caltest.data import Rows
from caltest.statistics import TCal


def pair(p):
    return Rows(np.column_stack([1.0 - np.asarray(p), p]))


def form_of(p, min_rows=10):
    return TCal(min_rows).given(pair(p))


# ------------------------------------------------------------------ values

HALVES = [0.5] * 20
BY_HAND = {  # scores, labels, fewest rows, the largest U and its variance
    # One bin: (Σ r)² = 25, Σ r² = 5; U = 20/20, variance 2 (5² − 20/16)/20².
    "one score": (HALVES, [1] * 15 + [0] * 5, 10, 1.0, 2 * 23.75 / 400),
    # One bin: U = −8/20. Two: r sums to 4 and −4, r² to 4: 2 (16 − 4)/10; v = 0.16.
    "right on average": ([0.2] * 10 + [0.8] * 10, [1] * 6 + [0] * 4 + [1] * 4 + [0] * 6, 10, 2.4,
        4 * (1.6**2 - 0.256) / 100),
    # The same, at the one scale that 11 rows a bin leave.
    "one scale": ([0.2] * 10 + [0.8] * 10, [1] * 6 + [0] * 4 + [1] * 4 + [0] * 6, 11, -0.4,
        2 * (3.2**2 - 0.512) / 400),
    "two rows": ([0.25, 0.25], [1, 1], 10, 2 * 0.75**2 / 2, 4 * (3 / 16) ** 2 / 4),
    # Certain rows that are right add nothing to U, and share its n.
    "certain ones": ([0.0, 0.5, 0.5, 1.0], [0, 1, 1, 1], 10, 2 * 0.25 / 4, 4 / 16 / 16),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(case):
    probs, labels, min_rows, error, variance = BY_HAND[case]
    found = caltest.estimate(probs, labels, TCal(min_rows))
    assert found == pytest.approx(error / np.sqrt(variance), rel=1e-12)


def test_tied_scores_share_a_bin():
    """Half of 100 tied labels are 1: apart, ones first, two bins of 50 would be all wrong."""
    p, y = np.full(100, 0.5), np.repeat([1, 0], 50)
    assert form_of(p).value(y) == pytest.approx(-25 / np.sqrt(2 * (25**2 - 6.25)))
    assert form_of(p + 1e-9 * np.arange(100)).value(y) > 10.0


@pytest.mark.parametrize(
    ("p", "y", "value"),
    [
        (np.tile([0.0, 1.0], 20), np.tile([0, 1], 20), 0.0),
        (np.tile([0.0, 1.0], 20), np.tile([1, 0], 20), np.inf),
        ([0.3, 0.0, 1.0], [1, 0, 1], 0.0),  # one uncertain row has no pair
        ([0.3, 0.0, 1.0], [1, 1, 1], np.inf),
    ],
)
def test_where_no_scale_varies(p, y, value):
    """Labels of probability 0 are no rounding; draws have none."""
    result = caltest.test(p, y, "t_cal", n_resamples=99, rng=0)
    assert result.statistic == value
    assert result.pvalue == (1.0 if value == 0.0 else 0.01)
    assert (result.null_distribution == 0.0).all()


# ------------------------------------------------------------------ the null


def power(statistic, waves, size):
    """Share of 200 data sets of 800 rows found at level .05; the truth swings about the score."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng([5, seed])
        p = rng.uniform(0.2, 0.8, 800)
        truth = p + size * np.sign(np.sin(np.pi * waves * (p - 0.2) / 0.6))
        y = (rng.random(800) < truth).astype(int)
        found.append(caltest.test(p, y, statistic, n_resamples=99, rng=seed).pvalue)
    return np.mean(np.array(found) <= 0.05)


@pytest.mark.level
@pytest.mark.parametrize(
    ("waves", "size", "blind"),
    [(1, 0.05, ()), (8, 0.1, ("kuiper", "skce_b")), (32, 0.15, ("kuiper", "skce_b", "ace"))],
)
def test_power_at_every_scale(waves, size, blind):
    """Errors that change sign 0, 7 and 31 times: .78, .92 and .85, limits four standard errors away.

    The others find the narrow ones in at most .16.
    """
    assert power("t_cal", waves, size) > {1: 0.66, 8: 0.84, 32: 0.74}[waves]
    assert all(power(other, waves, size) < 0.27 for other in blind)
