"""Inputs of other kinds, made of the labels of an input alone: the same for us and for every peer.

Needs NumPy and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MEMBERS = 20  # of an ensemble; and draws of a posterior


def _rng(labels: np.ndarray) -> np.random.Generator:
    return np.random.default_rng(len(labels))


class Normals(NamedTuple):
    """Predicted normals and outcomes, (n,) each."""

    mean: np.ndarray
    sd: np.ndarray
    outcomes: np.ndarray


def normals(labels: np.ndarray) -> Normals:
    """Return calibrated normals of various means and spreads."""
    rng, n = _rng(labels), len(labels)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return Normals(mean, sd, rng.normal(mean, sd))


def members(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ensembles, (n, 20), and outcomes that are one more member."""
    rng, n = _rng(labels), len(labels)
    drawn = rng.normal(rng.normal(size=n)[:, None], 1.0, (n, MEMBERS + 1))
    return np.ascontiguousarray(drawn[:, 1:]), drawn[:, 0].copy()


class Times(NamedTuple):
    """Rates of exponential times, (n,), times that were seen, and whether the event came."""

    rate: np.ndarray
    time: np.ndarray
    event: np.ndarray


def times(labels: np.ndarray) -> Times:
    """Return calibrated times of which a third is censored."""
    rng, n = _rng(labels), len(labels)
    rate = rng.uniform(0.5, 2.0, n)
    came, end = rng.exponential(1.0 / rate), rng.exponential(2.0 / rate)
    return Times(rate, np.minimum(came, end), came <= end)


def groups(labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return three columns of 4, 7 and 2 levels."""
    rng, n = _rng(labels), len(labels)
    sizes = {"region": 4, "product": 7, "channel": 2}
    return {
        name: np.array([f"{name} {k}" for k in range(m)])[rng.integers(0, m, n)]
        for name, m in sizes.items()
    }
