"""`certificate`: by how much a model can be wrong at most, on average over every bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest._arguments import Number, arguments, level_of_confidence
from caltest._sums import Array
from caltest.binning import Binning, EqualMass, reliability_curve
from caltest.bounds import intervals
from caltest.data.rows import check_alike
from caltest.data.sample import whole_sample
from caltest.exceptions import InputError
from caltest.forms import Side
from caltest.lenses import Lens, event, one_probability
from caltest.results import Result
from caltest.story import Story

if TYPE_CHECKING:
    import pandas as pd

_DEFAULT_BINS = 10
_LEAST = 1.0 - 2.0 * intervals.LARGEST_LEVEL
_CONFIDENCE = Number(_LEAST, 1.0, "[)", f"give one from {_LEAST:g} to below 1, such as 0.95")


class Proved(NamedTuple):
    """A range of scores proved to be miscalibrated.

    "over": the event is rarer than predicted; "under": more frequent. ``at_least`` is the proved error
    of the bin's mean prediction, and ``rows`` the number of its rows.
    """

    low: float
    high: float
    direction: Side
    at_least: float
    rows: int


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Result):
    """A proven limit on how far predicted probabilities are from the true ones.

    Arrays have one entry per bin, and are read-only.

    All statements are correct together with the stated confidence, so you may pick bins after seeing
    them.

    Attributes
    ----------
    distance : float
        The certified distance between the mean prediction and the mean true probability of every bin.
    over, under : float
        The largest possible overconfidence (score minus true probability) and underconfidence; the
        larger one is ``distance``.
    proved : float
        A lower bound on the largest distance; 0 if no error is proved.
    confidence : float
        Confidence that all statements are correct together.
    miscalibrated : tuple of Proved
        Ranges proved to be miscalibrated, from low scores to high ones.
    starts, ends : array of shape (K,)
        Smallest and largest score of every bin.
    counts : array of int of shape (K,)
        Number of rows of every bin.
    predicted : array of shape (K,)
        Mean score of every bin.
    estimates : array of shape (K,)
        Observed rates.
    lower, upper : array of shape (K,)
        Bounds on the mean true probability.
    distances : array of shape (K,)
        The largest possible distance in the bin.
    level : float
        The largest probability with which a single Clopper–Pearson bound fails.
    event : str
        The event that the probability refers to, as a clause.
    n_samples : int
        As in :class:`caltest.CalibrationResult`.
    lens : str or None
        As in :class:`caltest.CalibrationResult`.
    warnings : tuple of str
        As in :class:`caltest.CalibrationResult`.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.certificate(sure.probs, sure.labels)
    >>> round(found.distance, 2), round(found.over, 2), round(found.under, 2)
    (0.59, 0.59, 0.17)
    >>> found.counts[:3].tolist(), found.estimates[:3].round(2).tolist()
    ([30.0, 30.0, 30.0], [0.4, 0.5, 0.77])
    """

    distance: float
    over: float
    under: float
    proved: float
    confidence: float
    miscalibrated: tuple[Proved, ...]
    starts: Array
    ends: Array
    counts: Array
    predicted: Array
    estimates: Array
    lower: Array
    upper: Array
    distances: Array
    level: float
    n_samples: int
    event: str
    lens: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def story(self) -> Story:
        """The story of the certificate: whether it also proves an error."""
        return Story(verdict="", found=bool(self.miscalibrated))

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a row for each bin.

        Returns
        -------
        pandas.DataFrame
            Columns ``from``, ``to`` (scores), ``rows``, ``predicted``, ``estimate``, ``lower`` and
            ``upper`` (bounds of the mean probability in the bin), ``distance``.
        """
        import pandas as pd

        names = ("from", "to", "rows", "predicted", "estimate", "lower", "upper", "distance")
        found = self.predicted, self.estimates, self.lower, self.upper, self.distances
        columns = (self.starts, self.ends, self.counts.astype(int), *found)
        return pd.DataFrame(dict(zip(names, columns, strict=True)))


