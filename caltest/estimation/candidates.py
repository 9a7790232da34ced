"""Which estimation functions compete, and which values of their options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import isabstract
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from caltest._arguments import choose
from caltest._visible import quoted
from caltest.estimation.base import EstimationFunction
from caltest.estimation.functions import DirichletKernelDensity, HistogramBinning, Temperature
from caltest.estimation.ridge import KroneckerKernelRidge, Scaling, TwoStepKernelRidge
from caltest.exceptions import InputError
from caltest.text.numbers import short

FunctionLike: TypeAlias = (
    "str | EstimationFunction | type[EstimationFunction] | tuple[EstimationFunction, Sequence[Any]]"
)

#: Estimation functions by name.
FUNCTIONS: dict[str, type[EstimationFunction]] = {
    each.name: each
    for each in (
        HistogramBinning,
        DirichletKernelDensity,
        KroneckerKernelRidge,
        TwoStepKernelRidge,
        Temperature,
    )
}

ALL_PAIRS_UP_TO = 50_000  # rows; "all" leaves out functions of cost n² beyond


def several(functions: Any) -> tuple[Any, ...]:
    """Return one function, or several, as several."""
    if isinstance(functions, str | EstimationFunction | type) or not np.iterable(functions):
        return (functions,)
    try:
        return tuple(functions)
    except TypeError:  # an array of no dimension
        return (functions,)


class Candidate(NamedTuple):
    """An estimation function and the values of its tuned option that compete."""

    label: str
    function: EstimationFunction
    values: tuple[Any, ...]


def candidates(
    functions: str | Sequence[FunctionLike], scaling: Scaling, n_samples: int, n_classes: int
) -> tuple[Candidate, ...]:
    """Return the functions that compete on n predictions of m classes.

    Raises
    ------
    InputError
        If they are no functions, none at all, or one of them twice.
    """
    wanted: list[FunctionLike] = []
    for each in several(functions):
        everything = isinstance(each, str) and each == "all"
        wanted += _all(n_samples, n_classes) if everything else [each]
    found = tuple(_candidate(each, scaling, n_classes) for each in wanted)
    labels = [each.label for each in found]
    if len(set(labels)) < len(labels):  # names of options in full tell objects apart
        found = tuple(
            Candidate(_in_full(each), each.function, each.values)
            if labels.count(each.label) > 1 and len(each.values) == 1
            else each
            for each in found
        )
        labels = [each.label for each in found]
    if not found or len(set(labels)) < len(labels):
        raise InputError(f"functions are {labels}; give one at least, and each one once.")
    return found


def _candidate(wanted: FunctionLike, scaling: Scaling, n_classes: int) -> Candidate:
    if isinstance(wanted, tuple):
        return _with_values(wanted)
    if isinstance(wanted, EstimationFunction):
        value = getattr(wanted, wanted.tuned)
        return Candidate(f"{wanted.name}({wanted.tuned}={short(value)})", wanted, (value,))
    if isinstance(wanted, type) and issubclass(wanted, EstimationFunction) and not isabstract(wanted):
        kind = wanted
    elif isinstance(wanted, str):
        kind = choose("estimation function", wanted, FUNCTIONS)
    else:
        raise InputError(
            f"functions holds {quoted(wanted)}; give names ({', '.join(FUNCTIONS)}) or objects of "
            "caltest.estimation."
        )
    scaled = issubclass(kind, KroneckerKernelRidge | TwoStepKernelRidge)
    function = kind(regularization_scaling=scaling) if scaled else kind()  # type: ignore[call-arg]
    return _with_values((function, function.search_space(n_classes)))


def _all(n_samples: int, n_classes: int) -> list[FunctionLike]:
    """Return what "all" stands for: what can be computed for so many rows and classes."""
    binned: list[FunctionLike] = [HistogramBinning(15), "binning"] if n_classes == 2 else []
    dense: list[FunctionLike] = ["kernel_density"] if n_samples <= ALL_PAIRS_UP_TO else []
    return [*binned, *dense, "kronecker_ridge", "two_step_ridge"]


def _with_values(pair: tuple[Any, ...]) -> Candidate:
    """Return a function whose tuned option takes given values."""
    values = tuple(pair[1]) if len(pair) == 2 and isinstance(pair[1], Iterable) else ()
    if len(pair) != 2 or not isinstance(pair[0], EstimationFunction) or not values:
        raise InputError(
            f"functions holds {quoted(pair)}; give pairs of a function and the values to try, as in "
            "(TwoStepKernelRidge(), [0.1, 0.01])."
        )
    for value in values:
        pair[0].with_value(value)  # raises if it cannot be used
    return Candidate(pair[0].name, pair[0], values)


def _in_full(candidate: Candidate) -> str:
    options = ", ".join(f"{key}={value}" for key, value in candidate.function.parameters.items())
    return f"{candidate.function.name}({options})"
