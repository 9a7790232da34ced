"""`certificate`: by how much a model can be wrong at most, in every bin or at every score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import betaincinv

from caltest._arguments import Number, arguments, choose, level_of_confidence, positive_integer
from caltest.binning import Binning, EqualMass, reliability_curve
from caltest.bounds.certificate_result import Certificate, Direction, Method, Proved, checked_wanted
from caltest.bounds.isotonic import (
    Cells,
    ConfidenceBand,
    Segment,
    cells_wanted,
    interval_bounds,
    level_of,
    pool,
)
from caltest.data import Sample, sample
from caltest.exceptions import InputError
from caltest.lenses import Lens, event, seen

# ------------------------------------------------------------------ certificate bins


Array: TypeAlias = NDArray[np.float64]

LARGEST_LEVEL = 0.25  # of a single bound, for the proof in `mean_bounds`


def mean_bounds(counts: Array, events: Array, level: float) -> tuple[Array, Array]:
    r"""Return bounds of the mean of a group's probabilities, which may all differ.

    Parameters
    ----------
    counts, events
        Rows and events of every group, (K,); counts ≥ 1. They need not be whole numbers.
    level
        Probability at most with which a single bound fails, up to 1/4.

    Returns
    -------
    tuple of arrays
        Lower and upper bounds, (K,). Clopper and Pearson's, but for one event (or one row without),
        where they are level / n (or 1 − level / n).

    Notes
    -----
    *Claim.* Let S be the sum of n independent events of probabilities with mean q, and L(0) = 0,
    L(1) = δ/n, L(s) for s ≥ 2 the q at which P(B ≥ s) = δ, B ~ Bin(n, q). If δ ≤ 1/4, then
    P(L(S) > q) ≤ δ.

    *Proof.* L increases, so {L(S) > q} = {S ≥ s} for the smallest s with L(s) > q. If there is none, or
    q = 0, nothing is to be shown. If s = 1: q < δ/n, and P(S ≥ 1) ≤ nq < δ. Else s ≥ 2 and
    P(B ≥ s) < δ. Then s ≥ nq + 1: for nq ≤ 1 plainly; for nq > 1, P(B ≥ nq) > 1/4 ≥ δ (Greenberg and
    Mohri 2014), so s is above the smallest whole number that is not below nq. And for
    s − 1 ≥ nq Hoeffding's theorem says P(S ≤ s − 1) ≥ P(B ≤ s − 1), that is, P(S ≥ s) ≤ P(B ≥ s) < δ.
    The upper bound is that of the rows without an event, mirrored.

    Clopper and Pearson's own L(1) = 1 − (1 − δ)^(1/n) is above δ/n, and fails: if one row has all the
    probability, nq = a, then P(S ≥ 1) = a, which can reach n(1 − (1 − δ)^(1/n)), about δ + δ²/2.

    References
    ----------
    Hoeffding, "On the distribution of the number of successes in independent trials", Annals of
    Mathematical Statistics 27 (1956), Theorem 4; Greenberg and Mohri, "Tight lower bound on the
    probability of a binomial exceeding its expectation", Statistics and Probability Letters 86 (2014).

    Examples
    --------
    >>> low, high = mean_bounds(np.array([10.0, 10.0]), np.array([1.0, 8.0]), 0.025)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0025, 0.4439], [0.445, 0.9748])
    """
    return _lower(counts, events, level), 1.0 - _lower(counts, counts - events, level)


def _lower(counts: Array, events: Array, level: float) -> Array:
    found = betaincinv(np.maximum(events, 1.0), counts - np.maximum(events, 1.0) + 1.0, level)
    return np.where(events > 1.0, found, np.clip(events, 0.0, 1.0) * level / counts)


# ------------------------------------------------------------------ certify


_METHODS = dict.fromkeys(("bins", "isotonic"), True)
_DEFAULT_BINS = 10


_LEAST = 1.0 - 2.0 * LARGEST_LEVEL
_CONFIDENCE = Number(_LEAST, 1.0, "[)", f"give one from {_LEAST:g} to below 1, such as 0.95")


@arguments(cells=positive_integer, confidence=_CONFIDENCE)
def certificate(
    probs: object,
    labels: object,
    *,
    lens: str | Lens | None = None,
    method: Method = "bins",
    n_bins: int | None = None,
    binning: Binning | None = None,
    cells: int | None = None,
    confidence: float = 0.95,
    wanted: float | None = None,
) -> Certificate:
    """Bound how far a model's probabilities are from the truth: "within ±3 points, 95% confidence".

    A test that does not reject proves nothing. A certificate does: with the stated confidence, and in
    every finite sample, the distance is at most what it says.

    Parameters
    ----------
    probs, labels
        As in :func:`caltest.test`. Rows must be independent.
    lens
        "top_label", "class:3", "top:5" or an object of :mod:`caltest.lenses` that leaves two classes.
        Default None: binary predictions as they are, more classes through "top_label".
    method
        "bins" (default): the mean probability in every bin against the mean statement. It assumes
        nothing, but errors that cancel within a bin do not show. "isotonic": the probability at every
        score against the score. It assumes that the probability does not fall as the score rises, and
        needs far more rows; near the smallest and the largest score it says little, as nothing lies
        beyond.
    n_bins
        Bins of equal numbers of rows. Default 10. Fewer bins are certified more closely, and hide more.
    binning
        An object of :mod:`caltest.binning` instead.
    cells
        Isotonic: scores are pooled to this many cells of equal mass, cut again by as many of equal
        width. Default 4 n^(1/3). More cells are not better: with every score a cell of its own
        (``cells=n``, the method as published) the certified distances of 2000 rows were a twentieth
        to a quarter larger.
    confidence
        Of all statements together, 0.5 or more. Default 0.95.
    wanted
        A distance, 0.005 or more: whether it is reached (isotonic: for nine tenths of the rows), and
        how many rows would do (see :meth:`Certificate.samples_for`). Default None.

    Returns
    -------
    Certificate
        Frozen; ``print`` it, or call ``.summary()``, ``.table()``, ``.to_dict()``.

    Raises
    ------
    InputError
        If the input is no set of predictions and labels, the lens leaves more than two classes, or an
        option is not one of those above or not of this method.

    Notes
    -----
    Bins: two Clopper–Pearson bounds a bin at level α/(2K) each, K bins; rows of a bin may have
    different probabilities (the proof is in ``caltest.bounds.certify.mean_bounds``, with the
    correction it asks for where one event was seen). Isotonic: Clopper–Pearson bounds of all intervals
    of the G cells, at level α/(G² + G) each (``caltest.bounds.isotonic``). Bins and cells depend on the
    predictions only.

    References
    ----------
    Clopper and Pearson, Biometrika 26 (1934); Hoeffding, Annals of Mathematical Statistics 27 (1956);
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel, "Honest calibration assessment for binary outcome
    predictions", Biometrika 110 (2023).

    Examples
    --------
    >>> import caltest
    >>> model = caltest.simulation.tempered(n_samples=5000, temperature=1.0, rng=0)
    >>> found = caltest.certificate(model.probs, model.labels)
    >>> found.proved < found.distance < 0.12, found.miscalibrated
    (True, ())
    """
    choose("method", method, _METHODS)
    confidence = float(confidence)
    target = None if wanted is None else checked_wanted(wanted)
    rule = _binning(method, n_bins, binning, cells)
    view, label = seen(sample(probs, labels), lens, "top_label")
    if view.rows.n_classes != 2:
        raise InputError(
            f"a certificate is of one probability, and there are {view.rows.n_classes} classes "
            f"through the lens {label!r}; give a lens such as 'top_label' or 'class:0'."
        )
    found = _isotonic(view, cells, confidence) if rule is None else _bins(view, rule, confidence)
    made = Certificate(
        method=method,
        confidence=confidence,
        n_samples=view.rows.n_samples,
        event=event(label, view.rows),
        lens=label,
        wanted=target,
        warnings=view.rows.notes,
        **found,
    )
    return made if target is None else replace(made, samples_wanted=made.samples_for(target))


def _binning(
    method: Method, n_bins: int | None, binning: Binning | None, cells: int | None
) -> Binning | None:
    """Return the bins asked for; None for the isotonic method, which has none."""
    if method == "isotonic":
        if n_bins is not None or binning is not None:
            raise InputError("the isotonic method has no bins; leave n_bins and binning out.")
        return None
    if cells is not None:
        raise InputError("cells are those of method='isotonic'; give n_bins, or that method.")
    if binning is None:
        return EqualMass(_DEFAULT_BINS if n_bins is None else n_bins)
    if n_bins is not None:
        raise InputError("n_bins and binning are both given; give one of them.")
    return binning


def _bins(view: Sample, rule: Binning, confidence: float) -> dict[str, Any]:
    """Return the fields of a certificate by bins."""
    bins = reliability_curve(view.rows.probs, view.labels, rule)
    counts, events = bins.counts.astype(np.float64), bins.events.astype(np.float64)
    level = level_of_confidence(confidence) / (2.0 * len(counts))
    lower, upper = mean_bounds(counts, events, level)
    over, under = bins.predicted - lower, upper - bins.predicted
    proved = [
        Proved(
            low=float(bins.smallest[k]),
            high=float(bins.largest[k]),
            direction="over" if under[k] < 0.0 else "under",
            at_least=-min(float(over[k]), float(under[k])),
            rows=int(counts[k]),
        )
        for k in np.flatnonzero(np.minimum(over, under) < 0.0)
    ]
    return {
        **_distances(np.maximum(over, under), over, under, proved),
        "crossings": (),
        # What is proved is proved of the scores that there are, not of all between a bin's edges.
        "starts": bins.smallest,
        "ends": bins.largest,
        "counts": counts,
        "stated": bins.predicted,
        "estimates": bins.observed,
        "lower": lower,
        "upper": upper,
        "level": level,
    }


def _isotonic(view: Sample, n_cells: int | None, confidence: float) -> dict[str, Any]:
    """Return the fields of an isotonic certificate."""
    scores = view.rows.probs[:, 1]
    alpha = level_of_confidence(confidence)
    cells = pool(scores, view.labels, cells_wanted(len(scores)) if n_cells is None else n_cells)
    lower, upper = interval_bounds(cells.counts, cells.events, alpha)
    band = ConfidenceBand(cells.starts, cells.ends, lower, upper)
    over = cells.scores - band.lower_at(cells.scores)
    under = band.upper_at(cells.scores) - cells.scores
    first = np.flatnonzero(np.r_[True, np.diff(cells.cell) > 0])
    largest = np.maximum.reduceat(np.maximum(over, under), first)
    found = _distances(largest, over, under, _proved(cells, band))
    crossings = band.crossings()
    if crossings:
        found |= {"distance": 1.0, "over": 1.0, "under": 1.0}
    return {
        **found,
        "crossings": crossings,
        "starts": cells.starts,
        "ends": cells.ends,
        "counts": cells.counts,
        "stated": cells.stated,
        "estimates": np.clip(
            isotonic_regression(cells.events / cells.counts, weights=cells.counts).x, 0.0, 1.0
        ),
        "lower": lower,
        "upper": upper,
        "level": level_of(len(cells.counts), alpha),
    }


def _distances(largest: Array, over: Array, under: Array, proved: list[Proved]) -> dict[str, Any]:
    """Return the largest distance either way, the least possible one, and where it is proved."""
    return {
        "distances": largest,
        "distance": float(largest.max()),
        "over": max(0.0, float(over.max())),
        "under": max(0.0, float(under.max())),
        "proved": max((each.at_least for each in proved), default=0.0),
        "miscalibrated": tuple(sorted(proved)),
    }


def _proved(cells: Cells, band: ConfidenceBand) -> list[Proved]:
    """Return the ranges in which the diagonal is outside the band."""
    found = []
    sides: tuple[tuple[Direction, Array, list[Segment]], ...] = (
        ("under", band.lower_at(cells.scores) - cells.scores, band.too_low()),
        ("over", cells.scores - band.upper_at(cells.scores), band.too_high()),
    )
    for direction, gap, ranges in sides:
        for low, high in ranges:
            inside = (cells.scores >= low) & (cells.scores <= high) & (gap > 0.0)
            rows = int(cells.multiplicities[inside].sum())
            found.append(Proved(low, high, direction, float(gap[inside].max()), rows))
    return found
