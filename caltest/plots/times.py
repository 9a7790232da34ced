"""Pictures of times until an event: curves, risk at a horizon, events less expected ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from caltest._arguments import arguments, axes, choose, level_of_confidence
from caltest._numbers import confidence_text
from caltest.auditing.times import curves_of
from caltest.bounds.intervals import product_bounds
from caltest.data import sample_of_law
from caltest.exceptions import InputError
from caltest.laws import Survival
from caltest.pictures import marks
from caltest.pictures.axes import LINEAR, Array
from caltest.pictures.marks import GRID, Mark, told_apart
from caltest.plots import canvas
from caltest.plots.canvas import draw, heading
from caltest.plots.display import Display
from caltest.statistics import ICI
from caltest.statistics.times import kaplan_meier, strata_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TimesKind: TypeAlias = Literal["curves", "horizon", "events"]

_BAND = 1.959964  # standard deviations


@dataclass(frozen=True, eq=False)
class SurvivalDisplay(Display):
    """Plot predicted times until an event against what was seen, censored or not.

    Make it with :meth:`from_predictions`, where the limits of rows are not known.

    Attributes
    ----------
    kind
        "curves", "horizon" or "events".
    x, values
        What is drawn, (K,): times with observed chances of the event, within strata of similar
        predicted risk, averaged; or mean predicted and observed risks of these strata at the horizon;
        or times with events less expected ones.
    low, high
        Of "horizon" the limits of every observed risk (Fay, Brittain and Proschan 2013); of "events"
        the band that calibrated predictions stay in at every single time, about; else as ``values``.
    more
        Of "curves" the mean predicted chances and Kaplan and Meier's of all rows; of "horizon" the
        points of a smooth curve, predicted and observed.
    n_samples
        Rows.

    Examples
    --------
    >>> import numpy as np, caltest, matplotlib.pyplot as plt
    >>> rng = np.random.default_rng(0)
    >>> rate, times = rng.uniform(0.5, 2.0, 500), np.linspace(0.1, 3.0, 30)
    >>> predicted = caltest.predictive.Survival(np.exp(-np.outer(rate, times)), times)
    >>> time, end = rng.exponential(1.0 / rate), rng.uniform(0.0, 4.0, 500)
    >>> outcomes = np.minimum(time, end), time <= end
    >>> show = caltest.SurvivalDisplay.from_predictions
    >>> display = show(predicted, outcomes, kind="horizon", horizon=1.0)
    >>> len(display.x), plt.close(display.figure_)
    (10, None)
    """

    kind: TimesKind
    x: Array = field(repr=False)
    values: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    more: tuple[Array, Array] = field(repr=False)
    horizon: float
    confidence: float
    n_samples: int

    @classmethod
    @arguments(ax=axes)
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
        predicted, outcomes
            A :class:`caltest.predictive.Survival` without known limits, and ``(time, event)``.
        kind
            "curves": chances of the event until every time. "horizon": predicted and observed risk at
            one time, in up to ten strata of equal expected events, and a smooth curve. "events": events
            seen until every time less those expected. Default "curves".
        horizon
            The time of "horizon". Default None: the last one.
        confidence
            Of the limits of each risk. Default 0.95.
        ax
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
        >>> display = caltest.SurvivalDisplay.from_predictions(predicted, outcomes, kind="events")
        >>> round(float(display.values[-1]), 1)
        -4.5
        >>> plt.close(display.figure_)
        """
        choose("kind", kind, dict.fromkeys(get_args(TimesKind)))
        alpha = level_of_confidence(confidence)
        whole = sample_of_law(predicted, outcomes)
        law: Any = None if whole is None else whole.rows.law
        if whole is None or not isinstance(law, Survival) or law.seen is None:
            raise InputError(
                "predicted holds no times whose limits are unknown; give a caltest.predictive.Survival "
                "without limit=."
            )
        at = float(law.marks(1)[0]) if horizon is None else float(horizon)
        drawn: tuple[Any, ...]
        common: Any = {"horizon": at, "confidence": confidence, "n_samples": law.n_samples}
        if kind == "horizon":
            time, event = law.until(law.seen)
            risk, found = law.risk(at), []
            for rows in strata_of(risk, risk):
                if (known := kaplan_meier(time[rows], event[rows], at)) is not None:
                    low, high = product_bounds(known, alpha / 2.0)
                    found.append((risk[rows].mean(), 1.0 - known.survival, 1.0 - high, 1.0 - low))
            if not found:
                raise InputError(
                    f"fewer than five events are expected until {at:g}, or no row is left."
                )
            smooth: Any = ICI(horizon=at).given(whole.rows)
            drawn = (*np.array(found).T, smooth.curve(time, event))
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
        return cls(kind, *drawn, **common).plot(ax)

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), n = axes, f"n = {self.n_samples:,}"
        if self.kind == "horizon":
            rest = np.concatenate([self.low, self.high, *self.more])
            canvas.reliability_axes(ax, LINEAR, self.x, rest, np.append(self.values, rest), few=False)
            draw(ax, Mark("line", "thin", *self.more, label="smooth, of the nearest 30% of rows"))
            bad = (self.x < self.low) | (self.x > self.high)
            draw(ax, Mark("intervals", "error", self.x, self.low, self.high))
            draw(ax, *told_apart(self.x, self.values, bad))
            ax.set(xlabel="predicted risk", ylabel="observed risk")
            sure = confidence_text(self.confidence)
            heading(ax, f"Risk until {self.horizon:g}, {n}", f"each interval {sure}, about")
        elif self.kind == "curves":
            names = "Kaplan–Meier of all rows", "observed, within strata of risk", "predicted"
            draw(ax, *marks.over_time(self.x, self.more[0], self.values, self.more[1], *names))
            ax.set(xlabel="time", ylabel="chance of the event until then", xlim=(0.0, self.x[-1]))
            heading(ax, f"Chance of the event, {n}")
        else:
            at, low, high = (np.append(0.0, each) for each in (self.x, self.low, self.high))
            of = "95% of calibrated predictions, at each time"
            draw(ax, Mark("area", "band", at, low, high, of), GRID)
            draw(ax, Mark("line", "zero", (0.0, self.x[-1]), (0.0, 0.0)))
            of = "above 0: more events than expected"
            draw(ax, Mark("line", "line", at, np.append(0.0, self.values), label=of))
            ax.set(xlabel="time", ylabel="events less expected", xlim=(0.0, self.x[-1]))
            heading(ax, f"Events less expected, {n}")
        canvas.legend_below(ax)
