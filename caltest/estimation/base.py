"""Estimation functions h(p, p') of squared calibration errors, in the shape of the house.

With r the residual of a label, an estimation function h(p, p') estimates ⟨E[r | p], E[r | p']⟩, and the
squared calibration error is the mean of h(g, g). An :class:`EstimationFunction` holds the
hyper-parameters; ``given`` the predictions of training rows it becomes a :class:`Smoother`, and ``at``
some predictions a :class:`Surface`, which is a function of the training rows' residuals: all work that
depends on predictions only is done once, for any number of label vectors and hyper-parameters.

Residuals of two classes are scalars, y − P(class 1), with one coordinate; of m > 2 classes they are
onehot(y) − g.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments
from caltest.data import sample
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.integer[Any]]


def coordinates(probs: Array) -> Array:
    """Return predictions as the points of a kernel: of two classes, the probability of class 1."""
    return probs[:, 1:] if probs.shape[1] == 2 else probs


def residuals(probs: Array, labels: Labels) -> Array:
    """Return the residuals (n, B, k) of B label vectors (B, n) under predictions (n, m).

    Examples
    --------
    >>> residuals(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[1, 0]]))[:, 0]
    array([[ 0.25],
           [-0.5 ]])
    """
    if probs.shape[1] == 2:
        return np.asarray((labels.T - probs[:, 1:])[:, :, None])
    found = np.repeat(-probs[:, None, :], len(labels), axis=1)
    np.put_along_axis(
        found, labels.T[:, :, None], np.take_along_axis(found, labels.T[:, :, None], 2) + 1.0, 2
    )
    return found


class Surface(ABC):
    """h at a fixed set of e predictions, as a function of the training rows' residuals (n, B, k)."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know of the fit, in sentences."""
        return ()

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

    def gram(self, residuals: Array, other: Surface) -> Array:
        """Return h(p, p') for residuals (n, 1, k), (e, e'), p' those of another surface."""
        return np.asarray(self.factors(residuals)[0] @ other.factors(residuals)[1].T)

    def means(self, residuals: Array) -> Array:
        """Return the mean of h(p, p), (B,): the squared calibration error."""
        return np.asarray(self.diagonals(residuals).mean(axis=0))

    def risks(self, residuals: Array, own: Array) -> Array:
        """Return the calibration estimation risk, a U-statistic over the pairs i ≠ j, (B,).

        Parameters
        ----------
        residuals
            Of the training rows, (n, B, k).
        own
            Of the surface's rows, (e, B, k).
        """
        return u_statistic(*self.squares(residuals, own), own)


def u_statistic(squares: Array, diagonals: Array, own: Array) -> Array:
    """Return the mean of (⟨r_i, r_j⟩ − h(p_i, p_j))² over i ≠ j, (B,), from the sum over all pairs."""
    e = len(own)
    same = ((_squared_lengths(own) - diagonals) ** 2).sum(axis=0)
    return np.asarray(np.maximum(squares - same, 0.0) / (e * (e - 1.0)))  # no rounding below 0


class PlugIn(Surface):
    """h(p, p') = ⟨ĉ(p), ĉ(p')⟩ for an estimate ĉ of the calibration curve E[r | p]."""

    @abstractmethod
    def curves(self, residuals: Array) -> Array:
        """Return ĉ, (e, B, k)."""

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


class Smoother(ABC):
    """An estimation function whose training predictions are fixed; the labels are not."""

    @abstractmethod
    def at(self, probs: Array) -> Surface:
        """Return h at predictions (e, m)."""


class ErrorGram(Protocol):
    """Any calibration estimation function: its diagonal, and its values for pairs."""

    def diagonal(self, probs: Array) -> Array:
        """Return h(p, p) for predictions (e, m), (e,)."""
        ...

    def gram(self, first: Array, second: Array) -> Array:
        """Return h(p, p') for predictions (a, m) and (b, m), (a, b)."""
        ...


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted calibration estimation function h.

    Attributes
    ----------
    function
        The function and its hyper-parameters.
    smoother
        The same, given the training predictions.
    residuals
        Of the training rows, (n, 1, k).
    """

    function: EstimationFunction
    smoother: Smoother = field(repr=False)
    residuals: Array = field(repr=False)

    def diagonal(self, probs: Array) -> Array:
        """Return h(p, p) for predictions (e, m), (e,): their mean estimates the squared error."""
        return self.smoother.at(probs).diagonals(self.residuals)[:, 0]

    def gram(self, first: Array, second: Array) -> Array:
        """Return h(p, p') for predictions (a, m) and (b, m), (a, b)."""
        return self.smoother.at(first).gram(self.residuals, self.smoother.at(second))


class EstimationFunction(ABC):
    """A calibration estimation function before it has seen data: a frozen dataclass of options.

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
    def given(self, probs: Array) -> Smoother:
        """Do all the work that depends on the training predictions (n, m) only."""

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
            If the input is no set of predictions and labels, or there are too many classes.
        """
        checked = sample(probs, labels)
        known = checked.rows.probs
        self.check_classes(known.shape[1])
        return Fitted(self, self.given(known), residuals(known, checked.labels[None, :]))

    def check_classes(self, n_classes: int) -> None:
        """Raise if the function does not take so many classes."""
        if self.two_classes_only and n_classes > 2:
            raise InputError(
                f"{self.name!r} looks at one probability, and there are {n_classes} classes; "
                "give a lens such as 'top_label', or another function."
            )

    def path(
        self, values: Sequence[Any], train: Array, *places: Array
    ) -> Iterator[tuple[Surface, ...]]:
        """Yield, for every value of the tuned option, h at the places; what they share is done once."""
        for value in values:
            smoother = self.with_value(value).given(train)
            yield tuple(smoother.at(probs) for probs in places)

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
