"""Rows that were sampled by their label, and what predictions mean among those that were kept.

A row of class k is kept with a known probability s_k, independently of all else. Among the rows kept

    P(Y = k | g) = g_k s_k / Σ_l g_l s_l,

exactly, so predictions transformed like this are calibrated among these if those of all rows were.
Weights 1/s_k would be functions of the labels, which no test of predictions may count by.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import as_float, closest, whole_number
from caltest._visible import quoted
from caltest.data.containers import listed
from caltest.data.labels import numbers_in, without_prefix
from caltest.exceptions import InputError

_SEVERAL = 5  # classes whose means are reported


def kept_at(
    probs: NDArray[np.float64],
    classes: tuple[str, ...] | None,
    rates: object,
    weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], str]:
    """Transform predictions of all rows into those of the rows that were kept.

    Returned with them is a sentence: what was predicted on average before and after.

    Parameters
    ----------
    probs
        Predictions (n, m).
    classes
        The names of the m classes, if there are any.
    rates
        By class, its name or column, the share of its rows that were kept; 1 of others.
    weights
        What rows count in the means that the note tells.

    Raises
    ------
    InputError
        If there is no such class, or a rate is not in (0, 1].

    Examples
    --------
    >>> kept, _ = kept_at(np.array([[0.99, 0.01], [0.9, 0.1]]), None, {0: 0.01})
    >>> kept.round(3).tolist()
    [[0.497, 0.503], [0.083, 0.917]]
    """
    by_class = rates_by_class(rates, probs.shape[1], classes)
    shares = np.ones(probs.shape[1])
    shares[list(by_class)] = list(by_class.values())
    shares /= shares.max()  # what is common to all classes cancels
    kept = probs * shares
    kept /= kept.sum(axis=1, keepdims=True)
    named = list(by_class) if probs.shape[1] > 2 else [1]
    told = []
    for k in named[:_SEVERAL]:
        before, after = (float(np.average(each[:, k], weights=weights)) for each in (probs, kept))
        told.append(f"{_called(k, classes)} {before:.3g} before and {after:.3g} after")
    at = ", ".join(f"{_called(k, classes)} at {rate:.3g}" for k, rate in by_class.items())
    more = ", …" if len(named) > _SEVERAL else ""
    note = (
        f"Rows were kept by their label ({at}), so what is tested is what the predictions mean among "
        f"the rows kept; mean predicted of these rows: {'; '.join(told)}{more}."
    )
    return kept, note


def rates_by_class(rates: object, m: int, classes: tuple[str, ...] | None) -> dict[int, float]:
    """Return the rates by column; raise unless each is of a class, and in (0, 1]."""
    if not isinstance(rates, Mapping) or not rates:
        do = "give the rate of every class that was not kept whole, as in {0: 0.01}"
        raise InputError(argument="sampling_rates", found=quoted(rates), do=do)
    found: dict[int, float] = {}
    for which, given in rates.items():
        column, rate = _column(which, m, classes), as_float(given)
        if rate is None or not 0.0 < rate <= 1.0:
            raise InputError(
                f"the sampling rate of class {quoted(which)} is {quoted(given)}; give the share of its "
                "rows that were kept, above 0 and at most 1."
            )
        if column in found:
            raise InputError(f"class {quoted(which)} has two sampling rates; give it one.")
        found[column] = rate
    return found


def _column(which: object, m: int, classes: tuple[str, ...] | None) -> int:
    """Return the column of a class that is named, as labels are, or numbered."""
    names, number = classes or (), whole_number(which)
    numbers = numbers_in(names) if names and number is not None else None
    if numbers is not None and number in numbers:  # as labels are matched
        return numbers.index(number)
    name = str(number) if number is not None else which
    for known in (names, without_prefix(names)[0] if names else ()):
        if isinstance(name, str) and name in known:
            return known.index(name)
    if number is not None and numbers is None and 0 <= number < m:
        return number
    close = closest(which, names)
    hint = f"did you mean {close!r}? " if close else ""
    choices = f"the classes are {listed(names)}" if names else f"give a column from 0 to {m - 1}"
    raise InputError(f"a sampling rate is for {quoted(which)}, which is not a class; {hint}{choices}.")


def _called(column: int, classes: tuple[str, ...] | None) -> str:
    return f"class {column}" if classes is None else quoted(classes[column])
