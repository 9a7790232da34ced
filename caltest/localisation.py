"""`witness`: near which predictions is which class over- or under-predicted?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from caltest._arguments import (
    Whole,
    anything,
    arguments,
    check_draws,
    check_unmasked,
    flag,
    level_of_confidence,
    real_array,
)
from caltest._parallel import ALONE, Workers, single_threaded_blas
from caltest._sums import Array, blocks
from caltest._visible import quoted, visible
from caltest.data import impossible_labels, sample
from caltest.data.attributes import check_alike
from caltest.exceptions import InputError
from caltest.kernels import Exponential, Kernel
from caltest.kernels.bandwidth import fixed_order
from caltest.laws import recognised
from caltest.laws.classes import LabelSampler
from caltest.lenses import Lens, find_lens, through
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

    derived: ClassVar[tuple[str, ...]] = ("pvalue", "n_places")

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
            ]
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
    level = level_of_confidence(confidence)
    check_draws("n_resamples", n_resamples, level)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    find_lens(lens)  # a wrong name is found before the data are read
    if recognised(probs) is not None:
        raise InputError("probs are distributions of numbers; give probabilities of classes.")
    view, lens_label = through(sample(probs, labels, class_names=class_names), lens)
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
    with np.errstate(invalid="ignore"):  # 0 / 0 where no row is near
        predicted, observed = near.stated / near.totals[:, None], sums / near.totals[:, None]
    notes = [*known.notes, *(note for each in kernels for note in each.notes)]
    return Witness(
        rows=np.tile(rows, len(kernels)),
        centres=np.tile(chosen, (len(kernels), 1)),
        kernels=tuple({"kernel": type(each).__name__, **each.parameters} for each in kernels),
        values=(sums - near.stated) * places.heights.reshape(-1, 1) / known.n_samples,
        standardised=standardised,
        pvalues=pvalues,
        predicted=predicted,
        observed=observed,
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


# ------------------------------------------------------------------ field


_ROWS = 4096  # of a tile
_HELD = 2**26  # weights kept in memory, 512 MiB; more are computed anew for every block of draws
_TOGETHER = 4  # blocks of draws for which they are computed together
_SUMS = 2**21  # sums of drawn labels in one pass over the weights
_FLOOR = 1.0  # the square of the weight of a row at the place


@dataclass(frozen=True, eq=False)
class Field:
    """Weighted sums over the rows near every place, of L places and m classes.

    ``held`` are weights k, (n, L), or None: computed anew. ``totals`` are Σ_j k, with the weight of a
    place at itself taken as 1, and ``squares`` Σ_j k², (L,); ``stated`` are Σ_j k g_j and ``variances``
    Σ_j k² g_j (1 − g_j), those of the sums of residuals under H0, given the predictions, (L, m).
    """

    probs: Array
    places: Places
    held: Array | None
    totals: Array
    squares: Array
    stated: Array
    variances: Array

    @classmethod
    def of(cls, probs: Array, places: Places, workers: Workers = ALONE) -> Field:
        """Compute weights and sums, a tile of rows at a time."""
        n, m, count = *probs.shape, len(places)
        held = np.empty((n, count)) if n * count <= _HELD else None
        sums = [np.zeros(shape) for shape in (count, count, (count, m), (count, m))]
        tiles = blocks(n, _ROWS)
        tasks = [(probs[rows], held is not None) for rows in tiles]
        parts = workers.map(partial(_tile, places), tasks, "weights")
        for rows, (weights, *own) in zip(tiles, parts, strict=True):
            if held is not None:
                held[rows] = weights
            for whole, part in zip(sums, own, strict=True):
                whole += part
        return cls(probs, places, held, *sums)

    @property
    def effective_rows(self) -> Array:
        """(L,) (Σ k)² / Σ k²: as many rows of one weight would tell as much."""
        found = np.zeros_like(self.totals)
        return np.divide(self.totals**2, self.squares, out=found, where=self.squares > 0.0)

    def labelled(self, labels: NDArray[np.integer[Any]]) -> Array:
        """Return (B, m, L) weights summed over the rows with each label, for (B, n) labels.

        B·m·L numbers are held; B n L additions, however many classes there are.
        """
        draws, (n, m) = len(labels), self.probs.shape
        sums = np.zeros((draws * m, len(self.places)))
        offsets = np.arange(draws, dtype=np.int64) * m
        for rows in blocks(n, _ROWS):
            size = rows.stop - rows.start
            near = self.places.weights(self.probs[rows]) if self.held is None else self.held[rows]
            where = (labels[:, rows].T + offsets).ravel()
            ends = np.arange(0, size * draws + 1, draws)
            member = sparse.csc_array((np.ones(len(where)), where, ends), shape=(len(sums), size))
            sums += member @ near
        return sums.reshape(draws, m, -1)

    def standardised(self, labels: NDArray[np.integer[Any]]) -> Array:
        """Return (B, L, m') z for (B, n) labels; of two classes the second alone, m' = 1."""
        sums = self.labelled(labels).transpose(0, 2, 1)
        sums = (sums - self.stated) / np.sqrt(self.variances + _FLOOR)
        return sums[:, :, 1:] if self.probs.shape[1] == 2 else sums

    def exceedances(
        self, observed: StepDown, sampler: LabelSampler, n_draws: int, workers: Workers
    ) -> NDArray[np.int64]:
        """Count the draws that reach the observed |z|, (H,), by step-down maxima."""
        size = sampler.block * (1 if self.held is not None else _TOGETHER)
        tasks = [(part.start, part.stop) for part in blocks(n_draws, size)]
        parts = workers.map(partial(self.reached, observed, sampler), tasks, "label draws")
        return np.asarray(np.sum(list(parts), axis=0))

    def reached(
        self, observed: StepDown, sampler: LabelSampler, start: int, stop: int
    ) -> NDArray[np.int64]:
        """Count those of some draws."""
        labels = sampler.draw(start, stop)
        # Weights that are not held are computed for every part: fewer and larger ones, then.
        fitting = max(1, (_SUMS if self.held is not None else _HELD) // self.stated.size)
        z = (np.abs(self.standardised(labels[draws])) for draws in blocks(stop - start, fitting))
        return np.asarray(sum(observed.count(each.reshape(len(each), -1)) for each in z))


def _tile(places: Places, probs: Array, keep: bool) -> tuple[Array | None, Array, Array, Array, Array]:
    weights = places.weights(probs)
    squared = weights**2
    return (
        weights if keep else None,
        weights.sum(axis=0),
        squared.sum(axis=0),
        weights.T @ probs,
        squared.T @ (probs * (1.0 - probs)),
    )


# ------------------------------------------------------------------ places


REACH = 0.05
SCALES = (1.0, 0.25, 0.0625)
_CANDIDATES = 8  # a place


@dataclass(frozen=True, eq=False)
class Places:
    """P predictions, each seen with K kernels: L = P · K places, kernel by kernel.

    ``heights`` are every kernel's weights of a point at itself, which are taken as 1, (K, P).
    """

    kernels: tuple[Kernel, ...]
    points: Array
    heights: Array

    @classmethod
    def of(cls, kernels: tuple[Kernel, ...], points: Array) -> Places:
        """Look at every point with every kernel."""
        heights = np.array([kernel.paired(points, points) for kernel in kernels])
        if not np.all(heights > 0.0):
            k, p = (int(i) for i in np.argwhere(~(heights > 0.0))[0])
            raise InputError(
                f"the kernel {quoted(kernels[k], 200)} is {heights[k, p]:.3g} at evaluation point {p} "
                "and itself; a place needs a kernel that is positive there."
            )
        return cls(kernels, points, heights)

    def __len__(self) -> int:
        return int(self.heights.size)

    def weights(self, probs: Array) -> Array:
        """Return (n, L) weights of rows (n, m): 1 at the place, 0 beyond its reach."""
        parts = [
            kernel(probs, self.points) / height
            for kernel, height in zip(self.kernels, self.heights, strict=True)
        ]
        found = np.concatenate(parts, axis=1)
        found[~(found >= REACH)] = 0.0
        return found


def kernels_of(kernel: Kernel | Sequence[Kernel] | None, probs: Array) -> tuple[Kernel, ...]:
    """Return real-valued kernels with their bandwidths fitted; None: three scales of the SKCE's."""
    if kernel is None:
        widest = Exponential().fitted(probs)
        width = float(widest.bandwidth)
        return (widest, *(Exponential(scale * width) for scale in SCALES[1:]))
    given = (kernel,) if isinstance(kernel, Kernel) else kernel
    if not isinstance(given, Sequence) or not given or not all(isinstance(k, Kernel) for k in given):
        raise InputError(
            f"kernel is {quoted(kernel)}; give a real-valued kernel of caltest.kernels, such as "
            "Gaussian(0.1), or a list of them."
        )
    return tuple(each.fitted(probs) for each in given)


def given_points(points: ArrayLike, probs: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the (P, m) points, and the rows they are, −1 for those that are none."""
    n, m = probs.shape
    check_unmasked("points", points)
    try:
        found = np.array(points)
        numbers = real_array("points", found)
    except Exception:  # what calls itself an array may raise anything
        raise InputError(
            f"points is of type {type(points).__name__} and holds no numbers; give rows "
            "(whole numbers) or predictions of shape (k, m)."
        ) from None
    if found.ndim == 1 and found.size and found.dtype.kind in "iu":
        outside = np.flatnonzero((found < 0) | (found >= n))
        if len(outside):
            raise InputError(
                f"points has the row {found[outside[0]]}, and there are {n}; "
                f"give rows from 0 to {n - 1}."
            )
        rows = found.astype(np.intp)
        return probs[rows], rows
    if found.ndim != 2 or found.shape[1] != m or not found.size:
        raise InputError(
            f"points has shape {found.shape}; give rows (whole numbers) or predictions of shape "
            f"(k, {m}), with the {m} classes that the lens shows."
        )
    sums = numbers.sum(axis=1)
    wrong = np.flatnonzero(~((numbers >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= 1e-6 * m)))
    if len(wrong):
        raise InputError(
            f"points has in row {wrong[0]} (counting from 0) no probabilities that sum to 1; "
            "give predictions."
        )
    return numbers / sums[:, None], np.full(len(numbers), -1, dtype=np.intp)


def cover(probs: Array, count: int, kernel: Kernel) -> NDArray[np.intp]:
    """Choose rows that cover the predictions, from the predictions alone: all, if there are few.

    Half of the attention goes to where the rows are, half to where their labels are uncertain (a row
    counts as the variance of its label, 1 − Σ p²): there are few rows between classes, and much to be
    seen. Candidates are taken evenly along a fixed order of the rows, weighted so. Of these the one
    with most candidates near it comes first, then the one with most that are not yet near another.

    Of the rows returned no two are equal, they are in the order chosen, and the same for every order of
    the rows given.
    """
    order = fixed_order(probs)
    if len(order) > count * _CANDIDATES:
        uncertain = 1.0 - np.einsum("ij,ij->i", probs, probs)[order]
        total = float(uncertain.sum())
        shares = uncertain / total if total > 0.0 else np.zeros_like(uncertain)
        sums = np.cumsum(shares + 1.0 / len(order))
        evenly = (np.arange(count * _CANDIDATES) + 0.5) / (count * _CANDIDATES)
        order = order[np.searchsorted(sums, evenly * sums[-1])]
    first, number = np.unique(probs[order], axis=0, return_index=True, return_counts=True)[1:]
    first, number = first[(by := np.argsort(first))], number[by]
    different = order[first]
    if len(different) <= count:
        return different
    near = kernel(probs[different], probs[different])
    near /= np.maximum(np.diagonal(near), np.finfo(float).tiny)
    np.clip(near, 0.0, 1.0, out=near)
    left, chosen = number.astype(np.float64), np.zeros(len(different), dtype=bool)
    picks = []
    for _ in range(count):
        gain = np.where(chosen, -1.0, near.T @ left)
        pick = int(gain.argmax())
        picks.append(pick)
        chosen[pick] = True
        left *= 1.0 - near[:, pick]
    return different[picks]


# ------------------------------------------------------------------ which places are told

MOST_TOLD = 5
NOT_MUCH_SMALLER = 0.8


def places_told(
    places: Places,
    standardised: Array,
    significant: NDArray[np.bool_],
    weights: Array,
    most: int = MOST_TOLD,
) -> tuple[int, ...]:
    """Choose places greedily: next comes the place with the largest |z| whose main claim is new.

    The main claim of a place is its class with the largest |z|, and whether that is over- or
    under-predicted. Of the places near, with the same main claim and a |z| not much smaller, the
    one with the fewest rows near it is chosen: it is the most precise. A main claim is new unless a
    place chosen before, which reaches this place or is in its reach, makes it too.

    Of (L, m) z, whether they are significant, and (L,) effective numbers of rows near.
    """
    size = np.where(significant, np.abs(standardised), 0.0)
    main, left = size.argmax(axis=1), size.max(axis=1)
    signs = np.where(significant, np.sign(standardised), 0.0)
    own = signs[np.arange(len(signs)), main]
    centres = np.tile(places.points, (len(places.kernels), 1))
    found: list[int] = []

    def reached(place: int) -> NDArray[np.bool_]:
        """Say which places reach a place, or are reached by it."""
        reach = places.weights(centres[place][None, :])[0] >= REACH
        kernel, point = divmod(place, len(places.points))
        forth = places.kernels[kernel](places.points, places.points[point][None, :])[:, 0]
        forth = np.tile(forth >= REACH * places.heights[kernel, point], len(places.kernels))
        return np.asarray(reach | forth)

    while len(found) < most and left.max() > 0.0:
        strongest = int(left.argmax())
        near = reached(strongest)
        alike = near & (main == main[strongest]) & (own == own[strongest])
        alike &= left >= NOT_MUCH_SMALLER * left[strongest]
        place = int(np.where(alike, weights, np.inf).argmin())
        found.append(place)
        for told in {strongest, place}:
            left[reached(told) & (signs[told, main] == own)] = 0.0
            left[told] = 0.0
    return tuple(found)
