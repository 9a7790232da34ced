"""Pairs: sums over all pairs of rows, or over some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import comb
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, helmert

from caltest._parallel import ALONE, Workers
from caltest._sampling import generator
from caltest._tiles import (
    TILE,
    WIDE_TILE,
    Tile,
    blocks,
    multiply,
    sum_over_strips,
    sum_over_tiles,
)
from caltest.forms._pair_moments import diagonal_table, quadratic_moments
from caltest.forms._pair_sums import (
    Coordinates,
    KernelWeights,
    LabelSums,
    LinearPart,
    ResidualSums,
    Rounded,
    Term,
    Weights,
    clear_diagonal,
)
from caltest.forms.base import (
    CERTAIN,
    ROUNDING,
    Array,
    HasCumulantGenerator,
    HasGram,
    HasLeadingSum,
    HasMoments,
    HasTailBound,
    HasTerms,
    Labels,
    Lattice,
    Moments,
    TailBound,
    effective_surprises,
    repeats,
)
from caltest.forms.sums import LinearSum, tilted_cumulants
from caltest.kernels.bandwidth import GaussianTiles

# ------------------------------------------------------------------ pairwise


EXACT_DIGITS = 16  # sums of TILE = 2^8 weights of 2^-16 steps are exact in 24 binary digits
_ALONE_BELOW = 1e8  # pairs times draws times classes; less is done sooner than workers start
_SMALLEST = 2.0**-60  # weights whose sums, rounded, are well inside the range of single precision
_SAVING_UP_TO = 16  # classes; above, dropping one of the m coordinates saves too little
_ADDITION = 5.0  # what an addition of rows costs, in multiplications of a matrix product
_ROUNDS = 4  # of the power method
_LOOKED_AT, _LOOKED_THROUGH = 512, 2**25  # rows whose share of the variance is computed; numbers
# What rows that carry the variance count, and pairs of them: 6 rows, or 30 pairs, are as few as 10
# unlikely labels.
_OF_ROWS, _OF_PAIRS = 1.6, 0.33
_CONFIDENT = 0.4  # expected share of unusual labels below which labels are told by these


@dataclass(frozen=True, eq=False)
class Pairwise(HasMoments, HasLeadingSum):
    """T = scale · Σ_ij D_iᵀ M_ij D_j with M_ij = Σ_l W_l,ij A_l, over i ≠ j or over all pairs.

    Attributes
    ----------
    probs
        The predictions, (n, m).
    kernel_terms
        The summands of M.
    scale
        Factor of the sum.
    diagonal
        Count the pairs i = j.
    single
        For many label vectors at once, round the weights to 16 binary digits after the point, so that
        sums in single precision are exact: twice as fast, and the statistic of another kernel, which
        depends on the predictions only. It matters from four classes on, and for M_ij = W_ij I.
    """

    probs: Array
    kernel_terms: tuple[Term, ...]
    scale: float
    diagonal: bool
    single: bool = field(default=False, kw_only=True)

    parallel_inside: ClassVar[bool] = True

    @cached_property
    def _coordinates(self) -> tuple[Coordinates, ...]:
        factors = [_factor(term.matrix, self.probs.shape[1]) for term in self.kernel_terms]
        return tuple(
            Coordinates(np.eye(self.probs.shape[1]), self.probs)
            if factor is None
            else Coordinates(factor, self.probs @ factor)
            for factor in factors
        )

    @property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs."""
        sizes = [
            np.abs(term.weights.diagonal()).max()
            * (1.0 if term.matrix is None else np.abs(term.matrix).max())
            for term in self.kernel_terms
        ]
        return ROUNDING * abs(self.scale) * len(self.probs) ** 2 * float(sum(sizes))

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        n, m = self.probs.shape
        hands = workers if len(labels) * float(n) ** 2 * m > _ALONE_BELOW else ALONE
        if len(labels) == 1 and not self.single:
            tile = partial(self._tile_sum, labels[0].astype(np.intp))
            return self.scale * sum_over_tiles(tile, n, hands, description="observed value")[None]
        total = np.zeros(len(labels))
        for number, term in enumerate(self.kernel_terms):
            if term.matrix is None and self._adds_rows:
                weights = self._rounded(term.weights) if self.single else term.weights
                dtype = np.float32 if isinstance(weights, Rounded) else np.float64
                total += self._linear_part(number, weights, hands).sums(labels)
                of_labels = LabelSums(weights, labels, m, self._usual, self.diagonal, dtype)
                total += sum_over_strips(of_labels, n, hands, size=TILE, description="label draws")
            else:
                sums = ResidualSums(term.weights, self._coordinates[number], labels, self.diagonal)
                total += sum_over_strips(sums, n, hands, size=WIDE_TILE, description="label draws")
        return self.scale * total

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        """Return the value for one label vector (n,), always of the weights as they are."""
        form = replace(self, single=False) if self.single else self
        return float(form.of_labels(labels[None, :], workers)[0])

    @staticmethod
    def _rounded(weights: Weights) -> Rounded | Weights:
        """Round the weights, if single precision has their range."""
        largest = float(np.abs(weights.diagonal()).max())  # of a kernel no entry is larger
        if not _SMALLEST < largest < 1.0 / _SMALLEST:
            return weights
        return Rounded(weights, 2.0 ** (EXACT_DIGITS - float(np.ceil(np.log2(largest)))))

    @cached_property
    def _unusual(self) -> float:
        """The share of rows whose label is not their most likely one, as the model has it."""
        return float(np.mean(1.0 - self.probs.max(axis=1)))

    @cached_property
    def _usual(self) -> Labels | None:
        """The most likely classes, where most labels are."""
        return self.probs.argmax(axis=1) if self._unusual < _CONFIDENT else None

    @property
    def _adds_rows(self) -> bool:
        """Whether adding up rows of weights is less work than multiplying them with residuals."""
        additions = 1.0 if self._usual is None else 2.0 * self._unusual
        price = 0.5 * _ADDITION if self.single else _ADDITION
        return bool(price * additions < self.probs.shape[1] - 1)

    def _linear_part(self, number: int, weights: Weights | Rounded, workers: Workers) -> LinearPart:
        """Return what hangs on one label at most of a term; computed once."""
        known: dict[int, LinearPart] = self.__dict__.setdefault("_known", {})
        if number not in known:
            known[number] = LinearPart.of(weights, self.probs, self._usual, self.diagonal, workers)
        return known[number]

    def _tile_sum(self, labels: Labels, rows: slice, columns: slice) -> float:
        """Sum over the pairs of a tile, for one label vector."""
        total = 0.0
        for term, coordinates in zip(self.kernel_terms, self._coordinates, strict=True):
            products = None
            if coordinates.of_mean is self.probs:
                weights, products = _with_products(term.weights, self.probs, rows, columns)
            else:
                weights = term.weights(rows, columns)
            if rows == columns and not self.diagonal:
                clear_diagonal(weights)
            if products is None:
                left, right = (coordinates.residuals(labels[None], each) for each in (rows, columns))
                total += float(np.vdot(left, weights @ right))
            else:
                total += _sum_of_products(weights, products, self.probs, labels, rows, columns)
        return total

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0, given the predictions."""
        linear = diagonal_table(self.probs, self.kernel_terms) if self.diagonal else None
        cumulants = quadratic_moments(self.probs, self.kernel_terms, linear, workers)
        return Moments.of_cumulants(*cumulants, self.surprises).scaled(self.scale)

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        """Return the sum whose square carries most of the variance, by the power method."""

        def images(vectors: Array) -> Array:
            products = (
                multiply(weights, vectors if matrix is None else vectors @ matrix, workers)
                for weights, matrix in self.kernel_terms
            )
            return np.asarray(sum(products))

        return leading_sum(self.probs, images)

    @property
    def repeats(self) -> float:
        """How many rows share their predictions, on average over what they add to the variance."""
        rows, shares, _, stands_for = self._shares
        return repeats(self.probs[rows], stands_for * shares)

    @cached_property
    def surprises(self) -> float:
        """Return the effective number of unlikely labels, or of pairs of equal ones if that is less.

        Of all labels, and of those in the rows that carry the variance: a narrow kernel may leave few
        of these, or few pairs, whatever the others are.
        """
        lengths = np.einsum("ik,ik->i", self.probs, self.probs)
        unlike = 1.0 - self.probs.max(axis=1)
        labels = effective_surprises(1.0 - lengths, unlike)
        sums = self.probs.sum(axis=0)
        found = min(labels, 0.5 * float(sums @ sums - lengths.sum()))
        rows, shares, squares, stands_for = self._shares
        # A row that stands for w rows is w rows of that share: w u unlikely labels, not one of w s.
        carrying = effective_surprises(stands_for * shares, stands_for * unlike[rows])
        pairs = float(stands_for @ shares) ** 2 / max(2.0 * float(stands_for @ squares), CERTAIN)
        return float(min(found, _OF_ROWS * carrying, _OF_PAIRS * pairs))

    @cached_property
    def _shares(self) -> tuple[NDArray[np.intp], Array, Array, Array]:
        """Return rows, Σ_j s_ij and Σ_j s_ij² of each, and how many rows each stands for.

        s_ij = W_ij² tr(Σ_i Σ_j); matrices A_l count as the identity. All rows, or so many that are
        drawn by their own variance.
        """
        g, n = self.probs, len(self.probs)
        most = int(np.clip(_LOOKED_THROUGH // g.size, 32, _LOOKED_AT))
        own = 1.0 - np.einsum("ik,ik->i", g, g)
        rows, stands_for = np.arange(n), np.ones(n)
        uncertain = int(np.count_nonzero(own > 0.0))
        if n > most and uncertain > 0:
            size = min(most, uncertain)
            rows = np.sort(generator(0).choice(n, size, replace=False, p=own / own.sum()))
            stands_for = (own.sum() / (size * own[rows])).clip(min=1.0)
        shares, squares = np.empty(len(rows)), np.empty(len(rows))
        second = g * g
        for place, i in enumerate(rows):
            products = g @ g[i]
            variances = products - second @ g[i] - g @ second[i] + products**2
            weights = sum(
                np.asarray(term.weights(slice(i, i + 1), slice(0, n)))[0] ** 2
                for term in self.kernel_terms
            )
            each = np.asarray(weights * variances)
            each[i] = 0.0
            shares[place], squares[place] = each.sum(), each @ each
        largest = float(shares.max()) or 1.0  # what follows has no unit
        return rows, (shares / largest).clip(min=0.0), squares / largest**2, stands_for


def leading_sum(probs: Array, images: Callable[[Array], Array]) -> LinearSum:
    """Return Σ_i ⟨a_i, D_i⟩, a the leading direction of V → M (ΣV), (ΣV)_i = g_i∘v_i − g_i (g_i·v_i).

    It is asked for where one direction carries nearly all of the variance, so that few rounds do.

    Parameters
    ----------
    probs
        The predictions, (n, m).
    images
        Takes V, (n, m), to MV.
    """
    vectors = np.zeros_like(probs)
    vectors[:, np.sum(probs * (1.0 - probs), axis=0).argmax()] = 1.0
    for _ in range(_ROUNDS):
        spread = probs * vectors
        spread -= probs * spread.sum(axis=1, keepdims=True)
        vectors = images(spread)
        size = np.abs(vectors).max()
        if size == 0.0:
            break
        vectors /= size
    return LinearSum(vectors, probs)


@dataclass(frozen=True, eq=False)
class BoundedPairwise(HasTailBound, Pairwise):
    """A pairwise form with a distribution-free bound.

    Attributes
    ----------
    tail_bound
        What the bound needs.
    """

    tail_bound: TailBound


@dataclass(frozen=True, eq=False)
class UStatistic(HasGram, BoundedPairwise):
    """The mean of h_ij over the pairs i ≠ j: a pairwise form with a Gram matrix to resample."""

    def gram(self, labels: Labels) -> Tile:
        """Return h_ij = D_iᵀ M_ij D_j, the diagonal included, as a tile function."""
        everything = slice(0, len(self.probs))
        residuals = [c.residuals(labels[None, :], everything) for c in self._coordinates]
        return partial(_gram_tile, self.kernel_terms, residuals)


def _gram_tile(terms: tuple[Term, ...], residuals: list[Array], rows: slice, columns: slice) -> Array:
    def summands() -> Iterator[Array]:
        for term, residual in zip(terms, residuals, strict=True):
            tile = term.weights(rows, columns)
            tile *= residual[rows] @ residual[columns].T
            yield tile

    return np.asarray(sum(summands()))


def _with_products(weights: Weights, probs: Array, rows: slice, columns: slice) -> tuple[Array, Array]:
    """Return a tile of weights, and that of ⟨g_i, g_j⟩, of which a Gaussian kernel is made too."""
    products = probs[rows] @ probs[columns].T
    tile = weights.tile if isinstance(weights, KernelWeights) else None
    if isinstance(tile, GaussianTiles) and tile.points is probs:
        return tile.of_products(products.copy(), rows, columns), products
    return weights(rows, columns), products


def _sum_of_products(
    weights: Array, products: Array, probs: Array, labels: Labels, rows: slice, columns: slice
) -> float:
    """Sum W_ij (1[y_i = y_j] − g_i[y_j] − g_j[y_i] + ⟨g_i, g_j⟩)."""
    y, z = labels[rows], labels[columns]
    products -= np.take(probs[rows], z, axis=1)
    products -= np.take(probs[columns], y, axis=1).T
    products += y[:, None] == z
    return float(np.vdot(weights, products))


def _factor(matrix: Array | None, m: int) -> Array | None:
    """Return H (m, d) with ⟨D, A D'⟩ = ⟨HᵀD, HᵀD'⟩ for residuals, whose entries sum to 0.

    None stands for the identity. Only the part of A in the subspace of vectors with sum 0 counts, so
    that d ≤ m − 1.
    """
    if matrix is None and m > _SAVING_UP_TO:
        return None
    basis = np.ascontiguousarray(helmert(m).T)
    if matrix is None:
        return basis
    values, vectors = eigh(basis.T @ matrix @ basis)
    kept = values > 1e-14 * max(float(values[-1]), 0.0)
    if not kept.any():  # A acts on constants only: h is 0
        return np.zeros((m, 1))
    return np.asarray(basis @ vectors[:, kept] * np.sqrt(values[kept]))


# ------------------------------------------------------------------ pair mean


Component: TypeAlias = "tuple[Array, Array | None]"

_OUTCOMES = 2**22  # of all pairs, up to which they are looked through for a lattice


@dataclass(frozen=True, eq=False)
class PairMean(HasCumulantGenerator, HasTerms, HasTailBound):
    """T = ⌊n/2⌋⁻¹ Σ_p h_p, with h_p = D_iᵀ M_p D_j for pair p of rows i and j, and M_p = Σ_l w_lp A_l.

    Given the predictions, the terms are independent with mean 0, and the law of each is known under
    H0: the two labels of a pair are a and b with probability g_ia g_jb.

    Attributes
    ----------
    probs
        The predictions, (n, m).
    rows
        Rows i and j of every pair, (2, ⌊n/2⌋); none stands twice.
    components
        Pairs (w_l, A_l): w_l (⌊n/2⌋,) kernel values of the pairs, A_l (m, m) or None, the identity.
    tail_bound
        What Hoeffding's bound needs.
    """

    probs: Array
    rows: NDArray[np.intp]
    components: tuple[Component, ...]
    tail_bound: TailBound

    @cached_property
    def first(self) -> Array:
        """Predictions of the first member of every pair, (⌊n/2⌋, m)."""
        return np.asarray(self.probs[self.rows[0]])

    @cached_property
    def second(self) -> Array:
        """Predictions of the second member of every pair, (⌊n/2⌋, m)."""
        return np.asarray(self.probs[self.rows[1]])

    @cached_property
    def _at_first(self) -> Array:
        """M_p g_second, (⌊n/2⌋, m), to be read at the first label."""
        return self._weighted(self.second)

    @cached_property
    def _at_second(self) -> Array:
        """M_p g_first, (⌊n/2⌋, m), to be read at the second label."""
        return self._weighted(self.first)

    @cached_property
    def _constant(self) -> Array:
        return np.asarray(np.einsum("pk,pk->p", self.first, self._at_first))

    def _weighted(self, probs: Array) -> Array:
        products = (w[:, None] * (probs if A is None else probs @ A) for w, A in self.components)
        return np.asarray(sum(products))

    def _block_terms(self, labels: Labels) -> Array:
        """Return h_p for (B, n) labels as (B, ⌊n/2⌋)."""
        pairs = np.arange(len(self.first))
        a, b = labels[:, self.rows[0]], labels[:, self.rows[1]]
        h = self._constant - self._at_first[pairs, a] - self._at_second[pairs, b]
        for weights, matrix in self.components:
            h += weights * ((a == b) if matrix is None else matrix[a, b])
        return np.asarray(h)

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        sizes = [np.abs(w).mean() * (1.0 if A is None else np.abs(A).max()) for w, A in self.components]
        return 4.0 * ROUNDING * float(sum(sizes))

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of nearly equal kernel values and predictions, which only count equal labels."""
        m = self.probs.shape[1]
        if len(self.first) * m**2 > _OUTCOMES:
            return Lattice()  # so many outcomes of a pair crowd
        values, chances = self._outcomes(slice(None))
        return LinearSum(values / len(values), chances).lattice

    @cached_property
    def surprises(self) -> float:
        """Effective number of pairs, (Σ κ₂)² / Σ |κ₄| of the terms: few where few pairs can be large.

        The variance of rare events sits on pairs in which both come true, not on those with one.
        """
        second, fourth = self._central_moments()
        if not len(second) or second.max() <= 0.0:
            return 0.0
        scale = second.max()
        second, fourth = second / scale, fourth / scale / scale
        flatness = float(np.abs(fourth - 3.0 * second**2).sum())
        return float(second.sum() ** 2) / max(flatness, CERTAIN)

    @property
    def repeats(self) -> float:
        """How many rows share their predictions, on average over the uncertainty."""
        return repeats(self.probs)

    def _central_moments(self) -> tuple[Array, Array]:
        """Return E h² and E h⁴ of every pair, (⌊n/2⌋,) each.

        For h = w ⟨D, D'⟩ the labels a and b give h/w = U_a − V_b + 1[a = b], U = s − g' and V = g: the
        two parts are independent but for equal labels.
        """
        if len(self.components) > 1 or self.components[0][1] is not None:
            second, fourth = np.empty(len(self.first)), np.empty(len(self.first))
            for rows in blocks(len(self.first), max(1, 2**21 // self.probs.shape[1] ** 2)):
                values, chances = self._outcomes(rows)
                second[rows] = np.einsum("pk,pk->p", chances, values**2)
                fourth[rows] = np.einsum("pk,pk->p", chances, values**4)
            return second, fourth
        g, h, w = self.first, self.second, self.components[0][0]
        u = np.einsum("pk,pk->p", g, h)[:, None] - h
        of_u = [np.einsum("pk,pk->p", g, u**k) for k in range(5)]
        of_v = [np.einsum("pk,pk->p", h, g**k) for k in range(5)]
        found = []
        for power in (2, 4):
            apart = sum(
                comb(power, k) * (-1) ** k * of_u[power - k] * of_v[k] for k in range(power + 1)
            )
            same = np.einsum("pk,pk->p", g * h, (1.0 + u - g) ** power - (u - g) ** power)
            found.append(w**power * np.maximum(apart + same, 0.0))
        return found[0], found[1]

    def terms(self, labels: Labels) -> Array:
        """Return the terms h_p for one label vector, (⌊n/2⌋,)."""
        terms: Array = self._block_terms(labels[None, :])[0]
        return terms

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.asarray(self._block_terms(labels).mean(axis=1))

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """Return K(t), K'(t), K''(t) of T under H0: sums over the independent pairs."""
        pairs = len(self.first)
        if len(self.components) == 1 and self.components[0][1] is None:
            sums = self._factorised(t / pairs)
        else:
            sums = self._enumerated(t / pairs)
        return float(sums[0]), float(sums[1] / pairs), float(sums[2] / pairs**2)

    def _factorised(self, t: float) -> Array:
        """Sum over pairs of the cumulant generator of h_p = w ⟨D, D'⟩ and its derivatives, in O(nm).

        With s = g·g' and exponents τ(s − g'_a − g_b) for labels a and b,
        E exp(τ(1[a=b] + s − g'_a − g_b)) = Σ_{a≠b} g_a g'_b e^{…} + e^τ Σ_a g_a g'_a e^{…}.
        All terms are positive, so nothing cancels: the sum over b ≠ a is one from either side.
        """
        weights = self.components[0][0]
        tau = t * weights[:, None]
        g, h = self.first, self.second
        s = np.einsum("pk,pk->p", g, h)[:, None]
        u, v = g * np.exp(-tau * (h - s)), h * np.exp(-tau * g)
        others = [sums_of_others(v * g**k) for k in range(3)]
        # The derivatives bring down the value of h: s − g'_a − g_b, and 1 more for equal labels.
        apart, same = s - h, 1.0 + s - h - g
        equal = g * h * np.exp(tau * same)
        mass = (u * others[0] + equal).sum(axis=1)
        slope = (equal * same + u * (apart * others[0] - others[1])).sum(axis=1) / mass
        bend = (equal * same**2 + u * (apart**2 * others[0] - 2 * apart * others[1] + others[2])).sum(
            axis=1
        ) / mass
        return np.array(
            [
                np.sum(np.log(mass)),
                np.sum(weights * slope),
                np.sum(weights**2 * (bend - slope**2)),
            ]
        )

    def _enumerated(self, t: float) -> Array:
        """Sum the same for any M_p, from all m² outcomes of every pair, in O(n m²)."""
        total = np.zeros(3)
        for rows in blocks(len(self.first), max(1, 2**21 // self.probs.shape[1] ** 2)):
            total += tilted_cumulants(*self._outcomes(rows), t)
        return total

    def _outcomes(self, pairs: slice) -> tuple[Array, Array]:
        """Return the m² values of h of every pair, and their probabilities, each (pairs, m²)."""
        values = (
            self._constant[pairs, None, None]
            - self._at_first[pairs, :, None]
            - self._at_second[pairs, None, :]
        )
        for weights, matrix in self.components:
            A = np.eye(self.probs.shape[1]) if matrix is None else matrix
            values = values + weights[pairs, None, None] * A
        chances = self.first[pairs, :, None] * self.second[pairs, None, :]
        return values.reshape(len(values), -1), chances.reshape(len(values), -1)


def sums_of_others(values: Array) -> Array:
    """Return, for every entry of a row, the sum of the others, without a subtraction."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    sums[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums
