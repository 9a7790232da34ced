"""Estimation functions h(p, p') of squared calibration errors, and their risk.

With r the residual of a label, an estimation function h(p, p') estimates ⟨E[r | p], E[r | p']⟩; the
squared calibration error is the mean of h(g, g). It has two stages. :meth:`EstimationFunction.given`
the predictions, of training rows and where h is wanted, it is a :class:`Surface` for every value of its
tuned option. A surface is a function of the training rows' residuals: all work that depends on
predictions only is done once, for any number of label vectors.

Residuals of two classes are scalars, y − P(class 1), with one coordinate; of m > 2 classes they are
onehot(y) − g.

The risk says how far h(g_i, g_j) is from ⟨r_i, r_j⟩, on rows h was not fitted to. For i ≠ j ⟨r_i, r_j⟩
has the mean ⟨E[r | g_i], E[r | g_j]⟩, so that the risk of h is that of the truth plus the mean squared
error of h: smaller is better, and no calibration error need be known.

Source: Gruber and Bach, "Optimizing estimators of squared calibration errors in classification", 2024,
Equations 16 to 20 and 30.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments
from caltest._parallel import Workers, single_threaded_blas
from caltest._sums import Array, blocks, sum_over_tiles
from caltest._visible import quoted
from caltest.data import sample
from caltest.data.rows import check_alike
from caltest.exceptions import InputError

Labels: TypeAlias = NDArray[np.integer[Any]]


def coordinates(probs: Array) -> Array:
    """Return predictions as the points of a kernel: of two classes, the probability of class 1."""
    return probs[:, 1:] if probs.shape[1] == 2 else probs


def residuals(probs: Array, labels: Labels) -> Array:
    """Return the residuals (n, B, k) of B label vectors (B, n) under predictions (n, m)."""
    if probs.shape[1] == 2:
        return np.asarray((labels.T - probs[:, 1:])[:, :, None])
    found, places = np.repeat(-probs[:, None, :], len(labels), axis=1), labels.T[:, :, None]
    np.put_along_axis(found, places, np.take_along_axis(found, places, 2) + 1.0, 2)
    return found


# ------------------------------------------------------------------ h, before labels


class Surface(ABC):
    """h at a fixed set of e predictions, as a function of the training rows' residuals (n, B, k)."""

    #: What a reader of results should know of the fit, in sentences.
    notes: tuple[str, ...] = ()

    @abstractmethod
    def diagonals(self, residuals: Array) -> Array:
        """Return h(p, p), (e, B)."""

    @abstractmethod
    def factors(self, residuals: Array) -> tuple[Array, Array]:
        """Return (e, q) matrices U and V for residuals (n, 1, k), with h(p, p') = ⟨U(p), V(p')⟩."""

    @abstractmethod
    def squares(self, residuals: Array, own: Array) -> tuple[Array, Array]:
        """Return Σ_ij (⟨r_i, r_j⟩ − h(p_i, p_j))² over all pairs, (B,), and h(p, p), (e, B).

        r are the residuals of the surface's own rows, (e, B, k). Most of the work serves both.
        """

    def means(self, residuals: Array) -> Array:
        """Return the mean of h(p, p), (B,): the squared calibration error."""
        return np.asarray(self.diagonals(residuals).mean(axis=0))

    def risks(self, residuals: Array, own: Array) -> Array:
        """Return the risk of its own rows, whose residuals are (e, B, k), (B,): a U-statistic.

        It is the mean of (⟨r_i, r_j⟩ − h(p_i, p_j))² over i ≠ j.
        """
        e, (squares, diagonals) = len(own), self.squares(residuals, own)
        same = ((_squared_lengths(own) - diagonals) ** 2).sum(axis=0)
        return np.asarray(np.maximum(squares - same, 0.0) / (e * (e - 1.0)))  # no rounding below 0


@dataclass(frozen=True, eq=False)
class PlugIn(Surface):
    """h(p, p') = ⟨ĉ(p), ĉ(p')⟩ for an estimate ĉ of the calibration curve E[r | p].

    ``curves`` takes the residuals and returns ĉ, (e, B, k).
    """

    curves: Callable[[Array], Array]
    notes: tuple[str, ...] = ()

    def diagonals(self, residuals: Array) -> Array:
        """Return ‖ĉ(p)‖²."""
        return _squared_lengths(self.curves(residuals))

    def factors(self, residuals: Array) -> tuple[Array, Array]:
        """Return the curve twice."""
        found = self.curves(residuals)[:, 0]
        return found, found

    def squares(self, residuals: Array, own: Array) -> tuple[Array, Array]:
        """Return ‖RᵀR‖² − 2 ‖RᵀC‖² + ‖CᵀC‖², in k² operations a row, and ‖ĉ(p)‖²."""
        curves = self.curves(residuals)
        r, c = own.transpose(1, 2, 0), curves.transpose(1, 2, 0)
        total = np.zeros(len(r))
        for left, right, factor in ((r, r, 1.0), (r, c, -2.0), (c, c, 1.0)):
            products = left @ right.transpose(0, 2, 1)
            total += factor * np.einsum("bkl,bkl->b", products, products)
        return total, _squared_lengths(curves)


def _squared_lengths(vectors: Array) -> Array:
    return np.asarray(np.einsum("ebk,ebk->eb", vectors, vectors))


#: From predictions (e, m) to h there, one surface after the other for the values of the tuned option.
Surfaces: TypeAlias = Callable[[Array], Iterator[Surface]]


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
    def given(self, probs: Array, values: Sequence[Any]) -> Surfaces:
        """Do the work that training predictions (n, m) and all values of the tuned option share."""

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
        return Fitted(self, self.given(known, (getattr(self, self.tuned),)), own)

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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as in scikit-learn, whose ``clone`` takes such objects."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}  # type: ignore[arg-type]

    @property
    def parameters(self) -> dict[str, Any]:
        """The options in force, flat and ready for JSON."""
        return {
            key: value if isinstance(value, str | int | float) else repr(value)
            for key, value in self.get_params().items()
        }


