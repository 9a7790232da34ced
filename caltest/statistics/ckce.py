"""The conditional kernel calibration error (CKCE), and the joint one (JKCE) beside it.

Source: Moskvichev and Sejdinovic, "All models are miscalibrated, but some less so: comparing
calibration with conditional mean operators", 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np

from caltest._arguments import Whole, anything, arguments, choose, positive_integer
from caltest._quoted import quoted
from caltest._seeds import MOST_SEED
from caltest.data import Predictions
from caltest.exceptions import InputError
from caltest.forms import (
    DenseWeights,
    FeatureSquares,
    KernelWeights,
    Pairwise,
    ProductWeights,
    Term,
    Weights,
    incomplete_cholesky,
)
from caltest.kernels import Kernel, LinearGaussian, MatrixKernel
from caltest.kernels.bandwidth import fixed_order
from caltest.kernels.fourier import fourier_features, has_fourier_features
from caltest.statistics._groups import Groups
from caltest.statistics._ridge import (
    RULES,
    Array,
    check_memory,
    check_regularization,
    cross_validated,
    dense_weights,
    feature_weights,
)
from caltest.statistics.base import Statistic
from caltest.statistics.skce import UnbiasedSKCE

Method: TypeAlias = Literal["auto", "exact", "nystrom", "fourier"]

EXACT_UP_TO = 2000
"""Rows up to which method "auto" is "exact": half a second on one core."""

FEATURES = 100
"""Fourier frequencies, or the fewest columns beyond one a class, unless asked for."""

_METHODS = dict.fromkeys(("auto", "exact", "nystrom", "fourier"), True)
_CV_FEATURES = 300  # columns that the risk of a regularization is read off
_MOST_COLUMNS = 500  # beyond one a class, unless asked for
# What the columns leave out of the trace, over λ n: about a quarter of it is missing from the value.
_ENOUGH, _MUCH = 0.004, 0.04


@dataclass(frozen=True)
class _Fit:
    """What fitting found, and what it was found for."""

    options: tuple[Any, ...]
    predictions: Predictions
    rule: str
    factor: Array | None  # Φ (n, F), ΦΦᵀ ≈ K
    trace_error: float | None  # (tr K − tr ΦΦᵀ) / tr K
    ratio: float  # (tr K − tr ΦΦᵀ) / (λ n)


@arguments(
    features=positive_integer,
    groups=anything,
    seed=Whole(0, MOST_SEED - 1, "give a whole number that is not negative"),
)
@dataclass(frozen=True)
class CKCE(Statistic):
    """Conditional kernel calibration error: squared distance of two conditional mean operators.

    One operator takes a prediction to the mean embedding of the labels that came true, the other to
    that of the predicted distribution; both are estimated by kernel ridge regression. With residuals
    D_i = onehot(y_i) − g_i, the kernel matrix K of the predictions and K_λ = K + λ n I,

        CKCE = tr(Wᵀ K W),  W = K_λ⁻¹ D.

    It hangs less than SKCE on how the predictions are distributed, which makes it fit to compare
    models. Given the predictions it is a quadratic form in the residuals, so that its null
    distribution is at hand: labels drawn from the predictions give exact p-values, and its conditional
    moments are known.

    Parameters
    ----------
    kernel
        A kernel of :mod:`caltest.kernels` between predictions. Default ``LinearGaussian("median")``,
        the source's: universal, and with the identity in its space. Labels are compared by the
        Kronecker kernel 1[y = y']; for another one, with matrix A of its values for all pairs of
        classes, give ``MatrixKernel([(kernel, A)])``. (Labels beyond classes would need the mean
        embeddings of the predicted distributions in the place of D.)
    regularization
        λ: a positive number, or a rule.

        * "n^-1/4" (default): the source's;
        * "cv": of 10⁻⁶, 10⁻⁵·⁵, …, 1 the one with the least risk in leave-one-out cross-validation of
          the regression of the labels on the predictions, in the mean over labels drawn from the
          predictions, which has a closed form. As λ so depends on the predictions only, p-values
          stay exact and no draw needs a fit of its own. Cross-validation with the labels
          themselves would have to be repeated for every draw, and what it chooses for a
          calibrated model, whose residuals cannot be predicted, is chance. It is a choice for the
          estimate: λ was smaller than n^(−1/4), and tests less powerful, as noise counts for more.
    method
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
    features
        Columns of the Cholesky factor, or Fourier frequencies (m + 2 ``features`` columns). Default
        None: 100 frequencies, as in the source; from m + 100 to m + 500 columns, no more than it takes
        for the value to be right to about 1e-3 of itself. What the columns leave out of the trace, over
        λ n, tells; a note says so where it is much.
    groups
        Group membership of every row, (n,), for calibration within groups (section 3.3): is
        P(Y | g, group) = g? The kernel is then the product of ``kernel`` and one between groups:
        equality for text, booleans and integers; for floats a Gaussian, its bandwidth the median
        distance. Default None: none. Not with method "fourier".
    seed
        Of the Fourier frequencies. Default 0: the same features every time.

    Raises
    ------
    InputError
        If an option cannot be used, if there are not as many groups as rows, or if "exact" needs more
        memory than there is.

    References
    ----------
    Moskvichev and Sejdinovic 2025, section 3 and Appendix B; there it is thought hard to test with.
    Incomplete factorisation: Fine and Scheinberg 2002. Cross-validated conditional mean embeddings:
    Grünewälder et al. 2012.

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
    _fit: _Fit | None = field(default=None, repr=False, compare=False, kw_only=True)

    name: ClassVar[str] = "ckce"
    measures: ClassVar[str] = "conditional kernel calibration error"

    def __post_init__(self) -> None:
        _check_kernel(self.kernel)
        check_regularization(self.regularization)
        choose("method", self.method, _METHODS)
        if self.features is not None and self.method == "exact":
            raise InputError("features goes with method='nystrom' or 'fourier', not with 'exact'.")
        if self.groups is not None and not isinstance(self.groups, Groups):
            object.__setattr__(self, "groups", Groups.of(self.groups))
        if self.method == "fourier":
            self._check_fourier()
        if self._fit is not None and self._fit.options != self._options:  # by dataclasses.replace
            object.__setattr__(self, "_fit", None)

    def _check_fourier(self) -> None:
        part, _ = self.kernel.terms[0]
        if not has_fourier_features(part):
            raise InputError(
                f"method='fourier' takes Gaussian, Exponential and Matérn kernels, inner products, and "
                f"sums of them, not {quoted(part, 200)}; method='nystrom' takes any."
            )
        if self.groups is not None:
            raise InputError("method='fourier' does not go with groups; use method='nystrom'.")

    @property
    def _options(self) -> tuple[Any, ...]:
        return self.kernel, self.regularization, self.method, self.features, self.groups, self.seed

    def fitted(self, predictions: Predictions) -> Self:
        """Replace the rules for bandwidth, λ and method by what they give here."""
        if self._fit is not None and self._fit.predictions is predictions:
            return self
        n = predictions.n_samples
        self._check_rows(n)
        method = self._method_for(n)
        if method == "exact":
            check_memory(n)
        fitted = replace(self, kernel=self.kernel.fitted(predictions.probs), method=method)
        factor, trace_error = fitted._factor(predictions)
        regularization, rule = self.regularization, "given"
        if isinstance(regularization, str):
            rule, explicit = regularization, RULES[regularization]
            regularization = explicit(n) if explicit else fitted._cross_validated(predictions, factor)
        elif self._fit is not None:
            rule = self._fit.rule
        fitted = replace(fitted, regularization=regularization)
        ratio = (trace_error or 0.0) * fitted._trace(predictions) / (regularization * n)
        fit = _Fit(fitted._options, predictions, rule, factor, trace_error, ratio)
        return replace(fitted, _fit=fit)

    def given(self, predictions: Predictions) -> Pairwise | FeatureSquares:
        """Fix the predictions: a quadratic form, its weights a matrix or of low rank."""
        fitted = self.fitted(predictions)
        n, probs = predictions.n_samples, predictions.probs
        _, label_kernel = fitted.kernel.terms[0]
        c = cast("float", fitted.regularization) * n
        factor = cast("_Fit", fitted._fit).factor
        if factor is not None:
            return FeatureSquares(probs, feature_weights(factor, c), label_kernel)
        weights = DenseWeights(dense_weights(fitted._kernel_matrix(predictions), n, c))
        return Pairwise(probs, (Term(weights, label_kernel),), scale=1.0, diagonal=True)

    @property
    def parameters(self) -> dict[str, Any]:
        """Kernel, bandwidth, λ, and how the inverse was taken."""
        found: dict[str, Any] = {"kernel": type(self.kernel).__name__, **self.kernel.parameters}
        if isinstance(self.groups, Groups):
            found["groups"] = self.groups.described
        found["regularization"] = self.regularization
        if self._fit is not None:
            found["regularization_rule"] = self._fit.rule
        found["method"] = self.method
        if self.method == "fourier":
            found |= {"features": self.features or FEATURES, "feature_seed": self.seed}
        elif self._fit is not None and self._fit.factor is not None:
            found |= {"features": self._fit.factor.shape[1], "trace_error": self._fit.trace_error}
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """The bandwidth's notes, and a word where the factorisation leaves much out."""
        notes = self.kernel.notes
        if self._fit is not None and self._fit.ratio > _MUCH:
            columns = cast("Array", self._fit.factor).shape[1]
            notes += (
                f"The {columns} columns that stand for the kernel matrix leave out "
                f"{self._fit.trace_error:.2%} of its trace, much for so small a regularization: "
                f"the value may be too small by about {min(self._fit.ratio / 4, 1):.0%}; give more "
                "features, or method='exact'.",
            )
        return notes

    # -------------------------------------------------------------- the kernel matrix

    def _method_for(self, n: int) -> Method:
        if self.method != "auto":
            return self.method
        return "exact" if self.features is None and n <= EXACT_UP_TO else "nystrom"

    def _check_rows(self, n: int) -> None:
        if isinstance(self.groups, Groups) and len(self.groups.values) != n:
            raise InputError(
                f"groups has {len(self.groups.values)} entries, but there are {n} rows; give one a row."
            )

    def _kernel_matrix(self, predictions: Predictions) -> Weights:
        part, _ = self.kernel.terms[0]
        own = KernelWeights(part, predictions.probs)
        if not isinstance(self.groups, Groups):
            return own
        return ProductWeights((own, KernelWeights(self.groups.kernel, self.groups.values)))

    def _factor(self, predictions: Predictions) -> tuple[Array | None, float | None]:
        if self.method == "exact":
            return None, None
        if self.method == "fourier":
            part, _ = self.kernel.terms[0]
            count = self.features or FEATURES
            return fourier_features(part, predictions.probs, count, int(self.seed)), None
        if self.features is None:
            m, n = predictions.n_classes, predictions.n_samples  # the inner product takes m columns
            rule = RULES.get(str(self.regularization))
            strength = rule(n) if rule else self.regularization
            left = 0.0 if isinstance(strength, str) else _ENOUGH * strength * n
            enough = left / self._trace(predictions)
            return self._incomplete(predictions, m + _MOST_COLUMNS, m + FEATURES, enough)
        return self._incomplete(predictions, self.features)

    def _incomplete(
        self, predictions: Predictions, columns: int, fewest: int | None = None, enough: float = 0.0
    ) -> tuple[Array, float]:
        grouped = isinstance(self.groups, Groups)
        rows = np.hstack([predictions.probs, self.groups.values]) if grouped else predictions.probs
        factor, missing, _ = incomplete_cholesky(
            self._kernel_matrix(predictions), fixed_order(rows), columns, fewest, enough
        )
        return factor, missing

    def _trace(self, predictions: Predictions) -> float:
        return float(self._kernel_matrix(predictions).diagonal().sum())

    def _cross_validated(self, predictions: Predictions, factor: Array | None) -> float:
        features = self._incomplete(predictions, _CV_FEATURES)[0] if factor is None else factor
        return cross_validated(features, predictions.probs, self.kernel.terms[0][1])


@arguments()
@dataclass(frozen=True)
class JKCE(UnbiasedSKCE):
    """Joint kernel calibration error: SKCE_uq with the kernel of the CKCE. O(n² m).

    Parameters
    ----------
    kernel
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

    name: ClassVar[str] = "jkce"
    measures: ClassVar[str] = "joint kernel calibration error"


# ------------------------------------------------------------------ checks


def _check_kernel(kernel: Kernel | MatrixKernel) -> None:
    if len(kernel.terms) > 1:
        raise InputError(
            f"kernel has {len(kernel.terms)} parts; ckce takes one kernel between predictions and one "
            "matrix between classes."
        )
