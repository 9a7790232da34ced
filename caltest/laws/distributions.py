"""Distributions of numbers, for models of a continuous outcome.

A classifier predicts probabilities of classes, a regression or a tracker a distribution of numbers or
vectors. The claim is the same, that the outcome is a draw from what was predicted, and so is the exact
null: draw outcomes from the predicted distributions, which are held fixed. Give one of these objects
instead of probabilities::

    caltest.test(caltest.predictive.GaussianPredictions(mean, covariance), outcomes, "ecd")
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Number, arguments, has
from caltest._sums import blocks
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.laws.classes import Array, Law, read_only
from caltest.sampling import DRAWS, generator

_NUMBERS = 2**22  # of drawn outcomes held at a time


class Predictive(Law):
    """Base class of predicted distributions: one per row, of a number or a vector; immutable."""

    @property
    @abstractmethod
    def dimension(self) -> int | None:
        """Number of entries d of an outcome that is a vector; None if it is a number."""

    @abstractmethod
    def entropy(self) -> Array:
        """Return the (n,) entropies, in nats."""

    @abstractmethod
    def log_density(self, outcomes: Array) -> Array:
        """Return the logarithms (…, n) of density or probability at outcomes (…, n) or (…, n, d)."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return ``size`` outcomes of every row, (size, n) or (size, n, d)."""

    def take(self, rows: Any) -> Predictive:
        """Return the distributions of some rows; a subclass of your own need not define it."""
        raise InputError(
            f"rows cannot be taken out of {type(self).__name__}; give distributions of these alone."
        )

    def sampler(self, seed: int, first: int = 0) -> OutcomeSampler:
        """Prepare to draw outcomes from ``seed``."""
        return OutcomeSampler(self.draw, self.n_samples * (self.dimension or 1), seed)

    def impossible(self, outcomes: Array) -> NDArray[np.bool_]:
        """Say in which rows the outcome has density 0."""
        return np.asarray(self.log_density(outcomes) == -np.inf)

    def chance(self, outcomes: Array) -> float:
        """Return a lower limit of the probability of the outcomes: a density promises none."""
        return 0.0

    def observed(self, outcomes: Array) -> Array:
        """Return outcomes as numbers, read-only."""
        return read_only(outcomes, np.float64)

    def outcomes(self, values: object) -> Array:
        """Check outcomes, and return them as (n,) or (n, d)."""
        n, d = self.n_samples, self.dimension
        wanted = (n,) if d is None else (n, d)
        array = _numbers("the outcomes", values)
        if array.ndim == 2 and array.shape[1] == 1 and d is None:
            array = array[:, 0]
        if array.ndim == 1 and d == 1:
            array = array[:, None]
        if array.shape != wanted:
            raise InputError(
                f"the outcomes have shape {np.shape(array)}, and the predictions are about {wanted}; "
                "give one outcome per row."
            )
        return array


class _Shaped(Predictive):
    """Knows the shape of one draw, (n,) or (n, d)."""

    _shape: tuple[int, ...]

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return self._shape[0]

    @property
    def dimension(self) -> int | None:
        """Number of entries of an outcome; None if it is a number."""
        return self._shape[1] if len(self._shape) == 2 else None


