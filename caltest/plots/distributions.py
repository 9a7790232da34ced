"""Pictures of predicted distributions: PIT, ranks and coverage; and times until an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from caltest import pictures
from caltest._arguments import arguments, check_draws, choose, level_of_confidence
from caltest._numbers import confidence_text
from caltest.auditing.diagrams import bins_of_pit, pit_picture
from caltest.auditing.times import curves_of
from caltest.auditing.views import PitHistogram
from caltest.bounds.intervals import product_bounds
from caltest.data.rows import refuse_clusters, without_zeros
from caltest.data.sample import sample_of_law
from caltest.exceptions import InputError
from caltest.forms.predictive import LEVELS, STEPS, PitScores
from caltest.laws import Pool, Predictive, Quantiles, Survival
from caltest.lenses import Lens, show
from caltest.pictures import DIAGONAL, GRID, LINEAR, Array, Mark, Picture, cumulative, with_intervals
from caltest.plots.canvas import Display
from caltest.sampling import Rng, seed_of
from caltest.statistics import ICI, PitKolmogorovSmirnov
from caltest.statistics.times import kaplan_meier, observed_shares, strata_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PITKind: TypeAlias = Literal["difference", "histogram", "coverage"]

_COVERED = np.arange(2, 100, 2) / 100
_LOWER = np.round(STEPS * (1.0 - _COVERED) / 2.0).astype(int) - 1

#: By kind: title, axis labels, and the meaning of a path on one side of its line.
_WORDS: Mapping[str, tuple[str, str, str, str]] = {
    "difference": ("PIT difference", "level of the predicted quantile",
        "level − share of outcomes at or below it",
        "above 0: outcomes are too few at or below the quantile, which is too low"),
    "histogram": ("PIT histogram", "", "",
        "many at both ends: too narrow; many in the middle: too wide"),
    "coverage": ("Coverage", "stated probability of the central interval",
        "share of outcomes in it", "below the line: intervals are too narrow"),
}  # fmt: skip
_RANKS = {"PIT difference": "ECDF difference of ranks", "PIT histogram": "Rank histogram"}


@dataclass(frozen=True, eq=False)
class _Path(Display):
    """A path of values with a band or limits."""

    kind: Any
    x: Array = field(repr=False)
    values: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    confidence: float
    n_samples: int


@dataclass(frozen=True, eq=False)
class PITDisplay(_Path):
    """Plot where outcomes lie in their predicted distributions: the probability integral transform.

    Make it with :meth:`from_predictions`. If predictions are calibrated, everything that is drawn lies
    in the band with probability ``confidence``, for every number of rows and every distribution, counts
    included: no random number is added to the PIT (Czado, Gneiting and Held 2009).

    Attributes
    ----------
    kind : {"difference", "histogram", "coverage"}
        "difference", "histogram" or "coverage".
    x, values : array of shape (K,)
        What is drawn: levels, middles of bins, or stated probabilities of intervals, and what was
        observed there.
    low, high : array of shape (K,)
        The band.
    confidence : float
        Simultaneous confidence of the band.
    n_samples : int
        Rows.
    members : int or None
        L, where members of ensembles were predicted; None for other distributions.
    lens : str or None
        The name of the lens; None without one.
    completed : bool
        For "histogram" and "coverage", whether censored times are drawn from the prediction, so that
        errors look smaller. For times, "difference" is Kaplan and Meier's, as far as ten rows are
        followed, with a band that is about right (Hall and Wellner 1980).

    Examples
    --------
    >>> import numpy as np, caltest, matplotlib.pyplot as plt
    >>> rng = np.random.default_rng(0)
    >>> predicted = caltest.predictive.Normal(np.zeros(500), sd=1.0)
    >>> display = caltest.plots.PITDisplay.from_predictions(predicted, rng.normal(0.0, 1.5, 500), rng=0)
    >>> bool(display.outside.any())
    True
    >>> plt.close(display.figure_)
    """

    members: int | None = None
    lens: str | None = None
    completed: bool = False

    @classmethod
    @arguments()
    def from_predictions(
        cls,
        predicted: object,
        outcomes: object,
        *,
        kind: PITKind = "difference",
        lens: str | Lens | None = None,
        confidence: float = 0.95,
        weights: object = None,
        n_resamples: int = 999,
        rng: Rng = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Compute and draw the picture of predicted distributions and outcomes.

        Parameters
        ----------
        predicted : predictive distribution
            Distributions of numbers, such as :class:`caltest.predictive.Normal`.
        outcomes : array of shape (n,)
            Outcomes.
        kind : {"difference", "histogram", "coverage"}, default "difference"
            "difference": every level less the share of outcomes at or below the predicted quantile,
            whose largest value is the statistic "pit_ks". "histogram": in which tenth of the predicted
            distribution outcomes lie; for members, at which of the L + 1 ranks (of more than 25, in 10
            to 24 bins of as many ranks each; where there are none such, in tenths, of which a rank
            across an end counts in both). "coverage": the share of outcomes in central intervals.
            Default "difference", which shows most.
        lens : str or Lens, optional
            For members that are vectors: which number of each is shown, "entry:mu", "pair:mu,tau" or
            "ranks:average". Default None: outcomes are numbers.
        confidence : float, default 0.95
            Confidence of the band.
        weights : array of shape (n,), optional
            How much each row counts, as in :func:`caltest.test`. Default None: all alike.
        n_resamples : int, default 999
            Number of simulated sets of outcomes, for the band.
        rng : int, SeedSequence or Generator, optional
            As in :func:`caltest.test`.
        ax : matplotlib Axes, or sequence of them, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        PITDisplay
            Drawn.

        Raises
        ------
        InputError
            If the input is not a set of predicted distributions and outcomes, or there are too few
            simulated sets for the confidence.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> predicted = caltest.predictive.Normal([0.0, 1.0, 2.0], sd=1.0)
        >>> draw = caltest.plots.PITDisplay.from_predictions
        >>> display = draw(predicted, [0.1, 1.2, 1.5], kind="histogram", rng=0)
        >>> display.values.round(2).tolist()
        [0.0, 0.0, 0.0, 3.33, 0.0, 6.67, 0.0, 0.0, 0.0, 0.0]
        >>> plt.close(display.figure_)
        """
        choose("kind", kind, dict.fromkeys(get_args(PITKind)))
        alpha = level_of_confidence(confidence)
        check_draws("n_resamples", n_resamples, alpha)
        if (whole := sample_of_law(predicted, outcomes, weights=weights)) is None:
            do = "give distributions of numbers, or use caltest.ReliabilityDisplay"
            raise InputError(f"predicted holds probabilities of classes; {do}.")
        whole = without_zeros(whole)
        refuse_clusters(whole.rows.clusters, "the band of a picture")
        view = show(whole.rows, lens)
        if not isinstance(view.rows.law, Predictive):
            do = "give one such as 'entry:mu', or use caltest.ReliabilityDisplay"
            raise InputError(f"through the lens {view.label!r} there is an event; {do}.")
        form = PitKolmogorovSmirnov().given(view.rows)
        levels = x = form.law.levels if isinstance(form.law, Quantiles) else LEVELS
        if levels is not LEVELS and kind != "difference":
            do = "give 'difference'"
            raise InputError(f"kind is {kind!r}, and quantile forecasts state some levels only; {do}.")
        form = replace(form, distance=np.asarray)  # type: ignore[call-arg]
        pool = getattr(form.law, "law", form.law)
        expected, scale = np.zeros(len(x)), np.ones(len(x))
        if kind == "coverage":
            x = expected = _COVERED
            scale = np.sqrt(x * (1.0 - x))
        elif kind == "histogram":
            bins = bins_of_pit(pool)
            x, expected, scale = (np.arange(bins) + 0.5) / bins, np.ones(bins), np.ones(bins)
            scores, levels = PitScores(form.law, form.weights, bins), np.arange(1, bins) / bins

        def values(block: Array) -> Array:
            seen = view.outcomes(block)
            if kind == "histogram":
                below = levels + scores.sums(seen) / form.weights.sum()
                return bins * np.asarray(np.diff(below, prepend=0.0, append=1.0)).clip(min=0.0)
            shares = form.of_labels(seen)
            if kind == "difference":
                return -np.asarray(shares)
            shares = LEVELS + shares
            return np.asarray(shares[:, STEPS - 2 - _LOWER] - shares[:, _LOWER])

        of_times = kind == "difference" and isinstance(pool, Survival)
        sampler, largest = whole.rows.sampler(seed_of(rng)), []
        for start in range(0, n_resamples, sampler.block):
            drawn = values(sampler.draw(start, min(start + sampler.block, n_resamples)))
            largest.append((np.abs(drawn - expected) / scale).max(axis=1))
        reach = scale * pictures.critical(np.concatenate(largest), alpha)
        observed = values(whole.labels[None])[0]
        if of_times:
            x, shares, more = observed_shares(pool, whole.labels, whole.rows.weights)
            expected, reach, observed = expected[: len(x)], more * reach[: len(x)], x - shares
        band = expected - reach, expected + reach
        members = pool.size - 1 if isinstance(pool, Pool) else None
        n, label = whole.rows.n_samples, view.label
        filled = getattr(pool, "seen", None) is not None and not of_times
        return cls(kind, x, observed, *band, confidence, n, members, label, filled).plot(ax)

    @property
    def outside(self) -> Any:
        """Whether each value lies outside the band, (K,)."""
        return (self.values < self.low) | (self.values > self.high)

    _size = 6.2, 4.6

    def _pictures(self) -> list[tuple[Any, ...]]:
        name, along, up, above = _WORDS[self.kind]
        sure = f"{confidence_text(self.confidence)} of calibrated predictions stay inside"
        if self.members is not None and self.kind != "coverage":
            along = "rank of the outcome, from 0, below all members, to 1, above all"
            name = _RANKS[name]
            if self.kind == "difference":
                up = "rank − share of outcomes up to it"
                above = "above 0: too few outcomes up to this rank; members are too low"
        if self.lens is not None:
            name = f"{name}, {self.lens.removesuffix('/distribution')}"
            above = above if self.lens.startswith("entry") else ""
        if self.kind == "histogram":
            share, low, high = np.array([self.values, self.low, self.high]) / len(self.x)
            of_kind: Any = "pit" if self.members is None else "rank"
            picture = pit_picture(PitHistogram(of_kind, tuple(share), low[0], high[0]), "outcomes")
        elif self.kind == "coverage":
            axis = pictures.axis_of_probabilities([0.0, 1.0])
            band = Mark("area", "band", self.x, self.low, self.high, sure)
            path = Mark("line", "line", self.x, self.values, label=above)
            picture = Picture([band, GRID, DIAGONAL, path], axis, axis, along, up)
        else:
            picture = cumulative(self.x, self.values, self.high, sure, above)
            picture = picture._replace(of_x=along, of_y=f"{up}, points")
        out = "outside its band" if self.outside.any() else "inside its band"
        note = above if self.kind == "histogram" else ""
        drawn = "censored times are drawn from the prediction: errors look smaller" * self.completed
        return [(picture, f"{name}: {out}, n = {self.n_samples:,}", *filter(None, (note, drawn)))]


