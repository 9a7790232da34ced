"""A new kind of outcome is one law and its scores: normal predictions go the way that classes go."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import ndtr

import caltest
from caltest._parallel import ALONE
from caltest.data import Rows
from caltest.forms import Sums
from caltest.laws import Classes, GaussianPredictions
from caltest.lenses import Reduction
from caltest.pvalues import count, pvalue
from caltest.resampling import Column, Draws, sign_draws, signed_columns, table
from caltest.scores import Function
from caltest.statistics import ECE, KolmogorovSmirnov, Statistic

LEVELS = np.arange(1, 20) / 20


@dataclass(frozen=True, eq=False)
class PitForm(Sums):
    """The largest distance of the share of PITs below a level from that level."""

    law: GaussianPredictions
    weights: np.ndarray

    @property
    def scores(self):
        return Function(self._of_rows, self.weights, len(LEVELS))

    def _of_rows(self, outcomes):
        pit = ndtr((outcomes - self.law.mean) / self.law.factors[:, 0, 0])
        return (pit[..., None] <= LEVELS) - LEVELS

    def reduce(self, sums, fixed):
        return np.abs(sums).max(axis=1) / self.weights.sum()


@dataclass(frozen=True)
class Pit(Statistic, takes_weights=True):
    """Kolmogorov and Smirnov's distance of the PIT, on a grid."""

    name: ClassVar[str] = "pit"
    measures: ClassVar[str] = "distance of the PIT from uniform"
    laws: ClassVar = (GaussianPredictions,)

    def given(self, predictions):
        return PitForm(predictions.law, predictions.weights)


def below(rows, c):
    """See the event Y <= c, a probability that differs from row to row."""
    chance = ndtr((c - rows.law.mean) / rows.law.factors[:, 0, 0])
    seen = rows.shown_as(Classes(np.column_stack([1.0 - chance, chance])))
    return Reduction(seen, lambda outcomes, rows=slice(None): (outcomes <= c).astype(np.uint8))


def drawn(seed, scale=1.0, n=200, clustered=False):
    """Return normal predictions, and outcomes that are ``scale`` times as spread."""
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    errors = rng.normal(size=n)
    if clustered:
        mean, sd, errors = (np.repeat(each[: n // 2], 2) for each in (mean, sd, errors))
    return GaussianPredictions(mean, sd**2), mean + scale * sd * errors


def pvalues_of(law, outcomes, seed, clusters=None, weights=None):
    """Return the p-values of numbers and of an event of these, on the same draws."""
    rows = Rows(law, weights=weights, clusters=clusters)
    hot = below(rows, 0.5)
    columns = [Column(None, Pit().given(rows))]
    columns += [
        Column(hot, each.fitted(hot.rows).given(hot.rows)) for each in (KolmogorovSmirnov(), ECE())
    ]
    if clusters is None:
        values = table(columns, Draws(rows.sampler(seed), outcomes, 199), ALONE)
    else:
        signed = signed_columns_of_numbers(columns, outcomes, rows)
        values = table(signed, sign_draws(signed, int(clusters.max()) + 1, 199, seed), ALONE)
    return [pvalue(count(v[1:], float(v[0]), "greater"), 199, "greater") for v in values.T]


def signed_columns_of_numbers(columns, outcomes, rows):
    numbers = [signed_columns([each], outcomes, rows.clusters, rows.weights) for each in columns]
    return [one for (one,) in numbers]


@pytest.mark.slow
def test_signs_of_clusters_act_on_numbers():
    found = []
    for seed in range(200):
        law, outcomes = drawn(seed, clustered=True)
        found.append(pvalues_of(law, outcomes, seed, clusters=np.arange(200) // 2))
    assert ((np.array(found) <= 0.05).mean(axis=0) <= 0.11).all()


def test_power_of_numbers_and_of_their_events():
    found = [pvalues_of(*drawn(seed, 1.5), seed) for seed in range(40)]
    assert ((np.array(found) <= 0.05).mean(axis=0) >= [0.8, 0.2, 0.1]).all()


def test_a_statistic_of_numbers_is_tested_as_any_is():
    law, outcomes = drawn(1, 1.5)
    found = caltest.test(law, outcomes, Pit(), rng=1)
    assert found.guarantee == "exact"
    assert found.pvalue <= 0.01
    with pytest.raises(caltest.InputError, match="'ece' is for probabilities of classes"):
        caltest.test(law, outcomes, "ece")