@dataclass(frozen=True, eq=False)
class OutcomeSampler:
    """Draws outcomes of all rows together: the grid has blocks of draws only.

    Attributes
    ----------
    outcomes
        Takes a generator and a number of draws, returns (draws, n) or (draws, n, d) outcomes.
    size
        Numbers in one draw, n·d.
    seed
        The seed of the grid.
    """

    outcomes: Callable[[np.random.Generator, int], NDArray[np.float64]]
    size: int
    seed: int

    @property
    def block(self) -> int:
        """Draws in a block: fewer where rows are many, so that memory stays bounded."""
        return max(1, min(DRAWS, _NUMBERS // self.size))

    def draw(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return draws ``start`` (a multiple of the block) to ``stop``."""
        parts = [
            self.outcomes(generator(self.seed, (start + part.start) // self.block), self.block)
            for part in blocks(stop - start, self.block)
        ]
        return np.concatenate(parts)[: stop - start]


def _numbers(what: str, values: object) -> Array:
    """Return finite float64 numbers."""
    try:
        read: Any = np.ma.array(values)  # a masked entry is missing
        if read.dtype.kind == "c":
            raise TypeError
        array = np.array(np.ma.filled(read.astype(np.float64), np.nan))
    except Exception:  # what calls itself an array may raise anything
        raise InputError(
            f"{what} could not be read as an array of real numbers; give numbers."
        ) from None
    broken = np.argwhere(~np.isfinite(array))
    if len(broken):
        row = broken[0][0] if array.ndim else 0
        raise InputError(
            f"{what} holds {array[tuple(broken[0])]} in row {row} (counting from 0); "
            "give finite numbers, and leave rows without an outcome out."
        )
    array.flags.writeable = False
    return array


# ------------------------------------------------------------------ gaussian predictions


@arguments()
class GaussianPredictions(_Shaped):
    """Predictions that are normal distributions, of numbers or vectors.

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
    >>> outcomes = rng.normal(mean, 1.5)  # the model is overconfident
    >>> result = caltest.test(predicted, outcomes, "nees", null="chi2")
    >>> round(result.statistic, 2), result.guarantee, result.pvalue < 1e-6
    (2.38, 'exact', True)
    """

    about = "Gaussian predictions of numbers"

    def __init__(self, mean: object, covariance: object) -> None:
        location = _numbers("the mean", mean)
        if location.ndim not in (1, 2) or location.size == 0:
            raise InputError(
                f"the mean has shape {location.shape}; give (n,) numbers or (n, d) vectors."
            )
        self.mean, self.given, self._shape = location, mean, location.shape
        self._centre = location.reshape(len(location), -1)
        n, d = self._centre.shape
        spread = _numbers("the covariance", covariance)
        given = spread.shape
        if d == 1 and spread.ndim <= 1:
            spread = spread.reshape(-1, 1, 1)
        elif spread.ndim == 2:
            spread = spread[None]
        if spread.shape not in ((n, d, d), (1, d, d)):
            wanted = f"({n},) variances" if self.dimension is None else f"({n}, {d}, {d}) matrices"
            raise InputError(
                f"the covariance has shape {given}; for means of shape {self.mean.shape} "
                f"give {wanted}, or one for all rows."
            )
        asymmetric = np.abs(spread - spread.swapaxes(1, 2)).max(axis=(1, 2))
        sizes = np.abs(spread).max(axis=(1, 2))
        for row in np.flatnonzero(asymmetric > 1e-8 * sizes)[:1]:
            raise InputError(
                f"the covariance of row {row} (counting from 0) is not symmetric; give a covariance "
                "matrix, not its factor."
            )
        try:
            factor = np.linalg.cholesky(spread)
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(spread)[:, 0]
            row = int(np.argmax(smallest <= 0)) if (smallest <= 0).any() else int(smallest.argmin())
            raise InputError(
                f"the covariance of row {row} (counting from 0) is not positive definite, its "
                f"smallest eigenvalue is {smallest[row]:.3g}; give covariances of full rank."
            ) from None
        self._factor = np.asarray(factor, dtype=np.float64)
        self.log_scale = np.asarray(np.log(np.einsum("ijj->ij", factor)).sum(axis=1))
        self.whitener = np.linalg.inv(self._factor)

    def squares(self, outcomes: Array) -> Array:
        """Return the normalised squared errors (x − μ)ᵀ C⁻¹ (x − μ), (…, n)."""
        lead = outcomes.shape[: outcomes.ndim - self.mean.ndim]
        errors = outcomes.reshape(*lead, *self._centre.shape) - self._centre
        whitened = np.einsum("nij,...nj->...ni", self._of_rows(self.whitener), errors)
        return np.asarray(np.einsum("...i,...i->...", whitened, whitened))

    def _of_rows(self, matrices: Any) -> Any:
        n, d = self._centre.shape
        return np.broadcast_to(matrices, (n, d, d))

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
        return np.asarray(drawn.reshape(size, *self._shape))

    @property
    def factors(self) -> Array:
        """The Cholesky factors L, (n, d, d)."""
        return np.asarray(self._of_rows(self._factor))


# ------------------------------------------------------------------ ensemble


_CELLS = 2**22  # numbers held at a time
_POINTS = 256  # at most, about every member, to integrate an entropy
_ROUNDING = 1e-14  # of the members, relative to the largest
_NARROWEST = 1e-6  # bandwidth
_A_SIDE = 16  # of these, at most, in one direction


@arguments()
class Ensemble(_Shaped):
    """Predictions given as samples: ensemble members, posterior draws, bootstrap forecasts.

    The predicted distribution of a row is the Gaussian kernel density of its members. That is the
    claim tested: the density is wider than the members, by the factor 1 + h² in variance.

    Parameters
    ----------
    members
        (n, S) numbers, or (n, S, d) vectors; S members per row.
    bandwidth
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

    def __init__(self, members: object, bandwidth: str | float = "scott") -> None:
        array = _numbers("the members", members)
        if array.ndim not in (2, 3) or array.shape[1] < 2 or array.size == 0:
            raise InputError(
                f"the members have shape {array.shape}; give (n, S) numbers or (n, S, d) vectors, "
                "at least two members per row."
            )
        self.members, self.given, self._shape = array, members, array[:, 0].shape
        self._points = array.reshape(*array.shape[:2], -1)
        n, s, d = self._points.shape
        advice = "give a positive number such as 0.5, or 'scott'"
        positive = Number(_NARROWEST, 1.0 / _NARROWEST, "[]", advice)
        scott = isinstance(bandwidth, str) and bandwidth == "scott"
        h = s ** (-1.0 / (d + 4)) if scott else positive("bandwidth", bandwidth)
        centred = self._points - self._points.mean(axis=1, keepdims=True)
        covariance = np.einsum("nsi,nsj->nij", centred, centred) / (s - 1)
        least = np.linalg.eigvalsh(covariance)[:, 0]
        rounding = (_ROUNDING * np.abs(self._points).max(axis=(1, 2))) ** 2
        for row in np.flatnonzero(least <= rounding)[:1]:
            raise InputError(
                f"the members of row {row} (counting from 0) do not vary"
                f"{'' if d == 1 else ' in every direction'}; give more members, or leave the row out."
            )
        self._kernel = GaussianPredictions(np.zeros((n, d)), h**2 * covariance)

    def log_density(self, outcomes: Array) -> Array:
        """Return the log kernel densities."""
        from scipy.special import logsumexp

        n, s, d = self._points.shape
        lead = outcomes.shape[: outcomes.ndim - len(self._shape)]
        flat = outcomes.reshape(-1, n, d)
        found = np.empty((len(flat), n))
        constant = np.log(s) + 0.5 * d * np.log(2.0 * np.pi) + self._kernel.log_scale
        for rows in blocks(n, max(1, _CELLS // (len(flat) * s * d))):
            whitener = self._kernel.whitener[rows]
            members = np.einsum("nij,nsj->nsi", whitener, self._points[rows])
            places = np.einsum("nij,bnj->bni", whitener, flat[:, rows])
            squares = ((places[:, :, None, :] - members) ** 2).sum(axis=3)
            found[:, rows] = logsumexp(-0.5 * squares, axis=2) - constant[rows]
        return np.asarray(found.reshape(*lead, n))

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
    a_side = min(_A_SIDE, int(_POINTS ** (1.0 / d) + 1e-9))
    if a_side >= 4:
        nodes, weights = np.polynomial.hermite_e.hermegauss(a_side)
        places = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
        products = reduce(np.multiply.outer, [weights / weights.sum()] * d)
        return places, np.ravel(products)
    from scipy.special import ndtri
    from scipy.stats.qmc import Halton

    sequence = Halton(d, scramble=False).fast_forward(1)  # its first point is 0, at −∞ here
    return np.asarray(ndtri(sequence.random(_POINTS))), np.full(_POINTS, 1.0 / _POINTS)


# ------------------------------------------------------------------ frozen


@arguments()
class FromScipy(_Shaped):
    """Predictions given as frozen ``scipy.stats`` distributions.

    Anything with ``entropy``, ``logpdf`` or ``logpmf``, and ``rvs`` or ``sample`` will do, if it takes
    blocks of outcomes (``scipy.stats.dirichlet`` does not).

    Parameters
    ----------
    distribution
        One frozen distribution with parameters of shape (n,), such as ``scipy.stats.gamma(shape)``,
        or a sequence of n frozen ones, of numbers or of vectors.

    Raises
    ------
    InputError
        If it is none, or an entropy is not finite.

    Examples
    --------
    >>> import numpy as np, scipy.stats, caltest
    >>> rng = np.random.default_rng(0)
    >>> rate = rng.uniform(1, 20, 300)
    >>> predicted = caltest.predictive.FromScipy(scipy.stats.poisson(rate))
    >>> caltest.test(predicted, rng.poisson(rate), "ecd", rng=0).rejects(0.05)
    False
    """

    about = "SciPy's distributions of numbers"

    def __init__(self, distribution: Any) -> None:
        self._alone = not isinstance(distribution, Sequence)
        self._parts = [distribution] if self._alone else list(distribution)
        if not self._parts:
            raise InputError("there are no distributions; give one with parameters (n,), or a list.")
        entropies: list[Array] = []
        entries: list[tuple[int, ...]] = []
        for row, part in enumerate(self._parts):
            name = "the distribution" if self._alone else f"the distribution of row {row}"
            entropy, shape = self._tried(part, name)
            if entries and shape != entries[0]:
                raise InputError(
                    f"{name} is about outcomes of shape {shape}, and that of row 0 about "
                    f"{entries[0]}; give distributions of the same kind of outcome."
                )
            entropies.append(np.atleast_1d(entropy))
            entries.append(shape)
        self._entropy = np.concatenate(entropies)
        self._shape = (len(self._entropy), *entries[0])

    def _tried(self, part: Any, name: str) -> tuple[Array, tuple[int, ...]]:
        """Try all that will be asked of a distribution; return its entropy, and an outcome's shape."""
        promised = ("entropy",), ("logpdf", "logpmf"), ("rvs", "sample")
        if not all(any(hasattr(part, each) for each in names) for names in promised):
            raise InputError(
                f"{name} is {quoted(part)}, which is not a frozen distribution of scipy.stats; give "
                "one such as scipy.stats.norm(loc, scale), with parameters of shape (n,), or a list."
            )
        try:
            entropy = np.asarray(part.entropy(), dtype=np.float64)
            broken, shape = np.flatnonzero(~np.isfinite(entropy)), entropy.shape
            if not len(broken):
                drawn = _drawn(part, (3, *shape), np.random.default_rng(0))
                density = np.shape(_log_density(part)(drawn))
        except Exception as error:
            raise InputError(
                f"{name} fails to draw, or to state its entropy or density ({error}); freeze it, as in "
                "scipy.stats.norm(loc, scale), and see that it takes a block of outcomes."
            ) from error
        if len(broken):
            raise InputError(
                f"{name} has the entropy {np.ravel(entropy)[broken[0]]:g} at row {broken[0]} (from 0); "
                "give parameters in their range, and a finite entropy."
            )
        if self._alone and len(shape) != 1:
            raise InputError(
                f"{name} does not say how many rows it is about; give parameters of shape (n,), or a "
                "list of n distributions."
            )
        entries = drawn.shape[1 + len(shape) :]
        fits = density == (3, *shape) and len(entries) <= 1
        if not fits or (not self._alone and entropy.size != 1):
            raise InputError(
                f"{name} is about outcomes of shape {drawn.shape[1:]}; give a distribution of a "
                "number, or of a vector, a row."
            )
        return entropy, entries

    def entropy(self) -> Array:
        """Return the entropies that the distributions state."""
        return self._entropy

    def log_density(self, outcomes: Array) -> Array:
        """Return log densities, or log probabilities of discrete distributions."""
        if self._alone:
            return np.asarray(_log_density(self._parts[0])(outcomes), dtype=np.float64)
        entries = len(self._shape) - 1
        rows = np.moveaxis(outcomes, -1 - entries, 0)
        lead = rows.shape[1 : rows.ndim - entries]
        found = [_log_density(p)(row) for p, row in zip(self._parts, rows, strict=True)]
        return np.stack([np.reshape(f, lead) for f in found], axis=-1).astype(np.float64)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return outcomes drawn by the distributions."""
        if self._alone:
            return _drawn(self._parts[0], (size, self.n_samples), rng)
        shape = (size, *self._shape[1:])
        return np.stack([_drawn(p, (size,), rng).reshape(shape) for p in self._parts], axis=1)


def _log_density(part: Any) -> Any:
    return part.logpdf if hasattr(part, "logpdf") else part.logpmf


def _drawn(part: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw by the method of either generation of scipy's distributions."""
    if hasattr(part, "rvs"):
        size: Any = shape if len(shape) > 1 else shape[0]
        return np.asarray(part.rvs(size=size, random_state=rng), dtype=np.float64)
    return np.asarray(part.sample(shape[:1], rng=rng), dtype=np.float64)


@arguments()
def recognised(given: object) -> Predictive | None:
    """Return the input as predicted distributions, wrapping scipy's; None if it is something else."""
    if isinstance(given, Predictive):
        return given
    objects = isinstance(given, Iterable) and has(given, "dtype") and str(given.dtype) == "object"  # type: ignore[attr-defined]
    several = list(given) if objects else given  # type: ignore[call-overload]
    first = several[0] if isinstance(several, list | tuple) and several else several
    # A series of polars has an entropy and a sample too, and no density.
    if has(first, "entropy", "logpdf") or has(first, "entropy", "logpmf"):
        return FromScipy(several)
    return None
