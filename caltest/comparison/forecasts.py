"""Compare models that predict distributions of numbers: scores, paired, and an audit of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from caltest._arguments import OneOf, anything, arguments
from caltest._sums import Array
from caltest._visible import quoted, visible
from caltest.auditing import Audit, audit
from caltest.auditing.groups import large_enough, read_groups
from caltest.auditing.plan import MIN_ROWS
from caltest.auditing.sizes import Design
from caltest.auditing.views import Group, View
from caltest.comparison.equality import FEWEST_ROWS, about_model
from caltest.comparison.result import Interval
from caltest.data import Sample, sample_of_law
from caltest.data.attributes import effective_number
from caltest.exceptions import InputError
from caltest.laws import GaussianPredictions, Predictive
from caltest.laws.distributions import finite_numbers
from caltest.results import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ModelScore:
    """The mean score of one model, on all rows or in a group; smaller is better.

    Attributes
    ----------
    model, group, rows
        Its name; which rows, None for all; and how many.
    score
        Mean score, in units of the outcome.
    """

    model: str
    group: Group | None
    rows: int
    score: float


@dataclass(frozen=True)
class ScoreDifference:
    """By how much one model's mean score is larger than another's on the same rows.

    Attributes
    ----------
    model, other, group
        Above 0 where ``model`` is worse than ``other``; which rows, None for all.
    score
        Lower end, estimate and upper end of a paired t interval, over rows or clusters: about right.
    """

    model: str
    other: str
    group: Group | None
    score: Interval

    @property
    def turned(self) -> ScoreDifference:
        """The difference of ``other`` less ``model``."""
        low, value, high = self.score
        return ScoreDifference(self.other, self.model, self.group, (-high, -value, -low))


@dataclass(frozen=True, eq=False, repr=False)
class ForecastComparison(Result):
    """How well models predict numbers, which differ, and whether each means what it says.

    Attributes
    ----------
    names
        The K models, as given.
    measure
        "crps": the continuous ranked probability score; "wis": the weighted interval score, twice the
        mean pinball loss of the levels that all quantile forecasts state. In units of the outcome.
    scores
        Mean scores: :class:`.ModelScore`, of all rows, then of every group.
    gaps
        How much larger each score is than that of each model after it: :class:`.ScoreDifference`. The
        intervals are about right, all of them together.
    audits
        By name, the :class:`caltest.Audit` of every model, its level 1 − confidence shared among them:
        with this confidence no model that is calibrated is found not to be.
    confidence, n_samples, n_clusters, seed, warnings
        As in :class:`caltest.Comparison`.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> level = rng.normal(size=400)
    >>> outcomes = rng.normal(level, 1.0)
    >>> models = {"narrow": caltest.predictive.Normal(level, sd=0.6),
    ...           "right": caltest.predictive.Normal(level, sd=1.0)}
    >>> found = caltest.compare(models, outcomes, rng=0)
    >>> found.ranking, {name: each.rejected for name, each in found.audits.items()}
    (('right', 'narrow'), {'narrow': True, 'right': False})
    >>> found.gap("narrow", "right").score[0] > 0.0
    True
    """

    names: tuple[str, ...]
    measure: str
    scores: tuple[ModelScore, ...]
    gaps: tuple[ScoreDifference, ...]
    audits: dict[str, Audit]
    confidence: float
    n_samples: int
    n_clusters: int | None
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def ranking(self) -> tuple[str, ...]:
        """The names, the smallest score on all rows first."""
        overall = sorted(self.scores[: len(self.names)], key=lambda each: each.score)
        return tuple(each.model for each in overall)

    @arguments(first=anything, second=anything, group=OneOf("caltest.auditing:Group", "give a group"))
    def gap(self, first: str, second: str, group: Group | None = None) -> ScoreDifference:
        """Return how much larger the score of ``first`` is than that of ``second``.

        Parameters
        ----------
        first, second
            Names of two models.
        group
            A group of ``scores``. Default None: all rows.

        Raises
        ------
        InputError
            If these were not compared on these rows.
        """
        for each in self.gaps:
            if each.group == group and {each.model, each.other} == {first, second}:
                return each if each.model == first else each.turned
        raise InputError(f"no models {quoted(first)} and {quoted(second)} were compared there.")

    @arguments(model=anything)
    def views(self, model: str) -> tuple[View, ...]:
        """Return what a model's audit says of events on all rows: predicted, observed, interval."""
        found = self.audits[model].views
        return tuple(view for view in found if view.group is None and view.predicted is not None)

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return scores and what was observed, in the order of the ranking.

        Returns
        -------
        pandas.DataFrame
            Index ``model``; columns ``score``, ``more`` (than the first), ``low`` and ``high`` (its
            interval), ``pvalue`` of the audit, and a column for each lens: the share of outcomes in
            its event.
        """
        import pandas as pd

        best, *_ = self.ranking
        found: dict[str, dict[str, Any]] = {}
        for each in self.scores[: len(self.names)]:
            more = (0.0,) * 3 if each.model == best else self.gap(each.model, best).score
            seen = {view.lens: view.observed for view in self.views(each.model)}
            row = {"score": each.score, "more": more[1], "low": more[0], "high": more[2]}
            found[visible(each.model)] = {**row, "pvalue": self.audits[each.model].pvalue, **seen}
        table = pd.DataFrame.from_dict(found, orient="index").loc[[visible(x) for x in self.ranking]]
        return table.rename_axis("model")


def compare_forecasts(
    models: Mapping[str, Any],
    outcomes: object,
    *,
    groups: object,
    confidence: float,
    counting: Mapping[str, Any],
    seed: int,
    **options: Any,
) -> ForecastComparison:
    """Compare predicted distributions: see :func:`caltest.compare`."""
    wholes: dict[str, Sample] = {}
    for name, given in models.items():
        with about_model(name):
            found = sample_of_law(given, outcomes, **counting)
            if found is None or found.rows.law.dimension is not None:  # type: ignore[attr-defined]
                raise InputError(
                    "these are no distributions of a number, as other models have; give models of one "
                    "kind."
                )
            wholes[name] = found
    first = next(iter(wholes.values()))
    n = len(first.labels)
    for name, other in wholes.items():
        if len(other.labels) != n:
            raise InputError(f"model {quoted(name)} has {len(other.labels)} rows, others {n}.")
    if n < FEWEST_ROWS:
        raise InputError(f"there are {n} rows; a comparison needs {FEWEST_ROWS} at least.")
    stated = [each.rows.law.levels for each in wholes.values() if each.rows.law.levels is not None]  # type: ignore[attr-defined]
    levels = None
    if stated:
        levels = np.array([x for x in stated[0] if all(np.isclose(x, own).any() for own in stated)])
        if not len(levels):
            raise InputError("quantile forecasts state no level in common; give some that all have.")
    numbers = finite_numbers("the outcomes", outcomes).reshape(n)
    losses = {name: _losses(each.rows.law, numbers, levels) for name, each in wholes.items()}  # type: ignore[arg-type]
    groupings = read_groups(groups, n, probs=next(iter(models.values())), labels=outcomes)
    design = Design.of(first.rows, None)
    kept = [pair for each in groupings for pair in large_enough(each, MIN_ROWS)[0]]
    where: list[tuple[Group | None, Any]] = [(None, np.arange(n)), *kept]
    pairs = list(combinations(wholes, 2))
    level, scores, gaps = (1.0 - confidence) / (2 * len(pairs) * len(where)), [], []
    for group, rows in where:
        here = design.at(rows)
        share = here.weights / here.weights.sum()
        for name, each in losses.items():
            scores.append(ModelScore(name, group, len(rows), float(share @ each[rows])))
        for a, b in pairs:
            interval = _paired(losses[a][rows] - losses[b][rows], here, level)
            gaps.append(ScoreDifference(a, b, group, interval))
    audits = {}
    for name, given in models.items():
        with about_model(name):
            audits[name] = audit(
                given,
                outcomes,
                groups=groups,
                intersections=1,
                alpha=(1.0 - confidence) / len(models),
                rng=seed,
                **{key: value for key, value in counting.items() if key in ("weights", "clusters")},
                **options,
            )
    codes = first.rows.clusters
    return ForecastComparison(
        names=tuple(models),
        measure="crps" if levels is None else "wis",
        scores=tuple(scores),
        gaps=tuple(gaps),
        audits=audits,
        confidence=confidence,
        n_samples=n,
        n_clusters=None if codes is None else len(np.unique(codes)),
        seed=seed,
        warnings=tuple(dict.fromkeys(note for each in audits.values() for note in each.warnings)),
    )


def _losses(law: Predictive, outcomes: Array, levels: Array | None) -> Array:
    """Return the score of every row."""
    if levels is None and isinstance(law, GaussianPredictions):
        return law.crps(outcomes)
    return 2.0 * law.pinball(outcomes, levels)


def _paired(differences: Array, design: Design, level: float) -> Interval:
    """Return a mean of differences with its interval of t, over rows or clusters."""
    w = design.weights
    mean = float(w @ differences / w.sum())
    sums = design.sums(w * (differences - mean))
    units = max(effective_number(design.sums(w)) - 1.0, 1.0)
    reach = -float(stdtrit(units, level)) * float(np.sqrt(sums @ sums)) / float(w.sum())
    return mean - reach, mean, mean + reach
