"""The evidence of a test: its statistic among draws, and the path of differences; and of a monitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from caltest import _printers
from caltest._arguments import arguments, check_draws, level_of_confidence
from caltest._numbers import confidence_text, number, pvalue
from caltest._visible import quoted
from caltest.auditing.diagrams import among_draws
from caltest.data.rows import refuse_clusters, without_zeros
from caltest.data.sample import whole_sample
from caltest.exceptions import InputError
from caltest.lenses import Lens, lens_of, through
from caltest.pictures import BAD, Array, Axis, Mark, Picture, critical, cumulative, path_of
from caltest.plots import canvas
from caltest.plots.canvas import PredictionsDisplay, ResultDisplay, lettering
from caltest.results import CalibrationResult
from caltest.sampling import Rng
from caltest.testing import test

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from caltest.auditing.result import Audit
    from caltest.monitoring import MonitorState

# ------------------------------------------------------------------ an audit


@dataclass(frozen=True, eq=False)
class AuditDisplay(ResultDisplay):
    """Plot the pictures that lead the report of an audit: the errors of views, and where they are.

    Make it with ``from_result``.

    One picture shows errors, predicted less observed, of what leads and of other views. The thick bar
    is the view's own interval, which decides what is within the limit; the thin bar is the one of all
    together, which decides what is beyond it. Dashed lines are the limit. A filled diamond is an error
    that was found, a hollow circle one that was not. The other picture is the one beside it in the
    report: observed against predicted, a PIT or rank histogram, or the evidence among that of draws.

    Parameters
    ----------
    result
        What :func:`caltest.audit` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.audit(sure.probs, sure.labels, n_resamples=99, rng=0)
    >>> [ax.get_xlabel() for ax in found.plot().axes_]
    ['predicted probability (stretched towards the ends)', '◂ too low    error, points    too high ▸']
    >>> plt.close("all")
    """

    result: Audit
    shows = "caltest.auditing.result:Audit", "give what caltest.audit returns"
    _parts = ": one for each picture of the first screen"

    def _grid(self) -> dict[str, Any]:
        found = self._pictures()
        if not found:
            raise InputError("this audit has no picture: no event, and no draws, were looked at.")
        size = 5.6 * len(found), max(4.4, 1.6 + 0.34 * max(len(each[0].y.marks) for each in found))
        return {"mosaic": [list(range(len(found)))], "figsize": size}

    def _pictures(self) -> list[tuple[Any, ...]]:
        found = _printers.pictured(self.result)
        return [(picture, lettering(title, 2 * canvas.CLAUSE)) for title, picture in found]


# ------------------------------------------------------------------ the statistic

_FAR = 3.0  # times as long as the draws: an axis that is broken


@dataclass(frozen=True, eq=False)
class NullDisplay(ResultDisplay):
    """Plot the observed statistic against its distribution under calibration.

    Make it with ``from_result``.

    Values that are not finite are left out of the histogram.

    Parameters
    ----------
    result
        What :func:`caltest.test` returned, with a null that simulates, such as "monte_carlo".

    Raises
    ------
    InputError
        If the result has no null distribution.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> result = caltest.test(digits.probs, digits.labels, "ecd", rng=0)
    >>> display = caltest.plots.NullDisplay.from_result(result)
    >>> display.ax_.get_title(loc="left").splitlines()[0]
    'p = 0.006 (exact)'
    >>> plt.close(display.figure_)
    """

    result: CalibrationResult
    shows = "caltest.results:CalibrationResult", "give what caltest.test returns"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.result.null_distribution is None:
            raise InputError(
                f"the null {self.result.null!r} draws no resamples, so there is no distribution to "
                "show; test with null='monte_carlo'."
            )

    _size = 6.0, 4.0

    def _pictures(self) -> list[tuple[Any, ...]]:
        result, observed = self.result, self.result.statistic
        every = np.asarray(result.null_distribution)
        draws = every[np.isfinite(every)] if np.isfinite(every).any() else np.zeros(1)
        low, high = float(draws.min()), float(draws.max())
        high = max(high, low + 1e-9 * max(abs(low), 1.0))
        far = not low - _FAR * (high - low) < observed < high + _FAR * (high - low)
        ends = (low, high) if far else (min(low, observed), max(high, observed))
        name = f"{lettering(result.measures, 100) or lettering(result.name)} ({lettering(result.name)})"
        text, bad = f"observed: {number(observed)}", result.rejects(result.alpha)
        shown = among_draws(draws, observed, text, name, bad=bad, ends=ends, far=far)
        as_extreme = f"{result.exceedances or 'none'} of them at least as extreme"
        many = f"{len(every):,} resamples if calibrated, {as_extreme}"
        return [(shown, f"p = {result.pvalue:.3g} ({result.guarantee})", many)]


# ------------------------------------------------------------------ the path


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
    critical
        Half the height of the band: the largest difference of a calibrated model exceeds it with
        probability at most 1 − ``confidence``.
    result
        The test with the statistic "ks".
    confidence
        Of the band.
    title
        Which probability is shown.
    impossible
        Number of rows whose label had predicted probability 0; each one alone proves the model
        wrong.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> display = caltest.plots.CumulativeDisplay.from_predictions(sure.probs, sure.labels, rng=0)
    >>> display.result.pvalue, display.outside
    (0.001, True)
    >>> plt.close(display.figure_)
    """

    shares: Array = field(repr=False)
    differences: Array = field(repr=False)
    critical: float
    result: CalibrationResult
    confidence: float
    title: str
    impossible: int

    @classmethod
    @arguments()
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
        >>> display = caltest.plots.CumulativeDisplay.from_predictions(probs, labels, rng=0)
        >>> display.shares.tolist(), display.differences.round(2).tolist()
        ([0.0, 0.5, 1.0], [0.0, -0.15, 0.05])
        >>> plt.close(display.figure_)
        """
        alpha = level_of_confidence(confidence)
        check_draws("n_resamples", n_resamples, alpha)
        counting: dict[str, Any] = {"weights": weights, "sampling_rates": sampling_rates}
        whole = without_zeros(whole_sample(probs, labels, class_names=class_names, **counting))
        refuse_clusters(whole.rows.clusters, "the band of a picture")
        used = lens_of(whole.rows, lens, "top_label")
        view, _ = through(whole, used)
        if view.rows.n_classes != 2:
            raise InputError(
                f"a cumulative difference is of one probability, and the lens {quoted(lens)} shows "
                f"{view.rows.n_classes} classes; give one such as 'top_label' or 'class:0'."
            )
        draws: dict[str, Any] = {"n_resamples": n_resamples, "rng": rng, "n_jobs": n_jobs}
        result = test(whole.rows, whole.labels, "ks", lens=lens, **draws)
        counted = view.rows.weighted(np.ones(view.rows.n_samples))
        _, *path = path_of(view.rows.probs[:, 1], view.labels, counted)
        shares, differences = (np.append(0.0, each) for each in path)
        limit = critical(result.null_distribution, alpha)
        title, *_ = canvas.event_labels(view.rows, used, sampling_rates is not None)
        about = result, confidence, title, len(whole.rows.impossible(whole.labels))
        return cls(shares, differences, limit, *about).plot(ax)

    @property
    def outside(self) -> bool:
        """Whether the path leaves the band: if and only if the test rejects."""
        return self.result.rejects(level_of_confidence(self.confidence))

    _size = 6.6, 5.2

    def _pictures(self) -> list[tuple[Any, ...]]:
        result, values = self.result, self.differences
        percent = confidence_text(self.confidence)
        band = f"±{100.0 * self.critical:.3g} points: {percent} of calibrated models stay inside"
        meaning = "rising: predicted too high; falling: too low"
        picture = cumulative(self.shares, values, self.critical, band, meaning)
        if self.outside:
            far = [int(np.abs(values).argmax())]
            label = f"largest, {100.0 * abs(values[far[0]]):.3g} points: outside the band"
            picture.marks.append(Mark("points", BAD, self.shares[far], values[far], label=label))
        rows = "weight" if "effective_n" in result.parameters else "rows"
        of_x = f"share of the {rows}, from the lowest prediction to the highest"
        of_y = "cumulative predicted − observed,\ndivided by n, points"
        alpha = level_of_confidence(self.confidence)
        sign, verdict = ("≤", "rejected") if self.outside else (">", "not rejected")
        p = f"p = {pvalue(result.pvalue, alpha)} {sign} {alpha:.2g}"
        lines = [
            f"{lettering(self.title)}, n = {result.n_samples:,}",
            f"calibration is {verdict} by its largest difference, {p} ({result.guarantee})",
        ]
        if self.impossible:
            lines.append("labels of probability 0 occurred: that alone proves it wrong")
        return [(picture._replace(of_x=of_x, of_y=of_y), *lines)]


# ------------------------------------------------------------------ a monitor


@dataclass(frozen=True, eq=False)
class MonitorDisplay(ResultDisplay):
    """Plot what a monitor has found: the path of the evidence, the error over time, reliability.

    Make it with ``from_result``.

    Left: the evidence after every batch, on a logarithmic scale, with the line of the alarm and the row
    at which it was reached (a filled diamond); below it predicted less observed in every batch, with
    limits that hold for all batches at once (a filled diamond: without 0); of numbers, of the event
    where evidence is strongest, as the title says. Right, where evidence is
    strongest, all rows or a group: reliability of the first rows and of the latest, in bins of about
    equal counts; of numbers and times, how many outcomes lie in each tenth of what was predicted,
    with bands: if the model is calibrated, all marks lie within theirs with a probability of 95%,
    whichever group is shown, in a picture that is looked at once. A filled mark is outside its band.

    Parameters
    ----------
    result
        What :meth:`caltest.Monitor.update` returned.

    Examples
    --------
    >>> import numpy as np, caltest, matplotlib.pyplot as plt
    >>> rng, monitor = np.random.default_rng(0), caltest.Monitor()
    >>> for _ in range(5):
    ...     p = rng.random(200)
    ...     state = monitor.update(p, rng.random(200) < p)
    >>> display = caltest.plots.MonitorDisplay.from_result(state)
    >>> len(display.axes_)
    3
    >>> plt.close(display.figure_)
    """

    result: MonitorState
    shows = "caltest.monitoring:MonitorState", "give what Monitor.update returns"
    _parts = ": one for the evidence, one for errors, and one for reliability"

    def _grid(self) -> dict[str, Any]:
        return {"mosaic": [[0, 2], [1, 2]], "figsize": (10.0, 5.2), "width_ratios": (1.6, 1.0)}

    def _pictures(self) -> list[tuple[Any, ...]]:
        blank = "no row has its outcome yet", Picture([], *2 * (Axis(0.0, 1.0, ()),))
        found = [*self.result.pictures, blank, blank][:3]
        return [(picture, lettering(title, 3 * canvas.CLAUSE)) for title, picture in found]
