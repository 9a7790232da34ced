"""Predictions that are frozen scipy.stats distributions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from caltest.exceptions import InputError
from caltest.predictive.base import Array, Predictive


class FromScipy(Predictive):
    """Predictions that are frozen ``scipy.stats`` distributions.

    Anything with ``logpdf`` or ``logpmf``, ``entropy`` and ``rvs`` will do.

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

    def __init__(self, distribution: Any) -> None:
        alone = not isinstance(distribution, Sequence)
        parts = [distribution] if alone else list(distribution)
        for part in parts:
            missing = [name for name in ("entropy", "rvs") if not hasattr(part, name)]
            if missing or not (hasattr(part, "logpdf") or hasattr(part, "logpmf")):
                raise InputError(
                    f"{part!r} is no frozen distribution of scipy.stats; give one such as "
                    "scipy.stats.norm(loc, scale), its parameters of shape (n,), or a list of them."
                )
        self._parts = parts
        self._alone = alone
        self._entropy = np.atleast_1d(
            np.asarray(parts[0].entropy() if alone else [p.entropy() for p in parts], dtype=np.float64)
        )
        if self._entropy.ndim != 1 or (alone and np.ndim(parts[0].entropy()) == 0):
            raise InputError(
                "the distribution does not say how many rows it is about; give parameters of shape "
                "(n,), or a list of n distributions."
            )
        for row in np.flatnonzero(~np.isfinite(self._entropy))[:1]:
            raise InputError(
                f"the entropy of row {row} (counting from 0) is {self._entropy[row]}; give "
                "distributions with parameters in their range and a finite entropy."
            )

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return len(self._entropy)

    @cached_property
    def dimension(self) -> int | None:
        """Number of entries of an outcome; None if it is a number."""
        if self._alone:
            return None
        drawn = np.shape(self._parts[0].rvs(random_state=np.random.default_rng(0)))
        return drawn[0] if drawn else None

    def entropy(self) -> Array:
        """Return the entropies that the distributions state."""
        return self._entropy

    def log_density(self, outcomes: Array) -> Array:
        """Return log densities, or log probabilities of discrete distributions."""
        if self._alone:
            return np.asarray(_log_density(self._parts[0])(outcomes), dtype=np.float64)
        entries = 0 if self.dimension is None else 1
        rows = np.moveaxis(outcomes, -1 - entries, 0)
        lead = rows.shape[1 : rows.ndim - entries]
        found = [_log_density(p)(row) for p, row in zip(self._parts, rows, strict=True)]
        return np.stack([np.reshape(f, lead) for f in found], axis=-1).astype(np.float64)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return outcomes drawn by the distributions."""
        if self._alone:
            drawn = self._parts[0].rvs(size=(size, self.n_samples), random_state=rng)
            return np.asarray(drawn, dtype=np.float64)
        shape = (size,) if self.dimension is None else (size, self.dimension)
        rows = [np.reshape(part.rvs(size=size, random_state=rng), shape) for part in self._parts]
        return np.stack(rows, axis=1).astype(np.float64)


def _log_density(part: Any) -> Any:
    return part.logpdf if hasattr(part, "logpdf") else part.logpmf
