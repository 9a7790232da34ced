"""`miscalibration_bounds`: the smallest error that a model must have somewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, check_draws, flag, level_of_confidence
from caltest._parallel import Workers, single_threaded_blas
from caltest._sums import Array, Mask, Places, blocks
from caltest._visible import visible
from caltest.binning import EqualWidth, law_of_events, reliability_curve
from caltest.bounds.intervals import largest_refuted
from caltest.data import Rows, Sample
from caltest.data.diagnose import impossible_labels
from caltest.data.rows import check_alike
from caltest.data.sample import whole_sample
from caltest.exceptions import Argument, InputError
from caltest.forms import Intervals, Side
from caltest.laws import Classes
from caltest.lenses import ClassWise, Lens, event, one_probability, seen_through, through
from caltest.pvalues import StepDown, exceeds, pvalue
from caltest.results import Result
from caltest.sampling import DRAWS, ROWS, Rng, generator, seed_of
from caltest.story import Finding, Step, Story

if TYPE_CHECKING:
    import pandas as pd

SIDES: tuple[Side, ...] = ("over", "under")

_DRAWS = 499
_RESERVE = 5  # multiple of the least number of draws, so that chance in the draws costs little
_MOST_WITH_RESERVE = 9_999
_MOST_WORK = 5e10  # rows times draws: an hour and a half at worst on one core
_ROWS_OF_A_DRAW = 5_000  # cost of a draw beyond its rows
_CURVE_BINS = 15
_OF_PLACES = ("low", "high", "rows", "predicted", "observed", "somewhere_by", "pvalue")


@dataclass(frozen=True)
class Place:
    """A range of predictions in which the model is proved wrong.

    Attributes
    ----------
    low, high : float
        Smallest and largest probability in it.
    rows : int
        Number of rows.
    predicted, observed : float
        Mean predicted probability, and observed rate of the event.
    somewhere_by : float
        Some predictions in it are wrong by more than this, not on average; this holds for all places
        together.
    pvalue : float
        P-value for an error in it, adjusted for all intervals and bounds.
    named : bool
        Whether the summary names it: it overlaps none that is more informative.
    """

    low: float
    high: float
    rows: int
    predicted: float
    observed: float
    somewhere_by: float
    pvalue: float
    named: bool


@dataclass(frozen=True)
class SideBound:
    """The proof on one side: predictions too high, or too low.

    Attributes
    ----------
    side : {"over", "under"}
        "over" (predictions too high) or "under" (too low).
    bound : float
        The model is wrong by more than this somewhere; 0 if nothing, or no amount, is proved.
    found : bool
        Whether it is proved wrong at all on this side.
    pvalue : float
        P-value for an error on this side, multiplied by the number of bounds.
    places : tuple of Place
        Where the model is wrong, the most informative place first.
    """

    side: Side
    bound: float
    found: bool
    pvalue: float
    places: tuple[Place, ...] = field(repr=False)


@dataclass(frozen=True)
class ReliabilityPoints:
    """Reliability in 15 bins of equal width: mean probability, share of events and rows of each."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class ViewBounds:
    """The bounds for one probability, such as that of one class.

    Attributes
    ----------
    event : str
        The event whose probability it is, as a clause.
    lens : str or None
        Label of its lens; None for class 1 of two.
    over, under : SideBound
        What is proved on each side.
    curve : ReliabilityPoints
        Its reliability curve, for pictures.
    """

    event: str
    lens: str | None
    over: SideBound
    under: SideBound
    curve: ReliabilityPoints = field(repr=False)

    @property
    def sides(self) -> tuple[SideBound, SideBound]:
        """Both sides, "over" first."""
        return self.over, self.under


