import runpy
from dataclasses import FrozenInstanceError
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from caltest.datasets import digits_models, load_digits_predictions
from caltest.exceptions import InputError

SCRIPT = Path(__file__).parents[1] / "validation" / "make_digits_predictions.py"

# The table that the script prints: accuracy, top-label ECE, labels of probability exactly zero.
TABLE = {
    "neural_network": (0.972, 0.0072, 0), "logistic_regression": (0.967, 0.0164, 0),
    "nearest_neighbors": (0.986, 0.0068, 5), "platt_svm": (0.987, 0.0760, 0),
    "isotonic_naive_bayes": (0.891, 0.0638, 0), "random_forest": (0.977, 0.1939, 0),
    "naive_bayes": (0.840, 0.1466, 17),
}  # fmt: skip


def probability_of_label(digits):
    return digits.probs[np.arange(len(digits.labels)), digits.labels]


def top_label_ece(digits):
    confidence = digits.probs.max(axis=1)
    gap = (digits.probs.argmax(axis=1) == digits.labels) - confidence
    bins = np.minimum((15 * confidence).astype(int), 14)
    return sum(abs(gap[bins == b].sum()) for b in range(15)) / len(gap)


def test_the_table_lists_every_model():
    assert digits_models() == tuple(TABLE)


@pytest.mark.parametrize("model", digits_models())
def test_shapes_sums_and_table(model):
    digits = load_digits_predictions(model)
    accuracy, ece, impossible = TABLE[model]

    assert digits.model == model
    assert digits.description
    assert digits.classes == tuple("0123456789")
    assert digits.probs.shape == (1797, 10)
    assert digits.probs.dtype == np.float64
    assert digits.labels.shape == (1797,)
    assert set(digits.labels) == set(range(10))
    assert digits.probs.min() >= 0
    np.testing.assert_allclose(digits.probs.sum(axis=1), 1, rtol=0, atol=1e-12)
    hits = digits.probs.argmax(axis=1) == digits.labels
    assert hits.mean() == pytest.approx(accuracy, abs=5e-4)
    assert top_label_ece(digits) == pytest.approx(ece, abs=5e-5)
    assert (probability_of_label(digits) == 0).sum() == impossible


def test_naive_bayes_keeps_what_float32_would_call_impossible():
    of_label = probability_of_label(load_digits_predictions("naive_bayes"))
    assert (of_label == 0).sum() < (of_label.astype(np.float32) == 0).sum()


def test_labels_are_the_digits_in_their_own_order():
    datasets = pytest.importorskip("sklearn.datasets")
    np.testing.assert_array_equal(load_digits_predictions().labels, datasets.load_digits().target)


@pytest.mark.slow
def test_the_script_makes_what_is_shipped():
    pytest.importorskip("sklearn")
    script = runpy.run_path(str(SCRIPT))
    classifiers = script["classifiers"]()
    assert tuple(classifiers) == digits_models()
    for model in ("naive_bayes", "nearest_neighbors"):  # the fast ones
        shipped = load_digits_predictions(model).probs
        np.testing.assert_allclose(script["predict"](classifiers[model]), shipped, atol=1e-9)


def test_the_file_is_small_and_holds_no_pickle():
    file = files("caltest") / "data_files" / "digits_predictions.npz"
    assert len(file.read_bytes()) < 1_000_000
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        assert set(arrays.files) == {"labels", *digits_models()}
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_frozen():
    digits = load_digits_predictions()
    with pytest.raises(FrozenInstanceError):
        digits.model = "another"
    with pytest.raises(ValueError, match="read-only"):
        digits.probs[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        digits.labels[0] = 1


def test_repr_is_short():
    assert repr(load_digits_predictions("random_forest")) == (
        "DigitsPredictions(model='random_forest', "
        "description='300 trees; accurate and badly underconfident')"
    )


@pytest.mark.parametrize(
    ("model", "hint"), [("naive_bays", "did you mean 'naive_bayes'? Choices"), ("xyz", "choices")]
)
def test_unknown_model(model, hint):
    with pytest.raises(InputError) as error:
        load_digits_predictions(model)
    everything = ", ".join(digits_models())
    assert str(error.value) == f"there is no digits model {model!r}; {hint}: {everything}."
