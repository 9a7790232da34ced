"""Mixtures of normal distributions, with scores in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr

from caltest.laws.base import Shaped
from caltest.laws.classes import Array

#: Where ranges end over which an entropy is integrated, from every mean in standard deviations.
_CUTS = np.array([-9.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
_NODES, _MASSES = np.polynomial.legendre.leggauss(8)  # in each of them


class NormalMixture(Shaped):
    """Predictions that are mixtures of normal distributions: means, sd and weights (n, J)."""

    about = "mixtures of normal distributions of numbers"
    _by_row = ("means", "sd", "weights")

    def __init__(self, means: Array, sd: Array, weights: Array) -> None:
        self._shape = (len(means),)
        self.means, self.sd, self.weights = means, sd, weights

    @property
    def _parts(self) -> Any:
        """Means, standard deviations and weights, a component after the other."""
        return zip(self.means.T, self.sd.T, self.weights.T, strict=True)

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return Σ w Φ twice."""
        parts = (share * ndtr((outcomes - mean) / sd) for mean, sd, share in self._parts)
        found = np.minimum(sum(parts), 1.0)
        return found, found

    def log_density(self, outcomes: Array) -> Array:
        """Return the log densities."""
        found = np.full(outcomes.shape, -np.inf)
        with np.errstate(divide="ignore"):
            for mean, sd, share in self._parts:
                own = np.log(share / sd) - 0.5 * ((outcomes - mean) / sd) ** 2
                np.logaddexp(found, own, out=found)
        return np.asarray(found - 0.5 * np.log(2.0 * np.pi))

    def entropy(self) -> Array:
        """Return the integrated entropies."""
        return self._entropy

    def _between(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield points, the masses of their surroundings and log densities, (K, n), cut by cut."""
        cuts = [mean + np.multiply.outer(_CUTS, sd) for mean, sd, _ in self._parts]
        for low, high in pairwise(np.sort(np.concatenate(cuts), axis=0)):
            half = 0.5 * (high - low)
            points = low + half * (_NODES[:, None] + 1.0)
            logs = self.log_density(points)
            yield points, half * _MASSES[:, None] * np.exp(logs), logs

    @cached_property
    def _entropy(self) -> Array:
        return -np.asarray(sum((masses * logs).sum(axis=0) for _, masses, logs in self._between()))

    def expecting(self) -> tuple[Array, Array]:
        """Return points between cuts, and their masses."""
        points, masses, _ = zip(*self._between(), strict=True)
        return np.concatenate(points), np.concatenate(masses)

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return those of the mixtures."""
        mean = (self.weights * self.means).sum(axis=1)
        squares = self.sd**2 + (self.means - mean[:, None]) ** 2
        return mean, (self.weights * squares).sum(axis=1)

    def crps(self, outcomes: Array) -> Array:
        """Return E|X − y| − ½ E|X − X′|."""
        return np.asarray(self.crps_excess(outcomes) + 0.5 * self._own_distance)

    def crps_excess(self, outcomes: Array) -> Array:
        """Return E|X − y| − E|X − X′| (Grimit, Gneiting, Berrocal, Johnson 2006, Equation 5)."""
        parts = (w * _mean_size(outcomes - mean, sd) for mean, sd, w in self._parts)
        return np.asarray(sum(parts) - self._own_distance)

    @cached_property
    def _own_distance(self) -> Array:
        """E|X − X′|, (n,)."""
        found = np.zeros(self.n_samples)
        for mean, sd, share in self._parts:
            between = _mean_size(self.means - mean[:, None], np.hypot(self.sd, sd[:, None]))
            found += share * (self.weights * between).sum(axis=1)
        return found

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return outcomes of components chosen at random."""
        uniforms, chosen = rng.random((size, self.n_samples)), np.zeros((size, self.n_samples), int)
        for below in np.cumsum(self.weights[:, :-1], axis=1).T:
            chosen += uniforms >= below
        rows = np.arange(self.n_samples)
        return self.means[rows, chosen] + self.sd[rows, chosen] * rng.standard_normal(chosen.shape)


def _mean_size(mean: Array, sd: Array) -> Array:
    """Return E|X| of normal X."""
    z = mean / sd
    return np.asarray(mean * (2.0 * ndtr(z) - 1.0) + sd * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z**2))
