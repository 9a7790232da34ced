"""What `compare` returns: errors in points and their differences, and behind them a ranking."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

from caltest._arguments import OneOf, anything, arguments
from caltest._sums import Array
from caltest._visible import quoted, visible
from caltest.auditing.numbers import InUnits
from caltest.auditing.views import Group, Sized
from caltest.comparison.equality import Kind
from caltest.exceptions import InputError
from caltest.results import Result

if TYPE_CHECKING:
    import pandas as pd


_GROUP = "give a group of errors, such as errors[-1].group"
Interval: TypeAlias = tuple[float, float, float]  # its lower end, the estimate, and its upper end


@dataclass(frozen=True)
class ModelError(Sized):
    """How far off one model is: the error of one probability, on all rows or in a group.

    Errors are differences of probabilities: 0.02 is 2 points.

    Attributes
    ----------
    model
        Its name.
    group
        Which rows; None for all.
    rows, predicted, observed
        Number of rows, mean probability, and observed rate.
    low, high
        Interval of the mean error, predicted less true rate.
    absolute
        Mean absolute error over tenths of the model's own predictions, of a group over fifths: lower
        end, estimate and upper end. Errors of opposite sign do not cancel in it. Chance makes the
        estimate too large rather than too small.
    log_loss, brier
        Of all classes: mean of −log p and of Σ(p − y)²; of two classes the latter is (p − y)². None of
        numbers.
    crps
        Of numbers, in their units: the mean continuous ranked probability score. Where a model states
        quantiles only it is, of all models, twice the mean pinball loss at the levels that they have in
        common (the weighted interval score, if these are symmetric). None of classes.
    units
        Of numbers: the mean error in their units, :class:`caltest.auditing.numbers.InUnits`. None of
        classes.
    """

    model: str
    group: Group | None
    rows: int
    predicted: float
    observed: float
    low: float
    high: float
    absolute: Interval
    log_loss: float | None
    brier: float | None
    crps: float | None = None
    units: InUnits | None = None


@dataclass(frozen=True)
class ModelDifference:
    """How much further off one model is than another on the same rows.

    Attributes
    ----------
    model, other
        Differences are those of ``model`` less ``other``: above 0 where ``model`` is worse.
    group
        Which rows; None for all.
    absolute
        Of mean absolute errors: lower end, estimate and upper end of a paired interval.
    mean
        Of mean errors, with their signs. Where both models predict the same event, it is the difference
        of mean predictions, which is known: the observed rate cancels, and both ends are the estimate.
    log_loss, brier, crps
        Of mean losses, with paired intervals; None where they have none.
    """

    model: str
    other: str
    group: Group | None
    absolute: Interval
    mean: Interval
    log_loss: Interval | None
    brier: Interval | None
    crps: Interval | Any = None  # so that numbers need no check for types

    @property
    def turned(self) -> ModelDifference:
        """The difference of ``other`` less ``model``."""
        kinds = (self.absolute, self.mean, self.log_loss, self.brier, self.crps)
        turned: list[Any] = [each and (-each[2], -each[1], -each[0]) for each in kinds]
        return ModelDifference(self.other, self.model, self.group, *turned)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """How far off models are, in points, and which differ; and behind that, a ranking by a statistic.

    Arrays are read-only, in the order of ``names``.

    Attributes
    ----------
    errors
        How far off each model is, on all rows and then in every group: :class:`.ModelError`;
        ``pandas.DataFrame(found.errors)`` is a table of them. All
        intervals of mean and absolute errors are exact and correct together, with this confidence.
        With weights or clusters they are those of an audit, of absolute errors much wider.
    gaps
        How much further off each model is than each one after it: :class:`.ModelDifference`. Intervals
        are about right, those of one kind together: of t, over rows or clusters; those of absolute
        errors are wider by what chance may add to such errors.
    probability, event
        Which probability ``errors`` are of: label of the lens ("canonical" for class 1 of two classes),
        and what was predicted, as a clause. It is that of ``lens`` if that shows one, of two classes
        class 1, and of more that of the top class.
    names
        The K models, as given.
    ranking
        The names, smallest error first; equal ones as given.
    values
        The statistic on all rows, (K,).
    if_calibrated
        What ``values`` (their size, if signed) would be on average if each model were calibrated, (K,):
        the bias. 0 for "skce_uq" and "jkce", else from 200 draws of labels or, of rows in clusters, of
        signs of these.
    standard_errors
        Of the values, (K,); infinite where unknown.
    intervals
        values ± t · standard_errors, (K, 2): for each model alone, t with n − 1 degrees of freedom (of
        rows, or effective clusters), fewer where standard errors come from few resamples.
    first_proportions, first_intervals
        Share of resamples in which the model's error is the smallest, ties shared, (K,), and its
        Wilson interval, (K, 2).
    pair_proportions, pair_intervals
        [i, j]: share of resamples in which model i has a smaller error than model j, ties counted
        half, (K, K), and its Wilson interval, (K, K, 2).
    order_proportion, order_interval
        Share of resamples that rank all models exactly as ``ranking`` does (ties allowed), and its
        Wilson interval.
    differences
        [i, j]: error of model i less that of model j, on all rows, (K, K).
    difference_errors
        Their standard errors, (K, K), at least what they would be if one of the models were calibrated.
        Of values with different signs it is that of their sum.
    pvalues, adjusted_pvalues
        Two-sided p-values, (K, K), of the hypothesis that both errors are equal in size; for a
        statistic without a sign, equal up to the bias ``if_calibrated``. ``adjusted_pvalues`` are
        adjusted for the K(K − 1)/2 pairs. Never 0.
    statistic
        Registered name of the statistic, or the name of the function.
    measures
        What the statistic measures, in words.
    signed
        Whether errors have a sign; the size is what is ranked and compared then.
    errors_from
        Where standard errors come from: "u_statistic" or the resampling.
    confidence
        Of all intervals.
    correction
        Of the p-values; None where they are not adjusted.
    parameters
        Options in force for every model, by its name: a fitted bandwidth for instance.
    resampling, size
        How rows were drawn, or clusters, and how many at a time.
    n_samples, n_classes, lens, n_resamples, seed, warnings
        As in :class:`caltest.CalibrationResult`; of these ``n_classes`` are those that the lens shows.
    n_predicted
        Classes of the predictions, without a lens; None of numbers.
    n_clusters
        Number of clusters, if whole clusters are drawn; None where rows are independent.
    sampling_rates
        By class, the share of its rows that was kept, if rows were sampled by their label; errors
        are then those among the rows kept. Else None.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> models = {"sure": sure.probs, "true": sure.truth}
    >>> found = caltest.compare(models, sure.labels, "skce_uq", n_resamples=50, rng=0)
    >>> found.ranking, found.first_proportions.tolist()
    (('true', 'sure'), [0.0, 1.0])
    >>> float(found.adjusted_pvalues[0, 1]) < 0.05
    True
    >>> found.event, [round(each.absolute[1], 2) for each in found.errors]
    ('the top class is right', [0.14, 0.06])
    """

    errors: tuple[ModelError, ...]
    gaps: tuple[ModelDifference, ...]
    probability: str
    event: str
    names: tuple[str, ...]
    ranking: tuple[str, ...]
    values: Array
    if_calibrated: Array
    standard_errors: Array
    intervals: Array
    first_proportions: Array
    first_intervals: Array
    pair_proportions: Array
    pair_intervals: Array
    order_proportion: float
    order_interval: tuple[float, float]
    differences: Array
    difference_errors: Array
    pvalues: Array
    adjusted_pvalues: Array
    statistic: str
    measures: str
    signed: bool
    errors_from: str
    confidence: float
    correction: str | None
    n_samples: int
    n_classes: int | None
    n_predicted: int | None
    lens: str | None
    parameters: dict[str, dict[str, Any]]
    resampling: Kind
    n_resamples: int
    size: int
    seed: int
    warnings: tuple[str, ...] = ()
    n_clusters: int | None = None
    sampling_rates: dict[Any, float] | None = None

    @property
    def order(self) -> list[int]:
        """Where in ``names`` each model of ``ranking`` stands."""
        return [self.names.index(name) for name in self.ranking]

    @property
    def nearest(self) -> list[str]:
        """The names, the smallest mean absolute error on all rows first; equal ones as given."""
        errors = sorted(self.errors[: len(self.names)], key=lambda each: each.absolute[1])
        return [each.model for each in errors]

    @arguments(first=anything, second=anything, group=OneOf("caltest.auditing:Group", _GROUP))
    def gap(self, first: str, second: str, group: Group | None = None) -> ModelDifference:
        """Return how much further off a model is than another, in whichever order they were given.

        Parameters
        ----------
        first, second
            Names of two models.
        group
            A group of ``errors``. Default None: all rows.

        Returns
        -------
        ModelDifference
            Of ``first`` less ``second``.

        Raises
        ------
        InputError
            If these were not compared on these rows.
        """
        pair = {each for each in (first, second) if isinstance(each, str)}
        for each in self.gaps:
            if each.group == group and {each.model, each.other} == pair:
                return each if each.model == first else each.turned
        raise InputError(f"no models {quoted(first)} and {quoted(second)} were compared there.")

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return the statistic of each model, in the order of the ranking.

        Returns
        -------
        pandas.DataFrame
            Index ``model``; columns ``value``, ``if_calibrated``, ``standard_error``, ``low``, ``high``
            (the interval), ``first`` (share of resamples in which it has the smallest error).
        """
        import pandas as pd

        found = {
            "value": self.values,
            "if_calibrated": self.if_calibrated,
            "standard_error": self.standard_errors,
            "low": self.intervals[:, 0],
            "high": self.intervals[:, 1],
            "first": self.first_proportions,
        }
        index = pd.Index([visible(name) for name in self.names], name="model")
        return pd.DataFrame(found, index=index).iloc[self.order]

    @arguments()
    def pairs(self) -> pd.DataFrame:
        """Return the test of each pair of models, in the order of the ranking.

        Returns
        -------
        pandas.DataFrame
            Columns ``better`` and ``worse`` (by all rows); ``difference`` of their errors, worse less
            better, with ``standard_error``, ``pvalue`` and ``adjusted`` p-value; ``proportion`` of
            resamples in which better is better, with its interval ``low``, ``high``.
        """
        import pandas as pd

        rows = [
            {
                "better": visible(self.names[i]),
                "worse": visible(self.names[j]),
                "difference": self.differences[j, i],
                "standard_error": self.difference_errors[j, i],
                "pvalue": self.pvalues[i, j],
                "adjusted": self.adjusted_pvalues[i, j],
                "proportion": self.pair_proportions[i, j],
                "low": self.pair_intervals[i, j, 0],
                "high": self.pair_intervals[i, j, 1],
            }
            for i, j in combinations(self.order, 2)
        ]
        return pd.DataFrame(rows)
