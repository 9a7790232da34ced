"""Estimation functions h(p, p') of squared calibration errors, and their risk.

With r the residual of a label, an estimation function h(p, p') estimates ⟨E[r | p], E[r | p']⟩; the
squared calibration error is the mean of h(g, g). Residuals for two classes are scalars, y − P(class 1),
with one coordinate; for m > 2 classes they are onehot(y) − g.

The risk says how far h(g_i, g_j) is from ⟨r_i, r_j⟩, on rows h was not fitted to. For i ≠ j ⟨r_i, r_j⟩
has the mean ⟨E[r | g_i], E[r | g_j]⟩, so that the risk of h is that of the truth plus the mean squared
error of h: smaller is better, and no calibration error need be known.

Source: Gruber and Bach, "Optimizing estimators of squared calibration errors in classification", 2024,
Equations 16 to 20 and 30.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments
from caltest._parallel import single_threaded_blas
from caltest._sums import Array
from caltest.data import sample
from caltest.data.rows import check_alike
from caltest.exceptions import InputError

Labels: TypeAlias = NDArray[np.integer[Any]]


def coordinates(probs: Array) -> Array:
    """Return predictions as the points of a kernel: for two classes, the probability of class 1."""
    return probs[:, 1:] if probs.shape[1] == 2 else probs


def residuals(probs: Array, labels: Labels) -> Array:
    """Return the residuals (n, k) of labels (n,) under predictions (n, m)."""
    if probs.shape[1] == 2:
        return np.asarray((labels - probs[:, 1])[:, None])
    found = -probs
    found[np.arange(len(labels)), labels] += 1.0
    return found


# ------------------------------------------------------------------ h, fitted, where it is wanted


class Surface(ABC):
    """A fitted h at a fixed set of e predictions."""

    #: What a reader of results should know of the fit, in sentences.
    notes: tuple[str, ...] = ()

    @abstractmethod
    def factors(self) -> tuple[Array, Array]:
        """Return (e, q) matrices U and V with h(p, p') = ⟨U(p), V(p')⟩."""

    @abstractmethod
    def squares(self, own: Array) -> float:
        """Return Σ_ij (⟨r_i, r_j⟩ − h(p_i, p_j))² over all pairs, r (e, k) its own rows' residuals."""

    def diagonal(self) -> Array:
        """Return h(p, p), (e,)."""
        return np.asarray(np.einsum("eq,eq->e", *self.factors()))

    def mean(self) -> float:
        """Return the mean of h(p, p): the squared calibration error."""
        return float(self.diagonal().mean())

    def risk(self, own: Array) -> float:
        """Return the mean of (⟨r_i, r_j⟩ − h(p_i, p_j))² over i ≠ j, r its own rows' residuals."""
        e, lengths = len(own), np.einsum("ek,ek->e", own, own)
        same = float(((lengths - self.diagonal()) ** 2).sum())
        return max(self.squares(own) - same, 0.0) / (e * (e - 1.0))  # no rounding below 0


@dataclass(frozen=True, eq=False)
class PlugIn(Surface):
    """h(p, p') = ⟨ĉ(p), ĉ(p')⟩ for an estimate ĉ (e, k) of the calibration curve E[r | p]."""

    curve: Array
    notes: tuple[str, ...] = ()

    def factors(self) -> tuple[Array, Array]:
        """Return the curve twice."""
        return self.curve, self.curve

    def squares(self, own: Array) -> float:
        """Return ‖RᵀR‖² − 2 ‖RᵀC‖² + ‖CᵀC‖², in k² operations a row."""
        products = [a.T @ b for a, b in ((own, own), (own, self.curve), (self.curve, self.curve))]
        first, mixed, last = (float(np.vdot(each, each)) for each in products)
        return first - 2.0 * mixed + last


#: The fitted h, for one value of the tuned option after the other.
Path: TypeAlias = Iterator[Surface]
#: From predictions (e, m) to the fitted h there.
Surfaces: TypeAlias = Callable[[Array], Path]


