"""What is asked of an audit: lenses and statistics, looked up before any data are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from caltest import lenses as registered
from caltest._arguments import choose
from caltest._quoted import quoted
from caltest.auditing.looks import CANONICAL, CLASSWISE, Scope
from caltest.exceptions import InputError
from caltest.lenses import Lens, find_lens
from caltest.named import StatisticLike, find_statistic
from caltest.nulls import MonteCarlo
from caltest.statistics import ECD, Statistic, UnbiasedSKCE
from caltest.tolerance import check_possible

Lenses: TypeAlias = "str | Lens | Sequence[str | Lens]"
Statistics: TypeAlias = (
    "StatisticLike | Sequence[StatisticLike] | Mapping[str, StatisticLike | Sequence[StatisticLike]]"
)

_TOP_LABEL = "top_label"
LENSES = (CANONICAL, _TOP_LABEL, CLASSWISE)
#: Of the full probability vector by default: with a kernel of low rank where rows are many.
OF_VECTOR = UnbiasedSKCE(approximation="auto")
_ECD = "ecd"
_OF_VECTORS: tuple[StatisticLike, ...] = (OF_VECTOR, _ECD)
_OF_ONE: tuple[StatisticLike, ...] = ("ks", _ECD)
_NAMED: dict[str, object] = {CANONICAL: None, CLASSWISE: None}
_WITH_TOLERANCE: tuple[StatisticLike, ...] = ("scan",)


@dataclass(frozen=True)
class Wanted:
    """What was asked for, checked as far as it can be without data.

    Attributes
    ----------
    lenses
        By the name under which they were asked for.
    statistics
        By lens; None under a lens means the default.
    with_tolerance
        Whether only one probability at a time can be looked at.
    """

    lenses: dict[str, Lens | None]
    statistics: dict[str, tuple[Statistic, ...] | None]
    with_tolerance: bool

    @classmethod
    def of(cls, lenses: Lenses, statistics: Statistics | None, with_tolerance: bool) -> Wanted:
        """Look names up.

        Raises
        ------
        InputError
            If there is no such lens or statistic.
        """
        each = [lenses] if isinstance(lenses, str | Lens | type) else _several(lenses)
        found: dict[str, Lens | None] = {}
        for one in each:
            if isinstance(one, str) and ":" not in one:
                choose("lens", one, _NAMED | registered.LENSES)
            if isinstance(one, str) and one in _NAMED:
                found[one] = None
            else:
                lens = find_lens(one)
                if lens is None:
                    raise InputError("lenses holds None; the full probability vector is 'canonical'.")
                found[lens.label] = lens
        if not found:
            raise InputError("lenses is empty; give one at least, such as 'top_label'.")
        if isinstance(statistics, Mapping):
            for name in statistics:
                choose("lens among those asked for", name, found)
            by_lens = {name: _statistics(statistics.get(name)) for name in found}
        else:
            by_lens = dict.fromkeys(found, _statistics(statistics))
        if with_tolerance:
            for each_statistic in [one for those in by_lens.values() for one in those or ()]:
                check_possible(each_statistic, MonteCarlo(), None)
        return cls(found, by_lens, with_tolerance)

    @property
    def has_default_lenses(self) -> bool:
        """Return whether the lenses are the default ones."""
        return tuple(self.lenses) == LENSES

    def is_default(self, scope: Scope) -> bool:
        """Return whether nobody asked for the statistics of a lens."""
        return self.statistics[scope.asked] is None

    @property
    def _vector_has_ecd(self) -> bool:
        """Return whether the full probability vector is looked at by the ECD."""
        if CANONICAL not in self.lenses:
            return False
        asked = self.statistics[CANONICAL]
        return asked is None or ECD() in asked

    def of_scope(self, scope: Scope, n_classes: int, of_classes: int) -> tuple[Statistic, ...]:
        """Return the statistics that fit a lens that leaves so many classes of so many.

        Of two classes the top label has the ECD of the probabilities themselves, number for number: by
        default it is looked at once.
        """
        asked = self.statistics[scope.asked]
        if asked is not None:
            return tuple(each for each in asked if n_classes == 2 or each.default_lens is None)
        if self.with_tolerance:
            names = _WITH_TOLERANCE
        else:
            vectors = n_classes > 2 or scope.label == CANONICAL
            names = (*(_OF_VECTORS if vectors else ()), *(_OF_ONE if n_classes == 2 else ()))
            if scope.label == _TOP_LABEL and of_classes == 2 and self._vector_has_ecd:
                names = tuple(name for name in names if name != _ECD)
        return tuple(find_statistic(name) for name in dict.fromkeys(names))


def _several(lenses: Any) -> list[Any]:
    if lenses is None or not np.iterable(lenses):
        names = ", ".join(map(repr, LENSES))
        raise InputError(f"lenses is {quoted(lenses)}; give names such as {names}, or leave it out.")
    return list(lenses)


def _statistics(given: Any) -> tuple[Statistic, ...] | None:
    if given is None:
        return None
    single = isinstance(given, str | Statistic | type) or callable(given) or not np.iterable(given)
    found = tuple(find_statistic(each) for each in ([given] if single else given))
    if not found:
        raise InputError("statistics is empty; give one at least, or leave it out.")
    return found
