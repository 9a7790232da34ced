"""Reliability diagrams with exact consistency bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from caltest._arguments import arguments, axes, check_draws, choose, level_of_confidence
from caltest._parallel import Workers
from caltest._sampling import Rng, seed_of
from caltest._visible import quoted
from caltest.binning import Binning, EqualWidth
from caltest.data import Rows, sample
from caltest.exceptions import InputError
from caltest.lenses import ClassWise, Lens, TopLabel, find_lens
from caltest.plots.drawing import add_legend, add_legend_inside, draw_panel, grid_of_axes
from caltest.plots.panel import Panel, PanelPlan
from caltest.plots.style import is_narrow
from caltest.text.numbers import confidence_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve: TypeAlias = Literal["binned", "corp"]

_CURVES = dict.fromkeys(("binned", "corp"), True)
_MOST_PANELS = 20


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay:
    """Reliability diagram with exact consistency bands. Make it with :meth:`from_predictions`.

    The bands show where the curve lies if the model is calibrated: labels are drawn from the
    predictions, the predictions held fixed. The darker band is for looking at one point chosen
    beforehand, the lighter one for looking at all points of all panels: if the model is calibrated,
    any point leaves it with probability at most 1 − ``confidence``, in every finite sample.

    Attributes
    ----------
    panels
        What was computed, one :class:`Panel` for each probability shown.
    curve
        "binned" or "corp".
    confidence
        Of the bands.
    figure_, axes_
        The picture: the figure, and the panels' main axes; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> display = caltest.ReliabilityDisplay.from_predictions(sure.probs, sure.labels, rng=0)
    >>> display.curve, [int(panel.outside.sum()) for panel in display.panels]
    ('binned', [3])
    >>> plt.close(display.figure_)
    """

    panels: tuple[Panel, ...]
    curve: Curve
    confidence: float
    figure_: Figure | None = field(default=None, init=False, repr=False)
    axes_: tuple[Axes, ...] | None = field(default=None, init=False, repr=False)

    @classmethod
    @arguments(ax=axes)
    def from_predictions(
        cls,
        probs: object,
        labels: object,
        *,
        lens: str | Lens | None = None,
        classes: Sequence[int | str] | None = None,
        binning: Binning | None = None,
        curve: Curve = "binned",
        confidence: float = 0.95,
        n_resamples: int = 999,
        rng: Rng = None,
        n_jobs: int | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> ReliabilityDisplay:
        """Compute and draw the reliability diagram of predictions and labels.

        Parameters
        ----------
        probs, labels
            As in :func:`caltest.test`.
        lens
            Which probability is shown: "top_label", "class:3", "top:5" or another lens that leaves
            two classes; "classwise" draws a panel for each class. Default: class 1 of two classes,
            the top label of more.
        classes
            Columns or names of the classes that "classwise" shows, at most 20. Default: all.
        binning
            Bins of the binned curve. Default ``EqualWidth(15)``, that of the ECE.
        curve
            "binned" (default): the share of events in every bin at its mean prediction. "corp":
            the isotonic regression of the labels on the predictions, which needs no bins.
        confidence
            Of the bands. Default 0.95. With several panels, the simultaneous band holds for all
            together: each panel's leaves out a share (1 − confidence) / panels.
        n_resamples
            Label draws: for the p-value, and for the bands of the isotonic curve. The bands of the
            binned curve are computed without drawing. Default 999.
        rng, n_jobs
            As in :func:`caltest.test`.
        ax
            Axes to draw in; a sequence of them for several panels. The counts are drawn beneath
            them. Default: a new figure.

        Returns
        -------
        ReliabilityDisplay
            Drawn. Each panel names the statistic that measures its curve's distance from the
            diagonal, with its exact p-value: the ECE in the same bins, or the miscalibration part
            of the Brier score (MCB). A panel's p-value is its own, not adjusted for other panels.

        Raises
        ------
        InputError
            If the input is no set of predictions and labels, the lens leaves more than two
            classes, there are too many panels, or too few draws for the bands.

        Notes
        -----
        Binned: the count of a bin is a Poisson binomial, and bins are independent, so both bands
        are exact without a draw. Isotonic: order statistics of drawn curves, and the hull of those
        least extreme (:mod:`caltest.plots.bands`).

        References
        ----------
        Bröcker and Smith, "Increasing the reliability of reliability diagrams", Weather and
        Forecasting 22 (2007), for consistency bars; Dimitriadis, Gneiting and Jordan, "Stable
        reliability diagrams for probabilistic classifiers", PNAS 118 (2021), for CORP.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from caltest.datasets import load_digits_predictions
        >>> from caltest.plots import ReliabilityDisplay
        >>> digits = load_digits_predictions("random_forest")
        >>> display = ReliabilityDisplay.from_predictions(digits.probs, digits.labels, rng=0)
        >>> (panel,) = display.panels
        >>> panel.title, panel.result.pvalue, int(panel.outside.sum()), len(panel.outside)
        ('Top class', 0.001, 10, 13)
        >>> plt.close(display.figure_)
        """
        choose("curve", curve, _CURVES)
        check_draws("n_resamples", n_resamples, level_of_confidence(confidence))
        checked = sample(probs, labels)
        lenses = _lenses(lens, classes, checked.rows)
        alpha = level_of_confidence(confidence)
        plan = PanelPlan(
            binning=_binning(binning, curve),
            alpha=alpha,
            joint=alpha / len(lenses),
            n_resamples=n_resamples,
            seed=seed_of(rng),
            workers=Workers(n_jobs),
        )
        display = cls(tuple(plan.panel(checked, each) for each in lenses), curve, confidence)
        return display.plot(ax)

    @arguments(ax=axes)
    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> ReliabilityDisplay:
        """Draw the panels.

        Parameters
        ----------
        ax
            As in :meth:`from_predictions`.

        Returns
        -------
        ReliabilityDisplay
            Itself, with ``figure_`` and ``axes_`` set.
        """
        if not self.panels:
            raise InputError("there are no panels; make the display with from_predictions.")
        single, given = len(self.panels) == 1, ax is not None
        axes = np.ravel(np.asarray(ax, dtype=object)) if given else grid_of_axes(len(self.panels))
        if len(axes) != len(self.panels):
            raise InputError(
                f"panels: {len(self.panels)}, axes: {len(axes)}; give axes for each panel."
            )
        narrow = given and is_narrow(axes[0])  # before the counts take a part of them
        for each, panel in zip(axes, self.panels, strict=True):
            draw_panel(each, panel, small=narrow or not single, labelled=single or given)
        figure: Any = axes[0].figure
        percent = confidence_text(self.confidence)
        if given:
            add_legend_inside(axes[0], self.panels, percent, short=narrow)
        else:
            add_legend(figure, self.panels, percent)
        if not (single or given):
            figure.supxlabel("predicted probability of the class", size="medium")
            figure.supylabel("share in the class", size="medium")
        object.__setattr__(self, "figure_", figure)
        object.__setattr__(self, "axes_", tuple(axes))
        return self


def _lenses(
    lens: str | Lens | None, classes: Sequence[int | str] | None, predictions: Rows
) -> list[Lens | None]:
    """Return the lens of every panel."""
    if not isinstance(lens, str) or lens != "classwise":
        if classes is not None:
            raise InputError("classes chooses the panels of lens='classwise'; give both, or neither.")
        found = find_lens(lens)
        return [TopLabel() if found is None and predictions.n_classes > 2 else found]
    chosen = range(predictions.n_classes) if classes is None else classes
    if isinstance(chosen, str) or not isinstance(chosen, Sequence | np.ndarray):
        raise InputError(f"classes is {quoted(classes)}; give columns or names, as in [0, 1, 2].")
    if not 1 <= len(chosen) <= _MOST_PANELS:
        raise InputError(
            f"that makes {len(chosen)} panels, and a figure holds 1 to {_MOST_PANELS}; choose classes, "
            "as in classes=[0, 1, 2], or look at all at once with lens='top_label'."
        )
    return [ClassWise(which) for which in chosen]


def _binning(binning: Binning | None, curve: Curve) -> Binning | None:
    if curve == "corp":
        if binning is not None:
            raise InputError("the isotonic curve has no bins; leave binning out, or curve='corp'.")
        return None
    return EqualWidth(15) if binning is None else binning
