"""Statistics of members that are vectors: scores, tables over the places of a pool; the omnibus."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import cast

import numpy as np
from scipy.spatial.distance import pdist, squareform

from caltest._arguments import arguments
from caltest._sums import blocks
from caltest.data import Rows
from caltest.forms import Combined, Component
from caltest.forms.base import Array
from caltest.forms.pit import DrawnMoments
from caltest.forms.sums import LinearSum
from caltest.laws import Pools
from caltest.laws.members import fair_scores, standardised
from caltest.lenses import Entry, Lens, Pair
from caltest.statistics.base import SIGNED, Statistic
from caltest.statistics.numbers import Bias, PitAndersonDarling, PitStatistic, Spread

_HELD = 2**16  # numbers of pools looked at at a time


class _Score(Statistic):
    """A score of every place of a pool, less its mean over the pool."""

    alternatives = SIGNED
    laws = (Pools,)

    @abstractmethod
    def _scores(self, points: Array) -> Array:
        """Return the scores of all places, (r, N), of some standardised pools (r, N, d)."""

    def given(self, predictions: Rows) -> LinearSum:
        """Fix the predictions."""
        law = cast("Pools", predictions.law)
        parts = blocks(law.n_samples, max(1, _HELD // law.pool[0].size))
        scores = np.concatenate([self._scores(standardised(law.pool[rows])) for rows in parts])
        table = predictions.weighted(scores - scores.mean(axis=1, keepdims=True))
        probs = np.broadcast_to(1.0 / law.size, table.shape)
        return LinearSum(np.ascontiguousarray(table) / predictions.whole.total, probs)


@arguments()
@dataclass(frozen=True)
class EnergyScore(_Score):
    """Energy score of vectors less its mean over the pool: above 0 worse than predicted.

    n⁻¹ Σ_i of L⁻¹ Σ_k ‖x_k − y‖ − (2 L (L − 1))⁻¹ Σ_{k,l} ‖x_k − x_l‖ over the other L values of the
    pool, entries divided by their standard deviations in the pool, so that units do not matter. It sees
    errors of location and spread; for dependence see "variogram".

    References
    ----------
    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007),
    Equation 22; fair for any number of members: Ferro, "Fair scores for ensemble forecasts", QJRMS 140
    (2014).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> members = caltest.predictive.Members(rng.normal(size=(200, 19, 3)))
    >>> caltest.test(members, rng.normal(0.0, 1.4, size=(200, 3)), "energy", rng=0).pvalue
    0.002
    """

    name = "energy"
    measures = "energy score less its expectation, above 0 worse than predicted"

    def _scores(self, points: Array) -> Array:
        distances = np.stack([squareform(pdist(own)).sum(axis=0) for own in points])
        return fair_scores(distances, distances.sum(axis=1, keepdims=True), points.shape[1])


@arguments()
@dataclass(frozen=True)
class VariogramScore(_Score):
    """Variogram score of vectors less its mean over the pool: it sees wrong dependence of entries.

    n⁻¹ Σ_i Σ_{a<b} (|y_a − y_b|^½ − L⁻¹ Σ_k |x_ka − x_kb|^½)², entries with mean 0 and standard
    deviation 1 in the pool.

    References
    ----------
    Scheuerer and Hamill, "Variogram-based proper scoring rules for probabilistic forecasts of
    multivariate quantities", Monthly Weather Review 143 (2015), Equation 5, p = ½.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> members = caltest.predictive.Members(rng.normal(size=(500, 19, 2)))
    >>> truth = rng.multivariate_normal([0, 0], [[1, -0.9], [-0.9, 1]], size=500)
    >>> caltest.test(members, truth, "variogram", rng=0).pvalue
    0.002
    """

    name = "variogram"
    measures = "variogram score less its expectation, above 0 worse than predicted"

    def _scores(self, points: Array) -> Array:
        found, size = np.zeros(points.shape[:2]), points.shape[1]
        entries = np.ascontiguousarray(np.moveaxis(points, 2, 0))
        for one, other in combinations(entries, 2):
            apart = np.sqrt(np.abs(one - other))
            found += (apart - apart.mean(axis=1, keepdims=True)) ** 2
        return np.asarray(found * (size / (size - 1.0)) ** 2)


# ------------------------------------------------------------------ omnibus


_MOST_PAIRED = 10  # entries of which every two are looked at


@arguments()
@dataclass(frozen=True)
class OmnibusOfVectors(Statistic):
    """The default statistic of members that are vectors: every entry, and how entries go together.

    The parts are "energy" and "variogram", "bias", "spread" and "pit_ad" of every entry, and of up to
    ten entries the "bias" of every pair (:class:`caltest.lenses.Pair`). All see the same places in
    the pool, so that the largest evidence is exact whatever the dependence of entries; ``parts`` of the
    result has a p-value for each, adjusted for their number.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> members = caltest.predictive.Members(rng.normal(size=(300, 19, 2)), names=["u", "v"])
    >>> truth = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=300)
    >>> result = caltest.test(members, truth, rng=0)
    >>> [part.name for part in result.parts if part.adjusted <= 0.05]
    ['bias, pair:u,v']
    """

    name = "omnibus"
    measures = "evidence of its strongest part, −log of a tail probability"
    laws = (Pools,)
    growth = None

    def given(self, predictions: Rows) -> Combined:
        """Fix the predictions: every part as a function of the outcomes."""
        law = cast("Pools", predictions.law)
        parts = [
            Component(each.name, each.given(predictions), "two-sided")
            for each in (EnergyScore(), VariogramScore())[: law.dimension]
        ]
        found: list[tuple[Lens, tuple[PitStatistic, ...]]] = [
            (Entry(name), (Bias(), Spread(), PitAndersonDarling())) for name in law.names
        ]
        if law.dimension <= _MOST_PAIRED:
            found += [(Pair(*names), (Bias(),)) for names in combinations(law.names, 2)]
        for lens, statistics in found:
            view, label = lens.show(predictions), lens.label.removesuffix("/distribution")
            forms = tuple(each.given(view.rows) for each in statistics)
            drawn = DrawnMoments(forms)
            for place, (statistic, form) in enumerate(zip(statistics, forms, strict=True)):
                side, moments = statistic.alternatives[0], partial(drawn.of, place)
                parts.append(Component(f"{statistic.name}, {label}", form, side, view, law=moments))
        return Combined(tuple(parts))
