"""`witness`: near which predictions is which class over- or under-predicted?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from caltest._arguments import (
    anything,
    arguments,
    check_draws,
    level_of_confidence,
)
from caltest._parallel import Workers, single_threaded_blas
from caltest._sampling import Rng, seed_of
from caltest._tiles import Array
from caltest.data import Sample, impossible_labels, sample
from caltest.exceptions import InputError
from caltest.kernels import Kernel
from caltest.lenses import Lens, find_lens, seen
from caltest.localisation.places import (
    Field,
    Places,
    RowPlaces,
    cover,
    given_points,
    kernels_of,
    places_told,
)
from caltest.localisation.result import Witness
from caltest.predictive import recognised
from caltest.pvalues import StepDown


@arguments(kernel=anything)
def witness(
    probs: object,
    labels: object,
    *,
    kernel: Kernel | Sequence[Kernel] | None = None,
    lens: str | Lens | None = None,
    points: ArrayLike | None = None,
    n_points: int = 128,
    confidence: float = 0.95,
    n_resamples: int = 999,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Witness:
    """Find near which predictions which classes are over- and under-predicted.

    The witness at a prediction p is w(p) = n⁻¹ Σ_j k(p, g_j) D_j with the residuals
    D_j = onehot(y_j) − g_j: a vector over the classes. Where an entry is positive, the class came true
    more often than stated near p (under-predicted); where negative, less often (over-predicted).

    Parameters
    ----------
    probs, labels
        Predictions and labels as :func:`caltest.test` takes them.
    kernel
        A real-valued kernel of :mod:`caltest.kernels`, or a list of several, which make one family:
        a *place* is a point seen with one kernel. Default: ``Exponential(bandwidth, "tv")`` at three
        bandwidths, the SKCE's own (the median distance of the predictions) and a 4th and a 16th of
        it: a confident model has a median distance near 1, as far apart as predictions can be, and
        with this bandwidth alone all rows would be near every point. Weights below 5% of the point's
        own, k(p, p), count as 0: those beyond three bandwidths of the exponential kernel.
    lens
        As in :func:`caltest.test`. Default None: the full probability vector.
    points
        Where to look: rows (k,) of ``probs``, whole numbers, or predictions (k, m). They must not have
        been chosen by looking at the labels, else the p-values mean nothing. Default: rows
        that cover the predictions, chosen from the predictions only (see Notes).
    n_points
        How many points at most, if ``points`` is None. Default 128, which with three kernels are 384
        places: more see finer, and cost in proportion.
    confidence
        Claims are made at level 1 − confidence, for all places and classes together. Default 0.95.
    n_resamples
        Number of label draws. Default 999: adjusted p-values down to 0.001.
    rng, n_jobs, progress
        As in :func:`caltest.test`.

    Returns
    -------
    Witness
        Frozen; ``print`` it, or call ``.table()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If the input is no set of predictions and labels, or an option cannot be used.

    Notes
    -----
    *Statistic*: z = Σ_j k D_jc / √(Σ_j k² g_jc (1 − g_jc) + k(p, p)²), with the exact variance of the
    sum given the predictions. The addend is what one row at p itself could contribute at most: so a
    single surprise in a class called almost impossible has |z| below 1, and rare classes do not drown
    the others.

    *p-values*: labels are drawn from the predictions, which are held fixed, and |z| of all places and
    classes is compared with step-down maxima of the draws (Westfall and Young 1993): p-values are
    adjusted for all places and classes, however they depend on each other.

    *What they promise*: if the model is calibrated, the chance of any claim is at most 1 − confidence,
    exactly so for any number of rows, kernel and points (weak control). If it errs, the chance of a
    claim (place, class) such that this class is stated rightly *in every row of positive weight* is at
    most that too, whatever happens elsewhere: those sums have the joint law of the draws (strong
    control, for this hypothesis). It is not promised for narrower hypotheses. The witness mixes a
    neighbourhood: the prediction at its centre may be right and have wrong neighbours, and the widest
    kernel may have all rows for neighbours; nor is there protection from a claim where errors within
    reach cancel. The differences are those of the places that stood out, so on average the truth is
    smaller.

    *Points*: if there are more than eight times ``n_points`` rows, that many candidates are taken
    evenly along a fixed order of the rows, counted one half by number, the other by the variance
    1 − Σ p² of their labels, as predictions between classes are few, but tell most. Equal ones are
    kept once. Then comes the candidate that covers most, then the one that covers most of what is not
    yet covered, by the second kernel (if there is one). The order of the rows does not matter, and
    nothing is random.

    *Cost*: rows times places times draws additions, however many classes there are. Weights of up to
    512 MiB are held; beyond that they are computed anew for every 256 draws. Of two classes one is
    tested, since the other mirrors it.

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
    confidence, n_resamples, n_points = float(confidence), int(n_resamples), int(n_points)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    view, lens_label = _view(probs, labels, lens)
    return _search(view, lens_label, kernel, points, n_points, confidence, n_resamples, seed, workers)


