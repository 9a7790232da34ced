"""Predictions that are frozen scipy.stats distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest._arguments import arguments
from caltest._quoted import quoted
from caltest.exceptions import InputError
from caltest.predictive.base import Array, Predictive


@arguments()
class FromScipy(Predictive):
    """Predictions that are frozen ``scipy.stats`` distributions.

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

    def __init__(self, distribution: Any) -> None:
        self._alone = not isinstance(distribution, Sequence)
        self._parts = [distribution] if self._alone else list(distribution)
        if not self._parts:
            raise InputError("there are no distributions; give one with parameters (n,), or a list.")
        for row, part in enumerate(self._parts):
            self._check(part, "the distribution" if self._alone else f"the distribution of row {row}")
        entropies = [np.asarray(part.entropy(), dtype=np.float64) for part in self._parts]
        self._entropy = np.concatenate([np.atleast_1d(e) for e in entropies])

    def _check(self, part: Any, name: str) -> None:
        """Try everything that will be asked of a distribution."""
        if not (
            hasattr(part, "entropy") and _has(part, "logpdf", "logpmf") and _has(part, "rvs", "sample")
        ):
            raise InputError(
                f"{name} is {quoted(part)}, which is no frozen distribution of scipy.stats; give one "
                "such as scipy.stats.norm(loc, scale), its parameters of shape (n,), or a list of them."
            )
        advice = (
            "freeze it, as in scipy.stats.norm(loc, scale), and see that it takes a block of outcomes"
        )
        try:
            entropy = np.asarray(part.entropy(), dtype=np.float64)
            for row in np.flatnonzero(~np.isfinite(entropy))[:1]:
                raise InputError(
                    f"{name} has the entropy {np.ravel(entropy)[row]:g} at row {row} (from 0); "
                    "give parameters in their range, and a finite entropy."
                )
            shape = entropy.shape
            drawn = _drawn(part, (3, *shape), np.random.default_rng(0))
            density = np.shape(_log_density(part)(drawn))
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{name} fails to draw, or to state its entropy or density ({error}); {advice}."
            ) from error
        if self._alone and len(shape) != 1:
            raise InputError(
                f"{name} does not say how many rows it is about; give parameters of shape (n,), or a "
                "list of n distributions."
            )
        entries = drawn.shape[1 + len(shape) :]
        fits = density == (3, *shape) and len(entries) <= 1
        if not fits or (not self._alone and np.prod(shape, dtype=int) != 1):
            raise InputError(
                f"{name} is about outcomes of shape {drawn.shape[1:]}; give a distribution of a "
                "number, or of a vector, a row."
            )
        if name.endswith("row 0") or self._alone:
            self._entries = entries
        elif entries != self._entries:
            raise InputError(
                f"{name} is about outcomes of shape {entries}, and that of row 0 about "
                f"{self._entries}; give distributions of the same kind of outcome."
            )

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return len(self._entropy)

    @property
    def dimension(self) -> int | None:
        """Number of entries of an outcome; None if it is a number."""
        return int(self._entries[0]) if self._entries else None

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
            return _drawn(self._parts[0], (size, self.n_samples), rng)
        shape = (size, *self._entries)
        return np.stack([_drawn(p, (size,), rng).reshape(shape) for p in self._parts], axis=1)


def _has(part: Any, *names: str) -> bool:
    return any(hasattr(part, name) for name in names)


def _log_density(part: Any) -> Any:
    return part.logpdf if hasattr(part, "logpdf") else part.logpmf


def _drawn(part: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw by the method of either generation of scipy's distributions."""
    if hasattr(part, "rvs"):
        size: Any = shape if len(shape) > 1 else shape[0]
        return np.asarray(part.rvs(size=size, random_state=rng), dtype=np.float64)
    return np.asarray(part.sample(shape[:1], rng=rng), dtype=np.float64)
