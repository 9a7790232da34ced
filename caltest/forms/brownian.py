"""Functionals of Brownian motion, to which cumulative differences tend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from caltest.forms.base import Moments

BrownianFunctional: TypeAlias = Literal["maximum", "range"]

_MEAN_OF_ABSOLUTE = float(np.sqrt(2.0 / np.pi))
_OVERSHOOT = 0.5826  # −ζ(1/2)/√(2π)
_CATALAN = 0.9159655941772190
#: E T, E T², E T³, and how many boundaries T measures the distance of.
_MOMENTS: dict[BrownianFunctional, tuple[float, float, float, int]] = {
    "maximum": (float(np.sqrt(np.pi / 2.0)), 2.0 * _CATALAN, _MEAN_OF_ABSOLUTE * np.pi**3 / 8.0, 1),
    "range": (2.0 * _MEAN_OF_ABSOLUTE, 4.0 * float(np.log(2.0)), _MEAN_OF_ABSOLUTE * np.pi**2 / 1.5, 2),
}


@dataclass(frozen=True)
class BrownianLimit:
    """The limit of a statistic T under H0: T/``scale`` tends to a functional of Brownian motion.

    Attributes
    ----------
    functional
        "maximum" for sup |W| on [0, 1], "range" for sup W − inf W.
    scale
        σ, the standard deviation of the path at its end; 0 if all labels are certain.
    surprises
        Effective number of unlikely labels that make the path, see :func:`effective_surprises`.
    step
        Standard deviation of a step of the path, averaged in the time of its variance. Default 0: no
        steps.
    """

    functional: BrownianFunctional
    scale: float
    surprises: float
    step: float = 0.0

    @property
    def moments(self) -> Moments:
        """Mean, variance and skewness, the mean less what a path of steps misses between them.

        P(sup |W| > x) = 4 Σ_{k≥1} (−1)^{k−1} Q((2k − 1) x) gives sup |W| the moments √(π/2), 2 G
        (Catalan's constant) and √(2/π) π³/8; P(range > x) = 8 Σ_{k≥1} (−1)^{k−1} k Q(k x) gives the
        range 2 √(2/π), 4 log 2 and √(2/π) 2π²/3. A walk overshoots a boundary by about 0.583 of a step,
        so the range, with two boundaries, lacks twice that (Siegmund 1985, Section 10.4). Both are
        at least |W(1)|, whose mean is √(2/π).

        Examples
        --------
        >>> found = BrownianLimit("maximum", 1.0, 100.0).moments
        >>> round(found.mean, 4), round(found.variance, 4), round(found.skewness, 4)
        (1.2533, 0.2611, 1.0632)
        """
        if self.scale == 0.0:
            return Moments(0.0, 0.0, 0.0, surprises=self.surprises)
        first, second, third, ends = _MOMENTS[self.functional]
        mean = max(first - ends * _OVERSHOOT * self.step / self.scale, _MEAN_OF_ABSOLUTE)
        cumulant = third - 3.0 * first * second + 2.0 * first**3
        standard = Moments.of_cumulants(mean, second - first**2, cumulant, surprises=self.surprises)
        return standard.scaled(self.scale)


@runtime_checkable
class HasBrownianLimit(Protocol):
    """A functional of a path that tends to Brownian motion under H0, given the predictions."""

    @property
    def resolution(self) -> float:
        """As of any form."""
        ...

    @property
    def brownian_limit(self) -> BrownianLimit:
        """The functional and the scale."""
        ...
