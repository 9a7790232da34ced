"""Lenses: test one aspect of the predictions, such as the top class or a single class.

A lens first reduces the predictions, and labels are then drawn from the reduced ones: only what these
state is tested. Lenses of numbers turn predicted distributions into classes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, choose, wrong
from caltest._visible import quoted
from caltest.data import Rows, Sample
from caltest.exceptions import Argument, InputError
from caltest.laws import Classes, Point
from caltest.laws.members import halves
from caltest.lenses.classes import ClassWise, Lens, Reduction, Sorted, TopK, TopLabel
from caltest.lenses.distributions import (
    Above,
    Below,
    Entry,
    Interval,
    OfVectors,
    Pair,
    Pit,
    Quantile,
    Until,
    VectorRanks,
    WholeDistribution,
)


def _entry(text: str) -> Entry:
    """For vectors: one entry, by its name, seen through the lens of numbers after the last slash."""
    name, slash, inner = text.rpartition("/")
    kind, colon, _ = inner.partition(":")
    return Entry(name, find_lens(inner)) if slash and kind + colon in LENSES else Entry(text)


def _cause(text: str) -> Until:
    """For times and competing events: does an event of this cause come until a time?"""
    cause, _, until = text.rpartition("/until:")
    if not (cause and until):
        do = f"give 'cause:{cause or text or 'NAME'}/until:TIME'"
        raise InputError(f"the lens {quoted(f'cause:{text}')} has no horizon; {do}.")
    return Until(until, cause)


def _pair(text: str) -> Pair:
    """For vectors: how two entries go together, by both their names."""
    return Pair(*halves(text))


#: A lens, its name, or none.
Asked: TypeAlias = str | Lens | None
_ONE = "give a lens such as 'top_label' or 'class:0'"


def within(label: str) -> tuple[str, str]:
    """Return the entry of a vector or the cause that a lens is for, "" if none, and the inner lens."""
    name, _, inner = label.partition(":")[2].rpartition("/")
    return (name, inner) if label.startswith(("entry:", "cause:")) else ("", label)


#: Lenses by name; a name that ends in a colon is followed by an argument.
LENSES: dict[str, Any] = {
    "top_label": TopLabel,
    "class:": ClassWise,
    "top:": TopK,
    "sorted": Sorted,
    "below:": Below,
    "above:": Above,
    "until:": Until,
    "cause:": _cause,
    "quantile:": Quantile,
    "interval:": Interval,
    "pit:": Pit,
    "distribution": WholeDistribution,
    "entry:": _entry,
    "pair:": _pair,
    "ranks:": VectorRanks,
}
__all__ = [each.__name__ for each in LENSES.values() if isinstance(each, type)]
__all__ += ["Entry", "Lens", "OfVectors", "Pair", "Reduction"]


@arguments()
def find_lens(lens: str | Lens | None) -> Lens | None:
    """Return the lens for a name such as "top_label", "class:3" or "top:5"; for None, no lens."""
    if lens is None or isinstance(lens, Lens):
        return lens
    if isinstance(lens, type) and issubclass(lens, TopLabel | Sorted | WholeDistribution):
        return lens()
    if not isinstance(lens, str):
        raise wrong("lens", lens, "give a name such as 'top_label' or an object of caltest.lenses")
    if lens == "classwise":
        found = "the lens 'classwise' is every class by itself, which only audits and lower bounds take"
        raise InputError(f"{found}; give one class, such as 'class:0', or 'top_label'.")
    name, colon, argument = lens.partition(":")
    maker = choose("lens", name + colon, LENSES)
    return maker(argument) if colon else maker()  # type: ignore[no-any-return]


def show(rows: Rows, lens: Asked, default: str | None = None) -> Reduction:
    """Return rows through a lens; with more than two classes, the default if none was asked for."""
    found = lens_of(rows, lens, default)
    if found is None:
        return Reduction(rows)
    found.check(rows)
    return found.show(rows)


def through(whole: Sample, lens: Asked, default: str | None = None) -> tuple[Sample, str | None]:
    """Return the sample through a lens, and the lens's label."""
    view = show(whole.rows, lens, default)
    return view.sample(whole.labels), view.label


def one_probability(whole: Sample, lens: Asked, what: str, do: str = _ONE) -> tuple[Sample, str | None]:
    """Return the sample with one probability, and the lens's label; by default, the top label."""
    view, label = through(whole, lens, "top_label")
    if (m := view.rows.n_classes) != 2:
        found = f"{what} one probability, and there are {m} classes through the lens {quoted(label)}"
        raise InputError(f"{found}; {do}.")
    return view, label


def lens_of(predictions: Rows, lens: Asked, default: str | None = None) -> Lens | None:
    """Return the lens that was asked for; if none was, the default for more than two classes."""
    found = None if lens is None else find_lens(lens)
    if found is None and default is not None and predictions.n_classes is None:
        law, do = predictions.law, "give a lens, such as 'quantile:0.5' or 'below:10'"
        do = f"give them to {Argument('caltest.audit')}" if isinstance(law, Point) else do
        raise InputError(f"this is about one probability, and these are {law.about}; {do}.")
    usual = found is None and default is not None and (predictions.n_classes or 0) > 2
    return find_lens(default) if usual else found


def seen_through(lens: str | None, view: Rows) -> str:
    """Return a phrase for what is observed through a lens, as the subject of a sentence."""
    one = lens is not None and view.n_classes == 2
    return f"what was observed, whether {event(lens, view)}," if one else "the observed label"


_EVENTS = {
    "below": "the outcome is below {}",
    "above": "the outcome is above {}",
    "until": "the event comes by {}",
    "quantile": "the outcome is at most its predicted {} quantile",
    "interval": "the outcome is in its predicted {} interval",
    "pit": "the outcome is above its predicted median",  # two cells
    "top_label": "the top class is right",
    "top": "the label is among the top {}",
    "sorted": "the second choice is right",
    "mean": "the mean of the outcome",
    "expectile": "the {} expectile of the outcome",
}


def event(lens: str | None, predictions: Rows) -> str:
    """Return the event that class 1 of two classes stands for, as a clause."""
    entry, inner = within(lens or "")
    if entry:
        return event(inner, predictions).replace("the outcome", entry, 1).replace("the event", entry)
    kind, _, which = inner.partition(":")
    if kind in _EVENTS:
        share = f"{100.0 * float(which):g}%" if kind in ("quantile", "interval") else which
        if kind == "until" and "seen" in (getattr(predictions.law, "names", None) or ()):
            return f"the event is seen by {share}"  # some rows were followed for less
        return _EVENTS[kind].format(share)
    name = predictions.classes[1] if predictions.classes else "class 1"
    return f"the label is {name}" if name.startswith("class ") else f"the label is {name!r}"


def means(rows: Rows, labels: NDArray[Any], lens: str | None) -> dict[str, Any]:
    """Return the event, its mean probability and its rate, for one probability or the top class.

    Class 1 of two, without a lens, has None as its event. Without a probability the result is empty.
    """
    if not isinstance(rows.law, Classes) or rows.law.seen is not None:
        return {}
    probs, right = rows.probs[:, 1], labels == 1
    if rows.n_classes > 2:
        if lens is not None or labels.ndim > 1:
            return {}
        probs, right, lens = rows.probs.max(axis=1), labels == rows.law.top, "top_label"
    both: Any = probs.mean(), np.count_nonzero(right) / len(right)
    if not rows.are_alike:
        both = (np.average(each, weights=rows.weights) for each in (probs, right))
    named = None if lens is None else event(lens, rows)
    return dict(zip(("event", "predicted", "observed"), (named, *map(float, both)), strict=True))
