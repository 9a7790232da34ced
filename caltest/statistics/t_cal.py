"""T-Cal: squared errors in bins of many scales, debiased, the largest in units of its deviation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from caltest._arguments import arguments
from caltest._parallel import ALONE, Workers
from caltest._tiles import blocks
from caltest.binning import EqualMass
from caltest.data import Extent, Rows
from caltest.forms import Additive, AddsByCluster, Clusters, ClusterSums, OfOneEvent, SignedSums
from caltest.forms.base import ROUNDING, Array, Labels
from caltest.statistics.base import Partwise, Statistic
from caltest.statistics.ece import two_classes

_HALVINGS = 19  # bins of the finest scale are no more than 2¹⁹,
_HALVINGS_IN_PARTS = 10  # and 1024 where rows come a part at a time: the sums of all draws are held
_ENTRIES = 2**18  # labels of the draws taken at a time: what is made of them stays in the cache
_CANCELLED = 1e-12  # share of (Σ v)² up to which (Σ v)² − Σ v² is rounding
_IMPOSSIBLE = 1e-9  # of U where its variance is 0: more is no rounding


@arguments()
@dataclass(frozen=True)
class TCal(Statistic):
    """T-Cal: a debiased binned error, at whichever number of bins shows it best, for two classes.

    T = max_s U_s/√Var U_s over the scales s.

    Scale s = 0, 1, 2, … has 2^s bins of equal numbers of rows, down to ``min_rows`` rows per bin; equal
    scores stay together. With residuals r = y − p,

        U_s = Σ_b n_b⁻¹ Σ_{i≠j in b} r_i r_j = Σ_b [(Σ r)² − Σ r²]/n_b

    is the squared error of the binned predictions (times n) without its bias: 0 on average if the
    model is calibrated, with variance 2 Σ_b [(Σ v)² − Σ v²]/n_b², v = p (1 − p), given the predictions.
    A wide error stands out in few bins and a narrow one in many, and no number of bins need be chosen.
    A scale of variance 0 is left out; if none is left, T is 0. (Only labels of probability 0 can make U
    positive there: T is then +∞.)
    With more than two classes, the top class is tested (the lens "top_label").

    Parameters
    ----------
    min_rows
        Smallest number of rows per bin of the finest scale, except for ties. Default 10.

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    Notes
    -----
    The source takes bins of equal width (of full vectors, cubes), and rejects if U exceeds a threshold
    at any scale, each at its share of the level. With equal numbers of rows no bin is empty where
    scores crowd, and the maximum has one exact null. Of a file that is read a block at a time, bins are
    those of a sample of its rows, 1024 at most.

    References
    ----------
    Lee, Huang, Hassani, Dobriban, "T-Cal: an optimal test for the calibration of predictive models",
    JMLR 24 (2023).

    Examples
    --------
    Right on average, but not for either score: U is −0.4 in one bin, and 2.4 in two.

    >>> import caltest
    >>> labels = [1] * 6 + [0] * 4 + [1] * 4 + [0] * 6
    >>> round(caltest.estimate([0.2] * 10 + [0.8] * 10, labels, "t_cal"), 6)
    7.905694
    """

    min_rows: int = 10

    name: ClassVar[str] = "t_cal"
    measures: ClassVar[str] = "largest standardised squared error over bins of many scales"
    default_lens: ClassVar[str | None] = "top_label"
    growth: ClassVar[float | None] = None  # more rows have more scales

    def given(self, predictions: Rows) -> MultiscaleBins:
        """Fix the predictions and their bins."""
        scores, weights = two_classes(self, predictions), predictions.weights
        edges = self._edges(scores, len(scores), _HALVINGS, weights)
        return MultiscaleBins(scores, edges, weights=weights)

    def in_parts(self, whole: Extent, subsample: Callable[[], Rows]) -> Partwise:
        """Take bins of equal mass of a subsample of the scores: all are too many to sort."""
        rows = subsample()
        scores = two_classes(self, rows)
        edges = self._edges(scores, whole.rows, _HALVINGS_IN_PARTS, rows.weights)
        return Partwise(self, partial(self._of_part, whole.rows, edges))

    def _of_part(self, whole: int, edges: tuple[Array, ...], part: Rows) -> MultiscaleBins:
        return MultiscaleBins(two_classes(self, part), edges, whole, part.weights)

    def _edges(
        self, scores: Array, n: int, most: int, weights: Array | None = None
    ) -> tuple[Array, ...]:
        """Return the inner edges of the bins of n rows, scale by scale, the finest first."""
        halvings = min(max((n // self.min_rows).bit_length() - 1, 0), most)
        order = np.argsort(scores, kind="stable")
        ordered = scores[order], None if weights is None else weights[order]
        return tuple(EqualMass(2**s).edges_of(*ordered)[1:-1] for s in range(halvings, -1, -1))

    @property
    def parameters(self) -> dict[str, Any]:
        """The fewest rows of a bin."""
        return {"min_rows": self.min_rows}


@dataclass(frozen=True, eq=False)
class MultiscaleBins(OfOneEvent, AddsByCluster, Additive):
    """The largest standardised debiased squared error, from the sums of the bins of the finest scale.

    Bins of a coarser scale are unions of those of the next finer one, so that all scales together cost
    little more than the finest.
    """

    scores: Array  #: The probabilities p of class 1, (n,).
    edges: tuple[Array, ...]  #: Inner edges of each scale, the finest first, which has all of them.
    whole: int | None = None  #: How many rows there are in all, where these are only some of them.
    weights: Array | None = None  #: w of w r, (n,); None for ones.

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return len(self.scores)

    @property
    def n_cells(self) -> int:
        """Number of bins K of the finest scale."""
        return len(self.edges[0]) + 1

    @property
    def sums_of_a_draw(self) -> tuple[int, ...] | None:
        """Σ r, Σ r², rows, Σ v and Σ v² of every bin; of rows in memory they are sorted all at once."""
        return None if self.whole is None else (5, self.n_cells)

    @property
    def resolution(self) -> float:
        """Rounding of a standardised sum, of some of very many rows."""
        return ROUNDING * float(np.sqrt(self.n_samples))

    def cells(self, scores: Array) -> NDArray[np.intp]:
        """Return the bin of every score."""
        return np.searchsorted(self.edges[0], scores, side="left")

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.scores, kind="stable")

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """The first row, in order, of every bin that holds rows."""
        return np.flatnonzero(np.diff(self.cells(self.scores[self._order]), prepend=-1))

    @cached_property
    def _slopes(self) -> Array:
        """What a label 1 adds to r², 1 − 2p, of the rows in order."""
        return self._counted(1.0 - 2.0 * self.scores[self._order], 2)

    def _counted(self, ordered: Array, power: int) -> Array:
        """Multiply what is of rows in order by a power of their weights."""
        if self.weights is None:
            return ordered
        return np.asarray(self.weights[self._order] ** power * ordered)

    @cached_property
    def _without_labels(self) -> Array:
        """Σ r and Σ r² of the bins that hold rows if all labels are 0, (2, bins)."""
        scores = self.scores[self._order]
        without = np.stack([self._counted(-scores, 1), self._counted(scores**2, 2)])
        return np.add.reduceat(without, self._starts, axis=1)

    def _of_draws(self, labels: Labels) -> Array:
        """Return Σ r and Σ r² of the bins that hold rows, (2, B, bins)."""
        ordered = labels.take(self._order, axis=1)
        if self.weights is None:
            events = np.add.reduceat(ordered, self._starts, axis=1, dtype=np.int32)
        else:
            events = np.add.reduceat(ordered * self._steps, self._starts, axis=1)
        slopes = np.add.reduceat(ordered * self._slopes, self._starts, axis=1)
        return np.stack([events, slopes]) + self._without_labels[:, None]

    @cached_property
    def _steps(self) -> Array:
        """What a label 1 adds to r, of the rows in order."""
        return self._counted(np.ones(self.n_samples), 1)

    @cached_property
    def _of_scores(self) -> Array:
        """Rows (or their weights), Σ v and Σ v² of all bins, (3, K)."""
        cells, variances = self.cells(self.scores), self.scores * (1.0 - self.scores)
        if self.weights is not None:
            variances *= self.weights**2
        of_rows = (self.weights, variances, variances**2)
        return np.stack([np.bincount(cells, each, self.n_cells) for each in of_rows]).astype(float)

    @cached_property
    def _merges(self) -> list[NDArray[np.intp]]:
        """Which bins of a scale begin a bin of the next coarser one."""
        steps = zip(self.edges, self.edges[1:], strict=False)
        return [np.append(0, np.searchsorted(finer, coarser) + 1) for finer, coarser in steps]

    def _scales(self, of_scores: Array) -> list[tuple[Array, float]]:
        """Return 1/n_b and the deviation of U, scale by scale."""
        found = []
        for starts in (None, *self._merges):
            if starts is not None:
                of_scores = np.add.reduceat(of_scores, starts, axis=1)
            sizes, variances, squares = of_scores
            shares, whole = 1.0 / np.where(sizes > 0.0, sizes, 1.0), variances**2
            pairs = np.where(whole - squares > _CANCELLED * whole, whole - squares, 0.0)
            found.append((shares, float(np.sqrt(2.0 * np.sum(pairs * shares**2)))))
        return found

    @cached_property
    def _known(self) -> list[tuple[Array, float]]:
        return self._scales(self._of_scores)

    def _largest(self, sums: Array, scales: Sequence[tuple[Array, float]]) -> Array:
        """Return T from Σ r and Σ r² of the bins of the finest scale, (2, B, K)."""
        found = np.full(sums.shape[1], -np.inf)
        for starts, (shares, deviation) in zip((None, *self._merges), scales, strict=True):
            if starts is not None:
                sums = np.add.reduceat(sums, starts, axis=2)
            errors = np.einsum("bk,k->b", sums[0] ** 2 - sums[1], shares)
            if deviation > 0.0:
                errors /= deviation
            else:
                errors = np.where(errors > _IMPOSSIBLE, np.inf, -np.inf)
            np.maximum(found, errors, out=found)
        return np.where(found == -np.inf, 0.0, found)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n), sorted all at once."""
        values = np.empty(len(labels))
        for draws in blocks(len(labels), max(1, _ENTRIES // self.n_samples)):
            values[draws] = self._largest(self._of_draws(labels[draws]), self._known)
        return values

    def apart(self, labels: Labels, clusters: Clusters) -> Array:
        """Return T of pairs of different clusters."""
        return self.one_by_one(labels, clusters)

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        """Add up residuals by cluster and bin."""
        residuals = labels - self.scores
        if self.weights is not None:
            residuals *= self.weights
        turned = clusters.sums_at(self.cells(self.scores), residuals, self.n_cells)
        return ClusterSums(turned, self._of_scores)

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> SignedSums:
        """Take U over pairs of different clusters."""
        own, merged = list[Array](), found.turned
        if isinstance(merged, np.ndarray):
            merged = sparse.csr_array(merged)
        for starts in (None, *self._merges):
            if starts is not None:
                coarser = np.zeros(merged.shape[1], dtype=np.intp)
                coarser[starts[1:]] = 1
                coarser = np.cumsum(coarser)
                merged = merged.tocoo()
                entries = (merged.data, (merged.row, coarser[merged.col]))
                merged = sparse.csr_array(entries, shape=(merged.shape[0], len(starts)))
            own.append(np.asarray(merged.multiply(merged).sum(axis=0)).ravel())
        finish = partial(self._largest_between, own, self._scales(found.fixed))
        return SignedSums(found.turned, finish, even=True, rounding=self.resolution)

    def _largest_between(
        self, own: list[Array], known: list[tuple[Array, float]], sums: Array
    ) -> Array:
        found = np.full(len(sums), -np.inf)
        scales = zip((None, *self._merges), known, own, strict=True)
        for starts, (shares, deviation), alone in scales:
            if starts is not None:
                sums = np.add.reduceat(sums, starts, axis=1)
            if deviation > 0.0:
                np.maximum(found, (sums**2 - alone) @ shares / deviation, out=found)
        return np.where(found == -np.inf, 0.0, found)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Return Σ r, Σ r², rows, Σ v and Σ v² of every bin, (B, 5, K)."""
        weights = None if self.weights is None else self.weights[rows]
        some = replace(self, scores=self.scores[rows], weights=weights)
        sums = np.zeros((len(labels), 5, self.n_cells))
        filled = np.flatnonzero(some._of_scores[0])
        sums[:, :2, filled] = some._of_draws(labels).transpose(1, 0, 2)
        sums[:, 2:] = some._of_scores
        return sums

    def finish(self, sums: Array) -> Array:
        """Return T from the sums of all rows."""
        return self._largest(sums[:, :2].transpose(1, 0, 2), self._scales(sums[0, 2:]))
