"""Bettors: their stakes on an outcome before it is seen, and what they learn afterwards.

A bet is the ratio q(y)/g(y) of a rival to the prediction. If outcomes are drawn from g, its mean is 1
for any rival, as long as the rival is chosen beforehand; products over rows are e-processes, and so are
means of several. Limits of errors that hold at any time come from such processes, too. The compiled
loops of :mod:`caltest.loops.bets` process the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from caltest.exceptions import InputError
from caltest.forms.sums import LinearSum
from caltest.laws import Classes, Point, Quantiles
from caltest.laws.classes import Array

Codes: TypeAlias = NDArray[np.int64]
#: Arrays by name: the records of all bets, for every process.
Books: TypeAlias = dict[str, NDArray[Any]]

_TEMPERATURES = np.exp(np.linspace(-0.7, 0.7, 15))
_ODDS = np.array([-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0])  # shifts of the log-odds for two classes
_STEPS = (0.05, 0.2)  # of AdaGrad
_START = 100.0  # initial sums of squares: first steps are a tenth of these
_WAVES, _WIDTHS = 32, (0.5, 0.15)  # random Fourier features with their bandwidths
_CELLS = 64  # on which the density of a rank is constant
_DEGREES = 6  # of Legendre polynomials
_MOVES = (-0.4, -0.2, 0.0, 0.2, 0.4)  # coefficients of the first two of these
#: Statistics that sum a score over rows, for which the order of labels matters.
SCORED = ("brier", "log_score", "spiegelhalter", "ecd", "citl")
_TIED = 9  # decimals of scores, relative to the largest in a row, that are distinguished
BINS, _ROWS_OF_A_BIN = 10, 20  # most bins, and fewest rows in a bin
_PLACES = 64  # cells of probabilities before binning, narrower near 0 and 1
LATEST = 500  # first rows of a process, and rows in each block of its latest


#: Arrays of fixed bets for the loops, steps last; and the kind of each bet, as in `Evidence`.
Spec: TypeAlias = tuple[tuple[Any, ...], list[str]]


@cache
def _of_classes(m: int) -> Spec:
    """Return features, exponents and tilt features for bets on m classes."""
    rng = np.random.Generator(np.random.PCG64(20_261_124))
    waves = np.concatenate([ndtri(rng.random((_WAVES, m))) / width for width in _WIDTHS])
    shifts = 2.0 * np.pi * rng.random(len(waves))
    slopes, moves = 1.0 / _TEMPERATURES, np.zeros(len(_TEMPERATURES))
    if m == 2:
        slopes, moves = (each.ravel() for each in np.meshgrid(slopes, _ODDS, indexing="ij"))
    usual = list(range(2 if m == 2 else 1))
    own = [[], *(range(len(usual) + w * _WAVES, len(usual) + (w + 1) * _WAVES) for w in range(2))]
    columns = [[*usual, *each] for _ in _STEPS for each in own]
    begins = np.cumsum([0, *map(len, columns)])
    pairs = zip(slopes, moves, strict=True)
    fixed = ["shift" if move else "sharper" if slope > 1.0 else "flatter" for slope, move in pairs]
    steps = np.repeat(_STEPS, len(own))
    arrays = waves, shifts, slopes, moves, np.concatenate(columns), begins, steps
    return arrays, [*fixed, *["tilt", "local", "local"] * len(_STEPS)]


@cache
def _of_numbers(times: bool) -> Spec:
    """Return Legendre polynomials in cells of (0, 1), and densities; for times, hazard multiples.

    For other numbers, densities are tilted by the first two polynomials. If the hazard is r times the
    predicted one, the rank of a time has the survival function (1 − u)^r.
    """
    edges = np.linspace(0.0, 1.0, _CELLS + 1)
    degrees = np.arange(1, _DEGREES + 1)
    waves = np.polynomial.legendre.legvander(edges[1:] + edges[:-1] - 1.0, _DEGREES).T[1:]
    waves = np.ascontiguousarray(waves * np.sqrt(2 * degrees + 1)[:, None])
    if times:
        densities = -np.diff((1.0 - edges) ** _TEMPERATURES[:, None]) * _CELLS
        fixed = ["sooner" if each > 1.0 else "later" for each in _TEMPERATURES]
    else:
        densities = np.exp(np.array([(a, b) for a in _MOVES for b in _MOVES]) @ waves[:2])
        densities /= densities.mean(axis=1, keepdims=True)
        fixed = ["moved"] * len(densities)
    return (waves, densities, np.array(_STEPS)), [*fixed, *["shape"] * len(_STEPS)]


@dataclass(frozen=True)
class Bettors:
    """All bets on one kind of prediction.

    Attributes
    ----------
    n_classes
        Classes m; None for numbers, times, and the scores of a statistic.
    tolerance
        Allowed error of the one probability in every row, 0 for none; or by side.
    levels
        Levels of quantile forecasts; empty for others.
    times
        Whether outcomes are times until an event.
    goal
        The logarithm of the threshold.
    scale
        For point forecasts the largest difference between two errors, used as their unit; else 0. An
        outcome is then an event with a share, whose probability is the one with mean error 0.
    """

    n_classes: int | None
    tolerance: Any = 0.0
    levels: tuple[float, ...] = ()
    times: bool = False
    goal: float = 0.0
    scale: float = 0.0

    @property
    def allowed(self) -> dict[int, float]:
        """Allowed error when too high (−1) and too low (1); sides that do not matter are missing."""
        of: Any = self.tolerance
        ends = [of.get("too_high"), of.get("too_low")] if isinstance(of, Mapping) else [of or None] * 2
        return {side: end for side, end in zip((-1, 1), ends, strict=True) if end is not None}

    @property
    def sides(self) -> Codes:
        """Sides on which the one probability is tested, with a tolerance: below and above."""
        return np.array([*self.allowed] or [0], np.int64)

    @cached_property
    def weights(self) -> Array:
        """Log-weights of the bets: equal for all bettors, and for the bets of each."""
        (*_, steps), kinds = self._spec
        sides, bets = len(self.sides), np.array([len(kinds) - len(steps), *[1] * len(steps)])
        return np.tile(np.repeat(-np.log(bets), bets) - np.log(len(bets)) - np.log(sides), sides)

    @property
    def _spec(self) -> Spec:
        return _of_numbers(self.times) if self.n_classes is None else _of_classes(self.n_classes)

    @property
    def channels(self) -> int:
        """Number of events whose predictions and observations are summed."""
        if self.n_classes is None:
            return 1 if self.times else self.ways * (2 - (len(self.levels) == 1))
        return 1 if self.n_classes == 2 else self.n_classes + 1

    @property
    def ways(self) -> int:
        """Number of sums for each event: a lowest and a highest if cells are left open."""
        return 2 if self.levels else 1

    @property
    def main(self) -> list[int]:
        """Events recorded for every batch: for classes only the last, that the top class is right."""
        return list(range(self.channels)) if self.n_classes is None else [-1]

    def blank(self, processes: int, change: bool) -> Books:
        """Return empty books for some processes."""
        k, d, m, (arrays, _) = len(self.weights), self.channels, self.n_classes, self._spec
        learned = (len(_STEPS), _DEGREES) if m is None else (len(self.sides), len(arrays[4]), m)
        return {
            "logs": np.zeros((processes, k)),
            "detect": np.full((processes if change else 0, k), -np.inf),
            "low": np.zeros((processes, k)),
            "since": np.zeros((processes, k, 2), np.int64),
            "marks": np.zeros((processes, k, d, 2)),
            "totals": np.zeros((processes, d, 3)),
            "counts": np.zeros(processes, np.int64),
            "best": np.full(processes, -np.inf if change else 0.0),
            "peak": np.full(processes, -np.inf if change else 0.0),
            "theta": np.zeros((processes, *learned)),
            "squares": np.full((processes, *learned), _START),
            "seen": np.zeros(processes, np.int64),
            "bins": np.zeros((processes, 3, BINS if m is None else _PLACES, 3)),
        }

    def kind(self, bet: int) -> str:
        """Return the kind of a bet, as in :class:`caltest.monitoring.Evidence`."""
        kinds = self._spec[1]
        return kinds[bet % len(kinds)]

    def read(self, rows: Any, outcomes: Any, statistic: Any = None) -> tuple[Array, Codes]:
        """Return the rows in the form the loops need: probabilities (n, m) and labels; or ranks (n, 2).

        A rank is the position of the outcome in its predicted distribution, from F(y−) to F(y); with a
        statistic, the position of the row's score among those of all labels. For quantile forecasts,
        the second array says which cells an outcome leaves open. For survival times it says whether the
        event occurred; ranks of censored rows end at 1, and the cumulative hazard is a further column.
        """
        law, codes = rows.law, np.zeros(rows.n_samples, np.int64)
        if isinstance(law, Point):
            chance, errors = law.ends[1] / self.scale, law.errors(outcomes) / self.scale
            return np.column_stack([1.0 - chance, chance, law.values / self.scale, errors]), codes
        if isinstance(law, Classes) and self.n_classes is not None:
            return law.probs, np.asarray(outcomes, np.int64)
        if isinstance(law, Quantiles):
            codes = np.asarray(outcomes, np.int64)
            first, last = np.divmod(codes, len(law.levels) + 1)
            ranks = np.stack([self._edges[first], self._edges[last + 1]], axis=1)
            ranks[law.impossible(codes)] = 1.0, 0.0  # no cell is open, so any bet wins without bound
            return ranks, codes
        if self.times:
            low, high, came, expected = law.ranks(outcomes)
            return np.stack([low, high, expected], axis=1), came.astype(np.int64)
        low, high = law.cdf(outcomes) if statistic is None else _ranks(rows, outcomes, statistic)
        ranks = np.stack([low, high], axis=1).astype(np.float64)
        wrong = np.flatnonzero(~((ranks >= 0.0) & (ranks <= 1.0) & (ranks[:, :1] <= ranks)).all(axis=1))
        if len(wrong):
            text = "the distribution function is no probability in {row}; correct the prediction."
            raise InputError(text, row=int(wrong[0]))
        return ranks, codes

    @property
    def _edges(self) -> Array:
        return np.array([0.0, *self.levels, 1.0]) if self.levels else np.empty(0)

    def compared(self, values: Array, labels: Codes) -> tuple[Array, Array]:
        """Return the prediction and the observation for each event, (n, D) each.

        If an outcome leaves several cells between quantiles open, its rank may lie in any: events are
        counted where they are fewest and where they are most.
        """
        if self.times:
            return values[:, 2:].copy(), (labels == 1)[:, None].astype(np.float64)
        if self.scale:
            return values[:, 2:3].copy(), values[:, 2:3] - values[:, 3:]
        if self.n_classes is None:
            seen, middle = _halves(*values.T), self.levels[0] if len(self.levels) == 1 else 0.5
            if self.levels:
                first, last = np.divmod(labels, len(self.levels) + 1)
                cells = _halves(self._edges[:-1], self._edges[1:], middle)
                cells = cells[:, : self.channels // self.ways]
                count = np.arange(len(cells))
                within = (count >= first[:, None]) & (count <= last[:, None])
                ends = ((np.inf, np.min), (-np.inf, np.max))
                each = [f(np.where(within[..., None], cells, out), axis=1) for out, f in ends]
                seen = np.concatenate(each, axis=1)
            return np.full(seen.shape, 1.0 - middle), seen
        if self.n_classes == 2:
            return values[:, 1:].copy(), (labels == 1)[:, None].astype(np.float64)
        stated = np.column_stack([values, values.max(axis=1)])
        seen = np.zeros(stated.shape)
        seen[np.arange(len(seen)), labels] = 1.0
        seen[:, -1] = values.argmax(axis=1) == labels
        return stated, seen

    def binned(self, values: Array, labels: Codes) -> Array:
        """Return rows, stated and seen in 64 places of the main probability, or ten of the rank."""
        if self.n_classes is None:
            below = [share_below(t / BINS, *values.T[:2]).sum() for t in range(1, BINS + 1)]
            alike = np.full(BINS, len(values) / BINS)
            return np.stack([alike, alike, np.diff(below, prepend=0.0)], axis=1)
        stated, seen = (each[:, -1] for each in self.compared(values, labels))
        by = values[:, 1] if self.scale else stated
        turned = np.arcsin(np.sqrt(np.clip(by, 0.0, 1.0))) * (2.0 / np.pi)
        place = np.minimum((turned * _PLACES).astype(int), _PLACES - 1)
        return np.stack([np.bincount(place, each, _PLACES) for each in (None, stated, seen)], axis=1)

    def in_bins(self, places: Array) -> Array:
        """Return cells merged into at most ten bins of about equal counts; for ranks, unchanged."""
        if self.n_classes is None or not (ends := places[:, 0].cumsum())[-1]:
            return places
        count = max(1, min(BINS, int(ends[-1]) // _ROWS_OF_A_BIN))
        middle = (ends - 0.5 * places[:, 0]) / ends[-1]
        used = np.flatnonzero(places[:, 0])
        _, starts = np.unique((middle[used] * count).astype(int), return_index=True)
        return np.asarray(np.add.reduceat(places[used], starts))

    def remember(self, values: Array, labels: Codes, member: Codes, books: Books) -> None:
        """Record the first and the latest rows of every process, in blocks of rows."""
        for column in member.T:
            order = np.argsort(column, kind="stable")
            found, starts = np.unique(column[order], return_index=True)
            for p, rows in zip(found, np.split(order, starts[1:]), strict=True):
                seen, bins = int(books["seen"][p]), books["bins"][p]
                for part in np.split(rows, np.arange(LATEST - seen % LATEST, len(rows), LATEST)):
                    number, begun = divmod(seen, LATEST)
                    slot = 0 if number == 0 else 1 + number % 2
                    bins[slot] = bins[slot] * bool(begun) + self.binned(values[part], labels[part])
                    seen += len(part)
                books["seen"][p] = seen

    def bet(
        self, values: Array, labels: Codes, ends: Codes, member: Codes, shares: Array, books: Books
    ) -> None:
        """Bet on rows unit by unit, learn, and record the winnings in the books.

        ``ends`` (U,) are the ends of units; ``member`` (n, C) the processes of each row, −1 for none;
        ``shares`` (P,) the logarithms of their weights.
        """
        from caltest.loops import bets

        stated, seen = self.compared(values, labels)
        n, k, d = int(np.diff(ends, prepend=0).max()), len(self.weights), stated.shape[1]
        work = np.empty((n, k)), np.empty(k), np.empty((d, 2)), np.empty(n, np.int64)
        kept = (*(books[name] for name in _KEPT), np.full(len(books["logs"]), -1))
        common = stated, seen, ends, member, work, self.weights, shares, self.goal, kept
        more = self._spec[0], (books["theta"], books["squares"]), common
        if self.n_classes is None:
            low, high = np.ascontiguousarray(values.T[:2])
            if self.levels:
                cells = np.array(np.divmod(labels, len(self.levels) + 1), np.float64)
                low, high = np.where(low < high, cells, [[0.0], [-1.0]])
            bets.bet_on_numbers(low, high, self._edges, *more)
            return
        parts = np.ones(len(values))
        if self.scale:
            came = np.clip(values[:, 1] - values[:, 3], 0.0, 1.0)
            labels, parts = (came > 0.0).astype(np.int64), np.where(came > 0.0, came, 1.0)
            values = np.ascontiguousarray(values[:, :2])
        bases = values[None]
        if self.tolerance:
            by = (self.sides * [*self.allowed.values()])[:, None]
            event = np.clip(values[:, 1] + by, 0.0, 1.0)
            bases = np.stack([1.0 - event, event], axis=2)
        bets.bet_on_classes(values, bases, labels, parts, self.sides, *more)


#: Arrays of the books, in the order the loops expect.
_KEPT = ("logs", "detect", "low", "since", "marks", "totals", "counts", "best", "peak", "whole")


def _halves(low: Array, high: Array, middle: float = 0.5) -> Array:
    """Return shares of ranks between low and high: above the middle, and outside the central half."""
    share = [share_below(t, low, high) for t in (0.25, middle, 0.75)]
    return np.column_stack([1.0 - share[1], 1.0 - share[2] + share[0]])


def share_below(t: float, low: Array, high: Array) -> Array:
    """Return P(rank ≤ t) for ranks uniform from low to high (Czado, Gneiting and Held 2009)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((t - low) / (high - low), 0.0, 1.0)
    return np.where(high > low, share, high <= t)


