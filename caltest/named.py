"""What a test is asked with: statistics and nulls by name, object or function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from caltest._arguments import check_takes, choose, takes
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.nulls import NULLS, MonteCarlo, Null
from caltest.pvalues import Alternative
from caltest.statistics import DENSITY_STATISTICS, STATISTICS, FunctionStatistic, Statistic

StatisticLike: TypeAlias = "str | Statistic | Callable[..., float]"


def find_statistic(statistic: StatisticLike) -> Statistic:
    """Return the statistic of a name, an object or a function."""
    if isinstance(statistic, str):
        return choose("statistic", statistic, STATISTICS | DENSITY_STATISTICS)()
    if isinstance(statistic, type) and issubclass(statistic, Statistic):
        return statistic()
    if isinstance(statistic, Statistic):
        return statistic
    if callable(statistic) and not isinstance(statistic, type):
        if not takes("probs", "labels", "weights", of=statistic):
            check_takes("statistic", statistic, "probs", "labels")
        return FunctionStatistic(statistic)
    raise InputError(
        f"statistic is {quoted(statistic)}; give a name, an object of caltest.statistics, "
        "or a function f(probs, labels) -> float."
    )


def find_null(null: str | Null | None) -> Null:
    """Return the null of a name or an object; None is the exact one."""
    if null is None:
        return MonteCarlo()
    if isinstance(null, str):
        return choose("null", null, NULLS)()
    if isinstance(null, type) and issubclass(null, Null):
        return null()
    if isinstance(null, Null):
        return null
    raise InputError(f"null is {quoted(null)}; give a name or an object of caltest.nulls.")


def possible_nulls(form: Form, of_clusters: bool = False) -> list[str]:
    """Return the names of the nulls that fit a form, of independent rows or of rows in clusters."""
    return [name for name, null in NULLS.items() if null.of_clusters == of_clusters and null.fits(form)]


def check_alternative(measure: Statistic, null: Null, alternative: Alternative | None) -> Alternative:
    """Return the alternative, or the default one, if the statistic and the null go with it."""
    possible = [side for side in measure.alternatives if side in null.alternatives]
    if alternative is None and possible:
        return possible[0]
    if alternative in possible:
        return alternative
    raise InputError(
        f"the alternative {quoted(alternative)} is not one that {measure.name!r} with the null "
        f"{null.name!r} can answer; possible: {', '.join(possible) or 'none'}."
    )
