"""Views and checks of an audit: plain facts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

from caltest._visible import shown_column, shown_value
from caltest.forms import Side
from caltest.results import plain


@dataclass(frozen=True)
class Condition:
    """A condition on a column: that it has a given value, or lies within bounds.

    Attributes
    ----------
    column, value
        Name of the column and the value, as text: that of the data, whatever is hidden in it. A range
        of numbers is "18 to 34".
    relation
        How they are related, as a name has it: "=", or the words of a bound ("over", "at most").

    Examples
    --------
    >>> from caltest.auditing import Condition
    >>> older = Condition("age", "31 and at most 45", "over")
    >>> older.words, older.clause
    ('age over 31 and at most 45', 'age is over 31 and at most 45')
    """

    column: str
    value: str
    relation: str = "="

    @property
    def stated(self) -> str:
        """The value with its bound: "north", "over 67"."""
        return self.value if self.relation == "=" else f"{self.relation} {self.value}"

    @property
    def called(self) -> str:
        """The same for display: visible and short."""
        return shown_value(self.stated, 24 if self.relation == "=" else 48)

    @property
    def words(self) -> str:
        """The condition as a name: "region = north", "age over 67"."""
        return f"{shown_column(self.column)}{' =' if self.relation == '=' else ''} {self.called}"

    @property
    def clause(self) -> str:
        """The condition as a clause: "region is north", "age is over 67"."""
        return f"{shown_column(self.column)} is {self.called}"


@dataclass(frozen=True)
class Group:
    """The rows that meet one condition, or several at once.

    Attributes
    ----------
    conditions : tuple of Condition
        One a column, in the order of the columns.

    Examples
    --------
    >>> from caltest.auditing import Group
    >>> Group.of(sex="F", age="65 and over").label
    'sex = F, age = 65 and over'
    """

    conditions: tuple[Condition, ...]

    @classmethod
    def of(cls, /, **conditions: str) -> Group:
        """Return the group defined by columns and values."""
        return cls(tuple(Condition(column, value) for column, value in conditions.items()))

    @property
    def label(self) -> str:
        """Columns and values as text."""
        return self._joined(f"{each.column} {each.relation} {each.value}" for each in self.conditions)

    @property
    def words(self) -> str:
        """The same for display: "sex = F, age = 65 and over", "age over 67 and region = north"."""
        return self._joined(each.words for each in self.conditions)

    def _joined(self, texts: Iterable[str]) -> str:
        return (" and " if any(each.relation != "=" for each in self.conditions) else ", ").join(texts)

    def __str__(self) -> str:
        return self.label

    @property
    def column(self) -> str:
        """The columns, joined by " × "."""
        return " × ".join(each.column for each in self.conditions)

    @property
    def value(self) -> str:
        """The values, joined by " × "."""
        return " × ".join(each.stated for each in self.conditions)

    def parents(self) -> tuple[Group | None, ...]:
        """Return the groups with one condition less; for a single condition None, all rows."""
        fewer = combinations(self.conditions, len(self.conditions) - 1)  # first without the last
        return tuple(Group(each) if each else None for each in fewer)[::-1]


@dataclass(frozen=True)
class Reliability:
    """Predicted and observed rates in equally filled bins: the points of a reliability diagram.

    Attributes
    ----------
    predicted, observed, rows
        Mean probability, observed rate, and number of rows, of each bin.
    low, high
        Range of the observed rate if the model is calibrated: all bins of all diagrams of the audit are
        in it with probability 1 − alpha, whichever are shown.
    """

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    rows: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Isotonic:
    """The mean outcome along the forecast, by isotonic regression of outcomes on point forecasts.

    Attributes
    ----------
    at, mean
        Up to about 200 forecasts, in increasing order, and the mean outcome at each.
    low, high
        Band for the mean at all of these together, at the audit's confidence, if it is non-decreasing:
        at least the intervals of the parts below, and at most those above. None where unknown.
    """

    at: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...] | None = None
    high: tuple[float | None, ...] | None = None


class Sized:
    """An error with an interval: the mean error of a view, of a part, or of a rest.

    Whether an error is found, and its place against the limit, are decided by the story
    (:mod:`caltest.auditing.story`).
    """

    predicted: float | None
    observed: float | None
    low: float | None
    high: float | None
    own_low: float | None = None
    own_high: float | None = None
    unfollowed: float = 0.0

    @property
    def id(self) -> Any:
        """Identity of the error within its audit."""
        return self

    @property
    def projected(self) -> bool:
        """Whether the observed value rests on no row that was followed so long."""
        return self.unfollowed == 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with None for ends that are unknown (infinite here)."""
        names = ("low", "high", "own_low", "own_high")
        unknown = [name for name in names if math.isinf(getattr(self, name) or 0.0)]
        return {name: plain(value) for name, value in vars(self).items()} | dict.fromkeys(unknown)

    @property
    def error(self) -> float | Any:  # Any: None only without an event
        """Predicted minus observed; None without an event."""
        stated, observed = self.predicted, self.observed
        return None if stated is None or observed is None else stated - observed

    @property
    def side(self) -> Side | None:
        """The side of 0 on which the interval lies, "over" or "under"; None if it contains 0."""
        low, high = self.low or 0.0, self.high or 0.0
        return "over" if low > 0.0 else "under" if high < 0.0 else None

    @property
    def true_rates(self) -> tuple[float, float]:
        """The interval of the true rate: the prediction minus the interval of the error."""
        predicted = self.predicted or 0.0
        return predicted - (self.high or 0.0), predicted - (self.low or 0.0)

    @property
    def sign(self) -> Side:
        """The side of 0 on which the estimate lies, proved or not."""
        return "over" if (self.error or 0.0) > 0.0 else "under"

    @property
    def proved(self) -> float:
        """Proved size of the mean error: the distance of its interval from 0."""
        return max(self.low or 0.0, -(self.high or 0.0), 0.0)

    @property
    def most(self) -> float:
        """Largest possible size of the mean error, by its interval."""
        return max(-(self.low or 0.0), self.high or 0.0)