@dataclass(frozen=True, repr=False)
class MiscalibrationBounds(Result):
    """Lower bounds, in probability, on a model's largest errors, with the ranges where they occur.

    Attributes
    ----------
    views : tuple of ViewBounds
        What is proved for each probability: one, or one for each class.
    confidence : float
        Confidence with which all bounds are correct together.
    level : float
        The largest probability with which a single bound exceeds the truth.
    n_samples, n_classes, n_resamples, seed : int
        As in :class:`caltest.CalibrationResult`.
    lens : str or None
        Label of the lens, which may be "classwise".
    warnings : tuple of str
        As in :class:`caltest.CalibrationResult`.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.miscalibration_bounds(sure.probs, sure.labels, rng=0)
    >>> found.over, found.under, found.confidence
    (0.146, 0.0, 0.95)
    >>> place = found.views[0].over.places[0]
    >>> place.rows, round(place.predicted, 2), round(place.observed, 2)
    (76, 0.9, 0.61)
    """

    views: tuple[ViewBounds, ...]
    confidence: float
    level: float
    n_samples: int
    n_classes: int
    lens: str | None
    n_resamples: int
    seed: int
    warnings: tuple[str, ...] = ()

    derived: ClassVar[tuple[str, ...]] = ("over", "under")

    @property
    def over(self) -> float:
        """Some predictions are more than this too high; 0 if that is not proved."""
        return max(view.over.bound for view in self.views)

    @property
    def under(self) -> float:
        """Some predictions are more than this too low; 0 if that is not proved."""
        return max(view.under.bound for view in self.views)

    @property
    def story(self) -> Story:
        """The story of the bounds: the largest proved error, and next steps."""
        found = [(view, side) for view in self.views for side in view.sides if side.found]
        largest = max(found, key=lambda each: each[1].bound, default=None)
        return Story(
            verdict="found" if found else "not found",
            found=bool(found),
            subject=largest and Finding("bound", largest, side=largest[1].side),
            steps=(Step("sizes" if found else "limit"),),
        )

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a table with a row for each probability and direction.

        Returns
        -------
        pandas.DataFrame
            Columns ``event`` (what the probability is about), ``side``, ``at_least`` (the bound),
            ``found`` and ``pvalue``, as in :class:`SideBound`.
        """
        import pandas as pd

        every = ((visible(view.event), side) for view in self.views for side in view.sides)
        rows = [(event, side.side, side.bound, side.found, side.pvalue) for event, side in every]
        return pd.DataFrame(rows, columns=["event", "side", "at_least", "found", "pvalue"])

    @arguments(overlapping=flag)
    def where(self, *, overlapping: bool = False) -> pd.DataFrame:
        """Return the ranges of predictions in which the model is wrong, strongest evidence first.

        Parameters
        ----------
        overlapping : bool, default False
            Return all intervals found, not only the most telling ones that do not overlap.

        Returns
        -------
        pandas.DataFrame
            Columns ``event``, ``side``, ``from`` and ``to`` (smallest and largest probability),
            ``rows``, ``predicted`` (mean probability), ``observed`` (share of events), ``somewhere_by``
            (by how much the model is wrong somewhere in it) and ``pvalue``, as in :class:`Place`.
        """
        import pandas as pd

        every = ((visible(view.event), side) for view in self.views for side in view.sides)
        places = ((name, of.side, p) for name, of in every for p in of.places if p.named or overlapping)
        found = [(name, side, *(getattr(p, of) for of in _OF_PLACES)) for name, side, p in places]
        return pd.DataFrame(found, columns=["event", "side", "from", "to", *_OF_PLACES[2:]])


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
    probs : array of shape (n,) or (n, m), or data frame
        Predicted probabilities, as in :func:`caltest.test`.
    labels : array of shape (n,)
        Observed classes, as in :func:`caltest.test`.
    lens : str or Lens, optional
        Which probability to look at: "top_label", "class:3", "top:5" or another lens that leaves
        two classes, or "classwise" for every class at once. Default: class 1 of two classes, the
        top label of more.
    class_names : sequence of str or int, optional
        Names of the classes, in the order of the columns, as in :func:`caltest.test`.
    confidence : float, default 0.95
        Confidence that all bounds are correct together.
    n_resamples : int, optional
        Number of simulated label sets. Default None: 499, or more if there are many bounds: five
        times as many as the level of one bound needs, but beyond 9999 only as many as it needs. If
        that would take hours, you must give the number.
    rng : int, SeedSequence or Generator, optional
        As in :func:`caltest.test`.
    n_jobs : int, optional
        As in :func:`caltest.test`.
    progress : bool, default False
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
    using all three kinds of statement at once. The proofs are in :doc:`/theory/bounds`.

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
    whole = whole_sample(probs, labels, class_names=class_names)
    check_alike(whole.rows, "a bound", "test with a tolerance, which takes weights")
    m = whole.rows.n_classes
    if classwise:
        # For two classes, one says it all: too high for one class is too low for the other.
        lenses = [ClassWise(k) for k in range(m)] if m > 2 else [None]
        views = [through(whole, each) for each in lenses]
    else:
        do = "give 'top_label', 'classwise', 'class:0' or 'top:5'"
        views = [one_probability(whole, lens, "the bounds are about", do)]
    level = level_of_confidence(confidence) / (2 * len(views))
    needed, n = draws_needed(level), len(whole.labels)
    reserved = min(_RESERVE * (needed + 1) - 1, _MOST_WITH_RESERVE)
    n_draws = max(_DRAWS, reserved, needed) if n_resamples is None else int(n_resamples)
    check_draws("n_resamples", n_draws, level)
    if n_resamples is None and len(views) * n_draws * (n + _ROWS_OF_A_DRAW) > _MOST_WORK:
        many = f"one class, as in {Argument('lens', 'class:3')}, " if len(views) > 1 else "fewer rows "
        why = f"{len(views):,} probabilities of {n:,} rows with {n_draws:,} draws each would take hours"
        do = f"give {many}or a lower confidence, or {Argument('n_resamples', n_draws)} to do it"
        raise InputError(f"{why}; {do}.")
    seed, workers, family = seed_of(rng), Workers(n_jobs, progress), 2 * len(views)
    with single_threaded_blas():
        found = tuple(bounds_of(*each, level, family, n_draws, seed, workers) for each in views)
    seen, label = (whole, None) if classwise else views[0]
    notes = *whole.rows.notes, *impossible_labels(seen, what=seen_through(label, seen.rows))
    looked = "classwise" if classwise else label
    return MiscalibrationBounds(found, confidence, level, n, m, looked, n_draws, seed, warnings=notes)


def draws_needed(level: float) -> int:
    """Return the fewest draws with which a bound at this level is possible."""
    return math.ceil(round(1.0 / level, 6)) - 1


def bounds_of(
    view: Sample, lens: str | None, level: float, family: int, n_draws: int, seed: int, workers: Workers
) -> ViewBounds:
    """Return the bounds of one view; ``family`` sides in all, each failing with chance ``level``."""
    calibrated = ShiftedScan.of(view.rows.probs, np.zeros(1, dtype=np.intp))
    labels = view.labels[calibrated.intervals.order]
    start = compared(calibrated, labels, n_draws, seed, workers)
    wrong = [side for side in SIDES if start[side].pvalues[0] <= level]
    scan = ShiftedScan(calibrated.probs, calibrated.intervals, TOLERANCES)
    shifted = compared(scan, labels, n_draws, seed, workers) if wrong else {}
    sides = {}
    for side in SIDES:
        last, ranges = 0, tuple[Place, ...]()
        if side in wrong:
            last = max(int(np.argmax(shifted[side].pvalues > level)) - 1, 0)
            refuted = largest_refuted(scan, labels, side, level)
            somewhere_by = scan.tolerances[np.minimum(refuted, last)] * (refuted >= 0)
            adjusted = np.minimum(1.0, family * start[side].adjusted)
            found = adjusted <= family * level * (1.0 + 1e-12)
            ranges = places(scan, labels, found, somewhere_by, adjusted, start[side].observed)
        p = min(1.0, family * float(start[side].pvalues[0]))
        sides[side] = SideBound(side, float(scan.tolerances[last]), side in wrong, p, ranges)
    curve = reliability_curve(Rows(Classes(scan.probs)), labels, EqualWidth(_CURVE_BINS))
    points = (tuple(each.tolist()) for each in (curve.predicted, curve.observed, curve.counts))
    return ViewBounds(event(lens, view.rows), lens, **sides, curve=ReliabilityPoints(*points))


def places(
    scan: ShiftedScan, labels: Places, found: Mask, somewhere_by: Array, pvalues: Array, observed: Array
) -> tuple[Place, ...]:
    """Describe the intervals that were found, the most informative first.

    An interval is named if it overlaps none named before. All arguments but the first two are (L,).
    """
    scores, bounds = scan.probs[:, 1], scan.intervals.bounds
    chosen = np.flatnonzero(found & scan.intervals.filled)
    rows = np.diff(bounds, axis=1)[:, 0]  # for equal bounds, the shortest interval says most
    keys = -observed, pvalues, rows, -somewhere_by
    order = chosen[np.lexsort([each[chosen] for each in keys])]
    _, first = np.unique(bounds[order], axis=0, return_index=True)  # ties may make intervals identical
    taken = np.zeros(len(scores), dtype=bool)
    described = []
    for index in order[np.sort(first)].tolist():
        inside = slice(*bounds[index].tolist())
        alone = not taken[inside].any()
        taken[inside] |= alone
        own = scores[inside]
        means = float(own.mean()), float(labels[inside].mean())
        proved = float(somewhere_by[index]), float(pvalues[index])
        described.append(Place(float(own[0]), float(own[-1]), len(own), *means, *proved, named=alone))
    return tuple(described)


# ------------------------------------------------------------------ shifted models
#
# A score p shifted by ε has an event if u ≥ 1 − (p − ε), that is if p + u − 1 ≥ ε, with one uniform u
# for all ε. Counting p + u − 1 in the cells of a grid of tolerances, over a piece of neighbouring rows,
# gives the number of events for every tolerance on both sides, with one random number per row and draw.
# For tolerance 0 alone, the number of events in a piece is drawn from its distribution.

#: Tolerances are multiples of 1/UNIT; the grid runs from 0 to 1 with growing steps.
UNIT = 10_000
TOLERANCES = np.r_[0:20, 20:100:2, 100:400:5, 400:1000:10, 1000:2000:20, 2000:5000:50, 5000:10_001:100]


@dataclass(frozen=True, eq=False)
class ShiftedScan:
    """The statistic "scan" for two classes, shifted by every tolerance of a grid.

    ``probs`` are predictions in the order of the second column, (n, 2); ``grid`` holds (G,) tolerances,
    from 0, in units of 1/UNIT.
    """

    probs: Array
    intervals: Intervals
    grid: Places

    @classmethod
    def of(cls, probs: Array, grid: Places) -> ShiftedScan:
        """Sort the rows and fix the intervals."""
        found = Intervals.dyadic(probs[:, 1])
        return cls(probs[found.order], found, grid)

    @cached_property
    def tolerances(self) -> Array:
        """The grid in units of probability, (G,)."""
        return self.grid / UNIT

    @cached_property
    def expected_and_scale(self) -> dict[Side, tuple[Array, Array]]:
        """Σ_I p^ε and 1/(√(Σ_I p^ε (1 − p^ε)) + 1), (L, G) each, for p^ε = max(p − ε, 0).

        p is the probability of the event for "over", and of no event for "under"; the first array is −∞
        for intervals without rows. Rows with p > ε are the last of a piece, or the first: cumulative
        sums give all tolerances at once.
        """
        shift, found = self.tolerances, {}
        low, high = self.intervals.edges[:-1, None], self.intervals.edges[1:, None]
        for side, p in zip(SIDES, self.probs.T[::-1], strict=True):
            below = np.searchsorted(p if side == "over" else p[::-1], shift, side="right")
            ends = (below, len(p)) if side == "over" else (0, len(p) - below)
            start, stop = (np.clip(end, low, high) for end in ends)
            rows = stop - start
            powers = (np.append(0.0, np.cumsum(p**power)) for power in (1, 2))
            firsts, seconds = (running[stop] - running[start] for running in powers)
            sums = np.maximum(firsts - shift * rows, 0.0)
            squares = seconds - 2.0 * shift * firsts + shift**2 * rows
            expected, variance = map(self._over_intervals, (sums, np.maximum(sums - squares, 0.0)))
            expected[~self.intervals.filled] = -np.inf
            found[side] = expected, 1.0 / (np.sqrt(np.maximum(variance, 0.0)) + 1.0)
        return found

    def _over_intervals(self, pieces: Array) -> Array:
        """Return sums over the intervals, (L, G), of values of pieces, (K, G)."""
        return np.concatenate([found[0] for _, found in self.intervals.sums(pieces[None])])

    def errors(self, labels: Places, side: Side) -> Array:
        """Return the standardised errors for labels in order, (L, G)."""
        counted = labels if side == "over" else 1 - labels
        pieces = np.diff(np.append(0, np.cumsum(counted))[self.intervals.edges])[:, None]
        expected, weight = self.expected_and_scale[side]
        return np.asarray((expected - self._over_intervals(pieces)) * weight)

    def draw(self, seed: int, start: int, stop: int) -> dict[Side, tuple[Array, Array]]:
        """Return standardised errors of draws ``start`` to ``stop``, in whole blocks of seeds.

        For each side: the largest error over all intervals, for every tolerance, (B, G), and the errors
        of all intervals for tolerance 0, (B, L).
        """
        from caltest.loops import rows as _loops

        cells, found = self._cells(seed, start, stop), {}
        begins, ends = self.intervals.in_pieces
        for side in SIDES:
            expected, weight = self.expected_and_scale[side]
            maxima = np.empty((len(cells), len(self.grid)))
            first = np.empty((len(cells), len(begins)))
            _loops.largest_shifted(cells, side == "over", begins, ends, expected, weight, maxima, first)
            found[side] = maxima, first
        return found

    def _cells(self, seed: int, start: int, stop: int) -> NDArray[np.unsignedinteger]:
        """Count the rows of each piece by the cell of p + u − 1, (B, K, 2 G): below −ε, … above ε."""
        from caltest.loops import rows as _loops

        edges, width = self.intervals.edges, 2 * len(self.grid)
        n_draws, block = stop - start, start // DRAWS
        if width == 2:
            cut = enumerate(blocks(n_draws, DRAWS), start=block)
            shapes = ((number, (each.stop - each.start, len(edges) - 1)) for number, each in cut)
            uniforms = np.concatenate([generator(seed, number).random(of) for number, of in shapes])
            chances = zip(self.chances_of_counts, uniforms.T, strict=True)
            events = np.stack([np.searchsorted(law, u, side="right") for law, u in chances], axis=1)
            return np.stack([np.diff(edges) - events, events], axis=2).astype(np.uint32)
        kind: Any = np.uint16 if np.diff(edges).max() < 2**16 else np.uint32
        counts = np.zeros((n_draws, len(edges) - 1, width), kind)
        for number, rows in enumerate(blocks(len(self.probs), ROWS)):
            uniforms = generator(seed, number, block).random((n_draws, rows.stop - rows.start))
            pieces = np.searchsorted(edges, np.arange(rows.start, rows.stop), side="right") - 1
            scores = self.probs[rows, 1].copy()
            _loops.count_shifted(uniforms, scores, float(UNIT), pieces, self._cell_of, counts)
        return counts

    @cached_property
    def chances_of_counts(self) -> tuple[Array, ...]:
        """P(at most 0, 1, … N − 1 events) among the N rows of each piece: (N,) each."""
        pieces = np.split(self.probs[:, 1].copy(), self.intervals.edges[1:-1])
        return tuple(np.cumsum(law_of_events(chances)[: len(chances)]) for chances in pieces)

    @cached_property
    def _cell_of(self) -> Places:
        """Return the cell of every p + u, rounded down to a multiple of 1/UNIT, (2 UNIT + 1,)."""
        edges = np.concatenate([-self.grid[:0:-1], self.grid])
        return np.searchsorted(edges, np.arange(2 * UNIT + 1) - UNIT, side="right")


# ------------------------------------------------------------------ comparison with draws


class Compared(NamedTuple):
    """The comparison of one side with all draws.

    For all intervals at tolerance 0, standardised errors and p-values adjusted for their number, (L,);
    for every tolerance the p-value, (G,).
    """

    observed: Array
    pvalues: Array
    adjusted: Array


_AT_ONCE = 8 * DRAWS  # draws for tolerance 0, where a call costs more than a draw


def compared(
    scan: ShiftedScan, labels: Places, n_draws: int, seed: int, workers: Workers
) -> dict[Side, Compared]:
    """Compare ordered labels with draws; each worker holds one block of draws at a time."""
    observed = {side: scan.errors(labels, side) for side in SIDES}
    at_once = DRAWS if len(scan.grid) > 1 else _AT_ONCE
    tasks = [(part.start, part.stop) for part in blocks(n_draws, at_once)]
    parts = list(workers.map(partial(_counts, scan, observed, seed), tasks, "label draws"))
    found = {}
    for side in SIDES:
        reached, steps = (np.sum([part[side][place] for part in parts], axis=0) for place in (0, 1))
        pvalues = np.array([pvalue(int(count), n_draws, "greater") for count in reached])
        own = observed[side][:, 0]
        found[side] = Compared(own, pvalues, StepDown.of(own).pvalues(steps, n_draws))
    return found


def _counts(
    scan: ShiftedScan, observed: dict[Side, Array], seed: int, start: int, stop: int
) -> dict[Side, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return counts from one block of draws: (G,) and (L,) for each side."""
    found = {}
    for side, (maxima, first) in scan.draw(seed, start, stop).items():
        reached = np.count_nonzero(exceeds(maxima, observed[side].max(axis=0)), axis=0)
        found[side] = reached, StepDown.of(observed[side][:, 0]).count(first)
    return found
