"""Squared kernel calibration errors: from all pairs of rows, some pairs, low rank, a few locations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from caltest._arguments import Whole, among, changed, has, options, real_array, real_kernel
from caltest._sums import Array, Places
from caltest._visible import quoted
from caltest.data import Rows
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import FeatureSquares, PairMean, Pairwise, TailBound, kernel_matrices
from caltest.forms.base import Inequality
from caltest.forms.kernel_matrices import Approximation, KernelWeights, Term, chosen, scaled
from caltest.kernels import Exponential, Kernel, MatrixKernel, fitted
from caltest.kernels.bandwidth import fixed_order
from caltest.laws import Predictive
from caltest.sampling import child_seed, generator
from caltest.statistics.base import Listed
from caltest.statistics.distributions import SKCEOfNumbers

# ------------------------------------------------------------------ skce
#
# For a kernel k with values k(s, t) in the m×m matrices and residuals D_i = onehot(y_i) − g_i, let
# h_ij = D_iᵀ k(g_i, g_j) D_j. The population value E h_ij is 0 for a calibrated model, and for a
# universal kernel only for a calibrated one. Source: Widmann, Lindsten, Zachariah, "Calibration tests
# in multi-class classification: A unifying framework", NeurIPS 2019, Table 1.


@options()
class _SKCE(Listed):
    kernel: Kernel | MatrixKernel = field(default_factory=Exponential)

    reported: ClassVar[tuple[str, ...]] = ("kernel",)

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth to the predictions."""
        kernel = fitted(self.kernel, predictions.probs, predictions.weights)
        return changed(super().fitted(predictions), kernel=kernel)

    def _terms(self, predictions: Rows) -> tuple[Term, ...]:
        probs, by = predictions.probs, predictions.weights
        return tuple(Term(scaled(KernelWeights(part, probs), by), A) for part, A in self.kernel.terms)

    def _tail_bound(self, predictions: Rows, inequality: Inequality) -> TailBound | None:
        """Return the distribution-free bound, for rows of equal weight."""
        if not predictions.are_alike:
            return None
        constant = partial(_bound_constant, self.kernel, predictions.n_classes)
        return TailBound(inequality, constant, predictions.n_samples)


def _bound_constant(kernel: Kernel | MatrixKernel, m: int, p: float, q: float) -> float:
    """Return B_{p;q} = 2^{1 + 1/p − 1/q} sup ‖k(s, t)‖_{p;q} (Lemma H.1)."""
    return float(2.0 ** (1.0 + 1.0 / p - 1.0 / q) * kernel.norm_bound(p, q, m))


@options()
class _AllPairs(_SKCE, takes_weights=True):
    """Code shared by estimators over all pairs of rows, whose kernel may be of low rank."""

    approximation: Approximation | None = None
    rank: int = kernel_matrices.RANK

    reported = ("kernel", "approximation")

    def __post_init__(self) -> None:
        kernel_matrices.check_approximation(self.kernel, self.approximation)

    @property
    def of_parts(self) -> bool:  # type: ignore[override]
        """Whether the kernel is of low rank; otherwise all pairs of rows are needed."""
        return self.approximation is not None

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth, and features if the kernel is of low rank.

        For rows in parts, everything is fitted to a sample of the rows.
        """
        if self._fit is not None and self._fit.predictions is predictions:
            return self
        method = chosen(self.approximation, self.kernel, predictions)
        if method is None:
            return changed(super().fitted(predictions), approximation=None, _fit=None)
        found = super().fitted(kernel_matrices.fitting_rows(predictions))
        fit = kernel_matrices.LowRank.of(found.kernel, predictions, method, self.rank)
        return changed(found, approximation=method, _fit=fit)

    def wider(self, kernel: Kernel) -> Self:
        """Return the statistic with another kernel, by linear functions of the fitted features."""
        return changed(self, kernel=kernel, _fit=self._fit.of_kernel(kernel, self.rank))

    def given(self, predictions: Rows) -> Pairwise | FeatureSquares:
        """Return the form for these predictions: a quadratic form, with or without its diagonal."""
        own, whole, probs = self.how == "mean", predictions.whole, predictions.probs
        scale = whole.total**-2.0 if own else 1.0 / whole.pairs
        found, fit = self, None if self.approximation is None else self._fit
        if fit is not None and fit.of_parts:
            fit = fit.of_rows(predictions)
        elif fit is None or fit.predictions is not predictions:
            found = self.fitted(predictions)
            fit = found._fit
        if fit is not None:
            matrix = found.kernel.terms[0][1]
            return FeatureSquares(probs, fit.features, matrix, scale, own, whole.total)
        bound = found._tail_bound(predictions, "mcdiarmid" if own else "hoeffding")
        return Pairwise(probs, found._terms(predictions), scale, own, bound)

    @property
    def faster(self) -> Phrase:
        """Advice to use a kernel of low rank, or of lower rank."""
        if self.approximation is None:
            text = "with {option} its time grows as the rows, and p is as exact"
            return Phrase(text, {"option": Argument("approximation", "nystrom")})
        option = Argument("rank", max(1, self.rank // 4))
        return Phrase("{option} takes a quarter of that, and p is as exact", {"option": option})

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth, and the approximation, if any."""
        found = super().parameters
        if self.approximation is None:
            return found
        if self._fit is None:
            return found | {"rank": self.rank}
        missing = self._fit.missing
        error = {} if missing is None else {"trace_error": missing}
        return found | {"rank": self._fit.features.shape[1]} | error


