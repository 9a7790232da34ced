"""Models for planning: pilot sets with an assumed truth, and functions that draw data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import softmax

from caltest import data
from caltest._arguments import Number, arguments, positive_number, real_array, takes, whole_number
from caltest._numbers import points
from caltest._sums import Array
from caltest._visible import quoted
from caltest.alignment import check_rows, column_names, in_order_of
from caltest.data import Rows, Sample
from caltest.data.rows import on_average_one, refuse_clusters
from caltest.data.sample import whole_sample
from caltest.exceptions import Argument, InputError, Phrase
from caltest.laws.classes import LabelSampler
from caltest.sampling import generator, seed_of
from caltest.simulation import Simulated

#: A function of a number of rows and a generator ``rng`` that returns simulated data.
Model: TypeAlias = "Callable[..., object]"
Assumption: TypeAlias = "Callable[[Array], object] | Array"

_WAYS = {"temperature": 0.8, "bias": 0.5, "overconfidence": 0.05}


@dataclass(frozen=True, eq=False)
class Pilot:
    """A model to plan with: its predictions, and what is assumed about the truth.

    Make it with :func:`pilot`.

    Called with a number of rows and a generator, it draws a data set: rows with replacement, with their
    weights, and of each a label from its truth. So it is a model as :func:`caltest.power` takes them.

    Attributes
    ----------
    predictions : Rows
        The pilot's predictions, of N rows and m classes.
    truth : array of shape (N, m)
        P(Y = k | predictions), read-only.
    assumed : str
        The assumption in words.
    notes : tuple of str
        Sentences a reader of a plan should know.
    """

    predictions: Rows
    truth: Array = field(repr=False)
    assumed: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.truth.flags.writeable = False

    @property
    def error(self) -> float:
        """Assumed error: the mean total variation distance between predictions and truth."""
        distances = np.abs(self.predictions.probs - self.truth).sum(axis=1)
        error = float(0.5 * np.average(distances, weights=self.predictions.weights))
        return error if error > 1e-12 else 0.0  # smaller values are rounding

    def __call__(self, n_samples: int, *, rng: np.random.Generator) -> Sample:
        """Draw a data set of ``n_samples`` rows."""
        rows = rng.integers(0, self.predictions.n_samples, n_samples)
        labels = LabelSampler.of(self.truth[rows], seed_of(rng)).draw(0, 1)[0]
        drawn = self.predictions.take(rows)
        drawn = drawn if drawn.are_alike else replace(drawn, weights=on_average_one(drawn.weights))
        return Sample(drawn, labels.astype(np.intp))


@arguments(
    temperature=positive_number,
    bias=Number(advice="give log-odds, such as 0.5"),
    overconfidence=Number(-1.0, 1.0, advice="give a difference of probabilities, 0.05 for five points"),
)
def pilot(
    probs: object,
    *,
    weights: object = None,
    temperature: float | None = None,
    bias: float | None = None,
    target: int | str | None = None,
    overconfidence: float | None = None,
    truth: Assumption | None = None,
) -> Pilot:
    """Describe the model to plan for: its predictions, and how wrong they are assumed to be.

    Make one assumption: state an error, such as the smallest one that matters. The pilot's labels are
    not needed: an error estimated from them would contain much of their noise.

    Parameters
    ----------
    probs : array of shape (N,) or (N, m), data frame, Sample or Simulated
        Predictions, in any form that :func:`caltest.data.sample` takes, or its result (whose labels
        are not looked at), or a :class:`caltest.simulation.Simulated`, whose known truth is used.
    weights : array of shape (N,), optional
        How much each row counts, as in :func:`caltest.test`. Rows to come are assumed to have weights
        like these: every row is drawn with its own, and the tests planned take them. Default None:
        those of ``probs``, if it has any; otherwise all rows have equal weight.
    temperature : float, optional
        t > 0: predicted logits are the true ones divided by t, as in
        :func:`caltest.simulation.tempered`. Below 1 the model is overconfident, above 1
        underconfident.
    bias : float, optional
        How much too high the predicted log-odds of class ``target`` are; negative: too low.
    target : int or str, optional
        Column or name of the class with the bias. Default None: class 1 of two.
    overconfidence : float, optional
        How much too high the confidence in the top class is: 0.05 for five points; negative: too
        low. All probabilities stay within [0, 1].
    truth : array of shape (N, m) or (N,), or callable, optional
        The true probabilities P(Y = k | probs), (N, m), or P(Y = 1 | probs), (N,), for two
        classes; or a function that takes predictions (N, m) and returns them.

    Returns
    -------
    Pilot
        ``error`` describes how wrong the model is assumed to be, and ``notes`` lists caveats.

    Raises
    ------
    InputError
        If the input is not a set of predictions, or there is not exactly one usable assumption.

    Examples
    --------
    >>> import caltest
    >>> from caltest.planning import pilot
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> sure = pilot(digits.probs, overconfidence=0.05)
    >>> sure.assumed, round(sure.error, 3)
    ('the confidence in the top class is 5 points too high', 0.05)
    """
    if isinstance(probs, Simulated):
        if truth is not None:
            raise InputError("simulated data know their truth; give these data alone.")
        truth, probs = probs.truth, probs.probs
    check_rows({"probs": probs, "weights": weights, "truth": truth})
    predictions = data.predictions(probs.rows if isinstance(probs, Sample) else probs, weights)
    refuse_clusters(predictions.clusters, "a pilot")
    if bias is None and target is not None:
        text = "{argument} is {found}, which is the class of a bias; give {bias} too, or leave it out."
        raise InputError(text, argument="target", found=quoted(target), bias=Argument("bias", 0.5))
    errors: dict[str, tuple[Any, Callable[..., tuple[Array, str]]]] = {
        "temperature": (temperature, _of_temperature),
        "bias": (bias, partial(_of_bias, target=target)),
        "overconfidence": (overconfidence, _of_overconfidence),
        "truth": (truth, _as_given),
    }
    if len(stated := [name for name, (value, _) in errors.items() if value is not None]) != 1:
        both = " and ".join(f"{{{name}}}" for name in stated)
        found = f"both {both} are assumed" if stated else "nothing is assumed to be true"
        wrong = Phrase(found, {name: Argument(name, ...) for name in stated})
        facts = {name: Argument(name, value) for name, value in _WAYS.items()}
        ways = Phrase("{temperature}, {bias} or {overconfidence}", facts)
        raise InputError("{found} of the pilot; give one of {ways}.", found=wrong, ways=ways)
    notes = predictions.notes
    if not predictions.are_alike:
        worth = 100 * predictions.effective / predictions.n_samples
        assumed = "Rows to come are assumed to have weights like those of the pilot"
        notes += (f"{assumed}, with which 100 rows are worth {worth:.0f} of equal weight.",)
    value, truth_of = errors[stated[0]]
    return Pilot(predictions, *truth_of(predictions, value), notes)


# ------------------------------------------------------------------ stated errors
#
# All functions return the true probabilities, in the shape of the stated ones, and the assumption as a
# clause. A probability of 0 stays 0 under a temperature or a bias.


def _of_temperature(predictions: Rows, temperature: float) -> tuple[Array, str]:
    """Return the truth g of a model that states softmax(log g / t): stated^t, renormalised."""
    kind = "overconfident" if temperature < 1.0 else "underconfident"
    kind = "calibrated" if temperature == 1.0 else kind
    clause = f"stated logits are the true ones divided by {temperature:.4g} ({kind})"
    with np.errstate(divide="ignore"):
        return np.asarray(softmax(temperature * np.log(predictions.probs), axis=1)), clause


def _of_bias(predictions: Rows, bias: float, target: int | str | None) -> tuple[Array, str]:
    """Lower the log-odds of one class; the others share the rest in proportion to their predictions."""
    m, names = predictions.n_classes, predictions.classes or ()
    column = whole_number(target)
    if target is None and m == 2:
        column = 1
    elif isinstance(target, str) and target in names:
        column = names.index(target)
    if column is None or column >= m:
        given, by_name = target is not None, " or a class's name" * bool(names)
        do = f"give a column from 0 to {m - 1}{by_name}, not {{found}}."
        text = f"a bias needs the class it is of ({{argument}}): {do}"
        raise InputError(text, argument="target", found=quoted(target) if given else "nothing")
    with np.errstate(divide="ignore"):
        logs = np.log(predictions.probs)
    logs[:, column] -= bias
    name = names[column] if names else column
    too = "high" if bias >= 0.0 else "low"
    clause = f"the log-odds of class {name} are stated {abs(bias):.4g} too {too}"
    return np.asarray(softmax(logs, axis=1)), clause


def _of_overconfidence(predictions: Rows, excess: float) -> tuple[Array, str]:
    """Return the truth if confidence in the top class is too high by ``excess``; if negative, too low.

    Probabilities stay in [0, 1]. The other classes change in proportion, or equally if they are all 0.
    """
    stated = predictions.probs
    rows, top = np.arange(len(stated)), stated.argmax(axis=1)
    right = np.clip(stated[rows, top] - excess, 0.0, 1.0)
    others = stated.copy()
    others[rows, top] = 0.0
    others[others.sum(axis=1) == 0.0] = 1.0
    others[rows, top] = 0.0
    truth = others / others.sum(axis=1, keepdims=True) * (1.0 - right)[:, None]
    truth[rows, top] = right
    direction = "too high" if excess >= 0.0 else "too low"
    return truth, f"the confidence in the top class is {points(abs(excess))} {direction}"


def _as_given(predictions: Rows, truth: Assumption) -> tuple[Array, str]:
    given: object = truth
    if callable(truth) and not isinstance(truth, type):
        takes("probs", of=truth, called="truth")
        given = truth(predictions.probs.copy())
    read = np.array(real_array("truth", given, "give probabilities (N, m), or a function"))
    if predictions.n_classes == 2 and read.shape == (predictions.n_samples,):
        read = np.column_stack([1.0 - read, read])
    if read.shape == predictions.probs.shape and (names := column_names(truth)) and predictions.classes:
        read = read[:, in_order_of(predictions.classes, names, "truth", "those of probs are called")]
    if read.shape != predictions.probs.shape:
        found = f"truth has shape {read.shape}, and the pilot's predictions {predictions.probs.shape}"
        raise InputError(f"{found}; give the probabilities that are true, row by row.")
    sums, least = read.sum(axis=1), read.min(axis=1)
    if not (right := (least >= 0.0) & (np.abs(sums - 1.0) <= 1e-6)).all():
        row = int(right.argmin())
        wrong = f"row {row} of truth (counting from 0) does not hold probabilities"
        found = f"it sums to {sums[row]:.6g}, with an entry of {least[row]:.3g}"
        raise InputError(f"{wrong}: {found}; give entries from 0 on that sum to 1.")
    name = getattr(truth, "__name__", None)
    return read / sums[:, None], f"the truth is as given{f' by {name}' if name else ''}"


# ------------------------------------------------------------------ models


def find_model(model: object, n: int, seed: int) -> Model:
    """Return a model from a function, a pilot or simulated data, after a trial with ``n`` rows."""
    if isinstance(model, Simulated):
        return pilot(model)
    if not callable(model) or isinstance(model, type):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        do = "give caltest.planning.pilot of predictions, or a function"
        raise InputError(f"the model is {what}; {do} such as caltest.simulation.tempered.")
    try:
        inspect.signature(model).bind(100, rng=None)
    except TypeError as error:
        needs = "a number of rows and a generator, rng"
        found = f"the model {described(model)} cannot be called with {needs} ({error})"
        raise InputError(f"{found}; write it as def model(n, rng).") from None
    except ValueError:  # written in C, with unknown arguments
        pass
    _check_repeatable(model, n, seed)
    return model


def described(model: Model) -> str:
    """Return a model's assumptions as a clause."""
    if isinstance(model, Pilot):
        pilots = model.predictions
        return f"{model.assumed}; {pilots.n_samples:,} predictions of {pilots.n_classes} classes"
    if not isinstance(model, partial):
        return str(getattr(model, "__name__", type(model).__name__))
    options = [*map(repr, model.args), *(f"{key}={value!r}" for key, value in model.keywords.items())]
    return f"{described(model.func)}({', '.join(options)})"


