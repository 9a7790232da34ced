"""Pilot sets: the predictions of a model, and what is assumed to be true of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest import data
from caltest._arguments import (
    Number,
    arguments,
    check_takes,
    flag,
    positive_number,
    real_array,
    whole_number,
)
from caltest._sampling import LabelSampler, seed_of
from caltest._visible import quoted
from caltest.data import Rows, Sample, sample
from caltest.exceptions import Argument, InputError, Phrase
from caltest.planning.fits import (
    CAREFUL,
    Array,
    Truth,
    estimated,
    mean_distance,
    of_bias,
    of_overconfidence,
    of_temperature,
)
from caltest.results import freeze_arrays
from caltest.simulation import Simulated

Kind: TypeAlias = Literal["temperature", "logistic", "isotonic"]
Assumption: TypeAlias = "Callable[[Array], object] | NDArray[np.float64]"

_WAYS = Phrase(
    "{temperature}, {bias}, {overconfidence} or, with the pilot's labels, {recalibration}",
    {
        "temperature": Argument("temperature", 0.8),
        "bias": Argument("bias", 0.5),
        "overconfidence": Argument("overconfidence", 0.05),
        "recalibration": Argument("recalibration", "temperature"),
    },
)


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a model says, and what is assumed to be true of it. Make it with :func:`pilot`.

    Called with a number of rows and a generator, it draws a data set: rows with replacement, and of
    each a label from its truth. So it is a model as :func:`caltest.power` takes them.

    Attributes
    ----------
    predictions
        The pilot's predictions, of N rows and m classes.
    truth
        P(Y = k | predictions), (N, m), read-only.
    assumed
        The assumption in words.
    notes
        Sentences a reader of a plan should know.
    """

    predictions: Rows
    truth: Array = field(repr=False)
    assumed: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def error(self) -> float:
        """By how much it is assumed to be wrong: the mean total variation distance to the truth."""
        return mean_distance(self.predictions.probs, self.truth)

    def __call__(self, n_samples: int, *, rng: np.random.Generator) -> Sample:
        """Draw a data set of ``n_samples`` rows."""
        rows = rng.integers(0, self.predictions.n_samples, n_samples)
        labels = LabelSampler.of(self.truth[rows], seed_of(rng)).draw(0, 1)[0]
        return Sample(self.predictions.take(rows), labels.astype(np.intp))


@arguments(
    temperature=positive_number,
    bias=Number(advice="give log-odds, such as 0.5"),
    overconfidence=Number(-1.0, 1.0, advice="give a difference of probabilities, 0.05 for five points"),
    careful=flag,
)
def pilot(
    probs: object,
    labels: object = None,
    *,
    temperature: float | None = None,
    bias: float | None = None,
    target: int | str | None = None,
    overconfidence: float | None = None,
    truth: Assumption | None = None,
    recalibration: Kind | None = None,
    careful: bool = False,
) -> Pilot:
    """Say what a model says, and what is assumed to be true: a model for :func:`caltest.power`.

    One assumption is made: a stated error (the smallest that matters, say), or, of a pilot with labels,
    its own error as a recalibration estimates it.

    Parameters
    ----------
    probs
        Predictions as :func:`caltest.data.sample` takes them, or its result, or a
        :class:`caltest.simulation.Simulated` (whose truth is known, and is taken).
    labels
        What came true, (N,). Default None: not known, and needed for ``recalibration`` only.
    temperature
        t > 0: stated logits are the true ones divided by t, as in :func:`caltest.simulation.tempered`;
        below 1 the model is over-confident, above 1 under-confident.
    bias
        The log-odds of class ``target`` are stated so much too high, as in
        :func:`caltest.simulation.classwise`; negative: too low.
    target
        Column or name of the class of a bias. Default None: class 1 of two.
    overconfidence
        The top class is stated too surely by this difference of probabilities, 0.05 for five points;
        negative: not surely enough. No probability leaves [0, 1].
    truth
        P(Y = k | probs), (N, m), or of two classes P(Y = 1 | probs), (N,); or a function that takes
        probabilities (N, m) and returns it.
    recalibration
        "temperature" (maximum likelihood of t), "logistic" (Cox's intercept and slope, of two classes)
        or "isotonic" (of two classes). Default None: if nothing else is assumed and there are labels,
        "logistic" of two classes, "temperature" of more.
    careful
        Of a recalibration by "temperature" or "logistic", assume the end of its 95% interval that is
        nearest to calibrated, so that the pilot's noise is not planned for: of 100 such plans few
        promise too much. Default False: the best fit, whose power is overstated.

    Returns
    -------
    Pilot
        ``error`` says how wrong the model is assumed to be, ``notes`` what to beware of.

    Raises
    ------
    InputError
        If the predictions are none, or there is not one assumption that fits.

    Notes
    -----
    Pairs of a prediction and its label are never drawn together: that would take the pilot's labels for
    the truth, each of probability 1, and its noise for miscalibration; every model would look easy to
    reject. A fit of one or two numbers takes little of the noise, an isotonic regression much.

    Examples
    --------
    >>> import caltest
    >>> from caltest.planning import pilot
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> sure = pilot(digits.probs, overconfidence=0.05)
    >>> sure.assumed, round(sure.error, 3)
    ('the top class is stated 5 points too surely', 0.05)
    >>> own = pilot(digits.probs, digits.labels)
    >>> own.assumed
    'as fitted to the pilot, a temperature of 1.15 (95% interval 1.04 to 1.29)'
    """
    if isinstance(probs, Simulated):
        probs, labels, truth = _of_simulated(probs, labels, truth)
    predictions, known = _read(probs, labels)
    stated: dict[str, Callable[[], Truth]] = {}
    if temperature is not None:
        stated["temperature"] = partial(_with_temperature, predictions, temperature)
    if bias is not None:
        stated["bias"] = partial(_with_bias, predictions, bias, target)
    elif target is not None:
        raise InputError(
            "{argument} is {found}, which is the class of a bias; give {bias} too, or leave it out.",
            argument="target",
            found=quoted(target),
            bias=Argument("bias", 0.5),
        )
    if overconfidence is not None:
        stated["overconfidence"] = partial(_with_overconfidence, predictions, overconfidence)
    if truth is not None:
        stated["truth"] = partial(_with_truth, predictions, truth)
    if recalibration is not None or (not stated and known is not None):
        stated["recalibration"] = partial(estimated, known, recalibration, careful)
    if len(stated) != 1:
        both = " and ".join(f"{{{name}}}" for name in stated)
        found = f"both {both} are assumed" if stated else "nothing is assumed to be true"
        raise InputError(
            "{found} of the pilot; give one of {ways}.",
            found=Phrase(found, {name: Argument(name, ...) for name in stated}),
            ways=_WAYS,
        )
    if careful and "recalibration" not in stated:
        (way,) = stated
        raise InputError(
            "{careful} is for an error as fitted, and {way} states one; give one.",
            careful=CAREFUL,
            way=Argument(way, ...),
        )
    (made,) = (make() for make in stated.values())
    return Pilot(predictions, made.probs, made.assumed, (*predictions.notes, *made.notes))