class BiasedSKCE(_AllPairs, row="skce_b"):
    """Squared kernel calibration error, biased: never negative, too large by O(1/n). O(n² m).

    SKCE_b = n⁻² Σ_ij h_ij, pairs i = j included.

    Parameters
    ----------
    kernel : Kernel or MatrixKernel, default ``Exponential("median", "tv")``
        A kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, the paper's:
        exp(−TV/ν) is universal, and ν the median distance keeps it sensitive at the scale of the
        predictions.
    approximation : {"auto", "nystrom", "fourier"}, optional
        Default None: the kernel itself, O(n² m). "nystrom": the kernel matrix by its pivoted incomplete
        Cholesky factorisation, for any kernel; the result says what share of its trace is left out.
        "fourier": by random Fourier features, for kernels of a distance, inner products and sums of
        these. Both take O(nF) a draw for F columns. What is tested is then the statistic of another
        kernel, which depends on the predictions only: p-values of the exact null stay exact. "auto":
        the kernel itself up to 1 500 rows (5 000 in clusters), and always where it takes one pass
        (exponential, two classes); else "nystrom".
    rank : int, default 256
        Columns F at most. Default 256: in simulations (1 000 rows, ten classes) as powerful as the
        kernel itself, where 32 columns lost up to a sixth. Without an approximation it has no effect.

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


class UnbiasedSKCE(_AllPairs, row="skce_uq"):
    """Squared kernel calibration error, unbiased: it may be negative. O(n² m).

    SKCE_uq = 2/(n(n−1)) Σ_{i<j} h_ij.

    Parameters
    ----------
    kernel : Kernel or MatrixKernel, default ``Exponential("median", "tv")``
        A kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, see
        :class:`BiasedSKCE`.
    approximation : {"auto", "nystrom", "fourier"}, optional
        As in :class:`BiasedSKCE`.
    rank : int, default 256
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

    def fitted(self, predictions: Rows) -> Any:
        """Fit the kernel; for predicted numbers, return their own statistic, fitted."""
        if not isinstance(predictions.law, Predictive):
            return super().fitted(predictions)
        self.check_default(predictions.law)
        return SKCEOfNumbers().fitted(predictions)

    def given(self, predictions: Rows) -> Any:
        """Return the form for these predictions: a quadratic form without its diagonal."""
        if isinstance(predictions.law, Predictive):
            return self.fitted(predictions).given(predictions)
        return super().given(predictions)


