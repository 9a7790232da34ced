"""The evidence of a test: its statistic among draws, and the path of differences; and of a monitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest import _printers
from caltest._numbers import number
from caltest.auditing.diagrams import among_draws
from caltest.exceptions import InputError
from caltest.pictures import Axis, Picture
from caltest.plots import canvas
from caltest.plots.canvas import ResultDisplay, lettering
from caltest.results import CalibrationResult

if TYPE_CHECKING:
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
            found = f"the null {self.result.null!r} draws no resamples"
            do = "test with null='monte_carlo'"
            raise InputError(f"{found}, so there is no distribution to show; {do}.")

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
    For point forecasts of a mean there is no such picture.

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
        if len(self.result.pictures) == 2:  # of means
            return {"mosaic": [[0], [1]], "figsize": (6.4, 5.2)}
        return {"mosaic": [[0, 2], [1, 2]], "figsize": (10.0, 5.2), "width_ratios": (1.6, 1.0)}

    def _pictures(self) -> list[tuple[Any, ...]]:
        blank = "no row has its outcome yet", Picture([], *2 * (Axis(0.0, 1.0, ()),))
        found = self.result.pictures
        found = found if len(found) == 2 else [*found, blank, blank][:3]
        return [(picture, lettering(title, 3 * canvas.CLAUSE)) for title, picture in found]
