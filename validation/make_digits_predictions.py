"""Make the predictions that ``caltest.datasets.load_digits_predictions`` returns.

Seven classifiers, from well to badly calibrated, predict every row of scikit-learn's digits (1797
images of 8 × 8 pixels, 10 classes) by stratified ten-fold cross-validation: no row is predicted
by a model that saw its label. The probabilities are stored as the models gave them, in float64:
naive Bayes gives 1e-50 to labels that then turn up, and float32 would call those impossible.

Run ``python validation/make_digits_predictions.py``: it rewrites the file inside the package and
prints the table in the documentation. Seeds are fixed; other versions of scikit-learn or of the
linear algebra underneath may change the last digits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

SEED = 0
TARGET = Path(__file__).parents[1] / "caltest" / "data_files" / "digits_predictions.npz"


def classifiers() -> dict[str, ClassifierMixin]:
    """Return the classifiers by name, in the order of the table."""
    return {
        "neural_network": make_pipeline(
            StandardScaler(), MLPClassifier((32,), max_iter=500, random_state=SEED)
        ),
        "logistic_regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "nearest_neighbors": KNeighborsClassifier(5),
        "platt_svm": CalibratedClassifierCV(SVC(), method="sigmoid", cv=5, ensemble=False),
        "isotonic_naive_bayes": CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=5),
        "random_forest": RandomForestClassifier(300, random_state=SEED),
        "naive_bayes": GaussianNB(),
    }


def predict(classifier: ClassifierMixin) -> np.ndarray:
    """Return the (1797, 10) cross-validated probabilities of ``classifier``."""
    images, labels = load_digits(return_X_y=True)
    folds = StratifiedKFold(10, shuffle=True, random_state=SEED)
    return cross_val_predict(classifier, images, labels, cv=folds, method="predict_proba")


def top_label_ece(probs: np.ndarray, labels: np.ndarray, n_bins: int = 15) -> float:
    """Return the usual expected calibration error: top label, bins of equal width, L1."""
    confidence = probs.max(axis=1)
    gap = (probs.argmax(axis=1) == labels) - confidence
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, weights=gap)).sum() / len(labels))


def describe(name: str, probs: np.ndarray, labels: np.ndarray) -> str:
    """Return one line of the table."""
    of_label = probs[np.arange(len(labels)), labels]
    with np.errstate(divide="ignore"):
        log_loss = -np.log(of_label).mean()
    return (
        f"{name:22}{(probs.argmax(axis=1) == labels).mean():9.3f}{probs.max(axis=1).mean():11.3f}"
        f"{log_loss:9.3f}{top_label_ece(probs, labels):9.4f}{(of_label == 0).sum():12d}"
    )


def main() -> None:
    """Fit, predict, print the table and write the file."""
    labels = load_digits().target
    print(f"{'model':22}{'accuracy':>9}{'confidence':>11}{'log loss':>9}{'ECE':>9}{'impossible':>12}")
    predictions = {}
    for name, classifier in classifiers().items():
        predictions[name] = predict(classifier)
        print(describe(name, predictions[name], labels), flush=True)
    TARGET.parent.mkdir(exist_ok=True)
    np.savez_compressed(TARGET, labels=labels.astype(np.uint8), **predictions)
    print("ECE: top label, 15 bins of equal width. Impossible: labels whose probability is exactly 0.")
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