def _ranks(rows: Any, labels: Any, statistic: Any) -> tuple[Array, Array]:
    """Return P(S < s) and P(S ≤ s) for the scores of rows, which order their labels."""
    form = statistic.given(rows)
    assert isinstance(form, LinearSum)
    table = form.scores.finite
    table = (table / np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-300)).round(_TIED)
    own, probs = table[np.arange(len(table)), labels][:, None], rows.probs
    low = np.where(table < own, probs, 0.0).sum(axis=1)
    return low, np.minimum(low + np.where(table == own, probs, 0.0).sum(axis=1), 1.0)


# ------------------------------------------------------------------ anytime-valid limits

_LAMBDAS = np.geomspace(1e-3, 0.95, 30)
_PENALTIES = -np.log1p(-_LAMBDAS) - _LAMBDAS
_THETAS = np.geomspace(1e-3, 3.0, 30)


def radius(squares: Array, levels: Array) -> Array:
    """Return a bound, valid at any time, for sums of outcomes in [0, 1] minus the sums of their means.

    With X̂ chosen before each X, exp(λ Σ(X − μ) − (−log(1 − λ) − λ) Σ(X − X̂)²) is a supermartingale
    for any means μ, even if they change (Howard, Ramdas, McAuliffe, Sekhon 2021, Theorem 4); so is its
    mean over 30 values of λ. ``squares`` (…) are Σ(X − X̂)², and ``levels`` are one-sided.
    """
    spent = np.multiply.outer(squares, _PENALTIES)
    goals = np.log(len(_LAMBDAS)) - np.log(levels)[..., None]
    low, high = np.zeros(squares.shape), ((goals + spent) / _LAMBDAS).min(axis=-1)
    return _halved(low, high, lambda at: np.exp(_LAMBDAS * at - spent - goals).sum(axis=-1) < 1.0)[1]


