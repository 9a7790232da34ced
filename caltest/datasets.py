"""Real predictions to practise on: seven models of scikit-learn's handwritten digits.

``validation/make_digits_predictions.py`` made them, by stratified ten-fold cross-validation on all 1797
rows. No row was seen by the model that predicts it, but each helped to train the models of the other
folds; so the labels are only approximately independent given the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, choose

__all__ = ["DigitsPredictions", "digits_models", "load_digits_predictions"]

_FILE = files("caltest") / "data_files" / "digits_predictions.npz"

_DESCRIPTIONS = {
    "neural_network": "a network with one hidden layer of 32 units; well calibrated",
    "logistic_regression": "multinomial logistic regression; well calibrated, slightly underconfident",
    "nearest_neighbors": "five nearest neighbours; the smallest top-label ECE of all, "
    "but five labels were given probability 0",
    "platt_svm": "a support vector machine with Platt scaling; most accurate, underconfident",
    "isotonic_naive_bayes": "the naive Bayes, recalibrated class by class by isotonic "
    "regression; far better, still miscalibrated",
    "random_forest": "300 trees; accurate and badly underconfident",
    "naive_bayes": "Gaussian naive Bayes; badly overconfident, "
    "and 17 labels were given probability 0 (underflow)",
}


@dataclass(frozen=True, slots=True)
class DigitsPredictions:
    """Cross-validated predictions of one model for the digits.

    Attributes
    ----------
    probs : ndarray of shape (1797, 10), float64, read-only
        Predicted class probabilities, as the model gave them: a zero is the model's own.
    labels : ndarray of shape (1797,), integers, read-only
        The digits.
    classes : tuple of str
        ``("0", …, "9")``, the names of the columns of ``probs``.
    model : str
        The name that the predictions were asked for by.
    description : str
        What the model is, and how well calibrated.
    """

    probs: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.intp] = field(repr=False)
    classes: tuple[str, ...] = field(repr=False)
    model: str
    description: str


@arguments()
def digits_models() -> tuple[str, ...]:
    """List the names of the models, roughly from the best to the worst calibrated.

    Examples
    --------
    >>> from caltest.datasets import digits_models
    >>> digits_models()
    ('neural_network', 'logistic_regression', 'nearest_neighbors', 'platt_svm',
     'isotonic_naive_bayes', 'random_forest', 'naive_bayes')
    """
    return tuple(_DESCRIPTIONS)


@arguments()
def load_digits_predictions(model: str = "logistic_regression") -> DigitsPredictions:
    """Load one model's predictions for the 1797 digits.

    Parameters
    ----------
    model : str, default "logistic_regression"
        One of `digits_models`. The default is a well calibrated one.

    Returns
    -------
    DigitsPredictions
        Probabilities, labels, class names and a description.

    Raises
    ------
    InputError
        If there is no such model.

    Examples
    --------
    >>> from caltest.datasets import load_digits_predictions
    >>> digits = load_digits_predictions("naive_bayes")
    >>> digits.probs.shape
    (1797, 10)
    >>> accuracy = (digits.probs.argmax(axis=1) == digits.labels).mean()
    >>> confidence = digits.probs.max(axis=1).mean()
    >>> print(f"right {accuracy:.0%} of the time, {confidence:.0%} sure")
    right 84% of the time, 99% sure
    """
    description = choose("digits model", model, _DESCRIPTIONS)
    with _FILE.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        probs, labels = arrays[model], arrays["labels"].astype(np.intp)
    probs.flags.writeable = labels.flags.writeable = False
    classes = tuple(str(digit) for digit in range(probs.shape[1]))
    return DigitsPredictions(probs, labels, classes, model, description)
