"""Models that data sets are drawn from: what is one, what it assumes, and how it draws."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from caltest._sampling import generator
from caltest.data import Sample, sample
from caltest.exceptions import InputError
from caltest.planning.pilot import Pilot, pilot
from caltest.predictive import PredictiveSample, recognised
from caltest.simulation import Simulated

#: Takes a number of rows and ``rng``, a generator, and returns simulated data.
Model: TypeAlias = "Callable[..., object]"
ModelLike: TypeAlias = "Model | Pilot | Simulated | Sample | tuple[object, object]"


def find_model(model: ModelLike) -> Model:
    """Return a model of a function, a pilot or data that are one."""
    if isinstance(model, Simulated | Sample):
        return pilot(model)
    if isinstance(model, tuple) and len(model) == 2:
        return pilot(*model)
    if not callable(model) or isinstance(model, type):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise InputError(
            f"the model is {what}; give a function such as caltest.simulation.m2, a pair "
            "(probs, labels), or caltest.planning.pilot(probs, temperature=0.8)."
        )
    try:
        inspect.signature(model).bind(100, rng=None)
    except TypeError as error:
        raise InputError(
            f"the model {_name(model)} cannot be called with a number of rows and rng= ({error}); "
            "write it as def model(n, rng)."
        ) from None
    except ValueError:  # written in C: its arguments are not known
        pass
    return model


def described(model: Model) -> str:
    """Return what a model assumes, as a clause."""
    if isinstance(model, Pilot):
        pilots = model.predictions
        return f"{model.assumed}; {pilots.n_samples:,} predictions of {pilots.n_classes} classes"
    function: Any = model
    options: list[str] = []
    while isinstance(function, partial):
        options = [*(f"{key}={value!r}" for key, value in function.keywords.items()), *options]
        options = [*map(repr, function.args), *options]
        function = function.func
    name = _name(function)
    return f"{name}({', '.join(options)})" if options else name


def _name(function: Any) -> str:
    return str(getattr(_innermost(function), "__name__", type(function).__name__))


def _innermost(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


def drawn_by(model: Model, n: int, rng: np.random.Generator) -> tuple[Any, Any, float | None]:
    """Return predictions, labels and the error, where the truth is known, of what a model draws."""
    drawn = model(n, rng=rng)
    if isinstance(drawn, Simulated):
        return drawn.probs, drawn.labels, drawn.ece
    if isinstance(drawn, Sample | PredictiveSample):
        return drawn.rows, drawn.labels, None
    if isinstance(drawn, tuple) and len(drawn) == 2:
        return drawn[0], drawn[1], None
    raise InputError(
        f"the model drew {type(drawn).__name__}; return caltest.simulation.Simulated, or a pair "
        "(probs, labels)."
    )


def check_rows_drawn(asked: int, drawn: int) -> None:
    """Raise unless a model drew as many rows as it was asked for."""
    if drawn != asked:
        raise InputError(
            f"the model was asked for {asked} rows and drew {drawn}; draw as many as its first "
            "argument says."
        )


def check_repeatable(model: Model, n: int, seed: int) -> None:
    """Raise if a model draws from elsewhere than ``rng``, or draws nothing at all.

    Data sets of one seed are equal, else results could not be repeated. A model that leaves the
    generator as it was, and draws the same with another, has one data set only. Pilots, and the models
    of this package, are not drawn from.
    """
    module = str(getattr(_innermost(model), "__module__", ""))
    if isinstance(model, Pilot) or module.partition(".")[0] == "caltest":
        return
    first, second, other = (generator(seed, stream) for stream in (0, 0, 1))
    before = _state(first)
    found = _arrays(model, n, first)
    if not _equal(found, _arrays(model, n, second)):
        raise InputError(
            f"the model {_name(model)} drew other data the second time from the same rng, so that no "
            "result could be repeated; draw from rng alone, not from np.random."
        )
    if _state(first) == before and _equal(found, _arrays(model, n, other)):
        raise InputError(
            f"the model {_name(model)} draws the same data from every rng, so that there is one data "
            "set only; draw from rng."
        )


def _state(rng: np.random.Generator) -> str:
    spawned = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return f"{rng.bit_generator.state} {spawned}"


def _arrays(model: Model, n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return what a model draws as arrays that can be compared; of predicted densities, the labels."""
    probs, labels, _ = drawn_by(model, n, rng)
    if recognised(probs) is not None:
        return (np.array(labels),)
    found = sample(probs, labels)
    check_rows_drawn(n, found.rows.n_samples)
    return found.rows.probs, found.labels


def _equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