@dataclass(frozen=True)
class Part(Sized):
    """A tenth, fifth or half of a view's rows, in the order of the predictions; ties stay together.

    Attributes
    ----------
    of, place : int
        The number of parts of the view (10, 5 or 2), and the index of this one: 0 has the lowest
        predictions.
    rows : int
        Number of rows.
    predicted : float
        Mean probability of the event.
    observed : float
        Observed rate.
    low, high : float
        Exact interval of the mean error, predicted less true rate; simultaneous, see :class:`Audit`.
    start, end : float
        The smallest and the largest prediction.
    """

    of: int
    place: int
    rows: int
    predicted: float
    observed: float
    low: float
    high: float
    start: float
    end: float

    lens = ""  # parts have no lens name: they are cut from a probability

    def is_tied(self, rows: int) -> bool:
        """Return whether ties make the part clearly larger or smaller than its name says."""
        return abs(self.of * self.rows - rows) > 0.2 * rows


@dataclass(frozen=True)
class Bin(Sized):
    """Rows of similar values of a feature, or of one value.

    Attributes
    ----------
    name : str
        Its values: "over 67", "31 to 45", "north".
    rows : int
        Number of rows.
    predicted : float
        Mean probability of the event.
    observed : float
        Observed rate.
    low, high : float
        Interval of the mean error, simultaneous with those of all slices that were searched.
    """

    name: str
    rows: int
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True)
class ByFeature:
    """Predicted and observed along one feature.

    Attributes
    ----------
    feature : str
        Name of the column.
    lens : str
        Which probability: see :class:`View`.
    bins : tuple of Bin
        In the order of their values, the rows without one last.
    """

    feature: str
    lens: str
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Cumulative:
    """The cumulative difference of a view; "ks" is its largest distance from 0.

    Attributes
    ----------
    share, prediction
        Share of the rows with the smallest predictions, and the largest prediction among them.
    difference
        Mean over all rows of the view of predicted less observed, of these rows.
    band
        What the largest distance from 0 must exceed for the check to be found, in the joint test.
    bands
        Of times the band at every level, wider where few rows are still followed; else None.
    """

    share: tuple[float, ...]
    prediction: tuple[float, ...]
    difference: tuple[float, ...]
    band: float
    bands: tuple[float, ...] | None = None

    @property
    def outside(self) -> dict[float, bool]:
        """Places where the difference leaves its band, with whether it is above."""
        bands = self.bands or (self.band,) * len(self.share)
        every = zip(self.share, self.difference, bands, strict=True)
        return {share: value > 0.0 for share, value, band in every if abs(value) > band}


