"""Pairs of predicted distributions of numbers, by kernels: sums of features times centred waves.

A Gaussian kernel of outcomes is Σ_k c_k cos ω_k (y − y′), with multiples ω_k of one frequency and its
spectral density c_k there, up to 10⁻⁹ as long as distances are shorter than the period less 6.5
bandwidths.
A law gives the expectations of waves by its characteristic function, in closed form for normal
distributions, E cos ωZ = exp(−ω²σ²/2) cos ωμ, and for pools of members, of which it is a mean.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from caltest._parallel import ALONE, Work, Workers
from caltest._sums import blocks
from caltest.clusters import Clusters
from caltest.forms.base import ROUNDING, Array, Labels
from caltest.forms.signs import Signed, signed_pairs
from caltest.forms.sums import OfNumbers
from caltest.laws import GaussianPredictions, Outcomes, Pool
from caltest.scores import ALL, Scores

Waved: TypeAlias = GaussianPredictions | Pool

_WIDE = 6.5  # bandwidths beyond which the kernel, and its spectral density, are below 10⁻⁹
_MOST = 64  # frequencies: where outcomes may lie farther apart, the kernel repeats itself
_HELD = 2**22  # sums of features held at a time: 32 MiB


@dataclass(frozen=True, eq=False)
class Waves(Scores):
    """s_i(y) = φ_i ⊗ (ψ(y) − E ψ(Z_i)) for waves ψ, and a number more: its squared length."""

    law: Waved
    features: Array  #: φ, (n, r), as rows count.
    bandwidth: float  #: Of the Gaussian kernel of outcomes.

    @property
    def n_samples(self) -> int:
        return self.law.n_samples

    @property
    def size(self) -> int:
        return int(self.features.shape[1] * 2 * len(self._frequencies) + 1)

    @cached_property
    def _frequencies(self) -> Array:
        low, high = self.law.support()
        longest = (high - low) / self.bandwidth
        step = 2.0 * np.pi / (longest + _WIDE)
        count = min(int(np.ceil(_WIDE / step)), _MOST)
        return np.asarray(np.arange(1, count + 1) * max(step, _WIDE / _MOST))

    @cached_property
    def _heights(self) -> Array:
        density = np.exp(-0.5 * self._frequencies**2) / np.sqrt(2.0 * np.pi)
        return np.asarray(np.sqrt(2.0 * self._frequencies[0] * density))

    @cached_property
    def _origin(self) -> float:
        return float(self.law.mean_and_variance()[0][0])

    def _at(self, numbers: Array) -> Array:
        """Return the waves ψ at numbers (n,), (n, 2K)."""
        angles = np.multiply.outer((numbers - self._origin) / self.bandwidth, self._frequencies)
        return np.hstack([np.cos(angles) * self._heights, np.sin(angles) * self._heights])

    @cached_property
    def _expected(self) -> Array:
        found = self.law.characteristic(self._frequencies / self.bandwidth, self._origin)
        return np.hstack([found.real * self._heights, found.imag * self._heights])

    def centred(self, outcomes: Array) -> Array:
        """Return ψ(y_i) − E ψ(Z_i), (n, 2K)."""
        return self._at(outcomes) - self._expected

    @cached_property
    def squares(self) -> Array:
        """|φ_i|², (n,)."""
        return np.asarray(np.einsum("nr,nr->n", self.features, self.features))

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        found = np.empty((len(outcomes), self.size))
        for own, numbers in zip(found, outcomes, strict=True):
            waves = self.centred(numbers)
            own[:-1] = (self.features.T @ waves).ravel()
            own[-1] = self.squares @ np.einsum("nk,nk->n", waves, waves)
        return found

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        parts = [*self.by_wave(outcomes, clusters), np.zeros((clusters.count, 1))]
        return np.hstack(parts)

    def by_wave(self, outcomes: Outcomes, clusters: Clusters) -> Iterator[Array]:
        """Yield the sums of one wave after the other, (G, r)."""
        for wave in self.centred(outcomes).T:
            yield clusters.sums(self.features * wave[:, None])


@dataclass(frozen=True, eq=False)
class WavePairs(OfNumbers):
    """T = scale · Σ ⟨s_i, s_j⟩ over pairs i ≠ j; with clusters, over pairs of different ones."""

    waves: Waves
    scale: float

    direction = None

    @property
    def scores(self) -> Waves:
        return self.waves

    @property
    def law(self) -> Waved:  # type: ignore[override]
        """The predicted distributions."""
        return self.waves.law

    @property
    def resolution(self) -> float:
        return ROUNDING * self.scale * float(self.waves.squares.sum()) * self.waves.n_samples

    def work(self, draws: int) -> Work:
        return {"feature": float(draws) * self.waves.n_samples * self.waves.size}

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        cut = blocks(len(labels), max(1, _HELD // self.waves.size))
        return np.concatenate([super(WavePairs, self).of_labels(labels[part]) for part in cut])

    def reduce(self, sums: Array, fixed: Array) -> Array:
        squares = np.einsum("bk,bk->b", sums[:, :-1], sums[:, :-1])
        return np.asarray(self.scale * (squares - sums[:, -1]))

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        every = (self.waves.by_wave(numbers, clusters) for numbers in labels)
        return np.stack([sum((part**2).sum(axis=1) for part in each) for each in every])

    def apart(self, labels: Labels, clusters: Clusters) -> Array:
        own = self.squares_of(labels, clusters).sum(axis=1)
        sums = self.waves.sums(labels)
        sums[:, -1] = own
        return clusters.share_between * self.reduce(sums, self.fixed)

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        pairs = sum(part @ part.T for part in self.waves.by_wave(labels, clusters))
        return signed_pairs(pairs, self.scale * clusters.share_between, False, self.resolution)
