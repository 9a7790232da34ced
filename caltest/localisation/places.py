"""Places: where the error is looked at, and the field of errors about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from caltest._arguments import check_unmasked, real_array
from caltest._parallel import ALONE, Workers
from caltest._sums import Array, blocks
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.kernels import Exponential, Kernel
from caltest.kernels.bandwidth import fixed_order
from caltest.laws.classes import LabelSampler
from caltest.pvalues import StepDown

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
        totals, squares = np.zeros(count), np.zeros(count)
        stated, variances = np.zeros((count, m)), np.zeros((count, m))
        tiles = blocks(n, _ROWS)
        tasks = [(probs[rows], held is not None) for rows in tiles]
        parts = workers.map(partial(_tile, places), tasks, "weights")
        for rows, (weights, *sums) in zip(tiles, parts, strict=True):
            if held is not None:
                held[rows] = weights
            for whole, part in zip((totals, squares, stated, variances), sums, strict=True):
                whole += part
        return cls(probs, places, held, totals, squares, stated, variances)

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
        return sum(parts, np.zeros(len(observed.observed), dtype=np.int64))

    def reached(
        self, observed: StepDown, sampler: LabelSampler, start: int, stop: int
    ) -> NDArray[np.int64]:
        """Count those of some draws."""
        labels = sampler.draw(start, stop)
        # Weights that are not held are computed for every part: fewer and larger ones, then.
        fitting = max(1, (_SUMS if self.held is not None else _HELD) // self.stated.size)
        counts = np.zeros(len(observed.observed), dtype=np.int64)
        for draws in blocks(stop - start, fitting):
            z = self.standardised(labels[draws])
            counts += observed.count(np.abs(z).reshape(len(z), -1))
        return counts


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


RowPlaces: TypeAlias = NDArray[np.intp]

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


def given_points(points: ArrayLike, probs: Array) -> tuple[Array, RowPlaces]:
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


def cover(probs: Array, count: int, kernel: Kernel) -> RowPlaces:
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
