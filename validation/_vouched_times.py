"""Times of models with few predicted levels or gaps, whose follow-up depends on the prediction.

:func:`designs` returns ten designs by name. Each is a function of a NumPy generator that returns

* the predictions, a :class:`caltest.predictive.Survival`, of at most 1,500 rows,
* outcomes ``(time, event)``,
* options of :func:`caltest.audit`: ``lenses``, and ``groups`` and ``materiality`` where a design has
  them,
* the truth: ``calibrated``, whether all predictions are right; ``mean_error``, the mean predicted risk
  less the mean true risk of all rows until the horizon; and, where a limit is asked for,
  ``within_is_false``, whether the error of any view that is looked at is larger than the limit.

Censoring depends on the prediction alone in all designs. An audit of calibrated predictions is to
reject at most as often as it says, its intervals are to hold ``mean_error``, and the verdict is not to
be "within" more often than it says where that is false.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.predictive import Survival

Array: TypeAlias = NDArray[np.float64]
Rng: TypeAlias = np.random.Generator
Outcomes: TypeAlias = tuple[Array, NDArray[np.bool_]]
_Made: TypeAlias = tuple[Survival, Outcomes, dict[str, Any], dict[str, Any]]
Design: TypeAlias = Callable[[Rng], _Made]

_AT = 1.0  # the horizon
_GRID = np.linspace(0.04, 2.0, 50)
_LIMIT = 0.04  # of the mean error, where a design has one


def _levels(rng: Rng, n: int, levels: list[float], shares: list[float]) -> Array:
    return np.asarray(rng.choice(levels, n, p=shares))


def _ranges(rng: Rng, n: int, *ranges: tuple[float, float, float]) -> Array:
    low, high, share = np.transpose(ranges)
    of = rng.choice(len(share), n, p=share)
    return np.asarray(rng.uniform(low[of], high[of]))


def _leaving(rng: Rng, early: NDArray[np.bool_], share: float = 0.85) -> Array:
    """Return limits: most of some rows leave before a third of the horizon, all others after it."""
    leaves = early & (rng.random(len(early)) < share)
    low, high = np.where(leaves, [[0.02], [0.3]], [[1.0], [2.0]])
    return np.asarray(rng.uniform(low, high))


def _made(
    rng: Rng,
    risk: Array,
    limit: Array,
    times: Array | None,
    factor: Any = 1.0,
    groups: dict[str, Any] | None = None,
    limited: bool = False,
) -> _Made:
    """Draw times from the predicted risks until 1, with hazards so many times as large."""
    rates = -np.log1p(-risk) * factor
    time = rng.exponential(1.0 / rates)
    if times is None:
        law = Survival(risk=risk, times=_AT)
    else:
        law = Survival((1.0 - risk[:, None]) ** (times / _AT), times)
    errors = risk + np.expm1(-rates)
    options: dict[str, Any] = {"lenses": "until:1"}
    truth: dict[str, Any] = {
        "calibrated": bool(np.all(factor == 1.0)),
        "mean_error": float(errors.mean()),
    }
    views = [np.ones(len(risk), dtype=bool)]
    if groups is not None:
        options["groups"] = groups
        views += [values == each for values in groups.values() for each in np.unique(values)]
    if limited:
        options["materiality"] = _LIMIT
        worst = max(abs(float(errors[view].mean())) for view in views)
        truth["within_is_false"] = worst > _LIMIT
    return law, (np.minimum(time, limit), time <= limit), options, truth


def _stump(rng: Rng) -> _Made:
    """Draw two leaves, the larger of which is lost."""
    risk = _levels(rng, 1200, [0.08, 0.45], [0.3, 0.7])
    return _made(rng, risk, _leaving(rng, risk > 0.1, 0.7), None)


def _tree(rng: Rng) -> _Made:
    """Draw eight leaves of a tree; every other one leaves early."""
    leaves = [0.01, 0.04, 0.09, 0.15, 0.24, 0.37, 0.55, 0.8]
    risk = _levels(rng, 1500, leaves, [0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.06, 0.04])
    return _made(rng, risk, _leaving(rng, np.isin(risk, leaves[1::2])), _GRID)


def _points(rng: Rng) -> _Made:
    """Draw a score of 0 to 12 points: hazards of censoring fall with it."""
    points = rng.binomial(12, 0.3, 1500)
    risk = 1.0 / (1.0 + np.exp(4.0 - 0.5 * points))
    return _made(rng, risk, rng.exponential(np.exp(0.45 * points) / 3.0), _GRID)


def _visits(rng: Rng) -> _Made:
    """Draw curves of two times and four levels, the second of which is lost at the first visit."""
    risk = _levels(rng, 1200, [0.1, 0.35, 0.5, 0.7], [0.4, 0.3, 0.2, 0.1])
    limit = _leaving(rng, np.isclose(risk, 0.35))
    return _made(rng, risk, limit, np.array([1.0, 2.0]))


def _spike(rng: Rng) -> _Made:
    """Draw risks; a third of the rows, with something missing, has their mean and is lost."""
    risk = rng.beta(1.5, 4.0, 1500).clip(0.005, 0.95)
    missing = rng.random(1500) < 1.0 / 3.0
    risk[missing] = 0.27
    return _made(rng, risk, _leaving(rng, missing), None)


def _two_modes(rng: Rng) -> _Made:
    """Draw healthy rows and patients, with nothing between; the less ill of these go elsewhere."""
    risk = _ranges(rng, 1500, (0.002, 0.015, 0.75), (0.2, 0.3, 0.05), (0.5, 0.7, 0.2))
    return _made(rng, risk, _leaving(rng, (risk > 0.1) & (risk < 0.4)), _GRID)


def _long_tail(rng: Rng) -> _Made:
    """Draw skewed risks without gaps: the lower one is, the sooner a row is lost."""
    risk = (-np.expm1(-0.1 * rng.lognormal(0.0, 1.2, 1500))).clip(1e-4, 0.99)
    return _made(rng, risk, rng.exponential(4.0 * np.sqrt(risk)), _GRID)


def _hidden_leaf(rng: Rng) -> _Made:
    """Draw five leaves; hazards of the one that leaves early are three times those predicted."""
    risk = _levels(rng, 1500, [0.05, 0.17, 0.3, 0.42, 0.6], [0.5, 0.25, 0.1, 0.1, 0.05])
    early = np.isclose(risk, 0.17)
    return _made(rng, risk, _leaving(rng, early), _GRID, np.where(early, 3.0, 1.0), limited=True)


def _hidden_mode(rng: Rng) -> _Made:
    """Draw the same of a narrow range above a gap, for risks at one time."""
    risk = _ranges(rng, 1500, (0.01, 0.03, 0.6), (0.15, 0.2, 0.2), (0.4, 0.7, 0.2))
    early = (risk > 0.1) & (risk < 0.3)
    return _made(rng, risk, _leaving(rng, early), None, np.where(early, 3.0, 1.0), limited=True)


def _wards(rng: Rng) -> _Made:
    """Draw rounded predictions and two wards, in one of which low levels leave early; with a limit."""
    risk = np.round(20.0 * rng.beta(1.2, 3.5, 1500)).clip(0.4, 18.0) / 20.0
    ward = np.where(rng.random(1500) < 0.4, "north", "south")
    limit = _leaving(rng, (ward == "north") & (risk < 0.2))
    return _made(rng, risk, limit, _GRID, groups={"ward": ward}, limited=True)


def designs() -> dict[str, Design]:
    """Return the ten designs by name; the docstring of the module says what they return."""
    return {
        "two leaves": _stump,
        "eight leaves": _tree,
        "a score of points": _points,
        "two visits": _visits,
        "a spike": _spike,
        "two modes": _two_modes,
        "a long tail": _long_tail,
        "a hidden leaf": _hidden_leaf,
        "a hidden mode": _hidden_mode,
        "rounded, in wards": _wards,
    }
