"""One model of numbers on some rows: whether outcomes lie in what was predicted, and its score.

Outcomes that equal a stated quantile count as inside or outside, whichever makes an error smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from caltest._sums import Array
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.laws import Pool, Predictive, Quantiles
from caltest.lenses import Interval, Lens, Quantile
from caltest.sampling import child_seed
from caltest.statistics.numbers import QUANTILES, pinball

_WIDTH = 0.8  # stated probability of the interval that is looked at
_OF_FEW = 0.5  # the same, where pools of members hold too few values for the former
_ROUNDED = 9  # digits of levels
_DRAWS = 32  # of outcomes by each model, of which the least variance of differences is taken
_NUMBERS = 2**22


def stated_by(wholes: Mapping[str, Sample]) -> tuple[bool, Array]:
    """Return whether some models state quantiles only, and the levels at which all are scored."""
    stated = [x.rows.law.levels for x in wholes.values() if isinstance(x.rows.law, Quantiles)]
    if not stated:
        return False, QUANTILES
    levels = reduce(np.intersect1d, [each.round(_ROUNDED) for each in stated])
    if not len(levels):
        raise InputError(
            "the models state quantiles at different levels, with none in common; give forecasts with "
            "a level in common, such as 0.5."
        )
    return True, levels


def scored_by(wholes: Mapping[str, Sample]) -> tuple[str, ...]:
    """Say what is scored instead of the CRPS if some models state quantiles only."""
    stated, levels = stated_by(wholes)
    if not stated:
        return ()
    return (
        f"In place of the CRPS stands the mean quantile score, twice the pinball loss, of all models "
        f"at {len(levels)} levels from {levels[0]:g} to {levels[-1]:g}.",
    )


def _pool_sizes(wholes: Mapping[str, Sample]) -> list[int]:
    return [x.rows.law.size for x in wholes.values() if isinstance(x.rows.law, Pool)]


def pools_differ(wholes: Mapping[str, Sample]) -> tuple[str, ...]:
    """Say what statistics see less of where models have different numbers of members."""
    sizes = _pool_sizes(wholes)
    if not sizes or (len(sizes) == len(wholes) and min(sizes) == max(sizes)):
        return ()
    return (
        f"A statistic of L members sees L/(L + 1) of an error, and there are models of {min(sizes) - 1}"
        ", as the outcome is among the values that it is compared with. Errors in points, and scores, "
        "are those of the members alone.",
    )


def lens_for(lens: Lens | None, wholes: Mapping[str, Sample]) -> Lens:
    """Return the lens of errors in points: one event, by default the interval nearest to 80%."""
    if lens is not None and lens.label.partition(":")[0] not in ("pit", "distribution"):
        return lens
    quantiles, levels = stated_by(wholes)
    if not quantiles:
        fewest = min(_pool_sizes(wholes), default=np.inf)
        kept = [each for each in (_WIDTH, _OF_FEW) if 0.5 * (1.0 - each) * fewest > 1.0 - 1e-9]
        return Interval(kept[0]) if kept else Quantile(0.5)
    widths = np.round(1.0 - 2.0 * levels[levels < 0.5], _ROUNDED)
    widths = widths[np.isin(np.round(0.5 + 0.5 * widths, _ROUNDED), levels)]
    if not len(widths):
        return Quantile(float(levels[np.abs(levels - 0.5).argmin()]))
    return Interval(float(widths[np.abs(widths - _WIDTH).argmin()]))


@dataclass(frozen=True, eq=False)
class OfNumbers:
    """One model on some rows: probabilities of an event, whether it occurred, and a score.

    Attributes
    ----------
    rows
        Its predictions.
    outcomes
        Numbers, (n,), and the outcomes that its law makes of them.
    lens
        Of the event.
    levels
        Of the quantiles that are scored; None: the CRPS has a closed form for all models.
    """

    rows: Rows
    outcomes: Array
    codes: NDArray[Any]
    lens: Lens
    levels: Array | None

    @classmethod
    def all_of(cls, wholes: Mapping[str, Sample], outcomes: Array, lens: Lens) -> dict[str, OfNumbers]:
        """Return all models, of which all are scored alike."""
        stated, levels = stated_by(wholes)
        laws: Any = [whole.rows.law for whole in wholes.values()]
        closed = not stated and all(law.crps(outcomes) is not None for law in laws)
        at = None if closed else levels
        return {
            name: cls(whole.rows, outcomes, whole.labels, lens, at) for name, whole in wholes.items()
        }

    def take(self, rows: NDArray[np.intp]) -> OfNumbers:
        """Return some rows."""
        if len(rows) == len(self.outcomes):
            return self
        given = self.rows.take(rows), self.outcomes[rows], self.codes[rows]
        return OfNumbers(*given, self.lens, self.levels)

    def seen(self) -> tuple[Array, Array, NDArray[np.intp], NDArray[np.intp]]:
        """Return probabilities, what rows are ordered by, and the closed and open event, (n,) each."""
        view, law = self.lens.show(self.rows), self.law
        scores = view.rows.probs[:, 1]
        stated = isinstance(self.lens, Interval | Quantile)
        closed, opened = (each.sample(self.codes).labels for each in (view, view.opened))
        return scores, law.level() if stated else scores, closed, opened

    @property
    def law(self) -> Predictive:
        """What was predicted."""
        return cast("Predictive", self.rows.law)

    def score(self, outcomes: Array) -> Array:
        """Return CRPS or mean quantile scores of numbers, (B, n)."""
        law, levels = self.law, self.levels
        if isinstance(law, Pool) and levels is not None:  # a quantile of the pool knows the outcome
            law = law.without(self.outcomes)
        if levels is None:
            return np.asarray(law.crps(outcomes), dtype=np.float64)
        at: Iterable[Array] = (law.quantile(np.full(law.n_samples, level)) for level in levels)
        return pinball(outcomes, levels, at)


@dataclass(frozen=True, eq=False)
class Scored:
    """A model on some rows, with its errors by row.

    ``sides`` is on which side its part of the predictions is wrong, ``seen`` whether the event occurred
    and ``chance`` what chance adds to its absolute error at most.
    """

    model: OfNumbers
    scores: Array
    seen: Array
    sides: Array
    chance: float

    def _terms(self, seen: Array, outcomes: Array) -> Array:
        by = getattr(self.model.law, "stretch", 1.0) if np.ptp(self.scores) > 0.0 else 1.0
        errors = by * (self.scores - seen)
        return np.stack([self.sides * errors, errors, self.model.score(outcomes)])

    def less(self, other: Scored) -> tuple[Array, Array]:
        """Return absolute errors, errors and scores less another's, (3, n), and variances by laws."""
        pair = (self, other)
        one, two = (x._terms(x.seen[None], x.model.outcomes[None])[:, 0] for x in pair)
        if any(isinstance(x.model.law, Quantiles) for x in pair):  # of which no numbers are drawn
            return one - two, np.zeros((1, *one.shape))
        variances = []
        draws = int(np.clip(_NUMBERS // len(self.seen), 2, _DRAWS))
        for x in pair:
            drawn = x.model.rows.sampler(child_seed(0, _DRAWS)).draw(0, draws)
            first, second = (
                y._terms(y.model.lens.show(y.model.rows).seen(drawn).astype(np.float64), drawn)
                for y in pair
            )
            variances.append((first - second).var(axis=1, ddof=1))
        return one - two, np.array(variances)

    def knows(self, other: Scored) -> bool:
        """Whether both are of the same event, so that what was observed cancels."""
        return self.model.lens.label.startswith(("below", "above"))


def check_kind(whole: Sample, first: Sample) -> None:
    """Raise unless a model states numbers, not vectors, or classes, as the first one does."""
    law: Any = whole.rows.law
    if isinstance(law, Predictive) != isinstance(first.rows.law, Predictive):
        raise InputError(
            f"these are {law.about}, and those of the first model {first.rows.law.about}; give models "
            "of one kind."
        )
    if isinstance(law, Predictive) and law.dimension is not None:
        raise InputError(
            f"these are about vectors of {law.dimension} entries; give numbers, an entry at a time."
        )
