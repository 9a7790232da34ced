"""Cumulative differences: where along the predictions they and the observations drift apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from caltest._arguments import arguments, axes, check_draws, level_of_confidence
from caltest._visible import quoted
from caltest.data import sample, without_zeros
from caltest.data.attributes import refuse_clusters
from caltest.exceptions import InputError
from caltest.lenses import Lens, lens_of
from caltest.pictures.axes import Array
from caltest.pictures.marks import BAD, Mark, cumulative, path_of
from caltest.plots import canvas
from caltest.plots.display import PredictionsDisplay
from caltest.results import CalibrationResult
from caltest.sampling import Rng
from caltest.testing import test
from caltest.text.numbers import confidence_text, probabilities, pvalue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 2000  # places at which a path is drawn
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)  # shares of the rows whose predictions are written on top
_ROUNDING = 1e-9  # of a number of draws
_TICK_ROOM = 0.75  # inches


@dataclass(frozen=True, eq=False)
class CumulativeDisplay(PredictionsDisplay):
    """Plot cumulative differences: where predictions are too high or too low, without bins.

    Make it with :meth:`from_predictions`.

    Rows are sorted by prediction, with equal predictions together, and predicted minus observed is
    added up. Where the path rises, predictions are too high; where it falls, too low. Over any
    range of rows, the difference between the path's ends is the range's contribution to the mean
    error. The path of a calibrated model leaves the band with probability at most 1 −
    ``confidence``, for every number of rows. The band belongs to the test with statistic "ks": the
    test rejects exactly if the path leaves the band.

    Attributes
    ----------
    shares
        Share of the rows up to each prediction, from 0 to 1, (K + 1,).
    differences
        Σ (predicted − observed) / n of these rows, (K + 1,).
    scores
        The K distinct predictions, in increasing order.
    critical
        Half the height of the band: the largest difference of a calibrated model exceeds it with
        probability at most 1 − ``confidence``.
    result
        The test with the statistic "ks".
    confidence
        Of the band.
    title, label
        Which probability is shown, and the label for the predicted one.
    impossible
        Number of rows whose label had predicted probability 0; each one alone proves the model
        wrong.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> display = caltest.CumulativeDisplay.from_predictions(sure.probs, sure.labels, rng=0)
    >>> display.result.pvalue, display.outside
    (0.001, True)
    >>> plt.close(display.figure_)
    """

    shares: Array = field(repr=False)
    differences: Array = field(repr=False)
    scores: Array = field(repr=False)
    critical: float
    result: CalibrationResult
    confidence: float
    title: str
    label: str
    impossible: int

    @classmethod
    @arguments(ax=axes)
    def from_predictions(
        cls,
        probs: object,
        labels: object,
        *,
        lens: str | Lens | None = None,
        class_names: Sequence[str | int] | None = None,
        confidence: float = 0.95,
        weights: object = None,
        sampling_rates: Mapping[Any, float] | None = None,
        n_resamples: int = 999,
        rng: Rng = None,
        n_jobs: int | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Compute and draw the cumulative difference of predictions and labels.

        Parameters
        ----------
        probs, labels
            As in :func:`caltest.test`.
        lens
            Which probability is shown: "top_label", "class:3", "top:5" or another lens that leaves
            two classes. Default: class 1 of two classes, the top label of more.
        class_names
            Names of the classes, in the order of the columns, as in :func:`caltest.test`. Default None.
        confidence
            Of the band. Default 0.95.
        weights
            How much each row counts, as in :func:`caltest.test`; shares and differences are then
            weighted. Default None: all rows have equal weight.
        sampling_rates
            If rows were sampled by their label: for each class, the share of its rows that was
            kept, as in :func:`caltest.test`. Predictions are transformed to what they mean among
            the rows kept, and the axes say so. Default None: rows were not sampled by label.
        n_resamples
            Number of simulated label sets, for the band and the p-value. Default 999.
        rng, n_jobs
            As in :func:`caltest.test`.
        ax
            Axes to draw in. Default: a new figure.

        Returns
        -------
        CumulativeDisplay
            Drawn.

        Raises
        ------
        InputError
            If the input is not a set of predictions and labels, the lens leaves more than two
            classes, or there are too few simulated label sets for the confidence.

        Notes
        -----
        Of B draws the k-th largest statistic is half the height of the band, k = ⌊(1 − confidence)
        (B + 1)⌋: the p-value (1 + #{draws at least as large})/(B + 1) is at most 1 − confidence if and
        only if the observed statistic is larger than that.

        References
        ----------
        Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for probabilistic
        predictions", JMLR 23 (2022).

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> probs, labels = [0.2, 0.2, 0.9, 0.9], [0, 1, 1, 0]
        >>> display = caltest.CumulativeDisplay.from_predictions(probs, labels, rng=0)
        >>> display.shares.tolist(), display.differences.round(2).tolist()
        ([0.0, 0.5, 1.0], [0.0, -0.15, 0.05])
        >>> plt.close(display.figure_)
        """
        alpha = level_of_confidence(confidence)
        check_draws("n_resamples", n_resamples, alpha)
        counting: dict[str, Any] = {"weights": weights, "sampling_rates": sampling_rates}
        whole = without_zeros(sample(probs, labels, class_names=class_names, **counting))
        refuse_clusters(whole.rows.clusters, "the band of a picture")
        through = lens_of(whole.rows, lens, "top_label")
        view = through.view(whole) if through else whole
        if view.rows.n_classes != 2:
            raise InputError(
                f"a cumulative difference is of one probability, and the lens {quoted(lens)} shows "
                f"{view.rows.n_classes} classes; give one such as 'top_label' or 'class:0'."
            )
        result = test(
            whole.rows, whole.labels, "ks", lens=lens, n_resamples=n_resamples, rng=rng, n_jobs=n_jobs
        )
        counted = view.rows.weighted(np.ones(view.rows.n_samples))
        scores, *path = path_of(view.rows.probs[:, 1], view.labels, counted)
        shares, differences = (np.append(0.0, each) for each in path)
        draws = np.sort(np.asarray(result.null_distribution))
        critical = float(draws[-int((len(draws) + 1) * alpha + _ROUNDING)])
        title, predicted, _ = canvas.event_labels(view.rows, through, sampling_rates is not None)
        about = result, confidence, title, predicted, len(whole.rows.impossible(whole.labels))
        return cls(shares, differences, scores, critical, *about).plot(ax)

    @property
    def outside(self) -> bool:
        """Whether the path leaves the band: if and only if the test rejects."""
        return self.result.rejects(level_of_confidence(self.confidence))

    def _grid(self) -> dict[str, Any]:
        return {"figsize": (6.6, 5.2)}

    def _key(self) -> str:
        return f"band: {confidence_text(self.confidence)} of calibrated paths"

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        from matplotlib.ticker import FixedLocator

        (ax,), result = axes, self.result
        narrow, percent = canvas.is_narrow(ax), confidence_text(self.confidence)
        limit, values = 100.0 * self.critical, 100.0 * self.differences
        band = f"±{limit:.3g} points: {percent} of calibrated models stay inside"
        meaning = "rising: predicted too high; falling: too low"
        x, y = self._path()
        canvas.draw(ax, *cumulative(x, 100.0 * y, limit, band, meaning))
        if self.outside:
            far = [int(np.abs(values).argmax())]
            label = f"largest, {abs(values[far[0]]):.3g} points: outside the band"
            largest = Mark("points", BAD, self.shares[far], values[far], label=label)
            canvas.draw(ax, largest, markersize=6.5, clip_on=False, zorder=4)
        low, high = min(-limit, float(values.min())), max(limit, float(values.max()))
        room = max(0.06 * (high - low), 1e-9)
        ax.set(xlim=(0.0, 1.0), ylim=(low - room, high + room))
        rows = "weight" if "effective_n" in result.parameters else "rows"
        ax.set_xlabel(f"share of the {rows}, from the lowest prediction to the highest")
        ax.set_ylabel("cumulative predicted − observed,\ndivided by n, points")
        shares = _TICKS if canvas.inches(ax)[0] / len(_TICKS) > _TICK_ROOM else _TICKS[::2]
        ax.xaxis.set_major_locator(FixedLocator(shares))
        places = np.searchsorted(self.shares[1:], np.asarray(shares) - _ROUNDING)
        top = ax.secondary_xaxis("top")
        top.set_xticks(shares, probabilities(self.scores[places.clip(max=len(self.scores) - 1)]))
        top.tick_params(labelsize="small", length=3, pad=1)
        top.spines["top"].set_visible(False)
        alpha = level_of_confidence(self.confidence)
        sign, verdict = ("≤", "rejected") if self.outside else (">", "not rejected")
        p = f"p = {pvalue(result.pvalue, alpha)} {sign} {alpha:.2g}"
        lines = [f"Calibration {verdict}: {p}"]
        if not narrow:
            top.set_xlabel(canvas.lettering(self.label, canvas.CLAUSE), size="small")
            lines = [
                f"{canvas.lettering(self.title)}, n = {result.n_samples:,}",
                f"calibration is {verdict} by its largest difference, {p} ({result.guarantee})",
            ]
        if self.impossible:
            lines.append("labels of probability 0 occurred: that alone proves it wrong")
        canvas.heading(ax, *lines)
        canvas.legend_below(ax)

    def _path(self) -> tuple[Array, Array]:
        """Return the path at no more places than can be seen, its highest and lowest among them."""
        count = len(self.shares)
        if count <= _MOST:
            return self.shares, self.differences
        starts = np.linspace(0, count, _MOST // 2, endpoint=False).astype(np.intp)
        pieces = np.split(self.differences, starts[1:])
        ends = [(s + p.argmin(), s + p.argmax()) for s, p in zip(starts, pieces, strict=True)]
        kept = np.unique(np.append(np.ravel(ends), [0, count - 1]))
        return self.shares[kept], self.differences[kept]
