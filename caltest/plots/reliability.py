"""Reliability diagrams with exact consistency bands, for one or several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from caltest import pictures
from caltest._arguments import anything, arguments, check_draws, choose, level_of_confidence
from caltest._numbers import confidence_text
from caltest._parallel import Workers
from caltest.binning import Binning, ConsistencyBand, EqualMass, intervals
from caltest.data.sample import predicted_by
from caltest.exceptions import InputError
from caltest.lenses import Lens
from caltest.pictures import DIAGONAL, GRID, LINEAR, Array, Axis, Mark, Picture, Scale, told_apart
from caltest.plots import canvas
from caltest.plots.canvas import Display, lettering
from caltest.plots.panel import Panel, panel_of, views_of
from caltest.sampling import Rng, seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve: TypeAlias = Literal["binned", "corp"]

_BINS, _ROWS_OF_A_BIN, _FEWEST_BINS = 15, 20, 5  # of equal counts, by default
_BINS_OF_MODELS = 10  # if several models share a diagram
_BARS, _BARS_OF_ROWS = 48, 4.0  # at most, and factor for the cube root of the rows
_TAIL = 0.005  # share of predictions on either side that may fall outside the axes


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay(Display):
    """Plot a reliability diagram with exact bands: observed rates against predicted probabilities.

    Make it with :meth:`from_predictions`.

    The bands show where the points of a calibrated model would lie; they are computed for labels
    drawn from the predictions, with the predictions held fixed. The dark band is for a single
    point chosen beforehand. The light band is for all points of all panels: if the model is
    calibrated, any point at all falls outside it with probability at most 1 − ``confidence``, for
    every number of rows. The title gives the number of points outside, and a p-value for the whole
    curve's distance from the diagonal. These are two tests, each at its own level, and one may
    find an error that the other misses.

    If all predictions are below 0.1 (or above 0.9), the axes are zoomed, and logarithmic if
    predictions differ by more than a factor of ten; axis labels say so. The bars at the foot count
    predictions in intervals of equal width along the axis.

    Attributes
    ----------
    panels : tuple of Panel
        What was computed: one :class:`Panel` for each probability shown.
    names : tuple of str
        Names of the models, if several share one diagram; each panel is then one model.
    curve : {"binned", "corp"}
        "binned" or "corp".
    confidence : float
        Confidence of the bands.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> display = caltest.ReliabilityDisplay.from_predictions(sure.probs, sure.labels, rng=0)
    >>> display.curve, [int(panel.outside.sum()) for panel in display.panels]
    ('binned', [5])
    >>> plt.close(display.figure_)
    """

    panels: tuple[Panel, ...]
    curve: Curve
    confidence: float
    names: tuple[str, ...] = ()
    _parts = ": one for each panel"

    @classmethod
    @arguments()
    def from_predictions(
        cls,
        probs: object,
        labels: object,
        *,
        lens: str | Lens | None = None,
        class_names: Sequence[str | int] | None = None,
        classes: Sequence[int | str] | None = None,
        binning: Binning | None = None,
        curve: Curve = "binned",
        confidence: float = 0.95,
        weights: object = None,
        sampling_rates: Mapping[Any, float] | None = None,
        n_resamples: int = 999,
        rng: Rng = None,
        n_jobs: int | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Compute and draw the reliability diagram of predictions and labels.

        Parameters
        ----------
        probs : array of shape (n,) or (n, m), data frame, or dict of these
            As in :func:`caltest.test`. To compare two to four models on the same rows, give their
            predictions by name, as in ``{"before": probs, "after": calibrated}``. They are drawn
            in one diagram, and the simultaneous bands hold for all of them together.
        labels : array of shape (n,)
            As in :func:`caltest.test`.
        lens : str or Lens, optional
            Which probability is shown: "top_label", "class:3", "top:5" or another lens that leaves
            two classes; "classwise" draws a panel for each class. Default: class 1 of two classes,
            the top label of more.
        class_names : sequence of str or int, optional
            Names of the classes, in the order of the columns, as in :func:`caltest.test`.
        classes : sequence of int or str, optional
            Columns or names of the classes to show with "classwise", at most 20. Default: all.
        binning : Binning, optional
            Bins of the binned curve. Default ``EqualMass(15)``, or ``EqualMass(10)`` for several
            models, with fewer bins (at least 5) if they would hold fewer than 20 rows each. Bins
            of equal mass are the default because, for a rare event, nearly all rows would share
            one bin of equal width.
        curve : {"binned", "corp"}, default "binned"
            "binned" (default): the observed rate in every bin against the mean prediction. "corp":
            the isotonic regression of the labels on the predictions, which needs no bins.
        confidence : float, default 0.95
            Confidence of the bands. With several panels the simultaneous band holds for all of them
            together, at level (1 − confidence) / panels each.
        weights : array of shape (n,), optional
            How much each row counts, as in :func:`caltest.test`. Rates, means and bins of equal
            mass are weighted; bars at the foot count rows. Default None: all rows have equal weight.
        sampling_rates : dict of class to float, optional
            If rows were sampled by their label: for each class, the share of its rows that was
            kept, as in :func:`caltest.test`. Predictions are transformed to what they mean among
            the rows kept, and the axes say so. Default None: rows were not sampled by label.
        n_resamples : int, default 999
            Number of simulated label sets, for the p-value and for the bands of the isotonic curve. The
            bands of the binned curve are computed without simulation unless rows have weights.
        rng : int, SeedSequence or Generator, optional
            As in :func:`caltest.test`.
        n_jobs : int, optional
            As in :func:`caltest.test`.
        ax : matplotlib Axes, or sequence of them, optional
            Axes to draw in, or a sequence of them for several panels. Default: a new figure.

        Returns
        -------
        ReliabilityDisplay
            Drawn. Each panel names the statistic that measures its curve's distance from the
            diagonal, with its exact p-value: the ECE in the same bins, or the miscalibration part
            of the Brier score (MCB). A panel's p-value is its own, not adjusted for other panels.

        Raises
        ------
        InputError
            If the input is not a set of predictions and labels, the lens leaves more than two
            classes, there are too many panels, or too few simulated label sets for the bands.

        Notes
        -----
        Binned curve: the count of events in a bin is Poisson binomial, and bins are independent,
        so both bands are exact without simulation. Isotonic curve: the bands are order statistics
        of simulated curves, and the hull of the least extreme ones.

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
        ('Top class', 0.001, 13, 15)
        >>> plt.close(display.figure_)
        """
        choose("curve", curve, dict.fromkeys(get_args(Curve)))
        alpha = level_of_confidence(confidence)
        check_draws("n_resamples", n_resamples, alpha)
        counting = {"weights": weights, "sampling_rates": sampling_rates, "class_names": class_names}
        views = views_of(probs, labels, lens, classes, counting)
        names = tuple(str(name) for name in probs) if isinstance(probs, Mapping) else ()
        if curve == "corp" and binning is not None:
            raise InputError("the isotonic curve has no bins; leave binning out, or curve='corp'.")
        if curve == "binned" and binning is None:
            fitting = views[0][0].rows.n_samples // _ROWS_OF_A_BIN
            binning = EqualMass(max(_FEWEST_BINS, min(_BINS_OF_MODELS if names else _BINS, fitting)))
        levels, draws = (alpha, alpha / len(views)), (n_resamples, seed_of(rng), Workers(n_jobs))
        kept = sampling_rates is not None
        panels = [panel_of(whole, seen, binning, levels, draws, kept=kept) for whole, seen in views]
        return cls(tuple(panels), curve, confidence, names).plot(ax)

    @classmethod
    @arguments(model=anything)
    def from_estimator(cls, model: Any, X: object, y: object, **options: Any) -> Self:
        """Compute and draw the picture of a fitted classifier, on rows held out.

        Parameters
        ----------
        model : fitted classifier, or dict of them
            Fitted, with ``predict_proba`` and, as in scikit-learn, ``classes_``: a pipeline, a search
            or a calibrated classifier too, and those of XGBoost and LightGBM. Several by name, as in
            ``{"before": model, "after": calibrated}``, where ``from_predictions`` takes several.
        X : array of shape (n, d), or data frame
            The rows, as the model takes them.
        y : array of shape (n,)
            Their labels: values of ``classes_``, to which they are matched. For a model without
            ``classes_``, columns counted from 0.
        **options : any
            As in ``from_predictions``.

        Returns
        -------
        Display
            Drawn.

        Raises
        ------
        InputError
            If the model is not fitted or gives no probabilities, a label is none of its classes, or as
            ``from_predictions``.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> iris = load_iris()
        >>> X, y = iris.data, iris.target_names[iris.target]
        >>> model = GaussianNB().fit(X[::2], y[::2])
        >>> display = caltest.ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], rng=0)
        >>> display.panels[0].result.n_samples
        75
        >>> plt.close(display.figure_)
        """
        if not isinstance(model, Mapping):
            return cls.from_predictions(*predicted_by(model, X, y), **options)
        found = {name: predicted_by(each, X, y) for name, each in model.items()}
        labels = next((labels for _, labels in found.values()), y)
        probs = {name: probs for name, (probs, _) in found.items()}
        return cls.from_predictions(probs, labels, **options)

    def _grid(self) -> dict[str, Any]:
        """Return a grid of one panel, or of three to five columns with fewest empty places."""
        if not (count := len(self.panels)):
            raise InputError("there are no panels; make the display with from_predictions.")
        if count == 1 or self.names:
            return {"figsize": (6, 6.6 + 0.2 * len(self.names))}
        columns = count if count <= 5 else min((5, 4, 3), key=lambda c: -count % c)
        places = np.arange(-(-count // columns) * columns).reshape(-1, columns).tolist()
        mosaic = [[each if each < count else "." for each in row] for row in places]
        return {"mosaic": mosaic, "figsize": (2.7 * columns + 0.5, 3.0 * len(mosaic) + 0.9)}

    @property
    def _scale(self) -> Scale:
        found = {pictures.scale_of(panel.middle) for panel in self.panels}
        return found.pop() if len(found) == 1 else LINEAR

    def _pictures(self) -> list[tuple[Any, ...]]:
        of_axes = [self.panels] if self.names else [(panel,) for panel in self.panels]
        single, shown = len(of_axes) == 1, []
        for panels in of_axes:
            panel = panels[0]
            picture = self._picture(panels, self._scale, most=5 if single else 2)
            title, measured = lettering(panel.title), ", ".join(panel.measured)
            lines = [title, measured]
            if single:
                lines = [f"{title}, n = {panel.result.n_samples:,}"]
                lines += [] if self.names else [f"{_found(panel)}; {measured} (exact)"]
            shown.append((picture, *lines))
        return shown

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        super()._draw(axes, new=new)
        for ax in axes:
            ax.tick_params(labelsize="small")
        if new and len(axes) > 1:  # one legend and one label per axis for all panels
            handles = [ax.get_legend_handles_labels() for ax in axes]
            named = {label: each for pair in handles for each, label in zip(*pair, strict=True)}
            for ax in axes:
                ax.set(xlabel="", ylabel="")
                ax.get_legend().remove()
            figure, place = axes[0].figure, {"loc": "outside upper center", "ncols": min(3, len(axes))}
            figure.legend(named.values(), named, **place, **canvas.SMALL)
            words = self._scale.words
            figure.supxlabel(f"predicted probability of the class{words}", size="medium")
            figure.supylabel(f"share in the class{words}", size="medium")

    def _picture(self, panels: Sequence[Panel], scale: Scale, most: int) -> Picture:
        """Draw bands, curves and rows of one panel, or of several models, with the diagonal."""
        scores = np.concatenate([panel.scores for panel in panels])
        tails = np.quantile(scores, [_TAIL, 1.0 - _TAIL], method="inverted_cdf")
        points = np.concatenate([*(panel.predicted for panel in panels), tails])
        heights = [y for p in panels for y in (p.predicted, p.observed, *p.simultaneous, *p.pointwise)]
        rest = np.array([scores.min(), scores.max()])
        x, y = pictures.zoomed(scale, points, rest, np.concatenate(heights), most)
        point = "point" if panels[0].line is not None else "bin"
        every = " of all models" * bool(self.names) or " of all panels" * (len(self.panels) > 1)
        sure = f"{confidence_text(self.confidence)} band if calibrated:"
        together = f"{sure} all {point}s{every} together"
        bands, curves, rows, outside = [], [], [], f"{point} outside the lighter band"
        if self.names:
            outside = f"filled: {point} outside its band"
        for k, panel in enumerate(panels):
            model = f"model {k}" if self.names else ""
            rows.append(_rows(panel.scores, x, model or "bar"))
            if model:
                bands.append(_band(panel, panel.simultaneous, model, "" if k else together))
            else:
                bands.append(_band(panel, panel.simultaneous, "band", together))
                bands.append(_band(panel, panel.pointwise, "point band", f"{sure} each {point} alone"))
            line = (panel.predicted, panel.observed) if panel.line is None else panel.line
            if model:
                label = ", ".join([lettering(self.names[k]), *panel.measured])
                curves.append(Mark("line", model, *line, label=label))
            elif panel.line is not None and len(line[0]) > 1:
                curves.append(Mark("line", "line", *line, label="isotonic regression"))
            marked = np.ones(len(panel.predicted), bool) if panel.in_points else _spread(panel, x)
            shown = panel.predicted[marked], panel.observed[marked], panel.outside[marked]
            of_points = told_apart(*shown, labels=("" if model else point, outside))
            curves += [mark._replace(style=f"{model} {mark.style}".strip()) for mark in of_points]
        diagonal = DIAGONAL._replace(label="observed as predicted")
        labels = panels[0].predicted_label, panels[0].observed_label
        of = (f"{lettering(each, canvas.CLAUSE)}{scale.words}" for each in labels)
        return Picture([*bands, GRID, diagonal, *curves, *rows], x, y, *of)


def _rows(scores: Array, x: Axis, style: str) -> Mark:
    """Return the numbers of predictions in bars that look equally wide."""
    edges = x.scale.bars((x.low, x.high), int(min(_BARS, _BARS_OF_ROWS * len(scores) ** (1.0 / 3.0))))
    inside = scores[(edges[0] <= scores) & (scores <= edges[-1])]
    return Mark("rows", style, edges, np.bincount(intervals(inside, edges), minlength=len(edges) - 1))


def _band(panel: Panel, band: ConsistencyBand, style: str, label: str) -> Mark:
    if panel.in_points:
        kind: Any = "intervals" if style.startswith("model") else "band"
        return Mark(kind, style, panel.predicted, *band, label)
    # Curve and band are increasing: between two points the band spans both.
    x, low, high = (np.repeat(each, 2) for each in (panel.predicted, band.low[:-1], band.high[1:]))
    return Mark("area", style, x[1:-1], low, high, label)


def _spread(panel: Panel, x: Axis) -> Any:
    """Return which points outside the band are marked: the first in each part of the axis."""
    parts = np.floor(20.0 * np.array([x.at(each) for each in panel.predicted]))
    chosen = np.flatnonzero(panel.outside)
    return chosen[np.unique(parts[chosen], return_index=True)[1]]


def _found(panel: Panel) -> str:
    """Return how many points lie outside the band, in words."""
    number = np.count_nonzero(panel.outside)
    if panel.line is not None:
        return f"the curve {'leaves' if number else 'is inside'} the band"
    some = f"{number} of {len(panel.outside)} bins" if number else "no bin"
    return f"{some} outside the band"
