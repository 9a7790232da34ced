"""Squared kernel calibration errors, of all pairs of rows, of some, and of low rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Whole, arguments, choose, real_kernel
from caltest._tiles import blocks
from caltest._visible import quoted
from caltest.data import Rows, subsample
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import FeatureSquares, PairMean, Pairwise, TailBound
from caltest.forms.weights import (
    ComputedFeatures,
    Features,
    KernelWeights,
    Term,
    incomplete_cholesky,
    landmark_features,
    scaled,
    scaled_rows,
)
from caltest.kernels import Exponential, Kernel, MatrixKernel, fitted
from caltest.kernels.bandwidth import fixed_order, representatives
from caltest.kernels.radial import fourier_features, has_fourier_features
from caltest.sampling import ROWS, child_seed, generator
from caltest.statistics.base import Statistic
from caltest.statistics.ece import two_classes

# ------------------------------------------------------------------ low rank


Approximation: TypeAlias = Literal["auto", "nystrom", "fourier"]

APPROXIMATIONS = dict.fromkeys(("auto", "nystrom", "fourier"), True)
RANK = 256

HELD_UP_TO = 100_000
"""Rows up to which features are held, 200 MB of them, and everything is fitted to all rows.

Of more rows a subsample is what bandwidths and features are fitted to, see ``caltest.data.subsample``,
and features are computed when they are needed.
"""

ROUNDED_FROM = 4096
"""Rows up to which features are fitted to all, and kept as they are.

Those of more rows are fitted to some, evenly spaced in an order that depends on the predictions alone,
and rounded, to be added up fast.
"""

FULL_ROWS, FULL_SIZE = 5000, 4e8
"""Rows n, and n² m, up to which "auto" takes the kernel itself: 999 draws take some two seconds.