@arguments(confidence=_CONFIDENCE)
def certificate(
    probs: object,
    labels: object,
    *,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    n_bins: int | None = None,
    binning: Binning | None = None,
    confidence: float = 0.95,
) -> Certificate:
    """Prove that predictions are close to the true probabilities: "within ±3 points, 95% confidence".

    A test that does not reject proves nothing. A certificate does: with the stated confidence, for
    any number of rows, the mean prediction of every bin is at most the distance it gives from the mean
    true probability. It assumes nothing, but errors that cancel within a bin do not show.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), or data frame
        Predicted probabilities, as in :func:`caltest.test`. Rows must be independent of each other.
    labels : array of shape (n,)
        Observed classes, as in :func:`caltest.test`.
    lens : str or Lens, optional
        Which probability to certify: "top_label", "class:3", "top:5" or an object of
        :mod:`caltest.lenses` that leaves two classes. Default None: class 1 of two classes, the
        top label of more.
    class_names : sequence of str or int, optional
        Names of the classes, in the order of the columns, as in :func:`caltest.test`.
    n_bins : int, optional
        Number of bins, with equal numbers of rows. Default 10. Fewer bins give a smaller distance,
        but hide more.
    binning : Binning, optional
        An object of :mod:`caltest.binning` to use instead of ``n_bins``.
    confidence : float, default 0.95
        Confidence that all bounds are correct together, 0.5 or more.

    Returns
    -------
    Certificate
        Frozen; ``print`` it, or call ``.summary()``, ``.table()``, ``.to_dict()``.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, the lens leaves more than two classes,
        or an option is wrong.

    Notes
    -----
    Two Clopper–Pearson bounds per bin, at level α/(2K) each for K bins. Rows of a bin may
    have different probabilities; :doc:`/theory/bounds` has the proof, and the
    correction it needs if exactly one event was observed. Bins depend on the predictions only.

    References
    ----------
    Clopper and Pearson, Biometrika 26 (1934); Hoeffding, Annals of Mathematical Statistics 27 (1956).

    Examples
    --------
    >>> import caltest
    >>> model = caltest.simulation.tempered(n_samples=5000, temperature=1.0, rng=0)
    >>> found = caltest.certificate(model.probs, model.labels)
    >>> found.proved < found.distance < 0.12, found.miscalibrated
    (True, ())
    """
    confidence = float(confidence)
    if binning is None:
        binning = EqualMass(_DEFAULT_BINS if n_bins is None else n_bins)
    elif n_bins is not None:
        raise InputError("n_bins and binning are both given; give one of them.")
    whole = whole_sample(probs, labels, class_names=class_names)
    check_alike(whole.rows, "a certificate", "test with a tolerance, which takes weights")
    view, label = one_probability(whole, lens, "a certificate is of")
    bins = reliability_curve(view.rows, view.labels, binning)
    counts = bins.counts.astype(np.float64)
    level = level_of_confidence(confidence) / (2.0 * len(counts))
    lower, upper = intervals.mean_bounds(counts, bins.events, level)
    over, under = bins.predicted - lower, upper - bins.predicted
    distances, wrong = np.maximum(over, under), np.minimum(over, under) < 0.0
    # What is proved holds for the scores in a bin, not for all values between its edges.
    scores, sides = (bins.smallest, bins.largest), np.where(under < 0.0, "over", "under")
    found = (each[wrong].tolist() for each in (*scores, sides, -np.minimum(over, under), bins.counts))
    proved = sorted(Proved(*each) for each in zip(*found, strict=True))
    of_bins: Any = *scores, counts, bins.predicted, bins.observed, lower, upper, distances, level
    largest = float(distances.max()), max(0.0, float(over.max())), max(0.0, float(under.max()))
    least = max((each.at_least for each in proved), default=0.0)
    rows: dict[str, Any] = {"n_samples": view.rows.n_samples, "warnings": view.rows.notes}
    rows |= {"event": event(label, view.rows), "lens": label}
    return Certificate(*largest, least, confidence, tuple(proved), *of_bins, **rows)
