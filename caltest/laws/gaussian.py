"""Normal distributions of numbers and vectors, and ensembles smoothed by them."""

from __future__ import annotations

from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from caltest._arguments import Number, arguments
from caltest._sums import blocks
from caltest.alignment import check_rows, column_names, in_dimensions, in_order_of, rows_first
from caltest.exceptions import Argument, InputError
from caltest.laws.base import Shaped, finite_table
from caltest.laws.classes import Array

# ------------------------------------------------------------------ gaussian predictions


_FAR = 6.5  # standard deviations


@arguments()
class GaussianPredictions(Shaped):
    """Predictions that are normal distributions, of numbers or vectors.

    Parameters
    ----------
    mean : array of shape (n,) or (n, d)
        Means: (n,) for numbers, (n, d) for vectors.
    covariance : float, or array of shape (n,), (d, d) or (n, d, d)
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
    >>> outcomes = rng.normal(mean, 1.5)  # the model is overconfident
    >>> result = caltest.test(predicted, outcomes, "nees", null="chi2")
    >>> round(result.statistic, 2), result.guarantee, result.pvalue < 1e-6
    (2.38, 'exact', True)
    """

    about = "Gaussian predictions of numbers"
    atoms = False
    _second = "covariance"  #: Name of the second argument.
    _by_row = ("mean", "_centre", "_factor")

    def __init__(self, mean: object, covariance: object) -> None:
        mean, covariance = rows_first(mean, "the mean"), rows_first(covariance, f"the {self._second}")
        location = finite_table("the mean", mean, "(n,) numbers or (n, d) vectors", ndim=(1, 2))
        spread = finite_table(f"the {self._second}", covariance)
        if (places := self._places(mean, covariance)) and spread.ndim >= 2:
            spread = spread[..., places, :][..., places]
        by_row = covariance if spread.shape[:1] == location.shape[:1] and spread.ndim != 2 else None
        self.given = {"mean": mean, self._second: by_row}
        check_rows(self.given)
        self.mean, self._shape, self.entries = location, location.shape, column_names(mean)
        self._centre = location.reshape(len(location), -1)
        n, d = self._centre.shape
        given = spread.shape
        if d == 1 and spread.ndim <= 1:
            spread = spread.reshape(-1, 1, 1)
        elif spread.ndim == 2:
            spread = spread[None]
        if spread.shape not in ((n, d, d), (1, d, d)):
            wanted = f"({n},) variances" if self.dimension is None else f"({n}, {d}, {d}) matrices"
            do = f"for means of shape {self.mean.shape} give {wanted}, or one for all rows"
            raise InputError(f"the {self._second} has shape {given}; {do}.")
        if not np.array_equal(spread, turned := spread.swapaxes(1, 2)):
            off, largest = (np.abs(each).max(axis=(1, 2)) for each in (spread - turned, spread))
            for row in np.flatnonzero(off > 1e-8 * largest)[:1]:
                do = "give a covariance matrix, not its factor"
                raise InputError(f"the covariance of {{row}} is not symmetric; {do}.", row=int(row))
        try:
            self._factor = (
                np.sqrt(spread) if d == 1 and spread.min() > 0 else np.linalg.cholesky(spread)
            )
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(spread)[:, 0]
            row = int(np.argmax(smallest <= 0)) if (smallest <= 0).any() else int(smallest.argmin())
            found = f"not positive definite, its smallest eigenvalue is {smallest[row]:.3g}"
            text = f"the {self._second} of {{row}} is {found}; give a {self._second} of full rank."
            raise InputError(text, row=row) from None

    @cached_property
    def log_scale(self) -> Array:
        """Half the logarithms of determinants, (n,), or (1,) if all rows share one matrix."""
        return np.asarray(np.log(np.einsum("ijj->ij", self._factor)).sum(axis=1))

    @cached_property
    def whitener(self) -> Array:
        """The inverse factors, (n, d, d), or (1, d, d) if all rows share one."""
        return np.linalg.inv(self._factor)

    def _places(self, mean: Any, spread: Any) -> list[int]:
        """Return the columns of a table that hold the entries of the mean, if both have names."""
        entries, columns = column_names(mean), column_names(spread)
        if not (entries and columns and len(entries) == len(columns)):
            return []
        return in_order_of(entries, columns, f"the {self._second}", "the mean")

    def squares(self, outcomes: Array) -> Array:
        """Return the normalised squared errors (x − μ)ᵀ C⁻¹ (x − μ), (…, n)."""
        lead = outcomes.shape[: outcomes.ndim - self.mean.ndim]
        errors = outcomes.reshape(*lead, *self._centre.shape) - self._centre
        whitened = np.einsum("nij,...nj->...ni", self.whitener, errors)
        return np.asarray(np.einsum("...i,...i->...", whitened, whitened))

    @property
    def _sd(self) -> Array:
        if self.dimension is not None:
            raise self.lacking("cdf")
        return self.factors[:, 0, 0]

    def _z(self, outcomes: Array) -> Array:
        return np.asarray((outcomes - self.mean) * (1.0 / self._sd))

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return Φ(z) twice, as there are no atoms."""
        found = self._z(outcomes)
        return (np.asarray(ndtr(found, out=found)),) * 2

    def quantile(self, levels: Array) -> Array:
        """Return μ + σ Φ⁻¹(levels)."""
        return np.asarray(self.mean + self._sd * ndtri(levels))

    def crps(self, outcomes: Array) -> Array:
        """Return σ [z (2 Φ(z) − 1) + 2 φ(z) − 1/√π] (Gneiting and Raftery 2007, below Equation 21)."""
        z = self._z(outcomes)
        density = np.exp(-0.5 * z**2) * np.sqrt(2.0 / np.pi)
        return np.asarray(self._sd * (z * (2.0 * ndtr(z) - 1.0) + density - np.pi**-0.5))

    def crps_excess(self, outcomes: Array) -> Array:
        """Return the CRPS less its expectation, σ/√π."""
        return np.asarray(self.crps(outcomes) - self._sd / np.sqrt(np.pi))

    def crps_size(self) -> float:
        """Return the mean of (2 − √2) σ/√π."""
        return float(self._sd.mean() * (2.0 - 2.0**0.5) / np.pi**0.5)

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return μ and σ²."""
        return self.mean, self._sd**2

    def support(self) -> tuple[float, float]:
        """Return bounds that the outcome of each row exceeds with probability 10⁻¹⁰ at most."""
        far = _FAR * self.factors[:, 0, 0]
        return float((self.mean - far).min()), float((self.mean + far).max())

    def points(self) -> Array:
        """Return points (n, 2) at Wasserstein distances, W₂² = (μ − μ′)² + (σ − σ′)²."""
        return np.column_stack([self.mean, self.factors[:, 0, 0]])

    def characteristic(self, frequencies: Array, origin: float) -> NDArray[np.complex128]:
        """Return E exp iω(Z − origin), (n, K)."""
        squares = np.multiply.outer(self.factors[:, 0, 0], frequencies) ** 2
        waves = np.exp(1j * np.multiply.outer(self.mean - origin, frequencies))
        return np.asarray(np.exp(-0.5 * squares) * waves)

    def entropy(self) -> Array:
        """Return ½ d (1 + log 2π) + ½ log |C|."""
        n, d = self._centre.shape
        return np.broadcast_to(0.5 * d * (1.0 + np.log(2.0 * np.pi)) + self.log_scale, (n,))

    def log_density(self, outcomes: Array) -> Array:
        """Return the log densities."""
        constant = 0.5 * self._centre.shape[1] * np.log(2.0 * np.pi) + self.log_scale
        return np.asarray(-0.5 * self.squares(outcomes) - constant)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return outcomes μ + L z."""
        z, factors = rng.standard_normal((size, *self._centre.shape)), self.factors
        own = factors[:, 0] * z if z.shape[2] == 1 else np.einsum("nij,...nj->...ni", factors, z)
        return np.asarray((self._centre + own).reshape(size, *self._shape))

    @property
    def factors(self) -> Array:
        """The Cholesky factors L, (n, d, d)."""
        shape = *self._centre.shape, self._centre.shape[1]
        whole = self._factor.shape == shape
        return np.asarray(self._factor if whole else np.broadcast_to(self._factor, shape))


# ------------------------------------------------------------------ normal, by its spread


_FITS = (0.8, 1.25)  # bounds of a mean square that is 1 if units are right
_AMISS = (0.25, 4.0)


@arguments()
class Normal(GaussianPredictions):
    """Predictions that are normal distributions, as mean and standard deviation.

    Parameters
    ----------
    mean : array of shape (n,) or (n, d)
        Means: (n,) for numbers, (n, d) for vectors.
    sd : float, or array of shape (n,) or (n, d), optional
        Standard deviations, (n,) or one for all rows; for vectors (n, d), of independent entries.
    variance : float, or array of shape (n,), (d, d) or (n, d, d), optional
        In place of ``sd``: variances, (n,) or one for all; for vectors covariance matrices, (n, d, d)
        or (d, d). Matrices given as ``sd`` are refused.

    Raises
    ------
    InputError
        If neither or both of ``sd`` and ``variance`` are given, shapes do not fit, or one is not
        positive.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=300)
    >>> predicted = caltest.predictive.Normal(mean, sd=1.0)
    >>> outcomes = rng.normal(mean, 1.5)  # the predicted distributions are too narrow
    >>> result = caltest.test(predicted, outcomes, "spread", rng=0)
    >>> result.statistic < 0, result.pvalue
    (True, 0.002)
    """

    about = "normal distributions of numbers"
    _second = "variance"

    def __init__(self, mean: Any, sd: object = None, *, variance: object = None) -> None:
        mean = rows_first(mean, "mean")
        sd, variance = in_dimensions(mean, sd), in_dimensions(mean, variance)
        named = {"mean": mean, "sd": sd, "variance": variance}
        check_rows(named)
        if (sd is None) == (variance is None):
            which = "neither" if sd is None else "both"
            text = f"{which} of {{sd}} and {{variance}} given; give one of them."
            raise InputError(text, sd=Argument("sd", ...), variance=Argument("variance", ...))
        self._states = "variance" if sd is None else "sd"
        if sd is not None:
            spread, size = finite_table("sd", sd), np.shape(mean)
            if (places := self._places(mean, sd)) and spread.ndim == 2:
                spread = spread[:, places]
            alone = len(size) == 1 or size[1:] == (1,)
            right = [size, (1, *size[1:]), *[(), (1,), size[:1]] * alone]
            square = spread.shape == size == size[:1] * 2 and not alone and bool(np.ptp(spread))
            if spread.shape not in right or (square and (spread == spread.T).all()):
                seen = ", like a covariance matrix" if square else ""
                do = "as the mean has, or variances or covariance matrices as {variance}"
                text = f"sd has shape {spread.shape}{seen}; give {size}, {do}."
                raise InputError(text, variance=Argument("variance", ...))
            do = "standard deviations above 0 whose squares are numbers, and the mean first"
            squares = finite_table("sd", spread, do, low=1e-150, high=1e150) ** 2
            variance = squares[:, :, None] * np.eye(size[1]) if spread.ndim == 2 else squares
        super().__init__(mean, variance)
        self.given = named

    def remarks(self, outcomes: Array) -> tuple[str, ...]:
        """Return a remark if the spread looks like its square, or its root."""
        if self.dimension is not None:
            return ()
        sd, errors, of_sd = self._sd, outcomes - self.mean, self._states == "sd"
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # infinite values never fit
            if _AMISS[0] <= float(np.mean((errors / sd) ** 2)) <= _AMISS[1]:
                return ()
            as_other = float(np.mean((errors / (sd**0.5 if of_sd else sd**2)) ** 2))
        if not _FITS[0] <= as_other <= _FITS[1]:
            return ()
        meant, instead = ("variances", "variance") if of_sd else ("standard deviations", "sd")
        found = f"Squared errors fit the values of {self._states} if these are {meant}"
        return (f"{found}: if so, give them as {instead}.",)


# ------------------------------------------------------------------ ensemble


_CELLS = 2**22  # numbers held at a time
_POINTS = 256  # most points around every member for integrating an entropy
_ROUNDING = 1e-14  # of the members, relative to the largest
_NARROWEST = 1e-6  # smallest bandwidth
_A_SIDE = 16  # most of these points along one direction
#: Ends of the integration ranges of expectations, in bandwidths from every member.
_CUTS = np.array([-9.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
_NODES, _MASSES = np.polynomial.legendre.leggauss(8)  # within each range


@arguments()
class Ensemble(Shaped):
    """Predictions given as samples: ensemble members, posterior draws, bootstrap forecasts.

    The predicted distribution of a row is the Gaussian kernel density of its members. This density is
    the claim tested; its variance is 1 + h² times that of the members.

    Parameters
    ----------
    members : array of shape (n, S) or (n, S, d)
        S members per row: numbers, or vectors of d entries.
    bandwidth : float or str, default "scott"
        h, the kernel's standard deviation in those of the members: a positive number, or the rule
        "scott" (default), h = S^(−1/(d+4)).

    Raises
    ------
    InputError
        If a row's members do not vary (in every direction), or the bandwidth is not positive.

    Notes
    -----
    The entropy of a kernel density has no closed form. It is integrated with Gauss–Hermite nodes
    about every member, from d = 5 on with a Halton sequence. It shifts the ECD by a constant: p-values
    do not depend on it.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> members = rng.normal(size=(100, 30))
    >>> caltest.test(caltest.predictive.Ensemble(members), rng.normal(size=100), "ecd", rng=0).name
    'ecd'
    """

    about = "ensembles of numbers"
    atoms = False
    _by_row = ("members", "_points", "_kernel")

    def __init__(self, members: object, bandwidth: str | float = "scott") -> None:
        shapes = "(n, S) numbers or (n, S, d) vectors, at least two members per row"
        members = rows_first(members, "members")
        array = finite_table("members", members, shapes, ndim=(2, 3))
        if array.shape[1] < 2:
            raise InputError(f"members has shape {array.shape}; give {shapes}.")
        self.members, self.given, self._shape = array, members, array[:, 0].shape
        self.entries = column_names(members) if array.ndim == 3 else ()
        self._points = array.reshape(*array.shape[:2], -1)
        n, s, d = self._points.shape
        advice = "give a positive number such as 0.5, or 'scott'"
        positive = Number(_NARROWEST, 1.0 / _NARROWEST, "[]", advice)
        scott = isinstance(bandwidth, str) and bandwidth == "scott"
        h = s ** (-1.0 / (d + 4)) if scott else positive("bandwidth", bandwidth)
        centred = self._points - self._points.mean(axis=1, keepdims=True)
        covariance = np.einsum("nsi,nsj->nij", centred, centred) / (s - 1)
        rounding = (_ROUNDING * np.abs(self._points).max(axis=(1, 2))) ** 2
        for row in np.flatnonzero(np.linalg.eigvalsh(covariance)[:, 0] <= rounding)[:1]:
            found = "do not vary" + (" in every direction" if d > 1 else "")
            text = f"the members of {{row}} {found}; give more members, or leave the row out."
            raise InputError(text, row=int(row))
        self._kernel = GaussianPredictions(np.zeros((n, d)), h**2 * covariance)

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return the mean of the members' kernels, twice, as there are no atoms."""
        found, sd = np.zeros(outcomes.shape), self._width("cdf")
        for member in self.members.T:
            found += ndtr((outcomes - member) / sd)
        found /= len(self.members.T)
        return found, found

    def _width(self, verb: str) -> Array:
        """Return the standard deviations of kernels, (n,); raise if members are vectors."""
        if self.dimension is not None:
            raise self.lacking(verb)
        return np.asarray(self._kernel.factors[:, 0, 0])

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return means and variances of the densities, 1 + h² times the variance of members."""
        kernels = self._width("mean_and_variance") ** 2
        return self.members.mean(axis=1), self.members.var(axis=1) + kernels

    def expecting(self) -> tuple[Array, Array]:
        """Return eight points between any two neighbouring cuts around members, and their masses."""
        sd = self._width("mean_and_variance")
        cuts = (self.members.T[:, None] + np.multiply.outer(_CUTS, sd)).reshape(-1, len(sd))
        points, masses = list[Array](), list[Array]()
        for low, high in pairwise(np.sort(cuts, axis=0)):
            half = 0.5 * (high - low)
            points.append(low + half * (_NODES[:, None] + 1.0))
            masses.append(half * _MASSES[:, None] * np.exp(self.log_density(points[-1])))
        return np.concatenate(points), np.concatenate(masses)

    def crps(self, outcomes: Array) -> Array:
        """Return E|X − y| − ½ E|X − X′|."""
        return np.asarray(self.crps_excess(outcomes) + 0.5 * self._own_distance)

    def crps_excess(self, outcomes: Array) -> Array:
        """Return E|X − y| − E|X − X′| (Grimit, Gneiting, Berrocal, Johnson 2006, Equation 5)."""
        return np.asarray(self._distance(outcomes, self._width("crps")) - self._own_distance)

    @cached_property
    def _own_distance(self) -> Array:
        """E|X − X′|, (n,)."""
        width = np.sqrt(2.0) * self._width("crps")
        return np.asarray(self._distance(self.members.T, width).mean(axis=0))

    def _distance(self, outcomes: Array, sd: Array) -> Array:
        """Return the mean over the members of E|Z − y|, with Z normal around each."""
        found = np.zeros(outcomes.shape)
        for member in self.members.T:
            z = (outcomes - member) / sd
            found += sd * (z * (2.0 * ndtr(z) - 1.0) + np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z**2))
        return np.asarray(found / len(self.members.T))

    def log_density(self, outcomes: Array) -> Array:
        """Return the log kernel densities."""
        from scipy.special import logsumexp

        n, s, d = self._points.shape
        flat = outcomes.reshape(-1, n, d)
        found = np.empty((len(flat), n))
        constant = np.log(s) + 0.5 * d * np.log(2.0 * np.pi) + self._kernel.log_scale
        for rows in blocks(n, max(1, _CELLS // (len(flat) * s * d))):
            whitener = self._kernel.whitener[rows]
            members = np.einsum("nij,nsj->nsi", whitener, self._points[rows])
            places = np.einsum("nij,bnj->bni", whitener, flat[:, rows])
            squares = ((places[:, :, None, :] - members) ** 2).sum(axis=3)
            found[:, rows] = logsumexp(-0.5 * squares, axis=2) - constant[rows]
        return np.asarray(found.reshape(*outcomes.shape[: outcomes.ndim - len(self._shape)], n))

    def entropy(self) -> Array:
        """Return the integrated entropies."""
        return self._entropy

    @cached_property
    def _entropy(self) -> Array:
        nodes, weights = _normal_nodes(self._points.shape[2])
        total = np.zeros(self.n_samples)
        for member in range(self._points.shape[1]):
            centre = self._points[:, member]
            steps = np.einsum("nij,kj->kni", self._kernel.factors, nodes)
            total -= weights @ self.log_density((centre + steps).reshape(len(nodes), *self._shape))
        return np.asarray(total / self._points.shape[1])

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return a member chosen at random, plus kernel noise."""
        n, s, _ = self._points.shape
        chosen = self._points[np.arange(n), rng.integers(s, size=(size, n))]
        return np.asarray((chosen + self._kernel.draw(rng, size)).reshape(size, *self._shape))


def _normal_nodes(d: int) -> tuple[Array, Array]:
    """Return nodes (k, d) and weights (k,) that integrate against the standard normal."""
    if (a_side := min(_A_SIDE, int(_POINTS ** (1.0 / d) + 1e-9))) >= 4:
        nodes, weights = np.polynomial.hermite_e.hermegauss(a_side)
        places = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
        return places, np.ravel(reduce(np.multiply.outer, [weights / weights.sum()] * d))

    sequence = scipy.stats.qmc.Halton(d, scramble=False)
    sequence.fast_forward(1)  # its first point is 0, at −∞ here
    return np.asarray(ndtri(sequence.random(_POINTS))), np.full(_POINTS, 1.0 / _POINTS)
