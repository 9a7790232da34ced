"""Predictions that are samples: the kernel density of ensemble members."""

from __future__ import annotations

from functools import cached_property, reduce

import numpy as np
from scipy.special import logsumexp, ndtri

from caltest._arguments import Number, arguments
from caltest._tiles import blocks
from caltest.exceptions import InputError
from caltest.predictive.base import Array, Predictive, numbers
from caltest.predictive.gaussian import GaussianPredictions

_CELLS = 2**22  # numbers held at a time
_POINTS = 256  # at most, about every member, to integrate an entropy
_ROUNDING = 1e-14  # of the members, relative to the largest
_NARROWEST = 1e-6  # bandwidth
_A_SIDE = 16  # of these, at most, in one direction


@arguments()
class Ensemble(Predictive):
    """Predictions that are samples: ensemble members, posterior draws, bootstrap forecasts.

    The predicted distribution of a row is the Gaussian kernel density of its members. That is the
    claim tested: the density is wider than the members, by the factor 1 + h² in variance.

    Parameters
    ----------
    members
        (n, S) numbers, or (n, S, d) vectors; S members a row.
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

    def __init__(self, members: object, bandwidth: str | float = "scott") -> None:
        array = numbers("the members", members)
        if array.ndim not in (2, 3) or array.shape[1] < 2 or array.size == 0:
            raise InputError(
                f"the members have shape {array.shape}; give (n, S) numbers or (n, S, d) vectors, "
                "two members a row at least."
            )
        self.members, self._given = array, members
        self._points = array.reshape(*array.shape[:2], -1)
        n, s, d = self._points.shape
        h = (
            s ** (-1.0 / (d + 4))
            if isinstance(bandwidth, str) and bandwidth == "scott"
            else _positive(bandwidth)
        )
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

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return len(self.members)

    @property
    def dimension(self) -> int | None:
        """Number of entries of an outcome; None if it is a number."""
        return self.members.shape[2] if self.members.ndim == 3 else None

    def log_density(self, outcomes: Array) -> Array:
        """Return the log kernel densities."""
        n, s, d = self._points.shape
        lead = outcomes.shape[: outcomes.ndim - (self.members.ndim - 1)]
        flat = outcomes.reshape(-1, n, d)
        found = np.empty((len(flat), n))
        for rows in blocks(n, max(1, _CELLS // (len(flat) * s * d))):
            found[:, rows] = self._block(flat[:, rows], rows)
        return np.asarray(found.reshape(*lead, n))

    def _block(self, outcomes: Array, rows: slice) -> Array:
        whitener = self._kernel.whitener[rows]
        members = np.einsum("nij,nsj->nsi", whitener, self._points[rows])
        places = np.einsum("nij,bnj->bni", whitener, outcomes)
        squares = ((places[:, :, None, :] - members) ** 2).sum(axis=3)
        _, s, d = self._points.shape
        constant = np.log(s) + 0.5 * d * np.log(2.0 * np.pi) + self._kernel.log_scale[rows]
        return np.asarray(logsumexp(-0.5 * squares, axis=2) - constant)

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
            places = (centre + steps).reshape(len(nodes), *self.members[:, 0].shape)
            total -= weights @ self.log_density(places)
        return np.asarray(total / self._points.shape[1])

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return a member chosen at random, plus kernel noise."""
        n, s, _ = self._points.shape
        chosen = self._points[np.arange(n), rng.integers(s, size=(size, n))]
        drawn = chosen + self._kernel.draw(rng, size)
        return np.asarray(drawn.reshape(size, *self.members[:, 0].shape))


def _positive(bandwidth: object) -> float:
    advice = "give a positive number such as 0.5, or 'scott'"
    return Number(_NARROWEST, 1.0 / _NARROWEST, "[]", advice)("bandwidth", bandwidth)


def _normal_nodes(d: int) -> tuple[Array, Array]:
    """Return nodes (k, d) and weights (k,) that integrate against the standard normal."""
    a_side = min(_A_SIDE, int(_POINTS ** (1.0 / d) + 1e-9))
    if a_side >= 4:
        nodes, weights = np.polynomial.hermite_e.hermegauss(a_side)
        places = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
        products = reduce(np.multiply.outer, [weights / weights.sum()] * d)
        return places, np.ravel(products)
    from scipy.stats.qmc import Halton

    sequence = Halton(d, scramble=False).fast_forward(1)  # its first point is 0, at −∞ here
    return np.asarray(ndtri(sequence.random(_POINTS))), np.full(_POINTS, 1.0 / _POINTS)
