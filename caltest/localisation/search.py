"""`witness`: near which predictions is which class over- or under-predicted?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._arguments import Whole, anything, arguments, check_draws, flag, level_of_confidence
from caltest._parallel import Workers, single_threaded_blas
from caltest._sums import Array
from caltest._visible import visible
from caltest.data import impossible_labels, sample
from caltest.data.clusters import refuse_clusters
from caltest.data.weights import check_alike
from caltest.exceptions import InputError
from caltest.kernels import Kernel
from caltest.laws import recognised
from caltest.lenses import Lens, find_lens, seen
from caltest.localisation.places import Field, Places, cover, given_points, kernels_of, places_told
from caltest.pvalues import StepDown
from caltest.results import Result, plain
from caltest.sampling import Rng, seed_of

if TYPE_CHECKING:
    import pandas as pd

_LONG = ("rows", "centres", "values", "standardised", "pvalues", "predicted", "observed", "weights")


@dataclass(frozen=True, eq=False, repr=False)
class Witness(Result):
    """The predictions near which classes are predicted too often or too rarely, with p-values.

    Arrays are read-only.

    A place is a point seen with one kernel: L = points times kernels, kernel by kernel.

    Attributes
    ----------
    rows
        For each place, the row of the data at which it lies, (L,); −1 if the point is not a row.
    centres
        The predictions at the places, (L, m).
    kernels
        Name and options of every kernel, such as its bandwidth.
    values
        The witness w, (L, m), from the rows within reach: positive if a class is predicted too
        rarely, negative if too often.
    standardised
        z, (L, m): values divided by their exact standard deviation under H0, with a floor.
    pvalues
        (L, m) in (0, 1], adjusted for all places and classes.
    predicted, observed
        Weighted means near the place, (L, m): of the predicted probabilities, and of the labels.
        NaN if no row is near.
    weights
        Effective number of rows near each place, (L,): (Σ k)² / Σ k².
    identified
        At most five places with a p-value of at most 1 − confidence that show different errors,
        strongest evidence first.
    classes
        Names of the classes, if known.
    confidence
        Of all claims together.
    n_samples, n_classes, lens, n_resamples, seed, warnings
        As in :class:`caltest.CalibrationResult`.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.witness(sure.probs, sure.labels, n_resamples=99, rng=0)
    >>> found.pvalue, len(found.identified)
    (0.01, 3)
    >>> place = found.identified[0]
    >>> float(found.pvalues[place].min()), int(found.pvalues[place].argmin())
    (0.01, 3)
    """

    rows: NDArray[np.intp]
    centres: Array
    kernels: tuple[dict[str, Any], ...]
    values: Array
    standardised: Array
    pvalues: Array
    predicted: Array
    observed: Array
    weights: Array
    identified: tuple[int, ...]
    classes: tuple[str, ...] | None
    confidence: float
    n_samples: int
    n_classes: int
    lens: str | None
    n_resamples: int
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def n_places(self) -> int:
        """How many places, L."""
        return len(self.weights)

    @property
    def pvalue(self) -> float:
        """The smallest adjusted p-value: an exact one of the model being calibrated."""
        return float(self.pvalues.min())

    @property
    def level(self) -> float:
        """1 − confidence: claims are made where the adjusted p-value is at most this."""
        return level_of_confidence(self.confidence)

    @property
    def names(self) -> tuple[str, ...]:
        """What the classes are called."""
        return self.classes or tuple(f"class {c}" for c in range(self.n_classes))

    @property
    def tested(self) -> tuple[int, ...]:
        """The classes tested: all, of two the second only, as the first mirrors it."""
        return (1,) if self.n_classes == 2 else tuple(range(self.n_classes))

    @arguments()
    def claims(self, place: int) -> tuple[int, ...]:
        """Return the classes tested and significant at a place, the largest |z| first."""
        place = Whole(0, self.n_places - 1)("place", place)
        found = [c for c in self.tested if self.pvalues[place, c] <= self.level]
        return tuple(sorted(found, key=lambda c: (-abs(self.standardised[place, c]), c)))

    @arguments(significant=flag)
    def table(self, *, significant: bool = False) -> pd.DataFrame:
        """Return a row for every place and class tested, the largest |z| first.

        Parameters
        ----------
        significant
            Only those with an adjusted p-value of at most 1 − confidence. Default False: all.

        Returns
        -------
        pandas.DataFrame
            Columns ``place`` (its number), ``row`` (of the data, −1 for a point given), ``kernel`` (its
            number), ``class``, ``weight`` (effective number of rows near), ``predicted``, ``observed``,
            ``difference`` (observed − predicted), ``standardised`` and ``adjusted`` p-value.
        """
        import pandas as pd

        chosen = np.zeros(self.pvalues.shape, dtype=bool)
        chosen[:, self.tested] = True
        if significant:
            chosen &= self.pvalues <= self.level
        places, classes = np.nonzero(chosen)
        z = self.standardised[chosen]
        found = pd.DataFrame(
            {
                "place": places,
                "row": self.rows[places],
                "kernel": places // (self.n_places // len(self.kernels)),
                "class": np.array([visible(name) for name in self.names], dtype=object)[classes],
                "weight": self.weights[places],
                "predicted": self.predicted[chosen],
                "observed": self.observed[chosen],
                "difference": self.observed[chosen] - self.predicted[chosen],
                "standardised": z,
                "adjusted": self.pvalues[chosen],
            }
        )
        return found.iloc[np.argsort(-np.abs(z), kind="stable")].reset_index(drop=True)

    @arguments(arrays=flag)
    def to_dict(self, *, arrays: bool = False) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string.

        Parameters
        ----------
        arrays
            Include the arrays of all places. Default False: they are long; the places identified are
            there with their claims in any case, under ``findings``.
        """
        return self._plain(*(() if arrays else _LONG)) | {
            "pvalue": self.pvalue,
            "n_places": self.n_places,
            "findings": [
                {
                    "place": place,
                    "row": int(self.rows[place]),
                    "centre": plain(self.centres[place]),
                    "weight": float(self.weights[place]),
                    "claims": [
                        {
                            "class": self.names[c],
                            "predicted": float(self.predicted[place, c]),
                            "observed": float(self.observed[place, c]),
                            "standardised": float(self.standardised[place, c]),
                            "pvalue": float(self.pvalues[place, c]),
                        }
                        for c in self.claims(place)
                    ],
                }
                for place in self.identified
            ],
        }