def _of_simulated(
    simulated: Simulated, labels: object, truth: Assumption | None
) -> tuple[object, object, Assumption]:
    if labels is not None or truth is not None:
        raise InputError("simulated data know their labels and their truth; give these data alone.")
    return simulated.probs, None, simulated.truth


def _read(probs: object, labels: object) -> tuple[Rows, Sample | None]:
    """Check the pilot; return its predictions, and the whole if there are labels."""
    if isinstance(probs, Sample):
        if labels is not None:
            raise InputError("the pilot is a Sample, which has labels; give no others.")
        return probs.rows, probs
    if labels is not None:
        whole = sample(probs, labels)
        return whole.rows, whole
    return data.predictions(probs), None


def _with_temperature(predictions: Rows, temperature: float) -> Truth:
    return of_temperature(predictions.probs, float(temperature))


def _with_bias(predictions: Rows, bias: float, target: int | str | None) -> Truth:
    column = _column(predictions, target)
    name = f"class {predictions.classes[column] if predictions.classes else column}"
    return of_bias(predictions.probs, column, float(bias), name)


def _with_overconfidence(predictions: Rows, excess: float) -> Truth:
    return of_overconfidence(predictions.probs, float(excess))


def _with_truth(predictions: Rows, truth: Assumption) -> Truth:
    given: object = truth
    if callable(truth) and not isinstance(truth, type):
        check_takes("truth", truth, "probs")
        given = truth(predictions.probs.copy())
    read = np.array(real_array("truth", given, "give probabilities (N, m), or a function"))
    if predictions.n_classes == 2 and read.shape == (predictions.n_samples,):
        read = np.column_stack([1.0 - read, read])
    if read.shape != predictions.probs.shape:
        raise InputError(
            f"truth has shape {read.shape}, and the pilot's predictions {predictions.probs.shape}; "
            "give the probabilities that are true, row by row."
        )
    sums = read.sum(axis=1)
    wrong = np.flatnonzero(~((read >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= 1e-6)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"row {row} of truth (counting from 0) is no probabilities: it sums to {sums[row]:.6g}, "
            f"its smallest entry is {read[row].min():.3g}; give entries of at least 0 that sum to 1."
        )
    name = getattr(truth, "__name__", None)
    return Truth(read / sums[:, None], f"the truth is as given{f' by {name}' if name else ''}")


def _column(predictions: Rows, target: int | str | None) -> int:
    m, names = predictions.n_classes, predictions.classes or ()
    if target is None and m == 2:
        return 1
    if isinstance(target, str) and target in names:
        return names.index(target)
    column = whole_number(target)
    if column is not None and column < m:
        return column
    raise InputError(
        "{what}, and the pilot has {m} classes; give a column from 0 to {last}{named}.",
        what=Phrase("a bias needs the class it is of ({target})", {"target": Argument("target", ...)})
        if target is None
        else Phrase("{target} is {found}", {"target": Argument("target"), "found": quoted(target)}),
        m=m,
        last=m - 1,
        named=" or a class's name" if names else "",
    )
