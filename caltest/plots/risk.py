"""How the risk of estimation functions hangs on their options, and what they estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments, axes
from caltest.estimation import FunctionRisk, SquaredErrorEstimate
from caltest.exceptions import InputError
from caltest.plots.lettering import CLAUSE, lettering
from caltest.plots.risk_estimates import draw_estimates, name, tidy
from caltest.plots.style import BLACK, BLUE, FAINT, PALE, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS_IN_A_ROW = 4
_ROOM = 1.5  # curves are shown so many times as far up as the best options, fixed ones and h = 0 reach
_WIDE = 11.0  # inches: room for a legend of three columns
_DASHES: tuple[Any, ...] = ((0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)))


@arguments(
    result=OneOf(
        "caltest.estimation:SquaredErrorEstimate",
        "give what caltest.estimate_squared_error returns",
    )
)
@dataclass(frozen=True, eq=False)
class RiskDisplay:
    """Validation risk against the tuned options, and the estimates. Make it with `from_estimate`.

    Attributes
    ----------
    result
        What is shown.
    figure_, axes_
        The picture: the figure, and its axes, those of the estimates last; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.estimate_squared_error(
    ...     sure.probs, sure.labels, functions="binning", lens="top_label", rng=0
    ... )
    >>> display = caltest.RiskDisplay.from_estimate(found)
    >>> display.result is found, len(display.axes_)
    (True, 2)
    >>> plt.close(display.figure_)
    """

    result: SquaredErrorEstimate
    figure_: Figure | None = field(default=None, init=False, repr=False)
    axes_: tuple[Axes, ...] | None = field(default=None, init=False, repr=False)

    @classmethod
    @arguments(ax=axes)
    def from_estimate(
        cls, result: SquaredErrorEstimate, *, ax: Sequence[Axes] | None = None
    ) -> RiskDisplay:
        """Draw an estimation of squared calibration errors.

        Parameters
        ----------
        result
            Of :func:`caltest.estimate_squared_error`.
        ax
            Axes to draw in, one for every tuned function (one for all if none is tuned) and one for
            the estimates; their figure should have a layout that makes room for labels and legend,
            such as "constrained". Default: a new figure.

        Returns
        -------
        RiskDisplay
            Drawn. A panel for every tuned function, least risk first: the root of the validation
            risk (mean over the folds), times 100, against the tuned option; a diamond at the best
            value. The band is one standard error, over the folds, of the difference to the best
            function: what folds have in common says nothing of a choice. Functions with options as
            given, and h = 0, which calls the model calibrated, are horizontal lines. All panels have
            the same vertical scale, that of the risks from which one chooses: values above it are
            arrows at the top edge, and the highest is named. Last panel: the estimates of the squared
            error, and above them their roots; bars show one standard error.

        Raises
        ------
        InputError
            If there are too few or too many ``ax``.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
        >>> found = caltest.estimate_squared_error(
        ...     digits.probs, digits.labels, "top_label", ["two_step_ridge"], pvalue="none", rng=0
        ... )
        >>> display = caltest.RiskDisplay.from_estimate(found)
        >>> [axes.get_xlabel() for axes in display.axes_]
        ['regularization', 'squared error; its root on top']
        >>> plt.close(display.figure_)
        """
        return cls(result).plot(ax)

    @arguments(ax=axes)
    def plot(self, ax: Sequence[Axes] | None = None) -> RiskDisplay:
        """Draw risks and estimates.

        Parameters
        ----------
        ax
            As in :meth:`from_estimate`.

        Returns
        -------
        RiskDisplay
            Itself, with ``figure_`` and ``axes_`` set.
        """
        count = max(1, sum(_is_tuned(each) for each in self.result.functions)) + 1
        axes: list[Any] = (
            _new_axes(count - 1, self.result) if ax is None else list(np.ravel(np.array(ax)))
        )
        if len(axes) != count:
            raise InputError(
                f"there are {len(axes)} axes; give {count}: one for every tuned function (one for all "
                "if none is tuned), and one for the estimates."
            )
        *panels, last = axes
        _draw_risks(panels, self.result)
        draw_estimates(last, self.result)
        _draw_legend(panels[0], last, new=ax is None)
        object.__setattr__(self, "figure_", last.figure)
        object.__setattr__(self, "axes_", tuple(axes))
        return self


def _is_tuned(function: FunctionRisk) -> bool:
    return len(function.values) > 1


def _new_axes(n_panels: int, result: SquaredErrorEstimate) -> list[Any]:
    """Return axes for the risks, in one row or two of one vertical scale, and one for the estimates."""
    import matplotlib.pyplot as plt

    rows = 1 if n_panels <= _PANELS_IN_A_ROW else 2
    columns = -(-n_panels // rows)
    lines = sum(name(each).count("\n") + 1 for each in result.functions)
    height = max(2.9 * rows, 1.9 + 0.24 * lines) + 0.7
    figure = plt.figure(figsize=(0.7 + 2.1 * columns + 4.3, height), layout="constrained")
    grid = figure.add_gridspec(rows, columns + 1, width_ratios=[2.1] * columns + [4.3])
    found: list[Any] = []
    for number in range(n_panels):
        row, column = divmod(number, columns)
        found.append(figure.add_subplot(grid[row, column], sharey=found[0] if found else None))
        found[-1].tick_params(labelleft=column == 0)
    return [*found, figure.add_subplot(grid[:, columns])]


def _roots(
    result: SquaredErrorEstimate, risks: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return 100 times the root of the mean of risks (G, F), (G,), and the ends of a band, (2, G).

    Folds differ in their risk by much more than functions do, and in common: the band is one standard
    error of the difference to the best function, fold by fold, as :meth:`SquaredErrorEstimate.gap`. The
    root of the mean, and not the mean of the roots, is smallest where the value that is chosen is.
    """
    least = result.recommended.risks[result.recommended.best]
    with np.errstate(all="ignore"):  # a risk may be infinite
        means = risks.mean(axis=1)
        errors = (risks - least).std(axis=1, ddof=1) / np.sqrt(len(least))
        ends = [np.sqrt(np.maximum(means + sign * errors, 0.0)) for sign in (-1.0, 1.0)]
        return 100.0 * np.sqrt(means), 100.0 * np.stack(ends)


