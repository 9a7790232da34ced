"""The conditional kernel calibration error and the joint one: kernels of predictions and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, cast, get_args

import numpy as np
import scipy

from caltest._arguments import Number, Whole, anything, changed, choose, options, positive_integer
from caltest._parallel import check_fits
from caltest._sums import Array, blocks
from caltest._visible import quoted
from caltest.alignment import check_rows, row_names
from caltest.data import Rows
from caltest.data.containers import read_table
from caltest.exceptions import InputError, Row
from caltest.forms import FeatureSquares, Pairwise, kernel_matrices
from caltest.forms.kernel_matrices import DenseWeights, KernelWeights, ProductWeights, Term, Weights
from caltest.kernels import Gaussian, Kernel, LinearGaussian, MatrixKernel
from caltest.kernels import fitted as fitted_kernel
from caltest.kernels.bandwidth import fixed_order
from caltest.kernels.base import fourier_features, has_fourier_features
from caltest.sampling import MOST_SEED
from caltest.spelling import column_of
from caltest.statistics.base import Listed
from caltest.statistics.skce import UnbiasedSKCE

# ------------------------------------------------------------------ groups


@dataclass(frozen=True)
class _Equal(Kernel):
    """1 if two values are equal, else 0."""

    bound = 1.0

    def __call__(self, x: Array, y: Array) -> Array:
        return np.equal(x, y.T).astype(np.float64)

    def paired(self, x: Array, y: Array) -> Array:
        return np.equal(x, y)[:, 0].astype(np.float64)


@dataclass(frozen=True, repr=False)
class Groups:
    """The group of every row, as a number, and a kernel between groups."""

    numbers: tuple[float, ...]
    kernel: Kernel
    given: Any = None  # names of the rows

    @classmethod
    def of(cls, given: object) -> Groups:
        """Read one column: text, booleans and integers name groups, floats are a quantity.

        Raises
        ------
        InputError
            If it is not a column, or an entry is missing or not finite.

        Examples
        --------
        >>> Groups.of(["north", "south", "north"])
        <2, 3 rows>
        >>> Groups.of([18.5, 42.0])
        <quantity, 2 rows>
        """
        values = read_table(given, "groups").values
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1 or not len(values):
            do = "give one column, with an entry per row"
            raise InputError(f"groups has shape {values.shape}; {do}.")
        names = next(row_names(given, "groups"), None)
        if values.dtype.kind != "f":
            codes = column_of(values.tolist(), "groups", "group").codes
            return cls(tuple(codes.astype(np.float64).tolist()), _Equal(), names)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            do = "give finite numbers, or names"
            raise InputError(f"groups has the entry {values[wrong[0]]} in {Row(int(wrong[0]))}; {do}.")
        quantity = values.astype(np.float64)
        quantity -= quantity.min()
        quantity /= quantity.max() or 1.0
        return cls(tuple(quantity.tolist()), Gaussian("median").fitted(quantity[:, None]), names)

    @property
    def described(self) -> int | str:
        """Number of groups, or the word "quantity"."""
        return int(max(self.numbers)) + 1 if isinstance(self.kernel, _Equal) else "quantity"

    def __repr__(self) -> str:
        return f"<{self.described}, {len(self.numbers)} rows>"


# ------------------------------------------------------------------ ridge
#
# With a kernel matrix K and K_c = K + c I, c = λ n, the CKCE is Σ_ij W_ij ⟨D_i, D_j⟩ for
# W = K_c⁻¹ K K_c⁻¹. From features with K = ΦΦᵀ, W = ΨΨᵀ for Ψ = Φ (ΦᵀΦ + c I)⁻¹.
#
# With weights w that sum to n, the regression that minimises Σ w_i ‖d_i − f(g_i)‖² + λ n ‖f‖² is f =
# Σ_i α_i k(g_i, ·) with α = S (SKS + c I)⁻¹ S D, S² = diag(w). So CKCE = αᵀKα has W = S V S, with V
# defined like W above, for the kernel matrix SKS.


#: Rules for λ, as functions of the (effective) number of rows.
RULES: dict[str, Callable[[float], float]] = {"n^-1/4": lambda n: n**-0.25}

LARGEST = 1e6  # λ; beyond, the CKCE is SKCE_b over λ² up to rounding
BYTES_A_PAIR = 17  # peak of `dense_weights`: two n×n matrices; measured 16.3 at n = 10 000
_NEGLIGIBLE = 1e-13  # eigenvalues of W below this share of the largest are dropped
_ROWS = 512


def dense_weights(kernel_matrix: Weights, n: int, c: float) -> Array:
    """Return W = K_c⁻¹ − c K_c⁻², (n, n), by a Cholesky factorisation: 2 n³ operations.

    Raises
    ------
    InputError
        If c is so small that K_c is singular in double precision.
    """
    k = np.empty((n, n))
    for rows in blocks(n, _ROWS):
        k[rows] = kernel_matrix(rows, slice(0, n))
    k[np.diag_indices(n)] += c
    # LAPACK and BLAS write in place, column by column: pass the transpose of a symmetric matrix.
    factor, failed = scipy.linalg.lapack.dpotrf(k.T, lower=1, overwrite_a=1)
    if not failed:
        inverse, failed = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        found = f"the kernel matrix plus λ n = {c:.3g} on its diagonal is singular to rounding"
        raise InputError(f"{found}; give a larger regularization.")
    _mirror(inverse)
    start = inverse.copy(order="F")
    w = scipy.linalg.blas.dsyrk(-c, inverse, beta=1.0, c=start, lower=1, overwrite_c=1)
    _mirror(w)
    return np.asarray(w)


def _mirror(a: Array) -> None:
    """Copy the lower triangle to the upper one."""
    for rows in blocks(len(a), _ROWS):
        corner = np.tril(a[rows, rows])
        a[rows, rows] = corner + np.tril(corner, -1).T
        a[rows, rows.stop :] = a[rows.stop :, rows].T


# ------------------------------------------------------------------ ckce
#
# Source: Moskvichev and Sejdinovic, "All models are miscalibrated, but some less so: comparing
# calibration with conditional mean operators", 2025.


Method: TypeAlias = Literal["auto", "exact", "nystrom", "fourier"]

#: Rows up to which method "auto" is "exact": half a second on one core.
EXACT_UP_TO = 2000

#: Number of Fourier frequencies, or the fewest columns beyond one per class, by default.
FEATURES = 100

_MOST_COLUMNS = 500  # most columns beyond one per class, by default
# Share of the trace that columns leave out, over λ n: the value lacks about a quarter of it.
_ENOUGH, _MUCH = 0.004, 0.04


@dataclass(frozen=True)
class _Fit:
    """Results of fitting, and the predictions that they belong to."""

    predictions: Rows
    rule: str
    factor: Array | None  # Φ (n, F), ΦΦᵀ ≈ K
    trace_error: float | None  # (tr K − tr ΦΦᵀ) / tr K
    ratio: float  # (tr K − tr ΦΦᵀ) / (λ n)


_SEED = Whole(0, MOST_SEED - 1, "give a whole number that is not negative")


@options(features=positive_integer, groups=anything, seed=_SEED)
class CKCE(Listed, row="ckce"):
    """Conditional kernel calibration error: predicted against estimated label distributions.

    One operator takes a prediction to the mean embedding of the observed labels, the other to
    that of the predicted distribution; both are estimated by kernel ridge regression. With residuals
    D_i = onehot(y_i) − g_i, the kernel matrix K of the predictions and K_λ = K + λ n I,

        CKCE = tr(Wᵀ K W),  W = K_λ⁻¹ D.

    It depends less than the SKCE on how the predictions are distributed, which makes it suitable
    for comparing models. Given the predictions it is a quadratic form in the residuals, so its
    null distribution is available: labels drawn from the predictions give exact p-values, and its
    conditional moments are known.

    Parameters
    ----------
    kernel : Kernel or MatrixKernel, default ``LinearGaussian("median")``
        A kernel of :mod:`caltest.kernels` between predictions. Default ``LinearGaussian("median")``,
        the source's: universal, and with the identity in its space. Labels are compared by the
        Kronecker kernel 1[y = y']; for another one, with matrix A of its values for all pairs of
        classes, give ``MatrixKernel([(kernel, A)])``. (Labels beyond classes would need the mean
        embeddings of the predicted distributions instead of D.)
    regularization : float or str, default "n^-1/4"
        λ: a positive number, or a rule of the effective number of rows. Default "n^-1/4", the source's.
    method : {"auto", "exact", "nystrom", "fourier"}, default "auto"
        How the inverse is taken.

        * "auto" (default): "exact" up to 2000 rows, "nystrom" beyond or where ``features`` is given;
        * "exact": by Cholesky factorisation, O(n³) and 17 n² bytes;
        * "nystrom": K replaced by its pivoted incomplete Cholesky factorisation, O(n F²). It has no
          randomness, takes any kernel, and says what share of the trace is left out. Where pivots
          tie, the order of the classes may matter within that error;
        * "fourier": K replaced by random Fourier features, as in the source's Appendix B. Kernels
          of a distance, inner products, and sums of them. The order of the classes matters, if
          little. With ``features=100`` its error on real networks was 0.2% (10 classes) and 1.2%
          (100), that of "nystrom" 0.0003% and 0.3%.
    features : int, optional
        Columns of the Cholesky factor, or Fourier frequencies (m + 2 ``features`` columns).
        Default None: 100 frequencies, as in the source; from m + 100 to m + 500 columns, only as
        many as the value needs to be accurate to about 0.1%. A note reports if the columns leave
        out much of the trace, compared with λ n.
    groups : array of shape (n,), optional
        Group membership of every row, for calibration within groups (section 3.3): is P(Y | g, group) =
        g? The kernel is then the product of ``kernel`` and one between groups: equality for text,
        booleans and integers; for floats a Gaussian, its bandwidth the median distance. Default None:
        none. Not with method "fourier".
    seed : int, default 0
        Seed of the Fourier frequencies. Default 0: the same features every time.

    Raises
    ------
    InputError
        If an option cannot be used, if there are not as many groups as rows, or if "exact" needs more
        memory than there is.

    References
    ----------
    Moskvichev and Sejdinovic 2025, section 3 and Appendix B; there it is thought hard to test with.
    Incomplete factorisation: Fine and Scheinberg 2002.

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> result = caltest.test(sample.probs, sample.labels, CKCE(), null="moments")
    >>> result.pvalue < 1e-9, result.parameters["method"]
    (True, 'exact')
    """

    kernel: Kernel | MatrixKernel = field(default_factory=LinearGaussian)
    regularization: float | str = "n^-1/4"
    method: Method = "auto"
    features: int | None = None
    groups: Any = None
    seed: int = 0

    reported = ("kernel",)

    def __post_init__(self) -> None:
        if len(self.kernel.terms) > 1:
            do = "ckce takes one kernel between predictions and one matrix between classes"
            raise InputError(f"kernel has {len(self.kernel.terms)} parts; {do}.")
        if isinstance(self.regularization, str):
            choose("rule for the regularization", self.regularization, RULES)
        else:
            advice = f"give a positive number up to {LARGEST:g}, or 'n^-1/4'"
            Number(0.0, LARGEST, "(]", advice)("regularization", self.regularization)
        choose("method", self.method, dict.fromkeys(get_args(Method)))
        if self.features is not None and self.method == "exact":
            raise InputError("features is for method='nystrom' or 'fourier', not for 'exact'.")
        if self.groups is not None and not isinstance(self.groups, Groups):
            object.__setattr__(self, "groups", Groups.of(self.groups))
        part, _ = self.kernel.terms[0]
        if self.method == "fourier" and not has_fourier_features(part):
            these = "takes Gaussian and Exponential kernels, inner products, and sums of them"
            found = f"method='fourier' {these}, not {quoted(part, 200)}"
            raise InputError(f"{found}; method='nystrom' takes any.")
        if self.method == "fourier" and self.groups is not None:
            raise InputError("method='fourier' cannot be combined with groups; use method='nystrom'.")

    def fitted(self, predictions: Rows) -> Self:
        """Replace the rules for bandwidth, λ and method by their values for these predictions."""
        if self._fit is not None and self._fit.predictions is predictions:
            return self
        super().fitted(predictions)
        probs, (n, m) = predictions.probs, predictions.probs.shape
        if self.groups is not None and predictions.places is None and len(self.groups.numbers) != n:
            do = "give one per row"
            raise InputError(f"groups has {len(self.groups.numbers)} entries for {n} rows; {do}.")
        check_rows({"probs": predictions, "groups": self.groups})
        method = self.method
        if method == "auto":
            method = "exact" if self.features is None and n <= EXACT_UP_TO else "nystrom"
        if method == "exact":
            advice = "use method='nystrom' or 'fourier'"
            check_fits(float(BYTES_A_PAIR) * n**2, f"method='exact' of {n} rows", advice)
        kernel = fitted_kernel(self.kernel, probs, predictions.weights)
        found = changed(self, kernel=kernel, method=method)
        part, _ = kernel.terms[0]

        # λ is a number, or a function of the number of rows.
        strength, rule = self.regularization, "given" if self._fit is None else self._fit.rule
        if isinstance(strength, str):
            rule, strength = strength, RULES[strength](predictions.effective)

        # The kernel matrix is used as it is, or as ΦΦᵀ.
        gram, groups = found._kernel_matrix(predictions)
        trace = float(gram.diagonal().sum())
        order = fixed_order(probs if groups is None else np.hstack([probs, groups]))
        factor, missing = None, None
        if method == "fourier":
            factor = fourier_features(part, probs, self.features or FEATURES, int(self.seed))
        elif method == "nystrom" and self.features is not None:
            factor, missing, _ = kernel_matrices.incomplete_cholesky(gram, order, self.features)
        elif method == "nystrom":  # the inner product takes m columns
            most, fewest, enough = m + _MOST_COLUMNS, m + FEATURES, _ENOUGH * strength * n / trace
            factor, missing, _ = kernel_matrices.incomplete_cholesky(gram, order, most, fewest, enough)

        fit = _Fit(predictions, rule, factor, missing, (missing or 0.0) * trace / (strength * n))
        return changed(found, regularization=strength, _fit=fit)

    def given(self, predictions: Rows) -> Pairwise | FeatureSquares:
        """Return the form for these predictions: quadratic, with dense or low-rank weights."""
        fitted, w = self.fitted(predictions), predictions.weights
        n, probs, roots = predictions.n_samples, predictions.probs, np.sqrt(w / w.mean())
        _, label_kernel = fitted.kernel.terms[0]
        c = cast("float", fitted.regularization) * n
        factor = fitted._fit.factor
        if factor is not None:
            scaled_rows = factor * roots[:, None]
            values, vectors = scipy.linalg.eigh(scaled_rows.T @ scaled_rows)
            values = values.clip(min=0.0)
            strength = values / (values + c) ** 2
            kept = strength > _NEGLIGIBLE * strength.max()  # Ψ has orthogonal columns, ΨΨᵀ = W
            features = scaled_rows @ (vectors[:, kept] / (values[kept] + c)) * roots[:, None]
            return FeatureSquares(probs, features, label_kernel)
        gram, _ = fitted._kernel_matrix(predictions)
        inverse = dense_weights(kernel_matrices.scaled(gram, roots), n, c)
        weights = kernel_matrices.scaled(DenseWeights(inverse), roots)
        return Pairwise(probs, (Term(weights, label_kernel),), scale=1.0, diagonal=True)

    @property
    def parameters(self) -> dict[str, Any]:
        """Kernel, bandwidth, λ, and the method of inversion."""
        found, fit = super().parameters, self._fit
        if self.groups is not None:
            found["groups"] = self.groups.described
        found["regularization"] = self.regularization
        if fit is not None:
            found["regularization_rule"] = fit.rule
        found["method"] = self.method
        if self.method == "fourier":
            found |= {"features": self.features or FEATURES, "feature_seed": self.seed}
        elif fit is not None and fit.factor is not None:
            found |= {"features": fit.factor.shape[1], "trace_error": fit.trace_error}
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """The bandwidth's notes, and a warning if the factorisation leaves much out."""
        notes, fit = super().notes, self._fit
        if fit is None or fit.factor is None or fit.ratio <= _MUCH:
            return notes
        return (
            *notes,
            f"The {fit.factor.shape[1]} columns that stand for the kernel matrix leave out "
            f"{fit.trace_error:.2%} of its trace, much for so small a regularization: the value may be "
            f"{min(fit.ratio / 4, 1):.0%} too small, about; give more features, or method='exact'.",
        )

    def _kernel_matrix(self, predictions: Rows) -> tuple[Weights, Array | None]:
        """Return K, and the groups of the rows."""
        own = KernelWeights(self.kernel.terms[0][0], predictions.probs)
        if self.groups is None:
            return own, None
        groups = np.array(self.groups.numbers)[:, None]
        if predictions.places is not None:
            groups = groups[predictions.places]
        return ProductWeights(own, KernelWeights(self.groups.kernel, groups)), groups


@options()
class JKCE(UnbiasedSKCE, row="jkce"):
    """Joint kernel calibration error: the unbiased SKCE with the kernel of the CKCE. O(n² m).

    Parameters
    ----------
    kernel : Kernel or MatrixKernel, default ``LinearGaussian("median")``
        A kernel of :mod:`caltest.kernels`. Default ``LinearGaussian("median")``: s·t plus a Gaussian
        kernel. Published values have half the median as bandwidth.

    References
    ----------
    Moskvichev and Sejdinovic 2025, section 4.3.

    Examples
    --------
    >>> import caltest
    >>> from caltest.kernels import LinearGaussian
    >>> round(caltest.estimate([[1, 0], [0, 1]], [1, 0], JKCE(LinearGaussian(1.0))), 12)
    -0.735758882343
    """

    kernel: Kernel | MatrixKernel = field(default_factory=LinearGaussian)