That is 5 000 rows of ten classes, 2 000 of a hundred. Of two classes the exponential kernel of most
distances takes one pass over the rows, however many.
"""


@dataclass(frozen=True, eq=False)
class LowRank:
    """Features whose inner products stand for a kernel, of given predictions.

    Attributes
    ----------
    predictions
        What they were made for.
    features
        Φ, (n, F); of very many rows, computed when they are needed.
    missing
        Share of the trace that ΦΦᵀ leaves out; None of random features, which leave out nothing on
        average.
    of_parts
        Whether it was fitted to a sample of rows that come one part after the other.
    """

    predictions: Rows
    features: Features
    missing: float | None
    of_parts: bool = False

    @classmethod
    def of(
        cls, kernel: Kernel | MatrixKernel, predictions: Rows, method: Approximation, rank: int
    ) -> LowRank:
        """Approximate a fitted kernel with ``rank`` columns at most (of the Fourier kind, about)."""
        part, _ = kernel.terms[0]
        probs = predictions.probs
        if len(probs) > HELD_UP_TO:
            return cls.fitted_to(kernel, fitting_rows(predictions), method, rank).of_rows(predictions)
        if len(probs) > ROUNDED_FROM:
            some = predictions.take(representatives(probs))
            found = cls.fitted_to(kernel, some, method, rank).of_rows(predictions)
            parts = [found.features[rows] for rows in blocks(len(probs), ROWS)]
            return replace(found, features=np.concatenate(parts))
        if method == "fourier":
            return cls(predictions, fourier_features(part, probs, _directions(rank)), None)
        weights, order = KernelWeights(part, probs), fixed_order(probs)
        features, missing, _ = incomplete_cholesky(weights, order, rank)
        return cls(predictions, features, missing)

    @classmethod
    def fitted_to(
        cls, kernel: Kernel | MatrixKernel, rows: Rows, method: Approximation, rank: int
    ) -> LowRank:
        """Approximate a kernel by features, of these rows and of any others, that are computed."""
        part, _ = kernel.terms[0]
        if method == "fourier":
            fourier = partial(fourier_features, part, count=_directions(rank))
            return cls(rows, _computed(fourier, part, rows.probs), None)
        found = incomplete_cholesky(KernelWeights(part, rows.probs), np.arange(rows.n_samples), rank)
        landmarks, factor = rows.probs[found.pivots], np.tril(found.factor[found.pivots])
        nystrom = partial(landmark_features, part, landmarks, factor)
        return cls(rows, _computed(nystrom, part, rows.probs), found.missing)

    def of_rows(self, predictions: Rows) -> LowRank:
        """Return the same features of other rows; they must be computed ones."""
        if not isinstance(self.features, ComputedFeatures):
            raise TypeError("features that are held are of the rows that they were made for")
        ones = np.ones(predictions.n_samples)
        features = replace(self.features, probs=predictions.probs, by=ones)
        return replace(self, predictions=predictions, features=features)

    @property
    def parameters(self) -> dict[str, Any]:
        """What a reader of a result should know of it."""
        found: dict[str, Any] = {"rank": self.features.shape[1]}
        return found if self.missing is None else found | {"trace_error": self.missing}

    def form(
        self,
        kernel: Kernel | MatrixKernel,
        scale: float,
        *,
        diagonal: bool,
        whole: float | None = None,
    ) -> FeatureSquares:
        """Return scale · Σ_ij w_i w_j ⟨φ_i, φ_j⟩ D_iᵀ A D_j over all pairs, or those with i ≠ j."""
        _, matrix = kernel.terms[0]
        features, weights = self.features, self.predictions.weights
        if isinstance(features, ComputedFeatures):
            features = replace(features, by=weights)
        else:
            features = scaled_rows(features[:], weights)
        return FeatureSquares(self.predictions.probs, features, matrix, scale, diagonal, whole)


def _computed(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    kernel: Kernel,
    probs: NDArray[np.float64],
) -> ComputedFeatures:
    width = int(function(probs[:1]).shape[1])
    return ComputedFeatures(function, probs, width, kernel.bound, np.ones(len(probs)))


def _directions(rank: int) -> int:
    return (rank + 1) // 2


def fitting_rows(predictions: Rows) -> Rows:
    """Return the rows that bandwidths and features are fitted to: all, or a subsample of very many."""
    if predictions.n_samples <= HELD_UP_TO:
        return predictions
    if predictions.are_alike:
        return subsample(predictions.probs[rows] for rows in blocks(predictions.n_samples, ROWS))
    numbers = np.arange(predictions.n_samples, dtype=np.float64)[:, None]
    return predictions.take(subsample([numbers]).probs[:, 0].astype(np.intp))


def chosen(
    approximation: Approximation | None, kernel: Kernel | MatrixKernel, predictions: Rows
) -> Approximation | None:
    """Return what "auto" stands for."""
    if approximation != "auto":
        return approximation
    n, m = predictions.n_samples, predictions.n_classes
    if isinstance(kernel, Kernel) and kernel.is_on_a_line(m):
        return None
    return None if n <= FULL_ROWS and float(n) ** 2 * m <= FULL_SIZE else "nystrom"


def check_approximation(kernel: Kernel | MatrixKernel, method: object) -> None:
    """Raise if a kernel cannot be approximated so; None is no approximation."""
    if method is None:
        return
    choose("approximation", method, APPROXIMATIONS)
    if len(kernel.terms) > 1:
        raise InputError(
            f"kernel has {len(kernel.terms)} parts, and an approximation takes one kernel between "
            "predictions and one matrix between classes; leave the approximation out."
        )
    if method == "fourier" and not has_fourier_features(kernel.terms[0][0]):
        raise InputError(
            f"there are no Fourier features of {quoted(kernel.terms[0][0], 200)}; use "
            "approximation='nystrom', which takes any kernel."
        )


# ------------------------------------------------------------------ skce
#
# For a kernel k with values k(s, t) in the m×m matrices and residuals D_i = onehot(y_i) − g_i, let
# h_ij = D_iᵀ k(g_i, g_j) D_j. The population value E h_ij is 0 for a calibrated model, and for a
# universal kernel only for a calibrated one. Source: Widmann, Lindsten, Zachariah, "Calibration tests
# in multi-class classification: A unifying framework", NeurIPS 2019, Table 1.


@dataclass(frozen=True)
class _SKCE(Statistic):
    kernel: Kernel | MatrixKernel = field(default_factory=Exponential)

    measures: ClassVar[str] = "squared kernel calibration error"

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth to the predictions."""
        return replace(
            super().fitted(predictions),
            kernel=fitted(self.kernel, predictions.probs, predictions.weights),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel and its bandwidth."""
        return {"kernel": type(self.kernel).__name__, **self.kernel.parameters}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the bandwidth heuristic has to say."""
        return self.kernel.notes

    def _terms(self, predictions: Rows) -> tuple[Term, ...]:
        probs, by = predictions.probs, predictions.weights
        kernel = fitted(self.kernel, probs, by)
        return tuple(Term(scaled(KernelWeights(part, probs), by), A) for part, A in kernel.terms)

    def _tail_bound(
        self, predictions: Rows, inequality: Literal["mcdiarmid", "hoeffding"]
    ) -> TailBound | None:
        """Return the distribution-free bound, of rows of equal weight."""
        constant = partial(_bound_constant, self.kernel, predictions.n_classes)
        if not predictions.are_alike:
            return None
        return TailBound(inequality, constant, predictions.n_samples)


@dataclass(frozen=True)
class _AllPairs(_SKCE):
    """What the estimators that look at all pairs share: their kernel may be taken of low rank."""

    approximation: Approximation | None = None
    rank: int = RANK
    _fit: LowRank | None = field(default=None, repr=False, compare=False, kw_only=True)

    #: Whether pairs i = j count.
    counts_own: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_approximation(self.kernel, self.approximation)

    @property
    def of_parts(self) -> bool:  # type: ignore[override]
        """Whether the kernel is of low rank; else all pairs of rows are looked at."""
        return self.approximation is not None

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth, and features where the kernel is taken of low rank.

        Of parts, all is fitted to a sample of the rows.
        """
        if predictions.part_of is not None and self.approximation is not None:
            fixed: Approximation = "nystrom" if self.approximation == "auto" else self.approximation
            kernel = fitted(self.kernel, predictions.probs, predictions.weights)
            known = LowRank.fitted_to(kernel, predictions, fixed, self.rank)
            known = replace(known, of_parts=True)
            return replace(self, kernel=kernel, approximation=fixed, _fit=known)
        method = self._chosen(predictions)
        if method is None:
            found = super().fitted(predictions)
            return found if found.approximation is None else replace(found, approximation=None)
        found = replace(super().fitted(fitting_rows(predictions)), approximation=method)
        return replace(found, _fit=LowRank.of(found.kernel, predictions, method, self.rank))

    def given(self, predictions: Rows) -> Pairwise | FeatureSquares:
        """Fix the predictions: a quadratic form, with its diagonal or without."""
        own, whole = self.counts_own, predictions.whole
        scale = whole.total**-2.0 if own else 1.0 / whole.pairs
        kernel, low_rank = self._low_rank(predictions)
        if low_rank is not None:
            return low_rank.form(kernel, scale, diagonal=own, whole=whole.total)
        bound = self._tail_bound(predictions, "mcdiarmid" if own else "hoeffding")
        return Pairwise(predictions.probs, self._terms(predictions), scale, own, bound)

    def _chosen(self, predictions: Rows) -> Approximation | None:
        return chosen(self.approximation, self.kernel, predictions)

    def _low_rank(self, predictions: Rows) -> tuple[Kernel | MatrixKernel, LowRank | None]:
        """Return the fitted kernel and its features, if it is taken of low rank."""
        if self._fit is not None and self._fit.of_parts:
            return self.kernel, self._fit.of_rows(predictions)
        if self._chosen(predictions) is None:
            return self.kernel, None
        known = self._fit is not None and self._fit.predictions is predictions
        found = self if known else self.fitted(predictions)
        return found.kernel, found._fit

    @property
    def faster(self) -> Phrase:
        """A kernel of low rank, or of lower rank."""
        if self.approximation is None:
            option = Argument("approximation", "nystrom")
            return Phrase(
                "with {option} its time grows as the rows, and p is as exact", {"option": option}
            )
        option = Argument("rank", max(1, self.rank // 4))
        return Phrase("{option} takes a quarter of that, and p is as exact", {"option": option})

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth, and the approximation, if any."""
        found = super().parameters
        if self.approximation is not None:
            found["approximation"] = self.approximation
            found |= self._fit.parameters if self._fit else {"rank": self.rank}
        return found


def _bound_constant(kernel: Kernel | MatrixKernel, m: int, p: float, q: float) -> float:
    """Return B_{p;q} = 2^{1 + 1/p − 1/q} sup ‖k(s, t)‖_{p;q} (Lemma H.1)."""
    return float(2.0 ** (1.0 + 1.0 / p - 1.0 / q) * kernel.norm_bound(p, q, m))


@arguments()
@dataclass(frozen=True)
class BiasedSKCE(_AllPairs):
    """Squared kernel calibration error, biased: never negative, too large by O(1/n). O(n² m).

    SKCE_b = n⁻² Σ_ij h_ij, pairs i = j included.

    Parameters
    ----------
    kernel
        A kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, the paper's:
        exp(−TV/ν) is universal, and ν the median distance keeps it sensitive at the scale of the
        predictions.
    approximation
        Default None: the kernel itself, O(n² m). "nystrom": the kernel matrix by its pivoted incomplete
        Cholesky factorisation, for any kernel; the result says what share of its trace is left out.
        "fourier": by random Fourier features, for kernels of a distance, inner products and sums of
        these. Both take O(nF) a draw for F columns. What is tested is then the statistic of another
        kernel, which depends on the predictions only: p-values of the exact null stay exact. "auto":
        the kernel itself up to 5 000 rows, of more than 16 classes while n² m is at most 4e8, and
        always where it takes one pass (exponential, two classes); else "nystrom".
    rank
        Columns F at most. Default 256: in simulations (1 000 rows, ten classes) as powerful as the
        kernel itself, where 32 columns lost up to a sixth. Without an approximation it does not count.

    References
    ----------
    Widmann et al. 2019, Table 1 and Lemma F.1.

    Examples
    --------
    >>> import caltest
    >>> from caltest.kernels import Gaussian
    >>> round(caltest.estimate([[1, 0], [0, 1]], [0, 0], BiasedSKCE(Gaussian(1.0))), 12)
    0.5
    """

    name: ClassVar[str] = "skce_b"
    counts_own: ClassVar[bool] = True


@arguments()
@dataclass(frozen=True)
class UnbiasedSKCE(_AllPairs):
    """Squared kernel calibration error, unbiased: it may be negative. O(n² m).

    SKCE_uq = 2/(n(n−1)) Σ_{i<j} h_ij.

    Parameters
    ----------
    kernel
        A kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, see
        :class:`BiasedSKCE`.
    approximation, rank
        As in :class:`BiasedSKCE`.

    References
    ----------
    Widmann et al. 2019, Table 1 and Lemma F.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.kernels import Gaussian
    >>> round(caltest.estimate([[1, 0], [0, 1]], [1, 0], UnbiasedSKCE(Gaussian(1.0))), 12)
    -0.735758882343
    """

    name: ClassVar[str] = "skce_uq"


@arguments(seed=Whole(0))
@dataclass(frozen=True)
class LinearSKCE(_SKCE):
    """Squared kernel calibration error from disjoint pairs of rows: unbiased and fast. O(n m).

    SKCE_ul = ⌊n/2⌋⁻¹ Σ h_ij over disjoint pairs.

    Parameters
    ----------
    kernel
        A kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, see
        :class:`BiasedSKCE`.
    pairing
        "random" (default): the pairs are chosen by the seed and the predictions, whatever the order of
        the rows. Ties between rows of equal predictions, whose order may depend on the labels, are
        broken by the ``rng`` of the test: its p-value is exact over the choice of that. "rows":
        consecutive rows, as in the published numbers; an odd last row is not used. Its p-values are
        exact only if the order of the rows carries no information about the labels: in a file that is
        sorted by label, every model looks miscalibrated.
    seed
        Of the random pairing, a whole number from 0. Default 0.

    Raises
    ------
    InputError
        If an option cannot be used.

    References
    ----------
    Widmann et al. 2019, Table 1 and Lemma F.3.

    Examples
    --------
    >>> import caltest
    >>> from caltest.kernels import Gaussian
    >>> round(caltest.estimate([[1, 0], [0, 1]], [1, 0], LinearSKCE(Gaussian(1.0))), 12)
    -0.735758882343
    """

    pairing: Literal["random", "rows"] = "random"
    seed: int = 0
    _ties: int | None = field(default=None, repr=False, compare=False, kw_only=True)

    name: ClassVar[str] = "skce_ul"
    seeded: ClassVar[str | None] = "_ties"

    def __post_init__(self) -> None:
        choose("pairing", self.pairing, {"random": True, "rows": True})

    @property
    def depends_on_row_order(self) -> bool:  # type: ignore[override]
        """Whether consecutive rows are paired."""
        return self.pairing == "rows"

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth and how rows are paired."""
        chosen = {"pairing_seed": self.seed} if self.pairing == "random" else {}
        return {**super().parameters, "pairing": self.pairing, **chosen}

    @property
    def notes(self) -> tuple[str, ...]:
        """The bandwidth's notes, and what pairs of consecutive rows take for granted."""
        if self.pairing == "random":
            return super().notes
        order = (
            "skce_ul paired consecutive rows: the p-value holds only if the order of the rows carries "
            "no information about the labels; rows sorted by label need pairing='random'."
        )
        return (*super().notes, order)

    def given(self, predictions: Rows) -> PairMean:
        """Fix the predictions: a mean of independent terms."""
        probs, weights = predictions.probs, predictions.weights
        kernel = fitted(self.kernel, probs, weights)
        rows = self._pairs(probs)
        counts = weights[rows[0]] * weights[rows[1]]
        counts /= counts.mean()
        values = ((part.paired(probs[rows[0]], probs[rows[1]]), A) for part, A in kernel.terms)
        components = tuple((each * counts, A) for each, A in values)
        return PairMean(probs, rows, components, self._tail_bound(predictions, "hoeffding"))

    def _pairs(self, probs: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the two rows of every pair, (2, ⌊n/2⌋).

        At random they depend on the numbers in the rows alone, not on where rows and classes stand.
        Rows of the same numbers come in an order drawn for the test. In the order in which they came, a
        fixed permutation would make a function of their number of events out of rows sorted by label.
        """
        n = len(probs)
        order = np.arange(n)
        if self.pairing == "random":
            ties = 0 if self._ties is None else child_seed(self._ties, 2)
            places = generator(ties, 1).permutation(n)
            sorted_rows = places[fixed_order(np.sort(probs[places], axis=1))]  # stable
            order = sorted_rows[generator(self.seed).permutation(n)]
        return order[: 2 * (n // 2)].reshape(-1, 2).T


@arguments(kernel=real_kernel)
@dataclass(frozen=True)
class MMCE(_SKCE):
    """Squared maximum mean calibration error: a kernel error of the top-class confidence.

    n⁻² Σ_ij (y_i − c_i)(y_j − c_j) k(c_i, c_j).

    c is a probability and y says whether its event was observed: of the top class, unless another lens
    is asked for. This is SKCE_b of two classes with kernel k/2, and the square of what the literature
    prints.

    Parameters
    ----------
    kernel
        A real-valued kernel. Default exp(−|c − c'|/0.4), the source's.

    References
    ----------
    Kumar, Sarawagi, Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", ICML 2018; as a kernel calibration error: Widmann et al. 2019, Example I.1.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.25, 0.25], [0, 1], "mmce"), 6)
    0.0625
    """

    kernel: Kernel = field(default_factory=lambda: Exponential(0.4))

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InputError(
                "mmce takes a real-valued kernel, not a matrix-valued one; use BiasedSKCE with it."
            )

    name: ClassVar[str] = "mmce"
    measures: ClassVar[str] = "squared maximum mean calibration error"
    default_lens: ClassVar[str | None] = "top_label"

    def given(self, predictions: Rows) -> Pairwise:
        """Fix the predictions: a quadratic form with its diagonal."""
        two_classes(self, predictions)
        whole = self.fitted(predictions)
        half = replace(whole, kernel=0.5 * whole.kernel)
        terms = whole._terms(predictions)  # not the half of it: of two classes one pass does
        bound = half._tail_bound(predictions, "mcdiarmid")
        return Pairwise(predictions.probs, terms, 0.5 * predictions.whole.total**-2.0, True, bound)