# ------------------------------------------------------------------ times

TimesKind: TypeAlias = Literal["curves", "horizon", "events"]

_BAND = 1.959964  # standard deviations


@dataclass(frozen=True, eq=False)
class SurvivalDisplay(_Path):
    """Plot predicted times until an event against observed ones, censored or not.

    Make it with :meth:`from_predictions`, where the end of follow-up is not known.

    Attributes
    ----------
    kind : {"curves", "horizon", "events"}
        "curves", "horizon" or "events".
    x, values : array of shape (K,)
        What is drawn: times with observed chances of the event, within strata of similar predicted
        risk, averaged; or mean predicted and observed risks of these strata at the horizon; or times
        with events less expected ones.
    low, high : array of shape (K,)
        For "horizon", simultaneous limits of observed risks (Fay, Brittain and Proschan 2013); for
        "events", a band that calibrated predictions stay in at any single time, about; otherwise as
        ``values``.
    more : tuple of two arrays
        For "curves", the mean predicted chances and Kaplan and Meier's estimate for all rows; for
        "horizon", the points of a smooth curve, predicted and observed.
    n_samples : int
        Rows.

    Examples
    --------
    >>> import numpy as np, caltest, matplotlib.pyplot as plt
    >>> rng = np.random.default_rng(0)
    >>> rate, times = rng.uniform(0.5, 2.0, 500), np.linspace(0.1, 3.0, 30)
    >>> predicted = caltest.predictive.Survival(np.exp(-np.outer(rate, times)), times)
    >>> time, end = rng.exponential(1.0 / rate), rng.uniform(0.0, 4.0, 500)
    >>> outcomes = np.minimum(time, end), time <= end
    >>> show = caltest.plots.SurvivalDisplay.from_predictions
    >>> display = show(predicted, outcomes, kind="horizon", horizon=1.0)
    >>> len(display.x), plt.close(display.figure_)
    (10, None)
    """

    more: tuple[Array, Array] = field(repr=False)
    horizon: float

    @classmethod
    @arguments()
    def from_predictions(
        cls,
        predicted: object,
        outcomes: object,
        *,
        kind: TimesKind = "curves",
        horizon: float | None = None,
        confidence: float = 0.95,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Compute and draw the picture of predicted times and outcomes.

        Parameters
        ----------
        predicted : Survival
            Predicted curves, without ``follow_up``.
        outcomes : (time, event)
            Times, and whether the event came then: two arrays of shape (n,).
        kind : {"curves", "horizon", "events"}, default "curves"
            "curves": chances of the event until every time. "horizon": predicted and observed risk at
            one time, in up to ten strata of equal expected events, and a smooth curve. "events": events
            seen until every time less those expected.
        horizon : float, optional
            The time of "horizon". Default None: the last one.
        confidence : float, default 0.95
            Confidence of the limits of all risks together.
        ax : matplotlib Axes, or sequence of them, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        SurvivalDisplay
            Drawn.

        Raises
        ------
        InputError
            If no times are predicted, or too few events are expected.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> predicted = caltest.predictive.Survival([[0.8, 0.4]] * 40, [1.0, 2.0])
        >>> outcomes = [0.5, 1.5, 2.0, 2.0] * 10, [1, 1, 0, 0] * 10
        >>> display = caltest.plots.SurvivalDisplay.from_predictions(predicted, outcomes, kind="events")
        >>> round(float(display.values[-1]), 1)
        -4.5
        >>> plt.close(display.figure_)
        """
        choose("kind", kind, dict.fromkeys(get_args(TimesKind)))
        alpha = level_of_confidence(confidence)
        whole = sample_of_law(predicted, outcomes)
        law: Any = None if whole is None else whole.rows.law
        if whole is None or not isinstance(law, Survival) or law.seen is None:
            do = "give a caltest.predictive.Survival without follow_up="
            raise InputError(f"predicted holds no times whose follow-up is unknown; {do}.")
        at = float(law.marks(1)[0][-1]) if horizon is None else float(horizon)
        drawn: tuple[Any, ...]
        if kind == "horizon":
            time, event = law.until(law.seen)
            risk, found = law.risk(at), []
            strata = strata_of(risk, risk)
            for rows in strata:
                if (known := kaplan_meier(time[rows], event[rows], at)) is not None:
                    low, high = product_bounds(known, alpha / (2.0 * len(strata)))
                    found.append((risk[rows].mean(), 1.0 - known.survival, 1.0 - high, 1.0 - low))
            if not found:
                few = f"fewer than five events are expected until {at:g}"
                raise InputError(f"{few}, or no row is left.")
            drawn = (*np.array(found).T, ICI(horizon=at).given(whole.rows).curve(time, event))
        else:
            c = curves_of(whole)
            times, expected = np.array(c.times, float), np.array(c.expected)
            reach = _BAND * np.sqrt(expected)
            drawn = times, np.array(c.events) - expected, -reach, reach, (times, times)
            if kind == "curves":
                observed = np.array(c.observed, float)
                if np.isnan(observed).all():
                    raise InputError("fewer than five events are expected; draw kind='events'.")
                others = np.array(c.predicted, float), np.array(c.kaplan_meier, float)
                drawn = times, observed, observed, observed, others
        *path, more = drawn
        about: Any = {"confidence": confidence, "n_samples": law.n_samples, "more": more, "horizon": at}
        return cls(kind, *path, **about).plot(ax)

    def _pictures(self) -> list[tuple[Any, ...]]:
        n = f"n = {self.n_samples:,}"
        if self.kind == "horizon":
            rest = np.concatenate([self.low, self.high, *self.more])
            axes_of = pictures.zoomed(LINEAR, self.x, rest, np.append(self.values, rest))
            bad = (self.x < self.low) | (self.x > self.high)
            named = "predicted risk inside the interval", "predicted risk outside the interval"
            smooth = Mark("line", "thin", *self.more, label="smooth, of the nearest 30% of rows")
            seen = with_intervals(self.x, self.values, self.low, self.high, bad, named)
            of = "predicted risk", "observed risk"
            picture = Picture([GRID, DIAGONAL, smooth, *seen], *axes_of, *of)
            sure = f"intervals: all correct together, {confidence_text(self.confidence)}, about"
            return [(picture, f"Risk until {self.horizon:g}, {n}", sure)]
        if self.kind == "curves":
            names = "observed, within strata of risk", "Kaplan–Meier of all rows", "predicted"
            curves = self.values, *reversed(self.more)
            return [(pictures.over_time(self.x, *curves, labels=names), f"Chance of the event, {n}")]
        at, values, reach = (np.append(0.0, each) for each in (self.x, self.values, self.high))
        named = "95% of calibrated predictions, at each time", "above 0: more events than expected"
        low, high = 1.1 * min(values.min(), -reach.max()), 1.1 * max(values.max(), reach.max())
        x, y = pictures.axis_between(0.0, at[-1]), pictures.axis_between(low, high, most=7)
        marks = cumulative(at, values, reach, *named).marks
        picture = Picture(marks, x, y, "time", "events less expected")
        return [(picture, f"Events less expected, {n}")]