def _search(
    view: Sample,
    lens: str | None,
    kernel: Kernel | Sequence[Kernel] | None,
    points: ArrayLike | None,
    n_points: int,
    confidence: float,
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Witness:
    predictions, level = view.rows, level_of_confidence(confidence)
    with single_threaded_blas():
        kernels = kernels_of(kernel, predictions.probs)
        chosen, rows = _points(points, n_points, kernels, predictions.probs)
        places = Places.of(kernels, chosen)
        field = Field.of(predictions.probs, places, workers)
        sums = field.labelled(view.labels[None, :])[0].T
        standardised = field.standardised(view.labels[None, :])[0]
        test = StepDown.of(np.abs(standardised))
        counts = field.exceedances(test, predictions.sampler(seed), n_resamples, workers)
    pvalues = test.pvalues(counts, n_resamples).reshape(standardised.shape)
    if predictions.n_classes == 2:
        standardised = np.hstack([-standardised, standardised])
        pvalues = np.hstack([pvalues, pvalues])
    heights = places.heights.reshape(-1, 1)
    return Witness(
        rows=np.tile(rows, len(kernels)),
        centres=np.tile(chosen, (len(kernels), 1)),
        kernels=tuple({"kernel": type(each).__name__, **each.parameters} for each in kernels),
        values=(sums - field.stated) * heights / predictions.n_samples,
        standardised=standardised,
        pvalues=pvalues,
        stated=_means(field.stated, field.totals),
        shares=_means(sums, field.totals),
        weights=field.effective_rows,
        told=places_told(places, standardised, pvalues <= level, field.effective_rows),
        classes=predictions.classes,
        confidence=confidence,
        n_samples=predictions.n_samples,
        n_classes=predictions.n_classes,
        lens=lens,
        n_resamples=n_resamples,
        seed=seed,
        warnings=_notes(view, kernels),
    )


def _view(probs: object, labels: object, lens: str | Lens | None) -> tuple[Sample, str | None]:
    find_lens(lens)  # a wrong name is found before the data are read
    if recognised(probs) is not None:
        raise InputError("probs are distributions of numbers; give probabilities of classes.")
    return seen(sample(probs, labels), lens)


def _points(
    points: ArrayLike | None, count: int, kernels: tuple[Kernel, ...], probs: Array
) -> tuple[Array, RowPlaces]:
    if points is not None:
        return given_points(points, probs)
    rows = cover(probs, count, kernels[min(1, len(kernels) - 1)])
    return probs[rows], rows


def _means(sums: Array, totals: Array) -> Array:
    """Divide sums by weights; NaN where no row is near."""
    near = np.broadcast_to(totals[:, None] > 0.0, sums.shape)
    return np.asarray(np.divide(sums, totals[:, None], out=np.full(sums.shape, np.nan), where=near))


def _notes(view: Sample, kernels: tuple[Kernel, ...]) -> tuple[str, ...]:
    notes = [*view.rows.notes, *(note for each in kernels for note in each.notes)]
    return tuple(dict.fromkeys([*notes, *impossible_labels(view)]))