@arguments(kernel=anything)
def witness(
    probs: object,
    labels: object,
    *,
    kernel: Kernel | Sequence[Kernel] | None = None,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    points: ArrayLike | None = None,
    n_points: int = 128,
    confidence: float = 0.95,
    n_resamples: int = 999,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Witness:
    """Find the predictions near which a class is predicted too often or too rarely.

    The witness at a prediction p is w(p) = n⁻¹ Σ_j k(p, g_j) D_j, with the residuals D_j =
    onehot(y_j) − g_j. It has one entry per class. If an entry is positive, the class was observed
    more often than predicted near p; if negative, less often.

    Parameters
    ----------
    probs, labels
        Predicted probabilities and observed classes, as in :func:`caltest.test`.
    kernel
        A real-valued kernel of :mod:`caltest.kernels`, or a list of several; a *place* is then a
        point seen with one of them. Default: ``Exponential(bandwidth, "tv")`` at three bandwidths:
        the median distance of the predictions, as for the SKCE, a quarter and a sixteenth of it.
        Smaller ones are needed because a confident model has a median distance near 1, the largest
        possible, and with that bandwidth alone all rows would be near every point. Weights below
        5% of the point's own, k(p, p), count as 0; for the exponential kernel these are points
        more than three bandwidths away.
    lens
        As in :func:`caltest.test`. Default None: the full probability vector.
    class_names
        Names of the classes, in the order of the columns, as in :func:`caltest.test`. Default None.
    points
        Where to look: rows (k,) of ``probs``, as whole numbers, or predictions (k, m). Do not
        choose them by looking at the labels, or the p-values are invalid. Default: rows that cover
        the predictions, chosen from the predictions only (see Notes).
    n_points
        Maximum number of points if ``points`` is None. Default 128, which makes 384 places with
        three kernels. More points show finer detail, at proportional cost.
    confidence
        Errors are reported at level 1 − confidence, for all places and classes together. Default
        0.95.
    n_resamples
        Number of simulated label sets. Default 999: adjusted p-values down to 0.001.
    rng, n_jobs, progress
        As in :func:`caltest.test`.

    Returns
    -------
    Witness
        Frozen; ``print`` it, or call ``.table()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, or an option cannot be used.

    Notes
    -----
    If the model is calibrated, the chance of any claim is at most 1 − confidence, exactly so for any
    number of rows, kernel and points. If it is wrong, the chance of a claim (place, class) such that
    this class is predicted correctly *in every row of positive weight* is at most that too. It is not
    promised for narrower hypotheses: the witness mixes a neighbourhood, and the prediction at its
    centre may be right and have wrong neighbours. The differences are those of the places that stood
    out, so on average the truth is smaller. The statistic, how points are chosen, and what it costs:
    "Many looks" in the documentation.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf, Smola, "A kernel two-sample test", JMLR 13 (2012), section
    2.3 (witness functions); Widmann, Lindsten, Zachariah 2019 (the SKCE, whose witness this is);
    Westfall and Young, "Resampling-based multiple testing", 1993.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.witness(digits.probs, digits.labels, n_resamples=99, rng=0)
    >>> found.pvalue
    0.01
    """
    check_draws("n_resamples", n_resamples, level_of_confidence(confidence))
    level = level_of_confidence(confidence)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    find_lens(lens)  # a wrong name is found before the data are read
    if recognised(probs) is not None:
        raise InputError("probs are distributions of numbers; give probabilities of classes.")
    view, lens_label = seen(sample(probs, labels, class_names=class_names), lens)
    refuse_clusters(view.rows.clusters, "a witness")
    check_alike(view.rows, "a witness", "test with caltest.test, which takes weights")
    known = view.rows
    with single_threaded_blas():
        kernels = kernels_of(kernel, known.probs)
        if points is None:
            rows = cover(known.probs, int(n_points), kernels[min(1, len(kernels) - 1)])
            chosen = known.probs[rows]
        else:
            chosen, rows = given_points(points, known.probs)
        places = Places.of(kernels, chosen)
        near = Field.of(known.probs, places, workers)
        sums = near.labelled(view.labels[None, :])[0].T
        standardised = near.standardised(view.labels[None, :])[0]
        test = StepDown.of(np.abs(standardised))
        counts = near.exceedances(test, known.sampler(seed), int(n_resamples), workers)
    pvalues = test.pvalues(counts, int(n_resamples)).reshape(standardised.shape)
    if known.n_classes == 2:
        standardised = np.hstack([-standardised, standardised])
        pvalues = np.hstack([pvalues, pvalues])

    def means(sums: Array) -> Array:
        """Divide sums by weights; NaN where no row is near."""
        where = np.broadcast_to(near.totals[:, None] > 0.0, sums.shape)
        empty = np.full(sums.shape, np.nan)
        return np.asarray(np.divide(sums, near.totals[:, None], out=empty, where=where))

    notes = [*known.notes, *(note for each in kernels for note in each.notes)]
    return Witness(
        rows=np.tile(rows, len(kernels)),
        centres=np.tile(chosen, (len(kernels), 1)),
        kernels=tuple({"kernel": type(each).__name__, **each.parameters} for each in kernels),
        values=(sums - near.stated) * places.heights.reshape(-1, 1) / known.n_samples,
        standardised=standardised,
        pvalues=pvalues,
        predicted=means(near.stated),
        observed=means(sums),
        weights=near.effective_rows,
        identified=places_told(places, standardised, pvalues <= level, near.effective_rows),
        classes=known.classes,
        confidence=float(confidence),
        n_samples=known.n_samples,
        n_classes=known.n_classes,
        lens=lens_label,
        n_resamples=int(n_resamples),
        seed=seed,
        warnings=tuple(dict.fromkeys([*notes, *impossible_labels(view)])),
    )
