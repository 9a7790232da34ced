"""`miscalibration_bounds`: the smallest error that a model must have somewhere.

Shifted models, and scans that refute them: of an error on average, or of some rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from caltest._arguments import MOST_RESAMPLES, arguments, level_of_confidence
from caltest._parallel import Workers, single_threaded_blas
from caltest._sums import blocks, law_of_sum
from caltest._visible import quoted
from caltest.binning import EqualWidth, reliability_curve
from caltest.bounds.result import MiscalibrationBounds, Place, ReliabilityPoints, SideBound, ViewBounds
from caltest.data import Rows, Sample, impossible_labels, sample
from caltest.data.clusters import refuse_clusters
from caltest.data.weights import check_alike
from caltest.exceptions import InputError
from caltest.forms import Intervals, Side
from caltest.laws import Classes
from caltest.lenses import ClassWise, Lens, event, find_lens, seen
from caltest.pvalues import StepDown, count, pvalue
from caltest.sampling import DRAWS, ROWS, Rng, generator, seed_of

_DRAWS = 499
_RESERVE = 5  # times the draws that a bound needs at least, so that luck in the draws costs little
_MOST_WITH_RESERVE = 9_999
_MOST_WORK = 5e10  # rows times draws: an hour and a half at worst on one core
_ROWS_OF_A_DRAW = 5_000  # what a draw costs besides its rows
_CURVE_BINS = 15

Array: TypeAlias = NDArray[np.float64]
Grid: TypeAlias = NDArray[np.intp]
SIDES: tuple[Side, ...] = ("over", "under")


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
            p = min(1.0, self.family * float(start[side].pvalues[0]))
            sides[side] = SideBound(side, 0.0, False, p, ())
            if side in wrong:
                last = max(int(np.argmax(shifted[side].pvalues > self.level)) - 1, 0)
                refuted = largest_refuted(scan, labels, side, self.level)
                somewhere_by = scan.tolerances[np.minimum(refuted, last)] * (refuted >= 0)
                adjusted = np.minimum(1.0, self.family * start[side].adjusted)
                found = adjusted <= self.family * self.level * (1.0 + 1e-12)
                ranges = places(scan, labels, found, somewhere_by, adjusted, start[side].observed)
                sides[side] = SideBound(side, float(scan.tolerances[last]), True, p, ranges)
        curve = reliability_curve(Rows(Classes(scan.probs)), labels, EqualWidth(_CURVE_BINS))
        points = (curve.predicted, curve.observed, curve.counts)
        return ViewBounds(
            event=name,
            lens=lens,
            over=sides["over"],
            under=sides["under"],
            curve=ReliabilityPoints(*(tuple(each.tolist()) for each in points)),
        )


# ------------------------------------------------------------------ shifts
#
# An event is drawn for a score p shifted by ε if u ≥ 1 − (p − ε), that is if p + u − 1 ≥ ε, with one
# uniform u for all ε. Counted over a piece of neighbouring rows, p + u − 1 in the cells of a grid
# of tolerances gives the number of events for every tolerance of the grid, of both sides: one number
# drawn for every row and draw, whatever the number of tolerances.


#: Tolerances are multiples of 1/UNIT.
UNIT = 10_000
# Where steps of the tolerances begin, and how long they are.
_STEPS = ((0, 1), (20, 2), (100, 5), (400, 10), (1000, 20), (2000, 50), (5000, 100))


def grid_of_tolerances() -> Grid:
    """Return the tolerances 0 to 1 in units of 1/10 000, steps growing with them."""
    parts = [
        np.arange(start, stop, step) for (start, step), (stop, _) in pairwise((*_STEPS, (UNIT, 0)))
    ]
    return np.concatenate([*parts, [UNIT]]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class ShiftedScan:
    """The statistic "scan" of two classes, shifted by every tolerance of a grid.

    ``probs`` are predictions in the order of the second column, (n, 2); ``grid`` has (G,) tolerances,
    from 0, in units of 1/UNIT.
    """

    probs: Array
    intervals: Intervals
    grid: Grid

    @classmethod
    def of(cls, probs: Array, grid: Grid) -> ShiftedScan:
        """Sort the rows, and fix the intervals."""
        found = Intervals.dyadic(probs[:, 1])
        return cls(probs[found.order], found, grid)

    @cached_property
    def tolerances(self) -> Array:
        """The grid as differences of probabilities, (G,)."""
        return self.grid / UNIT

    @cached_property
    def expected_and_scale(self) -> dict[Side, tuple[Array, Array]]:
        """Σ_I p^ε, −∞ of intervals without rows, and 1/(standard deviation + 1), (L, G) each."""
        return {side: self._shifted_sums(side) for side in SIDES}

    def _shifted_sums(self, side: Side) -> tuple[Array, Array]:
        """Return Σ_I p^ε and 1/(√(Σ_I p^ε (1 − p^ε)) + 1), (L, G), for p^ε = max(p − ε, 0).

        p is the probability of the event for "over", of no event for "under". Rows with p > ε are the
        last of a piece, or the first: cumulative sums give all tolerances at once.
        """
        p = self.probs[:, 1 if side == "over" else 0]
        low, high = self.intervals.edges[:-1, None], self.intervals.edges[1:, None]
        if side == "over":
            start = np.clip(np.searchsorted(p, self.tolerances, side="right"), low, high)
            stop = np.broadcast_to(high, start.shape)
        else:
            count = np.searchsorted(p[::-1], self.tolerances, side="right")
            stop = np.clip(len(p) - count, low, high)
            start = np.broadcast_to(low, stop.shape)
        rows = stop - start
        firsts, seconds = (
            running[stop] - running[start]
            for running in (np.concatenate([[0.0], np.cumsum(p**power)]) for power in (1, 2))
        )
        shift = self.tolerances
        sums = np.maximum(firsts - shift * rows, 0.0)
        squares = seconds - 2.0 * shift * firsts + shift**2 * rows
        spread = np.maximum(sums - squares, 0.0)
        expected, variance = (
            np.concatenate([found[0] for _, found in self.intervals.sums(part[None])])
            for part in (sums, spread)
        )
        expected[~self.intervals.filled] = -np.inf
        return expected, 1.0 / (np.sqrt(np.maximum(variance, 0.0)) + 1.0)

    def errors(self, labels: NDArray[np.intp], side: Side) -> Array:
        """Return the standardised errors for labels in order, (L, G)."""
        counted = labels if side == "over" else 1 - labels
        pieces = np.diff(np.append(0, np.cumsum(counted))[self.intervals.edges])[None, :, None]
        expected, weight = self.expected_and_scale[side]
        events = np.concatenate([found[0] for _, found in self.intervals.sums(pieces)])
        return np.asarray((expected - events) * weight)

    def draw(self, seed: int, start: int, stop: int) -> dict[Side, tuple[Array, Array]]:
        """Return standardised errors of draws ``start`` to ``stop``, a block of the grid of seeds.

        Of both sides: the largest of any interval, for every tolerance, (B, G), and those of all
        intervals for tolerance 0, (B, L).
        """
        from caltest.loops import rows as _loops

        cells, found = self._cells(seed, start // DRAWS, stop - start), {}
        begins, ends = self.intervals.in_pieces
        for side in SIDES:
            expected, weight = self.expected_and_scale[side]
            maxima = np.empty((len(cells), len(self.grid)))
            first = np.empty((len(cells), len(begins)))
            _loops.largest_shifted(cells, side == "over", begins, ends, expected, weight, maxima, first)
            found[side] = maxima, first
        return found

    def _cells(self, seed: int, block: int, n_draws: int) -> NDArray[np.unsignedinteger]:
        """Count rows of every piece by the cell of p + u − 1, (B, K, 2 G): below −ε, … above ε."""
        from caltest.loops import rows as _loops

        edges, width = self.intervals.edges, 2 * len(self.grid)
        most = int(np.diff(edges).max())
        counts = np.zeros(
            (n_draws, len(edges) - 1, width), dtype=np.uint16 if most < 2**16 else np.uint32
        )
        for number, rows in enumerate(blocks(len(self.probs), ROWS)):
            uniforms = generator(seed, number, block).random((n_draws, rows.stop - rows.start))
            pieces = np.searchsorted(edges, np.arange(rows.start, rows.stop), side="right") - 1
            _loops.count_shifted(
                uniforms, self.probs[rows, 1].copy(), float(UNIT), pieces, self._cell_of, counts
            )
        return counts

    @cached_property
    def _cell_of(self) -> NDArray[np.intp]:
        """Return the cell of every p + u, cut down to a multiple of 1/UNIT, (2 UNIT + 1,)."""
        edges = np.concatenate([-self.grid[:0:-1], self.grid])
        return np.searchsorted(edges, np.arange(2 * UNIT + 1) - UNIT, side="right")


# ------------------------------------------------------------------ where


_EXACT_ROWS = 8192  # of an interval: in more, the binomial is about as sharp
_ROUNDING = 1e-13  # of a chance, at most


def largest_refuted(
    scan: ShiftedScan, labels: NDArray[np.intp], side: Side, level: float
) -> NDArray[np.intp]:
    """Return for every interval the last tolerance that is refuted there, −1 if none is.

    Labels are in the order of the scan's rows; ``level`` is the chance that any of the tolerances
    returned is not below the truth of its interval.

    With S the events of an interval and S^ε those of independent rows with the probabilities
    max(p − ε, 0), ε is refuted if P(S^ε ≤ S) is at most level/K, K the number of different intervals:
    "Places" in docs/theory/many.md has the proof. In intervals of many rows the Poisson binomial S^ε is
    replaced by the binomial of the same mean, whose lower tail is the heavier one at s ≤ mean − 1.
    """
    bounds = scan.intervals.bounds
    pairs = np.unique(bounds[scan.intervals.filled], axis=0)
    allowed = level / len(pairs)
    p = scan.probs[:, 1 if side == "over" else 0]
    counted = np.concatenate([[0], np.cumsum(labels if side == "over" else 1 - labels)])
    events = counted[bounds[:, 1]] - counted[bounds[:, 0]]
    rows, means = np.diff(bounds, axis=1), np.maximum(scan.expected_and_scale[side][0], 0.0)
    share = np.clip(means / np.maximum(rows, 1), 0.0, 1.0)
    tails = bdtr(events[:, None], rows, share)
    unlikely = (events[:, None] <= means - 1.0) & (tails + _ROUNDING <= allowed)
    found = np.asarray(unlikely.sum(axis=1) - 1, dtype=np.intp)  # the first so many, as means fall
    for index in np.flatnonzero(scan.intervals.filled & (rows[:, 0] <= _EXACT_ROWS)):
        inside = p[slice(*bounds[index])]

        def refuted(g: int, inside: Array = inside, least: int = int(events[index])) -> bool:
            chances = np.maximum(inside - scan.tolerances[g], 0.0)
            law = law_of_sum(np.column_stack([1.0 - chances, chances]))
            return float(law[: least + 1].sum()) + _ROUNDING <= allowed

        found[index] = _gallop(refuted, int(found[index]), len(scan.grid))
    starts, stops = bounds.T
    holds = (starts[:, None] <= starts) & (stops <= stops[:, None]) & scan.intervals.filled
    return np.asarray(np.where(holds, found, -1).max(axis=1))


def _gallop(holds: Callable[[int], bool], known: int, count: int) -> int:
    """Return the last of 0..count − 1 for which it holds; it holds up to ``known``, then up to some."""
    step = 1
    while known + step < count and holds(known + step):
        known, step = known + step, 2 * step
    beyond = min(known + step, count)
    while beyond - known > 1:
        middle = (known + beyond) // 2
        known, beyond = (middle, beyond) if holds(middle) else (known, middle)
    return known


def places(
    scan: ShiftedScan,
    labels: NDArray[np.intp],
    found: NDArray[np.bool_],
    somewhere_by: Array,
    pvalues: Array,
    observed: Array,
) -> tuple[Place, ...]:
    """Describe the intervals that were found, the most telling first.

    Named are those that overlap none named before. Of (L,) intervals: whether the model is wrong there,
    bounds, adjusted p-values and standardised errors.
    """
    scores = scan.probs[:, 1]
    bounds = scan.intervals.bounds
    chosen = np.flatnonzero(found & scan.intervals.filled)
    rows = np.diff(bounds, axis=1)[:, 0]  # of equal bounds, that of the shortest interval says most
    order = chosen[
        np.lexsort((-observed[chosen], pvalues[chosen], rows[chosen], -somewhere_by[chosen]))
    ]
    taken = np.zeros(len(scores), dtype=bool)
    seen: set[tuple[int, int]] = set()
    described = []
    for index in order.tolist():
        start, stop = (int(each) for each in bounds[index])
        if (start, stop) in seen:  # equal scores may make intervals the same
            continue
        seen.add((start, stop))
        alone = not taken[start:stop].any()
        taken[start:stop] |= alone
        described.append(
            Place(
                low=float(scores[start]),
                high=float(scores[stop - 1]),
                rows=stop - start,
                predicted=float(scores[start:stop].mean()),
                observed=float(labels[start:stop].mean()),
                somewhere_by=float(somewhere_by[index]),
                pvalue=float(pvalues[index]),
                named=alone,
            )
        )
    return tuple(described)


# ------------------------------------------------------------------ compared


class Compared(NamedTuple):
    """What all draws say of one side.

    Of all intervals, tolerance 0, the standardised errors and the p-values adjusted for their number,
    (L,); of every tolerance the p-value, (G,).
    """

    observed: Array
    pvalues: Array
    adjusted: Array


def compared(
    scan: ShiftedScan, labels: NDArray[np.intp], n_draws: int, seed: int, workers: Workers
) -> dict[Side, Compared]:
    """Compare labels, in order, with draws; a block of draws is held at a time and worker."""
    observed = {side: scan.errors(labels, side) for side in SIDES}
    tasks = [(part.start, part.stop) for part in blocks(n_draws, DRAWS)]
    parts = list(workers.map(partial(_counts, scan, observed, seed), tasks, "label draws"))
    found = {}
    for side in SIDES:
        reached, steps = (np.sum([part[side][place] for part in parts], axis=0) for place in (0, 1))
        found[side] = Compared(
            observed[side][:, 0],
            np.array([pvalue(int(count), n_draws, "greater") for count in reached]),
            StepDown.of(observed[side][:, 0]).pvalues(steps, n_draws),
        )
    return found


def _counts(
    scan: ShiftedScan, observed: dict[Side, Array], seed: int, start: int, stop: int
) -> dict[Side, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return what a block of draws adds: (G,) and (L,) counts of either side."""
    found = {}
    for side, (maxima, first) in scan.draw(seed, start, stop).items():
        highest = observed[side].max(axis=0).tolist()
        reached = [
            count(draws, value, "greater") for draws, value in zip(maxima.T, highest, strict=True)
        ]
        found[side] = np.array(reached), StepDown.of(observed[side][:, 0]).count(first)
    return found