def _limits(result: SquaredErrorEstimate) -> tuple[float, float]:
    """Return the vertical range: what one chooses from, and some room above for the curves."""
    curves = [_roots(result, each.risks) for each in result.functions]
    chosen = [
        end[each.best] for each, (_, ends) in zip(result.functions, curves, strict=True) for end in ends
    ]
    low, high = _ends([*chosen, *_roots(result, result.zero_risks[None, :])[0]])
    low = min([low, *(_ends(mean)[0] for mean, _ in curves)])
    span = max(high - low, 1e-3 * high, 1e-3)
    highest = _ends(np.concatenate([ends[1] for _, ends in curves]))[1]
    high = min(max(high, highest), high + (_ROOM - 1.0) * span)
    return low - 0.06 * span, high + 0.06 * span


def _ends(values: Any) -> tuple[float, float]:
    finite = np.array(values)[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)


def _draw_risks(panels: list[Any], result: SquaredErrorEstimate) -> None:
    limits = _limits(result)
    tuned = [each for each in result.functions if _is_tuned(each)]
    for place, ax in enumerate(panels):
        ax.set_ylim(*limits)
        if tuned:
            _draw_curve(ax, result, tuned[place], limits[1])
        zero = float(_roots(result, result.zero_risks[None, :])[0][0])
        ax.axhline(zero, color=BLACK, linewidth=1.2, linestyle=(0, (5, 2)), label="h = 0: calibrated")
        _draw_given(ax, result, as_points=not tuned)
        ax.ticklabel_format(axis="y", useOffset=False, scilimits=(-6, 6))
        ax.grid(axis="y", color=PALE, linewidth=0.6, zorder=0)
        tidy(ax)
        title = f"{_rank(result, tuned[place])}  {name(tuned[place])}" if tuned else "options as given"
        weight = "bold" if tuned and tuned[place] is result.recommended else "normal"
        ax.set_title(title, loc="left", size="medium", pad=16, weight=weight)
        if place == 0 or ax.yaxis.get_tick_params()["labelleft"]:
            ax.set_ylabel("√ mean validation risk × 100")