@options(pairing=among("random", "rows"), seed=Whole(0))
class LinearSKCE(_SKCE, row="skce_ul"):
    """Squared kernel calibration error from disjoint pairs of rows: unbiased and fast. O(n m).

    SKCE_ul = ⌊n/2⌋⁻¹ Σ h_ij over disjoint pairs.

    Parameters
    ----------
    kernel : Kernel or MatrixKernel, default ``Exponential("median", "tv")``
        A kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, see
        :class:`BiasedSKCE`.
    pairing : {"random", "rows"}, default "random"
        "random" (default): the pairs are chosen by the seed and the predictions, whatever the order of
        the rows. Ties between rows of equal predictions, whose order may depend on the labels, are
        broken by the ``rng`` of the test: its p-value is exact over the choice of that. "rows":
        consecutive rows, as in the published numbers; an odd last row is not used. Its p-values are
        exact only if the order of the rows carries no information about the labels: in a file that is
        sorted by label, every model looks miscalibrated.
    seed : int, default 0
        Seed of the random pairing, a whole number from 0.

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

    reported = ("kernel", "pairing")

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth and the pairing."""
        return super().parameters | ({"pairing_seed": self.seed} if self.pairing == "random" else {})

    @property
    def notes(self) -> tuple[str, ...]:
        """The bandwidth's notes, and the assumption behind pairs of consecutive rows."""
        if self.pairing == "random":
            return super().notes
        why = "the p-value holds only if the order of the rows carries no information about the labels"
        do = "rows sorted by label need pairing='random'"
        return (*super().notes, f"skce_ul paired consecutive rows: {why}; {do}.")

    def given(self, predictions: Rows) -> PairMean:
        """Return the form for these predictions: a mean of independent terms."""
        probs, weights = predictions.probs, predictions.weights
        kernel = fitted(self.kernel, probs, weights)
        rows = self._pairs(probs)
        counts = weights[rows[0]] * weights[rows[1]]
        counts /= counts.mean()
        values = ((part.paired(probs[rows[0]], probs[rows[1]]), A) for part, A in kernel.terms)
        components = tuple((each * counts, A) for each, A in values)
        return PairMean(probs, rows, components, self._tail_bound(predictions, "hoeffding"))

    def shuffled(self, seed: int) -> Self:
        """Return the statistic with ties broken by the seed of a test."""
        return changed(self, _fit=seed)

    def _pairs(self, probs: Array) -> Places:
        """Return the two rows of every pair, (2, ⌊n/2⌋).

        Random pairs depend on the numbers in the rows only, not on the order of rows and classes. Rows
        with equal numbers are ordered at random for the test. If rows sorted by label kept their order,
        a fixed permutation would make the pairing of labels a function of the number of events.
        """
        n = len(probs)
        order = np.arange(n)
        if self.pairing == "random":
            places = generator(0 if self._fit is None else child_seed(self._fit, 2), 1).permutation(n)
            sorted_rows = places[fixed_order(np.sort(probs[places], axis=1))]  # stable
            order = sorted_rows[generator(self.seed).permutation(n)]
        return order[: 2 * (n // 2)].reshape(-1, 2).T


@options(kernel=real_kernel)
class MMCE(_SKCE, row="mmce"):
    """Squared maximum mean calibration error: a kernel error of the top-class confidence.

    n⁻² Σ_ij (y_i − c_i)(y_j − c_j) k(c_i, c_j).

    c is a probability and y is 1 if its event was observed: of the top class, unless another lens is
    requested. This is SKCE_b of two classes with kernel k/2, and the square of the published statistic.

    Parameters
    ----------
    kernel : Kernel, default ``Exponential(0.4)``
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

    def given(self, predictions: Rows) -> Pairwise:
        """Return the form for these predictions: a quadratic form with its diagonal."""
        self.probability(predictions)
        whole = self.fitted(predictions)
        terms = whole._terms(predictions)  # not half the kernel: for two classes this is one pass
        bound = changed(whole, kernel=0.5 * whole.kernel)._tail_bound(predictions, "mcdiarmid")
        return Pairwise(predictions.probs, terms, 0.5 * predictions.whole.total**-2.0, True, bound)


# ------------------------------------------------------------------ a few locations


_OFF_SIMPLEX = 1e-6  # tolerance for the sum of a location's probabilities


@options(kernel=real_kernel, seed=Whole(0))
class UCME(Listed, row="ucme"):
    """Unnormalised calibration mean embedding: a kernel measure at a few test locations. O(n J m).

    T = Σ_j ‖n⁻¹ Σ_i k(g_i, t_j) D_i‖².

    It measures how far labels and predictions, D_i = onehot(y_i) − g_i, differ around each of a
    few test locations t_j. ``skce_b`` compares all pairs of rows; this compares rows with
    locations. That is cheap, but misses errors that are not near any location. It is never
    negative.

    Parameters
    ----------
    kernel : Kernel, default ``Exponential("median", "tv")``
        A real-valued kernel of :mod:`caltest.kernels`. Default ``Exponential("median", "tv")``, as of
        :class:`BiasedSKCE`.
    locations : int or array of shape (J, m), default 10
        Number J of test locations, up to 10 000. They are rows of the predictions, chosen by the seed
        whatever the order of the rows; all of them where there are fewer. Or locations of your own,
        probabilities of shape (J, m): where an error would matter. Choose them without the labels.
    seed : int, default 0
        Seed of the choice of locations, a whole number from 0.

    Raises
    ------
    InputError
        If an option cannot be used.

    References
    ----------
    Widmann, Lindsten, Zachariah, "Calibration tests beyond classification", ICLR 2021;
    test locations: Chwialkowski, Ramdas, Sejdinovic, Gretton, "Fast two-sample testing with analytic
    representations of probability measures", NeurIPS 2015.

    Examples
    --------
    Both rows are locations, and one of two labels is wrong: (1 + e⁻²)/2.

    >>> import caltest
    >>> from caltest.kernels import Gaussian
    >>> from caltest.statistics import UCME
    >>> round(caltest.estimate([[1, 0], [0, 1]], [0, 0], UCME(Gaussian(1.0))), 12)
    0.567667641618

    With a location of your own, the second row:

    >>> round(caltest.estimate([[1, 0], [0, 1]], [0, 0], UCME(Gaussian(1.0), [[0, 1]])), 12)
    0.5
    """

    kernel: Kernel = field(default_factory=Exponential)
    locations: int | Sequence[Sequence[float]] = 10
    seed: int = 0

    reported = ("kernel", "locations")

    def __post_init__(self) -> None:
        given: Any = self.locations
        if has(given, "__len__") and not isinstance(given, str):
            points = real_array("locations", given, "give a number of them, or points of shape (L, m)")
            found, on_it = f"shape {points.shape}", points.ndim == 2 and len(points) > 0
            if on_it:
                fits = (points >= 0.0).all(axis=1) & (np.abs(points.sum(axis=1) - 1.0) <= _OFF_SIMPLEX)
                row, on_it = int(fits.argmin()), bool(fits.all())
                found = f"{quoted(points[row].tolist())} in row {row} (counting from 0)"
            if not on_it:
                raise InputError(f"locations has {found}; give rows of m probabilities that sum to 1.")
            given = tuple(map(tuple, points.tolist()))
        else:
            given = Whole(1, 10_000)("locations", given)
        object.__setattr__(self, "locations", given)

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth and choose the locations."""
        probs, m = predictions.probs, predictions.n_classes
        kernel = fitted(self.kernel, probs, predictions.weights)
        if not isinstance(self.locations, int):
            points = np.asarray(self.locations)
            if points.shape[1] != m:
                found = f"the locations are points of {points.shape[1]} classes, and there are {m}"
                raise InputError(f"{found}; give a probability for each, in the order of the columns.")
            return changed(self, kernel=kernel, _fit=points)
        # An order that depends on neither the order of rows nor, except for ties, of classes.
        order = fixed_order(probs)
        order = order[fixed_order(np.sort(probs[order], axis=1))]
        count = min(self.locations, len(probs))
        chosen = order[generator(self.seed).choice(len(probs), count, replace=False)]
        return changed(self, kernel=kernel, _fit=probs[chosen])

    def given(self, predictions: Rows) -> FeatureSquares:
        """Return the form for these predictions: sums of features, one feature per location."""
        found = self.fitted(predictions) if self._fit is None else self
        features = predictions.weighted(found.kernel(predictions.probs, found._fit))
        whole = predictions.whole.total
        return FeatureSquares(predictions.probs, features, None, whole**-2, True, whole)

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth, and the number of locations."""
        given: Any = self.locations if self._fit is None else self._fit
        count = given if isinstance(given, int) else len(given)
        return {**super().parameters, "locations": count, "location_seed": self.seed}
