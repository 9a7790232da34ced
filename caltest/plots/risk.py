"""How the risk of estimation functions depends on their options, and what they estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest.pictures.axes import Array
from caltest.pictures.marks import BAD, Mark
from caltest.plots import canvas
from caltest.plots.display import ResultDisplay

if TYPE_CHECKING:
    from caltest.estimation import FunctionRisk, SquaredErrorEstimate

_PANELS_IN_A_ROW = 4
_ROOM = 1.5  # curves are shown so many times as far up as the best options, fixed ones and h = 0 reach
_WIDE = 11.0  # inches: room for a legend of three columns
_DASHES: tuple[Any, ...] = ((0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)))
_ZERO: dict[str, Any] = {"color": canvas.BLACK, "linewidth": 1.2, "linestyle": (0, (5, 2))}
_MEAN = "mean ± standard error of the difference to function 1"
_NO_ERROR = 1e-8  # a range of squared errors that is rounding
_GAP = 0.13  # of the axis: room for a number


@arguments(
    result=OneOf(
        "caltest.estimation:SquaredErrorEstimate",
        "give what caltest.estimate_squared_error returns",
    )
)
@dataclass(frozen=True, eq=False)
class RiskDisplay(ResultDisplay):
    """Plot how estimators of the squared error compare on held-out rows, and what they estimate.

    Make it with ``from_result``.

    There is one panel per tuned estimator (one for all if none is tuned), lowest risk first. It
    shows the root of the validation risk (mean over the folds), times 100, against the tuned
    option, with a diamond at the best value. The band is one standard error, over the folds, of
    the difference to the best estimator; variation that all folds share does not affect the
    choice. Estimators with fixed options are horizontal lines, and so is h = 0, which treats the
    model as calibrated. All panels have the same vertical scale, that of the risks from which one
    chooses: higher values are arrows at the top edge, and the highest is written out. The last
    panel shows the estimates of the squared error, with their roots above; bars show one standard
    error.

    Parameters
    ----------
    result
        What :func:`caltest.estimate_squared_error` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.estimate_squared_error(
    ...     digits.probs, digits.labels, "top_label", ["two_step_ridge"], pvalue="none", rng=0
    ... )
    >>> display = caltest.RiskDisplay.from_result(found)
    >>> [axes.get_xlabel() for axes in display.axes_]
    ['regularization', 'squared error; its root on top']
    >>> plt.close(display.figure_)
    """

    result: SquaredErrorEstimate
    _parts = ": one for every tuned function (one for all if none is tuned), and one for the estimates"

    def _key(self) -> str:
        return "dashed: h = 0, diamond: best" if self._tuned() else "dashed: h = 0"

    def _tuned(self) -> list[FunctionRisk]:
        return [each for each in self.result.functions if len(each.values) > 1]

    def _grid(self) -> dict[str, Any]:
        count = max(1, len(self._tuned()))
        rows = 1 if count <= _PANELS_IN_A_ROW else 2
        columns = -(-count // rows)
        mosaic = [[*row, count] for row in canvas.rows_of(count, columns)]
        lines = sum(_name(each).count("\n") + 1 for each in self.result.functions)
        size = 0.7 + 2.1 * columns + 4.3, max(2.9 * rows, 1.9 + 0.24 * lines) + 0.7
        return {"mosaic": mosaic, "figsize": size, "width_ratios": [2.1] * columns + [4.3]}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        *panels, last = axes
        result, tuned = self.result, self._tuned()
        low, high = _limits(result)
        zero = float(_roots(result, result.zero_risks[None, :])[0][0])
        columns = len(self._grid()["width_ratios"]) - 1
        for place, ax in enumerate(panels):
            if new and place:
                ax.sharey(panels[0])
                ax.tick_params(labelleft=place % columns == 0)
            ax.set_ylim(low, high)
            if tuned:
                _draw_curve(ax, result, tuned[place], high)
            ax.axhline(zero, **_ZERO, label="h = 0: calibrated")
            _draw_given(ax, result, as_points=not tuned)
            ax.ticklabel_format(axis="y", useOffset=False, scilimits=(-6, 6))
            canvas.tidy(ax, "y")
            title, weight = "options as given", "normal"
            if tuned:
                title = f"{_rank(result, tuned[place])}  {_name(tuned[place])}"
                weight = "bold" if tuned[place] is result.recommended else "normal"
            canvas.heading(ax, title, pad=16, weight=weight)
            if not new or place % columns == 0:
                ax.set_ylabel("√ mean validation risk × 100")
        _draw_estimates(last, result)
        found = [ax.get_legend_handles_labels() for ax in (panels[0], last)]
        handles, labels = ([*one, *two] for one, two in zip(*found, strict=True))
        if new:
            columns = 3 if last.figure.get_figwidth() > _WIDE else 2
            last.figure.legend(handles, labels, loc="outside lower left", ncols=columns, **canvas.SMALL)
        else:
            canvas.legend_below(panels[0], handles=handles, labels=labels)


def _name(function: FunctionRisk) -> str:
    """Return the label, options as given in a line of their own."""
    return canvas.lettering(function.label, 2 * canvas.CLAUSE).replace("(", "\n(", 1)


def _rank(result: SquaredErrorEstimate, function: FunctionRisk) -> int:
    return result.functions.index(function) + 1


def _roots(result: SquaredErrorEstimate, risks: Array) -> tuple[Array, Array]:
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

    def ends(*values: Any) -> tuple[float, float]:
        every = np.concatenate([np.ravel(each) for each in values])
        finite = every[np.isfinite(every)]
        return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)

    curves = [_roots(result, each.risks) for each in result.functions]
    chosen = [band[:, f.best] for f, (_, band) in zip(result.functions, curves, strict=True)]
    low, high = ends(*chosen, _roots(result, result.zero_risks[None, :])[0])
    low = min([low, *(ends(mean)[0] for mean, _ in curves)])
    span = max(high - low, 1e-3 * high, 1e-3)
    highest = ends(*(band[1] for _, band in curves))[1]
    high = min(max(high, highest), high + (_ROOM - 1.0) * span)
    low = min([low, *(ends(band[0][mean <= high])[0] for mean, band in curves if (mean <= high).any())])
    return low - 0.06 * span, high + 0.06 * span


def _draw_curve(ax: Any, result: SquaredErrorEstimate, function: FunctionRisk, top: float) -> None:
    """Draw the risk along the tuned option, and say what lies above the top."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

    (mean, ends), values = _roots(result, function.risks), function.values
    canvas.draw(ax, Mark("area", "error", values, *ends), alpha=0.22, linewidth=0, zorder=1)
    of_values = Mark("line", "line", values, mean, label=_MEAN)
    canvas.draw(ax, of_values, marker="o", markersize=3.0, linewidth=1.4, zorder=2)
    best = Mark("points", BAD, [function.value], [mean[function.best]], label="best value")
    canvas.draw(ax, best, markersize=7.0, zorder=4)
    above = ~(mean <= top)
    if above.any():
        arrows = Mark("points", "error", values[above], np.full(above.sum(), top))
        canvas.draw(ax, arrows, marker="^", markersize=5.0, zorder=5, clip_on=False)
        highest = mean[above].max() if np.isfinite(mean[above]).all() else np.inf
        where = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
        note = f"▲ above, up to {highest:,.3g}"
        ax.annotate(note, (0.0, 1.0), (0, 4), **where, fontsize="small", color=canvas.BLUE)
    ax.set_xlabel(canvas.lettering(function.tuned))
    if (values > 0.0).all():  # few ticks: powers of ten; of a short range, 1, 2, 5, 10, …
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        if values.max() < 100.0 * values.min():
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
            ax.xaxis.set_major_formatter("{x:g}")
        else:
            first, last = round(np.log10(values.min())), round(np.log10(values.max()))
            powers = np.arange(last, first - 1.0, (first - last) // 3)
            ax.xaxis.set_major_locator(FixedLocator((10.0**powers).tolist()))


def _draw_given(ax: Any, result: SquaredErrorEstimate, *, as_points: bool) -> None:
    """Draw functions whose options were given: as lines, or, if all are such, as points."""
    given = [each for each in result.functions if len(each.values) == 1]
    for place, each in enumerate(given):
        mean, ends = _roots(result, each.risks)
        if as_points:
            label = _MEAN if place == 0 else "_"
            ax.errorbar([place], mean, abs(ends - mean), fmt="D", color=canvas.VERMILION, label=label)
        else:
            look = {"linestyle": _DASHES[place % len(_DASHES)], "linewidth": 1.6, "color": canvas.FAINT}
            label = f"{_rank(result, each)}  {canvas.lettering(each.label, 2 * canvas.CLAUSE)}"
            ax.axhline(mean[0], label=label, **look)
    if as_points:
        ax.set_xticks(range(len(given)), [str(place) for place in range(1, len(given) + 1)])
        ax.set_xlabel("function")
        ax.set_xlim(-0.6, len(given) - 0.4)


def _draw_estimates(ax: Any, result: SquaredErrorEstimate) -> None:
    """Draw estimates with their standard errors, lowest risk on top, and their roots along the top."""
    from matplotlib.ticker import MaxNLocator

    functions, places = result.functions, np.arange(len(result.functions))
    values = np.array([each.estimate for each in functions])
    errors = np.array([each.standard_error for each in functions])
    ax.axvline(0.0, **_ZERO, zorder=1)
    bars = Mark("bars", "error", values - errors, places, values + errors, "standard error")
    canvas.draw(ax, bars, linewidth=6.0)
    canvas.draw(ax, Mark("points", "value", values, places), zorder=3)
    ax.set_yticks(places, [f"{place}  {_name(each)}" for place, each in enumerate(functions, 1)])
    ax.get_yticklabels()[0].set_weight("bold")
    ax.set_ylim(len(functions) - 0.5, -0.5)
    ax.margins(x=0.08)
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-2, 4), useMathText=True)
    ax.locator_params(axis="x", nbins=5)
    canvas.tidy(ax, "x")
    if np.ptp(ax.get_xlim()) < _NO_ERROR:
        ax.set_xlim(-_NO_ERROR, _NO_ERROR)
    ax.set_xlabel("squared error; its root on top", loc="left")
    lens = f"{canvas.lettering(result.lens)}, " if result.lens else ""
    canvas.heading(ax, f"estimates, {lens}{result.n_test:,} rows", pad=16)
    left, right = ax.get_xlim()
    if right <= 0.0:
        return
    roots = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0.0, float(np.sqrt(right)))
    shown: list[float] = []
    for square in (float(root) ** 2 for root in roots if root >= 0.0):
        if square <= right and (not shown or square - shown[-1] > _GAP * (right - left)):
            shown.append(square)
    top = ax.secondary_xaxis("top")
    top.set_xticks(shown, [f"{np.sqrt(square):.4g}" for square in shown])
    top.tick_params(labelsize="small", length=2, pad=1)
    top.spines["top"].set_visible(False)