def _halved(low: Array, high: Array, is_low: Callable[[Array], Any]) -> tuple[Array, Array]:
    """Return intervals in which a monotone condition changes from true to false, by bisection."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = is_low(middle[..., None])
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(low), np.asarray(high)


def compensated(counts: Array, levels: Array) -> tuple[Array, Array]:
    """Return limits, valid at any time, for the true expectation of counts of events.

    With A the sum of true cumulative hazards while followed, exp(θN − (e^θ − 1)A) is a supermartingale
    for every θ, whatever the censoring; so is its mean over 30 values of θ on one side.
    """
    goals = (np.log(len(_THETAS)) - np.log(levels))[..., None]

    def gains(thetas: Array, at: Any) -> Array:
        return np.asarray(np.multiply.outer(counts, thetas) - np.expm1(thetas) * at - goals)

    def refuted(thetas: Array, at: Any) -> NDArray[np.bool_]:
        return np.asarray(np.exp(np.minimum(gains(thetas, at), 700.0)).sum(axis=-1) >= 1.0)

    # A small expectation is refuted by many events, a large one by few; no single θ must go further.
    least = np.maximum((gains(_THETAS, 0.0) / np.expm1(_THETAS)).max(axis=-1), 0.0)
    most = (gains(-_THETAS, 0.0) / np.expm1(-_THETAS)).min(axis=-1)
    low, _ = _halved(least, counts, lambda at: refuted(_THETAS, at))
    _, high = _halved(counts, most, lambda at: ~refuted(-_THETAS, at))
    return low, high


def limits(totals: Array, units: Array, levels: Array, times: bool) -> tuple[Array, Array]:
    """Return limits for the mean of predicted minus true, from sums (predicted, observed, squares)."""
    stated, seen, squares = np.moveaxis(totals, -1, 0)
    levels = np.broadcast_to(levels, stated.shape)
    if times:
        low, high = compensated(seen, levels)
        return (stated - high) / units, (stated - low) / units
    middle, reach = (stated - seen) / units, radius(squares, levels) / units
    return np.maximum(middle - reach, -1.0), np.minimum(middle + reach, 1.0)