def _rank(result: SquaredErrorEstimate, function: FunctionRisk) -> int:
    return result.functions.index(function) + 1


def _draw_curve(ax: Any, result: SquaredErrorEstimate, function: FunctionRisk, top: float) -> None:
    """Draw the risk along the tuned option, and say what lies above the top."""
    mean, ends = _roots(result, function.risks)
    values = function.values
    ax.fill_between(values, *ends, color=BLUE, alpha=0.22, linewidth=0)
    label = "mean ± standard error of the difference to function 1"
    ax.plot(values, mean, "o-", color=BLUE, markersize=3.0, linewidth=1.4, label=label)
    ax.plot(
        *([function.value], [mean[function.best]], "D"),
        markersize=7.0,
        markerfacecolor="white",
        markeredgecolor=VERMILION,
        markeredgewidth=1.8,
        zorder=4,
        label="best value",
    )
    above = ~(mean <= top)
    if above.any():
        arrows = {"color": BLUE, "markersize": 5.0, "linestyle": "none", "clip_on": False}
        ax.plot(values[above], np.full(above.sum(), top), "^", zorder=5, **arrows)
        highest = mean[above].max() if np.isfinite(mean[above]).all() else np.inf
        note = f"▲ above, up to {highest:,.3g}"
        ax.annotate(
            *(note, (0.0, 1.0), (0, 4)),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom",
            fontsize="small",
            color=BLUE,
        )
    ax.set_xlabel(lettering(function.tuned))
    if (values > 0.0).all():
        _log_axis(ax, values)


def _log_axis(ax: Any, values: NDArray[np.float64]) -> None:
    """Make a logarithmic axis with few ticks: powers of ten; of a short range, 1, 2, 5, 10, …"""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    if values.max() < 100.0 * values.min():
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    else:
        first, last = round(np.log10(values.min())), round(np.log10(values.max()))
        powers = np.arange(last, first - 1.0, (first - last) // 3)
        ax.xaxis.set_major_locator(FixedLocator((10.0**powers).tolist()))


def _draw_given(ax: Any, result: SquaredErrorEstimate, *, as_points: bool) -> None:
    """Draw functions whose options were given: as lines, or, if all are such, as points."""
    given = [each for each in result.functions if not _is_tuned(each)]
    label = "mean ± standard error of the difference to function 1"
    for place, each in enumerate(given):
        mean, ends = _roots(result, each.risks)
        if as_points:
            ax.errorbar(
                [place],
                mean,
                abs(ends - mean),
                fmt="D",
                color=VERMILION,
                label=label if place == 0 else "_",
            )
            continue
        style = {"linestyle": _DASHES[place % len(_DASHES)], "linewidth": 1.6}
        ax.axhline(
            mean[0],
            color=FAINT,
            label=f"{_rank(result, each)}  {lettering(each.label, 2 * CLAUSE)}",
            **style,
        )
    if as_points:
        ax.set_xticks(range(len(given)), [str(place) for place in range(1, len(given) + 1)])
        ax.set_xlabel("function")
        ax.set_xlim(-0.6, len(given) - 0.4)


def _draw_legend(first: Any, last: Any, *, new: bool) -> None:
    found = [ax.get_legend_handles_labels() for ax in (first, last)]
    handles, labels = ([*one, *two] for one, two in zip(*found, strict=True))
    style = {"frameon": False, "fontsize": "small"}
    if new:
        columns = 3 if first.figure.get_figwidth() > _WIDE else 2
        first.figure.legend(handles, labels, loc="outside lower left", ncols=columns, **style)
    else:
        first.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.0, -0.25), **style)
