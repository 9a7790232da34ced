"""A curve of power against the number of rows, and the number of rows at which it reaches a power.

The curve is Φ(−z_α + (z_α + z_w)(n/n*)^γ), with z_α the upper α quantile and z_w the w quantile of the
normal distribution: α without data, the wanted power w at n*, 1 in the end. γ = ½ is the power of a
one-sided z-test exactly; quadratic statistics rise faster. Near the answer, where most data sets are
simulated, the form hardly matters.

The likelihood of binomial counts is evaluated on a grid, so that it cannot fail to converge. The
interval of n* holds what a likelihood ratio does not reject, γ at its best for every n*. What is
likely of γ beforehand (log-normal about 0.7) counts as little as a few data sets do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

Array = NDArray[np.float64]

_LIKELY, _SPREAD = np.log(0.7), 0.8  # mean and standard deviation of log γ beforehand
_EXPONENTS = np.geomspace(0.2, 4.0, 25)
_COARSE, _FINE = 120, 200  # points of the grids of n*
# Half the 95% quantile of χ² with one degree of freedom is 1.92. Where data sets lie hangs on earlier
# counts, and the curve is no more than close to the truth: with 1.92, 89 to 95 of 100 intervals held.
_DROP = 2.25
_BEYOND = 16.0  # the grid goes so many times beyond the numbers of rows simulated
_MOST_Z = 38.0  # beyond, the normal tail is 0


@dataclass(frozen=True)
class Curve:
    """The fitted curve.

    Attributes
    ----------
    alpha
        Its height without data: the level.
    power
        The power wanted, w.
    n
        Where it is reached, n*: not a whole number.
    exponent
        How steep it is, γ.
    """

    alpha: float
    power: float
    n: float
    exponent: float

    def __call__(self, n: ArrayLike) -> Array:
        """Return the power with ``n`` rows."""
        rows = np.asarray(n, dtype=np.float64)
        return np.asarray(ndtr(_height(self.alpha, self.power, rows, self.n, self.exponent)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


class Fit(NamedTuple):
    """The best curve, and the 95% interval of n*; an end may be infinite or 0."""

    curve: Curve
    low: float
    high: float


def _height(alpha: float, power: float, n: Any, at: Any, exponent: Any) -> Any:
    start, rise = ndtri(alpha), ndtri(power) - ndtri(alpha)
    with np.errstate(over="ignore"):
        return np.minimum(start + rise * (n / at) ** exponent, _MOST_Z)


def fit(
    n: Sequence[int], rejections: Sequence[int], of: Sequence[int], alpha: float, power: float
) -> Fit:
    """Fit the curve to ``rejections`` among ``of`` data sets of ``n`` rows.

    Examples
    --------
    >>> found = fit([100, 200, 400], [40, 64, 91], [100, 100, 100], alpha=0.05, power=0.8)
    >>> round(found.curve.n), round(found.curve(200).item(), 2)
    (291, 0.65)
    """
    counts = np.array([n, rejections, of], dtype=np.float64)
    low, high = counts[0].min() / _BEYOND, counts[0].max() * _BEYOND
    grid = np.geomspace(low, high, _COARSE)
    profile, _ = _profile(grid, counts, alpha, power)
    kept = np.flatnonzero(profile >= profile.max() - 2.0 * _DROP)
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, _COARSE - 1)
    fine = np.geomspace(grid[first], grid[last], _FINE)
    profile, exponents = _profile(fine, counts, alpha, power)
    best = int(profile.argmax())
    inside = np.flatnonzero(profile >= profile[best] - _DROP)
    curve = Curve(alpha, power, float(fine[best]), float(exponents[best]))
    lowest = 0.0 if inside[0] == 0 and first == 0 else float(fine[inside[0]])
    highest = np.inf if inside[-1] == _FINE - 1 and last == _COARSE - 1 else float(fine[inside[-1]])
    return Fit(curve, lowest, highest)


def _profile(at: Array, counts: Array, alpha: float, power: float) -> tuple[Array, Array]:
    """Return the log-likelihood of every n* with its best exponent, and that exponent."""
    n, rejections, of = counts
    heights = _height(*(alpha, power, n[None, None, :], at[:, None, None], _EXPONENTS[None, :, None]))
    found = log_ndtr(heights) @ rejections + log_ndtr(-heights) @ (of - rejections)
    found -= 0.5 * ((np.log(_EXPONENTS) - _LIKELY) / _SPREAD) ** 2
    best = found.argmax(axis=1)
    return found[np.arange(len(at)), best], _EXPONENTS[best]
