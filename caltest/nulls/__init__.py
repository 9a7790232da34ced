"""Nulls: the ways to compute a p-value, each with its assumption."""

# ruff: noqa: F403, F405 -- the names of `__all__`, which are listed once

from typing import Any

import numpy as np

from caltest._arguments import made
from caltest._parallel import Workers
from caltest._visible import quoted
from caltest.data import Sample
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.laws import Law, Point
from caltest.nulls.asymptotic import Bootstrap, Bound, Brownian, Chi2, Consistency, NormalApproximation
from caltest.nulls.base import *
from caltest.nulls.clusters import ClusterSigns, ComonotoneLabels, OnePerCluster
from caltest.nulls.moments import ConditionalMoments
from caltest.nulls.times import EventSigns, PointErrors
from caltest.pvalues import Alternative
from caltest.statistics import Statistic
from caltest.statistics.order import EventsAfter

_OWN = MonteCarlo, ConditionalMoments, ClusterSigns, OnePerCluster, ComonotoneLabels
_OF_ROWS = EventSigns, PointErrors
_OF_THE_LITERATURE = NormalApproximation, Chi2, Brownian, Bound, Bootstrap, Consistency
NULLS: dict[str, type[Null]] = {null.name: null for null in (*_OWN, *_OF_ROWS, *_OF_THE_LITERATURE)}

__all__ = ["GUARANTEES", "NULLS", "Answer", "Bootstrap", "Bound", "Brownian", "Chi2", "ClusterSigns"]
__all__ += ["ComonotoneLabels", "ConditionalMoments", "Consistency", "EventSigns", "Guarantee"]
__all__ += ["MonteCarlo", "NormalApproximation", "Null", "OnePerCluster", "PointErrors"]
__all__ += ["ComponentAnswer", "Question"]


_DRAWS = 99


def of_calibrated(fitted: Statistic, form: Form, view: Sample) -> float | None:
    """Return an approximate value for a calibrated model with the same predictions: the mean of draws.

    None for rows in clusters, whose dependence draws ignore, for censored times, and for point
    forecasts, which cannot be drawn from.
    """
    law = view.rows.law
    if view.rows.clusters is not None or law.seen is not None or isinstance(law, Point):
        return None
    trial = Trial(view.rows, view.labels, _DRAWS, 0, Workers())
    drawn: Any = MonteCarlo().answer(trial.question(fitted, form, fitted.alternatives[0]))
    expected = float(np.mean(drawn.null_distribution))
    return expected if np.isfinite(expected) else None


def find_null(null: str | Null | None) -> Null:
    """Return the null for a name or an object; None is the exact one."""
    do = "give a name or an object of caltest.nulls"
    return MonteCarlo() if null is None else made("null", null, NULLS, Null, do)  # type: ignore[type-abstract]


def possible_nulls(form: Form, of_clusters: bool = False) -> list[str]:
    """Return the names of the nulls that fit a form, for independent rows or for rows in clusters."""
    every = {name: null for name, null in NULLS.items() if null.of_clusters == of_clusters}
    drawn = not isinstance(form, EventsAfter)  # probabilities may depend on earlier outcomes
    return [name for name, null in every.items() if null.fits(form) and (drawn or not null.resamples)]


def check_alternative(measure: Statistic, null: Null, alternative: object, law: Law) -> Alternative:
    """Return the alternative, or the default, if the statistic and the null allow it."""
    possible = [side for side in measure.sides(law) if side in null.alternatives]
    for side in possible:
        if alternative in (side, None):
            return side
    pair = f"{measure.name!r} with the null {null.name!r}"
    found = f"the alternative {quoted(alternative)} is not one that {pair} can answer"
    raise InputError(f"{found}; possible: {', '.join(possible) or 'none'}.")
