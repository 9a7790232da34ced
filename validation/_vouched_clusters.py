"""Ten designs of rows in clusters: right models, and errors that hide in clusters.

Every design draws a data set: predictions, labels, the options of an audit, and the truth about it. In
right designs, P(event | prediction) is the prediction, however the rows of a cluster depend on each
other. In the others the mean of some view is off by more than the limit, so that "within" is false.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]
#: Predictions, labels, options of :func:`caltest.audit`, and the truth: whether the model is right
#: ("calibrated"), whether "within" would be false ("within_is_false"), and the mean error of all rows,
#: predicted less true, as they count ("mean_error").
Drawn: TypeAlias = tuple[Array, NDArray[np.intp], dict[str, Any], dict[str, Any]]


def designs() -> dict[str, Callable[[np.random.Generator], Drawn]]:
    """Return the designs by name; each takes a generator and draws a data set of at most 3 000 rows."""
    return {
        "lognormal sizes": lognormal_sizes,
        "rare events that clusters share": rare_shared,
        "a heavy cluster": heavy_cluster,
        "a region of clusters": nested_groups,
        "a visit within clusters": crossing_groups,
        "weights of clusters": weighted,
        "outbreaks": outbreaks,
        "outbreaks in a region": outbreaks_in_a_region,
        "at the limit": at_the_limit,
        "sampled by label": sampled,
    }


def _events(
    rates: Array, codes: Codes, correlation: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw events at these rates, with normal correlation inside clusters."""
    shared = rng.standard_normal(int(codes.max()) + 1)[codes]
    own = rng.standard_normal(len(rates))
    cause = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own
    return (ndtr(cause) < rates).astype(np.intp)


def _drawn(
    probs: Array,
    rates: Array,
    labels: NDArray[np.intp],
    codes: Codes,
    limit: float,
    beyond: bool,
    **options: Any,
) -> Drawn:
    """Return a data set whose true rates are known; they are the predictions where it is calibrated."""
    error = float(np.average(probs - rates, weights=options.get("weights")))
    right = bool((probs == rates).all())
    truth = {"calibrated": right, "within_is_false": beyond, "mean_error": error}
    return probs, labels, {"clusters": codes, "materiality": limit, **options}, truth


def lognormal_sizes(rng: np.random.Generator) -> Drawn:
    """Draw a right model: 70 clusters of lognormal sizes, the largest of some hundred rows."""
    sizes = np.ceil(rng.lognormal(2.6, 1.0, 70)).clip(max=300).astype(np.intp)
    codes = np.repeat(np.arange(70), sizes)[:3000]
    probs = rng.beta(2.0, 3.0, len(codes))
    return _drawn(probs, probs, _events(probs, codes, 0.3, rng), codes, 0.1, False)


def rare_shared(rng: np.random.Generator) -> Drawn:
    """Draw a right model: the rows of a cluster have rare events together, or none of them has."""
    codes = np.repeat(np.arange(120), 25)
    probs = rng.beta(1.0, 40.0, 120)[codes]
    labels = (rng.random(120)[codes] < probs).astype(np.intp)
    return _drawn(probs, probs, labels, codes, 0.02, False)


def heavy_cluster(rng: np.random.Generator) -> Drawn:
    """Draw a right model: one of 91 clusters has a quarter of the rows."""
    codes = np.concatenate([np.repeat(np.arange(90), 20), np.full(600, 90)])
    probs = rng.uniform(0.05, 0.6, len(codes))
    return _drawn(probs, probs, _events(probs, codes, 0.4, rng), codes, 0.08, False)


def nested_groups(rng: np.random.Generator) -> Drawn:
    """Draw 100 clusters in four regions; in one of these, risks are 7 points too low, the limit 5."""
    codes = np.repeat(np.arange(100), 24)
    region = codes % 4
    probs = rng.uniform(0.1, 0.5, len(codes))
    rates = probs + 0.07 * (region == 3)
    labels, groups = _events(rates, codes, 0.2, rng), {"region": region}
    return _drawn(probs, rates, labels, codes, 0.05, True, groups=groups)


def crossing_groups(rng: np.random.Generator) -> Drawn:
    """Draw 150 clusters of 12 visits; at one of three kinds of visit, risks are 6 points too high."""
    codes, visit = np.repeat(np.arange(150), 12), np.tile(np.arange(12) % 3, 150)
    probs = rng.uniform(0.2, 0.6, len(codes))
    rates = probs - 0.06 * (visit == 2)
    labels, groups = _events(rates, codes, 0.5, rng), {"visit": visit}
    return _drawn(probs, rates, labels, codes, 0.05, True, groups=groups)


def weighted(rng: np.random.Generator) -> Drawn:
    """Draw clusters of three weights: where rows count most, risks are too low, so that the mean is."""
    codes = np.repeat(np.arange(150), 16)
    kind = codes % 3
    probs = rng.uniform(0.1, 0.5, len(codes))
    rates = probs + np.array([0.0, 0.0, 0.08])[kind]
    weights = np.array([0.5, 1.0, 4.0])[kind]
    return _drawn(probs, rates, _events(rates, codes, 0.2, rng), codes, 0.05, True, weights=weights)


def outbreaks(rng: np.random.Generator) -> Drawn:
    """Draw rows that are independent but in one of 30 clusters, where all have the event."""
    codes = np.repeat(np.arange(75), 40)
    probs = np.tile([0.15, 0.85], 1500) + rng.uniform(-0.05, 0.05, 3000)
    rates = probs + (1.0 - probs) / 30.0
    hit = (rng.random(75) < 1.0 / 30.0)[codes]
    labels = (hit | (rng.random(len(codes)) < probs)).astype(np.intp)
    return _drawn(probs, rates, labels, codes, 0.0155, True)


def outbreaks_in_a_region(rng: np.random.Generator) -> Drawn:
    """Draw 120 clusters, of which those of one region alone can have an outbreak, one in 40 of them."""
    codes = np.repeat(np.arange(120), 25)
    region = codes % 3
    probs = rng.uniform(0.3, 0.5, len(codes))
    rates = probs + (region == 0) * (1.0 - probs) / 40.0
    hit = (rng.random(120) < 1.0 / 40.0)[codes] & (region == 0)
    labels = (hit | (rng.random(len(codes)) < probs)).astype(np.intp)
    return _drawn(probs, rates, labels, codes, 0.0145, True, groups={"region": region})


def at_the_limit(rng: np.random.Generator) -> Drawn:
    """Draw risks 5 points too high, a hair beyond the limit, in 150 clusters of one to 35 rows."""
    codes = np.repeat(np.arange(150), 1 + np.arange(150) % 35)[:3000]
    probs = rng.uniform(0.15, 0.65, len(codes))
    rates = probs - 0.05
    return _drawn(probs, rates, _events(rates, codes, 0.1, rng), codes, 0.04999, True)


def sampled(rng: np.random.Generator) -> Drawn:
    """Draw a right model of rare events in 400 clusters; one in ten rows without the event is kept."""
    codes = np.repeat(np.arange(400), 40)
    probs = rng.beta(1.0, 12.0, len(codes))
    labels = _events(probs, codes, 0.2, rng)
    kept = (labels == 1) | (rng.random(len(codes)) < 0.1)
    probs, labels, codes = (each[kept] for each in (probs, labels, codes))
    return _drawn(probs, probs, labels, codes, 0.05, False, sampling_rates={0: 0.1})