class EstimationFunction(ABC):
    """Base class of estimators of the squared error, before fitting.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.estimation import HistogramBinning
    >>> stated = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    >>> fitted = HistogramBinning(n_bins=2).fit(stated, [0, 0, 1, 0])
    >>> fitted.diagonal(stated).round(4).tolist()
    [0.0225, 0.0225, 0.1225, 0.1225]
    """

    #: Registered name.
    name: ClassVar[str]
    #: What it is, as a noun phrase for reports.
    is_a: ClassVar[str]
    #: The option that a search tunes.
    tuned: ClassVar[str]
    #: Whether it takes two classes only.
    two_classes_only: ClassVar[bool] = False

    @abstractmethod
    def learned(self, train: Array, residuals: Array, values: Sequence[Any]) -> Surfaces:
        """Learn from training predictions (n, m) and residuals (n, k), for values of the option."""

    @abstractmethod
    def search_space(self, n_classes: int) -> tuple[Any, ...]:
        """Return the values of the tuned option that are tried."""

    @arguments()
    def fit(self, probs: object, labels: object) -> Fitted:
        """Fit to training rows.

        Parameters
        ----------
        probs, labels
            As in :func:`caltest.test`.

        Returns
        -------
        Fitted
            With ``diagonal(probs)`` and ``gram(probs_a, probs_b)``.

        Raises
        ------
        InputError
            If the input is not a set of predictions and labels, or there are too many classes.
        """
        known, own = _rows(probs, labels, "an estimation function")
        self.check_classes(known.shape[1])
        return Fitted(self, self.learned(known, own, (getattr(self, self.tuned),)))

    def check_classes(self, n_classes: int) -> None:
        """Raise if the function does not take so many classes."""
        if self.two_classes_only and n_classes > 2:
            raise InputError(
                f"{self.name!r} measures one probability, and there are {n_classes} classes; "
                "give a lens such as 'top_label', or another function."
            )

    def with_value(self, value: Any) -> Self:
        """Return the function with another value of the tuned option."""
        return replace(self, **{self.tuned: value})  # type: ignore[type-var]

    @property
    def parameters(self) -> dict[str, Any]:
        """The options in force, flat and ready for JSON."""
        kept = str | int | float
        return {k: v if isinstance(v, kept) else repr(v) for k, v in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator of the squared error.

    Attributes
    ----------
    function
        The function and its options.
    surfaces
        What it learned: h, wherever it is wanted.
    """

    function: EstimationFunction
    surfaces: Surfaces = field(repr=False)

    def diagonal(self, probs: Array) -> Array:
        """Return h(p, p) for predictions (e, m), (e,): their mean estimates the squared error."""
        return next(self.surfaces(probs)).diagonal()

    def gram(self, first: Array, second: Array) -> Array:
        """Return h(p, p') for predictions (a, m) and (b, m), (a, b)."""
        one, _ = next(self.surfaces(first)).factors()
        _, other = next(self.surfaces(second)).factors()
        return np.asarray(one @ other.T)


@arguments(h=OneOf("caltest.estimation:Fitted", "give what the fit of an estimation function returns"))
def risk(h: Fitted, probs: object, labels: object) -> float:
    """Estimate an estimator's risk from all pairs of rows.

    The U-statistic (n(n − 1))⁻¹ Σ_{i≠j} (⟨r_i, r_j⟩ − h(g_i, g_j))².

    Parameters
    ----------
    h
        A fitted estimation function.
    probs, labels
        Rows that h was not fitted to, as in :func:`caltest.test`; n of them. For two classes, r is the
        scalar y − P(class 1).

    Returns
    -------
    float
        In O(n k²) operations for h = ⟨ĉ, ĉ'⟩ and O(n r²) for kernel ridge regression of rank r
        (Equation 30).

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels.

    Examples
    --------
    >>> from caltest.estimation import HistogramBinning, risk
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> round(risk(h, [0.3, 0.3, 0.8, 0.8], [0, 1, 1, 1]), 6)
    0.017083
    """
    rows, own = _rows(probs, labels)
    with single_threaded_blas():
        return next(h.surfaces(rows)).risk(own)


def _rows(probs: object, labels: object, what: str = "a risk") -> tuple[Array, Array]:
    """Return predictions (n, m) and residuals (n, k) of independent rows that count alike."""
    checked = sample(probs, labels)
    check_alike(checked.rows, what, "leave them out")
    return checked.rows.probs, residuals(checked.rows.probs, checked.labels)