def drawn_by(model: Model, n: int, rng: np.random.Generator) -> tuple[Any, Any, float | None]:
    """Return predictions and labels drawn by a model, and its error if the truth is known."""
    drawn = model(n, rng=rng)
    if isinstance(drawn, Simulated):
        return drawn.probs, drawn.labels, drawn.ece
    if isinstance(drawn, Sample):
        return drawn.rows, drawn.labels, None
    if isinstance(drawn, tuple) and len(drawn) == 2:
        return *drawn, None
    do = "return caltest.simulation.Simulated, or a pair (probs, labels)"
    raise InputError(f"the model drew {type(drawn).__name__}; {do}.")


def check_rows_drawn(asked: int, drawn: int) -> None:
    """Raise unless a model drew as many rows as requested."""
    if drawn != asked:
        do = "draw as many as its first argument says"
        raise InputError(f"the model was asked for {asked} rows and drew {drawn}; {do}.")


def _check_repeatable(model: Model, n: int, seed: int) -> None:
    """Raise if a model draws from another source than ``rng``, or is not random at all.

    Data sets with the same seed must be equal, or results could not be repeated. A model that leaves
    the generator unchanged and draws the same with another one has only one data set. Pilots and the
    models of this package are not tried.
    """
    module = str(getattr(getattr(model, "func", model), "__module__", ""))
    if isinstance(model, Pilot) or module.partition(".")[0] == "caltest":
        return

    def drawn(rng: np.random.Generator) -> list[Any]:
        """Return arrays for comparison; for predicted densities, only the outcomes."""
        found = whole_sample(*drawn_by(model, n, rng)[:2])
        check_rows_drawn(n, found.rows.n_samples)
        return [getattr(found.rows.law, "probs", 0), found.labels]

    rng, same, other = (generator(seed, stream) for stream in (0, 0, 1))
    before = f"{rng.bit_generator.state} {rng.bit_generator.seed_seq}"
    first = drawn(rng)
    if not all(map(np.array_equal, first, drawn(same))):
        found = "drew other data the second time from the same rng, so that no result could be repeated"
        do = "draw from rng alone, not from numpy.random"
        raise InputError(f"the model {described(model)} {found}; {do}.")
    after = f"{rng.bit_generator.state} {rng.bit_generator.seed_seq}"
    if before == after and all(map(np.array_equal, first, drawn(other))):
        found = "draws the same data from every rng, so that there is one data set only"
        raise InputError(f"the model {described(model)} {found}; draw from rng.")
