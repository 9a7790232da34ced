"""`miscalibration_bounds`: the smallest error that a model must have somewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caltest._arguments import MOST_RESAMPLES, arguments, level_of_confidence
from caltest._parallel import Workers, single_threaded_blas
from caltest._visible import quoted
from caltest.binning import EqualWidth, reliability_curve
from caltest.bounds.result import MiscalibrationBounds, ReliabilityPoints, SideBound, ViewBounds
from caltest.bounds.shifts import (
    SIDES,
    ShiftedScan,
    compared,
    grid_of_tolerances,
    largest_refuted,
    places,
)
from caltest.data import Rows, Sample, impossible_labels, sample
from caltest.data.clusters import refuse_clusters
from caltest.data.weights import check_alike
from caltest.exceptions import InputError
from caltest.laws import Classes
from caltest.lenses import ClassWise, Lens, event, find_lens, seen
from caltest.sampling import Rng, seed_of

_DRAWS = 499
_RESERVE = 5  # times the draws that a bound needs at least, so that luck in the draws costs little
_MOST_WITH_RESERVE = 9_999
_MOST_WORK = 5e10  # rows times draws: an hour and a half at worst on one core
_ROWS_OF_A_DRAW = 5_000  # what a draw costs besides its rows
_CURVE_BINS = 15


@arguments()
def miscalibration_bounds(
    probs: object,
    labels: object,
    *,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    confidence: float = 0.95,
    n_resamples: int | None = None,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> MiscalibrationBounds:
    """Bound from below how wrong some predictions are, in each direction, and show where.

    Parameters
    ----------
    probs, labels
        Predicted probabilities of classes and observed classes, as in :func:`caltest.test`.
    lens
        Which probability to look at: "top_label", "class:3", "top:5" or another lens that leaves
        two classes, or "classwise" for every class at once. Default: class 1 of two classes, the
        top label of more.
    class_names
        Names of the classes, in the order of the columns, as in :func:`caltest.test`. Default None.
    confidence
        Of all bounds together. Default 0.95.
    n_resamples
        Number of simulated label sets. Default None: 499, or more if there are many bounds: five
        times as many as the level of one bound needs, but beyond 9999 only as many as it needs. If
        that would take hours, you must give the number.
    rng, n_jobs, progress
        As in :func:`caltest.test`.

    Returns
    -------
    MiscalibrationBounds
        Frozen; ``print`` it, or call ``.where()``, ``.table()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, the lens leaves more than two classes,
        or there are too few simulated label sets for the confidence.

    Notes
    -----
    *The bounds.* Let p_i be the predicted and q_i the true probability of the event. ``over`` is a
    lower bound on the largest p_i − q_i of any row, and ``under`` on the largest q_i − p_i. Each
    is found by testing tolerances of increasing size with "scan": the bound is the last one before
    the first that is not rejected. The probability that a bound exceeds the truth is at most its
    level, for any number of rows: (1 − confidence)/2, or (1 − confidence)/(2m) with "classwise".
    Only labels are random: predictions are held fixed, and the truth is that of these rows.

    *Where.* ``pvalue`` of a range is adjusted for all ranges by Westfall and Young's step-down
    maxima, and for the number of bounds. ``somewhere_by`` holds for all ranges together, and never
    exceeds the overall bound. It is about some rows of the range: a range in which many
    predictions are right, or wrong in the other direction, may be right on average. Bounds,
    p-values and ``somewhere_by`` each hold with the given confidence; there is no correction for
    using all three kinds of statement at once. The proofs are in "Many looks" in the
    documentation.

    *Cost.* About ten million simulated labels a second on one core if the model is wrong, and ten
    times as many if it is not. Bounds for 1000 classes at once need 40 000 simulated label sets
    each, which takes hours or days.

    References
    ----------
    Westfall and Young, "Resampling-based multiple testing", 1993; Dümbgen and Spokoiny, "Multiscale
    testing of qualitative hypotheses", Annals of Statistics 29 (2001).

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> bounds = caltest.miscalibration_bounds(digits.probs, digits.labels, rng=0)
    >>> bounds.over, bounds.under
    (0.285, 0.0)
    """
    confidence = float(confidence)
    classwise = isinstance(lens, str) and lens == "classwise"
    if not classwise:
        find_lens(lens)
    whole = sample(probs, labels, class_names=class_names)
    refuse_clusters(whole.rows.clusters, "a bound")
    check_alike(whole.rows, "a bound", "test with caltest.test, whose tolerance= takes weights")
    m = whole.rows.n_classes
    if classwise:
        # Of two classes, one says all: claiming too much of it is claiming too little of the other.
        views = [seen(whole, each) for each in ([ClassWise(k) for k in range(m)] if m > 2 else [None])]
    else:
        views = [seen(whole, lens, "top_label")]
        (view, lens_label), *_ = views
        if view.rows.n_classes != 2:
            raise InputError(
                f"the bounds are about one probability, and there are {view.rows.n_classes} classes "
                f"through the lens {quoted(lens_label)}; give 'top_label', 'classwise', 'class:0' or "
                "'top:5'."
            )
    level = level_of_confidence(confidence) / (2 * len(views))
    needed, n = draws_needed(level), len(whole.labels)
    if needed > MOST_RESAMPLES:
        raise InputError(
            f"a bound at level {level:.3g} needs {needed:,} draws, more than the {MOST_RESAMPLES:,} "
            "that are possible; give a lower confidence."
        )
    reserved = min(_RESERVE * (needed + 1) - 1, _MOST_WITH_RESERVE)
    n_draws = max(_DRAWS, reserved, needed) if n_resamples is None else int(n_resamples)
    if n_draws < needed:
        raise InputError(
            f"n_resamples is {n_draws}, and a bound at level {level:.3g} needs {needed} draws at "
            "least; give more, or leave it out."
        )
    if n_resamples is None and len(views) * n_draws * (n + _ROWS_OF_A_DRAW) > _MOST_WORK:
        many = "one class, as in lens='class:3', " if len(views) > 1 else "fewer rows "
        raise InputError(
            f"{len(views):,} probabilities of {n:,} rows with {n_draws:,} draws each would take hours; "
            f"give {many}or a lower confidence, or n_resamples={n_draws} if it is to be done."
        )
    plan = BoundsPlan(level, 2 * len(views), n_draws, seed_of(rng), Workers(n_jobs, progress))
    with single_threaded_blas():
        found = tuple(plan.view(event(label, view.rows), view, label) for view, label in views)
    return MiscalibrationBounds(
        views=found,
        confidence=confidence,
        level=level,
        n_samples=n,
        n_classes=m,
        lens="classwise" if classwise else views[0][1],
        n_resamples=n_draws,
        seed=plan.seed,
        warnings=(*whole.rows.notes, *impossible_labels(whole if classwise else views[0][0])),
    )


def draws_needed(level: float) -> int:
    """Return the draws without which no bound of such a level is possible."""
    return math.ceil(round(1.0 / level, 6)) - 1


@dataclass(frozen=True)
class BoundsPlan:
    """How bounds are found: ``family`` in all, two a view; each fails with chance ``level``."""

    level: float
    family: int
    n_draws: int
    seed: int
    workers: Workers

    def view(self, name: str, view: Sample, lens: str | None) -> ViewBounds:
        """Return the bounds of one view."""
        probs = view.rows.probs
        calibrated = ShiftedScan.of(probs, np.zeros(1, dtype=np.intp))
        labels = view.labels[calibrated.intervals.order]
        start = compared(calibrated, labels, self.n_draws, self.seed, self.workers)
        wrong = [side for side in SIDES if start[side].pvalues[0] <= self.level]
        scan = ShiftedScan(calibrated.probs, calibrated.intervals, grid_of_tolerances())
        shifted = compared(scan, labels, self.n_draws, self.seed, self.workers) if wrong else {}
        sides = {}
        for side in SIDES:
            pvalue = min(1.0, self.family * float(start[side].pvalues[0]))
            sides[side] = SideBound(side, 0.0, False, pvalue, ())
            if side in wrong:
                last = max(int(np.argmax(shifted[side].pvalues > self.level)) - 1, 0)
                refuted = largest_refuted(scan, labels, side, self.level)
                somewhere_by = scan.tolerances[np.minimum(refuted, last)] * (refuted >= 0)
                adjusted = np.minimum(1.0, self.family * start[side].adjusted)
                found = adjusted <= self.family * self.level * (1.0 + 1e-12)
                ranges = places(scan, labels, found, somewhere_by, adjusted, start[side].observed)
                sides[side] = SideBound(side, float(scan.tolerances[last]), True, pvalue, ranges)
        curve = reliability_curve(Rows(Classes(scan.probs)), labels, EqualWidth(_CURVE_BINS))
        points = (curve.predicted, curve.observed, curve.counts)
        return ViewBounds(
            event=name,
            lens=lens,
            over=sides["over"],
            under=sides["under"],
            curve=ReliabilityPoints(*(tuple(each.tolist()) for each in points)),
        )