# ------------------------------------------------------------------ h, fitted, and its risk


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator of the squared error.

    Attributes
    ----------
    function
        The function and its options.
    surfaces
        The same, given the training predictions.
    residuals
        Of the training rows, (n, 1, k).
    """

    function: EstimationFunction
    surfaces: Surfaces = field(repr=False)
    residuals: Array = field(repr=False)

    def diagonal(self, probs: Array) -> Array:
        """Return h(p, p) for predictions (e, m), (e,): their mean estimates the squared error."""
        return next(self.surfaces(probs)).diagonals(self.residuals)[:, 0]

    def gram(self, first: Array, second: Array) -> Array:
        """Return h(p, p') for predictions (a, m) and (b, m), (a, b)."""
        one, _ = next(self.surfaces(first)).factors(self.residuals)
        _, other = next(self.surfaces(second)).factors(self.residuals)
        return np.asarray(one @ other.T)


class ErrorGram(Protocol):
    """Any calibration estimation function: its diagonal, and its values for pairs."""

    def diagonal(self, probs: Array) -> Array:
        """Return h(p, p) for predictions (e, m), (e,)."""
        ...

    def gram(self, first: Array, second: Array) -> Array:
        """Return h(p, p') for predictions (a, m) and (b, m), (a, b)."""
        ...


def _has_values(name: str, value: object) -> object:
    """Return an object that has what :class:`ErrorGram` says."""
    given = [getattr(value, each, None) for each in ("diagonal", "gram")]
    if all(map(callable, given)) and not isinstance(value, type):
        return value
    raise InputError(
        f"{name} is {quoted(value)}; give a fitted estimation function, or an object with "
        "diagonal(probs) and gram(probs_a, probs_b)."
    )


_BLOCK = 64  # disjoint pairs whose values are taken at a time: those of all pairs among them


@arguments(h=_has_values)
def risk(h: ErrorGram, probs: object, labels: object, *, n_jobs: int | None = None) -> float:
    """Estimate an estimator's risk from all pairs of rows.

    The U-statistic (n(n − 1))⁻¹ Σ_{i≠j} (⟨r_i, r_j⟩ − h(g_i, g_j))².

    Parameters
    ----------
    h
        A fitted estimation function, or any object with ``diagonal(probs)`` and
        ``gram(probs_a, probs_b)``, h symmetric.
    probs, labels
        Rows that h was not fitted to, as in :func:`caltest.test`; n of them. Of two classes, r is the
        scalar y − P(class 1).
    n_jobs
        Workers, as in joblib. Default: one.

    Returns
    -------
    float
        In O(n k²) operations for h = ⟨ĉ, ĉ'⟩ and O(n r²) for kernel ridge regression of rank r
        (Equation 30); else in O(n²), a tile of the n×n values of h at a time.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, or h is not a number for some pair.

    Examples
    --------
    >>> from caltest.estimation import HistogramBinning, risk
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> round(risk(h, [0.3, 0.3, 0.8, 0.8], [0, 1, 1, 1]), 6)
    0.017083
    """
    rows, own = _rows(probs, labels)
    with single_threaded_blas():
        if isinstance(h, Fitted):
            return float(next(h.surfaces(rows)).risks(h.residuals, own)[0])
        tile = partial(_tile, h, rows, own[:, 0])
        total = sum_over_tiles(tile, len(rows), Workers(n_jobs))
    return float(total / (len(rows) * (len(rows) - 1.0)))


@arguments(h=_has_values)
def linear_risk(h: ErrorGram, probs: object, labels: object) -> float:
    """Estimate an estimator's risk from disjoint pairs of rows: fast.

    The mean of (⟨r_i, r_j⟩ − h(g_i, g_j))² over the pairs (0, 1), (2, 3), …

    Parameters
    ----------
    h, probs, labels
        As in :func:`risk`. An odd last row is left out.

    Returns
    -------
    float
        As unbiased as the U-statistic, with a larger variance, in O(n) values of h.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels, or h is not a number for a pair.

    Examples
    --------
    >>> from caltest.estimation import HistogramBinning, linear_risk
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> round(linear_risk(h, [0.3, 0.3, 0.8, 0.8], [0, 1, 1, 1]), 6)
    0.03125
    """
    rows, own = _rows(probs, labels)
    pairs = len(rows) // 2
    first, second = (slice(start, 2 * pairs, 2) for start in (0, 1))
    products = np.einsum("ik,ik->i", own[first, 0], own[second, 0])
    a, b = rows[first], rows[second]
    grams = (h.gram(a[block], b[block]) for block in blocks(pairs, _BLOCK))
    values = np.concatenate([np.diagonal(each) for each in grams])
    broken = np.flatnonzero(np.isnan(values))
    if len(broken):
        pair = 2 * broken[0]
        raise InputError(f"h is not a number for the rows {pair} and {pair + 1}; correct it.")
    return float(np.mean((products - values) ** 2))


def _rows(probs: object, labels: object, what: str = "a risk") -> tuple[Array, Array]:
    """Return predictions (n, m) and residuals (n, 1, k) of independent rows that count alike."""
    checked = sample(probs, labels)
    check_alike(checked.rows, what, "leave them out")
    return checked.rows.probs, residuals(checked.rows.probs, checked.labels[None, :])


def _tile(h: ErrorGram, probs: Array, own: Array, rows: slice, columns: slice) -> float:
    gaps = own[rows] @ own[columns].T - h.gram(probs[rows], probs[columns])
    if rows == columns:
        np.fill_diagonal(gaps, 0.0)
    total = float(np.vdot(gaps, gaps))
    if np.isnan(total):
        raise InputError(
            f"h is not a number for some pair of the rows {rows.start} to {rows.stop - 1} and "
            f"{columns.start} to {columns.stop - 1}; correct it."
        )
    return total