@dataclass(frozen=True)
class PitHistogram:
    """Histogram of PIT values or ranks of outcomes, in bins of equal width from 0 to 1.

    Attributes
    ----------
    kind
        "pit", or "rank" among members and draws.
    share
        Of the rows, in every bin: about the same in all if the model is calibrated. A row whose place
        is a range, as of counts, is shared among the bins that this covers; of censored times the place
        is completed from the prediction.
    low, high
        Where a share lies if the model is calibrated, all of this histogram at once with probability
        1 - alpha (binomial, Bonferroni); None where rows count differently or depend on each other.
    """

    kind: Literal["pit", "rank"]
    share: tuple[float, ...]
    low: float | None
    high: float | None

    @property
    def outside(self) -> tuple[bool, ...]:
        """Whether each bin leaves the band."""
        if self.low is None or self.high is None:
            return (False,) * len(self.share)
        return tuple(not self.low <= each <= self.high for each in self.share)

    @property
    def above(self) -> tuple[int, ...]:
        """Indices of bins with more rows than the band allows."""
        most = math.inf if self.high is None else self.high
        return tuple(place for place, each in enumerate(self.share) if each > most)


@dataclass(frozen=True)
class Histogram:
    """Counts of a view's predictions, for the histogram under a reliability diagram.

    Attributes
    ----------
    edges, counts
        Edges of bins of equal width, one more than there are counts of rows.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Count:
    """Events of censored times until a horizon.

    Attributes
    ----------
    observed : float
        Number of events observed.
    expected : float or None
        Number expected, given how long rows were followed; None where risk is predicted at one time
        only.
    low, high : float or None
        Limits of their ratio, observed over expected: about right, and simultaneous with those of
        errors. None where nothing is expected, and on a side that does not matter.
    """

    observed: float
    expected: float | None
    low: float | None
    high: float | None

    @property
    def proved(self) -> float:
        """Proved factor by which there were too many or too few events; 1 if neither is proved."""
        low, high = self.low or 0.0, self.high or float("inf")
        return max(low, 1.0 / high, 1.0)


@dataclass(frozen=True)
class Curves:
    """Curves of all rows in an audit of censored times, from 0 to the last time.

    Attributes
    ----------
    censored : float
        Share of the rows that are censored.
    times : tuple of float
        Times (T,), in the units of the outcomes.
    predicted : tuple of float
        Mean predicted chance of the event until then.
    observed : tuple of floats, with None
        Kaplan and Meier's estimate within strata of similar predicted risk, averaged; None where no row
        is left.
    kaplan_meier : tuple of floats, with None
        The same estimate for all rows at once: biased if predictors also predict censoring.
    events, expected : tuple of float
        Number of events observed until then, and number expected given how long rows were followed.
    cause : str or None
        With competing events, the event of the curves: the one with the strongest check. The observed
        curve is then Aalen and Johansen's estimate. Else None.
    """

    censored: float
    times: tuple[float, ...]
    predicted: tuple[float, ...]
    observed: tuple[float | None, ...]
    kaplan_meier: tuple[float | None, ...]
    events: tuple[float, ...]
    expected: tuple[float, ...]
    cause: str | None = None


@dataclass(frozen=True)
class Horizon:
    """The horizon and the event of a predicted risk.

    Attributes
    ----------
    time, unit
        The time and its unit; None if not given.
    event
        Name of the event; None if not named.
    seen
        Whether it is the probability that the event is seen: some rows are known to be followed for
        less.
    """

    time: str
    unit: str | None
    event: str | None
    seen: bool = False

    @property
    def when(self) -> str:
        """The time with its unit."""
        unit = self.unit or ""
        return f"{self.time} {unit.removesuffix('s') if self.time == '1' else unit}".rstrip()


@dataclass(frozen=True, kw_only=True)
class SizedRows(Sized):
    """Fields common to views and rests; see :class:`View`."""

    predicted: float | None = None
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    adjusted_pvalue: float = 1.0
    exact: bool = True
    could_miss: float | None = None
    inside: bool | None = None
    rows_needed: int | None = None
    unfollowed: float = 0.0
    own_low: float | None = None
    own_high: float | None = None
    clusters_needed: int | None = None


@dataclass(frozen=True)
class View(SizedRows):
    """The subject of a check: a lens, on all rows or on one group.

    Attributes
    ----------
    lens : str
        "canonical" for the full probability vector, or the lens's label ("top_label", "class:3").
    event : str or None
        The event whose probability is viewed, as a clause; None for more than one probability.
    group : Group or None
        The rows; None for all.
    rows : int
        Number of rows.
    predicted, observed : float or None
        Mean probability of the event, and observed rate; None without an event.
    low, high : float or None
        Interval of the error, predicted minus the mean true probability: simultaneous with those of all
        views and parts of the audit, at its confidence. None without an event.
    own_low, own_high : float or None
        Its own interval of the mean error, at confidence 1 − 2 alpha: it decides whether the error is
        within a limit. None without an event.
    direction : {"over", "under"} or None
        Direction of the mean error: "over" (too high) if the interval lies above 0, "under" (too low)
        if below; None if it contains 0.
    shape : {"over", "under"} or None
        Whether the model is overconfident ("over") or underconfident ("under") in this view: only if
        the check by "ecd" found an error and a simultaneous t interval of its mean excludes 0.
    at_least_over, at_least_under : float or None
        Some predictions are at least this much too high, or too low; all of these bounds are correct
        together, at the audit's confidence. 0 (nothing is proved) if no check of the view found an
        error, so that bounds and checks agree. None if no bound was computed.
    adjusted_pvalue : float
        The smallest adjusted p-value of its checks.
    class_index : int or None
        The column of the class that the event is about; None if it is about no single class.
    parts : tuple of Part
        Tenths and halves of all rows, fifths of a group; empty without an event.
    binned_error : tuple of three floats, or None
        Mean absolute error over these tenths or fifths with its simultaneous interval: low, estimate,
        high. None without an event.
    reliability : Reliability or None
        Curve that is drawn, if any.
    cumulative : Cumulative or None
        Cumulative differences that are drawn, if any.
    histogram : Histogram or None
        Counts that are drawn, if any.
    pit : PitHistogram or None
        PIT or rank histogram that is drawn, if any.
    isotonic : Isotonic or None
        Isotonic curve that is drawn, if any.
    exact : bool
        Whether both intervals hold for any number of rows; if not, one of them is a t interval, which
        is right for many clusters. Intervals of parts always hold.
    could_miss : float or None
        If one of them is a t interval: an effect on this share of clusters, ln(1/alpha) / G, occurs in
        none of them with probability alpha, and would go unseen. G is the effective number of clusters
        if all rows of a cluster share their outcomes. Else None.
    inside : bool or None
        Whether its own two one-sided tests at level alpha prove the mean error within the limit; None
        without a limit or an event.
    rows_needed : int or None
        If ``inside`` is False: rows of the view that would make it True with a probability of 80% if
        the view is calibrated. None if no number would.
    clusters_needed : int or None
        Clusters like these that hold as many rows; None without clusters.
    events : Count or None
        For censored times, events observed and expected; else None.
    impossible : int or None
        Number of its rows whose observed label had probability 0; None if the audit has none.
    horizon : Horizon or None
        For a risk of times until an event: its ``time``, ``unit`` and ``event``; else None.
    unfollowed : float
        For censored times: share of its rows for which no similar row was followed until the horizon.
        ``observed`` assumes that their hazards went on as before, or as predicted if only the risk at
        one time is predicted; limits assume neither.
    """

    lens: str
    event: str | None
    group: Group | None
    rows: int
    direction: Side | None = None
    shape: Side | None = None
    at_least_over: float | None = None
    at_least_under: float | None = None
    class_index: int | None = None
    parts: tuple[Part, ...] = field(default=(), repr=False)
    binned_error: tuple[float, float, float] | None = None
    reliability: Reliability | None = field(default=None, repr=False)
    cumulative: Cumulative | None = field(default=None, repr=False)
    histogram: Histogram | None = field(default=None, repr=False)
    pit: PitHistogram | None = field(default=None, repr=False)
    isotonic: Isotonic | None = field(default=None, repr=False)
    events: Count | Any = None
    horizon: Horizon | None = None
    impossible: int | None = None

    @property
    def key(self) -> tuple[str, Group | None]:
        """Lens and group: the identity of a view within its audit."""
        return self.lens, self.group

    @property
    def id(self) -> Any:
        """Identity of the error within its audit."""
        return self.key

    @property
    def conditions(self) -> frozenset[Condition]:
        """The conditions that its rows meet; none for all rows."""
        return frozenset(self.group.conditions if self.group else ())

    def holds(self, other: View) -> bool:
        """Return whether another view covers part of these rows, through the same lens."""
        return self.lens == other.lens and self.conditions < other.conditions


@dataclass(frozen=True)
class Slice(View):
    """A view that nobody named: rows that a search by features found to be wrong.

    Attributes
    ----------
    low, high : float or None
        Interval of its mean error: simultaneous with those of all views, of their parts, and of all
        slices that were searched, so that the ones found may be chosen freely.
    own_low, own_high : float or None
        As in :class:`View`; valid only for slices not chosen by their outcomes, so reports draw the
        other interval alone.
    inside : bool or None
        As in :class:`View`.
    rows_needed : int or None
        As in :class:`View`.
    adjusted_pvalue : float
        P-value of its mean error, adjusted for all checks of the audit and all slices searched.
    shown : bool
        Whether it is among the few that are shown; the others overlap these and add little.
    """

    shown: bool = True

    @property
    def rule(self) -> str:
        """The condition that defines its rows: "age over 67 and region = north"."""
        return "" if self.group is None else self.group.label


@dataclass(frozen=True)
class Rest(SizedRows):
    """The rows of a larger group outside a smaller one: is the error confined to the smaller one?

    Attributes
    ----------
    lens : str
        The lens of the views of the group and of its parent.
    group : Group
        The group.
    parent : Group or None
        The group with one condition less; None for all rows.
    rows : int
        Number of rows.
    predicted, observed, low, high : float
        As in :class:`View`.
    adjusted_pvalue : float
        P-value of its mean error ("citl"), adjusted for all checks of the audit.
    found : bool
        Whether that is at most alpha.
    exact, inside : bool
        As in :class:`View`.
    could_miss, unfollowed, own_low, own_high : float or None
        As in :class:`View`.
    rows_needed, clusters_needed : int or None
        As in :class:`View`.
    """

    lens: str
    group: Group
    parent: Group | None
    rows: int
    found: bool

    @property
    def id(self) -> Any:
        """Identity of the error within its audit."""
        return self.lens, self.group, self.parent


@dataclass(frozen=True)
class Sensitivity:
    """The smallest overall error that this audit would have detected, in either direction.

    Attributes
    ----------
    view : int
        Index of the view among the audit's views: its event, on its rows.
    error : float or None
        The smallest error, in units of probability, that the check of its mean would have found with
        probability ``power`` in either direction; None if there is none.
    power : float
        80%.
    """

    view: int
    error: float | None
    power: float


@dataclass(frozen=True)
class Check:
    """One hypothesis of an audit: that a view is calibrated, as judged by one statistic.

    Attributes
    ----------
    view : View
        The view that is checked.
    statistic, measures : str
        Registered name of the statistic, and what it measures.
    value : float
        The statistic for the observed labels.
    expected : tuple of two floats, or None
        Range of 95% of the draws; None with a tolerance.
    pvalue : float
        P-value of this hypothesis alone.
    pvalue_interval : tuple of two floats
        Its 95% Monte Carlo interval.
    adjusted : float
        The p-value adjusted for all hypotheses of the audit; at least the unadjusted one.
    found : bool
        Whether ``adjusted`` is at most alpha.
    order : str
        What a statistic of the order of rows found, as a sentence; "" for other statistics.
    """

    view: View
    statistic: str
    measures: str
    value: float
    expected: tuple[float, float] | None
    pvalue: float
    pvalue_interval: tuple[float, float]
    adjusted: float
    found: bool
    order: str = ""


@dataclass(frozen=True)
class Skipped:
    """A view that was not checked, and why.

    Attributes
    ----------
    what : str
        A group, a class, or how many of them, as text.
    rows : int or None
        Number of rows, if that is the reason.
    reason : str
        As a clause.
    inside : bool or None
        For views that a limit is about: whether the interval of each alone, which needs no check, shows
        its mean error to be within the limit. None without a limit, or where there is no such view.
    most : float or None
        How large the mean error of one of these is at most, by these limits; None where not known.
    """

    what: str
    rows: int | None
    reason: str
    inside: bool | None = None
    most: float | None = None
