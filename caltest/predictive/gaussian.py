"""Gaussian predictions."""

from __future__ import annotations

import numpy as np

from caltest._arguments import arguments
from caltest.exceptions import InputError
from caltest.predictive.base import Array, Predictive, numbers


@arguments()
class GaussianPredictions(Predictive):
    """Gaussian predictions.

    Parameters
    ----------
    mean
        (n,) for numbers, or (n, d) for vectors.
    covariance
        Variances (n,) or a shared one, for numbers; covariance matrices (n, d, d), or a shared one
        (d, d), for vectors. Variances, not standard deviations.

    Raises
    ------
    InputError
        If shapes do not fit, or a covariance is not symmetric and positive definite.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=200)
    >>> predicted = caltest.predictive.GaussianPredictions(mean, 1.0)
    >>> outcomes = rng.normal(mean, 1.5)  # the model is over-confident
    >>> result = caltest.test(predicted, outcomes, "nees", null="chi2")
    >>> round(result.statistic, 2), result.guarantee, result.pvalue < 1e-6
    (2.38, 'exact', True)
    """

    def __init__(self, mean: object, covariance: object) -> None:
        location = numbers("the mean", mean)
        if location.ndim not in (1, 2) or location.size == 0:
            raise InputError(
                f"the mean has shape {location.shape}; give (n,) numbers or (n, d) vectors."
            )
        self.mean, self._given = location, mean
        self._centre = location.reshape(len(location), -1)
        self._factor, self.log_scale = self._factorise(numbers("the covariance", covariance))
        self.whitener = np.linalg.inv(self._factor)

    def _factorise(self, covariance: Array) -> tuple[Array, Array]:
        """Return Cholesky factors (n or 1, d, d) and the logarithms of their determinants."""
        n, d = self._centre.shape
        given = covariance.shape
        if d == 1 and covariance.ndim <= 1:
            covariance = covariance.reshape(-1, 1, 1)
        elif covariance.ndim == 2:
            covariance = covariance[None]
        if covariance.shape not in ((n, d, d), (1, d, d)):
            wanted = f"({n},) variances" if self.dimension is None else f"({n}, {d}, {d}) matrices"
            raise InputError(
                f"the covariance has shape {given}; for means of shape {self.mean.shape} "
                f"give {wanted}, or one for all rows."
            )
        asymmetric = np.abs(covariance - covariance.swapaxes(1, 2)).max(axis=(1, 2))
        sizes = np.abs(covariance).max(axis=(1, 2))
        for row in np.flatnonzero(asymmetric > 1e-8 * sizes)[:1]:
            raise InputError(
                f"the covariance of row {row} (counting from 0) is not symmetric; give a covariance "
                "matrix, not its factor."
            )
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(covariance)[:, 0]
            row = int(np.argmax(smallest <= 0)) if (smallest <= 0).any() else int(smallest.argmin())
            raise InputError(
                f"the covariance of row {row} (counting from 0) is not positive definite, its "
                f"smallest eigenvalue is {smallest[row]:.3g}; give covariances of full rank."
            ) from None
        diagonal = np.einsum("ijj->ij", factor)
        return np.asarray(factor, dtype=np.float64), np.asarray(np.log(diagonal).sum(axis=1))

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return len(self.mean)

    @property
    def dimension(self) -> int | None:
        """Number of entries of an outcome; None if it is a number."""
        return self.mean.shape[1] if self.mean.ndim == 2 else None

    def squares(self, outcomes: Array) -> Array:
        """Return the normalised squared errors (x − μ)ᵀ C⁻¹ (x − μ), (…, n)."""
        errors = outcomes.reshape(
            *outcomes.shape[: outcomes.ndim - self.mean.ndim], *self._centre.shape
        )
        errors = errors - self._centre
        whitened = np.einsum("nij,...nj->...ni", np.broadcast_to(self.whitener, self._shape), errors)
        return np.asarray(np.einsum("...i,...i->...", whitened, whitened))

    @property
    def _shape(self) -> tuple[int, int, int]:
        n, d = self._centre.shape
        return n, d, d

    def entropy(self) -> Array:
        """Return ½ d (1 + log 2π) + ½ log |C|."""
        n, d = self._centre.shape
        return np.broadcast_to(0.5 * d * (1.0 + np.log(2.0 * np.pi)) + self.log_scale, (n,))

    def log_density(self, outcomes: Array) -> Array:
        """Return the log densities."""
        d = self._centre.shape[1]
        constant = 0.5 * d * np.log(2.0 * np.pi) + self.log_scale
        return np.asarray(-0.5 * self.squares(outcomes) - constant)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return outcomes μ + L z."""
        normal = rng.standard_normal((size, *self._centre.shape))
        drawn = self._centre + np.einsum("nij,...nj->...ni", self.factors, normal)
        return np.asarray(drawn.reshape(size, *self.mean.shape))

    @property
    def factors(self) -> Array:
        """The Cholesky factors L, (n, d, d)."""
        return np.broadcast_to(self._factor, self._shape)
